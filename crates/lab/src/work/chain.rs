//! The chain of ICS'15 (Listing 10) under five schemes of synchronization: each warp adds to the result of a previous
//! one.

use warploom::{Error, Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, Values, Workload, ptx};

/// The schemes by the paper's names, which are also those of the kernels.
pub const SCHEMES: &[&str] = &["atom_lock", "warp_barr", "shrd_lock", "tiny_lock", "warp_vote"];

const SCHEME: Param = Param::word("scheme", "how warps wait for each other", SCHEMES);
const WARPS: Param = Param::new("warps", "warps of the CTA", 16).range(1, 32);
const STEPS: Param =
    Param::new("steps", "steps of 32 words in a round, which the warps take in turn", 16).range(1, 96);
const DISTANCE: Param =
    Param::new("distance", "words back to the one that a word waits for", 32).range(32, 3072);
const ROUNDS: Param =
    Param::new("rounds", "times that the chain is run; the first fetches its instructions", 4).range(1, 1000);

pub(super) const WORKLOAD: Workload = Workload {
    name: "chain",
    about: "a chain of sums from warp to warp through shared memory, five schemes; use --chip gtx570",
    params: &[SCHEME, WARPS, STEPS, DISTANCE, ROUNDS],
    run,
};

/// Words per step: one per lane.
const WORDS: u32 = 32;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let scheme = values.word(&SCHEME);
    let (warps, steps): (u32, u32) = (values.get(&WARPS), values.get(&STEPS));
    let (distance, rounds): (u32, u32) = (values.get(&DISTANCE), values.get(&ROUNDS));
    refuse(scheme, steps, distance)?;
    let data_bytes = 4 * WORDS * steps;
    let lock_bytes = match scheme {
        "atom_lock" => data_bytes,
        "shrd_lock" => 4 * steps,
        _ => 0,
    };

    // Kernels with lock bits are in a separate module, which a real GPU would refuse.
    let on_bits = matches!(scheme, "tiny_lock" | "warp_vote");
    let module = bench.load(if on_bits { ptx!("chain_bits") } else { ptx!("chain") })?;
    let words = WORDS * steps;
    let out = bench.gpu.zeros_named::<u32>("out", words as usize)?;
    let clocks = bench.gpu.zeros_named::<[u32; 2]>("clocks", (rounds * warps) as usize)?;
    let launch = Launch::grid(1).block(WORDS * warps).shared_bytes(data_bytes + lock_bytes);
    let kernel = module.kernel(&format!("chain_{scheme}"))?;
    bench.launch(&kernel, launch, args![&out, &clocks, distance, steps, rounds])?;

    let phases: Vec<u32> = clocks.read(bench.gpu)?.chunks(warps as usize).map(phase).collect();
    bench.figure("phase_cycles", usual(&phases));
    bench.figure("first_phase_cycles", phases[0] as f64);
    bench.figure("cycles_per_step", usual(&phases) / steps as f64);
    // What the launch got, which may be more than it asked for.
    let shared_bytes = bench.last().map_or(0, |report| report.shared_bytes);
    bench.figure("lock_shared_bytes", shared_bytes.saturating_sub(data_bytes) as f64);
    Ok(equal("sums", &out.read(bench.gpu)?, &chain(words, distance, rounds - 1)))
}

/// Refuses what would deadlock or fault under a scheme.
fn refuse(scheme: &str, steps: u32, distance: u32) -> Result<()> {
    let no = |why: String| Err(Error::Misuse(format!("scheme={scheme}: {why}")));
    match scheme {
        "warp_barr" if steps.saturating_sub(distance / WORDS) > 15 => no(format!(
            "a CTA has 15 barriers besides its own, one for each of the steps={steps} that another waits for"
        )),
        "tiny_lock" | "warp_vote" if steps > 32 => {
            no(format!("an SM has 1024 lock bits, and steps={steps} have {} words", WORDS * steps))
        }
        "warp_barr" | "shrd_lock" | "warp_vote" if !distance.is_multiple_of(WORDS) => {
            no(format!("whole warps wait for whole warps, and distance={distance} is no multiple of 32"))
        }
        _ => Ok(()),
    }
}

/// Cycles from the start of the first warp to the end of the last.
fn phase(clocks: &[[u32; 2]]) -> u32 {
    // The clock may wrap around. The phase is much shorter than its period.
    let Some(&[zero, _]) = clocks.first() else { return 0 };
    let since = |clock: u32| clock.wrapping_sub(zero) as i32;
    let start = clocks.iter().map(|c| since(c[0])).min().unwrap_or(0);
    let end = clocks.iter().map(|c| since(c[1])).max().unwrap_or(0);
    (end - start).unsigned_abs()
}

/// The mean of all rounds but the first, which fetches the instructions; the first if there is no other.
fn usual(phases: &[u32]) -> f64 {
    let later = if phases.len() > 1 { &phases[1..] } else { phases };
    later.iter().map(|&cycles| cycles as f64).sum::<f64>() / later.len() as f64
}

/// The expected contents of array A after a round.
fn chain(words: u32, distance: u32, round: u32) -> Vec<u32> {
    let mut sums: Vec<u32> = Vec::with_capacity(words as usize);
    for word in 0..words {
        let before = word.checked_sub(distance).map_or(0, |at| sums[at as usize]);
        sums.push(before.wrapping_add(word).wrapping_add(round));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_chain() {
        assert_eq!(chain(5, 2, 0), [0, 1, 2, 4, 6]);
        assert_eq!(chain(5, 2, 1), [1, 2, 4, 6, 9]);
        assert_eq!(chain(3, 9, 0), [0, 1, 2]);
    }

    #[test]
    fn phases_are_from_the_first_start_to_the_last_end() {
        assert_eq!(phase(&[[10, 40], [12, 90], [8, 70]]), 82);
        assert_eq!(phase(&[[u32::MAX - 1, 5], [u32::MAX, 30]]), 32);
        assert_eq!((usual(&[900, 10, 30]), usual(&[7])), (20.0, 7.0));
    }
}
