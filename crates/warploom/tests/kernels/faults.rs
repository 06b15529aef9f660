//! How faulty kernels end: what the messages say, and that everything before the fault is kept.

use std::fmt::Debug;

use warploom::{
    Device, Error, Fault, FaultKind, Hang, HangReason, Launch, OutsideLoads, Report, SimOptions, args,
};

use crate::inline::{kernel, kernel_after, module};
use crate::support::{MACHINES, Machine, machines_of};

/// The result of `run`, which must be the same on all these machines.
#[track_caller]
fn same_on<T: PartialEq + Debug>(
    machines: impl IntoIterator<Item = Machine>,
    say: impl Fn(Machine) -> T,
) -> T {
    let mut all = machines.into_iter().map(|machine| (machine, say(machine)));
    let (_, first) = all.next().expect("at least one machine");
    all.for_each(|(machine, said)| assert_eq!(said, first, "on {machine}"));
    first
}

/// Runs kernel `k(out, in)` on buffers of 1024 words and returns its error.
fn error_on(machine: Machine, text: &str, launch: Launch) -> Error {
    let mut gpu = machine.small();
    let module = gpu.load_ptx_named("bad.ptx", text).unwrap_or_else(|e| panic!("{e}"));
    let kernel = module.kernel("k").unwrap();
    let (out, input) = (gpu.zeros::<u32>(1024).unwrap(), gpu.zeros::<u32>(1024).unwrap());
    gpu.launch(&kernel, launch, args![&out, &input]).expect_err("the kernel is wrong")
}

/// The fault of one warp, which must be the same on every machine.
#[track_caller]
fn fault(text: &str, launch: Launch) -> Fault {
    same_on(MACHINES, |machine| match error_on(machine, text, launch.clone()) {
        Error::Fault { fault: Some(fault), message, report } => {
            assert_eq!(message, fault.to_string(), "on {machine}");
            assert!(report.warp_insts > 0, "on {machine}");
            *fault
        }
        error => panic!("on {machine}: {error}"),
    })
}

/// The hang of a kernel, which must be the same on these machines except for its cycles. Those are the first machine's.
#[track_caller]
fn hang(machines: impl IntoIterator<Item = Machine> + Clone, text: &str, launch: Launch) -> Hang {
    let on = |machine| match error_on(machine, text, launch.clone()) {
        Error::Hang { hang: Some(hang), .. } => *hang,
        error => panic!("on {machine}: {error}"),
    };
    let first = on(machines.clone().into_iter().next().expect("at least one machine"));
    same_on(machines, |machine| Hang { cycles: first.cycles, ..on(machine) })
}

/// The fault message of a kernel with this body.
#[track_caller]
fn message(body: &str) -> String {
    fault(&kernel(1, body), Launch::grid(2).block(32)).to_string()
}

macro_rules! assert_message {
    ($message:expr) => {
        insta::assert_snapshot!($message)
    };
}

#[test]
fn load_past_the_end() {
    assert_message!(message("ld.global.u32 %r5, [%d1+4100];"));
}

#[test]
fn store_past_the_end_by_one_thread() {
    // 1030 threads write a word each into 1024.
    let text = kernel(1, "st.global.u32 [%d2], %r0;");
    let fault = fault(&text, Launch::grid(103).block(10));
    assert_eq!((fault.cta, fault.thread), ([102, 0, 0], [4, 0, 0]));
    assert_message!(fault.to_string());
}

#[test]
fn a_vector_runs_over_the_end() {
    assert_message!(message(
        "add.u64 %d5, %d0, 4088;\nand.b64 %d5, %d5, -16;\nld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d5+16];"
    ));
}

#[test]
fn before_the_beginning() {
    assert_message!(message("ld.u32 %r5, [%d0+-8];"));
}

#[test]
fn atomic_past_the_end() {
    assert_message!(message("atom.global.add.u64 %d5, [%d0+4096], 1;"));
}

