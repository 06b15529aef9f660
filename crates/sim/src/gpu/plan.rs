//! Plans: kernels and copies of several streams on one machine.

use super::*;
use crate::chip::timing::Coherence;
use crate::exec::stop::Stop;
use crate::explain::lock_warnings::lock_warnings;
use crate::gpu::run::{HangOf, outcome};
use crate::kit::cycle::Cycle;
use crate::time::machine::Finished;
use crate::time::machine::firmware::contexts;
use crate::time::machine::plan::{Move, MoveFrom, PieceWork, Plan};
use crate::time::sm::by_kernel::ByKernel;
use crate::time::sm::front_end::decode::Decoded;
use crate::time::sm::load_store::constant_base;

/// A piece of a plan. It begins as soon as it can; a kernel also needs room on the chip.
#[derive(Debug)]
pub struct Piece {
    /// Indices of earlier pieces, which must have ended before.
    pub after: Vec<usize>,
    /// No sooner, in cycles since the plan began.
    pub not_before: u64,
    pub work: Work,
}

/// What a piece of a plan does.
#[derive(Debug)]
pub enum Work {
    Kernel(PlannedKernel),
    /// Moves bytes, which are there after so many cycles.
    Copy {
        cycles: u64,
        moves: Vec<Move>,
    },
}

/// A launch that is a piece of a plan.
#[derive(Debug)]
pub struct PlannedKernel {
    pub kernel: LoadedKernel,
    pub shape: Shape,
    /// The bytes of its parameter buffer.
    pub params: Vec<u8>,
}

/// What became of a plan.
#[derive(Debug)]
pub struct PlanRun {
    /// When each piece began and ended, in cycles since the plan began; `None` if it did not end.
    pub times: Vec<Option<(u64, u64)>>,
    /// Of each kernel, in the order of the pieces. All but one of those that did not end fail because of that one
    /// ([`LaunchError::Beside`]).
    pub kernels: Vec<Result<Stats, LaunchError>>,
}

impl Gpu {
    /// Carries out a plan in the timed model: kernels and copies of several streams, which overlap wherever `after` and
    /// `not_before` allow it. Kernels that are there at the same time share SMs, caches, network and DRAM. CTAs of the
    /// kernel that came first start first; others take the room that it leaves, as long as there are at most
    /// `most_kernels`.
    ///
    /// Clusters, checks, traces, profiles and observers are refused: they cannot tell kernels apart.
    pub fn run_plan(
        &mut self,
        timing: &Timing,
        pieces: Vec<Piece>,
        most_kernels: u32,
        limits: &Limits,
    ) -> Result<PlanRun, Unlaunchable> {
        self.check_plan(timing, &pieces)?;
        let chip = self.chip.clone();
        let mut kernels = Vec::new();
        let mut planned = Vec::new();
        for Piece { after, not_before, work } in pieces {
            let work = match work {
                Work::Copy { cycles, moves } => PieceWork::Copy { cycles, moves },
                Work::Kernel(kernel) => {
                    kernels.push(kernel);
                    PieceWork::Kernel((kernels.len() - 1) as u16)
                }
            };
            planned.push(crate::time::machine::plan::Piece { after, not_before, work });
        }
        if kernels.is_empty() || kernels.len() > usize::from(u16::MAX) {
            return Err(Unlaunchable::PlannedKernels(kernels.len()));
        }
        let banks: Vec<_> = kernels.iter().map(|planned| planned.kernel.constants()).collect();
        let mut launches: Vec<Launch<'_>> = Vec::new();
        let mut first_cta = 0;
        for (planned, constants) in kernels.iter().zip(&banks) {
            let PlannedKernel { kernel, shape, params } = planned;
            let occupancy = check_launch(&chip, &kernel.kernel, *shape)?;
            if params.len() != kernel.kernel.param_bytes as usize {
                let (given, needed) = (params.len(), kernel.kernel.param_bytes);
                return Err(Unlaunchable::Params { given, needed });
            }
            if shape.cluster.is_some() || kernel.kernel.uses_clusters() {
                return Err(Unlaunchable::Together("clusters"));
            }
            self.launches += 1;
            launches.push(Launch {
                chip: &chip,
                kernel: &kernel.kernel,
                constants,
                params,
                shape: *shape,
                occupancy,
                local_limit: LocalLimit::new(&chip, *shape, occupancy.ctas_per_sm),
                limits,
                check_uninitialised: false,
                races: None,
                grid_id: self.launches,
                first_cta,
                workspace: 0,
                clusters: false,
                textures: &self.textures,
            });
            first_cta += shape.grid.iter().map(|&extent| u64::from(extent)).product::<u64>();
        }
        let code: Vec<Vec<Decoded>> = launches.iter().map(|launch| decode(launch.kernel, &chip)).collect();
        let contexts = contexts(&launches, &code);
        if chip.l2.host_writes {
            for (number, Context { launch, code, code_start, .. }) in contexts.iter().enumerate() {
                let instruction = u64::from(chip.fetch.instruction_bytes);
                let start = CODE_BASE + u64::from(*code_start) * instruction;
                self.side.write_by_host(start, code.len() as u64 * instruction);
                let constants = launch.params.len().max(launch.constants.len()) as u64;
                self.side.write_by_host(constant_base(number as u16), constants);
            }
        }
        let start = self.side.now();
        let plan = Plan::new(&chip, &launches, planned, most_kernels, start);
        let context = Context { others: &contexts[1..], ..contexts[0] };
        let (policies, observers) = (&self.policies, &self.observers);
        let run = TimedRun { context, timing, profiled: None, policies, observers };
        let (dispatch, slots) = (Dispatch::Plan(plan), chip.sm.max_warps);
        let make_probe = |_, _| ByKernel::new(slots);
        let (memory, side) = (&mut self.memory, &mut self.side);
        let (mut finished, hang) = match chip.sm.warp_lanes {
            32 => run.run_machine::<32, _>(dispatch, memory, side, make_probe)?,
            _ => run.run_machine::<64, _>(dispatch, memory, side, make_probe)?,
        };
        let times = finished.plan.iter().flat_map(|plan| &plan.times);
        let since = |cycle: Cycle| cycle.saturating_sub(start);
        let times = times.map(|time| time.as_ref().map(|time| (since(time.start), since(time.end))));
        Ok(PlanRun { times: times.collect(), kernels: results(&mut finished, hang, &launches) })
    }

