//! Where the time of a lock goes, from Rust: `cargo run --release -p warploom --example slow_lock`.

use warploom::{Chip, Device, Error, Launch, SimOptions, Timing, args};

fn main() -> Result<(), Error> {
    let timing = Timing { profile: true, ..Timing::default() };
    let mut gpu =
        Device::sim_with(Chip::load("gtx480", &[])?, SimOptions { timing, ..SimOptions::default() });
    let module = gpu.load_ptx_named("spinlock.ptx", warploom_kernels::text!("spinlock.ptx"))?;
    let (lock, counter) = (gpu.zeros_named::<u32>("lock", 1)?, gpu.zeros_named::<u32>("counter", 1)?);

    let launch = Launch::grid(4).block(64);
    let report = gpu.launch(module.kernel("spinlock_inc")?, launch, args![&lock, &counter, 1u32])?;
    assert_eq!(counter.read(&gpu)?, [4 * 64]);

    let profile = report.profile.expect("it was asked for");
    for finding in &profile.verdict {
        println!("{}", finding.text);
    }
    for word in &profile.words {
        println!("{}: taken {} times, held {} cycles in all", word.word, word.acquired, word.hold.cycles);
    }
    Ok(())
}
