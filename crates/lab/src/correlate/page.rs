//! The correlation as one self-contained HTML page.

use std::fmt::Write;

use super::{Class, Correlation, Pair};
use crate::conform::Origin;
use crate::plot::{Plot, escape};
use crate::repro::html::STYLE;

impl Correlation {
    /// A page with a plot of all points, the mean error of each class, and the points, the worst first.
    pub fn html(&self, origin: &Origin) -> String {
        let title = format!("Warploom: {} and its model", escape(&self.chip));
        let mut page = format!(
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n\
             <meta charset=\"utf-8\"/>\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n<p>Times of kernels on a real {} ({}, driver {}) and in the model, {} points. The mean \
             absolute error is {:.1} % of the real time.</p>\n",
            escape(&origin.chip),
            escape(&origin.date),
            escape(&origin.driver),
            self.pairs.len(),
            100.0 * self.error
        );
        let _ = write!(page, "<figure>{}</figure>\n<table>\n", self.plot().svg("correlation"));
        page.push_str("<tr><th>class</th><th class=\"n\">points</th><th class=\"n\">mean error</th></tr>\n");
        for class in Class::ALL {
            let Some(error) = self.error_by_class.get(class.name()) else { continue };
            let points = self.pairs_of(class).count();
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td class=\"n\">{points}</td><td class=\"n\">{:.1} %</td></tr>",
                class.name(),
                100.0 * error
            );
        }
        page.push_str(
            "</table>\n<table>\n<tr><th>point</th><th>class</th><th class=\"n\">real, us</th>\
             <th class=\"n\">model, us</th><th class=\"n\">ratio</th><th>in the model mostly</th></tr>\n",
        );
        for pair in &self.pairs {
            let verdict = if pair.factor() > 2.0 { " out" } else { "" };
            let _ = writeln!(
                page,
                "<tr><td><code>{}</code></td><td>{}</td><td class=\"n\">{:.1}</td><td class=\"n\">{:.1}</td>\
                 <td class=\"n{verdict}\">{:.2}</td><td>{}</td></tr>",
                escape(&pair.point),
                pair.class.name(),
                1e6 * pair.real_s,
                1e6 * pair.model_s,
                pair.ratio,
                escape(&pair.mostly)
            );
        }
        page.push_str("</table>\n");
        for message in &self.failed {
            let _ = writeln!(page, "<p class=\"out\">failed: {}</p>", escape(message));
        }
        page.push_str("</body>\n</html>\n");
        page
    }

    fn pairs_of(&self, class: Class) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(move |pair| pair.class == class)
    }

    /// Lines at the same time, half of it and twice.
    fn plot(&self) -> Plot {
        let plot = Plot::points(format!("{}: kernel times", self.chip)).x("real chip, us").y("model, us");
        let plot = plot.log_x().log_y().guide(1.0).guide(0.5).guide(2.0);
        let times = |class| self.pairs_of(class).map(|pair| (1e6 * pair.real_s, 1e6 * pair.model_s));
        Class::ALL.into_iter().fold(plot, |plot, class| plot.series(class.name(), times(class)))
    }
}
