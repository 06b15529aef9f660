//! `warploom exec`: a CUDA program runs with a CUDA runtime that simulates the device (`crates/cudart`).
//!
//! The process becomes the program, so its exit code and signals are its own; unless something is left to do when the
//! program has ended (`measured`). Options go to the runtime in variables.

mod measured;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use warploom::{Chip, DelayLimit, Error, SibSource};

use crate::cli::{ExecOptions, ModelName};
use crate::failure::{Exit, Failure};
use crate::input::reason;
use crate::output::check_writable;

/// The runtime as cargo builds it.
const LIBRARY: &str = "libwarploom_cudart.so";

/// Names by which programs ask for the runtime of CUDA 11, 12 and 13, for the driver, and for the linker that compilers
/// call: the library is all three.
const NAMES: [&str; 7] = [
    "libcudart.so.11.0",
    "libcudart.so.12",
    "libcudart.so.13",
    "libcuda.so",
    "libcuda.so.1",
    "libnvJitLink.so.12",
    "libnvJitLink.so.13",
];

/// Stands for NVIDIA's assembler where Triton calls it: the PTX itself is what the driver loads.
const PTXAS: &str = include_str!("exec/ptxas.sh");

/// Variables by which Triton is told where the assembler and the driver are.
const TRITON: [&str; 3] = ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_LIBCUDA_PATH"];

/// Libraries of NVIDIA whose kernels are machine code, and which call the driver in ways of their own.
const NVIDIAS: [&str; 9] = [
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libnccl",
    "libnpp",
    "libnvjpeg",
];

/// Becomes the program, or runs it to measure it.
pub(crate) fn exec(options: &ExecOptions) -> Result<Exit, Failure> {
    let options = &with_link(options.clone())?;
    let measures = options.compare || options.profile.is_some() || options.report.is_some();
    if measures && options.sim.model != ModelName::Timing {
        return Err(Failure::input("--profile, --report and --compare need the timed model"));
    }
    check_timed(&options.timed)?;
    // Its mistakes are told here and not by the program. Which chip the program gets is known only later: without a
    // name, one of at most as many SMs.
    let name = options.chip.chip.as_deref().unwrap_or("h200");
    let chip = Chip::load(name, &options.chip.set).map_err(Error::from)?;
    if let Some(sm) = options.trace_sm.as_deref().and_then(|sm| sm.parse::<u32>().ok())
        && sm >= chip.sm.count
    {
        let count = chip.sm.count;
        return Err(Failure::input(format!(
            "--trace-sm {sm}: {name} has {count} SMs, from 0 to {}",
            count - 1
        )));
    }
    let program = find_program(&options.program[0])?;
    check_program(&program)?;
    let library = library()?;
    let folder = linked(&library)?;
    options.trace.iter().try_for_each(|file| check_writable(file))?;
    if let Some(file) = &options.json {
        check_writable(file)?;
        fs::write(file, "")?;
    }
    let variables = variables(options)?;
    let make = || {
        let mut command = Command::new(&program);
        command.args(&options.program[1..]);
        command.env("LD_LIBRARY_PATH", in_front(folder.as_os_str(), env::var_os("LD_LIBRARY_PATH")));
        command.env("LD_PRELOAD", in_front(library.as_os_str(), env::var_os("LD_PRELOAD")));
        for (name, value) in &variables {
            command.env(name, value);
        }
        for name in TRITON.iter().filter(|name| env::var_os(name).is_none()) {
            command.env(name, if name.contains("PTXAS") { folder.join("ptxas") } else { folder.clone() });
        }
        command
    };
    if options.compare {
        return measured::compared(make);
    }
    if options.profile.is_some() || options.report.is_some() {
        return measured::profiled(make(), options);
    }
    Err(become_program(make(), &program))
}

#[cfg(unix)]
fn become_program(mut command: Command, program: &Path) -> Failure {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Failure::input(format!("cannot run `{}`: {}", program.display(), reason(&error)))
}

#[cfg(not(unix))]
fn become_program(_command: Command, _program: &Path) -> Failure {
    Failure::input("programs are run on Linux only")
}

/// Takes the bandwidth of the link out of `--set`: it belongs to the host, and a chip has no such key.
fn with_link(mut options: ExecOptions) -> Result<ExecOptions, Failure> {
    for assignment in std::mem::take(&mut options.chip.set) {
        match assignment.strip_prefix("host.link_gbps=") {
            None => options.chip.set.push(assignment),
            Some(value) => {
                let gbps = value.parse().ok().filter(|&gbps: &f64| gbps > 0.0 && gbps.is_finite());
                let wrong =
                    || Failure::input(format!("--set {assignment}: a bandwidth in 1e9 bytes per second"));
                options.link_gbps = Some(gbps.ok_or_else(wrong)?);
            }
        }
    }
    Ok(options)
}

