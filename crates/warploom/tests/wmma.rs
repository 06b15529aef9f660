//! `wmma` on the h200, on both models: every shape and type, in both orders, against plain sums.

use half::{bf16, f16};
use warploom::{Chip, Device, Launch, SimModel, SimOptions, args};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    shape: (usize, usize, usize),
    /// Of A and B, and of C and D.
    input: &'static str,
    sums: &'static str,
    /// Registers of A, B, and C.
    registers: [usize; 3],
}

const fn case(
    shape: (usize, usize, usize),
    input: &'static str,
    sums: &'static str,
    registers: [usize; 3],
) -> Case {
    Case { shape, input, sums, registers }
}

const SQUARE: (usize, usize, usize) = (16, 16, 16);
const WIDE: (usize, usize, usize) = (8, 32, 16);
const TALL: (usize, usize, usize) = (32, 8, 16);

const CASES: &[Case] = &[
    case(SQUARE, "f16", "f32", [8, 8, 8]),
    case(WIDE, "f16", "f32", [8, 8, 8]),
    case(TALL, "f16", "f16", [8, 8, 4]),
    case(SQUARE, "f16", "f16", [8, 8, 4]),
    case(SQUARE, "bf16", "f32", [4, 4, 8]),
    case(WIDE, "bf16", "f32", [2, 8, 8]),
    case(TALL, "bf16", "f32", [8, 2, 8]),
    case((16, 16, 8), "tf32", "f32", [4, 4, 8]),
    case(SQUARE, "s8", "s32", [2, 2, 8]),
    case(WIDE, "u8", "s32", [1, 4, 8]),
    case(TALL, "s8", "s32", [4, 1, 8]),
    case((8, 8, 4), "f64", "f64", [1, 1, 2]),
    case((8, 8, 32), "s4", "s32", [1, 1, 2]),
    case((8, 8, 32), "u4", "s32", [1, 1, 2]),
    case((8, 8, 128), "b1", "s32", [1, 1, 2]),
];

fn bits(ty: &str) -> usize {
    match ty {
        "f64" => 64,
        "f32" | "s32" | "tf32" => 32,
        "f16" | "bf16" => 16,
        "s8" | "u8" => 8,
        "s4" | "u4" => 4,
        _ => 1,
    }
}

/// A small number as an element.
fn encode(ty: &str, value: i64) -> u64 {
    match ty {
        "f64" => (value as f64).to_bits(),
        "f32" | "tf32" => (value as f32).to_bits().into(),
        "f16" => f16::from_f32(value as f32).to_bits().into(),
        "bf16" => bf16::from_f32(value as f32).to_bits().into(),
        _ => value as u64 & (u64::MAX >> (64 - bits(ty))),
    }
}

/// Elements in rows of `stride`, as bytes.
fn pack(
    ty: &str,
    rows: usize,
    columns: usize,
    stride: usize,
    value: impl Fn(usize, usize) -> i64,
) -> Vec<u8> {
    let width = bits(ty);
    let mut bytes = vec![0u8; rows * stride * width / 8];
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let word = encode(ty, value(row, column));
        let at = (row * stride + column) * width;
        for bit in 0..width {
            bytes[(at + bit) / 8] |= ((word >> bit & 1) as u8) << ((at + bit) % 8);
        }
    }
    bytes
}

fn list(prefix: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("{prefix}{at}")).collect();
    if count == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
}

fn text(case: Case, orders: [&str; 3], strides: [usize; 3]) -> String {
    let Case { shape: (m, n, k), input, sums, registers } = case;
    let shape = format!("m{m}n{n}k{k}");
    let sum_register = if sums == "f64" { "f64" } else { "b32" };
    let input_register = if input == "f64" { "f64" } else { "b32" };
    let [a, b, c] = registers;
    let (types, product) = match input {
        "f16" => (format!("{sums}.{sums}"), ""),
        // As nvcc writes it.
        "f64" => (format!("{sums}.f64.f64.{sums}.rn"), ""),
        "b1" => (format!("{sums}.b1.b1.{sums}"), ".xor.popc"),
        _ => (format!("{sums}.{input}.{input}.{sums}"), ""),
    };
    let (la, lb, lc, ld) = (list("%a", a), list("%b", b), list("%c", c), list("%e", c));
    let [oa, ob, oc] = orders;
    let [sa, sb, sc] = strides;
    let (in_type, lines) = (input, "");
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
            .reg .{input_register} %a<8>; .reg .{input_register} %b<8>;
            .reg .{sum_register} %c<8>; .reg .{sum_register} %e<8>;
            .reg .b64 %d<5>; .reg .b32 %s;
            ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c]; ld.param.u64 %d3, [d];
            mov.u32 %s, {sa};{lines}
            wmma.load.a.sync.aligned.{oa}.{shape}.global.{in_type} {la}, [%d0], %s;
            wmma.load.b.sync.aligned.{ob}.{shape}.global.{in_type} {lb}, [%d1], {sb};
            wmma.load.c.sync.aligned.{oc}.{shape}.{sums} {lc}, [%d2], {sc};
            wmma.mma{product}.sync.aligned.{oa}.{ob}.{shape}.{types} {ld}, {la}, {lb}, {lc};
            wmma.store.d.sync.aligned.{oc}.{shape}.global.{sums} [%d3], {ld}, {sc};
            ret;
        }}"
    )
}

