//! Serves a GPU to another process: calls arrive on one pipe, results leave on another.
//!
//! A message is two lengths, then a head and data of these lengths. The head is JSON, the data are bytes of
//! device memory.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{CudaError, CudaKernel, CudaModule, Driver, Gpu, LaunchOptions};

/// A call of the host. Results are those of [`Driver`]'s methods.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    Open {
        ordinal: usize,
        jit_level: Option<u32>,
    },
    Allocate {
        bytes: u64,
    },
    Free {
        address: u64,
    },
    Clear {
        address: u64,
        bytes: u64,
    },
    /// The result's data are the bytes read.
    Read {
        address: u64,
        bytes: u64,
    },
    /// The call's data are the bytes to write.
    Write {
        address: u64,
    },
    Load {
        name: String,
        ptx: String,
    },
    Kernel {
        module: CudaModule,
        name: String,
    },
    Global {
        module: CudaModule,
        name: String,
    },
    CtasPerSm {
        kernel: CudaKernel,
        threads: u32,
        dynamic_shared: u32,
    },
    /// The call's data are the parameters.
    Launch {
        kernel: CudaKernel,
        options: LaunchOptions,
    },
}

pub(crate) fn send(output: &mut impl Write, head: &impl Serialize, data: &[u8]) -> io::Result<()> {
    let head = serde_json::to_vec(head)?;
    output.write_all(&(head.len() as u64).to_le_bytes())?;
    output.write_all(&(data.len() as u64).to_le_bytes())?;
    output.write_all(&head)?;
    output.write_all(data)?;
    output.flush()
}

/// Reads a message's head. Returns it with the number of data bytes that follow, or `None` if the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<(T, u64)>> {
    let mut lengths = [0; 16];
    match input.read_exact(&mut lengths) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let [head, data] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| lengths[at + i])));
    let mut text = Vec::new();
    input.take(head).read_to_end(&mut text)?;
    Ok(Some((serde_json::from_slice(&text)?, data)))
}

/// Serves the GPU that the first call opens, until the other side closes its pipe.
pub fn serve(input: impl Read, output: impl Write) -> io::Result<()> {
    let open = |ordinal, jit_level: Option<u32>| {
        let mut gpu = Gpu::new(ordinal)?;
        jit_level.into_iter().for_each(|level| gpu.set_jit_level(level));
        Ok(gpu)
    };
    serve_with(open, input, output)
}

