//! All generated PTX as files, to try it with other assemblers.

use std::path::{Path, PathBuf};

use super::catalogue::GROUPS;
use super::error::{Error, Result};
use super::fuzz;

/// Writes a module for each group of the catalogue, and modules of random programs for the seeds below `programs`,
/// into `dir`. Returns the files.
pub fn export_ptx(dir: &Path, programs: u64) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir).map_err(Error::file(dir))?;
    let mut files = Vec::new();
    let mut write = |name: String, text: String| -> Result<()> {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(Error::file(&path))?;
        files.push(path);
        Ok(())
    };
    for group in GROUPS {
        write(format!("{}.ptx", group.name), group.ptx(&group.cases()))?;
    }
    let seeds: Vec<u64> = (0..programs).collect();
    for (i, seeds) in seeds.chunks(fuzz::BATCH).enumerate() {
        let programs: Vec<_> =
            seeds.iter().map(|&s| fuzz::Program::generate(s, fuzz::Options::default())).collect();
        write(format!("fuzz-{i}.ptx"), fuzz::module(&programs))?;
    }
    Ok(files)
}
