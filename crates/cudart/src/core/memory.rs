//! Device memory as the program sees it, and memory that host and device share.
//!
//! Shared memory (managed, pinned and mapped, registered) has the same address on both sides, but the simulator keeps
//! bytes of its own: what the host has changed is copied to the device before each launch, and what the device has
//! changed is copied back after it. Between launches the host's bytes are the true ones.

use std::collections::{BTreeMap, VecDeque};

use warploom::Device;

use crate::abi::host::SharedRange;
use crate::core::error::{CudaError, Result};
use crate::core::pending::Direction;
use crate::core::process::{CONSTANTS, Open, Process, complain};
use crate::core::properties::PITCH_BYTES;
use crate::core::timeline::Picoseconds;

/// Freed allocations that are remembered, for messages.
const REMEMBERED: usize = 64;

/// Shared memory is compared and copied in pieces of this size.
const PAGE: usize = 4096;

#[derive(Debug)]
pub(crate) struct Memory {
    /// Of `cudaMalloc` and its kin: address and bytes.
    allocations: BTreeMap<u64, u64>,
    /// Those that were freed last: address and bytes.
    freed: VecDeque<(u64, u64)>,
    /// Of these, memory of graphs' nodes, and whether the program has it now. It keeps its place for the next launch.
    of_graphs: BTreeMap<u64, bool>,
    /// The most bytes of graphs that the program has had at a time.
    most_of_graphs: u64,
    shared: Vec<SharedRange>,
    /// Allocations end at a multiple of it.
    granule: u64,
}

/// On which side bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Host,
    Device,
}

/// A box of bytes in memory: rows of `width` bytes, `pitch` bytes from row to row, `slice` from plane to plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
    pub(crate) slice: u64,
}

/// Width in bytes, rows, planes.
pub(crate) type Extent = [u64; 3];

impl Place {
    pub(crate) fn line(address: u64) -> Place {
        Place { address, pitch: 0, slice: 0 }
    }

    pub(crate) fn rows(address: u64, pitch: usize) -> Place {
        Place { address, pitch: pitch as u64, slice: 0 }
    }

    pub(crate) fn row(&self, row: u64, plane: u64) -> u64 {
        self.address.wrapping_add(self.slice.wrapping_mul(plane)).wrapping_add(self.pitch.wrapping_mul(row))
    }
}

/// What kind of memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unregistered = 0,
    Host = 1,
    Device = 2,
    Managed = 3,
}

/// What `cudaMemcpyKind` says of the two sides: `None` where they are to be found out.
pub(crate) fn sides(kind: i32) -> Result<Option<(Side, Side)>> {
    match kind {
        0 => Ok(Some((Side::Host, Side::Host))),
        1 => Ok(Some((Side::Device, Side::Host))),
        2 => Ok(Some((Side::Host, Side::Device))),
        3 => Ok(Some((Side::Device, Side::Device))),
        4 => Ok(None),
        _ => Err(CudaError::INVALID_MEMCPY_DIRECTION),
    }
}

impl Memory {
    pub(super) fn new(granule: u64) -> Memory {
        Memory {
            allocations: BTreeMap::new(),
            freed: VecDeque::new(),
            of_graphs: BTreeMap::new(),
            most_of_graphs: 0,
            shared: Vec::new(),
            granule,
        }
    }

    /// A managed variable that was just loaded: its first value goes to the host.
    pub(super) fn show_managed(&mut self, gpu: &Device, address: u64, bytes: u64) -> Result {
        let range = SharedRange::in_reserve(address, bytes as usize, Kind::Managed);
        let mut range = range.ok_or(CudaError::INVALID_VALUE)?;
        let first = gpu.read_bytes(address, bytes as usize).map_err(|_| CudaError::INVALID_VALUE)?;
        range.write(0, &first);
        self.shared.push(range);
        Ok(())
    }

    /// An allocation is no more.
    fn forget(&mut self, address: u64, bytes: u64) {
        if self.freed.len() == REMEMBERED {
            self.freed.pop_front();
        }
        self.freed.push_back((address, bytes));
    }

    /// What is known of an address that is in no allocation.
    pub(crate) fn place_of_lost(&self, address: u64) -> String {
        match self.freed.iter().rev().find(|(start, bytes)| address.wrapping_sub(*start) < (*bytes).max(1)) {
            Some((start, bytes)) if *start == address => {
                format!("an allocation of {bytes} bytes, which was freed")
            }
            Some((start, bytes)) => {
                format!("byte {} of an allocation of {bytes} bytes, which was freed", address - start)
            }
            None => "in no memory of the device".to_string(),
        }
    }

