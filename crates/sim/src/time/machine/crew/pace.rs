//! Whether a launch runs faster with all threads or with the leader alone, found out by trying both.
//!
//! Threads synchronize twice per window. Where a window is a few microseconds of work, as in kernels whose warps mostly
//! wait, that costs more than it saves.

use std::time::{Duration, Instant};

/// Windows of a trial, and those before it in which caches warm up.
const TRIAL: u32 = 256;
const RUN_IN: u32 = 128;

/// Windows between trials.
const SETTLED: u32 = 32 * (TRIAL + RUN_IN);

/// Whether all threads work in the next windows, and for how many.
#[derive(Debug)]
pub(crate) struct Pace {
    step: Step,
    left: u32,
    since: Option<Instant>,
    /// How long the last trial with all threads took.
    together: Duration,
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
        Pace { step: Step::RunIn { together: true }, left: RUN_IN, since: None, together: Duration::ZERO }
    }

    /// Whether all threads work in the next window. `clock` tells the time.
    pub(crate) fn next_window(&mut self, clock: impl FnOnce() -> Instant) -> bool {
        if self.left == 0 {
            let now = clock();
            let took = self.since.map_or(Duration::ZERO, |since| now - since);
            (self.step, self.left) = self.after(took);
            self.since = Some(now);
        }
        self.left -= 1;
        let (Step::RunIn { together } | Step::Trial { together } | Step::Settled { together }) = self.step;
        together
    }

    /// The step after one that took so long, and its windows.
    fn after(&mut self, took: Duration) -> (Step, u32) {
        match self.step {
            Step::RunIn { together } => (Step::Trial { together }, TRIAL),
            Step::Trial { together: true } => {
                self.together = took;
                (Step::RunIn { together: false }, RUN_IN)
            }
            Step::Trial { together: false } => (Step::Settled { together: self.together <= took }, SETTLED),
            Step::Settled { .. } => (Step::RunIn { together: true }, RUN_IN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many windows of a second all threads work in, and how many windows it has, if a window takes so many
    /// microseconds with all threads and with the leader alone.
    fn windows_together(times: [u64; 2]) -> (u32, u32) {
        let mut pace = Pace::new();
        let mut now = Instant::now();
        let end = now + Duration::from_secs(1);
        let mut windows = (0, 0);
        while now < end {
            let together = pace.next_window(|| now);
            now += Duration::from_micros(times[if together { 0 } else { 1 }]);
            windows = (windows.0 + u32::from(together), windows.1 + 1);
        }
        windows
    }

    #[test]
    fn the_faster_way_is_taken_most_of_the_time() {
        let (together, all) = windows_together([10, 15]);
        assert!(together > all / 100 * 95, "{together} of {all}");
        let (together, all) = windows_together([10, 6]);
        assert!(together < all / 100 * 5, "{together} of {all}");
    }

    #[test]
    fn trials_are_repeated() {
        let mut pace = Pace::new();
        let mut now = Instant::now();
        let mut together = 0;
        for window in 0..4 * SETTLED {
            let all = pace.next_window(|| now);
            // First the threads are in each other's way, later they are not.
            let slow = all == (window < SETTLED);
            now += Duration::from_micros(if slow { 20 } else { 10 });
            together += u32::from(all && window > 2 * SETTLED);
        }
        assert!(together > SETTLED, "{together}");
    }
}
