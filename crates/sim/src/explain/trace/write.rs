//! Writes timelines as a Perfetto trace, or as spans.
//!
//! All packets are one sequence in time order. Each packet's timestamp is the difference to the previous one, names are
//! interned, and a trace that would grow too large is cut at the same cycle on all tracks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::ops::Range;

use prost::Message;
use rustc_hash::FxHashMap;
use warploom_isa::{Kernel, Op, Pc, Space};

use crate::exec::fault::{Place, coordinates};
use crate::exec::launch::Launch;
use crate::exec::memory::store::Memory;
use crate::explain::profile::category;
use crate::explain::trace::hand_offs::hand_offs;
use crate::explain::trace::perfetto::*;
use crate::explain::trace::spans::spans;
use crate::explain::trace::timeline::{Hold, Mark, Run};
use crate::explain::trace::{Counter, Timeline, Trace, TraceOptions};
use crate::kit::ids::WarpSlot;
use crate::time::aggregator::events::{Event, Events, What};
use crate::time::sm::probe::{State, WarpEvent, Word};

/// A launch, or a run of firmware, that was traced.
pub(crate) struct Recording<'a> {
    /// In a run of firmware, the first of the kernels that it can start.
    pub(crate) launch: &'a Launch<'a>,
    /// All kernels, by number.
    pub(crate) kernels: Vec<&'a Kernel>,
    /// What the aggregator did, in a run of firmware.
    pub(crate) events: Option<Events>,
    /// For the names of the words that warps wait for.
    pub(crate) memory: &'a Memory,
    /// The launch's duration.
    pub(crate) cycles: u64,
    pub(crate) policy: &'a str,
}

/// The trace of a launch.
pub(crate) fn write(
    recording: &Recording<'_>,
    options: &TraceOptions,
    mut timelines: Vec<Timeline>,
) -> Trace {
    timelines.iter_mut().for_each(Timeline::finish);
    let mut trace = Trace::default();
    if options.perfetto {
        trace = write_perfetto(recording, options, &timelines);
    }
    if options.spans {
        let cut = timelines.iter().filter_map(Timeline::cut).chain(trace.cut).min();
        let end = options.cycles.end.min(recording.cycles).min(cut.unwrap_or(u64::MAX));
        (trace.spans, trace.cut) = (Some(spans(recording, options, &timelines, end)), cut);
    }
    trace
}

fn write_perfetto(recording: &Recording<'_>, options: &TraceOptions, timelines: &[Timeline]) -> Trace {
    let mut writer = Writer::new(recording, options.max_bytes);
    let mut streams = streams(recording, options, timelines);
    let full = recording.events.iter().filter_map(|events| events.cut);
    let known = timelines.iter().filter_map(Timeline::cut).chain(full).min();
    let mut cut = None;
    let mut queue: BinaryHeap<_> =
        streams.iter_mut().enumerate().filter_map(|(at, s)| Some(Reverse((s.next_time()?, at)))).collect();
    // What was written for the current cycle, to be removed if not all of it fits.
    let (mut cycle, mut opened) = (writer.mark(), Vec::new());
    while let Some(Reverse((time, at))) = queue.pop() {
        if let Some(end) = known.filter(|&end| end <= time) {
            cut = Some(end);
            break;
        }
        if time > writer.now {
            cycle = writer.mark();
            opened.clear();
        }
        let stream = &mut streams[at];
        let Some((_, point)) = stream.points.next() else { continue };
        writer.point(stream.track, time, point);
        stream.depth += point.opens();
        opened.push((at, point.opens()));
        if !writer.fits() {
            writer.back_to(cycle);
            opened.iter().for_each(|&(at, opens)| streams[at].depth -= opens);
            cut = Some(time);
            break;
        }
        let stream = &mut streams[at];
        queue.extend(stream.next_time().map(|time| Reverse((time, at))));
    }
    if let Some(end) = cut {
        writer.close(&streams, end);
    }
    Trace { bytes: writer.bytes, cut, spans: None }
}

/// A track of the trace. The first number is that of the SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Track {
    Launch,
    Sm(u32),
    Counter(u32, usize),
    Slot(u32, WarpSlot),
    /// Locks of a slot may overlap in time, so they need several rows.
    Locks(u32, WarpSlot, usize),
    Aggregator,
    Firmware,
    Dispatcher,
}

