//! The observers of an SM: the timeline, if the launch is traced, the profile, if it is profiled, the counts of each
//! kernel, if several run together, and the user's.

use std::sync::Arc;

use warploom_isa::Pc;

use crate::explain::profile::Recorder;
use crate::explain::trace::Timeline;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::Issue;
use crate::time::sm::by_kernel::ByKernel;
use crate::time::sm::front_end::decode::Decoded;
use crate::time::sm::probe::{Accessing, BarrierArrival, CtaEvent, Observer, Probe, State, WarpEvent, Word};
use crate::time::sm::stats::SmStats;

/// Creates the observer of one SM, given the SM's number.
pub type MakeObserver = Arc<dyn Fn(u32) -> Box<dyn Observer> + Send + Sync>;

/// The observers of one SM.
pub(super) struct Observers {
    recorder: Option<Recorder>,
    by_kernel: Option<ByKernel>,
    timeline: Option<Timeline>,
    others: Vec<Box<dyn Observer>>,
    /// Whether there are more than the recorder.
    has_more: bool,
}

impl Observers {
    pub(super) fn new(
        timeline: Option<Timeline>,
        recorder: Option<Recorder>,
        others: Vec<Box<dyn Observer>>,
    ) -> Observers {
        let has_more = timeline.is_some() || !others.is_empty();
        Observers { recorder, by_kernel: None, timeline, others, has_more }
    }

    /// Of an SM on which kernels run together.
    pub(super) fn by_kernel(slots: u32) -> Observers {
        Observers { by_kernel: Some(ByKernel::new(slots)), ..Observers::new(None, None, Vec::new()) }
    }

    /// The timeline and the recorder.
    pub(super) fn into_parts(self) -> (Option<Timeline>, Option<Recorder>) {
        (self.timeline, self.recorder)
    }

    /// Mostly there is only the recorder.
    #[inline]
    fn each(&mut self, tell: impl FnMut(&mut dyn Observer)) {
        if self.has_more {
            self.tell_each(tell);
        }
    }

    #[cold]
    fn tell_each(&mut self, mut tell: impl FnMut(&mut dyn Observer)) {
        if let Some(timeline) = &mut self.timeline {
            tell(timeline);
        }
        self.others.iter_mut().for_each(|other| tell(&mut **other));
    }
}

impl Probe for Observers {
    const WATCHES_MEMORY: bool = true;

    #[inline]
    fn issued(&mut self, now: Cycle, issue: &Issue, inst: &Decoded) {
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(now, issue, inst);
        }
        if let Some(by_kernel) = &mut self.by_kernel {
            by_kernel.issued(now, issue, inst);
        }
        self.each(|observer| observer.issued(now, issue));
    }

    #[inline]
    fn spent(&mut self, slot: WarpSlot, state: State, from: Cycle, cycles: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.spent(slot, state, from, cycles);
        }
        if let Some(by_kernel) = &mut self.by_kernel {
            by_kernel.spent(slot, state, from, cycles);
        }
        self.each(|observer| observer.spent(slot, state, from, cycles));
    }

    #[inline]
    fn unit_busy(&mut self, slot: WarpSlot, cycles: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.unit_busy(slot, cycles);
        }
        if let Some(by_kernel) = &mut self.by_kernel {
            by_kernel.unit_busy(slot, cycles);
        }
        self.each(|observer| observer.unit_busy(slot, cycles));
    }

    fn cta_of_kernel(&mut self, kernel: u16, slots: &[Option<WarpSlot>]) {
        if let Some(by_kernel) = &mut self.by_kernel {
            by_kernel.cta_of_kernel(kernel, slots);
        }
    }

    fn of_kernel(&self, kernel: u16) -> Option<&SmStats> {
        self.by_kernel.as_ref().and_then(|by_kernel| by_kernel.of_kernel(kernel))
    }

    fn cta_started(&mut self, now: Cycle, cta: CtaEvent) {
        if let Some(recorder) = &mut self.recorder {
            recorder.cta_started(cta);
        }
        self.each(|observer| observer.cta_started(now, cta));
    }

    fn cta_ended(&mut self, now: Cycle, cta: CtaEvent) {
        if let Some(recorder) = &mut self.recorder {
            recorder.cta_ended(cta);
        }
        self.each(|observer| observer.cta_ended(now, cta));
    }

    fn warp_entered(&mut self, now: Cycle, slot: WarpSlot, warp: WarpEvent) {
        self.each(|observer| observer.warp_entered(now, slot, warp));
    }

    fn warp_left(&mut self, now: Cycle, slot: WarpSlot) {
        self.each(|observer| observer.warp_left(now, slot));
    }

    fn warp_came_back(&mut self, now: Cycle, slot: WarpSlot) {
        self.each(|observer| observer.warp_came_back(now, slot));
    }

    #[inline]
    fn outstanding(&mut self, now: Cycle, misses: usize) {
        self.each(|observer| observer.outstanding(now, misses));
    }

    fn spinning(&mut self, now: Cycle, slot: WarpSlot, lanes: LaneMask) {
        self.each(|observer| observer.spinning(now, slot, lanes));
    }

    fn polled(&mut self, now: Cycle, by: Accessing, word: impl Fn(usize) -> Word) {
        if let Some(recorder) = &mut self.recorder {
            recorder.polled(now, by, &word);
        }
        self.each(|observer| observer.polled(by.slot, by.lanes, &word));
    }

    fn tried(
        &mut self,
        now: Cycle,
        by: Accessing,
        took: LaneMask,
        exclusive: bool,
        word: impl Fn(usize) -> Word,
    ) {
        if let Some(recorder) = &mut self.recorder {
            recorder.tried(now, by, took, exclusive, word);
        }
    }

    fn wrote(&mut self, now: Cycle, by: Accessing, word: impl Fn(usize) -> Word, took: bool) {
        if let Some(recorder) = &mut self.recorder
            && !took
        {
            recorder.wrote(now, by, &word);
        }
        if self.has_more {
            for lane in by.lanes.lanes() {
                self.each(|observer| observer.wrote(now, by.slot, lane, word(lane), took));
            }
        }
    }

    #[inline]
    fn access_began(&mut self, now: Cycle, id: TransferId) {
        if let Some(recorder) = &mut self.recorder {
            recorder.access_began(now, id);
        }
    }

    #[inline]
    fn sent(&mut self, pc: Pc) {
        if let Some(recorder) = &mut self.recorder {
            recorder.sent(pc);
        }
    }

    fn access_done(&mut self, now: Cycle, id: TransferId, pc: Pc) {
        if let Some(recorder) = &mut self.recorder {
            recorder.access_done(now, id, pc);
        }
    }

    fn arrived(&mut self, now: Cycle, arrival: BarrierArrival) {
        if let Some(recorder) = &mut self.recorder {
            recorder.arrived(now, arrival);
        }
    }

    #[inline]
    fn window_ended(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.window_ended();
        }
    }
}
