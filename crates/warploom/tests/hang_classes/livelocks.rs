//! Launches that change memory for ever: attempts that are undone. And launches that only look like it.

use warploom::{Bows, Chip, Device, HangKind, HangReason, Launch, SimModel, SimOptions, Timing, args};

use crate::causes::{CHIPS, ONE_OF_32};
use crate::hang_support::{device, hang, kernel, run};

/// Suspected on every chip; the message contains all of `says`.
#[track_caller]
fn undone(body: &str, grid: u32, says: &[&str]) {
    undone_for(40_000, body, grid, says);
}

/// With so much patience.
#[track_caller]
fn undone_for(suspect_cycles: u64, body: &str, grid: u32, says: &[&str]) {
    let patience = format!("hang.suspect_cycles={suspect_cycles}");
    for chip in CHIPS {
        let mut gpu = device(chip, &["sm.count=2", "hang.watch_cycles=2000", &patience]);
        let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 16).unwrap());
        let launch = Launch::grid(grid).block(128).max_cycles(25 * suspect_cycles);
        let hang = hang(run(&mut gpu, &kernel(body), "k", launch, args![&a, &b]));
        assert_eq!(hang.kind, HangKind::Livelock, "on {chip}: {hang}");
        assert!(matches!(hang.reason, HangReason::Undone(_)), "on {chip}: {hang}");
        for part in says {
            assert!(hang.to_string().contains(part), "on {chip}, no \"{part}\" in: {hang}");
        }
    }
}

const SEMAPHORE: &str = "AGAIN:
    atom.SPACE.add.u32 %r2, [%d2], -1;
    setp.gt.s32 %p0, %r2, 0;
    @%p0 bra DONE;
    atom.SPACE.add.u32 %r3, [%d2], 1;
    bra AGAIN;
DONE:";

#[test]
fn a_semaphore_without_permits() {
    let body = format!("{ONE_OF_32}    mov.u64 %d2, %d0;\n{}", SEMAPHORE.replace("SPACE", "global"));
    undone(&body, 2, &["[a+0]", "written at k.ptx:17 (", "and k.ptx:20 (", "attempts-that-are-undone"]);
}

#[test]
fn a_semaphore_in_shared_memory() {
    let body = format!(
        "    .shared .align 8 .b32 s;
    mov.u64 %d2, s;
    st.shared.u32 [%d2], 0;
    bar.sync 0;
{ONE_OF_32}{}",
        SEMAPHORE.replace("SPACE", "shared")
    );
    undone(&body, 1, &["[s+0]"]);
}

/// The first lock is taken and given back for ever, because the second is never free.
#[test]
fn a_lock_given_back_because_another_is_not_free() {
    let body = format!(
        "{ONE_OF_32}    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
AGAIN:
    atom.global.cas.b32 %r2, [%d0], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    atom.global.cas.b32 %r2, [%d0+8], 7, 1;
    setp.eq.u32 %p0, %r2, 7;
    @%p0 bra DONE;
    atom.global.exch.b32 %r3, [%d0], 0;
    bra AGAIN;
DONE:"
    );
    let says =
        ["[a+0]", "has the values 0 and 1 in turn", "k.ptx:19 (", "k.ptx:25 (", "stays 0, read at k.ptx:22"];
    undone(&body, 1, &says);
}

/// Thread 0 sets or takes one lock and ends. The others take another one and give it back, because the first is never
/// free: it is named, too, and who keeps it.
#[test]
fn a_lock_that_is_kept_is_named() {
    let kept = |first: &str| {
        format!(
            "{ONE_OF_32}    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra OTHERS;
FIRST:
    {first}
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra FIRST;
    membar.gl;
    st.volatile.global.u32 [%d1], 1;
    bra DONE;
OTHERS:
    ld.volatile.global.u32 %r2, [%d1];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra OTHERS;
AGAIN:
    atom.global.cas.b32 %r2, [%d0], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    atom.global.cas.b32 %r2, [%d0+8], 0, 1;
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra DONE;
    atom.global.exch.b32 %r3, [%d0], 0;
    bra AGAIN;
DONE:"
        )
    };
    let taken =
        "stays 1, read at k.ptx:35; not given back: lane 0 of warp 0 of CTA (0,0,0) took 1 at k.ptx:21";
    undone(&kept("atom.global.cas.b32 %r2, [%d0+8], 0, 1;"), 1, &["[a+8]", taken]);
    let set = "stays 1, read at k.ptx:35; last written at k.ptx:21 by lane 0 of warp 0 of CTA (0,0,0), which has ended";
    undone(&kept("atom.global.exch.b32 %r2, [%d0+8], 1; mov.u32 %r2, 0;"), 1, &["[a+8]", set]);
}