    fn shared(&self, address: u64) -> Option<&SharedRange> {
        self.shared.iter().find(|range| range.contains(address))
    }

    /// Whether an argument has the address of pinned memory in it.
    pub(super) fn names_pinned(&self, argument: &[u8]) -> bool {
        let words = argument.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        let pinned = |address| self.shared(address).is_some_and(|range| range.kind() == Kind::Host);
        words.into_iter().any(pinned)
    }

    /// Brings what the host has changed to the device.
    pub(super) fn bring_to_device(&self, gpu: &mut Device) -> Result {
        for range in &self.shared {
            let known =
                gpu.read_bytes(range.address(), range.len()).map_err(|_| CudaError::ILLEGAL_ADDRESS)?;
            for (at, (new, old)) in range.bytes().chunks(PAGE).zip(known.chunks(PAGE)).enumerate() {
                if new != old {
                    let address = range.address() + (at * PAGE) as u64;
                    gpu.write_bytes(address, new).map_err(|_| CudaError::ILLEGAL_ADDRESS)?;
                }
            }
        }
        Ok(())
    }

    /// Brings what the device has changed to the host.
    pub(super) fn bring_to_host(&mut self, gpu: &Device) -> Result {
        for range in &mut self.shared {
            let new = gpu.read_bytes(range.address(), range.len()).map_err(|_| CudaError::ILLEGAL_ADDRESS)?;
            for (at, page) in new.chunks(PAGE).enumerate() {
                if range.bytes()[at * PAGE..][..page.len()] != *page {
                    range.write(at * PAGE, page);
                }
            }
        }
        Ok(())
    }
}

/// Whether the host has memory at an address; true if that cannot be found out.
fn is_mapped(address: u64) -> bool {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return true };
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    maps.lines().filter_map(range).any(|range| range.contains(&address))
}

/// The memory of this computer, with what it swaps to. Linux refuses larger allocations.
fn host_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((kib("MemTotal")? + kib("SwapTotal").unwrap_or(0)) * 1024)
}

/// Address and bytes of a range on the device, in whole lines: the host's own memory begins anywhere.
fn on_device(range: &SharedRange) -> (u64, u64) {
    const LINE: u64 = 256;
    let start = range.address() / LINE * LINE;
    let end = (range.address() + range.len() as u64).next_multiple_of(LINE);
    (start, end - start)
}

impl Open {
    fn is_device(&self, address: u64) -> bool {
        self.memory.shared(address).is_none()
            && ((CONSTANTS..2 * CONSTANTS).contains(&address) || self.gpu.read_bytes(address, 1).is_ok())
    }

    /// Allocates device memory.
    pub(crate) fn malloc(&mut self, bytes: u64) -> Result<u64> {
        // CUDA's allocations differ in their addresses even if they are empty; ours must have a byte for that.
        let name = format!("allocation {}", self.memory.allocations.len());
        let rounded = bytes.max(1).checked_next_multiple_of(self.memory.granule).unwrap_or(bytes);
        let address = self.gpu.allocate(rounded, &name).map_err(|error| {
            complain(format!("an allocation of {bytes} bytes: {error}"));
            CudaError::MEMORY_ALLOCATION
        })?;
        self.memory.allocations.insert(address, bytes);
        Ok(address)
    }

    /// Memory that a node of a graph allocates: its address is known before the graph runs.
    pub(crate) fn malloc_for_graph(&mut self, bytes: u64) -> Result<u64> {
        let address = self.malloc(bytes)?;
        self.memory.of_graphs.insert(address, false);
        Ok(address)
    }

    /// A graph's node allocates its memory.
    pub(crate) fn begin_graph_memory(&mut self, address: u64) -> Result {
        *self.memory.of_graphs.get_mut(&address).ok_or(CudaError::INVALID_VALUE)? = true;
        self.memory.most_of_graphs = self.memory.most_of_graphs.max(self.graph_bytes()[0]);
        Ok(())
    }

    /// Bytes of graphs' nodes, in the order of CUDA's attributes: those that the program has now and had at most, and
    /// those that are kept for them now and were at most.
    pub(crate) fn graph_bytes(&self) -> [u64; 4] {
        let bytes = |only_used: bool| {
            let of_graphs = self.memory.of_graphs.iter().filter(|(_, used)| **used || !only_used);
            of_graphs.filter_map(|(address, _)| self.memory.allocations.get(address)).sum()
        };
        [bytes(true), self.memory.most_of_graphs, bytes(false), bytes(false)]
    }

    /// Allocates rows. Returns the address and the bytes from row to row.
    pub(crate) fn malloc_pitch(&mut self, width: u64, rows: u64) -> Result<(u64, u64)> {
        let pitch = width.checked_next_multiple_of(PITCH_BYTES).ok_or(CudaError::INVALID_VALUE)?;
        let bytes = pitch.checked_mul(rows).ok_or(CudaError::INVALID_VALUE)?;
        Ok((self.malloc(bytes)?, pitch))
    }

