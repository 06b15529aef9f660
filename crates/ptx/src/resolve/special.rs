//! The names of special registers.

/// How a special register is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `%laneid`
    Plain,
    /// `%tid.x`: a component must follow.
    Vector,
}

/// The form of a special register; `None` if `name` is not one.
pub(super) fn special(name: &str) -> Option<Form> {
    let name = name.strip_prefix('%')?;
    let numbered = |prefix: &str, suffix: &str, count: u32| {
        let digits = name.strip_prefix(prefix).and_then(|n| n.strip_suffix(suffix));
        digits.is_some_and(|d| {
            d.len() <= 2 && (d == "0" || !d.starts_with('0')) && d.parse().is_ok_and(|n: u32| n < count)
        })
    };
    match name {
        "tid" | "ntid" | "ctaid" | "nctaid" | "clusterid" | "nclusterid" | "cluster_ctaid"
        | "cluster_nctaid" => Some(Form::Vector),
        "laneid"
        | "wl_laneid"
        | "wl_lanes"
        | "warpid"
        | "nwarpid"
        | "smid"
        | "nsmid"
        | "gridid"
        | "is_explicit_cluster"
        | "cluster_ctarank"
        | "cluster_nctarank"
        | "lanemask_eq"
        | "lanemask_le"
        | "lanemask_lt"
        | "lanemask_ge"
        | "lanemask_gt"
        | "clock"
        | "clock_hi"
        | "clock64"
        | "globaltimer"
        | "globaltimer_lo"
        | "globaltimer_hi"
        | "reserved_smem_offset_begin"
        | "reserved_smem_offset_end"
        | "reserved_smem_offset_cap"
        | "total_smem_size"
        | "aggr_smem_size"
        | "dynamic_smem_size"
        | "current_graph_exec" => Some(Form::Plain),
        _ if numbered("pm", "", 8)
            || numbered("pm", "_64", 8)
            || numbered("envreg", "", 32)
            || numbered("reserved_smem_offset_", "", 2) =>
        {
            Some(Form::Plain)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(special("%tid"), Some(Form::Vector));
        assert_eq!(special("%pm7"), Some(Form::Plain));
        assert_eq!(special("%pm3_64"), Some(Form::Plain));
        assert_eq!(special("%envreg31"), Some(Form::Plain));
        for none in ["tid", "%pm8", "%pm_64", "%envreg32", "%envreg01", "%r1", "%"] {
            assert_eq!(special(none), None, "{none}");
        }
    }
}
