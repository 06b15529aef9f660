//! A program as a whole: what its functions are, how they spawn each other, and the graph that runs it.

use warploom_flow::cilk::{Cilk, Part as Node};
use warploom_flow::{Constant, Graph};

use crate::cut::{Part, Target, cut};
use crate::emit;
use crate::layout::{Field, bytes_of, place};
use crate::lex::{Kind, Token, lex};
use crate::macros::Macros;
use crate::parse::{Parsed, parse};
use crate::syntax::{Function, Item, Statement, Variable, walk};
use crate::{CilkError, Result};

/// Longest array that a task can hold.
const LONGEST: u64 = 1024;

/// What is known of a program's functions.
pub(crate) struct Facts<'a> {
    pub source: &'a str,
    /// Functions that spawn or are spawned: those that become kernels.
    pub functions: Vec<&'a Function<'a>>,
    /// By function, whether it spawns another one, directly or through others.
    reaches: Vec<Vec<bool>>,
    pub macros: Macros<'a>,
    /// Words that begin types.
    types: &'a [&'a str],
}

impl<'a> Facts<'a> {
    /// The text of an expression as it stands in the source.
    pub(crate) fn text(&self, expression: &[Token<'a>]) -> String {
        match (expression.first(), expression.last()) {
            (Some(first), Some(last)) => self.source[first.start..last.end()].to_string(),
            _ => String::new(),
        }
    }

    /// The number of a spawned function.
    pub(crate) fn callee(&self, name: &str, arguments: usize, line: u32) -> Result<usize> {
        let Some(number) = self.functions.iter().position(|function| function.name == name) else {
            return Err(CilkError::new(line, format!("there is no function `{name}`")));
        };
        let takes = self.functions[number].parameters.len();
        if takes != arguments {
            return Err(CilkError::new(line, format!("`{name}` takes {takes} arguments, not {arguments}")));
        }
        Ok(number)
    }

    /// The functions that a function spawns, with the lines of the spawns.
    fn spawns(&self, function: &'a Function<'a>) -> impl Iterator<Item = (usize, u32)> {
        let mut all = Vec::new();
        walk(&function.body, &mut |statement| {
            if let Statement::Spawn { callee, line, .. } = statement {
                all.extend(self.functions.iter().position(|f| f.name == *callee).map(|to| (to, *line)));
            }
        });
        all.into_iter()
    }

    /// Whether two functions spawn each other, or are the same one and it spawns itself.
    pub(crate) fn same_recursion(&self, from: &str, to: usize) -> bool {
        let from = self.functions.iter().position(|function| function.name == from);
        from.is_some_and(|from| self.reaches[from][to] && self.reaches[to][from])
    }

    /// The length of a local array.
    pub(crate) fn length(&self, tokens: &[Token<'a>], variable: &Variable<'a>) -> Result<u32> {
        let number = |text: &str| text.trim_end_matches(['u', 'U', 'l', 'L']).parse::<u64>().ok();
        let value = match tokens {
            [token] if token.kind == Kind::Number => number(token.text),
            [token] => self.macros.number(token.text).and_then(number),
            _ => None,
        };
        match value {
            Some(value) if (1..=LONGEST).contains(&value) => Ok(value as u32),
            _ => Err(CilkError::new(
                variable.line,
                format!(
                    "the length of `{}` must be a number from 1 to {LONGEST}, or a `#define` of one",
                    variable.name
                ),
            )),
        }
    }
}

/// A function of a program with arguments, as text: `fib(24)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub function: String,
    pub arguments: Vec<String>,
}

impl Call {
    /// Reads `NAME(EXPRESSION, …)`.
    pub fn parse(text: &str) -> std::result::Result<Call, String> {
        let wrong = || format!("`{text}` is no call; write one as fib(24)");
        let (name, rest) = text.trim().split_once('(').ok_or_else(wrong)?;
        let inside = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name(name.trim()) || inside.contains([';', '{', '}', '#', '\n', '"']) {
            return Err(wrong());
        }
        let mut arguments = vec![String::new()];
        let mut open = 0i32;
        for c in inside.chars() {
            open += (c == '(') as i32 - (c == ')') as i32;
            match arguments.last_mut() {
                Some(last) if c != ',' || open > 0 => last.push(c),
                _ => arguments.push(String::new()),
            }
        }
        let arguments: Vec<String> = arguments.into_iter().map(|a| a.trim().to_string()).collect();
        let none = arguments.iter().all(String::is_empty) && arguments.len() == 1;
        if open != 0 || (!none && arguments.iter().any(String::is_empty)) {
            return Err(wrong());
        }
        Ok(Call { function: name.trim().to_string(), arguments: if none { Vec::new() } else { arguments } })
    }
}

/// A function that becomes kernels.
#[derive(Clone, Debug)]
struct Task {
    name: String,
    ty: String,
    parameters: Vec<Field>,
    parts: Vec<Part>,
    /// Its recursion: callers before callees.
    recursion: usize,
    /// The line of a spawn that makes it a recursion.
    again: Option<u32>,
}

/// A Cilk program, cut into the parts that become kernels.
#[derive(Clone, Debug)]
pub struct Program {
    source: String,
    tasks: Vec<Task>,
    /// By recursion, whether its functions spawn each other.
    recursions: Vec<bool>,
    globals: Vec<String>,
    has_init: bool,
    cuda: String,
}

impl Program {
    /// Reads a source and cuts its functions.
    pub fn parse(source: &str) -> std::result::Result<Program, CilkError> {
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let parsed = parse(source)?;
        let facts = facts(source, &parsed)?;
        let items = &parsed.items;
        check(items, &facts)?;
        let order = recursions(&facts);
        let mut tasks = Vec::new();
        for (number, function) in facts.functions.iter().enumerate() {
            tasks.push(Task {
                name: function.name.to_string(),
                ty: function.ty.clone(),
                parameters: function.parameters.iter().map(|p| Field::new(&p.ty, p.name)).collect(),
                parts: cut(&facts, function)?,
                recursion: order.iter().position(|group| group.contains(&number)).unwrap_or(0),
                again: facts
                    .spawns(function)
                    .find(|(to, _)| facts.reaches[*to][number])
                    .map(|(_, line)| line),
            });
        }
        let globals: Vec<String> = items
            .iter()
            .flat_map(|item| match item {
                Item::Globals { names, .. } => names.iter().map(|name| name.to_string()).collect(),
                _ => Vec::new(),
            })
            .collect();
        let has_init = items
            .iter()
            .any(|item| matches!(item, Item::Function(f) if f.name == "init" && f.parameters.is_empty()));
        let kernels: Vec<emit::Kernels<'_>> = facts
            .functions
            .iter()
            .zip(&tasks)
            .map(|(function, task)| emit::Kernels { function, parts: &task.parts })
            .collect();
        let cuda = emit::cuda(items, &facts, &kernels, &globals);
        let recursions = order.iter().map(|group| facts.reaches[group[0]][group[0]]).collect();
        Ok(Program { source: source.to_string(), tasks, recursions, globals, has_init, cuda })
    }

