//! Work of streams that the host has asked for and not waited for yet.
//!
//! Nothing is simulated before the host can see whether it is: so kernels of several streams are there together when it
//! is. What pending work waits for is the order in its stream, events, the default stream, and the engine for copies.

use std::collections::{BTreeMap, HashMap};

use warploom::{Kernel, Launch, Move};

use crate::core::timeline::{LEGACY, Picoseconds, StreamId, Timeline};

/// Pending work that is simulated without the host waiting for it: a GPU has a limit of launches that wait, too.
pub(crate) const MOST_PENDING: usize = 1024;

/// A launch that was checked and has not run.
#[derive(Clone, Debug)]
pub(crate) struct PendingLaunch {
    pub(crate) kernel: Kernel,
    pub(crate) plain: String,
    /// Its number in the program.
    pub(crate) number: u64,
    pub(crate) launch: Launch,
    pub(crate) arguments: Vec<Vec<u8>>,
    /// Until the device knows of it.
    pub(crate) delay: Picoseconds,
}

/// In which direction a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

/// A copy or fill that has not been made. Memory that host and device share is the device's here.
#[derive(Clone, Debug)]
pub(crate) struct PendingCopy {
    pub(crate) moves: Vec<Move>,
    pub(crate) direction: Direction,
    pub(crate) duration: Picoseconds,
}

#[derive(Clone, Debug)]
pub(crate) enum Pending {
    Launch(Box<PendingLaunch>),
    Copy(PendingCopy),
    /// An event marks what its stream has come to.
    Record {
        event: u64,
    },
    /// What comes later in the stream waits for an event.
    Wait {
        event: u64,
    },
}

/// A launch or copy, and what it waits for.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The index among what is pending.
    pub(crate) item: usize,
    pub(crate) stream: StreamId,
    /// Indices of earlier nodes.
    pub(crate) after: Vec<usize>,
    /// It begins no sooner.
    pub(crate) not_before: Picoseconds,
}

/// The moment when some nodes have ended, and no sooner than another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) nodes: Vec<usize>,
    pub(crate) not_before: Picoseconds,
}

impl Moment {
    fn join(&mut self, other: &Moment) {
        let new = other.nodes.iter().filter(|node| !self.nodes.contains(node));
        let new: Vec<usize> = new.copied().collect();
        self.nodes.extend(new);
        self.not_before = self.not_before.max(other.not_before);
    }
}

/// What pending work waits for.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) nodes: Vec<Node>,
    /// What events mark that were recorded.
    pub(crate) events: HashMap<u64, Moment>,
    /// When all work of each stream has ended.
    pub(crate) ends: BTreeMap<StreamId, Moment>,
}

impl Order {
    /// The order of pending work, given when events happened that were recorded before.
    pub(crate) fn new(
        pending: &[(StreamId, Pending)],
        timeline: &Timeline,
        known_events: impl Fn(u64) -> Picoseconds,
    ) -> Order {
        let mut order = Order::default();
        let mut streams: BTreeMap<StreamId, Moment> = BTreeMap::new();
        let mut engines: [Option<usize>; 2] = [None; 2];
        let before = |streams: &BTreeMap<StreamId, Moment>, stream: StreamId| {
            let mut all = Moment { nodes: Vec::new(), not_before: timeline.end_of(stream) };
            let waits_for = |other: StreamId| {
                let default = stream == LEGACY || other == LEGACY;
                other == stream || default && timeline.is_blocking(stream) && timeline.is_blocking(other)
            };
            let others = streams.iter().filter(|(other, _)| waits_for(**other));
            others.for_each(|(_, moment)| all.join(moment));
            all
        };
        for (item, (stream, what)) in pending.iter().enumerate() {
            let mut moment = before(&streams, *stream);
            match what {
                Pending::Launch(launch) => {
                    let not_before = moment.not_before.max(timeline.now() + launch.delay);
                    order.add(item, *stream, moment.nodes, not_before);
                }
                Pending::Copy(copy) => {
                    let engine = &mut engines[copy.direction as usize];
                    moment.join(&Moment {
                        nodes: engine.iter().copied().collect(),
                        not_before: timeline.engine_free(copy.direction),
                    });
                    let not_before = moment.not_before.max(timeline.now());
                    *engine = Some(order.add(item, *stream, moment.nodes, not_before));
                }
                Pending::Record { event } => {
                    moment.not_before = moment.not_before.max(timeline.now());
                    order.events.insert(*event, moment);
                    continue;
                }
                Pending::Wait { event } => {
                    let known = || Moment { nodes: Vec::new(), not_before: known_events(*event) };
                    let event = order.events.get(event).cloned().unwrap_or_else(known);
                    streams.entry(*stream).or_default().join(&event);
                    continue;
                }
            }
            let last = order.nodes.len() - 1;
            let place = streams.entry(*stream).or_default();
            *place = Moment { nodes: vec![last], not_before: 0 };
        }
        order.ends = streams;
        order
    }

