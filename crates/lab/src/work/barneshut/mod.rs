//! Two steps of a Barnes-Hut simulation, from HPCA'18. TB builds the octree of some bodies, with one lock per child
//! and a barrier that throttles the attempts. ST sorts the bodies in tree order by wait and signal, as in Figure 6c.
//! The paper's 30,000 bodies are `bodies=30_000`.

mod octree;

use warploom::{Launch, Result, args, grouped};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;
use octree::{Body, NONE, Octree, REACH};

const BODIES: Param = Param::new("bodies", "bodies", 3000).range(1, 1 << 24);
const CTAS: Param = Param::new("ctas", "CTAs; their threads share the work evenly", 15);
const THREADS: Param = Param::new("threads", "threads of a CTA", 256).range(1, 1024);

pub(super) const BUILD: Workload = Workload {
    name: "treebuild",
    about: "TB: the octree of a Barnes-Hut simulation, a lock a child, a barrier before each attempt",
    params: &[BODIES, CTAS, THREADS, SEED],
    run: build,
};

pub(super) const SORT: Workload = Workload {
    name: "treesort",
    about: "ST: bodies sorted by a Barnes-Hut octree, a cell waits for its parent's signal",
    params: &[BODIES, CTAS, THREADS, SEED],
    run: sort,
};

fn build(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (ctas, threads): (u32, u32) = (values.get(&CTAS), values.get(&THREADS));
    let bodies = bodies(values);
    let empty = Octree::new(bodies.len() as u32);

    let module = bench.load(ptx!("sync/barneshut"))?;
    let positions = bench.gpu.buffer_named("positions", &bodies)?;
    let children = bench.gpu.buffer_named("children", &empty.children)?;
    let tree = bench.gpu.buffer_named("tree", &[empty.lowest, 0])?;
    let args = args![&positions, empty.bodies, &children, empty.root, REACH, &tree];
    bench.launch(&module.kernel("barneshut_build")?, Launch::grid(ctas).block(threads), args)?;

    let &[lowest, full] = &tree.read(bench.gpu)?[..] else { return Ok(Err("no tree".to_string())) };
    if full != 0 {
        return Ok(Err("the tree has no room for all cells".to_string()));
    }
    let got = Octree { lowest, children: children.read(bench.gpu)?, ..empty };
    Ok(match Octree::build(&bodies) {
        Some(expected) => got.same_as(&expected),
        None => Err("the host's tree has no room for all cells".to_string()),
    })
}

fn sort(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (ctas, threads): (u32, u32) = (values.get(&CTAS), values.get(&THREADS));
    let bodies = bodies(values);
    let Some(tree) = Octree::build(&bodies) else {
        return Ok(Err("the tree has no room for all cells".to_string()));
    };
    let counts = tree.counts();
    let mut starts = vec![NONE; counts.len()];
    starts[(tree.root - tree.bodies) as usize] = 0;

    let module = bench.load(ptx!("sync/barneshut"))?;
    let children = bench.gpu.buffer_named("children", &tree.children)?;
    let counts = bench.gpu.buffer_named("counts", &counts)?;
    let starts = bench.gpu.buffer_named("starts", &starts)?;
    let sorted = bench.gpu.buffer_named("sorted", &vec![NONE; bodies.len()])?;
    let launch = Launch::grid(ctas).block(threads);
    let args = args![&children, &counts, &starts, &sorted, tree.bodies, tree.lowest, tree.root];
    bench.launch_resident(&module.kernel("barneshut_sort")?, launch, args)?;

    let cells = grouped(u64::from(tree.root - tree.lowest + 1));
    let right = equal("places", &sorted.read(bench.gpu)?, &tree.leaves());
    Ok(right.map(|right| format!("{right}, {cells} cells")))
}

/// A cloud that is denser towards its middle.
fn bodies(values: &Values) -> Vec<Body> {
    let mut random = Random::new(values.get(&SEED));
    let count: usize = values.get(&BODIES);
    let body = |v: Vec<f32>| [v[0] * v[3], v[1] * v[3], v[2] * v[3], 1.0];
    (0..count).map(|_| body(random.floats(4))).collect()
}
