//! The sum of several launches as one report.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use warploom::profile::Profile;
use warploom::{BackOff, Detection, Estimate, Locks, Race, Report, SmReport, SpinBranches};

/// Several launches as if they were one. Counts, times and energies are added. Rates follow from the sums. A figure
/// that is unknown for one launch is unknown for all. Grid, block, resources and occupancy cannot be added: they are
/// those of the launch with the most CTAs.
pub fn total(launches: &[Report]) -> Report {
    // `max_by_key` returns the last maximum; reversed, that is the first launch.
    let Some(largest) = launches.iter().rev().max_by_key(|r| r.ctas) else { return Report::default() };
    let sum = |count: fn(&Report) -> u64| launches.iter().map(count).sum::<u64>();
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };

    let (cycles, warp_insts) = (sum(|r| r.cycles), sum(|r| r.warp_insts));
    let wall_s: f64 = launches.iter().map(|r| r.wall_s).sum();
    let busy: f64 = launches.iter().map(|r| r.simd_efficiency * r.warp_insts as f64).sum();
    let timed = launches.iter().all(|r| r.ipc.is_some());
    Report {
        kernel: kernels(launches).join(", "),
        chip: largest.chip.clone(),
        model: largest.model,
        sched: largest.sched.clone(),
        bows: largest.bows,
        grid: largest.grid,
        block: largest.block,
        registers: largest.registers,
        shared_bytes: largest.shared_bytes,
        local_bytes: largest.local_bytes,
        occupancy: largest.occupancy,
        theoretical_occupancy: largest.theoretical_occupancy,
        achieved_occupancy: launches.iter().all(|r| r.achieved_occupancy.is_some()).then(|| {
            let resident = |r: &Report| r.achieved_occupancy.unwrap_or(0.0) * r.cycles as f64;
            ratio(launches.iter().map(resident).sum(), cycles as f64)
        }),
        cycles,
        ctas: sum(|r| r.ctas),
        warps: sum(|r| r.warps),
        warp_insts,
        thread_insts: sum(|r| r.thread_insts),
        ipc: timed.then(|| ratio(warp_insts as f64, cycles as f64)),
        simd_efficiency: ratio(busy, warp_insts as f64),
        active_threads_per_warp: ratio(sum(|r| r.thread_insts) as f64, warp_insts as f64),
        gpu_s: launches.iter().map(|r| r.gpu_s).sum(),
        gpu_least_s: launches.iter().map(|r| r.gpu_least_s).sum(),
        wall_s,
        warp_insts_per_s: ratio(warp_insts as f64, wall_s),
        kernel_s: launches.iter().map(|r| r.kernel_s).sum(),
        launch_overhead_ns: launches.iter().map(|r| r.launch_overhead_ns).sum(),
        warp_cycles: launches.iter().map(|r| r.warp_cycles).sum(),
        stalls: counters(launches, |r| r.stalls.as_ref()),
        classes: counters(launches, |r| r.classes.as_ref()),
        locks: locks(launches),
        sib: spin_branches(launches),
        back_off: back_offs(launches),
        ddos: detection(launches),
        l1: counters(launches, |r| r.l1.as_ref()),
        l2: counters(launches, |r| r.l2.as_ref()),
        dram: counters(launches, |r| r.dram.as_ref()),
        dram_utilisation: launches.iter().all(|r| r.dram_utilisation.is_some()).then(|| {
            let used = |r: &Report| r.dram_utilisation.unwrap_or(0.0) * r.cycles as f64;
            ratio(launches.iter().map(used).sum(), cycles as f64)
        }),
        interconnect: counters(launches, |r| r.interconnect.as_ref()),
        coherence: counters(launches, |r| r.coherence.as_ref()),
        aggregator: counters(launches, |r| r.aggregator.as_ref()),
        sms: sms(launches),
        energy_nj: counters(launches, |r| r.energy_nj.as_ref()),
        output: launches.iter().map(|r| r.output.as_str()).collect(),
        uninitialised: launches.iter().flat_map(|r| r.uninitialised.clone()).collect(),
        races: races(launches),
        lock_warnings: launches.iter().flat_map(|r| r.lock_warnings.clone()).collect(),
        estimate: estimate(launches),
        beside: launches.iter().filter_map(|r| r.beside).max(),
        outside_loads: launches.iter().flat_map(|r| r.outside_loads.clone()).collect(),
        profile: profile(launches),
    }
}

