//! Prints programs as listings.
//!
//! [`module()`] prints a whole module over physical registers, in the form that the SASS front end reads back; [`body`]
//! prints one function as it stands; `Display` of a linked [`Kernel`] shows people the code that runs. Every line comes
//! from `line.rs`, every mnemonic from [`crate::spell`].

mod line;
mod module;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Write};

use crate::inst::*;
use crate::kernel::*;
use crate::module::*;
pub use line::PARAM_BASE;
use line::{Meet, Program, Text};
pub use module::{FERMI_PREDICATES, FERMI_REGISTERS, module};

/// Shows a function's code, over virtual or physical registers.
pub fn body(body: &Body) -> BodyText<'_> {
    BodyText { body }
}

/// A function's code; see [`body`].
#[derive(Clone, Copy, Debug)]
pub struct BodyText<'a> {
    body: &'a Body,
}

impl Display for BodyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = Unnamed(self.body);
        let labels = labels(&self.body.insts, &self.body.tables, &self.body.labels);
        let text = Text { program: &program, labels: &labels };
        (0..self.body.insts.len() as u32).try_for_each(|pc| {
            let inst = &self.body.insts[pc as usize];
            text.line(f, Pc(pc), inst, Meet::noted(inst), "")
        })
    }
}

/// A body without its module: symbols are shown by number.
struct Unnamed<'a>(&'a Body);

impl Program for Unnamed<'_> {
    fn vector(&self, id: VecId) -> &[Operand] {
        &self.0.vectors[id.index()]
    }
    fn table(&self, table: u32) -> &[Pc] {
        &self.0.tables[table as usize]
    }
    fn imm(&self, id: ImmId) -> u64 {
        self.0.imms[id.index()]
    }
    fn symbol(&self, id: SymbolUseId) -> (String, SymbolUse) {
        let target = self.0.symbols[id.index()];
        let name = match target.symbol {
            Symbol::Variable(v) => format!("var{}", v.0),
            Symbol::Function(function) => format!("fn{}", function.0),
        };
        (name, target)
    }
    fn call(&self, site: u32) -> (line::Called, &[FrameCopy], &[FrameCopy]) {
        let site = &self.0.calls[site as usize];
        let called = match site.callee {
            Callee::Direct(id) => line::Called::Name(format!("fn{}", id.0)),
            Callee::Indirect(operand) => line::Called::Operand(operand),
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
    fn symbol(&self, id: SymbolUseId) -> (String, SymbolUse) {
        // Linked code has no symbols left.
        let target = SymbolUse { symbol: Symbol::Variable(VarId(id.0)), offset: 0, generic: false };
        (format!("symbol{}", id.0), target)
    }
    fn param(&self, offset: u32) -> Option<&str> {
        self.params.iter().find(|p| p.offset == offset).map(|p| p.name.as_str())
    }
    fn call(&self, site: u32) -> (line::Called, &[FrameCopy], &[FrameCopy]) {
        let site = &self.calls[site as usize];
        let called = match site.callee {
            LinkedCallee::Direct(at) => {
                let name = self.functions.get(at as usize).map_or("?", |f| &f.name);
                line::Called::Name(name.to_string())
            }
            LinkedCallee::Indirect(operand) => line::Called::Operand(operand),
        };
        (called, &site.args, &site.returns)
    }
}

impl Display for Kernel {
    /// The kernel's resources, then each function with the addresses that linking assigned.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recursive = if self.recursive { ", recursive" } else { "" };
        writeln!(
            f,
            "// {} registers, {} bytes of parameters, {} local, {} shared{recursive}",
            self.registers, self.param_bytes, self.local_bytes, self.static_shared_bytes
        )?;
        for var in &self.shared {
            writeln!(f, ".shared {} {:#x} // at {:#x}", var.name, var.bytes, var.offset)?;
        }
        let mut labels = labels(&self.code, &self.tables, &[]);
        let mut notes: BTreeMap<Pc, String> = BTreeMap::new();
        for l in &self.loops {
            labels.entry(l.header).or_insert_with(|| format!("L{}", l.header.0));
            let note = notes.entry(l.header).or_default();
            let what = if l.of_atomic { "an atomic's loop" } else { "loop" };
            write!(note, "  // {what}, depth {}", l.depth)?;
            if let Some(on) = l.spins_on {
                write!(note, ", spins on {}", crate::spell::mnemonic(self.code[on.index()].op))?;
            }
        }
        let text = Text { program: self, labels: &labels };
        for (at, function) in self.functions.iter().enumerate() {
            let kind = if at == 0 { "kernel" } else { "function" };
            writeln!(
                f,
                "\n.{kind} {} // {} registers, {} predicates, frame of {} bytes",
                function.name, function.registers, function.predicates, function.frame_bytes
            )?;
            if at == 0 {
                self.params.iter().try_for_each(|p| writeln!(f, "    .param {}", module::param(p)))?;
            }
            for pc in (function.start.0..function.end.0).map(Pc) {
                let note = notes.get(&pc).map_or("", String::as_str);
                let inst = &self.code[pc.index()];
                text.line(f, pc, inst, Meet::noted(inst), note)?;
            }
        }
        Ok(())
    }
}

/// A label for every branch target and reconvergence point: its name in the program, or a new one.
fn labels(code: &[Inst], tables: &[Vec<Pc>], named: &[(Pc, String)]) -> BTreeMap<Pc, String> {
    let ssy = |inst: &Inst| match (inst.op, inst.src[0]) {
        (Op::Ssy, Operand::Imm(pc)) => Some(Pc(pc)),
        _ => None,
    };
    let points = code
        .iter()
        .flat_map(|i| i.branch_target().into_iter().chain(i.reconvergence()).chain(ssy(i)))
        .chain(tables.iter().flatten().copied())
        .filter(|&pc| pc != Pc::RETURN);
    let names: BTreeMap<Pc, &str> = named.iter().map(|(pc, name)| (*pc, name.as_str())).collect();
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    // Two scopes of one function may have a label of the same name.
    let own: BTreeMap<Pc, &str> = names.into_iter().filter(|(_, name)| taken.insert(name)).collect();
    let new = |pc: Pc| {
        let mut name = format!("L{}", pc.0);
        while taken.contains(name.as_str()) {
            name.push('_');
        }
        name
    };
    points.map(|pc| (pc, own.get(&pc).map_or_else(|| new(pc), |name| name.to_string()))).collect()
}
