//! What is different between two runs: numbers, categories of warp time, lines, locks. What changed most comes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::input::{Line, Profile, Run, Word};

/// Two runs.
#[derive(Serialize)]
pub(super) struct Changes {
    pub(super) numbers: Vec<Number>,
    /// Warp time by category.
    pub(super) categories: Vec<Pair<u64>>,
    pub(super) lines: Vec<Pair<Option<Line>>>,
    pub(super) words: Vec<Pair<Option<Word>>>,
}

/// A number of a run as a whole.
#[derive(Serialize)]
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) a: Option<f64>,
    pub(super) b: Option<f64>,
}

/// Something that both runs have, or one of them.
#[derive(Serialize)]
pub(super) struct Pair<T> {
    pub(super) name: String,
    pub(super) a: T,
    pub(super) b: T,
}

impl Changes {
    pub(super) fn between(a: (&Run, &Profile), b: (&Run, &Profile)) -> Changes {
        let mut categories: Vec<Pair<u64>> =
            a.1.time
                .keys()
                .chain(b.1.time.keys())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .map(|name| {
                    let of = |profile: &Profile| profile.time.get(name).copied().unwrap_or(0);
                    Pair { name: name.replace('_', " "), a: of(a.1), b: of(b.1) }
                })
                .collect();
        categories.sort_by_key(|pair| Reverse(pair.a.abs_diff(pair.b)));
        let mut lines = match_lines(&a.1.lines, &b.1.lines);
        lines.sort_by_key(|pair| Reverse(line_time(&pair.a).abs_diff(line_time(&pair.b))));
        let mut words = match_words(&a.1.words, &b.1.words);
        words.sort_by_key(|pair| {
            let of = |word: &Option<Word>, number: fn(&Word) -> u64| word.as_ref().map_or(0, number);
            let change = |number| of(&pair.a, number).abs_diff(of(&pair.b, number));
            Reverse((change(Word::waited), change(Word::failed)))
        });
        Changes { numbers: numbers(a.0, b.0), categories, lines, words }
    }
}

pub(super) fn line_time(line: &Option<Line>) -> u64 {
    line.as_ref().map_or(0, |line| line.warp_cycles)
}

fn numbers(a: &Run, b: &Run) -> Vec<Number> {
    let energy = |run: &Run| run.energy_nj.as_ref()?.get("total").copied();
    let locks = |run: &Run, number: fn(&super::input::Locks) -> u64| Some(number(run.locks.as_ref()?) as f64);
    let number = |name, of: &dyn Fn(&Run) -> Option<f64>| Number { name, a: of(a), b: of(b) };
    let all = [
        number("cycles", &|run| Some(run.cycles as f64)),
        number("warp cycles", &|run| run.warp_cycles.map(|cycles| cycles as f64)),
        number("warp instructions", &|run| Some(run.warp_insts as f64)),
        number("IPC", &|run| run.ipc),
        number("SIMD efficiency", &|run| Some(run.simd_efficiency)),
        number("locks taken", &|run| locks(run, |locks| locks.acquired)),
        number("tries that failed", &|run| locks(run, |locks| locks.failed_intra + locks.failed_inter)),
        number("energy (nJ)", &energy),
    ];
    all.into_iter()
        .filter(|number| number.a.is_some_and(|a| a > 0.0) || number.b.is_some_and(|b| b > 0.0))
        .collect()
}

/// The lines of two versions of a source. Equal text at an equal place is the same line; then equal text in the same
/// file, for lines that moved; then an equal place, for lines whose text changed.
fn match_lines(a: &[Line], b: &[Line]) -> Vec<Pair<Option<Line>>> {
    let file = |line: &Line| line.line.rsplit_once(':').map_or(String::new(), |(file, _)| file.to_string());
    type Key<'k> = &'k dyn Fn(&Line) -> (String, String);
    let keys: [Key<'_>; 3] = [
        &|line| (line.line.clone(), line.says().to_string()),
        &|line| (file(line), line.says().to_string()),
        &|line| (line.line.clone(), String::new()),
    ];
    let mut of_b: Vec<Option<usize>> = vec![None; a.len()];
    let mut free: BTreeSet<usize> = (0..b.len()).collect();
    for key in keys {
        let mut places: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
        free.iter().rev().for_each(|&at| places.entry(key(&b[at])).or_default().push(at));
        for (at, line) in a.iter().enumerate() {
            if of_b[at].is_none()
                && let Some(found) = places.get_mut(&key(line)).and_then(Vec::pop)
            {
                of_b[at] = Some(found);
                free.remove(&found);
            }
        }
    }
    let both = a.iter().zip(of_b).map(|(line, of_b)| Pair {
        name: line.line.clone(),
        a: Some(line.clone()),
        b: of_b.map(|at| b[at].clone()),
    });
    let only_b = free.iter().map(|&at| Pair { name: b[at].line.clone(), a: None, b: Some(b[at].clone()) });
    both.chain(only_b).collect()
}

fn match_words(a: &[Word], b: &[Word]) -> Vec<Pair<Option<Word>>> {
    let by_name = |words: &[Word]| -> BTreeMap<String, Word> {
        words.iter().map(|word| (word.word.clone(), word.clone())).collect()
    };
    let (mut a, mut b) = (by_name(a), by_name(b));
    let names: BTreeSet<String> = a.keys().chain(b.keys()).cloned().collect();
    names.into_iter().map(|name| Pair { a: a.remove(&name), b: b.remove(&name), name }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: &str, text: &str, warp_cycles: u64) -> Line {
        Line { line: line.to_string(), text: text.to_string(), warp_cycles, ..Line::default() }
    }

    #[test]
    fn lines_that_moved_or_changed_are_the_same() {
        let a = [line("k:1", "mov", 1), line("k:2", "cas", 50), line("k:3", "add", 3), line("k:9", "old", 4)];
        let b = [line("k:1", "mov", 2), line("k:5", "cas", 60), line("k:3", "sub", 5), line("k:7", "new", 6)];
        let pairs = match_lines(&a, &b);
        let found: Vec<_> = pairs.iter().map(|pair| (line_time(&pair.a), line_time(&pair.b))).collect();
        assert_eq!(found, [(1, 2), (50, 60), (3, 5), (4, 0), (0, 6)]);
    }

    #[test]
    fn equal_lines_are_matched_one_to_one() {
        let a = [line("k:1", "bra", 1), line("k:2", "bra", 2)];
        let b = [line("k:4", "bra", 4), line("k:5", "bra", 5)];
        let pairs = match_lines(&a, &b);
        let found: Vec<_> = pairs.iter().map(|pair| (line_time(&pair.a), line_time(&pair.b))).collect();
        assert_eq!(found, [(1, 4), (2, 5)]);
    }
}
