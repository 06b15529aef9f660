//! Sets of ports, a bit each: of the sources or of the sinks of a crossbar.

use std::hint::select_unpredictable;

pub(crate) trait PortSet: Clone + std::fmt::Debug {
    /// The empty set, of a crossbar with so many ports.
    fn none(ports: usize) -> Self;

    fn is_empty(&self) -> bool;

    fn insert(&mut self, port: usize);

    /// Removes a port if `gone`. Has no branch: it would be unpredictable for a host.
    fn remove_if(&mut self, port: usize, gone: bool);

    #[inline(always)]
    fn remove(&mut self, port: usize) {
        self.remove_if(port, true);
    }

    /// Whether all its ports are in `others`.
    fn is_within(&self, others: &Self) -> bool;

    fn clear(&mut self);

    /// Becomes `all` without either of `but`.
    fn set_to(&mut self, all: &Self, but: [&Self; 2]);

    /// Removes the ports of `others`, which is empty afterwards.
    fn remove_all(&mut self, others: &mut Self);

    /// The first that is not in `but`, from `turn` on and then from the beginning.
    fn first_but(&self, but: &Self, turn: usize) -> Option<usize>;

    /// Removes and returns the first, from `turn` on and then from the beginning.
    fn take_first(&mut self, turn: usize) -> Option<usize>;

    /// In ascending order.
    fn iter(&self) -> impl Iterator<Item = usize>;
}

/// A set of at most [`Few::MOST`] ports, which is enough for most chips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Few(u64);

impl Few {
    pub(crate) const MOST: usize = u64::BITS as usize;

    /// The first from `turn` on and then from the beginning.
    #[inline(always)]
    fn first(self, turn: usize) -> Option<usize> {
        let later = self.0 & u64::MAX.checked_shl(turn as u32).unwrap_or(0);
        let from = select_unpredictable(later != 0, later, self.0);
        (from != 0).then(|| from.trailing_zeros() as usize)
    }
}

