//! The frequent lane operations, with all that is known of an instruction before it runs found out once.
//!
//! [`execute`](super::execute) finds out each time which operation it has, on which type, and where its operands are,
//! and fills rows with immediates: some 70 host instructions for an addition of 32 lanes, which needs 16. Here the
//! operation is a constant in an arm of its own, and the operands are numbers of rows. What is computed is what the
//! same functions compute there.

use multiversion::multiversion;
use warploom_isa::{Approx, Clamp, Combine, Cvt, FloatMode, Inst, Logic, MinMax, Op, Operand, Part, Ty};

use crate::kit::lane_mask::LaneMask;
use crate::lanes::approx::{reciprocal_root32, reciprocal32};
use crate::lanes::bits::{combine, shift_left, shift_right};
use crate::lanes::compare::{both, compare};
use crate::lanes::convert::integers;
use crate::lanes::exact::Exact;
use crate::lanes::float::{arithmetic, least32};
use crate::lanes::integer::{add, least, most, multiply, multiply_add, subtract};
use crate::lanes::moves::{copy, select};
use crate::lanes::vector::{Filled, Inputs, Source, map2, spread};
use crate::lanes::{Registers, all_lanes, write};

/// Where a source operand is: its row, or the first of its two, among the registers or among constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row(u32);

impl Row {
    const CONSTANT: u32 = 1 << 31;

    #[inline(always)]
    pub(crate) fn lanes<'a, const N: usize>(
        self,
        words: &'a [[u32; N]],
        constants: &'a [[u32; N]],
    ) -> &'a [u32; N] {
        let (rows, at) = match self.0 & Row::CONSTANT {
            0 => (words, self.0),
            _ => (constants, self.0 & !Row::CONSTANT),
        };
        // Without a panic, so that nothing is left of an operand that is not used.
        rows.get(at as usize).unwrap_or(const { &[0; N] })
    }

    #[inline(always)]
    fn source<'a, const N: usize>(self, words: &'a [[u32; N]], constants: &'a [[u32; N]]) -> Source<'a, N> {
        Source { lo: self.lanes(words, constants), hi: self.next().lanes(words, constants) }
    }

    /// The number of a register's row.
    #[inline(always)]
    pub(crate) fn register(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn next(self) -> Row {
        Row(self.0 + 1)
    }
}

/// The immediates of a kernel, a row each, or two for those of 64 bits.
#[derive(Clone, Debug)]
pub(crate) struct Constants<const N: usize>(Vec<[u32; N]>);

impl<const N: usize> Constants<N> {
    pub(crate) fn new() -> Self {
        Constants(Vec::new())
    }

    pub(crate) fn rows(&self) -> &[[u32; N]] {
        &self.0
    }

    /// The row of an operand of words. `None` if its value depends on more than a register.
    pub(crate) fn place(&mut self, operand: Operand, imms: &[u64]) -> Option<Row> {
        let value = match operand {
            Operand::Reg(reg) => return (reg.0 < Row::CONSTANT).then_some(Row(reg.0)),
            Operand::Imm(value) => u64::from(value),
            Operand::Imm64(id) => imms[id.index()],
            // Operands that are read otherwise, or not at all.
            Operand::None | Operand::Pred(_) | Operand::NotPred(_) => 0,
            Operand::Vec(_) | Operand::Symbol(_) | Operand::Frame => return None,
        };
        let pair = [[value as u32; N], [(value >> 32) as u32; N]];
        let at = self.0.windows(2).position(|rows| rows == pair).unwrap_or_else(|| {
            self.0.extend(pair);
            self.0.len() - 2
        });
        Some(Row(at as u32 | Row::CONSTANT))
    }
}

/// An operation and its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded {
    pub(crate) op: Frequent,
    pub(crate) sources: [Row; 3],
}

impl Decoded {
    /// `None` if the operation is not a frequent one.
    pub(crate) fn of<const N: usize>(
        inst: &Inst,
        constants: &mut Constants<N>,
        imms: &[u64],
    ) -> Option<Decoded> {
        let op = Frequent::of(inst.op)?;
        let mut sources = [Row::default(); 3];
        for (row, &operand) in sources.iter_mut().zip(&inst.src) {
            *row = constants.place(operand, imms)?;
        }
        Some(Decoded { op, sources })
    }
}

/// As [`write`], apart from the operations: inlined into each, it would double the time to compile them.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
#[inline(never)]
fn write_some<const N: usize>(inst: &Inst, regs: &mut Registers<'_, N>, filled: &Filled<N>, mask: LaneMask) {
    match filled {
        Filled::Word(lo) => regs.write32(inst.dst, lo, mask),
        Filled::Wide(lo, hi) => regs.write_words(inst.dst, lo, hi, mask),
        Filled::Pred(p) => regs.write_pred(inst.dst, *p, mask),
        Filled::Preds(p, q) => {
            regs.write_pred(inst.dst, *p, mask);
            regs.write_pred(inst.dst2, *q, mask);
        }
        Filled::WordCarry(..) | Filled::WideCarry(..) | Filled::Nothing => {
            unreachable!("no frequent operation has a carry")
        }
    }
}

