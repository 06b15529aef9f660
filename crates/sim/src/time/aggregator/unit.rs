//! The aggregator among the other units of the chip: polls its firmware and moves its time forward, window by window.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use crate::chip::Chip;
use crate::exec::execute::Task;
use crate::exec::launch::Launch;
use crate::exec::memory::store::Memory;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{ResultId, Ticket};
use crate::kit::line::LineAddress;
use crate::time::aggregator::clock::Clock;
use crate::time::aggregator::dispatcher::Dispatcher;
use crate::time::aggregator::events::What;
use crate::time::aggregator::handle::{Aggregator, Call, CallKind, Outcome, Question, Shared, Value};
use crate::time::aggregator::pipeline::{Pipeline, When};
use crate::time::aggregator::port::{Atomic, Done, Port, Store, Waiter};
use crate::time::aggregator::restarts::RestartChannel;
use crate::time::aggregator::{AggregatorStats, Running};
use crate::time::directory::{Given, Grant, Probe};
use crate::time::dispatch::{News, Yielded};
use crate::time::network::message::Request;
use crate::time::sm::load_store::switch::RecordPlace;

/// A message to the aggregator.
#[derive(Clone, Debug)]
enum Message {
    /// The answer to one of its requests.
    Answer(Ticket),
    /// From the directory: another node wants a line.
    Probe(Probe),
    /// From an SM.
    News(u32, News),
}

/// The control processor: its firmware and its hardware.
pub(crate) struct Unit<'f> {
    firmware: Option<Running<'f>>,
    handle: Aggregator,
    clock: Clock,
    pipeline: Pipeline,
    port: Port,
    hit_slots: u64,
    issue_queue: u64,
    /// The access of the first call could not be made; it is tried again after a message.
    refused: bool,
    store_queue: usize,
    command_instructions: u64,
    /// What the restart channel holds, 0 if wavefronts cannot yield.
    restart_records: u32,
    param_bytes: Vec<u32>,
    pub dispatcher: Dispatcher,
    pub stats: AggregatorStats,
    /// By cycle of arrival, then in order.
    inbox: BTreeMap<(Cycle, u64), Message>,
    messages: u64,
    /// Results of waits for an event.
    listeners: Vec<Option<ResultId>>,
    /// There was an event that no wait has returned for.
    unheard: bool,
    /// The slot that firmware has reached.
    front_slot: u64,
    /// The slot after the last in which it computed.
    computed_slot: u64,
    start: Cycle,
    polled: bool,
    /// Something other than its own state has changed since the machine last looked.
    pub changed: bool,
    /// Why firmware has failed.
    pub failure: Option<String>,
    /// Its last loads, for the hang report.
    pub last_loads: [Option<u64>; 4],
}

