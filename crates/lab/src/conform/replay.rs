//! Replays recorded vectors on a device and compares the results.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use warploom::{Device, Kernel, Module};

use super::bound::Agreement;
use super::case::{Case, Group};
use super::catalogue::GROUPS;
use super::error::{Error, Result};
use super::operands::operands;
use super::origin::Origin;
use super::run::{Buffers, fingerprint, result};
use super::show::show;
use super::vectors::{self, Vectors};
use super::{OnProgress, Progress};

/// How a device compares with recorded vectors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConformReport {
    pub device: String,
    /// One entry per recorded group.
    pub groups: Vec<GroupReport>,
}

/// How a device compares in one group of instructions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    pub group: String,
    pub origin: Origin,
    /// Instructions compared.
    pub cases: usize,
    /// Operand tuples compared.
    pub vectors: usize,
    /// Tuples whose results are the same bits.
    pub equal: usize,
    /// Tuples of approximations whose results are within the bound.
    pub within_bound: usize,
    /// The largest distance among those, in steps of the result's format.
    pub max_error_ulp: u64,
    pub different: usize,
    /// One entry per instruction with different results.
    pub differences: Vec<CaseDifference>,
    /// Instructions that the device does not run.
    pub refused: Vec<Refusal>,
    /// Instructions whose recording no longer fits the catalogue.
    pub stale: Vec<String>,
    /// Instructions of the catalogue that were not recorded.
    pub unrecorded: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseDifference {
    pub case: String,
    /// Tuples with different results.
    pub different: usize,
    /// Tuples compared.
    pub vectors: usize,
    /// Index of the first tuple with a different result. The fields below describe it.
    pub index: usize,
    pub operands: Vec<String>,
    pub expected: Vec<String>,
    pub got: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub case: String,
    pub reason: String,
}

impl ConformReport {
    /// Whether every recorded result is equal or within its bound, and none was left out.
    pub fn is_clean(&self) -> bool {
        self.groups.iter().all(|g| g.different == 0 && g.refused.is_empty() && g.stale.is_empty())
    }
}

/// Runs everything recorded in `dir` on a device and compares the results.
pub fn replay(device: &mut Device, dir: &Path, report: OnProgress<'_>) -> Result<ConformReport> {
    let mut recorded = Vec::new();
    for group in GROUPS {
        if let Some(vectors) = Vectors::read(&vectors::path(dir, group.name))? {
            recorded.push((group, vectors));
        }
    }
    if recorded.is_empty() {
        return Err(Error::NoVectors(dir.to_path_buf()));
    }
    let total = recorded.iter().map(|(_, v)| v.header.cases.len()).sum();
    let mut done = 0;
    let mut groups = Vec::new();
    for (group, vectors) in recorded {
        let stage = group.name.to_string();
        let step = &mut |cases: usize| {
            report(Progress { stage: stage.clone(), done: done + cases, total });
        };
        step(0);
        groups.push(replay_group(device, group, &vectors, step)?);
        done += vectors.header.cases.len();
    }
    Ok(ConformReport { device: device.name().to_string(), groups })
}

fn replay_group(
    device: &mut Device,
    group: &Group,
    vectors: &Vectors,
    step: &mut dyn FnMut(usize),
) -> Result<GroupReport> {
    let cases = group.cases();
    let mut known: BTreeMap<&str, &Case> = cases.iter().map(|c| (c.name.as_str(), c)).collect();
    let mut out = GroupReport {
        group: group.name.to_string(),
        origin: vectors.header.origin.clone(),
        cases: 0,
        vectors: 0,
        equal: 0,
        within_bound: 0,
        max_error_ulp: 0,
        different: 0,
        differences: Vec::new(),
        refused: Vec::new(),
        stale: Vec::new(),
        unrecorded: Vec::new(),
    };
    // If one case keeps the module from loading, load each case separately, so that the others are still compared.
    let module = device.load_ptx_named(group.name, group.ptx(&cases)).ok();
    let buffers = Buffers::new(device, &cases)?;
    for (i, (recorded, expected)) in vectors.iter().enumerate() {
        step(i);
        let Some(case) = known.remove(recorded.name.as_str()) else {
            out.stale.push(recorded.name.clone());
            continue;
        };
        let same = fingerprint(case) == recorded.fingerprint;
        if !same || case.tuples != recorded.tuples || case.output_bytes() != recorded.bytes {
            out.stale.push(recorded.name.clone());
            continue;
        }
        let got = kernel(device, group, module.as_ref(), case).and_then(|k| buffers.run(device, &k, case));
        match got {
            Ok(got) => out.compare(case, expected, &got),
            Err(error) => out.refused.push(Refusal { case: case.name.clone(), reason: error.to_string() }),
        }
    }
    out.unrecorded =
        cases.iter().filter(|c| known.contains_key(c.name.as_str())).map(|c| c.name.clone()).collect();
    Ok(out)
}

fn kernel(device: &mut Device, group: &Group, module: Option<&Module>, case: &Case) -> Result<Kernel> {
    let kernel = match module {
        Some(module) => module.kernel(&case.entry()),
        None => {
            let text = group.ptx(std::slice::from_ref(case));
            device.load_ptx_named(&case.name, text).and_then(|module| module.kernel(&case.entry()))
        }
    };
    Ok(kernel?)
}

impl GroupReport {
    fn compare(&mut self, case: &Case, expected: &[u8], got: &[u8]) {
        self.cases += 1;
        self.vectors += case.tuples;
        let operands = operands(case);
        let arity = case.inputs.len();
        let mut first = None;
        let mut different = 0;
        for k in 0..case.tuples {
            let tuple = &operands[k * arity..][..arity];
            match self.agreement(case, tuple, |o| (result(case, expected, o, k), result(case, got, o, k))) {
                Agreement::Equal => self.equal += 1,
                Agreement::Within(steps) => {
                    self.within_bound += 1;
                    self.max_error_ulp = self.max_error_ulp.max(steps);
                }
                Agreement::Different => {
                    different += 1;
                    first.get_or_insert(k);
                }
            }
        }
        self.different += different;
        let Some(k) = first else { return };
        let all = |results: &[u8]| {
            let one = |(o, slot): (usize, _)| show(slot, result(case, results, o, k));
            case.outputs.iter().copied().enumerate().map(one).collect()
        };
        let shown = |i: usize| show(case.inputs[i].slot, operands[k * arity + i]);
        self.differences.push(CaseDifference {
            case: case.name.clone(),
            different,
            vectors: case.tuples,
            index: k,
            operands: (0..arity).map(shown).collect(),
            expected: all(expected),
            got: all(got),
        });
    }

    /// The worst agreement over the results of one tuple.
    fn agreement(&self, case: &Case, tuple: &[u64], results: impl Fn(usize) -> (u64, u64)) -> Agreement {
        let operand = tuple.first().copied().unwrap_or(0);
        let mut worst = Agreement::Equal;
        for (o, slot) in case.outputs.iter().enumerate() {
            let (expected, got) = results(o);
            worst = match (worst, case.bound.compare(*slot, operand, expected, got)) {
                (Agreement::Different, _) | (_, Agreement::Different) => return Agreement::Different,
                (Agreement::Within(a), Agreement::Within(b)) => Agreement::Within(a.max(b)),
                (Agreement::Equal, other) => other,
                (within, Agreement::Equal) => within,
            };
        }
        worst
    }
}
