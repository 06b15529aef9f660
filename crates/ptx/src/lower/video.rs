//! Video instructions. Parts of the sources are selected by permutations of bytes, and parts of the result are merged
//! with the third operand in the same way; between them, one instruction computes.

use isa::{Clamp, Cmp, Op, Operand, PrmtMode, Ty, Video, VideoMad, VideoOp, Width};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::operand::Fit;
use super::{Builder, Result};
use crate::resolved::{self, OperandKind};

const WORDS: &[Ty] = &[Ty::U32, Ty::S32];

const COMPARISONS: &[(&str, Cmp)] =
    &[("eq", Cmp::Eq), ("ne", Cmp::Ne), ("lt", Cmp::Lt), ("le", Cmp::Le), ("gt", Cmp::Gt), ("ge", Cmp::Ge)];

/// The operation of a second step on the result and c.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    Add,
    Min,
    Max,
}

/// Takes types, comparison and mode from the opcode.
fn computation(oc: &mut Opcode<'_>, bits: u8) -> Result<Video> {
    let name = oc.mnemonic().trim_end_matches(['2', '4']);
    let d_signed = name != "vset" && oc.ty(WORDS)?.is_signed();
    let a_signed = oc.ty(WORDS)?.is_signed();
    // The count of a shift is never negative.
    let shifts = matches!(name, "vshl" | "vshr");
    let b_signed = oc.ty(if shifts { &WORDS[..1] } else { WORDS })?.is_signed();
    let mode = [("clamp", false), ("wrap", true)];
    let op = match name {
        "vadd" => VideoOp::Add,
        "vsub" => VideoOp::Sub,
        "vabsdiff" => VideoOp::AbsDiff,
        "vmin" => VideoOp::Min,
        "vmax" => VideoOp::Max,
        "vavrg" => VideoOp::Average,
        "vshl" => VideoOp::Shl(oc.need(&mode)?),
        "vshr" => VideoOp::Shr(oc.need(&mode)?),
        _ => VideoOp::Set(oc.need(COMPARISONS)?),
    };
    Ok(Video { op, bits, a_signed, b_signed, d_signed, clamp: 0, summed: 0 })
}

/// `vadd.dtype.atype.btype[.sat][.op2] d[.part], a[.part], b[.part][, c]` and its relatives on one number.
pub(super) fn scalar(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let mut video = computation(oc, 32)?;
    let saturates = oc.mnemonic() != "vset" && oc.has("sat");
    let second = oc.pick(&[("add", Second::Add), ("min", Second::Min), ("max", Second::Max)]);
    let operands = oc.operands_between(3, 4)?;
    let (d, merged) = destination(b, &operands[0])?;
    let part = merged.map(|selector| part(b, &operands[0], selector)).transpose()?;
    let joins = usize::from(second.is_some() || part.is_some());
    let operands = oc.operands_between(3 + joins, 3 + joins)?;
    if second.is_some() && part.is_some() {
        return Err(oc.error(format!("`{}` either merges its result or computes with it", oc.name())));
    }
    if saturates {
        video.clamp = part.map_or(32, |(_, bytes)| 8 * bytes as u8);
    }
    let x = source(b, &operands[1], video.a_signed)?;
    let y = source(b, &operands[2], video.b_signed)?;
    let dst = b.dst(&d, Ty::B32)?;
    if joins == 0 {
        b.emit(Op::Video(video), dst, &[x, y]);
        return Ok(());
    }
    let c = b.src(&operands[3], Ty::B32)?;
    let result = b.value(Op::Video(video), Width::One, &[x, y]);
    let ty = if video.d_signed { Ty::S32 } else { Ty::U32 };
    match (second, part) {
        (Some(Second::Add), _) => b.emit(Op::IAdd(Ty::U32, Clamp::None), dst, &[result, c]),
        (Some(Second::Min), _) => b.emit(Op::IMin(ty, Clamp::None), dst, &[result, c]),
        (Some(Second::Max), _) => b.emit(Op::IMax(ty, Clamp::None), dst, &[result, c]),
        (None, Some((first, bytes))) => {
            let order = merge_order(|byte| (byte >= first && byte < first + bytes).then(|| byte - first));
            b.emit(Op::Prmt(PrmtMode::Index), dst, &[result, c, order]);
        }
        (None, None) => unreachable!("c is there for one of them"),
    }
    Ok(())
}

