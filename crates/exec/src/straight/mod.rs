//! Straight runs: what a warp executes until somebody else must know. The functional machine spends most of its time
//! here. Start at [`run`].
//!
//! An instruction by way of [`Execution::step`](crate::execute::Execution::step) costs some 260 host instructions
//! before its lanes do anything, and a load some 700. Here an instruction is decoded when it is first reached
//! ([`program`]), the path and its mask are looked up once for all its instructions up to where it meets others or
//! diverges, and loads and stores of words ([`words`]) move bytes between memory and registers without an access of
//! their own. What is not done here, or not known to be harmless (a fault, say), ends the run before it, and takes the
//! other way.

mod program;
mod words;

use multiversion::multiversion;
use warploom_isa::{Guard, Op, Operand, Pc, Pred, Special};

use crate::execute::branch;
use crate::kit::lane_mask::LaneMask;
use crate::lanes::frequent::{self, Spare};
use crate::lanes::{self, Registers, Taking, spread};
use crate::launch::Launch;
use crate::memory::store::Memory;
use crate::warp::control::{Activation, Control, Group, Stretch};

use program::Kind;
pub(crate) use program::Program;

/// What a path can reach during a run.
pub(crate) struct Reached<'a, const N: usize> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) registers: Registers<'a, N>,
    /// Local memory of the warp, and how many bytes a thread has of it.
    pub(crate) local: (&'a mut Vec<[u32; N]>, u64),
    pub(crate) memory: &'a mut Memory,
    pub(crate) shared: &'a mut [u8],
    /// `%tid` of each lane, and `%ctaid`.
    pub(crate) tid: &'a [[u32; N]; 3],
    pub(crate) ctaid: [u32; 3],
}

/// What a run has executed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) instructions: u64,
    /// Instructions times lanes that were active, whatever the guard says.
    pub(crate) thread_instructions: u64,
}

/// Executes at most `most` instructions of a warp that is in this activation. On a SIMT stack it goes on with the next
/// path where one meets others, or where a path diverges.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
pub(crate) fn run<const N: usize>(
    program: &mut Program<N>,
    reached: &mut Reached<'_, N>,
    control: &mut Control,
    activation: &Activation,
    most: u64,
) -> Ran {
    let mut ran = Ran::default();
    let mut spare = [[0; N]; 2];
    program.patterns.forget();
    while ran.instructions < most
        && let Some(stretch) = control.straight()
        && control.running().is_some_and(|(_, of_path)| of_path == activation)
    {
        let (path, parted) = (stretch.path, control.is_parted());
        let stretch = Stretch { most: stretch.most.min(most - ran.instructions), ..stretch };
        let (pc, mut executed, why) = run_path(program, reached, &mut spare, &stretch, parted);
        let goes_on = match why {
            Why::Met => {
                control.arrive(pc, executed);
                executed > 0
            }
            Why::Diverges(taken) => {
                control.arrive_at_branch(pc, executed);
                debug_assert_eq!(control.current(), Some(Group { pc, mask: path.mask }));
                let inst = &reached.launch.kernel.code[pc.index()];
                branch(control, inst, Group { pc, mask: path.mask }, taken);
                executed += 1;
                true
            }
            Why::Other => {
                control.arrive(pc, executed);
                false
            }
        };
        ran.instructions += executed;
        ran.thread_instructions += executed * u64::from(path.mask.0.count_ones());
        if !goes_on {
            break;
        }
    }
    ran
}

/// Why a path goes no further in a run.
enum Why {
    /// It meets others, or has executed as many instructions as it may.
    Met,
    /// The next instruction is a branch that only these lanes take.
    Diverges(LaneMask),
    /// The next instruction is not for a straight run.
    Other,
}

