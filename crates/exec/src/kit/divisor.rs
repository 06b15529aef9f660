//! Division by a number that does not change, as a multiplication: several times faster on the host.

/// A divisor with its precomputed inverse.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    by: u64,
    /// 2^64 / `by`, rounded up. The rounding error is less than `by / 2^64`, relative, so a quotient is exact as
    /// long as dividend times divisor fit 64 bits. Unused if `by` is 1, whose inverse would not fit.
    inverse: u64,
}

impl Divisor {
    /// Panics if `by` is zero.
    pub fn new(by: u64) -> Divisor {
        assert!(by > 0, "a division by zero");
        Divisor { by, inverse: (u64::MAX / by).wrapping_add(1) }
    }

    #[inline]
    pub fn get(self) -> u64 {
        self.by
    }

    /// `n / by`, rounded down. `n * by` must fit 64 bits; otherwise the result is wrong (checked in debug builds).
    #[inline]
    pub fn quotient(self, n: u64) -> u64 {
        debug_assert!(n.checked_mul(self.by).is_some(), "{n} is too large to be divided by {}", self.by);
        if self.by == 1 { n } else { ((n as u128 * self.inverse as u128) >> 64) as u64 }
    }

    /// `n % by`. `n * by` must fit 64 bits.
    #[inline]
    pub fn remainder(self, n: u64) -> u64 {
        n - self.quotient(n) * self.by
    }

    /// `n / by`, rounded up. `(n + by) * by` must fit 64 bits.
    #[inline]
    pub fn quotient_up(self, n: u64) -> u64 {
        self.quotient(n + (self.by - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides() {
        for by in (1..=200).chain([700, 924, 1401, 1 << 20, (1 << 31) - 1, 1 << 31]) {
            let divisor = Divisor::new(by);
            let largest = u64::MAX / by - by;
            for n in (0..1000).chain((0..1000).map(|less| largest - less)) {
                for n in [n, n / by * by, (n / by * by).saturating_sub(1)] {
                    assert_eq!(divisor.quotient(n), n / by, "{n} / {by}");
                    assert_eq!(divisor.quotient_up(n), n.div_ceil(by), "{n} / {by}, up");
                    assert_eq!(divisor.remainder(n), n % by, "{n} % {by}");
                }
            }
        }
    }
}
