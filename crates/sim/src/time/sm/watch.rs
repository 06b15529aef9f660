//! The search for warps that loop for ever.
//!
//! Once nothing in memory has changed for a while, the state of each warp is compared with an earlier one whenever it
//! closes a loop. A warp depends only on its own state and on what it reads; if both are as they were, it repeats
//! itself for ever. When every warp that could move does, nothing will change again: a proof. The earlier state is
//! taken anew after 1, 2, 4, 8… iterations (Brent's algorithm), so that cycles of any length are found.
//!
//! The proof needs that what a warp does follows from its state and from memory alone. So an iteration does not count
//! if the warp
//! - has accesses in flight: a store may still change something, a load may still bring another value;
//! - read a clock, which advances by itself;
//! - reached a barrier, where other warps release it and vote.
//!
//! The L1 is memory too: where its contents differ from memory, a proof needs that no line was filled or evicted
//! ([`Watch::l1_changes`]). For independent threads see `Splits::repeats`.

use warploom_isa::{Op, Pc, Special};

use crate::exec::memory::access::WarpAccess;
use crate::exec::memory::store::Memory;
use crate::exec::warp::{Since, Warp};
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::Sm;
use crate::time::sm::probe::Probe;

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
    repeats: bool,
    polled: Vec<Polled<N>>,
}

/// The search on one SM.
#[derive(Clone, Debug)]
pub(crate) struct Watch<const N: usize> {
    slots: Vec<Iterations<N>>,
    /// How often the contents of the L1 had changed when the search began.
    pub l1_changes: u64,
}

impl<const N: usize> Watch<N> {
    pub(crate) fn new(slots: usize, l1_changes: u64) -> Self {
        let none = Iterations {
            saved: None,
            since: Since::default(),
            outside: false,
            count: 0,
            save_at: 1,
            repeats: false,
            polled: Vec::new(),
        };
        Watch { slots: vec![none; slots], l1_changes }
    }

    /// Lanes of a warp execute an instruction.
    pub(crate) fn issued(&mut self, slot: WarpSlot, lanes: LaneMask, op: Op) {
        let warp = &mut self.slots[slot.index()];
        warp.since.ran |= lanes;
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

    /// A warp closes a loop. It is settled if it has no accesses in flight.
    pub(crate) fn iterated(&mut self, slot: WarpSlot, warp: &Warp<N>, settled: bool) {
        let iterations = &mut self.slots[slot.index()];
        if iterations.repeats || !settled {
            return;
        }
        if std::mem::take(&mut iterations.outside) {
            (iterations.saved, iterations.count, iterations.save_at) = (None, 0, 1);
            return;
        }
        iterations.count += 1;
        if iterations.saved.as_ref().is_some_and(|saved| warp.repeats(saved, iterations.since)) {
            iterations.repeats = true;
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

    /// Whether the warp is known to repeat itself.
    pub(crate) fn repeats(&self, slot: WarpSlot) -> bool {
        self.slots[slot.index()].repeats
    }

    /// What the warp last read in its spin loops.
    pub(crate) fn polls(&self, slot: WarpSlot) -> &[Polled<N>] {
        &self.slots[slot.index()].polled
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Whether every warp of the SM waits or polls in a loop.
    pub(crate) fn only_waits(&self) -> bool {
        self.residents().all(|resident| {
            let mut live = resident.warps.iter().zip(&resident.slots).filter(|(warp, _)| !warp.is_done());
            live.all(|(warp, slot)| {
                let entry = slot.map(|slot| &self.slots[slot.index()]);
                let waits = entry.is_none_or(|entry| entry.spinning || entry.retries || entry.is_blocked());
                waits || warp.control.current().is_none()
            })
        })
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

    /// Whether the warps keep reading what they read since the search began: the L1 holds nothing that differs from
    /// memory, or no line was filled or evicted.
    pub(crate) fn reads_the_same(&self, memory: &Memory) -> bool {
        let l1 = &self.memory.l1;
        self.watch.as_ref().is_some_and(|watch| watch.l1_changes == l1.changes()) || !l1.is_stale(memory)
    }

    /// Begins the search, or begins it anew.
    pub(crate) fn begin_watch(&mut self) {
        self.watch = Some(Watch::new(self.slots.len(), self.memory.l1.changes()));
    }
}