#[test]
fn null_pointer() {
    assert_message!(message("mov.u64 %d5, 0;\nld.global.u32 %r5, [%d5+12];"));
}

#[test]
fn far_away() {
    assert_message!(message("mov.u64 %d5, 0x7fff00000000;\nst.u8 [%d5], 1;"));
}

#[test]
fn misaligned() {
    assert_message!(message("ld.global.u32 %r5, [%d0+2];"));
}

#[test]
fn misaligned_vector() {
    assert_message!(message("setp.eq.u32 %p1, %r2, 7;\n@%p1 st.global.v2.u32 [%d0+4], {%r0, %r0};"));
}

#[test]
fn misaligned_shared() {
    assert_message!(message(".shared .align 8 .b8 box[64];\nld.shared.u64 %d5, [box+4];"));
}

#[test]
fn constants_are_read_only() {
    let body = "mov.u64 %d5, fixed;\ncvta.const.u64 %d5, %d5;\nst.u32 [%d5], 1;";
    let text = kernel_after(".const .align 4 .u32 fixed = 5;", 1, body);
    assert_message!(fault(&text, Launch::grid(1).block(1)).to_string());
}

#[test]
fn constants_end() {
    let text = kernel_after(".const .align 4 .u32 fixed[4];", 1, "ld.const.u32 %r5, [fixed+16];");
    assert_message!(fault(&text, Launch::grid(1).block(1)).to_string());
}

#[test]
fn shared_out_of_bounds() {
    let body = ".shared .align 4 .u32 box[32];
        mov.u32 %r5, box;
        mad.lo.u32 %r5, %r2, 4, %r5;
        st.shared.u32 [%r5+400], %r2;";
    assert_message!(message(body));
}

#[test]
fn shared_out_of_bounds_by_a_generic_address() {
    let body = ".shared .align 4 .u32 box[32];
        mov.u64 %d5, box;
        cvta.shared.u64 %d5, %d5;
        ld.u32 %r5, [%d5+128];";
    assert_message!(message(body));
}

#[test]
fn local_out_of_bounds() {
    let body = ".local .align 4 .b8 mine[64];
        mov.u64 %d5, mine;
        mad.wide.u32 %d5, %r2, 4, %d5;
        st.local.u32 [%d5], %r2;";
    let fault = fault(&kernel(1, body), Launch::grid(1).block(32));
    assert_eq!(fault.thread, [16, 0, 0]);
    assert_message!(fault.to_string());
}

#[test]
fn endless_recursion() {
    let before = "
        .func deeper(.param .b32 n) {
            .local .align 4 .b8 frame[64];
            .reg .b32 %n;
            ld.param.b32 %n, [n];
            st.local.u32 [frame], %n;
            { .param .b32 a; st.param.b32 [a], %n; call deeper, (a); }
            ret;
        }";
    let text = kernel_after(before, 1, "{ .param .b32 a; st.param.b32 [a], %r0; call deeper, (a); }");
    let fault = same_on(MACHINES, |machine| {
        let set = [machine.as_written(), &["memory.local_bytes_per_thread=8192"]].concat();
        let mut gpu = machine.with(&set, SimOptions::default());
        let kernel = gpu.load_ptx(&text).unwrap().kernel("k").unwrap();
        let out = gpu.zeros::<u32>(32).unwrap();
        match gpu.launch(&kernel, Launch::grid(1).block(32), args![&out, &out]) {
            Err(Error::Fault { fault: Some(fault), .. }) => *fault,
            other => panic!("on {machine}: {other:?}"),
        }
    });
    let FaultKind::StackOverflow { needed, limit } = fault.kind else { panic!("{fault}") };
    assert!(needed > u64::from(limit));
    assert_eq!(fault.place.function.as_deref(), Some("deeper"));
    assert_eq!(fault.place.instruction, "call deeper, (a)");
}

