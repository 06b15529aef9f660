//! Sizes of variables and their initial bytes.

use warploom_isa::{Relocation, Span, Symbol, SymbolUse, Ty, VarId};

use super::{Global, Globals, at};
use crate::ast::{self, Init, InitAddress, InitKind};
use crate::diag::Diagnostic;

/// Larger than any device memory.
pub(super) const MAX_VARIABLE_BYTES: u64 = 1 << 40;
/// The hardware's limit per thread.
pub(super) const MAX_FRAME_BYTES: u64 = 512 << 10;
/// The most that a launch can pass.
pub(super) const MAX_KERNEL_PARAM_BYTES: u64 = 32764;

/// The size and alignment of a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// 0 if the first dimension is `[]`.
    pub bytes: u64,
    pub align: u32,
    /// Bytes of one element of an outermost `[]`.
    pub unsized_by: Option<u64>,
}

impl Layout {
    pub(super) fn of(variable: &ast::Variable<'_>) -> Result<Layout, Diagnostic> {
        let span = variable.name.span;
        let element = type_bytes(variable.ty) * u64::from(variable.lanes);
        let natural = element.next_power_of_two().min(16) as u32;
        let align = variable.align.unwrap_or(natural);
        let mut bytes = element;
        for (i, dim) in variable.dims.iter().enumerate().rev() {
            match dim {
                Some(0) => return Err(Diagnostic::new(span, "this array has no elements")),
                Some(n) => bytes = checked_size(bytes, *n, span)?,
                None if i == 0 => return Ok(Layout { bytes: 0, align, unsized_by: Some(bytes) }),
                None => {
                    return Err(Diagnostic::new(span, "only the first dimension of an array may be `[]`"));
                }
            }
        }
        Ok(Layout { bytes, align, unsized_by: None })
    }
}

/// The size of `count` elements of `bytes` each; an error if it exceeds any memory.
pub(super) fn checked_size(bytes: u64, count: u64, span: Span) -> Result<u64, Diagnostic> {
    bytes.checked_mul(count).filter(|&b| b <= MAX_VARIABLE_BYTES).ok_or_else(|| {
        Diagnostic::new(span, "this variable is larger than any memory")
            .label(format!("more than {MAX_VARIABLE_BYTES} bytes"))
    })
}

fn type_bytes(ty: ast::Type) -> u64 {
    match ty {
        ast::Type::Pred => 1,
        ast::Type::Scalar(ty) => ty.bytes().into(),
        ast::Type::B128 => 16,
    }
}

/// An initial value under construction.
struct Image<'g, 't, 'a> {
    globals: &'g mut Globals<'t, 'a>,
    ty: ast::Type,
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
}

impl<'t> Globals<'t, '_> {
    /// Fills in the initial bytes and addresses of a variable that has an initial value.
    pub(super) fn initialise_variable(&mut self, id: VarId) {
        let declaration = self.declarations[id.index()];
        let Some(init) = &declaration.init else { return };
        if matches!(declaration.space, ast::Space::Shared) || declaration.linkage == ast::Linkage::Extern {
            let what = if declaration.space == ast::Space::Shared { "`.shared`" } else { "`.extern`" };
            self.error(Diagnostic::new(
                at(init.at),
                format!("{what} variables cannot have an initial value"),
            ));
            return;
        }
        let mut dims: Vec<u64> = declaration.dims.iter().map(|d| d.unwrap_or(u64::MAX)).collect();
        if declaration.lanes > 1 {
            dims.push(declaration.lanes.into());
        }
        let ty = declaration.ty;
        let mut image = Image { globals: self, ty, bytes: Vec::new(), relocations: Vec::new() };
        let result = image.fill(init, &dims, 0);
        let (bytes, relocations) = (image.bytes, image.relocations);
        match result {
            Ok(()) => {
                let variable = &mut self.variables[id.index()];
                variable.init = bytes;
                variable.relocations = relocations;
            }
            Err(error) => self.error(error),
        }
    }
}

