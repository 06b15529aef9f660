//! Records what one SM does, for the trace.

use std::ops::Range;

use rustc_hash::FxHashMap;
use warploom_isa::{Pc, Space};

use crate::explain::trace::TraceOptions;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::Issue;
use crate::time::sm::probe::{CtaEvent, Observer, State, WarpEvent, Word};

/// Length of the intervals of [`Counter::IssueRate`].
pub const RATE_CYCLES: u64 = 100;

/// Least size of a slice in a trace: its begin and its end.
const SLICE_BYTES: u64 = 26;

/// Least size of a counter's reading in a trace.
const READING_BYTES: u64 = 14;

/// A counter track of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Warp instructions issued in every [`RATE_CYCLES`] cycles.
    IssueRate,
    /// Lines that the L1 waits for.
    OutstandingMisses,
    /// Warps in spin loops.
    SpinningWarps,
    /// Warps whose CTA is on the SM.
    ResidentWarps,
}

impl Counter {
    /// From top to bottom of the view.
    pub(super) const ALL: [Counter; 4] =
        [Counter::IssueRate, Counter::OutstandingMisses, Counter::SpinningWarps, Counter::ResidentWarps];

    /// The name of its track.
    pub const fn name(self) -> &'static str {
        match self {
            Counter::IssueRate => "issue rate",
            Counter::OutstandingMisses => "outstanding misses",
            Counter::SpinningWarps => "spinning warps",
            Counter::ResidentWarps => "resident warps",
        }
    }

    /// The unit that the viewer shows.
    pub(super) fn unit(self) -> String {
        match self {
            Counter::IssueRate => format!("instructions in {RATE_CYCLES} cycles"),
            Counter::OutstandingMisses => "lines".to_string(),
            Counter::SpinningWarps | Counter::ResidentWarps => "warps".to_string(),
        }
    }
}

/// An event on the track of a slot. Times are in cycles since the launch's start and never decrease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A warp occupies the slot.
    Enter { at: u64, warp: WarpEvent },
    /// The warp starts to spin.
    Spin { at: u64, on: Word },
    /// The warp is in one state for some cycles.
    Slice { from: u64, until: u64, run: Run },
    /// The warp stops spinning.
    Unspin { at: u64 },
    /// The warp leaves the slot.
    Leave { at: u64 },
}

/// What a warp does during a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) state: State,
    /// The warp is ready, but the unit of its instruction is busy.
    pub(super) unit_busy: bool,
    /// Instructions issued; zero unless the state is `Issued`.
    pub(super) instructions: u32,
    /// The first and the last instruction.
    pub(super) pcs: [Pc; 2],
}

impl Run {
    /// A state in which nothing issues.
    fn of(state: State) -> Run {
        Run { state, unit_busy: false, instructions: 0, pcs: [Pc(0); 2] }
    }
}

/// A lock held by a thread for some cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) slot: WarpSlot,
    pub(super) lane: u8,
    pub(super) word: Word,
    /// The CTA whose shared memory has the word; `None` in global memory.
    pub(super) cta: Option<u64>,
    pub(super) from: u64,
    pub(super) until: u64,
    /// The thread had tried before in vain.
    pub(super) waited: bool,
    /// The slot of the warp that released it; `None` if it was still held when the view or its CTA ended.
    pub(super) released_by: Option<WarpSlot>,
}

/// The track of a warp slot.
#[derive(Clone, Debug, Default)]
struct SlotTrack {
    marks: Vec<Mark>,
    warp: Option<WarpEvent>,
    /// Whether `Mark::Enter` of the current warp is recorded.
    entered: bool,
    /// The word that the warp spins on.
    spin: Option<Word>,
    /// Whether `Mark::Spin` of the current spin is recorded.
    spin_entered: bool,
    /// Instructions issued in adjacent cycles up to now.
    issuing: Option<(Range<u64>, Run)>,
    /// Cycles of the launch in which the warp was ready last, and how many of them its unit was busy. They are recorded
    /// with the next event: the unit is told only then.
    ready: Option<Range<u64>>,
    unit_busy: u64,
    /// The word that each lane polled last.
    polled: Vec<Word>,
    /// The word for which each lane polls once more.
    waits_for: Vec<Option<Word>>,
}

