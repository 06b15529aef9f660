//! Whether the functional machine is back in an earlier state.
//!
//! The machine has no clock and no chance in it: what it does follows from the state of its warps, its CTAs and memory.
//! So if all of that is as it was some rounds ago, it repeats itself for ever. The earlier state is taken anew after
//! 64, 128, 256… rounds (Brent's algorithm), so that cycles of any length are found.

use warploom_isa::{Kernel, Op, Special};

use crate::execute::Cta;
use crate::kit::lane_mask::LaneMask;
use crate::locks::unit::LockUnits;
use crate::memory::store::Memory;
use crate::sync::barrier::Barriers;
use crate::warp::{Since, Warp};

/// The rounds before the first look: kernels that end soon pay nothing.
const FIRST_LOOK: u64 = 64;

/// Memory that is summed up at each look, at most; with more of it nothing is proved.
const MOST_MEMORY_BYTES: u64 = 256 << 20;

/// A CTA as it was.
struct Before<const N: usize> {
    number: u64,
    warps: Vec<Warp<N>>,
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
    /// The kernel can read a clock, which is different every time.
    reads_clock: bool,
}

impl<const N: usize> Repetition<N> {
    pub fn new(kernel: &Kernel) -> Self {
        let reads_clock = kernel.code.iter().any(|inst| {
            matches!(
                inst.op,
                Op::Special(
                    Special::Clock
                        | Special::ClockHi
                        | Special::Clock64
                        | Special::GlobalTimer
                        | Special::GlobalTimerLo
                        | Special::GlobalTimerHi
                )
            )
        });
        Repetition { rounds: 0, save_at: FIRST_LOOK, earlier: None, reads_clock }
    }

    /// After a round in which every warp had its turn: whether all is as it was after an earlier one.
    pub fn found<'a>(
        &mut self,
        ctas: impl Iterator<Item = (&'a Cta, &'a [Warp<N>])> + Clone,
        locks: &LockUnits,
        memory: &Memory,
    ) -> bool {
        self.rounds += 1;
        if self.rounds < FIRST_LOOK || self.reads_clock || memory.used() > MOST_MEMORY_BYTES {
            return false;
        }
        if let Some(earlier) = &self.earlier
            && earlier.is_as(ctas.clone())
            && earlier.lock_bits == locks.free_bits()
            && earlier.memory == memory.digest()
        {
            return true;
        }
        if self.rounds >= self.save_at {
            self.save_at = 2 * self.rounds;
            let before = |(cta, warps): (&'a Cta, &'a [Warp<N>])| Before {
                number: cta.number,
                warps: warps.to_vec(),
                shared: cta.shared.bytes.clone(),
                barriers: cta.barriers.clone(),
            };
            let (ctas, lock_bits) = (ctas.map(before).collect(), locks.free_bits());
            self.earlier = Some(Earlier { ctas, lock_bits, memory: memory.digest() });
        }
        false
    }
}

impl<const N: usize> Earlier<N> {
    fn is_as<'a>(&self, mut ctas: impl Iterator<Item = (&'a Cta, &'a [Warp<N>])>) -> bool {
        // The order of splits counts, too: warps take their turns in it.
        let since = Since { ran: LaneMask::first_lanes(N as u32), crossed: true };
        let same = |before: &Before<N>, (cta, warps): (&Cta, &[Warp<N>])| {
            before.number == cta.number
                && before.warps.iter().zip(warps).all(|(before, warp)| warp.repeats(before, since))
                && before.shared == cta.shared.bytes
                && before.barriers == cta.barriers
        };
        self.ctas.iter().all(|before| ctas.next().is_some_and(|now| same(before, now)))
            && ctas.next().is_none()
    }
}
