//! Sources that are cut, sources that are refused with their line, and sources that are nonsense.

use proptest::prelude::*;
use warploom_cilk::{Call, PlainRun, Program};

const FIB: &str = include_str!("../../../examples/cilk/fib.cilk");
const QUEENS: &str = include_str!("../../../examples/cilk/queens.cilk");
const SORT: &str = include_str!("../../../examples/cilk/sort.cilk");
const STRASSEN: &str = include_str!("../../../examples/cilk/strassen.cilk");

fn refused(source: &str) -> String {
    Program::parse(source).unwrap_err().to_string()
}

#[test]
fn the_kernels_of_fibonacci() {
    insta::assert_snapshot!(Program::parse(FIB).unwrap().own_cuda());
}

#[test]
fn the_graph_of_fibonacci() {
    let program = Program::parse(FIB).unwrap();
    let call = Call::parse("fib(12)").unwrap();
    let graph = program.graph(&call, &[12i32.to_le_bytes().to_vec()], 0x1000, 256, 11).unwrap();
    graph.check().unwrap();
    insta::assert_snapshot!(graph.describe());
}

#[test]
fn examples_are_short_and_have_graphs() {
    for (source, call, kernels) in [
        (FIB, "fib(9)", 2),
        (QUEENS, "queens(0, 0, 0, 8, 8, 4)", 2),
        (SORT, "sort(0, COUNT)", 4),
        (STRASSEN, "product(0, 0, 0, ROWS)", 1),
    ] {
        assert!(source.lines().count() <= 40, "{call}: {}", source.lines().count());
        let program = Program::parse(source).unwrap_or_else(|error| panic!("{call}: {error}"));
        let call = Call::parse(call).unwrap();
        let arguments: Vec<Vec<u8>> = call.arguments.iter().map(|_| vec![0; 4]).collect();
        let graph = program.graph(&call, &arguments, 0x1000, 1024, 16).unwrap();
        graph.check().unwrap_or_else(|error| panic!("{}: {error}", call.function));
        assert_eq!(graph.kernel_count(), kernels, "{}", call.function);
    }
}

