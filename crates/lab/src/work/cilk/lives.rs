//! The life of every element of the four programs in channels that are far too narrow for them: each is put once and
//! then processed once, before its place is taken again.

use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use warploom::isa::Space;
use warploom::observe::{Cycle, Observer, Word};
use warploom::sched::WarpSlot;
use warploom::{Chip, Device, SimOptions};
use warploom_flow::{Arena, Channel, Graph};

use super::{FlowPtx, fibonacci, flow_ptx, queens, sort, strassen};
use crate::random::Random;

/// The cycle and the address of every write to global memory.
type Writes = Vec<(Cycle, u64)>;

struct Writer {
    of_sm: Writes,
    all: Arc<Mutex<Writes>>,
}

impl Observer for Writer {
    fn wrote(&mut self, now: Cycle, _slot: WarpSlot, _lane: usize, word: Word, _took: bool) {
        if word.space == Space::Global {
            self.of_sm.push((now, word.address));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.all.lock().unwrap().append(&mut self.of_sm);
    }
}

/// What a write means for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Put,
    Freed,
}

/// Runs a graph over buffers of so many words, once on the device and once on the host, and follows all elements. With
/// groups of one, every place of a channel has a word that counts how often its element was freed.
fn follow(ptx: &FlowPtx, buffers: &[Vec<u32>], graph: impl Fn(&[u64]) -> Graph) {
    let all = Arc::new(Mutex::new(Writes::new()));
    let writes = all.clone();
    let chip = Chip::load("apu", &["sm.count=2".to_string()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions::default())
        .with_observer(move |_sm| Box::new(Writer { of_sm: Vec::new(), all: writes.clone() }))
        .unwrap();
    let module = gpu.load_ptx(ptx.aggregator.1).unwrap();
    let words: Vec<_> = buffers.iter().map(|words| gpu.buffer(words).unwrap()).collect();
    let addresses: Vec<u64> = words.iter().map(|words| words.address()).collect();
    let mut narrow = graph(&addresses);
    let execution = narrow.group(1).execute(&mut gpu, &module).unwrap();
    let channels: Vec<Channel> = execution.channels().to_vec();
    let report = execution.wait().unwrap();
    assert!(report.aggregator.unwrap()["yields"] > 0, "the channels are too wide");

    let mut events = HashMap::new();
    for channel in &channels {
        for place in 0..channel.shape.width {
            events.insert(channel.word(place, 0), (channel.word(place, 0), Event::Put));
            events.insert(channel.done(place), (channel.word(place, 0), Event::Freed));
        }
    }
    let mut writes = std::mem::take(&mut *all.lock().unwrap());
    writes.sort_by_key(|&(at, _)| at);
    // The host puts the first element.
    let mut alive = HashMap::from([(channels[0].word(0, 0), true)]);
    let mut lives = 1;
    for (at, address) in writes {
        let Some(&(place, event)) = events.get(&address) else { continue };
        let is_alive = alive.entry(place).or_insert(false);
        assert_eq!(
            *is_alive,
            event == Event::Freed,
            "{event:?} twice in cycle {at}: the element at {place:#x}"
        );
        *is_alive = event == Event::Put;
        lives += u64::from(event == Event::Put);
    }
    assert!(alive.values().all(|is_alive| !is_alive), "elements were never processed");

    let mut memory = Arena::<AtomicU32>::new(0x1_0000, 0);
    let addresses: Vec<u64> = buffers.iter().map(|words| memory.buffer(words)).collect();
    let elements = graph(&addresses).run_on_host(&mut memory).unwrap().elements;
    assert_eq!(lives, elements, "elements of a run on the host");
    for (words, address) in words.iter().zip(addresses) {
        assert!(words.read(&gpu).unwrap() == memory.read(address, words.len()), "results differ");
    }
}

const WIDTH: u32 = 64;

#[test]
fn of_fibonacci() {
    let graph = |at: &[u64]| fibonacci::graph(14, WIDTH, fibonacci::Form::Levels, at[0]);
    follow(&flow_ptx!("fibonacci"), &[vec![0]], graph);
}

#[test]
fn of_queens() {
    follow(&flow_ptx!("queens"), &[vec![0]], |at| queens::graph(8, 4, WIDTH, at[0]));
}

#[test]
fn of_sort() {
    const COUNT: u32 = 6000;
    let numbers = Random::new(1).words(COUNT as usize);
    let other = vec![0; numbers.len()];
    follow(&flow_ptx!("sort"), &[numbers, other], |at| sort::graph(COUNT, 64, WIDTH, at[0], at[1]));
}

#[test]
fn of_strassen() {
    const SIZE: u32 = 128;
    let mut random = Random::new(1);
    let mut matrix = |most: u32| {
        let words = random.words((SIZE * SIZE) as usize);
        words.into_iter().map(|word| ((word % most) as f32).to_bits()).collect::<Vec<_>>()
    };
    let matrices = [matrix(8), matrix(8), matrix(1)];
    follow(&flow_ptx!("strassen_vector"), &matrices, |at| {
        strassen::graph(SIZE, WIDTH, [at[0], at[1], at[2]])
    });
}
