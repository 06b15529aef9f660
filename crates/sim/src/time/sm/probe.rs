//! What can be observed of an SM. The machine tells a [`Probe`], chosen when it is compiled, what happens; nothing in
//! the model reads one. `SmStats` counts; an [`Observer`] is anybody's, and costs a call for each event.

use warploom_isa::{Pc, Space};

use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::Issue;
use crate::time::sm::front_end::decode::Decoded;
use crate::time::sm::stats::SmStats;

/// What a warp does in a cycle. Every cycle of every resident warp is exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Issues an instruction.
    Issued,
    /// Has none to issue: it is being fetched.
    NoInstruction,
    /// Could issue, but the scheduler chose another warp or its unit is busy.
    Ready,
    /// Waits for the result of an execution unit.
    ExecutionDependency,
    /// Waits for the result of a load or an atomic of global, local or constant memory.
    LongScoreboard,
    /// Waits for the result of an access to shared memory, and for none of the above.
    ShortScoreboard,
    /// Waits until its own accesses are done (fences, acquire and release).
    Membar,
    /// Waits at a barrier.
    Barrier,
    /// Some of its lanes wait for others.
    WarpSync,
    /// Sleeps (`nanosleep`), or yields in a spin loop (`units.yield_cycles`).
    Sleeping,
    /// Could issue, but is backed off for some time after an iteration of a spin loop (BOWS).
    BackedOff,
    /// Waits in the queues of locks (`lock_queue.mode`).
    LockQueue,
    /// All its threads have ended; its last stores, or the rest of its CTA, have not.
    Drain,
}

impl State {
    /// How many there are.
    pub const COUNT: usize = 13;

    /// All, in the order in which counts are kept.
    pub const ALL: [State; State::COUNT] = [
        State::Issued,
        State::NoInstruction,
        State::Ready,
        State::ExecutionDependency,
        State::LongScoreboard,
        State::ShortScoreboard,
        State::Membar,
        State::Barrier,
        State::WarpSync,
        State::Sleeping,
        State::BackedOff,
        State::LockQueue,
        State::Drain,
    ];

    /// Its name in reports: Nsight's where the two mean the same.
    pub const fn name(self) -> &'static str {
        match self {
            State::Issued => "issued",
            State::NoInstruction => "no_instruction",
            State::Ready => "ready",
            State::ExecutionDependency => "execution_dependency",
            State::LongScoreboard => "long_scoreboard",
            State::ShortScoreboard => "short_scoreboard",
            State::Membar => "membar",
            State::Barrier => "barrier",
            State::WarpSync => "warp_sync",
            State::Sleeping => "sleeping",
            State::BackedOff => "backed_off",
            State::LockQueue => "lock_queue",
            State::Drain => "drain",
        }
    }
}

/// A CTA that starts or ends on an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtaEvent {
    /// Its number in the grid.
    pub number: u64,
    /// The slot of its first warp; the others follow, except in a run of firmware.
    pub first: WarpSlot,
    /// Its warps.
    pub warps: u32,
}

/// A warp that takes a slot of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpEvent {
    /// The kernel's number in a run of firmware; 0 in a launch.
    pub kernel: u16,
    /// Its CTA's number in the grid, or in the order of starts by firmware.
    pub cta: u64,
    /// Its number in the CTA.
    pub warp: u32,
}

/// A place in memory by which threads communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Global, or the shared memory of a CTA.
    pub space: Space,
    /// Where there.
    pub address: u64,
}

/// Observes one SM of a timed launch. Whatever it does, the machine does the same: nothing reads an observer.
///
/// Every cycle of every resident warp is told by exactly one [`spent`](Observer::spent).
pub trait Observer: Send {
    /// A warp issues an instruction.
    fn issued(&mut self, _now: Cycle, _issue: &Issue) {}

    /// A warp was in a state for some cycles (maybe none), from `from` on.
    fn spent(&mut self, _slot: WarpSlot, _state: State, _from: Cycle, _cycles: u64) {}

    /// Of the cycles that a warp has been ready since the last call, so many its unit was busy. Told before or after
    /// the `spent` of those cycles, and before that of the next state.
    fn unit_busy(&mut self, _slot: WarpSlot, _cycles: u64) {}

    fn cta_started(&mut self, _now: Cycle, _cta: CtaEvent) {}

    fn cta_ended(&mut self, _now: Cycle, _cta: CtaEvent) {}

    /// A warp takes a slot: its CTA has started, or it is back after a yield.
    fn warp_entered(&mut self, _now: Cycle, _slot: WarpSlot, _warp: WarpEvent) {}

