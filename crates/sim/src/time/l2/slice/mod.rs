//! One L2 slice: a pipeline from the network, tags, a data port, an atomic unit, and lines in flight from memory.
//!
//! Each cycle, the head of the input queue looks up its line. On a miss it goes to wait for the line; on a hit it is
//! served if the data port is free. Requests whose line has come from memory go first at the port; such lines take
//! turns. A request to a line in flight waits behind the earlier ones, even if its own sectors are there already: so
//! requests to a line are served in the order in which they came.
//!
//! Where the L2 has two halves, each slice has a twin in the other one. A request for a line of the other half comes
//! to the twin that is near its sender. That one serves it if the half has a copy of the line, and passes it on
//! otherwise. Either takes its time ([`Role`]).
//!
//! A slice is stepped only in cycles in which something may have changed for it ([`Slice::wake`]).

mod access;

use std::collections::VecDeque;
use std::hint::select_unpredictable;

use crate::chip::timing::{AtomicSpec, DramSpec, L2Spec, SECTOR_BYTES};
use crate::kit::cycle::Cycle;
use crate::kit::divisor::Divisor;
use crate::kit::line::LineNumber;
use crate::time::cache::{Line, Tags};
use crate::time::dram::Channel;
use crate::time::l2::fetch::{Bursts, Fill};
use crate::time::l2::mshr::{MshrId, Mshrs};
use crate::time::l2::{PartitionStats, Served};
use crate::time::map::AddressMap;
use crate::time::network::message::{Request, RequestKind};
use crate::time::network::node::Node;

/// A cycle of a slice, and what the slices of a partition share.
pub(crate) struct Turn<'a> {
    pub cycle: Cycle,
    pub map: &'a AddressMap,
    pub channel: &'a mut Channel,
    pub served: &'a mut Vec<Served>,
    /// Requests for the slices' twins.
    pub passed: &'a mut Vec<Passed>,
    pub stats: &'a mut PartitionStats,
}

/// A request that a slice has passed to its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub cycle: Cycle,
    pub slice: u32,
    pub request: Request,
    /// When it came out of the pipeline of the slice.
    pub since: Cycle,
}

/// What a slice is to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has the line, or fetches it.
    Home,
    /// Its twin has the line, and it has a copy to read.
    Copy,
    /// Its twin has the line.
    Pass,
}

/// Why no request is handled although the port is free and a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stall {
    /// No MSHR, or no place in the line's MSHR.
    Mshr,
    /// All ways of the set are reserved for lines in flight.
    Line,
    /// No room towards the DRAM.
    Dram,
    /// No room for replies.
    Reply,
    /// The atomic unit is busy: with another atomic, or with the line, or a word has just changed.
    Atomic,
    /// A store to the line that is to be read is not done.
    Write,
    /// No room at the twin.
    Twin,
}

/// What a part of the slice did in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It had nothing to do.
    Idle,
    /// It waits for the data port.
    PortBusy,
    Moved,
    Stalled(Stall),
}

/// A request between the network and the tags.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    /// When it leaves the pipeline.
    ready: Cycle,
    /// Its place in the order: when it left the first pipeline that it was in.
    since: Cycle,
    number: LineNumber,
    request: Request,
    role: Role,
}

/// Parts of a cycle in which the time of the port and of the atomic unit is counted: neither needs to take whole
/// cycles.
const PARTS: u64 = 256;

/// What an atomic asks of the unit.
struct AtomicWork {
    lanes: u64,
    passes: u64,
    /// The most lanes that name one word.
    same_word: u64,
    adds: bool,
}

/// What the atomic unit works on.
#[derive(Clone, Copy, Debug)]
struct AtomicJob {
    number: LineNumber,
    request: Request,
    done: Cycle,
}

