//! Cilk sources as users run them: on the apu, on the host, and in a persistent kernel on a GPU, which is simulated
//! where there is none. Where a compiler is missing, these tests say so and test nothing.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::scratch;

type Ended = (Option<i32>, String, String);

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cilk").join(name)
}

/// Runs `warploom cilk` on a source.
fn run(name: &str, source: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.arg("cilk").arg(source).args(arguments).env("XDG_CACHE_HOME", scratch(name));
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Runs `warploom cilk` on an example.
fn cilk(name: &str, source: &str, arguments: &[&str]) -> Ended {
    run(name, &example(source), arguments)
}

/// Runs `warploom cilk` on a source of its own, on a small apu.
fn small(name: &str, text: &str, call: &str) -> Ended {
    // Of its own, because every run empties the folder of its cache.
    let folder = scratch(&format!("{name}_source"));
    let source = folder.join(format!("{name}.cilk"));
    std::fs::write(&source, text).unwrap();
    run(name, &source, &[call, "--width", "64", "--set", "sm.count=2"])
}

/// Whether a run failed only because this computer has no compiler.
fn no_compiler(stderr: &str) -> bool {
    let missing = stderr.contains("no C compiler") || stderr.contains("there is no compiler for it");
    if missing {
        eprintln!("not tested: {}", stderr.lines().next().unwrap_or_default());
    }
    missing
}

#[test]
fn an_example_runs_everywhere_with_the_same_result() {
    for (place, line) in [
        (&["--on", "host"][..], "program    fib in C\n"),
        (&["--set", "sm.count=2"], "program    fib on apu, 32 levels of 1024 elements\n"),
        (
            &["--chip", "h200", "--set", "sm.count=2", "--levels", "16"],
            "program    fib on h200, 16 levels of 1024 elements\n",
        ),
    ] {
        let arguments = [&["fib(10)", "--width", "1024"], place].concat();
        let (code, stdout, stderr) = cilk("cilk_everywhere", "fib.cilk", &arguments);
        if no_compiler(&stderr) {
            return;
        }
        assert_eq!(code, Some(0), "{place:?}: {stderr}");
        assert!(stdout.starts_with(line), "{stdout}");
        assert!(stdout.contains("result     fib(10) = 55\n"), "{stdout}");
        assert_eq!(stdout.contains("check      ok"), !place.contains(&"host"), "{stdout}");
    }
}

#[test]
fn too_few_levels_are_named_in_a_persistent_kernel_too() {
    let arguments = ["fib(8)", "--width", "64", "--chip", "h200", "--set", "sm.count=1", "--levels", "3"];
    let (code, _, stderr) = cilk("cilk_levels", "fib.cilk", &arguments);
    if no_compiler(&stderr) {
        return;
    }
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("behind the last level of channel `fib`, which has 3"), "{stderr}");
}

#[test]
fn on_a_real_gpu() {
    let (code, stdout, stderr) = cilk("cilk_cuda", "fib.cilk", &["fib(16)", "--device", "cuda"]);
    if no_compiler(&stderr) {
        return;
    }
    match code {
        Some(0) => {
            assert!(stdout.contains("GPU time "), "{stdout}");
            assert!(stdout.contains("result     fib(16) = 987\n"), "{stdout}");
        }
        _ => assert!(stderr.contains("no NVIDIA driver") || stderr.contains("no GPU 0"), "{stderr}"),
    }
}

