//! Declarations of variables and their initial values.

use warploom_isa::{AddressMode, Opaque, SamplerState, Span, Ty};

use super::{Parse, Parser, shorten};
use crate::ast::{Constant, Init, InitAddress, InitKind, Linkage, Name, Space, Type, Variable};
use crate::diag::Diagnostic;
use crate::lex::Kind;

impl<'t> Parser<'t> {
    /// `.global .align 4 .b8 a[4] = {1}, b;`, beginning at the state space.
    pub(super) fn variables(&mut self, linkage: Linkage, each: &mut dyn FnMut(Variable<'t>)) -> Parse<()> {
        let word = self.word();
        let space = match word {
            ".global" => Space::Global,
            ".const" => Space::Const,
            ".shared" | ".shared::cta" => Space::Shared,
            ".local" => Space::Local,
            ".param" => Space::Param,
            // The old name of global references to textures.
            ".tex" => Space::Global,
            _ if self.at(Kind::DotWord) => {
                let message = format!("unknown directive `{}`", shorten(word));
                return Err(Diagnostic::new(self.span(), message));
            }
            _ => return Err(self.unexpected("a state space such as `.global`")),
        };
        self.bump();
        if space == Space::Const && self.eat(Kind::BracketOpen) {
            // A bank number, up to PTX 2.1. Addresses come from names, so the number has no effect.
            self.int()?;
            self.expect(Kind::BracketClose)?;
        }
        loop {
            // Names after the first have no declaration of their own: it is parsed once and copied.
            let mut variable = self.declaration(linkage, space)?;
            if word == ".tex" {
                (variable.ty, variable.opaque) = (Type::Scalar(Ty::B64), Some(Opaque::Texture));
            }
            loop {
                self.declarator(&mut variable)?;
                let more = self.eat(Kind::Comma);
                let next = Variable { name: NO_NAME, dims: Vec::new(), init: None, ..variable };
                each(variable);
                if !more {
                    self.expect(Kind::Semicolon)?;
                    return Ok(());
                }
                variable = next;
                if self.at(Kind::DotWord) {
                    break;
                }
            }
        }
    }

    /// `.align 4 .v2 .f32`, `.u64 .ptr .global .align 8`: everything between state space and name.
    pub(super) fn declaration(&mut self, linkage: Linkage, space: Space) -> Parse<Variable<'t>> {
        let mut ty = None;
        let mut variable = Variable {
            linkage,
            space,
            align: None,
            ty: Type::Pred,
            lanes: 1,
            name: NO_NAME,
            dims: Vec::new(),
            pointer: None,
            opaque: None,
            init: None,
        };
        let start = self.span();
        while self.at(Kind::DotWord) {
            let span = self.span();
            let word = self.word();
            if let Some(found) = type_named(word) {
                ty = Some(found);
                self.bump();
                continue;
            }
            match word {
                ".align" => {
                    self.bump();
                    variable.align = Some(self.alignment()?);
                }
                ".attribute" => {
                    self.bump();
                    self.skip_pair(Kind::ParenOpen, Kind::ParenClose)?;
                }
                ".v2" | ".v4" | ".v8" if ty.is_some() => {
                    let message = format!("`{word}` comes before the type");
                    return Err(Diagnostic::new(span, message));
                }
                ".v2" | ".v4" | ".v8" => {
                    variable.lanes = word.as_bytes()[2] - b'0';
                    self.bump();
                }
                ".ptr" => {
                    self.bump();
                    variable.pointer = Some(self.pointee()?);
                }
                ".texref" | ".samplerref" | ".surfref" => {
                    if !matches!(space, Space::Global | Space::Param) {
                        let message = format!("`{word}` variables are `.global` or parameters");
                        return Err(Diagnostic::new(span, message));
                    }
                    variable.opaque = Some(match word {
                        ".texref" => Opaque::Texture,
                        ".samplerref" => Opaque::Sampler(SamplerState::default()),
                        _ => Opaque::Surface,
                    });
                    ty = Some(Type::Scalar(Ty::B64));
                    self.bump();
                }
                _ => return Err(Diagnostic::new(span, format!("unknown type `{}`", shorten(word)))),
            }
        }
        variable.ty = ty.ok_or_else(|| {
            let error = self.unexpected("a type such as `.u32`");
            if self.at(Kind::DotWord) { Diagnostic { span: start, ..error } } else { error }
        })?;
        if variable.lanes > 1 && space == Space::Reg {
            let bits = match variable.ty {
                Type::Pred => return Err(Diagnostic::new(start, "there are no vectors of predicates")),
                Type::Scalar(ty) => ty.bits(),
                Type::B128 => 128,
            };
            if u32::from(variable.lanes) * bits > 128 || variable.lanes > 4 {
                let message = "a vector register has 2 or 4 elements and at most 128 bits";
                return Err(Diagnostic::new(self.since(start.start), message));
            }
        }
        if variable.lanes > 1 && space == Space::Param {
            let message = "a parameter is not a vector";
            let help = "declare it as bytes: `.param .align 8 .b8 name[8]`";
            return Err(Diagnostic::new(self.since(start.start), message).help(help));
        }
        if variable.ty == Type::Pred && space != Space::Reg {
            return Err(Diagnostic::new(self.since(start.start), "only registers can be predicates"));
        }
        Ok(variable)
    }

