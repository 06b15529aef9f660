//! Which words of memory are written, with which values, and by whom: for launches that write the same values again
//! and again (a livelock of attempts that are undone).

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;
use warploom_isa::{AtomOp, Pc};

use crate::locks::holders::{Change, Taker, WarpName, shared_offset};
use crate::memory::access::{MemoryOp, WarpAccess};

/// A launch that writes more words, or more values to one word, does not go round in a circle that can be told.
const MOST_WORDS: usize = 4096;
const MOST_VALUES: usize = 256;

/// Nor does one in which threads write so many words each.
const MOST_LEFT: usize = 1 << 16;

/// A word of memory: the CTA whose shared memory it is in, and the address.
pub type WordPlace = (Option<u64>, u64);

/// Writes of some warps.
#[derive(Clone, Debug, Default)]
pub struct Written {
    words: FxHashMap<WordPlace, WrittenWord>,
    /// A word got a value that it did not have before.
    is_new: bool,
    threads: FxHashMap<Thread, Writer>,
    /// What each thread has left in each word: the value, or the sum of what it added.
    left: FxHashMap<(Thread, WordPlace), u64>,
    /// What threads had left in their words at the looks so far, as hashes.
    seen: FxHashSet<(Thread, u64)>,
}

/// A warp, and a lane of it.
type Thread = (WarpName, u32);

/// A thread that writes.
///
/// One that undoes its attempts has left in its words, all together, what it had left there before. One that counts in
/// memory, or keeps the state of a search there, has not, although each word alone gets but few values. What other
/// threads leave does not matter: they may come in any order, so that all words together are rarely as they were.
#[derive(Clone, Copy, Debug, Default)]
struct Writer {
    /// Of all that it has left.
    hash: u64,
    words: u32,
    /// It has written since the last look.
    wrote: bool,
    /// Looks after it had written, and those that found what was known.
    looks: (u32, u32),
}

impl Writer {
    /// At most looks, it had left what it had left before. A word alone that gets no new value has come back.
    fn comes_back(&self) -> bool {
        let (looks, known) = self.looks;
        self.words < 2 || 2 * known >= looks
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
            if self.words.len() >= MOST_WORDS && !self.words.contains_key(&place) {
                self.is_new = true;
                continue;
            }
            let word = self.words.entry(place).or_default();
            changed |= is_shared && word.last != Some(value);
            self.is_new |=
                word.note(access.bytes, value, Taker { warp: who, lane: lane as u32, pc: access.pc });
            if !is_failed(access, lane, value) {
                self.leave((who, lane as u32), place, value, added(access, lane));
            }
        }
        changed
    }

    /// A thread leaves a value in a word, to which it has added something if that is given.
    fn leave(&mut self, thread: Thread, place: WordPlace, value: u64, added: Option<Change>) {
        let hash = |left: u64| {
            let mut hasher = FxHasher::default();
            (place, left).hash(&mut hasher);
            hasher.finish()
        };
        let is_full = self.left.len() >= MOST_LEFT;
        let writer = self.threads.entry(thread).or_default();
        writer.wrote = true;
        match self.left.get_mut(&(thread, place)) {
            Some(left) => {
                let before = std::mem::replace(left, added.map_or(value, |change| change.added_to(*left)));
                writer.hash ^= hash(before) ^ hash(*left);
            }
            None if is_full => self.is_new = true,
            None => {
                let left = added.map_or(value, |change| change.added_to(0));
                writer.hash ^= hash(left);
                writer.words += 1;
                self.left.insert((thread, place), left);
            }
        }
    }

    /// Looks at what threads have left in their words. Those that have not written since the last look would only seem
    /// to have come back.
    pub fn look(&mut self) {
        for (&thread, writer) in &mut self.threads {
            if !std::mem::take(&mut writer.wrote) {
                continue;
            }
            let is_known = !self.seen.insert((thread, writer.hash));
            writer.looks = (writer.looks.0 + 1, writer.looks.1 + u32::from(is_known));
        }
    }

    /// Begins to count looks anew, and forgets what was seen if a word got a new value.
    pub fn begin_looks(&mut self, new_value: bool) {
        self.threads.values_mut().for_each(|writer| writer.looks = (0, 0));
        if new_value {
            self.seen.clear();
        }
    }

    /// Whether every thread undoes what it does.
    pub fn comes_back(&self) -> bool {
        self.threads.values().all(Writer::comes_back)
    }

    /// Whether a word got a new value since this was last asked.
    pub fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// The words that had more than one value.
    pub fn changing(&self) -> impl Iterator<Item = (WordPlace, &WrittenWord)> {
        self.words.iter().filter(|(_, word)| word.values.len() > 1).map(|(&place, word)| (place, word))
    }
}

/// Whether a lane's atomic did not change its word, which holds `left`: the thread has left nothing there.
fn is_failed<const N: usize>(access: &WarpAccess<N>, lane: usize, left: u64) -> bool {
    match access.kind {
        MemoryOp::Atomic { ty, .. } => (access.found(lane) ^ left) & (u64::MAX >> (64 - ty.bits())) == 0,
        MemoryOp::Unlock { changed, of: Some(_) } => !changed.contains(lane),
        _ => false,
    }
}

/// What a lane added to its word, if it did.
fn added<const N: usize>(access: &WarpAccess<N>, lane: usize) -> Option<Change> {
    let (MemoryOp::Atomic { op, .. } | MemoryOp::Unlock { of: Some((op, _)), .. }) = access.kind else {
        return None;
    };
    matches!(op, AtomOp::Add | AtomOp::Inc | AtomOp::Dec).then(|| access.change(lane))?
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
