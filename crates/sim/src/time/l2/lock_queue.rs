//! Blocking locks: threads whose try at a lock failed wait in its queue at the L2, and their warp sleeps (`lock_queue.mode`).
//!
//! An atomic that tries to take a lock executes at its slice as always. A lane that found the lock taken is entered in the
//! queue of the word, or of its line; if all lanes of the instruction are queued, their warp is blocked. Whoever writes
//! the word such that a try would succeed lets the first in the queue go on: it is taken out and a *grant* goes to its SM.
//! Its next try normally succeeds. If a thread that came by was faster, it is queued again, at the end.
//!
//! No grant is lost: who has one and goes for another lock, or ends, hands it on. So while a free lock has a queue, some
//! thread is on its way to it.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use warploom_isa::{AtomOp, Ty};

use crate::chip::Chip;
use crate::chip::spinning::QueueMode;
use crate::exec::lanes::{AtomicUnit, atomic};
use crate::exec::locks::holders::LockStats;
use crate::exec::memory::access::{MemoryOp, WarpAccess};
use crate::exec::memory::store::Memory;
use crate::kit::bits::lanes as each;
use crate::kit::ids::WarpSlot;
use crate::time::l2::map::AddressMap;
use crate::time::probe::Probe;
use crate::time::sm::load_store::Purpose;
use crate::time::sm::{Context, Sm};

/// A lane of a warp slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Its SM.
    pub sm: u32,
    /// Its warp's slot.
    pub slot: WarpSlot,
    /// Its number in the warp.
    pub lane: u32,
}

/// What a lane tries to do to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    op: AtomOp,
    ty: Ty,
    operands: [u64; 2],
}

impl Attempt {
    fn of<const N: usize>(access: &WarpAccess<N>, lane: usize) -> Option<Attempt> {
        let MemoryOp::Atomic { op, ty, .. } = access.kind else { return None };
        let attempt = Attempt { op, ty, operands: access.operands(lane) };
        // One that changes nothing whatever it finds only reads.
        let takes = [0, u64::MAX, attempt.operands[0]].into_iter().any(|found| attempt.takes(found));
        takes.then_some(attempt)
    }

    /// Whether it takes a lock that it finds so.
    fn takes(&self, found: u64) -> bool {
        let found = found & (u64::MAX >> (64 - self.ty.bits()));
        let [b, c] = self.operands;
        atomic(AtomicUnit::L2, self.op, self.ty, [found, b, c]) != found
    }

    /// Whether it would take the lock at `word` now.
    fn takes_at(&self, memory: &Memory, word: u64) -> bool {
        let mut value = [0; 8];
        let bytes = self.ty.bytes() as usize;
        let Some(found) = memory.read(word, bytes) else { return false };
        value[..bytes].copy_from_slice(found);
        self.takes(u64::from_le_bytes(value))
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    lane: Lane,
    /// Which of the lane's entries it is; only the last one counts.
    number: u64,
    attempt: Attempt,
}

/// A lock with its queue; several locks, if they are in a line that has one queue.
#[derive(Debug, Default)]
struct Lock {
    /// Those that wait, and those that have left since.
    queue: VecDeque<Waiter>,
    waiting: u32,
    /// What the first of them wants, if all want the same.
    attempt: Option<Attempt>,
    mixed: bool,
    /// Words of the line that are locks.
    words: u64,
    /// Of those, the ones that are taken.
    held: u64,
}

/// Where a lane is queued.
#[derive(Clone, Copy, Debug)]
struct Place {
    word: u64,
    number: u64,
    attempt: Attempt,
    /// It was let go, of which its SM learns at this cycle, and has not tried again.
    granted: Option<u64>,
}

/// The queues of all slices.
#[derive(Debug)]
pub struct LockQueues {
    mode: QueueMode,
    map: AddressMap,
    line_bytes: u64,
    slices: u64,
    sets: u64,
    ways: u32,
    locks: FxHashMap<u64, Lock>,
    /// Locked lines of each set that has any.
    locked: FxHashMap<u64, u32>,
    places: FxHashMap<Lane, Place>,
    entered: u64,
    /// Who may go on.
    grants: Vec<Lane>,
    /// When they learn of it.
    arrival: u64,
    /// Counts since they were last taken.
    pub stats: LockStats,
}

impl LockQueues {
    /// Empty queues, if the chip has any.
    pub fn new(chip: &Chip) -> Option<Box<LockQueues>> {
        let spec = &chip.lock_queue;
        let cache = &chip.l2.cache;
        let or = |given: u32, default: u32| if given == 0 { default } else { given };
        (spec.mode != QueueMode::Off).then(|| {
            Box::new(LockQueues {
                mode: spec.mode,
                map: AddressMap::new(&chip.l2, &chip.dram),
                line_bytes: cache.line_bytes as u64,
                slices: chip.l2.slices_per_partition as u64,
                sets: or(spec.sets, cache.sets) as u64,
                ways: or(spec.ways, cache.ways),
                locks: FxHashMap::default(),
                locked: FxHashMap::default(),
                places: FxHashMap::default(),
                entered: 0,
                grants: Vec::new(),
                arrival: 0,
                stats: LockStats::default(),
            })
        })
    }

