//! When a kernel that is simulated alone starts beside those of other streams.
//!
//! Kernels that are pending at the same time are simulated together (`settle`). This is for the others: those that
//! are not timed, or that are observed one by one. They overlap in simulated time if the chip has enough for all of
//! them together: room for their CTAs, bandwidth of its DRAM, slots to issue instructions. Each then takes as long as
//! alone; one for which there is not enough waits. So what kernels do to each other in caches is not seen.

use std::collections::VecDeque;

use crate::core::timeline::Picoseconds;

/// Kernels that are remembered: a GPU has a limit of launches that wait, too.
const REMEMBERED: usize = 1024;

/// What a kernel takes of the chip, each from 0 to 1: room for CTAs, DRAM, issue slots, and kernels that run at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share([f64; 4]);

impl Share {
    /// All of it.
    #[cfg(test)]
    pub(crate) const WHOLE: Share = Share([1.0; 4]);

    /// The share of a grid of which `room` CTAs would be resident at once, of the utilisation of DRAM and issue slots
    /// that the kernel had alone, and of one kernel of so many that can run at once.
    pub(crate) fn new(ctas: f64, room: f64, dram: f64, issue: f64, most_kernels: u32) -> Share {
        let of = |part: f64| if part.is_finite() { part.clamp(0.0, 1.0) } else { 1.0 };
        Share([of(ctas / room), of(dram), of(issue), of(1.0 / f64::from(most_kernels))])
    }

    fn fits(self, used: [f64; 4]) -> bool {
        // Sums of fractions that are exactly the whole may be a little more.
        self.0.iter().zip(used).all(|(part, used)| part + used <= 1.0 + 1e-9)
    }
}

#[derive(Clone, Copy, Debug)]
struct Running {
    start: Picoseconds,
    end: Picoseconds,
    share: Share,
}

/// Kernels of all streams.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// In the order of their launches.
    kernels: VecDeque<Running>,
    /// No kernel starts before: those that are forgotten end here.
    forgotten: Picoseconds,
    /// When all of them have ended.
    last_end: Picoseconds,
}

impl Sharing {
    /// Adds a kernel that could start at `ready`. Returns when it starts. No kernel is added later that could start
    /// before `now`.
    pub(crate) fn add(
        &mut self,
        now: Picoseconds,
        ready: Picoseconds,
        duration: Picoseconds,
        share: Share,
    ) -> Picoseconds {
        if self.last_end <= now {
            self.kernels.clear();
        }
        if self.kernels.len() >= REMEMBERED {
            self.kernels.retain(|kernel| kernel.end > now);
        }
        while self.kernels.len() >= REMEMBERED {
            let oldest = self.kernels.pop_front().map_or(0, |kernel| kernel.end);
            self.forgotten = self.forgotten.max(oldest);
        }
        // Those of one stream follow each other: nothing is to be searched for.
        let start = match ready.max(self.forgotten) {
            ready if ready >= self.last_end => ready,
            ready => self.earliest(ready, duration, share),
        };
        let end = start + duration;
        self.kernels.push_back(Running { start, end, share });
        self.last_end = self.last_end.max(end);
        start
    }

    /// A kernel ran that was simulated with others.
    pub(crate) fn ran(&mut self, start: Picoseconds, end: Picoseconds, share: Share) {
        self.kernels.push_back(Running { start, end, share });
        self.last_end = self.last_end.max(end);
    }

    /// The first moment from which on there is enough for as long as the kernel takes.
    fn earliest(&self, ready: Picoseconds, duration: Picoseconds, share: Share) -> Picoseconds {
        let mut changes: Vec<(Picoseconds, f64, Share)> = vec![(ready, 0.0, share)];
        for kernel in self.kernels.iter().filter(|kernel| kernel.end > ready) {
            changes.push((kernel.start.max(ready), 1.0, kernel.share));
            changes.push((kernel.end, -1.0, kernel.share));
        }
        // Ends before starts: what ends at a moment makes room then.
        changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (mut start, mut used) = (ready, [0.0; 4]);
        for (at, (moment, sign, change)) in changes.iter().enumerate() {
            for (used, part) in used.iter_mut().zip(change.0) {
                *used += sign * part;
            }
            let Some((until, ..)) = changes.get(at + 1) else { break };
            if until == moment {
                continue;
            }
            if !share.fits(used) {
                start = *until;
            } else if until - start >= duration {
                break;
            }
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(part: f64) -> Share {
        Share::new(part, 1.0, 0.0, 0.0, 32)
    }

    #[test]
    fn kernels_overlap_while_there_is_room() {
        let mut sharing = Sharing::default();
        assert_eq!(sharing.add(0, 0, 100, part(0.5)), 0);
        assert_eq!(sharing.add(0, 10, 100, part(0.5)), 10);
        assert_eq!(sharing.add(0, 20, 50, part(0.25)), 100);
        // Before the second one starts there is room for ten.
        assert_eq!(sharing.add(0, 0, 11, part(0.25)), 100);
        assert_eq!(sharing.add(0, 0, 10, part(0.25)), 0);
        assert_eq!(sharing.add(0, 0, 1, Share::WHOLE), 150);
    }

    /// A short kernel that is launched later runs in a gap; a long one does not fit there.
    #[test]
    fn a_gap_is_used_if_it_is_long_enough() {
        let mut sharing = Sharing::default();
        assert_eq!(sharing.add(0, 50, 100, part(1.0)), 50);
        assert_eq!(sharing.add(0, 0, 51, part(0.1)), 150);
        assert_eq!(sharing.add(0, 0, 50, part(0.1)), 0);
    }

    #[test]
    fn every_resource_counts() {
        let shares = [
            Share::new(64.0, 56.0, 0.0, 0.0, 32),
            Share::new(1.0, 56.0, 0.6, 0.0, 32),
            Share::new(1.0, 56.0, 0.0, 0.6, 32),
            Share::new(1.0, 56.0, 0.0, 0.0, 1),
        ];
        for share in shares {
            let mut sharing = Sharing::default();
            assert_eq!((sharing.add(0, 0, 10, share), sharing.add(0, 0, 10, share)), (0, 10));
        }
        let mut sharing = Sharing::default();
        let small = Share::new(1.0, 56.0, 0.01, 0.01, 32);
        let starts: Vec<_> = (0..33).map(|_| sharing.add(0, 0, 10, small)).collect();
        assert_eq!((starts[31], starts[32]), (0, 10));
    }

    #[test]
    fn many_kernels_that_wait() {
        let mut sharing = Sharing::default();
        for number in 0..3000 {
            assert_eq!(sharing.add(0, 0, 10, Share::WHOLE), number * 10);
        }
        assert_eq!(sharing.kernels.len(), REMEMBERED);
        assert_eq!(sharing.add(40_000, 40_000, 1, Share::WHOLE), 40_000);
        assert_eq!(sharing.kernels.len(), 1);
    }
}
