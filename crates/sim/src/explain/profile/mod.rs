//! Where the time of a launch goes: by instruction and source line, by lock and flag, and in a few words.
//!
//! A `Recorder` observes each SM, `Words` the locks and flags of a memory; [`Profile`] is what they found, as numbers
//! and names. `docs/profile.md` defines every number.

mod code;
mod course;
mod recorder;
mod span;
mod time;
mod verdict;
mod word_profile;
mod words;

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use warploom_isa::Pc;

use crate::exec::launch::Launch;
use crate::exec::memory::store::Memory;
use crate::explain::hang::{global_word, shared_word};
pub(crate) use crate::explain::profile::code::Code;
pub use crate::explain::profile::code::Name;
use crate::explain::profile::code::Named;
use crate::explain::profile::course::Course;
pub use crate::explain::profile::course::OverTime;
pub(crate) use crate::explain::profile::recorder::Recorder;
use crate::explain::profile::recorder::Row;
pub use crate::explain::profile::span::Span;
pub use crate::explain::profile::time::Time;
pub(crate) use crate::explain::profile::time::category;
pub use crate::explain::profile::verdict::Finding;
pub use crate::explain::profile::word_profile::{ThreadName, WordProfile};
use crate::explain::profile::word_profile::{add_line, sort_lines, word_profile};
use crate::explain::profile::words::{ByPc, Thread, WordCounts, Words};
use crate::kit::cycle::Cycle;

/// Where the time of one or several launches went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Cycles of the launches.
    pub cycles: u64,
    /// Lanes of a warp.
    pub warp_lanes: u32,
    /// The longest delay of a warp that the chip's BOWS backs off; 0 if it backed off in these launches already.
    #[serde(skip)]
    pub longest_back_off_cycles: u64,
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

/// What an instruction, or all instructions of a line, did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
        self.time.add(&other.time);
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
            time: Time::new(row.time),
            transactions: row.transactions,
            latency: row.latency,
            polls: row.polls,
            failed_polls: row.failed_polls,
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    pub kernel: Name,
    /// Its number in the kernel's code.
    pub pc: u32,
    /// The user's line: of the source it was compiled from if that is known, otherwise of the PTX file or listing.
    pub line: Name,
    /// The line of the PTX file or listing.
    pub at: Name,
    pub text: Name,
    /// If it was inlined: the lines from the innermost function's to the kernel's.
    pub inlined: Arc<[String]>,
    #[serde(flatten)]
    pub counts: Counts,
}

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub kernel: Name,
    pub line: Name,
    /// The instruction with the most time, and its line of the PTX file or listing.
    pub text: Name,
    pub at: Name,
    /// If that one was inlined: the lines from the innermost function's to the kernel's.
    pub inlined: Arc<[String]>,
    #[serde(flatten)]
    pub counts: Counts,
}

/// Waits at one line for the writes of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The buffer or variable with the words.
    pub memory: Name,
    pub waits_at: Name,
    /// The line whose write came last before the wait ended; `None` if the kernel had not written the word.
    pub written_at: Option<Name>,
    /// Different words.
    pub words: u64,
    pub wait: Span,
}

/// A barrier instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    pub line: Name,
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
    pub(crate) fn new(code: Arc<Code>, over_time: bool) -> Profiler {
        Profiler { code, global: Arc::default(), over_time }
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
        let code = self.code.names(kernel);
        let names = Names { launch, memory, code };
        let chip = launch.chip;
        let mut profile = Profile { cycles, warp_lanes: chip.sm.warp_lanes, ..Profile::default() };
        let mut courses = Vec::new();
        for recorder in recorders {
            recorder.skews.iter().for_each(|(&pc, skew)| skews.entry(pc).or_default().merge(skew));
            let (of_sm, words, course) = recorder.into_parts();
            courses.extend(course);
            recorder::sum(&mut rows, &of_sm);
            profile.count_rest(&words);
            words.add_to(&mut shared);
        }
        let shared = shared.iter().map(|(&address, (counts, memories))| (address, counts, *memories));
        profile.add_words(shared, true, &names);
        let words = std::mem::take(&mut *self.global.lock().expect("the launch is over"));
        profile.count_rest(&words);
        let global = words.by_address().map(|(address, counts)| (address, counts, 1));
        profile.add_words(global, false, &names);
        let kernel_name: Name = kernel.name.as_str().into();
        for (at, row) in rows.iter().enumerate() {
            let counts = Counts::of(row);
            if counts.executions == 0 && counts.warp_cycles == 0 {
                continue;
            }
            let Named { line, at: place, text, inlined } = code[at].clone();
            let (kernel, pc) = (kernel_name.clone(), at as u32);
            profile.instructions.push(Instruction { kernel, pc, line, at: place, text, inlined, counts });
        }
        profile.barriers =
            skews.into_iter().map(|(pc, skew)| Barrier { line: names.line(pc), skew }).collect();
        profile.over_time = self.over_time.then(|| OverTime::of(courses));
        let backed_off: u64 = profile.instructions.iter().map(|i| i.counts.time.of("backed_off")).sum();
        profile.longest_back_off_cycles = if backed_off > 0 { 0 } else { chip.issue.bows.longest_cycles() };
        profile.settle();
        profile
    }
}

/// Names of lines, words and threads of a launch.
struct Names<'a> {
    launch: &'a Launch<'a>,
    memory: &'a Memory,
    code: &'a [Named],
}

