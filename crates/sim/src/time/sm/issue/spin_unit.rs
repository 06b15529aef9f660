//! What an SM with BOWS has beside its schedulers: the detector of spinning warps, the delay limit, and the warps that
//! are backed off.

use std::sync::Arc;

use warploom_isa::{Inst, Op, Operand};

use crate::chip::Chip;
use crate::chip::spinning::{BowsSpec, SibSource};
use crate::exec::warp::Warp;
use crate::exec::warp::control::{Activation, Group};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::Issue;
use crate::time::sched::accuracy::{Branches, Encounters, Verdict};
use crate::time::sched::bows::BackOff;
use crate::time::sched::ddos::Ddos;
use crate::time::sched::limit::DelayLimiter;

#[derive(Clone, Debug)]
pub(crate) struct SpinUnit {
    /// The detector, unless spin-inducing branches are given.
    ddos: Option<Ddos>,
    limiter: DelayLimiter,
    live: SlotSet,
    pub encounters: Encounters,
    pub back_off: BackOff,
}

impl SpinUnit {
    /// The unit of an SM that begins at cycle `now`.
    pub(crate) fn new(chip: &Chip, spec: &BowsSpec, branches: &Arc<Branches>, now: Cycle) -> SpinUnit {
        let slots = chip.sm.max_warps as usize;
        let limiter = DelayLimiter::new(spec, now);
        SpinUnit {
            ddos: (spec.sib == SibSource::Ddos).then(|| Ddos::new(&chip.issue.ddos, slots)),
            back_off: BackOff::new(spec, limiter.cycles()),
            limiter,
            live: SlotSet::default(),
            encounters: Encounters::new(branches.clone()),
        }
    }

    /// Whether the unit finds spin-inducing branches itself.
    pub(crate) fn detects(&self) -> bool {
        self.ddos.is_some()
    }

    pub(crate) fn started(&mut self, now: Cycle, slot: WarpSlot) {
        self.live.insert(slot);
        self.back_off.started(now, slot);
        if let Some(ddos) = &mut self.ddos {
            ddos.started(slot);
        }
    }

    /// A warp has ended. After the last one the delay limit starts over.
    pub(crate) fn ended(&mut self, now: Cycle, slot: WarpSlot) {
        self.left(now, slot);
        if self.live.is_empty() {
            self.back_off.set_limit(self.limiter.cycles());
        }
    }

    /// A warp has left its slot. The delay limit in force stays until the limiter has the next one.
    pub(crate) fn left(&mut self, now: Cycle, slot: WarpSlot) {
        self.live.remove(slot);
        self.back_off.ended(slot);
        if let Some(ddos) = &mut self.ddos {
            ddos.ended(slot);
        }
        if self.live.is_empty() {
            self.limiter.emptied(now);
        }
    }

    /// A warp issues an instruction, which is about to execute on the lanes of `mask`. A warp that was backed off no
    /// longer is; one at a spin-inducing branch backs off. Returns whether the instruction is such a branch.
    pub(crate) fn issues<const N: usize>(
        &mut self,
        imms: &[u64],
        (warp, activation): (&mut Warp<N>, &Activation),
        (inst, issue): (&Inst, &Issue),
        (path, mask): (Group, LaneMask),
        now: Cycle,
    ) -> bool {
        let slot = issue.slot;
        if let (Op::Setp { .. }, Some(ddos)) = (inst.op, &mut self.ddos)
            && let Some(lane) = ddos.profiled(now, slot, path.mask)
            && mask.contains(lane)
        {
            let registers = warp.registers(activation);
            let value = |at: usize| match inst.src[at] {
                Operand::Imm64(id) => imms[id.index()] as u32,
                operand => registers.read32(operand)[lane],
            };
            ddos.compared(slot, issue.pc, [value(0), value(1)]);
        }
        let is_sib = self.branched(now, issue);
        if self.limiter.issued(now, is_sib) {
            self.back_off.set_limit(self.limiter.cycles());
        }
        self.back_off.issued(now, &Issue { is_sib, ..*issue });
        is_sib
    }

    /// A branch is executed. Returns whether it is spin-inducing.
    fn branched(&mut self, now: Cycle, issue: &Issue) -> bool {
        let Some(branch) = issue.branch else { return false };
        let (pc, taken) = (issue.pc, !branch.taken.is_empty());
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
