// c = a + b, one element a thread.
#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]

use core::arch::nvptx::{_block_dim_x, _block_idx_x, _thread_idx_x};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[no_mangle]
pub unsafe extern "ptx-kernel" fn vecadd(a: *const f32, b: *const f32, c: *mut f32, n: u32) {
    let i = (_block_idx_x() * _block_dim_x() + _thread_idx_x()) as usize;
    if i < n as usize {
        *c.add(i) = *a.add(i) + *b.add(i);
    }
}

#[no_mangle]
pub unsafe extern "ptx-kernel" fn saxpy(x: *const f32, y: *mut f32, a: f32, n: u32) {
    let i = (_block_idx_x() * _block_dim_x() + _thread_idx_x()) as usize;
    if i < n as usize {
        *y.add(i) = a * *x.add(i) + *y.add(i);
    }
}
