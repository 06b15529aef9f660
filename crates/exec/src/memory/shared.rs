//! The scratchpad of a CTA.

use warploom_isa::Space;

use crate::fault::{AccessKind, FaultKind};
use crate::kit::bits::BitSet;
use crate::memory::reach::past_end;

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

    /// A 64-bit word that is to be written.
    pub fn word64_mut(&mut self, address: u64) -> Result<&mut [u8; 8], FaultKind> {
        let (access, space) = (AccessKind::Atomic, Space::Shared);
        if !address.is_multiple_of(8) {
            return Err(FaultKind::Misaligned { access, space, address, bytes: 8 });
        }
        let size = self.bytes.len() as u64;
        let at = usize::try_from(address).unwrap_or(usize::MAX);
        let Some(word) = self.bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<8>()) else {
            let place = past_end(address, size, "the CTA's shared memory");
            return Err(FaultKind::OutOfBounds { access, space, address, bytes: 8, place });
        };
        if let Some(written) = &mut self.written {
            written.insert(at, 8);
        }
        Ok(word)
    }
}
