//! Known answers are worked out by hand from the gtx480's timing; random traffic is checked against all of it.

use Command::*;

use super::*;
use crate::time::map::{AddressMap, gtx480};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Activate,
    Precharge,
    Read,
    Write,
}

/// A command that the controller gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    clock: u64,
    command: Command,
    bank: u16,
    row: u64,
}

impl Given {
    pub(crate) fn new(clock: u64, open_row: u64, transfer: &Transfer) -> Given {
        let command = match transfer.direction {
            _ if open_row == u64::MAX => Activate,
            _ if open_row != transfer.row => Precharge,
            Direction::Read => Read,
            Direction::Write => Write,
        };
        Given { clock, command, bank: transfer.bank, row: transfer.row }
    }
}

fn read(bank: u16, row: u64, bursts: u8, tag: u32) -> Transfer {
    Transfer { bank, bursts, direction: Direction::Read, tag, row }
}

fn write(bank: u16, row: u64) -> Transfer {
    Transfer { bank, bursts: 1, direction: Direction::Write, tag: 0, row }
}

/// A gtx480's channel, with a command clock in each core cycle.
fn one_to_one() -> Channel {
    let (_, dram, clock) = gtx480();
    Channel::new(&dram, &ClockSpec { core_mhz: 924, ..clock })
}

/// Runs until nothing is left to do; the cycle and the tag of each read.
fn finish(channel: &mut Channel) -> Vec<(u64, u32)> {
    let mut done = Vec::new();
    loop {
        channel.run(Cycle::NEVER);
        let Some(cycle) = channel.next_done() else { return done };
        done.push((cycle.0, channel.take_done().unwrap()));
    }
}

fn commands(channel: &Channel) -> Vec<(u64, Command, u16)> {
    channel.controller.commands.iter().map(|given| (given.clock, given.command, given.bank)).collect()
}

#[test]
fn clocks_convert_exactly() {
    let clocks = Clocks::new(&gtx480().2);
    assert_eq!([0, 1, 25, 100].map(|cycle| clocks.first_clock(Cycle(cycle))), [0, 2, 33, 132]);
    assert_eq!([0, 1, 2, 32, 33].map(|clock| clocks.cycle_of(clock).0), [0, 0, 1, 24, 25]);
    assert_eq!([0, 1, 2, 33, 34].map(|clock| clocks.cycle_after(clock).0), [0, 1, 2, 25, 26]);
    for clock in 0..100 {
        let end = clocks.end(clocks.cycle_of(clock));
        let next = clocks.end(clocks.cycle_of(clock) + 1);
        assert!(!clocks.is_before(clock, end) && clocks.is_before(clock, next));
    }
    assert!(!clocks.is_before(NO_CLOCK, clocks.end(Cycle::NEVER)));
}

#[test]
fn an_idle_channel_reads_in_its_least_time() {
    let (_, dram, clock) = gtx480();
    // At the controller in cycle 100, which is clock 132; 12 clocks to the read, 12 to the data, 2 of data.
    let mut channel = Channel::new(&dram, &clock);
    channel.send(Cycle(0), read(0, 0, 1, 7));
    assert_eq!(finish(&mut channel), [(120, 7)]);
    // The second burst of a bank comes 3 clocks behind the first.
    let mut channel = Channel::new(&dram, &clock);
    channel.send(Cycle(0), read(0, 0, 2, 7));
    assert_eq!(finish(&mut channel), [(122, 7)]);
}

#[test]
fn an_open_row_saves_the_activate_and_a_wrong_one_costs_a_precharge() {
    let mut channel = one_to_one();
    for (cycle, row) in [(0, 0), (200, 0), (400, 1)] {
        channel.run(Cycle(cycle));
        while channel.take_done().is_some() {}
        channel.send(Cycle(cycle), read(3, row, 1, 0));
    }
    assert_eq!(finish(&mut channel), [(538, 0)]);
    let expected = [
        (100, Activate, 3),
        (112, Read, 3),
        (300, Read, 3),
        (500, Precharge, 3),
        (512, Activate, 3),
        (524, Read, 3),
    ];
    assert_eq!(commands(&channel), expected);
    let stats = DramStats {
        reads: 3,
        row_hits: 1,
        row_misses: 2,
        precharges: 1,
        busy_clocks: 6,
        wait_clocks: 12 + 24,
        bytes: 192,
        ..DramStats::default()
    };
    assert_eq!(*channel.stats(), stats);
}

