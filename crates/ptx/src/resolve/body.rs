//! Resolves function bodies: statements in text order, each name looked up from the innermost scope outwards.

use warploom_isa::{Line, LockNote, Span};

use super::layout::{Layout, MAX_FRAME_BYTES, undefined};
use super::scope::{ELEMENTS, Local, Range, Scope, make};
use super::special::{Form, special};
use super::{Global, Globals, duplicate, elements, formals, reg_ty};
use crate::ast::{self, Constant, Name, Statement};
use crate::diag::{Diagnostic, MAX_DIAGNOSTICS};
use crate::resolved::{
    Base, Body, FrameId, FrameKind, FrameVar, Instruction, Label, LabelId, Operand, OperandKind, ProtoId,
    Prototype, RegId, RegTy, TableId, Word,
};

/// Stands for `mov.v2` and `mov.v4`. For all other opcodes only the first word matters here.
const VECTOR_MOVE: &str = "mov.v4";

type Resolve<T> = Result<T, Diagnostic>;

/// The body of function `index`. Errors are added to `globals`.
pub(super) fn resolve_body<'t, 'a>(
    globals: &mut Globals<'t, 'a>,
    index: usize,
    statements: &'a [Statement<'t>],
) -> Body {
    let definition = globals.definitions[index];
    let mut builder = Builder {
        globals,
        body: Body::default(),
        refusals: Vec::new(),
        is_kernel: definition.is_kernel,
        scopes: vec![Scope::default()],
        line: None,
        lock_note: None,
        spin_note: None,
        frame_bytes: 0,
    };
    for (ty, list) in builder.globals.registers.clone() {
        builder.registers(ty, list);
    }
    builder.scopes.push(Scope::default());
    builder.formals(index, definition);
    builder.statements(statements);
    if let Some(span) = builder.spin_note {
        builder.globals.error(Diagnostic::new(span, "no branch follows this"));
    }
    let Builder { body, refusals, .. } = builder;
    globals.functions[index].refusals = refusals;
    body
}

struct Builder<'g, 't, 'a> {
    globals: &'g mut Globals<'t, 'a>,
    body: Body,
    /// What the body uses and the module does not have.
    refusals: Vec<Diagnostic>,
    is_kernel: bool,
    /// Innermost last. The first has the registers and `.local` variables of module scope.
    scopes: Vec<Scope<'t>>,
    line: Option<Line>,
    /// The note on the next memory instruction, and its span.
    lock_note: Option<(LockNote, Span)>,
    /// The span of the note that the next branch is spin-inducing.
    spin_note: Option<Span>,
    frame_bytes: u64,
}

