//! The machine with firmware: the aggregator decides which CTAs run, instead of the order of a grid.

use warploom_isa::Op;

use super::*;
use crate::aggregator::{Aggregator, AggregatorStats};
use crate::hang::{Hang, HangKind};
use crate::mem::store::OutOfMemory;

/// What makes firmware.
pub type MakeFirmware<'f> = Box<dyn FnOnce(Aggregator) -> Running<'f> + Send + 'f>;

/// Memory for the state of warps that yield: as much as was ever needed at once, used again.
#[derive(Debug, Default)]
pub(super) struct SaveAreas {
    all: Vec<u64>,
    free: Vec<(usize, u64)>,
}

impl SaveAreas {
    fn take(&mut self, memory: &mut Memory, bytes: usize) -> Result<u64, OutOfMemory> {
        if let Some(at) = self.free.iter().position(|&(size, _)| size == bytes) {
            return Ok(self.free.swap_remove(at).1);
        }
        let address = memory.allocate(bytes as u64, 256, "the state of yielded wavefronts")?;
        memory.mark_written(address);
        self.all.push(address);
        Ok(address)
    }

    fn give_back(&mut self, areas: &mut Vec<(usize, u64)>) {
        self.free.append(areas);
    }

    /// The run is over.
    pub fn free(&mut self, memory: &mut Memory) {
        self.free.clear();
        for address in self.all.drain(..) {
            memory.free(address);
        }
    }
}

