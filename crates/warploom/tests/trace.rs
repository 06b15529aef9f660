//! Timelines and samples of timed launches, decoded and checked.

use std::collections::BTreeMap;
use std::ops::Range;

use warploom::trace::perfetto::{self, TrackDescriptor};
use warploom::trace::{Counter, RATE_CYCLES};
use warploom::{
    Chip, Device, Error, Launch, Report, SimOptions, Sms, Timing, Trace, TraceOptions, args, samples_csv,
};

const SPINLOCK: &str = warploom_kernels::text!("spinlock.ptx");
const REDUCE: &str = warploom_kernels::text!("reduce.ptx");

/// A lock in shared memory, taken by every 64th thread.
const SHARED_LOCK: &str = "
.version 6.3
.target sm_70
.address_size 64
.visible .entry shared_lock()
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .shared .align 4 .u32 count;
    .shared .align 64 .u32 lock;
    mov.u32 %r1, %tid.x;
    and.b32 %r1, %r1, 63;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra done;
again:
    atom.shared.cas.b32 %r2, [lock], 0, 1;
    setp.ne.s32 %p2, %r2, 0;
    @%p2 bra again;
    ld.volatile.shared.u32 %r3, [count];
    add.s32 %r4, %r3, 1;
    st.volatile.shared.u32 [count], %r4;
    st.volatile.shared.u32 [lock], 0;
done:
    ret;
}";

/// Two warps meet at an mbarrier; the second arrives late.
const MBARRIER: &str = "
.version 7.8
.target sm_80
.address_size 64
.visible .entry meet()
{
    .reg .pred %p<4>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .shared .align 8 .b64 barrier;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra ready;
    mbarrier.init.shared.b64 [barrier], 64;
ready:
    bar.sync 0;
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra arrive;
    nanosleep.u32 1000;
arrive:
    mbarrier.arrive.shared.b64 %rd1, [barrier];
again:
    mbarrier.test_wait.shared.b64 %p3, [barrier], %rd1;
    @!%p3 bra again;
    ret;
}";

fn device(chip: &str, set: &[&str], timing: Timing) -> Device {
    let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
    Device::sim_with(Chip::load(chip, &set).unwrap(), SimOptions { timing, ..SimOptions::default() })
}

fn traced(options: TraceOptions) -> Timing {
    Timing { threads: 1, trace: Some(options), ..Timing::default() }
}

/// Report, timeline and samples of the lock kernel.
struct Run {
    report: Report,
    view: View,
    trace: Trace,
    lock: u64,
}

/// Threads of two SMs take one lock repeatedly.
fn run_spinlock(timing: Timing) -> Run {
    let mut gpu = device("gtx480", &["sm.count=2"], timing);
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("spinlock_inc").unwrap();
    let (lock, counter) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let launch = Launch::grid(4).block(64);
    let report = gpu.launch(&kernel, launch, args![&lock, &counter, 2u32]).unwrap();
    assert_eq!(counter.read(&gpu).unwrap(), [512]);
    let trace = gpu.take_trace().unwrap();
    assert_eq!(gpu.take_trace(), None);
    Run { report, view: View::of(&trace.bytes), trace, lock: lock.address() }
}

fn both_sms() -> TraceOptions {
    TraceOptions { sms: Sms::All, ..TraceOptions::default() }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    /// For example `SM 0/slot 3`.
    track: String,
    depth: usize,
    name: String,
    cycles: Range<u64>,
    instructions: u64,
    at: Option<String>,
    /// The arrow that leads here, and the one that leads on.
    arrows: [Option<u64>; 2],
}

impl Slice {
    fn len(&self) -> u64 {
        self.cycles.end - self.cycles.start
    }

    fn in_slot(&self) -> bool {
        self.track.contains("/slot") && !self.track.contains("locks")
    }

    /// Whether this is an innermost slice: the state of a warp.
    fn is_state(&self) -> bool {
        self.in_slot() && !self.name.starts_with("CTA") && !self.name.starts_with("spins")
    }
}

/// A trace as a viewer shows it.
#[derive(Debug, Default)]
struct View {
    slices: Vec<Slice>,
    readings: BTreeMap<String, Vec<(u64, i64)>>,
    instants: Vec<String>,
}

