//! Cache lines: by address, and by number.

/// The byte address of a cache line: of its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineAddress(pub u64);

impl LineAddress {
    /// The line that has the byte at `address`. Lines are `line_bytes` large, a power of two.
    #[inline(always)]
    pub fn of(address: u64, line_bytes: u64) -> LineAddress {
        LineAddress(address & !(line_bytes - 1))
    }

    #[inline(always)]
    pub fn number(self, line_bytes: u64) -> LineNumber {
        LineNumber(self.0 / line_bytes)
    }
}

/// The number of a cache line: its address divided by the line size. The tags of caches hold these. Those of an L2
/// slice count the lines of the slice only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineNumber(pub u64);

impl LineNumber {
    /// Sentinel: no line.
    pub const NONE: LineNumber = LineNumber(u64::MAX);

    #[inline(always)]
    pub fn address(self, line_bytes: u64) -> LineAddress {
        LineAddress(self.0 * line_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_address_and_a_number() {
        let line = LineAddress::of(0x1234, 128);
        assert_eq!((line, line.number(128)), (LineAddress(0x1200), LineNumber(0x24)));
        assert_eq!(line.number(128).address(128), line);
    }
}
