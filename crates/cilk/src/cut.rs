//! Cuts functions at their syncs. Every part becomes a kernel.
//!
//! Spawned tasks are kept in the lane until the next `sync`, since nobody waits for them before. There the continuation
//! is put first, because the tasks write their results into it, and then all tasks at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::layout::{Field, bytes_of, place};
use crate::lex::Token;
use crate::program::Facts;
use crate::syntax::{Function, Statement, Variable, sync_in};
use crate::{CilkError, Result};

/// Most parts of a function.
const MOST_PARTS: usize = 32;

/// Most bytes of an element, and most tasks that a lane may spawn before it syncs.
const MOST_BYTES: u32 = 4096;
const MOST_SPAWNS: u32 = 1024;

/// A channel that a part's kernel is given, in the order of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The tasks of a function, and how many at most are put for each element.
    Tasks(usize, u32),
    /// The continuation with this number, of the same function.
    After(usize),
}

/// A function up to its first sync, or from a sync on.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub kernel: String,
    /// Written when the element is put.
    pub saved: Vec<Field>,
    /// Results of spawned tasks, which these write themselves.
    pub results: Vec<Field>,
    pub arrays: Vec<Field>,
    pub bytes: u32,
    pub code: String,
    pub targets: Vec<Target>,
}

impl Part {
    /// All fields, in their order in memory.
    pub(crate) fn fields(&self) -> Vec<Field> {
        self.saved.iter().chain(&self.results).chain(&self.arrays).cloned().collect()
    }
}

/// The statements that follow those of a block.
struct Rest<'r, 'a> {
    statements: &'r [Statement<'a>],
    next: Option<&'r Rest<'r, 'a>>,
}

impl<'a> Rest<'_, 'a> {
    /// What is left of an inner block stays a block, because its variables are its own.
    fn collect(&self) -> Vec<Statement<'a>> {
        let Some(next) = self.next else { return self.statements.to_vec() };
        let mut all = next.collect();
        if !self.statements.is_empty() {
            all.insert(0, Statement::Block(self.statements.to_vec()));
        }
        all
    }
}

/// A part that is still to be written: its statements, and the variables that they can use.
struct Todo<'a> {
    statements: Vec<Statement<'a>>,
    scope: Vec<Variable<'a>>,
}

struct Cutter<'p, 'a> {
    facts: &'p Facts<'a>,
    function: &'p Function<'a>,
    parts: Vec<Part>,
    todo: Vec<Todo<'a>>,
    code: String,
    targets: Vec<Target>,
    /// Most tasks of each function that this part spawns.
    most: BTreeMap<usize, u32>,
    /// Variables that this part has declared without a value, and those that its expressions mention.
    fresh: BTreeSet<&'a str>,
    mentioned: BTreeSet<&'a str>,
    /// Where results of this part's spawns go.
    slots: BTreeMap<&'a str, u32>,
    /// Spawns whose results have a place in a frame.
    placed: BTreeSet<usize>,
    in_loop: bool,
    depth: usize,
    /// The line of the source that is being translated.
    at_line: u32,
}

/// Tasks that are spawned and not put yet: by function, the spawns and their lines.
type Pending = BTreeMap<usize, BTreeMap<usize, u32>>;

fn join(pending: &mut Pending, other: Pending) {
    for (number, spawns) in other {
        pending.entry(number).or_default().extend(spawns);
    }
}

/// Stands for a variable's place in the frame until that is known.
fn place_of(name: &str) -> String {
    format!("CILK_SLOT({name})")
}

/// The unit in which places of results of a type are counted: words, or the type itself if it is smaller.
fn slot_unit(ty: &str) -> u32 {
    bytes_of(ty).map_or(4, |bytes| bytes.min(4))
}

/// An array in an element, from its first byte on.
pub(crate) fn array_at(ty: &str, element: &str, start: u32) -> String {
    match start % 4 {
        0 => format!("(({ty} *)::word_of({element}, {}))", start / 4),
        _ => format!("(({ty} *)((char *)::word_of({element}, 0) + {start}))"),
    }
}

