//! Statements without control flow, as PTX templates.
//!
//! `@R @L @F @G @P` are registers written (32 bits, 64 bits, f32, f64, predicate); small letters are registers read.
//! `@x` is a 32-bit register or constant, `@s` a constant below 32, `@h` one below 256, `@o` an odd one, `@B` the
//! last thread of the CTA, `@4` four different 32-bit registers. `%t0`, `%t1`, `%u0`, `%u1` (64 bits), `%q0` and
//! `%h0` … `%h2` (16 bits) are temporaries. The result of a template depends on nothing but its operands: divisors
//! are not zero, and a NaN never shows its payload or its sign.

use crate::random::Random;

/// Registers of each kind.
pub(super) const WORDS: usize = 8;
pub(super) const WIDES: usize = 4;
pub(super) const SINGLES: usize = 4;
pub(super) const DOUBLES: usize = 2;
pub(super) const PREDICATES: usize = 4;

pub(super) const INPUT_WORDS: usize = 1024;
pub(super) const LOCAL_WORDS: usize = 16;
/// Bytes per thread in the output: the final registers, then a part that is written in between.
pub(super) const OUTPUT_BYTES: usize = 160;
pub(super) const SCRATCH_AT: usize = 128;

const PLAIN: &[&str] = &[
    "add.s32 @R, @r, @x",
    "sub.s32 @R, @r, @x",
    "sub.s32 @R, @x, @r",
    "add.sat.s32 @R, @r, @x",
    "mul.lo.s32 @R, @r, @x",
    "mul.hi.u32 @R, @r, @r",
    "mul.hi.s32 @R, @r, @x",
    "mad.lo.s32 @R, @r, @x, @r",
    "mad.hi.u32 @R, @r, @r, @r",
    "mul.wide.u32 @L, @r, @x",
    "mul.wide.s32 @L, @r, @x",
    "mad.wide.u32 @L, @r, @r, @l",
    "min.s32 @R, @r, @x",
    "max.u32 @R, @r, @x",
    "abs.s32 @R, @r",
    "neg.s32 @R, @r",
    "sad.u32 @R, @r, @r, @r",
    "dp4a.s32.u32 @R, @r, @r, @r",
    "and.b32 @R, @r, @x",
    "or.b32 @R, @r, @x",
    "xor.b32 @R, @r, @x",
    "not.b32 @R, @r",
    "cnot.b32 @R, @r",
    "lop3.b32 @R, @r, @r, @r, @h",
    "shl.b32 @R, @r, @s",
    "shl.b32 @R, @r, @r",
    "shr.u32 @R, @r, @s",
    "shr.s32 @R, @r, @r",
    "shf.l.wrap.b32 @R, @r, @r, @r",
    "shf.r.clamp.b32 @R, @r, @r, @r",
    "prmt.b32 @R, @r, @r, 0x3021",
    "prmt.b32 @R, @r, @r, 0x9c47",
    "bfe.u32 @R, @r, @s, @s",
    "bfe.s32 @R, @r, @s, @s",
    "bfi.b32 @R, @r, @r, @s, @s",
    "popc.b32 @R, @r",
    "popc.b64 @R, @l",
    "clz.b32 @R, @r",
    "clz.b64 @R, @l",
    "brev.b32 @R, @r",
    "bfind.s32 @R, @r",
    "add.s64 @L, @l, @l",
    "sub.s64 @L, @l, @l",
    "mul.lo.s64 @L, @l, @l",
    "mul.hi.u64 @L, @l, @l",
    "min.s64 @L, @l, @l",
    "max.u64 @L, @l, @l",
    "and.b64 @L, @l, @l",
    "xor.b64 @L, @l, @l",
    "not.b64 @L, @l",
    "shl.b64 @L, @l, @s",
    "shr.u64 @L, @l, @r",
    "shr.s64 @L, @l, @s",
    "cvt.u64.u32 @L, @r",
    "cvt.s64.s32 @L, @r",
    "cvt.u32.u64 @R, @l",
    "cvt.sat.s32.s64 @R, @l",
    "cvt.s32.s8 @R, @r",
    "cvt.u32.u16 @R, @r",
    "mov.b64 @L, {@r, @r}",
    "mov.b64 {@R, %t0}, @l",
    "mov.b64 {%t0, @R}, @l",
    "mov.u32 @R, @x",
    "add.rn.f32 @F, @f, @f",
    "sub.rn.f32 @F, @f, @f",
    "mul.rn.f32 @F, @f, @f",
    "mul.rn.ftz.f32 @F, @f, @f",
    "add.rz.f32 @F, @f, @f",
    "fma.rn.f32 @F, @f, @f, @f",
    "fma.rm.f32 @F, @f, @f, @f",
    "div.rn.f32 @F, @f, @f",
    "sqrt.rn.f32 @F, @f",
    "rcp.rn.f32 @F, @f",
    "min.f32 @F, @f, @f",
    "max.f32 @F, @f, @f",
    "abs.f32 @F, @f",
    "neg.f32 @F, @f",
    "add.rn.f64 @G, @g, @g",
    "mul.rn.f64 @G, @g, @g",
    "fma.rn.f64 @G, @g, @g, @g",
    "fma.rp.f64 @G, @g, @g, @g",
    "div.rn.f64 @G, @g, @g",
    "sqrt.rn.f64 @G, @g",
    "max.f64 @G, @g, @g",
    "neg.f64 @G, @g",
    "cvt.rn.f32.s32 @F, @r",
    "cvt.rn.f32.u32 @F, @r",
    "cvt.rn.f32.s64 @F, @l",
    "cvt.rn.f64.s32 @G, @r",
    "cvt.rn.f64.u64 @G, @l",
    "cvt.f64.f32 @G, @f",
    "cvt.rn.f32.f64 @F, @g",
    "cvt.rzi.s32.f32 @R, @f",
    "cvt.rni.u32.f32 @R, @f",
    "cvt.rmi.s32.f64 @R, @g",
    "cvt.rpi.f32.f32 @F, @f",
    "setp.lt.s32 @P, @r, @x",
    "setp.ge.u32 @P, @r, @x",
    "setp.eq.s32 @P, @r, @x",
    "setp.ne.and.s32 @P, @r, @x, @p",
    "setp.gt.xor.u64 @P, @l, @l, !@p",
    "setp.lt.f32 @P, @f, @f",
    "setp.gtu.f32 @P, @f, @f",
    "setp.le.or.f64 @P, @g, @g, @p",
    "set.gt.u32.s32 @R, @r, @x",
    "and.pred @P, @p, @p",
    "xor.pred @P, @p, @p",
    "or.pred @P, @p, @p",
    "not.pred @P, @p",
    "selp.b32 @R, @r, @x, @p",
    "selp.b64 @L, @l, @l, @p",
    "selp.f32 @F, @f, @f, @p",
    "slct.b32.s32 @R, @r, @r, @r",
];

