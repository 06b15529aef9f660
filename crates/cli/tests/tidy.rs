//! The repository's own habits: lines that fit, and a map that shows the house as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const COLUMNS: usize = 120;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files of the repository with an extension: what git knows, or everything but build outputs where there is no git.
fn files(extension: &str) -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--", &format!("*.{extension}")])
        .current_dir(root())
        .output();
    if let Ok(output) = listed
        && output.status.success()
    {
        let names = String::from_utf8(output.stdout).unwrap();
        return names.split('\0').filter(|name| !name.is_empty()).map(|name| root().join(name)).collect();
    }
    let mut folders = vec![root()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found
}

fn is_long(line: &str) -> bool {
    line.chars().count() > COLUMNS
}

#[test]
fn lines_of_code_fit() {
    for path in ["rs", "js", "css"].into_iter().flat_map(files) {
        let text = fs::read_to_string(&path).unwrap();
        for (at, line) in text.lines().enumerate() {
            assert!(!is_long(line), "{}:{}: over {COLUMNS} columns", path.display(), at + 1);
        }
    }
}

/// Tables and blocks of commands and output may be as wide as what they show.
#[test]
fn prose_fits() {
    for path in files("md") {
        let text = fs::read_to_string(&path).unwrap();
        let mut fenced = false;
        for (at, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let block = fenced || line.starts_with("    ") || line.trim_start().starts_with('|');
            let only_a_link = line.trim().split(' ').count() == 1;
            assert!(
                block || only_a_link || !is_long(line),
                "{}:{}: over {COLUMNS} columns",
                path.display(),
                at + 1
            );
        }
    }
}

/// Every path that the map names in backticks exists, from the repository's root or in the folder its section speaks
/// of.
#[test]
fn the_map_names_what_is_there() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let crates = ["sim", "exec", "lab", "flow", "cilk", "cli", "cudart"];
    let mut bases = vec![root()];
    bases.extend(crates.map(|name| root().join("crates").join(name).join("src")));
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| {
        let plain = span.chars().all(|c| c.is_alphanumeric() || "/_.-".contains(c));
        plain && (span.contains('/') || span.ends_with(".rs"))
    });
    let missing: Vec<&str> =
        paths.filter(|path| !bases.iter().any(|base| base.join(path).exists())).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
