//! Numbers that a loop computes: how they are told, and their values.

use warploom_isa::{Cmp, Pc, Ty};

use crate::explain::hang::message::number;

/// A word that an instruction reads: its number among those of a vector.
pub(super) type Read = (Pc, u32);

/// A number that the loop computes.
pub(super) struct Number {
    pub(super) text: String,
    /// `None` if it is not known how the value is computed.
    pub(super) value: Option<u64>,
    /// It is a word of memory as the load gives it.
    pub(super) is_word: Option<Read>,
    /// It needs no parentheses.
    pub(super) is_atom: bool,
    /// If it is bits of a word: these.
    pub(super) bits: Option<u64>,
}

impl Number {
    pub(super) fn atom(text: String, value: Option<u64>) -> Self {
        Number { text, value, is_word: None, is_atom: true, bits: None }
    }

    fn as_operand(&self) -> String {
        if self.is_atom { self.text.clone() } else { format!("({})", self.text) }
    }
}

pub(super) fn both(a: &Number, b: &Number, compute: impl Fn(u64, u64) -> u64) -> Option<u64> {
    Some(compute(a.value?, b.value?))
}

/// An operation with its symbol, its operands, and its value.
pub(super) struct Infix(
    pub(super) &'static str,
    pub(super) Number,
    pub(super) Number,
    pub(super) Option<u64>,
);

impl Infix {
    /// The result, of a type.
    pub(super) fn told(self, ty: Ty) -> Number {
        let Infix(symbol, left, right, value) = self;
        let bits = right.value.filter(|_| symbol == "&" && left.is_word.is_some());
        let text = format!("{} {symbol} {}", left.as_operand(), right.as_operand());
        Number { text, value: value.map(|value| value & mask(ty)), is_word: None, is_atom: false, bits }
    }
}

pub(super) fn binary(symbol: &'static str, a: Number, b: Number, compute: impl Fn(u64, u64) -> u64) -> Infix {
    let value = both(&a, &b, compute);
    Infix(symbol, a, b, value)
}

pub(super) fn float(
    symbol: &'static str,
    a: Number,
    b: Number,
    ty: Ty,
    compute: impl Fn(f64, f64) -> f64,
) -> Infix {
    binary(symbol, a, b, |a, b| match ty {
        Ty::F32 => u64::from((compute(as_float(a, ty), as_float(b, ty)) as f32).to_bits()),
        _ => compute(as_float(a, ty), as_float(b, ty)).to_bits(),
    })
}

pub(super) fn unary(symbol: &str, a: Number, compute: impl Fn(u64) -> u64) -> Number {
    Number::atom(format!("{symbol}{}", a.as_operand()), a.value.map(compute))
}

pub(super) fn call<const K: usize>(name: &str, of: [Number; K], compute: impl Fn([u64; K]) -> u64) -> Number {
    let texts: Vec<&str> = of.iter().map(|number| &number.text[..]).collect();
    let text = format!("{name}({})", texts.join(", "));
    let known = of.iter().all(|number| number.value.is_some());
    let value = known.then(|| compute(of.map(|number| number.value.unwrap_or_default())));
    Number::atom(text, value)
}

fn as_float(value: u64, ty: Ty) -> f64 {
    if ty == Ty::F32 { f32::from_bits(value as u32).into() } else { f64::from_bits(value) }
}

/// Whether a comparison of two values holds.
pub(super) fn compares(cmp: Cmp, ty: Ty, a: u64, b: u64) -> Option<bool> {
    let order = match ty {
        Ty::F32 | Ty::F64 => as_float(a, ty).partial_cmp(&as_float(b, ty))?,
        ty if ty.is_float() => return None,
        ty if ty.is_signed() => signed(a, ty).cmp(&signed(b, ty)),
        _ => a.cmp(&b),
    };
    Some(match cmp {
        Cmp::Eq | Cmp::Equ => order.is_eq(),
        Cmp::Ne | Cmp::Neu => order.is_ne(),
        Cmp::Lt | Cmp::Ltu => order.is_lt(),
        Cmp::Le | Cmp::Leu => order.is_le(),
        Cmp::Gt | Cmp::Gtu => order.is_gt(),
        Cmp::Ge | Cmp::Geu => order.is_ge(),
        Cmp::Num | Cmp::Nan => return None,
    })
}

/// A value of a signed type.
pub(super) fn signed(value: u64, ty: Ty) -> i64 {
    let unused = 64 - ty.bits();
    (value << unused) as i64 >> unused
}

pub(super) fn is_less(a: u64, b: u64, ty: Ty) -> bool {
    if ty.is_signed() { signed(a, ty) < signed(b, ty) } else { a < b }
}

pub(super) fn mask(ty: Ty) -> u64 {
    u64::MAX >> (64 - ty.bits().clamp(1, 64))
}

/// A value of a type, for reading.
pub(super) fn shown(value: u64, ty: Ty) -> String {
    match ty {
        Ty::F32 => format!("{}", f32::from_bits(value as u32)),
        Ty::F64 => format!("{}", f64::from_bits(value)),
        ty if ty.is_signed() => {
            let value = signed(value, ty);
            if value < 0 && value > -0x1_0000 { value.to_string() } else { number(value as u64 & mask(ty)) }
        }
        _ => number(value),
    }
}