impl View {
    /// Decodes a trace. Panics if it is not well-formed.
    fn of(bytes: &[u8]) -> View {
        let trace = perfetto::decode(bytes).unwrap();
        let mut view = View::default();
        let mut time = 0;
        let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut names: [BTreeMap<u64, String>; 3] = Default::default();
        for (number, packet) in trace.packet.iter().enumerate() {
            assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            assert_eq!(packet.clock_snapshot.is_some(), number == 0);
            if let Some(data) = &packet.interned_data {
                let lists =
                    [&data.event_names, &data.debug_annotation_names, &data.debug_annotation_string_values];
                for (known, new) in names.iter_mut().zip(lists) {
                    for name in new {
                        assert_eq!(known.insert(name.iid.unwrap(), name.name.clone().unwrap()), None);
                    }
                }
            }
            if let Some(TrackDescriptor { uuid, parent_uuid, name, process, .. }) = &packet.track_descriptor {
                let name = process.as_ref().map_or(name, |p| &p.process_name).clone().unwrap();
                let path =
                    parent_uuid.map_or(String::new(), |parent| format!("{}/", tracks[&parent])) + &name;
                assert_eq!(tracks.insert(uuid.unwrap(), path), None);
            }
            let Some(event) = &packet.track_event else { continue };
            time += packet.timestamp.unwrap();
            let track = event.track_uuid.unwrap();
            let stack = open.entry(track).or_default();
            match event.kind.unwrap() {
                perfetto::SLICE_BEGIN => {
                    let name =
                        event.name.clone().unwrap_or_else(|| names[0][&event.name_iid.unwrap()].clone());
                    let note = |key: &str| {
                        let is =
                            |a: &&perfetto::DebugAnnotation| a.name_iid.is_some_and(|n| names[1][&n] == key);
                        event.debug_annotations.iter().find(is)
                    };
                    let default = u64::from(name == "issued");
                    stack.push(view.slices.len());
                    view.slices.push(Slice {
                        track: tracks[&track].clone(),
                        depth: stack.len() - 1,
                        instructions: note("instructions").map_or(default, |a| a.uint_value.unwrap()),
                        at: note("at").map(|a| names[2][&a.string_value_iid.unwrap()].clone()),
                        arrows: [&event.terminating_flow_ids, &event.flow_ids]
                            .map(|ids| ids.first().copied()),
                        name,
                        cycles: time..u64::MAX,
                    });
                }
                perfetto::SLICE_END => view.slices[stack.pop().unwrap()].cycles.end = time,
                perfetto::COUNTER => {
                    let readings = view.readings.entry(tracks[&track].clone()).or_default();
                    readings.push((time, event.counter_value.unwrap()));
                }
                perfetto::INSTANT => view.instants.push(event.name.clone().unwrap()),
                kind => panic!("an event of kind {kind}"),
            }
        }
        assert!(open.values().all(Vec::is_empty), "every slice ends");
        view
    }

    /// Cycles of all warps by state.
    fn states(&self) -> BTreeMap<&str, u64> {
        let mut states = BTreeMap::new();
        for slice in self.slices.iter().filter(|s| s.is_state()) {
            *states.entry(slice.name.as_str()).or_default() += slice.len();
        }
        states
    }

    /// Checks that slices are disjoint or nested, and that the innermost slices of a slot leave no gap. Returns
    /// the cycles of all warps.
    fn check_slots(&self) -> u64 {
        let mut by_track: BTreeMap<&str, Vec<&Slice>> = BTreeMap::new();
        for slice in &self.slices {
            assert!(slice.cycles.start < slice.cycles.end, "{slice:?}");
            by_track.entry(&slice.track).or_default().push(slice);
        }
        let mut warp_cycles = 0;
        for slices in by_track.values() {
            for depth in 0..3 {
                let at_depth: Vec<_> = slices.iter().filter(|s| s.depth == depth).collect();
                assert!(at_depth.windows(2).all(|w| w[0].cycles.end <= w[1].cycles.start), "{at_depth:?}");
            }
            for warp in slices.iter().filter(|s| s.in_slot() && s.depth == 0) {
                assert!(warp.name.starts_with("CTA ("), "{warp:?}");
                let mut reached = warp.cycles.start;
                for state in slices.iter().filter(|s| s.is_state() && warp.cycles.contains(&s.cycles.start)) {
                    assert_eq!(state.cycles.start, reached, "{state:?}");
                    reached = state.cycles.end;
                }
                assert_eq!(reached, warp.cycles.end, "{warp:?}");
                warp_cycles += warp.len();
            }
        }
        warp_cycles
    }
}

