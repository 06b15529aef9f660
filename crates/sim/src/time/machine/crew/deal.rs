//! Work dealt out to threads, and rebalanced where some take longer than others.

use std::ops::{Index, IndexMut};
use std::time::Duration;

/// Things dealt out to hands in turn, so that every hand gets about as much work. What a hand holds can be lent to a
/// thread.
#[derive(Debug)]
pub(crate) struct Dealt<T> {
    /// What is lent is not here. A hand is lent as a whole, by one pointer: of the things in it, the leader's processor
    /// then touches none that it does not use.
    hands: Vec<Lent<T>>,
    /// By number, the hand, and the place there; `ABSENT` for what has not come.
    places: Vec<(u32, u32)>,
    /// The numbers of those that have come, in ascending order.
    numbers: Vec<usize>,
}

/// Things with their numbers, in the order of these.
pub(crate) type Hand<T> = Vec<(usize, Box<T>)>;

/// A hand that may be lent, on either side.
pub(crate) type Lent<T> = Option<Box<Hand<T>>>;

const ABSENT: (u32, u32) = (u32::MAX, 0);

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
        Dealt { hands: empty(hands), places: vec![ABSENT; count], numbers: Vec::new() }
    }

    /// A thing comes, and belongs to the next hand.
    pub(crate) fn add(&mut self, number: usize, thing: Box<T>) {
        debug_assert!(self.places[number] == ABSENT, "each comes once");
        let hand = self.numbers.len() % self.hands.len();
        let place = self.numbers.partition_point(|&other| other < number);
        self.numbers.insert(place, number);
        self.put(hand, number, thing);
    }

    /// By number, the hands that things belong to.
    pub(crate) fn owners(&self) -> impl Iterator<Item = u32> {
        self.places.iter().map(|&(hand, _)| hand)
    }

    /// How many there can be.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
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
        let (hand, at) = self.places[number];
        let hand = self.hands.get(hand as usize)?.as_deref()?;
        Some(&hand[at as usize].1)
    }

    /// All that have come, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.numbers.iter().map(|&number| &self[number])
    }

    /// All that have come, hand by hand.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.numbered().map(|(_, thing)| thing)
    }

    /// The same with their numbers.
    pub(crate) fn numbered(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let hands = self.hands.iter_mut().flat_map(|hand| hand.as_deref_mut().expect(IS_LENT));
        hands.map(|(number, thing)| (*number, &mut **thing))
    }

    /// What a hand holds.
    pub(crate) fn of_hand(&mut self, hand: usize) -> &mut Hand<T> {
        self.hands[hand].as_deref_mut().expect(IS_LENT)
    }

    /// Lends what a hand holds.
    pub(crate) fn lend(&mut self, hand: usize) -> Box<Hand<T>> {
        self.hands[hand].take().expect(IS_LENT)
    }

    /// Takes back what was lent.
    pub(crate) fn take_back(&mut self, hand: usize, lent: Lent<T>) {
        debug_assert!(lent.is_some() && self.hands[hand].is_none());
        self.hands[hand] = lent;
    }

    /// All that have come, with their numbers, in the order of these.
    pub(crate) fn into_things(self) -> Hand<T> {
        let hands = self.hands.into_iter().flat_map(|hand| *hand.expect(IS_LENT));
        let mut things: Hand<T> = hands.collect();
        things.sort_by_key(|&(number, _)| number);
        things
    }

    fn held(&self, hand: usize) -> usize {
        self.hands[hand].as_ref().expect(IS_LENT).len()
    }

    /// Deals everything anew, to so many hands: to those that had it before (`owners`, by number), or in turn.
    pub(crate) fn deal_to(&mut self, hands: usize, owners: &[u32]) {
        let hands = std::mem::replace(&mut self.hands, empty(hands));
        let mut things: Hand<T> = hands.into_iter().flat_map(|hand| *hand.expect(IS_LENT)).collect();
        things.sort_by_key(|&(number, _)| number);
        for (place, (number, thing)) in things.into_iter().enumerate() {
            let owner =
                owners.get(number).map(|&owner| owner as usize).filter(|&hand| hand < self.hands.len());
            self.put(owner.unwrap_or(place % self.hands.len()), number, thing);
        }
    }

    /// To how many hands it is dealt.
    pub(crate) fn hands(&self) -> usize {
        self.hands.len()
    }

    /// The last thing of one hand goes to another.
    fn pass(&mut self, from: usize, to: usize) {
        if let Some((number, thing)) = self.of_hand(from).pop() {
            self.put(to, number, thing);
        }
    }

    /// A thing joins those of a hand.
    fn put(&mut self, hand: usize, number: usize, thing: Box<T>) {
        let held = self.hands[hand].as_deref_mut().expect(IS_LENT);
        let place = held.partition_point(|&(other, _)| other < number);
        held.insert(place, (number, thing));
        for (at, &(number, _)) in held.iter().enumerate().skip(place) {
            self.places[number] = (hand as u32, at as u32);
        }
    }
}

