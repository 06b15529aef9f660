//! What a warp is ordered after: of every other warp, the accesses up to a certain one.
//!
//! A warp counts its accesses; the count is its clock. Order between warps is kept per warp, not per lane: what one
//! lane learns, its warp knows, and what one lane publishes, its warp has published. That can hide a race between two
//! warps, but never reports one that is not there. Order between the lanes of one warp is exact ([`LaneOrder`]).

use std::sync::Arc;

use multiversion::multiversion;
use smallvec::SmallVec;

use crate::kit::lane_mask::LaneMask;

/// Clocks of all warps of the grid, shared, because many words and warps know the same.
pub(super) type Grid = Arc<Clocks>;

/// Lists that a warp keeps apart until its next fence.
const MOST_FOUND: usize = 64;

/// Publications of which a list may be made and still be compared by them.
const MOST_TIPS: usize = 16;

/// Clocks of all warps of the grid by their number; those not listed are 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    all: Vec<u32>,
    /// The publications that this list is the sum of, as warp and clock. Each has a clock of its own, and order is
    /// passed on whole: who knows that clock of that warp knows all that was published. So two lists are compared by a
    /// few clocks. Empty if there are too many.
    tips: SmallVec<[(u32, u32); 2]>,
    /// Made from what was passed on in part ([`Known::partial`]): comparing needs all clocks.
    partial: bool,
}

impl Clocks {
    pub(super) fn of(&self, warp: usize) -> u32 {
        self.all.get(warp).copied().unwrap_or(0)
    }

    fn knows(&self, &(warp, clock): &(u32, u32)) -> bool {
        self.of(warp as usize) >= clock
    }

    /// Whether [`Clocks::covers`] takes only a few comparisons.
    fn covers_fast(&self, other: &Clocks) -> bool {
        !self.partial && !other.tips.is_empty()
    }

    /// Whether no clock is below that of the other list.
    fn covers(&self, other: &Clocks) -> bool {
        if self.covers_fast(other) {
            return other.tips.iter().all(|tip| self.knows(tip));
        }
        self.all.len() >= other.all.len() && none_below(&self.all, &other.all)
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
        if self.all.len() < other.all.len() {
            self.all.resize(other.all.len(), 0);
        }
        raise(&mut self.all, &other.all);
    }
}

/// What a warp knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Clocks of the warps of its CTA.
    pub near: Vec<u32>,
    /// Clocks of other CTAs' warps; entries of its own CTA do not count.
    pub far: Option<Grid>,
    /// Of something that was published, only what concerns the own CTA was learned.
    partial: bool,
}

impl Known {
    /// Learns what another warp of the CTA knows.
    pub(super) fn join(&mut self, other: &Known) {
        self.partial |= other.partial;
        raise(&mut self.near, &other.near);
        if let Some(far) = &other.far {
            join_grid(&mut self.far, far);
        }
    }

    /// Learns what was published to all CTAs. The warps of the own CTA begin at `first`.
    pub(super) fn join_grid(&mut self, first: usize, clocks: &Grid) {
        if self.knows(clocks) {
            return;
        }
        join_grid(&mut self.far, clocks);
        self.partial |= clocks.partial;
        raise(&mut self.near, clocks.all.get(first..).unwrap_or_default());
    }

    /// Of what was published to all CTAs, learns only what concerns the own one.
    pub(super) fn join_near(&mut self, first: usize, clocks: &Grid) {
        self.partial = true;
        raise(&mut self.near, clocks.all.get(first..).unwrap_or_default());
    }

    /// Whether it is easy to see that a list was learned before. What `far` knows, `near` does, too.
    fn knows(&self, clocks: &Grid) -> bool {
        let far = self.far.as_ref();
        far.is_some_and(|far| Arc::ptr_eq(far, clocks) || far.covers_fast(clocks) && far.covers(clocks))
    }

