//! The network between SMs and L2 slices: a crossbar, one for requests and another for replies.
//!
//! Each source has one queue and one port into the crossbar; each sink has one port out of it. A port moves one flit an
//! interconnect cycle, and packets are not mixed. From a queue the first packet for each sink can leave, so one that
//! waits for a busy sink does not hold up the others (virtual output queues). Every cycle, the free sinks choose in turn
//! among the free sources that have something for them, and no sink stays idle that could be served (as iSLIP does
//! after a few rounds).
//!
//! The machine works in windows as long as the network's latency: all that is injected during a window is known when it
//! ends, and whatever leaves a queue in it arrives after it.

use crate::chip::timing::{ClockSpec, InterconnectSpec};
use crate::slab::Slab;
use crate::wheel::Wheel;

/// What a network did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NetworkStats {
    /// Packets that left their queues.
    pub packets: u64,
    /// Flits of these packets.
    pub flits: u64,
    /// Core cycles that they waited, beyond what they would have in an idle network, added up.
    pub queue_cycles: u64,
    /// Packets that, at the head of a queue, found no room at their sink.
    pub blocked_by_sink: u64,
}

/// A crossbar and the queues in front of it. Times inside are in interconnect ticks.
#[derive(Clone, Debug)]
pub struct Crossbar<M: Copy> {
    clock: Clock,
    latency_cycles: u64,
    flit_bytes: u32,
    header_bytes: u32,
    queue_packets: u32,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    /// All packets; those of one source for one sink form a list.
    packets: Slab<Packet<M>>,
    /// The lists: the first and the last packet of source `i` for sink `k` at `i * sinks + k`.
    lists: Vec<List>,
    /// Packets that have not come yet, by the tick in which they do.
    coming: Wheel<(u32, u32)>,
    come: Vec<(u32, u32)>,
    /// Sinks for which packets have come.
    wanted: Set,
    /// The core cycle before which everything has left that could.
    until: u64,
    /// Ticks that packets waited, added up.
    queue_ticks: u64,
    stats: NetworkStats,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    /// Packets in its queue.
    queued: u32,
    /// When its port has moved the last flit that left.
    free: u64,
    /// When its last packet comes.
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Packet<M> {
    /// When it comes.
    ready: u64,
    sink: u32,
    flits: u32,
    /// The one behind it.
    next: u32,
    /// It has been counted as blocked by its sink.
    counted: bool,
    message: M,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const NONE: u32 = u32::MAX;
    const EMPTY: List = List { first: List::NONE, last: List::NONE };
}

#[derive(Clone, Debug)]
struct Sink {
    /// When a packet may leave its queue such that it finds this sink's port free at the other end.
    free: u64,
    /// The source that goes first if several could; those below it go last.
    turn: usize,
    /// Packets that it still takes in this window, once asked.
    room: Option<u32>,
    /// Sources that have a packet for it which has come.
    wanted_by: Set,
}

impl<M: Copy> Crossbar<M> {
    /// An idle network. None of the specs' numbers is zero.
    pub fn new(sources: usize, sinks: usize, spec: &InterconnectSpec, clock: &ClockSpec) -> Self {
        debug_assert!(spec.latency_cycles > 0, "a window has at least one cycle");
        let sink = Sink { free: 0, turn: 0, room: None, wanted_by: Set::new(sources) };
        Crossbar {
            clock: Clock::new(clock),
            latency_cycles: u64::from(spec.latency_cycles),
            flit_bytes: spec.flit_bytes,
            header_bytes: spec.header_bytes,
            queue_packets: spec.queue_packets,
            sources: vec![Source { queued: 0, free: 0, last: 0 }; sources],
            sinks: vec![sink; sinks],
            packets: Slab::default(),
            lists: vec![List::EMPTY; sources * sinks],
            coming: Wheel::new(),
            come: Vec::new(),
            wanted: Set::new(sinks),
            until: 0,
            queue_ticks: 0,
            stats: NetworkStats::default(),
        }
    }

    /// Packets that `source` may still inject. What leaves its queue makes room only in [`Crossbar::advance`].
    #[inline]
    pub fn room(&self, source: usize) -> u32 {
        self.queue_packets.saturating_sub(self.sources[source].queued)
    }

