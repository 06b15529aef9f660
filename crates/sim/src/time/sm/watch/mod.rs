//! The search for warps that loop for ever.
//!
//! Once nothing in memory has changed for a while, the state of each warp is compared with an earlier one whenever it
//! closes a loop. A warp depends only on its own state and on what it reads; if both are as they were, it repeats
//! itself for ever. When every warp that could move does, nothing will change again: a proof. The earlier state is
//! taken anew after 1, 2, 4, 8… iterations (Brent's algorithm), so that cycles of any length are found. When the warp
//! comes to another loop, the count begins anew.
//!
//! The invariant, without which a repetition proves nothing: **everything that a repeating warp has read since its
//! earlier state is what it would read now, and everything that it has written since then is already there.** So an
//! iteration does not count if the warp
//! - has loads or atomics in flight, which may still bring another value;
//! - reached a barrier, where other warps release it and vote.
//!
//! A value that differs, or comes from a clock, does not matter if it reaches no branch, no address and no memory
//! ([`executed`]). If it reaches only branches that have gone both ways already, the warp waits: that is no proof, but
//! enough for a suspicion.
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
use warploom_isa::{Kernel, Op, Pc};

use crate::exec::executed::{Executed, Judgement};
use crate::exec::locks::holders::{WarpName, shared_offset};
use crate::exec::locks::polled::Polled;
use crate::exec::locks::written::{WordPlace, Written};
use crate::exec::memory::access::WarpAccess;
use crate::exec::memory::store::Memory;
use crate::exec::warp::control::{Activation, Group};
use crate::exec::warp::{Since, Warp};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::time::sm::load_store::transfer::skips_l1;
use crate::time::sm::probe::{Probe, State};
use crate::time::sm::{Context, Resident, Sm};

/// The iterations of one warp.
#[derive(Clone, Debug)]
struct Iterations<const N: usize> {
    /// The earlier state.
    saved: Option<Warp<N>>,
    /// What happened since then.
    since: Since,
    executed: Executed,
    /// No load was in flight then, and the warp read nothing since but its state, memory and clocks.
    certain: bool,
    /// In the present iteration the warp read something else.
    outside: bool,
    count: u64,
    /// The iteration after which the state is saved anew.
    save_at: u64,
    /// All iterations, also those before the count began anew.
    total: u64,
    /// The backward branches that the warp met.
    latches: SmallVec<[Latch; 4]>,
    repeats: bool,
    /// It would repeat itself if lanes that wait where paths meet did not run.
    holds_back: bool,
    /// It does nothing that could end its loop.
    waits: bool,
    /// Stores in flight that began since the search did.
    stores: SmallVec<[TransferId; 8]>,
    /// Of those, the ones that were in flight when the warp was found to repeat itself.
    unfinished: SmallVec<[TransferId; 8]>,
    polled: Vec<Polled<N>>,
}

/// A backward branch that a warp took.
#[derive(Clone, Copy, Debug)]
struct Latch {
    pc: Pc,
    /// In which iteration it was taken last.
    last: u64,
    /// The most iterations between two times.
    longest_gap: u64,
    /// It was taken since the count of iterations began anew.
    is_of_loop: bool,
}

/// Stands for a read of something besides the warp's state and memory, among the backward branches.
const OUTSIDE: Pc = Pc(u32::MAX);

/// With loads always in flight, the state is saved this many iterations late.
const PATIENCE_FOR_LOADS: u64 = 16;

impl<const N: usize> Iterations<N> {
    fn new() -> Self {
        Iterations {
            saved: None,
            since: Since::default(),
            executed: Executed::default(),
            certain: false,
            outside: false,
            count: 0,
            save_at: 1,
            total: 0,
            latches: SmallVec::new(),
            repeats: false,
            holds_back: false,
            waits: false,
            stores: SmallVec::new(),
            unfinished: SmallVec::new(),
            polled: Vec::new(),
        }
    }

