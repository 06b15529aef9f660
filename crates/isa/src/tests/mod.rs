//! Tests of the passes, on hand-written and on random bodies.

mod allocation;
mod asm;
mod graphs;
mod link;
mod spin;