impl Image<'_, '_, '_> {
    /// Writes `init`, the value of an array of these dimensions, at `offset`.
    fn fill(&mut self, init: &Init<'_>, dims: &[u64], offset: u64) -> Result<(), Diagnostic> {
        match (&init.kind, dims) {
            (InitKind::List(list), [count, inner @ ..]) => {
                if list.len() as u64 > *count {
                    let error = Diagnostic::new(at(list[*count as usize].at), "too many initial values");
                    return Err(error.label(format!("the array has {count} elements")));
                }
                // Cannot overflow: the layout has been checked.
                let stride = inner.iter().product::<u64>() * type_bytes(self.ty);
                for (i, value) in list.iter().enumerate() {
                    self.fill(value, inner, offset + i as u64 * stride)?;
                }
                Ok(())
            }
            (InitKind::List(_), []) => Err(Diagnostic::new(at(init.at), "a single value takes no braces")),
            (_, [_, ..]) => {
                Err(Diagnostic::new(at(init.at), "expected `{`").label("an array's values stand in braces"))
            }
            (InitKind::Address(address), []) => self.address(address, init.at, offset),
            (InitKind::Int(bits), []) if !is_float(self.ty) => self.put(&bits.to_le_bytes(), init.at, offset),
            // Refused for 64 bits: `ptxas` takes it as the bits of a double, which is never intended.
            (InitKind::F32(bits), []) => match self.ty {
                ast::Type::Scalar(Ty::F32 | Ty::B32) => self.put(&bits.to_le_bytes(), init.at, offset),
                ast::Type::Scalar(Ty::F64 | Ty::B64) => {
                    Err(self.mismatch(init.at).label("expected double precision (`0d…` or a decimal number)"))
                }
                _ => Err(self.mismatch(init.at)),
            },
            (InitKind::F64(bits), []) => match self.ty {
                ast::Type::Scalar(Ty::F64 | Ty::B64) => self.put(&bits.to_le_bytes(), init.at, offset),
                ast::Type::Scalar(Ty::F32 | Ty::B32) => {
                    let value = f64::from_bits(*bits) as f32;
                    self.put(&value.to_le_bytes(), init.at, offset)
                }
                _ => Err(self.mismatch(init.at)),
            },
            _ => Err(self.mismatch(init.at)),
        }
    }

    fn mismatch(&self, position: u32) -> Diagnostic {
        let error = Diagnostic::new(at(position), "this value does not fit the variable's type");
        if is_float(self.ty) {
            error.label("expected a floating-point number")
        } else {
            error.label("expected an integer")
        }
    }

    /// Writes the low bytes of a value: constants are truncated to the element's size.
    fn put(&mut self, value: &[u8], position: u32, offset: u64) -> Result<(), Diagnostic> {
        let size = type_bytes(self.ty) as usize;
        let end = offset + size as u64;
        let grown = end.saturating_sub(self.bytes.len() as u64);
        if grown > self.globals.init_budget {
            let error =
                Diagnostic::new(at(position), "too many zeros between the initial values of this module");
            return Err(error.help("leave the variable uninitialised and let the program write it"));
        }
        self.globals.init_budget -= grown;
        self.bytes.resize(self.bytes.len().max(end as usize), 0);
        let taken = value.len().min(size);
        self.bytes[offset as usize..][..taken].copy_from_slice(&value[..taken]);
        Ok(())
    }

    fn address(&mut self, address: &InitAddress<'_>, position: u32, offset: u64) -> Result<(), Diagnostic> {
        let name = address.name;
        let (symbol, generic) = match self.globals.names.get(name.text) {
            Some(&Global::Function(id)) => (Symbol::Function(id), true),
            Some(&Global::Variable(id)) => {
                if self.globals.is_undefined(id) {
                    return Err(undefined(name.text, name.span));
                }
                if self.globals.declarations[id.index()].space == ast::Space::Shared {
                    let message =
                        format!("the address of the `.shared` variable `{}` is not a constant", name.text);
                    return Err(Diagnostic::new(name.span, message));
                }
                (Symbol::Variable(id), address.generic)
            }
            None => {
                let error = Diagnostic::new(name.span, format!("unknown symbol `{}`", name.text));
                return Err(match self.globals.hint(name.text, []) {
                    Some(hint) => error.help(hint),
                    None => error,
                });
            }
        };
        let size = type_bytes(self.ty);
        let (bytes, shift) = match address.byte {
            Some(byte) => (size.min(1) as u8, 8 * byte),
            None => (size as u8, 0),
        };
        let fits = if address.byte.is_some() { size == 1 } else { size == 4 || size == 8 };
        if !fits || is_float(self.ty) {
            let error = Diagnostic::new(at(position), "an address does not fit the variable's type");
            return Err(error.help("use `.u64` elements, or bytes with masks such as `0xFF00(symbol)`"));
        }
        self.put(&[], position, offset)?;
        let target = SymbolUse { symbol, offset: address.offset, generic };
        self.relocations.push(Relocation { offset, bytes, shift, target });
        Ok(())
    }
}

fn is_float(ty: ast::Type) -> bool {
    matches!(ty, ast::Type::Scalar(ty) if ty.is_float())
}

/// What to do about something that this module only declares.
pub(crate) const FILE_OF_DEFINITION: &str =
    "give the file that defines it as well, after this one: they are linked (`check` with --link)";

/// The error for a use of a variable that this module only declares.
pub(super) fn undefined(name: &str, span: Span) -> Diagnostic {
    Diagnostic::not_modelled(span, format!("`{name}` is declared `.extern` but not defined"))
        .help(FILE_OF_DEFINITION)
}
