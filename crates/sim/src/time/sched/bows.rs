//! BOWS: spinning warps back off, under any policy (ElTantawy and Aamodt, HPCA 2018, Section III).
//!
//! A warp that executes a spin-inducing branch is *backed off*: it goes to the end of a queue that is asked only when no
//! other warp is ready. When it issues again it leaves the queue, has its usual priority back, and its pending-delay
//! register is loaded with the delay limit. The register counts down every cycle; a warp that is backed off while it is
//! not yet zero cannot issue before it is. So two turns of a spin loop begin at least the delay limit apart, and a
//! turn that takes longer by itself is not delayed.

use crate::chip::spinning::{BackedOffOrder, BowsSpec};
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::sched::{Issue, Policy};

/// A policy whose spinning warps back off.
pub struct Bows {
    inner: Box<dyn Policy>,
    order: BackedOffOrder,
    untaken: bool,
    /// Warps that are backed off.
    backed_off: SlotSet,
    /// The same, those that came first in front.
    queue: Vec<WarpSlot>,
    /// By slot, the cycle in which the pending-delay register is zero.
    zero_at: [u64; 64],
    limit_cycles: u64,
    /// The first cycle in which the delay of a warp that was turned down is over.
    wakes_at: Option<u64>,
}

impl Bows {
    /// Around a policy without warps.
    pub fn new(inner: Box<dyn Policy>, spec: &BowsSpec) -> Bows {
        Bows {
            inner,
            order: spec.order,
            untaken: spec.untaken,
            backed_off: SlotSet::default(),
            queue: Vec::new(),
            zero_at: [0; 64],
            limit_cycles: if spec.adaptive { spec.min_limit_cycles } else { spec.limit_cycles },
            wakes_at: None,
        }
    }

