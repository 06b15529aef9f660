//! The bytes of device memory, as the allocations that hold them. Every access is checked against them.

use crate::kit::bits::BitSet;
use crate::outside::OutsideLoads;

/// More bytes are asked for before they are taken: zeroed memory comes lazily from the system, but running out of it
/// would end the process. Fewer are there, and asking would make the system clear them.
const MANY_BYTES: u64 = 1 << 28;

/// Where global memory begins: above the windows of the other spaces, low enough for 32-bit code.
pub const GLOBAL_BASE: u64 = 0x1000_0000;

/// Allocations start at multiples of this, as `cudaMalloc`'s do.
const ALIGN: u64 = 256;

/// Never-allocated bytes between two allocations, so that running over the end of one does not hit the next.
const GUARD: u64 = 256;

/// With checks on, as many bytes as the allocation has are never allocated after it, up to this.
const MOST_GUARD: u64 = 64 << 20;

/// The large guard of a small allocation.
const LEAST_LARGE_GUARD: u64 = 64 << 10;

/// Allocations beyond this have the small guard: programs with 32-bit addresses reach no further.
const LARGE_GUARDS_END: u64 = 1 << 31;

/// Freed allocations that are remembered, for messages and for [`Memory::loads_zeros`].
const REMEMBERED: usize = 64;

/// What a GPU maps at once: [`OutsideLoads::Zero`] holds where an allocation has a part of it.
const PAGE: u64 = 2 << 20;

/// So far from all allocations lies what is no pointer to device memory at all.
const FAR: u64 = 1 << 40;

/// The number of no allocation: bytes outside of all, which move later.
pub const NO_ALLOCATION: usize = usize::MAX;

/// Memory does not hold what is asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutOfMemory {
    /// The chip's memory is too small.
    #[error(
        "out of device memory: {asked} bytes asked for, {free} of {total} bytes free (memory.global_bytes)"
    )]
    Device {
        /// Bytes asked for.
        asked: u64,
        /// Bytes left.
        free: u64,
        /// Bytes the chip has.
        total: u64,
    },
    /// The chip has it, but not the computer that simulates it.
    #[error("this computer cannot hold {asked} bytes of simulated device memory")]
    Host {
        /// Bytes asked for.
        asked: u64,
    },
    /// Other allocations are where it was to be.
    #[error("{asked} bytes at {address:#x}: device memory is in use there")]
    Taken {
        address: u64,
        /// Bytes asked for.
        asked: u64,
    },
}

/// One allocation.
#[derive(Debug)]
pub struct Allocation {
    base: u64,
    name: String,
    bytes: Vec<u8>,
    /// One bit a byte: whether it was ever written. Kept only when asked for.
    written: Option<BitSet>,
}

/// A part of an allocation that messages name.
#[derive(Debug)]
struct Part {
    base: u64,
    bytes: u64,
    name: String,
}

/// Device memory.
#[derive(Debug)]
pub struct Memory {
    /// Sorted by address.
    allocations: Vec<Allocation>,
    /// Sorted by address. They do not overlap.
    parts: Vec<Part>,
    freed: Vec<(u64, u64, String)>,
    next: u64,
    used: u64,
    total: u64,
    track_writes: bool,
    outside_loads: OutsideLoads,
}

impl Memory {
    /// Memory of `total` bytes. With `track_writes`, it knows which bytes were never written.
    pub fn new(total: u64, track_writes: bool) -> Self {
        Memory {
            allocations: Vec::new(),
            parts: Vec::new(),
            freed: Vec::new(),
            next: GLOBAL_BASE,
            used: 0,
            total,
            track_writes,
            outside_loads: OutsideLoads::default(),
        }
    }

    /// Chooses what loads outside of all allocations do.
    pub fn outside_loads(self, outside_loads: OutsideLoads) -> Self {
        Memory { outside_loads, ..self }
    }

    /// Takes `bytes` zero bytes, which count as never written, and returns their address.
    pub fn allocate(&mut self, bytes: u64, align: u64, name: impl Into<String>) -> Result<u64, OutOfMemory> {
        let free = self.total - self.used;
        if bytes > free {
            return Err(OutOfMemory::Device { asked: bytes, free, total: self.total });
        }
        ask_for(bytes)?;
        let mut base = self.next.next_multiple_of(align.max(ALIGN));
        while let Some(end) = self.placed_in_the_way(base, bytes) {
            base = (end + GUARD).next_multiple_of(align.max(ALIGN));
        }
        self.next = base + bytes + self.guard(base, bytes);
        self.insert(base, bytes, name.into());
        Ok(base)
    }

