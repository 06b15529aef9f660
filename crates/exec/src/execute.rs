//! What one instruction does to a warp, its CTA and memory.

mod bulk;
mod calls;
mod clusters;
pub(crate) mod special;
mod stack;

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use warploom_isa::{BarMode, Dst, Guard, Inst, Kernel, MbarrierOp, Op, Operand, Pc, Space, Special};

use crate::fault::FaultKind;
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::lanes;
use crate::lanes::Registers;
use crate::launch::{Launch, Shape};
use crate::locks::unit::LockUnits;
use crate::matrix;
use crate::memory::access::WarpAccess;
use crate::memory::address::Addresses;
use crate::memory::reach::{Bad, Reach};
use crate::memory::shared::Shared;
use crate::memory::store::Global;
use crate::notes::Notes;
use crate::output::Output;
use crate::sync::barrier::{Arrival, Barriers, Release, Waiter};
use crate::sync::cluster::{AsyncBytes, Membership, Remote};
use crate::sync::vote::{BadMask, PTX_WARP, Team};
use crate::sync::{mbarrier, vote};
use crate::warp::Warp;
use crate::warp::control::{Activation, Control, Group, Wait};

use calls::copy_local;
pub use clusters::end_cluster_phase;
use clusters::{check_remote_mbarrier, map_to_rank};

/// A resident CTA without its warps.
#[derive(Debug)]
pub struct Cta {
    /// Its coordinates in the grid.
    pub id: [u32; 3],
    pub number: u64,
    pub sm: u32,
    pub shared: Shared,
    pub barriers: Barriers,
    /// Its place in its cluster, if the launch or the kernel uses clusters.
    pub cluster: Option<Box<Membership>>,
    /// Warps that have not ended.
    pub live_warps: u32,
    /// The task of which it is a part, if firmware started it. `None` in a plain launch.
    pub task: Option<Arc<Task>>,
}

/// CTAs that firmware starts together: a one-dimensional grid of a kernel with its own parameters.
#[derive(Debug)]
pub struct Task {
    pub kernel: u16,
    /// Number of CTAs.
    pub ctas: u32,
    pub params: Vec<u8>,
}

impl Cta {
    /// The CTA with this number, as it starts at place `slot` of an SM.
    pub fn new(launch: &Launch<'_>, number: u64, sm: u32, slot: u32) -> Cta {
        let Launch { chip, shape, occupancy, check_uninitialised, .. } = launch;
        // Places are as far apart as memory is given out; what fits on an SM was computed so.
        let base = slot * occupancy.shared_bytes.next_multiple_of(chip.sm.shared_unit_bytes);
        Cta {
            id: launch.cta(number),
            number,
            sm,
            shared: Shared::new(occupancy.shared_bytes, base, *check_uninitialised),
            barriers: Barriers::new(chip.sm.barriers_per_cta, chip.sm.warp_lanes),
            cluster: launch
                .clusters
                .then(|| Box::new(Membership::new(shape, number, occupancy.warps_per_cta))),
            live_warps: occupancy.warps_per_cta,
            task: None,
        }
    }

    /// Makes it CTA `index` of a task.
    pub fn of_task(self, task: Arc<Task>, index: u32) -> Cta {
        Cta { id: [index, 0, 0], task: Some(task), ..self }
    }
}

/// What the functional machine does after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Continues with the same warp.
    Go,
    /// Switches to another warp: this one waits.
    Yield,
    /// First carries out what concerns other CTAs of the cluster ([`Effects::remote`]). An access is not finished.
    Remote,
}

/// What instructions act on besides a CTA.
pub struct Execution<'a> {
    pub launch: &'a Launch<'a>,
    pub memory: Global<'a>,
    pub effects: Box<Effects>,
    /// The clock that instructions can read, in cycles.
    pub clock: u64,
    /// A read of never-written memory by the last instruction: (lane, space, address, bytes).
    pub uninitialised: Option<(usize, Space, u64, u32)>,
}

/// Effects of instructions besides those on registers and memory.
#[derive(Debug, Default)]
pub struct Effects {
    /// What the kernel prints.
    pub output: Output,
    /// Lock bits, if the kernel uses them.
    pub lock_units: LockUnits,
    /// What looks wrong.
    pub notes: Notes,
    /// What the last instruction does to other CTAs of the cluster.
    pub remote: Vec<Remote>,
    /// Lines that a coherent L1 holds newer than memory: `printf` reads its arguments through them.
    pub fresh: Vec<(LineAddress, Vec<u8>)>,
}

