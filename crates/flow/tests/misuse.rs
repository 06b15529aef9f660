//! Graphs that declare something else than their kernels do: each run ends with an error that names the kernel, the
//! channel and what to change, on the device and on the host.

use warploom::{Chip, Device, Error, SimOptions};
use warploom_flow::cilk::{Cilk, Part};
use warploom_flow::{Arena, FlowError, Graph, Level};

const FIBONACCI: &str = warploom_kernels::text!("flow/fibonacci.ptx");

/// Takes its element and never frees it.
const KEEPS: &str = "
.version 6.3
.target sm_70
.address_size 64
.visible .entry keeps(.param .align 8 .b8 work[24]) { ret; }
";

fn apu() -> Device {
    let chip = Chip::load("apu", &["sm.count=1".to_string()]).unwrap();
    Device::sim_with(chip, SimOptions::default())
}

type Element = [u32; 4];

/// The 12th Fibonacci number in a recursion of so many levels, with these edges declared.
fn fibonacci(levels: u32, result: u64, declare: impl Fn(&mut Cilk, Part, Part)) -> Graph {
    let mut program = Cilk::new("fibonacci", 256);
    let recursion = program.recursion(levels);
    let fib = program.task::<Element>(recursion, "fib");
    let sum = program.after_sync::<Element>(recursion, "fib_sum");
    declare(&mut program, fib, sum);
    program.constants(fib, [sum.stack.into()]);
    program.on_host(fib, move |lane| {
        let [low, high, n, _] = lane.read::<Element>();
        let address = |at: u64| [at as u32, (at >> 32) as u32];
        if n <= 2 {
            return lane.memory().store(low as u64 | (high as u64) << 32, 1);
        }
        let at = lane.put(sum.stack, lane.level, &[[low, high, 0, 0]]);
        let term = |word, n| {
            let [low, high] = address(lane.word(sum.stack, lane.level, at, word));
            [low, high, n, 0]
        };
        lane.put(fib.stack, lane.level + 1, &[term(2, n - 1), term(3, n - 2)]);
    });
    program.on_host(sum, |lane| {
        let [low, high, x, y] = lane.read::<Element>();
        lane.memory().store(low as u64 | (high as u64) << 32, x + y);
    });
    program.start(fib, &[result as u32, (result >> 32) as u32, 12u32, 0]);
    program.graph().clone()
}

fn declare_all(program: &mut Cilk, fib: Part, sum: Part) {
    program.spawns::<Element>(fib, fib, 2).syncs::<Element>(fib, sum);
}

/// The result, or what the run complains about: on the device, then on the host.
fn both(levels: u32, declare: impl Fn(&mut Cilk, Part, Part)) -> [Result<u32, String>; 2] {
    let mut gpu = apu();
    let module = gpu.load_ptx(FIBONACCI).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let graph = fibonacci(levels, result.address(), &declare);
    let run = graph.execute(&mut gpu, &module).and_then(|execution| execution.wait());
    let device = run.map(|_| result.read(&gpu).unwrap()[0]).map_err(|error| error.to_string());
    let mut memory = Arena::new(0x1_0000, 0);
    let address = memory.buffer(&[0]);
    let run = fibonacci(levels, address, &declare).run_on_host(&mut memory);
    [device, run.map(|_| memory.load(address)).map_err(|error| error.to_string())]
}

#[test]
fn what_is_declared_runs() {
    assert_eq!(both(11, declare_all), [Ok(144), Ok(144)]);
}

#[test]
fn a_spawn_that_is_not_declared() {
    let [device, host] = both(11, |program, fib, sum| {
        program.syncs::<Element>(fib, sum);
    });
    let mend = "kernel `fib` puts elements into level 1 of channel `fib` and does not declare it; add `writes` or \
                `spawns` to the graph";
    assert!(device.as_ref().unwrap_err().contains(mend), "{device:?}");
    assert_eq!(host.unwrap_err(), format!("graph `fibonacci`: {mend}"));
}

