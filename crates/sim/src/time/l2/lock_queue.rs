//! Blocking locks: a thread that fails to take a lock waits in the lock's queue at the L2, and its warp sleeps
//! (`lock_queue.mode`).
//!
//! An atomic that tries to take a lock executes at its slice like any other. A lane that finds the lock taken is
//! entered in the queue of the word, or of its line. If all lanes of the instruction are queued, their warp is blocked.
//! A write after which an attempt would succeed releases the first lane in the queue: the lane is taken out and a
//! *grant* goes to its SM. Its next attempt normally succeeds. If another thread was faster, the lane is queued again,
//! at the end.
//!
//! No grant is lost: a lane that has one and tries another lock, or ends, hands it on. So while a free lock has a
//! queue, some thread is about to try it. The exception are words that share a queue
//! ([`LockQueues::grant_sleeper`]).
//!
//! The queues know lanes, words and attempts only. `machine/lock_queues.rs` reads these from the SMs' accesses.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use warploom_isa::{AtomOp, Ty};

use crate::chip::Chip;
use crate::chip::spinning::QueueMode;
use crate::exec::lanes::{AtomicUnit, atomic};
use crate::exec::locks::holders::LockStats;
use crate::exec::memory::store::Memory;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::line::LineAddress;
use crate::time::map::AddressMap;

/// A lane of a warp slot of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    pub sm: u32,
    pub slot: WarpSlot,
    pub lane: u32,
}

/// The atomic operation by which a lane tries to take a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    op: AtomOp,
    ty: Ty,
    operands: [u64; 2],
}

impl Attempt {
    /// `None` for an operation that changes nothing whatever it finds: it only reads. Only a comparison has a second
    /// operand; that of other operations is 0.
    pub(crate) fn new(op: AtomOp, ty: Ty, operands: [u64; 2]) -> Option<Attempt> {
        let attempt = Attempt { op, ty, operands };
        let takes = [0, u64::MAX, operands[0]].into_iter().any(|found| attempt.takes(found));
        takes.then_some(attempt)
    }

    /// Whether it takes a lock whose word is `found`.
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
    /// Which of the lane's entries this is; only the last one counts.
    number: u64,
    attempt: Attempt,
}

/// A lock with its queue; several locks, if they are in a line that has one queue.
#[derive(Debug, Default)]
struct Lock {
    /// Lanes that wait, and lanes that have left since.
    queue: VecDeque<Waiter>,
    waiting: u32,
    /// The attempt of all that wait, unless they are `mixed`.
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
    /// It was granted the lock, its SM gets the grant at this cycle, and it has not tried again.
    granted: Option<Cycle>,
}

/// The queues of all slices.
#[derive(Debug)]
pub(crate) struct LockQueues {
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
    grants: Vec<Lane>,
    /// When grants made now reach their SMs.
    arrival: Cycle,
    /// Counts since they were last taken.
    pub stats: LockStats,
}

impl LockQueues {
    /// Empty queues, if the chip has any.
    pub(crate) fn new(chip: &Chip) -> Option<Box<LockQueues>> {
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
                arrival: Cycle(0),
                stats: LockStats::default(),
            })
        })
    }

    /// Grants made from now on reach their SMs at cycle `arrival`.
    pub(crate) fn grant_at(&mut self, arrival: Cycle) {
        self.arrival = arrival;
    }

    /// Takes the grants made since the last call.
    pub(crate) fn take_grants(&mut self) -> std::vec::Drain<'_, Lane> {
        self.grants.drain(..)
    }

    /// When the grant of a lane reaches its SM, if the lane has one and has not tried again.
    pub(crate) fn granted_at(&self, lane: Lane) -> Option<Cycle> {
        self.places.get(&lane)?.granted
    }

    /// A lane has ended.
    pub(crate) fn ended(&mut self, memory: &Memory, lane: Lane) {
        if let Some(place) = self.places.remove(&lane) {
            self.leave(memory, place, true);
        }
    }

    /// A lane tried to take the lock at `word`. Returns whether it waits in the lock's queue.
    pub(crate) fn tried(
        &mut self,
        memory: &Memory,
        lane: Lane,
        word: u64,
        attempt: Attempt,
        took: bool,
    ) -> bool {
        if let Some(place) = self.places.get(&lane).copied() {
            if !took && place.granted.is_none() && (place.word, place.attempt) == (word, attempt) {
                return true;
            }
            self.places.remove(&lane);
            self.leave(memory, place, place.word != word);
        }
        if took {
            self.hold(word);
            self.grant_next(memory, word);
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

    /// A word was written, other than by taking a lock.
    pub(crate) fn wrote(&mut self, memory: &Memory, word: u64) {
        let (key, bit) = (self.key(word), self.bit(word));
        if let Some(lock) = self.locks.get_mut(&key).filter(|lock| lock.words & bit != 0) {
            lock.held &= !bit;
            self.grant_next(memory, word);
            self.drop_if_idle(key);
        }
    }

    /// Grants the lock at `word`, as it is now, to the first lane in the queue whose attempt would take it.
    fn grant_next(&mut self, memory: &Memory, word: u64) {
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

    /// Grants the lane that waits longest for a lock which is free. Returns whether there is one.
    ///
    /// Where words of a line share a queue, a grant can go to a lane that waits for another word, whose lock is still
    /// taken. If nobody writes to the line after that, the lanes that wait for the free word would sleep for ever.
    pub(crate) fn grant_sleeper(&mut self, memory: &Memory) -> bool {
        let sleeps = |(_, place): &(&Lane, &Place)| {
            place.granted.is_none() && place.attempt.takes_at(memory, place.word)
        };
        let first = self.places.iter().filter(sleeps).min_by_key(|(_, place)| place.number);
        let Some((&lane, &place)) = first else { return false };
        let key = self.key(place.word);
        if let Some(lock) = self.locks.get_mut(&key) {
            lock.queue.retain(|waiter| waiter.number != place.number);
            lock.waiting -= 1;
        }
        self.places.insert(lane, Place { granted: Some(self.arrival), ..place });
        self.grants.push(lane);
        self.stats.granted += 1;
        self.drop_if_idle(key);
        true
    }

    /// A lane has left its place. If it had a grant and does not try this lock again, the grant goes to the next lane.
    fn leave(&mut self, memory: &Memory, place: Place, elsewhere: bool) {
        let key = self.key(place.word);
        if place.granted.is_none() {
            if let Some(lock) = self.locks.get_mut(&key) {
                lock.waiting -= 1;
            }
            self.drop_if_idle(key);
        } else if elsewhere {
            self.grant_next(memory, place.word);
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

    /// Forgets a lock that nobody holds or waits for.
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

    /// The address that has a queue: of the word, or of its line.
    fn key(&self, word: u64) -> u64 {
        if self.mode == QueueMode::Hql { LineAddress::of(word, self.line_bytes).0 } else { word }
    }

    fn bit(&self, word: u64) -> u64 {
        if self.mode == QueueMode::Hql { 1 << (word % self.line_bytes / 4 % 64) } else { 1 }
    }

    /// The set of the line at address `key`, counted through all slices.
    fn set(&self, key: u64) -> u64 {
        let line = LineAddress(key);
        let (partition, slice) = self.map.slice_of(line);
        let slice = partition as u64 * self.slices + slice as u64;
        slice * self.sets + self.map.line_in_slice(line).0 % self.sets
    }
}
