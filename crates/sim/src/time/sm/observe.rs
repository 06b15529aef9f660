//! Shows a probe the words through which threads communicate. Only for probes that watch memory.

use warploom_isa::{Inst, Kernel, Op, Space};

use crate::exec::locks::holders::shared_offset;
use crate::exec::memory::access::{MemoryOp, WarpAccess};
use crate::exec::memory::address::Addresses;
use crate::exec::warp::Warp;
use crate::exec::warp::control::Activation;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{Ticket, TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::front_end::decode::SpinRole;
use crate::time::sm::load_store::coherent::Update;
use crate::time::sm::load_store::messages::Purpose;
use crate::time::sm::load_store::transfer::Transfer;
use crate::time::sm::probe::{Probe, Word};
use crate::time::sm::{Context, Sm};

impl<const N: usize, P: Probe> Sm<N, P> {
    /// An access issues: shows the words it polls, and what it changes in shared memory.
    pub(crate) fn show_access(&mut self, context: &Context<'_>, id: TransferId, now: Cycle) {
        let Transfer { pending, access, .. } = &self.memory.transfers[id];
        let window = context.launch.kernel.windows.shared;
        let role = context.code[access.pc.index()].spin;
        if role == Some(SpinRole::Poll) {
            self.probe.polled(pending.slot, access.mask, |lane| word(access, lane, window));
        }
        let polls = matches!(role, Some(SpinRole::Poll | SpinRole::Try));
        let shared = access.lanes.shared;
        let changed = match access.kind {
            MemoryOp::Unlock { changed, of: Some(_) } => changed,
            MemoryOp::Store | MemoryOp::Unlock { .. } => shared,
            _ => access.changed_in_sm(shared),
        };
        for lane in changed.lanes() {
            self.probe.wrote(now, pending.slot, lane, word(access, lane, window), polls);
        }
    }

    /// A slice has served message `ticket`: shows what changed in global memory. For an atomic, `changed` are the
    /// lanes that changed their word.
    pub(crate) fn show_served(
        &mut self,
        context: &Context<'_>,
        ticket: Ticket,
        changed: LaneMask,
        now: Cycle,
    ) {
        let flight = &self.memory.flights[ticket];
        let changed = match (flight.purpose, flight.waiting.first()) {
            (Purpose::Store, Some(&(id, lanes))) => Some((id, lanes)),
            (Purpose::Atomic, Some(&(id, _))) => Some((id, changed)),
            _ => None,
        };
        let Some((id, lanes)) = changed else { return };
        let Transfer { pending, access, .. } = &self.memory.transfers[id];
        let code = context.of(self.kernel_of(pending.slot)).code;
        let polls = code[access.pc.index()].spin == Some(SpinRole::Poll);
        for lane in lanes.lanes() {
            let word = Word { space: Space::Global, address: access.addresses.at(lane) };
            self.probe.wrote(now, pending.slot, lane, word, polls);
        }
    }

    /// Shows what a warp changed of global memory in a coherent L1.
    pub(crate) fn show_update(&mut self, context: &Context<'_>, update: &Update<N>) {
        let code = context.of(self.kernel_of(update.slot)).code;
        let polls = code[update.pc.index()].spin == Some(SpinRole::Poll);
        for lane in update.changed.lanes() {
            let word = Word { space: Space::Global, address: update.addresses.at(lane) };
            self.probe.wrote(update.at, update.slot, lane, word, polls);
        }
    }

    /// A warp waits for an mbarrier.
    pub(crate) fn show_mbarrier(
        probe: &mut P,
        kernel: &Kernel,
        (slot, warp, activation): (WarpSlot, &mut Warp<N>, &Activation),
        inst: &Inst,
        mask: LaneMask,
    ) {
        let Op::Mbarrier(_, wide) = inst.op else { return };
        let objects = Addresses::read(kernel, warp, activation, inst, wide, mask);
        let address = |lane| shared_offset(objects.at(lane), kernel.windows.shared);
        probe.polled(slot, mask, |lane| Word { space: Space::Shared, address: address(lane) });
    }
}

/// The word that a lane accesses.
fn word<const N: usize>(access: &WarpAccess<N>, lane: usize, window: u64) -> Word {
    let address = access.addresses.at(lane);
    if access.lanes.shared.contains(lane) {
        Word { space: Space::Shared, address: shared_offset(address, window) }
    } else {
        Word { space: Space::Global, address }
    }
}
