//! The fuzz target's entry point, run on damaged copies of every PTX file of the repository. Loading must give a module
//! or an error, never a panic. The damage is the same in every run.

mod common;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn range(&mut self, len: usize, longest: usize) -> std::ops::Range<usize> {
        let start = self.below(len);
        start..(start + 1 + self.below(longest)).min(len)
    }
}

/// Fragments that have a meaning in the grammar.
const WORDS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "@",
    "!",
    "|",
    "=",
    "<",
    ">",
    ".reg .b32 %z<4294967295>;",
    "-",
    "+",
    "0x7FFFFFFFFFFFFFFF",
    "-9223372036854775808",
    "0",
    "4294967295",
    "/*",
    "*/",
    "//",
    "\"",
    "\0",
    "ü",
    ".entry",
    ".func",
    ".param",
    ".global",
    ".shared",
    ".local",
    ".align 65536",
    ".b8 x[0xFFFFFFFF]",
    "%r1",
    "%p1",
    "%rd1",
    "%tid.x",
    "_",
    "call",
    "bra",
    ".v4",
    ".b128",
    ".pred",
    ".f16x2",
    "1.0",
    "0f7FC00000",
    "WARP_SZ",
    "? 1 : 0",
    "generic(",
    "/ 0",
];

fn mutate(text: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len();
        match random.below(8) {
            0 => bytes[random.below(len)] ^= 1 << random.below(8),
            1 => bytes[random.below(len)] = random.next() as u8,
            2 => drop(bytes.drain(random.range(len, 60))),
            3 => {
                let piece = bytes[random.range(len, 40)].to_vec();
                let at = random.below(len);
                bytes.splice(at..at, piece);
            }
            4 if random.below(4) == 0 => bytes.truncate(random.below(len)),
            5 if !other.is_empty() => {
                let piece = &other[random.range(other.len(), 400)];
                let at = random.range(len, 100);
                bytes.splice(at, piece.iter().copied());
            }
            6 => {
                // Change a digit.
                let at = random.below(len);
                if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    bytes[at + digit] = b'0' + random.below(10) as u8;
                }
            }
            _ => {
                let word = WORDS[random.below(WORDS.len())];
                let at = random.range(len, 8);
                bytes.splice(at, word.bytes());
            }
        }
    }
    bytes
}

#[test]
fn damaged_texts_load_or_fail() {
    let files = common::ptx_files();
    // Bounded in bytes, so that the test takes equally long with large kernels and with small ones.
    let texts: Vec<Vec<u8>> =
        files.iter().map(|f| std::fs::read(f).unwrap()).filter(|t| t.len() < 64 << 10).collect();
    let mut random = Random(0x5EED);
    let mut budget = 40usize << 20;
    let (mut loaded, mut refused) = (0, 0);
    while budget > 0 && !texts.is_empty() {
        let text = &texts[random.below(texts.len())];
        let other = &texts[random.below(texts.len())];
        let damaged = mutate(text, other, &mut random);
        budget = budget.saturating_sub(damaged.len() + 1000);
        match warploom_ptx::load_bytes("damaged.ptx", &damaged) {
            Ok(_) => loaded += 1,
            Err(error) => {
                refused += 1;
                assert!(!error.diagnostics.is_empty());
                error.render(true);
            }
        }
    }
    // If one of them never happens, the damage is of the wrong kind.
    assert!(texts.is_empty() || (loaded > 50 && refused > 50), "{loaded} loaded, {refused} refused");
}
