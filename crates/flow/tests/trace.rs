//! The timeline of a graph: what the aggregator did, with the names of channels and kernels.

use std::collections::HashMap;

use warploom::trace::perfetto::{self, INSTANT, SLICE_BEGIN, SLICE_END, TrackEvent};
use warploom::{Chip, Device, Report, SimOptions, Sms, Timing, TraceOptions};
use warploom_flow::{Graph, Level, Result};

/// The Cilk program for Fibonacci numbers.
fn graph(n: u32, width: u32, result: u64) -> Graph {
    let mut graph = Graph::new("fibonacci");
    let tasks = graph.stack::<[u32; 4]>("tasks", n, width);
    let sums = graph.stack::<[u32; 4]>("sums", n, width);
    let (fib, sum) = (graph.kernel("fib"), graph.kernel("fib_sum"));
    graph.reads::<[u32; 4]>(fib, tasks).constants(fib, [sums.into()]);
    graph.writes::<[u32; 4]>(fib, tasks, Level::Next, 2).writes::<[u32; 4]>(fib, sums, Level::Same, 1);
    graph.reads::<[u32; 4]>(sum, sums).after_sync(sum);
    graph.put(tasks, &[result as u32, (result >> 32) as u32, n, 0]);
    graph
}

fn try_run(gpu: &mut Device, n: u32, width: u32) -> Result<Report> {
    let module = gpu.load_ptx(warploom_kernels::text!("flow/fibonacci.ptx"))?;
    let result = gpu.zeros::<u32>(1)?;
    graph(n, width, result.address()).execute(gpu, &module)?.wait()
}

fn run(gpu: &mut Device, n: u32, width: u32) -> Report {
    try_run(gpu, n, width).unwrap_or_else(|error| panic!("{error}"))
}

fn apu(trace: Option<TraceOptions>) -> Device {
    let timing = Timing { trace, ..Timing::default() };
    Device::sim_with(Chip::load("apu", &[]).unwrap(), SimOptions { timing, ..SimOptions::default() })
}

/// The events of each track, by its name: cycle, kind and name of the event.
fn tracks(bytes: &[u8]) -> HashMap<String, Vec<(u64, i32, String)>> {
    let trace = perfetto::decode(bytes).unwrap();
    let (mut names, mut tracks, mut events) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut now = 0;
    for packet in trace.packet {
        if let Some(track) = packet.track_descriptor {
            let process = track.process.and_then(|process| process.process_name);
            tracks.insert(track.uuid.unwrap(), track.name.or(process).unwrap());
        }
        for name in packet.interned_data.iter().flat_map(|data| &data.event_names) {
            names.insert(name.iid.unwrap(), name.name.clone().unwrap());
        }
        now += packet.timestamp.unwrap_or(0);
        if let Some(TrackEvent { track_uuid, kind, name, name_iid, .. }) = packet.track_event {
            let name = name.or_else(|| name_iid.map(|iid| names[&iid].clone())).unwrap_or_default();
            let track = tracks[&track_uuid.unwrap()].clone();
            events.entry(track).or_insert_with(Vec::new).push((now, kind.unwrap(), name));
        }
    }
    events
}

