//! Reads directives: kernels, functions, parameters, variables. [`crate::body`] assembles the code between them. Start
//! at [`assemble`].

use std::collections::{BTreeMap, BTreeSet};

use warploom_isa::diag::{Diagnostic, MAX_DIAGNOSTICS};
use warploom_isa::print::{FERMI_PREDICATES, FERMI_REGISTERS};
use warploom_isa::{
    FuncId, Function, LaunchBounds, Line, LockNote, Module, Param, Relocation, Source, Space, Span, Symbol,
    SymbolUse, Ty, VarId, Variable, layout_params,
};

use crate::ast::{Inst, Item, Spanned};
use crate::body;
use crate::lex::{Kind, Token, int};
use crate::nearest;

type Result<T = ()> = std::result::Result<T, Diagnostic>;

/// Larger than any device memory.
const MAX_VARIABLE_BYTES: u64 = 1 << 40;
/// The hardware's limit per thread.
const MAX_FRAME_BYTES: u64 = 512 << 10;
/// The most that a launch can pass.
const MAX_PARAM_BYTES: u32 = 32764;
/// More than any chip has.
const MAX_REGISTERS: u64 = 1 << 14;
const MAX_PREDICATES: u64 = 1 << 12;
const MAX_ALIGN: u64 = 1 << 12;

const DIRECTIVES: &[&str] = &[
    ".address",
    ".bytes",
    ".blocksareclusters",
    ".const",
    ".explicitcluster",
    ".extern",
    ".file",
    ".frame",
    ".function",
    ".global",
    ".kernel",
    ".let",
    ".loc",
    ".local",
    ".lock",
    ".sib",
    ".maxclusterrank",
    ".maxnreg",
    ".maxntid",
    ".minnctapersm",
    ".param",
    ".pointer",
    ".predicates",
    ".registers",
    ".reqnctapercluster",
    ".reqntid",
    ".result",
    ".shared",
];

/// A function whose code is not assembled yet.
pub(crate) struct Draft<'i, 't> {
    /// Complete but for its body.
    pub function: Function,
    /// Declared only (`.extern`).
    pub external: bool,
    /// Number of registers that the code may use.
    pub register_limit: u32,
    /// Number of predicates that the code may use.
    pub predicate_limit: u32,
    /// Bytes and alignment of the frame.
    pub frame: (u32, u32),
    /// Named parts of the frame: (name, offset, bytes).
    pub frame_vars: Vec<(String, u32, u32)>,
    /// Shared variables declared in the function.
    pub shared: Vec<VarId>,
    /// In the order of the text.
    pub code: Vec<Code<'i, 't>>,
}

/// One statement of a function's code.
pub(crate) enum Code<'i, 't> {
    Label(&'i Spanned<&'t str>),
    /// An instruction and the source line in force (`.loc`).
    Inst(&'i Inst<'t>, Option<Line>),
    /// What the next instruction does to a lock.
    Lock(LockNote),
    /// The next instruction is a spin-inducing branch.
    Sib,
}

pub(crate) struct Names<'m> {
    pub functions: BTreeMap<&'m str, FuncId>,
    /// The functions that are kernels.
    pub kernels: BTreeSet<FuncId>,
    pub variables: BTreeMap<&'m str, VarId>,
}

impl Names<'_> {
    /// The variable or function with this name.
    pub(crate) fn symbol(&self, name: &str) -> Option<Symbol> {
        let variable = self.variables.get(name).map(|&v| Symbol::Variable(v));
        variable.or_else(|| self.functions.get(name).map(|&f| Symbol::Function(f)))
    }

    /// The error for an unknown name.
    pub(crate) fn unknown(&self, span: Span, name: &str) -> Diagnostic {
        let error = Diagnostic::new(span, format!("nothing is named `{name}`"));
        let known = self.variables.keys().chain(self.functions.keys()).copied();
        match nearest(name, known) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("declare a variable, such as `.shared {name} 0x400`")),
        }
    }
}

