//! The binary as users run it: exit codes, stdout, stderr, messages.

#[path = "support/schema.rs"]
mod schema;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json as object};

use support::scratch;

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

fn warploom(line: &str) -> Output {
    warploom_in(&root(), line)
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[track_caller]
fn good(line: &str) -> String {
    let output = warploom(line);
    assert_eq!(code(&output), 0, "{line}\n{}", stderr(&output));
    assert_eq!(stderr(&output), "", "{line}");
    stdout(&output)
}

#[track_caller]
fn json(text: &str) -> Value {
    assert_eq!(text.matches('\n').count(), 1, "one object on one line: {text}");
    serde_json::from_str(text).unwrap()
}

/// Runs commands that must fail with this exit code and print nothing on stdout. Returns their messages.
#[track_caller]
fn refused_in(dir: &Path, exit: i32, lines: &[&str]) -> String {
    let mut transcript = String::new();
    for line in lines {
        let output = warploom_in(dir, line);
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code(&output), exit, "{line}\n{}", stderr(&output));
        assert_eq!(stdout(&output), "", "{line}");
        transcript += &format!("$ warploom {line}\n{}\n", stderr(&output));
    }
    transcript
}

#[track_caller]
fn refused(exit: i32, lines: &[&str]) -> String {
    refused_in(&root(), exit, lines)
}

const HEADER: &str = ".version 6.3\n.target sm_70\n.address_size 64\n";

/// A kernel without parameters.
fn ptx(body: &str) -> String {
    format!("{HEADER}.visible .entry k()\n{{\n{body}\n\tret;\n}}\n")
}

const VECADD: &str = "run kernels/vecadd.ptx --chip gtx480 --grid 4096 --block 256 --arg buf:f32:1048576=iota \
    --arg buf:f32:1048576=iota --arg buf:f32:1048576=zero --arg u32:1048576";

const SMALL: &str = "run kernels/vecadd.ptx --chip gtx480 \
    --grid 2 --block 32 --arg buf:f32:64=iota --arg buf:f32:64=value:0.5 \
    --arg buf:f32:64=zero --arg u32:64";

// Successful runs.

#[test]
fn adds_a_million_numbers() {
    let out = good(&format!("{VECADD} --dump 2:8 --model functional"));
    assert_eq!(out.lines().next(), Some("0 2 4 6 8 10 12 14"));
    for part in [
        "vecadd on gtx480, functional model",
        "grid 4096 x block 256: 1,048,576 threads",
        "M warp instructions/s",
    ] {
        assert!(out.contains(part), "{part:?} is missing in\n{out}");
    }
}

#[test]
fn prints_one_json_object() {
    let report = json(&good(&format!("{SMALL} --dump 2:3 --dump 0:1 --json")));
    for key in "kernel chip sched bows model cycles warp_insts thread_insts ipc simd_efficiency wall_s \
                warp_insts_per_s stalls locks sib l1 l2 dram energy_nj grid block registers shared_bytes occupancy \
                output dumps error"
        .split_whitespace()
    {
        assert!(report.get(key).is_some(), "`{key}` is missing in {report}");
    }
    assert_eq!(report["kernel"], "vecadd");
    assert!(report["cycles"].as_u64() > report["warp_insts"].as_u64());
    assert_eq!((&report["model"], &report["sched"]), (&"timing".into(), &"gto".into()));
    assert!(report["thread_insts"].as_u64() > report["warp_insts"].as_u64());
    assert_eq!(report["dumps"][0]["values"], serde_json::json!([0.5, 1.5, 2.5]));
    assert_eq!(report["dumps"][1]["name"], "a");
    let spent: u64 = report["stalls"].as_object().unwrap().values().filter_map(|v| v.as_u64()).sum();
    assert_eq!(report["warp_cycles"], spent);
    assert!(report["error"].is_null() && report["ipc"].as_f64() > Some(0.0));
    let functional = json(&good(&format!("{SMALL} --model functional --json")));
    assert_eq!(functional["cycles"], functional["warp_insts"]);
    assert!(functional["ipc"].is_null() && functional["sched"].is_null() && functional["stalls"].is_null());
}

#[test]
fn schedulers_and_threads() {
    let cycles = |options: &str| {
        let mut report = json(&good(&format!("work hashtable keys=500 buckets=16 {options} --json")));
        for key in ["wall_s", "warp_insts_per_s"] {
            report[key].take();
        }
        report
    };
    let gto = cycles("--sched gto --threads 1");
    assert_eq!(gto, cycles("--threads 3"), "threads change nothing, and gto is the chip's policy");
    for policy in ["lrr", "cawa"] {
        let other = cycles(&format!("--sched {policy}"));
        assert_eq!(other["sched"], policy);
        assert_ne!(other["cycles"], gto["cycles"]);
    }
    let output = warploom(&format!("{SMALL} --sched fifo"));
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("there are lrr, gto, cawa"), "{}", stderr(&output));
    let output = warploom(&format!("{SMALL} --sched lrr --model functional"));
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--sched needs the timed model"), "{}", stderr(&output));
}

