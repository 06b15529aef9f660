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
fn compiled(name: &str, file: &str, arguments: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    let output = Command::new("cc")
        .args(["-O1", "-w", "-rdynamic", "-o"])
        .arg(&program)
        .args(["-x", "c"])
        .arg(source(file))
        .args(arguments)
        .output()
        .expect("the compiler that Rust links with");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// With the shared runtime.
fn shared(name: &str) -> PathBuf {
    let library = library();
    compiled(name, "program.c", &["-x", "none", library.to_str().unwrap()])
}

/// A program of mistakes, with the shared runtime.
fn mistaken(name: &str, mode: &str, variables: &[(&str, &str)]) -> Ran {
    let library = library();
    let arguments = ["-x", "none", library.to_str().unwrap(), "-lpthread"];
    run(&compiled(name, "mistakes.c", &arguments), mode, variables)
}

/// The lines of a run's JSON file.
fn lines(file: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// With a runtime linked in.
fn linked_in(name: &str) -> PathBuf {
    compiled(name, "program.c", &[source("runtime.c").to_str().unwrap()])
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

/// The one kernel in a folder of profiles.
fn only_profile(folder: &Path) -> serde_json::Value {
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap()
}

/// A program that ends without the runtime's knowledge has left the profile of what it did.
#[test]
fn a_program_that_just_ends_is_profiled() {
    for (mode, code) in [("_exit", Some(5)), ("abort", None)] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profiles{mode}"));
        let _ = std::fs::remove_dir_all(&folder);
        let ran = mistaken(mode, mode, &[("WARPLOOM_PROFILE", folder.to_str().unwrap())]);
        assert_eq!(ran.code, code, "{}", ran.err);
        assert_eq!(only_profile(&folder)["timed"], 1);
    }
}

/// What `warploom exec --profile` and `--trace` read: the kernels with their profiles, and a timeline.
#[test]
fn a_program_is_profiled_and_traced() {
    let program = shared("profiled");
    let file = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join("profiled").join(name);
    let (profile, trace) = (file("profiles"), file("last.pftrace"));
    let _ = std::fs::remove_dir_all(&profile);
    let variables = [
        ("WARPLOOM_PROFILE", profile.to_str().unwrap()),
        ("WARPLOOM_TRACE", trace.to_str().unwrap()),
        ("WARPLOOM_TRACE_SM", "all"),
    ];
    let ran = run(&program, "good", &variables);
    assert_eq!((ran.out.as_str(), ran.code), ("1000 1099, some time\n", Some(7)), "{}", ran.err);
    let kernel = only_profile(&profile);
    assert_eq!(
        (&kernel["launches"], &kernel["timed"], &kernel["name"]),
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

/// A function that this runtime has never heard of does not run, and one of the program's own is left alone.
#[cfg(target_arch = "x86_64")]
#[test]
fn unknown_functions_of_the_runtime_name_themselves() {
    let ran = run(&linked_in("unknown"), "unknown", &[]);
    assert_eq!(
        (ran.out.as_str(), ran.code),
        ("unknown: cudaErrorNotSupported\nown: 17\n", Some(6)),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("the program calls cudaOfTomorrow"), "{}", ran.err);
}

#[test]
fn default_streams_of_threads() {
    let ran = run(&shared("per_thread"), "per_thread", &[]);
    assert_eq!((ran.out.as_str(), ran.code), ("1000 1099, some time\n", Some(7)), "{}", ran.err);
}

#[test]
fn launches_that_are_not_timed_are_missed() {
    let program = shared("untimed");
    let ran = run(&program, "good", &[("WARPLOOM_TIMED", "kernel=nix")]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    let told = "none of 3 launches was timed: --timed kernel=nix (WARPLOOM_TIMED) chooses none of them; \
                kernels: vecadd";
    assert!(ran.err.contains(told), "{}", ran.err);
    let ran = run(&program, "good", &[("WARPLOOM_TIMED", "kernel=vecadd")]);
    assert!(!ran.err.contains("was timed"), "{}", ran.err);
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
    let lines = lines(&file);
    let models: Vec<_> = lines.iter().map(|line| line["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["timing", "timing", "functional"]);
    assert!(lines.iter().all(|line| line["name"] == "vecadd" && line["error"].is_null()));
    // The one that was not timed counts as long as the others on average.
    let seconds: Vec<_> = lines.iter().map(|line| line["seconds"].as_f64().unwrap()).collect();
    assert!((seconds[2] - (seconds[0] + seconds[1]) / 2.0).abs() < 1e-9, "{seconds:?}");
    assert!(lines[1]["start_s"].as_f64() > lines[0]["start_s"].as_f64());
}

/// A launch takes what its kernel has seen of the time, whether it is timed, and whichever others are.
#[test]
fn kernels_that_read_a_clock() {
    let program = shared("clock");
    let (file, ptx) = (program.with_file_name("launches.jsonl"), source("clock.ptx"));
    for timed in [("WARPLOOM_MODEL", "functional"), ("WARPLOOM_TIMED", "first:1"), ("WARPLOOM_TIMED", "all")]
    {
        let _ = std::fs::remove_file(&file);
        let files = [("PTX", ptx.to_str().unwrap()), ("WARPLOOM_JSON", file.to_str().unwrap())];
        let ran = run(&program, "good", &[files[0], files[1], ("WARPLOOM_CHIP", "gtx1080ti"), timed]);
        assert_eq!(ran.code, Some(7), "{}", ran.err);
        // At 1.48 GHz it is 13.5 µs, and each of the four warps has some more instructions to do.
        let seconds: Vec<_> = lines(&file).iter().map(|line| line["seconds"].as_f64().unwrap()).collect();
        assert!(seconds.iter().all(|seconds| (12e-6..16e-6).contains(seconds)), "{timed:?}: {seconds:?}");
    }
}

#[test]
fn a_launch_that_takes_too_long_says_where_it_is() {
    let ptx = source("endless.ptx");
    let variables =
        [("PTX", ptx.to_str().unwrap()), ("WARPLOOM_TIME_LIMIT", "1"), ("WARPLOOM_MODEL", "functional")];
    let ran = run(&shared("endless"), "good", &variables);
    assert!(ran.out.contains("last: cudaErrorLaunchTimeout"), "{}", ran.out);
    for told in ["vecadd, launch 0: no end within 1 s (--time-limit", "runs at <ptx>:1", "help "] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
}

#[test]
fn graphs_of_nodes_of_all_kinds() {
    let library = library();
    let program = compiled("graphs", "graphs.c", &["-x", "none", library.to_str().unwrap()]);
    let ran = run(&program, "", &[("WARPLOOM_CUDA_VERSION", "12")]);
    assert_eq!((ran.out.as_str(), ran.code), ("1 4 32 100\n0 0, 3 3\n", Some(0)), "{}", ran.err);
    assert!(ran.err.contains("a graph's node of the type 13 is not modelled"), "{}", ran.err);
}

#[test]
fn settings_that_make_no_sense_end_the_program() {
    let program = shared("settings");
    for (name, value, message) in [
        ("WARPLOOM_CHIP", "gtx9999", "gtx9999"),
        ("WARPLOOM_TIMED", "often", "WARPLOOM_TIMED=`often`"),
        ("WARPLOOM_SET", "sm.count=0", "sm.count"),
        ("WARPLOOM_TIMED", "every:0", "WARPLOOM_TIMED=`0` launches are none"),
    ] {
        let ran = run(&program, "good", &[(name, value)]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.err);
        assert!(ran.err.contains(message), "{name}: {}", ran.err);
    }
}

#[test]
fn wrong_arguments() {
    let ran = mistaken("arguments", "arguments", &[]);
    let expected = "no arguments: cudaErrorInvalidValue\n\
                    2048 threads: cudaErrorInvalidConfiguration\n\
                    65 in z: cudaErrorInvalidConfiguration\n\
                    70000 CTAs in y: cudaErrorInvalidConfiguration\n\
                    an empty grid: cudaErrorInvalidConfiguration\n\
                    no device: cudaErrorInvalidDevice\n\
                    a null argument: cudaErrorInvalidValue\n\
                    no kernel: cudaErrorInvalidDeviceFunction\n\
                    no stream: cudaErrorInvalidResourceHandle\n\
                    a pointer of the host: cudaErrorIllegalAddress\n";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(0)), "{}", ran.err);
    for told in [
        "vecadd: no arguments for its 4 parameters",
        "a block of (2048, 1, 1) are not possible on Warploom gtx480: a block has at most 1024 threads, not 2048",
        "a block has at most 64 in z",
        "a grid has at most 65535 in y",
        "no extent may be 0",
        "cudaGetDeviceProperties gives cudaErrorInvalidDevice",
        "vecadd: a null pointer as argument 1, of 8 bytes",
        "the program has no kernel at 0x",
        "cudaLaunchKernel gives cudaErrorInvalidResourceHandle: invalid resource handle",
        "far from all device memory, as a pointer of the host is",
    ] {
        assert_eq!(ran.err.matches(told).count(), 1, "{told}: {}", ran.err);
    }
}

#[test]
fn freed_memory() {
    let ran = mistaken("freed", "freed", &[]);
    let expected = "free: cudaErrorInvalidValue\n\
                    fill: cudaErrorInvalidValue\n\
                    copy to: cudaErrorInvalidValue\n\
                    copy from: cudaErrorInvalidValue\n\
                    kernel: cudaErrorIllegalAddress\n";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(0)), "{}", ran.err);
    for told in
        [": an allocation of 400 bytes, which was freed", ": byte 4 of an allocation of 400 bytes, which"]
    {
        assert_eq!(ran.err.matches(told).count(), 1, "{told}: {}", ran.err);
    }
    assert_eq!(
        ran.err.matches("at byte 0 of allocation 0 (400 bytes), which was freed").count(),
        3,
        "{}",
        ran.err
    );
}

/// What is left can be allocated, whatever the device has: it is the computer's memory that must hold it.
#[test]
fn memory_that_is_left_can_be_allocated() {
    let ran = mistaken("all_memory", "all_memory", &[("WARPLOOM_CHIP", "h200")]);
    assert_eq!(ran.out, "info: cudaSuccess\nall: cudaSuccess\ninfo: cudaSuccess\n0 left\n", "{}", ran.err);
}

#[test]
fn copies_out_of_bounds_and_in_the_wrong_direction() {
    let ran = mistaken("copies", "copies", &[]);
    let expected = "past the end: cudaErrorInvalidValue\n\
                    from past the end: cudaErrorInvalidValue\n\
                    device memory as the host's: cudaErrorInvalidValue\n\
                    the host's as device memory: cudaErrorInvalidValue\n\
                    no direction: cudaErrorInvalidMemcpyDirection\n\
                    null: cudaErrorInvalidValue\n";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(0)), "{}", ran.err);
    for told in [
        "a copy to the device: 401 bytes at 0x",
        "a copy from the device: 8 bytes at 0x",
        "for the host's memory, but it is the device's",
        "cudaMemcpy gives cudaErrorInvalidMemcpyDirection",
        "a copy of 16 bytes to a null pointer",
    ] {
        assert_eq!(ran.err.matches(told).count(), 1, "{told}: {}", ran.err);
    }
}

#[test]
fn a_program_that_forks() {
    let ran = mistaken("fork", "fork", &[("WARPLOOM_QUIET", "1")]);
    let expected = "child: cudaErrorInitializationError\nparent: 1\n";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(0)), "{}", ran.err);
    assert_eq!(ran.err.matches("the device was opened before a fork").count(), 1, "{}", ran.err);
    // Before the device is opened, a fork harms neither.
    let ran = mistaken("fork_first", "fork_first", &[("WARPLOOM_QUIET", "1")]);
    assert_eq!((ran.out.as_str(), ran.code), ("child: 1\nparent: 1\n", Some(0)), "{}", ran.err);
    assert_eq!(ran.err, "");
}

