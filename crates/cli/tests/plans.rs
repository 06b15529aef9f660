//! Plans of several launches as users run them: results, checks, mistakes, and the same file in a sweep.

#[path = "support/schema.rs"]
mod schema;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use support::scratch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn warploom_in(dir: &Path, line: &str) -> Output {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let output = command.current_dir(dir).args(&arguments).output().unwrap();
    schema::conforms(&arguments, &output.stdout);
    output
}

#[track_caller]
fn said(dir: &Path, exit: i32, line: &str) -> (String, String) {
    let output = warploom_in(dir, line);
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(exit), "{line}\n{out}{err}");
    (out, err)
}

/// The plan of the examples with a change, in a folder of its own.
fn changed(name: &str, from: &str, to: &str) -> PathBuf {
    let dir = scratch(name);
    let text = std::fs::read_to_string(root().join("examples/plans/bfs.toml")).unwrap();
    let kernels = root().join("kernels").display().to_string();
    assert!(text.contains(from), "{from}");
    std::fs::write(dir.join("bfs.toml"), text.replace(from, to).replace("../../kernels", &kernels)).unwrap();
    dir
}

const UNSEEN: u64 = 0xffff_ffff;

#[test]
fn a_breadth_first_search_loops_until_nothing_changes() {
    let (out, _) = said(&root(), 0, "run examples/plans/bfs.toml --dump level --dump changed --json");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["dumps"][0]["name"], "level");
    assert_eq!(report["dumps"][0]["values"], serde_json::json!([0, 1, 1, 2, 2, 3, 3, UNSEEN]));
    assert_eq!((&report["launches"], &report["check"]), (&4.into(), &true.into()));
    assert_eq!((&report["chip"], &report["kernel"]), (&"h200".into(), &"bfs".into()));
    let (out, _) = said(&root(), 0, "run examples/plans/bfs.toml --chip gtx480 --model functional");
    assert!(out.contains("plan       examples/plans/bfs.toml on gtx480, functional model"), "{out}");
    assert!(out.contains("check      ok: level as expected"), "{out}");
    assert!(out.contains("launches   4 of bfs"), "{out}");
}

#[test]
fn two_kernels_one_after_the_other() {
    let (out, _) = said(&root(), 0, "run examples/plans/shares.toml --dump data --dump sum");
    assert!(out.starts_with("10 20 30 40\n100\n"), "{out}");
    assert!(out.contains("on h200 (chosen for sm_70), timed model"), "{out}");
    let (out, _) = said(&root(), 0, "compare examples/plans/shares.toml --chip gtx480 --policy lrr --json");
    let compared: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(compared["rows"][0]["result"], "ok");
    assert_eq!(compared["file"], "examples/plans/shares.toml");
}

#[test]
fn a_wrong_result_is_told() {
    let dir = changed("plan-wrong", "list:0,1,1,2,2,3,3,0xffffffff", "list:0,1,1,2,2,3,4,9");
    let (out, err) = said(&dir, 1, "run bfs.toml");
    let wrong = "level[6] is 3, not 4; 2 of 8 differ";
    assert!(out.contains(&format!("check      WRONG: {wrong}")), "{out}");
    assert!(err.contains(&format!("error: the result of `bfs.toml` is wrong: {wrong}")), "{err}");
}

#[test]
fn a_loop_ends_at_its_limit() {
    let dir = changed("plan-endless", "at_most = 20", "at_most = 2");
    let (out, err) = said(&dir, 4, "run bfs.toml --dump level:3");
    assert_eq!(out, "0 1 1\n", "how far it came");
    assert!(err.contains("changed[0] is still 1 after 2 iterations of the loop"), "{err}");
    assert!(err.contains("help: raise at_most"), "{err}");
}

#[test]
fn mistakes_are_told_with_place_and_mend() {
    for (name, from, to, parts) in [
        (
            "buffer",
            "until_zero = \"changed\"",
            "until_zero = \"done\"",
            ["line 14: there is no buffer `done`", "`changed`"],
        ),
        (
            "cycle",
            "changed = \"u32:1=zero\"",
            "changed = \"u32:1=copy:changed\"",
            ["copy each other", "content of its own"],
        ),
        ("type", "u32:1=zero", "w32:1=zero", ["line 12: buffer `changed`: no type `w32`", "u32"]),
        ("kernel", "entry = \"bfs\"", "entry = \"dfs\"", ["dfs", "bfs"]),
        (
            "parameter",
            "\"n=u32:{n}\"",
            "\"nodes=u32:{n}\"",
            ["has no parameter `nodes`", "row, col, level, depth"],
        ),
        ("file", "bfs.ptx", "none.ptx", ["cannot read", "none.ptx"]),
    ] {
        let dir = changed(&format!("plan-{name}"), from, to);
        let (_, err) = said(&dir, 2, "run bfs.toml");
        for part in parts {
            assert!(err.contains(part), "{part} in\n{err}");
        }
    }
    for (line, part) in [
        ("run examples/plans/bfs.toml --grid 4", "a plan has its own launches"),
        ("run examples/plans/bfs.toml --dump levels", "the plan has no such buffer"),
        ("run examples/plans/bfs.toml --dump level:9", "that buffer has 8 elements"),
        ("run examples/plans/bfs.toml nodes=9", "parameter `nodes` is used nowhere"),
        ("run examples/plans/bfs.toml nodes", "write NAME=VALUE"),
        ("run examples/plans/bfs.toml --arch sm_90", "write arch ="),
        ("run examples/plans/none.toml", "cannot read the plan"),
        ("run kernels/bfs.ptx n=8", "a kernel's file has no parameters"),
    ] {
        let (_, err) = said(&root(), 2, line);
        assert!(err.contains(part), "{line}\n{err}");
    }
}

#[test]
fn a_sweep_runs_the_same_file() {
    let dir = scratch("plan-sweep");
    let plan = root().join("examples/plans/bfs.toml").display().to_string();
    std::fs::write(
        dir.join("s.toml"),
        format!("plan = '{plan}'\nsched = ['lrr', 'gto']\n[params]\nn = [7, 8]\n"),
    )
    .unwrap();
    let (out, _) = said(&dir, 0, "sweep run s.toml --json");
    let ended: Value = serde_json::from_str(&out).unwrap();
    // With 7 nodes the last one is not looked at, which changes nothing.
    assert_eq!(ended["status"], serde_json::json!({ "ok": 4 }), "{ended}");
    let (out, _) = said(&dir, 0, "sweep results s.toml --csv -");
    assert!(out.lines().all(|line| line.contains("launches") || line.contains(",4,")), "{out}");
    std::fs::write(dir.join("wrong.toml"), format!("plan = '{plan}'\n[params]\nm = 1\n")).unwrap();
    let (_, err) = said(&dir, 2, "sweep run wrong.toml");
    assert!(err.contains("parameter `m` is used nowhere"), "{err}");
}
