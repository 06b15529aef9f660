//! The load/store unit's function: which bytes an access of a warp touches, checked for space, bounds and alignment.
//!
//! Data moves between registers and memory as rows of words, one row for every four bytes a lane moves; narrower
//! accesses use the low bits of one row.

use warploom_isa::{AtomOp, Dst, Inst, Kernel, Op, Operand, Space, Ty};

use crate::exec::fault::{AccessKind, FaultKind};
use crate::exec::lanes;
use crate::exec::locks::notes::LockNotes;
use crate::exec::locks::unit::LockUnit;
use crate::exec::memory::address::{Addresses, addresses};
use crate::exec::memory::bytes::{
    Piece, extend, gather_flat, gather_local, scatter_flat, scatter_local, update_flat,
};
use crate::exec::memory::shared::Shared;
use crate::exec::memory::store::Global;
use crate::exec::warp::Warp;
use crate::exec::warp::control::Activation;
use crate::kit::bits::{BitSet, lanes as each};

/// A lane's bad access.
#[derive(Debug)]
pub struct Bad {
    /// Which lane.
    pub lane: usize,
    /// What it did.
    pub kind: FaultKind,
}

/// Everything a warp can reach besides its own registers and local memory.
pub struct Reach<'a> {
    /// The running kernel.
    pub kernel: &'a Kernel,
    /// Global memory.
    pub memory: Global<'a>,
    /// The CTA's scratchpad.
    pub shared: &'a mut Shared,
    /// The CTA's number in the grid.
    pub cta: u64,
    /// The lock bits of its SM, if the kernel uses them.
    pub lock_unit: Option<&'a mut LockUnit>,
    /// What looks wrong with the use of lock bits.
    pub lock_notes: &'a mut LockNotes,
    /// The constant bank.
    pub constants: &'a [u8],
    /// The parameter buffer.
    pub params: &'a [u8],
    /// Lanes that read never-written bytes, where that is tracked: (lane, space, address), first one a warp access.
    pub uninitialised: Option<(usize, Space, u64, u32)>,
}

/// A memory instruction that a warp issues.
pub struct Issued<'a, const N: usize> {
    /// The warp.
    pub warp: &'a mut Warp<N>,
    /// Where it is.
    pub activation: &'a Activation,
    /// The instruction.
    pub inst: &'a Inst,
    /// The lanes that take part.
    pub mask: u64,
}

/// What every lane of an access does.
#[derive(Clone, Copy)]
pub(crate) struct Touch {
    pub(crate) space: Space,
    pub(crate) bytes: u32,
    pub(crate) kind: AccessKind,
}

/// Rows of words for the largest access, 32 bytes a lane.
pub const MAX_ROWS: usize = 8;

