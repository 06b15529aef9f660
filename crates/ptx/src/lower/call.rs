//! `call`: copies arguments and results between the frames of caller and callee. `vprintf` and `__assertfail` are
//! operations of the machine.

use isa::{CallSite, Callee, Dst, FrameCopy, FuncId, Op, Operand, Ty, Width};
use warploom_isa as isa;

use super::frame::Layout;
use super::opcode::Opcode;
use super::operand::{Fit, address_type};
use super::{Builder, Result, Slot};
use crate::diag::Diagnostic;
use crate::link::UNDEFINED;
use crate::resolve::FILE_OF_DEFINITION;
use crate::resolved::{self, OperandKind};

/// Size and place of a formal parameter or result.
struct Formal {
    bytes: u32,
    align: u32,
    offset: u32,
    /// Not the argument is passed, but its address.
    variadic: bool,
}

/// The operands of a call.
struct Parts<'i> {
    results: Vec<&'i resolved::Operand>,
    callee: &'i resolved::Operand,
    arguments: Vec<&'i resolved::Operand>,
    prototype: Option<&'i resolved::Operand>,
}

/// `call[.uni] [(results),] callee[, (arguments)][, prototype]`
pub(super) fn call(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.has("uni");
    let parts = parts(oc)?;
    match parts.callee.kind {
        OperandKind::Func(id) => direct(b, &parts, id),
        OperandKind::Reg(_) => indirect(b, &parts),
        _ => Err(b.at(parts.callee, "`call` takes a function or a register that holds its address")),
    }
}

fn parts<'i>(oc: &Opcode<'i>) -> Result<Parts<'i>> {
    fn list<'i>(rest: &mut &'i [resolved::Operand]) -> Vec<&'i resolved::Operand> {
        let Some((resolved::Operand { kind: OperandKind::List(items), .. }, after)) = rest.split_first()
        else {
            return Vec::new();
        };
        *rest = after;
        // The elements of a vector are passed one by one.
        let elements = |item: &'i resolved::Operand| match &item.kind {
            OperandKind::Vector(elements) => elements.iter().collect(),
            _ => vec![item],
        };
        items.iter().flat_map(elements).collect()
    }
    let mut rest = oc.operands_between(1, 4)?;
    let results = list(&mut rest);
    let Some((callee, after)) = rest.split_first() else {
        return Err(oc.error("`call` names no function"));
    };
    rest = after;
    let arguments = list(&mut rest);
    match rest {
        [] => Ok(Parts { results, callee, arguments, prototype: None }),
        [prototype] => Ok(Parts { results, callee, arguments, prototype: Some(prototype) }),
        _ => Err(oc.error("`call` has more operands than results, function, arguments and prototype")),
    }
}

fn direct(b: &mut Builder<'_>, parts: &Parts<'_>, id: FuncId) -> Result {
    let module = b.cx.module;
    let function = &module.functions[id.index()];
    if function.body.is_none() {
        match function.name.as_str() {
            "vprintf" => return printf(b, parts),
            "__assertfail" => return assert_fail(b, parts),
            _ => {}
        }
    }
    b.callable(parts.callee, id)?;
    if function.is_kernel {
        return Err(
            b.at(parts.callee, format!("`{}` is a kernel: it is launched, not called", function.name))
        );
    }
    let formals = |formals: &[resolved::Formal], offsets: &[u32]| {
        let each = formals.iter().zip(offsets);
        let formal = |(f, &offset): (&resolved::Formal, &u32)| Formal {
            bytes: f.bytes,
            align: f.align,
            offset,
            variadic: f.variadic,
        };
        each.map(formal).collect::<Vec<_>>()
    };
    let layout = &b.cx.layouts[id.index()];
    let returns = formals(&function.returns, &layout.returns);
    let params = formals(&function.params, &layout.params);
    finish(b, parts, Callee::Direct(id), &returns, &params)
}

fn indirect(b: &mut Builder<'_>, parts: &Parts<'_>) -> Result {
    let Some(OperandKind::Proto(id)) = parts.prototype.map(|p| &p.kind) else {
        let error = b.at(parts.callee, "a call through a register needs a prototype");
        return Err(error.help("add `.callprototype` or `.calltargets` and name it last"));
    };
    let prototype = &b.body.prototypes[id.0 as usize];
    let layout = Layout::of_prototype(prototype);
    let formals = |sizes: &[(u32, u32)], offsets: &[u32]| {
        let each = sizes.iter().zip(offsets);
        let formal = |(&(bytes, align), &offset)| Formal { bytes, align, offset, variadic: false };
        each.map(formal).collect::<Vec<_>>()
    };
    let returns = formals(&prototype.returns, &layout.returns);
    let mut params = formals(&prototype.params, &layout.params);
    if let Some(last) = params.last_mut() {
        last.variadic = prototype.variadic;
    }
    let callee = b.src(parts.callee, address_type(u32::from(b.cx.module.address_bits)))?;
    finish(b, parts, Callee::Indirect(callee), &returns, &params)
}

