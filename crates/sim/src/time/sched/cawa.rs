//! Criticality-aware: the ready warp that is expected to end last.
//!
//! The scheduler of CAWA (Lee, Arunkumar and Wu, ISCA 2015), with the estimate as the BOWS paper quotes it
//! (ElTantawy and Aamodt, HPCA 2018, Section II):
//!
//! > criticality = nInst × w.CPIavg + nStall
//!
//! * **nInst**, the instructions that remain, is the code ahead of the warp: from its pc, in program order, to the
//!   last instruction known. Each issue shortens it by one, a branch by the path that is skipped, so that of two
//!   warps the one on the longer path has more ahead. A backward branch adds another iteration of its loop. After a
//!   branch at which the warp diverges, both paths are ahead.
//! * **w.CPIavg** is the warp's cycles since its start, divided by the instructions it issued.
//! * **nStall** is the cycles since its start in which it did not issue, for whatever reason. The simulator that was
//!   released with the BOWS paper adds, in every cycle, the time since the warp's last issue instead
//!   ([`Stalls::Ages`]): there the warp that has waited longest soon comes first, and no warp starves.
//!
//! A spinning warp looks critical: its iterations never shorten what is ahead of it, while its stalls add up.

use warploom_isa::Pc;

use crate::chip::timing::{CawaSpec, Stalls};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::{Issue, Policy};

#[derive(Clone, Debug)]
pub(crate) struct Cawa {
    spec: CawaSpec,
    live: SlotSet,
    /// By slot.
    warps: Vec<Warp>,
    /// The first pc after all code seen so far. A scheduler does not know the program's size; the targets of the first
    /// branches reveal it.
    end: Pc,
    /// The warp that issued last.
    last: Option<WarpSlot>,
    /// The first cycle in which a choice needs new criticalities.
    stale_at: Cycle,
}

#[derive(Clone, Debug)]
struct Warp {
    age: u64,
    started: Cycle,
    /// The lowest pc of its lanes: what is ahead begins there.
    at: Pc,
    /// The lanes at that pc.
    lanes: LaneMask,
    instructions: u64,
    /// Cycles in which it issued: fewer than instructions where a scheduler issues several in a cycle.
    issue_cycles: u64,
    last_issue: Option<Cycle>,
    /// The ages of all stalls but the last, in their every cycle, added up.
    stall_ages: u32,
    /// When last computed.
    criticality: f64,
}

impl Warp {
    fn new(started: Cycle, age: u64) -> Self {
        Warp {
            age,
            started,
            at: Pc(0),
            lanes: LaneMask(u64::MAX),
            instructions: 0,
            issue_cycles: 0,
            last_issue: None,
            stall_ages: 0,
            criticality: 0.0,
        }
    }

    fn issued(&mut self, now: Cycle, issue: &Issue) {
        self.instructions += 1;
        if self.last_issue != Some(now) {
            self.stall_ages = self.stall_ages_at(now);
            self.last_issue = Some(now);
            self.issue_cycles += 1;
        }
        // While one path runs, lanes may wait on another one further back, which is still ahead of the warp. They stay
        // there until they issue.
        if issue.pc <= self.at || !(issue.lanes & self.lanes).is_empty() {
            (self.at, self.lanes) = lowest_after(issue);
        }
    }

    fn criticality(&self, spec: &CawaSpec, end: Pc, now: Cycle) -> f64 {
        let cycles = now - self.started;
        let mut criticality = 0.0;
        if spec.instruction_term {
            let ahead = end.0.saturating_sub(self.at.0);
            let cycles_per_instruction = cycles as f64 / self.instructions.max(1) as f64;
            criticality += f64::from(ahead) * cycles_per_instruction;
        }
        if spec.stall_term {
            criticality += match spec.stalls {
                Stalls::Cycles => cycles.saturating_sub(self.issue_cycles) as f64,
                Stalls::Ages => f64::from(self.stall_ages_at(now)),
            };
        }
        criticality
    }

    /// A stall of n cycles has the ages 1, 2, …, n. The counter has 32 bits.
    fn stall_ages_at(&self, now: Cycle) -> u32 {
        let cycles = now - self.last_issue.unwrap_or(self.started);
        self.stall_ages.wrapping_add((cycles.wrapping_mul(cycles + 1) / 2) as u32)
    }
}

/// The lowest pc that lanes go to after an instruction, and which lanes.
fn lowest_after(issue: &Issue) -> (Pc, LaneMask) {
    let next = Pc(issue.pc.0 + 1);
    match issue.branch {
        None => (next, issue.lanes),
        Some(b) if b.fallen.is_empty() || (!b.taken.is_empty() && b.target < next) => (b.target, b.taken),
        Some(b) => (next, b.fallen),
    }
}

