//! Any bytes load or are refused with an error that can be shown.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = warploom_ptx::load_bytes("fuzz.ptx", bytes) {
        assert!(!error.diagnostics.is_empty());
        error.render(true);
    }
});
