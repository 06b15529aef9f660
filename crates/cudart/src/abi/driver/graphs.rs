//! Graphs by the driver's API.

use std::ffi::{c_int, c_uint, c_void};

use super::super::graphs::{
    self, FillParams, HostParams, KernelParams, MallocParams, fill_work, host_work, kernel_work, nodes,
};
use super::copies::{Copy3D, copy_work};
use super::{Handle, forward};
use crate::core::error::CudaError;

forward! {
    cuStreamBeginCapture_v2(stream: Handle, mode: c_int) = graphs::cudaStreamBeginCapture;
    cuStreamEndCapture(stream: Handle, place: *mut Handle) = graphs::cudaStreamEndCapture;
    cuStreamIsCapturing(stream: Handle, place: *mut c_int) = graphs::cudaStreamIsCapturing;
    cuStreamGetCaptureInfo(stream: Handle, status: *mut c_int, id: *mut u64) = graphs::cudaStreamGetCaptureInfo;
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int) = graphs::cudaThreadExchangeStreamCaptureMode;
    cuGraphCreate(place: *mut Handle, flags: c_uint) = graphs::cudaGraphCreate;
    cuGraphDestroy(graph: Handle) = graphs::cudaGraphDestroy;
    cuGraphClone(place: *mut Handle, graph: Handle) = graphs::cudaGraphClone;
    cuGraphAddEmptyNode(place: *mut Handle, graph: Handle, after: *const Handle, count: usize)
        = graphs::cudaGraphAddEmptyNode;
    cuGraphAddChildGraphNode(place: *mut Handle, graph: Handle, after: *const Handle, count: usize, child: Handle)
        = graphs::cudaGraphAddChildGraphNode;
    cuGraphAddEventRecordNode(place: *mut Handle, graph: Handle, after: *const Handle, count: usize, event: Handle)
        = graphs::cudaGraphAddEventRecordNode;
    cuGraphAddEventWaitNode(place: *mut Handle, graph: Handle, after: *const Handle, count: usize, event: Handle)
        = graphs::cudaGraphAddEventWaitNode;
    cuGraphAddMemFreeNode(place: *mut Handle, graph: Handle, after: *const Handle, count: usize, pointer: Handle)
        = graphs::cudaGraphAddMemFreeNode;
    cuGraphAddMemAllocNode(
        place: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *mut MallocParams
    ) = graphs::cudaGraphAddMemAllocNode;
    cuDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, place: *mut c_void)
        = graphs::cudaDeviceGetGraphMemAttribute;
    cuDeviceGraphMemTrim(device: c_int) = graphs::cudaDeviceGraphMemTrim;
    cuGraphGetNodes(graph: Handle, places: *mut Handle, count: *mut usize) = graphs::cudaGraphGetNodes;
    cuGraphGetRootNodes(graph: Handle, places: *mut Handle, count: *mut usize) = graphs::cudaGraphGetRootNodes;
    cuGraphNodeGetType(node: Handle, place: *mut c_int) = graphs::cudaGraphNodeGetType;
    cuGraphKernelNodeSetParams_v2(node: Handle, parameters: *const KernelParams)
        = graphs::cudaGraphKernelNodeSetParams;
    cuGraphExecKernelNodeSetParams_v2(executable: Handle, node: Handle, parameters: *const KernelParams)
        = graphs::cudaGraphExecKernelNodeSetParams;
    cuGraphInstantiateWithFlags(place: *mut Handle, graph: Handle, flags: u64)
        = graphs::cudaGraphInstantiateWithFlags;
    cuGraphExecDestroy(executable: Handle) = graphs::cudaGraphExecDestroy;
    cuGraphUpload(executable: Handle, stream: Handle) = graphs::cudaGraphUpload;
    cuGraphLaunch(executable: Handle, stream: Handle) = graphs::cudaGraphLaunch;
}

nodes! {
    cuGraphAddKernelNode_v2(parameters: *const KernelParams) process => kernel_work(process, parameters);
    cuGraphAddMemcpyNode(parameters: *const Copy3D, _context: Handle) process => copy_work(parameters);
    cuGraphAddMemsetNode(parameters: *const FillParams, _context: Handle) process => fill_work(parameters);
    cuGraphAddHostNode(parameters: *const HostParams) process => host_work(parameters);
}

/// The graph's last nodes can be asked for, too; they are not told.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCaptureInfo_v2(
    stream: Handle,
    status: *mut c_int,
    id: *mut u64,
    graph: *mut Handle,
    nodes: *mut *const Handle,
    count: *mut usize,
) -> i32 {
    unsafe {
        if !graph.is_null() {
            let into = super::process().graphs.captured_into(stream as u64);
            graph.write(into.unwrap_or(0) as Handle);
        }
        if !nodes.is_null() {
            nodes.write(std::ptr::null());
        }
        if !count.is_null() {
            count.write(0);
        }
        cuStreamGetCaptureInfo(stream, status, id)
    }
}

/// With data of the edges, of which there are none.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCaptureInfo_v3(
    stream: Handle,
    status: *mut c_int,
    id: *mut u64,
    graph: *mut Handle,
    nodes: *mut *const Handle,
    edges: *mut *const u8,
    count: *mut usize,
) -> i32 {
    if !edges.is_null() {
        unsafe { edges.write(std::ptr::null()) };
    }
    unsafe { cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count) }
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
struct InstantiateParams {
    flags: u64,
    stream: Handle,
    error_node: Handle,
    result: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithParams(
    place: *mut Handle,
    graph: Handle,
    parameters: *mut InstantiateParams,
) -> i32 {
    let Some(parameters) = (unsafe { parameters.as_mut() }) else { return CudaError::INVALID_VALUE.0 };
    let code = unsafe { cuGraphInstantiateWithFlags(place, graph, parameters.flags) };
    parameters.error_node = std::ptr::null_mut();
    parameters.result = c_int::from(code != 0);
    code
}

/// `CUgraphExecUpdateResultInfo` begins with the result.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecUpdate_v2(executable: Handle, graph: Handle, result: *mut c_int) -> i32 {
    super::with_context(|| unsafe { graphs::cudaGraphExecUpdate(executable, graph, result, result) })
}
