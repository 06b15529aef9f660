//! Races: two accesses to the same bytes of shared or global memory, at least one of them a write, that nothing orders.
//!
//! A happens-before detector. Both machines show it each access when it issues ([`Races::access`]), loads and atomics
//! again when their values have arrived ([`Races::arrived`]), and everything that orders accesses: fences, barriers,
//! lanes that meet. So a store publishes at issue and a load finds what was published until its value arrived. That is
//! at most too much order, and no race is reported that is none. The rules are in `docs/races.md`.

mod clock;
mod lane_order;
mod list;
mod report;
mod shadow;
mod touches;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::iter::once;
use std::sync::Arc;

use warploom_isa::{Inst, Kernel, MbarrierOp, Op, Order, Pc, Scope, Space};

use crate::chip::Divergence;
use crate::execute::Cta;
use crate::kit::lane_mask::LaneMask;
use crate::launch::Launch;
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::address::Addresses;
use crate::memory::store::Memory;
use crate::races::clock::{Known, Meeting, WarpClock};
use crate::races::list::{Grid, Publication, Tip};
use crate::races::report::Found;
pub use crate::races::report::{Race, RaceAccess};
use crate::races::shadow::{Kind, Scatter, Shadow, Word};
use crate::races::touches::Touches;
use crate::sync::barrier::Release;
use crate::warp::Warp;

/// The detector of a launch.
#[derive(Debug)]
pub struct Races {
    /// Lanes per warp.
    lanes: usize,
    warps_per_cta: usize,
    /// Lanes of a warp are threads of their own; otherwise the warp's order is that of its lanes.
    independent: bool,
    /// The CTAs that have begun and not ended.
    ctas: HashMap<u64, CtaOrder, Scatter>,
    global: Shadow,
    found: BTreeMap<(u32, u32), Found>,
    /// Shadows of the shared memory of CTAs that have ended, for those that begin. Records of other CTAs do not count,
    /// so they need not be cleared.
    spare: Vec<Vec<Word>>,
}

/// The order inside a CTA.
#[derive(Debug)]
struct CtaOrder {
    /// The number of its first warp in the grid.
    first: usize,
    warps: Vec<WarpClock>,
    /// What the warps that have arrived at each barrier know.
    meetings: Vec<Meeting>,
    /// What warps of which lanes have ended knew then: a barrier does not wait for them.
    ended: Option<Meeting>,
    shared: Vec<Word>,
    /// What was published through words of shared memory.
    published: HashMap<u64, Known, Scatter>,
}

impl CtaOrder {
    fn new(cta: &Cta, warps: usize, spare: &mut Vec<Vec<Word>>) -> CtaOrder {
        CtaOrder {
            first: cta.number as usize * warps,
            warps: vec![WarpClock::new(warps); warps],
            meetings: Vec::new(),
            ended: None,
            shared: spare.pop().unwrap_or_else(|| vec![Word::default(); cta.shared.bytes.len().div_ceil(4)]),
            published: HashMap::default(),
        }
    }
}

/// How an access orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ordering {
    order: Order,
    scope: Scope,
}

impl Ordering {
    /// A store publishes all that its thread did before; otherwise what it fenced.
    fn releases(self) -> bool {
        matches!(self.order, Order::Release | Order::AcqRel | Order::SeqCst)
    }

