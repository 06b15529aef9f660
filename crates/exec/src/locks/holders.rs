//! Who holds which lock, as far as atomics tell. The hardware knows no owners; this is for statistics and explanations.
//!
//! An atomic in a spin loop takes what the loop waits for. One outside may do so, too, without waiting: a reader that
//! counts itself in, a unit of a semaphore, a try. Or it gives something back, or counts what nobody owns. So of each
//! word it is known by how much every thread has changed it. What a thread has changed and not changed back is its
//! share.

use std::collections::hash_map::Entry;
use std::hash::Hash;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use warploom_isa::{AtomOp, Pc};

use crate::kit::counters::counters;
use crate::kit::lane_mask::LaneMask;
use crate::memory::address::Addresses;

/// A warp of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// What an atomic did to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The difference, in the word's width.
    by: u64,
    /// All bits of the word.
    width: u64,
    /// The bits that a bitwise operation changed.
    bits: Option<u64>,
}

impl Change {
    /// A sum of changes with this one, in the word's width.
    pub(crate) fn added_to(self, sum: u64) -> u64 {
        sum.wrapping_add(self.by) & self.width
    }

    /// `None` where the new value has nothing to do with the old one.
    #[inline]
    pub fn of(op: AtomOp, bits: u32, (old, new): (u64, u64)) -> Option<Change> {
        let width = u64::MAX >> (64 - bits.clamp(1, 64));
        let bitwise = matches!(op, AtomOp::And | AtomOp::Or | AtomOp::Xor);
        let counts = matches!(op, AtomOp::Add | AtomOp::Inc | AtomOp::Dec | AtomOp::Cas);
        (bitwise || counts).then(|| Change {
            by: new.wrapping_sub(old) & width,
            width,
            bits: bitwise.then_some((old ^ new) & width),
        })
    }
}

/// What a thread has taken of a word: the sum of its changes. For a lock that is a bit of the word this is the bit, for
/// a counting semaphore the number of units, and 0 when all is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub taker: Taker,
    /// [`Share::WHOLE`] if it took the whole word.
    pub net: u64,
    /// It was taken by an atomic in a spin loop. Otherwise it may be no lock, but a count that nobody gives back.
    pub waited: bool,
}

impl Share {
    /// All bits.
    pub const WHOLE: u64 = u64::MAX;
}

/// Who holds a word.
#[derive(Clone, Debug, Default)]
struct Holders {
    /// Who took it last, whether it was given back or not.
    last: Option<Taker>,
    /// In the order in which they took it.
    shares: SmallVec<[Share; 1]>,
    /// Who wrote the word last, unless it was taken since.
    writer: Option<Taker>,
    /// So many threads change the word that it is a counter and no lock.
    crowded: bool,
}

/// Most threads that are remembered as holders of a word.
const MOST_SHARES: usize = 32;

/// Most words of which changes outside of spin loops are remembered.
const MOST_CHANGED_WORDS: usize = 1 << 16;

impl Holders {
    fn share_of(&self, who: Taker) -> Option<usize> {
        self.shares.iter().position(|share| (share.taker.warp, share.taker.lane) == (who.warp, who.lane))
    }

    /// Adds a change to a thread's share. Nothing is left of what was given back.
    fn add(&mut self, at: usize, change: Change) {
        let share = &mut self.shares[at];
        share.net = if share.net == Share::WHOLE { 0 } else { change.added_to(share.net) };
        if share.net == 0 {
            self.shares.remove(at);
        }
    }

    fn push(&mut self, share: Share, exclusive: bool) {
        if self.shares.len() == MOST_SHARES {
            self.crowded = !exclusive;
            self.shares.clear();
        }
        if !self.crowded {
            self.shares.push(share);
        }
    }

    fn take(&mut self, who: Taker, change: Option<Change>, exclusive: bool) {
        self.writer = None;
        if exclusive {
            self.last = Some(who);
        }
        if self.crowded {
            return;
        }
        let Some(change) = change else {
            self.shares = smallvec![Share { taker: who, net: Share::WHOLE, waited: true }];
            return;
        };
        match self.share_of(who) {
            Some(at) => {
                self.shares[at].waited = true;
                self.add(at, change);
            }
            None => self.push(Share { taker: who, net: change.by, waited: true }, exclusive),
        }
    }

