//! Where the cause of a hang is, and how to repair it.

use super::*;
use crate::chip::Divergence;
use crate::exec::fault::coordinates;
use crate::exec::stop::HangReason;
use crate::explain::hang::cause::Cause;
use crate::explain::hang::scene::{Doing, Nodes, Scene};
use crate::explain::hang::words::counted;

/// Where the cause is, for the first line of the message.
pub(super) fn subject<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes, cause: &Cause) -> String {
    let Some(node) = cause.nodes.first().map(|&at| &nodes.all[at]) else { return String::new() };
    let in_cta = |cta: usize| format!("CTA {}", coordinates(scene.ctas[cta].cta.id));
    let word = || node.poll().map_or_else(String::new, |poll| poll.word.to_string());
    match cause.kind {
        HangKind::SimdDeadlock | HangKind::Endless => {
            format!("in warp {} of {}", node.warp, in_cta(node.cta))
        }
        HangKind::Barrier => format!("in {}", in_cta(node.cta)),
        HangKind::Alias => {
            let polls = cause.nodes.iter().filter_map(|&at| nodes.all[at].poll());
            let bit = polls.filter(|poll| poll.alias.is_some()).find_map(|poll| match poll.until {
                Until::Free(bit) => Some(bit),
                _ => None,
            });
            format!("of bit {} in {}", bit.unwrap_or_default(), in_cta(node.cta))
        }
        HangKind::LockCycle | HangKind::WaitCycle => {
            let mut ctas: Vec<usize> = cause.nodes.iter().map(|&at| nodes.all[at].cta).collect();
            ctas.sort_unstable();
            ctas.dedup();
            match ctas[..] {
                [one] => format!("in {}", in_cta(one)),
                _ => format!("of {}", counted(ctas.len() as u64, "CTA")),
            }
        }
        HangKind::LostToken => format!("at {}", word()),
        HangKind::Stale => format!("of {} in the L1 of SM {}", word(), scene.ctas[node.cta].cta.sm),
        HangKind::NotResident => {
            let grid = scene.launch.shape.ctas();
            format!("({} of {})", grouped(scene.unstarted), grouped(grid))
        }
        HangKind::Starved | HangKind::Livelock | HangKind::Unknown => String::new(),
    }
}

/// How to repair waits for phases of mbarriers.
fn of_mbarrier(phases: &[&Phase]) -> String {
    if phases.iter().any(|phase| phase.misses_bytes()) {
        return "announce as many bytes (expect_tx) as the copies of the phase bring".to_string();
    }
    let arrive = "let as many threads arrive as the mbarrier was initialised for";
    match phases.iter().find(|phase| phase.is_new()).and_then(|phase| phase.parity) {
        Some(parity) => {
            format!("{arrive}, or wait for parity {} if the phase that ended before is meant", 1 - parity)
        }
        None => arrive.to_string(),
    }
}