    /// For all CTAs, by one warp with a clock of its own, or else by several.
    pub(super) fn published(&self, first: usize, tip: Option<(u32, u32)>) -> Grid {
        let far = self.far.as_deref();
        let end = first + self.near.len();
        let mut all = Vec::with_capacity(end.max(far.map_or(0, |far| far.all.len())));
        all.extend_from_slice(far.map_or(&[], |far| &far.all));
        if all.len() < end {
            all.resize(end, 0);
        }
        raise(&mut all[first..end], &self.near);
        Arc::new(Clocks { all, tips: tip.into_iter().collect(), partial: self.partial })
    }
}

/// Raises clocks to those of another list, as far as both go.
#[multiversion(targets("x86_64+avx2"))]
fn raise(clocks: &mut [u32], to: &[u32]) {
    for (clock, to) in clocks.iter_mut().zip(to) {
        *clock = (*clock).max(*to);
    }
}

/// Learns clocks. The other list is shared where it knows all that this one does.
pub(super) fn join_grid(mine: &mut Option<Grid>, other: &Grid) {
    let Some(clocks) = mine else {
        *mine = Some(other.clone());
        return;
    };
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

/// Whether no clock is below the other's.
#[multiversion(targets("x86_64+avx2"))]
fn none_below(clocks: &[u32], other: &[u32]) -> bool {
    // In blocks without a branch, which the host compares with vector instructions.
    for (clocks, other) in clocks.chunks(64).zip(other.chunks(64)) {
        let mut below = 0;
        for (clock, other) in clocks.iter().zip(other) {
            below |= u32::from(clock < other);
        }
        if below != 0 {
            return false;
        }
    }
    true
}

/// A warp's clock, what it knows, and what it has fenced.
#[derive(Clone, Debug)]
pub(super) struct WarpClock {
    /// Number of its last access; 0 before the first.
    pub now: u32,
    pub known: Known,
    /// What was known at the last fence for all CTAs: a relaxed store publishes it.
    pub fenced: Option<Fenced>,
    /// What was known at a later fence for the own CTA.
    pub fenced_cta: Option<Arc<Known>>,
    /// Found by relaxed loads and not fenced yet: from the own CTA, and from any.
    pub found_cta: Option<Known>,
    found: Vec<Grid>,
    pub lanes: LaneOrder,
}

/// What a warp knew at a fence.
#[derive(Clone, Debug)]
pub(super) struct Fenced {
    pub known: Arc<Known>,
    /// The fence, if it was the warp's own.
    tip: Option<(u32, u32)>,
    published: Option<Grid>,
}

impl Fenced {
    /// Whether this is what was published.
    pub(super) fn is(&self, clocks: &Grid) -> bool {
        self.published.as_ref().is_some_and(|published| Arc::ptr_eq(published, clocks))
    }

    /// For all CTAs.
    pub(super) fn published(&mut self, first: usize) -> Grid {
        self.published.get_or_insert_with(|| self.known.published(first, self.tip)).clone()
    }
}

impl WarpClock {
    pub(super) fn new(warps: usize) -> Self {
        WarpClock {
            now: 0,
            known: Known { near: vec![0; warps], ..Known::default() },
            fenced_cta: None,
            fenced: None,
            found_cta: None,
            found: Vec::new(),
            lanes: LaneOrder::default(),
        }
    }

    /// All that it has done and knows; it is warp `id` of its CTA.
    pub(super) fn known(&mut self, id: usize) -> &Known {
        self.known.near[id] = self.now;
        &self.known
    }

    /// A relaxed load finds what was published to all CTAs.
    pub(super) fn find(&mut self, clocks: &Grid) {
        if self.known.knows(clocks) || self.found.iter().any(|found| Arc::ptr_eq(found, clocks)) {
            return;
        }
        self.found.push(clocks.clone());
        if self.found.len() > MOST_FOUND {
            let mut all = self.found.pop();
            self.found.drain(..).for_each(|found| join_grid(&mut all, &found));
            self.found.extend(all);
        }
    }

    /// A fence: what relaxed loads have found counts, and later relaxed stores publish what is known now.
    pub(super) fn fence(&mut self, id: usize, first: usize, all_ctas: bool) {
        // What is published after this fence has a clock of its own.
        self.now += 1;
        if let Some(found) = self.found_cta.take() {
            self.known.join(&found);
        }
        if all_ctas {
            self.found.drain(..).for_each(|found| self.known.join_grid(first, &found));
        } else {
            self.found.iter().for_each(|found| self.known.join_near(first, found));
        }
        let known = Arc::new(self.known(id).clone());
        if all_ctas {
            let tip = Some(((first + id) as u32, self.now));
            (self.fenced, self.fenced_cta) = (Some(Fenced { known, tip, published: None }), None);
        } else {
            self.fenced_cta = Some(known);
        }
    }
}

/// What the warps that arrive at a barrier bring.
#[derive(Clone, Debug, Default)]
pub(super) struct Meeting {
    known: Known,
    fenced: Option<Known>,
}

impl Meeting {
    /// The next phase begins, with as many warps.
    pub(super) fn clear(&mut self) {
        self.known.near.fill(0);
        (self.known.far, self.fenced) = (None, None);
    }

    pub(super) fn arrive(&mut self, warp: &mut WarpClock, id: usize) {
        let known = warp.known(id);
        if self.known.near.is_empty() {
            self.known = known.clone();
        } else {
            self.known.join(known);
        }
        if let Some(fenced) = &warp.fenced {
            match &mut self.fenced {
                Some(mine) => mine.join(&fenced.known),
                None => self.fenced = Some(Known::clone(&fenced.known)),
            }
        }
    }

    pub(super) fn join(&mut self, other: &Meeting) {
        self.known.join(&other.known);
        match (&mut self.fenced, &other.fenced) {
            (Some(mine), Some(fenced)) => mine.join(fenced),
            (None, Some(fenced)) => self.fenced = Some(fenced.clone()),
            _ => {}
        }
    }

    /// The warp leaves the barrier: it knows what the others did. What they had fenced before, a store of this warp
    /// publishes: `__threadfence(); __syncthreads(); if (first) flag = 1;` is in use, and works on hardware.
    pub(super) fn leave(&self, warp: &mut WarpClock) {
        warp.known.join(&self.known);
        if let Some(fenced) = &self.fenced {
            warp.fenced = Some(Fenced { known: Arc::new(fenced.clone()), tip: None, published: None });
        }
    }
}

/// Which accesses of its own warp a lane is ordered after, where lanes are independent threads.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneOrder {
    /// Every lane is ordered after the accesses of all lanes up to this one.
    all: u32,
    /// Per lane, the clock up to which it is ordered after each lane; made when only some lanes synchronize.
    rows: Vec<u32>,
    lanes: usize,
}