/// A value over time. A reading is recorded when the value changes again, so that values of no duration are left out.
#[derive(Clone, Debug, Default)]
struct Gauge {
    value: u64,
    since: u64,
    /// The value of the last reading.
    shown: u64,
    /// Cycle and value.
    readings: Vec<(u64, u64)>,
}

/// Records what one SM does.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    sm: u32,
    /// Whether the view shows this SM. Of others only locks are recorded: they are passed between SMs.
    shown: bool,
    /// The launch's first cycle.
    start: Cycle,
    /// The cycles to record, counted from `start`. The end moves forward when `room` is used up.
    cycles: Range<u64>,
    /// Bytes left in the trace.
    room: u64,
    /// Where recording ended because `room` was used up.
    cut: Option<u64>,
    tracks: Vec<SlotTrack>,
    gauges: [Gauge; Counter::ALL.len()],
    /// Warps that spin.
    spinning: u64,
    /// Number of the current interval of the issue rate, and instructions issued in it.
    issued: (u64, u64),
    /// Locks held now, by address and, in shared memory, the CTA.
    held: FxHashMap<(Option<u64>, u64), Hold>,
    /// Locks that were held before.
    holds: Vec<Hold>,
}

impl Timeline {
    /// An empty timeline of an SM with `slots` warp slots, in a launch that starts at cycle `start`, with `room`
    /// bytes of the trace.
    pub(crate) fn new(sm: u32, slots: u32, start: Cycle, options: &TraceOptions, room: u64) -> Timeline {
        Timeline {
            sm,
            shown: options.sms.contains(sm),
            start,
            cycles: options.cycles.clone(),
            room,
            cut: None,
            tracks: vec![SlotTrack::default(); slots as usize],
            gauges: Default::default(),
            spinning: 0,
            issued: (0, 0),
            held: FxHashMap::default(),
            holds: Vec::new(),
        }
    }

    pub(super) fn sm(&self) -> u32 {
        self.sm
    }

    pub(super) fn is_shown(&self) -> bool {
        self.shown
    }

    pub(super) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// The launch is over: records what is still open.
    pub(super) fn finish(&mut self) {
        for slot in 0..self.tracks.len() {
            self.end_run(slot);
        }
        self.close_interval();
        for counter in Counter::ALL {
            self.settle(counter, u64::MAX);
        }
        self.holds.sort_by_key(|h| (h.slot, h.from, h.lane, h.word.address));
    }

    /// The marks of each slot.
    pub(super) fn marks(&self) -> impl Iterator<Item = (WarpSlot, &[Mark])> {
        (0..).map(WarpSlot).zip(self.tracks.iter().map(|track| &track.marks[..]))
    }

    /// A counter's readings: a cycle, and the value from then on.
    pub(super) fn readings(&self, counter: Counter) -> &[(u64, u64)] {
        &self.gauges[counter as usize].readings
    }

    /// The locks that were held, sorted by slot and time once the timeline is finished.
    pub(super) fn holds(&self) -> &[Hold] {
        &self.holds
    }

    /// A cycle of the machine as a cycle of the launch, clamped to those that are recorded.
    fn clip(&self, cycle: Cycle) -> u64 {
        self.clamp(cycle - self.start)
    }

    /// A cycle of the launch, clamped to those that are recorded.
    fn clamp(&self, at: u64) -> u64 {
        at.max(self.cycles.start).min(self.cycles.end)
    }