#[test]
fn other_rows_of_a_bank_come_once_a_row_cycle() {
    let mut channel = one_to_one();
    for row in 0..10 {
        channel.send(Cycle(0), read(0, row, 1, row as u32));
    }
    let done = finish(&mut channel);
    assert!(done.iter().copied().eq((0..10).map(|row| (126 + 40 * row, row as u32))));
    assert_eq!(
        commands(&channel)[..4],
        [(100, Activate, 0), (112, Read, 0), (128, Precharge, 0), (140, Activate, 0)]
    );
}

#[test]
fn a_read_waits_for_the_end_of_write_data() {
    let mut channel = one_to_one();
    channel.send(Cycle(0), write(0, 0));
    channel.send(Cycle(0), read(1, 0, 1, 0));
    finish(&mut channel);
    // Data of the write in clocks 116 and 117; 5 clocks after them the read.
    let expected = [(100, Activate, 0), (106, Activate, 1), (112, Write, 0), (123, Read, 1)];
    assert_eq!(commands(&channel), expected);
}

#[test]
fn a_write_waits_until_the_bus_has_turned() {
    let mut channel = one_to_one();
    channel.send(Cycle(0), read(0, 0, 1, 0));
    channel.send(Cycle(0), write(1, 0));
    channel.send(Cycle(0), write(1, 1));
    finish(&mut channel);
    // Data of the read in clocks 124 and 125, two clocks for the turn, data of the write in clocks 128 and 129. The
    // bank can be closed 12 clocks after them.
    let expected = [
        (100, Activate, 0),
        (106, Activate, 1),
        (112, Read, 0),
        (124, Write, 1),
        (142, Precharge, 1),
        (154, Activate, 1),
        (166, Write, 1),
    ];
    assert_eq!(commands(&channel), expected);
}

#[test]
fn row_hits_come_first() {
    let mut channel = one_to_one();
    for (row, tag) in [(0, 1), (5, 2), (0, 3), (0, 4)] {
        channel.send(Cycle(0), read(0, row, 1, tag));
    }
    let tags: Vec<u32> = finish(&mut channel).iter().map(|&(_, tag)| tag).collect();
    assert_eq!(tags, [1, 3, 4, 2]);
}

/// Sends from `next` whenever there is room, until `cycles` have passed.
fn saturate(channel: &mut Channel, cycles: u64, mut next: impl FnMut() -> Transfer) -> Vec<(u64, u32)> {
    let mut done = Vec::new();
    for cycle in 0..cycles {
        while channel.room() > 0 {
            channel.send(Cycle(cycle), next());
        }
        channel.run(Cycle(cycle + 1));
        while channel.next_done().is_some_and(|at| at <= Cycle(cycle)) {
            done.push((channel.next_done().unwrap().0, channel.take_done().unwrap()));
        }
    }
    done
}

#[test]
fn a_sequential_stream_fills_the_bus() {
    let (l2, dram, clock) = gtx480();
    let map = AddressMap::new(&l2, &dram);
    let mut channel = Channel::new(&dram, &clock);
    let mut local = 0;
    saturate(&mut channel, 100_000, || {
        let place = map.place(local);
        local += 128;
        read(place.bank as u16, place.row, 2, 0)
    });
    let clocks = 100_000.0 * 924.0 / 700.0;
    let stats = channel.stats();
    assert!(stats.busy_clocks as f64 > 0.99 * clocks, "{stats:?}");
    // 128 bursts of two rows of two banks, then the next two.
    assert!(stats.row_misses <= stats.reads / 64 + 2, "{stats:?}");
}

#[test]
fn endless_hits_do_not_keep_a_bank_from_an_older_transfer() {
    let mut channel = one_to_one();
    let mut sent = 0;
    let done = saturate(&mut channel, 2_000, || {
        sent += 1;
        read(0, if sent == 10 { 1 } else { 0 }, 1, sent)
    });
    let position = done.iter().position(|&(_, tag)| tag == 10).expect("served");
    // It becomes the oldest when the nine before it are gone; then a row's worth of bursts may pass.
    assert_eq!(position, 9 + 64);
}