/// How to repair the cause.
pub(super) fn help<const N: usize>(
    scene: &Scene<'_, N>,
    nodes: &Nodes,
    cause: &Cause,
    reason: &HangReason,
) -> String {
    let doing = |wanted: fn(&Doing) -> bool| cause.nodes.iter().any(|&at| wanted(&nodes.all[at].doing));
    let chip = scene.launch.chip;
    let bit = doing(|d| matches!(d, Doing::Poll(poll) if matches!(poll.until, Until::Free(_))));
    let (advice, section) = match cause.kind {
        HangKind::Alias => {
            let bits = chip.lock.bits.max(1);
            let advice = format!(
                "words {} bytes apart share a lock bit: use other addresses, at most {} an SM",
                grouped(4 * u64::from(bits)),
                counted(bits.into(), "lock")
            );
            (advice, "lock-alias")
        }
        HangKind::SimdDeadlock if bit => (
            "free the bit inside the loop that takes it, on the path of the lanes that did".to_string(),
            "simd-deadlock",
        ),
        HangKind::SimdDeadlock if chip.sm.divergence == Divergence::SimtStack => {
            let lock = doing(|d| matches!(d, Doing::Poll(poll) if poll.atomic));
            let repair = if lock {
                "release the lock inside the loop that takes it"
            } else {
                "let no lane of a warp wait for another"
            };
            (format!("{repair}, or run a chip with independent threads (--chip h200)"), "simd-deadlock")
        }
        HangKind::SimdDeadlock => (
            "let every lane that the instruction names reach it before it waits".to_string(),
            "simd-deadlock",
        ),
        HangKind::LockCycle if cause.nodes.iter().any(|&at| scene.is_blocked(&nodes.all[at])) => (
            "give every lock back before waiting for another, take them in the same order everywhere, \
             or let warps spin (--set lock_queue.mode=off)"
                .to_string(),
            "lock-cycle",
        ),
        HangKind::LockCycle if cause.nodes.len() == 1 => {
            ("release the lock before it is taken again".to_string(), "lock-cycle")
        }
        HangKind::LockCycle => ("take locks in the same order everywhere".to_string(), "lock-cycle"),
        HangKind::WaitCycle => (
            "let one of them write its word before it waits for that of another".to_string(),
            "circular-wait",
        ),
        HangKind::Barrier if doing(|d| matches!(d, Doing::Mbarrier { .. })) => {
            let phases = cause.nodes.iter().filter_map(|&at| match &nodes.all[at].doing {
                Doing::Mbarrier { phase, .. } => Some(phase),
                _ => None,
            });
            (of_mbarrier(&phases.collect::<Vec<_>>()), "barrier-deadlock")
        }
        HangKind::Barrier if doing(|d| matches!(d, Doing::ClusterBarrier)) => {
            ("let every thread of the cluster arrive at its barrier, or end".to_string(), "barrier-deadlock")
        }
        HangKind::Barrier => (
            "let every thread that the barrier counts come to it, outside of divergent code".to_string(),
            "barrier-deadlock",
        ),
        HangKind::Stale => (
            "read it past the L1: volatile, __ldcg, an atomic, or cuda::atomic_ref".to_string(),
            "stale-copy",
        ),
        HangKind::LostToken
            if cause.nodes.iter().any(|&at| nodes.all[at].poll().is_some_and(|p| p.changed_by.is_some())) =>
        {
            let repair =
                "change the word back on every way out of the section it guards, or wait for another value";
            (repair.to_string(), "lost-token")
        }
        HangKind::LostToken
            if cause.nodes.iter().any(|&at| nodes.all[at].poll().is_some_and(|p| p.taker.is_some())) =>
        {
            let repair = if bit {
                "free the bit (wl.stsul) on every way out of the section it guards"
            } else {
                "release the lock on every way out of the section it guards"
            };
            (repair.to_string(), "lost-token")
        }
        HangKind::LostToken => (
            "write the word before those who write it end, or wait for something else".to_string(),
            "lost-token",
        ),
        HangKind::NotResident => {
            let room = chip.sm.count as u64 * scene.launch.occupancy.ctas_per_sm as u64;
            let advice = format!(
                "launch at most {} that wait for each other: {} on each of {}",
                counted(room, "CTA"),
                scene.launch.occupancy.ctas_per_sm,
                counted(chip.sm.count as u64, "SM"),
            );
            (advice, "ctas-that-cannot-start")
        }
        HangKind::Starved => (
            "let firmware restart wavefronts that yielded, or start what they wait for".to_string(),
            "nothing-to-start",
        ),
        HangKind::Endless => ("look at what ends the loop".to_string(), "endless-loop"),
        HangKind::Unknown if *reason == HangReason::Blocked => {
            ("let every thread that others wait for come to them".to_string(), "barrier-deadlock")
        }
        HangKind::Livelock | HangKind::Unknown => {
            ("look at what ends the loops".to_string(), "suspicion-and-limits")
        }
    };
    format!("{advice}; see docs/hangs.md#{section}")
}