    /// Uses `bytes` of the trace. If it is full, nothing later than `at` is recorded.
    fn use_up(&mut self, bytes: u64, at: u64) {
        match self.room.checked_sub(bytes) {
            Some(left) => self.room = left,
            None if self.cut.is_none() => {
                self.cycles.end = self.cycles.end.min(at);
                self.cut = Some(self.cycles.end);
            }
            None => {}
        }
    }

    fn slice(&mut self, slot: usize, cycles: Range<u64>, run: Run) {
        let (from, until) = (self.clamp(cycles.start), self.clamp(cycles.end));
        if from >= until || !self.shown {
            return;
        }
        let track = &mut self.tracks[slot];
        let mut bytes = SLICE_BYTES;
        if let Some(warp) = track.warp.filter(|_| !track.entered) {
            track.entered = true;
            track.marks.push(Mark::Enter { at: from, warp });
            bytes += SLICE_BYTES;
        }
        if let Some(on) = track.spin.filter(|_| !track.spin_entered) {
            track.spin_entered = true;
            track.marks.push(Mark::Spin { at: from, on });
            bytes += SLICE_BYTES;
        }
        track.marks.push(Mark::Slice { from, until, run });
        self.use_up(bytes, until);
    }

    /// Ends a slot's run of issued instructions, or its wait to issue.
    fn end_run(&mut self, slot: usize) {
        let track = &mut self.tracks[slot];
        if let Some(Range { start, end }) = track.ready.take() {
            let busy = (start + std::mem::take(&mut track.unit_busy)).min(end);
            let ready = Run::of(State::Ready);
            self.slice(slot, start..busy, Run { unit_busy: true, ..ready });
            self.slice(slot, busy..end, ready);
        }
        if let Some((cycles, run)) = self.tracks[slot].issuing.take() {
            self.slice(slot, cycles, run);
        }
    }

    /// From cycle `at` of the launch on, the slot's warp spins on `word`, or does not spin.
    fn set_spin(&mut self, slot: usize, at: u64, word: Option<Word>) {
        let track = &self.tracks[slot];
        if track.spin == word {
            return;
        }
        self.end_run(slot);
        let track = &mut self.tracks[slot];
        self.spinning = self.spinning + u64::from(word.is_some()) - u64::from(track.spin.is_some());
        track.spin = word;
        if std::mem::take(&mut track.spin_entered) {
            let at = at.max(self.cycles.start).min(self.cycles.end);
            track.marks.push(Mark::Unspin { at });
        }
        self.change(Counter::SpinningWarps, at, self.spinning);
    }

    /// From cycle `at` of the launch on, a counter has this value.
    fn change(&mut self, counter: Counter, at: u64, value: u64) {
        if self.gauges[counter as usize].value != value {
            if self.settle(counter, at) {
                self.use_up(READING_BYTES, at);
            }
            let gauge = &mut self.gauges[counter as usize];
            (gauge.value, gauge.since) = (value, at.max(gauge.since));
        }
    }

    /// A counter kept its value until `at`. Returns whether that added a reading.
    fn settle(&mut self, counter: Counter, at: u64) -> bool {
        let gauge = &mut self.gauges[counter as usize];
        let from = gauge.since.max(self.cycles.start);
        let new = self.shown && from < at.min(self.cycles.end) && gauge.value != gauge.shown;
        if new {
            gauge.shown = gauge.value;
            gauge.readings.push((from, gauge.value));
        }
        new
    }

    /// Ends the current interval of the issue rate.
    fn close_interval(&mut self) {
        let (interval, count) = self.issued;
        self.change(Counter::IssueRate, interval * RATE_CYCLES, count);
        self.change(Counter::IssueRate, (interval + 1) * RATE_CYCLES, 0);
    }

