//! Workloads under BOWS: results stay right, and kernels that do not wait run exactly as without it.

use warploom::{Bows, Chip, Device, SimOptions, Timing, policies};
use warploom_lab::work::{Outcome, WORKLOADS, Workload};

/// Small inputs of the workloads that wait.
const WAITING: [(&str, &str); 9] = [
    ("treebuild", "bodies=300 ctas=6 threads=64"),
    ("treesort", "bodies=300 ctas=6 threads=64"),
    ("cloth", "width=8 height=8"),
    ("atm", "transfers=300 accounts=20 ctas=6 threads=64"),
    ("hashtable", "keys=600 buckets=16 ctas=6 threads=64"),
    ("hashtable", "keys=300 buckets=16 ctas=6 threads=64 version=sleep"),
    ("nw1", "size=128 columns=70"),
    ("nw2", "size=128 columns=70"),
    ("tsp", "cities=8 climbers=96 steps=2 threads=32"),
];
const FREE: [(&str, &str); 14] = [
    ("kmeans", "points=300"),
    ("mergesort", "keys=3000 ctas=2"),
    ("heartwall", "points=2 frames=1"),
    ("hotspot", "size=37"),
    ("bfs", "vertices=300"),
    ("backprop", "inputs=600"),
    ("lud", "size=32"),
    ("gaussian", "size=10"),
    ("pathfinder", "columns=600 rows=10 at_once=4"),
    ("srad", "size=35"),
    ("streamcluster", "points=300"),
    ("nn", "points=300"),
    ("cfd", "cells=300"),
    ("lava", "each=12"),
];

fn run(chip: &str, policy: &str, bows: Bows, (name, params): (&str, &str)) -> Outcome {
    let timing = Timing { policy: Some(policy.to_string()), bows, threads: 1, ..Timing::default() };
    let set = ["issue.gto.rotation_cycles=50000".to_string()];
    let mut gpu =
        Device::sim_with(Chip::load(chip, &set).unwrap(), SimOptions { timing, ..SimOptions::default() });
    let workload = Workload::find(name).unwrap();
    let values = workload.values(&params.split(' ').collect::<Vec<_>>()).unwrap();
    workload.run(&mut gpu, &values, &|launch| launch).unwrap()
}

fn right_under_every_policy(chip: &str) {
    for (policy, _) in policies() {
        for bows in [Bows::default(), Bows::on()] {
            for work in WAITING.into_iter().chain(FREE) {
                let check = run(chip, policy, bows.clone(), work).check;
                assert!(check.is_ok(), "{work:?} on {chip}, {policy}, {bows:?}: {check:?}");
            }
        }
    }
}

#[test]
fn results_are_right_on_fermi() {
    right_under_every_policy("gtx480");
}

#[test]
fn results_are_right_on_pascal() {
    right_under_every_policy("gtx1080ti");
}

#[test]
fn kernels_that_do_not_wait_are_as_without() {
    for work in FREE {
        let (base, bows) =
            (run("gtx480", "gto", Bows::default(), work), run("gtx480", "gto", Bows::on(), work));
        let detection = bows.total.ddos.unwrap();
        assert_eq!((detection.false_confirmed, detection.true_met), (0, 0), "{work:?}");
        assert_eq!(
            (base.total.cycles, base.total.warp_insts),
            (bows.total.cycles, bows.total.warp_insts),
            "{work:?}"
        );
    }
}

#[test]
fn kernels_that_wait_are_found() {
    for (work, found) in WAITING.into_iter().map(|work| (work, run("gtx480", "gto", Bows::on(), work))) {
        let detection = found.total.ddos.unwrap();
        assert_eq!(detection.false_confirmed, 0, "{work:?}");
        assert!(detection.true_met > 0, "{work:?}: its spin-inducing branch is annotated");
    }
}

#[test]
fn every_workload_of_the_paper_is_here() {
    // Workloads before `treebuild` and after `lava` in the list have their own tests.
    let place = |name: &str| WORKLOADS.iter().position(|work| work.name == name).unwrap();
    for work in &WORKLOADS[place("treebuild")..=place("lava")] {
        assert!(WAITING.iter().chain(&FREE).any(|(name, _)| *name == work.name), "{}", work.name);
    }
}
