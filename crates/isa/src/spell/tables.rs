//! The words of every type and modifier. Each table lists the values that some operations may have.

use super::words::*;
use crate::types::*;

/// Only the width matters.
pub(super) const SIZE: Table<Ty> = Table(&[
    (Ty::B32, ""),
    (Ty::U32, ""),
    (Ty::S32, ""),
    (Ty::F32, ""),
    (Ty::B64, "64"),
    (Ty::U64, "64"),
    (Ty::S64, "64"),
    (Ty::F64, "64"),
    (Ty::B8, ""),
    (Ty::U8, ""),
    (Ty::S8, ""),
    (Ty::B16, ""),
    (Ty::U16, ""),
    (Ty::S16, ""),
    (Ty::F16, ""),
    (Ty::BF16, ""),
    (Ty::F16x2, ""),
    (Ty::BF16x2, ""),
    (Ty::U16x2, ""),
    (Ty::S16x2, ""),
]);

/// Sums and low products: signedness makes no difference.
pub(super) const SIGNLESS: Table<Ty> = Table(&[
    (Ty::S32, ""),
    (Ty::U32, ""),
    (Ty::S64, "64"),
    (Ty::U64, "64"),
    (Ty::S16, "16"),
    (Ty::U16, "16"),
    (Ty::S32, "S32"),
    (Ty::U32, "U32"),
    (Ty::S64, "S64"),
    (Ty::U64, "U64"),
]);
pub(super) const PAIRS: Table<Ty> = Table(&[(Ty::S16x2, "S16X2"), (Ty::U16x2, "U16X2")]);
pub(super) const INTS_AND_PAIRS: Table<Ty> = Table(&[
    (Ty::S32, ""),
    (Ty::U32, "U32"),
    (Ty::S64, "S64"),
    (Ty::U64, "U64"),
    (Ty::S16, "S16"),
    (Ty::U16, "U16"),
    (Ty::S16x2, "S16X2"),
    (Ty::U16x2, "U16X2"),
]);
pub(super) const INTS: Table<Ty> = Table(&[
    (Ty::S32, ""),
    (Ty::U32, "U32"),
    (Ty::S64, "S64"),
    (Ty::U64, "U64"),
    (Ty::S16, "S16"),
    (Ty::U16, "U16"),
]);
/// Integers whose product has twice the width.
pub(super) const NARROW_INTS: Table<Ty> =
    Table(&[(Ty::S32, ""), (Ty::U32, "U32"), (Ty::S16, "S16"), (Ty::U16, "U16")]);
pub(super) const SIGNED: Table<Ty> = Table(&[(Ty::S32, ""), (Ty::S64, "S64"), (Ty::S16, "S16")]);
pub(super) const WORDS: Table<Ty> = Table(&[(Ty::S32, ""), (Ty::U32, "U32")]);
pub(super) const FIELDS: Table<Ty> =
    Table(&[(Ty::S32, ""), (Ty::U32, "U32"), (Ty::S64, "S64"), (Ty::U64, "U64")]);
/// For carries and addresses.
pub(super) const UNSIGNED: Table<Ty> = Table(&[(Ty::U32, ""), (Ty::U64, "64")]);
/// Right shifts: signedness decides which bits are shifted in.
pub(super) const SHIFTED: Table<Ty> = Table(&[
    (Ty::S32, ""),
    (Ty::U32, "U32"),
    (Ty::S64, "S64"),
    (Ty::U64, "U64"),
    (Ty::S16, "S16"),
    (Ty::U16, "U16"),
    (Ty::B32, "U32"),
    (Ty::B64, "U64"),
    (Ty::B16, "U16"),
]);
pub(super) const BITS: Table<Ty> = Table(&[(Ty::B32, ""), (Ty::B64, "64"), (Ty::B16, "16")]);
pub(super) const WIDE_BITS: Table<Ty> = Table(&[(Ty::B32, ""), (Ty::B64, "64")]);
/// Comparisons for equality: signedness makes no difference.
pub(super) const EQUATED: Table<Ty> = Table(&[
    (Ty::S32, ""),
    (Ty::B32, ""),
    (Ty::S64, "S64"),
    (Ty::B64, "S64"),
    (Ty::S16, "S16"),
    (Ty::B16, "S16"),
]);
/// Types with `RELU`.
pub(super) const RELU_TYPES: Table<Ty> = Table(&[(Ty::S32, ""), (Ty::S16x2, "S16X2")]);
/// Half precision where the name does not imply it.
pub(super) const HALF_WORDS: Table<Ty> =
    Table(&[(Ty::F16, "F16"), (Ty::F16x2, "F16X2"), (Ty::BF16, "BF16"), (Ty::BF16x2, "BF16X2")]);