    /// The warp in a slot is gone.
    fn empty(&mut self, slot: usize, now: Cycle) {
        let left: Vec<_> = self.held.extract_if(|_, hold| hold.slot.index() == slot).collect();
        for (_, hold) in left {
            self.release(hold, now, None);
        }
        self.end_run(slot);
        self.set_spin(slot, now - self.start, None);
        let at = self.clip(now);
        let track = &mut self.tracks[slot];
        track.warp = None;
        track.waits_for.fill(None);
        if std::mem::take(&mut track.entered) {
            track.marks.push(Mark::Leave { at });
        }
    }

    /// A hold ends: `by` a write of a warp, or because its CTA is gone.
    fn release(&mut self, hold: Hold, now: Cycle, by: Option<WarpSlot>) {
        let (from, until) = (self.clamp(hold.from), self.clip(now));
        if from < until {
            let released_by = by.filter(|_| until == now - self.start);
            self.holds.push(Hold { from, until, released_by, ..hold });
            self.use_up(SLICE_BYTES, until);
        }
    }
}

impl Observer for Timeline {
    fn issued(&mut self, now: Cycle, issue: &Issue) {
        let at = now - self.start;
        if !self.cycles.contains(&at) {
            return;
        }
        if let Some((cycles, run)) = &mut self.tracks[issue.slot.index()].issuing
            && cycles.end == at + 1
        {
            run.instructions += 1;
            run.pcs = if run.instructions == 1 { [issue.pc; 2] } else { [run.pcs[0], issue.pc] };
        }
        if at / RATE_CYCLES != self.issued.0 {
            self.close_interval();
            self.issued = (at / RATE_CYCLES, 0);
        }
        self.issued.1 += 1;
    }

    fn spent(&mut self, slot: WarpSlot, state: State, from: Cycle, cycles: u64) {
        let spent = from - self.start..from + cycles - self.start;
        let (from, until) = (self.clamp(spent.start), self.clamp(spent.end));
        let track = &mut self.tracks[slot.index()];
        if state == State::Issued
            && let Some((issuing, _)) = &mut track.issuing
            && issuing.end == from
        {
            issuing.end = until;
            return;
        }
        if spent.is_empty() {
            return;
        }
        if state == State::Ready
            && let Some(ready) = &mut track.ready
            && ready.end == spent.start
        {
            ready.end = spent.end;
            return;
        }
        let busy = if state == State::Ready { std::mem::take(&mut track.unit_busy) } else { 0 };
        self.end_run(slot.index());
        let track = &mut self.tracks[slot.index()];
        match state {
            State::Ready => (track.ready, track.unit_busy) = (Some(spent), busy),
            State::Issued if from < until => track.issuing = Some((from..until, Run::of(state))),
            State::Issued => {}
            _ => self.slice(slot.index(), spent, Run::of(state)),
        }
    }

    fn unit_busy(&mut self, slot: WarpSlot, cycles: u64) {
        self.tracks[slot.index()].unit_busy += cycles;
    }

    fn cta_started(&mut self, now: Cycle, cta: CtaEvent) {
        let resident = self.gauges[Counter::ResidentWarps as usize].value;
        self.change(Counter::ResidentWarps, now - self.start, resident + cta.warps as u64);
    }

    fn cta_ended(&mut self, now: Cycle, cta: CtaEvent) {
        let is_in = |track: &SlotTrack| track.warp.is_some_and(|warp| warp.cta == cta.number);
        for slot in 0..self.tracks.len() {
            if is_in(&self.tracks[slot]) {
                self.empty(slot, now);
            }
        }
        let resident = self.gauges[Counter::ResidentWarps as usize].value;
        self.change(Counter::ResidentWarps, now - self.start, resident - cta.warps as u64);
    }

    fn warp_entered(&mut self, _now: Cycle, slot: WarpSlot, warp: WarpEvent) {
        self.tracks[slot.index()].warp = Some(warp);
    }

    fn warp_left(&mut self, now: Cycle, slot: WarpSlot) {
        self.empty(slot.index(), now);
        let resident = self.gauges[Counter::ResidentWarps as usize].value;
        self.change(Counter::ResidentWarps, now - self.start, resident - 1);
    }