/// Cuts a function into parts.
pub(crate) fn cut<'a>(facts: &Facts<'a>, function: &Function<'a>) -> Result<Vec<Part>> {
    let mut parameters: Vec<Field> = function.parameters.iter().map(|p| Field::new(&p.ty, p.name)).collect();
    if function.ty != "void" {
        parameters.insert(0, Field::new(&format!("{} *", function.ty), "cilk_result"));
    }
    let first = part(function.name.to_string(), parameters, Vec::new(), Vec::new(), function.line)?;
    let todo = Todo { statements: function.body.clone(), scope: function.parameters.clone() };
    let mut cutter = Cutter {
        facts,
        function,
        parts: vec![first],
        todo: vec![todo],
        code: String::new(),
        targets: Vec::new(),
        most: BTreeMap::new(),
        fresh: BTreeSet::new(),
        mentioned: BTreeSet::new(),
        slots: BTreeMap::new(),
        placed: BTreeSet::new(),
        in_loop: false,
        depth: 0,
        at_line: function.line,
    };
    let mut at = 0;
    while at < cutter.todo.len() {
        cutter.write_part(at)?;
        at += 1;
    }
    Ok(cutter.parts)
}

fn part(
    kernel: String,
    saved: Vec<Field>,
    results: Vec<Field>,
    arrays: Vec<Field>,
    line: u32,
) -> Result<Part> {
    let mut saved = saved;
    if saved.is_empty() && results.is_empty() && arrays.is_empty() {
        saved.push(Field::new("unsigned", "cilk_nothing"));
    }
    let mut part =
        Part { kernel, saved, results, arrays, bytes: 0, code: String::new(), targets: Vec::new() };
    for field in part.fields() {
        if bytes_of(&field.ty).is_none() {
            let (name, ty) = (field.name, field.ty);
            let message =
                format!("`{name}` has the type `{ty}`, which no task can hold; use numbers and pointers");
            return Err(CilkError::new(line, message));
        }
    }
    part.bytes = place(&part.fields()).1;
    if part.bytes > MOST_BYTES {
        let message = format!("a task here takes {} bytes, and may take {MOST_BYTES}", part.bytes);
        return Err(CilkError::new(line, message));
    }
    Ok(part)
}

