//! The timed part of a fast launch: CTAs start until the machine executes them at a steady rate.
//!
//! At first the L2 holds what the host and earlier launches left there; while the launch's own lines take its place, it
//! is in no steady state: it evicts what costs nothing, and nothing has to be written back. If it will be taken before
//! the launch ends, the waves since then count.
//!
//! The unit of time is a wave: as many CTAs as are resident at once. CTAs that start together often stay in step, so
//! only whole waves compare. What is left then is whole waves, too: the last wave, which may be smaller and in which
//! the chip runs empty, is timed like the first.

use super::*;
use crate::time::cache::Tags;
use crate::time::machine::leap::Leaps;
use crate::time::sm::stats::BySlot;

/// Two stretches are alike if their cycles per warp instruction differ by no more than this share.
pub(super) const ALIKE: f64 = 0.03;

/// A grid of fewer waves has little to leave out between its first CTAs and its last ones, and so has one whose rate
/// has not settled after as many.
const FEW_WAVES: u64 = 16;

/// In a grid of few waves, so many warp instructions, or cycles, are timed before a leap. They take a second or two, so
/// there is little to gain in a launch that has no more, and launches that repeat are compared with each other, for
/// which they must be known well.
const FIRST_LEAP: u64 = 1 << 21;

/// So long a first wave makes a grid of many waves like one of few.
const LONG_WAVE: u64 = 1 << 23;

/// The L2 counts as full when the launch has used this share of its lines, and takes no more of them from one look to
/// the next than [`FILLING`]: addresses do not fill all sets alike.
const FULL: f64 = 0.9;

/// While the launch takes more of the L2's lines from one look to the next, the rate is that of an L2 that fills up.
pub(super) const FILLING: f64 = 0.005;

/// A moment, such as that at which another wave of CTAs had started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub at: Cycle,
    /// Warp instructions of the launch until then.
    pub instructions: u64,
}

/// A rate at which the last instructions were executed, and as many before them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steady {
    /// Cycles per warp instruction.
    pub rate: f64,
    /// By what share they differ.
    pub spread: f64,
    /// How many they were together.
    pub instructions: u64,
}

/// Whether the rate is steady: the last stretches between marks took as long per instruction as as many before them.
/// One stretch against one comes first; a rate that goes up and down needs more of them.
pub(super) fn steady(marks: &[Mark]) -> Option<Steady> {
    let last = marks.len().checked_sub(1)?;
    let stretch = |from: usize, to: usize| {
        let (from, to) = (marks[from], marks[to]);
        let instructions = to.instructions.saturating_sub(from.instructions);
        (instructions > 0).then(|| (to.at - from.at) as f64 / instructions as f64)
    };
    let lengths = std::iter::successors(Some(1), |length| Some(2 * length));
    lengths.take_while(|length| 2 * length <= last).find_map(|length| {
        let first = last - 2 * length;
        let before = stretch(first, last - length)?;
        let rate = stretch(last - length, last)?;
        let spread = (rate - before).abs() / rate;
        let instructions = marks[last].instructions - marks[first].instructions;
        (spread <= ALIKE).then_some(Steady { rate, spread, instructions })
    })
}

/// How far the search for a steady rate has come.
pub(super) struct Sampling {
    /// CTAs that are resident at once.
    wave: u64,
    marks: Vec<Mark>,
    /// By slice, how often its lines had been used when the launch began.
    uses: Vec<u64>,
    /// Lines of the L2 that the launch had used, at the last mark.
    held: u64,
    /// Marks before the first one from which on the L2 was no longer filling up.
    filling: usize,
    settled: Option<Settled>,
    /// Unless the SM's lock bits would have to be taken along.
    may_leap: bool,
    pub(super) leaps: Leaps,
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
    pub(super) fn new(launch: &Launch<'_>, side: &MemorySide) -> Sampling {
        let wave = launch.wave();
        let ctas = launch.shape.ctas();
        let warps = ctas.min(wave) * u64::from(launch.occupancy.warps_per_cta);
        let uses = side.partitions.iter().flat_map(|partition| partition.tags()).map(Tags::uses).collect();
        Sampling {
            wave,
            marks: Vec::new(),
            uses,
            held: 0,
            filling: 0,
            settled: None,
            may_leap: launch.lock_bits() == 0,
            leaps: Leaps::new(side.now(), warps),
        }
    }

    /// Whether another wave has started when `ctas` have.
    fn is_due(&self, ctas: u64) -> bool {
        self.settled.is_none() && !self.leaps.any() && ctas >= self.wave * (self.marks.len() as u64 + 1)
    }

    /// The launch has used so many lines of the L2, of so many. While it fills up fast enough to be full before so many
    /// waves have passed, what happens does not say what will.
    fn note_l2(&mut self, (held, lines): (u64, u64), waves: u64) {
        let added = held.saturating_sub(std::mem::replace(&mut self.held, held)) as f64;
        let (held, full) = (held as f64, FULL * lines as f64);
        let will_be_full = held < full && held + added * waves as f64 > full;
        let nearly_full = held >= full && added > FILLING * lines as f64;
        if will_be_full || nearly_full {
            // Nor does the wave that begins at this mark.
            self.filling = self.marks.len() + 1;
        }
    }

