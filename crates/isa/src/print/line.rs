//! One instruction as one line of text. Start at [`Text::line`].

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::form::{Slot, float_immediate, form};
use crate::inst::*;
use crate::module::*;
use crate::spell;
use crate::types::*;

/// The lists of a program that an instruction's operands index into.
pub(super) trait Program {
    fn vector(&self, id: VecId) -> &[Operand];
    fn table(&self, table: u32) -> &[Pc];
    fn imm(&self, id: ImmId) -> u64;
    fn symbol(&self, id: SymbolUseId) -> (String, SymbolUse);
    /// The callee, and the copies in and out.
    fn call(&self, site: u32) -> (Called, &[FrameCopy], &[FrameCopy]);
    /// The name of the kernel's parameter at an offset.
    fn param(&self, _offset: u32) -> Option<&str> {
        None
    }
}

pub(super) enum Called {
    Name(String),
    Operand(Operand),
}

/// What a branch's line says about its reconvergence point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meet {
    /// Nothing: a reader of the listing computes the same point.
    Unsaid,
    /// An operand that the front end reads back.
    Stated(Pc),
    /// A comment for people.
    Noted(Pc),
}

impl Meet {
    pub(super) fn noted(inst: &Inst) -> Meet {
        inst.reconvergence().map_or(Meet::Unsaid, Meet::Noted)
    }
}

/// Offset of a kernel's parameters in constant bank 0, as on Fermi.
pub const PARAM_BASE: u32 = 0x20;

pub(super) struct Text<'a, P> {
    pub(super) program: &'a P,
    pub(super) labels: &'a BTreeMap<Pc, String>,
}

