//! Sectors and bursts: what a slice reads from memory, and how a read is named in the channel.

use crate::chip::timing::SECTOR_BYTES;
use crate::time::l2::mshr::MshrId;

/// A read from memory; the channel carries it as a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub slice: u8,
    pub mshr: MshrId,
    pub sectors: u8,
}

impl Fill {
    pub(crate) fn tag(self) -> u32 {
        (self.slice as u32) << 24 | (self.mshr.0 as u32) << 8 | self.sectors as u32
    }

    pub(crate) fn from_tag(tag: u32) -> Fill {
        Fill { slice: (tag >> 24) as u8, mshr: MshrId((tag >> 8) as u16), sectors: tag as u8 }
    }
}

/// Which bursts have which sectors of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    /// The sectors of the line's first burst, or the first sector if that needs several bursts.
    group: u8,
    sectors_per_group: u32,
    bursts_per_group: u32,
}

impl Bursts {
    pub(crate) fn new(burst_bytes: u32, line_bytes: u32) -> Bursts {
        let sectors_per_group = (burst_bytes / SECTOR_BYTES).clamp(1, line_bytes / SECTOR_BYTES);
        Bursts {
            group: (u16::MAX >> (16 - sectors_per_group)) as u8,
            sectors_per_group,
            bursts_per_group: (SECTOR_BYTES / burst_bytes).max(1),
        }
    }

    /// All sectors that come along with these, and how many bursts bring them.
    pub(crate) fn cover(self, sectors: u8) -> (u8, u8) {
        let (mut all, mut groups) = (0, 0);
        let mut at = 0;
        while sectors as u32 >> at != 0 {
            let group = (self.group as u32) << at;
            if sectors as u32 & group != 0 {
                all |= group;
                groups += 1;
            }
            at += self.sectors_per_group;
        }
        (all as u8, (groups * self.bursts_per_group) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_come_in_whole_bursts() {
        let cover = |burst_bytes, line_bytes, sectors| Bursts::new(burst_bytes, line_bytes).cover(sectors);
        assert_eq!(cover(64, 128, 0b0001), (0b0011, 1));
        assert_eq!(cover(64, 128, 0b0110), (0b1111, 2));
        assert_eq!(cover(64, 128, 0), (0, 0));
        assert_eq!(cover(32, 128, 0b1010), (0b1010, 2));
        assert_eq!(cover(16, 128, 0b1010), (0b1010, 4), "two bursts a sector");
        assert_eq!(cover(128, 256, 0b1000_0000), (0b1111_0000, 1));
        assert_eq!(cover(256, 128, 0b0100), (0b1111, 1), "a burst larger than a line");
    }

    #[test]
    fn a_fill_is_named_by_its_tag() {
        let fill = Fill { slice: 3, mshr: MshrId(700), sectors: 0b1001_0001 };
        assert_eq!(Fill::from_tag(fill.tag()), fill);
    }
}
