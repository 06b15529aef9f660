//! Where the time of a launch goes: by instruction and source line, by lock and flag, and in a few words.
//!
//! A `Recorder` observes each SM, `Words` the locks and flags of a memory; [`Profile`] is what they found, as numbers
//! and names. `docs/profile.md` defines every number.

mod course;
mod recorder;
mod span;
mod verdict;
mod words;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use warploom_isa::{Kernel, Pc};

use crate::exec::fault::Place;
use crate::exec::launch::Launch;
use crate::exec::memory::store::Memory;
use crate::explain::hang::{global_word, shared_word};
use crate::explain::profile::course::Course;
pub use crate::explain::profile::course::OverTime;
pub(crate) use crate::explain::profile::recorder::Recorder;
use crate::explain::profile::recorder::{CATEGORIES, Code, Row, SPINNING, UNIT_BUSY};
pub use crate::explain::profile::span::Span;
pub use crate::explain::profile::verdict::Finding;
use crate::explain::profile::words::{ByPc, LONGEST_WAITS, Thread, WordCounts, Words};
use crate::kit::cycle::Cycle;
use crate::time::sm::probe::State;

/// Where the time of one or several launches went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Cycles of the launches.
    pub cycles: u64,
    /// Lanes of a warp.
    pub warp_lanes: u32,
    /// What stands out, the most important first.
    pub verdict: Vec<Finding>,
    /// All warp time by category. The sum of every table below, and of the launch's `warp_cycles`.
    pub time: Time,
    /// By source line, the one with the most warp time first.
    pub lines: Vec<Line>,
    /// By instruction, in the order of the code.
    pub instructions: Vec<Instruction>,
    /// Words that threads tried to take or waited for, the one that cost the most waiting first.
    pub words: Vec<WordProfile>,
    /// Who waited for whom: lines that wait, and the lines whose writes end the waits.
    pub waits: Vec<Wait>,
    pub barriers: Vec<Barrier>,
    /// Tries at words beyond those that are followed one by one: taken and failed.
    pub other_tries: [u64; 2],
    /// Warp time over the launches, if that was asked for ([`Timing::over_time`](crate::Timing::over_time)).
    #[serde(skip)]
    pub over_time: Option<OverTime>,
}

/// Warp time in cycles by category; categories without any are left out.
pub type Time = BTreeMap<&'static str, u64>;

/// What an instruction, or all instructions of a line, did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Times that a warp issued it. Each takes one issue slot.
    pub executions: u64,
    /// The same, counted once per active lane.
    pub thread_executions: u64,
    /// The sum of `time`.
    pub warp_cycles: u64,
    pub time: Time,
    /// Pieces that its memory accesses were sent in: lines, or accesses to shared memory.
    pub transactions: u64,
    /// Memory accesses of warps, from issue to write-back.
    pub latency: Span,
    /// Lanes that read what their spin loop waits for.
    pub polls: u64,
    /// Of those, the ones that have to read it again.
    pub failed_polls: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.executions += other.executions;
        self.thread_executions += other.thread_executions;
        self.warp_cycles += other.warp_cycles;
        other.time.iter().for_each(|(name, cycles)| *self.time.entry(name).or_default() += cycles);
        self.transactions += other.transactions;
        self.latency.merge(&other.latency);
        self.polls += other.polls;
        self.failed_polls += other.failed_polls;
    }

    fn of(row: &Row) -> Counts {
        Counts {
            executions: row.executions,
            thread_executions: row.lanes,
            warp_cycles: row.time.iter().sum(),
            time: (0..CATEGORIES)
                .filter(|&at| row.time[at] > 0)
                .map(|at| (category(at), row.time[at]))
                .collect(),
            transactions: row.transactions,
            latency: row.latency,
            polls: row.polls,
            failed_polls: row.failed_polls,
        }
    }

    /// Cycles of one category.
    pub fn time_of(&self, category: &str) -> u64 {
        self.time.get(category).copied().unwrap_or(0)
    }
}

