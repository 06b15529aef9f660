//! `atom` and `red`: every operation and type, in global and shared memory and through generic addresses, with
//! several lanes on one address. The lanes of a warp are served in order.

use half::{bf16, f16};
use warploom::Launch;

use super::{check, check_threads, kernel, kernel_after, module};
use crate::support::{MACHINES, Machine, Outcome, Random, Run};

/// The new value from the old value and the operands, in the low bits of 64.
type Reference = fn(u64, u64, u64) -> u64;

/// Wraps a function on one type as a [`Reference`].
macro_rules! on {
    ($ty:ty, $f:expr) => {
        |a, b, _| {
            let f: fn($ty, $ty) -> $ty = $f;
            f(a as $ty, b as $ty) as u64
        }
    };
}

/// Wraps a function on a signed type, given its unsigned type of the same size.
macro_rules! signed {
    ($ty:ty, $bits:ty, $f:expr) => {
        |a, b, _| {
            let f: fn($ty, $ty) -> $ty = $f;
            f(a as $ty, b as $ty) as $bits as u64
        }
    };
}

fn add_f32(a: u64, b: u64, _: u64) -> u64 {
    u64::from((f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits())
}

fn add_f64(a: u64, b: u64, _: u64) -> u64 {
    (f64::from_bits(a) + f64::from_bits(b)).to_bits()
}

/// Sums of halves are exact in f64 for the small integers used here.
fn add_f16(a: u64, b: u64, _: u64) -> u64 {
    let wide = |v: u64| f16::from_bits(v as u16).to_f64();
    u64::from(f16::from_f64(wide(a) + wide(b)).to_bits())
}

fn add_bf16(a: u64, b: u64, _: u64) -> u64 {
    let wide = |v: u64| bf16::from_bits(v as u16).to_f64();
    u64::from(bf16::from_f64(wide(a) + wide(b)).to_bits())
}

fn pairs(f: Reference, a: u64, b: u64) -> u64 {
    f(a & 0xffff, b & 0xffff, 0) | f(a >> 16 & 0xffff, b >> 16 & 0xffff, 0) << 16
}

/// Converts a small operand to the type's representation.
#[derive(Clone, Copy)]
enum Input {
    Bits,
    F16,
    BF16,
    F32,
    F64,
}

impl Input {
    fn of(self, bits: u64) -> u64 {
        let small = (bits >> 40) as i64 % 17 - 8;
        let half = |n: i64| u64::from(f16::from_f64(n as f64).to_bits());
        let bfloat = |n: i64| u64::from(bf16::from_f64(n as f64).to_bits());
        match self {
            Input::Bits => bits,
            Input::F16 => half(small) | half(small + 1) << 16,
            Input::BF16 => bfloat(small) | bfloat(small + 1) << 16,
            Input::F32 => u64::from((small as f32 * 0.1).to_bits()),
            Input::F64 => (small as f64 * 0.1).to_bits(),
        }
    }
}

/// (operation and type, bits, input, reference).
const OPERATIONS: &[(&str, u32, Input, Reference)] = &[
    ("add.u32", 32, Input::Bits, on!(u32, u32::wrapping_add)),
    ("add.s32", 32, Input::Bits, on!(u32, u32::wrapping_add)),
    ("add.u64", 64, Input::Bits, on!(u64, u64::wrapping_add)),
    ("add.f32", 32, Input::F32, add_f32),
    ("add.f64", 64, Input::F64, add_f64),
    ("add.noftz.f16", 16, Input::F16, add_f16),
    ("add.noftz.bf16", 16, Input::BF16, add_bf16),
    ("add.noftz.f16x2", 32, Input::F16, |a, b, _| pairs(add_f16, a, b)),
    ("add.noftz.bf16x2", 32, Input::BF16, |a, b, _| pairs(add_bf16, a, b)),
    ("min.u32", 32, Input::Bits, on!(u32, |a, b| a.min(b))),
    ("max.u32", 32, Input::Bits, on!(u32, |a, b| a.max(b))),
    ("min.s32", 32, Input::Bits, signed!(i32, u32, |a, b| a.min(b))),
    ("max.s32", 32, Input::Bits, signed!(i32, u32, |a, b| a.max(b))),
    ("min.u64", 64, Input::Bits, on!(u64, |a, b| a.min(b))),
    ("max.u64", 64, Input::Bits, on!(u64, |a, b| a.max(b))),
    ("min.s64", 64, Input::Bits, signed!(i64, u64, |a, b| a.min(b))),
    ("max.s64", 64, Input::Bits, signed!(i64, u64, |a, b| a.max(b))),
    ("and.b32", 32, Input::Bits, on!(u32, |a, b| a & b)),
    ("or.b32", 32, Input::Bits, on!(u32, |a, b| a | b)),
    ("xor.b32", 32, Input::Bits, on!(u32, |a, b| a ^ b)),
    ("and.b64", 64, Input::Bits, on!(u64, |a, b| a & b)),
    ("or.b64", 64, Input::Bits, on!(u64, |a, b| a | b)),
    ("xor.b64", 64, Input::Bits, on!(u64, |a, b| a ^ b)),
    ("inc.u32", 32, Input::Bits, on!(u32, |a, b| if a >= b { 0 } else { a + 1 })),
    ("dec.u32", 32, Input::Bits, on!(u32, |a, b| if a == 0 || a > b { b } else { a - 1 })),
    ("exch.b32", 32, Input::Bits, on!(u32, |_, b| b)),
    ("exch.b64", 64, Input::Bits, on!(u64, |_, b| b)),
    ("cas.b16", 16, Input::Bits, |a, b, c| if a as u16 == b as u16 { c } else { a }),
    ("cas.b32", 32, Input::Bits, |a, b, c| if a as u32 == b as u32 { c } else { a }),
    ("cas.b64", 64, Input::Bits, |a, b, c| if a == b { c } else { a }),
];

/// Where the cells are, and how they are addressed.
const SPACES: [&str; 4] = [".global", ".shared", " generic global", " generic shared"];

/// 32 threads on four cells of 8 bytes. `out` receives the cells and then the value that each thread found.
fn text(operation: &str, bits: u32, space: &str, returns: bool) -> String {
    let register = match bits {
        16 => "%h",
        32 => "%r3",
        _ => "%d3",
    };
    let (found, b, c) = (format!("{register}1"), format!("{register}2"), format!("{register}3"));
    let operands = if operation.starts_with("cas") { format!("{b}, {c}") } else { b.clone() };
    let suffix = space.strip_prefix('.').map_or(String::new(), |s| format!(".{s}"));
    // The thread's cell in %d5, as an address of the space or a generic one.
    let address = match space {
        ".global" | " generic global" => "and.b32 %r5, %r2, 3;\nmad.wide.u32 %d5, %r5, 8, %d0;",
        ".shared" => "and.b32 %r5, %r2, 3;\nmov.u64 %d6, cells;\nmad.wide.u32 %d5, %r5, 8, %d6;",
        _ => {
            "and.b32 %r5, %r2, 3;\nmov.u64 %d6, cells;\ncvta.shared.u64 %d6, %d6;\nmad.wide.u32 %d5, %r5, 8, %d6;"
        }
    };
    let back = match space {
        ".shared" | " generic shared" => "@%p1 ld.shared.u64 %d10, [%d7];\n@%p1 st.global.u64 [%d8], %d10;",
        _ => "",
    };
    let call = if returns {
        format!("atom{suffix}.{operation} {found}, [%d5], {operands};\nst.global.b{bits} [%d9], {found};")
    } else {
        format!("red{suffix}.{operation} [%d5], {operands};")
    };
    kernel_after(
        ".shared .align 8 .b64 cells[4];",
        1,
        &format!(
            "setp.lt.u32 %p1, %r2, 4;
            mov.u64 %d7, cells;
            mad.wide.u32 %d7, %r2, 8, %d7;
            mad.wide.u32 %d8, %r2, 8, %d0;
            @%p1 ld.global.u64 %d10, [%d8];
            @%p1 st.shared.u64 [%d7], %d10;
            bar.sync 0;
            {address}
            mad.wide.u32 %d9, %r2, 8, %d0;
            add.u64 %d9, %d9, 32;
            mad.wide.u32 %d11, %r2, 16, %d1;
            ld.global.b{bits} {b}, [%d11];
            ld.global.b{bits} {c}, [%d11+8];
            {call}
            bar.sync 0;
            {back}",
        ),
    )
}

#[test]
fn every_operation_type_and_space() {
    let mut failures = Vec::new();
    for &(operation, bits, input, reference) in OPERATIONS {
        for space in SPACES {
            for returns in [true, false] {
                if !returns && (operation.starts_with("cas") || operation.starts_with("exch")) {
                    continue;
                }
                for machine in MACHINES {
                    if let Err(error) = one(machine, operation, bits, input, reference, space, returns) {
                        let verb = if returns { "atom" } else { "red" };
                        failures.push(format!("{verb}{space}.{operation} on {machine}: {error}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

fn one(
    machine: Machine,
    operation: &str,
    bits: u32,
    input: Input,
    reference: Reference,
    space: &str,
    returns: bool,
) -> Outcome {
    let keep = |v: u64| if bits == 64 { v } else { v & ((1 << bits) - 1) };
    let mut random = Random::new(u64::from(bits));
    // Small numbers for inc, dec and cas, which compare; all bits for the others.
    let compares = ["inc", "dec", "cas"].iter().any(|op| operation.starts_with(op));
    let mut value = || if compares { random.next() % 3 } else { input.of(random.next()) };
    let operands: Vec<[u64; 2]> = (0..32).map(|_| [value(), value()]).collect();
    let start: Vec<u64> = (0..4).map(|_| keep(value())).collect();
    let mut expected = start.clone();
    for (thread, [b, c]) in operands.iter().enumerate() {
        let cell = thread % 4;
        let old = expected[cell];
        expected[cell] = keep(reference(old, keep(*b), keep(*c)));
        expected.push(if returns { old } else { 0 });
    }
    let mut first = start;
    first.resize(36, 0);

    let mut gpu = machine.small();
    let module = gpu.load_ptx(&text(operation, bits, space, returns))?;
    let kernel = module.kernel("k")?;
    let mut run = Run { gpu, kernel, exact: true, launches: Vec::new() };
    let (out, input) = (run.gpu.buffer(&first)?, run.gpu.buffer(&operands)?);
    run.launch(Launch::grid(1).block(32), warploom::args![&out, &input])?;
    let hex = |words: Vec<u64>| words.iter().map(|w| format!("{w:#x}")).collect::<Vec<_>>();
    crate::support::same("cells and olds", &hex(out.read(&run.gpu)?), &hex(expected))
}

/// All threads of all CTAs increment one counter: every number is returned exactly once.
#[test]
fn tickets() {
    let body = "
        atom.global.add.u32 %r5, [%d0], 1;
        mad.wide.u32 %d5, %r5, 4, %d0;
        atom.global.exch.b32 %r6, [%d5+4], 1;
        add.u32 %r6, %r6, 1;
        atom.global.max.u32 %r7, [%d0+4804], %r6;";
    let mut expected = vec![1200];
    expected.extend([1; 1200]);
    expected.push(1);
    check(&kernel(1, body), Launch::grid(12).block(100), &[0], &expected);
}

/// Orders, scopes and sinks are accepted wherever the manual allows them.
#[test]
fn orders_and_scopes() {
    let body = "
        atom.global.relaxed.gpu.add.u32 %r5, [%d2], 1;
        atom.acquire.cta.global.add.u32 %r5, [%d2], 2;
        atom.release.sys.global.add.u32 _, [%d2], 4;
        atom.acq_rel.gpu.global.cas.b32 %r5, [%d2], 7, 15;
        red.relaxed.gpu.global.add.u32 [%d2], 16;
        fence.acq_rel.gpu;
        ld.acquire.gpu.global.u32 %r6, [%d2];
        add.u32 %r6, %r6, %r5;
        st.release.gpu.global.u32 [%d2], %r6;";
    check_threads(&kernel(1, body), (2, 40), &[0], |_| [31 + 7]);
}

/// An atomic that is predicated off does not change its result register.
#[test]
fn guarded() {
    let body = "
        and.b32 %r5, %r2, 1;
        setp.eq.u32 %p1, %r5, 1;
        mov.u32 %r6, 77;
        @%p1 atom.global.add.u32 %r6, [%d2], 5;
        mul.lo.u32 %r6, %r6, 256;
        red.global.add.u32 [%d2], %r6;";
    check_threads(&kernel(1, body), (1, 50), &[0], |i| [if i % 2 == 1 { 5 } else { 77 * 256 }]);
}

/// One instruction whose lanes access both global and shared memory.
#[test]
fn one_instruction_two_spaces() {
    let text = module(
        ".visible .entry k(.param .u64 out, .param .u64 in) {
            .reg .pred %p<4>;
            .reg .b32 %r<8>;
            .reg .b64 %d<8>;
            .shared .align 4 .u32 sum;
            ld.param.u64 %d0, [out];
            mov.u64 %d1, sum;
            cvta.shared.u64 %d1, %d1;
            mov.u32 %r0, %tid.x;
            setp.eq.u32 %p0, %r0, 0;
            @%p0 st.u32 [%d1], 1000;
            bar.sync 0;
            and.b32 %r1, %r0, 1;
            setp.eq.u32 %p1, %r1, 1;
            selp.b64 %d2, %d1, %d0, %p1;
            atom.add.u32 %r2, [%d2], %r0;
            bar.sync 0;
            ld.u32 %r3, [%d1];
            @%p0 st.global.u32 [%d0+4], %r3;
            ret;
        }",
    );
    check(&text, Launch::grid(1).block(64), &[0], &[31 * 32, 1000 + 32 * 32]);
}
