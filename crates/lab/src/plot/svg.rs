//! The canvas: SVG text, the palette, and what bars and lines share.

use std::fmt::Write;

use super::axis::Axis;

/// Size of the picture in pixels.
pub(super) const WIDTH: f64 = 720.0;
pub(super) const HEIGHT: f64 = 360.0;

/// Font size of ticks and legends. Nothing is smaller.
pub(super) const TEXT: f64 = 12.0;

/// Approximate width of a letter at that size.
pub(super) const LETTER: f64 = 6.7;

/// Okabe and Ito's palette. Black is left out because it draws the outlines; pale yellow comes last.
const COLOURS: [&str; 7] = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442"];

/// Strokes over a bar's colour by series: none, `/`, `\`, `-`, `x`, `|`, dots. They tell series apart in grey.
const PATTERNS: [&str; 7] = [
    "",
    "M0,8 L8,0 M-2,2 L2,-2 M6,10 L10,6",
    "M0,0 L8,8 M-2,6 L2,10 M6,-2 L10,2",
    "M0,4 L8,4",
    "M0,8 L8,0 M0,0 L8,8",
    "M4,0 L4,8",
    "M3,4 L5,4",
];

/// Dash patterns of lines by series.
const DASHES: [&str; 7] = ["", "7,3", "2,3", "9,3,2,3", "4,2", "12,4", "1,2"];

/// Escapes a text for HTML and XML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Neither HTML nor XML can express these.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// SVG's `text-anchor`.
#[derive(Clone, Copy)]
pub(super) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// The part of the picture in which data is drawn.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn x(&self, place: f64) -> f64 {
        self.left + place * (self.right - self.left)
    }

    pub(super) fn y(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }
}

/// An SVG text under construction.
pub(super) struct Canvas {
    id: String,
    title: String,
    body: String,
}

impl Canvas {
    pub(super) fn new(id: &str, title: &str) -> Canvas {
        Canvas { id: escape(id), title: escape(title), body: String::new() }
    }

