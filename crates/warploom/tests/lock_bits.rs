//! Lock bits of shared memory: the instructions, the atomics built from them, and chips without them.

use warploom::{Arg, Chip, Device, Error, Launch, Report, SimModel, SimOptions, args};

fn device(chip: &str, model: SimModel, changes: &[&str]) -> Device {
    let changes: Vec<String> = changes.iter().map(|c| c.to_string()).collect();
    let options = SimOptions { model, ..SimOptions::default() };
    Device::sim_with(Chip::load(chip, &changes).expect("a built-in chip"), options)
}

const MODELS: [SimModel; 2] = [SimModel::Timing, SimModel::Functional];

/// A kernel `k(out)` with a pointer in `%d0`, `%tid.x` in `%r0` and 16 kB of shared memory `s`.
fn kernel(body: &str) -> String {
    format!(
        ".version 3.0
.target sm_20
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .pred %p<8>;
    .reg .b16 %h<4>;
    .reg .b32 %r<16>;
    .reg .f32 %f<8>;
    .reg .f64 %fd<8>;
    .reg .b64 %d<16>;
    .shared .align 8 .b8 s[16384];
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
{body}
    ret;
}}"
    )
}

fn run<'a>(
    gpu: &mut Device,
    text: &str,
    launch: Launch,
    args: impl AsRef<[Arg<'a>]>,
) -> Result<Report, Error> {
    let module = gpu.load_ptx_named("k.ptx", text).unwrap_or_else(|e| panic!("{e}"));
    gpu.launch(module.kernel("k")?, launch, args)
}

/// What a body stores in `out` on the gtx570. Both models must agree.
#[track_caller]
fn out(body: &str, launch: Launch, words: usize) -> (Vec<u32>, Report) {
    let text = kernel(body);
    let [timed, functional] = MODELS.map(|model| {
        let mut gpu = device("gtx570", model, &[]);
        let out = gpu.zeros::<u32>(words).unwrap();
        let report = run(&mut gpu, &text, launch.clone(), args![&out]).unwrap_or_else(|e| panic!("{e}"));
        (out.read(&gpu).unwrap(), report)
    });
    assert_eq!(timed.0, functional.0);
    timed
}

/// Stores `%r1` at index `%r0` of `out`.
const STORE: &str = "mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; st.global.u32 [%d1], %r1;";

#[test]
fn a_load_that_locks_tells_whether_it_took_the_bit() {
    // All lanes try the same word; lane 0 gets it. All see the value.
    let body = format!(
        "st.shared.u32 [s+64], 7;
         wl.ldslk.shared.b32 %r2|%p1, [s+64];
         selp.u32 %r1, 100, 0, %p1;
         add.u32 %r1, %r1, %r2;
         @%p1 wl.stsul.shared.b32 [s+64], %r2;
         {STORE}"
    );
    let (values, report) = out(&body, Launch::grid(1).block(32), 32);
    assert_eq!(values, (0..32).map(|lane| if lane == 0 { 107 } else { 7 }).collect::<Vec<_>>());
    assert_eq!(report.lock_warnings, []);
    let locks = report.locks.unwrap();
    assert_eq!((locks.acquired, locks.failed_intra, locks.failed_inter), (1, 31, 0));
}

#[test]
fn words_a_unit_apart_share_a_bit() {
    for (bits, got) in [(1024, [1, 0, 1]), (4096, [1, 1, 1])] {
        let body = format!(
            "wl.ldslk.shared.b32 _|%p1, [s];
             wl.ldslk.shared.b32 _|%p2, [s+4096];
             wl.ldslk.shared.b32 _|%p3, [s+4100];
             selp.u32 %r1, 1, 0, %p1; {STORE}
             selp.u32 %r1, 1, 0, %p2; add.u32 %r0, %r0, 1; {STORE}
             selp.u32 %r1, 1, 0, %p3; add.u32 %r0, %r0, 1; {STORE}
             wl.stsul.shared.b32 [s], 0; wl.stsul.shared.b32 [s+4], 0; wl.stsul.shared.b32 [s+4096], 0;
             wl.stsul.shared.b32 [s+4100], 0;"
        );
        for model in MODELS {
            let mut gpu = device("gtx570", model, &[&format!("lock.bits={bits}")]);
            let out = gpu.zeros::<u32>(3).unwrap();
            run(&mut gpu, &kernel(&body), Launch::grid(1).block(1), args![&out]).unwrap();
            assert_eq!(out.read(&gpu).unwrap(), got, "{bits} bits");
        }
    }
}

