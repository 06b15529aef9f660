//! The rendered message for each kind of mistake, compared whole.

use std::fmt::Write as _;

/// The rendered errors of several texts, each under its name.
fn render(cases: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, text) in cases {
        let rendered = match warploom_ptx::resolve_text("k.ptx", text) {
            Ok(_) => "accepted\n".to_string(),
            Err(error) => error.render(false),
        };
        writeln!(out, "## {name}\n{rendered}").unwrap();
    }
    out
}

/// Compares with the snapshot named after the calling test.
fn check(found: String) {
    let name = std::thread::current().name().unwrap_or_default().to_string();
    insta::with_settings!({omit_expression => true}, { insta::assert_snapshot!(name, found) });
}

/// Puts items after the directives that every module needs.
fn modules(cases: &[(&str, &str)]) -> String {
    let texts: Vec<_> = cases
        .iter()
        .map(|(n, t)| (*n, format!(".version 7.8\n.target sm_80\n.address_size 64\n{t}\n")))
        .collect();
    render(&texts.iter().map(|(n, t)| (*n, t.as_str())).collect::<Vec<_>>())
}

/// Puts statements into a kernel with a few registers.
fn bodies(cases: &[(&str, &str)]) -> String {
    let head = ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<10>, count;\n.reg .b64 %rd<4>;\n";
    let texts: Vec<_> = cases.iter().map(|(n, t)| (*n, format!("{head}{t}\nret;\n}}"))).collect();
    modules(&texts.iter().map(|(n, t)| (*n, t.as_str())).collect::<Vec<_>>())
}

#[test]
fn texts_that_are_no_module() {
    check(render(&[
        ("empty", ""),
        ("only comments", "// nothing\n"),
        ("no version", ".target sm_70\n.visible .entry k() { ret; }\n"),
        ("CUDA", "__global__ void k() {}\n"),
        ("include", "#include <cuda.h>\n"),
        ("bad version", ".version seven\n"),
        ("unknown version", ".version 99.9\n.target sm_70\n"),
        ("version that was skipped", ".version 7.9\n.target sm_70\n"),
        ("unknown target", ".version 7.8\n.target foo\n"),
        ("unknown chip", ".version 7.8\n.target sm_999\n"),
        ("unknown option", ".version 7.8\n.target sm_70, foo\n"),
        ("target without a chip", ".version 7.8\n.target debug, sm_70\n"),
        ("vector parameter", ".version 7.8\n.target sm_70\n.entry k(.param .v2 .b32 p) { ret; }\n"),
        ("no target", ".version 7.8\n.address_size 64\n"),
        ("address size", ".version 7.8\n.target sm_70\n.address_size 16\n"),
        ("doubles as floats", ".version 1.4\n.target sm_13, map_f64_to_f32\n.entry k() { exit; }\n"),
        ("vector after its type", ".version 7.8\n.target sm_70\n.entry k(.param .b32 .v2 p) { ret; }\n"),
    ]));
}

#[test]
fn tokens() {
    check(bodies(&[
        ("unknown character", "mov.u32 %r1, `;"),
        ("not ASCII", "mov.u32 %r1, ü;"),
        ("malformed hexadecimal number", "mov.u32 %r1, 0xZZ;"),
        ("short float", "mov.b32 %r1, 0f3F8;"),
        ("octal", "mov.u32 %r1, 089;"),
        ("too big", "mov.u64 %rd1, 0x10000000000000000;"),
        ("open string", ".pragma \"nounroll;"),
        ("open comment", "/* mov.u32 %r1, 1;"),
        ("preprocessor", "#define X 1"),
    ]));
}

