//! Simulated time: when the work of each stream runs.
//!
//! Streams overlap as on a GPU with one engine for copies in each direction: work starts when its stream has come to
//! it and its engine is free. A kernel that is simulated alone starts when the others leave enough of the chip for it
//! (`sharing`); those that are pending together are simulated together, and tell when they ran (`settle`). The host's
//! own time is that of its waits alone. The legacy default stream waits for all blocking streams, and they for it.

use std::collections::BTreeMap;

use crate::core::pending::Direction;
use crate::core::sharing::{Share, Sharing};

/// A moment or a duration in picoseconds, which hold a cycle of any clock well enough.
pub(crate) type Picoseconds = u64;

/// A stream's number. [`LEGACY`] is the default stream.
pub(crate) type StreamId = u64;

pub(crate) const LEGACY: StreamId = 0;

/// What executes a stream's work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Engine {
    /// The SMs, of which a kernel needs a share.
    Kernels(Share),
    ToDevice,
    ToHost,
}

impl From<Direction> for Engine {
    fn from(direction: Direction) -> Engine {
        match direction {
            Direction::ToDevice => Engine::ToDevice,
            Direction::ToHost => Engine::ToHost,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// When its last work ends.
    end: Picoseconds,
    /// Whether it and the legacy stream wait for each other.
    blocking: bool,
    /// Kernels of lower numbers go first.
    priority: i32,
}

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    host: Picoseconds,
    legacy_end: Picoseconds,
    streams: BTreeMap<StreamId, Stream>,
    last_stream: StreamId,
    kernels: Sharing,
    /// When the engine for copies to the device is free.
    to_device: Picoseconds,
    to_host: Picoseconds,
}

impl Timeline {
    pub(crate) fn create(&mut self, blocking: bool, priority: i32) -> StreamId {
        self.last_stream += 1;
        self.streams.insert(self.last_stream, Stream { end: self.host, blocking, priority });
        self.last_stream
    }

    pub(crate) fn priority(&self, stream: StreamId) -> i32 {
        self.streams.get(&stream).map_or(0, |stream| stream.priority)
    }

    /// Returns whether there was such a stream.
    pub(crate) fn destroy(&mut self, stream: StreamId) -> bool {
        self.streams.remove(&stream).is_some()
    }

    pub(crate) fn exists(&self, stream: StreamId) -> bool {
        stream == LEGACY || self.streams.contains_key(&stream)
    }

    /// Whether it and the legacy stream wait for each other.
    pub(crate) fn is_blocking(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_none_or(|stream| stream.blocking)
    }

    /// Puts work into a stream. It is known to the device `delay` after the call and takes `duration`. Returns when
    /// it starts.
    pub(crate) fn enqueue(
        &mut self,
        stream: StreamId,
        engine: Engine,
        delay: Picoseconds,
        duration: Picoseconds,
    ) -> Picoseconds {
        let ready = (self.host + delay).max(self.end_of(stream));
        let start = match engine {
            Engine::Kernels(share) => self.kernels.add(self.host, ready, duration, share),
            Engine::ToDevice => ready.max(self.to_device),
            Engine::ToHost => ready.max(self.to_host),
        };
        match engine {
            Engine::Kernels(_) => {}
            Engine::ToDevice => self.to_device = start + duration,
            Engine::ToHost => self.to_host = start + duration,
        }
        self.extend(stream, start + duration);
        start
    }

    /// Work of a stream ran, as the machine found.
    pub(crate) fn ran(&mut self, stream: StreamId, engine: Engine, start: Picoseconds, end: Picoseconds) {
        match engine {
            Engine::Kernels(share) => self.kernels.ran(start, end, share),
            Engine::ToDevice => self.to_device = self.to_device.max(end),
            Engine::ToHost => self.to_host = self.to_host.max(end),
        }
        self.extend(stream, end);
    }

    /// When an engine for copies is free.
    pub(crate) fn engine_free(&self, direction: Direction) -> Picoseconds {
        match direction {
            Direction::ToDevice => self.to_device,
            Direction::ToHost => self.to_host,
        }
    }

    /// How many streams the program has besides the default one.
    pub(crate) fn count(&self) -> usize {
        self.streams.len()
    }

    /// When all that is in a stream now has ended.
    pub(crate) fn end_of(&self, stream: StreamId) -> Picoseconds {
        let blocking = self.streams.values().filter(|stream| stream.blocking).map(|stream| stream.end);
        match self.streams.get(&stream) {
            Some(stream) if stream.blocking => stream.end.max(self.legacy_end),
            Some(stream) => stream.end,
            None => blocking.max().unwrap_or(0).max(self.legacy_end),
        }
    }

