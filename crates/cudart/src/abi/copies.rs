//! Copies and fills.

use std::ffi::{c_int, c_void};

use warploom::{Move, MoveFrom};

use super::{Handle, call, call_and_wait, put, put_pointer, textures};
use crate::core::error::{CudaError, Result};
use crate::core::graphs::Work;
use crate::core::memory::{Extent, Place, Side, sides};
use crate::core::pending::{Direction, Pending, PendingCopy};
use crate::core::process::{Process, complain};

pub(super) const DEFAULT_STREAM: Handle = std::ptr::null_mut();

/// A copy's stream, and whether the host waits for it.
#[derive(Clone, Copy)]
pub(super) enum Order {
    Waits,
    Stream(Handle),
}

impl Order {
    /// Adds work to a graph if its stream is captured. `None`: it is to be done now. The host cannot wait for work
    /// while streams are captured.
    fn captured(self, process: &mut Process, work: impl FnOnce() -> Work) -> Result<Option<Result>> {
        match self {
            Order::Waits => process.graphs.refuse_in_any_capture().map(|()| None),
            Order::Stream(stream) => Ok(process.captured(stream as u64, work)),
        }
    }

    /// Lets the work be done that comes before the copy.
    fn wait(self, process: &mut Process) -> Result {
        let stream = match self {
            Order::Waits => DEFAULT_STREAM,
            Order::Stream(stream) => stream,
        };
        process.open_after_stream(stream as u64).map(|_| ())
    }

    /// The stream in which work is pending, if a copy to this place can be put off behind it. The host waits for a copy
    /// to memory that is not pinned, as in CUDA.
    fn behind_pending(self, process: &mut Process, to: Place, side: Side) -> Result<Option<Handle>> {
        let Order::Stream(stream) = self else { return Ok(None) };
        let open = process.open_busy()?;
        let reaches = side == Side::Device || open.is_shared(to.address, 1);
        Ok((open.is_pending() && reaches).then_some(stream))
    }
}

/// Copies a box row by row, wherever its two sides are, and lets time pass for it.
pub(super) unsafe fn copy(
    process: &mut Process,
    to: Place,
    from: Place,
    [width, rows, planes]: Extent,
    kind: c_int,
    order: Order,
) -> Result {
    let said = sides(kind)?;
    let bytes = width.saturating_mul(rows).saturating_mul(planes);
    if bytes == 0 {
        return Ok(());
    }
    if to.address == 0 || from.address == 0 {
        let side = if to.address == 0 { "to" } else { "from" };
        complain(format!("a copy of {bytes} bytes {side} a null pointer"));
        return Err(CudaError::INVALID_VALUE);
    }
    let extent = [width, rows, planes];
    if let Some(recorded) = order.captured(process, || Work::Copy { to, from, extent, kind })? {
        return recorded;
    }
    let open = process.open_busy()?;
    let to_side = open.side(to.address, said.map(|(to, _)| to));
    let from_side = open.side(from.address, said.map(|(_, from)| from));
    for (address, side) in [(to.address, to_side), (from.address, from_side)] {
        open.check_side(address, side)?;
    }
    // Rows that follow each other without a gap are one.
    let whole = (to.pitch == width && from.pitch == width) || rows == 1;
    let (width, rows) = if whole && planes == 1 { (width * rows, 1) } else { (width, rows) };
    if let Some(stream) = order.behind_pending(process, to, to_side)? {
        let cost = cost(process, to_side, from_side, bytes)?;
        let source = Source::of_copy(process, from, from_side)?;
        if unsafe { put_off_rows(process, to, &source, [width, rows, planes], cost, stream)? } {
            return Ok(());
        }
    }
    order.wait(process)?;
    for plane in 0..planes {
        for row in 0..rows {
            let (to, from) = (to.row(row, plane), from.row(row, plane));
            let count = width as usize;
            match (to_side, from_side) {
                (Side::Host, Side::Host) => unsafe {
                    (to as *mut u8).copy_from(from as *const u8, count);
                },
                (Side::Device, Side::Host) => {
                    let data = unsafe { std::slice::from_raw_parts(from as *const u8, count) };
                    process.write(to, data)?;
                }
                (Side::Host, Side::Device) => {
                    let data = process.read(from, count)?;
                    unsafe { (to as *mut u8).copy_from_nonoverlapping(data.as_ptr(), count) };
                }
                (Side::Device, Side::Device) => {
                    let data = process.read(from, count)?;
                    process.write(to, &data)?;
                }
            }
        }
    }
    pass_time(process, to_side, from_side, bytes, order)
}