    /// The warp took a backward branch. Returns whether it left the loop that it was in: some other one has not been
    /// taken for much longer than ever before.
    fn left_loop(&mut self, pc: Pc) -> bool {
        let total = self.total;
        match self.latches.iter_mut().find(|latch| latch.pc == pc) {
            Some(latch) => {
                latch.longest_gap = latch.longest_gap.max(total - latch.last);
                (latch.last, latch.is_of_loop) = (total, true);
            }
            None => self.latches.push(Latch { pc, last: total, longest_gap: 0, is_of_loop: true }),
        }
        let gone = |latch: &Latch| latch.is_of_loop && total - latch.last > 4 + 4 * latch.longest_gap;
        let left = self.latches.iter().any(gone);
        if left {
            self.latches.iter_mut().for_each(|latch| latch.is_of_loop = latch.last == total);
        }
        left
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
    /// In a search for values that are written again and again: those. Nothing can be proved then.
    written: Option<Box<Written>>,
    /// In such a search: enough time has passed since the states were saved, so that a warp that is back in its own
    /// does nothing else.
    compares: bool,
}

/// An instruction as the search sees it.
pub(crate) struct Watched<'a> {
    pub(crate) path: Group,
    pub(crate) activation: &'a Activation,
    pub(crate) op: Op,
    /// For a branch: whether lanes took it, and whether lanes did not.
    pub(crate) branch: Option<(bool, bool)>,
}

impl<const N: usize> Watch<N> {
    fn new(slots: usize, l1_changes: u64, l1_agrees: bool, written: Option<Box<Written>>) -> Self {
        Watch { slots: vec![Iterations::new(); slots], l1_changes, l1_agrees, written, compares: true }
    }

    /// Whether a change of shared memory must be noticed.
    pub(crate) fn proves(&self) -> bool {
        self.written.is_none()
    }

    /// Lanes of a warp execute an instruction.
    pub(crate) fn issued(&mut self, slot: WarpSlot, watched: Watched<'_>) {
        let warp = &mut self.slots[slot.index()];
        let Watched { path, activation, op, branch } = watched;
        warp.since.ran |= path.mask;
        warp.executed.note(path.pc, activation, op, branch);
        match op {
            Op::Bar(_) | Op::ClusterBar(_) => warp.outside = true,
            Op::BarWarp => warp.since.crossed = true,
            op if op.is_exchange() => warp.since.crossed = true,
            _ => {}
        }
    }

