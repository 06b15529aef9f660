use half::{bf16, f16};
use warploom_isa::{BitProduct, Op, Reg, VecId};

use super::*;
use crate::matrix::number::{to_f16, to_f32};

const ALL: LaneMask = LaneMask(0xffff_ffff);

fn mma(tall: bool, k: usize, [d, a, b, c]: [MatrixTy; 4]) -> Mma {
    let fours = (k / 4) as u8;
    Mma { tall, fours, a, b, c, d, a_columns: false, b_columns: true, saturate: false, bits: None }
}

/// Fills A and B with `element(which, row, column)`, multiplies, and returns D.
fn run(mma: Mma, element: impl Fn(usize, usize, usize) -> u64) -> Vec<Vec<u64>> {
    let fragments = Fragment::of(mma);
    let wide = mma.a == MatrixTy::F64;
    let mut words = vec![[0u32; 32]; 64];
    let mut lists: Vec<Vec<Operand>> = Vec::new();
    let mut next = 0;
    for (which, fragment) in fragments.iter().enumerate() {
        let count = mma.registers()[which];
        let list = (0..count).map(|at| Operand::Reg(Reg((next + at * (1 + usize::from(wide))) as u32)));
        lists.push(list.collect());
        for lane in (0..32).filter(|_| which < 3) {
            for at in 0..count {
                let mut word = 0;
                for e in 0..fragment.per_register {
                    for group in 0..mma.groups() {
                        if let Some(Place { row, column }) = fragment.place(lane, at, e, group) {
                            word |= fragment.insert(element(which, row, column), e);
                        }
                    }
                }
                let register = next + at * (1 + usize::from(wide));
                words[register][lane] = word as u32;
                if wide {
                    words[register + 1][lane] = (word >> 32) as u32;
                }
            }
        }
        next += count * (1 + usize::from(wide));
    }
    let mut preds = [0; 1];
    let mut registers = Registers { words: &mut words, preds: &mut preds, frame: 0 };
    let [a, b, c] = [0, 1, 2].map(|at| Operand::Vec(VecId(at)));
    let inst = Inst::new(Op::Mma(mma), Dst::Vec(VecId(3)), &[a, b, c]);
    multiply(mma, &inst, &mut registers, &lists, ALL).unwrap();
    let mut found = vec![vec![u64::MAX; 8]; mma.rows()];
    let mut sums = [0; MOST];
    gather(&fragments[3], (0, 0), &registers, &lists[3], &mut sums);
    for (row, values) in found.iter_mut().enumerate() {
        values.iter_mut().enumerate().for_each(|(column, value)| *value = sums[row * 8 + column]);
    }
    found
}

/// Small integers, which every type holds and whose sums are exact.
fn small(which: usize, row: usize, column: usize) -> i64 {
    ((row * 7 + column * 3 + which) % 5) as i64 - 2
}

fn expected(rows: usize, k: usize, value: impl Fn(usize, usize, usize) -> i64) -> Vec<Vec<i64>> {
    let at = |row: usize, column: usize| {
        (0..k).map(|i| value(0, row, i) * value(1, i, column)).sum::<i64>() + value(2, row, column)
    };
    (0..rows).map(|row| (0..8).map(|column| at(row, column)).collect()).collect()
}

fn bits(ty: MatrixTy, value: i64) -> u64 {
    let float = value as f32;
    match ty {
        MatrixTy::F16 => f16::from_f32(float).to_bits().into(),
        MatrixTy::Bf16 => bf16::from_f32(float).to_bits().into(),
        MatrixTy::Tf32 | MatrixTy::F32 => float.to_bits().into(),
        MatrixTy::F64 => (value as f64).to_bits(),
        MatrixTy::S32 => u64::from(value as u32),
        MatrixTy::E4m3 | MatrixTy::E5m2 => {
            let (bias, fraction) = if ty == MatrixTy::E4m3 { (7, 3) } else { (15, 2) };
            let sign = u64::from(value < 0) << 7;
            match value.unsigned_abs() {
                0 => 0,
                1 => sign | bias << fraction,
                _ => sign | (bias + 1) << fraction,
            }
        }
        ty => value as u64 & ((1 << ty.bits()) - 1),
    }
}

#[test]
fn every_shape_multiplies_as_a_plain_loop_does() {
    use MatrixTy::*;
    let floats = [
        (true, 8, [F32, F16, F16, F32]),
        (true, 16, [F32, F16, F16, F32]),
        (true, 16, [F16, F16, F16, F16]),
        (true, 8, [F32, Bf16, Bf16, F32]),
        (true, 16, [F32, Bf16, Bf16, F32]),
        (true, 4, [F32, Tf32, Tf32, F32]),
        (true, 8, [F32, Tf32, Tf32, F32]),
        (true, 32, [F32, E4m3, E5m2, F32]),
        (true, 32, [F32, E5m2, E4m3, F32]),
        (false, 4, [F64, F64, F64, F64]),
        (true, 4, [F64, F64, F64, F64]),
        (true, 8, [F64, F64, F64, F64]),
        (true, 16, [F64, F64, F64, F64]),
        (false, 16, [S32, S8, S8, S32]),
        (true, 16, [S32, S8, S8, S32]),
        (true, 32, [S32, S8, S8, S32]),
        (false, 32, [S32, S4, S4, S32]),
        (true, 32, [S32, S4, S4, S32]),
        (true, 64, [S32, S4, S4, S32]),
    ];
    for (tall, k, types) in floats {
        let mma = mma(tall, k, types);
        let [_, a, b, c] = types;
        let found = run(mma, |which, row, column| bits([a, b, c][which], small(which, row, column)));
        let wanted = expected(mma.rows(), k, small);
        for (row, values) in wanted.iter().enumerate() {
            for (column, &value) in values.iter().enumerate() {
                assert_eq!(found[row][column], bits(types[0], value), "{types:?} k{k} {row} {column}");
            }
        }
    }
}

