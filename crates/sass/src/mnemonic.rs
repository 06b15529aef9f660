//! Maps mnemonics to operations by the table of [`warploom_isa::spell`], and accepts Fermi's other spellings. Start at
//! [`meaning`].

use warploom_isa::diag::Diagnostic;
use warploom_isa::print::PARAM_BASE;
use warploom_isa::{Clamp, Op, Part, Special, Ty, VoteMode, spell};

use crate::ast::{Inst, Spanned, Term};
use crate::nearest;

/// An instruction's operation and operands.
pub(crate) struct Meaning<'t> {
    pub op: Op,
    /// False for `RED`, which has no result.
    pub returns: bool,
    /// Operands in the order of [`warploom_isa::form`].
    pub operands: Vec<Spanned<Term<'t>>>,
}

/// Other spellings of an instruction, and the name in the table.
const SYNONYMS: &[(&str, &str)] = &[
    ("MOV32I", "MOV"),
    ("IADD32I", "IADD"),
    ("IMUL32I", "IMUL"),
    ("LOP32I", "LOP"),
    ("FADD32I", "FADD"),
    ("FMUL32I", "FMUL"),
    ("RED", "ATOM"),
    ("REDS", "ATOMS"),
    ("REDG", "ATOMG"),
];

/// Fermi's instructions that are not modelled, and what to write instead.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("PBK", "branch to a label with BRA"),
    ("BRK", "branch to a label with BRA"),
    ("PCNT", "branch to a label with BRA"),
    ("CONT", "branch to a label with BRA"),
    ("JMP", "branch to a label with BRA"),
    ("PRET", "functions are called with CAL and left with RET"),
    ("JOIN", "paths meet where SSY says; no instruction is needed there"),
    ("SYNC", "paths meet where SSY says; no instruction is needed there"),
    ("TEX", "load from global memory with LDG"),
    ("SULD", "load from global memory with LDG"),
    ("SUST", "store to global memory with STG"),
    ("LDU", "write LD: the machine finds out by itself that all lanes read one address"),
];

pub(crate) fn meaning<'t>(inst: &Inst<'t>) -> Result<Meaning<'t>, Diagnostic> {
    let upper = inst.mnemonic.node.to_ascii_uppercase();
    let mut words = upper.split('.');
    let written = words.next().unwrap_or_default();
    // Fermi marks the last instruction before a reconvergence point with `.S`. The `SSY` is enough here.
    let mut suffixes: Vec<String> = words.filter(|w| *w != "S").map(str::to_string).collect();
    let mut operands = inst.operands.clone();
    let returns = !written.starts_with("RED") || written == "REDUX";
    let name = SYNONYMS.iter().find(|(other, _)| *other == written).map_or(written, |(_, name)| name);

    if name == "ISCADD" {
        return scaled_add(inst, operands);
    }
    let mut op = spell::operation(name, &suffixes);
    if op.is_none() && name.ends_with("MNMX") {
        // `IMNMX R0, R1, R2, PT` is the minimum, with `!PT` the maximum.
        let word = match operands.last().map(|o| &o.node) {
            Some(Term::Word(p)) if p.eq_ignore_ascii_case("PT") => "MIN",
            Some(Term::Not(p)) if p.eq_ignore_ascii_case("PT") => "MAX",
            _ => {
                return Err(Diagnostic::new(
                    inst.mnemonic.span,
                    format!("`{name}` needs to know which it takes"),
                )
                .help(format!("write `{name}.MIN` or `{name}.MAX`, or end it with `PT` or `!PT`")));
            }
        };
        operands.pop();
        suffixes.insert(0, word.to_string());
        op = spell::operation(name, &suffixes);
    }
    if op.is_none() {
        // `IMUL.U32.U32` states the type of each operand. Equal ones count once.
        suffixes.dedup();
        op = spell::operation(name, &suffixes);
    }
    let Some(op) = op else { return Err(unknown(inst, written, name, &suffixes)) };
    let mut meaning = Meaning { op, returns, operands };
    rewrite(&mut meaning);
    Ok(meaning)
}

