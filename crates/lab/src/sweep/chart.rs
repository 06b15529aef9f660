//! Plots of results: one figure against one setting, with colours, facets, and error bars over seeds.

use super::table::no_column;
use super::{Cell, Sweep, SweepError, Table};
use crate::numbers::figure;
use crate::plot::{Plot, escape, side_by_side};
use crate::repro::html::STYLE;

/// What is plotted: `x=buckets y=cycles color=sched facet=bows log=x,y`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chart {
    pub x: String,
    pub y: String,
    pub color: Option<String>,
    pub facet: Option<String>,
    pub log_x: bool,
    pub log_y: bool,
}

/// Runs that differ in nothing but their seed.
struct Point {
    x: Cell,
    values: Vec<f64>,
}

/// The points of one colour.
struct Series {
    name: String,
    points: Vec<Point>,
}

impl Chart {
    /// Reads words `KEY=VALUE`.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Chart, SweepError> {
        let help = "write x=COLUMN y=COLUMN, and if you like color=COLUMN facet=COLUMN log=x,y";
        let mut chart = Chart::default();
        for word in words.iter().map(AsRef::as_ref) {
            let wrong = || SweepError::new(format!("--plot: `{word}` is not understood")).help(help);
            let (key, value) = word.split_once('=').ok_or_else(wrong)?;
            match key {
                "x" => chart.x = value.to_string(),
                "y" => chart.y = value.to_string(),
                "color" => chart.color = Some(value.to_string()),
                "facet" => chart.facet = Some(value.to_string()),
                "log" => {
                    for axis in value.split(',') {
                        match axis {
                            "x" => chart.log_x = true,
                            "y" => chart.log_y = true,
                            _ => return Err(wrong()),
                        }
                    }
                }
                _ => return Err(wrong()),
            }
        }
        match chart.x.is_empty() || chart.y.is_empty() {
            true => Err(SweepError::new("--plot: x or y is missing").help(help)),
            false => Ok(chart),
        }
    }

    /// One picture with all facets.
    pub fn svg(&self, sweep: &Sweep, table: &Table) -> Result<String, SweepError> {
        Ok(side_by_side(&self.plots(sweep, table)?, "sweep"))
    }

    /// A page with the plots and their numbers, without scripts.
    pub fn html(&self, sweep: &Sweep, table: &Table) -> Result<String, SweepError> {
        let title = escape(&format!("{}: {} against {}", sweep.name, self.y, self.x));
        let mut page = format!(
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n\
             <meta charset=\"utf-8\"/>\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n"
        );
        for (at, plot) in self.plots(sweep, table)?.iter().enumerate() {
            page += &format!("<figure>{}</figure>\n", plot.svg(&format!("sweep-{at}")));
        }
        let heads = [self.facet.as_deref(), self.color.as_deref(), Some(&self.x)].into_iter().flatten();
        page += "<table>\n<tr>";
        heads.for_each(|head| page += &format!("<th>{}</th>", escape(head)));
        page += &format!(
            "<th class=\"n\">{}</th><th class=\"n\">±</th><th class=\"n\">runs</th></tr>\n",
            escape(&self.y)
        );
        for (facet, series) in self.facets(sweep, table)? {
            for line in &series {
                for point in &line.points {
                    let (mean, deviation) = statistics(&point.values);
                    let facet = self.facet.as_ref().map(|_| facet.clone());
                    let color = self.color.as_ref().map(|_| line.name.clone());
                    page += "<tr>";
                    for cell in [facet, color, Some(point.x.to_string())].into_iter().flatten() {
                        page += &format!("<td>{}</td>", escape(&cell));
                    }
                    page += &format!(
                        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                        figure(mean),
                        figure(deviation),
                        point.values.len()
                    );
                }
            }
        }
        Ok(page + "</table>\n</body>\n</html>\n")
    }

    /// One plot per facet, all with the same axes.
    fn plots(&self, sweep: &Sweep, table: &Table) -> Result<Vec<Plot>, SweepError> {
        let facets = self.facets(sweep, table)?;
        let points = || facets.iter().flat_map(|(_, series)| series).flat_map(|line| &line.points);
        let numeric = points().all(|point| point.x.number().is_some());
        let xs: Vec<f64> = points().filter_map(|point| point.x.number()).collect();
        let ys: Vec<f64> = points().flat_map(|point| ends(&point.values)).collect();
        let repeated = points().map(|point| point.values.len()).max().unwrap_or(0) > 1;
        let plot = |(facet, series): &(String, Vec<Series>)| {
            let mut title = format!("{} against {}", self.y, self.x);
            if let Some(column) = &self.facet {
                title += &format!(", {column} = {facet}");
            }
            if repeated {
                title += " (mean ± standard deviation)";
            }
            let names: Vec<String> = series.iter().map(|line| self.legend(line)).collect();
            let plot = match numeric {
                true => lines(&title, &names, series),
                false => bars(&title, &names, series),
            };
            let mut plot = plot.x(&self.x).y(&self.y).spanning(xs.iter().copied(), ys.iter().copied());
            if self.log_x {
                plot = plot.log_x();
            }
            if self.log_y {
                plot = plot.log_y();
            }
            plot
        };
        Ok(facets.iter().map(plot).collect())
    }

    /// `sched = gto`; nothing if there is only one colour.
    fn legend(&self, line: &Series) -> String {
        self.color.as_ref().map(|column| format!("{column} = {}", line.name)).unwrap_or_default()
    }

    /// The data, in the order of the sweep.
    fn facets(&self, sweep: &Sweep, table: &Table) -> Result<Vec<(String, Vec<Series>)>, SweepError> {
        if table.rows.is_empty() {
            return Err(SweepError::new("--plot: no run has ended, or none that --where chooses")
                .help("`warploom sweep status` tells how far the sweep is"));
        }
        let (x, y) = (table.column(&self.x)?, table.column(&self.y)?);
        let optional =
            |column: &Option<String>| column.as_ref().map(|column| table.column(column)).transpose();
        let (color, facet) = (optional(&self.color)?, optional(&self.facet)?);
        // Settings that must not be mixed in one point.
        let settings = sweep.columns();
        let others: Vec<usize> = (0..table.columns.len())
            .filter(|at| settings.contains(&table.columns[*at]) && table.columns[*at] != "seed")
            .filter(|at| ![Some(x), Some(y), color, facet].contains(&Some(*at)))
            .collect();
        let mut facets: Vec<(String, Vec<Series>)> = Vec::new();
        let mut first: Vec<(String, &Vec<Option<Cell>>)> = Vec::new();
        for row in &table.rows {
            let text = |at: Option<usize>| {
                at.and_then(|at| row[at].as_ref()).map(Cell::to_string).unwrap_or_default()
            };
            let (Some(at), Some(value)) = (&row[x], &row[y]) else { continue };
            let Some(value) = value.number() else {
                return Err(SweepError::new(format!("--plot: y={} is no number", self.y)));
            };
            let (facet, color) = (text(facet), text(color));
            let group = format!("{facet}\0{color}\0{at}");
            match first.iter().find(|(known, _)| *known == group) {
                None => first.push((group, row)),
                Some((_, before)) => {
                    if let Some(mixed) = others.iter().find(|at| before[**at] != row[**at]) {
                        let column = &table.columns[*mixed];
                        return Err(SweepError::new(format!(
                            "--plot: runs at one point differ in `{column}`, too"
                        ))
                        .help(format!(
                            "add color={column} or facet={column}, or choose one with --where {column}=…"
                        )));
                    }
                }
            }
            let series = match facets.iter_mut().position(|(name, _)| *name == facet) {
                Some(at) => &mut facets[at].1,
                None => {
                    facets.push((facet, Vec::new()));
                    &mut facets.last_mut().ok_or_else(|| no_column(&self.x, &table.columns))?.1
                }
            };
            add(series, color, at.clone(), value);
        }
        // A colour means the same in all facets.
        let mut names: Vec<String> = Vec::new();
        for line in facets.iter().flat_map(|(_, series)| series) {
            if !names.contains(&line.name) {
                names.push(line.name.clone());
            }
        }
        for (_, series) in &mut facets {
            let mut own = std::mem::take(series);
            series.extend(names.iter().map(|name| match own.iter().position(|line| line.name == *name) {
                Some(at) => own.swap_remove(at),
                None => Series { name: name.clone(), points: Vec::new() },
            }));
        }
        for line in facets.iter_mut().flat_map(|(_, series)| series) {
            if line.points.iter().all(|point| point.x.number().is_some()) {
                line.points.sort_by(|a, b| a.x.partial_cmp(&b.x).unwrap_or(std::cmp::Ordering::Equal));
            }
        }
        match facets.is_empty() {
            true => Err(SweepError::new(format!("--plot: no run has both `{}` and `{}`", self.x, self.y))
                .help("`warploom sweep status` tells how the runs ended")),
            false => Ok(facets),
        }
    }
}

