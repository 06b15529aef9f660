//! `--on slurm` against a real Slurm of one node (`.ci/slurm` starts one). Without Slurm nothing is tested, and the
//! tests say so.
#![cfg(unix)]

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The tests share the one node, and one of them kills it.
fn node() -> Option<MutexGuard<'static, ()>> {
    static NODE: Mutex<()> = Mutex::new(());
    let there = Command::new("sinfo").arg("--noheader").output().is_ok_and(|output| output.status.success());
    if !there {
        // Not by eprintln!, whose text is shown only if a test fails.
        let warning = b"\n*** NOT TESTED: no Slurm answers here. `.ci/slurm start DIR` starts one. ***\n\n";
        let _ = std::io::stderr().write_all(warning);
        return None;
    }
    Some(NODE.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// A fresh directory for one test's files, with a sweep file in it.
fn scratch(name: &str, sweep: &str) -> PathBuf {
    let dir = support::scratch(name);
    std::fs::write(dir.join("s.toml"), sweep).unwrap();
    dir
}

fn command(dir: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.current_dir(dir).args(line.split_whitespace());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn good(output: Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn run(dir: &Path, line: &str) -> String {
    good(command(dir, line).output().unwrap())
}

fn started(dir: &Path, line: &str) -> Child {
    command(dir, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn sweep(seeds: u32, keys: u32) -> String {
    format!(
        "work = 'hashtable'\nsched = ['lrr', 'gto']\nseeds = {seeds}\n\
         [params]\nkeys = {keys}\nctas = 2\nthreads = 32\nbuckets = 8\n"
    )
}

fn ended(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir.join("s.sweep/runs")).into_iter().flatten().flatten();
    files.filter(|file| file.path().extension().is_some_and(|extension| extension == "json")).count()
}

fn wait_for(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn local_csv(name: &str, sweep: &str) -> String {
    let dir = scratch(name, sweep);
    run(&dir, "sweep run s.toml");
    run(&dir, "sweep results s.toml --csv -")
}

#[test]
fn the_results_are_those_of_a_local_run() {
    let Some(_node) = node() else { return };
    let description = sweep(6, 60);
    let dir = scratch("slurm-same", &description);
    let object: Value = serde_json::from_str(&run(
        &dir,
        "sweep run s.toml --on slurm --chunk 4 --jobs 1 --partition main --json",
    ))
    .unwrap();
    assert_eq!(object["status"]["ok"], 12, "{object}");
    let status: Value = serde_json::from_str(&run(&dir, "sweep status s.toml --json")).unwrap();
    // Two runs were executed here, for the estimate; the other ten by three tasks.
    assert_eq!(status["slurm"][0]["tasks"], 3, "{status}");
    assert!(run(&dir, "sweep status s.toml").contains("3 tasks: 3 COMPLETED"));
    assert_eq!(run(&dir, "sweep results s.toml --csv -"), local_csv("slurm-local", &description));
    let refused = command(&dir, "sweep run s.toml --on slurm --partition nosuch --retry").output().unwrap();
    assert_eq!(refused.status.code(), Some(0), "nothing is missing, nothing is submitted");
    let other = scratch("slurm-refused", &description);
    let refused = command(&other, "sweep run s.toml --on slurm --partition nosuch").output().unwrap();
    assert!(text(&refused.stderr).contains("Slurm refuses the job: "), "{}", text(&refused.stderr));
}

#[test]
fn cancelled_tasks_and_a_killed_node_lose_nothing() {
    let Some(_node) = node() else { return };
    let description = sweep(30, 600);
    let dir = scratch("slurm-killed", &description);
    let child = started(&dir, "sweep run s.toml --on slurm --chunk 5 --jobs 1");
    wait_for("tasks finish runs", || ended(&dir) > 6);
    assert!(Command::new("scancel").args(["-n", "warploom"]).status().unwrap().success());
    let before = ended(&dir);
    wait_for("the cancelled are submitted again", || ended(&dir) > before + 4);
    kill_node();
    let output = child.wait_with_output().unwrap();
    good(output);
    assert_eq!(ended(&dir), 60);
    assert_eq!(run(&dir, "sweep results s.toml --csv -"), local_csv("slurm-undisturbed", &description));
    let left = std::fs::read_dir(dir.join("s.sweep/runs")).unwrap().count();
    assert_eq!(left, 60, "no claims, no heartbeats");
}

/// Kills the node's daemon and everything that it started, as a power cut would, and switches it on again.
fn kill_node() {
    let config = text(&Command::new("scontrol").args(["show", "config"]).output().unwrap().stdout);
    let pid_file = config.lines().find(|line| line.starts_with("SlurmdPidFile")).unwrap();
    let pid_file = pid_file.split('=').nth(1).unwrap().trim();
    let daemon = std::fs::read_to_string(pid_file).unwrap().trim().to_string();
    let mut victims = vec![daemon];
    let spool = config.lines().find(|line| line.starts_with("SlurmdSpoolDir")).unwrap();
    let spool = spool.split('=').nth(1).unwrap().trim().to_string();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // The steps of this node, and the tasks below them.
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_task = String::from_utf8_lossy(&environment).contains("SLURM_ARRAY_TASK_ID=");
        let is_step = line.starts_with("slurmstepd") && line.contains('[');
        let pid = entry.file_name().into_string().unwrap();
        if (is_task || is_step || line.contains(&spool)) && pid != std::process::id().to_string() {
            victims.push(pid);
        }
    }
    Command::new("kill").arg("-9").args(&victims).status().unwrap();
    // What the controller finds out by itself when the node has not answered for long enough.
    let sinfo = |format: &str| {
        let output = Command::new("sinfo").args(["--noheader", format]).output().unwrap();
        text(&output.stdout).trim().to_string()
    };
    let update = [format!("NodeName={}", sinfo("--format=%n")), "State=DOWN".into(), "Reason=killed".into()];
    assert!(Command::new("scontrol").arg("update").args(update).status().unwrap().success());
    assert!(Command::new("slurmd").status().unwrap().success());
    wait_for("the node is back", || !sinfo("--format=%T").starts_with("down"));
}

#[test]
fn experiments_run_there_too() {
    let Some(_node) = node() else { return };
    let dir = scratch("slurm-repro", "");
    let report: Value = serde_json::from_str(&run(&dir, "repro fidelity --quick --on slurm --json")).unwrap();
    assert_eq!((&report["runs"], &report["out"]), (&3.into(), &0.into()));
    let again: Value = serde_json::from_str(&run(&dir, "repro fidelity --quick --json")).unwrap();
    assert_eq!(again["kept_runs"], 3);
    assert_eq!(again["experiments"][0]["rows"], report["experiments"][0]["rows"]);
}
