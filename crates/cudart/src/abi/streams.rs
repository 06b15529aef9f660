//! Streams and events.

use std::ffi::c_int;

use super::{Handle, call, call_and_wait, put, put_pointer};
use crate::core::pending::Awaited;

/// `cudaStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamCreate(place: *mut Handle) -> i32 {
    unsafe { cudaStreamCreateWithFlags(place, 0) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamCreateWithFlags(place: *mut Handle, flags: u32) -> i32 {
    unsafe { cudaStreamCreateWithPriority(place, flags, 0) }
}

/// A priority beyond the range counts as its nearest, as in CUDA.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamCreateWithPriority(
    place: *mut Handle,
    flags: u32,
    priority: c_int,
) -> i32 {
    call(|process| {
        let open = process.open_busy()?;
        let priority = priority.clamp(open.properties.greatest_priority(), 0);
        unsafe { put_pointer(place, open.streams.create(flags & NON_BLOCKING == 0, priority)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamGetPriority(stream: Handle, place: *mut c_int) -> i32 {
    call(|process| {
        let streams = &process.open_busy()?.streams;
        let priority = streams.priority(streams.find(stream as u64)?);
        unsafe { put(place, priority) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamGetFlags(stream: Handle, place: *mut u32) -> i32 {
    call(|process| {
        let blocking = process.open_busy()?.streams.is_blocking(stream as u64)?;
        unsafe { put(place, if blocking { 0 } else { NON_BLOCKING }) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamGetId(stream: Handle, place: *mut u64) -> i32 {
    call(|process| {
        let id = process.open_busy()?.streams.find(stream as u64)?;
        unsafe { put(place, id) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamGetDevice(stream: Handle, place: *mut c_int) -> i32 {
    call(|process| {
        process.open_busy()?.streams.find(stream as u64)?;
        unsafe { put(place, 0) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetStreamPriorityRange(
    least: *mut c_int,
    greatest: *mut c_int,
) -> i32 {
    call(|process| {
        let first = process.open_busy()?.properties.greatest_priority();
        unsafe { put(least, 0).and_then(|()| put(greatest, first)) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaStreamDestroy(stream: Handle) -> i32 {
    call(|process| process.open()?.streams.destroy(stream as u64))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaStreamSynchronize(stream: Handle) -> i32 {
    call_and_wait(|process| {
        process.graphs.refuse_in_capture(stream as u64)?;
        process.open_after_stream(stream as u64)?.streams.synchronize(stream as u64)
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaStreamQuery(stream: Handle) -> i32 {
    call(|process| {
        process.graphs.refuse_in_capture(stream as u64)?;
        let streams = &mut process.open_after_stream(stream as u64)?.streams;
        let state = streams.query(stream as u64);
        // The host's clock moves only when it waits; a program that polls must see the end all the same.
        streams.synchronize(stream as u64)?;
        state
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaStreamWaitEvent(stream: Handle, event: Handle, _flags: u32) -> i32 {
    call(|process| {
        if process.graphs.join(stream as u64, event as u64)? {
            return Ok(());
        }
        process.wait_event(stream as u64, event as u64)
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaStreamAttachMemAsync(
    stream: Handle,
    _memory: Handle,
    _bytes: usize,
    _flags: u32,
) -> i32 {
    call(|process| process.open()?.streams.find(stream as u64).map(|_| ()))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaEventCreate(place: *mut Handle) -> i32 {
    unsafe { cudaEventCreateWithFlags(place, 0) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaEventCreateWithFlags(place: *mut Handle, _flags: u32) -> i32 {
    call(|process| {
        let event = process.open_busy()?.streams.create_event();
        unsafe { put_pointer(place, event) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaEventDestroy(event: Handle) -> i32 {
    call(|process| process.open_busy()?.streams.destroy_event(event as u64))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaEventRecord(event: Handle, stream: Handle) -> i32 {
    call(|process| {
        if process.graphs.mark(event as u64, stream as u64) {
            return Ok(());
        }
        process.record_event(event as u64, stream as u64)
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaEventRecordWithFlags(event: Handle, stream: Handle, _flags: u32) -> i32 {
    cudaEventRecord(event, stream)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaEventQuery(event: Handle) -> i32 {
    call(|process| {
        let streams = &mut process.open_after(Awaited::Event(event as u64))?.streams;
        let state = streams.query_event(event as u64);
        streams.synchronize_event(event as u64)?;
        state
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaEventSynchronize(event: Handle) -> i32 {
    call_and_wait(|process| {
        process.open_after(Awaited::Event(event as u64))?.streams.synchronize_event(event as u64)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaEventElapsedTime(place: *mut f32, start: Handle, end: Handle) -> i32 {
    call(|process| {
        process.open_after(Awaited::Event(start as u64))?;
        let elapsed =
            process.open_after(Awaited::Event(end as u64))?.streams.elapsed_ms(start as u64, end as u64)?;
        unsafe { put(place, elapsed) }
    })
}

/// Its name in programs of CUDA 12.8 and 12.9.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaEventElapsedTime_v2(place: *mut f32, start: Handle, end: Handle) -> i32 {
    unsafe { cudaEventElapsedTime(place, start, end) }
}
