//! Replies for SMs that another thread runs: it takes them to the SMs itself, so that what it needs of them stays in
//! its processor's cache.

use crate::kit::cycle::Cycle;
use crate::time::network::message::Reply;

/// The number of an SM, and what arrives there in a cycle.
pub(super) type Delivery = (usize, Cycle, Reply);

/// Replies that have not been taken to their SMs yet.
#[derive(Debug)]
pub(super) struct Deliveries {
    /// By the hand that holds the SM.
    bags: Vec<Vec<Delivery>>,
    /// By SM, that hand.
    owners: Vec<u32>,
    /// When the first arrives, or [`Cycle::NEVER`].
    pub first: Cycle,
}

impl Deliveries {
    pub(super) fn new(hands: usize) -> Deliveries {
        Deliveries { bags: vec![Vec::new(); hands], owners: Vec::new(), first: Cycle::NEVER }
    }

    /// Learns which hand holds which SM.
    pub(super) fn set_owners(&mut self, owners: impl Iterator<Item = u32>) {
        self.owners.clear();
        self.owners.extend(owners);
    }

    #[inline]
    pub(super) fn put(&mut self, delivery: Delivery) {
        self.first = self.first.min(delivery.1);
        self.bags[self.owners[delivery.0] as usize].push(delivery);
    }

    /// Exchanges what is for a hand with an empty bag.
    pub(super) fn swap(&mut self, hand: usize, bag: &mut Vec<Delivery>) {
        debug_assert!(bag.is_empty(), "it has delivered everything");
        std::mem::swap(&mut self.bags[hand], bag);
    }

    /// Everything.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Delivery> {
        self.first = Cycle::NEVER;
        self.bags.iter_mut().flat_map(|bag| bag.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ids::Ticket;

    #[test]
    fn replies_are_kept_by_hand() {
        let mut deliveries = Deliveries::new(2);
        let delivery = |sm, at| (sm, Cycle(at), Reply::Answer(Ticket(0)));
        deliveries.set_owners([0, 0, 0, 0, 1, 1].into_iter());
        [delivery(4, 30), delivery(2, 20), delivery(5, 40)]
            .into_iter()
            .for_each(|delivery| deliveries.put(delivery));
        assert_eq!(deliveries.first, Cycle(20));
        let mut bag = Vec::new();
        deliveries.swap(1, &mut bag);
        assert_eq!(bag, [delivery(4, 30), delivery(5, 40)]);
        assert_eq!(deliveries.drain().collect::<Vec<_>>(), [delivery(2, 20)]);
        assert_eq!((deliveries.first, deliveries.drain().next()), (Cycle::NEVER, None));
    }
}
