//! Deadlocks on lock bits and their repairs: the diagnosis of a launch that hangs, the result of one that ends.

use warploom::hang::{Until, Waits, lane_ranges};
use warploom::sched::LaneMask;
use warploom::{Arg, Error, Hang, Launch, args};

use crate::runs::{Choice, Metrics, Procedure, RunError};

/// A kernel that hangs, or its repair.
struct Case {
    name: &'static str,
    text: (&'static str, &'static str),
    entry: &'static str,
    threads: u32,
    /// Whether the kernel writes its cycles to a second buffer.
    clocked: bool,
    /// Arguments after the buffers.
    more: fn() -> Vec<Arg<'static>>,
    /// The first words of the output. Empty if the launch should hang.
    expected: fn() -> Vec<u32>,
}

const LOCK_BITS: (&str, &str) = ("lock_bits.ptx", warploom_kernels::text!("hangs/lock_bits.ptx"));
const PRIMITIVES: (&str, &str) = ("primitives.ptx", warploom_kernels::text!("primitives.ptx"));

const fn case(name: &'static str, entry: &'static str, threads: u32) -> Case {
    Case { name, text: LOCK_BITS, entry, threads, clocked: false, more: Vec::new, expected: Vec::new }
}

const CASES: &[Case] = &[
    case("token", "token_in_a_warp", 32),
    Case { expected: || vec![7], ..case("token-first", "token_put_first", 32) },
    Case { expected: || vec![64; 64], ..case("token-section", "section_in_the_loop", 64) },
    case("naive", "shared_naive_lock", 32),
    Case {
        text: PRIMITIVES,
        clocked: true,
        more: || vec![Arg::from(1u32)],
        expected: || vec![64; 64],
        ..case("naive-section", "spin_section", 64)
    },
    Case { more: || vec![Arg::from(1024u32)], ..case("alias", "both_words", 32) },
    Case {
        more: || vec![Arg::from(512u32)],
        expected: || vec![1; 32],
        ..case("alias-apart", "both_words", 32)
    },
    Case { more: || vec![Arg::from(1024u32)], ..case("alias-barrier", "alias_and_barrier", 64) },
    Case {
        more: || vec![Arg::from(32u32)],
        expected: || (0..64).collect(),
        ..case("alias-barrier-apart", "alias_and_barrier", 64)
    },
    Case { more: || vec![Arg::from(0u32)], ..case("kept", "never_freed", 64) },
    Case { more: || vec![Arg::from(9u32)], expected: || vec![2], ..case("kept-freed", "never_freed", 64) },
    Case { more: || vec![Arg::from(0u8)], expected: || vec![0; 32], ..case("late", "taken_too_late", 64) },
    Case {
        more: || vec![Arg::from(1u8)],
        expected: || (1..=32).collect(),
        ..case("late-barrier", "taken_too_late", 64)
    },
];

pub(crate) const CASE: Choice = Choice {
    name: "case",
    words: &[
        "token",
        "token-first",
        "token-section",
        "naive",
        "naive-section",
        "alias",
        "alias-apart",
        "alias-barrier",
        "alias-barrier-apart",
        "kept",
        "kept-freed",
        "late",
        "late-barrier",
    ],
};

/// Runs a case. Of a hang it measures `kind`, whether it is `proved`, the spinning `lanes`, the lock `bits` that they
/// spin on, and the source `lines` of the diagnosis. Of a launch that ends, `kind` is empty and there are `warnings`.
/// `right` says whether the output is the expected one.
pub(crate) static LOCK_HANGS: Procedure = Procedure {
    name: "lock-hangs",
    params: &[],
    choices: &[CASE],
    run: |context| {
        let name = context.choice(&CASE);
        let Some(case) = CASES.iter().find(|case| case.name == name) else {
            return Err(RunError::Invalid(format!("no case `{name}`")));
        };
        let mut gpu = context.device()?;
        let (file, text) = case.text;
        let kernel = gpu.load_ptx_named(file, text)?.kernel(case.entry)?;
        let out = gpu.zeros_named::<u32>("out", 64)?;
        let cycles = gpu.zeros_named::<u32>("cycles", 64)?;
        let mut arguments = args![&out].to_vec();
        if case.clocked {
            arguments.push(Arg::from(&cycles));
        }
        arguments.extend((case.more)());
        let launched = gpu.launch(&kernel, context.prepare(Launch::grid(1).block(case.threads)), arguments);
        match launched {
            Ok(report) => {
                let expected = (case.expected)();
                let right = out.read(&gpu)?.starts_with(&expected) && !expected.is_empty();
                let warnings: Vec<_> = report.lock_warnings.iter().map(|w| w.message.as_str()).collect();
                Ok(Metrics::new().with("kind", "").with("right", right).with("warnings", warnings.join("\n")))
            }
            Err(Error::Hang { hang: Some(hang), .. }) => Ok(diagnosis(&hang)),
            Err(error) => Err(error.into()),
        }
    },
};

/// The diagnosis of a hang as figures.
fn diagnosis(hang: &Hang) -> Metrics {
    let (mut lanes, mut bits, mut lines) = (LaneMask::NONE, Vec::new(), Vec::new());
    for group in hang.ctas.iter().flat_map(|cta| &cta.groups) {
        lines.extend(group.place.source_line.clone());
        lines.extend(group.holds.iter().filter_map(|(_, place)| place.source_line.clone()));
        if let Waits::Spin(spin) = &group.waits {
            lanes |= group.threads.lanes;
            if let Until::Free(bit) = spin.until {
                bits.push(bit.to_string());
            }
        }
    }
    lines.sort();
    lines.dedup();
    Metrics::new()
        .with("kind", hang.kind.name())
        .with("proved", hang.reason.is_proof())
        .with("lanes", lane_ranges(lanes))
        .with("bits", bits.join(", "))
        .with("lines", lines.join(", "))
        .with("message", hang.to_string())
        .with("right", false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_case() {
        assert_eq!(CASES.iter().map(|case| case.name).collect::<Vec<_>>(), CASE.words);
    }
}