#[test]
fn wide_words_have_the_bit_of_their_lower_half() {
    let body = format!(
        "st.shared.u64 [s+8], 0x100000002;
         wl.ldslk.shared.b64 %d2|%p1, [s+8];
         wl.ldslk.shared.b32 _|%p2, [s+8];
         wl.ldslk.shared.b32 _|%p3, [s+12];
         add.u64 %d2, %d2, 5;
         wl.stsul.shared.u64 [s+8], %d2;
         wl.stsul.shared.u32 [s+12], 9;
         ld.shared.v2.u32 {{%r3, %r4}}, [s+8];
         selp.u32 %r1, 1, 0, %p1; selp.u32 %r5, 2, 0, %p2; selp.u32 %r6, 4, 0, %p3;
         add.u32 %r1, %r1, %r5; add.u32 %r1, %r1, %r6; {STORE}
         mov.u32 %r1, %r3; add.u32 %r0, %r0, 1; {STORE}
         mov.u32 %r1, %r4; add.u32 %r0, %r0, 1; {STORE}"
    );
    assert_eq!(out(&body, Launch::grid(1).block(1), 3).0, [1 + 4, 7, 9]);
}

#[test]
fn addresses_are_shared_or_generic_ones_of_shared_memory() {
    for address in [
        "mov.u32 %r2, s; add.u32 %r2, %r2, 64; wl.ldslk.b32 %r1|%p1, [%r2];",
        "mov.u32 %r2, s; wl.ldslk.shared.b32 %r1|%p1, [%r2+64];",
        "mov.u64 %d2, s; cvta.shared.u64 %d2, %d2; wl.ldslk.b32 %r1|%p1, [%d2+64];",
        "wl.ldslk.b32 %r1|%p1, [s+64];",
    ] {
        let body = format!("st.shared.u32 [s+64], 3; {address} wl.stsul.b32 [s+64], %r1; {STORE}");
        assert_eq!(out(&body, Launch::grid(1).block(1), 1).0, [3], "{address}");
    }
    for model in MODELS {
        let mut gpu = device("gtx570", model, &[]);
        let out = gpu.zeros::<u32>(1).unwrap();
        let text = kernel("wl.ldslk.b32 %r1|%p1, [%d0];");
        let error = run(&mut gpu, &text, Launch::grid(1).block(1), args![&out]).unwrap_err();
        let Error::Fault { message, .. } = error else { panic!("{error}") };
        assert!(message.contains("only shared memory has lock bits"), "{message}");
    }
}

#[test]
fn chips_without_lock_bits_refuse_the_kernel() {
    let text = kernel("wl.ldslk.shared.b32 %r1|%p1, [s];");
    let mut gpu = device("gtx1080ti", SimModel::Timing, &[]);
    let module = gpu.load_ptx_named("k.ptx", &text).unwrap();
    let error = module.kernel("k").unwrap_err().to_string();
    assert_eq!(
        error,
        "k.ptx:14: `wl.ldslk.shared.b32 %r1|%p1, [s]`: gtx1080ti has no lock bits; \
         run it on one that has (--chip gtx570), or give it some (--set lock.bits=1024)"
    );
    let mut gpu = device("gtx1080ti", SimModel::Timing, &["lock.bits=1024"]);
    let out = gpu.zeros::<u32>(1).unwrap();
    run(&mut gpu, &text, Launch::grid(1).block(1), args![&out]).unwrap();
    let error = Chip::load("gtx570", &["lock.bits=1000".to_string()]).unwrap_err().to_string();
    assert_eq!(
        error,
        "chip `gtx570`: `lock.bits` is 1000, but it must be 0 (no lock bits) or a power of two"
    );
}

#[test]
fn bits_left_taken_are_reported() {
    let body = "wl.ldslk.shared.b32 _|%p1, [s+8]; @!%p1 trap;";
    for model in MODELS {
        let mut gpu = device("gtx570", model, &[]);
        let out = gpu.zeros::<u32>(1).unwrap();
        let report = run(&mut gpu, &kernel(body), Launch::grid(2).block(1), args![&out]).unwrap();
        assert_eq!(report.lock_warnings.len(), 1);
        assert_eq!(report.lock_warnings[0].count, 2);
        insta::assert_snapshot!("left_taken", report.lock_warnings[0].message);
    }
}

