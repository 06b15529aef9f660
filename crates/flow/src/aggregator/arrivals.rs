//! Elements that the host puts while the graph runs: the paper's Figure 3.
//!
//! The chip has no model of a host core. The aggregator puts the elements in its place, by the calls of any other
//! producer, and in its own time.

use super::{Flow, cost};

/// An element that the host puts into a channel.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// Counted from the start of the run.
    cycle: u64,
    pub(super) at: usize,
    words: Vec<u32>,
}

impl Flow {
    /// Elements that the host will put into channels, in the order of their cycles.
    pub(crate) fn expect(&mut self, arrivals: impl Iterator<Item = (u64, usize, Vec<u32>)>) {
        self.arrivals = arrivals.map(|(cycle, at, words)| Arrival { cycle, at, words }).collect();
    }

    /// How many elements the host has not put yet.
    pub fn expected(&self) -> usize {
        self.arrivals.len()
    }

    /// Puts the elements whose cycle has come into their channels, as far as there is room. Returns how many.
    pub async fn take_arrivals(&mut self) -> usize {
        let mut taken = 0;
        while let Some(arrival) = self.arrivals.front() {
            if arrival.cycle > self.agg.now().await {
                break;
            }
            let (at, words) = (arrival.at, arrival.words.clone());
            if !self.put(at, &words).await {
                break;
            }
            self.arrivals.pop_front();
            taken += 1;
        }
        taken
    }

    /// Sleeps until the host puts its next element, if nothing else can happen before: nothing is ready or in flight.
    pub async fn sleep_until_arrival(&mut self) {
        if let Some(arrival) = self.arrivals.front()
            && self.all_busy == 0
        {
            let now = self.agg.now().await;
            self.agg.sleep(arrival.cycle.saturating_sub(now)).await;
        }
    }

    /// Puts an element, like `talloc` and `enq` of `channel.cuh`. Returns false if the channel is full.
    async fn put(&mut self, at: usize, words: &[u32]) -> bool {
        let channel = self.sides[at].channel;
        self.charge(cost::ARRIVAL);
        let position = loop {
            let tail = self.agg.load32(channel.tail()).await;
            if tail.wrapping_sub(self.sides[at].group) >= channel.shape.width {
                return false;
            }
            if self.agg.cas32(channel.tail(), tail, tail.wrapping_add(1)).await == tail {
                break tail;
            }
        };
        self.agg.note(|| format!("put an element of the host into {}", self.names.channels[at]));
        for (word, &value) in (0..).zip(words) {
            drop(self.agg.store32(channel.word(position, word), value));
        }
        // Stores become visible in their order, and before a later atomic.
        let entry = self.agg.add32(channel.reserve(), 1).await;
        let value = channel.slot(position) << 1 | channel.written_bit(entry);
        drop(self.agg.store32(channel.entry(entry), value));
        // Whoever reserved an earlier entry publishes this one too.
        let mut end = entry;
        while self.agg.cas32(channel.ready(), end, end.wrapping_add(1)).await == end {
            end = end.wrapping_add(1);
            if self.agg.load32(channel.entry(end)).await & 1 != channel.written_bit(end) {
                break;
            }
        }
        self.sides[at].ready = self.agg.load32(channel.ready()).await;
        self.note(at);
        true
    }
}