#[test]
fn the_timeline_names_channels_and_kernels() {
    let options = TraceOptions { sms: Sms::All, ..TraceOptions::default() };
    let mut gpu = apu(Some(options));
    let report = run(&mut gpu, 16, 1024);
    let trace = gpu.take_trace().expect("the run was traced");
    assert_eq!(trace.cut, None);
    let tracks = tracks(&trace.bytes);
    let counts = report.aggregator.unwrap();

    let firmware = &tracks["firmware"];
    let named = |kind: i32, what: &str| {
        firmware.iter().filter(|(_, k, name)| *k == kind && name.contains(what)).count() as u64
    };
    assert_eq!(named(INSTANT, "start `fib"), counts["starts"]);
    let first = firmware.iter().find(|(_, kind, _)| *kind == INSTANT).unwrap();
    assert_eq!(first.2, "start `fib` on 1 element of level 0 of channel `tasks`");
    assert_eq!(named(INSTANT, "start `fib` on 2 elements of level 1 of channel `tasks`"), 1);
    assert_eq!(named(INSTANT, "start `fib_sum` on 1 element of level 0 of channel `sums`"), 1);
    assert!(named(INSTANT, "free a group of level 9 of channel `tasks`") > 0);
    assert!(named(SLICE_BEGIN, "poll") > counts["starts"]);
    assert_eq!(named(SLICE_BEGIN, ""), named(SLICE_END, ""));

    let dispatcher = &tracks["dispatcher"];
    let starts: Vec<_> = dispatcher.iter().filter(|(_, _, name)| name.starts_with("start ")).collect();
    assert_eq!(starts.len() as u64, counts["starts"]);
    assert_eq!(starts[0].2, "start fib, 1 CTA");
    // A wavefront has its kernel's name.
    let warps = tracks.iter().filter(|(track, _)| track.starts_with("slot "));
    let first = |events: &[(u64, i32, String)]| events.iter().any(|(.., name)| name == "fib CTA 0 warp 0");
    assert_eq!(warps.filter(|(_, events)| first(events)).count(), 1);
    assert!(tracks["launch"].iter().any(|(_, _, name)| name == "firmware"));
}

#[test]
fn tracing_takes_no_time() {
    let untraced = run(&mut apu(None), 14, 256);
    let mut gpu = apu(Some(TraceOptions::default()));
    let traced = run(&mut gpu, 14, 256);
    let counts = |report: Report| (report.cycles, report.aggregator.unwrap());
    assert_eq!(counts(traced), counts(untraced));
}

#[test]
fn yields_and_restarts_are_shown() {
    let mut gpu = apu(Some(TraceOptions::default()));
    let report = run(&mut gpu, 15, 64);
    let counts = report.aggregator.unwrap();
    assert!(counts["yields"] > 0 && counts["restarts"] > 0);
    let tracks = tracks(&gpu.take_trace().unwrap().bytes);
    let count = |track: &str, what: &str| {
        tracks[track].iter().filter(|(.., name)| name.starts_with(what)).count() as u64
    };
    assert_eq!(count("dispatcher", "fib yielded on SM"), counts["yields"]);
    assert_eq!(count("dispatcher", "restart fib on SM"), counts["restarts"]);
    assert_eq!(count("firmware", "restart `fib`: room in level "), counts["restarts"]);
    assert!(count("firmware", "`fib` waits for room in level ") > 0);
    let times: Vec<u64> = tracks["dispatcher"].iter().map(|&(at, ..)| at).collect();
    assert!(times.is_sorted());
}

#[test]
fn some_cycles_and_few_bytes() {
    let options = TraceOptions { cycles: 5_000..9_000, ..TraceOptions::default() };
    let mut gpu = apu(Some(options));
    run(&mut gpu, 14, 256);
    let tracks = tracks(&gpu.take_trace().unwrap().bytes);
    for (name, events) in tracks.iter().filter(|(name, _)| *name == "firmware" || *name == "dispatcher") {
        assert!(events.iter().all(|(at, ..)| (5_000..=9_000).contains(at)), "{name}");
        let kinds = |kind: i32| events.iter().filter(|(_, k, _)| *k == kind).count();
        assert_eq!(kinds(SLICE_BEGIN), kinds(SLICE_END), "{name}");
    }
    let mut gpu = apu(Some(TraceOptions { max_bytes: 4_000, ..TraceOptions::default() }));
    run(&mut gpu, 14, 256);
    let trace = gpu.take_trace().unwrap();
    assert!(trace.cut.is_some() && trace.bytes.len() <= 4_000);
    perfetto::decode(&trace.bytes).unwrap();
}

#[test]
fn spans_are_refused() {
    let mut gpu = apu(Some(TraceOptions { spans: true, ..TraceOptions::default() }));
    let error = try_run(&mut gpu, 3, 64).unwrap_err();
    assert!(error.to_string().contains("a run of firmware has no spans"), "{error}");
}
