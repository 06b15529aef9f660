//! The groups of a warp's asynchronous copies (`cp.async`).

use std::collections::VecDeque;

/// How many copies of each group are in flight. The last group is open: copies that begin belong to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopyGroups {
    in_flight: VecDeque<u32>,
    /// The number of the open group.
    open: u32,
}

impl CopyGroups {
    /// A copy begins. Returns the number of its group.
    pub(crate) fn begin(&mut self) -> u32 {
        match self.in_flight.back_mut() {
            Some(copies) => *copies += 1,
            None => self.in_flight.push_back(1),
        }
        self.open
    }

    /// A copy of a group is done.
    pub(crate) fn end(&mut self, group: u32) {
        let behind = self.open.wrapping_sub(group) as usize;
        if let Some(at) = self.in_flight.len().checked_sub(behind + 1) {
            self.in_flight[at] -= 1;
        }
    }

    /// The open group is closed, and the next one opens.
    pub(crate) fn commit(&mut self) {
        if self.in_flight.is_empty() {
            self.in_flight.push_back(0);
        }
        self.in_flight.push_back(0);
        self.open = self.open.wrapping_add(1);
        while self.in_flight.len() > 1 && self.in_flight[0] == 0 {
            self.in_flight.pop_front();
        }
    }

    /// Whether copies are in flight of closed groups other than the last `left` ones.
    pub(crate) fn waits(&self, left: u32) -> bool {
        let closed = self.in_flight.len().saturating_sub(1);
        self.in_flight.iter().take(closed.saturating_sub(left as usize)).any(|&copies| copies > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_leaves_the_last_groups_in_flight() {
        let mut groups = CopyGroups::default();
        let first = [groups.begin(), groups.begin()];
        groups.commit();
        let second = groups.begin();
        groups.commit();
        let open = groups.begin();
        assert_eq!([0, 1, 2].map(|left| groups.waits(left)), [true, true, false]);
        first.into_iter().for_each(|group| groups.end(group));
        assert_eq!([0, 1].map(|left| groups.waits(left)), [true, false]);
        groups.end(second);
        assert!(!groups.waits(0), "the open group does not count");
        groups.end(open);
        groups.commit();
        groups.commit();
        assert!(!groups.waits(0));
        let later = groups.begin();
        groups.commit();
        assert!(groups.waits(0));
        groups.end(later);
        assert!(!groups.waits(0));
    }
}
