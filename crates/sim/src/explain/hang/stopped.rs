//! Makes scenes of the stopped machines of both models.

use warploom_isa::Op;

use crate::exec::functional;
use crate::exec::stop::HangReason;
use crate::explain::aggregator;
use crate::explain::hang::scene::{Scene, Seen, SeenSm, Timed};
use crate::explain::hang::{Hang, HangKind, explain};
use crate::time::machine::Stopped;
use crate::time::machine::plan::{Plan, PlannedKernel};
use crate::time::sm::probe::Probe;

pub(crate) fn explain_functional<const N: usize>(
    stopped: &functional::Stopped<'_, N>,
    reason: HangReason,
) -> Hang {
    let (locks, circle) = (stopped.shared_locks(), stopped.circle());
    let seen = |(cta, warps, lock_unit)| Seen { cta, warps, lock_unit, locks, sm: None, circle };
    let scene = Scene {
        launch: stopped.launch(),
        memory: stopped.memory(),
        locks: stopped.locks(),
        ctas: stopped.ctas().map(seen).collect(),
        unstarted: stopped.unstarted_ctas(),
        timed: None,
    };
    explain(&scene, reason, stopped.clock())
}

/// Explains a launch, a firmware run or a plan of the timed machine. Returns the kernel that it is about, too.
pub(crate) fn explain_timed<const N: usize, P: Probe>(
    stopped: &Stopped<'_, N, P>,
    reason: HangReason,
) -> (u16, Hang) {
    if stopped.aggregator().is_some() {
        return (0, explain_firmware(stopped, reason));
    }
    match stopped.plan() {
        Some(plan) => explain_plan(stopped, plan, reason),
        None => (0, explain_kernel(stopped, 0, stopped.unstarted_ctas(), reason)),
    }
}

/// Explains kernels that run together: the one with the most significant cause, and what the others do.
fn explain_plan<const N: usize, P: Probe>(
    stopped: &Stopped<'_, N, P>,
    plan: &Plan,
    reason: HangReason,
) -> (u16, Hang) {
    let came = |kernel: &&PlannedKernel| kernel.arrival.is_some() && !kernel.is_over;
    let unstarted = plan.kernels.iter().filter(came).map(PlannedKernel::unstarted).sum::<u64>();
    let on_chip = |at: &u16| {
        let kernel = &plan.kernels[usize::from(*at)];
        kernel.start.is_some() && !kernel.is_over
    };
    let numbers = || 0..plan.kernels.len() as u16;
    // What a thread waits for may be written by CTAs of any kernel that have found no room.
    let explained = |at: u16| (at, explain_kernel(stopped, at, unstarted, reason.clone()));
    let hangs = numbers().filter(on_chip).map(explained);
    let (at, mut hang) = hangs.min_by_key(|(_, hang)| hang.kind).unwrap_or_else(|| explained(0));
    let own = plan.kernels[usize::from(at)].unstarted();
    let now = stopped.now();
    hang.unstarted_ctas = own;
    hang.cycles = plan.kernels[usize::from(at)].span(now).map_or(hang.cycles, |span| span.end - span.start);
    let name = |at: u16| &stopped.context().of(at).launch.kernel.name;
    let others = numbers().filter(|&other| other != at).filter_map(|other| {
        let kernel = &plan.kernels[usize::from(other)];
        match (kernel.arrival, kernel.unstarted()) {
            _ if kernel.is_over => None,
            (None, _) => Some(format!("`{}` waits for work before it in its stream", name(other))),
            (Some(_), 0) => Some(format!("all CTAs of `{}` are on the chip", name(other))),
            (Some(_), left) => Some(format!("{left} CTAs of `{}` find no room", name(other))),
        }
    });
    let others: Vec<String> = others.take(MOST_KERNELS).collect();
    if !others.is_empty() {
        // Many warps that poll are too busy for a proof.
        let may_lack_room = matches!(hang.kind, HangKind::NotResident | HangKind::Unknown);
        let lead = if own == 0 && unstarted > 0 && may_lack_room {
            "make room for all kernels that wait for each other: smaller grids or blocks".to_string()
        } else {
            hang.help
        };
        hang.help = format!("{lead}; beside it: {}", others.join(", "));
    }
    (at, hang)
}

