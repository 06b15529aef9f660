//! Messages to the L2 and their answers: what was asked, who waits for it, and what the answer does.

use smallvec::SmallVec;

use crate::exec::memory::access::MemoryOp;
use crate::exec::memory::store::Memory;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SwitchId, Ticket, TransferId};
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::time::cache::{LineBytes, LineWritten, MAX_LINE_BYTES};
use crate::time::directory::Grant;
use crate::time::network::message::{Asks, Reply, Request, RequestKind};
use crate::time::network::node::Node;
use crate::time::sm::load_store::MemoryUnit;
use crate::time::sm::load_store::l1::Refusal;
use crate::time::sm::load_store::transfer::Transfer;

const MOVES_STATE: &str = "the message has a line of a warp's state";

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A line for the L1, of local or global memory.
    Fill {
        local: bool,
    },
    /// Bytes for a load that skips the L1.
    Load,
    Store,
    Atomic,
    /// A line of instructions.
    Instruction,
    /// A line of constants.
    Constant,
    /// An evicted line of local memory.
    WriteBack,
    /// A line of a warp's state, which is saved or restored.
    Switch,
    /// A dirty line that a coherent L1 evicts.
    GiveBack,
    /// A fence follows the accesses to a slice. Its number is the flight's.
    Fence,
}

/// A message that has not been answered. The fields that all messages use come first, on one line of the host's cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Flight {
    pub purpose: Purpose,
    /// What a coherent L1 may do with the line, once answered.
    pub granted: Option<Grant>,
    /// The line's bytes come with the answer.
    pub comes: bool,
    /// Of the line's slice.
    port: u16,
    pub line: LineAddress,
    /// Transfers and their lanes that wait for the answer.
    pub waiting: SmallVec<[(TransferId, LaneMask); 2]>,
    /// The line as its slice found it.
    pub bytes: LineBytes,
    /// Which of its bytes were ever written.
    pub written: LineWritten,
    /// Of [`Purpose::Switch`]: the warp's state, and the number of the line in it.
    state_line: Option<(SwitchId, usize)>,
    /// Of [`Purpose::Fence`]: its number among the accesses of the SM.
    number: u64,
}

impl<const N: usize> MemoryUnit<N> {
    pub(crate) fn wait_for(&mut self, ticket: Ticket, id: TransferId, lanes: LaneMask) {
        self.flights[ticket].waiting.push((id, lanes));
        self.transfers[id].pending.outstanding += 1;
    }

    pub(super) fn send_write(
        &mut self,
        now: Cycle,
        line: LineAddress,
        sectors: u8,
        whole: u8,
    ) -> Result<Ticket, Refusal> {
        let ticket = self.send(now, Purpose::Store, line, sectors, RequestKind::Write)?;
        self.outbox.last_mut().expect("just sent").1.whole = whole;
        Ok(ticket)
    }

    /// Sends a message, if the network has room.
    pub(crate) fn send(
        &mut self,
        now: Cycle,
        purpose: Purpose,
        line: LineAddress,
        sectors: u8,
        kind: RequestKind,
    ) -> Result<Ticket, Refusal> {
        if self.room == 0 {
            return Err(Refusal::Network);
        }
        self.room -= 1;
        let port = self.map.port_of(line);
        if let Some(under_way) = &mut self.under_way {
            match purpose {
                Purpose::Store | Purpose::Atomic => under_way.sent(port, line, true),
                Purpose::Load => under_way.sent(port, line, false),
                _ => {}
            }
        }
        Ok(self.send_always(now, purpose, (line, port), sectors, kind))
    }

    /// Sends a message, whether or not the network has room.
    #[inline(always)]
    fn send_always(
        &mut self,
        now: Cycle,
        purpose: Purpose,
        (line, port): (LineAddress, u16),
        sectors: u8,
        kind: RequestKind,
    ) -> Ticket {
        let ticket = self.flights.take(|| Flight {
            purpose,
            port,
            line,
            waiting: SmallVec::new(),
            bytes: [0; MAX_LINE_BYTES],
            written: LineWritten::MAX,
            granted: None,
            comes: true,
            state_line: None,
            number: 0,
        });
        let flight = &mut self.flights[ticket];
        (flight.purpose, flight.port, flight.line) = (purpose, port, line);
        flight.waiting.clear();
        let request = Request {
            line,
            port,
            sectors,
            whole: sectors,
            kind,
            from: Node::Sm(self.sm),
            ticket,
            asks: Asks::Nothing,
            missed: false,
            far: false,
        };
        self.outbox.push((now, request));
        ticket
    }

    /// A fence follows the accesses of the SM, if there are any: those that wait here, and then each slice that they
    /// went to. `number` gives it its number among the accesses of the SM.
    pub(crate) fn begin_fence(&mut self, now: Cycle, number: impl FnOnce() -> u64) {
        let Some(under_way) = &mut self.under_way else { return };
        if self.queue.is_empty() && !under_way.is_any() {
            return;
        }
        under_way.fences.push_back(number());
        self.send_fences(now);
    }

    /// Sends the messages of each fence whose earlier accesses have all left the unit: one to each slice.
    pub(super) fn send_fences(&mut self, now: Cycle) {
        while let Some(under_way) = &mut self.under_way
            && let Some(&number) = under_way.fences.front()
            && self.queue.iter().all(|queued| self.transfers[queued.id].number > number)
        {
            under_way.fences.pop_front();
            let mut slices = std::mem::take(&mut under_way.followed);
            under_way.fence(&mut slices);
            if slices.is_empty() {
                self.fences_answered.push(number);
            } else {
                under_way.open.push((number, slices.len() as u32));
            }
            for slice in slices.drain(..) {
                let ticket = self.send_always(now, Purpose::Fence, slice, 0, RequestKind::Fence);
                self.flights[ticket].number = number;
            }
            if let Some(under_way) = &mut self.under_way {
                under_way.followed = slices;
            }
        }
    }

