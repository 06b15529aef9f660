//! Every workload on small inputs: on a SIMT stack, on independent threads and on wide warps, with and without timing.

use warploom::{Chip, Device, Error, SimModel, SimOptions};
use warploom_lab::work::{Outcome, ParamError, WORKLOADS, Workload};

const CHIPS: [&str; 3] = ["gtx480", "h200", "apu"];
const MODELS: [SimModel; 2] = [SimModel::Functional, SimModel::Timing];

fn device(chip: &str, model: SimModel) -> Device {
    Device::sim_with(Chip::load(chip, &[]).unwrap(), SimOptions { model, ..SimOptions::default() })
}

#[track_caller]
fn run_on(mut gpu: Device, name: &str, params: &str) -> Outcome {
    let workload = Workload::find(name).unwrap();
    let values = workload.values(&params.split_whitespace().collect::<Vec<_>>()).unwrap();
    workload.run(&mut gpu, &values, &|launch| launch).unwrap()
}

#[track_caller]
fn run(name: &str, params: &str) -> Outcome {
    run_on(device("gtx480", SimModel::Functional), name, params)
}

/// Runs a workload on every chip in every model. The result must be right.
#[track_caller]
fn right(name: &str, params: &str) {
    for (chip, model) in CHIPS.into_iter().flat_map(|chip| MODELS.map(|model| (chip, model))) {
        let outcome = run_on(device(chip, model), name, params);
        assert!(outcome.check.is_ok(), "{name} {params} on {chip}, {model:?}: {:?}", outcome.check);
        assert_eq!(outcome.total.ipc.is_some(), model == SimModel::Timing);
    }
}

#[test]
fn vecadd_of_any_size() {
    for params in ["size=1", "size=1000", "size=4096 threads=96", "size=1025 threads=1024 seed=7"] {
        right("vecadd", params);
    }
}

#[test]
fn matmul_of_any_tiles() {
    for params in ["size=16", "size=48 seed=3"] {
        right("matmul", params);
    }
}

#[test]
fn hashtable_under_any_contention() {
    for params in [
        "keys=1 buckets=1 ctas=1 threads=1",
        "keys=600 buckets=1 ctas=4 threads=64",
        "keys=3000 buckets=16 ctas=8 threads=96 seed=2",
        "keys=3000 buckets=4096",
        "keys=100 buckets=7 ctas=3 threads=1000",
    ] {
        right("hashtable", params);
    }
}

#[test]
fn nw_of_any_size_and_penalty() {
    // One cell, one tile, slightly more than one tile, several tiles with a partial one at the end.
    for params in
        ["size=1", "size=31", "size=32 penalty=0", "size=30 penalty=-3", "size=100 penalty=1 seed=9"]
    {
        right("nw", params);
    }
    right("nw", "size=40 penalty=1000000");
}

#[test]
fn nw_grows_and_shrinks() {
    let outcome = run("nw", "size=93");
    let launches: Vec<_> = outcome.launches.iter().map(|r| (r.kernel.as_str(), r.grid[0])).collect();
    let expected = [("nw_grow", 1), ("nw_grow", 2), ("nw_grow", 3), ("nw_shrink", 2), ("nw_shrink", 1)];
    assert_eq!(launches, expected);
    assert_eq!((outcome.total.kernel.as_str(), outcome.total.ctas), ("nw_grow, nw_shrink", 9));
    let insts: u64 = outcome.launches.iter().map(|r| r.warp_insts).sum();
    assert_eq!(outcome.total.warp_insts, insts);
}

#[test]
fn software_back_off() {
    for params in [
        "keys=300 buckets=1 ctas=2 threads=64 version=sleep backoff=1",
        "keys=600 buckets=8 ctas=4 threads=96 version=sleep backoff=2000",
        "keys=600 buckets=8 ctas=4 threads=96 version=delay",
        "keys=600 buckets=8 ctas=4 threads=96 version=unlocked",
    ] {
        right("hashtable", params);
    }
}

