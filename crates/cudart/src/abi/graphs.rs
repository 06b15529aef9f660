//! Graphs, and the capture of streams into them.

use std::ffi::{c_int, c_uint, c_void};

use super::copies::{Copy3D, Order, copy, fill};
use super::functions::{HostFunction, copied_arguments, request};
use super::{Dim3, Handle, call, put, put_pointer};
use crate::core::error::{CudaError, Result};
use crate::core::graphs::{Node, Work};
use crate::core::launch::Request;
use crate::core::memory::Place;
use crate::core::process::{Process, complain};

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaStreamBeginCapture(stream: Handle, _mode: c_int) -> i32 {
    call(|process| {
        let stream = stream as u64;
        process.open()?.streams.find(stream)?;
        // Work of the default stream cannot be captured.
        if stream <= 1 {
            return Err(CudaError::CAPTURE_UNSUPPORTED);
        }
        process.graphs.begin(stream)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamEndCapture(stream: Handle, place: *mut Handle) -> i32 {
    call(|process| {
        if !place.is_null() {
            unsafe { place.write(std::ptr::null_mut()) };
        }
        let graph = process.graphs.end(stream as u64)?;
        unsafe { put_pointer(place, graph) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamIsCapturing(stream: Handle, place: *mut c_int) -> i32 {
    call(|process| {
        process.open()?.streams.find(stream as u64)?;
        unsafe { put(place, process.graphs.status(stream as u64).0) }
    })
}

/// The forms of all versions begin so; what more they ask for (the graph, and its last nodes) is not told.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamGetCaptureInfo(
    stream: Handle,
    status: *mut c_int,
    id: *mut u64,
) -> i32 {
    call(|process| {
        process.open()?.streams.find(stream as u64)?;
        let (state, number) = process.graphs.status(stream as u64);
        unsafe { put(status, state)? };
        if id.is_null() { Ok(()) } else { unsafe { put(id, number) } }
    })
}

/// All captures are alike.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) -> i32 {
    call(|_| if mode.is_null() { Err(CudaError::INVALID_VALUE) } else { Ok(()) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphCreate(place: *mut Handle, _flags: c_uint) -> i32 {
    call(|process| unsafe { put_pointer(place, process.graphs.create()) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGraphDestroy(graph: Handle) -> i32 {
    call(|process| process.graphs.destroy(graph as u64))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphClone(place: *mut Handle, graph: Handle) -> i32 {
    call(|process| {
        let copy = process.graphs.copy(graph as u64)?;
        unsafe { put_pointer(place, copy) }
    })
}

/// Where a node goes: its graph, and the nodes that come before it.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) place: *mut Handle,
    pub(super) graph: Handle,
    pub(super) after: *const Handle,
    pub(super) count: usize,
}

impl Spot {
    /// Adds the node.
    pub(super) unsafe fn add(self, process: &mut Process, work: Work) -> Result {
        let after: Vec<u64> = match (self.count, self.after.is_null()) {
            (0, _) => Vec::new(),
            (_, true) => return Err(CudaError::INVALID_VALUE),
            (count, false) => (0..count).map(|at| unsafe { *self.after.add(at) } as u64).collect(),
        };
        let node = process.graphs.add(self.graph as u64, after, work)?;
        unsafe { put_pointer(self.place, node) }
    }
}

/// `cudaKernelNodeParams`, and the driver's, which has the same layout.
#[repr(C)]
pub(super) struct KernelParams {
    function: Handle,
    grid: Dim3,
    block: Dim3,
    shared_bytes: c_uint,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
}

pub(super) unsafe fn kernel_work(process: &mut Process, parameters: *const KernelParams) -> Result<Work> {
    let all = unsafe { parameters.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    if all.arguments.is_null() && !all.extra.is_null() {
        complain("a graph's kernel with its arguments in one buffer");
        return Err(CudaError::NOT_SUPPORTED);
    }
    let arguments = unsafe { copied_arguments(process, all.function, all.arguments)? };
    let request = request(all.grid, all.block, all.shared_bytes as usize, std::ptr::null_mut(), false);
    Ok(Work::Kernel { function: all.function as u64, request, arguments })
}

/// `cudaMemsetParams`, and the driver's.
#[repr(C)]
pub(super) struct FillParams {
    to: Handle,
    pitch: usize,
    value: c_uint,
    element_bytes: c_uint,
    width: usize,
    rows: usize,
}

pub(super) unsafe fn fill_work(parameters: *const FillParams) -> Result<Work> {
    let all = unsafe { parameters.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let pattern = match all.element_bytes {
        1 | 2 | 4 => all.value.to_le_bytes()[..all.element_bytes as usize].to_vec(),
        _ => return Err(CudaError::INVALID_VALUE),
    };
    let width = (all.width as u64).saturating_mul(u64::from(all.element_bytes));
    Ok(Work::Fill { to: Place::rows(all.to as u64, all.pitch), pattern, extent: [width, all.rows as u64, 1] })
}

/// `cudaHostNodeParams`, and the driver's.
#[repr(C)]
pub(super) struct HostParams {
    function: Option<HostFunction>,
    data: *mut c_void,
}

pub(super) unsafe fn host_work(parameters: *const HostParams) -> Result<Work> {
    let all = unsafe { parameters.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let function = all.function.ok_or(CudaError::INVALID_VALUE)?;
    Ok(Work::Host { function: function as usize, data: all.data as usize })
}

/// `cudaMemAllocNodeParams`, and the driver's. What pools are like, and who may access them, makes no difference here.
#[repr(C)]
pub(super) struct MallocParams {
    pool: [u64; 11],
    access: *const c_void,
    access_count: usize,
    bytes: usize,
    address: Handle,
}

pub(super) unsafe fn malloc_work(process: &mut Process, parameters: *mut MallocParams) -> Result<Work> {
    let all = unsafe { parameters.as_mut() }.ok_or(CudaError::INVALID_VALUE)?;
    let address = process.open()?.malloc_for_graph(all.bytes as u64)?;
    all.address = address as Handle;
    Ok(Work::Malloc { address })
}

/// Functions that add a node of a kind.
macro_rules! nodes {
    ($($name:ident($($arg:ident: $ty:ty),*) $process:ident => $work:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name(
            place: *mut Handle,
            graph: Handle,
            after: *const Handle,
            count: usize,
            $($arg: $ty),*
        ) -> i32 {
            let spot = $crate::abi::graphs::Spot { place, graph, after, count };
            $crate::abi::call(|$process| {
                #[allow(unused_unsafe, reason = "some nodes have no parameters that are read")]
                let work: $crate::core::error::Result<$crate::core::graphs::Work> = unsafe { $work };
                unsafe { spot.add($process, work?) }
            })
        }
    )*};
}
pub(super) use nodes;

nodes! {
    cudaGraphAddKernelNode(parameters: *const KernelParams) process => kernel_work(process, parameters);
    cudaGraphAddMemsetNode(parameters: *const FillParams) process => fill_work(parameters);
    cudaGraphAddHostNode(parameters: *const HostParams) process => host_work(parameters);
    cudaGraphAddMemAllocNode(parameters: *mut MallocParams) process => malloc_work(process, parameters);
    cudaGraphAddMemFreeNode(pointer: Handle) process => Ok(Work::Free { address: pointer as u64 });
    cudaGraphAddEmptyNode() process => Ok(Work::Empty);
    cudaGraphAddChildGraphNode(child: Handle) process => process.graphs.as_child(child as u64);
    cudaGraphAddEventRecordNode(event: Handle) process => Ok(Work::Record { event: event as u64 });
    cudaGraphAddEventWaitNode(event: Handle) process => Ok(Work::Wait { event: event as u64 });
    cudaGraphAddMemcpyNode1D(to: Handle, from: *const c_void, bytes: usize, kind: c_int) process => {
        let (to, from) = (Place::line(to as u64), Place::line(from as u64));
        Ok(Work::Copy { to, from, extent: [bytes as u64, 1, 1], kind })
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphAddMemcpyNode(
    place: *mut Handle,
    graph: Handle,
    after: *const Handle,
    count: usize,
    parameters: *const Copy3D,
) -> i32 {
    let spot = Spot { place, graph, after, count };
    call(|process| unsafe { spot.add(process, super::copies::copy_work(parameters)?) })
}

/// `cudaGraphNodeParams`: the kind of a node, and a union of what each kind has.
#[repr(C)]
struct NodeParams {
    kind: c_int,
    reserved: [c_int; 3],
    of_kind: [u64; 29],
}

unsafe fn any_work(process: &mut Process, parameters: *mut NodeParams) -> Result<Work> {
    let all = unsafe { parameters.as_mut() }.ok_or(CudaError::INVALID_VALUE)?;
    let [first, ..] = all.of_kind;
    let of_kind = &raw mut all.of_kind;
    // Sound: the program has put what the kind says into the union.
    unsafe {
        match all.kind {
            0 => kernel_work(process, of_kind.cast()),
            // After flags and what is reserved.
            1 => super::copies::copy_work(of_kind.cast::<u64>().add(2).cast()),
            2 => fill_work(of_kind.cast()),
            3 => host_work(of_kind.cast()),
            4 => process.graphs.as_child(first),
            5 => Ok(Work::Empty),
            6 => Ok(Work::Wait { event: first }),
            7 => Ok(Work::Record { event: first }),
            10 => malloc_work(process, of_kind.cast()),
            11 => Ok(Work::Free { address: first }),
            kind => {
                complain(format!("a graph's node of the type {kind} is not modelled"));
                Err(CudaError::NOT_SUPPORTED)
            }
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphAddNode_v2(
    place: *mut Handle,
    graph: Handle,
    after: *const Handle,
    _data: *const c_void,
    count: usize,
    parameters: *mut NodeParams,
) -> i32 {
    let spot = Spot { place, graph, after, count };
    call(|process| unsafe {
        let work = any_work(process, parameters)?;
        spot.add(process, work)
    })
}

/// CUDA 13 has a parameter for the dependencies' data before their number.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphAddNode(
    place: *mut Handle,
    graph: Handle,
    after: *const Handle,
    count_or_data: usize,
    parameters_or_count: usize,
    parameters: *mut NodeParams,
) -> i32 {
    call(|process| {
        let (count, parameters) = match process.cuda_version {
            13.. => (parameters_or_count, parameters),
            _ => (count_or_data, parameters_or_count as *mut NodeParams),
        };
        let work = unsafe { any_work(process, parameters)? };
        unsafe { Spot { place, graph, after, count }.add(process, work) }
    })
}

/// How much memory graphs have.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetGraphMemAttribute(
    _device: c_int,
    attribute: c_int,
    place: *mut c_void,
) -> i32 {
    call(|process| {
        let all = process.open()?.graph_bytes();
        let found = usize::try_from(attribute).ok().and_then(|attribute| all.get(attribute).copied());
        unsafe { put(place.cast::<u64>(), found.ok_or(CudaError::INVALID_VALUE)?) }
    })
}

/// What is kept for graphs stays: their nodes have its addresses.
#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceGraphMemTrim(_device: c_int) -> i32 {
    call(|_| Ok(()))
}

/// The number of dependencies is the last parameter; CUDA 13 has one for their data in front of it.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphAddDependencies(
    graph: Handle,
    from: *const Handle,
    to: *const Handle,
    count_or_data: usize,
    count: usize,
) -> i32 {
    call(|process| {
        let count = if process.cuda_version >= 13 { count } else { count_or_data };
        for at in 0..count {
            let (from, to) = unsafe { (*from.add(at) as u64, *to.add(at) as u64) };
            process.graphs.add_dependency(graph as u64, from, to)?;
        }
        Ok(())
    })
}

/// Stores handles where there is room for them; without a place only their number is asked for.
unsafe fn put_nodes(nodes: &[u64], places: *mut Handle, count: *mut usize) -> Result {
    let room = unsafe { count.as_mut() }.ok_or(CudaError::INVALID_VALUE)?;
    if !places.is_null() {
        for (at, node) in nodes.iter().take(*room).enumerate() {
            unsafe { places.add(at).write(*node as Handle) };
        }
    }
    *room = nodes.len();
    Ok(())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphGetNodes(
    graph: Handle,
    places: *mut Handle,
    count: *mut usize,
) -> i32 {
    call(|process| {
        let nodes = process.graphs.nodes(graph as u64, false)?;
        unsafe { put_nodes(&nodes, places, count) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphGetRootNodes(
    graph: Handle,
    places: *mut Handle,
    count: *mut usize,
) -> i32 {
    call(|process| {
        let nodes = process.graphs.nodes(graph as u64, true)?;
        unsafe { put_nodes(&nodes, places, count) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphNodeGetType(node: Handle, place: *mut c_int) -> i32 {
    call(|process| {
        let kind = process.graphs.kind(node as u64)?;
        unsafe { put(place, kind) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphKernelNodeSetParams(
    node: Handle,
    parameters: *const KernelParams,
) -> i32 {
    call(|process| {
        let work = unsafe { kernel_work(process, parameters)? };
        process.graphs.change(node as u64, work)
    })
}

/// What the node's arguments are copied to lives as long as the program, which may keep the pointers.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphKernelNodeGetParams(node: Handle, place: *mut KernelParams) -> i32 {
    call(|process| {
        let Work::Kernel { function, request, arguments } = process.graphs.work(node as u64)? else {
            return Err(CudaError::INVALID_VALUE);
        };
        let copies = arguments.iter().map(|bytes| bytes.clone().leak().as_mut_ptr().cast::<c_void>());
        let copies: Vec<*mut c_void> = copies.collect();
        let parameters = KernelParams {
            function: *function as Handle,
            grid: Dim3::new(request.grid),
            block: Dim3::new(request.block),
            shared_bytes: request.dynamic_shared_bytes as c_uint,
            arguments: copies.leak().as_mut_ptr(),
            extra: std::ptr::null_mut(),
        };
        unsafe { put(place, parameters) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphExecKernelNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: *const KernelParams,
) -> i32 {
    call(|process| {
        let work = unsafe { kernel_work(process, parameters)? };
        process.graphs.change_in(executable as u64, node as u64, work)
    })
}

/// The parameters after these two differ between versions, and none is needed.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphInstantiate(place: *mut Handle, graph: Handle) -> i32 {
    call(|process| {
        let executable = process.graphs.instantiate(graph as u64)?;
        unsafe { put_pointer(place, executable) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphInstantiateWithFlags(
    place: *mut Handle,
    graph: Handle,
    _flags: u64,
) -> i32 {
    unsafe { cudaGraphInstantiate(place, graph) }
}

/// `cudaGraphInstantiateParams`.
#[repr(C)]
struct InstantiateParams {
    flags: u64,
    upload_stream: Handle,
    /// Set here: the node that is wrong, and what came of it.
    error_node: Handle,
    result: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGraphInstantiateWithParams(
    place: *mut Handle,
    graph: Handle,
    parameters: *mut InstantiateParams,
) -> i32 {
    const INVALID_STRUCTURE: c_int = 2;
    call(|process| {
        let parameters = unsafe { parameters.as_mut() }.ok_or(CudaError::INVALID_VALUE)?;
        let made = process.graphs.instantiate(graph as u64);
        parameters.error_node = std::ptr::null_mut();
        parameters.result = if made.is_ok() { 0 } else { INVALID_STRUCTURE };
        unsafe { put_pointer(place, made?) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGraphExecDestroy(executable: Handle) -> i32 {
    call(|process| process.graphs.destroy_executable(executable as u64))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGraphUpload(executable: Handle, _stream: Handle) -> i32 {
    call(|process| process.graphs.executable(executable as u64).map(|_| ()))
}

/// What comes of an update: CUDA 11 has a place for a node and one for the result, later versions one for both.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphExecUpdate(
    executable: Handle,
    graph: Handle,
    first: *mut c_int,
    second: *mut c_int,
) -> i32 {
    const SUCCESS: c_int = 0;
    const TOPOLOGY_CHANGED: c_int = 2;
    call(|process| {
        let updated = process.graphs.update(executable as u64, graph as u64);
        let result = if updated.is_ok() { SUCCESS } else { TOPOLOGY_CHANGED };
        let place = if process.cuda_version >= 12 { first } else { second };
        if !place.is_null() {
            unsafe { place.write(result) };
        }
        updated
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGraphLaunch(executable: Handle, stream: Handle) -> i32 {
    /// Runs a graph's nodes in a stream. Functions of the host are called without the lock.
    unsafe fn run(nodes: &[Node], stream: Handle) -> i32 {
        for node in nodes {
            let code = match &node.work {
                Work::Kernel { function, request, arguments } => call(|process| {
                    let request = Request { stream: stream as u64, ..*request };
                    process.launch(*function, &request, arguments)
                }),
                Work::Copy { to, from, extent, kind } => call(|process| unsafe {
                    copy(process, *to, *from, *extent, *kind, Order::Stream(stream))
                }),
                Work::Fill { to, pattern, extent } => {
                    call(|process| unsafe { fill(process, *to, pattern, *extent, Order::Stream(stream)) })
                }
                Work::Host { function, data } => {
                    // Sound: the program has passed the address as one of such a function.
                    let function = unsafe { std::mem::transmute::<usize, HostFunction>(*function) };
                    let settled = call(|process| process.settle());
                    if settled == 0 {
                        unsafe { function(*data as *mut c_void) };
                    }
                    settled
                }
                Work::Record { event } => call(|process| process.record_event(*event, stream as u64)),
                Work::Wait { event } => call(|process| process.wait_event(stream as u64, *event)),
                Work::Child { nodes } => unsafe { run(nodes, stream) },
                Work::Malloc { address } => call(|process| process.open()?.begin_graph_memory(*address)),
                Work::Free { address } => call(|process| process.open()?.free(*address)),
                Work::Empty => 0,
            };
            if code != 0 {
                return code;
            }
        }
        0
    }
    let mut nodes = Vec::new();
    let found = call(|process| {
        process.open()?.streams.find(stream as u64)?;
        nodes = process.graphs.executable(executable as u64)?;
        // As part of another graph it is a node of that.
        let child = nodes.clone();
        let recorded = process.captured(stream as u64, || Work::Child { nodes: child });
        if recorded.is_some() {
            nodes.clear();
        }
        recorded.unwrap_or(Ok(()))
    });
    if found == 0 { unsafe { run(&nodes, stream) } } else { found }
}