#[test]
fn timelines_and_samples() {
    let dir = scratch("observations");
    let kernel = root().join("kernels/spinlock.ptx");
    let line = format!(
        "run {} --chip gtx480 \
            --entry spinlock_inc --grid 2 --block 32 --arg buf:u32:1=zero --arg buf:u32:1=zero --arg u32:1 \
         --trace lock.pftrace --trace-sm 0,1 --trace-cycles 0..100_000 --sample 1000:lock.csv",
        kernel.display()
    );
    let output = warploom_in(&dir, &line);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).starts_with("timeline in lock.pftrace: "), "{}", stderr(&output));
    let trace = std::fs::read(dir.join("lock.pftrace")).unwrap();
    let text = String::from_utf8_lossy(&trace);
    assert!(text.contains("CTA (1,0,0) warp 0") && text.contains("spins on"));
    let csv = std::fs::read_to_string(dir.join("lock.csv")).unwrap();
    assert!(csv.starts_with("cycle,cycles,warp_instructions,ipc,") && csv.lines().count() > 3, "{csv}");
    for (options, message) in [
        ("--trace-sm 1", "--trace"),
        ("--sample 0", "`0` is no number of cycles"),
        ("--trace t --trace-cycles 5..2", "it ends before it begins"),
        ("--trace t --trace-sm 999", "999"),
    ] {
        let args = "--arg buf:u32:1=zero --arg buf:u32:1=zero";
        let line = format!("run {} --entry naivelock {args} {options}", kernel.display());
        let output = warploom_in(&dir, &line);
        assert_eq!(code(&output), 2, "{options}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn fills_from_files_and_saves_to_them() {
    let dir = scratch("files");
    let values: Vec<u8> = (0..64).flat_map(|i| (i as f32 * 3.0).to_le_bytes()).collect();
    std::fs::write(dir.join("in.bin"), &values).unwrap();
    let kernel = root().join("kernels/vecadd.ptx");
    let output = warploom_in(
        &dir,
        &format!(
            "run {} --grid 2 --block 32 --arg buf:f32:64=@in.bin --arg buf:f32:64=zero --arg buf:f32:64=zero \
             --arg u32:64 --save 2=out.bin",
            kernel.display()
        ),
    );
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(std::fs::read(dir.join("out.bin")).unwrap(), values);
}

#[cfg(unix)]
/// Output that cannot be written is the one thing that is said.
#[test]
fn a_graph_that_cannot_be_written_is_one_error() {
    let text = format!("{SMALL} --profile --profile-graph no/such/folder/graph.dot --json");
    let output = warploom(&text);
    assert_eq!(output.status.code(), Some(2));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert!(object["error"]["message"].is_string(), "{object}");
}

#[test]
fn what_only_real_gpus_do_is_refused() {
    let message = refused(2, &[&format!("{SMALL} --repeat 3"), &format!("{SMALL} --time-limit 5")]);
    assert!(message.contains("--device cuda") && message.contains("--max-cycles"), "{message}");
}

#[test]
fn files_without_an_end_are_refused_by_size() {
    let small = SMALL.replace("buf:f32:64=iota", "buf:f32:64=@/dev/zero");
    let message = refused(2, &[&small]);
    assert!(
        message.contains("`/dev/zero` has more than 256 bytes, 64 elements of f32 are 256 bytes"),
        "{message}"
    );
    let message = refused(2, &["chips /dev/zero"]);
    assert!(message.contains("the file has more than 1048576 bytes"), "{message}");
}

#[test]
fn a_save_that_cannot_be_written_is_refused_before_the_launch() {
    let message = refused(2, &[&format!("{SMALL} --save 2=no/such/folder/out.bin")]);
    assert!(message.contains("cannot write `no/such/folder/out.bin`"), "{message}");
}

#[test]
fn buffers_of_a_launch_that_hangs_are_shown_and_saved() {
    let dir = scratch("hanging");
    let kernel = root().join("kernels/hangs/simd_deadlock.ptx");
    let line = format!(
        "run {} --chip gtx480 --block 32 --arg buf:u32:1=zero --arg buf:u32:1=zero --dump 0 --save 0=lock.bin",
        kernel.display()
    );
    let output = warploom_in(&dir, &line);
    assert_eq!((code(&output), stdout(&output)), (4, "1\n".to_string()), "{}", stderr(&output));
    assert!(stderr(&output).contains("SIMD deadlock"));
    assert_eq!(std::fs::read(dir.join("lock.bin")).unwrap(), [1, 0, 0, 0]);
    let output = warploom_in(&dir, &format!("{line} --json"));
    let object = json(&stdout(&output));
    assert_eq!((&object["dumps"][0]["values"][0], &object["error"]["exit_code"]), (&1.into(), &4.into()));
    let output = warploom_in(&dir, &line.replace("lock.bin", "/dev/full"));
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("cannot write `/dev/full`"), "{}", stderr(&output));
}

#[test]
fn random_input_depends_on_the_seed_alone() {
    let dump = |fill: &str| good(&format!("{SMALL} --dump 0:4").replace("buf:f32:64=iota", fill));
    let first = |text: String| text.lines().next().unwrap().to_string();
    assert_eq!(first(dump("buf:f32:64=random:5")), first(dump("buf:f32:64=random:5")));
    assert_ne!(first(dump("buf:f32:64=random:5")), first(dump("buf:f32:64=random:6")));
}

#[test]
fn kernel_output_comes_first() {
    let out = good("run kernels/printf.ptx --chip gtx480 --entry hello --block 2 --arg u32:2");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "hello, 100% plain");
    assert!(lines[1].starts_with("thread 0 of 2: hex 0, half 0.000000, even, letter a"), "{out}");
    assert!(out.find("thread 1 of 2").unwrap() < out.find("kernel     hello").unwrap());
    let report =
        json(&good("run kernels/printf.ptx --chip gtx480 --entry hello --block 2 --arg u32:2 --json"));
    assert!(report["output"].as_str().unwrap().starts_with("hello, 100% plain\n"));
}

