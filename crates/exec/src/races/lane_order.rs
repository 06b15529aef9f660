//! The order between the lanes of one warp, where lanes are threads of their own.

use crate::kit::lane_mask::LaneMask;
use crate::races::list::raise;

/// Which accesses of its own warp a lane is ordered after, where lanes are independent threads.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneOrder {
    /// Every lane is ordered after the accesses of all lanes up to this one.
    all: u32,
    /// Per lane, the clock up to which it is ordered after each lane; made when only some lanes synchronize.
    rows: Vec<u32>,
    lanes: usize,
}

impl LaneOrder {
    /// Whether `lane` is ordered after the access of `other` at `clock`.
    #[inline]
    pub(super) fn ordered(&self, lane: usize, other: usize, clock: u32) -> bool {
        lane == other
            || clock <= self.all
            || self.rows.get(lane * self.lanes + other).is_some_and(|&known| known >= clock)
    }

    /// The lanes of `mask`, of those that live, meet after the access `now`.
    pub(super) fn meet(&mut self, mask: LaneMask, live: LaneMask, lanes: usize, now: u32) {
        if (live & !mask).is_empty() {
            self.all = now;
            return;
        }
        self.make_rows(lanes);
        let mut met = vec![0; lanes];
        for lane in mask.lanes() {
            raise(&mut met, &self.rows[lane * lanes..]);
        }
        mask.lanes().for_each(|lane| met[lane] = now);
        mask.lanes().for_each(|lane| self.rows[lane * lanes..][..lanes].copy_from_slice(&met));
    }

    /// The lanes of `mask` learn, by way of memory, what the warp had done up to `clock`.
    pub(super) fn learn(&mut self, mask: LaneMask, lanes: usize, clock: u32) {
        if clock <= self.all {
            return;
        }
        self.make_rows(lanes);
        mask.lanes().for_each(|lane| raise(&mut self.rows[lane * lanes..][..lanes], &vec![clock; lanes]));
    }

    fn make_rows(&mut self, lanes: usize) {
        if self.rows.is_empty() {
            (self.rows, self.lanes) = (vec![0; lanes * lanes], lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_meet_are_ordered() {
        let all = LaneMask(u32::MAX as u64);
        let mut order = LaneOrder::default();
        assert!(!order.ordered(0, 1, 1) && order.ordered(1, 1, 1));
        order.meet(LaneMask(0b11), all, 32, 4);
        assert!(order.ordered(0, 1, 4) && !order.ordered(0, 1, 5) && !order.ordered(2, 1, 4));
        order.meet(LaneMask(0b110), all, 32, 6);
        assert!(order.ordered(2, 0, 4) && !order.ordered(0, 2, 6));
        order.meet(all, all, 32, 7);
        assert!(order.ordered(0, 2, 7));
    }
}
