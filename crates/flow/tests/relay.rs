//! Channels of the simulated machine under many producers and consumers: nothing is lost or duplicated.

use proptest::prelude::*;
use warploom::{Chip, Device, Report, SimOptions};
use warploom_flow::{Graph, Layout, Level};

const PTX: &str = warploom_kernels::text!("flow/relay.ptx");

/// First number, how many, and rounds left.
type Range = [u32; 3];

#[derive(Clone, Debug)]
struct Case {
    cus: u32,
    width: u32,
    group: u32,
    layout: Layout,
    lane_by_lane: bool,
    numbers: u32,
    rounds: u32,
    starts: u32,
}

fn cases() -> impl Strategy<Value = Case> {
    let layouts = prop_oneof![Just(Layout::Structures), Just(Layout::Padded), Just(Layout::Arrays)];
    let small = (0u32..6, 0u32..=6, any::<bool>());
    (1u32..=8, small, layouts, 1u32..200, 0u32..6, 1u32..4).prop_map(
        |(cus, (width, group, lane_by_lane), layout, numbers, rounds, starts)| Case {
            cus,
            width: 64 << width,
            group: 1 << group,
            layout,
            lane_by_lane,
            numbers,
            rounds,
            starts,
        },
    )
}

/// How often each number was counted, in two channels that feed each other.
fn run(case: &Case) -> (Vec<u32>, Report) {
    let chip = Chip::load("apu", &[format!("sm.count={}", case.cus)]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions::default());
    let module = gpu.load_ptx(PTX).unwrap();
    let seen = gpu.zeros::<u32>((case.numbers * case.starts) as usize).unwrap();
    let mut graph = Graph::new("relay");
    let nodes = [graph.channel::<Range>("here", case.width), graph.channel::<Range>("there", case.width)];
    for (at, node) in nodes.into_iter().enumerate() {
        let next = nodes[1 - at];
        let kernel = graph.kernel("relay");
        graph.reads::<Range>(kernel, node).writes::<Range>(kernel, next, Level::Same, 4);
        graph.constants(kernel, [next.into(), (&seen).into()]);
    }
    for start in 0..case.starts {
        graph.put(nodes[0], &[start * case.numbers, case.numbers, case.rounds]);
    }
    graph.layout(case.layout).group(case.group).lane_by_lane(case.lane_by_lane);
    let report = graph.execute(&mut gpu, &module).unwrap().wait().unwrap();
    (seen.read(&gpu).unwrap(), report)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled(case in cases()) {
        // Two channels that feed each other can both be full, so they must hold more than what is in flight.
        prop_assume!(4 * case.numbers * case.starts <= case.width);
        let (seen, _) = run(&case);
        prop_assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
    }
}

#[test]
fn around_the_array_many_times() {
    let case = Case {
        cus: 4,
        width: 64,
        group: 16,
        layout: Layout::Structures,
        lane_by_lane: false,
        numbers: 16,
        rounds: 100,
        starts: 1,
    };
    let (seen, report) = run(&case);
    assert_eq!(seen, vec![1; 16]);
    assert!(report.warps > 90, "{}", report.warps);
}
