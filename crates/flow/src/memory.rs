//! Memory of words that many threads use at once, at the addresses that a kernel sees.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use warploom::{Buffer, Device};

/// An atomic word with sequentially consistent operations. `AtomicU32` is one; model checkers have their own.
pub trait Word: Send + Sync {
    fn new(value: u32) -> Self;
    fn load(&self) -> u32;
    fn store(&self, value: u32);
    /// Stores `new` if the value is `expected`. Returns the old value.
    fn compare_exchange(&self, expected: u32, new: u32) -> u32;
    /// Adds, wrapping. Returns the old value.
    fn add(&self, value: u32) -> u32;
}

// Publishing needs sequential consistency: a producer that writes an entry looks at earlier entries, while the
// producers of those look at later ones. At least one of them must see the other's.
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

/// Words at consecutive addresses, starting at a base address.
#[derive(Debug)]
pub struct Arena<W = AtomicU32> {
    base: u64,
    words: Vec<W>,
}

impl<W: Word> Arena<W> {
    /// `bytes` of zeros at address `base`.
    pub fn new(base: u64, bytes: u64) -> Arena<W> {
        let mut arena = Arena { base, words: Vec::new() };
        arena.grow(bytes);
        arena
    }

    /// Appends zeros on a new cache line. Returns their address.
    pub fn grow(&mut self, bytes: u64) -> u64 {
        let at = self.words.len().next_multiple_of(16);
        let end = at + (bytes as usize).div_ceil(4);
        self.words.resize_with(end, || W::new(0));
        self.base + 4 * at as u64
    }

    /// Appends a copy of `data`. Returns its address.
    pub fn buffer(&mut self, data: &[u32]) -> u64 {
        let at = self.grow(4 * data.len() as u64);
        for (i, &word) in data.iter().enumerate() {
            self.store(at + 4 * i as u64, word);
        }
        at
    }

    /// Copies `count` words starting at an address.
    pub fn read(&self, address: u64, count: usize) -> Vec<u32> {
        (0..count as u64).map(|i| self.load(address + 4 * i)).collect()
    }

    /// # Panics
    ///
    /// If there is no word at the address: a kernel on the host computed a wrong one.
    fn at(&self, address: u64) -> &W {
        let index = address.checked_sub(self.base).map(|offset| (offset / 4) as usize);
        let word = index.filter(|_| address.is_multiple_of(4)).and_then(|index| self.words.get(index));
        word.unwrap_or_else(|| panic!("no word of the host's memory is at address {address:#x}"))
    }

    pub fn load(&self, address: u64) -> u32 {
        self.at(address).load()
    }

    pub fn store(&self, address: u64, value: u32) {
        self.at(address).store(value);
    }

    /// Stores `new` if the word is `expected`. Returns the old value.
    pub fn compare_exchange(&self, address: u64, expected: u32, new: u32) -> u32 {
        self.at(address).compare_exchange(expected, new)
    }

    /// Adds to a word, wrapping. Returns the old value.
    pub fn add(&self, address: u64, value: u32) -> u32 {
        self.at(address).add(value)
    }
}

/// Words for a device's memory that is zero elsewhere, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(BTreeMap<u64, u32>);

/// Zeros between two words that are cheaper to write along than to write both apart.
const SHORT_GAP: usize = 64;

impl Words {
    pub(crate) fn store(&mut self, address: u64, value: u32) {
        self.0.insert(address, value);
    }

    pub(crate) fn store64(&mut self, address: u64, value: u64) {
        self.store(address, value as u32);
        self.store(address + 4, (value >> 32) as u32);
    }

    /// Writes them into a buffer of zeros.
    pub(crate) fn write(&self, buffer: &Buffer<u32>, gpu: &mut Device) -> warploom::Result<()> {
        let mut piece = Vec::new();
        let mut first = 0;
        for (&address, &word) in &self.0 {
            let at = ((address - buffer.address()) / 4) as usize;
            if piece.is_empty() || at - first - piece.len() > SHORT_GAP {
                buffer.write_range(gpu, first, &piece)?;
                piece.clear();
                first = at;
            }
            piece.resize(at - first, 0);
            piece.push(word);
        }
        buffer.write_range(gpu, first, &piece)
    }
}
