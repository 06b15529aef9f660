//! Bulk copies: the operands of a thread become a job of the copy engine.

use warploom_isa::{Bulk, BulkWay};

use super::*;
use crate::bulk::map::{MAP_BYTES, TensorMap};
use crate::bulk::{Job, Request};

/// What the address of a tensor map must be a multiple of.
const MAP_ALIGN: u64 = 64;

impl Execution<'_> {
    /// Every lane asks for a copy of its own. Whoever runs the CTAs makes them.
    pub(super) fn begin_bulk<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        (inst, bulk): (&Inst, Bulk),
        mask: LaneMask,
    ) -> Result<(), Bad> {
        let kernel = self.launch.kernel;
        let registers = warp.registers(activation);
        let list = match inst.src[2] {
            Operand::Vec(id) => kernel.vectors[id.index()].as_slice(),
            _ => &inst.src[2..3],
        };
        let values: SmallVec<[[u32; N]; 6]> = list.iter().map(|&value| registers.read32(value)).collect();
        let (near, barriers) = (registers.read32(inst.src[0]), registers.read32(inst.src[3]));
        let far = registers.read64(inst.src[1], &kernel.imms);
        let windows = kernel.windows;
        let (own, size) = cta.cluster.as_ref().map_or((0, 1), |member| (member.rank, member.size));
        let place = |address: u32| {
            let generic = u64::from(address) + windows.shared;
            windows.cluster_of(generic).unwrap_or((own, u64::from(address)))
        };
        for lane in mask.lanes() {
            let bad = |kind| Bad { lane, kind };
            let misuse = |problem: &str| bad(FaultKind::Bulk(problem.to_string()));
            let (rank, shared) = place(near[lane]);
            let mut ranks = 1u32 << rank.min(31);
            if bulk.multicast {
                // The mask has 16 bits.
                ranks = values[values.len() - 1][lane] & 0xffff;
            }
            let last = 31u32.saturating_sub(ranks.leading_zeros()).max(rank);
            if last >= size {
                let what = "bulk copy to".to_string();
                return Err(bad(FaultKind::NoSuchRank { what, rank: last, size }));
            }
            let mut mbarrier = None;
            if inst.src[3] != Operand::None {
                let (of, address) = place(barriers[lane]);
                if of != rank {
                    return Err(misuse("its mbarrier is not in the shared memory to which the bytes go"));
                }
                mbarrier = Some(address as u32);
            }
            let mut from = shared as u32;
            if bulk.way == BulkWay::ToCluster {
                let (rank, inside) = place(far[lane] as u32);
                if rank != own {
                    return Err(misuse("the bytes must come from the shared memory of the thread's own CTA"));
                }
                from = inside as u32;
            } else if bulk.way == BulkWay::ToGlobal && rank != own {
                return Err(misuse("the bytes must come from the shared memory of the thread's own CTA"));
            }
            let mut request = Request {
                bulk,
                shared: shared as u32,
                from,
                bytes: 0,
                global: far[lane],
                coordinates: [0; 5],
                ranks,
                mbarrier,
                lane,
            };
            let map = match bulk.dims {
                0 => {
                    request.bytes = values[0][lane];
                    None
                }
                dims => {
                    for (to, value) in request.coordinates.iter_mut().zip(&values).take(dims.into()) {
                        *to = value[lane] as i32;
                    }
                    Some(self.tensor_map(cta, warp, activation, (lane, far[lane]))?)
                }
            };
            let shared_bytes = cta.shared.bytes.len() as u64;
            let job = Job::new(request, map, &self.memory, shared_bytes).map_err(bad)?;
            self.effects.remote.push(Remote::Bulk(Box::new(job)));
        }
        Ok(())
    }

    /// The tensor map at a generic address.
    fn tensor_map<const N: usize>(
        &mut self,
        cta: &mut Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        (lane, address): (usize, u64),
    ) -> Result<TensorMap, Bad> {
        let misuse = |problem: String| Bad { lane, kind: FaultKind::Bulk(problem) };
        if !address.is_multiple_of(MAP_ALIGN) {
            return Err(misuse(format!(
                "the tensor map at {address:#x} is not aligned to {MAP_ALIGN} bytes"
            )));
        }
        let mut bytes = [0; MAP_BYTES];
        let mut reach = self.reach(cta);
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = reach.generic_byte(warp, activation, lane, address.wrapping_add(at as u64))?;
        }
        TensorMap::decode(&bytes)
            .map_err(|problem| misuse(format!("the tensor map at {address:#x}: {problem}")))
    }
}
