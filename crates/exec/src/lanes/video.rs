//! Video instructions. Nothing is lost before the result is clamped: 128 bits hold the largest shift and product.

use warploom_isa::{Cmp, Video, VideoMad, VideoOp};

use crate::lanes::vector::{Filled, Source, lanes};

#[inline(never)]
pub(super) fn compute_rare<const N: usize>(
    video: Video,
    a: Source<'_, N>,
    b: Source<'_, N>,
    c: Source<'_, N>,
) -> Filled<N> {
    Filled::Word(lanes(|i| one_lane(video, a.lo[i], b.lo[i], c.lo[i])))
}

fn one_lane(video: Video, a: u32, b: u32, c: u32) -> u32 {
    let Video { bits, a_signed, b_signed, d_signed, clamp, summed, .. } = video;
    if let VideoOp::Mad(mad) = video.op {
        return multiply(video, mad, a, b, c);
    }
    let bits = u32::from(bits);
    let keep = u32::MAX >> (32 - bits);
    let mut result = if summed == 0 { 0 } else { c };
    for part in 0..32 / bits {
        let (x, y) = (extend(a >> (part * bits), bits, a_signed), extend(b >> (part * bits), bits, b_signed));
        let mut found = apply(video.op, x, y);
        if clamp != 0 {
            found = clamped(found, u32::from(clamp), d_signed);
        }
        if summed == 0 {
            result |= (found as u32 & keep) << (part * bits);
        } else if summed >> part & 1 == 1 {
            result = result.wrapping_add(found as u32);
        }
    }
    result
}

fn apply(op: VideoOp, x: i128, y: i128) -> i128 {
    let count = |wrap: bool| if wrap { y & 31 } else { y.min(32) };
    match op {
        VideoOp::Add => x + y,
        VideoOp::Sub => x - y,
        VideoOp::AbsDiff => (x - y).abs(),
        VideoOp::Min => x.min(y),
        VideoOp::Max => x.max(y),
        VideoOp::Average => (x + y + i128::from(x + y >= 0)) >> 1,
        VideoOp::Shl(wrap) => x << count(wrap),
        VideoOp::Shr(wrap) => x >> count(wrap),
        VideoOp::Set(cmp) => i128::from(match cmp {
            Cmp::Eq => x == y,
            Cmp::Ne => x != y,
            Cmp::Lt => x < y,
            Cmp::Le => x <= y,
            Cmp::Gt => x > y,
            _ => x >= y,
        }),
        VideoOp::Mad(_) => unreachable!("products have a function of their own"),
    }
}

fn multiply(video: Video, mad: VideoMad, a: u32, b: u32, c: u32) -> u32 {
    let Video { a_signed, b_signed, d_signed, clamp, .. } = video;
    let mut product = extend(a, 32, a_signed) * extend(b, 32, b_signed);
    let mut addend = extend(c, 32, d_signed);
    let one = mad.plus_one || mad.negative_product || mad.negative_c;
    if mad.negative_product {
        product = !product;
    }
    if mad.negative_c {
        addend = !addend;
    }
    let sum = (product + addend + i128::from(one)) >> mad.shift;
    if clamp == 0 {
        return sum as u32;
    }
    clamped(sum, 32, a_signed || b_signed || mad.negative_product || mad.negative_c) as u32
}

/// The low bits of a word as a number.
fn extend(word: u32, bits: u32, signed: bool) -> i128 {
    let top = 32 - bits;
    if signed { i128::from((word << top) as i32 >> top) } else { i128::from(word << top >> top) }
}

fn clamped(value: i128, bits: u32, signed: bool) -> i128 {
    let (least, most) =
        if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    value.clamp(least, most)
}
