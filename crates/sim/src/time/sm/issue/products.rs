//! Groups of a warp's asynchronous products of matrices (`wgmma`).

use std::collections::VecDeque;

use crate::kit::cycle::Cycle;

/// When the products of each group are done.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProductGroups {
    /// The last product begun.
    last: Cycle,
    /// Of closed groups that nobody has waited for.
    done: VecDeque<Cycle>,
}

impl ProductGroups {
    /// A product that will be done at `done` begins.
    pub(crate) fn begin(&mut self, done: Cycle) {
        self.last = self.last.max(done);
    }

    pub(crate) fn commit(&mut self) {
        self.done.push_back(self.last);
    }

    /// Until when a warp waits that leaves `left` groups pending.
    pub(crate) fn wait(&mut self, left: u32) -> Option<Cycle> {
        let ended = self.done.len().checked_sub(left as usize)?;
        self.done.drain(..ended).next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_leaves_the_last_groups_pending() {
        let mut groups = ProductGroups::default();
        for done in [10, 20, 30] {
            groups.begin(Cycle(done));
            groups.commit();
        }
        assert_eq!(groups.wait(1), Some(Cycle(20)));
        assert_eq!(groups.wait(1), None);
        assert_eq!(groups.wait(0), Some(Cycle(30)));
        assert_eq!((groups.wait(0), groups.wait(7)), (None, None));
    }
}
