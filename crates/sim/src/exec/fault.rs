//! Why a launch ends before its kernel does.

use std::fmt;

use warploom_isa::{Guard, Kernel, Pc, Space, Span};

use crate::exec::sync::barrier::Misuse;

/// What a thread did wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// An access outside of what is allocated.
    #[error("{} of {} memory at {address:#x}: {place}", access.of(*bytes), space.name())]
    OutOfBounds {
        /// Load, store or atomic.
        access: AccessKind,
        /// The space it resolved to.
        space: Space,
        /// Address in that space.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
        /// Where that is, in words.
        place: String,
    },
    /// An address that is no multiple of the access's size.
    #[error("{} of {} memory at {address:#x}, which is not a multiple of {bytes}", access.of(*bytes), space.name())]
    Misaligned {
        /// Load, store or atomic.
        access: AccessKind,
        /// The space it resolved to.
        space: Space,
        /// Address in that space.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// A store to constant memory or parameters.
    #[error("{} of {} memory at {address:#x}, which is read-only", access.of(*bytes), space.name())]
    ReadOnly {
        /// Store or atomic.
        access: AccessKind,
        /// The space.
        space: Space,
        /// Address in that space.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// A lock bit of what is not in shared memory.
    #[error("{} of {} memory at {address:#x}: only shared memory has lock bits", access.of(*bytes), space.name())]
    NoLockBit {
        /// Load or store.
        access: AccessKind,
        /// The space.
        space: Space,
        /// The generic address.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// The call stack does not fit local memory.
    #[error(
        "the call stack needs {needed} bytes of local memory, the chip has {limit} a thread (memory.local_bytes_per_thread)"
    )]
    StackOverflow {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        limit: u32,
    },
    /// An indirect call to something that is no function of this module.
    #[error("call through a pointer to {0:#x}, which is no function")]
    BadFunctionPointer(u64),
    /// `brx.idx` beyond its table.
    #[error("indexed branch to entry {index} of a table with {entries} entries")]
    BadBranchIndex {
        /// The index.
        index: u32,
        /// Entries of the table.
        entries: usize,
    },
    /// A barrier used wrongly.
    #[error(transparent)]
    Barrier(#[from] Misuse),
    /// An mbarrier used wrongly.
    #[error("mbarrier at shared {address:#x}: {problem}")]
    Mbarrier {
        /// Its address.
        address: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// `trap`.
    #[error("the kernel executed `trap`")]
    Trap,
    /// A failed assertion.
    #[error("{file}:{line}: {function}: assertion `{message}` failed")]
    Assert {
        /// The assertion.
        message: String,
        /// Source file.
        file: String,
        /// Source line.
        line: u32,
        /// Function.
        function: String,
    },
    /// A `printf` whose format or arguments cannot be read.
    #[error("printf: {0}")]
    Printf(String),
}

/// How memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

impl AccessKind {
    /// In words: "load of 4 bytes".
    fn of(self, bytes: u32) -> String {
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
    /// What.
    pub kind: FaultKind,
    /// Which kernel.
    pub kernel: String,
    /// Which CTA.
    pub cta: [u32; 3],
    /// Which thread.
    pub thread: [u32; 3],
    /// Where in the program.
    pub place: Place,
}

/// A place in the program, in words a programmer knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The instruction's text.
    pub instruction: String,
    /// The module's file.
    pub file: String,
    /// Line in it.
    pub line: u32,
    /// Line of the program it was compiled from: `vecadd.cu:7`.
    pub source_line: Option<String>,
    /// The function, if it is not the kernel itself.
    pub function: Option<String>,
}

impl Place {
    /// The place of an instruction.
    pub fn of(kernel: &Kernel, pc: Pc) -> Place {
        let origin = kernel.origins.get(pc.index()).copied().unwrap_or_default();
        let (line, _) = kernel.source.line_col(origin.span.start);
        let source_line = origin.line.map(|at| {
            let file = kernel.source.files.get(at.file as usize).map_or("?", String::as_str);
            format!("{file}:{}", at.line)
        });
        let function = kernel.function_at(pc);
        Place {
            instruction: squeeze(kernel.source.snippet(with_guard(kernel, pc, origin.span))),
            file: kernel.source.name.clone(),
            line,
            source_line,
            function: (function.start.0 != 0).then(|| function.name.clone()),
        }
    }
}

impl Place {
    /// Only the line: of the program it was compiled from if that is known, else of the module.
    pub fn short(&self) -> String {
        self.source_line.clone().unwrap_or_else(|| format!("{}:{}", self.file, self.line))
    }
}

/// The span of an instruction together with its guard, which is written before it.
fn with_guard(kernel: &Kernel, pc: Pc, span: Span) -> Span {
    let guarded = match kernel.atomic_at(pc) {
        // The loop of a guarded atomic has a branch around it.
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

/// Puts the text of an instruction on one line.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.instruction)?;
        if let Some(line) = &self.source_line {
            write!(f, "   ({line})")?;
        }
        Ok(())
    }
}

/// Coordinates as people write them.
pub(crate) fn coordinates([x, y, z]: [u32; 3]) -> String {
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
            write!(f, "\n  source       {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
