//! Known answers are worked out by hand from the gtx480's timing. Addresses are chosen in partition 0.

use super::*;
use crate::chip::timing::{CacheSpec, Carries, SameWord};
use crate::kit::ids::Ticket;
use crate::kit::line::LineAddress;
use crate::time::map::gtx480;
use crate::time::network::message::RequestKind::*;
use crate::time::network::message::{Asks, RequestKind};
use crate::time::network::node::Node;

const ALL: u8 = 0b1111;

/// A line of a slice.
fn line(slice: u32, number: u64) -> LineAddress {
    LineAddress(((number / 2 * 2 + slice as u64) * 6) << 8 | (number % 2) << 7)
}

fn request(kind: RequestKind, slice: u32, number: u64, sectors: u8) -> Request {
    Request {
        line: line(slice, number),
        port: slice as u16,
        sectors,
        whole: sectors,
        kind,
        from: Node::Sm(0),
        ticket: Ticket(0),
        asks: Asks::Nothing,
        missed: false,
        far: false,
    }
}

fn read(number: u64, sectors: u8) -> Request {
    request(Read, 0, number, sectors)
}

fn write(number: u64, sectors: u8) -> Request {
    request(Write, 0, number, sectors)
}

fn add(lanes: u8, same_word: u8) -> RequestKind {
    Atomic {
        passes: same_word.into(),
        same_word,
        words: 1,
        lanes,
        adds: true,
        operand_bytes: 4,
        result_bytes: 4,
    }
}

fn atomic(number: u64, lanes: u8, same_word: u8) -> Request {
    request(add(lanes, same_word), 0, number, 1)
}

/// Units that change eight words of a line per cycle.
fn atomic_units() -> AtomicSpec {
    AtomicSpec {
        sm_cycles: 1,
        silent_cycles: 0,
        silent_queue: 0,
        request_lanes: 32,
        request_bytes: 128,
        request_cycles: 1.0,
        same_word: SameWord::Together,
        carries: Carries::Operands,
        lanes_per_cycle: 8,
        pass_bytes: 128,
        pass_cycles: 1.0,
        word_cycles: 1.0,
        add_cycles: None,
        cas_passes: 1,
    }
}

/// A partition with room for replies, of a gtx480 that was changed.
fn partition(change: impl FnOnce(&mut L2Spec, &mut DramSpec)) -> Partition {
    let (mut l2, mut dram, clock) = gtx480();
    change(&mut l2, &mut dram);
    let mut partition = Partition::new(&l2, &atomic_units(), &dram, &clock);
    partition.set_reply_rooms(Cycle(0), |_| u32::MAX);
    partition
}

fn fermi() -> Partition {
    partition(|_, _| {})
}

/// Runs until nothing is left to do. The cycles of the replies, and the lines, in the order of service.
fn finish(partition: &mut Partition) -> Vec<(u64, LineAddress)> {
    while let Some(cycle) = partition.next_event() {
        partition.run(cycle + 1);
    }
    partition.served.drain(..).map(|served| (served.cycle.0, served.request.line)).collect()
}

/// When the replies to requests that arrive in these cycles leave.
fn replies(partition: &mut Partition, requests: &[(u64, Request)]) -> Vec<u64> {
    for &(arrival, request) in requests {
        partition.accept(0, Cycle(arrival), &request);
    }
    finish(partition).iter().map(|&(cycle, _)| cycle).collect()
}

#[test]
fn a_miss_goes_to_memory_and_a_hit_does_not() {
    let mut partition = fermi();
    // At the tags in cycle 120, at the DRAM in cycle 220, clock 291. Activate, 12 clocks later a read, 3 clocks
    // later another, 14 clocks later the data: clock 320, cycle 243. Four cycles through the port.
    assert_eq!(replies(&mut partition, &[(0, read(0, ALL))]), [247]);
    assert_eq!(replies(&mut partition, &[(300, read(0, ALL)), (300, read(0, 0b1))]), [424, 425]);
    let expected = PartitionStats {
        reads: 3,
        hits: 2,
        misses: 1,
        port_busy_cycles: 9,
        queue_wait_cycles: 4,
        ..PartitionStats::default()
    };
    assert_eq!(*partition.stats(), expected);
    assert_eq!((partition.dram_stats().reads, partition.dram_stats().bytes), (2, 128));
}