/// Of launches in the fast model, if there are any.
fn estimate(launches: &[Report]) -> Option<Estimate> {
    let of_launches = || launches.iter().filter_map(|r| Some((r.estimate.as_ref()?, r.cycles)));
    of_launches().next().is_some().then(|| Estimate::of_all(of_launches()))
}

fn profile(launches: &[Report]) -> Option<Arc<Profile>> {
    let (first, others) = launches.split_first()?;
    let mut sum = first.profile.clone()?;
    if !others.is_empty() {
        let others: Option<Vec<&Profile>> = others.iter().map(|launch| launch.profile.as_deref()).collect();
        Arc::make_mut(&mut sum).merge(others?);
    }
    Some(sum)
}

/// Races of the same lines in several launches of a kernel count as one.
fn races(launches: &[Report]) -> Vec<Race> {
    let mut all: Vec<(&str, Race)> = Vec::new();
    let lines = |race: &Race| race.accesses.clone().map(|access| (access.kind, access.line));
    for (kernel, race) in launches.iter().flat_map(|r| r.races.iter().map(|race| (r.kernel.as_str(), race))) {
        let known = all.iter_mut().find(|(of, known)| *of == kernel && lines(known) == lines(race));
        match known {
            Some((_, known)) => known.count += race.count,
            None => all.push((kernel, race.clone())),
        }
    }
    all.into_iter().map(|(_, race)| race).collect()
}

/// Kernel names, each once, in the order of their first launches.
pub(super) fn kernels(launches: &[Report]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for launch in launches {
        if !names.contains(&launch.kernel.as_str()) {
            names.push(&launch.kernel);
        }
    }
    names
}

type Named<T> = BTreeMap<&'static str, T>;

fn counters<T: Copy + Default + AddAssign>(
    launches: &[Report],
    of: fn(&Report) -> Option<&Named<T>>,
) -> Option<Named<T>> {
    let mut sums = Named::new();
    for launch in launches {
        for (name, count) in of(launch)? {
            *sums.entry(name).or_default() += *count;
        }
    }
    Some(sums)
}

/// Adds up each SM over all launches. The chip is the same in all of them.
fn sms(launches: &[Report]) -> Option<Vec<Arc<SmReport>>> {
    let mut sums: Vec<Arc<SmReport>> = Vec::new();
    for launch in launches {
        let sms = launch.sms.as_ref()?;
        for (sum, sm) in sums.iter_mut().zip(sms) {
            // Small launches use few SMs of a large chip.
            match (sum.is_idle(), sm.is_idle()) {
                (_, true) => {}
                (true, false) => *sum = sm.clone(),
                (false, false) => *Arc::make_mut(sum) += sm,
            }
        }
        sums.extend(sms.iter().skip(sums.len()).cloned());
    }
    Some(sums)
}

fn locks(launches: &[Report]) -> Option<Locks> {
    let mut sums = Locks::default();
    for launch in launches {
        let of_launch = launch.locks.as_ref()?;
        let Locks { acquired, failed_intra, failed_inter, wait_ok, wait_fail, .. } = of_launch;
        let Locks { queued, granted, not_queued, bits_explicit, bits_implicit, .. } = of_launch;
        sums.acquired += acquired;
        sums.failed_intra += failed_intra;
        sums.failed_inter += failed_inter;
        sums.wait_ok += wait_ok;
        sums.wait_fail += wait_fail;
        sums.queued += queued;
        sums.granted += granted;
        sums.not_queued += not_queued;
        // Launches use the same bits one after another.
        sums.bits_explicit = sums.bits_explicit.max(*bits_explicit);
        sums.bits_implicit = sums.bits_implicit.max(*bits_implicit);
    }
    Some(sums)
}

