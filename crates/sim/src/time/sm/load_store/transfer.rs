//! A warp's memory access in flight: what of it is unsent, how many messages are unanswered, and the lines it touches.

use warploom_isa::{Access, Cache, Op, Order};

use crate::exec::locks::holders::WarpName;
use crate::exec::memory::access::{MemoryOp, SpaceLanes, WarpAccess};
use crate::exec::memory::address::{Addresses, equal_lanes};
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::time::cache::{LineWritten, MAX_LINE_BYTES};

/// An access of a warp in flight.
#[derive(Clone, Debug)]
pub(crate) struct Transfer<const N: usize> {
    pub pending: Pending,
    pub access: WarpAccess<N>,
    pub who: WarpName,
    /// The number of its kernel, where kernels run together: each has constants of its own.
    pub kernel: u16,
    /// Its number among the accesses of its SM, where fences wait for all of them.
    pub number: u64,
    /// Of a copy: its group.
    pub group: u32,
    /// The copy of the copy engine that it belongs to, if it is not a warp's.
    pub engine: Option<u32>,
    lines: LineNumbers<N>,
}

/// What the load/store unit needs with every message, grouped so that it shares a line of the host's cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Pending {
    /// Lanes that the load/store unit has not sent yet.
    pub unsent: SpaceLanes,
    /// When the last part that needs no answer is done.
    pub ready_at: Cycle,
    /// Messages that have not been answered.
    pub outstanding: u32,
    pub slot: WarpSlot,
    /// Loads of global memory go to the L2, whatever the L1 holds.
    pub skips_l1: bool,
    /// It polls in a spin loop.
    pub polls: bool,
    /// The warp adds up its operands, and one lane's addition does for all.
    pub aggregated: bool,
    /// Lanes that tried to take a lock and wait in its queue.
    pub queued: LaneMask,
}

const _: () = assert!(size_of::<Pending>() == 64, "it is on two lines of the host's cache");

impl Pending {
    /// Becomes that of another access, which joins the queue next.
    #[inline]
    pub(crate) fn restart(&mut self, slot: WarpSlot, skips_l1: bool, polls: bool) {
        (self.slot, self.skips_l1, self.polls) = (slot, skips_l1, polls);
        (self.outstanding, self.queued) = (0, LaneMask::NONE);
    }

    /// The access joins the queue with these lanes; its operands have been read at `ready`.
    #[inline]
    pub(crate) fn begin(&mut self, lanes: SpaceLanes, ready: Cycle) {
        (self.unsent, self.ready_at) = (lanes, ready);
    }

    /// Whether all has been sent and answered.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.outstanding == 0 && self.unsent.all().is_empty()
    }
}

/// The number of every lane's line in global memory. Aligned like rows, so that few lines of the host's cache are read.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct LineNumbers<const N: usize>([u32; N]);

impl<const N: usize> Transfer<N> {
    /// A transfer of nothing, to be filled.
    pub(crate) fn new() -> Self {
        Transfer {
            pending: Pending {
                unsent: SpaceLanes::default(),
                ready_at: Cycle(0),
                outstanding: 0,
                slot: WarpSlot(0),
                skips_l1: false,
                polls: false,
                aggregated: false,
                queued: LaneMask::NONE,
            },
            access: WarpAccess::default(),
            who: WarpName { cta: 0, warp: 0 },
            kernel: 0,
            number: 0,
            group: 0,
            engine: None,
            lines: LineNumbers([0; N]),
        }
    }

    /// Whether its lanes in global memory are looked for in an L1 that is not coherent.
    #[inline]
    pub(crate) fn looks_in_l1(&self) -> bool {
        self.access.kind == MemoryOp::Load && !self.pending.skips_l1
    }

    /// The access is about to be sent, by lines of `line_bytes` bytes (a power of two).
    pub(crate) fn number_lines(&mut self, line_bytes: u64) {
        if let Addresses::Lanes(addresses) = &self.access.addresses
            && !self.access.lanes.global.is_empty()
        {
            let shift = line_bytes.trailing_zeros();
            // Line numbers of global memory fit 32 bits, of which twice as many fit a vector of the host.
            self.lines.0.iter_mut().zip(addresses).for_each(|(line, at)| *line = (at >> shift) as u32);
        }
    }

