//! A warp's memory access in values: a load, store, atomic, asynchronous copy, or one that uses lock bits.
//!
//! [`WarpAccess::begin`] checks it and does all that stays inside the SM. Bytes of global memory move at once where it
//! is at hand (`Global::Now`); otherwise the memory system moves them later, with the functions of `serve.rs`.
//! [`WarpAccess::finish`] writes registers, or shared memory for a copy.

use multiversion::multiversion;
use warploom_isa::{Access, AtomOp, Dst, Inst, Kernel, Op, Pc, Space, Ty};

use crate::fault::{AccessKind, FaultKind};
use crate::kit::lane_mask::LaneMask;
use crate::lanes::{AtomicUnit, atomic};
use crate::locks::holders::Change;
use crate::memory::address::Addresses;
use crate::memory::bytes::Piece;
use crate::memory::reach::{Bad, Reach, Touch};
use crate::memory::registers::{read_data, read_operands, write_data, write_found};
use crate::memory::rows::Rows;
use crate::memory::shared::Shared;
use crate::memory::texture::Texels;
use crate::warp::Warp;
use crate::warp::control::Activation;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOp {
    Load,
    Store,
    /// With `silent`, the values found do not come back.
    Atomic {
        op: AtomOp,
        ty: Ty,
        silent: bool,
    },
    /// A load from shared memory that takes lock bits; the lanes of `taken` got theirs.
    Lock {
        taken: LaneMask,
    },
    /// A store to shared memory that frees lock bits; the lanes of `changed` wrote another value than there was. `of`
    /// is the atomic that it is part of, if any.
    Unlock {
        changed: LaneMask,
        of: Option<(AtomOp, Ty)>,
    },
    /// An asynchronous copy from global to shared memory.
    Copy,
    /// A load of matrices from shared memory.
    Matrix,
    /// A fetch from a texture. Its values are known from the beginning.
    Texture,
}

/// Whether an atomic can leave its result out. Exchanges always bring the old value back, wanted or not.
fn has_reduction(op: AtomOp) -> bool {
    !matches!(op, AtomOp::Exch | AtomOp::Cas)
}

impl MemoryOp {
    #[inline]
    pub fn writes_registers(self) -> bool {
        matches!(
            self,
            MemoryOp::Load
                | MemoryOp::Lock { .. }
                | MemoryOp::Atomic { silent: false, .. }
                | MemoryOp::Matrix
                | MemoryOp::Texture
        )
    }
}

/// Lanes by the memory that they access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceLanes {
    pub global: LaneMask,
    pub shared: LaneMask,
    pub local: LaneMask,
    /// Constant memory and parameters.
    pub constant: LaneMask,
}

impl SpaceLanes {
    #[inline(always)]
    fn add(&mut self, space: Space, lanes: LaneMask) {
        match space {
            Space::Global | Space::Generic => self.global |= lanes,
            Space::Shared => self.shared |= lanes,
            Space::Local => self.local |= lanes,
            Space::Const | Space::Param => self.constant |= lanes,
            // They are counted apart, as they leave the SM.
            Space::Cluster => {}
        }
    }

    /// Those of all spaces.
    #[inline(always)]
    pub fn all(&self) -> LaneMask {
        self.global | self.shared | self.local | self.constant
    }
}

#[inline(always)]
fn note_remote<const N: usize>(remote: &mut LaneMask, piece: &Piece<'_, N>) {
    if piece.space == Space::Cluster {
        *remote |= piece.mask;
    }
}

