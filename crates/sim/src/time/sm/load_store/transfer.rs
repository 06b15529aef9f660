//! A warp's memory access on its way: what it moves, for which lanes, and how much of it is still out.
//!
//! A load, store or atomic is checked when it issues. What it does to shared, local and constant memory happens then too:
//! those are private to the SM, whose load/store unit keeps their order. Bytes of global memory move later: a
//! store's values are kept here until its L2 slice serves it, a load's come here from the L1 or with the reply.

use warploom_isa::{Access, AtomOp, Cache, Kernel, Op, Order, Pc, Space, Ty};

use crate::exec::execute::Cta;
use crate::exec::fault::{AccessKind, FaultKind};
use crate::exec::lanes::{AtomicUnit, atomic};
use crate::exec::locks::holders::WarpName;
use crate::exec::memory::access::{
    Bad, Issued, MAX_ROWS, Reach, Touch, atomic_operands, collect_rows, write_back,
};
use crate::exec::memory::address::{Addresses, addresses, equal_lanes};
use crate::exec::memory::bytes::{Piece, gather_flat, scatter_flat};
use crate::exec::memory::store::Memory;
use crate::exec::warp::Warp;
use crate::exec::warp::control::Activation;
use crate::kit::bits::lanes as each;
use crate::kit::ids::WarpSlot;
use crate::time::cache::LineWritten;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// Brings values to registers.
    Load,
    /// Takes values from registers.
    Store,
    /// Changes memory, and brings the old values unless `silent`.
    Atomic {
        /// How.
        op: AtomOp,
        /// Of which type.
        ty: Ty,
        /// Nobody wants the old values.
        silent: bool,
    },
    /// Brings values of shared memory to registers, and takes their lock bits.
    Lock {
        /// Lanes that got theirs.
        taken: u64,
    },
    /// Takes values from registers to shared memory, and frees lock bits.
    Unlock {
        /// Lanes that changed what the words held.
        changed: u64,
    },
    /// Brings bytes of global memory to shared memory.
    Copy,
}

/// An access of a warp. What the load/store unit looks at with every message comes first, on one line of the host's cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Transfer<const N: usize> {
    /// What it does.
    pub kind: TransferKind,
    /// Bytes of each lane.
    pub bytes: u32,
    /// Messages that have not been answered.
    pub outstanding: u32,
    /// Lanes in global memory that the load/store unit has not sent yet.
    pub unsent: u64,
    /// In shared memory.
    pub shared: u64,
    /// In local memory.
    pub local: u64,
    /// In constant memory or parameters.
    pub constant: u64,
    /// The warp.
    pub slot: WarpSlot,
    /// The access does not use the L1.
    pub skips_l1: bool,
    /// Its instruction.
    pub pc: Pc,
    /// When the last part that needs no answer is there.
    pub ready_at: u64,
    /// Lanes that take part.
    pub mask: u64,
    /// Of those, the ones in global memory.
    pub global: u64,
    /// Lanes that tried to take a lock and wait in its queue.
    pub queued: u64,
    /// Lanes that found bytes of global memory that nobody wrote, where that is tracked.
    pub unwritten: u64,
    /// Where it ran.
    pub activation: Activation,
    /// It looks, in a spin loop, whether it can go on.
    pub polls: bool,
    /// Who does it.
    pub who: WarpName,
    /// So that what follows begins where lines of the host's cache do.
    padding: [u32; 6],
    /// Every lane's address, as the instruction gives it.
    pub addresses: Addresses<N>,
    /// The number of every lane's line in global memory, where addresses follow no pattern.
    lines: [u32; N],
    /// Values: of a load or store, a row for every four bytes. Of an atomic, its operands in rows 0 to 3 and what it
    /// found in rows 4 and 5. Of a copy, its data, then shared addresses (row 4) and bytes to copy (row 5).
    pub rows: [[u32; N]; MAX_ROWS],
}

const _: () = assert!(
    std::mem::offset_of!(Transfer<32>, lines) % 64 == 0 && std::mem::offset_of!(Transfer<32>, rows) % 64 == 0,
    "a row is on two lines of the host's cache"
);

