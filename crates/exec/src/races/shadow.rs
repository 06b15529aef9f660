//! The last accesses to each word, and which of them conflict with a new one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use warploom_isa::Scope;

use crate::races::clock::Known;
use crate::races::list::{Grid, Publication, Tip};

/// Accesses that a word remembers. Further ones that are not ordered after these displace a read, if there is one.
const REMEMBERED: usize = 4;

/// Words of a page of the shadow. Few, as a kernel may use a small part of each row of a matrix.
const PAGE_WORDS: u64 = 64;

/// Pages that are found without a search: 1 MiB of memory.
const RECENT: usize = 4096;

/// How memory was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub write: bool,
    /// Volatile, relaxed or stronger: it may meet others of its kind on a word.
    pub strong: bool,
    pub atomic: bool,
    /// Strong only towards its own CTA.
    pub cta_scope: bool,
}

impl Kind {
    pub(super) const READ: Kind = Kind { write: false, strong: false, atomic: false, cta_scope: false };
    pub(super) const WRITE: Kind = Kind { write: true, ..Kind::READ };

    pub(super) fn strong(write: bool, scope: Scope) -> Kind {
        Kind { write, strong: true, atomic: false, cta_scope: scope == Scope::Cta }
    }

    pub(super) fn atomic(scope: Scope) -> Kind {
        Kind { atomic: true, ..Kind::strong(true, scope) }
    }

    #[inline(always)]
    fn bits(self) -> u8 {
        self.write as u8 | (self.strong as u8) << 1 | (self.atomic as u8) << 2 | (self.cta_scope as u8) << 3
    }

    #[inline(always)]
    fn of_bits(bits: u8) -> Kind {
        let bit = |at: u8| bits >> at & 1 == 1;
        Kind { write: bit(0), strong: bit(1), atomic: bit(2), cta_scope: bit(3) }
    }

    /// Whether whatever conflicts with `other` also conflicts with this one.
    #[inline]
    fn covers(self, other: Kind) -> bool {
        if self.write && !self.strong {
            return true;
        }
        let scope = self.cta_scope || !other.cta_scope;
        scope && if self.strong { other.strong && (self.write || !other.write) } else { !other.write }
    }
}

/// An access to a word by a warp: 16 bytes, so that a word's records are one line of the host's caches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// Number in the grid.
    pub warp: u32,
    pub clock: u32,
    /// The instruction in the upper three bytes; below it the word's bytes, 4 bits, and the kind.
    pc_and_how: u32,
    /// What a plain store wrote to the bytes of `mask`, folded: equal values have equal ones, and so has one pair of
    /// different values in 65,536.
    value: u16,
    /// The lowest and the highest lane of a load that reads the word with several.
    pub first: u8,
    pub last: u8,
}

impl Record {
    #[inline]
    pub(super) fn new(
        (warp, clock, pc): (u32, u32, u32),
        lanes: (usize, usize),
        mask: u8,
        kind: Kind,
    ) -> Self {
        let pc_and_how = pc << 8 | u32::from(mask | kind.bits() << 4);
        Record { warp, clock, pc_and_how, value: 0, first: lanes.0 as u8, last: lanes.1 as u8 }
    }

    /// With what a plain store writes to the bytes of `mask`, in their places.
    #[inline(always)]
    pub(super) fn with_value(self, value: u32) -> Self {
        Record { value: (value ^ value >> 16) as u16, ..self }
    }

    pub(super) fn pc(&self) -> u32 {
        self.pc_and_how >> 8
    }

    /// The bytes, a bit each; 0 of an empty place.
    #[inline(always)]
    pub(super) fn mask(&self) -> u8 {
        self.pc_and_how as u8 & 0xf
    }

    #[inline(always)]
    pub(super) fn kind(&self) -> Kind {
        Kind::of_bits(self.pc_and_how as u8 >> 4)
    }

