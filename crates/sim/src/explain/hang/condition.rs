//! What ends a wait, as the kernel computes it: `[head+0] - [tail+0] is below 16`, with all words in it.
//!
//! The exit branch's predicate is followed backwards through the loop to loads (words), constants, and registers that
//! the loop does not change, whose values are known. Nothing is told if the loop computes in another way.

use warploom_isa::{
    Cmp, Combine, Dst, Guard, Inst, Kernel, Logic, Loop, Op, Operand, Part, Pc, Pred, Reg, Ty,
};

use crate::explain::hang::Word;
use crate::explain::hang::code::{contains, last_of, negated, swapped};
use crate::explain::hang::message::number;
use crate::explain::hang::words::list;

/// Expressions nested deeper are not told.
const DEEPEST: u32 = 12;

/// What ends a wait.
pub(super) enum Condition {
    /// The polled word, as it is, compares this way with a number.
    Plain(Cmp, u64),
    /// A text with all words, and their values now; the bits, if these decide.
    Derived(String, Option<u64>),
}

/// How the values of one lane are found.
pub(super) struct Lane<'a> {
    /// A register that the loop does not write, or a constant.
    pub(super) value: &'a dyn Fn(Operand, bool) -> Option<u64>,
    /// The word that a load or an atomic of the loop reads, and what is there now.
    pub(super) word: &'a dyn Fn(Pc) -> Option<(Word, u64)>,
}

/// A number that the loop computes.
struct Number {
    text: String,
    value: u64,
    /// It is a word of memory as the load gives it.
    is_word: Option<Pc>,
    /// It needs no parentheses.
    is_atom: bool,
    /// If it is bits of a word: these.
    bits: Option<u64>,
}

/// A comparison, or several.
struct Truth {
    /// The text of the condition.
    text: String,
    /// Where it is one comparison of an expression with a number: the expression and its value now.
    compared: Option<(String, String)>,
    plain: Option<(Pc, Cmp, u64)>,
    bits: Option<u64>,
}

struct Reader<'a> {
    kernel: &'a Kernel,
    spin: &'a Loop,
    lane: &'a Lane<'a>,
    /// The words met so far, by the instruction that reads them.
    words: Vec<(Pc, Word, u64)>,
}

/// What ends the loop's wait for what `poll` reads.
pub(super) fn condition(kernel: &Kernel, spin: &Loop, poll: Pc, lane: &Lane<'_>) -> Option<Condition> {
    for pc in (spin.header.0..=last_of(spin).0).map(Pc) {
        let inst = &kernel.code[pc.index()];
        let (Op::Bra, Operand::Imm(target)) = (inst.op, inst.src[0]) else { continue };
        let (pred, taken_if) = match inst.guard {
            Guard::Always => continue,
            Guard::If(pred) => (pred, true),
            Guard::Unless(pred) => (pred, false),
        };
        let target = Pc(target);
        // A branch forwards inside the loop does not end it.
        let stays = contains(spin, target);
        if kernel.atomic_at(pc).is_some() || stays && target > pc {
            continue;
        }
        let mut reader = Reader { kernel, spin, lane, words: Vec::new() };
        let leaves_if = taken_if != stays;
        let Some(truth) = reader.truth(pred, pc, leaves_if, DEEPEST) else { continue };
        if !reader.words.iter().any(|(at, ..)| *at == poll) {
            continue;
        }
        return Some(reader.told(truth, poll));
    }
    None
}

