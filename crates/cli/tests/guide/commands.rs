//! Commands work, and print what the pages show.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use crate::output::{matches, updated};
use crate::page::{Page, guide, root};
use crate::shell::{Folder, Shown, When, shown};

/// The tutorial's source, and the PTX that clang 19 makes of it.
const TUTORIAL: &str = "examples/tutorial/transfers";

/// Whether the compiler that `warploom` finds makes the PTX that is kept. Otherwise the pages are checked with that.
static COMPILER: LazyLock<bool> = LazyLock::new(|| {
    let folder = Folder::new("compiler", true);
    let (good, _) = folder.run(&format!("warploom check {TUTORIAL}.cu"));
    let same = good && {
        let cache = folder.path().join(".cache/warploom/cuda");
        let kept = std::fs::read_to_string(root().join(format!("{TUTORIAL}.ptx"))).unwrap();
        let entries =
            std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path().join("transfers.ptx"));
        entries.filter_map(|ptx| std::fs::read_to_string(ptx).ok()).any(|ptx| ptx == kept)
    };
    if !same {
        eprintln!("WARNING: there is no clang 19: the pages' commands are run with PTX instead of CUDA");
    }
    same
});

/// The kept PTX is what clang 19 makes of the source.
#[test]
fn the_tutorials_ptx_belongs_to_its_source() {
    let version = std::process::Command::new("clang-19").arg("--version").output();
    if version.is_err() {
        eprintln!("WARNING: there is no clang-19: {TUTORIAL}.ptx is NOT TESTED");
        return;
    }
    let folder = Folder::new("tutorial-ptx", true);
    let (good, said) = folder.run(&format!("warploom check {TUTORIAL}.cu --cc clang-19"));
    assert!(good, "{}", said.join("\n"));
    let entries = std::fs::read_dir(folder.path().join(".cache/warploom/cuda")).unwrap();
    let made =
        entries.map(|entry| entry.unwrap().path().join("transfers.ptx")).find(|ptx| ptx.is_file()).unwrap();
    let kept = root().join(format!("{TUTORIAL}.ptx"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::copy(&made, &kept).unwrap();
    }
    let [made, kept] = [made, kept].map(|path| std::fs::read_to_string(path).unwrap());
    assert!(
        made == kept,
        "{TUTORIAL}.ptx is not what clang 19 makes of {TUTORIAL}.cu: UPDATE_DOCS=1 rewrites it"
    );
}

#[test]
fn commands_print_what_the_pages_show() {
    check(|when| *when == When::Always);
}

/// `cargo test --release -p warploom-cli --test guide -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn slow_commands_print_what_the_pages_show() {
    check(|when| *when != When::Never);
}

fn check(wanted: fn(&When) -> bool) {
    let compiler = *COMPILER;
    let pages = guide();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(BTreeMap::new());
    let workers = std::thread::available_parallelism().map_or(2, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let commands = shown(page);
                    if commands.iter().any(|command| wanted(&command.when)) {
                        let said = check_page(page, &commands, wanted, compiler);
                        wrong.lock().unwrap().insert(page.path.clone(), said);
                    }
                }
            });
        }
    });
    let wrong: Vec<String> = wrong.into_inner().unwrap().into_values().flatten().collect();
    let help = "UPDATE_DOCS=1 writes what they print now into the pages";
    assert!(
        wrong.is_empty(),
        "commands that do not print what the pages show; {help}:\n{}",
        wrong.join("\n")
    );
}

