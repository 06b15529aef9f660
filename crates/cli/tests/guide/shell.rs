//! Commands that pages show: `$ command`, and what it prints below it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::page::{Page, root};

/// A command of a page.
pub(crate) struct Shown {
    /// Its position in [`Page::lines`].
    pub at: usize,
    pub indent: usize,
    pub text: String,
    /// Where its output is shown.
    pub output: std::ops::Range<usize>,
    pub when: When,
}

/// When a command is run, by the remark at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// It has no remark.
    Always,
    /// `# 8 s`: only when slow commands are asked for.
    Slow,
    /// `# 3 minutes`, `# needs a GPU`: never.
    Never,
}

/// The commands of a page in their order.
pub(crate) fn shown(page: &Page) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for block in page.blocks() {
        let mut at = block.lines.start;
        let line = |at: usize| page.lines[at].get(block.indent..).unwrap_or_default();
        while at < block.lines.end {
            let Some(first) = line(at).strip_prefix("$ ") else {
                at += 1;
                continue;
            };
            let start = at;
            let mut text = first.to_string();
            while text.ends_with('\\') {
                at += 1;
                text.pop();
                text.push_str(line(at).trim_start());
            }
            let mut end = at + 1;
            while end < block.lines.end && !line(end).starts_with("$ ") {
                end += 1;
            }
            let next = end;
            while end > at + 1 && line(end - 1).is_empty() {
                end -= 1;
            }
            let (text, when) = remark(&text, &page.path);
            commands.push(Shown { at: start, indent: block.indent, text, output: at + 1..end, when });
            at = next;
        }
    }
    commands
}

/// Splits `command  # 8 s`.
fn remark(text: &str, page: &str) -> (String, When) {
    let Some((command, remark)) = text.rsplit_once("  # ") else { return (text.to_string(), When::Always) };
    let when = match remark.split_once(' ') {
        Some(("needs", _)) => When::Never,
        Some((number, "s")) if number.parse::<u32>().is_ok() => When::Slow,
        Some((number, "minutes")) if number.parse::<u32>().is_ok() => When::Never,
        _ => panic!("{page}: `# {remark}` is no remark: write `# 8 s`, `# 3 minutes` or `# needs …`"),
    };
    (command.trim_end().to_string(), when)
}

/// A folder in which the commands of a page run one after the other. It looks like the repository's root, but what they
/// write stays out of it.
pub(crate) struct Folder {
    path: PathBuf,
    /// Whether a compiler makes of the tutorial's source what the pages show.
    pub compiler: bool,
}

impl Folder {
    pub(crate) fn new(name: &str, compiler: bool) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide").join(name.replace('/', "-"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        for entry in std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name();
            let hidden = name.to_string_lossy().starts_with('.');
            if !hidden && !["target", "book"].iter().any(|other| name == *other) {
                std::os::unix::fs::symlink(entry.path(), path.join(name)).unwrap();
            }
        }
        Folder { path, compiler }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it succeeded, and what it printed.
    pub(crate) fn run(&self, text: &str) -> (bool, Vec<String>) {
        let program = Path::new(env!("CARGO_BIN_EXE_warploom"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(program.parent().unwrap().to_path_buf());
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
        let mut text = text.replace("cargo run --release --", "warploom");
        let from_ptx = !self.compiler && text.contains(".cu ");
        if from_ptx {
            text = text.replace(".cu ", ".ptx ");
        }
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{text}")])
            .current_dir(&self.path)
            .env("PATH", path)
            .env("XDG_CACHE_HOME", self.path.join(".cache"))
            .env_remove("RUST_BACKTRACE")
            .output()
            .unwrap();
        let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if from_ptx {
            printed = printed.replace(".ptx ", ".cu ");
        }
        let printed = printed.trim_end().lines().map(|line| line.trim_end().to_string()).collect();
        (output.status.success(), printed)
    }
}
