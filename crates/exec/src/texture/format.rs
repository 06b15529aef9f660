//! Formats of texels: one, two or four channels of 8, 16 or 32 bits.

use half::f16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    Unsigned,
    Signed,
    Float,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// 1, 2 or 4.
    pub channels: u8,
    /// Of a channel: 8, 16 or 32.
    pub bits: u8,
    pub kind: ChannelKind,
}

impl Format {
    /// `None` if there is no such format.
    pub fn new(channels: u8, bits: u8, kind: ChannelKind) -> Option<Format> {
        let known = matches!(channels, 1 | 2 | 4)
            && matches!((bits, kind), (8, ChannelKind::Unsigned | ChannelKind::Signed) | (16 | 32, _));
        known.then_some(Format { channels, bits, kind })
    }

    /// Bytes of a texel.
    pub const fn bytes(self) -> u32 {
        self.channels as u32 * (self.bits / 8) as u32
    }

    /// Whether a linear filter can blend texels that are read as they are, or as numbers up to 1.
    pub const fn blends(self, normalized_read: bool) -> bool {
        matches!(self.kind, ChannelKind::Float) || normalized_read && self.bits < 32
    }

    /// Channel `at` of a texel, sign- or zero-extended; 0 if the format has fewer.
    fn raw(self, texel: &[u8], at: usize) -> u32 {
        let bytes = usize::from(self.bits / 8);
        let Some(data) = texel.get(at * bytes..(at + 1) * bytes).filter(|_| at < self.channels.into()) else {
            return 0;
        };
        let value = data.iter().rev().fold(0u32, |value, &byte| value << 8 | u32::from(byte));
        match self.kind {
            ChannelKind::Signed => {
                let unused = 32 - u32::from(self.bits);
                ((value << unused) as i32 >> unused) as u32
            }
            _ => value,
        }
    }

    /// A channel as a number: what the format holds, or with `normalized` from 0 (or -1) to 1.
    fn number(self, texel: &[u8], at: usize, normalized: bool) -> f64 {
        let raw = self.raw(texel, at);
        let most = ((1u64 << (self.bits - 1)) - 1) as f64;
        match (self.kind, self.bits) {
            (ChannelKind::Float, 16) => f16::from_bits(raw as u16).to_f64(),
            (ChannelKind::Float, _) => f64::from(f32::from_bits(raw)),
            (ChannelKind::Unsigned, _) if normalized => f64::from(raw) / (2.0 * most + 1.0),
            (ChannelKind::Unsigned, _) => f64::from(raw),
            (ChannelKind::Signed, _) if normalized => (f64::from(raw as i32) / most).max(-1.0),
            (ChannelKind::Signed, _) => f64::from(raw as i32),
        }
    }

    /// The bits of a channel as a fetch without a filter returns them.
    pub fn plain(self, texel: &[u8], at: usize, normalized_read: bool) -> u32 {
        if at >= usize::from(self.channels) {
            return self.absent(at, normalized_read);
        }
        match self.kind {
            ChannelKind::Float if self.bits == 32 => self.raw(texel, at),
            ChannelKind::Float => (self.number(texel, at, false) as f32).to_bits(),
            _ if self.blends(normalized_read) => (self.number(texel, at, true) as f32).to_bits(),
            _ => self.raw(texel, at),
        }
    }

    /// A channel that the format does not have: 0, or 1 for the last one.
    fn absent(self, at: usize, normalized_read: bool) -> u32 {
        match (at == 3, self.blends(normalized_read)) {
            (false, _) => 0,
            (true, true) => 1f32.to_bits(),
            (true, false) => 1,
        }
    }

    /// A texel of these channels, in words: integers saturate; halves are rounded toward zero, and only infinities
    /// become infinite. So the H200 has it.
    pub fn texel(self, channels: [u32; 4]) -> [u32; 4] {
        let mut words = [0; 4];
        let bits = u32::from(self.bits);
        for (at, &value) in channels.iter().enumerate().take(self.channels.into()) {
            let channel = match self.kind {
                _ if bits == 32 => value,
                ChannelKind::Float => u32::from(truncated_half(value)),
                ChannelKind::Unsigned => value.min((1 << bits) - 1),
                ChannelKind::Signed => {
                    let most = (1 << (bits - 1)) - 1;
                    (value as i32).clamp(-most - 1, most) as u32 & ((1 << bits) - 1)
                }
            };
            let start = at as u32 * bits;
            words[(start / 32) as usize] |= channel << (start % 32);
        }
        words
    }

