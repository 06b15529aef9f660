//! Which loops are found to spin.

use super::asm::*;
use crate::*;

const WIDE: &[u32] = &[0, 10];

/// The instruction that the only loop of this code spins on. Registers 0 and 10 are addresses.
fn spins(insts: Vec<Inst>) -> Option<u32> {
    let prepared = link::prepare(&body(20, WIDE, 8, insts), link::Passes::default());
    assert_eq!(prepared.loops.len(), 1, "{}", print::body(&prepared.body));
    prepared.loops[0].spins_on.map(|pc| pc.0)
}

fn global() -> Access {
    access(Space::Global)
}

fn wide_add(d: u32, a: Operand, b: Operand) -> Inst {
    Inst::new(Op::IAdd(Ty::U64, Clamp::None), dr(d), &[a, b])
}

#[test]
fn cas_lock() {
    let code = vec![
        atom(AtomOp::Cas, 1, r(0), &[imm(0), imm(1)]),
        setp(Cmp::Ne, 0, r(1), imm(0)),
        bra(0).when(0),
        ret(),
    ];
    assert_eq!(spins(code), Some(0));
}

#[test]
fn flag_wait() {
    let code =
        vec![ld(volatile(Space::Global), 1, r(0), 4), setp(Cmp::Eq, 0, r(1), imm(0)), bra(0).when(0), ret()];
    assert_eq!(spins(code), Some(0));
}

#[test]
fn done_flag_by_control() {
    // done = 0; do { if (exch(lock, 1) == 0) { critical; release; done = 1; } } while (!done);
    let code = vec![
        mov(2, imm(0)),
        atom(AtomOp::Exch, 1, r(0), &[imm(1)]),
        setp(Cmp::Ne, 0, r(1), imm(0)),
        bra(8).when(0),
        ld(global(), 3, r(10), 0),
        add(3, r(3), imm(1)),
        st(global(), r(10), 0, r(3)),
        mov(2, imm(1)),
        setp(Cmp::Eq, 1, r(2), imm(0)),
        bra(1).when(1),
        ret(),
    ];
    assert_eq!(spins(code), Some(1));
}

#[test]
fn done_flag_by_guard() {
    let code = vec![
        mov(2, imm(0)),
        atom(AtomOp::Exch, 1, r(0), &[imm(1)]),
        setp(Cmp::Eq, 0, r(1), imm(0)),
        mov(2, imm(1)).when(0),
        setp(Cmp::Eq, 1, r(2), imm(0)),
        bra(1).when(1),
        ret(),
    ];
    assert_eq!(spins(code), Some(1));
}

#[test]
fn done_flag_on_the_stack() {
    // As in unoptimised code: both the flag and the result of the atomic are in the frame.
    let local = || access(Space::Generic);
    let code = vec![
        Inst::new(Op::Mov(Ty::B64), dr(10), &[Operand::Frame]),
        Inst::new(Op::ToGeneric(Space::Local, Ty::U64), dr(10), &[Operand::Frame]),
        st(local(), r(10), 4, imm(0)),
        atom(AtomOp::Exch, 1, r(0), &[imm(1)]), // 3
        st(local(), r(10), 8, r(1)),
        ld(local(), 2, r(10), 8),
        setp(Cmp::Ne, 0, r(2), imm(0)),
        bra(9).when(0),
        st(local(), r(10), 4, imm(1)),
        ld(local(), 3, r(10), 4), // 9
        setp(Cmp::Eq, 1, r(3), imm(0)),
        bra(3).when(1),
        ret(),
    ];
    assert_eq!(spins(code[1..].iter().copied().map(retarget).collect()), Some(2));

    fn retarget(mut inst: Inst) -> Inst {
        if let (Op::Bra, Operand::Imm(t)) = (inst.op, inst.src[0]) {
            inst.src[0] = imm(t - 1);
        }
        inst
    }
}

#[test]
fn counter_on_the_stack_counts() {
    let code = vec![
        st(access(Space::Local), Operand::Frame, 0, imm(0)),
        ld(access(Space::Local), 1, Operand::Frame, 0),
        setp(Cmp::Ge, 0, r(1), imm(100)),
        bra(7).when(0),
        add(1, r(1), imm(1)),
        st(access(Space::Local), Operand::Frame, 0, r(1)),
        bra(1),
        ret(),
    ];
    assert_eq!(spins(code), None);
}

#[test]
fn sum_over_an_array() {
    // for (i = 0; i < n; i++) s += a[i], with the bound loaded from memory in every iteration.
    let code = vec![
        mov(1, imm(0)),
        ld(global(), 2, r(0), 0),
        add(3, r(3), r(2)),
        wide_add(0, r(0), imm(4)),
        add(1, r(1), imm(1)),
        ld(global(), 4, r(10), 0),
        setp(Cmp::Lt, 0, r(1), r(4)),
        bra(1).when(0),
        ret(),
    ];
    assert_eq!(spins(code), None);
}

