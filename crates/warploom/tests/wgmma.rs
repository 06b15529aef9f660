//! `wgmma` on the h200, on both models: types, orders and swizzles against plain sums, groups, and refusals.

use half::{bf16, f16};
use warploom::{Arg, Chip, Device, Error, Launch, Report, SimModel, SimOptions, Swizzle, TensorMap, args};

const MODELS: [SimModel; 2] = [SimModel::Functional, SimModel::Timing];

/// How a matrix lies in shared memory: bytes of its swizzle (0: none), and whether K is across.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    swizzle: usize,
    transposed: bool,
}

const PLAIN: Layout = Layout { swizzle: 128, transposed: false };

/// With the narrowest swizzle, so that B fits.
const WIDEST: Case =
    Case { layouts: [Layout { swizzle: 32, transposed: false }; 2], ..Case::new(256, ["f32", "f16", "f16"]) };

#[derive(Clone, Copy, Debug)]
struct Case {
    n: usize,
    a: &'static str,
    b: &'static str,
    d: &'static str,
    layouts: [Layout; 2],
    from_registers: bool,
}

impl Case {
    const fn new(n: usize, types: [&'static str; 3]) -> Case {
        let [d, a, b] = types;
        Case { n, a, b, d, layouts: [PLAIN; 2], from_registers: false }
    }

    fn k(self) -> usize {
        32 / bytes(self.a)
    }
}

fn bytes(ty: &str) -> usize {
    match ty {
        // Single bits are tested as words of them.
        "f32" | "s32" | "tf32" | "b1" => 4,
        "f16" | "bf16" => 2,
        _ => 1,
    }
}

fn encode(ty: &str, value: i64) -> u32 {
    match ty {
        "f32" | "tf32" => (value as f32).to_bits(),
        "f16" => f16::from_f32(value as f32).to_bits().into(),
        "bf16" => bf16::from_f32(value as f32).to_bits().into(),
        // -2 to 2: sign, exponent, no fraction.
        "e4m3" | "e5m2" => {
            let one = if ty == "e4m3" { 0x38 } else { 0x3c };
            let step = if ty == "e4m3" { 8 } else { 4 };
            let sign = if value < 0 { 0x80 } else { 0 };
            [0, sign | one, sign | (one + step)][value.unsigned_abs() as usize]
        }
        _ => value as u32,
    }
}

/// Where an element is, and the fields of the descriptor: leading and stride offset.
fn place(layout: Layout, element: usize, row: usize, k: usize) -> (usize, [usize; 2]) {
    let swizzled = |at: usize| at ^ ((at / 128 % (layout.swizzle / 16)) * 16);
    match (layout.swizzle, layout.transposed) {
        (0, false) => {
            let at = row / 8 * 256 + row % 8 * 16 + k * element / 16 * 128 + k * element % 16;
            (at, [128, 256])
        }
        (0, true) => (row / 8 * 128 + row % 8 * 2 + k / 8 * 1024 + k % 8 * 16, [1024, 128]),
        (span, false) => (swizzled(row / 8 * 8 * span + row % 8 * span + k * element), [16, 8 * span]),
        (span, true) => {
            let rows = span / 2;
            // All eight rows of K of a span of rows, then the next eight, then the next span.
            let at = row / rows * 16 * span + k / 8 * 8 * span + k % 8 * span + row % rows * 2;
            (swizzled(at), [16 * span, 8 * span])
        }
    }
}

fn descriptor(layout: Layout, element: usize) -> u64 {
    let (_, [leading, stride]) = place(layout, element, 0, 0);
    let mode =
        [(0, 0u64), (128, 1), (64, 2), (32, 3)].iter().find(|(span, _)| *span == layout.swizzle).unwrap().1;
    mode << 62 | (stride as u64 / 16) << 32 | (leading as u64 / 16) << 16
}

fn value(which: usize, row: usize, column: usize, ty: &str) -> i64 {
    let value = ((row * 7 + column * 3 + which + row * column / 3) % 5) as i64;
    if ty == "u8" { value } else { value - 2 }
}

/// A at byte 0 and B at byte 8,192 of shared memory.
fn image(case: Case) -> Vec<u8> {
    let mut image = vec![0u8; 24576];
    let mut put = |base: usize, layout: Layout, ty: &str, row: usize, k: usize, value: i64| {
        let (at, _) = place(layout, bytes(ty), row, k);
        let word = encode(ty, value).to_le_bytes();
        image[base + at..base + at + bytes(ty)].copy_from_slice(&word[..bytes(ty)]);
    };
    for k in 0..case.k() {
        for row in 0..64 {
            put(0, case.layouts[0], case.a, row, k, value(0, row, k, case.a));
        }
        for column in 0..case.n {
            put(8192, case.layouts[1], case.b, column, k, value(1, k, column, case.b));
        }
    }
    image
}

fn text(case: Case, extra: &str) -> String {
    let Case { n, a, b, d, layouts, from_registers } = case;
    let (k, bits) = if a == "b1" { (256, ".and.popc") } else { (case.k(), "") };
    let count = if d == "f16" { n / 4 } else { n / 2 };
    let names: Vec<String> = (0..count).map(|at| format!("%e{at}")).collect();
    let list = names.join(", ");
    let zero: String = names.iter().map(|name| format!("mov.b32 {name}, %r9;\n")).collect();
    let stores: String = (0..count).map(|at| format!("st.global.b32 [%d5+{}], %e{at};\n", 4 * at)).collect();
    let signs = if d == "s32" { "" } else { ", 1, 1" };
    let flag = |layout: Layout| u32::from(layout.transposed);
    let orders = match (bytes(a), from_registers) {
        (2, false) => format!(", {}, {}", flag(layouts[0]), flag(layouts[1])),
        (2, true) => format!(", {}", flag(layouts[1])),
        _ => String::new(),
    };
    // Lane l of a warp has rows l / 4 and l / 4 + 8 of A, and neighbouring columns from 4 bytes * (l % 4) on.
    let (left, registers) = if from_registers {
        let load = "
            and.b32 %r10, %r0, 31; shr.u32 %r11, %r10, 2; and.b32 %r12, %r10, 3; shr.u32 %r13, %r0, 5;
            shl.b32 %r13, %r13, 9; shl.b32 %r11, %r11, 5; shl.b32 %r12, %r12, 2;
            add.u32 %r11, %r11, %r12; add.u32 %r11, %r11, %r13; cvt.u64.u32 %d6, %r11; add.u64 %d6, %d7, %d6;
            ld.global.u32 %r14, [%d6]; ld.global.u32 %r15, [%d6+256];
            ld.global.u32 %r16, [%d6+16]; ld.global.u32 %r17, [%d6+272];";
        ("{%r14, %r15, %r16, %r17}", load)
    } else {
        ("%d2", "")
    };
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64
        .visible .entry k(.param .u64 in, .param .u64 out, .param .u64 da, .param .u64 db, .param .u64 rows) {{
            .reg .b32 %r<20>; .reg .b32 %e<128>; .reg .b64 %d<12>; .reg .pred %p<4>;
            .shared .align 1024 .b8 tile[24576];
            ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; ld.param.u64 %d2, [da]; ld.param.u64 %d3, [db];
            ld.param.u64 %d7, [rows];
            mov.u32 %r0, %tid.x; mov.u32 %r1, tile; shl.b32 %r2, %r0, 2;
          FILL:
            cvt.u64.u32 %d4, %r2; add.u64 %d4, %d0, %d4; ld.global.u32 %r3, [%d4];
            add.u32 %r4, %r1, %r2; st.shared.u32 [%r4], %r3;
            add.u32 %r2, %r2, 512; setp.lt.u32 %p0, %r2, 24576;
            @%p0 bra FILL;
            fence.proxy.async; bar.sync 0;
            shr.u32 %r5, %r1, 4; cvt.u64.u32 %d8, %r5; or.b64 %d2, %d2, %d8;
            add.u64 %d8, %d8, 512; or.b64 %d3, %d3, %d8;
            mov.u32 %r9, 0; {zero} {registers}
            setp.ne.u32 %p1, %r9, 0; setp.eq.u32 %p2, %r9, 0;
            wgmma.fence.sync.aligned;
            wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{bits} {{{list}}}, {left}, %d3, %p1{signs}{orders};
            wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{bits} {{{list}}}, {left}, %d3, %p2{signs}{orders};
            {extra}
            wgmma.commit_group.sync.aligned;
            wgmma.wait_group.sync.aligned 0;
            mul.wide.u32 %d5, %r0, {row_bytes}; add.u64 %d5, %d1, %d5;
            {stores}
            ret;
        }}",
        row_bytes = 4 * count
    )
}

