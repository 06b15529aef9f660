//! CUDA sources as users run them. Where there is no compiler, these tests say so and test nothing.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::scratch;

const HIST: &str = "\
#include <cstdio>
#include \"mask.cuh\"
namespace ns {
__global__ void hist(const unsigned* __restrict__ data, unsigned* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[data[i] & MASK], 1u);
}
}
template <int STEP> __global__ void fill(unsigned* bins) { bins[threadIdx.x] = STEP; }
template __global__ void fill<3>(unsigned*);
template __global__ void fill<5>(unsigned*);
__global__ void naive(unsigned* lock, unsigned* count) {
    while (atomicCAS(lock, 0u, 1u) != 0u) {
    }
    *count += 1;
    __threadfence();
    atomicExch(lock, 0u);
}
int main() {
    unsigned* bins;
    cudaMalloc(&bins, 16);
    ns::hist<<<1, 32>>>(bins, bins, 4);
    printf(\"%d\\n\", (int)cudaDeviceSynchronize());
}
";

const RUN: &str =
    "run hist.cu --entry hist --block 32 --arg data=buf:u32:8=iota --arg bins=buf:u32:4=zero --arg n=s32:8";

fn folder(name: &str) -> PathBuf {
    let dir = scratch(name);
    std::fs::write(dir.join("hist.cu"), HIST).unwrap();
    std::fs::write(dir.join("mask.cuh"), "#define MASK 3u\n").unwrap();
    dir
}

fn warploom(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command
        .current_dir(dir)
        .args(line.split_whitespace())
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .output()
        .unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn good(dir: &Path, line: &str) -> String {
    let output = warploom(dir, line);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{line}\n{out}{err}");
    out
}

#[track_caller]
fn refused(dir: &Path, exit: i32, line: &str) -> String {
    let output = warploom(dir, line);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(exit), "{line}\n{out}{err}");
    err
}

/// Whether a compiler is here.
fn compiler(dir: &Path) -> bool {
    let (_, err) = texts(&warploom(dir, "check hist.cu"));
    let missing = err.contains("there is no compiler for it");
    if missing {
        eprintln!("WARNING: neither nvcc nor clang is installed: CUDA sources are NOT TESTED");
    }
    !missing
}

#[test]
fn a_source_runs_with_the_names_of_its_parameters() {
    let dir = folder("cuda-run");
    if !compiler(&dir) {
        return;
    }
    let out = good(&dir, &format!("{RUN} --dump bins"));
    assert!(out.starts_with("2 2 2 2\n"), "{out}");
    assert!(out.contains("on h200 (chosen for sm_75), timed model"), "{out}");
    // Positions fill what names leave.
    let mixed = "run hist.cu --entry ns::hist --block 32 --arg n=s32:4 \
        --arg buf:u32:4=iota --arg buf:u32:4=zero --dump 1";
    assert!(good(&dir, mixed).starts_with("1 1 1 1\n"));
    let checked = good(&dir, "check hist.cu");
    assert!(checked.contains("ns::hist(u64 data, u64 bins, u32 n), _ZN2ns4hist"), "{checked}");
    assert!(checked.contains("(hist.cu:13)") || checked.contains("hist.cu:13"), "{checked}");
    assert!(checked.contains("sm_75 has no SIMT stack"), "{checked}");
    assert!(good(&dir, "asm hist.cu --entry naive").contains(".kernel"));
    let table = good(&dir, &format!("{} --policy lrr", RUN.replacen("run", "compare", 1)));
    assert!(table.contains("on h200 (chosen for sm_75)") && table.contains("lrr+bows"), "{table}");
}

#[test]
fn kernels_are_found_by_any_of_their_names() {
    let dir = folder("cuda-entry");
    if !compiler(&dir) {
        return;
    }
    let fill =
        |entry: &str| format!("run hist.cu --entry {entry} --block 4 --arg bins=buf:u32:4=zero --dump bins");
    assert!(good(&dir, &fill("fill<5>")).starts_with("5 5 5 5\n"));
    assert!(good(&dir, &fill("_Z4fillILi3EEvPj")).starts_with("3 3 3 3\n"));
    let err = refused(&dir, 2, &fill("fill"));
    assert!(
        err.contains("`fill` names 2 kernels") && err.contains("fill<3>") && err.contains("fill<5>"),
        "{err}"
    );
    let err = refused(&dir, 2, &RUN.replace("n=s32:8", "m=s32:8"));
    assert!(err.contains("has no parameter `m`") && err.contains("data, bins, n"), "{err}");
    let err = refused(&dir, 2, &RUN.replace("n=s32:8", "bins=s32:8"));
    assert!(err.contains("parameter `bins` is given twice"), "{err}");
}

#[test]
fn reports_use_the_names() {
    let dir = folder("cuda-names");
    if !compiler(&dir) {
        return;
    }
    let naive = "run hist.cu --entry naive --block 32 --arg lock=buf:u32:1=zero --arg count=buf:u32:1=zero";
    let err = refused(&dir, 4, &format!("{naive} --chip gtx480"));
    assert!(err.contains("[lock+0]") && err.contains("SIMD deadlock"), "{err}");
    assert!(err.contains("this holds for a SIMT stack; the code is compiled for sm_75"), "{err}");
    let profile = good(&dir, &format!("{naive} --profile"));
    assert!(profile.contains("lock+0") && !profile.contains("buffer 0"), "{profile}");
    assert!(profile.contains("while (atomicCAS(lock, 0u, 1u) != 0u) {"), "the source's line: {profile}");
    let fault = refused(&dir, 3, &RUN.replace("bins=buf:u32:4", "bins=buf:u32:1"));
    assert!(fault.contains("bins"), "{fault}");
    let dumped = good(&dir, &format!("{RUN} --dump bins --json"));
    assert!(dumped.contains("\"name\":\"bins\""), "{dumped}");
}

#[test]
fn the_compilers_message_is_shown_as_it_is() {
    let dir = folder("cuda-errors");
    if !compiler(&dir) {
        return;
    }
    std::fs::write(dir.join("wrong.cu"), "__global__ void k(int* p) { *p = nothing; }\n").unwrap();
    let err = refused(&dir, 2, "run wrong.cu");
    assert!(err.contains("does not compile `wrong.cu`:\n"), "{err}");
    assert!(
        err.contains("wrong.cu") && err.contains("\"nothing\" is undefined")
            || err.contains("use of undeclared identifier 'nothing'"),
        "{err}"
    );
    std::fs::write(dir.join("lost.cu"), "#include \"lost.cuh\"\n").unwrap();
    assert!(refused(&dir, 2, "check lost.cu").contains("lost.cuh"));
}

/// The entries of the cache.
fn entries(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir.join("cache/warploom/cuda")).unwrap();
    entries
        .filter(|entry| !entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("include-"))
        .count()
}

