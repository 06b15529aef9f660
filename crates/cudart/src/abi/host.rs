//! Memory of the host that the device has, too, at the same address.

use std::sync::{Mutex, PoisonError};

use crate::core::memory::Kind;
use crate::core::process::complain;

/// Where managed and pinned memory is: the same place in every run, so that cycles do not depend on how the system
/// lays out a process. Programs, heaps and libraries are elsewhere, and the simulator's lines fit its line numbers.
const RESERVE_BASE: usize = 0x18_0000_0000;
const RESERVE_BYTES: usize = 32 << 30;
const PAGE: usize = 4096;

/// Bytes of the reserve that are in use, once it exists.
static RESERVED: Mutex<Option<usize>> = Mutex::new(None);

/// A range of the host's memory. It is readable and writable as long as this lives: it is part of the reserve, or the
/// program has registered it.
#[derive(Debug)]
pub(crate) struct SharedRange {
    address: usize,
    bytes: usize,
    kind: Kind,
}

impl SharedRange {
    /// Takes fresh zeros from the reserve. `None` if the system has none.
    pub(crate) fn allocate(bytes: usize, kind: Kind) -> Option<SharedRange> {
        let mut used = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        if used.is_none() {
            *used = Some(reserve()?);
        }
        let start = (*used)?;
        // A page between two ranges, so that running over the end of one is noticed.
        let taken = bytes.checked_next_multiple_of(PAGE)?.checked_add(PAGE)?;
        let end = start.checked_add(taken).filter(|&end| end <= RESERVE_BYTES)?;
        let address = RESERVE_BASE + start;
        // Sound: the pages are in the reserve, and nobody has them.
        let changed =
            unsafe { libc::mprotect(address as *mut _, taken - PAGE, libc::PROT_READ | libc::PROT_WRITE) };
        if changed != 0 {
            return None;
        }
        *used = Some(end);
        Some(SharedRange { address, bytes, kind })
    }

    /// A range that was allocated before, under another name. `None` outside of what is allocated.
    pub(crate) fn in_reserve(address: u64, bytes: usize, kind: Kind) -> Option<SharedRange> {
        let address = usize::try_from(address).ok()?;
        let used = RESERVED.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(0);
        let end = address.checked_sub(RESERVE_BASE)?.checked_add(bytes)?;
        (end <= used).then_some(SharedRange { address, bytes, kind })
    }

    /// Memory of the program's own.
    ///
    /// # Safety
    /// It must be readable and writable until the range is dropped.
    pub(crate) unsafe fn registered(address: u64, bytes: usize) -> SharedRange {
        SharedRange { address: address as usize, bytes, kind: Kind::Host }
    }

    pub(crate) fn address(&self) -> u64 {
        self.address as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address as u64) < self.bytes as u64
    }

    /// What the host has there. A program whose other threads write it during a launch gets one value or the other,
    /// as on a GPU.
    pub(crate) fn bytes(&self) -> &[u8] {
        // Sound: the type's promise.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }

    /// Replaces bytes from `offset` on. Those past the end are dropped.
    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        // Sound: the type's promise.
        let all = unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.bytes) };
        let target = all.get_mut(offset..).unwrap_or_default();
        let count = target.len().min(data.len());
        target[..count].copy_from_slice(&data[..count]);
    }
}

/// Takes the range of addresses, without memory behind it. Returns how much of it is in use: nothing.
fn reserve() -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // Sound: it maps nothing over existing pages.
    let mapped = unsafe { libc::mmap(RESERVE_BASE as *mut _, RESERVE_BYTES, libc::PROT_NONE, flags, -1, 0) };
    if mapped as usize != RESERVE_BASE {
        complain(format!("addresses from {RESERVE_BASE:#x} on are in use: no managed or pinned memory"));
        return None;
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_the_reserve() {
        let mut a = SharedRange::allocate(100, Kind::Managed).unwrap();
        let b = SharedRange::allocate(5000, Kind::Host).unwrap();
        assert!(b.address() >= a.address() + 2 * PAGE as u64);
        assert!(a.bytes().iter().all(|&byte| byte == 0) && a.len() == 100);
        a.write(98, &[1, 2, 3]);
        assert_eq!(a.bytes()[96..], [0, 0, 1, 2]);
        assert!(a.contains(a.address() + 99) && !a.contains(a.address() + 100));
        assert!(SharedRange::in_reserve(a.address(), 100, Kind::Managed).is_some());
        assert!(SharedRange::in_reserve(a.address(), RESERVE_BYTES, Kind::Managed).is_none());
        assert!(SharedRange::in_reserve(4096, 8, Kind::Managed).is_none());
    }
}
