//! Warp schedulers: which of the warps that could issue does.
//!
//! A policy is one file that implements [`Policy`] and one line in [`POLICIES`]; `docs/new-policy.md` writes one.

use std::ops::BitAnd;

use warploom_isa::Pc;

use crate::chip::Chip;
use crate::chip::spinning::BowsSpec;

pub mod accuracy;
mod bows;
mod cawa;
pub mod cost;
pub mod ddos;
mod gto;
pub mod limit;
mod lrr;
#[cfg(test)]
mod testing;
// The example of docs/new-policy.md.
#[cfg(test)]
mod youngest;

/// A warp's place in its SM: its number among the SM's warp slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarpSlot(pub u8);

impl WarpSlot {
    /// As an index into an array of slots.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of warp slots of one SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet(pub u64);

impl SlotSet {
    /// Whether the slot is in it.
    #[inline(always)]
    pub fn contains(self, slot: WarpSlot) -> bool {
        self.0 >> slot.0 & 1 == 1
    }

    /// Adds a slot.
    #[inline(always)]
    pub fn insert(&mut self, slot: WarpSlot) {
        self.0 |= 1 << slot.0;
    }

    /// Takes a slot out.
    #[inline(always)]
    pub fn remove(&mut self, slot: WarpSlot) {
        self.0 &= !(1 << slot.0);
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many.
    #[inline(always)]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The lowest slot.
    #[inline(always)]
    pub fn first(self) -> Option<WarpSlot> {
        (self.0 != 0).then(|| WarpSlot(self.0.trailing_zeros() as u8))
    }

    /// The slots, lowest first.
    pub fn iter(self) -> impl Iterator<Item = WarpSlot> {
        crate::sm::warp::lanes(self.0).map(|slot| WarpSlot(slot as u8))
    }

    /// The first slot of a list that is in the set.
    #[inline]
    pub fn first_of(self, order: &[WarpSlot]) -> Option<WarpSlot> {
        order.iter().copied().find(|&slot| self.contains(slot))
    }
}

impl BitAnd for SlotSet {
    type Output = SlotSet;

    #[inline(always)]
    fn bitand(self, other: SlotSet) -> SlotSet {
        SlotSet(self.0 & other.0)
    }
}

impl FromIterator<WarpSlot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = WarpSlot>>(slots: I) -> Self {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

/// How a branch went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchOutcome {
    /// Where it goes if taken.
    pub target: Pc,
    /// Where its paths meet again.
    pub reconverge: Pc,
    /// Lanes that took it.
    pub taken: u64,
    /// Lanes that did not.
    pub fallen: u64,
}

/// An instruction that a warp issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The warp.
    pub slot: WarpSlot,
    /// The instruction.
    pub pc: Pc,
    /// Its active lanes.
    pub lanes: u64,
    /// For a branch, how it went.
    pub branch: Option<BranchOutcome>,
    /// It is a branch that the SM takes to be spin-inducing. Never so without BOWS.
    pub is_sib: bool,
}

/// A warp scheduler's choice among its warps.
///
/// Each scheduler of each SM has a policy object of its own and tells it only about its own warps. Times are in cycles
/// and never go back. Cycles in which none of its warps could issue pass without a call: what depends on time must
/// look at `now` and not count calls.
pub trait Policy: Send {
    /// Names one of `ready`, which is not empty: warps whose next instruction could issue in this cycle. `None` lets them
    /// all wait. Called at most once a cycle; the warp then issues at least one instruction in the same cycle.
    fn pick(&mut self, now: u64, ready: SlotSet) -> Option<WarpSlot>;

    /// A warp of this scheduler starts. `age` counts the warps of the SM in the order they started: the smaller, the
    /// older; in a CTA, warps of lower thread numbers are older.
    fn started(&mut self, now: u64, slot: WarpSlot, age: u64);

    /// A warp's last thread has ended. Its slot is free for another.
    fn ended(&mut self, now: u64, slot: WarpSlot);

    /// A warp has issued an instruction. A wide scheduler issues several in a cycle, each with its own call.
    fn issued(&mut self, now: u64, issue: &Issue);

    /// The next cycle in which it may pick a warp that it now lets wait, if it has turned ready ones down.
    fn wakes_at(&self) -> Option<u64> {
        None
    }

    /// BOWS only: warps that leave the backed-off state from now on have to wait so many cycles before their next turn.
    fn set_delay_limit(&mut self, _cycles: u64) {}

