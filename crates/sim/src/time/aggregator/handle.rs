//! What firmware sees of the aggregator: [`Aggregator`] and the answers to its calls.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use warploom_isa::{AtomOp, Ty};

use crate::kit::ids::ResultId;
use crate::kit::slab::Slab;
use crate::time::aggregator::events::{Events, What};
use crate::time::aggregator::restarts::{self, RestartChannel};
use crate::time::dispatch::Yielded;

/// An operation that firmware has called.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub kind: CallKind,
    pub result: Option<ResultId>,
}

#[derive(Clone, Debug)]
pub(crate) enum CallKind {
    Compute(u64),
    /// `times` iterations of a load of firmware's own data and `dependents` instructions that need its value.
    Scan {
        times: u64,
        dependents: u64,
    },
    /// For so many core cycles.
    Sleep(u64),
    Load {
        address: u64,
        bytes: u32,
    },
    Store {
        address: u64,
        bytes: u32,
        value: u64,
    },
    Atomic {
        address: u64,
        op: AtomOp,
        ty: Ty,
        operands: [u64; 2],
    },
    Fence,
    Event,
    Dispatch {
        kernel: u16,
        ctas: u32,
        params: Vec<u8>,
    },
    Restart(Yielded),
    Ask(Question),
    /// For the timeline; takes no time.
    Record(What),
}

/// Instructions with which firmware compares a record's number with the one that it expects.
const RECORD_CHECK: u64 = 2;

/// What firmware can ask the hardware around it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    Now,
    Free { kernel: u16 },
    FreeSlots { cu: u32 },
    Running,
    Finished { kernel: u16 },
    TakeYield { saved_at: u64 },
    Yielded,
}

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Pending,
    /// Not known yet, and firmware has dropped the answer.
    Detached,
    /// Known from a slot on.
    Done {
        at_slot: u64,
        value: Value,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Word(u64),
    Yielded(Option<Yielded>),
}

/// What firmware and the core share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Operations that were called and have not begun.
    pub calls: std::collections::VecDeque<Call>,
    pub results: Slab<ResultId, Outcome>,
    /// Results that firmware waited for when it was last polled.
    pub awaited: Vec<ResultId>,
    /// The slot that firmware has reached.
    pub front_slot: u64,
    /// Firmware has failed, with this message.
    pub failure: Option<String>,
    /// What happened, if the run is traced.
    pub events: Option<Events>,
    /// Where wavefronts that yielded leave their records.
    pub restarts: Option<RestartChannel>,
}

impl Shared {
    /// A result is known from slot `at_slot` on.
    pub(crate) fn finish(&mut self, result: Option<ResultId>, at_slot: u64, value: Value) {
        let Some(id) = result else { return };
        if matches!(self.results[id], Outcome::Detached) {
            self.results.give_back(id);
        } else {
            self.results[id] = Outcome::Done { at_slot, value };
        }
    }
}

/// The aggregator, as firmware sees it. Clones are the same core.
///
/// A call begins an instruction; `.await` is where its value is used. So instructions that are called together overlap
/// as far as the core can (`let (a, b) = (agg.load32(x), agg.load32(y)); a.await + b.await`), and those with an
/// `.await` in between do not. Results need not be awaited.
#[derive(Clone, Debug)]
pub struct Aggregator {
    pub(crate) shared: Arc<Mutex<Shared>>,
}

impl Aggregator {
    /// With `events`, the run is traced.
    pub(crate) fn new(events: Option<Events>) -> Aggregator {
        Aggregator { shared: Arc::new(Mutex::new(Shared { events, ..Shared::default() })) }
    }

    /// What was recorded for the timeline.
    pub(crate) fn take_events(&self) -> Option<Events> {
        self.lock().events.take()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("nobody panics with it")
    }

    fn call<T: FromValue>(&self, kind: CallKind) -> Answer<T> {
        let mut shared = self.lock();
        let id = shared.results.put(Outcome::Pending);
        shared.calls.push_back(Call { kind, result: Some(id) });
        Answer { aggregator: self.clone(), id, open: true, value: PhantomData }
    }

    fn ask<T: FromValue>(&self, question: Question) -> Answer<T> {
        self.call(CallKind::Ask(question))
    }

    /// Executes `instructions` that touch no memory.
    pub fn compute(&self, instructions: u64) {
        self.lock().calls.push_back(Call { kind: CallKind::Compute(instructions), result: None });
    }

