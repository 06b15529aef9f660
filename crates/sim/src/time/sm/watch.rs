//! The search for warps that loop for ever.
//!
//! Once nothing in memory has changed for a while, the state of each warp is compared with an earlier one whenever it
//! closes a loop. A warp depends only on its own state and on what it reads; if both are as they were, it repeats
//! itself for ever. When every warp that could move does, nothing will change again: a proof. The earlier state is
//! taken anew after 1, 2, 4, 8… iterations (Brent's algorithm), so that cycles of any length are found.
//!
//! The invariant, without which a repetition proves nothing: **everything that a repeating warp has read since its
//! earlier state is what it would read now, and everything that it has written since then is already there.** So an
//! iteration does not count if the warp
//! - has loads or atomics in flight, which may still bring another value;
//! - read a clock, which advances by itself;
//! - reached a barrier, where other warps release it and vote.
//!
//! Stores in flight do not keep a warp from repeating, but they must have arrived, and changed nothing, before that
//! counts ([`Iterations::unfinished`]).
//!
//! The L1 is memory too, and a copy in it can be older than memory. Another warp's fence drops the copy, and then the
//! poller reads something else, although no value has changed. So a proof needs that the L1 agreed with memory when the
//! search began, and nothing was in flight to it that could be older; or else that no line was filled or evicted since
//! ([`Watch::l1_agrees`], [`Watch::l1_changes`]). At the end each poll is compared with what it would find now. For
//! independent threads see `Splits::repeats`.

use smallvec::SmallVec;
use warploom_isa::{Kernel, Op, Pc, Special};

use crate::exec::locks::holders::shared_offset;
use crate::exec::memory::access::WarpAccess;
use crate::exec::memory::store::Memory;
use crate::exec::warp::control::Control;
use crate::exec::warp::{Since, Warp};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::load_store::transfer::skips_l1;
use crate::time::sm::probe::Probe;
use crate::time::sm::{Resident, Sm};

/// What lanes of a warp last read with one instruction of a spin loop.
#[derive(Clone, Debug)]
pub(crate) struct Polled<const N: usize> {
    pub pc: Pc,
    /// Lanes that ever executed it.
    pub mask: LaneMask,
    /// Of those, the ones that read shared memory; the others read global memory.
    pub shared: LaneMask,
    /// By lane, as the instruction gives the address.
    pub addresses: [u64; N],
    pub values: [u64; N],
}

/// The iterations of one warp.
#[derive(Clone, Debug)]
struct Iterations<const N: usize> {
    /// The earlier state.
    saved: Option<Warp<N>>,
    /// What happened since then.
    since: Since,
    /// In the present iteration the warp read something besides its state and memory.
    outside: bool,
    count: u64,
    /// The iteration after which the state is saved anew.
    save_at: u64,
    /// Backward branches met so far: a new one is a new loop, whose iterations are counted from one.
    latches: SmallVec<[Pc; 4]>,
    repeats: bool,
    /// Stores in flight that began since the search did.
    stores: SmallVec<[TransferId; 8]>,
    /// Of those, the ones that were in flight when the warp was found to repeat itself.
    unfinished: SmallVec<[TransferId; 8]>,
    polled: Vec<Polled<N>>,
    trial: Trial,
}

/// What a warp did while the machine decided whether to suspect it.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    instructions: u64,
    polls: u64,
    /// Lanes that ran, and those that polled.
    ran: LaneMask,
    polled: LaneMask,
}

/// A loop that does more between two polls works, and only looks now and then whether to stop.
const MOST_INSTRUCTIONS_PER_POLL: u64 = 48;

impl Trial {
    /// Whether the lanes did no more than wait. Where threads are independent, each of them must have polled. On a SIMT
    /// stack one lane may poll for all.
    fn only_waits(&self, independent: bool) -> bool {
        let all_polled = !independent || (self.ran & !self.polled).is_empty();
        all_polled && self.instructions <= MOST_INSTRUCTIONS_PER_POLL * self.polls
    }
}

/// The search on one SM.
#[derive(Clone, Debug)]
pub(crate) struct Watch<const N: usize> {
    slots: Vec<Iterations<N>>,
    /// How often the contents of the L1 had changed when the search began.
    l1_changes: u64,
    /// When the search began, the L1 agreed with memory, and nothing that could be older was in flight to it.
    l1_agrees: bool,
    /// Instructions and polls are counted.
    on_trial: bool,
}