#[derive(Clone, Debug)]
pub(crate) struct Slice {
    index: u8,
    latency_cycles: u64,
    capacity: u32,
    port_bytes: Divisor,
    /// Cycles of the port for as many bytes, in parts of a cycle.
    port_parts: u64,
    partial_write_cycles: u64,
    read_after_write_cycles: u64,
    fetch_on_write: bool,
    atomic_lanes_per_cycle: Divisor,
    /// Cycles of a pass of the atomic unit, and of a word between two changes, in parts of a cycle.
    pass_parts: u64,
    word_parts: u64,
    /// And of a request.
    request_parts: u64,
    /// The same for a request and for a word, if it is an addition.
    add_parts: (u64, u64),
    all_sectors: u8,
    bursts: Bursts,

    /// The pipeline and the input queue behind it: requests from the network, and from the twin.
    incoming: [VecDeque<Incoming>; 2],
    /// When the first request of each comes out of its pipeline, or [`Cycle::NEVER`].
    heads: [Cycle; 2],
    /// How many requests the pipeline holds, if it is to be told whose atomics enter it.
    pipeline: Option<usize>,
    /// Senders of requests from the network that wait in front of the pipeline; `None` if it is no atomic with a
    /// result.
    outside: VecDeque<Option<Node>>,
    /// Whose atomics have entered the pipeline since the machine last looked.
    pub(super) entered: Vec<Node>,
    /// Writes and atomics that are on their way through the twin, by groups of lines.
    far_writes: [u32; FAR_WRITE_GROUPS],
    tags: Tags,
    mshrs: Mshrs,
    /// Lines whose first waiting request can be served; they take turns.
    filled: VecDeque<MshrId>,
    port_free: Cycle,
    /// The part of that cycle for which it is still busy.
    port_rest: u64,
    atomic: Option<AtomicJob>,
    /// When the atomic unit has performed its last pass, in parts of a cycle.
    atomic_free: u64,
    /// Words of lines that atomics changed, and from when on they can change again.
    settling: Vec<(LineNumber, u32, Cycle)>,
    /// Lines that stores changed of late, and from when on they can be read.
    written: Vec<(LineNumber, Cycle)>,
    /// The head of the queue, or a filled line, waits for such a word or line until then.
    settles: Cycle,
    reply_room: u32,
    wants_reply: bool,
    /// How many requests the twin takes.
    twin_room: u32,
    wants_twin: bool,
    /// How many places towards the DRAM the head waits for; 0 if it does not.
    wants_dram: u32,
    /// Why it stalls, and since when.
    stall: Option<(Stall, Cycle)>,
    wake: Cycle,
}

impl Slice {
    pub(crate) fn new(index: u32, l2: &L2Spec, atomic: &AtomicSpec, dram: &DramSpec) -> Slice {
        let capacity = l2.latency_cycles + l2.queue_requests;
        let sectors = l2.cache.line_bytes / SECTOR_BYTES;
        let lines = (l2.cache.sets * l2.cache.ways) as usize;
        Slice {
            index: index as u8,
            latency_cycles: l2.latency_cycles as u64,
            capacity,
            port_bytes: Divisor::new(l2.port_bytes as u64),
            port_parts: (l2.port_cycles * PARTS as f64).round() as u64,
            partial_write_cycles: u64::from(l2.partial_write_cycles),
            read_after_write_cycles: u64::from(l2.read_after_write_cycles),
            fetch_on_write: l2.fetch_on_write,
            atomic_lanes_per_cycle: Divisor::new(atomic.lanes_per_cycle as u64),
            pass_parts: (atomic.pass_cycles * PARTS as f64).round() as u64,
            word_parts: (atomic.word_cycles * PARTS as f64).round() as u64,
            request_parts: (atomic.request_cycles * PARTS as f64).round() as u64,
            add_parts: {
                let cycles = atomic.add_cycles;
                let [request, word] =
                    [atomic.request_cycles, atomic.word_cycles].map(|c| cycles.unwrap_or(c));
                ((request * PARTS as f64).round() as u64, (word * PARTS as f64).round() as u64)
            },
            all_sectors: (u16::MAX >> (16 - sectors)) as u8,
            bursts: Bursts::new(dram.bus_bytes * dram.burst, l2.cache.line_bytes),
            incoming: [(); 2].map(|()| VecDeque::with_capacity(capacity.min(512) as usize)),
            heads: [Cycle::NEVER; 2],
            pipeline: None,
            outside: VecDeque::new(),
            entered: Vec::new(),
            far_writes: [0; FAR_WRITE_GROUPS],
            tags: Tags::new(&l2.cache),
            mshrs: Mshrs::new(l2.mshrs, l2.mshr_merges, lines),
            filled: VecDeque::with_capacity(l2.mshrs as usize),
            port_free: Cycle(0),
            port_rest: 0,
            atomic: None,
            atomic_free: 0,
            settling: Vec::new(),
            written: Vec::new(),
            settles: Cycle::NEVER,
            reply_room: 0,
            wants_reply: false,
            twin_room: 0,
            wants_twin: false,
            wants_dram: 0,
            stall: None,
            wake: Cycle::NEVER,
        }
    }

