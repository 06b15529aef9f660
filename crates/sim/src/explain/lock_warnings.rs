//! Warnings about lock bits in a launch that ended: bits taken too late, and bits never freed.

use crate::exec::fault::{Place, coordinates};
use crate::exec::launch::Launch;
use crate::exec::locks::holders::WarpName;
use crate::exec::locks::notes::{Late, LockNotes};
use crate::exec::locks::unit::BitHolder;
use crate::explain::hang::{grouped, shared_word};

/// A warning about the use of lock bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWarning {
    pub message: String,
    /// Lanes whose load came too late, or bits that were never freed.
    pub count: u64,
}

/// The warnings for `notes`, in program order.
pub(crate) fn lock_warnings(notes: &LockNotes, launch: &Launch<'_>) -> Vec<LockWarning> {
    let kernel = launch.kernel;
    let thread = |warp: WarpName, lane: u32| {
        format!("lane {lane} of warp {} of CTA {}", warp.warp, coordinates(launch.cta(warp.cta)))
    };
    let by = |holder: &BitHolder| {
        let place = Place::of(kernel, holder.taker.pc).short();
        format!(
            "{}, which took it for {} at {place}",
            thread(holder.taker.warp, holder.taker.lane),
            shared_word(kernel, holder.word.into())
        )
    };
    let late = notes.late.values().map(|(late, count)| {
        let Late { who, lane, bit, word, holder } = late;
        let holder = holder.as_ref().map_or_else(|| "an atomic".to_string(), by);
        let message = format!(
            "lock bit {bit} of {} taken too late: {} did not get it at {} and does not look\n      \
             held by {holder}\n      \
             help: put a barrier between this load and those who wait for the bit, or look at its predicate",
            shared_word(kernel, u64::from(*word)),
            thread(who.warp, *lane),
            Place::of(kernel, who.pc).short(),
        );
        LockWarning { message, count: *count }
    });
    let mut warnings: Vec<LockWarning> = late.collect();
    if notes.left_count > 0 {
        let bits = if notes.left_count == 1 { "lock bit was" } else { "lock bits were" };
        let mut message =
            format!("{} {bits} still taken when their CTA had ended", grouped(notes.left_count));
        for (bit, holder) in &notes.left {
            message += &format!("\n      bit {bit} by {}", by(holder));
        }
        let more = notes.left_count - notes.left.len() as u64;
        if more > 0 {
            message += &format!("\n      and {} more", grouped(more));
        }
        message += "\n      help: free every bit with a store that unlocks (wl.stsul) on every way out";
        warnings.push(LockWarning { message, count: notes.left_count });
    }
    warnings
}
