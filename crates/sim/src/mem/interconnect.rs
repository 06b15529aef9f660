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

#[cfg(test)]
mod tests;

use crate::chip::timing::{ClockSpec, InterconnectSpec};
use crate::divisor::Divisor;
use crate::slab::Slab;

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
    flit_bytes: Divisor,
    header_bytes: u32,
    queue_packets: u32,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    /// All packets. Those that come at one tick form a list, and those of one source for one sink that have come.
    packets: Slab<Packet<M>>,
    /// Packets that have come, of source `i` for sink `k`, at `i * sinks + k`.
    lists: Vec<List>,
    /// Packets that have not come yet.
    coming: Coming,
    /// Sources whose port moves flits, and some whose port has moved its last.
    busy: Set,
    /// Sinks for which packets have come.
    wanted: Set,
    /// Of those, the ones that may take more in this window.
    open: Set,
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
    source: u16,
    sink: u16,
    flits: u32,
    /// The one behind it.
    next: u32,
    /// It has been counted as blocked by its sink.
    counted: bool,
    message: M,
}

/// The first and the last of some packets.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const NONE: u32 = u32::MAX;
    const EMPTY: List = List { first: List::NONE, last: List::NONE };

    #[inline]
    fn is_empty(self) -> bool {
        self.first == List::NONE
    }

    /// Adds a packet, which is the last of its list already.
    #[inline]
    fn push<M>(&mut self, number: u32, packets: &mut Slab<Packet<M>>) {
        if self.is_empty() {
            self.first = number;
        } else {
            packets[self.last].next = number;
        }
        self.last = number;
    }
}

/// Packets by the tick in which they come: a list for each of the next ticks, and those that come later.
#[derive(Clone, Debug)]
struct Coming {
    /// Of tick `t`, at `t % TICKS_AHEAD`, for the ticks from `base` on.
    lists: [List; TICKS_AHEAD],
    /// Lists that are not empty, a bit each.
    occupied: u64,
    base: u64,
    /// In the order in which they were injected.
    later: Vec<u32>,
}

/// Ticks for which there is a list. Windows are shorter on all chips we know, so next to nothing comes later.
const TICKS_AHEAD: usize = u64::BITS as usize;

impl Coming {
    fn new() -> Coming {
        Coming { lists: [List::EMPTY; TICKS_AHEAD], occupied: 0, base: 0, later: Vec::new() }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.occupied == 0 && self.later.is_empty()
    }

    #[inline]
    fn push<M>(&mut self, number: u32, packets: &mut Slab<Packet<M>>) {
        let ready = packets[number].ready;
        if ready - self.base < TICKS_AHEAD as u64 {
            let place = ready as usize % TICKS_AHEAD;
            self.lists[place].push(number, packets);
            self.occupied |= 1 << place;
        } else {
            self.later.push(number);
        }
    }

    /// When the first comes, or [`NEVER`].
    #[inline]
    fn next<M>(&self, packets: &Slab<Packet<M>>) -> u64 {
        if self.occupied != 0 {
            let ahead = self.occupied.rotate_right((self.base % TICKS_AHEAD as u64) as u32).trailing_zeros();
            return self.base + ahead as u64;
        }
        self.later.iter().map(|&number| packets[number].ready).min().unwrap_or(NEVER)
    }

    /// Takes packets that come by `tick`, the earliest first: the first of some that hang together, or [`List::NONE`].
    #[inline]
    fn take<M>(&mut self, tick: u64, packets: &Slab<Packet<M>>) -> u32 {
        let next = self.next(packets);
        if next > tick {
            return List::NONE;
        }
        if self.occupied == 0 {
            let at = self.later.iter().position(|&number| packets[number].ready <= tick);
            return at.map_or(List::NONE, |at| self.later.remove(at));
        }
        let place = next as usize % TICKS_AHEAD;
        self.occupied &= !(1 << place);
        std::mem::replace(&mut self.lists[place], List::EMPTY).first
    }