#[test]
fn what_becomes_of_a_program() {
    let (code, stdout, _) = cilk("cilk_emit", "fib.cilk", &["--emit"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("FLOW_KERNEL fib(::Work cilk_work"), "{stdout}");
    assert!(stdout.contains("FLOW_MAIN(fib, "), "{stdout}");
}

/// Sources whose results are compared with the plain program's: what callers, types, macros and names make of them.
#[test]
fn results_are_those_of_the_plain_program() {
    let recursion = "if (n < 2) return n; T x = spawn f(n - 1); T y = spawn f(n - 2); sync; return x + y; }";
    let fib = |ty: &str| format!("{ty} f(int n) {{ {}\n", recursion.replace('T', ty));
    for (name, text, call, result) in [
        ("caller", fib("int") + "int go(int n) { int x = spawn f(n); sync; return x + 1; }", "go(7)", "14"),
        ("bytes", fib("unsigned char"), "f(7)", "13"),
        ("shorts", fib("short"), "f(7)", "13"),
        (
            "short_arrays",
            "short f(int n) {\n if (n < 2) return n;\n short a[3], s = 0;\n char k = 7, b[3];\n \
             for (int i = 0; i < 3; i++) { b[i] = i; a[i] = spawn f(n - 2 - i); }\n sync;\n \
             for (int i = 0; i < 3; i++) s += a[i] + b[i];\n return s + k; }"
                .to_string(),
            "f(5)",
            "28",
        ),
        ("alias", format!("typedef unsigned u32;\nuint8_t k = 1;\n{}", fib("u32")), "f(7)", "13"),
        ("reals", fib("double").replace("return n;", "return n * 0.1;"), "f(5)", "0.5"),
        (
            "rounding",
            "double f(int n, double v) {\n if (n < 1) return v;\n double a = spawn f(n - 1, v * 1.1 + 0.3);\n \
             double b = spawn f(n - 1, v * 0.7 - 0.1);\n sync;\n return a * 1.01 + b * v;\n}"
                .to_string(),
            "f(3, 0.7)",
            "",
        ),
        (
            "macro",
            "#define TWICE (n * 2)\nint n = 100;\nint f(int n) { if (n < 2) return 1; int x = spawn f(n - 1); sync; \
             return x + TWICE; }"
                .to_string(),
            "f(6)",
            "41",
        ),
        (
            "one_line",
            "int f(int n) {\n if (n < 2) return 1;\n int x = 0;\n \
             if (n & 1) { x = spawn f(n - 1); sync; } else { x = spawn f(n - 2); sync; }\n return x + 1;\n}"
                .to_string(),
            "f(6)",
            "4",
        ),
        (
            "names",
            "\u{feff}enum { BASE = 2 };\nint f(int work) {\n if (work < BASE) return 1;\n int i = 5;\n \
             for (int i = 0; i < 2; i++) ;\n int put = spawn f(work - 1);\n sync;\n return put + work + i;\n}"
                .to_string(),
            "f(3)",
            "16",
        ),
        (
            "blocks",
            "int f(int n) {\n if (n < 2) return 1;\n int x = spawn f(n - 1);\n sync;\n { int t = x + 1; \
             int y = spawn f(n - 2); sync; x = t + y; }\n int t = 4;\n return x + t;\n}"
                .to_string(),
            "f(5)",
            "43",
        ),
        (
            "constants",
            "const int table[4] = {1, 2, 3, 4};\nint f(int n) { if (n < 1) return table[0]; int x = spawn f(n - 1); \
             sync; return x + table[n & 3]; }"
                .to_string(),
            "f(3)",
            "10",
        ),
    ] {
        let (code, stdout, stderr) = small(&format!("cilk_{name}"), &text, call);
        if no_compiler(&stderr) {
            return;
        }
        assert_eq!(code, Some(0), "{name}: {stderr}");
        assert!(stdout.contains(&format!("result     {call} = {result}")), "{name}: {stdout}");
    }
}

/// Errors of the run and of compilers name the line of the source.
#[test]
fn errors_name_the_line_of_the_source() {
    for (name, text, call, expected) in [
        (
            "loop",
            "int f(int n) {\n if (n < 1) return 1;\n int a[1], i = 0;\n \
             while (i < 6) { a[0] = spawn f(n - 1); i++; }\n sync;\n return a[0];\n}",
            "f(3)",
            "loop.cilk:4",
        ),
        (
            "endless",
            "int f(int n) {\n if (n == -1) return 0;\n int x = spawn f(n + 1);\n sync;\n return x + 1;\n}",
            "f(1)",
            "line 3: probably recursion without a bound: `f` calls itself here",
        ),
        (
            "unknown",
            "\nint f(int n) {\n if (n < 2) return 1;\n int x = spawn f(n - 1);\n sync;\n return x + nothing;\n}",
            "f(3)",
            "unknown.cilk:6",
        ),
        (
            "call",
            "void g(int n) { }\nint f(int n) {\n if (n < 2) return 1;\n spawn g(1);\n sync;\n return 2;\n}",
            "f(m)",
            "the call:",
        ),
        (
            "deep",
            "int f(int n) {\n if (n < 2) return 1;\n int x = spawn f(n - 1);\n sync;\n return x;\n}",
            "f(9000)",
            "line 3: `f` spawns itself up to 9000 levels deep, and a graph has 4096 at most",
        ),
    ] {
        let (code, _, stderr) = small(&format!("cilk_{name}"), text, call);
        if no_compiler(&stderr) {
            return;
        }
        assert_ne!(code, Some(0), "{name}");
        assert!(stderr.contains(expected), "{name}: {stderr}");
        assert!(!stderr.contains("/tmp/warploom-cilk"), "{name}: {stderr}");
    }
}

/// The examples take at most 1.3 times as many cycles as the graphs that were written by hand.
#[test]
fn examples_are_as_fast_as_graphs_written_by_hand() {
    let folder = scratch("cilk_ratio_source");
    for (source, constant, call, work) in [
        ("fib.cilk", None, "fib(12)", &["fibonacci", "n=12"][..]),
        ("queens.cilk", None, "queens(0, 0, 0, 8, 8, 4)", &["queens", "n=8", "serial=4"]),
        ("queens.cilk", None, "queens(0, 0, 0, 9, 9, 7)", &["queens", "n=9", "serial=7"]),
        ("sort.cilk", Some(("COUNT 6000", "COUNT 1000")), "sort(0, COUNT)", &["sort", "count=1000"]),
        ("strassen.cilk", Some(("ROWS 128", "ROWS 64")), "product(0, 0, 0, ROWS)", &["strassen", "size=64"]),
    ] {
        let text = std::fs::read_to_string(example(source)).unwrap();
        let text = constant.map_or(text.clone(), |(from, to)| text.replace(from, to));
        let path = folder.join(source);
        std::fs::write(&path, text).unwrap();
        let (code, stdout, stderr) = run("cilk_ratio", &path, &[call, "--width", "4096"]);
        if no_compiler(&stderr) {
            return;
        }
        assert_eq!(code, Some(0), "{source}: {stderr}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command.arg("work").args(work).args(["width=4096", "--chip", "apu"]);
        let by_hand = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let cycles = |text: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix("cycles")).unwrap_or_else(|| panic!("{text}"));
            let number: String =
                line.trim().chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
            let number = number.trim_end_matches(',').replace(',', "");
            number.parse::<f64>().unwrap_or_else(|_| panic!("{line}"))
        };
        let ratio = cycles(&stdout) / cycles(&by_hand);
        println!("{source} {call}: {ratio:.2}");
        assert!(ratio <= 1.3, "{source} {call}: {ratio:.2} times as many cycles");
    }
}
