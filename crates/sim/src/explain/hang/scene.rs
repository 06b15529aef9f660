//! What every group of lanes does at the moment a launch is ended, put together from the machine's state.

use std::ops::Range;

use rustc_hash::FxHashMap;
use warploom_isa::{AtomOp, Cmp, Inst, Kernel, Op, Operand, Pc, SharedVar, Space, Ty};

use crate::exec::execute::Cta;
use crate::exec::launch::Launch;
use crate::exec::locks::holders::{LockTable, SharedLocks, Taker, shared_offset};
use crate::exec::locks::unit::LockUnit;
use crate::exec::memory::store::Memory;
use crate::exec::sync::mbarrier;
use crate::exec::warp::Warp;
use crate::exec::warp::control::{Activation, Group, Wait};
use crate::explain::hang::code::{bit_loads, exit_condition, plain_name, spin_loop};
use crate::explain::hang::{Until, Word};
use crate::kit::bits::lanes as each;
use crate::kit::ids::WarpSlot;
use crate::time::machine::LockPace;
use crate::time::sm::issue::slot::Slot;
use crate::time::sm::load_store::l1::L1;
use crate::time::sm::watch::{Polled, Watch};

/// The machine when a launch is ended.
pub(crate) struct Scene<'a, const N: usize> {
    pub launch: &'a Launch<'a>,
    pub memory: &'a Memory,
    /// Who took locks in global memory, where that is known.
    pub locks: Option<&'a LockTable>,
    /// CTAs on the chip.
    pub ctas: Vec<Seen<'a, N>>,
    /// CTAs of the grid that have not started.
    pub unstarted: u64,
    /// What the timed model knows besides.
    pub timed: Option<Timed<'a>>,
}

/// A timed machine when a launch is ended.
pub(crate) struct Timed<'a> {
    /// The cycle.
    pub now: u64,
    /// How tries at locks went lately.
    pub pace: LockPace,
    /// The warp scheduling policy.
    pub policy: &'a str,
    /// Whether spinning warps back off.
    pub bows: bool,
}

/// A CTA on the chip.
pub(crate) struct Seen<'a, const N: usize> {
    pub cta: &'a Cta,
    pub warps: &'a [Warp<N>],
    /// The lock bits of its SM, if the kernel uses them.
    pub lock_unit: Option<&'a LockUnit>,
    /// What the timed model knows besides.
    pub sm: Option<SeenSm<'a, N>>,
}

/// The SM of a CTA.
#[derive(Clone, Copy)]
pub(crate) struct SeenSm<'a, const N: usize> {
    pub l1: &'a L1,
    pub locks: &'a SharedLocks,
    pub watch: Option<&'a Watch<N>>,
    /// All its warp slots.
    pub slots: &'a [Slot],
    /// The slots of the CTA's warps.
    pub cta: &'a [Option<WarpSlot>],
}

/// Lanes of a warp that do the same.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Index of the CTA in the scene.
    pub cta: usize,
    /// The warp's number in the CTA.
    pub warp: usize,
    pub lanes: u64,
    pub pc: Pc,
    pub doing: Doing,
    /// The warp is watched, and its state still changes.
    pub changes: bool,
}

impl Node {
    /// What it polls.
    pub(crate) fn poll(&self) -> Option<&Poll> {
        match &self.doing {
            Doing::Poll(poll) => Some(poll),
            _ => None,
        }
    }
}

/// All lanes that have not ended.
pub(crate) struct Nodes {
    /// In the order of the scene's CTAs, and in each by warp.
    pub all: Vec<Node>,
    /// Where those of each CTA begin, and the end.
    starts: Vec<usize>,
    /// The index of each CTA by its number in the grid.
    numbers: FxHashMap<u64, usize>,
}

impl Nodes {
    /// The numbers of a CTA's nodes.
    pub(crate) fn of_cta(&self, cta: usize) -> Range<usize> {
        self.starts[cta]..self.starts[cta + 1]
    }

    /// The first node with one of the lanes.
    pub(crate) fn with_lanes(&self, cta: usize, warp: usize, lanes: u64) -> Option<usize> {
        self.of_cta(cta).find(|&at| self.all[at].warp == warp && self.all[at].lanes & lanes != 0)
    }

