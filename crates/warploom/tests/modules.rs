//! Modules as old and new compilers write them: declarations outside functions, and kernels that are not modelled
//! beside kernels that are.

use warploom::{Device, Error, Launch, args};

/// Runs kernel `k(out)` with one warp and returns what it wrote.
fn run(text: &str) -> Vec<u32> {
    let mut gpu = Device::sim("gtx480").unwrap();
    let module = gpu.load_ptx(text).unwrap_or_else(|error| panic!("{error}"));
    let out = gpu.zeros::<u32>(32).unwrap();
    gpu.launch(module.kernel("k").unwrap(), Launch::grid(1).block(32), args![&out]).unwrap();
    out.read(&gpu).unwrap()
}

/// The message of a kernel that cannot be chosen.
fn refused(text: &str, kernel: &str) -> String {
    let mut gpu = Device::sim("gtx480").unwrap();
    let module = gpu.load_ptx(text).unwrap_or_else(|error| panic!("{error}"));
    match module.kernel(kernel) {
        Err(Error::Load(error)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("`{kernel}` is not refused"),
    }
}

/// `out[tid] = tid + 7`, by way of a register and a local variable of module scope.
const OLD: &str = "
.version 1.4
.target sm_13
.reg .u32 %ra<4>;
.reg .u64 %rda<4>;
.local .align 4 .b8 scratch[8];
.func (.param .u32 result) twice (.param .u32 value)
.entry k (.param .u64 out)
{
    cvt.u32.u16 %ra1, %tid.x;
    add.u32 %ra2, %ra1, 7;
    st.local.u32 [scratch+4], %ra2;
    ld.local.u32 %ra3, [scratch+4];
    ld.param.u64 %rda1, [out];
    mul.wide.u32 %rda2, %ra1, 4;
    add.u64 %rda3, %rda1, %rda2;
    st.global.u32 [%rda3], %ra3;
    exit;
}
.entry other ()
{
    .reg .u32 %ra1;
    mov.u32 %ra1, 3;
    exit;
}
";

#[test]
fn registers_and_local_variables_outside_functions_belong_to_a_thread() {
    assert_eq!(run(OLD), (7..39).collect::<Vec<_>>());
}

/// Each thread takes memory of its own from the heap, keeps its number there and gives it back.
const HEAP: &str = "
.version 6.0
.target sm_20
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 bytes);
.extern .func free(.param .b64 pointer);
.entry k(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    .param .b64 bytes, pointer;
    mov.u32 %r1, %tid.x;
    mov.u64 %rd1, 100;
    st.param.b64 [bytes], %rd1;
    call (pointer), malloc, (bytes);
    ld.param.b64 %rd1, [pointer];
    st.u32 [%rd1+96], %r1;
    membar.gl;
    ld.volatile.u32 %r2, [%rd1+96];
    st.param.b64 [pointer], %rd1;
    call free, (pointer);
    ld.param.u64 %rd2, [out];
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r2;
    ret;
}
";

#[test]
fn kernels_have_a_heap() {
    assert_eq!(run(HEAP), (0..32).collect::<Vec<_>>());
    // More than the heap has, in one piece: none.
    let mut gpu = Device::sim("gtx480").unwrap();
    let module = gpu.load_ptx(&HEAP.replace("%rd1, 100", "%rd1, 0x1000000")).unwrap();
    let out = gpu.zeros::<u32>(32).unwrap();
    let launched = gpu.launch(module.kernel("k").unwrap(), Launch::grid(1).block(32), args![&out]);
    assert!(matches!(launched, Err(Error::Fault { .. })), "{launched:?}");
}

#[test]
fn a_function_does_not_share_registers_with_its_callers() {
    let text = "
.version 1.4
.target sm_13
.reg .u32 %ra<4>;
.func f () { mov.u32 %ra1, 1; ret; }
.entry k () { call f; exit; }
.entry free () { mov.u32 %ra1, 1; exit; }
";
    assert!(refused(text, "k").ends_with("`%ra1` is declared outside functions, which would share it"));
    let mut gpu = Device::sim("gtx480").unwrap();
    assert!(gpu.load_ptx(text).unwrap().kernel("free").is_ok());
}

/// Kernel `k` writes 5; the others need what is not there.
const MIXED: &str = "
.version 7.8
.target sm_80
.address_size 64
.extern .global .b32 elsewhere;
.extern .func other();
.func tensors() { .reg .b32 %r<9>; tcgen05.fence::before_thread_sync; ret; }
.visible .entry calls() { call tensors; ret; }
.visible .entry reads() { .reg .b32 %r0; ld.global.b32 %r0, [elsewhere]; ret; }
.visible .entry links() { call other; ret; }
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r0;
    .reg .b64 %rd0;
    mov.b32 %r0, 5;
    ld.param.u64 %rd0, [out];
    st.global.b32 [%rd0], %r0;
    ret;
}
";

#[test]
fn a_kernel_that_is_not_modelled_does_not_take_its_neighbours_along() {
    assert_eq!(run(MIXED)[0], 5);
    let message = |kernel| refused(MIXED, kernel);
    assert!(message("calls").contains("`tcgen05` is not modelled"), "{}", message("calls"));
    assert!(message("reads").contains("`elsewhere` is declared `.extern`"), "{}", message("reads"));
    assert!(message("links").contains("no body for `other`"), "{}", message("links"));
}

#[test]
fn a_wrong_instruction_refuses_the_module() {
    let text = MIXED.replace("mov.b32 %r0, 5;", "mov.b32 %r0, %rd0;");
    assert!(matches!(Device::sim("gtx480").unwrap().load_ptx(&text), Err(Error::Load(_))));
}

#[test]
fn a_module_without_a_kernel_that_runs_is_refused_when_it_loads() {
    let text = ".version 7.8\n.target sm_80\n.extern .func f();\n.entry k() { call f; ret; }";
    assert!(matches!(Device::sim("gtx480").unwrap().load_ptx(text), Err(Error::Load(_))));
}
