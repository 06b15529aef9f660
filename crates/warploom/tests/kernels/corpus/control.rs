//! Recursion, function pointers, switches, local arrays.

use warploom::{Launch, args};

use crate::support::{Outcome, Random, Run, same, same_hex};

pub(super) fn fib(run: &mut Run) -> Outcome {
    let n = 75usize;
    let mut input = Random::new(1).words_below(n, 9);
    input[..14].iter_mut().zip(0..).for_each(|(v, k)| *v = k);
    let (values, out) = (run.gpu.buffer(&input)?, run.gpu.zeros::<u32>(n)?);
    run.launch(Launch::grid(3).block(33), args![&values, &out, n as u32])?;
    let fib = |k: u32| (0..k).fold((0u32, 1u32), |(a, b), _| (b, a + b)).0;
    let expected: Vec<u32> = input.iter().map(|&k| fib(k)).collect();
    same("out", &out.read(&run.gpu)?, &expected)
}

pub(super) fn ackermann(run: &mut Run) -> Outcome {
    let n = 40usize;
    let mut random = Random::new(2);
    let (mut ms, mut ks) = (random.words_below(n, 3), random.words_below(n, 5));
    (ms[0], ks[0], ms[1], ks[1]) = (2, 6, 0, 0);
    let (m, k, out) = (run.gpu.buffer(&ms)?, run.gpu.buffer(&ks)?, run.gpu.zeros::<u32>(n)?);
    run.launch(Launch::grid(2).block(24), args![&m, &k, &out, n as u32])?;
    fn a(m: u32, k: u32) -> u32 {
        match (m, k) {
            (0, k) => k + 1,
            (m, 0) => a(m - 1, 1),
            (m, k) => a(m - 1, a(m, k - 1)),
        }
    }
    let expected: Vec<u32> = ms.iter().zip(&ks).map(|(&m, &k)| a(m, k)).collect();
    same("out", &out.read(&run.gpu)?, &expected)
}

pub(super) fn localarray(run: &mut Run) -> Outcome {
    let n = 70usize;
    let mut values: Vec<i32> = Random::new(3).words(16 * n).into_iter().map(|v| v as i32).collect();
    values[16..32].fill(5);
    let (input, out) = (run.gpu.buffer(&values)?, run.gpu.zeros::<i32>(16 * n)?);
    run.launch(Launch::grid(2).block(40), args![&input, &out, n as u32])?;
    values.chunks_mut(16).for_each(|part| part.sort_unstable());
    same("out", &out.read(&run.gpu)?, &values)
}

pub(super) fn funcptr(run: &mut Run) -> Outcome {
    let n = 150usize;
    let mut random = Random::new(4);
    let input: Vec<i32> = (0..n).map(|_| random.below(2001) as i32 - 1000).collect();
    let choice = random.words(n);
    let (values, which) = (run.gpu.buffer(&input)?, run.gpu.buffer(&choice)?);
    let out = run.gpu.zeros::<i32>(n)?;
    run.launch(Launch::grid(4).block(40), args![&values, &out, &which, n as u32])?;
    let collatz = |v: i32| {
        let (mut v, mut steps) = (v as u32 % 1000 + 1, 0);
        while v != 1 {
            v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
            steps += 1;
        }
        steps
    };
    let result = |i: usize| match choice[i] % 4 {
        0 => input[i] + i as i32,
        1 => -input[i],
        2 => 3 * input[i],
        _ => collatz(input[i]),
    };
    same("out", &out.read(&run.gpu)?, &(0..n).map(result).collect::<Vec<_>>())
}

fn words_to_words(run: &mut Run, result: impl Fn(u32, u32) -> u32) -> Outcome {
    for (n, threads, ctas) in [(500usize, 96u32, 6u32), (65, 13, 5)] {
        let mut input = Random::new(n as u64).words(n);
        let edges = (0..16).chain(u32::MAX - 15..=u32::MAX).chain(0x7fff_fff8..0x8000_0008);
        input.iter_mut().zip(edges).for_each(|(v, edge)| *v = edge);
        let (values, out) = (run.gpu.buffer(&input)?, run.gpu.zeros::<u32>(n)?);
        run.launch(Launch::grid(ctas).block(threads), args![&values, &out, n as u32])?;
        let expected: Vec<u32> = input.iter().zip(0..).map(|(&v, i)| result(v, i)).collect();
        same_hex("out", &out.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}

pub(super) fn classify(run: &mut Run) -> Outcome {
    words_to_words(run, |v, i| {
        let wide = u64::from(v).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pair = u64::from(i) << 32 | u64::from(v);
        match v % 16 {
            0 => v.count_ones(),
            1 => v.leading_zeros(),
            2 => v >> 5 & 0x7ff,
            3 => v.min(1000) + i.max(7),
            4 => (v as i32).min(-5) as u32,
            5 => ((u64::from(v) * u64::from(i)) >> 7) as u32,
            6 => ((u64::from(v) * 0xdead_beef) >> 32) as u32,
            7 => (pair << (v % 37 % 32) >> 32) as u32,
            8 => u32::from_le_bytes([1, 7, 4, 2].map(|k| pair.to_le_bytes()[k])),
            9 => (wide / (u64::from(i) + 3)) as u32,
            10 => (wide % 1_000_003) as u32,
            11 => v.reverse_bits() ^ v >> 3,
            12 => ((u128::from(wide) * u128::from(wide)) >> 75) as u32,
            13 => wide.count_ones() * 100 + wide.leading_zeros(),
            14 => (i64::from(v as i32) >> 9) as u32 / 3,
            _ => (i32::from(v as i8) + i32::from((v >> 8) as i16)) as u32,
        }
    })
}

pub(super) fn jumptable(run: &mut Run) -> Outcome {
    words_to_words(run, |v, _| match v % 4 {
        0 => v.wrapping_add(1),
        1 => v.wrapping_mul(2),
        2 => !v,
        _ => v.wrapping_mul(v),
    })
}