    /// The CTA of a thread that took a lock, if it is on the chip.
    pub(crate) fn cta_of(&self, taker: Taker) -> Option<usize> {
        self.numbers.get(&taker.warp.cta).copied()
    }

    /// The node of a thread that took a lock, unless it has ended.
    pub(crate) fn holder(&self, taker: Taker) -> Option<usize> {
        self.with_lanes(self.cta_of(taker)?, taker.warp.warp as usize, 1 << taker.lane)
    }
}

/// What lanes do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Wait at a named barrier.
    Barrier(u32),
    /// Wait where paths meet, for these lanes.
    Meet(u64),
    /// Wait on the other side of a branch until these lanes come to the place.
    Turn { after: u64, meet: Pc },
    /// Wait at an instruction that these lanes must execute too.
    Lanes(u64),
    /// Read a word again and again.
    Poll(Poll),
    /// Ask an mbarrier again and again.
    Mbarrier { pc: Pc, word: Word, pending: u64, expected: u64, bytes: i64 },
    /// Go round for ever, waiting for nothing that is known.
    Loop,
    /// Run.
    Run,
}

/// A word that lanes read in a spin loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    /// The load or atomic.
    pub pc: Pc,
    pub word: Word,
    /// What they see.
    pub seen: u64,
    /// What memory holds.
    pub held: u64,
    pub until: Until,
    /// Who last took it, if it is a lock.
    pub taker: Option<Taker>,
    /// They see an old copy.
    pub stale: bool,
    /// They read it with an atomic, as locks are.
    pub atomic: bool,
    /// If it is a lock bit: the other word for which it was taken.
    pub alias: Option<Word>,
}