    /// Takes `bytes` zero bytes at an address that the host has chosen, so that host and device agree on it. They
    /// must not touch another allocation.
    pub fn allocate_at(
        &mut self,
        address: u64,
        bytes: u64,
        name: impl Into<String>,
    ) -> Result<(), OutOfMemory> {
        let free = self.total - self.used;
        if bytes > free {
            return Err(OutOfMemory::Device { asked: bytes, free, total: self.total });
        }
        let taken = address < self.next || self.placed_in_the_way(address, bytes).is_some();
        let room = !taken && address.checked_add(bytes).is_some();
        let bytes = room.then_some(bytes).ok_or(OutOfMemory::Taken { address, asked: bytes })?;
        ask_for(bytes)?;
        self.insert(address, bytes, name.into());
        Ok(())
    }

    /// The end of an allocation above `next`, which the host has placed, that overlaps these bytes and their guard.
    fn placed_in_the_way(&self, base: u64, bytes: u64) -> Option<u64> {
        let placed = self.allocations.iter().rev().take_while(|a| a.base >= self.next);
        let touches = |a: &&Allocation| {
            let end = a.base + a.bytes.len() as u64;
            a.base < base.saturating_add(bytes).saturating_add(GUARD) && base < end.saturating_add(GUARD)
        };
        placed.filter(touches).map(|a| a.base + a.bytes.len() as u64).max()
    }

    fn insert(&mut self, base: u64, bytes: u64, name: String) {
        self.used += bytes;
        let written = self.track_writes.then(|| BitSet::new(bytes as usize));
        let at = self.allocations.partition_point(|a| a.base < base);
        self.allocations.insert(at, Allocation { base, name, bytes: vec![0; bytes as usize], written });
    }

    /// Where memory begins decides about caches and banks, so the guard is large only where bytes are checked.
    fn guard(&self, base: u64, bytes: u64) -> u64 {
        let large = bytes.clamp(LEAST_LARGE_GUARD, MOST_GUARD);
        let fits = base + bytes + large <= LARGE_GUARDS_END;
        if self.track_writes && fits { large } else { GUARD }
    }

    /// Bytes allocated.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// A sum of all bytes: memory that differs has another one, but for a chance of 2^-128.
    pub fn digest(&self) -> u128 {
        let add = |sum: u128, word: u64| {
            (sum ^ u128::from(word)).wrapping_mul(0x2d99_787d_89f1_3e1b_9e37_79b9_7f4a_7c15).rotate_left(67)
        };
        self.allocations.iter().fold(0, |sum, allocation| {
            let (words, rest) = allocation.bytes.as_chunks::<8>();
            let sum =
                words.iter().fold(add(sum, allocation.base), |sum, word| add(sum, u64::from_le_bytes(*word)));
            rest.iter().fold(sum, |sum, &byte| add(sum, u64::from(byte)))
        })
    }

    /// Gives an allocation back. Returns whether one began there.
    pub fn free(&mut self, address: u64) -> bool {
        let Ok(at) = self.allocations.binary_search_by_key(&address, |a| a.base) else { return false };
        let gone = self.allocations.remove(at);
        self.used -= gone.bytes.len() as u64;
        self.parts.retain(|part| part.base.wrapping_sub(gone.base) >= gone.bytes.len() as u64);
        if self.freed.len() == REMEMBERED {
            self.freed.remove(0);
        }
        self.freed.push((gone.base, gone.bytes.len() as u64, gone.name));
        true
    }

    /// Whether a load at `address`, some of whose bytes are outside of all allocations, reads zeros there.
    pub fn loads_zeros(&self, address: u64) -> bool {
        let page = address & !(PAGE - 1);
        let mapped = || {
            let after = self.allocations.partition_point(|a| a.base < page.saturating_add(PAGE));
            let last = after.checked_sub(1).map(|at| &self.allocations[at]);
            last.is_some_and(|a| a.base + a.bytes.len() as u64 > page)
        };
        let freed = || self.freed.iter().any(|(base, len, _)| address.wrapping_sub(*base) < *len);
        self.outside_loads == OutsideLoads::Zero && mapped() && !freed()
    }

