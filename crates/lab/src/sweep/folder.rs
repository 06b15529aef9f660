//! The folder of a sweep: its file and its finished runs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Sweep, SweepError};
use crate::runs::write_whole;

/// A folder with the results of one sweep: `sweep.json`, which says of which, and `runs/`.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// `sweep.json`.
#[derive(Serialize, Deserialize)]
struct About {
    name: String,
    /// The sweep file, as an absolute path, and its text when runs were last executed.
    file: PathBuf,
    text: String,
}

impl Folder {
    /// The folder of a sweep file unless the user names another: `contention.toml` has `contention.sweep`, in the
    /// current folder.
    pub fn default_for(file: &Path) -> PathBuf {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        PathBuf::from(format!("{stem}.sweep"))
    }

    /// Makes a folder that of a sweep, unless it is another sweep's. A file that has changed is the same sweep: kept
    /// runs that still belong to it count.
    pub fn open(path: &Path, file: &Path, sweep: &Sweep) -> Result<Folder, SweepError> {
        let shown = path.display();
        let cannot = |error: &std::io::Error| {
            SweepError::new(format!("cannot use the folder `{shown}`: {error}"))
                .help("make room there, or choose another folder with --out")
        };
        let about = path.join("sweep.json");
        let before = std::fs::read_to_string(&about);
        match &before {
            Ok(text) => {
                let about: About = serde_json::from_str(text).map_err(|error| damaged(&about, &error))?;
                if about.name != sweep.name {
                    let (theirs, ours) = (&about.name, &sweep.name);
                    return Err(SweepError::new(format!(
                        "`{shown}` has the results of another sweep, `{theirs}`"
                    ))
                    .help(format!("choose another folder with --out; this sweep's name is `{ours}`")));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
                let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
                // Another process has made it since.
                if names.iter().any(|name| name == "sweep.json") {
                    return Folder::open(path, file, sweep);
                }
                if names.iter().any(|name| !is_ours(&name.to_string_lossy())) {
                    return Err(SweepError::new(format!(
                        "`{shown}` is not empty, and it is no sweep's folder"
                    ))
                    .help("choose another folder with --out"));
                }
            }
            Err(error) => return Err(cannot(error)),
        }
        std::fs::create_dir_all(path).map_err(|error| cannot(&error))?;
        let text = std::fs::read_to_string(file).map_err(|error| cannot(&error))?;
        let file = std::path::absolute(file).map_err(|error| cannot(&error))?;
        let json = serde_json::to_string_pretty(&About { name: sweep.name.clone(), file, text });
        // A plain structure always serializes.
        let json = json.unwrap_or_default() + "\n";
        // A full disk must not stop a sweep that has nothing to write.
        if before.ok().as_ref() != Some(&json) {
            write_whole(&about, json.as_bytes()).map_err(|error| cannot(&error))?;
        }
        Ok(Folder { path: path.to_path_buf() })
    }

    /// The sweep that a folder belongs to, as its file was when runs were last executed.
    pub fn sweep(path: &Path) -> Result<(Sweep, Folder), SweepError> {
        let shown = path.display();
        let about = path.join("sweep.json");
        let text = std::fs::read_to_string(&about).map_err(|_| {
            SweepError::new(format!("`{shown}` is no folder of a sweep: it has no sweep.json"))
                .help("`warploom sweep run FILE` makes one, FILE.sweep")
        })?;
        let about: About = serde_json::from_str(&text).map_err(|error| damaged(&about, &error))?;
        let base = about.file.parent().unwrap_or(Path::new(""));
        let sweep =
            Sweep::parse(&about.text, &about.name, base).map_err(|error| error.within(&about.file))?;
        Ok((sweep, Folder { path: path.to_path_buf() }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where finished runs are kept.
    pub fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }
}

fn damaged(about: &Path, error: &serde_json::Error) -> SweepError {
    SweepError::new(format!("`{}` is damaged: {error}", about.display()))
        .help("remove that file: `warploom sweep run` writes it again, and the kept runs count")
}

/// What a folder that has no `sweep.json` may have: a user can have removed it, and a process that was killed can have
/// left half of it, under another name.
fn is_ours(name: &str) -> bool {
    ["runs", "slurm"].contains(&name) || name.starts_with("sweep.part-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::Scratch;

    #[test]
    fn a_folder_belongs_to_one_sweep() {
        let scratch = Scratch::new("sweep-folder");
        let (file, folder) = (scratch.path().join("a.toml"), scratch.path().join("a.sweep"));
        std::fs::write(&file, "work = 'nw'\n").unwrap();
        let sweep = Sweep::read(&file).unwrap();
        // Killed in its first moment.
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("sweep.part-host-00-1-1-0"), "{").unwrap();
        Folder::open(&folder, &file, &sweep).unwrap();
        Folder::open(&folder, &file, &sweep).unwrap();
        assert_eq!(Folder::sweep(&folder).unwrap().0.name, "a");

        let mut other = sweep.clone();
        other.name = "b".to_string();
        let error = Folder::open(&folder, &file, &other).unwrap_err();
        assert!(error.message.ends_with("has the results of another sweep, `a`"), "{error}");
        let error = Folder::open(scratch.path(), &file, &sweep).unwrap_err();
        assert!(error.message.ends_with("is not empty, and it is no sweep's folder"), "{error}");
        assert!(Folder::sweep(scratch.path()).unwrap_err().message.contains("it has no sweep.json"));
        std::fs::write(folder.join("sweep.json"), "{").unwrap();
        assert!(Folder::sweep(&folder).unwrap_err().message.contains("is damaged"));
        assert!(
            Folder::open(&folder, &file, &sweep).unwrap_err().help.unwrap().starts_with("remove that file")
        );
        std::fs::remove_file(folder.join("sweep.json")).unwrap();
        std::fs::create_dir(folder.join("runs")).unwrap();
        Folder::open(&folder, &file, &sweep).unwrap();
    }
}
