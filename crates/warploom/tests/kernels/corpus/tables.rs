//! Initialised variables; votes, matches and shuffles.

use warploom::{Launch, args};

use crate::support::{Outcome, Random, Run, same, same_hex};

pub(super) fn globals(run: &mut Run) -> Outcome {
    let padded = |start: &[i32], len: usize| {
        let mut words = start.to_vec();
        words.resize(len, 0);
        words
    };
    let text = |text: &str| text.bytes().map(i32::from).collect::<Vec<_>>();
    let expected: Vec<u32> = [
        vec![1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400],
        padded(&[7, 0, 9], 16),
        padded(&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 64),
        padded(&[], 8),
        vec![2, -9, 77],
        vec![100, -3000],
        vec![-1, -1, 0x89ab_cdefu32 as i32, 0x0123_4567],
        vec![2, 3, 5, 7, 11, 13, 17, 19, 23, 29],
        vec![-1, 1, 2, -2, -128, 127],
        text("Warp\tloom \"42\"\0"),
        vec![22, 33],
        vec![100, 2, 0],
        text("alphabeta"),
        vec![-1],
    ]
    .concat()
    .into_iter()
    .map(|word| word as u32)
    .collect();
    let out = run.gpu.buffer(&[0x5555_5555u32; 160])?;
    run.launch(Launch::grid(2).block(32), args![&out])?;
    let got = out.read(&run.gpu)?;
    same_hex("out", &got[..155], &expected)?;
    same_hex("out beyond its end", &got[155..], &[0x5555_5555; 5])
}

pub(super) fn warpops(run: &mut Run) -> Outcome {
    for (threads, ctas, limit) in [(32usize, 1usize, 1500), (96, 10, u32::MAX), (64, 2, 900), (128, 1, 2500)]
    {
        let values = Random::new(threads as u64).words_below(threads * ctas, limit);
        let (input, out) = (run.gpu.buffer(&values)?, run.gpu.zeros::<u32>(6 * threads * ctas)?);
        run.launch(Launch::grid(ctas).block(threads), args![&input, &out])?;
        let mut expected = Vec::new();
        for warp in values.chunks(32) {
            let mask =
                |f: &dyn Fn(u32) -> bool| (0..32).fold(0u32, |m, lane| m | u32::from(f(warp[lane])) << lane);
            for (lane, &v) in warp.iter().enumerate() {
                expected.extend([
                    mask(&|w| w % 2 == 1),
                    2 * u32::from(warp.iter().any(|&w| w > 1000)) + u32::from(warp.iter().all(|&w| w < 2000)),
                    if lane < 3 { v } else { warp[lane - 3] },
                    warp[lane ^ 5],
                    warp[(7 * lane + 1) % 32],
                    mask(&|w| w % 4 == v % 4),
                ]);
            }
        }
        same(&format!("T = {threads}, G = {ctas}: out"), &out.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}
