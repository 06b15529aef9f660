//! The frequent lane operations, with all that is known of an instruction before it runs found out once.
//!
//! [`execute`](super::execute) finds out each time which operation it has, on which type, and where its operands are,
//! and fills rows with immediates: some 70 host instructions for an addition of 32 lanes, which needs 16. Here the
//! operation is a constant in an arm of its own, and the operands are numbers of rows. What is computed is what the
//! same functions compute there.

use multiversion::multiversion;
use rustc_hash::FxHashMap;
use warploom_isa::{
    Approx, Clamp, Combine, Cvt, Dst, FloatMode, Inst, Logic, MinMax, Op, Operand, Part, Space, Ty,
};

use crate::kit::lane_mask::LaneMask;
use crate::lanes::approx::{power_of_two32, reciprocal_root32, reciprocal32};
use crate::lanes::bits::{combine, shift_left, shift_right};
use crate::lanes::compare::{both, compare};
use crate::lanes::convert::integers;
use crate::lanes::exact::Exact;
use crate::lanes::float::{arithmetic, least32};
use crate::lanes::integer::{add, least, most, multiply, multiply_add, subtract};
use crate::lanes::moves::{copy, select};
use crate::lanes::vector::{Filled, Inputs, Source, map2, spread};
use crate::lanes::{Registers, Taking, merge};

/// A value in every lane. There is room for the lanes of any warp, so that a kernel's constants do not depend on how
/// wide the chip's warps are.
pub type ConstantRow = [u32; LaneMask::LANES];

/// The lanes of a constant that a warp of `N` lanes has.
#[inline(always)]
fn cut<const N: usize>(row: &ConstantRow) -> &[u32; N] {
    row.first_chunk().expect("no warp is wider than a lane mask")
}

/// Where a source operand is: its row, or the first of its two, among the registers or among constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row(u32);

impl Row {
    const CONSTANT: u32 = 1 << 31;
    /// The constant 0, which is always there.
    const ZERO: Row = Row(Row::CONSTANT);

