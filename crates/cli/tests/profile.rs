//! `--profile` as users see it: sections, sources, files, refusals.

#[path = "support/schema.rs"]
mod schema;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn warploom_in(dir: &Path, line: &str) -> Output {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    let output = command.current_dir(dir).args(&arguments).env_remove("RUST_BACKTRACE").output().unwrap();
    schema::conforms(&arguments, &output.stdout);
    output
}

/// What a command prints that must succeed.
#[track_caller]
fn good_in(dir: &Path, line: &str) -> String {
    let output = warploom_in(dir, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A fresh directory for one test's files.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

const SPINLOCK: &str = "run kernels/spinlock.ptx --chip gtx480 \
    --entry spinlock_inc --grid 4 --block 64 --arg buf:u32:1=zero \
                        --arg buf:u32:1=zero --arg u32:2 --set sm.count=2";

#[test]
fn a_lock_kernel_is_explained() {
    let dir = scratch("profile_graph");
    let graph = dir.join("waits.dot");
    let text = good_in(&root(), &format!("{SPINLOCK} --profile=3 --profile-graph {}", graph.display()));
    for part in [
        "\nwarps      spinning ",
        "\nverdict    ",
        "\nhottest lines, by their part of ",
        "failed polls  line\n",
        "\n  threads/warp   active threads per warp, on average\n",
        "\n  hand-off            from a release to the next acquisition, if a thread was waiting\n",
        "  kernels/spinlock.ptx:",
        "\nlocks and flags: 1 word; times in cycles, on average\n",
        "\n  lock+0 ",
        "taken at kernels/spinlock.ptx:45; released at kernels/spinlock.ptx:55; lane ",
        "\nwho waits for whom\n  kernels/spinlock.ptx:45 waits\n    for kernels/spinlock.ptx:55 to write lock: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let lines = text.lines().filter(|line| line.contains("  kernels/spinlock.ptx:") && line.contains('%'));
    assert_eq!(lines.count(), 3, "{text}");
    let graph = std::fs::read_to_string(graph).unwrap();
    assert!(graph.contains("\"kernels/spinlock.ptx:45\" -> \"kernels/spinlock.ptx:55\" ["), "{graph}");
}

#[test]
fn the_object_has_all_of_it() {
    let text = good_in(&root(), &format!("{SPINLOCK} --profile --json"));
    let object: Value = serde_json::from_str(&text).unwrap();
    let profile = &object["profile"];
    let sum = |rows: &str| {
        let rows = profile[rows].as_array().unwrap().iter();
        rows.map(|row| row["warp_cycles"].as_u64().unwrap()).sum::<u64>()
    };
    let all = object["warp_cycles"].as_u64().unwrap();
    assert_eq!((sum("lines"), sum("instructions")), (all, all));
    let time = profile["time"].as_object().unwrap();
    assert_eq!(time.values().map(|cycles| cycles.as_u64().unwrap()).sum::<u64>(), all);
    assert_eq!(profile["words"][0]["acquired"], object["locks"]["acquired"]);
    let plain: Value = serde_json::from_str(&good_in(&root(), &format!("{SPINLOCK} --json"))).unwrap();
    assert_eq!((plain.get("profile"), &plain["cycles"]), (None, &object["cycles"]));
}

#[test]
fn workloads_add_up_their_launches() {
    let text = good_in(&root(), "work hashtable keys=500 buckets=2 --profile");
    assert!(text.contains("\nlocks and flags: 2 words") && text.contains("\nverdict    "), "{text}");
    let text = good_in(&root(), "work vecadd size=4096 --profile");
    assert!(
        text.contains("\nhottest lines") && !text.contains("verdict") && !text.contains("locks and"),
        "{text}"
    );
}

#[test]
fn lines_are_shown_with_their_source() {
    let dir = scratch("profile_source");
    let corpus = root().join("kernels/corpus/nvcc13.0-sm_90-lineinfo/reduce.ptx");
    std::fs::copy(corpus, dir.join("reduce.ptx")).unwrap();
    let line = "run reduce.ptx --grid 4 --block 256 --arg buf:u32:1024=iota --arg buf:u32:1=zero --arg u32:1024 \
                --chip h200 --profile=50";
    let without = good_in(&dir, line);
    assert!(without.contains("`reduce.cu` was not found; its lines are shown as PTX\n"), "{without}");
    std::fs::copy(root().join("kernels/reduce.cu"), dir.join("reduce.cu")).unwrap();
    let with = good_in(&dir, line);
    assert!(!with.contains("was not found"), "{with}");
    let source = std::fs::read_to_string(dir.join("reduce.cu")).unwrap();
    let at = 1 + source.lines().position(|line| line.contains("atomicAdd")).unwrap();
    let text = source.lines().nth(at - 1).unwrap().trim();
    assert!(with.contains(&format!("  reduce.cu:{at}: {text}\n")), "{with}");
    assert!(with.contains("inlined: cuda/include/device_atomic_functions.hpp:"), "{with}");
    assert!(with.contains(&format!(" < reduce.cu:{at}\n")), "{with}");
}

#[test]
fn a_profile_needs_a_clock() {
    let refused = warploom_in(&root(), &format!("{SPINLOCK} --profile --model functional"));
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("--profile needs the timed model"), "{message}");
    let refused = warploom_in(&root(), "work fibonacci n=8 --profile");
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("runs of firmware cannot be profiled"), "{message}");
}

#[test]
fn kernels_have_plain_names() {
    let dir = scratch("plain_names");
    let kernel = |name: &str| format!(".visible .entry {name}()\n{{\n\tret;\n}}\n");
    let names = ["_Z4histPj", "_Z3hitILi5EEvPj", "_Z3hitILi7EEvPj"];
    let text: String = names.iter().map(|name| kernel(name)).collect();
    std::fs::write(dir.join("k.ptx"), format!(".version 6.3\n.target sm_70\n.address_size 64\n{text}"))
        .unwrap();
    let text = good_in(&dir, "run k.ptx --entry hist");
    assert!(text.starts_with("kernel     hist(unsigned int*) on "), "{text}");
    let refused = warploom_in(&dir, "run k.ptx --entry hit");
    let message = String::from_utf8(refused.stderr).unwrap();
    let both = "hit<5>(unsigned int*) (_Z3hitILi5EEvPj), void hit<7>(unsigned int*) (_Z3hitILi7EEvPj)";
    assert!(message.contains(&format!("`hit` names 2 kernels: void {both}")), "{message}");
}

/// Cycles per acquisition, and what the verdict says of contended locks.
fn contended(line: &str) -> (u64, String) {
    let object: Value = serde_json::from_str(&good_in(&root(), &format!("{line} --profile --json"))).unwrap();
    let findings = object["profile"]["verdict"].as_array().unwrap();
    let text = findings.iter().find(|finding| finding["rule"] == "contended_locks");
    let text = text.map_or(String::new(), |finding| finding["text"].as_str().unwrap().to_string());
    (object["cycles"].as_u64().unwrap() / object["locks"]["acquired"].as_u64().unwrap(), text)
}

/// The verdict's advice is tried: fewer pollers gain where it says so, and nothing where it says that.
#[test]
fn fewer_pollers_help_where_the_verdict_says_so() {
    let (crowd, text) = contended(SPINLOCK);
    assert!(text.contains(" alone: let fewer threads poll"), "{text}");
    let few = SPINLOCK.replace("--grid 4 --block 64", "--grid 1 --block 32").replace("u32:2 ", "u32:16 ");
    let (alone, _) = contended(&few);
    assert!(alone * 10 < crowd * 7, "{alone} and {crowd} cycles for each acquisition");

    let transfers = "run examples/tutorial/transfers.ptx --entry one_lock --arg balance=buf:u32:64=value:100 \
                     --arg locks=buf:u32:64=zero --arg accounts=u32:64";
    let (crowd, text) = contended(&format!("{transfers} --grid 4 --block 64"));
    assert!(text.contains("so fewer pollers gain little: hold it shorter"), "{text}");
    let (alone, _) = contended(&format!("{transfers} --grid 1 --block 16"));
    assert!(alone * 100 > crowd * 95, "{alone} and {crowd} cycles for each acquisition");
}

/// Cycles of a run, and whether its verdict names BOWS, if it has one on locks.
fn advised(line: &str) -> (f64, Option<bool>) {
    let object: Value = serde_json::from_str(&good_in(&root(), &format!("{line} --profile --json"))).unwrap();
    let findings = object["profile"]["verdict"].as_array().unwrap();
    let locks = findings.iter().find(|finding| finding["rule"] == "contended_locks");
    let named = locks.map(|finding| finding["text"].as_str().unwrap().contains("BOWS"));
    (object["cycles"].as_f64().unwrap(), named)
}

/// BOWS is tried on all lock workloads: it gains where the verdict names it, and little or nothing where it does not.
#[test]
fn bows_gains_where_the_verdict_names_it() {
    let transfers = "run examples/tutorial/transfers.ptx --entry one_lock --grid 4 --block 64 \
                     --arg balance=buf:u32:64=value:100 --arg locks=buf:u32:64=zero --arg accounts=u32:64";
    let two_warps = SPINLOCK.replace("--grid 4 --block 64", "--grid 2 --block 32");
    let mut lines = vec![transfers.to_string(), SPINLOCK.to_string(), two_warps];
    lines.push(SPINLOCK.replace("gtx480", "h200"));
    for chip in ["gtx480", "h200"] {
        for workload in [
            "hashtable keys=500 buckets=2",
            "hashtable keys=2000 buckets=16",
            "hashtable keys=5000 buckets=32 --sched lrr",
            "hashtable keys=5000 buckets=256",
            "hashtable keys=5000 buckets=64 entries=records",
            "atm transfers=3000 accounts=300",
            "cloth",
            "treebuild bodies=1000",
        ] {
            lines.push(format!("work {workload} --chip {chip}"));
        }
    }
    let mut told = [0, 0];
    for line in lines {
        let (plain, named) = advised(&line);
        let Some(named) = named else { continue };
        let backed_off: Value =
            serde_json::from_str(&good_in(&root(), &format!("{line} --bows --json"))).unwrap();
        let gain = plain / backed_off["cycles"].as_f64().unwrap();
        let right = if named { gain > 1.0 } else { gain < 1.1 };
        assert!(right, "{line}: {gain:.2} times as fast with BOWS; the verdict names it: {named}");
        told[usize::from(named)] += 1;
    }
    assert!(told[0] >= 4 && told[1] >= 4, "{told:?}");
}
