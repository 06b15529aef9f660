//! Records results on a real GPU.

use std::path::Path;

use serde::Serialize;
use warploom::Device;

use super::catalogue::GROUPS;
use super::error::{Error, Result};
use super::origin::Origin;
use super::run::{Buffers, fingerprint};
use super::vectors::{self, Header, Recorded, Vectors};
use super::{OnProgress, Progress};

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub origin: Origin,
    pub groups: usize,
    pub cases: usize,
    /// Operand tuples.
    pub vectors: usize,
    /// Size of the files.
    pub bytes: usize,
}

/// Runs the whole catalogue on a real GPU and writes the results into `dir`, one file per group. A simulated chip is
/// refused.
pub fn record(device: &mut Device, dir: &Path, report: OnProgress<'_>) -> Result<Summary> {
    let origin = Origin::of(device)?;
    record_as(device, dir, origin, report)
}

/// [`record`] on any device.
pub(crate) fn record_as(
    device: &mut Device,
    dir: &Path,
    origin: Origin,
    report: OnProgress<'_>,
) -> Result<Summary> {
    std::fs::create_dir_all(dir).map_err(Error::file(dir))?;
    let groups: Vec<_> = GROUPS.iter().map(|g| (g, g.cases())).collect();
    let total = groups.iter().map(|(_, cases)| cases.len()).sum();
    let mut summary = Summary { origin: origin.clone(), groups: 0, cases: 0, vectors: 0, bytes: 0 };
    for (group, cases) in groups {
        report(Progress { stage: group.name.to_string(), done: summary.cases, total });
        let module = device.load_ptx_named(group.name, group.ptx(&cases))?;
        let buffers = Buffers::new(device, &cases)?;
        let header = Header { group: group.name.to_string(), origin: origin.clone(), cases: Vec::new() };
        let mut vectors = Vectors { header, results: Vec::new() };
        for case in &cases {
            let results = buffers.run(device, &module.kernel(&case.entry())?, case)?;
            vectors.header.cases.push(Recorded {
                name: case.name.clone(),
                tuples: case.tuples,
                fingerprint: fingerprint(case),
                bytes: results.len(),
            });
            vectors.results.extend_from_slice(&results);
            summary.cases += 1;
            summary.vectors += case.tuples;
            report(Progress { stage: group.name.to_string(), done: summary.cases, total });
        }
        summary.bytes += vectors.write(&vectors::path(dir, group.name))?;
        summary.groups += 1;
    }
    Ok(summary)
}
