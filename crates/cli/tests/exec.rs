//! `warploom exec`: what it refuses before a program runs, and how it hands over to one. The programs themselves are
//! tested with the runtime (`crates/cudart/tests`).

#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::scratch;

/// Runs the command with a file as the runtime that is a library, if an empty one: what is tested here loads none.
fn exec(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warploom"))
        .arg("exec")
        .args(words)
        .current_dir(dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("NO_COLOR", "1")
        .env_remove("WARPLOOM_CUDART")
        .output()
        .unwrap()
}

fn refused(dir: &Path, words: &[&str]) -> String {
    let output = exec(dir, words);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {err}");
    err
}

/// The head of an ELF file: 32 or 64 bits, the machine, and nothing else.
fn elf(class: u8, machine: u16) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
    bytes.resize(16, 0);
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.resize(64, 0);
    bytes
}

#[test]
fn programs_that_cannot_be_run() {
    let dir = scratch("exec_refused");
    for (name, bytes) in [("bits32", elf(1, 3)), ("other", elf(2, 8)), ("fixed", elf(2, 62))] {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    let err = refused(&dir, &["--", "./none"]);
    assert!(err.contains("no program `./none`"), "{err}");
    let err = refused(&dir, &["--", "fixed"]);
    assert!(err.contains("no program `fixed`") && err.contains("./fixed"), "{err}");
    let err = refused(&dir, &["--", "./bits32"]);
    assert!(err.contains("is not a 64-bit program") && err.contains("-m32"), "{err}");
    let err = refused(&dir, &["--", "./other"]);
    assert!(err.contains("another processor"), "{err}");
    if cfg!(target_arch = "x86_64") {
        let err = refused(&dir, &["--", "./fixed"]);
        assert!(err.contains("linked statically") && err.contains("-static"), "{err}");
    }
}

#[test]
fn options_that_make_no_sense() {
    let dir = scratch("exec_options");
    let err = refused(&dir, &["--chip", "gtx9999", "--", "/bin/sh"]);
    assert!(err.contains("gtx9999"), "{err}");
    let err = refused(&dir, &["--set", "host.link_gbps=fast", "--", "/bin/sh"]);
    assert!(err.contains("host.link_gbps=fast"), "{err}");
    let err = refused(&dir, &["--bounds", "loose", "--", "/bin/sh"]);
    assert!(err.contains("warn, fault, rounded"), "{err}");
    let err = refused(&dir, &["--sched", "best", "--", "/bin/sh"]);
    assert!(err.contains("lrr, gto, cawa"), "{err}");
    for timed in
        ["", "some", "first:0", "every:0", "every:x", "kernel=", "range:2..1", "range:2..2", "range:3"]
    {
        let err = refused(&dir, &["--timed", timed, "--", "/bin/sh"]);
        assert!(err.contains(&format!("--timed {timed}: it chooses no launch")), "{err}");
    }
    let err = refused(&dir, &["--trace", "t", "--trace-sm", "5000", "--", "/bin/sh"]);
    assert!(err.contains("--trace-sm 5000: h200 has 132 SMs"), "{err}");
    let err = refused(&dir, &["--chip", "gtx480", "--trace", "t", "--trace-sm", "15", "--", "/bin/sh"]);
    assert!(err.contains("--trace-sm 15: gtx480 has 15 SMs"), "{err}");
    let err = refused(&dir, &[]);
    assert!(err.contains("PROGRAM"), "{err}");
}

#[test]
fn the_runtime_must_be_found() {
    let dir = scratch("exec_library");
    let command = dir.join("warploom");
    std::fs::copy(env!("CARGO_BIN_EXE_warploom"), &command).unwrap();
    let output = Command::new(&command).args(["exec", "--", "/bin/sh", "-c", "true"]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("libwarploom_cudart.so") && err.contains("-p warploom-cudart"), "{err}");
}

/// A library of C stands for the runtime: the program gets it, the variables and its arguments, and passes its exit
/// code on.
#[test]
fn a_program_takes_over() {
    let dir = scratch("exec_program");
    let library = dir.join("libempty.so");
    std::fs::write(dir.join("empty.c"), "int warploom_empty;\n").unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-o"])
        .args([&library, &dir.join("empty.c")])
        .status()
        .expect("the compiler that Rust links with");
    assert!(compiled.success());
    let script = "echo \"$1 $WARPLOOM_CHIP $WARPLOOM_TIMED $WARPLOOM_SET $WARPLOOM_BOWS\"; \
                  echo \"$WARPLOOM_LINK_GBPS $WARPLOOM_BOUNDS\"; \
                  ls \"${LD_LIBRARY_PATH%%:*}\"; echo \"${LD_PRELOAD##*/}\"; exit 9";
    let output = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .args(["exec", "--chip", "gtx480", "--set", "sm.count=2", "--timed", "first:1", "--bows"])
        .args(["--set", "host.link_gbps=32", "--bounds", "fault"])
        .args(["--json", "launches.jsonl", "--", "/bin/sh", "-c", script, "name", "--argument"])
        .current_dir(&dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("WARPLOOM_CUDART", &library)
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let expected = "--argument gtx480 first:1 sm.count=2 1\n32 fault\n\
                    libcuda.so\nlibcuda.so.1\nlibcudart.so.11.0\nlibcudart.so.12\nlibcudart.so.13\n\
                    libnvJitLink.so.12\nlibnvJitLink.so.13\nptxas\nlibempty.so\n";
    assert_eq!((out.as_str(), output.status.code()), (expected, Some(9)));
    assert_eq!(std::fs::read_to_string(dir.join("launches.jsonl")).unwrap(), "");
}

/// Runs a script of the shell as the program, with an empty library as the runtime.
fn measured(dir: &Path, words: &[&str], script: &str) -> Output {
    let library = dir.join("empty.so");
    std::fs::write(&library, "").unwrap();
    Command::new(env!("CARGO_BIN_EXE_warploom"))
        .arg("exec")
        .args(words)
        .args(["--", "/bin/sh", "-c", script])
        .current_dir(dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("WARPLOOM_CUDART", &library)
        .output()
        .unwrap()
}

/// A program that is measured keeps its exit code, however it ends, and what the runtime has written is shown.
#[test]
fn exit_codes_of_programs_that_are_measured() {
    let dir = scratch("exec_measured");
    let output = measured(&dir, &["--profile"], "exit 9");
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(9), "{err}");
    assert!(err.contains("has launched no kernel"), "{err}");
    let locks = r#"{"acquired":0,"failed_intra":0,"failed_inter":0,"wait_ok":0,"wait_fail":0}"#;
    let kernel = format!(
        r#"{{"chip":"gtx480","name":"add","launches":2,"timed":1,"failed":0,"cycles":50,"warp_cycles":40,
            "warp_insts":30,"simd_efficiency":1.0,"seconds":1e-6,"locks":{locks},"profile":null,"over_time":null}}"#
    );
    std::fs::write(dir.join("kernel.json"), kernel).unwrap();
    let script = "cp kernel.json \"$WARPLOOM_PROFILE/1-0.json\"; kill -ABRT $$";
    let output = measured(&dir, &["--report", "page.html"], script);
    assert_eq!(output.status.code(), Some(134), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read_to_string(dir.join("page.html")).unwrap().contains("add"));
}

