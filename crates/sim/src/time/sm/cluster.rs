//! The SM's port to the other SMs of a cluster: accesses to the shared memory of other CTAs, arrivals at their
//! mbarriers and at the barrier of the cluster.
//!
//! Messages leave between two windows (`machine/clusters.rs`) and take effect when they arrive. A message to a CTA that
//! has ended is a fault of the thread that sent it.

use std::collections::BTreeMap;

use warploom_isa::{MbarrierOp, Pc};

use crate::chip::Chip;
use crate::chip::timing::ClusterSpec;
use crate::exec::execute::{Execution, end_cluster_phase};
use crate::exec::fault::{Fault, FaultKind, Place};
use crate::exec::memory::access::WarpAccess;
use crate::exec::sync::cluster::{AsyncBytes, Remote, remote_mbarrier};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::copy_engine::Delivery;
use crate::time::sm::cycle::Event;
use crate::time::sm::issue::slot::Position;
use crate::time::sm::probe::Probe;
use crate::time::sm::{Context, Sm};

/// Bytes of a message in addition to its data.
const HEADER_BYTES: u64 = 8;

/// The thread that a message comes from, for its faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    cta: [u32; 3],
    thread: [u32; 3],
    pc: Pc,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The CTA of this number.
    Cta(u64),
    Sm(u32),
    /// The barrier of the cluster.
    Barrier,
}

#[derive(Debug)]
pub(crate) struct Message<const N: usize> {
    pub sent: Cycle,
    pub to: Destination,
    pub bytes: u64,
    pub what: What<N>,
}

#[derive(Debug)]
pub(crate) enum What<const N: usize> {
    /// Lanes access the shared memory of the CTA of a rank. The answer goes to SM `from`.
    Access {
        cta: u64,
        rank: u32,
        lanes: LaneMask,
        access: Box<WarpAccess<N>>,
        from: (u32, TransferId),
        sender: Sender,
    },
    /// The answer to an access.
    Served { transfer: TransferId, lanes: LaneMask, access: Box<WarpAccess<N>> },
    /// An operation on an mbarrier of the CTA of a rank.
    Mbarrier { cta: u64, rank: u32, operation: (MbarrierOp, u64, u64), sender: Sender },
    /// Bytes for the shared memory of the CTA of a rank.
    Bytes { cta: u64, rank: u32, bytes: Box<AsyncBytes>, sender: Sender },
    /// Bytes of a bulk copy for the shared memory of the CTA of a rank.
    Tile { cta: u64, rank: u32, access: Box<WarpAccess<N>>, delivery: Delivery, sender: Sender },
    /// All threads of the CTA have arrived at the barrier of its cluster, or have ended.
    Arrived { cta: u64, ended: bool },
    /// The phase of the cluster's barrier ends for a CTA.
    Release { cta: u64 },
}

/// The port of an SM.
#[derive(Debug)]
pub(crate) struct ClusterPort<const N: usize> {
    spec: ClusterSpec,
    /// Messages of this window.
    pub outbox: Vec<Message<N>>,
    /// Messages on their way here, by the cycle of arrival and their order.
    arrivals: BTreeMap<(Cycle, u64), What<N>>,
    received: u64,
    /// When the port can send again.
    free_at: Cycle,
    /// When the next arrival at the cluster's barrier can count.
    next_arrival: Cycle,
}

impl<const N: usize> ClusterPort<N> {
    pub(crate) fn new(chip: &Chip) -> Option<Box<ClusterPort<N>>> {
        let spec = chip.cluster.clone()?;
        Some(Box::new(ClusterPort {
            spec,
            outbox: Vec::new(),
            arrivals: BTreeMap::new(),
            received: 0,
            free_at: Cycle(0),
            next_arrival: Cycle(0),
        }))
    }

    /// Sends a message at `ready`, or when the port is free.
    pub(super) fn send(&mut self, ready: Cycle, to: Destination, data_bytes: u64, what: What<N>) {
        let bytes = HEADER_BYTES + data_bytes;
        let sent = ready.max(self.free_at);
        self.free_at = sent + bytes.div_ceil(u64::from(self.spec.bytes_per_cycle));
        self.outbox.push(Message { sent, to, bytes, what });
    }
}

const HAS_PORT: &str = "an SM that runs clusters has a port to the others";

impl<const N: usize, P: Probe> Sm<N, P> {
    pub(super) fn port(&mut self) -> &mut ClusterPort<N> {
        self.cluster.as_mut().expect(HAS_PORT)
    }

