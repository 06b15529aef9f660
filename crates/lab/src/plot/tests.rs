//! Plots are parsed as XML and checked for what would spoil a report.

use roxmltree::Document;

use super::*;

fn bars() -> Plot {
    Plot::bars("Cycles <on> gtx480 & others", ["paper", "ours"])
        .y("cycles")
        .group("vecadd", [Some(85_482.0), Some(75_138.0)])
        .band(68_385.6, 106_852.5)
        .group("a label of many words", [Some(122_115.0), None])
        .group("none", [None, Some(f64::NAN)])
}

fn lines() -> Plot {
    Plot::lines("Speedup")
        .x("buckets")
        .y("×")
        .log_x()
        .series("\"GTO\"", [(16.0, 5.0), (4096.0, 1.2)])
        .series("LRR", [(16.0, 2.0), (0.0, 3.0), (f64::INFINITY, 1.0), (4096.0, 1.0)])
}

/// Parses the picture: all coordinates lie on it, its text is large enough, and its patterns are defined.
#[track_caller]
fn sound(plot: &Plot) -> String {
    let svg = plot.svg("p1");
    let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    for node in document.descendants() {
        for name in ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy"] {
            let Some(value) = node.attribute(name) else { continue };
            let value: f64 = value.parse().unwrap();
            assert!((0.0..=svg::WIDTH).contains(&value), "{name}={value} in {svg}");
        }
        if let Some(size) = node.attribute("font-size") {
            assert!(size.parse::<f64>().unwrap() >= 11.0);
        }
        if let Some(fill) = node.attribute("fill").and_then(|fill| fill.strip_prefix("url(#")) {
            let id = fill.trim_end_matches(')');
            assert!(document.descendants().any(|n| n.attribute("id") == Some(id)), "no pattern {id}");
        }
    }
    svg
}

#[test]
fn bars_are_sound() {
    let svg = sound(&bars());
    for part in
        ["Cycles &lt;on&gt; gtx480 &amp; others", ">85,482<", ">75,138<", ">band<", ">125,000<", "a label"]
    {
        assert!(svg.contains(part), "{part} is missing in {svg}");
    }
    // Three bars and two legend keys. The second series has a pattern over its bar and its key.
    assert_eq!(svg.matches("stroke=\"#333\"/>").count(), 5);
    assert_eq!(svg.matches("fill=\"url(#p1-pattern-1)\"").count(), 2);
    sound(&bars().log_y());
    // Values that would cover each other are not written.
    let narrow = (0..6).fold(Plot::bars("narrow", ["a", "b", "c", "d"]), |plot, i| {
        plot.group(format!("{i}"), [Some(1e6), Some(2_333_147.0), Some(1.0), Some(956_472.0)])
    });
    assert!(!sound(&narrow).contains("2,333,147"));
    sound(&Plot::bars("negative", ["a"]).x("which").group("x", [Some(-3.0)]).group("y", [Some(5.0)]));
}

#[test]
fn stacked_bars_add_up() {
    let plot = Plot::stacked("shares", ["a", "b"]).y("%").group("x", [Some(60.0), Some(40.0)]);
    let svg = sound(&plot.group("y", [None, Some(100.0)]));
    let document = Document::parse(&svg).unwrap();
    let number = |node: &roxmltree::Node<'_, '_>, name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let bars: Vec<_> = document.descendants().filter(|n| n.attribute("stroke") == Some("#333")).collect();
    let is_bar = |n: &&roxmltree::Node<'_, '_>| n.has_tag_name("rect") && number(n, "height") > 12.0;
    let bars: Vec<_> = bars.iter().filter(is_bar).collect();
    let heights: Vec<f64> = bars.iter().map(|bar| number(bar, "height")).collect();
    assert_eq!(heights.len(), 3, "{svg}");
    assert!((heights[0] + heights[1] - heights[2]).abs() < 0.3, "{heights:?}");
    // The second part stands on the first.
    assert!((number(bars[1], "y") + heights[1] - number(bars[0], "y")).abs() < 0.3, "{svg}");
}

#[test]
fn lines_are_sound() {
    let svg = sound(&lines());
    for part in ["&quot;GTO&quot;", ">buckets<", ">5,000<", "stroke-dasharray=\"7,3\""] {
        assert!(svg.contains(part), "{part} is missing in {svg}");
    }
    // Neither zero on a logarithmic axis nor an infinite value is drawn.
    assert_eq!(svg.matches("<circle").count() + svg.matches("height=\"8\" fill").count(), 2 + 2 + 2);
    sound(&lines().log_y());
}

#[test]
fn points_are_sound() {
    let points = Plot::points("Model and chip").x("real").y("model").log_x().log_y();
    let points = points.series("locks", [(1e-6, 2e-6), (1e-3, 1e-3)]).series("sorts", [(1e-5, 5e-6)]);
    let svg = sound(&points.guide(1.0).guide(2.0));
    assert!(!svg.contains("polyline"), "points are not joined");
    // Two of the first series and its key; one of the second and its key.
    assert_eq!((svg.matches("<circle").count(), svg.matches("height=\"8\" fill").count()), (3, 2));
    assert_eq!(svg.matches("#999").count(), 2, "{svg}");
    assert!(sound(&Plot::points("p")).contains("no data"));
}

#[test]
fn nothing_is_a_plot_too() {
    for plot in [Plot::bars("b", [""; 0]), Plot::bars("b", ["a"]), Plot::lines("l"), Plot::lines("l").log_y()]
    {
        assert!(sound(&plot).contains("no data"));
    }
    sound(&Plot::lines("one").series("s", [(3.0, 3.0)]));
}

#[test]
fn many_series_and_groups_fit() {
    let names: Vec<String> = (0..15).map(|i| format!("a series with a name {i}")).collect();
    let mut plot = Plot::bars("many", names.clone()).y("share");
    for group in 0..10 {
        plot = plot.group(format!("kernel-with-a-long-name-{group}"), (0..15).map(|i| Some(i as f64)));
    }
    sound(&plot);
    let plot =
        names.iter().fold(Plot::lines("many"), |plot, name| plot.series(name, [(0.0, 1.0), (9.0, 2.0)]));
    sound(&plot);
}

#[test]
fn labels_break_at_words() {
    assert_eq!(bars::break_lines("a label of words", 8), Some(vec!["a label".into(), "of words".into()]));
    assert_eq!(bars::break_lines("unbreakable", 8), None);
    assert_eq!(bars::break_lines("", 8), Some(vec![]));
}

#[test]
fn text_is_escaped() {
    assert_eq!(escape("<a href=\"x\">&'\u{1}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}");
}