#[test]
fn a_program_that_opens_the_device_in_threads() {
    let ran = mistaken("threads", "threads", &[]);
    assert_eq!((ran.out.as_str(), ran.code), ("8 threads, 0 errors\n", Some(0)), "{}", ran.err);
    assert!(ran.err.contains("warploom: 40 launches on gtx480"), "{}", ran.err);
}

#[test]
fn loads_just_outside_of_an_allocation() {
    let told = "vecadd, launch 0: load of 4 bytes at 0x";
    for model in ["timing", "functional"] {
        let name = format!("outside_{model}");
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.jsonl"));
        let _ = std::fs::remove_file(&file);
        let variables = [("WARPLOOM_MODEL", model), ("WARPLOOM_JSON", file.to_str().unwrap())];
        let ran = mistaken(&name, "outside", &variables);
        assert_eq!((ran.out.as_str(), ran.code), ("wait: cudaSuccess, 198 0\n", Some(0)), "{}", ran.err);
        assert_eq!(ran.err.matches(told).count(), 2, "{}", ran.err);
        assert_eq!(ran.err.matches("by thread (4,0,0) of CTA (3,0,0) reads zeros").count(), 2, "{}", ran.err);
        assert_eq!(ran.err.matches("--bounds fault").count(), 1, "{}", ran.err);
        let lines = lines(&file);
        let loads = lines.iter().map(|line| line["outside_loads"].as_array().unwrap());
        assert_eq!(loads.clone().map(Vec::len).collect::<Vec<_>>(), [2, 2], "{lines:?}");
        assert!(loads.flatten().all(|load| load["count"] == 1), "{lines:?}");
    }
    let ran = mistaken("outside_fault", "outside", &[("WARPLOOM_BOUNDS", "fault")]);
    assert!(ran.out.starts_with("wait: cudaErrorIllegalAddress"), "{}", ran.out);
    assert!(ran.err.contains("right past the end of allocation"), "{}", ran.err);
    // 100 words end within 512 bytes.
    let ran = mistaken("outside_rounded", "outside", &[("WARPLOOM_BOUNDS", "rounded")]);
    assert_eq!(ran.out, "wait: cudaSuccess, 198 0\n", "{}", ran.err);
    assert!(!ran.err.contains(told), "{}", ran.err);
}