pub(crate) fn assemble(source: Source, items: &[Item<'_>]) -> std::result::Result<Module, Vec<Diagnostic>> {
    let text = source.text.clone();
    let mut reader = Reader::new(&text);
    let mut errors = Vec::new();
    for item in items {
        if let Err(error) = reader.item(item) {
            errors.push(error);
        }
    }
    if errors.is_empty()
        && let Err(error) = reader.finish()
    {
        errors.push(error);
    }
    let mut module = Module {
        source: Source { files: reader.files.clone(), ..source },
        dialect: "SASS listing".to_string(),
        address_bits: reader.address_bits,
        functions: Vec::new(),
        variables: reader.variables.clone(),
    };
    let functions = || (0..).map(FuncId).zip(&reader.drafts);
    let names = Names {
        functions: functions().map(|(id, d)| (d.function.name.as_str(), id)).collect(),
        kernels: functions().filter(|(_, d)| d.function.is_kernel).map(|(id, _)| id).collect(),
        variables: (0..).map(VarId).zip(&reader.variables).map(|(id, v)| (v.name.as_str(), id)).collect(),
    };
    for &(variable, offset, bytes, shift, ref target, addend, generic) in &reader.pointers {
        match names.symbol(target.node) {
            Some(symbol) => {
                let target = SymbolUse { symbol, offset: addend, generic };
                module.variables[variable].relocations.push(Relocation { offset, bytes, shift, target });
            }
            None => errors.push(names.unknown(target.span, target.node)),
        }
    }
    for draft in &reader.drafts {
        let mut function = draft.function.clone();
        if !draft.external {
            let body = body::assemble(draft, &names, module.address_bits, &mut errors);
            function.body = Some(body);
        }
        module.functions.push(function);
        if errors.len() >= MAX_DIAGNOSTICS {
            break;
        }
    }
    if errors.is_empty() { Ok(module) } else { Err(errors) }
}

/// An address in a variable's initial value: (variable, offset, bytes, shift, target, addend, generic).
type Pointer<'t> = (usize, u64, u8, u8, Spanned<&'t str>, i64, bool);

struct Reader<'i, 't> {
    text: &'t str,
    address_bits: u8,
    files: Vec<String>,
    variables: Vec<Variable>,
    pointers: Vec<Pointer<'t>>,
    drafts: Vec<Draft<'i, 't>>,
    line: Option<Line>,
}

impl<'i, 't> Reader<'i, 't> {
    fn new(text: &'t str) -> Self {
        Reader {
            text,
            address_bits: 64,
            files: Vec::new(),
            variables: Vec::new(),
            pointers: Vec::new(),
            drafts: Vec::new(),
            line: None,
        }
    }

    fn item(&mut self, item: &'i Item<'t>) -> Result {
        let (span, code) = match item {
            Item::Directive { name, args } => return self.directive(name, args),
            Item::Label(label) => (label.span, Code::Label(label)),
            Item::Inst(inst) => (inst.span, Code::Inst(inst, self.line)),
        };
        match self.drafts.last_mut() {
            Some(draft) if !draft.external => draft.code.push(code),
            _ => {
                return Err(Diagnostic::new(span, "code outside of a kernel")
                    .help("begin with `.kernel NAME`, and `.param NAME TYPE` for each parameter"));
            }
        }
        Ok(())
    }

