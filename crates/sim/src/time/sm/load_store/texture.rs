//! The texture units: a fetch sends the lines of its texels through the L1 like a load, one texel of all lanes after
//! the other, and filters what comes.

use crate::chip::Chip;
use crate::exec::memory::access::{MemoryOp, WarpAccess};
use crate::kit::cycle::Cycle;
use crate::kit::ids::TransferId;
use crate::time::sm::load_store::MemoryUnit;

/// Texels of a lane that the units fetch at once.
const TEXELS_AT_ONCE: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TextureUnits {
    /// From the L1's data to the result, without a filter.
    beyond_l1: u64,
    filter: u64,
    lanes_per_cycle: u32,
    /// When they have taken in all fetches so far.
    free_at: Cycle,
}

impl TextureUnits {
    pub(super) fn new(chip: &Chip) -> Option<TextureUnits> {
        let spec = chip.texture.as_ref()?;
        Some(TextureUnits {
            beyond_l1: u64::from(spec.hit_latency_cycles.saturating_sub(chip.l1.hit_latency_cycles)),
            filter: u64::from(spec.filter_cycles),
            lanes_per_cycle: spec.lanes_per_cycle,
            free_at: Cycle(0),
        })
    }

    /// From the last line of a fetch to its result.
    pub(super) fn latency<const N: usize>(&self, access: &WarpAccess<N>) -> u64 {
        self.beyond_l1 + if access.texels_per_lane() > 1 { self.filter } else { 0 }
    }

    /// The last line of a fetch is sent. Returns when the units can begin the next.
    fn took_in<const N: usize>(&mut self, now: Cycle, access: &WarpAccess<N>) -> Cycle {
        let passes = access.texels_per_lane().div_ceil(TEXELS_AT_ONCE) as u64;
        let cycles = passes * u64::from(access.mask.count().div_ceil(self.lanes_per_cycle));
        // One that comes after a pause has been taken in while its lines were sent.
        self.free_at = self.free_at.max(Cycle(now.0.saturating_sub(cycles))) + cycles;
        self.free_at
    }
}

impl<const N: usize> MemoryUnit<N> {
    /// What a completed access takes beyond its last line.
    #[inline]
    pub(super) fn filter_cycles(&self, id: TransferId) -> u64 {
        let access = &self.transfers[id].access;
        match &self.texture {
            Some(units) if access.kind == MemoryOp::Texture => units.latency(access),
            _ => 0,
        }
    }

    /// A piece of a fetch has been sent: the next texel's lines follow, or else the next access.
    #[cold]
    pub(super) fn sent_texels(&mut self, now: Cycle, id: TransferId) {
        let transfer = &mut self.transfers[id];
        if !transfer.pending.unsent.global.is_empty() {
            return;
        }
        let lanes = transfer.access.next_texels(self.line_bytes);
        if !lanes.is_empty() {
            transfer.pending.unsent.global = lanes;
            transfer.number_lines(self.line_bytes);
        } else if let Some(units) = &mut self.texture {
            self.free_at = self.free_at.max(units.took_in(now, &transfer.access));
        }
    }
}