impl Execution<'_> {
    /// What a warp of the CTA can reach.
    #[inline]
    pub fn reach<'b>(&'b mut self, cta: &'b mut Cta) -> Reach<'b> {
        Reach {
            kernel: self.launch.kernel,
            memory: self.memory.reborrow(),
            shared: &mut cta.shared,
            cta: cta.number,
            cluster: cta.cluster.as_deref(),
            lock_unit: self.effects.lock_units.of_mut(cta.sm),
            notes: &mut self.effects.notes,
            textures: self.launch.textures,
            constants: self.launch.constants,
            params: cta.task.as_ref().map_or(self.launch.params, |task| &task.params),
            uninitialised: None,
        }
    }

    /// Executes the next instruction of warp `at`, which has a path that can run: `path`. A memory access needs
    /// `scratch`, and [`Global::Now`]; a machine that begins and finishes accesses itself gives none.
    #[inline]
    pub fn step<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warps: &mut [Warp<N>],
        at: usize,
        path: Group,
        scratch: Option<&mut WarpAccess<N>>,
    ) -> Result<Next, Bad> {
        let kernel = self.launch.kernel;
        let warp = &mut warps[at];
        let inst = &kernel.code[path.pc.index()];
        let activation = warp.control.activation();
        let mut registers = warp.registers(&activation);
        let mask = match inst.guard {
            Guard::Always => path.mask,
            Guard::If(pred) => path.mask & LaneMask(registers.preds[pred.index()]),
            Guard::Unless(pred) => path.mask & !LaneMask(registers.preds[pred.index()]),
        };
        if !is_elsewhere(inst.op) && lanes::execute(inst, &mut registers, &kernel.imms, mask) {
            warp.control.advance();
            return Ok(Next::Go);
        }
        if mask.is_empty() {
            warp.control.advance();
            return Ok(Next::Go);
        }
        match inst.op {
            Op::Ld { .. }
            | Op::St(_)
            | Op::Atom(..)
            | Op::LdLock(_)
            | Op::StUnlock(_)
            | Op::CpAsync(_)
            | Op::LdMatrix(_)
            | Op::StMatrix(_)
            | Op::Tex(_)
            | Op::SurfaceLd(_)
            | Op::SurfaceSt(_)
            | Op::SurfaceRed(..) => {
                let access = scratch.expect("whoever sends accesses does not execute them");
                access.restart(path.pc, activation, mask);
                let mut reach = self.reach(cta);
                access.begin(&mut reach, warp, inst)?;
                if reach.uninitialised.is_some() {
                    self.uninitialised = reach.uninitialised;
                }
                if !access.remote.is_empty() {
                    self.effects.remote.push(Remote::Access);
                    return Ok(Next::Remote);
                }
                access.finish(kernel, warp, &mut cta.shared, inst);
                if let Some(mut races) = self.launch.races() {
                    races.access(kernel, cta, warp, access);
                    races.arrived(kernel, cta, warp, access);
                }
            }
            Op::Stack(op) => self.stack(warp, &activation, (inst, op), mask)?,
            Op::Special(special) => self.special(cta, warp, &activation, inst, special, mask),
            // Global addresses are generic ones already.
            Op::ToGeneric(Space::Global, ty) | Op::FromGeneric(Space::Global, ty) => {
                lanes::execute(&Inst { op: Op::Mov(ty), ..*inst }, &mut registers, &kernel.imms, mask);
            }
            Op::ToGeneric(space, ty) => {
                let base = kernel.windows.base(space);
                map_address(&mut registers, inst, &kernel.imms, ty.is_wide(), mask, |a| a.wrapping_add(base));
            }
            Op::FromGeneric(space, ty) => {
                let base = kernel.windows.base(space);
                map_address(&mut registers, inst, &kernel.imms, ty.is_wide(), mask, |a| a.wrapping_sub(base));
            }
            Op::Mapa(generic, ty) => map_to_rank(kernel, &mut registers, inst, (generic, ty), mask)?,
            Op::CtaRank(generic, ty) => {
                let own = cta.cluster.as_ref().map_or(0, |cluster| cluster.rank);
                let windows = kernel.windows;
                let addresses = read_address(&registers, inst.src[0], &kernel.imms, ty.is_wide());
                let base = if generic { 0 } else { windows.shared };
                let rank = |a: u64| windows.cluster_of(a.wrapping_add(base)).map_or(own, |(rank, _)| rank);
                registers.write32(inst.dst, &addresses.map(rank), mask);
            }
            Op::IsSpace(space, ty) => {
                let addresses = read_address(&registers, inst.src[0], &kernel.imms, ty.is_wide());
                let own = cta.cluster.as_ref().map(|cluster| cluster.rank);
                let inside = |&lane: &usize| {
                    let (windows, at) = (kernel.windows, addresses[lane]);
                    let in_rank = own.and_then(|_| windows.cluster_of(at)).map(|(rank, _)| rank);
                    match space {
                        Space::Cluster => in_rank.is_some() || windows.space_of(at) == Space::Shared,
                        Space::Shared if in_rank.is_some() => in_rank == own,
                        space => in_rank.is_none() && windows.space_of(at) == space,
                    }
                };
                let found = mask.lanes().filter(inside).collect::<LaneMask>();
                registers.write_pred(inst.dst, found.0, mask);
            }
            Op::Fence(_, scope) => {
                if let Some(mut races) = self.launch.races() {
                    races.fence(cta, warp.id, scope);
                }
            }
            Op::Prefetch
            | Op::CpAsyncCommit
            | Op::CpAsyncWait
            | Op::BulkCommit
            | Op::BulkWait(_)
            | Op::WgmmaCommit
            | Op::WgmmaWait
            | Op::Ssy
            | Op::Nop => {}
            Op::Bulk(bulk) => {
                self.begin_bulk(cta, warp, &activation, (inst, bulk), mask)?;
                warp.control.advance();
                return Ok(Next::Remote);
            }
            Op::StAsync(..) | Op::RedAsync(..) => {
                self.send_bytes(cta, warp, &activation, inst, mask)?;
                warp.control.advance();
                return Ok(Next::Remote);
            }
            Op::Mbarrier(..) => {
                self.mbarrier(cta, warp, &activation, path.pc, mask)?;
                if !self.effects.remote.is_empty() {
                    warp.control.advance();
                    return Ok(Next::Remote);
                }
            }
            Op::Vote(_)
            | Op::Shfl(_)
            | Op::MatchAny(_)
            | Op::MatchAll(_)
            | Op::Redux(..)
            | Op::Elect
            | Op::BarWarp => {
                return self.communicate(cta, warp, &activation, inst, path, mask);
            }
            Op::Mma(mma) => matrix::multiply(mma, inst, &mut registers, &kernel.vectors, mask)?,
            Op::Wgmma(wgmma) => {
                let operands = (inst, kernel.vectors.as_slice(), kernel.imms.as_slice());
                let warps = self.launch.occupancy.warps_per_cta;
                let place = matrix::wgmma::Place { warp: warp.id, warps, shared: &cta.shared };
                let registers = &mut warp.registers(&activation);
                matrix::wgmma::multiply(wgmma, operands, registers, place, mask)?;
            }
            Op::MovMatrix => matrix::move_transposed(inst, &mut registers, mask)?,
            Op::TexQuery(query, of_sampler) => {
                let handles = registers.read64(inst.src[0], &kernel.imms);
                let mut answers = [0; N];
                for lane in mask.lanes() {
                    let answer = self.launch.textures.query(&self.memory, query, of_sampler, handles[lane]);
                    answers[lane] = answer.map_err(|error| Bad { lane, kind: error.into() })?;
                }
                registers.write32(inst.dst, &answers, mask);
            }
            Op::ActiveMask | Op::WaveBallot | Op::WaveActive | Op::WaveShfl(_) => {
                vote::execute(inst, &mut registers, &kernel.imms, mask);
            }
            Op::Bar(_) => return self.barrier(cta, warps, at, path, mask),
            Op::ClusterBar(mode) => return self.cluster_barrier(cta, warps, at, (path, mask), mode),
            Op::Nanosleep | Op::Yield => {
                warp.control.advance();
                return Ok(Next::Yield);
            }
            Op::Bra => {
                branch(&mut warp.control, inst, path, mask);
                return Ok(Next::Go);
            }
            Op::Brx => {
                indexed_branch(kernel, warp, &activation, inst, path, mask)?;
                return Ok(Next::Go);
            }
            Op::Call => {
                self.call(warp, &activation, inst, path, mask)?;
                return Ok(Next::Go);
            }
            Op::Ret if activation.caller.is_some() => {
                let caller = activation.caller.expect("the guard says so");
                for copy in &kernel.calls[caller.site as usize].returns {
                    let (from, to) = (activation.frame + copy.callee, caller.frame + copy.caller);
                    copy_local(warp, from, to, copy.bytes, mask);
                }
                warp.leave_frame(mask, activation.frame);
                warp.control.ret(mask);
                return Ok(Next::Go);
            }
            Op::Ret | Op::Exit => {
                warp.control.exit(mask);
                warp.live &= !mask;
                let (id, live) = (warp.id, warp.live);
                cta.live_warps -= live.is_empty() as u32;
                if let Some(mut races) = self.launch.races() {
                    races.ended(cta, id, cta.live_warps == 0);
                }
                for release in cta.barriers.lanes_ended(id, live, cta.live_warps) {
                    release_warps(self.launch, cta, warps, &release);
                }
                return Ok(self.tell_cluster(cta, warps));
            }
            Op::Trap => return Err(Bad { lane: mask.lowest(), kind: FaultKind::Trap }),
            Op::Printf => self.print(cta, warp, &activation, inst, mask)?,
            Op::AssertFail => return Err(self.assertion(cta, warp, &activation, inst, mask)),
            op => unreachable!("lane arithmetic refused {op:?}"),
        }
        warps[at].control.advance();
        Ok(Next::Go)
    }

    /// Votes, shuffles and the like. Independent threads wait until all named lanes have arrived.
    fn communicate<const N: usize>(
        &mut self,
        cta: &Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        inst: &Inst,
        path: Group,
        mask: LaneMask,
    ) -> Result<Next, Bad> {
        let kernel = self.launch.kernel;
        let independent = matches!(warp.control, Control::Independent(_));
        let live = warp.live;
        let registers = warp.registers(activation);
        let mut teams = match vote::member_operand(inst) {
            Some(operand) => vote::teams(&registers, operand, mask).map_err(bad_mask)?,
            None => smallvec![Team { lanes: mask, members: mask }],
        };
        if independent && vote::member_operand(inst).is_some() {
            if mask != path.mask {
                split_off(warp, path, mask);
                return Ok(Next::Go);
            }
            let waits = |team: &Team| !(team.members & live & !team.lanes).is_empty();
            if teams.iter().any(waits) {
                let anywhere = inst.op == Op::BarWarp;
                let wait = |team: &Team| (team.lanes, Wait::Lanes { members: team.members, anywhere });
                let waiting: SmallVec<[_; 1]> = teams.iter().filter(|team| waits(team)).map(wait).collect();
                warp.control.wait_apart(&waiting);
                teams.retain(|team| !waits(team));
            }
            if teams.is_empty() {
                return Ok(Next::Go);
            }
        }
        for team in teams {
            if let Some(mut races) = self.launch.races() {
                races.lanes_meet(cta, warp, team.lanes);
            }
            if inst.op != Op::BarWarp {
                vote::execute(inst, &mut warp.registers(activation), &kernel.imms, team.lanes);
            }
        }
        warp.control.advance();
        Ok(Next::Go)
    }

    fn barrier<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warps: &mut [Warp<N>],
        at: usize,
        path: Group,
        mask: LaneMask,
    ) -> Result<Next, Bad> {
        let kernel = self.launch.kernel;
        let warp = &mut warps[at];
        let independent = matches!(warp.control, Control::Independent(_));
        if independent && mask != path.mask {
            split_off(warp, path, mask);
            return Ok(Next::Go);
        }
        let inst = &kernel.code[path.pc.index()];
        let activation = warp.control.activation();
        let registers = warp.registers(&activation);
        let lane = mask.lowest();
        let id = registers.read32(inst.src[0])[lane];
        let threads = match inst.src[1] {
            Operand::None => None,
            operand => Some(registers.read32(operand)[lane]),
        };
        let votes = match inst.src[2] {
            Operand::None => LaneMask::NONE,
            operand => LaneMask(registers.read_pred(operand)),
        };
        let waits = inst.op != Op::Bar(BarMode::Arrive);
        // On a SIMT stack the barrier counts the warp as a whole, whoever of it comes.
        let warp_lanes = if independent { warp.live } else { mask };
        let arrival = Arrival { id, threads, waits, votes, path: Waiter { warp: warp.id, mask }, warp_lanes };
        if waits {
            warp.control.wait(Wait::Barrier);
        } else {
            warp.control.advance();
        }
        if let Some(mut races) = self.launch.races() {
            races.arrive(cta, warps[at].id, id);
        }
        let release = cta
            .barriers
            .arrive(arrival, cta.live_warps)
            .map_err(|misuse| Bad { lane, kind: FaultKind::Barrier(misuse) })?;
        if let Some(release) = release {
            release_warps(self.launch, cta, warps, &release);
        }
        Ok(Next::Go)
    }

    fn mbarrier<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        pc: Pc,
        mask: LaneMask,
    ) -> Result<(), Bad> {
        let kernel = self.launch.kernel;
        let inst = &kernel.code[pc.index()];
        let Op::Mbarrier(op, wide) = inst.op else { unreachable!("called for mbarriers") };
        let mut results = [0u64; N];
        if op == MbarrierOp::PendingCount {
            let states = warp.registers(activation).read64(inst.src[0], &kernel.imms);
            for lane in mask.lanes() {
                results[lane] = mbarrier::perform(op, 0, states[lane]).map_or(0, |(_, count)| count);
            }
        } else {
            let objects = Addresses::read(kernel, warp, activation, inst, wide, mask);
            let registers = warp.registers(activation);
            let values: [u64; N] = match (op, inst.src[2]) {
                (_, Operand::None) => [1; N],
                (MbarrierOp::TestWait, operand) => registers.read64(operand, &kernel.imms),
                (_, operand) => registers.read32(operand).map(|v| v as u64),
            };
            let shared_window = kernel.windows.shared;
            for lane in mask.lanes() {
                // The address may be generic or shared: the object itself is always in shared memory.
                let address = objects.at(lane);
                let rank = cta.cluster.as_ref().map(|cluster| (cluster.rank, cluster.size));
                let of_cluster = rank.and_then(|_| kernel.windows.cluster_of(address));
                if let (Some((rank, address)), Some((own, size))) = (of_cluster, rank)
                    && rank != own
                {
                    let value = values[lane];
                    check_remote_mbarrier(inst, op, (rank, size), address)
                        .map_err(|kind| Bad { lane, kind })?;
                    self.effects.remote.push(Remote::Mbarrier { rank, address, op, value, lane });
                    continue;
                }
                let address = of_cluster.map_or(address, |(_, inside)| inside);
                let address = if kernel.windows.space_of(address) == Space::Shared {
                    address - shared_window
                } else {
                    address
                };
                results[lane] = self.reach(cta).update_shared64(lane, address, |word| {
                    mbarrier::perform(op, word, values[lane])
                        .map_err(|problem| FaultKind::Mbarrier { address, problem })
                })?;
                if let Some(mut races) = self.launch.races() {
                    races.mbarrier(cta, warp, (op, pc), (lane, address, results[lane]));
                }
            }
        }
        let mut registers = warp.registers(activation);
        match op {
            MbarrierOp::TestWait | MbarrierOp::TestWaitParity => {
                let done = mask.lanes().filter(|&l| results[l] == 1).collect::<LaneMask>();
                registers.write_pred(inst.dst, done.0, mask);
            }
            MbarrierOp::PendingCount => registers.write32(inst.dst, &results.map(|r| r as u32), mask),
            _ => registers.write64(inst.dst, &results, mask),
        }
        Ok(())
    }
}

