//! Programs as text: one line per instruction, in the spelling of PTX as far as there is one.
//!
//! The text is for people and for tests that compare it whole; it is not read back.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

use crate::inst::*;
use crate::kernel::*;
use crate::module::*;
use crate::types::*;

/// How registers are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `%r3`, `%p0`.
    Virtual,
    /// `R3`, `P0`.
    Physical,
}

/// Shows a function's code. Labels are the body's own where it has them, else `L` and the instruction's number.
pub fn body(body: &Body, naming: Naming) -> BodyText<'_> {
    BodyText { body, naming }
}

/// A function's code as text.
#[derive(Clone, Copy, Debug)]
pub struct BodyText<'a> {
    body: &'a Body,
    naming: Naming,
}

impl Display for BodyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body;
        let mut labels = targets(&body.insts, &body.tables);
        for (pc, name) in &body.labels {
            labels.insert(*pc, name.clone());
        }
        let text = Text { program: body, naming: self.naming, labels: &labels };
        (0..body.insts.len() as u32).try_for_each(|pc| text.line(f, Pc(pc), &body.insts[pc as usize], ""))
    }
}

impl Display for Kernel {
    /// The listing: what the kernel needs, then each function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recursive = if self.recursive { ", recursive" } else { "" };
        writeln!(
            f,
            "kernel {}: {} registers, {} bytes of parameters, {} local, {} shared{recursive}",
            self.name, self.registers, self.param_bytes, self.local_bytes, self.static_shared_bytes
        )?;
        for param in &self.params {
            writeln!(f, "  param   {:>6}  {:<16} {} bytes", param.offset, param.name, param.bytes)?;
        }
        for var in &self.shared {
            match var.bytes {
                0 => writeln!(f, "  shared  {:>6}  {:<16} dynamic", var.offset, var.name)?,
                bytes => writeln!(f, "  shared  {:>6}  {:<16} {bytes} bytes", var.offset, var.name)?,
            }
        }
        let mut labels = targets(&self.code, &self.tables);
        let mut notes: BTreeMap<Pc, String> = BTreeMap::new();
        for l in &self.loops {
            labels.entry(l.header).or_insert_with(|| format!("L{}", l.header.0));
            let note = notes.entry(l.header).or_default();
            let what = if l.of_atomic { "an atomic's loop" } else { "loop" };
            write!(note, "  ; {what}, depth {}", l.depth)?;
            if let Some(on) = l.spins_on {
                write!(note, ", spins on {}", on.0)?;
            }
        }
        let text = Text { program: self, naming: Naming::Physical, labels: &labels };
        for function in &self.functions {
            writeln!(
                f,
                "\nfunction {}: {} registers, {} predicates, frame of {} bytes",
                function.name, function.registers, function.predicates, function.frame_bytes
            )?;
            for pc in (function.start.0..function.end.0).map(Pc) {
                let note = notes.get(&pc).map_or("", String::as_str);
                text.line(f, pc, &self.code[pc.index()], note)?;
            }
        }
        Ok(())
    }
}

/// A label for everything that is jumped to or met at.
fn targets(code: &[Inst], tables: &[Vec<Pc>]) -> BTreeMap<Pc, String> {
    let branches = code.iter().flat_map(|inst| inst.branch_target().into_iter().chain(inst.reconvergence()));
    let all = branches.chain(tables.iter().flatten().copied()).filter(|&pc| pc != Pc::RETURN);
    all.map(|pc| (pc, format!("L{}", pc.0))).collect()
}

/// What the printer needs to know beyond the instruction.
trait Program {
    fn vector(&self, id: VecId) -> &[Operand];
    fn table(&self, table: u32) -> &[Pc];
    fn imm(&self, id: ImmId) -> u64;
    fn symbol(&self, f: &mut dyn Write, id: SymbolUseId) -> fmt::Result;
    /// The callee's name or operand, and the copies in and out.
    fn call(&self, site: u32) -> (Called, &[FrameCopy], &[FrameCopy]);
}