fn serve_with<D: Driver>(
    open: impl FnOnce(usize, Option<u32>) -> Result<D, CudaError>,
    mut input: impl Read,
    mut output: impl Write,
) -> io::Result<()> {
    let Some((Call::Open { ordinal, jit_level }, _)) = receive(&mut input)? else { return Ok(()) };
    let opened = open(ordinal, jit_level);
    send(&mut output, &opened.as_ref().map(|gpu| gpu.info().clone()), &[])?;
    let Ok(mut gpu) = opened else { return Ok(()) };
    while let Some((call, bytes)) = receive(&mut input)? {
        let mut data = Vec::new();
        (&mut input).take(bytes).read_to_end(&mut data)?;
        match call {
            Call::Open { .. } => send(&mut output, &Ok::<_, CudaError>(gpu.info()), &[]),
            Call::Allocate { bytes } => send(&mut output, &gpu.allocate(bytes), &[]),
            Call::Free { address } => send(&mut output, &gpu.free(address), &[]),
            Call::Clear { address, bytes } => send(&mut output, &gpu.clear(address, bytes), &[]),
            Call::Read { address, bytes } => {
                let mut found = vec![0; bytes as usize];
                let result = gpu.read(address, &mut found);
                send(&mut output, &result, if result.is_ok() { &found } else { &[] })
            }
            Call::Write { address } => send(&mut output, &gpu.write(address, &data), &[]),
            Call::Load { name, ptx } => send(&mut output, &gpu.load(&name, &ptx), &[]),
            Call::Kernel { module, name } => send(&mut output, &gpu.kernel(module, &name), &[]),
            Call::Global { module, name } => {
                send(&mut output, &Ok::<_, CudaError>(gpu.global(module, &name)), &[])
            }
            Call::CtasPerSm { kernel, threads, dynamic_shared } => {
                send(&mut output, &gpu.ctas_per_sm(&kernel, threads, dynamic_shared), &[])
            }
            Call::Launch { kernel, options } => send(&mut output, &gpu.launch(&kernel, &options, &data), &[]),
        }?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{DeviceInfo, LaunchTime};

    /// A GPU without a driver: memory is a map, and every kernel except `good` faults.
    #[derive(Debug)]
    pub(crate) struct Paper {
        info: DeviceInfo,
        memory: BTreeMap<u64, Vec<u8>>,
    }

    impl Paper {
        pub(crate) fn new(name: &str) -> Paper {
            let info = DeviceInfo {
                ordinal: 0,
                name: name.to_string(),
                compute_capability: (9, 0),
                driver_version: (13, 0),
                sms: 1,
                warp_lanes: 32,
                clock_mhz: 1000,
                memory_bytes: 1 << 20,
                l2_bytes: 0,
                max_threads_per_cta: 1024,
                max_threads_per_sm: 2048,
                max_ctas_per_sm: 32,
                max_shared_bytes_per_cta: 49_152,
                shared_bytes_per_sm: 65_536,
                registers_per_sm: 65_536,
                cooperative: false,
            };
            Paper { info, memory: BTreeMap::new() }
        }

        fn allocation(&mut self, address: u64) -> Result<&mut Vec<u8>, CudaError> {
            let reason = format!("no memory at {address}");
            let error = CudaError::Driver { what: "using memory".to_string(), reason };
            self.memory.get_mut(&address).ok_or(error)
        }
    }

    impl Driver for Paper {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }
        fn is_lost(&self) -> bool {
            false
        }
        fn allocate(&mut self, bytes: u64) -> Result<u64, CudaError> {
            let address = 4096 * (self.memory.len() as u64 + 1);
            self.memory.insert(address, vec![0xff; bytes as usize]);
            Ok(address)
        }
        fn free(&mut self, address: u64) -> Result<(), CudaError> {
            self.allocation(address)?;
            self.memory.remove(&address);
            Ok(())
        }
        fn clear(&mut self, address: u64, bytes: u64) -> Result<(), CudaError> {
            self.allocation(address)?[..bytes as usize].fill(0);
            Ok(())
        }
        fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), CudaError> {
            into.copy_from_slice(&self.allocation(address)?[..into.len()]);
            Ok(())
        }
        fn write(&mut self, address: u64, data: &[u8]) -> Result<(), CudaError> {
            self.allocation(address)?[..data.len()].copy_from_slice(data);
            Ok(())
        }
        fn load(&mut self, name: &str, ptx: &str) -> Result<CudaModule, CudaError> {
            let bad = |reason: &str| CudaError::Jit {
                name: name.to_string(),
                reason: reason.to_string(),
                log: ptx.to_string(),
            };
            if ptx.is_empty() { Err(bad("nothing")) } else { Ok(CudaModule { id: 3 }) }
        }
        fn kernel(&mut self, module: CudaModule, name: &str) -> Result<Option<CudaKernel>, CudaError> {
            let kernel = CudaKernel {
                id: module.id,
                name: name.to_string(),
                registers: 7,
                static_shared_bytes: 8,
                local_bytes: 9,
            };
            Ok((name != "absent").then_some(kernel))
        }
        fn global(&mut self, module: CudaModule, name: &str) -> Option<(u64, u64)> {
            (name == "known").then_some((4096, module.id as u64))
        }
        fn ctas_per_sm(&mut self, _: &CudaKernel, threads: u32, shared: u32) -> Result<u32, CudaError> {
            Ok(threads + shared)
        }
        fn launch(
            &mut self,
            kernel: &CudaKernel,
            options: &LaunchOptions,
            params: &[u8],
        ) -> Result<LaunchTime, CudaError> {
            match kernel.name.as_str() {
                "good" => Ok(LaunchTime { seconds: (options.grid[0] as usize + params.len()) as f64 }),
                name => Err(CudaError::Fault { kernel: name.to_string(), reason: "paper burns".to_string() }),
            }
        }
    }

    /// Serves a [`Paper`] GPU on another thread. Returns the host's ends of its pipes.
    pub(crate) fn on_paper(opened: Result<Paper, CudaError>) -> (io::PipeWriter, io::PipeReader) {
        let (their_input, input) = io::pipe().expect("a pipe");
        let (output, their_output) = io::pipe().expect("a pipe");
        std::thread::spawn(move || serve_with(|_, _| opened, their_input, their_output));
        (input, output)
    }

    #[test]
    fn a_broken_message_ends_it_and_an_end_is_no_error() {
        let served = |bytes: &[u8]| serve_with(|_, _| Ok(Paper::new("paper")), bytes, io::sink());
        assert!(served(&[]).is_ok());
        assert!(served(&[7, 0, 0]).is_ok());
        let mut message = Vec::new();
        message.extend(4u64.to_le_bytes());
        message.extend(0u64.to_le_bytes());
        message.extend(b"{x:]");
        assert!(served(&message).is_err());
    }
}