    /// Puts a packet into its source's queue at core cycle `at`, not before an earlier one of this source nor before
    /// the last window's end. The header is not in `data_bytes`.
    #[inline]
    pub fn inject(&mut self, source: usize, at: u64, sink: usize, data_bytes: u32, message: M) {
        debug_assert!(self.room(source) > 0, "source {source} has no room");
        debug_assert!(at >= self.until, "a packet for cycle {at}, at cycle {}", self.until);
        debug_assert!(sink < self.sinks.len());
        let ready = self.clock.tick_from(at);
        let flits = (self.header_bytes + data_bytes).div_ceil(self.flit_bytes).max(1);
        let port = &mut self.sources[source];
        debug_assert!(port.last <= ready, "source {source} went back in time");
        (port.last, port.queued) = (ready, port.queued + 1);
        let packet = Packet { ready, sink: sink as u32, flits, next: List::NONE, counted: false, message };
        let number = self.packets.take(|| packet);
        self.packets[number] = packet;
        self.coming.push(ready, (source as u32, number));
    }

    /// Moves every packet that can leave its queue before core cycle `until`, but none earlier than a latency before
    /// it, so that none arrives before it.
    ///
    /// `room(sink)` says how many packets a sink still takes; it is asked at most once a sink, and only when a packet is
    /// about to leave for it. `deliver(sink, arrival, message)` is called in order of arrival for each sink.
    pub fn advance(
        &mut self,
        until: u64,
        mut room: impl FnMut(usize) -> u32,
        mut deliver: impl FnMut(usize, u64, M),
    ) {
        debug_assert!(until >= self.until, "time went back from cycle {} to {until}", self.until);
        let from = self.until.max(until.saturating_sub(self.latency_cycles));
        self.until = until;
        if self.wanted.is_empty() && self.coming.is_empty() {
            return;
        }
        for sink in &mut self.sinks {
            sink.room = None;
        }
        let end = self.clock.tick_from(until);
        let mut tick = self.clock.tick_from(from);
        while tick < end {
            tick = self.step(tick, &mut room, &mut deliver);
        }
        self.stats.queue_cycles = self.clock.cycle_of(self.queue_ticks);
    }

    /// Everything that can leave at a tick does. Returns the next tick in which something may.
    fn step(
        &mut self,
        tick: u64,
        room: &mut impl FnMut(usize) -> u32,
        deliver: &mut impl FnMut(usize, u64, M),
    ) -> u64 {
        self.line_up(tick);
        let mut next = self.coming.next_cycle().unwrap_or(u64::MAX);
        // The first to choose is another one every tick, so that none has the better choice for long.
        let mut turn = self.wanted.turn(tick as usize % self.sinks.len());
        while let Some(sink) = turn.next(&self.wanted) {
            let to = &mut self.sinks[sink];
            if to.room == Some(0) {
                self.refuse(sink);
                continue;
            }
            if to.free > tick {
                next = next.min(to.free);
                continue;
            }
            let sources = &self.sources;
            let Some(source) = to.wanted_by.first_from(to.turn, |source| sources[source].free <= tick) else {
                let free = to.wanted_by.iter().map(|source| sources[source].free);
                next = next.min(free.min().unwrap_or(u64::MAX));
                continue;
            };
            if *to.room.get_or_insert_with(|| room(sink)) == 0 {
                self.refuse(sink);
                continue;
            }
            let (arrival, message) = self.serve(source, sink, tick);
            if !self.sinks[sink].wanted_by.is_empty() {
                next = next.min(self.sinks[sink].free);
            }
            deliver(sink, arrival, message);
        }
        next
    }

    /// Packets that have come by a tick join the lists of their sinks.
    #[inline]
    fn line_up(&mut self, tick: u64) {
        while let Some(at) = self.coming.next_cycle().filter(|&at| at <= tick) {
            let mut come = std::mem::take(&mut self.come);
            self.coming.pop_at(at, &mut come);
            for (source, number) in come.drain(..) {
                let sink = self.packets[number].sink as usize;
                let list = &mut self.lists[source as usize * self.sinks.len() + sink];
                match list.last {
                    List::NONE => list.first = number,
                    last => self.packets[last].next = number,
                }
                list.last = number;
                self.sinks[sink].wanted_by.insert(source as usize);
                self.wanted.insert(sink);
            }
            self.come = come;
        }
    }