    /// Frees device or managed memory.
    pub(crate) fn free(&mut self, address: u64) -> Result {
        if address == 0 {
            return Ok(());
        }
        if let Some(used) = self.memory.of_graphs.get_mut(&address) {
            let was_used = std::mem::replace(used, false);
            return was_used.then_some(()).ok_or_else(|| {
                complain(format!("a free of {address:#x}, memory of a graph that is not allocated"));
                CudaError::INVALID_VALUE
            });
        }
        if let Some(bytes) = self.memory.allocations.remove(&address) {
            self.memory.forget(address, bytes);
            return self.gpu.free(address).map_err(|error| {
                complain(error);
                CudaError::INVALID_VALUE
            });
        }
        let managed = |range: &SharedRange| range.address() == address && range.kind() == Kind::Managed;
        if self.take_shared(managed) {
            return Ok(());
        }
        match self.allocation(address) {
            Some((start, _)) => complain(format!(
                "a free of {address:#x}, which is byte {} of an allocation and not its start",
                address - start
            )),
            None => complain(format!("a free of {address:#x}: {}", self.memory.place_of_lost(address))),
        }
        Err(CudaError::INVALID_VALUE)
    }

    /// Allocates memory that host and device share.
    pub(crate) fn malloc_shared(&mut self, bytes: u64, kind: Kind) -> Result<u64> {
        let bytes = usize::try_from(bytes.max(1)).map_err(|_| CudaError::MEMORY_ALLOCATION)?;
        let range = SharedRange::allocate(bytes, kind).ok_or(CudaError::MEMORY_ALLOCATION)?;
        self.share(range)
    }

    /// From now on the device has the range, too.
    pub(crate) fn share(&mut self, range: SharedRange) -> Result<u64> {
        let (address, bytes) = on_device(&range);
        let name = format!("shared memory {}", self.memory.shared.len());
        self.gpu.allocate_at(address, bytes, &name).map_err(|error| {
            complain(error);
            CudaError::MEMORY_ALLOCATION
        })?;
        let address = range.address();
        self.memory.shared.push(range);
        Ok(address)
    }

    /// Frees pinned memory.
    pub(crate) fn free_host(&mut self, address: u64) -> Result {
        let pinned = |range: &SharedRange| range.address() == address && range.kind() == Kind::Host;
        let freed = address == 0 || self.take_shared(pinned);
        freed.then_some(()).ok_or(CudaError::INVALID_VALUE)
    }

    /// The device no longer has the range of the host's that begins there.
    pub(crate) fn unregister(&mut self, address: u64) -> Result {
        let found = self.take_shared(|range| range.address() == address);
        found.then_some(()).ok_or(CudaError::NOT_REGISTERED)
    }

    /// Whether some of the bytes are shared already.
    pub(crate) fn is_shared(&self, address: u64, bytes: u64) -> bool {
        let overlaps = |range: &SharedRange| {
            range.address() < address.saturating_add(bytes) && address < range.address() + range.len() as u64
        };
        self.memory.shared.iter().any(overlaps)
    }

    fn take_shared(&mut self, is_it: impl Fn(&SharedRange) -> bool) -> bool {
        let Some(at) = self.memory.shared.iter().position(is_it) else { return false };
        let range = self.memory.shared.remove(at);
        self.memory.forget(range.address(), range.len() as u64);
        let freed = self.gpu.free(on_device(&range).0);
        debug_assert!(freed.is_ok(), "a shared range has an allocation");
        true
    }

    /// What kind of memory an address is in.
    pub(crate) fn kind(&self, address: u64) -> Kind {
        match self.memory.shared(address) {
            Some(range) => range.kind(),
            None if self.is_device(address) => Kind::Device,
            None => Kind::Unregistered,
        }
    }

    /// Start and bytes of the allocation that an address is in.
    pub(crate) fn allocation(&self, address: u64) -> Option<(u64, u64)> {
        if let Some(range) = self.memory.shared(address) {
            return Some((range.address(), range.len() as u64));
        }
        let (&start, &bytes) = self.memory.allocations.range(..=address).next_back()?;
        (address - start < bytes.max(1)).then_some((start, bytes))
    }

    /// Bytes that can be allocated: what the device has left, but no more than this computer's memory, which holds it.
    pub(crate) fn free_bytes(&self) -> u64 {
        // Allocations have a little beside their bytes.
        let host = host_bytes().map_or(u64::MAX, |bytes| bytes.saturating_sub(1 << 20));
        let most = self.properties.global_bytes().min(host);
        most.saturating_sub(self.used_bytes())
    }