    fn alignment(&mut self) -> Parse<u32> {
        let start = self.span().start;
        match self.int()? {
            align if align.is_power_of_two() && align <= MAX_ALIGN => Ok(align as u32),
            _ => Err(Diagnostic::new(
                self.since(start),
                format!("an alignment is a power of two up to {MAX_ALIGN}"),
            )),
        }
    }

    /// `.ptr .global .align 8`: the space that a pointer parameter points to. The alignment is a hint.
    fn pointee(&mut self) -> Parse<warploom_isa::Space> {
        use warploom_isa::Space;
        let mut space = Space::Generic;
        loop {
            match self.word() {
                ".global" => space = Space::Global,
                ".const" => space = Space::Const,
                ".shared" => space = Space::Shared,
                ".local" => space = Space::Local,
                ".align" => {
                    self.bump();
                    self.alignment()?;
                    continue;
                }
                _ => return Ok(space),
            }
            self.bump();
        }
    }

    /// `name[4][2] = {…}`
    pub(super) fn declarator(&mut self, variable: &mut Variable<'t>) -> Parse<()> {
        variable.name = self.name("a name")?;
        variable.dims = self.dims()?;
        match &mut variable.opaque {
            Some(opaque) if self.eat(Kind::Equal) => self.reference_state(opaque)?,
            None if self.eat(Kind::Equal) => variable.init = Some(self.init()?),
            _ => {}
        }
        Ok(())
    }

    /// `{ addr_mode_0 = wrap, filter_mode = linear }`. What a texture or surface is like, the host says; only the state
    /// of a sampler counts.
    fn reference_state(&mut self, opaque: &mut Opaque) -> Parse<()> {
        self.expect(Kind::BraceOpen)?;
        loop {
            let field = self.name("the name of a field such as `filter_mode`")?;
            self.expect(Kind::Equal)?;
            let at = self.span();
            let value = self.word();
            if self.at(Kind::Ident) {
                self.bump();
            } else {
                self.int()?;
            }
            let unknown = || {
                let message = format!("`{}` is no value of `{}`", shorten(value), field.text);
                Diagnostic::new(at, message)
            };
            let Opaque::Sampler(state) = opaque else {
                match self.eat(Kind::Comma) {
                    true => continue,
                    false => break,
                }
            };
            match field.text {
                "addr_mode_0" | "addr_mode_1" | "addr_mode_2" => {
                    let axis = usize::from(field.text.as_bytes()[10] - b'0');
                    state.address[axis] = match value {
                        "wrap" => AddressMode::Wrap,
                        "mirror" => AddressMode::Mirror,
                        "clamp_ogl" | "clamp_to_edge" => AddressMode::Clamp,
                        "clamp_to_border" => AddressMode::Border,
                        _ => return Err(unknown()),
                    };
                }
                "filter_mode" => {
                    state.linear = match value {
                        "nearest" => false,
                        "linear" => true,
                        _ => return Err(unknown()),
                    };
                }
                "force_unnormalized_coords" => state.unnormalized = value != "0",
                _ => {
                    let message = format!("a sampler has no field `{}`", shorten(field.text));
                    return Err(Diagnostic::new(field.span, message));
                }
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::BraceClose)?;
        Ok(())
    }

    pub(super) fn dims(&mut self) -> Parse<Vec<Option<u64>>> {
        let mut dims = Vec::new();
        while self.eat(Kind::BracketOpen) {
            if self.eat(Kind::BracketClose) {
                dims.push(None);
                continue;
            }
            let start = self.span().start;
            let dim = self.int()?;
            if dim > i64::MAX as u64 {
                return Err(Diagnostic::new(
                    self.since(start),
                    "an array's size must not be negative, nor 2^63 or more",
                ));
            }
            self.expect(Kind::BracketClose)?;
            dims.push(Some(dim));
        }
        Ok(dims)
    }

    fn init(&mut self) -> Parse<Init<'t>> {
        let at = self.span().start;
        let kind = match self.kind() {
            Kind::BraceOpen => self.nested(Self::init_list)?,
            Kind::Ident if self.word() != "WARP_SZ" => self.init_address(None)?,
            Kind::ParenOpen if self.ahead.kind == Kind::Ident && self.text_of(self.ahead) != "WARP_SZ" => {
                self.init_address(None)?
            }
            _ => match self.constant()? {
                Constant::Int { bits, .. } if self.at(Kind::ParenOpen) => {
                    let byte = (0..8u8).find(|byte| bits == 0xFF << (8 * byte));
                    let byte = byte.ok_or_else(|| {
                        Diagnostic::new(self.since(at), "a mask in an initial value selects one byte")
                            .help("masks are 0xFF, 0xFF00, 0xFF0000, …")
                    })?;
                    self.init_address(Some(byte))?
                }
                Constant::Int { bits, .. } => InitKind::Int(bits),
                Constant::F32(bits) => InitKind::F32(bits),
                Constant::F64(value) => InitKind::F64(value.to_bits()),
            },
        };
        Ok(Init { at, kind })
    }

