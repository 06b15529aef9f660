//! Livelock: locks are taken and released, but far too rarely, because spinning warps take the issue slots and memory
//! bandwidth that lock holders need.

use super::*;
use crate::exec::fault::coordinates;
use crate::explain::hang::scene::{Doing, Node, Nodes, Scene, Seen};
use crate::explain::hang::words::counted;
use crate::time::machine::LockPace;
use crate::time::sm::probe::State;

/// Details of a livelock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Livelock {
    /// Attempts at locks in the last cycles.
    pub pace: LockPace,
    pub spinning_warps: u64,
    /// Warps that hold locks that others wait for, the longest without progress first; only the first few.
    pub holders: Vec<SlowHolder>,
    /// Holders that are left out.
    pub more_holders: u64,
    /// The warp scheduling policy, and whether spinning warps back off (BOWS).
    pub policy: (String, bool),
    /// Whether the policy is GTO with an order that rotates.
    pub rotates: bool,
}

/// A warp that holds locks and makes no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowHolder {
    pub cta: [u32; 3],
    /// Number in the CTA.
    pub warp: u32,
    /// Locks that it holds and others wait for.
    pub locks: u64,
    pub place: Place,
    pub state: State,
    /// How long it has been in that state.
    pub cycles: u64,
}

/// Most holders that a message lists.
const SHOWN: usize = 4;

/// Fewer failed attempts than this are no evidence.
const MIN_FAILURES: u64 = 1000;

/// At least this many failed attempts per lock taken are a livelock; fewer are contention.
const FAILURES_PER_LOCK: u64 = 100;

/// Details of a livelock, if nearly all attempts at locks failed although locks were taken or some holder could run.
pub(super) fn find<const N: usize>(scene: &Scene<'_, N>, nodes: &Nodes) -> Option<Livelock> {
    let timed = scene.timed.as_ref()?;
    let pace = timed.pace;
    if pace.failed < MIN_FAILURES || pace.failed / pace.taken.max(1) < FAILURES_PER_LOCK {
        return None;
    }
    // For each warp that holds locks: a node of it, and the words.
    let mut held: Vec<(usize, Vec<&Word>)> = Vec::new();
    let mut one_runs = false;
    for node in &nodes.all {
        let Some(poll) = node.poll() else { continue };
        let Some(holder) = poll.lock_taker().and_then(|taker| nodes.holder(taker)) else { continue };
        one_runs |= nodes.all[holder].doing == Doing::Run;
        let same = |at: usize| (nodes.all[at].cta, nodes.all[at].warp);
        match held.iter_mut().find(|(known, _)| same(*known) == same(holder)) {
            Some((_, words)) if words.contains(&&poll.word) => {}
            Some((_, words)) => words.push(&poll.word),
            None => held.push((holder, vec![&poll.word])),
        }
    }
    if pace.taken == 0 && !one_runs {
        return None;
    }
    let mut holders: Vec<SlowHolder> =
        held.into_iter().filter_map(|(at, words)| slow(scene, &nodes.all[at], words.len() as u64)).collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.cycles), holder.cta, holder.warp));
    let more_holders = holders.len().saturating_sub(SHOWN) as u64;
    holders.truncate(SHOWN);
    let policy = (timed.policy.to_string(), timed.bows);
    let spins = |seen: &Seen<'_, N>| {
        let live = (0..seen.warps.len()).filter(|&warp| !seen.warps[warp].is_done());
        live.filter(|&warp| seen.slot(warp).is_some_and(|slot| slot.spins())).count() as u64
    };
    let spinning_warps = scene.ctas.iter().map(spins).sum();
    let rotates = scene.launch.chip.issue.gto.rotation_cycles > 0;
    Some(Livelock { pace, spinning_warps, holders, more_holders, policy, rotates })
}

fn slow<const N: usize>(scene: &Scene<'_, N>, node: &Node, locks: u64) -> Option<SlowHolder> {
    let seen = &scene.ctas[node.cta];
    let slot = seen.slot(node.warp)?;
    let pc = seen.warps[node.warp].control.current().map_or(node.pc, |path| path.pc);
    let cycles = scene.timed.as_ref()?.now.saturating_sub(slot.since());
    let place = Place::of(scene.kernel(), pc);
    Some(SlowHolder { cta: seen.cta.id, warp: node.warp as u32, locks, place, state: slot.state(), cycles })
}

impl SlowHolder {
    fn text(&self) -> String {
        let (at, cycles) = (self.place.short(), counted(self.cycles, "cycle"));
        let locks = counted(self.locks, "lock");
        match self.state {
            State::Ready => {
                format!("holds {locks} and could go on at {at}, but was not chosen for {cycles}")
            }
            State::LongScoreboard | State::ShortScoreboard => {
                format!("holds {locks} and waits at {at} for memory, for {cycles}")
            }
            State::Membar => {
                format!("holds {locks} and waits at {at} until its accesses are done, for {cycles}")
            }
            State::LockQueue => format!("holds {locks} and waits at {at} in a lock queue, for {cycles}"),
            state => {
                format!("holds {locks} and is at {at} ({}, for {cycles})", state.name().replace('_', " "))
            }
        }
    }
}

impl Livelock {
    /// The lines of the message: label and text.
    pub(super) fn lines(&self, live_warps: u64) -> Vec<(String, String)> {
        let LockPace { cycles, taken, failed } = self.pace;
        let mut lines = vec![(
            "locks".to_string(),
            format!(
                "{} taken and {} failed in the last {}",
                grouped(taken),
                counted(failed, "try").replace("trys", "tries"),
                counted(cycles, "cycle")
            ),
        )];
        for holder in &self.holders {
            let who = format!("warp {} of CTA {}", holder.warp, coordinates(holder.cta));
            lines.push((who, holder.text()));
        }
        if self.more_holders > 0 {
            lines.push((format!("and {}", counted(self.more_holders, "more holder")), String::new()));
        }
        let (policy, bows) = &self.policy;
        lines.push((
            "others".to_string(),
            format!(
                "{} of {} spin: under {policy} {} BOWS their tries take issue slots, load/store units and the L2 \
                 from those that hold locks",
                grouped(self.spinning_warps),
                counted(live_warps, "warp"),
                if *bows { "with" } else { "without" }
            ),
        ));
        lines
    }

    pub(super) fn help(&self) -> String {
        let (policy, bows) = &self.policy;
        let back_off = if *bows { "" } else { "let warps that spin back off (--bows), " };
        let other = match &policy[..] {
            "gto" if self.rotates => "--sched lrr",
            "gto" => "--sched lrr or --set issue.gto.rotation_cycles=50000",
            "lrr" => "--sched cawa",
            _ => "--sched lrr",
        };
        format!("{back_off}try another policy ({other}), or launch fewer threads")
    }
}
