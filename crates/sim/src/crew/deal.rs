//! Work dealt out to threads, and evened out where some take longer than others.

use std::ops::{Index, IndexMut};
use std::time::Duration;

/// Things dealt out to hands in turn, so that every hand gets about as much work. They keep their numbers.
#[derive(Debug)]
pub struct Dealt<T> {
    /// What each hand holds. A hand that was given away is empty.
    pub hands: Vec<Vec<T>>,
    /// The hand that holds a thing, and where in it.
    places: Vec<(u32, u32)>,
}

impl<T> Dealt<T> {
    /// Deals to at least one hand.
    pub fn new(things: Vec<T>, hands: usize) -> Self {
        let places = (0..things.len()).map(|i| ((i % hands) as u32, (i / hands) as u32)).collect();
        let mut dealt: Vec<Vec<T>> = (0..hands).map(|_| Vec::new()).collect();
        for (number, thing) in things.into_iter().enumerate() {
            dealt[number % hands].push(thing);
        }
        Dealt { hands: dealt, places }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|number| &self[number])
    }

    /// All of them, hand by hand.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.hands.iter_mut().flatten()
    }

    /// All of them, in the order of their numbers.
    pub fn into_vec(self) -> Vec<T> {
        let mut hands: Vec<Vec<_>> =
            self.hands.into_iter().map(|hand| hand.into_iter().map(Some).collect()).collect();
        self.places.iter().filter_map(|&(hand, place)| hands[hand as usize][place as usize].take()).collect()
    }

    /// The last thing of one hand goes to another.
    fn pass(&mut self, from: usize, to: usize) {
        let Some(thing) = self.hands[from].pop() else { return };
        let old = (from as u32, self.hands[from].len() as u32);
        let new = (to as u32, self.hands[to].len() as u32);
        self.hands[to].push(thing);
        self.places.iter_mut().filter(|place| **place == old).for_each(|place| *place = new);
    }
}

impl<T> Index<usize> for Dealt<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: usize) -> &T {
        let (hand, place) = self.places[number];
        &self.hands[hand as usize][place as usize]
    }
}

impl<T> IndexMut<usize> for Dealt<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        let (hand, place) = self.places[number];
        &mut self.hands[hand as usize][place as usize]
    }
}

/// How long hands were at work, by which one that has too much is found.
///
/// Processors of one host differ in speed, and from one moment to the next, if others use them too. But a thing that changes
/// hands is far from its new processor's cache at first, so that happens seldom.
#[derive(Debug, Default)]
pub struct Balance {
    /// Of each hand, since the last look.
    busy: Vec<Duration>,
    windows: u32,
}

/// Windows between two looks at who has too much.
const WINDOWS_PER_LOOK: u32 = 64;

impl Balance {
    /// A hand was at work in this window.
    pub fn worked(&mut self, hand: usize, time: Duration) {
        if self.busy.len() <= hand {
            self.busy.resize(hand + 1, Duration::ZERO);
        }
        self.busy[hand] += time;
    }

    /// A window is over. Now and then, if all would be done earlier, one thing goes from the hand that takes longest to the
    /// one that is done first.
    pub fn settle<T>(&mut self, dealt: &mut Dealt<T>) {
        self.windows += 1;
        if self.windows < WINDOWS_PER_LOOK {
            return;
        }
        let by_time = || self.busy.iter().enumerate();
        let longest = by_time().max_by_key(|&(_, time)| time);
        let shortest = by_time().min_by_key(|&(_, time)| time);
        if let (Some((slow, &most)), Some((fast, &least))) = (longest, shortest) {
            let count = dealt.hands[fast].len() as u32;
            // What one more would take there; half of it again, lest it goes to and fro.
            let one_more = if count == 0 { Duration::ZERO } else { least / count };
            if dealt.hands[slow].len() > 1 && least + one_more * 3 / 2 < most {
                dealt.pass(slow, fast);
            }
        }
        self.windows = 0;
        self.busy.fill(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dealt_keeps_its_number() {
        for hands in 1..5 {
            let mut dealt = Dealt::new((0..7).collect(), hands);
            assert_eq!(dealt.len(), 7);
            dealt.iter_mut().for_each(|x| *x += 10);
            dealt[3] += 100;
            assert!(dealt.hands.iter().all(|hand| hand.len() >= 7 / hands));
            assert_eq!(dealt.iter().copied().collect::<Vec<_>>(), [10, 11, 12, 113, 14, 15, 16]);
            assert_eq!(dealt.into_vec(), [10, 11, 12, 113, 14, 15, 16]);
        }
    }

    #[test]
    fn a_hand_that_takes_longer_passes_things_on() {
        let mut dealt = Dealt::new((0..15).collect(), 2);
        let mut balance = Balance::default();
        // The first processor takes twice as long for a thing.
        let mut most = Vec::new();
        for _ in 0..WINDOWS_PER_LOOK * 10 {
            let times = [2, 1].map(Duration::from_micros);
            let took = [0, 1].map(|hand| times[hand] * dealt.hands[hand].len() as u32);
            took.iter().enumerate().for_each(|(hand, &time)| balance.worked(hand, time));
            most.push(took[0].max(took[1]));
            balance.settle(&mut dealt);
        }
        assert_eq!((most[0], most[most.len() - 1]), (Duration::from_micros(16), Duration::from_micros(10)));
        assert_eq!([dealt.hands[0].len(), dealt.hands[1].len()], [5, 10]);
        assert!((0..15).all(|number| dealt[number] == number as i32));
        assert_eq!(dealt.into_vec(), (0..15).collect::<Vec<i32>>());
    }
}