const LONGER: &[&str] = &[
    "or.b32 %t0, @r, 1; div.u32 @R, @x, %t0",
    "or.b32 %t0, @r, 1; rem.u32 @R, @r, %t0",
    "and.b32 %t0, @r, 255; add.s32 %t0, %t0, 1; div.s32 @R, @r, %t0",
    "and.b32 %t0, @r, 4095; add.s32 %t0, %t0, 1; rem.s32 @R, @r, %t0",
    "or.b64 %u0, @l, 1; div.u64 @L, @l, %u0",
    "or.b64 %u0, @l, 1; rem.u64 @L, @l, %u0",
    "add.cc.u32 %t0, @r, @r; addc.cc.u32 %t1, @r, @r; addc.u32 @R, %t0, %t1",
    "sub.cc.u32 %t0, @r, @r; subc.u32 @R, @r, %t0",
    "mad.lo.cc.u32 %t0, @r, @r, @r; madc.hi.u32 @R, @r, @r, %t0",
    "testp.notanumber.f32 %q0, @f; mov.b32 %t0, @f; selp.b32 @R, 0x7fc00000, %t0, %q0",
    "testp.notanumber.f64 %q0, @g; mov.b64 %u0, @g; selp.b64 @L, 0x7ff8000000000000, %u0, %q0",
    "mov.b32 @F, @r",
    "mov.b64 @G, @l",
    "cvt.u16.u32 %h0, @r; cvt.u16.u32 %h1, @r; mad.lo.u16 %h2, %h0, %h1, %h0; cvt.s32.s16 @R, %h2",
    "cvt.u16.u32 %h0, @r; cvt.u16.u32 %h1, @r; min.s16 %h2, %h0, %h1; cvt.u32.u16 @R, %h2",
    "mov.b32 {%h0, %h1}, @r; mul.wide.s16 @R, %h0, %h1",
    "mov.b32 {%h0, %h1}, @r; mov.b32 @R, {%h1, %h0}",
    "cvt.rn.f16.f32 %h0, @f; cvt.rn.f16.f32 %h1, @f; fma.rn.f16 %h2, %h0, %h1, %h0; cvt.f32.f16 @F, %h2",
    "cvt.rn.f16.f32 %h0, @f; cvt.rn.f16.f32 %h1, @f; add.rn.f16 %h2, %h0, %h1; cvt.f32.f16 @F, %h2",
    // The thread's own array, through the local space and through generic addresses.
    "and.b32 %t0, @r, 15; mad.wide.u32 %u0, %t0, 4, %local; st.local.b32 [%u0], @r",
    "and.b32 %t0, @r, 15; mad.wide.u32 %u0, %t0, 4, %local; ld.local.b32 @R, [%u0]",
    "and.b32 %t0, @r, 7; mad.wide.u32 %u0, %t0, 8, %generic; st.b64 [%u0], @l",
    "and.b32 %t0, @r, 7; mad.wide.u32 %u0, %t0, 8, %generic; ld.b64 @L, [%u0]",
    "and.b32 %t0, @r, 3; mad.wide.u32 %u0, %t0, 16, %local; ld.local.v4.b32 {@4}, [%u0]",
    "and.b32 %t0, @r, 3; mad.wide.u32 %u0, %t0, 16, %local; st.local.v4.b32 [%u0], {@4}",
    "and.b32 %t0, @r, 63; cvt.u64.u32 %u0, %t0; add.s64 %u0, %u0, %local; st.local.u8 [%u0], @r",
    "and.b32 %t0, @r, 63; cvt.u64.u32 %u0, %t0; add.s64 %u0, %u0, %local; ld.local.s8 @R, [%u0]",
    // The input is read-only.
    "and.b32 %t0, @r, 1023; mad.wide.u32 %u0, %t0, 4, %input; ld.global.u32 @R, [%u0]",
    "and.b32 %t0, @r, 511; mad.wide.u32 %u0, %t0, 8, %input; ld.global.nc.u64 @L, [%u0]",
    "and.b32 %t0, @r, 255; mad.wide.u32 %u0, %t0, 16, %input; ld.global.v4.u32 {@4}, [%u0]",
    "and.b32 %t0, @r, 2047; mad.wide.u32 %u0, %t0, 2, %input; ld.global.s16 @R, [%u0]",
    "and.b32 %t0, @r, 4095; cvt.u64.u32 %u0, %t0; add.s64 %u0, %u0, %input; ld.global.u8 @R, [%u0]",
];