    /// All that come before `tick` have been taken.
    #[inline]
    fn advance<M>(&mut self, tick: u64, packets: &mut Slab<Packet<M>>) {
        self.base = tick;
        if !self.later.is_empty() {
            for number in std::mem::take(&mut self.later) {
                self.push(number, packets);
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Sink {
    /// When a packet may leave its queue such that it finds this sink's port free at the other end.
    free: u64,
    /// The source that goes first if several could; those below it go last.
    turn: usize,
    /// Packets that it still takes in this window, or [`UNASKED`].
    room: u32,
    /// Sources that have a packet for it which has come.
    wanted_by: Set,
}

/// A sink that has not been asked how many packets it takes. One more than any answer.
const UNASKED: u32 = u32::MAX;

/// The tick of what does not come.
const NEVER: u64 = u64::MAX;

impl<M: Copy> Crossbar<M> {
    /// An idle network. None of the specs' numbers is zero.
    pub fn new(sources: usize, sinks: usize, spec: &InterconnectSpec, clock: &ClockSpec) -> Self {
        debug_assert!(spec.latency_cycles > 0, "a window has at least one cycle");
        debug_assert!(sources.max(sinks) <= u16::MAX as usize);
        let source = Source { queued: 0, free: 0, last: 0 };
        let sink = Sink { free: 0, turn: 0, room: UNASKED, wanted_by: Set::new(sources) };
        Crossbar {
            clock: Clock::new(clock),
            latency_cycles: u64::from(spec.latency_cycles),
            flit_bytes: Divisor::new(spec.flit_bytes as u64),
            header_bytes: spec.header_bytes,
            queue_packets: spec.queue_packets,
            sources: vec![source; sources],
            sinks: vec![sink; sinks],
            packets: Slab::default(),
            lists: vec![List::EMPTY; sources * sinks],
            coming: Coming::new(),
            busy: Set::new(sources),
            wanted: Set::new(sinks),
            open: Set::new(sinks),
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
    #[inline(always)]
    pub fn inject(&mut self, source: usize, at: u64, sink: usize, data_bytes: u32, message: M) {
        debug_assert!(self.room(source) > 0, "source {source} has no room");
        debug_assert!(at >= self.until, "a packet for cycle {at}, at cycle {}", self.until);
        debug_assert!(sink < self.sinks.len());
        let ready = self.clock.tick_from(at);
        let flits = self.flit_bytes.quotient_up((self.header_bytes + data_bytes) as u64).max(1) as u32;
        let port = &mut self.sources[source];
        debug_assert!(port.last <= ready, "source {source} went back in time");
        (port.last, port.queued) = (ready, port.queued + 1);
        let (source, sink) = (source as u16, sink as u16);
        let packet = Packet { ready, source, sink, flits, next: List::NONE, counted: false, message };
        let number = self.packets.put(packet);
        self.coming.push(number, &mut self.packets);
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
        let end = self.clock.tick_from(until);
        if self.wanted.is_empty() && self.coming.is_empty() {
            self.coming.base = end;
            return;
        }
        let mut tick = self.clock.tick_from(from);
        self.sinks.iter_mut().for_each(|sink| sink.room = UNASKED);
        self.open.clone_from(&self.wanted);
        while tick < end {
            tick = self.step(tick, &mut room, &mut deliver);
        }
        self.coming.advance(end, &mut self.packets);
        self.stats.queue_cycles = self.clock.cycle_of(self.queue_ticks);
    }

    /// Everything that can leave at a tick does. Returns the next tick in which something may.
    fn step(
        &mut self,
        tick: u64,
        room: &mut impl FnMut(usize) -> u32,
        deliver: &mut impl FnMut(usize, u64, M),
    ) -> u64 {
        let mut number = self.coming.take(tick, &self.packets);
        while number != List::NONE {
            let next = std::mem::replace(&mut self.packets[number].next, List::NONE);
            self.line_up(number);
            number = if next != List::NONE { next } else { self.coming.take(tick, &self.packets) };
        }
        let sources = &self.sources;
        self.busy.retain(|source| sources[source].free > tick);
        // The first to choose is another one every tick, so that none has the better choice for long.
        let mut round = self.open.round_from(tick as usize % self.sinks.len());
        while let Some(sink) = round.next(&self.open) {
            let to = &mut self.sinks[sink];
            if to.free > tick {
                continue;
            }
            let Some(source) = to.wanted_by.first_without(&self.busy, to.turn) else { continue };
            if to.room == UNASKED {
                to.room = room(sink).min(UNASKED - 1);
            }
            let left = to.room.saturating_sub(1);
            if to.room > 0 {
                let (arrival, message) = self.serve(source, sink, tick);
                deliver(sink, arrival, message);
            }
            if left == 0 {
                self.refuse(sink);
            }
        }
        if self.open.is_empty() { self.coming.next(&self.packets) } else { tick + 1 }
    }

    /// A packet that has come joins those of its source for its sink.
    #[inline(always)]
    fn line_up(&mut self, number: u32) {
        let packet = &mut self.packets[number];
        let (source, sink) = (packet.source as usize, packet.sink as usize);
        let list = &mut self.lists[source * self.sinks.len() + sink];
        let to = &mut self.sinks[sink];
        // A sink that takes nothing more is looked at in the next window.
        let refused = to.room == 0;
        if list.is_empty() {
            packet.counted = refused;
            self.stats.blocked_by_sink += u64::from(refused);
        }
        list.push(number, &mut self.packets);
        to.wanted_by.insert(source);
        self.wanted.insert(sink);
        if !refused {
            self.open.insert(sink);
        }
    }

    /// The first packet of `source` for `sink` leaves at `tick`. Returns its arrival, in core cycles, and its message.
    #[inline(always)]
    fn serve(&mut self, source: usize, sink: usize, tick: u64) -> (u64, M) {
        let list = &mut self.lists[source * self.sinks.len() + sink];
        let number = list.first;
        let Packet { ready, flits, next, message, .. } = self.packets[number];
        self.packets.give_back(number);
        let left = tick + u64::from(flits);
        let to = &mut self.sinks[sink];
        (to.free, to.turn) = (left, source + 1);
        to.room -= 1;
        list.first = next;
        if list.is_empty() {
            to.wanted_by.remove(source);
            if to.wanted_by.is_empty() {
                self.wanted.remove(sink);
                self.open.remove(sink);
            }
        }
        let port = &mut self.sources[source];
        (port.free, port.queued) = (left, port.queued - 1);
        self.busy.insert(source);
        self.queue_ticks += tick - ready;
        self.stats.packets += 1;
        self.stats.flits += u64::from(flits);
        (self.clock.cycle_from(left - 1) + self.latency_cycles, message)
    }

    /// Packets for `sink` wait for the next window, because it takes nothing more in this one.
    fn refuse(&mut self, sink: usize) {
        self.open.remove(sink);
        for source in self.sinks[sink].wanted_by.iter() {
            let number = self.lists[source * self.sinks.len() + sink].first;
            let packet = &mut self.packets[number];
            self.stats.blocked_by_sink += u64::from(!packet.counted);
            packet.counted = true;
        }
    }

    /// Earliest core cycle at which a waiting packet could leave its queue, if its sink has room.
    pub fn next_event(&self) -> Option<u64> {
        let mut tick = NEVER;
        for sink in self.wanted.iter() {
            let to = &self.sinks[sink];
            let port = to.wanted_by.iter().map(|source| self.sources[source].free).min();
            tick = tick.min(to.free.max(port.unwrap_or(NEVER)));
        }
        tick = tick.min(self.coming.next(&self.packets));
        (tick != NEVER).then(|| self.clock.cycle_of(tick.max(self.clock.tick_from(self.until))))
    }

    /// What it did so far.
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }
}

/// A set of sources or sinks, a bit each. Few chips have more than 64 of either, so the first ones have a place of their own.
#[derive(Debug)]
struct Set {
    low: u64,
    high: Box<[u64]>,
}

impl Clone for Set {
    fn clone(&self) -> Set {
        Set { low: self.low, high: self.high.clone() }
    }

    #[inline]
    fn clone_from(&mut self, other: &Set) {
        self.low = other.low;
        self.high.copy_from_slice(&other.high);
    }
}

impl Set {
    /// None of `nodes`.
    fn new(nodes: usize) -> Set {
        Set { low: 0, high: vec![0; nodes.div_ceil(64).saturating_sub(1)].into() }
    }

    #[inline]
    fn words(&self) -> usize {
        1 + self.high.len()
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        if index == 0 { self.low } else { self.high[index - 1] }
    }

    #[inline]
    fn word_mut(&mut self, index: usize) -> &mut u64 {
        if index == 0 { &mut self.low } else { &mut self.high[index - 1] }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|&word| word == 0)
    }

    #[inline]
    fn insert(&mut self, node: usize) {
        *self.word_mut(node / 64) |= 1 << (node % 64);
    }

    #[inline]
    fn remove(&mut self, node: usize) {
        *self.word_mut(node / 64) &= !(1 << (node % 64));
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = usize> {
        let mut round = self.round_from(0);
        std::iter::from_fn(move || round.next(self))
    }

    /// Takes out those that are not `good`.
    #[inline]
    fn retain(&mut self, good: impl Fn(usize) -> bool) {
        for index in 0..self.words() {
            let mut rest = self.word(index);
            while rest != 0 {
                let node = index * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if !good(node) {
                    self.remove(node);
                }
            }
        }
    }

    /// The first that is not in `other`, from `turn` on and then from the beginning.
    #[inline(always)]
    fn first_without(&self, other: &Set, turn: usize) -> Option<usize> {
        if self.high.is_empty() {
            let left = self.low & !other.low;
            let later = left & u64::MAX.checked_shl(turn as u32).unwrap_or(0);
            let from = if later != 0 { later } else { left };
            return (from != 0).then(|| from.trailing_zeros() as usize);
        }
        self.first_of_many_without(other, turn)
    }

    #[cold]
    fn first_of_many_without(&self, other: &Set, turn: usize) -> Option<usize> {
        let left = |index: usize| self.word(index) & !other.word(index);
        let (first, below) = self.split(turn);
        let found =
            |index: usize, word: u64| (word != 0).then(|| index * 64 + word.trailing_zeros() as usize);
        found(first, left(first) & !below)
            .or_else(|| (first + 1..self.words()).chain(0..first).find_map(|index| found(index, left(index))))
            .or_else(|| found(first, left(first) & below))
    }

    /// A round through the members, from `first` on and then from the beginning. Those that have come may be taken out
    /// meanwhile.
    #[inline]
    fn round_from(&self, first: usize) -> Round {
        // The first word comes twice: its upper part now, its lower part at the end.
        let (word, below) = self.split(first);
        Round { word, rest: self.word(word) & !below, below, words_left: self.words() }
    }

    /// The word that a round from `first` on begins in, and the part of it that comes last. After the last node comes the
    /// first again. (A division would take longer than the rest of this.)
    #[inline]
    fn split(&self, first: usize) -> (usize, u64) {
        let first = if first / 64 < self.words() { first } else { 0 };
        (first / 64, (1 << (first % 64)) - 1)
    }
}

/// A round through a set.
struct Round {
    word: usize,
    /// Members of this word that have not come.
    rest: u64,
    /// The part of the first word that comes last.
    below: u64,
    words_left: usize,
}

impl Round {
    #[inline]
    fn next(&mut self, set: &Set) -> Option<usize> {
        while self.rest == 0 {
            if self.words_left == 0 {
                return None;
            }
            self.words_left -= 1;
            self.word = if self.word + 1 == set.words() { 0 } else { self.word + 1 };
            self.rest = set.word(self.word) & if self.words_left == 0 { self.below } else { u64::MAX };
        }
        let bit = self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        Some(self.word * 64 + bit)
    }
}

/// Two clocks whose edges meet at 0: `ticks` of the interconnect take as long as `cycles` of the core.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ticks: Divisor,
    cycles: Divisor,
}

impl Clock {
    fn new(spec: &ClockSpec) -> Clock {
        let (ticks, cycles) = (u64::from(spec.interconnect_mhz), u64::from(spec.core_mhz));
        debug_assert!(ticks > 0 && cycles > 0, "clocks run");
        let common = greatest_common_divisor(ticks, cycles);
        Clock { ticks: Divisor::new(ticks / common), cycles: Divisor::new(cycles / common) }
    }

    /// The first tick that does not begin before core cycle `cycle`.
    #[inline]
    fn tick_from(&self, cycle: u64) -> u64 {
        self.cycles.quotient_up(cycle * self.ticks.get())
    }

    /// The first core cycle that does not begin before `tick`.
    #[inline]
    fn cycle_from(&self, tick: u64) -> u64 {
        self.ticks.quotient_up(tick * self.cycles.get())
    }

    /// The core cycle in which `tick` begins.
    #[inline]
    fn cycle_of(&self, tick: u64) -> u64 {
        self.ticks.quotient(tick * self.cycles.get())
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
