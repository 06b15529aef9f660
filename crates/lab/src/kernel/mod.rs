//! Kernels of a user's own files: arguments as text, buffers and their content, and the files themselves.
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
mod fill;
mod prepare;
mod value;

pub use arg::{ArgSpec, BufferSpec, Fill, parse_count, parse_dims};
pub use fill::random;
pub use prepare::{Language, PrepareError, Prepared, language, prepare, read_at_most};
pub use value::{format_value, json_value};
