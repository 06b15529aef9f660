//! Assembles a function's code: guards, operations, branch targets. Operands are in `operand.rs`.

use std::collections::BTreeMap;

use warploom_isa::diag::{Diagnostic, MAX_DIAGNOSTICS};
use warploom_isa::form::{Slot, form};
use warploom_isa::{
    BarMode, Body, CallSite, Callee, Combine, Dst, FrameCopy, Guard, Inst, MbarrierOp, Op, Operand, Origin,
    Pc, Pred, Span, Symbol, Width,
};

use crate::ast::{self, Spanned, Term};
use crate::mnemonic::{Meaning, meaning};
use crate::module::{Code, Draft, Names};
use crate::nearest;

pub(crate) type Result<T = ()> = std::result::Result<T, Diagnostic>;

/// Size of an instruction. Addresses in a listing count in bytes.
const INSTRUCTION_BYTES: u32 = 8;

/// Assembles the code of a function. If it appends errors, the body must not be used.
pub(crate) fn assemble(
    draft: &Draft<'_, '_>,
    names: &Names<'_>,
    address_bits: u8,
    errors: &mut Vec<Diagnostic>,
) -> Body {
    let mut builder = Builder {
        draft,
        names,
        address_bits,
        places: Places::default(),
        body: Body {
            frame_bytes: draft.frame.0,
            frame_align: draft.frame.1,
            frame_vars: draft.frame_vars.clone(),
            shared: draft.shared.clone(),
            allocated: true,
            ..Body::default()
        },
        registers: 0,
        predicates: 0,
    };
    if let Err(error) = builder.find_places() {
        errors.push(error);
        return builder.body;
    }
    for code in &draft.code {
        let Code::Inst(inst, line) = code else { continue };
        match builder.instruction(inst) {
            Ok(made) => {
                builder.body.insts.push(made);
                builder.body.origins.push(Origin { span: inst.span, line: *line });
            }
            Err(error) => errors.push(error),
        }
        if errors.len() >= MAX_DIAGNOSTICS {
            return builder.body;
        }
    }
    if errors.is_empty()
        && let Err(error) = builder.check_end()
    {
        errors.push(error);
    }
    builder.body.registers = vec![Width::One; builder.registers as usize];
    builder.body.predicates = builder.predicates;
    builder.body
}

/// Positions that branches can name.
#[derive(Default)]
struct Places<'t> {
    labels: BTreeMap<&'t str, Pc>,
    /// By the address in a comment; `None` if two instructions claim it, as in the paper's fragments.
    addresses: BTreeMap<u32, Option<Pc>>,
    /// By the address that follows from the preceding instruction.
    counted: BTreeMap<u32, Option<Pc>>,
    count: u32,
}

pub(crate) struct Builder<'d, 'i, 't> {
    pub(crate) draft: &'d Draft<'i, 't>,
    pub(crate) names: &'d Names<'d>,
    pub(crate) address_bits: u8,
    places: Places<'t>,
    pub(crate) body: Body,
    /// One more than the highest register named so far.
    pub(crate) registers: u32,
    pub(crate) predicates: u32,
}

