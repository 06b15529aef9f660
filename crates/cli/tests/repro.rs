//! `warploom repro` as users run it: lists, refusals, files, kept runs, exit codes.

#[path = "support/schema.rs"]
mod schema;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use support::scratch;

fn repro(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let output = command.current_dir(dir).arg("repro").args(line.split_whitespace()).output().unwrap();
    let arguments: Vec<&str> = ["repro"].into_iter().chain(line.split_whitespace()).collect();
    schema::conforms(&arguments, &output.stdout);
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn good(dir: &Path, line: &str) -> String {
    let output = repro(dir, line);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

#[track_caller]
fn refused(dir: &Path, line: &str) -> String {
    let output = repro(dir, line);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{line}");
    text(&output.stderr)
}

#[track_caller]
fn json(text: &str) -> Value {
    assert_eq!(text.matches('\n').count(), 1, "one object on one line: {text}");
    serde_json::from_str(text).unwrap()
}

fn runs(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir.join("warploom-repro/runs")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "json")).collect()
}

#[test]
fn experiments_are_listed() {
    let dir = scratch("repro-list");
    let list = good(&dir, "--list");
    for part in ["model\n", "  fidelity ", "3 runs in about 4 s; quick: 3 runs in about 2 s"] {
        assert!(list.contains(part), "{part:?} is missing in\n{list}");
    }
    assert!(good(&dir, "model --list").contains("fidelity"));
    let object = json(&good(&dir, "model --list --json"));
    assert_eq!(object["experiments"][0]["id"], "fidelity");
    assert_eq!(object["experiments"][0]["quick"]["runs"], 3);
    assert!(!dir.join("warploom-repro").exists(), "a list writes nothing");
}

#[test]
fn names_that_do_not_exist() {
    let dir = scratch("repro-unknown");
    let expected = "error: no experiment or paper `fidelty`\nhelp: did you mean `fidelity`?\n";
    assert_eq!(refused(&dir, "fidelty"), expected);
    assert!(refused(&dir, "fidelity nothing-like-it").contains("`warploom repro --list` shows them"));
    let output = repro(&dir, "fidelty --json");
    let object = json(&text(&output.stdout));
    assert_eq!((output.status.code(), &object["error"]["exit_code"]), (Some(2), &2.into()));
    std::fs::write(dir.join("file"), "").unwrap();
    let message = refused(&dir, "fidelity --quick --out file");
    assert!(message.starts_with("error: cannot keep runs in `file/runs`: "), "{message}");
}

#[test]
fn a_quick_run_is_kept_and_reported() {
    let dir = scratch("repro-quick");
    let first = good(&dir, "fidelity --quick --jobs 2");
    for part in
        ["fidelity: ", "quick form", "vecadd cycles", "; 3 runs, ", "report in warploom-repro/report.html\n"]
    {
        assert!(first.contains(part), "{part:?} is missing in\n{first}");
    }
    assert!(!first.contains("kept from before"), "{first}");
    assert_eq!(runs(&dir).len(), 3);
    let out = dir.join("warploom-repro");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert!(read("report.html").contains("id=\"fidelity\""));
    assert!(read("plots/fidelity-0.svg").starts_with("<svg "));
    assert_eq!(read("data.csv").lines().count(), 1 + 6);
    let before = json(&read("report.json"));

    // The second time, by the paper's name, all runs are kept ones and the numbers are the same.
    let second = json(&good(&dir, "model --quick --json"));
    assert_eq!((&second["runs"], &second["kept_runs"]), (&3.into(), &3.into()));
    assert_eq!(before["experiments"], second["experiments"]);
    assert_eq!((&second["in"], &second["out"]), (&1.into(), &0.into()));
    let row = &second["experiments"][0]["rows"][0];
    assert_eq!((&row["paper"], &row["verdict"]), (&85_482.0.into(), &"in".into()));
    assert_eq!(second["experiments"][0]["quick"], true);

    // A broken file is run again, the others are not.
    std::fs::write(&runs(&dir)[0], "{ half of").unwrap();
    let third = json(&good(&dir, "fidelity --quick --json"));
    assert_eq!(third["kept_runs"], 2);
    assert_eq!(third["experiments"][0]["rows"], second["experiments"][0]["rows"]);
    let fresh = json(&good(&dir, "fidelity --quick --json --fresh"));
    assert_eq!(fresh["kept_runs"], 0);
}