impl Reach<'_> {
    /// Executes a load.
    pub fn load<const N: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Op::Ld { access, .. } = issued.inst.op else { unreachable!("called for loads") };
        match access.bytes() {
            ..=4 => self.load_rows::<N, 1>(issued),
            8 => self.load_rows::<N, 2>(issued),
            _ => self.load_rows::<N, MAX_ROWS>(issued),
        }
    }

    #[inline]
    fn load_rows<const N: usize, const ROWS: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Issued { warp, activation, inst, mask } = issued;
        let Op::Ld { access, .. } = inst.op else { unreachable!("called for loads") };
        let addresses = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        let mut rows = [[0u32; N]; ROWS];
        let rows = &mut rows[..(access.bytes() as usize).div_ceil(4)];
        self.each_space(
            warp,
            activation,
            Touch { space: access.space, bytes: access.bytes(), kind: AccessKind::Load },
            &addresses,
            mask,
            |reach, warp, at| reach.gather(warp, at, rows),
        )?;
        write_back(self.kernel, warp, activation, inst, mask, rows);
        Ok(())
    }

    /// Executes a store.
    pub fn store<const N: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Op::St(access) = issued.inst.op else { unreachable!("called for stores") };
        match access.bytes() {
            ..=4 => self.store_rows::<N, 1>(issued),
            8 => self.store_rows::<N, 2>(issued),
            _ => self.store_rows::<N, MAX_ROWS>(issued),
        }
    }

    #[inline]
    fn store_rows<const N: usize, const ROWS: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Issued { warp, activation, inst, mask } = issued;
        let Op::St(access) = inst.op else { unreachable!("called for stores") };
        let addresses = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        let mut rows = [[0u32; N]; ROWS];
        collect_rows(self.kernel, warp, activation, inst, &mut rows);
        let rows = &rows[..(access.bytes() as usize).div_ceil(4)];
        self.each_space(
            warp,
            activation,
            Touch { space: access.space, bytes: access.bytes(), kind: AccessKind::Store },
            &addresses,
            mask,
            |reach, warp, at| reach.scatter(warp, at, rows),
        )
    }

    /// Executes an atomic, lane by lane.
    pub fn atomic<const N: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Issued { warp, activation, inst, mask } = issued;
        let Op::Atom(op, access) = inst.op else { unreachable!("called for atomics") };
        let addresses = addresses(self.kernel, warp, activation, inst, access.wide_address, mask);
        let wide = access.ty.bytes() == 8;
        let (b, c) = atomic_operands(self.kernel, warp, activation, inst, wide);
        let mut old = [0u64; N];
        self.each_space(
            warp,
            activation,
            Touch { space: access.space, bytes: access.bytes(), kind: AccessKind::Atomic },
            &addresses,
            mask,
            |reach, warp, at| reach.update(warp, at, (op, access.ty), (&b, &c), &mut old),
        )?;
        write_old(warp, activation, inst, wide, mask, &old);
        Ok(())
    }

    /// Copies bytes of global memory to shared memory, as `cp.async` does.
    pub fn copy_async<const N: usize>(&mut self, issued: Issued<'_, N>) -> Result<(), Bad> {
        let Issued { warp, activation, inst, mask } = issued;
        let Op::CpAsync(size) = inst.op else { unreachable!("called for asynchronous copies") };
        let registers = warp.registers(activation);
        let to = registers.read32(inst.src[0]).map(|a| a as u64);
        let from = registers.read64(inst.src[1], &self.kernel.imms);
        let taken = registers.read32(inst.src[2]);
        // Lanes that take fewer bytes than the copy's size read only those.
        for lane in each(mask) {
            let (address, bytes) = (from[lane], size as u32);
            if !address.is_multiple_of(bytes as u64) {
                let (access, space) = (AccessKind::Load, Space::Global);
                return Err(Bad { lane, kind: FaultKind::Misaligned { access, space, address, bytes } });
            }
            let take = taken[lane].min(size as u32);
            let mut rows = [[0u32; N]; 4];
            for byte in 0..take {
                let at = Addresses::Uniform(from[lane].wrapping_add(byte as u64));
                let mut one = [[0u32; N]; 1];
                self.each_space(
                    warp,
                    activation,
                    Touch { space: Space::Global, bytes: 1, kind: AccessKind::Load },
                    &at,
                    1 << lane,
                    |reach, warp, at| reach.gather(warp, at, &mut one),
                )?;
                rows[byte as usize / 4][lane] |= one[0][lane] << (8 * (byte % 4));
            }
            if let Some(found) = self.uninitialised.as_mut().filter(|found| found.0 == lane) {
                (found.2, found.3) = (from[lane], take);
            }
            let rows = &rows[..size as usize / 4];
            let at = Addresses::Uniform(to[lane]);
            self.each_space(
                warp,
                activation,
                Touch { space: Space::Shared, bytes: size as u32, kind: AccessKind::Store },
                &at,
                1 << lane,
                |reach, warp, at| reach.scatter(warp, at, rows),
            )?;
        }
        Ok(())
    }

    /// Reads one 64-bit word of shared memory for a lane, and lets `f` change it.
    pub fn update_shared64<R>(
        &mut self,
        lane: usize,
        address: u64,
        f: impl FnOnce(u64) -> Result<(u64, R), FaultKind>,
    ) -> Result<R, Bad> {
        let bad = |kind| Bad { lane, kind };
        if !address.is_multiple_of(8) {
            let (access, space) = (AccessKind::Atomic, Space::Shared);
            return Err(bad(FaultKind::Misaligned { access, space, address, bytes: 8 }));
        }
        let size = self.shared.bytes.len();
        let Some(bytes) =
            usize::try_from(address).ok().and_then(|at| self.shared.bytes.get_mut(at..)?.get_mut(..8))
        else {
            let place = past_end(address, size as u64, "the CTA's shared memory");
            let (access, space) = (AccessKind::Atomic, Space::Shared);
            return Err(bad(FaultKind::OutOfBounds { access, space, address, bytes: 8, place }));
        };
        let old = u64::from_le_bytes((&*bytes).try_into().expect("eight bytes"));
        let (new, result) = f(old).map_err(bad)?;
        bytes.copy_from_slice(&new.to_le_bytes());
        if let Some(written) = &mut self.shared.written {
            written.insert(address as usize, 8);
        }
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
        self.each_space(
            warp,
            activation,
            Touch { space: Space::Generic, bytes: 1, kind: AccessKind::Load },
            &at,
            1 << lane,
            |reach, warp, at| reach.gather(warp, at, &mut row),
        )?;
        Ok(row[0][lane] as u8)
    }

    /// Checks alignment and bounds, and hands each group of lanes that lie in one piece of memory to `f`.
    pub(crate) fn each_space<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        touch: Touch,
        addresses: &Addresses<N>,
        mask: u64,
        mut f: impl FnMut(&mut Self, &mut Warp<N>, &Piece<'_, N>),
    ) -> Result<(), Bad> {
        if touch.space != Space::Generic {
            return self.one_space(warp, activation, touch, addresses, mask, &mut f);
        }
        let windows = self.kernel.windows;
        let mut left = mask;
        while left != 0 {
            let space = windows.space_of(addresses.at(left.trailing_zeros() as usize));
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
            self.one_space(warp, activation, Touch { space, ..touch }, &inside, here, &mut f)?;
            left &= !here;
        }
        Ok(())
    }

    fn one_space<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        activation: &Activation,
        Touch { space, bytes, kind }: Touch,
        addresses: &Addresses<N>,
        mask: u64,
        f: &mut impl FnMut(&mut Self, &mut Warp<N>, &Piece<'_, N>),
    ) -> Result<(), Bad> {
        if !addresses.aligned(mask, bytes as u64) {
            let lane =
                each(mask).find(|&l| addresses.at(l) & (bytes as u64 - 1) != 0).expect("some lane is off");
            let address = addresses.at(lane);
            return Err(Bad { lane, kind: FaultKind::Misaligned { access: kind, space, address, bytes } });
        }
        if matches!(space, Space::Const | Space::Param) && kind != AccessKind::Load {
            let lane = mask.trailing_zeros() as usize;
            let address = addresses.at(lane);
            return Err(Bad { lane, kind: FaultKind::ReadOnly { access: kind, space, address, bytes } });
        }
        let piece = |at, base, mask| Piece { space, at, base, mask, addresses, bytes };
        let mut left = mask;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let address = addresses.at(lane);
            let (at, base, len) = match space {
                Space::Global | Space::Generic => match self.memory.find(address) {
                    Some(at) => {
                        let (base, data) = self.memory.allocation(at);
                        (at, base, data.len() as u64)
                    }
                    None => (0, 0, 0),
                },
                Space::Shared => (0, 0, self.shared.bytes.len() as u64),
                Space::Const => (0, 0, self.constants.len() as u64),
                Space::Param => (0, 0, self.params.len() as u64),
                Space::Local => (0, 0, local_extent(self.kernel, activation)),
            };
            let room = (len + 1).saturating_sub(bytes as u64);
            let here = addresses.within(left, base, room);
            if here >> lane & 1 == 0 {
                let place = self.describe(space, address, bytes, activation);
                return Err(Bad {
                    lane,
                    kind: FaultKind::OutOfBounds { access: kind, space, address, bytes, place },
                });
            }
            f(self, warp, &piece(at, base, here));
            left &= !here;
        }
        Ok(())
    }

    fn describe(&self, space: Space, address: u64, bytes: u32, activation: &Activation) -> String {
        match space {
            Space::Global | Space::Generic => {
                let near = self.memory.describe(address, bytes as u64);
                if address < 4096 { "a null pointer".to_string() } else { near }
            }
            Space::Shared => {
                let len = self.shared.bytes.len() as u64;
                let near =
                    self.kernel.shared.iter().rev().find(|v| v.bytes > 0 && v.offset as u64 <= address);
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
                past_end(address, local_extent(self.kernel, activation), &what)
            }
        }
    }

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
        }
    }

    fn flat_mut(&mut self, space: Space, at: usize) -> (&mut [u8], Option<&mut BitSet>) {
        match space {
            Space::Shared => (&mut self.shared.bytes, self.shared.written.as_mut()),
            _ => {
                let (_, bytes, written) = self.memory.allocation_mut(at);
                (bytes, written)
            }
        }
    }

    pub(crate) fn gather<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        piece: &Piece<'_, N>,
        rows: &mut [[u32; N]],
    ) {
        if piece.space == Space::Local {
            return gather_local(warp, piece, rows);
        }
        gather_flat(self.flat(piece.space, piece.at).1, piece, rows);
        let unwritten = self.unwritten_lane(piece);
        self.note_unwritten(unwritten, piece);
    }

    /// The first lane that wants bytes nobody wrote, where that is tracked.
    #[inline]
    fn unwritten_lane<const N: usize>(&self, piece: &Piece<'_, N>) -> Option<usize> {
        let (base, _, written) = self.flat(piece.space, piece.at);
        let written = written?;
        let known =
            |lane: usize| written.contains((piece.addresses.at(lane) - base) as usize, piece.bytes as usize);
        each(piece.mask).find(|&lane| !known(lane))
    }

    #[inline]
    fn note_unwritten<const N: usize>(&mut self, lane: Option<usize>, piece: &Piece<'_, N>) {
        if let Some(lane) = lane {
            self.uninitialised.get_or_insert((lane, piece.space, piece.addresses.at(lane), piece.bytes));
        }
    }

    pub(crate) fn scatter<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        piece: &Piece<'_, N>,
        rows: &[[u32; N]],
    ) {
        if piece.space == Space::Local {
            return scatter_local(warp, piece, rows);
        }
        let (data, written) = self.flat_mut(piece.space, piece.at);
        scatter_flat(data, piece, rows);
        note_written(written, piece);
    }

    pub(crate) fn update<const N: usize>(
        &mut self,
        warp: &mut Warp<N>,
        piece: &Piece<'_, N>,
        (op, ty): (AtomOp, Ty),
        (b, c): (&[u64; N], &[u64; N]),
        old: &mut [u64; N],
    ) {
        if piece.space != Space::Local {
            let unwritten = self.unwritten_lane(piece);
            let (data, written) = self.flat_mut(piece.space, piece.at);
            update_flat(data, piece, (op, ty), (b, c), old);
            note_written(written, piece);
            return self.note_unwritten(unwritten, piece);
        }
        for lane in each(piece.mask) {
            let one = Piece { mask: 1 << lane, ..*piece };
            let mut rows = [[0u32; N]; 2];
            let rows = &mut rows[..(piece.bytes as usize).div_ceil(4)];
            gather_local(warp, &one, rows);
            old[lane] = rows[0][lane] as u64 | rows.get(1).map_or(0, |high| (high[lane] as u64) << 32);
            let new = lanes::atomic(lanes::AtomicUnit::Sm, op, ty, [old[lane], b[lane], c[lane]]);
            rows[0][lane] = new as u32;
            if let Some(high) = rows.get_mut(1) {
                high[lane] = (new >> 32) as u32;
            }
            scatter_local(warp, &one, rows);
        }
    }
}

