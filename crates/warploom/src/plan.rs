//! Plans: kernels and copies of several streams, which run together on a simulated chip.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warploom_sim::Shape;
use warploom_sim::plan::Move;

use crate::args::{Arg, pack};
use crate::device::shape;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::launch::Launch;
use crate::report::Report;

/// Kernels and copies, each of which begins when those before it have ended ([`Device::run_plan`]). Kernels that are
/// there at the same time share the chip.
///
/// ```
/// use warploom::{Device, Launch, Plan, args};
///
/// # fn main() -> Result<(), warploom::Error> {
/// let mut gpu = Device::sim("gtx480")?;
/// # let text = warploom_kernels::text!("vecadd.ptx");
/// let vecadd = gpu.load_ptx(text)?.kernel("vecadd")?;
/// let xs = gpu.buffer(&[1.0f32; 256])?;
/// let (ys, zs) = (gpu.zeros::<f32>(256)?, gpu.zeros::<f32>(256)?);
/// let mut plan = Plan::new(16);
/// let launch = Launch::grid(4).block(64);
/// plan.kernel(&[], 0, &vecadd, &launch, args![&xs, &xs, &ys, 256u32])?;
/// plan.kernel(&[], 0, &vecadd, &launch, args![&xs, &xs, &zs, 256u32])?;
/// let run = gpu.run_plan(plan)?;
/// assert_eq!(run.times[0].map(|(start, _)| start), run.times[1].map(|(start, _)| start));
/// assert_eq!(zs.read(&gpu)?[0], 2.0);
/// # Ok(())
/// # }
/// ```
///
/// [`Device::run_plan`]: crate::Device::run_plan
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// How many pieces the plan has that pauses.
    pub(crate) before: usize,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) most_kernels: u32,
    /// The plan pauses when these pieces have ended and others have not ([`PlanRun::is_over`]). Without any it runs to
    /// its end.
    pub until: Vec<usize>,
    /// The plan is ended as a hang when a kernel has been on the chip for so many cycles.
    pub max_cycles: Option<u64>,
    /// The plan ends soon after the flag becomes true.
    pub interrupt: Option<Arc<AtomicBool>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub after: Vec<usize>,
    pub not_before: u64,
    pub work: Work,
}

#[derive(Clone, Debug)]
pub(crate) enum Work {
    Kernel { kernel: Kernel, shape: Shape, priority: i32, params: Vec<u8> },
    Copy { cycles: u64, moves: Vec<Move> },
}

impl Plan {
    /// A plan without pieces, of which at most `most_kernels` kernels are on the chip at once.
    pub fn new(most_kernels: u32) -> Plan {
        Plan { most_kernels, ..Plan::default() }
    }

    /// More pieces for a plan that pauses and has so many already. The next [`Device::run_plan`] adds them and goes on.
    /// In between the host has memory as the kernels have left it.
    ///
    /// [`Device::run_plan`]: crate::Device::run_plan
    pub fn more(before: usize) -> Plan {
        Plan { before, ..Plan::default() }
    }

    /// Adds a kernel that begins after other pieces, and no sooner than `not_before` cycles after the plan's begin.
    /// Returns its number. Of the launch, shape and priority count; cooperative launches cannot be pieces of a plan.
    pub fn kernel<'a>(
        &mut self,
        after: &[usize],
        not_before: u64,
        kernel: &Kernel,
        launch: &Launch,
        args: impl AsRef<[Arg<'a>]>,
    ) -> Result<usize> {
        let params = pack(kernel.info(), args.as_ref())?;
        let (shape, priority) = (shape(kernel, launch), launch.priority);
        let work = Work::Kernel { kernel: kernel.clone(), shape, priority, params };
        Ok(self.add(after, not_before, work))
    }

    /// Adds a copy, whose bytes are at their places `cycles` after it has begun. Returns its number.
    pub fn copy(&mut self, after: &[usize], not_before: u64, cycles: u64, moves: Vec<Move>) -> usize {
        self.add(after, not_before, Work::Copy { cycles, moves })
    }

    fn add(&mut self, after: &[usize], not_before: u64, work: Work) -> usize {
        self.pieces.push(Piece { after: after.to_vec(), not_before, work });
        self.before + self.pieces.len() - 1
    }
}

/// What became of a plan so far.
#[derive(Debug)]
pub struct PlanRun {
    /// When each piece began and ended, in cycles since the plan began; `None` if it has not ended.
    pub times: Vec<Option<(u64, u64)>>,
    /// The kernels that ended in this run, by the number of their piece. If one failed, those that had not ended give
    /// [`Error::Beside`](crate::Error::Beside).
    pub kernels: Vec<(usize, Result<Report>)>,
    /// Whether the plan has ended. Otherwise it pauses.
    pub is_over: bool,
}
