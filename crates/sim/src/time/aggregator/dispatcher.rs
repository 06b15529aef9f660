//! The dispatcher: gives CTAs of tasks a place on an SM, and wavefronts that yielded their place back.
//!
//! It keeps the books of what each SM has left. An SM tells it when a CTA has ended or a wavefront has left, so the
//! books are late by the way of a message and never promise what is not there.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::chip::Chip;
use crate::exec::execute::Task;
use crate::exec::launch::Launch;
use crate::time::dispatch::{Command, News, Yielded};

/// What a CTA of a kernel needs of an SM.
#[derive(Clone, Copy, Debug)]
struct Needs {
    warps: u32,
    warp_registers: u32,
    shared_bytes: u32,
}

/// What an SM has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Books {
    ctas: u32,
    slots: u32,
    registers: u32,
    shared_bytes: u32,
}

impl Books {
    fn holds(&self, needs: &Needs) -> u32 {
        [
            self.ctas,
            self.slots / needs.warps,
            self.registers / (needs.warps * needs.warp_registers).max(1),
            self.shared_bytes.checked_div(needs.shared_bytes).unwrap_or(u32::MAX),
        ]
        .into_iter()
        .min()
        .unwrap_or(0)
    }

    fn take(&mut self, needs: &Needs, warps: u32) {
        self.slots -= warps;
        self.registers -= warps * needs.warp_registers;
    }

    fn give_back(&mut self, needs: &Needs, warps: u32) {
        self.slots += warps;
        self.registers += warps * needs.warp_registers;
    }
}

/// A task some of whose CTAs have no place yet.
#[derive(Debug)]
struct Waiting {
    task: Arc<Task>,
    next: u32,
    result: Option<u32>,
}

/// The dispatcher.
#[derive(Debug)]
pub struct Dispatcher {
    kernels: Vec<Needs>,
    books: Vec<Books>,
    tasks: VecDeque<Waiting>,
    restarts: VecDeque<(Yielded, Option<u32>)>,
    /// The SM that is asked first.
    turn: usize,
    /// When the last command was sent: one goes in a cycle.
    last: u64,
    latency: u64,
    /// Commands with the cycle of their arrival and the SM.
    pub commands: Vec<(u64, u32, Command)>,
    /// CTAs that ever got a place.
    pub started: u64,
    /// Warps of these.
    pub started_warps: u64,
    /// CTAs that were called for and have not ended.
    pub running: u64,
    /// CTAs that ended, by kernel.
    pub finished: Vec<u64>,
    /// Restart records that firmware has not taken.
    pub yields: VecDeque<Yielded>,
    /// Wavefronts that yielded and were not restarted, by resource for the hang report.
    pub away: Vec<Yielded>,
}

/// Something that got its place in a cycle: where its result goes.
pub(crate) type Placed = Vec<(Option<u32>, u64)>;

impl Dispatcher {
    /// All SMs are empty.
    pub fn new(chip: &Chip, launches: &[Launch<'_>]) -> Dispatcher {
        let sm = &chip.sm;
        let needs = |launch: &Launch<'_>| Needs {
            warps: launch.occupancy.warps_per_cta,
            warp_registers: (launch.occupancy.registers * sm.warp_lanes).next_multiple_of(sm.register_unit),
            shared_bytes: launch.occupancy.shared_bytes.next_multiple_of(sm.shared_unit_bytes),
        };
        let slots = sm.max_warps.min(sm.max_threads / sm.warp_lanes);
        let empty =
            Books { ctas: sm.max_ctas, slots, registers: sm.registers, shared_bytes: sm.shared_bytes };
        Dispatcher {
            kernels: launches.iter().map(needs).collect(),
            books: vec![empty; sm.count as usize],
            tasks: VecDeque::new(),
            restarts: VecDeque::new(),
            turn: 0,
            last: 0,
            latency: chip.aggregator.as_ref().map_or(0, |a| a.command_latency_cycles as u64),
            commands: Vec::new(),
            started: 0,
            started_warps: 0,
            running: 0,
            finished: vec![0; launches.len()],
            yields: VecDeque::new(),
            away: Vec::new(),
        }
    }

    /// How many kernels there are.
    pub fn kernels(&self) -> usize {
        self.kernels.len()
    }

