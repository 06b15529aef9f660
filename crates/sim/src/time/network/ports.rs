//! Sources, sinks and the packets between them: which source may send, and which is next.

use std::ops::Range;

use crate::chip::timing::{InterconnectSpec, Queueing};
use crate::kit::divisor::Divisor;
use crate::kit::ids::PacketId;
use crate::time::network::NetworkStats;
use crate::time::network::coming::{Coming, NO_TICK};
use crate::time::network::packets::{List, Packet, Packets};
use crate::time::network::port_set::PortSet;

/// The ports of a crossbar and the queues in front of it. Times are in interconnect ticks.
#[derive(Clone, Debug)]
pub(crate) struct Ports<M: Copy, S> {
    sources: Vec<Source>,
    sinks: Vec<Sink<S>>,
    sink_count: Divisor,
    packets: Packets<M>,
    queueing: Queueing,
    /// Ticks in which a packet holds its ports before its first flit moves.
    allocation: u64,
    /// Packets that can leave: those of source `i` for sink `k` at `i * sinks + k`, or with [`Queueing::Fifo`] all of
    /// source `i` at `i`.
    lists: Vec<List>,
    /// Packets that cannot leave yet.
    coming: Coming,
    /// Packets that can leave from this tick on.
    arrived: Vec<PacketId>,
    /// Ports that move flits.
    busy: BothSides<S>,
    done: Done<S>,
    /// Sinks that packets wait for.
    wanted: S,
    /// Sinks that take no more packets in this window.
    full: S,
    /// Sinks that are to choose in this tick: those that are wanted, and neither full nor busy.
    choosing: S,
    /// The number of the window.
    window: u64,
    /// The sum of the ticks that packets waited.
    pub queue_ticks: u64,
    pub stats: NetworkStats,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    /// Packets in its queue.
    queued: u32,
    /// The tick in which its port is free.
    free: u64,
    /// The tick from which on its last packet can leave.
    last: u64,
    /// A packet has joined or left its queue since somebody asked.
    moved: bool,
}

impl Source {
    const NEW: Source = Source { queued: 0, free: 0, last: 0, moved: false };
}

#[derive(Clone, Debug)]
struct Sink<S> {
    /// The tick in which a packet may leave its queue to find this sink's port free at the other end.
    free: u64,
    /// The source that goes first if several can; those below it go last.
    turn: u32,
    /// How many more packets it takes, as it said in the window `asked`.
    room: u32,
    asked: u64,
    /// Sources that have a packet for it that can leave.
    wanted_by: S,
}

/// Some sources and some sinks.
#[derive(Clone, Debug)]
struct BothSides<S> {
    sources: S,
    sinks: S,
}

/// Ports by the tick in which they have moved their last flit.
#[derive(Clone, Debug)]
struct Done<S> {
    /// Those of tick `t` are at `t % DONE_AHEAD`.
    ticks: Box<[BothSides<S>; DONE_AHEAD as usize]>,
    /// All ports of ticks before this one are free.
    next: u64,
    /// Some packet had more flits than the ring has ticks, so its ports may be busy when their tick comes.
    long: bool,
}

/// Packets have fewer flits than this on all chips we know.
const DONE_AHEAD: u64 = 16;

impl<M: Copy, S: PortSet> Ports<M, S> {
    pub(crate) fn new(sources: usize, sinks: usize, spec: &InterconnectSpec) -> Self {
        let none = BothSides { sources: S::none(sources), sinks: S::none(sinks) };
        let sink = Sink { free: 0, turn: 0, room: 0, asked: 0, wanted_by: S::none(sources) };
        Ports {
            sources: vec![Source::NEW; sources],
            sinks: vec![sink; sinks],
            sink_count: Divisor::new(sinks as u64),
            packets: Packets::default(),
            queueing: spec.queueing,
            allocation: u64::from(spec.allocation_cycles),
            lists: vec![List::EMPTY; sources * sinks],
            coming: Coming::new(),
            arrived: Vec::new(),
            done: Done { ticks: Box::new(std::array::from_fn(|_| none.clone())), next: 0, long: false },
            wanted: none.sinks.clone(),
            full: none.sinks.clone(),
            choosing: none.sinks.clone(),
            window: 0,
            busy: none,
            queue_ticks: 0,
            stats: NetworkStats::default(),
        }
    }

