//! Formats operands and results.

use warploom::isa::Ty;

use super::bound::value;
use super::case::Slot;

/// The bits, and their value where that is not obvious: `0x3fc00000 = 1.5`.
pub(crate) fn show(slot: Slot, bits: u64) -> String {
    let Slot::Value(ty) = slot else { return if bits & 1 == 1 { "true" } else { "false" }.to_string() };
    let digits = slot.bytes() * 2;
    let hex = format!("{bits:#0width$x}", width = digits + 2);
    let pair = |half: Ty| {
        let part = |shift: u32| number(half, bits >> shift & 0xffff);
        format!("{hex} = {{{}, {}}}", part(0), part(16))
    };
    match ty {
        Ty::F16x2 => pair(Ty::F16),
        Ty::BF16x2 => pair(Ty::BF16),
        Ty::U16x2 | Ty::S16x2 => pair(if ty == Ty::S16x2 { Ty::S16 } else { Ty::U16 }),
        Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 => hex,
        ty => format!("{hex} = {}", number(ty, bits)),
    }
}

fn number(ty: Ty, bits: u64) -> String {
    let shift = 64 - ty.bits();
    match value(ty, bits) {
        Some(x) if x.is_nan() => "NaN".to_string(),
        Some(x) if ty == Ty::F64 => format!("{x:e}"),
        Some(x) => format!("{:e}", x as f32),
        None if ty.is_signed() => ((bits << shift) as i64 >> shift).to_string(),
        None => (bits << shift >> shift).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_meaning() {
        assert_eq!(show(Slot::Value(Ty::F32), 0x3fc0_0000), "0x3fc00000 = 1.5e0");
        assert_eq!(show(Slot::Value(Ty::S16), 0xffff), "0xffff = -1");
        assert_eq!(show(Slot::Value(Ty::F16x2), 0x7e00_3c00), "0x7e003c00 = {1e0, NaN}");
        assert_eq!(show(Slot::Value(Ty::B64), 5), "0x0000000000000005");
        assert_eq!(show(Slot::Pred, 1), "true");
    }
}