    /// A task is called for.
    pub fn add_task(&mut self, task: Task, result: Option<u32>) {
        self.running += task.ctas as u64;
        self.tasks.push_back(Waiting { task: Arc::new(task), next: 0, result });
    }

    /// A wavefront is to be restarted. False if it has not yielded, or is on its way back already.
    pub fn add_restart(&mut self, wavefront: Yielded, result: Option<u32>) -> bool {
        let same = |other: &Yielded| (other.cu, other.ticket) == (wavefront.cu, wavefront.ticket);
        let Some(at) = self.away.iter().position(same) else { return false };
        let wavefront = self.away.remove(at);
        self.yields.retain(|other| !same(other));
        self.restarts.push_back((wavefront, result));
        true
    }

    /// An SM has news.
    pub fn hear(&mut self, cu: u32, news: &News) {
        let books = &mut self.books[cu as usize];
        match *news {
            News::Ended { kernel } => {
                let needs = &self.kernels[kernel as usize];
                books.give_back(needs, needs.warps);
                books.shared_bytes += needs.shared_bytes;
                books.ctas += 1;
                self.running -= 1;
                self.finished[kernel as usize] += 1;
            }
            News::Yielded(wavefront) => {
                books.give_back(&self.kernels[wavefront.kernel as usize], 1);
                books.ctas += wavefront.cta_left as u32;
                self.yields.push_back(wavefront);
                self.away.push(wavefront);
            }
        }
    }

    /// Gives places to whoever waits for one, in cycle `now`. Returns who has all it wants, and when.
    pub(crate) fn place(&mut self, now: u64) -> Placed {
        let mut placed = Vec::new();
        self.restarts.retain(|&(wavefront, result)| {
            let needs = &self.kernels[wavefront.kernel as usize];
            let books = &mut self.books[wavefront.cu as usize];
            let fits = books.slots >= 1
                && books.registers >= needs.warp_registers
                && books.ctas >= wavefront.cta_left as u32;
            if fits {
                books.take(needs, 1);
                books.ctas -= wavefront.cta_left as u32;
                self.last = self.last.max(now) + 1;
                let command = Command::Restart(wavefront.ticket);
                self.commands.push((self.last + self.latency, wavefront.cu, command));
                placed.push((result, self.last));
            }
            !fits
        });
        while let Some(waiting) = self.tasks.front_mut() {
            let needs = &self.kernels[waiting.task.kernel as usize];
            let count = self.books.len();
            // A wavefront that comes back to an SM goes before a task.
            let wanted = |cu: usize| self.restarts.iter().any(|(wavefront, _)| wavefront.cu as usize == cu);
            let fits = |cu: &usize| self.books[*cu].holds(needs) > 0 && !wanted(*cu);
            let Some(cu) = (0..count).map(|i| (self.turn + i) % count).find(fits) else { break };
            let books = &mut self.books[cu];
            books.take(needs, needs.warps);
            books.shared_bytes -= needs.shared_bytes;
            books.ctas -= 1;
            self.turn = (cu + 1) % count;
            self.last = self.last.max(now) + 1;
            let (task, index, number) = (waiting.task.clone(), waiting.next, self.started);
            self.commands.push((self.last + self.latency, cu as u32, Command::Start { task, index, number }));
            self.started += 1;
            self.started_warps += needs.warps as u64;
            waiting.next += 1;
            if waiting.next == waiting.task.ctas {
                placed.push((waiting.result, self.last));
                self.tasks.pop_front();
            }
        }
        placed
    }

    /// CTAs of a kernel that would have a place at once.
    pub fn free(&self, kernel: u16) -> u32 {
        let needs = &self.kernels[kernel as usize];
        self.books.iter().map(|books| books.holds(needs)).sum()
    }

    /// Free slots of an SM.
    pub fn free_slots(&self, cu: u32) -> u32 {
        self.books.get(cu as usize).map_or(0, |books| books.slots)
    }

    /// Whether nobody runs, waits or has yielded.
    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.commands.is_empty()
    }

    /// CTAs that wait for a place.
    pub fn waiting(&self) -> u64 {
        self.tasks.iter().map(|waiting| (waiting.task.ctas - waiting.next) as u64).sum()
    }
}