#[test]
fn two_dimensions_and_dynamic_shared_memory() {
    let out = good(
        "run kernels/matmul.ptx --chip gtx480 \
            --grid 1x1 --block 16,16 --arg buf:f32:256=value:1 --arg buf:f32:256=value:2 \
         --arg buf:f32:256=zero --arg u32:16 --dump 2:2",
    );
    assert!(out.starts_with("32 32\n"), "{out}");
    let out = good(
        "run kernels/bitonic.ptx --chip gtx480 \
            --block 4 --shared 32 --arg buf:u32:8=list:5,3,8,1,9,2,7,4 --arg u32:8 --dump 0",
    );
    assert!(out.starts_with("1 2 3 4 5 7 8 9\n"), "{out}");
}

#[test]
fn other_chips_and_changed_ones() {
    for chip in ["gtx480", "gtx570", "gtx1080ti", "apu", "h200"] {
        let report = json(&good(&format!("{} --json", SMALL.replace("gtx480", chip))));
        assert_eq!(report["chip"], chip);
    }
    let report = json(&good(&format!("{SMALL} --set sm.max_ctas=3 --json")));
    assert_eq!(report["occupancy"]["ctas_per_sm"], 3);
}

#[test]
fn a_closed_pipe_is_no_panic() {
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .current_dir(root())
        .args(format!("{VECADD} --dump 2").split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

// Exit code 1: a check failed.

#[test]
fn uninitialised_reads_are_found() {
    let line = format!("{SMALL} --check-uninit").replace("buf:f32:64=iota", "buf:f32:64=uninit");
    let output = warploom(&line);
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).starts_with("kernel     vecadd"));
    insta::assert_snapshot!(stderr(&output));
    good(&format!("{SMALL} --check-uninit"));
    let output = warploom(&format!("{line} --json"));
    assert_eq!(code(&output), 1);
    assert_eq!(json(&stdout(&output))["uninitialised"].as_array().unwrap().len(), 1);
}

#[test]
fn races_are_found() {
    let line = "work chain warps=2 rounds=1 --check-races";
    let output = warploom(line);
    assert_eq!(code(&output), 1);
    let expected = "error: kernel `chain_atom_lock` has races: 1 pair of instructions
  race on 4 bytes of shared memory at byte 0: write by thread (0,0,0) of CTA (0,0,0)
        at kernels/chain.ptx:94: st.shared.u32 [%own], %sum
      and read by thread (32,0,0) of CTA (0,0,0)
        at kernels/chain.ptx:91: ld.shared.u32 %value, [%prev] (";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
    let object = json(&stdout(&warploom(&format!("{line} --json"))));
    let access = &object["races"][0]["accesses"][1];
    assert_eq!((&access["kind"], &access["line"]), (&"read".into(), &"kernels/chain.ptx:91".into()));
    assert_eq!((&access["cta"], &access["thread"]), (&vec![0; 3].into(), &vec![32, 0, 0].into()));
    let compared = warploom("compare chain warps=2 rounds=1 --policy gto --check-races");
    assert_eq!(code(&compared), 1);
    assert!(stderr(&compared).starts_with("gto, gto+bows: error: kernel `chain_atom_lock` has races"));
    good(&format!("{SMALL} --check-races"));
    good("work matmul size=32 --model functional --check-races");
}

#[test]
fn reports_name_parameters_and_kernels_as_the_source_does() {
    let dir = scratch("named_parameters");
    let body = "\t.reg .b64 %rd<3>;\n\t.reg .b32 %r<2>;\n\tld.param.u64 %rd1, [bins];\n\tmov.u32 %r1, %tid.x;\n\
                \tst.global.u32 [%rd1+136], %r1;\n\tld.global.u32 %r1, [%rd1+OFFSET];\n\tret;\n";
    let text = format!(
        ".version 6.3\n.target sm_30\n.address_size 64\n.visible .entry _Z4histPj(.param .u64 bins)\n{{\n{body}}}\n"
    );
    std::fs::write(dir.join("race.ptx"), text.replace("OFFSET", "136")).unwrap();
    std::fs::write(dir.join("bad.ptx"), text.replace("OFFSET", "1000")).unwrap();
    let run = |file: &str| {
        let file = dir.join(file);
        warploom(&format!("run {} --block 64 --arg bins=buf:u32:64=zero --check-races", file.display()))
    };
    let (racing, faulting) = (run("race.ptx"), run("bad.ptx"));
    assert_eq!((code(&racing), code(&faulting)), (1, 3));
    let message = stderr(&racing);
    assert!(message.starts_with("error: kernel `hist(unsigned int*)` has races"), "{message}");
    assert!(message.contains("race on 4 bytes of bins at byte 136: "), "{message}");
    let message = stderr(&faulting);
    assert!(message.contains("error: kernel `hist(unsigned int*)` faults: "), "{message}");
}

/// A kernel that calls a function of another file.
const CALLER: &str = ".extern .func (.param .b32 r) twice(.param .b32 x);
.extern .global .align 4 .u32 offset;
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .param .b32 r, x;
    mov.u32 %r1, %tid.x;
    st.param.b32 [x], %r1;
    call (r), twice, (x);
    ld.param.b32 %r2, [r];
    ld.global.u32 %r3, [offset];
    add.u32 %r2, %r2, %r3;
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}";

