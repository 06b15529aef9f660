//! Who waits for what, when nothing moves any more or a limit ends the launch.

use std::fmt;

use crate::fault::{Place, coordinates};
use crate::locks::LockTable;
use crate::mem::store::Memory;
use crate::probe::Probe;
use crate::sm::core::{Context, Sm};

/// A launch that does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    /// The kernel.
    pub kernel: String,
    /// Why it was ended.
    pub reason: HangReason,
    /// Where warps are, some of them.
    pub waiting: Vec<WaitingWarp>,
    /// Warps that have not ended, in all.
    pub live_warps: u64,
}

/// Why a launch is considered hanging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HangReason {
    /// Every warp waits; none can ever go on.
    Blocked,
    /// Every warp that runs repeats itself, and nothing it reads can change.
    Repeats,
    /// No value has changed for so many cycles.
    Quiet(u64),
    /// The limit on cycles was reached.
    CycleLimit(u64),
}

/// A group of lanes of a warp that does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingWarp {
    /// Its CTA.
    pub cta: [u32; 3],
    /// Its number in the CTA.
    pub warp: u32,
    /// Its lanes.
    pub mask: u64,
    /// What it waits for, or `None` if it runs.
    pub wait: Option<String>,
    /// Where it is.
    pub place: Place,
}

/// Explains why a timed launch does not end.
pub(crate) fn explain<const N: usize, P: Probe>(
    context: &Context<'_>,
    sms: &[Sm<N, P>],
    _memory: &Memory,
    _locks: &LockTable,
    reason: HangReason,
) -> Hang {
    let kernel = context.launch.kernel;
    let mut waiting = Vec::new();
    let mut live_warps = 0;
    for resident in sms.iter().flat_map(Sm::residents) {
        for warp in resident.warps.iter().filter(|w| !w.is_done()) {
            live_warps += 1;
            for (group, wait) in warp.control.paths() {
                if waiting.len() == 8 {
                    break;
                }
                let wait = wait.map(|wait| crate::functional::describe_wait(&resident.cta, warp, wait));
                let place = Place::of(kernel, group.pc);
                waiting.push(WaitingWarp {
                    cta: resident.cta.id,
                    warp: warp.id,
                    mask: group.mask,
                    wait,
                    place,
                });
            }
        }
    }
    Hang { kernel: kernel.name.clone(), reason, waiting, live_warps }
}

/// Lanes as ranges: `0`, `1-31`.
pub fn lane_ranges(mask: u64) -> String {
    let mut ranges = Vec::new();
    let mut lane = 0;
    while lane < 64 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let len = (mask >> lane).trailing_ones();
        ranges.push(if len == 1 { format!("{lane}") } else { format!("{lane}-{}", lane + len - 1) });
        lane += len;
    }
    let word = if mask.count_ones() == 1 { "lane" } else { "lanes" };
    format!("{word} {}", ranges.join(","))
}

/// A number with thousands separated.
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

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warps = |n: u64, one: &str, many: &str| match n {
            1 => format!("1 warp {one}"),
            n => format!("{} warps {many}", grouped(n)),
        };
        match self.reason {
            HangReason::Blocked => {
                write!(
                    f,
                    "kernel `{}` hangs: {}, and none can go on",
                    self.kernel,
                    warps(self.live_warps, "waits", "wait")
                )?;
            }
            HangReason::Repeats => {
                write!(f, "kernel `{}` hangs: every warp repeats itself for ever", self.kernel)?;
            }
            HangReason::Quiet(cycles) => {
                write!(
                    f,
                    "kernel `{}` seems to hang: nothing has changed for {} cycles",
                    self.kernel,
                    grouped(cycles)
                )?;
            }
            HangReason::CycleLimit(limit) => {
                write!(
                    f,
                    "kernel `{}` did not end within {} cycles; {}",
                    self.kernel,
                    grouped(limit),
                    warps(self.live_warps, "still runs", "still run")
                )?;
            }
        }
        for warp in &self.waiting {
            write!(
                f,
                "\n  warp {} of CTA {}, {}: ",
                warp.warp,
                coordinates(warp.cta),
                lane_ranges(warp.mask)
            )?;
            match &warp.wait {
                Some(wait) => write!(f, "waits {wait}")?,
                None => write!(f, "runs")?,
            }
            write!(f, "\n      at {}", warp.place)?;
        }
        let shown =
            self.waiting.iter().map(|w| (w.cta, w.warp)).collect::<std::collections::BTreeSet<_>>().len();
        if self.live_warps > shown as u64 {
            write!(f, "\n  … and {}", warps(self.live_warps - shown as u64, "more", "more"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_in_words() {
        assert_eq!(lane_ranges(1), "lane 0");
        assert_eq!(lane_ranges(0xffff_fffe), "lanes 1-31");
        assert_eq!(lane_ranges(0b1011), "lanes 0-1,3");
        assert_eq!(lane_ranges(u64::MAX), "lanes 0-63");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(0), "0");
    }
}
