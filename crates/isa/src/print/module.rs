//! A module as a listing: directives, then each function's code.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::labels;
use super::line::{Called, Meet, Program, Text, reserved};
use crate::cfg::Cfg;
use crate::dominators::DominatorTree;
use crate::inst::*;
use crate::link::{Passes, prepare};
use crate::module::*;
use crate::reconvergence::set_reconvergence;

/// Fermi's registers per thread besides `RZ`. A listing that needs more states its number.
pub const FERMI_REGISTERS: u32 = 63;
/// Fermi's predicates per thread besides `PT`.
pub const FERMI_PREDICATES: u32 = 7;

/// Bytes of an initial value per line.
const BYTES_PER_LINE: usize = 32;

/// The listing of a module; with `entry`, without its other kernels. Virtual registers are allocated as in linking.
pub fn module(module: &Module, entry: Option<FuncId>) -> String {
    let names = Names::new(module);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_module(&mut out, module, entry, &names);
    out
}

fn write_module(out: &mut String, module: &Module, entry: Option<FuncId>, names: &Names) -> fmt::Result {
    if !module.dialect.is_empty() {
        writeln!(out, "// {}", module.dialect)?;
    }
    if module.address_bits != 64 {
        writeln!(out, ".address {}", module.address_bits)?;
    }
    for (i, file) in module.source.files.iter().enumerate() {
        writeln!(out, ".file {i} \"{file}\"")?;
    }
    let inside: BTreeSet<VarId> = module
        .functions
        .iter()
        .filter_map(|f| f.body.as_ref())
        .flat_map(|b| b.shared.iter().copied())
        .collect();
    for (i, variable) in module.variables.iter().enumerate() {
        if !inside.contains(&VarId(i as u32)) {
            write_variable(out, variable, &names.variables[i], names)?;
        }
    }
    for (i, function) in module.functions.iter().enumerate() {
        let other = entry.is_some_and(|entry| entry.index() != i) && function.is_kernel;
        if !other {
            write_function(out, module, function, &names.functions[i], names)?;
        }
    }
    Ok(())
}

/// Unique names: two functions of one module may have variables of the same name.
struct Names {
    functions: Vec<String>,
    variables: Vec<String>,
}

impl Names {
    fn new(module: &Module) -> Self {
        let mut taken = BTreeSet::new();
        let mut unique = |name: &str| {
            let mut candidate = name.to_string();
            for n in 1.. {
                if !reserved(&candidate) && taken.insert(candidate.clone()) {
                    break;
                }
                candidate = format!("{name}${n}");
            }
            candidate
        };
        let functions = module.functions.iter().map(|f| unique(&f.name)).collect();
        let variables = module.variables.iter().map(|v| unique(&v.name)).collect();
        Names { functions, variables }
    }

    fn of(&self, symbol: Symbol) -> &str {
        match symbol {
            Symbol::Variable(v) => &self.variables[v.index()],
            Symbol::Function(f) => &self.functions[f.index()],
        }
    }
}

fn write_variable(out: &mut String, variable: &Variable, name: &str, names: &Names) -> fmt::Result {
    writeln!(out, ".{} {name} {:#x} align {}", variable.space.name(), variable.bytes, variable.align)?;
    let used = variable.init.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    for line in variable.init[..used].chunks(BYTES_PER_LINE) {
        let digits: String = line.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(out, "    .bytes \"{digits}\"")?;
    }
    for relocation in &variable.relocations {
        let Relocation { offset, bytes, shift, target } = relocation;
        let symbol = names.of(target.symbol);
        let generic = if target.generic { " generic" } else { "" };
        writeln!(out, "    .pointer {offset:#x} {bytes} {shift} &{symbol} {:#x}{generic}", target.offset)?;
    }
    Ok(())
}

fn write_function(
    out: &mut String,
    module: &Module,
    function: &Function,
    name: &str,
    names: &Names,
) -> fmt::Result {
    let Some(body) = &function.body else {
        return writeln!(out, "\n.extern {name}");
    };
    writeln!(out, "\n.{} {name}", if function.is_kernel { "kernel" } else { "function" })?;
    function.returns.iter().try_for_each(|p| writeln!(out, "    .result {}", param(p)))?;
    function.params.iter().try_for_each(|p| writeln!(out, "    .param {}", param(p)))?;
    write_bounds(out, &function.bounds)?;
    for id in &body.shared {
        out.push_str("    ");
        write_variable(out, &module.variables[id.index()], &names.variables[id.index()], names)?;
    }

    let body = if body.allocated { body.clone() } else { prepare(body, Passes::default()).body };
    if body.registers.len() as u32 > FERMI_REGISTERS {
        writeln!(out, "    .registers {}", body.registers.len())?;
    }
    if body.predicates > FERMI_PREDICATES {
        writeln!(out, "    .predicates {}", body.predicates)?;
    }
    if body.frame_bytes > 0 {
        writeln!(out, "    .frame {:#x} align {}", body.frame_bytes, body.frame_align)?;
    }
    for (name, offset, bytes) in &body.frame_vars {
        writeln!(out, "    .local {name} {offset:#x} {bytes:#x}")?;
    }

    let recomputed = recomputed_points(&body);
    let mut labelled = body.clone();
    for (inst, point) in labelled.insts.iter_mut().zip(&recomputed) {
        // A point that the listing does not state needs no label.
        if let Some((slot, meet)) = *point
            && inst.src[slot] == Operand::Imm(meet)
        {
            inst.src[slot] = Operand::None;
        }
    }
    let labels = labels(&labelled.insts, &body.tables, &body.labels);
    let named = Named { body: &body, names, function };
    let text = Text { program: &named, labels: &labels };
    let mut line = None;
    for (pc, inst) in labelled.insts.iter().enumerate() {
        let known = |l: &Line| (l.file as usize) < module.source.files.len();
        let origin = body.origins.get(pc).and_then(|o| o.line).filter(known);
        match origin {
            origin if origin == line => {}
            Some(Line { file, line }) => writeln!(out, "    .loc {file} {line}")?,
            None => writeln!(out, "    .loc")?,
        }
        line = origin;
        for (_, note) in body.lock_notes.iter().filter(|(at, _)| at.index() == pc) {
            writeln!(out, "    .lock {}", note.name())?;
        }
        if body.sibs.iter().any(|at| at.index() == pc) {
            writeln!(out, "    .sib")?;
        }
        let meet = inst.reconvergence().map_or(Meet::Unsaid, Meet::Stated);
        text.line(out, Pc(pc as u32), inst, meet, "")?;
    }
    Ok(())
}