    /// A slice has served message `ticket` of an SM, and these lanes changed what they found. Returns who may go on. They
    /// learn of it at `arrival`; SMs have run until `now`.
    pub fn served<const N: usize, P: Probe>(
        &mut self,
        sm: &mut Sm<N, P>,
        context: &Context<'_>,
        memory: &Memory,
        (ticket, changed): (u32, u64),
        (now, arrival): (u64, u64),
    ) -> std::vec::Drain<'_, Lane> {
        self.arrival = arrival;
        let id = sm.id();
        let flight = &sm.memory.flights[ticket];
        if let (Purpose::Store | Purpose::Atomic, &[(access, lanes), ..]) =
            (flight.purpose, &flight.waiting[..])
        {
            let slot = sm.memory.transfers[access].pending.slot;
            let code = context.of(sm.kernel_of(slot)).code;
            let transfer = &mut sm.memory.transfers[access];
            let takes_lock = code[transfer.access.pc.index()].takes_lock;
            for lane in each(lanes) {
                let word = transfer.access.addresses.at(lane);
                match Attempt::of(&transfer.access, lane).filter(|_| takes_lock) {
                    Some(attempt) => {
                        let who = Lane { sm: id, slot, lane: lane as u32 };
                        if let Some(arrival) = self.places.get(&who).and_then(|place| place.granted) {
                            // It has come to the lock already.
                            let entry = &mut sm.slots[slot.index()];
                            if arrival >= now {
                                entry.stale_grants |= 1 << lane;
                            } else {
                                entry.granted &= !(1 << lane);
                            }
                        }
                        let took = changed >> lane & 1 == 1;
                        let queued = self.tried(memory, who, word, attempt, took);
                        transfer.pending.queued |= u64::from(queued) << lane;
                    }
                    None => {
                        let words = transfer.access.bytes.div_ceil(4) as u64;
                        (0..words).for_each(|at| self.wrote(memory, word + 4 * at));
                    }
                }
            }
        }
        self.grants.drain(..)
    }

