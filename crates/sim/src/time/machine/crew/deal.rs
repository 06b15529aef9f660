//! Work dealt out to threads, and rebalanced where some take longer than others.

use std::ops::{Index, IndexMut};
use std::time::Duration;

/// Things dealt out to hands in turn, so that every hand gets about as much work. What a hand holds can be lent to a
/// thread.
#[derive(Debug)]
pub(crate) struct Dealt<T> {
    /// By number. What is lent or has not come is not here.
    things: Vec<Option<Box<T>>>,
    /// The numbers of those that have come, in ascending order.
    numbers: Vec<usize>,
    /// The same by the hand that they belong to, so that lending costs no more than what is lent.
    held: Vec<Vec<usize>>,
    /// By number, the hand.
    owners: Vec<usize>,
}

/// What a hand holds, with the things' numbers, while a thread works on it.
pub(crate) type Lent<T> = Vec<(usize, Box<T>)>;

const IS_LENT: &str = "what is lent comes back before anybody asks for it";

impl<T> Dealt<T> {
    /// Deals to at least one hand.
    pub(crate) fn new(things: Vec<Box<T>>, hands: usize) -> Self {
        let mut dealt = Dealt::none_of(things.len(), hands);
        things.into_iter().enumerate().for_each(|(number, thing)| dealt.add(number, thing));
        dealt
    }

    /// Room for `count` things, none of which has come.
    pub(crate) fn none_of(count: usize, hands: usize) -> Self {
        let things = (0..count).map(|_| None).collect();
        Dealt { things, numbers: Vec::new(), held: vec![Vec::new(); hands], owners: vec![0; count] }
    }

    /// A thing comes, and belongs to the next hand.
    pub(crate) fn add(&mut self, number: usize, thing: Box<T>) {
        debug_assert!(self.things[number].is_none(), "each comes once");
        let hand = self.numbers.len() % self.held.len();
        self.things[number] = Some(thing);
        insert(&mut self.numbers, number);
        insert(&mut self.held[hand], number);
        self.owners[number] = hand;
    }

    /// The hand that a thing, which has come, belongs to.
    #[inline]
    pub(crate) fn owner(&self, number: usize) -> usize {
        self.owners[number]
    }

    /// How many there can be.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// How many have come.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// The number of one, from the least (`place` 0) on.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> usize {
        self.numbers[place]
    }

    /// The thing with a number, if it has come and is not lent.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.things[number].as_deref()
    }

    /// All that have come, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.numbers.iter().map(|&number| self.things[number].as_deref().expect(IS_LENT))
    }

    /// All that have come, in the order of their numbers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        among(&mut self.things, &self.numbers).map(|(_, thing)| thing.as_deref_mut().expect(IS_LENT))
    }

    /// The same with their numbers.
    pub(crate) fn numbered(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        among(&mut self.things, &self.numbers).map(|(at, thing)| (at, thing.as_deref_mut().expect(IS_LENT)))
    }

    /// What a hand holds, with the numbers. Things of other hands may be lent.
    pub(crate) fn of_hand(&mut self, hand: usize) -> impl Iterator<Item = (usize, &mut T)> {
        among(&mut self.things, &self.held[hand])
            .map(|(number, thing)| (number, thing.as_deref_mut().expect(IS_LENT)))
    }

    /// Lends what a hand holds.
    pub(crate) fn lend(&mut self, hand: usize, to: &mut Lent<T>) {
        let held = among(&mut self.things, &self.held[hand]);
        to.extend(held.map(|(number, thing)| (number, thing.take().expect(IS_LENT))));
    }

    /// Takes back what was lent.
    pub(crate) fn take_back(&mut self, lent: &mut Lent<T>) {
        lent.drain(..).for_each(|(number, thing)| self.things[number] = Some(thing));
    }

    /// All that have come, with their numbers, in the order of these.
    pub(crate) fn into_things(self) -> impl Iterator<Item = (usize, Box<T>)> {
        let things = self.things.into_iter().enumerate();
        things.filter_map(|(number, thing)| Some((number, thing?)))
    }

    fn held(&self, hand: usize) -> usize {
        self.held[hand].len()
    }

    /// Deals everything anew, to so many hands.
    pub(crate) fn deal_to(&mut self, hands: usize) {
        self.held = vec![Vec::new(); hands];
        for (place, &number) in self.numbers.iter().enumerate() {
            self.held[place % hands].push(number);
            self.owners[number] = place % hands;
        }
    }

    /// To how many hands it is dealt.
    pub(crate) fn hands(&self) -> usize {
        self.held.len()
    }

    /// The last thing of one hand goes to another.
    fn pass(&mut self, from: usize, to: usize) {
        if let Some(number) = self.held[from].pop() {
            insert(&mut self.held[to], number);
            self.owners[number] = to;
        }
    }
}

/// Adds a number to ascending ones.
fn insert(numbers: &mut Vec<usize>, number: usize) {
    let place = numbers.partition_point(|&other| other < number);
    numbers.insert(place, number);
}

/// The elements with some numbers, which ascend. Few of many may be asked for: those between them are passed over.
#[inline]
fn among<'a, E>(elements: &'a mut [E], numbers: &'a [usize]) -> impl Iterator<Item = (usize, &'a mut E)> {
    let (mut rest, mut first) = (elements, 0);
    numbers.iter().filter_map(move |&number| {
        let (passed, later) = std::mem::take(&mut rest).split_at_mut(number + 1 - first);
        (rest, first) = (later, number + 1);
        passed.last_mut().map(|element| (number, element))
    })
}

