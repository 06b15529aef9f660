//! Formats measured numbers for reports.

use warploom::grouped;

/// Formats a number with as many digits as are worth reading: `85,482`, `123.4`, `2.61`, `0.0312`.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    // Computed bounds may miss a whole number by rounding; show them as whole.
    let whole = (size - size.round()).abs() <= 1e-12 * size;
    let digits = match size {
        _ if !value.is_finite() => return value.to_string(),
        _ if size >= 1e15 => return format!("{value:.3e}"),
        _ if whole || size >= 999.5 => {
            let sign = if value < 0.0 { "-" } else { "" };
            return format!("{sign}{}", grouped(size.round() as u64));
        }
        _ if size >= 99.95 => 1,
        _ if size >= 0.1 => 2,
        // Three significant digits.
        _ => (2 - size.log10().floor() as i32).clamp(3, 12) as usize,
    };
    format!("{value:.digits$}")
}

/// [`figure`] with a unit: `85,482 cycles`, `12.5 %`, `2.61×`.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => figure(value),
        "×" => format!("{}×", figure(value)),
        unit => format!("{} {unit}", figure(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        let shown = [85_482.0, 3.0, -3.0, 1234.56, 123.456, 12.345, 2.607, 0.25, 0.03125, 1e-9, 1e20, -0.5];
        let expected = [
            "85,482",
            "3",
            "-3",
            "1,235",
            "123.5",
            "12.35",
            "2.61",
            "0.25",
            "0.0312",
            "0.00000000100",
            "1.000e20",
            "-0.50",
        ];
        assert_eq!(shown.map(figure), expected);
        assert_eq!([figure(f64::NAN), figure(f64::INFINITY)], ["NaN", "inf"]);
        assert_eq!([with_unit(2.5, "×"), with_unit(7.0, "cycles")], ["2.50×", "7 cycles"]);
    }
}