/// Other kernels that are told of.
const MOST_KERNELS: usize = 4;

/// Explains what the CTAs of one kernel do.
fn explain_kernel<const N: usize, P: Probe>(
    stopped: &Stopped<'_, N, P>,
    kernel: u16,
    unstarted: u64,
    reason: HangReason,
) -> Hang {
    let ctas = stopped.sms().flat_map(|sm| {
        let (l1, locks, watch) = (&sm.memory.l1, &sm.locks, sm.watch.as_ref());
        let lock_unit = sm.effects().lock_units.of(sm.id());
        let of_sm = move |cta| SeenSm { l1, watch, slots: &sm.slots[..], cta };
        sm.residents().filter(move |r| r.kernel == kernel).map(move |r| Seen {
            cta: &r.cta,
            warps: &r.warps,
            lock_unit,
            locks,
            sm: Some(of_sm(&r.slots)),
            circle: None,
        })
    });
    let memory = stopped.memory();
    let bows = stopped.sms().any(|sm| sm.spin_unit.is_some());
    let scene = Scene {
        launch: stopped.context().of(kernel).launch,
        memory: &memory,
        locks: stopped.locks(),
        ctas: ctas.collect(),
        unstarted,
        timed: Some(Timed {
            now: stopped.now(),
            is_quiet: stopped.is_quiet(),
            pace: stopped.lock_pace(),
            policy: stopped.policy(),
            bows,
        }),
    };
    explain(&scene, reason, stopped.cycles())
}

/// Explains a firmware run: the kernel with the most significant cause, and the aggregator.
fn explain_firmware<const N: usize, P: Probe>(stopped: &Stopped<'_, N, P>, reason: HangReason) -> Hang {
    let kernels = 0..=stopped.context().others.len() as u16;
    let hangs = kernels.map(|kernel| explain_kernel(stopped, kernel, 0, reason.clone()));
    let hang = hangs.filter(|hang| !hang.ctas.is_empty()).min_by_key(|hang| hang.kind);
    let aggregator = stopped.aggregator().map(|unit| aggregator::describe(unit, &stopped.memory()));
    match hang {
        Some(hang) => {
            let help = format!("{}{}", hang.help, missing_yield(stopped).unwrap_or_default());
            Hang { aggregator, help, ..hang }
        }
        None => Hang {
            kernel: String::new(),
            chip: String::new(),
            reason,
            kind: HangKind::Starved,
            subject: String::new(),
            cycles: stopped.cycles(),
            ctas: Vec::new(),
            more_ctas: 0,
            live_warps: stopped.sms().flat_map(|sm| sm.residents()).map(|r| r.cta.live_warps as u64).sum(),
            unstarted_ctas: 0,
            grid_ctas: 0,
            aggregator,
            livelock: None,
            undone: Vec::new(),
            kept: Vec::new(),
            help: "let firmware restart wavefronts that yielded, or start what they wait for; \
                   see docs/hangs.md#nothing-to-start"
                .to_string(),
        },
    }
}

/// Advice if kernels yield but the chip's wavefronts cannot: those that wait for room then keep their slots.
fn missing_yield<const N: usize, P: Probe>(stopped: &Stopped<'_, N, P>) -> Option<String> {
    let context = stopped.context();
    let chip = context.launch.chip;
    let contexts = std::iter::once(context).chain(context.others);
    let mut yields = contexts.flat_map(|context| &context.launch.kernel.code).map(|inst| inst.op);
    let missing = chip.wavefront_yield.is_none() && yields.any(|op| op == Op::Yield);
    missing.then(|| {
        format!(
            "; wavefronts of `{}` cannot yield (it has no [yield]), so those that wait for room in a full channel keep \
             their places from what would make room (docs/channels.md)",
            chip.name
        )
    })
}
