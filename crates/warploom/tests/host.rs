//! What a host does beside launches of buffers: constants, memory at its own addresses, cooperative launches, and a
//! model for each launch.

use warploom::{Arg, Chip, Device, Error, Launch, Model, SimModel, SimOptions, args};

const PTX: &str = r#"
.version 7.5
.target sm_75
.address_size 64
.const .align 4 .u32 scale = 3;
.const .align 4 .u32 table[4];
.global .align 4 .u32 shared_word = 11;

// out[i] = scale + table[i % 4] + shared_word
.visible .entry constants(.param .u64 out) {
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 3;
    mov.u64 %d2, table;
    mul.wide.u32 %d3, %r2, 4;
    add.u64 %d2, %d2, %d3;
    ld.const.u32 %r3, [%d2];
    ld.const.u32 %r4, [scale];
    ld.global.u32 %r5, [shared_word];
    add.u32 %r3, %r3, %r4;
    add.u32 %r3, %r3, %r5;
    mul.wide.u32 %d4, %r1, 4;
    add.u64 %d4, %d1, %d4;
    st.global.u32 [%d4], %r3;
    ret;
}

// Each CTA counts itself in the workspace and waits for all, and then writes what it sees there.
.visible .entry together(.param .u64 out) {
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .reg .pred %p<2>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %envreg1;
    mov.u32 %r2, %envreg2;
    mov.b64 %d2, {%r2, %r1};
    mov.u32 %r3, %nctaid.x;
    atom.global.add.u32 %r4, [%d2+4], 1;
LOOP:
    ld.volatile.global.u32 %r4, [%d2+4];
    setp.lt.u32 %p1, %r4, %r3;
    @%p1 bra LOOP;
    mov.u32 %r5, %ctaid.x;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d3, %d1, %d3;
    st.global.u32 [%d3], %r4;
    ret;
}

.visible .entry workspace(.param .u64 out) {
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %envreg1;
    mov.u32 %r2, %envreg2;
    or.b32 %r1, %r1, %r2;
    st.global.u32 [%d1], %r1;
    ret;
}
"#;

fn device(model: SimModel) -> Device {
    let chip = Chip::load("gtx1080ti", &["sm.count=4".to_string()]).unwrap();
    Device::sim_with(chip, SimOptions { model, ..SimOptions::default() })
}

#[test]
fn constants_can_be_written_between_launches() {
    for model in [SimModel::Timing, SimModel::Functional] {
        let mut gpu = device(model);
        let module = gpu.load_ptx(PTX).unwrap();
        // A kernel that was linked before sees what is written later.
        let kernel = module.kernel("constants").unwrap();
        let out = gpu.zeros::<u32>(8).unwrap();
        let run = |gpu: &mut Device| {
            gpu.launch(&kernel, Launch::grid(1).block(8), args![&out]).unwrap();
            out.read(gpu).unwrap()
        };
        assert_eq!(run(&mut gpu), [14; 8]);
        let (at, bytes) = module.constant("table").unwrap();
        assert_eq!(bytes, 16);
        module.write_constants(at + 4, &100u32.to_le_bytes()).unwrap();
        let (scale, _) = module.constant("scale").unwrap();
        module.write_constants(scale, &5u32.to_le_bytes()).unwrap();
        assert_eq!(run(&mut gpu), [16, 116, 16, 16, 16, 116, 16, 16]);
        assert_eq!(module.read_constants(at, 8).unwrap(), [0, 0, 0, 0, 100, 0, 0, 0]);
        assert!(module.constant("shared_word").is_none() && module.read_constants(at, 1000).is_none());
        let error = module.write_constants(at + 14, &[0; 4]).unwrap_err();
        assert!(error.to_string().contains("not inside the module's constants"), "{error}");
    }
}

#[test]
fn memory_and_variables_at_addresses_of_the_host() {
    let mut gpu = device(SimModel::Timing);
    let (own, word) = (0x18_0000_0000, 0x18_0001_0000);
    gpu.allocate_at(own, 32, "own").unwrap();
    let module = gpu.load_ptx_placed("placed", PTX, &[("shared_word", word)]).unwrap();
    assert_eq!(module.global("shared_word"), Some((word, 4)));
    assert_eq!(gpu.read_bytes(word, 4).unwrap(), 11u32.to_le_bytes());
    gpu.write_bytes(word, &20u32.to_le_bytes()).unwrap();
    let kernel = module.kernel("constants").unwrap();
    gpu.launch(&kernel, Launch::grid(1).block(8), [Arg::bytes(&u64::to_le_bytes(own))]).unwrap();
    assert_eq!(gpu.read_bytes(own + 28, 4).unwrap(), 23u32.to_le_bytes());
    assert!(gpu.allocate_at(own + 8, 8, "again").is_err());
    gpu.free(own).unwrap();
    assert!(gpu.read_bytes(own, 1).is_err());
}

#[test]
fn cooperative_launches() {
    for model in [SimModel::Timing, SimModel::Functional] {
        let mut gpu = device(model);
        let module = gpu.load_ptx(PTX).unwrap();
        let kernel = module.kernel("together").unwrap();
        let out = gpu.zeros::<u32>(16).unwrap();
        // Twice: the workspace is fresh each time.
        for _ in 0..2 {
            gpu.launch(&kernel, Launch::grid(16).block(1).cooperative(), args![&out]).unwrap();
            assert_eq!(out.read(&gpu).unwrap(), [16; 16]);
        }
        let resident = gpu.occupancy(&kernel, &Launch::grid(1).block(1)).unwrap().ctas_per_sm * gpu.sms();
        let launch = Launch::grid(resident + 1).block(1).cooperative();
        let error = gpu.launch(&kernel, launch, args![&out]).unwrap_err();
        assert!(matches!(error, Error::Unlaunchable { .. }), "{error}");
        assert!(error.to_string().contains(&format!("of which {resident} are resident at once")), "{error}");
        let plain = module.kernel("workspace").unwrap();
        gpu.launch(&plain, Launch::grid(1), args![&out]).unwrap();
        assert_eq!(out.read(&gpu).unwrap()[0], 0);
    }
}

#[test]
fn a_kernel_does_with_the_registers_that_let_one_cta_run() {
    // 32 warps of 32 lanes: two registers per thread, in units of 64.
    let chip = Chip::load("gtx480", &["sm.registers=2048".to_string()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions::default());
    let kernel = gpu.load_ptx(PTX).unwrap().kernel("constants").unwrap();
    let with = |threads: u32| gpu.occupancy(&kernel, &Launch::grid(1).block(threads)).unwrap();
    assert_eq!((with(1024).registers, with(1024).ctas_per_sm), (2, 1));
    assert!(with(32).registers > 2 && with(32).ctas_per_sm > 1);
}

#[test]
fn a_model_for_each_launch() {
    let model_of = |device_model, launch_model: Option<SimModel>| {
        let mut gpu = device(device_model);
        let kernel = gpu.load_ptx(PTX).unwrap().kernel("constants").unwrap();
        let out = gpu.zeros::<u32>(8).unwrap();
        let launch = Launch { model: launch_model, ..Launch::grid(1).block(8) };
        let report = gpu.launch(&kernel, launch, args![&out]).unwrap();
        assert_eq!(out.read(&gpu).unwrap(), [14; 8]);
        report.model
    };
    for device_model in [SimModel::Timing, SimModel::Functional] {
        assert_eq!(model_of(device_model, Some(SimModel::Functional)), Model::Functional);
        assert_eq!(model_of(device_model, Some(SimModel::Timing)), Model::Timing);
    }
    assert_eq!(model_of(SimModel::Functional, None), Model::Functional);
}