#[test]
fn unsigned_elements_and_saturation() {
    use MatrixTy::*;
    let mma = Mma { saturate: true, ..mma(true, 32, [S32, U8, S8, S32]) };
    let found = run(mma, |which, row, column| match which {
        0 => 255,
        1 => 127,
        _ => {
            if (row, column) == (0, 0) {
                i32::MAX as u32 as u64
            } else {
                1
            }
        }
    });
    assert_eq!((found[0][0], found[3][4]), (i32::MAX as u64, 32 * 255 * 127 + 1));
}

#[test]
fn bits_are_counted() {
    use MatrixTy::*;
    for (product, wanted) in [(BitProduct::And, 8 * 8 + 5), (BitProduct::Xor, 8 * 16 + 5)] {
        let mma = Mma { bits: Some(product), ..mma(true, 256, [S32, B1, B1, S32]) };
        let found = run(mma, |which, _, _| [0x0000_ffff, 0x00ff_ff00, 5][which]);
        // 8 words of 16 bits each, of which 8 are common.
        assert!(found.iter().flatten().all(|&sum| sum == wanted), "{product:?} {:?}", found[0]);
    }
}

#[test]
fn four_groups_of_lanes_compute_m8n8k4() {
    use MatrixTy::*;
    for (a_columns, b_columns) in [(false, false), (false, true), (true, false), (true, true)] {
        for (c, d) in [(F32, F32), (F16, F16)] {
            let mma = Mma { a_columns, b_columns, ..mma(false, 4, [d, F16, F16, c]) };
            assert!(mma.is_quad_pairs());
            let found = run(mma, |which, row, column| bits([F16, F16, c][which], small(which, row, column)));
            let wanted = expected(8, 4, small);
            for (row, values) in wanted.iter().enumerate() {
                let values: Vec<u64> = values.iter().map(|&value| bits(d, value)).collect();
                assert_eq!(found[row], values, "{a_columns} {b_columns} {d:?}");
            }
        }
    }
}

#[test]
fn sums_are_cut_off_below_the_largest_term() {
    use MatrixTy::*;
    let half = |value: f32| u64::from(f16::from_f32(value).to_bits());
    // 1 + 2^-24 + 2^-24: each small term alone is below single precision, but not below what the adder keeps.
    let mma = mma(true, 16, [F32, F16, F16, F32]);
    let found = run(mma, |which, row, column| match (which, row, column) {
        (0, 0, 0 | 1) => half(2f32.powi(-12)),
        (1, 0 | 1, 0) => half(2f32.powi(-12)),
        (2, 0, 0) => 1f32.to_bits().into(),
        _ => 0,
    });
    assert_eq!(f32::from_bits(found[0][0] as u32), 1.0 + 2f32.powi(-23));
    let infinite = run(mma, |which, row, column| match (which, row, column) {
        (0, 0, 0) => half(f32::INFINITY),
        (1, 0, _) => half(1.0),
        _ => 0,
    });
    assert_eq!((infinite[0][0], infinite[1][0]), (0x7f80_0000, 0));
    let undefined = run(mma, |which, row, _| if (which, row) == (1, 0) { half(f32::INFINITY) } else { 0 });
    assert_eq!(undefined[0][0], 0x7fff_ffff, "0 times infinity");
}

#[test]
fn rounding() {
    for (sum, unit, wanted) in [
        (3, -1, 1.5f32),
        (-3, -1, -1.5),
        ((1 << 24) + 1, 0, 16_777_216.0),
        (1, -149, f32::from_bits(1)),
        (5, -151, f32::from_bits(1)),
    ] {
        assert_eq!(f32::from_bits(to_f32(sum, unit, 23)), wanted);
    }
    assert_eq!(to_f32(1, 128, 23), 0x7f80_0000);
    assert_eq!(f16::from_bits(to_f16(2049, 0)), f16::from_f32(2048.0), "to even");
}

#[test]
fn transposed() {
    let matrix: Vec<u32> = (0..32).map(|lane| (2 * lane) | (2 * lane + 1) << 16).collect();
    let moved = transpose(&matrix);
    // Element (r, c) is 8 r + c.
    assert_eq!(moved[0], 8 << 16);
    assert_eq!(moved[5], (2 * 8 + 1) | (3 * 8 + 1) << 16);
    assert_eq!(transpose(&moved).as_slice(), matrix);
}