    /// The kernels as CUDA C++, complete with all that they include. Their lines are those of the source, `file`.
    pub fn cuda(&self, file: &str) -> String {
        self.cuda.replacen(emit::FILE, &quoted(file), 1)
    }

    /// The kernels without the headers, for people.
    pub fn own_cuda(&self) -> String {
        let own = self.cuda.split_once(emit::MARK).map_or(&*self.cuda, |(_, own)| own.trim_start());
        own.split_inclusive('\n').filter(|line| !line.starts_with("#line")).collect()
    }

    /// The value of a call as text, from its bytes; `None` if the function returns nothing.
    pub fn shown_result(&self, call: &Call, bytes: &[u8]) -> Option<String> {
        let ty = &*self.task(call).ok()?.ty;
        let unsigned = ty.contains("unsigned") || ty.contains("size_t");
        Some(match *bytes {
            [a, b, c, d] if ty.contains("float") => f32::from_le_bytes([a, b, c, d]).to_string(),
            [a, b, c, d] if unsigned => u32::from_le_bytes([a, b, c, d]).to_string(),
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).to_string(),
            [a, b, c, d, e, f, g, h] => {
                let bytes = [a, b, c, d, e, f, g, h];
                match ty {
                    _ if ty.contains("double") => f64::from_le_bytes(bytes).to_string(),
                    _ if unsigned => u64::from_le_bytes(bytes).to_string(),
                    _ => i64::from_le_bytes(bytes).to_string(),
                }
            }
            [a, b] if unsigned => u16::from_le_bytes([a, b]).to_string(),
            [a, b] => i16::from_le_bytes([a, b]).to_string(),
            [a] if unsigned => a.to_string(),
            [a] => i8::from_le_bytes([a]).to_string(),
            _ => return None,
        })
    }

