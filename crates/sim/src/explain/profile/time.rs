//! Warp time by category.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::explain::profile::recorder::{CATEGORIES, SPINNING, UNIT_BUSY};
use crate::time::sm::probe::State;

/// Warp time in cycles by category. In JSON an object; categories without any are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time([u64; CATEGORIES]);

/// The name of a category. Those of states are the reasons that reports name.
pub(crate) fn category(at: usize) -> &'static str {
    match at {
        UNIT_BUSY => "pipe_throttle",
        SPINNING => "spinning",
        at => match State::ALL[at] {
            State::Ready => "not_selected",
            state => state.name(),
        },
    }
}

impl Time {
    pub(super) fn new(cycles: [u64; CATEGORIES]) -> Time {
        Time(cycles)
    }

    /// Cycles of one category; 0 if there is none of that name.
    pub fn of(&self, name: &str) -> u64 {
        self.iter().find(|(known, _)| *known == name).map_or(0, |(_, cycles)| cycles)
    }

    /// The categories that have any.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0
            .into_iter()
            .enumerate()
            .filter(|(_, cycles)| *cycles > 0)
            .map(|(at, cycles)| (category(at), cycles))
    }

    /// All categories together.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn add(&mut self, other: &Time) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

impl FromIterator<(&'static str, u64)> for Time {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(parts: I) -> Time {
        let mut time = Time::default();
        for (name, cycles) in parts {
            if let Some(at) = (0..CATEGORIES).find(|&at| category(at) == name) {
                time.0[at] += cycles;
            }
        }
        time
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts: Vec<(&str, u64)> = self.iter().collect();
        parts.sort_unstable();
        serializer.collect_map(parts)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let parts = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let known = (0..CATEGORIES).map(category);
        Ok(known.filter_map(|name| Some((name, *parts.get(name)?))).collect())
    }
}
