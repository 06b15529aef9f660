//! Faults: what a thread did wrong, and where in the program.

use std::fmt;

use warploom_isa::{Guard, Kernel, Pc, Space, Span};

use crate::inlining;
use crate::sync::barrier::Misuse;
use crate::sync::cluster::ClusterMisuse;
use crate::texture::BadHandle;

/// What a thread did wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// An access outside of every allocation.
    #[error("{} of {} memory at {address:#x}: {place}", access.of(*bytes), space.name())]
    OutOfBounds {
        access: AccessKind,
        /// The space that the address resolved to.
        space: Space,
        /// In that space.
        address: u64,
        bytes: u32,
        /// Where the address is relative to the nearest allocation, in words.
        place: String,
    },
    /// An address that is not a multiple of the access's size.
    #[error(
        "{} of {} memory at {address:#x}, which is not a multiple of {bytes}", access.of(*bytes), space.name()
    )]
    Misaligned { access: AccessKind, space: Space, address: u64, bytes: u32 },
    /// A store to constant memory or parameters.
    #[error("{} of {} memory at {address:#x}, which is read-only", access.of(*bytes), space.name())]
    ReadOnly { access: AccessKind, space: Space, address: u64, bytes: u32 },
    /// A locking access through a generic address that is not in shared memory.
    #[error(
        "{} of {} memory at {address:#x}: only shared memory has lock bits", access.of(*bytes), space.name()
    )]
    NoLockBit { access: AccessKind, space: Space, address: u64, bytes: u32 },
    /// The call stack does not fit local memory.
    #[error(
        "the call stack needs {needed} bytes of local memory, the chip has {limit} per thread \
         (memory.local_bytes_per_thread)"
    )]
    StackOverflow { needed: u64, limit: u32 },
    /// The call stacks of all resident threads together are more than this computer should hold.
    #[error(
        "after {depth} calls the call stack needs {needed} bytes of local memory; {threads} threads are resident, and \
         this computer simulates {limit} bytes for each"
    )]
    StacksOverflow { needed: u64, limit: u32, depth: u32, threads: u64 },
    /// An indirect call to something that is not a function of this module.
    #[error("call through a pointer to {0:#x}, which is no function")]
    BadFunctionPointer(u64),
    /// `brx.idx` beyond its table.
    #[error("indexed branch to entry {index} of a table with {entries} entries")]
    BadBranchIndex { index: u32, entries: usize },
    #[error(transparent)]
    Barrier(#[from] Misuse),
    #[error(transparent)]
    ClusterBarrier(#[from] ClusterMisuse),
    /// An access to the shared memory of a CTA that is not there any more.
    #[error(
        "{what} the shared memory of the CTA of rank {rank}, which has left the cluster: a CTA must not end while \
         others use its shared memory"
    )]
    LeftCluster { what: String, rank: u32 },
    /// A rank that the cluster does not have.
    #[error("{what} the shared memory of the CTA of rank {rank} of a cluster of {size}")]
    NoSuchRank { what: String, rank: u32, size: u32 },
    /// `shfl.sync`, `bar.warp.sync` or the like by a lane that its own member mask leaves out.
    #[error("lane {lane} executes it, but is not in its member mask {members:#010x}")]
    NotAMember { lane: u32, members: u32 },
    /// Lanes that execute such an instruction together have member masks that differ but overlap.
    #[error(
        "lane {lane} has the member mask {members:#010x}, which names lane {other}, but that one has {others:#010x}: \
         all lanes of a mask must have the same"
    )]
    MasksDiffer { lane: u32, members: u32, other: u32, others: u32 },
    #[error("mbarrier at shared {address:#x}: {problem}")]
    Mbarrier { address: u64, problem: &'static str },
    /// A product of matrices that is not defined.
    #[error("matrix: {0}")]
    Matrix(String),
    /// A bulk copy that the copy engine does not make.
    #[error("bulk copy: {0}")]
    Bulk(String),
    #[error(transparent)]
    Texture(#[from] BadHandle),
    /// A texture or surface of another shape than the instruction names.
    #[error("the {what} is `.{is}`, the instruction `.{asked}`")]
    Geometry { what: &'static str, asked: &'static str, is: &'static str },
    /// Beyond the edges of a surface, where that is a fault.
    #[error(
        "byte {x} of row {y}, slice {z} is beyond the surface: {width} x {height} x {depth} elements in rows of {row} \
         bytes"
    )]
    BeyondSurface { x: i64, y: i64, z: i64, row: i64, width: u32, height: u32, depth: u32 },
    /// Lanes of one formatted access whose surfaces have other formats: not modelled.
    #[error(
        "lanes of this instruction name surfaces of different formats: let each format have one of its own"
    )]
    SurfaceFormats,
    #[error("byte {x} of a surface's row is not a multiple of {bytes}, the bytes accessed")]
    SurfaceMisaligned { x: i64, bytes: u32 },
    #[error("the kernel executed `trap`")]
    Trap,
    /// A failed `assert`; the place is that of its source.
    #[error("{file}:{line}: {function}: assertion `{message}` failed")]
    Assert { message: String, file: String, line: u32, function: String },
    /// A `printf` whose format or arguments cannot be read.
    #[error("printf: {0}")]
    Printf(String),
}

/// How memory was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

