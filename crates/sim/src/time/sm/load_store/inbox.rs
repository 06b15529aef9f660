//! Answers on their way to an SM.

use std::collections::VecDeque;

/// Answers in the order of their arrival.
#[derive(Debug)]
pub struct Inbox {
    /// Cycle of arrival and ticket.
    answers: VecDeque<(u64, u32)>,
    /// When the first arrives; asked for in every cycle.
    next: u64,
}

impl Inbox {
    /// Nothing is on its way.
    pub fn new() -> Inbox {
        Inbox { answers: VecDeque::new(), next: u64::MAX }
    }

    /// An answer arrives at a cycle, not before an earlier one.
    #[inline]
    pub fn push(&mut self, arrival: u64, ticket: u32) {
        self.next = self.next.min(arrival);
        self.answers.push_back((arrival, ticket));
    }

    /// When the first arrives; never (`u64::MAX`) if nothing is on its way.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes an answer that has arrived at cycle `now`.
    #[inline]
    pub fn take(&mut self, now: u64) -> Option<u32> {
        if self.next > now {
            return None;
        }
        let (_, ticket) = self.answers.pop_front()?;
        self.next = self.answers.front().map_or(u64::MAX, |&(arrival, _)| arrival);
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_at_their_cycle_in_order() {
        let mut inbox = Inbox::new();
        assert_eq!((inbox.next(), inbox.take(u64::MAX - 1)), (u64::MAX, None));
        for (arrival, ticket) in [(5, 50), (5, 51), (9, 52)] {
            inbox.push(arrival, ticket);
        }
        assert_eq!((inbox.next(), inbox.take(4)), (5, None));
        assert_eq!([inbox.take(5), inbox.take(5), inbox.take(5)], [Some(50), Some(51), None]);
        assert_eq!((inbox.next(), inbox.take(20)), (9, Some(52)));
        assert_eq!(inbox.next(), u64::MAX);
    }
}
