//! When an instruction of the aggregator can begin: its width, and how far it runs ahead of what is not done.
//!
//! Instructions begin in program order, one per slot, as long as the reorder buffer and the physical registers have
//! room between the oldest instruction that is not done and the youngest. Loads and atomics are done when their value
//! has arrived, stores once they are in the store queue, all others at once. A core whose buffer holds one instruction
//! waits for each before the next, stores included.

use std::collections::VecDeque;

use crate::chip::aggregator::CoreSpec;

/// When something can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// From this slot on.
    At(u64),
    /// After an answer from memory or an SM that has not arrived.
    Unknown,
}

/// An instruction that is not done.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    number: u64,
    /// The slot from which on it is done, if that is known.
    done: Option<u64>,
    is_load: bool,
}

/// The instructions in flight. Times are slots.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    window: u64,
    instruction_slots: u64,
    loads: u32,
    /// How many instructions have begun.
    pub begun: u64,
    /// Oldest first.
    unfinished: VecDeque<Unfinished>,
}

impl Pipeline {
    pub(crate) fn new(core: &CoreSpec) -> Pipeline {
        Pipeline {
            window: core.window() as u64,
            instruction_slots: core.instruction_clocks as u64,
            loads: core.loads,
            begun: 0,
            unfinished: VecDeque::new(),
        }
    }

    /// Whether every instruction waits for the one before it.
    pub(crate) fn is_blocking(&self) -> bool {
        self.window == 1
    }

    /// Retires the instructions that are done by slot `now`.
    pub(crate) fn retire(&mut self, now: u64) {
        while self.unfinished.front().is_some_and(|oldest| oldest.done.is_some_and(|done| done <= now)) {
            self.unfinished.pop_front();
        }
    }

    /// When the next instruction can begin, at slot `now` or later.
    pub(crate) fn next(&self, now: u64, is_load: bool) -> When {
        let full = |oldest: &&Unfinished| self.begun + 1 - oldest.number > self.window;
        let first = self.unfinished.front().filter(full);
        let too_many = is_load && self.unfinished_loads(now) >= self.loads;
        let load = self.unfinished.iter().filter(|u| too_many && u.is_load);
        let earliest =
            load.filter(|u| u.done.is_none_or(|done| done > now)).min_by_key(|u| u.done.unwrap_or(u64::MAX));
        let mut at = now;
        for blocking in first.into_iter().chain(earliest) {
            match blocking.done {
                Some(done) => at = at.max(done),
                None => return When::Unknown,
            }
        }
        When::At(at)
    }

    fn unfinished_loads(&self, now: u64) -> u32 {
        let open = |u: &&Unfinished| u.is_load && u.done.is_none_or(|done| done > now);
        self.unfinished.iter().filter(open).count() as u32
    }

    /// Up to `wanted` instructions begin that are done at once. Returns how many do, and how many slots they take.
    pub(crate) fn begin(&mut self, wanted: u64) -> (u64, u64) {
        let room = match self.unfinished.front() {
            Some(oldest) => (oldest.number + self.window).saturating_sub(self.begun),
            None => u64::MAX,
        };
        let count = wanted.min(room);
        self.begun += count;
        (count, count * self.instruction_slots)
    }

    /// An instruction begins that is done later. Returns its number.
    pub(crate) fn begin_unfinished(&mut self, is_load: bool) -> u64 {
        let number = self.begun;
        self.unfinished.push_back(Unfinished { number, done: None, is_load });
        self.begun += 1;
        number
    }

    pub(crate) fn instruction_slots(&self) -> u64 {
        self.instruction_slots
    }

    /// An instruction is done from a slot on.
    pub(crate) fn done(&mut self, number: u64, at: u64) {
        if let Some(found) = self.unfinished.iter_mut().find(|u| u.number == number) {
            found.done = Some(at);
        }
    }

    /// When all that began is done, at slot `now` or later.
    pub(crate) fn all_done(&self, now: u64) -> When {
        let done = self.unfinished.iter().try_fold(now, |at, u| u.done.map(|done| at.max(done)));
        done.map_or(When::Unknown, When::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(width: u32, rob: u32, loads: u32) -> Pipeline {
        Pipeline::new(&CoreSpec {
            width,
            instruction_clocks: 1,
            rob,
            issue_queue: rob,
            registers: 200,
            architectural_registers: 16,
            loads,
            stores: 4,
        })
    }

    #[test]
    fn independent_loads_overlap_up_to_the_queue() {
        let mut pipeline = core(2, 64, 2);
        let first = pipeline.begin_unfinished(true);
        assert_eq!(pipeline.next(1, true), When::At(1));
        pipeline.begin_unfinished(true);
        assert_eq!(pipeline.next(2, true), When::Unknown);
        pipeline.done(first, 50);
        assert_eq!(pipeline.next(2, true), When::At(50));
        assert_eq!(pipeline.next(2, false), When::At(2), "others go on");
    }

    #[test]
    fn the_window_bounds_what_runs_ahead() {
        let mut pipeline = core(2, 8, 8);
        let load = pipeline.begin_unfinished(true);
        assert_eq!(pipeline.begin(100), (7, 7));
        assert_eq!(pipeline.next(8, false), When::Unknown);
        pipeline.done(load, 90);
        assert_eq!(pipeline.next(8, false), When::At(90));
        pipeline.retire(90);
        assert_eq!(pipeline.begin(93), (93, 93));
    }

    #[test]
    fn a_simple_core_does_one_thing_at_a_time() {
        let mut pipeline = core(1, 1, 1);
        assert!(pipeline.is_blocking());
        let load = pipeline.begin_unfinished(true);
        assert_eq!(pipeline.next(1, false), When::Unknown);
        pipeline.done(load, 40);
        assert_eq!(pipeline.next(1, false), When::At(40));
    }
}
