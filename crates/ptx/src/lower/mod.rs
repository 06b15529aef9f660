//! The last pass: lowers resolved PTX instructions to [`warploom_isa`] instructions over virtual registers.
//!
//! `HANDLERS` lists the function that lowers each mnemonic; there is one file per family. A handler takes the modifiers
//! it knows from the `Opcode`, asks for the operands (which refuses any modifier left over), checks them against the
//! instruction's type, and emits one or a few instructions. [`crate::families`] lists what is refused on purpose, and
//! why.

mod address;
mod arith;
mod async_copy;
mod atomic;
mod bits;
mod bulk;
mod call;
mod compare;
mod control;
mod convert;
mod float;
mod frame;
mod lock;
mod matrix;
mod memory;
mod minmax;
mod moves;
mod narrow;
mod opcode;
mod operand;
mod quad;
mod special;
mod stack;
mod sync;
mod texture;
mod video;
mod warp;
mod wgmma;
mod wl;
mod wmma;

use std::collections::HashMap;

use isa::{Dst, Guard, Inst, Op, Origin, Pc, Pred, Reg, Ty, Width};
use warploom_isa as isa;

use crate::diag::{Diagnostic, LoadError, MAX_DIAGNOSTICS};
use crate::families;
use crate::resolved::{self, Instruction, RegTy};
use crate::target::Target;
use frame::Layout;
use opcode::Opcode;

/// The error is about the instruction being lowered.
type Result<T = ()> = std::result::Result<T, Diagnostic>;

type Handler = fn(&mut Builder<'_>, &mut Opcode<'_>) -> Result;

/// Lowers a resolved module.
pub(crate) fn lower(module: resolved::Module) -> std::result::Result<isa::Module, LoadError> {
    let context = Context::new(&module);
    let functions = module.functions.iter().zip(&context.layouts);
    let mut functions: Vec<_> = functions.map(|(f, layout)| lower_function(&context, f, layout)).collect();
    // What is not modelled refuses its function. If every kernel has such a function, nothing is left to run.
    let is_wrong = functions.iter().flat_map(|f| &f.refusals).any(|each| !each.not_modelled);
    let runs = |f: &isa::Function| f.is_kernel && f.body.is_some() && f.refusals.is_empty();
    if is_wrong || !functions.iter().any(runs) {
        let diagnostics: Vec<_> =
            functions.iter_mut().flat_map(|f| std::mem::take(&mut f.refusals)).collect();
        if !diagnostics.is_empty() {
            return Err(LoadError::new(module.source, diagnostics));
        }
    }
    Ok(isa::Module {
        dialect: format!("PTX {}.{}, {}", module.version.0, module.version.1, module.target),
        source: module.source,
        address_bits: module.address_bits,
        functions,
        variables: module.variables,
    })
}

/// What the functions of a module share.
struct Context<'a> {
    module: &'a resolved::Module,
    target: Target,
    /// What the instructions need that the text's version or target do not have, by mnemonic.
    lacking: HashMap<&'static str, String>,
    /// The layout of each function's parameters.
    layouts: Vec<Layout>,
}

impl<'a> Context<'a> {
    fn new(module: &'a resolved::Module) -> Self {
        let layouts = module.functions.iter().map(Layout::of_function).collect();
        let target = Target::of(&module.target);
        let lacking = families::lacking(module.version, target);
        Context { module, target, lacking, layouts }
    }

    /// Whether the text's PTX version is before `major.minor`.
    fn before(&self, major: u32, minor: u32) -> bool {
        self.module.version < (major, minor)
    }
}

/// The lowered form of a declared register.
#[derive(Clone, Copy)]
enum Slot {
    Pred(Pred),
    Reg(Reg, Ty),
    /// A `.b128` register as two of 64 bits, the low one first.
    Quad(Reg, Reg),
}

