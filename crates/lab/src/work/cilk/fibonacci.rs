//! Fibonacci numbers by naive recursion: almost all of the work is in the channels.

use warploom::{Error, Result};
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

const TASKS: Param = Param::word(
    "tasks",
    "in a channel for each level of the recursion (Figure 12), or all in one, the main channel (Figures 10 and 11)",
    &["levels", "main"],
);

pub(in crate::work) const WORKLOAD: Workload = Workload {
    name: "fibonacci",
    about: "Cilk: Fibonacci numbers by recursion, tasks in channels",
    params: &[N, WIDTH, POLICY, TASKS, GROUP, LAYOUT, RESERVE, EFFORT, ON, SCHEDULE, CTAS],
    run,
};

/// The address of the result, `n` and, in the main channel, the level; or the address of the sum and its two terms.
type Element = [u32; 4];

/// How tasks are kept, and what is done without room for more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Levels,
    Hybrid,
    MainChannel,
}

/// The Cilk program of the paper's Figure 8 as the graph of Figure 12, or of Figure 11.
pub(crate) fn graph(n: u32, width: u32, form: Form, result: u64) -> Graph {
    let mut program = Cilk::new("fibonacci", width);
    let recursion = program.recursion(n);
    let in_main = form == Form::MainChannel;
    let (fib, sum) = if in_main {
        let sum = program.after_sync::<Element>(recursion, "fib_sum");
        (program.main_channel::<Element>("fib_main"), sum)
    } else {
        let kernel = if form == Form::Hybrid { "fib_hybrid" } else { "fib" };
        let fib = program.task::<Element>(recursion, kernel);
        (fib, program.after_sync::<Element>(recursion, "fib_sum"))
    };
    program.spawns::<Element>(fib, fib, 2).syncs::<Element>(fib, sum);
    program.constants(fib, [sum.stack.into()]);
    program.on_host(fib, move |lane| {
        let [low, high, n, level] = lane.read::<Element>();
        // Where the sum goes, where the tasks go, and what these say of their level.
        let (here, next, said) =
            if in_main { (level, 0, level + 1) } else { (lane.level, lane.level + 1, 0) };
        if n <= 2 {
            return lane.memory().store(whole([low, high]), 1);
        }
        let at = lane.put(sum.stack, here, &[[low, high, 0, 0]]);
        let term = |word, n| {
            let [low, high] = halves(lane.word(sum.stack, here, at, word));
            [low, high, n, said]
        };
        lane.put(fib.stack, next, &[term(2, n - 1), term(3, n - 2)]);
    });
    program.on_host(sum, |lane| {
        let [low, high, x, y] = lane.read::<Element>();
        lane.memory().store(whole([low, high]), x + y);
    });
    let [low, high] = halves(result);
    program.start(fib, &[low, high, n, 0]);
    program.graph().clone()
}

fn form(values: &Values) -> Result<Form> {
    match (values.word(&TASKS), values.word(&POLICY)) {
        ("main", "hybrid") => Err(Error::Misuse(
            "fibonacci: policy=hybrid is for tasks=levels; with tasks=main, wavefronts yield".to_string(),
        )),
        ("main", _) => Ok(Form::MainChannel),
        (_, "hybrid") => Ok(Form::Hybrid),
        _ => Ok(Form::Levels),
    }
}

/// Of values that do not go together, which a run refuses, the graph is that of `tasks`.
pub(super) fn graph_of(values: &Values) -> Graph {
    graph(values.get(&N), values.get(&WIDTH), form(values).unwrap_or(Form::MainChannel), 0)
}

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let n: u32 = values.get(&N);
    let form = form(values)?;
    let ptx = match form {
        Form::MainChannel => flow_ptx!("fibonacci_main"),
        Form::Levels | Form::Hybrid => flow_ptx!("fibonacci"),
    };
    let mut target = Target::new(bench, values, ptx)?;
    let result = target.words("result", &[0])?;
    target.run(values, &mut graph(n, values.get(&WIDTH), form, result.address()))?;
    let expected = (0..n).fold((0u32, 1u32), |(a, b), _| (b, a + b)).0;
    Ok(equal("Fibonacci numbers", &target.read(&result)?, &[expected]))
}
