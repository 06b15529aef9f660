//! Figure 16: BOWS on the hash table against contention, beside locks that block.

use super::PAPER;
use super::kernels::{COUNTED, FERMI, INSTRUCTIONS, backing_off};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

/// From high contention to low. With 128 buckets, GTO does not end on this machine.
const BUCKETS: [u32; 5] = [256, 512, 1_024, 2_048, 4_096];

fn base(buckets: u32, scale: Scale) -> Run {
    let keys = scale.pick(16_000, 80_000);
    Run::work("hashtable").chip(FERMI).with("keys", keys).with("buckets", buckets).sched("gto")
}

/// With locks whose waiters sleep in a queue: one queue per word (`ideal`), or one per cache line, as many as a set
/// holds (`hql`).
fn queued(run: Run, mode: &'static str) -> Run {
    run.set("lock_queue.mode", mode)
}

/// So many buckets that almost no attempt fails: the cost of locks taken at the first try.
const UNCONTENDED: u32 = 1 << 20;

pub(crate) struct Contention;

impl Experiment for Contention {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig16",
            paper: PAPER,
            title: "BOWS on a hash table, against contention",
            quick_s: 8,
            full_s: 120,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let of = |run: Run| {
            [run.clone(), backing_off(run.clone()), queued(run.clone(), "ideal"), queued(run, "hql")]
        };
        BUCKETS
            .into_iter()
            .flat_map(|buckets| of(base(buckets, scale)))
            .chain([base(UNCONTENDED, scale)])
            .collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let saves = |what: &'static str| {
            move |buckets: u32| {
                let base = base(buckets, scale);
                Ok::<_, Failed>(results.number(&base, what)? / results.number(&backing_off(base), what)?)
            }
        };
        let (time, insts, of_warps) = (saves("cycles"), saves(INSTRUCTIONS), saves("warp_insts"));
        let end = |name: &str, buckets: u32, paper: f64, measured| {
            let row = Row::new(format!("{buckets} buckets: {name}"), "×").paper(paper).measured(measured);
            match scale {
                Scale::Full => row.percent(30.0).because(
                    "the paper's own kernel was not released, and the axis of \
                     its plot is lost",
                ),
                Scale::Quick => row.note("less than a key a thread: reported only"),
            }
        };
        let (most, least) = (BUCKETS[0], BUCKETS[BUCKETS.len() - 1]);
        let monotone = |name: &str, of: &dyn Fn(u32) -> Result<f64, Failed>| {
            let seen = || {
                let values = BUCKETS.map(of).into_iter().collect::<Result<Vec<f64>, Failed>>()?;
                // Where almost nobody waits, differences are as small as a cycle.
                let falls = values.windows(2).all(|pair| pair[1] <= 1.05 * pair[0]);
                let text = values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(", ");
                Ok((falls, text))
            };
            let row = Row::claim(format!("{name}, by buckets"), "falls with contention", seen());
            row.because(
                "at little contention both differ from 1 by what a delayed turn costs, which does not \
                         follow the contention",
            )
        };
        let mut outcome = Outcome::new()
            .row(end("BOWS over GTO, time", most, 5.0, time(most)))
            .row(end("BOWS over GTO, time", least, 1.2, time(least)))
            .row(end("GTO over BOWS, instructions", most, 3.7, insts(most)))
            .row(end("GTO over BOWS, instructions", least, 1.3, insts(least)))
            .row(monotone("time saved", &time))
            .row(monotone("instructions saved", &insts));
        let line = |of: &dyn Fn(u32) -> Result<f64, Failed>| {
            BUCKETS.into_iter().filter_map(|b| Some((f64::from(b), of(b).ok()?))).collect::<Vec<_>>()
        };
        let plot = Plot::lines("BOWS over GTO").x("buckets").y("×").log_x();
        outcome = outcome.plot(plot.series("time", line(&time)).series("instructions", line(&insts)));
        let insts_of = |run: Run| results.number(&run, INSTRUCTIONS);
        let labels = BUCKETS.map(|buckets| buckets.to_string());
        let over_floor =
            |buckets| Ok(insts_of(backing_off(base(buckets, scale)))? / insts_of(base(UNCONTENDED, scale))?);
        let over: Vec<_> =
            labels.iter().zip(BUCKETS).map(|(label, b)| (label.as_str(), over_floor(b))).collect();
        outcome = outcome
            .row(Row::falling("instructions, BOWS over locks taken at the first try, by buckets", &over));
        for buckets in BUCKETS {
            let row = Row::new(format!("{buckets} buckets: GTO over BOWS, instructions of warps"), "×");
            outcome = outcome.row(row.measured(of_warps(buckets)));
        }
        for buckets in BUCKETS {
            let base = base(buckets, scale);
            let over = || Ok(insts_of(backing_off(base.clone()))? / insts_of(queued(base.clone(), "ideal"))?);
            let row = Row::new(format!("{buckets} buckets: instructions, BOWS over ideal blocking"), "×");
            outcome = outcome.row(row.measured(over()));
        }
        for buckets in BUCKETS {
            for mode in ["ideal", "hql"] {
                let base = base(buckets, scale);
                let time = || {
                    Ok(results.number(&base, "cycles")?
                        / results.number(&queued(base.clone(), mode), "cycles")?)
                };
                let row = Row::new(format!("{buckets} buckets: {mode} over GTO, time"), "×").measured(time());
                outcome = outcome.row(row);
            }
        }
        let count = |run: &dyn Fn(Run) -> Run| line(&|buckets| insts_of(run(base(buckets, scale))));
        let plot = Plot::lines("Instructions").x("buckets").y("instructions").log_x().log_y();
        let plot = plot.series("GTO", count(&|run| run)).series("GTO + BOWS", count(&backing_off));
        let plot = plot.series("ideal blocking", count(&|run| queued(run, "ideal")));
        outcome.plot(plot.series("HQL", count(&|run| queued(run, "hql")))).note(COUNTED).note(
            "The paper's floor counts instructions as if every attempt succeeded: here a table of 2^20 \
             buckets. Blocking locks are run beside it (docs/bows.md): a warp wakes when one of its lanes gets \
             its lock, so that others of its lanes fail again. The paper says that HQL becomes slower than \
             spinning from 512 buckets on.",
        )
    }
}
