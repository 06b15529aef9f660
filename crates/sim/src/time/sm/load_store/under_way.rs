//! Where a fence must follow the accesses of its SM: the L2 slices that have stores or atomics to answer, or that the
//! SM has used since the last fence. Lines that the L1 fetches do not count.

use std::collections::VecDeque;

use crate::chip::Chip;
use crate::kit::line::LineAddress;
use crate::time::map::AddressMap;

#[derive(Debug)]
pub(crate) struct UnderWay {
    map: AddressMap,
    slices_per_partition: u32,
    slices: Vec<Slice>,
    /// Fences that wait until the accesses before them have left the load/store unit, by number.
    pub(super) fences: VecDeque<u64>,
    /// Fences whose messages are on their way, and how many have not been answered.
    pub(super) open: Vec<(u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    /// Stores and atomics that it has not answered.
    unanswered: u32,
    /// It has been used since the last fence.
    used: bool,
    /// Of the last access.
    line: LineAddress,
}

impl UnderWay {
    pub(super) fn new(chip: &Chip) -> UnderWay {
        let slices_per_partition = chip.l2.slices_per_partition;
        let slices = (chip.l2.partitions * slices_per_partition) as usize;
        UnderWay {
            map: AddressMap::new(&chip.l2, &chip.dram),
            slices_per_partition,
            slices: vec![Slice { unanswered: 0, used: false, line: LineAddress(0) }; slices],
            fences: VecDeque::new(),
            open: Vec::new(),
        }
    }

    /// A load past the L1, or with `changes` a store or an atomic.
    pub(super) fn sent(&mut self, line: LineAddress, changes: bool) {
        let slice = self.slice(line);
        let slice = &mut self.slices[slice];
        *slice = Slice { unanswered: slice.unanswered + u32::from(changes), used: true, line };
    }

    /// A store or an atomic.
    pub(super) fn answered(&mut self, line: LineAddress) {
        let slice = self.slice(line);
        self.slices[slice].unanswered -= 1;
    }

    /// Whether a fence must follow any access.
    pub(super) fn is_any(&self) -> bool {
        self.slices.iter().any(|slice| slice.used || slice.unanswered > 0)
    }

    /// A line of each slice that a fence must follow accesses to.
    pub(super) fn fence(&mut self) -> Vec<LineAddress> {
        let followed = |slice: &mut Slice| std::mem::take(&mut slice.used) || slice.unanswered > 0;
        self.slices.iter_mut().filter_map(|slice| followed(slice).then_some(slice.line)).collect()
    }

    /// A message of a fence is answered. Returns whether it was the last one.
    pub(super) fn fence_answered(&mut self, number: u64) -> bool {
        let Some(at) = self.open.iter().position(|&(open, _)| open == number) else { return false };
        self.open[at].1 -= 1;
        let last = self.open[at].1 == 0;
        if last {
            self.open.swap_remove(at);
        }
        last
    }

    fn slice(&self, line: LineAddress) -> usize {
        let (partition, slice) = self.map.slice_of(line);
        (partition * self.slices_per_partition + slice) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_follows_accesses_to_the_slices_that_have_any() {
        let chip = Chip::load("h200", &["l2.placement=interleaved".into()]).unwrap();
        let mut under_way = UnderWay::new(&chip);
        let [first, same_slice, other, read] = [0, 128, 256, 512].map(LineAddress);
        [first, same_slice, other].into_iter().for_each(|line| under_way.sent(line, true));
        under_way.sent(read, false);
        assert_eq!(under_way.fence(), [same_slice, other, read]);
        assert_eq!(under_way.fence(), [same_slice, other], "they are not answered yet");
        under_way.answered(other);
        under_way.answered(first);
        assert_eq!(under_way.fence(), [same_slice]);
        under_way.sent(other, true);
        under_way.answered(other);
        under_way.answered(same_slice);
        assert_eq!(under_way.fence(), [other], "it has been used since");
        assert_eq!(under_way.fence(), []);
    }

    #[test]
    fn a_fence_is_over_when_its_last_message_is_answered() {
        let mut under_way = UnderWay::new(&Chip::load("h200", &[]).unwrap());
        under_way.open.extend([(4, 2), (7, 1)]);
        assert!(!under_way.fence_answered(4));
        assert!(under_way.fence_answered(7));
        assert!(under_way.fence_answered(4));
        assert!(under_way.open.is_empty());
    }
}