/// Between two attempts there is more time than it takes for a search for repetition to begin. Each also writes another
/// word.
#[test]
fn attempts_that_are_far_apart() {
    let body = format!(
        "{ONE_OF_32}AGAIN:
    atom.global.add.u32 %r2, [%d0], -1;
    setp.gt.s32 %p0, %r2, 0;
    @%p0 bra DONE;
    atom.global.add.u32 %r3, [%d0], 1;
    st.volatile.global.u32 [%d1], 7;
    mov.u32 %r5, 0;
PAUSE:
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, 100;
    @%p0 bra PAUSE;
    bra AGAIN;
DONE:"
    );
    let set = ["sm.count=1", "hang.watch_cycles=300", "hang.suspect_cycles=600000"];
    for chip in CHIPS {
        for bows in [Bows::default(), Bows::on()] {
            let timing = Timing { bows, ..Timing::default() };
            let chip = Chip::load(chip, &set.map(String::from)).unwrap();
            let mut gpu = Device::sim_with(chip, SimOptions { timing, ..SimOptions::default() });
            let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 16).unwrap());
            let launch = Launch::grid(1).block(64).max_cycles(2_000_000);
            let hang = hang(run(&mut gpu, &kernel(&body), "k", launch, args![&a, &b]));
            assert!(matches!(hang.reason, HangReason::Undone(_)), "{hang}");
        }
    }
}

/// Each attempt takes its lock at once, and is undone because another word is not set: no poll ever fails.
#[test]
fn attempts_that_are_undone_without_a_poll_that_fails() {
    let body = "    setp.ne.u32 %p7, %r0, 0;
    @%p7 bra DONE;
AGAIN:
    atom.global.cas.b32 %r2, [%d0], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    ld.volatile.global.u32 %r3, [%d1];
    setp.eq.u32 %p0, %r3, 1;
    @%p0 bra DONE;
    atom.global.exch.b32 %r2, [%d0], 0;
    bra AGAIN;
DONE:";
    let never_written = ["[b+0]", "stays 0, read at k.ptx:18"];
    undone(body, 1, &["[a+0]", "has the values 0 and 1 in turn", "k.ptx:15 (", "k.ptx:21 ("]);
    undone(body, 1, &never_written);
}

/// Every thread tries to take twelve locks, from one of its own on, and gives them back when it fails. The last one is
/// never free. All locks together are rarely as they were, but those of each thread are.
#[test]
fn many_locks_that_are_given_back() {
    let body = "    shr.u32 %r4, %r0, 5;
    and.b32 %r9, %r0, 31;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    mul.lo.u32 %r4, %r4, 3;
AGAIN:
    mov.u32 %r5, 0;
TAKE:
    add.u32 %r6, %r4, %r5;
    rem.u32 %r6, %r6, 12;
    mad.wide.u32 %d3, %r6, 4, %d0;
    atom.global.cas.b32 %r2, [%d3], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra GIVE;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, 12;
    @%p0 bra TAKE;
    atom.global.cas.b32 %r2, [%d1], 1, 2;
    setp.eq.u32 %p0, %r2, 1;
    @%p0 bra DONE;
GIVE:
    setp.eq.u32 %p0, %r5, 0;
    @%p0 bra AGAIN;
    sub.u32 %r5, %r5, 1;
    add.u32 %r6, %r4, %r5;
    rem.u32 %r6, %r6, 12;
    mad.wide.u32 %d3, %r6, 4, %d0;
    atom.global.exch.b32 %r3, [%d3], 0;
    bra GIVE;
DONE:";
    undone_for(200_000, body, 2, &["has the values 0 and 1 in turn", "k.ptx:23 ("]);
}

