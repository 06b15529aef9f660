//! The source that a page shows beside its hot lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use warploom::profile::Profile;

use crate::sources::{Sources, split};

/// Lines shown before and after one that took time.
const AROUND: usize = 12;

/// Listings of all files with lines that took time: their name, and lines as pairs of number and text. What lies far
/// from such a line is left out. A file that is not found, but whose lines are those of the PTX, is listed from the
/// instructions that were executed.
pub(super) fn listings(profile: &Profile, sources: &mut Sources<'_>) -> Value {
    let mut hot: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for line in profile.lines.iter().filter(|line| line.counts.warp_cycles > 0) {
        if let Some((file, number)) = split(&line.line) {
            hot.entry(file).or_default().insert(number);
        }
    }
    let mut listings = Vec::new();
    for (file, numbers) in hot {
        let lines: Vec<(usize, String)> = match sources.lines(file) {
            Some(text) => {
                let near = |number: usize| {
                    numbers.range(number.saturating_sub(AROUND)..=number + AROUND).next().is_some()
                };
                let numbered = (1..).zip(text).filter(|(number, _)| near(*number));
                numbered.map(|(number, line)| (number, line.clone())).collect()
            }
            None => executed(profile, file).into_iter().collect(),
        };
        if !lines.is_empty() {
            listings.push(json!({ "file": file, "lines": lines }));
        }
    }
    json!(listings)
}

/// The executed instructions of a PTX file or listing, by line.
fn executed(profile: &Profile, file: &str) -> BTreeMap<usize, String> {
    let of_file = profile.instructions.iter().filter(|instruction| instruction.line == instruction.at);
    let placed = of_file.filter_map(|instruction| Some((split(&instruction.line)?, &instruction.text)));
    placed.filter(|((of, _), _)| *of == file).map(|((_, number), text)| (number, text.to_string())).collect()
}
