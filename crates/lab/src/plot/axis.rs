//! An axis: its range, its ticks, and where on it a value lies.

use warploom::grouped;

/// Maps values to places between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    log: bool,
    pub(super) ticks: Vec<(f64, String)>,
}

/// The distance between ticks is one of these times a power of ten.
const STEPS: [f64; 4] = [1.0, 2.0, 2.5, 5.0];

/// Approximate number of steps between ticks.
const WANTED: f64 = 5.0;

const MOST_LOG_TICKS: usize = 10;

impl Axis {
    /// An axis for bars: it shows all values and zero.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>, log: bool) -> Axis {
        if log {
            // A bar as low as the axis would not be seen.
            return Axis::logarithmic(values.flat_map(|value| [0.7 * value, value]));
        }
        let (low, high) = extent(values.chain([0.0]));
        Axis::linear(low, high)
    }

    /// An axis for lines: it shows all values, and zero if that is near.
    pub(super) fn around(values: impl Iterator<Item = f64>, log: bool) -> Axis {
        if log {
            return Axis::logarithmic(values);
        }
        let (low, high) = extent(values);
        Axis::linear(if low > 0.0 && low < 0.5 * high { 0.0 } else { low }, high)
    }

    fn linear(low: f64, high: f64) -> Axis {
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        let rough = (high - low) / WANTED;
        let power = 10f64.powf(rough.log10().floor());
        let step = STEPS.map(|s| s * power).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let decimals = (0..=9).find(|&d| (step * 10f64.powi(d)).fract().abs() < 1e-9).unwrap_or(9) as usize;
        let count = (last - first) as usize;
        let ticks = (0..=count).map(|i| (first + i as f64) * step).map(|v| (v, label(v, decimals))).collect();
        Axis { low: first * step, high: last * step, log: false, ticks }
    }

    /// From one round value to another, with ticks at round values or, if those are too many, at powers of ten.
    fn logarithmic(values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = extent(values.filter(|value| *value > 0.0));
        let (low, high) = if low > 0.0 { (low, high) } else { (1.0, 10.0) };
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let round: Vec<(f64, i32)> = powers
            .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| (factor * 10f64.powi(power), power)))
            .collect();
        // Powers of ten are not exact.
        let first = round.iter().rposition(|(value, _)| *value <= low * 1.000_001).unwrap_or(0);
        let last = round.iter().position(|(value, _)| *value >= high * 0.999_999).unwrap_or(round.len() - 1);
        let round = &round[first..=last.max(first + 1).min(round.len() - 1)];
        let (low, high) = (round[0].0, round[round.len() - 1].0);
        let mut ticks: Vec<(f64, i32)> = round.to_vec();
        if ticks.len() > MOST_LOG_TICKS {
            ticks.retain(|(value, power)| *value < 1.5 * 10f64.powi(*power));
            let every = ticks.len().div_ceil(MOST_LOG_TICKS);
            ticks = ticks.into_iter().step_by(every).collect();
        }
        let ticks = ticks.into_iter().map(|(value, power)| (value, label(value, (-power).max(0) as usize)));
        Axis { low, high, log: true, ticks: ticks.collect() }
    }

    /// 0 at the low end, 1 at the high end. A value off the axis lies at the nearer end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.log {
            true if value <= 0.0 => 0.0,
            true => (value / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        place.clamp(0.0, 1.0)
    }

    /// A logarithmic axis cannot show zero or less.
    pub(super) fn shows(&self, value: f64) -> bool {
        !self.log || value > 0.0
    }
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

fn label(value: f64, decimals: usize) -> String {
    let sign = if value < 0.0 { "−" } else { "" };
    let size = value.abs();
    match size {
        _ if size >= 1e9 => format!("{sign}{size:.1e}"),
        _ if decimals == 0 => format!("{sign}{}", grouped(size.round() as u64)),
        _ => format!("{sign}{size:.decimals$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> String {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn linear(values: &[f64]) -> String {
        labels(&Axis::from_zero(values.iter().copied(), false))
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(linear(&[85_482.0, 175_777.0]), "0 50,000 100,000 150,000 200,000");
        assert_eq!(linear(&[2.6, 4.0]), "0 1 2 3 4");
        assert_eq!(linear(&[0.83]), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(linear(&[-3.0, 5.0]), "−4 −2 0 2 4 6");
        assert_eq!(linear(&[0.0012]), "0.00000 0.00025 0.00050 0.00075 0.00100 0.00125");
    }

    #[test]
    fn nothing_and_one_value_have_an_axis_too() {
        assert_eq!(linear(&[]), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(linear(&[0.0]), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(&Axis::around([7.0].into_iter(), false)), "6 8 10 12 14");
        assert_eq!(labels(&Axis::around([].into_iter(), true)), "1 2 5 10");
    }

    #[test]
    fn logarithmic_ticks() {
        let log = |values: &[f64]| labels(&Axis::around(values.iter().copied(), true));
        assert_eq!(log(&[3.0, 40.0]), "2 5 10 20 50");
        assert_eq!(log(&[16.0, 4096.0]), "10 20 50 100 200 500 1,000 2,000 5,000");
        assert_eq!(log(&[0.03, 0.5]), "0.02 0.05 0.1 0.2 0.5");
        assert_eq!(log(&[0.001, 1.0]), "0.001 0.002 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1");
        assert_eq!(log(&[3.0, 40_000.0]), "10 100 1,000 10,000");
        assert_eq!(log(&[0.0, -1.0, 5.0]), "5 10");
        let bars = Axis::from_zero([5.0, 40.0].into_iter(), true);
        assert_eq!(labels(&bars), "2 5 10 20 50");
    }

    #[test]
    fn places() {
        let axis = Axis::from_zero([4.0].into_iter(), false);
        assert_eq!([0.0, 2.0, 4.0, 9.0].map(|v| axis.place(v)), [0.0, 0.5, 1.0, 1.0]);
        let axis = Axis::around([1.0, 100.0].into_iter(), true);
        assert_eq!([1.0, 10.0, 100.0, 0.0].map(|v| axis.place(v)), [0.0, 0.5, 1.0, 0.0]);
        assert!(!axis.shows(0.0) && axis.shows(0.1));
    }

    #[test]
    fn zero_is_shown_where_it_is_near() {
        assert_eq!(labels(&Axis::around([20.0, 100.0].into_iter(), false)), "0 20 40 60 80 100");
        assert_eq!(labels(&Axis::around([80.0, 100.0].into_iter(), false)), "80 85 90 95 100");
    }
}
