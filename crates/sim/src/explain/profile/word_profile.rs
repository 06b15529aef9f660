//! What happened at a lock or flag, as numbers and names.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::explain::profile::Names;
use crate::explain::profile::code::Name;
use crate::explain::profile::span::Span;
use crate::explain::profile::words::{LONGEST_WAITS, WordCounts};

/// A word that threads took, or waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordProfile {
    /// Its buffer or variable and the byte offset in it: `buffer 4+136`.
    pub word: String,
    /// The buffer or variable.
    pub memory: Name,
    /// Memories that have it: 1, or for a word of shared memory the number of CTAs.
    pub memories: u64,
    /// Tries that took it, in threads.
    pub acquired: u64,
    /// Tries that failed because a thread of the same warp took it last.
    pub failed_intra: u64,
    /// Tries that failed because a thread of another warp did.
    pub failed_inter: u64,
    /// From the issue of a thread's first try to the cycle in which memory served the one that took it.
    pub wait: Span,
    /// From there to the cycle in which memory served the write that released it.
    pub hold: Span,
    /// From a release to the next acquisition, if a thread was waiting.
    pub hand_off: Span,
    /// Of the hand-offs, the cycles that the try which took it was on its way to memory.
    pub hand_off_trip_cycles: u64,
    /// From issue to service, for every try.
    pub trip: Span,
    /// The shortest of them: what a try costs without others before it.
    pub shortest_trip_cycles: u64,
    /// Waits that ended without taking it: the thread saw what it waited for.
    pub satisfied: Span,
    /// Writes since it was first polled, other than to take it.
    pub writes: u64,
    /// Most threads that waited at a time.
    pub longest_queue: u32,
    /// Lines that took it, and how often.
    pub taken_at: Vec<(Name, u64)>,
    /// Lines whose tries failed.
    pub failed_at: Vec<(Name, u64)>,
    pub released_at: Vec<(Name, u64)>,
    /// The longest waits: cycles, and the thread.
    pub longest_waits: Vec<(u64, ThreadName)>,
}

impl WordProfile {
    /// All cycles that threads waited for it.
    pub fn waited(&self) -> u64 {
        self.wait.cycles + self.satisfied.cycles
    }

    /// Tries that failed.
    pub fn failed(&self) -> u64 {
        self.failed_intra + self.failed_inter
    }
}

/// A thread: its lane, its warp in the CTA, and the CTA. In JSON a text: `lane 3 of warp 0 of CTA (1,0,0)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadName {
    pub lane: u32,
    pub warp: u32,
    pub cta: [u32; 3],
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadName { lane, warp, cta: [x, y, z] } = self;
        write!(f, "lane {lane} of warp {warp} of CTA ({x},{y},{z})")
    }
}

impl Serialize for ThreadName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ThreadName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ThreadName, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        match numbers.map(str::parse).collect::<Result<Vec<u32>, _>>().as_deref() {
            Ok(&[lane, warp, x, y, z]) => Ok(ThreadName { lane, warp, cta: [x, y, z] }),
            _ => Err(D::Error::custom(format!("`{text}` is no thread"))),
        }
    }
}

/// Counts a line among others.
pub(super) fn add_line(lines: &mut Vec<(Name, u64)>, line: &Name, times: u64) {
    match lines.iter_mut().find(|(known, _)| known == line) {
        Some((_, sum)) => *sum += times,
        None => lines.push((line.clone(), times)),
    }
}

pub(super) fn sort_lines(lines: &mut [(Name, u64)]) {
    lines.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
}

pub(super) fn word_profile(
    word: String,
    memory: Name,
    memories: u64,
    counts: &WordCounts,
    names: &Names<'_>,
) -> WordProfile {
    let mut satisfied = Span::default();
    for ((waits_at, _), wait) in &counts.edges {
        // Of the others, `wait` tells.
        if !counts.takes.iter().any(|(pc, _)| pc == waits_at) {
            satisfied.merge(wait);
        }
    }
    WordProfile {
        word,
        memory,
        memories,
        acquired: counts.acquired,
        failed_intra: counts.failed_intra,
        failed_inter: counts.failed_inter,
        wait: counts.wait,
        hold: counts.hold,
        hand_off: counts.hand_off,
        hand_off_trip_cycles: counts.hand_off_trip_cycles,
        trip: counts.trips,
        shortest_trip_cycles: counts.shortest_trip,
        satisfied,
        writes: counts.writes,
        longest_queue: counts.longest_queue,
        taken_at: names.lines(&counts.takes),
        failed_at: names.lines(&counts.fails),
        released_at: names.lines(&counts.releases),
        longest_waits: counts
            .longest
            .iter()
            .map(|&(cycles, thread)| (cycles, names.thread(thread)))
            .collect(),
    }
}

impl WordProfile {
    pub(super) fn merge(&mut self, other: WordProfile) {
        let shortest = [self.shortest_trip_cycles, other.shortest_trip_cycles];
        self.memories = self.memories.max(other.memories);
        self.acquired += other.acquired;
        self.failed_intra += other.failed_intra;
        self.failed_inter += other.failed_inter;
        self.wait.merge(&other.wait);
        self.hold.merge(&other.hold);
        self.hand_off.merge(&other.hand_off);
        self.hand_off_trip_cycles += other.hand_off_trip_cycles;
        self.trip.merge(&other.trip);
        self.shortest_trip_cycles = shortest.into_iter().filter(|&trip| trip > 0).min().unwrap_or(0);
        self.satisfied.merge(&other.satisfied);
        self.writes += other.writes;
        self.longest_queue = self.longest_queue.max(other.longest_queue);
        for (lines, more) in [
            (&mut self.taken_at, &other.taken_at),
            (&mut self.failed_at, &other.failed_at),
            (&mut self.released_at, &other.released_at),
        ] {
            more.iter().for_each(|(line, times)| add_line(lines, line, *times));
            sort_lines(lines);
        }
        self.longest_waits.extend(other.longest_waits);
        self.longest_waits.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.to_string().cmp(&y.to_string())));
        self.longest_waits.truncate(LONGEST_WAITS);
    }
}