    /// An instruction accesses these words of local memory: first and last.
    pub(crate) fn accessed_local(
        &mut self,
        slot: WarpSlot,
        pc: Pc,
        activation: &Activation,
        words: (u32, u32),
    ) {
        self.slots[slot.index()].executed.note_local(pc, activation, words);
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
    pub(crate) fn iterated(
        &mut self,
        slot: WarpSlot,
        (kernel, warp): (&Kernel, &Warp<N>),
        latch: Pc,
        outstanding: usize,
    ) {
        let iterations = &mut self.slots[slot.index()];
        if iterations.repeats {
            return;
        }
        // Whatever is not known as a store may be a load.
        let arrived = outstanding <= iterations.stores.len();
        iterations.total += 1;
        let mut left = iterations.left_loop(latch);
        if std::mem::take(&mut iterations.outside) {
            iterations.certain = false;
            left |= iterations.left_loop(OUTSIDE);
        }
        if left && self.written.is_none() {
            (iterations.saved, iterations.count, iterations.save_at) = (None, 0, 1);
            iterations.polled.clear();
        }
        iterations.count += 1;
        let Iterations { saved, since, executed, .. } = iterations;
        // Which of them ran together matters to lanes that communicate, but hardly to a suspicion.
        let apart = Since { crossed: false, ..*since };
        let held_back = warp.control.held_back() & !since.ran;
        let but_those = |since: Since| Since { ran: since.ran | held_back, ..since };
        // While memory changes, a warp that waits now may have worked before. So its state is saved but once, for the
        // whole time in which it must have done nothing else.
        if self.written.is_some() {
            iterations.save_at = if saved.is_some() { u64::MAX } else { 1 };
        }
        let comparable = |saved: &&Warp<N>| self.compares && warp.is_where(saved, but_those(apart));
        if let Some(saved) = saved.as_ref().filter(comparable) {
            let judgement = executed.judge(kernel, saved, warp);
            let certain = iterations.certain && arrived && self.written.is_none();
            let exact = certain && warp.is_where(saved, but_those(*since));
            let all_ran = held_back.is_empty();
            if judgement == Judgement::Repeats && exact {
                iterations.repeats = all_ran;
                iterations.holds_back = !all_ran;
                iterations.unfinished = iterations.stores.clone();
            }
            iterations.waits |= all_ran && judgement != Judgement::Progress;
        }
        let overdue = iterations.count >= iterations.save_at.saturating_add(PATIENCE_FOR_LOADS);
        if !iterations.repeats && iterations.count >= iterations.save_at && (arrived || overdue) {
            iterations.saved = Some(warp.clone());
            iterations.since = Since::default();
            iterations.executed.clear();
            iterations.certain = arrived;
            iterations.save_at = iterations.count.saturating_mul(2);
        }
    }

    /// A store or an atomic is complete. Returns whether a word of shared memory has changed.
    pub(crate) fn wrote(&mut self, who: WarpName, access: &WarpAccess<N>, shared_window: u64) -> bool {
        self.written.as_mut().is_some_and(|written| written.note(who, access, shared_window))
    }

    /// The words that are written, in a search for values that are written again and again.
    pub(crate) fn written(&self) -> Option<&Written> {
        self.written.as_deref()
    }

    /// A warp has polled: the values are in.
    pub(crate) fn polled(&mut self, slot: WarpSlot, access: &WarpAccess<N>) {
        Polled::note(&mut self.slots[slot.index()].polled, access);
    }

    /// Whether the warp is known to repeat itself, and what it wrote is there.
    pub(crate) fn repeats(&self, slot: WarpSlot) -> bool {
        let warp = &self.slots[slot.index()];
        warp.repeats && warp.unfinished.is_empty()
    }

    /// Whether it would, but for lanes that wait where paths meet and have not run.
    fn holds_back(&self, slot: WarpSlot) -> bool {
        self.slots[slot.index()].holds_back
    }

    /// What the warp last read in its spin loops.
    pub(crate) fn polls(&self, slot: WarpSlot) -> &[Polled<N>] {
        &self.slots[slot.index()].polled
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Whether every warp of the SM waits, or has polled in a loop since [`Sm::forget_spins`].
    pub(crate) fn seems_to_wait(&self) -> bool {
        self.each_live(|warp, slot| {
            let entry = slot.map(|slot| &self.slots[slot.index()]);
            let waits = entry.is_none_or(|entry| entry.spun || entry.retries || entry.is_blocked());
            waits || warp.control.current().is_none()
        })
    }

    pub(crate) fn forget_spins(&mut self) {
        self.slots.iter_mut().for_each(|entry| entry.spun = false);
    }

    /// Whether every warp of the SM is known to do nothing but wait: in its loop, or at a barrier for `patience`
    /// cycles. A warp that is not chosen does not wait, unless its scheduler may pass it over for ever and has done so
    /// for as long and, if it has turns, in two of them.
    pub(crate) fn only_waits(&self, now: Cycle, patience: u64) -> bool {
        if self.copies() {
            return false;
        }
        let Some(watch) = &self.watch else { return self.is_empty() };
        self.each_live(|warp, slot| {
            let Some(slot) = slot else { return true };
            let entry = &self.slots[slot.index()];
            // Warps that pass a barrier in each iteration wait there, too, for those that are late.
            let since = now.saturating_sub(entry.since());
            let starves = self.starves_after(slot).filter(|_| entry.state() == State::Ready);
            watch.slots[slot.index()].waits
                || entry.is_blocked()
                || since >= patience && warp.control.current().is_none()
                || starves.is_some_and(|after| since >= patience.max(after))
        })
    }

    fn each_live(&self, holds: impl Fn(&Warp<N>, Option<WarpSlot>) -> bool) -> bool {
        self.residents().all(|resident| {
            let mut live = resident.warps.iter().zip(&resident.slots).filter(|(warp, _)| !warp.is_done());
            live.all(|(warp, slot)| holds(warp, *slot))
        })
    }

    /// Begins a search for values that are written again and again.
    pub(crate) fn watch_writes(&mut self) {
        self.watch = Some(Watch::new(self.slot_count, 0, false, Some(Box::default())));
        self.save_states();
    }

    /// In that search: saves the state of each warp when it next closes a loop.
    pub(crate) fn save_states(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        watch.compares = false;
        watch.written.iter_mut().for_each(|written| written.count_anew());
        for warp in &mut watch.slots {
            (warp.saved, warp.waits) = (None, false);
        }
    }

    /// In that search: from now on compares the states of warps with those that were saved.
    pub(crate) fn compare_states(&mut self) {
        self.watch.iter_mut().for_each(|watch| watch.compares = true);
    }

    /// In that search: the values that are written.
    pub(crate) fn written_mut(&mut self) -> Option<&mut Written> {
        self.watch.as_mut()?.written.as_deref_mut()
    }

    /// In that search: whether the threads undo what they do.
    pub(crate) fn comes_back(&self) -> bool {
        self.watch.as_ref().and_then(Watch::written).is_none_or(Written::comes_back)
    }

    /// In that search: the words that were written and what they hold now, those of shared memory from here.
    pub(crate) fn written_words<'a>(
        &'a self,
        memory: &'a Memory,
    ) -> impl Iterator<Item = (WordPlace, Option<&'a [u8]>)> {
        let written = self.watch.as_ref().and_then(Watch::written);
        written.into_iter().flat_map(Written::words).map(|(place, word)| {
            let bytes = word.bytes as usize;
            let in_shared = |cta: u64| {
                let cta = &self.residents().find(|resident| resident.cta.number == cta)?.cta;
                cta.shared.bytes.get(place.1 as usize..place.1 as usize + bytes)
            };
            (place, place.0.map_or_else(|| memory.read(place.1, bytes), in_shared))
        })
    }

    /// Whether every warp of the SM waits for good or repeats itself, as long as nothing else changes. Warps that
    /// ended or wait must not have accesses in flight; and a CTA that is about to end makes room for another.
    pub(crate) fn never_changes(&self) -> bool {
        self.each_waits_or(|watch, slot| watch.repeats(slot))
    }

    /// The same, if lanes that wait where paths meet do not run.
    pub(crate) fn never_changes_by_itself(&self) -> bool {
        self.each_waits_or(|watch, slot| watch.repeats(slot) || watch.holds_back(slot))
    }

    /// Lets lanes run that wait where paths meet: those that they wait for never come.
    pub(crate) fn run_held_back(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        for resident in self.residents.iter_mut().flatten() {
            for (warp, slot) in resident.warps.iter_mut().zip(&resident.slots) {
                let Some(slot) = *slot else { continue };
                if std::mem::take(&mut watch.slots[slot.index()].holds_back) {
                    warp.control.run_held_back();
                }
            }
        }
    }

    /// Whether a bulk copy is in flight.
    fn copies(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| !engine.is_idle())
    }