    /// A warp yields and leaves its slot, to come back later.
    fn warp_left(&mut self, _now: Cycle, _slot: WarpSlot) {}

    /// A warp that yielded is back, maybe in another slot.
    fn warp_came_back(&mut self, _now: Cycle, _slot: WarpSlot) {}

    /// Lanes of a warp read what their spin loop waits for, each the word that `word` tells.
    fn polled(&mut self, _slot: WarpSlot, _lanes: LaneMask, _word: &dyn Fn(usize) -> Word) {}

    /// A warp executed the branch of a spin loop; these lanes iterate once more.
    fn spinning(&mut self, _now: Cycle, _slot: WarpSlot, _lanes: LaneMask) {}

    /// A lane changed a word of memory. With `took` it is the word its spin loop waits for: it took a lock.
    fn wrote(&mut self, _now: Cycle, _slot: WarpSlot, _lane: usize, _word: Word, _took: bool) {}

    /// The number of lines that the L1 has asked for and not received has changed.
    fn outstanding(&mut self, _now: Cycle, _misses: usize) {}
}

/// Lanes of a warp that access memory together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessing {
    pub slot: WarpSlot,
    pub pc: Pc,
    pub lanes: LaneMask,
}

/// A warp's arrival at a barrier of its CTA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierArrival {
    pub slot: WarpSlot,
    pub pc: Pc,
    /// The barrier's number in the CTA.
    pub id: u32,
    /// Nobody had arrived yet in this phase.
    pub is_first: bool,
    /// It ends the phase.
    pub is_last: bool,
}

/// [`Observer`] as the machine is compiled with it. A pair of probes is a probe.
pub(crate) trait Probe: Send {
    /// Whether it is told of accesses to memory and barriers, which takes the machine some time: all methods from
    /// [`polled`](Probe::polled) on.
    const WATCHES_MEMORY: bool = false;

    /// A warp issues.
    fn issued(&mut self, now: Cycle, issue: &Issue, inst: &Decoded);

    /// A warp was in a state for some cycles (maybe none), from `from` on.
    fn spent(&mut self, slot: WarpSlot, state: State, from: Cycle, cycles: u64);

    /// Of the cycles that a warp has been ready since the last call, so many its unit was busy.
    fn unit_busy(&mut self, _slot: WarpSlot, _cycles: u64) {}

    /// A CTA starts.
    fn cta_started(&mut self, _now: Cycle, _cta: CtaEvent) {}

    /// A CTA has ended.
    fn cta_ended(&mut self, _now: Cycle, _cta: CtaEvent) {}

    /// A warp takes a slot: its CTA has started, or it has come back.
    fn warp_entered(&mut self, _now: Cycle, _slot: WarpSlot, _warp: WarpEvent) {}

    /// A CTA of a kernel is about to start in these slots. Told only where kernels run together.
    fn cta_of_kernel(&mut self, _kernel: u16, _slots: &[Option<WarpSlot>]) {}

    /// The counts of a kernel, if it keeps them apart.
    fn of_kernel(&self, _kernel: u16) -> Option<&SmStats> {
        None
    }

    /// A warp leaves its slot, to come back later.
    fn warp_left(&mut self, _now: Cycle, _slot: WarpSlot) {}

    /// A warp that left is back, in a slot.
    fn warp_came_back(&mut self, _now: Cycle, _slot: WarpSlot) {}

    /// Lines that the L1 waits for have become so many.
    fn outstanding(&mut self, _now: Cycle, _misses: usize) {}

    /// A warp executed the branch of a spin loop; these lanes iterate once more.
    fn spinning(&mut self, _now: Cycle, _slot: WarpSlot, _lanes: LaneMask) {}

    /// Lanes of a warp issue the read of what their spin loop waits for, each of the word that `word` tells.
    fn polled(&mut self, _now: Cycle, _by: Accessing, _word: impl Fn(usize) -> Word) {}

    /// Memory served lanes that tried to take locks; those of `took` did. An `exclusive` lock has one holder.
    fn tried(
        &mut self,
        _now: Cycle,
        _by: Accessing,
        _took: LaneMask,
        _exclusive: bool,
        _word: impl Fn(usize) -> Word,
    ) {
    }

    /// Lanes changed words of memory. They took locks if the words are what their spin loop waits for.
    fn wrote(&mut self, _now: Cycle, _by: Accessing, _word: impl Fn(usize) -> Word, _took: bool) {}

    /// An access to memory issues.
    fn access_began(&mut self, _now: Cycle, _id: TransferId) {}

    /// A piece of an access is sent to the L1, to memory, or to shared memory.
    fn sent(&mut self, _pc: Pc) {}

