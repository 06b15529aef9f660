//! Simulated time: when the work of each stream runs.
//!
//! Streams overlap as on a GPU with one engine for kernels and one for copies in each direction: work starts when its
//! stream has come to it and its engine is free. Kernels of different streams therefore do not share SMs. The host's
//! own time is that of its waits alone. The legacy default stream waits for all blocking streams, and they for it.

use std::collections::BTreeMap;

/// A moment or a duration in picoseconds, which hold a cycle of any clock well enough.
pub(crate) type Picoseconds = u64;

/// A stream's number. [`LEGACY`] is the default stream.
pub(crate) type StreamId = u64;

pub(crate) const LEGACY: StreamId = 0;

/// What executes a stream's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Kernels = 0,
    ToDevice = 1,
    ToHost = 2,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// When its last work ends.
    end: Picoseconds,
    /// Whether it and the legacy stream wait for each other.
    blocking: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    host: Picoseconds,
    legacy_end: Picoseconds,
    streams: BTreeMap<StreamId, Stream>,
    last_stream: StreamId,
    engines: [Picoseconds; 3],
}

impl Timeline {
    pub(crate) fn create(&mut self, blocking: bool) -> StreamId {
        self.last_stream += 1;
        self.streams.insert(self.last_stream, Stream { end: self.host, blocking });
        self.last_stream
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
        let free = &mut self.engines[engine as usize];
        let start = (self.host + delay).max(*free);
        let start = start.max(self.end_of(stream));
        self.engines[engine as usize] = start + duration;
        self.extend(stream, start + duration);
        start
    }

    /// When all that is in a stream now has ended.
    fn end_of(&self, stream: StreamId) -> Picoseconds {
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

    #[test]
    fn streams_overlap_on_different_engines_only() {
        let mut timeline = Timeline::default();
        let (a, b) = (timeline.create(true), timeline.create(true));
        assert_eq!(timeline.enqueue(a, Engine::ToDevice, 0, 100), 0);
        assert_eq!(timeline.enqueue(a, Engine::Kernels, 0, 50), 100);
        assert_eq!(timeline.enqueue(b, Engine::ToDevice, 0, 100), 100);
        assert_eq!(timeline.enqueue(b, Engine::Kernels, 0, 50), 200);
        assert_eq!(timeline.record(a), 150);
        assert!(!timeline.is_idle(a));
        timeline.synchronize(a);
        assert_eq!(timeline.now(), 150);
        assert!(timeline.is_idle(a) && !timeline.is_idle(b));
        timeline.synchronize_all();
        assert_eq!(timeline.now(), 250);
    }

    #[test]
    fn the_default_stream_waits_for_blocking_streams_and_they_for_it() {
        let mut timeline = Timeline::default();
        let (blocking, free) = (timeline.create(true), timeline.create(false));
        timeline.enqueue(free, Engine::ToHost, 0, 1000);
        timeline.enqueue(blocking, Engine::ToDevice, 0, 100);
        assert_eq!(timeline.enqueue(LEGACY, Engine::Kernels, 0, 10), 100);
        assert_eq!(timeline.enqueue(blocking, Engine::ToDevice, 0, 1), 110);
        assert_eq!(timeline.enqueue(free, Engine::Kernels, 0, 1), 1000);
    }

    #[test]
    fn a_launch_is_known_to_the_device_only_after_its_overhead() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.enqueue(LEGACY, Engine::Kernels, 5, 10), 5);
        // Hidden behind the first.
        assert_eq!(timeline.enqueue(LEGACY, Engine::Kernels, 5, 10), 15);
        let (a, b) = (timeline.create(false), timeline.create(false));
        let event = timeline.record(LEGACY);
        timeline.wait(a, event);
        assert_eq!(timeline.enqueue(a, Engine::ToHost, 0, 1), 25);
        assert!(timeline.exists(b) && timeline.destroy(b) && !timeline.exists(b));
    }
}
