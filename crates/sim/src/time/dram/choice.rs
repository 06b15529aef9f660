//! Commands in the order in which the controller prefers them.

use crate::time::dram::Direction;
use crate::time::dram::bank::Slot;
use crate::time::dram::clock::NO_CLOCK;

/// The clock of a command; of two commands in one clock, a column command is less than a row command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct When(pub u64);

impl When {
    #[inline]
    pub(crate) const fn column(clock: u64) -> When {
        When(clock << 1)
    }

    /// Of an activate or a precharge.
    #[inline]
    pub(crate) const fn row(clock: u64) -> When {
        When(clock << 1 | 1)
    }
}

/// A command for a transfer. Less is better: sooner, then column commands, then older transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice(u128);

impl Choice {
    pub(crate) const NONE: Choice = Choice::new(When::row(NO_CLOCK), 0);

    #[inline]
    pub(crate) const fn new(when: When, order: u64) -> Choice {
        Choice((when.0 as u128) << 64 | order as u128)
    }

    #[inline]
    pub(crate) fn clock(self) -> u64 {
        (self.0 >> 65) as u64
    }

    pub(crate) fn slot(self) -> Slot {
        Slot(self.0 as u8)
    }
}

/// A kind of command, as an index: activate, precharge, and then read and write for each bank group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(u8);

impl Kind {
    pub(crate) const ACTIVATE: Kind = Kind(0);
    pub(crate) const PRECHARGE: Kind = Kind(1);
    pub(crate) const FIRST_COLUMN: usize = 2;
    pub(crate) const LIMIT: usize = 64;

    pub(crate) fn column(group: u8, direction: Direction) -> Kind {
        Kind(Kind::FIRST_COLUMN as u8 + 2 * group + direction as u8)
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize % Kind::LIMIT
    }
}
