//! Table III: the storage that DDOS and BOWS need, computed from their settings.

use warploom::{Chip, StorageBits};

use super::PAPER;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

pub(crate) struct Storage;

/// Parts by the names of [`StorageBits::named`], with the paper's bits per SM.
const TABLE: [(&str, f64); 4] = [
    ("SIB prediction table", 560.0),
    ("history registers", 9216.0),
    ("pending-delay counters", 672.0),
    ("backed-off queue", 240.0),
];

impl Experiment for Storage {
    fn about(&self) -> About {
        About {
            id: "hpca18-table3",
            paper: PAPER,
            title: "Storage of DDOS and BOWS, from the settings",
            quick_s: 0,
            full_s: 0,
        }
    }

    fn runs(&self, _: Scale) -> Vec<Run> {
        Vec::new()
    }

    fn evaluate(&self, _: &Results) -> Outcome {
        let bits = |part: &str| {
            let failed = |message: String| Failed { run: "gtx480".to_string(), message };
            let chip = Chip::load("gtx480", &[]).map_err(|error| failed(error.to_string()))?;
            let parts = StorageBits::of(&chip).named();
            let found = parts.iter().find(|(name, _)| *name == part).map(|(_, bits)| *bits as f64);
            found.ok_or_else(|| failed(format!("no part `{part}`")))
        };
        let rows =
            TABLE.map(|(part, paper)| Row::new(part, "bits").paper(paper).measured(bits(part)).equal());
        Outcome::new()
            .rows(rows)
            .note("gtx480's settings; warploom chips NAME shows those of any chip, --set changes them.")
    }
}