/// `vmad.dtype.atype.btype[.po][.sat][.shr7|.shr15] d, [-]a[.part], [-]b[.part], [-]c`
pub(super) fn mad(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let d_signed = oc.ty(WORDS)?.is_signed();
    let (a_signed, b_signed) = (oc.ty(WORDS)?.is_signed(), oc.ty(WORDS)?.is_signed());
    let plus_one = oc.has("po");
    let clamp = if oc.has("sat") { 32 } else { 0 };
    let shift = oc.pick(&[("shr7", 7), ("shr15", 15)]).unwrap_or(0);
    let [d, x, y, c] = oc.operands()?;
    let ((x, minus_x), (y, minus_y), (c, negative_c)) = (unsigned(x), unsigned(y), unsigned(c));
    if plus_one && (minus_x || minus_y || negative_c) {
        return Err(oc.error("`.po` does not go with negated operands"));
    }
    if minus_x != minus_y && negative_c {
        return Err(oc.error("only one of the product and the third operand can be negated"));
    }
    let mad = VideoMad { negative_product: minus_x != minus_y, negative_c, plus_one, shift };
    let video = Video { op: VideoOp::Mad(mad), bits: 32, a_signed, b_signed, d_signed, clamp, summed: 0 };
    let dst = b.dst(d, Ty::B32)?;
    let (x, y, c) = (source(b, x, a_signed)?, source(b, y, b_signed)?, b.src(c, Ty::B32)?);
    b.emit(Op::Video(video), dst, &[x, y, c]);
    Ok(())
}

/// `-a` as a and true.
fn unsigned(op: &resolved::Operand) -> (&resolved::Operand, bool) {
    match &op.kind {
        OperandKind::Minus(inner) => (inner, true),
        _ => (op, false),
    }
}

pub(super) fn halves(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    several(b, oc, 2)
}

pub(super) fn bytes(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    several(b, oc, 4)
}

/// `vadd4.dtype.atype.btype[.sat|.add] d[.mask], a[.parts], b[.parts], c` and its relatives on two or four numbers.
fn several(b: &mut Builder<'_>, oc: &mut Opcode<'_>, count: u8) -> Result {
    let bits = 32 / count;
    let mut video = computation(oc, bits)?;
    let sets = matches!(video.op, VideoOp::Set(_));
    let adds = oc.has("add");
    if !sets && oc.has("sat") {
        if adds {
            return Err(oc.error("`.sat` does not go with `.add`"));
        }
        video.clamp = bits;
    }
    let [d, x, y, c] = oc.operands()?;
    let (d, selector) = destination(b, d)?;
    let all = (1 << count) - 1;
    let mask = match selector {
        Some(selector) => mask(b, &d, selector, count)?,
        None => all,
    };
    // The parts of a come first, those of b after them.
    let (word_x, word_y) = (word(b, x)?, word(b, y)?);
    let x = selected(b, x, count, (word_x, word_y), word_x)?;
    let y = selected(b, y, count, (word_x, word_y), word_y)?;
    let c = b.src(c, Ty::B32)?;
    let dst = b.dst(&d, Ty::B32)?;
    if adds {
        video.summed = mask;
    }
    if adds || mask == all {
        b.emit(Op::Video(video), dst, &[x, y, c]);
        return Ok(());
    }
    let result = b.value(Op::Video(video), Width::One, &[x, y]);
    let order = merge_order(|byte| (mask >> (byte * u32::from(count) / 4) & 1 == 1).then_some(byte));
    b.emit(Op::Prmt(PrmtMode::Index), dst, &[result, c, order]);
    Ok(())
}

/// The destination register, and the part of it that is written.
fn destination<'o>(
    b: &Builder<'_>,
    op: &'o resolved::Operand,
) -> Result<(resolved::Operand, Option<&'o str>)> {
    match &op.kind {
        OperandKind::Part(reg, selector) => {
            Ok((resolved::Operand { kind: OperandKind::Reg(*reg), span: op.span }, Some(selector)))
        }
        OperandKind::Reg(_) => Ok((op.clone(), None)),
        _ => Err(b.at(op, format!("the result of `{}` goes to a register", b.name()))),
    }
}

