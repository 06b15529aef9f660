//! Video instructions from their text to their results, against the manual's definitions in plain Rust.

use warploom::{Chip, Device, Launch, SimModel, SimOptions, args};

type Reference = Box<dyn Fn(u32, u32, u32) -> u32>;

/// An instruction on %a, %b and %c with the result %d, and what it computes.
struct Case {
    text: String,
    reference: Reference,
}

const PARTS: [&str; 7] = ["", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"];

fn ty(signed: bool) -> &'static str {
    if signed { "s32" } else { "u32" }
}

/// First bit and width of a part.
fn place(part: &str) -> (u32, u32) {
    match part {
        "" => (0, 32),
        ".h0" => (0, 16),
        ".h1" => (16, 16),
        byte => (8 * byte[2..].parse::<u32>().unwrap(), 8),
    }
}

fn number(bits: u64, width: u32, signed: bool) -> i128 {
    let value = i128::from(bits & ((1 << width) - 1));
    if signed && value >= 1 << (width - 1) { value - (1 << width) } else { value }
}

fn part(word: u32, part: &str, signed: bool) -> i128 {
    let (first, width) = place(part);
    number(u64::from(word) >> first, width, signed)
}

fn limit(value: i128, width: u32, signed: bool) -> i128 {
    match signed {
        true => value.min((1 << (width - 1)) - 1).max(-(1 << (width - 1))),
        false => value.min((1 << width) - 1).max(0),
    }
}

/// Replaces a part of `c`.
fn merge(c: u32, dst: &str, value: i128) -> u32 {
    let (first, width) = place(dst);
    let field = (u64::MAX >> (64 - width)) as u32;
    c & !(field << first) | (value as u32 & field) << first
}

fn second(op: &str, value: i128, c: u32, signed: bool) -> u32 {
    let (value, c) = (number(value as u64 & 0xffff_ffff, 32, signed), number(c.into(), 32, signed));
    let result = match op {
        ".add" => value + c,
        ".min" => value.min(c),
        ".max" => value.max(c),
        _ => value,
    };
    result as u32
}

fn basic(op: &str, x: i128, y: i128) -> i128 {
    match op {
        "vadd" => x + y,
        "vsub" => x - y,
        "vabsdiff" => {
            if x > y {
                x - y
            } else {
                y - x
            }
        }
        "vmin" => {
            if x < y {
                x
            } else {
                y
            }
        }
        "vmax" => {
            if x > y {
                x
            } else {
                y
            }
        }
        "vavrg" => {
            let sum = x + y;
            if sum >= 0 { (sum + 1).div_euclid(2) } else { sum.div_euclid(2) }
        }
        _ => unreachable!("{op}"),
    }
}

fn compare(cmp: &str, x: i128, y: i128) -> bool {
    match cmp {
        "eq" => x == y,
        "ne" => x != y,
        "lt" => x < y,
        "le" => x <= y,
        "gt" => x > y,
        _ => x >= y,
    }
}

/// All ways in which one number is written: whole, with a second operation, or into a part.
fn endings() -> Vec<(&'static str, &'static str)> {
    let seconds = [".add", ".min", ".max"].map(|op| ("", op));
    PARTS.map(|dst| (dst, "")).into_iter().chain(seconds).collect()
}

fn scalars(cases: &mut Vec<Case>) {
    for (n, (dst, then)) in endings().into_iter().enumerate() {
        let third = if dst.is_empty() && then.is_empty() { "" } else { ", %c" };
        for (d, a, b) in signs() {
            // Every part occurs as a source somewhere.
            let (pa, pb) = (PARTS[(n + 2 * usize::from(a)) % 7], PARTS[(n + 3 + usize::from(b)) % 7]);
            for op in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
                for sat in ["", ".sat"] {
                    let name = format!("{op}.{}.{}.{}{sat}{then}", ty(d), ty(a), ty(b));
                    let text = format!("{name} %d{dst}, %a{pa}, %b{pb}{third};");
                    let reference = Box::new(move |x: u32, y: u32, c: u32| {
                        let mut value = basic(op, part(x, pa, a), part(y, pb, b));
                        if !sat.is_empty() {
                            value = limit(value, place(dst).1, d);
                        }
                        if dst.is_empty() { second(then, value, c, d) } else { merge(c, dst, value) }
                    });
                    cases.push(Case { text, reference });
                }
            }
            for (op, mode) in [("vshl", "clamp"), ("vshl", "wrap"), ("vshr", "clamp"), ("vshr", "wrap")] {
                let sat = if b { ".sat" } else { "" };
                let text =
                    format!("{op}.{}.{}.u32{sat}.{mode}{then} %d{dst}, %a{pa}, %b{pb}{third};", ty(d), ty(a));
                let reference = Box::new(move |x: u32, y: u32, c: u32| {
                    let by = part(y, pb, false);
                    let by = if mode == "wrap" { by % 32 } else { by.min(32) };
                    let factor = 1i128 << by;
                    let x = part(x, pa, a);
                    let mut value = if op == "vshl" { x * factor } else { x.div_euclid(factor) };
                    if b {
                        value = limit(value, place(dst).1, d);
                    }
                    if dst.is_empty() { second(then, value, c, d) } else { merge(c, dst, value) }
                });
                cases.push(Case { text, reference });
            }
            let cmp = ["eq", "ne", "lt", "le", "gt", "ge"][(n + usize::from(d)) % 6];
            let text = format!("vset.{}.{}.{cmp}{then} %d{dst}, %a{pa}, %b{pb}{third};", ty(a), ty(b));
            let reference = Box::new(move |x: u32, y: u32, c: u32| {
                let value = i128::from(compare(cmp, part(x, pa, a), part(y, pb, b)));
                if dst.is_empty() { second(then, value, c, false) } else { merge(c, dst, value) }
            });
            cases.push(Case { text, reference });
        }
    }
}