    fn warp_came_back(&mut self, now: Cycle, _slot: WarpSlot) {
        let resident = self.gauges[Counter::ResidentWarps as usize].value;
        self.change(Counter::ResidentWarps, now - self.start, resident + 1);
    }

    fn polled(&mut self, slot: WarpSlot, lanes: LaneMask, word: &dyn Fn(usize) -> Word) {
        let polled = &mut self.tracks[slot.index()].polled;
        if polled.is_empty() {
            polled.resize(64, Word { space: Space::Global, address: 0 });
        }
        for lane in lanes.lanes() {
            polled[lane] = word(lane);
        }
    }

    fn spinning(&mut self, now: Cycle, slot: WarpSlot, lanes: LaneMask) {
        let SlotTrack { polled, waits_for, .. } = &mut self.tracks[slot.index()];
        waits_for.resize(polled.len(), None);
        for lane in lanes.lanes().take_while(|lane| *lane < polled.len()) {
            waits_for[lane] = Some(polled[lane]);
        }
        let word = (!lanes.is_empty()).then(|| polled.get(lanes.lowest()).copied()).flatten();
        // The branch that decides it still belongs to the state before.
        self.set_spin(slot.index(), now + 1 - self.start, word);
    }

    fn wrote(&mut self, now: Cycle, slot: WarpSlot, lane: usize, word: Word, took: bool) {
        if !took && self.held.is_empty() {
            return;
        }
        let track = &mut self.tracks[slot.index()];
        let cta = track.warp.filter(|_| word.space == Space::Shared).map(|warp| warp.cta);
        let key = (cta, word.address);
        let waited = took && track.waits_for.get_mut(lane).is_some_and(|wait| wait.take() == Some(word));
        if let Some(hold) = self.held.remove(&key) {
            self.release(hold, now, Some(slot).filter(|_| !took));
        }
        if took {
            let from = now - self.start;
            let (lane, until) = (lane as u8, from);
            self.held.insert(key, Hold { slot, lane, word, cta, from, until, waited, released_by: None });
        }
    }

