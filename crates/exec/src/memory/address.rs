//! The addresses of a warp's access, in the patterns that kernels mostly have.

use multiversion::multiversion;
use warploom_isa::{Inst, Kernel, Operand};

use crate::kit::lane_mask::LaneMask;
use crate::lanes::all_lanes;
use crate::warp::Warp;
use crate::warp::control::Activation;

/// One address per lane.
#[derive(Clone, Copy, Debug)]
pub enum Addresses<const N: usize> {
    /// The same in every lane.
    Uniform(u64),
    /// Lane `i` is at `first + i * step`, without wrapping.
    Stride {
        first: u64,
        step: u64,
    },
    Lanes([u64; N]),
}

impl<const N: usize> Addresses<N> {
    /// Recognises the pattern of an access in which the lanes of `mask` take part.
    #[inline(always)]
    pub fn of(lanes: [u64; N], mask: LaneMask) -> Self {
        // Lanes that take no part hold anything, so only full warps are looked at.
        if mask != all_lanes::<N>() {
            return Addresses::Lanes(lanes);
        }
        let first = lanes[0];
        let step = lanes[1].wrapping_sub(first);
        // The last lane tells of most others that they have no pattern.
        if lanes[N - 1] != first.wrapping_add(step.wrapping_mul(N as u64 - 1)) {
            return Addresses::Lanes(lanes);
        }
        // From lane to lane: a product for each lane would cost the host three times as much.
        let mut off = 0u64;
        for lane in 1..N {
            off |= lanes[lane].wrapping_sub(lanes[lane - 1]) ^ step;
        }
        if off != 0 {
            Addresses::Lanes(lanes)
        } else if step == 0 {
            Addresses::Uniform(first)
        } else if first.checked_add(step.saturating_mul(N as u64)).is_some() {
            Addresses::Stride { first, step }
        } else {
            Addresses::Lanes(lanes)
        }
    }

    /// As [`Addresses::of`] for addresses of 32 bits, of which twice as many fit a vector of the host.
    #[inline(always)]
    pub(super) fn of_narrow(lanes: [u32; N], mask: LaneMask) -> Self {
        let step = lanes[1].wrapping_sub(lanes[0]);
        let [first, stride, last] = [lanes[0], step, lanes[N - 1]].map(u64::from);
        // Otherwise lanes wrap around or go downwards, or the last one tells that they have no pattern.
        let mut regular = mask == all_lanes::<N>() && first + stride * (N as u64 - 1) == last;
        if regular {
            let mut off = 0;
            for lane in 1..N {
                off |= lanes[lane].wrapping_sub(lanes[lane - 1]) ^ step;
            }
            regular = off == 0;
        }
        if !regular {
            let mut wide = [0; N];
            for (wide, lane) in wide.iter_mut().zip(lanes) {
                *wide = u64::from(lane);
            }
            Addresses::Lanes(wide)
        } else if step == 0 {
            Addresses::Uniform(first)
        } else {
            Addresses::Stride { first, step: stride }
        }
    }

    /// The addresses of an instruction: base operand plus byte offset, in every lane of `mask`.
    #[inline(always)]
    pub fn read(
        kernel: &Kernel,
        warp: &mut Warp<N>,
        activation: &Activation,
        inst: &Inst,
        wide: bool,
        mask: LaneMask,
    ) -> Self {
        let offset = match inst.src[1] {
            Operand::Imm(offset) => offset as i32 as i64 as u64,
            _ => 0,
        };
        match inst.src[0] {
            Operand::Imm(base) => Addresses::Uniform((base as u64).wrapping_add(offset)),
            Operand::Imm64(id) => Addresses::Uniform(kernel.imms[id.index()].wrapping_add(offset)),
            Operand::Frame => Addresses::Uniform((activation.frame as u64).wrapping_add(offset)),
            base if wide => {
                let mut lanes = warp.registers(activation).read64(base, &kernel.imms);
                for address in &mut lanes {
                    *address = address.wrapping_add(offset);
                }
                Addresses::of(lanes, mask)
            }
            base => {
                // 32-bit addresses wrap as 32-bit registers do.
                let mut narrow = warp.registers(activation).read32(base);
                for address in &mut narrow {
                    *address = address.wrapping_add(offset as u32);
                }
                Addresses::of_narrow(narrow, mask)
            }
        }
    }

