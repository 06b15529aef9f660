//! Every text in `kernels/` loads and links.

use std::fs;
use std::path::{Path, PathBuf};

use isa::AddressMap;
use warploom_isa as isa;

fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            found.push(path);
        }
    }
}

#[test]
fn every_kernel_file_loads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels");
    let mut paths = Vec::new();
    texts(Path::new(folder), &mut paths);
    paths.sort();
    let mut failures = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        match super::load(&text) {
            Ok(module) => check(&module),
            Err(error) => failures += &format!("{}:\n{}\n", path.display(), error.render(false)),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn check(module: &isa::Module) {
    for function in &module.functions {
        let Some(body) = &function.body else { continue };
        assert_eq!(body.insts.len(), body.origins.len());
        for inst in &body.insts {
            if let Some(target) = inst.branch_target() {
                assert!(target.index() < body.insts.len(), "{}", function.name);
            }
        }
    }
    let _ = AddressMap::default();
}
