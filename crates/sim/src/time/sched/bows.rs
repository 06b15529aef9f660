//! BOWS: spinning warps back off, under any policy (ElTantawy and Aamodt, HPCA 2018, Section III).
//!
//! A warp that executes a spin-inducing branch is *backed off*: it goes to the end of a queue that is served only
//! when no other warp is ready. When it issues again it leaves the queue, gets its usual priority back, and its
//! pending-delay register is loaded with the delay limit. The register counts down every cycle; a warp that is backed
//! off before it reaches zero cannot issue until then. So two iterations of a spin loop begin at least the delay
//! limit apart, and an iteration that takes longer by itself is not delayed.

use crate::chip::spinning::{BackedOffOrder, BowsSpec};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::sched::{Issue, Policy};

/// The warps of an SM that are backed off, and until when. The one place that knows.
///
/// Each scheduler has a queue and finds only its own warps in it; one list in order of arrival serves them all.
#[derive(Clone, Debug)]
pub(crate) struct BackOff {
    order: BackedOffOrder,
    /// Branches that no lane takes back off, too.
    untaken: bool,
    backed_off: SlotSet,
    /// The same warps in the order in which they backed off.
    queue: Vec<WarpSlot>,
    /// By slot, the cycle in which the pending-delay register reaches zero.
    zero_at: [Cycle; 64],
    /// By slot, the cycle of the branch with which the warp last backed off.
    since: [Cycle; 64],
    limit_cycles: u64,
    pub stats: BackOffs,
}

/// How often warps backed off, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOffs {
    pub count: u64,
    /// Cycles from the spin-inducing branch to the next instruction, of all warps.
    pub warp_cycles: u64,
    /// The greatest delay limit in force.
    pub longest_limit: u64,
}

impl BackOffs {
    /// Adds another SM's.
    pub fn add(&mut self, other: &BackOffs) {
        self.count += other.count;
        self.warp_cycles += other.warp_cycles;
        self.longest_limit = self.longest_limit.max(other.longest_limit);
    }
}

impl BackOff {
    pub(crate) fn new(spec: &BowsSpec, limit_cycles: u64) -> BackOff {
        BackOff {
            order: spec.order,
            untaken: spec.untaken,
            backed_off: SlotSet::default(),
            queue: Vec::new(),
            zero_at: [Cycle(0); 64],
            since: [Cycle(0); 64],
            limit_cycles,
            stats: BackOffs { longest_limit: limit_cycles, ..BackOffs::default() },
        }
    }

    /// Warps that leave the backed-off state from now on get this delay.
    pub(crate) fn set_limit(&mut self, cycles: u64) {
        self.limit_cycles = cycles;
        self.stats.longest_limit = self.stats.longest_limit.max(cycles);
    }

    /// If a warp is backed off, the cycle from which on it may issue.
    #[inline]
    pub(crate) fn until(&self, slot: WarpSlot) -> Option<Cycle> {
        self.backed_off.contains(slot).then(|| self.zero_at[slot.index()])
    }

    /// Whether the delay of a warp keeps it from issuing at `now`. In the cycle of its branch this asks about the
    /// next one.
    #[inline]
    pub(crate) fn delays(&self, slot: WarpSlot, now: Cycle) -> bool {
        self.until(slot).is_some_and(|until| now.max(self.since[slot.index()] + 1) < until)
    }

    /// A scheduler's choice: `policy` picks among warps that are not backed off, the queue decides among the others.
    /// `ready` is not empty and has no warp that is delayed.
    pub(crate) fn pick(&self, now: Cycle, ready: SlotSet, policy: &mut dyn Policy) -> Option<WarpSlot> {
        debug_assert!(ready.iter().all(|slot| !self.delays(slot, now)));
        let others = SlotSet(ready.0 & !self.backed_off.0);
        if !others.is_empty() {
            return policy.pick(now, others);
        }
        match self.order {
            BackedOffOrder::Queue => ready.first_of(&self.queue),
            BackedOffOrder::Policy => policy.pick(now, ready),
        }
    }

    pub(crate) fn started(&mut self, now: Cycle, slot: WarpSlot) {
        self.zero_at[slot.index()] = now;
    }

    pub(crate) fn ended(&mut self, slot: WarpSlot) {
        self.leave(slot);
    }

    /// A warp issues: it leaves the queue, and enters it again at its end after a spin-inducing branch.
    pub(crate) fn issued(&mut self, now: Cycle, issue: &Issue) {
        let slot = issue.slot;
        if self.leave(slot) {
            self.stats.warp_cycles += now - self.since[slot.index()];
            self.zero_at[slot.index()] = now + self.limit_cycles;
        }
        if issue.is_sib && (self.untaken || issue.branch.is_some_and(|branch| !branch.taken.is_empty())) {
            self.backed_off.insert(slot);
            self.queue.push(slot);
            self.since[slot.index()] = now;
            self.stats.count += 1;
        }
    }

