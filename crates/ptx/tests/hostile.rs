//! Hostile texts: each must give a module or an error quickly, with memory in proportion to the text.

use warploom_ptx::{LoadError, resolve_text, resolved};

const HEAD: &str = ".version 7.8\n.target sm_80\n.address_size 64\n";

fn resolve(items: &str) -> Result<resolved::Module, LoadError> {
    resolve_text("hostile.ptx", &format!("{HEAD}{items}"))
}

fn message(items: &str) -> String {
    let error = resolve(items).expect_err("accepted");
    assert!(error.diagnostics.len() <= 20);
    // Showing an error must not cost more than finding it.
    assert!(error.render(true).len() < 20 * 2000);
    error.diagnostics[0].message.clone()
}

#[test]
fn deep_nesting() {
    let n = 100_000;
    for text in [
        format!(".entry k() {}", "{".repeat(n)),
        format!(".entry k() {{ {} }}", "{".repeat(n) + &"}".repeat(n)),
        format!(".entry k() {{ mov.u32 x, {}; }}", "(".repeat(n)),
        format!(".entry k() {{ mov.u32 x, {}1; }}", "-".repeat(n)),
        format!(".entry k() {{ mov.u32 x, {}1; }}", "1||1&&1|1^1&1==1<1<<1+1*(".repeat(n)),
        format!(".entry k() {{ mov.u32 x, {}1; }}", "(.s64)".repeat(n)),
        format!(".entry k() {{ mov.u32 x, {}; }}", "{".repeat(n)),
        format!(".entry k() {{ mov.u32 x, {}; }}", "[".repeat(n)),
        format!(".global .b8 x[{};", "(".repeat(n)),
        format!(".global .b8 x[] = {};", "{".repeat(n)),
    ] {
        assert!(message(&text).starts_with("nested deeper"), "{}", &text[..40]);
    }
}

#[test]
fn deep_but_flat() {
    // Sections and attributes are skipped without recursion.
    let n = 100_000;
    let open = format!(".section .debug_info {}{}\n", "{".repeat(n), "}".repeat(n));
    assert!(resolve(&open).is_ok());
    assert!(resolve(&format!(".global .attribute({}{}) .u32 x;", "(".repeat(n), ")".repeat(n))).is_ok());
    assert!(message(&format!(".section .debug_info {}", "{".repeat(n))).contains("never closed"));
}

#[test]
fn long_expressions_and_lists() {
    let sum = vec!["1"; 200_000].join("+");
    let values = vec!["1"; 200_000].join(",");
    assert!(resolve(&format!(".global .u32 x = {sum};")).is_ok());
    let module = resolve(&format!(".global .u8 x[] = {{{values}}};")).unwrap();
    assert_eq!(module.variables[0].init, vec![1; 200_000]);
    assert!(resolve(&format!(".global .b8 x{};", "[1]".repeat(200_000))).is_ok());
}

#[test]
fn families_cost_nothing() {
    let family = ".reg .b32 %r<4294967295>;";
    let nested = format!("{{ {family} mov.u32 %r4000000000, %r1;\n").repeat(150);
    let module = resolve(&format!(".entry k() {{ {nested} {} }}", "}".repeat(150))).unwrap();
    assert_eq!(module.functions[0].body.as_ref().unwrap().registers.len(), 300);
}

#[test]
fn garbage() {
    let megabytes = 10 << 20;
    for piece in [
        "\u{1}",
        "ü`",
        "{",
        "}",
        "(",
        "[",
        ";",
        "\"",
        "#x\n",
        "/*",
        "@",
        ".visible ",
        ".entry ",
        "a ",
        "0x",
        "1 ",
    ] {
        let garbage = piece.repeat(megabytes / piece.len());
        let _ = resolve(&garbage).map_err(|e| e.render(false));
        let _ = resolve(&format!(".entry k() {{ {garbage} }}")).map_err(|e| e.render(false));
    }
}

#[test]
fn sizes() {
    for items in [
        ".global .b8 x[0xFFFFFFFFFFFF][0xFFFFFFFFFFFF];",
        ".global .b64 x[0x2000000000000000];",
        ".shared .b8 x[0xFFFFFFFFFFFFFFF];",
        ".global .b8 x[][0xFFFFFFFFFFFFFFF] = {{1},{1},{1},{1},{1},{1},{1},{1},{1},{1},{1},{1},{1},{1},{1},{1},{1}};",
    ] {
        assert_eq!(message(items), "this variable is larger than any memory", "{items}");
    }
    assert!(message(".global .b8 x[2][0x7FFFFFFFFF] = {{1}, {1}};").starts_with("too many zeros"));
    let many =
        (0..1000).map(|i| format!(".global .b8 x{i}[2][0x1000000] = {{{{1}}, {{1}}}};")).collect::<String>();
    assert!(message(&many).starts_with("too many zeros"));
    let frame = ".local .b8 a[500000];".to_string();
    assert!(
        message(&format!(".entry k() {{ {frame} {{ {frame} }} }}").replacen(
            "{ .local .b8 a",
            "{ .local .b8 b",
            1
        ))
        .contains("524288")
    );
}

#[test]
fn many_names() {
    // Unknown names are compared with known ones, but only a bounded number of times.
    let declared: String = (0..50_000).map(|i| format!(".reg .b32 name{i};\n")).collect();
    let used: String = (0..50_000).map(|i| format!("mov.u32 nmae{i}, 1;\n")).collect();
    assert!(message(&format!(".entry k() {{ {declared} {used} }}")).starts_with("unknown"));
}

#[test]
fn long_words() {
    let word = "x".repeat(5 << 20);
    assert!(message(&format!(".entry k() {{ mov.u32 {word}, 1; }}")).len() < 6 << 20);
    assert!(resolve(&format!(".entry {word}() {{ {word}: bra {word}; }}")).is_ok());
    let _ = message(&format!(".global .b8 x = {};", "9".repeat(5 << 20)));
    let _ = message(&format!(".{word} 3;"));
}