    fn outstanding(&mut self, now: Cycle, misses: usize) {
        self.change(Counter::OutstandingMisses, now - self.start, misses as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::sm::probe::State::{Issued, LongScoreboard, Ready};

    const SLOT: WarpSlot = WarpSlot(1);
    const CTA: CtaEvent = CtaEvent { number: 7, first: WarpSlot(0), warps: 2 };
    const WARP: WarpEvent = WarpEvent { kernel: 0, cta: 7, warp: 1 };

    /// The launch starts at cycle 1000 of the machine.
    fn timeline(cycles: Range<u64>, room: u64) -> Timeline {
        let mut timeline =
            Timeline::new(0, 4, Cycle(1000), &TraceOptions { cycles, ..TraceOptions::default() }, room);
        timeline.cta_started(Cycle(1000), CTA);
        for warp in 0..2 {
            timeline.warp_entered(Cycle(1000), WarpSlot(warp), WarpEvent { warp: warp.into(), ..WARP });
        }
        timeline
    }

    fn issue(timeline: &mut Timeline, now: u64, pc: u32) {
        timeline.issued(
            Cycle(now),
            &Issue { slot: SLOT, pc: Pc(pc), lanes: LaneMask(1), branch: None, is_sib: false },
        );
    }

    fn marks(timeline: &Timeline) -> &[Mark] {
        &timeline.tracks[SLOT.index()].marks
    }

    fn slice(from: u64, until: u64, state: State, instructions: u32, pcs: [u32; 2]) -> Mark {
        Mark::Slice { from, until, run: Run { instructions, pcs: pcs.map(Pc), ..Run::of(state) } }
    }

    #[test]
    fn adjacent_issues_are_one_slice() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        timeline.spent(SLOT, Ready, Cycle(1000), 5);
        timeline.spent(SLOT, Issued, Cycle(1005), 1);
        issue(&mut timeline, 1005, 10);
        // The second issue of a cycle adds no time.
        issue(&mut timeline, 1005, 11);
        timeline.spent(SLOT, Issued, Cycle(1006), 1);
        issue(&mut timeline, 1006, 12);
        timeline.spent(SLOT, LongScoreboard, Cycle(1007), 20);
        timeline.cta_ended(Cycle(1027), CTA);
        let expected = [
            Mark::Enter { at: 0, warp: WARP },
            slice(0, 5, Ready, 0, [0, 0]),
            slice(5, 7, Issued, 3, [10, 12]),
            slice(7, 27, LongScoreboard, 0, [0, 0]),
            Mark::Leave { at: 27 },
        ];
        assert_eq!(marks(&timeline), expected);
    }

    #[test]
    fn spinning_is_between_the_warp_and_what_it_does() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        let word = |lane: usize| Word { space: Space::Global, address: 64 * lane as u64 };
        timeline.polled(SLOT, LaneMask(0b1110), &word);
        timeline.spent(SLOT, Issued, Cycle(1000), 1);
        issue(&mut timeline, 1000, 3);
        timeline.spinning(Cycle(1000), SLOT, LaneMask(0b1100));
        timeline.spent(SLOT, Issued, Cycle(1001), 1);
        issue(&mut timeline, 1001, 4);
        // Now the warp waits for another lane's lock.
        timeline.spinning(Cycle(1001), SLOT, LaneMask(0b1000));
        timeline.spinning(Cycle(1001), SLOT, LaneMask(0b1000));
        timeline.spent(SLOT, LongScoreboard, Cycle(1002), 8);
        timeline.spinning(Cycle(1009), SLOT, LaneMask::NONE);
        timeline.cta_ended(Cycle(1010), CTA);
        let expected = [
            Mark::Enter { at: 0, warp: WARP },
            slice(0, 1, Issued, 1, [3, 3]),
            Mark::Spin { at: 1, on: word(2) },
            slice(1, 2, Issued, 1, [4, 4]),
            Mark::Unspin { at: 2 },
            Mark::Spin { at: 2, on: word(3) },
            slice(2, 10, LongScoreboard, 0, [0, 0]),
            Mark::Unspin { at: 10 },
            Mark::Leave { at: 10 },
        ];
        assert_eq!(marks(&timeline), expected);
        timeline.finish();
        assert_eq!(timeline.readings(Counter::SpinningWarps), [(1, 1), (10, 0)]);
    }

    #[test]
    fn only_the_chosen_cycles_are_kept() {
        let mut timeline = timeline(100..200, 1000);
        timeline.spent(SLOT, Ready, Cycle(1000), 50);
        timeline.outstanding(Cycle(1040), 3);
        timeline.spent(SLOT, LongScoreboard, Cycle(1050), 100);
        timeline.outstanding(Cycle(1150), 4);
        timeline.spent(SLOT, Ready, Cycle(1150), 100);
        timeline.cta_ended(Cycle(1250), CTA);
        timeline.finish();
        let expected = [
            Mark::Enter { at: 100, warp: WARP },
            slice(100, 150, LongScoreboard, 0, [0, 0]),
            slice(150, 200, Ready, 0, [0, 0]),
            Mark::Leave { at: 200 },
        ];
        assert_eq!(marks(&timeline), expected);
        assert_eq!(timeline.readings(Counter::OutstandingMisses), [(100, 3), (150, 4)]);
        assert_eq!(timeline.readings(Counter::ResidentWarps), [(100, 2)]);
    }

