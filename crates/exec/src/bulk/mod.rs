//! Bulk copies, which the copy engine of an SM makes for a thread: boxes of tensors, or bytes that lie together.
//!
//! A [`Job`] gives its bytes out as accesses of up to a warp's lanes, one 16-byte piece (or less) each. Whoever runs it
//! makes these accesses as those of warps: the functional machine at once, the timed one through the memory system.

pub mod map;

use warploom_isa::{AtomOp, Bulk, BulkWay, MbarrierOp, Pc, Space, Ty};

use crate::bulk::map::{Swizzle, TensorMap};
use crate::fault::{AccessKind, FaultKind};
use crate::kit::lane_mask::LaneMask;
use crate::lanes::{AtomicUnit, atomic};
use crate::memory::access::{MemoryOp, SpaceLanes, WarpAccess};
use crate::memory::address::Addresses;
use crate::memory::reach::past_end;
use crate::memory::shared::Shared;
use crate::memory::store::Memory;
use crate::sync::cluster::remote_mbarrier;
use crate::warp::control::Activation;

/// The largest piece, and what bulk copies are aligned to.
const PIECE_BYTES: u32 = 16;

/// What a thread wants copied. Addresses of shared memory are within a CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub bulk: Bulk,
    /// Where the bytes lie in the shared memory of the thread's CTA, or of those to which they go.
    pub shared: u32,
    /// Of a copy between CTAs: where they come from in the thread's CTA.
    pub from: u32,
    /// In bytes, if they lie together.
    pub bytes: u32,
    /// Their address in global memory, if they lie together.
    pub global: u64,
    /// Of the box's first element.
    pub coordinates: [i32; 5],
    /// The CTAs to which they go, as bits by rank.
    pub ranks: u32,
    pub mbarrier: Option<u32>,
    pub lane: usize,
}

/// A bulk copy that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub request: Request,
    base: u64,
    rank: usize,
    /// By dimension: the first element, how many the tensor and the box have, steps, and bytes between elements.
    start: [i64; 5],
    sizes: [u64; 5],
    counts: [u32; 5],
    steps: [u32; 5],
    strides: [u64; 5],
    swizzle: Swizzle,
    fill: u64,
    /// Bytes of a piece: a power of two, up to 16.
    piece: u32,
    /// Pieces in all, and those given out.
    pieces: u32,
    next: u32,
}

/// A bulk copy that cannot be made.
fn misuse(problem: impl Into<String>) -> FaultKind {
    FaultKind::Bulk(problem.into())
}

/// The type with which elements of a tensor are reduced: halves in pairs.
fn reduced(op: AtomOp, element_type: u8) -> Result<Ty, FaultKind> {
    let ty = match element_type {
        2 => Ty::U32,
        3 => Ty::S32,
        4 => Ty::U64,
        5 => Ty::S64,
        6 => Ty::F16x2,
        7 => Ty::F32,
        8 => Ty::F64,
        9 => Ty::BF16x2,
        _ => return Err(misuse("elements of the tensor's type cannot be reduced")),
    };
    let fits = match op {
        AtomOp::Add => ty != Ty::S64,
        AtomOp::Min | AtomOp::Max => !matches!(ty, Ty::F32 | Ty::F64),
        AtomOp::Inc | AtomOp::Dec => ty == Ty::U32,
        _ => matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64),
    };
    let logic = matches!(op, AtomOp::And | AtomOp::Or | AtomOp::Xor);
    match ty {
        _ if !fits => Err(misuse(format!("elements of `.{ty}` have no such reduction"))),
        Ty::U32 | Ty::S32 if logic => Ok(Ty::B32),
        Ty::U64 | Ty::S64 if logic => Ok(Ty::B64),
        ty => Ok(ty),
    }
}