impl<'t> Builder<'_, '_, 't> {
    /// Finds the position of every label and address. An instruction without an address follows the one before it.
    /// Instructions before the first address have none, unless no instruction of the function has one.
    fn find_places(&mut self) -> Result {
        let addressed =
            self.draft.code.iter().any(|c| matches!(c, Code::Inst(inst, _) if inst.address.is_some()));
        let mut next = if addressed { None } else { Some(0u32) };
        for code in &self.draft.code {
            let pc = Pc(self.places.count);
            match code {
                Code::Label(label) => {
                    if self.places.labels.insert(label.node, pc).is_some() {
                        return Err(Diagnostic::new(
                            label.span,
                            format!("there are two labels `{}`", label.node),
                        ));
                    }
                    self.body.labels.push((pc, label.node.to_string()));
                }
                Code::Inst(inst, _) => {
                    let Places { addresses, counted, .. } = &mut self.places;
                    let known = if inst.address.is_some() { addresses } else { counted };
                    if let Some(address) = inst.address.or(next) {
                        let place = known.entry(address).or_insert(Some(pc));
                        if *place != Some(pc) {
                            *place = None;
                        }
                        next = address.checked_add(INSTRUCTION_BYTES);
                    }
                    self.places.count += 1;
                }
                Code::Lock(note) => self.body.lock_notes.push((pc, *note)),
                Code::Sib => self.body.sibs.push(pc),
            }
        }
        if self.places.count == 0 {
            let name = &self.draft.function.name;
            return Err(Diagnostic::new(self.draft.function.span, format!("`{name}` has no code"))
                .help("a kernel ends with EXIT at least"));
        }
        Ok(())
    }

    /// Control must not run past the last instruction.
    fn check_end(&self) -> Result {
        if self.body.lock_notes.iter().any(|(pc, _)| pc.0 >= self.places.count) {
            let span = self.body.origins.last().map_or(self.draft.function.span, |o| o.span);
            return Err(Diagnostic::new(span, "no instruction follows the last `.lock`"));
        }
        let goes_back = |pc: Pc| {
            let inst = self.body.insts.get(pc.index());
            inst.is_some_and(
                |inst| matches!((inst.op, inst.src[0]), (Op::Bra, Operand::Imm(to)) if to <= pc.0),
            )
        };
        if let Some(pc) = self.body.sibs.iter().find(|&&pc| !goes_back(pc)) {
            let origin = self.body.origins.get(pc.index()).or(self.body.origins.last());
            let span = origin.map_or(self.draft.function.span, |origin| origin.span);
            return Err(Diagnostic::new(span, "`.sib` stands in front of a branch that goes back"));
        }
        let name = &self.draft.function.name;
        let (Some(last), Some(origin)) = (self.body.insts.last(), self.body.origins.last()) else {
            return Ok(());
        };
        if !last.ends_flow() {
            let end = if self.draft.function.is_kernel { "EXIT" } else { "RET" };
            return Err(Diagnostic::new(origin.span, format!("control runs past the end of `{name}` here"))
                .help(format!("end it with {end}")));
        }
        Ok(())
    }

    fn instruction(&mut self, written: &ast::Inst<'t>) -> Result<Inst> {
        let guard = self.guard(written)?;
        let meaning = meaning(written)?;
        let mut inst = Inst { guard, ..Inst::new(meaning.op, Dst::None, &[]) };
        let slots = form(meaning.op, meaning.returns);
        self.check_count(written, &meaning, slots)?;
        let mut given = meaning.operands.iter();
        for &slot in slots {
            if slot == Slot::Callee {
                self.callee(written, given.by_ref().as_slice(), &mut inst)?;
                break;
            }
            let term = given.next();
            self.slot(slot, term, &mut inst)?;
        }
        if let Op::Bar(BarMode::RedPopc | BarMode::RedAnd | BarMode::RedOr) = inst.op
            && inst.src[2] == Operand::None
        {
            // Without a predicate, every thread counts.
            inst.src[2] = Operand::Imm(1);
        }
        if let Some(meet) = &written.meet {
            let slot = match inst.op {
                Op::Bra => 1,
                Op::Brx => 2,
                _ => return Err(Diagnostic::new(meet.span, "only branches meet again")),
            };
            inst.src[slot] = match meet.node {
                Term::Word(word) if word.eq_ignore_ascii_case("RET") => Operand::Imm(Pc::RETURN.0),
                _ => Operand::Imm(self.target(meet)?.0),
            };
        }
        Ok(inst)
    }

