//! Packets by the tick in which they come.

use crate::time::network::packets::Packets;

/// The tick of what does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// The numbers of those that come in each of the next ticks, and of those that come later.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    /// Of tick `t`, at `t % TICKS_AHEAD`, for the ticks from `base` on.
    ticks: Box<[Vec<u32>; TICKS_AHEAD]>,
    /// Ticks in which some come, a bit each.
    occupied: u64,
    base: u64,
    /// In the order in which they were injected.
    later: Vec<u32>,
}

/// Ticks that have a place. Windows are shorter on all chips we know, so next to nothing comes later.
const TICKS_AHEAD: usize = u64::BITS as usize;

impl Coming {
    pub fn new() -> Coming {
        let ticks = Box::new([const { Vec::new() }; TICKS_AHEAD]);
        Coming { ticks, occupied: 0, base: 0, later: Vec::new() }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.occupied == 0 && self.later.is_empty()
    }

    #[inline]
    pub fn push(&mut self, number: u32, ready: u64) {
        if ready - self.base < TICKS_AHEAD as u64 {
            let place = ready as usize % TICKS_AHEAD;
            self.ticks[place].push(number);
            self.occupied |= 1 << place;
        } else {
            self.later.push(number);
        }
    }

    /// When the first comes, or [`NEVER`].
    #[inline]
    pub fn next<M: Copy>(&self, packets: &Packets<M>) -> u64 {
        if self.occupied != 0 {
            let ahead = self.occupied.rotate_right((self.base % TICKS_AHEAD as u64) as u32).trailing_zeros();
            return self.base + ahead as u64;
        }
        self.later.iter().map(|&number| packets[number].ready).min().unwrap_or(NEVER)
    }

    /// Takes some packets that come by `tick`, the earliest first, and puts their numbers into `taken`, which is empty.
    #[inline]
    pub fn take<M: Copy>(&mut self, tick: u64, packets: &Packets<M>, taken: &mut Vec<u32>) {
        let next = self.next(packets);
        if next > tick {
            return;
        }
        if self.occupied == 0 {
            let at = self.later.iter().position(|&number| packets[number].ready <= tick);
            taken.extend(at.map(|at| self.later.remove(at)));
            return;
        }
        let place = next as usize % TICKS_AHEAD;
        self.occupied &= !(1 << place);
        std::mem::swap(taken, &mut self.ticks[place]);
    }

    /// All that come before `tick` have been taken.
    #[inline]
    pub fn advance<M: Copy>(&mut self, tick: u64, packets: &Packets<M>) {
        self.base = tick;
        if !self.later.is_empty() {
            for number in std::mem::take(&mut self.later) {
                self.push(number, packets[number].ready);
            }
        }
    }
}