#[test]
fn failed_launches_are_no_good_comparison() {
    let dir = scratch("exec_failed");
    let line = r#"{"model":"timing","cycles":5,"warp_insts":5,"simd_efficiency":1.0,"error":"a fault"}"#;
    std::fs::write(dir.join("line.json"), format!("{line}\n")).unwrap();
    let output = measured(&dir, &["--compare"], "cat line.json >> \"$WARPLOOM_JSON\"");
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("lrr: 1 launch failed"), "{err}");
}

/// A driver that is Warploom's own is never taken for a real GPU's.
#[cfg(feature = "cuda")]
#[test]
fn the_simulated_driver_is_no_real_gpu() {
    let dir = scratch("exec_driver");
    std::fs::write(dir.join("driver.c"), "int warploom_simulated_driver(void) { return 1; }\n").unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-o"])
        .args([dir.join("libcuda.so.1"), dir.join("driver.c")])
        .status()
        .expect("the compiler that Rust links with");
    assert!(compiled.success());
    for words in [&["devices"][..], &["work", "vecadd", "--device", "cuda"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_warploom"))
            .args(words)
            .env("LD_LIBRARY_PATH", &dir)
            .output()
            .unwrap();
        let all = [output.stdout, output.stderr].concat();
        let told = String::from_utf8(all).unwrap();
        assert!(told.contains("the driver that this process finds is Warploom's own"), "{words:?}: {told}");
    }
}