enum Called {
    Name(String),
    Operand(Operand),
}

impl Program for Body {
    fn vector(&self, id: VecId) -> &[Operand] {
        &self.vectors[id.index()]
    }
    fn table(&self, table: u32) -> &[Pc] {
        &self.tables[table as usize]
    }
    fn imm(&self, id: ImmId) -> u64 {
        self.imms[id.index()]
    }
    fn symbol(&self, f: &mut dyn Write, id: SymbolUseId) -> fmt::Result {
        let target = self.symbols[id.index()];
        let (open, close) = if target.generic { ("generic(", ")") } else { ("", "") };
        match target.symbol {
            Symbol::Variable(v) => write!(f, "{open}var{}{close}", v.0)?,
            Symbol::Function(function) => write!(f, "{open}fn{}{close}", function.0)?,
        }
        match target.offset {
            0 => Ok(()),
            offset => write!(f, "{offset:+}"),
        }
    }
    fn call(&self, site: u32) -> (Called, &[FrameCopy], &[FrameCopy]) {
        let site = &self.calls[site as usize];
        let called = match site.callee {
            Callee::Direct(id) => Called::Name(format!("fn{}", id.0)),
            Callee::Indirect(operand) => Called::Operand(operand),
        };
        (called, &site.args, &site.returns)
    }
}

impl Program for Kernel {
    fn vector(&self, id: VecId) -> &[Operand] {
        &self.vectors[id.index()]
    }
    fn table(&self, table: u32) -> &[Pc] {
        &self.tables[table as usize]
    }
    fn imm(&self, id: ImmId) -> u64 {
        self.imms[id.index()]
    }
    fn symbol(&self, f: &mut dyn Write, id: SymbolUseId) -> fmt::Result {
        write!(f, "symbol{}", id.0)
    }
    fn call(&self, site: u32) -> (Called, &[FrameCopy], &[FrameCopy]) {
        let site = &self.calls[site as usize];
        let called = match site.callee {
            LinkedCallee::Direct(at) => {
                Called::Name(self.functions.get(at as usize).map_or_else(|| "?".into(), |f| f.name.clone()))
            }
            LinkedCallee::Indirect(operand) => Called::Operand(operand),
        };
        (called, &site.args, &site.returns)
    }
}

struct Text<'a, P> {
    program: &'a P,
    naming: Naming,
    labels: &'a BTreeMap<Pc, String>,
}

