//! Threads that wait for other threads.

use warploom::{Error, HangReason, Launch, args};

use crate::support::{Outcome, Run, same};

pub fn spinlock_inc(run: &mut Run) -> Outcome {
    for (threads, ctas, rounds) in [(1u32, 1u32, 3u32), (70, 3, 2), (16, 12, 1)] {
        let (lock, counter) = (run.gpu.zeros::<u32>(1)?, run.gpu.buffer(&[100u32])?);
        run.launch(Launch::grid(ctas).block(threads), args![&lock, &counter, rounds])?;
        same("counter", &counter.read(&run.gpu)?, &[100 + threads * ctas * rounds])?;
        same("lock", &lock.read(&run.gpu)?, &[0])?;
    }
    Ok(())
}

pub fn naivelock(run: &mut Run) -> Outcome {
    for (threads, ctas) in [(1u32, 1u32), (1, 12), (2, 1), (70, 3)] {
        const LIMIT: u64 = 100_000;
        let (lock, counter) = (run.gpu.zeros::<u32>(1)?, run.gpu.zeros::<u32>(1)?);
        let mut launch = Launch::grid(ctas).block(threads);
        let ends = threads == 1 || run.independent();
        if !ends {
            launch = launch.max_instructions(LIMIT);
        }
        match run.launch(launch, args![&lock, &counter]) {
            Ok(_) if ends => {
                same("counter", &counter.read(&run.gpu)?, &[threads * ctas])?;
                same("lock", &lock.read(&run.gpu)?, &[0])?;
            }
            Ok(_) => return Err("it ends, though the winner cannot leave the others behind".into()),
            Err(Error::Hang { hang: Some(hang), report, .. }) if !ends => {
                same("reason", &[hang.reason], &[HangReason::InstructionLimit(LIMIT)])?;
                same("instructions", &[report.warp_insts], &[LIMIT])?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

pub fn crosscta(run: &mut Run) -> Outcome {
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