impl<const N: usize> Transfer<N> {
    /// An access that has not begun.
    pub fn new(slot: WarpSlot, pc: Pc, activation: Activation, mask: u64) -> Self {
        Transfer {
            slot,
            pc,
            activation,
            kind: TransferKind::Load,
            bytes: 0,
            mask,
            global: 0,
            shared: 0,
            local: 0,
            constant: 0,
            skips_l1: false,
            polls: false,
            who: WarpName { cta: 0, warp: 0 },
            padding: [0; 6],
            addresses: Addresses::Uniform(0),
            lines: [0; N],
            rows: [[0; N]; MAX_ROWS],
            unwritten: 0,
            unsent: 0,
            queued: 0,
            outstanding: 0,
            ready_at: 0,
        }
    }

    /// Begins anew, for another access. Rows keep what they had: whoever uses one writes it first.
    #[inline]
    pub fn reset(&mut self, slot: WarpSlot, pc: Pc, activation: Activation, mask: u64) {
        (self.slot, self.pc, self.activation, self.mask) = (slot, pc, activation, mask);
        (self.global, self.shared, self.local, self.constant) = (0, 0, 0, 0);
        (self.skips_l1, self.queued) = (false, 0);
        (self.unwritten, self.unsent, self.outstanding, self.ready_at) = (0, 0, 0, 0);
    }

    /// Whether its lanes in global memory are looked for in an L1 that is not coherent.
    #[inline]
    pub fn looks_in_l1(&self) -> bool {
        self.kind == TransferKind::Load && !self.skips_l1
    }

    fn count_rows(&self) -> usize {
        (self.bytes as usize).div_ceil(4)
    }

    fn sort(&mut self, piece: &Piece<'_, N>) {
        match piece.space {
            Space::Global | Space::Generic => self.global |= piece.mask,
            Space::Shared => self.shared |= piece.mask,
            Space::Local => self.local |= piece.mask,
            Space::Const | Space::Param => self.constant |= piece.mask,
        }
    }

    /// The lanes of `lanes` in the same block of `bytes` bytes (a power of two) as the first of them, and the block's
    /// address.
    #[inline]
    pub fn block(&self, lanes: u64, bytes: u64) -> (u64, u64) {
        self.addresses.block(lanes, bytes)
    }

    /// The access is about to be sent, by lines of `line_bytes` bytes (a power of two).
    pub fn number_lines(&mut self, line_bytes: u64) {
        if let Addresses::Lanes(addresses) = &self.addresses
            && self.global != 0
        {
            let shift = line_bytes.trailing_zeros();
            // Line numbers fit 32 bits in global memory, and twice as many of them a vector.
            self.lines.iter_mut().zip(addresses).for_each(|(line, at)| *line = (at >> shift) as u32);
        }
    }

    /// As [`Transfer::block`] of global memory with the bytes of a line, which [`Transfer::number_lines`] was told.
    #[inline]
    pub fn line(&self, lanes: u64, line_bytes: u64) -> (u64, u64) {
        match &self.addresses {
            Addresses::Lanes(addresses) if !lanes.is_power_of_two() => {
                let first = lanes.trailing_zeros() as usize % N;
                (addresses[first] & !(line_bytes - 1), lanes & equal_lanes(&self.lines, self.lines[first]))
            }
            _ => self.block(lanes, line_bytes),
        }
    }

    /// The 32-byte sectors of the line at `line` that the lanes touch.
    pub fn sectors(&self, lanes: u64, line: u64) -> u8 {
        let mut sectors = 0u8;
        for lane in each(lanes) {
            let offset = (self.addresses.at(lane) - line) as u32;
            let last = offset + self.bytes - 1;
            sectors |= ((2u32 << (last / 32)) - (1 << (offset / 32))) as u8;
        }
        sectors
    }

    /// Which of `sectors` the lanes cover wholly.
    pub fn whole_sectors(&self, lanes: u64, line: u64) -> u8 {
        let mut covered = 0u128;
        let bits = if self.bytes == 32 { u32::MAX as u128 } else { (1u128 << self.bytes) - 1 };
        for lane in each(lanes) {
            covered |= bits << (self.addresses.at(lane) - line);
        }
        (0..4)
            .filter(|s| covered >> (32 * s) & u32::MAX as u128 == u32::MAX as u128)
            .fold(0, |m, s| m | 1 << s)
    }

