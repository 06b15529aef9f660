//! Floating-point arithmetic on big integers: a number is `±mantissa * 2^exponent`, and every result is rounded once.

use num_bigint::BigUint;
use warploom_isa::Round;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fmt {
    pub exponent: u32,
    pub fraction: u32,
}

pub(crate) const F16: Fmt = Fmt { exponent: 5, fraction: 10 };
pub(crate) const BF16: Fmt = Fmt { exponent: 8, fraction: 7 };
pub(crate) const F32: Fmt = Fmt { exponent: 8, fraction: 23 };
pub(crate) const F64: Fmt = Fmt { exponent: 11, fraction: 52 };

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Num {
    Nan,
    Inf(bool),
    Fin(bool, BigUint, i64),
}

use Num::*;

impl Fmt {
    pub(crate) fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    pub(crate) fn inf(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.inf()
    }

    pub(crate) fn is_subnormal(self, bits: u64) -> bool {
        bits & self.inf() == 0 && bits & (self.sign() - 1) != 0
    }

    pub(crate) fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign() } else { bits }
    }

    pub(crate) fn decode(self, bits: u64) -> Num {
        let negative = bits & self.sign() != 0;
        let fraction = bits & ((1 << self.fraction) - 1);
        let biased = ((bits & self.inf()) >> self.fraction) as i64;
        let least = 1 - self.bias() - i64::from(self.fraction);
        match biased {
            _ if self.is_nan(bits) => Nan,
            _ if bits & self.inf() == self.inf() => Inf(negative),
            0 => Fin(negative, fraction.into(), least),
            _ => Fin(negative, (fraction | 1 << self.fraction).into(), least + biased - 1),
        }
    }

    /// As [`Fmt::encode`], but zero if the result is below the normal numbers when rounded with unlimited exponents.
    pub(crate) fn encode_flushed(self, number: &Num, sticky: bool, round: Round, nan: u64) -> u64 {
        let bits = self.encode(number, sticky, round, nan);
        let unlimited = Fmt { exponent: self.exponent + 3, ..self };
        let magnitude = unlimited.encode(number, sticky, round, unlimited.inf()) & (unlimited.sign() - 1);
        let smallest_normal = ((1 - self.bias() + unlimited.bias()) as u64) << self.fraction;
        if magnitude < smallest_normal { bits & self.sign() } else { bits }
    }

    /// Rounds an exact number; with `sticky`, the true value is slightly larger in magnitude. `nan` is the result for
    /// NaN.
    pub(crate) fn encode(self, number: &Num, sticky: bool, round: Round, nan: u64) -> u64 {
        let (negative, mantissa, exponent) = match number {
            Nan => return nan,
            Inf(negative) => return self.inf() | if *negative { self.sign() } else { 0 },
            Fin(negative, mantissa, exponent) => (*negative, mantissa, *exponent),
        };
        let sign = if negative { self.sign() } else { 0 };
        if mantissa.bits() == 0 {
            assert!(!sticky);
            return sign;
        }
        // Compares the two neighbours in the format, in units of a much smaller bit.
        let least = 1 - self.bias() - i64::from(self.fraction);
        let unit = (exponent + mantissa.bits() as i64 - 1 - i64::from(self.fraction)).max(least);
        let fine = unit.min(exponent) - 2;
        let mut scaled = mantissa << (exponent - fine) as usize;
        if sticky {
            scaled += 1u32;
        }
        let below = &scaled >> (unit - fine) as usize;
        let rest = &scaled - (&below << (unit - fine) as usize);
        let half = BigUint::from(1u32) << (unit - fine - 1) as usize;
        let zero = BigUint::from(0u32);
        let up = match round {
            Round::Rn => rest > half || (rest == half && below.bit(0)),
            Round::Rna => rest >= half,
            Round::Rz => false,
            Round::Rm => negative && rest > zero,
            Round::Rp => !negative && rest > zero,
        };
        let chosen = if up { below + 1u32 } else { below };
        let digits = chosen.iter_u64_digits().next().unwrap_or(0);
        let (digits, unit) =
            if digits >> (self.fraction + 1) != 0 { (digits >> 1, unit + 1) } else { (digits, unit) };
        let magnitude = if digits >> self.fraction == 0 {
            digits
        } else {
            let biased = (unit - least + 1) as u64;
            if biased >= (1 << self.exponent) - 1 {
                let away = match round {
                    Round::Rn | Round::Rna => true,
                    Round::Rz => false,
                    Round::Rm => negative,
                    Round::Rp => !negative,
                };
                return sign | if away { self.inf() } else { self.inf() - 1 };
            }
            (biased << self.fraction) | (digits & ((1 << self.fraction) - 1))
        };
        sign | magnitude
    }
}