/// Modes of arithmetic that the host's own has.
const RN: FloatMode = FloatMode::RN;
const FTZ: FloatMode = FloatMode { ftz: true, ..FloatMode::RN };
const MINNUM: MinMax = MinMax { nan: false, ftz: false, xorsign_abs: false };

/// The results of a `setp` that combines them with nothing.
#[inline(always)]
fn setp<const N: usize>(ty: Ty, Inputs { inst, a, b, .. }: Inputs<'_, N>) -> Filled<N> {
    let Op::Setp { cmp, .. } = inst.op else { return Filled::Nothing };
    both(compare(cmp, ty, false, a, b), Combine::None, 0)
}

/// Makes the table of operations: a name, the instructions that it stands for, and what each of them computes.
macro_rules! frequent {
    (($inputs:ident, $a:ident, $b:ident, $c:ident) $($name:ident: $pattern:pat => $result:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Frequent { $($name,)* }

        impl Frequent {
            fn of(op: Op) -> Option<Frequent> {
                match op {
                    $($pattern => Some(Frequent::$name),)*
                    _ => None,
                }
            }
        }

        /// Executes a decoded operation on the lanes of `mask`, which already includes the guard.
        #[inline(always)]
        // No operation needs all of its inputs.
        #[allow(unused_variables)]
        pub(crate) fn execute<const N: usize>(
            Decoded { op, sources }: &Decoded,
            inst: &Inst,
            regs: &mut Registers<'_, N>,
            constants: &[[u32; N]],
            mask: LaneMask,
        ) {
            let full = mask & all_lanes::<N>() == all_lanes::<N>();
            match op {
                $(Frequent::$name => {
                    let $a = sources[0].source(regs.words, constants);
                    let $b = sources[1].source(regs.words, constants);
                    let $c = sources[2].source(regs.words, constants);
                    let $inputs = Inputs { inst, regs, a: $a, b: $b, c: $c };
                    let filled = $result;
                    if full {
                        write(inst, regs, filled, all_lanes::<N>());
                    } else {
                        write_some(inst, regs, &filled, mask);
                    }
                })*
            }
        }
    };
}

frequent! { (inputs, a, b, c)
    Mov64: Op::Mov(Ty::U64 | Ty::S64 | Ty::B64 | Ty::F64) => copy(Ty::B64, a);
    Mov32: Op::Mov(_) => copy(Ty::B32, a);
    MovPred: Op::MovPred => Filled::Pred(inputs.regs.read_pred(inputs.inst.src[0]));
    Pack64: Op::Pack64 => Filled::Wide(*a.lo, *b.lo);
    Low: Op::Unpack64(0) => Filled::Word(*a.lo);
    High: Op::Unpack64(1) => Filled::Word(*a.hi);
    Select64: Op::Selp(Ty::U64 | Ty::S64 | Ty::B64 | Ty::F64)
        => select(a, b, &spread(inputs.regs.read_pred(inputs.inst.src[2])), true);
    Select32: Op::Selp(_) => select(a, b, &spread(inputs.regs.read_pred(inputs.inst.src[2])), false);

    Add32: Op::IAdd(Ty::U32 | Ty::S32 | Ty::B32, Clamp::None) => add(Ty::U32, Clamp::None, a, b);
    Add64: Op::IAdd(Ty::U64 | Ty::S64 | Ty::B64, Clamp::None) => add(Ty::U64, Clamp::None, a, b);
    Sub32: Op::ISub(Ty::U32 | Ty::S32 | Ty::B32, Clamp::None) => subtract(Ty::U32, Clamp::None, a, b);
    Sub64: Op::ISub(Ty::U64 | Ty::S64 | Ty::B64, Clamp::None) => subtract(Ty::U64, Clamp::None, a, b);
    Mul32: Op::IMul(Ty::U32 | Ty::S32 | Ty::B32, Part::Lo) => multiply(Ty::U32, Part::Lo, a, b);
    MulWideU: Op::IMul(Ty::U32, Part::Wide) => multiply(Ty::U32, Part::Wide, a, b);
    MulWideS: Op::IMul(Ty::S32, Part::Wide) => multiply(Ty::S32, Part::Wide, a, b);
    MulHighU: Op::IMul(Ty::U32, Part::Hi) => multiply(Ty::U32, Part::Hi, a, b);
    Mul64: Op::IMul(Ty::U64 | Ty::S64 | Ty::B64, Part::Lo) => multiply(Ty::U64, Part::Lo, a, b);
    Mad32: Op::IMad(Ty::U32 | Ty::S32 | Ty::B32, Part::Lo, Clamp::None)
        => multiply_add(Ty::U32, Part::Lo, Clamp::None, [a, b, c]);
    MadWideU: Op::IMad(Ty::U32, Part::Wide, Clamp::None)
        => multiply_add(Ty::U32, Part::Wide, Clamp::None, [a, b, c]);
    MadWideS: Op::IMad(Ty::S32, Part::Wide, Clamp::None)
        => multiply_add(Ty::S32, Part::Wide, Clamp::None, [a, b, c]);
    MinU: Op::IMin(Ty::U32, Clamp::None) => least(Ty::U32, a, b);
    MinS: Op::IMin(Ty::S32, Clamp::None) => least(Ty::S32, a, b);
    MaxU: Op::IMax(Ty::U32, Clamp::None) => most(Ty::U32, a, b);
    MaxS: Op::IMax(Ty::S32, Clamp::None) => most(Ty::S32, a, b);

    And32: Op::Logic(Logic::And, Ty::B32) => combine(Logic::And, Ty::B32, a, b);
    Or32: Op::Logic(Logic::Or, Ty::B32) => combine(Logic::Or, Ty::B32, a, b);
    Xor32: Op::Logic(Logic::Xor, Ty::B32) => combine(Logic::Xor, Ty::B32, a, b);
    And64: Op::Logic(Logic::And, Ty::B64) => combine(Logic::And, Ty::B64, a, b);
    Or64: Op::Logic(Logic::Or, Ty::B64) => combine(Logic::Or, Ty::B64, a, b);
    Shl32: Op::Shl(Ty::B32) => shift_left(Ty::B32, a, b);
    Shl64: Op::Shl(Ty::B64) => shift_left(Ty::B64, a, b);
    Shr32: Op::Shr(Ty::U32 | Ty::B32) => shift_right(Ty::U32, a, b);
    ShrS32: Op::Shr(Ty::S32) => shift_right(Ty::S32, a, b);
    Shr64: Op::Shr(Ty::U64 | Ty::B64) => shift_right(Ty::U64, a, b);

    SetpU32: Op::Setp { combine: Combine::None, ty: Ty::U32 | Ty::B32, .. } => setp(Ty::U32, inputs);
    SetpS32: Op::Setp { combine: Combine::None, ty: Ty::S32, .. } => setp(Ty::S32, inputs);
    SetpF32: Op::Setp { combine: Combine::None, ty: Ty::F32, ftz: false, .. } => setp(Ty::F32, inputs);
    SetpU64: Op::Setp { combine: Combine::None, ty: Ty::U64 | Ty::B64, .. } => setp(Ty::U64, inputs);
    SetpS64: Op::Setp { combine: Combine::None, ty: Ty::S64, .. } => setp(Ty::S64, inputs);

    FAdd: Op::FAdd(Ty::F32, RN) => arithmetic(Exact::Add, Ty::F32, RN, inputs);
    FSub: Op::FSub(Ty::F32, RN) => arithmetic(Exact::Sub, Ty::F32, RN, inputs);
    FMul: Op::FMul(Ty::F32, RN) => arithmetic(Exact::Mul, Ty::F32, RN, inputs);
    Fma: Op::FFma(Ty::F32, RN) => arithmetic(Exact::Fma, Ty::F32, RN, inputs);
    FAddFtz: Op::FAdd(Ty::F32, FTZ) => arithmetic(Exact::Add, Ty::F32, FTZ, inputs);
    FMulFtz: Op::FMul(Ty::F32, FTZ) => arithmetic(Exact::Mul, Ty::F32, FTZ, inputs);
    FmaFtz: Op::FFma(Ty::F32, FTZ) => arithmetic(Exact::Fma, Ty::F32, FTZ, inputs);
    DAdd: Op::FAdd(Ty::F64, RN) => arithmetic(Exact::Add, Ty::F64, RN, inputs);
    DMul: Op::FMul(Ty::F64, RN) => arithmetic(Exact::Mul, Ty::F64, RN, inputs);
    DFma: Op::FFma(Ty::F64, RN) => arithmetic(Exact::Fma, Ty::F64, RN, inputs);
    FMin: Op::FMin(Ty::F32, MINNUM) => map2(a.lo, b.lo, |x, y| least32(x, y, false, true));
    FMax: Op::FMax(Ty::F32, MINNUM) => map2(a.lo, b.lo, |x, y| least32(x, y, true, true));

    Rcp: Op::FApprox(Approx::Rcp, Ty::F32, false) => reciprocal32(a);
    Rsqrt: Op::FApprox(Approx::Rsqrt, Ty::F32, false) => reciprocal_root32(a);

    ExtendU: Op::Cvt(Cvt { to: Ty::U64 | Ty::S64, from: Ty::U32, clamp: Clamp::None, .. })
        => integers(Ty::U32, Ty::U64, a);
    ExtendS: Op::Cvt(Cvt { to: Ty::U64 | Ty::S64, from: Ty::S32, clamp: Clamp::None, .. })
        => integers(Ty::S32, Ty::S64, a);
    Truncate: Op::Cvt(Cvt { to: Ty::U32 | Ty::S32, from: Ty::U64 | Ty::S64, clamp: Clamp::None, .. })
        => integers(Ty::U64, Ty::U32, a);
}