    /// Lanes of `lanes` that name the most wanted word: how often an atomic unit must turn.
    pub fn same_word(&self, lanes: u64) -> u32 {
        match self.addresses {
            _ if lanes.is_power_of_two() => return 1,
            Addresses::Uniform(_) => return lanes.count_ones(),
            _ => {}
        }
        let mut left = lanes;
        let mut most = 0;
        while left != 0 {
            let (_, here) = self.block(left, 4);
            most = most.max(here.count_ones());
            left &= !here;
        }
        most
    }

    /// A load's lanes get their bytes from a line, of which those of `written` were ever written.
    #[inline]
    pub fn take(&mut self, line: u64, data: &[u8], written: LineWritten, lanes: u64) {
        if written != LineWritten::MAX {
            self.look_for_unwritten(line, written, lanes);
        }
        let rows = self.count_rows();
        let (addresses, bytes) = (&self.addresses, self.bytes);
        let piece = Piece { space: Space::Global, at: 0, base: line, mask: lanes, addresses, bytes };
        gather_flat(data, &piece, &mut self.rows[..rows]);
    }

    #[cold]
    fn look_for_unwritten(&mut self, line: u64, written: LineWritten, lanes: u64) {
        for lane in each(lanes) {
            let bytes = if self.kind == TransferKind::Copy { self.rows[5][lane] } else { self.bytes };
            let wanted = ((1 << bytes.min(self.bytes)) - 1) << (self.addresses.at(lane) - line);
            self.unwritten |= ((written & wanted != wanted) as u64) << lane;
        }
    }

    /// A store's lanes put their bytes into memory. Returns whether it changed.
    pub fn put(&self, memory: &mut Memory, lanes: u64, notice: bool) -> bool {
        let Some((at, base)) = self.allocation(memory, lanes) else { return false };
        let (_, data, written) = memory.allocation_mut(at);
        let addresses = &self.addresses;
        let piece = Piece { space: Space::Global, at, base, mask: lanes, addresses, bytes: self.bytes };
        let rows = &self.rows[..self.count_rows()];
        let changed = notice && {
            let mut before = [[0u32; N]; MAX_ROWS];
            gather_flat(data, &piece, &mut before[..rows.len()]);
            let keep = if self.bytes < 4 { (1u32 << (8 * self.bytes)) - 1 } else { u32::MAX };
            each(lanes)
                .any(|lane| rows.iter().zip(&before).any(|(new, old)| (new[lane] ^ old[lane]) & keep != 0))
        };
        scatter_flat(data, &piece, rows);
        if let Some(written) = written {
            for lane in each(lanes) {
                written.insert((addresses.at(lane) - base) as usize, self.bytes as usize);
            }
        }
        changed
    }

    /// The bytes of a line that the lanes touch, a bit each.
    pub fn covered(&self, lanes: u64, line: u64) -> LineWritten {
        let bits = if self.bytes == 32 { u32::MAX as u128 } else { (1u128 << self.bytes) - 1 };
        each(lanes).fold(0, |covered, lane| covered | bits << (self.addresses.at(lane) - line))
    }

    /// A store's lanes put their bytes into a line. Returns whether it changed.
    pub fn put_into_line(&self, line: u64, data: &mut [u8], lanes: u64) -> bool {
        let mut before = [0; crate::time::cache::MAX_LINE_BYTES];
        before[..data.len()].copy_from_slice(data);
        let (addresses, bytes) = (&self.addresses, self.bytes);
        let piece = Piece { space: Space::Global, at: 0, base: line, mask: lanes, addresses, bytes };
        scatter_flat(data, &piece, &self.rows[..self.count_rows()]);
        before[..data.len()] != *data
    }

