//! The machine with firmware: the aggregator decides which CTAs run, instead of the order of a grid.

use super::*;
use crate::exec::memory::store::OutOfMemory;
use crate::time::aggregator::AggregatorStats;
use crate::time::sm::front_end::decode::Code;

/// Memory for the state of warps that yield: as much as was ever needed at once. Areas are reused.
#[derive(Debug, Default)]
pub(crate) struct SaveAreas {
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

    /// Memory for the restart channel.
    fn restart_channel(&mut self, memory: &mut Memory, bytes: u64) -> Result<u64, OutOfMemory> {
        let address = memory.allocate(bytes, 256, "the restart records of wavefronts")?;
        memory.mark_written(address);
        self.all.push(address);
        Ok(address)
    }

    /// The run is over.
    pub(crate) fn free(&mut self, memory: &mut Memory) {
        self.free.clear();
        for address in self.all.drain(..) {
            memory.free(address);
        }
    }
}

/// The context of each kernel that firmware can start, or of a plan, by number. Kernels do not share lines of the
/// instruction cache.
pub(crate) fn contexts<'a>(launches: &'a [Launch<'a>], code: &'a [Code]) -> Vec<Context<'a>> {
    let fetch = &launches[0].chip.fetch;
    let per_line = fetch.cache.line_bytes / fetch.instruction_bytes;
    let mut code_start = 0;
    let context = |(launch, code): (&'a Launch<'a>, &'a Code)| {
        let context = Context::new(launch, code, code_start);
        code_start += (code.instructions.len() as u32).next_multiple_of(per_line);
        context
    };
    launches.iter().zip(code).map(context).collect()
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Whether there is no firmware, or it and all that it started have ended.
    pub(crate) fn firmware_is_done(&self) -> bool {
        self.aggregator.as_ref().is_none_or(|aggregator| aggregator.is_done() && self.commands.is_empty())
    }

    /// Whether firmware may still start something, or a message to it is in flight.
    pub(crate) fn firmware_runs(&self, now: Cycle) -> bool {
        let runs = |aggregator: &Unit<'_>| !aggregator.is_settled() || aggregator.cycle() > now;
        self.aggregator.as_ref().is_some_and(runs)
    }

    /// The next cycle in which the aggregator does something, or a command of it arrives.
    pub(crate) fn firmware_event(&self) -> Option<Cycle> {
        let aggregator = self.aggregator.as_ref()?;
        let command = self.commands.iter().map(|&(arrival, ..)| arrival).min();
        [aggregator.wakes_at(), command].into_iter().flatten().min()
    }

    /// SMs carry out the commands of the aggregator that have arrived by cycle `now`.
    pub(crate) fn obey(&mut self, now: Cycle) {
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

    /// No SM had a warp since the last one ended.
    fn count_stall(&mut self, now: Cycle) {
        let since = self.sms.iter().map(|sm| sm.dispatched.empty_since.min(now)).max().unwrap_or(now);
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.stats.gpu_stalled_cycles += now - since;
        }
    }

    /// Exchanges messages between the SMs, the aggregator and the network. Returns whether the aggregator changed
    /// anything.
    pub(crate) fn exchange_with_firmware(&mut self, memory: &mut Memory) -> bool {
        let Some(aggregator) = &mut self.aggregator else { return false };
        let latency = self.window;
        if let Some(bytes) = aggregator.wants_restart_channel() {
            match self.save_areas.restart_channel(memory, bytes) {
                Ok(address) => aggregator.set_restart_channel(address),
                Err(full) => {
                    aggregator.failure = Some(format!("no memory for wavefronts that yield: {full}"))
                }
            }
        }
        for id in 0..self.sms.len() {
            let sm = &mut self.sms[id];
            if sm.memory.switches.wants_room() {
                let areas = &mut self.save_areas;
                if let Err(full) = sm.memory.switches.give_room(|bytes| areas.take(memory, bytes)) {
                    aggregator.failure.get_or_insert(format!("no memory for wavefronts that yield: {full}"));
                }
                sm.wake_up();
            }
            if sm.memory.switches.wants_record() {
                sm.memory.switches.give_records(|| aggregator.place_for_record());
                sm.wake_up();
            }
            self.save_areas.give_back(&mut sm.memory.switches.free);
            for (cycle, news) in self.sms[id].dispatched.news.drain(..) {
                aggregator.hear(cycle + latency, id as u32, news);
            }
        }
        let source = self.nodes.port(Node::Aggregator);
        for (at, mut request) in aggregator.outbox().drain(..) {
            let port;
            (port, request.far) = self.side.routes.near_port(&request);
            self.requests.network.inject(source, at, port, request.request_bytes(), request);
        }
        if !aggregator.dispatcher.commands.is_empty() {
            self.commands.append(&mut aggregator.dispatcher.commands);
            // CTAs wait for their packet, wavefronts that come back do not.
            self.commands.sort_by_key(|&(arrival, ..)| arrival);
        }
        std::mem::take(&mut aggregator.changed)
    }

    /// The cycle until which firmware computes, as far as is known.
    pub(crate) fn firmware_computes_until(&self) -> Cycle {
        self.aggregator.as_ref().map_or(Cycle(0), |aggregator| aggregator.computes_until())
    }

    /// The cycle that firmware has reached, or in which it ended; 0 without firmware.
    pub(crate) fn firmware_cycle(&self) -> Cycle {
        self.aggregator.as_ref().map_or(Cycle(0), |aggregator| aggregator.cycle())
    }

    /// The counters of the aggregator, in a run that ended at cycle `last`.
    pub(crate) fn firmware_stats(&mut self, last: Cycle) -> Option<AggregatorStats> {
        self.aggregator.as_ref()?;
        if self.sms.iter().all(|sm| sm.dispatched.is_empty()) {
            self.count_stall(last);
        }
        self.sms.iter_mut().for_each(|sm| sm.dispatched.close(last));
        let empty = self.sms.iter().map(|sm| sm.dispatched.empty_cycles).sum();
        let stats = self.aggregator.as_ref().map(|aggregator| aggregator.stats.clone());
        stats.map(|stats| AggregatorStats { sm_stalled_cycles: empty, ..stats })
    }

    /// CTAs and warps that ever ran.
    pub(crate) fn started(&self) -> (u64, u64) {
        match (&self.aggregator, &self.plan) {
            (Some(aggregator), _) => (aggregator.dispatcher.started, aggregator.dispatcher.started_warps),
            (None, Some(plan)) => (plan.started(), 0),
            (None, None) => {
                (self.next_cta, self.next_cta * self.context.launch.occupancy.warps_per_cta as u64)
            }
        }
    }
}