    /// The names of the variables outside functions, in the order in which `cilk_globals` writes their addresses.
    pub fn globals(&self) -> &[String] {
        &self.globals
    }

    /// The program in C, with the keywords removed and a `main` that makes this call ([`PlainRun`](crate::PlainRun)).
    /// Its lines are those of the source, `file`. It must be compiled with `-finstrument-functions`.
    pub fn plain(&self, call: &Call, file: &str) -> std::result::Result<String, String> {
        let task = self.task(call)?;
        let harness = crate::plain::Harness {
            source: &self.source,
            file: &quoted(file),
            globals: &self.globals,
            tasks: self.tasks.iter().map(|task| &*task.name).collect(),
            has_init: self.has_init,
            ty: &task.ty,
            parameters: task.parameters.iter().map(|field| &*field.ty).collect(),
        };
        Ok(harness.text(call))
    }

    /// A function that a call reaches and that spawns itself, directly or through others, and the line of that spawn.
    pub fn recursion(&self, call: &Call) -> Option<(&str, u32)> {
        let reached = self.reached(call);
        let mut tasks = self.tasks.iter().zip(reached).filter(|(_, reached)| *reached);
        tasks.find_map(|(task, _)| Some((&*task.name, task.again?)))
    }

    fn task(&self, call: &Call) -> std::result::Result<&Task, String> {
        let Some(task) = self.tasks.iter().find(|task| task.name == call.function) else {
            let known: Vec<&str> = self.tasks.iter().map(|task| &*task.name).collect();
            let name = &call.function;
            return Err(match known.is_empty() {
                true => "no function of this source spawns another".to_string(),
                false => format!("no function `{name}` spawns or is spawned; these do: {}", known.join(", ")),
            });
        };
        let (takes, given) = (task.parameters.len(), call.arguments.len());
        if takes != given {
            return Err(format!("`{}` takes {takes} arguments, not {given}", task.name));
        }
        if let Some(pointer) = task.parameters.iter().find(|field| field.ty.ends_with('*')) {
            return Err(format!(
                "`{}` takes the pointer `{}`, which a first call cannot have: make the array a variable \
                 outside functions",
                task.name, pointer.name
            ));
        }
        Ok(task)
    }

    /// The graph of a call, in channels of `width` elements and recursions of at most `levels`. `arguments` are the
    /// values' bytes, `result` is where the function's value goes.
    pub fn graph(
        &self,
        call: &Call,
        arguments: &[Vec<u8>],
        result: u64,
        width: u32,
        levels: u32,
    ) -> std::result::Result<Graph, String> {
        let first = self.task(call)?;
        // Every channel of a graph must be filled, so functions that this call never reaches are not in it.
        let reached = self.reached(call);
        let mut program = Cilk::new(&first.name, width);
        let mut nodes: Vec<Vec<Node>> = vec![Vec::new(); self.tasks.len()];
        for (number, &recursive) in self.recursions.iter().enumerate() {
            let tasks = self.tasks.iter().enumerate();
            let tasks: Vec<_> = tasks.filter(|(at, task)| task.recursion == number && reached[*at]).collect();
            if tasks.is_empty() {
                continue;
            }
            let recursion = program.recursion(if recursive { levels } else { 1 });
            for (at, task) in tasks {
                for (i, part) in task.parts.iter().enumerate() {
                    nodes[at].push(match i {
                        0 => program.task_of(recursion, &part.kernel, part.bytes as usize),
                        _ => program.after_sync_of(recursion, &part.kernel, part.bytes as usize),
                    });
                }
            }
        }
        for (task, own) in self.tasks.iter().zip(&nodes) {
            for (part, &node) in task.parts.iter().zip(own) {
                let mut constants: Vec<Constant> = Vec::new();
                for target in &part.targets {
                    let to = match *target {
                        Target::Tasks(callee, most) => {
                            program.spawns_of(node, nodes[callee][0], most);
                            nodes[callee][0]
                        }
                        Target::After(number) => {
                            program.syncs_of(node, own[number]);
                            own[number]
                        }
                    };
                    constants.push(to.stack.into());
                }
                program.constants(node, constants);
            }
        }
        let start = self.tasks.iter().position(|task| task.name == first.name).unwrap_or(0);
        let part = &first.parts[0];
        let (starts, bytes) = place(&part.fields());
        let mut element = vec![0u8; bytes.next_multiple_of(4) as usize];
        let result = (first.ty != "void").then(|| result.to_le_bytes().to_vec());
        for (start, value) in starts.iter().zip(result.iter().chain(arguments)) {
            let start = *start as usize;
            let end = (start + value.len()).min(element.len());
            element[start..end].copy_from_slice(&value[..end - start]);
        }
        let words =
            element.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let words: Vec<u32> = words.collect();
        let graph = program.graph();
        graph.put_words(nodes[start][0].stack, words);
        Ok(graph.clone())
    }

