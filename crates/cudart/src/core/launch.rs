//! Launches: a kernel with the arguments that the program gives, in the model that the user asks for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use warploom::isa::{Op, Special};
use warploom::{Arg, Error, FaultKind, Kernel, Launch, Report, SimModel};

use crate::core::error::{CudaError, Result};
use crate::core::graphs::Work;
use crate::core::pending::{MOST_PENDING, Pending, PendingLaunch};
use crate::core::process::{Open, Process, complain, complain_once};
use crate::core::record::Launched;
use crate::core::sharing::Share;
use crate::core::timeline::{Engine, Picoseconds, StreamId};

/// A launch as the program asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared_bytes: u64,
    /// The stream's handle.
    pub(crate) stream: u64,
    pub(crate) cooperative: bool,
    /// CTAs of a cluster, if the launch says so.
    pub(crate) cluster: Option<[u32; 3]>,
}

/// CTAs of a cluster that all GPUs with clusters have.
const PORTABLE_CLUSTER: u64 = 8;

/// Threads of a warp, for the sizes of blocks that are tried.
const WARP: i32 = 32;

/// What is told of a kernel by `cudaFuncGetAttributes`.
pub(crate) struct FunctionAttributes {
    pub(crate) static_shared_bytes: u64,
    pub(crate) local_bytes: u64,
    pub(crate) max_threads: i32,
    pub(crate) registers: i32,
    /// Targets of its PTX and of the code that was made of it, as 75 for 7.5.
    pub(crate) ptx_target: i32,
    pub(crate) code_target: i32,
    pub(crate) max_dynamic_shared_bytes: i32,
}

impl Process {
    /// Launches a kernel. If the program has streams of its own, it runs when the host waits, or sees what it does, so
    /// that kernels of other streams are there, too; or else at once. A kernel that fails does so as in CUDA: the
    /// launch itself succeeds, and later calls give the error.
    pub(crate) fn launch(&mut self, host: u64, request: &Request, arguments: &[Vec<u8>]) -> Result {
        self.check()?;
        let kernel = self.kernel(host)?;
        self.check_request(host, &kernel, request)?;
        let work = || Work::Kernel { function: host, request: *request, arguments: arguments.to_vec() };
        if let Some(recorded) = self.captured(request.stream, work) {
            return recorded;
        }
        let function = self.function(host)?;
        let (mangled, plain) = (function.name.clone(), function.plain.clone());
        let open = self.open_busy()?;
        let (number, of_kernel) = open.counts(&plain);
        let settings = &self.settings;
        let timed = settings.is_timed() && settings.timed.holds(number, of_kernel, &mangled, &plain);
        let launch = Launch {
            dynamic_shared_bytes: request.dynamic_shared_bytes as u32,
            cooperative: request.cooperative,
            cluster: request.cluster,
            model: (!timed).then_some(SimModel::Functional),
            max_cycles: settings.max_cycles,
            ..Launch::grid(request.grid).block(request.block)
        };
        let observed = settings.trace.is_some() || settings.profile.is_some();
        let together = timed && !request.cooperative && request.cluster.is_none();
        let open = self.open_busy()?;
        let stream = open.streams.find(request.stream)?;
        let overhead_ns = open.gpu.chip().map_or(0, |chip| u64::from(chip.launch.overhead_ns));
        let arguments = arguments.to_vec();
        let launch = Launch { priority: open.streams.priority(stream), ..launch };
        let launched = PendingLaunch { kernel, plain, number, launch, arguments, delay: overhead_ns * 1000 };
        let streams = open.streams.count();
        if observed && streams > 1 {
            complain_once(
                "kernels of different streams are simulated one by one, because of --profile or --trace"
                    .to_string(),
            );
        }
        if !together || observed || streams == 0 {
            self.settle()?;
            return self.run_now(stream, &launched);
        }
        // What cannot run is the error of the launch.
        if let Err(error) = open.gpu.occupancy(&launched.kernel, &launched.launch) {
            complain(format!("{}, launch {number}: {error}", launched.plain));
            return Err(failure(&error));
        }
        // The host may look at pinned memory at any time, without a call.
        let seen = launched.arguments.iter().any(|argument| open.memory.names_pinned(argument));
        open.put_off(stream, Pending::Launch(Box::new(launched)));
        if seen || open.is_full() { self.settle_as_launch() } else { Ok(()) }
    }