#[test]
fn too_few_levels() {
    let mend = "kernel `fib` puts elements behind the last level of channel `fib`, which has 4: give its recursion as \
                many levels as this input needs";
    let [device, host] = both(4, declare_all);
    assert!(device.as_ref().unwrap_err().contains(mend), "{device:?}");
    assert_eq!(host.unwrap_err(), format!("graph `fibonacci`: {mend}"));
}

#[test]
fn a_bound_that_is_too_small() {
    let [device, host] = both(11, |program, fib, sum| {
        program.spawns::<Element>(fib, fib, 1).syncs::<Element>(fib, sum);
    });
    let mend = "kernel `fib` puts more elements at once into level 1 of channel `fib` than the 1 declared: raise the \
                bound of `writes` or `spawns`";
    assert!(device.as_ref().unwrap_err().contains(mend), "{device:?}");
    assert_eq!(
        host.unwrap_err(),
        "graph `fibonacci`: kernel `fib` puts 2 elements at once into level 1 of channel `fib`, where it may put 1 as \
         declared: raise the bound of `writes` or `spawns`"
    );
}

/// Tasks of the paper's Figure 6 in one channel, of which each may put so many as declared. Returns the result.
fn naive(tasks_at_start: &[u32], most: u32) -> Result<u32, FlowError> {
    let mut gpu = apu();
    let module = gpu.load_ptx(FIBONACCI).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let mut graph = Graph::new("naive");
    let tasks = graph.channel::<u32>("tasks", 64);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, most);
    graph.constants(kernel, [tasks.into(), (&result).into()]);
    for n in tasks_at_start {
        graph.put(tasks, n);
    }
    graph.execute(&mut gpu, &module)?.wait()?;
    Ok(result.read(&gpu).unwrap()[0])
}

/// One task puts two elements and four put none: fewer than one each, in all.
#[test]
fn a_bound_that_one_task_exceeds() {
    assert_eq!(naive(&[3, 1, 1], 2).unwrap(), 4);
    let error = naive(&[3, 1, 1], 1).unwrap_err();
    assert!(matches!(error, FlowError::Device(Error::Firmware { .. })), "{error}");
    let mend = "kernel `fib_naive` puts more elements at once into channel `tasks` than the 1 declared: raise the \
                bound of `writes` or `spawns`";
    assert!(error.to_string().contains(mend), "{error}");
}

#[test]
fn an_element_that_is_never_freed() {
    let mut gpu = apu();
    let module = gpu.load_ptx(KEEPS).unwrap();
    let mut graph = Graph::new("keeps");
    let tasks = graph.channel::<u32>("tasks", 64);
    let kernel = graph.kernel("keeps");
    graph.reads::<u32>(kernel, tasks).put(tasks, &1u32).put(tasks, &2u32);
    let error = graph.execute(&mut gpu, &module).unwrap().wait().unwrap_err();
    assert!(matches!(error, FlowError::Device(Error::Firmware { .. })), "{error}");
    assert!(
        error.to_string().contains(
            "kernel `keeps` ended without freeing 2 elements of channel `tasks`: call `tfree` for every element, last"
        ),
        "{error}"
    );
}

/// An endless recursion: all wavefronts wait for room in one channel, and the report says which.
#[test]
fn a_hang_names_its_channels() {
    let mut gpu = apu();
    let module = gpu.load_ptx(FIBONACCI).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let mut graph = Graph::new("endless");
    let tasks = graph.channel::<u32>("tasks", 64);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, 2);
    graph.constants(kernel, [tasks.into(), (&result).into()]).put(tasks, &4_000_000_000u32);
    let error = graph.execute(&mut gpu, &module).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("(1 for [channel tasks+0])"), "{error}");
    assert!(error.contains("\n  channel `tasks`: "), "{error}");
    assert!(error.contains("for kernel `fib_naive`, room for "), "{error}");
}
