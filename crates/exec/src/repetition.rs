//! Whether the functional machine is back in an earlier state.
//!
//! The machine has no clock and no chance in it: what it does follows from the state of its warps, its CTAs and memory.
//! So if all of that is as it was some rounds ago, it repeats itself for ever. The earlier state is taken anew after
//! 64, 128, 256… rounds (Brent's algorithm), so that cycles of any length are found.
//!
//! A register or a word of local memory may differ if it only counts: if its value reaches no branch, no address and no
//! memory on the way that was taken since ([`Executed`]). That way is noted for some rounds after each earlier state,
//! as notes cost time.
//!
//! A pause whose length depends on the clock never repeats itself. So if memory was as it is already at the state
//! before, everything is noted, and a launch in which every warp only waits for `hang.suspect_cycles` is suspected.

use warploom_isa::{Kernel, Op, Pc};

use crate::execute::Cta;
use crate::executed::{Executed, Judgement, is_clock};
use crate::kit::lane_mask::LaneMask;
use crate::locks::unit::LockUnits;
use crate::memory::access::WarpAccess;
use crate::memory::store::Memory;
use crate::stop::HangReason;
use crate::sync::barrier::Barriers;
use crate::sync::cluster::ClusterBarrier;
use crate::warp::control::Activation;
use crate::warp::{Since, Warp};

/// The rounds before the first look: kernels that end soon pay nothing.
const FIRST_LOOK: u64 = 64;

/// Memory that is summed up at each look, at most; with more of it nothing is proved.
const MOST_MEMORY_BYTES: u64 = 256 << 20;

/// The part of the rounds after an earlier state in which notes are taken, but at least [`FIRST_LOOK`] rounds.
const NOTED_PART: u64 = 8;

/// How often memory is compared with what it was before a launch is suspected.
const CHECKS: u64 = 8;

/// A CTA as it was.
struct Before<const N: usize> {
    number: u64,
    warps: Vec<WarpBefore<N>>,
    shared: Vec<u8>,
    barriers: Barriers,
    cluster: Option<ClusterBarrier>,
}

struct WarpBefore<const N: usize> {
    state: Warp<N>,
    /// What it has executed since, as far as it was noted.
    executed: Executed,
    /// It came back, and nothing that it has computed since could end its loop.
    waits: bool,
}

/// The machine as it was.
struct Earlier<const N: usize> {
    ctas: Vec<Before<N>>,
    lock_bits: Vec<u64>,
    memory: u128,
    clock: u64,
    /// While memory is as it was at the state before this one, too: when to compare it next.
    quiet: Option<u64>,
}

/// The search for an earlier state.
pub struct Repetition<const N: usize> {
    rounds: u64,
    save_at: u64,
    earlier: Option<Earlier<N>>,
    /// Until when it is noted what warps execute.
    note_until: u64,
    /// The kernel may wait for other threads.
    waits: bool,
    /// The kernel can read a clock, which is different every time.
    reads_clock: bool,
    /// The machine was back in its earlier state once.
    came_back: bool,
    /// `hang.suspect_cycles`.
    patience: u64,
}

/// What is found after a round.
pub enum Found {
    Nothing,
    /// The launch seems to hang. It goes on for a while, to see what it does.
    Something,
    Hang(HangReason),
}

/// The machine after a round.
pub struct Now<'a, C> {
    pub kernel: &'a Kernel,
    pub ctas: C,
    pub locks: &'a LockUnits,
    pub memory: &'a Memory,
    pub clock: u64,
}

impl<const N: usize> Repetition<N> {
    pub fn new(kernel: &Kernel, patience: u64) -> Self {
        Repetition {
            rounds: 0,
            save_at: FIRST_LOOK,
            earlier: None,
            note_until: 0,
            waits: kernel.may_wait(),
            reads_clock: kernel.code.iter().any(|inst| is_clock(inst.op)),
            came_back: false,
            patience,
        }
    }

    /// Whether [`Repetition::note`] must be called for each instruction, and [`Repetition::note_local`].
    #[inline]
    pub fn notes(&self) -> bool {
        self.rounds < self.note_until
    }

    fn executed(&mut self, (at, number): (usize, u64), warp: usize) -> Option<&mut Executed> {
        let before = self.earlier.as_mut()?.ctas.get_mut(at).filter(|before| before.number == number)?;
        Some(&mut before.warps[warp].executed)
    }

    /// A warp of the CTA at this place among the resident ones executes an instruction.
    pub fn note(&mut self, cta: (usize, u64), warp: usize, (pc, op): (Pc, Op), activation: &Activation) {
        if let Some(executed) = self.executed(cta, warp) {
            // Branches count as if they went both ways: then a value may seem to matter, but never not to.
            let branch = (op == Op::Bra).then_some((true, true));
            executed.note(pc, activation, op, branch);
        }
    }

    /// It accesses local memory; generic addresses of it begin at `window`.
    pub fn note_local(&mut self, cta: (usize, u64), warp: usize, access: &WarpAccess<N>, window: u64) {
        if let Some(executed) = self.executed(cta, warp) {
            executed.note_local(access.pc, &access.activation, access.local_words(window));
        }
    }