    /// Runs a kernel to its end, alone.
    pub(super) fn run_now(&mut self, stream: StreamId, launched: &PendingLaunch) -> Result {
        let (limit, trace) = (self.settings.time_limit, self.settings.trace.clone());
        let open = self.open_busy()?;
        open.memory.bring_to_device(&mut open.gpu)?;
        let PendingLaunch { kernel, plain, number, launch, arguments, .. } = launched;
        let arguments: Vec<_> = arguments.iter().map(|bytes| Arg::bytes(bytes)).collect();
        let run = |interrupt| {
            let launch = Launch { interrupt, ..launch.clone() };
            open.gpu.launch(kernel, launch, &arguments)
        };
        let (result, out_of_time) = within(limit, run);
        if let (Some(file), Some(trace)) = (&trace, open.gpu.take_trace())
            && let Err(error) = std::fs::write(file, trace.bytes)
        {
            complain(format!("the timeline cannot be written: {error}"));
        }
        open.memory.bring_to_host(&open.gpu)?;
        let (report, failure) = match &result {
            Ok(report) => (Some(report), None),
            Err(error) => (error.report(), Some(failure(error))),
        };
        if let Some(report) = report {
            launched.finish(open, stream, report, result.as_ref().err());
        }
        let Err(error) = &result else { return Ok(()) };
        complain(format!("{plain}, launch {number}: {}", told(error, limit.filter(|_| out_of_time))));
        let failure = failure.unwrap_or(CudaError::LAUNCH_FAILURE);
        if report.is_some() {
            self.sticky = Some(failure);
            return Ok(());
        }
        Err(failure)
    }

    /// Refuses what CUDA refuses before anything runs, with its error.
    fn check_request(&mut self, host: u64, kernel: &Kernel, request: &Request) -> Result {
        let function = self.function(host)?;
        let (allowed, any_cluster) = (function.max_dynamic_shared, function.any_cluster);
        let cluster_ctas = request.cluster.map_or(1, volume);
        if cluster_ctas > PORTABLE_CLUSTER && !any_cluster {
            complain(format!(
                "{}: a cluster of {cluster_ctas} CTAs; more than {PORTABLE_CLUSTER} must be allowed \
                 (cudaFuncAttributeNonPortableClusterSizeAllowed)",
                function.plain
            ));
            return Err(CudaError::INVALID_CLUSTER_SIZE);
        }
        let fixed = u64::from(kernel.info().static_shared_bytes);
        let open = self.open_busy()?;
        open.streams.find(request.stream)?;
        let properties = &open.properties;
        let threads = volume(request.block);
        let most_threads = properties.max_threads_per_cta;
        // Its extents have attributes of the device from this number on.
        let too_large = |what: &str, extents: [u32; 3], first: i32| {
            let limit = |at: usize| properties.attribute(first + at as i32).unwrap_or(i32::MAX);
            let at = (0..3).find(|&at| i64::from(extents[at]) > i64::from(limit(at)))?;
            Some(format!("{what} has at most {} in {}", limit(at), ["x", "y", "z"][at]))
        };
        let empty = request.grid.contains(&0) || request.block.contains(&0);
        let reason = if empty {
            Some("no extent may be 0".to_string())
        } else if threads > most_threads as u64 {
            Some(format!("a block has at most {most_threads} threads, not {threads}"))
        } else {
            too_large("a block", request.block, 2).or_else(|| too_large("a grid", request.grid, 5))
        };
        if let Some(reason) = reason {
            let shown = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
            complain(format!(
                "{}: a grid of {} and a block of {} are not possible on {}: {reason}",
                kernel.name(),
                shown(request.grid),
                shown(request.block),
                properties.name
            ));
            return Err(CudaError::INVALID_CONFIGURATION);
        }
        let plain = properties.shared_bytes_per_cta.saturating_sub(fixed);
        let limit = allowed.map_or(plain, |allowed| plain.max(u64::from(allowed)));
        if request.dynamic_shared_bytes > limit {
            complain(format!(
                "{}: {} bytes of dynamic shared memory, of which it may have {limit} \
                 (cudaFuncAttributeMaxDynamicSharedMemorySize)",
                kernel.name(),
                request.dynamic_shared_bytes
            ));
            return Err(CudaError::INVALID_VALUE);
        }
        if request.cooperative {
            let launch = shape(request);
            let occupancy = open.gpu.occupancy(kernel, &launch).map_err(|error| failure(&error))?;
            if volume(request.grid) > u64::from(occupancy.ctas_per_sm) * u64::from(open.gpu.sms()) {
                return Err(CudaError::COOPERATIVE_TOO_LARGE);
            }
        }
        Ok(())
    }