impl<const N: usize> Watch<N> {
    fn new(slots: usize, l1_changes: u64, l1_agrees: bool) -> Self {
        let none = Iterations {
            saved: None,
            since: Since::default(),
            outside: false,
            count: 0,
            save_at: 1,
            latches: SmallVec::new(),
            repeats: false,
            stores: SmallVec::new(),
            unfinished: SmallVec::new(),
            polled: Vec::new(),
            trial: Trial::default(),
        };
        Watch { slots: vec![none; slots], l1_changes, l1_agrees, on_trial: false }
    }

    /// Lanes of a warp execute an instruction.
    pub(crate) fn issued(&mut self, slot: WarpSlot, lanes: LaneMask, op: Op, polls: bool) {
        let warp = &mut self.slots[slot.index()];
        warp.since.ran |= lanes;
        if self.on_trial {
            let trial = &mut warp.trial;
            trial.instructions += 1;
            trial.ran |= lanes;
            if polls {
                trial.polls += 1;
                trial.polled |= lanes;
            }
        }
        match op {
            Op::Bar(_)
            | Op::Special(
                Special::Clock
                | Special::ClockHi
                | Special::Clock64
                | Special::GlobalTimer
                | Special::GlobalTimerLo
                | Special::GlobalTimerHi,
            ) => warp.outside = true,
            Op::Vote(_)
            | Op::Shfl(_)
            | Op::MatchAny(_)
            | Op::MatchAll(_)
            | Op::Redux(..)
            | Op::ActiveMask
            | Op::WaveBallot
            | Op::WaveActive
            | Op::WaveShfl(_)
            | Op::Elect
            | Op::BarWarp => warp.since.crossed = true,
            _ => {}
        }
    }

    /// What a warp read depended on the moment, not on its state and memory alone.
    pub(crate) fn met_by_chance(&mut self, slot: WarpSlot) {
        self.slots[slot.index()].outside = true;
    }

    /// A store, or an atomic without a result, begins.
    pub(crate) fn store_began(&mut self, slot: WarpSlot, id: TransferId) {
        self.slots[slot.index()].stores.push(id);
    }

    /// An access is complete.
    pub(crate) fn completed(&mut self, slot: WarpSlot, id: TransferId) {
        let warp = &mut self.slots[slot.index()];
        warp.stores.retain(|store| *store != id);
        warp.unfinished.retain(|store| *store != id);
    }

    /// A warp closes a loop with the branch at `latch`; `outstanding` accesses are in flight.
    pub(crate) fn iterated(&mut self, slot: WarpSlot, warp: &Warp<N>, latch: Pc, outstanding: usize) {
        let iterations = &mut self.slots[slot.index()];
        // Whatever is not known as a store may be a load.
        if iterations.repeats || outstanding > iterations.stores.len() {
            return;
        }
        let is_new = !iterations.latches.contains(&latch);
        if is_new {
            iterations.latches.push(latch);
        }
        if std::mem::take(&mut iterations.outside) || is_new {
            (iterations.saved, iterations.count, iterations.save_at) = (None, 0, 1);
        }
        iterations.count += 1;
        if iterations.saved.as_ref().is_some_and(|saved| warp.repeats(saved, iterations.since)) {
            iterations.repeats = true;
            iterations.unfinished = iterations.stores.clone();
        } else if iterations.count == iterations.save_at {
            iterations.saved = Some(warp.clone());
            iterations.since = Since::default();
            iterations.save_at *= 2;
        }
    }

    /// A warp has polled: the values are in.
    pub(crate) fn polled(&mut self, slot: WarpSlot, access: &WarpAccess<N>) {
        let polled = &mut self.slots[slot.index()].polled;
        let at = polled.iter().position(|p| p.pc == access.pc).unwrap_or_else(|| {
            let (addresses, values) = ([0; N], [0; N]);
            polled.push(Polled {
                pc: access.pc,
                mask: LaneMask::NONE,
                shared: LaneMask::NONE,
                addresses,
                values,
            });
            polled.len() - 1
        });
        let polled = &mut polled[at];
        polled.mask |= access.mask;
        polled.shared = polled.shared & !access.mask | access.mask & !access.lanes.global;
        for lane in access.mask.lanes() {
            polled.addresses[lane] = access.addresses.at(lane);
            polled.values[lane] = access.found(lane);
        }
    }

    /// Whether the warp is known to repeat itself, and what it wrote is there.
    pub(crate) fn repeats(&self, slot: WarpSlot) -> bool {
        let warp = &self.slots[slot.index()];
        warp.repeats && warp.unfinished.is_empty()
    }

