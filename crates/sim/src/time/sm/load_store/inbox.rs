//! Answers on their way to an SM.

use std::collections::VecDeque;

use crate::time::network::message::Reply;

/// Answers in the order of their arrival.
#[derive(Debug)]
pub struct Inbox {
    /// With the cycle of arrival.
    answers: VecDeque<(u64, Reply)>,
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
    pub fn push(&mut self, arrival: u64, reply: Reply) {
        self.next = self.next.min(arrival);
        self.answers.push_back((arrival, reply));
    }

    /// When the first arrives; never (`u64::MAX`) if nothing is on its way.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes an answer that has arrived at cycle `now`.
    #[inline]
    pub fn take(&mut self, now: u64) -> Option<Reply> {
        if self.next > now {
            return None;
        }
        let (_, reply) = self.answers.pop_front()?;
        self.next = self.answers.front().map_or(u64::MAX, |&(arrival, _)| arrival);
        Some(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ids::Ticket;

    #[test]
    fn answers_come_at_their_cycle_in_order() {
        let mut inbox = Inbox::new();
        assert_eq!((inbox.next(), inbox.take(u64::MAX - 1)), (u64::MAX, None));
        let [a, b, c] = [50, 51, 52].map(|ticket| Reply::Answer(Ticket(ticket)));
        for (arrival, reply) in [(5, a), (5, b), (9, c)] {
            inbox.push(arrival, reply);
        }
        assert_eq!((inbox.next(), inbox.take(4)), (5, None));
        assert_eq!([inbox.take(5), inbox.take(5), inbox.take(5)], [Some(a), Some(b), None]);
        assert_eq!((inbox.next(), inbox.take(20)), (9, Some(c)));
        assert_eq!(inbox.next(), u64::MAX);
    }
}