    /// From now on it tells whose atomics enter its pipeline.
    pub(crate) fn tags(&self) -> &Tags {
        &self.tags
    }

    pub(crate) fn tell_entries(&mut self) {
        self.pipeline = Some((self.latency_cycles * PARTS / self.port_parts) as usize);
    }

    /// How many more requests it takes from the network.
    pub(crate) fn room(&self) -> u32 {
        self.capacity - self.incoming[0].len() as u32
    }

    /// How many more requests it takes from its twin: no more than are in a pipeline, as they have been through one.
    pub(crate) fn room_for_twin(&self) -> u32 {
        (self.latency_cycles as u32).saturating_sub(self.incoming[1].len() as u32)
    }

    /// A request leaves the network.
    pub(crate) fn accept(&mut self, arrival: Cycle, number: LineNumber, request: &Request, role: Role) {
        debug_assert!(self.room() > 0, "a request for a full slice");
        if let Some(pipeline) = self.pipeline {
            let atomic = request.is_awaited_atomic().then_some(request.from);
            if self.incoming[0].len() < pipeline {
                self.entered.extend(atomic);
            } else {
                self.outside.push_back(atomic);
            }
        }
        let ready = arrival + self.latency_cycles;
        self.queue(0, Incoming { ready, since: ready, number, request: *request, role });
    }

    /// A request comes from the twin, whose pipeline it has been through.
    pub(crate) fn accept_passed(&mut self, arrival: Cycle, number: LineNumber, passed: &Passed) {
        debug_assert!(self.room_for_twin() > 0, "a request for a full slice");
        let (since, request) = (passed.since, passed.request);
        self.queue(1, Incoming { ready: arrival, since, number, request, role: Role::Home });
    }

    #[inline]
    fn queue(&mut self, queue: usize, incoming: Incoming) {
        if incoming.ready < self.heads[queue] {
            self.heads[queue] = incoming.ready;
            self.wake = self.wake.min(incoming.ready);
        }
        let queue = &mut self.incoming[queue];
        // From senders near and far: mostly, but not always, the last one.
        if queue.back().is_none_or(|last| last.ready <= incoming.ready) {
            queue.push_back(incoming);
        } else {
            let later = queue.iter().rev().take_while(|other| other.ready > incoming.ready).count();
            queue.insert(queue.len() - later, incoming);
        }
    }

    /// What its twin is to a request for a line of this slice that has come to the twin.
    pub(crate) fn role_of_twin(&mut self, number: LineNumber, request: &Request) -> Role {
        if changes_memory(request) {
            self.far_writes[far_writes_of(number)] += 1;
            return Role::Pass;
        }
        // A read must not overtake a write of the same SM to the line.
        if request.kind != RequestKind::Read || self.far_writes[far_writes_of(number)] > 0 {
            return Role::Pass;
        }
        let Some(way) = self.tags.find(number) else { return Role::Pass };
        let line = self.tags.line_mut(way);
        let is_copied = line.copied;
        // Those that come while the first one fetches the copy wait for it.
        line.copied |= !line.reserved && request.sectors & !line.valid == 0;
        if is_copied { Role::Copy } else { Role::Pass }
    }