    /// Asks for a line of instructions. Returns whether the network took the message.
    pub(crate) fn fetch_instructions(&mut self, now: Cycle, line: LineAddress) -> bool {
        let aligned = LineAddress::of(line.0, self.line_bytes);
        match self.send(now, Purpose::Instruction, aligned, self.all_sectors(), RequestKind::Read) {
            Ok(ticket) => {
                // The fetch unit's lines may be smaller than the L2's.
                self.flights[ticket].line = line;
                true
            }
            Err(_) => false,
        }
    }

    /// An L2 slice serves message `ticket`, which is no store or atomic of a warp: a line moves between memory and this
    /// SM.
    pub(crate) fn serve(&mut self, ticket: Ticket, memory: &mut Memory) {
        let flight = &mut self.flights[ticket];
        match flight.purpose {
            Purpose::Fill { local: false } | Purpose::Load => {
                memory.read_line(flight.line.0, &mut flight.bytes[..self.line_bytes as usize]);
                flight.written = memory.written_from(flight.line.0);
            }
            Purpose::Switch => {
                let (switch, index) = flight.state_line.expect(MOVES_STATE);
                let line = &mut flight.bytes[..self.line_bytes as usize];
                if let Some(image) = self.switches.image_to_save(switch) {
                    let bytes = &image[index * line.len()..];
                    memory.write(flight.line.0, &bytes[..line.len()]);
                } else {
                    memory.read_line(flight.line.0, line);
                }
            }
            Purpose::GiveBack => {
                if let Some(given) = self.l1.leaving(ticket) {
                    let bytes = &given.bytes[..self.line_bytes as usize];
                    memory.write_line(flight.line.0, bytes, given.written);
                }
            }
            _ => {}
        }
    }

    /// A reply arrives. Returns a line of instructions, if it brings one.
    pub(crate) fn arrive(&mut self, now: Cycle, reply: Reply) -> Option<LineAddress> {
        if std::mem::take(&mut self.refused) {
            self.find_next_piece();
        }
        let ticket = match reply {
            Reply::Answer(ticket) | Reply::FarAnswer(ticket) => ticket,
            Reply::Probe(id) => {
                self.answer_probe(now, id);
                return None;
            }
        };
        let flight = &self.flights[ticket];
        if let Some(grant) = flight.granted {
            self.arrive_granted(now, ticket, grant);
            return None;
        }
        let (purpose, line) = (flight.purpose, flight.line);
        if let (Some(under_way), Purpose::Store | Purpose::Atomic) = (&mut self.under_way, purpose) {
            under_way.answered(flight.port);
        }
        match purpose {
            Purpose::Fence => {
                let number = flight.number;
                if self.under_way.as_mut().is_some_and(|under_way| under_way.fence_answered(number)) {
                    self.fences_answered.push(number);
                }
            }
            Purpose::Fill { local } => {
                let way = self.l1.fill(line, ticket, &flight.bytes);
                if let Some(way) = way.filter(|_| !local) {
                    self.l1.set_written(way, flight.written);
                }
            }
            Purpose::Constant => {
                let number = line.number(self.line_bytes);
                if let Some(way) = self.constant.victim(number) {
                    self.constant.replace(way, number);
                }
                self.constant_misses.retain(|&(_, waited)| waited != ticket);
            }
            Purpose::GiveBack => self.l1.has_left(ticket),
            Purpose::Switch => {
                let (switch, index) = flight.state_line.expect(MOVES_STATE);
                self.switches.arrived(switch, index, &flight.bytes[..self.line_bytes as usize]);
                self.flights.give_back(ticket);
                return None;
            }
            _ => {}
        }
        let flight = &self.flights[ticket];
        for &(id, lanes) in &flight.waiting {
            let Transfer { pending, access, .. } = &mut self.transfers[id];
            if matches!(purpose, Purpose::Fill { local: false } | Purpose::Load) {
                access.load_from_line(line.0, &flight.bytes, flight.written, lanes);
            }
            pending.outstanding -= 1;
            if pending.is_done() {
                let filter = match &self.texture {
                    Some(units) if access.kind == MemoryOp::Texture => units.latency(access),
                    _ => 0,
                };
                self.completed.push((id, pending.ready_at.max(now) + filter));
            }
        }
        self.flights.give_back(ticket);
        (purpose == Purpose::Instruction).then_some(line)
    }

    /// One of the messages of an access has been answered.
    pub(crate) fn part_done(&mut self, now: Cycle, id: TransferId) {
        let filter = self.filter_cycles(id);
        let pending = &mut self.transfers[id].pending;
        pending.outstanding -= 1;
        if pending.is_done() {
            self.completed.push((id, pending.ready_at.max(now) + filter));
        }
    }

    /// Sends a line of a warp's state, if the network has room.
    #[cold]
    pub(super) fn send_line(&mut self, now: Cycle) {
        let Some(line) = self.switches.line(now).filter(|_| self.room > 0) else { return };
        let kind = if line.saves { RequestKind::Write } else { RequestKind::Read };
        if let Ok(ticket) = self.send(now, Purpose::Switch, line.address, self.all_sectors(), kind) {
            self.flights[ticket].state_line = Some((line.switch, line.index));
            self.switches.sent(now);
        }
    }
}
