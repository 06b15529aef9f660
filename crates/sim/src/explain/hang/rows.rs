//! Merges what every lane does into the few rows of a message.

use warploom_isa::{Inst, Kernel, MbarrierOp, Op, Pc};

use super::*;
use crate::exec::locks::holders::Taker;
use crate::exec::stop::HangReason;
use crate::explain::hang::advice::{help, subject};
use crate::explain::hang::cause::{Cause, who_acts};
use crate::explain::hang::code::{contains, innermost};
use crate::explain::hang::polls::Poll;
use crate::explain::hang::scene::{Doing, Node, Nodes, Scene};
use crate::explain::hang::words::list;
use crate::kit::lane_mask::LaneMask;

/// Most groups that a message lists.
const SHOWN: usize = 8;

pub(super) fn hang<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    cause: Option<Cause>,
    reason: HangReason,
    cycles: u64,
) -> Hang {
    let cause = cause.unwrap_or(Cause { kind: HangKind::Unknown, nodes: Vec::new() });
    let mut ctas: Vec<(WaitingCta, Vec<Shape>)> = Vec::new();
    // The CTA of the cause comes first, then the others in grid order.
    let guilty = cause.nodes.first().map(|&at| nodes.all[at].cta);
    let held = held(scene, nodes);
    let mut order: Vec<usize> = (0..scene.ctas.len()).collect();
    order.sort_by_key(|&at| (Some(at) != guilty, scene.ctas[at].cta.number));
    for at in order {
        let (shapes, groups): (Vec<_>, Vec<_>) =
            groups(scene, nodes, &held, at, &cause.nodes).into_iter().unzip();
        if groups.is_empty() {
            continue;
        }
        match ctas.iter_mut().find(|(_, known)| *known == shapes) {
            Some((alike, _)) => alike.alike += 1,
            None => ctas
                .push((WaitingCta { id: scene.ctas[at].cta.id, alike: 0, groups, more_groups: 0 }, shapes)),
        }
    }
    let mut ctas: Vec<WaitingCta> = ctas.into_iter().map(|(cta, _)| cta).collect();
    let mut room = SHOWN;
    for cta in &mut ctas {
        let shown = cta.groups.len().min(room);
        cta.more_groups = (cta.groups.len() - shown) as u64;
        cta.groups.truncate(shown);
        room -= shown;
    }
    let more_ctas = ctas.iter().filter(|cta| cta.groups.is_empty()).map(|cta| 1 + cta.alike).sum();
    ctas.retain(|cta| !cta.groups.is_empty());
    let live = scene.ctas.iter().flat_map(|seen| seen.warps).filter(|warp| !warp.is_done());
    Hang {
        kernel: scene.kernel().name.clone(),
        chip: String::new(),
        subject: subject(scene, nodes, &cause),
        help: help(scene, nodes, &cause, &reason),
        kind: cause.kind,
        livelock: None,
        undone: Vec::new(),
        kept: Vec::new(),
        reason,
        cycles,
        ctas,
        more_ctas,
        live_warps: live.count() as u64,
        unstarted_ctas: scene.unstarted,
        aggregator: None,
        grid_ctas: scene.launch.shape.grid.iter().map(|&d| d as u64).product(),
    }
}

/// Warps, lanes and what they do, without offsets in buffers. CTAs with equal shapes are merged.
type Shape = (Vec<u32>, LaneMask, String);

/// Locks that threads wait for: the node that holds it, the word, and where it was taken.
fn held<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes) -> Vec<(usize, Word, Place)> {
    let mut held: Vec<(usize, Word, Place)> = Vec::new();
    for poll in nodes.all.iter().filter_map(Node::poll) {
        if let Some((taker, holder)) = poll.lock_taker().and_then(|taker| Some((taker, nodes.holder(taker)?)))
            && let taken = poll.alias.as_ref().unwrap_or(&poll.word)
            && !held.iter().any(|(known, word, _)| (*known, word) == (holder, taken))
        {
            held.push((holder, taken.clone(), Place::of(scene.kernel(), taker.pc)));
        }
    }
    held
}

