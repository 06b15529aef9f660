//! The built-in workloads have no races, but for those named here.

use warploom::{Chip, Device, SimModel, SimOptions};
use warploom_lab::work::{CHAIN_SCHEMES, Outcome, PRIMITIVES, WORKLOADS, Workload};

fn run(name: &str, params: &str, chip: &str, model: SimModel) -> warploom::Result<Outcome> {
    run_with(true, name, params, chip, model)
}

fn run_with(
    check_races: bool,
    name: &str,
    params: &str,
    chip: &str,
    model: SimModel,
) -> warploom::Result<Outcome> {
    let workload = Workload::find(name).unwrap();
    let values = workload.values(&params.split_whitespace().collect::<Vec<_>>()).unwrap();
    let options = SimOptions { check_races, model, ..SimOptions::default() };
    let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
    workload.run(&mut gpu, &values, &|launch| launch)
}

/// Each workload on a small input, and the kernels of it that have races.
const SMALL: &[(&str, &str)] = &[
    ("vecadd", "size=1000"),
    ("matmul", "size=48"),
    ("hashtable", "keys=600 buckets=16 ctas=4 threads=96"),
    ("hashtable", "keys=600 buckets=16 ctas=4 threads=96 version=sleep"),
    ("hashtable", "keys=600 buckets=16 ctas=4 threads=96 entries=records"),
    ("hashtable", "keys=600 buckets=16 ctas=4 threads=96 version=ticket"),
    ("hashtable", "keys=600 buckets=16 ctas=4 threads=96 version=queue"),
    ("hashtable", "keys=600 buckets=16 ctas=4 threads=96 version=exchange"),
    // Volatile accesses: entries are lost, but no access races.
    ("hashtable", "keys=600 buckets=16 ctas=4 threads=96 version=unlocked"),
    ("nw", "size=93"),
    ("nw", "size=93 version=atomic"),
    ("treebuild", "bodies=300 ctas=4 threads=64"),
    ("treesort", "bodies=300 ctas=4 threads=64"),
    ("cloth", "width=7 height=5 threads=32"),
    ("atm", "transfers=600 accounts=100 ctas=3 threads=96"),
    ("nw1", "size=100"),
    ("nw2", "size=100"),
    ("tsp", "cities=9 climbers=70 threads=50 steps=3"),
    ("kmeans", "points=300"),
    ("mergesort", ""),
    ("heartwall", ""),
    ("hotspot", ""),
    ("bfs", ""),
    ("backprop", ""),
    ("lud", ""),
    ("gaussian", ""),
    ("pathfinder", ""),
    ("srad", ""),
    ("streamcluster", ""),
    ("nn", ""),
    ("cfd", ""),
    ("lava", ""),
    ("queens_flat", "n=6 placed=2"),
];

/// A level that is written while others read it: whoever reads the old value writes the same new one again.
const KNOWN: &[&str] = &["bfs"];

/// Runs of firmware are not checked.
const FIRMWARE: &[&str] = &["fibonacci", "queens", "sort", "strassen", "tree"];

#[track_caller]
fn silent(name: &str, params: &str, chip: &str, model: SimModel) {
    let outcome = run(name, params, chip, model).unwrap_or_else(|error| panic!("{name} on {chip}: {error}"));
    let races = &outcome.total.races;
    assert!(races.is_empty(), "{name} {params} on {chip}, {model:?}: {}", races[0].message);
    assert!(outcome.check.is_ok(), "{name} {params} on {chip}, {model:?}: {:?}", outcome.check);
}

#[test]
fn workloads_have_no_races() {
    let models = [SimModel::Functional, SimModel::Timing];
    for &(name, params) in SMALL.iter().filter(|(name, _)| !KNOWN.contains(name)) {
        for (chip, model) in ["gtx480", "h200", "apu"].into_iter().flat_map(|chip| models.map(|m| (chip, m)))
        {
            silent(name, params, chip, model);
        }
    }
}

#[test]
fn the_check_changes_no_cycle() {
    for name in ["hashtable", "matmul", "vecadd", "atm", "nw1", "nw", "treebuild", "bfs"] {
        let (_, params) = SMALL.iter().find(|(known, _)| *known == name).unwrap();
        for chip in ["gtx480", "gtx1080ti", "h200", "apu"] {
            let [without, with] = [false, true].map(|check| {
                let outcome = run_with(check, name, params, chip, SimModel::Timing).unwrap();
                (outcome.total.cycles, outcome.total.warp_insts, outcome.total.thread_insts)
            });
            assert_eq!(without, with, "{name} {params} on {chip}");
        }
    }
}

#[test]
fn every_workload_is_in_the_list() {
    let apart = ["chain", "primitives"].iter().chain(FIRMWARE);
    let listed: Vec<_> = SMALL.iter().map(|(name, _)| name).chain(apart).collect();
    for workload in WORKLOADS {
        assert!(listed.contains(&&workload.name), "{}", workload.name);
    }
}

#[test]
fn versions_with_lock_bits_have_no_races() {
    for version in ["tiny", "private", "multi", "grid"] {
        silent("nw", &format!("size=93 version={version}"), "gtx570", SimModel::Functional);
        silent("nw", &format!("size=40 version={version}"), "gtx570", SimModel::Timing);
    }
    for name in PRIMITIVES {
        silent("primitives", &format!("primitive={name} rounds=4"), "gtx570", SimModel::Functional);
        silent("primitives", &format!("primitive={name} rounds=4"), "gtx570", SimModel::Timing);
    }
}

/// Two schemes pass values with locks and flags in shared memory without a fence, as the paper's listings do. It works
/// on hardware, where a warp's accesses to shared memory are in order, but PTX does not promise it.
#[test]
fn chains_race_where_fences_are_missing() {
    for scheme in CHAIN_SCHEMES {
        let races = run("chain", &format!("scheme={scheme} warps=4"), "gtx570", SimModel::Functional);
        let races = races.unwrap().total.races;
        let kinds = races.iter().flat_map(|race| race.accesses.clone().map(|access| access.kind));
        let expected: &[&str] = match *scheme {
            "atom_lock" | "shrd_lock" => &["write", "read"],
            _ => &[],
        };
        assert_eq!(kinds.collect::<Vec<_>>(), expected, "{scheme}");
    }
}

#[test]
fn a_search_writes_levels_that_others_read() {
    let races = run("bfs", "", "gtx480", SimModel::Functional).unwrap().total.races;
    assert!(!races.is_empty());
    for race in races {
        let [a, b] = race.accesses.map(|access| access.kind);
        assert_eq!((race.memory.as_str(), a != b), ("levels", true), "{}", race.message);
    }
}

#[test]
fn runs_of_firmware_are_refused() {
    for name in FIRMWARE {
        let error = run(name, "", "apu", SimModel::Timing).unwrap_err();
        assert!(error.to_string().contains("runs of firmware cannot be checked for races"), "{error}");
    }
}