/// Builds the [`isa::Body`] of one function, one instruction at a time.
struct Builder<'a> {
    cx: &'a Context<'a>,
    function: &'a resolved::Function,
    body: &'a resolved::Body,
    inst: &'a Instruction,
    slots: Vec<Slot>,
    /// Offset of each frame variable.
    frame: Vec<u32>,
    /// Offset of each formal parameter: in the parameter buffer of a kernel, or else in the frame.
    layout: &'a Layout,
    out: isa::Body,
    /// The predicate that holds the carry flag of `.cc`, once it is used.
    carry: Option<Pred>,
    guard: Guard,
    origin: Origin,
    /// Branches whose `src[0]` is still a label number.
    branches: Vec<Pc>,
    /// Branches marked as spin-inducing, and the span of the mark.
    sibs: Vec<(usize, isa::Span)>,
}

/// A placeholder before the first instruction and after the last.
static NO_INSTRUCTION: Instruction = Instruction {
    guard: None,
    opcode: Vec::new(),
    operands: Vec::new(),
    span: isa::Span { start: 0, end: 0 },
    line: None,
    lock_note: None,
    spin_note: None,
};

fn lower_function(cx: &Context<'_>, function: &resolved::Function, layout: &Layout) -> isa::Function {
    let mut refusals = function.refusals.clone();
    let params = |formals: &[resolved::Formal], offsets: &[u32]| {
        formals
            .iter()
            .zip(offsets)
            .map(|(f, &offset)| isa::Param {
                name: f.name.clone(),
                ty: match f.ty {
                    RegTy::Scalar(ty) => ty,
                    RegTy::Pred | RegTy::B128 => Ty::B8,
                },
                bytes: f.bytes,
                align: f.align,
                offset,
                pointer: f.pointer,
            })
            .collect()
    };
    isa::Function {
        name: function.name.clone(),
        is_kernel: function.is_kernel,
        returns: params(&function.returns, &layout.returns),
        params: params(&function.params, &layout.params),
        param_bytes: layout.bytes,
        bounds: function.bounds.clone(),
        body: function.body.as_ref().map(|body| lower_body(cx, function, body, layout, &mut refusals)),
        refusals,
        span: function.span,
    }
}

fn lower_body(
    cx: &Context<'_>,
    function: &resolved::Function,
    body: &resolved::Body,
    layout: &Layout,
    diagnostics: &mut Vec<Diagnostic>,
) -> isa::Body {
    let mut b = Builder::new(cx, function, body, layout);
    if let Err(d) = b.prologue() {
        diagnostics.push(d);
    }
    let mut starts = Vec::with_capacity(body.insts.len() + 1);
    for inst in &body.insts {
        starts.push(b.here());
        if let Err(d) = b.instruction(inst) {
            diagnostics.push(d);
            if diagnostics.len() >= MAX_DIAGNOSTICS {
                return b.out;
            }
        }
    }
    starts.push(b.here());
    let ends_open = body.labels.iter().any(|l| l.target as usize >= body.insts.len());
    if ends_open || b.falls_through() {
        b.end();
    }
    let sibs = std::mem::take(&mut b.sibs);
    let mut out = b.finish(&starts);
    for (at, span) in sibs {
        match out.insts.get(at).map(|inst| inst.src[0]) {
            Some(isa::Operand::Imm(target)) if target as usize <= at => out.sibs.push(Pc(at as u32)),
            _ => diagnostics.push(
                Diagnostic::new(span, "the branch after this does not go back")
                    .help("a spin-inducing branch is the backward branch of a loop that waits"),
            ),
        }
    }
    out
}