/// An event on a track.
#[derive(Clone, Copy, Debug)]
enum Point {
    Launch,
    /// A warp enters the slot.
    Warp(WarpEvent),
    Spin(Word),
    /// A slice, with the instruction it is about and the number of its kernel.
    Run(Run, Option<(u16, Pc)>),
    /// A thread takes a lock. Arrows lead from the hold before and to the one after it.
    Hold {
        word: Word,
        lane: u8,
        arrows: Arrows,
    },
    /// The innermost open slice ends.
    End,
    /// A counter's value.
    Value(u64),
    /// The aggregator's event of this number begins a slice, or is a mark.
    Begin(usize),
    Happens(usize),
}

/// The arrows of a hold, by number; 0 stands for none.
#[derive(Clone, Copy, Debug, Default)]
struct Arrows {
    from_last: u64,
    to_next: u64,
}

impl Point {
    /// The change in the number of open slices.
    fn opens(self) -> i64 {
        match self {
            Point::Value(_) | Point::Happens(_) => 0,
            Point::End => -1,
            _ => 1,
        }
    }
}

/// The remaining events of a track, in time order.
struct Stream<'a> {
    track: Track,
    points: Peekable<Box<dyn Iterator<Item = (u64, Point)> + 'a>>,
    /// Open slices.
    depth: i64,
}

impl Stream<'_> {
    fn next_time(&mut self) -> Option<u64> {
        self.points.peek().map(|&(time, _)| time)
    }
}

fn streams<'a>(
    recording: &Recording<'a>,
    options: &TraceOptions,
    timelines: &'a [Timeline],
) -> Vec<Stream<'a>> {
    let mut streams = Vec::new();
    let mut stream = |track, points: Box<dyn Iterator<Item = (u64, Point)> + 'a>| {
        streams.push(Stream { track, points: points.peekable(), depth: 0 });
    };
    let (from, until) = (options.cycles.start, options.cycles.end.min(recording.cycles));
    if from < until {
        stream(Track::Launch, Box::new([(from, Point::Launch), (until, Point::End)].into_iter()));
        for (track, points) in aggregator_points(recording, from..until) {
            stream(track, Box::new(points.into_iter()));
        }
    }
    let mut arrows: Vec<Vec<Arrows>> =
        timelines.iter().map(|timeline| vec![Arrows::default(); timeline.holds().len()]).collect();
    for (number, passed) in (1..).zip(hand_offs(timelines)) {
        arrows[passed.from.0][passed.from.1].to_next = number;
        arrows[passed.to.0][passed.to.1].from_last = number;
    }
    for (timeline, arrows) in timelines.iter().zip(arrows).filter(|(timeline, _)| timeline.is_shown()) {
        let sm = timeline.sm();
        for (at, &counter) in Counter::ALL.iter().enumerate() {
            let readings = timeline.readings(counter).iter();
            stream(Track::Counter(sm, at), Box::new(readings.map(|&(at, value)| (at, Point::Value(value)))));
        }
        for (slot, marks) in timeline.marks() {
            let (kernels, mut kernel) = (recording.kernels.clone(), 0);
            let points = (0..marks.len()).flat_map(move |at| {
                if let Mark::Enter { warp, .. } = marks[at] {
                    kernel = warp.kernel;
                }
                points(kernel, kernels[kernel as usize], marks, at)
            });
            stream(Track::Slot(sm, slot), Box::new(points));
        }
        for (slot, row, holds) in rows(timeline.holds()) {
            let points: Vec<_> = holds
                .into_iter()
                .flat_map(|number| {
                    let Hold { word, lane, from, until, .. } = timeline.holds()[number];
                    [(from, Point::Hold { word, lane, arrows: arrows[number] }), (until, Point::End)]
                })
                .collect();
            stream(Track::Locks(sm, slot, row), Box::new(points.into_iter()));
        }
    }
    streams
}

