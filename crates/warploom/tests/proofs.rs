//! What is proved to hang does hang: random kernels of locks, flags, fences and barriers. Whenever a launch is ended
//! with a proof, the same launch must still run after a hundred times as many cycles without the search for hangs.

use std::fmt::Write;

use warploom::{Bows, Chip, Device, Error, HangReason, Launch, SimOptions, Timing, args};

/// Random numbers that are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A load that polls: through the L1, past it, or an atomic.
const LOADS: [&str; 4] = [
    "ld.global.u32 %r5, [%rd1+WORD];",
    "ld.global.u32 %r5, [%rd1+WORD];",
    "ld.volatile.global.u32 %r5, [%rd1+WORD];",
    "atom.global.add.u32 %r5, [%rd1+WORD], 0;",
];

const STORES: [&str; 3] = [
    "st.global.u32 [%rd1+WORD], %r4;",
    "st.volatile.global.u32 [%rd1+WORD], %r4;",
    "atom.global.exch.b32 %r5, [%rd1+WORD], %r4;",
];

/// One step of a warp's program. Words 0 to 3 are flags, 4 and 5 locks; flags lie on one line or two.
fn step(random: &mut Random, label: &str, out: &mut String) {
    let word = [0, 4, 128, 132][random.below(4) as usize].to_string();
    let lock = [256, 260][random.below(2) as usize].to_string();
    let value = random.below(3);
    let load = random.pick(&LOADS).replace("WORD", &word);
    let store = random.pick(&STORES).replace("WORD", &word);
    let turns = 1 + random.below(400);
    let text = match random.below(17) {
        0..3 => format!("mov.u32 %r4, {value};\n{store}"),
        3..6 => format!("W{label}:\n{load}\nsetp.lt.u32 %p1, %r5, {value};\n@%p1 bra W{label};"),
        6 => format!(
            "{load}\nW{label}:\nmembar.gl;\n{load}\nsetp.eq.u32 %p1, %r5, {value};\n@%p1 bra W{label};"
        ),
        7 => "membar.gl;".to_string(),
        8 => "bar.sync 0;".to_string(),
        9 => format!(
            "L{label}:\natom.global.cas.b32 %r5, [%rd1+{lock}], 0, 1;\nsetp.ne.u32 %p1, %r5, 0;\n@%p1 bra L{label};"
        ),
        10 => format!("atom.global.exch.b32 %r5, [%rd1+{lock}], 0;"),
        11 => {
            format!(
                "mov.u32 %r6, 0;\nD{label}:\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, {turns};\n@%p1 bra D{label};"
            )
        }
        // Polls that are counted, in vain or to give up, in a register or on the stack.
        13 => format!(
            "C{label}:\nadd.u32 %r7, %r7, 1;\n{load}\nsetp.lt.u32 %p1, %r5, {value};\n@%p1 bra C{label};"
        ),
        14 => format!(
            "mov.u32 %r7, 0;\nG{label}:\nadd.u32 %r7, %r7, 1;\n{load}\nsetp.lt.u32 %p1, %r5, {value};\n\
             setp.lt.and.u32 %p1, %r7, {turns}, %p1;\n@%p1 bra G{label};"
        ),
        15 => format!(
            "st.local.u32 [count], %r2;\nK{label}:\nld.local.u32 %r7, [count];\nadd.u32 %r7, %r7, 1;\n\
             st.local.u32 [count], %r7;\n{load}\nsetp.lt.u32 %p1, %r5, {value};\n@%p1 bra K{label};\n\
             ld.local.u32 %r7, [count];\nsetp.gt.u32 %p1, %r7, {turns};\n@%p1 {store}"
        ),
        // What is counted is written in the end, or chooses where to poll.
        16 => format!(
            "mov.u32 %r7, 0;\nN{label}:\nadd.u32 %r7, %r7, 1;\n{load}\nsetp.ne.u32 %p1, %r7, {turns};\n\
             @%p1 bra O{label};\nmov.u32 %r4, {value};\n{store}\nO{label}:\nsetp.lt.u32 %p1, %r5, {value};\n\
             @%p1 bra N{label};"
        ),
        // Endless stores of one value.
        _ if random.below(8) == 0 => {
            format!(
                "mov.u32 %r4, {value};\nS{label}:\n{store}\nsetp.lt.u32 %p1, %r1, 1000;\n@%p1 bra S{label};"
            )
        }
        _ => load,
    };
    // Sometimes one lane alone.
    if random.below(6) == 0 && !text.contains("bar.sync") {
        let _ = writeln!(out, "setp.ne.u32 %p2, %r2, 0;\n@%p2 bra E{label};\n{text}\nE{label}:");
    } else {
        let _ = writeln!(out, "{text}");
    }
}

