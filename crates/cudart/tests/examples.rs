//! The programs of `examples/cuda`, built by nvcc. Without nvcc nothing is tested, and the test says so. NVCC
//! and NVCCFLAGS name the compiler and options for it, as for `examples/cuda/build.sh`.

mod support;

use std::path::Path;
use std::process::Command;

use support::library;

/// Whether there is a compiler, and the computer can run what it makes.
fn nvcc() -> bool {
    let name = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_string());
    let found = Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found || !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        eprintln!("WARNING: there is no nvcc: the programs of examples/cuda are NOT TESTED (set NVCC)");
    }
    found && cfg!(all(target_os = "linux", target_arch = "x86_64"))
}

fn run(folder: &Path, words: &str) -> (String, String) {
    let mut words = words.split(' ');
    let name = words.next().unwrap();
    let program = folder.join(name);
    let library = library();
    let links = folder.join("runtime");
    std::fs::create_dir_all(&links).unwrap();
    for name in ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"] {
        let _ = std::os::unix::fs::symlink(&library, links.join(name));
    }
    let output = Command::new(program)
        .args(words)
        .env("LD_LIBRARY_PATH", &links)
        .env("LD_PRELOAD", &library)
        .env(
            "WARPLOOM_CHIP",
            if ["clusters", "tensor_matmul"].contains(&name) { "h200" } else { "gtx1080ti" },
        )
        .env("WARPLOOM_THREADS", "1")
        .output()
        .unwrap();
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn all_pass(runtime: &str) {
    if !nvcc() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(runtime);
    let build = Command::new("sh")
        .arg(root.join("examples/cuda/build.sh"))
        .arg(&folder)
        .arg(runtime)
        .output()
        .unwrap();
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    for words in [
        "bfs 500",
        "clusters",
        "concurrent",
        "constants",
        "device",
        "errors",
        "errors address",
        "errors align",
        "errors hang",
        "graphs",
        "gridsync",
        "hashtable 500 16",
        "heap",
        "managed",
        "output",
        "output assert",
        "pitch",
        "rdc",
        "reduce 3000",
        "streams",
        "tensor_matmul",
        "textures",
        "thrust",
    ] {
        let (out, err) = run(&folder, words);
        assert!(out.ends_with("passed\n"), "{words} ({runtime}): {out}{err}");
    }
    // What a kernel prints comes when the host waits for it.
    let (out, _) = run(&folder, "output");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[1], "after the launch, before the device is waited for");
    assert_eq!(lines[2], "thread 0 of print: 0.00");
}

#[test]
fn programs_with_the_runtime_linked_in() {
    all_pass("static");
}

#[test]
fn programs_with_the_shared_runtime() {
    all_pass("shared");
}