impl Job {
    /// Checks a request. `map` is that of a tensor; `shared_bytes` is what each CTA has.
    pub fn new(
        request: Request,
        map: Option<TensorMap>,
        memory: &Memory,
        shared_bytes: u64,
    ) -> Result<Job, FaultKind> {
        let bulk = request.bulk;
        let mut job = match map {
            Some(map) => Job::of_box(request, &map)?,
            None => Job::of_bytes(request)?,
        };
        if let Some((_, ty)) = bulk.reduce {
            job.piece = job.piece.min(ty.bytes());
            if !job.row_bytes().is_multiple_of(ty.bytes().into()) || job.piece < ty.bytes() {
                return Err(misuse(format!("elements of `.{ty}` do not fill what is copied")));
            }
        }
        let total = job.total_bytes();
        // A swizzle stays within rows of 128 bytes.
        let align = if job.swizzle == Swizzle::None { 1 } else { 128 };
        job.pieces = (total / u64::from(job.piece)) as u32;
        for at in [job.request.shared, job.request.from] {
            if u64::from(at) + total.next_multiple_of(align) > shared_bytes {
                let (access, space, address) = (AccessKind::Store, Space::Shared, u64::from(at));
                let place = past_end(address + total - 1, shared_bytes, "the CTA's shared memory");
                return Err(FaultKind::OutOfBounds { access, space, address, bytes: total as u32, place });
            }
        }
        if bulk.way != BulkWay::ToCluster {
            job.check_global(memory)?;
        }
        Ok(job)
    }

    fn of_bytes(request: Request) -> Result<Job, FaultKind> {
        let Request { bulk, shared, from, bytes, global, .. } = request;
        if !bytes.is_multiple_of(PIECE_BYTES) || bytes == 0 {
            return Err(misuse(format!("{bytes} bytes are not a multiple of 16, and more than none")));
        }
        let to_cluster = bulk.way == BulkWay::ToCluster;
        let places =
            [(u64::from(shared), "shared"), (if to_cluster { from.into() } else { global }, "source")];
        for (address, what) in places {
            if !address.is_multiple_of(PIECE_BYTES.into()) {
                let what = if what == "source" && !to_cluster { "global" } else { "shared" };
                return Err(misuse(format!("the {what} address {address:#x} is not a multiple of 16")));
            }
        }
        Ok(Job {
            base: global,
            rank: 1,
            start: [0; 5],
            sizes: [u64::from(bytes), 1, 1, 1, 1],
            counts: [bytes, 1, 1, 1, 1],
            steps: [1; 5],
            strides: [1, 0, 0, 0, 0],
            swizzle: Swizzle::None,
            fill: 0,
            piece: PIECE_BYTES,
            pieces: 0,
            next: 0,
            request,
        })
    }

    fn of_box(mut request: Request, map: &TensorMap) -> Result<Job, FaultKind> {
        let dims = u32::from(request.bulk.dims);
        if dims != map.rank {
            return Err(misuse(format!(
                "the tensor map has {} dimensions, the instruction {dims}",
                map.rank
            )));
        }
        let align = 128;
        if !request.shared.is_multiple_of(align) {
            let at = request.shared;
            return Err(misuse(format!("the shared address {at:#x} of a box is not a multiple of {align}")));
        }
        if let Some((op, _)) = request.bulk.reduce {
            request.bulk.reduce = Some((op, reduced(op, map.element_type)?));
        }
        let element = map.element_bytes();
        let rank = map.rank as usize;
        let used = |d: usize| d < rank;
        let start = request.coordinates.map(i64::from);
        // A piece is in the tensor as a whole, or not at all.
        let bytes = u64::from(map.sizes[0]) * u64::from(element);
        let edges = (start[0] * i64::from(element)) as u64 | bytes;
        let piece = 1 << (edges | u64::from(PIECE_BYTES)).trailing_zeros();
        Ok(Job {
            base: map.address,
            rank,
            start,
            sizes: std::array::from_fn(|d| if used(d) { map.sizes[d].into() } else { 1 }),
            counts: std::array::from_fn(|d| if used(d) { map.count(d) } else { 1 }),
            steps: std::array::from_fn(|d| if used(d) { map.steps[d] } else { 1 }),
            strides: std::array::from_fn(|d| match d {
                0 => element.into(),
                d if used(d) => map.strides[d - 1],
                _ => 0,
            }),
            swizzle: map.swizzle,
            fill: map.fill(),
            piece,
            pieces: 0,
            next: 0,
            request,
        })
    }

