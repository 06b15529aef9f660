//! Finished runs on disk, so that nothing is simulated twice.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claim::Owner;
use super::digest::Digest;
use super::metrics::Metrics;
use super::procedure::Status;
use super::provenance;
use super::run::{Key, Run};

/// A folder with one file per finished run.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub status: Status,
    /// Why it has no figures, unless the status is [`Ok`](Status::Ok).
    pub message: Option<String>,
    /// Host seconds that the run took.
    pub wall_s: f64,
    /// The most memory of the host that it took, where that is known.
    pub peak_bytes: Option<u64>,
    pub metrics: Metrics,
}

/// All of it but the figures, as JSON.
#[derive(Serialize, Deserialize)]
pub(super) struct End {
    status: Status,
    message: Option<String>,
    wall_s: f64,
    peak_bytes: Option<u64>,
}

impl Finished {
    pub(super) fn new(end: End, metrics: Metrics) -> Finished {
        let End { status, message, wall_s, peak_bytes } = end;
        Finished { status, message, wall_s, peak_bytes, metrics }
    }

    pub(super) fn end(&self) -> End {
        let Finished { status, wall_s, peak_bytes, .. } = *self;
        End { status, message: self.message.clone(), wall_s, peak_bytes }
    }
}

/// The contents of a file, before the figures, which come last. All but `end` identifies what the result belongs to.
#[derive(Serialize, Deserialize)]
struct Record {
    version: String,
    model: String,
    run: Value,
    end: End,
}

/// What is between the record and its figures. No other line of a record begins like it.
const METRICS: &str = ",\n  \"metrics\": ";

impl Kept {
    /// Opens a folder and creates it if it is missing.
    pub fn open(folder: &Path) -> io::Result<Kept> {
        fs::create_dir_all(folder)?;
        Ok(Kept { folder: folder.to_path_buf() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How a run ended, if the file is as it was written, by this version and model.
    pub fn get(&self, run: &Run, key: &Key) -> Option<Finished> {
        let text = fs::read_to_string(self.file(key)).ok()?;
        let text = unsealed(&text)?;
        let (record, metrics) = text.strip_suffix("\n}")?.split_once(METRICS)?;
        let record: Record = serde_json::from_str(&format!("{record}\n}}")).ok()?;
        let same = record.version == provenance::VERSION
            && record.model == provenance::MODEL
            && record.run == run.description();
        same.then(|| Finished::new(record.end, Metrics::from_json(metrics.to_string())))
    }

    /// Keeps a result. The file appears complete or not at all, even if the process dies while writing.
    pub(super) fn put(&self, run: &Run, key: &Key, end: &Finished) -> io::Result<()> {
        let record = Record {
            version: provenance::VERSION.to_string(),
            model: provenance::MODEL.to_string(),
            run: run.description(),
            end: end.end(),
        };
        let record = serde_json::to_string_pretty(&record)?;
        let record = record.strip_suffix("\n}").unwrap_or(&record);
        let text = sealed(&format!("{record}{METRICS}{}\n}}", end.metrics.json()));
        write_whole(&self.file(key), text.as_bytes())
    }

    /// Forgets a result.
    pub fn remove(&self, key: &Key) -> io::Result<()> {
        match fs::remove_file(self.file(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// How many results there are, whatever they belong to.
    pub fn count(&self) -> usize {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == "json")).count()
    }

    fn file(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// What the text of a record begins with; its checksum follows, and then the rest of the object.
const SEAL: &str = "{\n  \"checksum\": \"";
const AFTER_SEAL: &str = "\",\n";

/// A JSON object with the checksum of its text as its first key. The text is what counts: a number that is read and
/// written again may have other digits.
fn sealed(object: &str) -> String {
    let rest = object.strip_prefix("{\n").unwrap_or(object);
    format!("{SEAL}{}{AFTER_SEAL}{rest}", Digest::new().add(rest).hex())
}

/// The object without its checksum; `None` if that does not fit.
fn unsealed(text: &str) -> Option<String> {
    let (checksum, rest) = text.strip_prefix(SEAL)?.split_once(AFTER_SEAL)?;
    (checksum == Digest::new().add(rest).hex()).then(|| format!("{{\n{rest}"))
}

/// Writes a file through a rename, so that no reader sees half of it, and none is left if the disk is full.
pub fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // Two that write the same file must not share the temporary one, not even on two computers.
    let part = file.with_extension(format!("part-{}", Owner::new()));
    let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::Scratch;

    fn finished() -> Finished {
        Finished {
            status: Status::Ok,
            message: None,
            wall_s: 0.25,
            peak_bytes: Some(1 << 20),
            metrics: Metrics::new().with("cycles", 7).with("share", 0.1),
        }
    }

    #[test]
    fn what_is_put_is_got() {
        let scratch = Scratch::new("kept");
        let kept = Kept::open(scratch.path()).unwrap();
        let run = Run::work("nw");
        assert_eq!(kept.get(&run, &run.key()), None);
        kept.put(&run, &run.key(), &finished()).unwrap();
        assert_eq!(kept.get(&run, &run.key()), Some(finished()));
        let names: Vec<_> = fs::read_dir(scratch.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names, [format!("{}.json", run.key())], "no half-written files");
        kept.remove(&run.key()).unwrap();
        kept.remove(&run.key()).unwrap();
        assert_eq!(kept.get(&run, &run.key()), None);
    }

    #[test]
    fn what_is_not_whole_or_not_ours_is_ignored() {
        let scratch = Scratch::new("stale");
        let kept = Kept::open(scratch.path()).unwrap();
        let run = Run::work("nw");
        let key = run.key();
        kept.put(&run, &key, &finished()).unwrap();
        let text = fs::read_to_string(kept.file(&key)).unwrap();
        let wrong = [
            String::new(),
            "{}".to_string(),
            text[..text.len() / 2].to_string(),
            text.replace(provenance::MODEL, "other"),
            text.replace(&format!("\"version\": \"{}\"", provenance::VERSION), "\"version\": \"0.0.0\""),
            text.replace("gtx480", "gtx570"),
            text.replace("\"status\": \"ok\"", "\"status\": \"hang\""),
            text.replace("\"cycles\":7", "\"cycles\":8"),
            text.replace("\"wall_s\": 0.25", "\"wall_s\": 0.35"),
            text.replacen("\"checksum\": \"", "\"checksum\": \"0", 1),
        ];
        for wrong in wrong {
            assert_ne!(wrong, text);
            fs::write(kept.file(&key), &wrong).unwrap();
            assert_eq!(kept.get(&run, &key), None, "{wrong}");
        }
        fs::write(kept.file(&key), text).unwrap();
        assert!(kept.get(&run, &key).is_some());
    }
}