#[test]
fn locks_for_high_contention() {
    for version in ["ticket", "queue", "warp", "exchange"] {
        right("hashtable", &format!("keys=1 buckets=1 ctas=1 threads=1 version={version}"));
        right("hashtable", &format!("keys=300 buckets=1 ctas=2 threads=64 version={version}"));
        right("hashtable", &format!("keys=1000 buckets=7 ctas=4 threads=96 version={version}"));
    }
}

#[test]
fn records_in_place_of_indexed_entries() {
    for params in [
        "keys=1 buckets=1 ctas=1 threads=32 entries=records",
        "keys=600 buckets=7 ctas=4 threads=96 entries=records",
        "keys=600 buckets=7 ctas=4 threads=96 entries=records version=unlocked",
    ] {
        right("hashtable", params);
    }
}

#[test]
fn transfers_under_any_contention() {
    for params in [
        "transfers=1 accounts=2 ctas=1 threads=1",
        "transfers=70 accounts=2 ctas=2 threads=33",
        "transfers=600 accounts=100 ctas=3 threads=96 seed=2",
    ] {
        right("atm", params);
    }
}

#[test]
fn tours_of_any_size() {
    for params in
        ["cities=3 climbers=1 threads=1", "cities=9 climbers=70 threads=50", "cities=12 climbers=33 steps=2"]
    {
        right("tsp", params);
    }
}

#[test]
fn cloth_of_any_size() {
    for params in ["width=2 height=2", "width=7 height=5 rounds=2 threads=32 seed=3"] {
        right("cloth", params);
    }
}

#[test]
fn wavefronts_of_any_size_in_both_directions() {
    for name in ["nw1", "nw2"] {
        for params in [
            "size=1",
            "size=32 columns=70 warps=1",
            "size=65 warps=2 penalty=-3",
            "size=100 columns=3 penalty=1000000 seed=4",
        ] {
            right(name, params);
        }
    }
}

#[test]
fn a_wavefront_ends_with_few_resident_warps() {
    // One SM with one CTA of one warp at a time: strips run one after another.
    let chip = Chip::load("gtx480", &["sm.count=1", "sm.max_ctas=1"].map(String::from)).unwrap();
    let outcome = run_on(Device::sim_with(chip, SimOptions::default()), "nw1", "size=100 warps=1");
    assert!(outcome.check.is_ok(), "{:?}", outcome.check);
}

#[test]
fn trees_of_any_size() {
    for params in
        ["bodies=1 ctas=1 threads=1", "bodies=2 ctas=2 threads=40", "bodies=300 ctas=3 threads=70 seed=5"]
    {
        right("treebuild", params);
        right("treesort", params);
    }
}

#[test]
fn ctas_that_wait_for_each_other_must_all_be_resident() {
    let workload = Workload::find("treesort").unwrap();
    let values = workload.values(&["bodies=50", "ctas=121", "threads=32"]).unwrap();
    let refused = workload.run(&mut device("gtx480", SimModel::Functional), &values, &|launch| launch);
    insta::assert_snapshot!(
        refused.unwrap_err().to_string(),
        @"CTAs of kernel `barneshut_sort` wait for each other, and 120 can be resident together on gtx480, not 121"
    );
}

#[test]
fn what_does_not_fit_into_memory_is_refused() {
    let chip = || Chip::load("gtx480", &["memory.global_bytes=65536".to_string()]).unwrap();
    for (name, params) in [
        ("atm", "accounts=20_000"),
        ("nw1", "size=500"),
        ("treebuild", "bodies=9_000"),
        ("hotspot", "size=200"),
    ] {
        let workload = Workload::find(name).unwrap();
        let values = workload.values(&params.split(' ').collect::<Vec<_>>()).unwrap();
        let mut gpu = Device::sim_with(chip(), SimOptions::default());
        let result = workload.run(&mut gpu, &values, &|launch| launch);
        assert!(matches!(result, Err(Error::OutOfMemory(_))), "{name}: {result:?}");
    }
}