fn run(case: Case, model: SimModel, extra: &str) -> Result<(Vec<u32>, Report), Error> {
    let chip = Chip::load("h200", &["sm.count=1".into()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
    let kernel = gpu.load_ptx(&text(case, extra))?.kernel("k")?;
    let count = if case.d == "f16" { case.n / 4 } else { case.n / 2 };
    // A again, as rows of 32 bytes.
    let mut rows = vec![0u8; 64 * 32];
    for (row, k) in (0..64).flat_map(|row| (0..case.k()).map(move |k| (row, k))) {
        let word = encode(case.a, value(0, row, k, case.a)).to_le_bytes();
        let (at, size) = (row * 32 + k * bytes(case.a), bytes(case.a));
        rows[at..at + size].copy_from_slice(&word[..size]);
    }
    let (x, rows) = (gpu.buffer(&image(case))?, gpu.buffer(&rows)?);
    let out = gpu.zeros::<u32>(128 * count)?;
    let [a, b] = [(0, case.a), (1, case.b)].map(|(at, ty)| descriptor(case.layouts[at], bytes(ty)));
    let report = gpu.launch(&kernel, Launch::grid(1).block(128), args![&x, &out, a, b, &rows])?;
    Ok((out.read(&gpu)?, report))
}

fn check(case: Case) {
    for model in MODELS {
        let (out, _) = run(case, model, "").unwrap();
        let per_thread = out.len() / 128;
        for (row, column) in (0..64).flat_map(|row| (0..case.n).map(move |column| (row, column))) {
            let product = |k: usize| match (value(0, row, k, case.a), value(1, k, column, case.b)) {
                (a, b) if case.a == "b1" => i64::from((a as u32 & b as u32).count_ones()),
                (a, b) => a * b,
            };
            let sum = (0..case.k()).map(product).sum::<i64>();
            let wanted = encode(case.d, 2 * sum);
            let thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
            let element = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
            let found = match case.d {
                "f16" => out[thread * per_thread + element / 2] >> (16 * (element % 2)) & 0xffff,
                _ => out[thread * per_thread + element],
            };
            assert_eq!(found, wanted, "{case:?} {model:?} {row} {column}");
        }
    }
}

#[test]
fn every_type() {
    for types in [
        ["f32", "f16", "f16"],
        ["f16", "f16", "f16"],
        ["f32", "bf16", "bf16"],
        ["f32", "tf32", "tf32"],
        ["f32", "e4m3", "e5m2"],
        ["f16", "e5m2", "e4m3"],
        ["s32", "s8", "u8"],
        ["s32", "u8", "s8"],
        ["s32", "b1", "b1"],
    ] {
        check(Case::new(16, types));
    }
    check(WIDEST);
}

#[test]
fn every_layout() {
    for swizzle in [0, 32, 64, 128] {
        for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
            let layouts = [first, second].map(|transposed| Layout { swizzle, transposed });
            check(Case { layouts, ..Case::new(64, ["f32", "f16", "f16"]) });
        }
        let layout = Layout { swizzle, transposed: false };
        check(Case { layouts: [layout; 2], ..Case::new(24, ["s32", "s8", "s8"]) });
    }
}

#[test]
fn a_in_registers() {
    for types in [["f32", "f16", "f16"], ["f32", "tf32", "tf32"], ["s32", "s8", "s8"], ["s32", "b1", "b1"]] {
        check(Case { from_registers: true, ..Case::new(32, types) });
    }
}

#[test]
fn products_follow_each_other_at_the_units_rate() {
    let case = WIDEST;
    let cycles = |products: usize| {
        let list: Vec<String> = (0..128).map(|at| format!("%e{at}")).collect();
        let one = format!(
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{}}}, %d2, %d3, %p2, 1, 1, 0, 0;\n",
            list.join(", ")
        );
        run(case, SimModel::Timing, &one.repeat(products)).unwrap().1.cycles
    };
    // 16 rows, 256 columns and 16 products each, 512 of them in a cycle: 128 cycles.
    let each = (cycles(24) - cycles(8)) as f64 / 16.0;
    assert!((126.0..=132.0).contains(&each), "{each}");
}

