//! How long firmware takes on each kind of core.

use warploom::{Firmware, Task};

use crate::support::{MARK, apu, load};

const CORES: [&str; 4] = ["simple", "2-way-light", "2-way", "4-way"];

/// Cycles of a run whose firmware does `what` on this core.
fn cycles(core: &str, what: &'static str) -> u64 {
    let mut gpu = apu(&[&format!("aggregator.core={core}")], 1);
    let module = load(&mut gpu, MARK);
    let mark = Task::new(0, module.kernel("mark").unwrap(), 64);
    let words = gpu.zeros::<u32>(16 * 1024).unwrap();
    let at = words.address();
    let (cycles, _) = gpu
        .run_firmware(Firmware::new([mark]), |agg| async move {
            match what {
                "compute" => agg.compute(12_000),
                "scan" => agg.scan(1_500, 7),
                "dependent" => {
                    for line in 0..64 {
                        agg.load32(at + 64 * line).await;
                    }
                }
                "independent" => {
                    let loads: Vec<_> = (0..64).map(|line| agg.load32(at + 64 * line)).collect();
                    for load in loads {
                        load.await;
                    }
                }
                "behind a load" => {
                    for line in 0..16 {
                        let load = agg.load32(at + 64 * line);
                        agg.compute(40);
                        load.await;
                    }
                }
                _ => unreachable!("no such firmware"),
            }
            agg.now().await
        })
        .unwrap();
    cycles
}

#[test]
fn instructions_take_the_width() {
    let [simple, light, two, four] = CORES.map(|core| cycles(core, "compute"));
    assert_eq!(simple / 10, 1800, "3 clocks each, 2 clocks a cycle");
    assert_eq!((light / 10, two / 10, four / 10), (300, 300, 150));
}

#[test]
fn a_short_issue_queue_waits_for_every_load() {
    let [simple, light, two, four] = CORES.map(|core| cycles(core, "scan"));
    // 8 instructions per iteration, and 4 clocks for the load on a core whose issue queue cannot hold the 7
    // instructions that need it.
    assert_eq!(simple / 10, 150 * (8 * 3 + 4) / 2);
    assert_eq!((light / 10, two / 10, four / 10), (150 * (4 + 4) / 2, 150 * 4 / 2, 150 * 2 / 2));
}

#[test]
fn dependent_loads_wait_on_every_core() {
    let [simple, light, two, four] = CORES.map(|core| cycles(core, "dependent"));
    assert!(simple > 64 * 24 && four > 64 * 24, "{simple} {four}");
    assert!(simple - four < 64 * 4, "only instructions differ: {simple} {light} {two} {four}");
}

#[test]
fn independent_loads_overlap_as_far_as_the_window_goes() {
    let [simple, light, two, four] = CORES.map(|core| cycles(core, "independent"));
    assert!(simple > 2 * light && 2 * light > 3 * two && two >= four, "{simple} {light} {two} {four}");
}

#[test]
fn instructions_hide_behind_a_load_as_far_as_the_window_goes() {
    let [simple, light, two, four] = CORES.map(|core| cycles(core, "behind a load"));
    assert!(simple > light && light > two && two >= four, "{simple} {light} {two} {four}");
}