    fn row_bytes(&self) -> u64 {
        u64::from(self.counts[0]) * self.strides[0]
    }

    /// Bytes in shared memory, those outside of the tensor included.
    pub fn total_bytes(&self) -> u64 {
        self.counts[1..].iter().fold(self.row_bytes(), |bytes, &count| bytes * u64::from(count))
    }

    /// Whether all pieces have been given out.
    pub fn is_done(&self) -> bool {
        self.next == self.pieces
    }

    /// What of the box is in the tensor must lie in one allocation.
    fn check_global(&self, memory: &Memory) -> Result<(), FaultKind> {
        let (mut first, mut last) = (self.base, self.base);
        for d in 0..self.rank {
            let step = i64::from(self.steps[d]);
            let inside = |at: &i64| (0..self.sizes[d] as i64).contains(at);
            let mut elements =
                (0..i64::from(self.counts[d])).map(|nth| self.start[d] + nth * step).filter(inside);
            let Some(low) = elements.next() else { return Ok(()) };
            let high = elements.next_back().unwrap_or(low);
            first = first.wrapping_add((low as u64).wrapping_mul(self.strides[d]));
            last = last.wrapping_add((high as u64).wrapping_mul(self.strides[d]));
        }
        let end = last.wrapping_add(self.strides[0]);
        let whole = memory.find(first).is_some_and(|at| {
            let (base, bytes) = memory.allocation(at);
            end >= first && end - base <= bytes.len() as u64
        });
        if whole {
            return Ok(());
        }
        let access =
            if self.request.bulk.way == BulkWay::ToGlobal { AccessKind::Store } else { AccessKind::Load };
        let bytes = end.wrapping_sub(first);
        let place = memory.describe(first, bytes);
        let bytes = bytes.min(u32::MAX.into()) as u32;
        Err(FaultKind::OutOfBounds { access, space: Space::Global, address: first, bytes, place })
    }

    /// Where a piece lies in global memory, if it is in the tensor.
    fn global(&self, piece: u32) -> Option<u64> {
        let per_row = (self.row_bytes() / u64::from(self.piece)) as u32;
        let (mut row, in_row) = (piece / per_row, piece % per_row);
        let along = self.start[0] + i64::from(in_row * self.piece) / self.strides[0] as i64;
        if !(0..self.sizes[0] as i64).contains(&along) {
            return None;
        }
        let inner = self.start[0] * self.strides[0] as i64 + i64::from(in_row * self.piece);
        let mut address = self.base.wrapping_add(inner as u64);
        for d in 1..self.rank {
            let at = self.start[d] + i64::from(row % self.counts[d] * self.steps[d]);
            row /= self.counts[d];
            if !(0..self.sizes[d] as i64).contains(&at) {
                return None;
            }
            address = address.wrapping_add((at as u64).wrapping_mul(self.strides[d]));
        }
        Some(address)
    }

