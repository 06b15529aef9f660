use std::collections::VecDeque;

use super::*;
use crate::chip::timing::Queueing;

const LATENCY: u64 = 8;
/// Five flits with the header.
const LINE: u32 = 128;

fn spec(flit_bytes: u32, queue_packets: u32) -> InterconnectSpec {
    InterconnectSpec {
        atomic_window: 0,
        latency_cycles: LATENCY as u32,
        span_cycles: 0,
        far_span_cycles: 0,
        flit_bytes,
        header_bytes: 8,
        queue_packets,
        queueing: Queueing::VirtualOutput,
        allocation_cycles: 0,
        port: None,
    }
}

fn crossbar(sources: usize, sinks: usize, queue_packets: u32, core_mhz: u32, mhz: u32) -> Crossbar<u32> {
    crossbar_of(sources, sinks, queue_packets, (core_mhz, mhz), 32)
}

fn crossbar_of(
    sources: usize,
    sinks: usize,
    queue_packets: u32,
    (core_mhz, interconnect_mhz): (u32, u32),
    flit_bytes: u32,
) -> Crossbar<u32> {
    let spec = spec(flit_bytes, queue_packets);
    let clock = ClockSpec { core_mhz, interconnect_mhz, dram_mhz: 924 };
    Crossbar::new(sources, sinks, &spec, &clock)
}

/// Sources, sinks and queues as in the GTX 480, all at one clock.
fn gtx480() -> Crossbar<u32> {
    crossbar(15, 12, 64, 700, 700)
}

/// Sink, cycle of arrival, message.
type Delivery = (usize, u64, u32);

fn advance(network: &mut Crossbar<u32>, until: u64) -> Vec<Delivery> {
    advance_into(network, until, |_| u32::MAX)
}

fn advance_into(network: &mut Crossbar<u32>, until: u64, room: impl FnMut(usize) -> u32) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    network
        .advance(Cycle(until), room, |sink, arrival, &message| deliveries.push((sink, arrival.0, message)));
    deliveries
}

/// Deliveries by sink. Their order within a sink stays; that between sinks does not matter.
fn by_sink(mut deliveries: Vec<Delivery>) -> Vec<Delivery> {
    deliveries.sort_by_key(|&(sink, ..)| sink);
    deliveries
}

#[test]
fn without_contention_a_packet_takes_the_latency_and_its_further_flits() {
    let mut network = gtx480();
    network.inject(0, Cycle(3), 1, 0, 10);
    assert_eq!(network.next_event(), Some(Cycle(3)));
    assert_eq!(advance(&mut network, 8), [(1, 11, 10)]);
    network.inject(0, Cycle(20), 1, LINE, 11);
    assert_eq!(advance(&mut network, 16), []);
    assert_eq!(network.next_event(), Some(Cycle(20)));
    assert_eq!(advance(&mut network, 24), [(1, 32, 11)]);
    assert_eq!(network.next_event(), None);
    let stats = NetworkStats { packets: 2, flits: 6, queue_cycles: 0, blocked_by_sink: 0 };
    assert_eq!(network.stats(), stats);
}

#[test]
fn two_sources_share_a_sinks_port() {
    let mut network = gtx480();
    network.inject(4, Cycle(0), 3, LINE, 4);
    network.inject(2, Cycle(0), 3, LINE, 2);
    network.inject(1, Cycle(0), 5, LINE, 1);
    assert_eq!(by_sink(advance(&mut network, 8)), [(3, 12, 2), (3, 17, 4), (5, 12, 1)]);
    assert_eq!(network.stats().queue_cycles, 5);
}

fn gtx480_with(queueing: Queueing, allocation_cycles: u32) -> Crossbar<u32> {
    let clock = ClockSpec { core_mhz: 700, interconnect_mhz: 700, dram_mhz: 924 };
    Crossbar::new(15, 12, &InterconnectSpec { queueing, allocation_cycles, ..spec(32, 64) }, &clock)
}

#[test]
fn a_packet_holds_up_those_behind_it_in_a_fifo_only() {
    for (queueing, arrival) in [(Queueing::VirtualOutput, 8), (Queueing::Fifo, 14)] {
        let mut network = gtx480_with(queueing, 0);
        // Sink 3 is busy with five flits when source 4's packets come; sink 5 is idle.
        network.inject(2, Cycle(0), 3, LINE, 0);
        network.inject(4, Cycle(0), 3, 0, 1);
        network.inject(4, Cycle(0), 5, 0, 2);
        let mut deliveries = by_sink(advance(&mut network, 8));
        deliveries.retain(|&(sink, ..)| sink == 5);
        assert_eq!(deliveries, [(5, arrival, 2)], "{queueing:?}");
    }
}

#[test]
fn packets_of_a_fifo_leave_in_the_order_of_their_injection() {
    let mut network = gtx480_with(Queueing::Fifo, 0);
    for (message, sink) in [7, 7, 2, 7, 2].into_iter().enumerate() {
        network.inject(1, Cycle(0), sink, 0, message as u32);
    }
    let mut deliveries = advance(&mut network, 8);
    deliveries.sort_by_key(|&(_, arrival, _)| arrival);
    assert_eq!(deliveries, [(7, 8, 0), (7, 9, 1), (2, 10, 2), (7, 11, 3), (2, 12, 4)]);
    assert_eq!(network.next_event(), None);
}

