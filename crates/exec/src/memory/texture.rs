//! Accesses of textures and surfaces. An access of a surface has one address per lane and is a load, store or atomic
//! like others. A fetch from a texture has up to eight: [`Texels`] keeps them for the memory system, which fetches
//! their lines one texel of all lanes after the other.
//!
//! What a texture holds must not change while a kernel runs (CUDA leaves open what a fetch then returns), so the
//! values are those that memory holds when the fetch begins.

use warploom_isa::{Access, AtomOp, Beyond, Dst, Fetch, Inst, Kernel, Op, Operand, Space, SurfaceAccess, Ty};

use crate::fault::{AccessKind, FaultKind};
use crate::kit::lane_mask::LaneMask;
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::address::Addresses;
use crate::memory::reach::{Bad, Reach};
use crate::texture::format::{ChannelKind, Format};
use crate::texture::image::Image;
use crate::texture::sample::{MAX_TEXELS, footprint, value};
use crate::warp::Warp;

/// Bytes of a fetch's result.
const RESULT_BYTES: u32 = 16;

/// Most coordinates of an instruction: a layer, three axes, and two vectors of derivatives.
const MAX_COORDINATES: usize = 10;

/// The texels of a warp's fetch.
#[derive(Clone, Debug)]
pub(super) struct Texels<const N: usize> {
    addresses: [[u64; N]; MAX_TEXELS],
    lanes: [LaneMask; MAX_TEXELS],
    /// Of all lanes, at most.
    count: usize,
    /// The one whose lines are fetched now.
    at: usize,
}

impl<const N: usize> Default for Texels<N> {
    fn default() -> Self {
        Texels { addresses: [[0; N]; MAX_TEXELS], lanes: [LaneMask::NONE; MAX_TEXELS], count: 0, at: 0 }
    }
}

/// Operands of a vector, in every lane.
fn read_vector<const N: usize, const K: usize>(
    kernel: &Kernel,
    registers: &crate::lanes::Registers<'_, N>,
    operand: Operand,
) -> ([[u32; N]; K], usize) {
    let mut values = [[0; N]; K];
    let list = match operand {
        Operand::Vec(id) => kernel.vectors[id.index()].as_slice(),
        Operand::None => &[],
        _ => std::slice::from_ref(&operand),
    };
    let count = list.len().min(K);
    for (row, &element) in values.iter_mut().zip(list) {
        *row = registers.read32(element);
    }
    (values, count)
}

impl<const N: usize> WarpAccess<N> {
    pub(super) fn begin_texture(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        fetch: Fetch,
    ) -> Result<(), Bad> {
        (self.kind, self.bytes) = (MemoryOp::Texture, 1);
        let kernel = reach.kernel;
        let registers = warp.registers(&self.activation);
        let handles = registers.read64(inst.src[0], &kernel.imms);
        let samplers = match inst.src[1] {
            Operand::None => None,
            operand => Some(registers.read64(operand, &kernel.imms)),
        };
        let (coordinates, axes) = read_vector::<N, MAX_COORDINATES>(kernel, &registers, inst.src[2]);
        let (offsets, shifts) = read_vector::<N, 3>(kernel, &registers, inst.src[3]);
        let texels = self.texels.get_or_insert_default();
        (texels.lanes, texels.count, texels.at) = ([LaneMask::NONE; MAX_TEXELS], 0, 0);
        for lane in self.mask.lanes() {
            let bad = |kind| Bad { lane, kind };
            let found = reach.textures.texture(&reach.memory, handles[lane]);
            let (image, own) = found.map_err(|error| bad(error.into()))?;
            let sampler = match &samplers {
                Some(handles) => {
                    let other = reach.textures.sampler(&reach.memory, handles[lane]);
                    let other = other.map_err(|error| bad(error.into()))?;
                    // How integers are read is the texture's.
                    &crate::texture::Sampler { normalized_read: own.normalized_read, ..*other }
                }
                None => own,
            };
            if !image.is(fetch.geometry) {
                let (asked, is) = (fetch.geometry.name(), image.geometry().name());
                return Err(bad(FaultKind::Geometry { what: "texture", asked, is }));
            }
            let at: [u32; MAX_COORDINATES] = std::array::from_fn(|number| coordinates[number][lane]);
            let shift: [u32; 3] = std::array::from_fn(|number| offsets[number][lane]);
            let print = footprint(image, sampler, fetch, &at[..axes], &shift[..shifts]);
            let mut bytes = [None; MAX_TEXELS];
            for (number, texel) in print.texels.iter().enumerate().take(print.count) {
                let Some(address) = *texel else { continue };
                let data = reach.memory.read(address, image.format.bytes() as usize);
                bytes[number] = Some(data.ok_or_else(|| bad(gone(reach, "texture", image, address)))?);
                texels.addresses[number][lane] = address;
                texels.lanes[number] |= LaneMask::of(lane);
            }
            self.bytes = self.bytes.max(image.format.bytes());
            texels.count = texels.count.max(print.count);
            let result = value(image, sampler, fetch, &print, &bytes);
            for (row, word) in self.rows.data_mut(RESULT_BYTES).iter_mut().zip(result) {
                row[lane] = word;
            }
        }
        self.addresses = Addresses::Lanes(texels.addresses[0]);
        self.lanes.global = texels.lanes[0];
        Ok(())
    }

