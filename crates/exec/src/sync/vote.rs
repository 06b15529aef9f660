//! Communication between the lanes of a warp: votes, shuffles, matches, reductions.
//!
//! PTX defines these on warps of 32 lanes. On a chip with wavefronts of 64 lanes, each half is such a warp; Warploom's
//! own instructions (`wl.ballot` and others) act on the whole wavefront.

use smallvec::{SmallVec, smallvec};
use warploom_isa::{Inst, Op, Operand, ReduxOp, ShflMode, Ty, VoteMode};

use crate::kit::lane_mask::LaneMask;
use crate::lanes;
use crate::lanes::Registers;

/// The NaN of results in single precision.
const CANONICAL_NAN: u32 = 0x7fff_ffff;

/// Lanes of a PTX warp.
pub const PTX_WARP: usize = 32;

/// Lanes that execute an instruction together: those of the same half with the same member mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Team {
    /// Those that are here.
    pub lanes: LaneMask,
    /// All that the mask names.
    pub members: LaneMask,
}

/// Lanes whose member masks do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadMask {
    /// The lane's own mask leaves it out.
    Outsider { lane: usize, members: u32 },
    /// The lane's mask names another one that is here with a mask of its own.
    Differs { lane: usize, members: u32, other: usize, others: u32 },
}

/// The teams that the lanes of `mask` form. Masks may differ between lanes, as those of tiles of a warp do, but all
/// lanes that a mask names must have the same. Lanes of both halves of a wavefront are one team if each half has but
/// one mask.
pub fn teams<const N: usize>(
    registers: &Registers<'_, N>,
    operand: Operand,
    mask: LaneMask,
) -> Result<SmallVec<[Team; 1]>, BadMask> {
    let mut all = Team { lanes: mask, members: LaneMask::NONE };
    // Nearly always the mask names all lanes.
    if operand == Operand::Imm(u32::MAX) {
        all.members = halves::<N>(mask).fold(LaneMask::NONE, |m, (h, _)| m | LaneMask(0xffff_ffff << h));
        return Ok(smallvec![all]);
    }
    let words = registers.read32(operand);
    if let Some(lane) = mask.lanes().find(|&lane| words[lane] >> (lane % PTX_WARP) & 1 == 0) {
        return Err(BadMask::Outsider { lane, members: words[lane] });
    }
    let (mut teams, mut differ) = (SmallVec::<[Team; 1]>::new(), false);
    for (half, here) in halves::<N>(mask) {
        let mut left = LaneMask(here as u64);
        while !left.is_empty() {
            let first = left.lowest();
            let members = words[half + first];
            let lanes = LaneMask((here & members) as u64);
            if let Some(other) = lanes.lanes().find(|&lane| words[half + lane] != members) {
                let (lane, other, others) = (half + first, half + other, words[half + other]);
                return Err(BadMask::Differs { lane, members, other, others });
            }
            differ |= lanes.0 as u32 != here;
            let wide = |mask: u64| LaneMask(mask << half);
            teams.push(Team { lanes: wide(lanes.0), members: wide(members as u64) });
            left &= !lanes;
        }
    }
    if !differ {
        all.members = teams.iter().fold(LaneMask::NONE, |all, team| all | team.members);
        teams = smallvec![all];
    }
    Ok(teams)
}

/// First lane and active lanes of each half that has any.
fn halves<const N: usize>(mask: LaneMask) -> impl Iterator<Item = (usize, u32)> {
    (0..N).step_by(PTX_WARP).map(move |half| (half, (mask.0 >> half) as u32)).filter(|&(_, here)| here != 0)
}

/// The instruction's member mask, if it has one.
pub fn member_operand(inst: &Inst) -> Option<Operand> {
    let operand = match inst.op {
        Op::Vote(_) | Op::MatchAny(_) | Op::MatchAll(_) | Op::Redux(..) => inst.src[1],
        Op::Shfl(_) => inst.src[3],
        Op::Elect | Op::BarWarp => inst.src[0],
        _ => return None,
    };
    (operand != Operand::None).then_some(operand)
}

