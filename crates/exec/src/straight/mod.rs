//! Straight runs: what one path of a warp executes until something is to be decided about its way, or somebody else
//! must know. The functional machine spends most of its time here. Start at [`run`].
//!
//! An instruction by way of [`Execution::step`](crate::execute::Execution::step) costs some 260 host instructions
//! before its lanes do anything, and a load some 700. Here an instruction is decoded when it is first reached
//! ([`program`]), the path, its mask and its registers are looked up once for the whole run, and loads and stores of
//! words ([`words`]) move bytes between memory and registers without an access of their own. What is not done here, or
//! not known to be harmless (a fault, say), ends the run before it, and takes the other way.

mod program;
mod words;

use multiversion::multiversion;
use warploom_isa::{Guard, Kernel, Operand, Pc};

use crate::kit::lane_mask::LaneMask;
use crate::lanes::{self, Registers, frequent};
use crate::memory::store::Memory;
use crate::warp::control::Group;

pub(crate) use program::Program;
use program::{Kind, Step};

/// What a path can reach during a run.
pub(crate) struct Reached<'a, const N: usize> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) registers: Registers<'a, N>,
    /// Local memory of the warp, and how many bytes a thread has of it.
    pub(crate) local: (&'a mut Vec<[u32; N]>, u64),
    pub(crate) memory: &'a mut Memory,
    pub(crate) shared: &'a mut [u8],
    pub(crate) constants: &'a [u8],
    pub(crate) params: &'a [u8],
}

/// Executes at most `most` instructions of a path, up to pc `until`. Returns the pc at which the path is then, and how
/// many instructions it has executed.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
pub(crate) fn run<const N: usize>(
    program: &mut Program<N>,
    reached: &mut Reached<'_, N>,
    path: Group,
    until: Pc,
    most: u64,
) -> (Pc, u64) {
    let kernel = reached.kernel;
    let (mut pc, mut left) = (path.pc, most);
    while left > 0 && pc != until {
        let inst = &kernel.code[pc.index()];
        let mask = match inst.guard {
            Guard::Always => path.mask,
            Guard::If(pred) => path.mask & LaneMask(reached.registers.preds[pred.index()]),
            Guard::Unless(pred) => path.mask & !LaneMask(reached.registers.preds[pred.index()]),
        };
        let Step { kind, decoded, words } = &mut program.steps[pc.index()];
        let constants = program.constants.rows();
        let mut next = Pc(pc.0 + 1);
        match kind {
            Kind::Lanes => frequent::execute(decoded, inst, &mut reached.registers, constants, mask),
            Kind::Branch if mask == path.mask => {
                let Operand::Imm(target) = inst.src[0] else { break };
                next = Pc(target);
            }
            Kind::Nothing => {}
            Kind::Other => break,
            Kind::New => {
                program.decode(kernel, pc);
                continue;
            }
            // Nothing happens, and a branch is not taken.
            _ if mask.is_empty() => {}
            Kind::Load => {
                if !words::load(words, reached, constants, mask) {
                    break;
                }
            }
            Kind::Store => {
                if !words::store(words, reached, constants, mask) {
                    break;
                }
            }
            Kind::RareLanes => {
                if !lanes::execute(inst, &mut reached.registers, &kernel.imms, mask) {
                    *kind = Kind::Other;
                    break;
                }
            }
            Kind::Branch => break,
        }
        (pc, left) = (next, left - 1);
    }
    (pc, most - left)
}
