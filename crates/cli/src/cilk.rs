//! `warploom cilk`: a Cilk-C source as a channel-flow graph, compiled, run, and compared with the same program in C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use warploom::{Chip, Device, Error, Launch, Module, Report, SimOptions, Timing, args};
use warploom_cilk::{Call, PlainRun, Program};
use warploom_flow::{FlowError, GpuRun};
use warploom_lab::kernel::{CompileOptions, FileError, KernelFile};

use crate::cli::{CilkOptions, CilkPlace, DeviceName};
use crate::devices::open_gpu;
use crate::failure::{Exit, Failure};
use crate::term::{self, grouped, seconds};

/// Levels of a recursion: a power of two that is enough for the call.
const LEAST_LEVELS: u64 = 32;
const MOST_LEVELS: u64 = 4096;

/// Elements of a channel unless the user says how many: as many as this, or fewer if the channels of all levels would
/// take more than this share of the memory.
const WIDEST: u32 = 32_768;
const NARROWEST: u32 = 64;
const SHARE_OF_CHANNELS: u64 = 8;

/// From so many levels on, a run takes long enough to say why.
const MANY_LEVELS: u64 = 512;

/// Translates, compiles and runs a program, and compares its result with the plain one's.
pub(crate) fn cilk(options: &CilkOptions) -> Result<Exit, Failure> {
    let path = &options.file;
    let source = fs::read_to_string(path)
        .map_err(|error| Failure::input(format!("cannot read `{}`: {error}", path.display())))?;
    let wrong = |message: String| Failure::input(format!("{}: {message}", path.display()));
    let program = Program::parse(&source).map_err(|error| wrong(error.to_string()))?;
    if options.emit {
        term::print(&program.own_cuda())?;
        return Ok(Exit::Good);
    }
    let Some(call) = &options.call else {
        return Err(Failure::input("which call? Give one after the file: 'fib(24)'"));
    };
    let call = Call::parse(call).map_err(Failure::input)?;
    let folder = Folder::new()?;
    let plain = run_plain(&program, &call, &folder.0, path)?;
    let value = value_text(&program, &call, &plain.result);
    if options.on == CilkPlace::Host {
        term::print(&format!("program    {} in C\n{value}", call.function))?;
        return Ok(Exit::Good);
    }
    let levels = match options.levels {
        Some(levels) => levels,
        None => levels(&program, &call, plain.deepest).map_err(wrong)?,
    };
    let chip = Chip::load(&options.chip, &options.set).map_err(|error| Failure::from(Error::from(error)))?;
    let place = match options.device {
        DeviceName::Cuda(ordinal) => Place::Gpu(ordinal),
        DeviceName::Sim => Place::Chip(Box::new(chip)),
    };
    let kernels = folder.0.join("program.cu");
    write(&kernels, &program.cuda(&path.to_string_lossy()))?;
    let mut compile = options.cuda.compile();
    if !place.has_aggregator() {
        compile.flags.extend(["-DFLOW_GPU".to_string(), "-std=c++17".to_string()]);
        compile.arch.get_or_insert_with(|| PERSISTENT_ARCH.to_string());
    }
    let file = compile_kernels(&kernels, path, &source, &compile)?;
    match run(&program, &call, &plain, &file, &place, levels, options)? {
        Ran::Done(text) => {
            term::print(&format!("{text}{value}check      ok: equal to the plain C program's\n"))?;
            Ok(Exit::Good)
        }
        Ran::Wrong(message) => Err(Failure::new(Exit::CheckFailed, message)),
    }
}

/// As many levels as a recursion of this depth needs.
fn levels(program: &Program, call: &Call, deepest: u64) -> Result<u32, String> {
    let levels = deepest.next_power_of_two().max(LEAST_LEVELS);
    let Some((name, line)) = program.recursion(call) else { return Ok(LEAST_LEVELS as u32) };
    if levels > MOST_LEVELS {
        return Err(format!(
            "line {line}: `{name}` spawns itself up to {deepest} levels deep, and a graph has {MOST_LEVELS} at most: \
             split the work in halves rather than one by one"
        ));
    }
    if levels >= MANY_LEVELS {
        term::eprint(&format!(
            "note: `{name}` spawns itself up to {deepest} levels deep (line {line}); a graph of {levels} levels is slow"
        ));
    }
    Ok(levels as u32)
}

