//! Results of random programs, recorded on a real GPU and replayed on any device.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use warploom::Device;

use super::program::{Options, Program};
use super::run::{BATCH, digest, run_batch};
use crate::conform::error::{Error, Result};
use crate::conform::origin::Origin;
use crate::conform::{OnProgress, Progress};
use crate::random::hash;

fn path(dir: &Path) -> PathBuf {
    dir.join("fuzz.txt")
}

const TITLE: &str = "# Results of random programs: seed, hash of the text, hash of what it leaves in memory.";

/// Runs the programs of some seeds on a real GPU and writes hashes of what they leave in memory into `dir`. A
/// simulated chip is refused. Returns the number of programs.
pub fn record_fuzz(
    device: &mut Device,
    dir: &Path,
    seeds: Range<u64>,
    report: OnProgress<'_>,
) -> Result<usize> {
    let origin = Origin::of(device)?;
    record_as(device, dir, seeds, origin, report)
}

/// [`record_fuzz`] on any device.
pub(crate) fn record_as(
    device: &mut Device,
    dir: &Path,
    seeds: Range<u64>,
    origin: Origin,
    report: OnProgress<'_>,
) -> Result<usize> {
    let mut text = format!("{TITLE}\n# {origin}\n");
    let programs: Vec<_> = seeds.map(|seed| Program::generate(seed, Options::default())).collect();
    let total = programs.len();
    for (batch, programs) in programs.chunks(BATCH).enumerate() {
        report(Progress { stage: "programs".to_string(), done: batch * BATCH, total });
        for (program, image) in programs.iter().zip(run_batch(device, programs)) {
            text += &format!("{} {:016x} {:016x}\n", program.seed, text_hash(program), digest(&image?));
        }
    }
    std::fs::create_dir_all(dir).map_err(Error::file(dir))?;
    let path = path(dir);
    std::fs::write(&path, text).map_err(Error::file(&path))?;
    Ok(total)
}

fn text_hash(program: &Program) -> u64 {
    hash(program.ptx().as_bytes())
}

/// How a device compares with recorded programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoredReport {
    /// The recorded [`Origin`], as text.
    pub origin: String,
    /// Programs with the recorded result.
    pub equal: usize,
    /// Seeds of programs with another result.
    pub different: Vec<u64>,
    /// Programs that the device does not run, with the reason.
    pub failed: Vec<(u64, String)>,
    /// Seeds that no longer generate the recorded program.
    pub stale: Vec<u64>,
}

impl StoredReport {
    /// Whether every recorded result was reproduced.
    pub fn is_clean(&self) -> bool {
        self.different.is_empty() && self.failed.is_empty() && self.stale.is_empty()
    }
}

/// Runs the programs recorded in `dir` on a device and compares the results.
pub fn replay_fuzz(device: &mut Device, dir: &Path, report: OnProgress<'_>) -> Result<StoredReport> {
    let path = path(dir);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::NoVectors(dir.to_path_buf()));
        }
        other => other.map_err(Error::file(&path))?,
    };
    let mut out = StoredReport::default();
    let mut recorded = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match line.strip_prefix('#') {
            Some(_) if number == 0 => {}
            Some(origin) => out.origin = origin.trim().to_string(),
            None => recorded
                .push(parse(line).ok_or_else(|| Error::format(&path, format!("line {}", number + 1)))?),
        }
    }
    let total = recorded.len();
    for (batch, recorded) in recorded.chunks(BATCH).enumerate() {
        report(Progress { stage: "programs".to_string(), done: batch * BATCH, total });
        let programs: Vec<_> = recorded.iter().map(|r| Program::generate(r[0], Options::default())).collect();
        for ((program, recorded), image) in programs.iter().zip(recorded).zip(run_batch(device, &programs)) {
            let [seed, text, result] = *recorded;
            match image {
                _ if text_hash(program) != text => out.stale.push(seed),
                Ok(image) if digest(&image) == result => out.equal += 1,
                Ok(_) => out.different.push(seed),
                Err(error) => out.failed.push((seed, error.to_string())),
            }
        }
    }
    Ok(out)
}

/// The seed and two hashes.
fn parse(line: &str) -> Option<[u64; 3]> {
    let mut words = line.split_whitespace();
    let seed = words.next()?.parse().ok()?;
    let mut hex = || u64::from_str_radix(words.next()?, 16).ok();
    Some([seed, hex()?, hex()?])
}
