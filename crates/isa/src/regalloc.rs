//! Physical registers for virtual ones: a linear scan over live ranges with holes.
//!
//! Every web keeps one register for its whole life. Nothing is spilled: the result is the number of registers that the
//! kernel needs, and occupancy follows from it. 64-bit values take aligned pairs. Divergence needs no care: each lane
//! has its own copy of a register, and only that lane's path counts for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::inst::*;
use crate::liveness::*;
use crate::module::*;

/// The physical register or predicate of each web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// By web; for a wide value, the first of two registers.
    places: Vec<u32>,
    pub register_count: u32,
    pub predicate_count: u32,
}

impl Allocation {
    pub(crate) fn new(body: &Body, liveness: &Liveness) -> Self {
        let (registers, predicates) = liveness.web_counts();
        let segments = liveness.web_segments();
        let widths = liveness.web_widths(body);
        let mut places = scan(&widths, |web| segments.row(web));
        let register_count = places.iter().zip(&widths).map(|(p, w)| p + w.words()).max().unwrap_or(0);
        let predicates = scan(&vec![Width::One; predicates], |web| segments.row(registers + web));
        let predicate_count = predicates.iter().map(|p| p + 1).max().unwrap_or(0);
        places.extend(predicates);
        Allocation { places, register_count, predicate_count }
    }

    /// A given allocation: the number of each web, registers first.
    pub(crate) fn of_webs(places: Vec<u32>, register_count: u32, predicate_count: u32) -> Self {
        Allocation { places, register_count, predicate_count }
    }

    pub(crate) fn register(&self, web: WebId) -> Reg {
        Reg(self.places[web.index()])
    }

    pub(crate) fn predicate(&self, web: WebId) -> Pred {
        Pred(self.places[web.index()])
    }

    /// Rewrites `body` to physical registers. Every instruction gets its own vector lists and call site: those that
    /// instructions shared may now name different registers.
    pub(crate) fn apply(&self, body: &mut Body, liveness: &Liveness) {
        let old_vectors = std::mem::take(&mut body.vectors);
        let old_calls = std::mem::take(&mut body.calls);
        for (pc, inst) in body.insts.iter_mut().enumerate() {
            let read = 2 * pc as u32;
            let write = read + 1;
            let reg = |r: &mut Reg, at: u32| {
                *r = liveness.register_web(*r, at).map_or(Reg(0), |web| self.register(web));
            };
            let pred = |p: &mut Pred, at: u32| {
                *p = liveness.predicate_web(*p, at).map_or(Pred(0), |web| self.predicate(web));
            };
            let operand = |o: &mut Operand, at: u32| match o {
                Operand::Reg(r) => reg(r, at),
                Operand::Pred(p) | Operand::NotPred(p) => pred(p, at),
                _ => {}
            };
            let mut vector = |id: &mut VecId, at: u32| {
                let mut elements = old_vectors[id.index()].clone();
                elements.iter_mut().for_each(|o| operand(o, at));
                *id = VecId(body.vectors.len() as u32);
                body.vectors.push(elements);
            };
            match &mut inst.guard {
                Guard::Always => {}
                Guard::If(p) | Guard::Unless(p) => pred(p, read),
            }
            for dst in [&mut inst.dst, &mut inst.dst2] {
                match dst {
                    Dst::None => {}
                    Dst::Reg(r) => reg(r, write),
                    Dst::Pred(p) => pred(p, write),
                    Dst::Vec(id) => vector(id, write),
                }
            }
            for src in &mut inst.src {
                match src {
                    Operand::Vec(id) => vector(id, read),
                    src => operand(src, read),
                }
            }
            if let (Op::Call, Operand::Imm(site)) = (inst.op, &mut inst.src[0]) {
                let mut call = old_calls[*site as usize].clone();
                if let Callee::Indirect(callee) = &mut call.callee {
                    operand(callee, read);
                }
                *site = body.calls.len() as u32;
                body.calls.push(call);
            }
        }
        body.registers = vec![Width::One; self.register_count as usize];
        body.predicates = self.predicate_count;
        body.allocated = true;
    }
}

