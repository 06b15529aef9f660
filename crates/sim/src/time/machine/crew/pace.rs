//! How many threads a kernel runs fastest with, found out by trying.
//!
//! Threads synchronize twice per window. Where a window is a few microseconds of work, as in kernels whose warps mostly
//! wait, that costs more than it saves. And in every window, one thread moves the messages while the others wait.
//!
//! A launch begins with one thread. Another number is tried for some windows between two stretches of the present one,
//! and taken if it was faster. What trials have cost stays below a part of the time that the kernel has run
//! ([`BUDGET`]): one that takes more is broken off, and the next one waits until the kernel has run for long enough. So
//! a launch that is soon over never has others to wait for, and threads that do not pay cost next to nothing.

use std::time::{Duration, Instant};

/// Windows by which numbers of threads are compared.
const STRETCH: u32 = 32;

/// Windows before those of a trial, in which threads wake up and caches warm up.
const WARMING: u32 = 8;

/// Windows between looks at the clock during a trial and at the beginning of a launch.
const LOOK: u32 = 4;

/// A launch runs on one thread for so long, whatever is known: threads take time to wake up.
const ALONE: Duration = Duration::from_millis(1);

/// Trials may cost a fiftieth of the time.
const BUDGET: u32 = 50;

/// Before it was tried, a trial is expected to cost so much for each thread.
const WAKING: Duration = Duration::from_micros(25);

/// What it costs to make a thread.
const MAKING: Duration = Duration::from_micros(30);

/// More threads must be faster by this part: the others could do something else.
const WORTH_PERCENT: u32 = 95;

/// How many threads work in the next windows.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// One, two, four and so on, up to all.
    sizes: Vec<usize>,
    /// For each of them, what a trial is expected to cost.
    costs: Vec<Duration>,
    /// The place of the one that was fastest.
    best: usize,
    step: Step,
    /// Windows before the next look at the clock.
    left: u32,
    since: Option<Instant>,
    /// How long the last stretch took.
    stretch: Duration,
    /// For how long the kernel has run, and how much of that trials have cost.
    ran: Duration,
    lost: Duration,
    /// What it would cost to make threads: there are none yet.
    making: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// One thread, at the beginning of a launch.
    Alone,
    /// The best number so far.
    Best,
    /// Another one, for so many windows, of which those that count took so long.
    Trial { at: usize, windows: u32, took: Duration, spent: Duration },
    /// The best number so far again, after a trial.
    After { at: usize, took: Duration, lost: Duration },
}

impl Pace {
    /// For at most so many threads, which are not made yet.
    pub(crate) fn new(threads: usize) -> Pace {
        let doubles = std::iter::successors(Some(1), |&size| Some(2 * size));
        let mut sizes: Vec<usize> = doubles.take_while(|&size| size < threads).collect();
        sizes.push(threads.max(1));
        Pace {
            costs: sizes.iter().map(|&size| WAKING * size as u32).collect(),
            sizes,
            best: 0,
            step: Step::Alone,
            left: LOOK,
            since: None,
            stretch: Duration::ZERO,
            ran: Duration::ZERO,
            lost: Duration::ZERO,
            making: MAKING * threads as u32,
        }
    }

    /// The most threads that it can ask for.
    pub(crate) fn most(&self) -> usize {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// How many threads work in the next window.
    pub(crate) fn size(&self) -> usize {
        match self.step {
            Step::Alone => 1,
            Step::Best | Step::After { .. } => self.sizes[self.best],
            Step::Trial { at, .. } => self.sizes[at],
        }
    }

    /// A launch of the kernel begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        (self.step, self.left, self.since) = (Step::Alone, LOOK, Some(now));
    }

    /// The launch is over.
    pub(crate) fn end(&mut self, now: Instant) {
        self.ran += self.since.map_or(Duration::ZERO, |since| now - since);
    }

    /// There are threads now. It took so long to make them.
    pub(crate) fn made(&mut self, took: Duration) {
        self.making = Duration::ZERO;
        self.lost += took;
        // The trial for which they were made begins only now.
        self.since = self.since.map(|since| since + took);
    }

    /// A window is over. Returns whether another number of threads works in the next one. `clock` tells the time.
    pub(crate) fn ends_window(&mut self, clock: impl FnOnce() -> Instant) -> bool {
        if self.sizes.len() == 1 {
            return false;
        }
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        let (now, size) = (clock(), self.size());
        let took = self.since.map_or(Duration::ZERO, |since| now - since);
        self.step = match self.step {
            // Not over yet: it goes on counting from where it began.
            Step::Alone if took < ALONE => {
                self.left = LOOK;
                return false;
            }
            Step::Alone => Step::Best,
            Step::Best => {
                self.stretch = took;
                self.next_trial()
            }
            Step::Trial { at, windows, took: counted, spent } => {
                let counts = if windows >= WARMING { took } else { Duration::ZERO };
                self.go_on(at, windows + LOOK, counted + counts, spent + took)
            }
            Step::After { at, took: tried, lost } => {
                self.compare(at, tried, lost, (self.stretch + took) / 2);
                self.stretch = took;
                self.next_trial()
            }
        };
        (self.ran, self.since) = (self.ran + took, Some(now));
        self.left = if matches!(self.step, Step::Trial { .. }) { LOOK } else { STRETCH };
        self.size() != size
    }

