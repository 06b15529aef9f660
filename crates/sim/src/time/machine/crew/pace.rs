//! Whether a launch runs faster with all threads or with the leader alone, found out by trying both.
//!
//! Threads synchronize twice per window. Where a window is a few microseconds of work, as in kernels whose warps mostly
//! wait, that costs more than it saves.

use std::time::{Duration, Instant};

/// Windows of a trial: the work in a window varies, but both trials are close together.
const TRIAL: u32 = 16;

/// Windows before a trial, in which threads wake up, or caches warm up.
const WAKING: u32 = 32;
const WARMING: u32 = 4;

/// Windows after the first trial, and at most after a later one. Each that ends as the last one did is followed by
/// twice as many.
const SETTLED_FIRST: u32 = 512;
const SETTLED_MOST: u32 = 32_768;

/// All threads work if that takes no more than so many hundredths of the time: a processor that does not wait for
/// others is of use to them.
const WORTH_PERCENT: u32 = 95;

/// Whether all threads work in the next windows, and for how many.
#[derive(Debug)]
pub(crate) struct Pace {
    step: Step,
    left: u32,
    since: Option<Instant>,
    /// How long the last trial with all threads took.
    together: Duration,
    /// Since the last step began, how long threads were at work in windows that they shared, and how long these took.
    shared: [Duration; 2],
    /// The windows after the next trial, and what the last one said.
    settles_for: u32,
    last: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    RunIn { together: bool },
    Trial { together: bool },
    Settled { together: bool },
}

impl Pace {
    /// Begins with all threads.
    pub(crate) fn new() -> Pace {
        Pace {
            step: Step::RunIn { together: true },
            left: WAKING,
            since: None,
            together: Duration::ZERO,
            shared: [Duration::ZERO; 2],
            settles_for: SETTLED_FIRST,
            last: None,
        }
    }

    /// Whether all threads work in the next window. `clock` tells the time.
    pub(crate) fn next_window(&mut self, clock: impl FnOnce() -> Instant) -> bool {
        if self.left == 0 {
            let now = clock();
            let took = self.since.map_or(Duration::ZERO, |since| now - since);
            (self.step, self.left) = self.after(took);
            self.since = Some(now);
            self.shared = [Duration::ZERO; 2];
        }
        self.left -= 1;
        let (Step::RunIn { together } | Step::Trial { together } | Step::Settled { together }) = self.step;
        together
    }

    /// In a window that took so long, but for the exchange of messages, all threads were at work for so long.
    pub(crate) fn shared(&mut self, work: Duration, took: Duration) {
        self.shared[0] += work;
        self.shared[1] += took;
    }

    /// The step after one that took so long, and its windows.
    fn after(&mut self, took: Duration) -> (Step, u32) {
        match self.step {
            Step::RunIn { together } => (Step::Trial { together }, TRIAL),
            Step::Trial { together: true } => {
                self.together = took;
                let [work, shared] = self.shared;
                // Alone, the leader would take about as long as all of them: no need to try.
                if work > 2 * shared {
                    return self.settle(true);
                }
                (Step::RunIn { together: false }, WARMING)
            }
            Step::Trial { together: false } => self.settle(self.together * 100 <= took * WORTH_PERCENT),
            Step::Settled { .. } => (Step::RunIn { together: true }, WAKING),
        }
    }

    fn settle(&mut self, together: bool) -> (Step, u32) {
        self.settles_for = match self.last {
            Some(last) if last == together => (2 * self.settles_for).min(SETTLED_MOST),
            _ => SETTLED_FIRST,
        };
        self.last = Some(together);
        (Step::Settled { together }, self.settles_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many windows of a second all threads work in, and how many windows it has, if a window takes so many
    /// microseconds with all threads and with the leader alone.
    fn windows_together([shared, alone]: [u64; 2]) -> (u32, u32) {
        let mut pace = Pace::new();
        let mut now = Instant::now();
        let end = now + Duration::from_secs(1);
        let mut windows = (0, 0);
        while now < end {
            let together = pace.next_window(|| now);
            let took = Duration::from_micros(if together { shared } else { alone });
            if together {
                pace.shared(Duration::from_micros(alone), took);
            }
            now += took;
            windows = (windows.0 + u32::from(together), windows.1 + 1);
        }
        windows
    }

    #[test]
    fn the_faster_way_is_taken_most_of_the_time() {
        let (together, all) = windows_together([10, 15]);
        assert!(together > all / 1000 * 995, "{together} of {all}");
        let (together, all) = windows_together([10, 9]);
        assert!(together < all / 100, "{together} of {all}");
    }

    #[test]
    fn nobody_works_alone_where_it_would_take_far_longer() {
        let (together, all) = windows_together([10, 80]);
        assert_eq!(together, all);
    }

    #[test]
    fn trials_are_repeated() {
        let mut pace = Pace::new();
        let mut now = Instant::now();
        let mut together = 0;
        for window in 0..100_000 {
            let all = pace.next_window(|| now);
            // First the threads are in each other's way, later they are not.
            let slow = all == (window < 50_000);
            now += Duration::from_micros(if slow { 20 } else { 10 });
            together += u32::from(all && window > 50_000);
        }
        assert!(together > 20_000, "{together}");
    }
}
