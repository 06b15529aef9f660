//! List scheduling within basic blocks: of the instructions whose operands are there, the one with the longest way to
//! the end of its block comes first. So loads start early, and what waits for them comes late.
//!
//! Nothing moves across an instruction that other warps can notice or that reads a clock: barriers, fences, calls.
//! Accesses to memory keep their order if they may touch the same bytes. Atomics and volatile accesses keep theirs.

use crate::cfg::*;
use crate::inst::*;
use crate::liveness::*;
use crate::module::*;
use crate::types::*;
use crate::visit::*;

/// Values computed in a block and not yet used up, in words, beyond which the compiler's order is kept: more would cost
/// resident warps.
const MOST_LIVE_WORDS: u32 = 64;

/// Most instructions that are ordered together.
const MOST_INSTRUCTIONS: usize = 1024;

/// Reorders the instructions of each block.
pub(super) fn schedule(body: &mut Body) {
    let cfg = Cfg::new(body);
    let mut order: Vec<u32> = Vec::with_capacity(body.insts.len());
    let mut values = Values::new(body);
    for block in &cfg.blocks {
        let mut start = block.start.index();
        for at in block.start.index()..block.end.index() {
            if stays(&body.insts[at]) || at - start == MOST_INSTRUCTIONS {
                order_region(body, start..at, &mut values, &mut order);
                order.push(at as u32);
                start = at + 1;
            }
        }
        order_region(body, start..block.end.index(), &mut values, &mut order);
    }
    permute(body, &order);
}

fn permute(body: &mut Body, order: &[u32]) {
    let insts: Vec<Inst> = order.iter().map(|&at| body.insts[at as usize]).collect();
    let origins = order.iter().map(|&at| body.origins.get(at as usize).copied().unwrap_or_default());
    body.origins = origins.collect();
    body.insts = insts;
    let mut places = vec![Pc(0); order.len()];
    for (place, &at) in order.iter().enumerate() {
        places[at as usize] = Pc(place as u32);
    }
    body.lock_notes.iter_mut().for_each(|(pc, _)| *pc = places[pc.index()]);
    body.lock_notes.sort_by_key(|(pc, _)| *pc);
    // Branches and the labels of blocks are where they were.
}

/// Whether an instruction stays where it is, and nothing moves across it.
fn stays(inst: &Inst) -> bool {
    match inst.op {
        Op::Special(special) => matches!(
            special,
            Special::Clock
                | Special::ClockHi
                | Special::Clock64
                | Special::GlobalTimer
                | Special::GlobalTimerLo
                | Special::GlobalTimerHi
        ),
        Op::Fence(..)
        | Op::Prefetch
        | Op::CpAsync(_)
        | Op::CpAsyncCommit
        | Op::Bulk(_)
        | Op::Wgmma(_)
        | Op::WgmmaCommit
        | Op::WgmmaWait
        | Op::BulkCommit
        | Op::BulkWait(_)
        | Op::CpAsyncWait
        | Op::Mbarrier(..)
        | Op::LdLock(_)
        | Op::StUnlock(_)
        | Op::Bar(_)
        | Op::ClusterBar(_)
        | Op::StAsync(..)
        | Op::RedAsync(..)
        | Op::LdMatrix(_)
        | Op::StMatrix(_)
        | Op::SurfaceLd(_)
        | Op::SurfaceSt(_)
        | Op::SurfaceRed(..)
        | Op::Nanosleep
        | Op::Yield
        | Op::Stack(_)
        | Op::Ssy
        | Op::Bra
        | Op::Brx
        | Op::Call
        | Op::Ret
        | Op::Exit
        | Op::Trap
        | Op::Printf
        | Op::AssertFail
        | Op::Nop => true,
        _ => false,
    }
}

/// What an instruction does that others in its region may notice, besides its registers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    /// Lanes communicate.
    Exchange,
    Load(Place),
    Store(Place),
    /// An atomic: no access moves across it.
    Atomic,
}

/// The bytes that an access touches, as far as it shows.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    space: Space,
    /// Volatile or stronger.
    strong: bool,
    base: Operand,
    /// Which of the values of the base register.
    version: u32,
    offset: i64,
    bytes: i64,
}

