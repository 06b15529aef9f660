//! Every PTX text of the repository, from many compilers, parses and resolves.

use std::path::{Path, PathBuf};

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            out.push(path);
        }
    }
    out.sort();
}

#[test]
fn corpus_resolves() {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels"), &mut files);
    let mut failures = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        if let Err(error) = warploom_ptx::resolve_text(&file.display().to_string(), &text) {
            failures += &error.render(false);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