const CALLED: &str = ".visible .global .align 4 .u32 offset = 5;
.visible .func (.param .b32 r) twice(.param .b32 x) {
    .reg .b32 %r1;
    ld.param.b32 %r1, [x];
    add.u32 %r1, %r1, %r1;
    st.param.b32 [r], %r1;
    ret;
}";

#[test]
fn files_are_linked() {
    let dir = scratch("linked");
    for (name, text) in [("caller.ptx", CALLER), ("called.ptx", CALLED), ("bad.ptx", ".func f( { }")] {
        std::fs::write(dir.join(name), format!("{HEADER}{text}")).unwrap();
    }
    let output = warploom_in(&dir, "run caller.ptx called.ptx --block 4 --arg buf:u32:4=zero --dump 0");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    assert!(stdout(&output).starts_with("5 7 9 11\n"), "{}", stdout(&output));
    let output = warploom_in(&dir, "check --link caller.ptx called.ptx");
    assert!(
        stdout(&output).contains("caller.ptx + called.ptx: PTX 6.3, sm_70, 1 kernel"),
        "{}",
        stdout(&output)
    );
    assert_eq!(code(&warploom_in(&dir, "check caller.ptx called.ptx")), 2);
    for (files, message) in [
        ("caller.ptx", "no body for `twice`: is it in another file"),
        ("caller.ptx called.ptx called.ptx", "`offset` is declared twice"),
        ("caller.ptx bad.ptx", "bad.ptx:4:"),
        ("caller.ptx missing.ptx", "cannot read `missing.ptx`"),
        ("caller.ptx n=5", "`n=5`: a kernel's file has no parameters"),
    ] {
        let told = refused_in(&dir, 2, &[&format!("run {files} --arg buf:u32:1=zero")]);
        assert!(told.contains(message), "{told}");
    }
}

// Exit code 2: bad usage or input.

#[test]
fn files_that_do_not_exist() {
    insta::assert_snapshot!(refused(
        2,
        &["run kernels/nothing.ptx --chip gtx480", "run kernels/vecadd", "run kernels"]
    ));
}

#[test]
fn files_that_are_no_ptx() {
    let dir = scratch("no_ptx");
    std::fs::write(dir.join("empty.ptx"), "\n").unwrap();
    std::fs::write(dir.join("binary.ptx"), [0x7f, b'E', b'L', b'F', 0, 1, 2, 0xff]).unwrap();
    std::fs::write(dir.join("noise.ptx"), [b'.', 0xfe, 0xff]).unwrap();
    std::fs::write(dir.join("k.sass"), "EXIT;").unwrap();
    std::fs::write(dir.join("bad.ptx"), ptx("\t.reg .b32 %r<2>;\n\tfrobnicate.u32 %r1, 5;")).unwrap();
    std::fs::write(dir.join("no_entry.ptx"), HEADER).unwrap();
    let lines =
        ["run empty.ptx", "run binary.ptx", "run noise.ptx", "run k.sass", "run bad.ptx", "run no_entry.ptx"];
    insta::assert_snapshot!(refused_in(&dir, 2, &lines));
}

#[test]
fn kernels_that_do_not_exist() {
    let lines =
        ["run kernels/spinlock.ptx --chip gtx480", "run kernels/spinlock.ptx --chip gtx480 --entry nolock"];
    insta::assert_snapshot!(refused(2, &lines));
}

#[test]
fn arguments_that_do_not_fit() {
    let wrong = |from: &str, to: &str| SMALL.replace(from, to);
    let mut lines = vec![
        "run kernels/vecadd.ptx --chip gtx480".to_string(),
        "run kernels/vecadd.ptx --chip gtx480 --arg u32:1".to_string(),
    ];
    lines.extend(["u64:64", "f32:64", "buf:u32:1=zero", "64", "u32:-1"].map(|arg| wrong("u32:64", arg)));
    let buffers = [
        "buf:f32:64",
        "buf:f32:64=@nothing.bin",
        "buf:f32:65=@rustfmt.toml",
        "buf:f64:1000000000=random",
        "f64:1",
    ];
    lines.extend(buffers.map(|arg| wrong("buf:f32:64=zero", arg)));
    lines.extend(["--dump 3", "--dump 2:65", "--save 4=x"].map(|option| format!("{SMALL} {option}")));
    insta::assert_snapshot!(refused(2, &lines.iter().map(String::as_str).collect::<Vec<_>>()));
}

#[test]
fn launches_that_do_not_fit() {
    let lines = [
        SMALL.replace("--block 32", "--block 1025"),
        SMALL.replace("--block 32", "--block 0"),
        SMALL.replace("--grid 2", "--grid 70000"),
        format!("{SMALL} --shared 60000"),
    ];
    insta::assert_snapshot!(refused(2, &lines.each_ref().map(String::as_str)));
}

#[test]
fn chips_that_do_not_exist() {
    let options = ["--set sm.lanes=32", "--set sm.count=many", "--set sm.warp_lanes=33", "--set sm.count"];
    let mut lines = options.map(|option| format!("{SMALL} {option}")).to_vec();
    lines.push(SMALL.replace("gtx480", "gtx9000"));
    lines.push("chips gtx9000".to_string());
    insta::assert_snapshot!(refused(2, &lines.iter().map(String::as_str).collect::<Vec<_>>()));
}

