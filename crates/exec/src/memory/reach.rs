//! What a warp can reach besides its registers, and the checks of every access: alignment, bounds, read-only memory.
//! Start at [`Reach::each_space`].

use warploom_isa::{AtomOp, Kernel, MAX_CLUSTER_CTAS, Space, Ty};

use crate::fault::{AccessKind, FaultKind};
use crate::kit::bits::BitSet;
use crate::kit::lane_mask::LaneMask;
use crate::locks::unit::LockUnit;
use crate::memory::address::Addresses;
use crate::memory::bytes::{
    Piece, gather_flat, gather_inline, gather_local, scatter_flat, scatter_local, update_flat, update_local,
};
use crate::memory::rows::Rows;
use crate::memory::shared::Shared;
use crate::memory::store::{Global, NO_ALLOCATION};
use crate::notes::Notes;
use crate::outside::Who;
use crate::sync::cluster::Membership;
use crate::texture::Textures;
use crate::warp::Warp;
use crate::warp::control::Activation;

/// A lane did something that ends the launch.
#[derive(Debug)]
pub struct Bad {
    pub lane: usize,
    pub kind: FaultKind,
}

/// What a warp can reach besides its own registers and local memory.
pub struct Reach<'a> {
    pub kernel: &'a Kernel,
    pub memory: Global<'a>,
    pub shared: &'a mut Shared,
    /// The CTA's number in the grid.
    pub cta: u64,
    /// Its place in its cluster, if the kernel uses clusters.
    pub cluster: Option<&'a Membership>,
    /// The lock bits of the CTA's SM, if the kernel uses them.
    pub lock_unit: Option<&'a mut LockUnit>,
    pub notes: &'a mut Notes,
    pub textures: &'a Textures,
    pub constants: &'a [u8],
    pub params: &'a [u8],
    /// The first read of never-written bytes by an access, where that is tracked: lane, space, address, bytes.
    pub uninitialised: Option<(usize, Space, u64, u32)>,
}

/// What every lane of an access does.
#[derive(Clone, Copy)]
pub struct Touch {
    pub space: Space,
    pub bytes: u32,
    pub kind: AccessKind,
}

