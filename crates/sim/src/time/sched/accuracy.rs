//! How well spin-inducing branches are detected: what each SM executed and confirmed, against the truth about the
//! kernel.
//!
//! The metrics are those of the BOWS paper's Section IV-B. A branch counts once for each SM on which some lane took
//! it. The truth is what the kernel's text says (`.pragma "warploom.sib"`), or else what the analysis of its loops
//! found. The branches of loops into which the machine itself expands atomics are left out: they wait, but no program
//! has them.

use std::sync::Arc;

use warploom_isa::{Kernel, Op, Operand, Pc};

use crate::chip::spinning::SibSource;
use crate::kit::cycle::Cycle;

/// A branch that may be spin-inducing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Branch {
    pc: Pc,
    /// Whether it is in truth spin-inducing.
    spins: bool,
}

/// The branches that detection is about, of one kernel or of several in one address space.
#[derive(Debug)]
pub struct Branches {
    branches: Vec<Branch>,
    /// By instruction, its index among the branches.
    numbers: Vec<Option<u16>>,
    /// By instruction, whether the kernel's text or its analysis names it as a spin-inducing branch.
    given: Vec<bool>,
}

impl Branches {
    /// Of kernels, each with the number of its first instruction. `source` says who names spin-inducing branches,
    /// unless the hardware detects them.
    pub fn new<'a>(kernels: impl Iterator<Item = (&'a Kernel, u32)>, source: SibSource) -> Branches {
        let mut all = Branches { branches: Vec::new(), numbers: Vec::new(), given: Vec::new() };
        for (kernel, start) in kernels {
            all.numbers.resize(start as usize, None);
            all.given.resize(start as usize, false);
            all.add(kernel, start, source);
        }
        all
    }

    fn add(&mut self, kernel: &Kernel, start: u32, source: SibSource) {
        let spinning = kernel.loops.iter().filter(|l| !l.of_atomic && l.spins_on.is_some());
        let analysed: Vec<Pc> = spinning.flat_map(|l| l.latches.iter().copied()).collect();
        let truth = if kernel.sibs.is_empty() { &analysed } else { &kernel.sibs };
        let named = match source {
            SibSource::Ddos => &[][..],
            SibSource::Annotated => &kernel.sibs,
            SibSource::Static => &analysed,
        };
        let is_backward = |pc: usize| {
            let inst = &kernel.code[pc];
            matches!((inst.op, inst.src[0]), (Op::Bra, Operand::Imm(target)) if target as usize <= pc)
        };
        for at in 0..kernel.code.len() {
            let pc = Pc(at as u32);
            let spins = truth.contains(&pc);
            let mut number = None;
            if (spins || is_backward(at)) && kernel.atomic_at(pc).is_none() {
                number = u16::try_from(self.branches.len()).ok();
                self.branches.push(Branch { pc: Pc(start + pc.0), spins });
            }
            self.numbers.push(number);
            self.given.push(named.contains(&pc));
        }
    }

    /// Whether a branch is named as spin-inducing.
    pub fn is_given(&self, pc: Pc) -> bool {
        self.given[pc.index()]
    }
}

/// What one SM has seen of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Encounter {
    /// The cycles in which it was first and last executed.
    met: Option<(Cycle, Cycle)>,
    taken: bool,
    suspected: bool,
    confirmed_at: Option<Cycle>,
}

/// What one SM has seen of all branches.
#[derive(Clone, Debug)]
pub struct Encounters {
    of: Arc<Branches>,
    seen: Vec<Encounter>,
}

/// What an SM knows of a branch when it executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// It is in the prediction table, or was named.
    pub suspected: bool,
    /// The SM takes it to be spin-inducing.
    pub confirmed: bool,
}

impl Encounters {
    pub fn new(of: Arc<Branches>) -> Encounters {
        Encounters { seen: vec![Encounter::default(); of.branches.len()], of }
    }

    /// The same of more branches: those of kernels that were added after the others.
    pub fn add(&mut self, of: Arc<Branches>) {
        self.seen.resize(of.branches.len(), Encounter::default());
        self.of = of;
    }

    pub fn branches(&self) -> &Branches {
        &self.of
    }

    /// A warp executes a branch.
    pub fn executed(&mut self, now: Cycle, pc: Pc, taken: bool, verdict: Verdict) {
        let Some(number) = self.of.numbers[pc.index()] else { return };
        let seen = &mut self.seen[usize::from(number)];
        let first = seen.met.map_or(now, |(first, _)| first);
        seen.met = Some((first, now));
        seen.taken |= taken;
        seen.suspected |= verdict.suspected;
        if verdict.confirmed {
            seen.confirmed_at.get_or_insert(now);
        }
    }
}

