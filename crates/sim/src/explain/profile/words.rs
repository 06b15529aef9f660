//! Words of memory through which threads wait for each other: who took, held, polled and wrote each of them, and how
//! long that took.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warploom_isa::Pc;

use crate::exec::locks::holders::WarpName;
use crate::explain::profile::span::Span;
use crate::kit::cycle::Cycle;

/// Words that are followed one by one. Of further ones only the tries are counted.
const MOST_WORDS: usize = 1 << 16;

/// Long waits that are remembered for each word.
pub(super) const LONGEST_WAITS: usize = 3;

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WordPlace {
    /// The CTA whose shared memory it is in; `u64::MAX` for global memory.
    cta: u64,
    address: u64,
}

impl WordPlace {
    pub(super) fn global(address: u64) -> WordPlace {
        WordPlace { cta: u64::MAX, address }
    }

    pub(super) fn shared(cta: u64, address: u64) -> WordPlace {
        WordPlace { cta, address }
    }

    /// The place's entry in the table of known words.
    #[inline]
    fn entry(self) -> usize {
        ((self.address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - KNOWN_BITS)) as usize
    }
}

/// No CTA has this number, and it does not stand for global memory.
const NO_CTA: u64 = u64::MAX - 1;

/// Entries of the table of known words, as a power of two.
const KNOWN_BITS: u32 = 12;

/// An entry of the table of known words.
#[derive(Clone, Copy, Debug)]
struct Known {
    place: WordPlace,
    /// The word's place in `words`; [`NO_WORD`] if no word with this entry was ever followed.
    id: u32,
}

const NO_WORD: u32 = u32::MAX;
const UNKNOWN: Known = Known { place: WordPlace { cta: 0, address: 0 }, id: NO_WORD };

/// A thread of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) warp: WarpName,
    pub(super) lane: u32,
}

/// A thread's try at a word, or the end of its wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    pub(super) now: Cycle,
    /// When its first try issued.
    pub(super) since: Cycle,
    /// When this try issued.
    pub(super) issued: Cycle,
    pub(super) pc: Pc,
    /// An earlier try failed.
    pub(super) queued: bool,
}

/// How often instructions did something.
pub(super) type ByPc = SmallVec<[(Pc, u64); 1]>;

#[inline]
fn count(by_pc: &mut ByPc, pc: Pc, times: u64) {
    match by_pc.iter_mut().find(|(known, _)| *known == pc) {
        Some((_, count)) => *count += times,
        None => by_pc.push((pc, times)),
    }
}

/// Waits of one instruction for the writes of another; `None` if the write was not seen.
pub(super) type Edges = SmallVec<[((Pc, Option<Pc>), Span); 1]>;

fn waited(edges: &mut Edges, edge: (Pc, Option<Pc>), span: Span) {
    match edges.iter_mut().find(|(known, _)| *known == edge) {
        Some((_, sum)) => sum.merge(&span),
        None => edges.push((edge, span)),
    }
}

fn once(cycles: u64) -> Span {
    Span { count: 1, cycles, longest_cycles: cycles }
}

/// What happened at a word.
#[derive(Clone, Debug, Default)]
pub(super) struct WordCounts {
    pub(super) acquired: u64,
    pub(super) failed_intra: u64,
    pub(super) failed_inter: u64,
    /// From the issue of the first try to the cycle in which memory served the one that took the lock.
    pub(super) wait: Span,
    /// From there to the cycle in which memory served the write that released it.
    pub(super) hold: Span,
    /// From there to the next acquisition, if a thread was waiting.
    pub(super) hand_off: Span,
    /// Of the hand-offs, the cycles that the try which took the lock was on its way.
    pub(super) hand_off_trip_cycles: u64,
    /// From issue to service, for every try.
    pub(super) trips: Span,
    /// 0 if there was none.
    pub(super) shortest_trip: u64,
    pub(super) longest_queue: u32,
    pub(super) takes: ByPc,
    /// Tries that failed.
    pub(super) fails: ByPc,
    pub(super) releases: ByPc,
    /// Writes since it was first polled, other than to take it.
    pub(super) writes: u64,
    /// The longest waits for this lock, the longest first.
    pub(super) longest: SmallVec<[(u64, Thread); LONGEST_WAITS]>,
    pub(super) edges: Edges,
}

impl WordCounts {
    #[inline]
    fn trip(&mut self, cycles: u64) {
        self.trips.add(cycles);
        // 0 wraps around and is the longest.
        self.shortest_trip = (self.shortest_trip.wrapping_sub(1)).min(cycles.wrapping_sub(1)).wrapping_add(1);
    }