impl Place {
    /// Whether both may touch the same byte.
    fn meets(&self, other: &Place) -> bool {
        let spaces = self.space == other.space || [self.space, other.space].contains(&Space::Generic);
        let same_base = (self.base, self.version) == (other.base, other.version);
        let apart = self.offset + self.bytes <= other.offset || other.offset + other.bytes <= self.offset;
        spaces && !(same_base && apart)
    }
}

impl Effect {
    fn of(inst: &Inst, version: impl Fn(Reg) -> u32) -> Effect {
        let place = |access: Access| {
            let Operand::Imm(offset) = inst.src[1] else { return None };
            let version = if let Operand::Reg(reg) = inst.src[0] { version(reg) } else { 0 };
            Some(Place {
                space: access.space,
                strong: access.order != Order::Weak,
                base: inst.src[0],
                version,
                offset: i64::from(offset as i32),
                bytes: i64::from(access.bytes()),
            })
        };
        match inst.op {
            Op::Ld { access, .. } if matches!(access.space, Space::Const | Space::Param) => Effect::None,
            Op::Ld { access, .. } if access.cache == Cache::Nc => Effect::None,
            Op::Ld { access, .. } => place(access).map_or(Effect::Atomic, Effect::Load),
            Op::St(access) => place(access).map_or(Effect::Atomic, Effect::Store),
            Op::Atom(..) => Effect::Atomic,
            Op::BarWarp => Effect::Exchange,
            op if op.is_exchange() => Effect::Exchange,
            _ => Effect::None,
        }
    }

    /// Whether two instructions must keep their order.
    fn ordered(&self, later: &Effect) -> bool {
        match (self, later) {
            (Effect::None, _) | (_, Effect::None) => false,
            // Lanes that meet may pass on what they wrote.
            (Effect::Exchange | Effect::Atomic, _) | (_, Effect::Exchange | Effect::Atomic) => true,
            (Effect::Load(a), Effect::Load(b)) => a.strong && b.strong,
            (Effect::Load(a) | Effect::Store(a), Effect::Load(b) | Effect::Store(b)) => {
                a.strong && b.strong || a.meets(b)
            }
        }
    }
}

/// Cycles from an instruction to one that needs its result, as the compiler expects them.
fn latency(op: Op) -> u32 {
    match op {
        Op::Ld { access, .. } => match access.space {
            Space::Param | Space::Const => 10,
            Space::Shared => 25,
            _ => 200,
        },
        Op::Tex(_) => 200,
        Op::Atom(..) => 300,
        Op::IDiv(_) | Op::IRem(_) | Op::FDiv(..) | Op::FRounded(..) => 40,
        Op::FDivApprox { .. } | Op::FApprox(..) => 20,
        Op::Cvt(cvt) if cvt.to.is_float() || cvt.from.is_float() => 12,
        Op::Vote(_) | Op::Shfl(_) | Op::Special(_) => 20,
        Op::Mma(_) => 32,
        _ => 5,
    }
}

/// The last write and the reads since then of each register and predicate, in the region at hand.
struct Values {
    registers: usize,
    last_write: Vec<Option<u32>>,
    reads: Vec<Vec<u32>>,
    versions: Vec<u32>,
    touched: Vec<u32>,
}

impl Values {
    fn new(body: &Body) -> Values {
        let count = body.registers.len() + body.predicates as usize;
        Values {
            registers: body.registers.len(),
            last_write: vec![None; count],
            reads: vec![Vec::new(); count],
            versions: vec![0; count],
            touched: Vec::new(),
        }
    }

    fn forget(&mut self) {
        for value in self.touched.drain(..) {
            self.last_write[value as usize] = None;
            self.reads[value as usize].clear();
        }
    }
}

/// An instruction of a region.
#[derive(Default)]
struct Node {
    /// Those that must come later, and how many cycles later.
    followers: Vec<(u32, u32)>,
    /// How many must come first and are not placed yet.
    waits_for: u32,
    /// Cycles to the end of the region.
    height: u32,
    /// When its operands are there.
    ready: u32,
    /// Words that it computes and that are read in the region, and how many reads are to come.
    words: u32,
    readers: u32,
    /// Whose results it reads.
    operands: Vec<u32>,
}

