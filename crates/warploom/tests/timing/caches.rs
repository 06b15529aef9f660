//! The L1, the constant cache, the network and the L2.

use warploom::Chip;

use crate::bench::{Bench, lines, near, repeated};

/// Cycles of a packet with so many bytes of data: the network's latency, and one interconnect cycle for each
/// flit after the first.
pub(crate) fn crossing(chip: &Chip, data_bytes: u32) -> u32 {
    let network = &chip.interconnect;
    let flits = (network.header_bytes + data_bytes).div_ceil(network.flit_bytes);
    network.latency_cycles + ((flits - 1) * chip.clock.core_mhz).div_ceil(chip.clock.interconnect_mhz)
}

/// Cycles from a one-lane load that bypasses the L1 and hits in the L2 to an instruction that needs the value:
/// issue and reading the address, the request's crossing, the L2's pipeline and port, the reply's crossing,
/// writing the value. On the gtx480 2 + 8 + 120 + 4 + (8 + 4) + 1 = 147.
pub(crate) fn from_l2(chip: &Chip) -> u32 {
    let bytes = chip.l1.bypass_bytes;
    let port = bytes.div_ceil(chip.l2.port_bytes);
    1 + 1 + crossing(chip, 0) + chip.l2.latency_cycles + port + crossing(chip, bytes) + 1
}

#[test]
fn a_load_from_the_l1_takes_the_hit_latency_and_three_cycles() {
    for (name, set, expected) in [
        ("gtx480", &[][..], 1 + 1 + 35 + 1),
        ("gtx480", &["l1.hit_latency_cycles=70"], 1 + 1 + 70 + 1),
        ("h200", &[], 1 + 1 + 32 + 1),
    ] {
        let mut bench = Bench::new(name, set);
        let ring = bench.ring(8, 128);
        assert_eq!(bench.chase("global", &ring), f64::from(expected), "{name}");
    }
}

#[test]
fn the_l1_holds_its_lines_and_no_more() {
    // 32 sets of 4 ways. Lines 4 kB apart share a set, so 4 of them fit. Of 5 read in rotation, the next is
    // always the one just evicted.
    let mut bench = Bench::new("gtx480", &[]);
    let l2 = f64::from(from_l2(&bench.chip));
    for (count, stride, expected) in [(4, 4096, 38.0), (5, 4096, l2), (16, 128, 38.0)] {
        let ring = bench.ring(count, stride);
        assert_eq!(bench.chase("global", &ring), expected, "{count} lines");
    }
    // With more ways, all of them fit.
    let mut bench = Bench::new("gtx480", &["l1.cache.ways=8"]);
    let ring = bench.ring(5, 4096);
    assert_eq!(bench.chase("global", &ring), 38.0);
}

#[test]
fn the_l1_gives_a_line_a_cycle() {
    let mut bench = Bench::one_sm("gtx480", &[]);
    let data = bench.gpu.zeros::<u32>(1024).unwrap();
    let setup = "and.b32 %r8, %r1, 1023;\nmad.wide.u32 %rd1, %r8, 4, %rd1;";
    let rate = 32.0 * bench.rate(setup, &lines(32, "ld.global.u32 %r9, [%rd1];"), (2, 768), data.address());
    near("gtx480: lines from the L1 a cycle", rate, 1.0, 0.9);
}

#[test]
fn constants_take_their_hit_latency_and_three_cycles() {
    // Plus the addition to the address: 7.
    for (set, expected) in [(&[][..], 3 + 4 + 7), (&["constant.hit_latency_cycles=40"], 3 + 40 + 7)] {
        let chain = |n| lines(n, "ld.const.u64 %rd4, [%rd3];\nadd.u64 %rd3, %rd3, %rd4;");
        let measured = Bench::new("gtx480", set).step("mov.u64 %rd3, zero;", 32, 0, chain);
        assert_eq!(measured, f64::from(expected));
    }
}

/// The h200 with wires of one length, and clocks that are multiples of each other.
pub(crate) const EVEN: &[&str] =
    &["interconnect.span_cycles=0", "clock.interconnect_mhz=3960", "l2.port_cycles=1.0"];

#[test]
fn a_load_takes_longer_the_farther_its_slice_is() {
    // The only CTA is on SM 0, at one end. Slice 0 is there, too, and the last partition is at the other end.
    let wires = ["l2.placement=interleaved", "interconnect.span_cycles=45"];
    let mut bench = Bench::new("h200", &[&EVEN[1..], &wires].concat());
    let partitions = u64::from(bench.chip.l2.partitions);
    let chunk = u64::from(bench.chip.l2.interleave_bytes);
    let times = [0, 2, partitions - 2].map(|partition| {
        let data = bench.gpu.zeros::<u64>((2 * partitions * chunk / 8) as usize).unwrap();
        // The first chunk of partition 0.
        let begin = data.address().next_multiple_of(partitions * chunk);
        let address = begin + partition * chunk;
        data.write(&mut bench.gpu, &vec![address; (2 * partitions * chunk / 8) as usize]).unwrap();
        bench.step("", 1, address, |n| lines(n, "ld.global.cg.u64 %rd1, [%rd1];"))
    });
    assert_eq!(times[1] - times[0], (2 * 45 / 23) as f64, "to the next pair of partitions");
    assert_eq!(times[2] - times[0], 90.0, "to the last one");
}

