//! The same program in C without the keywords: what a result must equal.

use std::fmt::Write as _;

use crate::program::Call;

/// What the plain program wrote: everything that a graph starts from, and what it must end with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainRun {
    /// The bytes of the call's arguments.
    pub arguments: Vec<Vec<u8>>,
    /// The bytes of the variables outside functions, before the call and after it.
    pub before: Vec<Vec<u8>>,
    pub after: Vec<Vec<u8>>,
    /// The bytes of the result; none for `void`.
    pub result: Vec<u8>,
    /// How many tasks were in one another at most.
    pub deepest: u64,
}

impl PlainRun {
    /// Reads what the program wrote to its standard output.
    pub fn read(mut output: &[u8], arguments: usize, globals: usize) -> Option<PlainRun> {
        let mut piece = || {
            let (size, rest) = output.split_first_chunk::<8>()?;
            let size = usize::try_from(u64::from_le_bytes(*size)).ok().filter(|size| *size <= rest.len())?;
            let (piece, rest) = rest.split_at(size);
            output = rest;
            Some(piece.to_vec())
        };
        let mut pieces = |count: usize| (0..count).map(|_| piece()).collect::<Option<Vec<_>>>();
        let (arguments, before, after) = (pieces(arguments)?, pieces(globals)?, pieces(globals)?);
        let result = pieces(1)?.pop()?;
        let deepest = u64::from_le_bytes(pieces(1)?.pop()?.try_into().ok()?);
        Some(PlainRun { arguments, before, after, result, deepest })
    }
}

/// What is put around the source.
pub(crate) struct Harness<'p> {
    pub source: &'p str,
    /// The source's name in quotes.
    pub file: &'p str,
    pub globals: &'p [String],
    pub tasks: Vec<&'p str>,
    pub has_init: bool,
    /// The types of the called function.
    pub ty: &'p str,
    pub parameters: Vec<&'p str>,
}

/// Calls of these are counted, to know how deep the recursion gets.
const DEPTH: &str = "
static uint64_t cilk_depth, cilk_deepest;
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *cilk_task, void *cilk_site) {
    if (CILK_IS_TASK && ++cilk_depth > cilk_deepest) cilk_deepest = cilk_depth;
}
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *cilk_task, void *cilk_site) {
    if (CILK_IS_TASK) cilk_depth--;
}
static void cilk_write(const void *from, size_t bytes) {
    uint64_t size = bytes;
    fwrite(&size, 8, 1, stdout);
    fwrite(from, 1, bytes, stdout);
}
";

impl Harness<'_> {
    /// The program with a `main` that makes one call.
    pub(crate) fn text(&self, call: &Call) -> String {
        let mut text = "#include <stdint.h>\n#include <stdio.h>\n#include <stdbool.h>\n#include <stddef.h>\n"
            .to_string();
        for word in ["cilk", "spawn", "sync", "cilk_spawn", "cilk_sync"] {
            let _ = writeln!(text, "#define {word}");
        }
        text += "#define atomicAdd(cilk_at, cilk_value) (*(cilk_at) += (cilk_value))\n";
        let _ = writeln!(text, "#line 1 {}\n{}", self.file, self.source);
        let tasks: Vec<String> =
            self.tasks.iter().map(|task| format!("cilk_task == (void *){task}")).collect();
        let _ = writeln!(
            text,
            "#line 1 \"the call\"\n#undef sync\n#define CILK_IS_TASK ({})",
            tasks.join(" || ")
        );
        text += DEPTH;
        text += "\nint main(void) {\n";
        if self.has_init {
            text += "    init();\n";
        }
        for (at, (argument, parameter)) in call.arguments.iter().zip(&self.parameters).enumerate() {
            let _ = writeln!(text, "    {parameter} cilk_a{at} = ({argument});");
            let _ = writeln!(text, "    cilk_write(&cilk_a{at}, sizeof cilk_a{at});");
        }
        let dump: String =
            self.globals.iter().map(|name| format!("    cilk_write(&{name}, sizeof {name});\n")).collect();
        let arguments: Vec<String> = (0..self.parameters.len()).map(|at| format!("cilk_a{at}")).collect();
        let (name, arguments) = (&call.function, arguments.join(", "));
        let (value, result) = match self.ty {
            "void" => (String::new(), "cilk_write(\"\", 0)"),
            ty => (format!("{ty} cilk_result = "), "cilk_write(&cilk_result, sizeof cilk_result)"),
        };
        let _ = writeln!(text, "{dump}    cilk_depth = cilk_deepest = 0;\n    {value}{name}({arguments});");
        text += &format!("{dump}    {result};\n    cilk_write(&cilk_deepest, sizeof cilk_deepest);\n");
        text + "    return 0;\n}\n"
    }
}