#[test]
fn syntax() {
    check(bodies(&[
        ("missing semicolon", "mov.u32 %r1, 1\nmov.u32 %r2, 2;"),
        ("missing comma", "mov.u32 %r1 %r2;"),
        ("missing operand", "add.u32 %r1, %r2, ;"),
        ("missing bracket", "ld.global.u32 %r1, [%rd1;"),
        ("two registers in an address", "ld.global.u32 %r1, [%rd1+%rd2];"),
        ("empty address", "ld.global.u32 %r1, [];"),
        ("vector not closed", "ld.global.v2.u32 {%r1, %r2, [%rd1];\nmov.u32 %r3, ;"),
        (
            "several mistakes",
            "mov.u32 %r1, ;\nadd.u32 %r1 %r2, 3;\n{ mov.u32 ; }\nld.v2.u32 {%r1 %r2}, [%rd1];",
        ),
        ("division by zero", "mov.u32 %r1, 1 / 0;"),
        ("float in an expression", "mov.u32 %r1, 1 + 1.5;"),
        ("guard without register", "@ bra x;"),
        ("unknown directive", ".frobnicate 3;"),
        ("large vector register", ".reg .v4 .f64 q;"),
        ("register array", ".reg .b32 a[4];"),
        ("too many registers", ".reg .b32 %x<4294967296>;"),
        ("no type", ".reg x;"),
    ]));
}

#[test]
fn unclosed() {
    check(modules(&[
        ("function", ".visible .entry k() {\n ret;\n"),
        ("before the next function", ".visible .entry k() {\n ret;\n.visible .entry j() {\n ret;\n}\n"),
        ("section", ".section .debug_info {\n.b8 1\n"),
        ("parameters", ".visible .entry k(.param .u32 a {\nret;\n}\n"),
        ("initial value", ".global .u32 x[2] = {1, 2;\n.global .u32 x[2] = {1, 2};\n.global .u32 y = ;"),
    ]));
}

#[test]
fn items() {
    check(modules(&[
        ("unknown directive", ".globl .u32 x;"),
        ("statement", "mov.u32 %r1, 1;"),
        ("function directive", ".entry k() .maxthreads 3 { ret; }"),
        ("parameter space", ".entry k(.global .u32 x) { ret; }"),
        ("register parameter of a kernel", ".entry k(.reg .u32 x) { ret; }"),
        ("texture reference", ".global .texref t;"),
        ("sampler parameter", ".entry k(.param .samplerref s) { ret; }"),
        ("old texture", ".tex .u32 t;"),
        ("unknown type", ".global .f128 x;"),
        ("predicate variable", ".global .pred x;"),
        ("alignment", ".global .align 3 .b8 x[4];"),
        ("parameter outside a function", ".param .u32 x;"),
        ("huge parameters", ".entry k(.param .b8 x[40000]) { ret; }"),
        ("variable parameters first", ".func f(.param .b8 x[], .param .u32 y) { ret; }"),
    ]));
}

#[test]
fn variables() {
    check(modules(&[
        ("overflowing size", ".global .b8 x[0xFFFFFFFFFFFF][0xFFFFFFFFFFFF];"),
        ("negative size", ".global .b8 x[-1];"),
        ("no elements", ".global .b8 x[0];"),
        ("unknown size", ".global .b8 x[];"),
        ("inner size unknown", ".global .b8 x[2][] = {{1}};"),
        ("too many values", ".global .u32 x[2] = {1, 2, 3};"),
        ("missing braces", ".global .u32 x[2] = 1;"),
        ("needless braces", ".global .u32 x = {1};"),
        ("flat values", ".global .u32 x[2][2] = {1, 2, 3, 4};"),
        ("integer for float", ".global .f32 x = 1;"),
        ("float for integer", ".global .u32 x = 1.0;"),
        ("single precision for double", ".global .f64 x = 0f3F800000;"),
        ("sum behind a mask", ".global .u32 t;\n.global .u8 x = 0xFF(t)+1;"),
        ("shared", ".shared .u32 x = 1;"),
        ("extern with value", ".extern .global .u32 x = 1;"),
        ("unknown symbol", ".global .u32 table;\n.global .u64 x = tabel;"),
        ("address in a byte", ".global .u32 t;\n.global .u8 x = t;"),
        ("mask", ".global .u32 t;\n.global .u8 x = 0xF0(t);"),
        ("shared address", ".shared .u32 t;\n.global .u64 x = generic(t);"),
        ("sparse", ".global .b8 x[100][0x1000000] = {{1},{1},{1},{1},{1},{1},{1},{1},{1},{1}};"),
        ("undefined", ".extern .global .u32 e;\n.global .u64 x = e;"),
    ]));
}

