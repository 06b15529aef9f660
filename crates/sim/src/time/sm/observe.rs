//! Shows a probe the words through which threads communicate. Only for probes that watch memory.

use warploom_isa::{Dst, Inst, Kernel, Op, Space};

use crate::exec::locks::holders::{is_exclusive, shared_offset};
use crate::exec::memory::access::{MemoryOp, WarpAccess};
use crate::exec::memory::address::Addresses;
use crate::exec::warp::Warp;
use crate::exec::warp::control::Activation;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{Ticket, TransferId};
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::front_end::decode::SpinRole;
use crate::time::sm::load_store::coherent::Update;
use crate::time::sm::load_store::messages::Purpose;
use crate::time::sm::load_store::transfer::Transfer;
use crate::time::sm::probe::{Accessing, Probe, Word};
use crate::time::sm::{Context, Sm};

impl<const N: usize, P: Probe> Sm<N, P> {
    /// An access issues: shows the words it polls, the locks it takes, and what it changes in shared memory.
    pub(crate) fn show_access(&mut self, context: &Context<'_>, id: TransferId, now: Cycle) {
        let Transfer { pending, access, .. } = &self.memory.transfers[id];
        let kernel = context.launch.kernel;
        let word = |lane| word(access, lane, kernel.windows.shared);
        let by = |lanes| Accessing { slot: pending.slot, pc: access.pc, lanes };
        self.probe.access_began(now, id);
        let role = context.code[access.pc.index()].spin;
        if role == Some(SpinRole::Poll) {
            self.probe.polled(now, by(access.mask), word);
        }
        let shared = access.lanes.shared;
        let in_atomic = kernel.atomic_at(access.pc).is_some();
        let has_result = kernel.code[access.pc.index()].dst != Dst::None;
        let changed = match access.kind {
            MemoryOp::Unlock { changed, of: Some(_) } => changed,
            MemoryOp::Store | MemoryOp::Unlock { .. } => shared,
            _ => access.changed_in_sm(shared),
        };
        match access.kind {
            MemoryOp::Lock { taken } if !in_atomic => {
                self.probe.tried(now, by(access.mask), taken, true, word);
            }
            MemoryOp::Unlock { .. } if role == Some(SpinRole::Try) => {
                self.probe.tried(now, by(shared), changed, true, word);
            }
            MemoryOp::Atomic { op, .. }
                if role == Some(SpinRole::Poll) && has_result && !shared.is_empty() =>
            {
                self.probe.tried(now, by(shared), changed, is_exclusive(op), word);
            }
            _ => {}
        }
        if !changed.is_empty() {
            let polls = matches!(role, Some(SpinRole::Poll | SpinRole::Try));
            self.probe.wrote(now, by(changed), word, polls);
        }
    }

    /// A piece of an access was sent.
    #[inline]
    pub(crate) fn show_sent(&mut self, id: TransferId) {
        if P::WATCHES_MEMORY {
            self.probe.sent(self.memory.transfers[id].access.pc);
        }
    }

    /// A slice has served message `ticket`: shows what changed in global memory. For an atomic, `changed` are the
    /// lanes that changed their word.
    pub(crate) fn show_served(&mut self, ticket: Ticket, changed: LaneMask, now: Cycle) {
        let flight = &self.memory.flights[ticket];
        let (Purpose::Store | Purpose::Atomic, Some(&(id, lanes))) = (flight.purpose, flight.waiting.first())
        else {
            return;
        };
        let Transfer { pending, access, .. } = &self.memory.transfers[id];
        let polls = pending.polls;
        let word = |lane| Word { space: Space::Global, address: access.addresses.at(lane) };
        let by = |lanes| Accessing { slot: pending.slot, pc: access.pc, lanes };
        if let MemoryOp::Atomic { op, .. } = access.kind
            && polls
        {
            self.probe.tried(now, by(lanes), changed, is_exclusive(op), word);
        }
        let changed = if flight.purpose == Purpose::Store { lanes } else { changed };
        if !changed.is_empty() {
            self.probe.wrote(now, by(changed), word, polls);
        }
    }

    /// Shows what a warp changed of global memory in a coherent L1.
    pub(crate) fn show_update(&mut self, context: &Context<'_>, update: &Update<N>) {
        let context = context.of(self.kernel_of(update.slot));
        let polls = context.code[update.pc.index()].spin == Some(SpinRole::Poll);
        let word = |lane| Word { space: Space::Global, address: update.addresses.at(lane) };
        let by = |lanes| Accessing { slot: update.slot, pc: update.pc, lanes };
        if update.atomic && polls {
            let op = context.launch.kernel.code[update.pc.index()].op;
            let exclusive = matches!(op, Op::Atom(op, _) if is_exclusive(op));
            self.probe.tried(update.at, by(update.lanes), update.changed, exclusive, word);
        }
        if !update.changed.is_empty() {
            self.probe.wrote(update.at, by(update.changed), word, polls);
        }
    }

    /// A warp waits for an mbarrier.
    pub(crate) fn show_mbarrier(
        probe: &mut P,
        kernel: &Kernel,
        (warp, activation): (&mut Warp<N>, &Activation),
        inst: &Inst,
        (now, by): (Cycle, Accessing),
    ) {
        let Op::Mbarrier(_, wide) = inst.op else { return };
        let objects = Addresses::read(kernel, warp, activation, inst, wide, by.lanes);
        let address = |lane| shared_offset(objects.at(lane), kernel.windows.shared);
        probe.polled(now, by, |lane| Word { space: Space::Shared, address: address(lane) });
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
