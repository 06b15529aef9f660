//! The copy engine of an SM, which makes bulk copies one after the other.
//!
//! Its accesses go through the load/store unit like those of warps, one at a time and not faster than its rate. Bytes
//! for the shared memory of other CTAs of the cluster go on from here through the SM's port to them.

use std::collections::{BTreeMap, VecDeque};

use warploom_isa::{AtomOp, Pc, Ty};

use crate::chip::timing::CopyEngineSpec;
use crate::exec::bulk::Job;
use crate::exec::fault::FaultKind;
use crate::exec::locks::holders::WarpName;
use crate::exec::memory::access::WarpAccess;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::time::sm::cluster::{Destination, Sender, What};
use crate::time::sm::cycle::Event;
use crate::time::sm::issue::copies::CopyGroups;
use crate::time::sm::load_store::transfer::Transfer;
use crate::time::sm::probe::Probe;
use crate::time::sm::{Context, Sm};

/// What bytes do where they arrive: the mbarrier at which they count, and the operation on what is there.
pub(crate) type Delivery = (Option<u32>, Option<(AtomOp, Ty)>);

/// Groups of a warp's bulk copies: those not read yet, and those not done.
#[derive(Clone, Debug, Default)]
pub(crate) struct BulkGroups {
    unread: CopyGroups,
    undone: CopyGroups,
}

impl BulkGroups {
    pub(crate) fn commit(&mut self) {
        self.unread.commit();
        self.undone.commit();
    }

    /// Whether more than the last `left` groups are unread or not done.
    pub(crate) fn waits(&self, read: bool, left: u32) -> bool {
        if read { self.unread.waits(left) } else { self.undone.waits(left) }
    }
}

/// A bulk copy in flight.
#[derive(Debug)]
struct Active {
    job: Job,
    pc: Pc,
    ready: Cycle,
    slot: WarpSlot,
    /// Tells whether the warp is still in its slot.
    life: u32,
    who: WarpName,
    resident: usize,
    kernel: u16,
    sender: Sender,
    /// The group that it is part of.
    group: Option<u32>,
    /// Accesses that are not done.
    outstanding: u32,
}

/// The engine of an SM.
#[derive(Debug)]
pub(crate) struct CopyEngine {
    spec: CopyEngineSpec,
    /// By number.
    jobs: BTreeMap<u32, Active>,
    /// Those with pieces to give out.
    queue: VecDeque<u32>,
    next: u32,
    /// When it may ask for more.
    free_at: Cycle,
    /// The load/store unit has an access of it to send.
    sending: bool,
}

