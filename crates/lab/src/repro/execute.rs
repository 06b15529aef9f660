//! Executes runs in parallel over the cores and keeps each result as soon as its run ends.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::keep::{Finished, Kept};
use super::metrics::Metrics;
use super::procedure::RunError;
use super::run::{Key, Run};

/// How runs are executed.
pub struct Plan<'a> {
    /// The folder in which finished runs are kept.
    pub runs: &'a Path,
    /// Whether to take results from that folder.
    pub reuse: bool,
    /// Runs in parallel.
    pub jobs: usize,
    /// Once true, launches in flight end and no further run starts.
    pub interrupt: Arc<AtomicBool>,
    /// Called when a run starts and when it ends, from any thread.
    pub progress: &'a (dyn Fn(Step<'_>) + Sync),
}

/// Progress of [`reproduce`](super::reproduce).
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Runs that have ended, including those taken from the folder.
    pub done: usize,
    pub total: usize,
    /// The run that starts or ends.
    pub run: &'a Run,
}

#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// What the run measured, or why it failed.
    pub result: Result<Finished, String>,
    /// Whether the result was taken from the folder.
    pub kept: bool,
}

#[derive(Debug, Default)]
pub(super) struct Executed {
    /// After an interrupt some runs are missing.
    pub ended: BTreeMap<Key, Ended>,
    pub complete: bool,
    /// The last error in writing a result to the folder.
    pub not_kept: Option<String>,
}

/// What executes a run: [`execute`](super::procedure::execute), or a stub in tests.
pub(super) type Execute<'a> = &'a (dyn Fn(&Run, Arc<AtomicBool>) -> Result<Metrics, RunError> + Sync);

/// Executes each run once, or takes its kept result. A failed run never stops the others.
pub(super) fn execute_all(runs: &[Run], plan: &Plan<'_>, execute: Execute<'_>) -> std::io::Result<Executed> {
    let kept = Kept::open(plan.runs)?;
    let mut ended = BTreeMap::new();
    let mut waiting: Vec<(Key, &Run)> = Vec::new();
    for run in runs {
        let key = run.key();
        if ended.contains_key(&key) || waiting.iter().any(|(other, _)| *other == key) {
            continue;
        }
        match plan.reuse.then(|| kept.get(run, &key)).flatten() {
            Some(finished) => _ = ended.insert(key, Ended { result: Ok(finished), kept: true }),
            None => waiting.push((key, run)),
        }
    }
    let total = ended.len() + waiting.len();
    let done = AtomicUsize::new(ended.len());
    let next = AtomicUsize::new(0);
    let executed = Mutex::new(Executed { ended, ..Executed::default() });
    let work = || {
        while let Some((key, run)) = waiting.get(next.fetch_add(1, Ordering::Relaxed))
            && !plan.interrupt.load(Ordering::Relaxed)
        {
            (plan.progress)(Step { done: done.load(Ordering::Relaxed), total, run });
            let start = Instant::now();
            let result = guarded(|| execute(run, plan.interrupt.clone()));
            let result = match result {
                Err(error) if error.is_interrupt() => continue,
                Ok(metrics) => Ok(Finished { metrics, wall_s: start.elapsed().as_secs_f64() }),
                Err(error) => Err(error.to_string()),
            };
            let put = result.as_ref().map_or(Ok(()), |finished| kept.put(run, key, finished));
            let mut executed = executed.lock().unwrap_or_else(PoisonError::into_inner);
            executed.ended.insert(key.clone(), Ended { result, kept: false });
            if let Err(error) = put {
                executed.not_kept = Some(error.to_string());
            }
            drop(executed);
            (plan.progress)(Step { done: 1 + done.fetch_add(1, Ordering::Relaxed), total, run });
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.clamp(1, waiting.len().max(1)) {
            scope.spawn(work);
        }
    });
    let mut executed = executed.into_inner().unwrap_or_else(PoisonError::into_inner);
    executed.complete = executed.ended.len() == total;
    Ok(executed)
}