/// For each branch, the index of its reconvergence operand and the point that a reader of the listing would compute.
fn recomputed_points(body: &Body) -> Vec<Option<(usize, u32)>> {
    let mut bare = Body { allocated: true, ..body.clone() };
    for inst in &mut bare.insts {
        match inst.op {
            Op::Bra => inst.src[1] = Operand::None,
            Op::Brx => inst.src[2] = Operand::None,
            _ => {}
        }
    }
    let cfg = Cfg::new(&bare);
    let post_dominators = DominatorTree::post_dominators(&cfg);
    set_reconvergence(&mut bare, &cfg, &post_dominators);
    let found = |inst: &Inst| {
        let slot = if inst.op == Op::Bra { 1 } else { 2 };
        inst.reconvergence().map(|meet| (slot, meet.0))
    };
    bare.insts.iter().map(found).collect()
}

/// `NAME TYPE [xN] [align A] [ptr SPACE]`
pub(super) fn param(param: &Param) -> String {
    let Param { name, ty, bytes, align, pointer, .. } = param;
    let mut text = format!("{name} {ty}");
    if *bytes != ty.bytes() {
        let _ = write!(text, " x{}", bytes / ty.bytes());
    }
    if *align != ty.bytes() {
        let _ = write!(text, " align {align}");
    }
    if let Some(space) = pointer {
        let _ = write!(text, " ptr {}", space.name());
    }
    text
}

fn write_bounds(out: &mut String, bounds: &LaunchBounds) -> fmt::Result {
    if let Some(threads) = bounds.max_threads {
        writeln!(out, "    .maxntid {threads}")?;
    }
    if let Some([x, y, z]) = bounds.required_block {
        writeln!(out, "    .reqntid {x} {y} {z}")?;
    }
    if let Some(ctas) = bounds.min_ctas_per_sm {
        writeln!(out, "    .minnctapersm {ctas}")?;
    }
    if let Some(registers) = bounds.max_registers {
        writeln!(out, "    .maxnreg {registers}")?;
    }
    if let Some([x, y, z]) = bounds.required_cluster {
        writeln!(out, "    .reqnctapercluster {x} {y} {z}")?;
    }
    if bounds.explicit_cluster {
        writeln!(out, "    .explicitcluster")?;
    }
    if let Some(ctas) = bounds.max_cluster_ctas {
        writeln!(out, "    .maxclusterrank {ctas}")?;
    }
    if bounds.blocks_are_clusters {
        writeln!(out, "    .blocksareclusters")?;
    }
    Ok(())
}

/// A body with the names of its module.
struct Named<'a> {
    body: &'a Body,
    names: &'a Names,
    function: &'a Function,
}

impl Program for Named<'_> {
    fn vector(&self, id: VecId) -> &[Operand] {
        &self.body.vectors[id.index()]
    }
    fn table(&self, table: u32) -> &[Pc] {
        &self.body.tables[table as usize]
    }
    fn imm(&self, id: ImmId) -> u64 {
        self.body.imms[id.index()]
    }
    fn symbol(&self, id: SymbolUseId) -> (String, SymbolUse) {
        let target = self.body.symbols[id.index()];
        (self.names.of(target.symbol).to_string(), target)
    }
    fn call(&self, site: u32) -> (Called, &[FrameCopy], &[FrameCopy]) {
        let site = &self.body.calls[site as usize];
        let called = match site.callee {
            Callee::Direct(id) => Called::Name(self.names.functions[id.index()].clone()),
            Callee::Indirect(operand) => Called::Operand(operand),
        };
        (called, &site.args, &site.returns)
    }
    fn param(&self, offset: u32) -> Option<&str> {
        let params = self.function.params.iter().filter(|_| self.function.is_kernel);
        params.into_iter().find(|p| p.offset == offset).map(|p| p.name.as_str())
    }
}
