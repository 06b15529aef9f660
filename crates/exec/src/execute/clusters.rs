//! What an instruction does to the other CTAs of a cluster: its barrier, bytes and arrivals that are sent, addresses
//! and special registers.

use warploom_isa::{ClusterBar, MAX_CLUSTER_CTAS, Ty};

use super::*;

impl Execution<'_> {
    pub(super) fn cluster_barrier<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warps: &mut [Warp<N>],
        at: usize,
        (path, mask): (Group, LaneMask),
        mode: ClusterBar,
    ) -> Result<Next, Bad> {
        let warp = &mut warps[at];
        if matches!(warp.control, Control::Independent(_)) && mask != path.mask {
            split_off(warp, path, mask);
            return Ok(Next::Go);
        }
        let barrier = &mut cta.cluster.as_mut().expect("a kernel that uses clusters has them").barrier;
        let arrival = Waiter { warp: warp.id, mask };
        let misuse = |(lane, misuse)| Bad { lane, kind: FaultKind::ClusterBarrier(misuse) };
        if mode == ClusterBar::Wait {
            if barrier.wait(arrival).map_err(misuse)? {
                warp.control.wait(Wait::Barrier);
            } else {
                warp.control.advance();
            }
            return Ok(Next::Go);
        }
        barrier.arrive(arrival).map_err(misuse)?;
        warp.control.advance();
        Ok(self.tell_cluster(cta, warps))
    }

    /// After threads have arrived at the barrier of the cluster, or ended: the cluster is told once all have arrived,
    /// and once all have ended.
    pub(super) fn tell_cluster<const N: usize>(&mut self, cta: &mut Cta, warps: &[Warp<N>]) -> Next {
        let Some(member) = &mut cta.cluster else { return Next::Go };
        if !member.barrier.completes(warps.iter().map(|warp| warp.live)) && cta.live_warps > 0 {
            return Next::Go;
        }
        self.effects.remote.push(Remote::Arrived);
        Next::Remote
    }

    /// `st.async` and `red.async`: the bytes leave, and arrive later.
    pub(super) fn send_bytes<const N: usize>(
        &mut self,
        cta: &Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        inst: &Inst,
        mask: LaneMask,
    ) -> Result<(), Bad> {
        let kernel = self.launch.kernel;
        let (ty, op) = match inst.op {
            Op::StAsync(ty, _) => (ty, None),
            Op::RedAsync(op, ty) => (ty, Some((op, ty))),
            op => unreachable!("{op:?} sends no bytes"),
        };
        let registers = warp.registers(activation);
        let list = match inst.src[1] {
            Operand::Vec(id) => kernel.vectors[id.index()].as_slice(),
            _ => &inst.src[1..2],
        };
        let values: SmallVec<[[u64; N]; 4]> =
            list.iter().map(|&value| read_address(&registers, value, &kernel.imms, ty.is_wide())).collect();
        let [to, barriers] = [0, 2].map(|at| registers.read32(inst.src[at]));
        let member = cta.cluster.as_ref().expect("a kernel that uses clusters has them");
        let windows = kernel.windows;
        let place = |address: u32| {
            let generic = u64::from(address) + windows.shared;
            windows.cluster_of(generic).unwrap_or((member.rank, u64::from(address)))
        };
        for lane in mask.lanes() {
            let ((rank, address), (of, mbarrier)) = (place(to[lane]), place(barriers[lane]));
            let size = member.size;
            if rank >= size {
                let what = "store to".to_string();
                return Err(Bad { lane, kind: FaultKind::NoSuchRank { what, rank, size } });
            }
            if rank != of {
                let problem = "it is not in the shared memory to which the bytes go";
                return Err(Bad { lane, kind: FaultKind::Mbarrier { address: mbarrier, problem } });
            }
            let bytes = |value: &[u64; N]| value[lane].to_le_bytes().into_iter().take(ty.bytes() as usize);
            let data = values.iter().flat_map(bytes).collect();
            let bytes = AsyncBytes { address, data, op, mbarrier };
            self.effects.remote.push(Remote::Bytes { rank, bytes, lane });
        }
        Ok(())
    }
}

