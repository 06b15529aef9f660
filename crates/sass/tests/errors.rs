//! Listings that do not assemble, and their error messages.

/// The messages about a listing.
fn refused(text: &str) -> String {
    match warploom_sass::load("k.sass", text) {
        Ok(_) => format!("accepted:\n{text}"),
        Err(error) => error.render(false),
    }
}

/// A kernel with two parameters that holds these lines.
fn kernel(lines: &str) -> String {
    format!(".kernel k\n    .param out u64\n    .param n u32\n{lines}\n    EXIT;\n")
}

/// The messages about each of these lines, each in a separate kernel.
fn all(lines: &[&str]) -> String {
    lines.iter().map(|line| refused(&kernel(line))).collect::<Vec<_>>().join("\n")
}

#[test]
fn mnemonics() {
    insta::assert_snapshot!(all(&[
        "SSSY 0x110;",
        "FROB R1, R2;",
        "IADDD R1, R2, R3;",
        "IADD.F32 R1, R2, R3;",
        "ISETP P0, PT, R1, R2, PT;",
        "IMNMX R1, R2, R3;",
        "ATOM.MIN.F32 R1, [R2], R3;",
        "PBK 0x8;",
        "TEX R0, R1;",
    ]));
}

#[test]
fn registers_and_predicates() {
    insta::assert_snapshot!(all(&[
        "MOV R63, 0x1;",
        "MOV R64, 0x1;",
        "MOV R99999999999, 0x1;",
        "MOV.64 R62, RZ;",
        "MOV.64 R3, RZ;",
        "LDG.E R1, [R3];",
        "@P7 MOV R1, R2;",
        "@P9 MOV R1, R2;",
        "@R1 MOV R1, R2;",
        "@!PT MOV R1, R2;",
        "SEL R1, R2, R3, R4;",
        "ISETP.EQ R1, PT, R2, R3, PT;",
        "MOV P0, R1;",
        "MOV R1, P0;",
        ".registers 0",
    ]));
}

#[test]
fn operands() {
    insta::assert_snapshot!(all(&[
        "IADD R1, R2;",
        "IADD R1, R2, R3, R4;",
        "EXIT R1;",
        "IADD R1, R2, 0x100000000;",
        "IADD R1, R2, -0x80000001;",
        "IADD R1, -R2, -R3;",
        "IADD R1, R2, |R3|;",
        "IADD R1, R2, c[0x0][0x20];",
        "IADD R1, R2, [R3];",
        "IADD R1, R2, (wid);",
        "IADD R1, R2, (wid;",
        "LDS R1, R2;",
        "LDS R1, [R2+0x123456789];",
        "STS R1, [R2];",
        "LDC R1, [R2];",
        "LDC R1, c[0x7][0x0];",
        "LDC R1, c[0x0][0x18];",
        "LDC R1, c[0x0][0x40];",
        "LDC R1, c[0x0][m];",
        "MOV R1, &nothing;",
        "LDG.E.128 {R1, R2}, [R4];",
        "S2R R1, SR_TidX;",
        "VOTE.ANY R1, P1, P0;",
        "FADD R1, R2, 1e99;",
        "MOV R1, 12ab;",
    ]));
}

#[test]
fn targets() {
    insta::assert_snapshot!(all(&[
        "BRA 0x110;",
        "BRA nowhere;",
        "lop: BRA loop;",
        "BRA R1, R2;",
        "BRA end; EXIT; end:",
        "a: NOP; a: NOP;",
        "/*0010*/ NOP;\n/*0010*/ NOP;\nBRA 0x10;",
        "SSY 0x7;",
        "BRX R1, {};",
        "MOV R1, R2 (MEET x);",
        "CAL f;",
        "CAL k, IN 0x0 0x0 0x8;",
    ]));
}

#[test]
fn whole_files() {
    let texts = [
        "MOV R1, R2;",
        ".kernel k\n",
        ".kernel k\n MOV R1, R2;",
        ".kernel k\n EXIT;\n.kernel k\n EXIT;",
        ".kernel\n EXIT;",
        ".kernal k\n EXIT;",
        ".kernel k\n .param n\n EXIT;",
        ".kernel k\n .param n word\n EXIT;",
        ".kernel k\n ...\n EXIT;",
        ".kernel k\n MOV R1, R2 R3;\n EXIT;",
        ".kernel k\n @ MOV R1, R2;\n EXIT;",
        ".global g 0x4\n .bytes \"0102030405\"\n",
        ".global g 0x4\n .bytes \"xy\"\n",
        ".shared s 0x4 align 3\n",
        ".kernel k\n EXIT; /* open",
        ".kernel k\n EXIT; ä",
        ".let A = R1",
    ];
    insta::assert_snapshot!(texts.map(refused).join("\n"));
}

#[test]
fn bytes_that_are_no_text() {
    for bytes in [&b"\x7FELF\x02"[..], b".kernel k\n\xff", b"\0\0\0", b""] {
        let _ = warploom_sass::load_bytes("k.sass", bytes).map_err(|e| e.render(false));
    }
    assert!(warploom_sass::load_bytes("k.sass", b"\x7FELF\x02").is_err());
    assert!(warploom_sass::load_bytes("k.sass", b".kernel k\n\xff").is_err());
}

/// A damaged listing yields a module or a message, never a panic.
#[test]
fn mutations() {
    let text = kernel(
        "loop: @!P0 LDSLK P1, R11, [R7+-0x4];\n /*0010*/ ISETP.EQ.AND P0, PT, R1, 0x10, !P2;\n .let (x[1]) = [R4]\n \
         LDS.64 R2, (x[1]);\n MOV R4, c[0x0][0x20];\n BRX R1, {loop, loop} (MEET loop);\n CAL k, IN 0x0 0x0 0x4;",
    );
    let signs: Vec<char> = "()[]{}.,;:@!&+-|~\"/*\n0xRPc".chars().collect();
    let mut seed = 7u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    for _ in 0..20_000 {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..1 + random(4) {
            let at = random(chars.len());
            match random(3) {
                0 => drop(chars.remove(at)),
                1 => chars.insert(at, signs[random(signs.len())]),
                _ => chars[at] = signs[random(signs.len())],
            }
        }
        let text: String = chars.into_iter().collect();
        if let Err(error) = warploom_sass::load("k.sass", &text) {
            assert!(!error.render(true).is_empty());
        }
    }
}
