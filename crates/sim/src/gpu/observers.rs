//! The observers of an SM: the timeline, if the launch is traced, and the user's.

use std::sync::Arc;

use crate::explain::trace::Timeline;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::Issue;
use crate::time::sm::front_end::decode::Decoded;
use crate::time::sm::probe::{CtaEvent, Observer, Probe, State, Word};

/// Creates the observer of one SM, given the SM's number.
pub type MakeObserver = Arc<dyn Fn(u32) -> Box<dyn Observer> + Send + Sync>;

/// The observers of one SM.
pub(super) struct Observers {
    pub(super) timeline: Option<Timeline>,
    pub(super) others: Vec<Box<dyn Observer>>,
}

impl Observers {
    fn each(&mut self, mut tell: impl FnMut(&mut dyn Observer)) {
        if let Some(timeline) = &mut self.timeline {
            tell(timeline);
        }
        self.others.iter_mut().for_each(|other| tell(&mut **other));
    }
}

impl Probe for Observers {
    const WATCHES_MEMORY: bool = true;

    fn issued(&mut self, now: Cycle, issue: &Issue, _inst: &Decoded) {
        self.each(|observer| observer.issued(now, issue));
    }

    fn spent(&mut self, slot: WarpSlot, state: State, from: Cycle, cycles: u64) {
        self.each(|observer| observer.spent(slot, state, from, cycles));
    }

    fn cta_started(&mut self, now: Cycle, cta: CtaEvent) {
        self.each(|observer| observer.cta_started(now, cta));
    }

    fn cta_ended(&mut self, now: Cycle, cta: CtaEvent) {
        self.each(|observer| observer.cta_ended(now, cta));
    }

    fn warp_left(&mut self, now: Cycle, slot: WarpSlot) {
        self.each(|observer| observer.warp_left(now, slot));
    }

    fn warp_came_back(&mut self, now: Cycle, slot: WarpSlot) {
        self.each(|observer| observer.warp_came_back(now, slot));
    }

    fn polled(&mut self, slot: WarpSlot, lanes: LaneMask, word: impl Fn(usize) -> Word) {
        self.each(|observer| observer.polled(slot, lanes, &word));
    }

    fn spinning(&mut self, now: Cycle, slot: WarpSlot, lanes: LaneMask) {
        self.each(|observer| observer.spinning(now, slot, lanes));
    }

    fn wrote(&mut self, now: Cycle, slot: WarpSlot, lane: usize, word: Word, took: bool) {
        self.each(|observer| observer.wrote(now, slot, lane, word, took));
    }

    fn outstanding(&mut self, now: Cycle, misses: usize) {
        self.each(|observer| observer.outstanding(now, misses));
    }
}