impl LaneOrder {
    /// Whether `lane` is ordered after the access of `other` at `clock`.
    #[inline]
    pub(super) fn ordered(&self, lane: usize, other: usize, clock: u32) -> bool {
        lane == other
            || clock <= self.all
            || self.rows.get(lane * self.lanes + other).is_some_and(|&known| known >= clock)
    }

    /// The lanes of `mask`, of those that live, meet after the access `now`.
    pub(super) fn meet(&mut self, mask: LaneMask, live: LaneMask, lanes: usize, now: u32) {
        if (live & !mask).is_empty() {
            self.all = now;
            return;
        }
        self.make_rows(lanes);
        let mut met = vec![0; lanes];
        for lane in mask.lanes() {
            raise(&mut met, &self.rows[lane * lanes..]);
        }
        mask.lanes().for_each(|lane| met[lane] = now);
        mask.lanes().for_each(|lane| self.rows[lane * lanes..][..lanes].copy_from_slice(&met));
    }

    /// The lanes of `mask` learn, by way of memory, what the warp had done up to `clock`.
    pub(super) fn learn(&mut self, mask: LaneMask, lanes: usize, clock: u32) {
        if clock <= self.all {
            return;
        }
        self.make_rows(lanes);
        mask.lanes().for_each(|lane| raise(&mut self.rows[lane * lanes..][..lanes], &vec![clock; lanes]));
    }

