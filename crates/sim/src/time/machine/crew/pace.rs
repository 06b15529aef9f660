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

/// Numbers of threads are compared by stretches of about so long, of at least as many windows as looks at the clock.
const STRETCH: Duration = Duration::from_millis(2);
const LOOKS: u32 = 8;

/// Most windows from look to look.
const LOOK: u32 = 4;

/// Looks before those that count, in which threads wake up and their caches fill.
const WARMING: u32 = 2;

/// A launch runs on one thread for so long, whatever is known: threads take time to wake up.
const ALONE: Duration = Duration::from_millis(1);

/// Where a window takes one thread longer, all threads are tried at once, and may cost as much time as the launch has
/// run: windows so long have hardly ever been slower with more of them.
const LONG_WINDOW: Duration = Duration::from_micros(30);

/// Trials may cost so small a part of the time, but for what the last one takes before it is broken off.
const BUDGET: u32 = 60;

/// Before it was tried, a trial is expected to cost so much for each thread.
const WAKING: Duration = Duration::from_micros(25);

/// What it costs to make a thread.
const MAKING: Duration = Duration::from_micros(10);

/// What a stretch on another number of threads may take of one on the present number, to be better: more of them could
/// do something else, and a small gain is perhaps none.
const MORE_PERCENT: u32 = 95;
const FEWER_PERCENT: u32 = 98;

/// And to be better beyond doubt.
const CLEAR_PERCENT: u32 = 75;

/// How many threads work in the next windows.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// One, two, four and so on, up to all.
    sizes: Vec<usize>,
    /// For each of them, what a trial is expected to cost.
    costs: Vec<Duration>,
    /// The place of the one that was fastest.
    best: usize,
    /// There was a trial.
    tried: bool,
    step: Step,
    /// Windows from look to look.
    look: u32,
    /// Windows before the next look at the clock.
    left: u32,
    since: Option<Instant>,
    /// How long the last stretch took.
    stretch: Duration,
    /// For how long the kernel has run, how much of that trials have cost, and what they have gained in a stretch or
    /// two: it pays for going on in the same direction.
    ran: Duration,
    lost: Duration,
    gained: Duration,
    /// What it would cost to make threads: there are none yet.
    making: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One thread, at the beginning of a launch, for so many looks.
    Alone { looks: u32 },
    /// The best number so far.
    Best,
    /// Another one.
    Trial(Trial),
    /// The best number so far again, after a trial.
    After { of: Trial, looks: u32, took: Duration },
}

