//! A timing wheel: events that wait for their cycle.
//!
//! Nearly every event of the machine is due within some tens of cycles. So near events lie in a ring with a list for
//! each cycle, and only far ones in an ordered heap, from which they move to the ring as time reaches their range. A
//! longer ring would need the heap less often, but which of its lists hold events would not fit one word, and fifteen
//! SMs' rings must stay in the host's cache. For the same reason the events of all lists share one array of places.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::kit::cycle::Cycle;

/// Cycles that the ring spans.
const SLOTS: usize = 64;

/// Events by cycle. Those of one cycle come out in the order in which they were pushed, from the ring or the heap.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Wheel<E: Copy> {
    /// The cycle of the earliest event; read in every cycle.
    next: Cycle,
    /// The ring holds the cycles `now..now + SLOTS`, each at its number modulo `SLOTS`; later ones are in `far`.
    now: Cycle,
    /// Slots that hold events.
    occupied: u64,
    /// The first of the free places, which are a list.
    free: u32,
    slots: Box<[List; SLOTS]>,
    /// Events of the ring, and free places.
    places: Vec<Place<E>>,
    far: BinaryHeap<Reverse<Far<E>>>,
    /// Events that ever went to `far`.
    sequence: u64,
}

/// The first and the last place of a slot's events. Stale if the slot is empty.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    first: u32,
    last: u32,
}

/// An event, and the place of the next one.
#[derive(Clone, Copy, Debug)]
struct Place<E> {
    event: E,
    next: u32,
}

/// Events that were taken out of a wheel: the place of the first of them.
#[derive(Debug)]
#[must_use = "their places are used again only if they are popped"]
pub struct Due(u32);

/// Ends a list of places.
const NONE: u32 = u32::MAX;

/// An event beyond the ring.
#[derive(Clone, Copy, Debug)]
struct Far<E> {
    at: Cycle,
    sequence: u64,
    event: E,
}

impl<E: Copy> Wheel<E> {
    /// An empty wheel at cycle 0.
    pub fn new() -> Self {
        Wheel {
            now: Cycle(0),
            slots: Box::new([List::default(); SLOTS]),
            places: Vec::new(),
            free: NONE,
            occupied: 0,
            far: BinaryHeap::new(),
            sequence: 0,
            next: Cycle::NEVER,
        }
    }

    /// Adds an event for cycle `at`, which is not before the cycle last popped.
    #[inline]
    pub fn push(&mut self, at: Cycle, event: E) {
        debug_assert!(at >= self.now && at != Cycle::NEVER, "an event for cycle {at}, at cycle {}", self.now);
        self.next = self.next.min(at);
        if at.0.wrapping_sub(self.now.0) < SLOTS as u64 {
            self.push_near(at, event);
        } else {
            self.push_far(at, event);
        }
    }

    /// The cycle of the earliest event, or [`Cycle::NEVER`].
    #[inline]
    pub fn next_cycle(&self) -> Cycle {
        self.next
    }

    #[inline]
    fn find_next(&self) -> Cycle {
        if self.occupied == 0 {
            return self.far.peek().map_or(Cycle::NEVER, |Reverse(far)| far.at);
        }
        // The bits below that of `now` are the ring's last cycles.
        let from_now = self.occupied.rotate_right((self.now.0 % SLOTS as u64) as u32);
        self.now + u64::from(from_now.trailing_zeros())
    }

    /// Moves time to cycle `now` and takes its events out, for [`Wheel::pop`]. No event may be due before `now`.
    ///
    /// Events may still be pushed for `now` afterwards; the same call with the same cycle takes those.
    #[inline]
    pub fn take_at(&mut self, now: Cycle) -> Due {
        debug_assert!(now >= self.now, "time went back from cycle {} to {now}", self.now);
        debug_assert!(self.next_cycle() >= now, "cycle {now} skips events of cycle {}", self.next_cycle());
        self.now = now;
        // Before anything can be pushed into the slots that these cycles now have: this keeps the order.
        if self.far.peek().is_some_and(|Reverse(far)| far.at - now < SLOTS as u64) {
            self.bring_near(now);
        }
        let slot = now.0 as usize % SLOTS;
        let bit = 1 << slot;
        let mut due = Due(NONE);
        if self.occupied & bit != 0 {
            due = Due(self.slots[slot].first);
            self.occupied &= !bit;
        }
        self.next = self.find_next();
        due
    }