#[test]
fn every_cycle_of_a_warp_is_in_one_slice() {
    let Run { report, view, trace, .. } = run_spinlock(traced(both_sms()));
    assert_eq!(trace.cut, None);
    assert_eq!(view.check_slots(), report.warp_cycles.unwrap());
    let stalls = report.stalls.as_ref().unwrap();
    let states = view.states();
    for (state, cycles) in stalls {
        let state = state.replace('_', " ");
        assert_eq!(states.get(state.as_str()).copied().unwrap_or(0), *cycles, "{state}");
    }

    let launch = &view.slices[0];
    assert_eq!((launch.name.as_str(), launch.cycles.clone()), ("spinlock_inc", 0..report.cycles));
    let mut warps: Vec<_> =
        view.slices.iter().filter(|s| s.name.starts_with("CTA")).map(|s| &s.name[..]).collect();
    warps.sort();
    assert_eq!(warps.len(), 8);
    assert_eq!(warps[..2], ["CTA (0,0,0) warp 0", "CTA (0,0,0) warp 1"]);

    // Slices name their instruction.
    let places = |name: &str| {
        let of = view.slices.iter().filter(|s| s.name == name && s.in_slot());
        of.filter_map(|s| s.at.as_deref()).map(|at| at.split(": ").nth(1).unwrap()).collect::<Vec<_>>()
    };
    assert!(places("long scoreboard").contains(&"setp.ne.s32 %p2, %r7, 0"), "{:?}", places("long scoreboard"));
    assert!(places("membar").contains(&"membar.gl"), "{:?}", places("membar"));
}

#[test]
fn counters_add_up() {
    let Run { report, view, .. } = run_spinlock(traced(both_sms()));
    let mut issued = 0;
    for sm in ["SM 0", "SM 1"] {
        let readings = |counter: Counter| &view.readings[&format!("{sm}/{}", counter.name())];
        for readings in [Counter::IssueRate, Counter::SpinningWarps, Counter::ResidentWarps].map(readings) {
            assert!(readings.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1), "{readings:?}");
            assert_eq!(readings.last().unwrap().1, 0);
        }
        // A value holds until the next one.
        for w in readings(Counter::IssueRate).windows(2) {
            issued += w[0].1 as u64 * (w[1].0 - w[0].0) / RATE_CYCLES;
        }
        assert_eq!(readings(Counter::ResidentWarps)[0], (0, 4));
        assert!(readings(Counter::SpinningWarps).iter().any(|&(_, warps)| warps > 1));
    }
    assert_eq!(issued, report.warp_insts);
    assert_eq!(view.slices.iter().map(|s| s.instructions).sum::<u64>(), report.warp_insts);
}

#[test]
fn misses_are_counted() {
    let mut gpu = device("gtx480", &["sm.count=1"], traced(TraceOptions::default()));
    let kernel = gpu.load_ptx(REDUCE).unwrap();
    let kernel = kernel.kernel(&kernel.kernel_names()[0]).unwrap();
    let (xs, out) = (gpu.zeros::<f32>(4096).unwrap(), gpu.zeros::<f32>(16).unwrap());
    gpu.launch(&kernel, Launch::grid(2).block(256), args![&xs, &out, 4096u32]).unwrap();
    let view = View::of(&gpu.take_trace().unwrap().bytes);
    let misses = &view.readings["SM 0/outstanding misses"];
    assert!(misses.iter().any(|&(_, lines)| lines > 1), "{misses:?}");
    assert_eq!(misses.last().unwrap().1, 0);
    let states = view.states();
    assert!(states["barrier"] > 0 && states["long scoreboard"] > 0, "{states:?}");
}

