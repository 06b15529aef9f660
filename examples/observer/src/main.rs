//! An observer in a crate of its own: how often lanes poll each word of memory, over all SMs.
//!
//!     cargo run --release -p warploom-example-observer

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use warploom::observe::{LaneMask, Observer, Word};
use warploom::sched::WarpSlot;
use warploom::{Device, Error, Launch, args};

/// Polls by address. SMs run on several threads, so each has its own count and adds it up at the end.
struct Polls {
    of_sm: BTreeMap<u64, u64>,
    total: Arc<Mutex<BTreeMap<u64, u64>>>,
}

impl Observer for Polls {
    fn polled(&mut self, _slot: WarpSlot, lanes: LaneMask, word: &dyn Fn(usize) -> Word) {
        for lane in lanes.lanes() {
            *self.of_sm.entry(word(lane).address).or_default() += 1;
        }
    }
}

impl Drop for Polls {
    fn drop(&mut self) {
        let mut total = self.total.lock().unwrap();
        self.of_sm.iter().for_each(|(&word, polls)| *total.entry(word).or_default() += polls);
    }
}

fn main() -> Result<(), Error> {
    let total = Arc::new(Mutex::new(BTreeMap::new()));
    let polls = total.clone();
    let mut gpu = Device::sim("gtx480")?
        .with_observer(move |_sm| Box::new(Polls { of_sm: BTreeMap::new(), total: polls.clone() }))?;
    let module = gpu.load_ptx(warploom_kernels::text!("spinlock.ptx"))?;
    let (lock, counter) = (gpu.zeros::<u32>(1)?, gpu.zeros::<u32>(1)?);
    let launch = Launch::grid(4).block(64);
    gpu.launch(module.kernel("spinlock_inc")?, launch, args![&lock, &counter, 1u32])?;
    println!("the counter is {}", counter.read(&gpu)?[0]);
    for (word, polls) in total.lock().unwrap().iter() {
        println!("{word:#x} was polled {polls} times");
    }
    assert!(total.lock().unwrap().values().sum::<u64>() >= 4 * 64, "each thread polls at least once");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Error> {
    main()
}
