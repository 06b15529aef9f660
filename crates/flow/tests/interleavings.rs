//! The host's channel under random interleavings of producers, consumers and the aggregator: no element is lost
//! or duplicated.

use std::collections::BTreeMap;

use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

use warploom_flow::{Arena, Channel, DESCRIPTOR_BYTES, Drain, Shape, Word};

/// A word whose every access lets the checker switch threads.
struct Cell(AtomicU32);

impl Word for Cell {
    fn new(value: u32) -> Cell {
        Cell(AtomicU32::new(value))
    }

    fn load(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    fn store(&self, value: u32) {
        self.0.store(value, Ordering::SeqCst);
    }

    fn compare_exchange(&self, expected: u32, new: u32) -> u32 {
        match self.0.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(old) | Err(old) => old,
        }
    }

    fn add(&self, value: u32) -> u32 {
        self.0.fetch_add(value, Ordering::SeqCst)
    }
}

const PRODUCERS: u32 = 3;
const CONSUMERS: usize = 2;
const EACH: u32 = 6;

fn many_of_each() {
    let shape = Shape { group: 2, ..Shape::new(4, 1) };
    let memory = Arc::new(Arena::<Cell>::new(0, DESCRIPTOR_BYTES + shape.array_bytes()));
    let channel = Channel::at(shape, 0, DESCRIPTOR_BYTES);
    channel.describe(&memory, 1);
    let produce = |producer: u32| {
        let memory = memory.clone();
        thread::spawn(move || {
            let mut made = 0;
            while made < EACH {
                let count = 1 + (producer + made) % 2;
                let count = count.min(EACH - made);
                let Some(at) = channel.talloc(&memory, count) else {
                    thread::yield_now();
                    continue;
                };
                for i in 0..count {
                    memory.store(channel.word(at.wrapping_add(i), 0), 1 + producer * 100 + made + i);
                }
                channel.enq(&memory, at, count);
                made += count;
            }
        })
    };
    let producers: Vec<_> = (0..PRODUCERS).map(produce).collect();
    // Entries that the aggregator has dispatched, and the values that consumers found.
    let handed = Arc::new(Mutex::new(Vec::<u32>::new()));
    let found = Arc::new(Mutex::new(BTreeMap::<u32, u32>::new()));
    let consume = |_| {
        let (memory, handed, found) = (memory.clone(), handed.clone(), found.clone());
        thread::spawn(move || {
            loop {
                let entry = handed.lock().unwrap().pop();
                let Some(entry) = entry else {
                    if found.lock().unwrap().values().sum::<u32>() == PRODUCERS * EACH {
                        return;
                    }
                    thread::yield_now();
                    continue;
                };
                let at = channel.deq(&memory, entry);
                let value = memory.load(channel.word(at, 0));
                // From here on the element no longer belongs to this consumer.
                channel.tfree(&memory, at);
                *found.lock().unwrap().entry(value).or_default() += 1;
            }
        })
    };
    let consumers: Vec<_> = (0..CONSUMERS).map(consume).collect();
    let mut drain = Drain::default();
    let mut out = 0;
    let mut freed = 0;
    while freed < PRODUCERS * EACH {
        // Closing is correct at any time, so it is tried again and again.
        let (first, count) = drain.dispatch(&channel, &memory, 3);
        handed.lock().unwrap().extend((0..count).map(|i| first.wrapping_add(i)));
        out += count;
        let head = memory.load(channel.head());
        freed += drain.free(&channel, &memory) + drain.close(&channel, &memory);
        assert!(memory.load(channel.head()) >= head, "heads only go forward");
        assert!(freed <= out, "nothing is free that was not handed out");
        thread::yield_now();
    }
    producers.into_iter().chain(consumers).for_each(|thread| thread.join().unwrap());
    let found = found.lock().unwrap();
    let expected: BTreeMap<u32, u32> =
        (0..PRODUCERS).flat_map(|p| (0..EACH).map(move |i| (1 + p * 100 + i, 1))).collect();
    assert_eq!(*found, expected);
}

#[test]
fn random_schedules() {
    shuttle::check_random(many_of_each, 5_000);
}

#[test]
fn schedules_with_few_preemptions() {
    shuttle::check_pct(many_of_each, 5_000, 3);
}
