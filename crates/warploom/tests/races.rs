//! Races that small kernels have, each found with its threads and lines, and the same kernels in order, which have
//! none. Without timing and with, on a SIMT stack and on independent threads.

use warploom::{Chip, Device, Launch, Race, Report, SimModel, SimOptions, args};

const CHIPS: [&str; 2] = ["gtx480", "h200"];

/// A thread: its CTA, and its number there.
type Thread = (u32, u32);

/// A module with a kernel `k(out)`: `%w` is true in thread 0 of CTA 0, `%v` in `second`, `%u` in thread 32 of CTA 0.
/// `out` is in `%o`, and shared memory has a `box` of 64 words.
fn module(second: Thread, body: &str) -> String {
    let key = |(cta, thread): Thread| cta * 1024 + thread;
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 out) {{
            .reg .pred %p<8>; .reg .pred %w; .reg .pred %v; .reg .pred %u;
            .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .b64 %o; .reg .b32 %t;
            .shared .align 16 .b32 box[64];
            ld.param.u64 %o, [out];
            mov.u32 %t, %tid.x;
            mov.u32 %r0, %ctaid.x;
            mad.lo.u32 %r0, %r0, 1024, %t;
            setp.eq.u32 %w, %r0, 0;
            setp.eq.u32 %u, %r0, 32;
            setp.eq.u32 %v, %r0, {};
            {body}
            ret;
        }}\n",
        key(second)
    )
}

fn device(chip: &str, model: SimModel) -> Device {
    let options = SimOptions { check_races: true, model, ..SimOptions::default() };
    Device::sim_with(Chip::load(chip, &[]).unwrap(), options)
}

/// Runs two CTAs of 64 threads.
fn launch(chip: &str, model: SimModel, text: &str) -> Report {
    let mut gpu = device(chip, model);
    let module = gpu.load_ptx_named("race.ptx", text).unwrap_or_else(|error| panic!("{error}"));
    let out = gpu.zeros_named::<u32>("out", 64).unwrap();
    let launch = Launch::grid(2).block(64).max_cycles(1_000_000);
    gpu.launch(module.kernel("k").unwrap(), launch, args![&out]).unwrap_or_else(|error| panic!("{error}"))
}

/// The same of every model on these chips.
#[track_caller]
fn on_each(chips: &[&str], text: &str, check: impl Fn(&[Race], &str)) {
    for (chip, model) in
        chips.iter().flat_map(|chip| [(chip, SimModel::Functional), (chip, SimModel::Timing)])
    {
        check(&launch(chip, model, text).races, &format!("on {chip}, {model:?}"));
    }
}

/// The kernel has this race alone: between `A`, by thread 0 of CTA 0, and `B`, by `second`. They are the kinds of
/// access at the lines that are marked so.
#[track_caller]
fn races_on(chips: &[&str], second: Thread, body: &str, place: (&str, u64, u32), kinds: [&str; 2]) {
    let text = module(second, body);
    let line = |mark: &str| {
        let at = text.lines().position(|line| line.contains(mark)).expect("a marked line");
        format!("race.ptx:{}", at + 1)
    };
    let access = |kind: &str, (cta, thread): Thread, mark: &str| {
        (line(mark), kind.to_string(), [cta, 0, 0], [thread, 0, 0])
    };
    let expected = [access(kinds[0], (0, 0), "// A"), access(kinds[1], second, "// B")];
    on_each(chips, &text, |races, machine| {
        let [race] = races else { panic!("{machine}: {races:#?}") };
        let found = (race.memory.as_str(), race.offset, race.bytes);
        assert_eq!(found, place, "{machine}: {}", race.message);
        let mut accesses = race
            .accesses
            .clone()
            .map(|access| (access.line, access.kind.to_string(), access.cta, access.thread));
        if accesses[0].0 != expected[0].0 {
            accesses.reverse();
        }
        assert_eq!(accesses, expected, "{machine}: {}", race.message);
    });
}

#[track_caller]
fn races(second: Thread, body: &str, place: (&str, u64, u32), kinds: [&str; 2]) {
    races_on(&CHIPS, second, body, place, kinds);
}

#[track_caller]
fn silent_on(chips: &[&str], second: Thread, body: &str) {
    on_each(chips, &module(second, body), |races, machine| {
        assert!(races.is_empty(), "{machine}: {}", races[0].message);
    });
}

