//! What an instruction makes each of its lanes do, as far as energy differs.

use warploom_isa::{Op, Ty};

use crate::time::sm::front_end::decode::Class;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    IntAdd,
    IntMul,
    IntDiv,
    FloatAdd,
    FloatMul,
    FloatFma,
    FloatDiv,
    DoubleAdd,
    DoubleMul,
    DoubleFma,
    DoubleDiv,
    Special,
    Exchange,
    /// The address of an access to memory.
    Address,
    /// Branches, barriers and the like concern the warp, not its lanes.
    Nothing,
}

impl Operation {
    pub(crate) const COUNT: usize = 15;

    pub(crate) fn of(op: Op, class: Class) -> Operation {
        use Operation::*;
        match (class, op) {
            (Class::Load | Class::Store | Class::Atomic, _) => Address,
            (Class::Barrier | Class::Fence | Class::Control, _) => Nothing,
            (Class::Exchange, _) => Exchange,
            // The energy of matrices is not known.
            (_, Op::Mma(_) | Op::Wgmma(_)) => Nothing,
            (Class::Special, Op::FApprox(..) | Op::FDivApprox { .. }) => Special,
            (Class::Special, _) => FloatDiv,
            (Class::Integer, Op::IDiv(_) | Op::IRem(_)) => IntDiv,
            (
                Class::Integer,
                Op::IMul(..)
                | Op::Mul24(..)
                | Op::IMad(..)
                | Op::Mad24(..)
                | Op::MadCarry(..)
                | Op::Dp4a(..)
                | Op::Dp2a(..),
            ) => IntMul,
            (Class::Integer, _) => IntAdd,
            (Class::Float, Op::FMul(..)) => FloatMul,
            (Class::Float, Op::FFma(..)) => FloatFma,
            (Class::Float, _) => FloatAdd,
            (Class::Double, Op::FMul(..)) => DoubleMul,
            (Class::Double, Op::FFma(..)) => DoubleFma,
            (Class::Double, Op::FApprox(_, Ty::F64, _)) => Special,
            (Class::Double, Op::FDiv(..) | Op::FRounded(..)) => DoubleDiv,
            (Class::Double, _) => DoubleAdd,
        }
    }
}
