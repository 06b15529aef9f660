//! Which words of memory are written, with which values, and by whom: for launches that write the same values again
//! and again (a livelock of attempts that are undone).

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use warploom_isa::Pc;

use crate::locks::holders::{Taker, WarpName, shared_offset};
use crate::memory::access::{MemoryOp, WarpAccess};

/// A launch that writes more words, or more values to one word, does not go round in a circle that can be told.
const MOST_WORDS: usize = 4096;
const MOST_VALUES: usize = 256;

/// Nor does one in which threads write so many words each.
const MOST_CHANGED: usize = 1 << 16;

/// A thread that undoes its attempts has changed at times only what it had changed before, in few ways.
const MOST_BALANCES: usize = 64;

/// It comes back to one of them at least this often, at regular intervals.
const TIMES_BACK: u64 = 8;

/// A word of memory: the CTA whose shared memory it is in, and the address.
pub type WordPlace = (Option<u64>, u64);

/// Writes of some warps.
#[derive(Clone, Debug, Default)]
pub struct Written {
    words: FxHashMap<WordPlace, WrittenWord>,
    /// A word got a value that it did not have before.
    is_new: bool,
    threads: FxHashMap<Thread, Attempts>,
    /// By how much each thread has changed each word: the sum of its changes.
    changes: FxHashMap<(Thread, WordPlace), u64>,
    /// A thread has changed its words in a way in which it had not before.
    new_balance: bool,
}

/// A warp, and a lane of it.
type Thread = (WarpName, u32);

/// The writes of a thread.
///
/// One that undoes its attempts comes back again and again to a moment at which all its changes, to all of its words,
/// cancel out. One that counts in memory does not, whether it counts alone or with others: what each has added grows,
/// although each word alone gets but few values.
#[derive(Clone, Debug, Default)]
struct Attempts {
    /// The hash of its changes to all of its words.
    balance: u64,
    writes: u64,
    /// The balances that it has had.
    known: SmallVec<[Balance; 4]>,
}

/// A sum of a thread's changes, as a hash.
#[derive(Clone, Copy, Debug)]
struct Balance {
    hash: u64,
    /// After which write it was the last time, and the most writes from one time to the next.
    last: u64,
    longest_gap: u64,
}

impl Attempts {
    /// Writes once. Returns whether its balance is a new one.
    fn write(&mut self) -> bool {
        self.writes += 1;
        let writes = self.writes;
        match self.known.iter_mut().find(|known| known.hash == self.balance) {
            Some(known) => {
                known.longest_gap = known.longest_gap.max(writes - known.last);
                known.last = writes;
                false
            }
            None => {
                if self.known.len() < MOST_BALANCES {
                    self.known.push(Balance { hash: self.balance, last: writes, longest_gap: writes });
                }
                true
            }
        }
    }

    /// Whether it comes back to one balance again and again.
    fn comes_back(&self) -> bool {
        let regular =
            |known: &Balance| TIMES_BACK * known.longest_gap.max(self.writes - known.last) <= self.writes;
        self.writes == 0 || self.known.iter().any(regular)
    }
}

/// The writes of a word.
#[derive(Clone, Debug, Default)]
pub struct WrittenWord {
    pub bytes: u32,
    /// All values so far, sorted.
    pub values: SmallVec<[u64; 4]>,
    last: Option<u64>,
    /// By instruction: a thread that wrote the word with it, and how often any did.
    pub writers: SmallVec<[(Taker, u64); 4]>,
}

impl Written {
    /// Lanes have written. Returns whether a word of shared memory got another value.
    pub fn note<const N: usize>(
        &mut self,
        who: WarpName,
        access: &WarpAccess<N>,
        shared_window: u64,
    ) -> bool {
        let mut changed = false;
        for lane in (access.lanes.global | access.lanes.shared).lanes() {
            let Some(value) = access.left(lane) else { continue };
            let address = access.addresses.at(lane);
            let is_shared = access.lanes.shared.contains(lane);
            let place = if is_shared {
                (Some(who.cta), shared_offset(address, shared_window))
            } else {
                (None, address)
            };
            let taker = Taker { warp: who, lane: lane as u32, pc: access.pc };
            let found = found(access, lane);
            changed |= self.write(taker, place, (access.bytes.min(8), found, value)) && is_shared;
            // The rest of a vector.
            for (offset, value) in access.stored_after(lane) {
                let place = (place.0, place.1 + offset);
                changed |= self.write(taker, place, (8, None, value)) && is_shared;
            }
        }
        changed
    }

