//! Host time of one lane operation on a whole warp: `cargo bench -p warploom-exec --bench lanes`.

use std::hint::black_box;
use std::time::Instant;

use warploom_exec::kit::lane_mask::LaneMask;
use warploom_exec::lanes::{Registers, execute};
use warploom_isa::{
    Approx, Clamp, Cmp, Combine, Cvt, Dst, FloatMode, Inst, Logic, MinMax, Op, Operand, Part, Pred, PrmtMode,
    Reg, Round, Ty,
};

fn reg(r: u32) -> Operand {
    Operand::Reg(Reg(r))
}

/// Nanoseconds per instruction, the best of several rounds.
fn time<const N: usize>(inst: &Inst, mask: u64) -> f64 {
    let mut words = vec![[0u32; N]; 16];
    for (r, word) in words.iter_mut().enumerate() {
        for (lane, x) in word.iter_mut().enumerate() {
            // Ordinary numbers when read as f32, as f64 (two registers) or as integers.
            *x = 0x3f80_0000 + (r as u32) * 0x1_0001 + (lane as u32) * 0x101;
        }
    }
    let mut preds = vec![0x5555_5555_5555_5555u64; 4];
    let mut regs = Registers::<N> { words: &mut words, preds: &mut preds, frame: 0 };
    let mut best = f64::MAX;
    for _ in 0..7 {
        let rounds = 20_000;
        let start = Instant::now();
        for _ in 0..rounds {
            execute::<N>(black_box(inst), &mut regs, &[], black_box(LaneMask(mask)));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(rounds));
    }
    best
}