impl<P: Program> Text<'_, P> {
    fn line(&self, f: &mut dyn Write, pc: Pc, inst: &Inst, note: &str) -> fmt::Result {
        if let Some(label) = self.labels.get(&pc) {
            writeln!(f, "{label}:{note}")?;
        }
        let guard = match inst.guard {
            Guard::Always => String::new(),
            Guard::If(p) => format!("@{}", self.pred(p)),
            Guard::Unless(p) => format!("@!{}", self.pred(p)),
        };
        let mut operands = String::new();
        self.operands(&mut operands, inst)?;
        let line = format!("{:>5}  {guard:<6} {:<18} {operands}", pc.0, mnemonic(inst.op));
        writeln!(f, "{}", line.trim_end())
    }

    fn operands(&self, f: &mut String, inst: &Inst) -> fmt::Result {
        let shape = inst.op.shape();
        let float = float_operand(inst.op);
        let memory = memory_operand(inst.op);
        let mut first = true;
        let mut sep = |f: &mut String| if std::mem::take(&mut first) { Ok(()) } else { f.write_str(", ") };
        match inst.op {
            Op::Bra => {
                if let Some(target) = inst.branch_target() {
                    f.push_str(&self.label(target));
                }
                return self.meets(f, inst);
            }
            Op::Brx => {
                self.operand(f, inst.src[0], Width::One, None)?;
                f.push_str(", {");
                if let Operand::Imm(table) = inst.src[1] {
                    let targets: Vec<String> =
                        self.program.table(table).iter().map(|&pc| self.label(pc)).collect();
                    f.push_str(&targets.join(", "));
                }
                f.push('}');
                return self.meets(f, inst);
            }
            Op::Call => {
                let Operand::Imm(site) = inst.src[0] else { return Ok(()) };
                let (called, args, returns) = self.program.call(site);
                match called {
                    Called::Name(name) => f.push_str(&name),
                    Called::Operand(operand) => self.operand(f, operand, Width::One, None)?,
                }
                let copies = |what: &str, copies: &[FrameCopy], arrow: &str| {
                    let list: Vec<String> = copies
                        .iter()
                        .map(|c| format!("frame+{} {arrow} {} ({} bytes)", c.caller, c.callee, c.bytes))
                        .collect();
                    if list.is_empty() { String::new() } else { format!("  ; {what} {}", list.join(", ")) }
                };
                f.push_str(&copies("in", args, "->"));
                f.push_str(&copies("out", returns, "<-"));
                return Ok(());
            }
            _ => {}
        }
        for dst in [inst.dst, inst.dst2] {
            let operand = match dst {
                Dst::None => continue,
                Dst::Reg(r) => Operand::Reg(r),
                Dst::Pred(p) => Operand::Pred(p),
                Dst::Vec(v) => Operand::Vec(v),
            };
            sep(f)?;
            self.operand(f, operand, shape.dst, None)?;
        }
        if let Op::Special(register) = inst.op {
            sep(f)?;
            f.push_str(&special(register));
        }
        let sources = inst.src.iter().rposition(|&s| s != Operand::None).map_or(0, |last| last + 1);
        let mut at = 0;
        while at < sources {
            sep(f)?;
            if memory && at == 0 {
                f.push('[');
                self.operand(f, inst.src[0], shape.src[0], None)?;
                if let Operand::Imm(offset) = inst.src[1]
                    && offset != 0
                {
                    write!(f, "{:+}", offset as i32)?;
                }
                f.push(']');
                at = 2;
                continue;
            }
            self.operand(f, inst.src[at], shape.src[at], float)?;
            at += 1;
        }
        Ok(())
    }

    fn operand(&self, f: &mut String, operand: Operand, width: Width, float: Option<Ty>) -> fmt::Result {
        match operand {
            Operand::None => f.write_char('_'),
            Operand::Reg(r) => match self.naming {
                Naming::Virtual => write!(f, "%r{}", r.0),
                Naming::Physical => write!(f, "R{}", r.0),
            },
            Operand::Imm(bits) => match float {
                Some(Ty::F32) => write!(f, "0f{bits:08X}"),
                Some(Ty::F64) => write!(f, "0d{bits:016X}"),
                _ if width == Width::One && (bits as i32).unsigned_abs() < 1 << 16 => {
                    write!(f, "{}", bits as i32)
                }
                _ if bits < 1 << 16 => write!(f, "{bits}"),
                _ => write!(f, "{bits:#x}"),
            },
            Operand::Imm64(id) => match float {
                Some(Ty::F64) => write!(f, "0d{:016X}", self.program.imm(id)),
                _ => write!(f, "{:#x}", self.program.imm(id)),
            },
            Operand::Pred(p) => f.write_str(&self.pred(p)),
            Operand::NotPred(p) => write!(f, "!{}", self.pred(p)),
            Operand::Vec(id) => {
                f.push('{');
                for (i, &element) in self.program.vector(id).iter().enumerate() {
                    f.push_str(if i == 0 { "" } else { ", " });
                    self.operand(f, element, width, float)?;
                }
                f.write_char('}')
            }
            Operand::Symbol(id) => self.program.symbol(f, id),
            Operand::Frame => f.write_str("frame"),
        }
    }

    fn pred(&self, p: Pred) -> String {
        match self.naming {
            Naming::Virtual => format!("%p{}", p.0),
            Naming::Physical => format!("P{}", p.0),
        }
    }

    fn label(&self, pc: Pc) -> String {
        self.labels.get(&pc).cloned().unwrap_or_else(|| format!("L{}", pc.0))
    }

    fn meets(&self, f: &mut String, inst: &Inst) -> fmt::Result {
        match inst.reconvergence() {
            None => Ok(()),
            Some(Pc::RETURN) => f.write_str("  ; meets at return"),
            Some(pc) => write!(f, "  ; meets at {}", self.label(pc)),
        }
    }
}

