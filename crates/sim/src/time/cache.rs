//! The tags of a set-associative cache with sectors, least recently used out first.

use crate::chip::timing::CacheSpec;

/// The largest line.
pub const MAX_LINE_BYTES: usize = 128;

/// The bytes of a line.
pub type LineBytes = [u8; MAX_LINE_BYTES];

/// Which bytes of a line were ever written, a bit each.
pub type LineWritten = u128;

/// A line's place in a cache: an index into arrays of `sets * ways` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way(pub u32);

impl Way {
    /// As an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What one way holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line's number (its address divided by the line's size), or [`Line::NONE`].
    pub number: u64,
    /// Sectors that hold data.
    pub valid: u8,
    /// Sectors that memory does not have yet.
    pub dirty: u8,
    /// Waits for data that is on its way; cannot be put out.
    pub reserved: bool,
    last_use: u64,
}

impl Line {
    /// The number of no line.
    pub const NONE: u64 = u64::MAX;
    const EMPTY: Line = Line { number: Line::NONE, valid: 0, dirty: 0, reserved: false, last_use: 0 };
}

/// The tags of a cache.
#[derive(Clone, Debug)]
pub struct Tags {
    /// Sets are a power of two; this is one less.
    set_mask: u64,
    ways: u32,
    /// The numbers of the lines, once more: a set of them is on one line of the host's cache.
    numbers: Vec<u64>,
    lines: Vec<Line>,
    uses: u64,
}

impl Tags {
    /// An empty cache.
    pub fn new(spec: &CacheSpec) -> Tags {
        let lines = vec![Line::EMPTY; (spec.sets * spec.ways) as usize];
        debug_assert!(spec.sets.is_power_of_two());
        let numbers = vec![Line::NONE; lines.len()];
        Tags { set_mask: spec.sets as u64 - 1, ways: spec.ways, numbers, lines, uses: 0 }
    }

    fn set(&self, number: u64) -> std::ops::Range<usize> {
        let first = (number & self.set_mask) as usize * self.ways as usize;
        first..first + self.ways as usize
    }

    /// Where the line is, if it is here. Does not count as a use.
    #[inline]
    pub fn find(&self, number: u64) -> Option<Way> {
        let set = self.set(number);
        let at = self.numbers[set.clone()].iter().position(|&held| held == number)?;
        Some(Way((set.start + at) as u32))
    }

    /// Makes a line the most recently used of its set.
    #[inline]
    pub fn touch(&mut self, way: Way) {
        self.uses += 1;
        self.lines[way.index()].last_use = self.uses;
    }

    /// The way that a new line would take: an empty one, or the least recently used that is not reserved. `None` if all are.
    pub fn victim(&self, number: u64) -> Option<Way> {
        let set = self.set(number);
        let free = set.filter(|&at| !self.lines[at].reserved);
        free.min_by_key(|&at| self.lines[at].last_use).map(|at| Way(at as u32))
    }

    /// Puts a line into a way, most recently used, with no valid sector. Returns what was there.
    pub fn replace(&mut self, way: Way, number: u64) -> Line {
        self.uses += 1;
        let new = Line { number, last_use: self.uses, ..Line::EMPTY };
        self.numbers[way.index()] = number;
        std::mem::replace(&mut self.lines[way.index()], new)
    }

    /// Empties a way. Returns what was there.
    pub fn evict(&mut self, way: Way) -> Line {
        self.numbers[way.index()] = Line::NONE;
        std::mem::replace(&mut self.lines[way.index()], Line::EMPTY)
    }

    /// What a way holds.
    #[inline]
    pub fn line(&self, way: Way) -> &Line {
        &self.lines[way.index()]
    }

    /// What a way holds, to change.
    #[inline]
    pub fn line_mut(&mut self, way: Way) -> &mut Line {
        &mut self.lines[way.index()]
    }

    /// All ways.
    pub fn ways(&self) -> impl Iterator<Item = Way> + use<> {
        (0..self.lines.len() as u32).map(Way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut tags = Tags::new(&CacheSpec { sets: 2, ways: 2, line_bytes: 128 });
        for number in [0, 2] {
            let way = tags.victim(number).unwrap();
            assert_eq!(tags.replace(way, number).number, Line::NONE);
        }
        let zero = tags.find(0).unwrap();
        tags.touch(zero);
        let way = tags.victim(4).unwrap();
        assert_eq!(tags.replace(way, 4).number, 2);
        assert_eq!((tags.find(2), tags.find(0)), (None, Some(zero)));
        assert_eq!(tags.find(1), None, "another set");
    }

    #[test]
    fn reserved_lines_stay() {
        let mut tags = Tags::new(&CacheSpec { sets: 1, ways: 2, line_bytes: 128 });
        for number in [0, 1] {
            let way = tags.victim(number).unwrap();
            tags.replace(way, number);
            tags.line_mut(way).reserved = true;
        }
        assert_eq!(tags.victim(2), None);
        let one = tags.find(1).unwrap();
        assert_eq!(tags.evict(one).number, 1);
        assert_eq!(tags.victim(2), Some(one));
    }
}