impl<'a> Cutter<'_, 'a> {
    fn write_part(&mut self, number: usize) -> Result<()> {
        let statements = std::mem::take(&mut self.todo[number].statements);
        let mut scope = self.todo[number].scope.clone();
        (self.code, self.targets) = (String::new(), Vec::new());
        (self.most, self.fresh, self.mentioned) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        (self.slots, self.placed) = (BTreeMap::new(), BTreeSet::new());
        self.in_loop = false;
        let mut pending = Pending::new();
        // A variable that is declared from here on may have the name of one in the frame, which is out of scope then.
        let hides = |statement: &Statement<'a>| match statement {
            Statement::Declare { variable, .. } => scope.iter().any(|other| other.name == variable.name),
            _ => false,
        };
        let body = if statements.iter().any(hides) { vec![Statement::Block(statements)] } else { statements };
        let ended = self.list(&body, None, &mut scope, &mut pending)?;
        if !ended {
            self.flush(&pending, None)?;
        }
        // No frame has room for a variable that is gone where its task is synced.
        if let Some((name, &line)) = self.slots.iter().find(|(name, _)| self.code.contains(&place_of(name))) {
            let message = format!(
                "`{name}` ends before the sync that its task's result waits for: declare it outside the block"
            );
            return Err(CilkError::new(line, message));
        }
        self.parts[number].code = std::mem::take(&mut self.code);
        self.parts[number].targets = std::mem::take(&mut self.targets);
        Ok(())
    }

    fn line(&mut self, text: &str) {
        let width = 4 * (self.depth + 1);
        let _ = writeln!(self.code, "#line {}\n{:width$}{text}", self.at_line, "");
    }

    fn text(&mut self, expression: &[Token<'a>]) -> String {
        self.mentioned.extend(self.facts.macros.words(expression));
        self.facts.text(expression)
    }

    /// The number of a kernel's parameter for a channel.
    fn target(&mut self, target: Target) -> usize {
        let same = |other: &Target| match (other, &target) {
            (Target::Tasks(a, _), Target::Tasks(b, _)) => a == b,
            (a, b) => a == b,
        };
        if let Some(at) = self.targets.iter().position(same) {
            self.targets[at] = target;
            return at;
        }
        self.targets.push(target);
        self.targets.len() - 1
    }

    /// Writes statements. Returns whether the part ends within them on every path.
    fn list(
        &mut self,
        statements: &[Statement<'a>],
        rest: Option<&Rest<'_, 'a>>,
        scope: &mut Vec<Variable<'a>>,
        pending: &mut Pending,
    ) -> Result<bool> {
        for (i, statement) in statements.iter().enumerate() {
            let after = Rest { statements: &statements[i + 1..], next: rest };
            if self.statement(statement, &after, scope, pending)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn within(
        &mut self,
        statements: &[Statement<'a>],
        after: &Rest<'_, 'a>,
        scope: &[Variable<'a>],
        pending: &mut Pending,
    ) -> Result<bool> {
        self.depth += 1;
        let ended = self.list(statements, Some(after), &mut scope.to_vec(), pending);
        self.depth -= 1;
        ended
    }

    fn statement(
        &mut self,
        statement: &Statement<'a>,
        after: &Rest<'_, 'a>,
        scope: &mut Vec<Variable<'a>>,
        pending: &mut Pending,
    ) -> Result<bool> {
        self.at_line = statement.line().unwrap_or(self.at_line);
        match statement {
            Statement::Declare { variable, value } => {
                self.declare(variable, value.as_deref(), scope)?;
            }
            Statement::Expression(expression) => {
                let text = self.text(expression);
                self.line(&format!("{text};"));
            }
            Statement::Jump(word) => self.line(&format!("{word};")),
            Statement::Return { value, line } => {
                if value.is_none() && self.function.ty != "void" {
                    let message =
                        format!("`{}` returns `{}`, and here nothing", self.function.name, self.function.ty);
                    return Err(CilkError::new(*line, message));
                }
                if let Some(value) = value {
                    let text = self.text(value);
                    let ty = &self.function.ty;
                    let store = if ty == "void" {
                        format!("{text};")
                    } else {
                        format!("*cilk_result = ({ty})({text});")
                    };
                    self.line(&store);
                }
                self.flush(pending, None)?;
                self.line("return;");
                return Ok(true);
            }
            Statement::Block(body) => {
                self.line("{");
                let ended = self.within(body, after, scope, pending)?;
                self.line("}");
                return Ok(ended);
            }
            Statement::If { condition, then, otherwise } => {
                let condition = self.text(condition);
                self.line(&format!("if ({condition}) {{"));
                let mut other = pending.clone();
                let ended = self.within(then, after, scope, pending)?;
                self.line("} else {");
                let other_ended = self.within(otherwise, after, scope, &mut other)?;
                self.line("}");
                if ended {
                    *pending = other;
                } else if !other_ended {
                    join(pending, other);
                }
                return Ok(ended && other_ended);
            }
            Statement::While { condition, step, body } => {
                self.refuse_sync(body)?;
                let (condition, step) = (self.text(condition), self.text(step));
                self.line(&format!("for (; {condition}; {step}) {{"));
                self.body_of_loop(body, after, scope, pending)?;
                self.line("}");
            }
            Statement::DoWhile { condition, body } => {
                self.refuse_sync(body)?;
                let condition = self.text(condition);
                self.line("do {");
                self.body_of_loop(body, after, scope, pending)?;
                self.line(&format!("}} while ({condition});"));
            }
            Statement::Spawn { .. } => self.spawn(statement, scope, pending)?,
            Statement::Sync { line } => return self.sync(after, scope, pending, *line),
        }
        Ok(false)
    }

    fn body_of_loop(
        &mut self,
        body: &[Statement<'a>],
        after: &Rest<'_, 'a>,
        scope: &[Variable<'a>],
        pending: &mut Pending,
    ) -> Result<()> {
        let outside = std::mem::replace(&mut self.in_loop, true);
        let mut inside = pending.clone();
        self.within(body, after, scope, &mut inside)?;
        join(pending, inside);
        self.in_loop = outside;
        Ok(())
    }

    fn refuse_sync(&self, body: &[Statement<'a>]) -> Result<()> {
        match sync_in(body) {
            Some(line) => Err(CilkError::new(
                line,
                "a `sync` inside a loop cannot be cut: make the loop a function that spawns itself, or sync after it",
            )),
            None => Ok(()),
        }
    }

    fn declare(
        &mut self,
        variable: &Variable<'a>,
        value: Option<&[Token<'a>]>,
        scope: &mut Vec<Variable<'a>>,
    ) -> Result<()> {
        let name = variable.name;
        let length = match &variable.length {
            Some(length) => format!("[{}]", self.text(length)),
            None => String::new(),
        };
        let value = match value {
            Some(value) => format!(" = {}", self.text(value)),
            None => String::new(),
        };
        // A name that two variables share counts as one with a value.
        if value.is_empty() && !scope.iter().any(|other| other.name == name) {
            self.fresh.insert(name);
        } else {
            self.mentioned.insert(name);
        }
        self.line(&format!("{} {name}{length}{value};", variable.ty));
        scope.push(variable.clone());
        Ok(())
    }

    fn spawn(&mut self, spawn: &Statement<'a>, scope: &[Variable<'a>], pending: &mut Pending) -> Result<()> {
        let Statement::Spawn { slot, callee, arguments, line, id } = spawn else { return Ok(()) };
        let line = *line;
        let error = |message: String| Err(CilkError::new(line, message));
        let number = self.facts.callee(callee, arguments.len(), line)?;
        let task = self.facts.functions[number];
        let innermost = |name: &str| scope.iter().rev().find(|variable| variable.name == name);
        let variable = slot.as_ref().map(|slot| (slot, innermost(slot.name)));
        let mut words = Vec::new();
        let mut most = if self.in_loop { None } else { Some(1) };
        match (variable, task.ty == "void") {
            (None, true) => {}
            (None, false) => {
                return error(format!("`{callee}` returns a value: write `x = spawn {callee}(…);`"));
            }
            (Some(_), true) => return error(format!("`{callee}` returns nothing")),
            (Some((slot, None)), false) => {
                return error(format!("`{}` is no local variable; a task's result goes into one", slot.name));
            }
            (Some((slot, Some(variable))), false) => {
                if variable.length.is_some() != slot.index.is_some() {
                    return error(format!(
                        "a task's result goes into a variable or an element, not into `{}`",
                        slot.name
                    ));
                }
                if variable.ty != task.ty {
                    let (ty, other) = (&variable.ty, &task.ty);
                    return error(format!(
                        "`{}` is of type `{ty}`, the result of `{callee}` of type `{other}`",
                        slot.name
                    ));
                }
                if let Some(length) = &variable.length {
                    most = Some(self.facts.length(length, variable)?).filter(|_| self.in_loop).or(most);
                }
                let index = slot.index.as_ref().map(|index| self.text(index));
                let per = bytes_of(&task.ty).unwrap_or(4).div_ceil(4);
                let index = index.map_or(String::new(), |index| format!(" + {per} * ({index})"));
                words.push(format!("(unsigned)({}{index})", place_of(slot.name)));
                self.slots.insert(slot.name, line);
            }
        }
        let Some(most) = most else {
            return error(
                "a spawn in a loop needs a bound: put its result into an element of a local array, or make the loop a \
                 function that spawns itself"
                    .to_string(),
            );
        };
        for (argument, parameter) in arguments.iter().zip(&task.parameters) {
            let text = self.text(argument);
            words.push(format!("({})({text})", parameter.ty));
        }
        let all = self.most.entry(number).or_insert(0);
        *all += most;
        if *all > MOST_SPAWNS {
            return error(format!("a lane may spawn {MOST_SPAWNS} tasks before it syncs, not {all}"));
        }
        pending.entry(number).or_default().insert(*id, line);
        if self.in_loop {
            let full = format!("cilk_{callee}_count == sizeof cilk_{callee} / sizeof *cilk_{callee}");
            self.line(&format!("if ({full}) assert(!\"more tasks in a loop than the array has elements\");"));
        }
        self.line(&format!("cilk_{callee}[cilk_{callee}_count++] = {callee}_spawn{{{}}};", words.join(", ")));
        Ok(())
    }

    /// Puts the tasks that are pending. Their results go into the frame `after`, if there is one.
    fn flush(&mut self, pending: &Pending, after: Option<&str>) -> Result<()> {
        for (&number, spawns) in pending {
            let line = spawns.values().next().copied().unwrap_or(self.at_line);
            let task = self.facts.functions[number];
            let name = task.name;
            if after.is_none() && task.ty != "void" {
                let message =
                    "the result of this task is never synced: add `sync;` before the function returns";
                return Err(CilkError::new(line, message));
            }
            let most = self.most.get(&number).copied().unwrap_or(1);
            let channel = self.target(Target::Tasks(number, most));
            let level = if self.facts.same_recursion(self.function.name, number) {
                " + cilk_work.level + 1"
            } else {
                ""
            };
            let mut words: Vec<String> = Vec::new();
            if task.ty != "void" {
                let slot = format!("cilk_{name}[cilk_i].cilk_slot");
                words.push(match slot_unit(&task.ty) {
                    4 => format!("({} *)::word_of(cilk_after, cilk_frame, {slot})", task.ty),
                    _ => format!("({} *)::word_of(cilk_after, cilk_frame, 0) + {slot}", task.ty),
                });
            }
            words.extend(task.parameters.iter().map(|p| format!("cilk_{name}[cilk_i].{}", p.name)));
            self.line("{");
            self.depth += 1;
            self.line(&format!("::Channel* cilk_deeper = cilk_c{channel}{level};"));
            self.line(&format!("::put(cilk_deeper, cilk_{name}_count, [&](unsigned cilk_at) {{"));
            self.line(&format!("    for (unsigned cilk_i = 0; cilk_i < cilk_{name}_count; cilk_i++)"));
            let element = format!("{name}_saved{{{}}}", words.join(", "));
            self.line(&format!("        ::write(cilk_deeper, cilk_at + cilk_i, {element});"));
            self.line("});");
            self.depth -= 1;
            self.line("}");
        }
        Ok(())
    }

    fn sync(
        &mut self,
        after: &Rest<'_, 'a>,
        scope: &[Variable<'a>],
        pending: &mut Pending,
        line: u32,
    ) -> Result<bool> {
        if pending.is_empty() {
            return Ok(false);
        }
        let statements = after.collect();
        let nothing_left = |s: &Statement<'_>| matches!(s, Statement::Return { value: None, .. });
        let void = |&number: &usize| self.facts.functions[number].ty == "void";
        if statements.first().is_none_or(nothing_left)
            && pending.keys().all(void)
            && self.function.ty == "void"
        {
            // Nothing comes after: whoever waits for this function waits for everything deeper.
            self.flush(pending, None)?;
            self.line("return;");
            return Ok(true);
        }
        if self.parts.len() >= MOST_PARTS {
            let message = format!("`{}` is cut into more than {MOST_PARTS} parts", self.function.name);
            return Err(CilkError::new(line, message));
        }
        if let Some((_, line)) = pending.values().flatten().find(|(id, _)| !self.placed.insert(**id)) {
            let message = "this task is synced in two places: sync once, before or after the branch";
            return Err(CilkError::new(*line, message));
        }
        let number = self.parts.len();
        let next = self.frame(&statements, scope, number, line)?;
        let channel = self.target(Target::After(number));
        let saved: Vec<&str> = next.saved.iter().map(|field| &*field.name).collect();
        let saved = if saved == ["cilk_nothing"] { "0".to_string() } else { saved.join(", ") };
        let (starts, _) = place(&next.fields());
        self.line("{");
        self.depth += 1;
        self.line(&format!("::Channel* cilk_after = cilk_c{channel} + cilk_work.level;"));
        self.line("::put(cilk_after, 1, [&](unsigned cilk_frame) {");
        if !next.saved.is_empty() {
            self.line(&format!("    ::write(cilk_after, cilk_frame, {}_saved{{{saved}}});", next.kernel));
        }
        for (array, start) in next.arrays.iter().zip(&starts[next.saved.len() + next.results.len()..]) {
            if !self.only_spawned(&array.name) {
                let (ty, length) = (&array.ty, array.length.unwrap_or(1));
                let place = format!("{}[cilk_i]", array_at(ty, "cilk_after, cilk_frame", *start));
                self.line(&format!("    for (unsigned cilk_i = 0; cilk_i < {length}; cilk_i++)"));
                self.line(&format!("        {place} = {}[cilk_i];", array.name));
            }
        }
        self.line("}, [&](unsigned cilk_frame) {");
        self.flush(pending, Some(&next.kernel))?;
        self.line("});");
        self.depth -= 1;
        self.line("}");
        self.line("return;");
        // Slots are places in this frame.
        for (field, start) in next.fields().iter().zip(starts) {
            let slot = start / slot_unit(&field.ty);
            self.code = self.code.replace(&place_of(&field.name), &slot.to_string());
        }
        self.parts.push(next);
        let keep = |variable: &&Variable<'a>| {
            self.parts[number].fields().iter().any(|field| field.name == variable.name)
        };
        let scope = scope.iter().filter(keep).cloned().collect();
        self.todo.push(Todo { statements, scope });
        Ok(true)
    }

    /// Whether a variable got no value but from tasks that this part has spawned.
    fn only_spawned(&self, name: &str) -> bool {
        self.slots.contains_key(name) && self.fresh.contains(name) && !self.mentioned.contains(name)
    }

    /// The continuation that runs these statements.
    fn frame(
        &self,
        statements: &[Statement<'a>],
        scope: &[Variable<'a>],
        number: usize,
        line: u32,
    ) -> Result<Part> {
        let mut used: BTreeSet<&str> = self.slots.keys().copied().collect();
        crate::syntax::walk(statements, &mut |statement| {
            used.extend(
                statement.expressions().into_iter().flat_map(|tokens| self.facts.macros.words(tokens)),
            );
            if let Statement::Spawn { slot: Some(slot), .. } = statement {
                used.insert(slot.name);
            }
        });
        let (mut saved, mut results, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        if self.function.ty != "void" {
            saved.push(Field::new(&format!("{} *", self.function.ty), "cilk_result"));
        }
        for (at, variable) in scope.iter().enumerate().filter(|(_, variable)| used.contains(variable.name)) {
            if scope[..at].iter().any(|other| other.name == variable.name) {
                let message = format!(
                    "`{}` hides another variable, and one of them is needed after a sync; give it another name",
                    variable.name
                );
                return Err(CilkError::new(variable.line, message));
            }
            let mut field = Field::new(variable.ty.trim_start_matches("const "), variable.name);
            match &variable.length {
                Some(length) => {
                    field.length = Some(self.facts.length(length, variable)?);
                    arrays.push(field);
                }
                None if self.only_spawned(variable.name) => results.push(field),
                None => saved.push(field),
            }
        }
        let kernel = format!("{}_{number}", self.function.name);
        part(kernel, saved, results, arrays, line)
    }
}
