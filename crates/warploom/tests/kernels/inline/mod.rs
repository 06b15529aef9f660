//! Small PTX texts that each test one part of the machine.

mod atomics;
mod barriers;
mod coherence;
mod communication;
mod control;
mod functions;
mod mbarriers;
mod memory;
mod narrow;
mod special;

use warploom::{Device, Launch, args};

use crate::support::{MACHINES, Machine, Outcome, Run, same};

/// A module with 64-bit addresses.
pub(crate) fn module(text: &str) -> String {
    format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}\n")
}

/// A module with a kernel `k(out, in)`. Its body finds the thread's number in the grid in `%r0`, the lane in `%r1`,
/// the thread's number in its CTA in `%r2`, `out` in `%d0`, `in` in `%d1`, the address of the thread's `words` words
/// of `out` in `%d2` and of its word of `in` in `%d3`.
pub(crate) fn kernel(words: usize, body: &str) -> String {
    kernel_after("", words, body)
}

/// Like [`kernel`], with declarations before it.
pub(crate) fn kernel_after(before: &str, words: usize, body: &str) -> String {
    let bytes = 4 * words;
    module(&format!(
        "{before}
        .visible .entry k(.param .u64 out, .param .u64 in) {{
            .reg .pred %p<16>;
            .reg .b16 %h<16>;
            .reg .b32 %r<48>;
            .reg .b64 %d<48>;
            ld.param.u64 %d0, [out];
            ld.param.u64 %d1, [in];
            mov.u32 %r2, %tid.x;
            mov.u32 %r3, %ntid.x;
            mov.u32 %r4, %ctaid.x;
            mad.lo.u32 %r0, %r4, %r3, %r2;
            mov.u32 %r1, %laneid;
            mad.wide.u32 %d2, %r0, {bytes}, %d0;
            mad.wide.u32 %d3, %r0, 4, %d1;
            {body}
            ret;
        }}"
    ))
}

/// Runs kernel `k` on a device and returns the words of `out`, which is initially zero.
fn words(gpu: Device, text: &str, launch: &Launch, input: &[u32], len: usize) -> Outcome<Vec<u32>> {
    let mut gpu = gpu;
    let module = gpu.load_ptx(text)?;
    let kernel = module.kernel("k")?;
    let mut run = Run { gpu, kernel, exact: true, launches: Vec::new() };
    let (out, input) = (run.gpu.zeros::<u32>(len)?, run.gpu.buffer(input)?);
    run.launch(launch.clone(), args![&out, &input])?;
    Ok(out.read(&run.gpu)?)
}

/// Checks `out` on these machines.
#[track_caller]
pub(crate) fn check_on(
    machines: impl IntoIterator<Item = Machine>,
    text: &str,
    launch: Launch,
    input: &[u32],
    expected: &[u32],
) {
    let mut failures = Vec::new();
    for machine in machines {
        let result = words(machine.small(), text, &launch, input, expected.len());
        if let Err(error) = result.and_then(|got| same("out", &got, expected)) {
            failures.push(format!("on {machine}: {error}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Checks `out` on every machine.
#[track_caller]
pub(crate) fn check(text: &str, launch: Launch, input: &[u32], expected: &[u32]) {
    check_on(MACHINES, text, launch, input, expected);
}

/// Checks a kernel that writes `W` words per thread: `expected` computes them from the thread's number in the grid.
#[track_caller]
pub(crate) fn check_threads<const W: usize>(
    text: &str,
    (ctas, threads): (u32, u32),
    input: &[u32],
    expected: impl Fn(u32) -> [u32; W],
) {
    let expected: Vec<u32> = (0..ctas * threads).flat_map(expected).collect();
    check(text, Launch::grid(ctas).block(threads), input, &expected);
}
