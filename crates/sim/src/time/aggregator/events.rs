//! What the aggregator does, recorded for the timeline. Recording takes no simulated time.

use std::ops::Range;

/// Least size of an event in a trace, without its name.
const EVENT_BYTES: u64 = 13;

/// An event, with its cycle from the start of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Firmware begins something that it names. Such spans nest.
    Begin(String),
    /// What firmware began last ends.
    End,
    /// Firmware names something that happens.
    Note(String),
    /// A command starts CTAs of a kernel.
    Start { kernel: u16, ctas: u32 },
    /// A command puts a wavefront back on its compute unit.
    Restart { kernel: u16, cu: u32 },
    /// The notice of a wavefront that yielded arrives.
    Yield { kernel: u16, cu: u32 },
}

/// The events of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    pub list: Vec<Event>,
    /// Where recording ended because there was no more room.
    pub cut: Option<u64>,
    /// Later cycles are not recorded.
    end: u64,
    /// Bytes left in the trace.
    room: u64,
    /// Spans that are open and not recorded.
    skipped: u64,
}

impl Events {
    /// Room for so many bytes of a trace that shows these cycles.
    pub(crate) fn new(cycles: &Range<u64>, room: u64) -> Events {
        Events { end: cycles.end, room, ..Events::default() }
    }

    pub(crate) fn record(&mut self, at: u64, what: What) {
        let full = self.cut.is_some() || at >= self.end;
        match &what {
            What::Begin(_) if full => self.skipped += 1,
            // What was begun in time is ended, even if that is later.
            What::End if self.skipped > 0 => self.skipped -= 1,
            What::End => self.list.push(Event { at, what }),
            _ if full => {}
            What::Begin(name) | What::Note(name) => self.put(at, name.len() as u64, what),
            _ => self.put(at, 0, what),
        }
    }

    fn put(&mut self, at: u64, name_bytes: u64, what: What) {
        match self.room.checked_sub(EVENT_BYTES + name_bytes) {
            Some(left) => self.room = left,
            None => self.cut = Some(at),
        }
        self.list.push(Event { at, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_stay_paired_when_there_is_no_more_room() {
        let mut events = Events::new(&(0..u64::MAX), 30);
        for at in 0..4 {
            events.record(10 * at, What::Begin("poll".to_string()));
        }
        for at in 4..8 {
            events.record(10 * at, What::End);
        }
        let opens = |event: &Event| if event.what == What::End { -1 } else { 1 };
        assert_eq!(events.list.iter().map(opens).collect::<Vec<_>>(), [1, 1, -1, -1]);
        assert_eq!((events.list[3].at, events.cut), (70, Some(10)));
    }

    #[test]
    fn later_cycles_are_left_out() {
        let mut events = Events::new(&(0..50), 1000);
        events.record(40, What::Begin("poll".to_string()));
        events.record(60, What::Note("late".to_string()));
        events.record(70, What::End);
        assert_eq!(events.list.iter().map(|event| event.at).collect::<Vec<_>>(), [40, 70]);
    }
}
