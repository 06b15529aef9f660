//! A CUDA runtime library (`libcudart`) over a simulated GPU: CUDA programs that nvcc has built run on it unmodified.
//!
//! A program that is linked with the shared runtime finds this library by the library path. One with the runtime linked
//! in, nvcc's default, is met by preloading it: the constructor redirects the runtime's functions in the program to
//! those here (`abi::redirect`). `warploom exec` arranges both. The PTX comes out of the program's fat binaries
//! (`core::fatbin`). `WARPLOOM_…` variables choose the chip and all else (`core::settings`).
//!
//! C programs pass pointers, so the functions they call are unsafe by nature. They are in `abi`, which turns pointers
//! into slices and values and does nothing else; all the rest is safe code in `core`. Start reading at
//! `core::process`.

#[expect(unsafe_code, reason = "C programs call it and pass pointers")]
mod abi;
mod core;
