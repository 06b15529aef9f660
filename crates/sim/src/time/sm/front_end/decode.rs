//! What the pipeline has to know about each instruction, worked out once per kernel. Start at [`decode`].

use warploom_isa::{
    Access, Approx, AtomOp, ClusterBar, Inst, Kernel, LockNote, MatrixTy, Mma, Op, Operand, Order, Pc, Scope,
    Space, Ty, Value,
};

use crate::chip::Chip;
use crate::chip::timing::{FenceScope, OperationTimes, UnitSpec};
use crate::exec::lanes::frequent::{Constants, LaneOperation};
use crate::exec::memory::word::SharedWord;
use crate::time::sm::front_end::operation::Operation;
use crate::time::sm::issue::scoreboard::RegSet;
use crate::time::sm::load_store::transfer::skips_l1;

/// The kind of unit that executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecUnit {
    /// Integer and single precision.
    Sp,
    /// Transcendental functions and divisions.
    Sfu,
    /// Double precision, and matrices.
    Dp,
    /// Loads, stores, atomics.
    Memory,
    /// None: branches, barriers and the like are done when they issue.
    Control,
}

impl ExecUnit {
    pub(crate) const COUNT: usize = 5;
}

/// Instructions by what they are for, as statistics count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Integer,
    Float,
    Double,
    Special,
    Exchange,
    Load,
    Store,
    Atomic,
    Barrier,
    Fence,
    Control,
}

impl Class {
    /// In the order in which counts are kept.
    pub(crate) const ALL: [Class; 11] = [
        Class::Integer,
        Class::Float,
        Class::Double,
        Class::Special,
        Class::Exchange,
        Class::Load,
        Class::Store,
        Class::Atomic,
        Class::Barrier,
        Class::Fence,
        Class::Control,
    ];

    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Class::Integer => "integer",
            Class::Float => "float",
            Class::Double => "double",
            Class::Special => "special",
            Class::Exchange => "exchange",
            Class::Load => "load",
            Class::Store => "store",
            Class::Atomic => "atomic",
            Class::Barrier => "barrier",
            Class::Fence => "fence",
            Class::Control => "control",
        }
    }
}

/// How an instruction is ordered against the other memory accesses of its warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ordering {
    /// It issues only when all earlier accesses of the warp are complete.
    pub after_all: bool,
    /// It issues only when the groups of bulk copies that it waits for are done or read.
    pub after_bulk_copies: bool,
    /// It issues only when the warp's earlier stores to shared memory are done.
    pub after_shared_stores: bool,
    /// The warp goes on only when it is complete, and then invalidates the L1.
    pub before_all: bool,
}

/// The part of an instruction in the wait of a spin loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpinRole {
    /// The load or atomic whose value ends the wait.
    Poll,
    /// The store of an atomic's own loop around a lock bit, if a spin loop waits for the atomic's value: what it
    /// stores tells whether a lock was taken.
    Try,
    /// The backward branch of an atomic's own loop: taken means that another thread holds the bit.
    AtomicBranch,
    /// A backward branch of a loop that polls with a plain load: taken means the wait goes on.
    WaitBranch,
    /// A backward branch of a loop that polls with an atomic, or with a load that the kernel names a wait: taken
    /// means that some lane still waits, or that there is more to wait for.
    LockBranch,
}

/// A kernel's code as the pipeline sees it.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub instructions: Vec<Decoded>,
    /// What lane operations have as immediates.
    pub constants: Constants,
}

