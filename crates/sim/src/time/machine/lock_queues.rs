//! Blocking locks between the SMs and the queues at the L2: the accesses that slices served are attempts at locks, and
//! grants go back to the SMs.

use super::*;
use crate::exec::memory::access::{MemoryOp, WarpAccess};
use crate::kit::ids::Ticket;
use crate::kit::lane_mask::LaneMask;
use crate::time::l2::lock_queue::{Attempt, Lane};

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Lanes that ended in the window before `until` no longer wait for locks.
    pub(super) fn leave_lock_queues(&mut self, until: Cycle, memory: &Memory) {
        let Some(queues) = self.lock_queues.as_deref_mut().filter(|_| !self.cut_off) else { return };
        let arrival = until + self.window;
        queues.grant_at(arrival);
        for at in 0..self.sms.count() {
            let id = self.sms.number(at);
            let mut ended = self.sms[id].lanes_ended.take().unwrap_or_default();
            for (slot, lanes) in ended.drain(..) {
                for lane in lanes.lanes() {
                    queues.ended(memory, Lane { sm: id as u32, slot, lane: lane as u32 });
                }
                deliver_grants(queues, &mut self.sms, arrival);
            }
            self.sms[id].lanes_ended = Some(ended);
        }
        self.locks.stats.add(&std::mem::take(&mut queues.stats));
    }
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Nothing moves any more: wakes a lane that sleeps although its lock is free. Returns whether there is one.
    pub(super) fn wake_sleeper(&mut self, now: Cycle) -> bool {
        let Some(queues) = self.lock_queues.as_deref_mut() else { return false };
        let arrival = now + self.window;
        queues.grant_at(arrival);
        let found = queues.grant_sleeper(&self.memory.read().expect(NO_PANIC));
        deliver_grants(queues, &mut self.sms, arrival);
        self.locks.stats.add(&std::mem::take(&mut queues.stats));
        found
    }
}

/// Sends the grants that the queues have made to their SMs.
pub(super) fn deliver_grants<const N: usize, P: Probe>(
    queues: &mut LockQueues,
    sms: &mut Dealt<Sm<N, P>>,
    arrival: Cycle,
) {
    queues.take_grants().for_each(|lane| sms[lane.sm as usize].grant(arrival, lane.slot, lane.lane));
}

/// A slice has served message `ticket` of an SM, and the lanes of `changed` changed what they found. SMs have run until
/// `now`.
pub(super) fn served<const N: usize, P: Probe>(
    queues: &mut LockQueues,
    sm: &mut Sm<N, P>,
    context: &Context<'_>,
    memory: &Memory,
    (ticket, changed): (Ticket, LaneMask),
    now: Cycle,
) {
    let id = sm.id();
    let flight = &sm.memory.flights[ticket];
    let (Purpose::Store | Purpose::Atomic, &[(access, lanes), ..]) = (flight.purpose, &flight.waiting[..])
    else {
        return;
    };
    let slot = sm.memory.transfers[access].pending.slot;
    let code = context.of(sm.kernel_of(slot)).code;
    let transfer = &mut sm.memory.transfers[access];
    let takes_lock = code[transfer.access.pc.index()].takes_lock;
    for lane in lanes.lanes() {
        let word = transfer.access.addresses.at(lane);
        match attempt_of(&transfer.access, lane).filter(|_| takes_lock) {
            Some(attempt) => {
                let who = Lane { sm: id, slot, lane: lane as u32 };
                if let Some(arrival) = queues.granted_at(who) {
                    // It has tried the lock before its grant was used.
                    let entry = &mut sm.slots[slot.index()];
                    if arrival >= now {
                        entry.stale_grants |= LaneMask::of(lane);
                    } else {
                        entry.granted &= !LaneMask::of(lane);
                    }
                }
                let took = changed.contains(lane);
                let queued = queues.tried(memory, who, word, attempt, took);
                transfer.pending.queued |= LaneMask(u64::from(queued) << lane);
            }
            None => {
                let words = transfer.access.bytes.div_ceil(4) as u64;
                (0..words).for_each(|at| queues.wrote(memory, word + 4 * at));
            }
        }
    }
}

/// The attempt of a lane at a lock, if the access is an atomic that may take one.
fn attempt_of<const N: usize>(access: &WarpAccess<N>, lane: usize) -> Option<Attempt> {
    let MemoryOp::Atomic { op, ty, .. } = access.kind else { return None };
    if access.bytes > 8 {
        return None;
    }
    Attempt::new(op, ty, access.operands(lane))
}
