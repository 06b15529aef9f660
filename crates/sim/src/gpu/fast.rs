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

/// Two launches are alike if their cycles per warp instruction differ by no more than this share.
const ALIKE: f64 = 0.05;

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

/// Grids are alike if one has no more CTAs than the other and this share.
const SAME_GRID: f64 = 0.15;

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
    /// How many timed launches in a row were as those before had said.
    expected: u32,
    /// How far the last one was from that, as a share.
    surprise: f64,
    /// Launches since then.
    since: u64,
    /// The next one is timed after so many.
    interval: u64,
}

impl Turns {
    /// A launch took so many cycles, and those before had said so many, if they said anything.
    fn add(&mut self, cycles: f64, said: Option<f64>) {
        let left_out = std::mem::take(&mut self.since) > 0;
        self.surprise = said.map_or(0.0, |said| (said - cycles).abs() / cycles.max(1.0));
        let expected = said.is_some() && self.surprise <= ALIKE;
        self.expected = if expected { self.expected + 1 } else { 0 };
        self.interval = match expected && left_out {
            true => (2 * self.interval).min(LONGEST_INTERVAL),
            false => FIRST_INTERVAL,
        };
    }

    /// Whether a launch can be left out now, if so many had to be as expected.
    fn suffice(&self, expected: u32) -> bool {
        self.expected >= expected && self.since < self.interval
    }
}

/// The last timed launch of a grid.
#[derive(Debug)]
struct Sample {
    timed: Box<TimedStats>,
    ctas: u64,
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
    /// more work, or on the line through the nearest two, which is not steeper than proportional.
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
        let second = second?;
        let slope = (nearest.cycles - second.cycles) / (nearest.instructions - second.instructions);
        let steepest = nearest.cycles / nearest.instructions.max(1.0);
        let slope = if limited { slope.clamp(0.0, steepest) } else { slope };
        Some(nearest.cycles + slope * (instructions - nearest.instructions))
    }

    /// Whether there is a sample with about as many CTAs.
    fn has_about(&self, ctas: u64) -> bool {
        let about = |of: u64| (of.max(ctas) as f64) <= (1.0 + SAME_GRID) * of.min(ctas) as f64;
        self.by_grid.values().any(|sample| about(sample.ctas))
    }

    fn suffices(&self, launch: &Launch<'_>) -> bool {
        match self.by_grid.get(&launch.shape.grid) {
            Some(sample) => sample.turns.suffice(1),
            None => self.new_grids.suffice(2) && self.has_about(ctas(launch)),
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
                turns.add(cycles, same.then(|| took / as_many.max(1.0) * instructions));
                turns
            }
            None => {
                let said = self.between(instructions);
                self.new_grids.add(cycles, said);
                let mut turns = Turns::default();
                turns.add(cycles, said);
                turns
            }
        };
        let sample = Sample { timed: timed.clone(), ctas: ctas(launch), instructions, cycles, turns };
        self.by_grid.insert(launch.shape.grid, sample);
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
                let distance = |sample: &&Sample| ctas(launch).abs_diff(sample.ctas);
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

fn ctas(launch: &Launch<'_>) -> u64 {
    launch.shape.grid.iter().map(|&extent| u64::from(extent)).product()
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

    /// A history of launches with so many CTAs, warp instructions and cycles.
    fn history(samples: &[(u64, f64, f64)]) -> History {
        let sample = |&(ctas, instructions, cycles): &(u64, f64, f64)| {
            let (timed, turns) = (Box::default(), Turns::default());
            ([ctas as u32, 1, 1], Sample { timed, ctas, instructions, cycles, turns })
        };
        History { by_grid: samples.iter().map(sample).collect(), new_grids: Turns::default() }
    }

    #[test]
    fn launches_with_new_grids() {
        assert_eq!(history(&[]).between(50.0), None);
        assert_eq!(history(&[(1, 100.0, 500.0)]).between(100.0), None);
        let two = history(&[(10, 100.0, 500.0), (20, 200.0, 600.0)]);
        assert_eq!(two.between(150.0), Some(550.0));
        assert_eq!(two.between(250.0), Some(650.0));
        assert_eq!(two.between(50.0), Some(450.0));
        // Less work does not take longer, and twice the work at most twice as long.
        let odd = history(&[(10, 100.0, 500.0), (20, 200.0, 5000.0)]);
        assert_eq!(odd.between(400.0), Some(10_000.0));
        assert!(two.has_about(11) && two.has_about(18) && !two.has_about(15));
    }

    #[test]
    fn launches_as_expected_are_timed_less_and_less() {
        let mut turns = Turns::default();
        turns.add(100.0, None);
        assert!(!turns.suffice(1));
        let mut timed = 2;
        turns.add(101.0, Some(100.0));
        for _ in 0..100 {
            if turns.suffice(1) {
                turns.since += 1;
            } else {
                turns.add(100.0, Some(100.0));
                timed += 1;
            }
        }
        // After 4, 8, 16, 32 and 32 that were left out.
        assert_eq!(timed, 2 + 5);
        turns.add(150.0, Some(100.0));
        assert!(!turns.suffice(1) && turns.interval == FIRST_INTERVAL);
    }
}