#[test]
fn misuse_is_told() {
    let mut gpu = Device::sim("h200").unwrap();
    let good = text(Case::new(16, ["f32", "f16", "f16"]), "");
    let mut refused = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        gpu.load_ptx(&good.replace(from, to)).unwrap_err().to_string()
    };
    assert!(refused("m64n16k16", "m64n20k16").contains("do not go together"));
    assert!(refused("m64n16k16", "m64n16k8").contains("do not go together"));
    assert!(refused(", %p1, 1, 1, 0, 0", ", %p1, 1, 2, 0, 0").contains("takes 1 or -1 here"));
    assert!(refused("wgmma.mma_async.sync", "wgmma.mma_async.sp.sync").contains("sparse"));
    assert!(refused("{%e0, ", "{").contains("takes 8 registers here, not 7"));
    // A stride that leads out of the shared memory of the CTA, which is told with the thread and the line.
    let case = WIDEST;
    let extra = "mov.b64 %d9, 0x00003fff00000000; or.b64 %d3, %d3, %d9;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%e0, %e1, %e2, %e3}, %d3, %d3, %p2, 1, 1, 0, 0;";
    for model in MODELS {
        let said = run(case, model, extra).unwrap_err().to_string();
        assert!(said.contains("descriptor leads there") && said.contains("m64n8k16"), "{said}");
    }
}