#[test]
fn use_after_free() {
    let text = module(
        ".visible .entry k(.param .u64 at) {
            .reg .b64 %d0; .reg .b32 %r0;
            ld.param.u64 %d0, [at];
            ld.global.u32 %r0, [%d0+8];
            ret;
        }",
    );
    assert_message!(same_on(MACHINES, |machine| {
        let mut gpu = machine.small();
        let module = gpu.load_ptx_named("bad.ptx", &text).unwrap();
        let kernel = module.kernel("k").unwrap();
        let kept = gpu.zeros::<u32>(16).unwrap();
        let gone = gpu.zeros_named::<u32>("weights", 16).unwrap();
        let address = gone.address();
        gpu.launch(&kernel, Launch::grid(1), args![&gone]).unwrap();
        drop(gone);
        let error = gpu.launch(&kernel, Launch::grid(1), args![address]).unwrap_err();
        gpu.launch(&kernel, Launch::grid(1), args![&kept]).unwrap();
        error.to_string()
    }));
    // It is not just outside of an allocation.
    let mut gpu = lenient(MACHINES[0]);
    let module = gpu.load_ptx_named("bad.ptx", &text).unwrap();
    let kernel = module.kernel("k").unwrap();
    let (_kept, gone) = (gpu.zeros::<u32>(16).unwrap(), gpu.zeros_named::<u32>("weights", 16).unwrap());
    let address = gone.address();
    drop(gone);
    let error = gpu.launch(&kernel, Launch::grid(1), args![address]).unwrap_err().to_string();
    assert!(error.contains("which was freed"), "{error}");
    gpu.launch(&kernel, Launch::grid(1), args![address + 64]).unwrap();
}

/// A device that lets loads outside of allocations pass.
fn lenient(machine: Machine) -> Device {
    let options = SimOptions { outside_loads: OutsideLoads::Zero, ..SimOptions::default() };
    machine.with(machine.as_written(), options)
}

/// 64 threads load a word and a vector each of 51 words, and one copies 16 bytes, of which 12 exist.
#[test]
fn loads_outside_read_zeros_if_they_may() {
    let body = ".shared .align 16 .u32 box[4];
        ld.global.u32 %r5, [%d3];
        mad.wide.u32 %d4, %r0, 8, %d1;
        ld.v2.u32 {%r6, %r7}, [%d4];
        mov.u32 %r9, box;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 cp.async.ca.shared.global [%r9], [%d1+192], 16;
        cp.async.wait_all;
        bar.sync 0;
        and.b32 %r10, %r2, 3;
        mad.lo.u32 %r9, %r10, 4, %r9;
        ld.shared.u32 %r8, [%r9];
        st.global.v4.u32 [%d2], {%r5, %r6, %r7, %r8};";
    let text = kernel(4, body);
    let value = |at: u32| if at < 51 { at + 1 } else { 0 };
    let expected: Vec<u32> =
        (0..64).flat_map(|t| [value(t), value(2 * t), value(2 * t + 1), value(48 + t % 4)]).collect();
    assert_message!(same_on(MACHINES, |machine| {
        let mut gpu = lenient(machine);
        let module = gpu.load_ptx_named("outside.ptx", &text).unwrap();
        let kernel = module.kernel("k").unwrap();
        let out = gpu.zeros::<u32>(256).unwrap();
        let input = gpu.buffer(&(1..=51).collect::<Vec<u32>>()).unwrap();
        let report = gpu.launch(&kernel, Launch::grid(2).block(32), args![&out, &input]).unwrap();
        assert_eq!(out.read(&gpu).unwrap(), expected, "on {machine}");
        let told = report.outside_loads.iter();
        told.map(|load| format!("{} × {}\n  at {}", load.count, load.message, load.place))
            .collect::<Vec<_>>()
            .join("\n")
    }));
}

