//! Host instructions that a thread executes, by the processor's counter: unlike times, nearly the same on a busy
//! computer.

/// Counts the instructions of this thread outside of the kernel.
pub(super) struct Counter {
    #[cfg(target_os = "linux")]
    events: perf_event::Counter,
}

impl Counter {
    /// `Err` says why this computer does not count. Virtual machines often do not.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> Result<Counter, String> {
        let events = perf_event::Builder::new().kind(perf_event::events::Hardware::INSTRUCTIONS).build();
        let mut counter = events
            .map(|events| Counter { events })
            .map_err(|error| format!("perf_event_open: {}", crate::input::reason(&error)))?;
        // Some hypervisors have a counter that stands still.
        match counter.count(|| std::hint::black_box((0..1000).sum::<u32>())) {
            (_, Some(1..)) => Ok(counter),
            _ => Err("the processor's counter stands still".to_string()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> Result<Counter, String> {
        Err("needs Linux".to_string())
    }

    /// What `work` returns, and the instructions that it took.
    #[cfg(target_os = "linux")]
    pub(super) fn count<T>(&mut self, work: impl FnOnce() -> T) -> (T, Option<u64>) {
        let events = &mut self.events;
        let started = events.read_count_and_time().ok().filter(|_| events.enable().is_ok());
        let result = work();
        let ended = events.disable().and_then(|()| events.read_count_and_time()).ok();
        let counted = started.zip(ended).and_then(|(from, to)| {
            let [count, enabled, running] = [
                to.count - from.count,
                to.time_enabled - from.time_enabled,
                to.time_running - from.time_running,
            ];
            // Where others use the counter as well, it counted for a part of the time.
            (running > 0).then(|| (count as f64 * enabled as f64 / running as f64) as u64)
        });
        (result, counted)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn count<T>(&mut self, work: impl FnOnce() -> T) -> (T, Option<u64>) {
        (work(), None)
    }
}