    /// The first packet of `source` for `sink` leaves at `tick`. Returns its arrival, in core cycles, and its message.
    #[inline]
    fn serve(&mut self, source: usize, sink: usize, tick: u64) -> (u64, M) {
        let list = &mut self.lists[source * self.sinks.len() + sink];
        let number = list.first;
        let Packet { ready, flits, next, message, .. } = self.packets[number];
        self.packets.give_back(number);
        let left = tick + u64::from(flits);
        let to = &mut self.sinks[sink];
        (to.free, to.turn) = (left, source + 1);
        to.room = to.room.map(|room| room - 1);
        list.first = next;
        if next == List::NONE {
            list.last = List::NONE;
            to.wanted_by.remove(source);
            if to.wanted_by.is_empty() {
                self.wanted.remove(sink);
            }
        }
        let port = &mut self.sources[source];
        (port.free, port.queued) = (left, port.queued - 1);
        self.queue_ticks += tick - ready;
        self.stats.packets += 1;
        self.stats.flits += u64::from(flits);
        (self.clock.cycle_from(left - 1) + self.latency_cycles, message)
    }

    /// Packets for `sink` wait for the next window, because it takes nothing more in this one.
    fn refuse(&mut self, sink: usize) {
        for source in self.sinks[sink].wanted_by.iter() {
            let number = self.lists[source * self.sinks.len() + sink].first;
            let packet = &mut self.packets[number];
            self.stats.blocked_by_sink += u64::from(!packet.counted);
            packet.counted = true;
        }
    }

    /// Earliest core cycle at which a waiting packet could leave its queue, if its sink has room.
    pub fn next_event(&self) -> Option<u64> {
        let mut tick = u64::MAX;
        for sink in self.wanted.iter() {
            let to = &self.sinks[sink];
            let port = to.wanted_by.iter().map(|source| self.sources[source].free).min();
            tick = tick.min(to.free.max(port.unwrap_or(u64::MAX)));
        }
        if let Some(at) = self.coming.next_cycle() {
            tick = tick.min(at);
        }
        (tick < u64::MAX).then(|| self.clock.cycle_of(tick.max(self.clock.tick_from(self.until))))
    }

    /// What it did so far.
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }
}

/// A set of sources or sinks, a bit each.
#[derive(Clone, Debug)]
struct Set(Box<[u64]>);

