//! Figures 1 and 3: what the locks of a hash table cost, and what software back-off changes. The paper measured a
//! GTX 1080, not its simulator; here it is the gtx1080ti.

use super::PAPER;
use super::kernels::backing_off;
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

/// From high contention to low.
const BUCKETS: [u32; 8] = [128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384];

/// Which buckets are taken for the ends of the paper's axis. 4096 is the only number of buckets in its text.
const ENDS: [u32; 2] = [128, 4_096];

/// The paper's 120 blocks of 256 threads. Its 26.2 M keys would take hours; far fewer per thread show the same. The
/// policy of the real chip is not public. LRR starves no warp, so that launches end as they do on the chip; under GTO
/// some do not.
fn many(buckets: u32, scale: Scale) -> Run {
    Run::work("hashtable")
        .with("ctas", 120)
        .with("threads", 256)
        .with("keys", scale.pick(7_680, 307_200))
        .with("buckets", buckets)
        .chip("gtx1080ti")
        .sched("lrr")
}

/// The code that the paper profiled is modified from a textbook's: records with a value and a 64-bit pointer, in the
/// bucket of a 64-bit remainder. Its profiler counted machine instructions, so the remainder is spelled out.
fn profiled(buckets: u32, scale: Scale) -> Run {
    many(buckets, scale).with("entries", "records")
}

/// A single warp.
fn alone(buckets: u32, scale: Scale) -> Run {
    profiled(buckets, scale).with("ctas", 1).with("threads", 32).with("keys", scale.pick(640, 6_400))
}

/// The insertions without locks.
fn unlocked(buckets: u32, scale: Scale) -> Run {
    profiled(buckets, scale).with("version", "unlocked")
}

pub(crate) struct Cost;

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
        BUCKETS.into_iter().flat_map(|b| [profiled(b, scale), unlocked(b, scale), alone(b, scale)]).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let share = |of: &dyn Fn(&Run) -> Result<f64, Failed>, buckets| {
            Ok(100.0 * (1.0 - of(&unlocked(buckets, scale))? / of(&profiled(buckets, scale))?))
        };
        let insts = |buckets| share(&|run| results.number(run, "warp_insts"), buckets);
        let memory = |buckets| share(&|run| results.number(run, "l1.global_lanes"), buckets);
        let lanes = |run: Run| Ok(100.0 * results.number(&run, "simd_efficiency")?);
        let [most, least] = ENDS;
        let why = "the paper measured a GTX 1080, whose scheduler is not public, and the axis of its plot is lost. \
             With one warp alone, which meets no other and no policy, its ends are near 128 and 4096 buckets (the last \
             rows)";
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
        let mut outcome = Outcome::new()
            .row(end("instructions for synchronization", most, 98.3, insts(most)))
            .row(end("instructions for synchronization", least, 61.0, insts(least)))
            .row(end("memory operations for synchronization", most, 95.6, memory(most)))
            .row(end("memory operations for synchronization", least, 41.5, memory(least)))
            .row(end("SIMD efficiency, one warp", most, 87.1, lanes(alone(most, scale))))
            .row(end("SIMD efficiency, one warp", least, 98.6, lanes(alone(least, scale))))
            .row(end("SIMD efficiency, many warps", most, 16.4, lanes(profiled(most, scale))))
            .row(end("SIMD efficiency, many warps", least, 47.1, lanes(profiled(least, scale))))
            .row(falling("instructions for synchronization", &insts))
            .row(falling("memory operations for synchronization", &memory));
        for buckets in BUCKETS {
            let row = Row::new(format!("{buckets} buckets: SIMD efficiency, one warp alone"), "%");
            outcome = outcome.row(row.measured(lanes(alone(buckets, scale))));
        }
        let line = |of: &dyn Fn(u32) -> Result<f64, Failed>| {
            BUCKETS.into_iter().filter_map(|b| Some((f64::from(b), of(b).ok()?))).collect::<Vec<_>>()
        };
        let plot = Plot::lines("A hash table's synchronization").x("buckets").y("%").log_x();
        let plot = plot
            .series("instructions", line(&insts))
            .series("memory operations", line(&memory))
            .series("SIMD efficiency, one warp", line(&|b| lanes(alone(b, scale))))
            .series("SIMD efficiency, many warps", line(&|b| lanes(profiled(b, scale))));
        outcome.plot(plot).note(
            "What is for synchronization is what the same insertions without locks do not need (version=unlocked). A \
             memory operation is a thread's load, store or atomic.",
        )
    }
}