    /// A loop over firmware's own data, which is in its cache: `times` iterations of a load and `dependents`
    /// instructions that need its value. The next iteration's load begins early if the issue queue holds all dependents
    /// of this one.
    pub fn scan(&self, times: u64, dependents: u64) {
        self.lock().calls.push_back(Call { kind: CallKind::Scan { times, dependents }, result: None });
    }

    /// Does nothing for so many core cycles.
    pub fn sleep(&self, cycles: u64) -> Answer<()> {
        self.call(CallKind::Sleep(cycles))
    }

    /// Waits until a CTA ends or a wavefront yields. Answers at once if that has happened since the last answer to this
    /// call, so no event is missed between a check and a wait.
    pub fn event(&self) -> Answer<()> {
        self.call(CallKind::Event)
    }

    /// Loads a word.
    pub fn load32(&self, address: u64) -> Answer<u32> {
        self.call(CallKind::Load { address, bytes: 4 })
    }

    /// Loads a double word.
    pub fn load64(&self, address: u64) -> Answer<u64> {
        self.call(CallKind::Load { address, bytes: 8 })
    }

    /// Stores a word. Stores become visible in the order of their calls; the answer comes when this one is.
    pub fn store32(&self, address: u64, value: u32) -> Answer<()> {
        self.call(CallKind::Store { address, bytes: 4, value: value as u64 })
    }

    /// Stores a double word.
    pub fn store64(&self, address: u64, value: u64) -> Answer<()> {
        self.call(CallKind::Store { address, bytes: 8, value })
    }

    /// Replaces a word by `new` if it is `expected`. Answers what it was.
    pub fn cas32(&self, address: u64, expected: u32, new: u32) -> Answer<u32> {
        let operands = [expected as u64, new as u64];
        self.call(CallKind::Atomic { address, op: AtomOp::Cas, ty: Ty::B32, operands })
    }

    /// Replaces a double word by `new` if it is `expected`. Answers what it was.
    pub fn cas64(&self, address: u64, expected: u64, new: u64) -> Answer<u64> {
        self.call(CallKind::Atomic { address, op: AtomOp::Cas, ty: Ty::B64, operands: [expected, new] })
    }

    /// Adds to a word. Answers what it was.
    pub fn add32(&self, address: u64, value: u32) -> Answer<u32> {
        let operands = [value as u64, 0];
        self.call(CallKind::Atomic { address, op: AtomOp::Add, ty: Ty::U32, operands })
    }

    /// Adds to a double word. Answers what it was.
    pub fn add64(&self, address: u64, value: u64) -> Answer<u64> {
        self.call(CallKind::Atomic { address, op: AtomOp::Add, ty: Ty::U64, operands: [value, 0] })
    }

    /// Replaces a word. Answers what it was.
    pub fn exchange32(&self, address: u64, value: u32) -> Answer<u32> {
        let operands = [value as u64, 0];
        self.call(CallKind::Atomic { address, op: AtomOp::Exch, ty: Ty::B32, operands })
    }

    /// Waits until all accesses called before are done and visible.
    pub fn fence(&self) -> Answer<()> {
        self.call(CallKind::Fence)
    }

    /// Starts a grid of `ctas` CTAs in x of a kernel, by its number in the run, with these parameters. The answer comes
    /// when all are on an SM; until then they wait in the dispatcher, in the order of calls.
    pub fn dispatch(&self, kernel: u16, ctas: u32, params: Vec<u8>) -> Answer<()> {
        self.call(CallKind::Dispatch { kernel, ctas, params })
    }

    /// Puts a wavefront that yielded back on its SM. The answer comes when it has a slot there; until then it waits in
    /// the dispatcher, before any task.
    pub fn restart(&self, wavefront: Yielded) -> Answer<()> {
        self.call(CallKind::Restart(wavefront))
    }

    /// Takes the next record from the restart channel, if one is there: a load of the place where it will be, and if it
    /// is there, two loads and a store. A record may be there a little before the notice that [`event`](Self::event)
    /// and [`yielded`](Self::yielded) know of; then it is left for the next call.
    pub async fn next_yield(&self) -> Option<Yielded> {
        let (place, number) = self.lock().restarts.as_ref()?.next();
        let found = self.load32(place + restarts::NUMBER).await;
        self.compute(RECORD_CHECK);
        if found != number {
            return None;
        }
        let words = (self.load64(place + restarts::SAVED_AT), self.load64(place + restarts::RESOURCE));
        let (saved_at, resource) = (words.0.await, words.1.await);
        let wavefront = self.ask::<Option<Yielded>>(Question::TakeYield { saved_at }).await?;
        let (count, taken) = self.lock().restarts.as_mut()?.take();
        drop(self.store32(count, taken));
        Some(Yielded { resource, ..wavefront })
    }

