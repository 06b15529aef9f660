//! Locks that go from one warp to the next: from a release to the acquisition that follows it.

use std::collections::BTreeMap;

use warploom_isa::Space;

use crate::explain::trace::timeline::{Hold, Timeline};

/// A word: its address, and in shared memory the SM and the CTA.
type WordKey = (u64, Option<(u32, u64)>);

/// A hold, by its timeline and its number there.
pub(super) type HoldId = (usize, usize);

/// A lock that was released and taken by a thread that had waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) from: HoldId,
    pub(super) to: HoldId,
}

/// All hand-offs between SMs that are shown, in the order of their acquisitions.
pub(super) fn hand_offs(timelines: &[Timeline]) -> Vec<Passed> {
    let mut by_word: BTreeMap<WordKey, Vec<(HoldId, &Hold)>> = BTreeMap::new();
    for (at, timeline) in timelines.iter().enumerate() {
        for (number, hold) in timeline.holds().iter().enumerate() {
            let memory =
                hold.cta.filter(|_| hold.word.space == Space::Shared).map(|cta| (timeline.sm(), cta));
            by_word.entry((hold.word.address, memory)).or_default().push(((at, number), hold));
        }
    }
    let mut passed = Vec::new();
    for holds in by_word.values_mut() {
        holds.sort_by_key(|(id, hold)| (hold.from, hold.until, *id));
        for pair in holds.windows(2) {
            let [(from, first), (to, second)] = [pair[0], pair[1]];
            let follows = first.released_by.is_some() && first.until <= second.from;
            if follows && second.waited && [from, to].iter().all(|&(at, _)| timelines[at].is_shown()) {
                passed.push((second.from, Passed { from, to }));
            }
        }
    }
    passed.sort_by_key(|&(at, Passed { to, .. })| (at, to));
    passed.into_iter().map(|(_, passed)| passed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::trace::{Sms, TraceOptions};
    use crate::kit::cycle::Cycle;
    use crate::kit::ids::WarpSlot;
    use crate::kit::lane_mask::LaneMask;
    use crate::time::sm::probe::{CtaEvent, Observer, WarpEvent, Word};

    const WORD: Word = Word { space: Space::Global, address: 64 };

    fn timeline(sm: u32, sms: &Sms) -> Timeline {
        let options = TraceOptions { sms: sms.clone(), ..TraceOptions::default() };
        let mut timeline = Timeline::new(sm, 4, Cycle(0), &options, 1000);
        timeline.cta_started(Cycle(0), CtaEvent { number: sm.into(), first: WarpSlot(0), warps: 2 });
        for warp in 0..2 {
            let event = WarpEvent { kernel: 0, cta: sm.into(), warp };
            timeline.warp_entered(Cycle(0), WarpSlot(warp as u8), event);
        }
        timeline
    }

    /// A thread holds the lock for some cycles; with `waits`, it polled once in vain before.
    fn hold(timeline: &mut Timeline, slot: u8, from: u64, until: u64, waits: bool) {
        let slot = WarpSlot(slot);
        if waits {
            timeline.polled(slot, LaneMask(1), &|_| WORD);
            timeline.spinning(Cycle(from - 1), slot, LaneMask(1));
        }
        timeline.wrote(Cycle(from), slot, 0, WORD, true);
        timeline.wrote(Cycle(until), slot, 0, WORD, false);
    }

    fn passed(sms: Sms) -> Vec<Passed> {
        let mut timelines = [timeline(0, &sms), timeline(1, &sms)];
        hold(&mut timelines[0], 0, 10, 20, false);
        hold(&mut timelines[1], 1, 30, 40, true);
        hold(&mut timelines[0], 1, 50, 60, true);
        // Nobody waited for this one.
        hold(&mut timelines[0], 0, 500, 510, false);
        timelines.iter_mut().for_each(Timeline::finish);
        hand_offs(&timelines)
    }

    #[test]
    fn a_lock_goes_from_sm_to_sm() {
        // Holds are sorted by slot: of SM 0, numbers 0 and 1 are those of slot 0.
        let expected = [Passed { from: (0, 0), to: (1, 0) }, Passed { from: (1, 0), to: (0, 2) }];
        assert_eq!(passed(Sms::All), expected);
    }

    #[test]
    fn an_sm_that_is_not_shown_is_not_skipped() {
        assert_eq!(passed(Sms::Only(vec![0])), []);
    }
}