fn finish(
    b: &mut Builder<'_>,
    parts: &Parts<'_>,
    callee: Callee,
    returns: &[Formal],
    params: &[Formal],
) -> Result {
    let missing = match params.last() {
        Some(last) if last.variadic && parts.arguments.len() + 1 == params.len() => Some(last),
        _ => None,
    };
    count(b, parts, "argument", &parts.arguments, params.len() - usize::from(missing.is_some()))?;
    // A call may omit the results.
    if !parts.results.is_empty() {
        count(b, parts, "result", &parts.results, returns.len())?;
    }
    let mut args = parts
        .arguments
        .iter()
        .zip(params)
        .map(|(actual, formal)| argument(b, actual, formal))
        .collect::<Result<Vec<_>>>()?;
    if let Some(formal) = missing {
        // No address, so that a read of what is not there is out of bounds.
        args.push(pass(b, Operand::Imm(u32::MAX), Ty::B32, formal));
    }
    let mut copies = Vec::new();
    let mut loads = Vec::new();
    for (actual, formal) in parts.results.iter().zip(returns) {
        let caller = match actual.kind {
            OperandKind::Sink => continue,
            OperandKind::Frame(..) => frame_piece(b, actual, formal)?,
            _ => {
                let register = result_register(b, actual, formal)?;
                let slot = b.frame_slot(formal.bytes, formal.align);
                loads.push((register, slot));
                slot
            }
        };
        copies.push(FrameCopy { caller, callee: formal.offset, bytes: formal.bytes });
    }
    let site = b.out.calls.len() as u32;
    b.out.calls.push(CallSite { callee, args, returns: copies });
    b.emit(Op::Call, Dst::None, &[Operand::Imm(site)]);
    for (register, slot) in loads {
        b.load_slot(register, slot);
    }
    Ok(())
}

fn count(
    b: &Builder<'_>,
    parts: &Parts<'_>,
    what: &str,
    actuals: &[&resolved::Operand],
    formals: usize,
) -> Result {
    if actuals.len() == formals {
        return Ok(());
    }
    let plural = if formals == 1 { "" } else { "s" };
    let message =
        format!("`{}` has {formals} {what}{plural}, the call gives {}", b.text(parts.callee), actuals.len());
    Err(b.at(parts.callee, message))
}

/// The frame offset of a `.param` variable that is passed.
fn frame_piece(b: &Builder<'_>, actual: &resolved::Operand, formal: &Formal) -> Result<u32> {
    let OperandKind::Frame(id, offset) = actual.kind else { return Ok(0) };
    let have = b.body.frame[id.0 as usize].bytes;
    if have < formal.bytes {
        let message = format!("`{}` has {have} bytes, the function takes {}", b.text(actual), formal.bytes);
        return Err(b.at(actual, message));
    }
    Ok(b.displaced(actual, b.frame[id.0 as usize], offset)? as u32)
}

/// An argument in the caller's frame; registers and constants are stored there first.
fn argument(b: &mut Builder<'_>, actual: &resolved::Operand, formal: &Formal) -> Result<FrameCopy> {
    let copy = |caller| FrameCopy { caller, callee: formal.offset, bytes: formal.bytes };
    if formal.variadic {
        let OperandKind::Frame(..) = actual.kind else {
            return Err(b.at(actual, "an argument of unknown size is an array in `.param`"));
        };
        let address = b.address_value(actual, Ty::U32)?;
        return Ok(pass(b, address, Ty::B32, formal));
    }
    if let OperandKind::Frame(..) = actual.kind {
        return Ok(copy(frame_piece(b, actual, formal)?));
    }
    if let Some(held) = odd_register(b, actual, formal)? {
        let slot = b.frame_slot(formal.bytes, formal.align);
        b.store_slot(held, slot);
        return Ok(copy(slot));
    }
    let ty = bits_type(b, actual, formal)?;
    let value = b.src(actual, ty)?;
    Ok(pass(b, value, ty, formal))
}

/// Stores an argument in the caller's frame, from where it is copied.
fn pass(b: &mut Builder<'_>, value: Operand, ty: Ty, formal: &Formal) -> FrameCopy {
    let slot = b.frame_slot(formal.bytes, formal.align);
    b.store_frame(value, ty, slot);
    FrameCopy { caller: slot, callee: formal.offset, bytes: formal.bytes }
}

fn result_register(b: &Builder<'_>, actual: &resolved::Operand, formal: &Formal) -> Result<Slot> {
    if let Some(held) = odd_register(b, actual, formal)? {
        return Ok(held);
    }
    let ty = bits_type(b, actual, formal)?;
    match actual.kind {
        OperandKind::Reg(r) => Ok(Slot::Reg(b.register(actual, r, ty, Fit::Exact)?.0, ty)),
        _ => Err(b.at(actual, "a result goes to a register or a `.param` variable")),
    }
}

