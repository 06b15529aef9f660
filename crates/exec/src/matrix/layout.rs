//! Which lane and register holds which element of a matrix.
//!
//! The manual draws a figure for each shape. All but one follow one rule: lane `l` belongs to group `l / 4` and is
//! thread `l % 4` of it. A register of A holds neighbouring columns of row `group`, or of row `group + 8` if its
//! number is odd; every second register starts four registers' worth of columns further. B is held in the same way
//! with rows and columns exchanged. A register of C or D holds columns `2 * thread` and the next of these rows. The
//! exception is m8n8k4 of `.f16`, which four groups of eight lanes compute four times.

use warploom_isa::{MatrixTy, Mma};

/// Row and column of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub row: usize,
    pub column: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    A,
    B,
    C,
}

/// How a matrix is spread over registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    role: Role,
    pub ty: MatrixTy,
    /// Elements of a register; single bits are counted in words.
    pub per_register: usize,
    pub columns: usize,
    /// 16 rows of A, C and D instead of 8.
    tall: bool,
    /// For m8n8k4 of `.f16`: whether the matrix is in column order.
    quad_pairs: Option<bool>,
}

/// Elements of a type in a register.
fn per_register(ty: MatrixTy) -> usize {
    match ty {
        MatrixTy::F64 | MatrixTy::B1 => 1,
        ty => 32 / ty.bits() as usize,
    }
}

impl Fragment {
    /// Those of A, B, C and D.
    pub(super) fn of(mma: Mma) -> [Fragment; 4] {
        let k = if mma.a == MatrixTy::B1 { mma.k() / 32 } else { mma.k() };
        let make = |role, ty, columns, in_columns: bool| Fragment {
            role,
            ty,
            per_register: per_register(ty),
            columns,
            tall: mma.tall,
            quad_pairs: mma.is_quad_pairs().then_some(in_columns),
        };
        [
            make(Role::A, mma.a, k, mma.a_columns),
            make(Role::B, mma.b, 8, mma.b_columns),
            make(Role::C, mma.c, 8, false),
            make(Role::C, mma.d, 8, false),
        ]
    }

    /// Where an element of a lane's register belongs; `None` if not to the matrix of this group of lanes.
    pub(super) fn place(&self, lane: usize, register: usize, element: usize, group: usize) -> Option<Place> {
        if let Some(in_columns) = self.quad_pairs {
            return self.place_in_quad_pair(in_columns, lane, register * self.per_register + element, group);
        }
        let (row, thread, per) = (lane / 4, lane % 4, self.per_register);
        let along = |step: usize| thread * per + step * 4 * per + element;
        Some(match self.role {
            Role::A if self.tall => Place { row: row + 8 * (register % 2), column: along(register / 2) },
            Role::A => Place { row, column: along(register) },
            Role::B => Place { row: along(register), column: row },
            Role::C => {
                let at = register * per + element;
                Place { row: row + 8 * (at / 2), column: 2 * thread + at % 2 }
            }
        })
    }

    /// m8n8k4: lanes 4g to 4g+3 and the same of the upper half compute one product.
    fn place_in_quad_pair(&self, in_columns: bool, lane: usize, at: usize, group: usize) -> Option<Place> {
        if lane % 16 / 4 != group {
            return None;
        }
        let (thread, upper) = (lane % 4, 4 * (lane / 16));
        Some(match (self.role, in_columns) {
            (Role::A, false) => Place { row: thread + upper, column: at },
            (Role::A, true) => Place { row: at + upper, column: thread },
            (Role::B, false) => Place { row: thread, column: at + upper },
            (Role::B, true) => Place { row: at, column: thread + upper },
            (Role::C, _) if self.ty == MatrixTy::F16 => Place { row: thread + upper, column: at },
            (Role::C, _) => {
                Place { row: (lane & 1) + (at & 2) + upper, column: (at & 4) + (lane & 2) + (at & 1) }
            }
        })
    }

    /// An element of a register, without extension.
    pub(super) fn extract(&self, word: u64, element: usize) -> u64 {
        match self.ty {
            MatrixTy::F64 | MatrixTy::B1 => word,
            ty => word >> (ty.bits() as usize * element) & ((1u64 << ty.bits()) - 1),
        }
    }

    /// An element at its place in a register.
    pub(super) fn insert(&self, value: u64, element: usize) -> u64 {
        match self.ty {
            MatrixTy::F64 | MatrixTy::B1 => value,
            ty => value << (ty.bits() as usize * element),
        }
    }
}