#[test]
fn stores_and_loads_far_outside_fault_even_if_loads_may_pass() {
    let bodies = [
        "st.global.u32 [%d1+204], 1;",
        "atom.global.add.u32 %r5, [%d1+204], 1;",
        "ld.global.u32 %r5, [%d1+4194304];",
        "ld.global.u32 %r5, [16];",
        "ld.shared.u32 %r5, [65536];",
    ];
    for body in bodies {
        let text = kernel(1, body);
        let said = same_on(MACHINES, |machine| {
            let mut gpu = lenient(machine);
            let module = gpu.load_ptx_named("bad.ptx", &text).unwrap();
            let kernel = module.kernel("k").unwrap();
            let (out, input) = (gpu.zeros::<u32>(32).unwrap(), gpu.zeros::<u32>(51).unwrap());
            gpu.launch(&kernel, Launch::grid(1).block(32), args![&out, &input]).unwrap_err().to_string()
        });
        assert!(said.contains("kernel `k` faults: "), "{body}: {said}");
    }
}

/// Runs one warp of kernel `k(out, in)` on 37 words each, of which only the first 20 of `in` were written.
/// Returns the report's entry for each instruction.
#[track_caller]
fn unwritten(text: &str) -> String {
    same_on(MACHINES, |machine| {
        let options = SimOptions { check_uninitialised: true, ..SimOptions::default() };
        let mut gpu = machine.with(machine.as_written(), options);
        let module = gpu.load_ptx_named("bad.ptx", text).unwrap();
        let kernel = module.kernel("k").unwrap();
        let (out, input) = (gpu.uninit::<u32>(37).unwrap(), gpu.uninit::<u32>(37).unwrap());
        input.write_range(&mut gpu, 0, &[1; 20]).unwrap();
        let report = gpu.launch(&kernel, Launch::grid(1).block(32), args![&out, &input]).unwrap();
        let told: Vec<_> =
            report.uninitialised.iter().map(|u| format!("{} × {}", u.count, u.message)).collect();
        // Once written, they are no longer reported.
        input.write(&mut gpu, &[1; 37]).unwrap();
        out.write(&mut gpu, &[1; 37]).unwrap();
        let report: Report = gpu.launch(&kernel, Launch::grid(1).block(16), args![&out, &input]).unwrap();
        assert_eq!(report.uninitialised, [], "on {machine}");
        told.join("\n")
    })
}

#[test]
fn uninitialised_reads() {
    let body = ".shared .align 4 .u32 box[64];
        ld.global.u32 %r5, [%d3];
        mov.u32 %r6, box;
        mad.lo.u32 %r6, %r2, 4, %r6;
        setp.lt.u32 %p1, %r2, 16;
        @%p1 st.shared.u32 [%r6], 1;
        ld.shared.u32 %r7, [%r6];
        add.u32 %r5, %r5, %r7;
        st.global.u32 [%d2], %r5;
        ld.global.u32 %r8, [%d2];";
    assert_message!(unwritten(&kernel(1, body)));
}

/// One load brings a partly written line into the cache, and others read it there.
#[test]
fn uninitialised_reads_of_one_line() {
    let body = "
        mov.u32 %r9, 0;
        setp.gt.u32 %p1, %r2, 15;
        @%p1 ret;
    AGAIN:
        ld.global.u32 %r5, [%d1];
        and.b32 %r6, %r5, 0;
        mad.wide.u32 %d5, %r6, 4, %d3;
        ld.global.u32 %r7, [%d5+32];
        ld.global.u32 %r8, [%d5];
        add.u32 %r9, %r9, %r5;
        setp.lt.u32 %p2, %r9, 3;
        @%p2 bra AGAIN;
        ld.volatile.global.u32 %r7, [%d1+96];
        ld.global.u8 %r7, [%d1+80];
        ld.global.u64 %d6, [%d1+72];
        ld.global.u64 %d6, [%d1+80];";
    assert_message!(unwritten(&kernel(1, body)));
}

