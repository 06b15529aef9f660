//! What the fuzz target `listing` does, over damaged copies of our listings: whatever the damage, loading ends in a
//! module or an error that can be shown, and each kernel of a module links or is refused.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use warploom_isa::{AddressMap, FuncId, Module, link, print};

/// Listings written by hand, and PTX printed as listings.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let texts = warploom_kernels::FILES.iter().filter_map(|(path, text)| {
        if path.ends_with(".sass") {
            return Some(text.to_string());
        }
        // Larger ones say nothing new and take long.
        let small = path.ends_with(".ptx") && text.len() < 16 << 10;
        small.then(|| print::module(&warploom_ptx::load(path, text).unwrap(), None))
    });
    texts.collect()
});

/// The fuzz target's dictionary.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let quoted = include_str!("../../../fuzz/listing.dict")
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(|word| word.replace("\\x0A", "\n").replace("\\\"", "\"")).collect()
});

#[derive(Clone, Debug)]
enum Edit {
    Delete { at: Index, length: usize },
    Insert { at: Index, word: String },
    Replace { at: Index, word: String },
    Copy { from: Index, length: usize, to: Index },
    Byte { at: Index, byte: u8 },
    Cut { at: Index },
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    let word = || prop::sample::select(&WORDS[..]);
    prop_oneof![
        3 => (at(), 1..60usize).prop_map(|(at, length)| Edit::Delete { at, length }),
        6 => (at(), word()).prop_map(|(at, word)| Edit::Insert { at, word }),
        6 => (at(), word()).prop_map(|(at, word)| Edit::Replace { at, word }),
        3 => (at(), 1..200usize, at()).prop_map(|(from, length, to)| Edit::Copy { from, length, to }),
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte { at, byte }),
        1 => at().prop_map(|at| Edit::Cut { at }),
    ]
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    let place = |bytes: &[u8], at: &Index| at.index(bytes.len() + 1);
    match *edit {
        Edit::Delete { ref at, length } => {
            let at = place(bytes, at);
            bytes.drain(at..(at + length).min(bytes.len()));
        }
        Edit::Insert { ref at, ref word } => {
            let at = place(bytes, at);
            bytes.splice(at..at, word.bytes());
        }
        // A whole word of the listing, where one is there.
        Edit::Replace { ref at, ref word } => {
            let start = place(bytes, at);
            let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
            let end = start + bytes[start..].iter().take_while(|b| is_word(b)).count();
            bytes.splice(start..end, word.bytes());
        }
        Edit::Copy { ref from, length, ref to } => {
            let from = place(bytes, from);
            let piece = bytes[from..(from + length).min(bytes.len())].to_vec();
            let to = place(bytes, to);
            bytes.splice(to..to, piece);
        }
        Edit::Byte { ref at, byte } => {
            let at = place(bytes, at);
            if at < bytes.len() {
                bytes[at] = byte;
            }
        }
        Edit::Cut { ref at } => bytes.truncate(place(bytes, at)),
    }
}

fn link_all(module: &Module) {
    let addresses = AddressMap {
        variables: (0..module.variables.len() as u64).map(|i| 0x1_0000_0000 + i * 0x1000).collect(),
        ..AddressMap::default()
    };
    for (i, function) in module.functions.iter().enumerate() {
        if function.is_kernel && function.body.is_some() {
            let _ = link(module, FuncId(i as u32), &addresses);
        }
    }
}

/// The body of the fuzz target.
fn load(bytes: &[u8]) {
    match warploom_sass::load_bytes("damaged.sass", bytes) {
        Ok(module) => link_all(&module),
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            error.render(true);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_listings_load_or_fail(text in any::<Index>(), edits in prop::collection::vec(edit(), 1..8)) {
        let mut bytes = text.get(&TEXTS).clone().into_bytes();
        for edit in &edits {
            apply(&mut bytes, edit);
        }
        load(&bytes);
    }

    #[test]
    fn any_words_load_or_fail(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40)) {
        load(words.join(" ").as_bytes());
    }

    #[test]
    fn any_bytes_load_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        load(&bytes);
    }
}