/// A start with old copies. Warp 0 polls a copy in its L1 that warp 2, on the other SM, makes stale. Nothing changes
/// until the fence of warp 1 drops the copy. Whoever takes the poll of the stale copy for an endless one proves too
/// much.
fn stale(random: &mut Random, warp: u64, out: &mut String) {
    let pause = |turns: u64, label: &str| {
        format!(
            "mov.u32 %r6, 0;\nX{label}:\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, {turns};\n@%p1 bra X{label};"
        )
    };
    let text = match warp {
        // After that it computes, so that all others come to repeat themselves before it writes.
        0 => format!(
            "Y0:\nld.global.u32 %r5, [%rd1];\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra Y0;\n{}\nmov.u32 %r4, 1;\n\
             st.volatile.global.u32 [%rd1+384], %r4;",
            pause(300 + random.below(300), "0")
        ),
        1 => format!(
            "{}\nY1:\nmembar.gl;\nld.volatile.global.u32 %r5, [%rd1+384];\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra Y1;",
            pause(100 + random.below(300), "1")
        ),
        2 => format!(
            "{}\nmov.u32 %r4, 1;\nst.volatile.global.u32 [%rd1], %r4;",
            pause(40 + random.below(40), "2")
        ),
        _ => return,
    };
    let _ = writeln!(out, "{text}");
}

/// A kernel in which each warp of each CTA has a program of its own.
fn kernel(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678);
    let mut body = String::new();
    for warp in 0..4 {
        let _ = writeln!(body, "P{warp}:\nsetp.ne.u32 %p3, %r3, {warp};\n@%p3 bra P{};", warp + 1);
        if seed.is_multiple_of(4) {
            stale(&mut random, warp, &mut body);
        }
        // Half of those that start with old copies do nothing else: they end, unless something goes wrong.
        let steps = if seed.is_multiple_of(8) { 0 } else { 2 + random.below(5) };
        for at in 0..steps {
            step(&mut random, &format!("{warp}_{at}"), &mut body);
        }
        let _ = writeln!(body, "bra.uni END;");
    }
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 words)\n{{\n\
         .local .align 4 .b32 count;\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<2>;\n\
         ld.param.u64 %rd1, [words];\ncvta.to.global.u64 %rd1, %rd1;\n\
         mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 31;\nshr.u32 %r3, %r1, 5;\n\
         mov.u32 %r5, %ctaid.x;\nshl.b32 %r5, %r5, 1;\nadd.u32 %r3, %r3, %r5;\n{body}P4:\nEND:\nret;\n}}\n"
    )
}

/// Why the launch of a kernel was ended, and after how many cycles; `None` if it ended by itself. The policy depends on
/// the seed.
fn run(chip: &str, seed: u64, set: &[&str], max_cycles: u64) -> Option<(HangReason, u64)> {
    let text = &kernel(seed);
    let set: Vec<String> = ["sm.count=2", "sm.max_ctas=1"].iter().chain(set).map(|s| s.to_string()).collect();
    let policy = ["gto", "lrr", "cawa"][seed as usize / 8 % 3];
    let bows = if seed / 24 % 2 == 1 { Bows::on() } else { Bows::default() };
    let timing = Timing { threads: 1, policy: Some(policy.to_string()), bows, ..Timing::default() };
    let chip = Chip::load(chip, &set).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions { timing, ..SimOptions::default() });
    let module = gpu.load_ptx_named("k.ptx", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let words = gpu.zeros_named::<u32>("words", 160).unwrap();
    let launch = Launch { max_cycles: Some(max_cycles), ..Launch::grid(2).block(64) };
    match gpu.launch(module.kernel("k").unwrap(), launch, args![&words]) {
        Ok(_) => None,
        Err(Error::Hang { hang: Some(hang), report, .. }) => Some((hang.reason, report.cycles)),
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Runs kernels on a chip; returns how many were proved to hang because warps repeat themselves.
fn compare(chip: &str, seeds: std::ops::Range<u64>) -> usize {
    let mut proofs = 0;
    for seed in seeds {
        let watch = ["hang.watch_cycles=300", "hang.suspect_cycles=30000"];
        let Some((HangReason::Repeats, cycles)) = run(chip, seed, &watch, 100_000) else { continue };
        proofs += 1;
        let unwatched = ["hang.watch_cycles=1000000000", "hang.suspect_cycles=0"];
        let after = run(chip, seed, &unwatched, 100 * cycles);
        assert!(
            after.is_some(),
            "seed {seed} on {chip} was proved to hang after {cycles} cycles, but ends:\n{}",
            kernel(seed)
        );
    }
    proofs
}

#[test]
fn what_is_proved_to_hang_does() {
    for (chip, seeds) in
        [("gtx480", 0..120), ("gtx1080ti", 400..424), ("h200", 1000..1024), ("apu", 500..520)]
    {
        let proofs = compare(chip, seeds);
        assert!(proofs > 2, "only {proofs} proofs on {chip}");
    }
}

/// The test above in large, a chip at a time:
/// `cargo test --release -p warploom --test proofs -- --ignored --nocapture`.
fn large(chip: &str, first: u64) {
    let mut proofs = 0;
    for block in 0..16 {
        let start = first + 50 * block;
        proofs += compare(chip, start..start + 50);
        eprintln!("{chip}: {} kernels, {proofs} proved to hang, all of which do", 50 * (block + 1));
    }
    assert!(proofs > 100, "only {proofs} proofs on {chip}");
}

#[test]
#[ignore = "many minutes"]
fn large_gtx480() {
    large("gtx480", 2000);
}

#[test]
#[ignore = "many minutes"]
fn large_gtx570() {
    large("gtx570", 3000);
}

#[test]
#[ignore = "many minutes"]
fn large_gtx1080ti() {
    large("gtx1080ti", 4000);
}

#[test]
#[ignore = "many minutes"]
fn large_h200() {
    large("h200", 5000);
}

#[test]
#[ignore = "many minutes"]
fn large_apu() {
    large("apu", 6000);
}
