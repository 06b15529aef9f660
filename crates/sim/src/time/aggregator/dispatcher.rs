//! The dispatcher: places CTAs of tasks on SMs, and puts wavefronts that yielded back on theirs.
//!
//! It keeps account of the free resources of each SM. An SM sends a message when a CTA has ended or a wavefront has
//! left, so the account lags by the latency of a message and never promises what is not free.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::chip::Chip;
use crate::exec::execute::Task;
use crate::exec::launch::Launch;
use crate::kit::cycle::Cycle;
use crate::kit::ids::ResultId;
use crate::time::dispatch::{Command, News, Yielded};
use crate::time::room::{Free, Needs};

/// A task some of whose CTAs have not been placed.
#[derive(Debug)]
struct Waiting {
    task: Arc<Task>,
    next: u32,
    /// When its packet is processed: no CTA is sent before.
    ready: Cycle,
    result: Option<ResultId>,
}

#[derive(Debug)]
pub(crate) struct Dispatcher {
    kernels: Vec<Needs>,
    /// By SM.
    free: Vec<Free>,
    tasks: VecDeque<Waiting>,
    restarts: VecDeque<(Yielded, Option<ResultId>)>,
    /// The SM that is tried first.
    turn: usize,
    /// When the last CTA was sent, and the last wavefront back: one per cycle. A wavefront that comes back does not
    /// wait for packets.
    last_start: Cycle,
    last_restart: Cycle,
    /// When the last packet is processed. Packets are processed one at a time.
    last_packet: Cycle,
    packet_cycles: u64,
    latency_cycles: u64,
    /// Commands with the cycle of their arrival and the SM.
    pub commands: Vec<(Cycle, u32, Command)>,
    /// CTAs that were ever placed.
    pub started: u64,
    /// Warps of these.
    pub started_warps: u64,
    /// CTAs that firmware asked for and that have not ended.
    pub running: u64,
    /// CTAs that ended, by kernel.
    pub finished: Vec<u64>,
    /// Restart records that firmware has not taken.
    pub yields: VecDeque<Yielded>,
    /// Wavefronts that yielded and were not restarted.
    pub away: Vec<Yielded>,
}

/// Results of tasks and restarts that were placed, with the cycle.
pub(crate) type Placed = Vec<(Option<ResultId>, Cycle)>;

