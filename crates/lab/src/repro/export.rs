//! Results for programs: JSON and CSV.

use serde::Serialize;

use super::report::{Evaluated, Reproduction};
use super::row::{Band, Row, Verdict};
use super::{Scale, maker};

/// The whole, in the form that `warploom repro --json` prints.
#[derive(Serialize)]
struct Whole<'a> {
    experiments: Vec<One<'a>>,
    r#in: usize,
    out: usize,
    report: usize,
    runs: usize,
    kept_runs: usize,
    wall_s: f64,
    version: &'static str,
    model: &'static str,
}

#[derive(Serialize)]
struct One<'a> {
    id: &'a str,
    paper: &'a str,
    title: &'a str,
    quick: bool,
    chip: String,
    wall_s: f64,
    verdict: Verdict,
    rows: Vec<RowForm>,
    runs: Vec<&'a str>,
}

#[derive(Serialize)]
struct RowForm {
    name: String,
    paper: Option<f64>,
    measured: Option<f64>,
    ratio: Option<f64>,
    band: BandForm,
    verdict: Verdict,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The ends of a band, `null` where it is open, a word, or nothing for a row that only informs.
#[derive(Serialize)]
#[serde(untagged)]
enum BandForm {
    Ends([Option<f64>; 2]),
    Word(&'static str),
    None,
}

impl From<&Row> for RowForm {
    fn from(row: &Row) -> RowForm {
        let direction = match &row.band {
            Band::Direction(claim) => Some(claim.clone()),
            _ => None,
        };
        let band = match (row.limits(), &direction) {
            (_, Some(_)) => BandForm::Word("direction"),
            (Some((low, high)), None) => BandForm::Ends([low, high]),
            (None, None) => BandForm::None,
        };
        RowForm {
            name: row.name.clone(),
            paper: row.paper,
            measured: row.value(),
            ratio: row.ratio(),
            band,
            verdict: row.verdict(),
            unit: row.unit,
            direction,
            seen: row.seen.clone(),
            note: row.note.clone(),
            reason: row.reason(),
        }
    }
}

impl Reproduction {
    /// One JSON object on one line, without a line end.
    pub fn json(&self) -> String {
        let whole = Whole {
            experiments: self.experiments.iter().map(|experiment| self.one(experiment)).collect(),
            r#in: self.count(Verdict::In),
            out: self.count(Verdict::Out),
            report: self.count(Verdict::Report),
            runs: self.runs,
            kept_runs: self.kept,
            wall_s: self.wall_s,
            version: maker::VERSION,
            model: maker::MODEL,
        };
        // Plain structures always have a JSON form; numbers that JSON does not know become null.
        serde_json::to_string(&whole).unwrap_or_default()
    }

    fn one<'a>(&self, experiment: &'a Evaluated) -> One<'a> {
        One {
            id: experiment.about.id,
            paper: experiment.about.paper,
            title: experiment.about.title,
            quick: self.scale == Scale::Quick,
            chip: experiment.chips().join(", "),
            wall_s: experiment.wall_s(),
            verdict: experiment.verdict(),
            rows: experiment.outcome.rows.iter().map(RowForm::from).collect(),
            runs: experiment.runs.iter().map(|run| run.run.as_str()).collect(),
        }
    }

    /// All rows as a table with a head.
    pub fn csv(&self) -> String {
        let head =
            "experiment,quick,name,unit,paper,measured,ratio,low,high,direction,seen,verdict,note,reason\n";
        let mut text = head.to_string();
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for experiment in &self.experiments {
            for row in &experiment.outcome.rows {
                let form = RowForm::from(row);
                let (low, high) = row.limits().unwrap_or_default();
                let cells = [
                    experiment.about.id.to_string(),
                    (self.scale == Scale::Quick).to_string(),
                    form.name,
                    form.unit.to_string(),
                    number(form.paper),
                    number(form.measured),
                    number(form.ratio),
                    number(low),
                    number(high),
                    form.direction.unwrap_or_default(),
                    form.seen.unwrap_or_default(),
                    form.verdict.word().to_string(),
                    form.note.unwrap_or_default(),
                    form.reason.unwrap_or_default(),
                ];
                text.push_str(&cells.map(cell).join(","));
                text.push('\n');
            }
        }
        text
    }
}

/// A cell, in quotes where it needs them.
fn cell(text: String) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repro::report::tests::example;

    #[test]
    fn json_keeps_its_form() {
        let json = example().json().replace(maker::MODEL, "MODEL").replace(maker::VERSION, "VERSION");
        assert!(!json.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn csv_keeps_its_form() {
        insta::assert_snapshot!(example().csv());
    }
}
