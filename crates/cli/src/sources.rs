//! Source files of kernels, found and read when a line of them is shown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Source files.
pub(crate) struct Sources<'a> {
    /// Where the kernel's file lies.
    folder: Option<&'a Path>,
    files: BTreeMap<String, Option<Vec<String>>>,
}

impl<'a> Sources<'a> {
    /// Sources of the kernel in `file`, near which they may lie.
    pub(crate) fn of(file: Option<&'a Path>) -> Sources<'a> {
        Sources { folder: file.and_then(Path::parent), files: BTreeMap::new() }
    }

    /// The lines of a file, if it is found: as it is named, or beside the kernel's file.
    pub(crate) fn lines(&mut self, file: &str) -> Option<&[String]> {
        let folder = self.folder;
        let lines = self.files.entry(file.to_string()).or_insert_with(|| {
            let named = PathBuf::from(file);
            let beside = |name: &Path| Some(folder?.join(name));
            let candidates = [
                Some(named.clone()),
                beside(&named),
                named.file_name().and_then(|name| beside(Path::new(name))),
            ];
            let text = candidates.into_iter().flatten().find_map(|path| std::fs::read_to_string(path).ok());
            text.map(|text| text.lines().map(str::to_string).collect())
        });
        lines.as_deref()
    }

    /// The text of a line such as `k.cu:7`.
    pub(crate) fn line(&mut self, place: &str) -> Option<String> {
        let (file, number) = split(place)?;
        let line = self.lines(file)?.get(number.checked_sub(1)?)?.trim();
        (!line.is_empty()).then(|| line.to_string())
    }

    /// Files that were looked for in vain.
    pub(crate) fn missing(&self) -> Vec<&str> {
        self.files.iter().filter(|(_, lines)| lines.is_none()).map(|(file, _)| file.as_str()).collect()
    }
}

/// File and number of a line such as `k.cu:7`.
pub(crate) fn split(place: &str) -> Option<(&str, usize)> {
    let (file, number) = place.rsplit_once(':')?;
    Some((file, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_found_beside_the_kernel() {
        let folder = std::env::temp_dir().join(format!("warploom-sources-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("k.cu"), "first\n  second\n").unwrap();
        let kernel = folder.join("k.ptx");
        let mut sources = Sources::of(Some(&kernel));
        assert_eq!(sources.line("/elsewhere/k.cu:2").as_deref(), Some("second"));
        assert_eq!((sources.line("/elsewhere/k.cu:3"), sources.line("none.cu:1")), (None, None));
        assert_eq!(sources.missing(), ["none.cu"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
