//! The house keeps its direction: a room imports only those below it, and inside `time` a unit only those below it.
//! That `exec` imports nothing of this crate, cargo sees to.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of the crate, top to bottom.
const ROOMS: &[&str] = &["gpu", "explain", "time"];

/// The units of the clocked machine, top to bottom. SMs, the memory side and the aggregator meet in the machine only.
const UNITS: &[&str] = &[
    "machine",
    "aggregator",
    "sm",
    "directory",
    "l2",
    "dram",
    "network",
    "sched",
    "dispatch",
    "room",
    "cache",
    "map",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The code of a file without its comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The first names after `prefix` in the code: `crate::` is followed by rooms, `crate::time::` by units.
fn names_after<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let end = |rest: &'a str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    code.match_indices(prefix)
        .map(|(at, _)| &code[at + prefix.len()..])
        .map(|rest| &rest[..end(rest)])
        .collect()
}

/// The names in `code` that stand above `name` in `order`.
fn above<'a>(code: &'a str, name: &str, prefix: &str, order: &[&str]) -> Vec<&'a str> {
    let place = |name: &str| order.iter().position(|&known| known == name);
    let here = place(name);
    assert!(here.is_some(), "`{name}` has no place in the order");
    names_after(code, prefix)
        .into_iter()
        .filter(|name| place(name).is_some_and(|to| Some(to) < here))
        .collect()
}

/// Imports upwards, from the files and folders of `order` below `root` to paths that begin with `prefix`.
fn upward(root: &Path, prefix: &str, order: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in sources(root) {
        let inside = path.strip_prefix(root).unwrap();
        let name = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        if name == "lib.rs" || name == "mod.rs" {
            continue;
        }
        let code = code(&path);
        let up = above(&code, name.trim_end_matches(".rs"), prefix, order);
        found.extend(up.into_iter().map(|to| format!("{} imports {prefix}{to}", inside.display())));
        assert!(!code.contains(&format!("use {prefix}{{")), "{}: name one room an import", inside.display());
    }
    found
}

#[test]
fn rooms_import_only_those_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(upward(&root, "crate::", ROOMS), Vec::<String>::new());
}

#[test]
fn units_of_the_machine_import_only_those_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/time");
    assert_eq!(upward(&root, "crate::time::", UNITS), Vec::<String>::new());
}

/// Below the rest of the crate `warploom-exec`, the chip knows only the kit, and the kit only itself.
#[test]
fn chip_and_kit_import_nothing_above() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exec/src");
    for (folder, known) in [("chip", &["chip", "kit"][..]), ("kit", &["kit"])] {
        for path in sources(&root.join(folder)) {
            // Macros live at the crate's root: `$crate::` names one, `use crate::{` re-exports them.
            let code = code(&path).replace("$crate::", "");
            let names = names_after(&code, "crate::");
            let above: Vec<&str> =
                names.into_iter().filter(|name| !name.is_empty() && !known.contains(name)).collect();
            assert_eq!(above, Vec::<&str>::new(), "{}", path.display());
        }
    }
}

/// `super::` must not climb out of a room.
#[test]
fn no_path_climbs_out_of_its_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&root) {
        let inside = path.strip_prefix(&root).unwrap();
        let module = if inside.ends_with("mod.rs") || inside.ends_with("lib.rs") { 1 } else { 0 };
        let depth = inside.components().count() - module;
        let climbs = "super::".repeat(depth + 1);
        assert!(!code(&path).contains(&climbs), "{}: use a path from `crate`", inside.display());
    }
}

#[test]
fn an_import_upwards_is_found() {
    let code = "use crate::time::sm::Sm;\nfn f() { crate::explain::x() }";
    assert_eq!(above(code, "time", "crate::", ROOMS), ["explain"]);
    assert_eq!(above(code, "gpu", "crate::", ROOMS), Vec::<&str>::new());
    assert_eq!(above(code, "l2", "crate::time::", UNITS), ["sm"]);
}
