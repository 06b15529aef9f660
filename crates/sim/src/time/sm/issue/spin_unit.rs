//! What an SM with BOWS has beside its schedulers: the detector of spinning warps, and the delay limit. The backed-off
//! queues and pending-delay registers are the schedulers' own (`sched/bows.rs`).

use std::sync::Arc;

use warploom_isa::{Inst, Op};

use crate::chip::Chip;
use crate::chip::spinning::{BowsSpec, SibSource};
use crate::exec::warp::Warp;
use crate::exec::warp::control::{Activation, Group};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::probe::Probe;
use crate::time::sched::Issue;
use crate::time::sched::accuracy::{Branches, Encounters, Verdict};
use crate::time::sched::ddos::Ddos;
use crate::time::sched::limit::DelayLimiter;
use crate::time::sm::core::{Context, Event, Sm};

/// The unit.
#[derive(Clone, Debug)]
pub struct SpinUnit {
    /// If it finds spin-inducing branches itself.
    ddos: Option<Ddos>,
    limiter: DelayLimiter,
    live: SlotSet,
    /// What it has seen.
    pub encounters: Encounters,
    backed_off: SlotSet,
    /// By slot, since when.
    since: [u64; 64],
    /// What it did.
    pub stats: BackOffs,
}

/// How often warps backed off, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOffs {
    /// How often.
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

impl SpinUnit {
    /// The unit of an SM that begins at cycle `now`.
    pub fn new(chip: &Chip, spec: &BowsSpec, branches: &Arc<Branches>, now: u64) -> SpinUnit {
        let slots = chip.sm.max_warps as usize;
        let limiter = DelayLimiter::new(spec, now);
        SpinUnit {
            ddos: (spec.sib == SibSource::Ddos).then(|| Ddos::new(&chip.issue.ddos, slots)),
            stats: BackOffs { longest_limit: limiter.cycles(), ..BackOffs::default() },
            limiter,
            live: SlotSet::default(),
            encounters: Encounters::new(branches.clone()),
            backed_off: SlotSet::default(),
            since: [0; 64],
        }
    }

    /// Whether it finds spin-inducing branches itself.
    pub fn detects(&self) -> bool {
        self.ddos.is_some()
    }

    /// A warp begins.
    pub(crate) fn started(&mut self, now: u64, slot: WarpSlot) {
        self.live.insert(slot);
        if let Some(ddos) = &mut self.ddos {
            ddos.started(now, slot);
        }
    }

    /// A warp has ended. Returns whether it was the last.
    pub(crate) fn ended(&mut self, now: u64, slot: WarpSlot) -> bool {
        self.live.remove(slot);
        self.backed_off.remove(slot);
        if let Some(ddos) = &mut self.ddos {
            ddos.ended(now, slot);
        }
        if self.live.is_empty() {
            self.limiter.emptied(now);
        }
        self.live.is_empty()
    }

    /// A branch is executed. Returns whether it is spin-inducing.
    fn branched(&mut self, now: u64, issue: &Issue) -> bool {
        let Some(branch) = issue.branch else { return false };
        let (pc, taken) = (issue.pc, branch.taken != 0);
        let verdict = match &mut self.ddos {
            Some(_) if branch.target > pc => return false,
            Some(ddos) => {
                let confirmed = ddos.branched(issue.slot, pc, taken);
                Verdict { suspected: confirmed || ddos.table.holds(pc), confirmed }
            }
            None => {
                let given = self.encounters.branches().is_given(pc);
                Verdict { suspected: given, confirmed: given }
            }
        };
        self.encounters.executed(now, pc, taken, verdict);
        verdict.confirmed
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Looks at an instruction that is about to execute. Returns whether it is a spin-inducing branch.
    pub(crate) fn look_for_spin(
        unit: &mut SpinUnit,
        imms: &[u64],
        (warp, activation): (&mut Warp<N>, &Activation),
        (inst, issue): (&Inst, &Issue),
        (path, mask): (Group, u64),
        now: u64,
    ) -> bool {
        let slot = issue.slot;
        if unit.backed_off.contains(slot) {
            unit.backed_off.remove(slot);
            unit.stats.warp_cycles += now - unit.since[slot.index()];
        }
        if let (Op::Setp { .. }, Some(ddos)) = (inst.op, &mut unit.ddos)
            && let Some(lane) = ddos.profiled(now, slot, path.mask)
            && mask >> lane & 1 == 1
        {
            let registers = warp.registers(activation);
            let value = |at: usize| match inst.src[at] {
                warploom_isa::Operand::Imm64(id) => imms[id.index()] as u32,
                operand => registers.read32(operand)[lane],
            };
            ddos.compared(slot, issue.pc, [value(0), value(1)]);
        }
        unit.branched(now, issue)
    }

    /// After an instruction: the delay limit follows, and a warp that spins backs off. Returns whether it did.
    pub(crate) fn back_off(
        &mut self,
        context: &Context<'_>,
        scheduler: usize,
        issue: &Issue,
        now: u64,
    ) -> bool {
        let slot = issue.slot;
        let Some(unit) = &mut self.spin_unit else { return false };
        if !issue.is_sib {
            return false;
        }
        let Some(until) = self.schedulers[scheduler].policy.backed_off_until(slot) else { return false };
        unit.backed_off.insert(slot);
        unit.since[slot.index()] = now;
        unit.stats.count += 1;
        if until > now + 1 {
            let entry = &mut self.slots[slot.index()];
            entry.delayed_until = until;
            let life = entry.life;
            self.events.push(Cycle(until), Event::Wake { slot, life });
            self.refresh(context, slot, now + 1);
        }
        true
    }

    /// Counts an instruction for the adaptive limit, and tells the schedulers if it has changed.
    pub(crate) fn count_for_limit(&mut self, is_sib: bool, now: u64) {
        let Some(unit) = &mut self.spin_unit else { return };
        if unit.limiter.issued(now, is_sib) {
            self.tell_limit();
        }
    }

    /// A warp has ended.
    pub(crate) fn spin_ended(&mut self, slot: WarpSlot, now: u64) {
        let Some(unit) = &mut self.spin_unit else { return };
        if unit.ended(now, slot) {
            self.tell_limit();
        }
    }

    fn tell_limit(&mut self) {
        let Some(unit) = &mut self.spin_unit else { return };
        let cycles = unit.limiter.cycles();
        unit.stats.longest_limit = unit.stats.longest_limit.max(cycles);
        for scheduler in &mut self.schedulers {
            scheduler.policy.set_delay_limit(cycles);
        }
    }
}