#[test]
fn what_was_compiled_is_kept_until_something_changes() {
    let dir = folder("cuda-cache");
    if !compiler(&dir) {
        return;
    }
    assert_eq!(entries(&dir), 1);
    let bins =
        |flags: &str| good(&dir, &format!("{RUN} --dump bins {flags}")).lines().next().unwrap().to_string();
    assert_eq!((bins(""), entries(&dir)), ("2 2 2 2".to_string(), 1), "found again");
    std::fs::write(dir.join("mask.cuh"), "#define MASK 1u\n").unwrap();
    assert_eq!((bins(""), entries(&dir)), ("4 4 0 0".to_string(), 2), "an included file counts");
    std::fs::write(dir.join("mask.cuh"), "#ifdef ZERO\n#define MASK 0u\n#else\n#define MASK 1u\n#endif\n")
        .unwrap();
    assert_eq!(bins("-- -DZERO"), "8 0 0 0", "flags count");
    let before = entries(&dir);
    good(&dir, "check hist.cu --arch sm_80");
    assert_eq!(entries(&dir), before + 1, "the target counts");
    // A kept file is used: what it says is what runs.
    let kept = std::fs::read_dir(dir.join("cache/warploom/cuda")).unwrap();
    for folder in kept.map(|entry| entry.unwrap().path()) {
        let ptx = folder.join("hist.ptx");
        if ptx.is_file() {
            std::fs::write(&ptx, "not PTX").unwrap();
        }
    }
    assert!(!warploom(&dir, "check hist.cu --arch sm_80").status.success());
}

#[test]
fn without_a_compiler_there_are_two_ways_to_get_one() {
    let dir = folder("cuda-none");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.current_dir(&dir).args(["check", "hist.cu"]).env("PATH", "/nonexistent");
    let output = command.env_remove("CUDA_HOME").env_remove("CUDA_PATH").output().unwrap();
    if Path::new("/usr/local/cuda/bin/nvcc").is_file() {
        eprintln!("WARNING: CUDA is installed: a computer without a compiler is NOT TESTED");
        return;
    }
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("`hist.cu` is CUDA, and there is no compiler for it"), "{err}");
    assert!(err.contains("apt-get install clang") && err.contains("pip install nvidia-cuda-nvcc"), "{err}");
    let err = refused(&dir, 2, "run hist.cu --cc /bin/true");
    assert!(err.contains("`/bin/true` is neither nvcc nor clang"), "{err}");
}

#[test]
fn files_that_are_no_cuda() {
    let dir = folder("cuda-python");
    std::fs::write(dir.join("t.py"), "import triton\n").unwrap();
    std::fs::write(dir.join("n.py"), "from numba import cuda\n").unwrap();
    let triton = refused(&dir, 2, "run t.py");
    assert!(triton.contains("is Python, not CUDA") && triton.contains("asm['ptx']"), "{triton}");
    assert!(!triton.contains("Numba"), "{triton}");
    assert!(refused(&dir, 2, "check n.py").contains("cuda.compile_ptx"));
    assert!(refused(&dir, 2, "run hist.cpp").contains("named KERNEL.cu"));
    std::fs::write(dir.join("k.ptx"), ".version 6.3\n.target sm_70\n.address_size 64\n").unwrap();
    assert!(refused(&dir, 2, "check k.ptx --arch sm_80").contains("`k.ptx` is compiled already"));
    assert!(refused(&dir, 2, "check hist.cu --arch hopper").contains("`hopper` is no target"));
}