#[test]
fn uninitialised_atomics_and_copies() {
    let body = ".shared .align 16 .u32 box[64];
        mov.u32 %r6, box;
        setp.eq.u32 %p1, %r2, 3;
        @%p1 atom.global.add.u32 %r5, [%d2], 1;
        @%p1 atom.global.add.u32 %r5, [%d2], 1;
        setp.eq.u32 %p3, %r2, 20;
        @%p3 red.shared.add.u32 [box+8], 1;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 cp.async.ca.shared.global [%r6], [%d1+64], 16;
        mov.u32 %r7, 4;
        @%p2 cp.async.ca.shared.global [%r6], [%d1+144], 16, %r7;
        cp.async.wait_all;";
    assert_message!(unwritten(&kernel(1, body)));
}

/// A local array, and the frame of a function that is called twice: what the first call wrote there is gone.
#[test]
fn uninitialised_local_memory() {
    let body = ".local .align 8 .b8 own[16];
        st.local.u32 [own+4], %r2;
        ld.local.u32 %r5, [own+4];
        setp.eq.u32 %p1, %r2, 3;
        @%p1 ld.local.u32 %r5, [own+8];
        @%p1 ld.local.u8 %r5, [own+3];
        @%p1 ld.local.u64 %d5, [own];";
    let called = ".func (.param .u32 found) f(.param .u32 store) {
            .local .align 4 .b8 cell[4];
            .reg .pred %p<2>; .reg .b32 %r<4>;
            ld.param.u32 %r1, [store];
            setp.ne.u32 %p1, %r1, 0;
            @%p1 st.local.u32 [cell], %r1;
            ld.local.u32 %r2, [cell];
            st.param.u32 [found], %r2;
            ret;
        }";
    let call = |store: u32| {
        format!(
            "{{ .param .u32 given; .param .u32 back;
            st.param.u32 [given], {store};
            call (back), f, (given);
            ld.param.u32 %r6, [back]; }}\n"
        )
    };
    let places = |text: &str, threads: u32| {
        same_on(MACHINES, |machine| {
            let mut gpu =
                machine.with(&[], SimOptions { check_uninitialised: true, ..SimOptions::default() });
            let module = gpu.load_ptx_named("bad.ptx", text).unwrap_or_else(|e| panic!("{e}"));
            let (out, input) = (gpu.zeros::<u32>(64).unwrap(), gpu.zeros::<u32>(64).unwrap());
            let launch = Launch::grid(1).block(threads);
            let report = gpu.launch(module.kernel("k").unwrap(), launch, args![&out, &input]).unwrap();
            let short = |message: &str| message.split(": ").last().unwrap_or_default().to_string();
            report.uninitialised.iter().map(|u| (short(&u.message), u.count)).collect::<Vec<_>>()
        })
    };
    let own = places(&kernel(1, body), 32);
    let expected = ["own+8", "own+3", "own"].map(|at| format!("[{at}]"));
    assert_eq!(own.len(), 3, "{own:?}");
    for ((text, count), at) in own.iter().zip(expected) {
        assert!(text.starts_with("@%p1 ld.local") && text.ends_with(&at) && *count == 1, "{text}");
    }
    let text = |calls: &[u32]| kernel_after(called, 1, &calls.iter().map(|&c| call(c)).collect::<String>());
    assert_eq!(places(&text(&[7]), 32), []);
    let found = places(&text(&[7, 0]), 32);
    assert!(matches!(&found[..], [(text, 1)] if text.starts_with("ld.local.u32 %r2, [cell]")), "{found:?}");
}

/// A lane that executes a `.sync` instruction must be in its own member mask.
#[test]
fn lanes_outside_their_member_mask() {
    for inst in [
        "shfl.sync.idx.b32 %r5, %r2, 0, 31, 0xfffffff7;",
        "vote.sync.any.pred %p1, %p2, 0xfffffff7;",
        "bar.warp.sync 0xfffffff7;",
    ] {
        let fault = fault(&kernel(1, inst), Launch::grid(1).block(32));
        assert_eq!(fault.kind, FaultKind::NotAMember { lane: 3, members: 0xffff_fff7 });
        assert_eq!((fault.thread, fault.place.instruction.as_str()), ([3, 0, 0], inst.trim_end_matches(';')));
    }
}

