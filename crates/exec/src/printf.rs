//! The kernel's `printf`: C's conversions, with the arguments in a buffer in device memory.

use std::fmt::Write;

/// The error says what is wrong with the format or its arguments.
pub type Result<T> = std::result::Result<T, String>;

/// Longest string read from device memory, in bytes.
pub const MAX_STRING: usize = 1 << 16;

/// Access to the argument buffer and to strings.
pub trait Arguments {
    /// The argument of `bytes` bytes (4 or 8) at `offset` of the buffer, which is a multiple of `bytes`.
    fn value(&mut self, offset: u64, bytes: u32) -> Result<u64>;
    /// The NUL-terminated string at an address.
    fn string(&mut self, address: u64) -> Result<String>;
}

struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    wide: bool,
    /// Bytes of an integer that are printed: `hh` 1, `h` 2.
    narrow: Option<u32>,
}

/// Formats as C's `printf` does, with CUDA's conversions. Returns the text and the number of conversions done.
pub fn format(format: &str, arguments: &mut impl Arguments) -> Result<(String, u32)> {
    let mut out = String::new();
    let mut used = 0;
    let mut chars = format.chars().peekable();
    let mut offset = 0u64;
    let mut next = |arguments: &mut dyn FnMut(u64, u32) -> Result<u64>, bytes: u32| -> Result<u64> {
        offset = offset.next_multiple_of(bytes as u64);
        let value = arguments(offset, bytes)?;
        offset += bytes as u64;
        Ok(value)
    };
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = Conversion {
            left: false,
            zero: false,
            plus: false,
            space: false,
            alternate: false,
            width: 0,
            precision: None,
            wide: false,
            narrow: None,
        };
        let mut take = |bytes| next(&mut |o, b| arguments.value(o, b), bytes);
        while let Some(&flag) = chars.peek() {
            match flag {
                '-' => spec.left = true,
                '0' => spec.zero = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '#' => spec.alternate = true,
                _ => break,
            }
            chars.next();
        }
        let mut number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<i64>> {
            if chars.next_if_eq(&'*').is_some() {
                return Ok(Some(take(4)? as u32 as i32 as i64));
            }
            let mut value = None;
            while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                value = Some((value.unwrap_or(0i64) * 10 + digit as i64).min(4096));
                chars.next();
            }
            Ok(value)
        };
        if let Some(width) = number(&mut chars)? {
            spec.left |= width < 0;
            spec.width = width.unsigned_abs().min(4096) as usize;
        }
        if chars.next_if_eq(&'.').is_some() {
            let precision = number(&mut chars)?.unwrap_or(0);
            spec.precision = (precision >= 0).then(|| precision.min(4096) as usize);
        }
        while let Some(modifier) = chars.next_if(|c| "lhqjztL".contains(*c)) {
            match modifier {
                'h' => spec.narrow = Some(if spec.narrow.is_some() { 1 } else { 2 }),
                _ => spec.wide = true,
            }
        }
        let Some(kind) = chars.next() else { return Err(format!("`{format}` ends inside a conversion")) };
        let integer_bytes = if spec.wide { 8 } else { 4 };
        let body = match kind {
            '%' => {
                out.push('%');
                continue;
            }
            'd' | 'i' => signed(&spec, sign_extend(take(integer_bytes)?, integer_bytes, spec.narrow)),
            'u' | 'o' | 'x' | 'X' => unsigned(&spec, kind, truncate(take(integer_bytes)?, spec.narrow)),
            'p' => format!("0x{:x}", take(8)?),
            'c' => (take(4)? as u8 as char).to_string(),
            's' => {
                let address = take(8)?;
                let text = if address == 0 { "(null)".to_string() } else { arguments.string(address)? };
                match spec.precision {
                    Some(most) => text.chars().take(most).collect(),
                    None => text,
                }
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' => float(&spec, kind, f64::from_bits(take(8)?)),
            other => return Err(format!("the conversion `%{other}` in `{format}` is not known")),
        };
        used += 1;
        pad(&mut out, &spec, kind, &body);
    }
    Ok((out, used))
}

