//! Programs with the CUDA runtime linked in, as nvcc does by default: the runtime's functions in the program are made
//! to jump to those of this library. They are found by name in the program's symbol table.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind, elf};

use super::missing::refuse;
use super::text;

type Program<'a> = ElfFile64<'a, Endianness>;

/// The CUDA version that the program was built with: 11, 12 or 13.
static CUDA_VERSION: OnceLock<u32> = OnceLock::new();

/// Programs that do not say so, such as an interpreter whose libraries use CUDA.
const USUAL_VERSION: u32 = 12;

pub(super) fn cuda_version() -> u32 {
    *CUDA_VERSION.get().unwrap_or(&USUAL_VERSION)
}

/// What a symbol table tells of the runtime in a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Functions of the runtime: their names, and their addresses in the file.
    functions: Vec<(String, u64)>,
    /// Whether the program has kernels.
    has_kernels: bool,
    /// Whether it calls a shared runtime.
    uses_shared: bool,
    version: Option<u32>,
}

/// Redirects the runtime that is linked into the program, if there is one. Says in words why that cannot be.
pub(super) fn redirect() -> Result<(), String> {
    let Ok(bytes) = std::fs::read("/proc/self/exe") else { return Ok(()) };
    let Ok(program) = Program::parse(&*bytes) else { return Ok(()) };
    let found = examine(&program);
    if let Some(version) = found.version {
        CUDA_VERSION.get_or_init(|| version);
    }
    if !found.has_kernels || found.uses_shared {
        return Ok(());
    }
    if found.functions.is_empty() {
        return Err("the program has the CUDA runtime linked in, but no symbol table to find it by: \
                    build it without -s and do not strip it, or build it with -cudart shared"
            .to_string());
    }
    if !cfg!(target_arch = "x86_64") {
        return Err("the program has the CUDA runtime linked in, which works on x86-64 alone: \
                    build it with -cudart shared"
            .to_string());
    }
    let bias = bias(&program).ok_or("the program's place in memory is not known")?;
    let library = this_library().ok_or("the library does not find itself")?;
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for (name, address) in &found.functions {
        // Programs of one default stream per thread call functions with a suffix; the stream is the same here.
        let plain = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
        match function(library, plain) {
            Some(target) => known.push((*address, target)),
            None => unknown.push((name.as_str(), *address)),
        }
    }
    // NVIDIA's own code must not run, and it is one piece of the program: what else has such a name is the program's.
    let first = known.iter().map(|(address, _)| *address).min().unwrap_or(u64::MAX);
    let last = known.iter().map(|(address, _)| *address).max().unwrap_or(0);
    unknown.retain(|(_, address)| (first..last).contains(address));
    let names: Vec<&str> = unknown.iter().map(|(name, _)| *name).collect();
    let stubs = refusals(&names).ok_or("there is no memory for functions that say what is missing")?;
    let refused = unknown.iter().zip(stubs).map(|((_, address), stub)| (*address, stub));
    for (address, target) in known.iter().copied().chain(refused) {
        patch(bias.wrapping_add(address), target)?;
    }
    Ok(())
}

/// Functions that refuse calls of those of these names: each passes its name to [`refuse_call`].
fn refusals(names: &[&str]) -> Option<Vec<u64>> {
    const BYTES: usize = 32;
    if names.is_empty() {
        return Some(Vec::new());
    }
    let mut code = Vec::with_capacity(BYTES * names.len());
    for name in names {
        // Kept as long as the program: `mov rdi, name`, and the jump.
        let name = CString::new(*name).ok()?.into_raw() as u64;
        code.extend([0x48, 0xbf]);
        code.extend(name.to_le_bytes());
        code.extend(jump(refuse_call as *const () as u64));
        code.resize(code.len().next_multiple_of(BYTES), 0);
    }
    let (anonymous, access) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
    // Sound: the pages are fresh, at least as long as what is written to them, and never given back.
    unsafe {
        let pages = libc::mmap(std::ptr::null_mut(), code.len(), access, anonymous, -1, 0);
        if pages == libc::MAP_FAILED {
            return None;
        }
        pages.cast::<u8>().copy_from_nonoverlapping(code.as_ptr(), code.len());
        if libc::mprotect(pages, code.len(), libc::PROT_READ | libc::PROT_EXEC) != 0 {
            return None;
        }
        Some((0..names.len()).map(|at| pages as u64 + (at * BYTES) as u64).collect())
    }
}

/// What the functions of [`refusals`] jump to.
unsafe extern "C" fn refuse_call(name: *const c_char) -> i32 {
    refuse(&unsafe { text(name) })
}