impl<const N: usize> Scene<'_, N> {
    pub(crate) fn kernel(&self) -> &Kernel {
        self.launch.kernel
    }

    /// Whether a node's warp sleeps in the queues of locks.
    pub(crate) fn is_blocked(&self, node: &Node) -> bool {
        self.ctas[node.cta].slot(node.warp).is_some_and(|slot| slot.is_blocked())
    }

    /// Every lane that has not ended, in the order of CTAs and warps.
    pub(crate) fn nodes(&self) -> Nodes {
        let mut nodes = Vec::new();
        let mut starts = Vec::new();
        for (at, seen) in self.ctas.iter().enumerate() {
            starts.push(nodes.len());
            for (number, warp) in seen.warps.iter().enumerate().filter(|(_, w)| !w.is_done()) {
                let watched = seen.watched(number);
                for (group, activation, wait) in warp.control.activated_paths() {
                    let node = |lanes: u64, doing: Doing| Node {
                        cta: at,
                        warp: number,
                        lanes,
                        pc: group.pc,
                        changes: wait.is_none() && watched.is_some_and(|(repeats, _)| !repeats),
                        doing,
                    };
                    let waits = |doing: Doing| vec![node(group.mask, doing)];
                    nodes.extend(match wait {
                        Some(Wait::Barrier) => {
                            let id = seen.cta.barriers.waiting_at(warp.id, group.mask);
                            waits(Doing::Barrier(id.unwrap_or_default()))
                        }
                        Some(Wait::Meet(lanes)) => {
                            let polls = self.behind_atomic(seen, number, &activation, &group);
                            match polls {
                                Some(polls) => polls.into_iter().map(|(l, doing)| node(l, doing)).collect(),
                                None => waits(Doing::Meet(lanes)),
                            }
                        }
                        Some(Wait::Turn { after, meet }) => waits(Doing::Turn { after, meet }),
                        Some(Wait::Lanes { members, anywhere }) => {
                            let same = Some(Wait::Lanes { members, anywhere });
                            let paths = warp.control.paths();
                            let come =
                                paths.iter().filter(|(g, w)| *w == same && (anywhere || g.pc == group.pc));
                            let come = come.fold(0, |mask, (g, _)| mask | g.mask);
                            waits(Doing::Lanes(members & warp.live & !come))
                        }
                        None => {
                            let polls = self.polls(seen, number, &activation, group.pc, group.mask);
                            let left = polls.iter().fold(group.mask, |left, (lanes, _)| left & !lanes);
                            let mut nodes: Vec<Node> =
                                polls.into_iter().map(|(lanes, doing)| node(lanes, doing)).collect();
                            if left != 0 {
                                let goes_round = watched.is_some_and(|(repeats, _)| repeats);
                                nodes.push(node(left, if goes_round { Doing::Loop } else { Doing::Run }));
                            }
                            nodes
                        }
                    });
                }
            }
        }
        starts.push(nodes.len());
        let numbers = self.ctas.iter().enumerate().map(|(at, seen)| (seen.cta.number, at)).collect();
        Nodes { all: nodes, starts, numbers }
    }

    /// Lanes whose atomic is done wait for the others of their warp behind its loop, in each turn of a spin: what they all
    /// wait for in the spin.
    fn behind_atomic(
        &self,
        seen: &Seen<'_, N>,
        warp: usize,
        activation: &Activation,
        group: &Group,
    ) -> Option<Vec<(u64, Doing)>> {
        self.kernel().atomic_at(Pc(group.pc.0.checked_sub(1)?))?;
        let polls = self.polls(seen, warp, activation, group.pc, group.mask);
        (polls.iter().fold(0, |all, (lanes, _)| all | lanes) == group.mask).then_some(polls)
    }

    /// The lanes of a running path that wait in a spin loop, by what they wait for.
    fn polls(
        &self,
        seen: &Seen<'_, N>,
        warp: usize,
        activation: &Activation,
        pc: Pc,
        mask: u64,
    ) -> Vec<(u64, Doing)> {
        let kernel = self.kernel();
        let registers_here = (&seen.warps[warp], activation);
        // An atomic's own loop waits only if its bit is not just another atomic's.
        if let Some(atomic) = kernel.atomic_at(pc) {
            let waits = self.bits(seen, warp, Some(registers_here), std::iter::once(atomic.load), mask);
            if !waits.is_empty() {
                return waits;
            }
        }
        let from = activation.caller.map(|caller| Pc(caller.resume.0 - 1));
        // Lanes in a function that the loop calls are in the loop, but its registers are out of reach.
        let (spin, own) = match (spin_loop(kernel, pc), from.and_then(|pc| spin_loop(kernel, pc))) {
            (Some(spin), _) => (spin, true),
            (None, Some(spin)) => (spin, false),
            (None, None) => return Vec::new(),
        };
        let Some(poll) = spin.spins_on else { return Vec::new() };
        let inst = &kernel.code[poll.index()];
        let registers = own.then_some((&seen.warps[warp], activation));
        if let Op::Mbarrier(_, wide) = inst.op {
            let asks = || self.mbarrier(seen, registers?, poll, wide, mask);
            return asks().into_iter().collect();
        }
        let (access, compared) = match (inst.op, kernel.atomic_at(poll)) {
            // The comparison of a `cas` follows its load.
            (Op::LdLock(access), Some(atomic)) => {
                let compared = kernel.code[poll.index() + 1].src[1];
                (access, (atomic.op == AtomOp::Cas).then_some(compared))
            }
            (Op::LdLock(_), None) => return self.bits(seen, warp, registers, bit_loads(kernel, spin), mask),
            _ => match inst.op {
                Op::Ld { access, .. } => (access, None),
                Op::Atom(op, access) => (access, (op == AtomOp::Cas).then_some(inst.src[2])),
                _ => return Vec::new(),
            },
        };
        let value = |operand: Operand, ty: Ty, lane: usize| -> Option<u64> {
            let (warp, activation) = match operand {
                Operand::Reg(_) => registers?,
                _ => (&seen.warps[warp], activation),
            };
            Some(warp.value(activation, operand, ty.is_wide(), &kernel.imms)[lane])
        };
        let record = match seen.watched(warp) {
            // A watched warp that polls has been seen to.
            Some((_, polls)) => match polls.iter().find(|p| p.pc == poll) {
                Some(record) => Some(record),
                None => return Vec::new(),
            },
            None => None,
        };
        let condition = exit_condition(kernel, spin, poll);
        let ty = access.ty;
        let mut found: Vec<(u64, Poll)> = Vec::new();
        for lane in each(mask) {
            let place = match record {
                Some(record) => address_of(kernel, record, lane),
                None => registers
                    .and_then(|at| from_registers(kernel, at, inst, access.wide_address, access.space, lane)),
            };
            let Some((shared, address)) = place else { continue };
            let Some(held) = self.held(seen, shared, address, ty.bytes()) else { continue };
            let keep = |value: u64| value & (u64::MAX >> (64 - ty.bits().min(64)));
            let until = match (compared, condition) {
                (Some(operand), _) => value(operand, ty, lane).map(|v| Until::Is(Cmp::Eq, keep(v))),
                (None, Some((cmp, operand))) => value(operand, ty, lane).map(|v| Until::Is(cmp, keep(v))),
                (None, None) => None,
            };
            let until = until.unwrap_or(Until::Changes);
            let copy = seen.sm.filter(|_| !shared && matches!(inst.op, Op::Ld { .. }));
            let copy = copy.and_then(|sm| sm.l1.peek(address, ty.bytes()));
            let stale = copy.is_some_and(|copy| copy != held);
            let look = match record {
                Some(record) if !stale => keep(record.values[lane]),
                _ => copy.unwrap_or(held),
            };
            if until.is_met(look, ty) {
                continue;
            }
            let taker = match (shared, seen.sm, self.locks) {
                (true, Some(sm), _) => sm.locks.taker((seen.cta.number, address)),
                (false, _, Some(locks)) => locks.taker(address),
                _ => None,
            };
            let word = self.word(shared, address);
            let atomic = matches!(inst.op, Op::Atom(..) | Op::LdLock(_));
            let poll = Poll { pc: poll, word, seen: look, held, until, taker, stale, atomic, alias: None };
            match found.iter_mut().find(|(_, known)| *known == poll) {
                Some((lanes, _)) => *lanes |= 1 << lane,
                None => found.push((1 << lane, poll)),
            }
        }
        found.into_iter().map(|(lanes, poll)| (lanes, Doing::Poll(poll))).collect()
    }

    /// The lanes that wait for a lock bit, tried by one of the loads, that somebody has who does not free it in a moment.
    fn bits(
        &self,
        seen: &Seen<'_, N>,
        warp: usize,
        registers: Option<(&Warp<N>, &Activation)>,
        loads: impl Iterator<Item = Pc>,
        mask: u64,
    ) -> Vec<(u64, Doing)> {
        let kernel = self.kernel();
        let Some(unit) = seen.lock_unit else { return Vec::new() };
        let mut found: Vec<(u64, Poll)> = Vec::new();
        let mut left = mask;
        for pc in loads {
            let inst = &kernel.code[pc.index()];
            let Op::LdLock(access) = inst.op else { continue };
            let record = seen.watched(warp).map(|(_, polls)| polls.iter().find(|p| p.pc == pc));
            for lane in each(left) {
                let place = match record {
                    Some(record) => record.and_then(|record| address_of(kernel, record, lane)),
                    None => registers.and_then(|at| {
                        from_registers(kernel, at, inst, access.wide_address, Space::Shared, lane)
                    }),
                };
                let Some((_, address)) = place else { continue };
                let bit = unit.bit(seen.cta.shared.base.wrapping_add(address as u32));
                let Some(holder) = unit.holder(bit).filter(|holder| !holder.in_atomic) else { continue };
                let own = self.word(true, address);
                let other = self.word(true, holder.word.into());
                let poll = Poll {
                    pc,
                    seen: 0,
                    held: 0,
                    until: Until::Free(bit),
                    taker: Some(holder.taker),
                    stale: false,
                    atomic: true,
                    alias: (own != other || holder.taker.warp.cta != seen.cta.number).then_some(other),
                    word: own,
                };
                left &= !(1 << lane);
                match found.iter_mut().find(|(_, known)| *known == poll) {
                    Some((lanes, _)) => *lanes |= 1 << lane,
                    None => found.push((1 << lane, poll)),
                }
            }
        }
        found.into_iter().map(|(lanes, poll)| (lanes, Doing::Poll(poll))).collect()
    }

    fn mbarrier(
        &self,
        seen: &Seen<'_, N>,
        registers: (&Warp<N>, &Activation),
        pc: Pc,
        wide: bool,
        mask: u64,
    ) -> Option<(u64, Doing)> {
        let kernel = self.kernel();
        let lane = mask.trailing_zeros() as usize;
        let inst = &kernel.code[pc.index()];
        let (_, address) = from_registers(kernel, registers, inst, wide, Space::Shared, lane)?;
        let (pending, expected, bytes) = mbarrier::progress(self.held(seen, true, address, 8)?)?;
        Some((mask, Doing::Mbarrier { pc, word: self.word(true, address), pending, expected, bytes }))
    }

    /// What memory holds.
    fn held(&self, seen: &Seen<'_, N>, shared: bool, address: u64, bytes: u32) -> Option<u64> {
        let bytes = bytes as usize;
        let data = if shared {
            seen.cta.shared.bytes.get(address as usize..address as usize + bytes)?
        } else {
            self.memory.read(address, bytes)?
        };
        Some(data.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64))
    }

    fn word(&self, shared: bool, address: u64) -> Word {
        if shared {
            return shared_word(self.kernel(), address);
        }
        let (name, offset) = self.memory.name(address).unwrap_or(("", address));
        Word { name: plain_name(name).to_string(), offset, shared }
    }
}