    #[test]
    fn a_full_timeline_ends_for_all_slots_at_one_cycle() {
        let mut timeline = timeline(0..u64::MAX, 60);
        for at in 0..10 {
            timeline.spent(SLOT, if at % 2 == 0 { Ready } else { LongScoreboard }, Cycle(1000 + 10 * at), 10);
        }
        // This slot waited all the time.
        timeline.spent(WarpSlot(0), LongScoreboard, Cycle(1000), 100);
        timeline.cta_ended(Cycle(1100), CTA);
        let cut = timeline.cut().unwrap();
        assert!(cut < 100);
        for (_, marks) in timeline.marks().take(2) {
            assert_eq!(marks.last(), Some(&Mark::Leave { at: cut }));
        }
        assert_eq!(timeline.tracks[0].marks[1], slice(0, cut, LongScoreboard, 0, [0, 0]));
    }

    #[test]
    fn a_lock_is_held_until_someone_writes_it() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        let word = |address| Word { space: Space::Shared, address };
        timeline.wrote(Cycle(1010), SLOT, 5, word(4), true);
        timeline.wrote(Cycle(1015), SLOT, 6, word(8), true);
        timeline.wrote(Cycle(1020), WarpSlot(0), 0, word(4), false);
        timeline.cta_ended(Cycle(1030), CTA);
        let holds: Vec<_> =
            timeline.holds().iter().map(|h| (h.lane, h.word.address, h.from, h.until)).collect();
        assert_eq!(holds, [(5, 4, 10, 20), (6, 8, 15, 30)]);
    }

    #[test]
    fn a_warp_yields_and_comes_back_to_another_slot() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        timeline.spent(SLOT, LongScoreboard, Cycle(1000), 10);
        timeline.warp_left(Cycle(1010), SLOT);
        timeline.warp_came_back(Cycle(1020), WarpSlot(3));
        timeline.warp_entered(Cycle(1020), WarpSlot(3), WARP);
        timeline.spent(WarpSlot(3), LongScoreboard, Cycle(1020), 5);
        timeline.cta_ended(Cycle(1025), CTA);
        timeline.finish();
        let expected = [
            Mark::Enter { at: 0, warp: WARP },
            slice(0, 10, LongScoreboard, 0, [0, 0]),
            Mark::Leave { at: 10 },
        ];
        assert_eq!(marks(&timeline), expected);
        let back = &timeline.tracks[3].marks;
        assert_eq!((back[0], back[2]), (Mark::Enter { at: 20, warp: WARP }, Mark::Leave { at: 25 }));
        assert_eq!(timeline.readings(Counter::ResidentWarps), [(0, 2), (10, 1), (20, 2), (25, 0)]);
    }

    #[test]
    fn a_busy_unit_is_told_apart() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        // Told before the wait, or after it when the warp issues.
        timeline.unit_busy(SLOT, 2);
        timeline.spent(SLOT, Ready, Cycle(1000), 5);
        timeline.spent(SLOT, LongScoreboard, Cycle(1005), 5);
        timeline.spent(SLOT, Ready, Cycle(1010), 3);
        timeline.unit_busy(SLOT, 3);
        timeline.spent(SLOT, Issued, Cycle(1013), 1);
        timeline.cta_ended(Cycle(1014), CTA);
        let busy = |from, until| Mark::Slice { from, until, run: Run { unit_busy: true, ..Run::of(Ready) } };
        let expected = [
            Mark::Enter { at: 0, warp: WARP },
            busy(0, 2),
            slice(2, 5, Ready, 0, [0, 0]),
            slice(5, 10, LongScoreboard, 0, [0, 0]),
            busy(10, 13),
            slice(13, 14, Issued, 0, [0, 0]),
            Mark::Leave { at: 14 },
        ];
        assert_eq!(marks(&timeline), expected);
    }

    #[test]
    fn the_issue_rate_is_by_interval() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        for now in [1000, 1001, 1099, 1100, 1450] {
            issue(&mut timeline, now, 0);
        }
        timeline.finish();
        let expected = [(0, 3), (100, 1), (200, 0), (400, 1), (500, 0)];
        assert_eq!(timeline.readings(Counter::IssueRate), expected);
    }
}