/// Whether the first two sources are an address and its offset.
fn memory_operand(op: Op) -> bool {
    match op {
        Op::Ld { .. } | Op::St(_) | Op::LdLock(_) | Op::StUnlock(_) | Op::Atom(..) | Op::Prefetch => true,
        Op::Mbarrier(op, _) => op != MbarrierOp::PendingCount,
        _ => false,
    }
}

/// The type of an opcode's floating-point sources.
fn float_operand(op: Op) -> Option<Ty> {
    let ty = match op {
        Op::FAdd(ty, _)
        | Op::FSub(ty, _)
        | Op::FMul(ty, _)
        | Op::FFma(ty, _)
        | Op::FDiv(ty, _)
        | Op::FAbs(ty, _)
        | Op::FNeg(ty, _)
        | Op::FMin(ty, _)
        | Op::FMax(ty, _)
        | Op::FRounded(_, ty, _)
        | Op::FApprox(_, ty, _)
        | Op::Testp(_, ty)
        | Op::Copysign(ty)
        | Op::Mov(ty)
        | Op::Selp(ty)
        | Op::Slct { ty, .. }
        | Op::Setp { ty, .. }
        | Op::Set { src: ty, .. } => ty,
        Op::FDivApprox { .. } => Ty::F32,
        Op::Cvt(cvt) | Op::CvtPair(cvt) => cvt.from,
        Op::St(access) | Op::Atom(_, access) => access.ty,
        _ => return None,
    };
    ty.is_float().then_some(ty)
}

