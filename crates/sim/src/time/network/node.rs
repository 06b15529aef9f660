//! The nodes of the network, and their ports.

/// A unit that sends requests to the L2 slices and gets their replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Sm(u16),
    Aggregator,
}

impl Node {
    /// The number of an SM; the aggregator comes after all of them.
    #[inline]
    pub(crate) fn number(self) -> usize {
        match self {
            Node::Sm(sm) => usize::from(sm),
            Node::Aggregator => usize::MAX,
        }
    }

    /// The half of the L2 that is near, where there are two. As on an H200, the first eight SMs to get CTAs (one of
    /// each pair) are near the same half, and of all SMs one half is near each.
    pub(crate) fn half(self) -> u32 {
        match self {
            Node::Sm(sm) if sm < 16 => 0,
            Node::Sm(sm) => u32::from(sm / 2 % 7 >= 3),
            Node::Aggregator => 0,
        }
    }
}

/// Which port of a crossbar belongs to which node: SMs in their order, then the aggregator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodePorts {
    sms: usize,
}

impl NodePorts {
    pub(crate) fn new(sms: usize) -> NodePorts {
        NodePorts { sms }
    }

    #[inline(always)]
    pub(crate) fn port(self, node: Node) -> usize {
        match node {
            Node::Sm(sm) => sm as usize,
            Node::Aggregator => self.sms,
        }
    }

    #[inline(always)]
    pub(crate) fn node(self, port: usize) -> Node {
        if port < self.sms { Node::Sm(port as u16) } else { Node::Aggregator }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aggregator_comes_after_the_last_sm() {
        let ports = NodePorts::new(15);
        for (node, port) in [(Node::Sm(0), 0), (Node::Sm(14), 14), (Node::Aggregator, 15)] {
            assert_eq!((ports.port(node), ports.node(port)), (port, node));
        }
    }
}