    /// A load needs no fence behind it.
    fn acquires(self) -> bool {
        matches!(self.order, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }
}

/// An access as the detector sees it.
#[derive(Clone, Copy)]
struct Seen {
    kind: Kind,
    ordering: Ordering,
}

/// What an instruction does to words of memory, unless it is a copy.
fn seen(inst: &Inst, kernel: &Kernel, pc: Pc) -> Seen {
    let relaxed = |scope| Ordering { order: Order::Relaxed, scope };
    // The halves of an atomic that was expanded into a loop around a lock bit are relaxed, as the atomic is.
    let of_lock = |order| {
        let order = if kernel.atomic_at(pc).is_some() { Order::Relaxed } else { order };
        Seen { kind: Kind::atomic(Scope::Cta), ordering: Ordering { order, scope: Scope::Cta } }
    };
    match inst.op {
        Op::Ld { access, .. } | Op::St(access) => {
            let write = matches!(inst.op, Op::St(_));
            let ordering = Ordering { order: access.order, scope: access.scope };
            let plain = if write { Kind::WRITE } else { Kind::READ };
            let kind = if access.order == Order::Weak { plain } else { Kind::strong(write, access.scope) };
            Seen { kind, ordering }
        }
        Op::Atom(_, access) => {
            let ordering = match access.order {
                Order::Weak => relaxed(access.scope),
                order => Ordering { order, scope: access.scope },
            };
            Seen { kind: Kind::atomic(access.scope), ordering }
        }
        Op::LdMatrix(_) | Op::StMatrix(_) => {
            let kind = if matches!(inst.op, Op::StMatrix(_)) { Kind::WRITE } else { Kind::READ };
            Seen { kind, ordering: Ordering { order: Order::Weak, scope: Scope::Cta } }
        }
        Op::Tex(_) | Op::SurfaceLd(_) | Op::SurfaceSt(_) | Op::SurfaceRed(..) => {
            let kind = match inst.op {
                Op::SurfaceSt(_) => Kind::WRITE,
                Op::SurfaceRed(..) => Kind::atomic(Scope::Gpu),
                _ => Kind::READ,
            };
            Seen { kind, ordering: Ordering { order: Order::Weak, scope: Scope::Cta } }
        }
        Op::LdLock(_) => of_lock(Order::Acquire),
        Op::StUnlock(_) => of_lock(Order::Release),
        op => unreachable!("{op:?} is no access to words"),
    }
}

impl Races {
    pub fn new(launch: &Launch<'_>) -> Races {
        Races {
            lanes: launch.chip.sm.warp_lanes as usize,
            warps_per_cta: launch.occupancy.warps_per_cta as usize,
            independent: launch.chip.sm.divergence == Divergence::IndependentThreads,
            ctas: HashMap::default(),
            global: Shadow::default(),
            found: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    /// The races found so far, by instruction.
    pub fn explain(&self, launch: &Launch<'_>, memory: &Memory) -> Vec<Race> {
        let races = self.found.values();
        races.map(|found| found.explain(launch, memory, self.lanes, self.warps_per_cta)).collect()
    }

    fn cta(&mut self, cta: &Cta) -> &mut CtaOrder {
        let (warps, spare) = (self.warps_per_cta, &mut self.spare);
        self.ctas.entry(cta.number).or_insert_with(|| CtaOrder::new(cta, warps, spare))
    }

    /// A warp accesses memory. The access has begun.
    pub fn access<const N: usize>(
        &mut self,
        kernel: &Kernel,
        cta: &Cta,
        warp: &Warp<N>,
        access: &WarpAccess<N>,
    ) {
        let (lanes, id) = (access.lanes, warp.id as usize);
        if access.kind == MemoryOp::Copy {
            return self.copy(cta, id, access);
        }
        if (lanes.global | lanes.shared).is_empty() {
            return;
        }
        let inst = &kernel.code[access.pc.index()];
        let seen = seen(inst, kernel, access.pc);
        let window = kernel.windows.shared;
        let address = |space, lane| in_space(space, access.addresses.at(lane), window);
        let uniform = matches!(access.addresses, Addresses::Uniform(_));
        let stores = matches!(inst.op, Op::St(_) | Op::SurfaceSt(_));
        if let MemoryOp::Lock { .. } = access.kind {
            // The lane that gets the bit is ordered after its last holder, also with this access.
            self.arrived(kernel, cta, warp, access);
        }
        for (space, mut mask) in [(Space::Global, lanes.global), (Space::Shared, lanes.shared)] {
            if let MemoryOp::Lock { taken } = access.kind {
                // Who does not get the bit does not use the word.
                mask &= taken;
            }
            if mask.is_empty() {
                continue;
            }
            if space == Space::Global && seen.kind.strong && !uniform {
                self.global.read_ahead(mask.lanes().map(|lane| access.addresses.at(lane)));
            }
            let mut touches = self.begin(cta, id, (access.pc.0, seen.kind));
            if stores {
                for lane in mask.lanes() {
                    let value = |row| access.stored(row, lane);
                    touches.touch((lane, lane), (space, address(space, lane), access.bytes), value);
                }
            } else {
                // Neighbours that read or change the same word do so in one visit.
                let mut left = mask;
                while !left.is_empty() {
                    let first = left.lowest();
                    let at = address(space, first);
                    let same = |&lane: &usize| uniform || address(space, lane) == at;
                    let last = left.lanes().take_while(same).last().unwrap_or(first);
                    touches.touch((first, last), (space, at, access.bytes), |_| 0);
                    left &= LaneMask(u64::MAX.checked_shl(last as u32 + 1).unwrap_or(0));
                }
            }
            if seen.kind.write && seen.kind.strong {
                if space == Space::Global && !uniform {
                    self.global.read_published_ahead(mask.lanes().map(|lane| access.addresses.at(lane)));
                }
                let visits = if uniform { LaneMask::of(mask.lowest()) } else { mask };
                let addresses = visits.lanes().map(|lane| address(space, lane));
                self.publish(cta, id, seen.ordering, (space, addresses, access.bytes));
            }
        }
    }

    /// An asynchronous copy: a read and a write of the thread.
    fn copy<const N: usize>(&mut self, cta: &Cta, id: usize, access: &WarpAccess<N>) {
        let mut reads = self.begin(cta, id, (access.pc.0, Kind::READ));
        for lane in access.mask.lanes() {
            let (_, bytes) = access.copy_target(lane);
            reads.touch((lane, lane), (Space::Global, access.addresses.at(lane), bytes), |_| 0);
        }
        let mut writes = self.begin(cta, id, (access.pc.0, Kind::WRITE));
        for lane in access.mask.lanes() {
            let (to, _) = access.copy_target(lane);
            writes.touch((lane, lane), (Space::Shared, to as u64, access.bytes), |_| 0);
        }
    }

    /// A warp begins an access: its clock ticks.
    fn begin(&mut self, cta: &Cta, id: usize, (pc, kind): (u32, Kind)) -> Touches<'_> {
        let Races { ctas, global, found, independent, warps_per_cta, spare, .. } = self;
        let order = ctas.entry(cta.number).or_insert_with(|| CtaOrder::new(cta, *warps_per_cta, spare));
        order.warps[id].now += 1;
        Touches {
            warp: &order.warps[id],
            me: (order.first + id) as u32,
            first: order.first,
            count: *warps_per_cta,
            independent: *independent,
            pc,
            kind,
            shared: &mut order.shared,
            global,
            found,
        }
    }

    /// Strong stores: other threads that read them may learn what this warp did before.
    fn publish(
        &mut self,
        cta: &Cta,
        id: usize,
        ordering: Ordering,
        (space, addresses, bytes): (Space, impl Iterator<Item = u64>, u32),
    ) {
        let order = self.ctas.get_mut(&cta.number).expect("the access began");
        let CtaOrder { first, ref mut warps, published: ref mut in_cta, .. } = *order;
        let warp = &mut warps[id];
        let released = ordering.releases().then(|| Arc::new(warp.known(id).clone()));
        if space == Space::Shared {
            let fenced =
                || warp.fenced_cta.clone().or(warp.fenced.as_ref().map(|fenced| fenced.known.clone()));
            let Some(known) = released.or_else(fenced) else { return };
            for word in addresses.flat_map(|address| words_of(address, bytes)) {
                match in_cta.entry(word) {
                    Entry::Occupied(published) => published.into_mut().join(&known),
                    Entry::Vacant(free) => drop(free.insert(Known::clone(&known))),
                }
            }
            return;
        }
        let (to_all, to_cta) = match (ordering.scope, released) {
            (Scope::Cta, Some(known)) => (None, Some(known)),
            (_, Some(known)) => {
                (Some(known.published(first, Some(Tip { warp: (first + id) as u32, clock: warp.now }))), None)
            }
            (Scope::Cta, None) => {
                let fenced = warp.fenced.as_ref().map(|fenced| fenced.known.clone());
                (None, warp.fenced_cta.clone().or(fenced))
            }
            (_, None) => {
                (warp.fenced.as_mut().map(|fenced| fenced.published(first)), warp.fenced_cta.clone())
            }
        };
        if to_all.is_none() && to_cta.is_none() {
            return;
        }
        let mut to_all = to_all.as_ref().map(Publication::new);
        for address in addresses {
            for word in words_of(address, bytes) {
                let published = self.global.published_mut(word);
                if let Some(all) = &mut to_all {
                    published.join_all(all);
                }
                if let Some(known) = &to_cta {
                    published.join_cta(cta.number, known);
                }
            }
        }
    }

    /// The values of a load, an atomic or a load that takes lock bits are in registers.
    pub fn arrived<const N: usize>(
        &mut self,
        kernel: &Kernel,
        cta: &Cta,
        warp: &Warp<N>,
        access: &WarpAccess<N>,
    ) {
        let lanes = match access.kind {
            MemoryOp::Load | MemoryOp::Atomic { silent: false, .. } => access.mask,
            MemoryOp::Lock { taken } => taken,
            _ => return,
        };
        let seen = seen(&kernel.code[access.pc.index()], kernel, access.pc);
        if !seen.kind.strong {
            return;
        }
        let window = kernel.windows.shared;
        for (space, mask) in [(Space::Global, access.lanes.global), (Space::Shared, access.lanes.shared)] {
            let mask = mask & lanes;
            let uniform = matches!(access.addresses, Addresses::Uniform(_));
            if mask.is_empty() {
                continue;
            }
            if space == Space::Global && !uniform {
                self.global.read_published_ahead(mask.lanes().map(|lane| access.addresses.at(lane)));
            }
            let visits = if uniform { LaneMask::of(mask.lowest()) } else { mask };
            let reads = visits.lanes().map(|lane| {
                let who = if uniform { mask } else { LaneMask::of(lane) };
                (who, in_space(space, access.addresses.at(lane), window))
            });
            self.find(cta, warp.id as usize, seen.ordering, (space, reads, access.bytes));
        }
    }

    /// Strong loads: their threads may learn what was published through the words.
    fn find(
        &mut self,
        cta: &Cta,
        id: usize,
        ordering: Ordering,
        (space, reads, bytes): (Space, impl Iterator<Item = (LaneMask, u64)>, u32),
    ) {
        let Some(order) = self.ctas.get_mut(&cta.number) else { return };
        let CtaOrder { first, ref mut warps, published: ref in_cta, .. } = *order;
        let warp = &mut warps[id];
        // Neighbours often find the same: it is looked at once.
        let mut last: Option<&Grid> = None;
        for (lanes, address) in reads {
            for word in words_of(address, bytes) {
                let (mut near, mut all) = (None, None);
                if space == Space::Shared {
                    near = in_cta.get(&word);
                } else if let Some(published) = self.global.published(word) {
                    all = published.to_all();
                    near = published.to_cta(cta.number);
                }
                if self.independent {
                    // What its own warp published, a lane may take as order after the other lanes.
                    let own = near.map_or(0, |known| known.near[id]);
                    let own = own.max(all.map_or(0, |(all, _)| all.of(first + id)));
                    if own > 0 {
                        warp.lanes.learn(lanes, self.lanes, own);
                    }
                }
                if let Some(known) = near {
                    if ordering.acquires() {
                        warp.known.join(known);
                    } else {
                        match &mut warp.found_cta {
                            Some(found) => found.join(known),
                            None => warp.found_cta = Some(known.clone()),
                        }
                    }
                }
                let Some((all, tip)) = all else { continue };
                if warp.known.knows_tip(tip) || last.is_some_and(|last| Arc::ptr_eq(last, all)) {
                    continue;
                }
                last = Some(all);
                // A warp knows what it published itself.
                if warp.fenced.as_ref().is_some_and(|fenced| fenced.is(all)) {
                    continue;
                }
                match (ordering.acquires(), ordering.scope) {
                    (true, Scope::Cta) => warp.known.join_near(first, all),
                    (true, _) => warp.known.join_grid(first, all),
                    (false, _) => warp.find(all),
                }
            }
        }
    }

    /// A fence.
    pub fn fence(&mut self, cta: &Cta, warp: u32, scope: Scope) {
        let order = self.cta(cta);
        let first = order.first;
        order.warps[warp as usize].fence(warp as usize, first, scope != Scope::Cta);
    }

    /// Lanes of a warp meet: at a shuffle, a vote or the warp's barrier.
    pub fn lanes_meet<const N: usize>(&mut self, cta: &Cta, warp: &Warp<N>, mask: LaneMask) {
        if !self.independent {
            return;
        }
        let clock = &mut self.cta(cta).warps[warp.id as usize];
        clock.lanes.meet(mask, warp.live, N, clock.now);
    }

    /// Lanes of a warp arrive at barrier `id`.
    pub fn arrive(&mut self, cta: &Cta, warp: u32, id: u32) {
        let order = self.cta(cta);
        let id = id as usize;
        if order.meetings.len() <= id {
            order.meetings.resize(id + 1, Meeting::default());
        }
        order.meetings[id].arrive(&mut order.warps[warp as usize], warp as usize);
    }

    /// A phase of a barrier ends.
    pub fn release<const N: usize>(&mut self, cta: &Cta, warps: &[Warp<N>], release: &Release) {
        let independent = self.independent;
        let order = self.cta(cta);
        let Some(meeting) = order.meetings.get_mut(release.id as usize) else { return };
        if let Some(ended) = order.ended.as_ref().filter(|_| !release.counted) {
            meeting.join(ended);
        }
        for waiter in &release.waiters {
            let clock = &mut order.warps[waiter.warp as usize];
            meeting.leave(clock);
            if independent {
                let lanes = release.waiters.iter().filter(|other| other.warp == waiter.warp);
                let mask = lanes.fold(LaneMask::NONE, |all, other| all | other.mask);
                clock.lanes.meet(mask, warps[waiter.warp as usize].live, N, clock.now);
            }
        }
        meeting.clear();
    }

    /// Lanes of a warp have ended; the last ones of the CTA, too, if `last`.
    pub fn ended(&mut self, cta: &Cta, warp: u32, last: bool) {
        if last {
            self.spare.extend(self.ctas.remove(&cta.number).map(|order| order.shared));
            return;
        }
        let order = self.cta(cta);
        let ended = order.ended.get_or_insert_default();
        ended.arrive(&mut order.warps[warp as usize], warp as usize);
    }

    /// A lane operates on the mbarrier at an address of shared memory. `result` is what it returned.
    pub fn mbarrier<const N: usize>(
        &mut self,
        cta: &Cta,
        warp: &Warp<N>,
        (op, pc): (MbarrierOp, Pc),
        (lane, address, result): (usize, u64, u64),
    ) {
        let id = warp.id as usize;
        let kind = match op {
            MbarrierOp::Init | MbarrierOp::Inval => Kind::WRITE,
            _ => Kind::atomic(Scope::Cta),
        };
        self.begin(cta, id, (pc.0, kind)).touch((lane, lane), (Space::Shared, address, 8), |_| 0);
        match op {
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop | MbarrierOp::ArriveExpectTx => {
                let release = Ordering { order: Order::Release, scope: Scope::Cta };
                self.publish(cta, id, release, (Space::Shared, once(address), 8));
            }
            MbarrierOp::TestWait | MbarrierOp::TestWaitParity if result == 1 => {
                let acquire = Ordering { order: Order::Acquire, scope: Scope::Cta };
                self.find(cta, id, acquire, (Space::Shared, once((LaneMask::of(lane), address)), 8));
            }
            _ => {}
        }
    }
}

/// The words of an access.
#[inline]
fn words_of(address: u64, bytes: u32) -> impl Iterator<Item = u64> {
    (address & !3..address + u64::from(bytes)).step_by(4)
}

/// An address in its space: generic ones of shared memory lie in a window.
#[inline]
fn in_space(space: Space, address: u64, window: u64) -> u64 {
    if space == Space::Shared && address >= window { address - window } else { address }
}