#[test]
fn a_load_from_the_l2_crosses_the_network_twice() {
    for (name, set, expected) in [("gtx480", &[][..], 147), ("gtx1080ti", &[], 141), ("h200", EVEN, 262)] {
        let mut bench = Bench::new(name, set);
        assert_eq!(from_l2(&bench.chip), expected, "{name}, by hand");
        let ring = bench.ring(8, 4096);
        assert_eq!(bench.chase("global.cg", &ring), f64::from(expected), "{name}");
    }
    for set in [
        "l2.latency_cycles=240",
        "l2.port_bytes=128",
        "l1.bypass_bytes=32",
        "interconnect.latency_cycles=20",
        "interconnect.flit_bytes=128",
        "interconnect.header_bytes=40",
        "clock.interconnect_mhz=1400",
        "clock.interconnect_mhz=350",
    ] {
        let mut bench = Bench::new("gtx480", &[set]);
        let ring = bench.ring(8, 4096);
        let measured = bench.chase("global.cg", &ring);
        let expected = f64::from(from_l2(&bench.chip));
        // A slower network has a clock edge only in every second cycle.
        let late = if set.ends_with("=350") { 2.0 } else { 0.0 };
        assert!((expected..=expected + late).contains(&measured), "{set}: {measured}, not {expected}");
    }
}

#[test]
fn the_l2_gives_what_its_reply_ports_take() {
    // All SMs read the same 256 kB repeatedly, bypassing their L1s. A slice's data port could deliver 32 bytes
    // per cycle, but a line is 136 bytes with its header, 5 flits: 128 bytes in 5 interconnect cycles. 12
    // slices: 307.2 bytes per cycle on the gtx480. On the gtx1080ti, with two interconnect cycles per cycle,
    // the data ports are the limit: 22 times 32.
    for (name, expected) in [("gtx480", 307.2), ("gtx1080ti", 704.0)] {
        let mut bench = Bench::new(name, &[]);
        let Chip { l2, interconnect, clock, sm, .. } = bench.chip.clone();
        let slices = f64::from(l2.partitions * l2.slices_per_partition);
        let flits = f64::from((interconnect.header_bytes + 128).div_ceil(interconnect.flit_bytes));
        let network = slices * 128.0 / flits * f64::from(clock.interconnect_mhz) / f64::from(clock.core_mhz);
        let limit = network.min(slices * f64::from(l2.port_bytes));
        assert_eq!(limit, expected, "{name}, by hand");

        let data = bench.gpu.zeros::<u8>(1 << 18).unwrap();
        let setup = "
    mul.wide.u32 %rd3, %r4, 16;
    and.b64 %rd3, %rd3, 0x3ffff;
    mov.f32 %f4, 0f00000000;";
        let body = "
    add.u64 %rd4, %rd1, %rd3;
    ld.global.cg.v4.f32 {%f0, %f1, %f2, %f3}, [%rd4];
    add.u64 %rd3, %rd3, 8192;
    and.b64 %rd3, %rd3, 0x3ffff;
    add.f32 %f4, %f4, %f0;";
        let (grid, block) = (4 * sm.count as usize, 256);
        bench.run(&repeated(setup, body), (grid, block), data.address(), 32);
        let bytes = 512.0 * bench.rate(setup, body, (grid, block), data.address());
        near(&format!("{name}: L2, bytes a cycle"), bytes, limit, 0.85);
    }
}

#[test]
fn each_further_line_of_a_load_takes_as_long_as_the_chip_says() {
    for (name, line_cycles) in [("gtx480", 1), ("h200", 2)] {
        let mut bench = Bench::new(name, &[]);
        let data = bench.gpu.zeros::<u64>(32 * 16).unwrap();
        let chain = |n| lines(n, "ld.global.u64 %rd3, [%rd1];\nadd.u64 %rd1, %rd1, %rd3;");
        let [one, all] = [0, 128].map(|stride| {
            let setup = format!("mad.wide.u32 %rd1, %r1, {stride}, %rd1;");
            bench.step(&setup, 32, data.address(), chain)
        });
        assert_eq!(all - one, 31.0 * f64::from(line_cycles), "{name}");
    }
}