    fn init_list(&mut self) -> Parse<InitKind<'t>> {
        self.expect(Kind::BraceOpen)?;
        self.open_braces += 1;
        let mut list = Vec::new();
        if !self.at(Kind::BraceClose) {
            list.push(self.init()?);
            while self.eat(Kind::Comma) {
                list.push(self.init()?);
            }
        }
        if !self.at(Kind::BraceClose) {
            return Err(self.unexpected("`,` or `}`"));
        }
        self.bump();
        self.open_braces -= 1;
        Ok(InitKind::List(list.into_boxed_slice()))
    }

    /// `name+4`, `generic(name)+4`, and either in parentheses (which a mask requires).
    fn init_address(&mut self, byte: Option<u8>) -> Parse<InitKind<'t>> {
        let parens = self.eat(Kind::ParenOpen);
        let generic = self.word() == "generic" && self.ahead.kind == Kind::ParenOpen;
        if generic {
            self.bump();
            self.bump();
        }
        let name = self.name("a symbol's name")?;
        let mut offset = self.offset()?;
        if generic {
            self.expect(Kind::ParenClose)?;
            offset = offset.wrapping_add(self.offset()?);
        }
        if parens {
            self.expect(Kind::ParenClose)?;
            // After a mask it would be unclear what the offset is added to.
            if byte.is_none() {
                offset = offset.wrapping_add(self.offset()?);
            }
        }
        Ok(InitKind::Address(Box::new(InitAddress { name, offset, generic, byte })))
    }
}

const NO_NAME: Name<'static> = Name { text: "", span: Span { start: 0, end: 0 } };

/// Far larger than any access needs.
const MAX_ALIGN: u64 = 1 << 16;

/// The type with this name, including its dot.
pub(super) fn type_named(word: &str) -> Option<Type> {
    Some(Type::Scalar(match word {
        ".pred" => return Some(Type::Pred),
        ".b128" => return Some(Type::B128),
        ".b8" => Ty::B8,
        ".b16" => Ty::B16,
        ".b32" => Ty::B32,
        ".b64" => Ty::B64,
        ".u8" => Ty::U8,
        ".u16" => Ty::U16,
        ".u32" => Ty::U32,
        ".u64" => Ty::U64,
        ".s8" => Ty::S8,
        ".s16" => Ty::S16,
        ".s32" => Ty::S32,
        ".s64" => Ty::S64,
        ".f16" => Ty::F16,
        ".f16x2" => Ty::F16x2,
        ".bf16" => Ty::BF16,
        ".bf16x2" => Ty::BF16x2,
        ".f32" => Ty::F32,
        ".f64" => Ty::F64,
        _ => return None,
    }))
}