/// Half precision where the name implies it.
pub(super) const HALVES: Table<Ty> =
    Table(&[(Ty::F16, ""), (Ty::F16x2, "F16X2"), (Ty::BF16, "BF16"), (Ty::BF16x2, "BF16X2")]);
pub(super) const FLOATS: Table<Ty> = Table(&[(Ty::F32, ""), (Ty::F64, "F64")]);
/// Source types of `SET`.
pub(super) const SET_SOURCES: Table<Ty> = Table(&[
    (Ty::S32, "S32"),
    (Ty::U32, "U32"),
    (Ty::S64, "S64"),
    (Ty::U64, "U64"),
    (Ty::S16, "S16"),
    (Ty::U16, "U16"),
    (Ty::B32, "B32"),
    (Ty::B64, "B64"),
    (Ty::B16, "B16"),
    (Ty::F32, "F32"),
    (Ty::F64, "F64"),
    (Ty::F16, "F16"),
    (Ty::F16x2, "F16X2"),
    (Ty::BF16, "BF16"),
    (Ty::BF16x2, "BF16X2"),
]);
/// Result types of `SET`.
pub(super) const SET_RESULTS: Table<Ty> = Table(&[
    (Ty::U32, "U32"),
    (Ty::S32, "S32"),
    (Ty::F32, "F32"),
    (Ty::U16, "U16"),
    (Ty::S16, "S16"),
    (Ty::F16, "F16"),
    (Ty::BF16, "BF16"),
    (Ty::F16x2, "F16X2"),
    (Ty::BF16x2, "BF16X2"),
    (Ty::U16x2, "U16X2"),
]);
/// Integer types of conversions, never implied.
pub(super) const CVT_INTS: Table<Ty> = Table(&[
    (Ty::S32, "S32"),
    (Ty::U32, "U32"),
    (Ty::S64, "S64"),
    (Ty::U64, "U64"),
    (Ty::S16, "S16"),
    (Ty::U16, "U16"),
    (Ty::S8, "S8"),
    (Ty::U8, "U8"),
]);
/// Float types of conversions, never implied.
pub(super) const CVT_FLOATS: Table<Ty> =
    Table(&[(Ty::F32, "F32"), (Ty::F64, "F64"), (Ty::F16, "F16"), (Ty::BF16, "BF16")]);
pub(super) const CVT_PAIRS: Table<Ty> = Table(&[(Ty::F16x2, "F16X2"), (Ty::BF16x2, "BF16X2")]);
/// Result types of `I2IP`.
pub(super) const PACKED: Table<Ty> =
    Table(&[(Ty::S16, "S16"), (Ty::U16, "U16"), (Ty::S8, "S8"), (Ty::U8, "U8")]);
/// Types of loads and stores: a width, and how narrow loads extend.
pub(super) const MOVED: Table<Ty> = Table(&[
    (Ty::B32, ""),
    (Ty::U32, ""),
    (Ty::S32, ""),
    (Ty::F32, ""),
    (Ty::B64, "64"),
    (Ty::U64, "64"),
    (Ty::S64, "64"),
    (Ty::F64, "64"),
    (Ty::U8, "U8"),
    (Ty::B8, "U8"),
    (Ty::S8, "S8"),
    (Ty::U16, "U16"),
    (Ty::B16, "U16"),
    (Ty::S16, "S16"),
]);
/// Types of atomics.
pub(super) const ATOMIC: Table<Ty> = Table(&[
    (Ty::U32, ""),
    (Ty::B32, ""),
    (Ty::S32, "S32"),
    (Ty::U64, "64"),
    (Ty::B64, "64"),
    (Ty::S64, "S64"),
    (Ty::F32, "F32"),
    (Ty::F64, "F64"),
    (Ty::F16, "F16"),
    (Ty::F16x2, "F16X2"),
    (Ty::BF16, "BF16"),
    (Ty::BF16x2, "BF16X2"),
    (Ty::B16, "16"),
]);
/// Types of `REDUX`.
pub(super) const REDUCED: Table<Ty> =
    Table(&[(Ty::S32, ""), (Ty::U32, "U32"), (Ty::B32, "B32"), (Ty::F32, "F32")]);

