//! Section 4.4 of ICS'15: deadlocks of locks on GPUs, their diagnoses, and their repairs.

use crate::repro::{About, Experiment, Failed, Metrics, Outcome, Results, Row, Run, Scale};
use crate::runs::procedures::lock_hangs::LOCK_HANGS;

pub(super) struct Deadlock;

/// A deadlock, its expected diagnosis, and its repairs.
struct Case {
    what: &'static str,
    hangs: &'static str,
    kind: &'static str,
    lanes: &'static str,
    /// The lock bits that the diagnosis names; empty where the lock is a word.
    bits: &'static str,
    /// Source lines that the diagnosis must name.
    lines: &'static [&'static str],
    repairs: &'static [(&'static str, &'static str)],
}

const CASES: [Case; 5] = [
    Case {
        what: "token from lane to lane of a warp",
        hangs: "token",
        kind: "SIMD deadlock",
        lanes: "lane 1",
        bits: "0",
        lines: &["lock_bits.cu:38", "lock_bits.cu:41"],
        repairs: &[
            ("put before anyone waits", "token-first"),
            ("critical section in the loop", "token-section"),
        ],
    },
    Case {
        what: "while (atomicCAS) in a warp",
        hangs: "naive",
        kind: "SIMD deadlock",
        lanes: "lanes 1-31",
        bits: "",
        lines: &["lock_bits.cu:83"],
        repairs: &[("critical section in the loop", "naive-section")],
    },
    Case {
        what: "M and M + 1024 words, one thread",
        hangs: "alias",
        kind: "lock alias",
        lanes: "lanes 0-31",
        bits: "0",
        lines: &["lock_bits.cu:93", "lock_bits.cu:94"],
        repairs: &[("512 words apart", "alias-apart")],
    },
    Case {
        what: "M and M + 1024 words, a barrier between two warps",
        hangs: "alias-barrier",
        kind: "lock alias",
        lanes: "lanes 0-31",
        bits: "0",
        lines: &["lock_bits.cu:104", "lock_bits.cu:105"],
        repairs: &[("32 words apart", "alias-barrier-apart")],
    },
    Case {
        what: "a bit whose holder ended",
        hangs: "kept",
        kind: "lost token",
        lanes: "lane 0",
        bits: "0",
        lines: &["lock_bits.cu:133"],
        repairs: &[("freed on every way out", "kept-freed")],
    },
];

fn run(case: &'static str) -> Run {
    Run::procedure(&LOCK_HANGS).with("case", case).chip("gtx570")
}

impl Case {
    fn rows(&self, results: &Results) -> Vec<Row> {
        let expected = format!(
            "{}, proved; {} spin{}; {}",
            self.kind,
            self.lanes,
            self.on(self.bits),
            self.lines.join(", ")
        );
        let found = results.of(&run(self.hangs)).map(|told| self.judge(told));
        let mut rows = vec![Row::claim(format!("{}: told", self.what), expected, found)];
        rows.extend(self.repairs.iter().map(|(how, case)| {
            let ends = "it ends with the right result, without a warning";
            Row::claim(format!("{}: {how}", self.what), ends, repaired(results, case))
        }));
        rows
    }

    fn on(&self, bits: &str) -> String {
        if bits.is_empty() { String::new() } else { format!(" on lock bit {bits}") }
    }

    fn judge(&self, told: &Metrics) -> (bool, String) {
        let text = |name: &str| told.text(name).unwrap_or_default();
        let proved = told.number("proved") == Some(1.0);
        let names_lines = self.lines.iter().all(|line| text("lines").split(", ").any(|named| named == *line));
        let right = text("kind") == self.kind && text("lanes") == self.lanes && text("bits") == self.bits;
        let kind = if text("kind").is_empty() { "it ends" } else { text("kind") };
        let proof = if proved { "proved" } else { "not proved" };
        let seen =
            format!("{kind}, {proof}; {} spin{}; {}", text("lanes"), self.on(text("bits")), text("lines"));
        (right && proved && names_lines, seen)
    }
}

fn repaired(results: &Results, case: &'static str) -> Result<(bool, String), Failed> {
    let ended = results.of(&run(case))?;
    let (kind, warnings) =
        (ended.text("kind").unwrap_or_default(), ended.text("warnings").unwrap_or_default());
    let right = ended.number("right") == Some(1.0);
    let result = if right { "right" } else { "wrong" };
    Ok(match (kind, warnings) {
        ("", "") => (right, format!("it ends, {result}")),
        ("", warning) => (false, format!("it ends, {result}, with a warning: {warning}")),
        (kind, _) => (false, format!("it hangs: {kind}")),
    })
}

impl Experiment for Deadlock {
    fn about(&self) -> About {
        About {
            id: "ics15-deadlock",
            paper: "ics15",
            title: "Deadlocks on locks are named, and their repairs run",
            quick_s: 1,
            full_s: 1,
        }
    }

    fn runs(&self, _: Scale) -> Vec<Run> {
        let of_case = |case: &Case| {
            case.repairs.iter().map(|(_, repair)| *repair).chain([case.hangs]).collect::<Vec<_>>()
        };
        CASES.iter().flat_map(of_case).chain(["late", "late-barrier"]).map(run).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        // Not a hang but a race: the producer takes its own bit after its consumer did.
        let late = results.of(&run("late")).map(|told| {
            let warning = told.text("warnings").unwrap_or_default();
            let named = ["lock bit 0", "taken too late", "lane 0", "lock_bits.cu:116", "lock_bits.cu:122"];
            (
                named.iter().all(|part| warning.contains(part)),
                warning.lines().next().unwrap_or("no warning").to_string(),
            )
        });
        let claim = "it ends, and a warning names the bit, the lane and both lines";
        Outcome::new()
            .rows(CASES.iter().flat_map(|case| case.rows(results)))
            .row(Row::claim("consumer before its producer: told", claim, late))
            .row(Row::claim(
                "consumer before its producer: a barrier between them",
                "it ends with the right result, without a warning",
                repaired(results, "late-barrier"),
            ))
    }
}