    /// The frame that is left for data. `below` is the height that labels at the bottom need.
    pub(super) fn frame(&self, y: &Axis, y_label: &str, below: f64, legend_rows: usize) -> Frame {
        let widest = y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0) as f64;
        let label = if y_label.is_empty() { 0.0 } else { 20.0 };
        Frame {
            left: 14.0 + label + widest * LETTER,
            right: WIDTH - 14.0,
            top: 46.0 + 18.0 * legend_rows as f64,
            bottom: HEIGHT - 10.0 - below,
        }
    }

    /// Draws the vertical axis with its grid and the frame's lower edge.
    pub(super) fn y_axis(&mut self, frame: &Frame, axis: &Axis, label: &str) {
        for (value, text) in &axis.ticks {
            let y = frame.y(axis.place(*value));
            self.line((frame.left, y), (frame.right, y), "#ddd", 1.0);
            self.text(frame.left - 6.0, y + 4.0, TextAnchor::End, text);
        }
        if !label.is_empty() {
            let (x, y) = (16.0, (frame.top + frame.bottom) / 2.0);
            self.rotated_text(x, y, -90.0, TextAnchor::Middle, label);
        }
        self.line((frame.left, frame.bottom), (frame.right, frame.bottom), "#333", 1.0);
    }

    /// Draws the legend row by row under the title. `key` draws the symbol of entry `i` at a place.
    pub(super) fn legend(&mut self, names: &[&str], key: impl Fn(&mut Canvas, usize, f64, f64)) {
        for (row, entries) in legend_rows(names).into_iter().enumerate() {
            let mut x = 14.0;
            let y = 46.0 + 18.0 * row as f64;
            for i in entries {
                key(self, i, x, y);
                self.text(x + 28.0, y, TextAnchor::Start, names[i]);
                x += entry_width(names[i]);
            }
        }
    }

    pub(super) fn bar(&mut self, series: usize, x: f64, y: f64, width: f64, height: f64) {
        let fill = COLOURS[series % COLOURS.len()];
        let at = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"");
        let _ = writeln!(self.body, "<rect {at} fill=\"{fill}\" stroke=\"#333\"/>");
        if !PATTERNS[series % PATTERNS.len()].is_empty() {
            let pattern = self.pattern_id(series % PATTERNS.len());
            let _ = writeln!(self.body, "<rect {at} fill=\"url(#{pattern})\"/>");
        }
    }

    /// The range in which a bar should end: a pale box behind it, unlike an error bar.
    pub(super) fn band(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#9fd8b4\" \
             stroke=\"#00684c\" stroke-dasharray=\"3,2\"/>"
        );
    }

    pub(super) fn path(&mut self, series: usize, points: &[(f64, f64)]) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (colour, dash) = (line_colour(series), DASHES[series % DASHES.len()]);
        let _ = writeln!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dash}\"/>",
            points.join(" ")
        );
    }

    pub(super) fn marker(&mut self, series: usize, (x, y): (f64, f64)) {
        let colour = line_colour(series);
        let shape = match series % 7 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\""),
            1 => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\"", x - 4.0, y - 4.0),
            2 => polygon(x, y, &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)]),
            3 => polygon(x, y, &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)]),
            4 => polygon(x, y, &[(0.0, 5.0), (5.0, -4.0), (-5.0, -4.0)]),
            5 => polygon(x, y, &[(-5.0, -2.0), (5.0, -2.0), (5.0, 2.0), (-5.0, 2.0)]),
            _ => polygon(x, y, &[(-2.0, -5.0), (2.0, -5.0), (2.0, 5.0), (-2.0, 5.0)]),
        };
        let _ = writeln!(self.body, "{shape} fill=\"{colour}\" stroke=\"#333\"/>");
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
             stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        );
    }

    /// An I from one height to another, in black, which is visible on and beside every colour.
    pub(super) fn error_bar(&mut self, x: f64, top: f64, bottom: f64) {
        self.line((x, top), (x, bottom), "#000", 1.2);
        for y in [top, bottom] {
            self.line((x - 4.0, y), (x + 4.0, y), "#000", 1.2);
        }
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: TextAnchor, text: &str) {
        self.rotated_text(x, y, 0.0, anchor, text);
    }

    pub(super) fn rotated_text(&mut self, x: f64, y: f64, degrees: f64, anchor: TextAnchor, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        let turn = match degrees {
            0.0 => String::new(),
            degrees => format!(" transform=\"rotate({degrees} {x:.1} {y:.1})\""),
        };
        let text = escape(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{turn}>{text}</text>"
        );
    }

    fn pattern_id(&self, pattern: usize) -> String {
        format!("{}-pattern-{pattern}", self.id)
    }

    pub(super) fn finish(self) -> String {
        let (id, title) = (&self.id, &self.title);
        let mut patterns = String::new();
        for (i, strokes) in PATTERNS.iter().enumerate().filter(|(_, strokes)| !strokes.is_empty()) {
            let pattern = self.pattern_id(i);
            if self.body.contains(&format!("#{pattern})")) {
                let _ = writeln!(
                    patterns,
                    "<pattern id=\"{pattern}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
                     <path d=\"{strokes}\" stroke=\"#222\" stroke-width=\"1.4\" fill=\"none\"/></pattern>"
                );
            }
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             font-family=\"system-ui, Helvetica, Arial, sans-serif\" font-size=\"{TEXT}\" fill=\"#222\" role=\"img\" \
             aria-labelledby=\"{id}-title\">\n<title id=\"{id}-title\">{title}</title>\n<defs>\n{patterns}</defs>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"14\" y=\"22\" font-size=\"14\" font-weight=\"600\">{title}</text>\n{}</svg>\n",
            self.body
        )
    }
}

/// The entries of each row of the legend. A series without a name has none.
pub(super) fn legend_rows(names: &[&str]) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut used = WIDTH;
    for (i, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        used += entry_width(name);
        match rows.last_mut() {
            Some(row) if used <= WIDTH - 14.0 => row.push(i),
            _ => {
                rows.push(vec![i]);
                used = 14.0 + entry_width(name);
            }
        }
    }
    rows
}

fn entry_width(name: &str) -> f64 {
    46.0 + LETTER * name.chars().count() as f64
}

/// Yellow is too pale for a line on white; black replaces it there.
fn line_colour(series: usize) -> &'static str {
    match COLOURS[series % COLOURS.len()] {
        "#F0E442" => "#000000",
        colour => colour,
    }
}

fn polygon(x: f64, y: f64, corners: &[(f64, f64)]) -> String {
    let corners: Vec<_> = corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
    format!("<polygon points=\"{}\"", corners.join(" "))
}