fn main() {
    let rn = FloatMode::RN;
    let ftz = FloatMode { ftz: true, ..rn };
    let rz = FloatMode { round: Round::Rz, ..rn };
    let cvt =
        |to, from, round| Op::Cvt(Cvt { to, from, round, integral: false, ftz: false, clamp: Clamp::None });
    let setp = |ty| Op::Setp { cmp: Cmp::Lt, combine: Combine::None, ty, ftz: false };
    let (abc, p) = ([reg(2), reg(4), reg(6)], Dst::Pred(Pred(1)));
    let ab_imm = [reg(2), Operand::Imm(5)];
    let permute = [reg(2), reg(4), Operand::Imm(0x3254)];
    let select = [reg(2), reg(4), Operand::Pred(Pred(0))];
    let word = Dst::Reg(Reg(8));
    let cases: Vec<(&str, Op, Dst, &[Operand])> = vec![
        ("(dispatch)", Op::Nop, Dst::None, &[]),
        ("(operands)", Op::Nop, Dst::None, &abc),
        ("mov.pred", Op::MovPred, p, &select[2..]),
        ("mov.b32", Op::Mov(Ty::B32), word, &abc[..1]),
        ("mov.b32 imm", Op::Mov(Ty::B32), word, &ab_imm[1..]),
        ("mov.b64", Op::Mov(Ty::B64), word, &abc[..1]),
        ("add.s32", Op::IAdd(Ty::S32, Clamp::None), word, &abc[..2]),
        ("add.s32 imm", Op::IAdd(Ty::S32, Clamp::None), word, &ab_imm),
        ("add.s64", Op::IAdd(Ty::S64, Clamp::None), word, &abc[..2]),
        ("add.s64 imm", Op::IAdd(Ty::S64, Clamp::None), word, &ab_imm),
        ("add.cc.u32", Op::AddCarry(Ty::U32), word, &abc[..2]),
        ("mul.lo.s32", Op::IMul(Ty::S32, Part::Lo), word, &abc[..2]),
        ("mul.hi.u32", Op::IMul(Ty::U32, Part::Hi), word, &abc[..2]),
        ("mul.wide.s32", Op::IMul(Ty::S32, Part::Wide), word, &abc[..2]),
        ("mul.lo.s64", Op::IMul(Ty::S64, Part::Lo), word, &abc[..2]),
        ("mad.lo.s32", Op::IMad(Ty::S32, Part::Lo, Clamp::None), word, &abc),
        ("mad.wide.u32", Op::IMad(Ty::U32, Part::Wide, Clamp::None), word, &abc),
        ("mad.wide.s32", Op::IMad(Ty::S32, Part::Wide, Clamp::None), word, &abc),
        ("min.s32", Op::IMin(Ty::S32, Clamp::None), word, &abc[..2]),
        ("div.u32", Op::IDiv(Ty::U32), word, &abc[..2]),
        ("and.b32", Op::Logic(Logic::And, Ty::B32), word, &abc[..2]),
        ("shl.b32 imm", Op::Shl(Ty::B32), word, &ab_imm),
        ("shl.b64 imm", Op::Shl(Ty::B64), word, &ab_imm),
        ("shr.s32", Op::Shr(Ty::S32), word, &abc[..2]),
        ("shf.l.wrap", Op::Shf { left: true, wrap: true }, word, &abc),
        ("lop3", Op::Lop3(0x96), word, &abc),
        ("bfe.u32", Op::Bfe(Ty::U32), word, &abc),
        ("popc.b32", Op::Popc(Ty::B32), word, &abc[..1]),
        ("prmt imm", Op::Prmt(PrmtMode::Index), word, &permute),
        ("setp.lt.s32", setp(Ty::S32), p, &abc[..2]),
        ("setp.lt.u32 imm", setp(Ty::U32), p, &ab_imm),
        ("setp.lt.s64", setp(Ty::S64), p, &abc[..2]),
        ("setp.lt.f32", setp(Ty::F32), p, &abc[..2]),
        ("setp.lt.f64", setp(Ty::F64), p, &abc[..2]),
        ("selp.b32", Op::Selp(Ty::B32), word, &select),
        ("selp.b64", Op::Selp(Ty::B64), word, &select),
        ("add.f32", Op::FAdd(Ty::F32, rn), word, &abc[..2]),
        ("add.rz.f32", Op::FAdd(Ty::F32, rz), word, &abc[..2]),
        ("mul.f32", Op::FMul(Ty::F32, rn), word, &abc[..2]),
        ("fma.f32", Op::FFma(Ty::F32, rn), word, &abc),
        ("fma.ftz.f32", Op::FFma(Ty::F32, ftz), word, &abc),
        ("div.rn.f32", Op::FDiv(Ty::F32, rn), word, &abc[..2]),
        (
            "max.f32",
            Op::FMax(Ty::F32, MinMax { nan: false, ftz: false, xorsign_abs: false }),
            word,
            &abc[..2],
        ),
        ("add.f64", Op::FAdd(Ty::F64, rn), word, &abc[..2]),
        ("fma.f64", Op::FFma(Ty::F64, rn), word, &abc),
        ("fma.rz.f64", Op::FFma(Ty::F64, rz), word, &abc),
        ("fma.f16x2", Op::FFma(Ty::F16x2, rn), word, &abc),
        ("sin.approx.f32", Op::FApprox(Approx::Sin, Ty::F32, false), word, &abc[..1]),
        ("ex2.approx.f32", Op::FApprox(Approx::Ex2, Ty::F32, false), word, &abc[..1]),
        ("rcp.approx.f32", Op::FApprox(Approx::Rcp, Ty::F32, true), word, &abc[..1]),
        ("cvt.u64.u32", cvt(Ty::U64, Ty::U32, Round::Rz), word, &abc[..1]),
        ("cvt.s64.s32", cvt(Ty::S64, Ty::S32, Round::Rz), word, &abc[..1]),
        ("cvt.u32.u64", cvt(Ty::U32, Ty::U64, Round::Rz), word, &abc[..1]),
        ("cvt.u16.u32", cvt(Ty::U16, Ty::U32, Round::Rz), word, &abc[..1]),
        ("cvt.rn.f32.s32", cvt(Ty::F32, Ty::S32, Round::Rn), word, &abc[..1]),
        ("cvt.rn.f32.u32", cvt(Ty::F32, Ty::U32, Round::Rn), word, &abc[..1]),
        ("cvt.rzi.s32.f32", cvt(Ty::S32, Ty::F32, Round::Rz), word, &abc[..1]),
        ("cvt.rzi.u32.f32", cvt(Ty::U32, Ty::F32, Round::Rz), word, &abc[..1]),
        ("cvt.f64.f32", cvt(Ty::F64, Ty::F32, Round::Rn), word, &abc[..1]),
        ("cvt.rn.f32.f64", cvt(Ty::F32, Ty::F64, Round::Rn), word, &abc[..1]),
        ("cvt.f32.f16", cvt(Ty::F32, Ty::F16, Round::Rn), word, &abc[..1]),
        ("cvt.rn.f16.f32", cvt(Ty::F16, Ty::F32, Round::Rn), word, &abc[..1]),
    ];
    println!("{:<18} {:>8} {:>8} {:>8}   nanoseconds per warp", "operation", "32", "32 part", "64");
    let only = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    for (name, op, dst, src) in cases {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let inst = Inst::new(op, dst, src);
        println!(
            "{name:<18} {:>8.1} {:>8.1} {:>8.1}",
            time::<32>(&inst, u64::MAX),
            time::<32>(&inst, 0x0f0f_ff3c),
            time::<64>(&inst, u64::MAX)
        );
    }
}
