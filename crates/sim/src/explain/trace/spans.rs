//! A timeline as lists of spans, for whoever draws one.

use std::ops::Range;

use rustc_hash::FxHashMap;
use warploom_isa::{Pc, Space};

use crate::exec::fault::Place;
use crate::explain::hang::{global_word, shared_word};
use crate::explain::trace::hand_offs::{HoldId, hand_offs};
use crate::explain::trace::timeline::{Hold, Mark};
use crate::explain::trace::write::{Recording, instruction, state_names, state_number};
use crate::explain::trace::{Timeline, TraceOptions};
use crate::time::sm::probe::Word;

/// A launch's timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The cycles that it shows, from the launch's start.
    pub cycles: Range<u64>,
    /// Names of states; spans have their numbers.
    pub states: Vec<String>,
    /// Where each instruction of the kernel is, and its text.
    pub places: Vec<String>,
    /// Names of the words that warps wait for or hold; spans have their numbers.
    pub words: Vec<String>,
    pub sms: Vec<SmSpans>,
    pub hand_offs: Vec<HandOff>,
}

/// What one SM did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmSpans {
    pub sm: u32,
    pub slots: Vec<SlotSpans>,
}

/// What happened in a warp slot. Every list is in time order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotSpans {
    pub warps: Vec<WarpSpan>,
    pub states: Vec<StateSpan>,
    pub spins: Vec<WordSpan>,
    /// Locks held by threads of the slot's warps; they may overlap.
    pub holds: Vec<WordSpan>,
}

/// A warp in its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpSpan {
    pub cycles: Range<u64>,
    pub cta: [u32; 3],
    pub warp: u32,
}

/// A warp in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSpan {
    pub cycles: Range<u64>,
    pub state: usize,
    /// The instruction that issued, waits to issue, or made the warp wait.
    pub pc: Option<u32>,
}

/// A word that a warp polls, or that one of its threads holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordSpan {
    pub cycles: Range<u64>,
    pub word: usize,
    /// The lane that holds it.
    pub lane: Option<u8>,
}

/// A lock that one warp released and another took, which had waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOff {
    pub word: usize,
    pub released: HandOffEnd,
    pub taken: HandOffEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOffEnd {
    pub sm: u32,
    pub slot: u8,
    pub cycle: u64,
}

/// Numbers of words, in the order in which they are met.
#[derive(Default)]
struct Words {
    names: Vec<String>,
    numbers: FxHashMap<(Space, u64), usize>,
}

impl Words {
    fn number(&mut self, recording: &Recording<'_>, word: Word) -> usize {
        let Words { names, numbers } = self;
        *numbers.entry((word.space, word.address)).or_insert_with(|| {
            let name = match word.space {
                Space::Shared => shared_word(recording.launch.kernel, word.address),
                _ => global_word(recording.memory, word.address),
            };
            names.push(name.to_string().trim_matches(['[', ']']).to_string());
            names.len() - 1
        })
    }
}

/// The spans of finished timelines, up to cycle `end`.
pub(super) fn spans(
    recording: &Recording<'_>,
    options: &TraceOptions,
    timelines: &[Timeline],
    end: u64,
) -> Spans {
    let kernel = recording.launch.kernel;
    let mut words = Words::default();
    let sms = timelines.iter().filter(|timeline| timeline.is_shown()).map(|timeline| {
        let slots = timeline.marks().map(|(slot, marks)| {
            let mut spans = slot_spans(recording, marks, end, &mut words);
            let holds = timeline.holds().iter().filter(|hold| hold.slot == slot && hold.from < end);
            let span = |hold: &Hold| WordSpan {
                cycles: hold.from..hold.until.min(end),
                word: words.number(recording, hold.word),
                lane: Some(hold.lane),
            };
            spans.holds = holds.map(span).collect();
            spans
        });
        let mut slots: Vec<SlotSpans> = slots.collect();
        while slots.last().is_some_and(|slot| slot.warps.is_empty()) {
            slots.pop();
        }
        SmSpans { sm: timeline.sm(), slots }
    });
    let sms = sms.collect();
    let hold = |(at, number): HoldId| (timelines[at].sm(), &timelines[at].holds()[number]);
    let hand_offs = hand_offs(timelines).into_iter().map(|passed| {
        let ((from, before), (to, after)) = (hold(passed.from), hold(passed.to));
        let releaser = before.released_by.unwrap_or(before.slot);
        HandOff {
            word: words.number(recording, after.word),
            released: HandOffEnd { sm: from, slot: releaser.0, cycle: before.until },
            taken: HandOffEnd { sm: to, slot: after.slot.0, cycle: after.from },
        }
    });
    let hand_offs = hand_offs.filter(|hand_off| hand_off.taken.cycle < end).collect();
    Spans {
        cycles: options.cycles.start.min(end)..end,
        states: state_names().collect(),
        places: (0..kernel.code.len() as u32).map(|pc| Place::of(kernel, Pc(pc)).to_string()).collect(),
        words: words.names,
        sms,
        hand_offs,
    }
}

fn slot_spans(recording: &Recording<'_>, marks: &[Mark], end: u64, words: &mut Words) -> SlotSpans {
    let mut spans = SlotSpans::default();
    for (number, mark) in marks.iter().enumerate() {
        match *mark {
            Mark::Enter { at, warp } => {
                let cta = recording.launch.shape.cta(warp.cta);
                spans.warps.push(WarpSpan { cycles: at..end, cta, warp: warp.warp });
            }
            Mark::Leave { at } => {
                spans.warps.last_mut().into_iter().for_each(|warp| warp.cycles.end = at.min(end));
            }
            Mark::Spin { at, on } => {
                let word = words.number(recording, on);
                spans.spins.push(WordSpan { cycles: at..end, word, lane: None });
            }
            Mark::Unspin { at } => {
                spans.spins.last_mut().into_iter().for_each(|spin| spin.cycles.end = at.min(end));
            }
            Mark::Slice { from, until, run } => spans.states.push(StateSpan {
                cycles: from..until.min(end),
                state: state_number(run),
                pc: instruction(recording.launch.kernel, marks, number).map(|pc| pc.0),
            }),
        }
    }
    spans.states.retain(|span| span.cycles.start < span.cycles.end);
    spans.spins.retain(|span| span.cycles.start < span.cycles.end);
    spans.warps.retain(|span| span.cycles.start < span.cycles.end);
    spans
}