/// Masks may differ between lanes, but those that a lane names must have the same.
#[test]
fn member_masks_that_overlap() {
    // Lanes 4 to 7 name lanes 0 to 15, the others all lanes.
    let masks = "shr.u32 %r5, %r2, 2;
        setp.eq.u32 %p1, %r5, 1;
        selp.b32 %r6, 0xffff, 0xffffffff, %p1;\n";
    for inst in [
        "shfl.sync.idx.b32 %r7, %r2, 0, 31, %r6;",
        "vote.sync.any.pred %p2, %p1, %r6;",
        "match.any.sync.b32 %r7, %r5, %r6;",
        "redux.sync.add.u32 %r7, %r5, %r6;",
        "bar.warp.sync %r6;",
    ] {
        let fault = fault(&kernel(1, &format!("{masks}{inst}")), Launch::grid(1).block(32));
        let kind = FaultKind::MasksDiffer { lane: 0, members: u32::MAX, other: 4, others: 0xffff };
        assert_eq!((&fault.kind, fault.thread), (&kind, [0, 0, 0]));
        assert_eq!(fault.place.instruction, inst.trim_end_matches(';'));
    }
    let inst = "selp.b32 %r6, 0xffff, 0xffffffff, %p1;\nbar.warp.sync %r6;";
    assert_message!(message(&format!("{}{inst}", masks.split("selp").next().unwrap())));
}

/// Groups of lanes with masks of their own are no outsiders.
#[test]
fn member_masks_of_groups() {
    let groups = "and.b32 %r5, %r2, 1;
        mov.u32 %r6, 0x55555555;
        shl.b32 %r6, %r6, %r5;
        bar.warp.sync %r6;";
    for machine in MACHINES {
        let mut gpu = machine.small();
        let module = gpu.load_ptx(&kernel(1, groups)).unwrap();
        let (out, input) = (gpu.zeros::<u32>(32).unwrap(), gpu.zeros::<u32>(32).unwrap());
        let launch = Launch::grid(1).block(32).max_cycles(100_000);
        let result = gpu.launch(module.kernel("k").unwrap(), launch, args![&out, &input]);
        assert!(result.is_ok(), "on {machine}: {}", result.unwrap_err());
    }
}

#[test]
fn trap() {
    assert_message!(message("setp.eq.u32 %p1, %r2, 9;\n@%p1 trap;"));
}

#[test]
fn bad_branch_index() {
    let body =
        "ts: .branchtargets A, B;\nadd.u32 %r5, %r2, 1;\nand.b32 %r5, %r5, 3;\nbrx.idx %r5, ts;\nA:\nB:";
    assert_message!(message(body));
}

#[test]
fn bad_function_pointers() {
    let body = "
        { .param .b32 a; p: .callprototype _ (.param .b32 _); st.param.b32 [a], %r0; call %d0, (a), p; }";
    let FaultKind::BadFunctionPointer(address) = fault(&kernel(1, body), Launch::grid(1).block(32)).kind
    else {
        panic!("the call succeeds")
    };
    assert!(address > 0);
    let body = body.replace("call %d0", "mov.u64 %d5, 0;\ncall %d5");
    assert_message!(message(&body));
}

/// A barrier that does not exist, a count that is not a multiple of the warp size, and two counts in one phase.
#[test]
fn barrier_misuse() {
    let told = ["mov.u32 %r5, 16;\nbar.sync %r5;", "bar.sync 1, %r3;", "mov.u32 %r5, 0;\nbar.arrive 1, %r5;"]
        .map(|body| {
            let error = |machine| error_on(machine, &kernel(1, body), Launch::grid(1).block(31));
            same_on(machines_of("gtx480"), |machine| error(machine).to_string())
        });
    assert_message!(told.join("\n\n"));
    let body = "
        setp.lt.u32 %p1, %r2, 64;
        @%p1 bar.arrive 1, 128;
        bar.sync 2;
        @!%p1 bar.arrive 1, 192;";
    let fault = fault(&kernel(1, body), Launch::grid(1).block(96));
    assert_eq!(
        fault.kind.to_string(),
        "barrier 1 is given 192 threads, but 128 by a warp that already arrived"
    );
}

