//! Programs for the driver's API, as processes. Numba and Triton, if a Python with them can be had (`PYTHON_NUMBA`,
//! `PYTHON_TRITON`); without, the tests say that they did not run.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::library;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// A folder of links to the library, by the names that programs ask for.
fn links(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["libcuda.so", "libcuda.so.1", "libcudart.so.13", "libnvJitLink.so.12", "libnvJitLink.so.13"]
    {
        let _ = std::fs::remove_file(folder.join(name));
        std::os::unix::fs::symlink(library(), folder.join(name)).unwrap();
    }
    folder
}

fn text(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

/// Compiles and runs `driver.c`, linked with the library as `libcuda.so.1`.
fn run(mode: &str) -> (String, String, Option<i32>) {
    let folder = links(&format!("driver_{mode}"));
    let program = folder.join("program");
    let compiled = Command::new("cc")
        .args(["-O1", "-w", "-o"])
        .arg(&program)
        .arg(source("driver.c"))
        .arg(format!("-L{}", folder.display()))
        .args(["-l:libcuda.so.1", "-ldl"])
        .output()
        .expect("the compiler that Rust links with");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program)
        .arg(mode)
        .env("LD_LIBRARY_PATH", &folder)
        .env("PTX", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/vecadd.ptx"))
        .env("WARPLOOM_CHIP", "gtx480")
        .env("WARPLOOM_THREADS", "1")
        .output()
        .unwrap();
    text(&output)
}

#[test]
fn modules_launches_and_names() {
    let (out, err, code) = run("good");
    let expected = "1024 threads, parameter 3 of 4 bytes at 24\n1000 1099\n1000 1099\n1 1\npassed\n";
    assert_eq!((out.as_str(), code), (expected, Some(0)), "{err}");
    assert!(err.contains("8 bytes of arguments for parameters of 28"), "{err}");
    assert!(err.contains(": an allocation of 400 bytes, which was freed"), "{err}");
    assert!(err.contains("warploom: 2 launches on gtx480"), "{err}");
}

#[test]
fn a_fault_spoils_the_context() {
    let (out, err, code) = run("fault");
    assert!(out.ends_with("a new context works\n"), "{out}{err}");
    assert_eq!(code, Some(0));
    assert!(err.contains("vecadd, launch 0: "), "{err}");
}

#[test]
fn graphs_have_memory_of_their_own() {
    let (out, err, code) = run("graph");
    assert_eq!((out.as_str(), code), ("passed\n", Some(0)), "{err}");
    assert!(err.contains("memory of a graph that is not allocated"), "{err}");
}

#[test]
fn machine_code_is_refused_by_name() {
    let (out, err, code) = run("cubin");
    assert_eq!((out.as_str(), code), ("refused\n", Some(0)), "{err}");
    assert!(err.contains("machine code for sm_90 (a cubin)"), "{err}");
}

#[test]
fn wrong_ptx_fills_the_log() {
    let (out, err, code) = run("wrong");
    assert_eq!((out.as_str(), code), ("1 bytes: nowhere\n", Some(0)), "{err}");
    assert!(err.contains("the program calls cuTexRefCreate"), "{err}");
}

#[test]
fn ptx_of_two_texts_is_linked() {
    let (out, err, code) = run("link");
    assert_eq!((out.as_str(), code), ("7\n", Some(0)), "{err}");
}

/// Runs a Python program with the library in the place of CUDA's, if that Python has the module.
fn python(variable: &str, module: &str, program: &str) {
    let python = std::env::var(variable).unwrap_or_else(|_| "python3".to_string());
    let has = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("WARNING: `{python}` has no {module}: {program} is NOT TESTED (set {variable})");
        return;
    }
    let folder = links(module);
    let ptxas = folder.join("ptxas");
    std::fs::write(&ptxas, include_str!("../../cli/src/exec/ptxas.sh")).unwrap();
    std::fs::set_permissions(&ptxas, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = Command::new(&python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cuda").join(program))
        .env("LD_LIBRARY_PATH", &folder)
        .env("LD_PRELOAD", library())
        .env("TRITON_PTXAS_PATH", &ptxas)
        .env("TRITON_PTXAS_BLACKWELL_PATH", &ptxas)
        .env("TRITON_LIBCUDA_PATH", &folder)
        .env("TRITON_CACHE_DIR", folder.join("cache"))
        .env("WARPLOOM_THREADS", "1")
        .output()
        .unwrap();
    let (out, err, code) = text(&output);
    assert!(out.ends_with("passed\n") && code == Some(0), "{out}{err}");
}

#[test]
fn numba() {
    python("PYTHON_NUMBA", "numba.cuda", "numba_histogram.py");
}

#[test]
fn triton() {
    python("PYTHON_TRITON", "triton", "triton_softmax.py");
}