/// What has come of a trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The place of the number that is tried.
    at: usize,
    looks: u32,
    /// How long those took that count.
    took: Duration,
    /// How long all took, with those in which caches fill again afterwards.
    spent: Duration,
    /// It costs more than it may.
    broken_off: bool,
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
            tried: false,
            step: Step::Alone { looks: 0 },
            look: LOOK,
            left: LOOK,
            since: None,
            stretch: Duration::ZERO,
            ran: Duration::ZERO,
            lost: Duration::ZERO,
            gained: Duration::ZERO,
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
            Step::Alone { .. } => 1,
            Step::Best | Step::After { .. } => self.sizes[self.best],
            Step::Trial(Trial { at, .. }) => self.sizes[at],
        }
    }

    /// A launch of the kernel begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        (self.step, self.look, self.left, self.since) = (Step::Alone { looks: 0 }, LOOK, LOOK, Some(now));
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
            Step::Alone { looks } if took < ALONE => {
                (self.step, self.left) = (Step::Alone { looks: looks + 1 }, self.look);
                return false;
            }
            Step::Alone { looks } => {
                let stretch = took * LOOKS / (looks + 1);
                let shorter = stretch.div_duration_f64(STRETCH).ceil() as u32;
                let window = stretch / (LOOKS * self.look);
                self.look = (LOOK / shorter.max(1)).max(1);
                self.stretch = window * LOOKS * self.look;
                if self.tried || window < LONG_WINDOW {
                    Step::Best
                } else {
                    self.gained += took;
                    self.trial(self.sizes.len() - 1)
                }
            }
            Step::Best => {
                self.stretch = took;
                self.next_trial()
            }
            Step::Trial(trial) => self.go_on(trial, took),
            Step::After { of, looks, took: before } => self.come_back(of, looks + 1, before, took),
        };
        (self.ran, self.since) = (self.ran + took, Some(now));
        self.left = if matches!(self.step, Step::Best) { LOOKS * self.look } else { self.look };
        self.size() != size
    }

    /// What trials may still cost.
    fn budget(&self) -> Duration {
        (self.ran / BUDGET + self.gained).saturating_sub(self.lost)
    }

    /// The trial that is expected to cost least, if that is within the budget.
    fn next_trial(&mut self) -> Step {
        let others = (0..self.sizes.len()).filter(|&at| at != self.best);
        let cheapest = others.min_by_key(|&at| (self.costs[at], at.abs_diff(self.best)));
        match cheapest {
            // Half a look more or less may be the windows' own, and would break it off.
            Some(at) if self.costs[at] + self.making + self.stretch / (2 * LOOKS) <= self.budget() => {
                self.trial(at)
            }
            _ => Step::Best,
        }
    }

    fn trial(&mut self, at: usize) -> Step {
        self.tried = true;
        let (looks, took, spent) = (0, Duration::ZERO, Duration::ZERO);
        Step::Trial(Trial { at, looks, took, spent, broken_off: false })
    }

    /// How much longer so many looks took than they would have on the best number.
    fn lost(&self, spent: Duration, looks: u32) -> Duration {
        spent.saturating_sub(self.stretch * looks / LOOKS)
    }

    /// Another look of a trial took so long.
    fn go_on(&mut self, before: Trial, took: Duration) -> Step {
        let mut trial = before;
        trial.looks += 1;
        trial.spent += took;
        if trial.looks > WARMING {
            trial.took += took;
        }
        trial.broken_off = self.lost(trial.spent, trial.looks) > self.budget();
        if trial.looks < WARMING + LOOKS && !trial.broken_off {
            return Step::Trial(trial);
        }
        if !trial.broken_off && trial.took * 100 <= self.stretch * CLEAR_PERCENT {
            self.adopt(trial.at, self.stretch, trial.took);
            return self.next_trial();
        }
        Step::After { of: trial, looks: 0, took: Duration::ZERO }
    }

    /// Another look after a trial took so long, those before it `before`.
    fn come_back(&mut self, mut of: Trial, looks: u32, before: Duration, took: Duration) -> Step {
        if looks <= WARMING {
            of.looks += 1;
            of.spent += took;
        }
        let after = before + if looks > WARMING { took } else { Duration::ZERO };
        let percent = if of.at > self.best { MORE_PERCENT } else { FEWER_PERCENT };
        let is_better = |reference: Duration| !of.broken_off && of.took * 100 <= reference * percent;
        // Perhaps what came before it had more to do.
        if looks < WARMING || looks < WARMING + LOOKS && is_better(self.stretch) {
            return Step::After { of, looks, took: after };
        }
        let reference = (self.stretch + after) / 2;
        if looks == WARMING + LOOKS && is_better(reference) {
            self.adopt(of.at, reference, of.took);
            return self.next_trial();
        }
        let lost = self.lost(of.spent, of.looks);
        self.lost += lost;
        self.costs[of.at] = lost.max(2 * self.costs[of.at]);
        Step::Best
    }

    /// A stretch on the number at a place took less than one on the best number so far.
    fn adopt(&mut self, at: usize, reference: Duration, took: Duration) {
        self.costs[at] = WAKING * self.sizes[at] as u32;
        let gain = reference.saturating_sub(took);
        if at > self.best {
            self.gained += 2 * gain;
        }
        // So much is lost by going back.
        self.costs[self.best] = 2 * self.costs[self.best] + gain;
        (self.best, self.stretch) = (at, took);
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
                    assert!(
                        windows >= 0.97 * alone,
                        "{threads} threads, {millis} ms, {slower} us: {windows}"
                    );
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