/// Hands that hold nothing.
fn empty<T>(hands: usize) -> Vec<Lent<T>> {
    (0..hands).map(|_| Some(Box::default())).collect()
}

impl<T> Index<usize> for Dealt<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: usize) -> &T {
        let (hand, at) = self.places[number];
        &self.hands[hand as usize].as_deref().expect(IS_LENT)[at as usize].1
    }
}

impl<T> IndexMut<usize> for Dealt<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        let (hand, at) = self.places[number];
        &mut self.hands[hand as usize].as_deref_mut().expect(IS_LENT)[at as usize].1
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
            assert!((0..hands).all(|hand| dealt.held(hand) >= 7 / hands));
            let mut lent: Vec<_> = (0..hands).map(|hand| dealt.lend(hand)).collect();
            assert_eq!(dealt.get(3), None);
            lent.iter_mut().flat_map(|hand| hand.iter_mut()).for_each(|(_, x)| **x += 1000);
            lent.into_iter().enumerate().for_each(|(hand, things)| dealt.take_back(hand, Some(things)));
            assert_eq!(dealt.iter().copied().collect::<Vec<_>>(), [1010, 1011, 1012, 1113, 1014, 1015, 1016]);
            assert!(
                dealt
                    .into_things()
                    .into_iter()
                    .map(|(_, x)| *x)
                    .eq([1010, 1011, 1012, 1113, 1014, 1015, 1016])
            );
        }
    }

    #[test]
    fn things_are_dealt_anew() {
        let mut dealt = Dealt::new((0..7).map(Box::new).collect(), 3);
        let owners: Vec<_> = dealt.owners().collect();
        dealt.deal_to(2, &[]);
        assert_eq!((dealt.hands(), dealt.held(0), dealt.held(1)), (2, 4, 3));
        assert!(
            dealt.of_hand(1).iter().map(|(number, _)| *number).eq([1, 3, 5])
                && dealt.iter().eq(&[0, 1, 2, 3, 4, 5, 6])
        );
        dealt.pass(0, 1);
        let passed: Vec<_> = dealt.owners().collect();
        dealt.deal_to(3, &owners);
        assert!(dealt.owners().eq(owners));
        dealt.deal_to(2, &passed);
        assert_eq!((dealt.held(0), dealt.held(1)), (3, 4));
    }

    #[test]
    fn things_that_come_later_keep_the_order_of_their_numbers() {
        let mut dealt = Dealt::none_of(6, 2);
        [4, 0, 2].into_iter().for_each(|number| dealt.add(number, Box::new(number as i32)));
        assert_eq!((dealt.len(), dealt.count(), dealt.number(1)), (6, 3, 2));
        assert_eq!((dealt.get(1), dealt.get(4)), (None, Some(&4)));
        assert_eq!([dealt.held(0), dealt.held(1)], [2, 1]);
        assert_eq!(
            (&dealt.lend(0)[..], &dealt.lend(1)[..]),
            (&[(2, 2.into()), (4, 4.into())][..], &[(0, 0.into())][..])
        );
        dealt.take_back(0, Some(vec![(2, 20.into()), (4, 40.into())].into()));
        dealt.take_back(1, Some(vec![(0, 10.into())].into()));
        assert!(dealt.iter().eq(&[10, 20, 40]) && dealt.iter_mut().eq([&mut 20, &mut 40, &mut 10]));
        assert_eq!(dealt.into_things(), [(0, 10.into()), (2, 20.into()), (4, 40.into())]);
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
        assert_eq!(dealt.owners().filter(|&owner| owner == 0).count(), 5);
        assert!((0..15).all(|number| dealt[number] == number as i32));
        assert!(dealt.into_things().into_iter().map(|(_, x)| *x).eq(0..15));
    }
}
