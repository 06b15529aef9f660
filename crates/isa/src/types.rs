//! Value types, state spaces and the small enums that parametrise an opcode.

use std::fmt;

/// The type of a value as an instruction sees it. Registers themselves are untyped 32-bit words:
/// 8- and 16-bit values live in the low bits of one (the rest is undefined), 64-bit values in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ty {
    B8,
    B16,
    B32,
    B64,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F64,
}

impl Ty {
    const ALL: [Ty; 20] = [
        Ty::B8,
        Ty::B16,
        Ty::B32,
        Ty::B64,
        Ty::U8,
        Ty::U16,
        Ty::U32,
        Ty::U64,
        Ty::S8,
        Ty::S16,
        Ty::S32,
        Ty::S64,
        Ty::U16x2,
        Ty::S16x2,
        Ty::F16,
        Ty::F16x2,
        Ty::BF16,
        Ty::BF16x2,
        Ty::F32,
        Ty::F64,
    ];

    /// The type with this PTX name, without the dot.
    pub fn named(name: &str) -> Option<Ty> {
        Ty::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Size in memory, in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Ty::B8 | Ty::U8 | Ty::S8 => 1,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::BF16 => 2,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 8,
            _ => 4,
        }
    }

    pub const fn bits(self) -> u32 {
        self.bytes() * 8
    }

    /// Whether a register of this type takes two words.
    pub const fn is_wide(self) -> bool {
        self.bytes() == 8
    }

    /// Whether the type is a signed integer (or a pair of them).
    pub const fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 | Ty::S16x2)
    }

    /// Whether the type is a floating-point number (or a pair of them).
    pub const fn is_float(self) -> bool {
        matches!(self, Ty::F16 | Ty::F16x2 | Ty::BF16 | Ty::BF16x2 | Ty::F32 | Ty::F64)
    }

    /// The PTX name, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Ty::B8 => "b8",
            Ty::B16 => "b16",
            Ty::B32 => "b32",
            Ty::B64 => "b64",
            Ty::U8 => "u8",
            Ty::U16 => "u16",
            Ty::U32 => "u32",
            Ty::U64 => "u64",
            Ty::S8 => "s8",
            Ty::S16 => "s16",
            Ty::S32 => "s32",
            Ty::S64 => "s64",
            Ty::U16x2 => "u16x2",
            Ty::S16x2 => "s16x2",
            Ty::F16 => "f16",
            Ty::F16x2 => "f16x2",
            Ty::BF16 => "bf16",
            Ty::BF16x2 => "bf16x2",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state space of a memory access or variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Any of the others: the window of the address decides.
    Generic,
    /// Device memory.
    Global,
    /// The CTA's scratchpad; addresses start at 0.
    Shared,
    /// The scratchpad of another CTA of the cluster. Only generic addresses lead to it.
    Cluster,
    /// The thread's private memory (stack); addresses start at 0.
    Local,
    /// The module's constant bank; addresses start at 0.
    Const,
    /// The kernel's parameter buffer; addresses start at 0. (Parameters of device functions are `Local`.)
    Param,
}

impl Space {
    /// The PTX name, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Cluster => "shared::cluster",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
        }
    }
}

/// The memory order of an access or fence. It also decides whether an access may hit in a cache that is not coherent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
    Mmio,
}

/// The threads that must observe the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// The cache operator of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cache {
    /// `.ca` for loads, `.wb` for stores, and the default.
    All,
    /// Cache in L2 only.
    Cg,
    /// Streaming.
    Cs,
    /// Last use.
    Lu,
    /// Do not cache, fetch again (loads); write through (stores: `.wt`).
    Cv,
    /// Through the read-only (texture) path.
    Nc,
}

/// A memory access without its address and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub space: Space,
    /// Type of one element.
    pub ty: Ty,
    /// Number of elements: 1, 2, 4 or 8.
    pub count: u8,
    pub order: Order,
    pub scope: Scope,
    pub cache: Cache,
    /// Whether the base address is a 64-bit register (two words) or a 32-bit one. (PTX lets 64-bit code
    /// address shared memory with 32-bit registers.) Ignored for immediates and `Frame`.
    pub wide_address: bool,
}

impl Access {
    /// A plain weak access of one element through a 64-bit address.
    pub const fn plain(space: Space, ty: Ty) -> Self {
        Access {
            space,
            ty,
            count: 1,
            order: Order::Weak,
            scope: Scope::Sys,
            cache: Cache::All,
            wide_address: true,
        }
    }

    /// Bytes moved per lane.
    pub const fn bytes(self) -> u32 {
        self.ty.bytes() * self.count as u32
    }
}

/// Rounding of a floating-point result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// To nearest, ties to even.
    Rn,
    /// To nearest, ties away from zero (`cvt.rna`).
    Rna,
    /// Toward zero.
    Rz,
    /// Toward minus infinity.
    Rm,
    /// Toward plus infinity.
    Rp,
}

/// Clamping of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clamp {
    None,
    /// Floats to [0, 1] with NaN to 0; integers to the type's range.
    Sat,
    /// Negative to 0, NaN canonical.
    Relu,
}

