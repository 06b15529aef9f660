//! Global alignment of two sequences from FASTA files. A device computes the scores; the host traces the
//! alignment back through them. Start at [`align`].
//!
//! ```
//! use warploom::Device;
//! use warploom_lab::align::{Record, Scoring, align};
//! use warploom_lab::work::Workload;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let a = Record::read("a.fa", &b">one\nGATTACA\n"[..])?;
//! let b = Record::read("b.fa", &b">two\nGATACA\n"[..])?;
//! let scoring = Scoring::for_records(&a, &b, None, 5, -4)?;
//! let values = Workload::find("nw")?.values(&["penalty=6"])?;
//! let (outcome, alignment) = align(&mut Device::sim("gtx480")?, &a, &b, &scoring, &values, &|launch| launch)?;
//! assert!(outcome.check.is_ok());
//! assert_eq!((alignment.score, alignment.b.as_str()), (24, "GA-TACA"));
//! # Ok(())
//! # }
//! ```

mod fasta;
pub(crate) mod matrix;
mod path;
mod show;

use warploom::{Device, Launch, Result};

use crate::work::{Bench, Outcome, Values, nw, total};

pub use fasta::{FastaError, Record};
pub use matrix::{Alphabet, Scoring};
pub use path::Alignment;

/// Aligns two sequences on `gpu`. `values` are the parameters of workload `nw`, of which the gap penalty and the
/// kernel version apply. `prepare` can change each launch before it starts, for example its time limit.
pub fn align(
    gpu: &mut Device,
    a: &Record,
    b: &Record,
    scoring: &Scoring,
    values: &Values,
    prepare: &dyn Fn(Launch) -> Launch,
) -> Result<(Outcome, Alignment)> {
    let problem =
        nw::Problem::of(&a.letters, &b.letters, |a, b| scoring.score(a, b), values.get(&nw::PENALTY));
    let version = nw::version(values, gpu.chip());
    let mut bench = Bench::new(gpu, prepare);
    let scores = nw::solve(&mut bench, &problem, version)?;
    let (launches, figures) = bench.into_parts();
    let host = problem.scores();
    let check = crate::work::equal("scores", &scores, &host);
    // A traceback through wrong scores may lead nowhere. The failed check already reports them.
    let alignment = Alignment::back(a, b, scoring, &problem, if check.is_ok() { &scores } else { &host });
    Ok((Outcome { total: total(&launches), launches, check, figures }, alignment))
}