#[test]
fn errors_name_their_line() {
    for (source, expected) in [
        (
            "int f(int n) {\n if (n < 2) return 1;\n while (n--) {\n  int x = spawn f(n);\n  sync;\n }\n return 0;\n}",
            "line 5: a `sync` inside a loop cannot be cut",
        ),
        ("void f(int n) {\n spawn f(n - 1);\n sync;\n}", "line 2: `f` spawns itself in any case"),
        (
            "void g(int *p) { *p = 1; }\nvoid f(int n) {\n if (!n) return;\n int x = 0;\n g(&x);\n \
             spawn f(n - 1);\n sync;\n}",
            "line 5: the address of `x` escapes",
        ),
        (
            "void g(int *p) { *p = 1; }\nvoid f(int n) {\n if (!n) return;\n int x[4];\n g(x);\n \
             spawn f(n - 1);\n sync;\n}",
            "line 5: the array `x` escapes",
        ),
        (
            "int f(int n) {\n if (n < 2) return 1;\n int x = spawn f(n - 1);\n return x;\n}",
            "line 3: the result of this task is never synced",
        ),
        (
            "int f(int n) {\n if (n < 2) return 1;\n int x = spawn f(n - 1);\n sync;\n return x + f(n - 2);\n}",
            "line 5: `f` spawns tasks, so it must be spawned itself",
        ),
        (
            "void f(int n) {\n if (!n) return;\n for (int i = 0; i < n; i++)\n  spawn f(i);\n sync;\n}",
            "line 4: a spawn in a loop needs a bound",
        ),
        (
            "int f(int n) {\n if (n < 2) return 1;\n return spawn f(n - 1);\n}",
            "line 3: `spawn` inside an expression",
        ),
        (
            "int f(int n) {\n if (n < 2) return 1;\n int x = spawn g(n - 1);\n sync;\n return x;\n}",
            "line 3: there is no function `g`",
        ),
        (
            "int f(int n) {\n if (n < 2) return 1;\n int x = spawn f();\n sync;\n return x;\n}",
            "line 3: `f` takes 1 arguments, not 0",
        ),
        (
            "int f(int n) {\n if (n < 2) return 1;\n float x = spawn f(n - 1);\n sync;\n return x;\n}",
            "line 3: `x` is of type `float`, the result of `f` of type `int`",
        ),
        (
            "int f(int n) {\n if (n < 2) return 1;\n if (n > 3) {\n  int x = spawn f(n - 1);\n }\n \
             sync;\n return 0;\n}",
            "line 4: `x` ends before the sync that its task's result waits for",
        ),
        ("int f(int n) {\n switch (n) {}\n}", "line 2: `switch` is not understood"),
        ("int f(int n) {\n if (n < 2 return 1;\n}", "line 2: a bracket before this `;` is not closed"),
        ("int f(int n) {\n return 1;\n", "line 2: a block has no end"),
        ("int x; /* no end", "line 1: this comment has no end"),
        (
            "int f(int n) {\n {\n  int x = spawn f(n - 1);\n  sync;\n  return x;\n }\n}",
            "line 3: `f` spawns itself in any",
        ),
        (
            "int f(int n) {\n int x = spawn g(n);\n sync;\n return x;\n}\nint g(int n) {\n if (n) n++;\n \
             int x = spawn f(n);\n sync;\n return x;\n}",
            "line 2: `f` spawns `g` in any case and that spawns it again",
        ),
        (
            "int f(int n) {\n int x;\n if (n) x = spawn f(n); else x = spawn f(0);\n sync;\n return x;\n}",
            "line 3: `f` spawns itself in any case",
        ),
        ("int f(int n) {\n static int k;\n return k;\n}", "line 2: `static` inside a function"),
        ("int f(int n) {\n#if 1\n return 1;\n#endif\n}", "line 2: `#if 1` is inside a function"),
        ("#if 1\nint f(int n) { return 1; }\n#endif", "line 2: `f` is inside an `#if`"),
        (
            "int f(int n) {\n int new = 1;\n return new;\n}",
            "line 2: `new` has another meaning in the kernels",
        ),
        ("int f(int n) {\n return 1;\n}\nint main(void) { return 0; }", "line 4: `main` is not understood"),
        ("int data[2];\nint *where = data;", "line 2: `where` is a pointer outside functions"),
        ("int a, *b;", "line 1: `b` is a pointer outside functions"),
        (
            "#define G(n) \\\n  spawn f(n)\nint f(int n) {\n if (n) return 1;\n int x = spawn f(1);\n sync;\n \
             return x;\n}",
            "line 1: the macro `G` hides a spawn",
        ),
        (
            "int f(int n) {\n if (n) return 1;\n int x = spawn f(1);\n sync;\n return x;\n}\n\
             int f_1(int n) { return n; }",
            "line 7: `f_1` is a name of what becomes of `f`",
        ),
        (
            "int f(int n) {\n if (n) return 1;\n int i = 5;\n {\n  int i = 6;\n  int x = spawn f(1);\n  sync;\n  \
             n += x + i;\n }\n return n + i;\n}",
            "line 5: `i` hides another variable, and one of them is needed after a sync",
        ),
    ] {
        let found = refused(source);
        assert!(found.starts_with(expected), "{source}\n{found}\n{expected}");
    }
}

/// A function that takes an address, and then lives on after a sync.
fn takes(address: &str) -> String {
    format!(
        "#define AT(v) &(v)\nvoid g(int *p) {{ *p = 1; }}\nint all[9];\nint f(int n) {{\n if (n < 2) return 1;\n \
         int x = 5, a[4];\n g({address});\n int y = spawn f(n - 1);\n sync;\n return x + y;\n}}"
    )
}

