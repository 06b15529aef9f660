//! A pool of reusable records, each addressed by a small number.

/// Records that are allocated and freed all the time. A freed record keeps its content until its number is reused,
/// so buffers inside it are not allocated again.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { records: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// The number of a free record, with its old content; `make` adds a new one if none is free.
    #[inline]
    pub(crate) fn take(&mut self, make: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.records.push(make());
            self.records.len() as u32 - 1
        })
    }

    /// Stores `record` and returns its number.
    #[inline]
    pub(crate) fn put(&mut self, record: T) -> u32 {
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

    /// Frees a record. It must be in use.
    #[inline]
    pub(crate) fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }

    pub(crate) fn in_use(&self) -> usize {
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
