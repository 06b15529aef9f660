//! How CUDA sources are compiled: options that several commands share.

use std::path::PathBuf;

use clap::Args;
use warploom_lab::kernel::CompileOptions;

/// How a CUDA source is compiled.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "CUDA sources")]
pub(crate) struct CudaOptions {
    /// The target to compile a CUDA source for [default: sm_75]
    #[arg(long, value_name = "sm_NN")]
    pub arch: Option<String>,
    /// The compiler: nvcc or clang [default: nvcc if there is one, or else clang]
    #[arg(long, value_name = "PATH")]
    pub cc: Option<PathBuf>,
    /// More options for the compiler
    #[arg(last = true, value_name = "FLAGS")]
    pub flags: Vec<String>,
}

impl CudaOptions {
    pub(crate) fn compile(&self) -> CompileOptions {
        CompileOptions { arch: self.arch.clone(), compiler: self.cc.clone(), flags: self.flags.clone() }
    }
}