/// How a floating-point operation rounds, flushes and clamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatMode {
    pub round: Round,
    /// Subnormal inputs and results become zero of the same sign.
    pub ftz: bool,
    pub clamp: Clamp,
}

impl FloatMode {
    /// Round to nearest even, keep subnormals, no clamp.
    pub const RN: FloatMode = FloatMode { round: Round::Rn, ftz: false, clamp: Clamp::None };
}

/// Which part of a product is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Lo,
    Hi,
    /// Both halves: the result has twice the width.
    Wide,
}

/// A comparison. `Lt` to `Ge` follow the type's signedness. The forms with `u` at the end (unordered) are also true for
/// NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Neither operand is NaN.
    Num,
    /// At least one operand is NaN.
    Nan,
}

/// How a comparison's result is combined with a third, predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    None,
    And,
    Or,
    Xor,
}

/// A two-input bitwise operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    And,
    Or,
    Xor,
}

/// The operation of an `atom` or `red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Inc,
    Dec,
    Exch,
    Cas,
}

/// The reduction of `redux.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduxOp {
    Add,
    Min,
    Max,
    /// As `Min` and `Max`, but NaN if any of the numbers is.
    MinNan,
    MaxNan,
    And,
    Or,
    Xor,
}

/// What happens to the top of a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackOp {
    /// d = the address of a more bytes. The alignment is a power of two, of which this is the exponent.
    Alloca(u8),
    /// d = the address that the next bytes would have.
    Save,
    /// The next bytes have the address a.
    Restore,
}

/// Selection mode of `prmt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrmtMode {
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// The property that `testp` tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestKind {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// A one-input approximation computed by the special-function unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Approx {
    Rcp,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
}

/// The mode of `vote`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

/// How `shfl` chooses the source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

/// What a warp does at a named barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarMode {
    /// Arrive and wait.
    Sync,
    /// Arrive only.
    Arrive,
    /// Wait, and count the threads whose predicate is true.
    RedPopc,
    /// Wait, and return whether all predicates are true.
    RedAnd,
    /// Wait, and return whether any predicate is true.
    RedOr,
}

/// What a warp does at the barrier of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterBar {
    /// Arrive, after the thread's earlier accesses.
    Arrive,
    /// Arrive, in no order with other accesses.
    ArriveRelaxed,
    /// Wait for the phase of the last arrival.
    Wait,
}

/// An operation on an `mbarrier` object (a 64-bit word of shared memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MbarrierOp {
    /// `src` = address, offset, count.
    Init,
    /// `src` = address, offset.
    Inval,
    /// `dst` = state (optional); `src` = address, offset, count.
    Arrive,
    /// As `Arrive`, and the expected count of later phases decreases by `count`.
    ArriveDrop,
    /// Arrives once; the phase also waits for `count` transferred bytes.
    ArriveExpectTx,
    /// `src` = address, offset, bytes.
    ExpectTx,
    /// `src` = address, offset, bytes.
    CompleteTx,
    /// `dst` = predicate; `src` = address, offset, state. True if the phase of `state` has completed.
    TestWait,
    /// `dst` = predicate; `src` = address, offset, parity.
    TestWaitParity,
    /// `dst` = count; `src` = state.
    PendingCount,
}

/// A read-only register that the hardware provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    /// The cluster's coordinates in the grid of clusters.
    ClusterIdX,
    ClusterIdY,
    ClusterIdZ,
    /// Clusters in each dimension of the grid.
    NclusterIdX,
    NclusterIdY,
    NclusterIdZ,
    /// The CTA's coordinates in its cluster.
    ClusterCtaidX,
    ClusterCtaidY,
    ClusterCtaidZ,
    /// CTAs in each dimension of a cluster.
    ClusterNctaidX,
    ClusterNctaidY,
    ClusterNctaidZ,
    /// The CTA's number in its cluster.
    ClusterCtarank,
    /// CTAs of a cluster.
    ClusterNctarank,
    /// 1 if the launch names the size of clusters.
    ExplicitCluster,
    LaneId,
    /// The lane's number in the whole wavefront.
    WaveLaneId,
    /// Number of lanes in a wavefront.
    WaveLanes,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    /// 64 bits wide.
    GridId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    /// Low word of the cycle counter.
    Clock,
    ClockHi,
    /// 64 bits wide.
    Clock64,
    /// 64 bits wide: nanoseconds.
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    DynamicSmemSize,
    TotalSmemSize,
    /// High word of the address of a cooperative launch's workspace (`%envreg1`); zero in other launches.
    WorkspaceHi,
    /// Low word of that address (`%envreg2`).
    WorkspaceLo,
    /// Reads as zero: other environment registers, performance monitors.
    Zero,
    /// 64 bits wide, reads as zero.
    Zero64,
}

impl Special {
    /// Whether the value takes two words.
    pub const fn is_wide(self) -> bool {
        matches!(self, Special::GridId | Special::Clock64 | Special::GlobalTimer | Special::Zero64)
    }
}
