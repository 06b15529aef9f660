//! Resolves names to indices. This file has module scope: it merges declarations with definitions, then gives variables
//! their initial bytes (`layout.rs`) and functions their bodies (`body.rs`). `scope.rs` has the names that a body sees.
//! Start at [`resolve`].
//!
//! All names of module scope are collected before any is used, so their order does not matter. Variables in `.global`,
//! `.const` or `.shared` that a function declares become variables of the module that only their scope sees.
//!
//! Registers and `.local` variables of module scope belong to a thread. Each kernel gets its own. A device function
//! would share them with its callers, which is not modelled.

mod body;
mod layout;
mod scope;
mod special;

use std::collections::HashMap;

use warploom_isa::{self as isa, FuncId, Source, Span, VarId};

use crate::ast;
use crate::diag::{Diagnostic, MAX_DIAGNOSTICS};
use crate::resolved::{Formal, Function, Module, RegTy};
pub(crate) use layout::FILE_OF_DEFINITION;
use layout::Layout;

/// Resolves every name of a module; `ast` was parsed from `source`'s text.
pub(crate) fn resolve(source: Source, ast: &ast::Module<'_>) -> Result<Module, Vec<Diagnostic>> {
    let mut globals = Globals::new(source.text.len());
    globals.files(ast);
    globals.declare(ast);
    globals.alias(ast);
    globals.initialise();
    globals.bodies();
    if !globals.errors.is_empty() {
        return Err(globals.errors);
    }
    let narrow = !globals.wide_address;
    Ok(Module {
        source: Source { files: globals.file_names, ..source },
        version: ast.version,
        target: ast.target.first().map(|t| t.text.to_string()).unwrap_or_default(),
        // Texts older than the directive have either width. The width of their address registers decides.
        address_bits: ast.address_bits.unwrap_or(if narrow { 32 } else { 64 }),
        functions: globals.functions,
        variables: globals.variables,
    })
}

/// The meaning of a name of module scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Global {
    Variable(VarId),
    Function(FuncId),
}

/// Module scope while it is being resolved.
struct Globals<'t, 'a> {
    names: HashMap<&'t str, Global>,
    variables: Vec<isa::Variable>,
    /// The declaration that each variable's initial value comes from.
    declarations: Vec<&'a ast::Variable<'t>>,
    functions: Vec<Function>,
    /// The definition of each function, or else its first declaration.
    definitions: Vec<&'a ast::Function<'t>>,
    /// Maps `.file` numbers to positions in `file_names`.
    file_numbers: HashMap<u32, u32>,
    file_names: Vec<String>,
    /// Registers and `.local` variables of module scope.
    registers: Vec<(RegTy, &'a [ast::Registers<'t>])>,
    locals: HashMap<&'t str, &'a ast::Variable<'t>>,
    /// Bytes that initial values may still take. Bounded, because a short text can ask for many zeros.
    init_budget: u64,
    /// Some address is in a 64-bit register.
    wide_address: bool,
    errors: Vec<Diagnostic>,
}

impl<'t, 'a> Globals<'t, 'a> {
    fn new(text_bytes: usize) -> Self {
        Globals {
            names: HashMap::new(),
            variables: Vec::new(),
            declarations: Vec::new(),
            functions: Vec::new(),
            definitions: Vec::new(),
            file_numbers: HashMap::new(),
            file_names: Vec::new(),
            registers: Vec::new(),
            locals: HashMap::new(),
            init_budget: (64 << 20) + 8 * text_bytes as u64,
            wide_address: false,
            errors: Vec::new(),
        }
    }

    fn error(&mut self, error: Diagnostic) {
        if self.errors.len() < MAX_DIAGNOSTICS {
            self.errors.push(error);
        }
    }

    fn files(&mut self, ast: &ast::Module<'_>) {
        for &(number, name) in &ast.files {
            self.file_numbers.insert(number, self.file_names.len() as u32);
            self.file_names.push(name.strip_prefix("./").unwrap_or(name).to_string());
        }
    }

    fn declare(&mut self, ast: &'a ast::Module<'t>) {
        for item in &ast.items {
            let result = match item {
                ast::Item::Variable(variable) if variable.space == ast::Space::Local => {
                    match self.locals.insert(variable.name.text, variable) {
                        Some(_) => Err(duplicate(variable.name, "a `.local` variable of this name")),
                        None => Ok(()),
                    }
                }
                ast::Item::Variable(variable) => self.declare_variable(variable),
                ast::Item::Registers(ty, list) => {
                    self.registers.push((reg_ty(*ty), list));
                    Ok(())
                }
                ast::Item::Function(function) => self.declare_function(function),
                ast::Item::Alias(..) => Ok(()),
            };
            if let Err(error) = result {
                self.error(error);
            }
        }
    }

