//! Random graphs give the same result on the host, on a chip with an aggregator, on a simulated GPU without one under
//! all schedules, and on a real GPU if this computer has one.

use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use warploom::{Chip, Device, SimOptions};
use warploom_flow::{Arena, Graph, Level, Node, Schedule};

const AGGREGATOR: &str = warploom_kernels::text!("flow/mesh.ptx");
const GPU: &str = warploom_kernels::text!("flow/gpu/mesh.ptx");

/// Hash and remaining life.
type Spark = [u32; 2];

/// What a kernel writes: which node, on the same level or the next, and how many elements at most.
type Edge = Option<(usize, bool, u32)>;

#[derive(Clone, Debug)]
struct Mesh {
    levels: u32,
    /// Of each node: its width, and its two edges.
    nodes: Vec<(u32, [Edge; 2])>,
    starts: Vec<Spark>,
}

fn meshes() -> impl Strategy<Value = Mesh> {
    let edge = (any::<prop::sample::Index>(), any::<bool>(), 1u32..=3);
    let node = (0u32..4, prop::option::weighted(0.8, edge.clone()), prop::option::weighted(0.6, edge));
    let starts = prop::collection::vec((any::<u32>(), 0u32..6), 1..6);
    (1u32..4, prop::collection::vec(node, 1..5), starts).prop_map(|(levels, nodes, starts)| {
        let count = nodes.len();
        let edge = |at: usize, edge: Option<(prop::sample::Index, bool, u32)>| {
            let (to, next, most) = edge?;
            match next {
                // A deeper level of any node, or the same level of a later one: no element comes back.
                true => Some((to.index(count), true, most)),
                false if at + 1 < count => Some((at + 1 + to.index(count - at - 1), false, most)),
                false => None,
            }
        };
        let node =
            |(at, (width, one, other)): (usize, (u32, _, _))| (64 << width, [edge(at, one), edge(at, other)]);
        let nodes = nodes.into_iter().enumerate().map(node).collect();
        Mesh { levels, nodes, starts: starts.into_iter().map(|(hash, life)| [hash, life]).collect() }
    })
}

fn mixed(hash: u32) -> u32 {
    let hash = (hash ^ hash >> 16).wrapping_mul(0x7feb_352d);
    let hash = (hash ^ hash >> 15).wrapping_mul(0x846c_a68b);
    hash ^ hash >> 16
}

impl Mesh {
    /// Nodes that nothing reaches would be refused, so they get a spark of their own.
    fn starts(&self, at: usize) -> Vec<Spark> {
        let reached = self
            .nodes
            .iter()
            .flat_map(|(_, edges)| edges)
            .flatten()
            .any(|&(to, next, _)| to == at && (!next || self.levels > 1));
        match (at, reached) {
            (0, _) => self.starts.clone(),
            (_, true) => Vec::new(),
            (_, false) => vec![[at as u32, 2]],
        }
    }

    /// `seen`: two words for each node.
    fn graph(&self, seen: u64) -> Graph {
        let mut graph = Graph::new("mesh");
        let name = |at: usize| format!("node {at}");
        let stacks: Vec<Node> = (0..self.nodes.len())
            .map(|at| graph.stack::<Spark>(&name(at), self.levels, self.nodes[at].0))
            .collect();
        for (at, (_, edges)) in self.nodes.iter().enumerate() {
            let (kernel, here) = (graph.kernel("mesh"), seen + 8 * at as u64);
            graph.reads::<Spark>(kernel, stacks[at]);
            // The second edge may lead where the first one does; then it may put as many again.
            for &(to, next, most) in edges.iter().flatten() {
                let level = if next { Level::Next } else { Level::Same };
                graph.writes::<Spark>(kernel, stacks[to], level, most);
            }
            let way = |edge: Edge| edge.map_or(0, |(_, next, _)| 1 + u32::from(next));
            let most = |edge: Edge| edge.map_or(0, |(_, _, most)| most);
            let to = |edge: Edge| edge.map_or(stacks[at], |(to, ..)| stacks[to]);
            graph.constants(
                kernel,
                [
                    to(edges[0]).into(),
                    to(edges[1]).into(),
                    (way(edges[0]) | way(edges[1]) << 2).into(),
                    (most(edges[0]) | most(edges[1]) << 8).into(),
                    self.levels.into(),
                    here.into(),
                ],
            );
            let (edges, levels, targets) = (*edges, self.levels, stacks.clone());
            graph.on_host(kernel, move |lane| {
                let [hash, life] = lane.read::<Spark>();
                lane.memory().add(here, 1);
                lane.memory().add(here + 4, hash);
                for (edge, salt) in edges.into_iter().zip([1u32, 1000]) {
                    let Some((to, next, most)) = edge else { continue };
                    if life == 0 || (next && lane.level + 1 == levels) {
                        continue;
                    }
                    let count = mixed(hash.wrapping_add(salt)) % (most + 1);
                    let child = |i| [mixed(hash.wrapping_mul(31).wrapping_add(salt + i)), life - 1];
                    let sparks: Vec<Spark> = (0..count).map(child).collect();
                    if !sparks.is_empty() {
                        lane.put(targets[to], lane.level + u32::from(next), &sparks);
                    }
                }
            });
            for spark in self.starts(at) {
                graph.put(stacks[at], &spark);
            }
        }
        graph
    }

    fn on_host(&self) -> Vec<u32> {
        let mut memory = Arena::<AtomicU32>::new(0x1_0000, 0);
        let words = 2 * self.nodes.len();
        let seen = memory.buffer(&vec![0; words]);
        self.graph(seen).run_on_host(&mut memory).unwrap();
        memory.read(seen, words)
    }

    fn on_apu(&self) -> Vec<u32> {
        let chip = Chip::load("apu", &["sm.count=2".to_string()]).unwrap();
        let mut gpu = Device::sim_with(chip, SimOptions::default());
        let module = gpu.load_ptx(AGGREGATOR).unwrap();
        let seen = gpu.zeros::<u32>(2 * self.nodes.len()).unwrap();
        self.graph(seen.address()).execute(&mut gpu, &module).unwrap().wait().unwrap();
        seen.read(&gpu).unwrap()
    }

    fn on_gpu(&self, mut gpu: Device, schedule: Schedule) -> Vec<u32> {
        let module = gpu.load_ptx(GPU).unwrap();
        let seen = gpu.zeros::<u32>(2 * self.nodes.len()).unwrap();
        let graph = self.graph(seen.address());
        let execution = graph.execute_on_gpu(&mut gpu, &module).unwrap().schedule(schedule);
        execution.wait(&|launch| launch.max_cycles(50_000_000)).unwrap();
        seen.read(&gpu).unwrap()
    }
}

fn h200() -> Device {
    Device::sim_with(Chip::load("h200", &["sm.count=2".to_string()]).unwrap(), SimOptions::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agree_everywhere(mesh in meshes()) {
        let expected = mesh.on_host();
        prop_assert_eq!(&mesh.on_apu(), &expected, "on the apu");
        for schedule in [Schedule::Persistent, Schedule::PerSm, Schedule::Levels] {
            prop_assert_eq!(&mesh.on_gpu(h200(), schedule), &expected, "{:?} on a simulated GPU", schedule);
            if let Ok(gpu) = Device::cuda(0) {
                prop_assert_eq!(&mesh.on_gpu(gpu, schedule), &expected, "{:?} on a real GPU", schedule);
            }
        }
    }
}