/// Two threads hand a word to each other, and count in registers how often.
#[test]
fn handing_over_for_long_is_no_livelock() {
    let text = kernel(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    shr.u32 %r4, %r0, 6;
    xor.b32 %r5, %r4, 1;
    mov.u32 %r6, 0;
AGAIN:
    ld.volatile.global.u32 %r2, [%d0];
    setp.ne.u32 %p0, %r2, %r4;
    @%p0 bra AGAIN;
    st.volatile.global.u32 [%d0], %r5;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p0, %r6, 1000;
    @%p0 bra AGAIN;
DONE:",
    );
    for chip in CHIPS {
        let mut gpu = device(chip, &["sm.count=2", "hang.watch_cycles=500", "hang.suspect_cycles=10000"]);
        let (a, b) = (gpu.zeros_named::<u32>("a", 1).unwrap(), gpu.zeros_named::<u32>("b", 1).unwrap());
        run(&mut gpu, &text, "k", Launch::grid(1).block(128), args![&a, &b])
            .unwrap_or_else(|error| panic!("on {chip}: {error}"));
    }
}

/// Few values for each word, but never the same ones together: a binary counter whose bits are words, counted by one
/// thread, or by two that take turns with a lock.
#[test]
fn bits_that_count_are_no_livelock() {
    let count = "    mov.u32 %r3, 0;
CARRY:
    mad.wide.u32 %d5, %r3, 4, %d0;
    ld.volatile.global.u32 %r4, [%d5];
    xor.b32 %r5, %r4, 1;
    st.volatile.global.u32 [%d5], %r5;
    add.u32 %r3, %r3, 1;
    setp.ne.u32 %p0, %r4, 0;
    @%p0 bra CARRY;
    ld.volatile.global.u32 %r6, [%d0+28];";
    let lock = "    atom.global.cas.b32 %r2, [%d1], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;";
    let unlock = "    membar.gl;\n    atom.global.exch.b32 %r2, [%d1], 0;";
    for (lock, unlock, block) in [("", "", 64), (lock, unlock, 128)] {
        let body = format!(
            "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
AGAIN:
{lock}
{count}
{unlock}
    setp.eq.u32 %p0, %r6, 0;
    @%p0 bra AGAIN;
DONE:"
        );
        for chip in CHIPS {
            let mut gpu = device(chip, &["sm.count=2", "hang.watch_cycles=200", "hang.suspect_cycles=10000"]);
            let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 1).unwrap());
            run(&mut gpu, &kernel(&body), "k", Launch::grid(1).block(block), args![&a, &b])
                .unwrap_or_else(|error| panic!("on {chip}: {error}"));
        }
    }
}

/// Counts in words that are bits, with a long pause after each count: so few counts in all the time of a search that
/// each word gets no new value, and what each thread writes alone seems to come back.
#[test]
fn bits_that_count_slowly_are_no_livelock() {
    let carry = "    mov.u32 %r3, 0;
CARRY:
    mad.wide.u32 %d5, %r3, 4, %d0;
    ld.volatile.global.u32 %r4, [%d5];
    xor.b32 %r5, %r4, 1;
    st.volatile.global.u32 [%d5], %r5;
    add.u32 %r3, %r3, 1;
    setp.ne.u32 %p0, %r4, 0;
    @%p0 bra CARRY;"
        .to_string();
    let bits = |each: &dyn Fn(u32) -> String| (0..8).map(|k| each(4 * k)).collect::<String>();
    let read = bits(&|at| {
        let bit = at / 4;
        format!(
            "    ld.volatile.global.u32 %r4, [%d0+{at}];\n    shl.b32 %r4, %r4, {bit};\n    or.b32 %r3, %r3, %r4;\n"
        )
    });
    let bit = |to: &str, k: u32| format!("    shr.u32 {to}, %r3, {k};\n    and.b32 {to}, {to}, 1;\n");
    // All words are cleared, then those that are 1 are set.
    let clear = bits(&|at| format!("    st.volatile.global.u32 [%d0+{at}], 0;\n"));
    let set = bits(&|at| bit("%r4", at / 4) + &format!("    st.volatile.global.u32 [%d0+{at}], %r4;\n"));
    let set_vectors = ["%r10", "%r11", "%r12", "%r13"].iter().zip(0..);
    let vector = |first: u32| {
        let bits: String = set_vectors.clone().map(|(to, k)| bit(to, first + k)).collect();
        format!("{bits}    st.volatile.global.v4.u32 [%d0+{}], {{%r10, %r11, %r12, %r13}};\n", 4 * first)
    };
    let read_and_count = format!("    mov.u32 %r3, 0;\n{read}    add.u32 %r3, %r3, 1;\n");
    let cleared = format!("{read_and_count}{clear}{set}");
    let vectors = format!("{read_and_count}{}{}", vector(0), vector(4));
    for (count, grid) in [(&carry, 1), (&carry, 2), (&cleared, 2), (&vectors, 2)] {
        let body = format!(
            "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
AGAIN:
    atom.global.cas.b32 %r2, [%d1], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    membar.gl;
{count}
    ld.volatile.global.u32 %r6, [%d0+20];
    membar.gl;
    atom.global.exch.b32 %r2, [%d1], 0;
    mov.u32 %r8, 0;
PAUSE:
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p0, %r8, 30;
    @%p0 bra PAUSE;
    setp.eq.u32 %p0, %r6, 0;
    @%p0 bra AGAIN;
DONE:"
        );
        for chip in CHIPS {
            let mut gpu = device(chip, &["sm.count=2", "hang.watch_cycles=300", "hang.suspect_cycles=20000"]);
            let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 1).unwrap());
            let launch = Launch::grid(grid).block(128 / grid).max_cycles(5_000_000);
            run(&mut gpu, &kernel(&body), "k", launch, args![&a, &b])
                .unwrap_or_else(|error| panic!("on {chip}: {error}"));
        }
    }
}

