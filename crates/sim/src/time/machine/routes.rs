//! Which slice a request goes to, through which port, and how far that is.

use crate::chip::Chip;
use crate::kit::line::LineAddress;
use crate::time::map::AddressMap;
use crate::time::network::floor::Floor;
use crate::time::network::message::Request;
use crate::time::network::node::Node;

#[derive(Debug)]
pub(super) struct Routes {
    pub map: AddressMap,
    /// Slices in a partition: a power of two.
    pub slices: u32,
    /// What a message between the halves of the L2 takes longer; 0 if it has no halves.
    pub far_cycles: u64,
    pub floor: Floor,
    /// By SM, the half of the L2 that is near.
    halves: Vec<u32>,
}

impl Routes {
    pub(super) fn new(chip: &Chip) -> Routes {
        Routes {
            map: AddressMap::new(&chip.l2, &chip.dram),
            slices: chip.l2.slices_per_partition,
            far_cycles: u64::from(chip.l2.far_cycles),
            floor: Floor::new(chip),
            halves: (0..chip.sm.count).map(|sm| Node::Sm(sm as u16).half()).collect(),
        }
    }

    /// The port of the crossbars that belongs to the slice of a line.
    pub(super) fn port(&self, line: LineAddress) -> usize {
        usize::from(self.map.port_of(line))
    }

    /// The partition of a port, and the slice in it.
    #[inline]
    pub(super) fn place(&self, port: usize) -> (usize, u32) {
        (port >> self.slices.trailing_zeros(), port as u32 & (self.slices - 1))
    }

    /// The port of the slice that is near the sender of a request, and whether that is not the line's slice but its
    /// twin in the other half of the L2.
    #[inline]
    pub(super) fn near_port(&self, request: &Request) -> (usize, bool) {
        debug_assert!(usize::from(request.port) == self.port(request.line));
        let port = u32::from(request.port);
        let half = match request.from {
            Node::Sm(sm) => self.halves[usize::from(sm)],
            Node::Aggregator => request.from.half(),
        };
        let far = self.far_cycles > 0 && port >> self.slices.trailing_zeros() & 1 != half;
        // A slice and its twin are in neighbouring partitions.
        let port = if far { port ^ self.slices } else { port };
        (port as usize, far)
    }
}