    fn declare_variable(&mut self, new: &'a ast::Variable<'t>) -> Result<(), Diagnostic> {
        let name = new.name;
        match self.names.get(name.text) {
            None => {
                let id = self.add_variable(new)?;
                self.names.insert(name.text, Global::Variable(id));
                Ok(())
            }
            Some(Global::Function(_)) => Err(duplicate(name, "a function of this name")),
            Some(&Global::Variable(id)) => {
                let old = self.declarations[id.index()];
                let layout = module_layout(new)?;
                let sized = |v: &ast::Variable<'_>| !matches!(v.dims.first(), Some(None));
                let variable = &mut self.variables[id.index()];
                let same_size = layout.bytes == variable.bytes || !sized(old) || !sized(new);
                if old.space != new.space || old.ty != new.ty || old.lanes != new.lanes || !same_size {
                    let message = format!("`{}` was declared differently before", name.text);
                    return Err(Diagnostic::new(name.span, message)
                        .help("all declarations of a variable need the same state space, type and size"));
                }
                use ast::Linkage::*;
                match (old.linkage, new.linkage) {
                    (_, Extern) => {}
                    (Extern | Weak | Common, _) => {
                        variable.bytes = layout.bytes;
                        variable.align = variable.align.max(layout.align);
                        variable.span = name.span;
                        self.declarations[id.index()] = new;
                    }
                    (_, Weak | Common) => {}
                    _ => return Err(duplicate(name, "a variable of this name")),
                }
                Ok(())
            }
        }
    }

    /// Adds a variable of module or function scope to the module.
    fn add_variable(&mut self, variable: &'a ast::Variable<'t>) -> Result<VarId, Diagnostic> {
        let layout = module_layout(variable)?;
        let id = VarId(self.variables.len() as u32);
        self.declarations.push(variable);
        self.variables.push(isa::Variable {
            name: variable.name.text.to_string(),
            space: match variable.space {
                ast::Space::Const => isa::Space::Const,
                ast::Space::Shared => isa::Space::Shared,
                _ => isa::Space::Global,
            },
            align: layout.align,
            bytes: layout.bytes,
            init: Vec::new(),
            relocations: Vec::new(),
            opaque: variable.opaque,
            span: variable.name.span,
        });
        Ok(id)
    }

    fn declare_function(&mut self, new: &'a ast::Function<'t>) -> Result<(), Diagnostic> {
        let name = new.name;
        let function = Function {
            name: name.text.to_string(),
            is_kernel: new.is_kernel,
            returns: formals(&new.returns, new.is_kernel)?,
            params: formals(&new.params, new.is_kernel)?,
            bounds: new.bounds.clone(),
            span: name.span,
            body: None,
            refusals: Vec::new(),
        };
        match self.names.get(name.text) {
            None => {
                self.names.insert(name.text, Global::Function(FuncId(self.functions.len() as u32)));
                self.functions.push(function);
                self.definitions.push(new);
                Ok(())
            }
            Some(Global::Variable(_)) => Err(duplicate(name, "a variable of this name")),
            Some(&Global::Function(id)) => {
                let old = &mut self.functions[id.index()];
                if old.is_kernel != new.is_kernel || !same_signature(old, &function) {
                    let message = format!("`{}` was declared with another signature before", name.text);
                    return Err(Diagnostic::new(name.span, message).label("does not match"));
                }
                let defined = self.definitions[id.index()];
                match (&defined.body, &new.body) {
                    (_, None) => {}
                    (Some(_), Some(_)) if new.linkage == ast::Linkage::Weak => {}
                    (Some(_), Some(_)) if defined.linkage != ast::Linkage::Weak => {
                        return Err(duplicate(name, "a body of this function"));
                    }
                    _ => {
                        *old = function;
                        self.definitions[id.index()] = new;
                    }
                }
                Ok(())
            }
        }
    }

    /// `.alias f, g;` makes `f` another name of `g`.
    fn alias(&mut self, ast: &ast::Module<'t>) {
        for item in &ast.items {
            let ast::Item::Alias(name, target) = item else { continue };
            match self.names.get(target.text) {
                Some(&found @ Global::Function(_)) => drop(self.names.insert(name.text, found)),
                _ => self.error(Diagnostic::new(target.span, format!("unknown function `{}`", target.text))),
            }
        }
    }

    fn initialise(&mut self) {
        for index in 0..self.variables.len() {
            self.initialise_variable(VarId(index as u32));
        }
    }