    /// A thread writes the word outside of a spin loop: it gives something back, its own or another's, or takes it
    /// without waiting.
    fn write(&mut self, who: Taker, change: Option<Change>) {
        if change.is_some_and(|change| change.by == 0) {
            return;
        }
        self.writer = Some(who);
        let Some(change) = change else { return self.shares.clear() };
        let gives_back = |share: &Share| share.net == Share::WHOLE || change.added_to(share.net) == 0;
        let frees = |share: &Share| change.bits.is_some_and(|bits| share.net & bits != 0);
        if let Some(at) = self.share_of(who).or_else(|| self.shares.iter().position(gives_back)) {
            self.add(at, change);
        } else if self.shares.iter().any(frees) {
            self.shares.retain(|share| !frees(share));
        } else {
            self.push(Share { taker: who, net: change.by, waited: false }, false);
        }
    }
}

/// Who holds each lock, by its place in memory.
#[derive(Clone, Debug)]
pub struct LockTable<Word = u64> {
    words: FxHashMap<Word, Holders>,
    /// A bit for every word in the table, by the word's hash: most stores are to other words.
    known_words: [u64; 16],
    /// Some thread may wait for a word, so that it matters who changes one.
    waits: bool,
    /// Outcomes of the attempts.
    pub stats: LockStats,
}

/// Locks in the shared memory of the CTAs of one SM: the CTA's number in the grid, and the address.
pub type SharedLocks = LockTable<(u64, u64)>;

impl<Word: Copy + Eq + Hash> LockTable<Word> {
    /// A table for kernels that have loops which wait for other threads, or have none.
    pub fn new(waits: bool) -> Self {
        LockTable { words: FxHashMap::default(), known_words: [0; 16], waits, stats: LockStats::default() }
    }

    /// Lanes of an atomic in a spin loop were served: those of `changed` found the lock free and took it. `change` is
    /// what a lane did to its word.
    pub fn tried<const N: usize>(
        &mut self,
        (warp, pc, exclusive): (WarpName, Pc, bool),
        addresses: &Addresses<N>,
        (lanes, changed): (LaneMask, LaneMask),
        change: impl Fn(usize) -> Option<Change>,
        word: impl Fn(u64) -> Word,
    ) {
        for lane in lanes.lanes() {
            let address = addresses.at(lane);
            let word = word(address);
            if changed.contains(lane) {
                self.stats.acquired += 1;
                let change = change(lane);
                if exclusive || change.is_some() {
                    let who = Taker { warp, lane: lane as u32, pc };
                    self.words.entry(word).or_default().take(who, change, exclusive);
                    let bit = known_bit(address);
                    self.known_words[bit / 64] |= 1 << (bit % 64);
                }
            } else if self.words.get(&word).and_then(|w| w.last).is_some_and(|taker| taker.warp == warp) {
                self.stats.failed_intra += 1;
            } else {
                self.stats.failed_inter += 1;
            }
        }
    }

