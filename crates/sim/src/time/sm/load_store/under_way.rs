//! Where a fence must follow the accesses of its SM: the L2 slices that have stores or atomics to answer, or that the
//! SM has used since the last fence. Lines that the L1 fetches do not count.

use std::collections::VecDeque;

use crate::chip::Chip;
use crate::kit::bits::lanes;
use crate::kit::line::LineAddress;

#[derive(Debug)]
pub(crate) struct UnderWay {
    /// By port.
    slices: Vec<Slice>,
    /// Slices that a fence must follow accesses to, a bit each: those that it must since the last fence, and those that
    /// have accesses to answer.
    used: Vec<u64>,
    unanswered: Vec<u64>,
    /// Fences that wait until the accesses before them have left the load/store unit, by number.
    pub(super) fences: VecDeque<u64>,
    /// Fences whose messages are on their way, and how many have not been answered.
    pub(super) open: Vec<(u64, u32)>,
    /// Where the slices of a fence are collected: empty.
    pub(super) followed: Vec<(LineAddress, u16)>,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    /// Stores and atomics that it has not answered.
    unanswered: u32,
    /// Of the last access.
    line: LineAddress,
}

impl UnderWay {
    pub(super) fn new(chip: &Chip) -> UnderWay {
        let slices = (chip.l2.partitions * chip.l2.slices_per_partition) as usize;
        let none = vec![0; slices.div_ceil(64)];
        UnderWay {
            slices: vec![Slice { unanswered: 0, line: LineAddress(0) }; slices],
            used: none.clone(),
            unanswered: none,
            fences: VecDeque::new(),
            open: Vec::new(),
            followed: Vec::new(),
        }
    }

    /// A load past the L1, or with `changes` a store or an atomic, goes to the slice at a port.
    #[inline]
    pub(super) fn sent(&mut self, port: u16, line: LineAddress, changes: bool) {
        let port = usize::from(port);
        let slice = &mut self.slices[port];
        slice.line = line;
        slice.unanswered += u32::from(changes);
        self.used[port / 64] |= 1 << (port % 64);
        self.unanswered[port / 64] |= u64::from(changes) << (port % 64);
    }

    /// A store or an atomic.
    #[inline]
    pub(super) fn answered(&mut self, port: u16) {
        let port = usize::from(port);
        let slice = &mut self.slices[port];
        slice.unanswered -= 1;
        self.unanswered[port / 64] &= !(u64::from(slice.unanswered == 0) << (port % 64));
    }

    /// Whether a fence must follow any access.
    pub(super) fn is_any(&self) -> bool {
        self.used.iter().chain(&self.unanswered).any(|&word| word != 0)
    }

    /// Adds a line of each slice that a fence must follow accesses to, with its port.
    pub(super) fn fence(&mut self, slices: &mut Vec<(LineAddress, u16)>) {
        for (index, (used, &unanswered)) in self.used.iter_mut().zip(&self.unanswered).enumerate() {
            let ports = lanes(std::mem::take(used) | unanswered).map(|bit| index * 64 + bit);
            slices.extend(ports.map(|port| (self.slices[port].line, port as u16)));
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::map::AddressMap;

    #[test]
    fn a_fence_follows_accesses_to_the_slices_that_have_any() {
        let chip = Chip::load("h200", &["l2.placement=interleaved".into()]).unwrap();
        let mut under_way = UnderWay::new(&chip);
        let map = AddressMap::new(&chip.l2, &chip.dram);
        let port = |line| map.port_of(line);
        let fence = |under_way: &mut UnderWay| {
            let mut slices = Vec::new();
            under_way.fence(&mut slices);
            assert!(slices.iter().all(|&(line, at)| at == port(line)));
            slices.into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        let [first, same_slice, other, read] = [0, 128, 256, 512].map(LineAddress);
        [first, same_slice, other].into_iter().for_each(|line| under_way.sent(port(line), line, true));
        under_way.sent(port(read), read, false);
        assert_eq!(fence(&mut under_way), [same_slice, other, read]);
        assert_eq!(fence(&mut under_way), [same_slice, other], "they are not answered yet");
        under_way.answered(port(other));
        under_way.answered(port(first));
        assert_eq!(fence(&mut under_way), [same_slice]);
        under_way.sent(port(other), other, true);
        under_way.answered(port(other));
        under_way.answered(port(same_slice));
        assert_eq!(fence(&mut under_way), [other], "it has been used since");
        assert!(!under_way.is_any());
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
