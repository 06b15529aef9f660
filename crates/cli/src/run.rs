//! `warploom run`: one launch, from the command line's arguments to a summary.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use warploom::isa::{Param, Ty};
use warploom::{
    Arg, Buffer, Chip, Device, Error, Kernel, Launch, Model, Module, Progress, Report, SimOptions,
};

use crate::arg::{ArgSpec, BufferSpec, Fill};
use crate::cli::{DeviceName, RunOptions};
use crate::failure::{Exit, Failure};
use crate::input::{self, reason};
use crate::progress::Watch;
use crate::term::{self, counted, dims, grouped, seconds};
use crate::{fill, value};

/// Runs the kernel and prints what it did.
pub fn run(options: &RunOptions) -> Result<Exit, Failure> {
    let mut gpu = open(options)?;
    let module = input::load(&mut gpu, &options.file)?;
    let kernel = choose_kernel(&module, options)?;
    check_references(options, &kernel)?;
    let arguments = prepare(&mut gpu, &options.args)?;

    let args = arguments.iter().map(Prepared::arg).collect::<Vec<_>>();
    let (watch, progress) = Watch::new();
    let launched = gpu.launch(&kernel, launch(options, progress), args);
    drop(watch);
    let report = match launched {
        Ok(report) => report,
        Err(error) => return Err(launch_failure(error, options)),
    };
    let dumps =
        options.dump.iter().map(|d| dump(&gpu, &arguments, d.arg, d.count)).collect::<Result<Vec<_>, _>>()?;
    save(&gpu, &arguments, options)?;

    if options.json {
        let mut object = serde_json::to_value(&report).map_err(std::io::Error::from)?;
        object["dumps"] = dumps.iter().map(Dump::json).collect();
        object["error"] = Value::Null;
        term::print(&format!("{object}\n"))?;
    } else {
        let mut text = report.output.clone();
        end_line(&mut text);
        for dump in &dumps {
            text.push_str(&dump.text());
            text.push('\n');
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&summary(&report));
        term::print(&text)?;
    }
    Ok(judge_uninitialised(&report))
}

/// The device to run on.
fn open(options: &RunOptions) -> Result<Device, Failure> {
    match options.device {
        DeviceName::Sim => {
            let chip = Chip::load(&options.chip.chip, &options.chip.set).map_err(Error::from)?;
            let sim = SimOptions { check_uninitialised: options.check_uninit };
            Ok(Device::sim_with(chip, sim))
        }
        DeviceName::Cuda(_) if options.check_uninit => {
            Err(Failure::input("--check-uninit needs the simulator: a real GPU does not know who wrote what"))
        }
        DeviceName::Cuda(ordinal) => Ok(Device::cuda(ordinal)?),
    }
}

/// The kernel that is meant.
fn choose_kernel(module: &Module, options: &RunOptions) -> Result<Kernel, Failure> {
    let names = module.kernel_names();
    let name = match (&options.entry, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => {
            return Err(Failure::input(format!("`{}` has no kernel (.entry)", options.file.display())));
        }
        (None, names) => {
            let list = names.join(", ");
            let count = names.len();
            return Err(Failure::input(format!("`{}` has {count} kernels: {list}", options.file.display()))
                .help(format!("choose one with --entry, such as --entry {}", names[0])));
        }
    };
    Ok(module.kernel(name)?)
}

