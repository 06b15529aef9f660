//! Stores and atomics that have not been answered, by slice of the L2: where a fence must follow them.

use crate::chip::Chip;
use crate::kit::line::LineAddress;
use crate::time::map::AddressMap;

#[derive(Debug)]
pub(crate) struct UnderWay {
    map: AddressMap,
    slices_per_partition: u32,
    /// By slice: how many there are, and the line of the last one.
    slices: Vec<(u32, LineAddress)>,
}

impl UnderWay {
    pub(super) fn new(chip: &Chip) -> UnderWay {
        let slices_per_partition = chip.l2.slices_per_partition;
        let slices = (chip.l2.partitions * slices_per_partition) as usize;
        UnderWay {
            map: AddressMap::new(&chip.l2, &chip.dram),
            slices_per_partition,
            slices: vec![(0, LineAddress(0)); slices],
        }
    }

    pub(super) fn sent(&mut self, line: LineAddress) {
        let slice = self.slice(line);
        let (count, last) = &mut self.slices[slice];
        (*count, *last) = (*count + 1, line);
    }

    pub(super) fn answered(&mut self, line: LineAddress) {
        let slice = self.slice(line);
        self.slices[slice].0 -= 1;
    }

    /// A line of each slice that has any.
    pub(super) fn lines(&self) -> Vec<LineAddress> {
        self.slices.iter().filter(|(count, _)| *count > 0).map(|&(_, line)| line).collect()
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
        let [first, same_slice, other] = [0, 128, 256].map(LineAddress);
        [first, same_slice, other].into_iter().for_each(|line| under_way.sent(line));
        assert_eq!(under_way.lines(), [same_slice, other]);
        under_way.answered(other);
        under_way.answered(first);
        assert_eq!(under_way.lines(), [same_slice]);
        under_way.answered(same_slice);
        assert_eq!(under_way.lines(), []);
    }
}
