//! Needleman-Wunsch in every version: the host's scores for any rectangle, penalty and scores, and no lock bit left
//! taken.

use proptest::prelude::*;
use warploom::{Chip, Device, Error, SimModel, SimOptions};
use warploom_lab::repro::{self, Scale, Verdict};
use warploom_lab::runs::Plan;
use warploom_lab::work::{Outcome, Workload};

fn device(chip: &str, set: &[&str], model: SimModel) -> Device {
    let set: Vec<String> = set.iter().map(|text| text.to_string()).collect();
    Device::sim_with(Chip::load(chip, &set).unwrap(), SimOptions { model, ..SimOptions::default() })
}

fn run(mut gpu: Device, params: &str) -> warploom::Result<Outcome> {
    let workload = Workload::find("nw").unwrap();
    let values = workload.values(&params.split_whitespace().collect::<Vec<_>>()).unwrap();
    workload.run(&mut gpu, &values, &|launch| launch)
}

/// A version, and the settings of the chip that it needs.
const VERSIONS: [(&str, &[&str]); 11] = [
    ("version=data-parallel", &[]),
    ("version=atomic", &[]),
    ("version=tiny", &[]),
    ("version=tiny tile=15", &[]),
    ("version=tiny", &["lock.bits=2048", "sm.max_threads=2048", "sm.max_warps=64", "sm.registers=65536"]),
    ("version=private", &[]),
    ("version=private", &["lock.bits=4096"]),
    ("version=multi", &[]),
    ("version=multi cells=8", &[]),
    ("version=grid cells=4", &["sm.count=2"]),
    ("version=grid", &[]),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_to_the_host(
        (version, set) in prop::sample::select(VERSIONS.to_vec()),
        rows in 1u32..100,
        columns in 1u32..100,
        penalty in -50i32..1000,
        score in prop::sample::select(vec!["field", "blosum62"]),
        seed in 0u32..1000,
    ) {
        let params = format!("{version} size={rows} columns={columns} penalty={penalty} score={score} seed={seed}");
        let outcome = run(device("gtx570", set, SimModel::Timing), &params).unwrap();
        prop_assert!(outcome.check.is_ok(), "{}: {:?}", params, outcome.check);
        prop_assert!(outcome.total.lock_warnings.is_empty(), "{}: {:?}", params, outcome.total.lock_warnings);
    }
}

#[test]
fn several_tiles_on_an_sm_do_not_share_bits() {
    // Nine tiles on one SM, which are more than are resident at once.
    for (version, set) in VERSIONS {
        let set = [set, &["sm.count=1"]].concat();
        let outcome = run(device("gtx570", &set, SimModel::Timing), &format!("{version} size=280")).unwrap();
        assert!(outcome.check.is_ok(), "{version} {set:?}: {:?}", outcome.check);
    }
}

#[test]
fn without_timing_too() {
    for (version, set) in VERSIONS {
        let outcome =
            run(device("gtx570", set, SimModel::Functional), &format!("{version} size=70")).unwrap();
        assert!(outcome.check.is_ok(), "{version}: {:?}", outcome.check);
    }
    // A chip with native atomics and independent thread scheduling.
    for chip in ["gtx480", "h200"] {
        let outcome = run(device(chip, &[], SimModel::Timing), "version=atomic size=70").unwrap();
        assert!(outcome.check.is_ok(), "{chip}: {:?}", outcome.check);
    }
}

#[test]
fn a_chip_without_the_bits_is_refused() {
    for (chip, params) in
        [("gtx480", "version=tiny"), ("gtx480", "version=multi"), ("gtx570", "version=private tile=31")]
    {
        let error = run(device(chip, &[], SimModel::Timing), params).unwrap_err();
        assert!(matches!(error, Error::Link(_)), "{error}");
    }
}

#[test]
fn the_quick_experiments_are_inside_their_bands() {
    let folder = std::env::temp_dir().join(format!("warploom-nw-{}", std::process::id()));
    for id in ["ics15-table3", "ics15-channels", "ics15-beyond"] {
        let reproduction = repro::reproduce(&repro::find(id), Scale::Quick, &Plan::new(&folder)).unwrap();
        for evaluated in &reproduction.experiments {
            for row in &evaluated.outcome.rows {
                assert_ne!(row.verdict(), Verdict::Out, "{id}, {}: {}", row.name, row.measured_text());
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
