//! Loads of global memory outside of all allocations that read zeros ([`OutsideLoads::Zero`]), one note per
//! instruction.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use warploom_isa::Pc;

use crate::fault::{Place, coordinates};
use crate::launch::Launch;

/// What a load of global memory outside of all allocations does. Stores and atomics there always end the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutsideLoads {
    /// It ends the launch.
    #[default]
    Fault,
    /// In a page of 2 MiB that holds a part of an allocation it reads zeros, as a GPU, which maps such pages, lets it
    /// pass. Elsewhere, and where memory was freed, it ends the launch.
    Zero,
}

/// An instruction that loaded bytes of no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideLoad {
    /// The load by the first thread of the grid that did so, in words.
    pub message: String,
    /// Where the instruction is.
    pub place: String,
    /// How many times a thread did so; an asynchronous copy counts once per byte.
    pub count: u64,
}

/// The thread whose load is told: the first one of the grid, whatever the order in which the model executes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) cta: u64,
    pub(crate) warp: u32,
    pub(crate) lane: usize,
    pub(crate) thread: [u32; 3],
}

#[derive(Clone, Debug)]
struct Note {
    who: Who,
    what: String,
    count: u64,
}

/// The loads found so far, by instruction.
#[derive(Clone, Debug, Default)]
pub struct OutsideNotes(BTreeMap<Pc, Note>);

impl OutsideNotes {
    /// A thread loads outside; `what` says where.
    pub(crate) fn note(&mut self, pc: Pc, who: Who, what: impl FnOnce() -> String) {
        match self.0.entry(pc) {
            Entry::Vacant(place) => drop(place.insert(Note { who, what: what(), count: 1 })),
            Entry::Occupied(known) => {
                let known = known.into_mut();
                known.count += 1;
                if who < known.who {
                    (known.who, known.what) = (who, what());
                }
            }
        }
    }

    /// Adds the loads of another SM.
    pub fn merge(&mut self, other: OutsideNotes) {
        for (pc, note) in other.0 {
            match self.0.entry(pc) {
                Entry::Vacant(place) => drop(place.insert(note)),
                Entry::Occupied(known) => {
                    let known = known.into_mut();
                    let count = known.count + note.count;
                    if note.who < known.who {
                        *known = note;
                    }
                    known.count = count;
                }
            }
        }
    }

    /// In program order.
    pub fn explain(&self, launch: &Launch<'_>) -> Vec<OutsideLoad> {
        let told = |(&pc, note): (&Pc, &Note)| OutsideLoad {
            message: format!(
                "{} by thread {} of CTA {} reads zeros",
                note.what,
                coordinates(note.who.thread),
                coordinates(launch.cta(note.who.cta))
            ),
            place: Place::of(launch.kernel, pc).to_string(),
            count: note.count,
        };
        self.0.iter().map(told).collect()
    }
}
