//! Tells the library what a kept result depends on: a digest of everything that can change the numbers of a run, and
//! one of each kernel. So results of yesterday's model are never taken for today's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[path = "src/repro/digest.rs"]
mod digest;
use digest::Digest;

/// Crates whose code no simulated number depends on. This one is looked at in parts, below.
const OTHERS: [&str; 3] = ["cli", "cuda", "lab"];

/// The parts of this crate that runs are made of; what evaluates and shows them is not among them.
const PARTS: [&str; 5] = ["random.rs", "work", "align/matrix.rs", "anchors", "repro/procedures"];

/// Kernels that no experiment runs.
const OTHER_KERNELS: [&str; 1] = ["corpus"];

fn main() -> io::Result<()> {
    let root = Path::new("../..");
    let mut sources = Vec::new();
    for member in entries(&root.join("crates"))? {
        let source = member.join("src");
        let other = member.file_name().is_some_and(|name| OTHERS.iter().any(|other| name == *other));
        if !other && source.is_dir() {
            sources.push(source);
        }
    }
    sources.extend(PARTS.map(|part| Path::new("src").join(part)).into_iter().filter(|part| part.exists()));

    let mut model = Digest::new();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
        for file in files(source, &["rs"])? {
            // Tests change no numbers.
            if !file.components().any(|part| part.as_os_str() == "tests.rs" || part.as_os_str() == "tests") {
                model = model.add(file.to_string_lossy().as_bytes()).add(fs::read(&file)?);
            }
        }
    }

    let mut kernels = String::new();
    let folder = root.join("kernels");
    println!("cargo::rerun-if-changed={}", folder.display());
    for file in files(&folder, &["ptx", "sass"])? {
        let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        if OTHER_KERNELS.iter().any(|other| path.starts_with(&format!("kernels/{other}/"))) {
            continue;
        }
        let text = fs::read(&file)?;
        model = model.add(&path).add(&text);
        kernels += &format!("    ({path:?}, {:?}),\n", Digest::new().add(&text).hex());
    }

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rustc-env=WARPLOOM_MODEL={}", model.hex());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("kernels.rs");
    fs::write(out, format!("&[\n{kernels}]\n"))
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    Ok(entries)
}

/// All files with these extensions in a folder and those inside it, or the one file.
fn files(path: &Path, extensions: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in entries(path)? {
            found.extend(files(&entry, extensions)?);
        }
    } else if path.extension().is_some_and(|e| extensions.iter().any(|wanted| e == *wanted)) {
        found.push(path.to_path_buf());
    }
    Ok(found)
}
