//! Replies on their way from slices to SMs, in the exchange between two windows.

use crate::kit::cycle::Cycle;
use crate::time::l2::Served;
use crate::time::machine::deliveries::Deliveries;
use crate::time::network::Crossbar;
use crate::time::network::message::Reply;
use crate::time::network::node::NodePorts;

#[derive(Debug)]
pub(super) struct Replies {
    pub network: Crossbar<Reply>,
    /// Those that are to join the queues of ports.
    answers: Vec<Answer>,
    pub deliveries: Deliveries,
    nodes: NodePorts,
    /// What a reply from the other half of the L2 takes longer.
    far_cycles: u64,
}

/// An answer before it joins the queue of its slice's port.
#[derive(Debug)]
struct Answer {
    port: usize,
    at: Cycle,
    sink: usize,
    bytes: u32,
    reply: Reply,
}

impl Replies {
    pub(super) fn new(network: Crossbar<Reply>, nodes: NodePorts, far_cycles: u64) -> Replies {
        Replies { network, answers: Vec::new(), deliveries: Deliveries::new(1), nodes, far_cycles }
    }

    /// A slice, at a port, has served a request: the answer joins the port's queue, now or when replies cross.
    #[inline]
    pub(super) fn answer(&mut self, port: usize, Served { cycle, far, request, .. }: &Served, now: bool) {
        let answer = if *far { Reply::FarAnswer } else { Reply::Answer };
        let (sink, bytes) = (self.nodes.port(request.from), request.reply_bytes());
        let answer = Answer { port, at: *cycle, sink, bytes, reply: answer(request.ticket) };
        if now { answer.join(&mut self.network) } else { self.answers.push(answer) }
    }

    /// Moves replies from where they are now as far as they come in this exchange. Nodes are SMs only.
    pub(super) fn cross(&mut self, until: Cycle) {
        self.answers.drain(..).for_each(|answer| answer.join(&mut self.network));
        let deliveries = &mut self.deliveries;
        self.network.advance(
            until,
            |_| u32::MAX,
            |sm, arrival, &reply| deliveries.put((sm, arrival_of(reply, arrival, self.far_cycles), reply)),
        );
    }

    /// The same, with `deliver` for what arrives at a port.
    pub(super) fn cross_to(&mut self, until: Cycle, mut deliver: impl FnMut(usize, Cycle, Reply)) {
        self.network.advance(
            until,
            |_| u32::MAX,
            |port, arrival, &reply| deliver(port, arrival_of(reply, arrival, self.far_cycles), reply),
        );
    }
}

impl Answer {
    #[inline]
    fn join(self, network: &mut Crossbar<Reply>) {
        network.inject(self.port, self.at, self.sink, self.bytes, self.reply);
    }
}

#[inline]
fn arrival_of(reply: Reply, arrival: Cycle, far_cycles: u64) -> Cycle {
    if let Reply::FarAnswer(_) = reply { arrival + far_cycles } else { arrival }
}
