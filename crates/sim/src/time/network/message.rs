//! The messages between nodes (SMs, the aggregator) and L2 slices.
//!
//! A message has no data in it. The bytes it moves are kept by the sender of the request: what a store writes from the
//! cycle it issued, what a load found from the cycle its slice served it. So messages stay small.

use crate::chip::timing::SECTOR_BYTES;
use crate::kit::ids::{ProbeId, Ticket};
use crate::kit::line::LineAddress;
use crate::time::network::node::Node;

/// What a request wants from its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Bytes of a line: for a load, an instruction fetch or a constant.
    Read,
    /// To write bytes of a line. The reply has no data.
    Write,
    /// To change words of a line.
    Atomic {
        /// Passes of the slice's atomic unit.
        passes: u16,
        /// The most lanes that name one word.
        same_word: u8,
        /// The words of the line, bit 0 the first.
        words: u32,
        lanes: u8,
        /// It is an addition, for which the unit may be faster.
        adds: bool,
        /// Bytes of operands that travel with it.
        operand_bytes: u16,
        /// Bytes of old values that its reply brings, if they are used.
        result_bytes: u16,
    },
    /// To be answered after all that came before it: how a fence learns that its SM's accesses are done.
    Fence,
}

/// What a request wants from the directory, where L1s are coherent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// The sender's L1 keeps nothing.
    #[default]
    Nothing,
    /// A copy of the line to read.
    Share,
    /// The line to write; no other L1 may keep a copy.
    Own {
        /// The sender has a copy to read, and keeps it until it is invalidated.
        has_copy: bool,
    },
    /// To write back a dirty line.
    GiveBack,
}

/// A request for (a part of) one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub line: LineAddress,
    /// The port of the line's slice, in whichever half of the L2 that is.
    pub port: u16,
    /// The line's 32-byte sectors that it reads or writes, bit 0 the first.
    pub sectors: u8,
    /// For a write: the sectors of which it writes every byte.
    pub whole: u8,
    pub kind: RequestKind,
    pub from: Node,
    pub ticket: Ticket,
    pub asks: Asks,
    /// Its slice had to fetch the line from memory.
    pub missed: bool,
    /// It has come from the other half of the L2, and so goes its reply.
    pub far: bool,
}

impl Request {
    /// Bytes of data it carries towards the slice, in whole sectors.
    pub fn request_bytes(&self) -> u32 {
        match self.kind {
            RequestKind::Read | RequestKind::Fence => 0,
            RequestKind::Write => sector_count(self.sectors) * SECTOR_BYTES,
            RequestKind::Atomic { operand_bytes, .. } => in_sectors(operand_bytes),
        }
    }

    /// Whether it is an atomic with a result. Those are counted on their way.
    #[inline]
    pub(crate) fn is_awaited_atomic(&self) -> bool {
        matches!(self.kind, RequestKind::Atomic { result_bytes: 1.., .. })
    }

    /// Sectors that a load asks for.
    pub(crate) fn read_sectors(&self) -> u32 {
        if self.kind == RequestKind::Read { sector_count(self.sectors) } else { 0 }
    }

    /// Sectors that follow it through a port: those that it writes. A reduction's operand fits the request.
    pub(crate) fn written_sectors(&self) -> u32 {
        let writes = self.kind == RequestKind::Write || self.is_awaited_atomic();
        if writes { sector_count(self.sectors) } else { 0 }
    }

    /// Bytes of data its reply carries back, in whole sectors.
    pub fn reply_bytes(&self) -> u32 {
        match self.kind {
            RequestKind::Write | RequestKind::Fence => 0,
            RequestKind::Read => sector_count(self.sectors) * SECTOR_BYTES,
            RequestKind::Atomic { result_bytes, .. } => in_sectors(result_bytes),
        }
    }
}

/// How many sectors of a line are marked. Hosts whose processor cannot count bits take four times as long to do that.
#[inline(always)]
pub(crate) fn sector_count(sectors: u8) -> u32 {
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    debug_assert!(sectors < 16, "a line has at most four sectors");
    (COUNTS >> (4 * (sectors % 16))) as u32 & 7
}

fn in_sectors(bytes: u16) -> u32 {
    u32::from(bytes).next_multiple_of(SECTOR_BYTES)
}

/// What a slice's port sends to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The answer to a request of the node.
    Answer(Ticket),
    /// The same, from the other half of the L2.
    FarAnswer(Ticket),
    /// The directory asks the node's L1 to share or give up a line.
    Probe(ProbeId),
}