/// Where the bytes of a copy or fill come from.
enum Source<'a> {
    /// Memory that the device has.
    Device(Place),
    /// The program's own, which the runtime copies before the call returns.
    Host(Place),
    Pattern(&'a [u8]),
}

impl Source<'_> {
    fn of_copy(process: &mut Process, from: Place, side: Side) -> Result<Source<'static>> {
        let is_shared = process.open_busy()?.is_shared(from.address, 1);
        Ok(if side == Side::Device || is_shared { Source::Device(from) } else { Source::Host(from) })
    }
}

/// Puts a copy or fill off behind work that is pending. Returns false if it is to be done now, because some of it is
/// not in memory that the device has.
unsafe fn put_off_rows(
    process: &mut Process,
    to: Place,
    source: &Source<'_>,
    [width, rows, planes]: Extent,
    (direction, duration): (Direction, u64),
    stream: Handle,
) -> Result<bool> {
    let open = process.open_busy()?;
    let stream = open.streams.find(stream as u64)?;
    let mut moves = Vec::new();
    for (plane, row) in (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row))) {
        let address = to.row(row, plane);
        let known = open.device_has(address, width);
        let from = match source {
            Source::Device(from) if open.device_has(from.row(row, plane), width) => {
                MoveFrom::Device { address: from.row(row, plane), bytes: width }
            }
            Source::Device(_) => return Ok(false),
            Source::Host(from) => {
                let start = from.row(row, plane) as *const u8;
                MoveFrom::Host(unsafe { std::slice::from_raw_parts(start, width as usize) }.to_vec())
            }
            Source::Pattern(pattern) => MoveFrom::Host(pattern.repeat(width as usize / pattern.len())),
        };
        if !known {
            return Ok(false);
        }
        moves.push(Move { to: address, from });
    }
    open.put_off(stream, Pending::Copy(PendingCopy { moves, direction, duration }));
    if open.is_full() {
        process.settle_as_launch()?;
    }
    Ok(true)
}

/// Copies inside of the device's memory go at its own bandwidth; others over the link to the host.
fn cost(process: &mut Process, to: Side, from: Side, bytes: u64) -> Result<(Direction, u64)> {
    let link = process.settings.link_gbps;
    let open = process.open_busy()?;
    let chip = open.gpu.chip();
    let dram = chip.map_or(link, |chip| {
        // Read and written: half of what DRAM moves.
        chip.peak_dram_bytes_per_cycle() * f64::from(chip.clock.core_mhz) * 1e-3 / 2.0
    });
    let gbps = if (to, from) == (Side::Device, Side::Device) { dram } else { link };
    let direction = if to == Side::Device { Direction::ToDevice } else { Direction::ToHost };
    Ok((direction, (bytes as f64 * 1000.0 / gbps) as u64))
}

/// Time passes for a copy that has been made.
pub(super) fn pass_time(process: &mut Process, to: Side, from: Side, bytes: u64, order: Order) -> Result {
    let (direction, duration) = cost(process, to, from, bytes)?;
    let (stream, waits) = match order {
        Order::Waits => (0, true),
        Order::Stream(stream) => (stream as u64, false),
    };
    process.open_busy()?.copied(stream, direction, duration, waits)
}

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PitchedPointer {
    pub(super) pointer: Handle,
    pub(super) pitch: usize,
    pub(super) width: usize,
    pub(super) rows: usize,
}

impl PitchedPointer {
    pub(super) fn place(&self, position: Position) -> Place {
        let slice = (self.pitch as u64).wrapping_mul(self.rows as u64);
        let start = Place { address: self.pointer as u64, pitch: self.pitch as u64, slice };
        Place { address: start.row(position.y as u64, position.z as u64) + position.x as u64, ..start }
    }
}

/// `cudaExtent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Volume {
    pub(super) width: usize,
    pub(super) rows: usize,
    pub(super) planes: usize,
}

