//! The timed part of a fast launch: CTAs start until the machine executes them at a steady rate.
//!
//! The unit of time is a wave: as many CTAs as are resident at once. CTAs that start together often stay in step, so
//! only whole waves compare. What is left then is whole waves, too: the last wave, which may be smaller and in which
//! the chip runs empty, is timed like the first.

use super::*;

/// Two stretches of waves are alike if their cycles per warp instruction differ by no more than this share.
const ALIKE: f64 = 0.03;

/// A moment at which another wave of CTAs had started.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Cycle,
    /// Warp instructions of the launch until then.
    instructions: u64,
}

/// How far the search for a steady rate has come.
#[derive(Debug)]
pub(super) struct Sampling {
    /// CTAs that are resident at once.
    wave: u64,
    marks: Vec<Mark>,
    settled: Option<Settled>,
}

/// A rate that has settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settled {
    /// CTAs of the grid that have not been started: whole waves.
    pub left: u64,
    pub cycles_per_instruction: f64,
    /// By what share the two stretches differ that are taken as alike.
    pub spread: f64,
}

impl Sampling {
    pub(super) fn new(launch: &Launch<'_>) -> Sampling {
        let wave = u64::from(launch.occupancy.ctas_per_sm) * u64::from(launch.chip.sm.count);
        Sampling { wave, marks: Vec::new(), settled: None }
    }

    /// Whether another wave has started when `ctas` have.
    fn is_due(&self, ctas: u64) -> bool {
        self.settled.is_none() && ctas >= self.wave * (self.marks.len() as u64 + 1)
    }

    /// Whether the rate has settled: the last waves took as long per instruction as as many before them. One wave
    /// against one comes first; a rate that goes up and down needs more of them. Returns rate and difference.
    fn rate(&self) -> Option<(f64, f64)> {
        let last = self.marks.len().checked_sub(1)?;
        let stretch = |from: usize, to: usize| {
            let (from, to) = (self.marks[from], self.marks[to]);
            let instructions = to.instructions.saturating_sub(from.instructions);
            (instructions > 0).then(|| (to.at - from.at) as f64 / instructions as f64)
        };
        let lengths = std::iter::successors(Some(1), |length| Some(2 * length));
        lengths.take_while(|length| 2 * length <= last).find_map(|length| {
            let before = stretch(last - 2 * length, last - length)?;
            let now = stretch(last - length, last)?;
            let spread = (now - before).abs() / now;
            (spread <= ALIKE).then_some((now, spread))
        })
    }
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Looks whether the rate of CTAs has settled. If so, no more start than the last wave needs.
    pub(super) fn look_for_rate(&mut self, now: Cycle) {
        let Some(sampling) = &mut self.sampling else { return };
        if !sampling.is_due(self.next_cta) {
            return;
        }
        let instructions = self.sms.iter().map(|sm| sm.probe.0.warp_instructions()).sum();
        sampling.marks.push(Mark { at: now, instructions });
        let left = (self.total - self.next_cta) / sampling.wave * sampling.wave;
        if left > 0
            && let Some((cycles_per_instruction, spread)) = sampling.rate()
        {
            sampling.settled = Some(Settled { left, cycles_per_instruction, spread });
            self.total -= left;
        }
    }

    pub(super) fn settled(&self) -> Option<Settled> {
        self.sampling.as_ref()?.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waves of 1000 instructions that take so many cycles.
    fn after(waves: &[u64]) -> Option<(f64, f64)> {
        let mut at = 0;
        let start = [0].iter().chain(waves);
        let mark = |(wave, cycles): (usize, &u64)| {
            at += cycles;
            Mark { at: Cycle(at), instructions: 1000 * wave as u64 }
        };
        Sampling { wave: 1, marks: start.enumerate().map(mark).collect(), settled: None }.rate()
    }

    #[test]
    fn rates_settle() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[500]), None);
        assert_eq!(after(&[500, 500]), Some((0.5, 0.0)));
        assert_eq!(after(&[500, 600]), None);
        assert_eq!(after(&[900, 600, 600]), Some((0.6, 0.0)));
    }

    #[test]
    fn rates_that_go_up_and_down_need_more_waves() {
        assert_eq!(after(&[500, 600, 500]), None);
        assert_eq!(after(&[500, 600, 500, 600]), Some((0.55, 0.0)));
        assert_eq!(after(&[500, 600, 700, 800]), None);
    }
}
