//! Scores for pairs of letters: BLOSUM62 for proteins, match and mismatch for nucleotides.

use super::fasta::{FastaError, Record};

/// The kind of letters that two sequences are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// Amino acids, scored by BLOSUM62.
    Protein,
    /// A, C, G, T (or U), and N for any of them.
    Nucleotide,
}

/// The score of aligning two letters with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scoring {
    Blosum62,
    Nucleotide { matching: i32, mismatching: i32 },
}

impl Scoring {
    /// Picks the scoring for two sequences. Without an `alphabet`, they are nucleotides if no other letter
    /// occurs in either. A letter outside the alphabet is an error.
    pub fn for_records(
        a: &Record,
        b: &Record,
        alphabet: Option<Alphabet>,
        matching: i32,
        mismatching: i32,
    ) -> Result<Scoring, FastaError> {
        let all_nucleotides = [a, b].iter().all(|r| r.letters.iter().all(|&letter| nucleotide(letter)));
        let nucleotides = alphabet.map_or(all_nucleotides, |alphabet| alphabet == Alphabet::Nucleotide);
        let known = if nucleotides { nucleotide } else { amino_acid };
        for record in [a, b] {
            if let Some(at) = record.letters.iter().position(|&letter| !known(letter)) {
                let (letter, whose) =
                    (record.letters[at] as char, if nucleotides { "nucleotide" } else { "amino acid" });
                let help =
                    if nucleotides { "ACGTUN" } else { "BLOSUM62 has ARNDCQEGHILKMFPSTWYVBZX*; X is any" };
                return Err(record.wrong_letter(at, format!("`{letter}` is no {whose} ({help})")));
            }
        }
        Ok(if nucleotides { Scoring::Nucleotide { matching, mismatching } } else { Scoring::Blosum62 })
    }

    pub(super) fn score(&self, a: u8, b: u8) -> i32 {
        match *self {
            Scoring::Blosum62 => blosum62(a, b).unwrap_or(0),
            // N is any nucleotide, so it neither matches nor mismatches.
            Scoring::Nucleotide { .. } if a == b'N' || b == b'N' => 0,
            Scoring::Nucleotide { matching, .. } if same(a, b) => matching,
            Scoring::Nucleotide { mismatching, .. } => mismatching,
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Scoring::Blosum62 => "BLOSUM62".to_string(),
            Scoring::Nucleotide { matching, mismatching } => {
                format!("match {matching}, mismatch {mismatching}")
            }
        }
    }
}

/// Whether two letters mean the same: RNA has U where DNA has T.
pub(super) fn same(a: u8, b: u8) -> bool {
    let dna = |letter| if letter == b'U' { b'T' } else { letter };
    dna(a) == dna(b)
}

fn nucleotide(letter: u8) -> bool {
    b"ACGTUN".contains(&letter)
}

fn amino_acid(letter: u8) -> bool {
    index(letter).is_some()
}

pub(crate) const AMINO_ACIDS: &[u8] = b"ARNDCQEGHILKMFPSTWYV";

/// The letters of the matrix: the amino acids, B for N or D, Z for Q or E, X for any, * for an end.
const LETTERS: &[u8; 24] = b"ARNDCQEGHILKMFPSTWYVBZX*";

fn index(letter: u8) -> Option<usize> {
    LETTERS.iter().position(|&other| other == letter)
}

/// `None` if a letter is not in the matrix.
pub(crate) fn blosum62(a: u8, b: u8) -> Option<i32> {
    let (a, b) = (index(a)?, index(b)?);
    Some(BLOSUM62[a.max(b)][a.min(b)].into())
}