/// A word of shared memory by the name of its variable.
pub(crate) fn shared_word(kernel: &Kernel, address: u64) -> Word {
    let variables = || kernel.shared.iter();
    let holds = |v: &&SharedVar| address.wrapping_sub(v.offset as u64) < v.bytes.max(1) as u64;
    let dynamic = |v: &&SharedVar| v.bytes == 0 && address >= v.offset as u64;
    let variable = variables().find(holds).or_else(|| variables().find(dynamic));
    let (name, offset) = variable.map_or(("", address), |v| (v.name.as_str(), address - v.offset as u64));
    Word { name: plain_name(name).to_string(), offset, shared: true }
}

impl<'a, const N: usize> Seen<'a, N> {
    /// The pipeline's part of a warp.
    pub(crate) fn slot(&self, warp: usize) -> Option<&'a Slot> {
        self.sm.as_ref().and_then(|sm| Some(&sm.slots[sm.cta[warp]?.index()]))
    }

    /// If the warp is watched: whether it is known to repeat itself, and what it polled. One that sleeps does not poll.
    pub(crate) fn watched(&self, warp: usize) -> Option<(bool, &'a [Polled<N>])> {
        let sm = self.sm.as_ref().filter(|_| self.slot(warp).is_none_or(|slot| !slot.is_blocked()))?;
        let slot = sm.cta[warp]?;
        sm.watch.map(|watch| (watch.repeats(slot), watch.polls(slot)))
    }
}

