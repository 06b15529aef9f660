//! The kernels of a program as CUDA C++.

use std::fmt::Write as _;

use crate::cut::{Part, array_at};
use crate::layout::{Field, place};
use crate::parse::FIXED_WIDTH;
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
    let mut text = header("flow/channel.cuh", warploom_kernels::text!("flow/channel.cuh"));
    let _ = writeln!(text, "{MARK}\n#line 1 {FILE}\nnamespace cilk_program {{\n");
    for (name, meaning) in FIXED_WIDTH.iter().filter(|(name, _)| facts.source.contains(name)) {
        let _ = writeln!(text, "typedef {meaning} {name};");
    }
    for item in items {
        match item {
            Item::Other { text: other, line } => {
                let _ = writeln!(text, "#line {line}\n{other}");
            }
            Item::Globals { text: declared, line, .. } => {
                let _ = writeln!(text, "#line {line}\n__device__ {declared}");
            }
            // A task that spawns nothing may be called as a function, too.
            Item::Function(function) if !spawns(function, facts) => {
                let _ = writeln!(text, "\n#line {}\nstatic __device__ {}", function.line, function.text);
            }
            Item::Function(_) => {}
        }
    }
    for kernel in kernels {
        let mut own = String::new();
        structures(&mut own, kernel);
        text += &on_line(kernel.function.line, &own);
    }
    for kernel in kernels {
        for (number, part) in kernel.parts.iter().enumerate() {
            write_part(&mut text, kernel, number, part, kernels);
        }
    }
    text += "\n#line 1 \"kernels of the program\"\n";
    text += "extern \"C\" __global__ void cilk_globals(unsigned long long* cilk_addresses) {\n";
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

/// Stands for the source's name.
pub(crate) const FILE: &str = "CILK_FILE";

/// A header with those that it includes. Messages name its own lines.
fn header(name: &str, text: &str) -> String {
    let mut whole = format!("#line 1 \"kernels/{name}\"\n");
    for (number, line) in (2..).zip(text.lines()) {
        let included = match line {
            "#pragma once" => String::new(),
            "#include \"../warploom.cuh\"" => header("warploom.cuh", warploom_kernels::text!("warploom.cuh")),
            "#include \"persistent.cuh\"" => {
                header("flow/persistent.cuh", warploom_kernels::text!("flow/persistent.cuh"))
            }
            "#include \"per_sm.cuh\"" => {
                header("flow/per_sm.cuh", warploom_kernels::text!("flow/per_sm.cuh"))
            }
            line => {
                let _ = writeln!(whole, "{line}");
                continue;
            }
        };
        let _ = writeln!(whole, "{included}#line {number} \"kernels/{name}\"");
    }
    whole
}

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
        // In words, as channels have them.
        let words = part.bytes / 4;
        let _ = writeln!(text, "static_assert((sizeof({name}_frame) + 3) / 4 == {words}, \"{name}_frame\");");
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
    let channels: String = (0..part.targets.len()).map(|at| format!(", ::Channel* cilk_c{at}")).collect();
    let mut own = format!(
        "\nstatic __device__ __forceinline__ void {name}_part(\n    \
         const ::Work& cilk_work, unsigned cilk_element{channels}) {{\n"
    );
    let (starts, _) = place(&part.fields());
    if part.saved.len() + part.results.len() > 0 {
        let _ = writeln!(
            own,
            "    const {name}_head cilk_in = ::read<{name}_head>(cilk_work.source, cilk_element);"
        );
    }
    for field in part.saved.iter().chain(&part.results) {
        let (ty, name) = (&field.ty, &field.name);
        let _ = writeln!(own, "    {ty} {name} = cilk_in.{name};");
    }
    for (field, start) in part.arrays.iter().zip(&starts[part.saved.len() + part.results.len()..]) {
        let (ty, name) = (&field.ty, &field.name);
        let _ =
            writeln!(own, "    {ty} *{name} = {};", array_at(ty, "cilk_work.source, cilk_element", *start));
    }
    for target in &part.targets {
        if let crate::cut::Target::Tasks(callee, most) = target {
            let callee = kernels[*callee].function.name;
            let _ = writeln!(
                own,
                "    {callee}_spawn cilk_{callee}[{most}];\n    unsigned cilk_{callee}_count = 0;"
            );
        }
    }
    let line = kernel.function.line;
    *text += &on_line(line, &own);
    *text += &part.code;
    let passed: String = (0..part.targets.len()).map(|at| format!(", cilk_c{at}")).collect();
    let named = if number == 0 { format!(" // line {line}") } else { String::new() };
    let own = format!(
        "}}\n\nFLOW_KERNEL {name}(::Work cilk_work{channels}) {{{named}\n    \
         if (!::has_work(cilk_work)) return;\n    const unsigned cilk_element = ::deq(cilk_work);\n    \
         {name}_part(cilk_work, cilk_element{passed});\n    ::tfree(cilk_work, cilk_element);\n}}\n"
    );
    *text += &on_line(line, &own);
}

/// Gives all lines of a text the number of one line of the source.
fn on_line(number: u32, text: &str) -> String {
    text.lines().map(|line| format!("#line {number}\n{line}\n")).collect()
}