    fn extend(&mut self, stream: StreamId, end: Picoseconds) {
        match self.streams.get_mut(&stream) {
            Some(stream) => stream.end = stream.end.max(end),
            None => self.legacy_end = self.legacy_end.max(end),
        }
    }

    /// The moment that an event marks which is recorded now.
    pub(crate) fn record(&self, stream: StreamId) -> Picoseconds {
        self.end_of(stream).max(self.host)
    }

    /// Later work of the stream waits for a moment.
    pub(crate) fn wait(&mut self, stream: StreamId, moment: Picoseconds) {
        self.extend(stream, moment);
    }

    /// The host waits for a stream.
    pub(crate) fn synchronize(&mut self, stream: StreamId) {
        self.host = self.host.max(self.end_of(stream));
    }

    /// The host waits for a moment.
    pub(crate) fn synchronize_with(&mut self, moment: Picoseconds) {
        self.host = self.host.max(moment);
    }

    /// The host waits for all streams.
    pub(crate) fn synchronize_all(&mut self) {
        let ends = self.streams.values().map(|stream| stream.end);
        self.host = ends.max().unwrap_or(0).max(self.legacy_end).max(self.host);
    }

    /// Whether all work of a stream has ended by the host's time.
    pub(crate) fn is_idle(&self, stream: StreamId) -> bool {
        self.end_of(stream) <= self.host
    }

    pub(crate) fn now(&self) -> Picoseconds {
        self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Engine = Engine::Kernels(Share::WHOLE);

    #[test]
    fn streams_overlap_on_different_engines_only() {
        let mut timeline = Timeline::default();
        let (a, b) = (timeline.create(true, 0), timeline.create(true, 0));
        assert_eq!(timeline.enqueue(a, Engine::ToDevice, 0, 100), 0);
        assert_eq!(timeline.enqueue(a, KERNEL, 0, 50), 100);
        assert_eq!(timeline.enqueue(b, Engine::ToDevice, 0, 100), 100);
        assert_eq!(timeline.enqueue(b, KERNEL, 0, 50), 200);
        assert_eq!(timeline.record(a), 150);
        assert!(!timeline.is_idle(a));
        timeline.synchronize(a);
        assert_eq!(timeline.now(), 150);
        assert!(timeline.is_idle(a) && !timeline.is_idle(b));
        timeline.synchronize_all();
        assert_eq!(timeline.now(), 250);
    }

    #[test]
    fn small_kernels_of_two_streams_share_the_chip() {
        let mut timeline = Timeline::default();
        let (a, b) = (timeline.create(true, 0), timeline.create(true, 0));
        let small = Engine::Kernels(Share::new(14.0, 56.0, 0.2, 0.1, 32));
        assert_eq!((timeline.enqueue(a, small, 0, 50), timeline.enqueue(b, small, 0, 70)), (0, 0));
        // Those of one stream do not overlap.
        assert_eq!(timeline.enqueue(a, small, 0, 50), 50);
        assert_eq!(timeline.enqueue(b, KERNEL, 0, 10), 100);
        assert_eq!((timeline.record(a), timeline.record(b)), (100, 110));
    }

    #[test]
    fn the_default_stream_waits_for_blocking_streams_and_they_for_it() {
        let mut timeline = Timeline::default();
        let (blocking, free) = (timeline.create(true, 0), timeline.create(false, 0));
        timeline.enqueue(free, Engine::ToHost, 0, 1000);
        timeline.enqueue(blocking, Engine::ToDevice, 0, 100);
        assert_eq!(timeline.enqueue(LEGACY, KERNEL, 0, 10), 100);
        assert_eq!(timeline.enqueue(blocking, Engine::ToDevice, 0, 1), 110);
        assert_eq!(timeline.enqueue(free, KERNEL, 0, 1), 1000);
    }

    #[test]
    fn a_launch_is_known_to_the_device_only_after_its_overhead() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.enqueue(LEGACY, KERNEL, 5, 10), 5);
        // Hidden behind the first.
        assert_eq!(timeline.enqueue(LEGACY, KERNEL, 5, 10), 15);
        let (a, b) = (timeline.create(false, 0), timeline.create(false, 0));
        let event = timeline.record(LEGACY);
        timeline.wait(a, event);
        assert_eq!(timeline.enqueue(a, Engine::ToHost, 0, 1), 25);
        assert!(timeline.exists(b) && timeline.destroy(b) && !timeline.exists(b));
    }
}