#[test]
fn mbarrier_misuse() {
    let before = ".shared .align 8 .b64 barrier;";
    let body = "mov.u32 %r5, barrier;\nmbarrier.arrive.shared.b64 %d5, [%r5];";
    assert_message!(fault(&kernel_after(before, 1, body), Launch::grid(1).block(1)).to_string());
}

/// Two of four warps wait for a third, which is at another barrier.
#[test]
fn blocked_at_barriers() {
    let body = "
        setp.lt.u32 %p1, %r2, 64;
        @%p1 bra FIRST;
        bar.sync 2, 128;
        ret;
    FIRST:
        bar.sync 1, 128;";
    let (text, launch) = (kernel(1, body), Launch::grid(1).block(128));
    let (wide, narrow): (Vec<_>, Vec<_>) = MACHINES.into_iter().partition(|machine| machine.chip == "apu");
    let blocked = hang(narrow, &text, launch.clone());
    assert_eq!((&blocked.reason, blocked.live_warps), (&HangReason::Blocked, 4));
    insta::assert_snapshot!("blocked_at_barriers", blocked.to_string());
    insta::assert_snapshot!("blocked_wavefronts", hang(wide, &text, launch).to_string());
}

/// Lanes that wait for lanes that wait elsewhere.
#[test]
fn blocked_lanes() {
    let body = "
        setp.lt.u32 %p1, %r1, 10;
        @%p1 bra LOW;
        vote.sync.ballot.b32 %r5, %p1, 0xffffffff;
        ret;
    LOW:
        bar.sync 0;
        bar.warp.sync 0xffffffff;";
    let machines = machines_of("h200").collect::<Vec<_>>();
    assert_message!(hang(machines, &kernel(1, body), Launch::grid(1).block(32)).to_string());
}

#[test]
fn cycle_limit() {
    const LIMIT: u64 = 1234;
    let text = kernel(1, "AGAIN:\nbra AGAIN;");
    for machine in MACHINES {
        let error = error_on(machine, &text, Launch::grid(3).block(64).max_cycles(LIMIT));
        let Error::Hang { hang: Some(hang), report, .. } = &error else { panic!("on {machine}: {error}") };
        assert_eq!(hang.reason, HangReason::CycleLimit(LIMIT), "on {machine}");
        match machine.policy {
            // The functional model counts one cycle per warp instruction.
            None => assert_eq!((report.cycles, report.warp_insts), (LIMIT, LIMIT), "on {machine}"),
            // The timed model checks the limit only now and then.
            Some(_) => assert!((LIMIT..LIMIT + 200).contains(&report.cycles), "on {machine}"),
        }
    }
    let machines = machines_of("gtx480").collect::<Vec<_>>();
    assert_message!(hang(machines, &text, Launch::grid(1).block(64).max_cycles(LIMIT)).to_string());
}

/// A thread prints a value that it has just stored.
#[test]
fn printing_what_was_just_stored() {
    let before = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);";
    let body = "
        add.u32 %r5, %r2, 0x000a0a61;
        st.global.u32 [%d2], %r5;
        {
            .param .b64 f; .param .b64 a; .param .b32 r;
            st.param.b64 [f], %d2;
            st.param.b64 [a], 0;
            call.uni (r), vprintf, (f, a);
        }";
    for machine in MACHINES {
        let mut gpu = machine.small();
        let module = gpu.load_ptx(&kernel_after(before, 1, body)).unwrap();
        let (out, input) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
        let kernel = module.kernel("k").unwrap();
        let report = gpu.launch(&kernel, Launch::grid(1).block(4), args![&out, &input]).unwrap();
        assert_eq!(report.output, "a\n\nb\n\nc\n\nd\n\n", "on {machine}");
    }
}

