//! What a front end produces: functions over virtual registers, and the variables of a module.

use std::sync::Arc;

use crate::inst::*;
use crate::types::*;

/// A range of bytes in the module's source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A line of the program the text was compiled from (`.loc`); `file` is an index into [`Source::files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Index into [`Source::files`].
    pub file: u32,
    /// Counted from 1.
    pub line: u32,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The instruction in the module's text.
    pub span: Span,
    /// The source line, where the module has debug information.
    pub line: Option<Line>,
}

/// The module's text, for messages.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// What the user calls it: a path, mostly.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
    /// Files named by `.file`.
    pub files: Vec<String>,
}

impl Source {
    /// Line and column (both from 1) of a byte position.
    pub fn line_col(&self, pos: u32) -> (u32, u32) {
        let before = &self.text.as_bytes()[..(pos as usize).min(self.text.len())];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let line = before.iter().filter(|&&b| b == b'\n').count();
        (line as u32 + 1, (before.len() - line_start) as u32 + 1)
    }

    /// The text of a span, empty if it lies outside.
    pub fn snippet(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
}

index_type!(
    /// A function of a module.
    FuncId
);
index_type!(
    /// A variable of a module.
    VarId
);

/// A loaded text.
#[derive(Clone, Debug)]
pub struct Module {
    /// The text it came from.
    pub source: Source,
    /// The text's own statement of its dialect, e.g. `PTX 6.3, sm_70`.
    pub dialect: String,
    /// Width of an address: 32 or 64.
    pub address_bits: u8,
    /// Kernels and device functions; those without a body are only declared.
    pub functions: Vec<Function>,
    /// Global, constant and shared variables, those of function scope too.
    pub variables: Vec<Variable>,
}

/// A variable with static storage.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Global, Const or Shared.
    pub space: Space,
    /// Alignment, a power of two.
    pub align: u32,
    /// Size; 0 for `extern .shared x[]`, whose size the launch gives.
    pub bytes: u64,
    /// Initial bytes; shorter than `bytes` means that zeros follow.
    pub init: Vec<u8>,
    /// Addresses to be written into the initial bytes.
    pub relocations: Vec<Relocation>,
    /// Where it is declared.
    pub span: Span,
}

/// An address inside a variable's initial value.
#[derive(Clone, Debug)]
pub struct Relocation {
    /// Position in the variable.
    pub offset: u64,
    /// Bytes to write: 4 or 8 (or fewer, with `shift`, for byte-wise `mask(symbol)` initialisers).
    pub bytes: u8,
    /// Bits to shift the address right before it is truncated to `bytes`.
    pub shift: u8,
    /// Whose address.
    pub target: SymbolUse,
}

/// An address known only after loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolUse {
    /// Whose.
    pub symbol: Symbol,
    /// Bytes to add.
    pub offset: i64,
    /// As a generic address (`generic(x)`, or a function's), not one of the variable's own space.
    pub generic: bool,
}

/// Something with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A variable.
    Variable(VarId),
    /// A function; its address is a handle for indirect calls.
    Function(FuncId),
}

/// A kernel or a device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it can be launched.
    pub is_kernel: bool,
    /// Results, in the frame's layout (device functions).
    pub returns: Vec<Param>,
    /// Parameters: of a kernel, in its parameter buffer; of a device function, in its frame.
    pub params: Vec<Param>,
    /// Bytes that `params` (and `returns`) take.
    pub param_bytes: u32,
    /// Limits the text states.
    pub bounds: LaunchBounds,
    /// Code; absent for a declaration.
    pub body: Option<Body>,
    /// Where it is declared.
    pub span: Span,
}

/// A formal parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Element type.
    pub ty: Ty,
    /// Bytes in all (an array or struct has more than one element's).
    pub bytes: u32,
    /// Alignment.
    pub align: u32,
    /// Position in the parameter buffer or the frame.
    pub offset: u32,
    /// Whether the text says that it is a pointer (`.ptr`), and to where.
    pub pointer: Option<Space>,
}

