// Loops and 64-bit arithmetic: modular powers, and a hash of a run of bytes through slices and iterators.
#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]

use core::arch::nvptx::{_block_dim_x, _block_idx_x, _thread_idx_x};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

unsafe fn thread() -> usize {
    (_block_idx_x() * _block_dim_x() + _thread_idx_x()) as usize
}

#[inline(never)]
fn power(mut base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let mut result = 1 % modulus;
    base %= modulus;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

#[no_mangle]
pub unsafe extern "ptx-kernel" fn modpow(base: *const u64, exponent: *const u64, out: *mut u64, modulus: u64, n: u32) {
    let i = thread();
    if i < n as usize && modulus > 0 {
        *out.add(i) = power(*base.add(i), *exponent.add(i), modulus);
    }
}

#[no_mangle]
pub unsafe extern "ptx-kernel" fn fnv1a(bytes: *const u8, length: u32, out: *mut u64, n: u32) {
    let i = thread();
    if i < n as usize {
        let mine = core::slice::from_raw_parts(bytes.add(i * length as usize), length as usize);
        *out.add(i) = mine
            .iter()
            .fold(0xcbf29ce484222325, |hash: u64, &byte| (hash ^ byte as u64).wrapping_mul(0x100000001b3));
    }
}
