//! Loads that lock and stores that unlock: a plain access to shared memory, and the lock unit beside it.

use warploom_isa::{Access, Inst, Space};

use crate::fault::{AccessKind, FaultKind};
use crate::kit::lane_mask::LaneMask;
use crate::locks::holders::WarpName;
use crate::locks::unit::{BitAccess, BitHolder};
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::address::Addresses;
use crate::memory::bytes::{differing_lanes, gather_flat};
use crate::memory::reach::{Bad, Reach, Touch};
use crate::memory::registers::read_data;
use crate::warp::Warp;

impl<const N: usize> WarpAccess<N> {
    /// Reads the words and takes their bits.
    pub(crate) fn begin_lock(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        access: Access,
    ) -> Result<(), Bad> {
        self.aim(reach.kernel, warp, inst, access);
        self.lanes.shared = self.mask;
        let bits = self.bit_access(reach, warp);
        let BitAccess { warp: who, pc, in_atomic, .. } = bits;
        let kind = if in_atomic { AccessKind::Atomic } else { AccessKind::Load };
        let (touch, at) = self.only_shared(reach, access, kind)?;
        let WarpAccess { activation, mask, rows, .. } = self;
        let mut taken = LaneMask::NONE;
        reach.each_space(warp, activation, touch, &at, *mask, |reach, warp, piece| {
            reach.gather(warp, piece, rows.data_mut(touch.bytes));
            let Some(unit) = &mut reach.lock_unit else { return };
            let word = |lane: usize| piece.addresses.at(lane) as u32;
            let got = unit.take(bits, piece.mask, word);
            if piece.mask != got && !in_atomic && reach.kernel.unverified.binary_search(&pc).is_ok() {
                // A warp that shares a bit takes it with all of its lanes, of which one gets it: that is not too late.
                let late = |lane: &usize| {
                    let with =
                        |h: BitHolder| h.taker.warp == who && h.taker.pc == pc && h.word == word(*lane);
                    !unit.holder(unit.bit(bits.base + word(*lane))).is_some_and(with)
                };
                let missed = (piece.mask & !got).lanes().filter(late);
                if let Some(lane) = missed.clone().next() {
                    let bit = unit.bit(bits.base + word(lane));
                    let late = (bits, lane as u32, bit, word(lane), missed.count() as u32);
                    reach.notes.locks.too_late(late, unit.holder(bit));
                }
            }
            taken |= got;
        })?;
        self.kind = MemoryOp::Lock { taken };
        Ok(())
    }

    /// Writes the words and frees their bits.
    pub(crate) fn begin_unlock(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        access: Access,
    ) -> Result<(), Bad> {
        self.aim(reach.kernel, warp, inst, access);
        self.lanes.shared = self.mask;
        let bits = self.bit_access(reach, warp);
        let kind = if bits.in_atomic { AccessKind::Atomic } else { AccessKind::Store };
        let (touch, at) = self.only_shared(reach, access, kind)?;
        let WarpAccess { activation, mask, rows, .. } = self;
        let of = reach.kernel.atomic_at(self.pc).map(|atomic| (atomic.op, access.ty));
        read_data(reach.kernel, warp, activation, (inst, access), rows.data_mut(touch.bytes));
        let mut changed = LaneMask::NONE;
        reach.each_space(warp, activation, touch, &at, *mask, |reach, warp, piece| {
            if of.is_some() {
                gather_flat(&reach.shared.bytes, piece, rows.found_mut(touch.bytes));
            }
            let rows = rows.data(touch.bytes);
            changed |= differing_lanes(&reach.shared.bytes, piece, rows);
            reach.scatter(warp, piece, rows);
            if let Some(unit) = &mut reach.lock_unit {
                unit.release(bits, piece.mask, |lane| piece.addresses.at(lane) as u32);
            }
        })?;
        self.kind = MemoryOp::Unlock { changed, of };
        Ok(())
    }

    /// The access as the lock unit sees it.
    fn bit_access(&self, reach: &Reach<'_>, warp: &Warp<N>) -> BitAccess {
        let in_atomic = reach.kernel.atomic_at(self.pc).is_some();
        let warp = WarpName { cta: reach.cta, warp: warp.id };
        BitAccess { warp, pc: self.pc, base: reach.shared.base, in_atomic }
    }

    /// What the lanes do, and where in shared memory, if they all do it there. A generic address may also be one of the
    /// space itself: below its window there is nothing else.
    fn only_shared(
        &self,
        reach: &Reach<'_>,
        access: Access,
        kind: AccessKind,
    ) -> Result<(Touch, Addresses<N>), Bad> {
        let WarpAccess { addresses, mask, bytes, .. } = self;
        let (mask, bytes) = (*mask, *bytes);
        let touch = Touch { space: Space::Shared, bytes, kind };
        if access.space == Space::Shared {
            return Ok((touch, *addresses));
        }
        let windows = reach.kernel.windows;
        let shared = |address: u64| {
            let own = address < windows.shared;
            if own {
                Some(address)
            } else {
                address.checked_sub(windows.shared).filter(|&a| a < windows.bytes)
            }
        };
        if let Some(lane) = mask.lanes().find(|&lane| shared(addresses.at(lane)).is_none()) {
            let address = addresses.at(lane);
            let space = windows.space_of(address);
            return Err(Bad { lane, kind: FaultKind::NoLockBit { access: kind, space, address, bytes } });
        }
        let at = std::array::from_fn(|lane| shared(addresses.at(lane)).unwrap_or(0));
        Ok((touch, Addresses::of(at, mask)))
    }
}