    /// What trials may still cost.
    fn budget(&self) -> Duration {
        (self.ran / BUDGET).saturating_sub(self.lost)
    }

    /// The trial that is expected to cost least, if that is within the budget.
    fn next_trial(&self) -> Step {
        let others = (0..self.sizes.len()).filter(|&at| at != self.best);
        let cheapest = others.min_by_key(|&at| (self.costs[at], at.abs_diff(self.best)));
        match cheapest {
            Some(at) if self.costs[at] + self.making <= self.budget() => {
                Step::Trial { at, windows: 0, took: Duration::ZERO, spent: Duration::ZERO }
            }
            _ => Step::Best,
        }
    }

    /// A trial is at this window. It has taken so long since its windows count, and so long in all.
    fn go_on(&mut self, at: usize, windows: u32, took: Duration, spent: Duration) -> Step {
        let lost = spent.saturating_sub(self.stretch * windows / STRETCH);
        if lost > self.budget() {
            self.failed(at, lost);
            return Step::Best;
        }
        if windows < WARMING + STRETCH {
            return Step::Trial { at, windows, took, spent };
        }
        Step::After { at, took, lost }
    }

    /// A stretch of a trial took so long, one of the best number so far `reference`.
    fn compare(&mut self, at: usize, took: Duration, lost: Duration, reference: Duration) {
        let worth = if at > self.best { WORTH_PERCENT } else { 100 };
        if took * 100 > reference * worth {
            return self.failed(at, lost);
        }
        self.costs[at] = WAKING * self.sizes[at] as u32;
        // So much is lost by going back.
        self.costs[self.best] = 2 * self.costs[self.best] + reference.saturating_sub(took);
        self.best = at;
    }

    fn failed(&mut self, at: usize, lost: Duration) {
        self.lost += lost;
        self.costs[at] = lost.max(2 * self.costs[at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a launch for so long, of which a window takes so many microseconds on a number of threads. Returns how many
    /// windows each number has run, as a part of all, and how many windows there were.
    fn launch(pace: &mut Pace, millis: u64, took: impl Fn(usize) -> u64) -> (Vec<f64>, f64) {
        let mut now = Instant::now();
        let end = now + Duration::from_millis(millis);
        let mut windows = vec![0.0; pace.most() + 1];
        pace.begin(now);
        while now < end {
            windows[pace.size()] += 1.0;
            now += Duration::from_micros(took(pace.size()));
            if pace.ends_window(|| now) && pace.making > Duration::ZERO {
                now += pace.making;
                pace.made(pace.making);
            }
        }
        pace.end(now);
        let all: f64 = windows.iter().sum();
        (windows.iter().map(|windows| windows / all).collect(), all)
    }

    #[test]
    fn the_fastest_way_is_taken_most_of_the_time() {
        assert!(launch(&mut Pace::new(2), 3000, |size| [0, 15, 10][size]).0[2] > 0.97);
        assert!(launch(&mut Pace::new(2), 3000, |size| [0, 9, 10][size]).0[1] > 0.9);
        assert!(launch(&mut Pace::new(16), 3000, |size| 160 / size as u64).0[16] > 0.97);
        // Most of a window is one thread's work: four are the best.
        let took = |size: usize| 100 / size as u64 + 4 * size as u64;
        assert!(launch(&mut Pace::new(16), 3000, took).0[4] > 0.9);
        // Two threads are in each other's way, eight are not.
        let took = |size: usize| [20, 25, 22, 12, 14][size.ilog2() as usize];
        assert!(launch(&mut Pace::new(16), 3000, took).0[8] > 0.9);
    }

    #[test]
    fn trials_cost_little() {
        for threads in [2, 3, 16] {
            for millis in [2, 5, 20, 100, 1000] {
                for slower in [11, 20, 100] {
                    let took = |size: usize| if size == 1 { 10 } else { slower };
                    let (_, windows) = launch(&mut Pace::new(threads), millis, took);
                    let alone = 100.0 * millis as f64;
                    assert!(windows > 0.97 * alone, "{threads} threads, {millis} ms, {slower} us: {windows}");
                }
            }
        }
    }

    #[test]
    fn many_short_launches_find_out_what_a_long_one_does() {
        let mut pace = Pace::new(4);
        let took = |size: usize| 40 / size as u64;
        let last = (0..100).map(|_| launch(&mut pace, 5, took).0).last().unwrap();
        assert_eq!(pace.sizes[pace.best], 4);
        assert!(last[1] < 0.15, "{last:?}");
    }

    #[test]
    fn trials_are_repeated() {
        let mut pace = Pace::new(2);
        // First the threads are in each other's way, later they are not.
        assert!(launch(&mut pace, 1000, |size| [0, 10, 20][size]).0[1] > 0.97);
        assert!(launch(&mut pace, 3000, |size| [0, 20, 10][size]).0[2] > 0.8);
    }

    #[test]
    fn one_thread_asks_for_nothing() {
        let mut pace = Pace::new(1);
        assert!((0..1000).all(|_| !pace.ends_window(|| unreachable!())));
    }
}