    /// The address of the line of global memory that the first of `lanes` accesses, and all of `lanes` that do.
    /// `line_bytes` must be those of [`Transfer::number_lines`].
    #[inline]
    pub(crate) fn line(&self, lanes: LaneMask, line_bytes: u64) -> (LineAddress, LaneMask) {
        match &self.access.addresses {
            Addresses::Lanes(addresses) if !lanes.0.is_power_of_two() => {
                let lines = &self.lines.0;
                let first = lanes.lowest() % N;
                (LineAddress::of(addresses[first], line_bytes), lanes & equal_lanes(lines, lines[first]))
            }
            addresses => {
                let (line, here) = addresses.block(lanes, line_bytes);
                (LineAddress(line), here)
            }
        }
    }

    /// The 32-byte sectors of the line at `line` that a lane touches, and the words, a bit each.
    #[inline(always)]
    pub(crate) fn place(&self, lane: usize, line: LineAddress) -> (u8, u32) {
        let WarpAccess { addresses, bytes, .. } = &self.access;
        let offset = (addresses.at(lane) - line.0) as u32;
        (sectors_of(offset, *bytes), ((1u32 << bytes.div_ceil(4)) - 1) << (offset / 4))
    }

    /// Where the bytes of lanes begin in the line at `line`, and how many there are, if lane by lane they follow each
    /// other without a gap, as most do.
    #[inline]
    fn run(&self, lanes: LaneMask, line: LineAddress) -> Option<(u32, u32)> {
        let WarpAccess { addresses, bytes, .. } = &self.access;
        let first = lanes.lowest();
        let follow = lanes.0 >> first;
        let Addresses::Stride { step, .. } = addresses else { return None };
        let run = (addresses.at(first) - line.0) as u32;
        (*step == u64::from(*bytes) && follow & follow.wrapping_add(1) == 0)
            .then(|| (run, bytes * follow.trailing_ones()))
    }

    /// The 32-byte sectors of the line at `line` that the lanes touch.
    pub(crate) fn sectors(&self, lanes: LaneMask, line: LineAddress) -> u8 {
        if let Some((offset, bytes)) = self.run(lanes, line) {
            return sectors_of(offset, bytes);
        }
        lanes.lanes().fold(0, |sectors, lane| sectors | self.place(lane, line).0)
    }

    /// The sectors of the line at `line` that the lanes cover wholly.
    pub(crate) fn whole_sectors(&self, lanes: LaneMask, line: LineAddress) -> u8 {
        let covered = self.covered(lanes, line);
        (0..4)
            .filter(|s| covered >> (32 * s) & u32::MAX as u128 == u32::MAX as u128)
            .fold(0, |m, s| m | 1 << s)
    }

    /// The bytes of a line that the lanes touch, a bit each.
    #[inline]
    pub(crate) fn covered(&self, lanes: LaneMask, line: LineAddress) -> LineWritten {
        if let Some((offset, bytes)) = self.run(lanes, line) {
            return LineWritten::MAX >> (LineWritten::BITS - bytes) << offset;
        }
        let WarpAccess { addresses, bytes, .. } = &self.access;
        let bits = if *bytes == 32 { u32::MAX as u128 } else { (1u128 << bytes) - 1 };
        lanes.lanes().fold(0, |covered, lane| covered | bits << (addresses.at(lane) - line.0))
    }

    /// How many of `lanes` want the most wanted word: as many cycles an atomic unit needs.
    pub(crate) fn same_word(&self, lanes: LaneMask) -> u32 {
        let addresses = &self.access.addresses;
        match addresses {
            _ if lanes.0.is_power_of_two() => return 1,
            Addresses::Uniform(_) => return lanes.count(),
            _ => {}
        }
        let mut left = lanes;
        let mut most = 0;
        while !left.is_empty() {
            let (_, here) = addresses.block(left, 4);
            most = most.max(here.count());
            left &= !here;
        }
        most
    }