/// Finds mistakes that would otherwise show only after a long launch.
fn check_references(options: &RunOptions, kernel: &Kernel) -> Result<(), Failure> {
    let params = &kernel.info().params;
    if options.args.len() != params.len() {
        return Err(wrong_count(options, kernel, params));
    }
    let dumps = options.dump.iter().map(|d| ("--dump", d.arg, d.count.unwrap_or(0)));
    let saves = options.save.iter().map(|s| ("--save", s.arg, 0));
    for (option, arg, count) in dumps.chain(saves) {
        match options.args.get(arg) {
            Some(ArgSpec::Buffer(buffer)) if count <= buffer.count => {}
            Some(ArgSpec::Buffer(buffer)) => {
                let has = buffer.count;
                return Err(Failure::input(format!(
                    "{option} {arg}:{count}: argument {arg}'s buffer has {has} elements"
                )));
            }
            Some(_) => return Err(Failure::input(format!("{option} {arg}: argument {arg} is no buffer"))),
            None => {
                let count = counted(options.args.len() as u64, "argument");
                return Err(Failure::input(format!(
                    "{option} {arg}: there are only {count}, counted from 0"
                )));
            }
        }
    }
    Ok(())
}

/// Says which arguments a kernel wants, with a command that would do.
fn wrong_count(options: &RunOptions, kernel: &Kernel, params: &[Param]) -> Failure {
    let takes = counted(params.len() as u64, "argument");
    let mut message = format!("kernel `{}` takes {takes}, {} given", kernel.name(), options.args.len());
    for (i, param) in params.iter().enumerate() {
        let _ = write!(message, "\n  {i}  {:<8} {}", warploom::declared(param), param.name);
    }
    let mut example = format!("warploom run {}", options.file.display());
    if let Some(entry) = &options.entry {
        let _ = write!(example, " --entry {entry}");
    }
    example.push_str(" --grid 4 --block 256");
    for param in params {
        let _ = write!(example, " --arg {}", example_arg(param));
    }
    let failure = Failure::input(message)
        .help(format!("give one --arg for each, in this order; for example\n  {example}"));
    if params.iter().any(|p| p.ty.bytes() == 8 && !p.ty.is_float()) {
        return failure.help("a 64-bit parameter is mostly a pointer: give it a buffer");
    }
    failure
}

fn example_arg(param: &Param) -> String {
    match param.ty {
        _ if param.bytes != param.ty.bytes() => format!("bytes:{}", "00".repeat(param.bytes as usize)),
        Ty::F32 | Ty::F64 | Ty::F16 => format!("{}:1.0", param.ty),
        ty if ty.bytes() == 8 => "buf:f32:1024=iota".to_string(),
        ty if ty.bytes() == 1 => format!("{ty}:1"),
        ty => format!("{ty}:1024"),
    }
}

fn launch(options: &RunOptions, progress: Arc<Progress>) -> Launch {
    let limit = [options.max_cycles, options.max_insts].into_iter().flatten().min();
    Launch {
        grid: options.grid,
        block: options.block,
        dynamic_shared_bytes: options.shared,
        cooperative: options.cooperative,
        time_limit: options.time_limit.map(Duration::from_secs),
        max_instructions: limit,
        interrupt: Some(interrupt_flag()),
        progress: Some(progress),
    }
}

/// A flag that Ctrl-C sets; a second Ctrl-C ends the process at once.
fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    // Without a handler Ctrl-C still ends the process, only less politely.
    let _ = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    });
    flag
}

/// An argument that is ready for the launch.
enum Prepared {
    Scalar(Arg<'static>),
    Buffer { ty: Ty, buffer: Buffer<u8> },
}

impl Prepared {
    fn arg(&self) -> Arg<'_> {
        match self {
            Prepared::Scalar(arg) => arg.clone(),
            Prepared::Buffer { buffer, .. } => Arg::from(buffer),
        }
    }
}

fn prepare(gpu: &mut Device, specs: &[ArgSpec]) -> Result<Vec<Prepared>, Failure> {
    let prepared = specs.iter().enumerate().map(|(index, spec)| {
        Ok(match spec {
            // 16-bit floats are declared as bits, if at all.
            ArgSpec::Scalar { ty: Ty::F16 | Ty::BF16, bytes } => {
                Prepared::Scalar(Arg::scalar(Ty::B16, bytes))
            }
            ArgSpec::Scalar { ty, bytes } => Prepared::Scalar(Arg::scalar(*ty, bytes)),
            ArgSpec::Bytes(bytes) => Prepared::Scalar(Arg::bytes(bytes)),
            ArgSpec::Buffer(spec) => {
                Prepared::Buffer { ty: spec.ty, buffer: prepare_buffer(gpu, index, spec)? }
            }
        })
    });
    prepared.collect()
}