/// The opcode with its modifiers, as PTX writes it where PTX has it.
pub fn mnemonic(op: Op) -> String {
    let part = |p: Part| match p {
        Part::Lo => ".lo",
        Part::Hi => ".hi",
        Part::Wide => ".wide",
    };
    let flag = |on: bool, text: &'static str| if on { text } else { "" };
    let lower = |name: &dyn fmt::Debug| format!("{name:?}").to_lowercase();
    match op {
        Op::Mov(ty) => format!("mov.{ty}"),
        Op::MovPred => "mov.pred".into(),
        Op::Pack64 => "pack.b64".into(),
        Op::Pack32x16 => "pack.b32".into(),
        Op::Unpack64(i) => format!("unpack.b64.w{i}"),
        Op::Unpack32(i) => format!("unpack.b32.h{i}"),
        Op::UnpackByte(i) => format!("unpack.b32.b{i}"),
        Op::Special(s) => format!("mov.{}", if s.is_wide() { "u64" } else { "u32" }),
        Op::Selp(ty) => format!("selp.{ty}"),
        Op::Slct { ty, float, ftz } => {
            format!("slct{}.{ty}.{}", flag(ftz, ".ftz"), if float { "f32" } else { "s32" })
        }
        Op::Prmt(PrmtMode::Index) => "prmt.b32".into(),
        Op::Prmt(mode) => format!("prmt.b32.{}", lower(&mode)),
        Op::IAdd(ty, c) => format!("add{}.{ty}", clamp(c)),
        Op::ISub(ty, c) => format!("sub{}.{ty}", clamp(c)),
        Op::IMul(ty, p) => format!("mul{}.{ty}", part(p)),
        Op::IMad(ty, p, c) => format!("mad{}{}.{ty}", part(p), clamp(c)),
        Op::Mul24(ty, p) => format!("mul24{}.{ty}", part(p)),
        Op::Mad24(ty, p, c) => format!("mad24{}{}.{ty}", part(p), clamp(c)),
        Op::AddCarry(ty) => format!("addc.cc.{ty}"),
        Op::SubBorrow(ty) => format!("subc.cc.{ty}"),
        Op::MadCarry(ty, p) => format!("madc{}.cc.{ty}", part(p)),
        Op::IDiv(ty) => format!("div.{ty}"),
        Op::IRem(ty) => format!("rem.{ty}"),
        Op::IAbs(ty) => format!("abs.{ty}"),
        Op::INeg(ty) => format!("neg.{ty}"),
        Op::IMin(ty, c) => format!("min{}.{ty}", clamp(c)),
        Op::IMax(ty, c) => format!("max{}.{ty}", clamp(c)),
        Op::Sad(ty) => format!("sad.{ty}"),
        Op::Dp4a(a, b) => format!("dp4a.{}.{}", sign(a), sign(b)),
        Op::Dp2a(a, b, hi) => format!("dp2a.{}.{}.{}", if hi { "hi" } else { "lo" }, sign(a), sign(b)),
        Op::Logic(logic, ty) => format!("{}.{ty}", lower(&logic)),
        Op::Not(ty) => format!("not.{ty}"),
        Op::Cnot(ty) => format!("cnot.{ty}"),
        Op::LogicPred(logic) => format!("{}.pred", lower(&logic)),
        Op::NotPred => "not.pred".into(),
        Op::Lop3(table) => format!("lop3.b32.{table:#04x}"),
        Op::Shl(ty) => format!("shl.{ty}"),
        Op::Shr(ty) => format!("shr.{ty}"),
        Op::Shf { left, wrap } => {
            format!("shf.{}.{}.b32", if left { "l" } else { "r" }, if wrap { "wrap" } else { "clamp" })
        }
        Op::Popc(ty) => format!("popc.{ty}"),
        Op::Clz(ty) => format!("clz.{ty}"),
        Op::Brev(ty) => format!("brev.{ty}"),
        Op::Bfind(ty, shift) => format!("bfind{}.{ty}", flag(shift, ".shiftamt")),
        Op::Fns => "fns.b32".into(),
        Op::Bfe(ty) => format!("bfe.{ty}"),
        Op::Bfi(ty) => format!("bfi.{ty}"),
        Op::Bmsk(wrap) => format!("bmsk.{}.b32", if wrap { "wrap" } else { "clamp" }),
        Op::Szext(ty, wrap) => format!("szext.{}.{ty}", if wrap { "wrap" } else { "clamp" }),
        Op::Setp { cmp, combine, ty, ftz } => {
            format!("setp.{}{}{}.{ty}", lower(&cmp), combined(combine), flag(ftz, ".ftz"))
        }
        Op::SetpPred(cmp, combine) => format!("setp.{}{}.pred", lower(&cmp), combined(combine)),
        Op::Set { cmp, combine, src, dst, ftz } => {
            format!("set.{}{}{}.{dst}.{src}", lower(&cmp), combined(combine), flag(ftz, ".ftz"))
        }
        Op::FAdd(ty, mode) => format!("add{}.{ty}", float_mode(mode)),
        Op::FSub(ty, mode) => format!("sub{}.{ty}", float_mode(mode)),
        Op::FMul(ty, mode) => format!("mul{}.{ty}", float_mode(mode)),
        Op::FFma(ty, mode) => format!("fma{}.{ty}", float_mode(mode)),
        Op::FDiv(ty, mode) => format!("div{}.{ty}", float_mode(mode)),
        Op::FDivApprox { full, ftz } => {
            format!("div.{}{}.f32", if full { "full" } else { "approx" }, flag(ftz, ".ftz"))
        }
        Op::FAbs(ty, ftz) => format!("abs{}.{ty}", flag(ftz, ".ftz")),
        Op::FNeg(ty, ftz) => format!("neg{}.{ty}", flag(ftz, ".ftz")),
        Op::FMin(ty, mode) => format!("min{}.{ty}", min_max(mode)),
        Op::FMax(ty, mode) => format!("max{}.{ty}", min_max(mode)),
        Op::FRounded(function, ty, mode) => format!("{}{}.{ty}", lower(&function), float_mode(mode)),
        Op::FApprox(function, ty, ftz) => format!("{}.approx{}.{ty}", lower(&function), flag(ftz, ".ftz")),
        Op::Testp(kind, ty) => format!("testp.{}.{ty}", lower(&kind)),
        Op::Copysign(ty) => format!("copysign.{ty}"),
        Op::Cvt(cvt) => format!("cvt{}.{}.{}", conversion(cvt), cvt.to, cvt.from),
        Op::CvtPair(cvt) => format!("cvt{}.{}.{}", conversion(cvt), cvt.to, cvt.from),
        Op::CvtPack(ty) => format!("cvt.pack.sat.{ty}.s32"),
        Op::Ld { access, wide } => {
            format!("{}{}", memory("ld", access), flag(wide && !access.ty.is_wide(), ".wide"))
        }
        Op::St(access) => memory("st", access),
        Op::LdLock(access) => memory("wl.ldslk", access),
        Op::StUnlock(access) => memory("wl.stsul", access),
        Op::Atom(op, access) => {
            format!(
                "atom{}.{}{}.{}.{}",
                order(access),
                access.space.name(),
                count(access),
                lower(&op),
                access.ty
            )
        }
        Op::ToGeneric(space, ty) => format!("cvta.{}.{ty}", space.name()),
        Op::FromGeneric(space, ty) => format!("cvta.to.{}.{ty}", space.name()),
        Op::IsSpace(space, ty) => format!("isspacep.{}.{ty}", space.name()),
        Op::Fence(order, scope) => format!("fence.{}.{}", order_name(order), lower(&scope)),
        Op::Prefetch => "prefetch".into(),
        Op::CpAsync(bytes) => format!("cp.async.{bytes}"),
        Op::CpAsyncCommit => "cp.async.commit_group".into(),
        Op::CpAsyncWait => "cp.async.wait_group".into(),
        Op::Mbarrier(op, _) => format!("mbarrier.{}", snake(&format!("{op:?}"))),
        Op::Vote(mode) => format!("vote.sync.{}", lower(&mode)),
        Op::Shfl(mode) => format!("shfl.sync.{}.b32", lower(&mode)),
        Op::MatchAny(ty) => format!("match.any.sync.{ty}"),
        Op::MatchAll(ty) => format!("match.all.sync.{ty}"),
        Op::Redux(op, ty) => format!("redux.sync.{}.{ty}", lower(&op)),
        Op::ActiveMask => "activemask.b32".into(),
        Op::Elect => "elect.sync".into(),
        Op::Bar(BarMode::Sync) => "bar.sync".into(),
        Op::Bar(BarMode::Arrive) => "bar.arrive".into(),
        Op::Bar(BarMode::RedPopc) => "bar.red.popc.u32".into(),
        Op::Bar(BarMode::RedAnd) => "bar.red.and.pred".into(),
        Op::Bar(BarMode::RedOr) => "bar.red.or.pred".into(),
        Op::BarWarp => "bar.warp.sync".into(),
        Op::Nanosleep => "nanosleep.u32".into(),
        Op::Bra => "bra".into(),
        Op::Brx => "brx.idx".into(),
        Op::Call => "call".into(),
        Op::Ret => "ret".into(),
        Op::Exit => "exit".into(),
        Op::Trap => "trap".into(),
        Op::Printf => "printf".into(),
        Op::AssertFail => "assertfail".into(),
        Op::Nop => "nop".into(),
    }
}