    /// An access is complete.
    fn access_done(&mut self, _now: Cycle, _id: TransferId, _pc: Pc) {}

    /// A warp arrives at a barrier.
    fn arrived(&mut self, _now: Cycle, _arrival: BarrierArrival) {}

    /// A window has ended, and requests are about to be served. SMs are told one after the other, in order.
    fn window_ended(&mut self) {}
}

/// Nobody looks.
impl Probe for () {
    fn issued(&mut self, _now: Cycle, _issue: &Issue, _inst: &Decoded) {}
    fn spent(&mut self, _slot: WarpSlot, _state: State, _from: Cycle, _cycles: u64) {}
}

impl<A: Probe, B: Probe> Probe for (A, B) {
    const WATCHES_MEMORY: bool = A::WATCHES_MEMORY || B::WATCHES_MEMORY;

    #[inline]
    fn issued(&mut self, now: Cycle, issue: &Issue, inst: &Decoded) {
        self.0.issued(now, issue, inst);
        self.1.issued(now, issue, inst);
    }

    #[inline]
    fn spent(&mut self, slot: WarpSlot, state: State, from: Cycle, cycles: u64) {
        self.0.spent(slot, state, from, cycles);
        self.1.spent(slot, state, from, cycles);
    }

    #[inline]
    fn unit_busy(&mut self, slot: WarpSlot, cycles: u64) {
        self.0.unit_busy(slot, cycles);
        self.1.unit_busy(slot, cycles);
    }

    fn cta_started(&mut self, now: Cycle, cta: CtaEvent) {
        self.0.cta_started(now, cta);
        self.1.cta_started(now, cta);
    }

    fn cta_ended(&mut self, now: Cycle, cta: CtaEvent) {
        self.0.cta_ended(now, cta);
        self.1.cta_ended(now, cta);
    }

    fn warp_entered(&mut self, now: Cycle, slot: WarpSlot, warp: WarpEvent) {
        self.0.warp_entered(now, slot, warp);
        self.1.warp_entered(now, slot, warp);
    }

    fn cta_of_kernel(&mut self, kernel: u16, slots: &[Option<WarpSlot>]) {
        self.0.cta_of_kernel(kernel, slots);
        self.1.cta_of_kernel(kernel, slots);
    }

    fn of_kernel(&self, kernel: u16) -> Option<&SmStats> {
        self.0.of_kernel(kernel).or_else(|| self.1.of_kernel(kernel))
    }

    fn warp_left(&mut self, now: Cycle, slot: WarpSlot) {
        self.0.warp_left(now, slot);
        self.1.warp_left(now, slot);
    }

    fn warp_came_back(&mut self, now: Cycle, slot: WarpSlot) {
        self.0.warp_came_back(now, slot);
        self.1.warp_came_back(now, slot);
    }

    #[inline]
    fn outstanding(&mut self, now: Cycle, misses: usize) {
        self.0.outstanding(now, misses);
        self.1.outstanding(now, misses);
    }

    fn spinning(&mut self, now: Cycle, slot: WarpSlot, lanes: LaneMask) {
        self.0.spinning(now, slot, lanes);
        self.1.spinning(now, slot, lanes);
    }

    fn polled(&mut self, now: Cycle, by: Accessing, word: impl Fn(usize) -> Word) {
        self.0.polled(now, by, &word);
        self.1.polled(now, by, &word);
    }

    fn tried(
        &mut self,
        now: Cycle,
        by: Accessing,
        took: LaneMask,
        exclusive: bool,
        word: impl Fn(usize) -> Word,
    ) {
        self.0.tried(now, by, took, exclusive, &word);
        self.1.tried(now, by, took, exclusive, &word);
    }

    fn wrote(&mut self, now: Cycle, by: Accessing, word: impl Fn(usize) -> Word, took: bool) {
        self.0.wrote(now, by, &word, took);
        self.1.wrote(now, by, &word, took);
    }

    #[inline]
    fn access_began(&mut self, now: Cycle, id: TransferId) {
        self.0.access_began(now, id);
        self.1.access_began(now, id);
    }

    #[inline]
    fn sent(&mut self, pc: Pc) {
        self.0.sent(pc);
        self.1.sent(pc);
    }

    fn access_done(&mut self, now: Cycle, id: TransferId, pc: Pc) {
        self.0.access_done(now, id, pc);
        self.1.access_done(now, id, pc);
    }

    fn arrived(&mut self, now: Cycle, arrival: BarrierArrival) {
        self.0.arrived(now, arrival);
        self.1.arrived(now, arrival);
    }

    #[inline]
    fn window_ended(&mut self) {
        self.0.window_ended();
        self.1.window_ended();
    }
}