    fn long_wait(&mut self, cycles: u64, thread: Thread) {
        let place = self.longest.partition_point(|&(known, _)| known >= cycles);
        if place < LONGEST_WAITS {
            self.longest.truncate(LONGEST_WAITS - 1);
            self.longest.insert(place, (cycles, thread));
        }
    }

    fn add(&mut self, other: &WordCounts) {
        self.acquired += other.acquired;
        self.failed_intra += other.failed_intra;
        self.failed_inter += other.failed_inter;
        self.wait.merge(&other.wait);
        self.hold.merge(&other.hold);
        self.hand_off.merge(&other.hand_off);
        self.hand_off_trip_cycles += other.hand_off_trip_cycles;
        self.trips.merge(&other.trips);
        let shortest = [self.shortest_trip, other.shortest_trip];
        self.shortest_trip = shortest.into_iter().filter(|&trip| trip > 0).min().unwrap_or(0);
        self.longest_queue = self.longest_queue.max(other.longest_queue);
        self.writes += other.writes;
        other.takes.iter().for_each(|&(pc, times)| count(&mut self.takes, pc, times));
        other.fails.iter().for_each(|&(pc, times)| count(&mut self.fails, pc, times));
        other.releases.iter().for_each(|&(pc, times)| count(&mut self.releases, pc, times));
        other.longest.iter().for_each(|&(cycles, thread)| self.long_wait(cycles, thread));
        other.edges.iter().for_each(|&(edge, span)| waited(&mut self.edges, edge, span));
    }
}

/// A word as it is now.
#[derive(Clone, Debug, Default)]
struct Followed {
    counts: WordCounts,
    /// When the lock was taken, if it is held.
    held_since: Option<Cycle>,
    /// The warp that took it last.
    last_taker: Option<WarpName>,
    /// When and where it was released, if a thread was waiting then.
    released: Option<(Cycle, Pc)>,
    /// The last write other than to take it.
    written_at: Option<Pc>,
    waiting: u32,
}

impl Followed {
    /// One more thread waits.
    fn queue(&mut self) {
        self.waiting += 1;
        self.counts.longest_queue = self.counts.longest_queue.max(self.waiting);
    }
}

/// A word is no longer followed. Another one with the same entry may be: the map will tell.
fn forget(known: &mut [Known], place: WordPlace) {
    let entry = &mut known[place.entry()];
    if entry.place == place {
        entry.place = WordPlace { cta: NO_CTA, address: 0 };
    }
}

/// Words of one memory: the global one, or the shared memories of an SM.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    ids: FxHashMap<WordPlace, u32>,
    words: Vec<Followed>,
    /// Places in `words` of CTAs that have ended.
    free: Vec<u32>,
    /// The word that was followed last, of those with the same entry; empty while none is followed. Most stores are
    /// to words without an entry, and most others to the word that is there: the map is seldom asked.
    known: Vec<Known>,
    /// Words of CTAs that have ended, by address, with the number of such CTAs.
    ended: FxHashMap<u64, (WordCounts, u64)>,
    /// Tries at words beyond [`MOST_WORDS`]: those that took a lock, and those that failed.
    pub(super) rest: [u64; 2],
}

impl Words {
    /// Follows a word from now on. `None` if there are too many.
    #[inline]
    fn follow(&mut self, place: WordPlace) -> Option<&mut Followed> {
        let id = match self.known.get(place.entry()) {
            Some(known) if known.id != NO_WORD && known.place == place => known.id,
            _ => self.look_up_or_add(place)?,
        };
        self.words.get_mut(id as usize)
    }

    #[cold]
    fn look_up_or_add(&mut self, place: WordPlace) -> Option<u32> {
        let id = match self.ids.get(&place) {
            Some(&id) => id,
            None if self.ids.len() >= MOST_WORDS => return None,
            None => {
                let id = self.free.pop().unwrap_or_else(|| {
                    self.words.push(Followed::default());
                    self.words.len() as u32 - 1
                });
                self.ids.insert(place, id);
                id
            }
        };
        if self.known.is_empty() {
            self.known = vec![UNKNOWN; 1 << KNOWN_BITS];
        }
        self.known[place.entry()] = Known { place, id };
        Some(id)
    }

    /// A word that is followed.
    #[inline]
    fn get(&mut self, place: WordPlace) -> Option<&mut Followed> {
        let known = self.known.get(place.entry()).filter(|known| known.id != NO_WORD)?;
        let id = if known.place == place { known.id } else { *self.ids.get(&place)? };
        self.words.get_mut(id as usize)
    }

    /// A word will be polled.
    pub(super) fn watch(&mut self, place: WordPlace) {
        self.follow(place);
    }