/// Writes what a load found to its registers. `rows` are as many as the access has.
#[inline(always)]
pub(crate) fn write_back<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    inst: &Inst,
    mask: u64,
    rows: &[[u32; N]],
) {
    let (access, wide) = match inst.op {
        Op::Ld { access, wide } => (access, wide),
        Op::LdLock(access) => (access, access.ty.is_wide()),
        _ => unreachable!("called for loads"),
    };
    let mut registers = warp.registers(activation);
    let mut put = |dst: Dst, element: usize| {
        let (low, high) = extend(rows, access.ty, element);
        if wide {
            let mut both = [0u64; N];
            for lane in 0..N {
                both[lane] = low[lane] as u64 | (high[lane] as u64) << 32;
            }
            registers.write64(dst, &both, mask);
        } else {
            registers.write32(dst, &low, mask);
        }
    };
    match inst.dst {
        Dst::Vec(id) => {
            for (element, operand) in kernel.vectors[id.index()].iter().enumerate() {
                if let Operand::Reg(reg) = operand {
                    put(Dst::Reg(*reg), element);
                }
            }
        }
        dst if rows.len() == 1 && access.ty.bytes() == 4 && !wide => {
            registers.write32(dst, &rows[0], mask);
        }
        dst => put(dst, 0),
    }
}