#[test]
fn hangs_of_graphs_name_channels() {
    let stuck = refused(4, &["work fibonacci n=16 width=64 tasks=main"]);
    assert!(stuck.contains("1 wavefront yielded and not restarted (1 for [channel "), "{stuck}");
    assert!(stuck.contains("\nChannels with elements that are not freed:\n"), "{stuck}");
    assert!(!stuck.contains("0x"), "{stuck}");
    let stack = refused(2, &["work fibonacci n=8 on=cuda --chip gtx480"]);
    assert!(stack.contains("takes independent threads; `gtx480` has a SIMT stack"), "{stack}");
}

#[test]
fn failures_as_json() {
    let output = warploom(&format!("{} --json", SMALL.replace("gtx480", "gtx9000")));
    assert_eq!(code(&output), 2);
    let error = &json(&stdout(&output))["error"];
    assert_eq!((error["kind"].as_str(), error["exit_code"].as_u64()), (Some("bad_input"), Some(2)));
    assert!(error["message"].as_str().unwrap().contains("gtx9000"));
}

// Exit code 3: the kernel faults.

#[test]
fn out_of_bounds() {
    let line = SMALL.replace("buf:f32:64=zero", "buf:f32:63=zero");
    insta::assert_snapshot!(refused(3, &[&line]));
    let output = warploom(&format!("{line} --json"));
    assert_eq!(code(&output), 3);
    let report = json(&stdout(&output));
    assert_eq!(report["error"]["kind"], "fault");
    assert_eq!(report["kernel"], "vecadd");
    assert!(report["warp_insts"].as_u64().unwrap() > 0);
}

#[test]
fn null_pointers_traps_and_assertions() {
    let null = SMALL.replace("buf:f32:64=zero", "null");
    let assertion = "run kernels/printf.ptx --chip gtx480 \
        --entry checked --block 4 --arg buf:s32:4=list:1,2,-3,4 --arg u32:4";
    insta::assert_snapshot!(refused(3, &[&null, assertion]));
    let dir = scratch("trap");
    std::fs::write(dir.join("trap.ptx"), ptx("\ttrap;")).unwrap();
    insta::assert_snapshot!(refused_in(&dir, 3, &["run trap.ptx"]));
}

// Exit code 4: the kernel hangs or reaches a limit.

#[test]
fn endless_kernels() {
    let dir = scratch("endless");
    std::fs::write(dir.join("endless.ptx"), ptx("LOOP:\n\tbra LOOP;")).unwrap();
    insta::assert_snapshot!(refused_in(&dir, 4, &["run endless.ptx --block 64 --max-cycles 1000"]));
    let output = warploom_in(&dir, "run endless.ptx --max-cycles 1000 --json");
    assert_eq!(code(&output), 4);
    assert_eq!(json(&stdout(&output))["error"]["kind"], "hang");
}

#[test]
fn a_lock_that_hangs_on_a_simt_stack() {
    let line = "run kernels/spinlock.ptx --chip gtx480 \
        --entry naivelock --block 32 --arg buf:u32:1=zero --arg buf:u32:1=zero \
                --dump 1";
    let output = warploom(line);
    assert_eq!((code(&output), stdout(&output)), (4, "0\n".to_string()), "the buffer as the hang leaves it");
    insta::assert_snapshot!(format!("$ warploom {line}\n{}\n", stderr(&output)));
    assert!(good(&format!("{} --max-cycles 1000000", line.replace("gtx480", "h200"))).starts_with("32\n"));
}

// Exit code 130: interrupted.

#[cfg(unix)]
#[test]
fn ctrl_c_stops_with_statistics() {
    use std::process::Stdio;
    let dir = scratch("interrupt");
    std::fs::write(dir.join("endless.ptx"), ptx("LOOP:\n\tbra LOOP;")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .current_dir(&dir)
        .args([
            "run",
            "endless.ptx",
            "--set",
            "hang.watch_cycles=1000000000",
            "--set",
            "hang.suspect_cycles=0",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The handler is installed when the launch begins; an earlier signal would end the process without an exit code.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 130);
    assert!(stderr(&output).starts_with("error: interrupted after "), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("kernel     k on h200"), "{}", stdout(&output));
}

// The other commands.

#[test]
fn check_tells_what_kernels_need() {
    insta::assert_snapshot!("check_spinlock", good("check kernels/spinlock.ptx --chip gtx480"));
    insta::assert_snapshot!("check_lock_bits", good("check kernels/hangs/lock_bits.ptx --chip gtx570"));
    insta::assert_snapshot!(
        "check_several",
        good("check kernels/bitonic.ptx kernels/recursion.ptx --chip h200")
    );
}

#[test]
fn check_finds_words_that_share_a_lock_bit() {
    let dir = scratch("alias");
    let body = "\t.reg .pred %p1;\n\t.shared .align 8 .b8 s[8192];
\twl.ldslk.shared.b32 _|%p1, [s+4];\n\twl.ldslk.shared.b32 _|%p1, [s+4100];";
    std::fs::write(dir.join("k.ptx"), ptx(body)).unwrap();
    let told = stdout(&warploom_in(&dir, "check k.ptx --chip gtx570"));
    assert!(told.contains("[s+4] (k.ptx:8) and [s+4100] (k.ptx:9) share lock bit 1"), "{told}");
    let told = stdout(&warploom_in(&dir, "check k.ptx --chip gtx570 --set lock.bits=2048"));
    assert!(!told.contains("share lock bit"), "{told}");
}

#[test]
fn channels_are_no_locks() {
    for file in std::fs::read_dir(root().join("kernels/flow")).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "ptx") {
            let told = good(&format!("check {}", file.display()));
            assert!(!told.contains("can deadlock") && !told.contains("may deadlock"), "{told}");
        }
    }
    let told = good("check kernels/flow/relay.ptx");
    let retries = "may wait for another thread, 10 only retry a compare-and-swap:";
    assert!(
        told.contains(retries) && told.contains("yields while it waits: the wavefront leaves its place"),
        "{told}"
    );
}