/// The lower half of BLOSUM62 (S. Henikoff and J. G. Henikoff, "Amino acid substitution matrices from protein blocks",
/// PNAS 89, 1992), in half bits, with the rows for B, Z, X and * that NCBI distributes with it.
#[rustfmt::skip]
const BLOSUM62: [&[i8]; 24] = [
    /* A */ &[ 4],
    /* R */ &[-1,  5],
    /* N */ &[-2,  0,  6],
    /* D */ &[-2, -2,  1,  6],
    /* C */ &[ 0, -3, -3, -3,  9],
    /* Q */ &[-1,  1,  0,  0, -3,  5],
    /* E */ &[-1,  0,  0,  2, -4,  2,  5],
    /* G */ &[ 0, -2,  0, -1, -3, -2, -2,  6],
    /* H */ &[-2,  0,  1, -1, -3,  0,  0, -2,  8],
    /* I */ &[-1, -3, -3, -3, -1, -3, -3, -4, -3,  4],
    /* L */ &[-1, -2, -3, -4, -1, -2, -3, -4, -3,  2,  4],
    /* K */ &[-1,  2,  0, -1, -3,  1,  1, -2, -1, -3, -2,  5],
    /* M */ &[-1, -1, -2, -3, -1,  0, -2, -3, -2,  1,  2, -1,  5],
    /* F */ &[-2, -3, -3, -3, -2, -3, -3, -3, -1,  0,  0, -3,  0,  6],
    /* P */ &[-1, -2, -2, -1, -3, -1, -1, -2, -2, -3, -3, -1, -2, -4,  7],
    /* S */ &[ 1, -1,  1,  0, -1,  0,  0,  0, -1, -2, -2,  0, -1, -2, -1,  4],
    /* T */ &[ 0, -1,  0, -1, -1, -1, -1, -2, -2, -1, -1, -1, -1, -2, -1,  1,  5],
    /* W */ &[-3, -3, -4, -4, -2, -2, -3, -2, -2, -3, -2, -3, -1,  1, -4, -3, -2, 11],
    /* Y */ &[-2, -2, -2, -3, -2, -1, -2, -3,  2, -1, -1, -2, -1,  3, -3, -2, -2,  2,  7],
    /* V */ &[ 0, -3, -3, -3, -1, -2, -2, -3, -3,  3,  1, -2,  1, -1, -2, -2,  0, -3, -1,  4],
    /* B */ &[-2, -1,  3,  4, -3,  0,  1, -1,  0, -3, -4,  0, -3, -3, -2,  0, -1, -4, -3, -3,  4],
    /* Z */ &[-1,  0,  0,  1, -3,  3,  4, -2,  0, -3, -3,  1, -1, -3, -1,  0, -1, -3, -2, -2,  1,  4],
    /* X */ &[ 0, -1, -1, -1, -2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -2,  0,  0, -2, -1, -1, -1, -1, -1],
    /* * */ &[-4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4,  1],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_a_triangle() {
        assert!(BLOSUM62.iter().enumerate().all(|(row, entries)| entries.len() == row + 1));
        // An amino acid is never more like another one than like itself.
        for &a in AMINO_ACIDS {
            let own = blosum62(a, a);
            assert!(AMINO_ACIDS.iter().all(|&b| blosum62(a, b) == blosum62(b, a) && blosum62(a, b) <= own));
        }
        assert_eq!(
            (blosum62(b'W', b'W'), blosum62(b'I', b'V'), blosum62(b'J', b'A')),
            (Some(11), Some(3), None)
        );
    }

    fn scoring(a: &str, b: &str, alphabet: Option<Alphabet>) -> Result<Scoring, String> {
        let read = |letters: &str| Record::read("a.fa", format!(">x\n{letters}").as_bytes()).unwrap();
        Scoring::for_records(&read(a), &read(b), alphabet, 5, -4).map_err(|error| error.to_string())
    }

    #[test]
    fn the_alphabet_is_found() {
        let nucleotide = Scoring::Nucleotide { matching: 5, mismatching: -4 };
        assert_eq!(scoring("ACGT", "acguN", None), Ok(nucleotide.clone()));
        assert_eq!(scoring("ACGT", "MKV", None), Ok(Scoring::Blosum62));
        assert_eq!(scoring("ACGT", "ACGT", Some(Alphabet::Protein)), Ok(Scoring::Blosum62));
        let wrong = "a.fa:2:1: `M` is no nucleotide (ACGTUN)";
        assert_eq!(scoring("ACGT", "MKV", Some(Alphabet::Nucleotide)), Err(wrong.to_string()));
        assert!(scoring("ACGT", "MKJ", None).unwrap_err().starts_with("a.fa:2:3: `J` is no amino acid"));
        assert_eq!(
            (nucleotide.score(b'T', b'U'), nucleotide.score(b'A', b'C'), nucleotide.score(b'N', b'N')),
            (5, -4, 0)
        );
    }
}