    /// Makes bytes that are not all in one allocation the last allocation: zeros, but for those that one holds. Only
    /// its number finds it, and only until [`Memory::take_back`].
    fn lend(&mut self, address: u64, bytes: usize) -> usize {
        let mut held = vec![0; bytes];
        let mut written = self.track_writes.then(|| BitSet::new(bytes));
        for (at, byte) in held.iter_mut().enumerate() {
            let of = self.find(address + at as u64).map(|found| &self.allocations[found]);
            let place = of.map(|of| (of, (address + at as u64 - of.base) as usize));
            *byte = place.map_or(0, |(of, place)| of.bytes[place]);
            let known = place.is_none_or(|(of, place)| {
                of.written.as_ref().is_none_or(|written| written.contains(place, 1))
            });
            if let Some(written) = written.as_mut().filter(|_| known) {
                written.insert(at, 1);
            }
        }
        self.allocations.push(Allocation { base: address, name: String::new(), bytes: held, written });
        self.allocations.len() - 1
    }

    /// The number of the allocation that holds `address`.
    #[inline]
    pub fn find(&self, address: u64) -> Option<usize> {
        let at = self.allocations.partition_point(|a| a.base <= address);
        let at = at.checked_sub(1)?;
        (address - self.allocations[at].base < self.allocations[at].bytes.len() as u64).then_some(at)
    }

    /// Whether the allocation of a number holds `address`.
    #[inline(always)]
    pub fn holds(&self, at: usize, address: u64) -> bool {
        self.allocations.get(at).is_some_and(|a| address.wrapping_sub(a.base) < a.bytes.len() as u64)
    }

    /// An allocation's address and bytes.
    #[inline]
    pub fn allocation(&self, at: usize) -> (u64, &[u8]) {
        let a = &self.allocations[at];
        (a.base, &a.bytes)
    }

    /// An allocation's address, bytes, and the set of written ones where that is tracked.
    #[inline]
    pub fn allocation_mut(&mut self, at: usize) -> (u64, &mut [u8], Option<&mut BitSet>) {
        let a = &mut self.allocations[at];
        (a.base, &mut a.bytes, a.written.as_mut())
    }

    /// Which of 128 bytes from `address` on were written, a bit each; those of no allocation count as written. All, if
    /// that is not tracked.
    pub fn written_from(&self, address: u64) -> u128 {
        if !self.track_writes {
            return u128::MAX;
        }
        let allocation = self.find(address).map(|at| &self.allocations[at]);
        let Some(Allocation { base, bytes, written: Some(written), .. }) = allocation else {
            return u128::MAX;
        };
        let first = (address - base) as usize;
        let unwritten = (first..bytes.len().min(first + 128)).filter(|&at| !written.contains(at, 1));
        unwritten.fold(u128::MAX, |bits, at| bits & !(1 << (at - first)))
    }

    /// Copies what memory holds of a line; beyond an allocation's end there is nothing.
    #[inline]
    pub fn read_line(&self, line: u64, into: &mut [u8]) {
        let Some(at) = self.find(line) else { return into.fill(0) };
        let (base, data) = self.allocation(at);
        let data = &data[(line - base) as usize..];
        let some = data.len().min(into.len());
        into[..some].copy_from_slice(&data[..some]);
        into[some..].fill(0);
    }

    /// A line, of which some bytes were ever written, replaces what memory holds of it.
    pub fn write_line(&mut self, line: u64, bytes: &[u8], written: u128) {
        let Some(at) = self.find(line) else { return };
        let (base, data, known) = self.allocation_mut(at);
        let start = (line - base) as usize;
        let some = (data.len() - start).min(bytes.len());
        data[start..start + some].copy_from_slice(&bytes[..some]);
        if let Some(known) = known {
            (0..some).filter(|byte| written >> byte & 1 == 1).for_each(|byte| known.insert(start + byte, 1));
        }
    }

    /// Which bytes of an allocation were written, where that is tracked.
    pub fn written(&self, at: usize) -> Option<&BitSet> {
        self.allocations[at].written.as_ref()
    }