    fn each_waits_or(&self, repeats: impl Fn(&Watch<N>, WarpSlot) -> bool) -> bool {
        if self.copies() {
            return false;
        }
        let Some(watch) = &self.watch else { return self.is_empty() };
        self.residents().all(|resident| {
            let waits = |(warp, slot): (&Warp<N>, &Option<WarpSlot>)| {
                let Some(slot) = *slot else { return true };
                let entry = &self.slots[slot.index()];
                let waits = warp.is_done() || entry.is_blocked() || warp.control.current().is_none();
                repeats(watch, slot) || entry.status.outstanding == 0 && waits
            };
            let mut warps = resident.warps.iter().zip(&resident.slots);
            resident.cta.live_warps > 0 && warps.all(waits)
        })
    }

    /// Whether the warps keep reading what they read since the search began.
    pub(crate) fn reads_the_same(&self, context: &Context<'_>, memory: &Memory) -> bool {
        let Some(watch) = &self.watch else { return self.is_empty() };
        let l1 = &self.memory.l1;
        let kept = watch.l1_agrees && !l1.is_stale(memory) || watch.l1_changes == l1.changes();
        kept && self.residents().all(|resident| {
            let kernel = context.of(resident.kernel).launch.kernel;
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
        self.watch = Some(Watch::new(self.slot_count, l1.changes(), agrees, None));
    }
}
