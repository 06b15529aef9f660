//! Plots for reports: grouped bars and lines, as SVG text.
//!
//! They are read on paper and by people who do not tell all colours apart: the palette is Okabe and Ito's, and every series
//! has a pattern or a marker besides. Written by hand because that is what plotting crates do not have, and because a report
//! needs little else.
//!
//! ```
//! use warploom_lab::plot::Plot;
//!
//! let plot = Plot::lines("Speedup of HT").x("buckets").y("×").log_x().series("GTO", [(16.0, 5.0), (4096.0, 1.2)]);
//! assert!(plot.svg("ht").starts_with("<svg "));
//! ```

mod axis;
mod bars;
mod lines;
mod svg;

pub use svg::escape;

use svg::Canvas;

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    title: String,
    x: Labelled,
    y: Labelled,
    marks: Marks,
}

/// An axis, as far as the one who plots decides.
#[derive(Clone, Debug, Default, PartialEq)]
struct Labelled {
    label: String,
    log: bool,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
enum Marks {
    Bars { series: Vec<String>, groups: Vec<Group> },
    Lines { series: Vec<Line> },
}

/// Bars side by side, one a series.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    label: String,
    values: Vec<Option<f64>>,
    band: Option<(f64, f64)>,
}

/// A line through points.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

impl Plot {
    /// Groups of bars, one bar a series in each.
    pub fn bars<S: Into<String>>(title: impl Into<String>, series: impl IntoIterator<Item = S>) -> Plot {
        let series = series.into_iter().map(Into::into).collect();
        Plot::new(title.into(), Marks::Bars { series, groups: Vec::new() })
    }

    /// Lines through points.
    pub fn lines(title: impl Into<String>) -> Plot {
        Plot::new(title.into(), Marks::Lines { series: Vec::new() })
    }

    fn new(title: String, marks: Marks) -> Plot {
        Plot { title, x: Labelled::default(), y: Labelled::default(), marks }
    }

    /// What the horizontal axis shows.
    pub fn x(mut self, label: impl Into<String>) -> Plot {
        self.x.label = label.into();
        self
    }

    /// What the vertical axis shows.
    pub fn y(mut self, label: impl Into<String>) -> Plot {
        self.y.label = label.into();
        self
    }

    /// The horizontal axis is logarithmic; lines only. Points at zero or below are not drawn.
    pub fn log_x(mut self) -> Plot {
        self.x.log = true;
        self
    }

    /// The vertical axis is logarithmic. Values at zero or below are not drawn.
    pub fn log_y(mut self) -> Plot {
        self.y.log = true;
        self
    }

    /// A group of bars, in the order of the series; nothing is drawn for those without a value.
    pub fn group(mut self, label: impl Into<String>, values: impl IntoIterator<Item = Option<f64>>) -> Plot {
        if let Marks::Bars { groups, .. } = &mut self.marks {
            let values = values.into_iter().map(|value| value.filter(|value| value.is_finite())).collect();
            groups.push(Group { label: label.into(), values, band: None });
        }
        self
    }

    /// The last group's last bar should end between these.
    pub fn band(mut self, low: f64, high: f64) -> Plot {
        if let Marks::Bars { groups, .. } = &mut self.marks
            && let Some(group) = groups.last_mut()
        {
            group.band = Some((low, high));
        }
        self
    }

    /// A line. Points come in any order of the plotter's choice and are joined in it.
    pub fn series(mut self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Plot {
        if let Marks::Lines { series } = &mut self.marks {
            let points = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
            series.push(Line { name: name.into(), points });
        }
        self
    }

    /// What it is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The picture. `id` is what its parts are known by inside a page, and has to be unique there.
    pub fn svg(&self, id: &str) -> String {
        let mut canvas = Canvas::new(id, &self.title);
        match &self.marks {
            Marks::Bars { series, groups } => bars::draw(&mut canvas, self, series, groups),
            Marks::Lines { series } => lines::draw(&mut canvas, self, series),
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests;