/// What is wrong with the commands of a page. They run in their order, in one folder.
fn check_page(page: &Page, commands: &[Shown], wanted: fn(&When) -> bool, compiler: bool) -> Vec<String> {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let folder = Folder::new(&page.path, compiler);
    for (name, text) in page.shown_files() {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut wrong = Vec::new();
    let mut changes: Vec<(std::ops::Range<usize>, Vec<String>)> = Vec::new();
    for command in commands.iter().filter(|command| wanted(&command.when)) {
        let place = format!("{}:{}: {}", page.path, command.at + 1, command.text);
        let started = std::time::Instant::now();
        let (good, printed) = folder.run(&command.text);
        if std::env::var_os("GUIDE_TIMES").is_some() {
            eprintln!("{:8.2} s  {place}", started.elapsed().as_secs_f64());
        }
        let lines = page.lines[command.output.clone()].iter();
        let lines: Vec<String> =
            lines.map(|l| l.get(command.indent..).unwrap_or_default().to_string()).collect();
        let shows_status = command.text.ends_with("echo $?");
        let fails = lines.iter().any(|line| line.starts_with("error:")) && !shows_status;
        if good == fails {
            let how = if good { "succeeds" } else { "fails" };
            wrong.push(format!("{place}\n    {how}:\n{}", printed.join("\n")));
        } else if !lines.is_empty() && !matches(&lines, &printed) {
            match updated(&lines, &printed).filter(|_| update) {
                Some(lines) => {
                    let indent = " ".repeat(command.indent);
                    let lines = lines.iter().map(|line| format!("{indent}{line}").trim_end().to_string());
                    changes.push((command.output.clone(), lines.collect()));
                }
                None => wrong.push(format!("{place}\n    prints:\n{}", printed.join("\n"))),
            }
        }
    }
    if !changes.is_empty() {
        let mut lines = page.lines.clone();
        for (range, new) in changes.into_iter().rev() {
            lines.splice(range, new);
        }
        std::fs::write(root().join(&page.path), lines.join("\n") + "\n").unwrap();
    }
    wrong
}

/// Commands that are only named, and those that take too long here, at least exist with all their options.
#[test]
fn commands_and_their_options_exist() {
    let folder = Folder::new("options", true);
    let mut helps: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut help = |command: &str| {
        let text = || {
            let (good, lines) = folder.run(&format!("warploom {command} --help"));
            good.then(|| lines.join("\n"))
        };
        helps.entry(command.to_string()).or_insert_with(text).clone()
    };
    let mut wrong = Vec::new();
    for page in guide() {
        for (line, text) in named(&page) {
            let words: Vec<&str> = text.split_whitespace().take_while(|word| *word != "--").collect();
            let Some(&name) = words.get(1) else { continue };
            if !name.chars().all(|c| c.is_ascii_lowercase()) {
                continue;
            }
            let mut say = |what: String| wrong.push(format!("{}:{line}: `{text}`: {what}", page.path));
            let Some(mut known) = help(name) else {
                say(format!("there is no command `{name}`"));
                continue;
            };
            if let Some(&second) = words.get(2)
                && known.contains("\nCommands:\n")
                && let Some(inner) =
                    known.contains(&format!("\n  {second} ")).then(|| help(&format!("{name} {second}")))
            {
                known = inner.unwrap();
            }
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option: String =
                    option.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
                let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
                if !known.split(&option).skip(1).any(|rest| rest.starts_with(is_end)) {
                    say(format!("there is no option `{option}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lines of blocks, and words in backticks, that call the program.
fn named(page: &Page) -> Vec<(usize, String)> {
    let mut named: Vec<(usize, String)> = page.spans();
    for block in page.blocks() {
        let mut joined: Option<(usize, String)> = None;
        for at in block.lines.clone() {
            let line = page.lines[at].trim_start();
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let (_, text) = joined.get_or_insert((at + 1, String::new()));
            text.push_str(line.strip_suffix('\\').unwrap_or(line));
            if !line.ends_with('\\') {
                named.extend(joined.take());
            }
        }
    }
    let calls = ["warploom ", "cargo run --release -- "];
    let call =
        |text: &str| calls.iter().find_map(|call| Some(format!("warploom {}", text.strip_prefix(call)?)));
    named.into_iter().filter_map(|(line, text)| Some((line, call(text.trim())?))).collect()
}

/// What the tutorial says of its outputs is in them.
#[test]
fn the_tutorials_numbers_are_printed() {
    let pages: Vec<Page> =
        guide().into_iter().filter(|page| page.path.starts_with("docs/tutorial/")).collect();
    let printed: Vec<&str> = pages
        .iter()
        .flat_map(|page| page.blocks().into_iter().flat_map(|block| &page.lines[block.lines]))
        .flat_map(|line| numbers(line))
        .collect();
    let said =
        pages.iter().flat_map(|page| page.prose().into_iter().map(move |(line, text)| (page, line, text)));
    let wrong: Vec<String> = said
        .flat_map(|(page, line, text)| numbers(text).into_iter().map(move |number| (page, line, number)))
        .filter(|(_, _, number)| number.contains(',') && !printed.contains(number))
        .map(|(page, line, number)| format!("{}:{line}: {number}", page.path))
        .collect();
    assert!(pages.len() == 6 && wrong.is_empty(), "numbers that no command printed:\n{}", wrong.join("\n"));
}

/// Numbers of a line, with their separators.
fn numbers(line: &str) -> Vec<&str> {
    let words = line.split(|c: char| !(c.is_ascii_digit() || ",.".contains(c)));
    words.map(|word| word.trim_matches([',', '.'])).filter(|word| !word.is_empty()).collect()
}
