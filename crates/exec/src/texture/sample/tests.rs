use super::*;
use crate::texture::format::{ChannelKind, Format};

const H200: &str = include_str!("h200.txt");

/// Width and height of the recorded textures.
const EXTENT: [u32; 2] = [13, 6];

fn words(text: &str) -> Vec<u32> {
    text.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The rest of the line that begins so.
fn line(begin: &str) -> &'static str {
    let found = H200.lines().find_map(|line| line.strip_prefix(begin));
    found.unwrap_or_else(|| panic!("no line `{begin}`"))
}

fn fetch(image: &Image, data: &[u8], sampler: &Sampler, how: Fetch, at: &[u32]) -> [u32; 4] {
    let print = footprint(image, sampler, how, at, &[]);
    let size = image.format.bytes() as usize;
    let texels = print.texels.map(|texel| texel.map(|address| &data[address as usize..][..size]));
    value(image, sampler, how, &print, &texels)
}

fn float(geometry: Geometry) -> Fetch {
    Fetch { geometry, ty: Ty::F32, integer: false, mode: FetchMode::Plain }
}

/// All four formats, all address modes, both filters, normalized coordinates and others, in two and three dimensions,
/// with coordinates that are NaN, infinite and far away.
#[test]
fn fetches_return_what_the_h200_returned() {
    let formats = [
        (32, ChannelKind::Float),
        (8, ChannelKind::Unsigned),
        (16, ChannelKind::Unsigned),
        (16, ChannelKind::Float),
    ];
    let modes = [AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border];
    let mut fetches = 0;
    for depth in [0, 5] {
        for (number, (bits, kind)) in formats.into_iter().enumerate() {
            let format = Format::new(4, bits, kind).unwrap();
            let data = bytes(line(&format!("image {depth} {number} ")));
            let layout = Layout::Rows(u64::from(EXTENT[0] * format.bytes()));
            let extent = [EXTENT[0], EXTENT[1], depth];
            let image = Image { address: 0, format, extent, layers: 0, cube: false, layout };
            for (code, mode) in modes.into_iter().enumerate() {
                for (normalized, linear) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let coordinates = words(line(&format!("coordinates {normalized} ")));
                    let results =
                        words(line(&format!("result {depth} {number} {code} {normalized} {linear} ")));
                    let sampler = Sampler {
                        address: [mode; 3],
                        linear: linear == 1,
                        normalized: normalized == 1,
                        normalized_read: kind == ChannelKind::Unsigned,
                        border: [0.25, 0.0, 0.0, 0.0],
                    };
                    let geometry = if depth > 0 { Geometry::D3 } else { Geometry::D2 };
                    for (at, wanted) in coordinates.chunks(3).zip(results.chunks(4)) {
                        let found = fetch(&image, &data, &sampler, float(geometry), at);
                        let what = format!(
                            "{sampler:?} {format:?} {:?}",
                            at.iter().map(|&w| f32::from_bits(w)).collect::<Vec<_>>()
                        );
                        let off = found
                            .iter()
                            .zip(wanted)
                            .map(|(&a, &b)| (f32::from_bits(a) - f32::from_bits(b)).abs());
                        let off = off.fold(0.0, f32::max);
                        fetches += 1;
                        if linear == 0 || kind == ChannelKind::Unsigned && depth == 0 {
                            assert_eq!(found, wanted, "{what}");
                        } else {
                            assert!(off <= 1.0 / 16777216.0, "{found:x?} {wanted:x?} {what}");
                        }
                    }
                }
            }
        }
    }
    assert_eq!(fetches, 128 * 24);
}