/// What cannot be done to an mbarrier of another CTA: all that has a result.
pub(super) fn check_remote_mbarrier(
    inst: &Inst,
    op: MbarrierOp,
    (rank, size): (u32, u32),
    address: u64,
) -> Result<(), FaultKind> {
    use MbarrierOp::{Arrive, ArriveDrop, ArriveExpectTx, CompleteTx, ExpectTx};
    if rank >= size {
        return Err(FaultKind::NoSuchRank { what: "mbarrier in".to_string(), rank, size });
    }
    if !matches!(op, Arrive | ArriveDrop | ArriveExpectTx | CompleteTx | ExpectTx) || inst.dst != Dst::None {
        let problem = "it is of another CTA, which can only arrive at it and gets no state";
        return Err(FaultKind::Mbarrier { address, problem });
    }
    Ok(())
}

/// The phase of the cluster's barrier ends for a CTA: warps that waited go on.
pub fn end_cluster_phase<const N: usize>(cta: &mut Cta, warps: &mut [Warp<N>]) -> SmallVec<[Waiter; 8]> {
    let Some(member) = &mut cta.cluster else { return SmallVec::new() };
    let waiters = member.barrier.end_phase();
    for waiter in &waiters {
        warps[waiter.warp as usize].control.release_barrier(waiter.mask);
    }
    waiters
}

/// The special registers of clusters.
pub(super) fn cluster_special(shape: &Shape, cta: [u32; 3], special: Special) -> u32 {
    let (cluster, inside) = shape.in_cluster(cta);
    let (clusters, [x, y, z]) = (shape.clusters(), shape.cluster.unwrap_or([1; 3]));
    match special {
        Special::ClusterIdX => cluster[0],
        Special::ClusterIdY => cluster[1],
        Special::ClusterIdZ => cluster[2],
        Special::NclusterIdX => clusters[0],
        Special::NclusterIdY => clusters[1],
        Special::NclusterIdZ => clusters[2],
        Special::ClusterCtaidX => inside[0],
        Special::ClusterCtaidY => inside[1],
        Special::ClusterCtaidZ => inside[2],
        Special::ClusterNctaidX => x,
        Special::ClusterNctaidY => y,
        Special::ClusterNctaidZ => z,
        Special::ClusterCtarank => inside[0] + x * (inside[1] + y * inside[2]),
        Special::ClusterNctarank => x * y * z,
        Special::ExplicitCluster => shape.cluster.is_some() as u32,
        special => unreachable!("{special:?} is handled before"),
    }
}

/// `mapa`: addresses of the own shared memory become those of the CTA of a rank.
pub(super) fn map_to_rank<const N: usize>(
    kernel: &Kernel,
    registers: &mut Registers<'_, N>,
    inst: &Inst,
    (generic, ty): (bool, Ty),
    mask: LaneMask,
) -> Result<(), Bad> {
    let windows = kernel.windows;
    let ranks = registers.read32(inst.src[1]);
    let base = if generic { 0 } else { windows.shared };
    let mut addresses = read_address(registers, inst.src[0], &kernel.imms, ty.is_wide());
    for lane in mask.lanes() {
        let (rank, size) = (ranks[lane], MAX_CLUSTER_CTAS);
        if rank >= size {
            let what = "mapa to".to_string();
            return Err(Bad { lane, kind: FaultKind::NoSuchRank { what, rank, size } });
        }
        let at = addresses[lane].wrapping_add(base);
        let inside = windows.cluster_of(at).map_or(at.wrapping_sub(windows.shared), |(_, inside)| inside);
        addresses[lane] = windows.in_cluster(rank, inside).wrapping_sub(base);
    }
    if ty.is_wide() {
        registers.write64(inst.dst, &addresses, mask);
    } else {
        registers.write32(inst.dst, &addresses.map(|a| a as u32), mask);
    }
    Ok(())
}