fn sign_extend(value: u64, bytes: u32, narrow: Option<u32>) -> i64 {
    let drop = 64 - 8 * narrow.unwrap_or(bytes).min(bytes);
    (value << drop) as i64 >> drop
}

fn truncate(value: u64, narrow: Option<u32>) -> u64 {
    match narrow {
        Some(bytes) => value & ((1 << (8 * bytes)) - 1),
        None => value,
    }
}

fn prefix_sign(spec: &Conversion, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

fn min_digits(digits: String, precision: Option<usize>) -> String {
    match precision {
        Some(0) if digits == "0" => String::new(),
        Some(least) if digits.len() < least => format!("{}{digits}", "0".repeat(least - digits.len())),
        _ => digits,
    }
}

fn signed(spec: &Conversion, value: i64) -> String {
    let digits = min_digits(value.unsigned_abs().to_string(), spec.precision);
    format!("{}{digits}", prefix_sign(spec, value < 0))
}

fn unsigned(spec: &Conversion, kind: char, value: u64) -> String {
    let digits = match kind {
        'o' => format!("{value:o}"),
        'x' => format!("{value:x}"),
        'X' => format!("{value:X}"),
        _ => value.to_string(),
    };
    let digits = min_digits(digits, spec.precision);
    match kind {
        'x' if spec.alternate && value != 0 => format!("0x{digits}"),
        'X' if spec.alternate && value != 0 => format!("0X{digits}"),
        'o' if spec.alternate && !digits.starts_with('0') => format!("0{digits}"),
        _ => digits,
    }
}

fn float(spec: &Conversion, kind: char, value: f64) -> String {
    let sign = prefix_sign(spec, value.is_sign_negative() && !value.is_nan());
    let magnitude = value.abs();
    let precision = spec.precision.unwrap_or(6);
    let text = if value.is_nan() {
        "nan".to_string()
    } else if value.is_infinite() {
        "inf".to_string()
    } else {
        match kind.to_ascii_lowercase() {
            'f' => format!("{magnitude:.precision$}"),
            'e' => exponent(magnitude, precision),
            'g' => shortest(magnitude, precision.max(1), spec.alternate),
            _ => hexadecimal(magnitude, spec.precision),
        }
    };
    let text = if kind.is_ascii_uppercase() { text.to_uppercase() } else { text };
    format!("{sign}{text}")
}

fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, power) = text.split_once('e').expect("Rust writes an exponent");
    let power: i32 = power.parse().expect("Rust writes a number");
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", power.abs())
}

fn shortest(value: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponent(value, precision - 1);
    let power: i32 =
        scientific.split_once('e').map_or(0, |(_, p)| p.trim_start_matches('+').parse().unwrap_or(0));
    let trim = |text: String| {
        if keep_zeros || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    if power < -4 || power >= precision as i32 {
        let (digits, power) = scientific.split_once('e').expect("it has an exponent");
        format!("{}e{power}", trim(digits.to_string()))
    } else {
        let decimals = (precision as i32 - 1 - power).max(0) as usize;
        trim(format!("{value:.decimals$}"))
    }
}

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    if value == 0.0 {
        return "0x0p+0".to_string();
    }
    let bits = value.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let mut mantissa = bits & ((1 << 52) - 1);
    let (mut lead, power) = if biased == 0 { (0u64, -1022) } else { (1, biased - 1023) };
    if let Some(digits) = precision.filter(|&d| d < 13) {
        let drop = 52 - 4 * digits as u32;
        let (kept, rest) = (mantissa >> drop, mantissa & ((1 << drop) - 1));
        let half = 1u64 << (drop - 1);
        let odd = if digits == 0 { lead & 1 } else { kept & 1 };
        let kept = kept + (rest > half || rest == half && odd == 1) as u64;
        lead += kept >> (52 - drop);
        mantissa = (kept & ((1 << (52 - drop)) - 1)) << drop;
    }
    let mut digits = format!("{mantissa:013x}");
    match precision {
        Some(most) => digits.truncate(most),
        None => digits.truncate(digits.trim_end_matches('0').len()),
    }
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{power:+}")
}