impl Reach<'_> {
    /// Lets `f` change a 64-bit word of shared memory for a lane.
    pub fn update_shared64<R>(
        &mut self,
        lane: usize,
        address: u64,
        f: impl FnOnce(u64) -> Result<(u64, R), FaultKind>,
    ) -> Result<R, Bad> {
        let bad = |kind| Bad { lane, kind };
        let word = self.shared.word64_mut(address).map_err(bad)?;
        let (new, result) = f(u64::from_le_bytes(*word)).map_err(bad)?;
        *word = new.to_le_bytes();
        Ok(result)
    }

    /// Reads a byte at a generic address for a lane (strings and arguments of `printf`).
    pub fn generic_byte<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        lane: usize,
        address: u64,
    ) -> Result<u8, Bad> {
        let mut row = [[0u32; N]; 1];
        let at = Addresses::Uniform(address);
        // It cannot wait for the shared memory of another CTA.
        self.cluster = None;
        self.each_space(
            warp,
            activation,
            Touch { space: Space::Generic, bytes: 1, kind: AccessKind::Load },
            &at,
            LaneMask::of(lane),
            |reach, warp, piece| {
                // What lies outside of all allocations is zero.
                if piece.at != NO_ALLOCATION {
                    reach.gather(warp, piece, &mut row);
                }
            },
        )?;
        Ok(row[0][lane] as u8)
    }

    /// Checks alignment and bounds, and calls `f` with each group of lanes that lie in one piece of memory.
    #[inline(always)]
    pub fn each_space<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        touch: Touch,
        addresses: &Addresses<N>,
        mask: LaneMask,
        mut f: impl FnMut(&mut Self, &mut Warp<N>, &Piece<'_, N>),
    ) -> Result<(), Bad> {
        if touch.space == Space::Generic {
            return self.generic(warp, activation, touch, addresses, mask, &mut f);
        }
        self.one_space(warp, activation, touch, addresses, mask, &mut f)
    }

    /// As [`Reach::each_space`] for generic addresses, which are resolved.
    fn generic<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        touch: Touch,
        addresses: &Addresses<N>,
        mask: LaneMask,
        f: &mut impl FnMut(&mut Self, &mut Warp<N>, &Piece<'_, N>),
    ) -> Result<(), Bad> {
        let windows = self.kernel.windows;
        let mut left = mask;
        if let Some(cluster) = self.cluster {
            left &= !self.in_cluster(cluster, (warp, activation), touch, addresses, mask, f)?;
        }
        while !left.is_empty() {
            let space = windows.space_of(addresses.at(left.lowest()));
            let base = windows.base(space);
            let here = match space {
                Space::Global => {
                    let elsewhere = [Space::Shared, Space::Local, Space::Const, Space::Param];
                    elsewhere
                        .into_iter()
                        .fold(left, |m, s| m & !addresses.within(left, windows.base(s), windows.bytes))
                }
                _ => addresses.within(left, base, windows.bytes),
            };
            let inside = addresses.relative_to(base);
            self.one_space(warp, activation, Touch { space, ..touch }, &inside, here, f)?;
            left &= !here;
        }
        Ok(())
    }

    /// Lanes whose generic addresses lie in the shared memory of a CTA of the cluster, by its rank. Returns them.
    #[cold]
    fn in_cluster<const N: usize>(
        &mut self,
        cluster: &Membership,
        (warp, activation): (&mut Warp<N>, &Activation),
        touch: Touch,
        addresses: &Addresses<N>,
        mask: LaneMask,
        f: &mut impl FnMut(&mut Self, &mut Warp<N>, &Piece<'_, N>),
    ) -> Result<LaneMask, Bad> {
        let windows = self.kernel.windows;
        let all = addresses.within(mask, windows.cluster, windows.bytes * u64::from(MAX_CLUSTER_CTAS));
        let mut left = all;
        while !left.is_empty() {
            let lane = left.lowest();
            let Some((rank, _)) = windows.cluster_of(addresses.at(lane)) else { break };
            let base = windows.in_cluster(rank, 0);
            let here = addresses.within(left, base, windows.bytes);
            if rank >= cluster.size {
                let what = format!("{} in", touch.kind.of(touch.bytes));
                return Err(Bad { lane, kind: FaultKind::NoSuchRank { what, rank, size: cluster.size } });
            }
            // Every CTA of a grid has as much shared memory as the others.
            let space = if rank == cluster.rank { Space::Shared } else { Space::Cluster };
            let inside = addresses.relative_to(base);
            self.one_space(warp, activation, Touch { space, ..touch }, &inside, here, f)?;
            left &= !here;
        }
        Ok(all)
    }

    #[inline(always)]
    fn one_space<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        touch: Touch,
        addresses: &Addresses<N>,
        mask: LaneMask,
        f: &mut impl FnMut(&mut Self, &mut Warp<N>, &Piece<'_, N>),
    ) -> Result<(), Bad> {
        let Touch { space, bytes, kind } = touch;
        if !addresses.aligned(mask, bytes as u64) {
            return Err(misaligned(touch, addresses, mask));
        }
        if matches!(space, Space::Const | Space::Param) && kind != AccessKind::Load {
            let lane = mask.lowest();
            let address = addresses.at(lane);
            return Err(Bad { lane, kind: FaultKind::ReadOnly { access: kind, space, address, bytes } });
        }
        let mut left = mask;
        while !left.is_empty() {
            let lane = left.lowest();
            let address = addresses.at(lane);
            let (at, base, len) = match space {
                Space::Global | Space::Generic => match self.memory.find(address) {
                    Some(at) => {
                        let (base, data) = self.memory.allocation(at);
                        (at, base, data.len() as u64)
                    }
                    None => (0, 0, 0),
                },
                Space::Shared | Space::Cluster => (0, 0, self.shared.bytes.len() as u64),
                Space::Const => (0, 0, self.constants.len() as u64),
                Space::Param => (0, 0, self.params.len() as u64),
                Space::Local => (0, 0, local_extent(self.kernel, warp, activation)),
            };
            let room = (len + 1).saturating_sub(bytes as u64);
            let here = addresses.within(left, base, room);
            if !here.contains(lane) {
                self.outside(warp, activation, touch, (addresses, lane), f)?;
                left &= !LaneMask::of(lane);
                continue;
            }
            f(self, warp, &Piece { space, at, base, mask: here, addresses, bytes });
            left &= !here;
        }
        Ok(())
    }

    /// A lane's bytes are not all in one allocation: a fault, unless it loads and may do so.
    #[cold]
    #[inline(never)]
    fn outside<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        touch: Touch,
        (addresses, lane): (&Addresses<N>, usize),
        f: &mut impl FnMut(&mut Self, &mut Warp<N>, &Piece<'_, N>),
    ) -> Result<(), Bad> {
        let Touch { space, bytes, kind } = touch;
        let address = addresses.at(lane);
        let passes = space == Space::Global && kind == AccessKind::Load && self.memory.loads_zeros(address);
        let Some(path) = warp.control.current().filter(|_| passes) else {
            let extent = local_extent(self.kernel, warp, activation);
            return Err(self.out_of_bounds(touch, (lane, address), activation, extent));
        };
        let who = Who { cta: self.cta, warp: warp.id, lane, thread: warp.thread(lane) };
        let memory = &self.memory;
        self.notes.outside.note(path.pc, who, || {
            let place = memory.describe(address, u64::from(bytes));
            format!("{} at {address:#x}, {place},", kind.of(bytes))
        });
        let at = self.memory.lend(address, bytes as usize);
        f(self, warp, &Piece { space, at, base: address, mask: LaneMask::of(lane), addresses, bytes });
        self.memory.take_back();
        Ok(())
    }

    #[cold]
    fn out_of_bounds(
        &self,
        touch: Touch,
        (lane, address): (usize, u64),
        activation: &Activation,
        local_extent: u64,
    ) -> Bad {
        let Touch { space, bytes, kind: access } = touch;
        let place = self.describe(touch, address, activation, local_extent);
        Bad { lane, kind: FaultKind::OutOfBounds { access, space, address, bytes, place } }
    }

    /// Says in words where a bad address lies.
    fn describe(&self, touch: Touch, address: u64, activation: &Activation, local_extent: u64) -> String {
        let Touch { space, bytes, .. } = touch;
        match space {
            Space::Global | Space::Generic => {
                let near = self.memory.describe(address, bytes as u64);
                if address < 4096 { "a null pointer".to_string() } else { near }
            }
            Space::Shared | Space::Cluster => {
                let len = self.shared.bytes.len() as u64;
                let near =
                    self.kernel.shared.iter().rev().find(|v| v.bytes > 0 && v.offset as u64 <= address);
                // No variable is before a negative address.
                let near = near.filter(|_| address <= i32::MAX as u64);
                let whole = past_end(address, len, "the CTA's shared memory");
                match near {
                    Some(v) => format!("{whole}; the variable before it is `{}` ({} bytes)", v.name, v.bytes),
                    None => whole,
                }
            }
            Space::Const => past_end(address, self.constants.len() as u64, "the module's constants"),
            Space::Param => past_end(address, self.params.len() as u64, "the kernel's parameters"),
            Space::Local => {
                let function = &self.kernel.functions[activation.function as usize];
                let what = format!("the thread's stack, as `{}` runs", function.name);
                past_end(address, local_extent, &what)
            }
        }
    }

    #[inline]
    fn flat(&self, space: Space, at: usize) -> (u64, &[u8], Option<&BitSet>) {
        match space {
            Space::Global | Space::Generic => {
                let (base, bytes) = self.memory.allocation(at);
                (base, bytes, self.memory.written(at))
            }
            Space::Shared => (0, &self.shared.bytes, self.shared.written.as_ref()),
            Space::Const => (0, self.constants, None),
            Space::Param => (0, self.params, None),
            Space::Local => unreachable!("local memory is not flat"),
            Space::Cluster => unreachable!("another CTA's memory is elsewhere"),
        }
    }

    #[inline]
    fn flat_mut(&mut self, space: Space, at: usize) -> (&mut [u8], Option<&mut BitSet>) {
        match space {
            Space::Shared => (&mut self.shared.bytes, self.shared.written.as_mut()),
            _ => {
                let (_, bytes, written) = self.memory.allocation_mut(at);
                (bytes, written)
            }
        }
    }

    /// Lanes read a piece of memory into rows, and never-written bytes are noted.
    #[inline]
    pub fn gather<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        piece: &Piece<'_, N>,
        rows: &mut [[u32; N]],
    ) {
        if piece.space == Space::Local {
            gather_local(warp, piece, rows);
            let unwritten = warp.local_unwritten(piece.mask, |lane| piece.addresses.at(lane), piece.bytes);
            return self.note_unwritten(unwritten, piece);
        }
        gather_flat(self.flat(piece.space, piece.at).1, piece, rows);
        let unwritten = self.unwritten_lane(piece);
        self.note_unwritten(unwritten, piece);
    }

    /// As [`Reach::gather`], inside a function that is compiled for several vector instruction sets.
    #[inline(always)]
    pub(super) fn gather_inline<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        piece: &Piece<'_, N>,
        rows: &mut [[u32; N]],
    ) {
        if piece.space != Space::Shared || self.shared.written.is_some() {
            return self.gather(warp, piece, rows);
        }
        gather_inline(&self.shared.bytes, piece, rows);
    }

    /// The first lane that reads bytes nobody wrote, where that is tracked.
    #[inline]
    fn unwritten_lane<const N: usize>(&self, piece: &Piece<'_, N>) -> Option<usize> {
        let (base, _, written) = self.flat(piece.space, piece.at);
        let written = written?;
        let known =
            |lane: usize| written.contains((piece.addresses.at(lane) - base) as usize, piece.bytes as usize);
        piece.mask.lanes().find(|&lane| !known(lane))
    }

    #[inline]
    fn note_unwritten<const N: usize>(&mut self, lane: Option<usize>, piece: &Piece<'_, N>) {
        if let Some(lane) = lane {
            self.uninitialised.get_or_insert((lane, piece.space, piece.addresses.at(lane), piece.bytes));
        }
    }

    /// Lanes write rows to a piece of memory.
    #[inline]
    pub fn scatter<const N: usize>(&mut self, warp: &mut Warp<N>, piece: &Piece<'_, N>, rows: &[[u32; N]]) {
        if piece.space == Space::Local {
            warp.mark_local(piece.mask, |lane| piece.addresses.at(lane), piece.bytes, true);
            return scatter_local(warp, piece, rows);
        }
        let (data, written) = self.flat_mut(piece.space, piece.at);
        scatter_flat(data, piece, rows);
        note_written(written, piece);
    }

    /// Lanes change a piece of memory one after the other: operands and values found are in the rows.
    pub fn update<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        piece: &Piece<'_, N>,
        atomic: (AtomOp, Ty),
        rows: &mut Rows<N>,
    ) {
        if piece.space == Space::Local {
            let unwritten = warp.local_unwritten(piece.mask, |lane| piece.addresses.at(lane), piece.bytes);
            self.note_unwritten(unwritten, piece);
            warp.mark_local(piece.mask, |lane| piece.addresses.at(lane), piece.bytes, true);
            return update_local(warp, piece, atomic, rows);
        }
        let unwritten = self.unwritten_lane(piece);
        let (data, written) = self.flat_mut(piece.space, piece.at);
        update_flat(data, piece, atomic, rows);
        note_written(written, piece);
        self.note_unwritten(unwritten, piece);
    }

    /// Whether bytes of a space move later, when the memory system or another CTA serves the access.
    #[inline(always)]
    pub(super) fn moves_later(&self, space: Space) -> bool {
        space == Space::Cluster || space == Space::Global && matches!(self.memory, Global::Later(_))
    }
}

