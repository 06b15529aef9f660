//! Options of `run` with their own syntax: `--dump` and `--save`. Arguments are `warploom_lab::kernel`'s.

use std::path::PathBuf;
use std::str::FromStr;

use warploom_lab::kernel::parse_count;

/// `--dump I[:N]`: print the first N elements of argument I's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DumpSpec {
    /// Index of the argument, from 0.
    pub arg: usize,
    /// All elements if not given.
    pub count: Option<usize>,
}

impl FromStr for DumpSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<DumpSpec, String> {
        let (arg, count) = text.split_once(':').map_or((text, None), |(arg, count)| (arg, Some(count)));
        Ok(DumpSpec { arg: parse_index(arg)?, count: count.map(parse_count).transpose()? })
    }
}

/// `--save I=FILE`: write argument I's buffer to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaveSpec {
    /// Index of the argument, from 0.
    pub arg: usize,
    pub file: PathBuf,
}

impl FromStr for SaveSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<SaveSpec, String> {
        match text.split_once('=') {
            Some((arg, file)) if !file.is_empty() => {
                Ok(SaveSpec { arg: parse_index(arg)?, file: file.into() })
            }
            _ => Err("write I=FILE, with I the number of an argument, from 0".to_string()),
        }
    }
}

fn parse_index(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no argument's number; arguments count from 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_and_saves() {
        assert_eq!("2".parse(), Ok(DumpSpec { arg: 2, count: None }));
        assert_eq!("2:8".parse(), Ok(DumpSpec { arg: 2, count: Some(8) }));
        assert!("x:8".parse::<DumpSpec>().is_err());
        assert_eq!("0=out=1.bin".parse(), Ok(SaveSpec { arg: 0, file: "out=1.bin".into() }));
        assert!("0=".parse::<SaveSpec>().is_err());
        assert!("out.bin".parse::<SaveSpec>().is_err());
    }
}