fn examine(program: &Program<'_>) -> Found {
    let is_runtime = |name: &str| name.starts_with("cuda") || name.starts_with("__cuda");
    let mut found = Found {
        has_kernels: program.section_by_name(".nv_fatbin").is_some(),
        uses_shared: program.dynamic_symbols().any(|symbol| {
            symbol.is_undefined() && symbol.name().is_ok_and(|name| name == "__cudaRegisterFatBinary")
        }),
        ..Found::default()
    };
    let functions =
        program.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    for symbol in functions {
        if let Some(name) = symbol.name().ok().filter(|name| is_runtime(name)) {
            found.functions.push((name.to_string(), symbol.address()));
        }
    }
    let has = |wanted: &str| found.functions.iter().any(|(name, _)| name == wanted);
    found.version = if found.uses_shared {
        program.section_by_name(".dynstr").and_then(|names| shared_version(names.data().unwrap_or_default()))
    } else if has("cudaGetDeviceProperties_v2") {
        Some(12)
    } else if has("__cudaLaunchKernel") {
        Some(13)
    } else if has("__cudaRegisterFatBinary") {
        Some(11)
    } else {
        None
    };
    found
}

/// The version in the name of the shared runtime, `libcudart.so.12`, among the names that a program needs.
fn shared_version(names: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"libcudart.so.";
    let at = names.windows(NAME.len()).position(|name| name == NAME)? + NAME.len();
    let digits = names[at..].iter().take_while(|byte| byte.is_ascii_digit());
    std::str::from_utf8(&digits.copied().collect::<Vec<_>>()).ok()?.parse().ok()
}

/// What is added to the program's addresses where it is in memory.
fn bias(program: &Program<'_>) -> Option<u64> {
    let endian = program.endian();
    let headers = program.elf_header().program_headers(endian, program.data()).ok()?;
    let own = headers.iter().find(|header| header.p_type(endian) == elf::PT_PHDR)?;
    // Sound: it reads a number that the kernel has passed to the process.
    let at = unsafe { libc::getauxval(libc::AT_PHDR) };
    Some(at.wrapping_sub(own.p_vaddr(endian)))
}

/// A handle of this library, to look up its functions.
pub(super) fn this_library() -> Option<*mut c_void> {
    let mut about = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // Sound: `dladdr` fills the structure if it returns other than zero; the name is the loader's own.
    unsafe {
        if libc::dladdr((redirect as fn() -> _) as *const c_void, about.as_mut_ptr()) == 0 {
            return None;
        }
        let handle = libc::dlopen(about.assume_init().dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        (!handle.is_null()).then_some(handle)
    }
}

pub(super) fn function(library: *mut c_void, name: &str) -> Option<u64> {
    let name = CString::new(name).ok()?;
    // Sound: the handle is that of a loaded library.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found as u64)
}

/// Overwrites the start of a function with a jump.
fn patch(address: u64, target: u64) -> Result<(), String> {
    let code = jump(target);
    let page = 4095u64;
    let start = address & !page;
    let bytes = ((address + code.len() as u64 + page) & !page) - start;
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // Sound: the bytes are those of a function of the program, which no thread runs before its constructors do, and
    // which is at least as long: functions begin at multiples of 16.
    unsafe {
        if libc::mprotect(start as *mut c_void, bytes as usize, all) != 0 {
            let error = std::io::Error::last_os_error();
            return Err(format!(
                "the program's code cannot be changed ({error}): build it with -cudart shared"
            ));
        }
        (address as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len());
        libc::mprotect(start as *mut c_void, bytes as usize, libc::PROT_READ | libc::PROT_EXEC);
    }
    Ok(())
}

/// `mov r11, target; jmp r11`: the one register that holds nothing between caller and callee.
fn jump(target: u64) -> [u8; 13] {
    let mut code = [0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3];
    code[2..10].copy_from_slice(&target.to_le_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::error::CudaError;

    #[test]
    fn the_version_of_the_shared_runtime() {
        assert_eq!(shared_version(b"\0libc.so.6\0libcudart.so.12\0main\0"), Some(12));
        assert_eq!(shared_version(b"\0libcudart.so.11.0\0"), Some(11));
        assert_eq!(shared_version(b"\0libc.so.6\0"), None);
    }

    #[test]
    fn this_program_uses_no_cuda() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let found = examine(&Program::parse(&*bytes).unwrap());
        assert!(!found.has_kernels && !found.uses_shared);
        assert_eq!(redirect(), Ok(()));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn refusals_are_functions() {
        let stubs = refusals(&["cudaOne", "cudaTwo"]).unwrap();
        // Sound: they are functions of this form.
        let call = unsafe { std::mem::transmute::<u64, extern "C" fn() -> i32>(stubs[1]) };
        assert_eq!(call(), CudaError::NOT_SUPPORTED.0);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_patched_function_is_another() {
        #[inline(never)]
        extern "C" fn one(x: u64) -> u64 {
            std::hint::black_box(x) + std::hint::black_box(1) * std::hint::black_box(3)
        }
        #[inline(never)]
        extern "C" fn two(x: u64) -> u64 {
            x * 2
        }
        let call: extern "C" fn(u64) -> u64 = std::hint::black_box(one);
        assert_eq!(call(20), 23);
        patch(one as *const () as u64, two as *const () as u64).unwrap();
        assert_eq!(call(20), 40);
    }
}