    /// Returns whether the warp was backed off.
    fn leave(&mut self, slot: WarpSlot) -> bool {
        let was = self.backed_off.contains(slot);
        if was {
            self.backed_off.remove(slot);
            self.queue.retain(|&other| other != slot);
        }
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;
    use crate::kit::lane_mask::LaneMask;
    use crate::time::sched::testing::{BackingOff, plain, slots, turns};
    use crate::time::sched::{BranchOutcome, Policies};
    use warploom_isa::Pc;

    fn chip(set: &[&str]) -> Chip {
        let set: Vec<_> = set.iter().map(|s| s.to_string()).collect();
        Chip::load("gtx480", &set).unwrap()
    }

    /// A policy with warps 0, 1 and 2, oldest first, and a fixed limit.
    fn bows(policy: &str, limit: u64, set: &[&str]) -> BackingOff {
        let limit = format!("issue.bows.limit_cycles={limit}");
        let chip = chip(&[&["issue.bows.adaptive=false", &limit], set].concat());
        let make = Policies::default().find(policy).unwrap().clone();
        let mut policy = BackingOff::new(make(&chip), &chip.issue.bows);
        (0..3).for_each(|slot| policy.started(Cycle(0), WarpSlot(slot), slot.into()));
        policy
    }

    /// The backward branch at 0x98 of the paper's Figure 7a, which is known to be spin-inducing.
    fn sib(slot: u8, taken: u64) -> Issue {
        let (taken, fallen) = (LaneMask(taken), LaneMask(0xf & !taken));
        let branch = BranchOutcome { target: Pc(6), reconverge: Pc(20), taken, fallen };
        Issue { lanes: LaneMask(0xf), branch: Some(branch), is_sib: true, ..plain(slot, 0x98 / 8) }
    }

    /// The `atom.cas` at 0x30 with which its loop begins an iteration.
    fn cas(slot: u8) -> Issue {
        plain(slot, 0x30 / 8)
    }

    const W0: WarpSlot = WarpSlot(0);

    #[test]
    fn figure_4() {
        let mut policy = bows("gto", 100, &[]);
        let all = slots(&[0, 1, 2]);
        // (1) W0 is the oldest and issues.
        assert_eq!(turns(&mut policy, 0, all, 3), [0, 0, 0]);
        // (2) It executes the branch: backed off, behind all others.
        policy.issued(Cycle(3), &sib(0, 0xf));
        assert_eq!(policy.back_off.until(W0), Some(Cycle(0)));
        assert_eq!(turns(&mut policy, 4, all, 2), [1, 1]);
        assert_eq!(turns(&mut policy, 6, slots(&[0, 2]), 1), [2]);
        // (3), (4) The others stall. It leaves the queue with the compare-and-swap, and its delay is the limit.
        assert_eq!(policy.pick(Cycle(10), slots(&[0])), Some(W0));
        policy.issued(Cycle(10), &cas(0));
        assert_eq!(policy.back_off.until(W0), None);
        // Its priority is as it was: greedy, then oldest.
        assert_eq!(policy.pick(Cycle(11), all), Some(W0));
        policy.issued(Cycle(11), &plain(0, 7));
        // (5) Two lanes are in the critical section until cycle 150, longer than the delay.
        assert_eq!(turns(&mut policy, 12, slots(&[1, 2]), 1), [1]);
        assert_eq!(turns(&mut policy, 149, all, 1), [1]);
        // (6) The branch again; two lanes iterate. The delay was over at 110.
        policy.issued(Cycle(150), &sib(0, 0b11));
        assert_eq!(policy.back_off.until(W0), Some(Cycle(110)));
        assert_eq!(policy.pick(Cycle(151), all), Some(WarpSlot(1)));
        // (7) It tries the lock at once when nobody else is ready, and fails.
        assert_eq!(policy.pick(Cycle(152), slots(&[0])), Some(W0));
        policy.issued(Cycle(152), &cas(0));
        // (8) Soon it reaches the branch again.
        policy.issued(Cycle(160), &sib(0, 0b11));
        // (9) It cannot go on before cycle 252, even if nobody else is ready.
        assert_eq!(policy.back_off.until(W0), Some(Cycle(252)));
        assert_eq!(policy.pick(Cycle(161), slots(&[0])), None);
        assert_eq!(policy.wakes_at(), Some(Cycle(252)));
        assert_eq!(policy.pick(Cycle(200), slots(&[0, 2])), Some(WarpSlot(2)));
        assert_eq!(policy.pick(Cycle(251), slots(&[0])), None);
        // (10) Now it can.
        assert_eq!(policy.pick(Cycle(252), slots(&[0])), Some(W0));
        policy.issued(Cycle(252), &cas(0));
        assert_eq!(policy.back_off.until(W0), None);
    }

    #[test]
    fn any_policy_prefers_warps_that_are_not_backed_off() {
        for (name, ..) in crate::time::sched::POLICIES {
            let mut policy = bows(name, 0, &[]);
            for slot in [1, 0] {
                policy.issued(Cycle(1), &sib(slot, 1));
            }
            assert_eq!(turns(&mut policy, 2, slots(&[0, 1, 2]), 3), [2, 2, 2], "{name}");
            // Then those that backed off first.
            assert_eq!(turns(&mut policy, 5, slots(&[0, 1]), 1), [1], "{name}");
        }
    }

    #[test]
    fn the_order_of_backed_off_warps_may_be_the_policys() {
        let mut policy = bows("gto", 0, &["issue.bows.order=policy"]);
        for slot in [2, 1, 0] {
            policy.issued(Cycle(1), &sib(slot, 1));
        }
        // The last to issue comes first under GTO.
        assert_eq!(policy.pick(Cycle(2), slots(&[0, 1, 2])), Some(W0));
        assert_eq!(policy.pick(Cycle(2), slots(&[1, 2])), Some(WarpSlot(1)));
    }

    #[test]
    fn a_branch_that_nobody_takes_backs_off_too_unless_the_chip_says_otherwise() {
        for (set, backed_off) in [("issue.bows.untaken=true", true), ("issue.bows.untaken=false", false)] {
            let mut policy = bows("lrr", 100, &[set]);
            policy.issued(Cycle(1), &sib(0, 0));
            assert_eq!(policy.back_off.until(W0).is_some(), backed_off, "{set}");
        }
    }

    #[test]
    fn a_new_limit_is_for_those_that_leave_from_then_on() {
        let mut policy = bows("lrr", 100, &[]);
        for (now, slot) in [(1, 0), (1, 1)] {
            policy.issued(Cycle(now), &sib(slot, 1));
        }
        policy.issued(Cycle(10), &cas(0));
        policy.back_off.set_limit(500);
        policy.issued(Cycle(10), &cas(1));
        for slot in [0, 1] {
            policy.issued(Cycle(20), &sib(slot, 1));
        }
        assert_eq!(
            [0, 1].map(|slot| policy.back_off.until(WarpSlot(slot))),
            [110, 510].map(|at| Some(Cycle(at)))
        );
        // A scheduler that has only delayed warps wakes when the first delay is over.
        assert_eq!(policy.pick(Cycle(21), slots(&[0, 1])), None);
        assert_eq!(policy.wakes_at(), Some(Cycle(110)));
    }

    #[test]
    fn a_delay_that_is_over_in_the_next_cycle_delays_nothing() {
        let mut policy = bows("lrr", 2, &[]);
        policy.issued(Cycle(1), &sib(0, 1));
        policy.issued(Cycle(10), &cas(0));
        policy.issued(Cycle(11), &sib(0, 1));
        assert_eq!(policy.back_off.until(W0), Some(Cycle(12)));
        assert!(![11, 12].iter().any(|&now| policy.back_off.delays(W0, Cycle(now))));
        policy.issued(Cycle(20), &cas(0));
        policy.issued(Cycle(20), &sib(0, 1));
        assert_eq!([20, 21, 22].map(|now| policy.back_off.delays(W0, Cycle(now))), [true, true, false]);
        // From the branch to the next instruction: 1 to 10, 11 to 20.
        assert_eq!(policy.back_off.stats, BackOffs { count: 3, warp_cycles: 18, longest_limit: 2 });
    }

    #[test]
    fn a_slot_that_is_used_again_begins_anew() {
        let mut policy = bows("gto", 100, &[]);
        policy.issued(Cycle(1), &sib(0, 1));
        policy.issued(Cycle(2), &cas(0));
        policy.issued(Cycle(3), &sib(0, 1));
        policy.ended(Cycle(4), W0);
        policy.started(Cycle(5), W0, 3);
        assert_eq!(policy.back_off.until(W0), None);
        policy.issued(Cycle(6), &sib(0, 1));
        assert_eq!(policy.pick(Cycle(7), slots(&[0])), Some(W0));
    }
}