/// `.maxntid` and its like; what is not stated is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchBounds {
    /// `.maxntid`: at most so many threads (product).
    pub max_threads: Option<u32>,
    /// `.reqntid`: exactly this block.
    pub required_block: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub min_ctas_per_sm: Option<u32>,
    /// `.maxnreg`.
    pub max_registers: Option<u32>,
    /// The kernel asks for a cluster (`.reqnctapercluster`, `.explicitcluster`).
    pub cluster: bool,
}

/// Width of a virtual register, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits or fewer.
    One,
    /// 64 bits.
    Two,
}

/// A function's code over virtual registers, or, after [`crate::regalloc`], over physical ones.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Instructions. Branch targets are indices into this list; the last never falls through.
    pub insts: Vec<Inst>,
    /// Where each instruction comes from; as long as `insts`.
    pub origins: Vec<Origin>,
    /// Width of each virtual register.
    pub registers: Vec<Width>,
    /// Number of virtual predicates.
    pub predicates: u32,
    /// Register lists of vector operands (registers, immediates, or `None` for `_`).
    pub vectors: Vec<Vec<Operand>>,
    /// Branch tables.
    pub tables: Vec<Vec<Pc>>,
    /// Call sites.
    pub calls: Vec<CallSite>,
    /// Addresses that linking fills in.
    pub symbols: Vec<SymbolUse>,
    /// 64-bit immediates.
    pub imms: Vec<u64>,
    /// Bytes of local memory one activation needs: parameters, results, local variables, outgoing parameters.
    pub frame_bytes: u32,
    /// Alignment of the frame.
    pub frame_align: u32,
    /// Named pieces of the frame, for messages: (name, offset, bytes).
    pub frame_vars: Vec<(String, u32, u32)>,
    /// Shared variables that the function has whether its code names them or not: code may count addresses by itself.
    pub shared: Vec<VarId>,
    /// Labels, for the printer: (instruction, name), by instruction.
    pub labels: Vec<(Pc, String)>,
    /// The registers are physical already, 64-bit values in an even one and the next: what a listing says is kept. A
    /// reconvergence point that is set is the listing's, too.
    pub allocated: bool,
    /// What the text says that memory instructions do to locks, by instruction.
    pub lock_notes: Vec<(Pc, LockNote)>,
    /// Branches that the text says are spin-inducing (`.pragma "warploom.sib"`): taken, a lane waits another turn.
    pub sibs: Vec<Pc>,
}

/// What the author says that a memory instruction does to a lock (`.pragma "warploom.lock …"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockNote {
    /// It tries to take one.
    Acquire,
    /// It gives one back.
    Release,
    /// It reads a word that another thread is to write.
    Wait,
}

impl LockNote {
    /// All there are.
    pub const ALL: [LockNote; 3] = [LockNote::Acquire, LockNote::Release, LockNote::Wait];

    /// Its name in a text.
    pub const fn name(self) -> &'static str {
        match self {
            LockNote::Acquire => "acquire",
            LockNote::Release => "release",
            LockNote::Wait => "wait",
        }
    }
}

/// One `call`. The callee's frame begins right above the caller's (aligned); its results and parameters lie at
/// the frame's start as laid out by [`layout_params`], so that indirect calls agree without knowing the callee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Whom.
    pub callee: Callee,
    /// Copied into the callee's frame.
    pub args: Vec<FrameCopy>,
    /// Copied back from it.
    pub returns: Vec<FrameCopy>,
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module.
    Direct(FuncId),
    /// The function whose address is in this (wide or narrow) operand.
    Indirect(Operand),
}

/// Bytes that move between a caller's frame and its callee's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCopy {
    /// Offset in the caller's frame.
    pub caller: u32,
    /// Offset in the callee's frame.
    pub callee: u32,
    /// Bytes.
    pub bytes: u32,
}

/// Lays out a list of (bytes, align) one after the other and returns the offsets and the total size.
pub fn layout_params(items: impl IntoIterator<Item = (u32, u32)>) -> (Vec<u32>, u32) {
    let mut at = 0u32;
    let offsets = items
        .into_iter()
        .map(|(bytes, align)| {
            at = at.next_multiple_of(align.max(1));
            let offset = at;
            at += bytes;
            offset
        })
        .collect();
    (offsets, at)
}
