//! Special registers as operands.

use isa::{Cmp, Combine, Dst, Op, Operand, Special, Ty, Width};
use warploom_isa as isa;

use super::{Builder, Result};
use crate::diag::Diagnostic;
use crate::resolved;

/// Registers with one component.
const SCALARS: &[(&str, Special)] = &[
    ("%laneid", Special::LaneId),
    ("%wl_laneid", Special::WaveLaneId),
    ("%wl_lanes", Special::WaveLanes),
    ("%warpid", Special::WarpId),
    ("%nwarpid", Special::NwarpId),
    ("%smid", Special::SmId),
    ("%nsmid", Special::NsmId),
    ("%gridid", Special::GridId),
    ("%cluster_ctarank", Special::ClusterCtarank),
    ("%cluster_nctarank", Special::ClusterNctarank),
    ("%lanemask_eq", Special::LanemaskEq),
    ("%lanemask_le", Special::LanemaskLe),
    ("%lanemask_lt", Special::LanemaskLt),
    ("%lanemask_ge", Special::LanemaskGe),
    ("%lanemask_gt", Special::LanemaskGt),
    ("%clock", Special::Clock),
    ("%clock_hi", Special::ClockHi),
    ("%clock64", Special::Clock64),
    ("%globaltimer", Special::GlobalTimer),
    ("%globaltimer_lo", Special::GlobalTimerLo),
    ("%globaltimer_hi", Special::GlobalTimerHi),
    ("%dynamic_smem_size", Special::DynamicSmemSize),
    ("%total_smem_size", Special::TotalSmemSize),
    ("%aggr_smem_size", Special::TotalSmemSize),
    ("%reserved_smem_offset_begin", Special::Zero),
    ("%reserved_smem_offset_end", Special::Zero),
    ("%reserved_smem_offset_cap", Special::Zero),
    ("%reserved_smem_offset_0", Special::Zero),
    ("%reserved_smem_offset_1", Special::Zero),
    ("%current_graph_exec", Special::Zero64),
    ("%envreg1", Special::WorkspaceHi),
    ("%envreg2", Special::WorkspaceLo),
];

/// Registers with components x, y, z, w.
const VECTORS: &[(&str, [Special; 3])] = &[
    ("%tid", [Special::TidX, Special::TidY, Special::TidZ]),
    ("%ntid", [Special::NtidX, Special::NtidY, Special::NtidZ]),
    ("%ctaid", [Special::CtaidX, Special::CtaidY, Special::CtaidZ]),
    ("%nctaid", [Special::NctaidX, Special::NctaidY, Special::NctaidZ]),
    ("%clusterid", [Special::ClusterIdX, Special::ClusterIdY, Special::ClusterIdZ]),
    ("%nclusterid", [Special::NclusterIdX, Special::NclusterIdY, Special::NclusterIdZ]),
    ("%cluster_ctaid", [Special::ClusterCtaidX, Special::ClusterCtaidY, Special::ClusterCtaidZ]),
    ("%cluster_nctaid", [Special::ClusterNctaidX, Special::ClusterNctaidY, Special::ClusterNctaidZ]),
];

/// The only special register that is a predicate.
pub(super) const EXPLICIT_CLUSTER: &str = "%is_explicit_cluster";

/// The special register with this name, including its component.
fn scalar(name: &str) -> Option<Special> {
    if let Some((_, special)) = SCALARS.iter().find(|(n, _)| *n == name) {
        return Some(*special);
    }
    if let Some((base, component)) = name.rsplit_once('.') {
        let parts = vector(base)?;
        return match component {
            "x" | "r" => Some(parts[0]),
            "y" | "g" => Some(parts[1]),
            "z" | "b" => Some(parts[2]),
            "w" | "a" => Some(Special::Zero),
            _ => None,
        };
    }
    let number = |prefix: &str, suffix: &str, count: u32| {
        let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        digits.parse::<u32>().ok().filter(|n| *n < count)
    };
    if number("%envreg", "", 32).or_else(|| number("%pm", "", 8)).is_some() {
        Some(Special::Zero)
    } else if number("%pm", "_64", 8).is_some() {
        Some(Special::Zero64)
    } else {
        None
    }
}

/// The components of a special register; the fourth reads as zero.
pub(super) fn vector(name: &str) -> Option<[Special; 4]> {
    let (_, parts) = VECTORS.iter().find(|(n, _)| *n == name)?;
    Some([parts[0], parts[1], parts[2], Special::Zero])
}

impl Builder<'_> {
    /// Whether the launch names the size of clusters, as a new predicate.
    pub(super) fn explicit_cluster(&mut self) -> Operand {
        let word = self.value(Op::Special(Special::ExplicitCluster), Width::One, &[]);
        let p = self.fresh_pred();
        let op = Op::Setp { cmp: Cmp::Ne, combine: Combine::None, ty: Ty::U32, ftz: false };
        self.emit(op, Dst::Pred(p), &[word, Operand::Imm(0)]);
        Operand::Pred(p)
    }

    /// The special register that an operand names.
    pub(super) fn special_register(&self, op: &resolved::Operand, name: &str) -> Result<Special> {
        scalar(name).ok_or_else(|| {
            if vector(name).is_some() {
                return self.at(op, format!("`{name}` has four components: write `{name}.x`"));
            }
            Diagnostic::not_modelled(op.span, format!("the special register `{name}` is not modelled"))
        })
    }

    /// Reads a special register into a new register of the type's width. A narrower type gets the low bits, as in
    /// PTX 1.x, where `%tid.x` has 16 bits. A wider type is zero-extended.
    pub(super) fn special(&mut self, op: &resolved::Operand, name: &str, ty: Ty) -> Result<Operand> {
        let special = self.special_register(op, name)?;
        if ty.is_float() {
            return Err(self.at(op, format!("`{name}` is an integer, `{}` is not", self.name())));
        }
        let reg = self.fresh(Width::of(ty));
        self.read_special(special, Dst::Reg(reg), ty);
        Ok(Operand::Reg(reg))
    }

    /// Reads a special register into `dst`, a register of the type's width.
    pub(super) fn read_special(&mut self, special: Special, dst: Dst, ty: Ty) {
        match (special.is_wide(), ty.is_wide()) {
            (true, false) => {
                let whole = self.value(Op::Special(special), Width::Two, &[]);
                self.emit(Op::Unpack64(0), dst, &[whole]);
            }
            (false, true) => {
                let word = self.value(Op::Special(special), Width::One, &[]);
                self.emit(Op::Pack64, dst, &[word, Operand::Imm(0)]);
            }
            _ => self.emit(Op::Special(special), dst, &[]),
        }
    }
}
