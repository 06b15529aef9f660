//! The model of the H200 beside the real chip's stored times, for points that take little to simulate.

use warploom::Chip;
use warploom_lab::correlate::{Correlation, POINTS, Point, stored};

/// From all classes, from no contention to 160 threads per lock.
const BRIEF: &[&str] = &[
    "matmul size=128",
    "nn",
    "vecadd size=131072",
    "hashtable keys=80000 buckets=65536",
    "hashtable keys=20000 buckets=4096 ctas=40",
    "hashtable keys=8000 buckets=1024 ctas=16",
    "hashtable keys=10000 buckets=16 ctas=8",
    "hashtable keys=80000 buckets=4096 version=queue",
    "atm transfers=1220 accounts=1000 ctas=13",
    "nw1 size=256",
    "gaussian size=32",
];

#[test]
fn the_h200_is_near_the_real_chip() {
    let chip = Chip::load("h200", &[]).unwrap();
    let real = stored("h200").unwrap().unwrap();
    let points: Vec<Point> =
        POINTS.iter().filter(|point| BRIEF.contains(&point.name().as_str())).copied().collect();
    assert_eq!(points.len(), BRIEF.len());
    let correlation = Correlation::of(&chip, &real.times, &points, &|_| ());
    assert_eq!((correlation.pairs.len(), correlation.failed.len()), (BRIEF.len(), 0));
    for pair in &correlation.pairs {
        assert!(pair.factor() < 1.6, "{} takes {:.2} times the real time", pair.point, pair.ratio);
    }
    assert!(correlation.error < 0.22, "mean absolute error {:.3}", correlation.error);

    let page = correlation.html(&real.origin);
    let page = roxmltree::Document::parse_with_options(
        &page,
        roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() },
    )
    .expect("the page is well-formed");
    let cells: Vec<_> =
        page.descendants().filter(|n| n.has_tag_name("code")).filter_map(|n| n.text()).collect();
    let named: Vec<_> = correlation.pairs.iter().map(|pair| pair.point.as_str()).collect();
    assert_eq!(cells, named, "the worst first");
}

#[test]
fn every_point_has_a_stored_time() {
    let real = stored("h200").unwrap().unwrap();
    for point in POINTS {
        let times = real.times.iter().filter(|time| time.point == point.name()).count();
        assert_eq!(times, 1, "{}", point.name());
    }
}