    /// A message will arrive at cycle `arrival`.
    pub(crate) fn receive_from_cluster(&mut self, arrival: Cycle, what: What<N>) {
        let port = self.port();
        port.received += 1;
        port.arrivals.insert((arrival, port.received), what);
        self.agenda.events.push(arrival, Event::FromCluster);
        self.wake_by(arrival);
    }

    /// An access that is about to be sent waits for the answers of other SMs.
    #[cold]
    pub(super) fn expect_from_cluster(&mut self, context: &Context<'_>, id: TransferId) {
        let transfer = &mut self.memory.transfers[id];
        let parts = transfer.access.remote_parts(context.launch.kernel.windows).count();
        transfer.pending.outstanding += parts as u32;
    }

    /// The load/store unit sends the lanes of an access that are in the shared memory of other CTAs, if any are.
    #[cold]
    pub(super) fn send_to_cluster(&mut self, context: &Context<'_>, id: TransferId, now: Cycle) {
        let launch = context.launch;
        let transfer = &self.memory.transfers[id];
        if transfer.access.remote.is_empty() {
            return;
        }
        let (slot, who) = (transfer.pending.slot, transfer.who);
        let (cluster, _) = launch.shape.cluster_of(who.cta);
        let parts: Vec<_> = transfer.access.remote_parts(launch.kernel.windows).collect();
        for (rank, lanes) in parts {
            let access = Box::new(self.memory.transfers[id].access.clone());
            let (pc, bytes) = (access.pc, u64::from(lanes.count() * access.bytes));
            let cta = launch.shape.member(cluster, rank);
            let sender = self.sender(slot, lanes.lowest(), pc);
            let what = What::Access { cta, rank, lanes, access, from: (self.id, id), sender };
            self.port().send(now, Destination::Cta(cta), bytes, what);
        }
    }

    pub(super) fn sender(&self, slot: WarpSlot, lane: usize, pc: Pc) -> Sender {
        let occupant = &self.slots[slot.index()].occupant;
        let resident = self.residents[occupant.resident()].as_ref().expect("it has just issued");
        Sender { cta: resident.cta.id, thread: resident.warps[occupant.warp()].thread(lane), pc }
    }

    /// Carries out what the instruction that has just issued does to other CTAs.
    #[cold]
    pub(super) fn reach_cluster(
        &mut self,
        context: &Context<'_>,
        execution: &mut Execution<'_>,
        (slot, pc): (WarpSlot, Pc),
        now: Cycle,
    ) {
        let shape = &context.launch.shape;
        let who = self.who(slot);
        let (cluster, _) = shape.cluster_of(who.cta);
        for remote in std::mem::take(&mut execution.effects.remote) {
            match remote {
                Remote::Arrived => {
                    let at = self.slots[slot.index()].occupant.resident();
                    let ended = self.residents[at].as_ref().is_none_or(|there| there.cta.live_warps == 0);
                    let port = self.port();
                    let arrived = port.next_arrival.max(now);
                    port.send(arrived, Destination::Barrier, 0, What::Arrived { cta: who.cta, ended });
                }
                Remote::Mbarrier { rank, address, op, value, lane } => {
                    let cta = shape.member(cluster, rank);
                    let sender = self.sender(slot, lane, pc);
                    let what = What::Mbarrier { cta, rank, operation: (op, address, value), sender };
                    self.port().send(now, Destination::Cta(cta), 8, what);
                }
                Remote::Bytes { rank, bytes, lane } => {
                    let cta = shape.member(cluster, rank);
                    let (sender, length) = (self.sender(slot, lane, pc), bytes.data.len() as u64);
                    let what = What::Bytes { cta, rank, bytes: Box::new(bytes), sender };
                    self.port().send(now, Destination::Cta(cta), length, what);
                }
                Remote::Bulk(job) => self.begin_copy(context, (slot, pc), *job, now),
                Remote::Access => unreachable!("the load/store unit sends accesses"),
            }
        }
    }

    /// A warp arrives at the barrier of its cluster: arrivals of an SM count one after the other.
    pub(super) fn arrives_at_cluster(&mut self, now: Cycle) {
        let port = self.port();
        port.next_arrival = port.next_arrival.max(now) + u64::from(port.spec.barrier_interval_cycles);
    }

