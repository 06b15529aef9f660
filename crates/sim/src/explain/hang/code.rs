//! What the code says about a wait: the loop it is in, what ends the loop, and which code may write the word.

use warploom_isa::{Cmp, Guard, Inst, Kernel, Loop, Op, Operand, Pc, Space, Value};

/// The last instruction of a loop, assuming that its blocks are contiguous, as they mostly are.
pub(super) fn last_of(l: &Loop) -> Pc {
    l.latches.iter().copied().max().unwrap_or(l.header)
}

pub(super) fn contains(l: &Loop, pc: Pc) -> bool {
    l.header <= pc && pc <= last_of(l)
}

/// The innermost loop around an instruction.
pub(super) fn innermost(kernel: &Kernel, pc: Pc) -> Option<&Loop> {
    kernel.loops.iter().filter(|l| contains(l, pc)).min_by_key(|l| last_of(l).0 - l.header.0)
}

/// The loops around an instruction that may wait for another thread, from the innermost on. Loops that implement an
/// atomic do not count.
pub(super) fn spin_loops(kernel: &Kernel, pc: Pc) -> Vec<&Loop> {
    let spins = kernel.loops.iter().filter(|l| l.spins_on.is_some() && !l.of_atomic && contains(l, pc));
    let mut spins: Vec<&Loop> = spins.collect();
    spins.sort_by_key(|l| last_of(l).0 - l.header.0);
    spins
}

/// A loop with all backward branches to its header: those that wait for different words are loops of their own, but a
/// lane leaves only if it passes all of them.
pub(super) fn whole(kernel: &Kernel, l: &Loop) -> Loop {
    let alike = kernel.loops.iter().filter(|other| other.header == l.header && !other.of_atomic);
    Loop { latches: alike.flat_map(|other| other.latches.iter().copied()).collect(), ..l.clone() }
}

/// The loads in a loop that take lock bits, in program order; a lane may wait for any of them.
pub(super) fn bit_loads<'a>(kernel: &'a Kernel, l: &Loop) -> impl Iterator<Item = Pc> + use<'a> {
    let own =
        |&pc: &Pc| matches!(kernel.code[pc.index()].op, Op::LdLock(_)) && kernel.atomic_at(pc).is_none();
    (l.header.0..=last_of(l).0).map(Pc).filter(own)
}

pub(super) fn negated(cmp: Cmp) -> Option<Cmp> {
    Some(match cmp {
        Cmp::Eq => Cmp::Ne,
        Cmp::Ne => Cmp::Eq,
        Cmp::Lt => Cmp::Ge,
        Cmp::Le => Cmp::Gt,
        Cmp::Gt => Cmp::Le,
        Cmp::Ge => Cmp::Lt,
        // Those that also hold for numbers that are not ordered.
        Cmp::Equ => Cmp::Ne,
        Cmp::Neu => Cmp::Eq,
        Cmp::Ltu => Cmp::Ge,
        Cmp::Leu => Cmp::Gt,
        Cmp::Gtu => Cmp::Le,
        Cmp::Geu => Cmp::Lt,
        _ => return None,
    })
}

/// A constant that the loop moves to a register before `at`, instead of the register: it may hold something else since.
pub(super) fn as_constant(kernel: &Kernel, l: &Loop, at: Pc, operand: Operand) -> Operand {
    let Operand::Reg(reg) = operand else { return operand };
    let writes = |inst: &&Inst| {
        let mut found = false;
        inst.for_each_def(kernel, |value| {
            found |= matches!(value, Value::Reg(to, width) if to.0 <= reg.0 && reg.0 < to.0 + width.words());
        });
        found
    };
    let before = kernel.code.get(l.header.index()..at.index()).unwrap_or_default();
    match before.iter().rev().find(writes).map(|inst| (inst.op, inst.guard, inst.src[0])) {
        Some((Op::Mov(_), Guard::Always, constant @ Operand::Imm(_))) => constant,
        _ => operand,
    }
}

pub(super) fn swapped(cmp: Cmp) -> Option<Cmp> {
    Some(match cmp {
        Cmp::Eq | Cmp::Ne | Cmp::Equ | Cmp::Neu => cmp,
        Cmp::Lt => Cmp::Gt,
        Cmp::Le => Cmp::Ge,
        Cmp::Gt => Cmp::Lt,
        Cmp::Ge => Cmp::Le,
        Cmp::Ltu => Cmp::Gtu,
        Cmp::Leu => Cmp::Geu,
        Cmp::Gtu => Cmp::Ltu,
        Cmp::Geu => Cmp::Leu,
        _ => return None,
    })
}

/// Whether an instruction in `from..to` may write to the space that `poll` reads.
pub(super) fn may_write(kernel: &Kernel, from: Pc, to: Pc, poll: Pc) -> bool {
    let space = |op: Op| match op {
        Op::Ld { access, .. }
        | Op::Atom(_, access)
        | Op::St(access)
        | Op::LdLock(access)
        | Op::StUnlock(access) => Some(access.space),
        _ => None,
    };
    let end = to.index().min(kernel.function_at(from).end.index());
    let read = space(kernel.code[poll.index()].op);
    let written = kernel.code.get(from.index()..end).into_iter().flatten();
    let mut written = written
        .filter(|inst| !matches!(inst.op, Op::Ld { .. } | Op::LdLock(_)))
        .filter_map(|inst| space(inst.op));
    written.any(|space| Some(space) == read || space == Space::Generic || read == Some(Space::Generic))
}

/// The source name of a function's static variable: `_ZZ4sortPjE4lock` is `lock`.
pub(super) fn plain_name(name: &str) -> &str {
    let local = |name: &'_ str| -> Option<usize> {
        let mangled = name.strip_prefix("_ZZ")?;
        mangled.rmatch_indices('E').find_map(|(at, _)| {
            let digits = mangled[at + 1..].chars().take_while(char::is_ascii_digit).count();
            let length: usize = mangled[at + 1..at + 1 + digits].parse().ok()?;
            let start = at + 1 + digits;
            (start + length == mangled.len()).then_some("_ZZ".len() + start)
        })
    };
    local(name).map_or(name, |start| &name[start..])
}

#[cfg(test)]
mod tests {
    use crate::explain::hang::code::plain_name;

    #[test]
    fn names_of_variables_in_functions() {
        assert_eq!(plain_name("_ZZ11shared_lockE4lock"), "lock");
        assert_eq!(plain_name("_ZZ4sortPjE9EmptySlot"), "EmptySlot");
        assert_eq!(plain_name("tile"), "tile");
        assert_eq!(plain_name("_ZZ4sortE4"), "_ZZ4sortE4");
        assert_eq!(plain_name("_ZZé"), "_ZZé");
    }
}
