//! Who holds which lock, as far as atomics in spin loops tell. The hardware knows no owners; this is for statistics and
//! explanations.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use warploom_isa::{AtomOp, Pc};

use crate::kit::counters::counters;
use crate::kit::lane_mask::LaneMask;
use crate::memory::address::Addresses;

/// A warp of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpName {
    pub cta: u64,
    pub warp: u32,
}

/// The thread that last took a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taker {
    pub warp: WarpName,
    pub lane: u32,
    /// The instruction that took it.
    pub pc: Pc,
}

/// Who last took each lock, by its place in memory.
#[derive(Clone, Debug)]
pub struct LockTable<Word = u64> {
    takers: FxHashMap<Word, Taker>,
    /// Who wrote such a word since it was taken, other than to take it: it was given back, perhaps by another thread.
    writers: FxHashMap<Word, Taker>,
    /// A bit for every word that was taken, by the word's hash: most stores are to other words.
    taken_words: [u64; 16],
    /// Outcomes of the attempts.
    pub stats: LockStats,
}

/// Locks in the shared memory of the CTAs of one SM: the CTA's number in the grid, and the address.
pub type SharedLocks = LockTable<(u64, u64)>;

impl<Word> Default for LockTable<Word> {
    fn default() -> Self {
        LockTable {
            takers: FxHashMap::default(),
            writers: FxHashMap::default(),
            taken_words: [0; 16],
            stats: LockStats::default(),
        }
    }
}

impl<Word: Copy + Eq + Hash> LockTable<Word> {
    /// Lanes of an atomic in a spin loop were served: those of `changed` found the lock free and took it.
    pub fn tried<const N: usize>(
        &mut self,
        (warp, pc, exclusive): (WarpName, Pc, bool),
        addresses: &Addresses<N>,
        (lanes, changed): (LaneMask, LaneMask),
        word: impl Fn(u64) -> Word,
    ) {
        for lane in lanes.lanes() {
            let address = addresses.at(lane);
            let word = word(address);
            if changed.contains(lane) {
                self.stats.acquired += 1;
                if exclusive {
                    self.takers.insert(word, Taker { warp, lane: lane as u32, pc });
                    let bit = taken_bit(address);
                    self.taken_words[bit / 64] |= 1 << (bit % 64);
                    if !self.writers.is_empty() {
                        self.writers.remove(&word);
                    }
                }
            } else if self.takers.get(&word).is_some_and(|taker| taker.warp == warp) {
                self.stats.failed_intra += 1;
            } else {
                self.stats.failed_inter += 1;
            }
        }
    }

    /// Lanes wrote words, other than to take a lock.
    #[inline]
    pub fn wrote<const N: usize>(
        &mut self,
        (warp, pc): (WarpName, Pc),
        addresses: &Addresses<N>,
        lanes: LaneMask,
        word: impl Fn(u64) -> Word,
    ) {
        if self.takers.is_empty() {
            return;
        }
        for lane in lanes.lanes() {
            let address = addresses.at(lane);
            let bit = taken_bit(address);
            if self.taken_words[bit / 64] >> (bit % 64) & 1 == 1 {
                let word = word(address);
                if self.takers.contains_key(&word) {
                    self.writers.insert(word, Taker { warp, lane: lane as u32, pc });
                }
            }
        }
    }

    /// Who took a lock, unless it was given back since.
    pub fn taker(&self, word: Word) -> Option<Taker> {
        self.takers.get(&word).filter(|_| !self.writers.contains_key(&word)).copied()
    }

    /// Who wrote a lock's word since it was taken.
    pub fn writer(&self, word: Word) -> Option<Taker> {
        self.writers.get(&word).copied()
    }
}

impl SharedLocks {
    /// Drops the locks of a CTA that has ended.
    pub fn forget(&mut self, cta: u64) {
        if !self.takers.is_empty() {
            self.takers.retain(|word, _| word.0 != cta);
            self.writers.retain(|word, _| word.0 != cta);
        }
    }
}

/// The bit of a word in the set of words that were taken.
fn taken_bit(address: u64) -> usize {
    ((address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

/// Whether an atomic that changed a word keeps others from it. Counts are changed by failed attempts, too.
pub fn is_exclusive(op: AtomOp) -> bool {
    !matches!(op, AtomOp::Add | AtomOp::Inc | AtomOp::Dec)
}

/// The offset in shared memory of a shared or generic address.
pub fn shared_offset(address: u64, window: u64) -> u64 {
    address.checked_sub(window).unwrap_or(address)
}

counters! {
    /// Attempts at locks and waits by outcome, in lanes.
    LockStats {
        acquired,
        /// Attempts that failed because a thread of the same warp held the lock.
        failed_intra,
        /// Attempts that failed because a thread of another warp held it.
        failed_inter,
        /// Waits that found their condition true.
        wait_ok,
        /// Waits that found it false.
        wait_fail,
        /// Failed attempts that were queued (`lock_queue.mode`).
        queued,
        /// Queued attempts that were granted the lock when it was released.
        granted,
        /// Failed attempts that were not queued because all ways of their set held locked lines.
        not_queued,
    }
}