/// An access of a warp. Reusable: [`WarpAccess::restart`] makes it another one.
#[derive(Clone, Debug)]
pub struct WarpAccess<const N: usize> {
    pub kind: MemoryOp,
    /// Bytes per lane.
    pub bytes: u32,
    pub pc: Pc,
    /// The activation of the warp whose registers it uses.
    pub activation: Activation,
    /// Lanes that take part.
    pub mask: LaneMask,
    /// Where they read and write. Of a copy, only the source counts, and only lanes that take any bytes.
    pub lanes: SpaceLanes,
    /// Every lane's address, as the instruction gives it: generic ones are not resolved.
    pub addresses: Addresses<N>,
    /// Lanes that were served later and found bytes of global memory that nobody wrote, where that is tracked.
    pub unwritten: LaneMask,
    /// Lanes that access the shared memory of another CTA of the cluster.
    pub remote: LaneMask,
    /// Made by the first fetch from a texture and kept for later ones.
    pub(super) texels: Option<Box<Texels<N>>>,
    pub(crate) rows: Rows<N>,
}

/// An access by no lane.
impl<const N: usize> Default for WarpAccess<N> {
    fn default() -> Self {
        WarpAccess {
            kind: MemoryOp::Load,
            bytes: 0,
            pc: Pc(0),
            activation: Activation::default(),
            mask: LaneMask::NONE,
            lanes: SpaceLanes::default(),
            addresses: Addresses::Uniform(0),
            unwritten: LaneMask::NONE,
            remote: LaneMask::NONE,
            texels: None,
            rows: Rows::new(),
        }
    }
}

impl<const N: usize> WarpAccess<N> {
    /// Becomes another access that has not begun.
    #[inline]
    pub fn restart(&mut self, pc: Pc, activation: Activation, mask: LaneMask) {
        (self.pc, self.activation, self.mask) = (pc, activation, mask);
        (self.lanes, self.unwritten, self.remote) = (SpaceLanes::default(), LaneMask::NONE, LaneMask::NONE);
    }

    /// Checks the addresses and does all that need not wait for global memory.
    pub fn begin(&mut self, reach: &mut Reach<'_>, warp: &mut Warp<N>, inst: &Inst) -> Result<(), Bad> {
        match inst.op {
            Op::Ld { access, .. } => load(self, reach, warp, inst, access),
            Op::St(access) => store(self, reach, warp, inst, access),
            Op::Atom(op, access) => self.begin_atomic(reach, warp, inst, op, access),
            Op::LdLock(access) => self.begin_lock(reach, warp, inst, access),
            Op::StUnlock(access) => self.begin_unlock(reach, warp, inst, access),
            Op::LdMatrix(matrix) | Op::StMatrix(matrix) => self.begin_matrix(reach, warp, inst, matrix),
            Op::CpAsync(bytes) => self.begin_copy(reach, warp, inst, bytes as u32),
            Op::Tex(fetch) => self.begin_texture(reach, warp, inst, fetch),
            Op::SurfaceLd(access) | Op::SurfaceSt(access) => {
                self.begin_surface(reach, warp, inst, (access, None))
            }
            Op::SurfaceRed(op, access) => self.begin_surface(reach, warp, inst, (access, Some(op))),
            op => unreachable!("{op:?} is no memory access"),
        }
    }

    /// Sets how many bytes the lanes access, and where.
    #[inline(always)]
    pub(crate) fn aim(&mut self, kernel: &Kernel, warp: &mut Warp<N>, inst: &Inst, access: Access) {
        self.bytes = access.bytes();
        self.addresses =
            Addresses::read(kernel, warp, &self.activation, inst, access.wide_address, self.mask);
    }

    /// A load whose addresses are known.
    #[inline(always)]
    pub(super) fn load_from(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        access: Access,
    ) -> Result<(), Bad> {
        self.kind = MemoryOp::Load;
        let WarpAccess { activation, addresses, mask, lanes, remote, rows, .. } = self;
        let bytes = access.bytes();
        let touch = Touch { space: access.space, bytes, kind: AccessKind::Load };
        reach.each_space(warp, activation, touch, addresses, *mask, |reach, warp, piece| {
            lanes.add(piece.space, piece.mask);
            note_remote(remote, piece);
            if !reach.moves_later(piece.space) {
                reach.gather_inline(warp, piece, rows.data_mut(bytes));
            }
        })
    }

