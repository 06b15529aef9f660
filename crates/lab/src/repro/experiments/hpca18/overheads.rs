//! Figures 1 and 3: what the locks of a hash table cost, and what software back-off makes of it. The paper measured a GTX 1080;
//! here it is the gtx1080ti.

use super::PAPER;
use super::kernels::{backing_off, transactions};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

/// Buckets, from high contention to low.
const BUCKETS: [u32; 6] = [128, 256, 512, 1_024, 2_048, 4_096];

/// As the paper has it: 120 blocks of 256 threads. Its 26.2 M keys would take hours; so many a thread show the same.
fn many(buckets: u32, scale: Scale) -> Run {
    Run::work("hashtable")
        .with("ctas", 120)
        .with("threads", 256)
        .with("keys", scale.pick(15_360, 307_200))
        .with("buckets", buckets)
        .chip("gtx1080ti")
        .set("issue.gto.rotation_cycles", 50_000)
}

/// One warp alone.
fn alone(buckets: u32, scale: Scale) -> Run {
    many(buckets, scale).with("ctas", 1).with("threads", 32).with("keys", scale.pick(640, 6_400))
}

/// The insertions alone.
fn unlocked(buckets: u32, scale: Scale) -> Run {
    many(buckets, scale).with("version", "unlocked")
}

/// Figure 1.
pub struct Cost;

impl Experiment for Cost {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig1",
            paper: PAPER,
            title: "What synchronization costs a hash table, against contention",
            quick_s: 12,
            full_s: 240,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        BUCKETS.into_iter().flat_map(|b| [many(b, scale), unlocked(b, scale), alone(b, scale)]).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let share = |of: &dyn Fn(&Run) -> Result<f64, Failed>, buckets| {
            Ok(100.0 * (1.0 - of(&unlocked(buckets, scale))? / of(&many(buckets, scale))?))
        };
        let insts = |buckets| share(&|run| results.number(run, "warp_insts"), buckets);
        let memory = |buckets| share(&|run| transactions(results, run), buckets);
        let lanes = |run: Run| Ok(100.0 * results.number(&run, "simd_efficiency")?);
        let (most, least) = (BUCKETS[0], BUCKETS[BUCKETS.len() - 1]);

        let why = "the paper's axis is lost with its plot: which contention its ends have is not known. Here they are 128 and 4096 buckets, \
                   with a kernel of another compiler";
        let end = |name: &str, buckets: u32, paper: f64, measured| {
            let row = Row::new(format!("{buckets} buckets: {name}"), "%").paper(paper).measured(measured);
            match scale {
                Scale::Full => row.points(10.0).because(why),
                Scale::Quick => {
                    row.note("half a key a thread: too few to contend as the full form does; reported only")
                }
            }
        };
        let falling = |name: &str, of: &dyn Fn(u32) -> Result<f64, Failed>| {
            let labels = BUCKETS.map(|b| b.to_string());
            let values: Vec<_> =
                labels.iter().zip(BUCKETS).map(|(label, b)| (label.as_str(), of(b))).collect();
            Row::falling(format!("{name}, by buckets"), &values)
        };
        let outcome = Outcome::new()
            .row(end("instructions for synchronization", most, 98.3, insts(most)))
            .row(end("instructions for synchronization", least, 61.0, insts(least)))
            .row(end("memory transactions for synchronization", most, 95.6, memory(most)))
            .row(end("memory transactions for synchronization", least, 41.5, memory(least)))
            .row(end("SIMD efficiency, one warp", most, 87.1, lanes(alone(most, scale))))
            .row(end("SIMD efficiency, one warp", least, 98.6, lanes(alone(least, scale))))
            .row(end("SIMD efficiency, many warps", most, 16.4, lanes(many(most, scale))))
            .row(end("SIMD efficiency, many warps", least, 47.1, lanes(many(least, scale))))
            .row(falling("instructions for synchronization", &insts))
            .row(falling("memory transactions for synchronization", &memory));
        let line = |of: &dyn Fn(u32) -> Result<f64, Failed>| {
            BUCKETS.into_iter().filter_map(|b| Some((f64::from(b), of(b).ok()?))).collect::<Vec<_>>()
        };
        let plot = Plot::lines("A hash table's synchronization").x("buckets").y("%").log_x();
        let plot = plot
            .series("instructions", line(&insts))
            .series("memory transactions", line(&memory))
            .series("SIMD efficiency, one warp", line(&|b| lanes(alone(b, scale))))
            .series("SIMD efficiency, many warps", line(&|b| lanes(many(b, scale))));
        outcome.plot(plot).note(
            "What is for synchronization is what the same insertions without locks do not need (version=unlocked).",
        )
    }
}