    /// The bytes of the value of a call, 0 if it has none.
    pub fn result_bytes(&self, call: &Call) -> std::result::Result<u32, String> {
        Ok(bytes_of(&self.task(call)?.ty).unwrap_or(0))
    }

    /// By function, whether a call reaches it.
    fn reached(&self, call: &Call) -> Vec<bool> {
        let mut reached = vec![false; self.tasks.len()];
        let mut to_visit: Vec<usize> =
            self.tasks.iter().position(|task| task.name == call.function).into_iter().collect();
        while let Some(at) = to_visit.pop() {
            if std::mem::replace(&mut reached[at], true) {
                continue;
            }
            for part in &self.tasks[at].parts {
                to_visit.extend(part.targets.iter().filter_map(|target| match *target {
                    Target::Tasks(callee, _) => Some(callee),
                    Target::After(_) => None,
                }));
            }
        }
        reached
    }
}

/// A file's name as C writes it.
fn quoted(file: &str) -> String {
    format!("\"{}\"", file.replace('\\', "\\\\").replace('"', "\\\""))
}

fn facts<'a>(source: &'a str, parsed: &'a Parsed<'a>) -> Result<Facts<'a>> {
    let items = &parsed.items;
    let all: Vec<&Function<'a>> = items
        .iter()
        .filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
        .collect();
    let mut spawned: Vec<&str> = Vec::new();
    let mut spawners: Vec<&str> = Vec::new();
    for function in &all {
        walk(&function.body, &mut |statement| match statement {
            Statement::Spawn { callee, .. } => {
                spawned.push(callee);
                spawners.push(function.name);
            }
            Statement::Sync { .. } => spawners.push(function.name),
            _ => {}
        });
    }
    let is_task =
        |function: &&&Function<'a>| spawned.contains(&function.name) || spawners.contains(&function.name);
    let functions: Vec<&Function<'a>> = all.iter().filter(is_task).copied().collect();
    for (at, function) in all.iter().enumerate() {
        if all[..at].iter().any(|other| other.name == function.name) {
            return Err(CilkError::new(function.line, format!("`{}` is defined twice", function.name)));
        }
        if function.ty != "void" && bytes_of(&function.ty).is_none() && is_task(&function) {
            let message = format!("`{}` returns `{}`; a task returns a number", function.name, function.ty);
            return Err(CilkError::new(function.line, message));
        }
    }
    let mut reaches = vec![vec![false; functions.len()]; functions.len()];
    for (from, function) in functions.iter().enumerate() {
        walk(&function.body, &mut |statement| {
            if let Statement::Spawn { callee, .. } = statement
                && let Some(to) = functions.iter().position(|other| other.name == *callee)
            {
                reaches[from][to] = true;
            }
        });
    }
    for through in 0..functions.len() {
        for from in 0..functions.len() {
            for to in 0..functions.len() {
                reaches[from][to] |= reaches[from][through] && reaches[through][to];
            }
        }
    }
    let facts = Facts { source, functions, reaches, macros: Macros::of(items)?, types: &parsed.types };
    for token in lex(source)? {
        if let Some(task) = facts.functions.iter().find(|task| is_part_of(token.text, task.name)) {
            let message =
                format!("`{}` is a name of what becomes of `{}`; take another", token.text, task.name);
            return Err(CilkError::new(token.line, message));
        }
    }
    Ok(facts)
}