    /// Names the operands that are missing or too many.
    fn check_count(&self, written: &ast::Inst<'_>, meaning: &Meaning<'_>, slots: &[Slot]) -> Result {
        if slots.contains(&Slot::Callee) {
            return Ok(());
        }
        let optional = |slot: &&Slot| {
            matches!(slot, Slot::Opt(_) | Slot::OptPred(_) | Slot::Count(_) | Slot::Combined(_))
        };
        let least = slots.len() - slots.iter().rev().take_while(optional).count();
        let given = meaning.operands.len();
        if (least..=slots.len()).contains(&given) {
            return Ok(());
        }
        let name = written.mnemonic.node;
        let message = match (least, slots.len()) {
            (0, 0) => format!("`{name}` takes no operands"),
            (1, 1) => format!("`{name}` takes 1 operand, {given} given"),
            (n, m) if n == m => format!("`{name}` takes {n} operands, {given} given"),
            (n, m) => format!("`{name}` takes {n} to {m} operands, {given} given"),
        };
        let span = meaning.operands.get(slots.len()).map_or(written.mnemonic.span, |extra| extra.span);
        let example: Vec<&str> = slots.iter().map(|&slot| describe(slot)).collect();
        let error = Diagnostic::new(span, message);
        Err(if example.is_empty() { error } else { error.help(format!("{name} {}", example.join(", "))) })
    }

    fn guard(&mut self, written: &ast::Inst<'_>) -> Result<Guard> {
        let Some((predicate, negated)) = &written.guard else { return Ok(Guard::Always) };
        Ok(match (self.predicate(predicate)?, negated) {
            (Some(p), false) => Guard::If(p),
            (Some(p), true) => Guard::Unless(p),
            (None, false) => Guard::Always,
            (None, true) => return Err(Diagnostic::new(predicate.span, "`@!PT` never holds")),
        })
    }

    fn slot(&mut self, slot: Slot, term: Option<&Spanned<Term<'t>>>, inst: &mut Inst) -> Result {
        // An omitted operand keeps its default; `check_count` has made sure that it may be omitted.
        let Some(term) = term else { return Ok(()) };
        let shape = inst.op.shape();
        match slot {
            Slot::Dst => inst.dst = self.dst(term, inst.op)?,
            Slot::DstPred => inst.dst = self.dst_pred(term)?,
            Slot::Dst2Pred => inst.dst2 = self.dst_pred(term)?,
            Slot::Src(i) | Slot::Opt(i) => {
                let width = self.width(inst.op, i).unwrap_or(shape.src[i as usize]);
                inst.src[i as usize] = self.source(term, inst.op, width)?;
            }
            Slot::Count(i) => {
                inst.src[i as usize] = match self.source(term, inst.op, Width::One)? {
                    Operand::Imm(0) => Operand::None,
                    count => count,
                };
            }
            Slot::Pred(i) | Slot::OptPred(i) => inst.src[i as usize] = self.pred_source(term)?,
            Slot::Combined(i) => self.combined(term, i, inst)?,
            Slot::Memory => self.memory(term, inst)?,
            Slot::Special => inst.op = self.special(term)?,
            Slot::Fixed(word) => match term.node {
                Term::Word(w) if w.eq_ignore_ascii_case(word) => {}
                _ => return Err(Diagnostic::new(term.span, format!("only `{word}` can stand here"))),
            },
            Slot::Target => inst.src[0] = Operand::Imm(self.target(term)?.0),
            Slot::Table => {
                let Term::List(list) = &term.node else {
                    return Err(
                        Diagnostic::new(term.span, "expected a list of labels").help("such as `{L1, L2}`")
                    );
                };
                if list.is_empty() {
                    return Err(Diagnostic::new(term.span, "a branch needs somewhere to go"));
                }
                let targets = list.iter().map(|t| self.target(t)).collect::<Result<Vec<Pc>>>()?;
                inst.src[1] = Operand::Imm(self.body.tables.len() as u32);
                self.body.tables.push(targets);
            }
            Slot::Callee => {}
        }
        Ok(())
    }

