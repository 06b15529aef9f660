//! The traceback: from the score matrix to the alignment.

use serde::Serialize;

use super::fasta::Record;
use super::matrix::{Scoring, same};
use crate::work::nw::Problem;

/// Two sequences aligned with gaps, with the counts that `needle` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alignment {
    pub names: [String; 2],
    pub matrix: String,
    pub penalty: i32,
    pub score: i32,
    /// With `-` for gaps.
    pub a: String,
    /// With `-` for gaps.
    pub b: String,
    /// One per position: `|` for equal letters, `:` for similar ones, `.` for others, a blank for a gap.
    pub marks: String,
    /// Positions with equal letters.
    pub identity: usize,
    /// Positions whose two letters have a positive score, equal ones included.
    pub similarity: usize,
    pub gaps: usize,
}

impl Alignment {
    /// Traces back through the scores of all prefixes. Where several paths have the best score, a pair of letters is
    /// preferred to a gap, and a gap in the second sequence to one in the first.
    pub(super) fn back(
        a: &Record,
        b: &Record,
        scoring: &Scoring,
        problem: &Problem,
        scores: &[i32],
    ) -> Alignment {
        let pitch = b.letters.len() + 1;
        let (mut row, mut column) = (a.letters.len(), b.letters.len());
        let mut pairs: Vec<(Option<u8>, Option<u8>)> = Vec::new();
        while row > 0 || column > 0 {
            let at = row * pitch + column;
            let pair = row > 0 && column > 0 && {
                let gain = problem.gains[(row - 1) * (pitch - 1) + column - 1];
                scores[at] == scores[at - pitch - 1].wrapping_add(gain)
            };
            let up =
                row > 0 && (column == 0 || scores[at] == scores[at - pitch].wrapping_sub(problem.penalty));
            let step = (pair || up, pair || !up);
            let letter = |taken: bool, letters: &[u8], at: usize| taken.then(|| letters[at - 1]);
            pairs.push((letter(step.0, &a.letters, row), letter(step.1, &b.letters, column)));
            row -= usize::from(step.0);
            column -= usize::from(step.1);
        }
        pairs.reverse();

        let mark = |&pair: &(Option<u8>, Option<u8>)| match pair {
            (Some(a), Some(b)) if same(a, b) => '|',
            (Some(a), Some(b)) if scoring.score(a, b) > 0 => ':',
            (Some(_), Some(_)) => '.',
            _ => ' ',
        };
        let text = |letter: Option<u8>| letter.unwrap_or(b'-') as char;
        let marks: String = pairs.iter().map(mark).collect();
        let count = |wanted: &str| marks.chars().filter(|&mark| wanted.contains(mark)).count();
        Alignment {
            names: [a.name.clone(), b.name.clone()],
            matrix: scoring.name(),
            penalty: problem.penalty,
            score: scores.last().copied().unwrap_or(0),
            a: pairs.iter().map(|pair| text(pair.0)).collect(),
            b: pairs.iter().map(|pair| text(pair.1)).collect(),
            identity: count("|"),
            similarity: count("|:"),
            gaps: count(" "),
            marks,
        }
    }

    /// Positions, gaps included.
    pub(super) fn length(&self) -> usize {
        self.marks.len()
    }
}
