//! The course of a launch: how the warps of each SM spend their time, interval by interval.

use serde::{Deserialize, Serialize};

use crate::explain::profile::recorder::{CATEGORIES, SPINNING, UNIT_BUSY, can_spin};
use crate::explain::profile::time::category;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::probe::State;

/// Most intervals of a launch. When it takes longer, two become one.
const INTERVALS: usize = 1024;

/// The first length of an interval. Lengths are powers of two.
const FIRST_CYCLES: u64 = 16;

/// Warp cycles by category.
type Interval = [u64; CATEGORIES];

/// Warp time over one or several launches, one after the other. All intervals together are [`Profile::time`].
///
/// [`Profile::time`]: crate::explain::profile::Profile::time
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverTime {
    pub interval_cycles: u64,
    /// Names of the categories, in the order of each interval's numbers.
    #[serde(skip, default = "categories")]
    pub categories: Vec<&'static str>,
    /// By SM: warp cycles of each interval by category.
    pub sms: Vec<Vec<Vec<u64>>>,
}

fn categories() -> Vec<&'static str> {
    (0..CATEGORIES).map(category).collect()
}

impl OverTime {
    pub(super) fn of(courses: Vec<Course>) -> OverTime {
        let cycles = courses.iter().map(|course| course.bins.cycles).max().unwrap_or(FIRST_CYCLES);
        let sms = courses.into_iter().map(|course| {
            let mut bins = course.bins;
            while bins.cycles < cycles {
                bins.fold();
            }
            bins.intervals.iter().map(|interval| interval.to_vec()).collect()
        });
        let sms = sms.collect();
        OverTime { interval_cycles: cycles, categories: categories(), sms }
    }

    /// Adds a launch that started `offset` cycles after the first.
    pub(super) fn append(&mut self, offset: u64, other: &OverTime) {
        let mut cycles = self.interval_cycles;
        let sms = std::mem::take(&mut self.sms);
        let mut all: Vec<Bins> = Vec::new();
        for (start, interval_cycles, sms) in [(0, cycles, &sms), (offset, other.interval_cycles, &other.sms)]
        {
            all.resize_with(all.len().max(sms.len()), Bins::default);
            for (bins, intervals) in all.iter_mut().zip(sms) {
                for (number, interval) in (0..).zip(intervals) {
                    let from = start + number * interval_cycles;
                    for (category, &time) in interval.iter().enumerate().filter(|(_, time)| **time > 0) {
                        bins.spread(category, from, interval_cycles, time);
                    }
                }
                cycles = cycles.max(bins.cycles);
            }
        }
        let courses = all.into_iter().map(|bins| Course { bins, ..Course::default() });
        *self = OverTime::of(courses.collect());
    }
}

/// Intervals from the launch's start.
#[derive(Clone, Debug)]
struct Bins {
    cycles: u64,
    intervals: Vec<Interval>,
}

impl Default for Bins {
    fn default() -> Self {
        Bins { cycles: FIRST_CYCLES, intervals: Vec::new() }
    }
}

impl Bins {
    /// Makes one interval of two.
    fn fold(&mut self) {
        self.cycles *= 2;
        let pairs = self.intervals.chunks(2);
        self.intervals = pairs
            .map(|pair| std::array::from_fn(|at| pair.iter().map(|interval| interval[at]).sum()))
            .collect();
    }

    /// `time` warp cycles of a category, evenly over `cycles` from `from` on.
    fn spread(&mut self, category: usize, from: u64, cycles: u64, time: u64) {
        let until = from + cycles;
        while until > self.cycles * INTERVALS as u64 {
            self.fold();
        }
        let last = (until - 1) / self.cycles;
        if self.intervals.len() <= last as usize {
            self.intervals.resize(last as usize + 1, [0; CATEGORIES]);
        }
        let (mut at, mut left) = (from, time);
        while at < until {
            let number = at / self.cycles;
            let end = ((number + 1) * self.cycles).min(until);
            let part =
                if end == until { left } else { (time as u128 * (end - at) as u128 / cycles as u128) as u64 };
            self.intervals[number as usize][category] += part;
            left -= part;
            at = end;
        }
    }
}

/// A warp in a state; which category that is may not be known yet.
#[derive(Clone, Copy, Debug)]
struct Stay {
    category: usize,
    lanes: LaneMask,
    from: u64,
    cycles: u64,
}

#[derive(Clone, Debug, Default)]
struct SlotStays {
    /// Since the last instruction.
    recent: Vec<Stay>,
    /// In the current iteration of a spin loop.
    iteration: Vec<Stay>,
}

/// The course of one SM. It is told the same as the recorder, and decides the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    start: u64,
    bins: Bins,
    slots: Vec<SlotStays>,
}