fn prepare_buffer(gpu: &mut Device, index: usize, spec: &BufferSpec) -> Result<Buffer<u8>, Failure> {
    let name = format!("buffer {index}");
    let (ty, count) = (spec.ty, spec.count);
    let bytes =
        spec.bytes().ok_or_else(|| Failure::input(format!("{name}: {count} elements fit no memory")))?;
    if spec.fill == Fill::Zero {
        return Ok(gpu.zeros_named(&name, bytes)?);
    }
    // Whether the device has room is asked first: making the content of a giant buffer takes long.
    let buffer = gpu.uninit_named(&name, bytes)?;
    let content = match &spec.fill {
        Fill::Zero | Fill::Uninit => return Ok(buffer),
        Fill::Iota => fill::iota(ty, count),
        Fill::Random(seed) => fill::random(ty, count, *seed),
        Fill::Value(element) => fill::repeat(element, count),
        Fill::List(bytes) => bytes.clone(),
        Fill::File(path) => {
            let shown = path.display();
            let data = std::fs::read(path)
                .map_err(|e| Failure::input(format!("{name}: cannot read `{shown}`: {}", reason(&e))))?;
            if data.len() != bytes {
                let size = ty.bytes() as usize;
                let message = format!(
                    "{name}: `{shown}` has {} bytes, {count} elements of {ty} are {bytes} bytes",
                    data.len()
                );
                return Err(Failure::input(message).help(match data.len() % size {
                    0 => format!("the whole file is buf:{ty}:{}=@{shown}", data.len() / size),
                    _ => format!("the file's size is no multiple of {size}"),
                }));
            }
            data
        }
    };
    buffer.write(gpu, &content)?;
    Ok(buffer)
}

/// Shows what a failed launch did so far, and adds advice.
fn launch_failure(error: Error, options: &RunOptions) -> Failure {
    let limits = matches!(&error, Error::Unlaunchable { shape, .. } if !shape.grid.contains(&0) && !shape.block.contains(&0));
    let failure = Failure::from(error);
    if let Some(report) = failure.report().filter(|_| !options.json) {
        let mut text = report.output.clone();
        end_line(&mut text);
        if failure.exit() == Exit::Interrupted {
            text.push_str(&summary(report));
        }
        // What the kernel printed comes before the message that it failed.
        let _ = term::print(&text);
    }
    match limits && options.device == DeviceName::Sim {
        true => failure.help(format!(
            "`warploom chips {}` shows the chip's limits; --set changes them",
            options.chip.chip
        )),
        false => failure,
    }
}

/// Values of a buffer after the launch.
struct Dump {
    arg: usize,
    ty: Ty,
    bytes: Vec<u8>,
}

impl Dump {
    fn elements(&self) -> std::slice::Chunks<'_, u8> {
        self.bytes.chunks(self.ty.bytes() as usize)
    }

    fn text(&self) -> String {
        self.elements().map(|bytes| value::format_value(self.ty, bytes)).collect::<Vec<_>>().join(" ")
    }

    fn json(&self) -> Value {
        let values = self.elements().map(|bytes| value::json_value(self.ty, bytes)).collect::<Vec<_>>();
        json!({ "arg": self.arg, "type": self.ty.name(), "values": values })
    }
}

fn dump(gpu: &Device, arguments: &[Prepared], arg: usize, count: Option<usize>) -> Result<Dump, Failure> {
    let Some(Prepared::Buffer { ty, buffer }) = arguments.get(arg) else {
        return Err(Failure::input(format!("--dump {arg}: argument {arg} is no buffer")));
    };
    let len = count.map_or(buffer.len(), |count| count * ty.bytes() as usize);
    Ok(Dump { arg, ty: *ty, bytes: buffer.read_range(gpu, 0, len)? })
}

