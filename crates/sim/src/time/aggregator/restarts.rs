//! The restart channel: a ring in memory into which SMs write a record of each wavefront that yielded, a line each, and
//! from which firmware takes them. Section 6 of the ISCA'14 paper.
//!
//! Its hardware reserves places in the order in which states are saved. A record has a number that grows by one, so
//! firmware knows by one load whether the next one is there. Behind the records lies the count of those it has taken.

use crate::time::sm::load_store::switch::RecordPlace;

/// Where the words of a record are: its number, the address of the saved state, and what the wavefront waits for.
pub(crate) const NUMBER: u64 = 0;
pub(crate) const SAVED_AT: u64 = 8;
pub(crate) const RESOURCE: u64 = 16;

#[derive(Clone, Debug)]
pub(crate) struct RestartChannel {
    base: u64,
    records: u32,
    line_bytes: u64,
    /// Records whose place is reserved. Both counts wrap at 2^32.
    reserved: u32,
    /// Records that firmware has taken.
    taken: u32,
    /// The place of the next record to be reserved, and of the next to be taken.
    at: [u32; 2],
}

impl RestartChannel {
    /// Bytes of a channel of so many records.
    pub(crate) fn bytes(records: u32, line_bytes: u64) -> u64 {
        (u64::from(records) + 1) * line_bytes
    }

    pub(crate) fn new(base: u64, records: u32, line_bytes: u64) -> RestartChannel {
        RestartChannel { base, records, line_bytes, reserved: 0, taken: 0, at: [0; 2] }
    }

    fn line(&self, at: u32) -> u64 {
        self.base + u64::from(at) * self.line_bytes
    }

    /// The place of the next record, if there is room.
    pub(crate) fn reserve(&mut self) -> Option<RecordPlace> {
        if self.reserved.wrapping_sub(self.taken) == self.records {
            return None;
        }
        let place = self.line(self.at[0]);
        self.at[0] = (self.at[0] + 1) % self.records;
        self.reserved = self.reserved.wrapping_add(1);
        Some((place, self.reserved))
    }

    /// Where firmware finds the next record, and its number.
    pub(crate) fn next(&self) -> RecordPlace {
        (self.line(self.at[1]), self.taken.wrapping_add(1))
    }

    /// Firmware has taken the next record. Returns where it says so, and how many it has taken.
    pub(crate) fn take(&mut self) -> (u64, u32) {
        self.at[1] = (self.at[1] + 1) % self.records;
        self.taken = self.taken.wrapping_add(1);
        (self.line(self.records), self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reused_once_they_are_taken() {
        let mut channel = RestartChannel::new(0x1000, 2, 64);
        assert_eq!(RestartChannel::bytes(2, 64), 192);
        assert_eq!(channel.next(), (0x1000, 1));
        assert_eq!([channel.reserve(), channel.reserve()], [Some((0x1000, 1)), Some((0x1040, 2))]);
        assert_eq!(channel.reserve(), None);
        assert_eq!(channel.take(), (0x1080, 1));
        assert_eq!(channel.next(), (0x1040, 2));
        assert_eq!([channel.reserve(), channel.reserve()], [Some((0x1000, 3)), None]);
    }
}
