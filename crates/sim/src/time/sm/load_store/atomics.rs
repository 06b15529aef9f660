//! Atomics on global memory: which lanes travel together, and what their request carries (`[atomic]` of the chip file).

use warploom_isa::AtomOp;

use crate::chip::timing::{Carries, SECTOR_BYTES, SameWord};
use crate::exec::memory::access::MemoryOp;
use crate::kit::cycle::Cycle;
use crate::kit::ids::TransferId;
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::time::network::message::{RequestKind, sector_count};
use crate::time::sm::load_store::MemoryUnit;
use crate::time::sm::load_store::l1::Refusal;
use crate::time::sm::load_store::messages::Purpose;
use crate::time::sm::load_store::transfer::Transfer;

impl<const N: usize> MemoryUnit<N> {
    /// Of the lanes of an atomic on one line, those that travel in the next request.
    #[inline]
    pub(super) fn lanes_of_request(&self, transfer: &Transfer<N>, lanes: LaneMask) -> LaneMask {
        if lanes.0.is_power_of_two() || transfer.pending.aggregated {
            return lanes;
        }
        let group = self.atomic.request_lanes;
        let first = lanes.lowest() as u32 / group * group;
        let mut lanes = lanes & LaneMask((u64::MAX >> (u64::BITS - group)) << first);
        if u64::from(self.atomic.request_bytes) < self.line_bytes {
            (_, lanes) = transfer.access.addresses.block(lanes, u64::from(self.atomic.request_bytes));
        }
        match self.atomic.same_word {
            SameWord::Together => lanes,
            SameWord::Apart => transfer.one_per_word(lanes),
        }
    }

    /// Sends lanes of an atomic to their slice. `on_line` are all of its unsent lanes on that line.
    pub(super) fn send_atomic(
        &mut self,
        now: Cycle,
        id: TransferId,
        line: LineAddress,
        (lanes, on_line): (LaneMask, LaneMask),
    ) -> Result<(), Refusal> {
        let transfer = &self.transfers[id];
        let MemoryOp::Atomic { op, silent, .. } = transfer.access.kind else {
            unreachable!("called for atomics")
        };
        let is_cas = op == AtomOp::Cas;
        let operands = if is_cas { 2 } else { 1 };
        // Mostly it is one lane.
        let work = if lanes.0.is_power_of_two() {
            LaneWork::of_lane(transfer, lanes.lowest(), line)
        } else {
            LaneWork::of_lanes(transfer, lanes, line, self.atomic.pass_bytes)
        };
        let LaneWork { mut sectors, words, count, same_word, mut passes } = work;
        if is_cas && !transfer.pending.aggregated && transfer.several_words(on_line) {
            passes *= self.atomic.cas_passes;
        }
        let (operand_bytes, result_bytes) = match self.atomic.carries {
            Carries::Operands => (count * operands * transfer.access.bytes, count * transfer.access.bytes),
            Carries::Segment => {
                sectors = segment(sectors);
                let bytes = sector_count(sectors) * SECTOR_BYTES;
                (bytes, bytes)
            }
        };
        let kind = RequestKind::Atomic {
            passes: passes as u16,
            same_word: same_word as u8,
            words,
            lanes: count as u8,
            adds: op == AtomOp::Add,
            operand_bytes: operand_bytes as u16,
            result_bytes: if silent { 0 } else { result_bytes as u16 },
        };
        let ticket = self.send(now, Purpose::Atomic, line, sectors, kind)?;
        self.wait_for(ticket, id, lanes);
        if !silent {
            self.atomic_room -= 1;
            self.free_at = now + u64::from(self.atomic.sm_cycles);
        }
        self.stats.atomics += 1;
        self.stats.atomic_lanes += count as u64;
        Ok(())
    }
}

/// What lanes of an atomic on one line ask of its slice.
struct LaneWork {
    sectors: u8,
    words: u32,
    /// Lanes that travel.
    count: u32,
    /// The most lanes that name one word.
    same_word: u32,
    passes: u32,
}

impl LaneWork {
    #[inline]
    fn of_lane<const N: usize>(transfer: &Transfer<N>, lane: usize, line: LineAddress) -> LaneWork {
        let (sectors, words) = transfer.place(lane, line);
        LaneWork { sectors, words, count: 1, same_word: 1, passes: 1 }
    }

    #[inline(never)]
    fn of_lanes<const N: usize>(
        transfer: &Transfer<N>,
        lanes: LaneMask,
        line: LineAddress,
        pass_bytes: u32,
    ) -> LaneWork {
        let (mut sectors, mut words) = (0, 0);
        for lane in lanes.lanes() {
            let (its_sectors, its_words) = transfer.place(lane, line);
            (sectors, words) = (sectors | its_sectors, words | its_words);
        }
        if transfer.pending.aggregated {
            return LaneWork { sectors, words, count: 1, same_word: 1, passes: 1 };
        }
        LaneWork {
            sectors,
            words,
            count: lanes.count(),
            same_word: transfer.same_word(lanes),
            passes: transfer.passes(lanes, u64::from(pass_bytes)),
        }
    }
}

/// The smallest aligned segment of one, two or four sectors that covers some sectors of a line.
fn segment(sectors: u8) -> u8 {
    let is_in_one_half = sectors & 0b0011 == 0 || sectors & 0b1100 == 0;
    if is_in_one_half { sectors } else { 0b1111 }
}
