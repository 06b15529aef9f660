//! A warp scheduling policy in a crate of its own: youngest first, against the chip's own policy.
//!
//!     cargo run --release -p warploom-example-policy

use warploom::sched::{Cycle, Issue, Policy, SlotSet, WarpSlot};
use warploom::{Device, Error, Launch, args};

/// Of the ready warps, the one that started last.
#[derive(Default)]
struct Youngest {
    /// The scheduler's warps, youngest first.
    order: Vec<WarpSlot>,
}

impl Policy for Youngest {
    fn pick(&mut self, _now: Cycle, ready: SlotSet) -> Option<WarpSlot> {
        ready.first_of(&self.order)
    }

    fn started(&mut self, _now: Cycle, slot: WarpSlot, _age: u64) {
        self.order.insert(0, slot);
    }

    fn ended(&mut self, _now: Cycle, slot: WarpSlot) {
        self.order.retain(|&other| other != slot);
    }

    fn issued(&mut self, _now: Cycle, _issue: &Issue) {}
}

/// Cycles of a small matrix product.
fn cycles(mut gpu: Device) -> Result<u64, Error> {
    const SIZE: usize = 128;
    let module = gpu.load_ptx(warploom_kernels::text!("matmul.ptx"))?;
    let (a, b) = (gpu.buffer(&[1f32; SIZE * SIZE])?, gpu.buffer(&[2f32; SIZE * SIZE])?);
    let c = gpu.zeros::<f32>(SIZE * SIZE)?;
    let tiles = SIZE as u32 / 16;
    let launch = Launch::grid((tiles, tiles)).block((16, 16));
    let report = gpu.launch(module.kernel("matmul")?, launch, args![&a, &b, &c, SIZE as u32])?;
    assert!(c.read(&gpu)?.iter().all(|&sum| sum == 2.0 * SIZE as f32));
    Ok(report.cycles)
}

fn main() -> Result<(), Error> {
    let youngest = Device::sim("gtx480")?.with_policy("youngest", |_chip| Box::new(Youngest::default()))?;
    println!("gto       {} cycles", cycles(Device::sim("gtx480")?)?);
    println!("youngest  {} cycles", cycles(youngest)?);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Error> {
    main()
}
