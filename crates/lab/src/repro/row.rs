//! A paper's number beside ours, and whether ours counts as reproduced.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::numbers::{figure, with_unit};

/// Where a measured number must lie to count as reproduced.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Band {
    Equal,
    /// Within this percentage of the paper's number.
    Percent(f64),
    /// Within this distance of the paper's number.
    Points(f64),
    /// Between two multiples of the paper's number.
    Factor(f64, f64),
    /// Between two numbers, independent of the paper's number; `None` is open.
    Range(Option<f64>, Option<f64>),
    /// A claim of the paper in words.
    Direction(String),
    /// None: the row only informs.
    Report,
}

/// The judgement of a row or an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Inside the band.
    In,
    /// Outside the band, or without a result.
    Out,
    /// Only informs.
    Report,
}

impl Verdict {
    /// The word in reports and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::In => "in",
            Verdict::Out => "out",
            Verdict::Report => "report",
        }
    }

    /// Of several: `Out` if any is out, otherwise `In` if any is in.
    pub(super) fn of(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
        verdicts.fold(Verdict::Report, |all, verdict| match (all, verdict) {
            (Verdict::Out, _) | (_, Verdict::Out) => Verdict::Out,
            (Verdict::In, _) | (_, Verdict::In) => Verdict::In,
            _ => Verdict::Report,
        })
    }
}

/// A run that a row needs has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{run}: {message}")]
pub struct Failed {
    pub(super) run: String,
    pub(super) message: String,
}

/// A number of the paper, ours, and the band. Without a band the row only informs.
///
/// ```
/// use warploom_lab::repro::{Row, Verdict};
///
/// let row = Row::new("tiny_lock over atom_lock", "×").paper(4.0).measured(Ok(3.5)).percent(20.0);
/// assert_eq!((row.verdict(), row.band_text()), (Verdict::In, "3.20× to 4.80×".to_string()));
/// ```
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// The unit of both numbers: `cycles`, `%`, `×`, or empty.
    pub(super) unit: &'static str,
    /// `None` if the paper has no number.
    pub(super) paper: Option<f64>,
    /// Ours. `None` for a claim in words.
    pub(super) measured: Result<Option<f64>, Failed>,
    pub(super) band: Band,
    /// Whether a claim in words holds.
    holds: bool,
    /// What was observed of a claim, in words.
    pub(super) seen: Option<String>,
    /// What a reader should know whatever the verdict, such as why a quick form has a wider band.
    pub(super) note: Option<String>,
    /// The likely cause if the row is outside.
    reason: Option<String>,
    /// Whether this is what the paper is known for: a number of its abstract. If such a row is outside, the paper
    /// is not reproduced, however many others are inside.
    pub headline: bool,
}

impl Row {
    /// A row without a band or numbers yet. `unit` is `cycles`, `%`, `×`, or empty.
    pub fn new(name: impl Into<String>, unit: &'static str) -> Row {
        Row {
            name: name.into(),
            unit,
            paper: None,
            measured: Ok(None),
            band: Band::Report,
            holds: true,
            seen: None,
            note: None,
            reason: None,
            headline: false,
        }
    }

    /// A claim in words: whether it holds, and what was observed.
    pub fn claim(
        name: impl Into<String>,
        claim: impl Into<String>,
        seen: Result<(bool, String), Failed>,
    ) -> Row {
        let row = Row { band: Band::Direction(claim.into()), ..Row::new(name, "") };
        match seen {
            Ok((holds, seen)) => Row { holds, seen: Some(seen), ..row },
            Err(failed) => Row { measured: Err(failed), ..row },
        }
    }

