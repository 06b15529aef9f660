//! What tests of policies share.

use warploom_isa::Pc;

use crate::chip::spinning::BowsSpec;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::bows::BackOff;
use crate::time::sched::limit::DelayLimiter;
use crate::time::sched::{Issue, Policy};

pub(crate) fn slots(slots: &[u8]) -> SlotSet {
    slots.iter().copied().map(WarpSlot).collect()
}

/// An instruction of 32 lanes that is not a branch.
pub(crate) fn plain(slot: u8, pc: u32) -> Issue {
    Issue { slot: WarpSlot(slot), pc: Pc(pc), lanes: LaneMask(0xffff_ffff), branch: None, is_sib: false }
}

/// The slots that are picked in `cycles` cycles from `now` on, while the same warps stay ready. Each issues its
/// instruction 0, over and over.
pub(crate) fn turns(policy: &mut dyn Policy, now: u64, ready: SlotSet, cycles: u64) -> Vec<u8> {
    (now..now + cycles)
        .map(Cycle)
        .map(|now| {
            let slot = policy.pick(now, ready).expect("one of the ready warps");
            assert!(ready.contains(slot), "{slot:?} is not ready");
            policy.issued(now, &plain(slot.0, 0));
            slot.0
        })
        .collect()
}

/// A policy with back-off around it, as an SM has it: a delayed warp is not ready.
pub(crate) struct BackingOff {
    policy: Box<dyn Policy>,
    pub back_off: BackOff,
    live: SlotSet,
}

impl BackingOff {
    pub(crate) fn new(policy: Box<dyn Policy>, spec: &BowsSpec) -> BackingOff {
        let limit = DelayLimiter::new(spec, Cycle(0)).cycles();
        BackingOff { policy, back_off: BackOff::new(spec, limit), live: SlotSet::default() }
    }
}

impl Policy for BackingOff {
    fn pick(&mut self, now: Cycle, ready: SlotSet) -> Option<WarpSlot> {
        let ready: SlotSet = ready.iter().filter(|&slot| !self.back_off.delays(slot, now)).collect();
        if ready.is_empty() { None } else { self.back_off.pick(now, ready, &mut *self.policy) }
    }

    fn started(&mut self, now: Cycle, slot: WarpSlot, age: u64) {
        self.live.insert(slot);
        self.back_off.started(now, slot);
        self.policy.started(now, slot, age);
    }

    fn ended(&mut self, now: Cycle, slot: WarpSlot) {
        self.live.remove(slot);
        self.back_off.ended(slot);
        self.policy.ended(now, slot);
    }

    fn issued(&mut self, now: Cycle, issue: &Issue) {
        self.back_off.issued(now, issue);
        self.policy.issued(now, issue);
    }

    fn wakes_at(&self) -> Option<Cycle> {
        self.live.iter().filter_map(|slot| self.back_off.until(slot)).min()
    }
}