#[test]
fn matrix_instructions_take_whole_warps() {
    let head = ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tile[2048];
        .visible .entry k() {
        .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %d<2>; .reg .f32 %f<9>; mov.u64 %d1, 0; mov.u32 %r1, tile;";
    let wgmma =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d1, %d1, 1, 1, 1, 0, 0";
    let mma = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r3, %r4}, {%r5, %r6}, {%r7}, {%r5, %r6}";
    let load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r1]";
    let half = "mov.u32 %r2, %laneid; setp.ge.u32 %p1, %r2, 16; @%p1 bra END;";
    for (before, instruction, threads, told) in [
        ("", wgmma, 128, None),
        ("", wgmma, 96, Some("128 threads multiply together, here are only 96")),
        (half, wgmma, 128, Some("all lanes of a warp execute it together, here only 16 do")),
        ("", mma, 32, None),
        (half, mma, 32, Some("all lanes of a warp execute it together, here only 16 do")),
        ("", load, 32, None),
        (half, load, 32, Some("all lanes of a warp execute it together, here only 16 do")),
        ("", load, 48, Some("all lanes of a warp execute it together, here only 16 do")),
    ] {
        for model in MODELS {
            let mut gpu = Device::sim_with(
                Chip::load("h200", &[]).unwrap(),
                SimOptions { model, ..SimOptions::default() },
            );
            let module = gpu.load_ptx(&format!("{head} {before} {instruction}; END: ret; }}")).unwrap();
            let run = gpu.launch(module.kernel("k").unwrap(), Launch::grid(1).block(threads), args![]);
            match (run, told) {
                (Ok(_), None) => {}
                (Err(error), Some(told)) => {
                    let said = error.to_string();
                    assert!(said.contains(told) && said.contains("thread"), "{said}");
                }
                (run, _) => panic!("{instruction} with {threads} threads: {:?}", run.map(|_| ())),
            }
        }
    }
}