fn signs() -> impl Iterator<Item = (bool, bool, bool)> {
    (0..8).map(|n| (n & 1 == 1, n & 2 == 2, n & 4 == 4))
}

fn products(cases: &mut Vec<Case>) {
    let negations = [("", "", ""), ("-", "", ""), ("", "-", ""), ("-", "-", ""), ("", "", "-")];
    for (n, (minus_a, minus_b, minus_c)) in negations.into_iter().enumerate() {
        for (d, a, b) in signs() {
            let (pa, pb) = (PARTS[(n + usize::from(d)) % 7], PARTS[(2 * n + usize::from(a)) % 7]);
            for (sat, shift) in
                [("", ""), (".sat", ""), (".sat", ".shr7"), ("", ".shr15"), (".sat", ".shr15")]
            {
                for po in ["", ".po"] {
                    let negated = !(minus_a.is_empty() && minus_b.is_empty() && minus_c.is_empty());
                    if !po.is_empty() && negated {
                        continue;
                    }
                    let text = format!(
                        "vmad.{}.{}.{}{po}{sat}{shift} %d, {minus_a}%a{pa}, {minus_b}%b{pb}, {minus_c}%c;",
                        ty(d),
                        ty(a),
                        ty(b)
                    );
                    let minus = minus_a != minus_b;
                    let reference = Box::new(move |x: u32, y: u32, c: u32| {
                        let product = part(x, pa, a) * part(y, pb, b);
                        let c = number(c.into(), 32, d);
                        let sum = match (minus, minus_c) {
                            (false, "") => product + c + i128::from(!po.is_empty()),
                            (true, _) => c - product,
                            (false, _) => product - c,
                        };
                        let shifted = sum.div_euclid(match shift {
                            ".shr7" => 1 << 7,
                            ".shr15" => 1 << 15,
                            _ => 1,
                        });
                        let is_signed = a || b || minus || !minus_c.is_empty();
                        (if sat.is_empty() { shifted } else { limit(shifted, 32, is_signed) }) as u32
                    });
                    cases.push(Case { text, reference });
                }
            }
        }
    }
}

/// Instructions on two halves or four bytes.
fn several(cases: &mut Vec<Case>, count: u32) {
    let width = 32 / count;
    let letter = if count == 2 { 'h' } else { 'b' };
    let selections: [(&str, &str); 3] = match count {
        2 => [("", ""), ("10", "32"), ("21", "03")],
        _ => [("", ""), ("3210", "7654"), ("7340", "1256")],
    };
    let masks: &[&str] = if count == 2 { &["", "0", "1", "10"] } else { &["", "0", "21", "310", "3210"] };
    let written = |digits: &str| if digits.is_empty() { String::new() } else { format!(".{letter}{digits}") };
    for (select_a, select_b) in selections {
        for &mask in masks {
            for (d, a, b) in signs() {
                let cmp = ["eq", "ne", "lt", "le", "gt", "ge"][(mask.len() + usize::from(d) * 3) % 6];
                for op in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"] {
                    for how in ["", ".sat", ".add"] {
                        if op == "vset" && how == ".sat" {
                            continue;
                        }
                        let types = if op == "vset" {
                            format!("{}.{}.{cmp}", ty(a), ty(b))
                        } else {
                            format!("{}.{}.{}", ty(d), ty(a), ty(b))
                        };
                        let text = format!(
                            "{op}{count}.{types}{how} %d{}, %a{}, %b{}, %c;",
                            written(mask),
                            written(select_a),
                            written(select_b)
                        );
                        let pick =
                            move |x: u32, y: u32, digits: &str, default: u32, at: u32, signed: bool| {
                                let from = match digits.len() {
                                    0 => default + at,
                                    len => u32::from(digits.as_bytes()[len - 1 - at as usize] - b'0'),
                                };
                                number((u64::from(x) | u64::from(y) << 32) >> (from * width), width, signed)
                            };
                        let reference = Box::new(move |x: u32, y: u32, c: u32| {
                            let mut result = c;
                            for at in 0..count {
                                if !mask.is_empty() && !mask.contains(&at.to_string()) {
                                    continue;
                                }
                                let p = pick(x, y, select_a, 0, at, a);
                                let q = pick(x, y, select_b, count, at, b);
                                let value = match op {
                                    "vset" => i128::from(compare(cmp, p, q)),
                                    op if how == ".sat" => limit(basic(op, p, q), width, d),
                                    op => basic(op, p, q),
                                };
                                if how == ".add" {
                                    result = result.wrapping_add(value as u32);
                                } else {
                                    let field = u32::MAX >> (32 - width) << (at * width);
                                    result = result & !field | (value as u32) << (at * width) & field;
                                }
                            }
                            result
                        });
                        cases.push(Case { text, reference });
                    }
                }
            }
        }
    }
}