impl<P: Program> Text<'_, P> {
    pub(super) fn line(&self, f: &mut dyn Write, pc: Pc, inst: &Inst, meet: Meet, note: &str) -> fmt::Result {
        if let Some(label) = self.labels.get(&pc) {
            writeln!(f, "{label}:{note}")?;
        }
        let guard = match inst.guard {
            Guard::Always => String::new(),
            Guard::If(p) => format!("@P{}", p.0),
            Guard::Unless(p) => format!("@!P{}", p.0),
        };
        let op = spell::canonical(without_spurious_width(inst));
        let mut mnemonic = spell::mnemonic(op);
        if matches!(op, Op::Atom(..)) && inst.dst == Dst::None {
            mnemonic = mnemonic.replacen("ATOM", "RED", 1);
        }
        let operands = self.operands(op, inst);
        let stated = match meet {
            Meet::Stated(pc) => format!(" (MEET {})", self.label(pc)),
            _ => String::new(),
        };
        let text = format!("{mnemonic} {operands}");
        write!(f, "    {guard:<5} {}{stated};", text.trim_end())?;
        if let Meet::Noted(pc) = meet {
            write!(f, "  // meets at {}", self.label(pc))?;
        }
        writeln!(f)
    }

    fn label(&self, pc: Pc) -> String {
        match pc {
            Pc::RETURN => "RET".to_string(),
            pc => self.labels.get(&pc).cloned().unwrap_or_else(|| format!("L{}", pc.0)),
        }
    }

    fn operands(&self, op: Op, inst: &Inst) -> String {
        let slots = form(op, inst.dst != Dst::None);
        let shown = slots.iter().rposition(|&slot| !is_default(slot, inst)).map_or(0, |last| last + 1);
        let texts: Vec<String> = slots[..shown].iter().map(|&slot| self.slot(slot, op, inst)).collect();
        texts.join(", ")
    }

    fn slot(&self, slot: Slot, op: Op, inst: &Inst) -> String {
        let shape = op.shape();
        let src = |i: u8| inst.src[i as usize];
        match slot {
            Slot::Dst => self.dst(inst.dst, shape.dst),
            Slot::DstPred => dst_pred(inst.dst),
            Slot::Dst2Pred => dst_pred(inst.dst2),
            Slot::Src(i) | Slot::Opt(i) => self.value(op, src(i), shape.src[i as usize]),
            Slot::Count(i) if src(i) == Operand::None => "RZ".to_string(),
            Slot::Count(i) => self.value(op, src(i), Width::One),
            Slot::Combined(i) if src(i) == Operand::None => "PT".to_string(),
            Slot::Pred(i) | Slot::OptPred(i) | Slot::Combined(i) => pred(src(i)),
            Slot::Memory => self.memory(op, inst),
            Slot::Special => match op {
                Op::Special(special) => spell::special(special).to_string(),
                _ => String::new(),
            },
            Slot::Fixed(text) => text.to_string(),
            Slot::Target => match src(0) {
                Operand::Imm(pc) => self.label(Pc(pc)),
                _ => "_".to_string(),
            },
            Slot::Table => {
                let Operand::Imm(table) = src(1) else { return "{}".to_string() };
                let targets: Vec<String> =
                    self.program.table(table).iter().map(|&pc| self.label(pc)).collect();
                format!("{{{}}}", targets.join(", "))
            }
            Slot::Callee => self.callee(src(0)),
        }
    }

    fn callee(&self, site: Operand) -> String {
        let Operand::Imm(site) = site else { return "_".to_string() };
        let (called, args, returns) = self.program.call(site);
        let mut text = match called {
            Called::Name(name) => name,
            Called::Operand(operand) => format!("[{}]", self.value(Op::Call, operand, Width::One)),
        };
        for (what, copies) in [("IN", args), ("OUT", returns)] {
            for c in copies {
                let _ = write!(text, ", {what} {:#x} {:#x} {:#x}", c.caller, c.callee, c.bytes);
            }
        }
        text
    }

    fn dst(&self, dst: Dst, width: Width) -> String {
        match dst {
            Dst::None => "RZ".to_string(),
            Dst::Reg(r) => format!("R{}", r.0),
            Dst::Pred(p) => format!("P{}", p.0),
            Dst::Vec(id) => self.vector(id, width),
        }
    }

    /// Consecutive registers are named by the first, as on the hardware.
    fn vector(&self, id: VecId, width: Width) -> String {
        let elements = self.program.vector(id);
        if let Some(&Operand::Reg(first)) = elements.first() {
            let step = width.words();
            let follows = |(i, e): (u32, &Operand)| *e == Operand::Reg(Reg(first.0 + i * step));
            if (0..).zip(elements).all(follows) {
                return format!("R{}", first.0);
            }
        }
        let element = |&e: &Operand| match e {
            Operand::None => "RZ".to_string(),
            e => self.value(Op::Mov(Ty::B32), e, width),
        };
        format!("{{{}}}", elements.iter().map(element).collect::<Vec<_>>().join(", "))
    }

    fn value(&self, op: Op, operand: Operand, width: Width) -> String {
        match operand {
            Operand::None => "_".to_string(),
            Operand::Reg(r) => format!("R{}", r.0),
            Operand::Imm(0) if !matches!(op, Op::Bar(_)) => "RZ".to_string(),
            Operand::Imm(bits) => {
                let small = bits as i32;
                match float_immediate(op) {
                    Some(ty) => float(ty, u64::from(bits)),
                    None if width == Width::One && (-0x10000..0).contains(&small) => {
                        format!("-{:#x}", small.unsigned_abs())
                    }
                    None => format!("{bits:#x}"),
                }
            }
            Operand::Imm64(id) => match float_immediate(op) {
                Some(ty) => float(ty, self.program.imm(id)),
                None => format!("{:#x}", self.program.imm(id)),
            },
            Operand::Pred(_) | Operand::NotPred(_) => pred(operand),
            Operand::Vec(id) => self.vector(id, width),
            Operand::Symbol(id) => self.symbol(id, 0),
            Operand::Frame => "FRAME".to_string(),
        }
    }

    /// A symbol's address plus an offset.
    fn symbol(&self, id: SymbolUseId, offset: i64) -> String {
        let (name, target) = self.program.symbol(id);
        let sum = displacement(target.offset.wrapping_add(offset));
        if target.generic { format!("generic(&{name}){sum}") } else { format!("&{name}{sum}") }
    }

    fn memory(&self, op: Op, inst: &Inst) -> String {
        let offset = match inst.src[1] {
            Operand::Imm(offset) => i64::from(offset as i32),
            _ => 0,
        };
        let bank = match op {
            Op::Ld { access, .. } => match access.space {
                Space::Param => Some((0, i64::from(PARAM_BASE))),
                Space::Const => Some((2, 0)),
                _ => None,
            },
            _ => None,
        };
        let bias = bank.map_or(0, |(_, bias)| bias);
        let inner = match inst.src[0] {
            Operand::Symbol(id) => self.symbol(id, offset),
            Operand::Imm(base) if bank.is_some() => {
                let at = i64::from(base) + offset;
                let name = u32::try_from(at).ok().filter(|_| bias != 0).and_then(|at| self.program.param(at));
                match name.filter(|name| !reserved(name)) {
                    Some(name) => name.to_string(),
                    None => format!("{:#x}", at + bias),
                }
            }
            base => {
                format!("{}{}", self.value(Op::Mov(Ty::B64), base, Width::Two), displacement(offset + bias))
            }
        };
        match bank {
            Some((bank, _)) => format!("c[{bank:#x}][{inner}]"),
            None => format!("[{inner}]"),
        }
    }
}

