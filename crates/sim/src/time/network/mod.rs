//! The network between SMs and L2 slices: a crossbar, one for requests and another for replies.
//!
//! Each source has one queue and one port into the crossbar; each sink has one port out of it. A port moves one flit
//! per interconnect cycle (a *tick*), and packets are not mixed. With virtual output queues, the first packet for each
//! sink can leave a queue, so a packet that waits for a busy sink does not hold up the others. With a FIFO, only the
//! first packet can, so it does (head-of-line blocking). In every tick, the free sinks choose in turn among the free
//! sources that have a packet for them, and no sink stays idle that could be served (as iSLIP does after a few
//! iterations).
//!
//! The machine works in windows as long as the network's latency: everything injected during a window is known when it
//! ends, and whatever leaves a queue in a window arrives after it.
//!
//! Start with [`Crossbar`]; `ports` decides who sends, [`message`] has what is sent.

mod coming;
mod packets;
mod port_set;
mod ports;
#[cfg(test)]
mod tests;

pub(crate) mod floor;
pub(crate) mod message;
pub(crate) mod node;
pub(crate) mod shared_port;

use std::ops::Range;

use crate::chip::timing::{ClockSpec, InterconnectSpec};
use crate::kit::cycle::Cycle;
use crate::kit::divisor::Divisor;
use crate::time::network::coming::NO_TICK;
use crate::time::network::port_set::{Any, Dozens, Few};
use crate::time::network::ports::Ports;

/// Counters of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NetworkStats {
    /// Packets that left their queues.
    pub packets: u64,
    /// Flits of these packets.
    pub flits: u64,
    /// The sum of the core cycles that they waited, beyond what they would have in an idle network.
    pub queue_cycles: u64,
    /// Packets that, at the head of a queue, found no room at their sink.
    pub blocked_by_sink: u64,
}

crate::kit::counters::add_up!(NetworkStats { packets, flits, queue_cycles, blocked_by_sink });

/// A crossbar and the queues in front of it.
#[derive(Clone, Debug)]
pub struct Crossbar<M: Copy> {
    clock: Clock,
    latency_cycles: u64,
    flit_bytes: Divisor,
    header_bytes: u32,
    queue_packets: u32,
    ports: AllPorts<M>,
    /// Every packet has left that could before this cycle.
    until: Cycle,
}

/// The ports of a small crossbar, whose sets of ports are a word each, of a large one, or of one without limit.
#[derive(Clone, Debug)]
enum AllPorts<M: Copy> {
    Few(Ports<M, Few>),
    Dozens(Ports<M, Dozens>),
    Any(Ports<M, Any>),
}

/// Does the same with each kind.
macro_rules! with_ports {
    ($crossbar:expr, $ports:ident => $what:expr) => {
        match $crossbar {
            AllPorts::Few($ports) => $what,
            AllPorts::Dozens($ports) => $what,
            AllPorts::Any($ports) => $what,
        }
    };
}

impl<M: Copy + std::fmt::Debug> Crossbar<M> {
    /// An idle network. None of the specs' numbers is zero.
    pub fn new(sources: usize, sinks: usize, spec: &InterconnectSpec, clock: &ClockSpec) -> Self {
        debug_assert!(spec.latency_cycles > 0, "a window has at least one cycle");
        debug_assert!(sources.max(sinks) <= u16::MAX as usize);
        let nodes = sources.max(sinks);
        let ports = if nodes <= Few::MOST {
            AllPorts::Few(Ports::new(sources, sinks, spec))
        } else if nodes <= Dozens::MOST {
            AllPorts::Dozens(Ports::new(sources, sinks, spec))
        } else {
            AllPorts::Any(Ports::new(sources, sinks, spec))
        };
        Crossbar {
            clock: Clock::new(clock),
            latency_cycles: u64::from(spec.latency_cycles),
            flit_bytes: Divisor::new(spec.flit_bytes as u64),
            header_bytes: spec.header_bytes,
            queue_packets: spec.queue_packets,
            ports,
            until: Cycle(0),
        }
    }

