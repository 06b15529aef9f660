//! Memory of words that many threads use at once, at addresses as a kernel sees them.

use std::sync::atomic::{AtomicU32, Ordering};

/// An atomic word. The standard library's is one; those of a model checker are others.
pub trait Word: Send + Sync {
    /// A word of this value.
    fn new(value: u32) -> Self;
    /// Its value.
    fn load(&self) -> u32;
    /// Another value.
    fn store(&self, value: u32);
    /// Another value, if it has the expected one. Returns what it had.
    fn compare_exchange(&self, expected: u32, new: u32) -> u32;
    /// Adds. Returns what it had.
    fn add(&self, value: u32) -> u32;
}

// Publishing relies on one order of all accesses: who writes an entry looks at those before it, and who wrote one of those
// looks at the ones after it.
impl Word for AtomicU32 {
    fn new(value: u32) -> AtomicU32 {
        AtomicU32::new(value)
    }

    fn load(&self) -> u32 {
        AtomicU32::load(self, Ordering::SeqCst)
    }

    fn store(&self, value: u32) {
        AtomicU32::store(self, value, Ordering::SeqCst);
    }

    fn compare_exchange(&self, expected: u32, new: u32) -> u32 {
        match AtomicU32::compare_exchange(self, expected, new, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(old) | Err(old) => old,
        }
    }

    fn add(&self, value: u32) -> u32 {
        self.fetch_add(value, Ordering::SeqCst)
    }
}

/// Words at consecutive addresses.
#[derive(Debug)]
pub struct Arena<W = AtomicU32> {
    base: u64,
    words: Vec<W>,
}

impl<W: Word> Arena<W> {
    /// `bytes` of zeros from an address on.
    pub fn new(base: u64, bytes: u64) -> Arena<W> {
        let mut arena = Arena { base, words: Vec::new() };
        arena.grow(bytes);
        arena
    }

    /// More zeros at the end, on a line of their own. Returns where they begin.
    pub fn grow(&mut self, bytes: u64) -> u64 {
        let at = self.words.len().next_multiple_of(16);
        let end = at + (bytes as usize).div_ceil(4);
        self.words.resize_with(end, || W::new(0));
        self.base + 4 * at as u64
    }

    /// A copy of `data` at the end. Returns where it begins.
    pub fn buffer(&mut self, data: &[u32]) -> u64 {
        let at = self.grow(4 * data.len() as u64);
        for (i, &word) in data.iter().enumerate() {
            self.store(at + 4 * i as u64, word);
        }
        at
    }

    /// `count` words from an address on.
    pub fn read(&self, address: u64, count: usize) -> Vec<u32> {
        (0..count as u64).map(|i| self.load(address + 4 * i)).collect()
    }

    /// All words that are not 0, in pieces of up to `most` words with their addresses.
    pub(crate) fn pieces(&self, most: usize) -> impl Iterator<Item = (u64, Vec<u32>)> {
        let pieces = self.words.chunks(most).enumerate();
        pieces.filter_map(move |(i, piece)| {
            let words: Vec<u32> = piece.iter().map(W::load).collect();
            words.iter().any(|&word| word != 0).then(|| (self.base + 4 * (i * most) as u64, words))
        })
    }

    /// # Panics
    /// If nothing is there: kernels on the host that compute a wrong address.
    fn at(&self, address: u64) -> &W {
        let index = address.checked_sub(self.base).map(|offset| (offset / 4) as usize);
        let word = index.filter(|_| address.is_multiple_of(4)).and_then(|index| self.words.get(index));
        word.unwrap_or_else(|| panic!("no word of the host's memory is at address {address:#x}"))
    }

    /// The word at an address.
    pub fn load(&self, address: u64) -> u32 {
        self.at(address).load()
    }

    /// Another word at an address.
    pub fn store(&self, address: u64, value: u32) {
        self.at(address).store(value);
    }

    /// Another double word, its halves one after the other.
    pub fn store64(&self, address: u64, value: u64) {
        self.store(address, value as u32);
        self.store(address + 4, (value >> 32) as u32);
    }

    /// Another word, if it is the expected one. Returns what it was.
    pub fn compare_exchange(&self, address: u64, expected: u32, new: u32) -> u32 {
        self.at(address).compare_exchange(expected, new)
    }

    /// Adds to a word. Returns what it was.
    pub fn add(&self, address: u64, value: u32) -> u32 {
        self.at(address).add(value)
    }
}