/// Atomics that commute: each cell has one operation.
const CELLS: &[&str] = &[
    "red.global.add.u32 [%cells+0], @r",
    "red.global.min.u32 [%cells+8], @r",
    "red.global.max.s32 [%cells+16], @r",
    "red.global.and.b32 [%cells+24], @r",
    "red.global.or.b32 [%cells+32], @r",
    "red.global.xor.b32 [%cells+40], @r",
    "red.global.add.u64 [%cells+48], @l",
    "red.global.max.u64 [%cells+56], @l",
    "red.global.min.s64 [%cells+64], @l",
    "atom.global.xor.b64 %u0, [%cells+72], @l",
    "atom.global.add.u32 %t0, [%cells+80], @x",
    "red.global.inc.u32 [%cells+88], 1000",
    "and.b32 %t0, @r, 3; mad.wide.u32 %u0, %t0, 8, %cells; red.global.add.u32 [%u0+96], @r",
];
pub(super) const CELL_COUNT: usize = 16;

/// Stores to the thread's own part of the output.
const STORES: &[&str] = &[
    "st.global.b32 [%output+128], @r",
    "st.global.v2.b32 [%output+136], {@r, @r}",
    "st.global.v4.b32 [%output+144], {@r, @r, @r, @r}",
    "st.global.u8 [%output+133], @r",
    "st.global.u16 [%output+150], @r",
];