    /// Makes an idle network as good as new. Returns false if there are packets in it.
    pub(crate) fn renew(&mut self) -> bool {
        self.until = Cycle(0);
        with_ports!(&mut self.ports, ports => ports.renew())
    }

    /// Packets that `source` may still inject. What leaves its queue makes room only in [`Crossbar::advance`].
    #[inline]
    pub fn room(&self, source: usize) -> u32 {
        self.queue_packets.saturating_sub(with_ports!(&self.ports, ports => ports.queued(source)))
    }

    /// Puts a packet into its source's queue at cycle `at`, not before an earlier one of this source nor before the end
    /// of the last window. The header is not in `data_bytes`.
    #[inline(always)]
    pub fn inject(&mut self, source: usize, at: Cycle, sink: usize, data_bytes: u32, message: M) {
        debug_assert!(at >= self.until, "a packet for cycle {at}, at cycle {}", self.until);
        let ready = self.clock.tick_from(at);
        let flits = self.flit_bytes.quotient_up((self.header_bytes + data_bytes) as u64).max(1) as u32;
        with_ports!(&mut self.ports, ports => ports.inject(source, ready, sink, flits, message));
    }

    /// Moves every packet that can leave its queue before cycle `until`, but none earlier than a latency before it, so
    /// that none arrives before it.
    ///
    /// `room(sink)` says how many packets a sink takes; it is called before any is delivered to that sink, and only if
    /// some are for it. `deliver(sink, arrival, message)` is called in order of arrival for each sink.
    pub fn advance(
        &mut self,
        until: Cycle,
        room: impl FnMut(usize) -> u32,
        mut deliver: impl FnMut(usize, Cycle, &M),
    ) {
        debug_assert!(until >= self.until, "time went back from cycle {} to {until}", self.until);
        let from = self.until.max(Cycle(until.0.saturating_sub(self.latency_cycles)));
        self.until = until;
        let (clock, latency) = (self.clock, self.latency_cycles);
        let (from, end) = (clock.tick_from(from), clock.tick_from(until));
        let deliver =
            |sink, left: u64, message: &M| deliver(sink, clock.cycle_from(left - 1) + latency, message);
        with_ports!(&mut self.ports, ports => ports.advance(from, end, room, deliver));
    }

    /// Whether packets have joined or left the queues of some sources since the last call for them.
    #[inline]
    pub(crate) fn take_moved(&mut self, sources: Range<usize>) -> bool {
        with_ports!(&mut self.ports, ports => ports.take_moved(sources))
    }

    /// The earliest cycle in which a waiting packet could leave its queue, if its sink has room.
    pub fn next_event(&self) -> Option<Cycle> {
        let tick = with_ports!(&self.ports, ports => ports.next_event());
        (tick != NO_TICK).then(|| self.clock.cycle_of(tick.max(self.clock.tick_from(self.until))))
    }

    pub fn stats(&self) -> NetworkStats {
        let (stats, ticks) = with_ports!(&self.ports, ports => (&ports.stats, ports.queue_ticks));
        NetworkStats { queue_cycles: self.clock.cycle_of(ticks).0, ..stats.clone() }
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

    /// The first tick that does not begin before `cycle`.
    #[inline]
    fn tick_from(&self, cycle: Cycle) -> u64 {
        self.cycles.quotient_up(cycle.0 * self.ticks.get())
    }

    /// The first cycle that does not begin before `tick`.
    #[inline]
    fn cycle_from(&self, tick: u64) -> Cycle {
        Cycle(self.ticks.quotient_up(tick * self.cycles.get()))
    }

    /// The cycle in which `tick` begins.
    #[inline]
    fn cycle_of(&self, tick: u64) -> Cycle {
        Cycle(self.ticks.quotient(tick * self.cycles.get()))
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
