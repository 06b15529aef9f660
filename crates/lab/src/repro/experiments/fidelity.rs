//! Cycles of three kernels beside those of GPGPU-Sim with its GTX 480 configuration.

use crate::repro::{About, Experiment, Outcome, Results, Row, Run, Scale};

pub(super) struct Fidelity;

/// A workload, its cycles and warp instructions in GPGPU-Sim with default parameters, and the parameters of the quick
/// form if that is smaller.
struct Kernel {
    workload: &'static str,
    what: &'static str,
    gpgpusim_cycles: f64,
    gpgpusim_insts: f64,
    quick: &'static [(&'static str, u32)],
}

const KERNELS: [Kernel; 3] = [
    Kernel {
        workload: "vecadd",
        what: "1 M floats",
        gpgpusim_cycles: 85_482.0,
        gpgpusim_insts: 720_896.0,
        quick: &[],
    },
    Kernel {
        workload: "matmul",
        what: "256 × 256, tiles of 16",
        gpgpusim_cycles: 122_115.0,
        gpgpusim_insts: 2_029_568.0,
        quick: &[("size", 64)],
    },
    Kernel {
        workload: "hashtable",
        what: "80,000 keys, 1,024 buckets",
        gpgpusim_cycles: 165_051.0,
        gpgpusim_insts: 813_038.0,
        quick: &[("keys", 2_000), ("ctas", 16)],
    },
];

impl Kernel {
    fn run(&self, scale: Scale) -> Run {
        let reduced = scale.pick(self.quick, &[]);
        let whole = Run::work(self.workload).chip("gtx480-gpgpusim");
        reduced.iter().fold(whole, |run, &(name, value)| run.with(name, value))
    }

    /// Whether the run has the input that GPGPU-Sim was measured with.
    fn comparable(&self, scale: Scale) -> bool {
        scale == Scale::Full || self.quick.is_empty()
    }

    fn rows(&self, results: &Results) -> [Row; 2] {
        let run = self.run(results.scale());
        let row = |what: &str, unit, path| {
            Row::new(format!("{} {what}", self.workload), unit).measured(results.number(&run, path))
        };
        let (cycles, insts) = (row("cycles", "cycles", "cycles"), row("warp instructions", "", "warp_insts"));
        if !self.comparable(results.scale()) {
            let note = "a smaller input, for which there is no number to compare with";
            return [cycles.note(note), insts.note(note)];
        }
        let differ = "other compilers made the code, so instruction counts need not agree";
        [
            cycles.paper(self.gpgpusim_cycles).factor(0.8..=1.25).note(self.what),
            insts.paper(self.gpgpusim_insts).note(differ),
        ]
    }
}

impl Experiment for Fidelity {
    fn about(&self) -> About {
        About {
            id: "fidelity",
            paper: "model",
            title: "Cycles of three kernels beside GPGPU-Sim, GTX 480",
            quick_s: 2,
            full_s: 4,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        KERNELS.iter().map(|kernel| kernel.run(scale)).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let rows = KERNELS.iter().flat_map(|kernel| kernel.rows(results));
        Outcome::new().rows(rows).compared("Cycles on gtx480", "GPGPU-Sim", "cycles")
    }
}