fn add(series: &mut Vec<Series>, name: String, x: Cell, value: f64) {
    let at = series.iter().position(|line| line.name == name).unwrap_or_else(|| {
        series.push(Series { name, points: Vec::new() });
        series.len() - 1
    });
    let points = &mut series[at].points;
    match points.iter_mut().find(|point| point.x == x) {
        Some(point) => point.values.push(value),
        None => points.push(Point { x, values: vec![value] }),
    }
}

fn lines(title: &str, names: &[String], series: &[Series]) -> Plot {
    let mut plot = Plot::lines(title);
    for (name, line) in names.iter().zip(series) {
        let at = |point: &Point| point.x.number().unwrap_or(f64::NAN);
        let points = line.points.iter().map(|point| (at(point), statistics(&point.values).0));
        let repeated = line.points.iter().filter(|point| point.values.len() > 1);
        let errors = repeated.map(|point| {
            let [low, high] = ends(&point.values);
            (at(point), low, high)
        });
        plot = plot.series(name, points).errors(errors);
    }
    plot
}

fn bars(title: &str, names: &[String], series: &[Series]) -> Plot {
    let mut labels: Vec<&Cell> = Vec::new();
    for point in series.iter().flat_map(|line| &line.points) {
        if !labels.contains(&&point.x) {
            labels.push(&point.x);
        }
    }
    let mut plot = Plot::bars(title, names);
    for label in labels {
        let points: Vec<Option<&Point>> =
            series.iter().map(|line| line.points.iter().find(|point| point.x == *label)).collect();
        plot = plot
            .group(
                label.to_string(),
                points.iter().map(|point| point.map(|point| statistics(&point.values).0)),
            )
            .bar_errors(points.iter().map(|point| {
                let [low, high] = ends(&point.filter(|point| point.values.len() > 1)?.values);
                Some((low, high))
            }));
    }
    plot
}

