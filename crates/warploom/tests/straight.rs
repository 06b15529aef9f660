//! The functional model executes most instructions in straight runs, and independent CTAs one by one, unless somebody
//! wants to know of each instruction: with a search for races it does not. Both ways must do the same, in random
//! kernels and with bad addresses.

use std::fmt::Write;

use warploom::{Chip, Device, Launch, SimModel, SimOptions, args};

/// Random numbers that are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn word(&mut self) -> String {
        format!("%r{}", 2 + self.below(8))
    }

    fn wide(&mut self) -> String {
        format!("%rd{}", 4 + self.below(4))
    }

    /// A register, or an immediate.
    fn source(&mut self) -> String {
        match self.below(4) {
            0 => (self.below(1 << 20) as i64 - (1 << 19)).to_string(),
            _ => self.word(),
        }
    }
}

const WORDS: [&str; 22] = [
    "add.u32",
    "sub.s32",
    "mul.lo.s32",
    "mul.hi.u32",
    "min.u32",
    "min.s32",
    "max.u32",
    "max.s32",
    "and.b32",
    "or.b32",
    "xor.b32",
    "shl.b32",
    "shr.u32",
    "shr.s32",
    "add.f32",
    "sub.f32",
    "mul.f32",
    "add.ftz.f32",
    "mul.ftz.f32",
    "min.f32",
    "max.f32",
    "div.s32",
];

const WIDES: [&str; 9] =
    ["add.u64", "sub.u64", "mul.lo.u64", "and.b64", "or.b64", "shl.b64", "shr.u64", "add.f64", "mul.f64"];

const COMPARISONS: [&str; 12] = [
    "eq.u32", "ne.s32", "lt.s32", "le.u32", "gt.s32", "ge.u32", "lt.f32", "neu.f32", "lt.u64", "gt.s64",
    "eq.b64", "ltu.f32",
];

/// Where lanes of a kernel load and store: `%r10` becomes a number of a word below 256.
const PATTERNS: [&str; 6] = [
    "mov.u32 %r10, %r1;",
    "mov.u32 %r10, 7;",
    "shr.u32 %r10, %r1, 3;",
    "xor.b32 %r10, %r1, 5;",
    "and.b32 %r10, %r2, 255;",
    "shl.b32 %r10, %r1, 1;",
];

/// One or more instructions, with words of global memory from `%rd1` on, and of shared memory from `%rd2` on.
fn step(random: &mut Random, number: usize) -> String {
    let (d, a, b, c) = (random.word(), random.word(), random.source(), random.word());
    let (dd, aa, bb) = (random.wide(), random.wide(), random.wide());
    let guard = ["", "", "@%p1 ", "@!%p2 "][random.below(4) as usize];
    let pattern = PATTERNS[random.below(6) as usize];
    let (space, base) = [("global", "%rd1"), ("shared", "%rd2"), ("local", "%rd9")][random.below(3) as usize];
    let mut at = |size: u64| {
        let offset = [0, 16, 64][random.below(3) as usize];
        let mask = 256 / size - 1;
        format!(
            "{pattern}\nand.b32 %r10, %r10, {mask};\nmul.wide.u32 %rd3, %r10, {};\nadd.u64 %rd3, {base}, %rd3;\n",
            4 * size
        ) + &format!("{guard}XX [%rd3+{offset}]")
    };
    match number % 16 {
        0..4 => {
            let op = WORDS[random.below(22) as usize];
            // Sources of float operations, and counts of shifts, are registers.
            let last = if op.ends_with("f32") || op.starts_with("sh") { c } else { b };
            format!("{guard}{op} {d}, {a}, {last};")
        }
        4 => {
            let op = WIDES[random.below(9) as usize];
            format!("{guard}{op} {dd}, {aa}, {};", if op.starts_with("sh") { c } else { bb })
        }
        5 => format!("{guard}fma.rn.f32 {d}, {a}, {c}, {d};\n{guard}mad.lo.s32 {c}, {d}, {a}, {b};"),
        6 => format!("{guard}mul.wide.u32 {dd}, {a}, {c};\n{guard}cvt.s64.s32 {bb}, {d};"),
        7 => format!("{guard}rcp.approx.f32 {d}, {a};\n{guard}cvt.u32.u64 {c}, {dd};"),
        8 => {
            let cmp = COMPARISONS[random.below(12) as usize];
            let (x, y) = if cmp.ends_with("64") { (aa, bb) } else { (a, c) };
            format!("setp.{cmp} %p{}, {x}, {y};", 1 + random.below(2))
        }
        9 => format!("selp.b32 {d}, {a}, {c}, %p1;\nselp.b64 {dd}, {aa}, {bb}, %p2;"),
        10 => at(1).replace("XX [%rd3", &format!("ld.{space}.u32 {d}, [%rd3")) + ";",
        11 => {
            let text = at(1);
            let place = &text[text.find('[').expect("an address")..];
            text.replace(&format!("XX {place}"), &format!("st.{space}.u32 {place}, {b};"))
        }
        12 => at(2).replace("XX [%rd3", &format!("ld.{space}.v2.u32 {{{d}, {c}}}, [%rd3")) + ";",
        13 => {
            let text = at(4);
            let place = &text[text.find('[').expect("an address")..];
            let values = format!("{{{a}, {c}, {d}, {a}}}");
            text.replace(&format!("XX {place}"), &format!("st.{space}.v4.u32 {place}, {values};"))
        }
        14 => at(2).replace("XX [%rd3", &format!("ld.{space}.u64 {dd}, [%rd3")) + ";",
        _ => format!("@%p1 bra L{number};\nadd.u32 {d}, {d}, {a};\nxor.b32 {c}, {c}, {d};\nL{number}:"),
    }
}