#[track_caller]
fn silent(second: Thread, body: &str) {
    silent_on(&CHIPS, second, body);
}

/// Another warp of CTA 0, and another CTA.
const NEAR: Thread = (0, 32);
const FAR: Thread = (1, 0);
const BOX: (&str, u64, u32) = ("shared `box`", 0, 4);
const OUT: (&str, u64, u32) = ("out", 0, 4);

#[test]
fn shared_memory_without_a_barrier() {
    let body = |between: &str| {
        format!("@%w st.shared.u32 [box], 7; // A\n{between}\n@%v ld.shared.u32 %r1, [box]; // B")
    };
    races(NEAR, &body(""), BOX, ["write", "read"]);
    // A fence without a flag orders nothing.
    races(NEAR, &body("membar.gl;"), BOX, ["write", "read"]);
    silent(NEAR, &body("bar.sync 0;"));
    silent(NEAR, &body("bar.red.popc.u32 %r2, 0, %w;"));
    // CTAs have shared memory of their own.
    silent(FAR, &body(""));
}

#[test]
fn a_tile_that_is_overwritten_too_early() {
    let body = |between: &str| {
        format!(
            "@%w st.shared.u32 [box], 1;
            bar.sync 0;
            @%v ld.shared.u32 %r1, [box]; // B
            {between}
            @%w st.shared.u32 [box], 2; // A"
        )
    };
    races(NEAR, &body(""), BOX, ["write", "read"]);
    silent(NEAR, &body("bar.sync 0;"));
}

#[test]
fn global_memory_between_ctas() {
    let body = "@%w st.global.u32 [%o], 7; // A\nbar.sync 0;\n@%v ld.global.u32 %r1, [%o]; // B";
    races(FAR, body, OUT, ["write", "read"]);
    silent(NEAR, body);
    let writes = |value| format!("@%w st.global.u32 [%o], 7; // A\n@%v st.global.u32 [%o], {value}; // B");
    races(FAR, &writes(8), OUT, ["write", "write"]);
    // It does not matter who is last.
    silent(FAR, &writes(7));
}

/// Thread 0 writes data and sets a flag, with instructions before it and to set it. The second one waits for the flag
/// with this load, and reads the data.
fn flag(release: &str, acquire: &str, after: &str) -> String {
    format!(
        "@!%w bra READER;
        st.global.u32 [%o+8], 5; // A
        {release};
        bra.uni DONE;
    READER:
        @!%v bra DONE;
    POLL:
        {acquire} %r1, [%o+4];
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra POLL;
        {after}
        ld.global.u32 %r2, [%o+8]; // B
    DONE:"
    )
}

#[test]
fn flags_without_fences() {
    let data = ("out", 8, 4);
    let (set, wait) = ("st.volatile.global.u32 [%o+4], 1", "ld.volatile.global.u32");
    let fenced = format!("membar.gl;\n{set}");
    silent(FAR, &flag(&fenced, wait, "membar.gl;"));
    races(FAR, &flag(set, wait, "membar.gl;"), data, ["write", "read"]);
    races(FAR, &flag(&fenced, wait, ""), data, ["write", "read"]);
    // A fence behind the flag is too late.
    races(FAR, &flag(&format!("{set};\nmembar.gl"), wait, "membar.gl;"), data, ["write", "read"]);
}

#[test]
fn flags_by_atomics() {
    let data = ("out", 8, 4);
    let (set, wait) = ("red.global.add.u32 [%o+4], 1", "ld.relaxed.gpu.global.u32");
    silent(FAR, &flag(&format!("fence.acq_rel.gpu;\n{set}"), wait, "fence.acq_rel.gpu;"));
    races(FAR, &flag(set, wait, "fence.acq_rel.gpu;"), data, ["write", "read"]);
}

#[test]
fn release_and_acquire() {
    let data = ("out", 8, 4);
    let (set, wait) = ("st.release.gpu.global.u32 [%o+4], 1", "ld.acquire.gpu.global.u32");
    silent(FAR, &flag(set, wait, ""));
    silent(FAR, &flag(set, "ld.relaxed.gpu.global.u32", "fence.acq_rel.gpu;"));
    silent(FAR, &flag("atom.release.gpu.global.exch.b32 %r3, [%o+4], 1", wait, ""));
    races(FAR, &flag("st.relaxed.gpu.global.u32 [%o+4], 1", wait, ""), data, ["write", "read"]);
    races(FAR, &flag(set, "ld.relaxed.gpu.global.u32", ""), data, ["write", "read"]);
}