#[test]
fn a_producer_that_comes_too_late_is_reported() {
    // Warp 1 waits for warp 0's token, but nothing stops it from taking the bit first.
    let body = "setp.ge.u32 %p2, %r0, 32;
         @%p2 bra CONSUMER;
         mov.u32 %r3, 0;
       DELAY: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 200; @%p3 bra DELAY;
         setp.ne.u32 %p3, %r0, 0;
         @%p3 ret;
         wl.ldslk.shared.b32 _, [s+8];
         wl.stsul.shared.b32 [s+8], 42;
         ret;
       CONSUMER:
         setp.ne.u32 %p3, %r0, 32;
         @%p3 ret;
       WAIT: wl.ldslk.shared.b32 %r1|%p1, [s+8];
         @!%p1 bra WAIT;
         mov.u32 %r3, 0;
       WORK: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 1000; @%p3 bra WORK;
         wl.stsul.shared.b32 [s+8], %r1;";
    let mut gpu = device("gtx570", SimModel::Timing, &[]);
    let out = gpu.zeros::<u32>(1).unwrap();
    let report = run(&mut gpu, &kernel(body), Launch::grid(1).block(64), args![&out]).unwrap();
    assert_eq!(report.lock_warnings.len(), 1, "{:?}", report.lock_warnings);
    insta::assert_snapshot!("too_late", report.lock_warnings[0].message);
}

/// Every atomic: name with type, register class of the result, and whether it has a `red` form.
const ATOMICS: &[(&str, &str, bool)] = &[
    ("add.u32", "%r", true),
    ("add.s32", "%r", true),
    ("min.u32", "%r", true),
    ("min.s32", "%r", true),
    ("max.u32", "%r", true),
    ("max.s32", "%r", true),
    ("inc.u32", "%r", true),
    ("dec.u32", "%r", true),
    ("and.b32", "%r", true),
    ("or.b32", "%r", true),
    ("xor.b32", "%r", true),
    ("exch.b32", "%r", false),
    ("cas.b32", "%r", false),
    ("add.f32", "%f", true),
    ("add.u64", "%d", true),
    ("min.u64", "%d", true),
    ("max.s64", "%d", true),
    ("and.b64", "%d", true),
    ("or.b64", "%d", true),
    ("xor.b64", "%d", true),
    ("exch.b64", "%d", false),
    ("cas.b64", "%d", false),
    ("add.f64", "%fd", true),
    ("cas.b16", "%h", false),
];

/// A kernel in which all threads do one atomic on four words and store results and words in `out`.
fn atomic_text(name: &str, register: &str, mode: &str) -> String {
    let bits = match register {
        "%h" => 16,
        "%r" | "%f" => 32,
        _ => 64,
    };
    let wide = bits == 64;
    let (a, b, c, d) =
        (format!("{register}2"), format!("{register}3"), format!("{register}1"), format!("{register}1"));
    // Small numbers of either sign, some of them equal.
    let values = match register {
        "%f" => format!("and.b32 %r4, %r0, 7; cvt.rn.f32.u32 {a}, %r4; cvt.rn.f32.s32 {b}, -3;"),
        "%fd" => format!("and.b32 %r4, %r0, 7; cvt.rn.f64.u32 {a}, %r4; cvt.rn.f64.s32 {b}, -3;"),
        "%h" => {
            format!("and.b32 %r4, %r0, 1; cvt.u16.u32 {a}, %r4; xor.b32 %r4, %r4, 1; cvt.u16.u32 {b}, %r4;")
        }
        _ if wide => {
            format!("and.b32 %r4, %r0, 7; sub.s32 %r4, %r4, 2; cvt.s64.s32 {a}, %r4; cvt.u64.u32 {b}, %r0;")
        }
        _ => format!("and.b32 %r4, %r0, 7; sub.s32 {a}, %r4, 2; add.u32 {b}, %r0, 1;"),
    };
    let extra = if name.starts_with("cas") { format!(", {b}") } else { String::new() };
    let access = match mode {
        "red" => format!("red.shared.{name} [%r6], {a}{extra};"),
        "guarded" => format!("@%p1 atom.shared.{name} {d}, [%r6], {a}{extra};"),
        // The result overwrites an operand.
        "aliased" => format!("mov.b{bits} {c}, {a}; atom.shared.{name} {d}, [%r6], {c}{extra};"),
        _ => format!("atom.shared.{name} {d}, [%r6], {a}{extra};"),
    };
    let clear = match register {
        "%f" => format!("mov.f32 {d}, 0f00000000;"),
        "%fd" => format!("mov.f64 {d}, 0d0000000000000000;"),
        _ => format!("mov.b{bits} {d}, 0;"),
    };
    let widen = if bits == 16 {
        format!("cvt.u32.u16 %r1, {d}; cvt.u64.u32 %d4, %r1;")
    } else if register == "%r" {
        format!("cvt.u64.u32 %d4, {d};")
    } else if register == "%f" {
        format!("mov.b32 %r1, {d}; cvt.u64.u32 %d4, %r1;")
    } else {
        format!("mov.b64 %d4, {d};")
    };
    kernel(&format!(
        "setp.lt.u32 %p1, %r0, 20;
         {values}
         {clear}
         and.b32 %r5, %r0, 3; shl.b32 %r5, %r5, 3;
         mov.u32 %r6, s; add.u32 %r6, %r6, %r5;
         st.shared.u64 [%r6], 5;
         {access}
         bar.sync 0;
         {widen}
         mul.wide.u32 %d5, %r0, 8; add.u64 %d5, %d0, %d5; st.global.u64 [%d5], %d4;
         setp.ge.u32 %p2, %r0, 4;
         @%p2 ret;
         shl.b32 %r5, %r0, 3; mov.u32 %r6, s; add.u32 %r6, %r6, %r5;
         ld.shared.u64 %d4, [%r6];
         st.global.u64 [%d5+512], %d4;"
    ))
}

