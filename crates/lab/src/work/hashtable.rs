//! HT of HPCA'18: insertions into a chained hash table with one spin lock per bucket, the critical section of Figure
//! 1a. The paper's 3.2 M keys, 40 K threads and 1024 buckets are `keys=3_200_000 ctas=160 threads=256`.
//! `version=delay` is the software back-off of Figure 3; `sleep` uses `nanosleep` instead. `ticket`, `queue`, `warp`
//! and `exchange` are what a programmer can do about contention (docs/synchronization.md). `entries=records` is the
//! table that the paper profiled on hardware for Figure 1.

use warploom::{Arg, Error, Launch, Result, args, grouped};

use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const KEYS: Param = Param::new("keys", "keys to insert", 80_000).range(1, 1 << 28);
const BUCKETS: Param =
    Param::new("buckets", "buckets of the table; fewer mean more contention", 1024).range(1, 1 << 28);
const CTAS: Param = Param::new("ctas", "CTAs; their threads share the keys evenly", 160);
const THREADS: Param = Param::new("threads", "threads of a CTA", 256).range(1, 1024);
const VERSION: Param = Param::word(
    "version",
    "the lock: spin, with a nanosleep or a delay loop after a failure, ticket, queue, one lane for those of its warp; \
     no lock but an atomic exchange; or unlocked, and keys are lost",
    &["spin", "sleep", "delay", "ticket", "queue", "warp", "exchange", "unlocked"],
);
const ENTRIES: Param = Param::word(
    "entries",
    "what is inserted: a key and an index, or a record of a key, a value and a 64-bit pointer (spin and unlocked only)",
    &["indexed", "records"],
);
const BACKOFF: Param =
    Param::new("backoff", "longest sleep in ns or delay in cycles; each is twice the last, from 32 on", 1024)
        .range(1, 1_000_000);

pub(super) const WORKLOAD: Workload = Workload {
    name: "hashtable",
    about: "HT: insertion of random keys into a chained hash table, a spin lock a bucket",
    params: &[KEYS, BUCKETS, CTAS, THREADS, VERSION, ENTRIES, BACKOFF, SEED],
    run,
};

/// No entry: the end of a chain.
const NONE: u32 = u32::MAX;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (count, buckets): (u32, u32) = (values.get(&KEYS), values.get(&BUCKETS));
    let (ctas, threads): (u32, u32) = (values.get(&CTAS), values.get(&THREADS));
    let keys = Random::new(values.get(&SEED)).words(count as usize);
    if values.word(&ENTRIES) == "records" {
        return run_records(bench, values, &keys);
    }

    let backoff: u32 = values.get(&BACKOFF);
    let keys_buffer = bench.gpu.buffer_named("keys", &keys)?;
    let pool = bench.gpu.uninit_named::<[u32; 2]>("pool", count as usize)?;
    let heads = bench.gpu.buffer_named("heads", &vec![NONE; buckets as usize])?;
    let version = values.word(&VERSION);
    let module = bench.load(match version {
        "spin" => ptx!("hashtable"),
        "sleep" | "delay" | "unlocked" => ptx!("sync/hashtable_backoff"),
        _ => ptx!("sync/hashtable_locks"),
    })?;
    let name = match version {
        "spin" => "hashtable_insert".to_string(),
        _ => format!("hashtable_insert_{version}"),
    };
    // What is in the locks before and after, and what else the kernel has as parameters.
    let free = if version == "queue" { NONE } else { 0 };
    let words = if version == "ticket" { 2 * buckets } else { buckets };
    let locks = bench.gpu.buffer_named("locks", &vec![free; words as usize])?;
    let mut args = args![&keys_buffer, count, &pool, &heads].to_vec();
    args.extend((!matches!(version, "exchange" | "unlocked")).then(|| Arg::from(&locks)));
    let is_queue = version == "queue";
    let nodes = is_queue.then(|| bench.gpu.uninit_named::<[u32; 2]>("nodes", count as usize)).transpose()?;
    args.extend(nodes.as_ref().map(Arg::from));
    args.push(Arg::from(buckets));
    args.extend(matches!(version, "sleep" | "delay" | "ticket" | "warp").then(|| Arg::from(backoff)));
    bench.launch(&module.kernel(&name)?, Launch::grid(ctas).block(threads), args)?;

    let (heads, locks, pool) = (heads.read(bench.gpu)?, locks.read(bench.gpu)?, pool.read(bench.gpu)?);
    Ok(match version {
        "unlocked" => check_unlocked(&keys, pool.iter().map(|entry| entry[0])),
        // A free lock serves the ticket that is next.
        "ticket" => {
            let held: Vec<u32> = locks.chunks(2).map(|lock| u32::from(lock[0] != lock[1])).collect();
            check(&keys, &heads, &held, &pool)
        }
        _ => {
            let held: Vec<u32> = locks.iter().map(|&lock| u32::from(lock != free)).collect();
            check(&keys, &heads, &held, &pool)
        }
    })
}

/// A record as `hashtable_records.cu` has it: its key in the low half of the first word, its value, the next record.
type Record = [u64; 3];

