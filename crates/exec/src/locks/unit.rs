//! The lock unit of an SM: lock bits beside shared memory, in the path of its loads and stores.
//!
//! A load that locks (LDSLK) reads a word and, in the same access, the lock bit of its address. If the bit is free, the
//! load takes it. A store that unlocks (STSUL) writes a word and frees the bit. Nothing else changes a bit. The unit
//! knows no owners: any thread may free any bit. The bit follows from the low bits of the word's address, so words a
//! whole unit apart share one (ICS'15, section 3). Addresses are those of the SM's shared memory, not of the CTA's.
//!
//! Lanes of one access that name the same bit are served in lane order: the lowest gets it. That costs no time by
//! itself. Lanes on the same word read it together, as in a plain load; lanes on different words of one bit are in the
//! same bank, too, and conflict there. A 64-bit word has the bit of its lower half.
//!
//! Who took a bit is kept for statistics and explanations only.

use warploom_isa::Pc;

use crate::kit::lane_mask::LaneMask;
use crate::locks::holders::{LockStats, Taker, WarpName};

/// Who took a bit, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitHolder {
    pub taker: Taker,
    /// The word it accessed, as an offset in its CTA's shared memory.
    pub word: u32,
    /// It took the bit in an atomic, which frees it again in a few cycles.
    pub in_atomic: bool,
}

/// A warp's access to the unit.
#[derive(Clone, Copy, Debug)]
pub struct BitAccess {
    pub warp: WarpName,
    pub pc: Pc,
    /// Where the CTA's shared memory begins in that of the SM.
    pub base: u32,
    /// The instruction is part of an atomic.
    pub in_atomic: bool,
}

/// The bits of one SM.
#[derive(Clone, Debug)]
pub struct LockUnit {
    /// 1 is free.
    free: Vec<u64>,
    bits: u32,
    taken: u32,
    /// By bit, who took it last.
    holders: Vec<Option<BitHolder>>,
    /// Outcomes of the program's own attempts, in lanes. Those of atomics are not counted.
    pub stats: LockStats,
    /// Bits that were ever taken: by the program itself, and in its atomics.
    used: [Vec<u64>; 2],
    /// Lanes that tried to take a bit, and lanes that found it taken, atomics included.
    pub tries: [u64; 2],
    /// The program has changed a bit. Atomics do not count: they restore it. Reset by the reader.
    pub changed: bool,
    /// An access found a bit taken by an atomic, which frees it in a few cycles: what it found was chance. Reset by the
    /// reader.
    pub passing: bool,
}

impl LockUnit {
    /// A unit with `bits` free bits, a power of two.
    pub fn new(bits: u32) -> LockUnit {
        LockUnit {
            free: vec![u64::MAX; (bits as usize).div_ceil(64)],
            bits,
            taken: 0,
            holders: vec![None; bits as usize],
            stats: LockStats::default(),
            used: [(); 2].map(|()| vec![0; (bits as usize).div_ceil(64)]),
            tries: [0; 2],
            changed: false,
            passing: false,
        }
    }

    /// The bit of an address in the SM's shared memory.
    pub fn bit(&self, address: u32) -> u32 {
        address >> 2 & (self.bits - 1)
    }

    /// Whether the bit is free.
    pub fn is_free(&self, bit: u32) -> bool {
        self.free[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    /// The holder of a bit that is taken.
    pub fn holder(&self, bit: u32) -> Option<BitHolder> {
        self.holders[bit as usize].filter(|_| !self.is_free(bit))
    }

    /// Number of different bits taken so far by the program itself, and by its atomics.
    pub fn used(&self) -> [u64; 2] {
        [0, 1].map(|by| self.used[by].iter().map(|bits| bits.count_ones() as u64).sum())
    }

    /// Bits that are taken, and by whom.
    pub fn held(&self) -> impl Iterator<Item = (u32, BitHolder)> + '_ {
        let none = self.taken == 0;
        (0..if none { 0 } else { self.bits }).filter_map(|bit| Some((bit, self.holder(bit)?)))
    }

    /// Lanes load words at `word(lane)` of their CTA and try to take their bits. Returns those that did.
    pub fn take(&mut self, access: BitAccess, lanes: LaneMask, word: impl Fn(usize) -> u32) -> LaneMask {
        let mut taken = LaneMask::NONE;
        for lane in lanes.lanes() {
            let word = word(lane);
            let bit = self.bit(access.base + word);
            if self.is_free(bit) {
                self.free[bit as usize / 64] &= !(1 << (bit % 64));
                self.taken += 1;
                self.used[usize::from(access.in_atomic)][bit as usize / 64] |= 1 << (bit % 64);
                let taker = Taker { warp: access.warp, lane: lane as u32, pc: access.pc };
                let in_atomic = access.in_atomic;
                self.holders[bit as usize] = Some(BitHolder { taker, word, in_atomic });
                taken |= LaneMask::of(lane);
            } else {
                let holder = self.holders[bit as usize];
                let own = holder.is_some_and(|h| h.taker.warp == access.warp);
                // Lanes of one atomic wait for each other in a fixed order; another warp's is there by chance.
                self.passing |= holder.is_some_and(|h| h.in_atomic) && !(access.in_atomic && own);
                match (access.in_atomic, own) {
                    (true, _) => {}
                    (false, true) => self.stats.failed_intra += 1,
                    (false, false) => self.stats.failed_inter += 1,
                }
            }
        }
        self.tries[0] += lanes.count() as u64;
        self.tries[1] += (lanes & !taken).count() as u64;
        if !access.in_atomic {
            self.stats.acquired += taken.count() as u64;
            self.changed |= !taken.is_empty();
        }
        taken
    }

    /// Lanes store words at `word(lane)` of their CTA and free their bits, taken or not.
    pub fn release(&mut self, access: BitAccess, lanes: LaneMask, word: impl Fn(usize) -> u32) {
        for lane in lanes.lanes() {
            let bit = self.bit(access.base + word(lane));
            if !self.is_free(bit) {
                self.free[bit as usize / 64] |= 1 << (bit % 64);
                self.taken -= 1;
                self.changed |= !access.in_atomic;
            }
        }
    }
}

/// The units of the SMs that one host thread runs: one, or all of them.
#[derive(Clone, Debug, Default)]
pub struct LockUnits {
    first: u32,
    units: Vec<LockUnit>,
}

impl LockUnits {
    /// Units for SMs from `first` on; none if `bits` is 0.
    pub fn new(bits: u32, first: u32, count: u32) -> LockUnits {
        let count = if bits == 0 { 0 } else { count };
        LockUnits { first, units: (0..count).map(|_| LockUnit::new(bits)).collect() }
    }