/// What the lanes of a CTA do: one group for all warps that do the same, the nodes of the cause first.
fn groups<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    held: &[(usize, Word, Place)],
    cta: usize,
    guilty: &[usize],
) -> Vec<(Shape, WaitingGroup)> {
    struct Row {
        guilty: bool,
        shape: String,
        group: WaitingGroup,
    }
    fn add(rows: &mut Vec<Row>, row: Row, same: impl Fn(&Threads, &Threads) -> bool) {
        let alike =
            |known: &&mut Row| known.shape == row.shape && same(&known.group.threads, &row.group.threads);
        match rows.iter_mut().find(alike) {
            Some(known) => {
                known.guilty |= row.guilty;
                merge(&mut known.group, row.group);
            }
            None => rows.push(row),
        }
    }
    // First merge lanes of a warp that wait for different words of a buffer, then warps whose groups are alike.
    let mut of_warps: Vec<Row> = Vec::new();
    for at in nodes.of_cta(cta) {
        let group = group(scene, nodes, held, at);
        let row = Row { guilty: guilty.contains(&at), shape: message::shape(&group), group };
        add(&mut of_warps, row, |a, b| a.warps == b.warps);
    }
    let mut rows: Vec<Row> = Vec::new();
    for mut row in of_warps {
        let threads = &mut row.group.threads;
        threads.all_lanes = scene.ctas[cta].warps[threads.warps[0] as usize].live == threads.lanes;
        let lanes = |threads: &Threads| if threads.all_lanes { LaneMask(u64::MAX) } else { threads.lanes };
        add(&mut rows, row, |a, b| lanes(a) == lanes(b));
    }
    rows.sort_by_key(|row| {
        let threads = &row.group.threads;
        (!row.guilty, threads.warps[0], threads.lanes.lowest())
    });
    rows.into_iter()
        .map(|row| {
            let threads = &row.group.threads;
            ((threads.warps.clone(), threads.lanes, row.shape), row.group)
        })
        .collect()
}

/// Merges a group into another whose lanes do the same.
fn merge(into: &mut WaitingGroup, from: WaitingGroup) {
    into.threads.lanes |= from.threads.lanes;
    for warp in from.threads.warps {
        if !into.threads.warps.contains(&warp) {
            into.threads.warps.push(warp);
        }
    }
    for held in from.holds {
        if !into.holds.contains(&held) {
            into.holds.push(held);
        }
    }
    if let (Waits::Spin(into), Waits::Spin(from)) = (&mut into.waits, from.waits) {
        if let (Writer::Taker(into), Writer::Taker(from)) = (&mut into.writer, from.writer)
            && into.who.warps == from.who.warps
        {
            into.who.lanes |= from.who.lanes;
            into.alias.extend(from.alias);
        }
        for word in from.words {
            if !into.words.contains(&word) {
                into.words.push(word);
            }
        }
    }
}

fn group<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    held: &[(usize, Word, Place)],
    at: usize,
) -> WaitingGroup {
    let kernel = scene.kernel();
    let node = &nodes.all[at];
    let seen = &scene.ctas[node.cta];
    let threads = threads(scene, node.cta, node.warp, node.lanes);
    let holds = held.iter().filter(|(holder, ..)| *holder == at);
    let holds = holds.map(|(_, word, place)| (word.clone(), place.clone())).collect();
    let place = match &node.doing {
        Doing::Poll(poll) => Place::of(kernel, poll.pc),
        Doing::Mbarrier { pc, .. } => Place::of(kernel, *pc),
        // The position inside the loop has no meaning.
        Doing::Loop => Place::of(kernel, innermost(kernel, node.pc).map_or(node.pc, |l| l.header)),
        _ => Place::of(kernel, node.pc),
    };
    let waits = match &node.doing {
        Doing::Barrier(id) => {
            let (arrived, expected) = seen.cta.barriers.progress(*id, seen.cta.live_warps);
            Waits::Barrier { id: *id, arrived, expected, missing: missing(scene, nodes, node.cta, *id) }
        }
        Doing::ClusterBarrier => cluster_barrier(scene, nodes, node),
        Doing::Mbarrier { word, phase, .. } => {
            let announced = if phase.misses_bytes() { announcements(kernel) } else { Vec::new() };
            Waits::Mbarrier { word: word.clone(), phase: phase.clone(), announced }
        }
        Doing::Reconverge(lanes) => {
            let of_cta = nodes.of_cta(node.cta).map(|at| &nodes.all[at]);
            let mut others = of_cta.filter(|n| n.warp == node.warp && !(n.lanes & *lanes).is_empty());
            let ends = |pc: Pc| kernel.loops.iter().any(|l| contains(l, pc) && !contains(l, node.pc));
            Waits::Reconverge { lanes: *lanes, loop_ends: others.all(|n| ends(n.pc)) }
        }
        Doing::OtherPath { first, reconverge } => {
            let reconverge = (*reconverge != Pc::RETURN).then(|| Place::of(kernel, *reconverge));
            Waits::OtherPath { lanes: *first, reconverge }
        }
        Doing::Lanes(lanes) => Waits::Lanes(*lanes),
        Doing::Poll(poll) => Waits::Spin(Spin {
            words: vec![poll.word.clone()],
            value: poll.seen,
            until: poll.until,
            writer: writer(scene, nodes, at, poll),
            queued: scene.is_blocked(node),
            condition: poll.condition.clone(),
        }),
        Doing::Loop => Waits::Loop,
        Doing::Run => Waits::Run,
    };
    WaitingGroup { threads, holds, waits, place, changes: node.changes }
}

