//! Graphs on a simulated GPU without an aggregator: a persistent kernel schedules itself, or the host does.

use proptest::prelude::*;
use warploom::{Chip, Device, SimOptions};
use warploom_flow::{FlowError, Graph, Level, Schedule};

const RELAY: &str = warploom_kernels::text!("flow/gpu/relay.ptx");
const FIBONACCI: &str = warploom_kernels::text!("flow/gpu/fibonacci.ptx");

const SCHEDULES: [Schedule; 3] = [Schedule::Persistent, Schedule::PerSm, Schedule::Levels];

fn h200(sms: u32) -> Device {
    let changes = [format!("sm.count={sms}")];
    Device::sim_with(Chip::load("h200", &changes).unwrap(), SimOptions::default())
}

#[derive(Clone, Copy, Debug)]
struct Case {
    ctas: u32,
    width: u32,
    numbers: u32,
    rounds: u32,
    starts: u32,
    schedule: Schedule,
}

fn cases() -> impl Strategy<Value = Case> {
    let schedules =
        prop_oneof![3 => Just(Schedule::Persistent), 3 => Just(Schedule::PerSm), 1 => Just(Schedule::Levels)];
    (1u32..=4, 0u32..5, 1u32..200, 0u32..6, 1u32..4, schedules).prop_map(
        |(ctas, width, numbers, rounds, starts, schedule)| Case {
            ctas,
            width: 64 << width,
            numbers,
            rounds,
            starts,
            schedule,
        },
    )
}

