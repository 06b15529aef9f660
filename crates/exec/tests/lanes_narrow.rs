//! Conversions to narrow formats against a search over all their numbers.

mod lanes_support;

use half::{bf16, f16};
use lanes_support::*;
use warploom_isa::{CvtNarrow, NarrowFloat, Op, Round, Ty};

/// Every number of a format with its code, in ascending order: `(value, code)` for codes without a sign.
fn numbers(format: NarrowFloat) -> Vec<(f64, u64)> {
    let (exponent, fraction, last) = match format {
        NarrowFloat::F16 => (5, 10, 0x7bff),
        NarrowFloat::Bf16 => (8, 7, 0x7f7f),
        NarrowFloat::Tf32 => (8, 10, 0x3fbff),
        NarrowFloat::E4m3 => (4, 3, 0x7e),
        NarrowFloat::E5m2 => (5, 2, 0x7b),
        NarrowFloat::E2m3 => (2, 3, 0x1f),
        NarrowFloat::E3m2 => (3, 2, 0x1f),
        NarrowFloat::E2m1 => (2, 1, 7),
        NarrowFloat::Ue8m0 => return (0..=254).map(|code| (2f64.powi(code as i32 - 127), code)).collect(),
    };
    let bias = (1 << (exponent - 1)) - 1;
    (0..=last)
        .map(|code| {
            let (field, rest) =
                (code >> fraction, (code & ((1 << fraction) - 1)) as f64 / (1 << fraction) as f64);
            let value = match field as i32 {
                0 => rest * 2f64.powi(1 - bias),
                field => (1.0 + rest) * 2f64.powi(field - bias),
            };
            (value, code)
        })
        .collect()
}

fn nan(format: NarrowFloat) -> u64 {
    match format {
        NarrowFloat::E4m3 | NarrowFloat::E5m2 => 0x7f,
        NarrowFloat::E2m3 | NarrowFloat::E3m2 => 0x1f,
        NarrowFloat::E2m1 => 7,
        NarrowFloat::Ue8m0 => 0xff,
        NarrowFloat::Tf32 => 0x7fff_e000,
        NarrowFloat::F16 | NarrowFloat::Bf16 => 0x7fff,
    }
}

fn sign(format: NarrowFloat) -> u64 {
    match format {
        NarrowFloat::E2m3 | NarrowFloat::E3m2 => 0x20,
        NarrowFloat::E2m1 => 8,
        NarrowFloat::Ue8m0 => 0,
        NarrowFloat::Tf32 => 1 << 31,
        NarrowFloat::F16 | NarrowFloat::Bf16 => 0x8000,
        NarrowFloat::E4m3 | NarrowFloat::E5m2 => 0x80,
    }
}

/// The number next to `value`, found by looking at its neighbours in the list.
fn nearest(list: &[(f64, u64)], cvt: CvtNarrow, value: f64) -> u64 {
    if value.is_nan() {
        return nan(cvt.format);
    }
    let magnitude = value.abs();
    if cvt.relu && value.is_sign_negative() {
        return 0;
    }
    let shift = if cvt.format == NarrowFloat::Tf32 { 13 } else { 0 };
    let above = list.partition_point(|(number, _)| *number < magnitude);
    let (largest, code) = list[list.len() - 1];
    // One step above the largest number, which decides what rounds to it.
    let next = 2.0 * largest - list[list.len() - 2].0;
    let beyond = match cvt.format {
        _ if cvt.finite => code,
        NarrowFloat::Ue8m0 => 0xff,
        _ => code + 1,
    };
    let code = if magnitude.is_infinite() {
        beyond
    } else {
        let high = list.get(above).copied().unwrap_or((next, beyond));
        let low = if above == 0 { high } else { list[above - 1] };
        let (down, up) = (magnitude - low.0, high.0 - magnitude);
        let odd = |at: usize| at % 2 == 1;
        let take_high = match cvt.round {
            _ if up <= 0.0 && above < list.len() => true,
            Round::Rz | Round::Rm => false,
            Round::Rp => true,
            Round::Rna => down >= up,
            Round::Rn => down > up || down == up && odd(above.saturating_sub(1)),
        };
        if above == 0 || take_high { high.1 } else { low.1 }
    };
    let signed = if value.is_sign_negative() { sign(cvt.format) } else { 0 };
    code << shift | signed
}

fn cvt(format: NarrowFloat, other: Ty, round: Round) -> CvtNarrow {
    CvtNarrow { format, narrows: true, other, pair: true, round, finite: true, relu: false }
}

/// Each number, the middle between it and the next, their neighbours in single precision, and special values.
fn single_cases(list: &[(f64, u64)]) -> Vec<u64> {
    let mut cases = vec![];
    let next = 2.0 * list[list.len() - 1].0 - list[list.len() - 2].0;
    let values: Vec<f64> = list.iter().map(|(value, _)| *value).chain([next, 2.0 * next]).collect();
    // Of the longer lists a part, in an odd step; the last ones are always there.
    let step = if values.len() > 20_000 { 17 } else { 1 };
    let (last, pairs) = (values.len() - 3, values.windows(2).enumerate());
    for (_, pair) in pairs.filter(|(at, _)| at % step == 0 || *at >= last) {
        for value in [pair[0], (pair[0] + pair[1]) / 2.0] {
            let bits = (value as f32).to_bits();
            cases.extend(
                [bits.saturating_sub(1), bits, bits + 1].map(|bits| u64::from(bits.min(0x7fff_ffff))),
            );
        }
    }
    cases.extend([0, 1, 0x7f7f_ffff, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0000]);
    let mut random = Random(7);
    cases.extend((0..4000).map(|_| random.next() & 0x7fff_ffff));
    cases.iter().flat_map(|&bits| [bits, bits | 1 << 31]).collect()
}