    /// Makes idle ports as good as new: those of a large chip take longer to make. Returns false if packets wait.
    pub(crate) fn renew(&mut self) -> bool {
        if !self.wanted.is_empty() || !self.coming.is_empty() {
            return false;
        }
        self.sources.fill(Source::NEW);
        for sink in &mut self.sinks {
            (sink.free, sink.turn, sink.asked) = (0, 0, 0);
        }
        self.coming = Coming::new();
        for BothSides { sources, sinks } in self.done.ticks.iter_mut() {
            sources.clear();
            sinks.clear();
        }
        (self.done.next, self.done.long, self.window) = (0, false, 0);
        self.busy.sources.clear();
        self.busy.sinks.clear();
        (self.queue_ticks, self.stats) = (0, NetworkStats::default());
        true
    }

    #[inline]
    pub(crate) fn queued(&self, source: usize) -> u32 {
        self.sources[source].queued
    }

    /// Whether packets have joined or left the queues of some sources since the last call for them.
    #[inline]
    pub(crate) fn take_moved(&mut self, sources: Range<usize>) -> bool {
        self.sources[sources].iter_mut().fold(false, |any, source| any | std::mem::take(&mut source.moved))
    }

    /// A packet joins its source's queue; it can leave from tick `ready` on.
    #[inline(always)]
    pub(crate) fn inject(&mut self, source: usize, ready: u64, sink: usize, flits: u32, message: M) {
        debug_assert!(sink < self.sinks.len());
        let port = &mut self.sources[source];
        debug_assert!(port.last <= ready, "source {source} went back in time");
        (port.last, port.queued, port.moved) = (ready, port.queued + 1, true);
        let (source, sink) = (source as u16, sink as u16);
        let packet = Packet { ready, next: List::NONE, flits, source, sink, counted: false, message };
        let id = self.packets.put(packet);
        self.coming.push(id, ready);
    }

    /// Moves every packet that can leave its queue in the ticks from `from` on and below `end`.
    pub(crate) fn advance(
        &mut self,
        from: u64,
        end: u64,
        mut room: impl FnMut(usize) -> u32,
        mut deliver: impl FnMut(usize, u64, &M),
    ) {
        if !self.wanted.is_empty() || !self.coming.is_empty() {
            self.full.clear();
            self.window += 1;
            let mut tick = from;
            while tick < end {
                tick = self.step(tick, &mut room, &mut deliver);
            }
        }
        self.coming.advance(end);
    }

    /// Every packet that can leave at a tick does; `deliver` gets the tick after its last flit. Returns the next tick
    /// in which a packet may leave.
    #[inline(always)]
    fn step(
        &mut self,
        tick: u64,
        room: &mut impl FnMut(usize) -> u32,
        deliver: &mut impl FnMut(usize, u64, &M),
    ) -> u64 {
        while self.coming.next() <= tick {
            let mut arrived = std::mem::take(&mut self.arrived);
            self.coming.take(tick, &mut arrived);
            arrived.drain(..).for_each(|id| self.line_up(id));
            self.arrived = arrived;
        }
        self.free_ports(tick);
        self.choosing.set_to(&self.wanted, [&self.full, &self.busy.sinks]);
        // Another sink chooses first in every tick, so that none has the better choice for long.
        let mut first = self.sink_count.remainder(tick) as usize;
        while let Some(sink) = self.choosing.take_first(first) {
            first = sink;
            let to = &mut self.sinks[sink];
            let Some(source) = to.wanted_by.first_but(&self.busy.sources, to.turn as usize) else { continue };
            if to.asked != self.window {
                (to.asked, to.room) = (self.window, room(sink));
            }
            let room = to.room;
            if room > 0 {
                let (id, left) = self.serve(source, sink, tick);
                deliver(sink, left, &self.packets[id].message);
            }
            if room <= 1 {
                self.refuse(sink);
            }
        }
        if self.wanted.is_within(&self.full) { self.coming.next() } else { tick + 1 }
    }

    /// Ports that have moved their last flit before `tick` are free.
    #[inline(always)]
    fn free_ports(&mut self, tick: u64) {
        // However long nothing has moved, one round of the ring is enough.
        self.done.next = self.done.next.max((tick + 1).saturating_sub(DONE_AHEAD));
        while self.done.next <= tick {
            let place = (self.done.next % DONE_AHEAD) as usize;
            if self.done.long {
                self.keep_long(place);
            }
            let BothSides { sources, sinks } = &mut self.done.ticks[place];
            self.busy.sources.remove_all(sources);
            self.busy.sinks.remove_all(sinks);
            self.done.next += 1;
        }
    }