/// With one warp, lanes are served in lane order on either kind of chip.
#[test]
fn atomics_do_the_same_on_chips_with_and_without_lock_bits() {
    for &(name, register, reducible) in ATOMICS {
        for mode in ["atom", "red", "guarded", "aliased"] {
            if mode == "red" && !reducible {
                continue;
            }
            let text = atomic_text(name, register, mode);
            let results =
                [("gtx570", "lock.bits=1024"), ("gtx570", "lock.bits=0"), ("gtx1080ti", "lock.bits=0")]
                    .into_iter()
                    .flat_map(|(chip, bits)| MODELS.map(|model| (chip, bits, model)))
                    .map(|(chip, bits, model)| {
                        let mut gpu = device(chip, model, &[bits]);
                        let out = gpu.zeros::<u64>(68).unwrap();
                        let launch = Launch::grid(1).block(32);
                        run(&mut gpu, &text, launch, args![&out])
                            .unwrap_or_else(|e| panic!("{name} {mode}: {e}"));
                        out.read(&gpu).unwrap()
                    })
                    .collect::<Vec<_>>();
            for other in &results[1..] {
                assert_eq!(&results[0], other, "{name} {mode}");
            }
        }
    }
}

/// A lock and its release compile to the paper's instruction sequences.
#[test]
fn atomic_locks_are_the_instructions_of_the_paper() {
    let text = kernel(
        "mov.u32 %r2, s;
       LOCK: atom.shared.cas.b32 %r1, [%r2], 0, 1;
         setp.ne.u32 %p1, %r1, 0;
         @%p1 bra LOCK;
         atom.shared.exch.b32 %r3, [%r2], 0;",
    );
    let mut gpu = device("gtx570", SimModel::Timing, &[]);
    let module = gpu.load_ptx_named("k.ptx", &text).unwrap();
    let kernel = module.kernel("k").unwrap();
    insta::assert_snapshot!("listing_3", kernel.program().unwrap().to_string());
}

/// Annotations in the text decide what counts as a lock, whatever the loops look like.
#[test]
fn annotated_locks_are_counted() {
    // One attempt each and no loop: only the annotation says that it is a lock.
    let body = |note: &str, release: &str| {
        kernel(&format!(
            "{note} atom.shared.cas.b32 %r1, [s], 0, 1;
             setp.eq.u32 %p1, %r1, 0;
             {release} @%p1 atom.shared.exch.b32 %r2, [s], 0;"
        ))
    };
    let (acquire, release) = (".pragma \"warploom.lock acquire\";", ".pragma \"warploom.lock release\";");
    for bits in [0, 1024] {
        let counts = [body("", ""), body(acquire, release)].map(|text| {
            let mut gpu = device("gtx570", SimModel::Timing, &[&format!("lock.bits={bits}")]);
            let out = gpu.zeros::<u32>(1).unwrap();
            let report = run(&mut gpu, &text, Launch::grid(1).block(32), args![&out]).unwrap();
            let locks = report.locks.unwrap();
            (locks.acquired, locks.failed_intra + locks.failed_inter)
        });
        assert_eq!(counts, [(0, 0), (1, 31)], "{bits} bits");
    }
    let mut gpu = device("gtx570", SimModel::Timing, &[]);
    let error =
        gpu.load_ptx_named("k.ptx", kernel(".pragma \"warploom.lock keep\"; ld.shared.u32 %r1, [s];"));
    assert!(error.unwrap_err().to_string().contains("this says nothing about a lock"));
}

