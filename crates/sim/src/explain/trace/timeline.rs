//! What one SM did, as a probe remembers it.

use std::ops::Range;

use rustc_hash::FxHashMap;
use warploom_isa::{Pc, Space};

use crate::explain::trace::TraceOptions;
use crate::kit::ids::WarpSlot;
use crate::time::probe::{CtaEvent, Observer, State, Word};
use crate::time::sched::Issue;

/// The issue rate is counted over so many cycles.
pub const RATE_CYCLES: u64 = 100;

/// Bytes that a slice takes in a trace at least: where it begins and where it ends.
const SLICE_BYTES: u64 = 26;

/// Bytes that a reading of a counter takes at least.
const READING_BYTES: u64 = 14;

/// What is counted over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Warp instructions issued in every [`RATE_CYCLES`] cycles.
    IssueRate,
    /// Lines that the L1 waits for.
    OutstandingMisses,
    /// Warps that go round in spin loops.
    SpinningWarps,
    /// Warps whose CTA is here.
    ResidentWarps,
}

impl Counter {
    /// All, from top to bottom of the view.
    pub const ALL: [Counter; 4] =
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

    /// What one of it is.
    pub(crate) fn unit(self) -> String {
        match self {
            Counter::IssueRate => format!("instructions in {RATE_CYCLES} cycles"),
            Counter::OutstandingMisses => "lines".to_string(),
            Counter::SpinningWarps | Counter::ResidentWarps => "warps".to_string(),
        }
    }
}

/// What happens on the track of a slot. Times are cycles from the launch's start and never go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A warp comes.
    Enter { at: u64, cta: u64, warp: u32 },
    /// It goes round in a spin loop from now on.
    Spin { at: u64, on: Word },
    /// It does something.
    Slice { from: u64, until: u64, run: Run },
    /// It stops spinning.
    Unspin { at: u64 },
    /// It goes.
    Leave { at: u64 },
}

/// What a warp does for some cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub state: State,
    /// Instructions issued; none in any other state than `Issued`.
    pub instructions: u32,
    /// The first and the last of them.
    pub pcs: [Pc; 2],
}

/// A thread held a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub slot: WarpSlot,
    pub lane: u8,
    pub word: Word,
    pub from: u64,
    pub until: u64,
}

/// A warp slot.
#[derive(Clone, Debug, Default)]
struct Line {
    marks: Vec<Mark>,
    /// CTA, number in the CTA, and slot of the CTA's first warp.
    warp: Option<(u64, u32, u8)>,
    /// The warp's coming is among the marks.
    entered: bool,
    /// What the warp spins on.
    spin: Option<Word>,
    /// Its spinning is among the marks.
    spin_entered: bool,
    /// Instructions issued in adjacent cycles, the last of them just now.
    issuing: Option<(Range<u64>, Run)>,
    /// What each lane last polled.
    polled: Vec<Word>,
}

/// A value over time. A reading is kept when the value changes again, so that none takes no time.
#[derive(Clone, Debug, Default)]
struct Gauge {
    value: u64,
    since: u64,
    shown: u64,
    readings: Vec<(u64, u64)>,
}

/// Remembers what one SM does.
#[derive(Clone, Debug)]
pub struct Timeline {
    sm: u32,
    /// The launch's first cycle.
    start: u64,
    /// The cycles to remember, counted from there. They end early when there is no room for more.
    cycles: Range<u64>,
    /// Bytes of the trace that are not used up.
    room: u64,
    cut: Option<u64>,
    lines: Vec<Line>,
    gauges: [Gauge; Counter::ALL.len()],
    /// Warps that spin.
    spinning: u64,
    /// Instructions issued in the running interval of the issue rate, and its number.
    issued: (u64, u64),
    /// Locks by word (and, in shared memory, CTA): slot, lane, and cycle of taking.
    held: FxHashMap<(u8, u64), Hold>,
    holds: Vec<Hold>,
}

impl Timeline {
    /// Nothing yet, of an SM with so many warp slots, in a launch that starts at cycle `start`. The trace has room for
    /// so many bytes of it.
    pub fn new(sm: u32, slots: u32, start: u64, options: &TraceOptions, room: u64) -> Timeline {
        Timeline {
            sm,
            start,
            cycles: options.cycles.clone(),
            room,
            cut: None,
            lines: vec![Line::default(); slots as usize],
            gauges: Default::default(),
            spinning: 0,
            issued: (0, 0),
            held: FxHashMap::default(),
            holds: Vec::new(),
        }
    }