#[test]
fn spinning_and_locks_name_their_address() {
    let Run { report, view, lock, .. } = run_spinlock(traced(both_sms()));
    let spins: Vec<_> = view.slices.iter().filter(|s| s.name.starts_with("spins")).collect();
    assert!(!spins.is_empty());
    let name = format!("spins on {lock:#x} (buffer 0 + 0)");
    assert!(spins.iter().all(|s| s.name == name && s.depth == 1), "{spins:?}");

    // One thread holds the lock at a time, on either SM.
    let mut holds: Vec<_> = view.slices.iter().filter(|s| s.name.starts_with("holds")).collect();
    assert_eq!(holds.len() as u64, report.locks.unwrap().acquired);
    assert!(holds.iter().all(|s| s.name == format!("holds {lock:#x} (buffer 0 + 0)")), "{holds:?}");
    assert!(holds.iter().all(|s| s.track.ends_with("/locks held")), "{holds:?}");
    holds.sort_by_key(|s| s.cycles.start);
    assert!(holds.windows(2).all(|w| w[0].cycles.end <= w[1].cycles.start));

    // An arrow leads from each release to the next acquisition, on either SM.
    let mut between_sms = 0;
    for w in holds.windows(2) {
        assert_eq!(w[0].arrows[1], w[1].arrows[0], "{w:?}");
        between_sms += usize::from(w[0].arrows[1].is_some() && w[0].track[..4] != w[1].track[..4]);
    }
    let mut arrows: Vec<u64> = holds.iter().filter_map(|hold| hold.arrows[0]).collect();
    assert!(arrows.len() > holds.len() / 2 && between_sms > 0, "{} of {}", arrows.len(), holds.len());
    arrows.sort();
    arrows.dedup();
    assert_eq!(arrows.len(), holds.iter().filter(|hold| hold.arrows[0].is_some()).count());
}

#[test]
fn no_arrow_skips_an_sm_that_is_not_shown() {
    let both = run_spinlock(traced(both_sms())).view;
    let one = run_spinlock(traced(TraceOptions::default())).view;
    let of = |view: &View| -> Vec<_> {
        let holds = view.slices.iter().filter(|s| s.name.starts_with("holds") && s.track.starts_with("SM 0"));
        holds.map(|s| (s.cycles.clone(), s.arrows[0])).collect()
    };
    let (all, shown) = (of(&both), of(&one));
    assert_eq!(all.len(), shown.len());
    let ends: Vec<_> =
        both.slices.iter().filter(|s| s.track.starts_with("SM 1")).filter_map(|s| s.arrows[1]).collect();
    for ((cycles, arrow), (same, left)) in all.iter().zip(&shown) {
        let stays = arrow.filter(|arrow| !ends.contains(arrow));
        assert_eq!((cycles, stays.is_some()), (same, left.is_some()));
    }
}

#[test]
fn locks_in_shared_memory_are_seen() {
    for chip in ["h200", "apu"] {
        let mut gpu = device(chip, &["sm.count=1"], traced(TraceOptions::default()));
        let kernel = gpu.load_ptx(SHARED_LOCK).unwrap().kernel("shared_lock").unwrap();
        let report = gpu.launch(&kernel, Launch::grid(2).block(256), args![]).unwrap();
        let view = View::of(&gpu.take_trace().unwrap().bytes);
        assert_eq!(view.check_slots(), report.warp_cycles.unwrap());
        let named = |name: &str| view.slices.iter().filter(|s| s.name == name).count();
        assert!(named("spins on shared 0x40") > 0);
        // Each CTA has its own lock at this address.
        assert_eq!(named("holds shared 0x40"), 8);
    }
}

#[test]
fn mbarriers_are_spun_on() {
    let mut gpu = device("h200", &["sm.count=1"], traced(TraceOptions::default()));
    let kernel = gpu.load_ptx(MBARRIER).unwrap().kernel("meet").unwrap();
    gpu.launch(&kernel, Launch::grid(1).block(64), args![]).unwrap();
    let view = View::of(&gpu.take_trace().unwrap().bytes);
    view.check_slots();
    let of_slot = |slot: &str, name: &str| view.slices.iter().any(|s| s.track == slot && s.name == name);
    assert!(of_slot("SM 0/slot 0", "spins on shared 0x0"), "{:?}", view.slices);
    assert!(of_slot("SM 0/slot 1", "sleeping"), "{:?}", view.slices);
}

