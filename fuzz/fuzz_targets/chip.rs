//! Any text is a chip or an error that can be shown. Lines above a line `---` are overrides, as `--set` takes them;
//! with nothing below it, they are overrides of a built-in chip.

#![no_main]

use warploom_sim::Chip;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (set, text) = text.split_once("---\n").unwrap_or(("", text));
    let set: Vec<String> = set.lines().map(str::to_string).collect();
    let text = if text.is_empty() { warploom_chips::CHIPS[0].1 } else { text };
    if let Err(error) = Chip::parse("fuzz", text, &set) {
        assert!(!error.to_string().is_empty());
    }
});