    fn directive(&mut self, name: &Spanned<&'t str>, args: &[Token]) -> Result {
        let mut args = Args { text: self.text, args, at: 0, end: name.span };
        match name.node {
            ".kernel" => self.begin(name, &mut args, true, false)?,
            ".function" => self.begin(name, &mut args, false, false)?,
            ".extern" => self.begin(name, &mut args, false, true)?,
            ".param" => {
                let param = param(&mut args)?;
                let draft = self.draft(name)?;
                if draft.function.params.iter().any(|p| p.name == param.name) {
                    return Err(Diagnostic::new(
                        name.span,
                        format!("there are two parameters `{}`", param.name),
                    ));
                }
                draft.function.params.push(param);
            }
            ".result" => {
                let param = param(&mut args)?;
                let draft = self.draft(name)?;
                if draft.function.is_kernel {
                    return Err(Diagnostic::new(name.span, "a kernel has no results"));
                }
                draft.function.returns.push(param);
            }
            ".shared" => self.variable(Space::Shared, &mut args)?,
            ".global" => self.variable(Space::Global, &mut args)?,
            ".const" => self.variable(Space::Const, &mut args)?,
            ".bytes" => self.bytes(name, &mut args)?,
            ".pointer" => self.pointer(name, &mut args)?,
            ".address" => self.address_bits = if args.one_of(&[32, 64])? == 32 { 32 } else { 64 },
            ".registers" => {
                let limit = args.int(1, MAX_REGISTERS)? as u32;
                self.draft(name)?.register_limit = limit.max(FERMI_REGISTERS);
            }
            ".predicates" => {
                let limit = args.int(1, MAX_PREDICATES)? as u32;
                self.draft(name)?.predicate_limit = limit.max(FERMI_PREDICATES);
            }
            ".frame" => {
                let bytes = args.int(0, MAX_FRAME_BYTES)? as u32;
                let align = args.align()?.unwrap_or(8);
                self.draft(name)?.frame = (bytes, align);
            }
            ".local" => {
                let variable = args.name("a name")?.node.to_string();
                let (offset, bytes) = (args.int(0, MAX_FRAME_BYTES)?, args.int(0, MAX_FRAME_BYTES)?);
                self.draft(name)?.frame_vars.push((variable, offset as u32, bytes as u32));
            }
            ".lock" => {
                let word = args.name("acquire, release or wait")?;
                let Some(note) = LockNote::ALL.into_iter().find(|n| n.name() == word.node) else {
                    return Err(Diagnostic::new(
                        word.span,
                        format!("`{}` is nothing that is done to locks", word.node),
                    )
                    .help("acquire, release or wait"));
                };
                self.draft(name)?.code.push(Code::Lock(note));
            }
            ".sib" => self.draft(name)?.code.push(Code::Sib),
            ".maxntid" => self.bounds(name)?.max_threads = Some(args.int(1, u64::from(u32::MAX))? as u32),
            ".minnctapersm" => {
                self.bounds(name)?.min_ctas_per_sm = Some(args.int(1, u64::from(u32::MAX))? as u32)
            }
            ".maxnreg" => self.bounds(name)?.max_registers = Some(args.int(1, u64::from(u32::MAX))? as u32),
            ".reqntid" | ".reqnctapercluster" => {
                let mut shape = [1; 3];
                for side in &mut shape {
                    if !args.is_empty() {
                        *side = args.int(1, 1 << 16)? as u32;
                    }
                }
                let of_clusters = name.node == ".reqnctapercluster";
                let bounds = self.bounds(name)?;
                *(if of_clusters { &mut bounds.required_cluster } else { &mut bounds.required_block }) =
                    Some(shape);
            }
            ".explicitcluster" => self.bounds(name)?.explicit_cluster = true,
            ".blocksareclusters" => self.bounds(name)?.blocks_are_clusters = true,
            ".maxclusterrank" => {
                self.bounds(name)?.max_cluster_ctas = Some(args.int(1, u64::from(u32::MAX))? as u32)
            }
            ".file" => {
                let at = args.int(0, 1 << 16)? as usize;
                let file = args.string()?;
                if self.files.len() <= at {
                    self.files.resize(at + 1, String::new());
                }
                self.files[at] = file.node.to_string();
            }
            ".loc" if args.is_empty() => self.line = None,
            ".loc" => {
                let (file, line) = (args.int(0, 1 << 16)? as u32, args.int(0, u64::from(u32::MAX))? as u32);
                if file as usize >= self.files.len() {
                    return Err(Diagnostic::new(name.span, format!("there is no `.file {file}`")));
                }
                self.line = Some(Line { file, line });
            }
            other => {
                let error = Diagnostic::new(name.span, format!("there is no directive `{other}`"));
                return Err(match nearest(other, DIRECTIVES.iter().copied()) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help(format!("there are {}", DIRECTIVES.join(", "))),
                });
            }
        }
        args.end()
    }

    fn begin(
        &mut self,
        name: &Spanned<&'t str>,
        args: &mut Args<'_, 't>,
        is_kernel: bool,
        external: bool,
    ) -> Result {
        let title = args.name("the function's name")?;
        if self.drafts.iter().any(|d| d.function.name == title.node) {
            return Err(Diagnostic::new(title.span, format!("there are two functions `{}`", title.node)));
        }
        self.line = None;
        self.drafts.push(Draft {
            function: Function {
                name: title.node.to_string(),
                is_kernel,
                returns: Vec::new(),
                params: Vec::new(),
                param_bytes: 0,
                bounds: LaunchBounds::default(),
                body: None,
                refusals: Vec::new(),
                span: Span { start: name.span.start, end: title.span.end },
            },
            external,
            register_limit: FERMI_REGISTERS,
            predicate_limit: FERMI_PREDICATES,
            frame: (0, 1),
            frame_vars: Vec::new(),
            shared: Vec::new(),
            code: Vec::new(),
        });
        Ok(())
    }

    fn draft(&mut self, name: &Spanned<&str>) -> Result<&mut Draft<'i, 't>> {
        let missing =
            || Diagnostic::new(name.span, format!("`{}` belongs into a kernel or function", name.node));
        self.drafts.last_mut().ok_or_else(missing)
    }

    fn bounds(&mut self, name: &Spanned<&str>) -> Result<&mut LaunchBounds> {
        Ok(&mut self.draft(name)?.function.bounds)
    }

    /// `.shared NAME BYTES [align A]`
    fn variable(&mut self, space: Space, args: &mut Args<'_, 't>) -> Result {
        let name = args.name("the variable's name")?;
        if self.variables.iter().any(|v| v.name == name.node) {
            return Err(Diagnostic::new(name.span, format!("there are two variables `{}`", name.node)));
        }
        let bytes = args.int(0, MAX_VARIABLE_BYTES)?;
        if bytes == 0 && space != Space::Shared {
            return Err(Diagnostic::new(name.span, "only shared memory gets its size at the launch"));
        }
        let align = args.align()?.unwrap_or(4);
        if let (Space::Shared, Some(draft)) = (space, self.drafts.last_mut()) {
            draft.shared.push(VarId(self.variables.len() as u32));
        }
        self.variables.push(Variable {
            name: name.node.to_string(),
            space,
            align,
            bytes,
            init: Vec::new(),
            relocations: Vec::new(),
            opaque: None,
            span: name.span,
        });
        Ok(())
    }

    /// `.bytes "0123ab"`: the next bytes of the variable above.
    fn bytes(&mut self, name: &Spanned<&str>, args: &mut Args<'_, 't>) -> Result {
        let digits = args.string()?;
        let variable = initialised(&mut self.variables, name)?;
        let bad = || {
            Diagnostic::new(digits.span, "these are not pairs of hexadecimal digits")
                .help("such as \"00ff10\"")
        };
        if digits.node.len() % 2 != 0 || !digits.node.is_ascii() {
            return Err(bad());
        }
        for at in (0..digits.node.len()).step_by(2) {
            let byte = u8::from_str_radix(&digits.node[at..at + 2], 16).map_err(|_| bad())?;
            variable.init.push(byte);
        }
        if variable.init.len() as u64 > variable.bytes {
            let message = format!("`{}` has only {} bytes", variable.name, variable.bytes);
            return Err(Diagnostic::new(digits.span, message));
        }
        Ok(())
    }

    /// `.pointer OFFSET BYTES SHIFT &name ADDEND [generic]`: an address inside the variable above.
    fn pointer(&mut self, name: &Spanned<&str>, args: &mut Args<'_, 't>) -> Result {
        let (offset, bytes, shift) = (args.int(0, MAX_VARIABLE_BYTES)?, args.int(1, 8)?, args.int(0, 63)?);
        args.sign(b'&')?;
        let target = args.name("a name")?;
        let addend = args.int(0, u64::MAX)? as i64;
        let generic = args.word("generic");
        let variable = initialised(&mut self.variables, name)?;
        if offset + bytes > variable.bytes {
            return Err(Diagnostic::new(
                name.span,
                format!("`{}` has only {} bytes", variable.name, variable.bytes),
            ));
        }
        let at = self.variables.len() - 1;
        self.pointers.push((at, offset, bytes as u8, shift as u8, target, addend, generic));
        Ok(())
    }

    /// Lays out the parameters of every function, once all are known.
    fn finish(&mut self) -> Result {
        for draft in &mut self.drafts {
            let function = &mut draft.function;
            let sizes = function.returns.iter().chain(&function.params).map(|p| (p.bytes, p.align));
            let total: u64 = sizes.clone().map(|(bytes, align)| u64::from(bytes) + u64::from(align)).sum();
            if total > u64::from(MAX_PARAM_BYTES) {
                let message =
                    format!("the parameters of `{}` take more than {MAX_PARAM_BYTES} bytes", function.name);
                return Err(Diagnostic::new(function.span, message));
            }
            let (offsets, bytes) = layout_params(sizes);
            let all = function.returns.iter_mut().chain(&mut function.params);
            all.zip(offsets).for_each(|(param, offset)| param.offset = offset);
            function.param_bytes = bytes;
            if !function.is_kernel && draft.frame.0 < bytes {
                draft.frame = (bytes, draft.frame.1.max(16));
            }
        }
        Ok(())
    }
}

