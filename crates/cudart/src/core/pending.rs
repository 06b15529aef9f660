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
    /// The last copy in each direction.
    engines: [Option<usize>; 2],
}

impl Order {
    /// When all work has ended that what comes next in a stream waits for.
    pub(crate) fn before(&self, stream: StreamId, timeline: &Timeline) -> Moment {
        let mut all = Moment { nodes: Vec::new(), not_before: timeline.end_of(stream) };
        let waits_for = |other: StreamId| {
            let default = stream == LEGACY || other == LEGACY;
            other == stream || default && timeline.is_blocking(stream) && timeline.is_blocking(other)
        };
        let others = self.ends.iter().filter(|(other, _)| waits_for(**other));
        others.for_each(|(_, moment)| all.join(moment));
        all
    }

    /// Adds work of a stream that the host asks for now, given when events happened that were recorded before.
    pub(crate) fn add(
        &mut self,
        item: usize,
        (stream, what): (StreamId, &Pending),
        timeline: &Timeline,
        known_event: impl Fn(u64) -> Picoseconds,
    ) {
        let mut moment = self.before(stream, timeline);
        match what {
            Pending::Launch(launch) => {
                let not_before = moment.not_before.max(timeline.now() + launch.delay);
                self.add_node(item, stream, moment.nodes, not_before);
            }
            Pending::Copy(copy) => {
                moment.join(&Moment {
                    nodes: self.engines[copy.direction as usize].iter().copied().collect(),
                    not_before: timeline.engine_free(copy.direction),
                });
                let not_before = moment.not_before.max(timeline.now());
                self.engines[copy.direction as usize] = Some(self.nodes.len());
                self.add_node(item, stream, moment.nodes, not_before);
            }
            Pending::Record { event } => {
                moment.not_before = moment.not_before.max(timeline.now());
                self.events.insert(*event, moment);
            }
            Pending::Wait { event } => {
                let known = || Moment { nodes: Vec::new(), not_before: known_event(*event) };
                let event = self.events.get(event).cloned().unwrap_or_else(known);
                self.ends.entry(stream).or_default().join(&event);
            }
        }
    }

    fn add_node(&mut self, item: usize, stream: StreamId, after: Vec<usize>, not_before: Picoseconds) {
        let node = self.nodes.len();
        self.nodes.push(Node { item, stream, after, not_before });
        self.ends.insert(stream, Moment { nodes: vec![node], not_before: 0 });
    }

    /// Whether a launch, and another or a copy to the device, need not wait for each other: one may wait for what the
    /// other does.
    pub(crate) fn overlaps(&self, kind: impl Fn(usize) -> Kind) -> bool {
        // As bits: those that end before a node begins, all launches so far, and all copies to the device.
        let words = self.nodes.len().div_ceil(64);
        let mut before: Vec<Vec<u64>> = Vec::with_capacity(self.nodes.len());
        let (mut launches, mut copies) = (vec![0u64; words], vec![0u64; words]);
        for (at, node) in self.nodes.iter().enumerate() {
            let mut ended = vec![0u64; words];
            for &earlier in &node.after {
                ended.iter_mut().zip(&before[earlier]).for_each(|(all, more)| *all |= more);
                ended[earlier / 64] |= 1 << (earlier % 64);
            }
            let misses =
                |others: &[u64]| others.iter().zip(&ended).any(|(others, ended)| others & !ended != 0);
            let kind = kind(node.item);
            let overlaps = match kind {
                Kind::Launch => misses(&launches) || misses(&copies),
                Kind::CopyToDevice => misses(&launches),
                Kind::Other => false,
            };
            if overlaps {
                return true;
            }
            match kind {
                Kind::Launch => launches[at / 64] |= 1 << (at % 64),
                Kind::CopyToDevice => copies[at / 64] |= 1 << (at % 64),
                Kind::Other => {}
            }
            before.push(ended);
        }
        false
    }
}

/// What kernels of other streams can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Launch,
    CopyToDevice,
    Other,
}

impl Pending {
    fn kind(&self) -> Kind {
        match self {
            Pending::Launch(_) => Kind::Launch,
            Pending::Copy(PendingCopy { direction: Direction::ToDevice, .. }) => Kind::CopyToDevice,
            _ => Kind::Other,
        }
    }
}

/// What the host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    Everything,
    Stream(StreamId),
    Event(u64),
}

/// Work that was put off: part of it may run on the machine, whose plan pauses.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    pub(crate) items: Vec<(StreamId, Pending)>,
    pub(crate) order: Order,
    /// How many items and nodes the machine has.
    pub(crate) given: (usize, usize),
    /// When the machine's plan began.
    pub(crate) base: Picoseconds,
    /// When each node began and ended that has.
    pub(crate) times: Vec<Option<(Picoseconds, Picoseconds)>>,
}

impl Outstanding {
    /// The launches that have not ended.
    pub(crate) fn launches(&self) -> impl Iterator<Item = &PendingLaunch> {
        let left = self.order.nodes.iter().enumerate().filter(|(node, _)| !self.has_ended(*node));
        left.filter_map(|(_, node)| self.launch(node))
    }

    /// The launch of a node, if it is one.
    pub(crate) fn launch(&self, node: &Node) -> Option<&PendingLaunch> {
        match &self.items[node.item].1 {
            Pending::Launch(launch) => Some(launch),
            _ => None,
        }
    }

    pub(crate) fn has_ended(&self, node: usize) -> bool {
        self.times.get(node).is_some_and(Option::is_some)
    }