/// Steps that all threads of the CTA take together.
const TOGETHER: &[&str] = &[
    // Each thread writes its slot and reads the slot of another.
    "st.shared.b32 [%slot], @r; barrier.sync 0; mad.lo.u32 %t0, %tidx, @o, @s; and.b32 %t0, %t0, @B; \
     mad.lo.u32 %t0, %t0, 8, %slots; ld.shared.b32 @R, [%t0]; barrier.sync 0",
    "st.shared.b64 [%slot], @l; barrier.sync 0; xor.b32 %t0, %tidx, @s; and.b32 %t0, %t0, @B; \
     mad.lo.u32 %t0, %t0, 8, %slots; ld.shared.b64 @L, [%t0]; barrier.sync 0",
    "st.shared.v2.b32 [%slot], {@r, @r}; barrier.sync 0; add.u32 %t0, %tidx, @x; and.b32 %t0, %t0, @B; \
     mad.lo.u32 %t0, %t0, 8, %slots; ld.shared.s8 @R, [%t0+5]; barrier.sync 0",
    // The reader chooses the slot, through a generic address.
    "st.shared.b32 [%slot], @r; barrier.sync 0; and.b32 %t0, @r, @B; mad.lo.u32 %t0, %t0, 8, %slots; \
     cvt.u64.u32 %u0, %t0; cvta.shared.u64 %u0, %u0; ld.b32 @R, [%u0]; barrier.sync 0",
    // A reduction over the CTA. Each operation has its own cell.
    "red.shared.add.u32 [%sums+0], @r; barrier.sync 0; ld.shared.b32 @R, [%sums+0]; barrier.sync 0",
    "red.shared.max.u32 [%sums+8], @r; barrier.sync 0; ld.shared.b32 @R, [%sums+8]; barrier.sync 0",
    "red.shared.min.s32 [%sums+16], @r; barrier.sync 0; ld.shared.b32 @R, [%sums+16]; barrier.sync 0",
    "red.shared.xor.b32 [%sums+24], @r; barrier.sync 0; ld.shared.b32 @R, [%sums+24]; barrier.sync 0",
    "red.shared.add.u64 [%sums+32], @l; barrier.sync 0; ld.shared.b64 @L, [%sums+32]; barrier.sync 0",
    "barrier.red.popc.u32 @R, 0, @p",
    "barrier.red.and.pred @P, 0, @p",
    "barrier.red.or.pred @P, 0, !@p",
    "barrier.sync 0",
    "vote.sync.ballot.b32 @R, @p, 0xffffffff",
    "vote.sync.any.pred @P, @p, 0xffffffff",
    "vote.sync.all.pred @P, !@p, 0xffffffff",
    "shfl.sync.bfly.b32 @R, @r, @s, 31, 0xffffffff",
    "shfl.sync.idx.b32 @R|@P, @r, @r, 31, 0xffffffff",
    "shfl.sync.up.b32 @R|@P, @r, @s, 0, 0xffffffff",
    "shfl.sync.down.b32 @R|@P, @r, @s, 0x181f, 0xffffffff",
    "match.any.sync.b32 @R, @r, 0xffffffff",
    "and.b32 %t0, @r, 3; match.any.sync.b32 @R, %t0, 0xffffffff",
    "and.b32 %t0, @r, 1; match.all.sync.b32 @R|@P, %t0, 0xffffffff",
    "redux.sync.add.u32 @R, @r, 0xffffffff",
    "redux.sync.max.s32 @R, @r, 0xffffffff",
    "redux.sync.xor.b32 @R, @r, 0xffffffff",
    "bar.warp.sync 0xffffffff",
];
/// Cells for reductions over the CTA.
pub(super) const SUM_COUNT: usize = 8;

/// A step that depends on this thread alone or updates cells.
pub(super) fn leaf(random: &mut Random, in_kernel: bool) -> String {
    let template = match random.below(20) {
        0..12 => random.pick(PLAIN),
        12..17 => random.pick(LONGER),
        17..19 => random.pick(CELLS),
        _ if in_kernel => random.pick(STORES),
        _ => random.pick(PLAIN),
    };
    let text = fill(template, random, 0);
    // A predicate guards a single instruction only.
    if random.once_in(6) && !text.contains(';') {
        let not = random.pick(&["", "!"]);
        return format!("@{not}%p{} {text}", random.below(PREDICATES));
    }
    text
}

/// A step of all threads of a CTA with `block` threads.
pub(super) fn together(random: &mut Random, block: u32) -> String {
    fill(random.pick(TOGETHER), random, block)
}

fn fill(template: &str, random: &mut Random, block: u32) -> String {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template.chars();
    while let Some(c) = rest.next() {
        if c != '@' {
            out.push(c);
            continue;
        }
        let text = match rest.next().unwrap_or(' ') {
            'R' | 'r' => format!("%r{}", random.below(WORDS)),
            'L' | 'l' => format!("%l{}", random.below(WIDES)),
            'F' | 'f' => format!("%f{}", random.below(SINGLES)),
            'G' | 'g' => format!("%g{}", random.below(DOUBLES)),
            'P' | 'p' => format!("%p{}", random.below(PREDICATES)),
            'x' if random.once_in(2) => format!("%r{}", random.below(WORDS)),
            'x' => constant(random).to_string(),
            's' => random.below(32).to_string(),
            'h' => random.below(256).to_string(),
            'o' => (2 * random.below(16) + 1).to_string(),
            'B' => (block - 1).to_string(),
            '4' => {
                let first = random.below(WORDS);
                let step = 2 * random.below(WORDS / 2) + 1;
                let names: Vec<_> = (0..4).map(|i| format!("%r{}", (first + i * step) % WORDS)).collect();
                names.join(", ")
            }
            _ => String::new(),
        };
        out.push_str(&text);
    }
    out
}

/// A constant that both signed and unsigned instructions accept.
fn constant(random: &mut Random) -> i32 {
    match random.below(4) {
        0 => random.below(64) as i32,
        1 => random.pick(&[0, 1, i32::MAX, 255, 65535, 1 << 16]),
        2 => (random.next() as u32 >> 1 >> random.below(31)) as i32,
        _ => 1 << random.below(31),
    }
}
