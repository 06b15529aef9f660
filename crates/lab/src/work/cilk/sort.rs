//! Merge sort of four parts. Merges are recursive, too.

use warploom::Result;
use warploom_flow::cilk::Cilk;
use warploom_flow::{Graph, Lane};

use super::{CTAS, EFFORT, GROUP, LAYOUT, ON, RESERVE, SCHEDULE, Target, flow_ptx, halves, whole, width};
use crate::random::Random;
use crate::work::{Bench, Check, Param, SEED, Values, Workload, equal};

const COUNT: Param = Param::new("count", "numbers to sort", 20_000).range(1, 1 << 28);
const BASE: Param = Param::new("base", "numbers that one task sorts alone", 64).range(4, 4096);
const WIDTH: Param = width(32_768);

pub(in crate::work) const WORKLOAD: Workload = Workload {
    name: "sort",
    about: "Cilk: merge sort of random numbers, in four ways",
    params: &[COUNT, BASE, WIDTH, GROUP, LAYOUT, RESERVE, EFFORT, ON, SCHEDULE, CTAS, SEED],
    run,
};

/// First number and count.
type Range = [u32; 2];

/// Addresses of both inputs and of the output, and the counts of the inputs.
type Merge = [u32; 8];

fn merge([x, y, out]: [u64; 3], x_count: u32, y_count: u32) -> Merge {
    let ([a, b], [c, d], [e, f]) = (halves(x), halves(y), halves(out));
    [a, b, c, d, e, f, x_count, y_count]
}

/// Levels of recursion of the sort and of a merge. The larger part of a merge has at most three quarters of its
/// numbers.
fn levels(count: u32, base: u32) -> (u32, u32) {
    let ratio = (count as f64 / base as f64).max(1.0);
    // If four does not divide the count, one quarter has up to three numbers more.
    let quarters = ratio.log(4.0).ceil() as u32 + 2;
    (quarters, (ratio.ln() / (4.0f64 / 3.0).ln()).ceil() as u32 + 6)
}

pub(crate) fn graph(count: u32, base: u32, width: u32, values: u64, other: u64) -> Graph {
    let mut program = Cilk::new("sort", width);
    let (quarter_levels, merge_levels) = levels(count, base);
    let sorting = program.recursion(quarter_levels);
    let sort = program.task::<Range>(sorting, "sort");
    let quarters = program.after_sync::<Range>(sorting, "sort_quarters");
    let halved = program.after_sync::<Range>(sorting, "sort_halves");
    let merging = program.recursion(merge_levels);
    let merges = program.task::<Merge>(merging, "sort_merge");
    program.spawns::<Range>(sort, sort, 4).syncs::<Range>(sort, quarters);
    program.spawns::<Merge>(quarters, merges, 2).syncs::<Range>(quarters, halved);
    program.spawns::<Merge>(halved, merges, 1).spawns::<Merge>(merges, merges, 2);
    program.constants(sort, [quarters.stack.into(), values.into(), base.into()]);
    program.constants(quarters, [halved.stack.into(), merges.stack.into(), values.into(), other.into()]);
    program.constants(halved, [merges.stack.into(), values.into(), other.into()]);
    program.constants(merges, [base.into()]);
    let at = |array: u64, index: u32| array + 4 * index as u64;
    program.on_host(sort, move |lane| {
        let [first, count] = lane.read::<Range>();
        if count <= base {
            let mut numbers = lane.memory().read(at(values, first), count as usize);
            numbers.sort_unstable();
            return store(lane, at(values, first), &numbers);
        }
        lane.put(quarters.stack, lane.level, &[[first, count]]);
        let quarter = count / 4;
        let part = |i: u32| [first + i * quarter, if i == 3 { count - 3 * quarter } else { quarter }];
        lane.put(sort.stack, lane.level + 1, &[0, 1, 2, 3].map(part));
    });
    program.on_host(quarters, move |lane| {
        let [first, count] = lane.read::<Range>();
        lane.put(halved.stack, lane.level, &[[first, count]]);
        let quarter = count / 4;
        let pair = |first: u32, rest: u32| {
            merge([at(values, first), at(values, first + quarter), at(other, first)], quarter, rest)
        };
        let pairs = [pair(first, quarter), pair(first + 2 * quarter, count - 3 * quarter)];
        lane.put(merges.stack, 0, &pairs);
    });
    program.on_host(halved, move |lane| {
        let [first, count] = lane.read::<Range>();
        let half = count / 4 * 2;
        let addresses = [at(other, first), at(other, first + half), at(values, first)];
        lane.put(merges.stack, 0, &[merge(addresses, half, count - half)]);
    });
    program.on_host(merges, move |lane| {
        let [a, b, c, d, e, f, x_count, y_count] = lane.read::<Merge>();
        let (x, y, out) = (whole([a, b]), whole([c, d]), whole([e, f]));
        let (x, y, x_count, y_count) =
            if x_count < y_count { (y, x, y_count, x_count) } else { (x, y, x_count, y_count) };
        if y_count < base {
            let mut numbers = lane.memory().read(x, x_count as usize);
            numbers.extend(lane.memory().read(y, y_count as usize));
            numbers.sort_unstable();
            return store(lane, out, &numbers);
        }
        let x_split = x_count / 2;
        let middle = lane.memory().load(at(x, x_split));
        let (mut y_split, mut end) = (0, y_count);
        while y_split < end {
            let probe = (y_split + end) / 2;
            if lane.memory().load(at(y, probe)) < middle { y_split = probe + 1 } else { end = probe }
        }
        let second = [at(x, x_split), at(y, y_split), at(out, x_split + y_split)];
        let parts =
            [merge([x, y, out], x_split, y_split), merge(second, x_count - x_split, y_count - y_split)];
        lane.put(merges.stack, lane.level + 1, &parts);
    });
    program.start(sort, &[0, count]);
    program.graph().clone()
}

fn store(lane: &Lane<'_>, address: u64, numbers: &[u32]) {
    for (i, &number) in numbers.iter().enumerate() {
        lane.memory().store(address + 4 * i as u64, number);
    }
}

pub(super) fn graph_of(values: &Values) -> Graph {
    graph(values.get(&COUNT), values.get(&BASE), values.get(&WIDTH), 0, 0)
}

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (count, base): (u32, u32) = (values.get(&COUNT), values.get(&BASE));
    let mut numbers = Random::new(values.get(&SEED)).words(count as usize);
    let mut target = Target::new(bench, values, flow_ptx!("sort"))?;
    let sorted = target.words("numbers", &numbers)?;
    let other = target.words("other", &vec![0; count as usize])?;
    let mut graph = graph(count, base, values.get(&WIDTH), sorted.address(), other.address());
    target.run(values, &mut graph)?;
    numbers.sort_unstable();
    Ok(equal("numbers", &target.read(&sorted)?, &numbers))
}