    /// After a round in which every warp had its turn: whether all is as it was after an earlier one, or every warp
    /// only waits.
    pub fn look<'a>(
        &mut self,
        now: Now<'_, impl Iterator<Item = (&'a Cta, &'a [Warp<N>])> + Clone>,
    ) -> Found {
        let noted = self.notes();
        self.rounds += 1;
        if self.rounds < FIRST_LOOK || now.memory.used() > MOST_MEMORY_BYTES {
            return Found::Nothing;
        }
        let Now { kernel, memory, clock, .. } = now;
        let (exact, locks) = (!self.reads_clock, now.locks);
        if let Some(earlier) = &mut self.earlier {
            if (noted || exact)
                && earlier.is_as(now.ctas.clone(), noted.then_some(kernel))
                && earlier.lock_bits == locks.free_bits()
                && earlier.memory == memory.digest()
            {
                // The same state must be found again, to see what is done in between.
                self.note_until = if noted { u64::MAX } else { 0 };
                let again = std::mem::replace(&mut self.came_back, true);
                return if again { Found::Hang(HangReason::Repeats) } else { Found::Something };
            }
            if let Some(check_at) = earlier.quiet.filter(|_| !self.came_back)
                && earlier.only_waits(kernel, now.ctas.clone())
                && clock >= check_at
            {
                let same = earlier.lock_bits == locks.free_bits() && earlier.memory == memory.digest();
                earlier.quiet = same.then_some(clock + self.patience / CHECKS);
                let quiet = clock - earlier.clock;
                if same && quiet >= self.patience {
                    return Found::Hang(HangReason::Quiet(quiet));
                }
                if same && quiet >= self.patience / 2 {
                    return Found::Something;
                }
            }
        }
        if self.rounds >= self.save_at {
            self.save_at = 2 * self.rounds;
            let digest = memory.digest();
            let was_so = self.earlier.as_ref().is_some_and(|earlier| earlier.memory == digest);
            let is_quiet = self.waits && was_so && self.patience > 0;
            let ctas = now.ctas.map(Before::new).collect();
            let quiet = is_quiet.then_some(clock + self.patience / CHECKS);
            self.earlier = Some(Earlier { ctas, lock_bits: locks.free_bits(), memory: digest, clock, quiet });
            let noted_rounds = (self.rounds / NOTED_PART).max(FIRST_LOOK);
            self.note_until = match (self.waits, is_quiet) {
                (true, true) => self.save_at,
                (true, false) => self.rounds + noted_rounds,
                // A loop that does not wait and leaves memory as it is may be endless, too, and count its iterations.
                (false, _) if was_so => self.rounds + noted_rounds,
                (false, _) => 0,
            };
        }
        Found::Nothing
    }
}

impl<const N: usize> Before<N> {
    fn new((cta, warps): (&Cta, &[Warp<N>])) -> Self {
        let warp =
            |warp: &Warp<N>| WarpBefore { state: warp.clone(), executed: Executed::default(), waits: false };
        Before {
            number: cta.number,
            warps: warps.iter().map(warp).collect(),
            shared: cta.shared.bytes.clone(),
            barriers: cta.barriers.clone(),
            cluster: cta.cluster.as_ref().map(|member| member.barrier.clone()),
        }
    }
}

impl<const N: usize> Earlier<N> {
    /// With a kernel, what its warps have executed since was noted.
    fn is_as<'a>(
        &mut self,
        mut ctas: impl Iterator<Item = (&'a Cta, &'a [Warp<N>])>,
        noted: Option<&Kernel>,
    ) -> bool {
        let same = |before: &mut Before<N>, (cta, warps): (&Cta, &[Warp<N>])| {
            let mut warps = before.warps.iter_mut().zip(warps);
            before.number == cta.number
                && before.shared == cta.shared.bytes
                && before.barriers == cta.barriers
                && before.cluster.as_ref() == cta.cluster.as_ref().map(|member| &member.barrier)
                && warps.all(|(before, warp)| before.repeats(warp, noted))
        };
        self.ctas.iter_mut().all(|before| ctas.next().is_some_and(|now| same(before, now)))
            && ctas.next().is_none()
    }

    /// Whether every warp is known to do nothing but wait, and shared memory is as it was.
    fn only_waits<'a>(
        &mut self,
        kernel: &Kernel,
        mut ctas: impl Iterator<Item = (&'a Cta, &'a [Warp<N>])>,
    ) -> bool {
        let mut all = true;
        for before in &mut self.ctas {
            let Some((cta, warps)) = ctas.next() else { return false };
            if before.number != cta.number || before.shared != cta.shared.bytes {
                return false;
            }
            for (before, warp) in before.warps.iter_mut().zip(warps) {
                before.waits = before.waits || before.is_back_and_waits(kernel, warp);
                all &= before.waits;
            }
        }
        all
    }
}

impl<const N: usize> WarpBefore<N> {
    /// Whether the warp does again what it did since. With a kernel, what it has executed was noted.
    fn repeats(&mut self, now: &Warp<N>, noted: Option<&Kernel>) -> bool {
        // The order of splits counts, too: warps take their turns in it.
        let since = Since { ran: LaneMask::first_lanes(N as u32), crossed: true };
        let Some(kernel) = noted else { return now.repeats(&self.state, since) };
        now.is_where(&self.state, since)
            && self.executed.judge(kernel, &self.state, now) == Judgement::Repeats
    }

    fn is_back_and_waits(&mut self, kernel: &Kernel, now: &Warp<N>) -> bool {
        let since = Since { ran: LaneMask::first_lanes(N as u32), crossed: false };
        now.is_where(&self.state, since)
            && self.executed.judge(kernel, &self.state, now) != Judgement::Progress
    }
}