/// One instruction as the pipeline sees it.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    pub unit: ExecUnit,
    pub class: Class,
    pub operation: Operation,
    /// What it computes, if that is a frequent operation on registers.
    pub lanes: Option<LaneOperation>,
    /// What it loads, if that is a word of shared memory in each lane.
    pub shared_word: Option<SharedWord>,
    /// From operands to result.
    pub latency_cycles: u32,
    /// Cycles before its unit can start another instruction.
    pub initiation_cycles: u32,
    /// Registers that must have no pending result: those it reads and those it writes.
    pub needs: RegSet,
    pub writes: RegSet,
    /// Rows of registers that it reads: each takes a turn of its bank.
    pub reads: Box<[u16]>,
    /// How many registers it writes.
    pub written: u8,
    pub ordering: Ordering,
    /// Its registers are all that it waits for, and they are where the instruction says: it does not wait for earlier
    /// accesses of its warp, and its kernel has no functions, whose registers are moved.
    pub needs_registers_only: bool,
    /// Its kernel has functions.
    pub is_moved: bool,
    /// It waits for asynchronous copies, but not for those of this many groups.
    pub leaves_groups: Option<u32>,
    pub spin: Option<SpinRole>,
    /// An atomic that tries to take a lock: one that a spin loop polls with and that exchanges, or that the kernel
    /// names.
    pub takes_lock: bool,
    /// An atomic addition that the compiler makes once for a whole warp.
    pub aggregated: bool,
    /// The instruction before it has added up the same operands.
    pub shares_sum: bool,
    /// A wait that the kernel names as such. Its loop may go on to other waits, so the backward branch does not tell
    /// whether this one was in vain; a lane that returns to the same address does.
    pub named_wait: bool,
    /// A backward branch of a loop.
    pub is_latch: bool,
    /// It is a latch or has a part in a spin loop.
    pub notes_spin: bool,
    /// A compiler puts a yield before it.
    pub yields: bool,
    /// Its loads of global memory go to the L2, whatever the L1 holds.
    pub skips_l1: bool,
}

pub(crate) fn decode(kernel: &Kernel, chip: &Chip) -> Code {
    let mut constants = Constants::default();
    let of_inst = |inst| one(kernel, chip, inst, &mut constants);
    let mut code: Vec<Decoded> = kernel.code.iter().map(of_inst).collect();
    kernel.aggregated.iter().for_each(|pc| code[pc.index()].aggregated = true);
    for pc in 1..code.len() {
        let [before, inst] = [&kernel.code[pc - 1], &kernel.code[pc]];
        let together = code[pc - 1].aggregated && code[pc].aggregated;
        code[pc].shares_sum =
            together && (inst.op, inst.src[2], inst.guard) == (before.op, before.src[2], before.guard);
    }
    for spin_loop in &kernel.loops {
        for latch in &spin_loop.latches {
            code[latch.index()].is_latch = true;
        }
        let Some(poll) = spin_loop.spins_on else { continue };
        code[poll.index()].spin = Some(SpinRole::Poll);
        if spin_loop.of_atomic {
            spin_loop.latches.iter().for_each(|pc| code[pc.index()].spin = Some(SpinRole::AtomicBranch));
            continue;
        }
        if let Some(atomic) = kernel.atomic_at(poll) {
            code[atomic.store.index()].spin = Some(SpinRole::Try);
        }
        if matches!(kernel.code[poll.index()].op, Op::LdLock(_)) && kernel.atomic_at(poll).is_none() {
            // A lane may wait for any of the bits that its loop tries to take.
            let end = spin_loop.latches.iter().copied().max().unwrap_or(poll);
            for pc in (spin_loop.header.index()..=end.index())
                .filter(|&pc| kernel.atomic_at(Pc(pc as u32)).is_none())
            {
                if matches!(kernel.code[pc].op, Op::LdLock(_)) {
                    code[pc].spin = Some(SpinRole::Poll);
                }
            }
        }
        let is_lock =
            code[poll.index()].class == Class::Atomic || kernel.lock_notes.contains(&(poll, LockNote::Wait));
        for latch in &spin_loop.latches {
            code[latch.index()].spin =
                Some(if is_lock { SpinRole::LockBranch } else { SpinRole::WaitBranch });
        }
    }
    for (decoded, inst) in code.iter_mut().zip(&kernel.code) {
        // Other atomics may poll a value that threads count up to, or set bit by bit.
        let exchanges = matches!(inst.op, Op::Atom(AtomOp::Cas | AtomOp::Exch, _));
        decoded.takes_lock = exchanges && decoded.spin == Some(SpinRole::Poll);
    }
    for &(pc, note) in &kernel.lock_notes {
        let is_atomic = matches!(kernel.code[pc.index()].op, Op::Atom(..));
        code[pc.index()].takes_lock = is_atomic && note == LockNote::Acquire;
        let (spin, atomic) = match note {
            LockNote::Acquire => (Some(SpinRole::Poll), Some(SpinRole::Try)),
            LockNote::Wait => (Some(SpinRole::Poll), None),
            LockNote::Release => (None, None),
        };
        code[pc.index()].spin = spin;
        code[pc.index()].named_wait = note == LockNote::Wait && code[pc.index()].class == Class::Load;
        if let Some(made) = kernel.atomic_at(pc) {
            // The load of an atomic's own loop polls in any case.
            code[pc.index()].spin = Some(SpinRole::Poll);
            code[made.store.index()].spin = atomic;
        }
    }
    for decoded in &mut code {
        decoded.notes_spin = decoded.is_latch || decoded.spin.is_some();
    }
    if chip.units.yield_cycles > 0 {
        mark_yields(kernel, &mut code);
    }
    Code { instructions: code, constants }
}

