//! What looks wrong with the use of lock bits in a launch that ends: bits taken too late, and bits never freed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use warploom_isa::{Kernel, Pc};

use crate::fault::{Place, coordinates};
use crate::gpu::Shape;
use crate::hang::{grouped, shared_word};
use crate::sm::lock_unit::{BitAccess, BitHolder, LockUnit};

/// Bits left taken that are told one by one.
const SHOWN: usize = 4;

/// What was noticed on some SMs, not yet in words.
#[derive(Clone, Debug, Default)]
pub struct LockWarnings {
    /// Loads that go on as if they had the bit, by instruction: the first that had not, and how many.
    late: BTreeMap<Pc, (Late, u64)>,
    /// Bits that their CTA left taken.
    left: Vec<(u32, BitHolder)>,
    left_count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Late {
    who: BitAccess,
    lane: u32,
    bit: u32,
    word: u32,
    holder: Option<BitHolder>,
}

/// A warning about a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWarning {
    /// In words.
    pub message: String,
    /// How often: in lanes for loads that came too late, in bits for those left taken.
    pub count: u64,
}

impl LockWarnings {
    /// Lanes did not get their bits and do not look: the first of them, its bit and word, and how many they are.
    pub(crate) fn too_late(
        &mut self,
        (who, lane, bit, word, lanes): (BitAccess, u32, u32, u32, u32),
        holder: Option<BitHolder>,
    ) {
        let late = Late { who, lane, bit, word, holder };
        self.late.entry(who.pc).or_insert((late, 0)).1 += u64::from(lanes);
    }

    /// A CTA has ended; bits that it took stay taken.
    pub fn cta_ended(&mut self, unit: &LockUnit, cta: u64) {
        for (bit, holder) in unit.held().filter(|(_, holder)| holder.taker.warp.cta == cta) {
            self.left_count += 1;
            if self.left.len() < SHOWN {
                self.left.push((bit, holder));
            }
        }
    }

    /// Adds what was noticed elsewhere.
    pub fn merge(&mut self, other: LockWarnings) {
        for (pc, (late, count)) in other.late {
            match self.late.entry(pc) {
                Entry::Occupied(mut known) => known.get_mut().1 += count,
                Entry::Vacant(place) => drop(place.insert((late, count))),
            }
        }
        self.left_count += other.left_count;
        self.left.extend(other.left);
        self.left.truncate(SHOWN);
    }

    /// In words, in the order of the program.
    pub fn told(&self, kernel: &Kernel, shape: &Shape) -> Vec<LockWarning> {
        let thread = |warp: crate::locks::WarpName, lane: u32| {
            format!("lane {lane} of warp {} of CTA {}", warp.warp, coordinates(shape.cta(warp.cta)))
        };
        let by = |holder: &BitHolder| {
            let place = Place::of(kernel, holder.taker.pc).short();
            format!(
                "{}, which took it for {} at {place}",
                thread(holder.taker.warp, holder.taker.lane),
                shared_word(kernel, holder.word.into())
            )
        };
        let late = self.late.values().map(|(late, count)| {
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
        let mut told: Vec<LockWarning> = late.collect();
        if self.left_count > 0 {
            let bits = if self.left_count == 1 { "lock bit was" } else { "lock bits were" };
            let mut message =
                format!("{} {bits} still taken when their CTA had ended", grouped(self.left_count));
            for (bit, holder) in &self.left {
                message += &format!("\n      bit {bit} by {}", by(holder));
            }
            let more = self.left_count - self.left.len() as u64;
            if more > 0 {
                message += &format!("\n      and {} more", grouped(more));
            }
            message += "\n      help: free every bit with a store that unlocks (wl.stsul) on every way out";
            told.push(LockWarning { message, count: self.left_count });
        }
        told
    }
}
