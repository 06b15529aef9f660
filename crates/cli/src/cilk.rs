//! `warploom cilk`: a Cilk-C source as a channel-flow graph, compiled, run, and compared with the same program in C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use warploom::{Chip, Device, Error, Launch, Module, Report, SimOptions, Timing, args};
use warploom_cilk::{Call, PlainRun, Program};
use warploom_flow::{FlowError, GpuRun};
use warploom_lab::kernel::KernelFile;

use crate::cli::{CilkOptions, CilkPlace, DeviceName};
use crate::devices::open_gpu;
use crate::failure::{Exit, Failure};
use crate::term::{self, grouped, seconds};

/// Levels of a recursion that are tried first; as often doubled as the input needs.
const FIRST_LEVELS: u32 = 32;
const MOST_LEVELS: u32 = 4096;

/// Translates, compiles and runs a program, and compares its result with the plain one's.
pub(crate) fn cilk(options: &CilkOptions) -> Result<Exit, Failure> {
    let path = &options.file;
    let source = fs::read_to_string(path)
        .map_err(|error| Failure::input(format!("cannot read `{}`: {error}", path.display())))?;
    let wrong = |message: String| Failure::input(format!("{}: {message}", path.display()));
    let program = Program::parse(&source).map_err(|error| wrong(error.to_string()))?;
    if options.emit {
        term::print(program.own_cuda())?;
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
    program.reached_by(&call).map_err(wrong)?;
    let chip = Chip::load(options.chip.chip.as_deref().unwrap_or("apu"), &options.chip.set)
        .map_err(|error| Failure::from(Error::from(error)))?;
    let place = match options.device {
        DeviceName::Cuda(ordinal) => Place::Gpu(ordinal),
        DeviceName::Sim => Place::Chip(Box::new(chip)),
    };
    let kernels = folder.0.join("program.cu");
    write(&kernels, program.cuda())?;
    let mut compile = options.cuda.compile();
    if !place.has_aggregator() {
        compile.flags.extend(["-DFLOW_GPU".to_string(), "-std=c++17".to_string()]);
        compile.arch.get_or_insert_with(|| PERSISTENT_ARCH.to_string());
    }
    let file = KernelFile::read(&kernels, &compile)?;
    let mut levels = options.levels.unwrap_or(FIRST_LEVELS);
    loop {
        match run(&program, &call, &plain, &file, &place, levels, options)? {
            Ran::Done(text) => {
                term::print(&format!("{text}{value}check      ok: equal to the plain C program's\n"))?;
                return Ok(Exit::Good);
            }
            Ran::Wrong(message) => return Err(Failure::new(Exit::CheckFailed, message)),
            Ran::TooFewLevels(message) if options.levels.is_some() || levels >= MOST_LEVELS => {
                return Err(Failure::input(message).help(format!("--levels N, up to {MOST_LEVELS}")));
            }
            Ran::TooFewLevels(_) => levels *= 2,
        }
    }
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
    TooFewLevels(String),
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
    let graph = program
        .graph(call, &plain.arguments, result.address(), options.width, levels)
        .map_err(Failure::input)?;
    let ran = match place.has_aggregator() {
        true => graph.execute(&mut gpu, &module).and_then(|execution| execution.wait()).map(started),
        false => graph
            .execute_on_gpu(&mut gpu, &module)
            .and_then(|execution| execution.wait(&|launch| launch))
            .map(|run| handed_out(&run)),
    };
    let text = match ran {
        Ok(text) => text,
        Err(error) if error.to_string().contains("behind the last level") => {
            return Ok(Ran::TooFewLevels(error.to_string()));
        }
        Err(FlowError::Device(error)) => return Err(error.into()),
        Err(error) => return Err(Failure::input(error.to_string())),
    };
    let bytes = result.read(&gpu)?[0].to_le_bytes();
    if bytes[..plain.result.len()] != plain.result[..] {
        let (ours, theirs) = (value_of(&bytes[..plain.result.len()]), value_of(&plain.result));
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
        options.width,
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

fn value_of(bytes: &[u8]) -> i64 {
    let mut all = [0; 8];
    all[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    match bytes.len() {
        4 => i64::from(u32::from_le_bytes([all[0], all[1], all[2], all[3]])),
        _ => i64::from_le_bytes(all),
    }
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
    let text =
        program.plain(call).map_err(|message| Failure::input(format!("{}: {message}", path.display())))?;
    let (source, binary) = (folder.join("plain.c"), folder.join("plain"));
    write(&source, &text)?;
    let compilers = ["cc", "gcc", "clang"];
    let compile = |compiler: &&str| {
        Command::new(compiler).args(["-std=gnu11", "-O1", "-w", "-o"]).arg(&binary).arg(&source).output().ok()
    };
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

/// A folder for what is compiled, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Failure> {
        let path = std::env::temp_dir().join(format!("warploom-cilk-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| {
            Failure::input(format!("cannot make the folder `{}`: {error}", path.display()))
        })?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
