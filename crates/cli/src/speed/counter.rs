//! Host instructions that a thread executes, by the processor's counter: unlike times, nearly the same on a busy
//! computer.

/// Counts the instructions of this thread outside of the kernel.
pub(super) struct Counter {
    #[cfg(target_os = "linux")]
    events: perf_event::Counter,
}

#[cfg(target_os = "linux")]
fn why_not(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::Unsupported => {
            "this processor, or the virtual machine, has no counter of instructions".to_string()
        }
        ErrorKind::PermissionDenied => {
            "the system does not let users count (kernel.perf_event_paranoid, or a container)".to_string()
        }
        _ => format!("perf_event_open: {}", crate::input::reason(error)),
    }
}

impl Counter {
    /// `Err` says why this computer does not count. Virtual machines often do not.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> Result<Counter, String> {
        let events = perf_event::Builder::new().kind(perf_event::events::Hardware::INSTRUCTIONS).build();
        let mut counter = events.map(|events| Counter { events }).map_err(|error| why_not(&error))?;
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    /// A counter that every computer has stands in for the processor's.
    #[test]
    fn counts_are_those_of_the_work() {
        let page_faults = perf_event::events::Software::PAGE_FAULTS_MIN;
        // Where there is no counting at all, the reason is what is tested below.
        let Ok(events) = perf_event::Builder::new().kind(page_faults).build() else { return };
        let mut counter = Counter { events };
        let touched = |bytes: usize| std::hint::black_box(vec![1_u8; bytes]).len();
        let (_, few) = counter.count(|| touched(1));
        let (bytes, many) = counter.count(|| touched(64 << 20));
        assert_eq!(bytes, 64 << 20);
        assert!(many.unwrap() > few.unwrap() + 20, "{few:?} {many:?}");
    }

    #[test]
    fn a_missing_counter_is_explained() {
        let missing = why_not(&Error::from(ErrorKind::NotFound));
        assert!(missing.contains("no counter of instructions"), "{missing}");
        let refused = why_not(&Error::from_raw_os_error(13));
        assert!(refused.contains("perf_event_paranoid"), "{refused}");
    }
}