/// Runs firmware to its end, and all CTAs that it starts. Its kernels are those of `launches`, by number.
pub fn run_firmware<'f, const N: usize, P: Probe>(
    launches: &'f [Launch<'f>],
    firmware: (Running<'f>, Aggregator),
    timing: &Timing,
    memory: &mut Memory,
    side: &mut MemorySide,
    make_probe: impl Fn(u32, u64) -> (SmStats, P),
) -> (Result<Stats, LaunchError>, Vec<P>) {
    let chip = launches[0].chip;
    let code: Vec<Vec<Decoded>> = launches.iter().map(|launch| decode(launch.kernel, chip)).collect();
    let per_line = chip.fetch.cache.line_bytes / chip.fetch.instruction_bytes;
    let mut code_start = 0;
    let mut contexts = launches.iter().zip(&code).map(|(launch, code)| {
        let context = Context { launch, code, code_start, others: &[] };
        code_start += (code.len() as u32).next_multiple_of(per_line);
        context
    });
    let first = contexts.next().expect("there is a kernel");
    let others: Vec<Context<'_>> = contexts.collect();
    let context = Context { others: &others, ..first };
    let unit = Unit::new(chip, launches, firmware, chip.sm.count as u16, side.now);
    run_in::<N, P>(context, Some(unit), timing, memory, side, make_probe)
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Whether there is no firmware, or it and all that it started have ended.
    pub(super) fn firmware_is_done(&self) -> bool {
        self.aggregator.as_ref().is_none_or(|aggregator| aggregator.is_done() && self.commands.is_empty())
    }

    /// Whether firmware may still start something, or there is news of what it started.
    pub(super) fn firmware_runs(&self, now: u64) -> bool {
        let runs = |aggregator: &Unit<'_>| !aggregator.is_settled() || aggregator.cycle() > now;
        self.aggregator.as_ref().is_some_and(runs)
    }

    /// When the aggregator, or a command of it, does something next.
    pub(super) fn firmware_event(&self) -> Option<u64> {
        let aggregator = self.aggregator.as_ref()?;
        let command = self.commands.iter().map(|&(arrival, ..)| arrival).min();
        [aggregator.wakes_at(), command].into_iter().flatten().min()
    }

    /// SMs do what the aggregator wanted of them by cycle `now`.
    pub(super) fn obey(&mut self, now: u64) {
        if self.commands.is_empty() {
            return;
        }
        let stalled = self.sms.iter().all(|sm| sm.dispatched.is_empty());
        let mut obeyed = false;
        // Commands are in the order of their arrival.
        while self.commands.first().is_some_and(|&(arrival, ..)| arrival <= now) {
            let (_, sm, command) = self.commands.remove(0);
            self.sms[sm as usize].obey(&self.context, command, now);
            obeyed = true;
        }
        if stalled && obeyed {
            self.count_stall(now);
        }
    }

    /// No SM had a warp from the last one's end until now.
    fn count_stall(&mut self, now: u64) {
        let since = self.sms.iter().map(|sm| sm.dispatched.empty_since.min(now)).max().unwrap_or(now);
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.stats.gpu_stalled_cycles += now - since;
        }
    }

    /// Exchanges what the SMs and the aggregator have for each other and the network. Returns whether anything changed.
    pub(super) fn exchange_with_firmware(&mut self, memory: &mut Memory) -> bool {
        let Some(aggregator) = &mut self.aggregator else { return false };
        let latency = self.window;
        for id in 0..self.sms.len() {
            let sm = &mut self.sms[id];
            if sm.memory.switches.wants_room() {
                let areas = &mut self.save_areas;
                if let Err(full) = sm.memory.switches.give_room(|bytes| areas.take(memory, bytes)) {
                    aggregator.failure.get_or_insert(format!("no memory for wavefronts that yield: {full}"));
                }
                sm.wake_up();
            }
            self.save_areas.give_back(&mut sm.memory.switches.free);
            for (cycle, news) in self.sms[id].dispatched.news.drain(..) {
                aggregator.hear(cycle + latency, id as u32, news);
            }
        }
        let node = self.sms.len();
        for (at, request) in aggregator.outbox().drain(..) {
            let port = self.side.port(request.line);
            self.requests.inject(node, at, port, request.request_bytes(), request);
        }
        self.commands.append(&mut aggregator.dispatcher.commands);
        std::mem::take(&mut aggregator.changed)
    }

    /// Until when firmware computes, as far as it has come.
    pub(super) fn firmware_computes_until(&self) -> u64 {
        self.aggregator.as_ref().map_or(0, |aggregator| aggregator.computes_until())
    }

    /// The cycle that firmware has come to, or in which it ended, if there is any.
    pub(super) fn firmware_cycle(&self) -> u64 {
        self.aggregator.as_ref().map_or(0, |aggregator| aggregator.cycle())
    }

    /// What the aggregator did, in a run that ended at cycle `last`.
    pub(super) fn firmware_stats(&mut self, last: u64) -> Option<AggregatorStats> {
        self.aggregator.as_ref()?;
        if self.sms.iter().all(|sm| sm.dispatched.is_empty()) {
            self.count_stall(last);
        }
        self.sms.iter_mut().for_each(|sm| sm.dispatched.close(last));
        let empty = self.sms.iter().map(|sm| sm.dispatched.empty_cycles).sum();
        let stats = self.aggregator.as_ref().map(|aggregator| aggregator.stats.clone());
        stats.map(|stats| AggregatorStats { sm_stalled_cycles: empty, ..stats })
    }

    /// Who waits for what in a run of firmware: the kernel with the most telling cause, and the aggregator.
    pub(super) fn explain_firmware(&self, reason: HangReason, now: u64, policy: &str) -> Hang {
        let kernels = 0..=self.context.others.len() as u16;
        let told = kernels.map(|kernel| self.explain_kernel(kernel, reason.clone(), now, policy));
        let hang = told.filter(|hang| !hang.ctas.is_empty()).min_by_key(|hang| hang.kind);
        let Some(aggregator) = &self.aggregator else { unreachable!("firmware runs on it") };
        let memory = self.memory.read().expect(NO_PANIC);
        let aggregator = Some(aggregator.tell(&memory));
        match hang {
            Some(hang) => {
                let help = format!("{}{}", hang.help, self.missing_yield().unwrap_or_default());
                Hang { aggregator, help, ..hang }
            }
            None => Hang {
                kernel: String::new(),
                reason,
                kind: HangKind::Starved,
                subject: String::new(),
                cycles: now.saturating_sub(self.start),
                ctas: Vec::new(),
                more_ctas: 0,
                live_warps: self
                    .sms
                    .iter()
                    .flat_map(|sm| sm.residents())
                    .map(|r| r.cta.live_warps as u64)
                    .sum(),
                unstarted_ctas: 0,
                grid_ctas: 0,
                aggregator,
                livelock: None,
                help: "let firmware restart wavefronts that yielded, or start what they wait for; \
                       see docs/hangs.md#nothing-to-start"
                    .to_string(),
            },
        }
    }

    /// What to say if kernels would yield and the chip's wavefronts cannot: who waits for room keeps its place.
    fn missing_yield(&self) -> Option<String> {
        let chip = self.context.launch.chip;
        let contexts = std::iter::once(&self.context).chain(self.context.others);
        let mut yields = contexts.flat_map(|context| &context.launch.kernel.code).map(|inst| inst.op);
        let missing = chip.wavefront_yield.is_none() && yields.any(|op| op == Op::Yield);
        missing.then(|| {
            format!(
                "; wavefronts of `{}` cannot yield (it has no [yield]), so those that wait for room in a full channel keep \
                 their places from what would make room (docs/channels.md)",
                chip.name
            )
        })
    }

    /// CTAs and warps that ever ran.
    pub(super) fn started(&self) -> (u64, u64) {
        match &self.aggregator {
            Some(aggregator) => (aggregator.dispatcher.started, aggregator.dispatcher.started_warps),
            None => (self.next_cta, self.next_cta * self.context.launch.occupancy.warps_per_cta as u64),
        }
    }
}
