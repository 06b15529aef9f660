//! Plots for reports as SVG text: grouped bars, lines, and points. Start at [`Plot`].
//!
//! Reports are printed and read by people who cannot tell all colours apart. So the palette is Okabe and Ito's, and
//! every series also has a pattern or a marker, which plotting crates do not offer.
//!
//! ```
//! use warploom_lab::repro::Plot;
//!
//! let plot = Plot::lines("Speedup of HT").x("buckets").y("×").log_x().series("GTO", [(16.0, 5.0), (4096.0, 1.2)]);
//! assert!(plot.svg("ht").starts_with("<svg "));
//! ```

mod axis;
mod bars;
mod lines;
mod svg;

pub(crate) use svg::escape;

use svg::Canvas;

/// A plot, built by chained calls. Bars take groups, lines and points take series. A call for another kind does
/// nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    title: String,
    x: Labelled,
    y: Labelled,
    marks: Marks,
    /// Values that the axes show besides those of the marks.
    spanned: (Vec<f64>, Vec<f64>),
}

/// What the caller sets of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
struct Labelled {
    label: String,
    log: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Marks {
    Bars {
        series: Vec<String>,
        groups: Vec<Group>,
        /// The bars of a group are parts of one, above each other.
        stacked: bool,
    },
    Lines {
        series: Vec<Line>,
    },
    /// Points that are not joined, with lines y = factor * x.
    Points {
        series: Vec<Line>,
        guides: Vec<f64>,
    },
}

/// Bars side by side, one per series.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    label: String,
    values: Vec<Option<f64>>,
    /// The range in which the last bar should end.
    band: Option<(f64, f64)>,
    /// The ends of the bars' error bars, in the order of the series.
    errors: Vec<Option<(f64, f64)>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
    /// Error bars: where, and from where to where.
    errors: Vec<(f64, f64, f64)>,
}

impl Plot {
    /// A bar chart: each group has one bar per series.
    pub fn bars<S: Into<String>>(title: impl Into<String>, series: impl IntoIterator<Item = S>) -> Plot {
        let series = series.into_iter().map(Into::into).collect();
        Plot::new(title.into(), Marks::Bars { series, groups: Vec::new(), stacked: false })
    }

    /// A bar chart in which a group is one bar, made of a part for each series. Values are not negative.
    pub fn stacked<S: Into<String>>(title: impl Into<String>, series: impl IntoIterator<Item = S>) -> Plot {
        let series = series.into_iter().map(Into::into).collect();
        Plot::new(title.into(), Marks::Bars { series, groups: Vec::new(), stacked: true })
    }

    /// A line chart.
    pub fn lines(title: impl Into<String>) -> Plot {
        Plot::new(title.into(), Marks::Lines { series: Vec::new() })
    }

    /// Points of two quantities with the same unit: both axes have the same range.
    pub fn points(title: impl Into<String>) -> Plot {
        Plot::new(title.into(), Marks::Points { series: Vec::new(), guides: Vec::new() })
    }

    fn new(title: String, marks: Marks) -> Plot {
        Plot { title, x: Labelled::default(), y: Labelled::default(), marks, spanned: Default::default() }
    }

    /// Labels the horizontal axis.
    pub fn x(mut self, label: impl Into<String>) -> Plot {
        self.x.label = label.into();
        self
    }

    /// Labels the vertical axis.
    pub fn y(mut self, label: impl Into<String>) -> Plot {
        self.y.label = label.into();
        self
    }

    /// Draws the line on which y is `factor` times x; points only.
    pub fn guide(mut self, factor: f64) -> Plot {
        if let Marks::Points { guides, .. } = &mut self.marks {
            guides.push(factor);
        }
        self
    }

    /// Makes the horizontal axis logarithmic; lines and points only. Points at zero or below are not drawn.
    pub fn log_x(mut self) -> Plot {
        self.x.log = true;
        self
    }