    /// Whether the two race if they are not ordered.
    #[inline]
    fn conflicts(&self, other: &Record, same_cta: impl FnOnce() -> bool) -> bool {
        let (a, b) = (self.kind(), other.kind());
        if !a.write && !b.write {
            return false;
        }
        if a.strong && b.strong {
            return (a.cta_scope || b.cta_scope) && !same_cta();
        }
        // Two plain stores of the same value: the result does not depend on their order.
        let same_value = a == b && self.mask() == other.mask() && self.value == other.value;
        !(a.write && b.write && !a.strong && same_value)
    }
}

/// The last accesses to a word.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Word([Record; REMEMBERED]);

impl Word {
    /// Adds an access. Returns a remembered one with which it races. Of a remembered one, `counts` says whether it was
    /// made to this memory, `ordered` whether the new one is ordered after it, `same_cta` whether both are of one CTA.
    #[inline]
    pub(super) fn access(
        &mut self,
        new: Record,
        counts: impl Fn(&Record) -> bool,
        ordered: impl Fn(&Record) -> bool,
        same_cta: impl Fn(&Record) -> bool,
    ) -> Option<Record> {
        let (mut place, mut race, mut is_known) = (None, None, false);
        let mut at = 0;
        while at < REMEMBERED {
            let old = &mut self.0[at];
            if old.mask() == 0 || !counts(old) {
                place = place.or(Some(at));
                break;
            }
            if old.mask() & new.mask() == 0 {
                at += 1;
                continue;
            }
            if (old.warp, old.clock, old.pc_and_how) == (new.warp, new.clock, new.pc_and_how)
                && !new.kind().write
            {
                // Another lane of the same load.
                (old.first, old.last) = (old.first.min(new.first), old.last.max(new.last));
                is_known = true;
                at += 1;
                continue;
            }
            let is_ordered = ordered(old);
            if !is_ordered && old.conflicts(&new, || same_cta(old)) {
                race = race.or(Some(*old));
            }
            if is_ordered && old.mask() & !new.mask() == 0 && new.kind().covers(old.kind()) {
                if place.is_some() {
                    // Places stay filled from the front: this one now has another record.
                    self.forget(at, &counts);
                    continue;
                }
                place = Some(at);
            }
            at += 1;
        }
        if !is_known {
            let place = place.unwrap_or_else(|| self.victim(new.clock as usize));
            self.0[place] = new;
        } else if let Some(place) = place.filter(|&place| self.0[place].mask() != 0 && counts(&self.0[place]))
        {
            self.forget(place, &counts);
        }
        race
    }

    fn forget(&mut self, at: usize, counts: impl Fn(&Record) -> bool) {
        let last = self.0.iter().rposition(|record| record.mask() != 0 && counts(record)).unwrap_or(at);
        self.0.swap(at, last);
        self.0[last] = Record::default();
    }

    /// The record that a new one displaces: one of the reads, or else any.
    fn victim(&self, turn: usize) -> usize {
        let writes = self.0.map(|record| record.kind().write);
        if writes == [false; REMEMBERED] || writes == [true; REMEMBERED] {
            return turn % REMEMBERED;
        }
        let reads = writes.iter().filter(|write| !**write).count();
        (0..REMEMBERED).filter(|&at| !writes[at]).nth(turn % reads).unwrap_or(0)
    }
}

/// What was published through a word of global memory.
#[derive(Debug)]
pub(super) struct Published {
    to_all: Option<Grid>,
    /// If that is one publication: its clock. Whoever knows it need not look at the list.
    tip: Tip,
    /// By stores and fences of CTA scope. Rare, so that it is kept apart.
    to_cta: Option<Box<ToCtas>>,
}

/// What was published to single CTAs, by their numbers.
#[derive(Debug, Default)]
struct ToCtas(Vec<(u64, Known)>);

impl Default for Published {
    fn default() -> Self {
        Published { to_all: None, tip: Tip::NONE, to_cta: None }
    }
}

