//! What looks wrong with the use of lock bits, noted while it happens: bits taken too late, and bits never freed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use warploom_isa::Pc;

use crate::locks::unit::{BitAccess, BitHolder, LockUnit};

/// Bits left taken that are listed one by one.
const SHOWN: usize = 4;

/// Misuse noticed on some SMs; `explain` puts it in words.
#[derive(Clone, Debug, Default)]
pub struct LockNotes {
    /// Loads that proceed as if they had the bit, by instruction: the first lane that did not, and how many.
    pub late: BTreeMap<Pc, (Late, u64)>,
    /// Bits that their CTA left taken.
    pub left: Vec<(u32, BitHolder)>,
    pub left_count: u64,
}

/// A lane that did not get the bit of `word` and goes on as if it had.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    pub who: BitAccess,
    pub lane: u32,
    pub bit: u32,
    pub word: u32,
    pub holder: Option<BitHolder>,
}

impl LockNotes {
    /// Lanes did not get their bits and ignore that: the first of them, its bit and word, and their number.
    pub fn too_late(
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

    /// Adds the notes of another SM.
    pub fn merge(&mut self, other: LockNotes) {
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
}