/// The first pc after the code that an instruction reveals.
fn end_of_code(issue: &Issue) -> Pc {
    let mut last = issue.pc;
    if let Some(branch) = issue.branch {
        last = last.max(branch.target);
        if branch.reconverge != Pc::RETURN {
            last = last.max(branch.reconverge);
        }
    }
    Pc(last.0 + 1)
}

impl Cawa {
    pub(crate) fn new(spec: &CawaSpec) -> Self {
        Cawa {
            spec: spec.clone(),
            live: SlotSet::default(),
            warps: vec![Warp::new(Cycle(0), 0); 64],
            end: Pc(0),
            last: None,
            stale_at: Cycle(0),
        }
    }

    fn refresh(&mut self, now: Cycle, ready: SlotSet) {
        // Recomputed every cycle: only ready warps matter.
        let slots = if self.spec.update_cycles <= 1 { ready } else { self.live };
        for slot in slots.iter() {
            let warp = &mut self.warps[slot.index()];
            warp.criticality = warp.criticality(&self.spec, self.end, now);
        }
        self.stale_at = now + self.spec.update_cycles;
    }
}

impl Policy for Cawa {
    fn pick(&mut self, now: Cycle, ready: SlotSet) -> Option<WarpSlot> {
        if let Some(last) = self.last.filter(|&last| self.spec.greedy && ready.contains(last)) {
            return Some(last);
        }
        if now >= self.stale_at {
            self.refresh(now, ready);
        }
        ready.iter().max_by(|a, b| {
            let (a, b) = (&self.warps[a.index()], &self.warps[b.index()]);
            a.criticality.total_cmp(&b.criticality).then(b.age.cmp(&a.age))
        })
    }

    fn started(&mut self, now: Cycle, slot: WarpSlot, age: u64) {
        self.live.insert(slot);
        self.warps[slot.index()] = Warp::new(now, age);
    }

    fn ended(&mut self, _now: Cycle, slot: WarpSlot) {
        self.live.remove(slot);
        self.last = self.last.filter(|&last| last != slot);
        if self.live.is_empty() {
            // The next warp may run another program.
            self.end = Pc(0);
        }
    }

    fn may_starve(&self) -> bool {
        // The stalls of a warp that is not chosen add up faster than those of the others.
        !self.spec.stall_term
    }

