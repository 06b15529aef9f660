//! The linker of the driver (`cuLink…`) and of nvJitLink: takes PTX, alone or inside of fat binaries, and hands PTX
//! over where NVIDIA's hands over machine code. What loads the result takes either.

use object::read::elf::FileHeader;
use object::{Endianness, elf};
use warploom::ptx::link;

use crate::core::error::{CudaError, Result};
use crate::core::fatbin;
use crate::core::process::Process;

/// What a program says that an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    MachineCode,
    Ptx,
    FatBinary,
    Object,
    Library,
    /// Intermediate code for optimisation at link time.
    Ir,
    /// To be found out.
    Any,
}

#[derive(Debug, Default)]
pub(crate) struct Linker {
    texts: Vec<String>,
    /// Intermediate code, which only NVIDIA's own linker reads.
    pub(crate) ir: Vec<(String, Vec<u8>)>,
    /// Options as nvJitLink gets them.
    pub(crate) options: Vec<String>,
    /// What went wrong, in words.
    pub(crate) errors: String,
    /// The linked text, with a NUL at its end, once there is one.
    pub(crate) linked: Option<Vec<u8>>,
}

impl Process {
    /// Begins a link; returns its handle.
    pub(crate) fn new_linker(&mut self) -> u64 {
        let handle = self.modules.new_handle();
        self.modules.linkers.insert(handle, Linker::default());
        handle
    }

    pub(crate) fn linker(&mut self, handle: u64) -> Result<&mut Linker> {
        self.modules.linkers.get_mut(&handle).ok_or(CudaError::INVALID_RESOURCE_HANDLE)
    }

    pub(crate) fn destroy_linker(&mut self, handle: u64) -> Result {
        self.modules.linkers.remove(&handle).map(|_| ()).ok_or(CudaError::INVALID_RESOURCE_HANDLE)
    }
}

impl Linker {
    /// Adds an input.
    pub(crate) fn add(&mut self, kind: InputKind, name: &str, data: &[u8]) -> Result {
        let added = self.take(kind, name, data);
        added.map_err(|(error, reason)| {
            self.errors.push_str(&format!("{name}: {reason}\n"));
            error
        })
    }

    fn take(
        &mut self,
        kind: InputKind,
        name: &str,
        data: &[u8],
    ) -> std::result::Result<(), (CudaError, String)> {
        let refuse = |reason: String| Err((CudaError::NO_KERNEL_IMAGE, reason));
        let kind = if kind == InputKind::Any { found_out(data) } else { kind };
        match kind {
            // What this linker has linked before is PTX, whatever it is called.
            InputKind::Ptx | InputKind::MachineCode if is_ptx(data) => {
                let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
                self.texts.push(String::from_utf8_lossy(&data[..end]).into_owned());
                Ok(())
            }
            InputKind::Ptx => Err((CudaError::INVALID_PTX, "it is no PTX".to_string())),
            InputKind::FatBinary | InputKind::Object | InputKind::Library => {
                let texts = ptx_inside(data);
                if texts.is_empty() {
                    return refuse("it has no PTX, and the simulator runs no machine code".to_string());
                }
                self.texts.extend(texts);
                Ok(())
            }
            InputKind::Ir => {
                self.ir.push((name.to_string(), data.to_vec()));
                Ok(())
            }
            InputKind::MachineCode | InputKind::Any => {
                refuse(format!("it is machine code{}, which the simulator does not run", for_chip(data)))
            }
        }
    }

    /// PTX that something else has made of the intermediate code.
    pub(crate) fn add_text(&mut self, text: String) {
        self.texts.push(text);
    }

    /// Links what was added.
    pub(crate) fn complete(&mut self) -> Result<&[u8]> {
        if self.texts.is_empty() {
            self.errors.push_str("there is nothing to link\n");
            return Err(CudaError::INVALID_KERNEL_IMAGE);
        }
        let texts: Vec<_> = self.texts.iter().map(String::as_str).collect();
        let mut linked = link(&texts).into_bytes();
        linked.push(0);
        Ok(self.linked.insert(linked))
    }
}

/// PTX begins with a directive, perhaps after comments.
pub(crate) fn is_ptx(data: &[u8]) -> bool {
    let start = data.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(data.len());
    let rest = &data[start..];
    rest.starts_with(b"//") || rest.starts_with(b"/*") || rest.starts_with(b".version")
}

/// Whether bytes are an ELF file, as machine code is.
pub(crate) fn is_elf(data: &[u8]) -> bool {
    data.starts_with(&elf::ELFMAG)
}