fn value(which: usize, row: usize, column: usize, ty: &str) -> i64 {
    let value = ((row * 7 + column * 3 + which + row * column) % 5) as i64;
    match ty {
        "b1" => value & 1,
        "u8" | "u4" => value,
        _ => value - 2,
    }
}

fn check(case: Case, orders: [&str; 3], model: SimModel) {
    let Case { shape: (m, n, k), input, sums, .. } = case;
    // Rows of 16 more bytes than needed.
    let stride = |ty: &str, order: &str, rows: usize, columns: usize| {
        (if order == "row" { columns } else { rows }) + 128 / bits(ty)
    };
    let strides =
        [stride(input, orders[0], m, k), stride(input, orders[1], k, n), stride(sums, orders[2], m, n)];
    let bytes = |which: usize, ty: &str, rows: usize, columns: usize| {
        let stride = strides[which];
        match orders[which] {
            "row" => pack(ty, rows, columns, stride, |row, column| value(which, row, column, ty)),
            _ => pack(ty, columns, rows, stride, |column, row| value(which, row, column, ty)),
        }
    };
    let chip = Chip::load("h200", &["sm.count=1".into()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
    let kernel = gpu.load_ptx(&text(case, orders, strides)).unwrap().kernel("k").unwrap();
    let a = gpu.buffer(&bytes(0, input, m, k)).unwrap();
    let b = gpu.buffer(&bytes(1, input, k, n)).unwrap();
    let c_bytes = bytes(2, sums, m, n);
    let (c, d) = (gpu.buffer(&c_bytes).unwrap(), gpu.zeros::<u8>(c_bytes.len()).unwrap());
    gpu.launch(&kernel, Launch::grid(1).block(32), args![&a, &b, &c, &d]).unwrap();
    let sum = |row: usize, column: usize| {
        let product = |at: usize| {
            let (x, y) = (value(0, row, at, input), value(1, at, column, input));
            if input == "b1" { x ^ y } else { x * y }
        };
        (0..k).map(product).sum::<i64>() + value(2, row, column, sums)
    };
    let wanted = match orders[2] {
        "row" => pack(sums, m, n, strides[2], sum),
        _ => pack(sums, n, m, strides[2], |column, row| sum(row, column)),
    };
    assert_eq!(d.read(&gpu).unwrap(), wanted, "{case:?} {orders:?} {model:?}");
}

#[test]
fn every_shape_in_every_order() {
    for &case in CASES {
        let small = bits(case.input) < 8;
        let orders: &[[&str; 2]] = if small {
            &[["row", "col"]]
        } else {
            &[["row", "col"], ["row", "row"], ["col", "col"], ["col", "row"]]
        };
        for &[a, b] in orders {
            for c in ["row", "col"] {
                check(case, [a, b, c], SimModel::Functional);
            }
        }
        check(case, ["row", "col", "row"], SimModel::Timing);
    }
}

#[test]
fn results_may_replace_the_inputs() {
    let text = text(CASES[0], ["row", "col", "row"], [16, 16, 16]);
    let chip = Chip::load("h200", &["sm.count=1".into()]).unwrap();
    let run = |text: &str| {
        let mut gpu = Device::sim_with(chip.clone(), SimOptions::default());
        let kernel = gpu.load_ptx(text).unwrap().kernel("k").unwrap();
        let element = |which: usize| pack("f16", 16, 16, 16, |row, column| value(which, row, column, "f16"));
        let (a, b) = (gpu.buffer(&element(0)).unwrap(), gpu.buffer(&element(1)).unwrap());
        let (c, d) = (gpu.zeros::<f32>(256).unwrap(), gpu.zeros::<f32>(256).unwrap());
        gpu.launch(&kernel, Launch::grid(1).block(32), args![&a, &b, &c, &d]).unwrap();
        d.read(&gpu).unwrap()
    };
    // D in the registers of A: each tile of the product still sees all of A.
    let (d, a) = (list("%e", 8), list("%a", 8));
    assert_eq!(run(&text), run(&text.replace(&d, &a)));
}

#[test]
fn what_ptx_does_not_have_is_refused() {
    let mut gpu = Device::sim("h200").unwrap();
    let good = text(CASES[0], ["row", "col", "row"], [16, 16, 16]);
    let mut refused = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        gpu.load_ptx(&good.replacen(from, to, 1)).unwrap_err().to_string()
    };
    let shape = refused("load.a.sync.aligned.row.m16n16k16", "load.a.sync.aligned.row.m8n8k4");
    assert!(shape.contains("do not go together"), "{shape}");
    let order = refused(
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.s32",
    );
    assert!(order.contains("needs") || order.contains("do not go together"), "{order}");
    let count = refused(
        "load.b.sync.aligned.col.m16n16k16.global.f16 {%b0, ",
        "load.b.sync.aligned.col.m16n16k16.global.f16 {",
    );
    assert!(count.contains("takes 8 registers here, not 7"), "{count}");
}
