//! Tells the library what a kept result depends on: a digest of everything that can change the numbers of a run, and
//! one of each kernel. So results of yesterday's model are never taken for today's. (A run's chip file counts with
//! the run: `Run::key`.)
//!
//! In the workspace the model is digested by the sources of all crates below this one. A package has only its own,
//! and there the version stands for the others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[path = "src/runs/digest.rs"]
mod digest;
use digest::Digest;

/// Crates whose code no simulated number depends on. This one is looked at in parts, below.
const OTHERS: [&str; 4] = ["cli", "cuda", "cudart", "lab"];

/// The parts of this crate that runs are made of; what evaluates and shows them is not among them.
const PARTS: [&str; 7] =
    ["random.rs", "work", "align/matrix.rs", "anchors", "kernel", "plan", "runs/procedures"];

/// Files of the simulator that hold words and drawings only: rewording a message stales no result.
const WORDS: [&str; 6] = [
    "sim/src/explain/hang/advice.rs",
    "sim/src/explain/hang/message.rs",
    "sim/src/explain/hang/words.rs",
    "sim/src/explain/trace",
    "sim/src/explain/aggregator.rs",
    "sim/src/explain/samples.rs",
];

fn main() -> io::Result<()> {
    let mut model = Digest::new();
    let mut sources = Vec::new();
    if in_workspace() {
        for member in entries(Path::new("../../crates"))? {
            let source = member.join("src");
            let other = member.file_name().is_some_and(|name| OTHERS.iter().any(|other| name == *other));
            if !other && source.is_dir() {
                sources.push(source);
            }
        }
    } else {
        // A released version depends on exactly one version of every crate below it.
        model = model.add(env!("CARGO_PKG_VERSION"));
    }
    sources.extend(PARTS.map(|part| Path::new("src").join(part)).into_iter().filter(|part| part.exists()));

    if let Some(missing) =
        WORDS.iter().find(|words| in_workspace() && !Path::new("../../crates").join(words).exists())
    {
        return Err(io::Error::other(format!("build.rs names {missing}, which does not exist")));
    }
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
        for file in rust_files(source)? {
            let words = WORDS.iter().any(|words| file.starts_with(Path::new("../../crates").join(words)));
            // Tests change no numbers.
            if !words
                && !file
                    .components()
                    .any(|part| part.as_os_str() == "tests.rs" || part.as_os_str() == "tests")
            {
                model = model.add(file.to_string_lossy().as_bytes()).add(fs::read(&file)?);
            }
        }
    }

    // Sources and headers run only as the PTX built from them.
    let mut kernels = String::new();
    for (path, text) in warploom_kernels::FILES {
        if path.ends_with(".ptx") || path.ends_with(".sass") {
            let path = format!("kernels/{path}");
            model = model.add(&path).add(text);
            kernels += &format!("    ({path:?}, {:?}),\n", Digest::new().add(text).hex());
        }
    }

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rustc-env=WARPLOOM_MODEL={}", model.hex());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("kernels.rs");
    fs::write(out, format!("&[\n{kernels}]\n"))
}

/// Whether this crate is built where the sources of the others are, and not from a package.
fn in_workspace() -> bool {
    let here = |folder: &str| Path::new(folder).canonicalize().ok();
    here("../../crates/lab").is_some_and(|folder| Some(folder) == here("."))
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    Ok(entries)
}

/// All Rust files in a folder and those inside it, or the one file.
fn rust_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in entries(path)? {
            found.extend(rust_files(&entry)?);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path.to_path_buf());
    }
    Ok(found)
}