/// Appends the instructions of a region to `order`.
fn order_region(body: &Body, region: std::ops::Range<usize>, values: &mut Values, order: &mut Vec<u32>) {
    let start = region.start;
    if region.len() < 3 {
        order.extend(region.map(|at| at as u32));
        return;
    }
    let mut nodes = dependences(body, &body.insts[region], values);
    for at in (0..nodes.len()).rev() {
        let heights = nodes[at].followers.iter().map(|&(to, cycles)| nodes[to as usize].height + cycles);
        nodes[at].height = heights.max().unwrap_or(0);
    }
    let mut ready: Vec<u32> =
        (0..nodes.len() as u32).filter(|&at| nodes[at as usize].waits_for == 0).collect();
    let (mut now, mut live) = (0, 0);
    while !ready.is_empty() {
        let choice = |&at: &u32| {
            let node = &nodes[at as usize];
            let wait = node.ready.saturating_sub(now);
            (wait, std::cmp::Reverse(node.height), at)
        };
        let best = match live > MOST_LIVE_WORDS {
            true => (0..ready.len()).min_by_key(|&at| ready[at]),
            false => (0..ready.len()).min_by_key(|&at| choice(&ready[at])),
        };
        let Some(best) = best else { break };
        let at = ready.swap_remove(best) as usize;
        order.push((start + at) as u32);
        now = now.max(nodes[at].ready) + 1;
        if nodes[at].readers > 0 {
            live += nodes[at].words;
        }
        for operand in std::mem::take(&mut nodes[at].operands) {
            let node = &mut nodes[operand as usize];
            node.readers -= 1;
            if node.readers == 0 {
                live -= node.words;
            }
        }
        for (follower, cycles) in std::mem::take(&mut nodes[at].followers) {
            let node = &mut nodes[follower as usize];
            node.ready = node.ready.max(now - 1 + cycles);
            node.waits_for -= 1;
            if node.waits_for == 0 {
                ready.push(follower);
            }
        }
    }
}

/// Which instructions of a region depend on which.
fn dependences(body: &Body, insts: &[Inst], values: &mut Values) -> Vec<Node> {
    let mut nodes: Vec<Node> = insts.iter().map(|_| Node::default()).collect();
    let mut effects: Vec<(u32, Effect)> = Vec::new();
    let follow = |nodes: &mut Vec<Node>, from: u32, to: u32, cycles: u32| {
        nodes[from as usize].followers.push((to, cycles));
        nodes[to as usize].waits_for += 1;
    };
    for (at, inst) in insts.iter().enumerate() {
        let at = at as u32;
        inst.for_each_use(body, |value| {
            let number = value_number(value, values.registers) as usize;
            if let Some(writer) = values.last_write[number] {
                follow(&mut nodes, writer, at, latency(insts[writer as usize].op));
                nodes[writer as usize].readers += 1;
                nodes[at as usize].operands.push(writer);
            }
            values.reads[number].push(at);
            values.touched.push(number as u32);
        });
        let effect = Effect::of(inst, |reg| values.versions[reg.index()]);
        inst.for_each_def(body, |value| {
            let number = value_number(value, values.registers) as usize;
            if let Some(writer) = values.last_write[number].filter(|&writer| writer != at) {
                follow(&mut nodes, writer, at, 1);
            }
            for reader in values.reads[number].drain(..).filter(|&reader| reader != at) {
                follow(&mut nodes, reader, at, 0);
            }
            values.last_write[number] = Some(at);
            values.versions[number] += 1;
            values.touched.push(number as u32);
            if let Value::Reg(_, width) = value {
                nodes[at as usize].words += width.words();
            }
        });
        if effect != Effect::None {
            for &(earlier, other) in &effects {
                if other.ordered(&effect) {
                    follow(&mut nodes, earlier, at, 1);
                }
            }
            effects.push((at, effect));
        }
    }
    values.forget();
    nodes
}
