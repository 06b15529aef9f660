//! Every PTX file of the repository, from many compilers, parses and resolves.

mod common;

#[test]
fn corpus_resolves() {
    let files = common::ptx_files();
    assert!(files.len() > 20, "the kernels are missing");
    let mut failures = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        if let Err(error) = warploom_ptx::resolve_text(&file.display().to_string(), &text) {
            failures += &error.render(false);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