/// Whether a word is one that the kernels of a function use: `fib_1`, `fib_spawn`, `fib_1_frame`.
fn is_part_of(word: &str, task: &str) -> bool {
    let Some(rest) = word.strip_prefix(task).and_then(|rest| rest.strip_prefix('_')) else { return false };
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let names = ["part", "spawn", "frame", "saved", "head"];
    after.is_empty() && !rest.is_empty() || names.contains(&after.trim_start_matches('_'))
}

/// Groups of functions that spawn each other, callers before callees.
fn recursions(facts: &Facts<'_>) -> Vec<Vec<usize>> {
    let reaches = &facts.reaches;
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, reached) in reaches.iter().enumerate() {
        let with = |group: &&mut Vec<usize>| reached[group[0]] && reaches[group[0]][at];
        match groups.iter_mut().find(with) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    // A group that reaches another one reaches all of that, too, and what that reaches.
    let others = |group: &Vec<usize>| {
        let from = group[0];
        (0..facts.functions.len()).filter(|&to| reaches[from][to] && !reaches[to][from]).count()
    };
    groups.sort_by_key(|group| std::cmp::Reverse(others(group)));
    groups
}

/// What would compile and go wrong: addresses of variables that move, tasks called as functions, endless recursion.
fn check(items: &[Item<'_>], facts: &Facts<'_>) -> Result<()> {
    for item in items {
        let Item::Function(function) = item else { continue };
        let is_task = facts.functions.iter().any(|task| task.name == function.name);
        let mut arrays: Vec<&str> = Vec::new();
        let mut locals: Vec<&str> = function.parameters.iter().map(|p| p.name).collect();
        walk(&function.body, &mut |statement| {
            if let Statement::Declare { variable, .. } = statement {
                locals.push(variable.name);
                if variable.length.is_some() {
                    arrays.push(variable.name);
                }
            }
        });
        let mut wrong = None;
        walk(&function.body, &mut |statement| {
            for tokens in statement.expressions() {
                let locals = is_task.then_some((&locals[..], &arrays[..]));
                let found = match facts.macros.replaced(tokens) {
                    Ok(tokens) => bad_expression(&tokens, facts, locals),
                    Err(error) => Some(error),
                };
                wrong = wrong.take().or(found);
            }
        });
        if let Some(error) = wrong {
            return Err(error);
        }
    }
    unbounded(facts)
}

fn bad_expression(
    tokens: &[Token<'_>],
    facts: &Facts<'_>,
    locals: Option<(&[&str], &[&str])>,
) -> Option<CilkError> {
    for (at, token) in tokens.iter().enumerate() {
        let error = |message: String| Some(CilkError::new(token.line, message));
        let name = token.text;
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let next = tokens.get(at + 1);
        let spawns = |f: &&Function<'_>| f.name == name && spawns_or_syncs(f);
        if next.is_some_and(|next| next.is("(")) && facts.functions.iter().any(spawns) {
            return error(format!(
                "`{name}` spawns tasks, so it must be spawned itself: `x = spawn {name}(…);`"
            ));
        }
        let Some((locals, arrays)) = locals else { continue };
        if ["return", "goto", "break", "continue"].contains(&name) {
            return error(format!("a macro here hides a `{name}`; write it out"));
        }
        if token.is("&")
            && is_unary(tokens, at, facts)
            && let Some((operand, next)) = operand(&tokens[at + 1..])
            && (arrays.contains(&operand)
                || locals.contains(&operand) && !next.is_some_and(|next| next.is("[") || next.is("->")))
        {
            return error(format!(
                "the address of `{operand}` escapes: it moves to memory at a sync; use a variable outside functions"
            ));
        }
        let member = before.is_some_and(|sign| sign.is(".") || sign.is("->"));
        if arrays.contains(&name) && !member && !next.is_some_and(|next| next.is("[")) {
            return error(format!(
                "the array `{name}` escapes by its address: it moves to memory at a sync; use one outside functions"
            ));
        }
    }
    None
}

/// Whether the sign at a place has no operand before it. A type in brackets is a cast, not an operand.
fn is_unary(tokens: &[Token<'_>], at: usize, facts: &Facts<'_>) -> bool {
    let Some(last) = at.checked_sub(1).map(|last| &tokens[last]) else { return true };
    match last.kind {
        Kind::Sign if last.is(")") => {
            let before = tokens[..at - 1].iter().rev();
            let inside: Vec<_> = before.take_while(|token| !token.is("(") && !token.is(")")).collect();
            inside.last().is_some_and(|first| facts.types.contains(&first.text))
        }
        Kind::Sign => !last.is("]"),
        Kind::Word => last.is("return") || last.is("sizeof"),
        _ => false,
    }
}

/// The variable with which an operand begins, brackets aside, and the token that follows it and its brackets.
fn operand<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(&'a str, Option<&'t Token<'a>>)> {
    let open = tokens.iter().take_while(|token| token.is("(")).count();
    let (name, rest) = tokens[open..].split_first()?;
    let closed = rest.iter().take(open).take_while(|token| token.is(")")).count();
    (name.kind == Kind::Word).then_some((name.text, rest.get(closed)))
}

fn spawns_or_syncs(function: &Function<'_>) -> bool {
    let mut found = false;
    walk(&function.body, &mut |statement| {
        found |= matches!(statement, Statement::Spawn { .. } | Statement::Sync { .. });
    });
    found
}

/// How a list of statements goes on.
enum Course<'a> {
    /// It surely spawns this function, on this line.
    Spawns(&'a str, u32),
    MayReturn,
    Continues,
}

fn course<'a>(statements: &[Statement<'a>], callees: &[&str]) -> Course<'a> {
    for statement in statements {
        let course = match statement {
            Statement::Spawn { callee, line, .. } if callees.contains(callee) => {
                Course::Spawns(callee, *line)
            }
            Statement::Return { .. } => Course::MayReturn,
            Statement::Block(body) => course(body, callees),
            Statement::If { then, otherwise, .. } => {
                match (course(then, callees), course(otherwise, callees)) {
                    (Course::Spawns(callee, line), Course::Spawns(..)) => Course::Spawns(callee, line),
                    (Course::MayReturn, _) | (_, Course::MayReturn) => Course::MayReturn,
                    _ => Course::Continues,
                }
            }
            Statement::DoWhile { body, .. } if !jumps(body) => course(body, callees),
            // Perhaps its body is skipped.
            Statement::While { body, .. } | Statement::DoWhile { body, .. } => match course(body, &[]) {
                Course::MayReturn => Course::MayReturn,
                _ => Course::Continues,
            },
            _ => Course::Continues,
        };
        if !matches!(course, Course::Continues) {
            return course;
        }
    }
    Course::Continues
}