#[test]
fn kernels_without_locks() {
    for (name, params) in [
        ("kmeans", "points=100 features=5 clusters=3"),
        ("mergesort", "keys=1"),
        ("mergesort", "keys=2500 ctas=2"),
        ("heartwall", "points=2 frames=2 reach=5 radius=2 threads=64"),
        ("hotspot", "size=1"),
        ("hotspot", "size=37"),
        ("bfs", "vertices=1"),
        ("bfs", "vertices=200 degree=4"),
        ("backprop", "inputs=100 units=5 threads=33"),
        ("lud", "size=48"),
        ("gaussian", "size=2"),
        ("gaussian", "size=12"),
        ("pathfinder", "columns=600 rows=10 at_once=4"),
        ("srad", "size=35"),
        ("streamcluster", "points=100 features=7 candidates=2"),
        ("nn", "points=300"),
        ("cfd", "cells=100"),
        ("lava", "boxes=2 each=12"),
    ] {
        right(name, params);
    }
}

#[test]
fn seeds_decide_about_the_input() {
    let insts = |seed| {
        let params = format!("keys=500 buckets=8 ctas=2 threads=64 seed={seed}");
        run("hashtable", &params).total.warp_insts
    };
    assert_eq!(insts(1), insts(1));
    assert_ne!(insts(1), insts(2));
}

#[test]
fn launches_are_prepared() {
    let workload = Workload::find("nw").unwrap();
    let values = workload.values(&["size=62"]).unwrap();
    let mut gpu = device("gtx480", SimModel::Functional);
    let result = workload.run(&mut gpu, &values, &|launch| launch.max_cycles(10));
    assert!(matches!(result, Err(Error::Hang { .. })), "{result:?}");
}

#[test]
fn defaults_are_allowed_values() {
    for workload in WORKLOADS {
        let defaults: Vec<String> =
            workload.params.iter().map(|p| format!("{}={}", p.name, p.text(p.default))).collect();
        let values = workload.values(&defaults).unwrap();
        assert_eq!(values, workload.values::<&str>(&[]).unwrap(), "{}", workload.name);
        assert_eq!(values.to_string(), defaults.join(" "));
    }
}

#[test]
fn what_is_wrong_is_named() {
    let wrong = |params: &[&str]| Workload::find("matmul").unwrap().values(params).unwrap_err().to_string();
    let messages = [
        Workload::find("matmull").unwrap_err().to_string(),
        wrong(&["sizes=32"]),
        wrong(&["size"]),
        wrong(&["size=many"]),
        wrong(&["size=0"]),
        wrong(&["size=40"]),
        wrong(&["size=32", "size=32"]),
    ];
    insta::assert_snapshot!(messages.join("\n"));
    let none = Workload::find("").unwrap_err();
    assert!(matches!(none, ParamError::NoWorkload { .. }));
}

/// The chain and the primitives: on the chip with lock bits under every scheduler, and on others where they can run.
mod synchronization {
    use warploom::{Timing, policies};
    use warploom_lab::work::{CHAIN_SCHEMES, PRIMITIVES};

    use super::*;

    /// gtx570 under every policy, and without timing.
    fn with_lock_bits() -> Vec<(String, Device)> {
        let timed = policies().into_iter().map(|(policy, _)| {
            let timing = Timing { policy: Some(policy.to_string()), ..Timing::default() };
            (policy.to_string(), SimOptions { timing, ..SimOptions::default() })
        });
        let functional = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        let chip = || Chip::load("gtx570", &[]).unwrap();
        timed
            .chain([("functional".to_string(), functional)])
            .map(|(name, options)| (name, Device::sim_with(chip(), options)))
            .collect()
    }

    #[track_caller]
    fn checked(on: &str, gpu: Device, name: &str, params: &str) -> Outcome {
        let outcome = run_on(gpu, name, params);
        assert!(outcome.check.is_ok(), "{name} {params} on {on}: {:?}", outcome.check);
        assert!(
            outcome.total.lock_warnings.is_empty(),
            "{name} {params} on {on}: {:?}",
            outcome.total.lock_warnings
        );
        outcome
    }