    /// Refuses a plan that cannot be carried out, before anything of it runs.
    fn check_plan(&self, timing: &Timing, pieces: &[Piece]) -> Result<(), Unlaunchable> {
        let refused = [
            (timing.trace.is_some(), "traced"),
            (timing.profile, "profiled"),
            (timing.sample_cycles.is_some(), "sampled"),
            (!self.observers.is_empty(), "observed"),
            (self.checks.races, "checked for races"),
            (self.checks.uninitialised, "checked for reads of memory that was never written"),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(is_asked, _)| *is_asked) {
            return Err(Unlaunchable::Together(what));
        }
        for (at, piece) in pieces.iter().enumerate() {
            if let Some(&before) = piece.after.iter().find(|&&before| before >= at) {
                return Err(Unlaunchable::PlannedOrder { piece: at, before });
            }
            let Work::Copy { moves, .. } = &piece.work else { continue };
            if self.chip.l1.coherence != Coherence::None && !moves.is_empty() {
                // An L1 may hold what the copy reads or writes.
                return Err(Unlaunchable::Together("run beside copies on a chip with coherent L1s"));
            }
            for Move { to, from } in moves {
                let inside = |address, bytes| match self.memory.read(address, bytes as usize) {
                    Some(_) => Ok(()),
                    None => Err(Unlaunchable::PlannedCopy { address, bytes }),
                };
                match from {
                    MoveFrom::Host(data) => inside(*to, data.len() as u64)?,
                    &MoveFrom::Device { address, bytes } => {
                        inside(address, bytes)?;
                        inside(*to, bytes)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// What became of each kernel.
fn results(
    finished: &mut Finished<ByKernel>,
    hang: Option<HangOf>,
    launches: &[Launch<'_>],
) -> Vec<Result<Stats, LaunchError>> {
    let guilty = match &finished.end {
        Ok(()) => None,
        Err(Stop::Fault(_)) => Some(finished.faulty),
        Err(_) => Some(hang.as_ref().map_or(0, |(kernel, _)| *kernel)),
    };
    let name = guilty.map_or(String::new(), |kernel| launches[usize::from(kernel)].kernel.name.clone());
    let mut end = Some((std::mem::replace(&mut finished.end, Ok(())), hang.map(|(_, hang)| hang)));
    let kernels = finished.plan.take().map_or(Vec::new(), |plan| plan.kernels);
    let mut results = Vec::new();
    for (number, (kernel, launch)) in kernels.into_iter().zip(launches).enumerate() {
        let (ctas, is_over) = (kernel.started(), kernel.is_over);
        let warps = ctas * u64::from(kernel.warps_per_cta());
        let timed = kernel.stats.unwrap_or_default();
        let notes = &finished.notes[number];
        let stats = Stats {
            warp_instructions: timed.total.warp_instructions(),
            thread_instructions: timed.total.thread_instructions,
            ctas,
            warps,
            output: finished.output.take(kernel.ctas).into_text(),
            lock_warnings: lock_warnings(&notes.locks, launch),
            outside_loads: notes.outside.explain(launch),
            timed: Some(timed),
            ..Stats::default()
        };
        let is_guilty = guilty.is_some_and(|guilty| usize::from(guilty) == number);
        results.push(match end.take_if(|_| is_guilty) {
            Some((end, hang)) => outcome(end, hang, stats),
            None if is_over => Ok(stats),
            None => Err(LaunchError::Beside { kernel: name.clone(), stats: Box::new(stats) }),
        });
    }
    results
}