/// Executes a stretch of a path, beside which there are others if the warp is `parted`. Returns the pc at which the
/// path is then, and how many instructions it has executed.
#[inline(always)]
fn run_path<const N: usize>(
    program: &mut Program<N>,
    reached: &mut Reached<'_, N>,
    spare: &mut Spare<N>,
    &Stretch { path, until, ref within, most }: &Stretch,
    parted: bool,
) -> (Pc, u64, Why) {
    let launch = reached.launch;
    let words = spread(path.mask.0);
    let whole_path = Taking { words: Some(&words), ..Taking::of(path.mask) };
    let (mut at, until, mut left) = (path.pc.index(), until.index(), most as usize);
    let within = within.start.index()..within.end.index();
    let mut why = Why::Met;
    while left > 0 && at != until && within.contains(&at) {
        // As far as the next instruction that is elsewhere: there is nothing else to ask for in between.
        let end = at.saturating_add(left).min(program.steps.len()).min(within.end);
        let end = if at < until { end.min(until) } else { end };
        let Program { steps, words, patterns, constants, .. } = program;
        let mut ahead = steps[at..end].iter_mut();
        let stop = loop {
            let Some(step) = ahead.next() else { break Stop::End };
            let (inst, mut taking) = (&step.inst, whole_path);
            if !step.plain {
                let guard = |pred: Pred| LaneMask(reached.registers.preds[pred.index()]);
                match inst.guard {
                    Guard::Always => {}
                    Guard::If(pred) => taking = Taking::of(path.mask & guard(pred)),
                    Guard::Unless(pred) => taking = Taking::of(path.mask & !guard(pred)),
                }
                patterns.written(&step.moves);
            }
            let mask = taking.mask;
            match step.kind {
                Kind::Lanes(operation) => {
                    let (registers, constants) = (&mut reached.registers, constants.rows());
                    frequent::execute(&operation, inst, registers, constants, spare, taking);
                }
                // Who waits lets the other paths run then.
                Kind::Branch if step.repeats_wait && (parted || !mask.is_empty() && mask != path.mask) => {
                    break Stop::Before;
                }
                Kind::Branch if mask == path.mask => match inst.src[0] {
                    Operand::Imm(target) => break Stop::Branch(target as usize),
                    _ => break Stop::Before,
                },
                Kind::Nothing => {}
                Kind::Other => break Stop::Before,
                Kind::New => break Stop::New,
                // Nothing happens, and a branch is not taken.
                _ if mask.is_empty() => {}
                Kind::Words => {
                    let words = &mut words[step.words];
                    let pattern = patterns.of(words);
                    let constants = constants.rows();
                    if !words::transfer(words, pattern, reached, constants, spare, taking) {
                        break Stop::Before;
                    }
                }
                Kind::Special => {
                    let values = match inst.op {
                        Op::Special(Special::TidX) => reached.tid[0],
                        Op::Special(Special::TidY) => reached.tid[1],
                        Op::Special(Special::TidZ) => reached.tid[2],
                        Op::Special(Special::CtaidX) => [reached.ctaid[0]; N],
                        Op::Special(Special::CtaidY) => [reached.ctaid[1]; N],
                        _ => [reached.ctaid[2]; N],
                    };
                    reached.registers.write32(inst.dst, &values, mask);
                }
                Kind::RareLanes => {
                    if !lanes::execute(inst, &mut reached.registers, &launch.kernel.imms, mask) {
                        step.kind = Kind::Other;
                        break Stop::Before;
                    }
                }
                Kind::Branch => {
                    why = Why::Diverges(mask);
                    break Stop::Before;
                }
            }
        };
        // The instruction at which it stopped is taken already.
        let next = end - ahead.len();
        let (then, ran) = match stop {
            Stop::End => (next, next - at),
            Stop::Branch(target) => (target, next - at),
            Stop::Before | Stop::New => (next - 1, next - 1 - at),
        };
        let is_stuck = matches!(stop, Stop::Before) || at == end;
        (at, left) = (then, left - ran);
        if is_stuck {
            if let Why::Met = why {
                why = Why::Other;
            }
            break;
        }
        if let Stop::New = stop {
            program.decode(launch, Pc(at as u32));
        }
    }
    (Pc(at as u32), most - left as u64, why)
}

/// Why the instructions in a row are left.
enum Stop {
    /// All were executed.
    End,
    Branch(usize),
    /// The next one is not for a straight run.
    Before,
    /// The next one is not decoded yet.
    New,
}
