//! Which loops are seen to wait for others: spin locks, not lock-free retries.

mod common;

use isa::{AddressMap, FuncId, Kernel, WaitEnds, link};
use warploom_isa as isa;

fn kernels(name: &str, text: &str, optimise: bool) -> Vec<Kernel> {
    let module = warploom_ptx::load(name, text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let variables = (0..module.variables.len() as u64).map(|n| 0x1000 * (n + 1)).collect();
    let addresses = AddressMap { variables, optimise, ..AddressMap::default() };
    let entries = (0u32..).zip(&module.functions).filter(|(_, f)| f.is_kernel);
    entries.map(|(n, _)| link(&module, FuncId(n), &addresses).unwrap()).collect()
}

/// The ends of all waits of a kernel with this body. `[%rd1]` is a word of global memory.
fn ends(code: &str) -> Vec<WaitEnds> {
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 word) {{\n\
         .reg .pred %p<20>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n\
         ld.param.u64 %rd0, [word];\ncvta.to.global.u64 %rd1, %rd0;\n{code}\nret;\n}}\n"
    );
    let kernels = kernels("k.ptx", &text, false);
    let waits = kernels[0].loops.iter().filter(|l| l.spins_on.is_some() && !l.of_atomic);
    waits.map(|l| l.ends).collect()
}

#[track_caller]
fn lock_free(code: &str) {
    let ends = ends(code);
    assert!(!ends.is_empty() && ends.iter().all(|end| matches!(end, WaitEnds::LockFree(_))), "{ends:?}");
}

#[track_caller]
fn waits(code: &str) {
    let ends = ends(code);
    let free = |end: &WaitEnds| matches!(end, WaitEnds::LockFree(_) | WaitEnds::Yields(_));
    assert!(!ends.is_empty() && !ends.iter().any(free), "{ends:?}");
}

#[test]
fn a_swap_of_what_was_read_in_the_iteration() {
    lock_free(
        "L: ld.volatile.global.u32 %r1, [%rd1]; add.s32 %r2, %r1, 1;
            atom.global.cas.b32 %r3, [%rd1], %r1, %r2; setp.ne.s32 %p1, %r3, %r1; @%p1 bra L;",
    );
}

#[test]
fn a_swap_of_what_the_last_one_found() {
    lock_free(
        "   ld.volatile.global.u32 %r1, [%rd1];
         L: add.s32 %r2, %r1, 1; atom.global.cas.b32 %r3, [%rd1], %r1, %r2;
            setp.ne.s32 %p1, %r3, %r1; mov.u32 %r1, %r3; @%p1 bra L;",
    );
}

#[test]
fn the_outcome_is_kept_in_a_predicate() {
    // Leaves when there is no room or when it has swapped, both through one branch at the end.
    lock_free(
        "L: ld.volatile.global.u32 %r1, [%rd1]; ld.volatile.global.u32 %r4, [%rd1+64]; add.s32 %r2, %r1, 2;
            setp.gt.u32 %p1, %r2, %r4; mov.pred %p2, 0; @%p1 bra E;
            atom.global.cas.b32 %r3, [%rd1], %r1, %r2; setp.ne.s32 %p3, %r3, %r1; mov.pred %p2, -1; @%p3 bra E;
            mov.pred %p2, 0;
         E: @%p2 bra L;",
    );
}

#[test]
fn whoever_fails_leaves() {
    // What was expected is compared again at the start.
    lock_free(
        "   ld.volatile.global.u32 %r1, [%rd1]; mov.u32 %r4, %tid.x; add.s32 %r2, %r4, 1;
         L: setp.ne.s32 %p1, %r1, %r4; @%p1 bra E;
            atom.global.cas.b32 %r1, [%rd1], %r4, %r2; setp.ne.s32 %p2, %r1, %r4; @%p2 bra L;
         E: mov.u32 %r5, 0;",
    );
}