#[test]
fn check_reports_all_files() {
    let dir = scratch("check");
    std::fs::write(dir.join("good.ptx"), ptx("")).unwrap();
    std::fs::write(dir.join("bad.ptx"), ptx("\tfrobnicate;")).unwrap();
    let output = warploom_in(&dir, "check bad.ptx missing.ptx good.ptx");
    assert_eq!(code(&output), 2);
    assert!(stdout(&output).contains("good.ptx: PTX 6.3, sm_70, 1 kernel"), "{}", stdout(&output));
    let message = stderr(&output);
    assert!(message.contains("bad.ptx:6:2") && message.contains("missing.ptx"), "{message}");

    let output = warploom_in(&dir, "check bad.ptx good.ptx --json");
    assert_eq!(code(&output), 2);
    let files = &json(&stdout(&output))["files"];
    assert_eq!(files[0]["errors"][0]["exit_code"], 2);
    assert_eq!(files[1]["kernels"][0]["name"], "k");
}

#[test]
fn check_lists_code() {
    let out = good("check kernels/vecadd.ptx --listing");
    assert!(out.contains("FADD "), "{out}");
}

#[test]
fn ptx_becomes_a_listing_that_runs() {
    let dir = scratch("asm");
    let file = dir.join("vecadd.sass");
    good(&format!("asm --from kernels/vecadd.ptx --entry vecadd -o {}", file.display()));
    let listing = std::fs::read_to_string(&file).unwrap();
    assert!(listing.contains(".kernel vecadd\n") && listing.contains("FADD "), "{listing}");
    // The listing is in canonical form already, except for the line that says where it came from.
    let again = good(&format!("asm {}", file.display()));
    assert_eq!(again.lines().skip(1).collect::<Vec<_>>(), listing.lines().skip(1).collect::<Vec<_>>());
    let run = |file: &str| {
        let buffers =
            "--arg buf:f32:1024=iota --arg buf:f32:1024=iota --arg buf:f32:1024=zero --arg u32:1024";
        json(&good(&format!("run {file} --chip gtx480 --grid 4 --block 256 {buffers} --dump 2:8 --json")))
    };
    let (ptx, sass) = (run("kernels/vecadd.ptx"), run(&file.display().to_string()));
    let values = |report: &Value| report["dumps"][0]["values"].clone();
    assert_eq!((&ptx["cycles"], values(&ptx)), (&sass["cycles"], values(&sass)));
    let wrong = refused(
        2,
        &["asm kernels/vecadd.ptx", "asm --from kernels/vecadd.ptx --entry nothing", "asm nothing.sass"],
    );
    insta::assert_snapshot!(wrong);
}

#[test]
fn chips_are_listed_and_shown() {
    let out = good("chips");
    for chip in ["gtx480", "gtx480-hpca18", "gtx570", "gtx1080ti", "apu", "h200"] {
        let named = |line: &&str| line.split_whitespace().next() == Some(chip);
        assert_eq!(out.lines().filter(named).count(), 2, "{chip} in\n{out}");
    }
    let file = std::fs::read_to_string(root().join("chips/gtx480.toml")).unwrap();
    insta::assert_snapshot!(good("chips gtx480").strip_prefix(&file).expect("the file as it is"));
    assert_eq!(json(&good("chips --json"))["chips"].as_array().unwrap().len(), 8);
}

#[test]
fn speed_measures_the_set() {
    let report = json(&good("speed --model functional --chip gtx480,h200 --json"));
    let chips = report["chips"].as_array().unwrap();
    assert_eq!(chips.iter().map(|chip| &chip["chip"]).collect::<Vec<_>>(), ["gtx480", "h200"]);
    for chip in chips {
        let kernels = chip["kernels"].as_array().unwrap();
        let sum: u64 = kernels.iter().map(|k| k["warp_insts"].as_u64().unwrap()).sum();
        assert_eq!((kernels.len(), &chip["total"]["warp_insts"]), (7, &sum.into()));
        assert!(chip["launch_s"].as_f64().unwrap() > 0.0);
    }
    assert!(
        report["peers"].as_array().unwrap().iter().all(|peer| !peer["source"].as_str().unwrap().is_empty())
    );
}