    /// Makes the vertical axis logarithmic. Values at zero or below are not drawn.
    pub fn log_y(mut self) -> Plot {
        self.y.log = true;
        self
    }

    /// Adds a group of bars, in the order of the series. A `None` draws nothing.
    pub fn group(mut self, label: impl Into<String>, values: impl IntoIterator<Item = Option<f64>>) -> Plot {
        if let Marks::Bars { groups, .. } = &mut self.marks {
            let values = values.into_iter().map(|value| value.filter(|value| value.is_finite())).collect();
            groups.push(Group { label: label.into(), values, band: None, errors: Vec::new() });
        }
        self
    }

    /// Marks the range in which the last bar of the last group should end.
    pub fn band(mut self, low: f64, high: f64) -> Plot {
        if let Marks::Bars { groups, .. } = &mut self.marks
            && let Some(group) = groups.last_mut()
        {
            group.band = Some((low, high));
        }
        self
    }

    /// Gives the bars of the last group error bars, in the order of the series.
    pub fn bar_errors(mut self, ends: impl IntoIterator<Item = Option<(f64, f64)>>) -> Plot {
        if let Marks::Bars { groups, .. } = &mut self.marks
            && let Some(group) = groups.last_mut()
        {
            group.errors = ends.into_iter().collect();
        }
        self
    }

    /// Adds a line, whose points are joined in the given order, or a set of points.
    pub fn series(mut self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Plot {
        if let Marks::Lines { series } | Marks::Points { series, .. } = &mut self.marks {
            let points = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
            series.push(Line { name: name.into(), points, errors: Vec::new() });
        }
        self
    }

    /// Gives the last line error bars, each at an x, from a low end to a high one; lines only.
    pub fn errors(mut self, errors: impl IntoIterator<Item = (f64, f64, f64)>) -> Plot {
        if let Marks::Lines { series } = &mut self.marks
            && let Some(line) = series.last_mut()
        {
            line.errors = errors.into_iter().collect();
        }
        self
    }

    /// Makes the axes show these values, too, so that plots side by side can be compared.
    pub fn spanning(mut self, x: impl IntoIterator<Item = f64>, y: impl IntoIterator<Item = f64>) -> Plot {
        let finite = |value: &f64| value.is_finite();
        self.spanned = (x.into_iter().filter(finite).collect(), y.into_iter().filter(finite).collect());
        self
    }

    /// Renders the plot. `id` prefixes the ids of its parts and must be unique in the page.
    pub fn svg(&self, id: &str) -> String {
        let mut canvas = Canvas::new(id, &self.title);
        match &self.marks {
            Marks::Bars { series, groups, stacked: true } => {
                bars::draw_stacked(&mut canvas, self, series, groups)
            }
            Marks::Bars { series, groups, .. } => bars::draw(&mut canvas, self, series, groups),
            Marks::Lines { series } => lines::draw(&mut canvas, self, series),
            Marks::Points { series, guides } => lines::draw_points(&mut canvas, self, series, guides),
        }
        canvas.finish()
    }
}

/// Several plots in one picture, two beside each other.
pub(crate) fn side_by_side(plots: &[Plot], id: &str) -> String {
    if let [only] = plots {
        return only.svg(id);
    }
    let columns = plots.len().clamp(1, 2);
    let (width, height) = (svg::WIDTH * columns as f64, svg::HEIGHT * plots.len().div_ceil(columns) as f64);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\">\n"
    );
    for (at, plot) in plots.iter().enumerate() {
        let (x, y) = (svg::WIDTH * (at % columns) as f64, svg::HEIGHT * (at / columns) as f64);
        let one = plot.svg(&format!("{id}-{at}"));
        picture += &one.replacen("<svg ", &format!("<svg x=\"{x}\" y=\"{y}\" "), 1);
    }
    picture + "</svg>\n"
}

#[cfg(test)]
mod tests;