/// Stores and output from before the fault are kept.
#[test]
fn what_happened_before_is_kept() {
    let before = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
        .global .align 1 .b8 text[4] = {104, 105, 10, 0};";
    let body = "
        mov.u64 %d5, text;
        cvta.global.u64 %d5, %d5;
        {
            .param .b64 f; .param .b64 a; .param .b32 r;
            st.param.b64 [f], %d5;
            st.param.b64 [a], 0;
            call.uni (r), vprintf, (f, a);
        }
        bar.sync 0;
        st.global.u32 [%d2], 5;
        trap;";
    for machine in MACHINES {
        let mut gpu = machine.small();
        let module = gpu.load_ptx(&kernel_after(before, 1, body)).unwrap();
        let (out, input) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
        let kernel = module.kernel("k").unwrap();
        let error = gpu.launch(&kernel, Launch::grid(1).block(4), args![&out, &input]).unwrap_err();
        assert_eq!(error.report().unwrap().output, "hi\n".repeat(4), "on {machine}");
        assert_eq!(out.read(&gpu).unwrap(), [5; 4], "on {machine}");
        // The device remains usable.
        let again = gpu.launch(&kernel, Launch::grid(1).block(1), args![&out, &input]);
        assert!(matches!(again, Err(Error::Fault { .. })), "on {machine}");
    }
}

/// With line tables, messages name the line of the CUDA source.
#[test]
fn source_lines() {
    let folders =
        ["nvcc13.0-sm_90-lineinfo", "nvrtc12.9-sm_90-lineinfo", "clang19-sm_70-lines", "clang19-sm_70-g"];
    let told = folders.map(|folder| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/corpus");
        let text = std::fs::read(root.join(folder).join("vecadd.ptx")).unwrap();
        same_on(machines_of("gtx480"), |machine| {
            let mut gpu = machine.small();
            let module = gpu.load_ptx_named(&format!("{folder}/vecadd.ptx"), &text).unwrap();
            let kernel = module.kernel("vecadd").unwrap();
            let values = vec![1.0f32; 1024];
            let (a, b) = (gpu.buffer(&values).unwrap(), gpu.buffer(&values[..1000]).unwrap());
            let c = gpu.zeros::<f32>(1024).unwrap();
            let launch = Launch::grid(8).block(128);
            gpu.launch(&kernel, launch, args![&a, &b, &c, 1024u32]).unwrap_err().to_string()
        })
    });
    assert_message!(told.join("\n\n"));
}

/// Launches that no chip can run are refused before they start.
#[test]
fn unlaunchable() {
    let mut told = Vec::new();
    let mut gpu = MACHINES[0].small();
    let module = gpu.load_ptx(&kernel(1, "st.global.u32 [%d2], 1;")).unwrap();
    let kernel = module.kernel("k").unwrap();
    let (out, input) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
    for launch in [
        Launch::grid(1).block(1025),
        Launch::grid(1).block((1, 1, 65)),
        Launch::grid(0).block(1),
        Launch::grid(1).block(0),
        Launch::grid((1, 70000)).block(1),
        Launch::grid(1).block(1).shared_bytes(50_000),
    ] {
        let error = gpu.launch(&kernel, launch, args![&out, &input]).unwrap_err();
        assert!(matches!(error, Error::Unlaunchable { .. }), "{error}");
        told.push(error.to_string());
    }
    assert_eq!(out.read(&gpu).unwrap(), [0; 4]);
    assert_message!(told.join("\n"));
}

#[test]
fn interrupts() {
    let text = kernel(1, "AGAIN:\nbra AGAIN;");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    for machine in MACHINES {
        let error = error_on(machine, &text, Launch::grid(1).block(32).interrupt(stop.clone()));
        assert!(matches!(error, Error::Interrupted { .. }), "on {machine}: {error}");
    }
}