/// The name of a category. Those of states are the reasons that reports name.
fn category(at: usize) -> &'static str {
    match at {
        UNIT_BUSY => "pipe_throttle",
        SPINNING => "spinning",
        at => match State::ALL[at] {
            State::Ready => "not_selected",
            state => state.name(),
        },
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instruction {
    pub kernel: String,
    /// Its number in the kernel's code.
    pub pc: u32,
    /// The user's line: of the source it was compiled from if that is known, otherwise of the PTX file or listing.
    pub line: String,
    /// The line of the PTX file or listing.
    pub at: String,
    pub text: String,
    /// If it was inlined: the lines from the innermost function's to the kernel's.
    pub inlined: Vec<String>,
    #[serde(flatten)]
    pub counts: Counts,
}

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub kernel: String,
    pub line: String,
    /// The instruction with the most time, and its line of the PTX file or listing.
    pub text: String,
    pub at: String,
    /// If that one was inlined: the lines from the innermost function's to the kernel's.
    pub inlined: Vec<String>,
    #[serde(flatten)]
    pub counts: Counts,
}

/// A word that threads took, or waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WordProfile {
    /// Its buffer or variable and the byte offset in it: `buffer 4+136`.
    pub word: String,
    /// The buffer or variable.
    pub memory: String,
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
    /// Most threads that waited at a time.
    pub longest_queue: u32,
    /// Lines that took it, and how often.
    pub taken_at: Vec<(String, u64)>,
    /// Lines whose tries failed.
    pub failed_at: Vec<(String, u64)>,
    pub released_at: Vec<(String, u64)>,
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

/// Waits at one line for the writes of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The buffer or variable with the words.
    pub memory: String,
    pub waits_at: String,
    /// The line whose write came last before the wait ended; `None` if the kernel had not written the word.
    pub written_at: Option<String>,
    /// Different words.
    pub words: u64,
    pub wait: Span,
}

/// A barrier instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Barrier {
    pub line: String,
    /// From the first to the last arrival in a phase. Charged to the line that arrives last.
    pub skew: Span,
}

/// What the recorders of a launch share.
pub(crate) struct Profiler {
    code: Arc<Code>,
    global: Arc<Mutex<Words>>,
    /// Whether the course of the launch is recorded.
    over_time: bool,
}

impl Profiler {
    pub(crate) fn new(kernel: &Kernel, over_time: bool) -> Profiler {
        Profiler { code: Arc::new(Code::new(kernel)), global: Arc::default(), over_time }
    }

    /// The recorder of an SM with so many warp slots, for a launch that starts at cycle `start`.
    pub(crate) fn recorder(&self, slots: u32, start: Cycle) -> Recorder {
        let course = self.over_time.then(|| Course::new(slots, start));
        Recorder::new(slots, self.code.clone(), self.global.clone(), course)
    }

    /// The profile of a launch that took so many cycles.
    pub(crate) fn finish(
        self,
        launch: &Launch<'_>,
        memory: &Memory,
        cycles: u64,
        recorders: Vec<Recorder>,
    ) -> Profile {
        let kernel = launch.kernel;
        let mut rows: Vec<Row> = Vec::new();
        let mut skews: BTreeMap<Pc, Span> = BTreeMap::new();
        let mut shared = BTreeMap::new();
        let mut names = Names { launch, memory, lines: BTreeMap::new() };
        let mut profile = Profile { cycles, warp_lanes: launch.chip.sm.warp_lanes, ..Profile::default() };
        let mut courses = Vec::new();
        for recorder in recorders {
            recorder.skews.iter().for_each(|(&pc, skew)| skews.entry(pc).or_default().merge(skew));
            let (of_sm, words, course) = recorder.into_parts();
            courses.extend(course);
            recorder::sum(&mut rows, &of_sm);
            profile.count_rest(&words);
            words.add_to(&mut shared);
        }
        profile.add_words(&shared, true, &mut names);
        let words = std::mem::take(&mut *self.global.lock().expect("the launch is over"));
        profile.count_rest(&words);
        let mut global = BTreeMap::new();
        words.add_to(&mut global);
        profile.add_words(&global, false, &mut names);
        for (at, row) in rows.iter().enumerate() {
            let counts = Counts::of(row);
            if counts.executions == 0 && counts.warp_cycles == 0 {
                continue;
            }
            let pc = Pc(at as u32);
            let place = Place::of(kernel, pc);
            profile.instructions.push(Instruction {
                kernel: kernel.name.clone(),
                pc: pc.0,
                line: place.short(),
                at: format!("{}:{}", place.file, place.line),
                text: place.instruction,
                inlined: place.inlined,
                counts,
            });
        }
        profile.barriers =
            skews.into_iter().map(|(pc, skew)| Barrier { line: names.line(pc), skew }).collect();
        profile.over_time = self.over_time.then(|| OverTime::of(courses));
        profile.settle();
        profile
    }
}