impl AccessKind {
    /// In words: "load of 4 bytes".
    pub(crate) fn of(self, bytes: u32) -> String {
        let verb = match self {
            AccessKind::Load => "load of",
            AccessKind::Store => "store of",
            AccessKind::Atomic => "atomic on",
        };
        format!("{verb} {bytes} byte{}", if bytes == 1 { "" } else { "s" })
    }
}

/// A fault and where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    pub kernel: String,
    /// Its coordinates in the grid.
    pub cta: [u32; 3],
    /// Its coordinates in the CTA.
    pub thread: [u32; 3],
    pub place: Place,
}

/// A place in the program, as a programmer would name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The instruction's text.
    pub instruction: String,
    /// The PTX file or listing.
    pub file: String,
    /// The line in `file`.
    pub line: u32,
    /// The line of the source it was compiled from, if known: `vecadd.cu:7`. Of an inlined function of a header, the
    /// user's line.
    pub source_line: Option<String>,
    /// If it was inlined: the lines from the innermost function's to the kernel's.
    pub inlined: Vec<String>,
    /// The function, unless it is the kernel itself.
    pub function: Option<String>,
}

impl Place {
    pub fn of(kernel: &Kernel, pc: Pc) -> Place {
        let (file, line, _) = kernel.source.place(start(kernel, pc));
        Place::on_line(kernel, pc, file, line)
    }

    /// The places of all instructions. Lines of the text are counted once and not for each of them.
    pub fn all(kernel: &Kernel) -> impl Iterator<Item = Place> {
        let linked = kernel.source.is_linked();
        let ends = kernel.source.text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let ends: Vec<u32> = ends.map(|(at, _)| at as u32).collect();
        (0..kernel.code.len() as u32).map(move |pc| {
            if linked {
                return Place::of(kernel, Pc(pc));
            }
            let start = start(kernel, Pc(pc));
            let line = ends.partition_point(|&end| end < start) as u32 + 1;
            Place::on_line(kernel, Pc(pc), &kernel.source.name, line)
        })
    }

    fn on_line(kernel: &Kernel, pc: Pc, file: &str, line: u32) -> Place {
        let origin = kernel.origins.get(pc.index()).copied().unwrap_or_default();
        let own_line = origin.line.map(|at| {
            let file = kernel.source.files.get(at.file as usize).map_or("?", String::as_str);
            format!("{file}:{}", at.line)
        });
        let mut inlined = Vec::new();
        if own_line.is_some() {
            inlined = inlining::frames(&kernel.source, origin.span.start);
            inlined.truncate(if inlined.len() > 1 { usize::MAX } else { 0 });
        }
        let source_line = inlining::users_line(&inlined).cloned().or(own_line);
        let function = kernel.function_at(pc);
        Place {
            instruction: squeeze(kernel.source.snippet(with_guard(kernel, pc, origin.span))),
            file: file.to_string(),
            line,
            source_line,
            inlined,
            function: (function.start.0 != 0).then(|| function.name.clone()),
        }
    }

    /// Only the line: of the source it was compiled from if that is known, otherwise of `file`.
    pub fn short(&self) -> String {
        self.source_line.clone().unwrap_or_else(|| format!("{}:{}", self.file, self.line))
    }
}

/// Where an instruction begins in the text.
fn start(kernel: &Kernel, pc: Pc) -> u32 {
    kernel.origins.get(pc.index()).map_or(0, |origin| origin.span.start)
}

/// The span of an instruction together with its guard, which is written before it.
fn with_guard(kernel: &Kernel, pc: Pc, span: Span) -> Span {
    let guarded = match kernel.atomic_at(pc) {
        // A guarded atomic that became a loop has a branch around it.
        Some(atomic) => {
            let before = (atomic.load.index().checked_sub(1)).and_then(|at| kernel.origins.get(at));
            before.is_some_and(|origin| origin.span == span)
        }
        None => kernel.code.get(pc.index()).is_some_and(|inst| inst.guard != Guard::Always),
    };
    let before = kernel.source.text.get(..span.start as usize).filter(|_| guarded).unwrap_or_default();
    match before.rfind('@') {
        Some(at) if !before[at..].contains(';') => Span { start: at as u32, end: span.end },
        _ => span,
    }
}

/// Puts an instruction's text on one line.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.instruction)?;
        if let Some(line) = &self.source_line {
            write!(f, "   ({line}{})", chain(&self.inlined))?;
        }
        Ok(())
    }
}

/// The lines through which an instruction was inlined, for the end of a line.
fn chain(inlined: &[String]) -> String {
    match inlined {
        [] => String::new(),
        lines => format!("; inlined: {}", lines.join(" < ")),
    }
}

/// Coordinates as messages show them: `(1,0,0)`.
pub fn coordinates([x, y, z]: [u32; 3]) -> String {
    format!("({x},{y},{z})")
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel `{}` faults: {}", self.kernel, self.kind)?;
        write!(f, "  thread       {} of CTA {}", coordinates(self.thread), coordinates(self.cta))?;
        if let Some(function) = &self.place.function {
            write!(f, ", in `{function}`")?;
        }
        write!(f, "\n  instruction  {}:{}: {}", self.place.file, self.place.line, self.place.instruction)?;
        if let Some(line) = &self.place.source_line {
            write!(f, "\n  source       {line}{}", chain(&self.place.inlined))?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