#[test]
fn sectors_that_were_touched_while_the_machine_stood_still_are_there() {
    let mut partition = fermi();
    partition.touch(0, line(0, 0), 0b0001, false);
    partition.touch(0, line(0, 1), 0b0100, true);
    // A read brought its burst, of two sectors, and a write only its own.
    let requests = [read(0, 0b0011), read(1, 0b0100), read(1, 0b1000)];
    replies(&mut partition, &requests.map(|request| (0, request)));
    assert_eq!((partition.stats().hits, partition.stats().misses), (2, 1));
    assert_eq!(partition.dram_stats().reads, 1);
}

#[test]
fn requests_for_a_line_in_flight_are_merged() {
    let mut partition = fermi();
    let requests = [(0, read(0, ALL)), (0, read(0, ALL)), (50, read(0, 0b1))];
    assert_eq!(replies(&mut partition, &requests), [247, 251, 252]);
    assert_eq!((partition.stats().misses, partition.stats().merges, partition.stats().hits), (1, 2, 0));
    assert_eq!(partition.dram_stats().reads, 2);
}

#[test]
fn a_burst_brings_its_sectors_and_a_merged_request_fetches_its_own() {
    let mut partition = fermi();
    // A burst is two sectors: the first read fetches one, the second one more.
    let requests = [(0, read(0, 0b0001)), (0, read(0, 0b0010)), (0, read(0, 0b1000))];
    replies(&mut partition, &requests);
    assert_eq!(partition.dram_stats().reads, 2);
    assert_eq!((partition.stats().misses, partition.stats().merges), (1, 2));
    assert_eq!(replies(&mut partition, &[(1000, read(0, 0b0100))]), [1121], "it came along");
}

#[test]
fn a_line_serves_its_requests_in_order() {
    let mut partition = fermi();
    replies(&mut partition, &[(0, read(0, 0b0001))]);
    // The third one's sector is there, but the second one's is not.
    let mut tickets = Vec::new();
    for (ticket, sectors) in [(1, 0b1000), (2, 0b0001)] {
        partition.accept(0, Cycle(1000), &Request { ticket: Ticket(ticket), ..read(0, sectors) });
    }
    while let Some(cycle) = partition.next_event() {
        partition.run(cycle + 1);
        tickets.extend(partition.served.drain(..).map(|served| served.request.ticket.0));
    }
    assert_eq!(tickets, [1, 2]);
    assert_eq!(partition.stats().merges, 1);
}

#[test]
fn misses_beyond_the_mshrs_wait() {
    let requests: Vec<_> = (0..3).map(|number| (0, read(number, ALL))).collect();
    let mut partition = partition(|l2, _| l2.mshrs = 2);
    let replies = replies(&mut partition, &requests);
    // Two lines of one row: the reads of the second follow those of the first by 3 clocks each, so that it is there
    // in cycle 247. The third goes to memory as soon as the first is served, in cycle 243, whatever the port moves.
    assert_eq!(replies[..2], [247, 251]);
    assert_eq!(partition.stats().stall_mshr_cycles, 243 - 122);
    assert_eq!(partition.stats().queue_wait_cycles, 1 + (243 - 120));
    // Sent in cycle 243: at the DRAM in cycle 343, clock 453. The next chunk but one is another 256 bytes of the same
    // row, which is open. Reads in clocks 453 and 456, the data in clock 470, cycle 357.
    assert_eq!(replies[2], 357 + 4);
}

#[test]
fn requests_beyond_the_merges_wait() {
    let mut partition = partition(|l2, _| l2.mshr_merges = 2);
    let requests = [(0, read(0, 0b1)), (0, read(0, 0b1)), (0, read(0, 0b1))];
    let replies = replies(&mut partition, &requests);
    // One burst: in clock 317, cycle 241. The third one joins in the turn after the last of the others.
    assert_eq!(replies, [242, 243, 244]);
    assert_eq!(partition.stats().stall_mshr_cycles, 241 - 122);
    assert_eq!((partition.stats().merges, partition.stats().hits), (1, 1));
}

