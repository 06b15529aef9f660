//! A product of matrices by recursion down to 16x16 tiles, whose products are added atomically.
//!
//! The paper calls it Strassen. Its 587 wavefronts are those of eight products per level (32,768 tiles and the levels
//! above them, each rounded up), so this program has eight. Strassen's seven would make 310.

use warploom::Result;
use warploom_flow::Graph;
use warploom_flow::cilk::Cilk;

use super::{CTAS, EFFORT, GROUP, LAYOUT, ON, RESERVE, SCHEDULE, Target, flow_ptx, width};
use crate::random::Random;
use crate::work::{Bench, Check, Param, SEED, Values, Workload, equal};

/// Rows of the kernel's tile.
const TILE: u32 = 16;

const SIZE: Param = Param::new("size", "rows of a matrix, 16 times a power of two", 64).range(16, 8192);
const WIDTH: Param = width(8192);
const READS: Param =
    Param::word("reads", "a lane reads its tiles number by number, or four at a time", &["scalar", "vector"]);

pub(in crate::work) const WORKLOAD: Workload = Workload {
    name: "strassen",
    about: "Cilk: the product of two matrices by recursion, 16x16 tiles added atomically",
    params: &[SIZE, WIDTH, READS, GROUP, LAYOUT, RESERVE, EFFORT, ON, SCHEDULE, CTAS, SEED],
    run,
};

/// Offsets of three submatrices, and their rows.
type Product = [u32; 4];

pub(crate) fn graph(size: u32, width: u32, [a, b, c]: [u64; 3]) -> Graph {
    let mut program = Cilk::new("strassen", width);
    let recursion = program.recursion((size / TILE).max(1).ilog2() + 1);
    let product = program.task::<Product>(recursion, "strassen");
    program.spawns::<Product>(product, product, 8);
    program.constants(product, [a.into(), b.into(), c.into(), size.into()]);
    program.on_host(product, move |lane| {
        let [x, y, z, rows] = lane.read::<Product>();
        if rows > TILE {
            let half = rows / 2;
            let part = |i: u32| {
                let (k, down, right) = (i >> 2, (i >> 1 & 1) * half * size, (i & 1) * half);
                [x + down + k * half, y + k * half * size + right, z + down + right, half]
            };
            lane.put(product.stack, lane.level + 1, &[0, 1, 2, 3, 4, 5, 6, 7].map(part));
            return;
        }
        let at = |array: u64, offset: u32| array + 4 * offset as u64;
        let load = |address| f32::from_bits(lane.memory().load(address));
        for i in 0..TILE {
            for j in 0..TILE {
                let term = |k| (load(at(a, x + i * size + k)), load(at(b, y + k * size + j)));
                let sum = (0..TILE).map(term).fold(0.0f32, |sum, (x, y)| x.mul_add(y, sum));
                add(lane, at(c, z + i * size + j), sum);
            }
        }
    });
    program.start(product, &[0, 0, 0, size]);
    program.graph().clone()
}

fn add(lane: &warploom_flow::Lane<'_>, address: u64, value: f32) {
    let mut old = lane.memory().load(address);
    loop {
        let new = (f32::from_bits(old) + value).to_bits();
        match lane.memory().compare_exchange(address, old, new) {
            seen if seen == old => return,
            seen => old = seen,
        }
    }
}

pub(super) fn graph_of(values: &Values) -> Graph {
    graph(values.get(&SIZE), values.get(&WIDTH), [0; 3])
}

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let size: u32 = values.get(&SIZE);
    if !(size / TILE).is_power_of_two() || !size.is_multiple_of(TILE) {
        let message = format!("size={size}: a matrix has 16 times a power of two rows: 16, 32, 64 …");
        return Err(warploom::Error::Misuse(message));
    }
    let n = size as usize;
    let mut random = Random::new(values.get(&SEED));
    // Small integers: their sums are exact in any order.
    let mut matrix = || random.words(n * n).into_iter().map(|word| (word % 8) as f32).collect::<Vec<_>>();
    let (xs, ys) = (matrix(), matrix());
    let kernels = match values.word(&READS) {
        "vector" => flow_ptx!("strassen_vector"),
        _ => flow_ptx!("strassen"),
    };
    let mut target = Target::new(bench, values, kernels)?;
    let bits = |floats: &[f32]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
    let (a, b) = (target.words("a", &bits(&xs))?, target.words("b", &bits(&ys))?);
    let c = target.words("c", &vec![0; n * n])?;
    let addresses = [a.address(), b.address(), c.address()];
    target.run(values, &mut graph(size, values.get(&WIDTH), addresses))?;
    let product: Vec<f32> = target.read(&c)?.into_iter().map(f32::from_bits).collect();
    Ok(equal("elements", &product, &super::super::matmul::product(&xs, &ys, n)))
}
