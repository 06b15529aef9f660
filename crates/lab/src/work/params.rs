//! Parameters of a workload: whole numbers, or one of a few words.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Workload;

/// A parameter of a workload. `Values::get` looks its value up by this description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Param {
    /// Such as `size`.
    pub name: &'static str,
    pub about: &'static str,
    pub default: i64,
    pub min: i64,
    pub max: i64,
    pub multiple_of: i64,
    /// Not empty for a parameter that is one of these words. A value is then the index of its word, by default 0.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub words: &'static [&'static str],
}

/// The seed of random input. The default is the same in every workload.
pub(crate) const SEED: Param = Param::new("seed", "seed of the random input", 1).range(0, i64::MAX);

impl Param {
    /// A number, by default from 1 to the largest of 32 bits.
    pub(crate) const fn new(name: &'static str, about: &'static str, default: i64) -> Param {
        Param { name, about, default, min: 1, max: u32::MAX as i64, multiple_of: 1, words: &[] }
    }

    /// One of a few words. The first is the default.
    pub(crate) const fn word(
        name: &'static str,
        about: &'static str,
        words: &'static [&'static str],
    ) -> Param {
        Param { name, about, default: 0, min: 0, max: words.len() as i64 - 1, multiple_of: 1, words }
    }

    /// Formats a value as the user writes it.
    pub fn text(&self, value: i64) -> String {
        let word = usize::try_from(value).ok().and_then(|at| self.words.get(at));
        word.map_or_else(|| value.to_string(), |word| word.to_string())
    }

    /// Sets the bounds.
    pub(crate) const fn range(self, min: i64, max: i64) -> Param {
        Param { min, max, ..self }
    }

    /// Restricts values to multiples of a number.
    pub(crate) const fn multiple_of(self, multiple_of: i64) -> Param {
        Param { multiple_of, ..self }
    }

    fn parse(&'static self, workload: &Workload, text: &str) -> Result<i64, ParamError> {
        let wrong = |wanted| ParamError::BadValue {
            workload: workload.name,
            param: self,
            given: text.to_string(),
            wanted,
        };
        if !self.words.is_empty() {
            let at = self.words.iter().position(|word| *word == text);
            return at.map(|at| at as i64).ok_or_else(|| wrong(format!("one of {}", self.words.join(", "))));
        }
        let value: i64 =
            text.replace('_', "").parse().map_err(|_| wrong("a whole number such as 1_024".to_string()))?;
        if value < self.min || value > self.max {
            return Err(wrong(format!("a number from {} to {}", self.min, self.max)));
        }
        if value % self.multiple_of != 0 {
            return Err(wrong(format!("a multiple of {}", self.multiple_of)));
        }
        Ok(value)
    }
}

/// The values of all parameters of a workload. Displayed as `size=62 penalty=10 seed=1`; an object in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(Vec<(&'static Param, i64)>);

impl Values {
    pub(super) fn parse<S: AsRef<str>>(workload: &Workload, given: &[S]) -> Result<Values, ParamError> {
        let mut values: Vec<(&Param, Option<i64>)> = workload.params.iter().map(|p| (p, None)).collect();
        for text in given.iter().map(S::as_ref) {
            let (name, value) = text.split_once('=').ok_or_else(|| ParamError::NoValue(text.to_string()))?;
            let Some((param, slot)) = values.iter_mut().find(|(p, _)| p.name == name) else {
                return Err(ParamError::NoParam {
                    workload: workload.name,
                    name: name.to_string(),
                    known: workload.params.iter().map(|p| p.name).collect(),
                });
            };
            if slot.replace(param.parse(workload, value)?).is_some() {
                return Err(ParamError::Twice { workload: workload.name, name: param.name });
            }
        }
        Ok(Values(values.into_iter().map(|(param, value)| (param, value.unwrap_or(param.default))).collect()))
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// If the value is within the bounds of the parameter, but does not fit `T`.
    pub(crate) fn get<T: TryFrom<i64>>(&self, param: &Param) -> T {
        let given = self.0.iter().find(|(p, _)| p.name == param.name);
        let value = given.map_or(param.default, |(_, value)| *value);
        T::try_from(value).unwrap_or_else(|_| panic!("{}={value} is out of its bounds", param.name))
    }

    /// The word of a parameter with words.
    pub(crate) fn word(&self, param: &Param) -> &'static str {
        param.words.get(self.get::<usize>(param)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<_> =
            self.0.iter().map(|(param, value)| format!("{}={}", param.name, param.text(*value))).collect();
        f.write_str(&pairs.join(" "))
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (param, value) in &self.0 {
            match param.words {
                [] => map.serialize_entry(param.name, value)?,
                _ => map.serialize_entry(param.name, &param.text(*value))?,
            }
        }
        map.end()
    }
}

/// Why there is no such workload, or not with these parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    #[error("no workload `{name}`; there are {}", known.join(", "))]
    NoWorkload { name: String, known: Vec<&'static str> },
    #[error("workload `{workload}` has no parameter `{name}`; it has {}", known.join(", "))]
    NoParam { workload: &'static str, name: String, known: Vec<&'static str> },
    /// A text without `=`.
    #[error("`{0}` is no parameter; write NAME=VALUE, such as size=1024")]
    NoValue(String),
    #[error("parameter `{name}` of workload `{workload}` is given twice")]
    Twice { workload: &'static str, name: &'static str },
    /// A value out of bounds, or not of the right kind.
    #[error("{}={given}: `{}` of workload `{workload}` ({}) is {wanted}", param.name, param.name, param.about)]
    BadValue { workload: &'static str, param: &'static Param, given: String, wanted: String },
}