/// `cudaPos`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) z: usize,
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpy(
    to: Handle,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
) -> i32 {
    let (to, from) = (Place::line(to as u64), Place::line(from as u64));
    call_and_wait(|process| unsafe { copy(process, to, from, [bytes as u64, 1, 1], kind, Order::Waits) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpyAsync(
    to: Handle,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
    stream: Handle,
) -> i32 {
    let (to, from) = (Place::line(to as u64), Place::line(from as u64));
    let extent = [bytes as u64, 1, 1];
    call(|process| unsafe { copy(process, to, from, extent, kind, Order::Stream(stream)) })
}

/// There is one device, so that copies between two are copies inside of it.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpyPeer(
    to: Handle,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
) -> i32 {
    if (to_device, from_device) != (0, 0) {
        return call(|_| Err(CudaError::INVALID_DEVICE));
    }
    unsafe { cudaMemcpy(to, from, bytes, 4) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpyPeerAsync(
    to: Handle,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
    stream: Handle,
) -> i32 {
    if (to_device, from_device) != (0, 0) {
        return call(|_| Err(CudaError::INVALID_DEVICE));
    }
    unsafe { cudaMemcpyAsync(to, from, bytes, 4, stream) }
}

/// A copy of rows, for both forms of the call.
struct Rows {
    to: Handle,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    rows: usize,
    kind: c_int,
}

impl Rows {
    unsafe fn copy(self, process: &mut Process, order: Order) -> Result {
        if self.width > self.to_pitch || self.width > self.from_pitch {
            return Err(CudaError::INVALID_PITCH);
        }
        let to = Place::rows(self.to as u64, self.to_pitch);
        let from = Place::rows(self.from as u64, self.from_pitch);
        let extent = [self.width as u64, self.rows as u64, 1];
        unsafe { copy(process, to, from, extent, self.kind, order) }
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpy2D(
    to: Handle,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    rows: usize,
    kind: c_int,
) -> i32 {
    let rows = Rows { to, to_pitch, from, from_pitch, width, rows, kind };
    call_and_wait(|process| unsafe { rows.copy(process, Order::Waits) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpy2DAsync(
    to: Handle,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    rows: usize,
    kind: c_int,
    stream: Handle,
) -> i32 {
    let rows = Rows { to, to_pitch, from, from_pitch, width, rows, kind };
    call(|process| unsafe { rows.copy(process, Order::Stream(stream)) })
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
pub(super) struct Copy3D {
    pub(super) from_array: Handle,
    pub(super) from_position: Position,
    pub(super) from: PitchedPointer,
    pub(super) to_array: Handle,
    pub(super) to_position: Position,
    pub(super) to: PitchedPointer,
    pub(super) volume: Volume,
    pub(super) kind: c_int,
}

/// The copy that `cudaMemcpy3DParms` describes, as a node of a graph.
pub(super) unsafe fn copy_work(parameters: *const Copy3D) -> Result<Work> {
    let copied = unsafe { parameters.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    if !copied.from_array.is_null() || !copied.to_array.is_null() {
        complain("a copy of an array as a node of a graph, which is not there");
        return Err(CudaError::NOT_SUPPORTED);
    }
    let Volume { width, rows, planes } = copied.volume;
    let (to, from) = (copied.to.place(copied.to_position), copied.from.place(copied.from_position));
    Ok(Work::Copy { to, from, extent: [width, rows, planes].map(|n| n as u64), kind: copied.kind })
}

unsafe fn copy_3d(process: &mut Process, parameters: *const Copy3D, order: Order) -> Result {
    if let Some(copied) = unsafe { parameters.as_ref() }
        && !(copied.from_array.is_null() && copied.to_array.is_null())
    {
        return unsafe { textures::copy_3d(process, copied, order) };
    }
    let Work::Copy { to, from, extent, kind } = (unsafe { copy_work(parameters)? }) else { return Ok(()) };
    unsafe { copy(process, to, from, extent, kind, order) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy3D(parameters: *const Copy3D) -> i32 {
    call_and_wait(|process| unsafe { copy_3d(process, parameters, Order::Waits) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy3DAsync(parameters: *const Copy3D, stream: Handle) -> i32 {
    call(|process| unsafe { copy_3d(process, parameters, Order::Stream(stream)) })
}

/// The address of `bytes` bytes of a variable, from `offset` on.
fn in_symbol(process: &mut Process, symbol: *const c_void, offset: usize, bytes: usize) -> Result<u64> {
    let found = process.symbol(symbol as u64)?;
    let end = (offset as u64).checked_add(bytes as u64);
    if end.is_none_or(|end| end > found.bytes) {
        complain(format!("{bytes} bytes at byte {offset} of a device variable of {} bytes", found.bytes));
        return Err(CudaError::INVALID_VALUE);
    }
    Ok(found.address + offset as u64)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpyToSymbol(
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
) -> i32 {
    call_and_wait(|process| {
        let to = Place::line(in_symbol(process, symbol, offset, bytes)?);
        let from = Place::line(from as u64);
        unsafe { copy(process, to, from, [bytes as u64, 1, 1], kind, Order::Waits) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpyToSymbolAsync(
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> i32 {
    call(|process| {
        let to = Place::line(in_symbol(process, symbol, offset, bytes)?);
        let from = Place::line(from as u64);
        unsafe { copy(process, to, from, [bytes as u64, 1, 1], kind, Order::Stream(stream)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpyFromSymbol(
    to: Handle,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
) -> i32 {
    call_and_wait(|process| {
        let from = Place::line(in_symbol(process, symbol, offset, bytes)?);
        let to = Place::line(to as u64);
        unsafe { copy(process, to, from, [bytes as u64, 1, 1], kind, Order::Waits) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemcpyFromSymbolAsync(
    to: Handle,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> i32 {
    call(|process| {
        let from = Place::line(in_symbol(process, symbol, offset, bytes)?);
        let to = Place::line(to as u64);
        unsafe { copy(process, to, from, [bytes as u64, 1, 1], kind, Order::Stream(stream)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetSymbolAddress(place: *mut Handle, symbol: *const c_void) -> i32 {
    call(|process| {
        let found = process.symbol(symbol as u64)?;
        unsafe { put_pointer(place, found.address) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetSymbolSize(place: *mut usize, symbol: *const c_void) -> i32 {
    call(|process| {
        let found = process.symbol(symbol as u64)?;
        unsafe { put(place, found.bytes as usize) }
    })
}

/// Fills a box with a repeated pattern. Time passes as for a copy inside of the device.
pub(super) unsafe fn fill(
    process: &mut Process,
    to: Place,
    pattern: &[u8],
    extent: Extent,
    order: Order,
) -> Result {
    let [width, rows, planes] = extent;
    let bytes = width.saturating_mul(rows).saturating_mul(planes);
    if bytes == 0 {
        return Ok(());
    }
    let work = || Work::Fill { to, pattern: pattern.to_vec(), extent };
    if let Some(recorded) = order.captured(process, work)? {
        return recorded;
    }
    let side = process.open_busy()?.side(to.address, None);
    let (width, rows) = if to.pitch == width && planes == 1 { (width * rows, 1) } else { (width, rows) };
    if let Some(stream) = order.behind_pending(process, to, side)? {
        let cost = cost(process, Side::Device, Side::Device, bytes)?;
        let source = Source::Pattern(pattern);
        if unsafe { put_off_rows(process, to, &source, [width, rows, planes], cost, stream)? } {
            return Ok(());
        }
    }
    order.wait(process)?;
    let data = pattern.repeat(width as usize / pattern.len());
    for plane in 0..planes {
        for row in 0..rows {
            let address = to.row(row, plane);
            match side {
                Side::Device => process.write(address, &data)?,
                Side::Host if process.open_busy()?.is_shared(address, width) => {
                    // Sound: shared memory is the host's, and all of it is there.
                    unsafe { (address as *mut u8).copy_from_nonoverlapping(data.as_ptr(), data.len()) };
                }
                Side::Host => {
                    let place = process.open_busy()?.memory.place_of_lost(address);
                    complain(format!("a fill of {address:#x}: {place}"));
                    return Err(CudaError::INVALID_VALUE);
                }
            }
        }
    }
    pass_time(process, Side::Device, Side::Device, bytes, order)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemset(to: Handle, value: c_int, bytes: usize) -> i32 {
    let place = Place::line(to as u64);
    call(|process| unsafe {
        fill(process, place, &[value as u8], [bytes as u64, 1, 1], Order::Stream(DEFAULT_STREAM))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemsetAsync(
    to: Handle,
    value: c_int,
    bytes: usize,
    stream: Handle,
) -> i32 {
    let place = Place::line(to as u64);
    call(|process| unsafe {
        fill(process, place, &[value as u8], [bytes as u64, 1, 1], Order::Stream(stream))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemset2D(
    to: Handle,
    pitch: usize,
    value: c_int,
    width: usize,
    rows: usize,
) -> i32 {
    unsafe { cudaMemset2DAsync(to, pitch, value, width, rows, DEFAULT_STREAM) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemset2DAsync(
    to: Handle,
    pitch: usize,
    value: c_int,
    width: usize,
    rows: usize,
    stream: Handle,
) -> i32 {
    let (place, extent) = (Place::rows(to as u64, pitch), [width as u64, rows as u64, 1]);
    call(|process| unsafe { fill(process, place, &[value as u8], extent, Order::Stream(stream)) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemset3D(to: PitchedPointer, value: c_int, volume: Volume) -> i32 {
    unsafe { cudaMemset3DAsync(to, value, volume, DEFAULT_STREAM) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemset3DAsync(
    to: PitchedPointer,
    value: c_int,
    volume: Volume,
    stream: Handle,
) -> i32 {
    let extent = [volume.width, volume.rows, volume.planes].map(|n| n as u64);
    let place = to.place(Position { x: 0, y: 0, z: 0 });
    call(|process| unsafe { fill(process, place, &[value as u8], extent, Order::Stream(stream)) })
}
