//! Shapes and element types of matrix instructions.

use crate::types::Space;

/// The type of an element of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixTy {
    F16,
    Bf16,
    /// 32 bits, of which the lower 13 do not count.
    Tf32,
    F32,
    F64,
    /// 8 bits, of which 4 are the exponent's.
    E4m3,
    /// 8 bits, of which 5 are the exponent's.
    E5m2,
    S8,
    U8,
    S4,
    U4,
    B1,
    S32,
}

impl MatrixTy {
    pub const fn bits(self) -> u32 {
        match self {
            MatrixTy::F64 => 64,
            MatrixTy::Tf32 | MatrixTy::F32 | MatrixTy::S32 => 32,
            MatrixTy::F16 | MatrixTy::Bf16 => 16,
            MatrixTy::E4m3 | MatrixTy::E5m2 | MatrixTy::S8 | MatrixTy::U8 => 8,
            MatrixTy::S4 | MatrixTy::U4 => 4,
            MatrixTy::B1 => 1,
        }
    }

    pub const fn is_signed(self) -> bool {
        matches!(self, MatrixTy::S8 | MatrixTy::S4 | MatrixTy::S32)
    }
}

/// What takes the place of the product of two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitProduct {
    And,
    Xor,
}

/// `mma`: D = A * B + C. A has 16 rows if it is tall, otherwise 8; B has 8 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mma {
    pub tall: bool,
    /// Columns of A and rows of B, in fours.
    pub fours: u8,
    pub a: MatrixTy,
    pub b: MatrixTy,
    pub c: MatrixTy,
    pub d: MatrixTy,
    /// A is in column order. Only m8n8k4 of `.f16` has a choice.
    pub a_columns: bool,
    /// B is in column order.
    pub b_columns: bool,
    /// Integer sums are clamped instead of wrapped.
    pub saturate: bool,
    /// For single bits.
    pub bits: Option<BitProduct>,
}

impl Mma {
    /// Columns of A and rows of B.
    pub const fn k(self) -> usize {
        4 * self.fours as usize
    }

    /// Rows of A, C and D.
    pub const fn rows(self) -> usize {
        if self.tall { 16 } else { 8 }
    }

    /// Whether lanes in four groups of eight compute four products.
    pub const fn is_quad_pairs(self) -> bool {
        !self.tall && self.fours == 1 && matches!(self.a, MatrixTy::F16)
    }

    /// Products that one instruction computes.
    pub const fn groups(self) -> usize {
        if self.is_quad_pairs() { 4 } else { 1 }
    }

    /// Registers of A, B, C and D; those of doubles hold 64 bits.
    pub const fn registers(self) -> [usize; 4] {
        let count = [self.rows() * self.k(), 8 * self.k(), 8 * self.rows(), 8 * self.rows()];
        let types = [self.a, self.b, self.c, self.d];
        let mut registers = [0; 4];
        let mut at = 0;
        while at < 4 {
            let width = if matches!(types[at], MatrixTy::F64) { 64 } else { 32 };
            registers[at] = count[at] * self.groups() * types[at].bits() as usize / width / 32;
            at += 1;
        }
        registers
    }
}

/// `ldmatrix` and `stmatrix`: matrices of 8 x 8 elements of 16 bits in shared memory, whose rows lanes name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixAccess {
    /// Matrices: 1, 2 or 4.
    pub count: u8,
    pub transposed: bool,
    /// `Shared` or `Generic`.
    pub space: Space,
    /// Whether the base address is a 64-bit register.
    pub wide_address: bool,
}

/// `wgmma.mma_async`: D = A * B, or D = A * B + D, by four warps with 16 rows of A and D each. B is in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wgmma {
    /// Columns of B and D, in eights: 1 to 32.
    pub eights: u8,
    pub a: MatrixTy,
    pub b: MatrixTy,
    pub d: MatrixTy,
    /// A is in shared memory, too, and `src[0]` its descriptor. Otherwise it is in four registers.
    pub a_shared: bool,
    /// Neighbours in shared memory are along M or N and not along K.
    pub a_transposed: bool,
    pub b_transposed: bool,
    /// The elements count with the other sign.
    pub a_negated: bool,
    pub b_negated: bool,
    pub saturate: bool,
}

impl Wgmma {
    /// The product of a warp and eight columns.
    pub const fn tile(self) -> Mma {
        Mma {
            tall: true,
            fours: (64 / self.a.bits()) as u8,
            a: self.a,
            b: self.b,
            c: self.d,
            d: self.d,
            a_columns: false,
            b_columns: true,
            saturate: self.saturate,
            bits: if matches!(self.a, MatrixTy::B1) { Some(BitProduct::And) } else { None },
        }
    }

    /// Registers of D in each lane.
    pub const fn registers(self) -> usize {
        self.eights as usize * self.tile().registers()[3]
    }
}
