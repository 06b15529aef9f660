//! Parts of an exchange that other threads do while the leader serves requests: each direction of the network is one.

use super::*;
use crate::time::machine::replies::Replies;
use crate::time::machine::requests::Requests;

pub(super) enum Errand {
    /// Requests cross to the partitions.
    Requests(Box<Requests>, Box<Dealt<Partition>>),
    /// Replies cross to the deliveries.
    Replies(Box<Replies>),
}

impl Errand {
    pub(super) fn run(&mut self, until: Cycle) {
        match self {
            Errand::Requests(requests, partitions) => requests.cross(partitions, until),
            Errand::Replies(replies) => replies.cross(until),
        }
    }
}

/// The threads that do the errands; the leader does what is left if there is only one.
const FOR_REQUESTS: usize = 0;
const FOR_REPLIES: usize = 1;

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Whether the directions of the network have to do with each other, and with SMs, only before and after they are
    /// crossed.
    pub(super) fn has_errands(&self) -> bool {
        self.apart && self.coherence.is_none() && self.clusters.is_none() && self.aggregator.is_none()
    }

    /// Lets others begin to move requests, which are all there, and replies.
    pub(super) fn give_errands(&mut self, until: Cycle, crew: &Crew<Share<N, P>>) {
        self.replies.deliveries.set_owners(self.sms.owners());
        crew.give(FOR_REQUESTS, |share| {
            share.window = until..until;
            share.errand = Some(Errand::Requests(self.requests.hand_out(), self.partitions.hand_out()));
        });
        if self.sms.hands() > 2 {
            crew.give(FOR_REPLIES, |share| {
                share.window = until..until;
                share.errand = Some(Errand::Replies(self.replies.hand_out()));
            });
        }
    }

    /// Waits until they have done that.
    pub(super) fn take_back_errands(&mut self, until: Cycle, crew: &Crew<Share<N, P>>) {
        if self.sms.hands() == 2 {
            self.replies.cross(until);
        }
        for thread in (0..self.sms.hands() - 1).take(2) {
            crew.take_back(thread, |share, done| {
                let mut errand = share.errand.take().expect("it was given one");
                if !done {
                    errand.run(until);
                }
                match errand {
                    Errand::Requests(requests, partitions) => {
                        self.requests.hand_back(requests);
                        self.partitions.hand_back(partitions);
                    }
                    Errand::Replies(replies) => self.replies.hand_back(replies),
                }
            });
        }
    }
}