fn note_written<const N: usize>(written: Option<&mut BitSet>, piece: &Piece<'_, N>) {
    if let Some(written) = written {
        for lane in piece.mask.lanes() {
            written.insert((piece.addresses.at(lane) - piece.base) as usize, piece.bytes as usize);
        }
    }
}

/// The fault of the first lane whose address is no multiple of the access's size.
#[cold]
fn misaligned<const N: usize>(touch: Touch, addresses: &Addresses<N>, mask: LaneMask) -> Bad {
    let Touch { space, bytes, kind: access } = touch;
    let lane =
        mask.lanes().find(|&lane| addresses.at(lane) & (bytes as u64 - 1) != 0).expect("some lane is off");
    let address = addresses.at(lane);
    Bad { lane, kind: FaultKind::Misaligned { access, space, address, bytes } }
}

/// How far a thread's local memory reaches while this activation runs.
pub(crate) fn local_extent<const N: usize>(kernel: &Kernel, warp: &Warp<N>, activation: &Activation) -> u64 {
    let frame = activation.frame as u64 + kernel.functions[activation.function as usize].frame_bytes as u64;
    frame.max(warp.highest_stack_top() as u64)
}

/// Where an address is that is not inside a memory of `len` bytes, which is less than half of what 32 bits count.
pub(crate) fn past_end(address: u64, len: u64, what: &str) -> String {
    // A negative offset, in 64 bits or in 32.
    let before = match u32::try_from(address) {
        Ok(address) => u64::from(address.wrapping_neg()),
        Err(_) => address.wrapping_neg(),
    };
    if len == 0 {
        format!("{what} (0 bytes) holds nothing")
    } else if before <= i32::MAX as u64 && address != 0 {
        format!("{before} bytes before the start of {what} ({len} bytes)")
    } else if address >= len {
        match address - len {
            0 => format!("right past the end of {what} ({len} bytes)"),
            past => format!("{past} bytes past the end of {what} ({len} bytes)"),
        }
    } else {
        format!("runs over the end of {what} ({len} bytes)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_outside_of_a_memory() {
        let place = |address| past_end(address, 64, "it");
        assert_eq!(place(-4i64 as u64), "4 bytes before the start of it (64 bytes)");
        assert_eq!(place(u64::from(-16i32 as u32)), "16 bytes before the start of it (64 bytes)");
        assert_eq!(place(64), "right past the end of it (64 bytes)");
        assert_eq!(place(70), "6 bytes past the end of it (64 bytes)");
        assert_eq!(place(62), "runs over the end of it (64 bytes)");
        assert_eq!(past_end(0, 0, "it"), "it (0 bytes) holds nothing");
    }
}