fn jumps(statements: &[Statement<'_>]) -> bool {
    let mut found = false;
    walk(statements, &mut |statement| found |= matches!(statement, Statement::Jump(_)));
    found
}

/// Refuses functions that spawn themselves or each other whatever their arguments are.
fn unbounded(facts: &Facts<'_>) -> Result<()> {
    let mut endless = facts.functions.clone();
    loop {
        let names: Vec<&str> = endless.iter().map(|function| function.name).collect();
        endless.retain(|function| matches!(course(&function.body, &names), Course::Spawns(..)));
        if endless.len() == names.len() {
            break;
        }
    }
    let names: Vec<&str> = endless.iter().map(|function| function.name).collect();
    for function in &endless {
        let Course::Spawns(callee, line) = course(&function.body, &names) else { continue };
        let number = facts.functions.iter().position(|other| other.name == callee);
        if number.is_some_and(|number| facts.same_recursion(function.name, number)) {
            let who = if callee == function.name { "itself" } else { &*format!("`{callee}`") };
            let (again, name) =
                (if who == "itself" { "" } else { " and that spawns it again" }, function.name);
            let message =
                format!("`{name}` spawns {who} in any case{again}, so it never ends: return before this");
            return Err(CilkError::new(line, message));
        }
    }
    Ok(())
}
