//! A warp slot: what the pipeline keeps of a warp besides its registers.

use warploom_isa::Pc;

use crate::exec::warp::Warp;
use crate::exec::warp::control::Control;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::copy_engine::BulkGroups;
use crate::time::sm::execution_units::ExecutionUnits;
use crate::time::sm::front_end::decode::{ExecUnit, next};
use crate::time::sm::front_end::fetch::Fetch;
use crate::time::sm::issue::copies::CopyGroups;
use crate::time::sm::issue::products::ProductGroups;
use crate::time::sm::issue::scoreboard::Scoreboard;
use crate::time::sm::probe::{Probe, State};

/// A warp's part of the pipeline.
///
/// Nearly every look at a warp needs its status, position, buffer and occupant, so these fill one cache line of the
/// host. The scoreboard begins the next.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) status: Status,
    pub(crate) position: Position,
    pub(crate) buffer: Buffer,
    pub(crate) occupant: Occupant,
    pub(crate) board: Scoreboard,
    /// The warp cannot go on before this cycle, for this reason.
    pub(crate) not_before: (Cycle, State),
    /// When its last atomic without a result has left the SM.
    pub(crate) silent_left: Cycle,
    /// When paths of the warp that sleep wake up.
    pub(crate) sleeps_until: Cycle,
    /// Has yielded before the poll that comes next.
    pub(crate) yielded: bool,
    /// Waits at a fence for accesses of its SM.
    pub(crate) fenced: bool,
    /// When its last access was done.
    pub(crate) quiet_since: Cycle,
    /// Of the outstanding accesses, stores that unlock. They have already taken effect.
    pub(crate) unlocking: u32,
    /// Of the outstanding accesses, stores to shared memory, if barriers wait for them.
    pub(crate) shared_stores: u32,
    /// Its asynchronous copies.
    pub(crate) copies: CopyGroups,
    /// Its products with other warps (`wgmma`), once there is one.
    pub(crate) products: Option<Box<ProductGroups>>,
    /// Its bulk copies, once there is one.
    pub(crate) bulk: Option<Box<BulkGroups>>,
    /// Iterates in a spin loop.
    pub(crate) spinning: bool,
    /// Has iterated in a spin loop since the machine last asked.
    pub(crate) spun: bool,
    /// Iterates in an atomic's own loop around a lock bit.
    pub(crate) retries: bool,
    /// Lanes that lock queues granted their lock while the warp was not blocked.
    pub(crate) granted: LaneMask,
    /// Lanes that retried before their grant arrived; that grant is dropped.
    pub(crate) stale_grants: LaneMask,
}

/// What a warp does and what it waits for.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) state: State,
    /// For a ready warp: the unit that its next instruction needs.
    pub(crate) unit: ExecUnit,
    /// Waits for one access before it goes on.
    pub(crate) held: bool,
    /// All lanes of its last try wait in lock queues.
    pub(crate) blocked: bool,
    /// Accesses that are not complete.
    pub(crate) outstanding: u32,
    /// The first cycle that is not accounted for yet; the warp has been in its state since then.
    pub(crate) since: Cycle,
    /// For a ready warp: cycles that its unit had been busy when the warp became ready.
    busy_before: u64,
}

impl Status {
    /// A warp becomes ready for a unit at `now`.
    #[inline(always)]
    pub(crate) fn begin_wait_for_unit(
        &mut self,
        units: &ExecutionUnits,
        unit: ExecUnit,
        slot: WarpSlot,
        now: Cycle,
    ) {
        self.busy_before = units.busy_cycles(unit, slot.index(), now);
    }

    /// The warp issues at `now`: its state until then, and the cycle of the issue, are accounted for. Whatever it does
    /// next, it no longer waits for the unit.
    #[inline(always)]
    pub(crate) fn account_issue(&mut self, probe: &mut impl Probe, slot: WarpSlot, now: Cycle) {
        // The second instruction of a cycle adds nothing.
        if now >= self.since {
            probe.spent(slot, self.state, self.since, now - self.since);
            probe.spent(slot, State::Issued, now, 1);
            self.since = now + 1;
        }
        self.state = State::Issued;
    }

    /// Cycles before `now` in which the unit of a ready warp was busy, since the warp became ready or this was last
    /// asked.
    #[inline(always)]
    pub(crate) fn waited_for_unit(&mut self, units: &ExecutionUnits, slot: WarpSlot, now: Cycle) -> u64 {
        let busy = units.busy_cycles(self.unit, slot.index(), now);
        let waited = busy.saturating_sub(std::mem::replace(&mut self.busy_before, busy));
        waited.min(now.saturating_sub(self.since))
    }
}

/// Where a warp is: a copy of what the warp itself says, which lies further away in the host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The running path is at this instruction.
    At(Pc),
    /// Every path waits.
    Waiting,
    /// All threads have ended.
    Ended,
}

impl Position {
    #[inline]
    pub(crate) fn of<const N: usize>(warp: &Warp<N>) -> Position {
        match warp.control.current() {
            _ if warp.is_done() => Position::Ended,
            Some(path) => Position::At(path.pc),
            None => Position::Waiting,
        }
    }
}