fn spin_branches(launches: &[Report]) -> Option<SpinBranches> {
    let mut sums = SpinBranches::default();
    for launch in launches {
        let SpinBranches { detected, confirmed } = launch.sib.as_ref()?;
        sums.detected += detected;
        sums.confirmed += confirmed;
    }
    Some(sums)
}

fn back_offs(launches: &[Report]) -> Option<BackOff> {
    let mut sums = BackOff::default();
    for launch in launches {
        let BackOff { count, warp_cycles, longest_limit_cycles } = launch.back_off?;
        sums.count += count;
        sums.warp_cycles += warp_cycles;
        sums.longest_limit_cycles = sums.longest_limit_cycles.max(longest_limit_cycles);
    }
    Some(sums)
}

/// Rates follow from the counts. A phase ratio is the mean over the confirmed branches.
fn detection(launches: &[Report]) -> Option<Detection> {
    let of = launches.iter().map(|launch| launch.ddos).collect::<Option<Vec<Detection>>>()?;
    let sum = |count: fn(&Detection) -> u64| of.iter().map(count).sum::<u64>();
    let mean = |ratio: fn(&Detection) -> Option<f64>, count: fn(&Detection) -> u64| {
        let weighted = of.iter().filter_map(|d| Some(ratio(d)? * count(d) as f64)).sum::<f64>();
        (sum(count) > 0).then(|| weighted / sum(count) as f64)
    };
    let rate = |some: u64, all: u64| (all > 0).then(|| some as f64 / all as f64);
    let (true_met, true_confirmed) = (sum(|d| d.true_met), sum(|d| d.true_confirmed));
    let (false_met, false_confirmed) = (sum(|d| d.false_met), sum(|d| d.false_confirmed));
    Some(Detection {
        tsdr: rate(true_confirmed, true_met),
        fsdr: rate(false_confirmed, false_met),
        dpr_true: mean(|d| d.dpr_true, |d| d.true_confirmed),
        dpr_false: mean(|d| d.dpr_false, |d| d.false_confirmed),
        true_met,
        true_confirmed,
        false_met,
        false_confirmed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(kernel: &str, ctas: u64, insts: u64, cycles: u64) -> Report {
        Report {
            kernel: kernel.to_string(),
            grid: [ctas as u32, 1, 1],
            ctas,
            cycles,
            warp_insts: insts,
            ipc: Some(insts as f64 / cycles as f64),
            simd_efficiency: if ctas > 1 { 1.0 } else { 0.5 },
            wall_s: 0.5,
            stalls: Some(BTreeMap::from([("long_scoreboard", cycles)])),
            locks: Some(Locks { acquired: 1, ..Locks::default() }),
            sms: Some(vec![Arc::new(SmReport {
                ctas,
                l1: BTreeMap::from([("hits", 2)]),
                ..SmReport::default()
            })]),
            ..Report::default()
        }
    }

    #[test]
    fn sums_and_rates() {
        let all = total(&[timed("grow", 1, 100, 10), timed("grow", 4, 300, 10), timed("shrink", 1, 0, 30)]);
        assert_eq!((all.kernel.as_str(), all.grid, all.ctas), ("grow, shrink", [4, 1, 1], 6));
        assert_eq!((all.cycles, all.warp_insts, all.ipc), (50, 400, Some(8.0)));
        assert_eq!(all.simd_efficiency, (100.0 * 0.5 + 300.0) / 400.0);
        assert_eq!((all.wall_s, all.warp_insts_per_s), (1.5, 400.0 / 1.5));
        assert_eq!(all.stalls, Some(BTreeMap::from([("long_scoreboard", 50)])));
        assert_eq!(all.locks.map(|l| l.acquired), Some(3));
        assert_eq!(all.sms.map(|sms| (sms[0].ctas, sms[0].l1["hits"])), Some((6, 6)));
        assert_eq!((all.gpu_s, all.l1), (None, None));
    }

    #[test]
    fn one_launch_is_its_own_total() {
        let one = Report { gpu_s: Some(0.1), warp_insts_per_s: 200.0, ..timed("k", 1, 100, 10) };
        assert_eq!(total(std::slice::from_ref(&one)), one);
        assert_eq!(total(&[]), Report::default());
    }
}