    /// An atomic's lanes change memory, one after the other. Returns the lanes that changed it.
    pub fn update(&mut self, memory: &mut Memory, lanes: u64) -> u64 {
        let Some((at, base)) = self.allocation(memory, lanes) else { return 0 };
        let (_, data, written) = memory.allocation_mut(at);
        let changed = self.update_bytes(data, base, lanes);
        if let Some(written) = written {
            let bytes = self.bytes as usize;
            for lane in each(lanes) {
                let place = (self.addresses.at(lane) - base) as usize;
                self.unwritten |= (!written.contains(place, bytes) as u64) << lane;
                written.insert(place, bytes);
            }
        }
        changed
    }

    /// The same in a line, of which the bytes of `written` were ever written.
    pub fn update_line(&mut self, line: u64, data: &mut [u8], written: LineWritten, lanes: u64) -> u64 {
        if written != LineWritten::MAX {
            self.look_for_unwritten(line, written, lanes);
        }
        self.update_bytes(data, line, lanes)
    }

    /// The same in bytes that begin at address `base`.
    fn update_bytes(&mut self, data: &mut [u8], base: u64, lanes: u64) -> u64 {
        match self.bytes {
            8 => self.update_words::<8>(data, base, lanes),
            2 => self.update_words::<2>(data, base, lanes),
            _ => self.update_words::<4>(data, base, lanes),
        }
    }

    fn update_words<const BYTES: usize>(&mut self, data: &mut [u8], base: u64, lanes: u64) -> u64 {
        let TransferKind::Atomic { op, ty, .. } = self.kind else { unreachable!("called for atomics") };
        // Rows are far from each other: only those that matter are looked at.
        let operand = |rows: &[[u32; N]], row: usize, lane: usize| {
            if BYTES == 8 { pair(rows, row, lane) } else { rows[row][lane] as u64 }
        };
        let mut changed = 0;
        for lane in each(lanes) {
            let place = (self.addresses.at(lane) - base) as usize;
            let word: &mut [u8; BYTES] =
                (&mut data[place..place + BYTES]).try_into().expect("of this length");
            let mut bytes = [0; 8];
            bytes[..BYTES].copy_from_slice(word);
            let found = u64::from_le_bytes(bytes);
            let b = operand(&self.rows, 0, lane);
            let c = if op == AtomOp::Cas { operand(&self.rows, 2, lane) } else { 0 };
            let new = atomic(AtomicUnit::L2, op, ty, [found, b, c]).to_le_bytes();
            changed |= ((word[..] != new[..BYTES]) as u64) << lane;
            word.copy_from_slice(&new[..BYTES]);
            self.rows[4][lane] = found as u32;
            if BYTES == 8 {
                self.rows[5][lane] = (found >> 32) as u32;
            }
        }
        changed
    }

    /// The lanes of an atomic, of those of `lanes`, that changed what they found; it happened in the SM.
    pub fn changed_in_sm(&self, lanes: u64) -> u64 {
        let TransferKind::Atomic { op, ty, .. } = self.kind else { return 0 };
        let changed = |lane: &usize| {
            let old = pair(&self.rows, 4, *lane);
            atomic(AtomicUnit::Sm, op, ty, [old, pair(&self.rows, 0, *lane), pair(&self.rows, 2, *lane)])
                != old & (u64::MAX >> (64 - ty.bits()))
        };
        each(lanes).filter(changed).fold(0, |mask, lane| mask | 1 << lane)
    }

    /// The first lane that found bytes nobody wrote, where, and how many it wanted.
    pub fn first_unwritten(&self) -> (usize, u64, u32) {
        let lane = self.unwritten.trailing_zeros() as usize;
        let bytes = if self.kind == TransferKind::Copy { self.rows[5][lane] } else { self.bytes };
        (lane, self.addresses.at(lane), bytes.min(self.bytes))
    }

    fn allocation(&self, memory: &Memory, lanes: u64) -> Option<(usize, u64)> {
        let at = memory.find(self.addresses.at(lanes.trailing_zeros() as usize))?;
        Some((at, memory.allocation(at).0))
    }

    /// Whether it brings values to registers.
    pub fn brings_values(&self) -> bool {
        matches!(
            self.kind,
            TransferKind::Load | TransferKind::Lock { .. } | TransferKind::Atomic { silent: false, .. }
        )
    }