    /// How many clusters of a launch fit on the chip at once; 0 if it cannot run so. Without a size, clusters are those
    /// of the kernel, or single CTAs.
    pub(crate) fn clusters(&mut self, host: u64, request: &Request) -> Result<i32> {
        let kernel = self.kernel(host)?;
        let open = self.open_busy()?;
        let cluster = request.cluster.or(kernel.info().bounds.required_cluster).unwrap_or([1; 3]);
        let fits = open.gpu.occupancy(&kernel, &shape(&Request { cluster: Some(cluster), ..*request }));
        let (Ok(fits), Some(chip)) = (fits, open.gpu.chip()) else { return Ok(0) };
        let spec = chip.cluster.as_ref().ok_or(CudaError::NOT_SUPPORTED)?;
        // CTAs of a cluster run on the SMs of one GPC; the last may have fewer.
        let (all, gpc) = (chip.sm.count, if spec.gpc_sms == 0 { chip.sm.count } else { spec.gpc_sms });
        let on = |sms: u32| u64::from(fits.ctas_per_sm) * u64::from(sms) / volume(cluster).max(1);
        Ok((u64::from(all / gpc) * on(gpc) + on(all % gpc)) as i32)
    }

    /// The most CTAs that a cluster of a launch can have: a power of two.
    pub(crate) fn largest_cluster(&mut self, host: u64, request: &Request) -> Result<i32> {
        let any = self.function(host)?.any_cluster;
        let most = self.open_busy()?.gpu.chip().and_then(|chip| chip.cluster.as_ref()).map(|c| c.max_ctas);
        let most = most.ok_or(CudaError::NOT_SUPPORTED)?;
        let mut ctas = if any { most } else { most.min(PORTABLE_CLUSTER as u32) };
        while ctas > 1 {
            // The grid that is asked about need not be one of such clusters.
            let grid = [request.grid[0].next_multiple_of(ctas), request.grid[1], request.grid[2]];
            let request = Request { cluster: Some([ctas, 1, 1]), grid, ..*request };
            if self.clusters(host, &request)? > 0 {
                break;
            }
            ctas /= 2;
        }
        Ok(ctas as i32)
    }

    /// How many CTAs of a kernel fit on an SM; 0 if it cannot run so.
    pub(crate) fn ctas_per_sm(&mut self, host: u64, threads: u32, dynamic_shared_bytes: u64) -> Result<i32> {
        let kernel = self.kernel(host)?;
        let open = self.open_busy()?;
        let shared = u32::try_from(dynamic_shared_bytes).unwrap_or(u32::MAX);
        let launch = Launch::grid(1).block(threads).shared_bytes(shared);
        Ok(open.gpu.occupancy(&kernel, &launch).map_or(0, |occupancy| occupancy.ctas_per_sm as i32))
    }

    pub(crate) fn function_attributes(&mut self, host: u64) -> Result<FunctionAttributes> {
        let kernel = self.kernel(host)?;
        let allowed = self.function(host)?.max_dynamic_shared;
        let code_target = self.open_busy()?.properties.capability();
        // Libraries choose the variant of a kernel that was compiled for this target.
        let ptx_target = self.ptx_target(host, code_target)? as i32;
        let info = kernel.info();
        let int = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let most = self.open_busy()?.properties.max_threads_per_cta;
        let mut max_threads = info.bounds.max_threads.map_or(most, |threads| int(threads).min(most));
        // Its registers may allow fewer. Programs ask this before they choose a block.
        while max_threads > WARP && self.ctas_per_sm(host, max_threads as u32, 0)? == 0 {
            max_threads = (max_threads - 1) / WARP * WARP;
        }
        let properties = &self.open_busy()?.properties;
        let plain = properties.shared_bytes_per_cta.saturating_sub(u64::from(info.static_shared_bytes));
        Ok(FunctionAttributes {
            static_shared_bytes: u64::from(info.static_shared_bytes),
            local_bytes: u64::from(info.local_bytes),
            max_threads,
            registers: int(info.registers),
            ptx_target,
            code_target: code_target as i32,
            max_dynamic_shared_bytes: int(allowed.unwrap_or(plain as u32)),
        })
    }

    /// Allows a kernel more dynamic shared memory than the plain limit.
    pub(crate) fn allow_dynamic_shared(&mut self, host: u64, bytes: i32) -> Result {
        let fixed = u64::from(self.kernel(host)?.info().static_shared_bytes);
        let most = self.open_busy()?.properties.shared_bytes_per_cta_optin;
        let bytes = u32::try_from(bytes).map_err(|_| CudaError::INVALID_VALUE)?;
        if u64::from(bytes) + fixed > most {
            complain(format!("{bytes} bytes of dynamic shared memory beside {fixed}: the chip has {most}"));
            return Err(CudaError::INVALID_VALUE);
        }
        self.function(host)?.max_dynamic_shared = Some(bytes);
        Ok(())
    }
}