/// Compiles the kernels without fused multiply-add, so that numbers are rounded as in the plain program.
fn compile_kernels(
    kernels: &Path,
    path: &Path,
    source: &str,
    options: &CompileOptions,
) -> Result<KernelFile, Failure> {
    let name = path.display().to_string();
    let compile = |flag: Option<&str>| {
        let mut options = options.clone();
        options.flags.splice(0..0, flag.map(str::to_string));
        KernelFile::read_named(kernels, &name, &options)
    };
    let file = if source.contains("float") || source.contains("double") {
        // The same option has two names. nvcc refuses clang's.
        match compile(Some("-ffp-contract=off")) {
            Err(error) if error.message.starts_with("nvcc") => compile(Some("--fmad=false")),
            file => file,
        }
    } else {
        compile(None)
    };
    file.map_err(|error| {
        let message = error.message.replace(&*kernels.to_string_lossy(), &name);
        Failure::from(FileError { message, ..error })
    })
}

/// The least target of the persistent kernel.
const PERSISTENT_ARCH: &str = "sm_80";

/// What a program runs on.
enum Place {
    Chip(Box<Chip>),
    Gpu(usize),
}

impl Place {
    /// Without one, the tasks run in a persistent kernel that schedules itself.
    fn has_aggregator(&self) -> bool {
        matches!(self, Place::Chip(chip) if chip.aggregator.is_some())
    }

    fn open(&self, options: &CilkOptions) -> Result<Device, Failure> {
        match self {
            Place::Gpu(ordinal) => open_gpu(*ordinal, None),
            Place::Chip(chip) => {
                let threads = options.threads.map_or(Timing::default().threads, usize::from);
                let timing = Timing { threads, ..Timing::default() };
                Ok(Device::sim_with(Chip::clone(chip), SimOptions { timing, ..SimOptions::default() }))
            }
        }
    }
}

/// How a run ended.
enum Ran {
    Done(String),
    Wrong(String),
}

fn run(
    program: &Program,
    call: &Call,
    plain: &PlainRun,
    file: &KernelFile,
    place: &Place,
    levels: u32,
    options: &CilkOptions,
) -> Result<Ran, Failure> {
    let mut gpu = place.open(options)?;
    let module = file.load(&mut gpu)?;
    let globals = addresses(&mut gpu, &module, program)?;
    for (&address, bytes) in globals.iter().zip(&plain.before) {
        gpu.write_bytes(address, bytes)?;
    }
    let result = gpu.zeros_named::<u64>("result", 1)?;
    let graph_of = |width| {
        let graph = program.graph(call, &plain.arguments, result.address(), width, levels);
        graph.map_err(Failure::input)
    };
    let room = gpu.chip().map_or(u64::MAX, |chip| chip.memory.global_bytes) / SHARE_OF_CHANNELS;
    let mut width = options.width.unwrap_or(WIDEST);
    let mut graph = graph_of(width)?;
    while options.width.is_none() && width > NARROWEST && graph.bytes() > room {
        width /= 2;
        graph = graph_of(width)?;
    }
    let ran = match place.has_aggregator() {
        true => graph.execute(&mut gpu, &module).and_then(|execution| execution.wait()).map(started),
        false => graph
            .execute_on_gpu(&mut gpu, &module)
            .and_then(|execution| execution.wait(&|launch| launch))
            .map(|run| handed_out(&run)),
    };
    let text = ran.map_err(|error| match error {
        FlowError::Device(error) => Failure::from(error),
        error => {
            let message = error.to_string();
            let room = message.contains("narrower") || message.contains("last level");
            let failure = Failure::input(message);
            match room {
                true => failure.help(format!(
                    "--width N: elements of each channel, now {width}; --levels N: levels of each recursion, \
                     now {levels}"
                )),
                false => failure,
            }
        }
    })?;
    let bytes = result.read(&gpu)?[0].to_le_bytes();
    let ours = &bytes[..plain.result.len()];
    if *ours != plain.result[..] {
        let shown = |bytes| program.shown_result(call, bytes).unwrap_or_default();
        let (ours, theirs) = (shown(ours), shown(&plain.result));
        return Ok(Ran::Wrong(format!("the graph returns {ours}, the plain C program {theirs}")));
    }
    for ((&address, expected), name) in globals.iter().zip(&plain.after).zip(program.globals()) {
        let found = gpu.read_bytes(address, expected.len())?;
        if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
            return Ok(Ran::Wrong(format!("`{name}` differs from the plain C program's at byte {at}")));
        }
    }
    Ok(Ran::Done(format!(
        "program    {} on {}, {} levels of {} elements\n{text}",
        call.function,
        gpu.name(),
        levels,
        width,
    )))
}