#[test]
fn single_precision_to_every_format() {
    use NarrowFloat::*;
    let rn: &[Round] = &[Round::Rn];
    let formats: [(NarrowFloat, &[Round], u32); 9] = [
        (E4m3, rn, 8),
        (E5m2, rn, 8),
        (E2m3, rn, 8),
        (E3m2, rn, 8),
        (E2m1, rn, 4),
        (Ue8m0, &[Round::Rz, Round::Rp], 8),
        (F16, &[Round::Rn, Round::Rz], 16),
        (Bf16, &[Round::Rn, Round::Rz], 16),
        (Tf32, &[Round::Rna, Round::Rn, Round::Rz], 0),
    ];
    for (format, rounds, step) in formats {
        let list = numbers(format);
        let singles = single_cases(&list);
        let count = singles.len();
        let tuples: Vec<[u64; 4]> =
            (0..count).map(|at| [singles[at], singles[(at * 7 + 5) % count], 0, 0]).collect();
        for &round in rounds {
            for (finite, relu) in [(true, false), (true, true), (false, false)] {
                let may_overflow = matches!(format, Tf32 | Ue8m0);
                if !finite && !may_overflow || relu && (format == Ue8m0 || round == Round::Rna) {
                    continue;
                }
                let pair = format != Tf32;
                let cvt = CvtNarrow { finite, relu, pair, ..cvt(format, Ty::F32, round) };
                let second = if pair { Word } else { Absent };
                let single = |bits: u64| f64::from(f32::from_bits(bits as u32));
                // `.rna` adds half a unit to the bits of anything; what has no finite exponent is one unit less.
                let not_finite = |bits: u64| {
                    let sum = (bits + 0x1000) & 0xffff_e000;
                    if finite && sum & 0x7f80_0000 == 0x7f80_0000 { sum - 0x2000 } else { sum }
                };
                check1(Op::CvtNarrow(cvt), &[Word, second], Word, &tuples, |[x, y, ..]| match pair {
                    true => nearest(&list, cvt, single(x)) << step | nearest(&list, cvt, single(y)),
                    false if round == Round::Rna && !single(x).is_finite() => not_finite(x),
                    false => nearest(&list, cvt, single(x)),
                });
            }
        }
    }
}

#[test]
fn every_half_to_eight_bits() {
    for (format, other) in
        [(NarrowFloat::E4m3, Ty::F16x2), (NarrowFloat::E5m2, Ty::F16x2), (NarrowFloat::Ue8m0, Ty::BF16x2)]
    {
        let list = numbers(format);
        let value = |bits: u64| match other {
            Ty::F16x2 => f64::from(f16::from_bits(bits as u16)),
            _ => f64::from(bf16::from_bits(bits as u16)),
        };
        let rounds: &[Round] = if other == Ty::F16x2 { &[Round::Rn] } else { &[Round::Rz, Round::Rp] };
        let tuples: Vec<[u64; 4]> =
            (0..0x1_0000).map(|bits| [bits << 16 | (bits ^ 0x5a5a), 0, 0, 0]).collect();
        for &round in rounds {
            let cvt = cvt(format, other, round);
            check1(Op::CvtNarrow(cvt), &[Word], Word, &tuples, |[x, ..]| {
                nearest(&list, cvt, value(x >> 16)) << 8 | nearest(&list, cvt, value(x & 0xffff))
            });
        }
    }
}

#[test]
fn every_code_to_halves() {
    use NarrowFloat::*;
    for (format, other, bits) in [
        (E4m3, Ty::F16x2, 8),
        (E5m2, Ty::F16x2, 8),
        (E2m3, Ty::F16x2, 8),
        (E3m2, Ty::F16x2, 8),
        (E2m1, Ty::F16x2, 4),
        (Ue8m0, Ty::BF16x2, 8),
    ] {
        let list = numbers(format);
        // The bits above a 6-bit number do not count.
        let mask = if matches!(format, E2m3 | E3m2) { 0x3f } else { (1 << bits) - 1 };
        let tuples: Vec<[u64; 4]> =
            (0..1u64 << bits).map(|code| [code << bits | (code ^ 5), 0, 0, 0]).collect();
        for relu in [false, true] {
            if relu && format == Ue8m0 {
                continue;
            }
            let cvt = CvtNarrow { narrows: false, finite: false, relu, ..cvt(format, other, Round::Rn) };
            check1(Op::CvtNarrow(cvt), &[Word], Word, &tuples, |[x, ..]| {
                let one = |code: u64| {
                    let code = code & mask;
                    let negative = code & sign(format) != 0;
                    let code = code & !sign(format);
                    let value = match list.iter().find(|(_, known)| *known == code) {
                        Some((value, _)) => *value,
                        None if format == E5m2 && code == 0x7c => f64::INFINITY,
                        None => return 0x7fff,
                    };
                    let value = if negative { -value } else { value };
                    match other {
                        _ if relu && negative => 0,
                        Ty::F16x2 => u64::from(f16::from_f64(value).to_bits()),
                        _ => u64::from(bf16::from_f64(value).to_bits()),
                    }
                };
                one(x >> bits & 0xff) << 16 | one(x & ((1 << bits) - 1))
            });
        }
    }
}
