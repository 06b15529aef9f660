//! What the code that nvcc puts into a program calls before `main`: fat binaries, kernels and variables.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};

use super::{Dim3, Handle, process, put, text};
use crate::abi::host::SharedRange;
use crate::core::error::CudaError;
use crate::core::fatbin::{self, FatBinary, HEADER_BYTES};
use crate::core::memory::Kind;
use crate::core::process::complain;

/// What nvcc hands over: a pointer to the container.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    /// With version 2: containers of the modules that were linked, ending with a null pointer.
    modules: *const *const u8,
}

pub(super) const WRAPPER_MAGIC: u32 = 0x4662_43B1;
const LINKED: u32 = 2;

/// The containers that a wrapper points to.
unsafe fn containers(wrapper: &Wrapper) -> Vec<FatBinary> {
    let mut all = Vec::new();
    let mut add = |data: *const u8| {
        // Sound: a container begins with its own size.
        let header = unsafe { &*data.cast::<[u8; HEADER_BYTES]>() };
        let read = fatbin::total_bytes(header).and_then(|bytes| {
            let bytes = unsafe { std::slice::from_raw_parts(data, bytes) };
            fatbin::read(bytes)
        });
        match read {
            Ok(binary) => all.push(binary),
            Err(error) => complain(format!("a fat binary of the program: {error}")),
        }
    };
    if !wrapper.data.is_null() {
        add(wrapper.data);
    }
    if wrapper.version == LINKED && !wrapper.modules.is_null() {
        let mut at = wrapper.modules;
        while !unsafe { *at }.is_null() {
            add(unsafe { *at });
            at = unsafe { at.add(1) };
        }
    }
    all
}

/// The containers at an address that the program passes to the driver: of a wrapper, or a container itself.
pub(super) unsafe fn containers_at(data: *const c_void) -> Vec<FatBinary> {
    let magic = unsafe { *data.cast::<u32>() };
    if magic == WRAPPER_MAGIC {
        return unsafe { containers(&*data.cast::<Wrapper>()) };
    }
    let alone = Wrapper { magic, version: 1, data: data.cast(), modules: std::ptr::null() };
    unsafe { containers(&alone) }
}

/// The number of a fat binary as a handle, which the program only passes back.
fn handle(image: usize) -> *mut Handle {
    (image + 1) as *mut Handle
}

fn image(handle: *mut Handle) -> usize {
    (handle as usize).wrapping_sub(1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut Handle {
    let wrapper = unsafe { &*wrapper.cast::<Wrapper>() };
    let binaries = if wrapper.magic == WRAPPER_MAGIC {
        unsafe { containers(wrapper) }
    } else {
        complain("a fat binary of the program is in no known form");
        Vec::new()
    };
    handle(process().add_image(binaries))
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut Handle) {}

/// Programs call it at their end, when there is nothing left to release.
#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(_handle: *mut Handle) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    handle: *mut Handle,
    host: *const c_void,
    _device: *mut c_char,
    name: *const c_char,
    _thread_limit: c_int,
    _tid: *mut c_void,
    _bid: *mut c_void,
    _block: *mut c_void,
    _grid: *mut c_void,
    _warp_size: *mut c_int,
) {
    let name = unsafe { text(name) };
    process().add_function(image(handle), host as u64, name);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterVar(
    handle: *mut Handle,
    host: *mut c_char,
    _device: *mut c_char,
    name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    let name = unsafe { text(name) };
    process().add_variable(image(handle), host as u64, name);
}

/// A texture reference of the program.
pub(super) fn reference(handle: *mut Handle, host: u64, name: String, normalized_read: bool) {
    process().add_reference(image(handle), host, name, normalized_read);
}

/// A `__managed__` variable: the host reaches it through a pointer, which is set here.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: *mut Handle,
    host: *mut Handle,
    _device: *mut c_char,
    name: *const c_char,
    _external: c_int,
    bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    let name = unsafe { text(name) };
    let Some(range) = SharedRange::allocate(bytes, Kind::Managed) else {
        return complain(format!("no memory for the managed variable `{name}`"));
    };
    unsafe { host.write(range.address() as Handle) };
    process().add_managed(image(handle), host as u64, name, range.address());
}

/// Called before the program uses a managed variable.
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(handle: *mut Handle) -> c_char {
    c_char::from(process().init_module(image(handle)).is_ok())
}

/// `<<<…>>>` is two calls: one with the configuration, and one of the stub, which asks for it.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: Handle,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: Handle,
) -> u32 {
    CONFIGURATIONS.with_borrow_mut(|all| all.push(Configuration { grid, block, shared_bytes, stream }));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dim3,
    block: *mut Dim3,
    shared_bytes: *mut usize,
    stream: *mut Handle,
) -> i32 {
    let Some(configuration) = CONFIGURATIONS.with_borrow_mut(Vec::pop) else {
        return CudaError::MISSING_CONFIGURATION.0;
    };
    let stored = unsafe {
        put(grid, configuration.grid)
            .and_then(|()| put(block, configuration.block))
            .and_then(|()| put(shared_bytes, configuration.shared_bytes))
            .and_then(|()| put(stream, configuration.stream))
    };
    stored.map_or_else(|error| error.0, |()| 0)
}
