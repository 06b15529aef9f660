//! The paper's kernels with its inputs (Section V) and its schedulers (Table II).

use crate::repro::{Failed, Results, Run, Scale};

/// The kernels that synchronize, in the order of Figure 9.
pub(super) const SYNCHRONIZED: [&str; 8] = ["TB", "ST", "DS", "ATM", "HT", "NW1", "NW2", "TSP"];

/// Synchronized kernels whose threads take locks. The others wait for signals.
pub(super) const LOCKED: [&str; 5] = ["TB", "DS", "ATM", "HT", "TSP"];

/// All of them, longest first, so that no core is left alone with a long one at the end.
pub(super) const LONGEST_FIRST: [&str; 8] = ["TSP", "HT", "ATM", "NW1", "NW2", "DS", "TB", "ST"];

/// Kernels without synchronization, by workload.
pub(super) const FREE: [&str; 14] = [
    "kmeans",
    "mergesort",
    "heartwall",
    "hotspot",
    "bfs",
    "backprop",
    "lud",
    "gaussian",
    "pathfinder",
    "srad",
    "streamcluster",
    "nn",
    "cfd",
    "lava",
];

pub(super) const POLICIES: [&str; 3] = ["lrr", "gto", "cawa"];

/// The paper's machines: GPGPU-Sim 3.2 with its authors' changes.
pub(super) const FERMI: &str = "gtx480-hpca18";
pub(super) const PASCAL: &str = "gtx1080ti-hpca18";

/// What the paper does not say about its inputs.
pub(super) const INPUTS: &str = "\
    The paper gives no size for DS, NW1 and NW2: here a cloth of 128 × 128 and a field of 7680 × 128, a strip \
    of 32 rows for each of 240 warps. HT inserts 800,000 keys with the paper's threads and buckets, not 3.2 \
    million, which would take four times as long. TSP climbs 4 steps of each tour, not until none is better: \
    each climber takes the lock once in either case, but those that climb to the end come to it at different \
    times and fail less often.";

/// A synchronized kernel with its input, on the paper's Fermi.
pub(super) fn synchronized(kernel: &str, scale: Scale) -> Run {
    let run = match kernel {
        "TB" => {
            let bodies = scale.pick(3_000, 30_000);
            Run::work("treebuild").with("bodies", bodies).with("ctas", 60).with("threads", 64)
        }
        "ST" => Run::work("treesort").with("bodies", scale.pick(3_000, 30_000)),
        "DS" => {
            let side = scale.pick(24, 128);
            Run::work("cloth").with("width", side).with("height", side)
        }
        // Four times what the slowest policy that ends needs. Under CAWA it does not end.
        "ATM" => Run::work("atm").with("transfers", scale.pick(4_000, 122_000)).max_cycles(12_000_000),
        "HT" => Run::work("hashtable").with("keys", scale.pick(40_000, 800_000)),
        "NW1" => field(Run::work("nw1"), scale),
        "NW2" => field(Run::work("nw2"), scale),
        "TSP" => Run::work("tsp")
            .with("cities", scale.pick(24, 76))
            .with("climbers", scale.pick(192, 3_000))
            .with("steps", 4),
        other => unreachable!("no kernel {other}"),
    };
    run.chip(FERMI)
}

fn field(run: Run, scale: Scale) -> Run {
    run.with("size", scale.pick(512, 7_680)).with("columns", scale.pick(64, 128))
}

/// A kernel without synchronization on the paper's Fermi, with its default input or a small one with the same loops.
pub(super) fn free(kernel: &'static str, scale: Scale) -> Run {
    let run = Run::work(kernel).chip(FERMI);
    // The loops of heart wall must be long enough to be mistaken for spinning.
    let run = if kernel == "heartwall" { run.with("reach", 24) } else { run };
    match (kernel, scale) {
        (_, Scale::Full) => run,
        ("kmeans" | "streamcluster", _) => run.with("points", 1_024),
        ("mergesort", _) => run.with("keys", 4_096),
        ("heartwall", _) => run.with("points", 4).with("frames", 1),
        ("bfs", _) => run.with("vertices", 1_024),
        ("lud", _) => run.with("size", 32),
        ("gaussian", _) => run.with("size", 12),
        ("lava", _) => run.with("each", 32),
        ("cfd", _) => run.with("cells", 512),
        _ => run,
    }
}

/// With BOWS, DDOS and the adaptive delay limit.
pub(super) fn backing_off(run: Run) -> Run {
    run.set("issue.bows.enabled", true)
}

/// With BOWS and a fixed delay limit.
pub(super) fn with_limit(run: Run, cycles: u32) -> Run {
    backing_off(run).set("issue.bows.adaptive", false).set("issue.bows.limit_cycles", cycles)
}

/// A figure of one run over that of another.
pub(super) fn ratio(results: &Results, of: &Run, to: &Run, what: &str) -> Result<f64, Failed> {
    Ok(results.number(of, what)? / results.number(to, what)?)
}

/// Instructions as GPGPU-Sim counts them: one for each active thread. In the paper, too. Its HT has 3.4 times the SIMD
/// efficiency and 10.8 times fewer failures with BOWS. Were its 3.7 times fewer instructions those of warps, threads
/// would execute almost as many with BOWS as without.
pub(super) const INSTRUCTIONS: &str = "thread_insts";

pub(super) const COUNTED: &str = "\
    Instructions are those of threads, as GPGPU-Sim counts them, unless the row says that they are of warps.";

/// Requests to the L1s, by kind: the fields of a report's `l1`. Atomics are none, here as in the authors' simulator:
/// they go to the L2 past the L1.
const L1_TRANSACTIONS: [&str; 7] =
    ["hits", "misses", "merges", "stores", "bypasses", "local_hits", "local_misses"];

pub(super) fn transactions(results: &Results, run: &Run) -> Result<f64, Failed> {
    L1_TRANSACTIONS.into_iter().map(|kind| results.number(run, &format!("l1.{kind}"))).sum()
}

/// The geometric mean, which treats twice and half alike, of the values that there are. Runs that failed are left
/// out, because they have their own rows. Fails if all of them did.
pub(super) fn mean(values: impl IntoIterator<Item = Result<f64, Failed>>) -> Result<f64, Failed> {
    let (known, failed): (Vec<_>, Vec<_>) = values.into_iter().partition(Result::is_ok);
    match failed.into_iter().next() {
        Some(failed) if known.is_empty() => failed,
        _ => {
            let logs: Vec<f64> = known.into_iter().flatten().map(f64::ln).collect();
            Ok((logs.iter().sum::<f64>() / logs.len() as f64).exp())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric() {
        assert_eq!(mean([Ok(4.0), Ok(1.0)]), Ok(2.0));
        let failed = Failed { run: "x".to_string(), message: "y".to_string() };
        assert_eq!(mean([Ok(4.0), Err(failed.clone())]), Ok(4.0));
        assert_eq!(mean([Err(failed.clone())]), Err(failed));
    }

    #[test]
    fn the_papers_gto_rotates() {
        for chip in [FERMI, PASCAL] {
            assert_eq!(warploom::Chip::load(chip, &[]).unwrap().issue.gto.rotation_cycles, 50_000);
        }
    }
}