impl Set {
    /// None of `nodes`.
    fn new(nodes: usize) -> Set {
        Set(vec![0; nodes.div_ceil(64)].into())
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    #[inline]
    fn insert(&mut self, node: usize) {
        self.0[node / 64] |= 1 << (node % 64);
    }

    #[inline]
    fn remove(&mut self, node: usize) {
        self.0[node / 64] &= !(1 << (node % 64));
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// The first member from `from` on.
    #[inline]
    fn next_from(&self, from: usize) -> Option<usize> {
        let mut index = from / 64;
        let mut word = *self.0.get(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.0.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    /// The first that is `good`, from `turn` on and then from the beginning.
    #[inline]
    fn first_from(&self, turn: usize, good: impl Fn(usize) -> bool) -> Option<usize> {
        let mut round = self.turn(turn);
        while let Some(node) = round.next(self) {
            if good(node) {
                return Some(node);
            }
        }
        None
    }

    /// A round through the members, from `first` on and then from the beginning.
    #[inline]
    fn turn(&self, first: usize) -> Round {
        Round { first, at: first, wrapped: false }
    }
}

/// A round through a set, whose members may be taken out meanwhile.
struct Round {
    first: usize,
    at: usize,
    wrapped: bool,
}

impl Round {
    #[inline]
    fn next(&mut self, set: &Set) -> Option<usize> {
        loop {
            match set.next_from(self.at) {
                Some(node) if !self.wrapped || node < self.first => {
                    self.at = node + 1;
                    return Some(node);
                }
                _ if self.wrapped => return None,
                _ => (self.at, self.wrapped) = (0, true),
            }
        }
    }
}

/// Two clocks whose edges meet at 0: `ticks` of the interconnect take as long as `cycles` of the core.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ticks: u64,
    cycles: u64,
}

impl Clock {
    fn new(spec: &ClockSpec) -> Clock {
        let (ticks, cycles) = (u64::from(spec.interconnect_mhz), u64::from(spec.core_mhz));
        debug_assert!(ticks > 0 && cycles > 0, "clocks run");
        let common = greatest_common_divisor(ticks, cycles);
        Clock { ticks: ticks / common, cycles: cycles / common }
    }

    /// The first tick that does not begin before core cycle `cycle`.
    #[inline]
    fn tick_from(&self, cycle: u64) -> u64 {
        divide_up(cycle * self.ticks, self.cycles)
    }

    /// The first core cycle that does not begin before `tick`.
    #[inline]
    fn cycle_from(&self, tick: u64) -> u64 {
        divide_up(tick * self.cycles, self.ticks)
    }

    /// The core cycle in which `tick` begins.
    #[inline]
    fn cycle_of(&self, tick: u64) -> u64 {
        tick * self.cycles / self.ticks
    }
}

/// Most chips run both clocks at the same rate or one at a multiple of the other, and division is slow.
#[inline]
fn divide_up(n: u64, by: u64) -> u64 {
    if by == 1 { n } else { n.div_ceil(by) }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const LATENCY: u64 = 8;
    /// Five flits with the header.
    const LINE: u32 = 128;

    fn crossbar(sources: usize, sinks: usize, queue_packets: u32, core_mhz: u32, mhz: u32) -> Crossbar<u32> {
        let latency_cycles = LATENCY as u32;
        let spec = InterconnectSpec { latency_cycles, flit_bytes: 32, header_bytes: 8, queue_packets };
        let clock = ClockSpec { core_mhz, interconnect_mhz: mhz, dram_mhz: 924 };
        Crossbar::new(sources, sinks, &spec, &clock)
    }

    /// Sources, sinks and queues as in the GTX 480, all at one clock.
    fn gtx480() -> Crossbar<u32> {
        crossbar(15, 12, 64, 700, 700)
    }

    type Delivery = (usize, u64, u32);

    fn advance(network: &mut Crossbar<u32>, until: u64) -> Vec<Delivery> {
        advance_into(network, until, |_| u32::MAX)
    }

    fn advance_into(
        network: &mut Crossbar<u32>,
        until: u64,
        room: impl FnMut(usize) -> u32,
    ) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        network.advance(until, room, |sink, arrival, message| deliveries.push((sink, arrival, message)));
        deliveries
    }

    /// Keeps the order of each sink's; the others' does not matter.
    fn by_sink(mut deliveries: Vec<Delivery>) -> Vec<Delivery> {
        deliveries.sort_by_key(|&(sink, ..)| sink);
        deliveries
    }

    #[test]
    fn without_contention_a_packet_takes_the_latency_and_its_further_flits() {
        let mut network = gtx480();
        network.inject(0, 3, 1, 0, 10);
        assert_eq!(network.next_event(), Some(3));
        assert_eq!(advance(&mut network, 8), [(1, 11, 10)]);
        network.inject(0, 20, 1, LINE, 11);
        assert_eq!(advance(&mut network, 16), []);
        assert_eq!(network.next_event(), Some(20));
        assert_eq!(advance(&mut network, 24), [(1, 32, 11)]);
        assert_eq!(network.next_event(), None);
        let stats = NetworkStats { packets: 2, flits: 6, queue_cycles: 0, blocked_by_sink: 0 };
        assert_eq!(network.stats(), &stats);
    }

    #[test]
    fn two_sources_share_a_sinks_port() {
        let mut network = gtx480();
        network.inject(4, 0, 3, LINE, 4);
        network.inject(2, 0, 3, LINE, 2);
        network.inject(1, 0, 5, LINE, 1);
        assert_eq!(by_sink(advance(&mut network, 8)), [(3, 12, 2), (3, 17, 4), (5, 12, 1)]);
        assert_eq!(network.stats().queue_cycles, 5);
    }

    #[test]
    fn a_source_has_one_port() {
        let mut network = gtx480();
        network.inject(0, 0, 3, LINE, 1);
        network.inject(0, 0, 5, LINE, 2);
        network.inject(0, 1, 7, LINE, 3);
        assert_eq!(network.room(0), 61);
        assert_eq!(advance(&mut network, 8), [(3, 12, 1), (5, 17, 2)]);
        assert_eq!(network.room(0), 63);
        assert_eq!(network.next_event(), Some(10));
        assert_eq!(advance(&mut network, 16), [(7, 22, 3)]);
    }

    #[test]
    fn a_packet_passes_those_that_wait_for_another_sink() {
        let mut network = gtx480();
        network.inject(0, 0, 0, LINE, 1);
        network.inject(1, 0, 0, 0, 2);
        network.inject(1, 1, 1, 0, 3);
        network.inject(1, 1, 0, 0, 4);
        // But not those that wait for its own.
        assert_eq!(by_sink(advance(&mut network, 8)), [(0, 12, 1), (0, 13, 2), (0, 14, 4), (1, 9, 3)]);
        assert_eq!(network.stats().queue_cycles, 5 + 5);
    }

    #[test]
    fn packets_wait_for_room_at_their_sink() {
        let mut network = crossbar(2, 2, 2, 700, 700);
        network.inject(0, 0, 0, 0, 1);
        network.inject(0, 1, 1, 0, 2);
        network.inject(1, 2, 1, 0, 3);
        assert_eq!(network.room(0), 0);
        assert_eq!(advance_into(&mut network, 8, |sink| sink as u32), [(1, 9, 2)]);
        assert_eq!((network.room(0), network.room(1)), (1, 1));
        assert_eq!(network.next_event(), Some(8));
        assert_eq!(advance_into(&mut network, 16, |sink| sink as u32), [(1, 16, 3)]);
        assert_eq!(network.next_event(), Some(16));
        network.inject(1, 16, 0, 0, 4);
        // They do not leave before the window in which there is room. The one place goes to source 0.
        assert_eq!(advance_into(&mut network, 24, |_| 1), [(0, 24, 1)]);
        assert_eq!(advance_into(&mut network, 32, |_| 1), [(0, 32, 4)]);
        let stats = NetworkStats { packets: 4, flits: 4, queue_cycles: 16 + 6 + 8, blocked_by_sink: 3 };
        assert_eq!(network.stats(), &stats);
    }

    #[test]
    fn all_ports_are_busy_when_every_source_has_packets_for_every_sink() {
        let mut random = Random(3);
        let mut network = gtx480();
        let (windows, mut delivered) = (400, 0);
        for start in (0..windows * LATENCY).step_by(LATENCY as usize) {
            for source in 0..15 {
                for _ in 0..network.room(source) {
                    network.inject(source, start, random.below(12) as usize, LINE, 0);
                }
            }
            delivered += advance(&mut network, start + LATENCY).len() as u64;
        }
        // With queues whose head blocks the rest it would be three fifths.
        let most = 12 * windows * LATENCY / 5;
        assert!(delivered * 100 > most * 97, "{delivered} of {most} packets");
    }

    #[test]
    fn a_full_sink_is_asked_once_a_window() {
        let mut network = gtx480();
        for at in 0..5 {
            network.inject(0, at, 9, 0, 0);
        }
        let mut asked = Vec::new();
        let room = |sink| {
            asked.push(sink);
            2
        };
        assert_eq!(advance_into(&mut network, 8, room), [(9, 8, 0), (9, 9, 0)]);
        assert_eq!(asked, [9]);
    }

    #[test]
    fn sources_take_turns_and_a_saturated_port_never_idles() {
        for (data_bytes, flits) in [(0, 1), (LINE, 5)] {
            let mut network = gtx480();
            let mut deliveries = Vec::new();
            let windows = 300;
            for start in (0..windows * LATENCY).step_by(LATENCY as usize) {
                for source in 0..15 {
                    for _ in 0..network.room(source) {
                        network.inject(source, start, 7, data_bytes, source as u32);
                    }
                }
                deliveries.extend(advance(&mut network, start + LATENCY));
            }
            for (turn, &(_, arrival, source)) in deliveries.iter().enumerate() {
                assert_eq!(source as usize, turn % 15);
                assert_eq!(arrival, turn as u64 * flits + LATENCY + flits - 1);
            }
            assert_eq!(deliveries.len() as u64, windows * LATENCY / flits);
        }
    }

    #[test]
    fn a_faster_network_moves_more_than_a_flit_a_core_cycle() {
        let mut network = crossbar(2, 2, 8, 1481, 2962);
        network.inject(0, 3, 0, LINE, 1);
        network.inject(1, 3, 1, 0, 2);
        network.inject(1, 3, 1, 0, 3);
        network.inject(1, 3, 1, 0, 4);
        // They leave in ticks 6, 6, 7 and 8 and end in 10, 6, 7 and 8: halves of core cycles, rounded up.
        assert_eq!(advance(&mut network, 8), [(0, 13, 1), (1, 11, 2), (1, 12, 3), (1, 12, 4)]);
    }

    #[test]
    fn a_slower_network_waits_for_its_edges() {
        let mut network = crossbar(2, 2, 8, 3, 2);
        network.inject(0, 1, 0, 0, 1);
        network.inject(0, 1, 0, 0, 2);
        // Ticks 1 and 2 begin at 1.5 and 3 core cycles.
        assert_eq!(network.next_event(), Some(1));
        assert_eq!(advance(&mut network, 2), [(0, 10, 1)]);
        assert_eq!(network.next_event(), Some(3));
        assert_eq!(advance(&mut network, 3), []);
        assert_eq!(advance(&mut network, 8), [(0, 11, 2)]);
        assert_eq!(network.stats().queue_cycles, 1);
    }

    #[test]
    fn idle_windows_can_be_skipped() {
        let mut network = gtx480();
        network.inject(0, 0, 0, 0, 1);
        assert_eq!(advance(&mut network, 8), [(0, 8, 1)]);
        network.inject(0, 805, 0, 0, 2);
        assert_eq!(network.next_event(), Some(805));
        assert_eq!(advance(&mut network, 808), [(0, 813, 2)]);
        network.inject(0, 810, 0, 0, 3);
        assert_eq!(advance_into(&mut network, 816, |_| 0), []);
        // Even a packet that was passed over does not arrive in the past.
        assert_eq!(advance(&mut network, 1608), [(0, 1608, 3)]);
        assert_eq!(advance(&mut network, 2400), []);
    }

    #[test]
    fn windows_can_be_long() {
        let spec =
            InterconnectSpec { latency_cycles: 1_000_000, flit_bytes: 32, header_bytes: 8, queue_packets: 8 };
        let clock = ClockSpec { core_mhz: 1, interconnect_mhz: 2, dram_mhz: 1 };
        let mut network = Crossbar::new(3, 3, &spec, &clock);
        for (source, at) in [(0, 0), (1, 600_000), (1, 999_999), (2, 999_999)] {
            network.inject(source, at, 0, LINE, source as u32);
        }
        let deliveries = [(0, 1_000_002, 0), (0, 1_600_002, 1), (0, 2_000_001, 2), (0, 2_000_004, 1)];
        assert_eq!(advance(&mut network, 1_000_000), deliveries[..3]);
        assert_eq!(advance(&mut network, 2_000_000), deliveries[3..]);
    }

    #[test]
    fn the_order_in_which_sources_inject_does_not_matter() {
        let mut random = Random(7);
        let mut networks = [gtx480(), gtx480()];
        for window in 0..100 {
            let mut packets: Vec<_> = (0..120)
                .map(|i| (i % 15, window * LATENCY + i as u64 / 15, random.below(12) as usize, i as u32))
                .collect();
            let mut results = Vec::new();
            for network in &mut networks {
                for &(source, at, sink, message) in &packets {
                    if network.room(source) > 0 {
                        network.inject(source, at, sink, message % 3 * 32, message);
                    }
                }
                results.push(advance(network, (window + 1) * LATENCY));
                packets.sort_by_key(|&(source, at, ..)| (15 - source, at));
            }
            assert_eq!(results[0], results[1]);
        }
        assert_eq!(networks[0].stats(), networks[1].stats());
    }

    #[test]
    fn it_agrees_with_a_tick_by_tick_model_and_nothing_arrives_within_its_window() {
        let clocks = [(700, 700), (1481, 2962), (1464, 732), (700, 924), (924, 700), (7, 50)];
        let sizes = [(15, 12), (12, 15), (130, 70)];
        let mut random = Random(42);
        for (core_mhz, mhz) in clocks {
            for (sources, sinks) in sizes {
                let mut network = crossbar(sources, sinks, 8, core_mhz, mhz);
                let mut model = Model::new(&network);
                for window in 0..200 {
                    let (start, until) = (window * LATENCY, (window + 1) * LATENCY);
                    // Loads from nothing to more than the network can move.
                    let load = window % 8 + 1;
                    for source in 0..sources {
                        for at in start..until {
                            if random.below(8) < load && window % 11 > 0 && network.room(source) > 0 {
                                let sink = random.below(sinks as u64) as usize;
                                let data_bytes = random.below(5) as u32 * 32;
                                let message = random.below(1 << 32) as u32;
                                network.inject(source, at, sink, data_bytes, message);
                                model.inject(source, at, sink, data_bytes, message);
                            }
                        }
                    }
                    let rooms: Vec<_> =
                        (0..sinks).map(|_| random.below(20).saturating_sub(4) as u32).collect();
                    let next = network.next_event();
                    let deliveries = advance_into(&mut network, until, |sink| rooms[sink]);
                    assert!(deliveries.iter().all(|&(_, arrival, _)| arrival >= until));
                    assert!(deliveries.is_empty() || next.is_some_and(|next| start <= next && next < until));
                    assert_eq!(by_sink(deliveries), by_sink(model.window(start, until, rooms)));
                }
                assert!(network.stats().packets > 1000 && network.stats().blocked_by_sink > 0);
            }
        }
    }

    /// The same network, with a queue for each pair of ports, looked at sink by sink in every tick.
    struct Model {
        clock: Clock,
        queues: Vec<Vec<VecDeque<(u64, u64, u32)>>>,
        source_free: Vec<u64>,
        sink_free: Vec<u64>,
        turns: Vec<usize>,
    }

    impl Model {
        fn new(network: &Crossbar<u32>) -> Model {
            let (sources, sinks) = (network.sources.len(), network.sinks.len());
            Model {
                clock: network.clock,
                queues: vec![vec![VecDeque::new(); sinks]; sources],
                source_free: vec![0; sources],
                sink_free: vec![0; sinks],
                turns: vec![0; sinks],
            }
        }

        fn inject(&mut self, source: usize, at: u64, sink: usize, data_bytes: u32, message: u32) {
            let ready = (at * self.clock.ticks).div_ceil(self.clock.cycles);
            let flits = (8 + data_bytes).div_ceil(32);
            self.queues[source][sink].push_back((ready, u64::from(flits), message));
        }

        fn window(&mut self, start: u64, until: u64, mut rooms: Vec<u32>) -> Vec<Delivery> {
            let Clock { ticks, cycles } = self.clock;
            let (sources, sinks) = (self.queues.len(), rooms.len());
            let mut deliveries = Vec::new();
            for tick in (start * ticks).div_ceil(cycles).. {
                if tick * cycles >= until * ticks {
                    return deliveries;
                }
                for sink in (0..sinks).map(|sink| (tick as usize + sink) % sinks) {
                    let wants = |source: &usize| {
                        self.source_free[*source] <= tick
                            && self.queues[*source][sink].front().is_some_and(|head| head.0 <= tick)
                    };
                    let mut in_turn = (self.turns[sink]..sources).chain(0..self.turns[sink]);
                    if rooms[sink] > 0
                        && self.sink_free[sink] <= tick
                        && let Some(source) = in_turn.find(wants)
                    {
                        let (_, flits, message) = self.queues[source][sink].pop_front().unwrap();
                        let left = tick + flits;
                        self.source_free[source] = left;
                        self.sink_free[sink] = left;
                        self.turns[sink] = (source + 1) % sources;
                        rooms[sink] -= 1;
                        let arrival = (LATENCY * ticks + (left - 1) * cycles).div_ceil(ticks);
                        deliveries.push((sink, arrival, message));
                    }
                }
            }
            unreachable!()
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % limit
        }
    }
}