/// Mean and standard deviation of a sample.
fn statistics(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 })
}

/// The ends of an error bar.
fn ends(values: &[f64]) -> [f64; 2] {
    let (mean, deviation) = statistics(values);
    [mean - deviation, mean + deviation]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn sweep() -> Sweep {
        let text = "work = 'nw'\nsched = ['lrr', 'gto']\nseeds = 2\n[params]\nsize = [30, 62]\n";
        Sweep::parse(text, "chart", Path::new("")).unwrap()
    }

    /// `size`, `sched`, `seed` and cycles of made-up runs.
    fn table() -> Table {
        let mut rows = Vec::new();
        for (s, sched) in ["lrr", "gto"].into_iter().enumerate() {
            for size in [62, 30] {
                for seed in [1, 2] {
                    let cycles = size * (s as i64 + 1) + 2 * seed;
                    let text = Cell::Text(sched.to_string());
                    rows.push(
                        [Cell::Number(size), text, Cell::Number(seed), Cell::Number(cycles)]
                            .map(Some)
                            .to_vec(),
                    );
                }
            }
        }
        rows[0][3] = None;
        let columns = ["size", "sched", "seed", "cycles"].map(String::from).to_vec();
        Table { name: "runs".to_string(), columns, rows }
    }

    fn chart(words: &str) -> Result<Chart, String> {
        Chart::parse(&words.split_whitespace().collect::<Vec<_>>()).map_err(|error| error.message)
    }

    fn drawn(words: &str) -> Result<String, SweepError> {
        chart(words).unwrap().svg(&sweep(), &table())
    }

    #[test]
    fn seeds_become_error_bars() {
        let svg = drawn("x=size y=cycles color=sched log=x,y").unwrap();
        roxmltree::Document::parse(&svg).unwrap();
        for part in [
            "cycles against size (mean ± standard deviation)",
            ">sched = lrr<",
            ">sched = gto<",
            "stroke=\"#000\"",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        let facets = chart("x=sched y=cycles color=size").unwrap().facets(&sweep(), &table()).unwrap();
        let (mean, deviation) = statistics(&facets[0].1[1].points[1].values);
        assert_eq!((mean, (1000.0 * deviation).round()), (63.0, 1414.0));
        // A text on the horizontal axis makes bars.
        let bars = drawn("x=sched y=cycles color=size").unwrap();
        roxmltree::Document::parse(&bars).unwrap();
        assert!(bars.contains("<rect x="), "{bars}");
    }

    #[test]
    fn facets_are_side_by_side() {
        let svg = drawn("x=size y=cycles facet=sched").unwrap();
        roxmltree::Document::parse(&svg).unwrap();
        assert!(
            svg.contains("sched = lrr")
                && svg.contains("sched = gto")
                && svg.contains("viewBox=\"0 0 1440 360\"")
        );
        // The second facet has only one of the colours.
        let facets = chart("x=size y=cycles facet=size color=sched").unwrap();
        let rows: Vec<_> = table().rows.into_iter().skip(2).collect();
        let facets = facets.facets(&sweep(), &Table { rows, ..table() }).unwrap();
        let names: Vec<Vec<&str>> =
            facets.iter().map(|(_, series)| series.iter().map(|line| line.name.as_str()).collect()).collect();
        assert_eq!(names, [["lrr", "gto"], ["lrr", "gto"]]);
        assert_eq!(facets[1].1[0].points.len(), 0);
        let page = chart("x=size y=cycles facet=sched").unwrap().html(&sweep(), &table()).unwrap();
        roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>\n").unwrap()).unwrap();
        assert_eq!(page.matches("<figure>").count(), 2);
    }

    #[test]
    fn what_cannot_be_drawn() {
        assert_eq!(chart("x=size"), Err("--plot: x or y is missing".to_string()));
        assert_eq!(chart("x=size y=cycles z=3"), Err("--plot: `z=3` is not understood".to_string()));
        assert_eq!(chart("x=size y=cycles log=z"), Err("--plot: `log=z` is not understood".to_string()));
        let wrong = |words| drawn(words).unwrap_err();
        assert_eq!(wrong("x=siz y=cycles").message, "no column `siz`");
        assert_eq!(wrong("x=size y=sched").message, "--plot: y=sched is no number");
        let nothing = Table { rows: Vec::new(), ..table() };
        let error = chart("x=size y=cycles").unwrap().svg(&sweep(), &nothing).unwrap_err();
        assert!(error.message.starts_with("--plot: no run has ended"), "{error}");
        let mixed = wrong("x=size y=cycles");
        assert_eq!(mixed.message, "--plot: runs at one point differ in `sched`, too");
        assert!(mixed.help.unwrap().contains("color=sched"));
    }
}