mod orders {
    use proptest::prelude::*;
    use warploom::{Chip, Device, Launch, SimModel, SimOptions, Timing, args, policies};

    fn device(policy: Option<&str>) -> Device {
        let model = if policy.is_some() { SimModel::Timing } else { SimModel::Functional };
        let timing = Timing { policy: policy.map(String::from), ..Timing::default() };
        let options = SimOptions { model, timing, ..SimOptions::default() };
        Device::sim_with(Chip::load("gtx570", &["sm.count=1".to_string()]).unwrap(), options)
    }

    /// A delay of `%r9` iterations that depends on the thread and a seed.
    fn delay(label: &str, seed: u32) -> String {
        format!(
            "mul.lo.u32 %r9, %r0, 2654435761; add.u32 %r9, %r9, {seed}; shr.u32 %r9, %r9, 26;
             {label}: setp.eq.u32 %p5, %r9, 0; @%p5 bra {label}_END;
             sub.u32 %r9, %r9, 1; bra {label}; {label}_END:"
        )
    }

    fn all_policies() -> Vec<Option<&'static str>> {
        policies().into_iter().map(|(name, _)| Some(name)).chain([None]).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]

        /// The critical-section form excludes threads of all warps, whenever they arrive.
        #[test]
        fn sections_exclude_each_other(seed: u32, warps in 1u32..5) {
            let text = super::kernel(&format!(
                "st.shared.u32 [s], 0; st.shared.u32 [s+4], 0; bar.sync 0;
                 {}
                 AGAIN: wl.ldslk.shared.b32 _|%p1, [s];
                 @!%p1 bra NEXT;
                 ld.shared.u32 %r2, [s+4]; {} add.u32 %r2, %r2, 1; st.shared.u32 [s+4], %r2;
                 wl.stsul.shared.b32 [s], 0;
                 NEXT: @!%p1 bra AGAIN;
                 bar.sync 0;
                 ld.shared.u32 %r2, [s+4]; st.global.u32 [%d0], %r2;",
                delay("D0", seed), delay("D1", seed ^ 0x5555),
            ));
            for policy in all_policies() {
                let mut gpu = device(policy);
                let out = gpu.zeros::<u32>(1).unwrap();
                let module = gpu.load_ptx(&text).unwrap();
                let launch = Launch::grid(1).block(32 * warps);
                let report = gpu.launch(module.kernel("k").unwrap(), launch, args![&out]).unwrap();
                prop_assert_eq!(out.read(&gpu).unwrap(), vec![32 * warps], "{:?}", policy);
                prop_assert!(report.lock_warnings.is_empty());
            }
        }

        /// The paper's listing 13: each warp adds to the value of the warp before it, in order.
        #[test]
        fn consumers_come_after_producers(seed: u32, warps in 2u32..9) {
            let text = super::kernel(&format!(
                "mov.u32 %r7, s; shl.b32 %r8, %r0, 2; add.u32 %r7, %r7, %r8;
                 wl.ldslk.shared.b32 _, [%r7];
                 bar.sync 0;
                 mov.u32 %r1, 0;
                 setp.lt.u32 %p2, %r0, 32;
                 {}
                 @%p2 bra PUT;
                 WAIT: wl.ldslk.shared.b32 %r1|%p1, [%r7-128];
                 @!%p1 bra WAIT;
                 PUT: {}
                 add.u32 %r2, %r1, %r0;
                 wl.stsul.shared.b32 [%r7], %r2;
                 @!%p2 wl.stsul.shared.b32 [%r7-128], %r1;
                 mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; st.global.u32 [%d1], %r2;",
                delay("D0", seed), delay("D1", !seed),
            ));
            let threads = 32 * warps;
            let expected: Vec<u32> =
                (0..threads).map(|t| (0..=t / 32).map(|w| t % 32 + 32 * w).sum()).collect();
            for policy in all_policies() {
                let mut gpu = device(policy);
                let out = gpu.zeros::<u32>(threads as usize).unwrap();
                let module = gpu.load_ptx(&text).unwrap();
                let launch = Launch::grid(1).block(threads);
                let report = gpu.launch(module.kernel("k").unwrap(), launch, args![&out]).unwrap();
                prop_assert_eq!(out.read(&gpu).unwrap(), expected.clone(), "{:?}", policy);
                prop_assert!(report.lock_warnings.is_empty(), "{:?}", report.lock_warnings);
            }
        }
    }
}