#[test]
fn a_set_whose_ways_are_all_reserved_takes_no_other_line() {
    let mut partition = partition(|l2, _| l2.cache = CacheSpec { sets: 1, ways: 1, line_bytes: 128 });
    let replies = replies(&mut partition, &[(0, read(0, 0b1)), (0, read(1, 0b1))]);
    // The second line is asked for when the first is served: in cycle 241, at the DRAM in clock 451, where the row
    // is open. The data is there in clock 465, cycle 353.
    assert_eq!(replies, [242, 354]);
    assert_eq!(partition.stats().stall_line_cycles, 241 - 121);
}

#[test]
fn a_write_fetches_its_line_or_only_what_it_leaves() {
    let mut partition = fermi();
    assert_eq!(replies(&mut partition, &[(0, write(0, 0b1))]), [244], "after the whole line");
    assert_eq!((partition.dram_stats().reads, partition.stats().misses), (2, 1));

    let mut partition = self::partition(|l2, _| l2.fetch_on_write = false);
    assert_eq!(replies(&mut partition, &[(0, write(0, 0b1))]), [121], "at once");
    assert_eq!(replies(&mut partition, &[(200, read(0, 0b1))]), [321], "valid");
    assert_eq!(partition.dram_stats().reads, 0);
    let partial = Request { whole: 0, ..write(0, 0b0100) };
    replies(&mut partition, &[(1000, partial)]);
    assert_eq!(partition.dram_stats().reads, 1, "the burst that it writes a part of");
    assert_eq!((partition.stats().misses, partition.stats().hits), (2, 1));
}

#[test]
fn what_a_waiting_write_brings_is_not_fetched() {
    let mut partition = partition(|l2, _| l2.fetch_on_write = false);
    let requests = [(0, read(0, 0b0011)), (0, write(0, 0b1100)), (0, read(0, 0b1100))];
    replies(&mut partition, &requests);
    assert_eq!(partition.dram_stats().reads, 1);
}

#[test]
fn dirty_sectors_are_written_back() {
    let mut partition = partition(|l2, _| {
        l2.cache = CacheSpec { sets: 1, ways: 1, line_bytes: 128 };
        l2.fetch_on_write = false;
    });
    let requests = [(0, write(0, 0b0001)), (0, write(1, ALL)), (0, read(2, 0b1)), (0, read(3, 0b1))];
    let replies = replies(&mut partition, &requests);
    // The second one goes through the port behind the sector that is written back.
    assert_eq!(replies[..2], [121, 126]);
    assert_eq!(partition.stats().writebacks, 2);
    assert_eq!(partition.dram_stats().writes, 1 + 2);
}

#[test]
fn passes_need_not_take_whole_cycles() {
    let (l2, dram, clock) = gtx480();
    let units = AtomicSpec { lanes_per_cycle: 32, pass_cycles: 1.5, word_cycles: 1.5, ..atomic_units() };
    let mut partition = Partition::new(&l2, &units, &dram, &clock);
    partition.set_reply_rooms(Cycle(0), |_| u32::MAX);
    replies(&mut partition, &[(0, read(0, 0b1))]);
    let requests = [(1000, atomic(0, 1, 1)); 6];
    // Two requests take three cycles.
    assert_eq!(replies(&mut partition, &requests), [1121, 1123, 1124, 1126, 1127, 1129]);
}

#[test]
fn a_word_that_changed_settles_before_it_changes_again() {
    let (l2, dram, clock) = gtx480();
    let units = AtomicSpec { word_cycles: 9.0, ..atomic_units() };
    let mut partition = Partition::new(&l2, &units, &dram, &clock);
    partition.set_reply_rooms(Cycle(0), |_| u32::MAX);
    replies(&mut partition, &[(0, read(0, 0b1)), (0, read(1, 0b1))]);
    // Three on one line, nine cycles apart; two on different lines, one after the other; a read of the line at once.
    assert_eq!(replies(&mut partition, &[(1000, atomic(0, 1, 1)); 3]), [1121, 1130, 1139]);
    assert_eq!(replies(&mut partition, &[(2000, atomic(0, 1, 1)), (2000, atomic(1, 1, 1))]), [2121, 2122]);
    assert_eq!(replies(&mut partition, &[(3000, atomic(0, 1, 1)), (3000, read(0, 0b1))]), [3121, 3122]);
    // Four lanes of one request on the same word.
    assert_eq!(replies(&mut partition, &[(4000, atomic(0, 4, 4)), (4000, atomic(0, 1, 1))]), [4148, 4157]);
}