    fn on_lock_bits(name: &str) -> bool {
        ["tiny_", "vote_", "warp_vote"].iter().any(|start| name.starts_with(start))
    }

    /// In `shrd_lock`, lane 0 waits on behalf of its warp, which relies on lockstep.
    fn runs_on(scheme: &str, chip: &str) -> bool {
        !on_lock_bits(scheme) && (scheme != "shrd_lock" || chip != "h200")
    }

    #[test]
    fn chains_of_any_shape() {
        for scheme in CHAIN_SCHEMES {
            for shape in [
                "rounds=2",
                "warps=5 steps=13 distance=64 rounds=2",
                "warps=7 steps=4 rounds=1",
                "warps=1 steps=3 rounds=2",
            ] {
                let params = format!("scheme={scheme} {shape}");
                for (policy, gpu) in with_lock_bits() {
                    checked(&policy, gpu, "chain", &params);
                }
                for chip in ["gtx480", "h200"].iter().filter(|chip| runs_on(scheme, chip)) {
                    checked(chip, device(chip, SimModel::Timing), "chain", &params);
                }
            }
        }
        // Threads wait for threads of two warps.
        for scheme in ["atom_lock", "tiny_lock"] {
            for (policy, gpu) in with_lock_bits() {
                checked(&policy, gpu, "chain", &format!("scheme={scheme} distance=45 rounds=2"));
            }
        }
    }

    #[test]
    fn chains_that_cannot_be() {
        let refused = |params: &str| {
            let workload = Workload::find("chain").unwrap();
            let values = workload.values(&params.split_whitespace().collect::<Vec<_>>()).unwrap();
            workload
                .run(&mut device("gtx570", SimModel::Timing), &values, &|launch| launch)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("scheme=warp_barr steps=17").contains("15 barriers"));
        assert!(refused("scheme=tiny_lock steps=33").contains("1024 lock bits"));
        assert!(refused("scheme=shrd_lock distance=40").contains("no multiple of 32"));
        let workload = Workload::find("chain").unwrap();
        let wrong = workload.values(&["scheme=nosuch"]).unwrap_err().to_string();
        assert!(wrong.contains("one of atom_lock, warp_barr"), "{wrong}");
    }

    #[test]
    fn every_primitive() {
        for primitive in PRIMITIVES {
            let params = format!("primitive={primitive} rounds=3 warps=3 ctas=9");
            for (policy, gpu) in with_lock_bits() {
                let outcome = checked(&policy, gpu, "primitives", &params);
                assert!(outcome.figures["cycles_per_operation"] > 0.0);
            }
            for chip in ["gtx480", "gtx1080ti", "h200"].iter().filter(|_| !on_lock_bits(primitive)) {
                checked(chip, device(chip, SimModel::Timing), "primitives", &params);
            }
        }
    }

    /// Threads that wait for a spin lock keep taking the lock bit of its word, so the thread that releases it may
    /// fail. An unfair scheduler may prolong that, but failures depend on timing, so there is no proof of a hang.
    #[test]
    fn many_warps_in_one_section() {
        let workload = Workload::find("primitives").unwrap();
        let values = workload.values(&["primitive=spin_section", "rounds=1", "warps=8"]).unwrap();
        let chip = || Chip::load("gtx570", &["hang.suspect_cycles=200000".to_string()]).unwrap();
        for (policy, _) in policies() {
            let timing = Timing { policy: Some(policy.to_string()), ..Timing::default() };
            let mut gpu = Device::sim_with(chip(), SimOptions { timing, ..SimOptions::default() });
            match workload.run(&mut gpu, &values, &|launch| launch) {
                Ok(outcome) => assert!(outcome.check.is_ok(), "{policy}: {:?}", outcome.check),
                Err(Error::Hang { hang: Some(hang), .. }) => {
                    assert!(!hang.reason.is_proof(), "{policy}: {hang}");
                }
                Err(error) => panic!("{policy}: {error}"),
            }
        }
    }
}