#[test]
fn speed_holds_host_threads_against_the_first() {
    let report = json(&good("speed --chip apu --threads 2,1 --json"));
    let chip = &report["chips"][0];
    let kernel = &chip["kernels"][0];
    assert_eq!((&kernel["kernel"], &kernel["threads"][0]["speedup"]), (&"fibonacci".into(), &1.0.into()));
    let threads: Vec<_> = kernel["threads"].as_array().unwrap().iter().map(|with| &with["threads"]).collect();
    assert_eq!((threads, &kernel["threads"][0]["wall_s"]), (vec![&2.into(), &1.into()], &kernel["wall_s"]));
    // Virtual machines often have no counter, and then the object says why.
    let counted = kernel["host_insts_per_warp_inst"].as_f64();
    match report["no_host_insts"].as_str() {
        Some(reason) => assert!(counted.is_none() && !reason.is_empty()),
        None => assert!(counted.unwrap() > 100.0),
    }
    if cfg!(target_os = "linux") {
        // The chip's state alone is more than that.
        assert!(chip["memory_bytes"].as_u64().unwrap() > 1_000_000);
    }
}

#[test]
fn speed_prints_tables() {
    let out = good("speed --kernel fibonacci --chip apu,gtx480 --threads 1,2");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[1], "apu, timed model, one thread");
    let heads: Vec<_> = lines[2].split_whitespace().collect();
    assert_eq!(heads[..4], ["kernel", "bound", "by", "warp"]);
    assert_eq!(heads[heads.len() - 2..], ["on", "2"]);
    assert!(lines[3].starts_with("fibonacci   channels ") && lines[4].starts_with("total "), "{out}");
    assert!(lines[3].ends_with('x') && lines[3].len() == lines[2].len(), "{out}");
    assert!(lines[5].starts_with("A launch of one warp takes "), "{out}");
    assert!(!out.contains("\ngtx480"), "a chip for which no kernel is left has no table\n{out}");
    assert!(out.contains("\nOther simulators, as published"), "{out}");
}

#[test]
fn speed_refuses_what_it_cannot_measure() {
    for (line, message) in [
        ("speed --kernel vecad", "the set has no kernel `vecad`; there are vecadd, nbody, matmul"),
        ("speed --kernel vecadd --chip apu", "none of these kernels runs on these chips"),
        ("speed --model functional --threads 2", "--threads needs the timed model"),
        ("speed --chip gtx481", "gtx481"),
        ("speed --threads 0", "0 is not in 1..=256"),
    ] {
        let output = warploom(line);
        let errors = stderr(&output);
        assert!(code(&output) == 2 && errors.contains(message), "{line}: {errors}");
    }
}

#[test]
fn the_fast_model_says_how_far_off_it_may_be() {
    let line = "work vecadd size=400_000 --model fast";
    let text = good(line);
    assert!(
        text.contains("vecadd on gtx480, fast model:")
            && text.contains("of the cycles; where measured, it was off by"),
        "{text}"
    );
    let report = json(&good(&format!("{line} --json")));
    let estimate = &report["estimate"];
    assert_eq!((&report["model"], &report["check"]), (&object!("fast"), &object!(true)));
    assert!(estimate["timed_ctas"].as_u64() < report["ctas"].as_u64(), "{estimate}");
    let whole = good("work hashtable keys=500 buckets=64 --model fast");
    assert!(
        whole.contains("nothing is estimated; as a whole where its loops wait for other threads"),
        "{whole}"
    );
    for option in ["--profile", "--sample 1000"] {
        let refused = warploom(&format!("{line} {option}"));
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(code(&refused) == 2 && error.contains("the fast one times only parts"), "{option}: {error}");
    }
}