    /// Lanes of an atomic outside of spin loops were served.
    #[inline]
    pub fn changed<const N: usize>(
        &mut self,
        (warp, pc): (WarpName, Pc),
        addresses: &Addresses<N>,
        lanes: LaneMask,
        change: impl Fn(usize) -> Option<Change>,
        word: impl Fn(u64) -> Word,
    ) {
        if !self.waits {
            return;
        }
        for lane in lanes.lanes() {
            let address = addresses.at(lane);
            let is_full = self.words.len() >= MOST_CHANGED_WORDS;
            let holders = match self.words.entry(word(address)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(_) if is_full => continue,
                Entry::Vacant(new) => new.insert(Holders::default()),
            };
            holders.write(Taker { warp, lane: lane as u32, pc }, change(lane));
            let bit = known_bit(address);
            self.known_words[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Lanes stored to words.
    #[inline]
    pub fn stored<const N: usize>(
        &mut self,
        (warp, pc): (WarpName, Pc),
        addresses: &Addresses<N>,
        lanes: LaneMask,
        word: impl Fn(u64) -> Word,
    ) {
        if self.words.is_empty() {
            return;
        }
        for lane in lanes.lanes() {
            let address = addresses.at(lane);
            let bit = known_bit(address);
            if self.known_words[bit / 64] >> (bit % 64) & 1 == 1
                && let Some(holders) = self.words.get_mut(&word(address))
            {
                holders.write(Taker { warp, lane: lane as u32, pc }, None);
            }
        }
    }

    /// Who changed a word and has not changed it back, in the order in which they did.
    pub fn shares(&self, word: Word) -> &[Share] {
        self.words.get(&word).map_or(&[], |holders| &holders.shares)
    }

    /// Who wrote a word last, other than to take a lock, if nobody holds it.
    pub fn writer(&self, word: Word) -> Option<Taker> {
        self.words.get(&word).filter(|holders| holders.shares.is_empty()).and_then(|holders| holders.writer)
    }
}

impl SharedLocks {
    /// Drops the locks of a CTA that has ended.
    pub fn forget(&mut self, cta: u64) {
        if !self.words.is_empty() {
            self.words.retain(|word, _| word.0 != cta);
        }
    }
}

/// The bit of a word in the set of words that the table may have.
fn known_bit(address: u64) -> usize {
    ((address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

/// Whether an atomic that changed a word keeps others from it. Counts are changed by failed attempts, too, and the
/// least or greatest value is nobody's.
pub fn is_exclusive(op: AtomOp) -> bool {
    matches!(op, AtomOp::Cas | AtomOp::Exch | AtomOp::And | AtomOp::Or | AtomOp::Xor)
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Pc = Pc(0);

    struct Table(LockTable);

    impl Table {
        fn change(&mut self, warp: u32, op: AtomOp, (old, new): (u64, u64), takes: bool) {
            let name = WarpName { cta: 0, warp };
            let (at, lane) = (Addresses::<32>::Uniform(64), LaneMask::of(0));
            let change = |_| Change::of(op, 32, (old, new));
            if takes {
                self.0.tried((name, NOBODY, is_exclusive(op)), &at, (lane, lane), change, |a| a);
            } else {
                self.0.changed((name, NOBODY), &at, lane, change, |a| a);
            }
        }

        fn holders(&self) -> Vec<(u32, u64)> {
            self.0.shares(64).iter().map(|share| (share.taker.warp.warp, share.net)).collect()
        }
    }

    #[test]
    fn bits_of_a_word_have_holders_of_their_own() {
        let mut table = Table(LockTable::new(true));
        table.change(1, AtomOp::Or, (0, 1), true);
        table.change(2, AtomOp::Or, (1, 5), true);
        assert_eq!(table.holders(), [(1, 1), (2, 4)]);
        table.change(1, AtomOp::And, (5, 4), false);
        assert_eq!(table.holders(), [(2, 4)]);
        // Another thread sets a bit without waiting, and a third one frees a bit that it did not take.
        table.change(3, AtomOp::Or, (4, 12), false);
        assert_eq!(table.holders(), [(2, 4), (3, 8)]);
        table.change(4, AtomOp::And, (12, 8), false);
        assert_eq!(table.holders(), [(3, 8)]);
        table.change(3, AtomOp::And, (8, 0), false);
        assert_eq!((table.holders(), table.0.writer(64).map(|who| who.warp.warp)), (vec![], Some(3)));
        // The highest bit, taken and freed by a loop around a compare-and-swap.
        table.change(1, AtomOp::Cas, (8, 0x8000_0008), true);
        assert_eq!(table.holders(), [(1, 0x8000_0000)]);
        table.change(1, AtomOp::Cas, (0x8000_0008, 8), true);
        assert_eq!(table.holders(), []);
    }

    #[test]
    fn units_of_a_semaphore_are_given_back() {
        let mut table = Table(LockTable::new(true));
        table.change(1, AtomOp::Cas, (3, 2), true);
        table.change(2, AtomOp::Add, (2, 1), true);
        table.change(2, AtomOp::Add, (1, 0), true);
        assert_eq!(table.holders(), [(1, 0xffff_ffff), (2, 0xffff_fffe)]);
        table.change(2, AtomOp::Add, (0, 1), false);
        table.change(1, AtomOp::Add, (1, 2), false);
        assert_eq!(table.holders(), [(2, 0xffff_ffff)]);
        table.change(3, AtomOp::Add, (2, 3), false);
        assert_eq!(table.holders(), []);
        // Taken without waiting, and given back by another thread.
        table.change(1, AtomOp::Add, (3, 1), false);
        table.change(2, AtomOp::Add, (1, 0), false);
        assert_eq!(table.holders(), [(1, 0xffff_fffe), (2, 0xffff_ffff)]);
        table.change(3, AtomOp::Add, (0, 1), false);
        assert_eq!(table.holders(), [(1, 0xffff_fffe)]);
        table.change(1, AtomOp::Add, (1, 3), false);
        assert_eq!(table.holders(), []);
        // A counter that everybody changes is no lock.
        (0..100).for_each(|warp| table.change(warp, AtomOp::Add, (warp.into(), u64::from(warp) + 1), true));
        assert_eq!(table.holders(), []);
    }

    #[test]
    fn a_store_gives_the_whole_word_back() {
        let mut table = Table(LockTable::new(true));
        table.change(1, AtomOp::Exch, (0, 7), true);
        assert_eq!(table.holders(), [(1, u64::MAX)]);
        table.change(2, AtomOp::Exch, (7, 0), false);
        assert_eq!(table.holders(), []);
        table.change(1, AtomOp::Exch, (0, 1), true);
        table.change(1, AtomOp::Add, (1, 0), false);
        assert_eq!(table.holders(), []);
    }
}