#[test]
fn a_line_can_be_read_some_time_after_a_store() {
    let mut partition = partition(|l2, _| l2.read_after_write_cycles = 48);
    replies(&mut partition, &[(0, read(0, ALL)), (0, read(1, ALL))]);
    // The store is served in cycle 1120. Its line is read 48 later, and what is behind that read waits, too.
    let requests = [(1000, write(0, 0b1)), (1000, read(0, 0b1)), (1000, read(1, 0b1))];
    assert_eq!(replies(&mut partition, &requests), [1121, 1169, 1170]);
    assert_eq!(partition.stats().stall_write_cycles, 1168 - 1121);
    // Another line is read at once, and so is the line after an atomic.
    assert_eq!(replies(&mut partition, &[(2000, write(0, 0b1)), (2000, read(1, 0b1))]), [2121, 2122]);
    assert_eq!(replies(&mut partition, &[(3000, atomic(0, 1, 1)), (3000, read(0, 0b1))]), [3121, 3122]);
}

#[test]
fn lanes_of_an_atomic_on_one_word_take_turns() {
    let mut partition = fermi();
    replies(&mut partition, &[(0, read(0, 0b1)), (0, read(1, 0b1))]);
    // 8 lanes a cycle on different words, 1 on the same.
    assert_eq!(replies(&mut partition, &[(1000, atomic(0, 32, 1)), (1000, atomic(0, 32, 32))]), [1124, 1156]);
    assert_eq!((partition.stats().atomic_lanes, partition.stats().same_word_cycles), (64, 28));
    // Others are served meanwhile, unless they want the same line.
    let requests =
        [(2000, atomic(0, 32, 20)), (2000, read(1, 0b1)), (2000, read(0, 0b1)), (2000, read(1, 0b1))];
    for (arrival, request) in requests {
        partition.accept(0, Cycle(arrival), &request);
    }
    let (zero, one) = (line(0, 0), line(0, 1));
    assert_eq!(finish(&mut partition), [(2122, one), (2140, zero), (2141, zero), (2142, one)]);
    assert_eq!(partition.stats().stall_atomic_cycles, (1124 - 1121) + (2140 - 2122));
}

/// A lock's line always has waiting requests; another line that has come is served all the same.
#[test]
fn a_hot_line_does_not_starve_the_others() {
    let mut partition = fermi();
    let accept = |partition: &mut Partition, cycle: Cycle| partition.accept(0, cycle, &atomic(0, 32, 32));
    (0..16).for_each(|_| accept(&mut partition, Cycle(0)));
    partition.accept(0, Cycle(0), &read(1, ALL));
    let mut served = 0;
    while served < 1000 {
        let Some(cycle) = partition.next_event() else { break };
        partition.run(cycle + 1);
        for reply in std::mem::take(&mut partition.served) {
            if reply.request.line == line(0, 1) {
                return;
            }
            served += 1;
            accept(&mut partition, reply.cycle + 1);
        }
    }
    panic!("{served} atomics went before the read");
}

#[test]
fn an_atomic_marks_its_line_dirty() {
    let mut partition = partition(|l2, _| l2.cache = CacheSpec { sets: 1, ways: 1, line_bytes: 128 });
    replies(&mut partition, &[(0, atomic(0, 1, 1)), (0, read(1, 0b1))]);
    assert_eq!((partition.stats().writebacks, partition.dram_stats().writes), (1, 1));
}