    fn bodies(&mut self) {
        for index in 0..self.functions.len() {
            let definition = self.definitions[index];
            if let Some(statements) = &definition.body {
                self.functions[index].body = Some(body::resolve_body(self, index, statements));
            }
        }
    }

    /// Whether a variable is defined only in another module. Modules are not linked with each other.
    fn is_undefined(&self, id: VarId) -> bool {
        let declaration = self.declarations[id.index()];
        declaration.linkage == ast::Linkage::Extern && declaration.space != ast::Space::Shared
    }
}

/// The layout of a variable with static storage.
fn module_layout(variable: &ast::Variable<'_>) -> Result<Layout, Diagnostic> {
    let span = variable.name.span;
    match variable.space {
        ast::Space::Global | ast::Space::Const | ast::Space::Shared => {}
        _ => return Err(Diagnostic::new(span, "`.param` belongs inside a function")),
    }
    let mut layout = Layout::of(variable)?;
    if let Some(outer) = layout.unsized_by {
        match &variable.init {
            Some(ast::Init { kind: ast::InitKind::List(list), .. }) if !list.is_empty() => {
                layout.bytes = layout::checked_size(outer, list.len() as u64, span)?;
            }
            _ if variable.linkage == ast::Linkage::Extern => {}
            _ => {
                return Err(Diagnostic::new(
                    span,
                    format!("the size of `{}` is not known", variable.name.text),
                )
                .help("only `.extern` arrays and those with an initial value may be `[]`"));
            }
        }
    }
    Ok(layout)
}

/// Formal parameters or results. Their registers and frame variables are added with the body.
fn formals(list: &[ast::Variable<'_>], is_kernel: bool) -> Result<Vec<Formal>, Diagnostic> {
    let limit = if is_kernel { layout::MAX_KERNEL_PARAM_BYTES } else { layout::MAX_FRAME_BYTES };
    let mut total = 0u64;
    let mut formals = Vec::with_capacity(list.len());
    for (at, formal) in list.iter().enumerate() {
        let span = formal.name.span;
        if is_kernel && formal.space == ast::Space::Reg {
            return Err(Diagnostic::new(span, "a kernel's parameters are `.param`, not `.reg`"));
        }
        let elements = elements(formal);
        let mut layout = Layout::of(formal)?;
        if elements > 1 {
            layout.bytes /= elements as u64;
            layout.align = layout.bytes as u32;
        }
        let variadic = layout.unsized_by.is_some();
        if variadic {
            if is_kernel || at + 1 < list.len() {
                let message = "only the last parameter of a function may be an array of unknown size";
                return Err(Diagnostic::new(span, message));
            }
            (layout.bytes, layout.align) = (4, 4);
        }
        total = total.next_multiple_of(layout.align.into()) + layout.bytes * elements as u64;
        if total > limit {
            return Err(Diagnostic::new(span, format!("the parameters take more than {limit} bytes")));
        }
        let name = formal.name.text;
        let names = match elements {
            1 => vec![name.to_string()],
            _ => scope::ELEMENTS[0][..elements].iter().map(|element| format!("{name}.{element}")).collect(),
        };
        formals.extend(names.into_iter().map(|name| Formal {
            name,
            ty: reg_ty(formal.ty),
            bytes: layout.bytes as u32,
            align: layout.align,
            variadic,
            reg: None,
            frame: None,
            pointer: formal.pointer,
            span,
        }));
    }
    Ok(formals)
}

/// How many formal parameters one in the text stands for: each element of a vector register is passed on its own.
fn elements(formal: &ast::Variable<'_>) -> usize {
    if formal.space == ast::Space::Reg { formal.lanes.into() } else { 1 }
}

fn same_signature(a: &Function, b: &Function) -> bool {
    let same = |x: &[Formal], y: &[Formal]| {
        let key = |f: &Formal| (f.bytes, f.variadic, f.ty == RegTy::Pred);
        x.len() == y.len() && x.iter().map(key).eq(y.iter().map(key))
    };
    same(&a.returns, &b.returns) && same(&a.params, &b.params)
}

fn reg_ty(ty: ast::Type) -> RegTy {
    match ty {
        ast::Type::Pred => RegTy::Pred,
        ast::Type::Scalar(ty) => RegTy::Scalar(ty),
        ast::Type::B128 => RegTy::B128,
    }
}

fn duplicate(name: ast::Name<'_>, what: &str) -> Diagnostic {
    Diagnostic::new(name.span, format!("`{}` is declared twice", name.text))
        .label(format!("there is already {what}"))
}

/// A span of one byte, for values that record only their start.
fn at(position: u32) -> Span {
    Span { start: position, end: position.saturating_add(1) }
}
