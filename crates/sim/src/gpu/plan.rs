//! Plans: kernels and copies of several streams on one machine.

use std::any::Any;

use super::*;
use crate::exec::notes::Notes;
use crate::exec::output::Output;
use crate::exec::stop::Stop;
use crate::explain::hang::Hang;
use crate::explain::lock_warnings::lock_warnings;
use crate::gpu::observers::Observers;
use crate::gpu::run::TimedRun;
use crate::gpu::run::{Begin, End, outcome};
use crate::kit::cycle::Cycle;
use crate::time::machine::Dispatch;
use crate::time::machine::Suspended;
use crate::time::machine::firmware::contexts;
use crate::time::machine::plan::{Move, MoveFrom, PieceWork, Plan};
use crate::time::sm::Context;
use crate::time::sm::front_end::decode::Code;
use crate::time::sm::front_end::decode::decode;
use crate::time::sm::front_end::fetch::CODE_BASE;
use crate::time::sm::load_store::constant_base;

/// A piece of a plan. It begins as soon as it can; a kernel also needs room on the chip.
#[derive(Debug)]
pub struct Piece {
    /// The numbers of earlier pieces, which must have ended before.
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
    /// Kernels with lower numbers start CTAs before others that are there.
    pub priority: i32,
    /// The bytes of its parameter buffer.
    pub params: Vec<u8>,
}

/// What became of a plan so far.
#[derive(Debug)]
pub struct PlanRun {
    /// When each piece began and ended, in cycles since the plan began; `None` if it has not ended.
    pub times: Vec<Option<(u64, u64)>>,
    /// What became of the kernels that ended in this run, by the number of their piece. If one failed, the others that
    /// had not ended fail because of that one ([`LaunchError::Beside`]).
    pub kernels: Vec<(usize, Result<Stats, LaunchError>)>,
    /// Whether the plan has ended. Otherwise it pauses, and goes on in the next run.
    pub is_over: bool,
}

/// A plan that has begun and pauses.
pub(super) struct Begun {
    kernels: Vec<BegunKernel>,
    /// By kernel.
    code: Vec<Code>,
    pieces: usize,
    /// CTAs of all kernels.
    ctas: u64,
    progress: Progress,
}

struct BegunKernel {
    planned: PlannedKernel,
    piece: usize,
    first_cta: u64,
    grid_id: u64,
}

/// How far a plan is.
struct Progress {
    start: Cycle,
    /// What kernels have printed that have not ended.
    output: Output,
    /// What looks wrong, by kernel.
    notes: Vec<Notes>,
    /// By kernel, whether what became of it was told.
    told: Vec<bool>,
    /// A [`Suspended`] machine with warps as wide as the chip's; none before the first run.
    machine: Option<Box<dyn Any + Send>>,
}

impl Begun {
    fn new(start: Cycle) -> Begun {
        let (output, notes, told) = (Output::default(), Vec::new(), Vec::new());
        let progress = Progress { start, output, notes, told, machine: None };
        Begun { kernels: Vec::new(), code: Vec::new(), pieces: 0, ctas: 0, progress }
    }

    /// Adds pieces, and returns them as the machine takes them.
    fn add(
        &mut self,
        chip: &Chip,
        pieces: Vec<Piece>,
        launches: &mut u64,
    ) -> Vec<crate::time::machine::plan::Piece> {
        let mut taken = Vec::new();
        for Piece { after, not_before, work } in pieces {
            let work = match work {
                Work::Copy { cycles, moves } => PieceWork::Copy { cycles, moves },
                Work::Kernel(planned) => {
                    *launches += 1;
                    let priority = planned.priority;
                    let ctas = planned.shape.ctas();
                    self.code.push(decode(&planned.kernel.kernel, chip));
                    let (piece, first_cta, grid_id) = (self.pieces, self.ctas, *launches);
                    self.kernels.push(BegunKernel { planned, piece, first_cta, grid_id });
                    self.ctas += ctas;
                    self.progress.notes.push(Notes::default());
                    self.progress.told.push(false);
                    PieceWork::Kernel { number: (self.kernels.len() - 1) as u16, priority }
                }
            };
            self.pieces += 1;
            taken.push(crate::time::machine::plan::Piece { after, not_before, work });
        }
        taken
    }
}