#[test]
fn nothing_is_served_without_room_for_the_reply() {
    let mut partition = fermi();
    replies(&mut partition, &[(0, read(0, 0b1))]);
    partition.set_reply_rooms(Cycle(900), |_| 1);
    for request in [read(0, 0b1), read(0, 0b1), atomic(0, 1, 1)] {
        partition.accept(0, Cycle(1000), &request);
    }
    assert_eq!(finish(&mut partition), [(1121, line(0, 0))]);
    partition.set_reply_rooms(Cycle(5000), |_| 1);
    assert_eq!(finish(&mut partition), [(5001, line(0, 0))]);
    assert_eq!(partition.stats().stall_reply_cycles, 5000 - 1121);
    // The atomic was made, but its reply waits.
    partition.set_reply_rooms(Cycle(6000), |_| 1);
    assert_eq!(finish(&mut partition), [(6000, line(0, 0))]);
    assert_eq!(partition.next_event(), None);
}

#[test]
fn a_slice_waits_for_room_towards_the_dram() {
    let mut partition = partition(|_, dram| {
        dram.latency_cycles = 1;
        dram.queue_requests = 1;
    });
    let requests: Vec<_> = (0..20).map(|number| (0, read(number * 64, ALL))).collect();
    let replies = replies(&mut partition, &requests);
    assert_eq!(replies.len(), 20);
    assert!(partition.stats().stall_dram_cycles > 0, "{:?}", partition.stats());
    assert_eq!(partition.stats().stall_mshr_cycles, 0);
}

#[test]
fn a_slice_takes_what_its_pipeline_and_its_queue_hold() {
    let mut partition = fermi();
    assert_eq!((partition.room(0), partition.room(1), partition.next_event()), (128, 128, None));
    for number in 0..128 {
        partition.accept(0, Cycle(0), &read(number, 0b1));
    }
    assert_eq!((partition.room(0), partition.room(1), partition.next_event()), (0, 128, Some(Cycle(120))));
    partition.run(Cycle(120));
    assert_eq!(partition.room(0), 0);
    partition.run(Cycle(122));
    assert_eq!(partition.room(0), 2);
}

/// A sequence of numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// Random requests to both slices: the slice, the cycle of arrival, the request.
fn random_requests(seed: u64, count: u32) -> Vec<(u32, u64, Request)> {
    let mut random = Random(seed);
    let lines = [3, 40, 2000][random.below(3) as usize];
    let pause = [2, 4, 40][random.below(3) as usize];
    let mut cycle = 0;
    let mut requests = Vec::new();
    for ticket in 0..count {
        cycle += random.below(pause);
        let slice = random.below(2) as u32;
        let sectors = 1 + random.below(15) as u8;
        let lanes = 1 + random.below(32) as u8;
        let kind = match random.below(4) {
            0 => Write,
            1 => add(lanes, 1 + random.below(lanes as u64) as u8),
            _ => Read,
        };
        let whole = sectors & random.below(16) as u8;
        let request = request(kind, slice, random.below(lines), sectors);
        requests.push((slice, cycle, Request { ticket: Ticket(ticket), whole, ..request }));
    }
    requests
}

/// Runs requests in windows, and skips those without events.
fn play(partition: &mut Partition, requests: &[(u32, u64, Request)], window: u64) -> Vec<Served> {
    let mut left = requests.iter().peekable();
    let mut until = 0;
    loop {
        until += window;
        while let Some(&(slice, arrival, request)) = left.next_if(|&&(_, arrival, _)| arrival < until) {
            partition.accept(slice, Cycle(arrival), &request);
        }
        if partition.next_event().is_some_and(|event| event < Cycle(until)) {
            partition.run(Cycle(until));
        }
        if left.peek().is_none() && partition.next_event().is_none() {
            return std::mem::take(&mut partition.served);
        }
    }
}

/// Small chips, on which everything is scarce.
fn small(seed: u64, l2: &mut L2Spec, dram: &mut DramSpec) {
    let mut random = Random(seed + 1_000_000);
    l2.cache.sets = 1 << random.below(4);
    l2.cache.ways = 1 + random.below(4) as u32;
    l2.mshrs = 1 + random.below(6) as u32;
    l2.mshr_merges = 1 + random.below(4) as u32;
    l2.port_bytes = 32 << random.below(3);
    l2.fetch_on_write = random.below(2) == 0;
    // Room for all requests, so that each can arrive in its cycle.
    l2.queue_requests = 1_000;
    dram.latency_cycles = random.below(30) as u32;
    dram.queue_requests = 1 + random.below(8) as u32;
}