impl<'f> Unit<'f> {
    /// Firmware, which holds the handle beside it, begins at cycle `start`.
    pub(crate) fn new(
        chip: &Chip,
        launches: &[Launch<'_>],
        (firmware, handle): (Running<'f>, Aggregator),
        start: Cycle,
    ) -> Unit<'f> {
        let spec = chip.aggregator.as_ref().expect("the chip has an aggregator");
        let core = spec.chosen();
        let clock = Clock::new(chip, spec);
        Unit {
            firmware: Some(firmware),
            handle,
            clock,
            pipeline: Pipeline::new(core),
            port: Port::new(chip),
            hit_slots: u64::from(spec.hit_latency_clocks) * u64::from(core.width),
            issue_queue: core.issue_queue as u64,
            refused: false,
            store_queue: core.stores as usize,
            command_instructions: spec.command_instructions as u64,
            restart_records: chip.wavefront_yield.as_ref().map_or(0, |spec| spec.restart_records),
            param_bytes: launches.iter().map(|launch| launch.kernel.param_bytes).collect(),
            dispatcher: Dispatcher::new(chip, launches),
            stats: AggregatorStats::default(),
            inbox: BTreeMap::new(),
            messages: 0,
            listeners: Vec::new(),
            unheard: false,
            front_slot: clock.slot_from(start),
            computed_slot: 0,
            start,
            polled: false,
            changed: false,
            failure: None,
            last_loads: [None; 4],
        }
    }

    /// Whether firmware has ended, and all that it started.
    pub(crate) fn is_done(&self) -> bool {
        self.dispatcher.is_idle() && self.is_settled()
    }

    /// Whether firmware has ended, and so have its accesses.
    pub(crate) fn is_settled(&self) -> bool {
        self.firmware.is_none() && self.inbox.is_empty() && self.port.is_idle()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.firmware.is_none()
    }

    /// The cycle that firmware has reached.
    pub(crate) fn cycle(&self) -> Cycle {
        self.clock.cycle_of(self.front_slot)
    }

    /// The cycle in which it has done all computation that firmware has called for.
    pub(crate) fn computes_until(&self) -> Cycle {
        self.clock.cycle_of(self.computed_slot)
    }

    /// Whether firmware waits for an event that nothing on the chip may bring.
    pub(crate) fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Messages for the network, with the cycle they are sent.
    pub(crate) fn outbox(&mut self) -> &mut Vec<(Cycle, Request)> {
        &mut self.port.outbox
    }

    /// An L2 slice has served a message: moves its bytes. Returns whether memory changed.
    pub(crate) fn serve(&mut self, ticket: Ticket, memory: &mut Memory) -> bool {
        self.port.serve(ticket, memory)
    }

    /// The answer to a message arrives in a later cycle.
    pub(crate) fn receive(&mut self, arrival: Cycle, ticket: Ticket) {
        self.put(arrival, Message::Answer(ticket));
    }

    /// A probe of the directory arrives in a later cycle.
    pub(crate) fn receive_probe(&mut self, arrival: Cycle, probe: Probe) {
        self.put(arrival, Message::Probe(probe));
    }

    /// The directory answers a message that asked for a line.
    pub(crate) fn granted(
        &mut self,
        ticket: Ticket,
        grant: Grant,
        given: Option<&Given>,
        comes: bool,
        memory: &Memory,
    ) {
        self.port.granted(ticket, grant, given, comes, memory);
    }

    /// Clean lines that its cache has evicted.
    pub(crate) fn dropped(&mut self) -> &mut Vec<LineAddress> {
        &mut self.port.dropped
    }

    /// Responses to probes, with the cycle they are sent and the line.
    pub(crate) fn responses(&mut self) -> &mut Vec<(Cycle, LineAddress, Option<Box<Given>>)> {
        self.changed |= std::mem::take(&mut self.port.stored);
        &mut self.port.responses
    }

    /// Writes dirty lines of its cache to memory, without taking time.
    pub(crate) fn show_host(&self, memory: &mut Memory) {
        self.port.show_host(memory);
    }

    /// The bytes of the restart channel, if wavefronts can yield and it has no place yet.
    pub(crate) fn wants_restart_channel(&self) -> Option<u64> {
        let bytes = RestartChannel::bytes(self.restart_records, self.port.line_bytes());
        (self.restart_records > 0 && self.shared().restarts.is_none()).then_some(bytes)
    }

    pub(crate) fn set_restart_channel(&mut self, address: u64) {
        let channel = RestartChannel::new(address, self.restart_records, self.port.line_bytes());
        self.shared().restarts = Some(channel);
    }

    /// Where the next restart record goes, and its number, if the channel has room.
    pub(crate) fn place_for_record(&mut self) -> Option<RecordPlace> {
        self.shared().restarts.as_mut()?.reserve()
    }

    /// A message from an SM arrives in a later cycle.
    pub(crate) fn hear(&mut self, arrival: Cycle, cu: u32, news: News) {
        self.put(arrival, Message::News(cu, news));
    }

    fn put(&mut self, arrival: Cycle, message: Message) {
        self.inbox.insert((arrival, self.messages), message);
        self.messages += 1;
    }

    /// The network takes `packets` more packets from cycle `now` on.
    pub(crate) fn set_room(&mut self, packets: u32, now: Cycle) {
        if packets > self.port.room {
            self.pass_if_blocked(self.next_turn(), self.clock.slot_from(now));
        }
        self.port.room = packets;
        self.refused = false;
        self.port.next_store(now);
        self.collect(self.clock.slot_from(now) + self.hit_slots);
    }

    /// The next cycle in which it does something by itself.
    pub(crate) fn wakes_at(&self) -> Option<Cycle> {
        let message = self.inbox.keys().next().map(|&(arrival, _)| arrival);
        let turn = match self.next_turn() {
            When::At(slot) => Some(self.clock.cycle_of(slot)),
            When::Unknown => None,
        };
        [message, turn].into_iter().flatten().min()
    }

    /// Runs all cycles below `until`.
    pub(crate) fn run(&mut self, memory: &Memory, until: Cycle) {
        let limit = self.clock.slot_from(until);
        while self.failure.is_none() && self.step(memory, limit) {}
    }

    /// Handles the next message or call before slot `limit`. Returns whether there was any.
    fn step(&mut self, memory: &Memory, limit: u64) -> bool {
        let next = self.next_turn();
        if let Some((&(arrival, number), _)) = self.inbox.first_key_value() {
            let at = self.clock.slot_from(arrival);
            let first = match next {
                When::At(slot) => at <= slot,
                When::Unknown => true,
            };
            if first && at < limit {
                let message = self.inbox.remove(&(arrival, number)).expect("it is the first");
                self.pass_if_blocked(next, at);
                self.take(arrival, message);
                return true;
            }
        }
        let When::At(slot) = next else { return false };
        if slot >= limit {
            return false;
        }
        self.front_slot = self.front_slot.max(slot);
        self.pipeline.retire(self.front_slot);
        let call = self.shared().calls.pop_front();
        match call {
            Some(call) => self.begin(call, memory),
            None => self.poll(),
        }
        true
    }

    /// Time passes until slot `at` for a call that cannot begin.
    fn pass_if_blocked(&mut self, next: When, at: u64) {
        if next == When::Unknown && !self.shared().calls.is_empty() {
            self.front_slot = self.front_slot.max(at);
        }
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.handle.shared.lock().expect("nobody panics with it")
    }

    /// When the first call can begin, or firmware can go on.
    fn next_turn(&self) -> When {
        let shared = self.shared();
        if let Some(call) = shared.calls.front() {
            return self.when(call);
        }
        if self.firmware.is_none() {
            return When::Unknown;
        }
        if !self.polled {
            return When::At(self.front_slot);
        }
        let known = shared.awaited.iter().filter_map(|&id| match shared.results[id] {
            Outcome::Done { at_slot, .. } => Some(at_slot.max(self.front_slot)),
            _ => None,
        });
        known.min().map_or(When::Unknown, When::At)
    }

    /// When a call can begin.
    fn when(&self, call: &Call) -> When {
        if self.refused {
            return When::Unknown;
        }
        if matches!(call.kind, CallKind::Record(_)) {
            return When::At(self.front_slot);
        }
        let is_load = matches!(call.kind, CallKind::Load { .. } | CallKind::Atomic { .. });
        let When::At(at) = self.pipeline.next(self.front_slot, is_load) else { return When::Unknown };
        let waits = match call.kind {
            CallKind::Load { address, .. } => {
                !self.port.has_room() || self.port.atomics > 0 || self.port.stores_to_line(address)
            }
            CallKind::Store { .. } => self.port.atomics > 0 || self.port.pending_stores() >= self.store_queue,
            CallKind::Atomic { .. } => {
                !self.port.has_room() || self.port.atomics > 0 || self.port.pending_stores() > 0
            }
            CallKind::Fence if self.port.pending_stores() > 0 => true,
            CallKind::Fence => return self.pipeline.all_done(at),
            _ => false,
        };
        if waits { When::Unknown } else { When::At(at) }
    }

    /// A message has arrived.
    fn take(&mut self, cycle: Cycle, message: Message) {
        let at = self.clock.slot_from(cycle);
        self.refused = false;
        match message {
            Message::Answer(ticket) => {
                self.port.arrive(cycle, ticket);
                self.collect(at);
            }
            Message::Probe(probe) => {
                self.port.answer_probe(cycle, probe);
                self.port.next_store(cycle);
                self.collect(at);
            }
            Message::News(cu, news) => {
                match news {
                    News::Ended { .. } => self.stats.ended += 1,
                    News::Yielded(Yielded { kernel, .. }) => {
                        self.stats.yields += 1;
                        self.record(cycle, What::Yield { kernel, cu });
                    }
                }
                self.dispatcher.hear(cu, &news);
                self.place(cycle);
                self.unheard = self.listeners.is_empty();
                for listener in std::mem::take(&mut self.listeners) {
                    self.stats.idle_cycles += cycle.saturating_sub(self.clock.cycle_of(self.front_slot));
                    self.shared().finish(listener, at, Value::Word(0));
                }
            }
        }
    }

    /// Takes the accesses that the port has done; they are done from a slot on.
    fn collect(&mut self, at_slot: u64) {
        if !self.port.done.is_empty() {
            let mut shared = self.handle.shared.lock().expect("nobody panics with it");
            for done in self.port.done.drain(..) {
                if let Some(number) = done.waiter.number {
                    self.pipeline.done(number, at_slot);
                }
                shared.finish(done.waiter.result, at_slot, Value::Word(done.value));
            }
        }
        (self.stats.hits, self.stats.misses) = (self.port.hits, self.port.misses);
    }

    /// Places waiting wavefronts and CTAs, as far as they fit.
    fn place(&mut self, cycle: Cycle) {
        for (result, at) in self.dispatcher.place(cycle) {
            let at = self.clock.slot_from(at);
            self.shared().finish(result, at, Value::Word(0));
        }
        self.changed |= !self.dispatcher.commands.is_empty();
        self.stats.dispatched = self.dispatcher.started;
    }

    /// Firmware goes on until it waits for something.
    fn poll(&mut self) {
        self.polled = true;
        {
            let mut shared = self.shared();
            shared.awaited.clear();
            shared.front_slot = self.front_slot;
        }
        let Some(firmware) = &mut self.firmware else { return };
        let poll = firmware.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let mut shared = self.handle.shared.lock().expect("nobody panics with it");
        self.failure = shared.failure.take();
        match poll {
            Poll::Ready(()) => self.firmware = None,
            Poll::Pending if shared.awaited.is_empty() && shared.calls.is_empty() => {
                let message = "firmware waits for something that is not of the aggregator";
                self.failure.get_or_insert(message.to_string());
            }
            Poll::Pending => {}
        }
    }

    fn begin(&mut self, call: Call, memory: &Memory) {
        let Call { kind, result } = call;
        let cycle = self.clock.cycle_of(self.front_slot);
        match kind {
            CallKind::Compute(count) => {
                let (begun, slots) = self.pipeline.begin(count);
                self.stats.instructions += begun;
                self.front_slot += slots;
                self.computed_slot = self.front_slot;
                if begun < count {
                    let rest = Call { kind: CallKind::Compute(count - begun), result };
                    self.shared().calls.push_front(rest);
                }
            }
            CallKind::Scan { times, dependents } => {
                if dependents > self.issue_queue {
                    self.front_slot += times * self.hit_slots;
                }
                let kind = CallKind::Compute(times * (1 + dependents));
                self.shared().calls.push_front(Call { kind, result });
            }
            CallKind::Sleep(cycles) => {
                self.stats.idle_cycles += cycles;
                self.front_slot =
                    self.front_slot.max(self.clock.slot_from(Cycle(cycle.0.saturating_add(cycles))));
                self.finish(result, Value::Word(0));
            }
            CallKind::Event if std::mem::take(&mut self.unheard) => self.finish(result, Value::Word(0)),
            CallKind::Event => self.listeners.push(result),
            CallKind::Fence => self.finish(result, Value::Word(0)),
            CallKind::Load { address, bytes } => {
                if !self.check("load", address, bytes, memory) {
                    return;
                }
                let waiter = Waiter { number: Some(self.pipeline.begun), result };
                let Ok(value) = self.port.load(cycle, address, bytes, waiter) else {
                    return self.refuse(Call { kind, result });
                };
                self.last_loads.rotate_right(1);
                self.last_loads[0] = Some(address);
                self.stats.loads += 1;
                let started = self.front_slot;
                self.begin_access(true, result);
                if let Some(value) = value {
                    self.port.done.push(Done { waiter, value });
                }
                self.collect(started + self.hit_slots);
            }
            CallKind::Store { address, bytes, value } => {
                if !self.check("store", address, bytes, memory) {
                    return;
                }
                self.stats.stores += 1;
                let waiter = if self.pipeline.is_blocking() {
                    self.begin_access(false, result)
                } else {
                    self.instructions(1);
                    Waiter { number: None, result }
                };
                self.port.store(cycle, Store { address, bytes, value, waiter });
                self.collect(self.front_slot + self.hit_slots);
            }
            CallKind::Atomic { address, op, ty, operands } => {
                if !self.check("atomic", address, ty.bytes(), memory) {
                    return;
                }
                let waiter = Waiter { number: Some(self.pipeline.begun), result };
                if self.port.atomic(cycle, Atomic { address, op, ty, operands }, waiter).is_err() {
                    return self.refuse(Call { kind, result });
                }
                self.stats.atomics += 1;
                self.begin_access(true, result);
            }
            CallKind::Dispatch { kernel, ctas, params } => self.dispatch(kernel, ctas, params, result),
            CallKind::Restart(wavefront) => self.restart(wavefront, result),
            CallKind::Record(what) => self.record(cycle, what),
            CallKind::Ask(question) => {
                self.instructions(1);
                let value = self.answer(question);
                self.finish(result, value);
            }
        }
    }

    /// Records what happens in a cycle, if the run is traced.
    fn record(&self, cycle: Cycle, what: What) {
        if let Some(events) = &mut self.shared().events {
            events.record(cycle.saturating_sub(self.start), what);
        }
    }

    /// A call whose access cannot be made now waits for a message.
    fn refuse(&mut self, call: Call) {
        self.refused = true;
        self.shared().calls.push_front(call);
    }

    /// `count` instructions begin, of which the first can begin now.
    fn instructions(&mut self, count: u64) {
        // Instructions that are done at once wait for the first place only.
        let (begun, slots) = self.pipeline.begin(count);
        self.front_slot += slots + (count - begun) * self.pipeline.instruction_slots();
        self.stats.instructions += count;
    }

    /// An access to memory begins.
    fn begin_access(&mut self, is_load: bool, result: Option<ResultId>) -> Waiter {
        let number = Some(self.pipeline.begin_unfinished(is_load));
        self.front_slot += self.pipeline.instruction_slots();
        self.stats.instructions += 1;
        Waiter { number, result }
    }

    fn finish(&mut self, result: Option<ResultId>, value: Value) {
        self.shared().finish(result, self.front_slot, value);
    }

    fn answer(&mut self, question: Question) -> Value {
        let dispatcher = &mut self.dispatcher;
        let kernels = dispatcher.kernels();
        Value::Word(match question {
            Question::Now => self.clock.cycle_of(self.front_slot) - self.start,
            Question::Running => dispatcher.running,
            Question::Yielded => dispatcher.away.len() as u64,
            Question::FreeSlots { cu } => dispatcher.free_slots(cu) as u64,
            Question::TakeYield { saved_at } => return Value::Yielded(dispatcher.take_yield(saved_at)),
            Question::Free { kernel } | Question::Finished { kernel } if kernel as usize >= kernels => {
                self.failure = Some(format!("firmware asks about kernel {kernel} of {kernels}"));
                0
            }
            Question::Free { kernel } => dispatcher.free(kernel) as u64,
            Question::Finished { kernel } => dispatcher.finished[kernel as usize],
        })
    }

    fn dispatch(&mut self, kernel: u16, ctas: u32, params: Vec<u8>, result: Option<ResultId>) {
        let Some(&needed) = self.param_bytes.get(kernel as usize) else {
            let count = self.dispatcher.kernels();
            self.failure = Some(format!("firmware starts kernel {kernel} of {count}"));
            return;
        };
        if params.len() != needed as usize {
            let given = params.len();
            self.failure = Some(format!(
                "firmware starts kernel {kernel} with {given} bytes of parameters; it takes {needed}"
            ));
            return;
        }
        self.instructions(self.command_instructions);
        self.stats.starts += 1;
        if ctas == 0 {
            return self.finish(result, Value::Word(0));
        }
        let now = self.clock.cycle_of(self.front_slot);
        self.record(now, What::Start { kernel, ctas });
        self.dispatcher.add_task(now, Task { kernel, ctas, params }, result);
        self.place(now);
    }

    fn restart(&mut self, wavefront: Yielded, result: Option<ResultId>) {
        self.instructions(self.command_instructions);
        if !self.dispatcher.add_restart(wavefront, result) {
            self.failure = Some("firmware restarts a wavefront that has not yielded".to_string());
            return;
        }
        self.stats.restarts += 1;
        let now = self.clock.cycle_of(self.front_slot);
        self.record(now, What::Restart { kernel: wavefront.kernel, cu: wavefront.cu });
        self.place(now);
    }

    /// Whether an access of firmware is aligned and inside memory; otherwise the run ends.
    fn check(&mut self, what: &str, address: u64, bytes: u32, memory: &Memory) -> bool {
        let aligned = address.is_multiple_of(bytes as u64);
        if aligned && memory.read(address, bytes as usize).is_some() {
            return true;
        }
        let place = if aligned { memory.describe(address, bytes as u64) } else { "misaligned".to_string() };
        self.failure = Some(format!("firmware: {what} of {bytes} bytes at {address:#x}, {place}"));
        false
    }
}
