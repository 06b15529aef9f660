//! Numbers, and sets of lanes, warps and threads, in words.

use std::fmt;

use crate::exec::fault::coordinates;
use crate::kit::lane_mask::LaneMask;

/// Numbers as ranges: `0`, `1-31`, `0-1,3`.
fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => ranges.push((n, n)),
        }
    }
    let text = |&(first, last): &(u32, u32)| match last - first {
        0 => format!("{first}"),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Lanes as ranges: `lane 0`, `lanes 1-31`.
pub fn lane_ranges(mask: LaneMask) -> String {
    let word = if mask.count() == 1 { "lane" } else { "lanes" };
    format!("{word} {}", ranges(mask.lanes().map(|lane| lane as u32)))
}

/// A number with thousands separators: `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A count with its noun: `1 warp`, `12 warps`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// A value of a word as a signed number.
pub(super) fn signed(value: u64, bytes: u32) -> i64 {
    let unused = 64 - 8 * bytes.clamp(1, 8);
    (value << unused) as i64 >> unused
}

/// A list in a sentence: `a`, `a and b`, `a, b and 3 more`.
pub(super) fn list(things: &[String], shown: usize) -> String {
    match things {
        [] => String::new(),
        [one] => one.clone(),
        _ if things.len() <= shown => {
            format!("{} and {}", things[..things.len() - 1].join(", "), things[things.len() - 1])
        }
        _ => format!("{} and {} more", things[..shown].join(", "), things.len() - shown),
    }
}

/// Lanes of warps of a CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    pub cta: [u32; 3],
    /// Numbers in the CTA.
    pub warps: Vec<u32>,
    /// Of each warp.
    pub lanes: LaneMask,
    /// Whether `lanes` are all lanes of each warp that have not ended.
    pub all_lanes: bool,
}

impl Threads {
    /// Whether they take a singular verb: one warp, or one lane.
    pub(super) fn is_one(&self) -> bool {
        self.warps.len() == 1 && (self.all_lanes || self.lanes.count() == 1)
    }

    /// The verb in the form that agrees with them.
    pub(super) fn verb(&self, plain: &str) -> String {
        match (self.is_one(), plain) {
            (false, plain) => plain.to_string(),
            (true, "have") => "has".to_string(),
            (true, "go") => "goes".to_string(),
            (true, plain) => format!("{plain}s"),
        }
    }

    fn warps(&self) -> String {
        let word = if self.warps.len() == 1 { "warp" } else { "warps" };
        format!("{word} {}", ranges(self.warps.iter().copied()))
    }

    /// The label of a row about their CTA: `warp 0, lanes 1-31`.
    pub(super) fn label(&self) -> String {
        if self.all_lanes { self.warps() } else { format!("{}, {}", self.warps(), lane_ranges(self.lanes)) }
    }

    /// In a sentence about `other`: a CTA or warp that both share is left out.
    pub(super) fn beside(&self, other: &Threads) -> String {
        if self.cta != other.cta {
            return self.to_string();
        }
        match (self.all_lanes, self.warps == other.warps && self.warps.len() == 1) {
            (true, _) => self.warps(),
            (false, true) => lane_ranges(self.lanes),
            (false, false) => format!("{} of {}", lane_ranges(self.lanes), self.warps()),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.all_lanes {
            write!(f, "{} of ", lane_ranges(self.lanes))?;
        }
        write!(f, "{} of CTA {}", self.warps(), coordinates(self.cta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_in_words() {
        assert_eq!(lane_ranges(LaneMask(1)), "lane 0");
        assert_eq!(lane_ranges(LaneMask(0xffff_fffe)), "lanes 1-31");
        assert_eq!(lane_ranges(LaneMask(0b1011)), "lanes 0-1,3");
        assert_eq!(lane_ranges(LaneMask(u64::MAX)), "lanes 0-63");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(0), "0");
    }

    #[test]
    fn lists_in_words() {
        let things: Vec<String> = ["a", "b", "c", "d"].map(String::from).to_vec();
        assert_eq!(list(&things[..1], 2), "a");
        assert_eq!(list(&things[..2], 2), "a and b");
        assert_eq!(list(&things[..3], 3), "a, b and c");
        assert_eq!(list(&things, 2), "a, b and 2 more");
        assert_eq!((counted(1, "warp"), counted(2000, "warp")), ("1 warp".into(), "2,000 warps".into()));
    }

    #[test]
    fn threads_leave_out_what_is_shared() {
        let threads = |cta: u32, warps: &[u32], lanes: u64| Threads {
            cta: [cta, 0, 0],
            warps: warps.to_vec(),
            lanes: LaneMask(lanes),
            all_lanes: lanes == u32::MAX as u64,
        };
        let here = threads(0, &[1], 1);
        assert_eq!(threads(0, &[1], 0b1110).beside(&here), "lanes 1-3");
        assert_eq!(threads(0, &[2], 1).beside(&here), "lane 0 of warp 2");
        assert_eq!(threads(0, &[2, 3, 4], u32::MAX as u64).beside(&here), "warps 2-4");
        assert_eq!(threads(1, &[2], 1).beside(&here), "lane 0 of warp 2 of CTA (1,0,0)");
        assert_eq!(threads(0, &[1], 0b1110).label(), "warp 1, lanes 1-3");
        assert_eq!((here.verb("wait"), threads(0, &[2, 3], 1).verb("wait")), ("waits".into(), "wait".into()));
    }
}
