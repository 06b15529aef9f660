//! The program that Warploom's machines execute, whatever text it came from.
//!
//! A front end builds a [`Module`]: functions over virtual registers, and variables. [`link()`] joins one kernel with
//! the functions it reaches into a [`Kernel`]: one flat array of plain-data instructions. On the way it builds the
//! control-flow graph (`cfg`, `dominators`, `loops`), sets the reconvergence point of every branch (`reconvergence`),
//! finds loops that may be waiting for another thread (`spin`, `ends`), expands atomics on shared memory for machines
//! with lock bits (`lock_loops`), and allocates physical registers (`liveness`, `webs`, `regalloc`). For machines whose
//! compiler is modelled, code is optimised and scheduled first (`optimise`).
//!
//! [`print`](mod@print) shows any stage as a listing. It shares [`spell`] (mnemonics) and [`form`] (operands) with the
//! front end that reads listings. [`diag`] has the errors of both front ends.
//!
//! Nothing here reads a text or executes an instruction. Start at [`Inst`], then [`Module`] and [`Kernel`]; `link.rs`
//! lists the passes in order.

#[macro_use]
mod inst;
mod bulk;
mod cfg;
pub mod diag;
mod dominators;
mod ends;
pub mod form;
mod kernel;
mod link;
mod liveness;
mod lock_loops;
mod loops;
mod matrix;
mod module;
mod narrow;
mod optimise;
pub mod print;
mod progress;
mod reconvergence;
mod regalloc;
mod released;
pub mod spell;
mod spin;
mod texture;
mod types;
mod video;
mod visit;
mod webs;

#[cfg(test)]
mod tests;

pub use bulk::*;
pub use inst::*;
pub use kernel::*;
pub use link::{LinkError, link, variable_image};
pub use matrix::*;
pub use module::*;
pub use narrow::*;
pub use texture::*;
pub use types::*;
pub use video::*;
pub use visit::{Lists, Shape, Value};
