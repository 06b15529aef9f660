//! Runs in processes of their own: a parent sends them one by one and learns how each ended. A run that is killed, for
//! want of memory or otherwise, is that run's result and takes no other with it.
//!
//! Both sides speak in lines of JSON: a run, then how it ended and, on a line of their own, its figures. The child ends
//! when its input does, so none is left if the parent is killed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::execute::{Executor, Here};
use super::keep::{End, Finished};
use super::metrics::Metrics;
use super::procedure::{Status, execute};
use super::run::Run;

/// What a run may take of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub time_s: Option<f64>,
    pub memory_bytes: Option<u64>,
}

/// A run and the folder that its files are relative to.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) run: Value,
    pub(super) base: PathBuf,
}

/// The child: executes the runs that come in, and writes how each ended, until the input ends.
pub fn serve(input: impl Read + Send + 'static, mut output: impl Write) -> io::Result<()> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let (send, requests) = channel();
    let stop = interrupt.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(input).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
        // Nobody wants the result of the run in flight any more.
        stop.store(true, Ordering::Relaxed);
    });
    let mut here = Here { execute: &execute, interrupt: interrupt.clone() };
    for line in requests {
        let request: Request = serde_json::from_str(&line)?;
        let run = Run::from_description(request.run, &request.base).map_err(io::Error::other)?;
        reset_peak();
        let Some(mut end) = here.execute(&run) else { break };
        end.peak_bytes = peak();
        output.write_all(
            format!("{}\n{}\n", serde_json::to_string(&end.end())?, end.metrics.json()).as_bytes(),
        )?;
        output.flush()?;
    }
    Ok(())
}

/// Executes one run in a process of its own: `program` with arguments that make it call [`serve`]. `None` if it was
/// interrupted.
pub fn alone(run: &Run, program: &Path, arguments: &[&str]) -> Option<Finished> {
    Server::new(program, arguments, Limits::default(), Arc::default()).execute(run)
}

/// The parent's side of one child, which is started for the first run and again after each that killed it.
pub(super) struct Server<'a> {
    program: &'a Path,
    arguments: &'a [&'a str],
    limits: Limits,
    interrupt: Arc<AtomicBool>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    requests: ChildStdin,
    /// How runs ended, each as its two lines.
    replies: Receiver<(String, String)>,
    /// The end of what it wrote to its standard error.
    errors: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when all of that has been read.
    read: Receiver<()>,
}

/// How long to wait for the last words of a child that has died. Its own children may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often a parent looks at the child's size, the time and Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

impl<'a> Server<'a> {
    pub(super) fn new(
        program: &'a Path,
        arguments: &'a [&'a str],
        limits: Limits,
        interrupt: Arc<AtomicBool>,
    ) -> Server<'a> {
        Server { program, arguments, limits, interrupt, running: None }
    }

    fn start(&self) -> io::Result<Running> {
        let mut command = Command::new(self.program);
        command.args(self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pipe = || io::Error::other("no pipe");
        let requests = child.stdin.take().ok_or_else(pipe)?;
        let output = child.stdout.take().ok_or_else(pipe)?;
        let mut messages = child.stderr.take().ok_or_else(pipe)?;
        let (send, replies) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            while let (Some(end), Some(figures)) = (lines.next(), lines.next()) {
                if send.send((end, figures)).is_err() {
                    break;
                }
            }
        });
        let errors = Arc::new(Mutex::new(Vec::new()));
        let tail = errors.clone();
        let (reading, read) = channel();
        std::thread::spawn(move || {
            let _reading = reading;
            let mut piece = [0; 1024];
            while let Ok(read @ 1..) = messages.read(&mut piece) {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&piece[..read]);
                let excess = tail.len().saturating_sub(2000);
                tail.drain(..excess);
            }
        });
        Ok(Running { child, requests, replies, errors, read })
    }
}

/// What a child makes of a run.
enum Outcome {
    Ended(Finished),
    /// A signal from outside ended the child. That says nothing about the run, unless it happens again: the whole node
    /// may be going down, and this process with it.
    Killed(Finished),
    Interrupted,
}

impl Executor for Server<'_> {
    fn execute(&mut self, run: &Run) -> Option<Finished> {
        let first = self.attempt(run);
        match if matches!(first, Outcome::Killed(_)) { self.attempt(run) } else { first } {
            Outcome::Ended(end) | Outcome::Killed(end) => Some(end),
            Outcome::Interrupted => None,
        }
    }
}