#[test]
fn every_request_is_served_once_and_in_the_order_of_its_line() {
    for seed in 0..100 {
        let requests = random_requests(seed, 1_000);
        let mut partition = partition(|l2, dram| small(seed, l2, dram));
        let served = play(&mut partition, &requests, 10);
        let mut tickets: Vec<u32> = served.iter().map(|served| served.request.ticket.0).collect();
        tickets.sort();
        assert!(tickets.iter().copied().eq(0..1_000), "seed {seed}");
        let mut last_ticket = std::collections::HashMap::new();
        let mut last_cycle = [Cycle(0); 2];
        for Served { cycle, slice, request, .. } in served {
            let last = last_ticket.insert(request.line, request.ticket);
            assert!(last.is_none_or(|last| last < request.ticket), "seed {seed}: {request:?}");
            assert!(last_cycle[slice as usize] <= cycle, "seed {seed}: {request:?}");
            last_cycle[slice as usize] = cycle;
        }
        let stats = partition.stats();
        assert_eq!(stats.reads + stats.writes + stats.atomics, 1_000);
        assert_eq!(stats.hits + stats.misses + stats.merges, 1_000);
    }
}

#[test]
fn replies_leave_one_by_one_if_there_is_no_more_room() {
    for seed in 300..320 {
        let mut partition = partition(|l2, dram| small(seed, l2, dram));
        for (slice, arrival, request) in random_requests(seed, 300) {
            partition.accept(slice, Cycle(arrival), &request);
        }
        let mut now = 0;
        while partition.served.len() < 300 {
            let before = partition.served.len();
            partition.set_reply_rooms(Cycle(now), |_| 1);
            partition.run(Cycle(now + 10));
            assert!(partition.served.len() <= before + 2, "seed {seed}");
            assert!(
                partition.served[before..].iter().all(|served| served.cycle >= Cycle(now)),
                "seed {seed}"
            );
            now += 10;
            assert!(now < 100_000, "seed {seed}: {:?}", partition.stats());
        }
        assert_eq!(partition.next_event(), None);
    }
}

#[test]
fn windows_do_not_matter() {
    for seed in 200..250 {
        let requests = random_requests(seed, 500);
        let [one, eight, thousand] = [1, 8, 1000].map(|window| {
            let mut partition = partition(|l2, dram| small(seed, l2, dram));
            let served = play(&mut partition, &requests, window);
            (served, partition.stats().clone(), partition.dram_stats().clone())
        });
        assert_eq!(one, eight, "seed {seed}");
        assert_eq!(one, thousand, "seed {seed}");
    }
}

#[test]
fn a_twin_passes_requests_on_and_serves_copies() {
    let (mut home, mut twin) = (fermi(), fermi());
    twin.set_twin_room(0, Cycle(0), 8);
    let far = |request: Request| Request { far: true, ..request };
    assert_eq!(home.role_of_twin(0, &far(read(0, ALL))), Role::Pass);
    twin.accept_as(Role::Pass, 0, Cycle(0), &far(read(0, ALL)));
    assert_eq!(finish(&mut twin), []);
    let passed: Vec<_> = twin.passed.drain(..).map(|passed| passed.cycle.0).collect();
    assert_eq!((passed, twin.stats().passed), (vec![120], 1));
    // The pipeline is behind it. From memory it takes as long as without a twin.
    let passed = |at: u64, request| Passed { cycle: Cycle(at), slice: 0, request, since: Cycle(at) };
    home.accept_passed(Cycle(220), &passed(120, far(read(0, ALL))));
    assert_eq!(finish(&mut home)[0].0, 247 - 120 + 220);
    assert_eq!(home.role_of_twin(0, &far(read(0, ALL))), Role::Copy);
    twin.accept_as(Role::Copy, 0, Cycle(1000), &far(read(0, ALL)));
    assert_eq!(finish(&mut twin)[0].0, 1124, "four cycles through the port");
    // A store that ends the copy is answered as late as from the other half, the next one is not.
    let mut store = |at| {
        home.accept(0, Cycle(at), &write(0, 1));
        while let Some(cycle) = home.next_event() {
            home.run(cycle + 1);
        }
        home.served.drain(..).map(|served| served.far).collect::<Vec<_>>()
    };
    assert_eq!((store(1200), store(1400)), (vec![true], vec![false]));
    home.accept_passed(Cycle(1600), &passed(1500, far(read(0, ALL))));
    finish(&mut home);
    // Reads of the other half follow its write under way. Once that has come, the copy has it, too.
    assert_eq!(home.role_of_twin(0, &far(write(0, 1))), Role::Pass);
    assert_eq!(home.role_of_twin(0, &far(read(0, ALL))), Role::Pass);
    home.accept_passed(Cycle(2000), &passed(1900, far(write(0, 1))));
    finish(&mut home);
    assert_eq!(home.role_of_twin(0, &far(read(0, ALL))), Role::Copy);
}

