//! `warploom check`: whether files load, what each kernel needs, and which loops may wait for another thread.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use warploom::isa::{Kernel as Program, Loop, Op, Pc, WaitEnds};
use warploom::{Chip, Device, Error, Kernel, Launch, Module, Occupancy, Place, SimOptions};
use warploom_lab::kernel::{KernelFile, entry};

use crate::cli::CheckOptions;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::print_json;
use crate::progress::Steps;
use crate::run::occupancy_text;
use crate::term::{self, counted, dims, grouped};

/// CTA size for which occupancy is computed, if the kernel does not require one.
const USUAL_BLOCK: u32 = 256;

/// Checks every file, and fails at the end if one of them does not load.
pub(crate) fn check(options: &CheckOptions) -> Result<Exit, Failure> {
    // A mistake in the chip is told once.
    let given = options.chip.chip.as_deref();
    given.map(|name| Chip::load(name, &options.chip.set)).transpose().map_err(Error::from)?;
    let programs: Vec<&[PathBuf]> = match options.link {
        true => vec![&options.files[..]],
        false => options.files.chunks(1).collect(),
    };
    let steps = (programs.len() > 1).then(Steps::new);
    let mut exit = Exit::Good;
    let mut files = Vec::new();
    for (i, paths) in programs.iter().enumerate() {
        if i > 0 && !options.json {
            term::print("\n")?;
        }
        if let Some(steps) = &steps {
            steps.set(i, programs.len(), name(paths));
        }
        let (file, failures) = check_program(paths, options);
        if !options.json {
            term::print(&file.text(options.listing))?;
        }
        for failure in &failures {
            term::eprint(&failure.text());
            exit = Exit::BadInput;
        }
        let mut object = serde_json::to_value(&file).map_err(std::io::Error::from)?;
        object["errors"] = failures.iter().map(Failure::json).collect();
        files.push(object);
    }
    if options.json {
        print_json(json!({ "files": Value::Array(files) }))?;
    }
    Ok(exit)
}

/// What a file contains.
#[derive(Serialize)]
struct FileFacts {
    file: String,
    /// The dialect that the text declares, if it loads.
    dialect: Option<String>,
    /// The chip whose limits count.
    chip: Option<String>,
    /// The number of the PTX's target.
    target: Option<u32>,
    kernels: Vec<KernelFacts>,
}

/// What a kernel is and needs.
#[derive(Serialize)]
struct KernelFacts {
    name: String,
    signature: String,
    params: Vec<ParamFacts>,
    instructions: usize,
    functions: Vec<String>,
    registers: u32,
    static_shared_bytes: u32,
    dynamic_shared: bool,
    local_bytes: u32,
    recursive: bool,
    block: [u32; 3],
    occupancy: Option<Occupancy>,
    /// Why no CTA of that block fits.
    unlaunchable: Option<String>,
    loops: usize,
    spins: Vec<SpinFacts>,
    /// Words that are locked and share a lock bit.
    aliases: Vec<String>,
    #[serde(skip)]
    listing: String,
}

#[derive(Serialize)]
struct ParamFacts {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    bytes: u32,
}

/// A loop that may wait for another thread.
#[derive(Serialize)]
struct SpinFacts {
    /// Nesting depth of the loop.
    depth: u32,
    file: String,
    line: u32,
    /// The line in the program that the file was compiled from; of an inlined function of a header, the user's.
    source_line: Option<String>,
    /// If it was inlined: the lines from the innermost function's to the kernel's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlined: Vec<String>,
    /// The load or atomic that decides whether the loop continues.
    instruction: String,
    /// Whether it can deadlock on a SIMT stack: `yes`, `no` (which is certain), `may`, or `if_same_warp`; `yields` if
    /// firmware decides when it goes on.
    simt_deadlock: &'static str,
    why: String,
    /// It waits for nobody.
    #[serde(skip)]
    retries: bool,
}

/// The name of a program of some files.
fn name(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" + ")
}

fn check_program(paths: &[PathBuf], options: &CheckOptions) -> (FileFacts, Vec<Failure>) {
    let mut facts =
        FileFacts { file: name(paths), dialect: None, chip: None, target: None, kernels: Vec::new() };
    let (file, chip, mut gpu) = match open(paths, options) {
        Ok(opened) => opened,
        Err(failure) => return (facts, vec![failure]),
    };
    let module = match file.load(&mut gpu) {
        Ok(module) => module,
        Err(error) => return (facts, vec![error.into()]),
    };
    facts.dialect = Some(module.dialect());
    facts.chip = Some(chip.name.clone());
    facts.target = file.target();
    let mut failures = Vec::new();
    for name in module.kernel_names() {
        match kernel_facts(&gpu, &file, &module, &name, chip.lock.bits) {
            Ok(kernel) => facts.kernels.push(kernel),
            Err(error @ Error::Load(_)) => {
                let failure = Failure::from(error);
                failures
                    .push(failure.help(format!("kernel `{name}` is refused for this, the others are not")));
            }
            Err(error) => {
                let message = format!("{}: kernel `{name}`: {error}", facts.file);
                failures.push(Failure::input(message));
            }
        }
    }
    (facts, failures)
}