impl Course {
    pub(super) fn new(slots: u32, start: Cycle) -> Course {
        let slots = vec![SlotStays::default(); slots as usize];
        Course { start: start.0, slots, ..Course::default() }
    }

    pub(super) fn spent(&mut self, slot: WarpSlot, state: State, from: Cycle, cycles: u64) {
        let stay =
            Stay { category: state as usize, lanes: LaneMask::NONE, from: from.0 - self.start, cycles };
        self.slots[slot.index()].recent.push(stay);
    }

    /// A warp's next instruction is known. Of its ready cycles, `unit_busy` were spent waiting for a unit; with
    /// `lanes`, the instruction is in a spin loop.
    pub(super) fn charge(&mut self, slot: WarpSlot, mut unit_busy: u64, lanes: LaneMask) {
        let SlotStays { recent, iteration } = &mut self.slots[slot.index()];
        for stay in recent.drain(..) {
            let state = State::ALL[stay.category];
            let busy = if state == State::Ready { unit_busy.min(stay.cycles) } else { 0 };
            unit_busy -= busy;
            let parts = [
                Stay { category: UNIT_BUSY, cycles: busy, lanes, ..stay },
                Stay { from: stay.from + busy, cycles: stay.cycles - busy, lanes, ..stay },
            ];
            for part in parts.into_iter().filter(|part| part.cycles > 0) {
                match lanes.is_empty() || !can_spin(state) {
                    true => self.bins.spread(part.category, part.from, part.cycles, part.cycles),
                    false => iteration.push(part),
                }
            }
        }
    }

    /// What lanes of a warp did in an iteration is decided: it `failed`, or not.
    pub(super) fn settle(&mut self, slot: WarpSlot, lanes: LaneMask, failed: bool) {
        let bins = &mut self.bins;
        self.slots[slot.index()].iteration.retain(|stay| {
            if (stay.lanes & lanes).is_empty() {
                return true;
            }
            let spins = failed && (stay.lanes & !lanes).is_empty();
            let category = if spins { SPINNING } else { stay.category };
            bins.spread(category, stay.from, stay.cycles, stay.cycles);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(over_time: &OverTime) -> Vec<u64> {
        let intervals = || over_time.sms.iter().flatten();
        (0..CATEGORIES).map(|category| intervals().map(|interval| interval[category]).sum()).collect()
    }

    fn course(stays: &[(u64, u64)]) -> OverTime {
        let mut course = Course::new(1, Cycle(1000));
        for &(from, cycles) in stays {
            course.spent(WarpSlot(0), State::LongScoreboard, Cycle(1000 + from), cycles);
        }
        course.charge(WarpSlot(0), 0, LaneMask::NONE);
        OverTime::of(vec![course])
    }

    #[test]
    fn long_launches_have_longer_intervals() {
        let over_time = course(&[(0, 24), (1_000_000, 50)]);
        assert_eq!(over_time.interval_cycles, 1024);
        assert_eq!(over_time.sms[0].len(), 977);
        assert_eq!(
            (
                over_time.sms[0][0][State::LongScoreboard as usize],
                sums(&over_time)[State::LongScoreboard as usize]
            ),
            (24, 74)
        );
    }

    #[test]
    fn launches_follow_each_other() {
        let mut first = course(&[(0, 40)]);
        first.append(40, &course(&[(0, 100)]));
        assert_eq!(sums(&first)[State::LongScoreboard as usize], 140);
        // Time that is known by interval only is spread over it.
        let by_interval: Vec<u64> =
            first.sms[0].iter().map(|interval| interval[State::LongScoreboard as usize]).collect();
        assert_eq!(by_interval, [16, 16, 16, 16, 16, 16, 16, 16, 10, 2]);
    }

    #[test]
    fn iterations_wait_for_their_verdict() {
        let mut course = Course::new(1, Cycle(0));
        for (from, failed) in [(0, true), (16, false)] {
            course.spent(WarpSlot(0), State::Ready, Cycle(from), 10);
            course.charge(WarpSlot(0), 4, LaneMask(0b11));
            // Of another path.
            course.settle(WarpSlot(0), LaneMask(0b100), true);
            course.settle(WarpSlot(0), LaneMask(0b11), failed);
        }
        let over_time = OverTime::of(vec![course]);
        let [first, second] = [0, 1].map(|at| over_time.sms[0][at].clone());
        assert_eq!((first[SPINNING], first.iter().sum::<u64>()), (10, 10));
        assert_eq!((second[UNIT_BUSY], second[State::Ready as usize], second[SPINNING]), (4, 6, 0));
    }
}