    /// Everything has come: registers (or shared memory) get the values.
    pub fn finish(&self, kernel: &Kernel, warp: &mut Warp<N>, cta: &mut Cta) {
        let inst = &kernel.code[self.pc.index()];
        match self.kind {
            TransferKind::Load => {
                write_back(kernel, warp, &self.activation, inst, self.mask, &self.rows[..self.count_rows()]);
            }
            TransferKind::Lock { taken } => {
                write_back(kernel, warp, &self.activation, inst, self.mask, &self.rows[..self.count_rows()]);
                warp.registers(&self.activation).write_pred(inst.dst2, taken, self.mask);
            }
            TransferKind::Store | TransferKind::Unlock { .. } => {}
            TransferKind::Atomic { ty, .. } if ty.bytes() == 8 => {
                let old = std::array::from_fn(|lane| pair(&self.rows, 4, lane));
                warp.registers(&self.activation).write64(inst.dst, &old, self.mask);
            }
            TransferKind::Atomic { .. } => {
                warp.registers(&self.activation).write32(inst.dst, &self.rows[4], self.mask);
            }
            TransferKind::Copy => {
                for lane in each(self.mask) {
                    let (to, take) = (self.rows[4][lane] as usize, self.rows[5][lane].min(self.bytes));
                    for byte in 0..self.bytes {
                        let value = (self.rows[byte as usize / 4][lane] >> (8 * (byte % 4))) as u8;
                        cta.shared.bytes[to + byte as usize] = if byte < take { value } else { 0 };
                    }
                    if let Some(written) = &mut cta.shared.written {
                        written.insert(to, self.bytes as usize);
                    }
                }
            }
        }
    }
}

fn pair<const N: usize>(rows: &[[u32; N]], low: usize, lane: usize) -> u64 {
    rows[low][lane] as u64 | (rows[low + 1][lane] as u64) << 32
}

/// Whether a global access goes to the L2 whatever the L1 holds.
fn skips_l1(access: Access) -> bool {
    access.order != Order::Weak || !matches!(access.cache, Cache::All | Cache::Cs | Cache::Lu | Cache::Nc)
}

