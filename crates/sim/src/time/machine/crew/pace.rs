//! How many threads a launch runs fastest with, found out by trying.
//!
//! Threads synchronize twice per window. Where a window is a few microseconds of work, as in kernels whose warps mostly
//! wait, that costs more than it saves. And in every window, one thread moves the messages while the others wait.

use std::time::{Duration, Instant};

/// Windows of a trial: the work in a window varies, but trials follow each other closely.
const TRIAL: u32 = 24;

/// Windows before the first trial, in which threads wake up, and before another one, in which caches warm up.
const WAKING: u32 = 32;
const WARMING: u32 = 4;

/// Windows after the first trials, and at most after later ones. Each time that they end as the last ones did, twice
/// as many follow.
const SETTLED_FIRST: u32 = 512;
const SETTLED_MOST: u32 = 32_768;

/// If threads are at work for more than this part of the time, fewer of them would only take longer.
const BUSY_PERCENT: u32 = 60;

/// Several threads must be faster than one by this part: the others could do something else.
const WORTH_PERCENT: u32 = 95;

/// How many threads work in the next windows.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The numbers that are tried: all, half of them, and so on down to one.
    sizes: Vec<usize>,
    /// The place of the present one.
    at: usize,
    step: Step,
    /// Windows of this step that are left.
    left: u32,
    since: Option<Instant>,
    /// The best of the present trials, and how long it took.
    best: Option<(usize, Duration)>,
    /// Since the step began, how long threads were at work in windows that they shared, and how long these took.
    shared: [Duration; 2],
    settles_for: u32,
    /// What the last trials said.
    last: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    RunIn,
    Trial,
    Settled,
}

impl Pace {
    /// Begins with all of so many threads.
    pub(crate) fn new(threads: usize) -> Pace {
        let halves =
            std::iter::successors(Some(threads.max(1)), |&size| (size > 1).then(|| size.div_ceil(2)));
        Pace {
            sizes: halves.collect(),
            at: 0,
            step: Step::RunIn,
            left: WAKING,
            since: None,
            best: None,
            shared: [Duration::ZERO; 2],
            settles_for: SETTLED_FIRST,
            last: None,
        }
    }

    /// How many threads work in the next window. `clock` tells the time.
    pub(crate) fn next_window(&mut self, clock: impl FnOnce() -> Instant) -> usize {
        if self.left == 0 {
            let now = clock();
            let took = self.since.map_or(Duration::ZERO, |since| now - since);
            self.left = self.end_step(took);
            self.since = Some(now);
            self.shared = [Duration::ZERO; 2];
        }
        self.left -= 1;
        self.sizes[self.at]
    }

    /// In a window that took so long, but for the exchange of messages, all its threads were at work for so long.
    pub(crate) fn shared(&mut self, work: Duration, took: Duration) {
        self.shared[0] += work;
        self.shared[1] += took;
    }

    /// Ends a step that took so long. Returns the windows of the next one.
    fn end_step(&mut self, took: Duration) -> u32 {
        match self.step {
            Step::RunIn => {
                self.step = Step::Trial;
                TRIAL
            }
            Step::Trial => self.end_trial(took),
            Step::Settled => {
                // One more size than before may be better now.
                self.at = self.at.saturating_sub(1);
                (self.step, self.best) = (Step::RunIn, None);
                WAKING
            }
        }
    }

    fn end_trial(&mut self, took: Duration) -> u32 {
        let size = self.sizes[self.at];
        let wins = self.best.is_none_or(|(_, best)| match size {
            1 => took * WORTH_PERCENT <= best * 100,
            _ => took <= best,
        });
        if wins {
            self.best = Some((self.at, took));
        }
        let [work, shared] = self.shared;
        let are_busy = size > 1 && work * 100 >= shared * size as u32 * BUSY_PERCENT;
        if wins && !are_busy && size > 1 {
            self.at += 1;
            self.step = Step::RunIn;
            return WARMING;
        }
        self.at = self.best.map_or(0, |(best, _)| best);
        self.settles_for = match self.last {
            Some(last) if last == self.at => (2 * self.settles_for).min(SETTLED_MOST),
            _ => SETTLED_FIRST,
        };
        self.last = Some(self.at);
        self.step = Step::Settled;
        self.settles_for
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many windows of some seconds each number of threads works in, as a part of all, if a window takes so many
    /// microseconds with them, and all threads together are at work for `work` of them.
    fn parts(threads: usize, work: u64, took: impl Fn(usize) -> u64) -> Vec<f64> {
        let mut pace = Pace::new(threads);
        let mut now = Instant::now();
        let end = now + Duration::from_secs(3);
        let (mut windows, mut all) = (vec![0.0; threads + 1], 0.0);
        while now < end {
            let size = pace.next_window(|| now);
            let time = Duration::from_micros(took(size));
            if size > 1 {
                pace.shared(Duration::from_micros(work), time);
            }
            now += time;
            windows[size] += 1.0;
            all += 1.0;
        }
        windows.iter().map(|windows| windows / all).collect()
    }

    #[test]
    fn the_fastest_way_is_taken_most_of_the_time() {
        assert!(parts(2, 15, |size| [0, 15, 10][size])[2] > 0.99);
        assert!(parts(2, 9, |size| [0, 9, 10][size])[1] > 0.97);
        // Most of a window is one thread's work: four are the best.
        let took = |size: usize| 100 / size as u64 + 4 * size as u64;
        assert!(parts(16, 100, took)[4] > 0.95);
    }

    #[test]
    fn nobody_works_alone_where_threads_do_not_wait() {
        assert_eq!(parts(16, 80, |size| 80 / size as u64)[16], 1.0);
    }

    #[test]
    fn trials_are_repeated() {
        let mut pace = Pace::new(2);
        let mut now = Instant::now();
        let mut together = 0;
        for window in 0..100_000 {
            let all = pace.next_window(|| now) == 2;
            // First the threads are in each other's way, later they are not.
            let slow = all == (window < 50_000);
            let took = Duration::from_micros(if slow { 20 } else { 10 });
            if all {
                pace.shared(took, took);
            }
            now += took;
            together += u32::from(all && window > 50_000);
        }
        assert!(together > 20_000, "{together}");
    }
}
