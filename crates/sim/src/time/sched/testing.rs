//! What tests of policies share.

use warploom_isa::Pc;

use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::sched::{Issue, Policy};

/// A set of slots.
pub fn slots(slots: &[u8]) -> SlotSet {
    slots.iter().copied().map(WarpSlot).collect()
}

/// An instruction of 32 lanes that is no branch.
pub fn plain(slot: u8, pc: u32) -> Issue {
    Issue { slot: WarpSlot(slot), pc: Pc(pc), lanes: 0xffff_ffff, branch: None, is_sib: false }
}

/// The slots that are picked in `cycles` cycles from `now` on, while the same warps stay ready. Each issues its
/// instruction 0, over and over.
pub fn turns(policy: &mut dyn Policy, now: u64, ready: SlotSet, cycles: u64) -> Vec<u8> {
    (now..now + cycles)
        .map(|now| {
            let slot = policy.pick(now, ready).expect("one of the ready warps");
            assert!(ready.contains(slot), "{slot:?} is not ready");
            policy.issued(now, &plain(slot.0, 0));
            slot.0
        })
        .collect()
}
