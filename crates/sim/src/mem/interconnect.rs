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
    /// When each of them is looked at next, unless it takes nothing more in this window.
    agenda: Agenda,
    /// Sinks that are looked at in a tick.
    looked_at: Set,
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
    /// The tick for which it is in the agenda, if it is.
    due: u64,
    /// Sources that have a packet for it which has come.
    wanted_by: Set,
}

impl<M: Copy> Crossbar<M> {
    /// An idle network. None of the specs' numbers is zero.
    pub fn new(sources: usize, sinks: usize, spec: &InterconnectSpec, clock: &ClockSpec) -> Self {
        debug_assert!(spec.latency_cycles > 0, "a window has at least one cycle");
        let sink = Sink { free: 0, turn: 0, room: None, due: NEVER, wanted_by: Set::new(sources) };
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
            agenda: Agenda::new(sinks),
            looked_at: Set::new(sinks),
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
        let number = self.packets.put(packet);
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
        let end = self.clock.tick_from(until);
        let mut tick = self.clock.tick_from(from);
        self.agenda.begin(tick);
        for (number, sink) in self.sinks.iter_mut().enumerate() {
            sink.room = None;
            if sink.due < tick || (sink.due == NEVER && !sink.wanted_by.is_empty()) {
                sink.due = self.agenda.add(number, tick.max(sink.free));
            }
        }
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
        self.agenda.now = tick;
        self.line_up(tick);
        self.agenda.take(tick, &mut self.looked_at);
        // The first to choose is another one every tick, so that none has the better choice for long.
        let mut turn = self.looked_at.turn(tick as usize % self.sinks.len());
        while let Some(sink) = turn.next(&self.looked_at) {
            let to = &mut self.sinks[sink];
            to.due = NEVER;
            let again = if to.free > tick {
                to.free
            } else {
                let sources = &self.sources;
                match to.wanted_by.first_from(to.turn, |source| sources[source].free <= tick) {
                    None => to.wanted_by.iter().map(|source| sources[source].free).min().unwrap_or(NEVER),
                    Some(_) if *to.room.get_or_insert_with(|| room(sink)) == 0 => {
                        self.refuse(sink);
                        continue;
                    }
                    Some(source) => {
                        let (arrival, message) = self.serve(source, sink, tick);
                        deliver(sink, arrival, message);
                        let to = &self.sinks[sink];
                        if to.room == Some(0) {
                            self.refuse(sink);
                            continue;
                        }
                        if to.wanted_by.is_empty() { NEVER } else { to.free }
                    }
                }
            };
            if again != NEVER {
                self.sinks[sink].due = self.agenda.add(sink, again);
            }
        }
        self.agenda.next_after(tick).min(self.coming.next_cycle().unwrap_or(NEVER))
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
                let to = &mut self.sinks[sink];
                match list.last {
                    List::NONE => {
                        list.first = number;
                        let refused = to.room == Some(0);
                        self.packets[number].counted = refused;
                        self.stats.blocked_by_sink += u64::from(refused);
                    }
                    last => self.packets[last].next = number,
                }
                list.last = number;
                to.wanted_by.insert(source as usize);
                self.wanted.insert(sink);
                let due = tick.max(to.free);
                // One that takes nothing more is looked at in the next window.
                if to.due > due && to.room != Some(0) {
                    self.agenda.remove(sink, to.due);
                    to.due = self.agenda.add(sink, due);
                }
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

/// The tick of what is not in the agenda.
const NEVER: u64 = u64::MAX;

/// Sinks by the tick in which they are looked at next.
#[derive(Clone, Debug)]
struct Agenda {
    /// The sinks of tick `t` at `t` modulo the length.
    ticks: Box<[Set; Agenda::TICKS as usize]>,
    /// Ticks with sinks, a bit each.
    occupied: u64,
    /// The first tick that is not over.
    now: u64,
}

impl Agenda {
    /// Ticks ahead for which sinks can be noted.
    const TICKS: u64 = 64;

    fn new(sinks: usize) -> Agenda {
        Agenda { ticks: Box::new(std::array::from_fn(|_| Set::new(sinks))), occupied: 0, now: 0 }
    }

    /// Time goes on to `tick`. What was noted for an earlier one is forgotten.
    fn begin(&mut self, tick: u64) {
        while self.now < tick && self.occupied != 0 {
            self.clear(self.now);
            self.now += 1;
        }
        self.now = tick;
    }

    /// Notes a sink for `tick`, or for the last tick that can be noted. Returns which.
    #[inline]
    fn add(&mut self, sink: usize, tick: u64) -> u64 {
        let tick = tick.min(self.now + Agenda::TICKS - 1);
        self.ticks[(tick % Agenda::TICKS) as usize].insert(sink);
        self.occupied |= 1 << (tick % Agenda::TICKS);
        tick
    }

    /// Takes back a note, if there is one.
    #[inline]
    fn remove(&mut self, sink: usize, tick: u64) {
        if tick != NEVER {
            self.ticks[(tick % Agenda::TICKS) as usize].remove(sink);
        }
    }

    /// Moves the sinks of `tick` to `into`; then it is over.
    #[inline]
    fn take(&mut self, tick: u64, into: &mut Set) {
        // Word by word: there are few, mostly one.
        for (to, from) in into.0.iter_mut().zip(&mut self.ticks[(tick % Agenda::TICKS) as usize].0) {
            *to = std::mem::take(from);
        }
        self.occupied &= !(1 << (tick % Agenda::TICKS));
        self.now = tick + 1;
    }

    #[inline]
    fn clear(&mut self, tick: u64) {
        if self.occupied >> (tick % Agenda::TICKS) & 1 != 0 {
            self.ticks[(tick % Agenda::TICKS) as usize].0.fill(0);
            self.occupied &= !(1 << (tick % Agenda::TICKS));
        }
    }

    /// The first tick after `tick`, which is over, with sinks.
    #[inline]
    fn next_after(&self, tick: u64) -> u64 {
        match self.occupied.rotate_right(((tick + 1) % Agenda::TICKS) as u32) {
            0 => NEVER,
            ahead => tick + 1 + ahead.trailing_zeros() as u64,
        }
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
        // The first word comes twice: its upper part now, its lower part at the end.
        // After the last comes the first again. (A division would take longer than the rest of this.)
        let first = if first / 64 < self.0.len() { first } else { 0 };
        let (word, below) = (first / 64, (1u64 << (first % 64)) - 1);
        Round { word, rest: self.0[word] & !below, below, words_left: self.0.len() }
    }
}

/// A round through a set that does not change meanwhile.
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
            self.word = if self.word + 1 == set.0.len() { 0 } else { self.word + 1 };
            self.rest = set.0[self.word] & if self.words_left == 0 { self.below } else { u64::MAX };
        }
        let bit = self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        Some(self.word * 64 + bit)
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