#[test]
fn declarations_that_disagree() {
    check(modules(&[
        ("two variables", ".global .u32 x;\n.global .u32 x;"),
        ("two types", ".extern .global .u32 x;\n.visible .global .u64 x = 3;"),
        ("two bodies", ".func f() { ret; }\n.func f() { ret; }"),
        ("two signatures", ".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }"),
        ("kernel and function", ".func f();\n.entry f() { ret; }"),
        ("variable and function", ".global .u32 f;\n.func f() { ret; }"),
        ("alias of nothing", ".func f();\n.alias f, g;"),
    ]));
}

#[test]
fn names() {
    check(bodies(&[
        ("beyond the family", "mov.u32 %r12, 1;"),
        ("no such family", "mov.u32 %q1, 1;"),
        ("misspelt", "mov.u32 cuont, 1;"),
        ("leading zero", "mov.u32 %r01, 1;"),
        ("label", "loop_head:\nbra loop_haed;"),
        ("label of an inner scope", "bra inner;\n{ inner: }"),
        ("function", "call undeclared;"),
        ("parameter", "ld.param.u64 %rd1, [q];"),
        ("used before it is declared", "mov.u32 x, 1;\n.reg .b32 x;"),
        ("out of its scope", "{ .reg .b32 x; }\nmov.u32 x, 1;"),
        ("two registers", ".reg .b32 count;"),
        ("register of a family", ".reg .b32 %r3;"),
        ("two families", ".reg .f32 %r<3>;"),
        ("two labels", "a:\na:\n"),
        ("label and register", "count:\nbra count;"),
        ("formal parameter again", ".reg .b64 p;"),
        ("guard is no predicate", "@%r1 bra x;\nx:"),
        ("guard is no register", "x: @x bra x;"),
        ("not of a number", "setp.eq.and.u32 %p1, %r1, %r2, !%r3;"),
        ("address of a label", "x: ld.global.u32 %r1, [x];"),
        ("address in a predicate", "ld.global.u32 %r1, [%p1];"),
        ("address in a special register", "ld.global.u32 %r1, [%laneid];"),
        ("offset to a label", "L: bra L+4;"),
        ("special register without component", "mov.u32 %r1, %tid;"),
        ("component of a plain register", "mov.u32 %r1, %r2.x;"),
        ("component of a plain special register", "mov.u32 %r1, %laneid.x;"),
        ("branch targets", "t: .branchtargets count;"),
        ("call targets", "t: .calltargets nobody;"),
        ("local memory", ".local .b8 a[600000];"),
        ("local value", ".local .u32 a = 3;"),
    ]));
}

#[test]
fn not_text() {
    let cases: [(&str, &[u8]); 4] = [
        ("cubin", b"\x7FELF\x02\x01"),
        ("fatbin", b"\x50\xED\x55\xBA\x01\0"),
        ("Latin-1", b".version 7.8\n// \xE4\n"),
        ("nothing", b""),
    ];
    let mut out = String::new();
    for (name, bytes) in cases {
        let error = warploom_ptx::load_bytes("k.ptx", bytes).unwrap_err();
        writeln!(out, "## {name}\n{}", error.render(false)).unwrap();
    }
    check(out);
}

#[test]
fn at_most_twenty() {
    let text = format!(".version 7.8\n.target sm_80\n.entry k() {{\n{}}}\n", "mov.u32 x, 1;\n".repeat(1000));
    assert_eq!(warploom_ptx::resolve_text("k.ptx", &text).unwrap_err().diagnostics.len(), 20);
    let text = format!(".version 7.8\n.target sm_80\n.entry k() {{\n{}}}\n", "mov.u32 , ;\n".repeat(1000));
    assert_eq!(warploom_ptx::resolve_text("k.ptx", &text).unwrap_err().diagnostics.len(), 20);
}