impl Dispatcher {
    /// All SMs are empty.
    pub(crate) fn new(chip: &Chip, launches: &[Launch<'_>]) -> Dispatcher {
        Dispatcher {
            kernels: launches.iter().map(Needs::of).collect(),
            free: vec![Free::of_empty_sm(chip); chip.sm.count as usize],
            tasks: VecDeque::new(),
            restarts: VecDeque::new(),
            turn: 0,
            last_start: Cycle(0),
            last_restart: Cycle(0),
            last_packet: Cycle(0),
            packet_cycles: chip.aggregator.as_ref().map_or(0, |a| a.packet_cycles as u64),
            latency_cycles: chip.aggregator.as_ref().map_or(0, |a| a.command_latency_cycles as u64),
            commands: Vec::new(),
            started: 0,
            started_warps: 0,
            running: 0,
            finished: vec![0; launches.len()],
            yields: VecDeque::new(),
            away: Vec::new(),
        }
    }

    pub(crate) fn kernels(&self) -> usize {
        self.kernels.len()
    }

    /// Firmware starts a task in cycle `now`.
    pub(crate) fn add_task(&mut self, now: Cycle, task: Task, result: Option<ResultId>) {
        self.running += task.ctas as u64;
        self.last_packet = self.last_packet.max(now) + self.packet_cycles;
        self.tasks.push_back(Waiting { task: Arc::new(task), next: 0, ready: self.last_packet, result });
    }

    /// A wavefront is to be restarted. Returns false if it has not yielded, or is being restarted already.
    pub(crate) fn add_restart(&mut self, wavefront: Yielded, result: Option<ResultId>) -> bool {
        let same = |other: &Yielded| (other.cu, other.away) == (wavefront.cu, wavefront.away);
        let Some(at) = self.away.iter().position(same) else { return false };
        let wavefront = self.away.remove(at);
        self.yields.retain(|other| !same(other));
        self.restarts.push_back((wavefront, result));
        true
    }

    /// Firmware takes over the wavefront whose state is saved at an address.
    pub(crate) fn take_yield(&mut self, saved_at: u64) -> Option<Yielded> {
        let at = self.yields.iter().position(|wavefront| wavefront.saved_at == saved_at)?;
        self.yields.remove(at)
    }

    /// A message from an SM has arrived.
    pub(crate) fn hear(&mut self, cu: u32, news: &News) {
        let free = &mut self.free[cu as usize];
        match *news {
            News::Ended { kernel } => {
                let needs = &self.kernels[kernel as usize];
                free.end_cta(needs);
                self.running -= 1;
                self.finished[kernel as usize] += 1;
            }
            News::Yielded(wavefront) => {
                free.give_back(&self.kernels[wavefront.kernel as usize], 1);
                free.ctas += wavefront.cta_left as u32;
                self.yields.push_back(wavefront);
                self.away.push(wavefront);
            }
        }
    }

    /// Places waiting wavefronts and CTAs, in cycle `now`, as far as they fit. Returns those placed completely.
    pub(crate) fn place(&mut self, now: Cycle) -> Placed {
        let mut placed = Vec::new();
        self.restarts.retain(|&(wavefront, result)| {
            let needs = &self.kernels[wavefront.kernel as usize];
            let free = &mut self.free[wavefront.cu as usize];
            let fits = free.slots >= 1
                && free.registers >= needs.warp_registers
                && free.ctas >= wavefront.cta_left as u32;
            if fits {
                free.take(needs, 1);
                free.ctas -= wavefront.cta_left as u32;
                self.last_restart = self.last_restart.max(now) + 1;
                let command = Command::Restart(wavefront.away);
                self.commands.push((self.last_restart + self.latency_cycles, wavefront.cu, command));
                placed.push((result, self.last_restart));
            }
            !fits
        });
        while let Some(waiting) = self.tasks.front_mut() {
            let needs = &self.kernels[waiting.task.kernel as usize];
            let count = self.free.len();
            // A wavefront that returns to an SM goes before a task.
            let wanted = |cu: usize| self.restarts.iter().any(|(wavefront, _)| wavefront.cu as usize == cu);
            let fits = |cu: &usize| self.free[*cu].holds(needs) > 0 && !wanted(*cu);
            let Some(cu) = (0..count).map(|i| (self.turn + i) % count).find(fits) else { break };
            let free = &mut self.free[cu];
            free.start_cta(needs);
            self.turn = (cu + 1) % count;
            self.last_start = self.last_start.max(now).max(waiting.ready) + 1;
            let (task, index, number) = (waiting.task.clone(), waiting.next, self.started);
            let command = Command::Start { task, index, number };
            self.commands.push((self.last_start + self.latency_cycles, cu as u32, command));
            self.started += 1;
            self.started_warps += needs.warps as u64;
            waiting.next += 1;
            if waiting.next == waiting.task.ctas {
                placed.push((waiting.result, self.last_start));
                self.tasks.pop_front();
            }
        }
        placed
    }

    /// How many CTAs of a kernel could be placed at once.
    pub(crate) fn free(&self, kernel: u16) -> u32 {
        let needs = &self.kernels[kernel as usize];
        self.free.iter().map(|free| free.holds(needs)).sum()
    }

    /// Free warp slots of an SM.
    pub(crate) fn free_slots(&self, cu: u32) -> u32 {
        self.free.get(cu as usize).map_or(0, |free| free.slots)
    }

    /// Whether no CTA runs, waits or has yielded.
    pub(crate) fn is_idle(&self) -> bool {
        self.running == 0 && self.commands.is_empty()
    }

    /// CTAs that have not been placed.
    pub(crate) fn waiting(&self) -> u64 {
        self.tasks.iter().map(|waiting| (waiting.task.ctas - waiting.next) as u64).sum()
    }
}
