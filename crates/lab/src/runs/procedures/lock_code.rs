//! Counts the instructions of locks, in the code that the chip runs and not in the PTX.

use crate::runs::{Metrics, Procedure, RunError};

/// Name of the figure, and the PTX whose instructions are counted.
const LOCKS: [(&str, &str); 6] = [
    // Listing 2; Listing 3 shows its machine code.
    ("spin_lock", "LOCK: atom.shared.cas.b32 old, [word], 0, 1; setp.ne.s32 p, old, 0; @p bra LOCK;"),
    // The one atomic of Listing 1: it sets a mutex that is known to be free, or tries for the lock bit once.
    ("atomic", "atom.shared.exch.b32 old, [word], 1;"),
    ("spin_unlock", "atom.shared.exch.b32 old, [word], 0;"),
    // Listing 4.
    ("tiny_lock", "wl.ldslk.shared.b32 _, [word];"),
    ("tiny_waitlock", "LOCK: wl.ldslk.shared.b32 _|p, [word]; @!p bra LOCK;"),
    ("tiny_unlock", "wl.stsul.shared.b32 [word], 0;"),
];

/// Measures the instructions of each lock, less those of an empty kernel.
pub(crate) static LOCK_CODE: Procedure = Procedure {
    name: "lock-code",
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
            code.ok_or_else(|| RunError::Invalid("only a simulated chip shows its code".to_string()))
        };
        let around = length("")?;
        let mut metrics = Metrics::new();
        for (name, body) in LOCKS {
            metrics = metrics.with(name, length(body)?.saturating_sub(around));
        }
        Ok(metrics)
    },
};
