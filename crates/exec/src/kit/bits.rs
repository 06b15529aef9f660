//! Iteration over the set bits of a lane mask, and a bit set over byte positions.

/// The set lanes of a mask, lowest first.
#[inline(always)]
pub fn lanes(mask: u64) -> Lanes {
    Lanes(mask)
}

/// Iterator of [`lanes`].
#[derive(Clone, Copy, Debug)]
pub struct Lanes(u64);

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// A set of byte positions below a fixed length.
#[derive(Debug, Clone)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// An empty set of positions below `len`.
    pub fn new(len: usize) -> Self {
        BitSet(vec![0; len.div_ceil(64)])
    }

    /// Adds the positions `start..start + count`.
    pub fn insert(&mut self, start: usize, count: usize) {
        for at in start..start + count {
            self.0[at / 64] |= 1 << (at % 64);
        }
    }

    /// Whether all of `start..start + count` are in the set.
    pub fn contains(&self, start: usize, count: usize) -> bool {
        (start..start + count).all(|at| self.0[at / 64] >> (at % 64) & 1 == 1)
    }
}
