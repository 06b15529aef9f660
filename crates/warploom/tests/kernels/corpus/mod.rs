//! Runs every file of `kernels/` and `kernels/corpus/*/` on the simulated chips. Folders and files are found by
//! listing, so PTX of a new compiler is tested as soon as it is there. `everything_has_a_check` fails on a file
//! or entry that no line below names.

mod control;
mod handwritten;
mod languages;
mod locks;
mod numbers;
mod parallel;
mod printing;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use warploom::{Device, Error};

use crate::support::{MACHINES, Outcome, Run, machines_for, on_gpu};

/// Launches a kernel on inputs of its choice and compares with results computed on the host.
type Check = fn(&mut Run) -> Outcome;

/// The language of a folder's kernels; each has its own entries and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Cuda,
    Numba,
    Triton,
    Rust,
    Handwritten,
}

impl Family {
    /// Folders not named here hold the kernels of `kernels/*.cu`.
    fn of(folder: &str) -> Family {
        let others = [
            ("numba", Family::Numba),
            ("triton", Family::Triton),
            ("rustc", Family::Rust),
            ("handwritten", Family::Handwritten),
        ];
        others
            .into_iter()
            .find(|(start, _)| folder.starts_with(start))
            .map_or(Family::Cuda, |(_, family)| family)
    }
}

/// Folders whose results are compared with a tolerance, and the compiler flag that is the reason.
const INEXACT: &[(&str, &str)] = &[
    ("clang19-sm_70-fast", "-ffast-math with flushed denormals"),
    ("nvcc13.0-sm_90-rdc", "--use_fast_math"),
];

/// A kernel that has a check.
struct Known {
    family: Family,
    file: &'static str,
    /// `None` where the compiler mangles the name of the file's only entry.
    entry: Option<&'static str>,
}

macro_rules! kernels {
    ($($test:ident: $family:ident $file:literal $($entry:literal)? => $check:path;)*) => {
        const KNOWN: &[Known] =
            &[$(Known { family: Family::$family, file: $file, entry: entry!($($entry)?) }),*];

        $(#[test]
        fn $test() {
            check_all(&Known { family: Family::$family, file: $file, entry: entry!($($entry)?) }, $check);
        })*
    };
}