impl Gpu {
    /// Carries out a plan in the timed model: kernels and copies of several streams, which overlap wherever `after` and
    /// `not_before` allow it. Kernels that are there at the same time share SMs, caches, network and DRAM. CTAs of the
    /// kernel of the lowest priority number start first, of several the one that came first; others take the room that
    /// it leaves, as long as there are at most `most_kernels`.
    ///
    /// When the pieces `until` have ended and others have not, the plan pauses. The next run adds its pieces, numbered
    /// after those that the plan has, and goes on. In between the host sees and changes memory as the kernels have left
    /// it. Without `until` the plan runs to its end.
    ///
    /// Clusters, checks, traces, profiles and observers are refused: they cannot tell kernels apart.
    pub fn run_plan(
        &mut self,
        timing: &Timing,
        pieces: Vec<Piece>,
        most_kernels: u32,
        until: &[usize],
        limits: &Limits,
    ) -> Result<PlanRun, Unlaunchable> {
        self.check_plan(timing, &pieces, until)?;
        let chip = self.chip.clone();
        let mut begun = self.begun.take().unwrap_or_else(|| Begun::new(self.side.now()));
        let first_new = begun.kernels.len();
        let pieces = begun.add(&chip, pieces, &mut self.launches);
        let Begun { kernels, code, progress, .. } = &mut begun;
        let banks: Vec<_> = kernels.iter().map(|kernel| kernel.planned.kernel.constants()).collect();
        let mut launches: Vec<Launch<'_>> = Vec::new();
        for (BegunKernel { planned, first_cta, grid_id, .. }, constants) in kernels.iter().zip(&banks) {
            let PlannedKernel { kernel, shape, params, .. } = planned;
            let occupancy = check_launch(&chip, &kernel.kernel, *shape)?;
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
                grid_id: *grid_id,
                first_cta: *first_cta,
                workspace: 0,
                clusters: false,
                textures: &self.textures,
            });
        }
        let contexts = contexts(&launches, code);
        if chip.l2.host_writes {
            for (number, context) in contexts.iter().enumerate().skip(first_new) {
                let Context { launch, code, code_start, .. } = context;
                let instruction = u64::from(chip.fetch.instruction_bytes);
                let start = CODE_BASE + u64::from(*code_start) * instruction;
                self.side.write_by_host(start, code.len() as u64 * instruction);
                let constants = launch.params.len().max(launch.constants.len()) as u64;
                self.side.write_by_host(constant_base(number as u16), constants);
            }
        }
        let context = Context { others: &contexts[1..], ..contexts[0] };
        let (policies, observers) = (&self.policies, &self.observers);
        let run = TimedRun {
            context,
            timing,
            profiled: None,
            policies,
            observers,
            aggregator: None,
            until_settled: false,
        };
        let added = Added { pieces, until: until.to_vec(), most_kernels, launches: &launches };
        let (memory, side) = (&mut self.memory, &mut self.side);
        let (times, ended) = match chip.sm.warp_lanes {
            32 => progress.go_on::<32>(&run, added, memory, side)?,
            _ => progress.go_on::<64>(&run, added, memory, side)?,
        };
        let is_over = progress.machine.is_none();
        let kernels = ended.into_iter().map(|(number, result)| (kernels[number].piece, result)).collect();
        drop(banks);
        self.begun = (!is_over).then_some(begun);
        Ok(PlanRun { times, kernels, is_over })
    }

    /// Refuses a plan that cannot be carried out, or pieces that cannot be added to one, before anything runs.
    fn check_plan(&self, timing: &Timing, pieces: &[Piece], until: &[usize]) -> Result<(), Unlaunchable> {
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
        if !until.is_empty() && self.chip.has_coherent_l1s() {
            // An L1 may hold what the host reads or writes.
            return Err(Unlaunchable::Together("paused on a chip with coherent L1s"));
        }
        let (first, before) = self.begun.as_ref().map_or((0, 0), |begun| (begun.pieces, begun.kernels.len()));
        let kernels = before + pieces.iter().filter(|piece| matches!(piece.work, Work::Kernel(_))).count();
        if kernels == 0 || kernels > usize::from(u16::MAX) {
            return Err(Unlaunchable::PlannedKernels(kernels));
        }
        if let Some(&piece) = until.iter().find(|&&piece| piece >= first + pieces.len()) {
            return Err(Unlaunchable::PlannedUntil { piece, count: first + pieces.len() });
        }
        for (at, piece) in pieces.iter().enumerate() {
            let at = first + at;
            if let Some(&before) = piece.after.iter().find(|&&before| before >= at) {
                return Err(Unlaunchable::PlannedOrder { piece: at, before });
            }
            match &piece.work {
                Work::Kernel(planned) => self.check_planned(planned)?,
                Work::Copy { moves, .. } => self.check_moves(moves)?,
            }
        }
        Ok(())
    }

    fn check_planned(&self, planned: &PlannedKernel) -> Result<(), Unlaunchable> {
        let PlannedKernel { kernel, shape, params, .. } = planned;
        check_launch(&self.chip, &kernel.kernel, *shape)?;
        if params.len() != kernel.kernel.param_bytes as usize {
            let (given, needed) = (params.len(), kernel.kernel.param_bytes);
            return Err(Unlaunchable::Params { given, needed });
        }
        if shape.cluster.is_some() || kernel.kernel.uses_clusters() {
            return Err(Unlaunchable::Together("clusters"));
        }
        Ok(())
    }

    fn check_moves(&self, moves: &[Move]) -> Result<(), Unlaunchable> {
        if self.chip.has_coherent_l1s() && !moves.is_empty() {
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
        Ok(())
    }
}