/// A predicate, which is passed as a byte, or a register of 128 bits.
fn odd_register(b: &Builder<'_>, actual: &resolved::Operand, formal: &Formal) -> Result<Option<Slot>> {
    let OperandKind::Reg(r) = actual.kind else { return Ok(None) };
    let slot = b.slots[r.0 as usize];
    let bytes = match slot {
        Slot::Pred(_) => 1,
        Slot::Quad(..) => 16,
        Slot::Reg(..) => return Ok(None),
    };
    if bytes == formal.bytes {
        return Ok(Some(slot));
    }
    let message = format!(
        "`{}` is passed as {} bits, the function takes {}",
        b.text(actual),
        8 * bytes,
        8 * formal.bytes
    );
    Err(b.at(actual, message))
}

/// The type in which a register is passed: plain bits of the formal's size.
fn bits_type(b: &Builder<'_>, actual: &resolved::Operand, formal: &Formal) -> Result<Ty> {
    match formal.bytes {
        1 => Ok(Ty::B8),
        2 => Ok(Ty::B16),
        4 => Ok(Ty::B32),
        8 => Ok(Ty::B64),
        bytes => Err(b.at(
            actual,
            format!("`{}` cannot hold the {bytes} bytes that the function takes", b.text(actual)),
        )),
    }
}

impl Builder<'_> {
    /// Refuses a function without a body.
    pub(super) fn callable(&self, op: &resolved::Operand, id: FuncId) -> Result {
        let function = &self.cx.module.functions[id.index()];
        if function.body.is_some() {
            return Ok(());
        }
        let name = function.name.split(UNDEFINED).next().unwrap_or_default();
        let refused = match name {
            _ if name.starts_with("cudaGraph") => {
                Some("graphs are not modelled, nor are their conditional nodes")
            }
            // What `nvcc` makes of a launch in a kernel.
            _ if ["cudaLaunchDevice", "cudaGetParameterBuffer", "__cuda_syscall"]
                .iter()
                .any(|start| name.starts_with(start)) =>
            {
                Some("a kernel cannot launch others")
            }
            _ if name.starts_with("cuda") => Some("the CUDA runtime of the device is not modelled"),
            _ => None,
        };
        Err(match refused {
            Some(why) => Diagnostic::not_modelled(op.span, format!("`{name}` is not modelled: {why}")),
            None => Diagnostic::not_modelled(
                op.span,
                format!("no body for `{name}`: is it in another file, which is to be linked?"),
            )
            .help(FILE_OF_DEFINITION),
        })
    }
}

/// The value of an argument of a built-in function.
fn argument_value(b: &mut Builder<'_>, actual: &resolved::Operand, ty: Ty) -> Result<Operand> {
    if let OperandKind::Frame(..) = actual.kind {
        let formal = Formal { bytes: ty.bytes(), align: ty.bytes(), offset: 0, variadic: false };
        let at = frame_piece(b, actual, &formal)?;
        let reg = b.fresh_for(ty);
        b.load_frame(reg, ty, at);
        return Ok(Operand::Reg(reg));
    }
    b.src(actual, ty)
}

/// `vprintf(format, arguments)` with an s32 result.
fn printf(b: &mut Builder<'_>, parts: &Parts<'_>) -> Result {
    let pointer = address_type(u32::from(b.cx.module.address_bits));
    count(b, parts, "argument", &parts.arguments, 2)?;
    let format = argument_value(b, parts.arguments[0], pointer)?;
    let arguments = argument_value(b, parts.arguments[1], pointer)?;
    match parts.results.as_slice() {
        [actual] if matches!(actual.kind, OperandKind::Frame(..)) => {
            let at = frame_piece(b, actual, &Formal { bytes: 4, align: 4, offset: 0, variadic: false })?;
            let result = b.value(Op::Printf, Width::One, &[format, arguments]);
            b.store_frame(result, Ty::B32, at);
        }
        [actual] => {
            let dst = b.dst_or_sink(actual, Ty::B32)?;
            b.emit(Op::Printf, dst, &[format, arguments]);
        }
        _ => b.emit(Op::Printf, Dst::None, &[format, arguments]),
    }
    Ok(())
}

/// `__assertfail(message, file, line, function, character size)`
fn assert_fail(b: &mut Builder<'_>, parts: &Parts<'_>) -> Result {
    let pointer = address_type(u32::from(b.cx.module.address_bits));
    count(b, parts, "argument", &parts.arguments, 5)?;
    let types = [pointer, pointer, Ty::U32, pointer];
    let mut sources = [Operand::None; 4];
    for ((source, actual), ty) in sources.iter_mut().zip(&parts.arguments).zip(types) {
        *source = argument_value(b, actual, ty)?;
    }
    b.emit(Op::AssertFail, Dst::None, &sources);
    Ok(())
}