impl Reach<'_> {
    /// Begins a memory instruction: checks its addresses and does what stays inside the SM.
    pub fn begin<const N: usize>(
        &mut self,
        issued: Issued<'_, N>,
        transfer: &mut Transfer<N>,
    ) -> Result<(), Bad> {
        match issued.inst.op {
            Op::Ld { access, .. } => self.begin_load(issued, access, transfer),
            Op::St(access) => self.begin_store(issued, access, transfer),
            Op::Atom(op, access) => self.begin_atomic(issued, op, access, transfer),
            Op::LdLock(access) => self.begin_lock(issued, access, transfer),
            Op::StUnlock(access) => self.begin_unlock(issued, access, transfer),
            Op::CpAsync(size) => self.begin_copy(issued, size as u32, transfer),
            op => unreachable!("{op:?} is no memory access"),
        }
    }

    fn begin_load<const N: usize>(
        &mut self,
        Issued { warp, activation, inst, mask }: Issued<'_, N>,
        access: Access,
        transfer: &mut Transfer<N>,
    ) -> Result<(), Bad> {
        transfer.kind = TransferKind::Load;
        transfer.bytes = access.bytes();
        transfer.skips_l1 = skips_l1(access);
        let at = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        transfer.addresses = at;
        let rows = transfer.count_rows();
        let touch = Touch { space: access.space, bytes: access.bytes(), kind: AccessKind::Load };
        self.each_space(warp, activation, touch, &at, mask, |reach, warp, piece| {
            transfer.sort(piece);
            if piece.space != Space::Global {
                reach.gather(warp, piece, &mut transfer.rows[..rows]);
            }
        })
    }

    fn begin_store<const N: usize>(
        &mut self,
        Issued { warp, activation, inst, mask }: Issued<'_, N>,
        access: Access,
        transfer: &mut Transfer<N>,
    ) -> Result<(), Bad> {
        transfer.kind = TransferKind::Store;
        transfer.bytes = access.bytes();
        let at = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        transfer.addresses = at;
        let rows = transfer.count_rows();
        // Elements narrower than a row are put into it one by one.
        transfer.rows[..rows].fill([0; N]);
        collect_rows(self.kernel, warp, activation, inst, &mut transfer.rows);
        let touch = Touch { space: access.space, bytes: access.bytes(), kind: AccessKind::Store };
        self.each_space(warp, activation, touch, &at, mask, |reach, warp, piece| {
            transfer.sort(piece);
            if piece.space != Space::Global {
                reach.scatter(warp, piece, &transfer.rows[..rows]);
            }
        })
    }

    fn begin_lock<const N: usize>(
        &mut self,
        Issued { warp, activation, inst, mask }: Issued<'_, N>,
        access: Access,
        transfer: &mut Transfer<N>,
    ) -> Result<(), Bad> {
        transfer.bytes = access.bytes();
        let at = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        (transfer.addresses, transfer.shared) = (at, mask);
        let rows = transfer.count_rows();
        let issued = Issued { warp, activation, inst, mask };
        let taken = self.lock(issued, access, &at, &mut transfer.rows[..rows])?;
        transfer.kind = TransferKind::Lock { taken };
        Ok(())
    }

    fn begin_unlock<const N: usize>(
        &mut self,
        Issued { warp, activation, inst, mask }: Issued<'_, N>,
        access: Access,
        transfer: &mut Transfer<N>,
    ) -> Result<(), Bad> {
        transfer.bytes = access.bytes();
        let at = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        (transfer.addresses, transfer.shared) = (at, mask);
        let rows = transfer.count_rows();
        transfer.rows[..rows].fill([0; N]);
        collect_rows(self.kernel, warp, activation, inst, &mut transfer.rows);
        let issued = Issued { warp, activation, inst, mask };
        let changed = self.unlock(issued, access, &at, &transfer.rows[..rows])?;
        transfer.kind = TransferKind::Unlock { changed };
        Ok(())
    }

    fn begin_atomic<const N: usize>(
        &mut self,
        Issued { warp, activation, inst, mask }: Issued<'_, N>,
        op: AtomOp,
        access: Access,
        transfer: &mut Transfer<N>,
    ) -> Result<(), Bad> {
        let ty = access.ty;
        transfer.kind = TransferKind::Atomic { op, ty, silent: inst.dst == warploom_isa::Dst::None };
        transfer.bytes = access.bytes();
        let at = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        transfer.addresses = at;
        let touch = Touch { space: access.space, bytes: access.bytes(), kind: AccessKind::Atomic };
        let wide = ty.bytes() == 8;
        if access.space == Space::Global && !wide {
            // What locks are made of; there is no need for wide operands, nor for what was found.
            let registers = warp.registers(activation);
            transfer.rows[0] = registers.read32(inst.src[2]);
            if op == AtomOp::Cas {
                transfer.rows[2] = registers.read32(inst.src[3]);
            }
            return self.each_space(warp, activation, touch, &at, mask, |_, _, piece| transfer.sort(piece));
        }
        let (b, c) = atomic_operands(self.kernel, warp, activation, inst, wide);
        for (row, values) in [(0, &b), (2, &c)] {
            transfer.rows[row] = values.map(|v| v as u32);
            transfer.rows[row + 1] = values.map(|v| (v >> 32) as u32);
        }
        let mut old = [0u64; N];
        self.each_space(warp, activation, touch, &at, mask, |reach, warp, piece| {
            transfer.sort(piece);
            if piece.space != Space::Global {
                reach.update(warp, piece, (op, ty), (&b, &c), &mut old);
            }
        })?;
        for lane in each(mask & !transfer.global) {
            transfer.rows[4][lane] = old[lane] as u32;
            transfer.rows[5][lane] = (old[lane] >> 32) as u32;
        }
        Ok(())
    }

    fn begin_copy<const N: usize>(
        &mut self,
        Issued { warp, activation, inst, mask }: Issued<'_, N>,
        bytes: u32,
        transfer: &mut Transfer<N>,
    ) -> Result<(), Bad> {
        transfer.kind = TransferKind::Copy;
        transfer.bytes = bytes;
        transfer.skips_l1 = true;
        let registers = warp.registers(activation);
        let to = registers.read32(inst.src[0]);
        let from = registers.read64(inst.src[1], &self.kernel.imms);
        let taken = registers.read32(inst.src[2]);
        (transfer.rows[4], transfer.rows[5]) = (to, taken);
        transfer.addresses = Addresses::of(from, mask);
        for lane in each(mask) {
            let (address, access) = (from[lane], AccessKind::Load);
            if !address.is_multiple_of(bytes as u64) {
                let kind = FaultKind::Misaligned { access, space: Space::Global, address, bytes };
                return Err(Bad { lane, kind });
            }
            let take = taken[lane].min(bytes);
            // Only the bytes that are taken have to exist; they need not be a power of two.
            for byte in 0..take as u64 {
                let touch = Touch { space: Space::Global, bytes: 1, kind: AccessKind::Load };
                let at = Addresses::Uniform(address.wrapping_add(byte));
                self.each_space(warp, activation, touch, &at, 1 << lane, |_, _, _| {})?;
            }
            let touch = Touch { space: Space::Shared, bytes, kind: AccessKind::Store };
            let at = Addresses::Uniform(to[lane] as u64);
            self.each_space(warp, activation, touch, &at, 1 << lane, |_, _, _| {})?;
            transfer.global |= ((take > 0) as u64) << lane;
        }
        Ok(())
    }
}