#[test]
fn addresses_escape() {
    for address in [
        "&x",
        "&(x)",
        "& ( (x) )",
        "(int *)&x",
        "(int *)(&x)",
        "n & 1 ? &x : all",
        "AT(x)",
        "&a[1]",
        "&(a[1])",
    ] {
        let found = refused(&takes(address));
        assert!(found.starts_with("line 7: the address of `"), "{address}: {found}");
    }
    for fine in ["&all[1]", "&(all)[x & n]", "&all[(x) & n]", "all + (n & x)", "AT(all[x])"] {
        Program::parse(&takes(fine)).unwrap_or_else(|error| panic!("{fine}: {error}"));
    }
}

#[test]
fn what_macros_mention_is_kept() {
    for (definition, use_) in [
        ("#define TWICE (n * 2)", "TWICE"),
        ("#define MORE ONE(1)\n#define ONE(k) (n + k)", "MORE"),
        ("#define PLUS(a, b) ((a) + (b))", "PLUS(1, n)"),
    ] {
        let source = format!(
            "{definition}\nint f(int n) {{ if (n < 2) return 1; int x = spawn f(n - 1); sync; return x + {use_}; }}"
        );
        let cuda = Program::parse(&source).unwrap().own_cuda();
        assert!(cuda.contains("struct f_1_saved { int * cilk_result; int n; };"), "{cuda}");
    }
    let long: String = (1..40).map(|i| format!("#define M{i} M{0} M{0}\n", i - 1)).collect();
    let source = format!(
        "#define M0 +1\n{long}int f(int n) {{\n if (n) return M39;\n spawn f(1);\n sync;\n return 1;\n}}"
    );
    assert!(refused(&source).contains("the macros of this expression are too long"), "{}", refused(&source));
}

#[test]
fn callers_come_before_callees() {
    let go = "int go(int n) { int x = spawn mid(n); sync; return x + 1; }\n\
              int mid(int n) { int x = spawn fib(n); sync; return x; }";
    let program = Program::parse(&format!("{FIB}{go}")).unwrap();
    let graph = program.graph(&Call::parse("go(9)").unwrap(), &[vec![9, 0, 0, 0]], 0x1000, 64, 16).unwrap();
    graph.check().unwrap();
    let text = graph.describe();
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("{name}: {text}"));
    assert!(at("go") < at("mid") && at("mid") < at("fib"), "{text}");
    // What a call does not reach is left out.
    let graph = program.graph(&Call::parse("fib(9)").unwrap(), &[vec![9, 0, 0, 0]], 0x1000, 64, 16).unwrap();
    assert_eq!(graph.kernel_count(), 2);
}

#[test]
fn lines_of_the_source_are_in_the_kernels() {
    let program = Program::parse(FIB).unwrap();
    let cuda = program.cuda("a \"b\".cilk");
    assert!(cuda.contains("#line 1 \"a \\\"b\\\".cilk\"\n"));
    assert!(cuda.contains("#line 7\n    *cilk_result = (int)(x + y);\n"), "{cuda}");
    assert!(!program.own_cuda().contains("#line"));
}

#[test]
fn calls() {
    let call = Call::parse(" queens(0, f(1, 2), 3) ").unwrap();
    assert_eq!((&*call.function, call.arguments.len()), ("queens", 3));
    assert_eq!(Call::parse("go()").unwrap().arguments.len(), 0);
    for wrong in ["", "fib", "fib(", "fib(1", "fib)1(", "(1)", "fib(1,)", "a b(1)", "fib(1); exit(0)"] {
        assert!(Call::parse(wrong).is_err(), "{wrong}");
    }
    let program = Program::parse(FIB).unwrap();
    let wrong = |call| program.plain(&Call::parse(call).unwrap(), "fib.cilk").unwrap_err();
    assert_eq!(wrong("fob(1)"), "no function `fob` spawns or is spawned; these do: fib");
    assert_eq!(wrong("fib(1, 2)"), "`fib` takes 1 arguments, not 2");
}

