//! What a thread notices of the SMs and memory partitions that it runs, at the end of a window.
//!
//! What another thread has run is far from this thread's cache, and a large chip has some hundred SMs and slices. So
//! each thread sums up its own, and the leader reads the sums.

use crate::kit::cycle::Cycle;
use crate::time::network::message::Request;
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
    /// Their requests with the cycles in which they are sent, SM by SM in the order in which these were looked at.
    pub requests: Vec<(Cycle, Request)>,
    /// The numbers of partitions that did something.
    pub partitions: Vec<usize>,
}

impl Default for Noticed {
    fn default() -> Self {
        let (requests, partitions) = (Vec::new(), Vec::new());
        Noticed { wake: Cycle::NEVER, changed: false, fault: false, room: false, requests, partitions }
    }
}

impl Noticed {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
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
        self.requests.append(&mut sm.memory.outbox);
    }

    /// Adds what another thread has noticed.
    pub(super) fn add(&mut self, other: &Noticed) {
        self.wake = self.wake.min(other.wake);
        self.changed |= other.changed;
        self.fault |= other.fault;
        self.room |= other.room;
        self.requests.extend_from_slice(&other.requests);
        self.partitions.extend_from_slice(&other.partitions);
    }

    /// The requests in the order of their SMs, and of each SM in the order in which it sent them.
    pub(super) fn take_requests(&mut self) -> Vec<(Cycle, Request)> {
        let mut requests = std::mem::take(&mut self.requests);
        if !requests.is_sorted_by_key(|(_, request)| request.from.number()) {
            requests.sort_by_key(|(_, request)| request.from.number());
        }
        requests
    }

    /// Takes an empty list for the requests of the next window.
    pub(super) fn give_back(&mut self, requests: Vec<(Cycle, Request)>) {
        debug_assert!(requests.is_empty() && self.requests.is_empty());
        self.requests = requests;
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
    use crate::kit::ids::Ticket;
    use crate::kit::line::LineAddress;
    use crate::time::network::message::{Asks, RequestKind};
    use crate::time::network::node::Node;

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
        let request = |sm: u16, ticket: u32| Request {
            line: LineAddress(0),
            port: 0,
            sectors: 1,
            whole: 0,
            kind: RequestKind::Read,
            from: Node::Sm(sm),
            ticket: Ticket(ticket),
            asks: Asks::Nothing,
            missed: false,
            far: false,
        };
        let [of_3, of_7] = [vec![(Cycle(9), request(3, 0))], vec![(Cycle(4), request(7, 1))]];
        let mut all = Noticed { requests: of_3, wake: Cycle(9), ..Noticed::default() };
        let of_1 = vec![(Cycle(8), request(1, 2)), (Cycle(8), request(1, 0))];
        all.add(&Noticed { requests: of_7, wake: Cycle(5), fault: true, ..Noticed::default() });
        all.add(&Noticed { requests: of_1, wake: Cycle(6), room: true, ..Noticed::default() });
        assert!(all.fault && all.room && !all.changed && all.wake == Cycle(5));
        let tickets: Vec<_> = all.take_requests().iter().map(|(_, request)| request.ticket.0).collect();
        assert_eq!(tickets, [2, 0, 0, 1]);
        all.clear();
        assert!(all.wake == Cycle::NEVER && all.take_requests().is_empty());
    }
}