impl<'a> Builder<'a> {
    fn new(
        cx: &'a Context<'a>,
        function: &'a resolved::Function,
        body: &'a resolved::Body,
        layout: &'a Layout,
    ) -> Self {
        let mut out = isa::Body::default();
        let slots = body
            .registers
            .iter()
            .map(|r| match r.ty {
                RegTy::Pred => {
                    out.predicates += 1;
                    Slot::Pred(Pred(out.predicates - 1))
                }
                RegTy::Scalar(ty) => {
                    out.registers.push(Width::of(ty));
                    Slot::Reg(Reg(out.registers.len() as u32 - 1), ty)
                }
                RegTy::B128 => {
                    out.registers.extend([Width::Two; 2]);
                    let high = out.registers.len() as u32 - 1;
                    Slot::Quad(Reg(high - 1), Reg(high))
                }
            })
            .collect();
        let frame = frame::lay_out(function, body, layout, &mut out);
        Builder {
            cx,
            function,
            body,
            inst: &NO_INSTRUCTION,
            slots,
            frame,
            layout,
            out,
            carry: None,
            guard: Guard::Always,
            origin: Origin { span: function.span, line: None },
            branches: Vec::new(),
            sibs: Vec::new(),
        }
    }

    fn instruction(&mut self, inst: &'a Instruction) -> Result {
        self.inst = inst;
        self.origin = Origin { span: inst.span, line: inst.line };
        self.guard = match inst.guard {
            None => Guard::Always,
            Some((reg, negated)) => match self.slots[reg.0 as usize] {
                Slot::Pred(p) if negated => Guard::Unless(p),
                Slot::Pred(p) => Guard::If(p),
                _ => {
                    let name = &self.body.registers[reg.0 as usize].name;
                    return Err(Diagnostic::new(inst.span, format!("the guard `{name}` is not a predicate")));
                }
            },
        };
        if let Some((mnemonic, words, support)) = families::find(&inst.opcode) {
            let span = isa::Span { start: words[0].span.start, end: words[words.len() - 1].span.end };
            if let families::Support::Refused(why) = support {
                return Err(Diagnostic::not_modelled(span, format!("`{mnemonic}` is not modelled: {why}")));
            }
            if let Some(needs) = self.cx.lacking.get(mnemonic) {
                return Err(Diagnostic::new(span, format!("`{mnemonic}` {needs}")));
            }
        }
        let mut opcode = Opcode::new(inst);
        let handler = handler(opcode.mnemonic()).ok_or_else(|| {
            let message = format!("`{}` is not an instruction that is modelled", opcode.mnemonic());
            Diagnostic::not_modelled(inst.opcode[0].span, message)
        })?;
        let start = self.out.insts.len();
        handler(self, &mut opcode)?;
        if let Some(note) = inst.lock_note {
            let accesses = |inst: &Inst| {
                matches!(inst.op, Op::Ld { .. } | Op::St(_) | Op::LdLock(_) | Op::StUnlock(_) | Op::Atom(..))
            };
            if let Some(at) = self.out.insts[start..].iter().position(accesses) {
                self.out.lock_notes.push((Pc((start + at) as u32), note));
            }
        }
        if let Some(span) = inst.spin_note {
            self.sibs.push((start, span));
        }
        Ok(())
    }

    fn here(&self) -> Pc {
        Pc(self.out.insts.len() as u32)
    }

    fn fresh(&mut self, width: Width) -> Reg {
        self.out.registers.push(width);
        Reg(self.out.registers.len() as u32 - 1)
    }

    fn fresh_for(&mut self, ty: Ty) -> Reg {
        self.fresh(Width::of(ty))
    }

    fn fresh_pred(&mut self) -> Pred {
        self.out.predicates += 1;
        Pred(self.out.predicates - 1)
    }

    fn carry(&mut self) -> Pred {
        match self.carry {
            Some(p) => p,
            None => {
                let p = self.fresh_pred();
                self.carry = Some(p);
                p
            }
        }
    }

    /// Appends an instruction under the current guard.
    fn emit(&mut self, op: Op, dst: Dst, sources: &[isa::Operand]) {
        self.emit2(op, dst, Dst::None, sources);
    }

    /// Appends an instruction with two results.
    fn emit2(&mut self, op: Op, dst: Dst, dst2: Dst, sources: &[isa::Operand]) {
        let mut inst = Inst::new(op, dst, sources);
        inst.guard = self.guard;
        inst.dst2 = dst2;
        self.out.insts.push(inst);
        self.out.origins.push(self.origin);
    }

