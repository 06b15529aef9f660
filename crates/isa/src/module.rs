//! What a front end produces: functions over virtual registers, and the variables of a module. Start at [`Module`].

use std::sync::Arc;

use crate::diag::Diagnostic;
use crate::inst::*;
use crate::texture::*;
use crate::types::*;

/// A byte range in the module's source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// A line of the program that the text was compiled from (`.loc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Index into [`Source::files`].
    pub file: u32,
    /// Counted from 1.
    pub line: u32,
}

/// The source position of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The instruction in the module's text.
    pub span: Span,
    /// The line of the original program, if the module has debug information.
    pub line: Option<Line>,
}

/// The module's text, to quote in messages.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The user's name for the text, mostly a path.
    pub name: String,
    pub text: Arc<str>,
    /// Files named by `.file`.
    pub files: Vec<String>,
}

/// Begins the comment before each part of a linked text. The number of its file, and line and column there, follow.
pub const LINKED_PART: &str = "//#part ";

/// Separates the files in the name of a linked text.
pub const FILES_SEPARATOR: &str = " + ";

impl Source {
    /// Line and column (both from 1) of a byte position.
    pub fn line_col(&self, pos: u32) -> (u32, u32) {
        let before = &self.text.as_bytes()[..(pos as usize).min(self.text.len())];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let line = before.iter().filter(|&&b| b == b'\n').count();
        (line as u32 + 1, (before.len() - line_start) as u32 + 1)
    }

    /// The file of a byte position, and line and column in it. In a linked text, that is the file that the part was
    /// taken from.
    pub fn place(&self, pos: u32) -> (&str, u32, u32) {
        self.linked_place(pos as usize).unwrap_or_else(|| {
            let (line, column) = self.line_col(pos);
            (&self.name, line, column)
        })
    }

    /// Whether it was linked of several files.
    pub fn is_linked(&self) -> bool {
        self.name.contains(FILES_SEPARATOR) && self.text.contains(LINKED_PART)
    }

    fn linked_place(&self, pos: usize) -> Option<(&str, u32, u32)> {
        let before = self.text.get(..pos).filter(|_| self.name.contains(FILES_SEPARATOR))?;
        let (_, part) = before.rsplit_once(LINKED_PART)?;
        let (numbers, part) = part.split_once('\n')?;
        let mut numbers = numbers.split(' ').map(str::parse::<u32>);
        let mut number = || numbers.next()?.ok();
        let (file, line, column) = (number()?, number()?, number()?);
        let name = self.name.split(FILES_SEPARATOR).nth(file as usize)?;
        let lines = part.matches('\n').count() as u32;
        let (start, column) = part.rsplit_once('\n').map_or((part, column), |(_, last)| (last, 1));
        Some((name, line + lines, column + start.len() as u32))
    }

    /// The text of a span; empty if the span lies outside.
    pub fn snippet(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
}

index_type!(
    /// A function of a module.
    pub FuncId
);
index_type!(
    /// A variable of a module.
    pub VarId
);

/// A loaded text, before linking.
#[derive(Clone, Debug)]
pub struct Module {
    pub source: Source,
    /// The dialect that the text declares, e.g. `PTX 6.3, sm_70`.
    pub dialect: String,
    /// Width of an address: 32 or 64.
    pub address_bits: u8,
    /// Kernels and device functions.
    pub functions: Vec<Function>,
    /// Global, constant and shared variables, including those of function scope.
    pub variables: Vec<Variable>,
}

/// A variable with static storage.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    /// `Global`, `Const` or `Shared`.
    pub space: Space,
    /// A power of two.
    pub align: u32,
    /// 0 for `extern .shared x[]`, whose size the launch gives.
    pub bytes: u64,
    /// Initial bytes; zeros follow up to `bytes`.
    pub init: Vec<u8>,
    /// Addresses to be written into the initial bytes.
    pub relocations: Vec<Relocation>,
    /// It is a texture, sampler or surface reference.
    pub opaque: Option<Opaque>,
    pub span: Span,
}

/// An address inside a variable's initial value.
#[derive(Clone, Debug)]
pub struct Relocation {
    /// Byte offset in the variable.
    pub offset: u64,
    /// Bytes to write: 4 or 8, or fewer with `shift` for byte-wise `mask(symbol)` initialisers.
    pub bytes: u8,
    /// Bits to shift the address right before it is truncated to `bytes`.
    pub shift: u8,
    pub target: SymbolUse,
}

/// The address of a symbol plus an offset, which linking fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolUse {
    pub symbol: Symbol,
    pub offset: i64,
    /// A generic address (`generic(x)`, or a function's) instead of one in the variable's space.
    pub generic: bool,
}

/// Something with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    Variable(VarId),
    /// The address of a function is a handle for indirect calls.
    Function(FuncId),
}