/// A whole register or a constant, without regard to the parts that are selected.
fn word(b: &mut Builder<'_>, op: &resolved::Operand) -> Result<Operand> {
    match op.kind {
        OperandKind::Part(reg, _) => Ok(Operand::Reg(b.register(op, reg, Ty::B32, Fit::Exact)?.0)),
        _ => b.src(op, Ty::B32),
    }
}

/// A source of one number, extended to 32 bits.
fn source(b: &mut Builder<'_>, op: &resolved::Operand, signed: bool) -> Result<Operand> {
    let whole = word(b, op)?;
    let OperandKind::Part(_, selector) = &op.kind else { return Ok(whole) };
    let (first, bytes) = part(b, op, selector)?;
    // A selector with 8 in it repeats the sign of its byte; byte 4 is of the second operand, which is zero.
    let above = if signed { 8 | (first + bytes - 1) } else { 4 };
    let order = (0..4).map(|at| if at < bytes { first + at } else { above } << (4 * at)).sum();
    Ok(b.value(Op::Prmt(PrmtMode::Index), Width::One, &[whole, Operand::Imm(0), Operand::Imm(order)]))
}

/// First byte and size of `.b0` to `.b3`, `.h0` and `.h1`.
fn part(b: &Builder<'_>, op: &resolved::Operand, selector: &str) -> Result<(u32, u32)> {
    match selector.as_bytes() {
        [b'b', at @ b'0'..=b'3'] => Ok((u32::from(at - b'0'), 1)),
        [b'h', at @ b'0'..=b'1'] => Ok((2 * u32::from(at - b'0'), 2)),
        _ => {
            Err(b.at(op, format!("there is no part `.{selector}`: `{}` has .b0 to .b3, .h0, .h1", b.name())))
        }
    }
}

/// The numbers that `.h10`, `.b31` and the like name, a bit each; the highest stands first.
fn mask(b: &Builder<'_>, op: &resolved::Operand, selector: &str, count: u8) -> Result<u8> {
    let (letter, digits) = selector.split_at(1);
    let falls = digits.as_bytes().windows(2).all(|pair| pair[0] > pair[1]);
    let fits = digits.bytes().all(|digit| (b'0'..b'0' + count).contains(&digit));
    if letter != (if count == 2 { "h" } else { "b" }) || digits.is_empty() || !falls || !fits {
        return Err(b.at(op, format!("`.{selector}` is not a mask of `{}`", b.name())));
    }
    Ok(digits.bytes().map(|digit| 1 << (digit - b'0')).sum())
}

/// The numbers of one source: `.hxy` and `.bxyzw` take them from both, in any order.
fn selected(
    b: &mut Builder<'_>,
    op: &resolved::Operand,
    count: u8,
    (x, y): (Operand, Operand),
    whole: Operand,
) -> Result<Operand> {
    let OperandKind::Part(_, selector) = &op.kind else { return Ok(whole) };
    let (letter, digits) = selector.split_at(1);
    let fits = digits.bytes().all(|digit| (b'0'..b'0' + 2 * count).contains(&digit));
    if letter != (if count == 2 { "h" } else { "b" }) || digits.len() != usize::from(count) || !fits {
        return Err(b.at(op, format!("`.{selector}` does not select the parts of `{}`", b.name())));
    }
    let bytes = 4 / u32::from(count);
    let order = digits.bytes().fold(0, |order, digit| {
        let first = bytes * u32::from(digit - b'0');
        (0..bytes).rev().fold(order, |order, at| order << 4 | (first + at))
    });
    Ok(b.value(Op::Prmt(PrmtMode::Index), Width::One, &[x, y, Operand::Imm(order)]))
}

/// The order of bytes of a result that replaces some bytes of c: `from` says which of its own each byte takes.
fn merge_order(from: impl Fn(u32) -> Option<u32>) -> Operand {
    Operand::Imm((0..4).map(|byte| from(byte).unwrap_or(4 + byte) << (4 * byte)).sum())
}
