//! Ports into the network that neighbouring SMs share: their requests leave one after the other.

use crate::chip::timing::PortSpec;
use crate::kit::cycle::Cycle;
use crate::time::network::message::{Request, RequestKind};

/// Parts of a cycle, so that a request need not take whole cycles.
const PARTS: u64 = 256;

/// The ports of a chip.
#[derive(Clone, Debug)]
pub(crate) struct SharedPorts {
    /// SMs at one port.
    sms: usize,
    request_parts: u64,
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
        let sectors = match request.kind {
            RequestKind::Read | RequestKind::Fence => 0,
            RequestKind::Write => u64::from(request.sectors.count_ones()),
            // A reduction's operand fits the request.
            RequestKind::Atomic { result_bytes: 0, .. } => 0,
            RequestKind::Atomic { .. } => u64::from(request.sectors.count_ones()),
        };
        let leaves = self.free[port].max(at.0 * PARTS);
        self.free[port] = leaves + self.request_parts + sectors * self.sector_parts;
        Cycle(leaves / PARTS)
    }
}
