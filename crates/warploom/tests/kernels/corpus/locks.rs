//! Threads that wait for other threads.

use warploom::{Error, HangReason, Launch, args};

use crate::support::{Outcome, Random, Run, same};

pub(super) fn spinlock_inc(run: &mut Run) -> Outcome {
    for (threads, ctas, rounds) in [(1u32, 1u32, 3u32), (70, 3, 2), (16, 12, 1)] {
        let (lock, counter) = (run.gpu.zeros::<u32>(1)?, run.gpu.buffer(&[100u32])?);
        run.launch(Launch::grid(ctas).block(threads), args![&lock, &counter, rounds])?;
        same("counter", &counter.read(&run.gpu)?, &[100 + threads * ctas * rounds])?;
        same("lock", &lock.read(&run.gpu)?, &[0])?;
    }
    Ok(())
}

pub(super) fn naivelock(run: &mut Run) -> Outcome {
    for (threads, ctas) in [(1u32, 1u32), (1, 12), (2, 1), (70, 3)] {
        const LIMIT: u64 = 3_000_000;
        let (lock, counter) = (run.gpu.zeros::<u32>(1)?, run.gpu.zeros::<u32>(1)?);
        let mut launch = Launch::grid(ctas).block(threads);
        let ends = threads == 1 || run.independent();
        if !ends {
            launch = launch.max_cycles(LIMIT);
        }
        match run.launch(launch, args![&lock, &counter]) {
            Ok(_) if ends => {
                same("counter", &counter.read(&run.gpu)?, &[threads * ctas])?;
                same("lock", &lock.read(&run.gpu)?, &[0])?;
            }
            Ok(_) => return Err("it ends, though the winner cannot leave the others behind".into()),
            Err(Error::Hang { hang: Some(hang), .. }) if !ends => {
                same("reason", &[hang.reason], &[HangReason::Repeats])?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

pub(super) fn crosscta(run: &mut Run) -> Outcome {
    for (threads, ctas) in [(1u32, 2u32), (33, 5), (64, 30)] {
        let (flag, out) = (run.gpu.zeros::<u32>(1)?, run.gpu.zeros::<u32>(ctas as usize)?);
        run.launch(Launch::grid(ctas).block(threads), args![&flag, &out])?;
        let mut expected: Vec<u32> = (0..ctas).map(|b| 1000 + b).collect();
        expected[0] = 1000 + ctas;
        same("out", &out.read(&run.gpu)?, &expected)?;
        same("flag", &flag.read(&run.gpu)?, &[1])?;
    }
    Ok(())
}

pub(super) fn hashtable_insert(run: &mut Run) -> Outcome {
    for (count, buckets, threads, ctas) in [(1usize, 1u32, 1u32, 1u32), (300, 1, 64, 2), (1000, 13, 70, 12)] {
        let keys = Random::new(count as u64).words(count);
        let input = run.gpu.buffer(&keys)?;
        let pool = run.gpu.zeros::<[u32; 2]>(count)?;
        let heads = run.gpu.buffer(&vec![u32::MAX; buckets as usize])?;
        let locks = run.gpu.zeros::<u32>(buckets as usize)?;
        let args = args![&input, count as u32, &pool, &heads, &locks, buckets];
        run.launch(Launch::grid(ctas).block(threads), args)?;
        same("locks", &locks.read(&run.gpu)?, &vec![0; buckets as usize])?;
        // The order within a chain is not determined.
        let (pool, heads) = (pool.read(&run.gpu)?, heads.read(&run.gpu)?);
        let mut places = Vec::new();
        for (bucket, &head) in heads.iter().enumerate() {
            let mut at = head;
            while at != u32::MAX && places.len() <= count {
                places.push((at as usize, pool[at as usize][0], bucket as u32));
                at = pool[at as usize][1];
            }
        }
        places.sort_unstable();
        let expected: Vec<_> = keys.iter().enumerate().map(|(i, &key)| (i, key, key % buckets)).collect();
        same("chains", &places, &expected)?;
    }
    Ok(())
}
