//! The delay limit of an SM's backed-off warps: fixed, or adapted after every window of cycles (the BOWS paper's
//! Figure 5).

use crate::chip::spinning::BowsSpec;
use crate::kit::cycle::Cycle;

/// What an SM issued in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Instructions issued.
    pub total: u64,
    /// Of those, spin-inducing branches.
    pub sibs: u64,
}

impl Window {
    /// Instructions per spin-inducing branch: a measure of useful work. Infinite if no warp spins. NaN, so neither
    /// better nor worse than any other, if nothing issues at all.
    fn ratio(self) -> f64 {
        self.total as f64 / self.sibs as f64
    }
}

#[derive(Clone, Debug)]
pub(crate) struct DelayLimiter {
    spec: BowsSpec,
    cycles: u64,
    this: Window,
    last: Window,
    /// The cycle in which the window ends.
    ends_at: Cycle,
}

impl DelayLimiter {
    /// The limit of an SM that begins at cycle `now`.
    pub(crate) fn new(spec: &BowsSpec, now: Cycle) -> DelayLimiter {
        let cycles = if spec.adaptive { spec.min_limit_cycles } else { spec.limit_cycles };
        DelayLimiter {
            spec: spec.clone(),
            cycles,
            this: Window::default(),
            last: Window::default(),
            ends_at: if spec.adaptive {
                Cycle(now.0.saturating_add(spec.window_cycles))
            } else {
                Cycle::NEVER
            },
        }
    }

    /// The limit in force.
    pub(crate) fn cycles(&self) -> u64 {
        self.cycles
    }

    /// An instruction issues. Returns whether the limit may have changed before it.
    #[inline]
    pub(crate) fn issued(&mut self, now: Cycle, is_sib: bool) -> bool {
        let due = now >= self.ends_at;
        if due {
            self.catch_up(now);
        }
        self.this.total += 1;
        self.this.sibs += u64::from(is_sib);
        due
    }

    /// The SM has no warps left: the next ones begin with the lowest limit.
    pub(crate) fn emptied(&mut self, now: Cycle) {
        *self = DelayLimiter::new(&self.spec, now);
    }

    /// Windows may end while nothing issues. An empty window leaves the limit as it is, so only the first that ended
    /// has to be looked at; windows stay aligned.
    fn catch_up(&mut self, now: Cycle) {
        self.end_window();
        let missed = (now - self.ends_at) / self.spec.window_cycles;
        if missed > 0 {
            self.last = Window::default();
        }
        self.ends_at += (missed + 1) * self.spec.window_cycles;
    }

    /// Figure 5, word for word. After a window without spinning, any with spinning is worse: the limit falls.
    fn end_window(&mut self) {
        let BowsSpec { frac1, frac2, step_cycles, min_limit_cycles, max_limit_cycles, .. } = self.spec;
        if self.this.sibs as f64 > frac1 * self.this.total as f64 {
            self.cycles += step_cycles;
        }
        if self.this.ratio() < frac2 * self.last.ratio() {
            self.cycles = self.cycles.saturating_sub(2 * step_cycles);
        }
        self.cycles = self.cycles.clamp(min_limit_cycles, max_limit_cycles);
        self.last = std::mem::take(&mut self.this);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;

    fn limiter(set: &[&str]) -> DelayLimiter {
        let set: Vec<_> = set.iter().map(|s| s.to_string()).collect();
        DelayLimiter::new(&Chip::load("gtx480", &set).unwrap().issue.bows, Cycle(0))
    }

    /// Issues so many instructions in a window, spin-inducing branches first, and returns the limit after it.
    fn window(limiter: &mut DelayLimiter, number: u64, (total, sibs): (u64, u64)) -> u64 {
        for at in 0..total {
            limiter.issued(Cycle(number * 1000 + at % 1000), at < sibs);
        }
        // The limit that the first instruction of the next window would find.
        let mut after = limiter.clone();
        after.issued(Cycle((number + 1) * 1000), false);
        after.cycles()
    }

    #[test]
    fn the_figure_by_a_table_of_windows() {
        // Shares: rise above 1/1000; fall below 9/10 of the last ratio; 1000 to 10,000 in steps of 250.
        let mut adaptive = limiter(&[]);
        let table = [
            // total, branches, limit after it
            ((1000, 0), 1000),  // no warp spins
            ((1000, 1), 1000), // 1/1000 is not more than 1/1000; worse than before, but not below the minimum
            ((1000, 2), 1000), // +250; 500 is less than 0.9 × 1000: −500; not below the minimum
            ((1000, 2), 1250), // +250; as good as before
            ((1000, 10), 1000), // +250 −500
            ((1000, 10), 1250),
            ((1000, 11), 1500), // 90.9 is not below 90
            ((1000, 13), 1250), // 76.9 is below 81.8
            ((2000, 13), 1500), // better
            ((500, 0), 1500),   // no warp spins: better than any
            ((500, 100), 1250), // +250; worse than no spinning: −500
            ((500, 100), 1500),
        ];
        for (number, (counts, expected)) in table.into_iter().enumerate() {
            assert_eq!(window(&mut adaptive, number as u64, counts), expected, "window {number}");
        }
    }

    #[test]
    fn the_limit_has_a_ceiling() {
        let mut adaptive = limiter(&["issue.bows.max_limit_cycles=1600"]);
        let limits: Vec<_> = (0..5).map(|number| window(&mut adaptive, number, (100, 10))).collect();
        assert_eq!(limits, [1250, 1500, 1600, 1600, 1600]);
    }

    #[test]
    fn windows_in_which_nothing_issues_change_nothing() {
        let mut adaptive = limiter(&[]);
        assert_eq!(window(&mut adaptive, 0, (100, 10)), 1250);
        assert!(adaptive.issued(Cycle(7_500), false));
        assert_eq!((adaptive.cycles(), adaptive.ends_at), (1250, Cycle(8_000)));
        // A window in which nothing issues is neither better nor worse than another.
        assert_eq!(window(&mut adaptive, 7, (100, 50)), 1500);
    }

    #[test]
    fn table_2_never_moves() {
        let mut printed =
            limiter(&["issue.bows.frac1=0.5", "issue.bows.frac2=0.8", "issue.bows.max_limit_cycles=1000"]);
        for number in 0..20 {
            assert_eq!(window(&mut printed, number, (1000, 300 + number * 10)), 1000);
        }
    }

    #[test]
    fn a_fixed_limit_stays_and_an_adaptive_one_begins_anew_on_an_empty_sm() {
        let mut fixed = limiter(&["issue.bows.adaptive=false", "issue.bows.limit_cycles=0"]);
        assert!(!fixed.issued(Cycle(u64::MAX - 1), true));
        assert_eq!(fixed.cycles(), 0);
        let mut adaptive = limiter(&[]);
        assert_eq!(window(&mut adaptive, 0, (100, 10)), 1250);
        adaptive.issued(Cycle(1000), false);
        adaptive.emptied(Cycle(1700));
        assert_eq!((adaptive.cycles(), adaptive.ends_at), (1000, Cycle(2700)));
    }
}