    /// Its SM.
    pub fn sm(&self) -> u32 {
        self.sm
    }

    /// Where there was no room for more.
    pub(crate) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        for slot in 0..self.lines.len() {
            self.end_run(slot);
        }
        self.close_interval();
        for counter in Counter::ALL {
            self.settle(counter, u64::MAX);
        }
    }

    /// What happened on a slot's track.
    pub(crate) fn marks(&self) -> impl Iterator<Item = (WarpSlot, &[Mark])> {
        (0..).map(WarpSlot).zip(self.lines.iter().map(|line| &line.marks[..]))
    }

    /// A counter's readings: cycle and value from then on.
    pub(crate) fn readings(&self, counter: Counter) -> &[(u64, u64)] {
        &self.gauges[counter as usize].readings
    }

    /// Locks that were held, by slot and time.
    pub(crate) fn holds(&self) -> Vec<Hold> {
        let mut holds = self.holds.clone();
        holds.sort_by_key(|h| (h.slot, h.from, h.lane, h.word.address));
        holds
    }

    /// A cycle of the machine as one of the launch, moved into those that are remembered.
    fn clip(&self, cycle: u64) -> u64 {
        (cycle - self.start).max(self.cycles.start).min(self.cycles.end)
    }

    /// Uses up some of the trace; if it is full, nothing later than `at` is remembered.
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

    fn slice(&mut self, slot: usize, Range { start: from, end: until }: Range<u64>, run: Run) {
        let line = &mut self.lines[slot];
        let mut bytes = SLICE_BYTES;
        if let Some((cta, warp, _)) = line.warp.filter(|_| !line.entered) {
            line.entered = true;
            line.marks.push(Mark::Enter { at: from, cta, warp });
            bytes += SLICE_BYTES;
        }
        if let Some(on) = line.spin.filter(|_| !line.spin_entered) {
            line.spin_entered = true;
            line.marks.push(Mark::Spin { at: from, on });
            bytes += SLICE_BYTES;
        }
        line.marks.push(Mark::Slice { from, until, run });
        self.use_up(bytes, until);
    }

    /// The instructions that a slot issued one after the other are all.
    fn end_run(&mut self, slot: usize) {
        if let Some((cycles, run)) = self.lines[slot].issuing.take() {
            self.slice(slot, cycles, run);
        }
    }

    /// From `at` on (a cycle of the launch) the slot spins on `word`, or does not.
    fn set_spin(&mut self, slot: usize, at: u64, word: Option<Word>) {
        let line = &self.lines[slot];
        if line.spin == word {
            return;
        }
        self.end_run(slot);
        let line = &mut self.lines[slot];
        self.spinning = self.spinning + u64::from(word.is_some()) - u64::from(line.spin.is_some());
        line.spin = word;
        if std::mem::take(&mut line.spin_entered) {
            let at = at.max(self.cycles.start).min(self.cycles.end);
            line.marks.push(Mark::Unspin { at });
        }
        self.change(Counter::SpinningWarps, at, self.spinning);
    }

    /// From `at` on (a cycle of the launch) a counter has this value.
    fn change(&mut self, counter: Counter, at: u64, value: u64) {
        if self.gauges[counter as usize].value != value {
            if self.settle(counter, at) {
                self.use_up(READING_BYTES, at);
            }
            let gauge = &mut self.gauges[counter as usize];
            (gauge.value, gauge.since) = (value, at.max(gauge.since));
        }
    }

    /// A counter has kept its value until `at`. Returns whether that makes a reading.
    fn settle(&mut self, counter: Counter, at: u64) -> bool {
        let gauge = &mut self.gauges[counter as usize];
        let from = gauge.since.max(self.cycles.start);
        let new = from < at.min(self.cycles.end) && gauge.value != gauge.shown;
        if new {
            gauge.shown = gauge.value;
            gauge.readings.push((from, gauge.value));
        }
        new
    }

    /// The running interval of the issue rate is over.
    fn close_interval(&mut self) {
        let (interval, count) = self.issued;
        self.change(Counter::IssueRate, interval * RATE_CYCLES, count);
        self.change(Counter::IssueRate, (interval + 1) * RATE_CYCLES, 0);
    }

    fn let_go(&mut self, hold: Hold, now: u64) {
        let (from, until) = (self.clip(hold.from), self.clip(now));
        if from < until {
            self.holds.push(Hold { from, until, ..hold });
            self.use_up(SLICE_BYTES, until);
        }
    }
}

