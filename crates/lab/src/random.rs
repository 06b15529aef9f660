//! Deterministic random numbers and hashes. Recorded files depend on them: a change makes every recording stale.

use std::ops::RangeInclusive;

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The name is the seed, so each name has its own sequence.
    pub(crate) fn named(name: &str) -> Random {
        Random(hash(name.as_bytes()))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform below `n`. `n` must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// True with probability 1 in `n`.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// The range must not be empty.
    pub(crate) fn between(&mut self, range: RangeInclusive<i32>) -> i32 {
        let (first, last) = range.into_inner();
        let count = (i64::from(last) - i64::from(first) + 1) as usize;
        (i64::from(first) + self.below(count) as i64) as i32
    }

    pub(crate) fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| (self.next() >> 32) as u32).collect()
    }

    /// Uniform in [-1, 1), with the full precision of the format.
    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        let unit = |bits: u64| (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..count).map(|_| unit(self.next())).collect()
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A 64-bit hash; not cryptographic.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    for piece in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..piece.len()].copy_from_slice(piece);
        state = mix(state ^ u64::from_le_bytes(word)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    mix(state)
}
