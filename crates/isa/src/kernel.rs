//! What a machine executes: one kernel with every function it can reach, linked into one flat code array. Start at
//! [`Kernel`].
//!
//! Each kernel is linked by itself, so that its shared memory holds only what it uses.

use crate::inst::*;
use crate::module::*;
use crate::types::*;

/// Addresses and features of a machine that linking needs.
#[derive(Clone, Debug, Default)]
pub struct AddressMap {
    /// The address of each variable of the module in its space. Only those of global and constant variables are read.
    pub variables: Vec<u64>,
    /// The windows of the other spaces in generic addresses.
    pub windows: Windows,
    /// Shared memory has lock bits: atomics on it become loops that take and free them.
    pub lock_bits: bool,
    /// Code over virtual registers is optimised and scheduled as a compiler would.
    pub optimise: bool,
}

/// The generic address space: every space but global has a window in it. All windows lie below 4 GB, so that 32-bit
/// code can address them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    pub shared: u64,
    pub local: u64,
    pub constant: u64,
    pub param: u64,
    /// Size of each window.
    pub bytes: u64,
    /// Start of the function handles: function `i` of the module is at `functions + 16 * i`.
    pub functions: u64,
    /// Shared memory of the CTAs of a cluster, one window after the other in the order of their ranks.
    pub cluster: u64,
}

/// CTAs of a cluster, at most.
pub const MAX_CLUSTER_CTAS: u32 = 16;

impl Default for Windows {
    fn default() -> Self {
        Windows {
            shared: 0x0100_0000,
            local: 0x0200_0000,
            constant: 0x0300_0000,
            param: 0x0400_0000,
            bytes: 0x0100_0000,
            functions: 0x0500_0000,
            cluster: 0x1000_0000,
        }
    }
}

impl Windows {
    /// The start of a space's window; 0 for global addresses, which are generic already.
    pub const fn base(&self, space: Space) -> u64 {
        match space {
            Space::Shared => self.shared,
            Space::Cluster => self.cluster,
            Space::Local => self.local,
            Space::Const => self.constant,
            Space::Param => self.param,
            Space::Global | Space::Generic => 0,
        }
    }

    /// If a generic address lies in the shared memory of a CTA of the cluster by its rank: the rank, and the address
    /// there.
    pub const fn cluster_of(&self, address: u64) -> Option<(u32, u64)> {
        let inside = address.wrapping_sub(self.cluster);
        if inside >= self.bytes * MAX_CLUSTER_CTAS as u64 {
            return None;
        }
        Some(((inside / self.bytes) as u32, inside % self.bytes))
    }

    /// The generic address of a place in the shared memory of the CTA of a rank.
    pub const fn in_cluster(&self, rank: u32, offset: u64) -> u64 {
        self.cluster + rank as u64 * self.bytes + offset % self.bytes
    }

    /// The space that a generic address belongs to, other than the shared memory of other CTAs.
    #[inline]
    pub const fn space_of(&self, address: u64) -> Space {
        if address.wrapping_sub(self.shared) < self.bytes {
            Space::Shared
        } else if address.wrapping_sub(self.local) < self.bytes {
            Space::Local
        } else if address.wrapping_sub(self.constant) < self.bytes {
            Space::Const
        } else if address.wrapping_sub(self.param) < self.bytes {
            Space::Param
        } else {
            Space::Global
        }
    }
}

/// A function in a kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionImage {
    pub name: String,
    /// The function's number in the module.
    pub id: FuncId,
    pub start: Pc,
    /// One past the last instruction.
    pub end: Pc,
    /// 32-bit registers per activation.
    pub registers: u32,
    /// Predicates per activation.
    pub predicates: u32,
    /// Local memory per activation, a multiple of 16.
    pub frame_bytes: u32,
    /// Named parts of the frame: (name, offset, bytes).
    pub frame_vars: Vec<(String, u32, u32)>,
}

/// A call site in linked code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedCall {
    pub callee: LinkedCallee,
    /// Copied into the callee's frame.
    pub args: Vec<FrameCopy>,
    /// Copied back from the callee's frame.
    pub returns: Vec<FrameCopy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedCallee {
    /// Index into [`Kernel::functions`].
    Direct(u32),
    /// A function handle (see [`Windows::functions`]).
    Indirect(Operand),
}

