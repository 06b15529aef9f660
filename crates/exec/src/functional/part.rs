//! A part of the work of CTAs that another machine has begun and goes on with.

use std::collections::VecDeque;

use super::{Finished, Machine, Resident, Stopped, TURN};
use crate::chip::timing::SECTOR_BYTES;
use crate::launch::Launch;
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::store::Memory;
use crate::stop::Stop;

/// The accesses of one instruction in so many are noted, the last ones. Those take several times as long as others.
const NOTED: u64 = 8;

/// Where CTAs are after a part of their work, and what they did there.
pub struct Part<const N: usize> {
    /// For those whose warps have ended there were no others.
    pub residents: Vec<Resident<N>>,
    /// The next CTA of the grid to start.
    pub next_cta: u64,
    pub did: Finished,
    /// Their last accesses to global memory.
    pub touches: VecDeque<Touch>,
    pub end: Result<(), Stop>,
}

/// A sector of global memory that a warp has accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Of its first byte.
    pub address: u64,
    pub writes: bool,
}

/// The last accesses to global memory, by sector.
pub(super) struct Touches {
    last: VecDeque<Touch>,
    most: usize,
}

impl Touches {
    /// Only global memory counts.
    pub(super) fn note<const N: usize>(&mut self, access: &WarpAccess<N>) {
        let writes = matches!(access.kind, MemoryOp::Store | MemoryOp::Atomic { .. });
        for lane in access.lanes.global.lanes() {
            let address = access.addresses.at(lane) & !u64::from(SECTOR_BYTES - 1);
            let touch = Touch { address, writes };
            if self.last.back() == Some(&touch) {
                continue;
            }
            if self.last.len() == self.most {
                self.last.pop_front();
            }
            self.last.push_back(touch);
        }
    }
}

/// Runs CTAs that another machine has begun: each warp executes as many instructions as its CTA's `shares` say, and the
/// warps of a CTA that takes the place of another one what would be left for that. Ends early if a tenth of the CTAs
/// have ended and there are no others to take their places. `next_cta` is the next one to start. Of the accesses in
/// the last instructions, an eighth of all and at least `most_touches`, so many sectors are noted.
pub fn run_part<'a, const N: usize>(
    launch: &'a Launch<'a>,
    memory: &'a mut Memory,
    residents: Vec<Resident<N>>,
    next_cta: u64,
    shares: Vec<Vec<u64>>,
    most_touches: usize,
) -> Part<N> {
    let mut machine = Machine::new(launch, memory, next_cta);
    machine.residents = residents;
    let end = machine.run_part(shares, most_touches);
    let (residents, next_cta) = (std::mem::take(&mut machine.residents), machine.next_cta);
    let touches = machine.touches.take().map(|touches| touches.last).unwrap_or_default();
    let did = Stopped { machine, end: Ok(()) }.finish();
    Part { residents, next_cta, did, touches, end }
}

impl<const N: usize> Machine<'_, N> {
    /// Runs every warp for its share of instructions, or until a tenth of the residents have ended for good.
    fn run_part(&mut self, mut shares: Vec<Vec<u64>>, most_touches: usize) -> Result<(), Stop> {
        let longest = shares.iter().flatten().copied().max().unwrap_or(0);
        let all = shares.iter().flatten().sum::<u64>().max(1);
        let rounds = longest.div_ceil(TURN);
        let noted = (all / NOTED).max(most_touches as u64).min(all);
        let start = self.execution.clock;
        let mut may_end = self.residents.len() / 10;
        self.turns = shares.iter().map(|of_cta| vec![0; of_cta.len()]).collect();
        let mut round = 0;
        loop {
            if self.touches.is_none() && self.execution.clock - start >= all - noted {
                self.touches = Some(Touches { last: VecDeque::new(), most: most_touches });
            }
            // What a warp leaves of its turn, because it waits at a barrier, it has later.
            for (turn, &share) in self.turns.iter_mut().flatten().zip(shares.iter().flatten()) {
                *turn += part_of(share, round, rounds);
            }
            let before = self.execution.clock;
            for at in 0..self.residents.len() {
                if self.residents[at].cta.live_warps == 0 {
                    continue;
                }
                self.turn(at)?;
                if self.residents[at].cta.live_warps > 0 {
                    continue;
                }
                self.younger_on_sm(at).into_iter().for_each(|younger| shares.swap(at, younger));
                if self.next_cta < self.total {
                    self.replace(at..at + 1, None);
                } else if may_end == 0 {
                    return Ok(());
                } else {
                    may_end -= 1;
                }
            }
            round += 1;
            if round >= rounds && self.execution.clock == before {
                return Ok(());
            }
        }
    }

    /// The CTAs that have started later than one on its SM, in order.
    fn younger_on_sm(&self, at: usize) -> Vec<usize> {
        let cta = |at: usize| &self.residents[at].cta;
        let is_younger = |&other: &usize| cta(other).sm == cta(at).sm && cta(other).number > cta(at).number;
        let mut younger: Vec<usize> = (0..self.residents.len()).filter(is_younger).collect();
        younger.sort_unstable_by_key(|&at| cta(at).number);
        younger
    }
}

/// What a warp with a share gets of it in a round.
fn part_of(share: u64, round: u64, rounds: u64) -> u64 {
    if round < rounds { share * (round + 1) / rounds - share * round / rounds } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::lane_mask::LaneMask;
    use crate::memory::access::SpaceLanes;
    use crate::memory::address::Addresses;

    #[test]
    fn the_last_sectors_are_noted() {
        let mut touches = Touches { last: VecDeque::new(), most: 3 };
        let mut access = WarpAccess::<32>::default();
        access.lanes.global = LaneMask(0b111111);
        access.addresses =
            Addresses::of(std::array::from_fn(|lane| 1000 + 16 * lane as u64), LaneMask(0b111111));
        touches.note(&access);
        (access.kind, access.lanes.global) = (MemoryOp::Store, LaneMask(1));
        touches.note(&access);
        access.lanes = SpaceLanes { shared: LaneMask(1), ..SpaceLanes::default() };
        touches.note(&access);
        let expected =
            [(1024, false), (1056, false), (992, true)].map(|(address, writes)| Touch { address, writes });
        // The load took 992 as well, but there is room for three.
        assert_eq!(touches.last, expected);
    }
}
