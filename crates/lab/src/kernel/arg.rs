//! Arguments and shapes of a launch as text: `u32:7`, `buf:f32:1024=iota`, `64,64`.

use std::path::PathBuf;
use std::str::FromStr;

use warploom::isa::Ty;

use super::value::{parse_type, parse_value};

/// The value of a kernel parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgSpec {
    /// `s32:-5`, as little-endian bytes.
    Scalar { ty: Ty, bytes: Vec<u8> },
    /// `bytes:00ff`: a struct, in hexadecimal.
    Bytes(Vec<u8>),
    /// `buf:f32:1024=iota`.
    Buffer(BufferSpec),
}

/// An argument by position, `u32:7`, or by the name of its parameter, `n=u32:7`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedArg {
    pub name: Option<String>,
    pub spec: ArgSpec,
}

impl FromStr for NamedArg {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedArg, String> {
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        };
        Ok(match text.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, spec)) => NamedArg { name: Some(name.to_string()), spec: spec.parse()? },
            None => NamedArg { name: None, spec: text.parse()? },
        })
    }
}

/// A buffer and its initial content.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferSpec {
    pub ty: Ty,
    /// Number of elements.
    pub count: usize,
    pub fill: Fill,
}

/// The initial content of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    Zero,
    /// 0, 1, 2 …
    Iota,
    /// Random numbers, reproducible by their seed: integers over their whole range, floats from 0 up to 1.
    Random(u64),
    /// One number everywhere, as its bytes.
    Value(Vec<u8>),
    /// These numbers, as their bytes.
    List(Vec<u8>),
    /// Nothing: the check of uninitialised reads reports kernels that read it.
    Uninit,
    /// Raw little-endian bytes of a file.
    File(PathBuf),
}

/// The forms of an argument, for messages.
const FORMS: &str =
    "write TYPE:VALUE (u32:7, f32:1.5), buf:TYPE:COUNT=FILL (buf:u32:1024=zero), bytes:HEX or null";

/// The forms of a buffer's content, for messages.
const FILLS: &str = "zero, iota, random[:SEED], value:V, list:V,V,…, uninit or @FILE";

impl FromStr for ArgSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ArgSpec, String> {
        if text == "null" {
            return Ok(ArgSpec::Scalar { ty: Ty::U64, bytes: vec![0; 8] });
        }
        let (kind, rest) = text.split_once(':').ok_or_else(|| FORMS.to_string())?;
        match kind {
            "buf" => rest.parse().map(ArgSpec::Buffer),
            "bytes" => parse_hex(rest).map(ArgSpec::Bytes),
            _ => {
                let ty = parse_type(kind).map_err(|error| format!("{error}; {FORMS}"))?;
                Ok(ArgSpec::Scalar { ty, bytes: parse_value(ty, rest)? })
            }
        }
    }
}

impl FromStr for BufferSpec {
    type Err = String;

    /// Parses what follows `buf:`.
    fn from_str(text: &str) -> Result<BufferSpec, String> {
        let (shape, fill) = text
            .split_once('=')
            .ok_or_else(|| format!("a buffer needs its content: buf:{text}=FILL with {FILLS}"))?;
        let (ty, count) = shape
            .split_once(':')
            .ok_or_else(|| format!("a buffer needs its length: buf:{shape}:COUNT={fill}"))?;
        let ty = parse_type(ty)?;
        let count = parse_count(count)?;
        let fill = parse_fill(ty, count, fill)?;
        Ok(BufferSpec { ty, count, fill })
    }
}

impl BufferSpec {
    /// Size in bytes, unless that overflows.
    pub fn bytes(&self) -> Option<usize> {
        self.count.checked_mul(self.ty.bytes() as usize)
    }
}

fn parse_fill(ty: Ty, count: usize, text: &str) -> Result<Fill, String> {
    if let Some(path) = text.strip_prefix('@') {
        return Ok(Fill::File(path.into()));
    }
    let (kind, detail) = text.split_once(':').map_or((text, None), |(kind, detail)| (kind, Some(detail)));
    match (kind, detail) {
        ("zero", None) => Ok(Fill::Zero),
        ("iota", None) => Ok(Fill::Iota),
        ("uninit", None) => Ok(Fill::Uninit),
        ("random", None) => Ok(Fill::Random(0)),
        ("random", Some(seed)) => seed
            .parse()
            .map(Fill::Random)
            .map_err(|_| format!("`{seed}` is no seed; give a number from 0 on")),
        ("value", Some(value)) => parse_value(ty, value).map(Fill::Value),
        ("list", Some(values)) => {
            let values = values.split(',').map(|v| parse_value(ty, v)).collect::<Result<Vec<_>, _>>()?;
            if values.len() != count {
                return Err(format!("the list has {} values, the buffer {count}", values.len()));
            }
            Ok(Fill::List(values.concat()))
        }
        _ => Err(format!("`{text}` is no content of a buffer; there are {FILLS}")),
    }
}

