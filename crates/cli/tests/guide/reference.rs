//! The reference names what is there: counters, chips, keys of chip files.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::page::Page;
use crate::shell::Folder;

fn object(folder: &Folder, command: &str) -> Value {
    let (good, lines) = folder.run(command);
    assert!(good, "{command}\n{}", lines.join("\n"));
    serde_json::from_str(&lines.join("\n")).unwrap()
}

/// Words in backticks of a page, one by one.
fn words(page: &str) -> BTreeSet<String> {
    let spans = Page::read(page).spans().into_iter();
    spans.flat_map(|(_, span)| span.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}

/// Keys of an object and of those inside it, except where `leave` says that another page has them.
fn keys(object: &Value, leave: &[&str], found: &mut BTreeSet<String>) {
    if let Value::Array(items) = object {
        items.iter().for_each(|item| keys(item, leave, found));
    }
    for (key, value) in object.as_object().into_iter().flatten() {
        found.insert(key.clone());
        if !leave.contains(&key.as_str()) {
            keys(value, leave, found);
        }
    }
}

#[test]
fn metrics_names_every_key() {
    let folder = Folder::new("metrics", true);
    let named = words("docs/metrics.md");
    let mut found = BTreeSet::new();
    for command in [
        "warploom work hashtable keys=300 buckets=4 --profile --json",
        "warploom run kernels/spinlock.ptx --entry spinlock_inc --arg buf:u32:1=zero --arg buf:u32:1=zero \
         --arg u32:1 --dump 1 --json",
    ] {
        keys(
            &object(&folder, command),
            &["profile", "params", "energy_nj", "occupancy", "error"],
            &mut found,
        );
    }
    let missing: Vec<&String> = found.iter().filter(|key| !named.contains(*key)).collect();
    assert!(missing.is_empty(), "docs/metrics.md does not name {missing:?}");
}

#[test]
fn profile_names_every_key() {
    let folder = Folder::new("profile-keys", true);
    let run = "warploom work hashtable keys=300 buckets=4 --profile --json";
    let named: BTreeSet<String> =
        words("docs/profile.md").union(&words("docs/metrics.md")).cloned().collect();
    let mut found = BTreeSet::new();
    keys(&object(&folder, run)["profile"], &[], &mut found);
    let missing: Vec<&String> = found.iter().filter(|key| !named.contains(*key)).collect();
    assert!(missing.is_empty(), "docs/profile.md does not name {missing:?}");
}

/// Keys of chip files that pages name, such as `l1.cache.sets`, exist.
#[test]
fn keys_of_chips_exist() {
    let folder = Folder::new("chip-keys", true);
    fn flat(prefix: &str, value: &Value, known: &mut BTreeSet<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            flat(&name, value, known);
            known.insert(name);
        }
    }
    let mut known = BTreeSet::new();
    let chips = object(&folder, "warploom chips --json");
    chips["chips"].as_array().unwrap().iter().for_each(|chip| flat("", chip, &mut known));
    let sections: BTreeSet<&str> = known.iter().filter_map(|key| Some(key.split_once('.')?.0)).collect();
    let mut wrong = Vec::new();
    for page in ["docs/gpgpu-sim.md", "docs/chips.md", "docs/model.md", "docs/bows.md", "docs/hangs.md"] {
        for (line, span) in Page::read(page).spans() {
            let span = span.strip_prefix("--set ").unwrap_or(&span);
            let key: String =
                span.chars().take_while(|c| c.is_ascii_alphanumeric() || "._".contains(*c)).collect();
            let section = key.split('.').next().unwrap();
            let is_key = key.contains('.')
                && sections.contains(section)
                && !key.ends_with('.')
                && !key.ends_with(".toml");
            if is_key && !known.iter().any(|other| *other == key || other.ends_with(&format!(".{key}"))) {
                wrong.push(format!("{page}:{line}: `{key}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "no chip has these keys:\n{}", wrong.join("\n"));
}

/// Lines of the summary are rows of the first table.
#[test]
fn metrics_names_every_line_of_the_summary() {
    let folder = Folder::new("summary", true);
    let page = Page::read("docs/metrics.md");
    let run = "warploom run kernels/spinlock.ptx --entry spinlock_inc --chip gtx480 --block 64 --arg buf:u32:1=zero \
               --arg buf:u32:1=zero --arg u32:2 --bows";
    let (good, lines) = folder.run(run);
    assert!(good, "{}", lines.join("\n"));
    let labels = lines.iter().filter_map(|line| line.get(..11)).map(str::trim);
    let named = |label: &str| {
        let rows = page.lines.iter().filter(|line| line.starts_with("| "));
        rows.filter_map(|row| row.split('|').nth(1))
            .any(|cell| cell.split(',').any(|name| name.trim() == label))
    };
    let missing: Vec<&str> = labels.filter(|label| !named(label)).collect();
    assert!(lines.len() > 10 && missing.is_empty(), "docs/metrics.md has no rows for {missing:?}");
}