    /// Far events that are now in the ring's range move there.
    #[inline(never)]
    fn bring_near(&mut self, now: Cycle) {
        while let Some(Reverse(far)) = self.far.peek().copied()
            && far.at - now < SLOTS as u64
        {
            self.far.pop();
            self.push_near(far.at, far.event);
        }
    }

    /// The next of the events that were taken. Others may be pushed in between.
    #[inline(always)]
    pub fn pop(&mut self, due: &mut Due) -> Option<E> {
        let place = self.places.get_mut(due.0 as usize)?;
        let next = std::mem::replace(&mut place.next, self.free);
        self.free = std::mem::replace(&mut due.0, next);
        Some(place.event)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.occupied == 0 && self.far.is_empty()
    }

    #[inline]
    fn push_near(&mut self, at: Cycle, event: E) {
        let slot = at.0 as usize % SLOTS;
        let bit = 1 << slot;
        let place = self.free;
        match self.places.get_mut(place as usize) {
            Some(free) => {
                self.free = std::mem::replace(&mut free.next, NONE);
                free.event = event;
            }
            None => return self.add_place(at, event),
        }
        let list = &mut self.slots[slot];
        if self.occupied & bit == 0 {
            list.first = place;
        } else {
            self.places[list.last as usize].next = place;
        }
        list.last = place;
        self.occupied |= bit;
    }

    #[cold]
    fn add_place(&mut self, at: Cycle, event: E) {
        self.free = self.places.len() as u32;
        self.places.push(Place { event, next: NONE });
        self.push_near(at, event);
    }

    #[cold]
    fn push_far(&mut self, at: Cycle, event: E) {
        self.far.push(Reverse(Far { at, sequence: self.sequence, event }));
        self.sequence += 1;
    }
}

