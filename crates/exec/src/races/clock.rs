//! What a warp is ordered after: of every other warp, the accesses up to a certain one.
//!
//! A warp counts its accesses; the count is its clock. Order between warps is kept per warp, not per lane: what one
//! lane learns, its warp knows, and what one lane publishes, its warp has published. That can hide a race between two
//! warps, but never reports one that is not there. Order between the lanes of one warp is exact ([`LaneOrder`]).

use std::sync::Arc;

use crate::races::lane_order::LaneOrder;
use crate::races::list::{Clocks, Grid, Tip, join_grid, raise};

/// Lists that a warp keeps apart until its next fence.
const MOST_FOUND: usize = 64;

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
        self.raise_near(first, clocks);
    }

    /// Of what was published to all CTAs, learns only what concerns the own one.
    pub(super) fn join_near(&mut self, first: usize, clocks: &Grid) {
        self.partial = true;
        self.raise_near(first, clocks);
    }

    fn raise_near(&mut self, first: usize, clocks: &Clocks) {
        for (id, clock) in self.near.iter_mut().enumerate() {
            *clock = (*clock).max(clocks.of(first + id));
        }
    }

    /// The clock of a warp of another CTA. Not inlined: most accesses meet those of their own CTA.
    #[inline(never)]
    pub(super) fn of_far(&self, warp: usize) -> u32 {
        self.far.as_ref().map_or(0, |far| far.of(warp))
    }

    /// Whether it is seen from the clock of a publication that it was learned before.
    #[inline]
    pub(super) fn knows_tip(&self, tip: Tip) -> bool {
        self.far.as_ref().is_some_and(|far| !far.partial && far.knows(&tip))
    }

    /// Whether it is easy to see that a list was learned before. What `far` knows, `near` does, too.
    fn knows(&self, clocks: &Grid) -> bool {
        let far = self.far.as_ref();
        far.is_some_and(|far| Arc::ptr_eq(far, clocks) || far.covers_fast(clocks) && far.covers(clocks))
    }

    /// For all CTAs, by one warp with a clock of its own, or else by several.
    pub(super) fn published(&self, first: usize, tip: Option<Tip>) -> Grid {
        let mut clocks = self.far.as_deref().cloned().unwrap_or_default();
        clocks.flatten();
        let near = self.near.iter().enumerate();
        clocks.near = near.map(|(id, &clock)| clock.max(clocks.of(first + id))).collect();
        (clocks.first, clocks.tips, clocks.partial) = (first, tip.into_iter().collect(), self.partial);
        Arc::new(clocks)
    }

    /// So that what is published shares the list of the other CTAs.
    fn flatten(&mut self) {
        if let Some(far) = self.far.as_mut().filter(|far| !far.near.is_empty()) {
            Arc::make_mut(far).flatten();
        }
    }
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
    tip: Option<Tip>,
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
            self.known.flatten();
        } else {
            self.found.iter().for_each(|found| self.known.join_near(first, found));
        }
        let known = Arc::new(self.known(id).clone());
        if all_ctas {
            let tip = Some(Tip { warp: (first + id) as u32, clock: self.now });
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

#[cfg(test)]
mod tests {
    use super::*;

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
                let slow = (0..8).all(|warp| a.of(warp) >= b.of(warp));
                assert_eq!(a.none_below(b), slow, "{a:?} {b:?}");
                assert_eq!(a.covers(b), slow, "{a:?} {b:?}");
            }
        }
        assert!(fast > 10_000 && partial > 1000, "{fast} {partial}");
    }
}
