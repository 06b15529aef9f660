//! A GPU in a child process. When a kernel faults or hangs, CUDA gives its process no further context. Here
//! that process is killed, and the next call starts a new one.

use std::fmt;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};

use serde::de::DeserializeOwned;

use crate::serve::{Call, receive, send};
use crate::{CudaError, CudaKernel, CudaModule, DeviceInfo, Driver, LaunchOptions, LaunchTime};

/// A connection to a process that [serves](crate::serve) a GPU.
struct Link {
    input: Box<dyn Write + Send>,
    output: Box<dyn Read + Send>,
    /// The process, which must not outlive the link.
    child: Option<Child>,
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It would not exit by itself while a kernel hangs.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

type Connect = Box<dyn FnMut() -> io::Result<Link> + Send>;

/// A GPU in a child process, which is replaced after a fault.
pub struct ChildGpu {
    ordinal: usize,
    jit_level: Option<u32>,
    connect: Connect,
    link: Option<Link>,
    info: DeviceInfo,
    renewed: bool,
}

impl fmt::Debug for ChildGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildGpu").field("info", &self.info).finish_non_exhaustive()
    }
}

impl ChildGpu {
    /// Opens the GPU with this number in a process started by `command`, which must call [`serve`](crate::serve) on its
    /// standard input and output. `jit_level` is the optimization level of the driver's compiler.
    pub fn new(ordinal: usize, jit_level: Option<u32>, mut command: Command) -> Result<ChildGpu, CudaError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let connect = move || {
            let mut child = command.spawn()?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            let (Some(input), Some(output)) = (input, output) else {
                return Err(io::Error::other("the child has no pipes"));
            };
            Ok(Link { input: Box::new(input), output: Box::new(output), child: Some(child) })
        };
        ChildGpu::connected(ordinal, jit_level, Box::new(connect))
    }

    fn connected(
        ordinal: usize,
        jit_level: Option<u32>,
        mut connect: Connect,
    ) -> Result<ChildGpu, CudaError> {
        let mut link = connect().map_err(broken)?;
        let info = open(&mut link, ordinal, jit_level)?;
        Ok(ChildGpu { ordinal, jit_level, connect, link: Some(link), info, renewed: false })
    }

    /// Makes a call. A successful result brings as many bytes of data as `into` has.
    fn exchange<T: DeserializeOwned>(
        &mut self,
        call: &Call,
        data: &[u8],
        into: &mut [u8],
    ) -> Result<T, CudaError> {
        if self.link.is_none() {
            let mut link = (self.connect)().map_err(broken)?;
            open(&mut link, self.ordinal, self.jit_level)?;
            self.link = Some(link);
        }
        let link = self.link.as_mut().expect("made above");
        ask(link, call, data, into).unwrap_or_else(|error| {
            self.lose();
            Err(broken(error))
        })
    }

    fn call<T: DeserializeOwned>(&mut self, call: &Call) -> Result<T, CudaError> {
        self.exchange(call, &[], &mut [])
    }

    /// Ends the process, which can no longer be used.
    fn lose(&mut self) {
        self.link = None;
        self.renewed = true;
    }
}

fn broken(error: io::Error) -> CudaError {
    CudaError::Driver {
        what: "talking to the process that has the GPU".to_string(),
        reason: error.to_string(),
    }
}

fn open(link: &mut Link, ordinal: usize, jit_level: Option<u32>) -> Result<DeviceInfo, CudaError> {
    ask(link, &Call::Open { ordinal, jit_level }, &[], &mut []).map_err(broken)?
}

/// Sends one call and receives its result. The result has as many bytes of data as `into`, or none if it is an error.
fn ask<T: DeserializeOwned>(
    link: &mut Link,
    call: &Call,
    data: &[u8],
    into: &mut [u8],
) -> io::Result<Result<T, CudaError>> {
    send(&mut link.input, call, data)?;
    let Some((result, bytes)) = receive::<Result<T, CudaError>>(&mut link.output)? else {
        return Err(io::Error::other("it ended without an answer"));
    };
    match bytes as usize {
        0 => {}
        bytes if bytes == into.len() => link.output.read_exact(into)?,
        bytes => {
            return Err(io::Error::other(format!("it sent {bytes} bytes in place of {}", into.len())));
        }
    }
    Ok(result)
}

impl Driver for ChildGpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn is_renewed(&mut self) -> bool {
        std::mem::take(&mut self.renewed)
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, CudaError> {
        self.call(&Call::Allocate { bytes })
    }

    fn free(&mut self, address: u64) -> Result<(), CudaError> {
        self.call(&Call::Free { address })
    }

    fn clear(&mut self, address: u64, bytes: u64) -> Result<(), CudaError> {
        self.call(&Call::Clear { address, bytes })
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), CudaError> {
        let bytes = into.len() as u64;
        self.exchange(&Call::Read { address, bytes }, &[], into)
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), CudaError> {
        self.exchange(&Call::Write { address }, data, &mut [])
    }

    fn load(&mut self, name: &str, ptx: &str) -> Result<CudaModule, CudaError> {
        self.call(&Call::Load { name: name.to_string(), ptx: ptx.to_string() })
    }

    fn kernel(&mut self, module: CudaModule, name: &str) -> Result<Option<CudaKernel>, CudaError> {
        self.call(&Call::Kernel { module, name: name.to_string() })
    }

