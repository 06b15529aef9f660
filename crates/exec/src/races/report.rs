//! Races in words: who accessed what, and where in the program.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use warploom_isa::{Kernel, Pc, Space};

use crate::fault::{Place, coordinates};
use crate::launch::Launch;
use crate::memory::store::Memory;
use crate::races::shadow::{Kind, Record};

/// Two instructions whose accesses race. The threads and the word are those of the first occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The memory: a buffer, a variable, or `shared memory`.
    pub memory: String,
    /// The first byte that both access, from the start of `memory`.
    pub offset: u64,
    /// How many bytes of one word both access.
    pub bytes: u32,
    /// The earlier and the later one, as the simulator executed them.
    pub accesses: [RaceAccess; 2],
    /// How often the two instructions raced, counted once per lane and word.
    pub count: u64,
}

/// One of the accesses of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceAccess {
    /// `read`, `write`, `volatile read`, `atomic` and the like.
    pub kind: &'static str,
    /// The CTA's coordinates in the grid.
    pub cta: [u32; 3],
    /// The thread's coordinates in the CTA.
    pub thread: [u32; 3],
    pub place: Place,
}

impl fmt::Display for RaceAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (thread, cta) = (coordinates(self.thread), coordinates(self.cta));
        write!(f, "{} by thread {thread} of CTA {cta}\n      at {}", self.kind, self.place)
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Race { memory, offset, bytes, accesses: [first, second], .. } = self;
        let bytes = if *bytes == 1 { "1 byte".to_string() } else { format!("{bytes} bytes") };
        write!(f, "race on {bytes} of {memory} at byte {offset}: {first}\n    and {second}")
    }
}

/// A race as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    accesses: [Record; 2],
    space: Space,
    /// Of the word.
    address: u64,
    count: u64,
}

impl Found {
    /// Counts a race of two accesses to the word at `address`.
    #[cold]
    pub(super) fn note(
        found: &mut BTreeMap<(u32, u32), Found>,
        (old, new): (Record, Record),
        (space, address): (Space, u64),
    ) {
        match found.entry((old.pc().min(new.pc()), old.pc().max(new.pc()))) {
            Entry::Occupied(mut known) => known.get_mut().count += 1,
            Entry::Vacant(free) => {
                free.insert(Found { accesses: [old, new], space, address, count: 1 });
            }
        }
    }

    pub(super) fn explain(
        self,
        launch: &Launch<'_>,
        memory: &Memory,
        lanes: usize,
        warps_per_cta: usize,
    ) -> Race {
        let [old, new] = self.accesses;
        let mask = old.mask() & new.mask();
        let address = self.address + u64::from(mask.trailing_zeros());
        let (name, offset) = match self.space {
            Space::Shared => shared_name(launch.kernel, address),
            _ => {
                memory.name(address).map_or(("global memory".into(), address), |(name, at)| (name.into(), at))
            }
        };
        let access = |record: Record, other: &Record| {
            // Of several lanes that read together, one that is not the other access's.
            let same = record.warp == other.warp && record.first == other.first;
            let lane = if same { record.last } else { record.first };
            let (cta, warp) = (record.warp as usize / warps_per_cta, record.warp as usize % warps_per_cta);
            let [x, y, _] = launch.shape.block;
            let thread = (warp * lanes) as u32 + u32::from(lane);
            RaceAccess {
                kind: name_of(record.kind()),
                cta: launch.shape.cta(cta as u64),
                thread: [thread % x, thread / x % y, thread / x / y],
                place: Place::of(launch.kernel, Pc(record.pc())),
            }
        };
        Race {
            memory: name,
            offset,
            bytes: mask.count_ones(),
            accesses: [access(old, &new), access(new, &old)],
            count: self.count,
        }
    }
}

fn name_of(kind: Kind) -> &'static str {
    match (kind.atomic, kind.strong, kind.write) {
        (true, ..) => "atomic",
        (_, true, false) => "volatile read",
        (_, true, true) => "volatile write",
        (_, false, false) => "read",
        (_, false, true) => "write",
    }
}

/// The variable of shared memory that holds an address, and the offset in it; or all of it.
fn shared_name(kernel: &Kernel, address: u64) -> (String, u64) {
    let holds = |start: u32, bytes: u32| address.wrapping_sub(u64::from(start)) < u64::from(bytes);
    match kernel.shared.iter().find(|variable| holds(variable.offset, variable.bytes)) {
        Some(variable) => (format!("shared `{}`", variable.name), address - u64::from(variable.offset)),
        None => ("shared memory".to_string(), address),
    }
}
