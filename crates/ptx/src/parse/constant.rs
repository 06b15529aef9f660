//! Constant expressions. They contain no names, so they are evaluated while they are parsed.
//!
//! Integers have 64 bits and are signed unless marked `U`, cast, or too large. An operator is unsigned if one operand
//! is; `~` and `%` always are. Double-precision literals have arithmetic and comparisons. `0f…` literals cannot be
//! part of an expression.

use warploom_isa::Span;

use super::{Parse, Parser};
use crate::ast::Constant;
use crate::diag::Diagnostic;
use crate::lex::Kind;

impl Parser<'_> {
    pub(super) fn constant(&mut self) -> Parse<Constant> {
        self.nested(|p| {
            let start = p.span().start;
            let condition = p.binary(1)?;
            if !p.eat(Kind::Question) {
                return Ok(condition);
            }
            let Constant::Int { bits, .. } = condition else {
                return Err(Diagnostic::new(p.since(start), "the condition of `?:` must be an integer"));
            };
            let yes = p.constant()?;
            p.expect(Kind::Colon)?;
            let no = p.constant()?;
            match (yes, no) {
                (Constant::Int { bits: a, signed: x }, Constant::Int { bits: b, signed: y }) => {
                    Ok(Constant::Int { bits: if bits != 0 { a } else { b }, signed: x && y })
                }
                (Constant::F64(a), Constant::F64(b)) => Ok(Constant::F64(if bits != 0 { a } else { b })),
                _ => Err(Diagnostic::new(p.since(start), "both results of `?:` must be integers or doubles")),
            }
        })
    }

    /// An integer constant expression, as 64 bits.
    pub(super) fn int(&mut self) -> Parse<u64> {
        let start = self.span().start;
        let value = self.constant()?;
        self.as_int(value, start)
    }

    /// A constant expression between 0 and 2³²-1.
    pub(super) fn int_u32(&mut self, what: &str) -> Parse<u32> {
        let start = self.span().start;
        let value = self.int()?;
        u32::try_from(value)
            .map_err(|_| Diagnostic::new(self.since(start), format!("{what} is out of range")))
    }

    /// The sum of `+4-8…` after a name.
    pub(super) fn offset(&mut self) -> Parse<i64> {
        let mut sum = 0u64;
        loop {
            let minus = match self.kind() {
                Kind::Plus => false,
                Kind::Minus => true,
                _ => return Ok(sum as i64),
            };
            self.bump();
            if self.at(Kind::Ident) && self.word() != "WARP_SZ" {
                return Err(Diagnostic::new(self.span(), format!("`{}` is not a constant", self.word()))
                    .label("expected an integer")
                    .help("an address is one register or variable plus a constant"));
            }
            let start = self.span().start;
            let term = self.nested(|p| p.binary(MULTIPLICATIVE))?;
            let term = self.as_int(term, start)?;
            sum = if minus { sum.wrapping_sub(term) } else { sum.wrapping_add(term) };
        }
    }

    fn as_int(&self, value: Constant, start: u32) -> Parse<u64> {
        match value {
            Constant::Int { bits, .. } => Ok(bits),
            _ => {
                Err(Diagnostic::new(self.since(start), "expected an integer, found a floating-point number"))
            }
        }
    }

    /// Parses operators of at least this precedence.
    fn binary(&mut self, min: u8) -> Parse<Constant> {
        let start = self.span().start;
        let mut left = self.unary()?;
        while let Some(precedence) = precedence(self.kind()).filter(|&p| p >= min) {
            let operator = self.bump();
            let right = self.binary(precedence + 1)?;
            left = apply(operator.kind, left, right, self.since(start))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parse<Constant> {
        let start = self.span().start;
        let operator = self.kind();
        match operator {
            Kind::Plus | Kind::Minus | Kind::Tilde | Kind::Bang => {
                self.bump();
                let value = self.nested(Self::unary)?;
                let span = self.since(start);
                match (operator, value) {
                    (Kind::Minus, Constant::F64(x)) => Ok(Constant::F64(-x)),
                    (Kind::Plus, Constant::F64(x)) => Ok(Constant::F64(x)),
                    (_, Constant::Int { bits, signed }) => Ok(match operator {
                        Kind::Minus => Constant::Int { bits: bits.wrapping_neg(), signed },
                        Kind::Tilde => Constant::Int { bits: !bits, signed: false },
                        Kind::Bang => truth(bits == 0),
                        _ => value,
                    }),
                    _ => Err(Diagnostic::new(span, "this operator does not apply to this number")),
                }
            }
            Kind::ParenOpen => {
                self.bump();
                for (cast, signed) in [(".s64", true), (".u64", false)] {
                    if self.eat_word(cast) {
                        self.expect(Kind::ParenClose)?;
                        let value = self.nested(Self::unary)?;
                        return Ok(Constant::Int { bits: self.as_int(value, start)?, signed });
                    }
                }
                let value = self.constant()?;
                self.expect(Kind::ParenClose)?;
                Ok(value)
            }
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Parse<Constant> {
        let word = self.word();
        let bad = |p: &Self, what: &str| Diagnostic::new(p.span(), format!("{what} `{word}`"));
        let value = match self.kind() {
            Kind::Int => {
                let digits = word.strip_suffix('U').unwrap_or(word);
                let (digits, radix) = match digits.as_bytes() {
                    [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
                    [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
                    [b'0', _, ..] => (&digits[1..], 8),
                    _ => (digits, 10),
                };
                if radix == 8 && digits.contains(['8', '9']) {
                    return Err(bad(self, "malformed octal number"));
                }
                let bits =
                    u64::from_str_radix(digits, radix).map_err(|_| bad(self, "more than 64 bits in"))?;
                Constant::Int { bits, signed: !word.ends_with('U') && bits <= i64::MAX as u64 }
            }
            Kind::HexF32 => {
                Constant::F32(u32::from_str_radix(&word[2..], 16).map_err(|_| bad(self, "malformed number"))?)
            }
            Kind::HexF64 => {
                let bits = u64::from_str_radix(&word[2..], 16).map_err(|_| bad(self, "malformed number"))?;
                Constant::F64(f64::from_bits(bits))
            }
            Kind::Decimal => Constant::F64(word.parse().map_err(|_| bad(self, "malformed number"))?),
            // `.5`
            Kind::DotWord if word.as_bytes()[1].is_ascii_digit() => {
                Constant::F64(word.parse().map_err(|_| self.unexpected("a number"))?)
            }
            Kind::Ident if word == "WARP_SZ" => Constant::Int { bits: 32, signed: true },
            _ => return Err(self.unexpected("a number")),
        };
        self.bump();
        Ok(value)
    }
}

const MULTIPLICATIVE: u8 = 10;

fn precedence(kind: Kind) -> Option<u8> {
    Some(match kind {
        Kind::OrOr => 1,
        Kind::AndAnd => 2,
        Kind::Or => 3,
        Kind::Xor => 4,
        Kind::And => 5,
        Kind::EqualEqual | Kind::NotEqual => 6,
        Kind::Less | Kind::Greater | Kind::LessEqual | Kind::GreaterEqual => 7,
        Kind::ShiftLeft | Kind::ShiftRight => 8,
        Kind::Plus | Kind::Minus => 9,
        Kind::Star | Kind::Slash | Kind::Percent => MULTIPLICATIVE,
        _ => return None,
    })
}

fn truth(value: bool) -> Constant {
    Constant::Int { bits: value.into(), signed: true }
}

fn apply(operator: Kind, left: Constant, right: Constant, span: Span) -> Parse<Constant> {
    match (left, right) {
        (Constant::Int { bits: a, signed: x }, Constant::Int { bits: b, signed: y }) => {
            apply_int(operator, (a, x), (b, y)).ok_or_else(|| Diagnostic::new(span, "division by zero"))
        }
        (Constant::F64(a), Constant::F64(b)) => Ok(match operator {
            Kind::Plus => Constant::F64(a + b),
            Kind::Minus => Constant::F64(a - b),
            Kind::Star => Constant::F64(a * b),
            Kind::Slash => Constant::F64(a / b),
            Kind::Less => truth(a < b),
            Kind::Greater => truth(a > b),
            Kind::LessEqual => truth(a <= b),
            Kind::GreaterEqual => truth(a >= b),
            Kind::EqualEqual => truth(a == b),
            Kind::NotEqual => truth(a != b),
            _ => return Err(Diagnostic::new(span, "this operator does not apply to floating-point numbers")),
        }),
        _ => Err(Diagnostic::new(span, "a constant expression must be all integers or all doubles")),
    }
}

/// `None` for a division by zero.
fn apply_int(operator: Kind, (a, x): (u64, bool), (b, y): (u64, bool)) -> Option<Constant> {
    let signed = x && y;
    let (i, j) = (a as i64, b as i64);
    let int = |bits| Constant::Int { bits, signed };
    // A shift by 64 or more gives zero, or the sign in every bit.
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    Some(match operator {
        Kind::Plus => int(a.wrapping_add(b)),
        Kind::Minus => int(a.wrapping_sub(b)),
        Kind::Star => int(a.wrapping_mul(b)),
        Kind::Slash if b == 0 => return None,
        Kind::Slash if signed => int(i.wrapping_div(j) as u64),
        Kind::Slash => int(a / b),
        Kind::Percent => Constant::Int { bits: a.checked_rem(b)?, signed: false },
        Kind::ShiftLeft => Constant::Int { bits: a.checked_shl(shift).unwrap_or(0), signed: x },
        Kind::ShiftRight if x => Constant::Int { bits: (i >> shift.min(63)) as u64, signed: x },
        Kind::ShiftRight => Constant::Int { bits: a.checked_shr(shift).unwrap_or(0), signed: x },
        Kind::And => int(a & b),
        Kind::Or => int(a | b),
        Kind::Xor => int(a ^ b),
        Kind::AndAnd => truth(a != 0 && b != 0),
        Kind::OrOr => truth(a != 0 || b != 0),
        Kind::EqualEqual => truth(a == b),
        Kind::NotEqual => truth(a != b),
        Kind::Less => truth(if signed { i < j } else { a < b }),
        Kind::Greater => truth(if signed { i > j } else { a > b }),
        Kind::LessEqual => truth(if signed { i <= j } else { a <= b }),
        _ => truth(if signed { i >= j } else { a >= b }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(text: &str) -> Result<Constant, String> {
        let mut parser = Parser::new(text);
        let value = parser.constant().map_err(|e| e.message)?;
        assert!(parser.at(Kind::Eof), "rest after {text}");
        Ok(value)
    }

    fn int(text: &str) -> i64 {
        match eval(text).unwrap() {
            Constant::Int { bits, .. } => bits as i64,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn integers() {
        for (text, value) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 2 - 3", 5),
            ("1 << 4 | 1", 17),
            ("-7 / 2", -3),
            ("-7 >> 1", -4),
            ("1 ? 2 : 3", 2),
            ("0 ? 2 : 0 ? 3 : 4", 4),
            ("!5 + !0", 1),
            ("~0", -1),
            ("10 % 3", 1),
            ("-1 < 1", 1),
            ("-1 < 1U", 0),
            ("(.s64)0xFFFFFFFFFFFFFFFF < 0", 1),
            ("(.u64) -1 < 0", 0),
            ("WARP_SZ * 2", 64),
            ("017 + 0x10 + 0b11", 34),
            ("1 << 64", 0),
            ("-1 >> 200", -1),
            ("2 == 2 && 3 != 4 || 0", 1),
            ("6 & 3 ^ 1", 3),
            ("0x8000000000000000 / -1", 0),
        ] {
            assert_eq!(int(text), value, "{text}");
        }
    }

    #[test]
    fn floats() {
        assert_eq!(eval("0f3F800000"), Ok(Constant::F32(0x3F80_0000)));
        assert_eq!(eval("-1.5 + 2.0"), Ok(Constant::F64(0.5)));
        assert_eq!(eval(".5"), Ok(Constant::F64(0.5)));
        assert_eq!(eval("0d3FF0000000000000"), Ok(Constant::F64(1.0)));
        assert!(eval("-0f3F800000").is_err());
        assert!(eval("1 + 1.0").is_err());
    }

    #[test]
    fn refused() {
        assert_eq!(eval("1 / 0").unwrap_err(), "division by zero");
        assert_eq!(eval("1 % 0").unwrap_err(), "division by zero");
        assert_eq!(eval("08").unwrap_err(), "malformed octal number `08`");
        assert_eq!(eval("99999999999999999999").unwrap_err(), "more than 64 bits in `99999999999999999999`");
        assert!(eval(&"(".repeat(100_000)).unwrap_err().contains("nested deeper"));
        assert!(eval(&"-".repeat(100_000)).unwrap_err().contains("nested deeper"));
        assert!(eval(&"1?".repeat(100_000)).unwrap_err().contains("nested deeper"));
    }
}
