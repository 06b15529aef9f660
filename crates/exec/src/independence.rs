//! Whether the CTAs of a launch can run one after the other.
//!
//! The state of one CTA fits the host's caches. That of all CTAs which a large chip holds does not, and most launches
//! are of CTAs that have nothing to do with each other.

use warploom_isa::{Op, Space};

use crate::executed::is_clock;
use crate::launch::Launch;

/// Whether no CTA can wait for another, and none can tell in which order they run but by a race. A launch with a limit
/// is to show what all of them do by then.
pub(crate) fn are_independent(launch: &Launch<'_>) -> bool {
    let Launch { kernel, limits, clusters, workspace, races, .. } = launch;
    let unseen = limits.max_cycles.is_none() && races.is_none();
    unseen
        && !clusters
        && *workspace == 0
        && !kernel.may_wait()
        && !kernel.code.iter().any(|inst| shows_order(inst.op))
}

/// Whether an instruction lets a CTA, or the user, see in which order CTAs run.
fn shows_order(op: Op) -> bool {
    match op {
        Op::Atom(_, access) => access.space != Space::Shared,
        Op::SurfaceRed(..)
        | Op::Bulk(_)
        | Op::LdLock(_)
        | Op::StUnlock(_)
        | Op::Yield
        | Op::Printf
        | Op::AssertFail => true,
        op => is_clock(op),
    }
}