    fn add(&mut self, item: usize, stream: StreamId, after: Vec<usize>, not_before: Picoseconds) -> usize {
        self.nodes.push(Node { item, stream, after, not_before });
        self.nodes.len() - 1
    }

    /// Whether some two of the launches need not wait for each other.
    pub(crate) fn overlaps(&self, is_launch: impl Fn(usize) -> bool) -> bool {
        // Launches that end before a node begins, as bits, and all launches so far.
        let words = self.nodes.len().div_ceil(64);
        let mut before: Vec<Vec<u64>> = Vec::with_capacity(self.nodes.len());
        let mut launches = vec![0u64; words];
        for (at, node) in self.nodes.iter().enumerate() {
            let mut ended = vec![0u64; words];
            for &earlier in &node.after {
                ended.iter_mut().zip(&before[earlier]).for_each(|(all, more)| *all |= more);
                if is_launch(self.nodes[earlier].item) {
                    ended[earlier / 64] |= 1 << (earlier % 64);
                }
            }
            if is_launch(node.item) {
                if ended != launches {
                    return true;
                }
                launches[at / 64] |= 1 << (at % 64);
            }
            before.push(ended);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(direction: Direction) -> Pending {
        Pending::Copy(PendingCopy { moves: Vec::new(), direction, duration: 10 })
    }

    const UP: Direction = Direction::ToDevice;
    const DOWN: Direction = Direction::ToHost;

    fn after(pending: &[(StreamId, Pending)], timeline: &Timeline) -> Vec<Vec<usize>> {
        let order = Order::new(pending, timeline, |_| 0);
        order.nodes.into_iter().map(|node| node.after).collect()
    }

    #[test]
    fn streams_and_engines() {
        let mut timeline = Timeline::default();
        let (a, b, free) = (timeline.create(true), timeline.create(true), timeline.create(false));
        let pending = [(a, copy(UP)), (b, copy(DOWN)), (free, copy(UP)), (a, copy(DOWN))];
        assert_eq!(after(&pending, &timeline), [vec![], vec![], vec![0], vec![0, 1]]);
        // The default stream waits for blocking ones, and they for it.
        let pending =
            [(a, copy(UP)), (free, copy(DOWN)), (LEGACY, copy(UP)), (b, copy(UP)), (free, copy(UP))];
        assert_eq!(after(&pending, &timeline), [vec![], vec![], vec![0], vec![2], vec![1, 3]]);
    }

    #[test]
    fn events() {
        let mut timeline = Timeline::default();
        let (a, b) = (timeline.create(false), timeline.create(false));
        let (record, wait) = (Pending::Record { event: 7 }, Pending::Wait { event: 7 });
        let pending = [(a, copy(UP)), (a, record.clone()), (a, copy(UP)), (b, wait.clone()), (b, copy(DOWN))];
        assert_eq!(after(&pending, &timeline), [vec![], vec![0], vec![0]]);
        // Recorded only later, it happened before.
        let pending = [(b, wait), (b, copy(DOWN)), (a, copy(UP)), (a, record)];
        let order = Order::new(&pending, &timeline, |_| 55);
        assert_eq!((order.nodes[0].after.len(), order.nodes[0].not_before), (0, 55));
        assert_eq!(order.events[&7].nodes, [1]);
    }

    /// Copies stand for launches here.
    #[test]
    fn what_can_overlap() {
        let mut timeline = Timeline::default();
        let (a, b) = (timeline.create(false), timeline.create(false));
        let (record, wait) = (Pending::Record { event: 7 }, Pending::Wait { event: 7 });
        let overlaps =
            |pending: &[(StreamId, Pending)]| Order::new(pending, &timeline, |_| 0).overlaps(|_| true);
        assert!(!overlaps(&[(a, copy(UP)), (a, copy(DOWN)), (a, copy(UP))]));
        assert!(overlaps(&[(a, copy(UP)), (b, copy(DOWN))]));
        assert!(!overlaps(&[(a, copy(UP)), (a, record.clone()), (b, wait.clone()), (b, copy(DOWN))]));
        let three = [(a, copy(UP)), (a, record), (b, wait), (b, copy(DOWN)), (a, copy(UP))];
        assert!(overlaps(&three));
    }
}