/// A shared variable and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedVar {
    pub name: String,
    /// Address in shared memory.
    pub offset: u32,
    /// 0 for the dynamic part, whose size the launch gives.
    pub bytes: u32,
}

/// A loop in linked code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The loop's first instruction.
    pub header: Pc,
    /// The backward branches that close it.
    pub latches: Vec<Pc>,
    /// Nesting depth, 1 for an outermost loop.
    pub depth: u32,
    /// The load or atomic whose value decides whether the loop goes on, if its address is the same in every
    /// iteration: the loop may be waiting for another thread.
    pub spins_on: Option<Pc>,
    /// The loop stands for an atomic ([`AtomicLoop`]) and is not in the program's text. It spins on the load that takes
    /// the lock bit.
    pub of_atomic: bool,
    /// If the loop spins: the write that ends the wait.
    pub ends: WaitEnds,
}

/// The write that ends the wait of a spin loop, if the function's code shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitEnds {
    /// Nobody is waited for: this compare-and-swap is retried only if another thread has changed the word.
    LockFree(Pc),
    /// While it waits, the wavefront gives its place on the compute unit to others.
    Yields(Pc),
    /// The lane that takes the lock releases it in the same iteration, on every path, before it waits for the others.
    Released(Pc),
    /// The loop itself writes the polled word, but perhaps not on every path of a lane that took a lock.
    Inside(Pc),
    /// The polled word is written outside the loop.
    Outside(Pc),
    /// The function has no visible write to that address.
    #[default]
    Elsewhere,
}

impl WaitEnds {
    /// The same write in code whose instructions have moved.
    pub(crate) fn at(self, moved: impl Fn(Pc) -> Pc) -> WaitEnds {
        match self {
            WaitEnds::LockFree(pc) => WaitEnds::LockFree(moved(pc)),
            WaitEnds::Yields(pc) => WaitEnds::Yields(moved(pc)),
            WaitEnds::Released(pc) => WaitEnds::Released(moved(pc)),
            WaitEnds::Inside(pc) => WaitEnds::Inside(moved(pc)),
            WaitEnds::Outside(pc) => WaitEnds::Outside(moved(pc)),
            WaitEnds::Elsewhere => WaitEnds::Elsewhere,
        }
    }
}

/// An atomic that was expanded into a loop around a lock bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicLoop {
    /// The load that takes the lock bit; the loop's first instruction.
    pub load: Pc,
    /// The store that frees the lock bit.
    pub store: Pc,
    /// The backward branch; the loop's last instruction.
    pub branch: Pc,
    pub op: AtomOp,
}

impl AtomicLoop {
    pub fn contains(&self, pc: Pc) -> bool {
        self.load <= pc && pc <= self.branch
    }
}

/// A kernel that is ready to run. Immutable once linked.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    /// All code, the kernel's own body first.
    pub code: Vec<Inst>,
    /// The source position of each instruction.
    pub origins: Vec<Origin>,
    pub source: Source,
    /// Width of an address: 32 or 64.
    pub address_bits: u8,
    /// The kernel itself, then the functions that it reaches.
    pub functions: Vec<FunctionImage>,
    /// Register lists of vector operands.
    pub vectors: Vec<Vec<Operand>>,
    pub tables: Vec<Vec<Pc>>,
    pub calls: Vec<LinkedCall>,
    pub imms: Vec<u64>,
    pub params: Vec<Param>,
    /// Size of the parameter buffer.
    pub param_bytes: u32,
    /// Limits that the text states.
    pub bounds: LaunchBounds,
    pub shared: Vec<SharedVar>,
    /// Bytes of shared memory without the dynamic part.
    pub static_shared_bytes: u32,
    /// Aligned start of the dynamic part, if the kernel declares one.
    pub dynamic_shared_offset: u32,
    /// 32-bit registers per thread: the deepest chain of calls, each function counted once.
    pub registers: u32,
    /// Whether the call graph has a cycle, so that the depth is not known.
    pub recursive: bool,
    /// Bytes of local memory for the deepest chain of calls without recursion.
    pub local_bytes: u32,
    /// Loops by header. A loop of which only some backward branches spin is listed as two, the outer one first.
    pub loops: Vec<Loop>,
    /// Atomics that were expanded into loops around lock bits, in code order.
    pub atomics: Vec<AtomicLoop>,
    /// Loads that take a lock bit and never check whether they got it, in code order.
    pub unverified: Vec<Pc>,
    /// Atomic additions that the chip's compiler makes once for a whole warp, in code order.
    pub aggregated: Vec<Pc>,
    /// Loads that take the lock bit of a statically known word, with the word's address in shared memory.
    pub lock_words: Vec<(Pc, u64)>,
    /// What the text says that memory instructions do to locks, in code order.
    pub lock_notes: Vec<(Pc, LockNote)>,
    /// Branches that the text marks as spin-inducing, in code order.
    pub sibs: Vec<Pc>,
    /// The generic address windows that the code was linked for.
    pub windows: Windows,
}

