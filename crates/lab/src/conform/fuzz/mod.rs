//! Differential testing: random kernels with one right result, run on two devices.
//!
//! A program is a tree of statements made from a seed. It has integer and floating-point arithmetic, predicates,
//! divergent and uniform control flow, calls, local arrays, exchanges through shared memory, votes and shuffles, and
//! atomics that commute. By construction no thread reads what another may be writing, and the results of undefined
//! operations never reach memory. So every correct machine leaves the same bytes in memory. Start at [`compare`].

mod emit;
mod leaf;
mod program;
mod run;
mod shrink;
pub(super) mod stored;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use warploom::Device;

use super::{OnProgress, Progress};

pub(super) use emit::module;
pub use program::{Options, Program};
pub(super) use run::BATCH;
use run::{Image, run_batch};
pub use stored::StoredReport;

/// How two devices compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FuzzReport {
    pub devices: [String; 2],
    pub programs: usize,
    /// Programs with different results, or that fail on one device.
    pub differences: Vec<Difference>,
}

/// A program on which two devices disagree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub seed: u64,
    /// A sentence on the first difference.
    pub what: String,
}

/// The smallest program found that still shows a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimal {
    pub ptx: String,
    /// A sentence on the first difference.
    pub what: String,
}

/// Runs the programs of some seeds on two devices and compares what they leave in memory.
pub fn compare(
    a: &mut Device,
    b: &mut Device,
    seeds: Range<u64>,
    options: Options,
    report: OnProgress<'_>,
) -> FuzzReport {
    let devices = [a.name().to_string(), b.name().to_string()];
    let total = seeds.end.saturating_sub(seeds.start) as usize;
    let mut out = FuzzReport { devices, programs: 0, differences: Vec::new() };
    let mut next = seeds.start;
    while next < seeds.end {
        report(Progress { stage: "programs".to_string(), done: out.programs, total });
        let end = seeds.end.min(next + BATCH as u64);
        let programs: Vec<_> = (next..end).map(|seed| Program::generate(seed, options)).collect();
        let results = run_batch(a, &programs).into_iter().zip(run_batch(b, &programs));
        for (program, (x, y)) in programs.iter().zip(results) {
            // Once a program has crashed the GPU, later failures mean nothing.
            #[cfg(feature = "cuda")]
            if matches!(&y, Err(super::Error::Device(warploom::Error::Cuda(_)))) {
                break;
            }
            out.programs += 1;
            if let Some(what) = difference(program, x, y) {
                out.differences.push(Difference { seed: program.seed, what });
            }
        }
        next = end;
        if a.is_lost() || b.is_lost() {
            break;
        }
    }
    report(Progress { stage: "programs".to_string(), done: out.programs, total });
    out
}

/// Drops statements from a program as long as two devices disagree on it; `None` if they agree. A failure on either
/// device, or on both, counts as a difference.
pub fn minimise(a: &mut Device, b: &mut Device, program: &Program) -> Option<Minimal> {
    let mut disagree = |program: &Program| {
        let one = std::slice::from_ref(program);
        let (x, y) = (run_batch(a, one).remove(0), run_batch(b, one).remove(0));
        difference(program, x, y)
    };
    disagree(program)?;
    let program = program.shrink(|p| disagree(p).is_some());
    let what = disagree(&program)?;
    Some(Minimal { ptx: program.ptx(), what })
}

fn difference(program: &Program, a: super::Result<Image>, b: super::Result<Image>) -> Option<String> {
    match (a, b) {
        (Ok(a), Ok(b)) if a == b => None,
        (Ok(a), Ok(b)) => Some(place(program, &a, &b)),
        (Err(a), Err(b)) => Some(format!("both fail: {a}; {b}")),
        (Err(a), Ok(_)) => Some(format!("only the first fails: {a}")),
        (Ok(_), Err(b)) => Some(format!("only the second fails: {b}")),
    }
}

/// The first word that differs, by thread and register.
fn place(program: &Program, a: &[u8], b: &[u8]) -> String {
    let Some(at) = a.iter().zip(b).position(|(x, y)| x != y).map(|at| at & !3) else {
        return "sizes differ".to_string();
    };
    let word =
        |image: &[u8]| image.get(at..at + 4).map_or(0, |w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let (x, y) = (word(a), word(b));
    let threads = (program.grid * program.block) as usize * leaf::OUTPUT_BYTES;
    if at >= threads {
        return format!("cell {}: {x:#x} and {y:#x}", (at - threads) / 8);
    }
    let (thread, within) = (at / leaf::OUTPUT_BYTES, at % leaf::OUTPUT_BYTES);
    let (cta, thread) = (thread / program.block as usize, thread % program.block as usize);
    format!("thread {thread} of CTA {cta}, {}: {x:#x} and {y:#x}", register(within))
}

/// The register at a byte of a thread's output.
fn register(at: usize) -> String {
    let mut start = 0;
    let kinds = [
        ("%r", leaf::WORDS, 4),
        ("%l", leaf::WIDES, 8),
        ("%f", leaf::SINGLES, 4),
        ("%g", leaf::DOUBLES, 8),
        ("%p", leaf::PREDICATES, 4),
    ];
    for (name, count, bytes) in kinds {
        if at < start + count * bytes {
            return format!("{name}{}", (at - start) / bytes);
        }
        start += count * bytes;
    }
    format!("byte {at}")
}