    /// Widths that the module determines instead of the operation: the addresses of `printf` and `assert`.
    fn width(&self, op: Op, i: u8) -> Option<Width> {
        let address = Width::wide(self.address_bits == 64);
        match op {
            Op::Printf => Some(address),
            Op::AssertFail if i != 2 => Some(address),
            Op::Mbarrier(MbarrierOp::PendingCount, _) => Some(Width::Two),
            _ => None,
        }
    }

    /// Reads the predicate that a comparison is combined with. `PT` with `AND` is no combination.
    fn combined(&mut self, term: &Spanned<Term<'t>>, i: u8, inst: &mut Inst) -> Result {
        let with = self.pred_source(term)?;
        let combine = match &mut inst.op {
            Op::Setp { combine, .. } | Op::Set { combine, .. } | Op::SetpPred(_, combine) => combine,
            _ => return Ok(()),
        };
        if *combine == Combine::None && with == Operand::Imm(1) {
            return Ok(());
        }
        if *combine == Combine::None {
            *combine = Combine::And;
        }
        inst.src[i as usize] = with;
        Ok(())
    }

    /// The instruction that a label or an address names.
    fn target(&self, term: &Spanned<Term<'t>>) -> Result<Pc> {
        let at = match term.node {
            Term::Word(label) => match self.places.labels.get(label) {
                Some(&pc) => pc,
                None => {
                    let name = &self.draft.function.name;
                    let error =
                        Diagnostic::new(term.span, format!("there is no label `{label}` in `{name}`"));
                    return Err(match nearest(label, self.places.labels.keys().copied()) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.help(format!("write `{label}:` before the instruction to go to")),
                    });
                }
            },
            Term::Int(address) => self.at_address(address, term.span)?,
            _ => {
                return Err(Diagnostic::new(term.span, "expected a label or an address")
                    .help("such as `L1`, or `0xa0` for the instruction `/*00a0*/`"));
            }
        };
        if at.0 >= self.places.count {
            return Err(Diagnostic::new(term.span, "no instruction follows this label"));
        }
        Ok(at)
    }

    fn at_address(&self, address: i128, span: Span) -> Result<Pc> {
        let name = &self.draft.function.name;
        let Places { addresses, counted, .. } = &self.places;
        let found = u32::try_from(address).ok().and_then(|a| addresses.get(&a).or_else(|| counted.get(&a)));
        match found {
            Some(Some(pc)) => Ok(*pc),
            Some(None) => Err(Diagnostic::new(
                span,
                format!("two instructions of `{name}` have the address {address:#x}"),
            )
            .help("give the target a label")),
            None => {
                let all = || addresses.keys().chain(counted.keys());
                let error = Diagnostic::new(span, format!("`{name}` has no instruction at {address:#x}"));
                Err(match (all().min(), all().max()) {
                    (Some(first), Some(last)) => {
                        error.help(format!("its instructions are at {first:#x} to {last:#x}"))
                    }
                    _ => error,
                })
            }
        }
    }

    /// `CAL name, IN 0x0 0x10 4, OUT …`, `CAL [R4], …`
    fn callee(&mut self, written: &ast::Inst<'_>, terms: &[Spanned<Term<'t>>], inst: &mut Inst) -> Result {
        let Some((who, copies)) = terms.split_first() else {
            return Err(Diagnostic::new(written.mnemonic.span, "`CAL` needs a function")
                .help("CAL name, or CAL [R4]"));
        };
        let callee = match &who.node {
            Term::Word(name) => match self.names.functions.get(name) {
                Some(id) if self.names.kernels.contains(id) => {
                    return Err(Diagnostic::new(
                        who.span,
                        format!("`{name}` is a kernel: it is launched, not called"),
                    ));
                }
                Some(&id) => Callee::Direct(id),
                None => {
                    let error = Diagnostic::new(who.span, format!("there is no function `{name}`"));
                    return Err(match nearest(name, self.names.functions.keys().copied()) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.help(format!("define it with `.function {name}`")),
                    });
                }
            },
            Term::Memory(sum) if sum.offset == 0 => {
                let width = Width::wide(self.address_bits == 64);
                Callee::Indirect(self.source(&sum.base, Op::Call, width)?)
            }
            _ => return Err(Diagnostic::new(who.span, "expected a function, or its address in brackets")),
        };
        let mut site = CallSite { callee, args: Vec::new(), returns: Vec::new() };
        for copy in copies {
            let Term::Copy { out, numbers } = copy.node else {
                return Err(Diagnostic::new(copy.span, "expected what the call copies").help(
                    "`IN 0x8 0x0 4`: 4 bytes at 0x8 of this frame to 0x0 of the function's; \
                        `OUT` the other way",
                ));
            };
            let small = |n: u64| u32::try_from(n).ok().filter(|&n| n <= self.draft.frame.0);
            let (Some(caller), Some(callee), Some(bytes)) = (
                small(numbers[0]),
                u32::try_from(numbers[1]).ok().filter(|&n| n < 1 << 20),
                small(numbers[2]),
            ) else {
                return Err(Diagnostic::new(copy.span, "this copy lies outside of the frame")
                    .help(format!("the frame has {} bytes (`.frame`)", self.draft.frame.0)));
            };
            if caller + bytes > self.draft.frame.0 {
                return Err(Diagnostic::new(copy.span, "this copy lies outside of the frame")
                    .help(format!("the frame has {} bytes (`.frame`)", self.draft.frame.0)));
            }
            let list = if out { &mut site.returns } else { &mut site.args };
            list.push(FrameCopy { caller, callee, bytes });
        }
        inst.src[0] = Operand::Imm(self.body.calls.len() as u32);
        self.body.calls.push(site);
        Ok(())
    }

    pub(crate) fn symbol(&self, name: &str, span: Span) -> Result<Symbol> {
        self.names.symbol(name).ok_or_else(|| self.names.unknown(span, name))
    }

    /// A predicate by name; `None` is `PT`.
    pub(crate) fn predicate(&mut self, name: &Spanned<&str>) -> Result<Option<Pred>> {
        let upper = name.node.to_ascii_uppercase();
        if upper == "PT" {
            return Ok(None);
        }
        let number = upper.strip_prefix('P').and_then(|n| n.parse::<u32>().ok());
        let Some(number) = number else {
            return Err(Diagnostic::new(name.span, format!("`{}` is no predicate", name.node))
                .help(format!("P0 to P{}, or PT, which is always true", self.draft.predicate_limit - 1)));
        };
        if number >= self.draft.predicate_limit {
            let message =
                format!("there is no P{number}: the last predicate is P{}", self.draft.predicate_limit - 1);
            return Err(Diagnostic::new(name.span, message).help(match number {
                7 => "PT, which is always true, has no number".to_string(),
                _ => format!("`.predicates {}` in the kernel allows it", number.saturating_add(1)),
            }));
        }
        self.predicates = self.predicates.max(number + 1);
        Ok(Some(Pred(number)))
    }
}

/// A placeholder for an operand in a message.
fn describe(slot: Slot) -> &'static str {
    match slot {
        Slot::Dst => "Rd",
        Slot::DstPred => "Pd",
        Slot::Dst2Pred => "Pq",
        Slot::Src(0) => "Ra",
        Slot::Src(1) => "Rb",
        Slot::Src(2) => "Rc",
        Slot::Src(_) => "Re",
        Slot::Opt(_) => "[mask]",
        Slot::Count(_) => "[threads]",
        Slot::Pred(_) => "Pp",
        Slot::OptPred(_) => "[Pp]",
        Slot::Combined(_) => "Pc",
        Slot::Memory => "[Ra+offset]",
        Slot::Special => "SR_name",
        Slot::Fixed(word) => word,
        Slot::Target => "label",
        Slot::Table => "{label, …}",
        Slot::Callee => "function",
    }
}