    #[inline(always)]
    pub(crate) fn lanes<'a, const N: usize>(
        self,
        words: &'a [[u32; N]],
        constants: &'a [ConstantRow],
    ) -> &'a [u32; N] {
        match self.0 & Row::CONSTANT {
            0 => &words[self.0 as usize],
            _ => cut(&constants[(self.0 & !Row::CONSTANT) as usize]),
        }
    }

    /// The row after it: zeros if there is none.
    #[inline(always)]
    pub(crate) fn high<'a, const N: usize>(
        self,
        words: &'a [[u32; N]],
        constants: &'a [ConstantRow],
    ) -> &'a [u32; N] {
        let row = match self.0 & Row::CONSTANT {
            0 => words.get(self.0 as usize + 1),
            _ => constants.get((self.0 & !Row::CONSTANT) as usize + 1).map(cut),
        };
        row.unwrap_or(const { &[0; N] })
    }

    /// A source of one word.
    #[inline(always)]
    fn one<'a, const N: usize>(self, words: &'a [[u32; N]], constants: &'a [ConstantRow]) -> Source<'a, N> {
        Source { lo: self.lanes(words, constants), hi: const { &[0; N] } }
    }

    /// A source of two words.
    #[inline(always)]
    fn two<'a, const N: usize>(self, words: &'a [[u32; N]], constants: &'a [ConstantRow]) -> Source<'a, N> {
        Source { lo: self.lanes(words, constants), hi: self.high(words, constants) }
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

/// The immediates of a kernel, two rows each.
#[derive(Clone, Debug)]
pub struct Constants {
    rows: Vec<ConstantRow>,
    by_value: FxHashMap<u64, Row>,
}

impl Default for Constants {
    fn default() -> Self {
        Constants { rows: vec![[0; LaneMask::LANES]; 2], by_value: FxHashMap::default() }
    }
}

impl Constants {
    #[inline(always)]
    pub fn rows(&self) -> &[ConstantRow] {
        &self.rows
    }

    /// The row of an operand of words. `None` if its value depends on more than a register.
    pub(crate) fn place(&mut self, operand: Operand, imms: &[u64]) -> Option<Row> {
        match operand {
            Operand::Reg(reg) => (reg.0 < Row::CONSTANT).then_some(Row(reg.0)),
            Operand::Imm(value) => Some(self.pair(u64::from(value))),
            Operand::Imm64(id) => Some(self.pair(imms[id.index()])),
            // Operands that are read otherwise, or not at all.
            Operand::None | Operand::Pred(_) | Operand::NotPred(_) => Some(Row::ZERO),
            Operand::Vec(_) | Operand::Symbol(_) | Operand::Frame => None,
        }
    }

    /// The rows of the two words of a value.
    fn pair(&mut self, value: u64) -> Row {
        if value == 0 {
            return Row::ZERO;
        }
        *self.by_value.entry(value).or_insert_with(|| {
            let at = self.rows.len() as u32;
            self.rows.extend([value as u32, (value >> 32) as u32].map(|word| [word; LaneMask::LANES]));
            Row(at | Row::CONSTANT)
        })
    }
}

/// An operation and its operands.
#[derive(Clone, Copy, Debug)]
pub struct LaneOperation {
    op: Frequent,
    sources: [Row; 3],
    /// The register of the result, or the first of its two. Predicates are where the instruction says.
    result: u32,
}

impl LaneOperation {
    /// `None` if the operation is not a frequent one.
    pub fn of(inst: &Inst, constants: &mut Constants, imms: &[u64]) -> Option<LaneOperation> {
        // Global addresses are generic ones already.
        let op = match inst.op {
            Op::ToGeneric(Space::Global, ty) | Op::FromGeneric(Space::Global, ty) => Op::Mov(ty),
            op => op,
        };
        let op = Frequent::of(op)?;
        let mut sources = [Row::default(); 3];
        for (row, &operand) in sources.iter_mut().zip(&inst.src) {
            *row = constants.place(operand, imms)?;
        }
        let result = match inst.dst {
            Dst::Reg(reg) => reg.0,
            Dst::Pred(_) => 0,
            Dst::None | Dst::Vec(_) => return None,
        };
        Some(LaneOperation { op, sources, result })
    }

    /// A move of a value that is known beforehand to the destination of an instruction.
    pub(crate) fn constant(
        inst: &Inst,
        value: u64,
        wide: bool,
        constants: &mut Constants,
    ) -> Option<LaneOperation> {
        let Dst::Reg(reg) = inst.dst else { return None };
        let op = if wide { Frequent::Mov64 } else { Frequent::Mov32 };
        Some(LaneOperation { op, sources: [constants.pair(value), Row::ZERO, Row::ZERO], result: reg.0 })
    }

    /// Executes it on the lanes of `mask`, which already includes the guard. `inst` is the instruction that it stands
    /// for.
    #[inline(always)]
    pub fn execute<const N: usize>(
        &self,
        inst: &Inst,
        regs: &mut Registers<'_, N>,
        constants: &[ConstantRow],
        mask: LaneMask,
    ) {
        execute_one(self, inst, regs, constants, mask);
    }
}

/// [`execute`] for one operation alone.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
fn execute_one<const N: usize>(
    operation: &LaneOperation,
    inst: &Inst,
    regs: &mut Registers<'_, N>,
    constants: &[ConstantRow],
    mask: LaneMask,
) {
    execute(operation, inst, regs, constants, &mut [[0; N]; 2], Taking::of(mask));
}

/// Where results go that not all lanes take: from here they are merged into registers, in one place for all operations.
pub(crate) type Spare<const N: usize> = [[u32; N]; 2];

/// What the arms of [`execute`] write their results to. Each knows what kind it has: a `match` on all kinds would make
/// the compiler keep the result in memory, in pieces.
struct Results<'a, 'b, const N: usize> {
    regs: &'a mut Registers<'b, N>,
    spare: &'a mut Spare<N>,
    inst: &'a Inst,
    first: usize,
    taking: Taking<'a, N>,
}

/// Each returns how many words wait in [`Results::spare`], if not all lanes are to have them.
impl<const N: usize> Results<'_, '_, N> {
    #[inline(always)]
    fn word(&mut self, filled: Filled<N>) -> usize {
        let Filled::Word(lo) = filled else { unreachable!("the operation has a word") };
        if self.taking.full {
            self.regs.words[self.first] = lo;
        } else {
            self.spare[0] = lo;
        }
        1
    }

    #[inline(always)]
    fn wide(&mut self, filled: Filled<N>) -> usize {
        let Filled::Wide(lo, hi) = filled else { unreachable!("the operation has two words") };
        let rows = if self.taking.full { &mut self.regs.words[self.first..] } else { &mut self.spare[..] };
        if let [low, high, ..] = rows {
            (*low, *high) = (lo, hi);
        }
        2
    }

    #[inline(always)]
    fn predicates(&mut self, filled: Filled<N>) -> usize {
        let (first, second) = match filled {
            Filled::Pred(first) => (first, 0),
            Filled::Preds(first, second) => (first, second),
            _ => unreachable!("the operation has predicates"),
        };
        self.regs.write_pred(self.inst.dst, first, self.taking.mask);
        self.regs.write_pred(self.inst.dst2, second, self.taking.mask);
        0
    }
}

/// Modes of arithmetic that the host's own has.
const RN: FloatMode = FloatMode::RN;
const FTZ: FloatMode = FloatMode { ftz: true, ..FloatMode::RN };
const MINNUM: MinMax = MinMax { nan: false, ftz: false, xorsign_abs: false };

/// The results of a `setp` that combines them with nothing.
#[inline(always)]
fn setp<const N: usize>(ty: Ty, inst: &Inst, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    let Op::Setp { cmp, .. } = inst.op else { return Filled::Nothing };
    both(compare(cmp, ty, false, a, b), Combine::None, 0)
}

/// Which of an instruction's sources has a name in the table.
macro_rules! place {
    (a) => {
        0
    };
    (b) => {
        1
    };
    (c) => {
        2
    };
}

/// Makes the table of operations: a name, the instructions that it stands for, the kind of its result, the sources that
/// it has and of how many words, and what each of them computes.
macro_rules! frequent {
    (($inst:ident, $regs:ident) $($name:ident: $pattern:pat
        => $kind:ident($($source:ident: $words:ident),*) $result:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Frequent { $($name,)* }

        impl Frequent {
            fn of(op: Op) -> Option<Frequent> {
                match op {
                    $($pattern => Some(Frequent::$name),)*
                    _ => None,
                }
            }
        }

        /// Executes a decoded operation on the lanes that take part, the guard included.
        #[inline(always)]
        pub(crate) fn execute<const N: usize>(
            LaneOperation { op, sources, result }: &LaneOperation,
            inst: &Inst,
            regs: &mut Registers<'_, N>,
            constants: &[ConstantRow],
            spare: &mut Spare<N>,
            taking: Taking<'_, N>,
        ) {
            let first = *result as usize;
            let waiting = match op {
                $(Frequent::$name => {
                    let ($inst, $regs) = (inst, &*regs);
                    $(let $source = sources[place!($source)].$words($regs.words, constants);)*
                    // Not all operations look at more than their sources.
                    let _ = ($inst, $regs);
                    let filled = $result;
                    Results { regs, spare, inst, first, taking }.$kind(filled)
                })*
            };
            if !taking.full && waiting > 0 {
                let k = taking.words();
                for (row, value) in regs.words[first..].iter_mut().zip(&*spare).take(waiting) {
                    merge(row, value, &k);
                }
            }
        }
    };
}

frequent! { (inst, regs)
    Mov64: Op::Mov(Ty::U64 | Ty::S64 | Ty::B64 | Ty::F64) => wide(a: two) copy(Ty::B64, a);
    Mov32: Op::Mov(_) => word(a: one) copy(Ty::B32, a);
    MovPred: Op::MovPred => predicates() Filled::Pred(regs.read_pred(inst.src[0]));
    Pack64: Op::Pack64 => wide(a: one, b: one) Filled::Wide(*a.lo, *b.lo);
    Low: Op::Unpack64(0) => word(a: one) Filled::Word(*a.lo);
    High: Op::Unpack64(1) => word(a: two) Filled::Word(*a.hi);
    Select64: Op::Selp(Ty::U64 | Ty::S64 | Ty::B64 | Ty::F64)
        => wide(a: two, b: two) select(a, b, &spread(regs.read_pred(inst.src[2])), true);
    Select32: Op::Selp(_) => word(a: one, b: one) select(a, b, &spread(regs.read_pred(inst.src[2])), false);

    Add32: Op::IAdd(Ty::U32 | Ty::S32 | Ty::B32, Clamp::None) => word(a: one, b: one) add(Ty::U32, Clamp::None, a, b);
    Add64: Op::IAdd(Ty::U64 | Ty::S64 | Ty::B64, Clamp::None) => wide(a: two, b: two) add(Ty::U64, Clamp::None, a, b);
    Sub32: Op::ISub(Ty::U32 | Ty::S32 | Ty::B32, Clamp::None)
        => word(a: one, b: one) subtract(Ty::U32, Clamp::None, a, b);
    Sub64: Op::ISub(Ty::U64 | Ty::S64 | Ty::B64, Clamp::None)
        => wide(a: two, b: two) subtract(Ty::U64, Clamp::None, a, b);
    Mul32: Op::IMul(Ty::U32 | Ty::S32 | Ty::B32, Part::Lo) => word(a: one, b: one) multiply(Ty::U32, Part::Lo, a, b);
    MulWideU: Op::IMul(Ty::U32, Part::Wide) => wide(a: one, b: one) multiply(Ty::U32, Part::Wide, a, b);
    MulWideS: Op::IMul(Ty::S32, Part::Wide) => wide(a: one, b: one) multiply(Ty::S32, Part::Wide, a, b);
    MulHighU: Op::IMul(Ty::U32, Part::Hi) => word(a: one, b: one) multiply(Ty::U32, Part::Hi, a, b);
    Mul64: Op::IMul(Ty::U64 | Ty::S64 | Ty::B64, Part::Lo) => wide(a: two, b: two) multiply(Ty::U64, Part::Lo, a, b);
    Mad32: Op::IMad(Ty::U32 | Ty::S32 | Ty::B32, Part::Lo, Clamp::None)
        => word(a: one, b: one, c: one) multiply_add(Ty::U32, Part::Lo, Clamp::None, [a, b, c]);
    MadWideU: Op::IMad(Ty::U32, Part::Wide, Clamp::None)
        => wide(a: one, b: one, c: two) multiply_add(Ty::U32, Part::Wide, Clamp::None, [a, b, c]);
    MadWideS: Op::IMad(Ty::S32, Part::Wide, Clamp::None)
        => wide(a: one, b: one, c: two) multiply_add(Ty::S32, Part::Wide, Clamp::None, [a, b, c]);
    MinU: Op::IMin(Ty::U32, Clamp::None) => word(a: one, b: one) least(Ty::U32, a, b);
    MinS: Op::IMin(Ty::S32, Clamp::None) => word(a: one, b: one) least(Ty::S32, a, b);
    MaxU: Op::IMax(Ty::U32, Clamp::None) => word(a: one, b: one) most(Ty::U32, a, b);
    MaxS: Op::IMax(Ty::S32, Clamp::None) => word(a: one, b: one) most(Ty::S32, a, b);

    And32: Op::Logic(Logic::And, Ty::B32) => word(a: one, b: one) combine(Logic::And, Ty::B32, a, b);
    Or32: Op::Logic(Logic::Or, Ty::B32) => word(a: one, b: one) combine(Logic::Or, Ty::B32, a, b);
    Xor32: Op::Logic(Logic::Xor, Ty::B32) => word(a: one, b: one) combine(Logic::Xor, Ty::B32, a, b);
    And64: Op::Logic(Logic::And, Ty::B64) => wide(a: two, b: two) combine(Logic::And, Ty::B64, a, b);
    Or64: Op::Logic(Logic::Or, Ty::B64) => wide(a: two, b: two) combine(Logic::Or, Ty::B64, a, b);
    Shl32: Op::Shl(Ty::B32) => word(a: one, b: one) shift_left(Ty::B32, a, b);
    Shl64: Op::Shl(Ty::B64) => wide(a: two, b: one) shift_left(Ty::B64, a, b);
    Shr32: Op::Shr(Ty::U32 | Ty::B32) => word(a: one, b: one) shift_right(Ty::U32, a, b);
    ShrS32: Op::Shr(Ty::S32) => word(a: one, b: one) shift_right(Ty::S32, a, b);
    Shr64: Op::Shr(Ty::U64 | Ty::B64) => wide(a: two, b: one) shift_right(Ty::U64, a, b);

    SetpU32: Op::Setp { combine: Combine::None, ty: Ty::U32 | Ty::B32, .. }
        => predicates(a: one, b: one) setp(Ty::U32, inst, a, b);
    SetpS32: Op::Setp { combine: Combine::None, ty: Ty::S32, .. }
        => predicates(a: one, b: one) setp(Ty::S32, inst, a, b);
    SetpF32: Op::Setp { combine: Combine::None, ty: Ty::F32, ftz: false, .. }
        => predicates(a: one, b: one) setp(Ty::F32, inst, a, b);
    SetpU64: Op::Setp { combine: Combine::None, ty: Ty::U64 | Ty::B64, .. }
        => predicates(a: two, b: two) setp(Ty::U64, inst, a, b);
    SetpS64: Op::Setp { combine: Combine::None, ty: Ty::S64, .. }
        => predicates(a: two, b: two) setp(Ty::S64, inst, a, b);

    FAdd: Op::FAdd(Ty::F32, RN)
        => word(a: one, b: one) arithmetic(Exact::Add, Ty::F32, RN, Inputs { inst, regs, a, b, c: b });
    FSub: Op::FSub(Ty::F32, RN)
        => word(a: one, b: one) arithmetic(Exact::Sub, Ty::F32, RN, Inputs { inst, regs, a, b, c: b });
    FMul: Op::FMul(Ty::F32, RN)
        => word(a: one, b: one) arithmetic(Exact::Mul, Ty::F32, RN, Inputs { inst, regs, a, b, c: b });
    Fma: Op::FFma(Ty::F32, RN)
        => word(a: one, b: one, c: one) arithmetic(Exact::Fma, Ty::F32, RN, Inputs { inst, regs, a, b, c });
    FAddFtz: Op::FAdd(Ty::F32, FTZ)
        => word(a: one, b: one) arithmetic(Exact::Add, Ty::F32, FTZ, Inputs { inst, regs, a, b, c: b });
    FMulFtz: Op::FMul(Ty::F32, FTZ)
        => word(a: one, b: one) arithmetic(Exact::Mul, Ty::F32, FTZ, Inputs { inst, regs, a, b, c: b });
    FmaFtz: Op::FFma(Ty::F32, FTZ)
        => word(a: one, b: one, c: one) arithmetic(Exact::Fma, Ty::F32, FTZ, Inputs { inst, regs, a, b, c });
    DAdd: Op::FAdd(Ty::F64, RN)
        => wide(a: two, b: two) arithmetic(Exact::Add, Ty::F64, RN, Inputs { inst, regs, a, b, c: b });
    DMul: Op::FMul(Ty::F64, RN)
        => wide(a: two, b: two) arithmetic(Exact::Mul, Ty::F64, RN, Inputs { inst, regs, a, b, c: b });
    DFma: Op::FFma(Ty::F64, RN)
        => wide(a: two, b: two, c: two) arithmetic(Exact::Fma, Ty::F64, RN, Inputs { inst, regs, a, b, c });
    FMin: Op::FMin(Ty::F32, MINNUM) => word(a: one, b: one) map2(a.lo, b.lo, |x, y| least32(x, y, false, true));
    FMax: Op::FMax(Ty::F32, MINNUM) => word(a: one, b: one) map2(a.lo, b.lo, |x, y| least32(x, y, true, true));

    Rcp: Op::FApprox(Approx::Rcp, Ty::F32, false) => word(a: one) reciprocal32(a);
    Rsqrt: Op::FApprox(Approx::Rsqrt, Ty::F32, false) => word(a: one) reciprocal_root32(a);
    Ex2: Op::FApprox(Approx::Ex2, Ty::F32, false) => word(a: one) power_of_two32(a, false);
    Ex2Ftz: Op::FApprox(Approx::Ex2, Ty::F32, true) => word(a: one) power_of_two32(a, true);

    ExtendU: Op::Cvt(Cvt { to: Ty::U64 | Ty::S64, from: Ty::U32, clamp: Clamp::None, .. })
        => wide(a: one) integers(Ty::U32, Ty::U64, a);
    ExtendS: Op::Cvt(Cvt { to: Ty::U64 | Ty::S64, from: Ty::S32, clamp: Clamp::None, .. })
        => wide(a: one) integers(Ty::S32, Ty::S64, a);
    Truncate: Op::Cvt(Cvt { to: Ty::U32 | Ty::S32, from: Ty::U64 | Ty::S64, clamp: Clamp::None, .. })
        => word(a: one) integers(Ty::U64, Ty::U32, a);
}