fn sign(signed: bool) -> &'static str {
    if signed { "s32" } else { "u32" }
}

fn clamp(clamp: Clamp) -> &'static str {
    match clamp {
        Clamp::None => "",
        Clamp::Sat => ".sat",
        Clamp::Relu => ".relu",
    }
}

fn combined(combine: Combine) -> &'static str {
    match combine {
        Combine::None => "",
        Combine::And => ".and",
        Combine::Or => ".or",
        Combine::Xor => ".xor",
    }
}

fn round(round: Round) -> &'static str {
    match round {
        Round::Rn => ".rn",
        Round::Rna => ".rna",
        Round::Rz => ".rz",
        Round::Rm => ".rm",
        Round::Rp => ".rp",
    }
}

fn float_mode(mode: FloatMode) -> String {
    format!("{}{}{}", round(mode.round), if mode.ftz { ".ftz" } else { "" }, clamp(mode.clamp))
}

fn min_max(mode: MinMax) -> String {
    let flags = [(mode.ftz, ".ftz"), (mode.nan, ".NaN"), (mode.xorsign_abs, ".xorsign.abs")];
    flags.iter().filter(|(on, _)| *on).map(|(_, text)| *text).collect()
}

fn conversion(cvt: Cvt) -> String {
    let rounds = cvt.integral || cvt.to.is_float() || cvt.from.is_float();
    let integer = cvt.integral || cvt.from.is_float() && !cvt.to.is_float();
    format!(
        "{}{}{}{}",
        if rounds { round(cvt.round) } else { "" },
        if integer { "i" } else { "" },
        if cvt.ftz { ".ftz" } else { "" },
        clamp(cvt.clamp)
    )
}

