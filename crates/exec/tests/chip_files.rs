//! What the fuzz target `chip` does, over damaged copies of the built-in chips: any text and any overrides give a
//! chip or an error that can be shown.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use warploom_chips::CHIPS;
use warploom_exec::chip::Chip;

/// Every key of the built-in chips, as `--set` takes it.
static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    fn collect(prefix: &str, table: &toml::Table, keys: &mut Vec<String>) {
        for (key, value) in table {
            let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            if let toml::Value::Table(inner) = value {
                collect(&path, inner, keys);
            }
            keys.push(path);
        }
    }
    let mut keys = Vec::new();
    for (_, text) in CHIPS {
        collect("", &toml::from_str(text).unwrap(), &mut keys);
    }
    keys.sort();
    keys.dedup();
    keys
});

/// The fuzz target's dictionary: values at the edges of what a key can take, and fragments.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let quoted = include_str!("../../../fuzz/chip.dict")
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(|word| word.replace("\\x0A", "\n").replace("\\\"", "\"")).collect()
});

/// `Value` gives the key on a line another value.
#[derive(Clone, Debug)]
enum Edit {
    Value { line: Index, value: String },
    Drop { line: Index },
    Move { line: Index, to: Index },
    Insert { at: Index, word: String },
    Delete { at: Index, length: usize },
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        8 => (at(), select(&WORDS[..])).prop_map(|(line, value)| Edit::Value { line, value }),
        1 => at().prop_map(|line| Edit::Drop { line }),
        1 => (at(), at()).prop_map(|(line, to)| Edit::Move { line, to }),
        1 => (at(), select(&WORDS[..])).prop_map(|(at, word)| Edit::Insert { at, word }),
        1 => (at(), 1..40usize).prop_map(|(at, length)| Edit::Delete { at, length }),
    ]
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut text = text.to_string();
    for edit in edits {
        let mut lines: Vec<String> = text.split('\n').map(str::to_string).collect();
        match edit {
            Edit::Value { line, value } => {
                let with_values: Vec<usize> =
                    (0..lines.len()).filter(|&i| lines[i].contains(" = ")).collect();
                if !with_values.is_empty() {
                    let line = &mut lines[*line.get(&with_values)];
                    let key = line.split(" = ").next().unwrap_or_default();
                    *line = format!("{key} = {value}");
                }
                text = lines.join("\n");
            }
            Edit::Drop { line } => {
                lines.remove(line.index(lines.len()));
                text = lines.join("\n");
            }
            Edit::Move { line, to } => {
                let moved = lines.remove(line.index(lines.len()));
                lines.insert(to.index(lines.len() + 1), moved);
                text = lines.join("\n");
            }
            Edit::Insert { at, word } => {
                let mut chars: Vec<char> = text.chars().collect();
                let at = at.index(chars.len() + 1);
                chars.splice(at..at, word.chars());
                text = chars.into_iter().collect();
            }
            Edit::Delete { at, length } => {
                let mut chars: Vec<char> = text.chars().collect();
                let at = at.index(chars.len() + 1);
                chars.drain(at..(at + length).min(chars.len()));
                text = chars.into_iter().collect();
            }
        }
    }
    text
}

/// `key=value`, mostly with a key that there is.
fn assignment() -> impl Strategy<Value = String> {
    let key = prop_oneof![8 => select(&KEYS[..]), 1 => ".*"];
    let value = prop_oneof![8 => select(&WORDS[..]), 1 => ".*"];
    prop_oneof![16 => (key, value).prop_map(|(key, value)| format!("{key}={value}")), 1 => ".*"]
}

/// The body of the fuzz target.
fn parse(text: &str, overrides: &[String]) {
    if let Err(error) = Chip::parse("damaged", text, overrides) {
        assert!(!error.to_string().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_chips_or_errors(chip in select(CHIPS), edits in prop::collection::vec(edit(), 1..6)) {
        parse(&edited(chip.1, &edits), &[]);
    }

    #[test]
    fn overridden_chips_are_chips_or_errors(chip in select(CHIPS), set in prop::collection::vec(assignment(), 1..5)) {
        parse(chip.1, &set);
    }

    #[test]
    fn any_text_is_a_chip_or_an_error(text in ".*", set in prop::collection::vec(".*", 0..2)) {
        parse(&text, &set);
    }
}