fn found_out(data: &[u8]) -> InputKind {
    if is_ptx(data) {
        InputKind::Ptx
    } else if is_elf(data) && for_chip(data).is_empty() {
        InputKind::Object
    } else if is_elf(data) {
        InputKind::MachineCode
    } else if data.starts_with(b"!<arch>") {
        InputKind::Library
    } else if data.starts_with(&fatbin::MAGIC.to_le_bytes()) {
        InputKind::FatBinary
    } else {
        InputKind::Ir
    }
}

/// ` for sm_90` of machine code, nothing of other files.
pub(crate) fn for_chip(data: &[u8]) -> String {
    const CUDA: u16 = 190;
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(data) else { return String::new() };
    let Ok(endian) = header.endian() else { return String::new() };
    if header.e_machine(endian).0 != CUDA {
        return String::new();
    }
    let flags = header.e_flags(endian).0;
    // The architecture is in the lowest byte; since CUDA 13 in the second, and the version of the format tells which.
    let arch = if header.e_ident().abi_version >= 8 { flags >> 8 & 0xff } else { flags & 0xff };
    format!(" for sm_{arch}")
}

/// The newest PTX of each fat binary inside of a file: a fat binary itself, an object or an archive of objects.
fn ptx_inside(data: &[u8]) -> Vec<String> {
    let magic = fatbin::MAGIC.to_le_bytes();
    let mut texts = Vec::new();
    let mut at = 0;
    // Containers begin at multiples of 8 in a section, and sections of an archive's members at even places.
    while let Some(found) = data.get(at..).and_then(|rest| rest.windows(4).position(|word| word == magic)) {
        let start = at + found;
        at = start + 4;
        let Some(header) = data.get(start..start + fatbin::HEADER_BYTES) else { break };
        let Ok(bytes) = <[u8; fatbin::HEADER_BYTES]>::try_from(header) else { break };
        let whole =
            fatbin::total_bytes(&bytes).ok().and_then(|bytes| data.get(start..start.checked_add(bytes)?));
        let Some(whole) = whole else { continue };
        if let Ok(binary) = fatbin::read(whole) {
            at = start + whole.len();
            let newest = binary.ptx.into_iter().max_by_key(|ptx| ptx.arch);
            texts.extend(newest.map(|ptx| ptx.text));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLEE: &str = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .func f() { ret; }\n";
    const CALLER: &str = "// made by hand\n.version 8.0\n.target sm_75\n.address_size 64\n.extern .func f();\n\
                          .visible .entry k() { call f; ret; }\n";

    #[test]
    fn ptx_of_two_inputs_becomes_one() {
        let mut linker = Linker::default();
        linker.add(InputKind::Ptx, "a", CALLER.as_bytes()).unwrap();
        linker.add(InputKind::Any, "b", CALLEE.as_bytes()).unwrap();
        let linked = String::from_utf8(linker.complete().unwrap().to_vec()).unwrap();
        assert!(linked.ends_with('\0') && is_ptx(linked.as_bytes()));
        assert!(linked.contains(".entry k") && linked.contains(".func f()") && !linked.contains(".extern"));
        // The result can be linked again, under the name of machine code.
        let mut again = Linker::default();
        again.add(InputKind::MachineCode, "c", linked.as_bytes()).unwrap();
        assert!(again.complete().is_ok());
    }

    #[test]
    fn what_cannot_be_linked() {
        let mut linker = Linker::default();
        assert_eq!(linker.complete().map(|_| ()), Err(CudaError::INVALID_KERNEL_IMAGE));
        let refused = linker.add(InputKind::Any, "code.cubin", &cubin(0x5a));
        assert_eq!(refused, Err(CudaError::NO_KERNEL_IMAGE));
        assert!(linker.errors.contains("code.cubin: it is machine code for sm_90"), "{}", linker.errors);
        assert_eq!(linker.add(InputKind::Ptx, "x", b"hello"), Err(CudaError::INVALID_PTX));
        assert_eq!(linker.add(InputKind::Library, "x", b"!<arch>\n"), Err(CudaError::NO_KERNEL_IMAGE));
    }

    /// The head of a cubin.
    fn cubin(flags: u32) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0x33, 7];
        bytes.resize(16, 0);
        bytes.extend(2u16.to_le_bytes());
        bytes.extend(190u16.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.resize(48, 0);
        bytes.extend(flags.to_le_bytes());
        bytes.resize(64, 0);
        bytes
    }
}