fn memory(name: &str, access: Access) -> String {
    let space = match access.space {
        Space::Generic => String::new(),
        space => format!(".{}", space.name()),
    };
    let cache = match (access.cache, name) {
        (Cache::All, _) => "",
        (Cache::Cg, _) => ".cg",
        (Cache::Cs, _) => ".cs",
        (Cache::Lu, _) => ".lu",
        (Cache::Cv, "st") => ".wt",
        (Cache::Cv, _) => ".cv",
        (Cache::Nc, _) => ".nc",
    };
    format!("{name}{}{space}{cache}{}.{}", order(access), count(access), access.ty)
}

fn count(access: Access) -> String {
    if access.count > 1 { format!(".v{}", access.count) } else { String::new() }
}

fn order(access: Access) -> String {
    match access.order {
        Order::Weak => String::new(),
        Order::Volatile => ".volatile".into(),
        order => format!(".{}.{}", order_name(order), format!("{:?}", access.scope).to_lowercase()),
    }
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Weak => "weak",
        Order::Volatile => "volatile",
        Order::Relaxed => "relaxed",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::SeqCst => "sc",
        Order::Mmio => "mmio",
    }
}

/// `ArriveDrop` as `arrive_drop`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// `TidX` as `tid.x`, the others in lower case.
fn special(special: Special) -> String {
    let name = format!("{special:?}");
    match special {
        Special::TidX
        | Special::TidY
        | Special::TidZ
        | Special::NtidX
        | Special::NtidY
        | Special::NtidZ
        | Special::CtaidX
        | Special::CtaidY
        | Special::CtaidZ
        | Special::NctaidX
        | Special::NctaidY
        | Special::NctaidZ => {
            let (base, axis) = name.split_at(name.len() - 1);
            format!("%{}.{}", base.to_lowercase(), axis.to_lowercase())
        }
        Special::LanemaskEq
        | Special::LanemaskLe
        | Special::LanemaskLt
        | Special::LanemaskGe
        | Special::LanemaskGt
        | Special::ClockHi
        | Special::GlobalTimerLo
        | Special::GlobalTimerHi
        | Special::DynamicSmemSize
        | Special::TotalSmemSize => format!("%{}", snake(&name)),
        _ => format!("%{}", name.to_lowercase()),
    }
}
