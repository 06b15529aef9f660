//! Module scope: directives, functions, launch bounds, debug information.

use warploom_isa::{LaunchBounds, LockNote, Span};

use super::{Parse, Parser, Unwind, shorten};
use crate::ast::{Function, Item, Linkage, Module, Name, Space, Statement, Variable};
use crate::diag::Diagnostic;
use crate::lex::Kind;
use crate::target;

impl<'t> Parser<'t> {
    /// Parses the whole text. Errors are in `errors` afterwards.
    pub(super) fn module(&mut self) -> Module<'t> {
        let mut module = Module::default();
        if let Err(error) = self.header(&mut module) {
            self.errors.push(error);
            return module;
        }
        while !self.at(Kind::Eof) {
            let before = self.span().start;
            if let Err(error) = self.item(&mut module) {
                let unwound = std::mem::replace(&mut self.unwind, Unwind::No);
                if !self.report(error) || unwound == Unwind::ToText {
                    break;
                }
                if unwound == Unwind::No {
                    self.skip_item();
                }
                if self.span().start == before {
                    self.bump();
                }
            }
        }
        if module.target.is_empty() && self.errors.is_empty() {
            let error =
                Diagnostic::new(Span::default(), "no .target directive").help("add a line `.target sm_70`");
            self.errors.push(error);
        }
        module.files = std::mem::take(&mut self.files);
        module
    }

    fn header(&mut self, module: &mut Module<'t>) -> Parse<()> {
        if !self.at_word(".version") {
            if matches!(self.kind(), Kind::Preprocessor | Kind::OpenComment) {
                return Err(self.unexpected("`.version`"));
            }
            let mut error = Diagnostic::new(self.span(), "no .version directive: not a PTX module");
            if !self.at(Kind::Eof) {
                error = error.label("a PTX module begins with `.version`");
            }
            return Err(error);
        }
        self.bump();
        module.version = self.version()?;
        Ok(())
    }

    fn version(&mut self) -> Parse<(u32, u32)> {
        let bad = self.unexpected("a version such as `7.8`");
        if !self.at(Kind::Decimal) {
            return Err(bad);
        }
        let token = self.bump();
        let (major, minor) = self.text_of(token).split_once('.').unwrap_or_default();
        match (major.parse(), minor.parse()) {
            (Ok(major @ 1..), Ok(minor)) if target::is_version((major, minor)) => Ok((major, minor)),
            (Ok(1..), Ok(_)) => {
                let message = format!("there is no PTX {}", self.text_of(token));
                Err(Diagnostic::new(token.span, message).help("versions are 1.0 to 9.x"))
            }
            _ => Err(bad),
        }
    }

    fn item(&mut self, module: &mut Module<'t>) -> Parse<()> {
        if self.eat(Kind::Semicolon) {
            return Ok(());
        }
        if !self.at(Kind::DotWord) {
            return Err(self.unexpected("a directive"));
        }
        let linkage = self.linkage();
        match self.word() {
            ".version" => {
                self.bump();
                self.version()?;
            }
            ".target" => {
                self.bump();
                let words = self.names("a target such as `sm_70`")?;
                check_target(&words)?;
                if module.target.is_empty() {
                    module.target = words;
                }
            }
            ".address_size" => {
                self.bump();
                let start = self.span().start;
                match self.int()? {
                    32 => module.address_bits = Some(32),
                    64 => module.address_bits = Some(64),
                    _ => return Err(Diagnostic::new(self.since(start), "the address size must be 32 or 64")),
                }
            }
            ".file" => self.file()?,
            ".loc" => drop(self.loc()?),
            ".pragma" => self.pragma(|_| {})?,
            ".section" => {
                self.bump();
                while !self.at(Kind::BraceOpen) && !self.at(Kind::Eof) && !self.at(Kind::Semicolon) {
                    self.bump();
                }
                self.skip_pair(Kind::BraceOpen, Kind::BraceClose)?;
            }
            ".reg" => {
                let (ty, list) = self.registers()?;
                module.items.push(Item::Registers(ty, list));
            }
            ".alias" => {
                self.bump();
                let name = self.name("a function's name")?;
                self.expect(Kind::Comma)?;
                let target = self.name("a function's name")?;
                self.expect(Kind::Semicolon)?;
                module.items.push(Item::Alias(name, target));
            }
            ".entry" | ".func" => {
                let function = self.function(linkage)?;
                module.items.push(Item::Function(function));
            }
            _ => self.variables(linkage, &mut |v| module.items.push(Item::Variable(v)))?,
        }
        Ok(())
    }

    /// Any number of `.extern`, `.visible`, …; the last one counts.
    pub(super) fn linkage(&mut self) -> Linkage {
        let mut linkage = Linkage::Internal;
        loop {
            linkage = match self.word() {
                ".extern" => Linkage::Extern,
                ".visible" => Linkage::Visible,
                ".weak" => Linkage::Weak,
                ".common" => Linkage::Common,
                _ => return linkage,
            };
            self.bump();
        }
    }

    /// `.file 1 "name.cu", timestamp, size`
    pub(super) fn file(&mut self) -> Parse<()> {
        self.bump();
        let number = self.int_u32("the file number")?;
        let name = self.expect(Kind::Str)?;
        while self.eat(Kind::Comma) {
            self.int()?;
        }
        let name = self.text_of(name);
        self.files.push((number, &name[1..name.len() - 1]));
        Ok(())
    }

    /// `.loc 1 20 3, function_name $L+4, inlined_at 1 12 7`; returns file and line.
    pub(super) fn loc(&mut self) -> Parse<(u32, u32)> {
        self.bump();
        let place = self.place()?;
        while self.eat(Kind::Comma) {
            if self.eat_word("function_name") {
                self.name("a label")?;
                self.offset()?;
            } else if self.eat_word("inlined_at") {
                self.place()?;
            } else {
                return Err(self.unexpected("`function_name` or `inlined_at`"));
            }
        }
        Ok(place)
    }

    /// File, line and column: three plain numbers, not expressions. Returns file and line.
    fn place(&mut self) -> Parse<(u32, u32)> {
        let mut numbers = [0u32; 3];
        for number in &mut numbers {
            let token = self.expect(Kind::Int)?;
            *number = self
                .text_of(token)
                .parse()
                .map_err(|_| Diagnostic::new(token.span, "this number is out of range"))?;
        }
        Ok((numbers[0], numbers[1]))
    }

    /// `.pragma "nounroll";`: hints, none of which changes the meaning of a program. Warploom's annotations of locks
    /// and spin loops are passed to `note`.
    pub(super) fn pragma(&mut self, mut note: impl FnMut(Statement<'t>)) -> Parse<()> {
        self.bump();
        loop {
            let text = self.expect(Kind::Str)?;
            let words = self.text_of(text).trim_matches('"').strip_prefix("warploom.");
            match words.map(|words| words.split_once(' ').map_or((words, ""), |(a, b)| (a, b.trim()))) {
                None => {}
                Some(("lock", does)) => {
                    let known = LockNote::ALL.into_iter().find(|note| note.name() == does);
                    let known = known.ok_or_else(|| {
                        Diagnostic::new(text.span, "this says nothing about a lock")
                            .help("write \"warploom.lock acquire\", \"… release\" or \"… wait\"")
                    })?;
                    note(Statement::LockNote(known, text.span));
                }
                Some(("sib", "")) => note(Statement::SpinNote(text.span)),
                Some(_) => {
                    return Err(Diagnostic::new(text.span, "there is no such annotation")
                        .help("there are \"warploom.lock …\" and \"warploom.sib\""));
                }
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Semicolon)?;
        Ok(())
    }

    fn function(&mut self, linkage: Linkage) -> Parse<Function<'t>> {
        let is_kernel = self.word() == ".entry";
        self.bump();
        let mut bounds = LaunchBounds::default();
        self.bounds(&mut bounds)?;
        let returns = if !is_kernel && self.at(Kind::ParenOpen) { self.formals()? } else { Vec::new() };
        let name = self.name("a function's name")?;
        let params = if self.at(Kind::ParenOpen) { self.formals()? } else { Vec::new() };
        self.bounds(&mut bounds)?;
        let body = if self.at(Kind::BraceOpen) {
            Some(self.scope()?)
        } else if self.eat(Kind::Semicolon) || !is_kernel && self.at_item() {
            // Up to CUDA 3, prototypes have no semicolon.
            None
        } else {
            return Err(self.unexpected("`{`, `;` or a directive such as `.maxntid`"));
        };
        Ok(Function { linkage, is_kernel, name, returns, params, bounds, body })
    }

    /// Whether a directive of module scope begins here, or the text ends.
    fn at_item(&self) -> bool {
        const ITEMS: [&str; 15] = [
            ".common", ".const", ".entry", ".extern", ".file", ".func", ".global", ".loc", ".local", ".reg",
            ".section", ".shared", ".tex", ".visible", ".weak",
        ];
        self.at(Kind::Eof) || self.at(Kind::DotWord) && ITEMS.contains(&self.word())
    }

    /// `(.param .u32 a, .reg .f32 b)`
    pub(super) fn formals(&mut self) -> Parse<Vec<Variable<'t>>> {
        self.expect(Kind::ParenOpen)?;
        let mut formals = Vec::new();
        if self.eat(Kind::ParenClose) {
            return Ok(formals);
        }
        loop {
            let space = match self.word() {
                ".param" => Space::Param,
                ".reg" => Space::Reg,
                _ => return Err(self.unexpected("`.param` or `.reg`")),
            };
            self.bump();
            let mut formal = self.declaration(Linkage::Internal, space)?;
            if self.at(Kind::Ident) {
                self.declarator(&mut formal)?;
            } else {
                // A declaration may omit the name.
                let at = self.span().start;
                let unnamed = self.eat(Kind::Underscore);
                formal.name.span = Span { start: at, end: at + u32::from(unnamed) };
                formal.dims = self.dims()?;
            }
            formals.push(formal);
            if !self.eat(Kind::Comma) {
                self.expect(Kind::ParenClose)?;
                return Ok(formals);
            }
        }
    }

    /// The directives between a function's parameters and its body.
    pub(super) fn bounds(&mut self, bounds: &mut LaunchBounds) -> Parse<()> {
        while self.at(Kind::DotWord) && !self.at_item() {
            let word = Name { text: self.word(), span: self.span() };
            self.bump();
            match word.text {
                ".maxntid" => {
                    let product = self.extents()?.iter().try_fold(1u32, |a, &b| a.checked_mul(b));
                    bounds.max_threads = Some(product.ok_or_else(|| {
                        Diagnostic::new(self.since(word.span.start), "more than 2^32 threads in a block")
                    })?);
                }
                ".reqntid" => bounds.required_block = Some(self.extents()?),
                ".minnctapersm" => bounds.min_ctas_per_sm = Some(self.int_u32("the number of blocks")?),
                ".maxnreg" => bounds.max_registers = Some(self.int_u32("the number of registers")?),
                ".reqnctapercluster" => bounds.required_cluster = Some(self.extents()?),
                ".explicitcluster" => bounds.explicit_cluster = true,
                ".blocksareclusters" => bounds.blocks_are_clusters = true,
                ".maxclusterrank" => {
                    bounds.max_cluster_ctas = Some(self.int_u32("the number of blocks of a cluster")?);
                }
                ".maxnctapersm" | ".abi_preserve" | ".abi_preserve_control" => {
                    self.int_u32("this number")?;
                }
                ".noreturn" => {}
                ".pragma" => {
                    self.expect(Kind::Str)?;
                    while self.eat(Kind::Comma) {
                        self.expect(Kind::Str)?;
                    }
                    self.expect(Kind::Semicolon)?;
                }
                ".attribute" => self.skip_pair(Kind::ParenOpen, Kind::ParenClose)?,
                _ => {
                    let message = format!("unknown function directive `{}`", shorten(word.text));
                    return Err(Diagnostic::new(word.span, message));
                }
            }
        }
        Ok(())
    }

    /// `256`, `16, 16` or `8, 8, 4`.
    fn extents(&mut self) -> Parse<[u32; 3]> {
        let mut extents = [self.int_u32("the extent")?, 1, 1];
        for extent in &mut extents[1..] {
            if !self.eat(Kind::Comma) {
                break;
            }
            *extent = self.int_u32("the extent")?;
        }
        Ok(extents)
    }
}