    /// The rate, if it has settled.
    fn rate(&self) -> Option<Steady> {
        steady(&self.marks[self.filling..])
    }

    /// After how many warp instructions or cycles to look for a first leap in a grid of so many CTAs, if at all: waves
    /// say more of one that has many, unless the first of them is long.
    fn first_leap(&self, total: u64) -> Option<u64> {
        let waves = self.marks.len() as u64;
        let few = total < FEW_WAVES * self.wave || waves >= FEW_WAVES;
        let first = if few { FIRST_LEAP } else { LONG_WAVE };
        (self.may_leap && self.settled.is_none() && (few || waves < 2)).then_some(first)
    }
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Looks whether the rate has settled. If it is that of CTAs, no more start than the last wave needs. If it is that
    /// of instructions in a few long CTAs, returns how many of these to leap over.
    pub(super) fn look_for_rate(&mut self, now: Cycle) -> Option<u64> {
        let sampling = self.sampling.as_mut()?;
        let of_ctas = sampling.is_due(self.next_cta);
        let first_leap = sampling.first_leap(self.total).filter(|_| sampling.leaps.may_be_due(now));
        if !of_ctas && first_leap.is_none() {
            return None;
        }
        let instructions = self.sms.iter().map(|sm| sm.probe.0.warp_instructions()).sum();
        if !of_ctas && !first_leap.is_some_and(|first| sampling.leaps.is_due(now, instructions, first)) {
            return None;
        }
        let numbers = 0..self.partitions.len();
        let tags = numbers.filter_map(|number| self.partitions.get(number)).flat_map(Partition::tags);
        let of_slices = tags.zip(&sampling.uses).map(|(tags, &uses)| tags.held_since(uses));
        let l2 = of_slices.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        if !of_ctas {
            let leap = sampling.leaps.look(now, instructions, l2);
            if sampling.leaps.begins() {
                self.sms.iter_mut().for_each(|sm| sm.probe.0.by_slot = BySlot::default());
            }
            return leap;
        }
        let waves = (self.total - self.next_cta) / sampling.wave;
        sampling.note_l2(l2, waves);
        sampling.marks.push(Mark { at: now, instructions });
        let left = waves * sampling.wave;
        if left > 0
            && let Some(Steady { rate, spread, .. }) = sampling.rate()
        {
            sampling.settled = Some(Settled { left, cycles_per_instruction: rate, spread });
            self.total -= left;
        }
        None
    }

    pub(super) fn settled(&self) -> Option<Settled> {
        self.sampling.as_ref()?.settled
    }

    /// What the launch takes longer than the machine's cycles say so far.
    pub(super) fn leapt_cycles(&self) -> u64 {
        self.sampling.as_ref().map_or(0, |sampling| sampling.leaps.leapt.cycles.max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waves of one CTA.
    fn sampling() -> Sampling {
        Sampling {
            wave: 1,
            marks: Vec::new(),
            uses: Vec::new(),
            held: 0,
            filling: 0,
            settled: None,
            may_leap: true,
            leaps: Leaps::new(Cycle(0), 1),
        }
    }

    /// Waves of 1000 instructions that take so many cycles.
    fn after(waves: &[u64]) -> Option<(f64, f64)> {
        let mut at = 0;
        let start = [0].iter().chain(waves);
        let mark = |(wave, cycles): (usize, &u64)| {
            at += cycles;
            Mark { at: Cycle(at), instructions: 1000 * wave as u64 }
        };
        let marks = start.enumerate().map(mark).collect();
        Sampling { marks, ..sampling() }.rate().map(|steady| (steady.rate, steady.spread))
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
    fn waves_that_fill_the_l2_do_not_count() {
        let mut sampling = sampling();
        for (wave, held) in [20, 40, 60, 80, 95, 98, 98, 98, 98].into_iter().enumerate() {
            sampling.note_l2((held, 100), 50);
            let instructions = 1000 * wave as u64;
            sampling.marks.push(Mark { at: Cycle(500 * wave as u64), instructions });
            assert_eq!(sampling.rate().is_some(), wave == 8, "wave {wave}");
        }
        // It will not be full before the launch ends.
        let mut sampling = super::tests::sampling();
        sampling.note_l2((5, 100), 10);
        assert_eq!(sampling.filling, 0);
    }

    #[test]
    fn leaps_are_for_few_waves_and_long_ones() {
        let mut sampling = sampling();
        let marks = |waves| vec![Mark { at: Cycle(0), instructions: 0 }; waves];
        let leaps = [(8, 0), (8, 9), (50, 1), (50, 2), (50, 16)].map(|(ctas, waves)| {
            sampling.marks = marks(waves);
            sampling.first_leap(ctas)
        });
        let few = Some(FIRST_LEAP);
        assert_eq!(leaps, [few, few, Some(LONG_WAVE), None, few]);
        sampling.may_leap = false;
        assert_eq!(sampling.first_leap(8), None);
    }

    #[test]
    fn rates_that_go_up_and_down_need_more_waves() {
        assert_eq!(after(&[500, 600, 500]), None);
        assert_eq!(after(&[500, 600, 500, 600]), Some((0.55, 0.0)));
        assert_eq!(after(&[500, 600, 700, 800]), None);
    }
}