    /// A number as a channel of this format holds it.
    fn stored(self, number: f32) -> f64 {
        let number = f64::from(number);
        let most = match self.kind {
            ChannelKind::Float if self.bits == 16 => return f16::from_f64(number).to_f64(),
            ChannelKind::Float => return number,
            ChannelKind::Unsigned => ((1u64 << self.bits) - 1) as f64,
            ChannelKind::Signed => ((1u64 << (self.bits - 1)) - 1) as f64,
        };
        let least = if self.kind == ChannelKind::Signed { -1.0 } else { 0.0 };
        (number.clamp(least, 1.0) * most).round() / most
    }

    /// The bits of a channel of the border's color.
    pub fn border(self, color: &[f32; 4], at: usize, normalized_read: bool) -> u32 {
        match self.kind {
            _ if at >= usize::from(self.channels) => self.absent(at, normalized_read),
            _ if self.blends(normalized_read) => (self.stored(color[at]) as f32).to_bits(),
            ChannelKind::Signed => color[at] as i32 as u32,
            _ => color[at] as u32,
        }
    }

    /// The bits of a channel blended from texels with weights in 256ths. Texels are `None` beyond the border.
    ///
    /// The sum is exact and rounded once, to nearest: to 16 bits if the format has no more, otherwise to 32. Ties go
    /// away from zero, but for integers up. So the H200 has it, but for the last bit where products of 32 bits cancel
    /// out.
    pub fn blend<'t>(
        self,
        texels: impl Iterator<Item = (u32, Option<&'t [u8]>)>,
        border: &[f32; 4],
        at: usize,
    ) -> u32 {
        if at >= usize::from(self.channels) {
            return self.absent(at, true);
        }
        // Integers of up to 16 bits are blended as such, so that ties are exact.
        let most = match self.kind {
            ChannelKind::Unsigned => 65535.0,
            ChannelKind::Signed => 32767.0,
            ChannelKind::Float => 1.0,
        };
        let value = |texel: Option<&[u8]>| match (texel, self.kind, self.bits) {
            (Some(texel), ChannelKind::Unsigned, 8) => f64::from(self.raw(texel, at)) * 257.0,
            (Some(texel), ChannelKind::Unsigned, _) => f64::from(self.raw(texel, at)),
            (Some(texel), ChannelKind::Signed, 16) => f64::from(self.raw(texel, at) as i32).max(-most),
            (Some(texel), ..) => self.number(texel, at, true) * most,
            (None, ..) => self.stored(border[at]) * most,
        };
        // A texel of no weight does not count, even if it is infinite.
        let weighed = texels.filter(|&(weight, _)| weight > 0);
        let sum: f64 = weighed.map(|(weight, texel)| f64::from(weight) * value(texel)).sum();
        let sum = sum / 256.0;
        let result = match (self.kind, self.bits) {
            (ChannelKind::Float, 16) => to_half(sum),
            (ChannelKind::Float, _) => to_single(sum),
            _ => ((sum + 0.5).floor() / most) as f32,
        };
        result.to_bits()
    }

    /// OpenCL's code of the channels' type, which `txq` returns.
    pub fn channel_type(self, normalized_read: bool) -> u32 {
        match (self.kind, self.bits, normalized_read) {
            (ChannelKind::Signed, 8, true) => 0x10d0,
            (ChannelKind::Signed, 16, true) => 0x10d1,
            (ChannelKind::Unsigned, 8, true) => 0x10d2,
            (ChannelKind::Unsigned, 16, true) => 0x10d3,
            (ChannelKind::Signed, 8, _) => 0x10d7,
            (ChannelKind::Signed, 16, _) => 0x10d8,
            (ChannelKind::Signed, ..) => 0x10d9,
            (ChannelKind::Unsigned, 8, _) => 0x10da,
            (ChannelKind::Unsigned, 16, _) => 0x10db,
            (ChannelKind::Unsigned, ..) => 0x10dc,
            (ChannelKind::Float, 16, _) => 0x10dd,
            (ChannelKind::Float, ..) => 0x10de,
        }
    }

