//! A warp slot: what the pipeline keeps of a warp besides its registers.

use warploom_isa::Pc;

use crate::exec::warp::Warp;
use crate::time::probe::State;
use crate::time::sm::front_end::decode::Unit;
use crate::time::sm::issue::scoreboard::Scoreboard;
use crate::time::sm::units::Backend;

/// Where a warp is, as far as its slot has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Its running path is at an instruction.
    At(Pc),
    /// Every path waits.
    Waits,
    /// All its threads have ended.
    Ended,
}

impl Front {
    /// Where a warp is.
    #[inline]
    pub fn of<const N: usize>(warp: &Warp<N>) -> Front {
        match warp.control.current() {
            _ if warp.is_done() => Front::Ended,
            Some(path) => Front::At(path.pc),
            None => Front::Waits,
        }
    }
}

/// A warp's part of the pipeline. What nearly every look at it needs is on its first line of the host's cache, and registers
/// that are waited for on the next.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// What it does.
    pub(crate) state: State,
    /// For a ready warp: the unit its next instruction needs.
    pub(crate) unit: Unit,
    pub(crate) fetching: bool,
    /// Waits for one access before it goes on.
    pub(crate) held: bool,
    /// All lanes of its last try wait in lock queues.
    pub(crate) blocked: bool,
    /// Goes round in a spin loop.
    pub(crate) spinning: bool,
    /// Goes round in an atomic's own loop around a lock bit.
    pub(crate) retries: bool,
    /// Instructions in its buffer, from `buffer_pc` on.
    pub(crate) buffered: u32,
    pub(crate) buffer_pc: Pc,
    /// The pc that is being fetched.
    pub(crate) fetch_pc: Pc,
    /// Where its kernel's code begins.
    pub(crate) code_start: u32,
    /// Where it is: what the warp itself says, which is further away.
    pub(crate) front: Front,
    resident: u16,
    warp: u16,
    /// The number of its kernel.
    pub(crate) kernel: u16,
    /// Counts the warps that had this slot, to tell late events of an earlier one.
    pub(crate) life: u32,
    /// Accesses that are not done.
    pub(crate) outstanding: u32,
    /// Since which cycle it does what it does.
    pub(crate) since: u64,
    /// For a ready warp: cycles that this unit was busy before it was ready.
    pub(crate) busy_before: u64,
    pub(crate) board: Scoreboard,
    /// Cannot go on before this cycle, for this reason.
    pub(crate) not_before: (u64, State),
    /// Backed off: cannot issue before this cycle.
    pub(crate) delayed_until: u64,
    /// Of the accesses that are not done, stores that unlock: what they do is done already.
    pub(crate) unlocking: u32,
    /// Lanes that were let go by lock queues while it was not blocked.
    pub(crate) granted: u64,
    /// Lanes that retried before their grant arrived; that grant is dropped.
    pub(crate) stale_grants: u64,
}

impl Slot {
    /// A slot that no warp had yet.
    pub(crate) fn empty() -> Slot {
        Slot {
            state: State::Ended,
            since: 0,
            unit: Unit::Control,
            busy_before: 0,
            resident: 0,
            warp: 0,
            front: Front::Ended,
            kernel: 0,
            code_start: 0,
            life: 0,
            board: Scoreboard::default(),
            buffered: 0,
            buffer_pc: Pc(0),
            fetch_pc: Pc(0),
            fetching: false,
            outstanding: 0,
            unlocking: 0,
            held: false,
            not_before: (0, State::Ready),
            delayed_until: 0,
            blocked: false,
            granted: 0,
            stale_grants: 0,
            spinning: false,
            retries: false,
        }
    }

    /// The lanes of `mask` have tried to take locks; those of `queued` wait in queues. The warp is blocked if all of them
    /// do and none has been granted its lock since.
    pub(crate) fn block_on_locks(&mut self, mask: u64, queued: u64) {
        self.blocked = queued == mask && self.granted & mask == 0;
    }

    /// Which CTA of the SM it belongs to.
    #[inline(always)]
    pub(crate) fn resident(&self) -> usize {
        self.resident as usize
    }

    /// Its number in the CTA.
    #[inline(always)]
    pub(crate) fn warp(&self) -> usize {
        self.warp as usize
    }

    /// Cycles before `now` in which the unit of a ready warp was busy, since it was ready or this was last asked.
    #[inline(always)]
    pub(crate) fn waited_for_unit(&mut self, backend: &Backend, now: u64) -> u64 {
        let busy = backend.busy_cycles(self.unit, now);
        busy.saturating_sub(std::mem::replace(&mut self.busy_before, busy))
    }

    /// What its warp does.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it goes round in a spin loop.
    pub fn spins(&self) -> bool {
        self.spinning
    }

    /// Since which cycle.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// The slot as warp `warp` of CTA `resident` finds it at cycle `now`.
    pub(crate) fn next(&self, resident: usize, warp: usize, now: u64) -> Slot {
        let life = self.life + 1;
        let (resident, warp) = (resident as u16, warp as u16);
        Slot { state: State::Fetch, since: now, resident, warp, life, ..Slot::empty() }
    }
}

const _: () = assert!(std::mem::offset_of!(Slot, board) == 64, "what comes before fits one line");