/// Chips before sm_13 had no doubles; only for them may `.target` turn `.f64` into `.f32`.
fn check_target(words: &[Name<'_>]) -> Parse<()> {
    let unknown = words.iter().find(|word| !target::is_chip(word.text) && !target::is_option(word.text));
    if let Some(unknown) = unknown {
        let message = format!("there is no target `{}`", shorten(unknown.text));
        return Err(
            Diagnostic::new(unknown.span, message).help("targets are chips such as `sm_70` and `sm_90a`")
        );
    }
    if let Some(first) = words.first().filter(|word| !target::is_chip(word.text)) {
        let message = format!("a target begins with a chip, not with `{}`", first.text);
        return Err(Diagnostic::new(first.span, message).help("write `.target sm_70`"));
    }
    let Some(demotes) = words.iter().find(|word| word.text == "map_f64_to_f32") else { return Ok(()) };
    let number = |word: &Name<'_>| word.text.strip_prefix("sm_")?.parse::<u32>().ok();
    match words.iter().find(|word| number(word).is_some_and(|number| number >= 13)) {
        Some(target) => {
            let message = format!("`map_f64_to_f32` does not go with `{}`, which has doubles", target.text);
            Err(Diagnostic::new(demotes.span, message).help("leave it out, or name a target before sm_13"))
        }
        None => Ok(()),
    }
}