impl Published {
    /// To all CTAs, with the clock of the publication.
    #[inline]
    pub(super) fn to_all(&self) -> Option<(&Grid, Tip)> {
        self.to_all.as_ref().map(|all| (all, self.tip))
    }

    #[inline]
    pub(super) fn join_all(&mut self, publication: &mut Publication<'_>) {
        self.tip = publication.join(&mut self.to_all, self.tip);
    }

    #[inline]
    pub(super) fn to_cta(&self, number: u64) -> Option<&Known> {
        self.to_cta.as_ref()?.0.iter().find(|(cta, _)| *cta == number).map(|(_, known)| known)
    }

    pub(super) fn join_cta(&mut self, number: u64, known: &Known) {
        let ToCtas(ctas) = &mut **self.to_cta.get_or_insert_default();
        match ctas.iter_mut().find(|(cta, _)| *cta == number) {
            Some((_, published)) => published.join(known),
            None => ctas.push((number, known.clone())),
        }
    }
}

/// The shadow of global memory: pages of words that were accessed.
#[derive(Debug)]
pub(super) struct Shadow {
    pages: HashMap<u64, usize, Scatter>,
    words: Vec<Box<[Word; PAGE_WORDS as usize]>>,
    /// What was published through the words of each page, if anything was.
    published: Vec<Option<Box<[Published]>>>,
    /// Pages that were used lately and where they are, by the last digits of their numbers.
    recent: Box<[(u64, usize); RECENT]>,
}

impl Default for Shadow {
    fn default() -> Self {
        let recent = Box::new([(u64::MAX, 0); RECENT]);
        Shadow { pages: HashMap::default(), words: Vec::new(), published: Vec::new(), recent }
    }
}

impl Shadow {
    /// The word at an address that is a multiple of 4.
    #[inline]
    pub(super) fn word(&mut self, address: u64) -> &mut Word {
        let number = address / 4;
        let (page, word) = (number / PAGE_WORDS, (number % PAGE_WORDS) as usize);
        let at = self.find_recent(page);
        &mut self.words[at][word]
    }

    #[inline]
    fn find_recent(&mut self, page: u64) -> usize {
        let (recent, at) = self.recent[page as usize % RECENT];
        if recent == page { at } else { self.find(page) }
    }

    fn find(&mut self, page: u64) -> usize {
        let at = *self.pages.entry(page).or_insert_with(|| {
            let page = vec![Word::default(); PAGE_WORDS as usize].into_boxed_slice();
            self.words.push(page.try_into().expect("a page has so many words"));
            self.published.push(None);
            self.words.len() - 1
        });
        self.recent[page as usize % RECENT] = (page, at);
        at
    }

    /// Where the page of a word is, if it was accessed.
    #[inline]
    fn page(&self, page: u64) -> Option<usize> {
        let (recent, at) = self.recent[page as usize % RECENT];
        if recent == page { Some(at) } else { self.pages.get(&page).copied() }
    }

    /// What was published through the word at an address that is a multiple of 4.
    #[inline]
    pub(super) fn published(&self, address: u64) -> Option<&Published> {
        let number = address / 4;
        let page = self.published[self.page(number / PAGE_WORDS)?].as_ref()?;
        Some(&page[(number % PAGE_WORDS) as usize])
    }

    #[inline]
    pub(super) fn published_mut(&mut self, address: u64) -> &mut Published {
        let number = address / 4;
        let at = self.find_recent(number / PAGE_WORDS);
        let empty = || (0..PAGE_WORDS).map(|_| Published::default()).collect();
        &mut self.published[at].get_or_insert_with(empty)[(number % PAGE_WORDS) as usize]
    }

    /// Reads the words of scattered accesses before they are needed one by one, so that the host waits for all of
    /// them at once.
    #[inline]
    pub(super) fn read_ahead(&self, addresses: impl Iterator<Item = u64>) {
        let mut all = 0;
        for number in addresses.map(|address| address / 4) {
            if let Some(at) = self.page(number / PAGE_WORDS) {
                all |= self.words[at][(number % PAGE_WORDS) as usize].0[0].pc_and_how;
            }
        }
        std::hint::black_box(all);
    }

