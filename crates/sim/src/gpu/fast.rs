//! The fast model: samples of a program run on the timed machine, the rest runs functionally and is estimated.
//!
//! Three samples are taken. Of a launch of many CTAs, some are timed until their rate has settled ([`Settled`]). Of a
//! launch of few long CTAs, they are timed now and again for a while ([`Leapt`]). Of launches that repeat, the first
//! ones are timed, and then one now and again. Work is compared by warp instructions, which both models count.

use std::collections::{BTreeMap, HashMap};

use warploom_isa::{Op, Special};

use crate::exec::launch::{Launch, Shape};
use crate::exec::memory::store::Memory;
use crate::gpu::observers::MakeObserver;
use crate::gpu::outcome::{LaunchError, Stats};
use crate::gpu::run::{TimedGrid, run_functional, stats_of};
use crate::gpu::timing::Timing;
use crate::time::machine::totals::TimedStats;
use crate::time::machine::{Finished, Leapt, MemorySide, Settled};

/// A launch is as those with the same grid have said if its cycles differ by no more than this share.
const ALIKE: f64 = 0.05;

/// And as those with other grids have said by this one: many such launches lie on both sides of what is said.
const ROUGHLY_ALIKE: f64 = 0.1;

/// What only a clock can tell.
const CLOCKS: [Special; 6] = [
    Special::Clock,
    Special::ClockHi,
    Special::Clock64,
    Special::GlobalTimer,
    Special::GlobalTimerHi,
    Special::GlobalTimerLo,
];

/// Launches are alike in their work if their warp instructions differ by no more than this share.
const SAME_WORK: f64 = 0.1;

/// At first a new grid can be left out if one that was timed has as many CTAs, but for this share; it grows like the
/// intervals.
const LIKE_GRID: f64 = 0.15;

/// Of so many waves of CTAs, one more or less makes little difference.
const MANY_WAVES: u64 = 4;

/// At first one of so many launches is timed again; twice as many after each that was as expected.
const FIRST_INTERVAL: u64 = 4;
const LONGEST_INTERVAL: u64 = 32;

/// What the fast model timed of a launch, and what that says of the rest. The timed counters of the launch
/// ([`Stats::timed`]) are those of the part that was timed, or of an earlier launch that stands for this one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Cycles of the whole launch.
    pub cycles: u64,
    /// CTAs of the launch that ran on the timed machine.
    pub timed_ctas: u64,
    /// Their warp instructions.
    pub timed_warp_instructions: u64,
    /// How far the cycles may be off, as a share of them, going by how much the samples differ.
    pub error: f64,
    /// Why nothing could be left out.
    pub timed_because: Option<&'static str>,
}

impl Estimate {
    /// The whole launch was timed.
    fn of_timed(stats: &Stats, because: &'static str) -> Estimate {
        Estimate {
            cycles: stats.timed.as_ref().map_or(0, |timed| timed.cycles),
            timed_ctas: stats.ctas,
            timed_warp_instructions: stats.warp_instructions,
            error: 0.0,
            timed_because: Some(because),
        }
    }

    /// Parts of CTAs have run functionally in between.
    pub(super) fn with_leaps<P>(timed: &Finished<P>, leapt: &Leapt) -> Estimate {
        let cycles = (timed.timed.cycles as f64 + leapt.cycles).max(1.0);
        Estimate {
            cycles: cycles.round() as u64,
            timed_ctas: timed.ctas - leapt.parts.iter().map(|part| part.ctas).sum::<u64>(),
            timed_warp_instructions: timed.warp_instructions,
            error: leapt.error / cycles,
            timed_because: None,
        }
    }

    /// The CTAs that the timed machine left out have run functionally: so many warp instructions.
    pub(super) fn of_rest<P>(timed: &Finished<P>, settled: Settled, instructions: u64) -> Estimate {
        let left_out = settled.cycles_per_instruction * instructions as f64;
        let cycles = timed.timed.cycles as f64 + left_out;
        Estimate {
            cycles: cycles.round() as u64,
            timed_ctas: timed.ctas,
            timed_warp_instructions: timed.warp_instructions,
            error: if cycles > 0.0 { settled.spread * left_out / cycles } else { 0.0 },
            timed_because: None,
        }
    }
}

