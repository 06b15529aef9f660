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

    /// Inserts a port unless it is in `but`.
    fn insert_but(&mut self, port: usize, but: &Self);

    fn contains(&self, port: usize) -> bool;

    fn clear(&mut self);

    /// Becomes `all` without `but`.
    fn set_to(&mut self, all: &Self, but: &Self);

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
    fn insert_but(&mut self, port: usize, but: &Few) {
        self.0 |= (1 << port) & !but.0;
    }

    #[inline(always)]
    fn contains(&self, port: usize) -> bool {
        self.0 >> port & 1 == 1
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.0 = 0;
    }

    #[inline(always)]
    fn set_to(&mut self, all: &Few, but: &Few) {
        self.0 = all.0 & !but.0;
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

/// A set of any number of ports.
#[derive(Clone, Debug)]
pub(crate) struct Many(Box<[u64]>);

impl Many {
    /// The first bit of the words that `word` gives, from bit `turn` on and then from the beginning.
    fn first(&self, turn: usize, word: impl Fn(usize) -> u64) -> Option<usize> {
        let words = self.0.len();
        // After the last port comes the first again.
        let turn = if turn / 64 < words { turn } else { 0 };
        let (start, below) = (turn / 64, (1 << (turn % 64)) - 1);
        let found =
            |index: usize, word: u64| (word != 0).then(|| index * 64 + word.trailing_zeros() as usize);
        found(start, word(start) & !below)
            .or_else(|| (start + 1..words).chain(0..start).find_map(|index| found(index, word(index))))
            .or_else(|| found(start, word(start) & below))
    }
}

impl PortSet for Many {
    fn none(ports: usize) -> Many {
        Many(vec![0; ports.div_ceil(64).max(1)].into())
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    fn insert(&mut self, port: usize) {
        self.0[port / 64] |= 1 << (port % 64);
    }

    fn remove_if(&mut self, port: usize, gone: bool) {
        self.0[port / 64] &= !(u64::from(gone) << (port % 64));
    }

    fn insert_but(&mut self, port: usize, but: &Many) {
        self.0[port / 64] |= (1 << (port % 64)) & !but.0[port / 64];
    }

    fn contains(&self, port: usize) -> bool {
        self.0[port / 64] >> (port % 64) & 1 == 1
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn set_to(&mut self, all: &Many, but: &Many) {
        let words = all.0.iter().zip(&but.0);
        self.0.iter_mut().zip(words).for_each(|(word, (all, but))| *word = all & !but);
    }

    fn remove_all(&mut self, others: &mut Many) {
        for (word, other) in self.0.iter_mut().zip(&mut others.0) {
            *word &= !std::mem::take(other);
        }
    }

    fn first_but(&self, but: &Many, turn: usize) -> Option<usize> {
        self.first(turn, |index| self.0[index] & !but.0[index])
    }

    fn take_first(&mut self, turn: usize) -> Option<usize> {
        let port = self.first(turn, |index| self.0[index])?;
        self.remove(port);
        Some(port)
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len() * 64).filter(|&port| self.contains(port))
    }
}