pub(super) const HALF_PARTS: Table<Part> = Table(&[(Part::Lo, ""), (Part::Hi, "HI")]);
pub(super) const SAT: Table<Clamp> = Table(&[(Clamp::None, ""), (Clamp::Sat, "SAT")]);
pub(super) const COMPARISONS: Table<Cmp> = Table(&[
    (Cmp::Eq, "EQ"),
    (Cmp::Ne, "NE"),
    (Cmp::Lt, "LT"),
    (Cmp::Le, "LE"),
    (Cmp::Gt, "GT"),
    (Cmp::Ge, "GE"),
    (Cmp::Equ, "EQU"),
    (Cmp::Neu, "NEU"),
    (Cmp::Ltu, "LTU"),
    (Cmp::Leu, "LEU"),
    (Cmp::Gtu, "GTU"),
    (Cmp::Geu, "GEU"),
    (Cmp::Num, "NUM"),
    (Cmp::Nan, "NAN"),
]);
pub(super) const INT_COMPARISONS: Table<Cmp> = Table(&[
    (Cmp::Eq, "EQ"),
    (Cmp::Ne, "NE"),
    (Cmp::Lt, "LT"),
    (Cmp::Le, "LE"),
    (Cmp::Gt, "GT"),
    (Cmp::Ge, "GE"),
]);
pub(super) const EQUALITIES: Table<Cmp> = Table(&[(Cmp::Eq, "EQ"), (Cmp::Ne, "NE")]);
/// Fermi always combines. `AND` with `PT` is its way to write no combination.
pub(super) const COMBINATIONS: Table<Combine> = Table(&[
    (Combine::None, "AND"),
    (Combine::And, "AND"),
    (Combine::Or, "OR"),
    (Combine::Xor, "XOR"),
    (Combine::None, ""),
]);
pub(super) const LOGIC: Table<Logic> = Table(&[(Logic::And, "AND"), (Logic::Or, "OR"), (Logic::Xor, "XOR")]);
pub(super) const FUNCTIONS: Table<Approx> = Table(&[
    (Approx::Rcp, "RCP"),
    (Approx::Sqrt, "SQRT"),
    (Approx::Rsqrt, "RSQ"),
    (Approx::Sin, "SIN"),
    (Approx::Cos, "COS"),
    (Approx::Lg2, "LG2"),
    (Approx::Ex2, "EX2"),
    (Approx::Tanh, "TANH"),
]);
pub(super) const KINDS: Table<TestKind> = Table(&[
    (TestKind::Finite, "FINITE"),
    (TestKind::Infinite, "INFINITE"),
    (TestKind::Number, "NUMBER"),
    (TestKind::NotANumber, "NAN"),
    (TestKind::Normal, "NORMAL"),
    (TestKind::Subnormal, "SUBNORMAL"),
]);
pub(super) const SELECTIONS: Table<PrmtMode> = Table(&[
    (PrmtMode::Index, ""),
    (PrmtMode::F4e, "F4E"),
    (PrmtMode::B4e, "B4E"),
    (PrmtMode::Rc8, "RC8"),
    (PrmtMode::Ecl, "ECL"),
    (PrmtMode::Ecr, "ECR"),
    (PrmtMode::Rc16, "RC16"),
]);
pub(super) const SIGNS: Table<bool> = Table(&[(true, "S8"), (false, "U8")]);
pub(super) const LEFT: Table<bool> = Table(&[(true, "L"), (false, "R")]);
pub(super) const WORD: Table<u8> = Table(&[(0, "W0"), (1, "W1")]);
pub(super) const HALF: Table<u8> = Table(&[(0, "H0"), (1, "H1")]);
pub(super) const BYTE: Table<u8> = Table(&[(0, "B0"), (1, "B1"), (2, "B2"), (3, "B3")]);
/// Bytes of an asynchronous copy, written in bits.
pub(super) const COPIED: Table<u8> = Table(&[(4, "32"), (8, "64"), (16, "128")]);
pub(super) const CLUSTER_BARS: Table<ClusterBar> = Table(&[
    (ClusterBar::Arrive, "ARV"),
    (ClusterBar::ArriveRelaxed, "ARV_RELAXED"),
    (ClusterBar::Wait, "WAIT"),
]);
pub(super) const SPACES: Table<Space> = Table(&[
    (Space::Global, "GLOBAL"),
    (Space::Shared, "SHARED"),
    (Space::Cluster, "CLUSTER"),
    (Space::Local, "LOCAL"),
    (Space::Const, "CONST"),
    (Space::Param, "PARAM"),
]);
pub(super) const FENCES: Table<Order> = Table(&[
    (Order::AcqRel, "ACQ_REL"),
    (Order::SeqCst, "SC"),
    (Order::Acquire, "ACQUIRE"),
    (Order::Release, "RELEASE"),
]);
pub(super) const FENCE_SCOPES: Table<Scope> =
    Table(&[(Scope::Cta, "CTA"), (Scope::Cluster, "CLUSTER"), (Scope::Gpu, "GPU"), (Scope::Sys, "SYS")]);