impl Reader<'_> {
    fn told(&self, truth: Truth, poll: Pc) -> Condition {
        if let Some((pc, cmp, value)) = truth.plain
            && pc == poll
        {
            return Condition::Plain(cmp, value);
        }
        let values: Vec<String> =
            self.words.iter().map(|(_, word, value)| format!("{word} is {}", number(*value))).collect();
        let now = match &truth.compared {
            Some((expression, value))
                if self.words.iter().any(|(_, word, _)| word.to_string() == *expression) =>
            {
                format!("it is {value}")
            }
            Some((_, value)) => format!("it is {value}: {}", list(&values, 4)),
            None => list(&values, 4),
        };
        Condition::Derived(format!("{}; {now}", truth.text), truth.bits)
    }

    /// The instruction before `at` that writes what `writes` asks for. `Err` if that cannot be told.
    fn definition(&self, at: Pc, writes: impl Fn(&Inst) -> bool) -> Result<Option<(Pc, &Inst)>, ()> {
        let inst = |pc: u32| (Pc(pc), &self.kernel.code[pc as usize]);
        match (self.spin.header.0..at.0).rev().map(inst).find(|(_, inst)| writes(inst)) {
            Some((pc, inst)) if inst.guard == Guard::Always => Ok(Some((pc, inst))),
            Some(_) => Err(()),
            // It may come from the iteration before.
            None if (at.0..=last_of(self.spin).0).map(inst).any(|(_, inst)| writes(inst)) => Err(()),
            None => Ok(None),
        }
    }

    /// Whether an instruction writes one of the words of a register.
    fn writes(kernel: &Kernel, inst: &Inst, reg: Reg, wide: bool) -> bool {
        let mut found = false;
        inst.for_each_def(kernel, |value| {
            if let warploom_isa::Value::Reg(to, width) = value {
                found |= to.0 < reg.0 + 1 + u32::from(wide) && reg.0 < to.0 + width.words();
            }
        });
        found
    }

    fn number(&mut self, operand: Operand, ty: Ty, at: Pc, depth: u32) -> Option<Number> {
        let constant = |value: u64| {
            let value = value & mask(ty);
            Number { text: shown(value, ty), value, is_word: None, is_atom: true, bits: None }
        };
        let Operand::Reg(reg) = operand else {
            return Some(constant((self.lane.value)(operand, ty.is_wide())?));
        };
        let wide = ty.is_wide();
        let kernel = self.kernel;
        let Some((pc, inst)) = self.definition(at, |inst| Self::writes(kernel, inst, reg, wide)).ok()? else {
            return Some(constant((self.lane.value)(operand, wide)?));
        };
        let inst = *inst;
        if inst.dst != Dst::Reg(reg) || depth == 0 {
            return None;
        }
        let depth = depth - 1;
        let [a, b, c, _] = inst.src;
        let (symbol, left, right, value): (&str, Number, Number, u64) = match inst.op {
            Op::Ld { .. } | Op::Atom(..) | Op::LdLock(_) => return self.word(pc),
            Op::Mov(from) => return self.number(a, from, pc, depth),
            Op::Cvt(cvt) if !cvt.to.is_float() && !cvt.from.is_float() => {
                let from = self.number(a, cvt.from, pc, depth)?;
                let value = from.value & mask(cvt.to);
                let is_word = from.is_word.filter(|_| cvt.to.bits() >= cvt.from.bits());
                return Some(Number { value, is_word, ..from });
            }
            Op::Unpack64(0) => {
                let from = self.number(a, Ty::B64, pc, depth)?;
                let (text, value) = (format!("the low half of {}", from.text), from.value & 0xffff_ffff);
                return Some(Number { text, value, is_word: None, is_atom: true, bits: None });
            }
            Op::Unpack64(_) => {
                let from = self.number(a, Ty::B64, pc, depth)?;
                let (text, value) = (format!("the high half of {}", from.text), from.value >> 32);
                return Some(Number { text, value, is_word: None, is_atom: true, bits: None });
            }
            Op::IAdd(ty, _) => {
                let (a, b) = (self.number(a, ty, pc, depth)?, self.number(b, ty, pc, depth)?);
                let value = a.value.wrapping_add(b.value);
                let least = 1u64 << (ty.bits() - 1);
                if b.is_word.is_none() && b.is_atom && b.value > least {
                    let by = b.value.wrapping_neg() & mask(ty);
                    ("-", a, Number { text: number(by), value: by, ..b }, value)
                } else {
                    ("+", a, b, value)
                }
            }
            Op::ISub(ty, _) => {
                let (a, b) = (self.number(a, ty, pc, depth)?, self.number(b, ty, pc, depth)?);
                let value = a.value.wrapping_sub(b.value);
                ("-", a, b, value)
            }
            Op::IMul(ty, Part::Lo) => {
                let (a, b) = (self.number(a, ty, pc, depth)?, self.number(b, ty, pc, depth)?);
                let value = a.value.wrapping_mul(b.value);
                ("*", a, b, value)
            }
            Op::IDiv(ty) | Op::IRem(ty) if !ty.is_signed() => {
                let (a, b) = (self.number(a, ty, pc, depth)?, self.number(b, ty, pc, depth)?);
                if matches!(inst.op, Op::IDiv(_)) {
                    let value = a.value.checked_div(b.value)?;
                    ("/", a, b, value)
                } else {
                    let value = a.value.checked_rem(b.value)?;
                    ("%", a, b, value)
                }
            }
            Op::Logic(logic, ty) => {
                let (a, b) = (self.number(a, ty, pc, depth)?, self.number(b, ty, pc, depth)?);
                let (x, y) = (a.value, b.value);
                match logic {
                    Logic::And => ("&", a, b, x & y),
                    Logic::Or => ("|", a, b, x | y),
                    Logic::Xor => ("^", a, b, x ^ y),
                }
            }
            Op::Shl(ty) => {
                let (a, b) = (self.number(a, ty, pc, depth)?, self.number(b, Ty::U32, pc, depth)?);
                let value = a.value.checked_shl(b.value as u32).unwrap_or(0);
                ("<<", a, b, value)
            }
            Op::Shr(ty) if !ty.is_signed() => {
                let (a, b) = (self.number(a, ty, pc, depth)?, self.number(b, Ty::U32, pc, depth)?);
                let value = a.value.checked_shr(b.value as u32).unwrap_or(0);
                (">>", a, b, value)
            }
            Op::Bfe(ty) if !ty.is_signed() => {
                let a = self.number(a, ty, pc, depth)?;
                let (from, length) =
                    (self.number(b, Ty::U32, pc, depth)?, self.number(c, Ty::U32, pc, depth)?);
                let last = (from.value + length.value).checked_sub(1).filter(|last| *last < 64)?;
                let text = format!("bits {} to {last} of {}", from.value, a.text);
                let value = a.value >> from.value & (u64::MAX >> (64 - length.value));
                return Some(Number { text, value, is_word: None, is_atom: true, bits: None });
            }
            _ => return None,
        };
        let bits = (symbol == "&" && left.is_word.is_some()).then_some(right.value);
        let atom = |n: &Number| if n.is_atom { n.text.clone() } else { format!("({})", n.text) };
        let text = format!("{} {symbol} {}", atom(&left), atom(&right));
        Some(Number { text, value: value & mask(ty), is_word: None, is_atom: false, bits })
    }

    fn word(&mut self, pc: Pc) -> Option<Number> {
        let (word, value) = match self.words.iter().find(|(at, ..)| *at == pc) {
            Some((_, word, value)) => (word.clone(), *value),
            None => {
                let (word, value) = (self.lane.word)(pc)?;
                self.words.push((pc, word.clone(), value));
                (word, value)
            }
        };
        Some(Number { text: word.to_string(), value, is_word: Some(pc), is_atom: true, bits: None })
    }

    /// A predicate, or its complement if `wanted` is false.
    fn truth(&mut self, pred: Pred, at: Pc, wanted: bool, depth: u32) -> Option<Truth> {
        let writes = |inst: &Inst| [inst.dst, inst.dst2].contains(&Dst::Pred(pred));
        let (pc, inst) = self.definition(at, writes).ok()??;
        let inst = *inst;
        if depth == 0 {
            return None;
        }
        // The second result of a comparison is its complement.
        let wanted = wanted == (inst.dst == Dst::Pred(pred));
        let [a, b, c, _] = inst.src;
        let depth = depth - 1;
        match inst.op {
            Op::Setp { cmp, combine, ty, .. } => {
                let complement = |cmp: Cmp| if wanted { Some(cmp) } else { negated(cmp) };
                let compared = self.comparison(complement(cmp)?, ty, (a, b), pc, depth)?;
                match combine {
                    Combine::None => Some(compared),
                    Combine::And | Combine::Or => {
                        let other = self.operand(c, pc, wanted, depth)?;
                        Some(joined(compared, other, (combine == Combine::And) == wanted))
                    }
                    Combine::Xor => None,
                }
            }
            Op::LogicPred(logic @ (Logic::And | Logic::Or)) => {
                let (a, b) = (self.operand(a, pc, wanted, depth)?, self.operand(b, pc, wanted, depth)?);
                Some(joined(a, b, (logic == Logic::And) == wanted))
            }
            Op::NotPred => self.operand(a, pc, !wanted, depth),
            Op::MovPred => self.operand(a, pc, wanted, depth),
            _ => None,
        }
    }

    fn operand(&mut self, operand: Operand, at: Pc, wanted: bool, depth: u32) -> Option<Truth> {
        match operand {
            Operand::Pred(pred) => self.truth(pred, at, wanted, depth),
            Operand::NotPred(pred) => self.truth(pred, at, !wanted, depth),
            _ => None,
        }
    }

    fn comparison(
        &mut self,
        cmp: Cmp,
        ty: Ty,
        (a, b): (Operand, Operand),
        at: Pc,
        depth: u32,
    ) -> Option<Truth> {
        let (mut a, mut b) = (self.number(a, ty, at, depth)?, self.number(b, ty, at, depth)?);
        let mut cmp = cmp;
        let is_constant = |n: &Number| n.is_word.is_none() && n.is_atom && !n.text.contains('[');
        if is_constant(&a) {
            (a, b, cmp) = (b, a, swapped(cmp)?);
        }
        let with_constant = is_constant(&b);
        let relation = match (cmp, with_constant) {
            (Cmp::Eq | Cmp::Equ, true) => "is",
            (Cmp::Ne | Cmp::Neu, true) => "is not",
            (Cmp::Eq | Cmp::Equ, false) => "equals",
            (Cmp::Ne | Cmp::Neu, false) => "differs from",
            (Cmp::Lt | Cmp::Ltu, _) => "is below",
            (Cmp::Le | Cmp::Leu, _) => "is at most",
            (Cmp::Gt | Cmp::Gtu, _) => "is above",
            (Cmp::Ge | Cmp::Geu, _) => "is at least",
            (Cmp::Num | Cmp::Nan, _) => return None,
        };
        let text = format!("{} {relation} {}", a.text, b.text);
        let plain = a.is_word.filter(|_| with_constant && !ty.is_float()).map(|pc| (pc, cmp, b.value));
        let compared = with_constant.then(|| (a.text.clone(), shown(a.value, ty)));
        let bits = a.bits.filter(|_| with_constant);
        Some(Truth { text, compared, plain, bits })
    }
}

/// Both, or one of them.
fn joined(a: Truth, b: Truth, both: bool) -> Truth {
    let text = format!("{} {} {}", a.text, if both { "and" } else { "or" }, b.text);
    Truth { text, compared: None, plain: None, bits: None }
}

fn mask(ty: Ty) -> u64 {
    u64::MAX >> (64 - ty.bits().clamp(1, 64))
}

/// A value of a type, for reading.
fn shown(value: u64, ty: Ty) -> String {
    match ty {
        Ty::F32 => format!("{}", f32::from_bits(value as u32)),
        Ty::F64 => format!("{}", f64::from_bits(value)),
        ty if ty.is_signed() => {
            let unused = 64 - ty.bits();
            let value = (value << unused) as i64 >> unused;
            if value < 0 && value > -0x1_0000 { value.to_string() } else { number(value as u64 & mask(ty)) }
        }
        _ => number(value),
    }
}
