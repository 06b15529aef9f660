//! The GPUs that Warploom models, as text: one TOML file per chip, every number with its source.
//!
//! This crate only carries the files. `warploom_sim::Chip` reads and checks them; `docs/model.md` says what each number
//! means.

macro_rules! chips {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!($name, ".toml")))),*]
    };
}

/// Every chip: the name that `--chip` takes, and the text of its file.
pub const CHIPS: &[(&str, &str)] = chips![
    "gtx480",
    "gtx480-gpgpusim",
    "gtx480-hpca18",
    "gtx570",
    "gtx1080ti",
    "gtx1080ti-hpca18",
    "apu",
    "h200"
];

#[cfg(test)]
mod tests {
    use super::CHIPS;

    #[test]
    fn every_chip_file_is_listed() {
        let folder = std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut files: Vec<String> = folder
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|file| file.ends_with(".toml") && file != "Cargo.toml")
            .collect();
        let mut listed: Vec<String> = CHIPS.iter().map(|(name, _)| format!("{name}.toml")).collect();
        files.sort();
        listed.sort();
        assert_eq!(files, listed);
    }
}