/// A launch that has run, to its end or not.
pub(super) struct Ran<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) plain: &'a str,
    /// Its number in the program.
    pub(super) number: u64,
    pub(super) stream: StreamId,
    pub(super) report: &'a Report,
    pub(super) error: Option<&'a Error>,
}

impl Open {
    /// Launches so far, of the program and of a kernel, those included that have not run.
    fn counts(&self, plain: &str) -> (u64, u64) {
        let (all, of_kernel) = self.record.counts(plain);
        let same = self.pending.launches().filter(|launch| launch.plain == plain);
        (all + self.pending.launches().count() as u64, of_kernel + same.count() as u64)
    }

    /// Whether no more work is put off.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.items.len() >= MOST_PENDING
    }

    /// Moves the clock for a launch that ran alone, records it and keeps what it printed.
    pub(super) fn note(&mut self, ran: &Ran<'_>) {
        let mhz = self.gpu.chip().map_or(1000.0, |chip| f64::from(chip.clock.core_mhz));
        let cycles = match ran.report.model {
            model if model.is_timed() => ran.report.cycles as f64,
            // What its threads have seen of the time is true, however long another launch took.
            _ if reads_clock(ran.kernel) => ran.report.cycles as f64,
            _ => self.record.estimate_cycles(ran.plain, ran.report.warp_insts).unwrap_or(0.0),
        };
        let seconds = cycles / (mhz * 1e6);
        let overhead_ns = self.gpu.chip().map_or(0, |chip| u64::from(chip.launch.overhead_ns));
        let duration = (seconds * 1e12) as u64;
        let engine = Engine::Kernels(self.chip_share(ran.report));
        let start = self.streams.enqueue(ran.stream, engine, overhead_ns * 1000, duration);
        self.record(ran, start, seconds);
    }

    /// The same for a launch that ran together with others, from a moment on.
    pub(super) fn note_at(&mut self, ran: &Ran<'_>, start: Picoseconds) {
        let seconds = ran.report.kernel_s.unwrap_or(0.0);
        let engine = Engine::Kernels(self.chip_share(ran.report));
        self.streams.ran(ran.stream, engine, start, start + (seconds * 1e12) as u64);
        self.record(ran, start, seconds);
    }

    fn record(&mut self, ran: &Ran<'_>, start: Picoseconds, seconds: f64) {
        self.printed.push_str(&ran.report.output);
        let error = ran.error.map(Error::to_string);
        let recorded = self.record.add(&Launched {
            name: ran.plain,
            number: ran.number,
            report: ran.report,
            start_s: start as f64 * 1e-12,
            seconds,
            stream: ran.stream,
            error: error.as_deref(),
        });
        if let Err(error) = recorded {
            complain_once(format!("the JSON file or the profile cannot be written: {error}"));
        }
    }

    /// What the launch takes of the chip. Of one that was not timed only the room for its CTAs is known.
    fn chip_share(&self, report: &Report) -> Share {
        let ctas = report.grid.iter().map(|&extent| f64::from(extent)).product();
        let sms = f64::from(self.gpu.sms());
        let room = report.occupancy.map_or(1.0, |occupancy| f64::from(occupancy.ctas_per_sm)) * sms;
        let issues = self.gpu.chip().map_or(1.0, |chip| f64::from(chip.issue.schedulers * chip.issue.width));
        let issue = report.ipc.map_or(0.0, |ipc| ipc / (sms * issues));
        let dram = report.dram_utilisation.unwrap_or(0.0);
        Share::new(ctas, room, dram, issue, self.properties.most_kernels)
    }

    /// Tells what looks wrong in a launch.
    pub(super) fn tell(&mut self, ran: &Ran<'_>) {
        self.tell_outside_loads(ran.plain, ran.number, ran.report);
        if ran.error.is_none() {
            print_findings(ran.plain, ran.report);
        }
    }

    /// Warns of loads outside of allocations, once for each line of a kernel.
    fn tell_outside_loads(&mut self, plain: &str, number: u64, report: &Report) {
        for load in &report.outside_loads {
            let (is_new, is_first) = self.record.tells(plain, &load.place);
            if is_new {
                let help =
                    if is_first { "\n      told once a line; --bounds fault makes it an error" } else { "" };
                complain(format!(
                    "{plain}, launch {number}: {}\n      at {}{help}",
                    load.message, load.place
                ));
            }
        }
    }

    /// Takes what kernels have printed.
    pub(crate) fn take_printed(&mut self) -> String {
        std::mem::take(&mut self.printed)
    }

    /// Writes where the time went, for `warploom exec --profile`.
    pub(crate) fn write_profiles(&self) -> std::io::Result<()> {
        self.record.write_profiles(self.gpu.name())
    }

    /// The table of kernels.
    pub(crate) fn table(&mut self) -> String {
        self.streams.synchronize_all();
        let seconds = self.streams.now_s();
        self.record.table(self.gpu.name(), seconds)
    }
}

