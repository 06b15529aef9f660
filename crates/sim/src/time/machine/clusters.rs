//! Clusters: their CTAs start together on SMs of one GPC, messages between them cross the network of SMs, and their
//! barrier is kept here.

use rustc_hash::FxHashMap;

use super::*;
use crate::chip::timing::ClusterSpec;
use crate::time::sm::cluster::{Destination, Message, What};

/// Where the CTAs of clusters are, and who has arrived at which barrier.
#[derive(Debug)]
pub(super) struct Clusters {
    spec: ClusterSpec,
    /// CTAs of a cluster.
    size: u32,
    /// The SM of each CTA that has started, by its number.
    places: FxHashMap<u64, u32>,
    /// By the number of the cluster.
    barriers: FxHashMap<u64, Phase>,
    /// When each SM can take another message.
    free_at: Vec<Cycle>,
}

/// A phase of the barrier of a cluster. Ranks are bits.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    arrived: u32,
    ended: u32,
    /// The last arrival.
    latest: Cycle,
}

impl Clusters {
    /// `None` if the kernel does not use clusters, or if the chip has none.
    pub(super) fn new(launch: &Launch<'_>) -> Option<Box<Clusters>> {
        let spec = launch.chip.cluster.clone().filter(|_| launch.clusters)?;
        Some(Box::new(Clusters {
            spec,
            size: launch.shape.cluster_ctas(),
            places: FxHashMap::default(),
            barriers: FxHashMap::default(),
            free_at: vec![Cycle(0); launch.chip.sm.count as usize],
        }))
    }

    /// Whether several CTAs start at a time.
    pub(super) fn starts_together(&self) -> bool {
        self.size > 1
    }
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// The SMs for the CTAs of the next cluster, by rank: of the GPC with the most room, the emptiest SM for each.
    fn room_for_cluster(&self, clusters: &Clusters) -> Option<Vec<usize>> {
        let (count, size) = (self.sms.len(), clusters.size as usize);
        let gpc = if clusters.spec.gpc_sms == 0 { count } else { clusters.spec.gpc_sms as usize };
        let vacant = |first: usize| (first..(first + gpc).min(count)).map(|sm| self.vacant(sm));
        let room = |first: usize| vacant(first).sum::<usize>();
        let first = (0..count).step_by(gpc).max_by_key(|&first| (room(first), std::cmp::Reverse(first)))?;
        if room(first) < size {
            return None;
        }
        let mut left: Vec<usize> = vacant(first).collect();
        let place = |_| {
            let (at, _) = left.iter().enumerate().max_by_key(|&(at, &room)| (room, std::cmp::Reverse(at)))?;
            left[at] -= 1;
            Some(first + at)
        };
        (0..size).map(place).collect()
    }

    /// Starts clusters while there is room for one.
    pub(super) fn dispatch_clusters(&mut self, clusters: &mut Clusters, now: Cycle) {
        let until = now + self.window;
        while self.next_cta < self.total {
            let Some(sms) = self.room_for_cluster(clusters) else { return };
            if !self.starts.take(now, until) {
                return;
            }
            for (rank, sm) in sms.into_iter().enumerate() {
                let number = self.context.launch.shape.starting(self.next_cta);
                let context = self.context;
                self.sm(sm, now).start_cta(&context, number, now);
                clusters.places.insert(number, sm as u32);
                self.next_cta += 1;
                if rank > 0 {
                    self.starts.take_another();
                }
            }
        }
    }

    /// Whether another cluster could start.
    pub(super) fn cluster_fits(&self) -> bool {
        self.clusters.as_ref().is_some_and(|clusters| self.room_for_cluster(clusters).is_some())
    }

    /// Moves the messages between SMs that were sent in the window that ends at `until`.
    pub(super) fn exchange_clusters(&mut self, until: Cycle) {
        let Some(mut clusters) = self.clusters.take() else { return };
        let mut messages: Vec<(u32, Message<N>)> = Vec::new();
        for place in 0..self.sms.count() {
            let id = self.sms.number(place);
            let sm = &mut self.sms[id];
            if let Some(port) = sm.cluster.as_mut().filter(|port| !port.outbox.is_empty()) {
                messages.extend(port.outbox.drain(..).map(|message| (id as u32, message)));
            }
        }
        messages.sort_by_key(|(from, message)| (message.sent, *from));
        for (from, Message { sent, to, bytes, what }) in messages {
            let to = match (to, &what) {
                (Destination::Barrier, &What::Arrived { cta, ended }) => {
                    clusters.places.entry(cta).or_insert(from);
                    self.arrive(&mut clusters, (cta, ended), sent, until);
                    continue;
                }
                (Destination::Cta(cta), _) => clusters.places.get(&cta).copied().unwrap_or(from),
                (Destination::Sm(sm), _) => sm,
                (Destination::Barrier, _) => unreachable!("only arrivals go to the barrier"),
            };
            let spec = &clusters.spec;
            let free_at = &mut clusters.free_at[to as usize];
            let arrival = (sent + u64::from(spec.latency_cycles)).max(*free_at);
            *free_at = arrival + bytes.div_ceil(u64::from(spec.bytes_per_cycle));
            self.sms[to as usize].receive_from_cluster(arrival.max(until), what);
        }
        self.clusters = Some(clusters);
    }

    /// A CTA arrives at the barrier of its cluster, or ends. The last one ends the phase.
    fn arrive(&mut self, clusters: &mut Clusters, (cta, ended): (u64, bool), at: Cycle, until: Cycle) {
        let shape = &self.context.launch.shape;
        let (cluster, rank) = shape.cluster_of(cta);
        let phase = clusters.barriers.entry(cluster).or_default();
        phase.arrived |= 1 << rank;
        phase.ended |= u32::from(ended) << rank;
        phase.latest = phase.latest.max(at);
        let all = u32::MAX >> (32 - clusters.size);
        if phase.ended == all {
            // Nobody is left who could use it.
            clusters.barriers.remove(&cluster);
            for rank in 0..clusters.size {
                clusters.places.remove(&shape.member(cluster, rank));
            }
            return;
        }
        if phase.arrived | phase.ended != all || phase.arrived & !phase.ended == 0 {
            return;
        }
        let release = (phase.latest + u64::from(clusters.spec.barrier_latency_cycles)).max(until);
        *phase = Phase { arrived: 0, ..*phase };
        let left = (0..clusters.size).filter(|rank| phase.ended >> rank & 1 == 0);
        for cta in left.map(|rank| shape.member(cluster, rank)) {
            if let Some(&sm) = clusters.places.get(&cta) {
                self.sms[sm as usize].receive_from_cluster(release, What::Release { cta });
            }
        }
    }
}
