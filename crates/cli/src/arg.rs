//! Options of `run` with their own syntax: `--dump` and `--save`. Arguments are `warploom_lab::kernel`'s.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use warploom_lab::kernel::parse_count;

/// A buffer of the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BufferRef {
    /// That of an argument, from 0.
    Index(usize),
    /// That of a parameter, or a plan's.
    Name(String),
}

impl BufferRef {
    /// Its place among parameters of these names.
    pub(crate) fn find(&self, names: &[String]) -> Option<usize> {
        match self {
            BufferRef::Index(index) => Some(*index).filter(|index| *index < names.len()),
            BufferRef::Name(name) => names.iter().position(|known| known == name),
        }
    }
}

impl fmt::Display for BufferRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferRef::Index(index) => write!(f, "{index}"),
            BufferRef::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for BufferRef {
    type Err = String;

    fn from_str(text: &str) -> Result<BufferRef, String> {
        if let Ok(index) = text.parse() {
            return Ok(BufferRef::Index(index));
        }
        match text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            true => Ok(BufferRef::Name(text.to_string())),
            false => Err(format!("`{text}` is no argument's number, from 0, and no name")),
        }
    }
}

/// `--dump I|NAME[:N]`: print the first N elements of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DumpSpec {
    pub buffer: BufferRef,
    /// All elements if not given.
    pub count: Option<usize>,
}

impl FromStr for DumpSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<DumpSpec, String> {
        let (buffer, count) =
            text.split_once(':').map_or((text, None), |(buffer, count)| (buffer, Some(count)));
        Ok(DumpSpec { buffer: buffer.parse()?, count: count.map(parse_count).transpose()? })
    }
}

/// `--save I|NAME=FILE`: write a buffer to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaveSpec {
    pub buffer: BufferRef,
    pub file: PathBuf,
}

impl FromStr for SaveSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<SaveSpec, String> {
        match text.split_once('=') {
            Some((buffer, file)) if !file.is_empty() => {
                Ok(SaveSpec { buffer: buffer.parse()?, file: file.into() })
            }
            _ => Err("write I=FILE, with I the number of an argument, from 0, or its name".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_and_saves() {
        let bins = || BufferRef::Name("bins".to_string());
        assert_eq!("2".parse(), Ok(DumpSpec { buffer: BufferRef::Index(2), count: None }));
        assert_eq!("bins:8".parse(), Ok(DumpSpec { buffer: bins(), count: Some(8) }));
        assert!("-1:8".parse::<DumpSpec>().is_err());
        assert_eq!(
            "0=out=1.bin".parse(),
            Ok(SaveSpec { buffer: BufferRef::Index(0), file: "out=1.bin".into() })
        );
        assert_eq!("bins=b".parse(), Ok(SaveSpec { buffer: bins(), file: "b".into() }));
        assert!("0=".parse::<SaveSpec>().is_err());
        assert!("out.bin".parse::<SaveSpec>().is_err());
    }

    #[test]
    fn buffers_are_found() {
        let names = ["data", "bins"].map(String::from);
        let found = |text: &str| text.parse::<BufferRef>().unwrap().find(&names);
        assert_eq!(["0", "1", "2", "bins", "none"].map(found), [Some(0), Some(1), None, Some(1), None]);
    }
}
