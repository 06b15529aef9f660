//! A texture fetch of one thread: which texels it reads, with what weights, and what it returns.
//!
//! The formulas are those of the CUDA programming guide's chapter on texture fetching. Where the guide leaves something
//! open, the H200 decides: coordinates are rounded to 8 bits of fraction, halves up; weights have 8 bits each. NaN is
//! the coordinate 0.

use half::f16;
use warploom_isa::{Fetch, FetchMode, Geometry, Ty};

use crate::texture::image::{Image, Layout};
use crate::texture::{AddressMode, Sampler};

/// Texels of a filter in three dimensions.
pub const MAX_TEXELS: usize = 8;

/// The texels that a fetch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Their addresses; `None` beyond the border.
    pub texels: [Option<u64>; MAX_TEXELS],
    /// In 256ths.
    pub weights: [u32; MAX_TEXELS],
    pub count: usize,
}

/// A coordinate as the number of a texel and the fraction towards the next, in 256ths.
#[derive(Clone, Copy, Debug)]
struct Axis {
    texel: i64,
    fraction: u32,
    extent: u32,
    mode: AddressMode,
}

impl Axis {
    /// The texel `step` behind the first.
    fn index(self, step: i64) -> Option<u32> {
        let (at, extent) = (self.texel.saturating_add(step), i64::from(self.extent));
        let inside = match self.mode {
            AddressMode::Clamp => at.clamp(0, extent - 1),
            AddressMode::Wrap => at.rem_euclid(extent),
            AddressMode::Mirror => match at.rem_euclid(2 * extent) {
                ahead if ahead < extent => ahead,
                back => 2 * extent - 1 - back,
            },
            AddressMode::Border => (0..extent).contains(&at).then_some(at)?,
        };
        Some(inside as u32)
    }
}

/// How a fetch finds texels: what its texture, its sampler and its instruction say together.
#[derive(Clone, Copy, Debug)]
struct Rules {
    sampler: Sampler,
    /// Two texels of each axis are read.
    pairs: bool,
    integer: bool,
}

impl Rules {
    fn new(image: &Image, sampler: &Sampler, fetch: Fetch) -> Rules {
        let mut sampler = *sampler;
        if image.layout != Layout::Blocks && fetch.geometry == Geometry::D1 {
            // Linear memory has no edges to continue.
            sampler.address = [AddressMode::Border; 3];
            sampler.border = [0.0; 4];
            (sampler.linear, sampler.normalized) = (false, false);
        }
        if fetch.geometry.is_cube() {
            // At the edge of a face, the modes apply as at that of an image.
            sampler.normalized = true;
        }
        sampler.normalized &= !fetch.integer;
        let blends = sampler.linear && image.format.blends(sampler.normalized_read);
        let pairs = (blends || matches!(fetch.mode, FetchMode::Gather(_))) && !fetch.integer;
        Rules { sampler, pairs, integer: fetch.integer }
    }

    fn axis(&self, number: usize, extent: u32, bits: u32, offset: i32) -> Axis {
        let extent = extent.max(1);
        let mode = match self.sampler.address[number] {
            AddressMode::Wrap | AddressMode::Mirror if !self.sampler.normalized => AddressMode::Clamp,
            mode => mode,
        };
        let offset = i64::from(offset);
        if self.integer {
            return Axis { texel: i64::from(bits as i32) + offset, fraction: 0, extent, mode };
        }
        let at = f64::from(f32::from_bits(bits));
        let at = match mode {
            _ if at.is_nan() => 0.0,
            _ if !self.sampler.normalized => at,
            // A whole number of periods away is the same place, however far.
            AddressMode::Wrap | AddressMode::Mirror if at.is_infinite() => 0.0,
            AddressMode::Wrap => at.rem_euclid(1.0) * f64::from(extent),
            AddressMode::Mirror => at.rem_euclid(2.0) * f64::from(extent),
            _ => at * f64::from(extent),
        };
        // Casts saturate, far enough for any extent.
        let (texel, fraction) = if self.pairs {
            let fixed = ((at * 256.0 + 0.5).floor() as i64).saturating_sub(128);
            (fixed >> 8, (fixed & 255) as u32)
        } else {
            (at.floor() as i64, 0)
        };
        let texel = texel.saturating_add(offset);
        // What is clamped is at the centre of its texel.
        let clamped = mode == AddressMode::Clamp && !(0..i64::from(extent) - 1).contains(&texel);
        Axis { texel, fraction: if clamped { 0 } else { fraction }, extent, mode }
    }
}

/// The face of a cube that a direction meets, and the two coordinates there.
fn face([x, y, z]: [f32; 3]) -> (u32, [f32; 2]) {
    let [ax, ay, az] = [x, y, z].map(f32::abs);
    let (face, major, s, t) = if ax >= ay && ax >= az {
        if x >= 0.0 { (0, ax, -z, -y) } else { (1, ax, z, -y) }
    } else if ay >= az {
        if y >= 0.0 { (2, ay, x, z) } else { (3, ay, x, -z) }
    } else if z >= 0.0 {
        (4, az, x, -y)
    } else {
        (5, az, -x, -y)
    };
    (face, [(s / major + 1.0) / 2.0, (t / major + 1.0) / 2.0])
}