fn threads<const N: usize>(scene: &Scene<'_, N>, cta: usize, warp: usize, lanes: LaneMask) -> Threads {
    let seen = &scene.ctas[cta];
    Threads { cta: seen.cta.id, warps: vec![warp as u32], lanes, all_lanes: seen.warps[warp].live == lanes }
}

fn writer<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, at: usize, poll: &Poll) -> Writer {
    let node = &nodes.all[at];
    if poll.stale {
        return Writer::Memory { holds: poll.held, sm: scene.ctas[node.cta].cta.sm };
    }
    let kernel = scene.kernel();
    let acts = who_acts(scene, nodes, at);
    let waiting = |other: usize, pc: Pc| {
        let other = &nodes.all[other];
        let who = threads(scene, other.cta, other.warp, other.lanes);
        let now = instead(scene, other);
        let (place, alias, others) = (Place::of(kernel, pc), Vec::new(), Vec::new());
        Writer::Waiting(Box::new(Holder { who, place, alias, changed_by: None, now, others }))
    };
    let who = |taker: &Taker| Threads {
        cta: scene.coordinates_of(taker.warp.cta),
        warps: vec![taker.warp.warp],
        lanes: LaneMask::of(taker.lane as usize),
        all_lanes: false,
    };
    let thread = |taker: Taker, alias: Vec<Word>| {
        let now = nodes.holder(taker).map_or(Instead::Ended, |at| instead(scene, &nodes.all[at]));
        let others = poll.other_takers.iter().map(who).collect();
        let (place, changed_by) = (Place::of(kernel, taker.pc), poll.changed_by);
        Box::new(Holder { who: who(&taker), place, alias, changed_by, now, others })
    };
    let Some(taker) = poll.lock_taker() else {
        return match (acts, poll.taker, poll.writer) {
            (Some((other, pc)), ..) if nodes.waits_for_lanes(other, node) => {
                let other = &nodes.all[other];
                let who = threads(scene, other.cta, other.warp, other.lanes);
                Writer::BlockedLanes(who, pc.map(|pc| Place::of(kernel, pc)))
            }
            (Some((other, Some(pc))), ..) => waiting(other, pc),
            (_, Some(taker), _) => Writer::Taker(thread(taker, Vec::new())),
            (_, _, Some(writer)) => Writer::Wrote(thread(writer, Vec::new())),
            _ => Writer::Nobody,
        };
    };
    match acts {
        Some((other, Some(pc))) if nodes.holder(taker) != Some(other) => waiting(other, pc),
        _ => Writer::Taker(thread(taker, poll.alias.clone().into_iter().collect())),
    }
}

