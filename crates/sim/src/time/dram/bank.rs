//! The banks of a channel, and how long one command keeps others waiting.

use crate::chip::timing::DramSpec;
use crate::time::dram::Direction;

/// Clocks in which nobody drives the data bus when it turns from reads to writes, as in GDDR5's least distance from a
/// read to a write, CL + burst + 2 - WL.
const TURN_CLOCKS: u64 = 2;

/// The least clocks from one command to another.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    /// Clocks that the data of a burst takes.
    pub data: u64,
    /// From a column command to the next in the same direction.
    pub column: u64,
    pub read_to_write: u64,
    pub write_to_read: u64,
    pub same_group: u64,
    pub read_to_precharge: u64,
    pub write_to_precharge: u64,
    pub read_to_end: u64,
    pub activate_to_column: u64,
    pub activate_to_precharge: u64,
    pub activate_to_activate: u64,
    pub activate_to_other: u64,
    pub precharge_to_activate: u64,
}

impl Delays {
    pub(crate) fn new(spec: &DramSpec) -> Delays {
        let clocks = u64::from;
        let data = clocks(spec.burst.div_ceil(spec.transfers_per_clock));
        let (cl, wl) = (clocks(spec.cl), clocks(spec.wl));
        let column = clocks(spec.ccd).max(data);
        Delays {
            data,
            column,
            read_to_write: column.max((cl + data + TURN_CLOCKS).saturating_sub(wl)),
            write_to_read: column.max(wl + data + clocks(spec.cdlr)),
            same_group: clocks(spec.ccdl),
            read_to_precharge: clocks(spec.rtpl),
            write_to_precharge: wl + data + clocks(spec.wr),
            read_to_end: cl + data,
            activate_to_column: clocks(spec.rcd),
            activate_to_precharge: clocks(spec.ras),
            activate_to_activate: clocks(spec.rc),
            activate_to_other: clocks(spec.rrd),
            precharge_to_activate: clocks(spec.rp),
        }
    }
}

/// An index into the controller's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub u8);

impl Slot {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Bank {
    /// The open row, or [`Bank::CLOSED`].
    pub row: u64,
    /// The first clock for a column command.
    pub column_ready: u64,
    /// The first clock for a precharge of the open row.
    pub precharge_ready: u64,
    /// The first clock for an activate of the closed bank.
    pub activate_ready: u64,
    /// Its oldest queued transfer, and its youngest.
    pub first: Option<Slot>,
    pub last: Option<Slot>,
    /// Reads and writes of the open row in the queue.
    pub hits: [u32; 2],
    /// Neighbours are in different groups, so that a sequential stream, which alternates between neighbours, is not
    /// slowed down by the longer distance within a group.
    pub group: u8,
    /// No burst has used the open row yet.
    pub fresh: bool,
}

impl Bank {
    /// Sentinel: no row is open.
    pub(crate) const CLOSED: u64 = u64::MAX;

    pub(crate) fn new(number: u32, groups: u32) -> Bank {
        Bank {
            row: Bank::CLOSED,
            column_ready: 0,
            precharge_ready: 0,
            activate_ready: 0,
            first: None,
            last: None,
            hits: [0; 2],
            group: (number % groups) as u8,
            fresh: false,
        }
    }

    pub(crate) fn activate(&mut self, clock: u64, row: u64, delays: &Delays) {
        self.row = row;
        self.fresh = true;
        self.column_ready = clock + delays.activate_to_column;
        self.precharge_ready = clock + delays.activate_to_precharge;
        self.activate_ready = clock + delays.activate_to_activate;
    }

    pub(crate) fn precharge(&mut self, clock: u64, delays: &Delays) {
        self.row = Bank::CLOSED;
        self.hits = [0; 2];
        self.activate_ready = self.activate_ready.max(clock + delays.precharge_to_activate);
    }

    pub(crate) fn move_burst(&mut self, clock: u64, direction: Direction, delays: &Delays) {
        let to_precharge = match direction {
            Direction::Read => delays.read_to_precharge,
            Direction::Write => delays.write_to_precharge,
        };
        self.precharge_ready = self.precharge_ready.max(clock + to_precharge);
        self.fresh = false;
    }
}