#[test]
fn scopes_that_are_too_small() {
    let data = ("out", 8, 4);
    let (set, wait) = ("membar.cta;\nst.volatile.global.u32 [%o+4], 1", "ld.volatile.global.u32");
    silent(NEAR, &flag(set, wait, "membar.cta;"));
    races(FAR, &flag(set, wait, "membar.gl;"), data, ["write", "read"]);
    let set = "membar.gl;\nst.volatile.global.u32 [%o+4], 1";
    silent(NEAR, &flag(set, wait, "membar.cta;"));
    races(FAR, &flag(set, wait, "membar.cta;"), data, ["write", "read"]);
    let body =
        "@%w atom.cta.global.add.u32 %r1, [%o], 1; // A\n@%v atom.gpu.global.add.u32 %r1, [%o], 1; // B";
    races(FAR, body, OUT, ["atomic", "atomic"]);
    silent(NEAR, body);
}

/// Two threads add one to a word; each takes a lock, at these addresses.
fn locked(first: &str, second: &str, fence: &str) -> String {
    let section = |pred: &str, lock: &str, mark: &str| {
        format!(
            "@!{pred} bra PAST{mark};
        TRY{mark}:
            atom.global.cas.b32 %r1, [{lock}], 0, 1;
            setp.ne.u32 %p1, %r1, 0;
            @%p1 bra TRY{mark};
            {fence}
            ld.global.u32 %r2, [%o]; // read {mark}
            add.u32 %r2, %r2, 1;
            st.global.u32 [%o], %r2; // {mark}
            {fence}
            atom.global.exch.b32 %r1, [{lock}], 0;
        PAST{mark}:"
        )
    };
    format!("{}\n{}", section("%w", first, "A"), section("%v", second, "B"))
}

#[test]
fn locks() {
    silent(FAR, &locked("%o+4", "%o+4", "membar.gl;"));
    silent(NEAR, &locked("%o+4", "%o+4", "membar.cta;"));
    // Two locks, or fences that do not reach the other CTA: the two stores race, and each with the other's load.
    for body in [locked("%o+4", "%o+8", "membar.gl;"), locked("%o+4", "%o+4", "membar.cta;")] {
        let text = module(FAR, &body);
        on_each(&CHIPS, &text, |races, machine| {
            assert!(!races.is_empty(), "{machine}");
            for race in races {
                let [a, b] = race.accesses.clone().map(|access| (access.cta[0], access.thread));
                assert_eq!((race.memory.as_str(), race.offset), ("out", 0), "{machine}: {}", race.message);
                assert!(a.0 != b.0 && (a.1, b.1) == ([0; 3], [0; 3]), "{machine}: {}", race.message);
                assert!(race.accesses.iter().any(|access| access.kind == "write"), "{}", race.message);
            }
        });
    }
}

#[test]
fn atomics_and_plain_accesses() {
    let (add, near) = ("@%w red.global.add.u32 [%o], 1; // A\n", "\nbar.sync 0;\n");
    races(FAR, &format!("{add}@%v ld.global.u32 %r1, [%o]; // B"), OUT, ["atomic", "read"]);
    races(FAR, &format!("{add}@%v st.global.u32 [%o], 4; // B"), OUT, ["atomic", "write"]);
    races(
        NEAR,
        "@%w atom.shared.add.u32 %r2, [box], 1; // A\n@%v ld.shared.u32 %r1, [box]; // B",
        BOX,
        ["atomic", "read"],
    );
    silent(FAR, &format!("{add}@%v ld.volatile.global.u32 %r1, [%o];"));
    silent(FAR, &format!("{add}@%v red.global.max.u32 [%o], 1;"));
    silent(NEAR, &format!("{add}{near}@%v ld.global.u32 %r1, [%o];"));
}

#[test]
fn volatile_and_plain_accesses() {
    let body = "@%w st.volatile.global.u32 [%o], 1; // A\n@%v ld.global.u32 %r1, [%o]; // B";
    races(FAR, body, OUT, ["volatile write", "read"]);
    silent(FAR, &body.replace("ld.global", "ld.volatile.global"));
}

