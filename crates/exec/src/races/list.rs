//! Lists of the clocks of all warps, and what is published through words of memory.

use std::ops::Range;
use std::sync::Arc;

use multiversion::multiversion;
use smallvec::SmallVec;

/// Clocks of all warps of the grid, shared, because many words and warps know the same.
pub(super) type Grid = Arc<Clocks>;

/// Publications of which a list may be made and still be compared by them.
const MOST_TIPS: usize = 16;

/// The clock of a publication of its own: of a warp's fence, or of its store that releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tip {
    pub warp: u32,
    pub clock: u32,
}

impl Tip {
    /// A clock that nobody knows.
    pub(super) const NONE: Tip = Tip { warp: 0, clock: u32::MAX };
}

/// Warps whose clocks are shared together. Those of warps that have ended stay as they are, so more and more lists
/// have the same.
const BLOCK: usize = 128;

type Block = Arc<[u32; BLOCK]>;

/// Clocks of all warps of the grid by their number; those not listed are 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    /// Shared by what a CTA publishes until it learns more from others.
    base: Arc<Vec<Option<Block>>>,
    /// Of the warps of one CTA, from `first` on: these count instead of those of `base`, which are not higher.
    pub near: SmallVec<[u32; 8]>,
    pub first: usize,
    /// The publications that this list is the sum of. Each has a clock of its own, and order is passed on whole: who
    /// knows that clock of that warp knows all that was published. So two lists are compared by a few clocks. Empty if
    /// there are too many.
    pub tips: SmallVec<[Tip; 2]>,
    /// Made from what was passed on in part ([`super::clock::Known`]): comparing needs all clocks.
    pub partial: bool,
}

impl Clocks {
    #[inline]
    pub(super) fn of(&self, warp: usize) -> u32 {
        match self.near.get(warp.wrapping_sub(self.first)) {
            Some(&clock) => clock,
            None => match self.base.get(warp / BLOCK) {
                Some(Some(block)) => block[warp % BLOCK],
                _ => 0,
            },
        }
    }

    fn near_warps(&self) -> Range<usize> {
        self.first..self.first + self.near.len()
    }

    /// Puts all clocks into `base`.
    pub(super) fn flatten(&mut self) {
        let (near, first) = (std::mem::take(&mut self.near), std::mem::take(&mut self.first));
        self.raise_near(&near, first);
    }

    fn raise_near(&mut self, near: &[u32], first: usize) {
        let below = |(at, clock): (usize, &u32)| self.of(first + at) < *clock;
        if !near.iter().enumerate().any(below) {
            return;
        }
        let base = Arc::make_mut(&mut self.base);
        let blocks = (first + near.len()).div_ceil(BLOCK);
        base.resize(base.len().max(blocks), None);
        for (at, &clock) in near.iter().enumerate() {
            let warp = first + at;
            let block = base[warp / BLOCK].get_or_insert_with(|| Arc::new([0; BLOCK]));
            let mine = &mut Arc::make_mut(block)[warp % BLOCK];
            *mine = clock.max(*mine);
        }
    }

    pub(super) fn knows(&self, tip: &Tip) -> bool {
        self.of(tip.warp as usize) >= tip.clock
    }

    /// The publication that this list is, if it is one.
    fn tip(&self) -> Tip {
        if let [tip] = self.tips[..] { tip } else { Tip::NONE }
    }

    /// Whether [`Clocks::covers`] takes only a few comparisons.
    pub(super) fn covers_fast(&self, other: &Clocks) -> bool {
        !self.partial && !other.tips.is_empty()
    }

    /// Whether no clock is below that of the other list.
    pub(super) fn covers(&self, other: &Clocks) -> bool {
        if self.covers_fast(other) {
            return other.tips.iter().all(|tip| self.knows(tip));
        }
        self.none_below(other)
    }

    pub(super) fn none_below(&self, other: &Clocks) -> bool {
        let above = |warp| self.of(warp) >= other.of(warp);
        let blocks = other.base.iter().enumerate();
        other.near_warps().all(above)
            && blocks.filter_map(|(at, block)| Some((at, block.as_ref()?))).all(|(at, theirs)| {
                let mine = self.base.get(at).and_then(Option::as_ref);
                let all_above =
                    mine.is_some_and(|mine| Arc::ptr_eq(mine, theirs) || !compare(mine, theirs).0);
                // Some clocks of the block may not count.
                all_above || (at * BLOCK..(at + 1) * BLOCK).all(above)
            })
    }