/// Whether a listing would read a name as something else: a register, predicate or keyword.
pub(super) fn reserved(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let numbered = |letter: char| {
        upper
            .strip_prefix(letter)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(upper.as_str(), "RZ" | "PT" | "FRAME" | "RET" | "C" | "_") || numbered('R') || numbered('P')
}

/// The operation with a wide address only where the address is in a register: no other operand has a width.
fn without_spurious_width(inst: &Inst) -> Op {
    let wide = matches!(inst.src[0], Operand::Reg(_));
    let narrow = |access: Access| Access { wide_address: access.wide_address && wide, ..access };
    match inst.op {
        Op::Ld { access, wide } => Op::Ld { access: narrow(access), wide },
        Op::St(access) => Op::St(narrow(access)),
        Op::LdLock(access) => Op::LdLock(narrow(access)),
        Op::StUnlock(access) => Op::StUnlock(narrow(access)),
        Op::Atom(op, access) => Op::Atom(op, narrow(access)),
        Op::Mbarrier(op, flag) => Op::Mbarrier(op, flag && wide && op != MbarrierOp::PendingCount),
        op => op,
    }
}

/// Whether an operand at the end of the line has its default value and can be omitted.
fn is_default(slot: Slot, inst: &Inst) -> bool {
    let src = |i: u8| inst.src[i as usize];
    match slot {
        Slot::Opt(i) | Slot::Count(i) => src(i) == Operand::None,
        Slot::OptPred(i) => {
            src(i) == Operand::None || matches!(inst.op, Op::Bar(_)) && src(i) == Operand::Imm(1)
        }
        _ => false,
    }
}

fn dst_pred(dst: Dst) -> String {
    match dst {
        Dst::Pred(p) => format!("P{}", p.0),
        _ => "PT".to_string(),
    }
}

fn pred(operand: Operand) -> String {
    match operand {
        Operand::Pred(p) => format!("P{}", p.0),
        Operand::NotPred(p) => format!("!P{}", p.0),
        Operand::Imm(0) => "!PT".to_string(),
        Operand::Imm(_) => "PT".to_string(),
        _ => "_".to_string(),
    }
}

/// A byte offset as Fermi's listings show it: `+0x4`, `+-0x4`.
fn displacement(offset: i64) -> String {
    match offset {
        0 => String::new(),
        n if n < 0 => format!("+-{:#x}", n.unsigned_abs()),
        n => format!("+{n:#x}"),
    }
}

/// A finite number in decimal; anything else as its bits.
fn float(ty: Ty, bits: u64) -> String {
    let (finite, text) = match ty {
        Ty::F32 => {
            let value = f32::from_bits(bits as u32);
            (value.is_finite() && bits <= u64::from(u32::MAX), format!("{value:?}"))
        }
        _ => {
            let value = f64::from_bits(bits);
            (value.is_finite(), format!("{value:?}"))
        }
    };
    if finite { text } else { format!("{bits:#x}") }
}