    /// A store whose addresses are known.
    #[inline(always)]
    pub(super) fn store_to(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        access: Access,
    ) -> Result<(), Bad> {
        let rows = self.rows.data_mut(access.bytes());
        read_data(reach.kernel, warp, &self.activation, (inst, access), rows);
        self.store_rows(reach, warp, access.space)
    }

    /// A store whose addresses, bytes and values are known.
    #[inline(always)]
    pub(super) fn store_rows(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        space: Space,
    ) -> Result<(), Bad> {
        self.kind = MemoryOp::Store;
        let WarpAccess { activation, addresses, mask, lanes, remote, rows, bytes, .. } = self;
        let bytes = *bytes;
        let touch = Touch { space, bytes, kind: AccessKind::Store };
        reach.each_space(warp, activation, touch, addresses, *mask, |reach, warp, piece| {
            lanes.add(piece.space, piece.mask);
            note_remote(remote, piece);
            if !reach.moves_later(piece.space) {
                reach.scatter(warp, piece, rows.data(bytes));
            }
        })
    }

    fn begin_atomic(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        op: AtomOp,
        access: Access,
    ) -> Result<(), Bad> {
        self.aim(reach.kernel, warp, inst, access);
        self.update_at(reach, warp, inst, op, access)
    }

    /// An atomic whose addresses are known.
    #[inline(always)]
    pub(super) fn update_at(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        op: AtomOp,
        access: Access,
    ) -> Result<(), Bad> {
        let ty = access.ty;
        self.kind = MemoryOp::Atomic { op, ty, silent: inst.dst == Dst::None && has_reduction(op) };
        let WarpAccess { activation, addresses, mask, lanes, remote, rows, .. } = self;
        read_operands(reach.kernel, warp, activation, (inst, op, access), rows);
        let touch = Touch { space: access.space, bytes: access.bytes(), kind: AccessKind::Atomic };
        reach.each_space(warp, activation, touch, addresses, *mask, |reach, warp, piece| {
            lanes.add(piece.space, piece.mask);
            note_remote(remote, piece);
            if !reach.moves_later(piece.space) {
                reach.update(warp, piece, (op, ty), rows);
            }
        })
    }

    fn begin_copy(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        bytes: u32,
    ) -> Result<(), Bad> {
        (self.kind, self.bytes) = (MemoryOp::Copy, bytes);
        let WarpAccess { activation, mask, lanes, rows, .. } = self;
        let registers = warp.registers(activation);
        let to = registers.read32(inst.src[0]);
        let from = registers.read64(inst.src[1], &reach.kernel.imms);
        let most = registers.read32(inst.src[2]);
        rows.set_copy(to, most);
        self.addresses = Addresses::of(from, *mask);
        for lane in mask.lanes() {
            let address = from[lane];
            if !address.is_multiple_of(bytes as u64) {
                let (access, space) = (AccessKind::Load, Space::Global);
                return Err(Bad { lane, kind: FaultKind::Misaligned { access, space, address, bytes } });
            }
            let take = most[lane].min(bytes);
            // Only the bytes that are taken have to exist; they need not be a power of two.
            for byte in 0..take {
                let touch = Touch { space: Space::Global, bytes: 1, kind: AccessKind::Load };
                let at = Addresses::Uniform(address.wrapping_add(byte as u64));
                reach.each_space(
                    warp,
                    activation,
                    touch,
                    &at,
                    LaneMask::of(lane),
                    |reach, warp, piece| {
                        if !reach.moves_later(piece.space) {
                            let mut found = [[0u32; N]; 1];
                            reach.gather(warp, piece, &mut found);
                            rows.set_data_byte(byte, lane, found[0][lane] as u8);
                        }
                    },
                )?;
            }
            if let Some(read) = reach.uninitialised.as_mut().filter(|read| read.0 == lane) {
                // It is reported with all that the lane wanted, not with the first byte that nobody wrote.
                (read.2, read.3) = (address, take);
            }
            let touch = Touch { space: Space::Shared, bytes, kind: AccessKind::Store };
            let at = Addresses::Uniform(to[lane] as u64);
            reach.each_space(warp, activation, touch, &at, LaneMask::of(lane), |_, _, _| {})?;
            lanes.global |= LaneMask(((take > 0) as u64) << lane);
        }
        Ok(())
    }

