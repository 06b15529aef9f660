//! Which words of memory are written, with which values, and by whom: for launches that write the same values again
//! and again (a livelock of attempts that are undone).

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warploom_isa::Pc;

use crate::locks::holders::{Taker, WarpName, shared_offset};
use crate::memory::access::WarpAccess;

/// A launch that writes more words, or more values to one word, does not go round in a circle that can be told.
const MOST_WORDS: usize = 4096;
const MOST_VALUES: usize = 256;

/// A word of memory: the CTA whose shared memory it is in, and the address.
pub type WordPlace = (Option<u64>, u64);

/// Writes of some warps.
#[derive(Clone, Debug, Default)]
pub struct Written {
    words: FxHashMap<WordPlace, WrittenWord>,
    /// A word got a value that it did not have before.
    is_new: bool,
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
    /// The warps that wrote it, sorted, the first ones; all words with more writers count as written by the same.
    warps: SmallVec<[WarpName; 2]>,
}

/// Most warps that are remembered as writers of a word.
const MOST_WARPS: usize = 32;

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
        }
        changed
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

impl WrittenWord {
    /// Returns whether the value is new.
    fn note(&mut self, bytes: u32, value: u64, who: Taker) -> bool {
        (self.bytes, self.last) = (bytes, Some(value));
        self.written_by(who.warp);
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

    fn written_by(&mut self, warp: WarpName) {
        if let Err(at) = self.warps.binary_search(&warp)
            && self.warps.len() < MOST_WARPS
        {
            self.warps.insert(at, warp);
        }
    }

    /// What other SMs wrote to the same word.
    pub fn merge(&mut self, other: &WrittenWord) {
        other.warps.iter().for_each(|&warp| self.written_by(warp));
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

    /// The warps that wrote it; none if there are too many.
    pub fn warps(&self) -> &[WarpName] {
        if self.warps.len() < MOST_WARPS { &self.warps } else { &[] }
    }

    /// Its writers by their place in the code.
    pub fn writers_by_place(&self) -> Vec<(Pc, Taker, u64)> {
        let mut writers: Vec<_> = self.writers.iter().map(|&(who, count)| (who.pc, who, count)).collect();
        writers.sort_by_key(|(pc, ..)| *pc);
        writers
    }
}