    /// The next texel of a fetch: its lanes, without those whose lines of `line_bytes` bytes were fetched with earlier
    /// texels. None are left after the last.
    pub fn next_texels(&mut self, line_bytes: u64) -> LaneMask {
        let Some(texels) = self.texels.as_deref_mut().filter(|_| self.kind == MemoryOp::Texture) else {
            return LaneMask::NONE;
        };
        while texels.at + 1 < texels.count {
            texels.at += 1;
            let now = texels.at;
            let shift = line_bytes.trailing_zeros();
            let line = |number: usize, lane: usize| texels.addresses[number][lane] >> shift;
            let is_new = |&lane: &usize| {
                let mut before = (0..now).filter(|&number| texels.lanes[number].contains(lane));
                !before.any(|number| line(number, lane) == line(now, lane))
            };
            let lanes: LaneMask = texels.lanes[now].lanes().filter(is_new).collect();
            if !lanes.is_empty() {
                self.addresses = Addresses::Lanes(texels.addresses[now]);
                return lanes;
            }
        }
        LaneMask::NONE
    }

    /// Texels that every lane of a fetch reads, at most; 0 for other accesses.
    pub fn texels_per_lane(&self) -> usize {
        self.texels.as_ref().filter(|_| self.kind == MemoryOp::Texture).map_or(0, |texels| texels.count)
    }

    pub(super) fn finish_texture(&self, kernel: &Kernel, warp: &mut Warp<N>, inst: &Inst) {
        let mut registers = warp.registers(&self.activation);
        let rows = self.rows.data(RESULT_BYTES);
        match inst.dst {
            Dst::Vec(id) => {
                for (operand, row) in kernel.vectors[id.index()].iter().zip(rows) {
                    if let Operand::Reg(reg) = operand {
                        registers.write32(Dst::Reg(*reg), row, self.mask);
                    }
                }
            }
            dst => registers.write32(dst, &rows[0], self.mask),
        }
    }

    pub(super) fn begin_surface(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        (access, atomic): (SurfaceAccess, Option<AtomOp>),
    ) -> Result<(), Bad> {
        let kernel = reach.kernel;
        let registers = warp.registers(&self.activation);
        let handles = registers.read64(inst.src[0], &kernel.imms);
        let (coordinates, _) = read_vector::<N, 4>(kernel, &registers, inst.src[1]);
        let mut plain = surface_words(access);
        let mut bytes = plain.bytes();
        let mut format: Option<Format> = None;
        let (mut addresses, mut inside) = ([0; N], LaneMask::NONE);
        for lane in self.mask.lanes() {
            let bad = |kind| Bad { lane, kind };
            let image =
                reach.textures.surface(&reach.memory, handles[lane]).map_err(|error| bad(error.into()))?;
            if !image.is(access.geometry) {
                let (asked, is) = (access.geometry.name(), image.geometry().name());
                return Err(bad(FaultKind::Geometry { what: "surface", asked, is }));
            }
            if access.formatted {
                if *format.get_or_insert(image.format) != image.format {
                    return Err(bad(FaultKind::SurfaceFormats));
                }
                match atomic {
                    None => bytes = image.format.bytes(),
                    Some(_) => plain.ty = element_type(access.ty, image.format.kind),
                }
            }
            let at: [u32; 4] = std::array::from_fn(|number| coordinates[number][lane]);
            if let Some(address) = place(image, access, bytes, at).map_err(bad)? {
                reach
                    .memory
                    .read(address, bytes as usize)
                    .ok_or_else(|| bad(gone(reach, "surface", image, address)))?;
                addresses[lane] = address;
                inside |= LaneMask::of(lane);
            }
        }
        self.addresses = Addresses::Lanes(addresses);
        let whole = std::mem::replace(&mut self.mask, inside);
        // Lanes beyond the edges load zeros.
        self.rows.data_mut(bytes).iter_mut().for_each(|row| *row = [0; N]);
        self.bytes = bytes;
        let done = match (inst.op, atomic, format) {
            (Op::SurfaceLd(_), ..) => self.load_from(reach, warp, plain),
            (_, None, Some(format)) => self.store_texels(reach, warp, inst, format),
            (_, None, None) => self.store_to(reach, warp, inst, plain),
            (_, Some(op), _) => self.update_at(reach, warp, inst, op, plain),
        };
        self.mask = whole;
        done
    }