/// Figure 3, and what a programmer can do today.
pub struct SoftwareBackOff;

/// Few buckets mean that most attempts fail.
const CONTENTION: [u32; 4] = [64, 256, 1_024, 4_096];

/// Longest delays, in cycles.
const LONGEST: [u32; 2] = [256, 4_096];

impl SoftwareBackOff {
    fn run(version: &'static str, longest: u32, buckets: u32, scale: Scale) -> Run {
        many(buckets, scale)
            .with("keys", scale.pick(7_680, 61_440))
            .with("version", version)
            .with("backoff", longest)
    }

    fn spinning(buckets: u32, scale: Scale) -> Run {
        many(buckets, scale).with("keys", scale.pick(7_680, 61_440))
    }

    /// The same with one thread a warp, as many warps as the chip takes: spinning, and with the longest delay.
    fn one_lane(scale: Scale) -> [Run; 2] {
        let run = |run: Run| run.with("ctas", 896).with("threads", 1).with("keys", scale.pick(1_792, 3_584));
        let most = CONTENTION[0];
        [run(Self::spinning(most, scale)), run(Self::run("delay", LONGEST[0], most, scale))]
    }
}

impl Experiment for SoftwareBackOff {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig3",
            paper: PAPER,
            title: "Software back-off on a hash table, and beside it nanosleep and BOWS",
            quick_s: 12,
            full_s: 240,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let of = |buckets: u32| {
            let spinning = Self::spinning(buckets, scale);
            let waiting = LONGEST
                .map(|longest| ["delay", "sleep"].map(|version| Self::run(version, longest, buckets, scale)));
            [spinning.clone(), backing_off(spinning)].into_iter().chain(waiting.into_iter().flatten())
        };
        CONTENTION.into_iter().flat_map(of).chain(Self::one_lane(scale)).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let over = |run: &Run, buckets| {
            Ok::<_, Failed>(
                results.number(run, "cycles")? / results.number(&Self::spinning(buckets, scale), "cycles")?,
            )
        };
        let delay = |longest, buckets| over(&Self::run("delay", longest, buckets, scale), buckets);
        let longest = LONGEST[LONGEST.len() - 1];
        let slower = || {
            let low = CONTENTION[CONTENTION.len() - 1];
            let times = delay(longest, low)?;
            Ok((times > 1.0, format!("{times:.2} times as long with {low} buckets")))
        };
        let faster = || {
            let times = delay(longest, CONTENTION[0])?;
            Ok((times < 1.0, format!("{times:.2} times as long with {} buckets", CONTENTION[0])))
        };
        let alone = || {
            let [spinning, delay] = Self::one_lane(scale);
            let times = results.number(&delay, "cycles")? / results.number(&spinning, "cycles")?;
            Ok((times < 1.0, format!("{times:.2} times as long with {} buckets", CONTENTION[0])))
        };
        let mut outcome = Outcome::new()
            .row(Row::claim("a delay loop at low contention", "slower than none", slower()))
            .row(Row::claim("a delay loop at very high contention", "faster than none", faster()).because(
                "lanes of a warp that failed and lanes that got their lock go one after the other: a delay of the former holds up the \
                 critical sections of the latter, and the locks with them. With one lane a warp it is as in the paper (next row)",
            ))
            .row(Row::claim("the same, one thread a warp", "faster than none", alone()));
        let names = ["delay 256", "sleep 256", "delay 4096", "sleep 4096", "BOWS"];
        let mut plot = Plot::bars("Time over that of spinning", names).y("×");
        for buckets in CONTENTION {
            let mut runs: Vec<Run> = LONGEST
                .into_iter()
                .flat_map(|l| ["delay", "sleep"].map(|version| Self::run(version, l, buckets, scale)))
                .collect();
            runs.push(backing_off(Self::spinning(buckets, scale)));
            let times: Vec<_> = runs.iter().map(|run| over(run, buckets)).collect();
            for (name, time) in names.into_iter().zip(&times) {
                let row = Row::new(format!("{buckets} buckets: {name}, time over spinning"), "×");
                outcome = outcome.row(row.measured(time.clone()));
            }
            plot = plot
                .group(format!("{buckets} buckets"), times.into_iter().map(Result::ok).collect::<Vec<_>>());
        }
        outcome.plot(plot).note(
            "A delay loop reads the clock and so takes issue slots; nanosleep (since Volta, modelled on every chip) does not. Both \
             double after each failure.",
        )
    }
}
