//! Chips and kernels for runs of firmware.

use warploom::{Chip, Device, Module, SimOptions, Timing};

/// The `apu` chip with overrides, simulated on so many host threads.
pub(crate) fn apu(changes: &[&str], threads: usize) -> Device {
    let changes: Vec<String> = changes.iter().map(|s| s.to_string()).collect();
    let timing = Timing { threads, ..Timing::default() };
    let options = SimOptions { timing, ..SimOptions::default() };
    Device::sim_with(Chip::load("apu", &changes).unwrap(), options)
}

/// Loads kernels, given without the module header.
pub(crate) fn load(gpu: &mut Device, kernels: &str) -> Module {
    let text = format!(".version 6.3\n.target sm_70\n.address_size 64\n{kernels}");
    gpu.load_ptx(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// `mark(out, value)`: every thread adds `value` to its word of `out`; `twice(out)` doubles it.
pub(crate) const MARK: &str = "
    .visible .entry mark(.param .u64 out, .param .u32 value) {
        .reg .b32 %r<6>;
        .reg .b64 %rd<4>;
        ld.param.u64 %rd0, [out];
        ld.param.u32 %r0, [value];
        mov.u32 %r1, %ctaid.x;
        mov.u32 %r2, %ntid.x;
        mov.u32 %r3, %tid.x;
        mad.lo.u32 %r1, %r1, %r2, %r3;
        mul.wide.u32 %rd1, %r1, 4;
        add.u64 %rd2, %rd0, %rd1;
        ld.global.u32 %r4, [%rd2];
        add.u32 %r4, %r4, %r0;
        st.global.u32 [%rd2], %r4;
        ret;
    }
    .visible .entry twice(.param .u64 out) {
        .reg .b32 %r<6>;
        .reg .b64 %rd<4>;
        ld.param.u64 %rd0, [out];
        mov.u32 %r1, %ctaid.x;
        mov.u32 %r2, %ntid.x;
        mov.u32 %r3, %tid.x;
        mad.lo.u32 %r1, %r1, %r2, %r3;
        mul.wide.u32 %rd1, %r1, 4;
        add.u64 %rd2, %rd0, %rd1;
        ld.global.u32 %r4, [%rd2];
        add.u32 %r4, %r4, %r4;
        st.global.u32 [%rd2], %r4;
        ret;
    }";
