//! Kernels of a user's own files: the files, compiled if they are CUDA, arguments as text, buffers and their content.
//!
//! `warploom run` takes these from its command line, and a sweep from its file.
//!
//! ```
//! use warploom_lab::kernel::ArgSpec;
//!
//! let argument: ArgSpec = "buf:f32:1_024=iota".parse().unwrap();
//! assert!(matches!(argument, ArgSpec::Buffer(buffer) if buffer.count == 1024));
//! ```

mod arg;
mod arguments;
mod cuda;
pub mod entry;
mod file;
mod fill;
mod parameters;
mod prepare;
mod value;

pub use arg::{ArgSpec, BufferSpec, Fill, NamedArg, parse_count, parse_dims};
pub use arguments::{arrange, choose};
pub use cuda::CompileOptions;
pub use file::{FileError, KernelFile};
pub use fill::random;
pub(crate) use prepare::content_of;
pub use prepare::{Language, PrepareError, Prepared, prepare};
pub(crate) use value::number;
pub use value::{format_value, json_value};
