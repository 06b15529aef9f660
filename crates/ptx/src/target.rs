//! Versions of PTX, and the chips that a text can name as its target.

use std::fmt;

/// The greatest minor version of each major one. There may be later ones of the last.
const VERSIONS: &[(u32, u32)] =
    &[(1, 5), (2, 3), (3, 2), (4, 3), (5, 0), (6, 5), (7, 8), (8, 8), (9, u32::MAX)];

const CHIPS: &[u32] = &[
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100,
    101, 103, 110, 120, 121,
];

/// Words after `.target` that name no chip.
const OPTIONS: &[&str] = &["debug", "map_f64_to_f32", "texmode_unified", "texmode_independent"];

/// The chip of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// `sm_90a` as 90.
    pub sm: u32,
    /// `a`: what only this chip has; `f`: what its family has.
    suffix: Option<char>,
}

impl Target {
    /// The first chip among the words of a target.
    pub(crate) fn of(words: &str) -> Target {
        words.split([',', ' ']).find_map(named).unwrap_or(Target { sm: 0, suffix: None })
    }

    /// Whether it has what came with a chip: `sm_80`; `sm_90a`, which later chips have only with a suffix of their
    /// own; `sm_90a only`. All have what came with the first chip, which is not named.
    pub(crate) fn has(self, chip: &str) -> bool {
        let (name, only) = chip.strip_suffix(" only").map_or((chip, false), |name| (name, true));
        let Some(first) = named(name) else { return true };
        if only {
            self == first
        } else {
            self.sm >= first.sm && (first.suffix.is_none() || self.suffix.is_some())
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.sm)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

/// The chip that a word names.
fn named(word: &str) -> Option<Target> {
    let number = word.strip_prefix("sm_").or_else(|| word.strip_prefix("compute_"))?;
    let digits = number.trim_end_matches(['a', 'f']);
    let sm = digits.parse().ok().filter(|sm| CHIPS.contains(sm))?;
    let suffix = match &number[digits.len()..] {
        "" => None,
        "a" if sm >= 90 => Some('a'),
        "f" if sm >= 100 => Some('f'),
        _ => return None,
    };
    Some(Target { sm, suffix })
}

pub(crate) fn is_version((major, minor): (u32, u32)) -> bool {
    VERSIONS.iter().any(|&(known, last)| known == major && minor <= last)
}

pub(crate) fn is_chip(word: &str) -> bool {
    named(word).is_some()
}

pub(crate) fn is_option(word: &str) -> bool {
    OPTIONS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_what_came_before_them() {
        let has = |target, chip| Target::of(target).has(chip);
        assert!(has("sm_90", "") && has("sm_90", "sm_80") && has("sm_90, debug", "sm_90"));
        assert!(!has("sm_80", "sm_90") && !has("sm_90", "sm_90a") && has("sm_90a", "sm_90"));
        assert!(has("sm_100a", "sm_90a") && has("sm_100f", "sm_90a") && !has("sm_100", "sm_90a"));
        assert!(has("sm_90a", "sm_90a only") && !has("sm_100a", "sm_90a only"));
    }

    #[test]
    fn names_of_chips() {
        assert!(["sm_10", "compute_70", "sm_90a", "sm_120f"].into_iter().all(is_chip));
        assert!(
            ["foo", "sm_", "sm_999", "sm_90f", "sm_80a", "sm_90aa", "70"].iter().all(|word| !is_chip(word))
        );
        assert!(is_version((9, 4)) && !is_version((7, 9)) && !is_version((99, 9)));
    }
}