/// A Gray code of which every warp has one bit, so that its own changes cancel out: a warp toggles its bit when it is
/// its turn, and all end when the last code is there.
#[test]
fn a_gray_code_of_many_warps_is_no_livelock() {
    let read: String = (0..6)
        .map(|bit| {
            let at = 4 * bit;
            format!(
                "    ld.volatile.global.u32 %r5, [%d0+{at}];\n    shl.b32 %r5, %r5, {bit};\n    \
                 or.b32 %r4, %r4, %r5;\n"
            )
        })
        .collect();
    let body = format!(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    shr.u32 %r3, %r0, 6;
    mad.wide.u32 %d3, %r3, 4, %d0;
    mov.u32 %r6, 1;
    shl.b32 %r6, %r6, %r3;
AGAIN:
    mov.u32 %r4, 0;
{read}    ld.volatile.global.u32 %r5, [%d1];
    setp.ne.u32 %p0, %r5, 0;
    @%p0 bra DONE;
    mov.u32 %r7, %r4;
    shr.u32 %r5, %r7, 4;
    xor.b32 %r7, %r7, %r5;
    shr.u32 %r5, %r7, 2;
    xor.b32 %r7, %r7, %r5;
    shr.u32 %r5, %r7, 1;
    xor.b32 %r7, %r7, %r5;
    setp.eq.u32 %p0, %r7, 63;
    @%p0 bra LAST;
    add.u32 %r5, %r7, 1;
    not.b32 %r8, %r7;
    and.b32 %r5, %r5, %r8;
    setp.ne.u32 %p0, %r5, %r6;
    @%p0 bra AGAIN;
    and.b32 %r8, %r4, %r6;
    setp.eq.u32 %p1, %r8, 0;
    @%p1 atom.global.add.u32 %r8, [%d3], 1;
    @!%p1 atom.global.add.u32 %r8, [%d3], -1;
    bra AGAIN;
LAST:
    st.volatile.global.u32 [%d1], 1;
DONE:"
    );
    ends_suspected(&body, 6 * 64);
}

/// A shift register with feedback, a bit for each warp, in steps: each bit is set and cleared all the time, no two
/// states are the same until the last.
#[test]
fn a_shift_register_of_many_warps_is_no_livelock() {
    let all: String = (0..8)
        .map(|bit| {
            let at = 4 * bit;
            format!(
                "    ld.volatile.shared.u32 %r6, [%d2+{at}];\n    shl.b32 %r6, %r6, {bit};\n    \
                 or.b32 %r7, %r7, %r6;\n"
            )
        })
        .collect();
    // The state after 250 of 255 steps.
    let step = |state: u32| {
        let feedback = 1 ^ (state >> 7 ^ state >> 5 ^ state >> 4 ^ state >> 3) & 1;
        (state << 1 | feedback) & 255
    };
    let goal = (0..250).fold(0, |state, _| step(state));
    let body = format!(
        "    .shared .align 8 .b32 s[8];
    mov.u64 %d2, s;
    shr.u32 %r4, %r0, 5;
    mad.wide.u32 %d3, %r4, 4, %d2;
    st.shared.u32 [%d3], 0;
    bar.sync 0;
AGAIN:
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra FIRST;
    ld.volatile.shared.u32 %r5, [%d3+-4];
    bra BOTH;
FIRST:
    ld.volatile.shared.u32 %r5, [%d2+28];
    ld.volatile.shared.u32 %r6, [%d2+20];
    xor.b32 %r5, %r5, %r6;
    ld.volatile.shared.u32 %r6, [%d2+16];
    xor.b32 %r5, %r5, %r6;
    ld.volatile.shared.u32 %r6, [%d2+12];
    xor.b32 %r5, %r5, %r6;
    xor.b32 %r5, %r5, 1;
BOTH:
    bar.sync 0;
    st.volatile.shared.u32 [%d3], %r5;
    bar.sync 0;
    mov.u32 %r7, 0;
{all}    bar.sync 0;
    setp.ne.u32 %p0, %r7, {goal};
    @%p0 bra AGAIN;"
    );
    ends_suspected(&body, 8 * 32);
}