    /// Ports that come up in the tick `done.next` but still move a long packet come up again later.
    #[cold]
    fn keep_long(&mut self, place: usize) {
        let tick = self.done.next;
        let mut here = self.done.ticks[place].clone();
        let later = |free: u64| (free.min(tick + DONE_AHEAD - 1) % DONE_AHEAD) as usize;
        for source in here.sources.clone().iter().filter(|&source| self.sources[source].free > tick) {
            here.sources.remove(source);
            self.done.ticks[later(self.sources[source].free)].sources.insert(source);
        }
        for sink in here.sinks.clone().iter().filter(|&sink| self.sinks[sink].free > tick) {
            here.sinks.remove(sink);
            self.done.ticks[later(self.sinks[sink].free)].sinks.insert(sink);
        }
        self.done.ticks[place] = here;
    }

    /// Where the packets of a source for a sink wait.
    #[inline(always)]
    fn list(&self, source: usize, sink: usize) -> usize {
        match self.queueing {
            Queueing::VirtualOutput => source * self.sinks.len() + sink,
            Queueing::Fifo => source,
        }
    }

    /// A packet that can leave joins those of its source that wait as it does.
    #[inline(always)]
    fn line_up(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let list = self.list(packet.source as usize, packet.sink as usize);
        let is_first = self.lists[list].is_empty();
        self.lists[list].push(id, &mut self.packets);
        if is_first {
            self.come_first(id);
        }
    }

    /// A packet has become the first of its list: its sink may choose it.
    #[inline(always)]
    fn come_first(&mut self, id: PacketId) {
        let packet = &mut self.packets[id];
        let (source, sink) = (packet.source as usize, packet.sink as usize);
        let to = &mut self.sinks[sink];
        if to.room == 0 && to.asked == self.window {
            packet.counted = true;
            self.stats.blocked_by_sink += 1;
        }
        to.wanted_by.insert(source);
        self.wanted.insert(sink);
    }

    /// The first packet of `source` for `sink` leaves at `tick`. Returns its id, and the tick after its last
    /// flit; the record stays until the next `put`.
    #[inline(always)]
    fn serve(&mut self, source: usize, sink: usize, tick: u64) -> (PacketId, u64) {
        let at = self.list(source, sink);
        let list = &mut self.lists[at];
        let id = list.first;
        let Packet { ready, flits, next, .. } = self.packets[id];
        self.packets.give_back(id);
        let ticks = self.allocation + u64::from(flits);
        let left = tick + ticks;
        let to = &mut self.sinks[sink];
        (to.free, to.turn) = (left, source as u32 + 1);
        to.room -= 1;
        list.first = next;
        let is_last = list.is_empty();
        to.wanted_by.remove_if(source, is_last || self.queueing == Queueing::Fifo);
        self.wanted.remove_if(sink, to.wanted_by.is_empty());
        let port = &mut self.sources[source];
        (port.free, port.queued, port.moved) = (left, port.queued - 1, true);
        self.busy.sources.insert(source);
        self.busy.sinks.insert(sink);
        self.done.long |= ticks >= DONE_AHEAD;
        let done = &mut self.done.ticks[(left.min(tick + DONE_AHEAD - 1) % DONE_AHEAD) as usize];
        done.sources.insert(source);
        done.sinks.insert(sink);
        self.queue_ticks += tick - ready;
        self.stats.packets += 1;
        self.stats.flits += u64::from(flits);
        if self.queueing == Queueing::Fifo && !is_last {
            self.come_first(next);
        }
        (id, left)
    }

    /// Packets for `sink` wait for the next window: it takes no more in this one.
    fn refuse(&mut self, sink: usize) {
        self.full.insert(sink);
        for source in self.sinks[sink].wanted_by.iter() {
            let first = self.lists[self.list(source, sink)].first;
            let packet = &mut self.packets[first];
            self.stats.blocked_by_sink += u64::from(!packet.counted);
            packet.counted = true;
        }
    }

    /// The earliest tick in which a waiting packet could leave its queue, if its sink has room, or [`NO_TICK`].
    pub(crate) fn next_event(&self) -> u64 {
        let mut tick = self.coming.next();
        for sink in self.wanted.iter() {
            let to = &self.sinks[sink];
            let port = to.wanted_by.iter().map(|source| self.sources[source].free).min();
            tick = tick.min(to.free.max(port.unwrap_or(NO_TICK)));
        }
        tick
    }
}
