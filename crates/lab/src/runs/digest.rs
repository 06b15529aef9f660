//! FNV-1a in 128 bits: a hash that is the same on every machine and in every version. The build script includes this
//! file.

#[derive(Clone, Copy)]
pub(crate) struct Digest(u128);

impl Digest {
    pub(crate) const fn new() -> Digest {
        Digest(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a piece. Piece boundaries count: `ab`, `c` is not `a`, `bc`.
    pub(crate) fn add(mut self, piece: impl AsRef<[u8]>) -> Digest {
        let piece = piece.as_ref();
        for &byte in piece.iter().chain(&(piece.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        self
    }

    /// 32 hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        format!("{:032x}", self.0)
    }
}