/// Gives every value a place such that values live at the same time never share one.
fn scan<'a>(widths: &[Width], ranges: impl Fn(usize) -> &'a [Segment]) -> Vec<u32> {
    let mut places = vec![0; widths.len()];
    let mut order: Vec<u32> = (0..widths.len() as u32).collect();
    order.sort_unstable_by_key(|&v| (ranges(v as usize)[0].start, v));

    let mut file = File::default();
    // The next event of each placed value: (position, whether a segment begins or ends there, value, segment).
    let mut changes: BinaryHeap<Reverse<(u32, bool, u32, u32)>> = BinaryHeap::new();
    for value in order {
        let range = ranges(value as usize);
        let width = widths[value as usize];
        let now = range[0].start;
        while let Some(&Reverse((at, begins, other, segment))) = changes.peek()
            && at <= now
        {
            changes.pop();
            let place = places[other as usize];
            let width = widths[other as usize];
            let other_range = ranges(other as usize);
            if begins {
                file.set_busy(place, width, true);
                changes.push(Reverse((other_range[segment as usize].end, false, other, segment)));
            } else {
                file.set_busy(place, width, false);
                match other_range.get(segment as usize + 1) {
                    Some(next) => changes.push(Reverse((next.start, true, other, segment + 1))),
                    None => file.leave(place, width, other),
                }
            }
        }
        let place = file.find(width, |other| meets(range, ranges(other as usize)));
        places[value as usize] = place;
        file.enter(place, width, value);
        file.set_busy(place, width, true);
        changes.push(Reverse((range[0].end, false, value, 0)));
    }
    places
}

/// Whether two live ranges have a position in common.
fn meets(a: &[Segment], b: &[Segment]) -> bool {
    let start = a[0].start;
    let mut b = &b[b.partition_point(|s| s.end <= start)..];
    let mut a = a;
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        if x.end <= y.start {
            a = &a[1..];
        } else if y.end <= x.start {
            b = &b[1..];
        } else {
            return true;
        }
    }
    false
}

/// The register file during the scan. Grows as needed.
#[derive(Default)]
struct File {
    /// One bit per register: whether it holds a live value at the scan's position.
    busy: Vec<u64>,
    /// Values that are in a register now or will be again after a hole.
    residents: Vec<Vec<u32>>,
    /// All words of `busy` below this one are full.
    low: usize,
}

/// The lower register of every pair.
const EVEN: u64 = 0x5555_5555_5555_5555;

impl File {
    fn set_busy(&mut self, place: u32, width: Width, busy: bool) {
        let (word, bit) = (place as usize / 64, place % 64);
        let mask = ((1 << width.words()) - 1) << bit;
        if busy {
            self.busy[word] |= mask;
            while self.busy.get(self.low) == Some(&u64::MAX) {
                self.low += 1;
            }
        } else {
            self.busy[word] &= !mask;
            self.low = self.low.min(word);
        }
    }

    fn enter(&mut self, place: u32, width: Width, value: u32) {
        let end = (place + width.words()) as usize;
        if self.residents.len() < end {
            self.residents.resize(end, Vec::new());
            self.busy.resize(end.div_ceil(64), 0);
        }
        for r in place as usize..end {
            self.residents[r].push(value);
        }
    }

    fn leave(&mut self, place: u32, width: Width, value: u32) {
        for r in place..place + width.words() {
            let residents = &mut self.residents[r as usize];
            if let Some(at) = residents.iter().position(|&v| v == value) {
                residents.swap_remove(at);
            }
        }
    }

    /// The lowest place where no resident `conflicts`, which may lie beyond those used so far.
    fn find(&self, width: Width, conflicts: impl Fn(u32) -> bool) -> u32 {
        let fits = |r: u32| {
            let residents = self.residents.get(r as usize);
            residents.is_none_or(|residents| !residents.iter().any(|&v| conflicts(v)))
        };
        let free = || (self.low..).map(|w| (w as u32 * 64, !self.busy.get(w).copied().unwrap_or(0)));
        match width {
            Width::One => {
                // Half of a broken pair first, so that whole pairs stay free for wide values.
                let used = self.residents.len() as u32;
                let broken = free().take_while(|&(base, _)| base < used).flat_map(|(base, free)| {
                    let buddy_busy = ((!free & EVEN) << 1) | ((!free >> 1) & EVEN);
                    bits(base, free & buddy_busy)
                });
                { broken }
                    .take_while(|&r| r < used)
                    .find(|&r| fits(r))
                    .or_else(|| free().flat_map(|(base, free)| bits(base, free)).find(|&r| fits(r)))
            }
            Width::Two => {
                let pairs = free().flat_map(|(base, free)| bits(base, free & (free >> 1) & EVEN));
                { pairs }.find(|&r| fits(r) && fits(r + 1))
            }
        }
        .expect("the file has no end")
    }
}

/// The set bits of a word, counted from `base`.
fn bits(base: u32, word: u64) -> impl Iterator<Item = u32> {
    let mut word = word;
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(base + bit)
    })
}