#[test]
fn what_the_plain_program_writes() {
    let piece = |bytes: &[u8]| [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat();
    let output = [
        piece(&[24, 0, 0, 0]),
        piece(&[1, 2]),
        piece(&[3, 4]),
        piece(&[7, 0, 0, 0]),
        piece(&[5, 0, 0, 0, 0, 0, 0, 0]),
    ]
    .concat();
    let run = PlainRun::read(&output, 1, 1).unwrap();
    assert_eq!((run.before, run.after, run.result), (vec![vec![1, 2]], vec![vec![3, 4]], vec![7, 0, 0, 0]));
    assert_eq!(run.deepest, 5);
    assert_eq!(PlainRun::read(&output[..output.len() - 1], 1, 1), None);
    assert_eq!(PlainRun::read(&[255; 40], 1, 1), None);
}

const WORDS: &[&str] = &[
    "int",
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    "=",
    "spawn ",
    "sync;",
    "if",
    "else ",
    "while",
    "for",
    "do ",
    "return ",
    "n",
    "x",
    "1",
    "&",
    "*",
    "void ",
    "#define N 4\n",
    "struct ",
    "typedef ",
    "\"",
    "'",
    "/*",
    "-",
    "π",
    "const ",
    "unsigned ",
    "float ",
    "x = spawn f(n - 1);",
    "break;",
    "->",
    ".",
    "//",
    "\\\n",
    "#if 1\n",
    "#endif\n",
];

const EXAMPLES: &[(&str, &str)] = &[
    ("fib(9)", FIB),
    ("queens(0, 0, 0, 8, 8, 4)", QUEENS),
    ("sort(0, COUNT)", SORT),
    ("product(0, 0, 0, ROWS)", STRASSEN),
    ("go(5)", include_str!("../../../fuzz/corpus/cilk/branches")),
    ("f(6)", include_str!("../../../fuzz/corpus/cilk/macros")),
];

/// What `fuzz/fuzz_targets/cilk.rs` asks of any text: kernels, a plain program and a graph, or an error with a line.
fn takes_or_refuses(call: &str, source: &str) {
    match Program::parse(source) {
        Ok(program) => {
            assert!(!program.own_cuda().contains("CILK_SLOT"));
            let call = Call::parse(call).unwrap();
            if program.plain(&call, "any.cilk").is_ok() {
                let arguments = vec![vec![0; 4]; call.arguments.len()];
                let _ = program.graph(&call, &arguments, 0x1000, 64, 4);
            }
        }
        Err(error) => assert!(error.line > 0 && !error.message.is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Pieces of the language in any order.
    #[test]
    fn nonsense_is_refused_without_a_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        takes_or_refuses("f(1)", &words.join(" "));
        let _ = Call::parse(&words.join(""));
    }

    /// An example with some pieces removed, doubled, or replaced by others of it or of the language.
    #[test]
    fn broken_examples_are_refused_without_a_panic(
        which in 0..EXAMPLES.len(),
        changes in prop::collection::vec((0..4000usize, 0..40usize, 0..4000usize, 0..2 * WORDS.len()), 1..4),
    ) {
        let (call, source) = EXAMPLES[which];
        // The first line of the fuzzer's own is the call.
        let rest = source.strip_prefix("call ").and_then(|text| text.split_once('\n'));
        let source = rest.map_or(source, |(_, rest)| rest);
        let mut text: Vec<char> = source.chars().collect();
        for (from, length, to, word) in changes {
            let (from, to) = (from % (text.len() + 1), to % (text.len() + 1));
            let end = |start: usize| (start + length).min(text.len());
            let piece: Vec<char> = match WORDS.get(word) {
                Some(word) => word.chars().collect(),
                None => text[to..end(to)].to_vec(),
            };
            text.splice(from..end(from), piece);
        }
        takes_or_refuses(call, &text.into_iter().collect::<String>());
    }
}