/// Frequent operations that [`lanes::execute`] refuses. It takes some 60 host instructions to do so.
fn is_elsewhere(op: Op) -> bool {
    matches!(
        op,
        Op::Ld { .. } | Op::St(_) | Op::Atom(..) | Op::Bra | Op::Bar(_) | Op::Exit | Op::Ret | Op::Special(_)
    )
}

fn bad_mask(bad: BadMask) -> Bad {
    let number = |lane: usize| (lane % PTX_WARP) as u32;
    match bad {
        BadMask::Outsider { lane, members } => {
            Bad { lane, kind: FaultKind::NotAMember { lane: number(lane), members } }
        }
        BadMask::Differs { lane, members, other, others } => {
            let kind = FaultKind::MasksDiffer { lane: number(lane), members, other: number(other), others };
            Bad { lane, kind }
        }
    }
}

/// Splits off the lanes that the guard excludes from an instruction that may wait.
fn split_off<const N: usize>(warp: &mut Warp<N>, path: Group, mask: LaneMask) {
    let next = Pc(path.pc.0 + 1);
    let stay = Group { pc: path.pc, mask };
    warp.control.branch(&[stay, Group { pc: next, mask: path.mask & !mask }], next);
}

/// Lanes of the current path take a branch.
pub fn branch(control: &mut Control, inst: &Inst, path: Group, mask: LaneMask) {
    let (Operand::Imm(target), Operand::Imm(reconverge)) = (inst.src[0], inst.src[1]) else {
        unreachable!("a linked branch has a target and a reconvergence point")
    };
    let taken = Group { pc: Pc(target), mask };
    if mask == path.mask {
        return control.branch(&[taken], Pc(reconverge));
    }
    let stay = Group { pc: Pc(path.pc.0 + 1), mask: path.mask & !mask };
    control.branch(&[taken, stay], Pc(reconverge));
}

