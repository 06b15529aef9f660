//! What warps read while they wait.

use warploom_isa::{Dst, Inst, Op, Order, Pc};

use crate::kit::lane_mask::LaneMask;
use crate::memory::access::WarpAccess;

/// What lanes of a warp last read with one instruction of a loop.
#[derive(Clone, Debug)]
pub struct Polled<const N: usize> {
    pub pc: Pc,
    /// Lanes that ever executed it.
    pub mask: LaneMask,
    /// Of those, the ones that read shared memory; the others read global memory.
    pub shared: LaneMask,
    /// By lane, as the instruction gives the address.
    pub addresses: [u64; N],
    pub values: [u64; N],
}

impl<const N: usize> Polled<N> {
    /// Whether a loop may wait for what the instruction reads, wherever it looks at the value: a load that sees what
    /// others write, or an atomic with a result.
    pub fn may_wait(inst: &Inst) -> bool {
        match inst.op {
            Op::Ld { access, .. } => access.order != Order::Weak,
            Op::Atom(..) => inst.dst != Dst::None,
            _ => false,
        }
    }

    /// A warp has polled: the values are in.
    pub fn note(all: &mut Vec<Polled<N>>, access: &WarpAccess<N>) {
        let at = all.iter().position(|p| p.pc == access.pc).unwrap_or_else(|| {
            let (addresses, values) = ([0; N], [0; N]);
            let (mask, shared) = (LaneMask::NONE, LaneMask::NONE);
            all.push(Polled { pc: access.pc, mask, shared, addresses, values });
            all.len() - 1
        });
        let polled = &mut all[at];
        polled.mask |= access.mask;
        polled.shared = polled.shared & !access.mask | access.mask & !access.lanes.global;
        for lane in access.mask.lanes() {
            polled.addresses[lane] = access.addresses.at(lane);
            polled.values[lane] = access.found(lane);
        }
    }
}