    /// All values are there: registers get them, or shared memory those of a copy.
    #[inline]
    pub fn finish(&self, kernel: &Kernel, warp: &mut Warp<N>, shared: &mut Shared, inst: &Inst) {
        let WarpAccess { kind, bytes, mask, ref activation, ref rows, .. } = *self;
        match kind {
            MemoryOp::Load => write_data(kernel, warp, activation, inst, mask, rows.data(bytes)),
            MemoryOp::Lock { taken } => {
                write_data(kernel, warp, activation, inst, mask, rows.data(bytes));
                warp.registers(activation).write_pred(inst.dst2, taken.0, mask);
            }
            MemoryOp::Store | MemoryOp::Unlock { .. } => {}
            MemoryOp::Atomic { .. } => write_found(kernel, warp, activation, inst.dst, mask, (rows, bytes)),
            MemoryOp::Copy => self.finish_copy(shared),
            MemoryOp::Matrix => self.finish_matrix(kernel, warp, inst),
            MemoryOp::Texture => self.finish_texture(kernel, warp, inst),
        }
    }

    pub(crate) fn finish_copy(&self, shared: &mut Shared) {
        for lane in self.mask.lanes() {
            let (to, take) = (self.copy_destination(lane), self.copy_bytes(lane));
            for byte in 0..self.bytes {
                let value = if byte < take { self.rows.data_byte(byte, lane) } else { 0 };
                shared.bytes[to + byte as usize] = value;
            }
            if let Some(written) = &mut shared.written {
                written.insert(to, self.bytes as usize);
            }
        }
    }

    /// The operands of an atomic in a lane; the second one is 0 unless it compares.
    #[inline]
    pub fn operands(&self, lane: usize) -> [u64; 2] {
        let MemoryOp::Atomic { op, .. } = self.kind else { unreachable!("called for atomics") };
        self.rows.operands(op, self.bytes, lane)
    }

    /// What a load or an atomic found in a lane: up to 64 bits, the first ones of a vector.
    #[inline]
    pub fn found(&self, lane: usize) -> u64 {
        match self.kind {
            MemoryOp::Atomic { .. } => self.rows.found(self.bytes, lane),
            _ => self.rows.first_data(self.bytes, lane),
        }
    }

    /// Where in shared memory a lane of a copy puts its bytes.
    fn copy_destination(&self, lane: usize) -> usize {
        self.rows.copy_destination()[lane] as usize
    }

    /// How many bytes a lane of a copy takes; it fills the rest with zeros.
    fn copy_bytes(&self, lane: usize) -> u32 {
        self.rows.copy_bytes()[lane].min(self.bytes)
    }

    /// Where in shared memory a lane of a copy puts its bytes, and how many it takes.
    pub fn copy_target(&self, lane: usize) -> (usize, u32) {
        (self.copy_destination(lane), self.copy_bytes(lane))
    }

    /// A word that a lane of a store writes.
    pub fn stored(&self, row: usize, lane: usize) -> u32 {
        self.rows.data(self.bytes)[row][lane]
    }

    /// How many bytes of global memory a lane needs.
    pub(super) fn wanted_bytes(&self, lane: usize) -> u32 {
        if self.kind == MemoryOp::Copy { self.copy_bytes(lane) } else { self.bytes }
    }

    /// The first and the last word of local memory that lanes access; generic addresses of it begin at `window`.
    pub fn local_words(&self, window: u64) -> (u32, u32) {
        let offset = |lane: usize| {
            let address = self.addresses.at(lane);
            address.checked_sub(window).unwrap_or(address) as u32
        };
        self.lanes.local.lanes().fold((u32::MAX, 0), |(first, last), lane| {
            let at = offset(lane);
            (first.min(at / 4), last.max((at + self.bytes - 1) / 4))
        })
    }