    /// The host has written a line. Its copies are slow, so memory has it as well, and what it replaces.
    pub(crate) fn write_by_host(&mut self, number: LineNumber) {
        let all_sectors = self.all_sectors;
        let Some(line) = self.bring(number) else { return };
        (line.valid, line.dirty, line.copied) = (all_sectors, 0, false);
    }

    /// Sectors of a line were read or written while the machine stood still. What had to be fetched or written back for
    /// that has taken no time.
    pub(crate) fn touch(&mut self, number: LineNumber, sectors: u8, writes: bool) {
        let fetched = self.bursts.cover(sectors).0 & self.all_sectors;
        let Some(line) = self.bring(number) else { return };
        line.valid |= if writes { sectors } else { fetched };
        if writes {
            line.dirty |= sectors;
            line.copied = false;
        }
    }

    /// Makes a line the most recently used of its set, and brings it there if it is not. `None` if its set has no room.
    fn bring(&mut self, number: LineNumber) -> Option<&mut Line> {
        let held = self.tags.find(number);
        let way = held.or_else(|| self.tags.victim(number))?;
        if held.is_none() {
            self.tags.replace(way, number);
        }
        self.tags.touch(way);
        Some(self.tags.line_mut(way))
    }

    /// The queue whose first request, of those that are there at a cycle, is the older one.
    #[inline]
    fn first_queue(&self, cycle: Cycle) -> usize {
        if self.heads[1] > cycle {
            return 0;
        }
        let since = |queue: usize| self.incoming[queue].front().map_or(Cycle::NEVER, |head| head.since);
        usize::from(since(1) < since(0))
    }

    /// When the next request comes out of a pipeline, after `cycle`.
    #[inline]
    fn next_ready(&self, cycle: Cycle) -> Cycle {
        self.heads[0].min(self.heads[1]).max(cycle + 1)
    }

    pub(crate) fn set_reply_room(&mut self, cycle: Cycle, replies: u32) {
        self.reply_room = replies;
        if self.wants_reply && replies > 0 {
            self.wake = self.wake.min(cycle);
        }
    }

    pub(crate) fn set_twin_room(&mut self, cycle: Cycle, requests: u32) {
        self.twin_room = requests;
        if self.wants_twin && requests > 0 {
            self.wake = self.wake.min(cycle);
        }
    }

    /// The next cycle in which it may have something to do by itself, or [`Cycle::NEVER`].
    #[inline]
    pub(crate) fn wake(&self) -> Cycle {
        self.wake
    }

    /// Whether it waits for room towards the DRAM.
    #[inline]
    pub(crate) fn wants_dram(&self) -> bool {
        self.wants_dram > 0
    }

    /// The DRAM takes `room` more transfers in a cycle.
    #[inline]
    pub(crate) fn offer_dram(&mut self, cycle: Cycle, room: u32) {
        if self.wants_dram() && room >= self.wants_dram {
            self.wake = self.wake.min(cycle);
        }
    }

    /// Sectors of a line have come from memory.
    pub(crate) fn fill(&mut self, cycle: Cycle, fill: Fill) {
        let way = self.mshrs.way(fill.mshr);
        let line = self.tags.line_mut(way);
        debug_assert!(line.reserved, "somebody waits for it");
        line.valid |= fill.sectors;
        if self.first_is_ready(fill.mshr) && !self.mshrs.set_ready(fill.mshr, true) {
            self.filled.push_back(fill.mshr);
            self.wake = self.wake.min(cycle.max(self.port_free));
        }
    }

