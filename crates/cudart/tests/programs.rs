//! Programs that call the runtime, as processes. They are written in C as nvcc would write them, because the linker
//! that Rust needs compiles C, and nvcc may not be here. `examples/cuda` are programs for nvcc.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::library;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Compiles the program into a folder of its own.
fn compiled(name: &str, arguments: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    let output = Command::new("cc")
        .args(["-O1", "-w", "-rdynamic", "-o"])
        .arg(&program)
        .args(["-x", "c"])
        .arg(source("program.c"))
        .args(arguments)
        .output()
        .expect("the compiler that Rust links with");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// With the shared runtime.
fn shared(name: &str) -> PathBuf {
    let library = library();
    compiled(name, &["-x", "none", library.to_str().unwrap()])
}

/// With a runtime linked in.
fn linked_in(name: &str) -> PathBuf {
    compiled(name, &[source("runtime.c").to_str().unwrap()])
}

struct Ran {
    out: String,
    err: String,
    code: Option<i32>,
}

fn run(program: &Path, mode: &str, variables: &[(&str, &str)]) -> Ran {
    let ptx = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/vecadd.ptx");
    let library = library();
    let output: Output = Command::new(program)
        .arg(mode)
        .env("LD_LIBRARY_PATH", library.parent().unwrap())
        .env("LD_PRELOAD", &library)
        .env("PTX", ptx)
        .env("WARPLOOM_CHIP", "gtx480")
        .env("WARPLOOM_THREADS", "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
}

#[test]
fn a_program_with_the_shared_runtime() {
    let program = shared("shared");
    let ran = run(&program, "good", &[]);
    assert_eq!((ran.out.as_str(), ran.code), ("1000 1099, some time\n", Some(7)), "{}", ran.err);
    assert!(ran.err.starts_with("warploom: 3 launches on gtx480, "), "{}", ran.err);
    let row = ran.err.lines().nth(2).unwrap();
    assert!(row.trim_start().starts_with("vecadd"), "{row}");
}

/// What `warploom exec --profile` and `--trace` read: the kernels with their profiles, and a timeline.
#[test]
fn a_program_is_profiled_and_traced() {
    let program = shared("profiled");
    let file = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join("profiled").join(name);
    let (profile, trace) = (file("profile.json"), file("last.pftrace"));
    let variables = [
        ("WARPLOOM_PROFILE", profile.to_str().unwrap()),
        ("WARPLOOM_TRACE", trace.to_str().unwrap()),
        ("WARPLOOM_TRACE_SM", "all"),
    ];
    let ran = run(&program, "good", &variables);
    assert_eq!((ran.out.as_str(), ran.code), ("1000 1099, some time\n", Some(7)), "{}", ran.err);
    let object: serde_json::Value = serde_json::from_slice(&std::fs::read(profile).unwrap()).unwrap();
    let kernel = &object["kernels"][0];
    assert_eq!(
        (&object["launches"], &kernel["timed"], &kernel["name"]),
        (&3.into(), &3.into(), &"vecadd".into())
    );
    let time = kernel["profile"]["time"].as_object().unwrap().values();
    assert_eq!(
        time.map(|cycles| cycles.as_u64().unwrap()).sum::<u64>(),
        kernel["warp_cycles"].as_u64().unwrap()
    );
    assert!(kernel["over_time"]["sms"].as_array().is_some_and(|sms| !sms.is_empty()));
    let traced = warploom::trace::perfetto::decode(&std::fs::read(trace).unwrap()).unwrap();
    assert!(traced.packet.len() > 100, "{}", traced.packet.len());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_with_the_runtime_linked_in() {
    let program = linked_in("linked_in");
    let ran = run(&program, "good", &[("WARPLOOM_QUIET", "1")]);
    assert_eq!((ran.out.as_str(), ran.code), ("1000 1099, some time\n", Some(7)), "{}", ran.err);
    assert_eq!(ran.err, "");
    let stripped = program.with_file_name("stripped");
    let strip = Command::new("strip").arg(&program).arg("-o").arg(&stripped).status();
    if !strip.is_ok_and(|status| status.success()) {
        return eprintln!("WARNING: there is no `strip`: a stripped program is NOT TESTED");
    }
    let ran = run(&stripped, "good", &[]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("no symbol table") && ran.err.contains("-cudart shared"), "{}", ran.err);
}

#[test]
fn a_kernel_that_faults() {
    let program = shared("fault");
    let ran = run(&program, "fault", &[]);
    let expected = "launch: cudaErrorIllegalAddress\n";
    // The launch that faults succeeds, as in CUDA; from then on everything fails.
    assert!(ran.out.starts_with(expected), "{}", ran.out);
    assert_eq!(ran.out.matches("launch:").count(), 2, "{}", ran.out);
    assert!(ran.out.contains("last: cudaErrorIllegalAddress\n"), "{}", ran.out);
    assert_eq!(ran.code, Some(4));
    assert!(ran.err.contains("vecadd, launch 0: ") && ran.err.contains("store of 4 bytes"), "{}", ran.err);
    assert!(ran.err.contains("vecadd (failed)"), "{}", ran.err);
}

#[test]
fn a_function_that_is_not_there_names_itself() {
    let ran = run(&shared("missing"), "missing", &[]);
    assert_eq!((ran.out.as_str(), ran.code), ("shared: cudaErrorNotSupported\n", Some(5)));
    assert!(ran.err.contains("the program calls cudaIpcGetMemHandle"), "{}", ran.err);
}

#[test]
fn machine_code_alone_is_refused() {
    let ran = run(&shared("machine_code"), "good", &[("SASS", "1")]);
    assert!(ran.out.contains("launch: cudaErrorNoKernelImageForDevice\n"), "{}", ran.out);
    assert!(ran.err.contains("machine code only (sm_20)") && ran.err.contains("-gencode"), "{}", ran.err);
}

#[test]
fn launches_that_are_timed_and_their_lines() {
    let program = shared("timed");
    let file = program.with_file_name("launches.jsonl");
    let _ = std::fs::remove_file(&file);
    let json = [("WARPLOOM_TIMED", "first:2"), ("WARPLOOM_JSON", file.to_str().unwrap())];
    let ran = run(&program, "good", &json);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let models: Vec<_> = lines.iter().map(|line| line["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["timing", "timing", "functional"]);
    assert!(lines.iter().all(|line| line["name"] == "vecadd" && line["error"].is_null()));
    // The one that was not timed counts as long as the others on average.
    let seconds: Vec<_> = lines.iter().map(|line| line["seconds"].as_f64().unwrap()).collect();
    assert!((seconds[2] - (seconds[0] + seconds[1]) / 2.0).abs() < 1e-9, "{seconds:?}");
    assert!(lines[1]["start_s"].as_f64() > lines[0]["start_s"].as_f64());
}

#[test]
fn settings_that_make_no_sense_end_the_program() {
    let program = shared("settings");
    for (name, value, message) in [
        ("WARPLOOM_CHIP", "gtx9999", "gtx9999"),
        ("WARPLOOM_TIMED", "often", "WARPLOOM_TIMED=`often`"),
        ("WARPLOOM_SET", "sm.count=0", "sm.count"),
    ] {
        let ran = run(&program, "good", &[(name, value)]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.err);
        assert!(ran.err.contains(message), "{name}: {}", ran.err);
    }
}