    /// BOWS only: if the warp is backed off, the cycle from which on it may issue.
    fn backed_off_until(&self, _slot: WarpSlot) -> Option<u64> {
        None
    }
}

/// How a policy is made: from the chip, for one scheduler.
type Make = fn(&Chip) -> Box<dyn Policy>;

/// The policies by name, with a line about each.
pub const POLICIES: &[(&str, &str, Make)] = &[
    ("lrr", "loose round-robin: the next ready warp after the last one", |_| Box::new(lrr::Lrr::default())),
    ("gto", "greedy, then oldest: the same warp until it stalls, then the oldest", |chip| {
        Box::new(gto::Gto::new(&chip.issue.gto))
    }),
    ("cawa", "criticality-aware: the warp that is expected to end last", |chip| {
        Box::new(cawa::Cawa::new(&chip.issue.cawa))
    }),
    #[cfg(test)]
    ("youngest", "youngest first", |_| Box::new(youngest::Youngest::default())),
];

/// Names of the policies.
pub fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|&(name, ..)| name).collect()
}

/// A policy by name, or `None` if there is none of that name.
pub fn make(name: &str, chip: &Chip) -> Option<Box<dyn Policy>> {
    POLICIES.iter().find(|&&(known, ..)| known == name).map(|&(_, _, make)| make(chip))
}

/// The same with back-off of spinning warps around it, if that is asked for.
pub fn make_with(name: &str, chip: &Chip, bows: Option<&BowsSpec>) -> Option<Box<dyn Policy>> {
    let policy = make(name, chip)?;
    Some(match bows {
        Some(spec) => Box::new(bows::Bows::new(policy, spec)),
        None => policy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../../docs/new-policy.md");

    #[test]
    fn the_guide_shows_the_example_as_it_is() {
        let block = |code: &str| GUIDE.contains(&format!("```rust\n{code}```\n"));
        assert!(block(include_str!("youngest.rs")), "docs/new-policy.md differs from youngest.rs");
        let registration = include_str!("mod.rs").lines().find(|line| line.contains("(\"youngest\","));
        let registration = registration.expect("it is registered").trim();
        assert!(block(&format!("{registration}\n")), "docs/new-policy.md differs from the line in POLICIES");
    }

    #[test]
    fn names_are_unique_and_lead_to_policies() {
        let chip = Chip::load("gtx480", &[]).unwrap();
        for (at, name) in names().into_iter().enumerate() {
            assert_eq!(names().iter().position(|&other| other == name), Some(at));
            assert!(make(name, &chip).is_some());
        }
        assert!(make("none such", &chip).is_none());
    }

    /// Steps of xorshift64.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// What a policy picks in a run of warps that start, stall, branch and end at random, on slots 0, 2, …, 46.
    fn picks(policy: &mut dyn Policy) -> Vec<Option<WarpSlot>> {
        let (mut state, mut live, mut age, mut now) = (1, SlotSet::default(), 0, 0);
        let mut picks = Vec::new();
        for _ in 0..20_000 {
            now += 1 + random(&mut state) % 16 * (random(&mut state) % 16 / 15) * 10_000;
            let slot = WarpSlot((random(&mut state) % 24 * 2) as u8);
            if !live.contains(slot) {
                live.insert(slot);
                policy.started(now, slot, age);
                age += 1;
            } else if random(&mut state).is_multiple_of(8) {
                live.remove(slot);
                policy.ended(now, slot);
            }
            let ready = SlotSet(live.0 & random(&mut state));
            if ready.is_empty() {
                continue;
            }
            let picked = policy.pick(now, ready);
            picks.push(picked);
            let Some(slot) = picked else {
                assert!(policy.wakes_at().is_some(), "it lets ready warps wait and does not say until when");
                continue;
            };
            assert!(ready.contains(slot), "{slot:?} is not in {ready:?}");
            for _ in 0..1 + random(&mut state) % 2 {
                let (lanes, taken) = (random(&mut state), random(&mut state));
                let mut pc = || Pc((random(&mut state) % 100) as u32);
                let (pc, target, reconverge) = (pc(), pc(), pc());
                let outcome =
                    BranchOutcome { target, reconverge, taken: lanes & taken, fallen: lanes & !taken };
                let branch = pc.0.is_multiple_of(4).then_some(outcome);
                let is_sib = branch.is_some() && pc.0.is_multiple_of(8);
                policy.issued(now, &Issue { slot, pc, lanes, branch, is_sib });
            }
        }
        picks
    }

    #[test]
    fn every_policy_picks_ready_warps_and_the_same_ones_again() {
        let chip = Chip::load("gtx480", &[]).unwrap();
        for name in names() {
            for bows in [None, Some(&chip.issue.bows)] {
                let run = || picks(&mut *make_with(name, &chip, bows).unwrap());
                assert!(run() == run(), "{name} is not deterministic, BOWS: {}", bows.is_some());
            }
        }
    }
}