fn instead<const N: usize>(scene: &Scene<'_, N>, node: &Node) -> Instead {
    match &node.doing {
        Doing::Barrier(id) => Instead::Barrier(*id),
        Doing::ClusterBarrier => Instead::ClusterBarrier,
        Doing::Reconverge(lanes) | Doing::OtherPath { first: lanes, .. } | Doing::Lanes(lanes) => {
            Instead::Lanes(*lanes)
        }
        Doing::Poll(poll) if scene.is_blocked(node) => Instead::Queue(poll.word.clone()),
        Doing::Poll(poll) => Instead::Spin(poll.word.clone()),
        Doing::Mbarrier { word, .. } => Instead::Mbarrier(word.clone()),
        Doing::Loop | Doing::Run => Instead::Run(Place::of(scene.kernel(), node.pc)),
    }
}

/// A wait at the barrier of a cluster: how many of its CTAs have come, and what the threads of the others do instead.
fn cluster_barrier<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, node: &Node) -> Waits {
    let cluster = scene.ctas[node.cta].cluster();
    let mut missing: Vec<(Threads, Instead)> = Vec::new();
    for other in &nodes.all {
        let seen = &scene.ctas[other.cta];
        let lanes = other.lanes & !seen.arrived_at_cluster(other.warp);
        if seen.cluster() != cluster || lanes.is_empty() {
            continue;
        }
        let (late, instead) = (threads(scene, other.cta, other.warp, lanes), instead(scene, other));
        let same = |(known, what): &&mut (Threads, Instead)| {
            let alike = known.lanes == late.lanes || known.all_lanes && late.all_lanes;
            known.cta == late.cta && *what == instead && alike
        };
        match missing.iter_mut().find(same) {
            Some((known, _)) => known.warps.extend(late.warps),
            None => missing.push((late, instead)),
        }
    }
    let size = scene.launch.shape.cluster_ctas();
    let mut late: Vec<[u32; 3]> = missing.iter().map(|(threads, _)| threads.cta).collect();
    late.dedup();
    Waits::ClusterBarrier { arrived: size - late.len() as u32, expected: size, missing }
}

/// The threads that have not arrived at a barrier and what they do instead; warps that do the same are merged.
fn missing<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    cta: usize,
    id: u32,
) -> Vec<(Threads, Instead)> {
    let seen = &scene.ctas[cta];
    let mut missing: Vec<(Threads, Instead)> = Vec::new();
    let mut add = |threads: Threads, instead: Instead| {
        let same = |(known, what): &&mut (Threads, Instead)| {
            let alike = known.lanes == threads.lanes || known.all_lanes && threads.all_lanes;
            *what == instead && alike
        };
        match missing.iter_mut().find(same) {
            Some((known, _)) => known.warps.extend(threads.warps),
            None => missing.push((threads, instead)),
        }
    };
    for (warp, of_warp) in seen.warps.iter().enumerate() {
        let arrived = seen.cta.barriers.arrived_lanes(id, warp as u32);
        if of_warp.is_done() && arrived.is_empty() && seen.cta.barriers.is_counted(id) {
            let all = Threads {
                cta: seen.cta.id,
                warps: vec![warp as u32],
                lanes: LaneMask::NONE,
                all_lanes: true,
            };
            add(all, Instead::Ended);
        }
        for node in nodes.of_cta(cta).map(|at| &nodes.all[at]).filter(|n| n.warp == warp) {
            // On a SIMT stack a warp has arrived when one of its paths has.
            if !(node.lanes & !arrived).is_empty() && node.doing != Doing::Barrier(id) {
                add(threads(scene, cta, warp, node.lanes & !arrived), instead(scene, node));
            }
        }
    }
    missing
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name[..] {
            "" if self.shared => write!(f, "[shared {:#x}]", self.offset),
            "" => write!(f, "[{:#x}]", self.offset),
            name => write!(f, "[{name}+{}]", self.offset),
        }
    }
}

/// A list of words for a sentence.
pub(super) fn words(words: &[Word]) -> String {
    list(&words.iter().map(Word::to_string).collect::<Vec<_>>(), 3)
}

/// The instructions that tell mbarriers how many bytes will come.
fn announcements(kernel: &Kernel) -> Vec<Place> {
    let announces =
        |inst: &Inst| matches!(inst.op, Op::Mbarrier(MbarrierOp::ExpectTx | MbarrierOp::ArriveExpectTx, _));
    let code = kernel.code.iter().enumerate().filter(|(_, inst)| announces(inst));
    code.map(|(at, _)| Place::of(kernel, Pc(at as u32))).collect()
}