fn one(kernel: &Kernel, chip: &Chip, inst: &Inst, constants: &mut Constants) -> Decoded {
    let (mut needs, mut writes) = (RegSet::default(), RegSet::default());
    let mut reads = Vec::new();
    let mut written = 0;
    inst.for_each_use(kernel, |value| match value {
        Value::Reg(reg, width) => {
            for word in 0..width.words() {
                needs.insert_register(reg.0 + word);
                reads.push((reg.0 + word) as u16);
            }
        }
        Value::Pred(pred) => needs.insert_predicate(pred.0),
    });
    inst.for_each_def(kernel, |value| match value {
        Value::Reg(reg, width) => {
            (0..width.words()).for_each(|word| writes.insert_register(reg.0 + word));
            written += width.words() as u8;
        }
        Value::Pred(pred) => writes.insert_predicate(pred.0),
    });
    if matches!(inst.op, Op::Wgmma(_)) {
        // The sums stay with the unit: a later product need not wait for them, and a wait names who does.
        (writes, written) = (RegSet::default(), 0);
        reads.clear();
    }
    needs.add(&writes);
    let (unit, class, [latency_cycles, initiation_cycles]) = match inst.op {
        // An mbarrier is a word of shared memory with an adder beside it.
        Op::StAsync(..) => (ExecUnit::Sp, Class::Store, [1, 1]),
        Op::RedAsync(..) => (ExecUnit::Sp, Class::Atomic, [1, 1]),
        Op::Mbarrier(..) => {
            let latency = chip.shared.mbarrier_latency_cycles.unwrap_or(chip.shared.latency_cycles);
            (ExecUnit::Sp, Class::Atomic, [latency, 1])
        }
        // The compiler turns the angle into turns first: a multiplication, which takes three cycles more than its unit.
        Op::FApprox(Approx::Sin | Approx::Cos, Ty::F32, _) if chip.compiler.optimise => {
            let ([latency, interval], [multiply, _]) = (chip.units.special, chip.units.f32.mul);
            (ExecUnit::Sfu, Class::Special, [latency + multiply + 3, interval])
        }
        op => times(&chip.units, op),
    };
    let ordering = match inst.op {
        // It follows the accesses of its SM, also those of its own warp.
        Op::Fence(..) if chip.units.fence_waits_for == FenceScope::Sm => {
            Ordering { after_all: false, ..ordering_of(inst.op) }
        }
        Op::Bar(_) => {
            Ordering { after_shared_stores: chip.units.barrier_after_stores, ..Ordering::default() }
        }
        op => ordering_of(op),
    };
    let is_ordered = ordering.after_all || ordering.after_bulk_copies || ordering.after_shared_stores;
    let is_moved = kernel.functions.len() > 1;
    Decoded {
        unit,
        class,
        operation: Operation::of(inst.op, class),
        lanes: LaneOperation::of(inst, constants, &kernel.imms),
        shared_word: SharedWord::of(inst),
        latency_cycles,
        initiation_cycles,
        needs,
        writes,
        reads: reads.into(),
        written,
        needs_registers_only: !is_ordered && !is_moved,
        is_moved,
        ordering,
        leaves_groups: match (inst.op, inst.src[0]) {
            (Op::CpAsyncWait | Op::BulkWait(_), Operand::Imm(groups)) => Some(groups),
            _ => None,
        },
        spin: None,
        takes_lock: false,
        aggregated: false,
        shares_sum: false,
        named_wait: false,
        is_latch: false,
        notes_spin: false,
        yields: false,
        skips_l1: skips_l1(&inst.op),
    }
}

/// Where a compiler puts yields, as far as its machine code shows: before the access that a spin loop polls with, and
/// at the head of a loop in which threads load and store what others do, too.
fn mark_yields(kernel: &Kernel, code: &mut [Decoded]) {
    for decoded in code.iter_mut() {
        // Waiting for an mbarrier takes no longer than its instructions.
        decoded.yields = decoded.spin == Some(SpinRole::Poll) && decoded.unit == ExecUnit::Memory;
    }
    for outer in kernel.loops.iter().filter(|outer| outer.spins_on.is_none()) {
        let end = outer.latches.iter().copied().max().unwrap_or(outer.header);
        let body = &kernel.code[outer.header.index()..=end.index().max(outer.header.index())];
        let shared = |access: Access| access.order != Order::Weak && access.space != Space::Local;
        let loads = body.iter().any(|inst| matches!(inst.op, Op::Ld { access, .. } if shared(access)));
        let stores = body.iter().any(|inst| matches!(inst.op, Op::St(access) if shared(access)));
        code[outer.header.index()].yields |= loads && stores;
    }
}