    /// A thread polled in vain and waits from now on.
    pub(super) fn waits(&mut self, place: WordPlace) {
        if let Some(word) = self.get(place) {
            word.queue();
        }
    }

    /// A thread that waits does something else.
    pub(super) fn gave_up(&mut self, place: WordPlace) {
        if let Some(word) = self.get(place) {
            word.waiting = word.waiting.saturating_sub(1);
        }
    }

    /// A thread that waited has seen what it waited for.
    pub(super) fn over(&mut self, place: WordPlace, thread: Thread, by: Try) {
        self.gave_up(place);
        if let Some(word) = self.get(place) {
            let cycles = by.now - by.since;
            waited(&mut word.counts.edges, (by.pc, word.written_at), once(cycles));
            word.counts.long_wait(cycles, thread);
        }
    }

    /// A thread did not get a lock; its try took `trip` cycles from issue to service. If that `begins` its wait, it
    /// waits from now on.
    #[inline]
    pub(super) fn failed(&mut self, place: WordPlace, warp: WarpName, pc: Pc, trip: u64, begins: bool) {
        let Some(word) = self.follow(place) else {
            self.rest[1] += 1;
            return;
        };
        match word.last_taker == Some(warp) {
            true => word.counts.failed_intra += 1,
            false => word.counts.failed_inter += 1,
        }
        word.counts.trip(trip);
        count(&mut word.counts.fails, pc, 1);
        if begins {
            word.queue();
        }
    }

    /// A thread took a lock. An `exclusive` one has one holder.
    pub(super) fn took(&mut self, place: WordPlace, thread: Thread, by: Try, exclusive: bool) {
        let Some(word) = self.follow(place) else {
            self.rest[0] += 1;
            return;
        };
        word.waiting = word.waiting.saturating_sub(u32::from(by.queued));
        let counts = &mut word.counts;
        let (trip, wait) = (by.now - by.issued, by.now - by.since);
        counts.trip(trip);
        counts.acquired += 1;
        counts.wait.add(wait);
        counts.long_wait(wait, thread);
        count(&mut counts.takes, by.pc, 1);
        if let Some((at, pc)) = word.released.take() {
            let hand_off = by.now - at;
            counts.hand_off.add(hand_off);
            counts.hand_off_trip_cycles += trip.min(hand_off);
            if by.queued {
                waited(&mut counts.edges, (by.pc, Some(pc)), once(wait));
            }
        }
        if exclusive {
            (word.held_since, word.last_taker) = (Some(by.now), Some(thread.warp));
        }
    }

    /// A thread wrote a word, other than to take a lock.
    #[inline]
    pub(super) fn wrote(&mut self, place: WordPlace, pc: Pc, now: Cycle) {
        let Some(word) = self.get(place) else { return };
        word.written_at = Some(pc);
        word.counts.writes += 1;
        if let Some(since) = word.held_since.take() {
            word.counts.hold.add(now - since);
            count(&mut word.counts.releases, pc, 1);
            word.released = (word.waiting > 0).then_some((now, pc));
        }
    }

    /// The shared memory of a CTA is gone.
    pub(super) fn end_cta(&mut self, cta: u64) {
        if self.ids.is_empty() {
            return;
        }
        let (ended, words, free, known) = (&mut self.ended, &mut self.words, &mut self.free, &mut self.known);
        self.ids.retain(|place, &mut id| {
            if place.cta == cta {
                let (counts, ctas) = ended.entry(place.address).or_default();
                counts.add(&std::mem::take(&mut words[id as usize]).counts);
                *ctas += 1;
                free.push(id);
                forget(known, *place);
            }
            place.cta != cta
        });
    }

    /// What happened at each address, in the order of addresses.
    pub(super) fn by_address(&self) -> impl Iterator<Item = (u64, &WordCounts)> {
        let mut ids: Vec<(u64, u32)> = self.ids.iter().map(|(place, &id)| (place.address, id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(address, id)| (address, &self.words[id as usize].counts))
    }

    /// Adds what happened at each address, in how many memories, to what happened on other SMs.
    pub(super) fn add_to(self, all: &mut BTreeMap<u64, (WordCounts, u64)>) {
        let present = self.ids.iter().map(|(place, &id)| (place.address, &self.words[id as usize].counts, 1));
        let ended = self.ended.iter().map(|(&address, (counts, ctas))| (address, counts, *ctas));
        for (address, counts, memories) in present.chain(ended) {
            let (sum, in_all) = all.entry(address).or_default();
            sum.add(counts);
            *in_all += memories;
        }
    }
}
