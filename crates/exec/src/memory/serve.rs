//! The part of an access that the memory system does later: lanes read, write or change bytes of global memory, in a
//! cache line or in memory itself.

use crate::kit::lane_mask::LaneMask;
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::bytes::{Piece, differing_lanes, gather_flat, scatter_flat, update_flat};
use crate::memory::store::Memory;

impl<const N: usize> WarpAccess<N> {
    /// Lanes of a load get their bytes from a line, of whose bytes those of `written` (a bit each) were ever written.
    #[inline]
    pub fn load_from_line(&mut self, line: u64, data: &[u8], written: u128, lanes: LaneMask) {
        if self.kind == MemoryOp::Texture {
            return;
        }
        self.note_unwritten(line, written, lanes);
        let piece = Piece::of_global(line, lanes, &self.addresses, self.bytes);
        gather_flat(data, &piece, self.rows.data_mut(self.bytes));
    }

    /// Lanes of a store write their bytes to a line.
    pub fn store_to_line(&self, line: u64, data: &mut [u8], lanes: LaneMask) {
        let piece = Piece::of_global(line, lanes, &self.addresses, self.bytes);
        scatter_flat(data, &piece, self.rows.data(self.bytes));
    }

    /// Lanes of an atomic change a line, as [`WarpAccess::update`] changes memory; `written` as for a load.
    pub fn update_line(&mut self, line: u64, data: &mut [u8], written: u128, lanes: LaneMask) -> LaneMask {
        self.note_unwritten(line, written, lanes);
        self.update_bytes(line, data, lanes)
    }

    /// Lanes of a store write their bytes to memory. Returns whether it changed, if somebody wants to know (`notice`).
    #[inline]
    pub fn store(&self, memory: &mut Memory, lanes: LaneMask, notice: bool) -> bool {
        let Some((base, at)) = self.allocation(memory, lanes) else { return false };
        let (_, data, written) = memory.allocation_mut(at);
        let piece = Piece::of_global(base, lanes, &self.addresses, self.bytes);
        let rows = self.rows.data(self.bytes);
        let changed = notice && !differing_lanes(data, &piece, rows).is_empty();
        scatter_flat(data, &piece, rows);
        if let Some(written) = written {
            for lane in lanes.lanes() {
                written.insert((self.addresses.at(lane) - base) as usize, self.bytes as usize);
            }
        }
        changed
    }

    /// Lanes of an atomic change memory, one after the other. Returns the lanes that changed it.
    #[inline]
    pub fn update(&mut self, memory: &mut Memory, lanes: LaneMask) -> LaneMask {
        let Some((base, at)) = self.allocation(memory, lanes) else { return LaneMask::NONE };
        let (_, data, written) = memory.allocation_mut(at);
        let changed = self.update_bytes(base, data, lanes);
        if let Some(written) = written {
            let bytes = self.bytes as usize;
            for lane in lanes.lanes() {
                let place = (self.addresses.at(lane) - base) as usize;
                self.unwritten |= LaneMask((!written.contains(place, bytes) as u64) << lane);
                written.insert(place, bytes);
            }
        }
        changed
    }

    #[inline]
    fn update_bytes(&mut self, base: u64, data: &mut [u8], lanes: LaneMask) -> LaneMask {
        let MemoryOp::Atomic { op, ty, .. } = self.kind else { unreachable!("called for atomics") };
        let piece = Piece::of_global(base, lanes, &self.addresses, self.bytes);
        update_flat(data, &piece, (op, ty), &mut self.rows)
    }

    #[inline]
    fn note_unwritten(&mut self, line: u64, written: u128, lanes: LaneMask) {
        if written != u128::MAX {
            self.look_for_unwritten(line, written, lanes);
        }
    }

    #[cold]
    fn look_for_unwritten(&mut self, line: u64, written: u128, lanes: LaneMask) {
        for lane in lanes.lanes() {
            let wanted = ((1 << self.wanted_bytes(lane)) - 1) << (self.addresses.at(lane) - line);
            self.unwritten |= LaneMask(((written & wanted != wanted) as u64) << lane);
        }
    }

    /// The allocation that holds the lanes' bytes: its address and its number.
    #[inline]
    fn allocation(&self, memory: &Memory, lanes: LaneMask) -> Option<(u64, usize)> {
        let at = memory.find(self.addresses.at(lanes.lowest()))?;
        Some((memory.allocation(at).0, at))
    }
}
