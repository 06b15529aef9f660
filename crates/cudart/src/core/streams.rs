//! Streams and events, in simulated time.

use std::collections::HashMap;

use crate::core::error::{CudaError, Result};
use crate::core::pending::{Awaited, Outstanding, Pending};
use crate::core::timeline::{Engine, LEGACY, Picoseconds, StreamId, Timeline};

#[derive(Debug, Default)]
pub(crate) struct Streams {
    timeline: Timeline,
    /// When each event happens; `None`: it was never recorded.
    events: HashMap<u64, Option<Picoseconds>>,
    last_event: u64,
}

/// The handle of the legacy default stream (`cudaStreamLegacy`).
const LEGACY_HANDLE: u64 = 1;
/// The handle of the thread's own default stream (`cudaStreamPerThread`). All threads share the default stream here.
const PER_THREAD_HANDLE: u64 = 2;

/// Handles of streams begin above those that have a meaning of their own; pointers are never that small.
const FIRST_HANDLE: u64 = 0x100;

impl Streams {
    pub(crate) fn create(&mut self, blocking: bool, priority: i32) -> u64 {
        FIRST_HANDLE + self.timeline.create(blocking, priority)
    }

    /// Kernels of streams with lower numbers go first.
    pub(crate) fn priority(&self, stream: StreamId) -> i32 {
        self.timeline.priority(stream)
    }

    pub(crate) fn destroy(&mut self, handle: u64) -> Result {
        let stream = handle.checked_sub(FIRST_HANDLE).ok_or(CudaError::INVALID_RESOURCE_HANDLE)?;
        self.timeline.destroy(stream).then_some(()).ok_or(CudaError::INVALID_RESOURCE_HANDLE)
    }

    /// The stream of a handle.
    pub(crate) fn find(&self, handle: u64) -> Result<StreamId> {
        if [0, LEGACY_HANDLE, PER_THREAD_HANDLE].contains(&handle) {
            return Ok(LEGACY);
        }
        let stream = handle.checked_sub(FIRST_HANDLE).filter(|&stream| self.timeline.exists(stream));
        stream.ok_or(CudaError::INVALID_RESOURCE_HANDLE)
    }

    /// Whether a stream and the default stream wait for each other.
    pub(crate) fn is_blocking(&self, handle: u64) -> Result<bool> {
        Ok(self.timeline.is_blocking(self.find(handle)?))
    }

    /// Puts work into a stream; returns when it starts.
    pub(crate) fn enqueue(
        &mut self,
        stream: StreamId,
        engine: Engine,
        delay: Picoseconds,
        duration: Picoseconds,
    ) -> Picoseconds {
        self.timeline.enqueue(stream, engine, delay, duration)
    }

    /// Work of a stream ran, as the machine found.
    pub(crate) fn ran(&mut self, stream: StreamId, engine: Engine, start: Picoseconds, end: Picoseconds) {
        self.timeline.ran(stream, engine, start, end);
    }

    /// All work of a stream has ended at a moment.
    pub(crate) fn ends(&mut self, stream: StreamId, end: Picoseconds) {
        self.timeline.wait(stream, end);
    }

    /// An event happened. One that was destroyed is forgotten.
    pub(crate) fn happened(&mut self, event: u64, moment: Picoseconds) {
        if let Ok(place) = self.event(event) {
            *place = Some(moment);
        }
    }

    /// How many streams the program has besides the default one.
    pub(crate) fn count(&self) -> usize {
        self.timeline.count()
    }

    /// Puts off work of a stream.
    pub(crate) fn put_off(&self, work: &mut Outstanding, stream: StreamId, what: Pending) {
        let known = |event: u64| {
            let event = event.checked_sub(FIRST_HANDLE).and_then(|event| self.events.get(&event));
            event.copied().flatten().unwrap_or(0)
        };
        work.order.add(work.items.len(), (stream, &what), &self.timeline, known);
        work.items.push((stream, what));
    }

    /// The nodes that have not ended of what the host waits for; `None`: all of them.
    pub(crate) fn awaited(&self, work: &Outstanding, awaited: Awaited) -> Option<Vec<usize>> {
        work.awaited(awaited, &self.timeline)
    }

    pub(crate) fn synchronize(&mut self, handle: u64) -> Result {
        let stream = self.find(handle)?;
        self.timeline.synchronize(stream);
        Ok(())
    }

