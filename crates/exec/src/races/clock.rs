//! What a warp is ordered after: of every other warp, the accesses up to a certain one.
//!
//! A warp counts its accesses; the count is its clock. Order between warps is kept per warp, not per lane: what one
//! lane learns, its warp knows, and what one lane publishes, its warp has published. That can hide a race between two
//! warps, but never reports one that is not there. Order between the lanes of one warp is exact ([`LaneOrder`]).

use std::sync::Arc;

use multiversion::multiversion;

use crate::kit::lane_mask::LaneMask;

/// Clocks of all warps of the grid by their number; those not listed are 0. Shared, because many words and warps know
/// the same.
pub(super) type Grid = Arc<Vec<u32>>;

/// Lists that a warp keeps apart until its next fence.
const MOST_FOUND: usize = 64;

/// What a warp knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Clocks of the warps of its CTA.
    pub near: Vec<u32>,
    /// Clocks of other CTAs' warps; entries of its own CTA do not count.
    pub far: Option<Grid>,
}

impl Known {
    /// Learns what another warp of the CTA knows.
    pub(super) fn join(&mut self, other: &Known) {
        raise(&mut self.near, &other.near);
        if let Some(far) = &other.far {
            join_grid(&mut self.far, far);
        }
    }

    /// Learns what was published to all CTAs. The warps of the own CTA begin at `first`.
    pub(super) fn join_grid(&mut self, first: usize, clocks: &Grid) {
        join_grid(&mut self.far, clocks);
        self.join_near(first, clocks);
    }

    /// Of what was published to all CTAs, learns only what concerns the own one.
    pub(super) fn join_near(&mut self, first: usize, clocks: &Grid) {
        raise(&mut self.near, clocks.get(first..).unwrap_or_default());
    }

    /// For all CTAs.
    pub(super) fn published(&self, first: usize) -> Grid {
        let mut all = self.far.as_deref().cloned().unwrap_or_default();
        let end = first + self.near.len();
        if all.len() < end {
            all.resize(end, 0);
        }
        raise(&mut all[first..end], &self.near);
        Arc::new(all)
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
fn join_grid(mine: &mut Option<Grid>, other: &Grid) {
    let Some(clocks) = mine else {
        *mine = Some(other.clone());
        return;
    };
    if Arc::ptr_eq(clocks, other) {
        return;
    }
    if Arc::get_mut(clocks).is_none() {
        if covers(other, clocks) {
            *clocks = other.clone();
            return;
        }
        if covers(clocks, other) {
            return;
        }
    }
    let all = Arc::make_mut(clocks);
    if all.len() < other.len() {
        all.resize(other.len(), 0);
    }
    raise(all, other);
}

/// Whether no clock is below that of the other list.
#[multiversion(targets("x86_64+avx2"))]
fn covers(clocks: &[u32], other: &[u32]) -> bool {
    if clocks.len() < other.len() {
        return false;
    }
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
    /// The last ones found before a fence, and so part of what is known.
    learned: Vec<Grid>,
    pub lanes: LaneOrder,
}

/// What a warp knew at a fence.
#[derive(Clone, Debug)]
pub(super) struct Fenced {
    pub known: Arc<Known>,
    published: Option<Grid>,
}

impl Fenced {
    /// Whether this is what was published.
    pub(super) fn is(&self, clocks: &Grid) -> bool {
        self.published.as_ref().is_some_and(|published| Arc::ptr_eq(published, clocks))
    }

    /// For all CTAs.
    pub(super) fn published(&mut self, first: usize) -> Grid {
        self.published.get_or_insert_with(|| self.known.published(first)).clone()
    }
}

impl WarpClock {
    pub(super) fn new(warps: usize) -> Self {
        WarpClock {
            now: 0,
            known: Known { near: vec![0; warps], far: None },
            fenced_cta: None,
            fenced: None,
            found_cta: None,
            found: Vec::new(),
            learned: Vec::new(),
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
        if self.found.iter().any(|found| Arc::ptr_eq(found, clocks)) {
            return;
        }
        self.found.push(clocks.clone());
        if self.found.len() > MOST_FOUND {
            let mut all = self.found.pop();
            self.found.drain(..).for_each(|found| join_grid(&mut all, &found));
            self.found.extend(all);
        }
    }

    /// A store replaces what was published through its word, if the warp knows that, or else adds to it.
    pub(super) fn publish(&self, published: &mut Option<Grid>, clocks: &Grid) {
        match published {
            Some(known) if self.learned.iter().any(|learned| Arc::ptr_eq(learned, known)) => {
                *known = clocks.clone();
            }
            _ => join_grid(published, clocks),
        }
    }

    /// A fence: what relaxed loads have found counts, and later relaxed stores publish what is known now.
    pub(super) fn fence(&mut self, id: usize, first: usize, all_ctas: bool) {
        if let Some(found) = self.found_cta.take() {
            self.known.join(&found);
        }
        if all_ctas {
            self.found.iter().for_each(|found| self.known.join_grid(first, found));
            self.learned.append(&mut self.found);
            let old = self.learned.len().saturating_sub(MOST_FOUND);
            self.learned.drain(..old);
        } else {
            self.found.iter().for_each(|found| self.known.join_near(first, found));
        }
        let known = Arc::new(self.known(id).clone());
        if all_ctas {
            (self.fenced, self.fenced_cta) = (Some(Fenced { known, published: None }), None);
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
            warp.fenced = Some(Fenced { known: Arc::new(fenced.clone()), published: None });
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
        let mut mine = None;
        join_grid(&mut mine, &Arc::new(vec![1, 5]));
        join_grid(&mut mine, &Arc::new(vec![2, 0, 7]));
        assert_eq!(mine.as_deref(), Some(&vec![2, 5, 7]));
        let (more, shared) = (Arc::new(vec![3, 5, 7, 1]), mine.clone());
        join_grid(&mut mine, &more);
        assert_eq!(shared.as_deref(), Some(&vec![2, 5, 7]));
        assert!(Arc::ptr_eq(mine.as_ref().unwrap(), &more));
    }

    #[test]
    fn a_store_publishes_what_was_fenced() {
        let (mut giver, mut taker) = (WarpClock::new(1), WarpClock::new(1));
        giver.now = 3;
        giver.fence(0, 0, true);
        giver.now = 4;
        let published = giver.fenced.as_mut().unwrap().published(0);
        assert_eq!(*published, [3]);
        taker.find(&published);
        taker.fence(0, 1, false);
        assert_eq!(taker.known.far, None);
        taker.fence(0, 1, true);
        assert_eq!(taker.known.far.as_deref(), Some(&vec![3]));
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