    /// How many wavefronts have yielded and were not restarted.
    pub fn yielded(&self) -> Answer<u64> {
        self.ask(Question::Yielded)
    }

    /// How many CTAs of a kernel could be placed at once, on all SMs together.
    pub fn free(&self, kernel: u16) -> Answer<u32> {
        self.ask(Question::Free { kernel })
    }

    /// Free wavefront slots of an SM.
    pub fn free_slots(&self, cu: u32) -> Answer<u32> {
        self.ask(Question::FreeSlots { cu })
    }

    /// How many CTAs were started and have not ended: waiting for a place, running, or yielded.
    pub fn running(&self) -> Answer<u64> {
        self.ask(Question::Running)
    }

    /// How many CTAs of a kernel have ended.
    pub fn finished(&self, kernel: u16) -> Answer<u64> {
        self.ask(Question::Finished { kernel })
    }

    /// The core cycle, counted from the start of the run.
    pub fn now(&self) -> Answer<u64> {
        self.ask(Question::Now)
    }

    /// Names something that happens now, for the timeline. `name` is called only if the run is traced, and none of it
    /// takes simulated time.
    pub fn note(&self, name: impl FnOnce() -> String) {
        if self.is_traced() {
            self.record(What::Note(name()));
        }
    }

    /// Names what firmware does until the span is dropped, for the timeline, as [`note`](Aggregator::note) does. Spans
    /// must be dropped in the reverse order of their making.
    pub fn span(&self, name: impl FnOnce() -> String) -> Span {
        let traced = self.is_traced();
        if traced {
            self.record(What::Begin(name()));
        }
        Span { of: traced.then(|| self.clone()) }
    }

    fn is_traced(&self) -> bool {
        self.lock().events.is_some()
    }

    fn record(&self, what: What) {
        self.lock().calls.push_back(Call { kind: CallKind::Record(what), result: None });
    }

    /// Ends the run with an error.
    pub fn fail(&self, message: impl Into<String>) {
        self.lock().failure.get_or_insert(message.into());
    }
}

/// A part of firmware's work that the timeline shows by name, until this is dropped.
#[derive(Debug)]
pub struct Span {
    /// The aggregator, if the run is traced.
    of: Option<Aggregator>,
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(aggregator) = &self.of
            && let Ok(mut shared) = aggregator.shared.lock()
        {
            shared.calls.push_back(Call { kind: CallKind::Record(What::End), result: None });
        }
    }
}

/// The answer to a call: to be awaited, or dropped if it is not needed.
#[derive(Debug)]
pub struct Answer<T> {
    aggregator: Aggregator,
    id: ResultId,
    /// The result has not been taken.
    open: bool,
    value: PhantomData<fn() -> T>,
}

impl<T: FromValue> Future for Answer<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let id = self.id;
        let value = {
            let mut shared = self.aggregator.lock();
            match shared.results[id] {
                Outcome::Done { at_slot, value }
                    if at_slot <= shared.front_slot && shared.calls.is_empty() =>
                {
                    shared.results.give_back(id);
                    value
                }
                _ => {
                    shared.awaited.push(id);
                    return Poll::Pending;
                }
            }
        };
        self.open = false;
        Poll::Ready(T::from_value(value))
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if self.open
            && let Ok(mut shared) = self.aggregator.shared.lock()
        {
            match shared.results[self.id] {
                Outcome::Done { .. } => shared.results.give_back(self.id),
                _ => shared.results[self.id] = Outcome::Detached,
            }
        }
    }
}

/// The type of an answer.
pub trait FromValue {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn from_value(value: Value) -> Self;
}

macro_rules! from_word {
    ($($type:ty: $word:ident => $made:expr),*) => {$(
        #[allow(private_interfaces)]
        impl FromValue for $type {
            fn from_value(value: Value) -> Self {
                match value {
                    Value::Word($word) => $made,
                    Value::Yielded(_) => Default::default(),
                }
            }
        }
    )*};
}

from_word!(u32: word => word as u32, u64: word => word);

#[allow(private_interfaces)]
impl FromValue for () {
    fn from_value(_: Value) {}
}

#[allow(private_interfaces)]
impl FromValue for Option<Yielded> {
    fn from_value(value: Value) -> Self {
        match value {
            Value::Yielded(wavefront) => wavefront,
            Value::Word(_) => None,
        }
    }
}