    /// A thread leaves a value in a word; with an atomic, it is known what was there. Returns whether it was another.
    fn write(&mut self, who: Taker, place: WordPlace, (bytes, found, left): (u32, Option<u64>, u64)) -> bool {
        if self.words.len() >= MOST_WORDS && !self.words.contains_key(&place) {
            self.is_new = true;
            return false;
        }
        let word = self.words.entry(place).or_default();
        let before = word.last;
        self.is_new |= word.note(bytes, left, who);
        let by = left.wrapping_sub(found.or(before).unwrap_or(left)) & (u64::MAX >> (64 - 8 * bytes));
        // An attempt that failed is none.
        if found != Some(left) {
            self.balance((who.warp, who.lane), place, by);
        }
        before != Some(left)
    }

    /// A thread changes a word by so much.
    fn balance(&mut self, thread: Thread, place: WordPlace, by: u64) {
        let hash = |change: u64| {
            let mut hasher = FxHasher::default();
            (place, change).hash(&mut hasher);
            if change == 0 { 0 } else { hasher.finish() }
        };
        if self.changes.len() >= MOST_CHANGED && !self.changes.contains_key(&(thread, place)) {
            self.is_new = true;
            return;
        }
        let change = self.changes.entry((thread, place)).or_default();
        let before = std::mem::replace(change, change.wrapping_add(by));
        let attempts = self.threads.entry(thread).or_default();
        attempts.balance ^= hash(before) ^ hash(*change);
        self.new_balance |= attempts.write();
    }

    /// Begins to count anew how often threads come back to a balance.
    pub fn count_anew(&mut self) {
        for attempts in self.threads.values_mut() {
            attempts.writes = 0;
            attempts.known.iter_mut().for_each(|known| (known.last, known.longest_gap) = (0, 0));
        }
    }

    /// Whether every thread undoes what it does.
    pub fn comes_back(&self) -> bool {
        self.threads.values().all(Attempts::comes_back)
    }

    /// Whether a thread changed its words in a new way since this was last asked.
    pub fn take_new_balance(&mut self) -> bool {
        std::mem::take(&mut self.new_balance)
    }

    /// Whether a word got a new value since this was last asked.
    pub fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// All words that were written.
    pub fn words(&self) -> impl Iterator<Item = (WordPlace, &WrittenWord)> {
        self.words.iter().map(|(&place, word)| (place, word))
    }

    /// The words that had more than one value.
    pub fn changing(&self) -> impl Iterator<Item = (WordPlace, &WrittenWord)> {
        self.words.iter().filter(|(_, word)| word.values.len() > 1).map(|(&place, word)| (place, word))
    }
}

/// What a lane's access found in its word, if that is known.
fn found<const N: usize>(access: &WarpAccess<N>, lane: usize) -> Option<u64> {
    match access.kind {
        MemoryOp::Atomic { ty, .. } => Some(access.found(lane) & (u64::MAX >> (64 - ty.bits()))),
        MemoryOp::Unlock { changed, of: Some(_) } if !changed.contains(lane) => access.left(lane),
        _ => None,
    }
}

impl WrittenWord {
    /// Returns whether the value is new.
    fn note(&mut self, bytes: u32, value: u64, who: Taker) -> bool {
        (self.bytes, self.last) = (bytes, Some(value));
        match self.writers.iter_mut().find(|(known, _)| known.pc == who.pc) {
            Some((_, count)) => *count += 1,
            None => self.writers.push((who, 1)),
        }
        match self.values.binary_search(&value) {
            Ok(_) => false,
            Err(_) if self.values.len() >= MOST_VALUES => true,
            Err(at) => {
                self.values.insert(at, value);
                true
            }
        }
    }

    /// What other SMs wrote to the same word.
    pub fn merge(&mut self, other: &WrittenWord) {
        for &value in &other.values {
            if let Err(at) = self.values.binary_search(&value) {
                self.values.insert(at, value);
            }
        }
        for &(who, count) in &other.writers {
            match self.writers.iter_mut().find(|(known, _)| known.pc == who.pc) {
                Some((_, known)) => *known += count,
                None => self.writers.push((who, count)),
            }
        }
    }

    /// Its writers by their place in the code.
    pub fn writers_by_place(&self) -> Vec<(Pc, Taker, u64)> {
        let mut writers: Vec<_> = self.writers.iter().map(|&(who, count)| (who.pc, who, count)).collect();
        writers.sort_by_key(|(pc, ..)| *pc);
        writers
    }
}