    fn make_rows(&mut self, lanes: usize) {
        if self.rows.is_empty() {
            (self.rows, self.lanes) = (vec![0; lanes * lanes], lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_lists_know_what_both_knew() {
        let list = |all: Vec<u32>| Arc::new(Clocks { all, ..Clocks::default() });
        let mut mine = None;
        join_grid(&mut mine, &list(vec![1, 5]));
        join_grid(&mut mine, &list(vec![2, 0, 7]));
        assert_eq!(mine.as_ref().unwrap().all, [2, 5, 7]);
        let (more, shared) = (list(vec![3, 5, 7, 1]), mine.clone());
        join_grid(&mut mine, &more);
        assert_eq!(shared.unwrap().all, [2, 5, 7]);
        assert!(Arc::ptr_eq(mine.as_ref().unwrap(), &more));
    }

    #[test]
    fn a_store_publishes_what_was_fenced() {
        let (mut giver, mut taker) = (WarpClock::new(1), WarpClock::new(1));
        giver.now = 3;
        giver.fence(0, 0, true);
        giver.now += 1;
        let published = giver.fenced.as_mut().unwrap().published(0);
        assert_eq!((published.of(0), published.of(1)), (4, 0));
        taker.find(&published);
        taker.fence(0, 1, false);
        assert!(taker.known.far.is_none());
        taker.fence(0, 1, true);
        assert_eq!(taker.known.far.as_ref().unwrap().of(0), 4);
    }

    /// Warps of CTAs of two that pass on what they know, for all CTAs and for their own: lists that are compared by
    /// their tips agree with those that are compared clock by clock.
    #[test]
    fn tips_tell_what_all_clocks_would() {
        let mut random = 1u32;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) as usize % limit
        };
        let mut warps = vec![WarpClock::new(2); 8];
        let mut lists: Vec<Grid> = Vec::new();
        let (mut fast, mut partial) = (0, 0);
        for step in 0..20_000 {
            let who = below(8);
            let (id, first) = (who % 2, who & !1);
            warps[who].now += 1;
            match below(8) {
                0 => warps[who].fence(id, first, true),
                1 if step > 10_000 => warps[who].fence(id, first, false),
                2 => lists.extend(warps[who].fenced.as_mut().map(|fenced| fenced.published(first))),
                3 | 4 if !lists.is_empty() => {
                    let from = lists.len().saturating_sub(20);
                    let list = lists[from + below(lists.len() - from)].clone();
                    warps[who].find(&list);
                }
                5 if lists.len() > 1 => {
                    let mut sum = Some(lists[lists.len() - 1 - below(lists.len().min(9))].clone());
                    join_grid(&mut sum, &lists[lists.len() - 1 - below(lists.len().min(9))].clone());
                    lists.extend(sum);
                }
                6 => {
                    let mut meeting = Meeting::default();
                    meeting.arrive(&mut warps[first], 0);
                    meeting.arrive(&mut warps[first + 1], 1);
                    meeting.leave(&mut warps[first]);
                    meeting.leave(&mut warps[first + 1]);
                }
                _ => {}
            }
            for _ in 0..4.min(lists.len()) {
                let from = lists.len().saturating_sub(40);
                let (a, b) =
                    (&lists[from + below(lists.len() - from)], &lists[from + below(lists.len() - from)]);
                fast += usize::from(a.covers_fast(b));
                partial += usize::from(a.partial);
                let slow = a.all.len() >= b.all.len() && none_below(&a.all, &b.all);
                assert_eq!(a.covers(b), slow, "{a:?} {b:?}");
            }
        }
        assert!(fast > 10_000 && partial > 1000, "{fast} {partial}");
    }

    #[test]
    fn lanes_that_meet_are_ordered() {
        let all = LaneMask(u32::MAX as u64);
        let mut order = LaneOrder::default();
        assert!(!order.ordered(0, 1, 1) && order.ordered(1, 1, 1));
        order.meet(LaneMask(0b11), all, 32, 4);
        assert!(order.ordered(0, 1, 4) && !order.ordered(0, 1, 5) && !order.ordered(2, 1, 4));
        order.meet(LaneMask(0b110), all, 32, 6);
        assert!(order.ordered(2, 0, 4) && !order.ordered(0, 2, 6));
        order.meet(all, all, 32, 7);
        assert!(order.ordered(0, 2, 7));
    }
}
