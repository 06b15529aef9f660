//! Code on pages is that of files in this repository, which other tests compile and run.

use crate::page::{files, guide, root};
use crate::shell::shown;

/// Languages of blocks, and the files that they are quoted from.
const LANGUAGES: [(&str, &[&str]); 4] =
    [("rust", &["rs"]), ("cuda", &["cu", "cuh"]), ("toml", &["toml", "rs"]), ("python", &["py", "ipynb"])];

/// Code that is not in a file says so in its first line.
const SKETCH: [&str; 2] = ["// Sketch:", "# Sketch:"];

/// A line without its indentation, and without the comment that makes it documentation.
fn plain(line: &str) -> &str {
    let line = line.trim();
    let line = ["//! ", "/// "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
    let line = if ["//!", "///"].contains(&line) { "" } else { line };
    line.trim()
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(plain).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn unnumbered(line: &str) -> &str {
    line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit())
}

/// The text of a file; of a notebook, its code.
fn source(path: &str) -> String {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    if !path.ends_with(".ipynb") {
        return text;
    }
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code");
    let lines = cells.flat_map(|cell| cell["source"].as_array().unwrap());
    lines.map(|line| line.as_str().unwrap().trim_end().to_string() + "\n").collect()
}

#[test]
fn code_is_quoted_from_files() {
    let mut wrong = Vec::new();
    for (language, extensions) in LANGUAGES {
        let texts: Vec<String> = extensions
            .iter()
            .flat_map(|extension| files(extension))
            .map(|path| joined(source(&path).lines()))
            .collect();
        for page in guide() {
            let commands: Vec<String> = shown(&page).into_iter().map(|command| command.text).collect();
            let used = |file: &str| commands.iter().any(|command| command.contains(file));
            let tried = |line: &str| {
                line.strip_prefix("# ").is_some_and(|name| name.ends_with(".toml") && used(name))
            };
            for block in page.blocks().into_iter().filter(|block| block.language == language) {
                let lines = &page.lines[block.lines.clone()];
                // A file that the page shows whole is read by its commands.
                if tried(&lines[0]) || SKETCH.iter().any(|mark| lines[0].starts_with(mark)) {
                    continue;
                }
                // `docs/hangs.md` shows the numbers of lines; `…` stands for lines that are left out.
                let numbered = lines.iter().all(|line| line.trim().starts_with(|c: char| c.is_ascii_digit()));
                let bare: Vec<&str> =
                    lines.iter().map(|l| if numbered { unnumbered(l) } else { l.as_str() }).collect();
                let parts = bare.split(|line| ["…", "// …", "# …"].contains(&line.trim()));
                let parts: Vec<String> = parts.map(|part| joined(part.iter().copied())).collect();
                if !texts.iter().any(|text| parts.iter().all(|part| text.contains(part))) {
                    wrong.push(format!("{}:{}: {}", page.path, block.lines.start + 1, lines[0]));
                }
            }
        }
    }
    let rule = "code that is in no file, and is not marked as a sketch in its first line";
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}
