//! Cilk sources as users run them: on the apu, on the host, and in a persistent kernel on a GPU, which is simulated
//! where there is none. Where a compiler is missing, these tests say so and test nothing.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::scratch;

/// Runs `warploom cilk` on an example.
fn cilk(name: &str, example: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cilk").join(example);
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.arg("cilk").arg(source).args(arguments).env("XDG_CACHE_HOME", scratch(name));
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Whether a run failed only because this computer has no compiler.
fn no_compiler(stderr: &str) -> bool {
    let missing = stderr.contains("no C compiler") || stderr.contains("there is no compiler for it");
    if missing {
        eprintln!("not tested: {}", stderr.lines().next().unwrap_or_default());
    }
    missing
}

#[test]
fn an_example_runs_everywhere_with_the_same_result() {
    for (place, line) in [
        (&["--on", "host"][..], "program    fib in C\n"),
        (&["--set", "sm.count=2"], "program    fib on apu, 32 levels of 1024 elements\n"),
        (
            &["--chip", "h200", "--set", "sm.count=2", "--levels", "16"],
            "program    fib on h200, 16 levels of 1024 elements\n",
        ),
    ] {
        let arguments = [&["fib(10)", "--width", "1024"], place].concat();
        let (code, stdout, stderr) = cilk("cilk_everywhere", "fib.cilk", &arguments);
        if no_compiler(&stderr) {
            return;
        }
        assert_eq!(code, Some(0), "{place:?}: {stderr}");
        assert!(stdout.starts_with(line), "{stdout}");
        assert!(stdout.contains("result     fib(10) = 55\n"), "{stdout}");
        assert_eq!(stdout.contains("check      ok"), !place.contains(&"host"), "{stdout}");
    }
}

#[test]
fn too_few_levels_are_named_in_a_persistent_kernel_too() {
    let arguments = ["fib(8)", "--width", "64", "--chip", "h200", "--set", "sm.count=1", "--levels", "3"];
    let (code, _, stderr) = cilk("cilk_levels", "fib.cilk", &arguments);
    if no_compiler(&stderr) {
        return;
    }
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("behind the last level of channel `fib`, which has 3"), "{stderr}");
}

#[test]
fn on_a_real_gpu() {
    let (code, stdout, stderr) = cilk("cilk_cuda", "fib.cilk", &["fib(16)", "--device", "cuda"]);
    if no_compiler(&stderr) {
        return;
    }
    match code {
        Some(0) => {
            assert!(stdout.contains("GPU time "), "{stdout}");
            assert!(stdout.contains("result     fib(16) = 987\n"), "{stdout}");
        }
        _ => assert!(stderr.contains("no NVIDIA driver") || stderr.contains("no GPU 0"), "{stderr}"),
    }
}

#[test]
fn what_becomes_of_a_program() {
    let (code, stdout, _) = cilk("cilk_emit", "fib.cilk", &["--emit"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("FLOW_KERNEL fib(Work work"), "{stdout}");
    assert!(stdout.contains("FLOW_MAIN(fib, "), "{stdout}");
}