/// What the fast model cannot do, if it is asked to: most of the launch would be missing.
pub(super) fn refuses(timing: &Timing, observers: &[MakeObserver]) -> Option<&'static str> {
    let refused = [
        (timing.trace.is_some(), "traced"),
        (timing.profile, "profiled"),
        (timing.sample_cycles.is_some(), "sampled over time"),
        (!observers.is_empty(), "observed"),
    ];
    refused.into_iter().find_map(|(is_asked, what)| is_asked.then_some(what))
}

/// Why a launch is timed as a whole, if it must be.
fn must_be_timed(launch: &Launch<'_>) -> Option<&'static str> {
    if launch.kernel.may_wait() {
        // How long a warp spins depends on what runs beside it, and so does how many instructions it executes.
        return Some("its loops wait for other threads");
    }
    if launch.clusters {
        return Some("its CTAs are in clusters");
    }
    let reads_clock = |op: &Op| matches!(op, Op::Special(special) if CLOCKS.contains(special));
    if launch.kernel.code.iter().any(|inst| reads_clock(&inst.op)) {
        return Some("it reads the clock");
    }
    // L1s hold bytes that a functional launch would not see.
    launch.chip.has_coherent_l1s().then_some("the chip's L1s are coherent")
}

/// Launches of the same kernel with blocks of the same shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kernel: String,
    /// Kernels of different modules can have the same name.
    instructions: usize,
    block: [u32; 3],
    dynamic_shared_bytes: u32,
}

impl Key {
    fn of(launch: &Launch<'_>) -> Key {
        let Shape { block, dynamic_shared_bytes, .. } = launch.shape;
        let (kernel, instructions) = (launch.kernel.name.clone(), launch.kernel.code.len());
        Key { kernel, instructions, block, dynamic_shared_bytes }
    }
}

/// How often launches are timed that are alike.
#[derive(Debug, Default)]
struct Turns {
    /// The last timed launch was as those before had said.
    expected: bool,
    /// How far the last one was from that, as a share.
    surprise: f64,
    /// Launches since then.
    since: u64,
    /// The next one is timed after so many.
    interval: u64,
}

impl Turns {
    /// A launch took so many cycles, and those before had said so many, if they said anything: as expected, if the two
    /// differ by no more than a share.
    fn add(&mut self, cycles: f64, said: Option<f64>, alike: f64) {
        let left_out = std::mem::take(&mut self.since) > 0;
        self.surprise = said.map_or(0.0, |said| (said - cycles).abs() / cycles.max(1.0));
        self.expected = said.is_some() && self.surprise <= alike;
        self.interval = match self.expected && left_out {
            true => (2 * self.interval).min(LONGEST_INTERVAL),
            false => FIRST_INTERVAL,
        };
    }

    /// Whether a launch can be left out now.
    fn suffice(&self) -> bool {
        self.expected && self.since < self.interval
    }
}

/// The last timed launch of a grid.
#[derive(Debug)]
struct Sample {
    timed: Box<TimedStats>,
    ctas: u64,
    waves: u64,
    instructions: f64,
    cycles: f64,
    turns: Turns,
}

/// The launches of a kernel: those with the same grid are compared with each other, and those with a new grid with all
/// others.
#[derive(Debug, Default)]
struct History {
    by_grid: BTreeMap<[u32; 3], Sample>,
    /// Of launches with new grids.
    new_grids: Turns,
}

