//! Results as JSON and CSV.

use serde::Serialize;

use super::Scale;
use super::report::{Evaluated, Reproduction};
use super::row::{Band, Row, Verdict};
use crate::csv;
use crate::runs::provenance;

/// What `warploom repro --json` prints. The order of fields is the order of keys.
#[derive(Serialize)]
struct ReproductionJson<'a> {
    experiments: Vec<ExperimentJson<'a>>,
    r#in: usize,
    out: usize,
    report: usize,
    headlines_in: usize,
    headlines_out: usize,
    runs: usize,
    kept_runs: usize,
    wall_s: f64,
    version: &'static str,
    model: &'static str,
}

#[derive(Serialize)]
struct ExperimentJson<'a> {
    id: &'a str,
    paper: &'a str,
    title: &'a str,
    quick: bool,
    chip: String,
    wall_s: f64,
    verdict: Verdict,
    rows: Vec<RowJson>,
    runs: Vec<&'a str>,
}

#[derive(Serialize)]
struct RowJson {
    name: String,
    paper: Option<f64>,
    measured: Option<f64>,
    ratio: Option<f64>,
    band: BandJson,
    verdict: Verdict,
    unit: &'static str,
    headline: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The limits of a band, each `null` if open; the word `direction`; or `null` for a row that only informs.
#[derive(Serialize)]
#[serde(untagged)]
enum BandJson {
    Ends([Option<f64>; 2]),
    Word(&'static str),
    None,
}

impl From<&Row> for RowJson {
    fn from(row: &Row) -> RowJson {
        let direction = match &row.band {
            Band::Direction(claim) => Some(claim.clone()),
            _ => None,
        };
        let band = match (row.limits(), &direction) {
            (_, Some(_)) => BandJson::Word("direction"),
            (Some((low, high)), None) => BandJson::Ends([low, high]),
            (None, None) => BandJson::None,
        };
        RowJson {
            name: row.name.clone(),
            paper: row.paper,
            measured: row.value(),
            ratio: row.ratio(),
            band,
            verdict: row.verdict(),
            unit: row.unit,
            headline: row.headline,
            direction,
            seen: row.seen.clone(),
            note: row.note.clone(),
            reason: row.reason(),
        }
    }
}

impl Reproduction {
    /// ExperimentJson JSON object on one line, without a trailing newline.
    pub fn json(&self) -> String {
        let whole = ReproductionJson {
            experiments: self.experiments.iter().map(|experiment| self.experiment_json(experiment)).collect(),
            r#in: self.count(Verdict::In),
            out: self.count(Verdict::Out),
            report: self.count(Verdict::Report),
            headlines_in: self.headlines(Verdict::In).count(),
            headlines_out: self.headlines(Verdict::Out).count(),
            runs: self.runs,
            kept_runs: self.kept,
            wall_s: self.wall_s,
            version: provenance::VERSION,
            model: provenance::MODEL,
        };
        // Plain structures always serialize; numbers that JSON cannot express become null.
        serde_json::to_string(&whole).unwrap_or_default()
    }

    fn experiment_json<'a>(&self, experiment: &'a Evaluated) -> ExperimentJson<'a> {
        ExperimentJson {
            id: experiment.about.id,
            paper: experiment.about.paper,
            title: experiment.about.title,
            quick: self.scale == Scale::Quick,
            chip: experiment.chips().join(", "),
            wall_s: experiment.wall_s(),
            verdict: experiment.verdict(),
            rows: experiment.outcome.rows.iter().map(RowJson::from).collect(),
            runs: experiment.runs.iter().map(|run| run.run.as_str()).collect(),
        }
    }

    /// All rows as a table with a header.
    pub fn csv(&self) -> String {
        let head = "experiment,quick,name,unit,paper,measured,ratio,low,high,direction,seen,verdict,headline,\
                    note,reason\n";
        let mut text = head.to_string();
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for experiment in &self.experiments {
            for row in &experiment.outcome.rows {
                let form = RowJson::from(row);
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
                    form.headline.to_string(),
                    form.note.unwrap_or_default(),
                    form.reason.unwrap_or_default(),
                ];
                text += &csv::line(cells);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repro::report::tests::example;

    #[test]
    fn json_keeps_its_form() {
        let json =
            example().json().replace(provenance::MODEL, "MODEL").replace(provenance::VERSION, "VERSION");
        assert!(!json.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn csv_keeps_its_form() {
        insta::assert_snapshot!(example().csv());
    }
}
