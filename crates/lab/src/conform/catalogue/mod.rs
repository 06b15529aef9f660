//! What is compared: every instruction of the front end that is a function of its operands.
//!
//! A row describes a family of cases as `opcode results = operands`:
//!
//! - Braces stand for each of their alternatives: `add{,.sat}.s32 T = T T` is two cases.
//! - Results and operands are types. `T` and `U` are the first and second type of the opcode, `W` has twice the width
//!   of `T`, `p` is a predicate, `d|p` are two results joined as in PTX, `#5` is a constant.
//! - After a colon an operand states which values it takes: a mask of bits (`b32:0x1f`), `few` different values, few
//!   per `warp`, or `angle`s.
//! - `~` bounds the error of an approximation: `ulp:2`, or powers of two, `rel:-23` and `abs:-11`.
//! - Where one instruction is not enough, ` : ` and a text follow. In it `$1` is the choice of the first braces, `$b`
//!   the untyped register class of `T`, and `$m` the thread's own eight bytes of memory, global or shared.

mod approx;
mod atomic;
mod bits;
mod compare;
mod convert;
mod float;
mod half;
mod integer;
mod matrix;
mod moves;
pub(crate) mod row;
mod video;
mod warp;

use super::case::Group;

/// All groups, in the order of recording.
pub const GROUPS: &[Group] = &[
    Group { name: "integer", version: "8.0", target: "sm_90", tuples: 512, rows: integer::ROWS },
    Group { name: "carry", version: "8.0", target: "sm_90", tuples: 256, rows: integer::CARRY },
    Group { name: "bits", version: "8.2", target: "sm_90", tuples: 512, rows: bits::ROWS },
    Group { name: "setp", version: "8.0", target: "sm_90", tuples: 128, rows: compare::SETP },
    Group { name: "set", version: "8.0", target: "sm_90", tuples: 128, rows: compare::SET },
    Group { name: "select", version: "8.0", target: "sm_90", tuples: 128, rows: compare::SELECT },
    Group { name: "f32", version: "8.0", target: "sm_90", tuples: 1024, rows: float::SINGLE },
    Group { name: "f64", version: "8.0", target: "sm_90", tuples: 1024, rows: float::DOUBLE },
    Group { name: "half", version: "8.0", target: "sm_90", tuples: 512, rows: half::ROWS },
    Group { name: "approx", version: "8.0", target: "sm_90", tuples: 2048, rows: approx::ROWS },
    Group { name: "cvt-integer", version: "8.0", target: "sm_90", tuples: 192, rows: convert::INTEGERS },
    Group { name: "cvt-float", version: "8.0", target: "sm_90", tuples: 512, rows: convert::FLOATS },
    Group { name: "cvt-mixed", version: "8.0", target: "sm_90", tuples: 192, rows: convert::MIXED },
    Group { name: "cvt-narrow", version: "8.6", target: "sm_90", tuples: 512, rows: convert::NARROW },
    Group { name: "cvt-finite", version: "8.6", target: "sm_90", tuples: 512, rows: convert::FINITE },
    Group { name: "video", version: "8.0", target: "sm_90", tuples: 128, rows: video::ROWS },
    Group { name: "moves", version: "8.0", target: "sm_90", tuples: 128, rows: moves::ROWS },
    Group { name: "warp", version: "8.0", target: "sm_90", tuples: 512, rows: warp::ROWS },
    Group { name: "atomic", version: "8.0", target: "sm_90", tuples: 256, rows: atomic::ROWS },
    Group { name: "mma", version: "8.6", target: "sm_90", tuples: 512, rows: matrix::PRODUCTS },
    Group { name: "matrix-moves", version: "8.0", target: "sm_90", tuples: 256, rows: matrix::MOVES },
    Group { name: "wgmma", version: "8.0", target: "sm_90a", tuples: 512, rows: matrix::WARP_GROUPS },
];