macro_rules! entry {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

kernels! {
    vecadd: Cuda "vecadd" "vecadd" => parallel::vecadd;
    matmul: Cuda "matmul" "matmul" => parallel::matmul;
    reduce: Cuda "reduce" "reduce" => parallel::reduce;
    scan: Cuda "scan" "scan" => parallel::scan;
    histogram: Cuda "histogram" "histogram" => parallel::histogram;
    bitonic: Cuda "bitonic" "bitonic" => parallel::bitonic;
    nbody: Cuda "nbody" "nbody" => parallel::nbody;
    bfs: Cuda "bfs" "bfs" => parallel::bfs;
    fib: Cuda "recursion" "fib" => control::fib;
    ackermann: Cuda "recursion" "ackermann" => control::ackermann;
    localarray: Cuda "localarray" "localarray" => control::localarray;
    funcptr: Cuda "funcptr" "funcptr" => control::funcptr;
    classify: Cuda "switch" "classify" => control::classify;
    jumptable: Cuda "switch" "jumptable" => control::jumptable;
    dpoly: Cuda "dpoly" "dpoly" => numbers::dpoly;
    halfaxpy: Cuda "half" "halfaxpy" => numbers::halfaxpy;
    half2axpy: Cuda "half" "half2axpy" => numbers::half2axpy;
    halfwiden: Cuda "half" "halfwiden" => numbers::halfwiden;
    hello: Cuda "printf" "hello" => printing::hello;
    checked: Cuda "printf" "checked" => printing::checked;
    spinlock_inc: Cuda "spinlock" "spinlock_inc" => locks::spinlock_inc;
    naivelock: Cuda "spinlock" "naivelock" => locks::naivelock;
    crosscta: Cuda "spinlock" "crosscta" => locks::crosscta;
    hashtable_insert: Cuda "hashtable" "hashtable_insert" => locks::hashtable_insert;
    nw_grow: Cuda "nw" "nw_grow" => parallel::nw_grow;
    nw_shrink: Cuda "nw" "nw_shrink" => parallel::nw_shrink;
    globals: Cuda "globals" "globals" => tables::globals;
    warpops: Cuda "warpops" "warpops" => tables::warpops;

    numba_vecadd: Numba "vecadd" => languages::numba_vecadd;
    numba_reduce: Numba "reduce" => languages::numba_reduce;
    numba_histogram: Numba "histogram" => languages::numba_histogram;
    numba_mandelbrot: Numba "mandelbrot" => languages::numba_mandelbrot;
    numba_localsort: Numba "localsort" => languages::numba_localsort;

    triton_vecadd: Triton "vecadd" "vecadd" => languages::triton_vecadd;
    triton_softmax: Triton "softmax" "softmax" => languages::triton_softmax;
    triton_rowsum: Triton "rowsum" "rowsum" => languages::triton_rowsum;
    triton_collatz: Triton "collatz" "collatz" => languages::triton_collatz;

    rust_vecadd: Rust "vecadd" "vecadd" => parallel::vecadd;
    rust_saxpy: Rust "vecadd" "saxpy" => languages::rust_saxpy;
    rust_modpow: Rust "modpow" "modpow" => languages::rust_modpow;
    rust_fnv1a: Rust "modpow" "fnv1a" => languages::rust_fnv1a;

    vecadd_1_4: Handwritten "vecadd_1_4" "vecadd" => handwritten::vecadd;
    vecadd_2_3: Handwritten "vecadd_2_3" "vecadd" => handwritten::vecadd;
    reduce_1_4: Handwritten "reduce_1_4" "reduce" => handwritten::reduce_of_128;
    reduce_3_1: Handwritten "reduce_3_1" "reduce" => parallel::reduce;
    functions_1_4: Handwritten "functions_1_4" "mix" => handwritten::mix;
    syntax_2_3: Handwritten "syntax_2_3" "syntax" => handwritten::syntax;
}

/// Files that are refused, and the symbol that the message must name.
const REFUSED: &[(Family, &str, &str)] = &[(Family::Rust, "gather", "panic_bounds_check")];

/// Folders whose `spinlock_inc` loses rounds on a real GPU. Their `spinlock.ptx` has the same instructions as
/// the others but a target before sm_70. The driver's compiler then keeps the round counter in a register of
/// the whole warp, as if its lanes left the waiting loop together (seen in the machine code; on an H200, 319 of
/// 520 increments arrive).
const WARP_COUNTS_ROUNDS: &[&str] =
    &["clang19-sm_35", "clang19-sm_52", "clang22-sm_50", "nvrtc11.8-sm_35", "nvrtc12.9-sm_50"];

/// Files that current drivers refuse: 32-bit addresses.
const TOO_OLD: &[(Family, &str)] = &[
    (Family::Handwritten, "vecadd_1_4"),
    (Family::Handwritten, "functions_1_4"),
    (Family::Handwritten, "vecadd_2_3"),
];

/// A PTX file of the corpus.
struct File {
    folder: String,
    stem: String,
    path: PathBuf,
}

impl File {
    fn family(&self) -> Family {
        Family::of(&self.folder)
    }

    /// `nvcc13.0-sm_90/vecadd.ptx`.
    fn name(&self) -> String {
        format!("{}/{}.ptx", self.folder, self.stem)
    }

    fn load(&self, gpu: &mut Device) -> Result<warploom::Module, Error> {
        let text = std::fs::read(&self.path).expect("a listed file can be read");
        gpu.load_ptx_named(&self.name(), text)
    }

    /// Loads the file by way of the listing that it prints as.
    fn load_listing(&self, gpu: &mut Device) -> Result<warploom::Module, Error> {
        let text = std::fs::read(&self.path).expect("a listed file can be read");
        let module = warploom::ptx::load_bytes(&self.name(), &text)?;
        gpu.load_sass_named(&self.name(), warploom::isa::print::module(&module, None))
    }
}

fn kernels_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels")
}

/// All PTX files, in order.
fn files() -> Vec<File> {
    let list = |folder: &Path| {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
            .expect("the folder can be listed")
            .map(|entry| entry.expect("the entry can be read").path())
            .collect();
        entries.sort();
        entries
    };
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let root = kernels_folder();
    let mut folders = vec![(root.clone(), "kernels".to_string())];
    let corpus = list(&root.join("corpus"));
    folders.extend(corpus.into_iter().filter(|p| p.is_dir()).map(|p| (p.clone(), name(&p))));
    let mut files = Vec::new();
    for (path, folder) in folders {
        for path in list(&path).into_iter().filter(|p| p.extension().is_some_and(|e| e == "ptx")) {
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            files.push(File { folder: folder.clone(), stem, path });
        }
    }
    files
}

