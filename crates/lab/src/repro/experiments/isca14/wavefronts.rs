//! Table 3: what the programs consist of. Figure 19: how many of their lanes are active.

use super::PAPER;
use super::programs::{PROGRAMS, one_by_one, program};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};
use crate::work::cilk;

pub(crate) struct Table3;

/// The paper's kernel nodes, wavefronts, and cycles per wavefront, by program.
const PAPERS: [(usize, f64, f64); 4] =
    [(2, 2192.0, 7046.0), (2, 1114.0, 35_407.0), (4, 4238.0, 30_673.0), (1, 587.0, 259_299.0)];

fn kernel_nodes(name: &str) -> usize {
    let graph = match name {
        "Fibonacci" => cilk::fibonacci::graph(24, 64, cilk::fibonacci::Form::Levels, 0),
        "Queens" => cilk::queens::graph(13, 8, 64, 0),
        "Sort" => cilk::sort::graph(1_000_000, 64, 64, 0, 0),
        _ => cilk::strassen::graph(512, 64, [0; 3]),
    };
    graph.kernel_count()
}

impl Experiment for Table3 {
    fn about(&self) -> About {
        About {
            id: "isca14-table3",
            paper: PAPER,
            title: "What the Cilk programs consist of",
            quick_s: 4,
            full_s: 200,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let whole = PROGRAMS.map(|name| program(name, scale));
        whole.into_iter().chain(PROGRAMS.map(one_by_one)).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let mut outcome = Outcome::new();
        for (name, (nodes, wavefronts, _)) in PROGRAMS.into_iter().zip(PAPERS) {
            let row = Row::new(format!("{name}: kernel nodes"), "").paper(nodes as f64);
            outcome = outcome.row(row.measured(Ok(kernel_nodes(name) as f64)).equal());
            let row = Row::new(format!("{name}: wavefronts"), "")
                .paper(wavefronts)
                .measured(results.number(&program(name, scale), "warps"));
            outcome = outcome.row(match scale {
                Scale::Full if name == "Queens" => row.note(
                    "not judged: the paper says that the base case is a 4x4 part of the board, and not at which \
                     row tasks end; by the count of boards with so many queens (1, 13, 132, 1030, 6404, 31100, \
                     117694) 13 queens make 145 wavefronts if four rows are spawned, 732 with five, 3057 with \
                     six, and none makes 1114",
                ),
                Scale::Full => row.percent(25.0),
                Scale::Quick => row.note("with a smaller input: reported only"),
            });
        }
        // The time of a wavefront itself: without that in which none runs because the aggregator starts the next.
        let cycles = |name: &str| {
            let run = one_by_one(name);
            let running =
                results.number(&run, "cycles")? - results.number(&run, "aggregator.gpu_stalled_cycles")?;
            Ok::<_, Failed>(running / results.number(&run, "warps")?)
        };
        for (name, (.., paper)) in PROGRAMS.into_iter().zip(PAPERS) {
            let row = Row::new(format!("{name}: cycles a wavefront, one at a time"), "cycles");
            outcome = outcome.row(row.paper(paper).measured(cycles(name)));
        }
        let order = ["Strassen", "Queens", "Sort", "Fibonacci"].map(|name| (name, cycles(name)));
        outcome.row(Row::falling("cycles a wavefront, in order", &order).because(
            "how long a base case takes depends on its code, which the paper does not print: Queens here are \
             bit masks (a column is tried in some ten instructions), and the input that fits channels of 64 is \
             small",
        ))
    }
}

pub(crate) struct Divergence;

impl Experiment for Divergence {
    fn about(&self) -> About {
        About { id: "isca14-fig19", paper: PAPER, title: "Lanes that are active", quick_s: 3, full_s: 180 }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        PROGRAMS.map(|name| program(name, scale)).to_vec()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let busy =
            |name: &str| Ok::<_, Failed>(100.0 * results.number(&program(name, scale), "simd_efficiency")?);
        let mut outcome = Outcome::new();
        let mut plot = Plot::bars("Lanes active, of 64", ["active"]).y("%");
        for name in PROGRAMS {
            outcome = outcome.row(Row::new(format!("{name}: lanes active"), "%").measured(busy(name)));
            plot = plot.group(name, [busy(name).ok()]);
        }
        for name in &PROGRAMS[..3] {
            let row = format!("{name}: divergence");
            outcome = outcome.row(Row::falling(row, &[("Strassen", busy("Strassen")), (name, busy(name))]));
        }
        outcome.plot(plot)
    }
}