#[test]
fn search_in_an_array() {
    let code = vec![
        ld(global(), 2, r(0), 0),
        wide_add(0, r(0), imm(4)),
        setp(Cmp::Ne, 0, r(2), imm(0)),
        bra(0).when(0),
        ret(),
    ];
    assert_eq!(spins(code), None);
}

#[test]
fn linked_list() {
    let wide = Access::plain(Space::Global, Ty::U64);
    let code = vec![
        Inst::new(Op::Ld { access: wide, wide: false }, dr(0), &[r(0), imm(8)]),
        Inst::new(
            Op::Setp { cmp: Cmp::Ne, combine: Combine::None, ty: Ty::U64, ftz: false },
            dp(0),
            &[r(0), imm(0)],
        ),
        bra(0).when(0),
        ret(),
    ];
    assert_eq!(spins(code), None);
}

#[test]
fn handing_out_work_is_no_spin() {
    let fetch = |by| {
        vec![atom(AtomOp::Add, 1, r(0), &[imm(by)]), setp(Cmp::Lt, 0, r(1), imm(1000)), bra(0).when(0), ret()]
    };
    assert_eq!(spins(fetch(1)), None);
    // Adding zero is a read.
    assert_eq!(spins(fetch(0)), Some(0));
}

#[test]
fn semaphore_with_undo() {
    let code = vec![
        atom(AtomOp::Add, 1, r(0), &[imm(u32::MAX)]),
        setp(Cmp::Gt, 0, r(1), imm(0)),
        bra(5).when(0),
        atom(AtomOp::Add, 2, r(0), &[imm(1)]),
        bra(0),
        ret(),
    ];
    assert_eq!(spins(code), Some(0));
}

#[test]
fn parameters_and_own_flags_do_not_change_by_themselves() {
    let param =
        vec![ld(access(Space::Param), 1, imm(0), 0), setp(Cmp::Eq, 0, r(1), imm(0)), bra(0).when(0), ret()];
    assert_eq!(spins(param), None);
    let own = vec![
        st(access(Space::Shared), imm(16), 0, imm(0)),
        op(Op::Nop),
        ld(access(Space::Shared), 1, imm(16), 0),
        setp(Cmp::Ne, 0, r(1), imm(0)),
        bra(0).when(0),
        ret(),
    ];
    assert_eq!(spins(own), None);
}

#[test]
fn only_the_inner_loop_spins() {
    let code = vec![
        mov(1, imm(0)),
        atom(AtomOp::Cas, 2, r(0), &[imm(0), imm(1)]),
        setp(Cmp::Ne, 0, r(2), imm(0)),
        bra(1).when(0),
        st(global(), r(0), 0, imm(0)),
        add(1, r(1), imm(1)),
        setp(Cmp::Lt, 1, r(1), imm(10)),
        bra(1).when(1),
        ret(),
    ];
    // One header, as compilers merge them: only the backward branches distinguish the two loops.
    let loops = link::prepare(&body(20, WIDE, 8, code.clone()), link::Passes::default()).loops;
    let seen: Vec<_> = loops.iter().map(|l| (l.header.0, l.latches[0].0, l.depth, l.spins_on)).collect();
    assert_eq!(seen, [(1, 7, 1, None), (1, 3, 2, Some(Pc(1)))]);

    let mut split = code;
    split.insert(1, op(Op::Nop));
    for inst in &mut split {
        if let (Op::Bra, Operand::Imm(1)) = (inst.op, inst.src[0]) {
            inst.src[0] = imm(if inst.guard == Guard::If(Pred(0)) { 2 } else { 1 });
        }
    }
    let loops = link::prepare(&body(20, WIDE, 8, split), link::Passes::default()).loops;
    assert_eq!(loops.len(), 2);
    assert_eq!((loops[0].header, loops[0].depth, loops[0].spins_on), (Pc(1), 1, None));
    assert_eq!((loops[1].header, loops[1].depth, loops[1].spins_on), (Pc(2), 2, Some(Pc(2))));
}

#[test]
fn reused_registers_are_kept_apart() {
    // Register 1 first holds an unrelated loaded value, then the counter's comparison operand.
    let code = vec![
        mov(2, imm(0)),
        ld(volatile(Space::Global), 1, r(0), 0),
        st(global(), r(10), 0, r(1)),
        add(2, r(2), imm(1)),
        mov(1, r(2)),
        setp(Cmp::Lt, 0, r(1), imm(9)),
        bra(1).when(0),
        ret(),
    ];
    assert_eq!(spins(code), None);
}