    /// Passes of an atomic unit that covers blocks of `bytes` bytes, for lanes on one line.
    #[inline]
    pub(crate) fn passes(&self, lanes: LaneMask, bytes: u64) -> u32 {
        if lanes.0.is_power_of_two() {
            return 1;
        }
        let mut left = lanes;
        let mut passes = 0;
        while !left.is_empty() {
            let (_, here) = self.access.addresses.block(left, bytes);
            passes += self.same_word(here);
            left &= !here;
        }
        passes
    }

    /// Whether the lanes are not all on one word.
    #[inline]
    pub(crate) fn several_words(&self, lanes: LaneMask) -> bool {
        !lanes.0.is_power_of_two() && self.access.addresses.block(lanes, 4).1 != lanes
    }

    /// The first of `lanes` on each word.
    pub(crate) fn one_per_word(&self, lanes: LaneMask) -> LaneMask {
        let mut left = lanes;
        let mut first = LaneMask::NONE;
        while !left.is_empty() {
            let (_, here) = self.access.addresses.block(left, u64::from(self.access.bytes));
            first |= LaneMask::of(left.lowest());
            left &= !here;
        }
        first
    }

    /// Lanes of a store write their bytes to a line. Returns whether it changed.
    pub(crate) fn store_to_line(&self, line: LineAddress, data: &mut [u8], lanes: LaneMask) -> bool {
        let mut before = [0; MAX_LINE_BYTES];
        before[..data.len()].copy_from_slice(data);
        self.access.store_to_line(line.0, data, lanes);
        before[..data.len()] != *data
    }
}

/// The 32-byte sectors of a line that so many bytes touch, from `offset` on.
#[inline(always)]
fn sectors_of(offset: u32, bytes: u32) -> u8 {
    let last = offset + bytes - 1;
    ((2u32 << (last / 32)) - (1 << (offset / 32))) as u8
}

/// Whether an instruction's loads of global memory go to the L2 whatever the L1 holds.
#[inline]
pub(crate) fn skips_l1(op: &Op) -> bool {
    match *op {
        Op::Ld { access: Access { order, cache, .. }, .. } => {
            order != Order::Weak || !matches!(cache, Cache::All | Cache::Cs | Cache::Lu | Cache::Nc)
        }
        Op::CpAsync(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lanes touch of a line: sectors, whole sectors, bytes.
    fn touched(addresses: Addresses<32>, bytes: u32, lanes: LaneMask) -> (u8, u8, LineWritten) {
        let mut transfer = Transfer::new();
        (transfer.access.addresses, transfer.access.bytes) = (addresses, bytes);
        let line = LineAddress(1 << 20);
        (transfer.sectors(lanes, line), transfer.whole_sectors(lanes, line), transfer.covered(lanes, line))
    }

    #[test]
    fn a_run_of_lanes_touches_what_each_of_them_does() {
        for (first, step, bytes, lanes) in [
            (0, 4, 4, u32::MAX),
            (64, 4, 4, 0xffff),
            (24, 8, 8, 0b1110),
            (0, 4, 4, 0xf0f0),
            (3, 1, 1, 1),
            (0, 8, 4, 15),
        ] {
            let stride = Addresses::Stride { first: (1 << 20) + first, step };
            let each = Addresses::Lanes(std::array::from_fn(|lane| stride.at(lane)));
            let lanes = LaneMask(u64::from(lanes));
            assert_eq!(
                touched(stride, bytes, lanes),
                touched(each, bytes, lanes),
                "{stride:?}, {bytes}, {lanes:?}"
            );
        }
        let pairs = Addresses::Stride { first: 1 << 20, step: 8 };
        assert_eq!(touched(pairs, 8, LaneMask(0xff)), (0b0011, 0b0011, LineWritten::from(u64::MAX)));
    }
}
