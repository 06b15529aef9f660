//! A store of reusable records, each known by a small number.

/// Records that come and go; a number is used again after its record is given back, with its old content.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { records: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// A free record's number; `make` makes a new one if there is none.
    #[inline]
    pub fn take(&mut self, make: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.records.push(make());
            self.records.len() as u32 - 1
        })
    }

    /// Keeps a record; returns its number.
    #[inline]
    pub fn put(&mut self, record: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.records[number as usize] = record;
                number
            }
            None => {
                self.records.push(record);
                self.records.len() as u32 - 1
            }
        }
    }

    /// The record is free again.
    #[inline]
    pub fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Records in use.
    pub fn in_use(&self) -> usize {
        self.records.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, number: u32) -> &T {
        &self.records[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.records[number as usize]
    }
}
