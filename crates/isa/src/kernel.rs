//! What a machine executes: one kernel with every function it can reach, linked into one flat code array.
//!
//! Linking is done for each kernel by itself so that its shared memory holds only what it uses.

use crate::inst::*;
use crate::module::*;
use crate::types::*;

/// Addresses a machine gives to what the module leaves open.
#[derive(Clone, Debug, Default)]
pub struct AddressMap {
    /// The address of each variable of the module in its own space (global and constant ones; others are ignored).
    pub variables: Vec<u64>,
    /// Where the windows of the other spaces begin in generic addresses.
    pub windows: Windows,
    /// Shared memory has lock bits: atomics on it become loops around them ([`crate::lock_loops`]).
    pub lock_bits: bool,
}

/// The generic address space: each space that is not global has a window. An address below 4 GB fits 32-bit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Start of shared memory's window.
    pub shared: u64,
    /// Start of local memory's window.
    pub local: u64,
    /// Start of constant memory's window.
    pub constant: u64,
    /// Start of the parameter buffer's window.
    pub param: u64,
    /// Bytes in each window.
    pub bytes: u64,
    /// Start of the function handles: function `i` of the module is at `functions + 16 * i`.
    pub functions: u64,
}

impl Default for Windows {
    fn default() -> Self {
        Windows {
            shared: 0x0100_0000,
            local: 0x0200_0000,
            constant: 0x0300_0000,
            param: 0x0400_0000,
            bytes: 0x0100_0000,
            functions: 0x0500_0000,
        }
    }
}

impl Windows {
    /// Where a space's window begins; 0 for global addresses, which are generic ones already.
    pub const fn base(&self, space: Space) -> u64 {
        match space {
            Space::Shared => self.shared,
            Space::Local => self.local,
            Space::Const => self.constant,
            Space::Param => self.param,
            Space::Global | Space::Generic => 0,
        }
    }

    /// The space a generic address belongs to.
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

/// A function inside a kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionImage {
    /// Its name.
    pub name: String,
    /// Its number in the module.
    pub id: FuncId,
    /// First instruction.
    pub start: Pc,
    /// One past the last.
    pub end: Pc,
    /// 32-bit registers of one activation.
    pub registers: u32,
    /// Predicates of one activation.
    pub predicates: u32,
    /// Local memory of one activation, a multiple of 16.
    pub frame_bytes: u32,
    /// Named pieces of the frame: (name, offset, bytes).
    pub frame_vars: Vec<(String, u32, u32)>,
}

/// A call site in linked code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedCall {
    /// Index into [`Kernel::functions`], or the operand that holds a handle.
    pub callee: LinkedCallee,
    /// Copied into the callee's frame.
    pub args: Vec<FrameCopy>,
    /// Copied back from it.
    pub returns: Vec<FrameCopy>,
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedCallee {
    /// Index into [`Kernel::functions`].
    Direct(u32),
    /// A function handle (see [`Windows::functions`]).
    Indirect(Operand),
}

/// A variable of shared memory and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedVar {
    /// Its name.
    pub name: String,
    /// Address in shared memory.
    pub offset: u32,
    /// Size; 0 for the dynamic part.
    pub bytes: u32,
}

/// A loop in linked code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its first instruction.
    pub header: Pc,
    /// The backward branches that close it.
    pub latches: Vec<Pc>,
    /// Nesting depth, 1 for an outermost loop.
    pub depth: u32,
    /// The load or atomic whose value decides whether the loop goes on, if its address is the same on every
    /// turn: the loop may be waiting for someone else.
    pub spins_on: Option<Pc>,
    /// It is the loop that an atomic became, not one of the program's. Then it spins on the load that takes the lock bit.
    pub of_atomic: bool,
    /// Where the wait is ended, if it spins.
    pub ends: WaitEnds,
}

/// Where the wait of a spin loop is ended, as far as the function's code shows ([`crate::ends`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitEnds {
    /// The loop itself writes the word: whoever took a lock releases it before the others go on.
    Inside(Pc),
    /// The word is written outside of the loop.
    Outside(Pc),
    /// No write of that address is seen.
    #[default]
    Elsewhere,
}