    fn global(&mut self, module: CudaModule, name: &str) -> Option<(u64, u64)> {
        self.call::<Option<_>>(&Call::Global { module, name: name.to_string() }).ok().flatten()
    }

    fn ctas_per_sm(
        &mut self,
        kernel: &CudaKernel,
        threads: u32,
        dynamic_shared: u32,
    ) -> Result<u32, CudaError> {
        self.call(&Call::CtasPerSm { kernel: kernel.clone(), threads, dynamic_shared })
    }

    fn launch(
        &mut self,
        kernel: &CudaKernel,
        options: &LaunchOptions,
        params: &[u8],
    ) -> Result<LaunchTime, CudaError> {
        let call = Call::Launch { kernel: kernel.clone(), options: *options };
        let result = self.exchange(&call, params, &mut []);
        if let Err(CudaError::Fault { .. } | CudaError::TimeLimit { .. }) = result {
            self.lose();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::{Paper, on_paper};

    /// A [`ChildGpu`] whose processes are threads with [`Paper`] GPUs: "paper 1", "paper 2" …
    fn child() -> ChildGpu {
        let mut started = 0;
        let connect = move || {
            started += 1;
            let (input, output) = on_paper(Ok(Paper::new(&format!("paper {started}"))));
            Ok(Link { input: Box::new(input), output: Box::new(output), child: None })
        };
        ChildGpu::connected(0, None, Box::new(connect)).unwrap()
    }

    const OPTIONS: LaunchOptions = LaunchOptions {
        grid: [5, 1, 1],
        block: [1; 3],
        dynamic_shared_bytes: 0,
        cluster: None,
        cooperative: false,
        time_limit: None,
        behind_busy: false,
    };

    #[test]
    fn every_call_reaches_the_other_side_and_comes_back() {
        let mut gpu = child();
        assert_eq!(gpu.info().name, "paper 1");
        let address = gpu.allocate(6).unwrap();
        gpu.clear(address, 6).unwrap();
        gpu.write(address, &[1, 2, 3]).unwrap();
        let mut found = [9; 6];
        gpu.read(address, &mut found).unwrap();
        assert_eq!(found, [1, 2, 3, 0, 0, 0]);
        gpu.free(address).unwrap();
        let error = gpu.read(address, &mut found).unwrap_err();
        assert_eq!(error.to_string(), "using memory: no memory at 4096");
        assert!(matches!(gpu.load("k.ptx", ""), Err(CudaError::Jit { .. })));
        let module = gpu.load("k.ptx", "text").unwrap();
        assert_eq!(gpu.kernel(module, "absent").unwrap(), None);
        let kernel = gpu.kernel(module, "good").unwrap().unwrap();
        assert_eq!((kernel.registers, kernel.name.as_str()), (7, "good"));
        assert_eq!((gpu.global(module, "known"), gpu.global(module, "none")), (Some((4096, 3)), None));
        assert_eq!(gpu.ctas_per_sm(&kernel, 100, 11).unwrap(), 111);
        assert_eq!(gpu.launch(&kernel, &OPTIONS, &[0; 8]).unwrap().seconds, 13.0);
        assert!(!gpu.is_renewed());
    }

    #[test]
    fn after_a_fault_there_is_another_context() {
        let mut gpu = child();
        let module = gpu.load("k.ptx", "text").unwrap();
        let address = gpu.allocate(4).unwrap();
        let bad = gpu.kernel(module, "bad").unwrap().unwrap();
        assert!(matches!(gpu.launch(&bad, &OPTIONS, &[]), Err(CudaError::Fault { .. })));
        assert!(gpu.is_renewed() && !gpu.is_renewed() && !gpu.is_lost());
        // The memory was lost with the old context.
        assert!(gpu.read(address, &mut [0; 4]).is_err());
        let address = gpu.allocate(4).unwrap();
        gpu.read(address, &mut [0; 4]).unwrap();
    }

    #[test]
    fn a_process_that_ends_is_reported_and_replaced() {
        let mut first = true;
        let connect = move || {
            let (input, output) = on_paper(Ok(Paper::new("paper")));
            let lasts: u64 = if std::mem::take(&mut first) { 1 << 10 } else { u64::MAX };
            Ok(Link { input: Box::new(input), output: Box::new(output.take(lasts)), child: None })
        };
        let mut gpu = ChildGpu::connected(0, None, Box::new(connect)).unwrap();
        let error = (0..200).find_map(|_| gpu.allocate(1).err()).expect("the answers end");
        let prefix = "talking to the process that has the GPU: ";
        assert!(error.to_string().starts_with(prefix), "{error}");
        assert!(gpu.is_renewed());
        gpu.allocate(1).unwrap();
    }

    #[test]
    fn a_gpu_that_cannot_be_opened_says_why() {
        let connect = || {
            let (input, output) = on_paper(Err(CudaError::NoDriver));
            Ok(Link { input: Box::new(input), output: Box::new(output), child: None })
        };
        assert_eq!(ChildGpu::connected(0, None, Box::new(connect)).unwrap_err(), CudaError::NoDriver);
        let missing = ChildGpu::new(0, None, Command::new("/no/such/program")).unwrap_err();
        assert!(missing.to_string().contains("talking to the process"), "{missing}");
    }
}