    /// Does what can be done in a cycle.
    pub(crate) fn step(&mut self, turn: &mut Turn) {
        let cycle = turn.cycle;
        self.wants_reply = false;
        self.wants_twin = false;
        self.wants_dram = 0;
        self.settles = Cycle::NEVER;
        if let Some((cause, since)) = self.stall.take() {
            *stall_cycles(turn.stats, cause) += cycle - since;
        }

        let finished = self.finish_atomic(turn);
        let filled = self.serve_filled(turn);
        let accessed = self.access(turn);
        let moved = |outcome: Outcome| matches!(outcome, Outcome::Moved);
        if !moved(finished) && !moved(filled) && !moved(accessed) {
            self.stall = [finished, filled, accessed].iter().find_map(|outcome| match outcome {
                Outcome::Stalled(cause) => Some((*cause, cycle)),
                _ => None,
            });
        }
        self.wake = self.next_wake(cycle, filled, accessed);
    }

    /// When to step again, after the outcomes for filled lines and for the head of the queue.
    fn next_wake(&self, cycle: Cycle, filled: Outcome, accessed: Outcome) -> Cycle {
        let port = self.port_free.max(cycle + 1);
        let waits = matches!(filled, Outcome::Stalled(_)) || self.filled.is_empty();
        let filled = if waits { Cycle::NEVER } else { port };
        let head = self.next_ready(cycle);
        let head = select_unpredictable(accessed == Outcome::PortBusy, port, head);
        let accessed = match accessed {
            // What comes from the twin does not wait for room there.
            Outcome::Stalled(Stall::Twin) => self.heads[1].max(cycle + 1),
            Outcome::Stalled(_) => Cycle::NEVER,
            _ => head,
        };
        // A job that is done waits for room for its reply.
        let done = self.atomic.as_ref().map_or(Cycle::NEVER, |job| job.done);
        let atomic = select_unpredictable(done > cycle, done, Cycle::NEVER);
        filled.min(accessed).min(atomic).min(self.settles)
    }

    /// The atomic unit hands over its result.
    fn finish_atomic(&mut self, turn: &mut Turn) -> Outcome {
        let Some(job) = self.atomic.as_ref() else { return Outcome::Idle };
        if job.done > turn.cycle {
            return Outcome::Idle;
        }
        if self.reply_room == 0 {
            self.wants_reply = true;
            return Outcome::Stalled(Stall::Reply);
        }
        let request = job.request;
        self.atomic = None;
        self.reply(&request, request.far, turn);
        Outcome::Moved
    }

    /// Serves the first request of a line that has come.
    fn serve_filled(&mut self, turn: &mut Turn) -> Outcome {
        let Some(&id) = self.filled.front() else { return Outcome::Idle };
        if self.port_free > turn.cycle {
            return Outcome::PortBusy;
        }
        let (way, request) = (self.mshrs.way(id), *self.mshrs.first(id));
        if let Err(cause) = self.check(self.tags.line(way).number, &request, turn.cycle) {
            return Outcome::Stalled(cause);
        }
        self.serve(way, &request, turn);
        if self.mshrs.serve_first(id) {
            self.tags.line_mut(way).reserved = false;
            self.filled.pop_front();
        } else if !self.first_is_ready(id) {
            self.mshrs.set_ready(id, false);
            self.filled.pop_front();
        } else {
            // A line that always has waiting requests, such as a lock's, must not starve the others.
            self.filled.rotate_left(1);
        }
        Outcome::Moved
    }
}

fn changes_memory(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Write | RequestKind::Atomic { .. })
}

const FAR_WRITE_GROUPS: usize = 64;

/// The group of a line.
fn far_writes_of(number: LineNumber) -> usize {
    number.0 as usize % FAR_WRITE_GROUPS
}

fn stall_cycles(stats: &mut PartitionStats, cause: Stall) -> &mut u64 {
    match cause {
        Stall::Mshr => &mut stats.stall_mshr_cycles,
        Stall::Line => &mut stats.stall_line_cycles,
        Stall::Dram => &mut stats.stall_dram_cycles,
        Stall::Reply => &mut stats.stall_reply_cycles,
        Stall::Atomic => &mut stats.stall_atomic_cycles,
        Stall::Write => &mut stats.stall_write_cycles,
        Stall::Twin => &mut stats.stall_twin_cycles,
    }
}
