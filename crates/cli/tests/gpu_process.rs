//! A real GPU in a child process. On a computer without one, only the child's message can be checked.
#![cfg(feature = "cuda")]

use std::process::Command;
use std::time::Duration;

use warploom::{Device, Error, Launch, args};

/// The command under test. `WARPLOOM_BIN` names it if this test was copied to another computer.
fn child() -> Command {
    let program =
        std::env::var("WARPLOOM_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_warploom").to_string());
    let mut command = Command::new(program);
    command.arg("serve-gpu");
    command
}

const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64
.entry good(.param .u64 to) {
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], 7;
    ret;
}
.entry bad() {
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 16;
    st.global.u32 [%rd1], 7;
    ret;
}
.entry endless(.param .u64 to) {
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [to];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}";

#[test]
fn a_gpu_goes_on_after_a_fault_with_a_new_context() {
    let mut gpu = match Device::cuda_in_child(0, None, child()) {
        Ok(gpu) => gpu,
        Err(error) => {
            // The child looks for the driver as this process would.
            assert_eq!(error.to_string(), warploom::cuda_devices().unwrap_err().to_string());
            return;
        }
    };
    assert!(gpu.is_real());
    for (faulty, args_wanted) in [("bad", false), ("endless", true)] {
        let module = gpu.load_ptx(KERNELS).unwrap();
        let word = gpu.zeros::<u32>(1).unwrap();
        let launch = || Launch::grid(1).block(1).time_limit(Duration::from_secs(2));
        gpu.launch(module.kernel("good").unwrap(), launch(), args![&word]).unwrap();
        assert_eq!(word.read(&gpu).unwrap(), [7]);
        word.write(&mut gpu, &[0]).unwrap();
        let kernel = module.kernel(faulty).unwrap();
        let error = match args_wanted {
            true => gpu.launch(&kernel, launch(), args![&word]),
            false => gpu.launch(&kernel, launch(), args![]),
        };
        assert!(matches!(error, Err(Error::Fault { .. } | Error::Hang { .. })), "{error:?}");
        assert!(!gpu.is_lost());
        // Buffers of the old context are refused by name.
        let message = word.read(&gpu).unwrap_err().to_string();
        assert_eq!(message, "the buffer was lost with the GPU's context when a kernel failed: make it again");
        assert!(gpu.launch(&kernel, launch(), args![]).is_err());
    }
    // The new context works.
    let word = gpu.zeros::<u32>(1).unwrap();
    let module = gpu.load_ptx(KERNELS).unwrap();
    gpu.launch(module.kernel("good").unwrap(), Launch::grid(1).block(1), args![&word]).unwrap();
    assert_eq!(word.read(&gpu).unwrap(), [7]);
}