#[test]
fn bytes_that_overlap_partly() {
    let body = "@%w st.global.u16 [%o+2], 9; // A\n@%v st.global.u32 [%o], 7; // B";
    races(FAR, body, ("out", 2, 2), ["write", "write"]);
    silent(FAR, &body.replace("st.global.u32 [%o]", "st.global.u16 [%o]"));
    let wide = "mov.b64 %d0, 77;\n@%w st.global.u64 [%o+8], %d0; // A\n@%v ld.global.u8 %r1, [%o+13]; // B";
    races(FAR, wide, ("out", 13, 1), ["write", "read"]);
    silent(FAR, &wide.replace("%o+13", "%o+16"));
    let vector =
        "@%w st.shared.v4.u32 [box+16], {%t, %t, %t, %t}; // A\n@%v ld.shared.u32 %r1, [box+28]; // B";
    races(NEAR, vector, ("shared `box`", 28, 4), ["write", "read"]);
}

#[test]
fn lanes_of_one_store() {
    let body = |value: &str| format!("setp.lt.u32 %p1, %r0, 2;\n@%p1 st.global.u32 [%o], {value}; // A // B");
    // Thread 1 is a lane of the same warp.
    races((0, 1), &body("%t"), OUT, ["write", "write"]);
    silent((0, 1), &body("5"));
}

/// Lanes of one warp are in order where they run in lockstep, and threads of their own elsewhere.
#[test]
fn lanes_of_one_warp() {
    let body = |between: &str| {
        format!("@%w st.shared.u32 [box], 7; // A\n{between}\n@%v ld.shared.u32 %r1, [box]; // B")
    };
    let lane: Thread = (0, 3);
    silent_on(&["gtx480"], lane, &body(""));
    races_on(&["h200"], lane, &body(""), BOX, ["write", "read"]);
    for meeting in ["bar.warp.sync -1;", "shfl.sync.idx.b32 %r2, %r3, 0, 31, -1;", "bar.sync 0;"] {
        silent_on(&["h200"], lane, &body(meeting));
    }
    // Lanes 0 and 1 meet without lane 3.
    let pair = "setp.lt.u32 %p1, %t, 2;\n@%p1 bar.warp.sync 3;";
    races_on(&["h200"], lane, &body(pair), BOX, ["write", "read"]);
    silent_on(&["h200"], (0, 1), &body(pair));
}

#[test]
fn barriers_with_names() {
    // The producer arrives and goes on, the consumer waits.
    let body = |before: &str, after: &str| {
        format!(
            "setp.ge.u32 %p1, %t, 32;
            @%p1 bra CONSUMER;
            {before}
            bar.arrive 1, 64;
            {after}
            bra.uni DONE;
        CONSUMER:
            bar.sync 1, 64;
            @%v ld.shared.u32 %r1, [box]; // B
        DONE:"
        )
    };
    let store = "@%w st.shared.u32 [box], 7; // A";
    silent(NEAR, &body(store, ""));
    races(NEAR, &body("", store), BOX, ["write", "read"]);
}

/// Thread 32 writes for its CTA; thread 0 publishes. Without a barrier between the two, only thread 0 has published its
/// work.
#[test]
fn work_of_others_that_is_published_too_early() {
    let body = |between: &str| {
        format!(
            "@%u st.global.u32 [%o+8], 5;
            {between}
            @!%w bra READER;
            membar.gl;
            st.volatile.global.u32 [%o+4], 1;
            bra.uni DONE;
        READER:
            @!%v bra DONE;
        POLL:
            ld.volatile.global.u32 %r1, [%o+4];
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra POLL;
            membar.gl;
            ld.global.u32 %r2, [%o+8];
        DONE:"
        )
    };
    silent(FAR, &body("bar.sync 0;"));
    // All fence, then meet: thread 0's fence before the barrier is enough for its store after it.
    silent(FAR, &body("membar.gl;\nbar.sync 0;"));
    on_each(&CHIPS, &module(FAR, &body("")), |races, machine| {
        let [race] = races else { panic!("{machine}: {races:#?}") };
        let mut threads = race.accesses.clone().map(|access| (access.cta[0], access.thread[0], access.kind));
        threads.sort();
        assert_eq!(threads, [(0, 32, "write"), (1, 0, "read")], "{machine}: {}", race.message);
    });
}

