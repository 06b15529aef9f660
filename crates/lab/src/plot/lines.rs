//! Lines through points, with markers.

use super::axis::Axis;
use super::svg::{Canvas, TextAnchor, legend_rows};
use super::{Line, Plot};

pub(super) fn draw(canvas: &mut Canvas, plot: &Plot, series: &[Line]) {
    let points = || series.iter().flat_map(|line| &line.points);
    let x = Axis::around(points().map(|point| point.0), plot.x.log);
    let y = Axis::around(points().map(|point| point.1), plot.y.log);
    let names: Vec<&str> = series.iter().map(|line| line.name.as_str()).collect();
    let x_label = if plot.x.label.is_empty() { 0.0 } else { 18.0 };
    let mut frame = canvas.frame(&y, &plot.y.label, 22.0 + x_label, legend_rows(&names).len());
    // Room for half of the last tick's label.
    frame.right -= 16.0;

    canvas.y_axis(&frame, &y, &plot.y.label);
    for (value, label) in &x.ticks {
        let at = frame.x(x.place(*value));
        canvas.line((at, frame.bottom), (at, frame.bottom + 5.0), "#333", 1.0);
        canvas.text(at, frame.bottom + 19.0, TextAnchor::Middle, label);
    }
    if !plot.x.label.is_empty() {
        let middle = (frame.left + frame.right) / 2.0;
        canvas.text(middle, frame.bottom + 37.0, TextAnchor::Middle, &plot.x.label);
    }
    canvas.legend(&names, |canvas, i, x, y| {
        canvas.path(i, &[(x, y - 4.0), (x + 24.0, y - 4.0)]);
        canvas.marker(i, (x + 12.0, y - 4.0));
    });
    for (i, line) in series.iter().enumerate() {
        let shown = line.points.iter().filter(|point| x.shows(point.0) && y.shows(point.1));
        let places: Vec<_> =
            shown.map(|point| (frame.x(x.place(point.0)), frame.y(y.place(point.1)))).collect();
        canvas.path(i, &places);
        for place in places {
            canvas.marker(i, place);
        }
    }
    if points().next().is_none() {
        canvas.text(
            (frame.left + frame.right) / 2.0,
            (frame.top + frame.bottom) / 2.0,
            TextAnchor::Middle,
            "no data",
        );
    }
}
