//! What lanes poll: the words, the values that they see there, what would end the wait, and who holds it. Start at
//! [`Scene::polls`].

use warploom_isa::{AtomOp, Cmp, Inst, Kernel, Loop, MbarrierOp, Op, Operand, Pc, Space, Ty, Value};

use crate::exec::locks::holders::{Share, Taker, shared_offset};
use crate::exec::locks::polled::Polled;
use crate::exec::sync::mbarrier;
use crate::exec::warp::Warp;
use crate::exec::warp::control::Activation;
use crate::explain::hang::arithmetic::Read;
use crate::explain::hang::code::{as_constant, bit_loads, contains, last_of, spin_loops, whole};
use crate::explain::hang::condition::{self, Condition};
use crate::explain::hang::future::{Target, follows_pointers};
use crate::explain::hang::scene::{Doing, Scene, Seen};
use crate::explain::hang::words::signed;
use crate::explain::hang::{Phase, Until, Word};
use crate::kit::lane_mask::LaneMask;

/// A word that lanes poll in a spin loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Poll {
    /// The load or atomic.
    pub(super) pc: Pc,
    pub(super) word: Word,
    pub(super) target: Target,
    /// The value that the lanes see.
    pub(super) seen: u64,
    /// The value in memory.
    pub(super) held: u64,
    pub(super) until: Until,
    /// If more is compared than the word as it is: the condition and the values in it.
    pub(super) condition: Option<String>,
    /// The thread that took it, if it is a lock.
    pub(super) taker: Option<Taker>,
    /// Threads that took of it before, and have not given back either.
    pub(super) other_takers: Vec<Taker>,
    /// The taker did not wait for it, but changed it by this much. The wait would end without the change.
    pub(super) changed_by: Option<i64>,
    /// If it was a lock, but is not taken: the thread that wrote it last.
    pub(super) writer: Option<Taker>,
    /// The lanes see an old copy in their L1.
    pub(super) stale: bool,
    /// The lanes poll with an atomic, as for a lock.
    pub(super) atomic: bool,
    /// For a lock bit: the other word for which it was taken.
    pub(super) alias: Option<Word>,
}

impl Poll {
    /// The thread that took it as a lock.
    pub(super) fn lock_taker(&self) -> Option<Taker> {
        self.taker.filter(|_| self.changed_by.is_none())
    }
}

/// A word that a lane reads with an instruction.
#[derive(Clone, Copy)]
pub(super) struct Looked {
    pub(super) pc: Pc,
    /// Whether it is in shared memory, and the address.
    pub(super) place: (bool, u64),
    pub(super) bytes: u32,
    /// The value that the lane sees.
    seen: u64,
    /// The value in memory.
    pub(super) held: u64,
    stale: bool,
}

impl Looked {
    /// The place of another element of the same vector.
    fn element(&self, number: u32) -> (bool, u64) {
        (self.place.0, self.place.1 + u64::from(number * self.bytes))
    }
}

