//! Streams and events by the driver's API.

use std::ffi::{c_int, c_uint, c_void};

use super::super::{functions, put, streams};
use super::{Handle, call, forward};

forward! {
    cuStreamCreate(place: *mut Handle, flags: c_uint) = streams::cudaStreamCreateWithFlags;
    cuStreamCreateWithPriority(place: *mut Handle, flags: c_uint, priority: c_int)
        = streams::cudaStreamCreateWithPriority;
    cuStreamDestroy_v2(stream: Handle) = streams::cudaStreamDestroy;
    cuStreamSynchronize(stream: Handle) = streams::cudaStreamSynchronize;
    cuStreamQuery(stream: Handle) = streams::cudaStreamQuery;
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) = streams::cudaStreamWaitEvent;
    cuStreamGetPriority(stream: Handle, place: *mut c_int) = streams::cudaStreamGetPriority;
    cuStreamGetFlags(stream: Handle, place: *mut c_uint) = streams::cudaStreamGetFlags;
    cuStreamGetId(stream: Handle, place: *mut u64) = streams::cudaStreamGetId;
    cuStreamAttachMemAsync(stream: Handle, memory: Handle, bytes: usize, flags: c_uint)
        = streams::cudaStreamAttachMemAsync;
    cuStreamAddCallback(
        stream: Handle,
        callback: Option<functions::StreamCallback>,
        data: *mut c_void,
        flags: c_uint
    ) = functions::cudaStreamAddCallback;
    cuLaunchHostFunc(stream: Handle, function: Option<functions::HostFunction>, data: *mut c_void)
        = functions::cudaLaunchHostFunc;
    cuEventCreate(place: *mut Handle, flags: c_uint) = streams::cudaEventCreateWithFlags;
    cuEventDestroy_v2(event: Handle) = streams::cudaEventDestroy;
    cuEventRecord(event: Handle, stream: Handle) = streams::cudaEventRecord;
    cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint) = streams::cudaEventRecordWithFlags;
    cuEventQuery(event: Handle) = streams::cudaEventQuery;
    cuEventSynchronize(event: Handle) = streams::cudaEventSynchronize;
    cuEventElapsedTime(place: *mut f32, start: Handle, end: Handle) = streams::cudaEventElapsedTime;
    cuEventElapsedTime_v2(place: *mut f32, start: Handle, end: Handle) = streams::cudaEventElapsedTime;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetDevice(stream: Handle, place: *mut c_int) -> i32 {
    call(|process| {
        process.open()?.streams.find(stream as u64)?;
        unsafe { put(place, 0) }
    })
}
