//! Answers on their way to an SM.

use std::collections::VecDeque;

use crate::kit::cycle::Cycle;
use crate::time::network::message::Reply;

/// Answers in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// With the cycle of arrival: those from the near half of the L2, and from the far one, which take longer.
    answers: [VecDeque<(Cycle, Reply)>; 2],
    /// When the first arrives; asked for in every cycle.
    next: Cycle,
}

impl Inbox {
    /// Nothing is on its way.
    pub(crate) fn new() -> Inbox {
        Inbox { answers: Default::default(), next: Cycle::NEVER }
    }

    /// An answer arrives at a cycle, not before an earlier one from the same half.
    #[inline]
    pub(crate) fn push(&mut self, arrival: Cycle, reply: Reply) {
        self.next = self.next.min(arrival);
        let far = matches!(reply, Reply::FarAnswer(_));
        self.answers[usize::from(far)].push_back((arrival, reply));
    }

    /// When the first arrives; [`Cycle::NEVER`] if nothing is on its way.
    #[inline(always)]
    pub(crate) fn next(&self) -> Cycle {
        self.next
    }

    /// Takes an answer that has arrived at cycle `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Cycle) -> Option<Reply> {
        if self.next > now {
            return None;
        }
        let first = |queue: &VecDeque<(Cycle, Reply)>| queue.front().map_or(Cycle::NEVER, |&(at, _)| at);
        let far = first(&self.answers[1]) < first(&self.answers[0]);
        let (_, reply) = self.answers[usize::from(far)].pop_front()?;
        self.next = first(&self.answers[0]).min(first(&self.answers[1]));
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
        assert_eq!((inbox.next(), inbox.take(Cycle(u64::MAX - 1))), (Cycle::NEVER, None));
        let [a, b, c] = [50, 51, 52].map(|ticket| Reply::Answer(Ticket(ticket)));
        for (arrival, reply) in [(5, a), (5, b), (9, c)] {
            inbox.push(Cycle(arrival), reply);
        }
        assert_eq!((inbox.next(), inbox.take(Cycle(4))), (Cycle(5), None));
        assert_eq!([(); 3].map(|()| inbox.take(Cycle(5))), [Some(a), Some(b), None]);
        assert_eq!((inbox.next(), inbox.take(Cycle(20))), (Cycle(9), Some(c)));
        assert_eq!(inbox.next(), Cycle::NEVER);
    }
}
