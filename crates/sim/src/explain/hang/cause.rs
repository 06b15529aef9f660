//! The kind of hang: lanes wait for lanes, and every chain of waits ends somewhere or closes to a cycle.

use warploom_isa::Pc;

use crate::explain::hang::code::may_write;
use crate::explain::hang::polls::Poll;
use crate::explain::hang::scene::{Doing, Node, Nodes, Scene};
use crate::explain::hang::{HangKind, Until, future};

/// Why a launch hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) kind: HangKind,
    /// The nodes of the cycle, or the node at which the chain ends.
    pub(super) nodes: Vec<usize>,
}

/// The most significant cause among all chains (see [`HangKind`]). With `proof`, no lane will ever do anything else.
pub(super) fn find<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, proof: bool) -> Option<Cause> {
    let next: Vec<Option<usize>> = (0..nodes.all.len()).map(|at| waits_for(scene, nodes, at)).collect();
    let nodes = &nodes.all;
    // The walk that visited each node first.
    let mut walked = vec![usize::MAX; nodes.len()];
    let mut causes = Vec::new();
    for start in 0..nodes.len() {
        let mut at = start;
        while walked[at] == usize::MAX {
            walked[at] = start;
            match next[at] {
                Some(then) => at = then,
                None => {
                    causes.push(Cause { kind: end_kind(scene, &nodes[at]), nodes: vec![at] });
                    break;
                }
            }
        }
        if walked[at] == start && next[at].is_some() {
            let mut circle = vec![at];
            while let Some(then) = next[circle[circle.len() - 1]].filter(|&then| then != at) {
                circle.push(then);
            }
            causes.push(Cause { kind: circle_kind(&circle, nodes), nodes: circle });
        }
    }
    // A node that still runs may yet write what others wait for.
    let someone_runs = !proof && nodes.iter().any(|node| node.doing == Doing::Run);
    let certain =
        |cause: &Cause| !someone_runs || !matches!(cause.kind, HangKind::LostToken | HangKind::NotResident);
    causes.into_iter().filter(certain).min_by_key(|cause| (cause.kind, cause.nodes[0]))
}

/// A node that must act before this one can continue.
fn waits_for<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, at: usize) -> Option<usize> {
    let node = &nodes.all[at];
    match &node.doing {
        Doing::Reconverge(lanes) | Doing::OtherPath { first: lanes, .. } | Doing::Lanes(lanes) => {
            let on_me = |&other: &usize| {
                let other = &nodes.all[other];
                let taker = other.poll().and_then(|poll| poll.taker);
                other.warp == node.warp
                    && !(other.lanes & *lanes).is_empty()
                    && taker.and_then(|t| nodes.holder(t)) == Some(at)
            };
            nodes.of_cta(node.cta).find(on_me).or_else(|| nodes.with_lanes(node.cta, node.warp, *lanes))
        }
        Doing::Poll(poll) if poll.stale => None,
        Doing::Poll(_) => who_acts(scene, nodes, at).map(|(other, _)| other),
        Doing::Barrier(id) => {
            let barriers = &scene.ctas[node.cta].cta.barriers;
            let missing = |&other: &usize| {
                let other = &nodes.all[other];
                !(other.lanes & !barriers.arrived_lanes(*id, other.warp as u32)).is_empty()
            };
            nodes.of_cta(node.cta).find(missing)
        }
        Doing::ClusterBarrier => {
            let cluster = scene.ctas[node.cta].cluster();
            let missing = |other: &Node| {
                let seen = &scene.ctas[other.cta];
                seen.cluster() == cluster && !(other.lanes & !seen.arrived_at_cluster(other.warp)).is_empty()
            };
            nodes.all.iter().position(missing)
        }
        Doing::Mbarrier { .. } | Doing::Loop | Doing::Run => None,
    }
}

/// The node that must act before a poll ends, and the write with which it does, where that is known: who holds the
/// lock, or who writes the word later and waits now.
pub(super) fn who_acts<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    at: usize,
) -> Option<(usize, Option<Pc>)> {
    let node = &nodes.all[at];
    let poll = node.poll().filter(|poll| !poll.stale)?;
    let Some(taker) = poll.taker else { return blocked_writer(scene, nodes, at) };
    let holder = nodes.holder(taker);
    if poll.changed_by.is_some() {
        // It may be no lock: only who writes the word counts.
        let holder = holder.filter(|&holder| holder != at);
        let writes = holder.and_then(|holder| Some((holder, Some(will_write(scene, nodes, holder, poll)?))));
        return writes.or_else(|| blocked_writer(scene, nodes, at));
    }
    if let Some(holder) = holder
        && (matches!(poll.until, Until::Free(_)) || holder == at)
    {
        return Some((holder, None));
    }
    // It may have left the release to another thread.
    match holder.map(|holder| (holder, will_write(scene, nodes, holder, poll))) {
        Some((holder, Some(pc))) => Some((holder, Some(pc))),
        Some((holder, None)) => later_writer(scene, nodes, at, poll).or(Some((holder, None))),
        None => later_writer(scene, nodes, at, poll),
    }
}