    /// Bytes for the host to read; `None` unless all lie in one allocation.
    pub fn read(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        if bytes == 0 {
            return Some(&[]);
        }
        let (base, data) = self.allocation(self.find(address)?);
        let start = (address - base) as usize;
        data.get(start..start.checked_add(bytes)?)
    }

    /// The host writes; false unless all lie in one allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> bool {
        if data.is_empty() {
            return true;
        }
        let Some(at) = self.find(address) else { return false };
        let (base, bytes, written) = self.allocation_mut(at);
        let start = (address - base) as usize;
        let Some(target) = bytes.get_mut(start..start + data.len()) else { return false };
        target.copy_from_slice(data);
        if let Some(written) = written {
            written.insert(start, data.len());
        }
        true
    }

    /// The allocation at `address` counts as written.
    pub fn mark_written(&mut self, address: u64) {
        let Some(at) = self.find(address) else { return };
        let (_, bytes, written) = self.allocation_mut(at);
        if let Some(written) = written {
            written.insert(0, bytes.len());
        }
    }

    /// Gives a part of an allocation a name of its own for messages. It must not touch another such part.
    pub fn name_part(&mut self, address: u64, bytes: u64, name: impl Into<String>) {
        let at = self.parts.partition_point(|part| part.base < address);
        self.parts.insert(at, Part { base: address, bytes, name: name.into() });
    }

    /// The name of the allocation, its part, or variable that holds a good address, and the address's offset in it.
    pub fn name(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.parts.partition_point(|part| part.base <= address);
        if let Some(part) = after.checked_sub(1).map(|at| &self.parts[at])
            && address - part.base < part.bytes
        {
            return Some((&part.name, address - part.base));
        }
        let Allocation { base, name, .. } = &self.allocations[self.find(address)?];
        let name = name.strip_prefix("variable `").and_then(|n| n.strip_suffix('`')).unwrap_or(name);
        Some((name, address - base))
    }

    /// Says in words where a bad address lies: "4 bytes past the end of buffer 2 (4096 bytes)".
    pub fn describe(&self, address: u64, bytes: u64) -> String {
        if let Some((base, len, name)) =
            self.freed.iter().find(|(base, len, _)| address.wrapping_sub(*base) < *len)
        {
            return format!("at byte {} of {name} ({len} bytes), which was freed", address - base);
        }
        let after = self.allocations.partition_point(|a| a.base <= address);
        let before = after.checked_sub(1).map(|i| &self.allocations[i]);
        let after = self.allocations.get(after);
        let past = before.map(|a| (address.saturating_sub(a.base + a.bytes.len() as u64), a));
        let ahead = after.map(|a| (a.base - address, a));
        match (past, ahead) {
            (None, None) => "no global memory is allocated".to_string(),
            (Some((FAR.., _)), None) => "far from all device memory, as a pointer of the host is".to_string(),
            (Some((past, a)), ahead) if ahead.is_none_or(|(ahead, _)| past <= ahead) => {
                let len = a.bytes.len() as u64;
                if address < a.base + len {
                    let over = address + bytes - (a.base + len);
                    format!("the last {} past the end of {} ({len} bytes)", count(over), a.name)
                } else if past == 0 {
                    format!("right past the end of {} ({len} bytes)", a.name)
                } else {
                    format!("{} past the end of {} ({len} bytes)", count(past), a.name)
                }
            }
            (_, Some((ahead, a))) => {
                format!("{} before the start of {} ({} bytes)", count(ahead), a.name, a.bytes.len())
            }
            (Some(_), None) => unreachable!("the guard above holds when nothing lies ahead"),
        }
    }
}