impl History {
    /// Cycles of a launch of so many instructions with a new grid: on the line between the samples with less and with
    /// more work, or on the line through the nearest two, which is not steeper than proportional; or proportional to
    /// the only one.
    fn between(&self, instructions: f64) -> Option<f64> {
        let distance = |sample: &Sample| (sample.instructions - instructions).abs();
        let near = |a: &&Sample, b: &&Sample| distance(a).total_cmp(&distance(b));
        let nearest = self.by_grid.values().min_by(near)?;
        let beyond = (nearest.instructions - instructions).signum();
        let opposite = self.by_grid.values().filter(|s| (s.instructions - instructions) * beyond < 0.0);
        let behind = self.by_grid.values().filter(|s| (s.instructions - nearest.instructions) * beyond > 0.0);
        let (second, limited) = match opposite.min_by(near) {
            Some(opposite) => (Some(opposite), false),
            None => (behind.min_by(near), true),
        };
        let steepest = nearest.cycles / nearest.instructions.max(1.0);
        let slope = second.map_or(steepest, |second| {
            let slope = (nearest.cycles - second.cycles) / (nearest.instructions - second.instructions);
            if limited { slope.clamp(0.0, steepest) } else { slope }
        });
        Some(nearest.cycles + slope * (instructions - nearest.instructions))
    }

    /// Whether there is a sample with about as many CTAs in about as many waves. The longer new grids have been as
    /// expected, the more the CTAs may differ.
    fn has_about(&self, ctas: u64, waves: u64) -> bool {
        let share = LIKE_GRID * (self.new_grids.interval / FIRST_INTERVAL) as f64;
        let as_many = |of: u64| (of.max(ctas) as f64) <= (1.0 + share) * of.min(ctas) as f64;
        let in_step = |of: u64| of == waves || of.min(waves) >= MANY_WAVES;
        self.by_grid.values().any(|sample| as_many(sample.ctas) && in_step(sample.waves))
    }

    fn suffices(&self, launch: &Launch<'_>) -> bool {
        match self.by_grid.get(&launch.shape.grid) {
            Some(sample) => sample.turns.suffice(),
            None => self.new_grids.suffice() && self.has_about(launch.shape.ctas(), waves(launch)),
        }
    }

    /// A launch was timed, at least in part.
    fn add_timed(&mut self, launch: &Launch<'_>, stats: &Stats, estimate: &Estimate) {
        let Some(timed) = &stats.timed else { return };
        let (instructions, cycles) = (stats.warp_instructions as f64, estimate.cycles as f64);
        let before = self.by_grid.remove(&launch.shape.grid);
        let turns = match before {
            Some(Sample { instructions: as_many, cycles: took, mut turns, .. }) => {
                // What another amount of work takes says nothing of launches that repeat.
                let same = (instructions - as_many).abs() <= SAME_WORK * as_many;
                turns.add(cycles, same.then(|| took / as_many.max(1.0) * instructions), ALIKE);
                turns
            }
            None => {
                let said = self.between(instructions);
                self.new_grids.add(cycles, said, ROUGHLY_ALIKE);
                let mut turns = Turns::default();
                turns.add(cycles, said, ALIKE);
                turns
            }
        };
        let (timed, ctas, waves) = (timed.clone(), launch.shape.ctas(), waves(launch));
        self.by_grid.insert(launch.shape.grid, Sample { timed, ctas, waves, instructions, cycles, turns });
    }

    /// A launch has run functionally: its cycles by those of its kind, with the counters of the nearest timed one.
    fn estimate(&mut self, launch: &Launch<'_>, stats: &mut Stats) {
        let instructions = stats.warp_instructions as f64;
        let between = self.between(instructions);
        let (cycles, turns, sample) = match self.by_grid.get_mut(&launch.shape.grid) {
            Some(sample) => {
                let cycles = sample.cycles / sample.instructions.max(1.0) * instructions;
                // Another amount of work may take another time for each instruction: the next launch will tell.
                if (instructions - sample.instructions).abs() > SAME_WORK * sample.instructions {
                    sample.turns.since = sample.turns.interval;
                }
                (cycles, &mut sample.turns, &sample.timed)
            }
            None => {
                let distance = |sample: &&Sample| launch.shape.ctas().abs_diff(sample.ctas);
                let nearest = self.by_grid.values().min_by_key(distance);
                let Some((cycles, nearest)) = between.zip(nearest) else { return };
                (cycles, &mut self.new_grids, &nearest.timed)
            }
        };
        turns.since += 1;
        stats.timed = Some(sample.clone());
        stats.estimate = Some(Estimate {
            cycles: cycles.round() as u64,
            timed_ctas: 0,
            timed_warp_instructions: 0,
            error: turns.surprise,
            timed_because: None,
        });
    }
}