#[test]
fn a_packet_holds_its_ports_while_a_channel_is_allocated() {
    for queueing in [Queueing::VirtualOutput, Queueing::Fifo] {
        let mut network = gtx480_with(queueing, 1);
        network.inject(0, Cycle(0), 3, 32, 0);
        network.inject(0, Cycle(0), 5, 32, 1);
        network.inject(1, Cycle(0), 3, 32, 2);
        // Two flits each, and a tick before them.
        let deliveries = by_sink(advance(&mut network, 8));
        assert_eq!(deliveries, [(3, 10, 0), (3, 13, 2), (5, 13, 1)], "{queueing:?}");
    }
}

#[test]
fn a_source_has_one_port() {
    let mut network = gtx480();
    network.inject(0, Cycle(0), 3, LINE, 1);
    network.inject(0, Cycle(0), 5, LINE, 2);
    network.inject(0, Cycle(1), 7, LINE, 3);
    assert_eq!(network.room(0), 61);
    assert_eq!(advance(&mut network, 8), [(3, 12, 1), (5, 17, 2)]);
    assert_eq!(network.room(0), 63);
    assert_eq!(network.next_event(), Some(Cycle(10)));
    assert_eq!(advance(&mut network, 16), [(7, 22, 3)]);
}

#[test]
fn a_packet_passes_those_that_wait_for_another_sink() {
    let mut network = gtx480();
    network.inject(0, Cycle(0), 0, LINE, 1);
    network.inject(1, Cycle(0), 0, 0, 2);
    network.inject(1, Cycle(1), 1, 0, 3);
    network.inject(1, Cycle(1), 0, 0, 4);
    // But not those that wait for its own.
    assert_eq!(by_sink(advance(&mut network, 8)), [(0, 12, 1), (0, 13, 2), (0, 14, 4), (1, 9, 3)]);
    assert_eq!(network.stats().queue_cycles, 5 + 5);
}

#[test]
fn packets_wait_for_room_at_their_sink() {
    let mut network = crossbar(2, 2, 2, 700, 700);
    network.inject(0, Cycle(0), 0, 0, 1);
    network.inject(0, Cycle(1), 1, 0, 2);
    network.inject(1, Cycle(2), 1, 0, 3);
    assert_eq!(network.room(0), 0);
    assert_eq!(advance_into(&mut network, 8, |sink| sink as u32), [(1, 9, 2)]);
    assert_eq!((network.room(0), network.room(1)), (1, 1));
    assert_eq!(network.next_event(), Some(Cycle(8)));
    assert_eq!(advance_into(&mut network, 16, |sink| sink as u32), [(1, 16, 3)]);
    assert_eq!(network.next_event(), Some(Cycle(16)));
    network.inject(1, Cycle(16), 0, 0, 4);
    // They do not leave before the window in which there is room. The one place goes to source 0.
    assert_eq!(advance_into(&mut network, 24, |_| 1), [(0, 24, 1)]);
    assert_eq!(advance_into(&mut network, 32, |_| 1), [(0, 32, 4)]);
    let stats = NetworkStats { packets: 4, flits: 4, queue_cycles: 16 + 6 + 8, blocked_by_sink: 3 };
    assert_eq!(network.stats(), stats);
}

#[test]
fn all_ports_are_busy_when_every_source_has_packets_for_every_sink() {
    let mut random = Random(3);
    let mut network = gtx480();
    let (windows, mut delivered) = (400, 0);
    for start in (0..windows * LATENCY).step_by(LATENCY as usize) {
        for source in 0..15 {
            for _ in 0..network.room(source) {
                network.inject(source, Cycle(start), random.below(12) as usize, LINE, 0);
            }
        }
        delivered += advance(&mut network, start + LATENCY).len() as u64;
    }
    // With queues whose head blocks the rest it would be three fifths.
    let most = 12 * windows * LATENCY / 5;
    assert!(delivered * 100 > most * 97, "{delivered} of {most} packets");
}

#[test]
fn a_sink_takes_no_more_than_it_has_room_for() {
    let mut network = gtx480();
    for at in 0..5 {
        network.inject(0, Cycle(at), 9, 0, 0);
    }
    let mut asked = Vec::new();
    let room = |sink| {
        asked.push(sink);
        2
    };
    assert_eq!(advance_into(&mut network, 8, room), [(9, 8, 0), (9, 9, 0)]);
    assert_eq!(asked, [9], "nothing waits for the others");
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
                    network.inject(source, Cycle(start), 7, data_bytes, source as u32);
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
    network.inject(0, Cycle(3), 0, LINE, 1);
    network.inject(1, Cycle(3), 1, 0, 2);
    network.inject(1, Cycle(3), 1, 0, 3);
    network.inject(1, Cycle(3), 1, 0, 4);
    // They leave in ticks 6, 6, 7 and 8 and end in 10, 6, 7 and 8: halves of core cycles, rounded up.
    assert_eq!(advance(&mut network, 8), [(0, 13, 1), (1, 11, 2), (1, 12, 3), (1, 12, 4)]);
}