    /// Appends an instruction and returns the new register that holds its result.
    fn value(&mut self, op: Op, width: Width, sources: &[isa::Operand]) -> isa::Operand {
        let reg = self.fresh(width);
        self.emit(op, Dst::Reg(reg), sources);
        isa::Operand::Reg(reg)
    }

    /// Whether control can run past the last instruction.
    fn falls_through(&self) -> bool {
        !self.out.insts.last().is_some_and(|i| {
            i.guard == Guard::Always && matches!(i.op, Op::Ret | Op::Exit | Op::Bra | Op::Brx)
        })
    }

    /// Appends the end of the function, if the text has none.
    fn end(&mut self) {
        self.guard = Guard::Always;
        self.inst = &NO_INSTRUCTION;
        if self.function.is_kernel {
            self.emit(Op::Exit, Dst::None, &[]);
        } else {
            self.epilogue();
            self.emit(Op::Ret, Dst::None, &[]);
        }
    }

    /// Turns labels into instruction indices.
    fn finish(mut self, starts: &[Pc]) -> isa::Body {
        let body = self.body;
        let pc_of = |label: u32| {
            let target = body.labels[label as usize].target as usize;
            starts[target.min(starts.len() - 1)]
        };
        for pc in &self.branches {
            let inst = &mut self.out.insts[pc.index()];
            if let isa::Operand::Imm(label) = inst.src[0] {
                inst.src[0] = isa::Operand::Imm(pc_of(label).0);
            }
        }
        self.out.tables = body.tables.iter().map(|t| t.iter().map(|l| pc_of(l.0)).collect()).collect();
        self.out.labels =
            (0..body.labels.len()).map(|i| (pc_of(i as u32), body.labels[i].name.clone())).collect();
        self.out.labels.sort_by_key(|(pc, _)| *pc);
        self.out
    }

    /// Refuses a form of an instruction that PTX has since `version`, on `chip` and later ones, if the text is older.
    fn since(&self, form: &str, version: (u32, u32), chip: &str) -> Result {
        match families::needs(self.cx.module.version, self.cx.target, version, chip) {
            Some(needs) => Err(Diagnostic::new(self.inst.span, format!("{form} {needs}"))),
            None => Ok(()),
        }
    }

    /// The current opcode as written, for messages.
    fn name(&self) -> String {
        opcode::name(self.inst)
    }
}

fn handler(mnemonic: &str) -> Option<Handler> {
    let at = HANDLERS.binary_search_by_key(&mnemonic, |(name, _)| name).ok()?;
    Some(HANDLERS[at].1)
}

/// The mnemonics (first words) that are lowered.
#[cfg(test)]
pub(crate) fn mnemonics() -> impl Iterator<Item = &'static str> {
    HANDLERS.iter().map(|(name, _)| *name)
}

