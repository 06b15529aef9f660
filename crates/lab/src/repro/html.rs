//! The report: one self-contained HTML page for the screen or for print.
//!
//! It has no scripts and refers to nothing outside. All elements are closed, so it is well-formed XML too.

use std::fmt::Write;

use super::Scale;
use super::report::{Evaluated, Reproduction, RunLine};
use super::row::{Row, Verdict};
use crate::conform::today;
use crate::numbers::figure;
use crate::plot::escape;
use crate::runs::provenance;

pub(crate) const STYLE: &str = "
:root { color-scheme: light dark; --text: #222; --page: #fff; --line: #ddd; --strong: #999; --faint: #555;
  --good: #00684c; --bad: #a63d00; --link: #0072B2; --panel: #f5f5f5; --note: #fdf6e7; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --page: #16181c; --line: #3a3f47; --strong: #6b7280; --faint: #a3a9b3; --good: #5ed0a4;
    --bad: #ff9d66; --link: #6cb8f0; --panel: #22262c; --note: #33290f; }
}
body { font: 15px/1.5 system-ui, Helvetica, Arial, sans-serif; color: var(--text);
  background: var(--page); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.3rem; border-top: 2px solid var(--line); padding-top: 1.2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 0.2rem; }
p { margin: 0.4rem 0; }
table { border-collapse: collapse; margin: 0.8rem 0; width: 100%; }
th, td { text-align: left; padding: 0.25rem 0.7rem 0.25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { border-bottom: 2px solid var(--strong); font-weight: 600; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.small { font-size: 0.87rem; color: var(--faint); padding-top: 0; overflow-wrap: anywhere; }
tr.more td { border-bottom: 1px solid var(--line); }
tr.first td { border-bottom: none; }
.in { color: var(--good); font-weight: 600; }
.out { color: var(--bad); font-weight: 700; }
.report { color: var(--faint); }
.quick { border-left: 4px solid #E69F00; padding: 0.2rem 0.8rem; background: var(--note); }
td code { overflow-wrap: anywhere; }
code, pre { font: 0.87rem/1.45 ui-monospace, Menlo, Consolas, monospace; }
pre { background: var(--panel); padding: 0.5rem 0.8rem; overflow-x: auto; white-space: pre-wrap; }
figure { margin: 1rem 0; }
svg { max-width: 100%; height: auto; border-radius: 6px; }
footer { margin-top: 3rem; border-top: 2px solid var(--line); font-size: 0.87rem; color: var(--faint); }
a { color: var(--link); }
@media print {
  :root { color-scheme: light; --text: #222; --page: #fff; --line: #ddd; --strong: #999; --faint: #555; --good: #00684c;
    --bad: #a63d00; --link: #0072B2; --panel: #f5f5f5; --note: #fdf6e7; }
  body { font-size: 10.5pt; margin: 0; max-width: none; }
  h2 { break-before: auto; break-after: avoid; }
  figure, tr { break-inside: avoid; }
  pre { white-space: pre-wrap; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
";

impl Reproduction {
    /// The report as an HTML page.
    pub fn html(&self) -> String {
        let mut page = String::new();
        let quick = self.scale == Scale::Quick;
        let title = if quick { "Warploom: experiments, quick form" } else { "Warploom: experiments" };
        let _ = write!(
            page,
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n\
             <meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
        );
        self.headline(&mut page);
        let [inside, outside, reported] = [Verdict::In, Verdict::Out, Verdict::Report].map(|v| self.count(v));
        let _ = writeln!(
            page,
            "<p>{} numbers are judged: {inside} inside their bands, {outside} outside. {reported} more are only \
             reported. Made by warploom {} on {}.</p>",
            inside + outside,
            escape(provenance::VERSION),
            today(),
        );
        if quick {
            page.push_str(
                "<p class=\"quick\">These are the quick forms: smaller inputs than the papers', in seconds. \
                 Where a smaller input moves a number, its row says so.</p>\n",
            );
        }
        self.summary(&mut page);
        for experiment in &self.experiments {
            self.section(&mut page, experiment);
        }
        footer(&mut page);
        page.push_str("</body>\n</html>\n");
        page
    }

    /// Whether the papers' headline numbers are reproduced; those that are not, one by one.
    fn headline(&self, page: &mut String) {
        let missed: Vec<_> = self.headlines(Verdict::Out).collect();
        let inside = self.headlines(Verdict::In).count();
        if missed.is_empty() && inside > 0 {
            let _ = writeln!(page, "<p class=\"in\">Headline numbers: all {inside} inside their bands.</p>");
        }
        if missed.is_empty() {
            return;
        }
        let (out, all) = (missed.len(), missed.len() + inside);
        let _ = writeln!(page, "<p class=\"out\">Not reproduced: {out} of {all} headline numbers.</p>\n<ul>");
        for (experiment, row) in missed {
            let id = escape(experiment.about.id);
            let _ = writeln!(
                page,
                "<li><a href=\"#{id}\"><code>{id}</code></a> {}: {}, in the paper {}</li>",
                escape(&row.name),
                escape(&row.measured_text()),
                escape(&row.paper_text()),
            );
        }
        page.push_str("</ul>\n");
    }

    fn summary(&self, page: &mut String) {
        page.push_str(
            "<table>\n<tr><th>experiment</th><th>what</th><th class=\"n\">inside</th><th class=\"n\">outside</th>\
             <th class=\"n\">only reported</th><th>verdict</th></tr>\n",
        );
        for experiment in &self.experiments {
            let id = escape(experiment.about.id);
            let _ = writeln!(
                page,
                "<tr><td><a href=\"#{id}\"><code>{id}</code></a></td><td>{}</td>{}<td>{}</td></tr>",
                escape(experiment.about.title),
                tally(experiment),
                verdict(experiment.verdict()),
            );
        }
        page.push_str("</table>\n");
    }

    fn section(&self, page: &mut String, experiment: &Evaluated) {
        let (about, outcome) = (&experiment.about, &experiment.outcome);
        let id = escape(about.id);
        let _ = writeln!(
            page,
            "<section>\n<h2 id=\"{id}\"><code>{id}</code> {}</h2>\n<p>{}. Chip: {}. Verdict: {}.</p>",
            escape(about.title),
            escape(about.citation().unwrap_or("About the model itself")),
            escape(&experiment.chips().join(", ")),
            verdict(experiment.verdict()),
        );
        for note in &outcome.notes {
            let _ = writeln!(page, "<p>{}</p>", escape(note));
        }
        page.push_str(
            "<table>\n<tr><th>what</th><th class=\"n\">paper</th><th class=\"n\">measured</th>\
             <th class=\"n\">ratio</th>\
             <th>band</th><th>verdict</th></tr>\n",
        );
        for row in &outcome.rows {
            table_row(page, row);
        }
        page.push_str("</table>\n");
        for (i, plot) in outcome.plots.iter().enumerate() {
            let _ = writeln!(page, "<figure>\n{}</figure>", plot.svg(&format!("{}-{i}", about.id)));
        }
        let form = if self.scale == Scale::Quick { " --quick" } else { "" };
        let _ = writeln!(page, "<h3>To run it again</h3>\n<pre>warploom repro {id}{form} --fresh</pre>");
        runs(page, &experiment.runs);
        page.push_str("</section>\n");
    }
}

fn table_row(page: &mut String, row: &Row) {
    let more: Vec<String> = [row.note.clone(), row.reason()].into_iter().flatten().collect();
    let _ = writeln!(
        page,
        "<tr{}><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td>{}</td><td>{}</td></tr>",
        if more.is_empty() { "" } else { " class=\"first\"" },
        if row.headline { format!("<b>{}</b>", escape(&row.name)) } else { escape(&row.name) },
        escape(&row.paper_text()),
        escape(&row.measured_text()),
        row.ratio().map_or("–".to_string(), figure),
        escape(&row.band_text()),
        verdict(row.verdict()),
    );
    for (i, text) in more.iter().enumerate() {
        let class = if i + 1 == more.len() { "more" } else { "first" };
        // The message of a hang has several lines.
        let text = escape(text).replace('\n', "<br/>");
        let _ = writeln!(page, "<tr class=\"{class}\"><td class=\"small\" colspan=\"6\">{text}</td></tr>");
    }
}

/// The settings: the description of every run.
fn runs(page: &mut String, runs: &[RunLine]) {
    page.push_str(
        "<h3>Settings</h3>\n<table>\n<tr><th>run</th><th class=\"n\">seconds</th><th>result</th></tr>\n",
    );
    for run in runs {
        let state = match (&run.failure, run.kept) {
            (Some(_), _) => "failed",
            (None, true) => "kept from before",
            (None, false) => "new",
        };
        let _ = writeln!(
            page,
            "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td>{state}</td></tr>",
            escape(&run.run),
            run.wall_s.map_or("–".to_string(), |s| format!("{s:.2}")),
        );
    }
    page.push_str("</table>\n");
}

fn footer(page: &mut String) {
    let _ = writeln!(
        page,
        "<footer>\n<p>warploom {}, model <code>{}</code>: \
         a digest of the simulator's, the workloads' and the kernels' sources. \
         Where it is the same, so are the numbers, bit for bit. Each kernel's own digest:</p>\n<table>",
        escape(provenance::VERSION),
        escape(provenance::MODEL),
    );
    for (path, digest) in provenance::KERNELS {
        let _ = writeln!(
            page,
            "<tr><td><code>{}</code></td><td><code>{}</code></td></tr>",
            escape(path),
            escape(digest)
        );
    }
    page.push_str("</table>\n</footer>\n");
}

fn verdict(verdict: Verdict) -> String {
    let mark = match verdict {
        Verdict::In => "✓ in",
        Verdict::Out => "✗ out",
        Verdict::Report => "· report",
    };
    format!("<span class=\"{}\">{mark}</span>", verdict.word())
}

/// Cells with the number of rows inside their bands, outside, and only reported.
fn tally(experiment: &Evaluated) -> String {
    let count = |verdict| experiment.outcome.rows.iter().filter(|row| row.verdict() == verdict).count();
    let cell = |verdict| format!("<td class=\"n\">{}</td>", count(verdict));
    [Verdict::In, Verdict::Out, Verdict::Report].map(cell).concat()
}

#[cfg(test)]
mod tests {
    use roxmltree::{Document, ParsingOptions};

    use super::*;
    use crate::repro::report::tests::example;

    #[test]
    fn the_report_is_whole_and_well_formed() {
        let html = example().html();
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&html, options).unwrap_or_else(|e| panic!("{e}\n{html}"));
        let text: String = document.descendants().filter_map(|node| node.text()).collect();
        for part in [
            "example-fig1",
            "Scores & <times>",
            "a <b> & \"c\"",
            "a < b, \"c\"",
            "Sizes are < 4.",
            "Ratios & <more>",
            "2.80× to 4.20×",
            "warploom repro example-fig1 --quick --fresh",
            "work nw size=1 on gtx570 (sm.count=2)",
            "quick forms",
            "✗ out",
            "3 numbers are judged: 2 inside their bands, 1 outside. 1 more are only reported.",
            &format!("on {}.", today()),
            provenance::VERSION,
            provenance::MODEL,
            "kernels/hashtable.ptx",
        ] {
            assert!(text.contains(part), "{part} is missing in {html}");
        }
        let has = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
        let svg = ("http://www.w3.org/2000/svg", "svg");
        assert_eq!(document.descendants().filter(|node| node.has_tag_name(svg)).count(), 2);
        assert_eq!(has("script") + has("link") + has("img"), 0);
        for link in document.descendants().filter_map(|node| node.attribute("href")) {
            let target = link.strip_prefix('#');
            assert!(
                document.descendants().any(|node| node.attribute("id") == target),
                "{link} leads nowhere"
            );
        }
    }

    #[test]
    fn missed_headlines_come_first_and_papers_are_cited() {
        let mut example = example();
        example.experiments[0].outcome.rows[1].headline = true;
        example.experiments[0].about.paper = "hpca18";
        let html = example.html();
        let missed = html.find("Not reproduced: 1 of 2 headline numbers.").expect("it is said");
        assert!(missed < html.find("numbers are judged").unwrap(), "{html}");
        assert!(html.contains("Warp Scheduling for Fine-Grained Synchronization. HPCA 2018"), "{html}");
    }

    #[test]
    fn ids_are_unique() {
        let html = example().html();
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&html, options).unwrap();
        let mut ids: Vec<_> = document.descendants().filter_map(|node| node.attribute("id")).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