/// Refuses a choice of launches that chooses none or cannot be read. The runtime reads it
/// (`crates/cudart/src/core/timed.rs`).
fn check_timed(timed: &str) -> Result<(), Failure> {
    let number = |text: &str| text.replace('_', "").parse::<u64>().ok();
    let is_range = |first: &str, end: &str| match (number(first), number(end)) {
        (Some(first), Some(end)) => first < end,
        (first, None) => first.is_some() && end.is_empty(),
        _ => false,
    };
    let is_good = if let Some(count) = timed.strip_prefix("first:").or(timed.strip_prefix("every:")) {
        number(count).is_some_and(|count| count > 0)
    } else if let Some(range) = timed.strip_prefix("range:") {
        range.split_once("..").is_some_and(|(first, end)| is_range(first, end))
    } else {
        timed == "all" || timed.strip_prefix("kernel=").is_some_and(|name| !name.is_empty())
    };
    is_good.then_some(()).ok_or_else(|| {
        Failure::input(format!("--timed {timed}: it chooses no launch"))
            .help("it is all, first:N, every:N, kernel=NAME or range:A..B, with N from 1 and A below B")
    })
}

/// The options as the runtime reads them (`crates/cudart/src/core/settings.rs`).
fn variables(options: &ExecOptions) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let mut all: Vec<(&'static str, OsString)> = vec![("WARPLOOM_TIMED", options.timed.clone().into())];
    let mut add = |name, value: Option<OsString>| all.extend(value.map(|value| (name, value)));
    add("WARPLOOM_CHIP", options.chip.chip.clone().map(Into::into));
    let set = options.chip.set.join("\n");
    add("WARPLOOM_SET", (!set.is_empty()).then(|| set.into()));
    add("WARPLOOM_MODEL", Some(options.sim.model.name().into()));
    add("WARPLOOM_SCHED", options.sim.sched.clone().map(Into::into));
    add("WARPLOOM_BOWS", options.sim.bows.then(|| "1".into()));
    add(
        "WARPLOOM_BOWS_LIMIT",
        options.sim.bows_limit.map(|limit| match limit {
            DelayLimit::Adaptive => "adaptive".into(),
            DelayLimit::Fixed(cycles) => cycles.to_string().into(),
        }),
    );
    let sib =
        |source| SibSource::ALL.iter().find(|(known, _)| *known == source).map(|(_, name)| (*name).into());
    add("WARPLOOM_SIB", options.sim.sib.and_then(sib));
    add("WARPLOOM_THREADS", options.sim.threads.map(|threads| threads.to_string().into()));
    add("WARPLOOM_TIME_LIMIT", options.time_limit.map(|seconds| seconds.to_string().into()));
    add("WARPLOOM_MAX_CYCLES", options.max_cycles.map(|cycles| cycles.to_string().into()));
    add("WARPLOOM_LINK_GBPS", options.link_gbps.map(|gbps| gbps.to_string().into()));
    add("WARPLOOM_BOUNDS", options.bounds.clone().map(Into::into));
    add("WARPLOOM_QUIET", options.quiet.then(|| "1".into()));
    add("WARPLOOM_TRACE_SM", options.trace_sm.clone().map(Into::into));
    // The program may change its folder.
    for (name, file) in [("WARPLOOM_JSON", &options.json), ("WARPLOOM_TRACE", &options.trace)] {
        if let Some(file) = file {
            all.push((name, std::path::absolute(file)?.into()));
        }
    }
    Ok(all)
}

/// A path in front of a list of paths.
fn in_front(path: &std::ffi::OsStr, list: Option<OsString>) -> OsString {
    let mut all = path.to_os_string();
    if let Some(list) = list.filter(|list| !list.is_empty()) {
        all.push(":");
        all.push(list);
    }
    all
}

/// The program's file: a path, or a name that is looked for as a shell does.
fn find_program(name: &OsString) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(name);
    let found = if path.components().count() > 1 {
        path.is_file().then(|| path.clone())
    } else {
        let folders = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&folders).map(|folder| folder.join(&path)).find(|path| path.is_file())
    };
    found.ok_or_else(|| {
        let failure = Failure::input(format!("no program `{}`", path.display()));
        if Path::new(".").join(&path).is_file() {
            failure.help(format!("one in this folder is named ./{}", path.display()))
        } else {
            failure
        }
    })
}

