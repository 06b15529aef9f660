//! Packets that cannot leave their queue yet, by the tick in which they can.

use crate::kit::ids::PacketId;
use crate::time::network::packets::Packets;

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
    /// In the order in which they were injected.
    later: Vec<PacketId>,
    /// The tick of the first of `later`, or [`NO_TICK`].
    first_later: u64,
}

/// Windows are shorter than this on all chips we know, so little is `later`: what waits at a port that SMs share.
const TICKS_AHEAD: usize = u64::BITS as usize;

impl Coming {
    pub(crate) fn new() -> Coming {
        let ticks = Box::new([const { Vec::new() }; TICKS_AHEAD]);
        Coming { ticks, occupied: 0, base: 0, later: Vec::new(), first_later: NO_TICK }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0 && self.later.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, id: PacketId, ready: u64) {
        if ready - self.base < TICKS_AHEAD as u64 {
            let place = ready as usize % TICKS_AHEAD;
            self.ticks[place].push(id);
            self.occupied |= 1 << place;
        } else {
            self.later.push(id);
            self.first_later = self.first_later.min(ready);
        }
    }

    /// The tick of the first, or [`NO_TICK`].
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        if self.occupied != 0 {
            let ahead = self.occupied.rotate_right((self.base % TICKS_AHEAD as u64) as u32).trailing_zeros();
            return self.base + ahead as u64;
        }
        self.first_later
    }

    /// Moves some packets of ticks up to `tick`, of which there are any, the earliest first, into `taken`, which is
    /// empty.
    #[inline]
    pub(crate) fn take<M: Copy>(&mut self, tick: u64, packets: &Packets<M>, taken: &mut Vec<PacketId>) {
        if self.occupied == 0 {
            let at = self.later.iter().position(|&id| packets[id].ready <= tick);
            taken.extend(at.map(|at| self.later.remove(at)));
            self.first_later = self.later.iter().map(|&id| packets[id].ready).min().unwrap_or(NO_TICK);
            return;
        }
        let next = self.next();
        let place = next as usize % TICKS_AHEAD;
        self.occupied &= !(1 << place);
        std::mem::swap(taken, &mut self.ticks[place]);
    }

    /// All packets of ticks before `tick` have been taken.
    #[inline]
    pub(crate) fn advance<M: Copy>(&mut self, tick: u64, packets: &Packets<M>) {
        self.base = tick;
        if !self.later.is_empty() {
            self.first_later = NO_TICK;
            for id in std::mem::take(&mut self.later) {
                self.push(id, packets[id].ready);
            }
        }
    }
}