impl<const N: usize> Scene<'_, N> {
    /// The lanes of a running path that wait in a spin loop, by what they wait for.
    pub(super) fn polls(
        &self,
        seen: &Seen<'_, N>,
        warp: usize,
        activation: &Activation,
        pc: Pc,
        mask: LaneMask,
    ) -> Vec<(LaneMask, Doing)> {
        let kernel = self.kernel();
        let registers_here = (&seen.warps[warp], activation);
        // An atomic's own loop waits only if its bit is held by something other than an atomic.
        if let Some(atomic) = kernel.atomic_at(pc) {
            let waits = self.bits(seen, warp, Some(registers_here), std::iter::once(atomic.load), mask);
            if !waits.is_empty() {
                return waits;
            }
        }
        let from = activation.caller.map(|caller| Pc(caller.resume.0 - 1));
        // Lanes in a function called from the loop are in the loop too, but its registers cannot be read from there.
        let (spins, own) = match spin_loops(kernel, pc) {
            spins if !spins.is_empty() => (spins, true),
            _ => (from.map_or(Vec::new(), |pc| spin_loops(kernel, pc)), false),
        };
        let registers = own.then_some((&seen.warps[warp], activation));
        // A loop that would end waits for nothing; the one around it may.
        let mut polls =
            spins.into_iter().map(|spin| self.polls_of(seen, (warp, activation), registers, spin, mask));
        polls.find(|polls| !polls.is_empty()).unwrap_or_default()
    }

    /// The lanes that wait in one spin loop.
    fn polls_of(
        &self,
        seen: &Seen<'_, N>,
        (warp, activation): (usize, &Activation),
        registers: Option<(&Warp<N>, &Activation)>,
        spin: &Loop,
        mask: LaneMask,
    ) -> Vec<(LaneMask, Doing)> {
        let kernel = self.kernel();
        let Some(poll) = spin.spins_on else { return Vec::new() };
        let inst = &kernel.code[poll.index()];
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
        let whole = whole(kernel, spin);
        let compared = compared.map(|operand| as_constant(kernel, spin, poll, operand));
        let value = |operand: Operand, ty: Ty, lane: usize| -> Option<u64> {
            let (warp, activation) = match operand {
                Operand::Reg(_) => registers?,
                _ => (&seen.warps[warp], activation),
            };
            Some(warp.value(activation, operand, ty.is_wide(), &kernel.imms)[lane])
        };
        let record = match seen.watched(warp) {
            // If a watched warp polls here, the watch has recorded it.
            Some((_, polls)) => match polls.iter().find(|p| p.pc == poll) {
                Some(record) => Some(record),
                None => return Vec::new(),
            },
            None => None,
        };
        let ty = access.ty;
        let mut found: Vec<(LaneMask, Poll)> = Vec::new();
        for lane in mask.lanes() {
            let place = match record {
                Some(record) => address_of(kernel, record, lane),
                None => registers
                    .and_then(|at| from_registers(kernel, at, inst, access.wide_address, access.space, lane)),
            };
            let Some(place) = place else { continue };
            let recorded = record.map(|record| record.values[lane]);
            let Some(mut looked) = self.looked(seen, poll, place, ty, recorded) else { continue };
            let keep = |value: u64| value & (u64::MAX >> (64 - ty.bits().min(64)));
            let polled = looked;
            let reads = |(pc, element): Read| match (registers, element) {
                (_, 0) if pc == poll => Some(polled),
                _ if pc == poll => self.looked(seen, pc, polled.element(element), ty, None),
                (Some(at), _) => self.reads(seen, at, &whole, (pc, element), lane),
                (None, _) => None,
            };
            // What ends the loop, if one of its words has another value.
            let condition_with = |other: Option<((bool, u64), u64)>| {
                let words = |read: Read| {
                    let it = reads(read)?;
                    let value =
                        other.filter(|(place, _)| *place == it.place).map_or(it.seen, |(_, value)| value);
                    Some((self.word(it.place.0, it.place.1), value))
                };
                let constant =
                    |operand: Operand, wide: bool| value(operand, if wide { Ty::B64 } else { Ty::B32 }, lane);
                let lane = condition::Lane { value: &constant, word: &words };
                let of = |l: &Loop| condition::condition(kernel, l, poll, &lane);
                of(&whole).or_else(|| of(spin))
            };
            let (until, condition, bits) = match compared {
                Some(operand) => (value(operand, ty, lane).map(|v| Until::Is(Cmp::Eq, keep(v))), None, None),
                None => match condition_with(None) {
                    Some(Condition::Plain(cmp, value)) => (Some(Until::Is(cmp, keep(value))), None, None),
                    Some(Condition::Derived(derived)) => {
                        looked = derived.lacks.and_then(reads).unwrap_or(looked);
                        (None, Some(derived.text), derived.bits)
                    }
                    Some(Condition::Met) => continue,
                    None => (None, None, None),
                },
            };
            let is_known = until.is_some() || condition.is_some();
            let until = until.unwrap_or(Until::Changes);
            if until.is_met(looked.seen, ty) {
                continue;
            }
            let place = looked.place;
            let ends_with = |value: u64| match until {
                Until::Is(..) => until.is_met(keep(value), ty),
                _ => matches!(condition_with(Some((place, value))), Some(Condition::Met)),
            };
            let ends_with = is_known.then_some(&ends_with as &dyn Fn(u64) -> bool);
            let poll = self.poll(seen, looked, Wanted { until, condition, bits, ends_with });
            match found.iter_mut().find(|(_, known)| *known == poll) {
                Some((lanes, _)) => *lanes |= LaneMask::of(lane),
                None => found.push((LaneMask::of(lane), poll)),
            }
        }
        found.into_iter().map(|(lanes, poll)| (lanes, Doing::Poll(poll))).collect()
    }

    fn poll(&self, seen: &Seen<'_, N>, looked: Looked, wanted: Wanted<'_>) -> Poll {
        let Looked { pc, place: (shared, address), bytes, seen: value, held, stale } = looked;
        let place = (shared.then_some(seen.cta.number), address);
        let writer = self.last_writer(place);
        let mut takers = takers(self.shares(place), &wanted, held, bytes);
        let last = takers.pop();
        let changed_by = last.filter(|share| !share.waited).map(|share| signed(share.net, bytes));
        let Wanted { until, condition, .. } = wanted;
        Poll {
            pc,
            word: self.word(shared, address),
            target: Target { shared, address, bytes },
            seen: value,
            held,
            until,
            condition,
            taker: last.map(|share| share.taker),
            other_takers: takers.into_iter().map(|share| share.taker).collect(),
            changed_by,
            writer,
            stale,
            atomic: matches!(self.kernel().code[pc.index()].op, Op::Atom(..) | Op::LdLock(_)),
            alias: None,
        }
    }

    /// What lanes read again and again in a loop that repeats itself, but is not known to poll: the loop may look at it
    /// in a function that it calls.
    pub(super) fn reads_again(
        &self,
        seen: &Seen<'_, N>,
        warp: usize,
        mask: LaneMask,
        ways_out: &[bool],
        pc: Pc,
    ) -> Vec<(LaneMask, Doing)> {
        let kernel = self.kernel();
        let (_, polls) = seen.watched(warp).unwrap_or_default();
        let mut found: Vec<(LaneMask, Poll)> = Vec::new();
        let is_poll = |record: &&Polled<N>| ways_out[pc.index()] && !follows_pointers(kernel, record.pc);
        for record in polls.iter().filter(is_poll) {
            let (Op::Ld { access, .. } | Op::Atom(_, access)) = kernel.code[record.pc.index()].op else {
                continue;
            };
            let left = found.iter().fold(mask, |left, (lanes, _)| left & !*lanes);
            for lane in left.lanes() {
                let place = address_of(kernel, record, lane);
                let looked = place.and_then(|place| {
                    self.looked(seen, record.pc, place, access.ty, Some(record.values[lane]))
                });
                let Some(looked) = looked else { continue };
                let poll = self.poll(seen, looked, Wanted::default());
                match found.iter_mut().find(|(_, known)| *known == poll) {
                    Some((lanes, _)) => *lanes |= LaneMask::of(lane),
                    None => found.push((LaneMask::of(lane), poll)),
                }
            }
        }
        found.into_iter().map(|(lanes, poll)| (lanes, Doing::Poll(poll))).collect()
    }

    /// What the lanes of a watched warp last read with atomics, and with loads that see what others write.
    pub(super) fn read_words(&self, seen: &Seen<'_, N>, warp: usize) -> Vec<Looked> {
        let kernel = self.kernel();
        let (_, polls) = seen.watched(warp).unwrap_or_default();
        let mut words = Vec::new();
        for record in polls {
            let (Op::Ld { access, .. } | Op::Atom(_, access)) = kernel.code[record.pc.index()].op else {
                continue;
            };
            let places = record.mask.lanes().filter_map(|lane| address_of(kernel, record, lane));
            words.extend(places.filter_map(|place| self.looked(seen, record.pc, place, access.ty, None)));
        }
        words
    }

    /// The lanes that wait for a lock bit that one of the `loads` tries to take and that a thread holds. Bits held by
    /// an atomic do not count: they are freed at once.
    fn bits(
        &self,
        seen: &Seen<'_, N>,
        warp: usize,
        registers: Option<(&Warp<N>, &Activation)>,
        loads: impl Iterator<Item = Pc>,
        mask: LaneMask,
    ) -> Vec<(LaneMask, Doing)> {
        let kernel = self.kernel();
        let Some(unit) = seen.lock_unit else { return Vec::new() };
        let mut found: Vec<(LaneMask, Poll)> = Vec::new();
        let mut left = mask;
        for pc in loads {
            let inst = &kernel.code[pc.index()];
            let Op::LdLock(access) = inst.op else { continue };
            let record = seen.watched(warp).map(|(_, polls)| polls.iter().find(|p| p.pc == pc));
            for lane in left.lanes() {
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
                    condition: None,
                    writer: None,
                    target: Target { shared: true, address, bytes: 4 },
                    taker: Some(holder.taker),
                    other_takers: Vec::new(),
                    changed_by: None,
                    stale: false,
                    atomic: true,
                    alias: (own != other || holder.taker.warp.cta != seen.cta.number).then_some(other),
                    word: own,
                };
                left &= !LaneMask::of(lane);
                match found.iter_mut().find(|(_, known)| *known == poll) {
                    Some((lanes, _)) => *lanes |= LaneMask::of(lane),
                    None => found.push((LaneMask::of(lane), poll)),
                }
            }
        }
        found.into_iter().map(|(lanes, poll)| (lanes, Doing::Poll(poll))).collect()
    }

    /// What a lane finds at a place; `recorded` is what it found there when it last looked, if that is known.
    fn looked(
        &self,
        seen: &Seen<'_, N>,
        pc: Pc,
        place: (bool, u64),
        ty: Ty,
        recorded: Option<u64>,
    ) -> Option<Looked> {
        let (shared, address) = place;
        let held = self.held(seen, shared, address, ty.bytes())?;
        let is_load = matches!(self.kernel().code[pc.index()].op, Op::Ld { .. });
        let cached = seen.sm.filter(|_| !shared && is_load);
        let copy = cached.and_then(|sm| sm.l1.peek(address, ty.bytes()));
        let stale = copy.is_some_and(|copy| copy != held);
        let recorded =
            recorded.filter(|_| !stale).map(|value| value & (u64::MAX >> (64 - ty.bits().min(64))));
        let value = recorded.or(copy).unwrap_or(held);
        Some(Looked { pc, place, bytes: ty.bytes(), seen: value, held, stale })
    }

    /// The word that another load of a spin loop reads, if the loop does not change its address, and the value there.
    fn reads(
        &self,
        seen: &Seen<'_, N>,
        registers: (&Warp<N>, &Activation),
        spin: &Loop,
        (pc, element): Read,
        lane: usize,
    ) -> Option<Looked> {
        let kernel = self.kernel();
        let inst = &kernel.code[pc.index()];
        let (Op::Ld { access, .. } | Op::Atom(_, access)) = inst.op else { return None };
        if let Operand::Reg(base) = inst.src[0] {
            let mut changes = false;
            for inst in &kernel.code[spin.header.index()..=last_of(spin).index()] {
                inst.for_each_def(kernel, |value| {
                    changes |= matches!(value, Value::Reg(reg, width)
                        if reg.0 <= base.0 + 1 && base.0 < reg.0 + width.words());
                });
            }
            if changes || !contains(spin, pc) {
                return None;
            }
        }
        let place = from_registers(kernel, registers, inst, access.wide_address, access.space, lane)?;
        let looked = self.looked(seen, pc, place, access.ty, None)?;
        if element == 0 {
            Some(looked)
        } else {
            self.looked(seen, pc, looked.element(element), access.ty, None)
        }
    }

    fn mbarrier(
        &self,
        seen: &Seen<'_, N>,
        registers: (&Warp<N>, &Activation),
        pc: Pc,
        wide: bool,
        mask: LaneMask,
    ) -> Option<(LaneMask, Doing)> {
        let kernel = self.kernel();
        let lane = mask.lowest();
        let inst = &kernel.code[pc.index()];
        let (_, address) = from_registers(kernel, registers, inst, wide, Space::Shared, lane)?;
        let (pending, expected, bytes) = mbarrier::progress(self.held(seen, true, address, 8)?)?;
        let (warp, activation) = registers;
        let parity = matches!(inst.op, Op::Mbarrier(MbarrierOp::TestWaitParity, _))
            .then(|| warp.value(activation, inst.src[2], false, &kernel.imms)[lane] & 1);
        let phase = Phase { pending, expected, bytes, parity };
        Some((mask, Doing::Mbarrier { pc, word: self.word(true, address), phase }))
    }

    fn held(&self, seen: &Seen<'_, N>, shared: bool, address: u64, bytes: u32) -> Option<u64> {
        let bytes = bytes as usize;
        let data = if shared {
            seen.cta.shared.bytes.get(address as usize..address as usize + bytes)?
        } else {
            self.memory.read(address, bytes)?
        };
        Some(data.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64))
    }
}