    /// The same for what was published through them.
    #[inline]
    pub(super) fn read_published_ahead(&self, addresses: impl Iterator<Item = u64>) {
        let mut all = 0;
        for published in addresses.filter_map(|address| self.published(address & !3)) {
            all |= published.to_all.as_ref().map_or(0, Arc::strong_count);
        }
        std::hint::black_box(all);
    }
}

/// Hashes numbers by one multiplication.
pub(super) type Scatter = BuildHasherDefault<Multiply>;

#[derive(Debug, Default)]
pub(super) struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(warp: u32, clock: u32, mask: u8, kind: Kind) -> Record {
        Record::new((warp, clock, 0), (0, 0), mask, kind)
    }

    /// Which accesses race, where nothing is ordered but the accesses of a warp.
    fn race(first: Record, second: Record) -> bool {
        let mut word = Word::default();
        let ordered = |old: &Record| old.warp == second.warp;
        assert!(word.access(first, |_| true, |_| true, |_| false).is_none());
        word.access(second, |_| true, ordered, |_| false).is_some()
    }

    #[test]
    fn two_accesses_race_unless_both_read_or_both_are_strong() {
        let strong = |write| Kind::strong(write, Scope::Gpu);
        let kinds = [Kind::READ, Kind::WRITE, strong(false), strong(true), Kind::atomic(Scope::Gpu)];
        for (a, b) in kinds.into_iter().flat_map(|a| kinds.map(|b| (a, b))) {
            let second = record(2, 1, 15, b).with_value(1);
            let expected = (a.write || b.write) && !(a.strong && b.strong);
            assert_eq!(race(record(1, 1, 15, a), second), expected, "{a:?} {b:?}");
            assert!(!race(record(2, 1, 15, a), record(2, 2, 15, b)), "{a:?} {b:?}");
        }
        let in_cta = Kind::atomic(Scope::Cta);
        assert!(race(record(1, 1, 15, in_cta), record(2, 1, 15, Kind::atomic(Scope::Gpu))));
    }

    #[test]
    fn bytes_must_overlap_and_values_differ() {
        let write = |warp, mask| record(warp, 1, mask, Kind::WRITE);
        assert!(!race(write(1, 0b0011), write(2, 0b1100)));
        assert!(race(write(1, 0b0011), write(2, 0b0110)));
        assert!(!race(write(1, 0b1111), write(2, 0b1111)));
        assert!(race(write(1, 0b1111), write(2, 0b1111).with_value(3)));
    }

    #[test]
    fn reads_do_not_displace_a_write() {
        let mut word = Word::default();
        word.access(record(1, 1, 15, Kind::WRITE), |_| true, |_| true, |_| true);
        for warp in 2..40 {
            // Ordered after the write, not after each other.
            word.access(record(warp, warp, 15, Kind::READ), |_| true, |old| old.warp == 1, |_| true);
        }
        let last = record(40, 1, 15, Kind::WRITE).with_value(1);
        assert_eq!(word.access(last, |_| true, |old| old.warp != 1, |_| true).map(|old| old.warp), Some(1));
    }

    #[test]
    fn pages_keep_their_words_apart() {
        let mut shadow = Shadow::default();
        shadow.word(4096).access(record(1, 1, 15, Kind::WRITE), |_| true, |_| true, |_| true);
        let read = record(2, 1, 15, Kind::READ);
        assert!(shadow.word(8192).access(read, |_| true, |_| false, |_| true).is_none());
        assert!(shadow.word(4100).access(read, |_| true, |_| false, |_| true).is_none());
        assert!(shadow.word(4096).access(read, |_| true, |_| false, |_| true).is_some());
    }
}