fn pad(out: &mut String, spec: &Conversion, kind: char, body: &str) {
    let missing = spec.width.saturating_sub(body.chars().count());
    let numeric = !matches!(kind, 'c' | 's' | 'p');
    let zeros = spec.zero
        && !spec.left
        && numeric
        && !(spec.precision.is_some() && matches!(kind, 'd' | 'i' | 'u' | 'o' | 'x' | 'X'))
        && !["nan", "inf"].iter().any(|word| body.to_lowercase().ends_with(word));
    if spec.left {
        let _ = write!(out, "{body}{}", " ".repeat(missing));
    } else if zeros {
        let at = body.find(|c: char| c.is_ascii_hexdigit()).unwrap_or(0);
        let at = if body[at..].starts_with("0x") || body[at..].starts_with("0X") { at + 2 } else { at };
        let _ = write!(out, "{}{}{}", &body[..at], "0".repeat(missing), &body[at..]);
    } else {
        let _ = write!(out, "{}{body}", " ".repeat(missing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct List(Vec<(u64, u64)>);

    impl Arguments for List {
        fn value(&mut self, offset: u64, _bytes: u32) -> Result<u64> {
            let found = self.0.iter().find(|(at, _)| *at == offset);
            found.map(|(_, v)| *v).ok_or(format!("nothing at {offset}"))
        }
        fn string(&mut self, address: u64) -> Result<String> {
            Ok(format!("<{address}>"))
        }
    }

    fn check(text: &str, arguments: &[(u64, u64)], expected: &str) {
        let (out, _) = format(text, &mut List(arguments.to_vec())).unwrap();
        assert_eq!(out, expected, "{text}");
    }

    #[test]
    fn integers() {
        check(
            "%d|%u|%x|%X|%o",
            &[(0, -5i32 as u32 as u64), (4, 7), (8, 255), (12, 255), (16, 8)],
            "-5|7|ff|FF|10",
        );
        check(
            "%5d|%-5d|%05d|%+d",
            &[(0, 42), (4, 42), (8, -42i32 as u32 as u64), (12, 42)],
            "   42|42   |-0042|+42",
        );
        check("%lld %llu", &[(0, -1i64 as u64), (8, u64::MAX)], "-1 18446744073709551615");
        check("%.3d|%#x|%hhd", &[(0, 7), (4, 255), (8, 0x1ff)], "007|0xff|-1");
        check("%d %lld", &[(0, 1), (8, 2)], "1 2");
        check("%*d", &[(0, 4), (4, 9)], "   9");
    }

    #[test]
    fn floats() {
        let bits = f64::to_bits;
        check("%f %.2f %5.1f", &[(0, bits(1.5)), (8, bits(2.345)), (16, bits(-0.25))], "1.500000 2.35  -0.2");
        check(
            "%e %g %g",
            &[(0, bits(12345.678)), (8, bits(0.0001)), (16, bits(1e10))],
            "1.234568e+04 0.0001 1e+10",
        );
        check("%g %g", &[(0, bits(100000.0)), (8, bits(1234567.0))], "100000 1.23457e+06");
        check(
            "%f %f %05.1f",
            &[(0, bits(f64::NAN)), (8, bits(f64::NEG_INFINITY)), (16, bits(2.0))],
            "nan -inf 002.0",
        );
        check("%a %a", &[(0, bits(1.0)), (8, bits(0.15625))], "0x1p+0 0x1.4p-3");
    }

    #[test]
    fn text() {
        check("100%% %c %s %.2s|", &[(0, 'A' as u64), (8, 77), (16, 12345)], "100% A <77> <1|");
        check("%s", &[(0, 0)], "(null)");
        assert!(format("%y", &mut List(vec![])).is_err());
        assert!(format("%", &mut List(vec![])).is_err());
        assert!(format("%d", &mut List(vec![])).is_err());
    }
}