#[test]
fn an_elected_lane_swaps_for_its_warp() {
    let code = |vote: &str| {
        format!(
            "   mov.pred %p4, 0; activemask.b32 %r5; brev.b32 %r6, %r5; clz.b32 %r7, %r6; mov.u32 %r8, %laneid;
                setp.ne.s32 %p5, %r8, %r7;
             L: ld.volatile.global.u32 %r1, [%rd1]; add.s32 %r2, %r1, 1; @%p5 bra V;
                atom.global.cas.b32 %r3, [%rd1], %r1, %r2; setp.eq.s32 %p4, %r3, %r1;
             V: {vote} @!%p6 bra L;"
        )
    };
    lock_free(&code("vote.sync.any.pred %p6, %p4, -1;"));
    // Without the vote the others poll until the elected lane has written, and it may wait for them.
    waits(&code("setp.eq.s32 %p6, %r1, 7;"));
}

#[test]
fn a_spin_lock() {
    waits("L: atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra L;");
}

#[test]
fn a_spin_lock_that_looks_before_it_swaps() {
    waits(
        "L: ld.volatile.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, 0; @%p1 bra L;
            atom.global.cas.b32 %r3, [%rd1], %r1, 1; setp.ne.s32 %p2, %r3, %r1; @%p2 bra L;",
    );
}

#[test]
fn a_spin_lock_that_swaps_whatever_is_there() {
    // Goes on after it has succeeded, if the lock was taken.
    waits(
        "L: ld.volatile.global.u32 %r1, [%rd1]; atom.global.cas.b32 %r3, [%rd1], %r1, 1;
            setp.ne.s32 %p1, %r3, %r1; @%p1 bra L; setp.ne.s32 %p2, %r1, 0; @%p2 bra L;",
    );
}

#[test]
fn a_swap_of_a_part_of_what_was_read() {
    waits(
        "L: ld.volatile.global.u32 %r1, [%rd1]; and.b32 %r1, %r1, -2; or.b32 %r2, %r1, 1;
            atom.global.cas.b32 %r3, [%rd1], %r1, %r2; setp.ne.s32 %p1, %r3, %r1; @%p1 bra L;",
    );
}

#[test]
fn a_swap_of_another_word() {
    waits(
        "L: ld.volatile.global.u32 %r1, [%rd1+4]; add.s32 %r2, %r1, 1;
            atom.global.cas.b32 %r3, [%rd1], %r1, %r2; setp.ne.s32 %p1, %r3, %r1; @%p1 bra L;",
    );
}

#[test]
fn a_wait_that_yields() {
    let code = |pause: &str| {
        format!(
            "L: ld.volatile.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, 0; @%p1 bra E; {pause} bra L;
             E: mov.u32 %r2, 0;"
        )
    };
    assert!(matches!(ends(&code("wl.yield.b64 %rd0;"))[..], [WaitEnds::Yields(_)]));
    waits(&code("nanosleep.u32 100;"));
}

#[test]
fn channels_wait_for_nobody_but_by_yielding() {
    let (mut loops, mut waiting) = (0, Vec::new());
    let folder = |path: &std::path::PathBuf| {
        path.parent().is_some_and(|p| p.ends_with("kernels/flow") || p.ends_with("kernels/flow/steps"))
    };
    for path in common::ptx_files().into_iter().filter(folder) {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        for kernel in kernels(&name, &text, false).into_iter().chain(kernels(&name, &text, true)) {
            for l in kernel.loops.iter().filter(|l| l.spins_on.is_some() && !l.of_atomic) {
                let place = kernel.origins[l.header.index()];
                loops += 1;
                if !matches!(l.ends, WaitEnds::LockFree(_) | WaitEnds::Yields(_)) {
                    waiting.push(format!("{name}: {}, the loop at {place:?}: {:?}", kernel.name, l.ends));
                }
            }
        }
    }
    assert!(loops > 100, "{loops} loops found");
    assert!(waiting.is_empty(), "{}", waiting.join("\n"));
}