    /// Messages of other SMs arrive.
    #[cold]
    pub(super) fn hear_cluster(&mut self, context: &Context<'_>, now: Cycle) {
        loop {
            let port = self.port();
            let Some(first) = port.arrivals.first_entry().filter(|first| first.key().0 <= now) else {
                return;
            };
            match first.remove() {
                What::Access { cta, rank, lanes, access, from, sender } => {
                    self.serve_cluster(context, (cta, rank), (lanes, access), from, sender, now);
                }
                What::Served { transfer, lanes, access } => {
                    self.memory.transfers[transfer].access.take_remote(&access, lanes);
                    self.memory.part_done(now, transfer);
                    self.collect_completed(now);
                }
                What::Mbarrier { cta, rank, operation, sender } => {
                    let gone = FaultKind::LeftCluster { what: "mbarrier in".to_string(), rank };
                    let shared = self.live(cta).map(|there| &mut there.cta.shared);
                    let done = shared.ok_or(gone).and_then(|shared| remote_mbarrier(shared, operation));
                    self.changed = true;
                    if let Err(kind) = done {
                        self.blame(context, sender, kind, now);
                    }
                }
                What::Bytes { cta, rank, bytes, sender } => {
                    let gone = FaultKind::LeftCluster { what: "store to".to_string(), rank };
                    let shared = self.live(cta).map(|there| &mut there.cta.shared);
                    let done = shared.ok_or(gone).and_then(|shared| bytes.arrive(shared));
                    self.changed = true;
                    if let Err(kind) = done {
                        self.blame(context, sender, kind, now);
                    }
                }
                What::Tile { cta, rank, access, delivery, sender } => {
                    self.tile_arrives(context, (cta, rank), &access, delivery, sender, now);
                }
                What::Release { cta } => self.end_phase(context, cta, now),
                What::Arrived { .. } => unreachable!("the machine keeps the barrier"),
            }
        }
    }

    pub(super) fn live(&mut self, cta: u64) -> Option<&mut super::Resident<N>> {
        self.residents.iter_mut().flatten().find(|there| there.cta.number == cta && there.cta.live_warps > 0)
    }

    /// An access of another SM reaches the shared memory of a CTA of this one.
    fn serve_cluster(
        &mut self,
        context: &Context<'_>,
        (cta, rank): (u64, u32),
        (lanes, mut access): (LaneMask, Box<WarpAccess<N>>),
        (from, transfer): (u32, TransferId),
        sender: Sender,
        now: Cycle,
    ) {
        let windows = context.launch.kernel.windows;
        let Some(there) = self.live(cta) else {
            let what = format!("access of {} bytes to", access.bytes);
            return self.blame(context, sender, FaultKind::LeftCluster { what, rank }, now);
        };
        self.changed |= access.serve_remote(windows, rank, lanes, &mut there.cta.shared);
        let done = now + self.memory.remote_turns(&access, lanes);
        let brings = access.kind.writes_registers();
        let bytes = if brings { u64::from(lanes.count() * access.bytes) } else { 0 };
        self.port().send(done, Destination::Sm(from), bytes, What::Served { transfer, lanes, access });
    }

    /// A thread of another SM has done something wrong.
    pub(super) fn blame(&mut self, context: &Context<'_>, sender: Sender, kind: FaultKind, now: Cycle) {
        let kernel = context.launch.kernel;
        let Sender { cta, thread, pc } = sender;
        let place = Place::of(kernel, pc);
        let fault = Box::new(Fault { kind, kernel: kernel.name.clone(), cta, thread, place });
        self.fault.get_or_insert((now, fault));
    }

    /// The phase of the cluster's barrier ends: warps of a CTA that wait for that go on.
    fn end_phase(&mut self, context: &Context<'_>, cta: u64, now: Cycle) {
        let Some(there) = self.live(cta) else { return };
        let waiters = end_cluster_phase(&mut there.cta, &mut there.warps);
        self.changed = true;
        // What the other CTAs wrote before they arrived must be seen.
        self.memory.l1.invalidate();
        let slots: Vec<_> = {
            let there = self.live(cta).expect("it was here before");
            waiters.iter().filter_map(|waiter| there.slots[waiter.warp as usize]).collect()
        };
        for slot in slots {
            let entry = &mut self.slots[slot.index()];
            let resident = self.residents[entry.occupant.resident()].as_ref();
            let Some(warp) = resident.map(|there| &there.warps[entry.occupant.warp()]) else { continue };
            entry.position = Position::of(warp);
            if matches!(entry.position, Position::At(pc) if pc != entry.buffer.pc) {
                self.redirect(slot, now);
            }
            self.refresh(context, slot, now);
        }
    }
}
