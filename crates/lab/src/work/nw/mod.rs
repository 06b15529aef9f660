//! Needleman-Wunsch in six versions: the three that the ICS'15 paper measures, one that it only describes, and two
//! beyond the paper.
//!
//! `problem.rs` has what is computed, `version.rs` how, `lock_room.rs` how many tiles with lock bits fit an SM.

mod lock_room;
mod problem;
mod version;

use warploom::{Chip, Result};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload};
use crate::align::matrix;
use crate::random::Random;

pub(crate) use problem::Problem;
pub(crate) use version::{Version, solve};

const SIZE: Param = Param::new("size", "letters of a sequence", 496).range(1, 16_384);
const COLUMNS: Param = Param::new("columns", "letters of the other one; 0: as many", 0).range(0, 16_384);
pub(crate) const PENALTY: Param = Param::new("penalty", "cost of a gap", 10).range(-1_000_000, 1_000_000);
const SCORE: Param = Param::word(
    "score",
    "of two letters: a random field, or BLOSUM62 of random proteins",
    &["field", "blosum62"],
);
const VERSION: Param =
    Param::word("version", "how cells wait for each other (docs/alignment.md)", version::NAMES);
const TILE: Param = Param::word(
    "tile",
    "cells of a tile's side, version tiny or private; auto: 31 if there are lock bits for it",
    &["auto", "31", "15"],
);
const CELLS: Param =
    Param::word("cells", "cells of a thread and of its lock bit, version multi or grid", &["16", "8", "4"]);

pub(super) const WORKLOAD: Workload = Workload {
    name: "nw",
    about: "Needleman-Wunsch scores of two sequences, in tiles, data-parallel or as a dataflow of threads",
    params: &[SIZE, COLUMNS, PENALTY, SCORE, VERSION, TILE, CELLS, SEED],
    run,
};

/// The chip to simulate if none is named: the paper's if the version needs lock bits.
pub(super) fn chip(values: &Values) -> Option<&'static str> {
    version(values, None).needs_lock_bits().then_some("gtx570")
}

/// The requested version. With `tile=auto` it depends on the lock bits of the chip.
pub(crate) fn version(values: &Values, chip: Option<&Chip>) -> Version {
    let cells = values.word(&CELLS).parse().unwrap_or(16);
    let bits = chip.map_or(0, |chip| chip.lock.bits);
    let tile = |channels: u32| match values.word(&TILE) {
        "31" => 31,
        "15" => 15,
        _ if bits >= channels * 1024 || bits == 0 => 31,
        _ => 15,
    };
    match values.word(&VERSION) {
        "atomic" => Version::Atomic,
        "tiny" => Version::Tiny { tile: tile(1) },
        "private" => Version::Private { tile: tile(3) },
        "multi" => Version::Multi { cells },
        "grid" => Version::Grid { cells },
        _ => Version::DataParallel,
    }
}

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let rows: u32 = values.get(&SIZE);
    let columns = match values.get(&COLUMNS) {
        0 => rows,
        columns => columns,
    };
    let penalty = values.get(&PENALTY);
    let mut random = Random::new(values.get(&SEED));
    let problem = match values.word(&SCORE) {
        "blosum62" => {
            let mut protein = |letters: u32| -> Vec<u8> {
                (0..letters).map(|_| random.pick(matrix::AMINO_ACIDS)).collect()
            };
            let (a, b) = (protein(rows), protein(columns));
            Problem::of(&a, &b, |a, b| matrix::blosum62(a, b).unwrap_or(0), penalty)
        }
        _ => Problem::random(rows, columns, penalty, &mut random),
    };
    let version = version(values, bench.gpu.chip());
    let scores = solve(bench, &problem, version)?;
    Ok(equal("scores", &scores, &problem.scores()))
}