    /// The address of one lane.
    #[inline(always)]
    pub fn at(&self, lane: usize) -> u64 {
        match self {
            Addresses::Uniform(address) => *address,
            Addresses::Stride { first, step } => first + step * lane as u64,
            Addresses::Lanes(lanes) => lanes[lane],
        }
    }

    /// The address of the block of `bytes` bytes (a power of two) that holds the first lane of `mask`, and the lanes of
    /// `mask` in that block. `mask` is not empty.
    #[inline]
    pub fn block(&self, mask: LaneMask, bytes: u64) -> (u64, LaneMask) {
        let first = self.at(mask.lowest()) & !(bytes - 1);
        if mask.0.is_power_of_two() {
            return (first, mask);
        }
        let same = match self {
            Addresses::Uniform(_) => mask,
            Addresses::Stride { step, .. } => {
                // Lanes follow each other upwards.
                let room = first + bytes - 1 - self.at(mask.lowest());
                let lanes = room / step + 1;
                let run = if lanes >= 64 { u64::MAX } else { (1 << lanes) - 1 };
                mask & LaneMask(run << mask.0.trailing_zeros())
            }
            Addresses::Lanes(lanes) => {
                let others = mask.but_lowest();
                // Two or three are faster looked at one by one.
                if others.but_lowest().but_lowest().is_empty() {
                    let here = |lane: usize| u64::from(lanes[lane] & !(bytes - 1) == first) << lane;
                    let same = others.lanes().fold(1 << mask.lowest(), |same, lane| same | here(lane));
                    return (first, LaneMask(same));
                }
                let shift = bytes.trailing_zeros();
                let number = (first >> shift) as u32;
                // Block numbers fit 32 bits in every address space, of which twice as many fit a vector of the host.
                mask & equal_lanes(&lanes.map(|address| (address >> shift) as u32), number)
            }
        };
        (first, same)
    }

    /// All addresses moved down by `base`, which is the start of a window that holds every address of `mask`.
    pub fn relative_to(self, base: u64) -> Self {
        match self {
            Addresses::Uniform(address) => Addresses::Uniform(address.wrapping_sub(base)),
            Addresses::Stride { first, step } => Addresses::Stride { first: first.wrapping_sub(base), step },
            Addresses::Lanes(lanes) => Addresses::Lanes(lanes.map(|a| a.wrapping_sub(base))),
        }
    }

    /// Whether every address of `mask` is a multiple of `bytes`, a power of two.
    #[inline(always)]
    pub fn aligned(&self, mask: LaneMask, bytes: u64) -> bool {
        let bits = bytes - 1;
        match self {
            Addresses::Uniform(address) => address & bits == 0,
            Addresses::Stride { first, step } => (first | step) & bits == 0,
            Addresses::Lanes(lanes) => {
                // Mostly all are, so the lanes that take no part are asked about only if some is not.
                lanes.iter().fold(0, |found, address| found | address) & bits == 0
                    || mask.lanes().all(|lane| lanes[lane] & bits == 0)
            }
        }
    }

    /// The lanes of `mask` whose address lies in `start .. start + room` (`room` may be 0).
    #[inline(always)]
    pub fn within(&self, mask: LaneMask, start: u64, room: u64) -> LaneMask {
        let inside = |address: u64| address.wrapping_sub(start) < room;
        match self {
            Addresses::Uniform(address) => LaneMask(mask.0 * inside(*address) as u64),
            Addresses::Stride { .. } if inside(self.at(0)) && inside(self.at(N - 1)) => mask,
            Addresses::Lanes(lanes) => {
                // Mostly all are inside, which is found out faster than who is. The bits that any lane has are a number
                // that is no less than the largest.
                if start == 0 && lanes.iter().fold(0, |bits, address| bits | address) < room
                    || lanes.iter().fold(true, |all, &address| all & inside(address))
                {
                    return mask;
                }
                let mut found = 0u64;
                for (lane, &address) in lanes.iter().enumerate() {
                    found |= (inside(address) as u64) << lane;
                }
                LaneMask(found) & mask
            }
            Addresses::Stride { .. } => mask.lanes().filter(|&l| inside(self.at(l))).collect(),
        }
    }
}

/// The lanes that hold a number, found without branches.
#[inline(always)]
pub fn equal_lanes<const N: usize>(lanes: &[u32; N], number: u32) -> LaneMask {
    let mut found = 0u64;
    for (half, lanes) in lanes.chunks(32).enumerate() {
        let mut word = 0u32;
        for (lane, &held) in lanes.iter().enumerate() {
            word |= if held == number { 1 << lane } else { 0 };
        }
        found |= (word as u64) << (32 * half);
    }
    LaneMask(found)
}

