//! Bulk copies: what the copy engine of an SM does on behalf of a thread.

use crate::types::{AtomOp, Ty};

/// Marks the 128 bytes of a tensor map as such, at byte 8 of them.
pub const TENSOR_MAP_MARK: u32 = 0x4d54_4c57;

/// From where to where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkWay {
    /// From global memory to the shared memory of one or several CTAs of the cluster.
    ToShared,
    ToGlobal,
    /// From the CTA's shared memory to that of any CTA of the cluster.
    ToCluster,
}

/// A bulk copy without its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bulk {
    pub way: BulkWay,
    /// Dimensions of the tensor, 1 to 5. 0: bytes that lie together.
    pub dims: u8,
    /// Instead of being stored, elements change those that are there. Ty is that of an element; halves come in pairs.
    /// Of a tensor, its map says the type.
    pub reduce: Option<(AtomOp, Ty)>,
    /// To all CTAs of the cluster that a mask names.
    pub multicast: bool,
}

impl Bulk {
    /// Whether it may leave the CTA for another one.
    pub const fn is_of_clusters(self) -> bool {
        self.multicast || matches!(self.way, BulkWay::ToCluster)
    }
}
