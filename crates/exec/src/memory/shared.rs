//! The scratchpad of a CTA.

use crate::kit::bits::BitSet;

/// Shared memory of one CTA.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Which of them were ever written, where that is tracked.
    pub written: Option<BitSet>,
    /// Where it begins in the SM's memory.
    pub base: u32,
}

impl Shared {
    /// `bytes` zero bytes, which count as never written.
    pub fn new(bytes: u32, base: u32, track_writes: bool) -> Self {
        let bytes = bytes as usize;
        Shared { bytes: vec![0; bytes], written: track_writes.then(|| BitSet::new(bytes)), base }
    }
}
