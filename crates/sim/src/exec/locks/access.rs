//! Loads that lock and stores that unlock: a plain access to shared memory, and the lock unit beside it.

use warploom_isa::{Access, Op, Pc, Space};

use crate::exec::fault::{AccessKind, FaultKind};
use crate::exec::locks::holders::WarpName;
use crate::exec::locks::unit::{BitAccess, BitHolder};
use crate::exec::memory::access::{Bad, Issued, Reach, Touch, collect_rows, write_back};
use crate::exec::memory::address::{Addresses, addresses};
use crate::exec::memory::bytes::gather_flat;
use crate::exec::warp::Warp;
use crate::kit::bits::lanes as each;

impl Reach<'_> {
    /// Executes a load that locks.
    pub fn load_lock<const N: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Issued { warp, activation, inst, mask } = issued;
        let Op::LdLock(access) = inst.op else { unreachable!("called for loads that lock") };
        let at = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        let mut rows = [[0u32; N]; 2];
        let rows = &mut rows[..(access.bytes() as usize).div_ceil(4)];
        let taken = self.lock(Issued { warp, activation, inst, mask }, access, &at, rows)?;
        write_back(self.kernel, warp, activation, inst, mask, rows);
        warp.registers(activation).write_pred(inst.dst2, taken, mask);
        Ok(())
    }

    /// Executes a store that unlocks.
    pub fn store_unlock<const N: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Issued { warp, activation, inst, mask } = issued;
        let Op::StUnlock(access) = inst.op else { unreachable!("called for stores that unlock") };
        let at = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        let mut rows = [[0u32; N]; 2];
        collect_rows(self.kernel, warp, activation, inst, &mut rows);
        let rows = &rows[..(access.bytes() as usize).div_ceil(4)];
        self.unlock(Issued { warp, activation, inst, mask }, access, &at, rows).map(drop)
    }

    /// Reads the words and takes their bits. Returns the lanes that got theirs.
    pub(crate) fn lock<const N: usize>(
        &mut self,
        Issued { warp, activation, mask, .. }: Issued<'_, N>,
        access: Access,
        at: &Addresses<N>,
        rows: &mut [[u32; N]],
    ) -> Result<u64, Bad> {
        let pc = pc(warp);
        let in_atomic = self.kernel.atomic_at(pc).is_some();
        let kind = if in_atomic { AccessKind::Atomic } else { AccessKind::Load };
        let (touch, at) = self.only_shared(access, at, mask, kind)?;
        let who = WarpName { cta: self.cta, warp: warp.id };
        let mut taken = 0;
        self.each_space(warp, activation, touch, &at, mask, |reach, warp, piece| {
            reach.gather(warp, piece, rows);
            let bits = BitAccess { warp: who, pc, base: reach.shared.base, in_atomic };
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
                let missed = each(piece.mask & !got).filter(late);
                if let Some(lane) = missed.clone().next() {
                    let bit = unit.bit(bits.base + word(lane));
                    let late = (bits, lane as u32, bit, word(lane), missed.count() as u32);
                    reach.lock_notes.too_late(late, unit.holder(bit));
                }
            }
            taken |= got;
        })?;
        Ok(taken)
    }

    /// Writes the words and frees their bits. Returns the lanes that found another value than they wrote.
    pub(crate) fn unlock<const N: usize>(
        &mut self,
        Issued { warp, activation, mask, .. }: Issued<'_, N>,
        access: Access,
        at: &Addresses<N>,
        rows: &[[u32; N]],
    ) -> Result<u64, Bad> {
        let pc = pc(warp);
        let in_atomic = self.kernel.atomic_at(pc).is_some();
        let kind = if in_atomic { AccessKind::Atomic } else { AccessKind::Store };
        let (touch, at) = self.only_shared(access, at, mask, kind)?;
        let who = WarpName { cta: self.cta, warp: warp.id };
        let keep = if touch.bytes < 4 { (1u32 << (8 * touch.bytes)) - 1 } else { u32::MAX };
        let mut changed = 0;
        self.each_space(warp, activation, touch, &at, mask, |reach, warp, piece| {
            let mut before = [[0u32; N]; 2];
            gather_flat(&reach.shared.bytes, piece, &mut before[..rows.len()]);
            let differs = |lane: &usize| {
                rows.iter().zip(&before).any(|(new, old)| (new[*lane] ^ old[*lane]) & keep != 0)
            };
            changed |= each(piece.mask).filter(differs).fold(0, |lanes, lane| lanes | 1 << lane);
            reach.scatter(warp, piece, rows);
            let bits = BitAccess { warp: who, pc, base: reach.shared.base, in_atomic };
            if let Some(unit) = &mut reach.lock_unit {
                unit.release(bits, piece.mask, |lane| piece.addresses.at(lane) as u32);
            }
        })?;
        Ok(changed)
    }

    /// What the lanes do, and where in shared memory, if they all do it there. A generic address may also be one of the
    /// space itself: below its window there is nothing else.
    fn only_shared<const N: usize>(
        &self,
        access: Access,
        at: &Addresses<N>,
        mask: u64,
        kind: AccessKind,
    ) -> Result<(Touch, Addresses<N>), Bad> {
        let bytes = access.bytes();
        let touch = Touch { space: Space::Shared, bytes, kind };
        if access.space == Space::Shared {
            return Ok((touch, *at));
        }
        let windows = self.kernel.windows;
        let shared = |address: u64| {
            let own = address < windows.shared;
            if own {
                Some(address)
            } else {
                address.checked_sub(windows.shared).filter(|&a| a < windows.bytes)
            }
        };
        if let Some(lane) = each(mask).find(|&lane| shared(at.at(lane)).is_none()) {
            let address = at.at(lane);
            let space = windows.space_of(address);
            return Err(Bad { lane, kind: FaultKind::NoLockBit { access: kind, space, address, bytes } });
        }
        Ok((touch, Addresses::of(std::array::from_fn(|lane| shared(at.at(lane)).unwrap_or(0)), mask)))
    }
}

/// Where a warp is that issues.
fn pc<const N: usize>(warp: &Warp<N>) -> Pc {
    warp.control.current().map_or(Pc(0), |path| path.pc)
}
