//! DRAM: latency by row state, and bandwidth.

use warploom::Chip;

use crate::bench::{Bench, near, repeated};
use crate::caches::{EVEN, from_l2};

/// An L2 of a single line.
const NO_L2: [&str; 2] = ["l2.cache.sets=1", "l2.cache.ways=1"];

/// Clocks from a read's first column command to the end of its data: bursts of one row follow each other at the
/// distance required within a bank group, or by the data bus.
fn read_clocks(chip: &Chip) -> u32 {
    let dram = &chip.dram;
    let bursts = chip.l1.bypass_bytes.div_ceil(dram.bus_bytes * dram.burst);
    let data = dram.burst.div_ceil(dram.transfers_per_clock);
    (bursts - 1) * dram.ccdl.max(dram.ccd).max(data) + dram.cl + data
}

/// Bytes between two rows of a bank: all partitions, banks and columns lie between them.
fn row_stride(chip: &Chip) -> usize {
    (chip.l2.partitions * chip.dram.banks * chip.dram.row_bytes) as usize
}

/// Measures loads whose row is open, or with `rows` another one. Returns the cycles beyond a load from the L2.
fn beyond_l2(name: &str, set: &[&str], rows: bool) -> (Chip, f64) {
    let mut bench = Bench::new(name, &[&NO_L2, set].concat());
    let stride = if rows { row_stride(&bench.chip) } else { 128 };
    let ring = bench.ring(2, stride);
    let measured = bench.chase("global.cg", &ring);
    let l2 = f64::from(from_l2(&bench.chip));
    (bench.chip, measured - l2)
}

#[test]
fn a_load_from_an_open_row() {
    // With equal clocks: the path to the controller, and on the gtx480 3 + 12 + 2 clocks.
    for (name, clock, expected) in [
        ("gtx480", "clock.dram_mhz=700", 100 + 3 + 12 + 2),
        ("gtx1080ti", "clock.dram_mhz=1481", 100 + 12 + 2),
    ] {
        let (chip, beyond) = beyond_l2(name, &[clock], false);
        assert_eq!(chip.dram.latency_cycles + read_clocks(&chip), expected, "{name}, by hand");
        assert_eq!(beyond, f64::from(expected), "{name}");
    }
}

#[test]
fn a_load_from_another_row() {
    // In addition, the old row is closed and the new one opened: 12 + 12.
    for (name, clock) in [("gtx480", "clock.dram_mhz=700"), ("gtx1080ti", "clock.dram_mhz=1481")] {
        let (_, open) = beyond_l2(name, &[clock], false);
        let (chip, other) = beyond_l2(name, &[clock], true);
        assert_eq!(other - open, f64::from(chip.dram.rp + chip.dram.rcd), "{name}");
    }
}

#[test]
fn clocks_are_converted() {
    // The request may wait up to one DRAM clock for its edge, and the data up to one core cycle. On the gtx480
    // 17 clocks are 12.9 cycles and 41 are 31.1.
    for name in ["gtx480", "gtx1080ti", "h200"] {
        for rows in [false, true] {
            let mut set = vec!["l2.placement=interleaved"];
            set.extend(EVEN.iter().filter(|_| name == "h200"));
            let (chip, beyond) = beyond_l2(name, &set, rows);
            let dram = &chip.dram;
            let clock = f64::from(chip.clock.core_mhz) / f64::from(chip.clock.dram_mhz);
            let clocks = read_clocks(&chip) + if rows { dram.rp + dram.rcd } else { 0 };
            let least = f64::from(dram.latency_cycles) + f64::from(clocks) * clock;
            assert!((least..=least + clock + 1.0).contains(&beyond), "{name}: {beyond}, not {least}");
        }
    }
}

#[test]
fn times_come_from_the_chip() {
    let beyond = |set: &[&str], rows| beyond_l2("gtx480", &[&["clock.dram_mhz=700"], set].concat(), rows).1;
    for (set, rows, expected) in [
        (&["dram.latency_cycles=150"][..], false, 150.0 + 17.0),
        (&["dram.cl=22"], false, 100.0 + 27.0),
        (&["dram.ccdl=5"], false, 100.0 + 19.0),
        // A line is one burst.
        (&["dram.bus_bytes=16"], false, 100.0 + 14.0),
        (&["dram.rp=20", "dram.rc=48"], true, 100.0 + 17.0 + 20.0 + 12.0),
        (&["dram.rcd=20"], true, 100.0 + 17.0 + 12.0 + 20.0),
    ] {
        assert_eq!(beyond(set, rows), expected, "{set:?}");
    }
}

/// Each thread sums 16-byte pieces of an array at a fixed stride. One iteration of all threads reads a contiguous part.
const SUM: (&str, &str) = (
    "
    mul.wide.u32 %rd3, %r4, 16;
    add.u64 %rd1, %rd1, %rd3;
    mov.u32 %r8, %nctaid.x;
    mul.lo.u32 %r8, %r8, %r3;
    mul.wide.u32 %rd4, %r8, 16;
    mov.f32 %f4, 0f00000000;",
    "
    ld.global.cg.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];
    add.u64 %rd1, %rd1, %rd4;
    add.f32 %f0, %f0, %f1;
    add.f32 %f2, %f2, %f3;
    add.f32 %f4, %f4, %f0;
    add.f32 %f4, %f4, %f2;",
);

#[test]
fn a_stream_takes_nearly_all_that_the_bus_gives() {
    // gtx480: 6 channels of 8 bytes, 4 transfers per clock at 924 MHz, make 177.4 GB/s or 253.4 bytes per cycle.
    for (name, expected) in [("gtx480", 253.4), ("gtx1080ti", 326.8)] {
        let mut bench = Bench::new(name, &[]);
        let Chip { l2, dram, clock, sm, .. } = bench.chip.clone();
        let channel = f64::from(dram.bus_bytes * dram.transfers_per_clock);
        let limit =
            f64::from(l2.partitions) * channel * f64::from(clock.dram_mhz) / f64::from(clock.core_mhz);
        assert_eq!((limit * 10.0).round() / 10.0, expected, "{name}, by hand");
        assert_eq!(limit, bench.chip.peak_dram_bytes_per_cycle());

        let (grid, block) = (sm.count as usize, 512);
        let turns = (5 << 20) / (grid * block * 16);
        let bytes = turns * grid * block * 16;
        let data = bench.gpu.zeros::<u8>(bytes).unwrap();
        let (_, report) = bench.run(&repeated(SUM.0, SUM.1), (grid, block), data.address(), turns);
        // All of it came from DRAM.
        assert!(report.dram.unwrap()["bytes"] >= bytes as u64);
        near(&format!("{name}: DRAM, bytes a cycle"), bytes as f64 / report.cycles as f64, limit, 0.85);
    }
}
