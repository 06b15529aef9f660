//! What SMs and L2 slices say to each other.
//!
//! A message has no data in it: the bytes it moves are kept by the SM that asked (what a store writes from the cycle it
//! issued, what a load found from the cycle its slice served it), so that messages stay small.

use crate::chip::timing::SECTOR_BYTES;
/// What a request wants from its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Bytes of a line: a load, an instruction or constant fetch.
    Read,
    /// To write bytes of a line. Answered without data once done.
    Write,
    /// To change words of a line.
    Atomic {
        /// Most lanes that name one word.
        same_word: u8,
        /// All its lanes.
        lanes: u8,
        /// Bytes of operands that a lane sends.
        operand_bytes: u8,
        /// Bytes that a lane gets back: the old value, or nothing if nobody wants it.
        result_bytes: u8,
    },
}

/// What a request wants of the directory, where L1s are coherent. What it wants of the slice is beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// Nothing to keep: the asker's L1 has no part in it.
    #[default]
    Nothing,
    /// A copy of the line to read.
    Share,
    /// The line to write, and nobody else to have it.
    Own {
        /// The asker has a copy to read, and keeps it until somebody takes it away.
        has_copy: bool,
    },
    /// To give a line back that memory does not have as it is.
    GiveBack,
}

/// A request from an SM for (a part of) one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Address of the line's first byte.
    pub line: u64,
    /// The line's 32-byte sectors that it reads or writes, bit 0 the first.
    pub sectors: u8,
    /// For a write: the sectors that it writes wholly.
    pub whole: u8,
    /// What it wants.
    pub kind: RequestKind,
    /// Who asks.
    pub sm: u16,
    /// The asker's number for it, which comes back with the reply.
    pub ticket: u32,
    /// What it wants of the directory.
    pub asks: Asks,
    /// Its slice had to ask memory for the line.
    pub missed: bool,
}

impl Request {
    /// Bytes of data it carries towards the slice, in whole sectors.
    pub fn request_bytes(&self) -> u32 {
        match self.kind {
            RequestKind::Read => 0,
            RequestKind::Write => self.sectors.count_ones() * SECTOR_BYTES,
            RequestKind::Atomic { lanes, operand_bytes, .. } => in_sectors(lanes, operand_bytes),
        }
    }

    /// Bytes of data its reply carries back, in whole sectors.
    pub fn reply_bytes(&self) -> u32 {
        match self.kind {
            RequestKind::Write => 0,
            RequestKind::Read => self.sectors.count_ones() * SECTOR_BYTES,
            RequestKind::Atomic { lanes, result_bytes, .. } => in_sectors(lanes, result_bytes),
        }
    }
}

fn in_sectors(lanes: u8, bytes: u8) -> u32 {
    (u32::from(lanes) * u32::from(bytes)).next_multiple_of(SECTOR_BYTES)
}