    /// What the warp last read in its spin loops.
    pub(crate) fn polls(&self, slot: WarpSlot) -> &[Polled<N>] {
        &self.slots[slot.index()].polled
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Whether every warp of the SM waits or polls in a loop, by its last backward branch.
    pub(crate) fn seems_to_wait(&self) -> bool {
        self.each_live(|warp, slot| {
            let entry = slot.map(|slot| &self.slots[slot.index()]);
            let waits = entry.is_none_or(|entry| entry.spinning || entry.retries || entry.is_blocked());
            waits || warp.control.current().is_none()
        })
    }

    /// Whether it did so throughout the trial. A warp that did nothing at all had no turn.
    pub(crate) fn only_waited(&self) -> bool {
        let Some(watch) = &self.watch else { return self.is_empty() };
        self.seems_to_wait()
            && self.each_live(|warp, slot| {
                let Some(slot) = slot else { return true };
                let trial = &watch.slots[slot.index()].trial;
                let independent = matches!(warp.control, Control::Independent(_));
                self.slots[slot.index()].retries || trial.instructions == 0 || trial.only_waits(independent)
            })
    }

    fn each_live(&self, holds: impl Fn(&Warp<N>, Option<WarpSlot>) -> bool) -> bool {
        self.residents().all(|resident| {
            let mut live = resident.warps.iter().zip(&resident.slots).filter(|(warp, _)| !warp.is_done());
            live.all(|(warp, slot)| holds(warp, *slot))
        })
    }

    /// From now on instructions and polls are counted, from zero.
    pub(crate) fn begin_trial(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.on_trial = true;
            watch.slots.iter_mut().for_each(|warp| warp.trial = Trial::default());
        }
    }

    /// Whether every warp of the SM waits for good or repeats itself, as long as nothing else changes. Warps that
    /// ended or wait must not have accesses in flight; and a CTA that is about to end makes room for another.
    pub(crate) fn never_changes(&self) -> bool {
        let Some(watch) = &self.watch else { return self.is_empty() };
        self.residents().all(|resident| {
            let waits = |(warp, slot): (&Warp<N>, &Option<WarpSlot>)| {
                let Some(slot) = *slot else { return true };
                let entry = &self.slots[slot.index()];
                let waits = warp.is_done() || entry.is_blocked() || warp.control.current().is_none();
                watch.repeats(slot) || entry.status.outstanding == 0 && waits
            };
            let mut warps = resident.warps.iter().zip(&resident.slots);
            resident.cta.live_warps > 0 && warps.all(waits)
        })
    }

    /// Whether the warps keep reading what they read since the search began.
    pub(crate) fn reads_the_same(&self, kernel: &Kernel, memory: &Memory) -> bool {
        let Some(watch) = &self.watch else { return self.is_empty() };
        let l1 = &self.memory.l1;
        let kept = watch.l1_agrees && !l1.is_stale(memory) || watch.l1_changes == l1.changes();
        kept && self.residents().all(|resident| {
            let slots = resident.slots.iter().flatten().filter(|slot| watch.repeats(**slot));
            slots
                .flat_map(|slot| watch.polls(*slot))
                .all(|polled| self.finds_again(resident, polled, kernel, memory))
        })
    }

    /// Whether the lanes of a poll would find now what they found last.
    fn finds_again(
        &self,
        resident: &Resident<N>,
        polled: &Polled<N>,
        kernel: &Kernel,
        memory: &Memory,
    ) -> bool {
        let op = kernel.code[polled.pc.index()].op;
        let (Op::Ld { access, .. } | Op::Atom(_, access)) = op else { return true };
        let (bytes, l1) = (access.ty.bytes(), &self.memory.l1);
        // Where L1s are coherent, memory may be older than one of them.
        if bytes > 8 || l1.is_coherent() {
            return true;
        }
        let cached = matches!(op, Op::Ld { .. }) && !skips_l1(&op);
        let value = |data: &[u8]| data.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        polled.mask.lanes().all(|lane| {
            let address = polled.addresses[lane];
            let found = polled.values[lane] & u64::MAX >> (64 - 8 * bytes);
            let now = if polled.shared.contains(lane) {
                let at = shared_offset(address, kernel.windows.shared) as usize;
                resident.cta.shared.bytes.get(at..at + bytes as usize).map(value)
            } else {
                let copy = l1.peek(address, bytes).filter(|_| cached);
                copy.or_else(|| memory.read(address, bytes as usize).map(value))
            };
            now.is_none_or(|now| now == found)
        })
    }

    /// Begins the search, or begins it anew. No value has changed since `quiet_since`.
    pub(crate) fn begin_watch(&mut self, memory: &Memory, quiet_since: Cycle) {
        let l1 = &self.memory.l1;
        let agrees = l1.is_coherent() || !l1.is_stale(memory) && !l1.awaits_since_before(quiet_since);
        self.watch = Some(Watch::new(self.slots.len(), l1.changes(), agrees));
    }
}