impl<E: Copy> Default for Wheel<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Far<E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The last cycle of all.
    const LAST: u64 = u64::MAX - 1;

    fn pop<E: Copy>(wheel: &mut Wheel<E>, now: u64) -> Vec<E> {
        let mut due = wheel.take_at(Cycle(now));
        std::iter::from_fn(|| wheel.pop(&mut due)).collect()
    }

    #[test]
    fn events_come_in_the_order_of_cycles_then_of_pushes() {
        let mut wheel = Wheel::new();
        assert!(wheel.is_empty());
        assert_eq!(wheel.next_cycle(), Cycle::NEVER);
        for (at, event) in [(7, 'c'), (3, 'a'), (7, 'd'), (3, 'b')] {
            wheel.push(Cycle(at), event);
        }
        assert_eq!(wheel.next_cycle(), Cycle(3));
        assert_eq!(pop(&mut wheel, 3), ['a', 'b']);
        assert_eq!(wheel.next_cycle(), Cycle(7));
        assert_eq!(pop(&mut wheel, 5), []);
        assert_eq!(pop(&mut wheel, 7), ['c', 'd']);
        assert!(wheel.is_empty());
    }

    #[test]
    fn events_may_be_pushed_while_others_are_popped() {
        let mut wheel = Wheel::new();
        for (at, event) in [(1, 'a'), (1, 'b'), (1, 'c'), (2, 'd')] {
            wheel.push(Cycle(at), event);
        }
        let mut due = wheel.take_at(Cycle(1));
        assert_eq!(wheel.pop(&mut due), Some('a'));
        wheel.push(Cycle(2), 'e');
        assert_eq!(wheel.pop(&mut due), Some('b'));
        wheel.push(Cycle(1), 'f');
        assert_eq!([wheel.pop(&mut due), wheel.pop(&mut due)], [Some('c'), None]);
        assert_eq!(pop(&mut wheel, 1), ['f']);
        assert_eq!(pop(&mut wheel, 2), ['d', 'e']);
        assert!(wheel.is_empty());
    }

    #[test]
    fn an_event_may_follow_in_the_same_cycle() {
        let mut wheel = Wheel::new();
        wheel.push(Cycle(4), 'a');
        assert_eq!(pop(&mut wheel, 4), ['a']);
        wheel.push(Cycle(4), 'b');
        assert_eq!(wheel.next_cycle(), Cycle(4));
        assert_eq!(pop(&mut wheel, 4), ['b']);
        assert_eq!(wheel.next_cycle(), Cycle::NEVER);
    }

    #[test]
    fn the_ring_wraps_within_one_word() {
        let mut wheel = Wheel::new();
        assert_eq!(pop(&mut wheel, 70), []);
        wheel.push(Cycle(69 + SLOTS as u64), 'b');
        assert_eq!(wheel.next_cycle(), Cycle(69 + SLOTS as u64));
        wheel.push(Cycle(71), 'a');
        assert_eq!(wheel.next_cycle(), Cycle(71));
        assert_eq!(pop(&mut wheel, 71), ['a']);
        assert_eq!(pop(&mut wheel, 69 + SLOTS as u64), ['b']);
    }

    #[test]
    fn far_events_precede_those_pushed_when_their_cycle_was_near() {
        let mut wheel = Wheel::new();
        wheel.push(Cycle(2000), 'a');
        wheel.push(Cycle(1), '-');
        wheel.push(Cycle(2000), 'b');
        wheel.push(Cycle(1_000_000), 'z');
        assert_eq!(pop(&mut wheel, 1), ['-']);
        assert_eq!(wheel.next_cycle(), Cycle(2000));
        assert_eq!(pop(&mut wheel, 1000), []);
        wheel.push(Cycle(2000), 'c');
        assert_eq!(pop(&mut wheel, 2000), ['a', 'b', 'c']);
        assert_eq!(wheel.next_cycle(), Cycle(1_000_000));
        assert_eq!(pop(&mut wheel, 1_000_000), ['z']);
        assert!(wheel.is_empty());
    }

    #[test]
    fn the_last_cycle_of_all_can_wait() {
        let mut wheel = Wheel::new();
        wheel.push(Cycle(LAST), 'z');
        wheel.push(Cycle(LAST - 1), 'y');
        assert_eq!(wheel.next_cycle(), Cycle(LAST - 1));
        assert_eq!(pop(&mut wheel, LAST - 1), ['y']);
        assert_eq!(wheel.next_cycle(), Cycle(LAST));
        assert_eq!(pop(&mut wheel, LAST), ['z']);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "skips events")]
    fn events_are_not_skipped() {
        let mut wheel = Wheel::new();
        wheel.push(Cycle(4), ());
        pop(&mut wheel, 5);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "an event for cycle 4, at cycle 5")]
    fn events_are_not_late() {
        let mut wheel = Wheel::new();
        pop(&mut wheel, 5);
        wheel.push(Cycle(4), ());
    }

    #[test]
    fn it_agrees_with_an_ordered_map() {
        for seed in 1..=20_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut random = |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) % below
            };
            let mut wheel = Wheel::new();
            let mut map = BTreeMap::<u64, Vec<u32>>::new();
            let (mut now, mut event) = (0, 0);
            for _ in 0..20_000 {
                for _ in 0..random(4) {
                    let distance = match random(8) {
                        0 => 0,
                        1..=4 => random(40),
                        5 => random(SLOTS as u64),
                        6 => SLOTS as u64 - 2 + random(4),
                        _ => random(20_000),
                    };
                    wheel.push(Cycle(now + distance), event);
                    map.entry(now + distance).or_default().push(event);
                    event += 1;
                }
                assert_eq!(wheel.next_cycle().0, map.keys().next().copied().unwrap_or(u64::MAX));
                assert_eq!(wheel.is_empty(), map.is_empty());
                let limit = now + random(3 * SLOTS as u64);
                now = match random(3) {
                    0 => map.keys().next().copied().unwrap_or(limit),
                    1 => map.keys().next().copied().unwrap_or(limit).min(now + 1),
                    _ => map.keys().next().copied().unwrap_or(limit).min(limit),
                };
                assert_eq!(pop(&mut wheel, now), map.remove(&now).unwrap_or_default());
            }
        }
    }
}