/// A warp's instruction buffer.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    /// Instructions in it, from `pc` on.
    pub(crate) count: u32,
    pub(crate) pc: Pc,
    /// A fetch is in flight, or due.
    pub(crate) fetching: bool,
    /// The pc of that fetch.
    pub(crate) fetch_pc: Pc,
}

/// The warp that has the slot.
#[derive(Clone, Debug)]
pub(crate) struct Occupant {
    resident: u16,
    warp: u16,
    /// The number of its kernel.
    pub(crate) kernel: u16,
    /// Where its kernel's code begins, in instructions.
    pub(crate) code_start: u32,
    /// Counts the warps that had this slot. An event with another number is for an earlier one.
    pub(crate) life: u32,
}

impl Occupant {
    /// The index of its CTA among the SM's residents.
    #[inline(always)]
    pub(crate) fn resident(&self) -> usize {
        self.resident as usize
    }

    /// Its number in the CTA.
    #[inline(always)]
    pub(crate) fn warp(&self) -> usize {
        self.warp as usize
    }
}

impl Slot {
    /// A slot that no warp had yet.
    pub(crate) fn empty() -> Slot {
        Slot {
            status: Status {
                state: State::Drain,
                unit: ExecUnit::Control,
                held: false,
                blocked: false,
                outstanding: 0,
                since: Cycle(0),
                busy_before: 0,
            },
            position: Position::Ended,
            buffer: Buffer { count: 0, pc: Pc(0), fetching: false, fetch_pc: Pc(0) },
            occupant: Occupant { resident: 0, warp: 0, kernel: 0, code_start: 0, life: 0 },
            board: Scoreboard::default(),
            not_before: (Cycle(0), State::Ready),
            silent_left: Cycle(0),
            sleeps_until: Cycle::NEVER,
            yielded: false,
            fenced: false,
            quiet_since: Cycle(0),
            unlocking: 0,
            shared_stores: 0,
            copies: CopyGroups::default(),
            bulk: None,
            products: None,
            spinning: false,
            spun: false,
            retries: false,
            granted: LaneMask::NONE,
            stale_grants: LaneMask::NONE,
        }
    }

    /// The slot as warp `warp` of resident `resident` finds it at cycle `now`.
    pub(crate) fn next(&self, resident: usize, warp: usize, now: Cycle) -> Slot {
        let mut next = Slot::empty();
        (next.status.state, next.status.since) = (State::NoInstruction, now);
        (next.occupant.resident, next.occupant.warp) = (resident as u16, warp as u16);
        next.occupant.life = self.occupant.life + 1;
        next
    }

    /// The warp has issued the instruction at `pc`.
    #[inline(always)]
    pub(crate) fn leave(&mut self, pc: Pc) {
        self.buffer.count -= 1;
        self.buffer.pc = next(pc);
        self.status.blocked = false;
    }

    /// The warp has issued the instruction at `pc`, which does not change its path. Returns whether it goes on with the
    /// next one and this is all to be known of it; if not, it remains to be found out where it is.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, control: &mut Control, pc: Pc) -> bool {
        let goes_on = control.advance();
        if goes_on {
            self.leave(pc);
            self.position = Position::At(next(pc));
        }
        goes_on
    }

    /// Begins to fetch if there is room for instructions, of which the buffer may hold so many before, and if any are
    /// left in the code. Returns whether it does.
    #[inline(always)]
    pub(crate) fn begins_fetch(&mut self, fetch: &Fetch, instructions: usize) -> bool {
        let buffer = &mut self.buffer;
        if !buffer.fetching
            && fetch.has_room(buffer.count)
            && let Position::At(pc) = self.position
            // Nothing comes after the last instruction.
            && pc.index() + (buffer.count as usize) < instructions
        {
            buffer.fetching = true;
            return true;
        }
        false
    }

    pub(crate) fn state(&self) -> State {
        self.status.state
    }

    /// Since which cycle the warp is in its state.
    pub(crate) fn since(&self) -> Cycle {
        self.status.since
    }

    /// Whether the warp iterates in a spin loop.
    pub(crate) fn spins(&self) -> bool {
        self.spinning
    }

    /// Whether all lanes of the warp's last try wait in lock queues.
    pub(crate) fn is_blocked(&self) -> bool {
        self.status.blocked
    }

    /// A lock queue's grant to a lane arrives. Returns whether the warp may go on.
    #[inline]
    pub(crate) fn take_grant(&mut self, lane: u32) -> bool {
        if self.stale_grants.contains(lane as usize) {
            self.stale_grants &= !LaneMask::of(lane as usize);
            return false;
        }
        if !std::mem::take(&mut self.status.blocked) {
            self.granted |= LaneMask::of(lane as usize);
        }
        true
    }

    /// The lanes of `mask` have tried to take locks; those of `queued` wait in queues. The warp is blocked if all of
    /// them do and none has been granted its lock since.
    pub(crate) fn block_on_locks(&mut self, mask: LaneMask, queued: LaneMask) {
        self.status.blocked = queued == mask && (self.granted & mask).is_empty();
    }
}

const _: () = assert!(std::mem::offset_of!(Slot, board) == 64, "what comes before fits one cache line");