impl<'t, 'a> Builder<'_, 't, 'a> {
    fn formals(&mut self, index: usize, definition: &'a ast::Function<'t>) {
        for is_return in [true, false] {
            let list = if is_return { &definition.returns } else { &definition.params };
            let mut next = 0;
            for formal in list {
                let i = next;
                next += elements(formal);
                let function = &self.globals.functions[index];
                let resolved = if is_return { &function.returns[i] } else { &function.params[i] };
                let (bytes, align, ty, is_kernel) =
                    (resolved.bytes, resolved.align, resolved.ty, function.is_kernel);
                let variadic = resolved.variadic;
                let mut frame = None;
                let first = RegId(self.body.registers.len() as u32);
                let meaning = if formal.space == ast::Space::Reg {
                    make(&mut self.body.registers, formal.name.text, ty, formal.lanes)
                } else if is_kernel {
                    Local::Param(i as u32)
                } else {
                    let i = i as u32;
                    let kind = match is_return {
                        true => FrameKind::Return(i),
                        false if variadic => FrameKind::Variadic(i),
                        false => FrameKind::Param(i),
                    };
                    let id = self.frame(FrameVar { name: formal.name.text.to_string(), bytes, align, kind });
                    frame = Some(id);
                    Local::Frame(id)
                };
                let function = &mut self.globals.functions[index];
                let list = if is_return { &mut function.returns } else { &mut function.params };
                for (resolved, register) in list[i..next].iter_mut().zip(first.0..) {
                    resolved.reg = (formal.space == ast::Space::Reg).then_some(RegId(register));
                    resolved.frame = frame;
                }
                self.declare(formal.name, meaning);
            }
        }
    }

    fn frame(&mut self, variable: FrameVar) -> FrameId {
        self.body.frame.push(variable);
        FrameId(self.body.frame.len() as u32 - 1)
    }

    fn innermost(&mut self) -> &mut Scope<'t> {
        self.scopes.last_mut().expect("a body has a scope")
    }

    fn declare(&mut self, name: Name<'t>, meaning: Local) {
        if name.text.is_empty() {
            return;
        }
        if !self.innermost().declare(name.text, meaning) {
            self.globals.error(duplicate(name, "one in this scope"));
        }
    }

    fn statements(&mut self, statements: &'a [Statement<'t>]) {
        self.declare_labels(statements);
        for statement in statements {
            if let Err(error) = self.statement(statement) {
                if error.not_modelled && self.refusals.len() < MAX_DIAGNOSTICS {
                    self.refusals.push(error);
                    continue;
                }
                self.globals.error(error);
                if self.globals.errors.len() == MAX_DIAGNOSTICS {
                    return;
                }
            }
        }
    }

    /// Declares labels, and the directives that a label names. They are visible in their whole scope.
    fn declare_labels(&mut self, statements: &'a [Statement<'t>]) {
        for statement in statements {
            let (name, meaning) = match statement {
                Statement::Label(name) => {
                    self.body.labels.push(Label { name: name.text.to_string(), target: 0 });
                    (name, Local::Label(LabelId(self.body.labels.len() as u32 - 1)))
                }
                Statement::BranchTargets(name, _) => {
                    self.body.tables.push(Vec::new());
                    (name, Local::Table(TableId(self.body.tables.len() as u32 - 1)))
                }
                Statement::CallTargets(name, _) => (name, self.empty_prototype()),
                Statement::Prototype(prototype) => (&prototype.name, self.empty_prototype()),
                _ => continue,
            };
            self.declare(*name, meaning);
        }
    }

    fn empty_prototype(&mut self) -> Local {
        self.body.prototypes.push(Prototype { returns: Vec::new(), params: Vec::new(), variadic: false });
        Local::Prototype(ProtoId(self.body.prototypes.len() as u32 - 1))
    }

    fn statement(&mut self, statement: &'a Statement<'t>) -> Resolve<()> {
        match statement {
            Statement::Registers(ty, list) => self.registers(reg_ty(*ty), list),
            Statement::Variable(variable) => self.variable(variable)?,
            Statement::Label(name) => {
                // A second label of the same name has been reported already.
                if let Some(Local::Label(id)) = self.innermost().get_named(name.text) {
                    self.body.labels[id.0 as usize].target = self.body.insts.len() as u32;
                }
            }
            Statement::BranchTargets(name, targets) => {
                let mut table = Vec::with_capacity(targets.len());
                for target in targets {
                    match self.local(target.text) {
                        Some(Local::Label(id)) => table.push(id),
                        Some(_) => {
                            return Err(Diagnostic::new(
                                target.span,
                                format!("`{}` is not a label", target.text),
                            ));
                        }
                        None => return Err(self.unknown("label", target.text, target.span)),
                    }
                }
                if let Some(Local::Table(id)) = self.innermost().get_named(name.text) {
                    self.body.tables[id.0 as usize] = table;
                }
            }
            Statement::CallTargets(name, targets) => {
                let mut signature = None;
                for target in targets {
                    let Some(Global::Function(id)) = self.globals.global(target.text) else {
                        return Err(self.unknown("function", target.text, target.span));
                    };
                    let function = &self.globals.functions[id.index()];
                    signature.get_or_insert_with(|| signature_of(&function.returns, &function.params));
                }
                self.set_prototype(*name, signature);
            }
            Statement::Prototype(prototype) => {
                let returns = formals(&prototype.returns, false)?;
                let params = formals(&prototype.params, false)?;
                self.set_prototype(prototype.name, Some(signature_of(&returns, &params)));
            }
            Statement::Loc { file, line } => {
                let file = self.globals.file_numbers.get(file);
                // Line 0 means that the compiler does not know the line.
                self.line = file.filter(|_| *line != 0).map(|&file| Line { file, line: *line });
            }
            Statement::Scope(statements) => {
                self.scopes.push(Scope::default());
                self.statements(statements);
                self.scopes.pop();
            }
            Statement::LockNote(note, span) => self.lock_note = Some((*note, *span)),
            Statement::SpinNote(span) => self.spin_note = Some(*span),
            Statement::Instruction(instruction) => self.instruction(instruction)?,
        }
        Ok(())
    }

    fn set_prototype(&mut self, name: Name<'t>, signature: Option<Prototype>) {
        if let (Some(Local::Prototype(id)), Some(signature)) =
            (self.innermost().get_named(name.text), signature)
        {
            self.body.prototypes[id.0 as usize] = signature;
        }
    }

    fn registers(&mut self, ty: RegTy, list: &[ast::Registers<'t>]) {
        for &ast::Registers { name, count, lanes } in list {
            if let Some(count) = count {
                if !self.innermost().declare_range(name.text, Range { count, ty, lanes }) {
                    self.globals.error(duplicate(name, "a family of registers with this prefix"));
                }
            } else {
                let meaning = make(&mut self.body.registers, name.text, ty, lanes);
                self.declare(name, meaning);
            }
        }
    }

    fn variable(&mut self, variable: &'a ast::Variable<'t>) -> Resolve<()> {
        let kind = match variable.space {
            ast::Space::Local => FrameKind::Local,
            ast::Space::Param => FrameKind::CallParam,
            _ => {
                let id = self.globals.add_variable(variable)?;
                self.globals.initialise_variable(id);
                self.declare(variable.name, Local::Variable(id));
                return Ok(());
            }
        };
        let id = self.frame_variable(variable, kind)?;
        self.declare(variable.name, Local::Frame(id));
        Ok(())
    }

    fn frame_variable(&mut self, variable: &ast::Variable<'t>, kind: FrameKind) -> Resolve<FrameId> {
        let layout = Layout::of(variable)?;
        let span = variable.name.span;
        if let Some(init) = &variable.init {
            return Err(Diagnostic::new(
                super::at(init.at),
                "a variable in the frame cannot have an initial value",
            ));
        }
        if layout.unsized_by.is_some() {
            return Err(Diagnostic::new(span, format!("the size of `{}` is not known", variable.name.text)));
        }
        self.frame_bytes =
            self.frame_bytes.next_multiple_of(layout.align.into()).saturating_add(layout.bytes);
        if self.frame_bytes > MAX_FRAME_BYTES {
            let message = format!("the function's local variables take more than {MAX_FRAME_BYTES} bytes");
            return Err(Diagnostic::new(span, message).label("with this one"));
        }
        let name = variable.name.text.to_string();
        Ok(self.frame(FrameVar { name, bytes: layout.bytes as u32, align: layout.align, kind }))
    }

    fn instruction(&mut self, instruction: &'a ast::Instruction<'t>) -> Resolve<()> {
        let guard = match instruction.guard {
            Some((name, negated)) => Some((self.predicate(name)?, negated)),
            None => None,
        };
        let opcode = match instruction.opcode.as_slice() {
            // The only instruction that reads all components of a special register.
            [mov, vector, ..] if mov.text == "mov" && matches!(vector.text, "v2" | "v4") => VECTOR_MOVE,
            words => words[0].text,
        };
        let mut operands = Vec::with_capacity(instruction.operands.len());
        for operand in &instruction.operands {
            operands.push(self.operand(opcode, operand)?);
        }
        let accesses = matches!(opcode, "ld" | "ldu" | "st" | "atom" | "red" | "wl");
        let word = |w: &Name<'_>| Word { text: w.text.to_string(), span: w.span };
        self.body.insts.push(Instruction {
            guard,
            opcode: instruction.opcode.iter().map(word).collect(),
            operands,
            span: instruction.span,
            line: self.line,
            lock_note: self.lock_note.take_if(|_| accesses).map(|(note, _)| note),
            spin_note: self.spin_note.take_if(|_| opcode == "bra"),
        });
        Ok(())
    }

    fn predicate(&mut self, name: Name<'t>) -> Resolve<RegId> {
        match self.local(name.text) {
            Some(Local::Register(id)) if self.body.registers[id.0 as usize].ty == RegTy::Pred => Ok(id),
            Some(Local::Register(_)) => {
                let error = Diagnostic::new(name.span, format!("`{}` is not a predicate", name.text));
                Err(error.label("declared with another type").help("predicates are declared `.reg .pred`"))
            }
            Some(_) => Err(Diagnostic::new(name.span, format!("`{}` is not a register", name.text))),
            None => Err(self.unknown("register", name.text, name.span)),
        }
    }

    fn operand(&mut self, opcode: &str, operand: &'a ast::Operand<'t>) -> Resolve<Operand> {
        let span = operand.span;
        let kind = match &operand.kind {
            ast::OperandKind::Name(name, offset) => self.name(opcode, name, *offset, span)?,
            ast::OperandKind::Component(name, component) => self.component(opcode, name, component, span)?,
            ast::OperandKind::Not(name) => OperandKind::Not(self.predicate(*name)?),
            ast::OperandKind::Constant(Constant::Int { bits, .. }) => OperandKind::Int(*bits),
            ast::OperandKind::Constant(Constant::F32(bits)) => OperandKind::F32(*bits),
            ast::OperandKind::Constant(Constant::F64(value)) => OperandKind::F64(value.to_bits()),
            ast::OperandKind::Address(None, offset) => OperandKind::Address(Base::Absolute, *offset),
            ast::OperandKind::Address(Some(name), offset) => OperandKind::Address(self.base(*name)?, *offset),
            // Brackets with several parts occur only with textures, surfaces and tensor maps, whose opcodes take lists.
            ast::OperandKind::Bracket(list) | ast::OperandKind::Vector(list) => {
                OperandKind::Vector(self.operands(opcode, list)?)
            }
            ast::OperandKind::List(list) => OperandKind::List(self.operands(opcode, list)?),
            ast::OperandKind::Pair(a, b) => {
                OperandKind::Pair(Box::new(self.operand(opcode, a)?), Box::new(self.operand(opcode, b)?))
            }
            ast::OperandKind::Minus(a) => OperandKind::Minus(Box::new(self.operand(opcode, a)?)),
            ast::OperandKind::Sink => OperandKind::Sink,
        };
        Ok(Operand { kind, span })
    }

    fn operands(&mut self, opcode: &str, list: &'a [ast::Operand<'t>]) -> Resolve<Vec<Operand>> {
        list.iter().map(|operand| self.operand(opcode, operand)).collect()
    }

    fn name(&mut self, opcode: &str, name: &'t str, offset: i64, span: Span) -> Resolve<OperandKind> {
        let kind = match self.local(name) {
            Some(Local::Frame(id)) => return Ok(OperandKind::Frame(id, offset)),
            Some(Local::Param(index)) => return Ok(OperandKind::Param(index, offset)),
            Some(Local::Variable(id)) => return Ok(OperandKind::Var(id, offset)),
            Some(Local::Register(id)) if offset != 0 => return Ok(OperandKind::Sum(id, offset)),
            Some(Local::Register(id)) => OperandKind::Reg(id),
            Some(Local::Vector(first, lanes)) => {
                let element = |i| Operand { kind: OperandKind::Reg(RegId(first.0 + i)), span };
                OperandKind::Vector((0..lanes.into()).map(element).collect())
            }
            Some(Local::Label(id)) => OperandKind::Label(id),
            Some(Local::Table(id)) => OperandKind::Table(id),
            Some(Local::Prototype(id)) => OperandKind::Proto(id),
            None => match self.globals.global(name) {
                Some(Global::Variable(id)) if self.globals.is_undefined(id) => {
                    return Err(undefined(name, span));
                }
                Some(Global::Variable(id)) => return Ok(OperandKind::Var(id, offset)),
                Some(Global::Function(id)) => OperandKind::Func(id),
                None => match special(name) {
                    Some(Form::Plain) => OperandKind::Special(name.to_string()),
                    Some(Form::Vector) if opcode == VECTOR_MOVE => OperandKind::Special(name.to_string()),
                    Some(Form::Vector) => {
                        return Err(Diagnostic::new(span, format!("`{name}` needs a component"))
                            .help(format!("write `{name}.x`, `{name}.y` or `{name}.z`")));
                    }
                    None => return Err(self.unknown(wanted(opcode, name), name, span)),
                },
            },
        };
        if offset != 0 {
            return Err(Diagnostic::new(span, "only an address can have a constant added to it")
                .help("use an `add` instruction, or `[…]` if memory is meant"));
        }
        Ok(kind)
    }

    fn component(
        &mut self,
        opcode: &str,
        name: &'t str,
        component: &str,
        span: Span,
    ) -> Resolve<OperandKind> {
        match self.local(name) {
            // Selectors of video instructions, which lowering checks.
            Some(Local::Register(id)) if opcode.starts_with('v') => {
                Ok(OperandKind::Part(id, component.to_string()))
            }
            Some(Local::Vector(first, lanes)) => {
                let names = ELEMENTS.iter().map(|names| &names[..lanes.into()]);
                match names.flat_map(|names| names.iter().position(|n| *n == component)).next() {
                    Some(at) => Ok(OperandKind::Reg(RegId(first.0 + at as u32))),
                    None => {
                        let message = format!("`{name}` has {lanes} elements and no `.{component}`");
                        Err(Diagnostic::new(span, message))
                    }
                }
            }
            Some(_) => Err(Diagnostic::new(span, format!("`{name}` has no component `.{component}`"))),
            None => match special(name) {
                Some(Form::Vector) if matches!(component, "x" | "y" | "z" | "w") => {
                    Ok(OperandKind::Special(format!("{name}.{component}")))
                }
                Some(_) => Err(Diagnostic::new(span, format!("`{name}` has no component `.{component}`"))),
                None => Err(self.unknown("register", name, span)),
            },
        }
    }

    fn base(&mut self, name: Name<'t>) -> Resolve<Base> {
        let error =
            |what| Err(Diagnostic::new(name.span, format!("`{}` is {what}, not an address", name.text)));
        match self.local(name.text) {
            Some(Local::Register(id)) => match self.body.registers[id.0 as usize].ty {
                RegTy::Scalar(ty) => {
                    self.globals.wide_address |= ty.is_wide();
                    Ok(Base::Reg(id))
                }
                RegTy::Pred => error("a predicate"),
                RegTy::B128 => error("a 128-bit register"),
            },
            Some(Local::Vector(..)) => error("a vector"),
            Some(Local::Frame(id)) => Ok(Base::Frame(id)),
            Some(Local::Param(index)) => Ok(Base::Param(index)),
            Some(Local::Variable(id)) => Ok(Base::Var(id)),
            Some(Local::Label(_)) => error("a label"),
            Some(Local::Table(_)) => error("a list of labels"),
            Some(Local::Prototype(_)) => error("a prototype"),
            None => match self.globals.global(name.text) {
                Some(Global::Variable(id)) if self.globals.is_undefined(id) => {
                    Err(undefined(name.text, name.span))
                }
                Some(Global::Variable(id)) => Ok(Base::Var(id)),
                Some(Global::Function(_)) => error("a function"),
                None if special(name.text).is_some() => error("a special register"),
                None => Err(self.unknown(wanted("", name.text), name.text, name.span)),
            },
        }
    }

    /// The meaning of a name inside this function.
    fn local(&mut self, name: &'t str) -> Option<Local> {
        let registers = &mut self.body.registers;
        let (module, own) = self.scopes.split_first_mut().expect("the first is the module's");
        if let Some(found) = own.iter_mut().rev().find_map(|scope| scope.get(name, registers)) {
            return Some(found);
        }
        if !self.is_kernel {
            return None;
        }
        if let Some(found) = module.get(name, registers) {
            return Some(found);
        }
        let variable = *self.globals.locals.get(name)?;
        match self.frame_variable(variable, FrameKind::Local) {
            Ok(id) => {
                self.scopes[0].declare(name, Local::Frame(id));
                Some(Local::Frame(id))
            }
            Err(error) => {
                self.globals.error(error);
                None
            }
        }
    }

    fn unknown(&self, what: &str, name: &str, span: Span) -> Diagnostic {
        if !self.is_kernel && (self.scopes[0].has(name) || self.globals.locals.contains_key(name)) {
            let message = format!("`{name}` is declared outside functions, which would share it");
            return Diagnostic::not_modelled(span, message).help("declare it in each function that uses it");
        }
        let error = Diagnostic::new(span, format!("unknown {what} `{name}`")).label("not declared");
        if let Some((prefix, range)) = self.scopes.iter().rev().find_map(|s| s.overrun(name)) {
            let last = range.count.saturating_sub(1);
            return error.help(match range.count {
                0 => format!("`{prefix}<0>` declares no register"),
                _ => format!("`{prefix}<{}>` declares `{prefix}0` to `{prefix}{last}`", range.count),
            });
        }
        match self.globals.hint(name, self.scopes.iter().rev()) {
            Some(hint) => error.help(hint),
            None => error,
        }
    }
}

/// What an unknown name was probably meant to be.
fn wanted(opcode: &str, name: &str) -> &'static str {
    match opcode {
        "bra" => "label",
        "brx" if !name.starts_with('%') => "list of labels",
        "call" if !name.starts_with('%') => "function",
        _ if name.starts_with('%') => "register",
        _ => "name",
    }
}

fn signature_of(returns: &[crate::resolved::Formal], params: &[crate::resolved::Formal]) -> Prototype {
    let sizes = |list: &[crate::resolved::Formal]| list.iter().map(|f| (f.bytes, f.align)).collect();
    let variadic = params.last().is_some_and(|f| f.variadic);
    Prototype { returns: sizes(returns), params: sizes(params), variadic }
}
