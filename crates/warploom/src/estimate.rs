//! What the fast model says of its own figures, and the counters of a whole launch from those of its timed part.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use serde::Serialize;

use crate::report::{Counters, Report, SmReport};

/// Which part of a run the fast model timed, and how far the cycles may be off. All other figures of the timed model
/// are estimates, too: those of the timed part, scaled to all warp instructions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub launches: u64,
    /// Those that were timed, at least in part.
    pub timed_launches: u64,
    /// CTAs that were timed, of all launches.
    pub timed_ctas: u64,
    /// Warp instructions that were timed.
    pub timed_warp_insts: u64,
    /// How far the cycles may be off, as a share of them: how much the samples differ among themselves, weighted by
    /// what rests on them. It says nothing of what no sample has seen.
    pub error: f64,
    /// Why launches were timed as a whole: each reason once.
    pub timed_because: Vec<String>,
}

impl Estimate {
    /// How far off its cycles were where both models were run: `warploom speed --model fast`, on gtx480.
    pub const MEASURED: &str = "where measured, it was off by 1.2% on average, at most 5.2% (docs/fast.md)";

    /// Those of several launches, with their cycles, as one.
    pub fn of_all<'a>(estimates: impl Iterator<Item = (&'a Estimate, u64)>) -> Estimate {
        let (mut all, mut cycles) = (Estimate::default(), 0.0);
        for (one, of_one) in estimates {
            all.launches += one.launches;
            all.timed_launches += one.timed_launches;
            all.timed_ctas += one.timed_ctas;
            all.timed_warp_insts += one.timed_warp_insts;
            all.error += one.error * of_one as f64;
            cycles += of_one as f64;
            for reason in &one.timed_because {
                if !all.timed_because.contains(reason) {
                    all.timed_because.push(reason.clone());
                }
            }
        }
        all.error /= f64::max(cycles, 1.0);
        all
    }
}

impl From<warploom_sim::Estimate> for Estimate {
    fn from(estimate: warploom_sim::Estimate) -> Estimate {
        Estimate {
            launches: 1,
            timed_launches: u64::from(estimate.timed_ctas > 0),
            timed_ctas: estimate.timed_ctas,
            timed_warp_insts: estimate.timed_warp_instructions,
            error: estimate.error,
            timed_because: estimate.timed_because.map(str::to_string).into_iter().collect(),
        }
    }
}

/// Scales the counters of a report, which are of a part of the launch, by so much more work and so much more time.
pub(crate) fn scale(report: &mut Report, work: f64, time: f64) {
    let times = |count: u64| (count as f64 * work).round() as u64;
    let all = |counters: &mut Counters| counters.values_mut().for_each(|count| *count = times(*count));
    let maps =
        [&mut report.classes, &mut report.l1, &mut report.l2, &mut report.dram, &mut report.interconnect];
    maps.into_iter().flatten().for_each(all);
    if let Some(stalls) = &mut report.stalls {
        all(stalls);
        report.warp_cycles = Some(stalls.values().sum());
    }
    if let Some(locks) = &mut report.locks {
        let counts = [
            &mut locks.acquired,
            &mut locks.failed_intra,
            &mut locks.failed_inter,
            &mut locks.wait_ok,
            &mut locks.wait_fail,
            &mut locks.queued,
            &mut locks.granted,
            &mut locks.not_queued,
        ];
        counts.into_iter().for_each(|count| *count = times(*count));
    }
    if let Some(energy) = &mut report.energy_nj {
        scale_energy(energy, work, time);
    }
    for sm in report.sms.iter_mut().flatten().filter(|sm| !sm.is_idle()) {
        let SmReport { ctas, warp_insts, thread_insts, warp_cycles, stalls, classes, l1, .. } =
            Arc::make_mut(sm);
        [ctas, warp_insts, thread_insts].into_iter().for_each(|count| *count = times(*count));
        [&mut *stalls, classes, l1].into_iter().for_each(all);
        *warp_cycles = stalls.values().sum();
    }
}

/// Energy that is used per event follows the work, and that of idle units the time.
fn scale_energy(energy: &mut BTreeMap<&'static str, f64>, work: f64, time: f64) {
    let mut sums = [0.0; 2];
    for (name, nj) in energy.iter_mut() {
        match *name {
            "total" | "dynamic" | "static" => {}
            "idle" | "leakage" => {
                *nj *= time;
                sums[1].add_assign(*nj);
            }
            _ => {
                *nj *= work;
                sums[0].add_assign(*nj);
            }
        }
    }
    let [of_events, of_time] = sums;
    energy.extend([("dynamic", of_events), ("static", of_time), ("total", of_events + of_time)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_energies_are_scaled() {
        let counters = || Some(Counters::from([("issued", 3), ("memory", 5)]));
        let energy = [("dram", 2.0), ("leakage", 1.0), ("dynamic", 2.0), ("static", 1.0), ("total", 3.0)];
        let mut report = Report {
            stalls: counters(),
            l2: counters(),
            warp_cycles: Some(8),
            energy_nj: Some(energy.into()),
            ..Report::default()
        };
        scale(&mut report, 10.0, 4.0);
        assert_eq!(report.l2.map(|l2| l2["memory"]), Some(50));
        assert_eq!(report.warp_cycles, Some(80));
        let energy = report.energy_nj.unwrap();
        assert_eq!([energy["dynamic"], energy["static"], energy["total"]], [20.0, 4.0, 24.0]);
    }

    #[test]
    fn errors_are_weighted_by_cycles() {
        let one = |error, reason: &str| Estimate {
            launches: 1,
            error,
            timed_because: vec![reason.to_string()],
            ..Estimate::default()
        };
        let all = Estimate::of_all([(&one(0.04, "a"), 100), (&one(0.0, "a"), 300)].into_iter());
        assert_eq!((all.launches, all.error, all.timed_because.len()), (2, 0.01, 1));
    }
}
