//! A store of reusable records, each named by a small number of a type that names nothing else.

use std::ops::{Index, IndexMut};

/// The name of a record in a [`Slab`].
pub trait Id: Copy {
    fn from_index(index: usize) -> Self;

    fn index(self) -> usize;
}

/// Records that come and go. An id is used again after its record was given back; the record then has its old content
/// until it is overwritten.
#[derive(Clone, Debug)]
pub struct Slab<I, T> {
    records: Vec<T>,
    free: Vec<I>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Slab { records: Vec::new(), free: Vec::new() }
    }
}

impl<I: Id, T> Slab<I, T> {
    /// The id of a free record; `make` makes a new one if there is none.
    #[inline]
    pub fn take(&mut self, make: impl FnOnce() -> T) -> I {
        self.free.pop().unwrap_or_else(|| {
            self.records.push(make());
            I::from_index(self.records.len() - 1)
        })
    }

    /// Keeps a record; returns its id.
    #[inline]
    pub fn put(&mut self, record: T) -> I {
        match self.free.pop() {
            Some(id) => {
                self.records[id.index()] = record;
                id
            }
            None => {
                self.records.push(record);
                I::from_index(self.records.len() - 1)
            }
        }
    }

    #[inline]
    pub fn give_back(&mut self, id: I) {
        self.free.push(id);
    }

    /// Records that were not given back.
    pub fn in_use(&self) -> usize {
        self.records.len() - self.free.len()
    }
}

impl<I: Id, T> Index<I> for Slab<I, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.records[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Slab<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.records[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ids::Ticket;

    #[test]
    fn ids_are_used_again() {
        let mut slab: Slab<Ticket, char> = Slab::default();
        let (a, b) = (slab.put('a'), slab.put('b'));
        assert_eq!((a, b, slab[a], slab[b], slab.in_use()), (Ticket(0), Ticket(1), 'a', 'b', 2));
        slab.give_back(a);
        assert_eq!((slab.take(|| 'c'), slab[a], slab.in_use()), (a, 'a', 2), "the old content");
        slab.give_back(b);
        assert_eq!((slab.put('d'), slab[b]), (b, 'd'));
        assert_eq!(slab.take(|| 'e'), Ticket(2));
    }
}