fn save(gpu: &Device, arguments: &[Prepared], options: &RunOptions) -> Result<(), Failure> {
    for save in &options.save {
        if let Some(Prepared::Buffer { buffer, .. }) = arguments.get(save.arg) {
            let file = &save.file;
            std::fs::write(file, buffer.read(gpu)?)
                .map_err(|e| Failure::input(format!("cannot write `{}`: {}", file.display(), reason(&e))))?;
        }
    }
    Ok(())
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Tells about reads of memory that nobody wrote.
fn judge_uninitialised(report: &Report) -> Exit {
    if report.uninitialised.is_empty() {
        return Exit::Good;
    }
    let places = counted(report.uninitialised.len() as u64, "instruction");
    let mut text = format!(
        "{} kernel `{}` reads uninitialised memory at {places}",
        term::paint("error:", 31),
        report.kernel
    );
    for read in &report.uninitialised {
        let _ = write!(text, "\n  {} ({})", read.message.replace('\n', "\n  "), counted(read.count, "time"));
    }
    term::tell(&text);
    Exit::CheckFailed
}

/// What a launch did, for people.
pub fn summary(report: &Report) -> String {
    let threads = |dims: [u32; 3]| dims.iter().map(|&d| d as u64).product::<u64>();
    let (ctas, block) = (threads(report.grid), threads(report.block));
    let mut lines = vec![
        ("kernel", format!("{} on {}, {}", report.kernel, report.chip, how(report.model))),
        (
            "launch",
            format!(
                "grid {} x block {}: {}",
                dims(report.grid),
                dims(report.block),
                counted(ctas * block, "thread")
            ),
        ),
        (
            "needs",
            format!(
                "{} a thread, {} shared a CTA, {} local a thread",
                counted(report.registers as u64, "register"),
                counted(report.shared_bytes as u64, "byte"),
                counted(report.local_bytes as u64, "byte")
            ),
        ),
    ];
    if let Some(occupancy) = report.occupancy {
        lines.push(("occupancy", occupancy_text(&occupancy)));
    }
    if let Some(gpu_s) = report.gpu_s {
        let cycles = grouped(report.cycles);
        lines.push(("GPU time", format!("{}, {cycles} cycles at the peak clock", seconds(gpu_s))));
        return aligned(&lines);
    }
    lines.push((
        "executed",
        format!(
            "{}, {}",
            counted(report.warp_insts, "warp instruction"),
            counted(report.thread_insts, "thread instruction")
        ),
    ));
    lines.push(("lanes", format!("{:.1}% busy (SIMD efficiency)", 100.0 * report.simd_efficiency)));
    lines.push((
        "wall time",
        format!("{}, {:.1} M warp instructions/s", seconds(report.wall_s), report.warp_insts_per_s / 1e6),
    ));
    aligned(&lines)
}

fn aligned(lines: &[(&str, String)]) -> String {
    lines.iter().map(|(label, text)| format!("{label:<11}{text}\n")).collect()
}

fn how(model: Model) -> &'static str {
    match model {
        Model::Functional => "functional model",
        Model::Hardware => "a real GPU",
    }
}

/// What fits on an SM, for people.
pub fn occupancy_text(occupancy: &warploom::Occupancy) -> String {
    let limit = match occupancy.limited_by {
        warploom::Limiter::Ctas => "CTA slots",
        warploom::Limiter::Warps => "warp slots",
        warploom::Limiter::Threads => "threads",
        warploom::Limiter::Registers => "registers",
        warploom::Limiter::SharedMemory => "shared memory",
    };
    let warps = grouped(occupancy.ctas_per_sm as u64 * occupancy.warps_per_cta as u64);
    let ctas = counted(occupancy.ctas_per_sm as u64, "CTA");
    format!("{ctas} an SM ({warps} of {} warps), limited by {limit}", occupancy.max_warps_per_sm)
}
