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
        Some(PlainRun { arguments, before, after, result })
    }
}

/// The program with a `main` that makes one call.
pub(crate) fn harness(
    source: &str,
    globals: &[String],
    has_init: bool,
    call: &Call,
    ty: &str,
    parameters: &[&str],
) -> String {
    let mut text =
        "#include <stdint.h>\n#include <stdio.h>\n#include <stdbool.h>\n#include <stddef.h>\n".to_string();
    for word in ["cilk", "spawn", "sync", "cilk_spawn", "cilk_sync"] {
        let _ = writeln!(text, "#define {word}");
    }
    text += "#define atomicAdd(cilk_at, cilk_value) (*(cilk_at) += (cilk_value))\n#line 1\n";
    text += source;
    text += "\n#undef sync\nstatic void cilk_write(const void *from, size_t bytes) {\n    uint64_t size = bytes;\n    \
             fwrite(&size, 8, 1, stdout);\n    fwrite(from, 1, bytes, stdout);\n}\n\nint main(void) {\n";
    if has_init {
        text += "    init();\n";
    }
    for (at, (argument, parameter)) in call.arguments.iter().zip(parameters).enumerate() {
        let _ = writeln!(text, "    {parameter} cilk_a{at} = ({argument});");
        let _ = writeln!(text, "    cilk_write(&cilk_a{at}, sizeof cilk_a{at});");
    }
    let dump: String =
        globals.iter().map(|name| format!("    cilk_write(&{name}, sizeof {name});\n")).collect();
    text += &dump;
    let arguments: Vec<String> = (0..parameters.len()).map(|at| format!("cilk_a{at}")).collect();
    let arguments = arguments.join(", ");
    if ty == "void" {
        let _ = writeln!(text, "    {}({arguments});\n{dump}    cilk_write(\"\", 0);", call.function);
    } else {
        let _ = writeln!(text, "    {ty} cilk_result = {}({arguments});", call.function);
        let _ = writeln!(text, "{dump}    cilk_write(&cilk_result, sizeof cilk_result);");
    }
    text + "    return 0;\n}\n"
}