/// Where a node writes the word that is polled, if it comes to that.
fn will_write<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, at: usize, poll: &Poll) -> Option<Pc> {
    let node = &nodes.all[at];
    let warp = &scene.ctas[node.cta].warps[node.warp];
    future::writes(scene.kernel(), (warp, &node.activation), (node.pc, node.lanes), poll.target)
}

/// With more nodes the search for writers would take too long.
const MOST_NODES: usize = 512;

/// A node that is not in the same wait and writes the polled word later, of the same CTA if there is one.
fn later_writer<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    at: usize,
    poll: &Poll,
) -> Option<(usize, Option<Pc>)> {
    if nodes.all.len() > MOST_NODES {
        return None;
    }
    let own = nodes.of_cta(nodes.all[at].cta);
    let others = (0..nodes.all.len()).filter(|other| !own.contains(other) && !poll.target.shared);
    let writes = |other: usize| {
        let waits_alike = nodes.all[other].poll().is_some_and(|p| p.target == poll.target);
        let pc = (other != at && !waits_alike).then(|| will_write(scene, nodes, other, poll)).flatten()?;
        Some((other, Some(pc)))
    };
    own.clone().chain(others).find_map(writes)
}

/// Who writes the word that a node polls, where nobody has taken it as a lock: lanes of the same warp that wait for the
/// node, or others that wait for something else.
fn blocked_writer<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    at: usize,
) -> Option<(usize, Option<Pc>)> {
    let node = &nodes.all[at];
    let poll = node.poll()?;
    let kernel = scene.kernel();
    let beside = || nodes.of_cta(node.cta).filter(|&other| nodes.waits_for_lanes(other, node));
    if let Some(found) =
        beside().find_map(|other| Some((other, Some(will_write(scene, nodes, other, poll)?))))
    {
        return Some(found);
    }
    let may_write = |&other: &usize| {
        let other = &nodes.all[other];
        match other.doing {
            Doing::OtherPath { reconverge, .. } => may_write(kernel, other.pc, reconverge, poll.pc),
            _ => false,
        }
    };
    later_writer(scene, nodes, at, poll).or_else(|| Some((beside().find(may_write)?, None)))
}

fn end_kind<const N: usize>(scene: &Scene<'_, N>, node: &Node) -> HangKind {
    match &node.doing {
        Doing::Barrier(_) | Doing::ClusterBarrier | Doing::Mbarrier { .. } => HangKind::Barrier,
        Doing::Poll(poll) if poll.stale => HangKind::Stale,
        Doing::Poll(poll) if poll.lock_taker().is_none() && scene.unstarted > 0 => HangKind::NotResident,
        Doing::Poll(_) => HangKind::LostToken,
        Doing::Loop => HangKind::Endless,
        Doing::Reconverge(_) | Doing::OtherPath { .. } | Doing::Lanes(_) | Doing::Run => HangKind::Unknown,
    }
}

fn circle_kind(circle: &[usize], nodes: &[Node]) -> HangKind {
    if circle.iter().any(|&at| nodes[at].poll().is_some_and(|poll| poll.alias.is_some())) {
        return HangKind::Alias;
    }
    let warp = |at: usize| (nodes[at].cta, nodes[at].warp);
    let doing = |wanted: fn(&Doing) -> bool| circle.iter().any(|&at| wanted(&nodes[at].doing));
    if doing(|d| matches!(d, Doing::Barrier(_) | Doing::ClusterBarrier)) {
        HangKind::Barrier
    } else if doing(|d| matches!(d, Doing::Reconverge(_) | Doing::OtherPath { .. } | Doing::Lanes(_)))
        && circle.iter().all(|&at| warp(at) == warp(circle[0]))
    {
        HangKind::SimdDeadlock
    } else if circle.iter().any(|&at| nodes[at].poll().is_some_and(|poll| poll.taker.is_some())) {
        HangKind::LockCycle
    } else {
        HangKind::WaitCycle
    }
}
