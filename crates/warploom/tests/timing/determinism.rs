//! The same launch gives the same report and the same memory on any number of host threads.

use warploom::{Bows, Report, Timing};

use crate::accounting::launch;
use crate::bench::Bench;

#[test]
fn host_threads_do_not_matter() {
    same_on_any_threads(Bows::default());
}

#[test]
fn nor_do_they_when_spinning_warps_back_off() {
    same_on_any_threads(Bows::on());
}

fn same_on_any_threads(bows: Bows) {
    for chip in ["gtx480", "gtx1080ti", "h200"] {
        let run = |threads| {
            let timing =
                Timing { threads, bows: bows.clone(), sample_cycles: Some(1000), ..Timing::default() };
            let mut bench = Bench::timed(chip, &["sm.count=13"], timing);
            let names = ["reduce", "histogram", "spinlock", "hashtable", "sleep"];
            names.map(|name| {
                let (report, buffers) = launch(&mut bench, name);
                let timeless = Report { wall_s: 0.0, warp_insts_per_s: 0.0, ..report };
                let buffers: Vec<_> = buffers.iter().map(|buffer| buffer.read(&bench.gpu).unwrap()).collect();
                (name, timeless, buffers)
            })
        };
        let one = run(1);
        for threads in [2, 7] {
            for (one, many) in one.iter().zip(&run(threads)) {
                assert!(one == many, "{}, {threads} threads: {:?} and {:?}", one.0, one.1, many.1);
            }
        }
    }
}