    /// When a moment is, if all of its nodes have ended.
    pub(crate) fn known(&self, moment: &Moment) -> Option<Picoseconds> {
        let end = |&node: &usize| self.times.get(node).copied().flatten().map(|(_, end)| end);
        let ends: Option<Vec<Picoseconds>> = moment.nodes.iter().map(end).collect();
        ends.map(|ends| ends.into_iter().max().unwrap_or(0).max(moment.not_before))
    }

    /// The nodes that have not ended of what the host waits for; `None`: all of them.
    pub(crate) fn awaited(&self, awaited: Awaited, timeline: &Timeline) -> Option<Vec<usize>> {
        let nodes = match awaited {
            Awaited::Everything => return None,
            Awaited::Stream(stream) => self.order.before(stream, timeline).nodes,
            Awaited::Event(event) => {
                self.order.events.get(&event).map_or(Vec::new(), |moment| moment.nodes.clone())
            }
        };
        Some(nodes.into_iter().filter(|&node| !self.has_ended(node)).collect())
    }

    /// Whether it is for the machine to carry out: some of it is there already, or launches may overlap with something.
    pub(crate) fn runs_together(&self) -> bool {
        self.given.1 > 0 || self.order.overlaps(|item| self.items[item].1.kind())
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
        ordered(pending, timeline, 0).nodes.into_iter().map(|node| node.after).collect()
    }

    /// The order of work, with events that were recorded before at a moment.
    fn ordered(pending: &[(StreamId, Pending)], timeline: &Timeline, events: Picoseconds) -> Order {
        let mut order = Order::default();
        for (item, (stream, what)) in pending.iter().enumerate() {
            order.add(item, (*stream, what), timeline, |_| events);
        }
        order
    }

    #[test]
    fn streams_and_engines() {
        let mut timeline = Timeline::default();
        let (a, b, free) = (timeline.create(true, 0), timeline.create(true, 0), timeline.create(false, 0));
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
        let (a, b) = (timeline.create(false, 0), timeline.create(false, 0));
        let (record, wait) = (Pending::Record { event: 7 }, Pending::Wait { event: 7 });
        let pending = [(a, copy(UP)), (a, record.clone()), (a, copy(UP)), (b, wait.clone()), (b, copy(DOWN))];
        assert_eq!(after(&pending, &timeline), [vec![], vec![0], vec![0]]);
        // Recorded only later, it happened before.
        let pending = [(b, wait), (b, copy(DOWN)), (a, copy(UP)), (a, record)];
        let order = ordered(&pending, &timeline, 55);
        assert_eq!((order.nodes[0].after.len(), order.nodes[0].not_before), (0, 55));
        assert_eq!(order.events[&7].nodes, [1]);
    }

    /// Copies stand for launches here.
    #[test]
    fn what_can_overlap() {
        let mut timeline = Timeline::default();
        let (a, b) = (timeline.create(false, 0), timeline.create(false, 0));
        let (record, wait) = (Pending::Record { event: 7 }, Pending::Wait { event: 7 });
        let overlaps =
            |pending: &[(StreamId, Pending)]| ordered(pending, &timeline, 0).overlaps(|_| Kind::Launch);
        assert!(!overlaps(&[(a, copy(UP)), (a, copy(DOWN)), (a, copy(UP))]));
        assert!(overlaps(&[(a, copy(UP)), (b, copy(DOWN))]));
        assert!(!overlaps(&[(a, copy(UP)), (a, record.clone()), (b, wait.clone()), (b, copy(DOWN))]));
        let three = [(a, copy(UP)), (a, record), (b, wait), (b, copy(DOWN)), (a, copy(UP))];
        assert!(overlaps(&three));
        // A kernel may wait for a copy to the device, not for one to the host, and copies for nothing.
        let two = [(a, copy(UP)), (b, copy(DOWN))];
        let kinds = |kinds: [Kind; 2]| ordered(&two, &timeline, 0).overlaps(|item| kinds[item]);
        assert!(kinds([Kind::Launch, Kind::CopyToDevice]) && kinds([Kind::CopyToDevice, Kind::Launch]));
        assert!(!kinds([Kind::Launch, Kind::Other]) && !kinds([Kind::CopyToDevice; 2]));
    }

    #[test]
    fn what_the_host_waits_for() {
        let mut timeline = Timeline::default();
        let (a, b) = (timeline.create(false, 0), timeline.create(false, 0));
        let mut work = Outstanding::default();
        for (stream, what) in
            [(a, copy(UP)), (b, copy(DOWN)), (a, Pending::Record { event: 7 }), (a, copy(UP))]
        {
            work.order.add(work.items.len(), (stream, &what), &timeline, |_| 0);
            work.items.push((stream, what));
        }
        let awaited = |work: &Outstanding, what| work.awaited(what, &timeline);
        assert_eq!(awaited(&work, Awaited::Everything), None);
        assert_eq!(awaited(&work, Awaited::Stream(a)), Some(vec![2]));
        assert_eq!(awaited(&work, Awaited::Event(7)), Some(vec![0]));
        assert_eq!(awaited(&work, Awaited::Stream(LEGACY)), Some(vec![]), "they do not block");
        work.times = vec![Some((5, 9))];
        assert_eq!(awaited(&work, Awaited::Event(7)), Some(vec![]));
        assert_eq!(work.known(&work.order.events[&7]), Some(9));
        assert_eq!(work.known(&work.order.ends[&a]), None);
    }
}
