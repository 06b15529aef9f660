//! What a thread notices of the SMs and memory partitions that it runs, at the end of a window.
//!
//! What another thread has run is far from this thread's cache, and a large chip has some hundred SMs and slices. So
//! each thread sums up its own, and the leader reads the sums.

use crate::kit::cycle::Cycle;
use crate::time::sm::Sm;
use crate::time::sm::probe::Probe;

/// The sum over some SMs and partitions.
#[derive(Debug)]
pub(super) struct Noticed {
    /// When the first of them does something next, unless a message arrives first, or [`Cycle::NEVER`].
    pub wake: Cycle,
    /// Something has changed, other than the state of a warp.
    pub changed: bool,
    pub fault: bool,
    /// Another CTA fits on one of them.
    pub room: bool,
    /// The numbers of those that have requests to send, in the order in which they were looked at.
    pub senders: Vec<usize>,
    /// The numbers of partitions that did something.
    pub partitions: Vec<usize>,
}

impl Default for Noticed {
    fn default() -> Self {
        let (senders, partitions) = (Vec::new(), Vec::new());
        Noticed { wake: Cycle::NEVER, changed: false, fault: false, room: false, senders, partitions }
    }
}

impl Noticed {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.senders.clear();
        self.partitions.clear();
        (self.wake, self.changed, self.fault, self.room) = (Cycle::NEVER, false, false, false);
    }

    /// Looks at an SM that has run.
    #[inline]
    pub(super) fn look<const N: usize, P: Probe>(&mut self, sm: &mut Sm<N, P>) {
        self.wake = self.wake.min(sm.wakes_at());
        self.changed |= std::mem::take(&mut sm.changed);
        self.fault |= sm.fault.is_some();
        self.room |= sm.has_room();
        if !sm.memory.outbox.is_empty() {
            self.senders.push(sm.id() as usize);
        }
    }

    /// Adds what another thread has noticed.
    pub(super) fn add(&mut self, other: &Noticed) {
        self.wake = self.wake.min(other.wake);
        self.changed |= other.changed;
        self.fault |= other.fault;
        self.room |= other.room;
        self.senders.extend_from_slice(&other.senders);
        self.partitions.extend_from_slice(&other.partitions);
    }

    /// The numbers of SMs with requests to send, in ascending order, each once.
    pub(super) fn take_senders(&mut self) -> Vec<usize> {
        let mut senders = std::mem::take(&mut self.senders);
        if !senders.is_sorted_by(|one, other| one < other) {
            senders.sort_unstable();
            senders.dedup();
        }
        senders
    }
}

/// Some of the numbers below a limit.
#[derive(Debug)]
pub(super) struct Marks {
    is_marked: Vec<bool>,
    /// In the order in which they were marked.
    numbers: Vec<usize>,
}

impl Marks {
    /// All numbers below `count`.
    pub(super) fn all(count: usize) -> Marks {
        Marks { is_marked: vec![true; count], numbers: (0..count).collect() }
    }

    pub(super) fn clear(&mut self) {
        self.numbers.drain(..).for_each(|number| self.is_marked[number] = false);
    }

    #[inline]
    pub(super) fn mark(&mut self, number: usize) {
        if !std::mem::replace(&mut self.is_marked[number], true) {
            self.numbers.push(number);
        }
    }

    #[inline]
    pub(super) fn contains(&self, number: usize) -> bool {
        self.is_marked[number]
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// One of them, by the place that [`Marks::sort`] gave it.
    pub(super) fn number(&self, place: usize) -> usize {
        self.numbers[place]
    }

    /// Puts them into ascending order.
    pub(super) fn sort(&mut self) {
        if !self.numbers.is_sorted() {
            self.numbers.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_marked_once() {
        let mut marks = Marks::all(4);
        assert_eq!((marks.len(), marks.contains(3)), (4, true));
        marks.clear();
        assert!(marks.len() == 0 && !marks.contains(3));
        [2, 0, 2].into_iter().for_each(|number| marks.mark(number));
        marks.sort();
        assert_eq!((0..marks.len()).map(|place| marks.number(place)).collect::<Vec<_>>(), [0, 2]);
        assert!(marks.contains(2) && !marks.contains(1));
    }

    #[test]
    fn sums_of_threads_are_added_up() {
        let mut all = Noticed { senders: vec![3, 7], wake: Cycle(9), ..Noticed::default() };
        all.add(&Noticed { senders: vec![1, 7], wake: Cycle(5), fault: true, ..Noticed::default() });
        assert!(all.fault && !all.room && all.wake == Cycle(5));
        assert_eq!(all.take_senders(), [1, 3, 7]);
        all.clear();
        assert_eq!((all.wake, all.take_senders()), (Cycle::NEVER, Vec::new()));
    }
}