/// Parses a count. `_` may group digits.
pub fn parse_count(text: &str) -> Result<usize, String> {
    text.replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is no count; give a plain number such as 1_048_576"))
}

fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace('_', "");
    let bad =
        || format!("`{text}` is no row of bytes; give two hexadecimal digits for each, the first byte first");
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(bad());
    }
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|_| bad())).collect()
}

/// Parses a grid or a block: `X`, `X,Y` or `X,Y,Z`, with `x` allowed for the comma.
pub fn parse_dims(text: &str) -> Result<[u32; 3], String> {
    let parts = text.split([',', 'x']).map(|part| part.trim().replace('_', "").parse());
    match parts.collect::<Result<Vec<u32>, _>>().as_deref() {
        Ok(&[x]) => Ok([x, 1, 1]),
        Ok(&[x, y]) => Ok([x, y, 1]),
        Ok(&[x, y, z]) => Ok([x, y, z]),
        _ => Err("give one to three numbers: 4096, 64,64 or 8,8,4".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(text: &str) -> BufferSpec {
        match text.parse() {
            Ok(ArgSpec::Buffer(buffer)) => buffer,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn scalars() {
        assert_eq!(
            "s32:-5".parse(),
            Ok(ArgSpec::Scalar { ty: Ty::S32, bytes: vec![0xfb, 0xff, 0xff, 0xff] })
        );
        assert_eq!("null".parse(), "u64:0".parse::<ArgSpec>());
        assert_eq!("bytes:00_ff1A".parse(), Ok(ArgSpec::Bytes(vec![0, 0xff, 0x1a])));
    }

    #[test]
    fn buffers() {
        assert_eq!(buffer("buf:f32:1_024=iota"), BufferSpec { ty: Ty::F32, count: 1024, fill: Fill::Iota });
        assert_eq!(buffer("buf:u8:0=zero").fill, Fill::Zero);
        assert_eq!(buffer("buf:u8:9=random").fill, Fill::Random(0));
        assert_eq!(buffer("buf:u8:9=random:7").fill, Fill::Random(7));
        assert_eq!(buffer("buf:u16:9=value:0x102").fill, Fill::Value(vec![2, 1]));
        assert_eq!(buffer("buf:u8:3=list:1,2,3").fill, Fill::List(vec![1, 2, 3]));
        assert_eq!(buffer("buf:u8:3=@a=b:c").fill, Fill::File("a=b:c".into()));
        assert_eq!(buffer("buf:u8:3=uninit").fill, Fill::Uninit);
    }

    #[test]
    fn names() {
        let named = |text: &str| text.parse::<NamedArg>().map(|arg| (arg.name, arg.spec));
        assert_eq!(named("u32:7"), Ok((None, "u32:7".parse().unwrap())));
        assert_eq!(named("n=u32:7"), Ok((Some("n".to_string()), "u32:7".parse().unwrap())));
        let bins = "buf:u32:4=zero";
        assert_eq!(named(bins), Ok((None, bins.parse().unwrap())));
        assert_eq!(named(&format!("_b1={bins}")), Ok((Some("_b1".to_string()), bins.parse().unwrap())));
        assert!(named("n=7").unwrap_err().contains("write TYPE:VALUE"));
    }

    #[test]
    fn wrong_arguments_say_what_is_right() {
        for (text, part) in [
            ("5", "write TYPE:VALUE"),
            ("q32:5", "no type `q32`"),
            ("buf:f32:16", "needs its content: buf:f32:16=FILL"),
            ("buf:f32=zero", "needs its length: buf:f32:COUNT=zero"),
            ("buf:f32:many=zero", "`many` is no count"),
            ("buf:f32:1M=zero", "`1M` is no count"),
            ("buf:f32:16=ones", "`ones` is no content"),
            ("buf:f32:16=random:x", "`x` is no seed"),
            ("buf:f32:3=list:1,2", "the list has 2 values, the buffer 3"),
            ("bytes:123", "two hexadecimal digits"),
            ("bytes:zz", "two hexadecimal digits"),
            ("u8:300", "does not fit u8, which goes from 0 to 255"),
        ] {
            let error = text.parse::<ArgSpec>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn extents() {
        assert_eq!(parse_dims("4096"), Ok([4096, 1, 1]));
        assert_eq!(parse_dims("16,8"), Ok([16, 8, 1]));
        assert_eq!(parse_dims("4x3x2"), Ok([4, 3, 2]));
        for text in ["", "a", "1,2,3,4", "-1", "1,,2", "4294967296"] {
            assert!(parse_dims(text).is_err(), "{text}");
        }
    }
}