/// How far the highest of some addresses is from the lowest one, in bytes from word to word. Addresses of shared memory
/// fit 32 bits.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
pub fn span<const N: usize>(addresses: &[u64; N]) -> u32 {
    let (mut least, mut most) = (u32::MAX, 0);
    for &address in addresses {
        let word = address as u32 & !3;
        (least, most) = (least.min(word), most.max(word));
    }
    most - least
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: LaneMask = LaneMask(u32::MAX as u64);

    #[test]
    fn patterns_are_recognised() {
        let stride = Addresses::<32>::of(std::array::from_fn(|l| 4096 + 8 * l as u64), ALL);
        assert!(matches!(stride, Addresses::Stride { first: 4096, step: 8 }));
        assert!(matches!(Addresses::<32>::of([7; 32], ALL), Addresses::Uniform(7)));
        let down = Addresses::<32>::of(std::array::from_fn(|l| 4096 - 8 * l as u64), ALL);
        assert!(matches!(down, Addresses::Lanes(_)));
        assert!(matches!(Addresses::<32>::of([7; 32], LaneMask(0xffff)), Addresses::Lanes(_)));
    }

    #[test]
    fn narrow_addresses_have_the_pattern_of_wide_ones() {
        let strides = [0, 4, 0u32.wrapping_sub(4), 1 << 27, 1 << 28].into_iter();
        for step in strides {
            for first in [0, 64, 0x8000_0000, u32::MAX - 124, u32::MAX - 123, u32::MAX] {
                let mut lanes: [u32; 32] =
                    std::array::from_fn(|lane| first.wrapping_add(step.wrapping_mul(lane as u32)));
                for mask in [ALL, LaneMask(0xffff)] {
                    let [narrow, wide] =
                        [Addresses::of_narrow(lanes, mask), Addresses::of(lanes.map(u64::from), mask)];
                    assert_eq!(format!("{narrow:?}"), format!("{wide:?}"));
                }
                lanes[7] ^= 4;
                assert!(matches!(Addresses::of_narrow(lanes, ALL), Addresses::Lanes(_)));
            }
        }
    }

    #[test]
    fn a_block_has_the_lanes_that_lie_in_it() {
        let lanes: [u64; 32] = std::array::from_fn(|lane| (lane as u64 * 37) % 101 + (3 << 20));
        let addresses = Addresses::<32>::Lanes(lanes);
        for mask in [0b1, 0b10_1000, 0b1000_0001_0010, 0x8000_0111, 0x0f0f_1234, u32::MAX as u64] {
            for bytes in [4, 32, 128] {
                let first = lanes[mask.trailing_zeros() as usize] / bytes;
                let here = LaneMask(mask).lanes().filter(|&lane| lanes[lane] / bytes == first).collect();
                assert_eq!(
                    addresses.block(LaneMask(mask), bytes),
                    (first * bytes, here),
                    "{mask:b}, {bytes}"
                );
            }
        }
    }

    #[test]
    fn every_pattern_answers_like_its_lanes() {
        let patterns = [
            Addresses::<32>::Uniform(64),
            Addresses::Stride { first: 60, step: 4 },
            Addresses::Stride { first: 62, step: 4 },
            Addresses::Lanes(std::array::from_fn(|l| (l as u64 * 37) % 101)),
        ];
        for pattern in patterns {
            let lanes = Addresses::<32>::Lanes(std::array::from_fn(|l| pattern.at(l)));
            for mask in [ALL, LaneMask(0x0f0f_1234), LaneMask::of(31)] {
                for (start, room) in [(0, 200), (64, 8), (60, 125), (100, 0), (64, 1)] {
                    assert_eq!(
                        pattern.within(mask, start, room),
                        lanes.within(mask, start, room),
                        "{pattern:?}"
                    );
                }
                for bytes in [1, 2, 4, 8] {
                    // A stride says no if any lane is off, whether or not it takes part; only full warps have one.
                    if mask == ALL {
                        assert_eq!(
                            pattern.aligned(mask, bytes),
                            lanes.aligned(mask, bytes),
                            "{pattern:?} {bytes}"
                        );
                    }
                }
            }
        }
    }
}
