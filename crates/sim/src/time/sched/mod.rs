//! Warp schedulers: which of the warps that could issue does.
//!
//! A policy is one file that implements [`Policy`] and one line in [`POLICIES`]; one from another crate is added to
//! [`Policies`]. `docs/new-policy.md` writes one. BOWS, which wraps any policy, is in `bows`, `limit` and `ddos`.

use warploom_isa::Pc;

use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::lane_mask::LaneMask;

pub(crate) mod accuracy;
pub(crate) mod bows;
mod cawa;
pub(crate) mod cost;
pub(crate) mod ddos;
mod gto;
pub(crate) mod limit;
mod lrr;
mod registry;
#[cfg(test)]
mod testing;

pub(crate) use crate::time::sched::registry::Policies;
pub use crate::time::sched::registry::{MakePolicy, NamedPolicy, POLICIES};

/// How a branch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchOutcome {
    pub target: Pc,
    /// Where its paths meet again.
    pub reconverge: Pc,
    /// Lanes that took it.
    pub taken: LaneMask,
    /// Lanes that did not.
    pub fallen: LaneMask,
}

/// An instruction that a warp issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    pub slot: WarpSlot,
    pub pc: Pc,
    /// Its active lanes.
    pub lanes: LaneMask,
    /// For a branch, how it went.
    pub branch: Option<BranchOutcome>,
    /// It is a branch that the SM takes to be spin-inducing. Never so without BOWS.
    pub is_sib: bool,
}

impl Issue {
    /// The same with all code so many instructions later.
    pub(crate) fn moved_by(self, instructions: u32) -> Issue {
        let moved = |pc: Pc| Pc(pc.0.saturating_add(instructions));
        let branch = self.branch.map(|branch| BranchOutcome { target: moved(branch.target), ..branch });
        Issue { pc: moved(self.pc), branch, ..self }
    }
}

/// A warp scheduler's choice among its warps.
///
/// Each scheduler of each SM has its own policy object, which hears only of that scheduler's warps. Times are in
/// cycles and never go back. Cycles in which none of its warps could issue pass without a call: whatever depends on
/// time must look at `now` and not count calls.
pub trait Policy: Send {
    /// Names one of `ready`, which is not empty: warps whose next instruction could issue in this cycle. `None` lets
    /// them all wait. Called at most once per cycle; the warp then issues at least one instruction in the same cycle.
    fn pick(&mut self, now: Cycle, ready: SlotSet) -> Option<WarpSlot>;

    /// A warp of this scheduler starts. `age` counts the warps of the SM in the order they started: the smaller, the
    /// older; in a CTA, warps of lower thread numbers are older.
    fn started(&mut self, now: Cycle, slot: WarpSlot, age: u64);

    /// A warp's last thread has ended. Its slot is free for another.
    fn ended(&mut self, now: Cycle, slot: WarpSlot);

    /// A warp has issued an instruction. A wide scheduler issues several in a cycle, each with its own call.
    fn issued(&mut self, now: Cycle, issue: &Issue);

    /// After `pick` returned `None`: the next cycle in which it may pick one of the warps that it let wait.
    fn wakes_at(&self) -> Option<Cycle> {
        None
    }

    /// Whether a warp that is ready may never be picked because others always are. If it may not, a launch is not
    /// suspected to hang before every ready warp has had its turn.
    fn may_starve(&self) -> bool {
        true
    }

    /// If it may, but every warp has its turn some time: the cycles until all have had theirs. A launch is not
    /// suspected before a warp has been passed over in two of its turns.
    fn turn_cycles(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chip::Chip;
    use crate::chip::timing::POLICY_NAMES;
    use crate::time::sched::testing::BackingOff;

    #[test]
    fn the_chip_knows_the_names_of_the_policies() {
        assert_eq!(Policies::default().names().collect::<Vec<_>>(), POLICY_NAMES);
    }

    #[test]
    fn a_policy_that_is_added_replaces_one_of_the_same_name() {
        let mut policies = Policies::default();
        for name in ["mine", "mine", "lrr"] {
            policies.add(NamedPolicy {
                name: name.to_string(),
                make: Arc::new(|_| Box::new(lrr::Lrr::default())),
            });
        }
        assert_eq!(policies.names().collect::<Vec<_>>(), ["gto", "cawa", "mine", "lrr"]);
        assert!(policies.find("mine").is_some() && policies.find("none such").is_none());
    }

    /// Steps of xorshift64.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// The picks of a policy while warps start, stall, branch and end at random, on slots 0, 2, …, 46.
    fn picks(policy: &mut dyn Policy) -> Vec<Option<WarpSlot>> {
        let (mut state, mut live, mut age, mut now) = (1, SlotSet::default(), 0, 0);
        let mut picks = Vec::new();
        for _ in 0..20_000 {
            now += 1 + random(&mut state) % 16 * (random(&mut state) % 16 / 15) * 10_000;
            let slot = WarpSlot((random(&mut state) % 24 * 2) as u8);
            if !live.contains(slot) {
                live.insert(slot);
                policy.started(Cycle(now), slot, age);
                age += 1;
            } else if random(&mut state).is_multiple_of(8) {
                live.remove(slot);
                policy.ended(Cycle(now), slot);
            }
            let ready = SlotSet(live.0 & random(&mut state));
            if ready.is_empty() {
                continue;
            }
            let picked = policy.pick(Cycle(now), ready);
            picks.push(picked);
            let Some(slot) = picked else {
                assert!(policy.wakes_at().is_some(), "it lets ready warps wait and does not say until when");
                continue;
            };
            assert!(ready.contains(slot), "{slot:?} is not in {ready:?}");
            for _ in 0..1 + random(&mut state) % 2 {
                let (lanes, taken) = (LaneMask(random(&mut state)), LaneMask(random(&mut state)));
                let mut pc = || Pc((random(&mut state) % 100) as u32);
                let (pc, target, reconverge) = (pc(), pc(), pc());
                let outcome =
                    BranchOutcome { target, reconverge, taken: lanes & taken, fallen: lanes & !taken };
                let branch = pc.0.is_multiple_of(4).then_some(outcome);
                let is_sib = branch.is_some() && pc.0.is_multiple_of(8);
                policy.issued(Cycle(now), &Issue { slot, pc, lanes, branch, is_sib });
            }
        }
        picks
    }

    #[test]
    fn every_policy_picks_ready_warps_and_the_same_ones_again() {
        let chip = Chip::load("gtx480", &[]).unwrap();
        for (name, _, make) in POLICIES {
            for bows in [None, Some(&chip.issue.bows)] {
                let run = || match bows {
                    Some(spec) => picks(&mut BackingOff::new(make(&chip), spec)),
                    None => picks(&mut *make(&chip)),
                };
                assert!(run() == run(), "{name} is not deterministic, BOWS: {}", bows.is_some());
            }
        }
    }
}