/// How often a wave of CTAs starts, the last one counted.
fn waves(launch: &Launch<'_>) -> u64 {
    launch.shape.ctas().div_ceil(launch.wave())
}

/// The launches so far, by kernel.
#[derive(Debug, Default)]
pub(super) struct Histories(HashMap<Key, History>);

impl Histories {
    /// Runs a launch: functionally, if earlier ones say enough, or else on the timed machine as far as it must.
    pub(super) fn run(
        &mut self,
        grid: &TimedGrid<'_>,
        memory: &mut Memory,
        side: &mut MemorySide,
    ) -> Result<Stats, LaunchError> {
        let launch = grid.launch;
        let whole = must_be_timed(launch);
        let history = self.0.entry(Key::of(launch)).or_default();
        if whole.is_none() && history.suffices(launch) {
            let mut result = run_functional(launch, memory);
            if let Some(stats) = stats_of(&mut result) {
                history.estimate(launch, stats);
            }
            return result;
        }
        let mut result = grid.run(memory, side, whole.is_none());
        let ended = result.is_ok();
        if let Some(stats) = stats_of(&mut result) {
            let because = whole.unwrap_or("it ended before the rate of its CTAs had settled");
            let estimate = stats.estimate.unwrap_or_else(|| Estimate::of_timed(stats, because));
            stats.estimate = Some(estimate);
            if ended && whole.is_none() {
                history.add_timed(launch, stats, &estimate);
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of launches with so many CTAs, warp instructions and cycles. A wave has 16 CTAs.
    fn history(samples: &[(u64, f64, f64)]) -> History {
        let sample = |&(ctas, instructions, cycles): &(u64, f64, f64)| {
            let (timed, turns) = (Box::default(), Turns::default());
            let waves = ctas.div_ceil(16);
            ([ctas as u32, 1, 1], Sample { timed, ctas, waves, instructions, cycles, turns })
        };
        let new_grids = Turns { interval: FIRST_INTERVAL, ..Turns::default() };
        History { by_grid: samples.iter().map(sample).collect(), new_grids }
    }

    #[test]
    fn launches_with_new_grids() {
        assert_eq!(history(&[]).between(50.0), None);
        assert_eq!(history(&[(1, 100.0, 500.0)]).between(90.0), Some(450.0));
        let mut two = history(&[(10, 100.0, 500.0), (20, 200.0, 600.0)]);
        assert_eq!(two.between(150.0), Some(550.0));
        assert_eq!(two.between(250.0), Some(650.0));
        assert_eq!(two.between(50.0), Some(450.0));
        // Less work does not take longer, and twice the work at most twice as long.
        let odd = history(&[(10, 100.0, 500.0), (20, 200.0, 5000.0)]);
        assert_eq!(odd.between(400.0), Some(10_000.0));
        let has_about = |history: &History, ctas: u64| history.has_about(ctas, ctas.div_ceil(16));
        assert!(has_about(&two, 11) && has_about(&two, 18) && !has_about(&two, 14));
        two.new_grids.interval *= 4;
        assert!(has_about(&two, 14) && has_about(&two, 32), "they have been as expected for a while");
        assert!(!has_about(&two, 33), "another wave");
        let many = history(&[(100, 100.0, 500.0)]);
        assert!(has_about(&many, 114), "another wave, of many");
    }

    #[test]
    fn launches_as_expected_are_timed_less_and_less() {
        let mut turns = Turns::default();
        turns.add(100.0, None, ALIKE);
        assert!(!turns.suffice());
        let mut timed = 2;
        turns.add(101.0, Some(100.0), ALIKE);
        for _ in 0..100 {
            if turns.suffice() {
                turns.since += 1;
            } else {
                turns.add(100.0, Some(100.0), ALIKE);
                timed += 1;
            }
        }
        // After 4, 8, 16, 32 and 32 that were left out.
        assert_eq!(timed, 2 + 5);
        turns.add(150.0, Some(100.0), ALIKE);
        assert!(!turns.suffice() && turns.interval == FIRST_INTERVAL);
    }
}
