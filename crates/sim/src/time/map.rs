//! Where an address lives: in which partition and slice, where in the slice's tags, where in the DRAM's banks.
//!
//! Chunks of `interleave_bytes` go to the partitions in turn: partition and place within it are the remainder and
//! the quotient of a division, as the number of partitions need not be a power of two (all other sizes are). What
//! is left after taking the partition out is the *local* address. Its bits, with the positions on a gtx480:
//!
//! | bits  | meaning                                                       |
//! |-------|---------------------------------------------------------------|
//! | 5:0   | byte of a burst                                               |
//! | 7:6   | column, low part: the rest of a chunk                         |
//! | 8     | bank, low part: as many bits as choose the slice, at least one |
//! | 12:9  | column, high part: the rest of a row                          |
//! | 15:13 | bank, high part                                               |
//! | 16..  | row                                                           |
//!
//! With hashed placement, a hash chooses partition and slice instead ([`AddressMap::hashed_slice_of`]), and a line's
//! number is that of the whole memory.
//!
//! So the slices of a partition use different banks, and a sequential stream alternates between (at least) two banks
//! before it moves to the next ones. A row smaller than a chunk ends below the low bank bits instead;
//! the slice is then still chosen by the bits above the chunk.

use crate::chip::timing::{DramSpec, L2Spec, Placement};
use crate::kit::divisor::Divisor;
use crate::kit::line::{LineAddress, LineNumber};

/// The address mapping of a chip.
#[derive(Clone, Debug)]
pub(crate) struct AddressMap {
    partitions: Divisor,
    /// With hashed placement: slices of a half of the L2, or of all of it if it has no halves.
    hashed: Option<Divisor>,
    has_halves: bool,
    chunk_bits: u32,
    slice_bits: u32,
    line_bits: u32,
    burst_bits: u32,
    /// Bits of a local address below the bank's low part.
    below_bank_bits: u32,
    bank_low_bits: u32,
    bank_high_bits: u32,
    column_high_bits: u32,
}

/// A place in a DRAM channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub bank: u32,
    pub row: u64,
    /// In bursts.
    pub column: u32,
}

/// Hashed placement deals the chunks of a page to half as many slices, two each.
const PAGE_CHUNK_BITS: u32 = 4;
/// The slices of the pages of a block: where the eight of each page begin.
const PAGE_STARTS: [u64; 4] = [3, 9, 0, 12];

/// How many slices a group of eight blocks begins behind the group before it.
const GROUP_STEP: u64 = 5;

