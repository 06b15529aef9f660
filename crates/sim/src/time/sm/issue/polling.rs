//! Bookkeeping of waits: polls, spin loops, and tries to take locks in shared memory. Timing does not depend on it,
//! except that lanes which spin let the other paths of their warp run.

use warploom_isa::Kernel;

use crate::exec::locks::holders::{SharedLocks, WarpName, shared_offset};
use crate::exec::memory::access::WarpAccess;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::Issue;
use crate::time::sm::Sm;
use crate::time::sm::front_end::decode::{Class, Decoded, SpinRole};
use crate::time::sm::probe::Probe;

impl<const N: usize, P: Probe> Sm<N, P> {
    /// An access of a named wait issues. A lane that returns to the address of its last wait has waited in vain.
    pub(super) fn note_wait(&mut self, slot: WarpSlot, id: TransferId) {
        if self.waited_at.is_empty() {
            self.waited_at = vec![[u64::MAX; N]; self.slot_count];
        }
        let access = &self.memory.transfers[id].access;
        let last = &mut self.waited_at[slot.index()];
        for lane in access.mask.lanes() {
            let address = access.addresses.at(lane);
            self.polls[1] += u64::from(std::mem::replace(&mut last[lane], address) == address);
        }
    }

    /// An instruction has issued: counts polls, and keeps track of which warps iterate in spin loops.
    pub(super) fn note_spin(&mut self, kernel: &Kernel, decoded: &Decoded, issue: &Issue, now: Cycle) {
        if decoded.is_latch
            && issue.branch.is_none_or(|branch| !branch.taken.is_empty())
            && let Some(watch) = &mut self.watch
        {
            let entry = &self.slots[issue.slot.index()];
            if let Some(resident) = &self.residents[entry.occupant.resident()] {
                let outstanding = (entry.status.outstanding - entry.unlocking) as usize;
                let warp = &resident.warps[entry.occupant.warp()];
                watch.iterated(issue.slot, (kernel, warp), issue.pc, outstanding);
            }
        }
        let Some(role) = decoded.spin else { return };
        if role == SpinRole::Poll {
            if decoded.class == Class::Load {
                self.polls[0] += issue.lanes.count() as u64;
            }
            return;
        }
        let Some(branch) = issue.branch else { return };
        let entry = &mut self.slots[issue.slot.index()];
        let spinning = !branch.taken.is_empty();
        if role == SpinRole::AtomicBranch {
            entry.retries = spinning;
            return;
        }
        if role == SpinRole::WaitBranch {
            self.polls[1] += branch.taken.count() as u64;
        }
        entry.spun |= spinning;
        if entry.spinning != spinning {
            entry.spinning = spinning;
            if spinning { self.spinning_warps += 1 } else { self.spinning_warps -= 1 }
        }
        if spinning && let Some(resident) = &mut self.residents[entry.occupant.resident()] {
            let control = &mut resident.warps[entry.occupant.warp()].control;
            if control.current().is_some_and(|path| path.pc == branch.target) {
                control.yield_path();
            }
        }
        self.probe.spinning(now, issue.slot, branch.taken);
    }
}

/// Lanes tried to take locks in shared memory with an access of a spin loop; those of `changed` did. Generic addresses
/// of shared memory begin at `window`.
pub(super) fn note_tries<const N: usize>(
    locks: &mut SharedLocks,
    (who, access): (WarpName, &WarpAccess<N>),
    (changed, exclusive): (LaneMask, bool),
    window: u64,
) {
    let (how, lanes) = ((who, access.pc, exclusive), (access.lanes.shared, changed));
    let word = |address| (who.cta, shared_offset(address, window));
    locks.tried(how, &access.addresses, lanes, |lane| access.change(lane), word);
}
