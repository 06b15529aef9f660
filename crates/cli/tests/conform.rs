//! `warploom conform`, as users run it.

use std::path::Path;
use std::process::Command;

/// Without a GPU, random programs run with and without timing.
#[test]
fn random_programs_with_timing_and_without() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for chip in ["h200", "apu"] {
        let output = Command::new(env!("CARGO_BIN_EXE_warploom"))
            .current_dir(&root)
            .args(["conform", "fuzz", "--count", "5", "--seed", "7", "--chip", chip])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("5 programs on {chip} and {chip} with timing: 0 different\n"));
    }
}