fn kernel(random: &mut Random) -> String {
    let mut body = String::new();
    for register in 2..10 {
        let number = random.below(1 << 31);
        writeln!(body, "mad.lo.u32 %r{register}, %r1, {number}, {number};").unwrap();
    }
    for register in 4..8 {
        writeln!(body, "mul.wide.u32 %rd{register}, %r{register}, %r2;").unwrap();
    }
    writeln!(body, "setp.lt.s32 %p1, %r3, 0;\nsetp.lt.s32 %p2, %r4, %r5;").unwrap();
    for at in 0..40 {
        let kind = random.below(16) as usize;
        writeln!(body, "{}", step(random, 16 * at + kind)).unwrap();
    }
    for register in 2..10 {
        writeln!(body, "st.global.u32 [%rd10+{}], %r{register};", 4 * (register - 2)).unwrap();
    }
    for register in 4..8 {
        writeln!(body, "st.global.u64 [%rd10+{}], %rd{register};", 8 * register).unwrap();
    }
    format!(
        ".version 6.3\n.target sm_70\n.address_size 64
         .visible .entry k(.param .u64 data, .param .u64 out) {{
         .reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .pred %p<4>;
         .shared .align 16 .b8 tile[2048];\n.local .align 16 .b8 own[2048];
         ld.param.u64 %rd1, [data];\ncvta.to.global.u64 %rd1, %rd1;\nld.param.u64 %rd10, [out];
         mov.u32 %r1, %tid.x;\nmov.u64 %rd2, tile;\nmov.u64 %rd9, own;
         mov.u32 %r11, %ctaid.x;\nmad.lo.u32 %r11, %r11, 96, %r1;
         mul.wide.u32 %rd11, %r11, 64;\nadd.u64 %rd10, %rd10, %rd11;
         {body}\nret;\n}}"
    )
}

/// Two CTAs of 80 threads: the last warp is not full. Returns all memory, the instructions, and the error.
fn outcome(chip: &str, text: &str, check_races: bool) -> (Vec<u32>, Vec<u32>, [u64; 2], String) {
    let options = SimOptions { model: SimModel::Functional, check_races, ..SimOptions::default() };
    let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
    let kernel = gpu.load_ptx(text).unwrap_or_else(|e| panic!("{e}\n{text}")).kernel("k").unwrap();
    let data = gpu.buffer(&(0..512u32).map(|i| i.wrapping_mul(2654435761)).collect::<Vec<_>>()).unwrap();
    let out = gpu.zeros::<u32>(16 * 96 * 2).unwrap();
    let (insts, error) = match gpu.launch(&kernel, Launch::grid(2).block(80), args![&data, &out]) {
        Ok(report) => ([report.warp_insts, report.thread_insts], String::new()),
        Err(error) => ([0; 2], error.to_string()),
    };
    (data.read(&gpu).unwrap(), out.read(&gpu).unwrap(), insts, error)
}

#[test]
fn random_kernels_do_the_same_in_straight_runs() {
    for chip in ["gtx480", "h200", "apu"] {
        for seed in 0..40 {
            let text = kernel(&mut Random(seed));
            let (straight, single) = (outcome(chip, &text, false), outcome(chip, &text, true));
            assert_eq!(straight.3, "", "{chip}, seed {seed}\n{text}");
            assert!(straight == single, "{chip}, seed {seed}\n{text}");
        }
    }
}

#[test]
fn bad_addresses_are_the_same_faults() {
    let bad = [
        // Beyond the end, in one lane of a warp; below the start; misaligned; over the end; another space.
        ("setp.eq.u32 %p1, %r1, 37;\n@%p1 add.u64 %rd1, %rd1, 2048;", "ld.global.u32 %r2, [%rd1];"),
        ("", "ld.global.u32 %r2, [%rd1+-4];"),
        ("mul.wide.u32 %rd3, %r1, 3;\nadd.u64 %rd1, %rd1, %rd3;", "st.global.u32 [%rd1], %r1;"),
        ("", "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+2040];"),
        ("mul.wide.u32 %rd3, %r1, 64;\nadd.u64 %rd2, %rd2, %rd3;", "st.shared.u32 [%rd2], %r1;"),
        ("add.u64 %rd2, %rd2, 4294967296;", "ld.shared.u32 %r2, [%rd2];"),
        ("mov.u64 %rd2, -8;", "ld.shared.u32 %r2, [%rd2+8];\nst.shared.u32 [%rd2+4], %r2;"),
        ("add.u64 %rd9, %rd9, 2048;", "st.local.u32 [%rd9], %r1;"),
        ("mov.u64 %rd1, 16;", "ld.u32 %r2, [%rd1];"),
    ];
    for (setup, access) in bad {
        let text = format!(
            ".version 6.3\n.target sm_70\n.address_size 64
             .visible .entry k(.param .u64 data, .param .u64 out) {{
             .reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .pred %p<4>;
             .shared .align 16 .b8 tile[2048];\n.local .align 16 .b8 own[2048];
             ld.param.u64 %rd1, [data];\nmov.u64 %rd2, tile;\nmov.u64 %rd9, own;
             mov.u32 %r1, %tid.x;\nst.local.u32 [%rd9], %r1;\n{setup}\n{access}\nret;\n}}"
        );
        let (straight, single) = (outcome("gtx480", &text, false), outcome("gtx480", &text, true));
        assert!(!straight.3.is_empty(), "{access}");
        assert!(straight == single, "{access}: {} and {}", straight.3, single.3);
    }
}
