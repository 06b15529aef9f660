//! A part of the work of CTAs that another machine has begun and goes on with.

use super::{Finished, Machine, Resident, Stopped, TURN};
use crate::launch::Launch;
use crate::memory::store::Memory;
use crate::stop::Stop;

/// Where CTAs are after a part of their work, and what they did there.
pub struct Part<const N: usize> {
    /// For those whose warps have ended there were no others.
    pub residents: Vec<Resident<N>>,
    /// The next CTA of the grid to start.
    pub next_cta: u64,
    pub did: Finished,
    pub end: Result<(), Stop>,
}

/// Runs CTAs that another machine has begun: each warp executes as many instructions as its CTA's `shares` say, and the
/// warps of a CTA that takes the place of another one what would be left for that. Ends early if a tenth of the CTAs
/// have ended and there are no others to take their places. `next_cta` is the next one to start.
pub fn run_part<'a, const N: usize>(
    launch: &'a Launch<'a>,
    memory: &'a mut Memory,
    residents: Vec<Resident<N>>,
    next_cta: u64,
    shares: Vec<Vec<u64>>,
) -> Part<N> {
    let mut machine = Machine::new(launch, memory, next_cta);
    machine.residents = residents;
    let end = machine.run_part(shares);
    let (residents, next_cta) = (std::mem::take(&mut machine.residents), machine.next_cta);
    let did = Stopped { machine, end: Ok(()) }.finish();
    Part { residents, next_cta, did, end }
}

impl<const N: usize> Machine<'_, N> {
    /// Runs every warp for its share of instructions, or until a tenth of the residents have ended for good.
    fn run_part(&mut self, shares: Vec<Vec<u64>>) -> Result<(), Stop> {
        let longest = shares.iter().flatten().copied().max().unwrap_or(0);
        let rounds = longest.div_ceil(TURN);
        let mut may_end = self.residents.len() / 10;
        for round in 0..rounds {
            let part = |&share: &u64| share * (round + 1) / rounds - share * round / rounds;
            self.turns = shares.iter().map(|of_cta| of_cta.iter().map(part).collect()).collect();
            for at in 0..self.residents.len() {
                if self.residents[at].cta.live_warps == 0 {
                    continue;
                }
                self.turn(at)?;
                if self.residents[at].cta.live_warps > 0 {
                    continue;
                }
                if self.next_cta < self.total {
                    self.replace(at..at + 1, None);
                } else if may_end == 0 {
                    return Ok(());
                } else {
                    may_end -= 1;
                }
            }
        }
        Ok(())
    }
}
