//! Warnings about reads of memory that was never written, one per instruction.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use warploom_isa::{Kernel, Op, Pc};

use crate::execute::Cta;
use crate::fault::{Place, coordinates};
use crate::warp::Warp;

/// An instruction that read memory that was never written.
#[derive(Clone, Debug, PartialEq)]
pub struct UninitialisedRead {
    /// The first occurrence, in words.
    pub message: String,
    /// How many times a warp executed the instruction with such a read.
    pub count: u64,
}

/// The reads found so far, by instruction.
#[derive(Clone, Debug, Default)]
pub struct UninitialisedReads(BTreeMap<Pc, UninitialisedRead>);

impl UninitialisedReads {
    /// Records a read by the instruction at `pc`, with one of its lanes: (lane, space, address, bytes).
    pub fn note<const N: usize>(
        &mut self,
        kernel: &Kernel,
        cta: &Cta,
        warp: &Warp<N>,
        pc: Pc,
        (lane, space, address, bytes): (usize, &str, u64, u32),
    ) {
        let note = self.0.entry(pc).or_insert_with(|| UninitialisedRead {
            message: format!(
                "{} {bytes} {} of {space} memory at {address:#x}, which nobody wrote, by thread {} of CTA {}\n      \
                 at {}",
                if matches!(kernel.code[pc.index()].op, Op::Atom(..)) || kernel.atomic_at(pc).is_some() {
                    "atomic on"
                } else {
                    "load of"
                },
                if bytes == 1 { "byte" } else { "bytes" },
                coordinates(warp.thread(lane)),
                coordinates(cta.id),
                Place::of(kernel, pc)
            ),
            count: 0,
        });
        note.count += 1;
    }

    /// Adds the reads of another SM or window; for the same instruction, the message already here stays.
    pub fn merge(&mut self, other: UninitialisedReads) {
        for (pc, read) in other.0 {
            match self.0.entry(pc) {
                Entry::Occupied(mut known) => known.get_mut().count += read.count,
                Entry::Vacant(place) => drop(place.insert(read)),
            }
        }
    }

    /// In program order.
    pub fn into_vec(self) -> Vec<UninitialisedRead> {
        self.0.into_values().collect()
    }
}