/// A kernel or a device function.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// Whether the function can be launched.
    pub is_kernel: bool,
    /// Results of a device function, at their place in its frame.
    pub returns: Vec<Param>,
    /// A kernel's parameters are in its parameter buffer, a device function's in its frame.
    pub params: Vec<Param>,
    /// Size of `params` and `returns` together.
    pub param_bytes: u32,
    /// Limits that the text states.
    pub bounds: LaunchBounds,
    /// `None` for a declaration.
    pub body: Option<Body>,
    /// What the body needs and the model does not have. If there is any, the body is not complete, and no kernel that
    /// reaches the function can be linked.
    pub refusals: Vec<Diagnostic>,
    pub span: Span,
}

/// A formal parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub ty: Ty,
    /// Total size. An array or struct has several elements of type `ty`.
    pub bytes: u32,
    pub align: u32,
    /// Byte offset in the parameter buffer or the frame.
    pub offset: u32,
    /// The space that the parameter points to, if the text declares it as a pointer (`.ptr`).
    pub pointer: Option<Space>,
}

/// Limits on launches that the text states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchBounds {
    /// `.maxntid`: the most threads per CTA (the product of the three numbers).
    pub max_threads: Option<u32>,
    /// `.reqntid`: the exact CTA shape.
    pub required_block: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub min_ctas_per_sm: Option<u32>,
    /// `.maxnreg`.
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster`: the exact shape of clusters.
    pub required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: the launch must name a shape of clusters, unless the kernel does.
    pub explicit_cluster: bool,
    /// `.maxclusterrank`: the most CTAs of a cluster.
    pub max_cluster_ctas: Option<u32>,
    /// `.blocksareclusters`: the launch gives the grid in clusters.
    pub blocks_are_clusters: bool,
}

/// Width of a virtual register, in 32-bit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits or fewer.
    One,
    /// 64 bits.
    Two,
}

/// A function's code, over virtual registers or, once they are allocated, over physical ones.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Branch targets are indices into this list. The last instruction must not fall through.
    pub insts: Vec<Inst>,
    /// The source position of each instruction; as long as `insts`.
    pub origins: Vec<Origin>,
    /// Width of each virtual register.
    pub registers: Vec<Width>,
    /// Number of virtual predicates.
    pub predicates: u32,
    /// Elements of vector operands: registers, immediates, or `None` for `_`.
    pub vectors: Vec<Vec<Operand>>,
    /// Targets of each branch table.
    pub tables: Vec<Vec<Pc>>,
    pub calls: Vec<CallSite>,
    /// Symbol addresses that linking fills in.
    pub symbols: Vec<SymbolUse>,
    pub imms: Vec<u64>,
    /// Local memory per activation: parameters, results, local variables, outgoing parameters.
    pub frame_bytes: u32,
    pub frame_align: u32,
    /// Named parts of the frame, for messages: (name, offset, bytes).
    pub frame_vars: Vec<(String, u32, u32)>,
    /// Shared variables that the function has even if no instruction names them: code may compute their addresses.
    pub shared: Vec<VarId>,
    /// Labels for the printer, by instruction.
    pub labels: Vec<(Pc, String)>,
    /// The registers are physical already, 64-bit values in an even register and the next. So they are in a listing;
    /// linking keeps them and any reconvergence point that the listing sets.
    pub allocated: bool,
    /// What the text says that memory instructions do to locks, in code order.
    pub lock_notes: Vec<(Pc, LockNote)>,
    /// Branches that the text marks as spin-inducing (`.pragma "warploom.sib"`): a lane that takes one waits another
    /// iteration.
    pub sibs: Vec<Pc>,
}

/// The author's note on what a memory instruction does to a lock (`.pragma "warploom.lock …"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockNote {
    /// It tries to take the lock.
    Acquire,
    /// It releases the lock.
    Release,
    /// It polls a word that another thread will write.
    Wait,
}

impl LockNote {
    pub const ALL: [LockNote; 3] = [LockNote::Acquire, LockNote::Release, LockNote::Wait];

    /// The note's name in a text.
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
    pub callee: Callee,
    /// Copied into the callee's frame.
    pub args: Vec<FrameCopy>,
    /// Copied back from the callee's frame.
    pub returns: Vec<FrameCopy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module.
    Direct(FuncId),
    /// The function whose handle is in this operand, 32 or 64 bits wide.
    Indirect(Operand),
}

/// Bytes that move between a caller's frame and its callee's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCopy {
    /// Offset in the caller's frame.
    pub caller: u32,
    /// Offset in the callee's frame.
    pub callee: u32,
    pub bytes: u32,
}

/// Lays out (bytes, align) items one after the other. Returns their offsets and the total size.
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
