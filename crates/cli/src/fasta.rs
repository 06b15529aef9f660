//! Two FASTA files as the input of `warploom work nw`.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use warploom::{Device, Launch};
use warploom_lab::align::{Alignment, Alphabet, FastaError, Record, Scoring, align};
use warploom_lab::work::{Outcome, Values, Workload};

use crate::cli::{AlphabetName, FastaOptions};
use crate::failure::Failure;

/// Two sequences and how their letters are scored.
pub(crate) struct Pair {
    a: Record,
    b: Record,
    scoring: Scoring,
}

/// Reads the sequences, if any are asked for.
pub(crate) fn read(workload: &Workload, options: &FastaOptions) -> Result<Option<Pair>, Failure> {
    let [a, b] = options.fasta.as_slice() else { return Ok(None) };
    if workload.name != "nw" {
        let message = format!("workload `{}` aligns no sequences", workload.name);
        return Err(Failure::input(message).help("warploom work nw --fasta A.fa B.fa"));
    }
    let (a, b) = (record(a)?, record(b)?);
    let alphabet = match options.alphabet {
        AlphabetName::Auto => None,
        AlphabetName::Protein => Some(Alphabet::Protein),
        AlphabetName::Nucleotide => Some(Alphabet::Nucleotide),
    };
    let scoring =
        Scoring::for_records(&a, &b, alphabet, options.matching.into(), options.mismatching.into())?;
    Ok(Some(Pair { a, b, scoring }))
}

fn record(path: &Path) -> Result<Record, FastaError> {
    let file = path.display().to_string();
    let opened = File::open(path).map_err(|error| FastaError::Io { file: file.clone(), error })?;
    Record::read(&file, BufReader::new(opened))
}

impl Pair {
    pub(crate) fn align(
        &self,
        gpu: &mut Device,
        values: &Values,
        prepare: &dyn Fn(Launch) -> Launch,
    ) -> warploom::Result<(Outcome, Alignment)> {
        align(gpu, &self.a, &self.b, &self.scoring, values, prepare)
    }
}

impl From<FastaError> for Failure {
    fn from(error: FastaError) -> Failure {
        Failure::input(error.to_string())
    }
}