    /// Bytes that are allocated.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.memory.allocations.values().sum()
    }

    /// On which side an address is, for a copy that says so or leaves it to be found out. Shared memory is always the
    /// host's between launches.
    pub(crate) fn side(&self, address: u64, said: Option<Side>) -> Side {
        match said {
            _ if self.memory.shared(address).is_some() => Side::Host,
            Some(side) => side,
            None if self.is_device(address) => Side::Device,
            None => Side::Host,
        }
    }

    /// Refuses a copy that takes device memory for the host's: the host would crash.
    pub(crate) fn check_side(&self, address: u64, side: Side) -> Result {
        // The host may have memory at the same address, if the program is not loaded far above.
        if side == Side::Device || self.kind(address) != Kind::Device || is_mapped(address) {
            return Ok(());
        }
        complain(format!(
            "a copy takes {address:#x} for the host's memory, but it is the device's: its kind is wrong"
        ));
        Err(CudaError::INVALID_VALUE)
    }

    /// Reads memory of the device, or what host and device share as the host has it.
    pub(super) fn read_either(&self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        match self.memory.shared(address) {
            Some(range) => {
                let start = (address - range.address()) as usize;
                let data = range.bytes().get(start..start.saturating_add(bytes));
                data.map(<[u8]>::to_vec).ok_or(CudaError::INVALID_VALUE)
            }
            None => self.gpu.read_bytes(address, bytes).map_err(|_| CudaError::INVALID_VALUE),
        }
    }

    pub(super) fn write_either(&mut self, address: u64, data: &[u8]) -> Result {
        match self.memory.shared.iter_mut().find(|range| range.contains(address)) {
            Some(range) => {
                range.write((address - range.address()) as usize, data);
                Ok(())
            }
            None => self.gpu.write_bytes(address, data).map_err(|_| CudaError::INVALID_VALUE),
        }
    }

    /// Whether bytes are in memory that the device has: its own, or shared. Constants are not.
    pub(crate) fn device_has(&self, address: u64, bytes: u64) -> bool {
        match self.memory.shared(address) {
            Some(range) => address + bytes <= range.address() + range.len() as u64,
            None => usize::try_from(bytes).is_ok_and(|bytes| self.gpu.read_bytes(address, bytes).is_ok()),
        }
    }

    /// Time passes for a copy; the host waits for it if `waits`.
    pub(crate) fn copied(
        &mut self,
        stream: u64,
        direction: Direction,
        duration: Picoseconds,
        waits: bool,
    ) -> Result {
        let id = self.streams.find(stream)?;
        self.streams.enqueue(id, direction.into(), 0, duration);
        if waits { self.streams.synchronize(stream) } else { Ok(()) }
    }
}

impl Process {
    /// The host writes device memory, or constants by the address that stands for them. It has waited for the work that
    /// must come before.
    pub(crate) fn write(&mut self, address: u64, data: &[u8]) -> Result {
        if data.is_empty() {
            return Ok(());
        }
        self.open_busy()?;
        let written = match self.constant(address) {
            Some((module, offset)) => module.write_constants(offset, data),
            None => self.open_busy()?.gpu.write_bytes(address, data),
        };
        written.map_err(|error| {
            complain(format!("a copy to the device: {error}"));
            CudaError::INVALID_VALUE
        })
    }

    /// The host reads device memory, or constants. It has waited for the work that must come before.
    pub(crate) fn read(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        self.open_busy()?;
        let read = match self.constant(address) {
            Some((module, offset)) => module.read_constants(offset, bytes).ok_or_else(|| {
                warploom::Error::Misuse(format!("{bytes} bytes at {offset:#x} are not inside the constants"))
            }),
            None => self.open_busy()?.gpu.read_bytes(address, bytes),
        };
        read.map_err(|error| {
            complain(format!("a copy from the device: {error}"));
            CudaError::INVALID_VALUE
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_is_known() {
        let mut memory = Memory::new(1);
        memory.forget(4096, 100);
        assert_eq!(memory.place_of_lost(4096), "an allocation of 100 bytes, which was freed");
        assert_eq!(memory.place_of_lost(4195), "byte 99 of an allocation of 100 bytes, which was freed");
        assert_eq!(memory.place_of_lost(4196), "in no memory of the device");
    }

    #[test]
    fn memory_of_the_host() {
        let held = 7u64;
        assert!(is_mapped(&raw const held as u64));
        assert!(!is_mapped(16) && !is_mapped(u64::MAX));
        assert!(host_bytes().is_some_and(|bytes| bytes > 64 << 20));
    }
}