/// What a store writes, as rows.
#[inline(always)]
pub(crate) fn collect_rows<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    inst: &Inst,
    rows: &mut [[u32; N]],
) {
    let (Op::St(access) | Op::StUnlock(access)) = inst.op else { unreachable!("called for stores") };
    let registers = warp.registers(activation);
    let mut take = |operand: Operand, element: usize| match access.ty.bytes() {
        8 => {
            let value = registers.read64(operand, &kernel.imms);
            for lane in 0..N {
                rows[2 * element][lane] = value[lane] as u32;
                rows[2 * element + 1][lane] = (value[lane] >> 32) as u32;
            }
        }
        4 => rows[element] = registers.read32(operand),
        bytes => {
            let value = registers.read32(operand);
            let bit = element * bytes as usize * 8;
            let field = (1u32 << (8 * bytes)) - 1;
            for lane in 0..N {
                rows[bit / 32][lane] |= (value[lane] & field) << (bit % 32);
            }
        }
    };
    match inst.src[2] {
        Operand::Vec(id) => {
            for (element, operand) in kernel.vectors[id.index()].iter().enumerate() {
                take(*operand, element);
            }
        }
        operand => take(operand, 0),
    }
}

/// The operands of an atomic.
#[inline]
pub(crate) fn atomic_operands<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    inst: &Inst,
    wide: bool,
) -> ([u64; N], [u64; N]) {
    let registers = warp.registers(activation);
    let read = |operand: Operand| -> [u64; N] {
        match operand {
            Operand::None => [0; N],
            operand if wide => registers.read64(operand, &kernel.imms),
            operand => registers.read32(operand).map(|v| v as u64),
        }
    };
    (read(inst.src[2]), read(inst.src[3]))
}

