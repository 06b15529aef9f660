//! Prints an alignment in the format of EMBOSS `needle`.

use std::fmt;

use super::path::Alignment;

/// Positions per block.
const WIDTH: usize = 60;

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.length();
        let share = |count: usize| {
            let percent = 100.0 * count as f64 / length.max(1) as f64;
            format!("{count}/{length} ({percent:.1}%)")
        };
        writeln!(f, "# 1: {}", self.names[0])?;
        writeln!(f, "# 2: {}", self.names[1])?;
        writeln!(f, "# Matrix: {}", self.matrix)?;
        writeln!(f, "# Gap_penalty: {}", self.penalty)?;
        writeln!(f, "# Length: {length}")?;
        writeln!(f, "# Identity: {}", share(self.identity))?;
        writeln!(f, "# Similarity: {}", share(self.similarity))?;
        writeln!(f, "# Gaps: {}", share(self.gaps))?;
        writeln!(f, "# Score: {}", self.score)?;

        let (mut a_before, mut b_before) = (0, 0);
        for begin in (0..length).step_by(WIDTH) {
            let piece = begin..(begin + WIDTH).min(length);
            // All three are ASCII: letters, gaps and marks.
            let (a, b, marks) = (&self.a[piece.clone()], &self.b[piece.clone()], &self.marks[piece]);
            writeln!(f)?;
            line(f, &self.names[0], a, &mut a_before)?;
            writeln!(f, "{:<22} {}", "", marks.trim_end())?;
            line(f, &self.names[1], b, &mut b_before)?;
        }
        Ok(())
    }
}

/// One sequence's line of a block: its name, the number of its first letter, the letters, the number of the last.
fn line(f: &mut fmt::Formatter<'_>, name: &str, letters: &str, before: &mut usize) -> fmt::Result {
    let first = *before + 1;
    *before += letters.bytes().filter(|&letter| letter != b'-').count();
    // In a line of gaps only, both numbers are that of the letter before it.
    let first = first.min(*before);
    let name: String = name.chars().take(16).collect();
    writeln!(f, "{name:<16} {first:>5} {letters} {before:>6}")
}

#[cfg(test)]
mod tests {
    use crate::align::{Record, Scoring};
    use crate::work::nw::Problem;

    use super::*;

    fn aligned(a: &str, b: &str, penalty: i32) -> Alignment {
        let read =
            |name: &str, letters| Record::read(name, format!(">{name}\n{letters}").as_bytes()).unwrap();
        let (a, b) = (read("one", a), read("a_name_of_more_than_16_letters", b));
        let scoring = Scoring::for_records(&a, &b, None, 5, -4).unwrap();
        let problem = Problem::of(&a.letters, &b.letters, |a, b| scoring.score(a, b), penalty);
        Alignment::back(&a, &b, &scoring, &problem, &problem.scores())
    }

    #[test]
    fn blocks_of_sixty() {
        let (a, b) = ("MKVLAAGIVG".repeat(7), "MKILAAGI".repeat(8) + "WY");
        insta::assert_snapshot!(aligned(&a, &b, 6).to_string());
    }

    #[test]
    fn gaps_at_the_ends() {
        let alignment = aligned("ACGT", "CG", 1);
        assert_eq!((alignment.a.as_str(), alignment.b.as_str()), ("ACGT", "-CG-"));
        assert_eq!((alignment.score, alignment.identity, alignment.gaps), (8, 2, 2));
        let apart = aligned("AAAA", "CCCC", 0);
        assert_eq!((apart.length(), apart.gaps), (8, 8));
    }
}
