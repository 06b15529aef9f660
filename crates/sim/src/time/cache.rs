//! The tags of a set-associative cache with sectors and LRU replacement. L1s, L2 slices and constant caches have them.

use crate::chip::timing::CacheSpec;
use crate::kit::line::LineNumber;

/// The largest line of any chip.
pub(crate) const MAX_LINE_BYTES: usize = 128;

pub(crate) type LineBytes = [u8; MAX_LINE_BYTES];

/// Which bytes of a line were ever written, a bit each.
pub(crate) type LineWritten = u128;

/// A way of a cache, counted through all sets: an index into arrays of `sets * ways` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way(pub u32);

impl Way {
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What one way holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// [`LineNumber::NONE`] if the way is empty.
    pub number: LineNumber,
    /// Sectors that hold data.
    pub valid: u8,
    /// Sectors that have to be written back.
    pub dirty: u8,
    /// Data for it is in flight, so it cannot be evicted.
    pub reserved: bool,
    /// The other half of the L2 has a copy.
    pub copied: bool,
    last_use: u64,
}

impl Line {
    const EMPTY: Line =
        Line { number: LineNumber::NONE, valid: 0, dirty: 0, reserved: false, copied: false, last_use: 0 };
}

#[derive(Clone, Debug)]
pub(crate) struct Tags {
    /// The number of sets, a power of two, less one.
    set_mask: u64,
    ways: u32,
    /// The numbers of `lines` once more, so that those of a set are on one cache line of the host.
    numbers: Vec<LineNumber>,
    lines: Vec<Line>,
    uses: u64,
    /// Sets that ever held a line, a bit each, so that an emptied cache costs what was in it.
    used: Vec<u64>,
}

impl Tags {
    /// An empty cache.
    pub(crate) fn new(spec: &CacheSpec) -> Tags {
        let lines = vec![Line::EMPTY; (spec.sets * spec.ways) as usize];
        debug_assert!(spec.sets.is_power_of_two());
        let numbers = vec![LineNumber::NONE; lines.len()];
        let used = vec![0; spec.sets.div_ceil(64) as usize];
        Tags { set_mask: spec.sets as u64 - 1, ways: spec.ways, numbers, lines, uses: 0, used }
    }

    /// Makes it as good as new.
    pub(crate) fn clear(&mut self) {
        let ways = self.ways as usize;
        for (at, word) in self.used.iter_mut().enumerate() {
            while *word != 0 {
                let first = (at * 64 + word.trailing_zeros() as usize) * ways;
                self.numbers[first..first + ways].fill(LineNumber::NONE);
                self.lines[first..first + ways].fill(Line::EMPTY);
                *word &= *word - 1;
            }
        }
        self.uses = 0;
    }

    fn set(&self, number: LineNumber) -> std::ops::Range<usize> {
        let first = (number.0 & self.set_mask) as usize * self.ways as usize;
        first..first + self.ways as usize
    }

    /// The way that holds a line, if any does. Does not count as a use.
    #[inline]
    pub(crate) fn find(&self, number: LineNumber) -> Option<Way> {
        let set = self.set(number);
        let at = self.numbers[set.clone()].iter().position(|&held| held == number)?;
        Some(Way((set.start + at) as u32))
    }

    /// Makes a line the most recently used of its set.
    #[inline]
    pub(crate) fn touch(&mut self, way: Way) {
        self.uses += 1;
        self.lines[way.index()].last_use = self.uses;
    }

    /// The way that a new line would take: an empty one, or the least recently used one that is not reserved. `None` if
    /// all are.
    pub(crate) fn victim(&self, number: LineNumber) -> Option<Way> {
        let set = self.set(number);
        let free = set.filter(|&at| !self.lines[at].reserved);
        free.min_by_key(|&at| self.lines[at].last_use).map(|at| Way(at as u32))
    }

    /// Puts a line into a way, most recently used, with no valid sector. Returns what was there.
    pub(crate) fn replace(&mut self, way: Way, number: LineNumber) -> Line {
        self.uses += 1;
        let new = Line { number, last_use: self.uses, ..Line::EMPTY };
        let set = number.0 & self.set_mask;
        self.used[set as usize / 64] |= 1 << (set % 64);
        self.numbers[way.index()] = number;
        std::mem::replace(&mut self.lines[way.index()], new)
    }

    /// Empties a way. Returns what was there.
    pub(crate) fn evict(&mut self, way: Way) -> Line {
        self.numbers[way.index()] = LineNumber::NONE;
        std::mem::replace(&mut self.lines[way.index()], Line::EMPTY)
    }

    #[inline]
    pub(crate) fn line(&self, way: Way) -> &Line {
        &self.lines[way.index()]
    }

    #[inline]
    pub(crate) fn line_mut(&mut self, way: Way) -> &mut Line {
        &mut self.lines[way.index()]
    }

    /// How often lines have been used: a moment, for [`Tags::held_since`].
    pub(crate) fn uses(&self) -> u64 {
        self.uses
    }

    /// How many ways hold a line that was used since a moment, and of how many.
    pub(crate) fn held_since(&self, uses: u64) -> (u64, u64) {
        let held = self.lines.iter().filter(|line| line.number != LineNumber::NONE && line.last_use > uses);
        (held.count() as u64, self.lines.len() as u64)
    }

    pub(crate) fn ways(&self) -> impl Iterator<Item = Way> + use<> {
        (0..self.lines.len() as u32).map(Way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut tags = Tags::new(&CacheSpec { sets: 2, ways: 2, line_bytes: 128 });
        for number in [0, 2].map(LineNumber) {
            let way = tags.victim(number).unwrap();
            assert_eq!(tags.replace(way, number).number, LineNumber::NONE);
        }
        let zero = tags.find(LineNumber(0)).unwrap();
        tags.touch(zero);
        let way = tags.victim(LineNumber(4)).unwrap();
        assert_eq!(tags.replace(way, LineNumber(4)).number, LineNumber(2));
        assert_eq!((tags.find(LineNumber(2)), tags.find(LineNumber(0))), (None, Some(zero)));
        assert_eq!(tags.find(LineNumber(1)), None, "another set");
    }

    #[test]
    fn a_cleared_cache_is_as_good_as_new() {
        let spec = CacheSpec { sets: 128, ways: 2, line_bytes: 128 };
        let (mut tags, new) = (Tags::new(&spec), Tags::new(&spec));
        for number in [0, 63, 64, 127, 128, 256].map(LineNumber) {
            let way = tags.victim(number).unwrap();
            tags.replace(way, number);
            tags.line_mut(way).dirty = 1;
        }
        tags.clear();
        assert!(tags.ways().all(|way| tags.line(way) == new.line(way)));
        assert_eq!((tags.numbers, tags.uses, tags.used), (new.numbers, new.uses, new.used));
    }

    #[test]
    fn reserved_lines_stay() {
        let mut tags = Tags::new(&CacheSpec { sets: 1, ways: 2, line_bytes: 128 });
        for number in [0, 1].map(LineNumber) {
            let way = tags.victim(number).unwrap();
            tags.replace(way, number);
            tags.line_mut(way).reserved = true;
        }
        assert_eq!(tags.victim(LineNumber(2)), None);
        let one = tags.find(LineNumber(1)).unwrap();
        assert_eq!(tags.evict(one).number, LineNumber(1));
        assert_eq!(tags.victim(LineNumber(2)), Some(one));
    }
}