/// Unit, class, and [latency, initiation interval] of an operation.
fn times(units: &UnitSpec, op: Op) -> (ExecUnit, Class, [u32; 2]) {
    let double = if units.dp > 0 { ExecUnit::Dp } else { ExecUnit::Sfu };
    let by_type = |ty: Ty, of: fn(&OperationTimes) -> [u32; 2]| match ty {
        Ty::F64 => (double, Class::Double, of(&units.f64)),
        ty if ty.is_float() => (ExecUnit::Sp, Class::Float, of(&units.f32)),
        _ => (ExecUnit::Sp, Class::Integer, of(&units.int)),
    };
    let divide = |ty: Ty| match ty {
        Ty::F64 => (double, Class::Double, units.f64.div),
        ty if ty.is_float() => (ExecUnit::Sfu, Class::Special, units.f32.div),
        _ => (ExecUnit::Sfu, Class::Integer, units.int.div),
    };
    let control = (ExecUnit::Control, Class::Control, [1, 1]);
    match op {
        Op::IAdd(Ty::U64 | Ty::S64, _) | Op::ISub(Ty::U64 | Ty::S64, _) => {
            (ExecUnit::Sp, Class::Integer, units.int_add_wide.unwrap_or(units.int.add))
        }
        Op::IMin(..) | Op::IMax(..) => (ExecUnit::Sp, Class::Integer, units.int.max),
        Op::IMul(..) | Op::Mul24(..) => (ExecUnit::Sp, Class::Integer, units.int.mul),
        Op::IMad(..)
        | Op::Mad24(..)
        | Op::MadCarry(..)
        | Op::Sad(_)
        | Op::Dp4a(..)
        | Op::Dp2a(..)
        | Op::Video(_) => (ExecUnit::Sp, Class::Integer, units.int.mad),
        Op::IDiv(ty) | Op::IRem(ty) | Op::FDiv(ty, _) | Op::FRounded(_, ty, _) => divide(ty),
        Op::FDivApprox { .. } => divide(Ty::F32),
        Op::FMin(ty, _) | Op::FMax(ty, _) => by_type(ty, |t| t.max),
        Op::FMul(ty, _) => by_type(ty, |t| t.mul),
        Op::FFma(ty, _) => by_type(ty, |t| t.mad),
        Op::FAdd(ty, _) | Op::FSub(ty, _) | Op::FAbs(ty, _) | Op::FNeg(ty, _) => by_type(ty, |t| t.add),
        Op::Setp { ty, .. } | Op::Set { src: ty, .. } | Op::Testp(_, ty) | Op::Copysign(ty) => {
            by_type(ty, |t| t.add)
        }
        Op::Cvt(cvt) | Op::CvtPair(cvt) => {
            let ty = if cvt.from == Ty::F64 { Ty::F64 } else { cvt.to };
            match units.convert {
                Some(time) if ty != Ty::F64 && cvt.from.is_float() != cvt.to.is_float() => {
                    (ExecUnit::Sfu, Class::Special, time)
                }
                _ => by_type(ty, |t| t.add),
            }
        }
        Op::CvtNarrow(_) => by_type(Ty::F32, |t| t.add),
        Op::Popc(..) | Op::Clz(..) | Op::Bfind(..) | Op::Brev(..) if units.count_bits.is_some() => {
            (ExecUnit::Sfu, Class::Special, units.count_bits.unwrap_or(units.special))
        }
        Op::FApprox(_, Ty::F64, _) => (double, Class::Double, units.special),
        Op::FApprox(..) => (ExecUnit::Sfu, Class::Special, units.special),
        Op::Ld { .. } | Op::CpAsync(_) | Op::LdMatrix(_) | Op::Tex(_) | Op::SurfaceLd(_) => {
            (ExecUnit::Memory, Class::Load, [0, 1])
        }
        Op::St(_) | Op::StUnlock(_) | Op::StMatrix(_) | Op::SurfaceSt(_) => {
            (ExecUnit::Memory, Class::Store, [0, 1])
        }
        Op::Atom(..) | Op::LdLock(_) | Op::SurfaceRed(..) => (ExecUnit::Memory, Class::Atomic, [0, 1]),
        Op::Vote(_) => (ExecUnit::Sp, Class::Exchange, units.vote.unwrap_or(units.exchange)),
        Op::Mma(mma) => {
            let class = match mma.d {
                MatrixTy::F64 => Class::Double,
                MatrixTy::S32 => Class::Integer,
                _ => Class::Float,
            };
            (double, class, matrix_times(units, mma))
        }
        Op::Wgmma(wgmma) => {
            let class = if wgmma.d == MatrixTy::S32 { Class::Integer } else { Class::Float };
            (double, class, group_times(units, wgmma))
        }
        Op::MovMatrix => (ExecUnit::Sp, Class::Exchange, units.exchange),
        op if op.is_exchange() => (ExecUnit::Sp, Class::Exchange, units.exchange),
        Op::Bar(_) | Op::BarWarp | Op::ClusterBar(_) => (ExecUnit::Control, Class::Barrier, [1, 1]),
        Op::Fence(..) | Op::CpAsyncWait | Op::BulkWait(_) => (ExecUnit::Control, Class::Fence, [1, 1]),
        Op::Ssy
        | Op::Bra
        | Op::Brx
        | Op::Call
        | Op::Ret
        | Op::Exit
        | Op::Trap
        | Op::AssertFail
        | Op::Printf
        | Op::Nop
        | Op::Prefetch
        | Op::CpAsyncCommit
        | Op::Bulk(_)
        | Op::BulkCommit
        | Op::WgmmaCommit
        | Op::WgmmaWait
        | Op::Nanosleep
        | Op::Yield => control,
        _ => (ExecUnit::Sp, Class::Integer, units.int.add),
    }
}