/// Device memory as an instruction reaches it.
#[derive(Debug)]
pub enum Global<'a> {
    /// Its bytes move at once.
    Now(&'a mut Memory),
    /// Addresses are checked at once; bytes move later, when the memory system serves the access.
    Later(&'a Memory),
}

impl Global<'_> {
    /// The same for a shorter time.
    #[inline(always)]
    pub fn reborrow(&mut self) -> Global<'_> {
        match self {
            Global::Now(memory) => Global::Now(memory),
            Global::Later(memory) => Global::Later(memory),
        }
    }

    /// A number for bytes that are not all in one allocation, for a load; give it back with [`Global::take_back`].
    pub fn lend(&mut self, address: u64, bytes: usize) -> usize {
        match self {
            Global::Now(memory) => memory.lend(address, bytes),
            // A line has zeros beyond the end of an allocation.
            Global::Later(_) => NO_ALLOCATION,
        }
    }

    pub fn take_back(&mut self) {
        if let Global::Now(memory) = self {
            memory.allocations.pop();
        }
    }

    /// An allocation to change.
    #[inline(always)]
    pub fn allocation_mut(&mut self, at: usize) -> (u64, &mut [u8], Option<&mut BitSet>) {
        match self {
            Global::Now(memory) => memory.allocation_mut(at),
            Global::Later(_) => unreachable!("global memory changes only where it is served"),
        }
    }
}

impl std::ops::Deref for Global<'_> {
    type Target = Memory;

    #[inline(always)]
    fn deref(&self) -> &Memory {
        match self {
            Global::Now(memory) => memory,
            Global::Later(memory) => memory,
        }
    }
}

fn count(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_string() } else { format!("{bytes} bytes") }
}