/// Detection in a launch, over all SMs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detection {
    /// Branches that some SM suspected.
    pub suspected: u64,
    /// Branches that some SM took to be spin-inducing.
    pub confirmed: u64,
    /// Branches that are in truth spin-inducing.
    pub spinning: Found,
    /// Branches that are not.
    pub others: Found,
}

/// Branches of one kind, each counted for every SM on which it was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Taken by some lane.
    pub met: u64,
    /// Of those, confirmed as spin-inducing.
    pub confirmed: u64,
    /// Sum over the confirmed ones of the time from the first execution to the confirmation, as a share of the time
    /// from the first execution to the last.
    pub phases: f64,
}

impl Found {
    /// The share that was confirmed: the true or the false spin detection rate. `None` without such branches.
    pub fn rate(&self) -> Option<f64> {
        (self.met > 0).then(|| self.confirmed as f64 / self.met as f64)
    }

    /// The average detection phase ratio. `None` if nothing was confirmed.
    pub fn phase_ratio(&self) -> Option<f64> {
        (self.confirmed > 0).then(|| self.phases / self.confirmed as f64)
    }

    /// Adds the counts of another launch.
    pub fn add(&mut self, other: &Found) {
        self.met += other.met;
        self.confirmed += other.confirmed;
        self.phases += other.phases;
    }
}

impl Detection {
    pub fn of<'a>(sms: impl Iterator<Item = &'a Encounters> + Clone) -> Detection {
        let mut detection = Detection::default();
        let Some(branches) = sms.clone().next().map(|seen| seen.of.clone()) else { return detection };
        for (number, branch) in branches.branches.iter().enumerate() {
            let seen = || sms.clone().map(|sm| &sm.seen[number]);
            detection.suspected += u64::from(seen().any(|seen| seen.suspected));
            detection.confirmed += u64::from(seen().any(|seen| seen.confirmed_at.is_some()));
            let found = if branch.spins { &mut detection.spinning } else { &mut detection.others };
            for seen in seen().filter(|seen| seen.taken) {
                found.met += 1;
                if let (Some(at), Some((first, last))) = (seen.confirmed_at, seen.met) {
                    found.confirmed += 1;
                    found.phases += (at - first) as f64 / (last - first).max(1) as f64;
                }
            }
        }
        detection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branches() -> Arc<Branches> {
        let branches = [(3, true), (5, false)].map(|(pc, spins)| Branch { pc: Pc(pc), spins }).to_vec();
        let numbers = vec![None, None, None, Some(0), None, Some(1)];
        Arc::new(Branches { branches, numbers, given: vec![false; 6] })
    }

    const NOTHING: Verdict = Verdict { suspected: false, confirmed: false };
    const SUSPECTED: Verdict = Verdict { suspected: true, confirmed: false };
    const CONFIRMED: Verdict = Verdict { suspected: true, confirmed: true };

    #[test]
    fn rates_are_over_branches_and_sms_that_took_them() {
        let of = branches();
        let mut sms = [0; 4].map(|_| Encounters::new(of.clone()));
        // Confirmed after 100 of 1000 cycles; the other branch is never suspected.
        for (now, verdict) in [(50, NOTHING), (150, CONFIRMED), (200, CONFIRMED), (1050, CONFIRMED)] {
            sms[0].executed(Cycle(now), Pc(3), true, verdict);
            sms[0].executed(Cycle(now), Pc(5), true, NOTHING);
        }
        // Suspected, never confirmed; the other branch is confirmed, by mistake, after half the time.
        for (now, other) in [(10, NOTHING), (20, CONFIRMED), (30, NOTHING)] {
            sms[1].executed(Cycle(now), Pc(3), true, SUSPECTED);
            sms[1].executed(Cycle(now), Pc(5), true, other);
        }
        // Executed, never taken; not a branch at all; SM 3 has no work.
        sms[2].executed(Cycle(7), Pc(3), false, NOTHING);
        sms[2].executed(Cycle(8), Pc(4), true, CONFIRMED);
        let found = Detection::of(sms.iter());
        assert_eq!((found.suspected, found.confirmed), (2, 2));
        assert_eq!(found.spinning, Found { met: 2, confirmed: 1, phases: 0.1 });
        assert_eq!(found.others, Found { met: 2, confirmed: 1, phases: 0.5 });
        assert_eq!((found.spinning.rate(), found.others.phase_ratio()), (Some(0.5), Some(0.5)));
        let none = Detection::of(std::iter::empty());
        assert_eq!((none.spinning.rate(), none.others.phase_ratio()), (None, None));
    }
}