    /// OpenCL's code of the channels' order, which `txq` returns.
    pub fn channel_order(self) -> u32 {
        match self.channels {
            1 => 0x10b0,
            2 => 0x10b2,
            _ => 0x10b5,
        }
    }
}

/// To nearest, ties away from zero.
fn to_single(value: f64) -> f32 {
    let nearest = value as f32;
    let toward_zero = f64::from(nearest).abs() < value.abs();
    if !nearest.is_finite() || !toward_zero {
        return nearest;
    }
    let larger = f32::from_bits(nearest.to_bits() + 1);
    let tie = (f64::from(nearest) + f64::from(larger)) / 2.0 == value;
    if tie { larger } else { nearest }
}

/// To nearest half, ties away from zero.
fn to_half(value: f64) -> f32 {
    let nearest = f16::from_f64(value);
    let toward_zero = nearest.to_f64().abs() < value.abs();
    if !nearest.is_finite() || !toward_zero {
        return nearest.to_f32();
    }
    let larger = f16::from_bits(nearest.to_bits() + 1);
    let tie = (nearest.to_f64() + larger.to_f64()) / 2.0 == value;
    if tie { larger.to_f32() } else { nearest.to_f32() }
}

/// The bits of a half from those of a single: toward zero; NaNs keep their upper bits.
fn truncated_half(single: u32) -> u16 {
    let sign = (single >> 16 & 0x8000) as u16;
    let (exponent, fraction) = (single >> 23 & 0xff, single & 0x7f_ffff);
    let magnitude = match exponent {
        0xff if fraction == 0 => 0x7c00,
        0xff => 0x7c00 | (fraction >> 13).max(1),
        143.. => 0x7bff,
        113.. => (exponent - 112) << 10 | fraction >> 13,
        // A subnormal half: the leading bit is not implied.
        102.. => (0x80_0000 | fraction) >> (126 - exponent),
        _ => 0,
    };
    sign | magnitude as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texel(channels: u8, bits: u8, kind: ChannelKind, values: [u32; 4]) -> [u32; 4] {
        Format::new(channels, bits, kind).unwrap().texel(values)
    }

    #[test]
    fn integers_saturate() {
        let values = [0x7f, 0x80, 0xffff_ff7f, 0xffff_ff80];
        assert_eq!(texel(4, 8, ChannelKind::Signed, values), [0x8080_7f7f, 0, 0, 0]);
        assert_eq!(texel(4, 8, ChannelKind::Unsigned, values), [0xffff_807f, 0, 0, 0]);
        assert_eq!(
            texel(4, 16, ChannelKind::Signed, [1, 0xffff_7fff, 0x8000, !0]),
            [0x8000_0001, 0xffff_7fff, 0, 0]
        );
        assert_eq!(texel(2, 32, ChannelKind::Unsigned, [5, 6, 7, 8]), [5, 6, 0, 0], "two channels");
    }

    /// Recorded on the H200.
    #[test]
    fn halves_are_truncated() {
        let recorded = [
            (0x3f80_1001, 0x3c00),
            (0x3f80_3000, 0x3c01),
            (0x477f_efff, 0x7bff),
            (0x4780_0000, 0x7bff),
            (0x7f80_0000, 0x7c00),
            (0xff80_0000, 0xfc00),
            (0x7f80_0001, 0x7c01),
            (0xffc1_2345, 0xfe09),
            (0x3380_0000, 0x0001),
            (0x3300_0001, 0x0000),
            (0x387f_e000, 0x03ff),
            (0x3700_0080, 0x0080),
            (0x9abc_def0, 0x8000),
        ];
        for (single, half) in recorded {
            assert_eq!(truncated_half(single), half, "{single:#x}");
        }
    }
}
