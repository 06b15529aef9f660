//! A build without the feature `cuda` refuses real GPUs and says why; the simulator needs none.
#![cfg(not(feature = "cuda"))]

use std::process::{Command, Output};

const REFUSAL: &str = "this build has no CUDA support: the cargo feature `cuda` adds it";

fn warploom(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warploom")).args(line.split_whitespace()).output().unwrap()
}

#[test]
fn real_gpus_are_refused() {
    for line in ["work vecadd --device cuda", "conform --device cuda:1", "anchors --device cuda", "serve-gpu"]
    {
        let out = warploom(line);
        assert_eq!(out.status.code(), Some(2), "{line}");
        let told = String::from_utf8(out.stderr).unwrap();
        assert_eq!(told.lines().next(), Some(format!("error: {REFUSAL}").as_str()), "{line}");
    }
}

#[test]
fn none_are_listed() {
    let out = warploom("devices");
    assert!(out.status.success());
    assert!(String::from_utf8(out.stdout).unwrap().starts_with(REFUSAL));
}

#[test]
fn the_simulator_runs() {
    assert!(warploom("work vecadd size=1024 --model functional").status.success());
}
