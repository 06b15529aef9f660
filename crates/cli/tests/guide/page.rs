//! Pages of Markdown: their blocks, links and headings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files of the repository with an extension, as paths from its root: what git knows or does not ignore.
pub(crate) fn files(extension: &str) -> Vec<String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            &format!("*.{extension}"),
        ])
        .current_dir(root())
        .output()
        .expect("the tests of pages need git");
    assert!(listed.status.success(), "the tests of pages need git's list of files");
    let names = String::from_utf8(listed.stdout).unwrap();
    let mut names: Vec<String> =
        names.split('\0').filter(|name| !name.is_empty()).map(String::from).collect();
    names.retain(|name| root().join(name).exists());
    names.sort();
    names.dedup();
    names
}

/// `docs/a/../b.md` is `docs/b.md`.
pub(crate) fn normal(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

pub(crate) struct Page {
    /// From the repository's root.
    pub path: String,
    pub lines: Vec<String>,
}

pub(crate) struct Link {
    pub line: usize,
    pub target: String,
}

/// Lines that are shown as they are: fenced, or indented by four columns.
pub(crate) struct Block {
    /// The word behind the fence.
    pub language: String,
    pub indent: usize,
    /// Positions in [`Page::lines`], without fences.
    pub lines: std::ops::Range<usize>,
}

/// All pages whose links are checked.
pub(crate) fn pages() -> Vec<Page> {
    // A part of docs/ptx.md, which is put together by a test of its own.
    let part = "crates/ptx/src/families/notes.md";
    files("md").iter().filter(|path| *path != part).map(|path| Page::read(path)).collect()
}

/// The pages of the guide.
pub(crate) fn book() -> Vec<Page> {
    pages().into_iter().filter(|page| page.in_book() && page.path != "docs/SUMMARY.md").collect()
}

/// The pages whose commands and code are checked.
pub(crate) fn guide() -> Vec<Page> {
    let others = ["README.md", "CONTRIBUTING.md"].map(Page::read);
    others.into_iter().chain(book()).collect()
}

impl Page {
    pub(crate) fn read(path: &str) -> Page {
        let text =
            std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Page { path: path.to_string(), lines: text.lines().map(String::from).collect() }
    }

    pub(crate) fn in_book(&self) -> bool {
        self.path.starts_with("docs/")
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < self.lines.len() {
            let line = &self.lines[at];
            if let Some(language) = line.strip_prefix("```") {
                let rest = &self.lines[at + 1..];
                let length = rest.iter().position(|line| line == "```").expect("a fence has an end");
                blocks.push(Block {
                    language: language.to_string(),
                    indent: 0,
                    lines: at + 1..at + 1 + length,
                });
                at += length + 2;
            } else if line.starts_with("    ") && (at == 0 || self.lines[at - 1].is_empty()) {
                let inside = |line: &&String| line.is_empty() || line.starts_with("    ");
                let length = self.lines[at..].iter().take_while(inside).count();
                let blank =
                    self.lines[at..at + length].iter().rev().take_while(|line| line.is_empty()).count();
                let lines = at..at + length - blank;
                blocks.push(Block { language: String::new(), indent: 4, lines });
                at += length;
            } else {
                at += 1;
            }
        }
        blocks
    }

    /// Files that the page shows whole: blocks whose first line names one, `# sweep.toml`.
    pub(crate) fn shown_files(&self) -> Vec<(String, String)> {
        let blocks = self.blocks().into_iter().map(|block| &self.lines[block.lines]);
        let named = blocks.filter_map(|lines| {
            let name = lines.first()?.strip_prefix("# ").filter(|name| name.ends_with(".toml"))?;
            (!name.contains([' ', '/'])).then(|| (name.to_string(), lines.join("\n") + "\n"))
        });
        named.collect()
    }

    /// Lines outside of blocks, with their numbers.
    pub(crate) fn prose(&self) -> Vec<(usize, &str)> {
        let blocks = self.blocks();
        let shown = |at: usize| blocks.iter().any(|block| block.lines.contains(&at));
        let lines =
            self.lines.iter().enumerate().filter(|(at, line)| !shown(*at) && !line.starts_with("```"));
        lines.map(|(at, line)| (at + 1, line.as_str())).collect()
    }

    /// Links of the prose. One may be broken over two lines only before its `(`.
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (line, text) in self.prose() {
            // What is in backticks is no link, except as its text.
            let bare: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
            for rest in bare.split("](").skip(1) {
                let target = rest.split(')').next().unwrap().to_string();
                links.push(Link { line, target });
            }
        }
        links
    }

    /// What is in backticks in the prose, with the number of its first line. A span may be broken over lines.
    pub(crate) fn spans(&self) -> Vec<(usize, String)> {
        let mut spans = Vec::new();
        let mut open: Option<(usize, String)> = None;
        for (line, text) in self.prose() {
            if text.is_empty() {
                open = None;
            }
            for (at, part) in text.split('`').enumerate() {
                if at > 0 {
                    match open.take() {
                        Some(span) => spans.push(span),
                        None => open = Some((line, String::new())),
                    }
                }
                if let Some((_, span)) = &mut open {
                    span.push_str(part);
                }
            }
            if let Some((_, span)) = &mut open {
                span.push(' ');
            }
        }
        spans
    }

    /// The ids that GitHub and mdBook give to headings.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let headings = self.prose().into_iter().filter(|(_, line)| line.starts_with('#'));
        let mut anchors = BTreeSet::new();
        for (_, heading) in headings {
            let title = heading.trim_start_matches('#').trim().to_lowercase();
            let plain = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let id: String = plain.map(|c| if c == ' ' { '-' } else { c }).collect();
            let count = seen.entry(id.clone()).or_default();
            anchors.insert(if *count == 0 { id } else { format!("{id}-{count}") });
            *count += 1;
        }
        anchors
    }
}
