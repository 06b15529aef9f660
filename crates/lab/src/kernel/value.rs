//! Numbers as people write them: text to bytes and back.

use half::{bf16, f16};
use serde_json::{Value, json};
use warploom::isa::Ty;

/// The types that an argument can have.
const TYPES: [Ty; 16] = [
    Ty::S8,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::U8,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::B8,
    Ty::B16,
    Ty::B32,
    Ty::B64,
    Ty::F16,
    Ty::BF16,
    Ty::F32,
    Ty::F64,
];

pub(super) fn parse_type(name: &str) -> Result<Ty, String> {
    TYPES.into_iter().find(|ty| ty.name() == name).ok_or_else(|| {
        let known = TYPES.map(Ty::name).join(", ");
        format!("no type `{name}`; there are {known}")
    })
}

/// Parses a number into the little-endian bytes of its type.
pub(super) fn parse_value(ty: Ty, text: &str) -> Result<Vec<u8>, String> {
    if ty.is_float() { parse_float(ty, text) } else { parse_int(ty, text) }
}

fn parse_float(ty: Ty, text: &str) -> Result<Vec<u8>, String> {
    let digits = text.replace('_', "");
    let bits = ty.bits();
    if digits.trim_start_matches('-').starts_with("0x") {
        return Err(format!("`{text}` is no {ty}; a bit pattern is written as b{bits}:{text}"));
    }
    let bad = |_| format!("`{text}` is no {ty}");
    // Each type parses the decimal text itself: rounding twice could be off by one.
    Ok(match ty {
        Ty::F64 => digits.parse::<f64>().map_err(bad)?.to_le_bytes().to_vec(),
        Ty::F32 => digits.parse::<f32>().map_err(bad)?.to_le_bytes().to_vec(),
        Ty::BF16 => bf16::from_f64(digits.parse::<f64>().map_err(bad)?).to_le_bytes().to_vec(),
        _ => f16::from_f64(digits.parse::<f64>().map_err(bad)?).to_le_bytes().to_vec(),
    })
}

fn parse_int(ty: Ty, text: &str) -> Result<Vec<u8>, String> {
    let digits = text.replace('_', "");
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    // `from_str_radix` would accept a second sign.
    let magnitude = digits.bytes().next().filter(|b| b.is_ascii_hexdigit());
    let magnitude = magnitude.and_then(|_| i128::from_str_radix(digits, radix).ok());
    let magnitude = magnitude.ok_or_else(|| format!("`{text}` is no {ty}"))?;
    let value = if negative { -magnitude } else { magnitude };

    let (signed_min, signed_max) = (-(1i128 << (ty.bits() - 1)), (1i128 << (ty.bits() - 1)) - 1);
    let unsigned_max = (1i128 << ty.bits()) - 1;
    let (min, max) = match ty {
        Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 => (0, unsigned_max),
        // Untyped integers take either sign, and so does hexadecimal, which is a bit pattern.
        _ if !ty.is_signed() || radix != 10 => (signed_min, unsigned_max),
        _ => (signed_min, signed_max),
    };
    if value < min || value > max {
        return Err(format!("{text} does not fit {ty}, which goes from {min} to {max}"));
    }
    Ok(value.to_le_bytes()[..ty.bytes() as usize].to_vec())
}

/// Formats a number, floats with the fewest digits that read back the same. `bytes` must have the type's size.
pub fn format_value(ty: Ty, bytes: &[u8]) -> String {
    // Very large and very small numbers would be long rows of zeros.
    let float = |plain: String, scientific: String| if plain.len() > 20 { scientific } else { plain };
    match ty {
        Ty::F16 => f16::from_le_bytes(array(bytes)).to_string(),
        Ty::BF16 => {
            let x = bf16::from_le_bytes(array(bytes));
            float(x.to_string(), format!("{x:e}"))
        }
        Ty::F32 => {
            let x = f32::from_le_bytes(array(bytes));
            float(x.to_string(), format!("{x:e}"))
        }
        Ty::F64 => {
            let x = f64::from_le_bytes(array(bytes));
            float(x.to_string(), format!("{x:e}"))
        }
        _ if ty.is_signed() => signed(bytes).to_string(),
        Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 => format!("{:#x}", unsigned(bytes)),
        _ => unsigned(bytes).to_string(),
    }
}