/// Two channels that feed each other: ranges are split until each number is alone, goes around and is counted.
fn relay(case: &Case) -> Result<Vec<u32>, FlowError> {
    let mut gpu = h200(2);
    let module = gpu.load_ptx(RELAY)?;
    let seen = gpu.zeros::<u32>((case.numbers * case.starts) as usize)?;
    let mut graph = Graph::new("relay");
    let nodes =
        [graph.channel::<[u32; 3]>("here", case.width), graph.channel::<[u32; 3]>("there", case.width)];
    for (at, node) in nodes.into_iter().enumerate() {
        let next = nodes[1 - at];
        let kernel = graph.kernel("relay");
        graph.reads::<[u32; 3]>(kernel, node).writes::<[u32; 3]>(kernel, next, Level::Same, 4);
        graph.constants(kernel, [next.into(), (&seen).into()]);
    }
    for start in 0..case.starts {
        graph.put(nodes[0], &[start * case.numbers, case.numbers, case.rounds]);
    }
    let execution = graph.execute_on_gpu(&mut gpu, &module)?.schedule(case.schedule).ctas(case.ctas);
    let run = execution.wait(&|launch| launch.max_cycles(20_000_000))?;
    assert!(run.elements >= u64::from(case.numbers * case.starts));
    assert!(run.chunks <= run.elements);
    Ok(seen.read(&gpu)?)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled(case in cases()) {
        // Two channels that feed each other can both be full; then the run says so and ends.
        let fits = 4 * case.numbers * case.starts <= case.width;
        match relay(&case) {
            Ok(seen) => prop_assert!(seen.iter().all(|&count| count == 1), "{seen:?}"),
            Err(FlowError::Stuck { reason, .. }) => prop_assert!(!fits, "{reason}"),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn around_the_channel_many_times() {
    for schedule in SCHEDULES {
        let case = Case { ctas: 1, width: 64, numbers: 12, rounds: 60, starts: 1, schedule };
        assert!(relay(&case).unwrap().iter().all(|&count| count == 1));
    }
}

#[test]
fn channels_that_fill_each_other_end_the_run() {
    for schedule in SCHEDULES {
        let case = Case { ctas: 1, width: 64, numbers: 199, rounds: 5, starts: 3, schedule };
        let message = relay(&case).unwrap_err().to_string();
        assert!(message.contains("no room for what the elements of"), "{message}");
        assert!(message.contains("take wider channels"), "{message}");
    }
}

/// The Cilk program of Fibonacci numbers with a bound and a number of levels that may be too small.
fn fibonacci(levels: u32, most: u32, schedule: Schedule) -> Result<u32, FlowError> {
    let mut gpu = h200(1);
    let module = gpu.load_ptx(FIBONACCI)?;
    let result = gpu.zeros::<u32>(1)?;
    let mut program = warploom_flow::cilk::Cilk::new("fibonacci", 64);
    let recursion = program.recursion(levels);
    let fib = program.task::<[u32; 4]>(recursion, "fib");
    let sum = program.after_sync::<[u32; 4]>(recursion, "fib_sum");
    if most > 0 {
        program.spawns::<[u32; 4]>(fib, fib, most);
    }
    program.syncs::<[u32; 4]>(fib, sum);
    program.constants(fib, [sum.stack.into()]);
    let address = result.address();
    program.start(fib, &[address as u32, (address >> 32) as u32, 12, 0]);
    let execution = program.graph().execute_on_gpu(&mut gpu, &module)?.schedule(schedule).ctas(2);
    execution.wait(&|launch| launch.max_cycles(20_000_000))?;
    Ok(result.read(&gpu)?[0])
}

#[test]
fn narrow_stacks() {
    for schedule in SCHEDULES {
        assert_eq!(fibonacci(12, 2, schedule).unwrap(), 144);
    }
}

#[test]
fn too_few_levels_are_named() {
    for schedule in SCHEDULES {
        let message = fibonacci(5, 2, schedule).unwrap_err().to_string();
        assert!(
            message
                .contains("kernel `fib` puts elements behind the last level of channel `fib`, which has 5"),
            "{message}"
        );
    }
}

#[test]
fn a_bound_that_is_too_small_is_named() {
    for schedule in SCHEDULES {
        let message = fibonacci(12, 1, schedule).unwrap_err().to_string();
        assert!(message.contains("`fib`") && message.contains("raise the bound"), "{message}");
    }
}

#[test]
fn a_spawn_that_is_not_declared_is_named() {
    for schedule in SCHEDULES {
        let message = fibonacci(12, 0, schedule).unwrap_err().to_string();
        let mend = "kernel `fib`, which knows the channel, puts elements into level 1 of channel `fib` and does not \
                    declare it; add `writes` or `spawns` to the graph";
        assert!(message.contains(mend), "{message}");
    }
}

#[test]
fn kernels_and_constants_must_match() {
    let mut gpu = h200(1);
    let module = gpu.load_ptx(RELAY).unwrap();
    let graph = |kernel: &str, constants: usize| {
        let mut graph = Graph::new("one");
        let channel = graph.channel::<[u32; 3]>("here", 64);
        let kernel = graph.kernel(kernel);
        graph.reads::<[u32; 3]>(kernel, channel);
        graph.constants(kernel, vec![0u64.into(); constants]).put(channel, &[0u32, 0, 0]);
        graph
    };
    let mut refused = |graph: Graph, ptx: &warploom::Module| {
        graph.execute_on_gpu(&mut gpu, ptx).unwrap().wait(&|launch| launch).unwrap_err().to_string()
    };
    let message = refused(graph("other", 2), &module);
    assert_eq!(message, "kernel `other` is not among those of the module's FLOW_MAIN: relay");
    let message = refused(graph("relay", 3), &module);
    assert_eq!(
        message,
        "kernel `relay` takes 2 arguments after `Work`, and the graph gives it 3; see `constants`"
    );
    let mut gpu = h200(1);
    let module = gpu.load_ptx(warploom_kernels::text!("vecadd.ptx")).unwrap();
    let message = graph("relay", 2)
        .execute_on_gpu(&mut gpu, &module)
        .unwrap()
        .wait(&|launch| launch)
        .unwrap_err()
        .to_string();
    assert!(message.contains("end its source with FLOW_MAIN"), "{message}");
}