impl WaitEnds {
    /// The same in code whose instructions have moved.
    pub(crate) fn at(self, moved: impl Fn(Pc) -> Pc) -> WaitEnds {
        match self {
            WaitEnds::Inside(pc) => WaitEnds::Inside(moved(pc)),
            WaitEnds::Outside(pc) => WaitEnds::Outside(moved(pc)),
            WaitEnds::Elsewhere => WaitEnds::Elsewhere,
        }
    }
}

/// An atomic that became a loop around a lock bit ([`crate::lock_loops`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicLoop {
    /// The load that takes the bit, the loop's first instruction.
    pub load: Pc,
    /// The store that frees it.
    pub store: Pc,
    /// The branch back, the loop's last instruction.
    pub branch: Pc,
    /// What it does.
    pub op: AtomOp,
}

impl AtomicLoop {
    /// Whether an instruction is one of the loop's.
    pub fn contains(&self, pc: Pc) -> bool {
        self.load <= pc && pc <= self.branch
    }
}

/// A kernel ready to run.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// All code; the kernel's own body first.
    pub code: Vec<Inst>,
    /// Where each instruction comes from.
    pub origins: Vec<Origin>,
    /// The text.
    pub source: Source,
    /// Width of an address: 32 or 64.
    pub address_bits: u8,
    /// The kernel's body, then the functions it reaches.
    pub functions: Vec<FunctionImage>,
    /// Register lists of vector operands.
    pub vectors: Vec<Vec<Operand>>,
    /// Branch tables.
    pub tables: Vec<Vec<Pc>>,
    /// Call sites.
    pub calls: Vec<LinkedCall>,
    /// 64-bit immediates.
    pub imms: Vec<u64>,
    /// Parameters.
    pub params: Vec<Param>,
    /// Bytes of the parameter buffer.
    pub param_bytes: u32,
    /// Limits the text states.
    pub bounds: LaunchBounds,
    /// Shared variables and their places.
    pub shared: Vec<SharedVar>,
    /// Bytes of shared memory besides the dynamic part.
    pub static_shared_bytes: u32,
    /// Where the dynamic part begins (aligned), if the kernel declares one.
    pub dynamic_shared_offset: u32,
    /// 32-bit registers a thread needs: the deepest chain of calls, each function once.
    pub registers: u32,
    /// Whether functions call each other in a circle (or through pointers), so that no depth is known.
    pub recursive: bool,
    /// Bytes of local memory for the deepest chain of calls without recursion.
    pub local_bytes: u32,
    /// Loops, by header. One whose backward branches only partly spin is listed as two, the outer one first.
    pub loops: Vec<Loop>,
    /// Atomics that became loops around lock bits, in the order of the code.
    pub atomics: Vec<AtomicLoop>,
    /// Loads that take a lock bit and do not look whether they got it, in the order of the code.
    pub unverified: Vec<Pc>,
    /// Loads that take a lock bit of a word whose place is known before the launch, and its address in shared memory.
    pub lock_words: Vec<(Pc, u64)>,
    /// What the text says that memory instructions do to locks, in the order of the code.
    pub lock_notes: Vec<(Pc, LockNote)>,
    /// Branches that the text says are spin-inducing, in the order of the code.
    pub sibs: Vec<Pc>,
    /// Generic address windows the code was linked for.
    pub windows: Windows,
}

impl Kernel {
    /// The function that holds `pc`.
    pub fn function_at(&self, pc: Pc) -> &FunctionImage {
        let at = self.functions.partition_point(|f| f.start <= pc);
        &self.functions[at.saturating_sub(1)]
    }

    /// The atomic's loop that holds `pc`.
    pub fn atomic_at(&self, pc: Pc) -> Option<&AtomicLoop> {
        let at = self.atomics.partition_point(|made| made.branch < pc);
        self.atomics.get(at).filter(|made| made.contains(pc))
    }

    /// The first instruction that needs lock bits, if one does.
    pub fn first_lock(&self) -> Option<Pc> {
        let at = self.code.iter().position(|inst| matches!(inst.op, Op::LdLock(_) | Op::StUnlock(_)));
        at.map(|pc| Pc(pc as u32))
    }
}
