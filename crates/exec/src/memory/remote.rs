//! The part of an access that goes to the shared memory of other CTAs of the cluster.

use warploom_isa::{Space, Windows};

use crate::kit::lane_mask::LaneMask;
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::bytes::{Piece, gather_flat, scatter_flat, update_flat};
use crate::memory::shared::Shared;

impl<const N: usize> WarpAccess<N> {
    /// The ranks of other CTAs whose shared memory lanes access, with the lanes.
    pub fn remote_parts(&self, windows: Windows) -> impl Iterator<Item = (u32, LaneMask)> {
        let mut left = self.remote;
        std::iter::from_fn(move || {
            let lane = (!left.is_empty()).then(|| left.lowest())?;
            let (rank, _) = windows.cluster_of(self.addresses.at(lane))?;
            let lanes = self.addresses.within(left, windows.in_cluster(rank, 0), windows.bytes);
            left &= !lanes;
            Some((rank, lanes))
        })
    }

    /// Lanes access the shared memory of the CTA of a rank: all addresses have been checked. Returns whether it
    /// changed.
    pub fn serve_remote(
        &mut self,
        windows: Windows,
        rank: u32,
        lanes: LaneMask,
        shared: &mut Shared,
    ) -> bool {
        let addresses = self.addresses.relative_to(windows.in_cluster(rank, 0));
        let bytes = self.bytes;
        let piece = Piece { space: Space::Shared, at: 0, base: 0, mask: lanes, addresses: &addresses, bytes };
        let changed = match self.kind {
            MemoryOp::Load => {
                gather_flat(&shared.bytes, &piece, self.rows.data_mut(bytes));
                return false;
            }
            MemoryOp::Store => {
                scatter_flat(&mut shared.bytes, &piece, self.rows.data(bytes));
                true
            }
            MemoryOp::Atomic { op, ty, .. } => {
                !update_flat(&mut shared.bytes, &piece, (op, ty), &mut self.rows).is_empty()
            }
            kind => unreachable!("{kind:?} stays in its CTA"),
        };
        if let Some(written) = &mut shared.written {
            for lane in lanes.lanes() {
                written.insert(addresses.at(lane) as usize, bytes as usize);
            }
        }
        changed
    }

    /// Takes what lanes found elsewhere.
    pub fn take_remote(&mut self, served: &WarpAccess<N>, lanes: LaneMask) {
        self.rows.copy_lanes(&served.rows, lanes);
    }
}