#[test]
fn warps_that_back_off_are_seen() {
    let timing = Timing { bows: warploom::Bows::on(), ..traced(both_sms()) };
    let Run { report, view, .. } = run_spinlock(timing);
    assert_eq!(view.check_slots(), report.warp_cycles.unwrap());
    let slices = view.slices.iter().filter(|slice| slice.name == "backed off");
    let cycles = slices.map(|slice| slice.cycles.end - slice.cycles.start).sum::<u64>();
    assert_eq!((cycles, cycles > 0), (report.stalls.unwrap()["backed_off"], true));
}

#[test]
fn the_size_is_bounded() {
    let whole = run_spinlock(traced(both_sms()));
    for max_bytes in [0, 100, 500, 1000, 5_000, 20_000, whole.trace.bytes.len() as u64 - 1] {
        let Run { report, view, trace, .. } = run_spinlock(traced(TraceOptions { max_bytes, ..both_sms() }));
        assert!(trace.bytes.len() as u64 <= max_bytes, "{} > {max_bytes}", trace.bytes.len());
        let cut = trace.cut.expect("the trace was cut");
        assert!(cut < report.cycles);
        view.check_slots();
        assert!(view.slices.iter().all(|s| s.cycles.end <= cut));
        if max_bytes >= 5000 {
            assert!(trace.bytes.len() as u64 > max_bytes / 2, "{} of {max_bytes}", trace.bytes.len());
            assert_eq!(view.instants, [format!("cut at {max_bytes} bytes")]);
        }
    }
    assert_eq!(whole.view.instants.len(), 0);
}

#[test]
fn sms_and_cycles_are_chosen() {
    let whole = run_spinlock(traced(both_sms()));
    let cycles = 700..1300;
    let options = TraceOptions { sms: Sms::Only(vec![1]), cycles: cycles.clone(), ..TraceOptions::default() };
    let part = run_spinlock(traced(options));
    assert_eq!(part.trace.cut, None);
    part.view.check_slots();

    // The same slices, except for what lies outside the window.
    let clipped = |slice: &Slice| {
        let inside = slice.cycles.start.max(cycles.start)..slice.cycles.end.min(cycles.end);
        let shown = slice.track == "launch" || slice.track.starts_with("SM 1/");
        // A stalled warp names only instructions that are in the trace.
        (shown && inside.start < inside.end)
            .then(|| (slice.track.clone(), slice.depth, inside, slice.name.clone()))
    };
    let slices = |view: &View| {
        let mut slices: Vec<_> = view.slices.iter().filter_map(clipped).collect();
        slices.sort_by_key(|s| (s.0.clone(), s.1, s.2.start, s.2.end, s.3.clone()));
        slices
    };
    assert_eq!(slices(&part.view).len(), part.view.slices.len());
    assert_eq!(slices(&part.view), slices(&whole.view));
    assert_eq!(part.view.readings["SM 1/resident warps"][0], (700, 4));
    assert!(part.view.readings.keys().all(|track| track.starts_with("SM 1/")));

    let late = TraceOptions { cycles: 1 << 40..1 << 41, ..both_sms() };
    assert_eq!(run_spinlock(traced(late)).view.slices, []);

    let mut gpu =
        device("gtx480", &[], traced(TraceOptions { sms: Sms::Only(vec![15]), ..TraceOptions::default() }));
    let kernel = gpu.load_ptx(SHARED_LOCK).unwrap().kernel("shared_lock").unwrap();
    let error = gpu.launch(&kernel, Launch::grid(1), args![]).unwrap_err().to_string();
    assert!(error.contains("SM 15 cannot be traced: the chip has 15, numbered from 0"), "{error}");
}

#[test]
fn traces_are_the_same_on_any_number_of_threads_and_change_nothing() {
    let one = run_spinlock(traced(both_sms()));
    let two = run_spinlock(Timing { threads: 2, ..traced(both_sms()) });
    assert_eq!(one.trace.bytes, two.trace.bytes);

    let mut gpu = device("gtx480", &["sm.count=2"], Timing { threads: 1, ..Timing::default() });
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("spinlock_inc").unwrap();
    let (lock, counter) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let plain = gpu.launch(&kernel, Launch::grid(4).block(64), args![&lock, &counter, 2u32]).unwrap();
    assert_eq!(gpu.take_trace(), None);
    assert_eq!((plain.cycles, &plain.stalls), (one.report.cycles, &one.report.stalls));
}