/// Latency and initiation interval of a product of matrices: elements of fewer bits go faster.
fn matrix_times(units: &UnitSpec, mma: Mma) -> [u32; 2] {
    let Some(matrix) = &units.matrix else { return units.f64.mad };
    let products = (mma.rows() * 8 * mma.k() * mma.groups()) as u32;
    let per_cycle = match mma.a {
        MatrixTy::F64 => matrix.doubles_per_cycle,
        // They become halves first.
        MatrixTy::E4m3 | MatrixTy::E5m2 => matrix.halves_per_cycle,
        ty => matrix.halves_per_cycle * 16 / ty.bits(),
    };
    [matrix.latency_cycles, products.div_ceil(per_cycle).max(1)]
}

/// The same for a product of four warps, of which each has a part. Its last result comes after all have begun.
fn group_times(units: &UnitSpec, wgmma: warploom_isa::Wgmma) -> [u32; 2] {
    let Some(matrix) = &units.matrix else { return units.f64.mad };
    let products = (16 * 8 * wgmma.tile().k()) as u32 * u32::from(wgmma.eights);
    let interval = products.div_ceil(matrix.group_halves_per_cycle * 16 / wgmma.a.bits()).max(1);
    [matrix.latency_cycles + interval, interval]
}

/// Accesses of a wider scope than the CTA are ordered by waiting: the network keeps no order between slices. Within a
/// CTA all accesses go through one unit in order.
fn ordering_of(op: Op) -> Ordering {
    let (order, scope) = match op {
        Op::Fence(order, scope) => (order, scope),
        Op::Ld { access, .. }
        | Op::St(access)
        | Op::LdLock(access)
        | Op::StUnlock(access)
        | Op::Atom(_, access) => (access.order, access.scope),
        // What is printed or saved is read from memory at once.
        Op::BulkWait(_) => return Ordering { after_bulk_copies: true, ..Ordering::default() },
        Op::CpAsyncWait | Op::Printf | Op::AssertFail | Op::Yield | Op::ClusterBar(ClusterBar::Arrive) => {
            return Ordering { after_all: true, ..Ordering::default() };
        }
        _ => return Ordering::default(),
    };
    if scope == Scope::Cta {
        return Ordering::default();
    }
    let fence = matches!(op, Op::Fence(..));
    Ordering {
        after_all: fence || matches!(order, Order::Release | Order::AcqRel | Order::SeqCst),
        before_all: fence || matches!(order, Order::Acquire | Order::AcqRel | Order::SeqCst),
        ..Ordering::default()
    }
}

/// The pc after `pc`.
pub(crate) const fn next(pc: Pc) -> Pc {
    Pc(pc.0 + 1)
}