/// How many turns shared memory needs for the lanes, and how many of them because of bank conflicts. Each bank gives one
/// word a turn, to all lanes that want it.
pub fn shared_turns<const N: usize>(transfer: &Transfer<N>, lanes: u64, banks: u32) -> (u32, u32) {
    let words = transfer.bytes.div_ceil(4);
    let of: [u32; N] = match transfer.addresses {
        Addresses::Uniform(_) if words == 1 => return (1, 0),
        // Consecutive words lie in different banks.
        Addresses::Stride { step: 4, .. } if words == 1 && N as u32 <= banks => return (1, 0),
        Addresses::Lanes(lanes) => lanes.map(|address| (address / 4) as u32),
        addresses => std::array::from_fn(|lane| (addresses.at(lane) / 4) as u32),
    };
    // Wide accesses are made in passes of as many neighbouring lanes as move one word a lane of the whole warp: halves
    // for 64 bits, quarters for 128 (the programming guide, shared memory of compute capability 2.x).
    let together = N as u32 / words;
    let (mut turns, mut passes) = (0, 0);
    for pass in 0..words {
        let some = lanes & (u64::MAX >> (64 - together)) << (pass * together);
        if some != 0 {
            turns += pass_turns(&of, some, words, banks);
            passes += 1;
        }
    }
    (turns, turns - passes)
}

/// The turns of one pass: the most different words that any bank is asked for.
fn pass_turns<const N: usize>(first: &[u32; N], lanes: u64, words: u32, banks: u32) -> u32 {
    const NONE: u32 = u32::MAX;
    let mut asked = [NONE; 64];
    let mut conflict = false;
    let mut ask = |word: u32| {
        // The same word again is a broadcast.
        let before = std::mem::replace(&mut asked[(word & (banks - 1) & 63) as usize], word);
        conflict |= before != word && before != NONE;
    };
    if lanes.count_ones() as usize == N {
        first.iter().for_each(|word| ask(*word));
    } else {
        each(lanes).for_each(|lane| (0..words).for_each(|at| ask(first[lane].wrapping_add(at))));
    }
    if !conflict {
        return 1;
    }
    let mut different = [NONE; 64];
    let mut count = 0;
    let mut depth = [0u32; 64];
    for word in each(lanes).flat_map(|lane| (0..words).map(move |at| first[lane].wrapping_add(at))) {
        if !different[..count].contains(&word) {
            different[count] = word;
            count += 1;
            depth[(word & (banks - 1)) as usize] += 1;
        }
    }
    depth.into_iter().max().unwrap_or(1)
}
