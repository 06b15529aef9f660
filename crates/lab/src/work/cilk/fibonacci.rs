//! Fibonacci numbers by naive recursion: almost all of the work is in the channels.

use warploom::Result;
use warploom_flow::Graph;
use warploom_flow::cilk::Cilk;

use super::{CTAS, EFFORT, GROUP, LAYOUT, ON, RESERVE, SCHEDULE, Target, flow_ptx, halves, whole, width};
use crate::work::{Bench, Check, Param, Values, Workload, equal};

const N: Param = Param::new("n", "which number", 16).range(1, 40);
const WIDTH: Param = width(32_768);
const POLICY: Param = Param::word(
    "policy",
    "help-first yields where channels are full; the hybrid goes on work-first",
    &["help-first", "hybrid"],
);

pub(in crate::work) const WORKLOAD: Workload = Workload {
    name: "fibonacci",
    about: "Cilk: Fibonacci numbers by recursion, tasks in channels",
    params: &[N, WIDTH, POLICY, GROUP, LAYOUT, RESERVE, EFFORT, ON, SCHEDULE, CTAS],
    run,
};

/// The address of the result and `n`; or the address of the sum and its two terms.
type Element = [u32; 4];

/// The Cilk program of the paper's Figure 8 as the graph of Figure 12.
pub(crate) fn graph(n: u32, width: u32, hybrid: bool, result: u64) -> Graph {
    let mut program = Cilk::new("fibonacci", width);
    let recursion = program.recursion(n);
    let fib = program.task::<Element>(recursion, if hybrid { "fib_hybrid" } else { "fib" });
    let sum = program.after_sync::<Element>(recursion, "fib_sum");
    program.spawns::<Element>(fib, fib, 2).syncs::<Element>(fib, sum);
    program.constants(fib, [sum.stack.into()]);
    program.on_host(fib, move |lane| {
        let [low, high, n, _] = lane.read::<Element>();
        if n <= 2 {
            return lane.memory().store(whole([low, high]), 1);
        }
        let at = lane.put(sum.stack, lane.level, &[[low, high, 0, 0]]);
        let term = |word, n| {
            let [low, high] = halves(lane.word(sum.stack, lane.level, at, word));
            [low, high, n, 0]
        };
        lane.put(fib.stack, lane.level + 1, &[term(2, n - 1), term(3, n - 2)]);
    });
    program.on_host(sum, |lane| {
        let [low, high, x, y] = lane.read::<Element>();
        lane.memory().store(whole([low, high]), x + y);
    });
    let [low, high] = halves(result);
    program.start(fib, &[low, high, n, 0]);
    program.graph().clone()
}

pub(super) fn graph_of(values: &Values) -> Graph {
    graph(values.get(&N), values.get(&WIDTH), values.word(&POLICY) == "hybrid", 0)
}

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let n: u32 = values.get(&N);
    let mut target = Target::new(bench, values, flow_ptx!("fibonacci"))?;
    let result = target.words("result", &[0])?;
    let hybrid = values.word(&POLICY) == "hybrid";
    target.run(values, &mut graph(n, values.get(&WIDTH), hybrid, result.address()))?;
    let expected = (0..n).fold((0u32, 1u32), |(a, b), _| (b, a + b)).0;
    Ok(equal("Fibonacci numbers", &target.read(&result)?, &[expected]))
}
