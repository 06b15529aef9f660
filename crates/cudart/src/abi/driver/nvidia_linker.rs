//! NVIDIA's own nvJitLink, for inputs that only it can read: intermediate code for link-time optimisation. It makes PTX
//! of it (`-lto -ptx`), and needs no driver for that.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::core::linker::Linker;

const IR: c_int = 3;

/// Replaces the intermediate code of a link by PTX. Says in words why that fails.
pub(super) fn make_ptx(linker: &mut Linker) -> Result<(), String> {
    if linker.ir.is_empty() {
        return Ok(());
    }
    let library = open().ok_or(
        "intermediate code for link-time optimisation, which only NVIDIA's nvJitLink reads, and it was not found \
         beside the other libraries of CUDA that are loaded",
    )?;
    let text = unsafe { library.link(linker) }?;
    linker.ir.clear();
    linker.add_text(text);
    Ok(())
}

struct NvJitLink(*mut c_void);

/// Looks beside the libraries of CUDA's compilers that the process has loaded.
fn open() -> Option<NvJitLink> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps
        .lines()
        .filter_map(|line| line.split_once('/'))
        .map(|(_, path)| PathBuf::from(format!("/{path}")));
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.starts_with("libnvrtc.so") && !name.starts_with("libnvvm.so") {
            continue;
        }
        // nvvm/lib64 is beside lib; wheels of CUDA 12 have a folder for each library.
        let folder = path.parent()?;
        let places = ["", "../../lib", "../../lib64", "../../nvjitlink/lib", "../../../nvjitlink/lib"];
        for place in places.iter().map(|place| folder.join(place)) {
            let Ok(entries) = std::fs::read_dir(&place) else { continue };
            let mut files = entries.flatten().map(|entry| entry.path());
            let is_it = |file: &PathBuf| {
                file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libnvJitLink.so"))
            };
            let found = files.find(is_it);
            let Some(file) = found.and_then(|file| CString::new(file.as_os_str().as_bytes()).ok()) else {
                continue;
            };
            // Sound: loading the library has no effect on this one; its names stay its own.
            let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                return Some(NvJitLink(handle));
            }
        }
    }
    None
}

type Create = unsafe extern "C" fn(*mut *mut c_void, u32, *const *const c_char) -> c_int;
type AddData = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize, *const c_char) -> c_int;
type Complete = unsafe extern "C" fn(*mut c_void) -> c_int;
type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type Bytes = unsafe extern "C" fn(*mut c_void, *mut u8) -> c_int;

impl NvJitLink {
    /// A function by its name. The names end with the version of the library's header.
    ///
    /// # Safety
    /// `F` must be the function's type.
    unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, String> {
        for version in ["13_0", "12_0"] {
            let full = CString::new(format!("__{name}_{version}")).map_err(|error| error.to_string())?;
            let found = unsafe { libc::dlsym(self.0, full.as_ptr()) };
            if !found.is_null() {
                return Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) });
            }
        }
        Err(format!("NVIDIA's nvJitLink has no {name}"))
    }

    /// Links the intermediate code and returns its PTX.
    unsafe fn link(&self, linker: &Linker) -> Result<String, String> {
        let create: Create = unsafe { self.function("nvJitLinkCreate")? };
        let add: AddData = unsafe { self.function("nvJitLinkAddData")? };
        let complete: Complete = unsafe { self.function("nvJitLinkComplete")? };
        let destroy: Destroy = unsafe { self.function("nvJitLinkDestroy")? };
        let mut options: Vec<String> =
            linker.options.iter().filter(|option| *option != "-ptx").cloned().collect();
        options.push("-ptx".to_string());
        if !options.iter().any(|option| option == "-lto") {
            options.push("-lto".to_string());
        }
        let options: Vec<_> = options.into_iter().filter_map(|option| CString::new(option).ok()).collect();
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut handle = std::ptr::null_mut();
        unsafe {
            let mut code = create(&mut handle, pointers.len() as u32, pointers.as_ptr());
            for (name, data) in &linker.ir {
                let name = CString::new(name.as_str()).unwrap_or_default();
                if code == 0 {
                    code = add(handle, IR, data.as_ptr().cast(), data.len(), name.as_ptr());
                }
            }
            if code == 0 {
                code = complete(handle);
            }
            let result = if code == 0 {
                self.bytes(handle, "nvJitLinkGetLinkedPtx")
            } else {
                let log = self.bytes(handle, "nvJitLinkGetErrorLog").unwrap_or_default();
                Err(format!("NVIDIA's nvJitLink: error {code}: {}", log.trim()))
            };
            destroy(&mut handle);
            result
        }
    }

    /// The text that one of two functions gives, of the size that the other one gives.
    unsafe fn bytes(&self, handle: *mut c_void, name: &str) -> Result<String, String> {
        let size: Size = unsafe { self.function(&format!("{name}Size"))? };
        let get: Bytes = unsafe { self.function(name)? };
        let mut count = 0;
        if unsafe { size(handle, &mut count) } != 0 {
            return Err(format!("NVIDIA's nvJitLink: {name} fails"));
        }
        let mut bytes = vec![0; count + 1];
        if unsafe { get(handle, bytes.as_mut_ptr()) } != 0 {
            return Err(format!("NVIDIA's nvJitLink: {name} fails"));
        }
        bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(count));
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