/// The events of the aggregator's tracks. Spans of firmware are cut to the cycles that are shown.
fn aggregator_points(recording: &Recording<'_>, shown: Range<u64>) -> Vec<(Track, Vec<(u64, Point)>)> {
    let Some(events) = &recording.events else { return Vec::new() };
    let (mut firmware, mut dispatcher, mut open) = (Vec::new(), Vec::new(), Vec::new());
    // Ends that never came are those of a run that was stopped.
    let missing = Event { at: u64::MAX, what: What::End };
    let unended = |list: &[Event]| {
        let change = |event: &Event| match event.what {
            What::Begin(_) => 1,
            What::End => -1,
            _ => 0,
        };
        list.iter().map(change).sum::<i64>().max(0) as usize
    };
    let events = events.list.iter().chain(std::iter::repeat_n(&missing, unended(&events.list)));
    for (number, event) in events.enumerate() {
        let at = event.at.clamp(shown.start, shown.end);
        match event.what {
            What::Begin(_) => {
                open.push((firmware.len(), event.at));
                firmware.push((at, Point::Begin(number)));
            }
            What::End => {
                let Some((begin, from)) = open.pop() else { continue };
                if event.at < shown.start || from >= shown.end {
                    // Nothing of it is shown, nor of what is inside it.
                    firmware.truncate(begin);
                } else {
                    firmware.push((at, Point::End));
                }
            }
            _ if !shown.contains(&event.at) => {}
            What::Note(_) => firmware.push((at, Point::Happens(number))),
            _ => dispatcher.push((at, Point::Happens(number))),
        }
    }
    // Notices of yields arrive while firmware is further on.
    dispatcher.sort_by_key(|&(at, _)| at);
    vec![(Track::Firmware, firmware), (Track::Dispatcher, dispatcher)]
}

/// The events for one mark of a slot, whose warp runs this kernel.
fn points(
    number: u16,
    kernel: &Kernel,
    marks: &[Mark],
    at: usize,
) -> impl Iterator<Item = (u64, Point)> + use<> {
    let [first, second] = match marks[at] {
        Mark::Enter { at, warp } => [Some((at, Point::Warp(warp))), None],
        Mark::Spin { at, on } => [Some((at, Point::Spin(on))), None],
        Mark::Slice { from, until, run } => {
            let run = Point::Run(run, instruction(kernel, marks, at).map(|pc| (number, pc)));
            [Some((from, run)), Some((until, Point::End))]
        }
        Mark::Unspin { at } | Mark::Leave { at } => [Some((at, Point::End)), None],
    };
    first.into_iter().chain(second)
}

/// The instruction that a slice is about: the one that issued, waits to issue, or made the warp wait.
pub(super) fn instruction(kernel: &Kernel, marks: &[Mark], at: usize) -> Option<Pc> {
    let issued = |mark: &Mark| match mark {
        Mark::Slice { run, .. } if run.instructions > 0 => Some(run.pcs),
        _ => None,
    };
    let stays = |mark: &&Mark| !matches!(mark, Mark::Enter { .. } | Mark::Leave { .. });
    let next = || marks[at..].iter().take_while(stays).find_map(issued).map(|[first, _]| first);
    let last = || marks[..at].iter().rev().take_while(stays).find_map(issued).map(|[_, last]| last);
    let Mark::Slice { run, .. } = &marks[at] else { return None };
    match run.state {
        State::Barrier | State::WarpSync | State::Sleeping => last(),
        // A fence waits before it issues, an acquire after.
        State::Membar => {
            let fences = |pc: &Pc| matches!(kernel.code[pc.index()].op, Op::Fence(..) | Op::CpAsyncWait);
            next().filter(fences).or_else(last)
        }
        State::Drain => None,
        _ => next(),
    }
}

/// Distributes the locks held, by number, over as many rows as each slot needs. `holds` must be sorted by slot and
/// time.
fn rows(holds: &[Hold]) -> Vec<(WarpSlot, usize, Vec<usize>)> {
    let mut rows = Vec::new();
    let mut number = 0;
    for of_slot in holds.chunk_by(|a, b| a.slot == b.slot) {
        let mut taken: Vec<Vec<usize>> = Vec::new();
        for hold in of_slot {
            let is_free =
                |row: &&mut Vec<usize>| row.last().is_none_or(|&last| holds[last].until <= hold.from);
            match taken.iter_mut().find(is_free) {
                Some(row) => row.push(number),
                None => taken.push(vec![number]),
            }
            number += 1;
        }
        rows.extend(taken.into_iter().enumerate().map(|(row, holds)| (of_slot[0].slot, row, holds)));
    }
    rows
}

/// The id of the packet sequence.
const SEQUENCE: u32 = 1;

/// Most bytes of the end of a slice, apart from the timestamp of the first of many.
const END_BYTES: u64 = 16;