    fn enter(&mut self, slot: WarpSlot) {
        self.backed_off.insert(slot);
        self.queue.push(slot);
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

impl Policy for Bows {
    fn pick(&mut self, now: u64, ready: SlotSet) -> Option<WarpSlot> {
        self.wakes_at = None;
        let others = SlotSet(ready.0 & !self.backed_off.0);
        if !others.is_empty() {
            return self.inner.pick(now, others);
        }
        let eligible: SlotSet = ready.iter().filter(|slot| self.zero_at[slot.index()] <= now).collect();
        if eligible.is_empty() {
            self.wakes_at = ready.iter().map(|slot| self.zero_at[slot.index()]).min();
            return None;
        }
        match self.order {
            BackedOffOrder::Queue => eligible.first_of(&self.queue),
            BackedOffOrder::Policy => self.inner.pick(now, eligible),
        }
    }

    fn started(&mut self, now: u64, slot: WarpSlot, age: u64) {
        self.zero_at[slot.index()] = now;
        self.inner.started(now, slot, age);
    }

    fn ended(&mut self, now: u64, slot: WarpSlot) {
        self.leave(slot);
        self.inner.ended(now, slot);
    }

    fn issued(&mut self, now: u64, issue: &Issue) {
        if self.leave(issue.slot) {
            self.zero_at[issue.slot.index()] = now + self.limit_cycles;
        }
        if issue.is_sib && (self.untaken || issue.branch.is_some_and(|branch| branch.taken != 0)) {
            self.enter(issue.slot);
        }
        self.inner.issued(now, issue);
    }

    fn wakes_at(&self) -> Option<u64> {
        self.wakes_at.into_iter().chain(self.inner.wakes_at()).min()
    }

    fn set_delay_limit(&mut self, cycles: u64) {
        self.limit_cycles = cycles;
    }

    fn backed_off_until(&self, slot: WarpSlot) -> Option<u64> {
        self.backed_off.contains(slot).then(|| self.zero_at[slot.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;
    use crate::time::sched::testing::{plain, slots, turns};
    use crate::time::sched::{BranchOutcome, Policies, with_back_off};
    use warploom_isa::Pc;

    fn chip(set: &[&str]) -> Chip {
        let set: Vec<_> = set.iter().map(|s| s.to_string()).collect();
        Chip::load("gtx480", &set).unwrap()
    }

    /// A policy with warps 0, 1 and 2, oldest first, and a fixed limit.
    fn bows(policy: &str, limit: u64, set: &[&str]) -> Box<dyn Policy> {
        let limit = format!("issue.bows.limit_cycles={limit}");
        let chip = chip(&[&["issue.bows.adaptive=false", &limit], set].concat());
        let make = Policies::default().find(policy).unwrap().clone();
        let mut policy = with_back_off(make(&chip), Some(&chip.issue.bows));
        (0..3).for_each(|slot| policy.started(0, WarpSlot(slot), slot.into()));
        policy
    }

    /// The backward branch at 0x98 of the paper's Figure 7a, which is known to be spin-inducing.
    fn sib(slot: u8, taken: u64) -> Issue {
        let branch = BranchOutcome { target: Pc(6), reconverge: Pc(20), taken, fallen: 0xf & !taken };
        Issue { lanes: 0xf, branch: Some(branch), is_sib: true, ..plain(slot, 0x98 / 8) }
    }

    /// The `atom.cas` at 0x30 with which a turn of it begins.
    fn cas(slot: u8) -> Issue {
        plain(slot, 0x30 / 8)
    }

    const W0: WarpSlot = WarpSlot(0);

    #[test]
    fn figure_4() {
        let mut policy = bows("gto", 100, &[]);
        let all = slots(&[0, 1, 2]);
        // (1) W0 is the oldest and issues.
        assert_eq!(turns(&mut *policy, 0, all, 3), [0, 0, 0]);
        // (2) It executes the branch: backed off, behind all others.
        policy.issued(3, &sib(0, 0xf));
        assert_eq!(policy.backed_off_until(W0), Some(0));
        assert_eq!(turns(&mut *policy, 4, all, 2), [1, 1]);
        assert_eq!(turns(&mut *policy, 6, slots(&[0, 2]), 1), [2]);
        // (3), (4) The others stall. It leaves the queue with the compare-and-swap, and its delay is the limit.
        assert_eq!(policy.pick(10, slots(&[0])), Some(W0));
        policy.issued(10, &cas(0));
        assert_eq!(policy.backed_off_until(W0), None);
        // Its priority is as it was: greedy, then oldest.
        assert_eq!(policy.pick(11, all), Some(W0));
        policy.issued(11, &plain(0, 7));
        // (5) Two lanes are in the critical section until cycle 150, longer than the delay.
        assert_eq!(turns(&mut *policy, 12, slots(&[1, 2]), 1), [1]);
        assert_eq!(turns(&mut *policy, 149, all, 1), [1]);
        // (6) The branch again; two lanes go round. The delay was over at 110.
        policy.issued(150, &sib(0, 0b11));
        assert_eq!(policy.backed_off_until(W0), Some(110));
        assert_eq!(policy.pick(151, all), Some(WarpSlot(1)));
        // (7) It comes to the lock at once when nobody else is ready, and fails.
        assert_eq!(policy.pick(152, slots(&[0])), Some(W0));
        policy.issued(152, &cas(0));
        // (8) Soon it is at the branch again.
        policy.issued(160, &sib(0, 0b11));
        // (9) It cannot go on before cycle 252, even if nobody else is ready.
        assert_eq!(policy.backed_off_until(W0), Some(252));
        assert_eq!(policy.pick(161, slots(&[0])), None);
        assert_eq!(policy.wakes_at(), Some(252));
        assert_eq!(policy.pick(200, slots(&[0, 2])), Some(WarpSlot(2)));
        assert_eq!(policy.pick(251, slots(&[0])), None);
        // (10) Now it can.
        assert_eq!(policy.pick(252, slots(&[0])), Some(W0));
        policy.issued(252, &cas(0));
        assert_eq!(policy.backed_off_until(W0), None);
    }

    #[test]
    fn any_policy_prefers_warps_that_are_not_backed_off() {
        for (name, ..) in crate::time::sched::POLICIES {
            let mut policy = bows(name, 0, &[]);
            for slot in [1, 0] {
                policy.issued(1, &sib(slot, 1));
            }
            assert_eq!(turns(&mut *policy, 2, slots(&[0, 1, 2]), 3), [2, 2, 2], "{name}");
            // Then those that came first.
            assert_eq!(turns(&mut *policy, 5, slots(&[0, 1]), 1), [1], "{name}");
        }
    }

    #[test]
    fn the_order_of_backed_off_warps_may_be_the_policys() {
        let mut policy = bows("gto", 0, &["issue.bows.order=policy"]);
        for slot in [2, 1, 0] {
            policy.issued(1, &sib(slot, 1));
        }
        // The last to issue comes first under GTO.
        assert_eq!(policy.pick(2, slots(&[0, 1, 2])), Some(W0));
        assert_eq!(policy.pick(2, slots(&[1, 2])), Some(WarpSlot(1)));
    }

    #[test]
    fn a_branch_that_nobody_takes_backs_off_too_unless_told_otherwise() {
        for (set, backed_off) in [("issue.bows.untaken=true", true), ("issue.bows.untaken=false", false)] {
            let mut policy = bows("lrr", 100, &[set]);
            policy.issued(1, &sib(0, 0));
            assert_eq!(policy.backed_off_until(W0).is_some(), backed_off, "{set}");
        }
    }

    #[test]
    fn a_new_limit_is_for_those_that_leave_from_then_on() {
        let mut policy = bows("lrr", 100, &[]);
        for (now, slot) in [(1, 0), (1, 1)] {
            policy.issued(now, &sib(slot, 1));
        }
        policy.issued(10, &cas(0));
        policy.set_delay_limit(500);
        policy.issued(10, &cas(1));
        for slot in [0, 1] {
            policy.issued(20, &sib(slot, 1));
        }
        assert_eq!([0, 1].map(|slot| policy.backed_off_until(WarpSlot(slot))), [Some(110), Some(510)]);
        // A warp turned down is asked again when the first delay is over.
        assert_eq!(policy.pick(21, slots(&[0, 1])), None);
        assert_eq!(policy.wakes_at(), Some(110));
    }

    #[test]
    fn a_slot_that_is_used_again_begins_anew() {
        let mut policy = bows("gto", 100, &[]);
        policy.issued(1, &sib(0, 1));
        policy.issued(2, &cas(0));
        policy.issued(3, &sib(0, 1));
        policy.ended(4, W0);
        policy.started(5, W0, 3);
        assert_eq!(policy.backed_off_until(W0), None);
        policy.issued(6, &sib(0, 1));
        assert_eq!(policy.pick(7, slots(&[0])), Some(W0));
    }
}