#[test]
fn a_twin_without_room_waits() {
    let mut twin = fermi();
    twin.accept_as(Role::Pass, 0, Cycle(0), &read(0, ALL));
    finish(&mut twin);
    assert!(twin.passed.is_empty());
    twin.set_twin_room(0, Cycle(300), 1);
    finish(&mut twin);
    assert_eq!((twin.passed.len(), twin.stats().stall_twin_cycles), (1, 180));
}

#[test]
fn atomics_take_their_time_at_the_twin_too() {
    let mut twin = partition(|l2, _| l2.port_cycles = 1.5);
    twin.set_twin_room(0, Cycle(0), 8);
    for number in 0..4 {
        twin.accept_as(Role::Pass, 0, Cycle(0), &atomic(number, 1, 1));
    }
    finish(&mut twin);
    let passed: Vec<_> = twin.passed.iter().map(|passed| passed.cycle.0).collect();
    assert_eq!(passed, [120, 121, 123, 124]);
}

#[test]
fn what_a_twin_passes_on_keeps_its_place() {
    let mut home = fermi();
    replies(&mut home, &[(0, read(0, ALL)), (0, read(1, ALL))]);
    let passed = Passed { cycle: Cycle(1500), slice: 0, request: read(0, 1), since: Cycle(1000) };
    home.accept_passed(Cycle(2121), &passed);
    for _ in 0..3 {
        home.accept(0, Cycle(2000), &read(1, ALL));
    }
    // The first takes four cycles. Then that from the twin is the oldest.
    let order: Vec<_> = finish(&mut home).iter().map(|&(cycle, _)| cycle).collect();
    assert_eq!(order, [2124, 2125, 2129, 2133]);
}

#[test]
fn twins_without_room_do_not_wait_for_each_other() {
    let mut slice = fermi();
    replies(&mut slice, &[(0, read(0, ALL))]);
    slice.accept_as(Role::Pass, 0, Cycle(1000), &read(2, 1));
    let passed = Passed { cycle: Cycle(1500), slice: 0, request: read(0, 1), since: Cycle(1200) };
    slice.accept_passed(Cycle(1600), &passed);
    // There is no room at the twin, but what comes from it is served.
    assert_eq!(finish(&mut slice).len(), 1);
    assert!(slice.passed.is_empty());
}

#[test]
fn atomics_are_told_when_they_enter_the_pipeline() {
    let mut partition = fermi();
    partition.tell_entries();
    for number in 0..125 {
        partition.accept(0, Cycle(number), &atomic(0, 1, 1));
    }
    assert_eq!(partition.take_entered().count(), 120, "as many as it has stages");
    finish(&mut partition);
    assert_eq!(partition.take_entered().count(), 5);
}

#[test]
fn a_fence_is_answered_after_what_came_before_it() {
    let mut partition = fermi();
    replies(&mut partition, &[(0, read(0, ALL))]);
    let fence = request(Fence, 0, 0, 0);
    let cycles = replies(&mut partition, &[(1000, atomic(0, 32, 32)), (1000, fence), (1000, read(0, 1))]);
    // The atomic takes 32 passes from cycle 1120 on.
    assert_eq!(cycles, [1152, 1152, 1154]);
    assert_eq!(partition.stats().fences, 1);
}
