//! Reads the first sequence of a FASTA file: a line `>name …`, then lines of letters.

use std::io::{self, BufRead};

use warploom::grouped;

/// Longest sequence accepted. Two of this length have 268 million cells, and each takes 8 bytes on the device.
const MAX_LETTERS: usize = 16_384;

/// Longer names are cut off.
const MAX_NAME: usize = 200;

/// The first sequence of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub(super) name: String,
    /// In upper case.
    pub(super) letters: Vec<u8>,
    file: String,
    /// For error messages: each line of letters as its line number in the file and the count of letters before it.
    lines: Vec<(usize, usize)>,
}

/// Why a FASTA file gave no sequence.
#[derive(Debug, thiserror::Error)]
pub enum FastaError {
    #[error("{file}: {error}")]
    Io { file: String, error: io::Error },
    /// A byte that cannot stand where it does.
    #[error("{file}:{line}:{column}: {what}")]
    At {
        file: String,
        /// From 1.
        line: usize,
        /// Byte of the line, from 1.
        column: usize,
        what: String,
    },
    #[error("{file}: {what}")]
    Empty { file: String, what: String },
    /// More letters than a device has room for.
    #[error(
        "{file}: the sequence has more than {} letters; two of that length would take {:.1} GB of device memory",
        grouped(MAX_LETTERS as u64), (MAX_LETTERS as f64).powi(2) * 8.0 / 1e9
    )]
    TooLong { file: String },
}

/// What the next byte of the file belongs to.
enum Within {
    Description,
    Comment,
    Letters,
}

impl Record {
    /// Reads the first sequence of a FASTA text. Error messages call the text `file`. Nothing after the first
    /// sequence is read.
    pub fn read(file: &str, mut text: impl BufRead) -> Result<Record, FastaError> {
        let mut record =
            Record { name: String::new(), letters: Vec::new(), file: file.to_string(), lines: Vec::new() };
        let (mut within, mut described) = (Within::Letters, false);
        let (mut line, mut column) = (1, 0);
        let mut name = Vec::new();
        'text: loop {
            let bytes = text.fill_buf().map_err(|error| FastaError::Io { file: file.to_string(), error })?;
            if bytes.is_empty() {
                break;
            }
            let count = bytes.len();
            for &byte in bytes {
                column += 1;
                match (&within, byte) {
                    (_, b'\n') => {
                        within = Within::Letters;
                        (line, column) = (line + 1, 0);
                    }
                    (Within::Description, _) if name.len() < MAX_NAME => name.push(byte),
                    (Within::Description | Within::Comment, _) => (),
                    (Within::Letters, b'>') if column == 1 && described => break 'text,
                    (Within::Letters, b'>') if column == 1 => {
                        (within, described) = (Within::Description, true)
                    }
                    (Within::Letters, b';') if column == 1 => within = Within::Comment,
                    (Within::Letters, byte) if byte.is_ascii_whitespace() => (),
                    (Within::Letters, _) if !described => {
                        let what = "a FASTA file begins with a line `>name`".to_string();
                        return Err(FastaError::At { file: file.to_string(), line, column, what });
                    }
                    (Within::Letters, byte) if byte.is_ascii_alphabetic() || byte == b'*' => {
                        if record.letters.len() == MAX_LETTERS {
                            return Err(FastaError::TooLong { file: file.to_string() });
                        }
                        if record.lines.last().is_none_or(|&(last, _)| last != line) {
                            record.lines.push((line, record.letters.len()));
                        }
                        record.letters.push(byte.to_ascii_uppercase());
                    }
                    (Within::Letters, byte) => {
                        let what = format!("{} is no letter of a sequence{}", shown(byte), advice(byte));
                        return Err(FastaError::At { file: file.to_string(), line, column, what });
                    }
                }
            }
            text.consume(count);
        }
        let name = String::from_utf8_lossy(&name);
        record.name = name.split_whitespace().next().unwrap_or("unnamed").to_string();
        if record.letters.is_empty() {
            let what = match described {
                true => format!("sequence `{}` has no letters", record.name),
                false => "the file has no sequence".to_string(),
            };
            return Err(FastaError::Empty { file: file.to_string(), what });
        }
        Ok(record)
    }

    /// An error about the letter at index `at`. The column counts letters, so it is exact where the line has
    /// no blanks.
    pub(super) fn wrong_letter(&self, at: usize, what: String) -> FastaError {
        let before = self.lines.partition_point(|&(_, first)| first <= at);
        let (line, first) = before.checked_sub(1).map_or((1, 0), |index| self.lines[index]);
        FastaError::At { file: self.file.clone(), line, column: at - first + 1, what }
    }
}

fn shown(byte: u8) -> String {
    match byte {
        b' '..=b'~' => format!("`{}`", byte as char),
        _ => format!("byte 0x{byte:02x}"),
    }
}

fn advice(byte: u8) -> &'static str {
    match byte {
        b'-' | b'.' => ": sequences are given without gaps",
        0 | 0x1f | 0x80.. => ": is this a FASTA text, and not compressed?",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Record, String> {
        Record::read("a.fa", text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_record() {
        let record = read(b"; a comment\n\n>sp|P1 a protein\r\nMka\r\n L*\n>next\nQQ--").unwrap();
        assert_eq!((record.name.as_str(), record.letters.as_slice()), ("sp|P1", b"MKAL*".as_slice()));
        assert_eq!(read(b">\nA").unwrap().name, "unnamed");
    }

    #[test]
    fn letters_know_where_they_were() {
        let record = read(b">x\nACG\n\nTTU\n").unwrap();
        let place = |at| record.wrong_letter(at, "no".to_string()).to_string();
        assert_eq!((place(0), place(5)), ("a.fa:2:1: no".to_string(), "a.fa:4:3: no".to_string()));
    }

    #[test]
    fn bad_files() {
        let wrong = |text: &[u8]| read(text).unwrap_err();
        let messages = [
            wrong(b""),
            wrong(b"\n\n"),
            wrong(b">lonely\n\n>next\nACGT"),
            wrong(b"ACGT\n"),
            wrong(b">x\nAC-GT\n"),
            wrong(b">x\nACG\n12 ACG\n"),
            wrong(b">x\n\x1f\x8b\x08"),
            wrong("\u{feff}>x\nACGT".as_bytes()),
            wrong(&[b">x\n".as_slice(), &[b'A'; MAX_LETTERS + 1]].concat()),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r"
        a.fa: the file has no sequence
        a.fa: the file has no sequence
        a.fa: sequence `lonely` has no letters
        a.fa:1:1: a FASTA file begins with a line `>name`
        a.fa:2:3: `-` is no letter of a sequence: sequences are given without gaps
        a.fa:3:1: `1` is no letter of a sequence
        a.fa:2:1: byte 0x1f is no letter of a sequence: is this a FASTA text, and not compressed?
        a.fa:1:1: a FASTA file begins with a line `>name`
        a.fa: the sequence has more than 16,384 letters; two of that length would take 2.1 GB of device memory
        ");
        assert_eq!(
            read(&[b">x\n".as_slice(), &[b'A'; MAX_LETTERS]].concat()).unwrap().letters.len(),
            MAX_LETTERS
        );
    }

    #[test]
    fn an_endless_file_is_left() {
        let endless = io::BufReader::new(io::Read::chain(&b">x\n"[..], io::repeat(b'A')));
        assert!(matches!(Record::read("a.fa", endless), Err(FastaError::TooLong { .. })));
    }
}
