//! Samples of the counters over time, as CSV.

use crate::time::machine::totals::Sample;

/// Samples as CSV with a header line. Counts are since the previous sample; `resident_warps`, `spinning_warps` and
/// `outstanding_misses` are the values at `cycle`.
pub fn samples_csv(samples: &[Sample]) -> String {
    let mut csv = "cycle,cycles,warp_instructions,ipc,resident_warps,spinning_warps,outstanding_misses,\
                   l1_hits,l1_misses,l2_hits,l2_misses,dram_bytes,locks_acquired,locks_failed\n"
        .to_string();
    let start = Sample::default();
    for (before, now) in std::iter::once(&start).chain(samples).zip(samples) {
        let since = |count: fn(&Sample) -> u64| count(now) - count(before);
        let cycles = since(|s| s.cycle);
        let instructions = since(|s| s.warp_instructions);
        let ipc = if cycles > 0 { instructions as f64 / cycles as f64 } else { 0.0 };
        let standing = [now.resident_warps, now.spinning_warps, now.outstanding_misses];
        let counts = [
            since(|s| s.l1_hits),
            since(|s| s.l1_misses),
            since(|s| s.l2_hits),
            since(|s| s.l2_misses),
            since(|s| s.dram_bytes),
            since(|s| s.locks_acquired),
            since(|s| s.locks_failed),
        ];
        csv += &format!("{},{cycles},{instructions},{ipc:.4}", now.cycle);
        for value in standing.iter().chain(&counts) {
            csv += &format!(",{value}");
        }
        csv.push('\n');
    }
    csv
}