fn indexed_branch<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    inst: &Inst,
    path: Group,
    mask: LaneMask,
) -> Result<(), Bad> {
    let (Operand::Imm(table), Operand::Imm(reconverge)) = (inst.src[1], inst.src[2]) else {
        unreachable!("a linked branch has a table and a reconvergence point")
    };
    let table = &kernel.tables[table as usize];
    let indices = warp.registers(activation).read32(inst.src[0]);
    let mut groups: SmallVec<[Group; 8]> = SmallVec::new();
    let mut add = |pc: Pc, lanes: LaneMask| match groups.iter_mut().find(|g| g.pc == pc) {
        Some(group) => group.mask |= lanes,
        None => groups.push(Group { pc, mask: lanes }),
    };
    for lane in mask.lanes() {
        let index = indices[lane];
        let kind = FaultKind::BadBranchIndex { index, entries: table.len() };
        add(*table.get(index as usize).ok_or(Bad { lane, kind })?, LaneMask::of(lane));
    }
    if mask != path.mask {
        add(Pc(path.pc.0 + 1), path.mask & !mask);
    }
    warp.control.branch(&groups, Pc(reconverge));
    Ok(())
}

/// Releases the paths of a finished barrier phase, with the result of the reduction where they asked for one.
fn release_warps<const N: usize>(launch: &Launch<'_>, cta: &Cta, warps: &mut [Warp<N>], release: &Release) {
    let kernel = launch.kernel;
    if let Some(mut races) = launch.races() {
        races.release(cta, warps, release);
    }
    for waiter in &release.waiters {
        let warp = &mut warps[waiter.warp as usize];
        for (group, activation) in warp.control.barrier_paths(waiter.mask) {
            let inst = &kernel.code[group.pc.index()];
            let mut registers = warp.registers(&activation);
            let all_lanes = |yes: bool| if yes { u64::MAX } else { 0 };
            match inst.op {
                Op::Bar(BarMode::RedPopc) => registers.write32(inst.dst, &[release.popc; N], group.mask),
                Op::Bar(BarMode::RedAnd) => {
                    registers.write_pred(inst.dst, all_lanes(release.all), group.mask)
                }
                Op::Bar(BarMode::RedOr) => {
                    registers.write_pred(inst.dst, all_lanes(release.popc > 0), group.mask);
                }
                _ => debug_assert_eq!(inst.dst, Dst::None),
            }
        }
        warp.control.release_barrier(waiter.mask);
    }
}

pub(super) fn read_address<const N: usize>(
    registers: &Registers<'_, N>,
    operand: Operand,
    imms: &[u64],
    wide: bool,
) -> [u64; N] {
    if wide { registers.read64(operand, imms) } else { registers.read32(operand).map(|a| a as u64) }
}

fn map_address<const N: usize>(
    registers: &mut Registers<'_, N>,
    inst: &Inst,
    imms: &[u64],
    wide: bool,
    mask: LaneMask,
    f: impl Fn(u64) -> u64,
) {
    let addresses = read_address(registers, inst.src[0], imms, wide).map(f);
    if wide {
        registers.write64(inst.dst, &addresses, mask);
    } else {
        registers.write32(inst.dst, &addresses.map(|a| a as u32), mask);
    }
}