/// Two kernels that do not fill the chip run side by side; of two that do, the second begins with what the first
/// leaves. Copies overlap both.
#[test]
fn streams_share_the_chip() {
    let starts = |grid: &str| {
        let name = format!("streams_{grid}");
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.jsonl"));
        let _ = std::fs::remove_file(&file);
        let variables =
            [("GRID", grid), ("WARPLOOM_JSON", file.to_str().unwrap()), ("WARPLOOM_LINK_GBPS", "0.001")];
        let ran = mistaken(&name, "streams", &variables);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let moment = |line: &serde_json::Value, key: &str| line[key].as_f64().unwrap();
        let lines = lines(&file);
        let end = moment(&lines[0], "start_s") + moment(&lines[0], "seconds");
        (moment(&lines[0], "start_s"), moment(&lines[1], "start_s"), end, ran.out)
    };
    let (first, second, _, out) = starts("4");
    assert_eq!(first, second);
    // 400 bytes at 1e6 bytes per second take as long as they would without kernels.
    assert_eq!(out, "copy: 0.4 ms\n");
    let (first, second, end, out) = starts("4000");
    assert!(first < second && second < end, "{first} {second} {end}");
    assert_eq!(out, "copy: 0.4 ms\n");
}

/// A kernel in one stream and what comes later in another, with a grid of so many CTAs for the one that waits.
fn concurrent(mode: &str, grid: &str, variables: &[(&str, &str)]) -> (Ran, Vec<serde_json::Value>) {
    let name = format!("concurrent_{mode}_{grid}_{}", variables.len());
    let library = library();
    let program = compiled(&name, "concurrent.c", &["-x", "none", library.to_str().unwrap()]);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.jsonl"));
    let _ = std::fs::remove_file(&file);
    let ptx = source("concurrent.ptx");
    let mut all =
        vec![("GRID", grid), ("PTX", ptx.to_str().unwrap()), ("WARPLOOM_JSON", file.to_str().unwrap())];
    all.extend(variables);
    let ran = run(&program, mode, &all);
    (ran, lines(&file))
}

