//! Moves, packing, selection.

use warploom_isa::{Op, Operand, PrmtMode, Ty};

use crate::lanes::vector::{Filled, Inputs, Source, blend, lanes, map1, map2, ones, spread, word};

#[inline(always)]
pub(super) fn compute<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { inst, regs, a, b, c } = inputs;
    match inst.op {
        Op::Mov(ty) => copy(ty, a),
        Op::MovPred => Filled::Pred(regs.read_pred(inst.src[0])),
        Op::Pack64 => Filled::Wide(*a.lo, *b.lo),
        Op::Pack32x16 => map2(a.lo, b.lo, |x, y| (x & 0xffff) | y << 16),
        Op::Unpack64(part) => Filled::Word(if part == 0 { *a.lo } else { *a.hi }),
        Op::Unpack32(part) => {
            let shift = u32::from(part & 1) * 16;
            map1(a.lo, |x| (x >> shift) & 0xffff)
        }
        Op::UnpackByte(part) => {
            let shift = u32::from(part & 3) * 8;
            map1(a.lo, |x| (x >> shift) & 0xff)
        }
        Op::Selp(ty) => select(a, b, &spread(regs.read_pred(inst.src[2])), ty.is_wide()),
        Op::Slct { ty, float, ftz } => {
            let mut k = [0; N];
            for i in 0..N {
                let x = c.lo[i];
                k[i] = ones(if float {
                    // Flushing turns a negative subnormal into -0.0, which is not below zero.
                    let magnitude = x & 0x7fff_ffff;
                    let zero = magnitude == 0 || (ftz && magnitude < 0x0080_0000);
                    magnitude <= 0x7f80_0000 && (x >> 31 == 0 || zero)
                } else {
                    x as i32 >= 0
                });
            }
            select(a, b, &k, ty.is_wide())
        }
        Op::Prmt(mode) => permute(mode, a, b, c, matches!(inst.src[2], Operand::Imm(_))),
        _ => Filled::Nothing,
    }
}

#[inline(always)]
pub(super) fn copy<const N: usize>(ty: Ty, a: Source<'_, N>) -> Filled<N> {
    if ty.is_wide() { Filled::Wide(*a.lo, *a.hi) } else { Filled::Word(*a.lo) }
}

/// `k ? a : b`.
#[inline(always)]
pub(super) fn select<const N: usize>(
    a: Source<'_, N>,
    b: Source<'_, N>,
    k: &[u32; N],
    wide: bool,
) -> Filled<N> {
    if wide {
        return Filled::Wide(
            lanes(|i| blend(k[i], a.lo[i], b.lo[i])),
            lanes(|i| blend(k[i], a.hi[i], b.hi[i])),
        );
    }
    word(|i| blend(k[i], a.lo[i], b.lo[i]))
}

/// The byte selectors of the named modes, for each value of the control's low two bits; byte 0's selector is in the
/// lowest nibble, as in the control word of the index mode.
const fn selectors(mode: PrmtMode) -> [u32; 4] {
    match mode {
        PrmtMode::Index => [0; 4],
        PrmtMode::F4e => [0x3210, 0x4321, 0x5432, 0x6543],
        PrmtMode::B4e => [0x5670, 0x6701, 0x7012, 0x0123],
        PrmtMode::Rc8 => [0x0000, 0x1111, 0x2222, 0x3333],
        PrmtMode::Ecl => [0x3210, 0x3211, 0x3222, 0x3333],
        PrmtMode::Ecr => [0x0000, 0x1110, 0x2210, 0x3210],
        PrmtMode::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232],
    }
}

/// One byte of `prmt`: bits 0–2 of `selector` choose a byte of `b:a`, bit 3 replicates its sign.
#[inline(always)]
fn pick(bytes: u64, selector: u32) -> u32 {
    let byte = (bytes >> (8 * (selector & 7))) as u32;
    let sign = ones(byte & 0x80 != 0);
    blend(ones(selector & 8 != 0), sign, byte) & 0xff
}

#[inline(always)]
fn permute<const N: usize>(
    mode: PrmtMode,
    a: Source<'_, N>,
    b: Source<'_, N>,
    c: Source<'_, N>,
    uniform: bool,
) -> Filled<N> {
    let table = selectors(mode);
    let control = |c: u32| if mode == PrmtMode::Index { c } else { table[(c & 3) as usize] };
    if uniform {
        // The usual case: one selector for all lanes, so that every shift count is uniform.
        let selector = control(c.lo[0]);
        return word(|i| permute_lane(a.lo[i], b.lo[i], selector));
    }
    word(|i| permute_lane(a.lo[i], b.lo[i], control(c.lo[i])))
}

#[inline(always)]
fn permute_lane(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(a) | u64::from(b) << 32;
    pick(bytes, selector)
        | pick(bytes, selector >> 4) << 8
        | pick(bytes, selector >> 8) << 16
        | pick(bytes, selector >> 12) << 24
}
