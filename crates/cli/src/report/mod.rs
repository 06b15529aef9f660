//! `--report`: one self-contained page for a browser.
//!
//! The page is its data and a program that draws it: `page.html` holds both, `*.js` and `page.css` are put into it, and
//! what is long (`pack.rs`) is packed. All of it is in the file, nothing is fetched.

mod pack;
mod source;

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use warploom::profile::Profile;
use warploom::{Error, Report, Trace};

use crate::failure::Failure;
use crate::output;
use crate::profile;
use crate::sources::Sources;

/// Lines, words and waits that a page has at most: those with the most time.
const MOST: usize = 300;

/// What a page shows.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) runs: Vec<ReportedRun>,
    /// The table of `warploom compare`, if it is one.
    pub(crate) compare: Value,
    /// The changes of `warploom diff`, if it is one.
    pub(crate) diff: Value,
}

impl Page {
    /// The page of one run.
    pub(crate) fn of(title: String, run: ReportedRun) -> Page {
        Page { title, runs: vec![run], ..Page::default() }
    }
}

/// A run on a page.
pub(crate) struct ReportedRun {
    data: Value,
    /// Packed data, by the key of the run that refers to it.
    packed: Vec<(&'static str, Vec<u8>)>,
}

impl ReportedRun {
    /// A run with its timeline and its summary. `file` is the kernel's, near which its sources may lie.
    pub(crate) fn new(
        report: &Report,
        trace: Option<Trace>,
        file: Option<&Path>,
        summary: Vec<(&'static str, String)>,
    ) -> ReportedRun {
        let mut packed = Vec::new();
        let mut data = json!({
            "name": report.kernel,
            "cycles": report.cycles,
            "warp_cycles": report.warp_cycles,
            "ipc": report.ipc,
            "simd_efficiency": report.simd_efficiency,
            "locks": report.locks,
            "summary": summary,
        });
        if let Some(profile) = &report.profile {
            data["sources"] = source::listings(profile, &mut Sources::of(file));
            data["profile"] = hottest(profile);
            profile::add_sources(&mut data, file);
            if let Some(over_time) = &profile.over_time {
                data["over_time"] = json!({
                    "interval_cycles": over_time.interval_cycles,
                    "categories": over_time.categories,
                });
                packed.push(("over_time", pack::over_time(over_time)));
            }
        }
        if let Some((spans, cut)) = trace.and_then(|trace| Some((trace.spans?, trace.cut))) {
            data["timeline"] = json!({
                "from": spans.cycles.start,
                "until": spans.cycles.end,
                "cut": cut,
                "states": spans.states,
                "words": spans.words,
                "places": spans.places,
            });
            packed.push(("timeline", pack::timeline(&spans)));
        }
        ReportedRun { data, packed }
    }

    /// A launch that failed, if it ran at all.
    pub(crate) fn of_failed(
        error: &Error,
        trace: Option<Trace>,
        file: Option<&Path>,
        summary: impl Fn(&Report) -> Vec<(&'static str, String)>,
    ) -> Option<ReportedRun> {
        let (Error::Fault { report, .. }
        | Error::Hang { report, .. }
        | Error::Firmware { report, .. }
        | Error::Interrupted { report, .. }) = error
        else {
            return None;
        };
        Some(ReportedRun::new(report, trace, file, summary(report)).ended(&error.to_string()))
    }

    /// Why it ended early.
    pub(crate) fn ended(mut self, message: &str) -> ReportedRun {
        self.data["ended"] = json!(message);
        self
    }

    pub(crate) fn named(mut self, name: &str) -> ReportedRun {
        self.data["name"] = json!(name);
        self
    }
}

/// What has the most time of a profile, and how much there is of everything.
fn hottest(profile: &Profile) -> Value {
    let mut shown = Profile {
        cycles: profile.cycles,
        warp_lanes: profile.warp_lanes,
        verdict: profile.verdict.clone(),
        time: profile.time,
        lines: profile.lines.iter().take(MOST).cloned().collect(),
        words: profile.words.iter().take(MOST).cloned().collect(),
        waits: profile.waits.iter().take(MOST).cloned().collect(),
        barriers: profile.barriers.iter().take(MOST).cloned().collect(),
        other_tries: profile.other_tries,
        ..Profile::default()
    };
    shown.lines.retain(|line| line.counts.warp_cycles > 0);
    let mut data = json!(shown);
    let [lines, words, waits] = [profile.lines.len(), profile.words.len(), profile.waits.len()];
    data["counts"] = json!({ "lines": lines, "words": words, "waits": waits });
    data
}

/// Writes a page.
pub(crate) fn write(file: &Path, page: &Page) -> Result<(), Failure> {
    output::write(file, html(page).as_bytes())
}

fn html(page: &Page) -> String {
    let runs: Vec<&Value> = page.runs.iter().map(|run| &run.data).collect();
    let data = json!({
        "title": page.title,
        "version": env!("CARGO_PKG_VERSION"),
        "runs": runs,
        "compare": page.compare,
        "diff": page.diff,
    });
    let mut packed = String::new();
    for (number, run) in page.runs.iter().enumerate() {
        for (key, bytes) in &run.packed {
            let text = BASE64_STANDARD.encode(miniz_oxide::deflate::compress_to_vec_zlib(bytes, 6));
            packed += &format!("<script type=\"text/plain\" id=\"{key}-{number}\">{text}</script>\n");
        }
    }
    let program = [
        include_str!("states.js"),
        include_str!("unpack.js"),
        include_str!("charts.js"),
        include_str!("tables.js"),
        include_str!("pixels.js"),
        include_str!("timeline.js"),
        include_str!("page.js"),
    ];
    let parts = [
        ("TITLE", escape(&page.title)),
        ("STYLE", include_str!("page.css").to_string()),
        // Inside a script element, a tag could end it.
        ("DATA", data.to_string().replace('<', "\\u003c")),
        ("PACKED", packed),
        ("PROGRAM", program.join("\n")),
    ];
    let mut html = String::new();
    let mut template = include_str!("page.html");
    for (name, text) in parts {
        let (before, after) = template.split_once(&format!("{{{{{name}}}}}")).unwrap_or((template, ""));
        html += before;
        html += &text;
        template = after;
    }
    html + template
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let evil = "</script><script>alert(1)</script>";
        let page = Page { title: evil.to_string(), diff: json!({ "name": evil }), ..Page::default() };
        let html = html(&page);
        assert!(!html.contains("<script>alert"), "{html}");
        assert!(html.contains("\\u003c/script>") && html.contains("&lt;/script&gt;"));
        assert!(html.ends_with("</html>\n") && !html.contains("{{"));
    }

    #[test]
    fn nothing_is_fetched() {
        let html = html(&Page::default());
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