/// A number as a double, for comparisons that need not be exact. Infinities are no numbers.
pub(crate) fn number(ty: Ty, bytes: &[u8]) -> f64 {
    json_value(ty, bytes).as_f64().unwrap_or(f64::NAN)
}

/// A number for JSON. Infinities and NaN, which JSON has no number for, become text.
pub fn json_value(ty: Ty, bytes: &[u8]) -> Value {
    let float = match ty {
        Ty::F16 => f16::from_le_bytes(array(bytes)).to_f64(),
        Ty::BF16 => bf16::from_le_bytes(array(bytes)).to_f64(),
        // Parse the shortest decimal text of the f32: widening to f64 would print more digits.
        Ty::F32 => f32::from_le_bytes(array(bytes)).to_string().parse().unwrap_or(f64::NAN),
        Ty::F64 => f64::from_le_bytes(array(bytes)),
        _ if ty.is_signed() => return json!(signed(bytes)),
        _ => return json!(unsigned(bytes)),
    };
    if float.is_finite() { json!(float) } else { json!(format_value(ty, bytes)) }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64)
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len() as u32;
    (unsigned(bytes) << unused) as i64 >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(ty: Ty, text: &str) -> String {
        format_value(ty, &parse_value(ty, text).unwrap())
    }

    #[test]
    fn integers() {
        assert_eq!(round_trip(Ty::S32, "-5"), "-5");
        assert_eq!(round_trip(Ty::S32, "0xffffffff"), "-1");
        assert_eq!(round_trip(Ty::U64, "18_446_744_073_709_551_615"), "18446744073709551615");
        assert_eq!(round_trip(Ty::S64, "-9223372036854775808"), "-9223372036854775808");
        assert_eq!(round_trip(Ty::B16, "-1"), "0xffff");
        assert_eq!(round_trip(Ty::U8, "0b1010"), "10");
        for (ty, text) in [
            (Ty::U32, "-1"),
            (Ty::U8, "256"),
            (Ty::S8, "128"),
            (Ty::U32, "1.5"),
            (Ty::U32, ""),
            (Ty::U32, "0x"),
            (Ty::U32, "--1"),
            (Ty::U32, "0x-1"),
            (Ty::U32, "+-1"),
            (Ty::U64, "999999999999999999999999999999999999999999"),
            (Ty::U32, "ü"),
        ] {
            assert!(parse_value(ty, text).is_err(), "{ty}:{text}");
        }
    }

    #[test]
    fn floats() {
        assert_eq!(round_trip(Ty::F32, "1.5"), "1.5");
        assert_eq!(round_trip(Ty::F32, "0.1"), "0.1");
        assert_eq!(round_trip(Ty::F32, "2"), "2");
        assert_eq!(round_trip(Ty::F32, "nan"), "NaN");
        assert_eq!(round_trip(Ty::F64, "-inf"), "-inf");
        assert_eq!(round_trip(Ty::F64, "1e300"), "1e300");
        assert_eq!(round_trip(Ty::F32, "-1e-40"), "-1e-40");
        assert_eq!(round_trip(Ty::F32, "16777216"), "16777216");
        assert_eq!(round_trip(Ty::F32, "0.0001"), "0.0001");
        assert_eq!(round_trip(Ty::F16, "0.5"), "0.5");
        assert_eq!(round_trip(Ty::BF16, "-3"), "-3");
        assert!(parse_value(Ty::F32, "0x3f800000").unwrap_err().contains("b32:0x3f800000"));
        assert!(parse_value(Ty::F32, "one").is_err());
    }

    #[test]
    fn json() {
        assert_eq!(json_value(Ty::F32, &0.1f32.to_le_bytes()).to_string(), "0.1");
        assert_eq!(json_value(Ty::F32, &f32::INFINITY.to_le_bytes()).to_string(), "\"inf\"");
        assert_eq!(json_value(Ty::S8, &[0xff]).to_string(), "-1");
        assert_eq!(json_value(Ty::B8, &[0xff]).to_string(), "255");
    }
}