#[test]
fn kernels_of_two_streams_wait_for_each_other() {
    let (ran, lines) = concurrent("kernel", "3", &[]);
    assert_eq!((ran.out.as_str(), ran.code), ("5 5\n", Some(0)), "{}", ran.err);
    // In the order of their ends, with the numbers of the calls.
    let of = |key: &str| lines.iter().map(|line| line[key].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!((of("launch"), of("beside"), of("ctas")), (vec![1, 0], vec![1, 1], vec![1, 3]));
    assert!(ran.err.contains("2 launches on gtx480"), "{}", ran.err);
    let (ran, _) = concurrent("copy", "3", &[]);
    assert_eq!((ran.out.as_str(), ran.code), ("5 5\n", Some(0)), "{}", ran.err);
}

/// The host waits for one stream, goes on, and adds to what runs beside the kernel of the other.
#[test]
fn the_host_goes_on_while_a_kernel_runs() {
    let (ran, lines) = concurrent("later", "3", &[]);
    assert_eq!((ran.out.as_str(), ran.code), ("0\n5 5\n", Some(0)), "{}", ran.err);
    let of = |key: &str| lines.iter().map(|line| line[key].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!((of("launch"), of("beside")), (vec![1, 2, 3, 4, 0], vec![1, 1, 1, 1, 4]));
    let start = |at: usize| lines[at]["start_s"].as_f64().unwrap();
    let end = |at: usize| start(at) + lines[at]["seconds"].as_f64().unwrap();
    assert!((0..3).all(|at| end(at) <= start(at + 1)), "{lines:?}");
    assert!(start(4) <= start(0) && end(3) <= end(4), "{lines:?}");
    let (ran, lines) = concurrent("later_copy", "3", &[]);
    assert_eq!((ran.out.as_str(), ran.code, lines.len()), ("0\n5 5\n", Some(0), 4), "{}", ran.err);
}

#[test]
fn kernels_that_cannot_wait_for_each_other() {
    // All of the chip waits.
    let (ran, lines) = concurrent("kernel", "120", &[]);
    let expected = "synchronize: cudaErrorLaunchTimeout\nquery: cudaErrorLaunchTimeout\n";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(0)), "{}", ran.err);
    assert!(ran.err.contains("1 CTAs of `set_flag` find no room"), "{}", ran.err);
    assert!(lines.iter().all(|line| line["error"].is_string()), "{lines:?}");
    // The flag comes after the kernel in its order, or the model runs them one after the other.
    for (mode, variables) in [("order", &[][..]), ("kernel", &[("WARPLOOM_MODEL", "functional")][..])] {
        let (ran, lines) = concurrent(mode, "3", variables);
        assert!(ran.out.contains("cudaErrorLaunchTimeout"), "{mode}: {} {}", ran.out, ran.err);
        assert_eq!(lines.len(), 1, "{mode}");
    }
}

/// The error is that of the call that waits, and of those after it.
#[test]
fn a_fault_beside_another_kernel() {
    let (ran, lines) = concurrent("fault", "3", &[]);
    let expected = "synchronize: cudaErrorIllegalAddress\nquery: cudaErrorIllegalAddress\n";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(0)), "{}", ran.err);
    assert!(ran.err.contains("set_flag, launch 1:"), "{}", ran.err);
    assert_eq!(lines.len(), 2);
}

/// Where kernels cannot be told apart they run one by one.
#[test]
fn profiles_of_programs_with_streams() {
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join("streams_profiles");
    let _ = std::fs::remove_dir_all(&profile);
    let name = "streams_profiled";
    let ran = mistaken(name, "streams", &[("GRID", "4"), ("WARPLOOM_PROFILE", profile.to_str().unwrap())]);
    assert_eq!(ran.out, "copy: 3.33e-05 ms\n", "{}", ran.err);
    assert!(ran.err.contains("simulated one by one, because of --profile"), "{}", ran.err);
    assert_eq!(only_profile(&profile)["timed"], 2);
}
