//! The initial content of buffers.

use half::{bf16, f16};
use warploom::isa::Ty;

/// 0, 1, 2 … as elements of a type. Integers wrap, floats round.
pub(super) fn iota(ty: Ty, count: usize) -> Vec<u8> {
    elements(ty, count, |i| match ty {
        Ty::F16 => f16::from_f64(i as f64).to_bits() as u64,
        Ty::BF16 => bf16::from_f64(i as f64).to_bits() as u64,
        Ty::F32 => (i as f32).to_bits() as u64,
        Ty::F64 => (i as f64).to_bits(),
        _ => i,
    })
}

/// Random elements, reproducible by their seed: integers over their whole range, floats from 0 up to 1.
pub fn random(ty: Ty, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    elements(ty, count, |_| {
        let bits = split_mix(&mut state);
        // As many bits as the significand has, so that rounding never reaches 1.
        let unit = |precision: u32| (bits >> (64 - precision)) as f64 / (1u64 << precision) as f64;
        match ty {
            Ty::F16 => f16::from_f64(unit(11)).to_bits() as u64,
            Ty::BF16 => bf16::from_f64(unit(8)).to_bits() as u64,
            Ty::F32 => (unit(24) as f32).to_bits() as u64,
            Ty::F64 => unit(53).to_bits(),
            _ => bits >> (64 - ty.bits()),
        }
    })
}

pub(super) fn repeat(element: &[u8], count: usize) -> Vec<u8> {
    element.repeat(count)
}

/// SplitMix64: small, fast, and good enough for inputs.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn elements(ty: Ty, count: usize, mut bits: impl FnMut(u64) -> u64) -> Vec<u8> {
    let size = ty.bytes() as usize;
    let mut bytes = Vec::with_capacity(count * size);
    for i in 0..count {
        bytes.extend_from_slice(&bits(i as u64).to_le_bytes()[..size]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting() {
        assert_eq!(iota(Ty::U8, 258)[254..], [254, 255, 0, 1]);
        assert_eq!(iota(Ty::F32, 3)[8..], 2.0f32.to_le_bytes());
        assert_eq!(iota(Ty::F16, 2)[2..], f16::ONE.to_le_bytes());
    }

    #[test]
    fn random_floats_stay_below_one() {
        let floats = random(Ty::F32, 10_000, 1);
        let floats: Vec<f32> =
            floats.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        assert!(floats.iter().all(|f| (0.0..1.0).contains(f)));
        assert!((floats.iter().sum::<f32>() / 10_000.0 - 0.5).abs() < 0.02);
    }

    #[test]
    fn seeds_decide() {
        assert_eq!(random(Ty::U32, 100, 5), random(Ty::U32, 100, 5));
        assert_ne!(random(Ty::U32, 100, 5), random(Ty::U32, 100, 6));
        // The generator's published first output for seed 0.
        assert_eq!(random(Ty::U64, 1, 0), 0xe220_a839_7b1d_cdafu64.to_le_bytes());
    }
}
