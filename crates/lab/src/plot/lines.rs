//! Lines through points, with markers, and points alone.

use super::axis::Axis;
use super::svg::{Canvas, Frame, TextAnchor, legend_rows};
use super::{Line, Plot};

pub(super) fn draw(canvas: &mut Canvas, plot: &Plot, series: &[Line]) {
    let points = || series.iter().flat_map(|line| &line.points);
    let errors = || series.iter().flat_map(|line| &line.errors).flat_map(|&(_, low, high)| [low, high]);
    let (also_x, also_y) = (plot.spanned.0.iter().copied(), plot.spanned.1.iter().copied());
    let x = Axis::around(points().map(|point| point.0).chain(also_x), plot.x.log);
    let y = Axis::around(points().map(|point| point.1).chain(errors()).chain(also_y), plot.y.log);
    let frame = frame(canvas, plot, series, (&x, &y));
    canvas.legend(&names(series), |canvas, i, x, y| {
        canvas.path(i, &[(x, y - 4.0), (x + 24.0, y - 4.0)]);
        canvas.marker(i, (x + 12.0, y - 4.0));
    });
    for (i, line) in series.iter().enumerate() {
        let places = places(&frame, (&x, &y), line);
        canvas.path(i, &places);
        for &(at, low, high) in line.errors.iter().filter(|(at, ..)| x.shows(*at)) {
            canvas.error_bar(frame.x(x.place(at)), frame.y(y.place(high)), frame.y(y.place(low)));
        }
        for place in places {
            canvas.marker(i, place);
        }
    }
}

pub(super) fn draw_points(canvas: &mut Canvas, plot: &Plot, series: &[Line], guides: &[f64]) {
    let values = || series.iter().flat_map(|line| &line.points).flat_map(|&(x, y)| [x, y]);
    let (x, y) = (Axis::around(values(), plot.x.log), Axis::around(values(), plot.y.log));
    let frame = frame(canvas, plot, series, (&x, &y));
    canvas.legend(&names(series), |canvas, i, x, y| canvas.marker(i, (x + 12.0, y - 4.0)));
    for &factor in guides {
        // Where the line enters and leaves the square.
        let (from, to) = (x.low.max(y.low / factor), x.high.min(y.high / factor));
        if from < to {
            let at = |value: f64| (frame.x(x.place(value)), frame.y(y.place(factor * value)));
            canvas.line(at(from), at(to), "#999", if factor == 1.0 { 1.5 } else { 0.7 });
        }
    }
    for (i, line) in series.iter().enumerate() {
        for place in places(&frame, (&x, &y), line) {
            canvas.marker(i, place);
        }
    }
}

fn names(series: &[Line]) -> Vec<&str> {
    series.iter().map(|line| line.name.as_str()).collect()
}

/// Draws the axes, and says so if there is no data.
fn frame(canvas: &mut Canvas, plot: &Plot, series: &[Line], (x, y): (&Axis, &Axis)) -> Frame {
    let x_label = if plot.x.label.is_empty() { 0.0 } else { 18.0 };
    let mut frame = canvas.frame(y, &plot.y.label, 22.0 + x_label, legend_rows(&names(series)).len());
    // Room for half of the last tick's label.
    frame.right -= 16.0;
    let middle = (frame.left + frame.right) / 2.0;

    canvas.y_axis(&frame, y, &plot.y.label);
    for (value, label) in &x.ticks {
        let at = frame.x(x.place(*value));
        canvas.line((at, frame.bottom), (at, frame.bottom + 5.0), "#333", 1.0);
        canvas.text(at, frame.bottom + 19.0, TextAnchor::Middle, label);
    }
    if !plot.x.label.is_empty() {
        canvas.text(middle, frame.bottom + 37.0, TextAnchor::Middle, &plot.x.label);
    }
    if series.iter().all(|line| line.points.is_empty()) {
        canvas.text(middle, (frame.top + frame.bottom) / 2.0, TextAnchor::Middle, "no data");
    }
    frame
}

fn places(frame: &Frame, (x, y): (&Axis, &Axis), line: &Line) -> Vec<(f64, f64)> {
    let shown = line.points.iter().filter(|point| x.shows(point.0) && y.shows(point.1));
    shown.map(|point| (frame.x(x.place(point.0)), frame.y(y.place(point.1)))).collect()
}