/// Names of lines, words and threads of a launch.
struct Names<'a> {
    launch: &'a Launch<'a>,
    memory: &'a Memory,
    lines: BTreeMap<Pc, String>,
}

impl Names<'_> {
    fn line(&mut self, pc: Pc) -> String {
        let kernel = self.launch.kernel;
        self.lines.entry(pc).or_insert_with(|| Place::of(kernel, pc).short()).clone()
    }

    fn lines(&mut self, by_pc: &ByPc) -> Vec<(String, u64)> {
        let mut lines = Vec::new();
        for &(pc, times) in by_pc {
            add_line(&mut lines, &self.line(pc), times);
        }
        sort_lines(&mut lines);
        lines
    }

    fn thread(&self, Thread { warp, lane }: Thread) -> ThreadName {
        ThreadName { lane, warp: warp.warp, cta: self.launch.shape.cta(warp.cta) }
    }
}

fn add_line(lines: &mut Vec<(String, u64)>, line: &str, times: u64) {
    match lines.iter_mut().find(|(known, _)| known == line) {
        Some((_, sum)) => *sum += times,
        None => lines.push((line.to_string(), times)),
    }
}

fn sort_lines(lines: &mut [(String, u64)]) {
    lines.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
}

impl Profile {
    fn count_rest(&mut self, words: &Words) {
        self.other_tries = [0, 1].map(|at| self.other_tries[at] + words.rest[at]);
    }

    fn add_words(&mut self, words: &BTreeMap<u64, (WordCounts, u64)>, shared: bool, names: &mut Names<'_>) {
        let is_first = self.words.is_empty();
        for (&address, &(ref counts, memories)) in words {
            let word = match shared {
                true => shared_word(names.launch.kernel, address),
                false => global_word(names.memory, address),
            };
            let text = word.to_string();
            let text = text.trim_matches(['[', ']']).to_string();
            let memory = match &word.name[..] {
                "" if shared => "shared memory".to_string(),
                "" => "global memory".to_string(),
                name => name.to_string(),
            };
            for &((waits_at, written_at), wait) in &counts.edges {
                let (waits_at, written_at) = (names.line(waits_at), written_at.map(|pc| names.line(pc)));
                self.add_wait(Wait { memory: memory.clone(), waits_at, written_at, words: 1, wait });
            }
            let word = word_profile(text, memory, memories, counts, names);
            if word.acquired + word.failed() + word.satisfied.count == 0 {
                continue;
            }
            match is_first {
                // Words of one memory have different names.
                true => self.words.push(word),
                false => self.add_word(word),
            }
        }
        if shared {
            self.words.sort_by(|a, b| a.word.cmp(&b.word));
        }
    }

    fn add_wait(&mut self, new: Wait) {
        let same = |known: &&mut Wait| {
            (&known.memory, &known.waits_at, &known.written_at)
                == (&new.memory, &new.waits_at, &new.written_at)
        };
        match self.waits.iter_mut().find(same) {
            Some(known) => {
                known.words += new.words;
                known.wait.merge(&new.wait);
            }
            None => self.waits.push(new),
        }
    }

