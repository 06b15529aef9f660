//! The operands of a case: all combinations of edge values, then random bits and values of moderate size.

use warploom::isa::Ty;

use super::case::{Case, Slot};
use crate::random::Random;

/// Which values an operand takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Any,
    /// Bits within a mask.
    Mask(u64),
    /// One of a few values, so that operands are often equal.
    Few,
    /// Few different values per warp, sometimes only one.
    Warp,
    /// Angles within a hundred pi, half of them within two pi, and special values.
    Angle,
}

impl Domain {
    /// Reads `few`, `warp`, `angle` or a mask such as `0x1f`; anything else is [`Any`](Domain::Any).
    pub(crate) fn parse(text: &str) -> Domain {
        match text {
            "few" => Domain::Few,
            "warp" => Domain::Warp,
            "angle" => Domain::Angle,
            mask => match mask.strip_prefix("0x").and_then(|m| u64::from_str_radix(m, 16).ok()) {
                Some(mask) => Domain::Mask(mask),
                None => Domain::Any,
            },
        }
    }
}

/// The operand tuples of a case, one after another. Predicates are 0 or 1.
pub(crate) fn operands(case: &Case) -> Vec<u64> {
    let mut random = Random::named(&case.name);
    let edges: Vec<Vec<u64>> = case.inputs.iter().map(|i| edges_of(i.slot)).collect();
    let crossed = edges.iter().map(Vec::len).fold(1, usize::saturating_mul);
    let all = crossed <= case.tuples * 5 / 8;
    let mut out = Vec::with_capacity(case.tuples * case.inputs.len());
    for k in 0..case.tuples {
        let mut place = k;
        let style = random.below(8);
        for (i, input) in case.inputs.iter().enumerate() {
            let before = if i > 0 { out.last().copied() } else { None };
            let mine = &edges[i];
            let any = if all && k < crossed {
                let edge = mine[place % mine.len()];
                place /= mine.len();
                edge
            } else if !all && k < case.tuples / 2 {
                match before {
                    Some(same) if style == 0 => same,
                    _ => random.pick(mine),
                }
            } else if style < 3 {
                random.next()
            } else {
                moderate(input.slot, &mut random, before)
            };
            out.push(fit(input.slot, constrained(input.domain, input.slot, any, k, mine, &mut random)));
        }
    }
    out
}

/// A value of the domain. `any` is the value that is taken if all values are allowed.
fn constrained(domain: Domain, slot: Slot, any: u64, k: usize, edges: &[u64], random: &mut Random) -> u64 {
    match domain {
        Domain::Any => any,
        Domain::Mask(mask) => {
            if random.once_in(2) {
                any & mask
            } else {
                random.next() & mask
            }
        }
        Domain::Few => edges[random.below(3) * (edges.len() - 1) / 2],
        Domain::Warp => {
            let warp = Random::new(k as u64 / 32).next();
            let special = warp >> 32 & 31;
            match warp % 4 {
                0 => warp >> 8 & 1 | warp << 40 & !1,
                1 if k as u64 % 32 == special => 1,
                1 => 0,
                2 => random.below(3) as u64,
                _ => any,
            }
        }
        Domain::Angle => match slot {
            Slot::Value(Ty::F32) => {
                let x = f32::from_bits(any as u32);
                let turns = if k.is_multiple_of(2) { 2.0 } else { 100.0 };
                if !x.is_finite() || x.abs() < 0.01 && k.is_multiple_of(4) {
                    any
                } else {
                    let unit = (random.next() >> 40) as f64 / (1u64 << 24) as f64 * 2.0 - 1.0;
                    u64::from(((unit * turns * std::f64::consts::PI) as f32).to_bits())
                }
            }
            _ => any,
        },
    }
}

/// Truncates a value to the width of the operand.
fn fit(slot: Slot, value: u64) -> u64 {
    match slot {
        Slot::Pred => value & 1,
        slot => value & (u64::MAX >> (64 - 8 * slot.bytes())),
    }
}

/// A floating-point format: bits of the exponent and of the mantissa.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    mantissa: u32,
}

impl Format {
    fn of(ty: Ty) -> Option<Format> {
        let (exponent, mantissa) = match ty {
            Ty::F16 | Ty::F16x2 => (5, 10),
            Ty::BF16 | Ty::BF16x2 => (8, 7),
            Ty::F32 => (8, 23),
            Ty::F64 => (11, 52),
            _ => return None,
        };
        Some(Format { exponent, mantissa })
    }

    fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    /// The bits of 2^`power`, clamped to the normal range.
    fn power(self, power: i64) -> u64 {
        let exponent = (power + self.bias()).clamp(1, 2 * self.bias());
        (exponent as u64) << self.mantissa
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    fn edges(self) -> Vec<u64> {
        let (one, infinity) = (self.power(0), self.infinity());
        let quiet = 1 << (self.mantissa - 1);
        let mut positive = vec![
            0,
            1,
            2,
            self.power(i64::MIN / 2) - 1,
            self.power(i64::MIN / 2),
            self.power(i64::MIN / 2) + 1,
            one,
            one + 1,
            one - 1,
            self.power(-1),
            self.power(-1) + 1,
            self.power(-1) - 1,
            one | quiet,
            self.power(1) | quiet >> 1,
            self.power(1) | quiet,
            infinity - 1,
            infinity - 2,
            infinity,
            infinity | quiet,
            infinity | 1,
            infinity | quiet | quiet >> 2 | 1,
        ];
        for power in [7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64, 126, 127] {
            let bits = self.power(power);
            if power <= self.bias() && !positive.contains(&bits) {
                positive.extend([bits, bits - 1]);
            }
        }
        for power in [-149i64, -126, -24, -14] {
            if -power < self.bias() {
                positive.push(self.power(power));
            }
        }
        positive.iter().flat_map(|&bits| [bits, bits | self.sign()]).collect()
    }

    /// A value of moderate size: often on a rounding boundary, often near the previous operand.
    fn moderate(self, random: &mut Random, before: Option<u64>) -> u64 {
        let (mantissa_bits, low) = (self.mantissa as usize, (1u64 << self.mantissa) - 1);
        let sign = if random.once_in(2) { self.sign() } else { 0 };
        if random.once_in(5) {
            return sign | self.halves(random);
        }
        let power = match before {
            Some(bits) if random.once_in(2) => {
                let near = (bits >> self.mantissa & ((1 << self.exponent) - 1)) as i64 - self.bias();
                near + random.below(2 * mantissa_bits + 6) as i64 - mantissa_bits as i64 - 3
            }
            _ => random.below(17) as i64 - 8,
        };
        let place = random.below(mantissa_bits);
        let mantissa = match random.below(4) {
            0 => random.next(),
            1 => random.next() << place | 1 << place.saturating_sub(1),
            2 => (u64::MAX << place) ^ random.pick(&[0, 1, u64::MAX]),
            _ => 1 << place,
        };
        sign | self.power(power) | mantissa & low
    }

    /// Half of an odd number: an integer and a half.
    fn halves(self, random: &mut Random) -> u64 {
        let digits = 1 + random.below(self.mantissa as usize);
        let number = random.next() >> (64 - digits) | 1 << digits >> 1 | 1;
        let top = 63 - number.leading_zeros();
        let fraction = number << (self.mantissa - top) & ((1 << self.mantissa) - 1);
        self.power(i64::from(top) - 1) | fraction
    }
}

fn edges_of(slot: Slot) -> Vec<u64> {
    let Slot::Value(ty) = slot else { return vec![0, 1] };
    match (ty, Format::of(ty)) {
        (Ty::F16x2 | Ty::BF16x2, Some(format)) => pairs(&format.edges()),
        (_, Some(format)) => format.edges(),
        (Ty::U16x2 | Ty::S16x2, None) => pairs(&integers(16)),
        // 8-bit operands have registers of 32 bits.
        (_, None) => integers(ty.bits().max(if ty.bits() == 8 { 32 } else { 16 })),
    }
}

fn pairs(halves: &[u64]) -> Vec<u64> {
    let shifted = |step: usize| {
        (0..halves.len()).map(move |i| halves[i] | halves[(i * step + step) % halves.len()] << 16)
    };
    [1, 3, 7].into_iter().flat_map(shifted).collect()
}

fn integers(bits: u32) -> Vec<u64> {
    let top = 1u64 << (bits - 1);
    let half = 1u64 << (bits / 2);
    let max = u64::MAX >> (64 - bits);
    let mut all = vec![0, 1, 2, 3, max, max - 1, max - 2, top, top + 1, top - 1, top - 2];
    all.extend([half, half + 1, half - 1, half >> 1, half << 1]);
    all.extend([7, 8, 31, 32, 33, 63, 64, 127, 128, 255]);
    all.extend([0x5555_5555_5555_5555 & max, 0xaaaa_aaaa_aaaa_aaaa & max, 0x80ff_7f01_ff80_017f & max]);
    if bits > 16 {
        all.extend([0x7fff, 0x8000, 0xffff, 0x1_0000, max ^ 0x7f, max ^ 0x7fff, 0x00ff_ffff, 0x0080_0000]);
    }
    if bits > 32 {
        all.extend([
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            1 << 32,
            max ^ 0x7fff_ffff,
            1 << 53,
            (1 << 53) + 1,
        ]);
    }
    all
}

fn moderate(slot: Slot, random: &mut Random, before: Option<u64>) -> u64 {
    let Slot::Value(ty) = slot else { return random.next() };
    match (ty, Format::of(ty)) {
        (Ty::F16x2 | Ty::BF16x2, Some(format)) => {
            let (low, high) = (before.map(|b| b & 0xffff), before.map(|b| b >> 16));
            format.moderate(random, low) | format.moderate(random, high) << 16
        }
        (_, Some(format)) => format.moderate(random, before),
        _ => {
            let magnitude = random.next() >> random.below(64);
            if random.once_in(2) { magnitude } else { magnitude.wrapping_neg() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_what_they_are_called() {
        let edges = Format::of(Ty::F32).unwrap().edges();
        for value in [0.0, -0.0, 1.0, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, 2.5, 2f32.powi(31)] {
            assert!(edges.contains(&u64::from(value.to_bits())), "{value}");
        }
        assert!(edges.contains(&0x7f80_0001), "a signalling NaN");
        assert!(edges.iter().all(|e| *e <= 0xffff_ffff));
        assert!(Format::of(Ty::F16).unwrap().edges().iter().all(|e| *e <= 0xffff));
    }

    #[test]
    fn halves_end_in_a_half() {
        let format = Format::of(Ty::F64).unwrap();
        let mut random = Random::new(1);
        for _ in 0..100 {
            let twice = f64::from_bits(format.halves(&mut random)) * 2.0;
            assert_eq!(twice.fract(), 0.0);
            assert_eq!(twice % 2.0, 1.0);
        }
    }
}
