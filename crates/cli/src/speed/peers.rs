//! What has been published of the speed of other simulators. Their kernels and computers are not those of this command.

use std::fmt::Write;

use serde::Serialize;

/// A published figure.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Peer {
    simulator: &'static str,
    /// The least and the most, on one host thread.
    warp_insts_per_s: Option<[f64; 2]>,
    threads: Option<Gain>,
    source: &'static str,
}

/// How many times as fast so many host threads are as one.
#[derive(Clone, Copy, Debug, Serialize)]
struct Gain {
    threads: u32,
    speedup: f64,
}

pub(super) const PEERS: &[Peer] = &[
    Peer {
        simulator: "GPGPU-Sim 4.2, PTX",
        warp_insts_per_s: Some([8_300.0, 11_200.0]),
        threads: None,
        source: "vecadd, matmul and hashtable on gtx480, measured for docs/performance.md",
    },
    Peer {
        simulator: "GPGPU-Sim 3.x, PTX",
        warp_insts_per_s: Some([2_900.0, 2_900.0]),
        threads: None,
        source: "Khairy et al., Accel-Sim, ISCA 2020, section II-E: 4.3 times slower than Accel-Sim's 12,500",
    },
    Peer {
        simulator: "Accel-Sim, SASS traces",
        warp_insts_per_s: Some([12_500.0, 12_500.0]),
        threads: None,
        source: "Khairy et al., Accel-Sim, ISCA 2020, section II-E",
    },
    Peer {
        simulator: "Accel-Sim, OpenMP",
        warp_insts_per_s: None,
        threads: Some(Gain { threads: 16, speedup: 5.8 }),
        source: "Huerta and González, Parallelizing a modern GPU simulator, arXiv:2502.14691",
    },
    Peer {
        simulator: "MGPUSim",
        warp_insts_per_s: None,
        threads: Some(Gain { threads: 4, speedup: 2.5 }),
        source: "Sun et al., MGPUSim, ISCA 2019: the detailed model on a processor of 4 cores",
    },
];

/// The list for people.
pub(super) fn text() -> String {
    let mut text = "\nOther simulators, as published; their kernels and computers differ\n".to_string();
    let _ = writeln!(text, "{:<23} {:>11} {:<16} source", "simulator", "k insts/s", "  threads");
    for peer in PEERS {
        let rate = match peer.warp_insts_per_s.map(|rates| rates.map(|rate| format!("{:.1}", rate / 1e3))) {
            Some([least, most]) if least == most => least,
            Some([least, most]) => format!("{least} to {most}"),
            None => String::new(),
        };
        let threads = peer.threads.map(|gain| format!("  {}: {} times", gain.threads, gain.speedup));
        let threads = threads.unwrap_or_default();
        let _ = writeln!(text, "{:<23} {rate:>11} {threads:<16} {}", peer.simulator, peer.source);
    }
    text
}
