//! Where SMs and slices lie on the chip, in a row for each half of the L2: the wires between them differ in length.

use crate::chip::Chip;
use crate::time::network::node::Node;

/// Places, in cycles that a message takes from the first one and the answer takes back.
#[derive(Clone, Debug)]
pub(crate) struct Floor {
    sms: Vec<u32>,
    ports: Vec<u32>,
    /// What the way to the other half is longer, in 256ths of the way in the same half.
    far: u64,
}

impl Floor {
    pub(crate) fn new(chip: &Chip) -> Floor {
        let span = chip.interconnect.span_cycles;
        let slices = chip.l2.slices_per_partition;
        Floor {
            sms: (0..chip.sm.count).map(|sm| place(sm, chip.sm.count, span)).collect(),
            ports: (0..chip.l2.partitions * slices)
                .map(|port| place(port / slices, chip.l2.partitions, span))
                .collect(),
            far: match span {
                0 => 0,
                _ => u64::from(chip.interconnect.far_span_cycles.max(span) - span) * 256 / u64::from(span),
            },
        }
    }

    /// Cycles from a node to the slice at a port and back, beyond those of neighbours. A slice passes requests for its
    /// twin in the other half on, with `far`.
    #[inline]
    pub(crate) fn distance(&self, node: Node, port: usize, far: bool) -> u64 {
        match node {
            Node::Sm(sm) => {
                let near = u64::from(self.sms[sm as usize].abs_diff(self.ports[port]));
                if far { near + near * self.far / 256 } else { near }
            }
            Node::Aggregator => 0,
        }
    }
}

/// Neighbours by number are in different halves of the chip, side by side.
fn place(number: u32, count: u32, span: u32) -> u32 {
    let (at, last) = (u64::from(number / 2), u64::from((count - 1) / 2).max(1));
    (2 * u64::from(span) * at / last) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;

    #[test]
    fn the_ends_are_the_span_apart_both_ways() {
        let mut chip = Chip::load("h200", &[]).unwrap();
        (chip.interconnect.span_cycles, chip.interconnect.far_span_cycles) = (45, 71);
        let floor = Floor::new(&chip);
        let last_port = (chip.l2.partitions * chip.l2.slices_per_partition) as usize - 1;
        let last_sm = Node::Sm((chip.sm.count - 1) as u16);
        assert_eq!(floor.distance(Node::Sm(0), 0, false), 0);
        assert_eq!(floor.distance(Node::Sm(1), last_port, false), 90);
        assert_eq!(floor.distance(last_sm, 0, false), 90);
        assert_eq!(floor.distance(last_sm, last_port, false), 0);
        assert_eq!(floor.distance(last_sm, last_port, true), 0);
        assert_eq!(floor.distance(last_sm, 0, true), 141);
    }

    #[test]
    fn without_a_span_all_are_neighbours() {
        let chip = Chip::load("gtx480", &[]).unwrap();
        let floor = Floor::new(&chip);
        assert_eq!(floor.distance(Node::Sm(14), 0, false), 0);
    }
}
