//! Vectors and programs recorded on a GPU, replayed on simulated chips.

use std::fmt::Write as _;
use std::path::PathBuf;

use warploom::{Chip, Device, SimModel, SimOptions};
use warploom_lab::conform::{self, ConformReport, GROUPS};

/// Groups of the catalogue that no GPU has computed yet.
const UNRECORDED: [&str; 0] = [];

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// Without timing: the results of instructions do not depend on it.
fn functional(chip: &str) -> Device {
    let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
    Device::sim_with(Chip::load(chip, &[]).unwrap(), options)
}

/// The differences as text.
fn describe(report: &ConformReport) -> String {
    let mut out = String::new();
    for group in &report.groups {
        for d in &group.differences {
            let _ = writeln!(out, "{} ({} of {} vectors)", d.case, d.different, d.vectors);
            let _ = writeln!(out, "  operands  {}", d.operands.join(", "));
            let _ = writeln!(out, "  GPU       {}", d.expected.join(", "));
            let _ = writeln!(out, "  machine   {}", d.got.join(", "));
        }
        for r in &group.refused {
            let _ = writeln!(out, "{} is refused: {}", r.case, r.reason);
        }
        for name in &group.stale {
            let _ = writeln!(out, "{name} is stale: record it again");
        }
    }
    out
}

#[test]
fn the_machine_computes_what_the_gpu_computes() {
    let mut device = functional("h200");
    let report = conform::replay(&mut device, &vectors(), &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{}", describe(&report));
    // A missing recording must not pass as one that agrees, nor a recording as missing.
    let known: Vec<&str> = report.groups.iter().map(|group| group.group.as_str()).collect();
    let missing: Vec<&str> =
        GROUPS.iter().map(|group| group.name()).filter(|name| !known.contains(name)).collect();
    assert_eq!(missing, UNRECORDED);
    for group in &report.groups {
        assert!(group.unrecorded.is_empty(), "{}: not recorded: {:?}", group.group, group.unrecorded);
        assert_eq!(group.equal + group.within_bound, group.vectors);
    }
}

#[test]
fn recorded_programs_have_their_results() {
    for chip in ["h200", "gtx480", "apu"] {
        let mut device = functional(chip);
        let report = conform::replay_fuzz(&mut device, &vectors(), &mut |_| ()).unwrap();
        assert!(report.is_clean() && report.equal > 0, "{chip}: {report:?}");
    }
}
