// Checked indexing: the panic is a call of a function that the module declares and does not define.
#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]

use core::arch::nvptx::{_block_dim_x, _block_idx_x, _thread_idx_x};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[no_mangle]
pub unsafe extern "ptx-kernel" fn gather(table: *const u32, entries: u32, index: *const u32, out: *mut u32, n: u32) {
    let i = (_block_idx_x() * _block_dim_x() + _thread_idx_x()) as usize;
    if i < n as usize {
        let table = core::slice::from_raw_parts(table, entries as usize);
        *out.add(i) = table[*index.add(i) as usize].rotate_left(7).leading_zeros();
    }
}
