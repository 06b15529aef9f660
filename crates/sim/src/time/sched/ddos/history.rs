//! The history registers of a warp: what its profiled lane has compared, and whether it repeats itself.
//!
//! Each comparison (`setp`) of the profiled lane is a sample: the hashed pc in the path register, the hashed operands
//! in the value register, newest first. The match pointer says how far back a new sample is compared. While it
//! searches, it stays with the first sample, which moves back by one with every other; a sample that equals the first
//! one closes a loop of so many comparisons. The pointer is fixed then, and when a whole iteration of the loop has
//! matched, the warp spins. A sample that differs ends that, and becomes the first of a new search.
//!
//! A loop that is longer than the registers can tell (the pointer can go back to the last but one entry) starts a new
//! search, too: the first sample may have been from before the loop.

use std::collections::VecDeque;

use crate::chip::spinning::DdosSpec;

/// A comparison, hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub path: u32,
    pub values: [u32; 2],
}

impl Sample {
    pub(crate) fn new(spec: &DdosSpec, pc: u32, values: [u32; 2]) -> Sample {
        Sample {
            path: spec.hash.of(pc, spec.path_bits),
            values: values.map(|value| spec.hash.of(value, spec.value_bits)),
        }
    }
}

/// What the registers say of the warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loop yet.
    #[default]
    Searching,
    /// A loop; so many more comparisons must match.
    Matching(u32),
    Spinning,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Newest first.
    samples: VecDeque<Sample>,
    /// How far back a new sample is compared; 0 when there is nothing to compare with.
    match_pointer: u32,
    phase: Phase,
}

impl History {
    pub(crate) fn clear(&mut self) {
        *self = History { samples: std::mem::take(&mut self.samples), ..History::default() };
        self.samples.clear();
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn push(&mut self, spec: &DdosSpec, sample: Sample) {
        let pointed = self.match_pointer.checked_sub(1).and_then(|at| self.samples.get(at as usize));
        let matches = pointed == Some(&sample);
        self.samples.push_front(sample);
        self.samples.truncate(spec.history as usize);
        match self.phase {
            // This is the iteration's first match.
            Phase::Searching if matches => self.matched(self.match_pointer - 1),
            Phase::Searching if self.match_pointer < spec.history.saturating_sub(2) => {
                self.match_pointer += 1
            }
            Phase::Matching(left) if matches => self.matched(left - 1),
            Phase::Spinning if matches => {}
            _ => self.search_from_here(spec),
        }
    }

    fn matched(&mut self, left: u32) {
        self.phase = if left == 0 { Phase::Spinning } else { Phase::Matching(left) };
    }

    /// The newest sample is the first of a new search.
    fn search_from_here(&mut self, spec: &DdosSpec) {
        self.samples.truncate(1);
        self.phase = Phase::Searching;
        self.match_pointer = u32::from(spec.history > 2);
    }

    /// Path and values, newest first, the match pointer, and the phase.
    #[cfg(test)]
    pub(crate) fn registers(&self) -> (Vec<u32>, Vec<[u32; 2]>, u32, Phase) {
        let paths = self.samples.iter().map(|sample| sample.path).collect();
        (paths, self.samples.iter().map(|sample| sample.values).collect(), self.match_pointer, self.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;

    fn spec(history: u32) -> DdosSpec {
        let set = format!("issue.ddos.history={history}");
        Chip::load("gtx480", &[set]).unwrap().issue.ddos
    }

    /// Whether the warp spins after each comparison. A comparison is given by its pc; values are equal.
    fn spins(history: u32, pcs: &[u32]) -> Vec<bool> {
        let (spec, mut registers) = (spec(history), History::default());
        let mut push = |&pc| {
            registers.push(&spec, Sample::new(&spec, pc, [0, 0]));
            registers.phase() == Phase::Spinning
        };
        pcs.iter().map(&mut push).collect()
    }

    /// The first comparison after which the warp spins, in a loop of so many.
    fn found_after(history: u32, period: u32) -> Option<usize> {
        let pcs: Vec<u32> = (0..40).map(|at| at % period).collect();
        spins(history, &pcs).iter().position(|&spins| spins)
    }

    #[test]
    fn a_loop_is_found_after_two_iterations_if_the_registers_hold_it() {
        assert_eq!(found_after(8, 1), Some(1));
        assert_eq!(found_after(8, 2), Some(3));
        assert_eq!(found_after(8, 3), Some(5));
        assert_eq!(found_after(8, 6), Some(11));
        assert_eq!(found_after(8, 7), None);
        assert_eq!(found_after(4, 2), Some(3));
        assert_eq!(found_after(4, 3), None);
        assert_eq!(found_after(5, 3), Some(5));
        for (short, period) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            assert_eq!(found_after(short, period), None);
        }
    }

    #[test]
    fn what_came_before_the_loop_is_forgotten() {
        // 9 is not in the loop: the pointer stays with it for six comparisons, then a new search begins.
        let pcs = [9, 1, 2, 1, 2, 1, 2, 1, 2, 1];
        assert_eq!(spins(8, &pcs).iter().position(|&spins| spins), Some(9));
    }

    #[test]
    fn the_path_counts_and_both_values_count() {
        let spec = spec(8);
        for different in [(2, [1, 0]), (1, [2, 0]), (1, [1, 5])] {
            let mut registers = History::default();
            for (pc, values) in [(1, [1, 0]), (1, [1, 0]), different] {
                registers.push(&spec, Sample::new(&spec, pc, values));
            }
            assert_eq!(registers.registers().2, 1);
            assert_eq!(registers.phase(), Phase::Searching, "{different:?}");
        }
    }
}