/// Whether a kernel can see how long it takes.
fn reads_clock(kernel: &Kernel) -> bool {
    use Special::{Clock, Clock64, ClockHi, GlobalTimer, GlobalTimerHi, GlobalTimerLo};
    let clocks = [Clock, ClockHi, Clock64, GlobalTimer, GlobalTimerLo, GlobalTimerHi];
    let reads = |op: &Op| matches!(op, Op::Special(special) if clocks.contains(special));
    kernel.program().is_some_and(|program| program.code.iter().any(|inst| reads(&inst.op)))
}

fn volume(extents: [u32; 3]) -> u64 {
    extents.iter().map(|&extent| u64::from(extent)).product()
}

fn shape(request: &Request) -> Launch {
    let launch =
        Launch::grid(request.grid).block(request.block).shared_bytes(request.dynamic_shared_bytes as u32);
    Launch { cluster: request.cluster, ..launch }
}

/// Warnings of a launch that ended well.
fn print_findings(plain: &str, report: &Report) {
    for warning in &report.lock_warnings {
        complain(format!("{plain}: {} ({} times)", warning.message, warning.count));
    }
}

/// An error in words, and what the threads of a launch did that was ended by its limit of time.
pub(super) fn told(error: &Error, limit: Option<Duration>) -> String {
    match (error, limit) {
        (Error::Interrupted { state: Some(state), .. }, Some(limit)) => {
            // The state is told as one that the user has asked for at some moment.
            let state = state.to_string().replace("by the user; ", "");
            format!("no end within {} s (--time-limit, WARPLOOM_TIME_LIMIT): {state}", limit.as_secs())
        }
        _ => error.to_string(),
    }
}

/// The error that CUDA gives for a failed launch.
pub(super) fn failure(error: &Error) -> CudaError {
    match error {
        Error::Fault { fault: Some(fault), .. } => match fault.kind {
            FaultKind::OutOfBounds { .. } | FaultKind::ReadOnly { .. } => CudaError::ILLEGAL_ADDRESS,
            FaultKind::Misaligned { .. } => CudaError::MISALIGNED_ADDRESS,
            FaultKind::StackOverflow { .. } | FaultKind::StacksOverflow { .. } => CudaError::HARDWARE_STACK,
            FaultKind::BadFunctionPointer(_) | FaultKind::BadBranchIndex { .. } => CudaError::INVALID_PC,
            FaultKind::Assert { .. } => CudaError::ASSERT,
            FaultKind::Trap => CudaError::LAUNCH_FAILURE,
            _ => CudaError::ILLEGAL_INSTRUCTION,
        },
        Error::Hang { .. } | Error::Interrupted { .. } => CudaError::LAUNCH_TIMEOUT,
        Error::Unlaunchable { .. } => CudaError::LAUNCH_OUT_OF_RESOURCES,
        Error::OutOfMemory(_) => CudaError::MEMORY_ALLOCATION,
        Error::Args(_) => CudaError::INVALID_VALUE,
        _ => CudaError::LAUNCH_FAILURE,
    }
}

/// Runs something that ends when its flag is set, and sets it when its time is over. Returns whether that was so.
pub(super) fn within<T>(
    limit: Option<Duration>,
    run: impl FnOnce(Option<Arc<AtomicBool>>) -> T,
) -> (T, bool) {
    let Some(limit) = limit else { return (run(None), false) };
    let interrupt = Arc::new(AtomicBool::new(false));
    let ended = (Mutex::new(false), Condvar::new());
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = ended.0.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = ended.1.wait_timeout_while(guard, limit, |ended| !*ended);
            if waited.is_ok_and(|(_, timeout)| timeout.timed_out()) {
                interrupt.store(true, Ordering::Relaxed);
            }
        });
        let result = run(Some(interrupt.clone()));
        *ended.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        ended.1.notify_all();
        result
    });
    (result, interrupt.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_without_end_is_interrupted() {
        let wait = |flag: Option<Arc<AtomicBool>>| {
            let flag = flag.expect("one to be watched");
            while !flag.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        assert_eq!(within(Some(Duration::from_millis(20)), wait), ((), true));
        assert_eq!(within(Some(Duration::from_secs(600)), |_| 7), (7, false));
    }
}