/// A program with its chip and a device.
fn open(paths: &[PathBuf], options: &CheckOptions) -> Result<(KernelFile, Chip, Device), Failure> {
    let file = input::read_linked(paths.iter().cloned(), &options.cuda)?;
    let name = options.chip.chip.as_deref().unwrap_or_else(|| file.chip());
    let chip = Chip::load(name, &options.chip.set).map_err(Error::from)?;
    let gpu = Device::sim_with(chip.clone(), SimOptions::default());
    Ok((file, chip, gpu))
}

fn kernel_facts(
    gpu: &Device,
    file: &KernelFile,
    module: &Module,
    name: &str,
    gpu_bits: u32,
) -> Result<KernelFacts, Error> {
    let kernel: Kernel = module.kernel(name)?;
    let names = file.parameter_names(&kernel);
    let info = kernel.info();
    let program = kernel
        .program()
        .ok_or_else(|| Error::Misuse("this device does not show its programs".to_string()))?;
    let most = info.bounds.max_threads.unwrap_or(USUAL_BLOCK);
    let block = info.bounds.required_block.unwrap_or([most.min(USUAL_BLOCK), 1, 1]);
    let fit = gpu.occupancy(&kernel, &Launch::grid(1).block(block));
    let (occupancy, unlaunchable) = match fit {
        Ok(occupancy) => (Some(occupancy), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let spins = program.loops.iter().filter(|l| !l.of_atomic && l.spins_on.is_some());
    Ok(KernelFacts {
        name: info.name.clone(),
        signature: signature(&kernel, &names),
        params: info
            .params
            .iter()
            .zip(&names)
            .map(|(p, name)| ParamFacts { name: name.clone(), ty: warploom::declared(p), bytes: p.bytes })
            .collect(),
        instructions: program.code.len(),
        functions: program.functions.iter().skip(1).map(|f| f.name.clone()).collect(),
        registers: info.registers,
        static_shared_bytes: info.static_shared_bytes,
        dynamic_shared: program.shared.iter().any(|v| v.bytes == 0),
        local_bytes: info.local_bytes,
        recursive: program.recursive,
        block,
        occupancy,
        unlaunchable,
        loops: program.loops.iter().filter(|l| !l.of_atomic).count(),
        spins: spins.map(|l| spin_facts(program, l)).collect(),
        aliases: aliases(program, gpu_bits),
        listing: program.to_string(),
    })
}

/// The name in the source, with the parameters, and the symbol if that is another.
fn signature(kernel: &Kernel, names: &[String]) -> String {
    let params = kernel.info().params.iter().zip(names);
    let params: Vec<_> = params.map(|(p, name)| format!("{} {name}", warploom::declared(p))).collect();
    let plain = entry::plain(kernel.name());
    let symbol = if plain == kernel.name() { String::new() } else { format!(", {}", kernel.name()) };
    format!("{plain}({}){symbol}", params.join(", "))
}

fn spin_facts(program: &Program, l: &Loop) -> SpinFacts {
    let pc = l.spins_on.unwrap_or(l.header);
    let place = Place::of(program, pc);
    let takes = !matches!(program.code[pc.index()].op, Op::Ld { .. } | Op::Mbarrier(..));
    let line = |pc: Pc| {
        let place = Place::of(program, pc);
        match &place.inlined[..] {
            [] => place.short(),
            lines => format!("{} (inlined: {})", place.short(), lines.join(" < ")),
        }
    };
    let (simt_deadlock, why) = match (l.ends, takes) {
        (WaitEnds::LockFree(at), _) => {
            ("no", format!("if the compare-and-swap at {} fails, another thread has made progress", line(at)))
        }
        (WaitEnds::Yields(at), _) => (
            "yields",
            format!("the wavefront leaves its place to others at {} until firmware restarts it", line(at)),
        ),
        (WaitEnds::Released(at), _) => (
            "no",
            format!("a lane that takes the lock releases it at {}, before it waits for others", line(at)),
        ),
        (WaitEnds::Inside(at), true) => (
            "may",
            format!(
                "the loop writes the word at {}, but perhaps a lane that has it waits before that",
                line(at)
            ),
        ),
        (WaitEnds::Inside(at), false) => (
            "if_same_warp",
            format!(
                "the word is written in the loop, at {}, perhaps by a lane that waits for this one",
                line(at)
            ),
        ),
        (WaitEnds::Outside(at), true) => (
            "yes",
            format!("it is released at {}, where lanes that have it wait for those that do not", line(at)),
        ),
        (WaitEnds::Outside(at), false) => (
            "if_same_warp",
            format!("the word is written at {}, perhaps by a lane of the same warp", line(at)),
        ),
        (WaitEnds::Elsewhere, _) => (
            "if_same_warp",
            "it is not seen where the word is written, perhaps by a lane of the same warp".to_string(),
        ),
    };
    SpinFacts {
        depth: l.depth,
        file: place.file,
        line: place.line,
        source_line: place.source_line,
        inlined: place.inlined,
        instruction: place.instruction,
        simt_deadlock,
        why,
        retries: matches!(l.ends, WaitEnds::LockFree(_)),
    }
}

/// The lines through which an instruction was inlined, after the user's.
fn inlined(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; inlined: {}", lines.join(" < ")) }
}

/// Locked words that share a lock bit, as far as their addresses are known.
fn aliases(program: &Program, bits: u32) -> Vec<String> {
    let word = |address: u64| {
        let of = program.shared.iter().rev().find(|v| u64::from(v.offset) <= address);
        of.map_or(format!("[{address:#x}]"), |v| format!("[{}+{}]", v.name, address - u64::from(v.offset)))
    };
    let line = |pc: Pc| Place::of(program, pc).short();
    let bit = |address: u64| address / 4 % u64::from(bits.max(1));
    let mut found = Vec::new();
    for (i, &(pc, address)) in program.lock_words.iter().enumerate() {
        let other =
            program.lock_words[..i].iter().find(|&&(_, a)| a / 4 != address / 4 && bit(a) == bit(address));
        if let Some(&(before, first)) = other {
            found.push(format!(
                "{} ({}) and {} ({}) share lock bit {}: whoever takes both waits for itself",
                word(first),
                line(before),
                word(address),
                line(pc),
                bit(address)
            ));
        }
    }
    found
}

impl FileFacts {
    fn text(&self, listing: bool) -> String {
        let (Some(dialect), Some(chip)) = (&self.dialect, &self.chip) else { return String::new() };
        let kernels = counted(self.kernels.len() as u64, "kernel");
        let mut text = format!("{}: {dialect}, {kernels}, for {chip}\n", self.file);
        for kernel in &self.kernels {
            let _ = write!(text, "\n  {}\n{}", kernel.signature, kernel.text(chip, self.target));
            if listing {
                text.push('\n');
                text.extend(
                    kernel.listing.lines().map(|line| format!("{}\n", format!("    {line}").trim_end())),
                );
            }
        }
        text
    }
}

impl KernelFacts {
    fn text(&self, chip: &str, target: Option<u32>) -> String {
        let mut lines = Vec::new();
        let functions = match self.functions.len() {
            0 => String::new(),
            n => format!(", with {}", counted(n as u64, "function")),
        };
        let recursion = if self.recursive { ", recursive or through pointers" } else { "" };
        lines.push((
            "code",
            format!("{}{functions}{recursion}", counted(self.instructions as u64, "instruction")),
        ));
        let dynamic = if self.dynamic_shared { " + dynamic" } else { "" };
        lines.push((
            "needs",
            format!(
                "{} per thread, {} of shared memory{dynamic} per CTA, {} of local memory per thread",
                counted(self.registers as u64, "register"),
                counted(self.static_shared_bytes as u64, "byte"),
                counted(self.local_bytes as u64, "byte"),
            ),
        ));
        let fits = match (&self.occupancy, &self.unlaunchable) {
            (Some(occupancy), _) => occupancy_text(occupancy, None),
            (None, Some(reason)) => format!("does not run: {reason}"),
            (None, None) => String::new(),
        };
        lines.push(("occupancy", format!("{fits} ({chip}, block {})", dims(self.block))));
        let retries = self.spins.iter().filter(|spin| spin.retries).count() as u64;
        let spinning = match (self.spins.len() as u64 - retries, retries) {
            (0, 0) => "none seems to wait for another thread".to_string(),
            (n, 0) => format!("{} may wait for another thread:", grouped(n)),
            (n, m) => {
                let n = if n == 0 { "none".to_string() } else { grouped(n) };
                format!("{n} may wait for another thread, {} only retry a compare-and-swap:", grouped(m))
            }
        };
        lines.push(match self.loops {
            0 => ("loops", "none".to_string()),
            n => ("loops", format!("{}; {spinning}", grouped(n as u64))),
        });
        let mut text: String = lines.iter().map(|(label, line)| format!("    {label:<11}{line}\n")).collect();
        for spin in &self.spins {
            let chain = inlined(&spin.inlined);
            let source =
                spin.source_line.as_ref().map_or(String::new(), |line| format!("   ({line}{chain})"));
            let _ = writeln!(text, "      {}:{}: {}{source}", spin.file, spin.line, spin.instruction);
            let verdict = match spin.simt_deadlock {
                "no" => "does not deadlock on a SIMT stack",
                "yes" => "can deadlock on a SIMT stack",
                "may" => "may deadlock on a SIMT stack",
                "yields" => "yields while it waits",
                _ => "can deadlock on a SIMT stack if a lane waits for another of its warp",
            };
            let _ = writeln!(text, "        {verdict}: {}", spin.why);
        }
        let of_the_stack = self.spins.iter().any(|spin| !matches!(spin.simt_deadlock, "no" | "yields"));
        if let Some(target) = target.filter(|target| *target >= 70 && of_the_stack) {
            let _ = writeln!(
                text,
                "      sm_{target} has no SIMT stack: there a lane that waits does not stop the others of its warp"
            );
        }
        for alias in &self.aliases {
            let _ = writeln!(text, "      {alias}");
        }
        text
    }
}