impl PortSet for Few {
    fn none(ports: usize) -> Few {
        debug_assert!(ports <= Few::MOST);
        Few(0)
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    fn insert(&mut self, port: usize) {
        self.0 |= 1 << port;
    }

    #[inline(always)]
    fn remove_if(&mut self, port: usize, gone: bool) {
        self.0 &= !(u64::from(gone) << port);
    }

    #[inline(always)]
    fn is_within(&self, others: &Few) -> bool {
        self.0 & !others.0 == 0
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.0 = 0;
    }

    #[inline(always)]
    fn set_to(&mut self, all: &Few, but: [&Few; 2]) {
        self.0 = all.0 & !(but[0].0 | but[1].0);
    }

    #[inline(always)]
    fn remove_all(&mut self, others: &mut Few) {
        self.0 &= !others.0;
        others.0 = 0;
    }

    #[inline(always)]
    fn first_but(&self, but: &Few, turn: usize) -> Option<usize> {
        Few(self.0 & !but.0).first(turn)
    }

    #[inline(always)]
    fn take_first(&mut self, turn: usize) -> Option<usize> {
        let port = self.first(turn)?;
        self.remove(port);
        Some(port)
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = usize> {
        let mut left = *self;
        std::iter::from_fn(move || left.take_first(0))
    }
}

/// The words of a set of many ports: an array where its length is known, so that loops over it need no counter.
pub(crate) trait Words: AsRef<[u64]> + AsMut<[u64]> + Clone + std::fmt::Debug {
    fn zeros(words: usize) -> Self;
}

impl<const W: usize> Words for [u64; W] {
    fn zeros(words: usize) -> Self {
        debug_assert!(words <= W);
        [0; W]
    }
}

impl Words for Box<[u64]> {
    fn zeros(words: usize) -> Self {
        vec![0; words].into()
    }
}

/// A set of as many ports as its words have bits.
#[derive(Clone, Debug)]
pub(crate) struct Many<W>(W);

/// The ports of large chips, and of any.
pub(crate) type Dozens = Many<[u64; 3]>;
pub(crate) type Any = Many<Box<[u64]>>;

impl Dozens {
    pub(crate) const MOST: usize = 3 * u64::BITS as usize;
}

impl<W: Words> Many<W> {
    /// The first bit of the words that `word` gives, from bit `turn` on and then from the beginning.
    #[inline(always)]
    fn first(&self, turn: usize, word: impl Fn(usize) -> u64) -> Option<usize> {
        let words = self.0.as_ref().len();
        // After the last port comes the first again.
        let turn = if turn / 64 < words { turn } else { 0 };
        let mut index = turn / 64;
        let mut found = word(index) & u64::MAX << (turn % 64);
        let mut left = words;
        while found == 0 {
            if left == 0 {
                return None;
            }
            left -= 1;
            index = if index + 1 == words { 0 } else { index + 1 };
            // Back in the first word, only the bits before `turn` can be set.
            found = word(index);
        }
        Some(index * 64 + found.trailing_zeros() as usize)
    }
}

impl<W: Words> PortSet for Many<W> {
    fn none(ports: usize) -> Self {
        Many(W::zeros(ports.div_ceil(64).max(1)))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.as_ref().iter().fold(0, |all, word| all | word) == 0
    }

    #[inline]
    fn insert(&mut self, port: usize) {
        self.0.as_mut()[port / 64] |= 1 << (port % 64);
    }

    #[inline]
    fn remove_if(&mut self, port: usize, gone: bool) {
        self.0.as_mut()[port / 64] &= !(u64::from(gone) << (port % 64));
    }

    #[inline]
    fn is_within(&self, others: &Self) -> bool {
        let words = self.0.as_ref().iter().zip(others.0.as_ref());
        words.fold(0, |found, (word, other)| found | word & !other) == 0
    }

    #[inline]
    fn clear(&mut self) {
        self.0.as_mut().fill(0);
    }

    #[inline]
    fn set_to(&mut self, all: &Self, but: [&Self; 2]) {
        let but = but[0].0.as_ref().iter().zip(but[1].0.as_ref());
        let words = self.0.as_mut().iter_mut().zip(all.0.as_ref()).zip(but);
        words.for_each(|((word, all), (one, other))| *word = all & !(one | other));
    }

    #[inline]
    fn remove_all(&mut self, others: &mut Self) {
        for (word, other) in self.0.as_mut().iter_mut().zip(others.0.as_mut()) {
            *word &= !std::mem::take(other);
        }
    }

    #[inline]
    fn first_but(&self, but: &Self, turn: usize) -> Option<usize> {
        let (all, but) = (self.0.as_ref(), but.0.as_ref());
        self.first(turn, |index| all[index] & !but[index])
    }

    #[inline]
    fn take_first(&mut self, turn: usize) -> Option<usize> {
        let port = self.first(turn, |index| self.0.as_ref()[index])?;
        self.remove(port);
        Some(port)
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.as_ref().iter().enumerate();
        words.flat_map(|(index, &word)| {
            let mut left = Few(word);
            std::iter::from_fn(move || left.take_first(0)).map(move |port| index * 64 + port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports come in turn, whatever the words of the set.
    fn comes_in_turn<S: PortSet>(ports: &[usize]) {
        let mut set = S::none(190);
        let mut but = S::none(190);
        ports.iter().for_each(|&port| set.insert(port));
        but.insert(ports[0]);
        assert!(set.iter().eq(ports.iter().copied()));
        for turn in 0..=192 {
            let first = |skipped: usize| {
                let later = ports.iter().filter(|&&port| port >= turn && port != skipped);
                later.chain(ports.iter().filter(|&&port| port != skipped)).next().copied()
            };
            assert_eq!(set.first_but(&but, turn), first(ports[0]), "{turn}");
            let mut some = set.clone();
            assert_eq!(some.take_first(turn), first(usize::MAX), "{turn}");
            assert_eq!(some.iter().count(), ports.len() - 1);
        }
    }

    #[test]
    fn sets_of_many_ports_are_alike() {
        for ports in [&[3, 70, 189][..], &[0, 1, 63, 64, 127, 128], &[100, 101]] {
            comes_in_turn::<Dozens>(ports);
            comes_in_turn::<Any>(ports);
        }
    }
}
