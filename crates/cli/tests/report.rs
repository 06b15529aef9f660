//! `--report` and `warploom diff`: pages in a real browser, texts, what is refused.
#![cfg(unix)]

#[path = "support/browser.rs"]
mod browser;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::Browser;
use serde_json::{Value, json};
use support::scratch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn warploom(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.current_dir(root()).args(line.split_whitespace()).env_remove("RUST_BACKTRACE").output().unwrap()
}

/// What a command prints that must succeed.
#[track_caller]
fn good(line: &str) -> String {
    let output = warploom(line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a command that must be refused.
#[track_caller]
fn refused(line: &str) -> String {
    let output = warploom(line);
    assert_eq!(output.status.code(), Some(2), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

const SPINLOCK: &str = "kernels/spinlock.ptx --chip gtx480 --entry spinlock_inc --grid 4 --block 64 \
                        --arg buf:u32:1=zero --arg buf:u32:1=zero --arg u32:2 --set sm.count=2";

/// Things that a browser shows wrongly at no width: text that is cut off or a page that must be scrolled sideways.
#[track_caller]
fn check_layout(browser: &mut Browser) {
    let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
    assert!(wide.as_i64().unwrap() <= 0, "{wide} pixels too wide");
    let headings = browser.value("[...document.querySelectorAll('h2')].map((h) => h.textContent)");
    let overlaps = browser.value(
        "[...document.querySelectorAll('section')].some((part, at, all) => at > 0 && \
         part.getBoundingClientRect().top < all[at - 1].getBoundingClientRect().bottom)",
    );
    assert_eq!(overlaps, false, "{headings}");
}

#[test]
fn a_run_is_shown_by_a_browser() {
    let page = scratch("report_run").join("lock.html");
    let text = good(&format!("run {SPINLOCK} --report {}", page.display()));
    let object: Value = serde_json::from_str(&good(&format!("run {SPINLOCK} --profile --json"))).unwrap();
    assert!(!text.contains("hottest lines"), "only --profile prints a profile");
    let Some(mut browser) = Browser::start("report_run_browser") else { return };
    for (width, dark) in [(1280, false), (1920, true)] {
        browser.open(&page, width, dark);
        check_layout(&mut browser);
        let headings = browser.value("[...document.querySelectorAll('h2')].map((h) => h.textContent)");
        assert_eq!(
            headings,
            json!([
                "Summary",
                "Warps by state over time",
                "Timeline",
                "Hottest lines",
                "Source",
                "Locks and flags",
                "Who waits for whom"
            ])
        );
        // The source is scrolled to its hottest line.
        let in_view = browser.value(
            "(() => { const place = (what) => document.querySelector(what).getBoundingClientRect(); \
             const [row, box] = [place('.code.shown'), place('.source')]; \
             return row.top >= box.top && row.bottom <= box.bottom; })()",
        );
        assert_eq!(in_view, true);
        let background = browser.value("getComputedStyle(document.body).backgroundColor");
        assert_eq!(background, if dark { "rgb(21, 24, 29)" } else { "rgb(255, 255, 255)" });
    }

    // The timeline has every cycle of every warp, and the summary's words.
    let cycles = "timeline.sms.flatMap((sm) => sm.slots).map(({ states }) => \
                  states.until.reduce((sum, until, at) => sum + until - states.from[at], 0)) \
                  .reduce((a, b) => a + b, 0)";
    assert_eq!(browser.value(cycles).as_f64(), object["warp_cycles"].as_f64());
    let over_time = "(() => { const { runs } = JSON.parse(document.getElementById('data').textContent); \
                     return runs[0].profile.time.spinning; })()";
    assert_eq!(browser.value(over_time), object["profile"]["time"]["spinning"]);
    assert!(browser.value("timeline.meta.states").as_array().unwrap().contains(&json!("not selected")));
    assert_eq!(browser.value("timeline.meta.words"), json!(["lock+0"]));

    // Hand-offs: from the thread that held the lock to one that had waited, on either SM.
    let hand_offs = browser.value("timeline.handOffs.length").as_u64().unwrap();
    let measured = object["profile"]["words"][0]["hand_off"]["count"].as_u64().unwrap();
    assert!(hand_offs > 100 && hand_offs <= measured, "{hand_offs} of {measured}");
    assert!(browser.value("timeline.handOffs.every((h) => h.released <= h.taken)").as_bool().unwrap());
    assert_eq!(browser.value("timeline.show(0, 20000); timeline.now(); timeline.arrows > 0"), true);

    // A click closes and opens an SM.
    browser.value("document.getElementById('timeline').scrollIntoView()");
    let open = browser.value("timeline.rows.length").as_u64().unwrap();
    let place = browser
        .value("(() => { const b = timeline.canvas.getBoundingClientRect(); return [b.left, b.top]; })()");
    let at = |side: usize| place[side].as_f64().unwrap();
    browser.click(at(0) + 30.0, at(1) + 38.0);
    let closed = browser.value("timeline.rows.length").as_u64().unwrap();
    assert!(closed < open, "{closed} rows of {open}");
    assert!(browser.screenshot_bytes() > 20_000);
    // The tooltip names warp, state and place.
    let said = browser.value("timeline.describe(timeline.rows.find((row) => row.slot), 5000)").to_string();
    assert!(
        said.contains("CTA (") && said.contains("cycles ") && said.contains("kernels/spinlock.ptx:"),
        "{said}"
    );
    assert_eq!(browser.errors, [""; 0]);
}

/// Blocks of scripts that a frame executes, on average, while a part of the timeline is dragged along.
fn frame_blocks(browser: &mut Browser, part: f64) -> u64 {
    let frames = 20;
    let drag = |frames: u64| {
        format!(
            "(async () => {{ const {{ from, until }} = timeline; const part = (until - from) * {part}; \
             for (let at = 0; at < {frames}; at++) {{ \
               const begin = from + ((until - from - part) * at) / {frames} + at; \
               timeline.show(begin, begin + part); await new Promise(requestAnimationFrame); }} }})()"
        )
    };
    // The first frames make sums for the others.
    browser.value(&drag(10));
    browser.blocks();
    browser.value(&drag(frames));
    browser.blocks() / frames
}

#[test]
fn a_million_spans_are_shown() {
    let page = scratch("report_many").join("many.html");
    good(&format!("work hashtable keys=40_000 buckets=512 --report {} --trace-mb 120", page.display()));
    let Some(mut browser) = Browser::start("report_many_browser") else { return };
    browser.count_blocks();
    browser.open(&page, 1920, false);
    check_layout(&mut browser);
    assert!(
        browser.value("timeline.spans").as_u64().unwrap() > 1_000_000,
        "{}",
        browser.value("timeline.spans")
    );
    // What a frame costs is bounded by the window: rows outside of it are not drawn.
    let rows = browser
        .value("timeline.sms.forEach((sm) => (sm.open = true)); timeline.layOut(); timeline.rows.length");
    assert!(rows.as_u64().unwrap() > 300, "{rows}");
    // The overview and open SMs, the whole time and parts of it: a frame executes about as many blocks as it has
    // pixels (1,920 by 560), not as there are spans.
    for open in [false, true] {
        browser.value(&format!("timeline.sms.forEach((sm) => (sm.open = {open})); timeline.layOut()"));
        for part in [1.0, 0.3, 0.01, 0.001] {
            let blocks = frame_blocks(&mut browser, part);
            assert!(blocks < 2_000_000, "{blocks} blocks executed for a frame of {part}, open: {open}");
        }
    }
    assert_eq!(browser.errors, [""; 0]);
}

#[test]
fn several_runs_are_shown_one_at_a_time() {
    let page = scratch("report_compare").join("compare.html");
    good(&format!("compare {SPINLOCK} --policy gto,lrr --report {}", page.display()));
    let Some(mut browser) = Browser::start("report_compare_browser") else { return };
    browser.open(&page, 1280, true);
    check_layout(&mut browser);
    assert_eq!(browser.value("document.querySelectorAll('#compare tbody tr').length"), 4);
    let chosen = "document.querySelector('.chooser [aria-pressed=true]').textContent";
    assert_eq!(browser.value(chosen), "gto");
    let before = browser.value("timeline.until");
    let after = browser.value(
        "(async () => { document.querySelectorAll('.chooser button')[1].click(); \
         for (let left = 200; left > 0; left--) { \
           await new Promise((done) => setTimeout(done, 25)); \
           if (document.querySelectorAll('.chooser button')[1].getAttribute('aria-pressed') === 'true') break; } \
         return timeline.until; })()",
    );
    assert_eq!(browser.value(chosen), "gto+bows");
    assert_ne!(before, after);
    assert_eq!(browser.errors, [""; 0]);
}

#[test]
fn a_hang_is_on_the_page() {
    let page = scratch("report_hang").join("hang.html");
    let args = "--arg buf:u32:1=zero --arg buf:u32:1=zero";
    let line = format!("run kernels/spinlock.ptx --chip gtx480 --entry naivelock --block 32 {args}");
    let output = warploom(&format!("{line} --report {}", page.display()));
    assert_eq!(output.status.code(), Some(4));
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("SIMD deadlock"), "the page has the explanation");
    let Some(mut browser) = Browser::start("report_hang_browser") else { return };
    browser.open(&page, 1280, false);
    let ended = browser.value("document.querySelector('.ended').textContent").to_string();
    assert!(ended.contains("SIMD deadlock") && ended.contains("help"), "{ended}");
}

#[test]
fn a_report_that_cannot_be_is_refused_before_the_run() {
    let message = refused(&format!("run {SPINLOCK} --report /nowhere/lock.html"));
    assert!(message.contains("cannot write `/nowhere/lock.html`: no such file or directory"), "{message}");
    let message = refused(&format!("compare {SPINLOCK} --report /nowhere/lock.html"));
    assert!(message.contains("cannot write `/nowhere/lock.html`"), "{message}");
    let message = refused(&format!("run {SPINLOCK} --report r.html --model functional"));
    assert!(message.contains("--report needs the timed model"), "{message}");
    let message = refused(&format!("run {SPINLOCK} --trace-sm all"));
    assert!(message.contains("--trace"), "{message}");
    let message = refused(&format!("run {SPINLOCK} --trace t --trace-sm some"));
    assert!(message.contains("`some` is no SM's number, nor `all`"), "{message}");
}

/// Two profiles of a lock, without back-off and with it.
fn profiles(dir: &Path) -> [PathBuf; 2] {
    ["", "--bows"].map(|option| {
        let file = dir.join(format!("run{option}.json"));
        std::fs::write(&file, good(&format!("run {SPINLOCK} {option} --profile --json"))).unwrap();
        file
    })
}

#[test]
fn two_runs_are_compared_by_line_and_by_lock() {
    let dir = scratch("diff");
    let [a, b] = profiles(&dir);
    let page = dir.join("diff.html");
    let line = format!("diff {} {}", a.display(), b.display());
    let text = good(&format!("{line} --lines 4 --report {}", page.display()));
    for part in [
        "run.json: spinlock_inc on gtx480, gto, grid 4 x block 64\n",
        "run--bows.json: spinlock_inc on gtx480, gto+bows, grid 4 x block 64\n",
        "\ncycles ",
        "\nwarp time by category, in cycles; the change as a part of A's warp time\n",
        "\n  spinning ",
        "\n  backed off ",
        "\nlines, in warp cycles; what changed most first\n",
        "  kernels/spinlock.ptx:46: setp.ne.s32 %p2, %r7, 0\n",
        "\n  lock+0   A",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let object: Value = serde_json::from_str(&good(&format!("{line} --json"))).unwrap();
    let cycles = |side: &str| object[side]["cycles"].as_u64().unwrap();
    let number = &object["numbers"][0];
    assert_eq!(
        (number["a"].as_f64(), number["b"].as_f64()),
        (Some(cycles("a") as f64), Some(cycles("b") as f64))
    );
    assert_ne!(cycles("a"), cycles("b"));
    let change = |pair: &Value| {
        let of = |side: &str| pair[side]["warp_cycles"].as_i64().unwrap_or(0);
        (of("a") - of("b")).abs()
    };
    let changes: Vec<i64> = object["lines"].as_array().unwrap().iter().map(change).collect();
    assert!(changes[0] > 0 && changes.windows(2).all(|w| w[0] >= w[1]), "{changes:?}");
    let Some(mut browser) = Browser::start("diff_browser") else { return };
    browser.open(&page, 1280, true);
    check_layout(&mut browser);
    let first = browser.value("document.querySelector('#lines tbody .place').textContent");
    assert!(first.as_str().unwrap().starts_with(object["lines"][0]["name"].as_str().unwrap()), "{first}");
    assert_eq!(browser.value("document.querySelectorAll('#locks tbody tr').length"), 1);
    assert_eq!(browser.errors, [""; 0]);
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let dir = scratch("diff_same");
    let [a, _] = profiles(&dir);
    let text = good(&format!("diff {0} {0}", a.display()));
    assert!(text.contains("\nno line takes more or less time\n") && text.contains("+0.0%"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_told() {
    let dir = scratch("diff_refused");
    let [a, _] = profiles(&dir);
    let write = |name: &str, text: &str| {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name).display().to_string()
    };
    let plain = write("plain.json", &good(&format!("run {SPINLOCK} --json")));
    let cases = [
        (dir.join("none.json").display().to_string(), "none.json`: no such file or directory"),
        (write("text.json", "not json"), "text.json` is not JSON: expected ident at line 1 column 2"),
        (
            write("other.json", "{\"chips\": []}"),
            "other.json` is not the JSON of a run: missing field `kernel`",
        ),
        (write("rows.json", "{\"rows\": [1, 2]}"), "rows.json` is a comparison with 2 rows, not one run"),
        (plain, "plain.json` has no profile"),
    ];
    for (file, message) in cases {
        let text = refused(&format!("diff {} {file}", a.display()));
        assert!(text.contains(message), "{message:?} is not in\n{text}");
        assert!(message.contains("no such") || text.contains("--profile --json > A.json"), "{text}");
    }
}