    /// A claim about an order: the named values fall strictly from the first to the last.
    pub fn falling(name: impl Into<String>, values: &[(&str, Result<f64, Failed>)]) -> Row {
        let claim = values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" > ");
        let seen = values.iter().map(|(_, value)| value.clone()).collect::<Result<Vec<f64>, Failed>>();
        Row::claim(
            name,
            claim,
            seen.map(|seen| {
                let falls = seen.windows(2).all(|pair| pair[0] > pair[1]);
                (falls, seen.into_iter().map(figure).collect::<Vec<_>>().join(", "))
            }),
        )
    }

    /// Sets the paper's number.
    pub fn paper(mut self, paper: f64) -> Row {
        self.paper = Some(paper);
        self
    }

    /// Sets our number.
    pub fn measured(mut self, measured: Result<f64, Failed>) -> Row {
        self.measured = measured.map(Some);
        self
    }

    /// Band: exactly the paper's number.
    pub fn equal(self) -> Row {
        self.band(Band::Equal)
    }

    /// Band: within this percentage of the paper's number.
    pub fn percent(self, percent: f64) -> Row {
        self.band(Band::Percent(percent))
    }

    /// Band: within this distance of the paper's number.
    pub fn points(self, points: f64) -> Row {
        self.band(Band::Points(points))
    }

    /// Band: between two multiples of the paper's number.
    pub fn factor(self, range: RangeInclusive<f64>) -> Row {
        self.band(Band::Factor(*range.start(), *range.end()))
    }

    /// Band: this or less.
    pub fn at_most(self, most: f64) -> Row {
        self.band(Band::Range(None, Some(most)))
    }

    /// Band: this or more.
    pub fn at_least(self, least: f64) -> Row {
        self.band(Band::Range(Some(least), None))
    }

    fn band(mut self, band: Band) -> Row {
        self.band = band;
        self
    }

    /// Adds what a reader should know whatever the verdict.
    pub fn note(mut self, note: impl Into<String>) -> Row {
        self.note = Some(note.into());
        self
    }

    /// Adds the likely cause of a number outside its band; shown only in that case.
    pub fn because(mut self, reason: impl Into<String>) -> Row {
        self.reason = Some(reason.into());
        self
    }

    /// Marks a number of the paper's abstract.
    pub fn headline(mut self) -> Row {
        self.headline = true;
        self
    }

    /// Ours over the paper's.
    pub fn ratio(&self) -> Option<f64> {
        match (self.value(), self.paper) {
            (Some(ours), Some(paper)) if paper != 0.0 => Some(ours / paper),
            _ => None,
        }
    }

    /// Our number, if there is one.
    pub(super) fn value(&self) -> Option<f64> {
        self.measured.as_ref().ok().copied().flatten()
    }

    /// The lowest and the highest number inside the band; `None` for a band without limits.
    pub(super) fn limits(&self) -> Option<(Option<f64>, Option<f64>)> {
        let around = |low: f64, high: f64| Some((Some(low.min(high)), Some(low.max(high))));
        match (&self.band, self.paper) {
            (Band::Range(low, high), _) => Some((*low, *high)),
            (Band::Direction(_) | Band::Report, _) | (_, None) => None,
            (Band::Equal, Some(paper)) => around(paper, paper),
            (Band::Percent(percent), Some(paper)) => {
                around(paper * (1.0 - percent / 100.0), paper * (1.0 + percent / 100.0))
            }
            (Band::Points(points), Some(paper)) => around(paper - points, paper + points),
            (Band::Factor(low, high), Some(paper)) => around(paper * low, paper * high),
        }
    }

    /// Whether the row counts as reproduced. A row without the result that it needs is `Out`.
    pub fn verdict(&self) -> Verdict {
        let Ok(measured) = &self.measured else { return Verdict::Out };
        let inside = match (&self.band, self.limits(), measured) {
            (Band::Report, ..) => return Verdict::Report,
            (Band::Direction(_), ..) => self.holds,
            (_, Some((low, high)), Some(value)) => {
                // Bounds are computed: rounding must not push a number on the bound outside.
                let slack = |bound: f64| 1e-9 * bound.abs();
                let above = low.is_none_or(|low| *value >= low - slack(low));
                let below = high.is_none_or(|high| *value <= high + slack(high));
                value.is_finite() && above && below
            }
            _ => false,
        };
        if inside { Verdict::In } else { Verdict::Out }
    }

    /// Why the row is outside: the failure of its run, or the likely cause.
    pub fn reason(&self) -> Option<String> {
        match (&self.measured, self.verdict()) {
            (Err(failed), _) => Some(failed.to_string()),
            (_, Verdict::Out) => self.reason.clone(),
            _ => None,
        }
    }

    pub fn measured_text(&self) -> String {
        match (&self.measured, &self.seen) {
            (Err(_), _) => "no result".to_string(),
            (Ok(Some(value)), _) => with_unit(*value, self.unit),
            (Ok(None), Some(seen)) => seen.clone(),
            (Ok(None), None) => "–".to_string(),
        }
    }

    pub fn paper_text(&self) -> String {
        self.paper.map_or("–".to_string(), |paper| with_unit(paper, self.unit))
    }

    pub fn band_text(&self) -> String {
        let number = |value| with_unit(value, self.unit);
        match (&self.band, self.limits()) {
            (Band::Direction(claim), _) => claim.clone(),
            (Band::Equal, _) => "equal".to_string(),
            (_, Some((Some(low), Some(high)))) if self.unit == "×" => {
                format!("{} to {}", number(low), number(high))
            }
            (_, Some((Some(low), Some(high)))) => format!("{} to {}", figure(low), figure(high)),
            (_, Some((None, Some(high)))) => format!("at most {}", number(high)),
            (_, Some((Some(low), None))) => format!("at least {}", number(low)),
            _ => "–".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row::new("speedup", "×").paper(2.0)
    }

    #[track_caller]
    /// Checks which values around the paper's 2 lie inside a band.
    fn bounds(row: fn(Row) -> Row, inside: &[f64], outside: &[f64]) {
        let verdict = |value: f64| row(Row::new("speedup", "×").paper(2.0)).measured(Ok(value)).verdict();
        for value in inside {
            assert_eq!(verdict(*value), Verdict::In, "{value}");
        }
        for value in outside {
            assert_eq!(verdict(*value), Verdict::Out, "{value}");
        }
    }

    #[test]
    fn bands() {
        bounds(Row::equal, &[2.0], &[2.001, 1.999, f64::NAN]);
        bounds(|row| row.percent(10.0), &[1.8, 2.2], &[1.79, 2.21, f64::NAN]);
        bounds(|row| row.points(0.5), &[1.5, 2.5], &[1.49, 2.51]);
        bounds(|row| row.factor(0.8..=1.25), &[1.6, 2.5], &[1.59, 2.51]);
        bounds(|row| row.at_most(5.0), &[-1.0, 5.0], &[5.1, f64::INFINITY]);
        bounds(|row| row.at_least(5.0), &[5.0, 1e30], &[4.9, f64::INFINITY]);
    }

    #[test]
    fn a_bands_ends_are_in_it() {
        // 0.1 and 0.2 have no exact binary form.
        let verdict = Row::new("", "").paper(0.1).points(0.2).measured(Ok(0.3)).verdict();
        assert_eq!(verdict, Verdict::In);
        let limits = Row::new("", "").paper(-10.0).percent(20.0).limits();
        assert_eq!(limits, Some((Some(-12.0), Some(-8.0))));
    }

    #[test]
    fn directions_and_orders() {
        let (four, two) = (("tiny", Ok(4.0)), ("vote", Ok(2.0)));
        let right = Row::falling("order", &[four.clone(), two.clone()]);
        assert_eq!((right.verdict(), right.band_text()), (Verdict::In, "tiny > vote".to_string()));
        assert_eq!(right.measured_text(), "4, 2");
        assert_eq!(Row::falling("order", &[two, four.clone()]).verdict(), Verdict::Out);
        assert_eq!(Row::falling("order", &[four.clone(), four]).verdict(), Verdict::Out);
        assert_eq!(Row::claim("c", "slower", Ok((true, "3 of 4".into()))).verdict(), Verdict::In);
    }

    #[test]
    fn without_a_result() {
        let failed = || Failed { run: "work nw".into(), message: "hangs".into() };
        for row in [row().measured(Err(failed())), row().percent(5.0).measured(Err(failed()))] {
            assert_eq!((row.verdict(), row.ratio()), (Verdict::Out, None));
            assert_eq!(row.reason(), Some("work nw: hangs".to_string()));
        }
        let order = Row::falling("order", &[("a", Ok(1.0)), ("b", Err(failed()))]);
        assert_eq!(order.verdict(), Verdict::Out);
        // A band around the paper's number needs both numbers.
        assert_eq!(row().percent(5.0).verdict(), Verdict::Out);
        assert_eq!(Row::new("", "").percent(5.0).measured(Ok(1.0)).verdict(), Verdict::Out);
    }

    #[test]
    fn reasons_are_for_rows_outside() {
        let explained = |value| row().percent(5.0).because("no such cache").measured(Ok(value)).reason();
        assert_eq!((explained(2.0), explained(9.0)), (None, Some("no such cache".to_string())));
    }

    #[test]
    fn verdicts_add_up() {
        use Verdict::*;
        assert_eq!(Verdict::of([In, Report, Out].into_iter()), Out);
        assert_eq!(Verdict::of([Report, In].into_iter()), In);
        assert_eq!(Verdict::of([Report].into_iter()), Report);
    }

    #[test]
    fn words() {
        assert_eq!(row().percent(10.0).band_text(), "1.80× to 2.20×");
        assert_eq!(Row::new("", "cycles").paper(100.0).percent(10.0).band_text(), "90 to 110");
        assert_eq!(Row::new("", "%").at_most(5.0).band_text(), "at most 5 %");
        assert_eq!((row().band_text(), row().equal().band_text()), ("–".into(), "equal".into()));
    }
}
