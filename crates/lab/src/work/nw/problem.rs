//! What is computed: the scores of all prefixes of two sequences, and the host's own computation of them.

use std::ops::RangeInclusive;

use crate::random::Random;

/// Range of random scores, as in usual substitution matrices.
const FIELD: RangeInclusive<i32> = -4..=11;

/// Two sequences to align: the score of every pair of letters, and the cost of a gap.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// Letters of the first sequence.
    pub rows: u32,
    /// Letters of the second sequence.
    pub columns: u32,
    /// Scores of all pairs, row by row.
    pub gains: Vec<i32>,
    /// Cost of a letter without a partner.
    pub penalty: i32,
}

impl Problem {
    /// From two sequences and the score of a pair.
    pub(crate) fn of<T: Copy>(a: &[T], b: &[T], gain: impl Fn(T, T) -> i32, penalty: i32) -> Problem {
        let gains = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b))).map(|(a, b)| gain(a, b)).collect();
        Problem { rows: a.len() as u32, columns: b.len() as u32, gains, penalty }
    }

    /// A field of random scores without letters, as in the ICS'15 paper.
    pub(crate) fn random(rows: u32, columns: u32, penalty: i32, random: &mut Random) -> Problem {
        let gains = (0..rows as usize * columns as usize).map(|_| random.between(FIELD)).collect();
        Problem { rows, columns, gains, penalty }
    }

    /// A score matrix with one row and column more than letters, of which the first are filled: i gaps cost i
    /// penalties.
    pub(crate) fn border(&self) -> Vec<i32> {
        let (rows, columns) = (self.rows as usize + 1, self.columns as usize + 1);
        let gaps = |count: usize| self.penalty.wrapping_mul(-(count as i32));
        let mut scores = vec![0; rows * columns];
        (0..columns).for_each(|c| scores[c] = gaps(c));
        (0..rows).for_each(|r| scores[r * columns] = gaps(r));
        scores
    }

    /// All scores, row by row. Integers wrap, as in the kernels.
    pub(crate) fn scores(&self) -> Vec<i32> {
        let mut scores = self.border();
        let pitch = self.columns as usize + 1;
        for (row, gains) in (1..).zip(self.gains.chunks_exact(pitch - 1)) {
            for (at, gain) in (row * pitch + 1..).zip(gains) {
                let pair = scores[at - pitch - 1].wrapping_add(*gain);
                let gap = scores[at - pitch].max(scores[at - 1]).wrapping_sub(self.penalty);
                scores[at] = pair.max(gap);
            }
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_alignment() {
        // A match is 1, a mismatch -1, a gap -1.
        let problem = Problem::of(b"GAT", b"GT", |a, b| if a == b { 1 } else { -1 }, 1);
        #[rustfmt::skip]
        assert_eq!(problem.scores(), [
             0, -1, -2,
            -1,  1,  0,
            -2,  0,  0,
            -3, -1,  1,
        ]);
    }
}