/// Scopes as Fermi's `MEMBAR` names them.
pub(super) const MEMBAR_SCOPES: Table<Scope> =
    Table(&[(Scope::Cta, "CTA"), (Scope::Gpu, "GL"), (Scope::Sys, "SYS"), (Scope::Cluster, "CLUSTER")]);
pub(super) const ATOMICS: Table<AtomOp> = Table(&[
    (AtomOp::Add, "ADD"),
    (AtomOp::Min, "MIN"),
    (AtomOp::Max, "MAX"),
    (AtomOp::And, "AND"),
    (AtomOp::Or, "OR"),
    (AtomOp::Xor, "XOR"),
    (AtomOp::Inc, "INC"),
    (AtomOp::Dec, "DEC"),
    (AtomOp::Exch, "EXCH"),
    (AtomOp::Cas, "CAS"),
]);
pub(super) const REDUCTIONS: Table<ReduxOp> = Table(&[
    (ReduxOp::Add, "ADD"),
    (ReduxOp::Min, "MIN"),
    (ReduxOp::Max, "MAX"),
    (ReduxOp::MinNan, "MINNAN"),
    (ReduxOp::MaxNan, "MAXNAN"),
    (ReduxOp::And, "AND"),
    (ReduxOp::Or, "OR"),
    (ReduxOp::Xor, "XOR"),
]);
pub(super) const VOTES: Table<VoteMode> = Table(&[
    (VoteMode::Any, "ANY"),
    (VoteMode::All, "ALL"),
    (VoteMode::Uni, "EQ"),
    (VoteMode::Ballot, "BALLOT"),
]);
pub(super) const SHUFFLES: Table<ShflMode> = Table(&[
    (ShflMode::Idx, "IDX"),
    (ShflMode::Up, "UP"),
    (ShflMode::Down, "DOWN"),
    (ShflMode::Bfly, "BFLY"),
]);
pub(super) const MBARRIERS: Table<MbarrierOp> = Table(&[
    (MbarrierOp::Init, "INIT"),
    (MbarrierOp::Inval, "INVAL"),
    (MbarrierOp::Arrive, "ARRIVE"),
    (MbarrierOp::ArriveDrop, "ARRIVE_DROP"),
    (MbarrierOp::ArriveExpectTx, "ARRIVE_EXPECT_TX"),
    (MbarrierOp::ExpectTx, "EXPECT_TX"),
    (MbarrierOp::CompleteTx, "COMPLETE_TX"),
    (MbarrierOp::TestWait, "TEST_WAIT"),
    (MbarrierOp::TestWaitParity, "TEST_WAIT_PARITY"),
    (MbarrierOp::PendingCount, "PENDING_COUNT"),
]);

const ROUNDS: Table<Round> =
    Table(&[(Round::Rn, ""), (Round::Rz, "RZ"), (Round::Rm, "RM"), (Round::Rp, "RP")]);
const NEAREST: Table<Round> = Table(&[(Round::Rn, "")]);
const NO_CLAMP: Table<Clamp> = Table(&[(Clamp::None, "")]);
pub(super) const SINGLE: Mode = Mode { round: ROUNDS, clamp: SAT, ftz: true };
/// Division, reciprocal and square root in single precision.
pub(super) const SINGLE_QUOTIENT: Mode = Mode { round: ROUNDS, clamp: NO_CLAMP, ftz: true };
pub(super) const DOUBLE: Mode = Mode { round: ROUNDS, clamp: NO_CLAMP, ftz: false };
pub(super) const HALF_MODE: Mode = Mode { round: NEAREST, clamp: SAT, ftz: true };
/// Fused multiply-add in half precision.
pub(super) const HALF_FUSED: Mode = Mode { round: NEAREST, clamp: CLAMPS, ftz: true };