impl Kernel {
    /// The function that holds `pc`.
    pub fn function_at(&self, pc: Pc) -> &FunctionImage {
        let at = self.functions.partition_point(|f| f.start <= pc);
        &self.functions[at.saturating_sub(1)]
    }

    /// By instruction: whether a way leads from it to the end of its function, or of the thread.
    pub fn ways_out(&self) -> Vec<bool> {
        let ends = |inst: &Inst| matches!(inst.op, Op::Exit | Op::Trap | Op::AssertFail);
        let callee_ends = |inst: &Inst| match inst.src[0] {
            Operand::Imm(site) => match self.calls[site as usize].callee {
                LinkedCallee::Direct(function) => {
                    let FunctionImage { start, end, .. } = &self.functions[function as usize];
                    self.code[start.index()..end.index()].iter().any(ends)
                }
                LinkedCallee::Indirect(_) => true,
            },
            _ => true,
        };
        let mut out = vec![false; self.code.len()];
        let mut grows = true;
        while std::mem::take(&mut grows) {
            for (at, inst) in self.code.iter().enumerate().rev() {
                let next = out.get(at + 1).copied().unwrap_or(false);
                let falls = next && inst.guard != Guard::Always;
                let is_out = match inst.op {
                    Op::Ret => true,
                    Op::Bra => falls || inst.branch_target().is_none_or(|target| out[target.index()]),
                    Op::Brx => falls || self.tables.iter().flatten().any(|target| out[target.index()]),
                    Op::Call => next || callee_ends(inst),
                    _ => next || ends(inst),
                };
                grows |= is_out && !out[at];
                out[at] |= is_out;
            }
        }
        out
    }

    /// Whether a loop may wait for other threads. Loops that implement an atomic do not count.
    pub fn may_wait(&self) -> bool {
        self.loops.iter().any(|l| l.spins_on.is_some() && !l.of_atomic)
    }

    /// The expanded atomic that holds `pc`.
    pub fn atomic_at(&self, pc: Pc) -> Option<&AtomicLoop> {
        let at = self.atomics.partition_point(|made| made.branch < pc);
        self.atomics.get(at).filter(|made| made.contains(pc))
    }

    /// Whether an instruction concerns the cluster: its barrier, its shared memory, or its shape.
    pub fn uses_clusters(&self) -> bool {
        self.code.iter().any(|inst| inst.op.is_of_clusters())
    }

    /// Whether an instruction multiplies matrices.
    pub fn uses_matrices(&self) -> bool {
        self.code.iter().any(|inst| matches!(inst.op, Op::Mma(_) | Op::Wgmma(_)))
    }

    /// Whether an instruction needs the copy engine of an SM.
    pub fn uses_bulk_copies(&self) -> bool {
        self.code.iter().any(|inst| matches!(inst.op, Op::Bulk(_)))
    }

    /// Whether an instruction fetches from a texture.
    pub fn uses_textures(&self) -> bool {
        self.code.iter().any(|inst| matches!(inst.op, Op::Tex(_)))
    }

    /// The first instruction that needs lock bits.
    pub fn first_lock(&self) -> Option<Pc> {
        let at = self.code.iter().position(|inst| matches!(inst.op, Op::LdLock(_) | Op::StUnlock(_)));
        at.map(|pc| Pc(pc as u32))
    }
}
