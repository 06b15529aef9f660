//! The catalogue; recording and replaying through files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use warploom::{Chip, Device, SimModel, SimOptions};

use super::catalogue::GROUPS;
use super::fuzz::stored;
use super::origin::{Origin, today};
use super::record::record_as;
use super::vectors::{self, Vectors};
use super::{Error, record, record_fuzz, replay, replay_fuzz};

/// A temporary folder that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("warploom-lab-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn functional(chip: &str) -> Device {
    let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
    Device::sim_with(Chip::load(chip, &[]).unwrap(), options)
}

fn fake() -> Origin {
    Origin { chip: "a test".into(), target: "sm_0".into(), driver: "0.0".into(), date: today() }
}

#[test]
fn names_are_unique() {
    for group in GROUPS {
        let cases = group.cases();
        let entries: BTreeSet<_> = cases.iter().map(|c| c.entry()).collect();
        assert_eq!(entries.len(), cases.len(), "{}", group.name);
        assert!(cases.iter().all(|c| c.tuples % 64 == 0 && !c.outputs.is_empty()), "{}", group.name);
    }
}

#[test]
fn a_recording_replays_without_a_difference() {
    let scratch = Scratch::new("replay");
    let mut device = functional("h200");
    let summary = record_as(&mut device, &scratch.0, fake(), &mut |_| ()).unwrap();
    assert_eq!(summary.groups, GROUPS.len());
    let mut last = None;
    let report = replay(&mut device, &scratch.0, &mut |p| last = Some(p)).unwrap();
    assert!(report.is_clean());
    assert_eq!(report.groups.iter().map(|g| g.equal).sum::<usize>(), summary.vectors);
    assert!(report.groups.iter().all(|g| g.unrecorded.is_empty() && g.origin == fake()));
    assert_eq!(last.map(|p| p.total), Some(summary.cases));
}

#[test]
fn changes_are_found() {
    let scratch = Scratch::new("changes");
    let mut device = functional("h200");
    record_as(&mut device, &scratch.0, fake(), &mut |_| ()).unwrap();
    for group in GROUPS.iter().filter(|g| !["moves", "approx", "carry"].contains(&g.name)) {
        std::fs::remove_file(vectors::path(&scratch.0, group.name)).unwrap();
    }
    // One wrong bit, one stale fingerprint and one unknown case, each in another file.
    let edit = |group: &str, change: &dyn Fn(&mut Vectors)| {
        let path = vectors::path(&scratch.0, group);
        let mut file = Vectors::read(&path).unwrap().unwrap();
        change(&mut file);
        file.write(&path).unwrap();
    };
    edit("moves", &|file| file.results[0] ^= 1);
    edit("carry", &|file| file.header.cases[0].fingerprint ^= 1);
    edit("approx", &|file| file.header.cases[0].name.push('x'));
    let report = replay(&mut device, &scratch.0, &mut |_| ()).unwrap();
    assert!(!report.is_clean());
    let [carry, approx, moves] = report.groups.as_slice() else { panic!("{report:?}") };
    assert_eq!((carry.stale.len(), carry.different), (1, 0));
    assert_eq!((approx.stale.len(), approx.unrecorded.len()), (1, 1));
    assert_eq!((moves.different, moves.differences.len()), (1, 1));
    assert_eq!(moves.differences[0].case, "mov.b16");
    assert_ne!(moves.differences[0].expected, moves.differences[0].got);
}

#[test]
fn recorded_programs_replay() {
    let scratch = Scratch::new("programs");
    let mut device = functional("h200");
    let count = stored::record_as(&mut device, &scratch.0, 0..40, fake(), &mut |_| ()).unwrap();
    assert_eq!(count, 40);
    let report = replay_fuzz(&mut device, &scratch.0, &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.equal, report.origin), (40, fake().to_string()));

    // Change the result of the first program and the text hash of the second.
    let path = scratch.0.join("fuzz.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
    lines[2].push('x');
    std::fs::write(&path, lines.join("\n")).unwrap();
    assert!(matches!(replay_fuzz(&mut device, &scratch.0, &mut |_| ()), Err(Error::Format { .. })));
    lines[2] = format!("0 {} 0123456789abcdef", lines[2].split(' ').nth(1).unwrap());
    lines[3] = "1 0123456789abcdef 0123456789abcdef".to_string();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let report = replay_fuzz(&mut device, &scratch.0, &mut |_| ()).unwrap();
    assert_eq!((report.equal, report.different, report.stale), (38, vec![0], vec![1]));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let scratch = Scratch::new("refused");
    let mut device = functional("gtx480");
    assert!(matches!(record(&mut device, &scratch.0, &mut |_| ()), Err(Error::Simulated(_))));
    assert!(matches!(record_fuzz(&mut device, &scratch.0, 0..1, &mut |_| ()), Err(Error::Simulated(_))));
    assert!(!scratch.0.exists());
    assert!(matches!(replay(&mut device, &scratch.0, &mut |_| ()), Err(Error::NoVectors(_))));
    std::fs::create_dir_all(&scratch.0).unwrap();
    std::fs::write(vectors::path(&scratch.0, "bits"), b"not vectors").unwrap();
    assert!(matches!(replay(&mut device, &scratch.0, &mut |_| ()), Err(Error::Format { .. })));
}