/// Edge values and random words.
fn words(seed: &mut u64) -> u32 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let word = (*seed >> 33) as u32 ^ (*seed >> 11) as u32;
    match *seed >> 60 {
        0 => 0,
        1 => u32::MAX,
        2 => 0x8000_0000,
        3 => 0x7fff_ffff,
        4 => 0x8080_7f7f,
        5 => word & 0x3f,
        6 => 0x8000_7fff,
        _ => word,
    }
}

/// Runs instructions, each on the operands of 64 threads.
fn check(model: SimModel, cases: &[Case]) {
    let mut ptx = String::from(".version 8.0\n.target sm_90\n.address_size 64\n");
    ptx += ".visible .entry k(.param .u64 in, .param .u64 out) {\n";
    ptx += ".reg .b32 %a, %b, %c, %d, %t; .reg .b64 %p, %q, %o;\n";
    ptx += "ld.param.u64 %p, [in]; ld.param.u64 %q, [out]; mov.u32 %t, %tid.x;\n";
    ptx += "mul.wide.u32 %o, %t, 12; add.u64 %p, %p, %o; mul.wide.u32 %o, %t, 4; add.u64 %q, %q, %o;\n";
    ptx += "ld.global.u32 %a, [%p]; ld.global.u32 %b, [%p+4]; ld.global.u32 %c, [%p+8];\n";
    for case in cases {
        ptx += &format!("{}\nst.global.u32 [%q], %d; add.u64 %q, %q, 256;\n", case.text);
    }
    ptx += "ret;\n}\n";
    let mut seed = 7;
    let operands: Vec<u32> = (0..64 * 3).map(|_| words(&mut seed)).collect();
    let chip = Chip::load("h200", &["sm.count=1".into()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
    let kernel = gpu.load_ptx(&ptx).unwrap().kernel("k").unwrap();
    let (input, out) = (gpu.buffer(&operands).unwrap(), gpu.zeros::<u32>(64 * cases.len()).unwrap());
    gpu.launch(&kernel, Launch::grid(1).block(64), args![&input, &out]).unwrap();
    for (case, found) in cases.iter().zip(out.read(&gpu).unwrap().chunks(64)) {
        for (found, abc) in found.iter().zip(operands.chunks(3)) {
            let wanted = (case.reference)(abc[0], abc[1], abc[2]);
            assert_eq!(*found, wanted, "{} with {abc:x?}: {found:#x}, wanted {wanted:#x}", case.text);
        }
    }
}

#[test]
fn one_number() {
    let mut cases = Vec::new();
    scalars(&mut cases);
    assert!(cases.len() > 1000);
    check(SimModel::Functional, &cases);
    check(SimModel::Timing, &cases[..40]);
}

#[test]
fn products_with_signs() {
    let mut cases = Vec::new();
    products(&mut cases);
    check(SimModel::Functional, &cases);
}

#[test]
fn halves_and_bytes() {
    let mut cases = Vec::new();
    several(&mut cases, 2);
    several(&mut cases, 4);
    check(SimModel::Functional, &cases);
}

/// The message for an instruction that PTX does not have.
fn refusal(instruction: &str) -> String {
    let ptx = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k() {{ .reg .b32 %a, %b, %c, %d; {instruction} ret; }}\n"
    );
    let mut gpu = Device::sim("h200").unwrap();
    gpu.load_ptx(&ptx).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_ptx_does_not_have() {
    for (instruction, message) in [
        ("vadd.u32.u32.u32 %d, %a.b4, %b;", "no part `.b4`"),
        ("vadd.u32.u32.u32 %d.h0, %a, %b;", "takes 4 operands"),
        ("vadd.u32.u32.u32.add %d.h0, %a, %b, %c;", "either merges"),
        ("vadd.u32.u32.u32 %d, -%a, %b;", "takes a register"),
        ("vshr.u32.s32.s32.clamp %d, %a, %b;", "`.s32` is not a type"),
        ("vset.u32.u32.hs %d, %a, %b;", "needs `.eq`"),
        ("vavrg4.u32.u32.u32 %d, %a.b0000, %b.b7, %c;", "does not select the parts"),
        ("vadd2.u32.u32.u32 %d.h01, %a, %b, %c;", "is not a mask"),
        ("vadd2.u32.u32.u32.sat.add %d, %a, %b, %c;", "`.sat` does not go with `.add`"),
        ("vmad.u32.u32.u32.po %d, -%a, %b, %c;", "`.po` does not go"),
    ] {
        let found = refusal(instruction);
        assert!(found.contains(message), "{instruction}\n{found}");
    }
}
