//! Any bytes are a listing, whose kernels link or are refused, or an error that can be shown.

#![no_main]

use warploom_isa::{AddressMap, FuncId, link};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match warploom_sass::load_bytes("fuzz.sass", bytes) {
        Ok(module) => {
            let variables = (0..module.variables.len() as u64).map(|i| 0x1_0000_0000 + i * 0x1000).collect();
            let addresses = AddressMap { variables, ..AddressMap::default() };
            for (i, function) in module.functions.iter().enumerate() {
                if function.is_kernel && function.body.is_some() {
                    let _ = link(&module, FuncId(i as u32), &addresses);
                }
            }
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            error.render(true);
        }
    }
});