/// The texels of a fetch. `coordinates` begin with the layer, if the geometry has layers.
pub fn footprint(
    image: &Image,
    sampler: &Sampler,
    fetch: Fetch,
    coordinates: &[u32],
    offsets: &[u32],
) -> Footprint {
    let rules = Rules::new(image, sampler, fetch);
    let geometry = fetch.geometry;
    let at = |number: usize| coordinates.get(number).copied().unwrap_or(0);
    let first = usize::from(geometry.is_layered());
    let layer = if geometry.is_layered() { (at(0) as i32).max(0) as u32 } else { 0 };
    let (mut places, mut slice) = ([at(first), at(first + 1), at(first + 2)], layer);
    if geometry.is_cube() {
        let (face, [s, t]) = face(places.map(f32::from_bits));
        let cubes = image.layers / 6;
        (places, slice) =
            ([s.to_bits(), t.to_bits(), 0], layer.min(cubes.saturating_sub(1)).saturating_mul(6) + face);
    }
    let slice = slice.min(image.layers.saturating_sub(1));
    let axes = match geometry {
        _ if geometry.is_cube() => 2,
        // A line of texels is an image with one row, fetched at its upper edge. Where the border begins there, half of
        // it is border.
        Geometry::D1 | Geometry::A1 if rules.pairs && sampler.address[1] == AddressMode::Border => 2,
        _ => geometry.axes(),
    };
    if geometry.axes() == 1 {
        places[1] = 0;
    }
    let offset = |number: usize| offsets.get(number).copied().unwrap_or(0) as i32;
    let axis: [Axis; 3] = std::array::from_fn(|number| {
        rules.axis(number, image.extent[number], places[number], offset(number))
    });
    let count = if rules.pairs { 1 << axes } else { 1 };
    let mut found = Footprint { texels: [None; MAX_TEXELS], weights: weights(axis, axes), count };
    for (number, texel) in found.texels.iter_mut().enumerate().take(count) {
        let step = |axis: usize| (number >> axis & 1) as i64;
        let index = |number: usize| if number < axes { axis[number].index(step(number)) } else { Some(0) };
        if let (Some(x), Some(y), Some(z)) = (index(0), index(1), index(2)) {
            *texel = Some(image.texel(x, y, if axes == 3 { z } else { slice }));
        }
    }
    found
}

/// The weights of texels, whose numbers have a bit for each axis. They are split along z, then x, then y, each time
/// into whole 256ths; halves go up on the far side of x and down on the near one. So the H200 does it.
fn weights(axis: [Axis; 3], axes: usize) -> [u32; MAX_TEXELS] {
    let mut weights = [0; MAX_TEXELS];
    weights[0] = 256;
    for number in [2, 0, 1].into_iter().filter(|&number| number < axes) {
        for texel in 0..MAX_TEXELS {
            let far = texel | 1 << number;
            if far == texel {
                continue;
            }
            let half = if number == 0 || texel & 1 == 1 { 128 } else { 127 };
            weights[far] = (weights[texel] * axis[number].fraction + half) / 256;
            weights[texel] -= weights[far];
        }
    }
    weights
}

/// What a fetch returns, from the bytes of its texels. A texel that cannot be read is `None` and counts as border.
pub fn value<'m>(
    image: &Image,
    sampler: &Sampler,
    fetch: Fetch,
    footprint: &Footprint,
    texels: &[Option<&'m [u8]>; MAX_TEXELS],
) -> [u32; 4] {
    let Rules { sampler, pairs, .. } = Rules::new(image, sampler, fetch);
    let (format, normalized) = (image.format, sampler.normalized_read);
    let plain = |texel: Option<&'m [u8]>, channel: usize| match texel {
        Some(texel) => format.plain(texel, channel, normalized),
        None => format.border(&sampler.border, channel, normalized),
    };
    let values: [u32; 4] = match fetch.mode {
        // Counter-clockwise from the lower left.
        FetchMode::Gather(channel) => [2, 3, 1, 0].map(|number| plain(texels[number], channel.into())),
        _ if pairs => std::array::from_fn(|channel| {
            let weighed = footprint.weights.iter().copied().zip(texels.iter().copied()).take(footprint.count);
            format.blend(weighed, &sampler.border, channel)
        }),
        _ => std::array::from_fn(|channel| plain(texels[0], channel)),
    };
    if fetch.ty != Ty::F16x2 {
        return values;
    }
    let half = |at: usize| u32::from(f16::from_f32(f32::from_bits(values[at])).to_bits());
    [half(0) | half(1) << 16, half(2) | half(3) << 16, 0, 0]
}

#[cfg(test)]
mod tests;