impl Server<'_> {
    fn attempt(&mut self, run: &Run) -> Outcome {
        let start = Instant::now();
        let ended = |status, message: String, peak: u64| {
            let wall_s = start.elapsed().as_secs_f64();
            let peak_bytes = Some(peak).filter(|peak| *peak > 0);
            Finished { status, message: Some(message), wall_s, peak_bytes, metrics: Metrics::new() }
        };
        if self.running.is_none() {
            match self.start() {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    let message = format!("cannot start `{}`: {error}", self.program.display());
                    return Outcome::Ended(ended(Status::Crash, message, 0));
                }
            }
        }
        // If there is none, it could not be started.
        let Some(running) = self.running.as_mut() else { return Outcome::Interrupted };
        let kills = out_of_memory_kills();
        let request = Request { run: run.description(), base: run.base.clone() };
        // If the child is dead, nothing comes back, and that is told below.
        let _ = serde_json::to_writer(&mut running.requests, &request)
            .map_err(io::Error::from)
            .and_then(|()| running.requests.write_all(b"\n"));
        let mut largest = 0;
        loop {
            match running.replies.recv_timeout(LOOK) {
                Ok((line, figures)) => match serde_json::from_str::<End>(&line) {
                    Ok(end) => return Outcome::Ended(Finished::new(end, Metrics::from_json(figures))),
                    Err(error) => {
                        self.stop();
                        let message = format!("no result, but `{line}`: {error}");
                        return Outcome::Ended(ended(Status::Crash, message, largest));
                    }
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let Some((exit, errors)) = self.stop() else { return Outcome::Interrupted };
                    if signal(exit) == Some(INTERRUPT) || self.interrupt.load(Ordering::Relaxed) {
                        return Outcome::Interrupted;
                    }
                    let out_of_memory = out_of_memory_kills() > kills;
                    let (status, message) = death(exit, &errors, out_of_memory, largest);
                    let end = ended(status, message, largest);
                    let is_killed =
                        status == Status::Crash && signal(exit).is_some_and(|it| FATAL.contains(&it));
                    return if is_killed { Outcome::Killed(end) } else { Outcome::Ended(end) };
                }
            }
            if self.interrupt.load(Ordering::Relaxed) {
                self.stop();
                return Outcome::Interrupted;
            }
            largest = largest.max(size(running.child.id()));
            if let Some(limit) = self.limits.time_s
                && start.elapsed().as_secs_f64() > limit
            {
                self.stop();
                let message = format!("ended after {limit} s: the sweep allows no more (limits.time_s)");
                return Outcome::Ended(ended(Status::TimeLimit, message, largest));
            }
            if let Some(limit) = self.limits.memory_bytes
                && largest > limit
            {
                self.stop();
                let message = format!(
                    "ended with {} MB of memory: the sweep allows {} MB (limits.memory_mb)",
                    largest / 1_000_000,
                    limit / 1_000_000
                );
                return Outcome::Ended(ended(Status::Memory, message, largest));
            }
        }
    }

    /// Ends the child. Returns its status and the end of its standard error.
    fn stop(&mut self) -> Option<(Option<ExitStatus>, String)> {
        let Running { mut child, requests, errors, read, .. } = self.running.take()?;
        drop(requests);
        let _ = child.kill();
        let status = child.wait().ok();
        let _ = read.recv_timeout(LAST_WORDS);
        let errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
        Some((status, String::from_utf8_lossy(&errors).trim().to_string()))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the death of a child means for its run.
fn death(status: Option<ExitStatus>, errors: &str, out_of_memory: bool, largest: u64) -> (Status, String) {
    let size = match largest {
        0 => String::new(),
        bytes => format!("; it was last seen with {} MB", bytes / 1_000_000),
    };
    // What Rust prints before it aborts.
    if errors.contains("memory allocation of") {
        let line = errors.lines().find(|line| line.contains("memory allocation of")).unwrap_or_default();
        return (Status::Memory, format!("out of memory: {line}{size}"));
    }
    if signal(status) == Some(KILL) && out_of_memory {
        return (Status::Memory, format!("killed by the system, which was out of memory{size}"));
    }
    let how = match (signal(status), status) {
        (Some(KILL), _) => "killed by signal 9: by a user, or by the system for want of memory".to_string(),
        (Some(signal), _) => format!("died of signal {signal}"),
        (None, Some(status)) => format!("ended without a result ({status})"),
        (None, None) => "ended without a result".to_string(),
    };
    let errors = if errors.is_empty() { String::new() } else { format!(": {errors}") };
    (Status::Crash, format!("the process that executed the run {how}{size}{errors}"))
}

/// Ctrl-C, which reaches the child as well.
const INTERRUPT: i32 = 2;
const KILL: i32 = 9;
/// Signals by which users, shells and clusters end a process: HUP, KILL, TERM.
const FATAL: [i32; 3] = [1, KILL, 15];

#[cfg(unix)]
fn signal(status: Option<ExitStatus>) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status?)
}

#[cfg(not(unix))]
fn signal(_status: Option<ExitStatus>) -> Option<i32> {
    None
}