#[test]
fn a_launch_that_hangs_is_traced_to_its_end() {
    let mut gpu = device("gtx480", &["sm.count=1"], traced(TraceOptions::default()));
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("naivelock").unwrap();
    let (lock, counter) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
    for _ in 0..2 {
        lock.write(&mut gpu, &[0]).unwrap();
        let launch = Launch::grid(1).block(64).max_cycles(5000);
        let error = gpu.launch(&kernel, launch, args![&lock, &counter]).unwrap_err();
        let Error::Hang { report, .. } = &error else { panic!("{error}") };
        assert_eq!(report.stalls.as_ref().unwrap().values().sum::<u64>(), report.warp_cycles.unwrap());
        let view = View::of(&gpu.take_trace().unwrap().bytes);
        assert_eq!(view.check_slots(), report.warp_cycles.unwrap());
        let spins: Vec<_> = view.slices.iter().filter(|s| s.name.starts_with("spins")).collect();
        assert_eq!(spins.len(), 2, "{spins:?}");
        assert!(spins.iter().all(|s| s.cycles.end == report.cycles), "{spins:?}");
        let holds: Vec<_> = view.slices.iter().filter(|s| s.name.starts_with("holds")).collect();
        assert_eq!((holds.len(), holds[0].cycles.end), (1, report.cycles));
    }
}

#[test]
fn a_launch_that_faults_is_traced_to_its_end() {
    let mut gpu = device("gtx480", &["sm.count=1"], traced(TraceOptions::default()));
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("spinlock_inc").unwrap();
    let lock = gpu.zeros::<u32>(1).unwrap();
    let error = gpu.launch(&kernel, Launch::grid(2).block(64), args![&lock, 0u64, 1u32]).unwrap_err();
    let Error::Fault { report, .. } = &error else { panic!("{error}") };
    assert_eq!(report.stalls.as_ref().unwrap().values().sum::<u64>(), report.warp_cycles.unwrap());
    let view = View::of(&gpu.take_trace().unwrap().bytes);
    assert_eq!(view.check_slots(), report.warp_cycles.unwrap());
    assert!(view.slices.iter().any(|s| s.name.starts_with("holds")));
}

#[test]
fn samples_add_up_to_the_totals() {
    let mut gpu = device("gtx480", &["sm.count=2"], Timing { sample_cycles: Some(100), ..Timing::default() });
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("spinlock_inc").unwrap();
    let (lock, counter) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
    // Cache and DRAM counters run on from launch to launch; samples start from zero.
    for _ in 0..2 {
        let report = gpu.launch(&kernel, Launch::grid(4).block(64), args![&lock, &counter, 2u32]).unwrap();
        let samples = gpu.take_samples();
        assert!(samples.len() as u64 >= report.cycles / 200, "{} samples", samples.len());
        assert!(samples.windows(2).all(|w| w[0].cycle < w[1].cycle));
        assert!(samples.iter().any(|s| s.spinning_warps > 0 && s.resident_warps == 8));

        let csv = samples_csv(&samples);
        let mut lines = csv.lines();
        let names: Vec<_> = lines.next().unwrap().split(',').collect();
        let rows: Vec<Vec<f64>> =
            lines.map(|line| line.split(',').map(|v| v.parse().unwrap()).collect()).collect();
        assert_eq!(rows.len(), samples.len());
        let column = |name: &str| names.iter().position(|n| *n == name).unwrap();
        let sum = |name: &str| rows.iter().map(|row| row[column(name)]).sum::<f64>() as u64;
        let locks = report.locks.as_ref().unwrap();
        let (l1, l2) = (report.l1.as_ref().unwrap(), report.l2.as_ref().unwrap());
        assert_eq!(sum("cycles"), report.cycles);
        assert_eq!(rows.last().unwrap()[column("cycle")] as u64, report.cycles);
        assert_eq!(sum("warp_instructions"), report.warp_insts);
        assert_eq!((sum("l1_hits"), sum("l1_misses")), (l1["hits"], l1["misses"]));
        assert_eq!((sum("l2_hits"), sum("l2_misses")), (l2["hits"], l2["misses"]));
        assert_eq!(sum("dram_bytes"), report.dram.as_ref().unwrap()["bytes"]);
        assert_eq!(sum("locks_acquired"), locks.acquired);
        assert_eq!(sum("locks_failed"), locks.failed_intra + locks.failed_inter);
    }
    assert_eq!(gpu.take_samples(), []);
}
