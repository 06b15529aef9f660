//! The README and the guide in `docs/` say what is true: their links lead somewhere, their commands work and print what
//! the pages show, and their code is that of files in this repository.
//!
//! `UPDATE_DOCS=1 cargo test --release -p warploom-cli --test guide` writes what commands print now into the pages.

mod code;
mod commands;
mod output;
mod page;
mod reference;
mod shell;

use std::collections::BTreeSet;
use std::path::Path;

use page::{Page, book, pages, root};

/// What a user reads first has to fit two screens.
#[test]
fn the_readme_is_short() {
    let readme = Page::read("README.md");
    assert!(readme.lines.len() < 120, "README.md has {} lines", readme.lines.len());
}

/// One command shows the main job, the other runs the tests, as CI does.
#[test]
fn the_readme_has_two_commands() {
    let readme = Page::read("README.md");
    let gate = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let tests = "cargo test --workspace";
    assert!(readme.lines.contains(&format!("    {tests}")) && gate.lines().any(|line| line == tests));
    let job = readme.lines.iter().find_map(|line| line.strip_prefix("    cargo run --release -- ")).unwrap();
    let shown = format!("    $ warploom {job}");
    assert!(readme.lines.iter().any(|line| line.starts_with(&shown)), "its output is shown above: {job}");
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary = Page::read("docs/SUMMARY.md");
    let listed: Vec<String> =
        summary.links().into_iter().map(|link| format!("docs/{}", link.target)).collect();
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "docs/SUMMARY.md lists a page twice");
    let there: BTreeSet<String> = book().iter().map(|page| page.path.clone()).collect();
    let once: BTreeSet<String> = once.into_iter().cloned().collect();
    let missing: Vec<&String> = there.difference(&once).collect();
    let lost: Vec<&String> = once.difference(&there).collect();
    assert!(
        missing.is_empty() && lost.is_empty(),
        "not in docs/SUMMARY.md: {missing:?}; not there: {lost:?}"
    );
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        let folder = Path::new(&page.path).parent().unwrap();
        for link in page.links() {
            if link.target.contains("://") {
                continue;
            }
            let (file, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let path = if file.is_empty() { page.path.clone() } else { page::normal(&folder.join(file)) };
            let mut say =
                |what: &str| wrong.push(format!("{}:{}: {}: {what}", page.path, link.line, link.target));
            if !root().join(&path).exists() {
                say("there is no such file");
            } else if !anchor.is_empty() && !Page::read(&path).anchors().contains(anchor) {
                say("there is no such heading");
            } else if page.in_book() && path.ends_with(".md") && !path.starts_with("docs/") {
                say("mdBook makes pages of files in docs/ only: name the file instead of linking it");
            } else if page.in_book()
                && page.path != "docs/SUMMARY.md"
                && ["docs/README.md", "docs/SUMMARY.md"].contains(&path.as_str())
            {
                say("mdBook has no page of that name: name the file instead of linking it");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Messages of the program point at headings, too.
#[test]
fn headings_that_messages_name_exist() {
    let mut wrong = Vec::new();
    for path in page::files("rs").into_iter().filter(|path| path.contains("/src/")) {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        for rest in text.split("docs/").skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || "_-./".contains(*c)).collect();
            let Some((name, anchor)) = name.find(".md").map(|end| {
                let (name, rest) = rest.split_at(end + 3);
                let anchor = rest.strip_prefix('#').unwrap_or_default();
                (name, anchor.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect::<String>())
            }) else {
                continue;
            };
            let page = root().join("docs").join(name);
            let found = page.exists()
                && (anchor.is_empty() || Page::read(&format!("docs/{name}")).anchors().contains(&anchor));
            if !found {
                wrong.push(format!("{path}: docs/{name}#{anchor}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