impl Observer for Timeline {
    fn issued(&mut self, now: u64, issue: &Issue) {
        let at = now - self.start;
        if !self.cycles.contains(&at) {
            return;
        }
        if let Some((cycles, run)) = &mut self.lines[issue.slot.index()].issuing
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

    fn spent(&mut self, slot: WarpSlot, state: State, from: u64, cycles: u64) {
        let (from, until) = (self.clip(from), self.clip(from + cycles));
        if from >= until {
            return;
        }
        if state == State::Issued
            && let Some((issuing, _)) = &mut self.lines[slot.index()].issuing
            && issuing.end == from
        {
            issuing.end = until;
            return;
        }
        self.end_run(slot.index());
        let run = Run { state, instructions: 0, pcs: [Pc(0); 2] };
        if state == State::Issued {
            self.lines[slot.index()].issuing = Some((from..until, run));
        } else {
            self.slice(slot.index(), from..until, run);
        }
    }

    fn cta_started(&mut self, now: u64, cta: CtaEvent) {
        for warp in 0..cta.warps {
            self.lines[cta.first.index() + warp as usize].warp = Some((cta.number, warp, cta.first.0));
        }
        let resident = self.gauges[Counter::ResidentWarps as usize].value;
        self.change(Counter::ResidentWarps, now - self.start, resident + cta.warps as u64);
    }

    fn cta_ended(&mut self, now: u64, cta: CtaEvent) {
        let slots = cta.first.index()..cta.first.index() + cta.warps as usize;
        let left: Vec<_> = self.held.extract_if(|_, hold| slots.contains(&hold.slot.index())).collect();
        for (_, hold) in left {
            self.let_go(hold, now);
        }
        for slot in slots {
            self.end_run(slot);
            self.set_spin(slot, now - self.start, None);
            let at = self.clip(now);
            let line = &mut self.lines[slot];
            line.warp = None;
            if std::mem::take(&mut line.entered) {
                line.marks.push(Mark::Leave { at });
            }
        }
        let resident = self.gauges[Counter::ResidentWarps as usize].value;
        self.change(Counter::ResidentWarps, now - self.start, resident - cta.warps as u64);
    }

    fn polled(&mut self, slot: WarpSlot, lanes: u64, word: &dyn Fn(usize) -> Word) {
        let polled = &mut self.lines[slot.index()].polled;
        if polled.is_empty() {
            polled.resize(64, Word { space: Space::Global, address: 0 });
        }
        for lane in crate::kit::bits::lanes(lanes) {
            polled[lane] = word(lane);
        }
    }

    fn spinning(&mut self, now: u64, slot: WarpSlot, lanes: u64) {
        let polled = &self.lines[slot.index()].polled;
        let word = (lanes != 0).then(|| polled.get(lanes.trailing_zeros() as usize).copied()).flatten();
        // The branch that decides it belongs to what went before.
        self.set_spin(slot.index(), now + 1 - self.start, word);
    }

    fn wrote(&mut self, now: u64, slot: WarpSlot, lane: usize, word: Word, took: bool) {
        let cta = match word.space {
            Space::Shared => self.lines[slot.index()].warp.map_or(u8::MAX, |(_, _, first)| first),
            _ => u8::MAX,
        };
        if !took && self.held.is_empty() {
            return;
        }
        if let Some(hold) = self.held.remove(&(cta, word.address)) {
            self.let_go(hold, now);
        }
        if took {
            let hold = Hold { slot, lane: lane as u8, word, from: now, until: now };
            self.held.insert((cta, word.address), hold);
        }
    }

    fn outstanding(&mut self, now: u64, misses: usize) {
        self.change(Counter::OutstandingMisses, now - self.start, misses as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::probe::State::{Issued, Memory, Ready};

    const SLOT: WarpSlot = WarpSlot(1);
    const CTA: CtaEvent = CtaEvent { number: 7, first: WarpSlot(0), warps: 2 };

    /// The launch begins at cycle 1000 of the machine.
    fn timeline(cycles: Range<u64>, room: u64) -> Timeline {
        let mut timeline =
            Timeline::new(0, 4, 1000, &TraceOptions { cycles, ..TraceOptions::default() }, room);
        timeline.cta_started(1000, CTA);
        timeline
    }

    fn issue(timeline: &mut Timeline, now: u64, pc: u32) {
        timeline.issued(now, &Issue { slot: SLOT, pc: Pc(pc), lanes: 1, branch: None, is_sib: false });
    }

    fn marks(timeline: &Timeline) -> &[Mark] {
        &timeline.lines[SLOT.index()].marks
    }

    fn slice(from: u64, until: u64, state: State, instructions: u32, pcs: [u32; 2]) -> Mark {
        Mark::Slice { from, until, run: Run { state, instructions, pcs: pcs.map(Pc) } }
    }

    #[test]
    fn adjacent_issues_are_one_slice() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        timeline.spent(SLOT, Ready, 1000, 5);
        timeline.spent(SLOT, Issued, 1005, 1);
        issue(&mut timeline, 1005, 10);
        // The second of a cycle comes without time of its own.
        issue(&mut timeline, 1005, 11);
        timeline.spent(SLOT, Issued, 1006, 1);
        issue(&mut timeline, 1006, 12);
        timeline.spent(SLOT, Memory, 1007, 20);
        timeline.cta_ended(1027, CTA);
        let expected = [
            Mark::Enter { at: 0, cta: 7, warp: 1 },
            slice(0, 5, Ready, 0, [0, 0]),
            slice(5, 7, Issued, 3, [10, 12]),
            slice(7, 27, Memory, 0, [0, 0]),
            Mark::Leave { at: 27 },
        ];
        assert_eq!(marks(&timeline), expected);
    }

    #[test]
    fn spinning_is_between_the_warp_and_what_it_does() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        let word = |lane: usize| Word { space: Space::Global, address: 64 * lane as u64 };
        timeline.polled(SLOT, 0b1110, &word);
        timeline.spent(SLOT, Issued, 1000, 1);
        issue(&mut timeline, 1000, 3);
        timeline.spinning(1000, SLOT, 0b1100);
        timeline.spent(SLOT, Issued, 1001, 1);
        issue(&mut timeline, 1001, 4);
        // Another lane's lock is waited for now.
        timeline.spinning(1001, SLOT, 0b1000);
        timeline.spinning(1001, SLOT, 0b1000);
        timeline.spent(SLOT, Memory, 1002, 8);
        timeline.spinning(1009, SLOT, 0);
        timeline.cta_ended(1010, CTA);
        let expected = [
            Mark::Enter { at: 0, cta: 7, warp: 1 },
            slice(0, 1, Issued, 1, [3, 3]),
            Mark::Spin { at: 1, on: word(2) },
            slice(1, 2, Issued, 1, [4, 4]),
            Mark::Unspin { at: 2 },
            Mark::Spin { at: 2, on: word(3) },
            slice(2, 10, Memory, 0, [0, 0]),
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
        timeline.spent(SLOT, Ready, 1000, 50);
        timeline.outstanding(1040, 3);
        timeline.spent(SLOT, Memory, 1050, 100);
        timeline.outstanding(1150, 4);
        timeline.spent(SLOT, Ready, 1150, 100);
        timeline.cta_ended(1250, CTA);
        timeline.finish();
        let expected = [
            Mark::Enter { at: 100, cta: 7, warp: 1 },
            slice(100, 150, Memory, 0, [0, 0]),
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
            timeline.spent(SLOT, if at % 2 == 0 { Ready } else { Memory }, 1000 + 10 * at, 10);
        }
        // This one waited all the time.
        timeline.spent(WarpSlot(0), Memory, 1000, 100);
        timeline.cta_ended(1100, CTA);
        let cut = timeline.cut().unwrap();
        assert!(cut < 100);
        for (_, marks) in timeline.marks().take(2) {
            assert_eq!(marks.last(), Some(&Mark::Leave { at: cut }));
        }
        assert_eq!(timeline.lines[0].marks[1], slice(0, cut, Memory, 0, [0, 0]));
    }

    #[test]
    fn a_lock_is_held_until_someone_writes_it() {
        let mut timeline = timeline(0..u64::MAX, 1000);
        let word = |address| Word { space: Space::Shared, address };
        timeline.wrote(1010, SLOT, 5, word(4), true);
        timeline.wrote(1015, SLOT, 6, word(8), true);
        timeline.wrote(1020, WarpSlot(0), 0, word(4), false);
        timeline.cta_ended(1030, CTA);
        let holds: Vec<_> =
            timeline.holds().iter().map(|h| (h.lane, h.word.address, h.from, h.until)).collect();
        assert_eq!(holds, [(5, 4, 10, 20), (6, 8, 15, 30)]);
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