/// The variable that an initial value belongs to.
fn initialised<'v>(variables: &'v mut [Variable], name: &Spanned<&str>) -> Result<&'v mut Variable> {
    match variables.last_mut() {
        Some(v) if v.space != Space::Shared => Ok(v),
        Some(_) => Err(Diagnostic::new(name.span, "shared memory has no initial value")),
        None => Err(Diagnostic::new(name.span, format!("`{}` follows a variable", name.node))),
    }
}

/// `NAME TYPE [xN] [align A] [ptr SPACE]`
fn param(args: &mut Args<'_, '_>) -> Result<Param> {
    let name = args.name("the parameter's name")?;
    let ty = args.name("its type")?;
    let Some(known) = Ty::named(&ty.node.to_ascii_lowercase()) else {
        return Err(Diagnostic::new(ty.span, format!("`{}` is no type", ty.node))
            .help("such as u32, s32, f32, u64 (a pointer); with x4, four of them"));
    };
    let mut count = 1;
    if let Some(word) = args.peek_word()
        && let Some(number) = word.node.strip_prefix('x')
    {
        count =
            number.parse::<u32>().ok().filter(|n| (1..=32768).contains(n)).ok_or_else(|| {
                Diagnostic::new(word.span, format!("`{}` is no number of elements", word.node))
            })?;
        args.at += 1;
    }
    let align = args.align()?.unwrap_or(known.bytes());
    let mut pointer = None;
    if args.word("ptr") {
        let space = args.name("a space")?;
        let spaces = [Space::Generic, Space::Global, Space::Shared, Space::Local, Space::Const, Space::Param];
        pointer = spaces.into_iter().find(|s| s.name() == space.node);
        if pointer.is_none() {
            return Err(Diagnostic::new(space.span, format!("`{}` is no space", space.node))
                .help("one of generic, global, shared, local, const"));
        }
    }
    let bytes = known.bytes() * count;
    Ok(Param { name: name.node.to_string(), ty: known, bytes, align, offset: 0, pointer })
}

