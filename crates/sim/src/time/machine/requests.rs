//! Requests on their way from SMs to slices, in the exchange between two windows.

use std::cell::RefCell;
use std::sync::Arc;

use crate::chip::Chip;
use crate::kit::cycle::Cycle;
use crate::time::l2::{Partition, Role};
use crate::time::machine::coherence::{Coherence, reply_room};
use crate::time::machine::crew::Dealt;
use crate::time::machine::noticed::Marks;
use crate::time::machine::routes::Routes;
use crate::time::network::Crossbar;
use crate::time::network::message::{Reply, Request};
use crate::time::network::node::Node;
use crate::time::network::shared_port::SharedPorts;
use crate::time::sm::Sm;
use crate::time::sm::load_store::Room;
use crate::time::sm::probe::Probe;

#[derive(Debug)]
pub(super) struct Requests {
    pub network: Crossbar<Request>,
    /// What SMs have sent in the window, with the cycles, SM by SM.
    pub sent: Vec<(Cycle, Request)>,
    /// Partitions that an exchange has to look at.
    pub busy: Marks,
    /// If SMs share ports into the network.
    shared_ports: Option<SharedPorts>,
    /// How many atomics an SM may have on their way to the pipelines of slices; 0: any number.
    atomic_window: u32,
    /// How many each has, if there is a limit.
    atomics: Vec<u32>,
    /// The room for requests that each SM knows of. SMs that another thread runs are far from this thread's cache, so
    /// they are not written without need.
    told_room: Vec<Option<Room>>,
    routes: Arc<Routes>,
}

impl Requests {
    pub(super) fn new(network: Crossbar<Request>, chip: &Chip, routes: &Arc<Routes>) -> Requests {
        let sms = chip.sm.count as usize;
        Requests {
            network,
            sent: Vec::new(),
            busy: Marks::all(chip.l2.partitions as usize),
            shared_ports: chip.interconnect.port.as_ref().map(|port| SharedPorts::new(port, sms)),
            atomic_window: chip.interconnect.atomic_window,
            atomics: vec![0; sms],
            told_room: vec![None; sms],
            routes: Arc::clone(routes),
        }
    }

    /// Moves requests from where they are now as far as they come in this exchange.
    pub(super) fn cross(&mut self, partitions: &mut Dealt<Partition>, until: Cycle) {
        self.pass_on(partitions, until);
        self.send();
        self.advance(partitions, until);
        self.count_entries(partitions);
    }

    /// Requests for lines of the other half of the L2 cross to the slices that have them.
    pub(super) fn pass_on(&mut self, partitions: &mut Dealt<Partition>, until: Cycle) {
        if self.routes.far_cycles == 0 {
            return;
        }
        for place in 0..self.busy.len() {
            let partition = self.busy.number(place);
            let mut passed = std::mem::take(&mut partitions[partition].passed);
            for passed in passed.drain(..) {
                let arrival = until.max(passed.cycle + self.routes.far_cycles);
                partitions[partition ^ 1].accept_passed(arrival, &passed);
                self.busy.mark(partition ^ 1);
            }
            partitions[partition].passed = passed;
        }
    }

    /// Hands what SMs have sent to the network in the order in which it leaves the ports.
    pub(super) fn send(&mut self) {
        let mut sent = std::mem::take(&mut self.sent);
        if let Some(mut ports) = self.shared_ports.take() {
            let mut rest = &mut sent[..];
            while let Some((_, first)) = rest.first() {
                let port = first.from.number() / ports.sms();
                let others = (port + 1) * ports.sms();
                let count = rest.iter().take_while(|(_, request)| request.from.number() < others).count();
                let together;
                (together, rest) = rest.split_at_mut(count);
                if !together.is_sorted_by_key(|&(at, _)| at) {
                    together.sort_by_key(|&(at, _)| at);
                }
                for (at, request) in together {
                    *at = ports.pass(port, *at, request);
                }
            }
            self.shared_ports = Some(ports);
        }
        sent.iter_mut().for_each(|(at, request)| self.inject(*at, request));
        sent.clear();
        self.sent = sent;
    }

    #[inline]
    fn inject(&mut self, at: Cycle, request: &mut Request) {
        let (port, sm);
        (port, request.far) = self.routes.near_port(request);
        sm = request.from.number();
        // It uses up the room that its SM knows of.
        self.told_room[sm] = None;
        if self.atomic_window > 0 {
            self.atomics[sm] += u32::from(request.is_awaited_atomic());
        }
        self.network.inject(sm, at, port, request.request_bytes(), *request);
    }

    /// Moves requests through the network to the slices.
    pub(super) fn advance(&mut self, partitions: &mut Dealt<Partition>, until: Cycle) {
        let partitions = RefCell::new(partitions);
        let (routes, busy) = (&self.routes, &mut self.busy);
        self.network.advance(
            until,
            |port| {
                let (partition, slice) = routes.place(port);
                partitions.borrow()[partition].room(slice)
            },
            |port, arrival, request| {
                let (partition, slice) = routes.place(port);
                let partitions = &mut *partitions.borrow_mut();
                let role = if request.far {
                    partitions[partition ^ 1].role_of_twin(slice, request)
                } else {
                    Role::Home
                };
                let arrival = arrival + routes.floor.distance(request.from, port, role == Role::Pass);
                partitions[partition].accept_as(role, slice, arrival, request);
                busy.mark(partition);
            },
        );
    }

    /// Atomics that have come to the pipelines of slices no longer count as on their way.
    pub(super) fn count_entries(&mut self, partitions: &mut Dealt<Partition>) {
        if self.atomic_window == 0 {
            return;
        }
        for place in 0..self.busy.len() {
            for node in partitions[self.busy.number(place)].take_entered() {
                if let Node::Sm(sm) = node {
                    self.atomics[sm as usize] -= 1;
                }
            }
        }
    }

    /// Tells slices what room they have for replies and for requests to their twins: `all`, or where that may have
    /// changed.
    pub(super) fn tell_slices(
        &mut self,
        partitions: &mut Dealt<Partition>,
        replies: &mut Crossbar<Reply>,
        coherence: Option<&Coherence>,
        (until, all): (Cycle, bool),
    ) {
        let slices = self.routes.slices as usize;
        let has_twins = self.routes.far_cycles > 0;
        // A partition and its twin follow each other.
        let together = 1 + usize::from(has_twins);
        for first in (0..partitions.len()).step_by(together) {
            let pair = first..first + together;
            let touched = pair.clone().any(|at| self.busy.contains(at));
            if !replies.take_moved(first * slices..pair.end * slices) && !touched && !all {
                continue;
            }
            for partition in pair {
                let first_port = partition * slices;
                let of_slice = |slice| reply_room(replies, coherence, first_port + slice);
                partitions[partition].set_reply_rooms(until, of_slice);
                if has_twins {
                    for slice in 0..slices as u32 {
                        let room = partitions[partition ^ 1].room_for_twin(slice);
                        partitions[partition].set_twin_room(slice, until, room);
                    }
                }
            }
        }
        self.busy.clear();
    }

    /// Tells SMs what room they have, where that has changed.
    pub(super) fn tell_sms<const N: usize, P: Probe>(&mut self, sms: &mut Dealt<Sm<N, P>>) {
        for at in 0..sms.count() {
            let id = sms.number(at);
            let atomics = match self.atomic_window {
                0 => u32::MAX,
                window => window.saturating_sub(self.atomics[id]),
            };
            let room = Room { packets: self.network.room(id), atomics };
            if self.told_room[id] != Some(room) {
                self.told_room[id] = Some(room);
                sms[id].set_room(room);
            }
        }
    }
}
