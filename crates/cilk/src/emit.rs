//! The kernels of a program as CUDA C++.

use std::fmt::Write as _;

use crate::cut::Part;
use crate::layout::{Field, place};
use crate::program::Facts;
use crate::syntax::{Function, Item};

/// A function and what it was cut into.
pub(crate) struct Kernels<'p> {
    pub function: &'p Function<'p>,
    pub parts: &'p [Part],
}

/// The source of all kernels, with the headers in it.
pub(crate) fn cuda(
    items: &[Item<'_>],
    facts: &Facts<'_>,
    kernels: &[Kernels<'_>],
    globals: &[String],
) -> String {
    let channel = warploom_kernels::text!("flow/channel.cuh")
        .replace("#include \"../warploom.cuh\"", "")
        .replace("#include \"persistent.cuh\"", warploom_kernels::text!("flow/persistent.cuh"))
        .replace("#include \"per_sm.cuh\"", warploom_kernels::text!("flow/per_sm.cuh"))
        .replace("#pragma once\n", "");
    let mut text = format!(
        "{}\n{channel}\n{MARK}\nnamespace cilk_program {{\n\n",
        warploom_kernels::text!("warploom.cuh")
    );
    for item in items {
        match item {
            Item::Other(other) => {
                let _ = writeln!(text, "{other}");
            }
            Item::Globals { text: declared, .. } => {
                let _ = writeln!(text, "__device__ {declared}");
            }
            // A task that spawns nothing may be called as a function, too.
            Item::Function(function) if !spawns(function, facts) => {
                let _ = writeln!(text, "\nstatic __device__ {}", function.text);
            }
            Item::Function(_) => {}
        }
    }
    for kernel in kernels {
        structures(&mut text, kernel);
    }
    for kernel in kernels {
        for (number, part) in kernel.parts.iter().enumerate() {
            write_part(&mut text, kernel, number, part, kernels);
        }
    }
    text += "\nextern \"C\" __global__ void cilk_globals(unsigned long long* cilk_addresses) {\n";
    for (at, name) in globals.iter().enumerate() {
        let _ = writeln!(text, "    cilk_addresses[{at}] = (unsigned long long)&{name};");
    }
    let names: Vec<&str> =
        kernels.iter().flat_map(|kernel| kernel.parts).map(|part| part.kernel.as_str()).collect();
    let _ = writeln!(text, "}}\n\nFLOW_MAIN({})", names.join(", "));
    text + "\n}  // namespace cilk_program\n"
}

/// The line behind which the program's own part begins.
pub(crate) const MARK: &str = "// The program.";

fn spawns(function: &Function<'_>, facts: &Facts<'_>) -> bool {
    let mut found = false;
    crate::syntax::walk(&function.body, &mut |statement| {
        use crate::syntax::Statement::{Spawn, Sync};
        found |= matches!(statement, Spawn { .. } | Sync { .. });
    });
    found && facts.functions.iter().any(|task| task.name == function.name)
}

fn structure(text: &mut String, name: &str, fields: &[Field]) {
    let fields = fields.iter().map(Field::declared).collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "struct {name} {{ {fields} }};");
}

/// What tasks and continuations hold.
fn structures(text: &mut String, kernel: &Kernels<'_>) {
    text.push('\n');
    for part in kernel.parts {
        let name = &part.kernel;
        structure(text, &format!("{name}_frame"), &part.fields());
        let _ = writeln!(text, "static_assert(sizeof({name}_frame) == {}, \"{name}_frame\");", part.bytes);
        // The first fields alone have the same places.
        if !part.saved.is_empty() {
            structure(text, &format!("{name}_saved"), &part.saved);
        }
        let head: Vec<Field> = part.saved.iter().chain(&part.results).cloned().collect();
        if !head.is_empty() {
            structure(text, &format!("{name}_head"), &head);
        }
    }
    let function = kernel.function;
    let mut spawn: Vec<Field> = function.parameters.iter().map(|p| Field::new(&p.ty, p.name)).collect();
    if function.ty != "void" {
        spawn.insert(0, Field::new("unsigned", "cilk_slot"));
    }
    if spawn.is_empty() {
        spawn.push(Field::new("unsigned", "cilk_nothing"));
    }
    structure(text, &format!("{}_spawn", function.name), &spawn);
}

fn write_part(text: &mut String, kernel: &Kernels<'_>, number: usize, part: &Part, kernels: &[Kernels<'_>]) {
    let name = &part.kernel;
    let channels: String = (0..part.targets.len()).map(|at| format!(", Channel* cilk_c{at}")).collect();
    let _ = writeln!(text, "\nWL_FN void {name}_part(const Work& work, unsigned cilk_element{channels}) {{");
    let (starts, _) = place(&part.fields());
    if part.saved.len() + part.results.len() > 0 {
        let _ =
            writeln!(text, "    const {name}_head cilk_in = ::read<{name}_head>(work.source, cilk_element);");
    }
    for field in part.saved.iter().chain(&part.results) {
        let (ty, name) = (&field.ty, &field.name);
        let _ = writeln!(text, "    {ty} {name} = cilk_in.{name};");
    }
    for (field, start) in part.arrays.iter().zip(&starts[part.saved.len() + part.results.len()..]) {
        let (ty, name, word) = (&field.ty, &field.name, start / 4);
        let _ = writeln!(text, "    {ty} *{name} = ({ty} *)::word_of(work.source, cilk_element, {word});");
    }
    for target in &part.targets {
        if let crate::cut::Target::Tasks(callee, most) = target {
            let callee = kernels[*callee].function.name;
            let _ = writeln!(
                text,
                "    {callee}_spawn cilk_{callee}[{most}];\n    unsigned cilk_{callee}_count = 0;"
            );
        }
    }
    *text += &part.code;
    let passed: String = (0..part.targets.len()).map(|at| format!(", cilk_c{at}")).collect();
    let line = if number == 0 { format!(" // line {}", kernel.function.line) } else { String::new() };
    let _ = writeln!(
        text,
        "}}\n\nFLOW_KERNEL {name}(Work work{channels}) {{{line}\n    \
         if (!has_work(work)) return;\n    const unsigned cilk_element = deq(work);\n    \
         {name}_part(work, cilk_element{passed});\n    tfree(work, cilk_element);\n}}"
    );
}