/// The arguments of a directive.
struct Args<'k, 't> {
    text: &'t str,
    args: &'k [Token],
    at: usize,
    /// Where to point when an argument is missing.
    end: Span,
}

impl<'t> Args<'_, 't> {
    fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    fn is_empty(&self) -> bool {
        self.at >= self.args.len()
    }

    fn take(&mut self, wanted: &str, fits: impl Fn(Kind) -> bool) -> Result<Token> {
        match self.args.get(self.at) {
            Some(&token) if fits(token.kind) => {
                self.at += 1;
                Ok(token)
            }
            Some(&token) => Err(Diagnostic::new(
                token.span,
                format!("expected {wanted}, found `{}`", self.text_of(token)),
            )),
            None => {
                Err(Diagnostic::new(self.end, format!("`{}` needs {wanted}", self.text_of_span(self.end))))
            }
        }
    }

    fn text_of_span(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn name(&mut self, wanted: &str) -> Result<Spanned<&'t str>> {
        let token = self.take(wanted, |k| k == Kind::Word)?;
        Ok(Spanned { node: self.text_of(token), span: token.span })
    }

    fn peek_word(&self) -> Option<Spanned<&'t str>> {
        let token = *self.args.get(self.at)?;
        (token.kind == Kind::Word).then(|| Spanned { node: self.text_of(token), span: token.span })
    }

    fn word(&mut self, word: &str) -> bool {
        let here = self.peek_word().is_some_and(|w| w.node == word);
        self.at += usize::from(here);
        here
    }

    fn sign(&mut self, sign: u8) -> Result {
        self.take(&format!("`{}`", char::from(sign)), |k| k == Kind::Sign(sign)).map(|_| ())
    }

    fn string(&mut self) -> Result<Spanned<&'t str>> {
        let token = self.take("a string", |k| k == Kind::Str)?;
        Ok(Spanned { node: self.text_of(token).trim_matches('"'), span: token.span })
    }

    fn int(&mut self, least: u64, most: u64) -> Result<u64> {
        let token = self.take("a number", |k| k == Kind::Int)?;
        let value = int(self.text_of(token)).unwrap_or_default();
        if !(least..=most).contains(&value) {
            return Err(Diagnostic::new(token.span, format!("{value} is not between {least} and {most}")));
        }
        Ok(value)
    }

    fn one_of(&mut self, values: &[u64]) -> Result<u64> {
        let span = self.args.get(self.at).map_or(self.end, |t| t.span);
        let value = self.int(0, u64::MAX)?;
        if values.contains(&value) {
            return Ok(value);
        }
        let list: Vec<String> = values.iter().map(u64::to_string).collect();
        Err(Diagnostic::new(span, format!("{value} is not {}", list.join(" or "))))
    }

    fn align(&mut self) -> Result<Option<u32>> {
        if !self.word("align") {
            return Ok(None);
        }
        let span = self.args.get(self.at).map_or(self.end, |t| t.span);
        let align = self.int(1, MAX_ALIGN)?;
        if !align.is_power_of_two() {
            return Err(Diagnostic::new(span, format!("an alignment is a power of two, not {align}")));
        }
        Ok(Some(align as u32))
    }

    fn end(&self) -> Result {
        match self.args.get(self.at) {
            None => Ok(()),
            Some(&token) => {
                let message = format!("`{}` is one argument too many", self.text_of(token));
                Err(Diagnostic::new(token.span, message))
            }
        }
    }
}