/// The address that a lane polled last, and whether it is in shared memory.
fn address_of<const N: usize>(kernel: &Kernel, record: &Polled<N>, lane: usize) -> Option<(bool, u64)> {
    let (shared, address) = (record.shared.contains(lane), record.addresses[lane]);
    let offset = if shared { shared_offset(address, kernel.windows.shared) } else { address };
    record.mask.contains(lane).then_some((shared, offset))
}

/// What a poll waits for.
struct Wanted<'a> {
    until: Until,
    /// If more is compared than the word as it is.
    condition: Option<String>,
    /// The bits of the word, if these decide.
    bits: Option<u64>,
    /// Whether another value of the word would end the wait, if that is known.
    ends_with: Option<&'a dyn Fn(u64) -> bool>,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Wanted { until: Until::Changes, condition: None, bits: None, ends_with: None }
    }
}

/// Who holds what a poll waits for: threads without whose changes of the word the wait would end. Of a lock that is a
/// bit of the word, those that have this bit.
fn takers(shares: &[Share], wanted: &Wanted<'_>, held: u64, bytes: u32) -> Vec<Share> {
    let of = |takes: &dyn Fn(&Share) -> bool| -> Vec<Share> {
        shares.iter().filter(|share| takes(share)).copied().collect()
    };
    let would_end = |some: &[Share]| {
        let Some(ends_with) = wanted.ends_with else { return some.iter().all(|share| share.waited) };
        let net = some.iter().fold(0u64, |sum, share| sum.wrapping_add(share.net));
        some.iter().any(|share| share.net == Share::WHOLE) || ends_with(held.wrapping_sub(net))
    };
    // A compare-and-swap waits for an exact value: for those who hold bits in which it differs, if that is a lock.
    let bits = wanted.bits.or(match wanted.until {
        Until::Is(Cmp::Eq, value) => Some(value ^ held),
        _ => None,
    });
    let has_bits = |share: &Share| bits.is_some_and(|bits| share.net & bits != 0);
    // Who waited for it took it as a lock. Others may have counted, in both directions, what nobody waits for.
    let sets: [&dyn Fn(&Share) -> bool; 6] = [
        &|share| share.waited && has_bits(share),
        &|share| share.waited,
        &|share| would_end(std::slice::from_ref(share)),
        &|_| true,
        &|share| signed(share.net, bytes) < 0,
        &|share| signed(share.net, bytes) > 0,
    ];
    let holding = sets.into_iter().map(|set| of(set)).find(|some| !some.is_empty() && would_end(some));
    holding.unwrap_or_default()
}

/// The address that an instruction would access now, and whether it is in shared memory.
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