    /// Lanes of a warp have ended. Returns who may go on; they learn of it at `arrival`.
    pub fn ended(
        &mut self,
        memory: &Memory,
        (sm, slot): (u32, WarpSlot),
        lanes: u64,
        arrival: u64,
    ) -> std::vec::Drain<'_, Lane> {
        self.arrival = arrival;
        for lane in each(lanes) {
            if let Some(place) = self.places.remove(&Lane { sm, slot, lane: lane as u32 }) {
                self.leave(memory, place, true);
            }
        }
        self.grants.drain(..)
    }

    /// A lane tried to take a lock. Returns whether it is in its queue.
    fn tried(&mut self, memory: &Memory, lane: Lane, word: u64, attempt: Attempt, took: bool) -> bool {
        if let Some(place) = self.places.get(&lane).copied() {
            if !took && place.granted.is_none() && (place.word, place.attempt) == (word, attempt) {
                return true;
            }
            self.places.remove(&lane);
            self.leave(memory, place, place.word != word);
        }
        if took {
            self.hold(word);
            self.let_go(memory, word);
            return false;
        }
        if attempt.takes_at(memory, word) {
            return false;
        }
        if !self.track(word) {
            self.stats.not_queued += 1;
            return false;
        }
        let (key, bit) = (self.key(word), self.bit(word));
        self.entered += 1;
        let number = self.entered;
        let lock = self.locks.get_mut(&key).expect("tracked");
        lock.queue.push_back(Waiter { lane, number, attempt });
        lock.waiting += 1;
        lock.words |= bit;
        lock.mixed |= lock.attempt.is_some_and(|first| first != attempt);
        lock.attempt = Some(attempt);
        self.places.insert(lane, Place { word, number, attempt, granted: None });
        self.stats.queued += 1;
        true
    }

    /// Somebody wrote a word, other than by taking a lock.
    fn wrote(&mut self, memory: &Memory, word: u64) {
        let (key, bit) = (self.key(word), self.bit(word));
        if let Some(lock) = self.locks.get_mut(&key).filter(|lock| lock.words & bit != 0) {
            lock.held &= !bit;
            self.let_go(memory, word);
            self.drop_if_idle(key);
        }
    }

    /// The first in the queue who would take a lock that is as `word` is now may go on.
    fn let_go(&mut self, memory: &Memory, word: u64) {
        let key = self.key(word);
        let Some(lock) = self.locks.get_mut(&key).filter(|lock| lock.waiting > 0) else { return };
        if !lock.mixed && lock.attempt.is_some_and(|attempt| !attempt.takes_at(memory, word)) {
            return;
        }
        let places = &mut self.places;
        let waits = |waiter: &Waiter| {
            places
                .get(&waiter.lane)
                .is_some_and(|place| place.number == waiter.number && place.granted.is_none())
        };
        while lock.queue.front().is_some_and(|first| !waits(first)) {
            lock.queue.pop_front();
        }
        let next = lock.queue.iter().position(|w| waits(w) && w.attempt.takes_at(memory, word));
        let Some(waiter) = next.and_then(|at| lock.queue.remove(at)) else { return };
        lock.waiting -= 1;
        if let Some(place) = places.get_mut(&waiter.lane) {
            place.granted = Some(self.arrival);
        }
        self.grants.push(waiter.lane);
        self.stats.granted += 1;
        self.drop_if_idle(key);
    }

    /// A lane is no longer at its place. If it goes elsewhere and had been let go, another may in its stead.
    fn leave(&mut self, memory: &Memory, place: Place, elsewhere: bool) {
        let key = self.key(place.word);
        if place.granted.is_none() {
            if let Some(lock) = self.locks.get_mut(&key) {
                lock.waiting -= 1;
            }
            self.drop_if_idle(key);
        } else if elsewhere {
            self.let_go(memory, place.word);
        }
    }

    /// A lock was taken: its line is locked, if its set has a way for it.
    fn hold(&mut self, word: u64) {
        if self.mode == QueueMode::Hql && self.track(word) {
            let (key, bit) = (self.key(word), self.bit(word));
            let lock = self.locks.get_mut(&key).expect("tracked");
            lock.words |= bit;
            lock.held |= bit;
        }
    }

    /// Makes sure that a word has a queue. Returns false if there is no room for it.
    fn track(&mut self, word: u64) -> bool {
        let key = self.key(word);
        if self.locks.contains_key(&key) {
            return true;
        }
        if self.mode == QueueMode::Hql {
            let locked = self.locked.entry(self.set(key)).or_default();
            if *locked == self.ways {
                return false;
            }
            *locked += 1;
        }
        self.locks.insert(key, Lock::default());
        true
    }

    /// Forgets a lock that nobody has or waits for.
    fn drop_if_idle(&mut self, key: u64) {
        if self.locks.get(&key).is_some_and(|lock| lock.waiting == 0 && lock.held == 0) {
            self.locks.remove(&key);
            if self.mode == QueueMode::Hql
                && let Some(locked) = self.locked.get_mut(&self.set(key))
            {
                *locked -= 1;
            }
        }
    }

    /// What of an address has a queue: its word, or its line.
    fn key(&self, word: u64) -> u64 {
        if self.mode == QueueMode::Hql { word & !(self.line_bytes - 1) } else { word }
    }

    fn bit(&self, word: u64) -> u64 {
        if self.mode == QueueMode::Hql { 1 << (word % self.line_bytes / 4 % 64) } else { 1 }
    }

    /// The set of a line, counted through all slices.
    fn set(&self, line: u64) -> u64 {
        let (partition, slice) = self.map.slice_of(line);
        let slice = partition as u64 * self.slices + slice as u64;
        slice * self.sets + self.map.line_in_slice(line) % self.sets
    }
}