/// Asks the system for many bytes, without taking them.
fn ask_for(bytes: u64) -> Result<(), OutOfMemory> {
    let many = usize::try_from(bytes).map_err(|_| OutOfMemory::Host { asked: bytes })?;
    if bytes < MANY_BYTES {
        return Ok(());
    }
    Vec::<u8>::new().try_reserve_exact(many).map_err(|_| OutOfMemory::Host { asked: bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_do_not_touch() {
        let mut memory = Memory::new(1 << 20, false);
        let a = memory.allocate(100, 1, "a").unwrap();
        let b = memory.allocate(100, 1, "b").unwrap();
        assert_eq!(a, GLOBAL_BASE);
        assert!(b >= a + 100 + GUARD && b.is_multiple_of(ALIGN));
        assert_eq!(memory.find(a + 99), Some(0));
        assert_eq!(memory.find(a + 100), None);
        assert_eq!(memory.find(a - 1), None);
    }

    #[test]
    fn allocations_at_chosen_addresses() {
        let mut memory = Memory::new(1 << 40, false);
        let a = memory.allocate(100, 1, "a").unwrap();
        let high = GLOBAL_BASE + (1 << 20);
        memory.allocate_at(high, 4096, "managed").unwrap();
        assert!(memory.write(high + 4092, &[1, 2, 3, 4]));
        assert_eq!(memory.name(high + 4095), Some(("managed", 4095)));
        // Others grow towards it and then go around it.
        let b = memory.allocate(100, 1, "b").unwrap();
        let c = memory.allocate(1 << 20, 1, "c").unwrap();
        assert!(a < b && b < high && c >= high + 4096 + GUARD);
        assert_eq!(memory.name(c), Some(("c", 0)));
        for taken in [a, b, high + 8, high - 8, c] {
            let error = memory.allocate_at(taken, 16, "d").unwrap_err();
            assert_eq!(error, OutOfMemory::Taken { address: taken, asked: 16 });
        }
        assert!(memory.free(high));
        assert_eq!(memory.find(high), None);
    }

    #[test]
    fn with_checks_an_index_far_past_a_buffer_reaches_no_other() {
        let mut memory = Memory::new(1 << 40, true);
        let a = memory.allocate(1 << 20, 1, "a").unwrap();
        let b = memory.allocate(100, 1, "b").unwrap();
        assert!(b >= a + (2 << 20));
        assert!(memory.allocate(100, 1, "c").unwrap() >= b + 100 + (64 << 10));
        // The addresses of 32-bit programs do not run out sooner.
        let mut memory = Memory::new(1 << 40, true);
        for _ in 0..100 {
            memory.allocate(16 << 20, 1, "c").unwrap();
        }
        assert!(memory.allocate(100, 1, "d").unwrap() < 1 << 32);
    }

    #[test]
    fn host_access_stays_inside_one_allocation() {
        let mut memory = Memory::new(1 << 20, true);
        let a = memory.allocate(8, 1, "a").unwrap();
        assert!(memory.write(a + 4, &[1, 2, 3, 4]));
        assert!(!memory.write(a + 5, &[1, 2, 3, 4]));
        assert_eq!(memory.read(a + 4, 4), Some(&[1u8, 2, 3, 4][..]));
        assert_eq!(memory.read(a + 5, 4), None);
        assert!(memory.written(0).unwrap().contains(4, 4));
        assert!(!memory.written(0).unwrap().contains(3, 2));
    }

    #[test]
    fn loads_outside_of_allocations() {
        let mut memory = Memory::new(1 << 30, true);
        let a = memory.allocate(100, 1, "a").unwrap();
        assert!(!memory.loads_zeros(a + 100));
        let mut memory = Memory { allocations: Vec::new(), ..memory.outside_loads(OutsideLoads::Zero) };
        let b = memory.allocate(PAGE, 1, "b").unwrap();
        let c = memory.allocate(8, 1, "c").unwrap();
        memory.write(c, &[1, 2, 3, 4]);
        assert!(b > GLOBAL_BASE && memory.loads_zeros(b - 1) && memory.loads_zeros(c + 8));
        assert!(
            !memory.loads_zeros(GLOBAL_BASE - 1) && !memory.loads_zeros(c + PAGE) && !memory.loads_zeros(0)
        );
        let lent = memory.lend(c, 16);
        assert_eq!(memory.allocation(lent), (c, &[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]));
        let known = memory.written(lent).unwrap();
        assert!(known.contains(0, 4) && !known.contains(4, 1) && known.contains(8, 8));
        Global::Now(&mut memory).take_back();
        assert_eq!(memory.find(c), Some(1));
        // What was freed is not just outside.
        memory.free(b);
        assert!(!memory.loads_zeros(b) && memory.loads_zeros(c - 1));
    }

    #[test]
    fn words_for_bad_addresses() {
        let mut memory = Memory::new(1 << 20, false);
        assert_eq!(memory.describe(0, 4), "no global memory is allocated");
        let a = memory.allocate(4096, 1, "buffer 0").unwrap();
        assert_eq!(memory.describe(a + 4096, 4), "right past the end of buffer 0 (4096 bytes)");
        assert_eq!(memory.describe(a + 4100, 4), "4 bytes past the end of buffer 0 (4096 bytes)");
        assert_eq!(memory.describe(a + 4092, 8), "the last 4 bytes past the end of buffer 0 (4096 bytes)");
        assert_eq!(memory.describe(a - 4, 4), "4 bytes before the start of buffer 0 (4096 bytes)");
        let host = memory.describe(0x7fff_0000_1000, 4);
        assert_eq!(host, "far from all device memory, as a pointer of the host is");
        memory.free(a);
        assert_eq!(memory.describe(a + 8, 4), "at byte 8 of buffer 0 (4096 bytes), which was freed");
    }

    #[test]
    fn names_of_good_addresses() {
        let mut memory = Memory::new(1 << 20, false);
        let buffer = memory.allocate(64, 1, "buffer 0").unwrap();
        let variable = memory.allocate(4, 4, "variable `lock`").unwrap();
        assert_eq!(memory.name(buffer + 16), Some(("buffer 0", 16)));
        assert_eq!(memory.name(variable), Some(("lock", 0)));
        assert_eq!(memory.name(buffer + 64), None);
        memory.name_part(buffer + 48, 16, "tail");
        memory.name_part(buffer + 8, 8, "count");
        let named =
            |memory: &Memory, offset| memory.name(buffer + offset).map(|(name, at)| (name.to_string(), at));
        let expected =
            [(7, "buffer 0", 7), (8, "count", 0), (15, "count", 7), (16, "buffer 0", 16), (63, "tail", 15)];
        for (offset, name, at) in expected {
            assert_eq!(named(&memory, offset), Some((name.to_string(), at)));
        }
        assert_eq!(named(&memory, 64), None);
        assert!(memory.free(buffer));
        assert_eq!(named(&memory, 8), None);
    }

    #[test]
    fn memory_runs_out() {
        let mut memory = Memory::new(1000, false);
        let a = memory.allocate(900, 1, "a").unwrap();
        let error = memory.allocate(200, 1, "b").unwrap_err();
        assert_eq!(error, OutOfMemory::Device { asked: 200, free: 100, total: 1000 });
        assert!(memory.free(a) && !memory.free(a));
        assert!(memory.allocate(200, 1, "b").is_ok());
    }
}
