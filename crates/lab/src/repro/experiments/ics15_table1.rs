//! Table 1 of ICS'15: the memory and lock bits that five schemes need to synchronize the chain of 16 warps.

use crate::repro::{About, Experiment, Outcome, Results, Row, Run, Scale};

pub(super) struct Table1;

/// A row of the table: shared memory in bytes, lock bits taken by atomics, lock bits taken by the program itself.
struct Scheme {
    name: &'static str,
    bytes: f64,
    implicit: f64,
    explicit: f64,
    /// Whether the paper's numbers are for 16 warps.
    of_16_warps: bool,
}

const fn scheme(name: &'static str, bytes: f64, implicit: f64, explicit: f64) -> Scheme {
    Scheme { name, bytes, implicit, explicit, of_16_warps: true }
}

const SCHEMES: [Scheme; 5] = [
    scheme("atom_lock", 2048.0, 512.0, 0.0),
    scheme("warp_barr", 0.0, 0.0, 0.0),
    Scheme { of_16_warps: false, ..scheme("shrd_lock", 128.0, 32.0, 0.0) },
    scheme("tiny_lock", 0.0, 0.0, 512.0),
    Scheme { of_16_warps: false, ..scheme("warp_vote", 0.0, 0.0, 32.0) },
];

/// Why some of the paper's numbers cannot be compared.
const OF_32: &str = "\
    the paper's number is that of 32 warps, or of a warp's lanes; 16 warps, which share one lock each, need 16";

impl Scheme {
    fn run(&self) -> Run {
        super::ics15_fig4::run(self.name, 1)
    }

    fn rows(&self, results: &Results) -> [Row; 3] {
        let row = |what: &str, unit, paper: f64, path| {
            let row = Row::new(format!("{}: {what}", self.name), unit).paper(paper);
            let row = row.measured(results.number(&self.run(), path));
            if self.of_16_warps || paper == 0.0 { row.equal() } else { row.note(OF_32) }
        };
        [
            row("shared memory", "B", self.bytes, "figures.lock_shared_bytes"),
            row("lock bits of atomics", "", self.implicit, "locks.bits_implicit"),
            row("lock bits of its own", "", self.explicit, "locks.bits_explicit"),
        ]
    }
}

impl Experiment for Table1 {
    fn about(&self) -> About {
        About {
            id: "ics15-table1",
            paper: "ics15",
            title: "Shared memory and lock bits of five schemes, chain of 16 warps",
            quick_s: 1,
            full_s: 1,
        }
    }

    fn runs(&self, _: Scale) -> Vec<Run> {
        SCHEMES.iter().map(Scheme::run).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let per_warp = |scheme: &Scheme| {
            results.number(&scheme.run(), "figures.lock_shared_bytes").map(|bytes| bytes / 16.0)
        };
        Outcome::new()
            .rows(SCHEMES.iter().flat_map(|scheme| scheme.rows(results)))
            .row(
                Row::new("atom_lock: shared memory a warp (Table 2)", "B")
                    .paper(128.0)
                    .measured(per_warp(&SCHEMES[0]))
                    .equal(),
            )
            .row(
                Row::new("shrd_lock: shared memory a warp (Table 2)", "B")
                    .paper(4.0)
                    .measured(per_warp(&SCHEMES[2]))
                    .equal(),
            )
            .note(
                "Bytes are what the launch has beyond the array A; bits are those that the SM's lock unit saw \
                 taken, each counted once. warp_vote shares the bit of a word of A, so it needs no memory, as \
                 Table 1 says; Table 2 gives it 4 bytes per warp.",
            )
    }
}