const WEAK_ORDERS: Table<Order> = Table(&[
    (Order::Weak, ""),
    (Order::Volatile, "VOLATILE"),
    (Order::Relaxed, "RELAXED"),
    (Order::Acquire, "ACQUIRE"),
    (Order::Release, "RELEASE"),
    (Order::Mmio, "MMIO"),
]);
const SCOPES: Table<Scope> = Table(&[
    (Scope::Sys, ""),
    (Scope::Cta, "CTA"),
    (Scope::Cluster, "CLUSTER"),
    (Scope::Gpu, "GPU"),
    (Scope::Sys, "SYS"),
]);
const LOAD_CACHES: Table<Cache> = Table(&[
    (Cache::All, ""),
    (Cache::Cg, "CG"),
    (Cache::Cs, "CS"),
    (Cache::Lu, "LU"),
    (Cache::Cv, "CV"),
    (Cache::Nc, "NC"),
]);
const STORE_CACHES: Table<Cache> =
    Table(&[(Cache::All, ""), (Cache::Cg, "CG"), (Cache::Cs, "CS"), (Cache::Cv, "WT")]);
const NO_CACHES: Table<Cache> = Table(&[(Cache::All, "")]);

pub(super) const fn load(spaces: &'static [(Space, &'static str)]) -> Memory {
    Memory {
        spaces: Table(spaces),
        types: MOVED,
        orders: WEAK_ORDERS,
        scopes: SCOPES,
        caches: LOAD_CACHES,
        vectors: true,
    }
}

pub(super) const fn store(spaces: &'static [(Space, &'static str)]) -> Memory {
    Memory { caches: STORE_CACHES, ..load(spaces) }
}

pub(super) const fn atomic(spaces: &'static [(Space, &'static str)]) -> Memory {
    const ORDERS: Table<Order> = Table(&[
        (Order::Relaxed, ""),
        (Order::Acquire, "ACQUIRE"),
        (Order::Release, "RELEASE"),
        (Order::AcqRel, "ACQ_REL"),
    ]);
    const SCOPES: Table<Scope> = Table(&[
        (Scope::Gpu, ""),
        (Scope::Cta, "CTA"),
        (Scope::Cluster, "CLUSTER"),
        (Scope::Gpu, "GPU"),
        (Scope::Sys, "SYS"),
    ]);
    Memory {
        spaces: Table(spaces),
        types: ATOMIC,
        orders: ORDERS,
        scopes: SCOPES,
        caches: NO_CACHES,
        vectors: false,
    }
}

/// Accesses that take or free a lock bit of shared memory, through an address in one of these spaces.
pub(super) const fn locked(spaces: &'static [(Space, &'static str)]) -> Memory {
    Memory { spaces: Table(spaces), ..LOCKED }
}

const LOCKED: Memory = Memory {
    spaces: Table(&[]),
    types: Table(&[
        (Ty::B32, ""),
        (Ty::U32, ""),
        (Ty::S32, ""),
        (Ty::F32, ""),
        (Ty::F16x2, ""),
        (Ty::BF16x2, ""),
        (Ty::B64, "64"),
        (Ty::U64, "64"),
        (Ty::S64, "64"),
        (Ty::F64, "64"),
        (Ty::U16, "U16"),
        (Ty::B16, "U16"),
        (Ty::F16, "U16"),
        (Ty::BF16, "U16"),
    ]),
    // The default scope is the CTA: no other thread sees its shared memory.
    orders: Table(&[
        (Order::Relaxed, ""),
        (Order::Acquire, "ACQUIRE"),
        (Order::Release, "RELEASE"),
        (Order::Weak, "WEAK"),
        (Order::Volatile, "VOLATILE"),
    ]),
    scopes: Table(&[(Scope::Cta, ""), (Scope::Cluster, "CLUSTER"), (Scope::Gpu, "GPU"), (Scope::Sys, "SYS")]),
    caches: NO_CACHES,
    vectors: false,
};
