//! How many instructions locks are made of: counted in the code that a chip runs, not in the text.

use crate::repro::{Metrics, RunError, Task};

/// Names of the counts, and the PTX of each.
const LOCKS: [(&str, &str); 6] = [
    // Listing 2, and what Listing 3 shows it to be.
    ("spin_lock", "LOCK: atom.shared.cas.b32 old, [word], 0, 1; setp.ne.s32 p, old, 0; @p bra LOCK;"),
    // One atomic, as in Listing 1: to set a mutex that is known to be free, or to go round its loop for the bit once.
    ("atomic", "atom.shared.exch.b32 old, [word], 1;"),
    ("spin_unlock", "atom.shared.exch.b32 old, [word], 0;"),
    // Listing 4.
    ("tiny_lock", "wl.ldslk.shared.b32 _, [word];"),
    ("tiny_waitlock", "LOCK: wl.ldslk.shared.b32 _|p, [word]; @!p bra LOCK;"),
    ("tiny_unlock", "wl.stsul.shared.b32 [word], 0;"),
];

/// Instructions of each lock, without those around it.
pub static LOCK_CODE: Task = Task {
    name: "lock-code",
    about: "instructions of locks and their releases, as the chip's code has them",
    params: &[],
    choices: &[],
    run: |context| {
        let mut gpu = context.device()?;
        let mut length = |body: &str| -> Result<usize, RunError> {
            let text = format!(
                ".version 4.0\n.target sm_20\n.address_size 64\n.shared .align 4 .b32 word[1];\n\
                 .visible .entry lock() {{ .reg .pred p; .reg .b32 old;\n{body}\nret; }}\n"
            );
            let kernel = gpu.load_ptx_named("lock.ptx", &text)?.kernel("lock")?;
            let code = kernel.program().map(|program| program.code.len());
            code.ok_or_else(|| RunError::Described("only a simulated chip shows its code".to_string()))
        };
        let around = length("")?;
        let mut metrics = Metrics::new();
        for (name, body) in LOCKS {
            metrics = metrics.with(name, length(body)?.saturating_sub(around));
        }
        Ok(metrics)
    },
};
