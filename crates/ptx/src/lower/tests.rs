//! Small texts and the instructions they are lowered to, whole files from many compilers, and refusals.
//!
//! `lists/*.txt` hold one instruction per line. Each is loaded in a kernel that declares the registers it names: `%c`,
//! `%h`, `%r` and `%rd` are 8, 16, 32 and 64 bits, `%u` is unsigned, `%f` and `%d` are floats, `%p` are predicates.

mod corpus;
mod functions;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use warploom_isa as isa;

use crate::diag::LoadError;

fn load(text: &str) -> Result<isa::Module, LoadError> {
    crate::load("test.ptx", text)
}

/// The code of each function.
fn listing(text: &str) -> String {
    let module = match load(text) {
        Ok(module) => module,
        Err(error) => return error.render(false),
    };
    let mut out = String::new();
    for function in &module.functions {
        if let Some(body) = &function.body {
            let _ = writeln!(out, "{}: frame {}", function.name, body.frame_bytes);
            let _ = write!(out, "{}", isa::print::body(body));
        }
    }
    out
}

/// A kernel that holds one instruction.
fn kernel(line: &str, head: &str) -> String {
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    for piece in line.split('%').skip(1) {
        let name: String = piece.chars().take_while(char::is_ascii_alphanumeric).collect();
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let ty = match letters {
            "p" => "pred",
            "c" => "b8",
            "h" => "b16",
            "r" => "b32",
            "u" => "u32",
            "rd" => "b64",
            "f" => "f32",
            "d" => "f64",
            _ => continue,
        };
        if letters.len() < name.len() && seen.insert(name.clone()) {
            names.push(format!(".reg .{ty} %{name};"));
        }
    }
    let function = if line.contains("function") { ".func function() { ret; }" } else { "" };
    format!(
        "{head}\n.address_size 64\n.global .align 8 .b8 glob[64];\n.const .align 8 .b8 cons[64];\n{function}\n\
         .visible .entry k(.param .u64 param_a, .param .align 8 .b8 param_b[16])\n{{\n\
         .shared .align 8 .b8 shar[64];\n.local .align 8 .b8 loc[64];\n{}\n{line};\nret;\n}}\n",
        names.join(" ")
    )
}

const MODERN: &str = ".version 8.8\n.target sm_100";

/// Each line with its lowered code, or its error.
fn each_line(list: &str, head: &str) -> String {
    let mut out = String::new();
    for line in list.lines() {
        let _ = writeln!(out, "{line}");
        match load(&kernel(line, head)) {
            Ok(module) => {
                corpus::check(&module);
                let body = module.functions.iter().find(|f| f.is_kernel).and_then(|f| f.body.as_ref());
                let text = isa::print::body(body.unwrap()).to_string();
                let mut lines: Vec<_> = text.lines().collect();
                // The `ret` after the instruction.
                lines.pop();
                for line in lines {
                    let _ = writeln!(out, "        {}", line.trim_start());
                }
            }
            Err(error) => {
                for d in &error.diagnostics {
                    let _ = writeln!(out, "        {}", d.message);
                    let _ = writeln!(out, "        at `{}`", error.source.snippet(d.span));
                    if !d.label.is_empty() {
                        let _ = writeln!(out, "        {}", d.label);
                    }
                    if let Some(help) = &d.help {
                        let _ = writeln!(out, "        help: {help}");
                    }
                }
            }
        }
    }
    out
}

/// Compares a text with the snapshot of this name.
fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
}

macro_rules! lists {
    ($($name:ident: $head:expr;)*) => {$(
        #[test]
        fn $name() {
            let list = include_str!(concat!("tests/lists/", stringify!($name), ".txt"));
            snapshot(stringify!($name), &each_line(list, $head));
        }
    )*};
}

lists! {
    arith: MODERN;
    bits: MODERN;
    float: MODERN;
    compare: MODERN;
    moves: MODERN;
    convert: MODERN;
    memory: MODERN;
    sync: MODERN;
    engine: ".version 8.8\n.target sm_90a";
    wrong: MODERN;
    old: ".version 1.4\n.target sm_13";
    kepler: ".version 3.1\n.target sm_30";
}
