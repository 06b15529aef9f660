//! How far a result may be from the recorded one.

use warploom::isa::Ty;

use super::case::Slot;

/// How far a result may be from the recorded one. Under every bound, infinities and NaNs must be the same bits;
/// zeros, too, unless the bound is absolute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// The same bits.
    Exact,
    /// This many steps of the result's format.
    Ulp(u32),
    /// This share of the value.
    Relative(f64),
    /// This distance.
    Absolute(f64),
    /// The PTX manual's bound of `lg2.approx`: 2^-22, absolute for arguments between 0.5 and 2, otherwise relative.
    Lg2,
    /// The PTX manual's bound of `sin.approx` and `cos.approx`: 2^-20.5 for arguments within two pi, 2^-14.7 within a
    /// hundred pi.
    Angle,
}

/// How a result compares with the recorded one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Agreement {
    Equal,
    /// The distance in steps of the result's format.
    Within(u64),
    Different,
}

impl Bound {
    /// Reads `ulp:2`, `rel:-22.9`, `abs:-11` (powers of two), `lg2` or `angle`.
    pub(crate) fn parse(text: &str) -> Bound {
        let (kind, number) = text.split_once(':').unwrap_or((text, ""));
        let number: f64 = number.parse().unwrap_or(0.0);
        match kind {
            "ulp" => Bound::Ulp(number as u32),
            "rel" => Bound::Relative(number.exp2()),
            "abs" => Bound::Absolute(number.exp2()),
            "lg2" => Bound::Lg2,
            "angle" => Bound::Angle,
            _ => Bound::Exact,
        }
    }

    /// Compares a result. `operand` is the first operand, on which some bounds depend.
    pub(crate) fn compare(self, slot: Slot, operand: u64, expected: u64, got: u64) -> Agreement {
        if expected == got {
            return Agreement::Equal;
        }
        let Slot::Value(ty) = slot else { return Agreement::Different };
        match (self, ty) {
            (Bound::Exact, _) => Agreement::Different,
            (_, Ty::F16x2 | Ty::BF16x2) => {
                let half = if ty == Ty::F16x2 { Ty::F16 } else { Ty::BF16 };
                let part = |x: u64, shift: u32| x >> shift & 0xffff;
                let both = [0, 16]
                    .map(|s| self.compare_one(half, part(operand, s), part(expected, s), part(got, s)));
                match both {
                    [Agreement::Different, _] | [_, Agreement::Different] => Agreement::Different,
                    [Agreement::Within(a), Agreement::Within(b)] => Agreement::Within(a.max(b)),
                    [Agreement::Within(a), _] | [_, Agreement::Within(a)] => Agreement::Within(a),
                    _ => Agreement::Equal,
                }
            }
            _ => self.compare_one(ty, operand, expected, got),
        }
    }

    fn compare_one(self, ty: Ty, operand: u64, expected: u64, got: u64) -> Agreement {
        if expected == got {
            return Agreement::Equal;
        }
        let (Some(e), Some(g)) = (value(ty, expected), value(ty, got)) else { return Agreement::Different };
        if !e.is_finite() || !g.is_finite() {
            return Agreement::Different;
        }
        let absolute = matches!(self, Bound::Absolute(_) | Bound::Angle);
        if e == 0.0 && g == 0.0 && !absolute {
            return Agreement::Different;
        }
        let steps = ordered(ty, expected).abs_diff(ordered(ty, got));
        // The machine rounds the exact value, which may add half a step to the GPU's error.
        let half_step = spacing(ty, expected) / 2.0;
        let x = value(ty, operand).unwrap_or(f64::NAN).abs();
        let within = match self {
            Bound::Exact => false,
            Bound::Ulp(most) => steps <= u64::from(most),
            Bound::Relative(share) => (e - g).abs() <= share * e.abs() + half_step,
            Bound::Absolute(most) => (e - g).abs() <= most + half_step,
            Bound::Lg2 if (0.5..2.0).contains(&x) => (e - g).abs() <= (-22f64).exp2() + half_step,
            Bound::Lg2 => (e - g).abs() <= (-22f64).exp2() * e.abs() + half_step,
            Bound::Angle => {
                let two_pi = 2.0 * std::f64::consts::PI;
                let most = if x <= two_pi { -20.5f64 } else { -14.7f64 };
                (e - g).abs() <= most.exp2() + half_step
            }
        };
        if within { Agreement::Within(steps) } else { Agreement::Different }
    }
}

/// The value of a floating-point type's bits; `None` for other types.
pub(crate) fn value(ty: Ty, bits: u64) -> Option<f64> {
    match ty {
        Ty::F16 => Some(half::f16::from_bits(bits as u16).to_f64()),
        Ty::BF16 => Some(half::bf16::from_bits(bits as u16).to_f64()),
        Ty::F32 => Some(f32::from_bits(bits as u32).into()),
        Ty::F64 => Some(f64::from_bits(bits)),
        _ => None,
    }
}

/// Maps bits to integers with the same order; adjacent values are 1 apart.
fn ordered(ty: Ty, bits: u64) -> i64 {
    let magnitude = (bits & (u64::MAX >> (65 - ty.bits()))) as i64;
    if bits >> (ty.bits() - 1) & 1 == 1 { -magnitude } else { magnitude }
}

/// The distance from a finite value to the next one away from zero.
fn spacing(ty: Ty, bits: u64) -> f64 {
    let magnitude = bits & (u64::MAX >> (65 - ty.bits()));
    let step = |b| value(ty, b).unwrap_or(0.0);
    let (here, next) = (step(magnitude), step(magnitude + 1));
    if next.is_finite() { next - here } else { here - step(magnitude - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(bound: Bound, operand: f32, expected: f32, got: f32) -> Agreement {
        let bits = |x: f32| u64::from(x.to_bits());
        bound.compare(Slot::Value(Ty::F32), bits(operand), bits(expected), bits(got))
    }

    #[test]
    fn steps_cross_zero() {
        let tiny = f32::from_bits(1);
        assert_eq!(f32s(Bound::Ulp(2), 1.0, tiny, -tiny), Agreement::Within(2));
        assert_eq!(f32s(Bound::Ulp(1), 1.0, tiny, -tiny), Agreement::Different);
        assert_eq!(f32s(Bound::Exact, 1.0, 0.0, -0.0), Agreement::Different);
        assert_eq!(f32s(Bound::Ulp(2), 1.0, f32::MAX, f32::INFINITY), Agreement::Different);
    }

    #[test]
    fn angles_have_two_bounds() {
        assert!(matches!(f32s(Bound::Angle, 1.0, 0.5, 0.5 + 4e-7), Agreement::Within(_)));
        assert_eq!(f32s(Bound::Angle, 1.0, 0.5, 0.5 + 4e-6), Agreement::Different);
        assert!(matches!(f32s(Bound::Angle, 100.0, 0.5, 0.5 + 4e-6), Agreement::Within(_)));
    }

    #[test]
    fn halves_are_compared_one_by_one() {
        let slot = Slot::Value(Ty::F16x2);
        let bound = Bound::Ulp(1);
        assert_eq!(bound.compare(slot, 0, 0x3c00_3c00, 0x3c01_3bff), Agreement::Within(1));
        assert_eq!(bound.compare(slot, 0, 0x3c00_3c00, 0x3c02_3c00), Agreement::Different);
    }
}