/// Runs a check on every file that has the kernel, on each machine planned for it.
fn check_all(known: &Known, check: Check) {
    let mut runs = 0;
    let mut failures = Vec::new();
    let files = files();
    let texts = files.iter().filter(|f| f.family() == known.family && f.stem == known.file);
    for (number, file) in texts.enumerate() {
        for machine in machines_for(number) {
            let entry = known.entry.unwrap_or(known.file);
            let mut fail = |error| failures.push(format!("{entry} of {} on {machine}: {error}", file.name()));
            let took = match check_one(known, file, machine.small(), check, File::load) {
                Ok(took) => took,
                Err(error) => {
                    fail(error.to_string());
                    continue;
                }
            };
            runs += usize::from(took.is_some());
            // For our own kernels the listing must give the same results in the same cycles as the PTX, if that
            // executes as it is written.
            if number == 0 && !on_gpu() {
                let took = match machine.as_written() {
                    [] => took,
                    _ => {
                        check_one(known, file, machine.small_as_written(), check, File::load).unwrap_or(None)
                    }
                };
                match check_one(known, file, machine.small_as_written(), check, File::load_listing) {
                    Ok(again) if again == took => {}
                    // With lock bits, a listing's shared atomics become loops after register allocation, PTX's before.
                    Ok(_) if machine.chip == "gtx570" => {}
                    Ok(again) => fail(format!("as a listing it took\n{again:?}\nand not\n{took:?}")),
                    Err(error) => fail(format!("as a listing: {error}")),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(runs > 0 || on_gpu(), "no file has the kernel");
}

/// How a file becomes a module.
type Load = fn(&File, &mut Device) -> Result<warploom::Module, Error>;

/// Runs the check if the file has the kernel. Returns what its launches took.
fn check_one(
    known: &Known,
    file: &File,
    mut gpu: Device,
    check: Check,
    load: Load,
) -> Outcome<Option<Vec<String>>> {
    let too_old = TOO_OLD.iter().any(|(family, stem)| *family == file.family() && *stem == file.stem);
    let miscounts = file.stem == "spinlock" && WARP_COUNTS_ROUNDS.contains(&file.folder.as_str());
    if gpu.is_real() && (too_old || miscounts) {
        return Ok(None);
    }
    let module = load(file, &mut gpu)?;
    let names = module.kernel_names();
    let entry = match known.entry {
        Some(entry) => names.iter().find(|name| *name == entry),
        None => names.first(),
    };
    let Some(entry) = entry else { return Ok(None) };
    let kernel = module.kernel(entry)?;
    let exact = !INEXACT.iter().any(|(folder, _)| *folder == file.folder);
    let mut run = Run { gpu, kernel, exact, launches: Vec::new() };
    check(&mut run)?;
    Ok(Some(run.launches))
}

/// Files whose kernels are checked by the workloads of `crates/lab`, with every policy.
const WORKLOADS: &[&str] =
    &["chain", "chain_bits", "nw_atomic", "nw_pipe", "nw_tiny", "primitives", "tinylocks"];

#[test]
fn everything_has_a_check() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files() {
        let refused = REFUSED.iter().find(|(family, stem, _)| *family == file.family() && *stem == file.stem);
        let module = match (file.load(&mut MACHINES[1].small()), refused) {
            (Ok(module), None) => module,
            (Ok(_), Some(_)) => {
                wrong.push(format!("{} is no longer refused", file.name()));
                continue;
            }
            (Err(error), Some((_, _, missing))) if error.to_string().contains(missing) => continue,
            (Err(error), _) => {
                wrong.push(format!("{} does not load:\n{error}", file.name()));
                continue;
            }
        };
        if file.folder == "kernels" && WORKLOADS.contains(&file.stem.as_str()) {
            continue;
        }
        let names = module.kernel_names();
        if names.is_empty() {
            wrong.push(format!("{} has no kernel", file.name()));
        }
        for entry in &names {
            let here = |k: &Known| k.family == file.family() && k.file == file.stem;
            let checked = KNOWN.iter().position(|k| match k.entry {
                Some(name) => here(k) && name == entry,
                None => here(k) && names.len() == 1,
            });
            match checked {
                Some(at) => drop(seen.insert(at)),
                None => wrong.push(format!("{}: nothing checks kernel `{entry}`", file.name())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.len(), KNOWN.len(), "some checks have nothing to check");
    for (folder, _) in INEXACT {
        assert!(files().iter().any(|f| f.folder == *folder), "the inexact folder {folder} is gone");
    }
}