/// Figure 3, beside `nanosleep` and BOWS.
pub(crate) struct SoftwareBackOff;

/// Buckets. With few of them, most attempts fail.
const CONTENTION: [u32; 4] = [64, 256, 1_024, 4_096];

/// Longest delays in cycles.
const LONGEST: [u32; 2] = [256, 4_096];

impl SoftwareBackOff {
    fn run(version: &'static str, longest: u32, buckets: u32, scale: Scale) -> Run {
        many(buckets, scale)
            .with("keys", scale.pick(3_840, 61_440))
            .with("version", version)
            .with("backoff", longest)
    }

    fn spinning(buckets: u32, scale: Scale) -> Run {
        many(buckets, scale).with("keys", scale.pick(3_840, 61_440))
    }

    /// One thread per warp and as many warps as the chip holds: spinning, and with a delay.
    fn one_lane(scale: Scale) -> [Run; 2] {
        let run = |run: Run| run.with("ctas", 896).with("threads", 1).with("keys", scale.pick(1_792, 3_584));
        let most = CONTENTION[0];
        [run(Self::spinning(most, scale)), run(Self::run("delay", LONGEST[0], most, scale))]
    }

    /// On a chip with independent thread scheduling: spinning, and with the longest delay. A quarter of the threads, a
    /// key each: with all of them the delay takes a quarter of an hour to simulate.
    fn on_h200() -> [Run; 2] {
        let (most, longest) = (CONTENTION[0], LONGEST[LONGEST.len() - 1]);
        [Self::spinning(most, Scale::Full), Self::run("delay", longest, most, Scale::Full)]
            .map(|run| run.with("ctas", 30).with("keys", 7_680).chip("h200"))
    }
}

impl Experiment for SoftwareBackOff {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig3",
            paper: PAPER,
            title: "Software back-off on a hash table, and beside it nanosleep and BOWS",
            quick_s: 12,
            full_s: 420,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let of = |buckets: u32| {
            let spinning = Self::spinning(buckets, scale);
            let waiting = LONGEST
                .map(|longest| ["delay", "sleep"].map(|version| Self::run(version, longest, buckets, scale)));
            [spinning.clone(), backing_off(spinning)].into_iter().chain(waiting.into_iter().flatten())
        };
        let on_h200 = if scale == Scale::Full { Self::on_h200().to_vec() } else { Vec::new() };
        CONTENTION.into_iter().flat_map(of).chain(Self::one_lane(scale)).chain(on_h200).collect()
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
        let most = CONTENTION[0];
        let faster = || {
            let times = delay(longest, most)?;
            Ok((times < 1.0, format!("{times:.2} times as long with {most} buckets")))
        };
        let alone = || {
            let [spinning, delay] = Self::one_lane(scale);
            let times = results.number(&delay, "cycles")? / results.number(&spinning, "cycles")?;
            Ok((times < 1.0, format!("{times:.2} times as long with {most} buckets")))
        };
        let mut outcome =
            Outcome::new().row(Row::claim("a delay loop at low contention", "slower than none", slower()));
        // The quick form has a key for one thread in eight: too few to contend as lanes of a warp.
        if scale == Scale::Full {
            outcome =
                outcome.row(Row::claim("a delay loop at very high contention", "faster than none", faster()));
        }
        outcome = outcome.row(Row::claim(
            "one thread a warp, a delay loop at very high contention",
            "faster than none",
            alone(),
        ));
        if scale == Scale::Full {
            let [spinning, delay] = Self::on_h200();
            let times = || Ok(results.number(&delay, "cycles")? / results.number(&spinning, "cycles")?);
            let seen =
                times().map(|times| (times < 1.0, format!("{times:.2} times as long with {most} buckets")));
            outcome =
                outcome.row(Row::claim("the same on h200, threads independent", "faster than none", seen));
        }
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
            "A delay loop reads the clock and so takes issue slots; nanosleep (since Volta, modelled on every \
             chip) does not. Both double after each failure.",
        )
    }
}
