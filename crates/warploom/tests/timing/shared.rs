//! Shared memory: latency, bank conflicts, throughput, atomics.

use crate::bench::{Bench, lines, near};

const CHIPS: [&str; 3] = ["gtx480", "gtx1080ti", "h200"];

/// Spreads the lanes over n words of one bank, `32 * 4` bytes apart: an n-way bank conflict. Each word holds its
/// address.
fn ways(n: u32) -> String {
    format!(
        "mov.u32 %r8, words;
    rem.u32 %r9, %r1, {n};
    mad.lo.u32 %r8, %r9, 128, %r8;
    st.shared.u32 [%r8], %r8;"
    )
}

fn chase(n: usize) -> String {
    lines(n, "ld.shared.u32 %r8, [%r8];")
}

#[test]
fn a_load_takes_the_latency_and_three_cycles() {
    // Issue, reading the address, the latency, writing the value: 29 on the gtx480.
    for name in CHIPS {
        let mut bench = Bench::new(name, &[]);
        let latency = bench.chip.shared.latency_cycles;
        assert_eq!(bench.step(&ways(1), 32, 0, chase), f64::from(1 + 1 + latency + 1), "{name}");
    }
    assert_eq!(Bench::new("gtx480", &["shared.latency_cycles=52"]).step(&ways(1), 32, 0, chase), 55.0);
}

#[test]
fn a_bank_gives_one_word_a_cycle() {
    for name in ["gtx480", "gtx1080ti"] {
        let mut bench = Bench::new(name, &[]);
        let latency = f64::from(1 + 1 + bench.chip.shared.latency_cycles + 1);
        for n in 1..=32 {
            assert_eq!(bench.step(&ways(n), 32, 0, chase), latency + f64::from(n - 1), "{name}, {n} ways");
        }
    }
    // Two of 32 lanes in each of 16 banks.
    let mut half = Bench::new("gtx480", &["shared.banks=16"]);
    let rows = "shl.b32 %r9, %r1, 2; mov.u32 %r8, words; add.u32 %r8, %r8, %r9; st.shared.u32 [%r8], %r8;";
    assert_eq!(half.step(rows, 32, 0, chase), 30.0);
}

#[test]
fn lanes_with_a_stride_conflict_as_often_as_it_shares_with_the_banks() {
    for (stride, ways) in
        [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (16, 16), (31, 1), (32, 32), (33, 1)]
    {
        let setup = format!(
            "mov.u32 %r8, words;
    mad.lo.u32 %r8, %r1, {}, %r8;
    st.shared.u32 [%r8], %r8;",
            4 * stride
        );
        assert_eq!(Bench::new("gtx480", &[]).step(&setup, 32, 0, chase), 28.0 + f64::from(ways), "{stride}");
    }
}

/// Loads of adjacent words by each lane.
const WIDTHS: [(usize, &str, &str); 3] =
    [(1, "u32", "%r10"), (2, "v2.u32", "{%r10, %r11}"), (4, "v4.u32", "{%r10, %r11, %r12, %r13}")];

#[test]
fn a_wide_load_takes_a_cycle_for_each_of_its_words() {
    // Each pass uses all banks: 32 lanes of 2 words are 64 words. The address of the next load depends on this
    // one through an addition: 29 + 7.
    for (words, ty, values) in WIDTHS {
        let setup = format!("mov.u32 %r8, words; mad.lo.u32 %r8, %r1, {}, %r8;", 4 * words);
        let clear: String = (0..words).map(|w| format!("st.shared.u32 [%r8+{}], 0;\n", 4 * w)).collect();
        let chain = |n| lines(n, &format!("ld.shared.{ty} {values}, [%r8];\nadd.u32 %r8, %r8, %r10;"));
        let measured = Bench::new("gtx480", &[]).step(&(setup + &clear), 32, 0, chain);
        assert_eq!(measured, 29.0 + 7.0 + (words - 1) as f64, "{ty}");
    }
}

#[test]
fn all_banks_are_busy_all_the_time() {
    for name in CHIPS {
        for (words, ty, values) in WIDTHS {
            let mut bench = Bench::one_sm(name, &[]);
            let setup = format!(
                "mov.u32 %r8, words; rem.u32 %r9, %r1, 128; mad.lo.u32 %r8, %r9, {}, %r8;",
                4 * words
            );
            let loads = lines(32, &format!("ld.shared.{ty} {values}, [%r8];"));
            let bytes = 32.0 * (32 * 4 * words) as f64 * bench.rate(&setup, &loads, (2, 768), 0);
            // 32 banks of 4 bytes.
            let limit = f64::from(bench.chip.shared.banks * 4);
            near(&format!("{name}: shared memory, {ty}, bytes a cycle"), bytes, limit, 0.9);
        }
    }
}

#[test]
fn atomics_on_a_word_take_turns() {
    // A load and an addition, plus the chip's cost for every further lane on the same word.
    for name in CHIPS {
        let mut bench = Bench::new(name, &[]);
        let (shared, add) = (bench.chip.shared.clone(), bench.chip.units.int.add[0]);
        for lanes in [1, 2, 7, 32] {
            let setup = format!(
                "mov.u32 %r8, words;
    div.u32 %r9, %r1, {lanes};
    mad.lo.u32 %r8, %r9, 4, %r8;
    st.shared.u32 [%r8], 0;"
            );
            let chain = |n| lines(n, "atom.shared.add.u32 %r9, [%r8], 0;\nadd.u32 %r8, %r8, %r9;");
            let expected = 3 + shared.latency_cycles + 3 + add + (lanes - 1) * shared.atomic_cycles;
            assert_eq!(bench.step(&setup, 32, 0, chain), f64::from(expected), "{name}, {lanes} lanes");
        }
    }
}