/// Where a lane last polled: in shared memory or not, and the address.
fn address_of<const N: usize>(kernel: &Kernel, record: &Polled<N>, lane: usize) -> Option<(bool, u64)> {
    let (shared, address) = (record.shared >> lane & 1 == 1, record.addresses[lane]);
    let offset = if shared { shared_offset(address, kernel.windows.shared) } else { address };
    (record.mask >> lane & 1 == 1).then_some((shared, offset))
}

/// Where an instruction would read now: in shared memory or not, and the address.
fn from_registers<const N: usize>(
    kernel: &Kernel,
    (warp, activation): (&Warp<N>, &Activation),
    inst: &Inst,
    wide: bool,
    space: Space,
    lane: usize,
) -> Option<(bool, u64)> {
    let offset = match inst.src[1] {
        Operand::Imm(offset) => offset as i32 as i64 as u64,
        _ => 0,
    };
    let address = warp.value(activation, inst.src[0], wide, &kernel.imms)[lane].wrapping_add(offset);
    match (space, kernel.windows.space_of(address)) {
        (Space::Shared, _) => Some((true, shared_offset(address, kernel.windows.shared))),
        (Space::Generic, Space::Shared) => Some((true, address - kernel.windows.shared)),
        (Space::Global, _) | (Space::Generic, Space::Global) => Some((false, address)),
        _ => None,
    }
}