/// How often the system has killed for want of memory: all of it, and this process's control group.
fn out_of_memory_kills() -> u64 {
    let count = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
        line.trim().parse::<u64>().ok()
    };
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let files = ["/proc/vmstat".to_string(), format!("/sys/fs/cgroup/{group}/memory.events")];
    files.iter().filter_map(|file| count(std::fs::read_to_string(file).ok()?)).sum()
}

/// Bytes of memory that a process has now; 0 if that cannot be known.
fn size(pid: u32) -> u64 {
    kilobytes(&format!("/proc/{pid}/status"), "VmRSS:").unwrap_or(0)
}

/// The most that this process has had since [`reset_peak`].
fn peak() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

fn reset_peak() {
    // Where that is not possible, the peak is that of all runs so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_become_results() {
        let runs = [Run::work("vecadd").with("size", 64), Run::work("vecadd").with("size", 64).max_cycles(5)];
        let lines = runs.map(|run| {
            let request = Request { run: run.description(), base: PathBuf::new() };
            serde_json::to_string(&request).unwrap() + "\n"
        });
        // An input that stays open until the runs have ended.
        let (input, mut requests) = io::pipe().unwrap();
        let (mut replies, output) = io::pipe().unwrap();
        requests.write_all(lines.concat().as_bytes()).unwrap();
        let server = std::thread::spawn(move || serve(input, output));
        let mut lines = BufReader::new(&mut replies).lines();
        let mut line = || lines.next().unwrap().unwrap();
        let mut reply = || Finished::new(serde_json::from_str(&line()).unwrap(), Metrics::from_json(line()));
        let (right, limited) = (reply(), reply());
        assert_eq!((right.status, right.metrics.number("launches")), (Status::Ok, Some(1.0)));
        assert_eq!(limited.status, Status::CycleLimit);
        assert!(limited.message.unwrap().contains("5 cycles"));
        drop(requests);
        server.join().unwrap().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn deaths_are_told() {
        use std::os::unix::process::ExitStatusExt;
        let signal = |number| Some(ExitStatus::from_raw(number));
        let aborted = "memory allocation of 99 bytes failed\nstack";
        assert_eq!(
            death(signal(6), aborted, false, 5_000_000),
            (
                Status::Memory,
                "out of memory: memory allocation of 99 bytes failed; it was last seen with 5 MB".into()
            )
        );
        assert_eq!(death(signal(9), "", true, 0).0, Status::Memory);
        let (status, message) = death(signal(9), "", false, 0);
        assert!(status == Status::Crash && message.contains("signal 9"), "{message}");
        let (status, message) = death(Some(ExitStatus::from_raw(3 << 8)), "oh", false, 0);
        assert!(status == Status::Crash && message.ends_with(": oh"), "{message}");
    }

    /// A child that misbehaves: `sh` with a script in the place of this program.
    #[cfg(unix)]
    fn served(script: &str, limits: Limits) -> Option<Finished> {
        let arguments = ["-c", script];
        let mut server = Server::new(Path::new("/bin/sh"), &arguments, limits, Arc::default());
        server.execute(&Run::work("nw"))
    }

    #[cfg(unix)]
    #[test]
    fn children_that_die_are_results() {
        let status = |script: &str, limits| served(script, limits).unwrap().status;
        assert_eq!(status("kill -9 $$", Limits::default()), Status::Crash);
        assert_eq!(status("kill -15 $$", Limits::default()), Status::Crash);
        assert_eq!(
            status("echo memory allocation of 9 bytes failed >&2; exit 1", Limits::default()),
            Status::Memory
        );
        assert_eq!(status("echo nonsense; echo; sleep 9", Limits::default()), Status::Crash);
        let short = Limits { time_s: Some(0.1), ..Limits::default() };
        assert_eq!(status("exec sleep 9", short), Status::TimeLimit);
        let small = Limits { memory_bytes: Some(1000), ..Limits::default() };
        assert_eq!(status("exec sleep 9", small), Status::Memory);
        // In a background job the signal may be ignored, and so it is by its children.
        if !is_ignored(2) {
            assert!(served("kill -2 $$", Limits::default()).is_none(), "Ctrl-C is no result");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_run_whose_process_is_killed_once_is_executed_again() {
        let scratch = crate::runs::testing::Scratch::new("killed-once");
        // A signal that this process ignores, such as HUP under `nohup`, does not end its children either.
        for signal in FATAL.into_iter().filter(|&signal| !is_ignored(signal)) {
            let mark = scratch.path().join(format!("{signal}"));
            let mark = mark.display();
            let script = format!("test -e {mark} && exit 7; touch {mark}; kill -{signal} $$");
            let message = served(&script, Limits::default()).unwrap().message.unwrap();
            assert!(message.contains("exit status: 7"), "{message}");
        }
    }

    fn is_ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        u64::from_str_radix(ignored.trim(), 16).is_ok_and(|signals| signals >> (signal - 1) & 1 == 1)
    }
}
