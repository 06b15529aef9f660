//! Ports into the network that neighbouring SMs share: their requests leave one after the other.

use crate::chip::timing::PortSpec;
use crate::kit::cycle::Cycle;
use crate::time::network::message::Request;

/// Parts of a cycle, so that a request need not take whole cycles.
const PARTS: u64 = 256;

/// The ports of a chip.
#[derive(Clone, Debug)]
pub(crate) struct SharedPorts {
    /// SMs at one port.
    sms: usize,
    request_parts: u64,
    next_parts: u64,
    sector_parts: u64,
    /// When each port is free, in parts of a cycle.
    free: Vec<u64>,
}

impl SharedPorts {
    pub(crate) fn new(spec: &PortSpec, sms: usize) -> SharedPorts {
        let parts = |cycles: f64| (cycles * PARTS as f64).round() as u64;
        SharedPorts {
            sms: spec.sms as usize,
            request_parts: parts(spec.request_cycles),
            next_parts: parts(spec.next_sector_cycles.unwrap_or(spec.request_cycles)),
            sector_parts: parts(spec.sector_cycles),
            free: vec![0; sms.div_ceil(spec.sms as usize)],
        }
    }

    /// SMs at one port.
    pub(crate) fn sms(&self) -> usize {
        self.sms
    }

    /// Takes the requests of the SMs of a port in the order of their cycles, and says when each leaves.
    pub(crate) fn pass(&mut self, port: usize, at: Cycle, request: &Request) -> Cycle {
        let leaves = self.free[port].max(at.0 * PARTS);
        let parts = self.request_parts
            + u64::from(request.read_sectors().saturating_sub(1)) * self.next_parts
            + u64::from(request.written_sectors()) * self.sector_parts;
        self.free[port] = leaves + parts;
        Cycle(leaves / PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ids::Ticket;
    use crate::kit::line::LineAddress;
    use crate::time::network::message::{Asks, RequestKind};
    use crate::time::network::node::Node;

    #[test]
    fn requests_leave_one_after_the_other() {
        let spec = PortSpec { sms: 2, request_cycles: 1.0, next_sector_cycles: None, sector_cycles: 0.5 };
        let mut ports = SharedPorts::new(&spec, 4);
        let request = |kind, sectors| Request {
            line: LineAddress(0),
            port: 0,
            sectors,
            whole: 0,
            kind,
            from: Node::Sm(0),
            ticket: Ticket(0),
            asks: Asks::Nothing,
            missed: false,
            far: false,
        };
        let store = request(RequestKind::Write, 0b11);
        let (one, three) = (request(RequestKind::Read, 1), request(RequestKind::Read, 0b111));
        let leaves = [store, one, three, one, store].map(|request| ports.pass(0, Cycle(10), &request).0);
        assert_eq!(
            leaves,
            [10, 12, 13, 16, 17],
            "a load by its sectors; a store takes more for what it carries"
        );
        assert_eq!(ports.pass(1, Cycle(10), &one), Cycle(10), "the other port is free");
        assert_eq!(ports.pass(0, Cycle(100), &one), Cycle(100));
    }
}
