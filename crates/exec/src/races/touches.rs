//! A warp's access, word by word: which earlier accesses it is ordered after.

use std::collections::BTreeMap;

use warploom_isa::Space;

use crate::races::clock::WarpClock;
use crate::races::report::Found;
use crate::races::shadow::{Kind, Record, Shadow, Word};

/// A warp's access to words.
pub(super) struct Touches<'a> {
    pub warp: &'a WarpClock,
    /// The warp's number in the grid.
    pub me: u32,
    /// The first warp of its CTA, and how many the CTA has.
    pub first: usize,
    pub count: usize,
    pub independent: bool,
    pub pc: u32,
    pub kind: Kind,
    pub shared: &'a mut [Word],
    pub global: &'a mut Shadow,
    pub found: &'a mut BTreeMap<(u32, u32), Found>,
}

impl Touches<'_> {
    /// The first and the last lane of several that access bytes of memory. `value` gives a row that is stored.
    #[inline]
    pub(super) fn touch(
        &mut self,
        lanes: (usize, usize),
        (space, address, bytes): (Space, u64, u32),
        value: impl Fn(usize) -> u32,
    ) {
        let Touches { warp, me, first, count, independent, pc, kind, .. } = *self;
        let same_cta = |old: &Record| (old.warp as usize).wrapping_sub(first) < count;
        let ordered = |old: &Record| {
            if old.warp == me {
                let (a, b) = (old.first as usize, old.last as usize);
                return if old.clock == warp.now {
                    // Lanes of one instruction are not ordered.
                    (a, b) == lanes
                } else {
                    let after = |lane, other| warp.lanes.ordered(lane, other, old.clock);
                    let all_after = |lane| after(lane, a) && after(lane, b);
                    !independent || all_after(lanes.0) && all_after(lanes.1)
                };
            }
            let near = (old.warp as usize).wrapping_sub(first);
            let known = match &warp.known {
                known if near < count => known.near[near],
                known => known.of_far(old.warp as usize),
            };
            known >= old.clock
        };
        let (mut at, end, mut row) = (address, address + u64::from(bytes), 0);
        while at < end {
            let word = at & !3;
            let till = end.min(word + 4);
            let mask = ((1u8 << (till - word)) - 1) & !((1u8 << (at - word)) - 1);
            let mut stored = value(row) << (8 * (at - word));
            if bytes < 4 {
                stored &= ((1u32 << (8 * bytes)) - 1) << (8 * (at - word));
            }
            let new = Record::new((me, warp.now, pc), lanes, mask, kind).with_value(stored);
            let raced = match space {
                Space::Shared => self.shared[word as usize / 4].access(new, same_cta, ordered, same_cta),
                _ => self.global.word(word).access(new, |_| true, ordered, same_cta),
            };
            if let Some(old) = raced {
                Found::note(self.found, (old, new), (space, word));
            }
            (at, row) = (till, row + 1);
        }
    }
}
