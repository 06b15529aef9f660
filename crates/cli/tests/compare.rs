//! `warploom compare` as users run it: the table, the JSON object, exit codes, what is refused.

#[path = "support/schema.rs"]
mod schema;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn warploom(line: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let output = command.current_dir(root).args(&arguments).env_remove("RUST_BACKTRACE").output().unwrap();
    schema::conforms(&arguments, &output.stdout);
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn ended(line: &str, code: i32) -> Output {
    let output = warploom(line);
    assert_eq!(output.status.code(), Some(code), "{line}\n{}", stderr(&output));
    output
}

#[track_caller]
fn object(output: &Output) -> Value {
    let text = stdout(output);
    assert_eq!(text.matches('\n').count(), 1, "one object on one line: {text}");
    serde_json::from_str(&text).unwrap()
}

/// Warps that contend for a lock.
const LOCK: &str = "compare kernels/spinlock.ptx --chip gtx480 \
    --entry spinlock_inc --grid 1 --block 192 --arg buf:u32:1=zero \
    --arg buf:u32:1=zero --arg u32:1";

/// A lock that deadlocks on every SIMT stack.
const NAIVE: &str = "compare kernels/spinlock.ptx --chip gtx480 \
    --entry naivelock --block 32 --arg buf:u32:1=zero --arg buf:u32:1=zero";

#[test]
fn every_policy_in_one_table() {
    let output = ended(LOCK, 0);
    assert_eq!(stderr(&output), "");
    insta::assert_snapshot!(stdout(&output));
    // The result does not depend on how many runs are parallel.
    assert_eq!(stdout(&ended(&format!("{LOCK} --threads 1"), 0)), stdout(&output));
}

#[test]
fn rows_are_what_single_runs_report() {
    let all = object(&ended(&format!("{LOCK} --json --policy gto,lrr --bows-limit 700"), 0));
    assert_eq!((&all["chip"], &all["error"]), (&json!("gtx480"), &Value::Null));
    let rows = all["rows"].as_array().unwrap();
    let order: Vec<_> = rows.iter().map(|row| (row["sched"].clone(), row["bows"].clone())).collect();
    let wanted = [("gto", false), ("gto", true), ("lrr", false), ("lrr", true)];
    assert_eq!(order, wanted.map(|(sched, bows)| (json!(sched), json!(bows))));
    let best = rows.iter().map(|row| row["cycles"].as_f64().unwrap()).fold(f64::MAX, f64::min);
    for (row, (sched, bows)) in rows.iter().zip(wanted) {
        let bows = if bows { " --bows-limit 700" } else { "" };
        let line = format!("{} --json --sched {sched}{bows}", LOCK.replacen("compare", "run", 1));
        let mut single = object(&ended(&line, 0));
        let single = single.as_object_mut().unwrap();
        // Skip what depends on the host and what only `run` has.
        single.retain(|key, _| {
            !["wall_s", "warp_insts_per_s", "dumps", "schema_version"].contains(&key.as_str())
        });
        for (key, value) in single {
            assert_eq!(row[key.as_str()], *value, "{key} of {line}");
        }
        assert_eq!((&row["result"], &row["check_message"]), (&json!("ok"), &Value::Null));
        let cycles = row["cycles"].as_f64().unwrap();
        assert_eq!(row["relative_to_first"], cycles / rows[0]["cycles"].as_f64().unwrap());
        assert_eq!(row["relative_to_best"], cycles / best);
        assert!(row["energy_nj"]["total"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn workloads_are_compared_and_checked() {
    let line = "compare hashtable keys=500 buckets=8 ctas=4 threads=64 --policy gto --json";
    let all = object(&ended(line, 0));
    assert_eq!((&all["workload"], &all["params"]["keys"]), (&json!("hashtable"), &json!(500)));
    for row in all["rows"].as_array().unwrap() {
        assert_eq!(row["result"], "ok");
        assert!(row["check_message"].as_str().unwrap().starts_with("500 keys are in the chains"), "{row}");
        assert!(row["locks"]["failed_inter"].as_u64().unwrap() > 0);
    }
    // The rows without BOWS are the same on a chip whose file switches BOWS on.
    let on = object(&ended(&format!("{line} --set issue.bows.enabled=true"), 0));
    for (row, same) in on["rows"].as_array().unwrap().iter().zip(all["rows"].as_array().unwrap()) {
        assert_eq!((&row["bows"], &row["cycles"]), (&same["bows"], &same["cycles"]));
    }
}

#[test]
fn kernels_that_hang_are_rows_that_say_so() {
    let output = ended(&format!("{NAIVE} --policy lrr,gto"), 4);
    insta::assert_snapshot!(format!("{}\n{}", stdout(&output), stderr(&output)));
    let all = object(&ended(&format!("{NAIVE} --policy lrr --json"), 4));
    let row = &all["rows"][0];
    assert_eq!((&row["result"], &row["error"]["kind"]), (&json!("hang"), &json!("hang")));
    assert!(row["relative_to_first"].is_null() && row["cycles"].as_u64().unwrap() > 0);
    // Independently scheduled threads do not deadlock.
    ended(&NAIVE.replace("gtx480", "h200"), 0);
}

#[test]
fn runs_that_end_count_beside_those_that_do_not() {
    let cycles = |line: &str| -> Vec<u64> {
        let rows = object(&ended(line, 0))["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["cycles"].as_u64().unwrap()).collect()
    };
    let all = cycles(&format!("{LOCK} --json"));
    let (fewest, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
    assert!(fewest < most, "{all:?}");
    let output = ended(&format!("{LOCK} --max-cycles {}", (fewest + most) / 2), 0);
    assert!(
        stdout(&output).contains("ok\n") && stdout(&output).contains("hang after "),
        "{}",
        stdout(&output)
    );
    assert!(stderr(&output).contains("spinlock_inc"), "{}", stderr(&output));
}

#[test]
fn faults() {
    let line = "compare kernels/vecadd.ptx --chip gtx480 --grid 2 --block 32 --arg buf:f32:64=iota --arg null \
                --arg buf:f32:64=zero --arg u32:64 --policy gto";
    let output = ended(line, 3);
    assert!(stdout(&output).contains("fault after "), "{}", stdout(&output));
    assert!(
        stderr(&output).starts_with("gto, gto+bows: error: kernel `vecadd` faults"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_cannot_be_compared() {
    let mut transcript = String::new();
    for line in [
        "compare",
        "compare hashtables",
        "compare hashtable size=3",
        "compare hashtable --entry k --arg u32:1",
        "compare hashtable --grid 2",
        "compare kernels/nothing.ptx --chip gtx480",
        "compare kernels/vecadd.ptx --chip gtx480",
        "compare kernels/vecadd.ptx --chip gtx480 size=3",
        "compare kernels/spinlock.ptx --chip gtx480",
        "compare hashtable --policy lrr,fifo",
        "compare hashtable --sched lrr",
        "compare hashtable --chip gtx9999",
        "compare kernels/printf.ptx --chip gtx480 --entry hello --block 2000 --arg u32:2",
    ] {
        let output = ended(line, 2);
        assert_eq!(stdout(&output), "", "{line}");
        transcript += &format!("$ warploom {line}\n{}\n", stderr(&output));
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn a_livelock_is_ended_without_a_limit() {
    let output = ended("compare hashtable keys=10_000 buckets=64 --policy cawa --json", 0);
    let rows = object(&output)["rows"].clone();
    let cycles = |row: usize| rows[row]["cycles"].as_u64().unwrap();
    assert_eq!((&rows[0]["result"], &rows[1]["result"]), (&json!("hang"), &json!("ok")));
    assert!((20 * cycles(1)..21 * cycles(1)).contains(&cycles(0)), "{} and {}", cycles(0), cycles(1));
    assert!(stderr(&output).contains("looks like a livelock"), "{}", stderr(&output));
}
