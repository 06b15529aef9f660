//! The program that Warploom's machines execute, whatever text it came from.
//!
//! A front end builds a [`Module`]: functions over virtual registers, and variables. The passes here find its
//! control flow ([`mod@cfg`], [`dominators`], [`loops`]), set the reconvergence point of every branch
//! ([`reconvergence`]), tell which loops may be waiting for another thread ([`spin`]), make loops of
//! shared atomics where a machine has lock bits ([`lock_loops`]), allocate
//! physical registers by liveness ([`liveness`], [`regalloc`]) and link each kernel with the functions it reaches
//! ([`mod@link`]) into a [`Kernel`], one flat array of plain-data instructions. [`mod@print`] shows every stage as a listing, in the
//! words of [`mod@spell`] and with the operands of [`mod@form`], which the front end for listings reads by.
//!
//! Nothing here executes anything. Start reading at [`inst`], then [`module`] and [`kernel`].

#[macro_use]
pub mod inst;
pub mod cfg;
pub mod diag;
pub mod dominators;
pub mod ends;
pub mod form;
pub mod kernel;
pub mod link;
pub mod liveness;
pub mod lock_loops;
pub mod loops;
pub mod module;
pub mod print;
pub mod reconvergence;
pub mod regalloc;
pub mod spell;
pub mod spin;
pub mod types;
pub mod visit;
pub mod webs;

pub use inst::*;
pub use kernel::*;
pub use link::*;
pub use module::*;
pub use types::*;
pub use visit::*;