/// Bytes reserved for the mark of a cut and for that timestamp.
const CUT_BYTES: u64 = 128;

/// Names of annotations; their interning ids count from 1.
const ANNOTATIONS: [&str; 3] = ["at", "instructions", "lane"];
const AT: u64 = 1;
const INSTRUCTIONS: u64 = 2;
const LANE: u64 = 3;

struct Writer<'a> {
    recording: &'a Recording<'a>,
    bytes: Vec<u8>,
    limit: u64,
    /// Open slices.
    open: i64,
    /// The time of the last packet.
    now: u64,
    tracks: FxHashMap<Track, u64>,
    /// Interning ids of names that are not known in advance.
    names: FxHashMap<String, u64>,
    /// The number of each kernel's first instruction among those of all.
    code_starts: Vec<usize>,
    /// Instructions whose place is interned.
    places: Vec<bool>,
}

impl<'a> Writer<'a> {
    fn new(recording: &'a Recording<'a>, limit: u64) -> Writer<'a> {
        let mut code = 0;
        let code_starts = recording.kernels.iter().map(|kernel| {
            code += kernel.code.len();
            code - kernel.code.len()
        });
        let code_starts = code_starts.collect();
        let mut writer = Writer {
            recording,
            bytes: Vec::new(),
            limit,
            open: 0,
            now: 0,
            tracks: FxHashMap::default(),
            names: FxHashMap::default(),
            code_starts,
            places: vec![false; code],
        };
        writer.begin();
        writer
    }

    /// Whether what is written and what must follow are within the limit.
    fn fits(&self) -> bool {
        self.bytes.len() as u64 + self.open as u64 * END_BYTES + CUT_BYTES <= self.limit
    }

    /// The current state, for [`Writer::back_to`].
    fn mark(&self) -> (usize, u64, i64) {
        (self.bytes.len(), self.now, self.open)
    }

    /// Removes what was written since `mark`. Interned names may be lost with it, so nothing that uses them may follow.
    fn back_to(&mut self, (bytes, now, open): (usize, u64, i64)) {
        self.bytes.truncate(bytes);
        (self.now, self.open) = (now, open);
    }

    /// Marks the cut and ends all open slices there.
    fn close(&mut self, streams: &[Stream<'_>], end: u64) {
        if self.open == 0 {
            // There was no room for any slice, perhaps not even for the clock.
            self.bytes.truncate(if self.bytes.len() as u64 > self.limit { 0 } else { self.bytes.len() });
            return;
        }
        let launch = self.track(Track::Launch);
        let name = format!("cut at {} bytes", self.limit);
        self.event(
            launch,
            end,
            TrackEvent { kind: Some(INSTANT), name: Some(name), ..Default::default() },
            None,
        );
        for stream in streams {
            for _ in 0..stream.depth {
                self.point(stream.track, end, Point::End);
            }
        }
    }

    fn packet(&mut self, packet: TracePacket) {
        // Field 1 of the trace, with a length.
        self.bytes.push(1 << 3 | 2);
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        packet.encode_length_delimited(&mut self.bytes).expect("a vector grows");
    }

    fn event(&mut self, track: u64, time: u64, event: TrackEvent, interned_data: Option<InternedData>) {
        self.packet(TracePacket {
            timestamp: Some(time - self.now),
            track_event: Some(TrackEvent { track_uuid: Some(track), ..event }),
            interned_data,
            ..TracePacket::default()
        });
        self.now = time;
    }

    /// Writes the clock and the names that every trace needs.
    fn begin(&mut self) {
        let clock = |id, is_incremental| Clock { clock_id: Some(id), timestamp: Some(0), is_incremental };
        let states = (1..).zip(state_names()).map(|(iid, name)| interned(iid, &name));
        let annotations = (1..).zip(ANNOTATIONS).map(|(iid, name)| interned(iid, name));
        self.packet(TracePacket {
            sequence_flags: Some(SEQUENCE_STARTS),
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(CLOCK_BOOTTIME, None), clock(CLOCK_INCREMENTAL, Some(true))],
                primary_trace_clock: Some(CLOCK_BOOTTIME),
            }),
            trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: Some(CLOCK_INCREMENTAL) }),
            interned_data: Some(InternedData {
                event_names: states.collect(),
                debug_annotation_names: annotations.collect(),
                ..InternedData::default()
            }),
            ..TracePacket::default()
        });
    }

    fn point(&mut self, track: Track, time: u64, point: Point) {
        let track = self.track(track);
        let mut event = TrackEvent { kind: Some(SLICE_BEGIN), ..TrackEvent::default() };
        let mut new = InternedData::default();
        match point {
            Point::Launch => {
                event.name = Some(match self.recording.events {
                    Some(_) => "firmware".to_string(),
                    None => self.recording.launch.kernel.name.clone(),
                });
                event.debug_annotations = self.about_launch();
            }
            Point::Warp(WarpEvent { kernel, cta, warp }) => {
                event.name = Some(match self.recording.events {
                    Some(_) => format!("{} CTA {cta} warp {warp}", self.kernel_name(kernel)),
                    None => {
                        format!("CTA {} warp {warp}", coordinates(self.recording.launch.shape.cta(cta)))
                    }
                });
            }
            Point::Begin(number) => event.name_iid = Some(self.event_name(number, &mut new)),
            Point::Happens(number) => {
                event.kind = Some(INSTANT);
                event.name_iid = Some(self.event_name(number, &mut new));
            }
            Point::Spin(word) => event.name_iid = Some(self.word("spins on", word, &mut new)),
            Point::Run(run, pc) => {
                event.name_iid = Some(state_number(run) as u64 + 1);
                event.debug_annotations.extend(pc.map(|(kernel, pc)| self.place(kernel, pc, &mut new)));
                if run.instructions > 1 {
                    event.debug_annotations.push(count(INSTRUCTIONS, run.instructions as u64));
                }
            }
            Point::Hold { word, lane, arrows } => {
                event.name_iid = Some(self.word("holds", word, &mut new));
                event.debug_annotations.push(count(LANE, lane as u64));
                event.flow_ids.extend(Some(arrows.to_next).filter(|&arrow| arrow > 0));
                event.terminating_flow_ids.extend(Some(arrows.from_last).filter(|&arrow| arrow > 0));
            }
            Point::End => event.kind = Some(SLICE_END),
            Point::Value(value) => {
                event.kind = Some(COUNTER);
                event.counter_value = Some(value as i64);
            }
        }
        self.open += point.opens();
        self.event(track, time, event, (new != InternedData::default()).then_some(new));
    }

    /// The id of a track; writes its descriptor before its first use.
    fn track(&mut self, track: Track) -> u64 {
        if let Some(&uuid) = self.tracks.get(&track) {
            return uuid;
        }
        let mut of = TrackDescriptor::default();
        let mut child = |writer: &mut Self, parent, name: String, rank: usize| {
            of.parent_uuid = Some(writer.track(parent));
            of.name = Some(name);
            of.sibling_order_rank = Some(rank as i32);
        };
        match track {
            Track::Launch => of.name = Some("launch".to_string()),
            Track::Sm(sm) => {
                let name = Some(format!("SM {sm}"));
                of.process = Some(ProcessDescriptor { pid: Some(sm as i32 + 1), process_name: name });
                of.child_ordering = Some(ORDER_EXPLICIT);
            }
            Track::Counter(sm, at) => {
                let counter = Counter::ALL[at];
                child(self, Track::Sm(sm), counter.name().to_string(), at);
                of.counter = Some(CounterDescriptor { unit_name: Some(counter.unit()) });
            }
            Track::Slot(sm, slot) => {
                child(self, Track::Sm(sm), format!("slot {}", slot.0), Counter::ALL.len() + slot.index());
            }
            Track::Locks(sm, slot, row) => {
                child(self, Track::Slot(sm, slot), "locks held".to_string(), row);
            }
            Track::Aggregator => {
                let pid = self.recording.launch.chip.sm.count as i32 + 1;
                let name = Some("aggregator".to_string());
                of.process = Some(ProcessDescriptor { pid: Some(pid), process_name: name });
                of.child_ordering = Some(ORDER_EXPLICIT);
            }
            Track::Firmware => child(self, Track::Aggregator, "firmware".to_string(), 0),
            Track::Dispatcher => child(self, Track::Aggregator, "dispatcher".to_string(), 1),
        }
        let uuid = self.tracks.len() as u64 + 1;
        self.tracks.insert(track, uuid);
        self.packet(TracePacket {
            track_descriptor: Some(TrackDescriptor { uuid: Some(uuid), ..of }),
            ..TracePacket::default()
        });
        uuid
    }

    /// Annotations that describe the launch and the unit of time.
    fn about_launch(&self) -> Vec<DebugAnnotation> {
        let Launch { chip, shape, .. } = self.recording.launch;
        let [gx, gy, gz] = shape.grid;
        let [bx, by, bz] = shape.block;
        let say = |name: &str, value: String| DebugAnnotation {
            name: Some(name.to_string()),
            string_value: Some(value),
            ..DebugAnnotation::default()
        };
        let of_run = match self.recording.events {
            Some(_) => {
                let names: Vec<&str> = self.recording.kernels.iter().map(|kernel| &*kernel.name).collect();
                vec![say("kernels", names.join(", "))]
            }
            None => {
                vec![say("grid", format!("{gx}x{gy}x{gz}")), say("block", format!("{bx}x{by}x{bz}"))]
            }
        };
        let clock = format!("1 ns stands for 1 core cycle (at {} MHz)", chip.clock.core_mhz);
        [say("chip", chip.name.clone()), say("policy", self.recording.policy.to_string())]
            .into_iter()
            .chain(of_run)
            .chain([say("time", clock)])
            .collect()
    }

    fn kernel_name(&self, kernel: u16) -> &'a str {
        let recording = self.recording;
        &recording.kernels[kernel as usize].name
    }

    /// The interning id of the name of an event of the aggregator.
    fn event_name(&mut self, number: usize, new: &mut InternedData) -> u64 {
        let recording = self.recording;
        let event = recording.events.as_ref().and_then(|events| events.list.get(number));
        let name = match event.map(|event| &event.what) {
            Some(What::Begin(name) | What::Note(name)) => name.clone(),
            Some(&What::Start { kernel, ctas: 1 }) => format!("start {}, 1 CTA", self.kernel_name(kernel)),
            Some(&What::Start { kernel, ctas }) => {
                format!("start {}, {ctas} CTAs", self.kernel_name(kernel))
            }
            Some(&What::Restart { kernel, cu }) => format!("restart {} on SM {cu}", self.kernel_name(kernel)),
            Some(&What::Yield { kernel, cu }) => format!("{} yielded on SM {cu}", self.kernel_name(kernel)),
            Some(What::End) | None => String::new(),
        };
        self.name(name, new)
    }

    /// The interning id of `what` followed by the name of a word in memory.
    fn word(&mut self, what: &str, word: Word, new: &mut InternedData) -> u64 {
        let Word { space, address } = word;
        let name = match self.recording.memory.name(address).filter(|_| space == Space::Global) {
            Some((name, offset)) => format!("{what} {address:#x} ({name} + {offset})"),
            None if space == Space::Shared => format!("{what} shared {address:#x}"),
            None => format!("{what} {address:#x}"),
        };
        self.name(name, new)
    }

    /// The interning id of a name.
    fn name(&mut self, name: String, new: &mut InternedData) -> u64 {
        let next = STATES as u64 + self.names.len() as u64 + 1;
        *self.names.entry(name).or_insert_with_key(|name| {
            new.event_names.push(interned(next, name));
            next
        })
    }

    /// An annotation with an instruction's place.
    fn place(&mut self, kernel: u16, pc: Pc, new: &mut InternedData) -> DebugAnnotation {
        let number = self.code_starts[kernel as usize] + pc.index();
        let iid = number as u64 + 1;
        if !std::mem::replace(&mut self.places[number], true) {
            let place = Place::of(self.recording.kernels[kernel as usize], pc).to_string();
            new.debug_annotation_string_values.push(interned(iid, &place));
        }
        DebugAnnotation { name_iid: Some(AT), string_value_iid: Some(iid), ..DebugAnnotation::default() }
    }
}

fn interned(iid: u64, name: &str) -> InternedName {
    InternedName { iid: Some(iid), name: Some(name.to_string()) }
}

fn count(name: u64, value: u64) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(name), uint_value: Some(value), ..DebugAnnotation::default() }
}

/// States in the view: those of reports, and one more. A ready warp is not selected, or its unit is busy.
const STATES: usize = State::COUNT + 1;

pub(super) fn state_names() -> impl Iterator<Item = String> {
    (0..STATES).map(|state| category(state).replace('_', " "))
}

/// The number of a run's state among [`state_names`].
pub(super) fn state_number(run: Run) -> usize {
    if run.unit_busy { State::COUNT } else { run.state as usize }
}
