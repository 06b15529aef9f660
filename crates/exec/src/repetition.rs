//! Whether the functional machine is back in an earlier state.
//!
//! The machine has no clock and no chance in it: what it does follows from the state of its warps, its CTAs and memory.
//! So if all of that is as it was some rounds ago, it repeats itself for ever. The earlier state is taken anew after
//! 64, 128, 256… rounds (Brent's algorithm), so that cycles of any length are found.
//!
//! A register may differ if it only counts: if its value reaches no branch, no address and no memory on the way that
//! was taken since ([`Executed`]). That way is noted for some rounds after each earlier state, as notes cost time.

use warploom_isa::{Kernel, Op, Pc};

use crate::execute::Cta;
use crate::executed::{Executed, Judgement, is_clock};
use crate::kit::lane_mask::LaneMask;
use crate::locks::unit::LockUnits;
use crate::memory::store::Memory;
use crate::sync::barrier::Barriers;
use crate::warp::control::Activation;
use crate::warp::{Since, Warp};

/// The rounds before the first look: kernels that end soon pay nothing.
const FIRST_LOOK: u64 = 64;

/// Memory that is summed up at each look, at most; with more of it nothing is proved.
const MOST_MEMORY_BYTES: u64 = 256 << 20;

/// The part of the rounds after an earlier state in which notes are taken, but at least [`FIRST_LOOK`] rounds.
const NOTED_PART: u64 = 8;

/// A CTA as it was.
struct Before<const N: usize> {
    number: u64,
    warps: Vec<Warp<N>>,
    /// What each warp has executed since, as far as it was noted.
    executed: Vec<Executed>,
    shared: Vec<u8>,
    barriers: Barriers,
}

/// The machine as it was.
struct Earlier<const N: usize> {
    ctas: Vec<Before<N>>,
    lock_bits: Vec<u64>,
    memory: u128,
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
}

impl<const N: usize> Repetition<N> {
    pub fn new(kernel: &Kernel) -> Self {
        let reads_clock = kernel.code.iter().any(|inst| is_clock(inst.op));
        let waits = kernel.may_wait();
        Repetition { rounds: 0, save_at: FIRST_LOOK, earlier: None, note_until: 0, waits, reads_clock }
    }

    /// Whether [`Repetition::note`] must be called for each instruction.
    #[inline]
    pub fn notes(&self) -> bool {
        self.rounds < self.note_until
    }

    /// A warp of the CTA at this place among the resident ones executes an instruction.
    pub fn note(&mut self, cta: (usize, u64), warp: usize, (pc, op): (Pc, Op), activation: &Activation) {
        let before = self.earlier.as_mut().and_then(|earlier| earlier.ctas.get_mut(cta.0));
        if let Some(before) = before.filter(|before| before.number == cta.1) {
            // Branches count as if they went both ways: then a value may seem to matter, but never not to.
            let branch = (op == Op::Bra).then_some((true, true));
            before.executed[warp].note(pc, activation, op, branch);
        }
    }

    /// After a round in which every warp had its turn: whether all is as it was after an earlier one.
    pub fn found<'a>(
        &mut self,
        kernel: &Kernel,
        ctas: impl Iterator<Item = (&'a Cta, &'a [Warp<N>])> + Clone,
        locks: &LockUnits,
        memory: &Memory,
    ) -> bool {
        let noted = self.notes();
        self.rounds += 1;
        if self.rounds < FIRST_LOOK || memory.used() > MOST_MEMORY_BYTES {
            return false;
        }
        let exact = !self.reads_clock;
        if let Some(earlier) = &mut self.earlier
            && (noted || exact)
            && earlier.is_as(ctas.clone(), noted.then_some(kernel))
            && earlier.lock_bits == locks.free_bits()
            && earlier.memory == memory.digest()
        {
            // The same state must be found again, to see what is done in between.
            self.note_until = if noted { u64::MAX } else { 0 };
            return true;
        }
        if self.rounds >= self.save_at {
            self.save_at = 2 * self.rounds;
            let before = |(cta, warps): (&'a Cta, &'a [Warp<N>])| Before {
                number: cta.number,
                warps: warps.to_vec(),
                executed: vec![Executed::default(); warps.len()],
                shared: cta.shared.bytes.clone(),
                barriers: cta.barriers.clone(),
            };
            let (ctas, lock_bits) = (ctas.map(before).collect(), locks.free_bits());
            self.earlier = Some(Earlier { ctas, lock_bits, memory: memory.digest() });
            let noted_rounds = (self.rounds / NOTED_PART).max(FIRST_LOOK);
            self.note_until = if self.waits { self.rounds + noted_rounds } else { 0 };
        }
        false
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
            let Before { number, warps: warps_before, executed, shared, barriers } = before;
            let mut warps = warps_before.iter().zip(warps).zip(executed);
            *number == cta.number
                && *shared == cta.shared.bytes
                && *barriers == cta.barriers
                && warps.all(|((before, warp), executed)| repeats(warp, before, executed, noted))
        };
        self.ctas.iter_mut().all(|before| ctas.next().is_some_and(|now| same(before, now)))
            && ctas.next().is_none()
    }
}

/// Whether a warp does again what it did since an earlier state.
fn repeats<const N: usize>(
    warp: &Warp<N>,
    before: &Warp<N>,
    executed: &mut Executed,
    noted: Option<&Kernel>,
) -> bool {
    // The order of splits counts, too: warps take their turns in it.
    let since = Since { ran: LaneMask::first_lanes(N as u32), crossed: true };
    let Some(kernel) = noted else { return warp.repeats(before, since) };
    // Which words of local memory were accessed is not noted.
    let [registers, predicates, local] = warp.counts(before);
    let first = registers + predicates;
    warp.is_where(before, since)
        && (first..first + local).all(|word| !warp.differs(before, word))
        && executed.judge(kernel, before, warp) == Judgement::Repeats
}
