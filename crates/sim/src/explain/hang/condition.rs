//! What ends a wait, as the kernel computes it: `[head+0] - [tail+0] is below 16`, with all words in it.
//!
//! The predicates of the branches that leave the loop, or begin its next iteration, are followed backwards to loads
//! (words), constants, and registers that the loop does not change, whose values are known. Nothing is told if the loop
//! computes in another way.

use warploom_isa::{
    Cmp, Combine, Dst, Guard, Inst, Kernel, Logic, Loop, Op, Operand, Part, Pc, Pred, Reg, Ty,
};

use crate::explain::hang::Word;
use crate::explain::hang::arithmetic::{
    Infix, Number, Read, binary, both, call, compares, float, is_less, mask, shown, signed, unary,
};
use crate::explain::hang::code::{contains, last_of, negated, swapped};
use crate::explain::hang::message::number;
use crate::explain::hang::words::list;

/// Expressions nested deeper are not told.
const DEEPEST: u32 = 12;

/// What ends a wait.
pub(super) enum Condition {
    /// The polled word, as it is, compares this way with a number.
    Plain(Cmp, u64),
    /// All words are named, with their values now.
    Derived(Derived),
    /// The loop would end: its condition holds.
    Met,
}

/// A condition on more than the polled word as it is.
pub(super) struct Derived {
    pub(super) text: String,
    /// The bits of the polled word, if these decide.
    pub(super) bits: Option<u64>,
    /// A word that keeps the condition from holding, where this can be told.
    pub(super) lacks: Option<Read>,
}

/// How the values of one lane are found.
pub(super) struct Lane<'a> {
    /// A register that the loop does not write, or a constant.
    pub(super) value: &'a dyn Fn(Operand, bool) -> Option<u64>,
    /// The word that a load or an atomic of the loop reads, and what is there now.
    pub(super) word: &'a dyn Fn(Read) -> Option<(Word, u64)>,
}

/// A comparison, or several.
struct Truth {
    /// The text of the condition.
    text: String,
    /// Where it is one comparison of an expression with a number: the expression and its value now.
    compared: Option<(String, Option<String>)>,
    plain: Option<(Read, Cmp, u64)>,
    bits: Option<u64>,
    /// Whether it holds now.
    holds: Option<bool>,
    /// If it does not: a word that it depends on.
    lacks: Option<Read>,
    /// One of two conditions suffices.
    is_either: bool,
    /// It compares what two loads found in one place, as a reader does that looks whether a writer came in between.
    is_same: bool,
}

/// What happens if the condition of a branch holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Leaves,
    /// The loop goes on to its next branch, instead of to its next iteration.
    Continues,
}

struct Reader<'a> {
    kernel: &'a Kernel,
    spin: &'a Loop,
    lane: &'a Lane<'a>,
    /// The words met so far, by what reads them.
    words: Vec<(Read, Word, u64)>,
}

/// What ends the loop's wait for what `poll` reads.
pub(super) fn condition(kernel: &Kernel, spin: &Loop, poll: Pc, lane: &Lane<'_>) -> Option<Condition> {
    let mut reader = Reader { kernel, spin, lane, words: Vec::new() };
    let mut branches: Vec<(Then, Truth)> = Vec::new();
    for pc in (spin.header.0..=last_of(spin).0).map(Pc) {
        let inst = &kernel.code[pc.index()];
        let (Op::Bra, Operand::Imm(target)) = (inst.op, inst.src[0]) else { continue };
        let (pred, taken_if) = match inst.guard {
            Guard::Always => continue,
            Guard::If(pred) => (pred, true),
            Guard::Unless(pred) => (pred, false),
        };
        let then = match Pc(target) {
            target if !contains(spin, target) => Then::Leaves,
            target if target == spin.header => Then::Continues,
            _ => continue,
        };
        if kernel.atomic_at(pc).is_some() {
            continue;
        }
        let known = reader.words.len();
        match reader.truth(pred, pc, taken_if == (then == Then::Leaves), DEEPEST) {
            Some(truth) if reader.words.len() > known || truth.lacks.is_some() => {
                branches.push((then, truth));
            }
            _ => reader.words.truncate(known),
        }
    }
    if !reader.words.iter().any(|((at, _), ..)| *at == poll) {
        return None;
    }
    let (_, last) = branches.pop()?;
    let all = branches
        .into_iter()
        .rev()
        .fold(last, |later, (then, truth)| joined(truth, later, then == Then::Continues));
    Some(reader.told(all, poll))
}