/// Writes what an atomic found to its register.
fn write_old<const N: usize>(
    warp: &mut Warp<N>,
    activation: &Activation,
    inst: &Inst,
    wide: bool,
    mask: u64,
    old: &[u64; N],
) {
    let mut registers = warp.registers(activation);
    if wide {
        registers.write64(inst.dst, old, mask);
    } else {
        registers.write32(inst.dst, &old.map(|v| v as u32), mask);
    }
}

fn note_written<const N: usize>(written: Option<&mut BitSet>, piece: &Piece<'_, N>) {
    if let Some(written) = written {
        for lane in each(piece.mask) {
            written.insert((piece.addresses.at(lane) - piece.base) as usize, piece.bytes as usize);
        }
    }
}

/// How far a thread's local memory reaches while this activation runs.
fn local_extent(kernel: &Kernel, activation: &Activation) -> u64 {
    activation.frame as u64 + kernel.functions[activation.function as usize].frame_bytes as u64
}

fn past_end(address: u64, len: u64, what: &str) -> String {
    if len == 0 {
        format!("{what} (0 bytes) holds nothing")
    } else if address >= len {
        match address - len {
            0 => format!("right past the end of {what} ({len} bytes)"),
            past => format!("{past} bytes past the end of {what} ({len} bytes)"),
        }
    } else {
        format!("runs over the end of {what} ({len} bytes)")
    }
}
