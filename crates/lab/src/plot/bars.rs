//! Grouped and stacked bars.

use super::axis::Axis;
use super::svg::{Canvas, Frame, LETTER, TextAnchor, legend_rows};
use super::{Group, Plot};
use crate::numbers::figure;

/// With more bars than this, or narrow ones, no values are written above them.
const LABELLED: usize = 24;

/// The share of a group's width that its bars fill.
const FILLED: f64 = 0.78;

/// In pixels.
const WIDEST: f64 = 56.0;

/// Height of a line of text.
const LINE: f64 = 15.0;

pub(super) fn draw(canvas: &mut Canvas, plot: &Plot, series: &[String], groups: &[Group]) {
    let values = groups.iter().flat_map(|group| {
        let band = group.band.map(|(_, high)| high);
        let errors = group.errors.iter().flatten().map(|(_, high)| *high);
        group.values.iter().copied().flatten().chain(band).chain(errors)
    });
    let y = Axis::from_zero(values.chain(plot.spanned.1.iter().copied()), plot.y.log);
    let banded = groups.iter().any(|group| group.band.is_some());
    let names: Vec<&str> = series.iter().map(String::as_str).chain(banded.then_some("band")).collect();
    // The frame's width decides where labels break, and the labels decide its height.
    let wide = canvas.frame(&y, &plot.y.label, 0.0, 0);
    let slot = (wide.right - wide.left) / groups.len().max(1) as f64;
    let labels = Labels::new(groups, slot);
    let x_label = if plot.x.label.is_empty() { 0.0 } else { 18.0 };
    let frame = canvas.frame(&y, &plot.y.label, labels.height() + x_label, legend_rows(&names).len());

    canvas.y_axis(&frame, &y, &plot.y.label);
    canvas.legend(&names, |canvas, i, x, y| match i < series.len() {
        true => canvas.bar(i, x, y - 10.0, 22.0, 12.0),
        false => canvas.band(x, y - 11.0, 22.0, 14.0),
    });
    let base = frame.y(y.place(0.0));
    let width = (slot * FILLED / series.len().max(1) as f64).min(WIDEST);
    let shown = groups.iter().flat_map(|group| group.values.iter().flatten());
    let widest = shown.map(|value| figure(*value).chars().count()).max().unwrap_or(0) as f64 * LETTER;
    // Bars beside each other mostly end at different heights, so their labels may be somewhat wider.
    let room = if series.len() == 1 { slot } else { 1.5 * width };
    let bars = groups.iter().map(|group| group.values.len()).sum::<usize>();
    let labelled = bars <= LABELLED && widest <= room;
    for (i, group) in groups.iter().enumerate() {
        let middle = frame.left + slot * (i as f64 + 0.5);
        let left = middle - width * series.len() as f64 / 2.0;
        for (s, value) in group.values.iter().take(series.len()).enumerate() {
            let Some(value) = value.filter(|value| y.shows(*value)) else { continue };
            let (x, end) = (left + width * s as f64, frame.y(y.place(value)));
            let last = s + 1 == series.len();
            let mut top = end.min(base);
            if let Some((low, high)) = group.band.filter(|_| last) {
                let (low, high) = (frame.y(y.place(low)), frame.y(y.place(high)));
                canvas.band(x - 4.0, high, width + 8.0, (low - high).max(2.0));
                top = top.min(high);
            }
            canvas.bar(s, x + 1.0, end.min(base), width - 2.0, (end - base).abs());
            if let Some((low, high)) = group.errors.get(s).copied().flatten() {
                let (low, high) = (frame.y(y.place(low)), frame.y(y.place(high)));
                canvas.error_bar(x + width / 2.0, high, low);
                top = top.min(high);
            }
            if labelled {
                canvas.text(x + width / 2.0, top - 5.0, TextAnchor::Middle, &figure(value));
            }
        }
        labels.draw(canvas, &frame, i, middle);
    }
    if groups.is_empty() {
        canvas.text(
            (frame.left + frame.right) / 2.0,
            (frame.top + frame.bottom) / 2.0,
            TextAnchor::Middle,
            "no data",
        );
    }
    if !plot.x.label.is_empty() {
        let at = frame.bottom + labels.height() + 12.0;
        canvas.text((frame.left + frame.right) / 2.0, at, TextAnchor::Middle, &plot.x.label);
    }
}

