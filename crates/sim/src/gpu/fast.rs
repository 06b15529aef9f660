//! The fast model: samples of a program run on the timed machine, the rest runs functionally and is estimated.
//!
//! Two samples are taken. Of a launch, CTAs are timed until their rate has settled ([`Settled`]). Of launches that
//! repeat, the first ones are timed, and then one now and again. Work is compared by warp instructions, which both
//! models count.

use std::collections::HashMap;

use warploom_isa::{Op, Special};

use crate::exec::launch::{Launch, Shape};
use crate::exec::memory::store::Memory;
use crate::gpu::observers::MakeObserver;
use crate::gpu::outcome::{LaunchError, Stats};
use crate::gpu::run::{TimedGrid, run_functional, stats_of};
use crate::gpu::timing::Timing;
use crate::time::machine::totals::TimedStats;
use crate::time::machine::{Finished, MemorySide, Settled};

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

/// Launches that count as the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kernel: String,
    /// Kernels of different modules can have the same name.
    instructions: usize,
    shape: ([u32; 3], [u32; 3], u32),
}

impl Key {
    fn of(launch: &Launch<'_>) -> Key {
        let Shape { grid, block, dynamic_shared_bytes, .. } = launch.shape;
        let shape = (grid, block, dynamic_shared_bytes);
        Key { kernel: launch.kernel.name.clone(), instructions: launch.kernel.code.len(), shape }
    }
}

/// The launches of one kind.
#[derive(Debug)]
struct History {
    /// Of the last timed launch.
    timed: Box<TimedStats>,
    cycles_per_instruction: f64,
    instructions: u64,
    /// How far the last timed launch was from what the one before it had said, as a share; `None` after the first.
    surprise: Option<f64>,
    /// Launches since then.
    since: u64,
    /// The next launch is timed after so many.
    interval: u64,
}

/// The launches so far, by kind.
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
        if whole.is_none() && self.suffice(launch) {
            let mut result = run_functional(launch, memory);
            if let Some(stats) = stats_of(&mut result) {
                self.estimate(launch, stats);
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
                self.add_timed(launch, stats, &estimate);
            }
        }
        result
    }

    /// Whether the next launch of its kind can be left to the functional model.
    fn suffice(&self, launch: &Launch<'_>) -> bool {
        let history = self.0.get(&Key::of(launch));
        history.is_some_and(|history| {
            history.surprise.is_some_and(|surprise| surprise <= ALIKE) && history.since < history.interval
        })
    }

    /// A launch was timed, at least in part.
    fn add_timed(&mut self, launch: &Launch<'_>, stats: &Stats, estimate: &Estimate) {
        let Some(timed) = &stats.timed else { return };
        let cycles_per_instruction = estimate.cycles as f64 / stats.warp_instructions.max(1) as f64;
        let key = Key::of(launch);
        let before = self.0.get(&key);
        let surprise = before.map(|before| {
            (cycles_per_instruction - before.cycles_per_instruction).abs() / cycles_per_instruction
        });
        let interval = match before {
            Some(before) if before.since > 0 && surprise.is_some_and(|surprise| surprise <= ALIKE) => {
                (2 * before.interval).min(LONGEST_INTERVAL)
            }
            _ => FIRST_INTERVAL,
        };
        let history = History {
            timed: timed.clone(),
            cycles_per_instruction,
            instructions: stats.warp_instructions,
            surprise,
            since: 0,
            interval,
        };
        self.0.insert(key, history);
    }

    /// A launch has run functionally: its cycles by those of its kind, with the counters of the last timed one.
    fn estimate(&mut self, launch: &Launch<'_>, stats: &mut Stats) {
        let Some(history) = self.0.get_mut(&Key::of(launch)) else { return };
        let instructions = stats.warp_instructions as f64;
        history.since += 1;
        // Another amount of work may take another time for each instruction.
        if (instructions - history.instructions as f64).abs() > SAME_WORK * history.instructions as f64 {
            history.since = history.interval;
        }
        stats.timed = Some(history.timed.clone());
        stats.estimate = Some(Estimate {
            cycles: (instructions * history.cycles_per_instruction).round() as u64,
            timed_ctas: 0,
            timed_warp_instructions: 0,
            error: history.surprise.unwrap_or(0.0),
            timed_because: None,
        });
    }
}
