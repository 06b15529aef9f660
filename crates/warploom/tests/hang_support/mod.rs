//! Kernels that hang: how tests make and run them.

use warploom::{Arg, Buffer, Chip, Device, Error, Hang, Launch, SimOptions};

pub(crate) fn device(chip: &str, changes: &[&str]) -> Device {
    let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
    Device::sim_with(Chip::load(chip, &changes).expect("a built-in chip"), SimOptions::default())
}

/// The PTX of a file of `kernels/hangs/`.
pub(crate) fn example(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/hangs");
    std::fs::read_to_string(folder.join(name)).expect("the example is there")
}

pub(crate) fn run<'a>(
    gpu: &mut Device,
    text: &str,
    entry: &str,
    launch: Launch,
    args: impl AsRef<[Arg<'a>]>,
) -> Result<(), Error> {
    let module = gpu.load_ptx_named("k.ptx", text).unwrap_or_else(|e| panic!("{e}"));
    gpu.launch(module.kernel(entry).unwrap(), launch, args).map(drop)
}

#[track_caller]
pub(crate) fn hang(result: Result<(), Error>) -> Hang {
    match result {
        Err(Error::Hang { hang: Some(hang), message, .. }) => {
            assert_eq!(message, hang.to_string());
            *hang
        }
        Err(error) => panic!("it does not hang: {error}"),
        Ok(()) => panic!("it ends"),
    }
}

/// One word of global memory, zero, with a name for messages.
pub(crate) fn word(gpu: &mut Device, name: &str) -> Buffer<u32> {
    gpu.zeros_named(name, 1).unwrap()
}

/// A module with one kernel `k(a, b)`, the pointers in `%d0` and `%d1`, `%tid.x` in `%r0` and `%ctaid.x` in `%r1`.
pub(crate) fn kernel(body: &str) -> String {
    format!(
        ".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b) {{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %d<16>;
    ld.param.u64 %d0, [a];
    ld.param.u64 %d1, [b];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
{body}
    ret;
}}"
    )
}