impl Reader<'_> {
    fn told(&self, truth: Truth, poll: Pc) -> Condition {
        if let Some((read, cmp, value)) = truth.plain
            && read == (poll, 0)
        {
            return Condition::Plain(cmp, value);
        }
        if truth.holds == Some(true) {
            return Condition::Met;
        }
        let mut values: Vec<String> = Vec::new();
        for value in self.words.iter().map(|(_, word, value)| format!("{word} is {}", number(*value))) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let now = match &truth.compared {
            Some((expression, Some(value)))
                if self.words.iter().any(|(_, word, _)| word.to_string() == *expression) =>
            {
                format!("it is {value}")
            }
            Some((_, Some(value))) => format!("it is {value}: {}", list(&values, 4)),
            _ => list(&values, 4),
        };
        let text = format!("{}; {now}", truth.text);
        Condition::Derived(Derived { text, bits: truth.bits, lacks: truth.lacks })
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
        let constant = |value: u64| Number::atom(shown(value & mask(ty), ty), Some(value & mask(ty)));
        let Operand::Reg(reg) = operand else {
            return Some(constant((self.lane.value)(operand, ty.is_wide())?));
        };
        let wide = ty.is_wide();
        let kernel = self.kernel;
        let Some((pc, inst)) = self.definition(at, |inst| Self::writes(kernel, inst, reg, wide)).ok()? else {
            return Some(constant((self.lane.value)(operand, wide)?));
        };
        let inst = *inst;
        if depth == 0 {
            return None;
        }
        if inst.dst != Dst::Reg(reg) {
            return self.element(pc, &inst, reg);
        }
        let depth = depth - 1;
        let [a, b, c, _] = inst.src;
        let mut of = |operand: Operand, ty: Ty| self.number(operand, ty, pc, depth);
        let infix = match inst.op {
            Op::Ld { .. } | Op::Atom(..) | Op::LdLock(_) => return self.word((pc, 0)),
            Op::Mov(from) => return of(a, from),
            Op::Cvt(cvt) if !cvt.to.is_float() && !cvt.from.is_float() => {
                let from = of(a, cvt.from)?;
                let value = from.value.map(|value| value & mask(cvt.to));
                let is_word = from.is_word.filter(|_| cvt.to.bits() >= cvt.from.bits());
                return Some(Number { value, is_word, ..from });
            }
            Op::Unpack64(half) => {
                let from = of(a, Ty::B64)?;
                let name = if half == 0 { "low" } else { "high" };
                let value = from.value.map(|value| value >> (32 * half) & 0xffff_ffff);
                return Some(Number::atom(format!("the {name} half of {}", from.text), value));
            }
            Op::IAdd(ty, _) => {
                let (a, b) = (of(a, ty)?, of(b, ty)?);
                let value = both(&a, &b, u64::wrapping_add);
                let least = 1u64 << (ty.bits() - 1);
                match b.value {
                    Some(by) if b.is_word.is_none() && b.is_atom && by > least => {
                        let by = by.wrapping_neg() & mask(ty);
                        Infix("-", a, Number { text: number(by), value: Some(by), ..b }, value)
                    }
                    _ => Infix("+", a, b, value),
                }
            }
            Op::ISub(ty, _) => binary("-", of(a, ty)?, of(b, ty)?, u64::wrapping_sub),
            Op::IMul(ty, Part::Lo) => binary("*", of(a, ty)?, of(b, ty)?, u64::wrapping_mul),
            Op::IMad(ty, Part::Lo, _) => {
                let product = binary("*", of(a, ty)?, of(b, ty)?, u64::wrapping_mul).told(ty);
                binary("+", product, of(c, ty)?, u64::wrapping_add)
            }
            Op::IDiv(ty) if !ty.is_signed() => {
                binary("/", of(a, ty)?, of(b, ty)?, |a, b| a.checked_div(b).unwrap_or(u64::MAX))
            }
            Op::IRem(ty) if !ty.is_signed() => {
                binary("%", of(a, ty)?, of(b, ty)?, |a, b| a.checked_rem(b).unwrap_or(u64::MAX))
            }
            Op::Logic(Logic::And, ty) => binary("&", of(a, ty)?, of(b, ty)?, |a, b| a & b),
            Op::Logic(Logic::Or, ty) => binary("|", of(a, ty)?, of(b, ty)?, |a, b| a | b),
            Op::Logic(Logic::Xor, ty) => binary("^", of(a, ty)?, of(b, ty)?, |a, b| a ^ b),
            Op::Shl(ty) => {
                binary("<<", of(a, ty)?, of(b, Ty::U32)?, |a, b| a.checked_shl(b as u32).unwrap_or(0))
            }
            Op::Shr(ty) => binary(">>", of(a, ty)?, of(b, Ty::U32)?, |a, b| {
                let by = (b as u32).min(63);
                if ty.is_signed() {
                    (signed(a, ty) >> by) as u64
                } else {
                    a.checked_shr(b as u32).unwrap_or(0)
                }
            }),
            Op::Bfe(ty) if !ty.is_signed() => {
                let (a, from, length) = (of(a, ty)?, of(b, Ty::U32)?.value?, of(c, Ty::U32)?.value?);
                let last = (from + length).checked_sub(1).filter(|last| *last < 64)?;
                let value = a.value.map(|value| value >> from & (u64::MAX >> (64 - length)));
                return Some(Number::atom(format!("bits {from} to {last} of {}", a.text), value));
            }
            Op::FAdd(ty @ (Ty::F32 | Ty::F64), _) => float("+", of(a, ty)?, of(b, ty)?, ty, |a, b| a + b),
            Op::FSub(ty @ (Ty::F32 | Ty::F64), _) => float("-", of(a, ty)?, of(b, ty)?, ty, |a, b| a - b),
            Op::FMul(ty @ (Ty::F32 | Ty::F64), _) => float("*", of(a, ty)?, of(b, ty)?, ty, |a, b| a * b),
            Op::FFma(ty @ (Ty::F32 | Ty::F64), _) => {
                let product = float("*", of(a, ty)?, of(b, ty)?, ty, |a, b| a * b).told(ty);
                float("+", product, of(c, ty)?, ty, |a, b| a + b)
            }
            Op::Not(ty) => return Some(unary("~", of(a, ty)?, |a| !a & mask(ty))),
            Op::INeg(ty) => return Some(unary("-", of(a, ty)?, |a| a.wrapping_neg() & mask(ty))),
            Op::Popc(ty) => return Some(call("popc", [of(a, ty)?], |[a]| a.count_ones().into())),
            Op::IMin(ty, _) | Op::IMax(ty, _) => {
                let is_min = matches!(inst.op, Op::IMin(..));
                let name = if is_min { "min" } else { "max" };
                let of = [of(a, ty)?, of(b, ty)?];
                return Some(call(name, of, |[a, b]| if is_less(a, b, ty) == is_min { a } else { b }));
            }
            Op::IAbs(ty) => {
                return Some(call("abs", [of(a, ty)?], |[a]| signed(a, ty).unsigned_abs() & mask(ty)));
            }
            _ => return self.other(pc, &inst, depth),
        };
        Some(infix.told(ty))
    }

    /// What another operation computes: it is named, but its value is not known.
    fn other(&mut self, pc: Pc, inst: &Inst, depth: u32) -> Option<Number> {
        let name = warploom_isa::spell::mnemonic(inst.op).to_lowercase();
        let mut arguments = Vec::new();
        for operand in
            inst.src.into_iter().filter(|operand| matches!(operand, Operand::Reg(_) | Operand::Imm(_)))
        {
            arguments.push(self.number(operand, Ty::U32, pc, depth)?.text);
        }
        let has_word = arguments.iter().any(|argument| argument.contains('['));
        has_word.then(|| Number::atom(format!("{name}({})", arguments.join(", ")), None))
    }

    /// One register of a load of several.
    fn element(&mut self, pc: Pc, inst: &Inst, reg: Reg) -> Option<Number> {
        let (Op::Ld { .. }, Dst::Vec(list)) = (inst.op, inst.dst) else { return None };
        let at = self.kernel.vectors[list.index()].iter().position(|to| *to == Operand::Reg(reg))?;
        self.word((pc, at as u32))
    }

    fn word(&mut self, read: Read) -> Option<Number> {
        let (word, value) = match self.words.iter().find(|(at, ..)| *at == read) {
            Some((_, word, value)) => (word.clone(), *value),
            None => {
                let (word, value) = (self.lane.word)(read)?;
                self.words.push((read, word.clone(), value));
                (word, value)
            }
        };
        Some(Number { is_word: Some(read), ..Number::atom(word.to_string(), Some(value)) })
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
            // Compilers write the complement of a predicate, or itself, as its sum with a constant.
            Op::LogicPred(Logic::Xor) => {
                match (self.constant_predicate(a, pc), self.constant_predicate(b, pc)) {
                    (_, Some(constant)) => self.operand(a, pc, wanted != constant, depth),
                    (Some(constant), _) => self.operand(b, pc, wanted != constant, depth),
                    _ => None,
                }
            }
            Op::NotPred => self.operand(a, pc, !wanted, depth),
            Op::MovPred => self.operand(a, pc, wanted, depth),
            _ => None,
        }
    }

    /// The value of a predicate that the loop sets to a constant.
    fn constant_predicate(&self, operand: Operand, at: Pc) -> Option<bool> {
        let (pred, is_so) = match operand {
            Operand::Pred(pred) => (pred, true),
            Operand::NotPred(pred) => (pred, false),
            _ => return None,
        };
        let (_, inst) =
            self.definition(at, |inst| [inst.dst, inst.dst2].contains(&Dst::Pred(pred))).ok()??;
        match (inst.op, inst.src[0]) {
            (Op::MovPred, Operand::Imm(value)) => Some((value != 0) == is_so),
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
        // A number that shows its type is told here.
        let is_negative = ty.is_signed() && b.value.is_some_and(|value| value >> (ty.bits() - 1) & 1 == 1);
        let plain = a.is_word.filter(|_| with_constant && !ty.is_float() && !is_negative);
        let plain = plain.and_then(|read| Some((read, cmp, b.value?)));
        let compared = with_constant.then(|| (a.text.clone(), a.value.map(|value| shown(value, ty))));
        let bits = a.bits.filter(|_| with_constant);
        let holds = a.value.zip(b.value).and_then(|(a, b)| compares(cmp, ty, a, b));
        let word = |text: &str| {
            self.words.iter().find(|(_, word, _)| text.contains(&word.to_string())).map(|(read, ..)| *read)
        };
        let lacks = if holds == Some(true) { None } else { word(&a.text).or_else(|| word(&b.text)) };
        let is_same = a.text == b.text;
        Some(Truth { text, compared, plain, bits, holds, lacks, is_either: false, is_same })
    }
}

/// Both, or one of them.
fn joined(a: Truth, b: Truth, are_both: bool) -> Truth {
    // That a word equals itself keeps nobody waiting.
    let says_nothing = |truth: &Truth| are_both && truth.is_same && truth.holds == Some(true);
    if says_nothing(&a) || says_nothing(&b) {
        return if says_nothing(&a) { b } else { a };
    }
    let part = |truth: &Truth| match are_both && truth.is_either {
        true => format!("({})", truth.text),
        false => truth.text.clone(),
    };
    let text = format!("{} {} {}", part(&a), if are_both { "and" } else { "or" }, part(&b));
    let holds = match (a.holds, b.holds) {
        (Some(a), Some(b)) => Some(if are_both { a && b } else { a || b }),
        (Some(one), None) | (None, Some(one)) if one != are_both => Some(one),
        _ => None,
    };
    let lacks = if holds == Some(true) { None } else { a.lacks.or(b.lacks) };
    let (compared, plain, bits) = (None, None, None);
    Truth { text, compared, plain, bits, holds, lacks, is_either: !are_both, is_same: false }
}