/// One bar per group, with a part for each series.
pub(super) fn draw_stacked(canvas: &mut Canvas, plot: &Plot, series: &[String], groups: &[Group]) {
    let sums = groups.iter().map(|group| group.values.iter().flatten().sum::<f64>());
    let y = Axis::from_zero(sums.chain(plot.spanned.1.iter().copied()), false);
    let names: Vec<&str> = series.iter().map(String::as_str).collect();
    let wide = canvas.frame(&y, &plot.y.label, 0.0, 0);
    let slot = (wide.right - wide.left) / groups.len().max(1) as f64;
    let labels = Labels::new(groups, slot);
    let x_label = if plot.x.label.is_empty() { 0.0 } else { 18.0 };
    let frame = canvas.frame(&y, &plot.y.label, labels.height() + x_label, legend_rows(&names).len());
    canvas.y_axis(&frame, &y, &plot.y.label);
    canvas.legend(&names, |canvas, i, x, y| canvas.bar(i, x, y - 10.0, 22.0, 12.0));
    let width = (slot * FILLED).min(WIDEST);
    for (i, group) in groups.iter().enumerate() {
        let middle = frame.left + slot * (i as f64 + 0.5);
        let mut below = 0.0;
        for (s, value) in group.values.iter().take(series.len()).enumerate() {
            let Some(value) = value.filter(|value| *value > 0.0) else { continue };
            let (bottom, top) = (frame.y(y.place(below)), frame.y(y.place(below + value)));
            canvas.bar(s, middle - width / 2.0, top, width, bottom - top);
            below += value;
        }
        labels.draw(canvas, &frame, i, middle);
    }
    if groups.is_empty() {
        let (x, y) = ((frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0);
        canvas.text(x, y, TextAnchor::Middle, "no data");
    }
    if !plot.x.label.is_empty() {
        let at = frame.bottom + labels.height() + 12.0;
        canvas.text((frame.left + frame.right) / 2.0, at, TextAnchor::Middle, &plot.x.label);
    }
}

/// Labels of the groups: broken into lines if they fit, otherwise slanted.
enum Labels {
    Broken(Vec<Vec<String>>),
    Slanted(Vec<String>),
}

impl Labels {
    fn new(groups: &[Group], slot: f64) -> Labels {
        let room = (slot / LETTER).floor() as usize;
        let broken: Option<Vec<_>> = groups.iter().map(|group| break_lines(&group.label, room)).collect();
        match broken {
            Some(broken) if broken.iter().all(|lines| lines.len() <= 3) => Labels::Broken(broken),
            _ => Labels::Slanted(groups.iter().map(|group| group.label.clone()).collect()),
        }
    }

    fn height(&self) -> f64 {
        match self {
            Labels::Broken(all) => 8.0 + LINE * all.iter().map(Vec::len).max().unwrap_or(0) as f64,
            Labels::Slanted(all) => {
                let longest = all.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64;
                (16.0 + longest * LETTER * 0.64).min(130.0)
            }
        }
    }

    fn draw(&self, canvas: &mut Canvas, frame: &Frame, group: usize, middle: f64) {
        match self {
            Labels::Broken(all) => {
                for (i, line) in all[group].iter().enumerate() {
                    canvas.text(middle, frame.bottom + LINE * (i as f64 + 1.0), TextAnchor::Middle, line);
                }
            }
            Labels::Slanted(all) => {
                canvas.rotated_text(middle + 4.0, frame.bottom + 14.0, -40.0, TextAnchor::End, &all[group]);
            }
        }
    }
}

/// Breaks a text into lines of at most `room` letters; `None` if a word is longer.
pub(super) fn break_lines(text: &str, room: usize) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if length > room {
            return None;
        }
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    Some(lines)
}