/// D (64 x 64) = A * B, K = 128 in two stages: one thread lets the copy engine bring tiles of 64 columns of A and of B
/// (as rows of its columns), and all multiply a stage in four steps of K.
#[test]
fn tiles_come_from_the_copy_engine() {
    let list = (0..32).map(|at| format!("%f{at}")).collect::<Vec<_>>().join(", ");
    let zero: String = (0..32).map(|at| format!("mov.f32 %f{at}, 0f00000000;\n")).collect();
    let stores: String = (0..32).map(|at| format!("st.global.f32 [%d5+{}], %f{at};\n", 4 * at)).collect();
    let steps: String = (0..4)
        .map(|step| {
            format!(
                "add.u64 %d8, %d6, {0}; add.u64 %d9, %d7, {0};
                 wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{list}}}, %d8, %d9, 1, 1, 1, 0, 0;\n",
                2 * step
            )
        })
        .collect();
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64
        .visible .entry k(.param .u64 out, .param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128]) {{
            .reg .b32 %r<20>; .reg .f32 %f<32>; .reg .b64 %d<12>; .reg .pred %p<4>;
            .shared .align 1024 .b8 tiles[32768];
            .shared .align 8 .b8 bars[16];
            ld.param.u64 %d1, [out]; mov.b64 %d2, ma; cvta.param.u64 %d2, %d2; mov.b64 %d3, mb; cvta.param.u64 %d3, %d3;
            mov.u32 %r0, %tid.x; mov.u32 %r1, tiles; mov.u32 %r2, bars;
            setp.ne.u32 %p0, %r0, 0;
            @%p0 bra READY;
            mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.init.shared::cta.b64 [%r2+8], 1;
            fence.proxy.async;
            mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, %r1; mov.u32 %r6, %r2;
          BRING:
            mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 16384;
            cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
                [%r5], [%d2, {{%r3, %r4}}], [%r6];
            add.u32 %r7, %r5, 8192;
            cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
                [%r7], [%d3, {{%r3, %r4}}], [%r6];
            add.u32 %r3, %r3, 64; add.u32 %r5, %r5, 16384; add.u32 %r6, %r6, 8;
            setp.lt.u32 %p1, %r3, 128;
            @%p1 bra BRING;
          READY:
            bar.sync 0;
            {zero}
            mov.u32 %r8, 0; mov.u32 %r5, %r1; mov.u32 %r6, %r2;
          STAGE:
            mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
            @!%p2 bra STAGE;
            shr.u32 %r9, %r5, 4; cvt.u64.u32 %d6, %r9; or.b64 %d6, %d6, 0x4000004000010000; add.u64 %d7, %d6, 512;
            wgmma.fence.sync.aligned;
            {steps}
            wgmma.commit_group.sync.aligned;
            add.u32 %r8, %r8, 1; add.u32 %r5, %r5, 16384; add.u32 %r6, %r6, 8;
            setp.lt.u32 %p3, %r8, 2;
            @%p3 bra STAGE;
            wgmma.wait_group.sync.aligned 0;
            mul.wide.u32 %d5, %r0, 128; add.u64 %d5, %d1, %d5;
            {stores}
            ret;
        }}"
    );
    let halves = |which: usize| -> Vec<u16> {
        let at =
            |row: usize, k: usize| if which == 0 { value(0, row, k, "f16") } else { value(1, k, row, "f16") };
        (0..64 * 128).map(|n| encode("f16", at(n / 128, n % 128)) as u16).collect()
    };
    for model in MODELS {
        let chip = Chip::load("h200", &["sm.count=1".into()]).unwrap();
        let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
        let kernel = gpu.load_ptx(&text).unwrap().kernel("k").unwrap();
        let (a, b) = (gpu.buffer(&halves(0)).unwrap(), gpu.buffer(&halves(1)).unwrap());
        let out = gpu.zeros::<f32>(128 * 32).unwrap();
        let map = |address: u64| {
            let map = TensorMap {
                address,
                element_type: 6,
                rank: 2,
                sizes: [128, 64, 0, 0, 0],
                strides: [256, 0, 0, 0],
                box_sizes: [64, 64, 0, 0, 0],
                steps: [1; 5],
                swizzle: Swizzle::Within(128),
                fills_nan: false,
            };
            Arg::bytes(&map.encode())
        };
        let arguments = args![&out, map(a.address()), map(b.address())];
        gpu.launch(&kernel, Launch::grid(1).block(128), arguments).unwrap();
        let out = out.read(&gpu).unwrap();
        for (row, column) in (0..64).flat_map(|row| (0..64).map(move |column| (row, column))) {
            let sum = (0..128).map(|k| value(0, row, k, "f16") * value(1, k, column, "f16")).sum::<i64>();
            let thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
            let element = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
            assert_eq!(out[thread * 32 + element], sum as f32, "{model:?} {row} {column}");
        }
    }
}