/// It ends on every chip, although a search begins soon.
#[track_caller]
fn ends_suspected(body: &str, block: u32) {
    for chip in CHIPS {
        for patience in ["hang.suspect_cycles=4000", "hang.suspect_cycles=20000"] {
            let mut gpu = device(chip, &["sm.count=2", "hang.watch_cycles=200", patience]);
            let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 1).unwrap());
            let launch = Launch::grid(1).block(block).max_cycles(5_000_000);
            run(&mut gpu, &kernel(body), "k", launch, args![&a, &b])
                .unwrap_or_else(|error| panic!("on {chip}, {patience}: {error}"));
        }
    }
}

/// Warps that take turns of one length always find a permit that another has not given back yet.
#[test]
fn turns_of_one_length_are_no_livelock() {
    let body = "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    setp.ne.u32 %p7, %r0, 0;
    @%p7 bra AGAIN;
    mov.u32 %r5, 0;
WORK:
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, 20000;
    @%p0 bra WORK;
    atom.global.add.u32 %r2, [%d0], 2;
    bra DONE;
AGAIN:
    atom.global.add.u32 %r2, [%d0], -2;
    setp.ge.s32 %p0, %r2, 2;
    @%p0 bra GIVE;
    atom.global.add.u32 %r3, [%d0], 2;
    bra AGAIN;
GIVE:
    atom.global.add.u32 %r3, [%d0], 2;
DONE:";
    for chip in CHIPS {
        let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
        let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 1).unwrap());
        run(&mut gpu, &kernel(body), "k", Launch::grid(1).block(256), args![&a, &b])
            .unwrap_or_else(|error| panic!("on {chip}: {error}"));
    }
}

/// Memory changes for ever, and no branch leads out of the loop.
#[test]
fn a_loop_without_a_way_out() {
    for (body, says) in [
        ("AGAIN:\n    red.global.add.u32 [%d0], 1;\n    bra AGAIN;", "go round a loop at k.ptx:13"),
        (
            "AGAIN:\n    st.global.u32 [%d0], %r2;\n    add.u32 %r2, %r2, 1;\n    bra AGAIN;",
            "go round a loop",
        ),
    ] {
        for chip in CHIPS {
            for model in [SimModel::Timing, SimModel::Functional] {
                let set =
                    ["sm.count=2", "hang.watch_cycles=2000", "hang.suspect_cycles=20000"].map(String::from);
                let options = SimOptions { model, ..SimOptions::default() };
                let mut gpu = Device::sim_with(Chip::load(chip, &set).unwrap(), options);
                let (a, b) =
                    (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 1).unwrap());
                let hang = hang(run(&mut gpu, &kernel(body), "k", Launch::grid(1).block(128), args![&a, &b]));
                let expected = (HangKind::Endless, &HangReason::NoWayOut);
                assert_eq!((hang.kind, &hang.reason), expected, "on {chip}: {hang}");
                assert!(hang.to_string().contains(says), "on {chip}: {hang}");
            }
        }
    }
}

/// The functional model proves it: all of memory comes back, too.
#[test]
fn the_functional_model_proves_that_attempts_are_undone() {
    let body = format!("{ONE_OF_32}    mov.u64 %d2, %d0;\n{}", SEMAPHORE.replace("SPACE", "global"));
    for chip in CHIPS {
        let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
        let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 1).unwrap());
        let hang = hang(run(&mut gpu, &kernel(&body), "k", Launch::grid(2).block(128), args![&a, &b]));
        let expected = (HangKind::Livelock, &HangReason::Repeats);
        assert_eq!((hang.kind, &hang.reason), expected, "on {chip}: {hang}");
        assert!(hang.to_string().contains("written at k.ptx:17 ("), "on {chip}: {hang}");
    }
}