/// `ISCADD d, a, b, n` is `a * 2^n + b`.
fn scaled_add<'t>(inst: &Inst<'t>, mut operands: Vec<Spanned<Term<'t>>>) -> Result<Meaning<'t>, Diagnostic> {
    let shift = match operands.as_mut_slice() {
        [_, _, _, Spanned { node: Term::Int(shift @ 0..=31), .. }] => *shift,
        _ => {
            return Err(Diagnostic::new(
                inst.mnemonic.span,
                "`ISCADD` takes a result, two sources and a shift of 0 to 31",
            )
            .help("such as `ISCADD R0, R1, R2, 0x2`"));
        }
    };
    operands[3].node = Term::Int(1 << shift);
    operands.swap(2, 3);
    Ok(Meaning { op: Op::IMad(Ty::S32, Part::Lo, Clamp::None), returns: true, operands })
}

/// Rewrites forms of Fermi's instructions that are separate operations here.
fn rewrite(meaning: &mut Meaning<'_>) {
    let Meaning { op, operands, .. } = meaning;
    match *op {
        Op::IAdd(ty, clamp) if subtracts(operands) => {
            *op = Op::ISub(ty, clamp);
        }
        Op::FAdd(ty, mode) if subtracts(operands) => {
            *op = Op::FSub(ty, mode);
        }
        Op::Vote(VoteMode::Any) => {
            // `VOTE.ANY R1, PT, P0` is the ballot.
            let word = |i: usize| match operands.get(i).map(|o| &o.node) {
                Some(Term::Word(word)) => Some(*word),
                _ => None,
            };
            let keeps_register = word(0).is_some_and(|r| !r.eq_ignore_ascii_case("RZ"));
            let drops_predicate = word(1).is_some_and(|p| p.eq_ignore_ascii_case("PT"));
            if keeps_register && drops_predicate {
                *op = Op::Vote(VoteMode::Ballot);
            }
        }
        Op::Mov(ty) => {
            if let Some(Term::Bank(bank, sum)) = operands.get(1).map(|o| &o.node) {
                *op = match (bank, &sum.base.node) {
                    (0, Term::Int(at)) if *at < i128::from(PARAM_BASE) && sum.offset == 0 => {
                        let Some(special) = launch_size(*at) else { return };
                        operands[1].node = Term::Word(spell::special(special));
                        Op::Special(special)
                    }
                    _ => {
                        let name = if ty.is_wide() { vec!["64".to_string()] } else { Vec::new() };
                        spell::operation("LDC", &name).unwrap_or(*op)
                    }
                };
            }
        }
        _ => {}
    }
}

/// The special register that Fermi's driver puts at this offset of constant bank 0, below the parameters.
fn launch_size(at: i128) -> Option<Special> {
    Some(match at {
        0x8 => Special::NtidX,
        0xc => Special::NtidY,
        0x10 => Special::NtidZ,
        0x14 => Special::NctaidX,
        0x18 => Special::NctaidY,
        0x1c => Special::NctaidZ,
        _ => return None,
    })
}

/// Whether one source of a sum is a negated register. If so, makes it the second source, without the sign.
fn subtracts<'t>(operands: &mut [Spanned<Term<'t>>]) -> bool {
    let negative = |o: &Spanned<Term<'t>>| match o.node {
        Term::Negative(register) => Some(register),
        _ => None,
    };
    match operands {
        [_, a, b] => match (negative(a), negative(b)) {
            (None, Some(register)) => b.node = Term::Word(register),
            (Some(register), None) => {
                a.node = Term::Word(register);
                std::mem::swap(a, b);
            }
            _ => return false,
        },
        _ => return false,
    }
    true
}

fn unknown(inst: &Inst<'_>, written: &str, name: &str, suffixes: &[String]) -> Diagnostic {
    let span = inst.mnemonic.span;
    if let Some((_, instead)) = NOT_MODELLED.iter().find(|(other, _)| *other == written) {
        return Diagnostic::new(span, format!("`{written}` is not modelled")).help(*instead);
    }
    let names = spell::names();
    if names.contains(&name) {
        let message = match suffixes {
            [] => format!("`{written}` needs a modifier"),
            _ => format!(
                "`{}` is not an instruction: those modifiers do not go with `{written}`",
                inst.mnemonic.node
            ),
        };
        let forms = spell::forms(name).join(", ");
        return Diagnostic::new(span, message)
            .help(format!("forms of it: {forms}; docs/sass.md lists their modifiers"));
    }
    let error = Diagnostic::new(span, format!("there is no instruction `{written}`"));
    let others = SYNONYMS.iter().map(|(other, _)| *other);
    match nearest(written, names.into_iter().chain(others)) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("docs/sass.md lists the instructions"),
    }
}