    /// Gives out the next pieces as an access of a warp. `shared` is that of the thread's CTA.
    pub fn give<const N: usize>(&mut self, access: &mut WarpAccess<N>, shared: &Shared, pc: Pc) {
        let count = (self.pieces - self.next).min(N as u32);
        let bytes = self.piece;
        let Request { bulk, shared: to, from, .. } = self.request;
        access.restart(pc, Activation::default(), LaneMask::NONE);
        access.bytes = bytes;
        access.kind = match (bulk.way, bulk.reduce) {
            (BulkWay::ToGlobal, Some((op, ty))) => MemoryOp::Atomic { op, ty, silent: true },
            (BulkWay::ToGlobal, None) => MemoryOp::Store,
            _ => MemoryOp::Copy,
        };
        let (mut addresses, mut places, mut take) = ([0; N], [0; N], [bytes; N]);
        let (mut all, mut inside) = (LaneMask::NONE, LaneMask::NONE);
        for lane in 0..count {
            let (piece, at) = (self.next + lane, lane as usize);
            let place = self.swizzle.apply(to + piece * bytes);
            places[at] = place;
            let global = if bulk.way == BulkWay::ToCluster { None } else { self.global(piece) };
            all |= LaneMask::of(at);
            if let Some(address) = global {
                addresses[at] = address;
                inside |= LaneMask::of(at);
            }
            let held = match bulk.way {
                BulkWay::ToGlobal => Some(place),
                BulkWay::ToCluster => Some(from + piece * bytes),
                _ => None,
            };
            match held {
                Some(start) => {
                    let held = &shared.bytes[start as usize..(start + bytes) as usize];
                    held.iter().zip(0..).for_each(|(&byte, nth)| access.rows.set_data_byte(nth, at, byte));
                }
                None if global.is_none() && self.fill != 0 => {
                    let fill = self.fill.to_le_bytes();
                    (0..bytes).for_each(|nth| access.rows.set_data_byte(nth, at, fill[nth as usize % 8]));
                }
                None if global.is_none() => take[at] = 0,
                None => {}
            }
        }
        self.next += count;
        if access.kind == MemoryOp::Copy {
            access.rows.set_copy(places, take);
            access.mask = all;
        } else {
            access.mask = inside;
        }
        access.lanes = SpaceLanes { global: inside, ..SpaceLanes::default() };
        access.addresses = Addresses::Lanes(addresses);
    }

    /// Pieces have come to the shared memory of a CTA: they are stored, or change what is there, and count at its
    /// mbarrier.
    pub fn deliver<const N: usize>(
        (mbarrier, reduce): (Option<u32>, Option<(AtomOp, Ty)>),
        access: &WarpAccess<N>,
        shared: &mut Shared,
    ) -> Result<(), FaultKind> {
        match reduce {
            None => access.finish_copy(shared),
            Some((op, ty)) => {
                for lane in access.mask.lanes() {
                    let (at, _) = access.copy_target(lane);
                    let target = &mut shared.bytes[at..at + ty.bytes() as usize];
                    let old = target.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
                    let operand = access.rows.first_data(ty.bytes(), lane);
                    let new = atomic(AtomicUnit::Sm, op, ty, [old, operand, 0]);
                    target.copy_from_slice(&new.to_le_bytes()[..ty.bytes() as usize]);
                }
            }
        }
        let Some(mbarrier) = mbarrier else { return Ok(()) };
        let bytes = u64::from(access.mask.count() * access.bytes);
        remote_mbarrier(shared, (MbarrierOp::CompleteTx, mbarrier.into(), bytes))
    }

    /// What [`Job::deliver`] needs to know.
    pub fn delivery(&self) -> (Option<u32>, Option<(AtomOp, Ty)>) {
        let bulk = self.request.bulk;
        (self.request.mbarrier, bulk.reduce.filter(|_| bulk.way == BulkWay::ToCluster))
    }

    /// Whether its bytes go to the shared memory of CTAs.
    pub fn delivers(&self) -> bool {
        matches!(self.request.bulk.way, BulkWay::ToShared | BulkWay::ToCluster)
    }

    /// The CTAs to which its bytes go.
    pub fn ranks(&self) -> impl Iterator<Item = u32> + use<> {
        let ranks = self.request.ranks;
        (0..32).filter(move |rank| ranks >> rank & 1 == 1)
    }

    /// Makes an access on global memory at once.
    pub fn serve<const N: usize>(access: &mut WarpAccess<N>, memory: &mut Memory) {
        let lanes = access.lanes.global;
        if lanes.is_empty() {
            return;
        }
        match access.kind {
            MemoryOp::Store => drop(access.store(memory, lanes, false)),
            MemoryOp::Atomic { .. } => drop(access.update(memory, lanes)),
            _ => {
                if let Some(at) = memory.find(access.addresses.at(lanes.lowest())) {
                    let (base, bytes) = memory.allocation(at);
                    access.load_from_line(base, bytes, u128::MAX, lanes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