    fn issued(&mut self, now: Cycle, issue: &Issue) {
        self.last = Some(issue.slot);
        self.end = self.end.max(end_of_code(issue));
        self.warps[issue.slot.index()].issued(now, issue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::sched::BranchOutcome;
    use crate::time::sched::testing::{plain, slots, turns};

    const ALL: u64 = 0xffff_ffff;

    /// The formula as printed, computed in every cycle, without greed.
    const FORMULA: CawaSpec = CawaSpec {
        instruction_term: true,
        stall_term: true,
        stalls: Stalls::Cycles,
        update_cycles: 1,
        greedy: false,
    };

    fn cawa(spec: CawaSpec, warps: u8) -> Cawa {
        let mut policy = Cawa::new(&spec);
        for slot in 0..warps {
            policy.started(Cycle(0), WarpSlot(slot), slot as u64);
        }
        policy
    }

    fn branch(slot: u8, pc: u32, target: u32, reconverge: Pc, taken: u64, fallen: u64) -> Issue {
        let (taken, fallen) = (LaneMask(taken), LaneMask(fallen));
        let outcome = BranchOutcome { target: Pc(target), reconverge, taken, fallen };
        Issue { branch: Some(outcome), lanes: taken | fallen, ..plain(slot, pc) }
    }

    fn ahead(policy: &Cawa, slot: u8) -> u32 {
        policy.end.0 - policy.warps[slot as usize].at.0
    }

    fn criticality(policy: &Cawa, slot: u8, now: u64) -> f64 {
        policy.warps[slot as usize].criticality(&policy.spec, policy.end, Cycle(now))
    }

    /// `if (p) { 10 … 19 } else { 20 … 29 }`, then 30 … 39: the branch to the else path at 9.
    fn if_else(slot: u8, taken: u64, fallen: u64) -> Issue {
        branch(slot, 9, 20, Pc(30), taken, fallen)
    }

    #[test]
    fn the_formula_by_hand() {
        let mut policy = cawa(FORMULA, 1);
        // 40 instructions; issued at cycles 0, 1, 2, 3 and 9.
        policy.issued(Cycle(0), &branch(0, 0, 39, Pc::RETURN, 0, ALL));
        for (now, pc) in [(1, 1), (2, 2), (3, 3), (9, 4)] {
            policy.issued(Cycle(now), &plain(0, pc));
        }
        assert_eq!(ahead(&policy, 0), 35);
        // At cycle 10: 35 × 10/5 + (10 − 5).
        assert_eq!(criticality(&policy, 0, 10), 75.0);
        policy.spec.stall_term = false;
        assert_eq!(criticality(&policy, 0, 10), 70.0);
        policy.spec = CawaSpec { instruction_term: false, ..FORMULA };
        assert_eq!(criticality(&policy, 0, 10), 5.0);
    }

    #[test]
    fn long_stalls_count_more_by_their_ages() {
        let ages = CawaSpec { instruction_term: false, stalls: Stalls::Ages, ..FORMULA };
        let mut policy = cawa(ages, 1);
        for now in [0, 1, 4] {
            policy.issued(Cycle(now), &plain(0, now as u32));
        }
        // Gaps of 1 and 3 cycles, and one of 5 so far: 1 + (1 + 2 + 3) + (1 + 2 + 3 + 4 + 5).
        assert_eq!(criticality(&policy, 0, 9), 22.0);
    }

    #[test]
    fn two_instructions_in_one_cycle_count_as_one_issue_cycle() {
        let mut policy = cawa(FORMULA, 1);
        policy.issued(Cycle(0), &plain(0, 0));
        policy.issued(Cycle(0), &plain(0, 1));
        // Nothing known ahead; of 4 cycles it issued in one.
        assert_eq!(criticality(&policy, 0, 4), 3.0);
    }

    #[test]
    fn the_warp_on_the_longer_path_is_preferred() {
        let mut policy = cawa(FORMULA, 2);
        // Both have issued once. Warp 1 goes through a path that warp 0, the older one, skips.
        policy.issued(Cycle(0), &branch(0, 0, 30, Pc(30), ALL, 0));
        policy.issued(Cycle(1), &branch(1, 0, 30, Pc(30), 0, ALL));
        assert_eq!((ahead(&policy, 0), ahead(&policy, 1)), (1, 30));
        assert_eq!(policy.pick(Cycle(2), slots(&[0, 1])), Some(WarpSlot(1)));
        assert_eq!(policy.pick(Cycle(3), slots(&[0])), Some(WarpSlot(0)));
    }

    #[test]
    fn a_path_not_taken_is_not_ahead() {
        let mut policy = cawa(FORMULA, 2);
        policy.issued(Cycle(0), &branch(0, 5, 39, Pc::RETURN, 0, ALL));
        policy.issued(Cycle(1), &if_else(0, 0, ALL));
        assert_eq!(ahead(&policy, 0), 30);
        policy.issued(Cycle(2), &branch(0, 19, 30, Pc(30), ALL, 0));
        assert_eq!(ahead(&policy, 0), 10);
        policy.issued(Cycle(3), &if_else(1, ALL, 0));
        assert_eq!(ahead(&policy, 1), 20);
    }

    #[test]
    fn both_paths_of_a_divided_warp_are_ahead() {
        let mut policy = cawa(FORMULA, 2);
        policy.issued(Cycle(0), &branch(0, 5, 39, Pc::RETURN, 0, ALL));

        // The path at 20 runs first: the lanes at 10 still wait.
        policy.issued(Cycle(1), &if_else(0, 0xffff, 0xffff_0000));
        for pc in 20..30 {
            policy.issued(Cycle(2), &Issue { lanes: LaneMask(0xffff), ..plain(0, pc) });
            assert_eq!(ahead(&policy, 0), 30);
        }
        policy.issued(Cycle(3), &Issue { lanes: LaneMask(0xffff_0000), ..plain(0, 10) });
        assert_eq!(ahead(&policy, 0), 29);
        policy.issued(Cycle(4), &branch(0, 19, 30, Pc(30), 0xffff_0000, 0));
        policy.issued(Cycle(5), &plain(0, 30));
        assert_eq!(ahead(&policy, 0), 9);

        // The path at 10 runs first: the one at 20 comes after it.
        policy.issued(Cycle(1), &if_else(1, 0xffff, 0xffff_0000));
        policy.issued(Cycle(2), &branch(1, 19, 30, Pc(30), 0xffff_0000, 0));
        policy.issued(Cycle(3), &Issue { lanes: LaneMask(0xffff), ..plain(1, 20) });
        assert_eq!(ahead(&policy, 1), 19);
        policy.issued(Cycle(4), &plain(1, 30));
        assert_eq!(ahead(&policy, 1), 9);
    }

    #[test]
    fn lanes_that_leave_early_do_not_end_the_warp() {
        let mut policy = cawa(FORMULA, 1);
        policy.issued(Cycle(0), &branch(0, 0, 99, Pc::RETURN, 0xff, ALL & !0xff));
        policy.issued(Cycle(1), &Issue { lanes: LaneMask(0xff), ..plain(0, 99) });
        assert_eq!(ahead(&policy, 0), 99);
    }

    #[test]
    fn a_call_is_followed_and_left() {
        let mut policy = cawa(FORMULA, 1);
        policy.issued(Cycle(0), &plain(0, 5));
        policy.issued(Cycle(1), &plain(0, 80));
        policy.issued(Cycle(2), &plain(0, 6));
        assert_eq!(policy.warps[0].at, Pc(7));
    }

    #[test]
    fn an_iteration_of_a_loop_is_ahead_again() {
        let mut policy = cawa(FORMULA, 1);
        policy.issued(Cycle(0), &branch(0, 5, 39, Pc::RETURN, 0, ALL));
        policy.issued(Cycle(1), &branch(0, 19, 10, Pc(20), ALL, 0));
        assert_eq!(ahead(&policy, 0), 30);
        // Some lanes leave the loop; the others iterate once more.
        policy.issued(Cycle(2), &branch(0, 19, 10, Pc(20), 1, ALL & !1));
        assert_eq!(ahead(&policy, 0), 30);
        policy.issued(Cycle(3), &branch(0, 19, 10, Pc(20), 0, 1));
        assert_eq!(ahead(&policy, 0), 20);
    }

    #[test]
    fn a_spinning_warp_grows_more_critical_than_one_that_advances() {
        let mut policy = cawa(FORMULA, 2);
        policy.issued(Cycle(0), &branch(0, 0, 99, Pc::RETURN, 0, ALL));
        policy.issued(Cycle(1), &branch(1, 0, 99, Pc::RETURN, 0, ALL));
        // Warp 0 spins at 8 … 10, warp 1 advances by as many instructions.
        let mut before = 0.0;
        for iteration in 1..=20 {
            let (now, pc) = (iteration * 10 - 8, 1 + 3 * (iteration as u32 - 1));
            policy.issued(Cycle(now), &plain(0, 8));
            policy.issued(Cycle(now + 1), &plain(0, 9));
            policy.issued(Cycle(now + 2), &branch(0, 10, 8, Pc(11), ALL, 0));
            for step in 0..3 {
                policy.issued(Cycle(now + 3 + step), &plain(1, pc + step as u32));
            }
            assert_eq!((ahead(&policy, 0), ahead(&policy, 1)), (92, 96 - 3 * (iteration as u32 - 1)));
            let spinning = criticality(&policy, 0, now + 9);
            assert!(spinning > before, "iteration {iteration}: {spinning} after {before}");
            before = spinning;
        }
        assert!(before > criticality(&policy, 1, 201));
        assert_eq!(policy.pick(Cycle(201), slots(&[0, 1])), Some(WarpSlot(0)));
    }

    #[test]
    fn a_warp_that_is_passed_over_becomes_the_most_critical() {
        let mut policy = cawa(FORMULA, 2);
        assert_eq!(turns(&mut policy, 0, slots(&[0, 1]), 4), [0, 1, 0, 1]);
    }

    #[test]
    fn greed_stays_with_a_warp_until_it_stalls() {
        let mut policy = cawa(CawaSpec { greedy: true, ..FORMULA }, 2);
        assert_eq!(turns(&mut policy, 0, slots(&[0, 1]), 4), [0, 0, 0, 0]);
        assert_eq!(turns(&mut policy, 4, slots(&[1]), 1), [1]);
        assert_eq!(turns(&mut policy, 5, slots(&[0, 1]), 2), [1, 1]);
    }

    #[test]
    fn ties_go_to_the_older() {
        let mut policy = Cawa::new(&CawaSpec { instruction_term: false, stall_term: false, ..FORMULA });
        for (slot, age) in [(0, 7), (1, 5), (2, 6)] {
            policy.started(Cycle(0), WarpSlot(slot), age);
        }
        assert_eq!(turns(&mut policy, 0, slots(&[0, 1, 2]), 2), [1, 1]);
        assert_eq!(turns(&mut policy, 2, slots(&[0, 2]), 2), [2, 2]);
    }

    #[test]
    fn criticality_is_computed_anew_only_when_it_is_due() {
        let mut policy = cawa(CawaSpec { instruction_term: false, update_cycles: 10, ..FORMULA }, 2);
        // All stalls are equal at first, so the older warp stays ahead until the next computation.
        assert_eq!(turns(&mut policy, 0, slots(&[0, 1]), 11), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_slot_that_is_used_again_begins_anew() {
        let mut policy = cawa(FORMULA, 1);
        policy.issued(Cycle(0), &plain(0, 70));
        policy.ended(Cycle(100), WarpSlot(0));
        policy.started(Cycle(200), WarpSlot(0), 1);
        assert_eq!((policy.end, policy.last), (Pc(0), None));
        assert_eq!(criticality(&policy, 0, 203), 3.0);
    }
}
