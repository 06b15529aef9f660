//! A made-up experiment goes through the whole of [`reproduce`], and its report is the snapshot of the exports.

use super::*;
use crate::runs::RunError;
use crate::runs::testing::Scratch;

/// An experiment with a row of each kind. Its texts need escaping wherever that is possible.
pub(in crate::repro) struct Example;

const SIZES: [u32; 3] = [1, 2, 3];

fn run(scale: Scale, size: u32) -> Run {
    Run::work("nw").with("size", scale.pick(size, 100 * size)).chip("gtx570").set("sm.count", 2)
}

impl Experiment for Example {
    fn about(&self) -> About {
        About { id: "example-fig1", paper: "example", title: "Scores & <times>", quick_s: 1, full_s: 60 }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        SIZES.map(|size| run(scale, size)).to_vec()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let cycles = |size| results.number(&run(results.scale(), size), "cycles");
        let order = [("three", cycles(3)), ("two", cycles(2)), ("one", cycles(1))];
        let ratio = || Ok(cycles(3)? / cycles(1)?);
        Outcome::new()
            .row(Row::new("three over one", "×").paper(3.5).measured(ratio()).percent(20.0).headline())
            .row(Row::new("a <b> & \"c\"", "×").paper(9.0).measured(ratio()).equal().because("a < b, \"c\""))
            .row(Row::falling("order", &order))
            .row(Row::new("two", "cycles").measured(cycles(2)).note("only to see"))
            .compared("Ratios & <more>", "paper", "×")
            .plot(Plot::lines("Cycles").x("size").y("cycles").series("one", [(1.0, 100.0), (2.0, 200.0)]))
            .note("Sizes are < 4.")
    }
}

/// The example with fixed times.
pub(in crate::repro) fn example() -> Reproduction {
    let scratch = Scratch::new(&format!("example-{:?}", std::thread::current().id()));
    let mut reproduction = reproduced(&scratch, Scale::Quick, &|run, _| Ok(metrics(run))).unwrap();
    reproduction.wall_s = 0.5;
    for run in reproduction.experiments.iter_mut().flat_map(|experiment| &mut experiment.runs) {
        run.wall_s = run.wall_s.map(|_| 0.25);
    }
    reproduction
}

fn metrics(run: &Run) -> Metrics {
    let size = run.to_string().split(['=', ' ']).nth(3).and_then(|size| size.parse::<u32>().ok());
    Metrics::new().with("cycles", 100 * size.unwrap_or_default())
}

fn reproduced(scratch: &Scratch, scale: Scale, execute: Execute<'_>) -> Result<Reproduction, ReproError> {
    let folder = scratch.path().join("runs");
    let plan = Plan { jobs: 2, ..Plan::new(&folder) };
    reproduce_with(&[&Example], scale, &plan, execute)
}

fn verdicts(reproduction: &Reproduction) -> Vec<Verdict> {
    reproduction.experiments[0].outcome.rows.iter().map(Row::verdict).collect()
}

#[test]
fn rows_are_judged_and_counted() {
    use Verdict::*;
    let example = example();
    assert_eq!(verdicts(&example), [In, Out, In, Report]);
    assert_eq!([In, Out, Report].map(|verdict| example.count(verdict)), [2, 1, 1]);
    assert_eq!(example.experiments[0].verdict(), Out);
    assert_eq!(example.experiments[0].chips(), ["gtx570"]);
    assert_eq!((example.runs, example.kept), (3, 0));
}

#[test]
fn a_missed_headline_is_said() {
    let mut example = example();
    assert_eq!(example.headline_text().as_deref(), Some("headline rows: all 1 inside their bands"));
    let rows = &mut example.experiments[0].outcome.rows;
    rows[1].headline = true;
    let missed = "not reproduced: 1 of 2 headline rows are outside their bands \
                  (example-fig1: a <b> & \"c\" 3×, not 9×)";
    assert_eq!(example.headline_text().as_deref(), Some(missed));
    example.experiments[0].outcome.rows.iter_mut().for_each(|row| row.headline = false);
    assert_eq!(example.headline_text(), None);
}

#[test]
fn kept_runs_are_counted_and_each_form_has_its_own() {
    let scratch = Scratch::new("forms");
    let execute: Execute<'_> = &|run, _| Ok(metrics(run));
    let kept = |scale| reproduced(&scratch, scale, execute).unwrap().kept;
    assert_eq!([kept(Scale::Quick), kept(Scale::Quick), kept(Scale::Full)], [0, 3, 0]);
}

#[test]
fn a_failed_run_is_told_in_the_rows_that_need_it() {
    let scratch = Scratch::new("failed-row");
    let wrong = |run: &Run| run.to_string().starts_with("work nw size=2 ");
    let execute: Execute<'_> = &|run, _| match wrong(run) {
        true => Err(RunError::Wrong("no".to_string())),
        false => Ok(metrics(run)),
    };
    let reproduction = reproduced(&scratch, Scale::Quick, execute).unwrap();
    use Verdict::*;
    assert_eq!(verdicts(&reproduction), [In, Out, Out, Out]);
    let rows = &reproduction.experiments[0].outcome.rows;
    let expected = "work nw size=2 on gtx570 (sm.count=2): wrong result: no";
    assert_eq!(rows[3].reason().as_deref(), Some(expected));
    assert_eq!(reproduction.experiments[0].runs[1].failure.as_deref(), Some("wrong result: no"));
}

#[test]
fn a_failed_run_that_no_row_needs_is_a_row() {
    struct Careless;
    impl Experiment for Careless {
        fn about(&self) -> About {
            Example.about()
        }
        fn runs(&self, scale: Scale) -> Vec<Run> {
            Example.runs(scale)
        }
        fn evaluate(&self, results: &Results) -> Outcome {
            let not_asked_for = results.number(&Run::work("vecadd"), "cycles");
            Outcome::new().row(Row::new("vecadd", "cycles").measured(not_asked_for))
        }
    }
    let scratch = Scratch::new("careless");
    let plan = Plan { jobs: 2, ..Plan::new(scratch.path()) };
    let execute: Execute<'_> = &|_, _| Err(RunError::Wrong("no".to_string()));
    let reproduction = reproduce_with(&[&Careless], Scale::Quick, &plan, execute).unwrap();
    let rows = &reproduction.experiments[0].outcome.rows;
    let shown: Vec<_> = rows.iter().map(|row| (row.verdict(), row.reason().unwrap())).collect();
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[0].1, "work vecadd on gtx480: the experiment does not have it among its runs");
    assert!(shown.iter().all(|(verdict, _)| *verdict == Verdict::Out));
}

#[test]
fn an_interrupt_and_a_bad_folder_are_errors() {
    let scratch = Scratch::new("errors");
    let execute: Execute<'_> = &|_, interrupt| {
        interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        Err(warploom::Error::Interrupted { state: None, report: Box::default() }.into())
    };
    let error = reproduced(&scratch, Scale::Quick, execute).unwrap_err();
    assert_eq!(error.to_string(), "interrupted: 0 of 3 runs have ended and are kept");
    std::fs::remove_dir_all(scratch.path()).unwrap();
    std::fs::write(scratch.path(), "a file").unwrap();
    let error = reproduced(&scratch, Scale::Quick, execute).unwrap_err();
    assert!(matches!(error, ReproError::Folder { .. }), "{error}");
    std::fs::remove_file(scratch.path()).unwrap();
}