    fn add_word(&mut self, new: WordProfile) {
        // Sorted by name until all are there.
        match self.words.binary_search_by(|known| known.word.cmp(&new.word)) {
            Ok(at) => self.words[at].merge(new),
            Err(at) => self.words.insert(at, new),
        }
    }

    /// Adds the profile of another launch of the same program.
    pub fn merge(&mut self, other: &Profile) {
        if let (Some(course), Some(other)) = (&mut self.over_time, &other.over_time) {
            course.append(self.cycles, other);
        }
        self.cycles += other.cycles;
        self.warp_lanes = other.warp_lanes;
        for new in &other.instructions {
            let key = |i: &Instruction| (i.kernel.clone(), i.pc);
            match self.instructions.binary_search_by_key(&key(new), key) {
                Ok(at) => self.instructions[at].counts.add(&new.counts),
                Err(at) => self.instructions.insert(at, new.clone()),
            }
        }
        self.words.sort_by(|a, b| a.word.cmp(&b.word));
        other.words.iter().for_each(|word| self.add_word(word.clone()));
        other.waits.iter().for_each(|wait| self.add_wait(wait.clone()));
        for new in &other.barriers {
            match self.barriers.iter_mut().find(|known| known.line == new.line) {
                Some(known) => known.skew.merge(&new.skew),
                None => self.barriers.push(new.clone()),
            }
        }
        self.other_tries = [0, 1].map(|at| self.other_tries[at] + other.other_tries[at]);
        self.settle();
    }

    /// Works out what follows from the instructions, words and waits, and sorts them.
    fn settle(&mut self) {
        self.time = Time::new();
        let mut lines: BTreeMap<(&str, &str), (Line, u64)> = BTreeMap::new();
        for instruction in &self.instructions {
            let Instruction { kernel, line, at, text, inlined, counts, .. } = instruction;
            for (name, cycles) in &counts.time {
                *self.time.entry(name).or_default() += cycles;
            }
            let (sum, most) = lines.entry((kernel, line)).or_insert_with(|| {
                let (kernel, line) = (kernel.clone(), line.clone());
                let (text, at, inlined) = (text.clone(), at.clone(), inlined.clone());
                (Line { kernel, line, text, at, inlined, counts: Counts::default() }, counts.warp_cycles)
            });
            if counts.warp_cycles > *most {
                *most = counts.warp_cycles;
                (sum.text, sum.at, sum.inlined) = (text.clone(), at.clone(), inlined.clone());
            }
            sum.counts.add(counts);
        }
        self.lines = lines.into_values().map(|(line, _)| line).collect();
        // Stable: lines of equal weight keep the order of their names.
        self.lines.sort_by_key(|line| Reverse(line.counts.warp_cycles));
        self.words.sort_by(|a, b| {
            let weight = |word: &WordProfile| Reverse((word.waited(), word.failed(), word.acquired));
            weight(a).cmp(&weight(b)).then(a.word.cmp(&b.word))
        });
        self.waits.sort_by(|a, b| {
            let name = |wait: &Wait| (wait.waits_at.clone(), wait.written_at.clone(), wait.memory.clone());
            Reverse(a.wait.cycles).cmp(&Reverse(b.wait.cycles)).then(name(a).cmp(&name(b)))
        });
        self.barriers
            .sort_by(|a, b| Reverse(a.skew.cycles).cmp(&Reverse(b.skew.cycles)).then(a.line.cmp(&b.line)));
        self.verdict = verdict::verdict(self);
    }

    /// All warp time.
    pub fn warp_cycles(&self) -> u64 {
        self.time.values().sum()
    }
}

fn word_profile(
    word: String,
    memory: String,
    memories: u64,
    counts: &WordCounts,
    names: &mut Names<'_>,
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
        shortest_trip_cycles: counts.shortest_trip.unwrap_or(0),
        satisfied,
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
    fn merge(&mut self, other: WordProfile) {
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