/// Executes a communication instruction among the lanes of `mask`.
pub fn execute<const N: usize>(inst: &Inst, registers: &mut Registers<'_, N>, imms: &[u64], mask: LaneMask) {
    match inst.op {
        Op::Vote(mode) => vote(mode, inst, registers, mask),
        Op::Shfl(mode) => shuffle(mode, inst, registers, mask),
        Op::MatchAny(ty) => {
            let values = read(registers, inst.src[0], ty, imms);
            let mut found = [0u32; N];
            for (half, here) in halves::<N>(mask) {
                for lane in LaneMask(here as u64).lanes() {
                    let equal = |&other: &usize| values[half + other] == values[half + lane];
                    found[half + lane] =
                        LaneMask(here as u64).lanes().filter(equal).fold(0, |m, other| m | 1 << other);
                }
            }
            registers.write32(inst.dst, &found, mask);
        }
        Op::MatchAll(ty) => {
            let values = read(registers, inst.src[0], ty, imms);
            let (mut found, mut all) = ([0u32; N], 0u64);
            for (half, here) in halves::<N>(mask) {
                let first = values[half + here.trailing_zeros() as usize];
                if LaneMask(here as u64).lanes().all(|lane| values[half + lane] == first) {
                    found[half..half + PTX_WARP].fill(here);
                    all |= (u32::MAX as u64) << half;
                }
            }
            registers.write32(inst.dst, &found, mask);
            registers.write_pred(inst.dst2, all, mask);
        }
        Op::Redux(op, ty) => {
            let values = registers.read32(inst.src[0]);
            let mut reduced = [0u32; N];
            for (half, here) in halves::<N>(mask) {
                let all = LaneMask(here as u64).lanes().map(|lane| values[half + lane]);
                let value = all.reduce(|a, b| reduce(op, ty, a, b)).expect("some lane is active");
                reduced[half..half + PTX_WARP].fill(value);
            }
            registers.write32(inst.dst, &reduced, mask);
        }
        Op::ActiveMask => {
            let mut active = [0u32; N];
            for (half, here) in halves::<N>(mask) {
                active[half..half + PTX_WARP].fill(here);
            }
            registers.write32(inst.dst, &active, mask);
        }
        Op::Elect => {
            let (mut leader, mut elected) = ([0u32; N], 0u64);
            for (half, here) in halves::<N>(mask) {
                leader[half..half + PTX_WARP].fill(here.trailing_zeros());
                elected |= 1 << (half + here.trailing_zeros() as usize);
            }
            registers.write32(inst.dst, &leader, mask);
            registers.write_pred(inst.dst2, elected, mask);
        }
        Op::WaveBallot => {
            let yes = registers.read_pred(inst.src[0]) & mask.0;
            registers.write64(inst.dst, &[yes; N], mask);
        }
        Op::WaveActive => registers.write64(inst.dst, &[mask.0; N], mask),
        Op::WaveShfl(ty) => {
            let values = read(registers, inst.src[0], ty, imms);
            let from = registers.read32(inst.src[1]);
            let moved: [u64; N] = std::array::from_fn(|lane| {
                let from = from[lane] as usize;
                if from < N && mask.contains(from) { values[from] } else { values[lane] }
            });
            if ty.is_wide() {
                registers.write64(inst.dst, &moved, mask);
            } else {
                registers.write32(inst.dst, &moved.map(|value| value as u32), mask);
            }
        }
        _ => unreachable!("called for communication only"),
    }
}

fn read<const N: usize>(registers: &Registers<'_, N>, operand: Operand, ty: Ty, imms: &[u64]) -> [u64; N] {
    if ty.is_wide() { registers.read64(operand, imms) } else { registers.read32(operand).map(|v| v as u64) }
}

fn vote<const N: usize>(mode: VoteMode, inst: &Inst, registers: &mut Registers<'_, N>, mask: LaneMask) {
    let asked = registers.read_pred(inst.src[0]);
    let (mut answer, mut ballot) = (0u64, [0u32; N]);
    for (half, here) in halves::<N>(mask) {
        let yes = (asked >> half) as u32 & here;
        let holds = match mode {
            VoteMode::All => yes == here,
            VoteMode::Any => yes != 0,
            VoteMode::Uni => yes == here || yes == 0,
            VoteMode::Ballot => {
                ballot[half..half + PTX_WARP].fill(yes);
                continue;
            }
        };
        answer |= if holds { (u32::MAX as u64) << half } else { 0 };
    }
    if mode == VoteMode::Ballot {
        registers.write32(inst.dst, &ballot, mask);
    } else {
        registers.write_pred(inst.dst, answer, mask);
    }
}

fn shuffle<const N: usize>(mode: ShflMode, inst: &Inst, registers: &mut Registers<'_, N>, mask: LaneMask) {
    let values = registers.read32(inst.src[0]);
    let (lane_or_delta, control) = (registers.read32(inst.src[1]), registers.read32(inst.src[2]));
    let (mut moved, mut in_range) = (values, 0u64);
    for (half, here) in halves::<N>(mask) {
        for lane in LaneMask(here as u64).lanes() {
            let by = (lane_or_delta[half + lane] & 31) as i32;
            let clamp = (control[half + lane] & 31) as i32;
            let segment = (control[half + lane] >> 8 & 31) as i32;
            let me = lane as i32;
            let last = (me & segment) | (clamp & !segment);
            let first = me & segment;
            let (from, ok) = match mode {
                ShflMode::Up => (me - by, me - by >= last),
                ShflMode::Down => (me + by, me + by <= last),
                ShflMode::Bfly => (me ^ by, (me ^ by) <= last),
                ShflMode::Idx => {
                    let from = first | (by & !segment);
                    (from, from <= last)
                }
            };
            // Reading from an inactive lane is undefined; here a lane then keeps its own value.
            if ok && here >> from & 1 == 1 {
                moved[half + lane] = values[half + from as usize];
            }
            in_range |= (ok as u64) << (half + lane);
        }
    }
    registers.write32(inst.dst, &moved, mask);
    registers.write_pred(inst.dst2, in_range, mask);
}

fn reduce(op: ReduxOp, ty: Ty, a: u32, b: u32) -> u32 {
    use warploom_isa::AtomOp;
    let either = |is_nan: fn(f32) -> bool| is_nan(f32::from_bits(a)) || is_nan(f32::from_bits(b));
    if matches!(op, ReduxOp::MinNan | ReduxOp::MaxNan) && either(f32::is_nan) {
        return CANONICAL_NAN;
    }
    let op = match op {
        ReduxOp::Add => AtomOp::Add,
        ReduxOp::Min | ReduxOp::MinNan => AtomOp::Min,
        ReduxOp::Max | ReduxOp::MaxNan => AtomOp::Max,
        ReduxOp::And => AtomOp::And,
        ReduxOp::Or => AtomOp::Or,
        ReduxOp::Xor => AtomOp::Xor,
    };
    lanes::atomic(lanes::AtomicUnit::Sm, op, ty, [a as u64, b as u64, 0]) as u32
}