/// What a run adds to a plan.
struct Added<'a> {
    pieces: Vec<crate::time::machine::plan::Piece>,
    until: Vec<usize>,
    most_kernels: u32,
    /// All kernels, by number.
    launches: &'a [Launch<'a>],
}

/// The times of pieces, and what became of kernels by number.
type Ran = (Vec<Option<(u64, u64)>>, Vec<(usize, Result<Stats, LaunchError>)>);

impl Progress {
    /// Runs the machine until the plan pauses again or is over.
    fn go_on<const N: usize>(
        &mut self,
        run: &TimedRun<'_>,
        added: Added<'_>,
        memory: &mut Memory,
        side: &mut MemorySide,
    ) -> Result<Ran, Unlaunchable> {
        let Added { pieces, until, most_kernels, launches } = added;
        let chip = run.context.launch.chip;
        let paused = self.machine.take().and_then(|any| any.downcast::<Suspended<N, Observers>>().ok());
        let begin = match paused {
            Some(mut machine) => {
                machine.plan.add(launches, pieces, until);
                Begin::Suspended(machine)
            }
            None => {
                let mut plan = Plan::new(chip, most_kernels, self.start);
                plan.add(launches, pieces, until);
                Begin::New(Dispatch::Plan(Box::new(plan)), |_, _| Observers::by_kernel(chip.sm.max_warps))
            }
        };
        Ok(match run.run_machine(begin, memory, side)? {
            End::Paused(mut machine) => {
                self.heard(std::mem::take(&mut machine.output), std::mem::take(&mut machine.notes));
                let ran = self.ran(&mut machine.plan, launches, None);
                self.machine = Some(machine);
                ran
            }
            End::Over(finished, hang) => {
                let mut finished = *finished;
                self.heard(finished.output, finished.notes);
                let failure = finished.end.err().map(|stop| {
                    let kernel = match (&stop, &hang) {
                        (Stop::Fault(_), _) => finished.faulty,
                        (_, Some(hang)) => hang.0,
                        (_, None) => 0,
                    };
                    Failure { kernel: kernel.into(), stop, hang: hang.map(|hang| hang.1) }
                });
                let plan = finished.plan.as_mut().expect("a plan was carried out");
                self.ran(plan, launches, failure)
            }
        })
    }

    /// What SMs tell since they were last asked.
    fn heard(&mut self, output: Output, notes: Vec<Notes>) {
        self.output.merge(output);
        self.notes.iter_mut().zip(notes).for_each(|(all, more)| all.merge(more));
    }

    /// What became of the plan by now. After a failure nothing goes on.
    fn ran(&mut self, plan: &mut Plan, launches: &[Launch<'_>], failure: Option<Failure>) -> Ran {
        let since = |cycle: Cycle| cycle.saturating_sub(self.start);
        let times =
            plan.times.iter().map(|time| time.as_ref().map(|time| (since(time.start), since(time.end))));
        let times = times.collect();
        let guilty = failure.as_ref().map(|failure| failure.kernel);
        let name = guilty.map_or(String::new(), |kernel| launches[kernel].kernel.name.clone());
        let mut failure = failure;
        let mut ended = Vec::new();
        for (number, (kernel, launch)) in plan.kernels.iter_mut().zip(launches).enumerate() {
            if self.told[number] || !kernel.is_over && guilty.is_none() {
                continue;
            }
            self.told[number] = true;
            let ctas = kernel.started();
            let timed = kernel.stats.take().unwrap_or_default();
            let notes = &self.notes[number];
            let stats = Stats {
                warp_instructions: timed.total.warp_instructions(),
                thread_instructions: timed.total.thread_instructions,
                ctas,
                warps: ctas * u64::from(kernel.warps_per_cta()),
                output: self.output.take(kernel.ctas.clone()).into_text(),
                lock_warnings: lock_warnings(&notes.locks, launch),
                outside_loads: notes.outside.explain(launch),
                timed: Some(timed),
                ..Stats::default()
            };
            let result = match failure.take_if(|failure| failure.kernel == number) {
                Some(Failure { stop, hang, .. }) => outcome(Err(stop), hang, stats),
                None if kernel.is_over => Ok(stats),
                None => Err(LaunchError::Beside { kernel: name.clone(), stats: Box::new(stats) }),
            };
            ended.push((number, result));
        }
        (times, ended)
    }
}

/// Why a plan ended early.
struct Failure {
    /// The number of the kernel that failed.
    kernel: usize,
    stop: Stop,
    hang: Option<Hang>,
}
