//! The short way for the most frequent access of kernels with tiles: all lanes of a warp load a word of shared memory.
//!
//! By way of [`WarpAccess::begin`] such a load costs some 690 host instructions, because it could be so much else. Here
//! addresses stay 32 bits wide, one comparison finds all lanes inside, and words go straight to where the load keeps
//! them: some 310. What is out of the ordinary is refused, and goes the long way.

use multiversion::multiversion;
use warploom_isa::{Access, Dst, Inst, Op, Operand, Reg, Space};

use crate::lanes::{Registers, all_lanes};
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::address::Addresses;
use crate::memory::bytes::{Piece, gather_inline};
use crate::memory::shared::Shared;
use crate::warp::Warp;

/// A load of one word of shared memory by each lane.
#[derive(Clone, Copy, Debug)]
pub struct SharedWord {
    base: Reg,
    /// The base has two words.
    wide: bool,
    offset: u32,
}

impl SharedWord {
    /// `None` if the instruction is something else.
    pub fn of(inst: &Inst) -> Option<SharedWord> {
        let (Op::Ld { access, wide: false }, Operand::Reg(base), Dst::Reg(_)) =
            (inst.op, inst.src[0], inst.dst)
        else {
            return None;
        };
        let Access { space: Space::Shared, ty, count: 1, wide_address: wide, .. } = access else {
            return None;
        };
        let offset = match inst.src[1] {
            Operand::Imm(offset) => offset,
            _ => 0,
        };
        (ty.bytes() == 4).then_some(SharedWord { base, wide, offset })
    }
}

impl<const N: usize> WarpAccess<N> {
    /// As [`WarpAccess::begin`] for a load that is a `word`. Returns false, and does nothing, if it has to go the long
    /// way: not all lanes take part, one is outside or misaligned, or somebody asks which bytes were written.
    #[inline]
    pub fn begin_word(&mut self, word: SharedWord, warp: &mut Warp<N>, shared: &Shared) -> bool {
        self.mask == all_lanes::<N>()
            && shared.written.is_none()
            && begin(self, word, &warp.registers(&self.activation), &shared.bytes)
    }
}

#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
fn begin<const N: usize>(
    this: &mut WarpAccess<N>,
    SharedWord { base, wide, offset }: SharedWord,
    registers: &Registers<'_, N>,
    shared: &[u8],
) -> bool {
    let mut addresses = registers.words[base.index()];
    if wide {
        // With bases below 2 GB, 32 bits tell whether a lane is inside.
        let mut above = 0;
        for (low, high) in addresses.iter().zip(&registers.words[base.index() + 1]) {
            above |= low >> 31 | high;
        }
        if above != 0 {
            return false;
        }
    }
    let (mut bits, mut most) = (0, 0);
    for address in &mut addresses {
        *address = address.wrapping_add(offset);
        bits |= *address;
        most = most.max(*address);
    }
    if bits & 3 != 0 || u64::from(most) + 4 > shared.len().min(1 << 31) as u64 {
        return false;
    }
    let mask = this.mask;
    (this.kind, this.bytes, this.lanes.shared) = (MemoryOp::Load, 4, mask);
    this.addresses = Addresses::of_narrow(addresses, mask);
    let piece = Piece { space: Space::Shared, at: 0, base: 0, mask, addresses: &this.addresses, bytes: 4 };
    gather_inline(shared, &piece, this.rows.data_mut(4));
    true
}