pub(crate) fn add(a: &Num, b: &Num, round: Round) -> Num {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Inf(x), Inf(y)) => {
            if x == y {
                Inf(*x)
            } else {
                Nan
            }
        }
        (Inf(x), _) | (_, Inf(x)) => Inf(*x),
        (Fin(s, m, e), Fin(t, n, f)) => {
            let exponent = *e.min(f);
            let (x, y) = (m << (e - exponent) as usize, n << (f - exponent) as usize);
            if s == t {
                return Fin(*s, x + y, exponent);
            }
            match x.cmp(&y) {
                std::cmp::Ordering::Greater => Fin(*s, x - y, exponent),
                std::cmp::Ordering::Less => Fin(*t, y - x, exponent),
                std::cmp::Ordering::Equal => Fin(round == Round::Rm, BigUint::from(0u32), exponent),
            }
        }
    }
}

pub(crate) fn negate(a: &Num) -> Num {
    match a {
        Nan => Nan,
        Inf(s) => Inf(!s),
        Fin(s, m, e) => Fin(!s, m.clone(), *e),
    }
}

pub(crate) fn mul(a: &Num, b: &Num) -> Num {
    let zero = |x: &Num| matches!(x, Fin(_, m, _) if m.bits() == 0);
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Inf(_), x) | (x, Inf(_)) if zero(x) => Nan,
        (Inf(s), Inf(t)) | (Inf(s), Fin(t, ..)) | (Fin(s, ..), Inf(t)) => Inf(s ^ t),
        (Fin(s, m, e), Fin(t, n, f)) => Fin(s ^ t, m * n, e + f),
    }
}

/// The quotient to 200 bits, and whether there is a remainder.
pub(crate) fn div(a: &Num, b: &Num) -> (Num, bool) {
    match (a, b) {
        (Nan, _) | (_, Nan) | (Inf(_), Inf(_)) => (Nan, false),
        (Inf(s), Fin(t, ..)) => (Inf(s ^ t), false),
        (Fin(s, ..), Inf(t)) => (Fin(s ^ t, BigUint::from(0u32), 0), false),
        (Fin(s, m, e), Fin(t, n, f)) => {
            if n.bits() == 0 {
                return (if m.bits() == 0 { Nan } else { Inf(s ^ t) }, false);
            }
            let numerator = m << 200usize;
            let quotient = &numerator / n;
            let sticky = &quotient * n != numerator;
            (Fin(s ^ t, quotient, e - 200 - f), sticky)
        }
    }
}

/// The root to at least 100 bits, and whether there is a remainder.
pub(crate) fn sqrt(a: &Num) -> (Num, bool) {
    match a {
        Nan | Inf(true) => (Nan, false),
        Inf(false) => (Inf(false), false),
        Fin(_, m, _) if m.bits() == 0 => (a.clone(), false),
        Fin(true, ..) => (Nan, false),
        Fin(false, m, e) => {
            let shift = 240 + (e & 1);
            let square = m << shift as usize;
            let root = square.sqrt();
            let sticky = &root * &root != square;
            (Fin(false, root, (e - shift) / 2), sticky)
        }
    }
}
