//! Replies on their way from slices to SMs, in the exchange between two windows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kit::cycle::Cycle;
use crate::time::l2::Served;
use crate::time::machine::post::Post;
use crate::time::network::Crossbar;
use crate::time::network::message::Reply;
use crate::time::network::node::NodePorts;

#[derive(Debug)]
pub(super) struct Replies {
    pub network: Crossbar<Reply>,
    /// Those that are to join the queues of ports.
    answers: Vec<Answer>,
    pub post: Post,
    pub rooms: Arc<ReplyRooms>,
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

/// How many replies the ports of slices take after an exchange, for the thread that moves requests: it tells slices,
/// whose state it has in its processor's cache.
#[derive(Debug)]
pub(super) struct ReplyRooms {
    ports: Vec<AtomicU64>,
    /// The end of the last window of which they are known.
    until: AtomicU64,
}

/// Packets have joined or left the queue of a port.
const MOVED: u64 = 1 << 32;

impl ReplyRooms {
    pub(super) fn new(ports: usize) -> ReplyRooms {
        ReplyRooms { ports: (0..ports).map(|_| AtomicU64::new(0)).collect(), until: AtomicU64::new(0) }
    }

    fn publish(&self, network: &mut Crossbar<Reply>, until: Cycle) {
        for (port, room) in self.ports.iter().enumerate() {
            let moved = if network.take_moved(port) { MOVED } else { 0 };
            room.store(u64::from(network.room(port)) | moved, Ordering::Relaxed);
        }
        self.until.store(until.0, Ordering::Release);
    }

    /// Waits for those at the end of a window. The leader sees to it that somebody moves the replies.
    pub(super) fn wait(&self, until: Cycle) {
        let mut looks = 0;
        while self.until.load(Ordering::Acquire) != until.0 {
            looks += 1;
            if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Whether anything has moved at a port, and its room.
    pub(super) fn of(&self, port: usize) -> (bool, u32) {
        let room = self.ports[port].load(Ordering::Relaxed);
        (room & MOVED != 0, room as u32)
    }
}

/// Looks at the end of the window before a waiting thread yields the processor.
const LOOKS: u32 = 1000;

impl Replies {
    pub(super) fn new(network: Crossbar<Reply>, ports: usize, nodes: NodePorts, far_cycles: u64) -> Replies {
        let rooms = Arc::new(ReplyRooms::new(ports));
        Replies { network, answers: Vec::new(), post: Post::new(1), rooms, nodes, far_cycles }
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
        let post = &mut self.post;
        self.network.advance(
            until,
            |_| u32::MAX,
            |sm, arrival, &reply| post.put((sm, arrival_of(reply, arrival, self.far_cycles), reply)),
        );
        self.rooms.publish(&mut self.network, until);
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