#[test]
fn copies_that_nobody_waits_for() {
    let body = |between: &str| {
        format!(
            "mov.u32 %r1, box;
            @%w cp.async.ca.shared.global [%r1], [%o], 4; // A
            cp.async.wait_all;
            {between}
            @%v ld.shared.u32 %r2, [box]; // B"
        )
    };
    races(NEAR, &body(""), BOX, ["write", "read"]);
    silent(NEAR, &body("bar.sync 0;"));
}

#[test]
fn mbarriers() {
    // Thread 32 waits for thread 0's arrival.
    let body = |between: &str| {
        format!(
            "@%w mbarrier.init.shared.b64 [box+8], 1; // A
            {between}
            @!%w bra WAITER;
            st.shared.u32 [box], 3;
            mbarrier.arrive.shared.b64 %d1, [box+8];
            bra.uni DONE;
        WAITER:
            @!%v bra DONE;
        POLL:
            mbarrier.test_wait.parity.shared.b64 %p1, [box+8], 0;
            @!%p1 bra POLL;
            ld.shared.u32 %r2, [box];
        DONE:"
        )
    };
    silent(NEAR, &body("bar.sync 0;"));
    let unordered = "@%w mbarrier.init.shared.b64 [box+8], 1; // A
        @%v ld.volatile.shared.u32 %r2, [box+8]; // B";
    races(NEAR, unordered, ("shared `box`", 8, 4), ["write", "volatile read"]);
}

/// Warps that have ended count as arrived.
#[test]
fn threads_that_have_ended() {
    let body = "setp.ge.u32 %p1, %t, 32;
        @%p1 st.shared.u32 [box], 7;
        @%p1 exit;
        bar.sync 0;
        @%w ld.shared.u32 %r1, [box];";
    silent(NEAR, body);
}

/// The source's line is named, with the lines through which it was inlined.
#[test]
fn the_message() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64
.file 1 \"count.cu\"
.file 2 \"cuda/include/atomic.hpp\"
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    or.b32 %r1, %r1, %r0;
    setp.ne.u32 %p, %r1, 0;
    @%p bra OTHER;
    .loc 1 7 5
    st.global.u32 [%d0+12], 1;
    ret;
OTHER:
    mov.u32 %r1, %tid.x;
    sub.u32 %r2, 1, %r0;
    or.b32 %r1, %r1, %r2;
    setp.ne.u32 %p, %r1, 0;
    @%p ret;
    .loc 1 9 5
    .loc 2 33 1, function_name $L__info_string0, inlined_at 1 9 5
    ld.global.u32 %r0, [%d0+12];
    ret;
}\n";
    let races = launch("gtx480", SimModel::Functional, text).races;
    let [race] = &races[..] else { panic!("{races:#?}") };
    let expected = "race on 4 bytes of out at byte 12: write by thread (0,0,0) of CTA (0,0,0)
      at race.ptx:15: st.global.u32 [%d0+12], 1   (count.cu:7)
    and read by thread (0,0,0) of CTA (1,0,0)
      at race.ptx:25: ld.global.u32 %r0, [%d0+12]   \
        (count.cu:9; inlined: cuda/include/atomic.hpp:33 < count.cu:9)";
    assert_eq!((race.message.as_str(), race.count), (expected, 1));
    assert_eq!(race.accesses.clone().map(|access| access.line), ["count.cu:7", "count.cu:9"]);
}

/// Launches are ordered, and what they find is their own.
#[test]
fn each_launch_begins_anew() {
    let text = module(FAR, "@%v st.global.u32 [%o], 1;\n@%w st.global.u32 [%o+4], 1;");
    for (chip, model) in [("gtx480", SimModel::Functional), ("h200", SimModel::Timing)] {
        let mut gpu = device(chip, model);
        let module = gpu.load_ptx(&text).unwrap();
        let out = gpu.zeros::<u32>(64).unwrap();
        for _ in 0..2 {
            let report = gpu.launch(module.kernel("k").unwrap(), Launch::grid(2).block(64), args![&out]);
            assert_eq!(report.unwrap().races, []);
        }
    }
}