    pub(crate) fn synchronize_all(&mut self) {
        self.timeline.synchronize_all();
    }

    pub(crate) fn query(&self, handle: u64) -> Result {
        let stream = self.find(handle)?;
        self.timeline.is_idle(stream).then_some(()).ok_or(CudaError::NOT_READY)
    }

    /// The host's simulated time.
    pub(crate) fn now_s(&self) -> f64 {
        self.timeline.now() as f64 * 1e-12
    }

    pub(crate) fn create_event(&mut self) -> u64 {
        self.last_event += 1;
        self.events.insert(self.last_event, None);
        FIRST_HANDLE + self.last_event
    }

    fn event(&mut self, handle: u64) -> Result<&mut Option<Picoseconds>> {
        let event = handle.checked_sub(FIRST_HANDLE).and_then(|event| self.events.get_mut(&event));
        event.ok_or(CudaError::INVALID_RESOURCE_HANDLE)
    }

    pub(crate) fn destroy_event(&mut self, handle: u64) -> Result {
        self.event(handle)?;
        self.events.remove(&(handle - FIRST_HANDLE));
        Ok(())
    }

    /// Whether there is such an event.
    pub(crate) fn find_event(&mut self, event: u64) -> Result {
        self.event(event).map(|_| ())
    }

    pub(crate) fn record(&mut self, event: u64, stream: StreamId) -> Result {
        let moment = self.timeline.record(stream);
        *self.event(event)? = Some(moment);
        Ok(())
    }

    /// An event that was never recorded counts as over.
    pub(crate) fn query_event(&mut self, event: u64) -> Result {
        let moment = self.event(event)?.unwrap_or(0);
        if moment <= self.timeline.now() { Ok(()) } else { Err(CudaError::NOT_READY) }
    }

    pub(crate) fn synchronize_event(&mut self, event: u64) -> Result {
        let moment = self.event(event)?.unwrap_or(0);
        self.timeline.synchronize_with(moment);
        Ok(())
    }

    pub(crate) fn wait_event(&mut self, stream: StreamId, event: u64) -> Result {
        let moment = self.event(event)?.unwrap_or(0);
        self.timeline.wait(stream, moment);
        Ok(())
    }

    /// Milliseconds from one event to the other.
    pub(crate) fn elapsed_ms(&mut self, start: u64, end: u64) -> Result<f32> {
        let start = self.event(start)?.ok_or(CudaError::INVALID_RESOURCE_HANDLE)?;
        let end = self.event(end)?.ok_or(CudaError::INVALID_RESOURCE_HANDLE)?;
        if start.max(end) > self.timeline.now() {
            return Err(CudaError::NOT_READY);
        }
        Ok(((end as f64 - start as f64) * 1e-9) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::sharing::Share;

    #[test]
    fn events_measure_simulated_time() {
        let mut streams = Streams::default();
        let stream = streams.create(true, 0);
        let (start, end, other) = (streams.create_event(), streams.create_event(), streams.create_event());
        let id = streams.find(stream).unwrap();
        streams.record(start, id).unwrap();
        streams.enqueue(id, Engine::Kernels(Share::WHOLE), 0, 2_500_000_000);
        streams.record(end, id).unwrap();
        assert_eq!(streams.elapsed_ms(start, end), Err(CudaError::NOT_READY));
        assert_eq!(streams.query_event(end), Err(CudaError::NOT_READY));
        streams.synchronize_event(end).unwrap();
        assert_eq!(streams.elapsed_ms(start, end), Ok(2.5));
        assert_eq!(streams.elapsed_ms(start, other), Err(CudaError::INVALID_RESOURCE_HANDLE));
    }

    #[test]
    fn handles() {
        let mut streams = Streams::default();
        assert_eq!((streams.find(0), streams.find(1), streams.find(2)), (Ok(0), Ok(0), Ok(0)));
        assert_eq!(streams.find(77), Err(CudaError::INVALID_RESOURCE_HANDLE));
        let stream = streams.create(false, 0);
        assert!(streams.find(stream).is_ok() && streams.query(stream).is_ok());
        assert!(streams.destroy(stream).is_ok() && streams.destroy(stream).is_err());
        let event = streams.create_event();
        assert!(streams.destroy_event(event).is_ok() && streams.destroy_event(event).is_err());
    }
}
