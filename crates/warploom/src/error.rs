//! Everything that can go wrong between a host program and a kernel.

#[cfg(feature = "cuda")]
use warploom_cuda::CudaError;
use warploom_isa::diag::LoadError;
use warploom_sim::{ChipError, Fault, Hang, Shape};

use crate::args::ArgError;
use crate::report::Report;

/// What a device's methods return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a device refuses or a launch fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such chip, or its description is wrong.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// The text of a module does not load. Shown with the lines it is about.
    #[error("{}", .0.render(false).trim_end())]
    Load(Box<LoadError>),
    /// The module has no kernel of that name.
    #[error("no kernel `{name}`; the module has {}", names(known))]
    NoKernel {
        /// What was asked for.
        name: String,
        /// What there is.
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
    Unlaunchable {
        /// Why.
        reason: String,
        /// What was asked for.
        shape: Shape,
    },
    /// A thread did something wrong: a bad address, a failed assertion, `trap`.
    #[error("{message}")]
    Fault {
        /// What and where.
        message: String,
        /// The same in parts, where the device knows them.
        fault: Option<Box<Fault>>,
        /// What happened until then.
        report: Box<Report>,
    },
    /// The kernel cannot end, or did not end within the launch's limits.
    #[error("{message}")]
    Hang {
        /// Who waits for what.
        message: String,
        /// The same in parts, where the device knows them.
        hang: Option<Box<Hang>>,
        /// What happened until then.
        report: Box<Report>,
    },
    /// Firmware did something wrong, or gave up.
    #[error("{message}")]
    Firmware {
        /// What.
        message: String,
        /// What happened until then.
        report: Box<Report>,
    },
    /// The launch's interrupt flag was set.
    #[error("kernel `{}` was interrupted after {} warp instructions", report.kernel, report.warp_insts)]
    Interrupted {
        /// What happened until then.
        report: Box<Report>,
    },
    /// A real GPU cannot be had, or its driver refuses.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(CudaError),
    /// The host program uses the device wrongly: a foreign buffer, a wrong length.
    #[error("{0}")]
    Misuse(String),
}

impl Error {
    /// The report of a launch that began and did not end well.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Error::Fault { report, .. }
            | Error::Hang { report, .. }
            | Error::Firmware { report, .. }
            | Error::Interrupted { report } => Some(report),
            _ => None,
        }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Error::Load(Box::new(error))
    }
}

/// Names in a sentence.
fn names(names: &[String]) -> String {
    match names {
        [] => "no kernels at all".to_string(),
        names => names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
    }
}