impl Names<'_> {
    fn line(&self, pc: Pc) -> Name {
        self.code[pc.index()].line.clone()
    }

    fn lines(&self, by_pc: &ByPc) -> Vec<(Name, u64)> {
        let mut lines = Vec::new();
        for &(pc, times) in by_pc {
            add_line(&mut lines, &self.code[pc.index()].line, times);
        }
        sort_lines(&mut lines);
        lines
    }

    fn thread(&self, Thread { warp, lane }: Thread) -> ThreadName {
        ThreadName { lane, warp: warp.warp, cta: self.launch.shape.cta(warp.cta) }
    }
}

impl Profile {
    fn count_rest(&mut self, words: &Words) {
        self.other_tries = [0, 1].map(|at| self.other_tries[at] + words.rest[at]);
    }

    /// Adds the words of one memory: address, counts, and how many memories have it.
    fn add_words<'a>(
        &mut self,
        words: impl Iterator<Item = (u64, &'a WordCounts, u64)>,
        shared: bool,
        names: &Names<'_>,
    ) {
        let is_first = self.words.is_empty();
        let mut memory: Name = "".into();
        for (address, counts, memories) in words {
            let word = match shared {
                true => shared_word(names.launch.kernel, address),
                false => global_word(names.memory, address),
            };
            let mut text = word.to_string();
            // Without the brackets of messages.
            if text.starts_with('[') && text.ends_with(']') {
                text.pop();
                text.remove(0);
            }
            let of = match &word.name[..] {
                "" if shared => "shared memory",
                "" => "global memory",
                name => name,
            };
            // Mostly the last one's.
            if &*memory != of {
                memory = of.into();
            }
            for &((waits_at, written_at), wait) in &counts.edges {
                let (waits_at, written_at) = (names.line(waits_at), written_at.map(|pc| names.line(pc)));
                self.add_wait(Wait { memory: memory.clone(), waits_at, written_at, words: 1, wait });
            }
            let word = word_profile(text, memory.clone(), memories, counts, names);
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

    /// Adds the profiles of other launches of the same program.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a Profile>) {
        self.words.sort_by(|a, b| a.word.cmp(&b.word));
        others.into_iter().for_each(|other| self.add(other));
        self.settle();
    }

    /// Adds what the tables of `self` follow from. Its words are sorted by name.
    fn add(&mut self, other: &Profile) {
        if let (Some(course), Some(other)) = (&mut self.over_time, &other.over_time) {
            course.append(self.cycles, other);
        }
        self.cycles += other.cycles;
        self.warp_lanes = other.warp_lanes;
        self.longest_back_off_cycles = match self.instructions.is_empty() {
            true => other.longest_back_off_cycles,
            false => self.longest_back_off_cycles.min(other.longest_back_off_cycles),
        };
        for new in &other.instructions {
            let key = |i: &Instruction| i.kernel.cmp(&new.kernel).then(i.pc.cmp(&new.pc));
            match self.instructions.binary_search_by(key) {
                Ok(at) => self.instructions[at].counts.add(&new.counts),
                Err(at) => self.instructions.insert(at, new.clone()),
            }
        }
        other.words.iter().for_each(|word| self.add_word(word.clone()));
        other.waits.iter().for_each(|wait| self.add_wait(wait.clone()));
        for new in &other.barriers {
            match self.barriers.iter_mut().find(|known| known.line == new.line) {
                Some(known) => known.skew.merge(&new.skew),
                None => self.barriers.push(new.clone()),
            }
        }
        self.other_tries = [0, 1].map(|at| self.other_tries[at] + other.other_tries[at]);
    }

    /// Works out what follows from the instructions, words and waits, and sorts them.
    fn settle(&mut self) {
        self.time = Time::default();
        self.lines.clear();
        // By kernel and line: the line's number, and the time of the instruction that it is shown with.
        let mut known: FxHashMap<(&str, &str), (usize, u64)> = FxHashMap::default();
        for instruction in &self.instructions {
            let Instruction { kernel, line, at, text, inlined, counts, .. } = instruction;
            self.time.add(&counts.time);
            let new = (self.lines.len(), counts.warp_cycles);
            let (number, most) = known.entry((kernel, line)).or_insert(new);
            if *number == self.lines.len() {
                let (kernel, line) = (kernel.clone(), line.clone());
                let (text, at, inlined) = (text.clone(), at.clone(), inlined.clone());
                self.lines.push(Line { kernel, line, text, at, inlined, counts: counts.clone() });
                continue;
            }
            let sum = &mut self.lines[*number];
            if counts.warp_cycles > *most {
                *most = counts.warp_cycles;
                (sum.text, sum.at, sum.inlined) = (text.clone(), at.clone(), inlined.clone());
            }
            sum.counts.add(counts);
        }
        sort_large(&mut self.lines, |a, b| {
            let time = |line: &Line| Reverse(line.counts.warp_cycles);
            time(a).cmp(&time(b)).then_with(|| (&a.kernel, &a.line).cmp(&(&b.kernel, &b.line)))
        });
        sort_large(&mut self.words, |a, b| {
            let weight = |word: &WordProfile| Reverse((word.waited(), word.failed(), word.acquired));
            weight(a).cmp(&weight(b)).then_with(|| a.word.cmp(&b.word))
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
        self.time.sum()
    }
}

/// Sorts large values: each is moved twice.
fn sort_large<T>(values: &mut Vec<T>, order: impl Fn(&T, &T) -> Ordering) {
    let mut numbers: Vec<u32> = (0..values.len() as u32).collect();
    numbers.sort_by(|&a, &b| order(&values[a as usize], &values[b as usize]));
    let mut unsorted: Vec<Option<T>> = std::mem::take(values).into_iter().map(Some).collect();
    values.extend(numbers.into_iter().filter_map(|number| unsorted[number as usize].take()));
}
