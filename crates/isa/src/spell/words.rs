//! How the parts of an opcode are written as dot-words and read back from them. Start at [`Words`].

use crate::inst::*;
use crate::types::*;

/// The dot-words of a mnemonic that no part has claimed yet, in upper case.
#[derive(Clone, Debug)]
pub(super) struct Suffixes(pub Vec<String>);

impl Suffixes {
    /// Claims a word at any position.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let at = self.0.iter().position(|w| w == word);
        at.map(|at| self.0.remove(at)).is_some()
    }
}

/// One part of an opcode: how it is written after the name, and how it is read.
pub(super) trait Words<T> {
    /// Appends the words of a value; false if this part cannot have that value.
    fn write(&self, value: T, out: &mut Vec<String>) -> bool;
    /// Claims the words of a value; `None` if there are none and the part has no default.
    fn read(&self, from: &mut Suffixes) -> Option<T>;
}

/// Values and their words. The empty word is the default. Where several values share a word, it is read as the
/// first of them, because the machine does not distinguish them.
pub(super) struct Table<T: 'static>(pub &'static [(T, &'static str)]);

impl<T: Copy + PartialEq> Words<T> for Table<T> {
    fn write(&self, value: T, out: &mut Vec<String>) -> bool {
        let Some((_, word)) = self.0.iter().find(|(v, _)| *v == value) else { return false };
        if !word.is_empty() {
            out.push(word.to_string());
        }
        true
    }

    fn read(&self, from: &mut Suffixes) -> Option<T> {
        let meaning = |word: &str| self.0.iter().find(|(_, w)| *w == word).map(|(v, _)| *v);
        match from.0.iter().position(|w| meaning(w).is_some()) {
            Some(at) => meaning(&from.0.remove(at)),
            None => meaning(""),
        }
    }
}

/// A part that the name itself implies.
pub(super) struct Only<T>(pub T);

impl<T: Copy + PartialEq> Words<T> for Only<T> {
    fn write(&self, value: T, _: &mut Vec<String>) -> bool {
        value == self.0
    }
    fn read(&self, _: &mut Suffixes) -> Option<T> {
        Some(self.0)
    }
}

/// A part that is written as an operand. Until the operand is read it has this value.
pub(super) struct Elsewhere<T>(pub T);

impl<T: Copy> Words<T> for Elsewhere<T> {
    fn write(&self, _: T, _: &mut Vec<String>) -> bool {
        true
    }
    fn read(&self, _: &mut Suffixes) -> Option<T> {
        Some(self.0)
    }
}

/// A word that is present or absent.
pub(super) struct Flag(pub &'static str);

impl Words<bool> for Flag {
    fn write(&self, value: bool, out: &mut Vec<String>) -> bool {
        if value {
            out.push(self.0.to_string());
        }
        true
    }
    fn read(&self, from: &mut Suffixes) -> Option<bool> {
        Some(from.take(self.0))
    }
}

/// A byte in hexadecimal.
pub(super) struct Byte;

impl Words<u8> for Byte {
    fn write(&self, value: u8, out: &mut Vec<String>) -> bool {
        out.push(format!("0X{value:02X}"));
        true
    }
    fn read(&self, from: &mut Suffixes) -> Option<u8> {
        let parse = |word: &str| u8::from_str_radix(word.strip_prefix("0X")?, 16).ok();
        let at = from.0.iter().position(|w| parse(w).is_some())?;
        parse(&from.0.remove(at))
    }
}

/// A part and a word that always follows it.
pub(super) struct Then<W>(pub W, pub &'static str);

impl<T, W: Words<T>> Words<T> for Then<W> {
    fn write(&self, value: T, out: &mut Vec<String>) -> bool {
        let fits = self.0.write(value, out);
        out.push(self.1.to_string());
        fits
    }
    fn read(&self, from: &mut Suffixes) -> Option<T> {
        let value = self.0.read(from)?;
        from.take(self.1).then_some(value)
    }
}

/// Rounding, flushing and clamping of arithmetic: the values that an operation may have.
pub(super) struct Mode {
    pub round: Table<Round>,
    pub clamp: Table<Clamp>,
    /// Whether subnormals can be flushed.
    pub ftz: bool,
}

impl Words<FloatMode> for Mode {
    fn write(&self, mode: FloatMode, out: &mut Vec<String>) -> bool {
        self.round.write(mode.round, out)
            && Flag("FTZ").write(mode.ftz, out)
            && self.clamp.write(mode.clamp, out)
            && (self.ftz || !mode.ftz)
    }
    fn read(&self, from: &mut Suffixes) -> Option<FloatMode> {
        let round = self.round.read(from)?;
        let ftz = self.ftz && from.take("FTZ");
        Some(FloatMode { round, ftz, clamp: self.clamp.read(from)? })
    }
}

/// How `FMNMX` treats NaN, subnormals and signs.
pub(super) struct NanAndSign;

impl Words<MinMax> for NanAndSign {
    fn write(&self, mode: MinMax, out: &mut Vec<String>) -> bool {
        Flag("FTZ").write(mode.ftz, out)
            && Flag("NAN").write(mode.nan, out)
            && Flag("XORSIGN").write(mode.xorsign_abs, out)
    }
    fn read(&self, from: &mut Suffixes) -> Option<MinMax> {
        let ftz = from.take("FTZ");
        Some(MinMax { ftz, nan: from.take("NAN"), xorsign_abs: from.take("XORSIGN") })
    }
}

/// A conversion: the result's type comes first.
pub(super) struct Conversion {
    pub to: Table<Ty>,
    pub from: Table<Ty>,
}

impl Words<Cvt> for Conversion {
    fn write(&self, cvt: Cvt, out: &mut Vec<String>) -> bool {
        self.to.write(cvt.to, out)
            && self.from.write(cvt.from, out)
            && Flag("INT").write(cvt.integral, out)
            && CONVERSION_ROUNDS.write(cvt.round, out)
            && Flag("FTZ").write(cvt.ftz, out)
            && CLAMPS.write(cvt.clamp, out)
    }
    fn read(&self, from: &mut Suffixes) -> Option<Cvt> {
        let (to, source) = (self.to.read(from)?, self.from.read(from)?);
        let (integral, round) = (from.take("INT"), CONVERSION_ROUNDS.read(from)?);
        Some(Cvt { to, from: source, round, integral, ftz: from.take("FTZ"), clamp: CLAMPS.read(from)? })
    }
}

/// A memory access.
pub(super) struct Memory {
    /// The spaces that the name implies.
    pub spaces: Table<Space>,
    pub types: Table<Ty>,
    pub orders: Table<Order>,
    pub scopes: Table<Scope>,
    pub caches: Table<Cache>,
    /// Whether an access may move several elements.
    pub vectors: bool,
}

/// Four 32-bit elements, as Fermi writes them.
const QUAD: &str = "128";

impl Words<Access> for Memory {
    fn write(&self, access: Access, out: &mut Vec<String>) -> bool {
        Flag("E").write(access.wide_address, out);
        let mut ty = Vec::new();
        if !self.spaces.write(access.space, out) || !self.types.write(access.ty, &mut ty) {
            return false;
        }
        match (access.count, ty.is_empty()) {
            (4, true) if self.vectors => out.push(QUAD.to_string()),
            (count, _) => {
                out.append(&mut ty);
                if !COUNTS.write(count, out) || count > 1 && !self.vectors {
                    return false;
                }
            }
        }
        self.orders.write(access.order, out)
            && self.scopes.write(access.scope, out)
            && self.caches.write(access.cache, out)
    }
    fn read(&self, from: &mut Suffixes) -> Option<Access> {
        let wide_address = from.take("E");
        let space = self.spaces.read(from)?;
        let quad = self.vectors && from.take(QUAD);
        let (ty, count) = if quad {
            (Ty::B32, 4)
        } else {
            (self.types.read(from)?, if self.vectors { COUNTS.read(from)? } else { 1 })
        };
        let order = self.orders.read(from)?;
        let (scope, cache) = (self.scopes.read(from)?, self.caches.read(from)?);
        let access = Access { space, ty, count, order, scope, cache, wide_address };
        (access.bytes() <= 32).then_some(access)
    }
}

const COUNTS: Table<u8> = Table(&[(1, ""), (2, "V2"), (4, "V4"), (8, "V8")]);

pub(super) const CLAMPS: Table<Clamp> =
    Table(&[(Clamp::None, ""), (Clamp::Sat, "SAT"), (Clamp::Relu, "RELU")]);

const CONVERSION_ROUNDS: Table<Round> = Table(&[
    (Round::Rn, ""),
    (Round::Rna, "RNA"),
    (Round::Rz, "TRUNC"),
    (Round::Rm, "FLOOR"),
    (Round::Rp, "CEIL"),
]);