#[test]
fn a_slower_network_waits_for_its_edges() {
    let mut network = crossbar(2, 2, 8, 3, 2);
    network.inject(0, Cycle(1), 0, 0, 1);
    network.inject(0, Cycle(1), 0, 0, 2);
    // Ticks 1 and 2 begin at 1.5 and 3 core cycles.
    assert_eq!(network.next_event(), Some(Cycle(1)));
    assert_eq!(advance(&mut network, 2), [(0, 10, 1)]);
    assert_eq!(network.next_event(), Some(Cycle(3)));
    assert_eq!(advance(&mut network, 3), []);
    assert_eq!(advance(&mut network, 8), [(0, 11, 2)]);
    assert_eq!(network.stats().queue_cycles, 1);
}

#[test]
fn idle_windows_can_be_skipped() {
    let mut network = gtx480();
    network.inject(0, Cycle(0), 0, 0, 1);
    assert_eq!(advance(&mut network, 8), [(0, 8, 1)]);
    network.inject(0, Cycle(805), 0, 0, 2);
    assert_eq!(network.next_event(), Some(Cycle(805)));
    assert_eq!(advance(&mut network, 808), [(0, 813, 2)]);
    network.inject(0, Cycle(810), 0, 0, 3);
    assert_eq!(advance_into(&mut network, 816, |_| 0), []);
    // Even a packet that was passed over does not arrive in the past.
    assert_eq!(advance(&mut network, 1608), [(0, 1608, 3)]);
    assert_eq!(advance(&mut network, 2400), []);
}

#[test]
fn windows_can_be_long() {
    let spec = InterconnectSpec { latency_cycles: 1_000_000, ..spec(32, 8) };
    let clock = ClockSpec { core_mhz: 1, interconnect_mhz: 2, dram_mhz: 1 };
    let mut network = Crossbar::new(3, 3, &spec, &clock);
    for (source, at) in [(0, 0), (1, 600_000), (1, 999_999), (2, 999_999)] {
        network.inject(source, Cycle(at), 0, LINE, source as u32);
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
                    network.inject(source, Cycle(at), sink, message % 3 * 32, message);
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
    // With flits of three bytes a line takes 46 of them.
    let sizes = [(15, 12, 32), (12, 15, 32), (64, 64, 32), (130, 70, 32), (15, 12, 3), (130, 70, 3)];
    let mut random = Random(42);
    for clocks in clocks {
        for (sources, sinks, flit_bytes) in sizes {
            let mut network = crossbar_of(sources, sinks, 8, clocks, flit_bytes);
            let mut model = Model::new(&network, sources, sinks);
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
                            network.inject(source, Cycle(at), sink, data_bytes, message);
                            model.inject(source, at, sink, data_bytes, message);
                        }
                    }
                }
                let rooms: Vec<_> = (0..sinks).map(|_| random.below(20).saturating_sub(4) as u32).collect();
                let next = network.next_event();
                let deliveries = advance_into(&mut network, until, |sink| rooms[sink]);
                assert!(deliveries.iter().all(|&(_, arrival, _)| arrival >= until));
                assert!(deliveries.is_empty() || next.is_some_and(|next| start <= next.0 && next.0 < until));
                assert_eq!(by_sink(deliveries), by_sink(model.window(start, until, rooms)));
            }
            let least = if flit_bytes < 32 { 100 } else { 1000 };
            let NetworkStats { packets, blocked_by_sink, .. } = network.stats();
            assert!(packets > least && blocked_by_sink > 0, "{packets} packets, {blocked_by_sink} blocked");
        }
    }
}

/// The same network with a queue for each pair of ports, tick by tick and sink by sink.
struct Model {
    clock: Clock,
    flit_bytes: u32,
    queues: Vec<Vec<VecDeque<(u64, u64, u32)>>>,
    source_free: Vec<u64>,
    sink_free: Vec<u64>,
    turns: Vec<usize>,
}

impl Model {
    fn new(network: &Crossbar<u32>, sources: usize, sinks: usize) -> Model {
        Model {
            clock: network.clock,
            flit_bytes: network.flit_bytes.get() as u32,
            queues: vec![vec![VecDeque::new(); sinks]; sources],
            source_free: vec![0; sources],
            sink_free: vec![0; sinks],
            turns: vec![0; sinks],
        }
    }

    fn inject(&mut self, source: usize, at: u64, sink: usize, data_bytes: u32, message: u32) {
        let ready = (at * self.clock.ticks.get()).div_ceil(self.clock.cycles.get());
        let flits = (8 + data_bytes).div_ceil(self.flit_bytes);
        self.queues[source][sink].push_back((ready, u64::from(flits), message));
    }

    fn window(&mut self, start: u64, until: u64, mut rooms: Vec<u32>) -> Vec<Delivery> {
        let (ticks, cycles) = (self.clock.ticks.get(), self.clock.cycles.get());
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