/// Turns a panic into that run's failure.
fn guarded(execute: impl FnOnce() -> Result<Metrics, RunError>) -> Result<Metrics, RunError> {
    catch_unwind(AssertUnwindSafe(execute)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(RunError::Panic(text.unwrap_or("of an unknown kind").to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repro::testing::Scratch;

    fn plan(folder: &Path) -> Plan<'_> {
        Plan { runs: folder, reuse: true, jobs: 3, interrupt: Arc::default(), progress: &|_| {} }
    }

    fn runs() -> Vec<Run> {
        (1..=8).map(|size| Run::work("nw").with("size", size)).collect()
    }

    /// Executes the runs. Returns the results and how many runs were really executed.
    fn counted(runs: &[Run], plan: &Plan<'_>) -> (Executed, usize) {
        let count = AtomicUsize::new(0);
        let executed = execute_all(runs, plan, &|run, _| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Metrics::new().with("run", run.to_string()))
        });
        (executed.unwrap(), count.into_inner())
    }

    #[test]
    fn equal_runs_are_executed_once() {
        let scratch = Scratch::new("once");
        let twice = [runs(), runs()].concat();
        let (executed, count) = counted(&twice, &plan(scratch.path()));
        assert_eq!((count, executed.ended.len(), executed.complete), (8, 8, true));
        for run in runs() {
            let Ok(finished) = &executed.ended[&run.key()].result else { panic!() };
            assert_eq!(finished.metrics.text("run"), Some(run.to_string().as_str()));
        }
    }

    #[test]
    fn finished_runs_are_not_repeated() {
        let scratch = Scratch::new("resume");
        let plan = plan(scratch.path());
        assert_eq!(counted(&runs()[..3], &plan).1, 3);
        let (executed, count) = counted(&runs(), &plan);
        assert_eq!((count, executed.ended.values().filter(|ended| ended.kept).count()), (5, 3));
        assert_eq!(counted(&runs(), &plan).1, 0);
        assert_eq!(counted(&runs(), &Plan { reuse: false, ..plan }).1, 8);
    }

    #[test]
    fn a_failure_stops_nobody_and_is_tried_again() {
        let scratch = Scratch::new("failure");
        let plan = plan(scratch.path());
        let executed = execute_all(&runs(), &plan, &|run, _| match run.to_string().as_str() {
            "work nw size=2 on gtx480" => Err(RunError::Wrong("no".to_string())),
            "work nw size=3 on gtx480" => panic!("a mistake"),
            _ => Ok(Metrics::new()),
        });
        let executed = executed.unwrap();
        let message = |at: usize| executed.ended[&runs()[at].key()].result.clone().unwrap_err();
        assert_eq!(executed.ended.values().filter(|ended| ended.result.is_ok()).count(), 6);
        assert_eq!((message(1).as_str(), message(2).as_str()), ("wrong result: no", "panic: a mistake"));
        assert!(executed.complete);
        assert_eq!(counted(&runs(), &plan).1, 2);
    }

    #[test]
    fn an_interrupt_keeps_what_has_ended() {
        let scratch = Scratch::new("interrupt");
        let plan = Plan { jobs: 1, ..plan(scratch.path()) };
        let executed = execute_all(&runs(), &plan, &|_, interrupt| {
            let report = Box::default();
            // The user interrupts the third run in the middle of a launch.
            match std::fs::read_dir(plan.runs).unwrap().count() {
                2 => {
                    interrupt.store(true, Ordering::Relaxed);
                    Err(warploom::Error::Interrupted { state: None, report }.into())
                }
                _ => Ok(Metrics::new()),
            }
        });
        let executed = executed.unwrap();
        assert_eq!((executed.ended.len(), executed.complete), (2, false));
        plan.interrupt.store(false, Ordering::Relaxed);
        assert_eq!(counted(&runs(), &plan).1, 6);
    }

    #[test]
    fn progress_goes_to_the_end() {
        let scratch = Scratch::new("progress");
        let most = AtomicUsize::new(0);
        let progress = |step: Step<'_>| {
            assert_eq!(step.total, 8);
            most.fetch_max(step.done, Ordering::Relaxed);
        };
        counted(&runs(), &Plan { progress: &progress, ..plan(scratch.path()) });
        assert_eq!(most.into_inner(), 8);
    }
}