#[test]
fn speed_measures_the_error_of_the_fast_model() {
    let report = json(&good("speed --model fast --kernel treebuild,treesort --repeat 1 --json"));
    let workloads = report["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 2);
    for workload in workloads {
        // They wait, so that nothing is left out.
        assert_eq!(workload["timed_cycles"], workload["fast_cycles"], "{workload}");
        assert_eq!((&workload["error"], &workload["timed_share"]), (&object!(0.0), &object!(1.0)));
    }
    assert!(good("speed --model fast --kernel treesort --repeat 1").contains("Error of the 0 workloads"));
    assert_eq!(code(&warploom("speed --kernel treesart")), 2);
}

#[test]
fn help_and_completions() {
    assert!(good("--help").contains("warploom run kernels/vecadd.ptx"));
    assert!(good("run --help").contains("buf:TYPE:COUNT=FILL"));
    assert!(good("work --help").contains("warploom work hashtable"));
    assert!(good("completions bash").contains("_warploom"));
    assert_eq!(code(&warploom("")), 2);
    assert_eq!(code(&warploom("walk kernels/vecadd.ptx")), 2);
}

#[test]
fn workloads_are_listed() {
    insta::assert_snapshot!(good("work --list"));
    let listed = json(&good("work --list --json"));
    let names: Vec<_> = listed["workloads"].as_array().unwrap().iter().map(|w| &w["name"]).collect();
    assert_eq!(names[..6], ["vecadd", "matmul", "hashtable", "nw", "chain", "primitives"]);
    assert_eq!(listed["workloads"][2]["params"][0]["default"], 80_000);
}

#[test]
fn workloads_run_and_are_checked() {
    for (line, check) in [
        ("work vecadd size=1_000", "1,000 sums equal the host's"),
        ("work matmul size=32 --chip h200", "1,024 elements equal the host's"),
        ("work hashtable keys=500 buckets=8", "500 keys are in the chains of 8 buckets"),
        ("work nw size=70 penalty=-2 --check-uninit", "5,041 scores equal the host's"),
    ] {
        let out = good(line);
        assert!(out.contains(&format!("\ncheck      ok: {check}\n")), "{line}\n{out}");
    }
    // All lines but the last, which has the time, are the same everywhere.
    let out = good("work nw size=70 --model functional");
    insta::assert_snapshot!(
        out.lines().filter(|line| !line.starts_with("wall time")).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn a_workload_as_json() {
    let report = json(&good("work nw size=70 --set sm.count=1 --json"));
    for key in "kernel chip sched bows model cycles warp_insts thread_insts ipc simd_efficiency wall_s \
                warp_insts_per_s stalls locks sib l1 l2 dram energy_nj grid block registers shared_bytes occupancy \
                output error workload params check check_message launches per_launch"
        .split_whitespace()
    {
        assert!(report.get(key).is_some(), "`{key}` is missing in {report}");
    }
    let params = &report["params"];
    assert_eq!((&params["size"], &params["penalty"], &params["seed"]), (&70.into(), &10.into(), &1.into()));
    assert_eq!(params["version"], "data-parallel");
    assert_eq!((&report["workload"], &report["check"]), (&"nw".into(), &true.into()));
    let each = report["per_launch"].as_array().unwrap();
    let insts: u64 = each.iter().map(|launch| launch["warp_insts"].as_u64().unwrap()).sum();
    assert_eq!((report["launches"].as_u64(), each.len()), (Some(5), 5));
    assert_eq!(report["warp_insts"], insts);
}

#[test]
fn workloads_that_cannot_be() {
    let lines = [
        "work vecad",
        "work nw sise=62",
        "work nw 62",
        "work nw size=62 size=62",
        "work nw size=large",
        "work nw size=0",
        "work matmul size=100",
        "work vecadd --chip gtx9000",
        "work vecadd size=100_000_000",
    ];
    insta::assert_snapshot!(refused(2, &lines));
    let output = warploom("work vecad --json");
    assert_eq!(code(&output), 2);
    assert_eq!(json(&stdout(&output))["error"]["kind"], "bad_input");
    assert_eq!((code(&warploom("work")), code(&warploom("work --list nw"))), (2, 2));
}

#[test]
fn sequences_are_aligned() {
    let data = root().join("docs/data");
    let (a, b) = (data.join("hba_human.fa"), data.join("hbb_human.fa"));
    let line = format!("work nw --fasta {} {} --model functional", a.display(), b.display());
    insta::assert_snapshot!(good(&line));
    let report = json(&good(&format!("{line} version=multi --json")));
    assert_eq!((&report["chip"], &report["check"]), (&"gtx570".into(), &true.into()));
    assert_eq!(report["alignment"]["score"], 246);
}

#[test]
fn sequences_that_cannot_be() {
    let dir = scratch("fasta");
    for (name, text) in [
        ("good.fa", ">good\nACGT\n"),
        ("empty.fa", ""),
        ("lonely.fa", ">lonely\n"),
        ("plain.fa", "ACGT\n"),
        ("odd.fa", ">odd\nACGT\nAC?T\n"),
        ("protein.fa", ">protein\nMKV\n"),
        ("unknown.fa", ">unknown\nMKJ\n"),
        ("long.fa", &format!(">long\n{}\n", "A".repeat(20_000))),
    ] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    let mut messages = String::new();
    for line in [
        "work nw --fasta good.fa nosuch.fa",
        "work nw --fasta empty.fa good.fa",
        "work nw --fasta good.fa lonely.fa",
        "work nw --fasta plain.fa good.fa",
        "work nw --fasta good.fa odd.fa",
        "work nw --fasta good.fa unknown.fa",
        "work nw --fasta good.fa protein.fa --alphabet nucleotide",
        "work nw --fasta long.fa good.fa",
        "work vecadd --fasta good.fa good.fa",
    ] {
        let output = warploom_in(&dir, line);
        assert_eq!(code(&output), 2, "{line}");
        messages += &format!("$ warploom {line}\n{}\n", stderr(&output));
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn a_workload_that_reaches_a_limit() {
    let output = warploom("work hashtable --max-cycles 1000 --json");
    assert_eq!(code(&output), 4);
    let report = json(&stdout(&output));
    assert_eq!((&report["error"]["kind"], &report["kernel"]), (&"hang".into(), &"hashtable_insert".into()));
}

#[test]
fn graphs_run_on_the_host_too() {
    let output = warploom("work fibonacci n=12 on=host");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("workload   fibonacci on this computer: n=12"), "{text}");
    assert!(text.trim_end().ends_with("check      ok: 1 Fibonacci numbers equal the host's"), "{text}");
}

// The schema of `--json`.

#[test]
fn the_schema_is_printed_and_refuses_what_is_not_in_it() {
    let schema: Value = serde_json::from_str(&good("schema")).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let mut report = json(&good(&format!("{SMALL} --json")));
    assert_eq!(report["schema_version"], 1);
    assert_eq!(schema::against("run", &report), Ok(()));
    report["stalls"]["long_scoreboard"] = "long".into();
    assert!(schema::against("run", &report).unwrap_err().contains(".stalls.long_scoreboard"), "a wrong type");
    report["stalls"]["long_scoreboard"] = 1.into();
    report["surprise"] = 1.into();
    assert!(schema::against("run", &report).unwrap_err().contains("`surprise`"), "an unknown key");
    report.as_object_mut().unwrap().remove("surprise");
    report.as_object_mut().unwrap().remove("cycles");
    assert!(schema::against("run", &report).unwrap_err().contains("`cycles`"), "a missing key");
    assert!(schema::against("run", &serde_json::json!({})).is_err());
}
