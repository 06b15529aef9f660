//! Host time of the timed machine's hot units: `cargo bench -p warploom-sim --bench units`.

use std::hint::black_box;
use std::time::Instant;

use warploom_sim::Chip;
use warploom_sim::internals::{
    Asks, Crossbar, Cycle, LineAddress, Node, Partition, RegSet, Request, RequestKind, Scoreboard, Ticket,
    Wheel,
};
use warploom_sim::sched::{self, Issue, LaneMask, SlotSet, WarpSlot};

/// Prints nanoseconds per operation, the best of several rounds of `count` operations.
fn time(name: &str, count: u64, mut round: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..9 {
        let start = Instant::now();
        round();
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    println!("{name:<44} {best:>8.1} ns");
}

/// A reproducible sequence (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn main() {
    let chip = Chip::load("gtx480", &[]).expect("a built-in chip");
    events();
    scoreboard();
    policies(&chip);
    network(&chip);
    for (name, kind, lines) in [
        ("L2 slice, hits, a request", RequestKind::Read, 64),
        ("L2 slice and DRAM, streaming reads, a request", RequestKind::Read, u64::MAX),
        ("L2 slice and DRAM, streaming writes, a request", RequestKind::Write, u64::MAX),
    ] {
        partition(&chip, name, kind, lines);
    }
}

fn events() {
    let mut random = Random(1);
    let ahead: Vec<u64> = (0..1024).map(|_| 1 + random.next() % 64).collect();
    time("timing wheel, an event in and out", 100_000, || {
        let mut wheel = Wheel::new();
        (0..64).for_each(|event: u32| wheel.push(Cycle(u64::from(event % 8)), event));
        let mut done = 0;
        while done < 100_000 {
            let now = wheel.next_cycle();
            let mut due = wheel.take_at(now);
            while let Some(event) = wheel.pop(&mut due) {
                wheel.push(now + ahead[done % 1024], event);
                done += 1;
            }
        }
    });
}

fn scoreboard() {
    let mut writes = RegSet::default();
    writes.insert_register(70);
    let mut reads = RegSet::default();
    [3, 65, 130].into_iter().for_each(|row| reads.insert_register(row));
    let mut board = Scoreboard::default();
    time("scoreboard, check, reserve and release", 100_000, || {
        for _ in 0..100_000 {
            black_box(board.waits(black_box(&reads)));
            board.reserve(black_box(&writes), false);
            board.release(black_box(&writes));
        }
    });
}

fn policies(chip: &Chip) {
    let mut random = Random(7);
    let ready: Vec<SlotSet> =
        (0..1024).map(|_| SlotSet((random.next() & random.next() & ((1 << 24) - 1)).max(1))).collect();
    for (name, _, make) in sched::POLICIES {
        let mut policy = make(chip);
        (0..24).for_each(|slot| policy.started(Cycle(0), WarpSlot(slot), u64::from(slot)));
        let mut now = Cycle(0);
        time(&format!("{name}, a pick among 24 warps and its issue"), 100_000, || {
            for turn in 0..100_000 {
                now += 1;
                let slot = policy.pick(now, ready[turn % 1024]).expect("it picks one");
                let pc = warploom_isa::Pc(turn as u32 % 64);
                policy.issued(
                    now,
                    &Issue { slot, pc, lanes: LaneMask::first_lanes(32), branch: None, is_sib: false },
                );
            }
        });
    }
}

fn network(chip: &Chip) {
    let window = u64::from(chip.interconnect.latency_cycles);
    for (name, packets, bytes) in [("requests", 8, 0), ("lines", 1, 128)] {
        let mut random = Random(3);
        let mut crossbar = Crossbar::<u32>::new(15, 12, &chip.interconnect, &chip.clock);
        let mut now = Cycle(0);
        let mut moved = 0u64;
        let windows = 2000;
        time(&format!("crossbar 15 to 12, {name}, a packet"), windows * 15 * packets, || {
            for _ in 0..windows {
                for source in 0..15 {
                    let room = u64::from(crossbar.room(source)).min(packets);
                    for packet in 0..room {
                        let sink = random.next() as usize % 12;
                        crossbar.inject(source, now + packet % window, sink, bytes, 0);
                    }
                }
                now += window;
                crossbar.advance(now, |_| u32::MAX, |_, _, _| moved += 1);
            }
        });
        black_box(moved);
    }
}

fn partition(chip: &Chip, name: &str, kind: RequestKind, lines: u64) {
    let mut partition = Partition::new(&chip.l2, &chip.atomic, &chip.dram, &chip.clock);
    let (mut now, mut line) = (Cycle(0), 0u64);
    let count = 20_000;
    time(name, count, || {
        let mut served = 0;
        while served < count {
            partition.set_reply_rooms(now, |_| 16);
            for slice in 0..chip.l2.slices_per_partition {
                for _ in 0..partition.room(slice).min(4) {
                    // A line of this partition and slice: chunks of 256 bytes alternate over 6 partitions, then 2
                    // slices.
                    let chunk = (line % lines / 2) * 12 + u64::from(slice) * 6;
                    let request = Request {
                        line: LineAddress(chunk * 256 + line % 2 * 128),
                        port: slice as u16,
                        sectors: 0xf,
                        whole: 0xf,
                        kind,
                        from: Node::Sm(0),
                        ticket: Ticket(0),
                        asks: Asks::Nothing,
                        missed: false,
                        far: false,
                    };
                    partition.accept(slice, now, &request);
                    line += 1;
                }
            }
            now += 8;
            partition.run(now);
            served += partition.served.drain(..).count() as u64;
        }
    });
}
