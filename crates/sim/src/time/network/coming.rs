//! Packets that cannot leave their queue yet, by the tick in which they can.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::kit::ids::PacketId;

/// Sentinel: no tick.
pub(crate) const NO_TICK: u64 = u64::MAX;

/// The packets of each of the next ticks, and those of later ones.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    /// Those of tick `t` are at `t % TICKS_AHEAD`, for the ticks from `base` on.
    ticks: Box<[Vec<PacketId>; TICKS_AHEAD]>,
    /// Elements of `ticks` that are not empty, a bit each.
    occupied: u64,
    base: u64,
    /// There are few as a rule, but thousands where SMs store faster than the port that they share.
    later: BinaryHeap<Reverse<Later>>,
    /// How many were ever put there.
    injected: u64,
}

/// A packet by its tick; those of one tick in the order in which they were injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Later {
    ready: u64,
    number: u64,
    id: PacketId,
}

/// Windows are shorter than this on all chips we know.
const TICKS_AHEAD: usize = u64::BITS as usize;

impl Coming {
    pub(crate) fn new() -> Coming {
        let ticks = Box::new([const { Vec::new() }; TICKS_AHEAD]);
        Coming { ticks, occupied: 0, base: 0, later: BinaryHeap::new(), injected: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0 && self.later.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, id: PacketId, ready: u64) {
        if ready - self.base < TICKS_AHEAD as u64 {
            self.push_near(id, ready);
        } else {
            self.later.push(Reverse(Later { ready, number: self.injected, id }));
            self.injected += 1;
        }
    }

    #[inline]
    fn push_near(&mut self, id: PacketId, ready: u64) {
        let place = ready as usize % TICKS_AHEAD;
        self.ticks[place].push(id);
        self.occupied |= 1 << place;
    }

    /// The tick of the first, or [`NO_TICK`].
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        if self.occupied != 0 {
            let ahead = self.occupied.rotate_right((self.base % TICKS_AHEAD as u64) as u32).trailing_zeros();
            return self.base + ahead as u64;
        }
        self.later.peek().map_or(NO_TICK, |Reverse(first)| first.ready)
    }

    /// Moves some packets of ticks up to `tick`, of which there are any, the earliest first, into `taken`, which is
    /// empty.
    #[inline]
    pub(crate) fn take(&mut self, tick: u64, taken: &mut Vec<PacketId>) {
        if self.occupied == 0 {
            while let Some(Later { id, .. }) = self.pop_later(tick) {
                taken.push(id);
            }
            return;
        }
        let next = self.next();
        let place = next as usize % TICKS_AHEAD;
        self.occupied &= !(1 << place);
        std::mem::swap(taken, &mut self.ticks[place]);
    }

    /// All packets of ticks before `tick` have been taken.
    #[inline]
    pub(crate) fn advance(&mut self, tick: u64) {
        self.base = tick;
        while let Some(Later { ready, id, .. }) = self.pop_later(tick + TICKS_AHEAD as u64 - 1) {
            self.push_near(id, ready);
        }
    }

    /// The first of the later packets, if it can leave at `tick` or before.
    #[inline]
    fn pop_later(&mut self, tick: u64) -> Option<Later> {
        self.later.peek().filter(|Reverse(first)| first.ready <= tick)?;
        self.later.pop().map(|Reverse(first)| first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_at_their_tick_in_the_order_in_which_they_were_injected() {
        let mut coming = Coming::new();
        // Far and near ones, several to a tick.
        let ready = |number: u32| 5 + u64::from(number * 37 % 50) * 7;
        (0..200).for_each(|number| coming.push(PacketId(number), ready(number)));
        let (mut came, mut taken) = (Vec::new(), Vec::new());
        for tick in 0..400 {
            while coming.next() <= tick {
                coming.take(tick, &mut taken);
                came.extend(taken.drain(..).map(|id| (tick, id)));
            }
            if tick % 8 == 7 {
                coming.advance(tick + 1);
            }
        }
        let mut expected: Vec<_> = (0..200).map(|number| (ready(number), PacketId(number))).collect();
        expected.sort();
        assert_eq!(came, expected);
        assert!(coming.is_empty() && coming.next() == NO_TICK);
    }
}