#[test]
fn a_number_outside_its_band_is_exit_code_1() {
    // A kept result with the right checksum is trusted, so forging one shows what a wrong number does.
    let dir = scratch("repro-outside");
    good(&dir, "fidelity --quick");
    for file in runs(&dir) {
        let record = std::fs::read_to_string(&file).unwrap();
        let (head, tail) = record.split_once("\"cycles\":").unwrap();
        let (_, tail) = tail.split_once(',').unwrap();
        std::fs::write(&file, sealed(&format!("{head}\"cycles\":7,{tail}"))).unwrap();
    }
    let output = repro(&dir, "fidelity --quick");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("0 inside their bands, 1 outside"), "{}", text(&output.stdout));
}

/// A kept run with its checksum put right: FNV-1a in 128 bits of the text that follows it, and of that text's length.
fn sealed(record: &str) -> String {
    let (_, rest) = record.split_once("\",\n").unwrap();
    let bytes = rest.bytes().chain((rest.len() as u64).to_le_bytes());
    let checksum = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |sum, byte| {
        (sum ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    format!("{{\n  \"checksum\": \"{checksum:032x}\",\n{rest}")
}

#[test]
fn a_changed_digit_in_a_kept_run_is_found() {
    let dir = scratch("repro-changed");
    let before = json(&good(&dir, "fidelity --quick --json"));
    let file = &runs(&dir)[0];
    let record = std::fs::read_to_string(file).unwrap();
    let (head, tail) = record.split_once("\"cycles\":").unwrap();
    let digit = if tail.starts_with('1') { '2' } else { '1' };
    std::fs::write(file, format!("{head}\"cycles\":{digit}{}", &tail[1..])).unwrap();
    let after = json(&good(&dir, "fidelity --quick --json"));
    assert_eq!(after["kept_runs"], 2);
    assert_eq!(before["experiments"][0]["rows"], after["experiments"][0]["rows"]);
    assert_eq!(std::fs::read_to_string(file).unwrap().matches("checksum").count(), 1);
}

#[test]
fn results_are_shown_even_if_the_report_cannot_be_written() {
    let dir = scratch("repro-unwritable");
    // A folder in the place of the report cannot be replaced, not even by a user who may write everywhere.
    std::fs::create_dir_all(dir.join("warploom-repro/report.html/in-the-way")).unwrap();
    let output = repro(&dir, "fidelity --quick");
    assert_eq!(output.status.code(), Some(2));
    let shown = text(&output.stdout);
    assert!(shown.contains("vecadd cycles") && shown.contains("1 inside their bands"), "{shown}");
    assert!(!shown.contains("report in"), "{shown}");
    let message = text(&output.stderr);
    assert!(message.starts_with("error: cannot write `warploom-repro/report.html`"), "{message}");
    assert_eq!(runs(&dir).len(), 3, "the runs are kept");
    let left = std::fs::read_dir(dir.join("warploom-repro")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("part-")), "no half-written file");
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_has_ended() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    let dir = scratch("repro-interrupt");
    let child = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .current_dir(&dir)
        .args(["repro", "fidelity", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first run has ended; the second takes seconds.
    let start = Instant::now();
    let ended = || dir.join("warploom-repro/runs").exists() && !runs(&dir).is_empty();
    while !ended() && start.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(130), String::new()));
    let message = text(&output.stderr);
    assert!(message.starts_with("error: interrupted: 1 of 3 runs have ended and are kept\n"), "{message}");
    assert!(!dir.join("warploom-repro/report.html").exists());
    // The first run of the full form is also the first of the quick form.
    assert_eq!(json(&good(&dir, "fidelity --quick --json"))["kept_runs"], 1);
}