    /// Which bits are free, of all units.
    pub fn free_bits(&self) -> Vec<u64> {
        self.units.iter().flat_map(|unit| unit.free.iter().copied()).collect()
    }

    #[inline]
    pub fn of(&self, sm: u32) -> Option<&LockUnit> {
        self.units.get((sm - self.first) as usize)
    }

    #[inline]
    pub fn of_mut(&mut self, sm: u32) -> Option<&mut LockUnit> {
        self.units.get_mut((sm - self.first) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(warp: u32) -> BitAccess {
        let warp = WarpName { cta: 0, warp };
        BitAccess { warp, pc: Pc(7), base: 0, in_atomic: false }
    }

    #[test]
    fn a_bit_is_taken_once_and_freed_by_anyone() {
        let mut unit = LockUnit::new(1024);
        assert_eq!(unit.take(access(0), LaneMask(0b1), |_| 0x40), LaneMask(0b1));
        assert!(!unit.is_free(0x10));
        assert_eq!(unit.take(access(1), LaneMask(0b1), |_| 0x40), LaneMask(0));
        assert!(!unit.is_free(0x10));
        unit.release(access(1), LaneMask(0b1), |_| 0x40);
        assert!(unit.is_free(0x10));
        unit.release(access(1), LaneMask(0b1), |_| 0x40);
        assert!(unit.is_free(0x10));
        assert_eq!(unit.take(access(1), LaneMask(0b1), |_| 0x40), LaneMask(0b1));
        let LockStats { acquired, failed_intra, failed_inter, .. } = unit.stats;
        assert_eq!((acquired, failed_intra, failed_inter), (2, 0, 1));
        assert_eq!((unit.tries, unit.used()), ([3, 1], [1, 0]));
    }

    #[test]
    fn the_lowest_lane_gets_the_bit() {
        let mut unit = LockUnit::new(1024);
        assert_eq!(unit.take(access(0), LaneMask(0b1110), |_| 8), LaneMask(0b0010));
        assert_eq!(unit.stats.failed_intra, 2);
        assert_eq!(unit.holder(2).map(|h| h.taker.lane), Some(1));
    }

    #[test]
    fn words_a_unit_apart_share_a_bit() {
        let mut unit = LockUnit::new(1024);
        assert_eq!((unit.bit(0), unit.bit(3), unit.bit(4), unit.bit(4096 + 4)), (0, 0, 1, 1));
        assert_eq!(unit.take(access(0), LaneMask(0b11), |lane| lane as u32 * 4096), LaneMask(0b01));
        assert_eq!(
            LockUnit::new(4096).take(access(0), LaneMask(0b11), |lane| lane as u32 * 4096),
            LaneMask(0b11)
        );
        assert_eq!(
            LockUnit::new(1).take(access(0), LaneMask(0b111), |lane| lane as u32 * 4),
            LaneMask(0b001)
        );
        unit.release(access(0), LaneMask(0b1), |_| 8192);
        assert!(unit.is_free(0));
    }

    #[test]
    fn ctas_have_different_bits_by_their_place() {
        let mut unit = LockUnit::new(1024);
        let second = BitAccess { warp: WarpName { cta: 1, warp: 0 }, base: 128, ..access(0) };
        assert_eq!(unit.take(access(0), LaneMask(0b1), |_| 0), LaneMask(0b1));
        assert_eq!(unit.take(second, LaneMask(0b1), |_| 0), LaneMask(0b1));
        assert_eq!(unit.take(second, LaneMask(0b1), |_| 4096 - 128), LaneMask(0));
        assert_eq!(unit.held().map(|(bit, h)| (bit, h.word)).collect::<Vec<_>>(), [(0, 0), (32, 0)]);
    }

    #[test]
    fn what_atomics_do_is_no_lock_of_the_program() {
        let mut unit = LockUnit::new(64);
        let atomic = BitAccess { in_atomic: true, ..access(0) };
        assert_eq!(unit.take(atomic, LaneMask(0b11), |_| 0), LaneMask(0b01));
        unit.release(atomic, LaneMask(0b01), |_| 0);
        assert_eq!((unit.stats.clone(), unit.changed, unit.tries), (LockStats::default(), false, [2, 1]));
        unit.take(access(0), LaneMask(0b1), |_| 0);
        assert!(unit.changed);
        assert_eq!(unit.used(), [1, 1]);
    }
}
