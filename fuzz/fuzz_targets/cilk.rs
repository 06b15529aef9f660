//! Any text is a Cilk source, whose kernels and plain program can be written, or an error that can be shown. A first
//! line that begins with `call ` is the call.

#![no_main]

use warploom_cilk::{Call, Program};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (call, source) = match text.strip_prefix("call ").and_then(|rest| rest.split_once('\n')) {
        Some(split) => split,
        None => ("f(1)", text),
    };
    match Program::parse(source) {
        Ok(program) => {
            assert!(!program.own_cuda().contains("CILK_SLOT"));
            let Ok(call) = Call::parse(call) else { return };
            if program.plain(&call, "fuzz.cilk").is_ok() {
                let arguments = vec![vec![0; 4]; call.arguments.len()];
                let _ = program.graph(&call, &arguments, 0x1000, 64, 4);
            }
        }
        Err(error) => assert!(error.line > 0 && !error.message.is_empty()),
    }
});