#[test]
fn endless_reads_do_not_keep_the_bus_from_an_older_write() {
    let mut channel = one_to_one();
    let mut sent = 0;
    saturate(&mut channel, 2_000, || {
        sent += 1;
        if sent == 10 { write(1, 0) } else { read(0, 0, 1, sent) }
    });
    let is_write = |given: &&Given| given.command == Write;
    let before = channel.controller.commands.split(|given| is_write(&given)).next().unwrap();
    assert_eq!(before.iter().filter(|given| given.command == Read).count(), 9 + 64);
    assert_eq!(channel.controller.commands.iter().filter(is_write).count(), 1);
}

#[test]
fn the_pipe_has_an_end() {
    let mut channel = one_to_one();
    assert_eq!(channel.room(), 116);
    for tag in 0..116 {
        channel.send(Cycle(0), read(0, 0, 1, tag));
    }
    assert_eq!(channel.room(), 0);
    channel.run(Cycle(100));
    assert_eq!((channel.room(), channel.next_event()), (0, Some(Cycle(100))));
    channel.run(Cycle(101));
    assert_eq!(channel.room(), 16, "the controller's queue is full");
    assert_eq!(finish(&mut channel).len(), 116);
    assert_eq!((channel.room(), channel.next_event()), (116, None));
}

/// A sequence of numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// Random transfers to a few rows of a few banks, with pauses.
fn random_transfers(seed: u64, count: u32) -> Vec<(u64, Transfer)> {
    let mut random = Random(seed);
    let (banks, rows, writes) = (1 + random.below(16), 1 + random.below(4), random.below(10));
    let pause = [1, 3, 20, 200][random.below(4) as usize];
    let mut cycle = 0;
    let mut transfers = Vec::new();
    for tag in 0..count {
        cycle += random.below(pause);
        let mut transfer =
            read(random.below(banks) as u16, random.below(rows), 1 + random.below(3) as u8, tag);
        if random.below(10) < writes {
            transfer.direction = Direction::Write;
        }
        transfers.push((cycle, transfer));
    }
    transfers
}

/// Runs transfers in windows of a length, each sent in its cycle or when there is room.
fn play(channel: &mut Channel, transfers: &[(u64, Transfer)], window: u64) -> Vec<(u64, u32)> {
    let mut done = Vec::new();
    let mut left = transfers.iter().copied().peekable();
    let mut now = 0;
    let mut cycle = 0;
    while left.peek().is_some() || channel.next_event().is_some() || channel.next_done().is_some() {
        // Sends are the L2's: they come in the cycles that they come in, whatever the windows are.
        let send = left.peek().map_or(u64::MAX, |&(at, _)| at.max(now));
        let until = send.min(cycle + window);
        channel.run(Cycle(until));
        if let Some(at) = channel.next_done().filter(|&at| at <= Cycle(until)) {
            done.push((at.0, channel.take_done().unwrap()));
            continue;
        }
        if until == send {
            now = send;
            if channel.room() > 0 {
                channel.send(Cycle(send), left.next().unwrap().1);
            } else {
                now = send + 1;
            }
        }
        if until == cycle + window {
            cycle += window;
        }
    }
    done
}

/// Whether a command can follow others: each rule of the specification, for each pair of commands.
fn is_allowed(earlier: &[Given], now: &Given, spec: &DramSpec) -> bool {
    let data = (spec.burst / spec.transfers_per_clock) as u64;
    let [cl, wl] = [spec.cl, spec.wl].map(u64::from);
    let data_of = |given: &Given| given.clock + if given.command == Read { cl } else { wl };
    // No rule reaches further than 200 clocks.
    let near = earlier.iter().rev().take_while(|earlier| earlier.clock + 200 > now.clock);
    near.into_iter().all(|earlier| {
        let same_bank = earlier.bank == now.bank;
        let same_group = earlier.bank as u32 % spec.bank_groups == now.bank as u32 % spec.bank_groups;
        let mut least = 1;
        match (earlier.command, now.command) {
            (Activate, Activate) => least = if same_bank { spec.rc } else { spec.rrd },
            (Activate, Read | Write) if same_bank => least = spec.rcd,
            (Activate, Precharge) if same_bank => least = spec.ras,
            (Precharge, Activate) if same_bank => least = spec.rp,
            (Read, Precharge) if same_bank => least = spec.rtpl,
            (Write, Precharge) if same_bank => least = spec.wl + data as u32 + spec.wr,
            (Write, Read) => least = spec.wl + data as u32 + spec.cdlr,
            (Read | Write, Read | Write) => {
                least = if same_group { spec.ccdl } else { spec.ccd };
                let turn = if earlier.command == now.command { 0 } else { 2 };
                if data_of(earlier) + data + turn > data_of(now) {
                    return false;
                }
            }
            _ => {}
        }
        earlier.clock + least as u64 <= now.clock
    })
}

