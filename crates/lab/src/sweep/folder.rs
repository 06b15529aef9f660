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
        let cannot =
            |error: std::io::Error| SweepError::new(format!("cannot use the folder `{shown}`: {error}"));
        let about = path.join("sweep.json");
        match std::fs::read_to_string(&about) {
            Ok(text) => {
                let about: About = serde_json::from_str(&text)
                    .map_err(|error| SweepError::new(format!("`{}` is damaged: {error}", about.display())))?;
                if about.name != sweep.name {
                    let (theirs, ours) = (&about.name, &sweep.name);
                    return Err(SweepError::new(format!(
                        "`{shown}` has the results of another sweep, `{theirs}`"
                    ))
                    .help(format!("choose another folder with --out; this sweep's name is `{ours}`")));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let strangers = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
                if strangers {
                    return Err(SweepError::new(format!(
                        "`{shown}` is not empty, and it is no sweep's folder"
                    ))
                    .help("choose another folder with --out"));
                }
            }
            Err(error) => return Err(cannot(error)),
        }
        std::fs::create_dir_all(path).map_err(cannot)?;
        let text = std::fs::read_to_string(file).map_err(cannot)?;
        let file = std::path::absolute(file).map_err(cannot)?;
        let json = serde_json::to_string_pretty(&About { name: sweep.name.clone(), file, text });
        // A plain structure always serializes.
        write_whole(&about, (json.unwrap_or_default() + "\n").as_bytes()).map_err(cannot)?;
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
        let about: About = serde_json::from_str(&text)
            .map_err(|error| SweepError::new(format!("`{}` is damaged: {error}", about.display())))?;
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
    }
}