    /// What an atomic did to its word in a lane, for who holds which lock. It is complete.
    #[inline]
    pub fn change(&self, lane: usize) -> Option<Change> {
        let (MemoryOp::Atomic { op, ty, .. } | MemoryOp::Unlock { of: Some((op, ty)), .. }) = self.kind
        else {
            return None;
        };
        Change::of(op, ty.bits(), (self.rows.found(self.bytes, lane), self.left(lane)?))
    }

    /// What a store or an atomic left in memory in a lane: up to 64 bits, the first ones of a vector. It is complete.
    #[inline]
    pub fn left(&self, lane: usize) -> Option<u64> {
        match self.kind {
            MemoryOp::Atomic { .. } if self.bytes == 16 => Some(self.rows.quads(lane)[1] as u64),
            MemoryOp::Atomic { op, ty, .. } => {
                let (old, [b, c]) = (self.found(lane), self.operands(lane));
                Some(atomic(AtomicUnit::Sm, op, ty, [old, b, c]))
            }
            MemoryOp::Store | MemoryOp::Unlock { .. } => Some(self.rows.first_data(self.bytes, lane)),
            _ => None,
        }
    }

    /// What a store of a vector, or an atomic on 16 bytes, left after the first 8 bytes in a lane: offsets and 64 bits
    /// each.
    pub fn stored_after(&self, lane: usize) -> impl Iterator<Item = (u64, u64)> {
        let rows = if self.kind == MemoryOp::Store { self.bytes as usize / 4 } else { 0 };
        let word = move |row: usize| u64::from(self.stored(row, lane));
        let of_store = (2..rows).step_by(2).map(move |row| (4 * row as u64, word(row) | word(row + 1) << 32));
        let of_atomic = match self.kind {
            MemoryOp::Atomic { .. } if self.bytes == 16 => Some((8, (self.rows.quads(lane)[1] >> 64) as u64)),
            _ => None,
        };
        of_store.chain(of_atomic)
    }

    pub fn stores_to_shared(&self) -> bool {
        matches!(self.kind, MemoryOp::Store | MemoryOp::Unlock { .. }) && !self.lanes.shared.is_empty()
    }

    /// The lanes of an atomic, of those of `lanes`, that changed what they found; it happened in the SM.
    pub fn changed_in_sm(&self, lanes: LaneMask) -> LaneMask {
        let MemoryOp::Atomic { op, ty, .. } = self.kind else { return LaneMask::NONE };
        let changed = |lane: &usize| {
            if self.bytes == 16 {
                let [found, left] = self.rows.quads(*lane);
                return found != left;
            }
            let (old, [b, c]) = (self.found(*lane), self.operands(*lane));
            atomic(AtomicUnit::Sm, op, ty, [old, b, c]) != old & (u64::MAX >> (64 - ty.bits()))
        };
        lanes.lanes().filter(changed).collect()
    }

    /// The first lane of `unwritten`, its address, and how many bytes it wanted.
    pub fn first_unwritten(&self) -> (usize, u64, u32) {
        let lane = self.unwritten.lowest();
        (lane, self.addresses.at(lane), self.wanted_bytes(lane))
    }
}

/// Begins a load. Loads and stores are frequent, and most of what they compute are 32 addresses, so they are compiled
/// for several vector instruction sets, as lane arithmetic is.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
fn load<const N: usize>(
    this: &mut WarpAccess<N>,
    reach: &mut Reach<'_>,
    warp: &mut Warp<N>,
    inst: &Inst,
    access: Access,
) -> Result<(), Bad> {
    this.aim(reach.kernel, warp, inst, access);
    this.load_from(reach, warp, access)
}

/// Begins a store.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
fn store<const N: usize>(
    this: &mut WarpAccess<N>,
    reach: &mut Reach<'_>,
    warp: &mut Warp<N>,
    inst: &Inst,
    access: Access,
) -> Result<(), Bad> {
    this.aim(reach.kernel, warp, inst, access);
    this.store_to(reach, warp, inst, access)
}