/// What the aggregator did.
fn started(report: Report) -> String {
    let count = |name| report.aggregator.as_ref().and_then(|counts| counts.get(name)).copied().unwrap_or(0);
    format!(
        "cycles     {}\nwavefronts {} in {} starts; {} yields\n",
        grouped(report.cycles),
        grouped(report.warps),
        grouped(count("starts")),
        grouped(count("yields")),
    )
}

/// What the persistent kernel did.
fn handed_out(run: &GpuRun) -> String {
    let time = run.launches.iter().filter_map(|report| report.gpu_s).sum::<f64>();
    let cycles: u64 = run.launches.iter().map(|report| report.cycles).sum();
    let time = if time > 0.0 {
        format!("GPU time   {}", seconds(time))
    } else {
        format!("cycles     {}", grouped(cycles))
    };
    let (chunks, elements, rounds) = (grouped(run.chunks), grouped(run.elements), grouped(run.rounds));
    format!("{time}\nwarps      {chunks} for {elements} tasks; the scheduler looked {rounds} times\n")
}

/// Where the variables outside functions lie.
fn addresses(gpu: &mut Device, module: &Module, program: &Program) -> Result<Vec<u64>, Failure> {
    let count = program.globals().len();
    if count == 0 {
        return Ok(Vec::new());
    }
    let found = gpu.zeros::<u64>(count)?;
    let kernel = module.kernel("cilk_globals")?;
    gpu.launch(&kernel, Launch::grid(1).block(1), args![&found])?;
    Ok(found.read(gpu)?)
}

fn value_text(program: &Program, call: &Call, bytes: &[u8]) -> String {
    let text = format!("{}({})", call.function, call.arguments.join(", "));
    match program.shown_result(call, bytes) {
        Some(value) => format!("result     {text} = {value}\n"),
        None => format!("result     {text} returns nothing\n"),
    }
}

/// Compiles the program without its keywords by the C compiler of the host, and runs it.
fn run_plain(program: &Program, call: &Call, folder: &Path, path: &Path) -> Result<PlainRun, Failure> {
    let wrong = |message: String| Failure::input(format!("{}: {message}", path.display()));
    let text = program.plain(call, &path.to_string_lossy()).map_err(wrong)?;
    let (source, binary) = (folder.join("plain.c"), folder.join("plain"));
    write(&source, &text)?;
    let compilers = ["cc", "gcc", "clang"];
    let flags = ["-std=gnu11", "-O1", "-w", "-ffp-contract=off", "-finstrument-functions", "-o"];
    let compile =
        |compiler: &&str| Command::new(compiler).args(flags).arg(&binary).arg(&source).output().ok();
    let Some(output) = compilers.iter().find_map(compile) else {
        let message = format!("no C compiler for the plain program: looked for {}", compilers.join(", "));
        return Err(Failure::input(message));
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr)
            .replace(&*source.to_string_lossy(), &path.to_string_lossy());
        return Err(Failure::input(format!("the plain C program does not compile:\n{}", said.trim_end())));
    }
    let ran = Command::new(&binary).output()?;
    if ran.status.code().is_none()
        && let Some((name, line)) = program.recursion(call)
    {
        return Err(wrong(format!(
            "line {line}: probably recursion without a bound: `{name}` calls itself here; the plain C program dies: {}",
            ran.status
        )));
    }
    if !ran.status.success() {
        return Err(Failure::input(format!("the plain C program fails: {}", ran.status)));
    }
    PlainRun::read(&ran.stdout, call.arguments.len(), program.globals().len()).ok_or_else(|| {
        Failure::input("the plain C program wrote to its standard output; leave out what prints")
    })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::input(format!("cannot write `{}`: {error}", path.display())))
}

/// A folder for what is compiled, removed in the end, and when Ctrl-C ends the process.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Failure> {
        let path = std::env::temp_dir().join(format!("warploom-cilk-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| {
            Failure::input(format!("cannot make the folder `{}`: {error}", path.display()))
        })?;
        let folder = path.clone();
        // Without a handler Ctrl-C still ends the process.
        let _ = ctrlc::set_handler(move || {
            let _ = fs::remove_dir_all(&folder);
            std::process::exit(Exit::Interrupted as i32);
        });
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