/// The table of records. Its check is the one of the table of indices: pointers into the pool are turned into indices.
fn run_records(bench: &mut Bench<'_>, values: &Values, keys: &[u32]) -> Result<Check> {
    let (count, buckets): (u32, u32) = (values.get(&KEYS), values.get(&BUCKETS));
    let name = match values.word(&VERSION) {
        "spin" => "hashtable_records",
        "unlocked" => "hashtable_records_unlocked",
        version => {
            let why = format!("entries=records has no version={version}: use spin or unlocked");
            return Err(Error::Misuse(why));
        }
    };
    let value_of = |key: u32| u64::from(!key) << 32 | u64::from(key);
    let payload: Vec<u64> = keys.iter().map(|&key| value_of(key)).collect();
    let keys_buffer = bench.gpu.buffer_named("keys", keys)?;
    let payload = bench.gpu.buffer_named("values", &payload)?;
    let pool = bench.gpu.uninit_named::<Record>("pool", count as usize)?;
    let heads = bench.gpu.zeros_named::<u64>("heads", buckets as usize)?;
    let locks = bench.gpu.zeros_named::<u32>("locks", buckets as usize)?;
    let launch = Launch::grid(values.get::<u32>(&CTAS)).block(values.get::<u32>(&THREADS));
    let module = bench.load(ptx!("sync/hashtable_records"))?;
    let mut args = args![&keys_buffer, &payload, count, &pool, &heads].to_vec();
    let is_locked = name == "hashtable_records";
    args.extend(is_locked.then(|| Arg::from(&locks)));
    args.push(Arg::from(u64::from(buckets)));
    bench.launch(&module.kernel(name)?, launch, args)?;

    let records = pool.read(bench.gpu)?;
    let key_of = |record: &Record| record[0] as u32;
    if records.iter().any(|record| record[1] != value_of(key_of(record))) {
        return Ok(Err("a record has not got its key's value".to_string()));
    }
    if !is_locked {
        return Ok(check_unlocked(keys, records.iter().map(key_of)));
    }
    let index_of = |pointer: u64| match pointer.checked_sub(pool.address()) {
        _ if pointer == 0 => NONE,
        Some(offset) if offset % size_of::<Record>() as u64 == 0 => {
            u32::try_from(offset / size_of::<Record>() as u64).unwrap_or(NONE - 1)
        }
        // No index of a pool that fits into memory: the check says so.
        _ => NONE - 1,
    };
    let heads: Vec<u32> = heads.read(bench.gpu)?.into_iter().map(index_of).collect();
    let pool: Vec<[u32; 2]> = records.iter().map(|record| [key_of(record), index_of(record[2])]).collect();
    Ok(check(keys, &heads, &locks.read(bench.gpu)?, &pool))
}

/// Without locks, chains may lose entries, but each entry has its key.
fn check_unlocked(keys: &[u32], mut entries: impl Iterator<Item = u32>) -> Check {
    if keys.iter().all(|&key| entries.next() == Some(key)) {
        let count = grouped(keys.len() as u64);
        Ok(format!("{count} entries have their keys; chains without locks are not looked at"))
    } else {
        Err("an entry has not got its key".to_string())
    }
}

/// Each key must be exactly once in the chain of its bucket, in any order, and all locks must be free.
fn check(keys: &[u32], heads: &[u32], locks: &[u32], pool: &[[u32; 2]]) -> Check {
    if let Some(bucket) = locks.iter().position(|&lock| lock != 0) {
        return Err(format!("the lock of bucket {bucket} is still taken"));
    }
    let mut seen = vec![false; keys.len()];
    for (bucket, &head) in heads.iter().enumerate() {
        let mut at = head;
        while at != NONE {
            let Some(&[key, next]) = pool.get(at as usize) else {
                return Err(format!("the chain of bucket {bucket} leads to entry {at}, which is none"));
            };
            if key != keys[at as usize] {
                return Err(format!("entry {at} has key {key}, not {}", keys[at as usize]));
            }
            if key as usize % heads.len() != bucket {
                return Err(format!("key {key} is in the chain of bucket {bucket}"));
            }
            if std::mem::replace(&mut seen[at as usize], true) {
                return Err(format!("the chain of bucket {bucket} comes twice to entry {at}"));
            }
            at = next;
        }
    }
    let count = |n: usize| grouped(n as u64);
    match seen.iter().filter(|&&seen| !seen).count() {
        0 => Ok(format!("{} keys are in the chains of {} buckets", count(keys.len()), count(heads.len()))),
        lost => Err(format!("{} of {} keys are in no chain", count(lost), count(keys.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a table of keys 4, 7 and 6 in three buckets.
    fn checked(heads: [u32; 3], locks: [u32; 3], pool: [[u32; 2]; 3]) -> Check {
        check(&[4, 7, 6], &heads, &locks, &pool)
    }

    #[test]
    fn a_right_table() {
        let right = Ok("3 keys are in the chains of 3 buckets".to_string());
        assert_eq!(checked([2, 1, NONE], [0; 3], [[4, NONE], [7, 0], [6, NONE]]), right);
        assert_eq!(checked([2, 0, NONE], [0; 3], [[4, 1], [7, NONE], [6, NONE]]), right);
    }

    #[test]
    fn wrong_tables() {
        let wrong = |heads, locks, pool| checked(heads, locks, pool).unwrap_err();
        let pool = [[4, NONE], [7, 0], [6, NONE]];
        assert_eq!(wrong([2, 1, NONE], [0, 0, 1], pool), "the lock of bucket 2 is still taken");
        assert_eq!(wrong([2, 0, NONE], [0; 3], pool), "1 of 3 keys are in no chain");
        assert_eq!(wrong([2, 1, 0], [0; 3], pool), "key 4 is in the chain of bucket 2");
        assert_eq!(
            wrong([2, 3, NONE], [0; 3], pool),
            "the chain of bucket 1 leads to entry 3, which is none"
        );
        let circle = [[4, 1], [7, 0], [6, NONE]];
        assert_eq!(wrong([2, 1, NONE], [0; 3], circle), "the chain of bucket 1 comes twice to entry 1");
        let other_key = [[4, NONE], [10, 0], [6, NONE]];
        assert_eq!(wrong([2, 1, NONE], [0; 3], other_key), "entry 1 has key 10, not 7");
    }
}