impl CopyEngine {
    fn new(spec: CopyEngineSpec) -> CopyEngine {
        let (jobs, queue) = (BTreeMap::new(), VecDeque::new());
        CopyEngine { spec, jobs, queue, next: 0, free_at: Cycle(0), sending: false }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether copies of a CTA are in flight.
    pub(crate) fn holds(&self, cta: u64) -> bool {
        self.jobs.values().any(|active| active.who.cta == cta)
    }

    /// When the next access can begin.
    fn next_access(&self, now: Cycle) -> Option<Cycle> {
        let front = self.queue.front().filter(|_| !self.sending)?;
        Some(self.jobs[front].ready.max(self.free_at).max(now + 1))
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// A warp has issued a bulk copy.
    #[cold]
    pub(super) fn begin_copy(
        &mut self,
        context: &Context<'_>,
        (slot, pc): (WarpSlot, Pc),
        job: Job,
        now: Cycle,
    ) {
        let spec = context.launch.chip.copy_engine.clone();
        let engine = self.engine.get_or_insert_with(|| {
            Box::new(CopyEngine::new(spec.expect("a chip that starts kernels with bulk copies has engines")))
        });
        let (number, ready) = (engine.next, now + u64::from(engine.spec.latency_cycles));
        engine.next = engine.next.wrapping_add(1);
        let sender = self.sender(slot, job.request.lane, pc);
        let who = self.who(slot);
        let entry = &mut self.slots[slot.index()];
        let group = (job.request.mbarrier.is_none()).then(|| {
            let groups = entry.bulk.get_or_insert_default();
            groups.unread.begin();
            groups.undone.begin()
        });
        let (life, resident, kernel) =
            (entry.occupant.life, entry.occupant.resident(), entry.occupant.kernel);
        let active =
            Active { job, pc, ready, slot, life, who, resident, kernel, sender, group, outstanding: 0 };
        let engine = self.engine.as_mut().expect("it was made above");
        engine.jobs.insert(number, active);
        engine.queue.push_back(number);
        if engine.queue.len() == 1
            && let Some(at) = engine.next_access(now)
        {
            self.agenda.events.push(at, Event::CopyEngine);
        }
    }

    /// The engine gives the load/store unit its next access, if it is time.
    #[cold]
    pub(super) fn feed_copy(&mut self, now: Cycle) {
        let Some(engine) = &mut self.engine else { return };
        let Some(&number) = engine.queue.front().filter(|_| !engine.sending) else { return };
        let active = engine.jobs.get_mut(&number).expect("it is queued");
        let at = active.ready.max(engine.free_at);
        if at > now {
            self.agenda.events.push(at, Event::CopyEngine);
            return;
        }
        let resident = self.residents[active.resident].as_ref().expect("a CTA stays while its copies do");
        let id = self.memory.transfers.take(Transfer::new);
        let transfer = &mut self.memory.transfers[id];
        active.job.give(&mut transfer.access, &resident.cta.shared, active.pc);
        transfer.pending.restart(active.slot, true, false);
        transfer.pending.aggregated = false;
        (transfer.who, transfer.engine) = (active.who, Some(number));
        active.outstanding += 1;
        engine.sending = true;
        let bytes = u64::from(N as u32 * transfer.access.bytes);
        engine.free_at = now + bytes.div_ceil(u64::from(engine.spec.bytes_per_cycle));
        self.memory.push(id, now);
    }

    /// The load/store unit has sent an access of the engine.
    #[cold]
    pub(super) fn copy_sent(&mut self, context: &Context<'_>, number: u32, now: Cycle) {
        let Some(engine) = &mut self.engine else { return };
        engine.sending = false;
        let active = &engine.jobs[&number];
        let (slot, life, group) = (active.slot, active.life, active.group);
        let is_read = active.job.is_done();
        if is_read {
            engine.queue.pop_front();
        }
        if let Some(at) = engine.next_access(now) {
            self.agenda.events.push(at, Event::CopyEngine);
        }
        if is_read {
            self.end_group(context, (slot, life), group, |groups| &mut groups.unread, now);
        }
    }

    fn end_group(
        &mut self,
        context: &Context<'_>,
        (slot, life): (WarpSlot, u32),
        group: Option<u32>,
        which: fn(&mut BulkGroups) -> &mut CopyGroups,
        now: Cycle,
    ) {
        let entry = &mut self.slots[slot.index()];
        if entry.occupant.life == life
            && let (Some(groups), Some(group)) = (&mut entry.bulk, group)
        {
            which(groups).end(group);
            self.refresh(context, slot, now + 1);
        }
    }

    /// An access of the engine is done: bytes for shared memory are there.
    #[cold]
    pub(super) fn copy_done(&mut self, context: &Context<'_>, id: TransferId, number: u32, now: Cycle) {
        let engine = self.engine.as_mut().expect("it made the access");
        let active = engine.jobs.get_mut(&number).expect("it is not done before its accesses");
        active.outstanding -= 1;
        let (resident, who, sender) = (active.resident, active.who, active.sender);
        let context = context.of(active.kernel);
        let shape = &context.launch.shape;
        let (cluster, own) = shape.cluster_of(who.cta);
        let delivery = active.job.delivery();
        let delivers = active.job.delivers();
        let ranks: Vec<u32> = active.job.ranks().filter(|_| delivers).collect();
        let ended = active.outstanding == 0 && active.job.is_done();
        let ended = ended.then_some((active.slot, active.life, active.group));
        if ended.is_some() {
            engine.jobs.remove(&number);
        }
        for rank in ranks {
            let access = &self.memory.transfers[id].access;
            if rank == own {
                let there = self.residents[resident].as_mut().expect("a CTA stays while its copies do");
                if let Err(kind) = Job::deliver(delivery, access, &mut there.cta.shared) {
                    self.blame(context, sender, kind, now);
                }
                continue;
            }
            let cta = shape.member(cluster, rank);
            let bytes = u64::from(access.mask.count() * access.bytes);
            let what = What::Tile { cta, rank, access: Box::new(access.clone()), delivery, sender };
            self.port().send(now, Destination::Cta(cta), bytes, what);
        }
        self.changed = true;
        self.memory.transfers.give_back(id);
        if let Some((slot, life, group)) = ended {
            self.end_group(context, (slot, life), group, |groups| &mut groups.undone, now);
            self.end_cta_if_done(resident, now);
        }
    }

    /// Bytes of a bulk copy of another SM arrive.
    pub(super) fn tile_arrives(
        &mut self,
        context: &Context<'_>,
        (cta, rank): (u64, u32),
        access: &WarpAccess<N>,
        delivery: Delivery,
        sender: Sender,
        now: Cycle,
    ) {
        let gone = FaultKind::LeftCluster { what: "bulk copy to".to_string(), rank };
        let shared = self.live(cta).map(|there| &mut there.cta.shared);
        let done = shared.ok_or(gone).and_then(|shared| Job::deliver(delivery, access, shared));
        self.changed = true;
        if let Err(kind) = done {
            self.blame(context, sender, kind, now);
        }
    }
}
