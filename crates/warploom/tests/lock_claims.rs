//! What `warploom check` claims about lock loops, against what they do: no loop that is said not to deadlock on a SIMT
//! stack hangs there.

use warploom::isa::WaitEnds;
use warploom::{Chip, Device, Error, Launch, SimOptions, Timing, args};

/// Random numbers that are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A loop that takes a lock, adds one to a counter, and releases the lock: rightly, or wrong in one of many ways.
fn lock_loop(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d);
    let take = match random.below(8) {
        0..5 => "atom.global.cas.b32 %r1, [%rd1], 0, 1;",
        5..7 => "atom.global.exch.b32 %r1, [%rd1], 1;",
        _ => "atom.global.cas.b32 %r1, [%rd1+0], %r20, 1;",
    };
    let freed = if random.one_in(10) { "1" } else { "0" };
    let release = match random.below(6) {
        0 | 1 => format!("atom.global.exch.b32 %r9, [%rd1], {freed};"),
        2 | 3 => format!("st.volatile.global.u32 [%rd1], {};", if freed == "0" { "%r20" } else { "%r21" }),
        4 => format!("atom.global.cas.b32 %r9, [%rd1], 1, {freed};"),
        _ => "atom.global.add.u32 %r9, [%rd1], -1;".to_string(),
    };
    // Of the lanes that took the lock, those whose number is below %r8 release it here, the others later.
    let early = if random.one_in(4) { random.below(6) } else { 8 };
    let section = match random.below(8) {
        0 => "mov.u32 %r5, 0;\nCOUNT:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p5, %r5, 3;\n@%p5 bra COUNT;",
        1 => "bar.sync 0;",
        2 => "setp.eq.u32 %p5, %r2, 3;\n@%p5 bra END;",
        3 => "TWICE:\natom.global.exch.b32 %r5, [%rd1+4], 1;\nsetp.ne.u32 %p5, %r5, 0;\n@%p5 bra TWICE;",
        _ => "",
    };
    let second = if section.starts_with("TWICE") && !random.one_in(3) {
        "st.volatile.global.u32 [%rd1+4], %r20;"
    } else {
        ""
    };
    let count =
        "ld.volatile.global.u32 %r4, [%rd2];\nadd.u32 %r4, %r4, 1;\nst.volatile.global.u32 [%rd2], %r4;";
    let releases = match early {
        8 => release.clone(),
        0 => String::new(),
        early => format!(
            "setp.ge.u32 %p4, %r2, {early};\n{}",
            if random.one_in(2) {
                format!("@%p4 bra LATE;\n{release}\nLATE:")
            } else {
                format!("@!%p4 {release}")
            }
        ),
    };
    let late = match early {
        8 => String::new(),
        early => format!("setp.ge.u32 %p4, %r2, {early};\n@%p4 {release}"),
    };
    let holder = format!("{section}\n{count}\n{second}\n{releases}\nmov.u32 %r3, 1;");
    let (yes, no) = match random.below(8) {
        // A comparison that does not say who has the lock.
        0 => ("setp.eq.u32 %p1, %r1, 1;", "setp.ne.u32 %p1, %r1, 1;"),
        _ => ("setp.eq.u32 %p1, %r1, 0;", "setp.ne.u32 %p1, %r1, 0;"),
    };
    let body = match random.below(6) {
        // if (take) { section; release; done = 1; }
        0 | 1 => format!(
            "AGAIN:\n{take}\n{no}\n@%p1 bra FAILED;\n{holder}\nFAILED:\n{}\n\
             setp.eq.u32 %p2, %r3, 0;\n@%p2 bra AGAIN;\n{}",
            if random.one_in(2) { late.as_str() } else { "" },
            if random.one_in(2) { late.as_str() } else { "" },
        ),
        // The same with the branch the other way round.
        2 => format!(
            "AGAIN:\n{take}\n{yes}\n@%p1 bra TAKEN;\nbra.uni FAILED;\nTAKEN:\n{holder}\nFAILED:\n\
             setp.eq.u32 %p2, %r3, 0;\n@%p2 bra AGAIN;\n{late}"
        ),
        // if (!take) continue; section; release; break;
        3 => format!("AGAIN:\n{take}\n{no}\n@%p1 bra AGAIN;\n{holder}\n{late}"),
        // if (take) { section; release; break; }
        4 => format!("AGAIN:\n{take}\n{yes}\n@%p1 bra TAKEN;\nbra.uni AGAIN;\nTAKEN:\n{holder}\n{late}"),
        // Without a branch around the section.
        _ => format!(
            "AGAIN:\n{take}\n{yes}\n@%p1 ld.volatile.global.u32 %r4, [%rd2];\n@%p1 add.u32 %r4, %r4, 1;\n\
             @%p1 st.volatile.global.u32 [%rd2], %r4;\n@%p1 {release}\n@!%p1 bra AGAIN;"
        ),
    };
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry lock(.param .u64 l, .param .u64 c)\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<24>;\n.reg .b64 %rd<4>;\n\
         ld.param.u64 %rd1, [l];\nld.param.u64 %rd2, [c];\n\
         cvta.to.global.u64 %rd1, %rd1;\ncvta.to.global.u64 %rd2, %rd2;\n\
         mov.u32 %r2, %tid.x;\nmov.u32 %r20, 0;\nmov.u32 %r21, 1;\nmov.u32 %r3, 0;\n{body}\nEND:\nret;\n}}\n"
    )
}

/// Whether every loop of the kernel is said not to deadlock, and whether it ends on a SIMT stack.
fn claimed_and_ended(seed: u64) -> (bool, bool) {
    let text = lock_loop(seed);
    let set = ["sm.count=1", "hang.watch_cycles=1000", "hang.suspect_cycles=60000"].map(String::from);
    let chip = Chip::load("gtx480", &set).unwrap();
    let timing = Timing { threads: 1, ..Timing::default() };
    let mut gpu = Device::sim_with(chip, SimOptions { timing, ..SimOptions::default() });
    let module = gpu.load_ptx_named("lock.ptx", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = module.kernel("lock").unwrap();
    let loops = &kernel.program().unwrap().loops;
    let mut waits = loops.iter().filter(|l| l.spins_on.is_some()).peekable();
    let claimed = waits.peek().is_some() && waits.all(|l| matches!(l.ends, WaitEnds::Released(_)));
    let lock = gpu.zeros_named::<u32>("lock", 2).unwrap();
    let count = gpu.zeros_named::<u32>("count", 1).unwrap();
    let launch = Launch { max_cycles: Some(300_000), ..Launch::grid(1).block(8) };
    let ended = match gpu.launch(&kernel, launch, args![&lock, &count]) {
        Ok(_) => true,
        Err(Error::Hang { .. }) => false,
        Err(error) => panic!("seed {seed}: {error}\n{text}"),
    };
    (claimed, ended)
}

fn compare(seeds: std::ops::Range<u64>) {
    let (mut good, mut bad) = (0, 0);
    for seed in seeds {
        let (claimed, ended) = claimed_and_ended(seed);
        assert!(ended || !claimed, "seed {seed} is said not to deadlock, but does:\n{}", lock_loop(seed));
        good += usize::from(claimed);
        bad += usize::from(!ended);
    }
    assert!(good >= 20 && bad >= 20, "{good} loops claimed to be good, {bad} hang: too few to compare");
}

#[test]
fn no_loop_that_is_said_not_to_deadlock_does() {
    compare(0..300);
}

#[test]
#[ignore = "minutes; the test above in large"]
fn no_loop_of_many_that_is_said_not_to_deadlock_does() {
    compare(300..20_000);
}