/// A hash whose bits all depend on all bits of the number.
fn mixed(number: u64) -> u64 {
    let mut hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

#[inline]
fn low(value: u64, bits: u32) -> u64 {
    value & ((1 << bits) - 1)
}

impl AddressMap {
    /// The mapping of a chip. A line is not larger than a chunk, a burst not larger than a row or a chunk, and all
    /// sizes except the number of partitions are powers of two.
    pub(crate) fn new(l2: &L2Spec, dram: &DramSpec) -> AddressMap {
        let bits = |name: &str, size: u32| {
            assert!(size.is_power_of_two(), "{name} = {size} is not a power of two");
            size.ilog2()
        };
        let chunk_bits = bits("l2.interleave_bytes", l2.interleave_bytes);
        let slice_bits = bits("l2.slices_per_partition", l2.slices_per_partition);
        let line_bits = bits("l2.cache.line_bytes", l2.cache.line_bytes);
        let burst_bits = bits("dram.bus_bytes * dram.burst", dram.bus_bytes * dram.burst);
        let row_bits = bits("dram.row_bytes", dram.row_bytes);
        let bank_bits = bits("dram.banks", dram.banks);
        let below_bank_bits = chunk_bits.min(row_bits);
        assert!(line_bits <= below_bank_bits, "a line lies in one row of one partition");
        assert!(burst_bits <= below_bank_bits, "a burst lies in one row of one partition");
        let bank_low_bits = slice_bits.max(1).min(bank_bits);
        let has_halves = l2.partitions.is_multiple_of(2);
        let in_a_half = l2.partitions * l2.slices_per_partition / if has_halves { 2 } else { 1 };
        AddressMap {
            partitions: Divisor::new(l2.partitions as u64),
            hashed: (l2.placement == Placement::Hashed).then(|| Divisor::new(in_a_half as u64)),
            has_halves,
            chunk_bits,
            slice_bits,
            line_bits,
            burst_bits,
            below_bank_bits,
            bank_low_bits,
            bank_high_bits: bank_bits - bank_low_bits,
            column_high_bits: row_bits - below_bank_bits,
        }
    }

    /// The partition that has a line, and the slice within it.
    #[inline]
    pub(crate) fn slice_of(&self, line: LineAddress) -> (u32, u32) {
        if let Some(slices) = &self.hashed {
            return self.hashed_slice_of(line, slices);
        }
        let chunk = line.0 >> self.chunk_bits;
        let inside = self.partitions.quotient(chunk);
        let partition = chunk - inside * self.partitions.get();
        (partition as u32, low(inside, self.slice_bits) as u32)
    }

    /// The port of the crossbars that belongs to the slice of a line.
    #[inline]
    pub(crate) fn port_of(&self, line: LineAddress) -> u16 {
        let (partition, slice) = self.slice_of(line);
        (partition << self.slice_bits | slice) as u16
    }

    /// The properties of this hash are those of a real H200, whose own hash is not known bit by bit. A page of 16
    /// chunks lies in eight slices of one half, two chunks in each. Of each two pages, one lies in either half. The
    /// four pages of a block lie in 32 slices, which are about 20 and the twins of some of them. Four blocks use all
    /// slices, and some twice as much as others; so do the next four. Two such groups of eight use all about alike.
    fn hashed_slice_of(&self, line: LineAddress, slices: &Divisor) -> (u32, u32) {
        let chunk = line.0 >> self.chunk_bits;
        let page = chunk >> PAGE_CHUNK_BITS;
        // Chunks 0 and 2 of each four are in one slice, 1 and 3 in another.
        let piece = (chunk >> 1 & 6 | chunk & 1) ^ (mixed(page) & 7);
        let block = page >> 2;
        let group = block >> 3;
        let begin = group * GROUP_STEP + low(mixed(group >> 3), 31);
        let first = begin + (block & 3) * (slices.get() / 4) + PAGE_STARTS[page as usize & 3];
        let slice = slices.remainder(first + piece);
        let pair = (slice >> self.slice_bits) as u32;
        // Halves of the L2 have every other partition.
        let half = (page ^ page >> 1 ^ block >> 2) as u32 & 1;
        let partition = if self.has_halves { pair << 1 | half } else { pair };
        (partition, low(slice, self.slice_bits) as u32)
    }

    /// The address within its partition.
    #[inline]
    pub(crate) fn local(&self, address: u64) -> u64 {
        let chunk = self.partitions.quotient(address >> self.chunk_bits);
        chunk << self.chunk_bits | low(address, self.chunk_bits)
    }

    /// The line's number within its slice: what the slice's tags hold.
    #[inline]
    pub(crate) fn line_in_slice(&self, line: LineAddress) -> LineNumber {
        if self.hashed.is_some() {
            return LineNumber(line.0 >> self.line_bits);
        }
        let local = self.local(line.0);
        let chunk = local >> (self.chunk_bits + self.slice_bits);
        LineNumber((chunk << self.chunk_bits | low(local, self.chunk_bits)) >> self.line_bits)
    }

    /// The local address of a slice's line: undoes [`AddressMap::line_in_slice`].
    #[inline]
    pub(crate) fn local_of_line(&self, slice: u32, number: LineNumber) -> u64 {
        let inside = number.0 << self.line_bits;
        if self.hashed.is_some() {
            return self.local(inside);
        }
        let chunk = (inside >> self.chunk_bits) << self.slice_bits | slice as u64;
        chunk << self.chunk_bits | low(inside, self.chunk_bits)
    }

    /// Where the DRAM keeps a local address.
    #[inline]
    pub(crate) fn place(&self, local: u64) -> Place {
        let column_low = low(local, self.below_bank_bits) >> self.burst_bits;
        let rest = local >> self.below_bank_bits;
        let (bank_low, rest) = (low(rest, self.bank_low_bits), rest >> self.bank_low_bits);
        let (column_high, rest) = (low(rest, self.column_high_bits), rest >> self.column_high_bits);
        let (bank_high, row) = (low(rest, self.bank_high_bits), rest >> self.bank_high_bits);
        Place {
            bank: (bank_high << self.bank_low_bits | bank_low) as u32,
            row,
            column: (column_high << (self.below_bank_bits - self.burst_bits) | column_low) as u32,
        }
    }
}

/// The memory side of a gtx480, for tests.
#[cfg(test)]
pub(crate) fn gtx480() -> (L2Spec, DramSpec, crate::chip::timing::ClockSpec) {
    use crate::chip::timing::{CacheSpec, ClockSpec};
    let l2 = L2Spec {
        partitions: 6,
        slices_per_partition: 2,
        interleave_bytes: 256,
        far_cycles: 0,
        placement: crate::chip::timing::Placement::Interleaved,
        partial_write_cycles: 1,
        read_after_write_cycles: 0,
        cache: CacheSpec { sets: 64, ways: 8, line_bytes: 128 },
        latency_cycles: 120,
        port_bytes: 32,
        port_cycles: 1.0,
        mshrs: 32,
        mshr_merges: 4,
        queue_requests: 8,
        fetch_on_write: true,
        host_writes: false,
    };
    let dram = DramSpec {
        latency_cycles: 100,
        queue_requests: 16,
        bus_bytes: 8,
        burst: 8,
        transfers_per_clock: 4,
        banks: 16,
        bank_groups: 4,
        row_bytes: 4096,
        ccd: 2,
        ccdl: 3,
        rrd: 6,
        rcd: 12,
        ras: 28,
        rp: 12,
        rc: 40,
        cl: 12,
        wl: 4,
        cdlr: 5,
        wr: 12,
        rtpl: 2,
    };
    (l2, dram, ClockSpec { core_mhz: 700, interconnect_mhz: 700, dram_mhz: 924 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn map() -> AddressMap {
        let (l2, dram, _) = gtx480();
        AddressMap::new(&l2, &dram)
    }

    #[test]
    fn chunks_go_to_the_partitions_in_turn_then_to_the_slices() {
        let map = map();
        for (address, partition_and_slice, local) in [
            (0, (0, 0), 0),
            (0x80, (0, 0), 0x80),
            (0x100, (1, 0), 0),
            (0x5ff, (5, 0), 0xff),
            (0x600, (0, 1), 0x100),
            (0xc00, (0, 0), 0x200),
            (0x1000_0000, (0x10_0000 % 6, (0x10_0000 / 6) % 2), (0x10_0000 / 6) << 8),
        ] {
            assert_eq!(map.slice_of(LineAddress(address)), partition_and_slice, "{address:#x}");
            assert_eq!(map.local(address), local, "{address:#x}");
        }
    }

    #[test]
    fn a_local_address_is_row_bank_column() {
        let map = map();
        for (local, bank, row, column) in [
            (0x3f, 0, 0, 0),
            (0x40, 0, 0, 1),
            (0xc0, 0, 0, 3),
            (0x100, 1, 0, 0),
            (0x200, 0, 0, 4),
            (0x1ec0, 0, 0, 63),
            (0x2000, 2, 0, 0),
            (0xe100, 15, 0, 0),
            (0x1_0000, 0, 1, 0),
            (0xabcd_ffff, 15, 0xabcd, 63),
        ] {
            assert_eq!(map.place(local), Place { bank, row, column }, "{local:#x}");
        }
    }

    #[test]
    fn a_slice_counts_its_lines_without_gaps() {
        let map = map();
        let mut lines = vec![Vec::new(); 12];
        for line in 0..12 * 64 {
            let address = line * 128;
            let (partition, slice) = map.slice_of(LineAddress(address));
            let number = map.line_in_slice(LineAddress(address));
            assert_eq!(map.local_of_line(slice, number), map.local(address));
            lines[(partition * 2 + slice) as usize].push(number.0);
        }
        assert!(lines.iter().all(|numbers| numbers.iter().copied().eq(0..64)));
    }

    /// Chunks of 256 bytes in each of 96 slices, from `start` on.
    fn hashed_chunks(map: &AddressMap, start: u64, bytes: u64) -> Vec<u32> {
        let mut chunks = vec![0; 96];
        for address in (start..start + bytes).step_by(256) {
            let (partition, slice) = map.slice_of(LineAddress(address));
            chunks[(partition * 2 + slice) as usize] += 1;
        }
        chunks
    }

    #[test]
    fn a_hash_spreads_chunks_as_a_real_chip_does() {
        let (gtx480, dram, _) = gtx480();
        let l2 = L2Spec { partitions: 48, interleave_bytes: 256, placement: Placement::Hashed, ..gtx480 };
        let map = AddressMap::new(&l2, &dram);
        for page in 0..1024 {
            let chunks = hashed_chunks(&map, page << 12, 1 << 12);
            let used: Vec<_> = (0..96).filter(|&slice| chunks[slice] > 0).collect();
            assert!(used.len() == 8 && chunks.iter().all(|&count| count == 0 || count == 2), "{page}");
            assert!(used.iter().all(|slice| slice / 2 % 2 == used[0] / 2 % 2), "{page}: two halves");
        }
        for (bytes, most) in [(8 << 10, 2), (16 << 10, 2), (64 << 10, 4), (256 << 10, 16)] {
            for start in (0..4 << 20).step_by(bytes) {
                let chunks = hashed_chunks(&map, start, bytes as u64);
                assert!(chunks.iter().all(|&count| count <= most), "{bytes} at {start}: {chunks:?}");
                let in_half: u32 =
                    (0..96).filter(|slice| slice / 2 % 2 == 0).map(|slice| chunks[slice]).sum();
                assert_eq!(u64::from(in_half) * 512, bytes as u64, "{start}");
            }
        }
        let all = hashed_chunks(&map, 0, 4 << 20);
        assert!(all.iter().all(|count| (130..210).contains(count)), "{all:?}");
        let line = LineAddress(0x12_3456 << 7);
        assert_eq!(map.local_of_line(0, map.line_in_slice(line)), map.local(line.0));
    }

    #[test]
    fn every_shape_keeps_places_apart() {
        let (gtx480, dram, _) = gtx480();
        for (slices, interleave, row_bytes, banks) in [
            (1, 256, 4096, 16),
            (2, 512, 2048, 8),
            (4, 256, 1024, 32),
            (2, 2048, 1024, 16),
            (1, 256, 2048, 1),
        ] {
            let l2 = L2Spec {
                slices_per_partition: slices,
                interleave_bytes: interleave,
                partitions: 5,
                ..gtx480.clone()
            };
            let map = AddressMap::new(&l2, &DramSpec { row_bytes, banks, ..dram.clone() });
            let bursts = 4 * row_bytes as u64 * banks as u64 / 64;
            let places: HashSet<_> = (0..bursts)
                .map(|burst| {
                    let place = map.place(burst * 64);
                    assert!(place.bank < banks && place.row < 4 && place.column < row_bytes / 64);
                    (place.bank, place.row, place.column)
                })
                .collect();
            assert_eq!(places.len() as u64, bursts);
            let lines: HashSet<_> = (0..5 * slices as u64 * 64)
                .map(|line| LineAddress(line * 128))
                .map(|line| (map.slice_of(line), map.line_in_slice(line)))
                .collect();
            assert_eq!(lines.len() as u64, 5 * slices as u64 * 64);
        }
    }
}