/// First ready, first come, clock by clock. Takes the clocks in which transfers arrive.
fn reference(arrivals: &[(u64, Transfer)], spec: &DramSpec) -> Vec<Given> {
    let mut arrivals = arrivals.iter().copied().peekable();
    let mut queue: Vec<Transfer> = Vec::new();
    let mut open = vec![u64::MAX; spec.banks as usize];
    let mut given: Vec<Given> = Vec::new();
    let mut passed = 0;
    for clock in 0.. {
        while queue.len() < spec.queue_requests as usize
            && let Some((_, transfer)) = arrivals.next_if(|&(arrival, _)| arrival <= clock)
        {
            queue.push(transfer);
        }
        if queue.is_empty() && arrivals.peek().is_none() {
            break;
        }
        let overdue = passed >= spec.row_bytes / (spec.bus_bytes * spec.burst);
        let wanted = |index: usize| Given::new(clock, open[queue[index].bank as usize], &queue[index]);
        let moves_data = |index: usize| matches!(wanted(index).command, Read | Write);
        let can = |&index: &usize| {
            let (transfer, now) = (&queue[index], wanted(index));
            let bank = transfer.bank;
            let keeps = queue.iter().any(|other| other.bank == bank && other.row == open[bank as usize]);
            let forced = overdue && index == 0;
            let yields = overdue
                && index > 0
                && (bank == queue[0].bank
                    || moves_data(index) && moves_data(0) && transfer.direction != queue[0].direction);
            !yields && (now.command != Precharge || !keeps || forced) && is_allowed(&given, &now, spec)
        };
        let all = 0..queue.len();
        let column = all.clone().filter(|&index| moves_data(index)).find(can);
        let Some(index) = column.or_else(|| all.clone().find(can)) else { continue };
        let now = wanted(index);
        given.push(now);
        match now.command {
            Activate => open[now.bank as usize] = now.row,
            Precharge => open[now.bank as usize] = u64::MAX,
            Read | Write => {
                passed += (index > 0) as u32;
                queue[index].bursts -= 1;
                if queue[index].bursts == 0 {
                    queue.remove(index);
                    passed = if index == 0 { 0 } else { passed };
                }
            }
        }
    }
    given
}

#[test]
fn random_traffic_goes_as_clock_by_clock() {
    let (_, dram, clock) = gtx480();
    // A small row, so that transfers are overdue now and then.
    let dram = DramSpec { row_bytes: 512, ..dram };
    for seed in 0..100 {
        let mut transfers = random_transfers(seed, 100);
        let mut channel = Channel::new(&dram, &clock);
        let mut tags: Vec<u32> = play(&mut channel, &transfers, 8).iter().map(|&(_, tag)| tag).collect();
        tags.sort();
        let reads = transfers.iter().filter(|(_, transfer)| transfer.direction == Direction::Read);
        assert!(tags.iter().copied().eq(reads.map(|(_, transfer)| transfer.tag)));
        for (cycle, _) in &mut transfers {
            *cycle = channel.clocks.first_clock(Cycle(*cycle + 100));
        }
        assert_eq!(channel.controller.commands, reference(&transfers, &dram), "seed {seed}");
    }
}

#[test]
fn windows_do_not_matter() {
    let (_, dram, clock) = gtx480();
    for seed in 100..120 {
        let transfers = random_transfers(seed, 500);
        let [one, eight, thousand] = [1, 8, 1000].map(|window| {
            let mut channel = Channel::new(&dram, &clock);
            let done = play(&mut channel, &transfers, window);
            (done, channel.controller.commands, channel.controller.stats.clone())
        });
        assert_eq!(one, eight);
        assert_eq!(one, thousand);
    }
}