/// Refuses programs into which no library can be loaded. Scripts are fine: their interpreter's programs matter.
fn check_program(path: &Path) -> Result<(), Failure> {
    let bytes = fs::read(path)
        .map_err(|error| Failure::input(format!("cannot read `{}`: {}", path.display(), reason(&error))))?;
    if !bytes.starts_with(&elf::ELFMAG) {
        return Ok(());
    }
    let refuse = |why: &str| Failure::input(format!("`{}` {why}", path.display()));
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(&*bytes) else {
        return Err(refuse("is not a 64-bit program").help("build it without -m32"));
    };
    let endian = header.endian().map_err(|_| refuse("is not a program of this computer"))?;
    let machine = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    if header.e_machine(endian) != machine {
        return Err(refuse("is for another processor than this computer's"));
    }
    let headers = header.program_headers(endian, &*bytes).unwrap_or_default();
    if !headers.iter().any(|header| header.p_type(endian) == elf::PT_INTERP) {
        return Err(refuse("is linked statically, so that no other CUDA runtime can be loaded into it")
            .help("link it without -static (the CUDA runtime itself may be static)"));
    }
    for library in needed(&bytes) {
        eprintln!(
            "warning: the program needs {library}, NVIDIA's own library of machine code, which runs on no simulated \
             chip: calls of it fail; run the program on a GPU, or build it with kernels of its own in that place"
        );
    }
    Ok(())
}

/// The libraries of NVIDIA that a program names.
fn needed(program: &[u8]) -> Vec<String> {
    let names = program.split(|&byte| byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    let is_library =
        |name: &&str| NVIDIAS.iter().any(|of| name.strip_prefix(of).is_some_and(|r| r.contains(".so.")));
    let mut found: Vec<_> = names.filter(is_library).map(str::to_string).collect();
    found.sort();
    found.dedup();
    found
}

/// The runtime, beside the command as cargo leaves both, or where the user says.
fn library() -> Result<PathBuf, Failure> {
    if let Some(path) = env::var_os("WARPLOOM_CUDART").map(PathBuf::from) {
        return match fs::canonicalize(&path) {
            Ok(path) => Ok(path),
            Err(error) => {
                let what = format!("WARPLOOM_CUDART: `{}`: {}", path.display(), reason(&error));
                Err(Failure::input(what))
            }
        };
    }
    let command = env::current_exe()?;
    let folder = command.parent().unwrap_or(Path::new("."));
    let beside = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    let found = beside.iter().find(|path| path.is_file()).and_then(|path| fs::canonicalize(path).ok());
    found.ok_or_else(|| {
        Failure::input(format!("there is no {LIBRARY} in {}", folder.display()))
            .help("build it with `cargo build --release -p warploom-cudart`; cargo does not install libraries, so that \
                   an installed command needs it copied beside it")
            .help("WARPLOOM_CUDART names it wherever it is")
    })
}

/// A folder with links to the runtime by all names that programs ask for. It is kept, one for each library.
fn linked(library: &Path) -> Result<PathBuf, Failure> {
    let of = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches =
        of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache"))).unwrap_or_else(env::temp_dir);
    let name: String = library.display().to_string().replace(['/', '.'], "-");
    let folder = caches.join("warploom/cudart").join(name.trim_start_matches('-'));
    let made = fs::create_dir_all(&folder)
        .and_then(|()| NAMES.iter().try_for_each(|name| link(library, &folder.join(name))))
        .and_then(|()| write_program(&folder.join("ptxas"), PTXAS));
    made.map(|()| folder.clone()).map_err(|error| {
        Failure::input(format!("cannot write `{}`: {}", folder.display(), reason(&error)))
            .help("XDG_CACHE_HOME names another folder for caches")
    })
}

/// Writes a program, unless it is there already. Another run may write it at the same time, so it appears at once.
#[cfg(unix)]
fn write_program(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    let new = path.with_extension(std::process::id().to_string());
    fs::write(&new, text)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
    fs::rename(&new, path)
}

#[cfg(not(unix))]
fn write_program(path: &Path, text: &str) -> std::io::Result<()> {
    fs::write(path, text)
}

#[cfg(unix)]
fn link(library: &Path, name: &Path) -> std::io::Result<()> {
    match std::os::unix::fs::symlink(library, name) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            // Another run may have made it just now; only a link to something else is wrong.
            if fs::read_link(name).is_ok_and(|to| to == library) {
                return Ok(());
            }
            fs::remove_file(name)?;
            std::os::unix::fs::symlink(library, name)
        }
        result => result,
    }
}

#[cfg(not(unix))]
fn link(library: &Path, name: &Path) -> std::io::Result<()> {
    fs::copy(library, name).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_nvidia() {
        let program =
            b"\x7fELF\0libc.so.6\0libcublas.so.12\0libcublasLt.so.12\0libcublas_is_great\0libcublas.so.12\0";
        assert_eq!(needed(program), ["libcublas.so.12", "libcublasLt.so.12"]);
    }

    #[test]
    fn paths_in_front() {
        assert_eq!(in_front("/a".as_ref(), None), "/a");
        assert_eq!(in_front("/a".as_ref(), Some("".into())), "/a");
        assert_eq!(in_front("/a".as_ref(), Some("/b:/c".into())), "/a:/b:/c");
    }
}