/// By first word, sorted for binary search.
const HANDLERS: &[(&str, Handler)] = &[
    ("abs", arith::abs),
    ("activemask", warp::activemask),
    ("add", arith::add),
    ("addc", arith::addc),
    ("alloca", stack::alloca),
    ("and", bits::and),
    ("applypriority", memory::applypriority),
    ("atom", atomic::atom),
    ("bar", sync::bar),
    ("barrier", sync::bar),
    ("bfe", bits::bfe),
    ("bfi", bits::bfi),
    ("bfind", bits::bfind),
    ("bmsk", bits::bmsk),
    ("bra", control::bra),
    ("brev", bits::brev),
    ("brkpt", control::trap),
    ("brx", control::brx),
    ("call", call::call),
    ("clz", bits::clz),
    ("cnot", bits::cnot),
    ("copysign", float::copysign),
    ("cos", float::cos),
    ("cp", async_copy::cp),
    ("createpolicy", memory::createpolicy),
    ("cvt", convert::cvt),
    ("cvta", convert::cvta),
    ("discard", memory::discard),
    ("div", arith::div),
    ("dp2a", arith::dp2a),
    ("dp4a", arith::dp4a),
    ("elect", warp::elect),
    ("ex2", float::ex2),
    ("exit", control::exit),
    ("fence", sync::fence),
    ("fma", float::fma),
    ("fns", bits::fns),
    ("getctarank", sync::getctarank),
    ("griddepcontrol", control::griddepcontrol),
    ("isspacep", convert::isspacep),
    ("ld", memory::ld),
    ("ldmatrix", matrix::ldmatrix),
    ("ldu", memory::ldu),
    ("lg2", float::lg2),
    ("lop3", bits::lop3),
    ("mad", arith::mad),
    ("mad24", arith::mad24),
    ("madc", arith::madc),
    ("mapa", sync::mapa),
    ("match", warp::match_),
    ("max", minmax::max),
    ("mbarrier", async_copy::mbarrier),
    ("membar", sync::membar),
    ("min", minmax::min),
    ("mma", matrix::mma),
    ("mov", moves::mov),
    ("movmatrix", matrix::movmatrix),
    ("mul", arith::mul),
    ("mul24", arith::mul24),
    ("nanosleep", sync::nanosleep),
    ("neg", arith::neg),
    ("not", bits::not),
    ("or", bits::or),
    ("pmevent", control::pmevent),
    ("popc", bits::popc),
    ("prefetch", memory::prefetch),
    ("prefetchu", memory::prefetch),
    ("prmt", moves::prmt),
    ("rcp", float::rcp),
    ("red", atomic::red),
    ("redux", warp::redux),
    ("rem", arith::rem),
    ("ret", control::ret),
    ("rsqrt", float::rsqrt),
    ("sad", arith::sad),
    ("selp", compare::selp),
    ("set", compare::set),
    ("setmaxnreg", control::setmaxnreg),
    ("setp", compare::setp),
    ("shf", bits::shf),
    ("shfl", warp::shfl),
    ("shl", bits::shl),
    ("shr", bits::shr),
    ("sin", float::sin),
    ("slct", compare::slct),
    ("sqrt", float::sqrt),
    ("st", memory::st),
    ("stackrestore", stack::stackrestore),
    ("stacksave", stack::stacksave),
    ("stmatrix", matrix::stmatrix),
    ("sub", arith::sub),
    ("subc", arith::subc),
    ("suld", texture::suld),
    ("suq", texture::suq),
    ("sured", texture::sured),
    ("sust", texture::sust),
    ("szext", bits::szext),
    ("tanh", float::tanh),
    ("tensormap", bulk::tensormap),
    ("testp", float::testp),
    ("tex", texture::tex),
    ("tld4", texture::tld4),
    ("trap", control::trap),
    ("txq", texture::txq),
    ("vabsdiff", video::scalar),
    ("vabsdiff2", video::halves),
    ("vabsdiff4", video::bytes),
    ("vadd", video::scalar),
    ("vadd2", video::halves),
    ("vadd4", video::bytes),
    ("vavrg2", video::halves),
    ("vavrg4", video::bytes),
    ("vmad", video::mad),
    ("vmax", video::scalar),
    ("vmax2", video::halves),
    ("vmax4", video::bytes),
    ("vmin", video::scalar),
    ("vmin2", video::halves),
    ("vmin4", video::bytes),
    ("vote", warp::vote),
    ("vset", video::scalar),
    ("vset2", video::halves),
    ("vset4", video::bytes),
    ("vshl", video::scalar),
    ("vshr", video::scalar),
    ("vsub", video::scalar),
    ("vsub2", video::halves),
    ("vsub4", video::bytes),
    ("wgmma", wgmma::wgmma),
    ("wl", wl::wl),
    ("wmma", wmma::wmma),
    ("xor", bits::xor),
];

#[cfg(test)]
mod tests;
