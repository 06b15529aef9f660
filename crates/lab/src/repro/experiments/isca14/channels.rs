//! Figure 17: how channels are reserved and laid out. Figure 18: how wide they are. Section 8.2.1: how they are freed.

use super::PAPER;
use super::programs::{PROGRAMS, mean, perturbed, swept};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

pub(crate) struct Reserving;

fn plain(run: Run) -> Run {
    run.with("reserve", "lane")
}

fn padded(run: Run) -> Run {
    run.with("layout", "padded")
}

/// Beyond the paper, which leaves it as future work.
fn arrays(run: Run) -> Run {
    run.with("layout", "arrays")
}

impl Experiment for Reserving {
    fn about(&self) -> About {
        About {
            id: "isca14-fig17",
            paper: PAPER,
            title: "Plain, amortized and padded channels",
            quick_s: 8,
            full_s: 900,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let of = |run: Run| {
            let close = [run.clone(), padded(run.clone())];
            close.iter().flat_map(perturbed).chain([plain(run.clone()), arrays(run)]).collect::<Vec<_>>()
        };
        PROGRAMS.into_iter().flat_map(|name| of(swept(name, scale))).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let over = |name: &str, runs: &[Run], what: &str| {
            let amortized = perturbed(&swept(name, scale));
            Ok::<_, Failed>(mean(results, runs, what)? / mean(results, &amortized, what)?)
        };
        let mut outcome = Outcome::new();
        let mut plot = Plot::bars("Time over the amortized channel's", ["plain", "padded", "arrays"]).y("×");
        for name in PROGRAMS {
            let run = swept(name, scale);
            // The plain channel takes much longer than another order of wavefronts could; arrays are not judged.
            let runs = [vec![plain(run.clone())], perturbed(&padded(run.clone())), vec![arrays(run)]];
            let times = runs.map(|runs| over(name, &runs, "cycles"));
            let bars = times.each_ref().map(|times| times.as_ref().ok().copied());
            let slower = |times: f64| (times > 1.0, format!("{times:.2} times as long"));
            let [plain, padded, arrays] = times;
            let rows = [
                Row::claim(format!("{name}: plain channel"), "behind the amortized one", plain.map(slower)),
                Row::claim(format!("{name}: padded channel"), "behind the amortized one", padded.map(slower)),
                Row::new(format!("{name}: structure of arrays, time over the amortized channel's"), "×")
                    .measured(arrays),
            ];
            outcome = outcome.rows(rows.map(|row| row.because(REASON)));
            plot = plot.group(name, bars);
        }
        let fewer = || {
            let times = over("Fibonacci", &[plain(swept("Fibonacci", scale))], "l1.atomic_lanes")?;
            Ok((times > 8.0, format!("{times:.1} times as many")))
        };
        let row = Row::claim("Fibonacci: atomics of lanes with the plain channel", "far more", fewer());
        let note = "the paper counts up to 64 times as many CAS; here attempts that fail count, too, and an atomic a \
             lane to free in both";
        outcome.row(row.note(note)).plot(plot)
    }
}

const REASON: &str =
    "the program hardly waits for its channels at this size: most of its time is in base cases";

pub(crate) struct Widths;

/// A program whose widest level has more than 64 elements, so that the width matters.
fn wide(name: &str, scale: Scale) -> Run {
    let run = swept(name, scale);
    if name == "Strassen" && scale == Scale::Quick { run.with("size", 128u32) } else { run }
}

const WIDTHS: [u32; 5] = [64, 256, 1024, 8192, 65_536];

impl Experiment for Widths {
    fn about(&self) -> About {
        About {
            id: "isca14-fig18",
            paper: PAPER,
            title: "Width of channels, yields and stalls",
            quick_s: 10,
            full_s: 1200,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let of = |run: Run| WIDTHS.map(|width| run.clone().with("width", width));
        PROGRAMS.into_iter().flat_map(|name| of(wide(name, scale))).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let of = |name: &str, width: u32, what: &str| {
            results.number(&wide(name, scale).with("width", width), what)
        };
        let mut outcome = Outcome::new();
        let mut plot = Plot::lines("Time over the shortest").x("width").y("×").log_x();
        for name in PROGRAMS {
            let cycles = || {
                WIDTHS
                    .into_iter()
                    .map(|width| of(name, width, "cycles"))
                    .collect::<Result<Vec<f64>, Failed>>()
            };
            let narrow = || {
                let cycles = cycles()?;
                let best = cycles.iter().copied().fold(f64::INFINITY, f64::min);
                let yields = of(name, WIDTHS[0], "aggregator.yields")?;
                let wide = of(name, WIDTHS[4], "aggregator.yields")?;
                let text = format!(
                    "{:.1} times the shortest time; {yields} yields, {wide} with {}",
                    cycles[0] / best,
                    WIDTHS[4]
                );
                Ok((cycles[0] > best && yields > wide, text))
            };
            let row =
                Row::claim(format!("{name}: channels of 64"), "starve the GPU and yield often", narrow());
            outcome = outcome
                .row(row.because("its widest level has no more elements than that, with a small input"));
            if let Ok(cycles) = cycles() {
                let best = cycles.iter().copied().fold(f64::INFINITY, f64::min);
                let points =
                    WIDTHS.into_iter().zip(&cycles).map(|(width, cycles)| (f64::from(width), cycles / best));
                plot = plot.series(name, points.collect::<Vec<_>>());
            }
            for width in WIDTHS {
                let row = Row::new(format!("{name}, width {width}: yields"), "").measured(of(
                    name,
                    width,
                    "aggregator.yields",
                ));
                let stalled = of(name, width, "aggregator.gpu_stalled_cycles");
                let stalled = stalled.and_then(|stalled| Ok(100.0 * stalled / of(name, width, "cycles")?));
                outcome = outcome.row(row).row(
                    Row::new(format!("{name}, width {width}: blocked on the aggregator"), "%")
                        .measured(stalled),
                );
            }
        }
        let misses = |width: u32| of("Strassen", width, "coherence.memory");
        let seen = || {
            let (narrow, wide) = (misses(1024)?, misses(WIDTHS[4])?);
            Ok((wide > narrow, format!("{narrow} lines from memory with 1024, {wide} with {}", WIDTHS[4])))
        };
        let row = match scale {
            Scale::Full => Row::claim("Strassen: wide channels", "cost cache hits", seen()).because(
                "tasks go out in the order in which they became ready, whatever the width: a wider channel \
                 only lets more of them be ready",
            ),
            Scale::Quick => {
                Row::new("Strassen: lines from memory, width 65,536", "").measured(misses(WIDTHS[4]))
            }
        };
        outcome.row(row).plot(plot)
    }
}

pub(crate) struct Freeing;

const GROUPS: [u32; 5] = [1, 8, 64, 256, 512];

/// With groups as wide as the channel nothing is ever freed. The time that other runs take longer is the cost of
/// freeing.
fn never(run: Run) -> Run {
    run.with("width", WIDE).with("group", WIDE)
}

const WIDE: u32 = 65_536;

/// The group that the paper chose, and the row that is judged.
const CHOSEN: u32 = 64;

/// A run as often as its program and its group are repeated. The long programs are for the row that is judged.
fn repeated(name: &str, run: &Run, group: u32) -> Vec<Run> {
    let is_short = matches!(name, "Fibonacci" | "Queens");
    if is_short || group == CHOSEN { perturbed(run) } else { vec![run.clone()] }
}

impl Experiment for Freeing {
    fn about(&self) -> About {
        About {
            id: "isca14-done",
            paper: PAPER,
            title: "Time for freeing, against the group that shares a count",
            quick_s: 8,
            full_s: 900,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let of = |name: &str| {
            let run = swept(name, scale);
            let of_group =
                |group| repeated(name, &run.clone().with("width", WIDE).with("group", group), group);
            let base = repeated(name, &never(run.clone()), CHOSEN);
            GROUPS.into_iter().flat_map(of_group).chain(base).collect::<Vec<_>>()
        };
        PROGRAMS.into_iter().flat_map(of).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let stalled = |name: &str, run: &Run, group: u32| {
            mean(results, &repeated(name, run, group), "aggregator.gpu_stalled_cycles")
        };
        let share = |name: &str, group: u32| {
            let run = swept(name, scale);
            let base = stalled(name, &never(run.clone()), group)?;
            let with = stalled(name, &run.with("width", WIDE).with("group", group), group)?;
            // Another order of wavefronts changes stalls too, so a difference can be negative. Dropping those alone
            // would raise the mean.
            Ok::<_, Failed>(100.0 * (with - base) / with.max(1.0))
        };
        let of_all = |group: u32| {
            Ok(PROGRAMS.into_iter().map(|name| share(name, group)).sum::<Result<f64, Failed>>()? / 4.0)
        };
        let mut outcome = Outcome::new().row(
            Row::new("share of stall time that freeing takes, groups of 64, on average", "%")
                .paper(3.0)
                .measured(of_all(CHOSEN))
                .at_most(5.0)
                .because(
                    "before what follows a level is started, the firmware must know that all of its groups are \
                     done: a load each, one after the other, some 5 cycles for each of Fibonacci's 2,200 groups. \
                     They are freed after the start. How the paper's firmware looks at its counts is not printed",
                ),
        );
        for group in GROUPS {
            outcome =
                outcome.row(Row::new(format!("groups of {group}, on average"), "%").measured(of_all(group)));
        }
        outcome
    }
}