    fn join(&mut self, other: &Clocks) {
        if self.tips.is_empty() || other.tips.is_empty() || self.partial || other.partial {
            self.tips.clear();
        } else {
            let more: SmallVec<[_; 8]> = other.tips.iter().filter(|tip| !self.knows(tip)).copied().collect();
            self.tips.retain(|tip| !other.knows(tip) || other.tips.contains(tip));
            self.tips.extend(more);
            if self.tips.len() > MOST_TIPS {
                self.tips.clear();
            }
        }
        self.partial |= other.partial;
        self.flatten();
        let base = Arc::make_mut(&mut self.base);
        base.resize(base.len().max(other.base.len()), None);
        for (mine, theirs) in base.iter_mut().zip(other.base.iter()) {
            match (mine, theirs) {
                (_, None) => {}
                (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
                (Some(mine), Some(theirs)) => match compare(mine, theirs) {
                    (false, _) => {}
                    (true, false) => *mine = theirs.clone(),
                    (true, true) => raise(&mut Arc::make_mut(mine)[..], &theirs[..]),
                },
                (mine, Some(theirs)) => *mine = Some(theirs.clone()),
            }
        }
        self.raise_near(&other.near, other.first);
    }
}

/// Raises clocks to those of another list, as far as both go.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn raise(clocks: &mut [u32], to: &[u32]) {
    for (clock, to) in clocks.iter_mut().zip(to) {
        *clock = (*clock).max(*to);
    }
}

/// Learns clocks. The other list is shared where it knows all that this one does.
pub(super) fn join_grid(mine: &mut Option<Grid>, other: &Grid) {
    match mine {
        Some(clocks) => join_lists(clocks, other),
        None => *mine = Some(other.clone()),
    }
}

fn join_lists(clocks: &mut Grid, other: &Grid) {
    if Arc::ptr_eq(clocks, other) {
        return;
    }
    // Comparing all clocks takes as long as joining, but a list that is not shared needs no copy.
    if (clocks.covers_fast(other) || Arc::get_mut(clocks).is_none()) && clocks.covers(other) {
        return;
    }
    if (other.covers_fast(clocks) || Arc::get_mut(clocks).is_none()) && other.covers(clocks) {
        *clocks = other.clone();
        return;
    }
    Arc::make_mut(clocks).join(other);
}

/// Publishes through several words. Neighbours often have the same list: what came of it is shared.
pub(super) struct Publication<'a> {
    list: &'a Grid,
    tip: Tip,
    last: Option<(Grid, Grid)>,
}

impl<'a> Publication<'a> {
    pub(super) fn new(list: &'a Grid) -> Self {
        Publication { list, tip: list.tip(), last: None }
    }

    /// Adds it to the list of a word; `tip` is that list's. Returns the new one's.
    #[inline]
    pub(super) fn join(&mut self, word: &mut Option<Grid>, tip: Tip) -> Tip {
        let Some(old) = word else {
            *word = Some(self.list.clone());
            return self.tip;
        };
        if Arc::ptr_eq(old, self.list) {
            return tip;
        }
        if self.list.knows(&tip) && !self.list.partial {
            *old = self.list.clone();
            return self.tip;
        }
        match &self.last {
            Some((from, to)) if Arc::ptr_eq(old, from) => *old = to.clone(),
            _ if Arc::strong_count(old) > 1 => {
                let from = old.clone();
                join_lists(old, self.list);
                self.last = Some((from, old.clone()));
            }
            _ => join_lists(old, self.list),
        }
        old.tip()
    }
}

/// Whether some clock is below the other's, and whether some is above.
#[multiversion(targets("x86_64+avx2"))]
fn compare(clocks: &[u32; BLOCK], other: &[u32; BLOCK]) -> (bool, bool) {
    // Without a branch, so that the host uses vector instructions.
    let (mut below, mut above) = (0, 0);
    for (clock, other) in clocks.iter().zip(other) {
        below |= u32::from(clock < other);
        above |= u32::from(clock > other);
    }
    (below != 0, above != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(clocks: &[(usize, u32)]) -> Grid {
        let mut list = Clocks::default();
        clocks.iter().for_each(|&(warp, clock)| list.raise_near(&[clock], warp));
        Arc::new(list)
    }

    #[test]
    fn joined_lists_know_what_both_knew() {
        let far = 3 * BLOCK + 1;
        let mut mine = None;
        join_grid(&mut mine, &list(&[(0, 1), (1, 5)]));
        join_grid(&mut mine, &list(&[(0, 2), (2, 7), (far, 4)]));
        let clocks = |list: &Grid| [0, 1, 2, 3, far, far + BLOCK].map(|warp| list.of(warp));
        assert_eq!(clocks(mine.as_ref().unwrap()), [2, 5, 7, 0, 4, 0]);
        let (more, shared) = (list(&[(0, 3), (1, 5), (2, 7), (3, 1), (far, 4)]), mine.clone());
        join_grid(&mut mine, &more);
        assert_eq!(clocks(shared.as_ref().unwrap()), [2, 5, 7, 0, 4, 0]);
        assert!(Arc::ptr_eq(mine.as_ref().unwrap(), &more));
        assert!(more.none_below(shared.as_ref().unwrap()) && !shared.unwrap().none_below(&more));
    }

    #[test]
    fn blocks_that_are_the_same_become_shared() {
        let (a, b) = (list(&[(0, 1), (BLOCK, 9)]), list(&[(0, 2), (BLOCK, 8)]));
        let mut sum = Some(a.clone());
        join_grid(&mut sum, &b);
        let sum = sum.unwrap();
        let same =
            |x: &Grid, at: usize| Arc::ptr_eq(sum.base[at].as_ref().unwrap(), x.base[at].as_ref().unwrap());
        assert!(same(&b, 0) && same(&a, 1) && !same(&a, 0) && !same(&b, 1));
    }
}
