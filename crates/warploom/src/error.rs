//! Everything that can go wrong between a host program and a kernel. [`Error`] is the one error type of this crate.

#[cfg(feature = "cuda")]
use warploom_cuda::CudaError;
use warploom_isa::diag::LoadError;
use warploom_sim::{ChipError, Fault, Hang, Shape};

use crate::args::ArgError;
use crate::report::Report;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a device refuses a request or a launch fails. The `Display` text is complete and meant for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such chip, or its description is wrong.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// The text of a module does not load. The message quotes the offending lines.
    #[error("{}", .0.render(false).trim_end())]
    Load(Box<LoadError>),
    /// The module has no kernel of that name.
    #[error("no kernel `{name}`; the module has {}", names(known))]
    NoKernel {
        name: String,
        /// The kernels that the module has.
        known: Vec<String>,
    },
    /// The module or kernel cannot be linked or does not fit the device.
    #[error("{0}")]
    Link(String),
    /// Device memory does not hold what is asked for.
    #[error("{0}")]
    OutOfMemory(String),
    /// The arguments do not fit the kernel's parameters.
    #[error(transparent)]
    Args(#[from] Box<ArgError>),
    /// The device cannot run a launch of that shape.
    #[error("{reason}")]
    Unlaunchable { reason: String, shape: Shape },
    /// A thread did something wrong: a bad address, a failed assertion, `trap`.
    #[error("{message}")]
    Fault {
        message: String,
        /// `None` on a real GPU, whose driver reports no details.
        fault: Option<Box<Fault>>,
        /// What ran before the fault.
        report: Box<Report>,
    },
    /// The kernel cannot end, or did not end within the launch's limits.
    #[error("{message}")]
    Hang {
        /// Which threads wait, and for what.
        message: String,
        /// `None` on a real GPU, whose driver reports no details.
        hang: Option<Box<Hang>>,
        /// What ran until the launch was ended.
        report: Box<Report>,
    },
    /// Firmware misused the control processor, or gave up.
    #[error("{message}")]
    Firmware {
        message: String,
        /// What ran until then.
        report: Box<Report>,
    },
    /// A kernel beside it or before it in a plan failed, and ended this one, too.
    #[error("{message}")]
    Beside {
        message: String,
        /// What ran until then.
        report: Box<Report>,
    },
    /// The launch's interrupt flag was set.
    #[error("kernel `{}` was interrupted after {} warp instructions", report.kernel, report.warp_insts)]
    Interrupted {
        /// What every warp did then. `None` on a real GPU.
        state: Option<Box<Hang>>,
        /// What ran until then.
        report: Box<Report>,
    },
    /// No real GPU is available, or its driver refuses.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(CudaError),
    /// The host program misuses the device: a buffer of another device, a wrong length.
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    /// The report of a launch that started and then failed.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Error::Fault { report, .. }
            | Error::Hang { report, .. }
            | Error::Firmware { report, .. }
            | Error::Beside { report, .. }
            | Error::Interrupted { report, .. } => Some(report),
            _ => None,
        }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Error::Load(Box::new(error))
    }
}

/// For messages: "`a`, `b`".
fn names(names: &[String]) -> String {
    match names {
        [] => "no kernels at all".to_string(),
        names => names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
    }
}