impl<T> Index<usize> for Dealt<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: usize) -> &T {
        self.things[number].as_deref().expect(IS_LENT)
    }
}

impl<T> IndexMut<usize> for Dealt<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.things[number].as_deref_mut().expect(IS_LENT)
    }
}

/// How long hands were at work. Shows which hand has too much.
///
/// Processors of one host differ in speed, and their speed changes if other programs use them. But a thing that changes
/// hands is not in its new processor's cache at first, so things change hands seldom.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    /// By hand, since the last rebalancing.
    busy: Vec<Duration>,
    windows: u32,
}

/// Windows between two rebalancings.
const WINDOWS_PER_LOOK: u32 = 64;

impl Balance {
    /// A hand was at work in this window.
    pub(crate) fn worked(&mut self, hand: usize, time: Duration) {
        if self.busy.len() <= hand {
            self.busy.resize(hand + 1, Duration::ZERO);
        }
        self.busy[hand] += time;
    }

    /// A window is over. Now and then, if that makes windows shorter, one thing goes from the hand that takes longest
    /// to the one that is done first.
    pub(crate) fn settle<T>(&mut self, dealt: &mut Dealt<T>) {
        self.windows += 1;
        if self.windows < WINDOWS_PER_LOOK {
            return;
        }
        let by_time = || self.busy.iter().enumerate();
        let longest = by_time().max_by_key(|&(_, time)| time);
        let shortest = by_time().min_by_key(|&(_, time)| time);
        if let (Some((slow, &most)), Some((fast, &least))) = (longest, shortest) {
            let count = dealt.held(fast) as u32;
            // The time of one more thing there, and half of it again, so that things do not go back and forth.
            let one_more = if count == 0 { Duration::ZERO } else { least / count };
            if dealt.held(slow) > 1 && least + one_more * 3 / 2 < most {
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
    fn what_is_dealt_and_lent_keeps_its_number() {
        for hands in 1..5 {
            let mut dealt = Dealt::new((0..7).map(Box::new).collect(), hands);
            assert_eq!(dealt.len(), 7);
            dealt.iter_mut().for_each(|x| *x += 10);
            dealt[3] += 100;
            let mut lent = Lent::new();
            for hand in 0..hands {
                assert_eq!(dealt.of_hand(hand).count(), dealt.held(hand));
                assert!(dealt.held(hand) >= 7 / hands);
                dealt.lend(hand, &mut lent);
            }
            lent.iter_mut().for_each(|(_, x)| **x += 1000);
            dealt.take_back(&mut lent);
            assert_eq!(dealt.iter().copied().collect::<Vec<_>>(), [1010, 1011, 1012, 1113, 1014, 1015, 1016]);
            assert!(dealt.into_things().map(|(_, x)| *x).eq([1010, 1011, 1012, 1113, 1014, 1015, 1016]));
        }
    }

    #[test]
    fn things_are_dealt_anew() {
        let mut dealt = Dealt::new((0..7).map(Box::new).collect(), 3);
        dealt.deal_to(2);
        assert_eq!((dealt.hands(), dealt.held(0), dealt.held(1)), (2, 4, 3));
        assert!(
            dealt.of_hand(1).map(|(number, _)| number).eq([1, 3, 5])
                && dealt.iter().eq(&[0, 1, 2, 3, 4, 5, 6])
        );
    }

    #[test]
    fn things_that_come_later_keep_the_order_of_their_numbers() {
        let mut dealt = Dealt::none_of(6, 2);
        [4, 0, 2].into_iter().for_each(|number| dealt.add(number, Box::new(number as i32)));
        assert_eq!((dealt.len(), dealt.count(), dealt.number(1)), (6, 3, 2));
        assert_eq!((dealt.get(1), dealt.get(4)), (None, Some(&4)));
        assert_eq!([dealt.held(0), dealt.held(1)], [2, 1]);
        assert!(dealt.of_hand(0).eq([(2, &mut 2), (4, &mut 4)]) && dealt.of_hand(1).eq([(0, &mut 0)]));
        let mut lent = Lent::new();
        dealt.lend(0, &mut lent);
        dealt.take_back(&mut lent);
        assert!(dealt.iter().eq(&[0, 2, 4]) && dealt.iter_mut().eq([&mut 0, &mut 2, &mut 4]));
        assert!(dealt.into_things().map(|(number, x)| (number, *x)).eq([(0, 0), (2, 2), (4, 4)]));
    }

    #[test]
    fn a_hand_that_takes_longer_passes_things_on() {
        let mut dealt = Dealt::new((0..15).map(Box::new).collect(), 2);
        let mut balance = Balance::default();
        // The first processor takes twice as long for a thing.
        let mut most = Vec::new();
        for _ in 0..WINDOWS_PER_LOOK * 10 {
            let times = [2, 1].map(Duration::from_micros);
            let took = [0, 1].map(|hand| times[hand] * dealt.held(hand) as u32);
            took.iter().enumerate().for_each(|(hand, &time)| balance.worked(hand, time));
            most.push(took[0].max(took[1]));
            balance.settle(&mut dealt);
        }
        assert_eq!((most[0], most[most.len() - 1]), (Duration::from_micros(16), Duration::from_micros(10)));
        assert_eq!([dealt.held(0), dealt.held(1)], [5, 10]);
        assert_eq!((0..15).filter(|&number| dealt.owner(number) == 0).count(), 5);
        assert!((0..15).all(|number| dealt[number] == number as i32));
        assert!(dealt.into_things().map(|(_, x)| *x).eq(0..15));
    }
}