    /// A formatted store whose addresses are known.
    fn store_texels(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        format: Format,
    ) -> Result<(), Bad> {
        let (values, _) = read_vector::<N, 4>(reach.kernel, &warp.registers(&self.activation), inst.src[2]);
        for lane in self.mask.lanes() {
            // Channels that the instruction does not name become 0.
            let texel = format.texel(std::array::from_fn(|channel| values[channel][lane]));
            for (row, word) in self.rows.data_mut(self.bytes).iter_mut().zip(texel) {
                row[lane] = word;
            }
        }
        self.store_rows(reach, warp, Space::Global)
    }
}

/// The type of a formatted reduction's elements.
fn element_type(bits: Ty, kind: ChannelKind) -> Ty {
    match (bits.is_wide(), kind) {
        (false, ChannelKind::Signed) => Ty::S32,
        (false, _) => Ty::U32,
        (true, ChannelKind::Signed) => Ty::S64,
        (true, _) => Ty::U64,
    }
}

/// A surface's elements as an access of global memory.
pub(super) fn surface_words(access: SurfaceAccess) -> Access {
    Access { count: access.count, ..Access::plain(Space::Global, access.ty) }
}

/// Where an access of so many bytes of a surface goes; `None` if it goes nowhere.
fn place(image: &Image, access: SurfaceAccess, bytes: u32, at: [u32; 4]) -> Result<Option<u64>, FaultKind> {
    let layered = access.geometry.is_layered();
    let first = usize::from(layered);
    let bytes = i64::from(bytes);
    let row = i64::from(image.extent[0]) * i64::from(image.format.bytes());
    let slices = if layered { image.layers } else { image.extent[2] };
    let axes = access.geometry.axes();
    let signed = |number: usize| i64::from(at[number] as i32);
    let y = if axes > 1 { signed(first + 1) } else { 0 };
    let slice = if layered {
        signed(0)
    } else if axes > 2 {
        signed(2)
    } else {
        0
    };
    // The last place at which an element fits, in each direction.
    let most = [row - bytes, i64::from(image.extent[1].max(1)) - 1, i64::from(slices.max(1)) - 1];
    let x = signed(first) * if access.formatted { bytes } else { 1 };
    let wanted = [x, y, slice];
    if wanted[0] % bytes != 0 {
        return Err(FaultKind::SurfaceMisaligned { x: wanted[0], bytes: bytes as u32 });
    }
    let inside = wanted.iter().zip(most).all(|(&at, most)| (0..=most).contains(&at));
    let clamped: [i64; 3] = std::array::from_fn(|axis| wanted[axis].clamp(0, most[axis].max(0)));
    let [x, y, slice] = match access.beyond {
        _ if inside => wanted,
        Beyond::Clamp if most[0] >= 0 => [clamped[0] / bytes * bytes, clamped[1], clamped[2]],
        Beyond::Zero => return Ok(None),
        _ => {
            let [x, y, z] = wanted;
            let [width, height, depth] = image.extent;
            return Err(FaultKind::BeyondSurface { x, y, z, row, width, height, depth });
        }
    };
    Ok(Some(image.address + image.offset(x as u64, y as u64, slice as u64)))
}

#[cold]
fn gone(reach: &Reach<'_>, what: &'static str, image: &Image, address: u64) -> FaultKind {
    let place = reach.memory.describe(address, u64::from(image.format.bytes()));
    let (access, bytes) = (AccessKind::Load, image.format.bytes());
    FaultKind::OutOfBounds {
        access,
        space: Space::Global,
        address,
        bytes,
        place: format!("the memory of this {what} is gone: {place}"),
    }
}
