//! Executes runs in parallel and keeps each result as soon as its run ends.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::claim::{Attempt, Claims};
use super::keep::{Finished, Kept};
use super::metrics::Metrics;
use super::procedure::{RunError, Status, execute};
use super::run::{Key, Run};
use super::serve::{Limits, Server};
use super::slurm::{self, Slurm};

/// How runs are executed.
pub struct Plan<'a> {
    /// The folder in which finished runs are kept.
    pub runs: &'a Path,
    /// Whether to take results from that folder. Otherwise those of these runs are removed first.
    pub reuse: bool,
    /// Whether to execute again runs that ended for a reason of the host.
    pub retry: bool,
    /// Whether a result that cannot be written ends the work. Otherwise it is in memory only.
    pub stop_if_not_kept: bool,
    /// Runs in parallel.
    pub jobs: usize,
    pub place: Place<'a>,
    /// Once true, launches in flight end and no further run starts.
    pub interrupt: Arc<AtomicBool>,
    /// Called when a run starts and when it ends, from any thread.
    pub progress: &'a (dyn Fn(Step<'_>) + Sync),
}

impl<'a> Plan<'a> {
    /// Takes what has been kept, executes the rest in threads of this process, one per core.
    pub fn new(runs: &'a Path) -> Plan<'a> {
        Plan {
            runs,
            reuse: true,
            retry: true,
            stop_if_not_kept: false,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            place: Place::Here,
            interrupt: Arc::default(),
            progress: &|_| {},
        }
    }
}

/// Where runs are executed.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// In threads of this process.
    Here,
    /// In child processes, one per job, which are this program with arguments that make it call
    /// [`serve`](super::serve()). A run that is killed, or too large, then takes no other with it.
    Processes { program: &'a Path, arguments: &'a [&'a str], limits: Limits },
    /// On the nodes of a cluster.
    Slurm(Slurm<'a>),
}

/// Progress of [`execute_all`].
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Runs that have ended, including those taken from the folder.
    pub done: usize,
    pub total: usize,
    /// Those of them that were in the folder.
    pub kept: usize,
    /// The run that starts or ends.
    pub run: &'a Run,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub end: Finished,
    /// Whether the result was taken from the folder.
    pub kept: bool,
}

impl Ended {
    /// What the run measured, or why it failed.
    pub(crate) fn result(&self) -> Result<&Metrics, &str> {
        match self.end.status {
            Status::Ok => Ok(&self.end.metrics),
            status => Err(self.end.message.as_deref().unwrap_or_else(|| status.name())),
        }
    }
}

/// What became of all runs.
#[derive(Debug, Default)]
pub struct Executed {
    /// Distinct runs.
    pub total: usize,
    /// Those that have ended. After an interrupt some runs are missing.
    pub done: usize,
    /// Those whose results were in the folder.
    pub kept: usize,
    /// The last error in writing to the folder.
    pub not_kept: Option<io::Error>,
}

impl Executed {
    pub fn is_complete(&self) -> bool {
        self.done == self.total
    }
}

/// What executes a run in this process: [`execute`], or a stub in tests.
pub(crate) type Execute<'a> = &'a (dyn Fn(&Run, Arc<AtomicBool>) -> Result<Metrics, RunError> + Sync);

/// Executes one run after the other; each job has its own. `None` if the user interrupts the run.
pub(super) trait Executor {
    fn execute(&mut self, run: &Run) -> Option<Finished>;
}

/// Executes each run once, or takes its kept result, and passes how it ended to `each`, from any thread. Processes
/// that work in the same folder share the runs. A failed run never stops the others.
pub fn execute_all(
    runs: &[Run],
    plan: &Plan<'_>,
    each: &(dyn Fn(&Run, &Key, Ended) + Sync),
) -> io::Result<Executed> {
    execute_all_with(runs, plan, &execute, each)
}

/// The same, with another function in the place of [`execute`].
pub(crate) fn execute_all_with(
    runs: &[Run],
    plan: &Plan<'_>,
    execute: Execute<'_>,
    each: &(dyn Fn(&Run, &Key, Ended) + Sync),
) -> io::Result<Executed> {
    if let Place::Slurm(slurm) = &plan.place {
        return slurm::execute_all(runs, plan, slurm, each);
    }
    let kept = Kept::open(plan.runs)?;
    let claims = Claims::new(kept.folder());
    claims.tidy();
    let mut known = BTreeSet::new();
    let mut waiting = VecDeque::new();
    let mut ended = 0;
    for run in runs {
        let key = run.key();
        if !known.insert(key.clone()) {
            continue;
        }
        if !plan.reuse {
            kept.remove(&key)?;
        }
        match kept.get(run, &key) {
            Some(end) if !(plan.retry && end.status.is_of_the_host()) => {
                each(run, &key, Ended { end, kept: true });
                ended += 1;
            }
            Some(_) => {
                kept.remove(&key)?;
                waiting.push_back(Waiting { key, run, not_before: None });
            }
            None => waiting.push_back(Waiting { key, run, not_before: None }),
        }
    }
    let jobs = plan.jobs.clamp(1, waiting.len().max(1));
    let shared = Shared {
        plan,
        kept,
        claims,
        each,
        total: known.len(),
        done: AtomicUsize::new(ended),
        from_folder: AtomicUsize::new(ended),
        waiting: Mutex::new(waiting),
        not_kept: Mutex::new(None),
    };
    if ended < shared.total {
        shared.claims.while_alive(|| {
            std::thread::scope(|scope| {
                for _ in 0..jobs {
                    scope.spawn(|| shared.work(execute));
                }
            });
        });
    }
    Ok(Executed {
        total: shared.total,
        done: shared.done.into_inner(),
        kept: shared.from_folder.into_inner(),
        not_kept: shared.not_kept.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}

/// How long to leave a run alone that another process executes.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

struct Waiting<'a> {
    key: Key,
    run: &'a Run,
    /// Set if another process had claimed the run.
    not_before: Option<Instant>,
}

/// What the threads of one [`execute_all`] share.
struct Shared<'a, 'b> {
    plan: &'a Plan<'b>,
    kept: Kept,
    claims: Claims,
    each: &'a (dyn Fn(&Run, &Key, Ended) + Sync),
    total: usize,
    done: AtomicUsize,
    from_folder: AtomicUsize,
    waiting: Mutex<VecDeque<Waiting<'a>>>,
    not_kept: Mutex<Option<io::Error>>,
}

impl<'a> Shared<'a, '_> {
    fn work(&self, execute: Execute<'_>) {
        let mut executor: Box<dyn Executor> = match self.plan.place {
            // Slurm's tasks have a plan of their own.
            Place::Here | Place::Slurm(_) => {
                Box::new(Here { execute, interrupt: self.plan.interrupt.clone() })
            }
            Place::Processes { program, arguments, limits } => {
                Box::new(Server::new(program, arguments, limits, self.plan.interrupt.clone()))
            }
        };
        while let Some(next) = self.next() {
            self.one(next, executor.as_mut());
        }
    }

    fn next(&self) -> Option<Waiting<'a>> {
        loop {
            if self.plan.interrupt.load(Ordering::Relaxed) || self.must_stop() {
                return None;
            }
            let next = self.waiting().pop_front()?;
            match next.not_before.and_then(|time| time.checked_duration_since(Instant::now())) {
                None => return Some(next),
                Some(early) => {
                    self.waiting().push_front(next);
                    std::thread::sleep(early.min(Duration::from_millis(50)));
                }
            }
        }
    }

    fn one(&self, next: Waiting<'a>, executor: &mut dyn Executor) {
        let (run, key) = (next.run, &next.key);
        match self.claims.claim(key) {
            Ok(Attempt::Claimed) => {}
            Ok(Attempt::Held) => {
                let not_before = Some(Instant::now() + LOOK_AGAIN);
                // Its owner may have finished it: then there is nothing to wait for.
                match self.kept.get(run, key) {
                    Some(end) => self.ended(run, key, Ended { end, kept: true }),
                    None => self.waiting().push_back(Waiting { not_before, ..next }),
                }
                return;
            }
            // Not even a claim can be written. The run is executed all the same if results need not be kept.
            Err(error) => {
                self.set_not_kept(error);
                if self.plan.stop_if_not_kept {
                    return;
                }
            }
        }
        // Another process may have finished it since this one looked.
        if let Some(end) = self.kept.get(run, key) {
            self.claims.release(key);
            return self.ended(run, key, Ended { end, kept: true });
        }
        self.tell(run);
        if let Some(end) = executor.execute(run) {
            match self.kept.put(run, key, &end) {
                Err(error) => {
                    self.set_not_kept(error);
                    if !self.plan.stop_if_not_kept {
                        self.ended(run, key, Ended { end, kept: false });
                    }
                }
                Ok(()) => self.ended(run, key, Ended { end, kept: false }),
            }
        }
        self.claims.release(key);
    }

    fn ended(&self, run: &Run, key: &Key, ended: Ended) {
        if ended.kept {
            self.from_folder.fetch_add(1, Ordering::Relaxed);
        }
        (self.each)(run, key, ended);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.tell(run);
    }

    fn tell(&self, run: &Run) {
        let (done, kept) = (self.done.load(Ordering::Relaxed), self.from_folder.load(Ordering::Relaxed));
        (self.plan.progress)(Step { done, total: self.total, kept, run });
    }

    fn must_stop(&self) -> bool {
        self.plan.stop_if_not_kept && self.not_kept.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn set_not_kept(&self, error: io::Error) {
        *self.not_kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting<'a>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Executes runs in the calling thread.
pub(super) struct Here<'a> {
    pub(super) execute: Execute<'a>,
    pub(super) interrupt: Arc<AtomicBool>,
}

impl Executor for Here<'_> {
    fn execute(&mut self, run: &Run) -> Option<Finished> {
        let start = Instant::now();
        let result = guarded(|| (self.execute)(run, self.interrupt.clone()));
        let wall_s = start.elapsed().as_secs_f64();
        match result {
            Err(error) if error.is_interrupt() => None,
            Ok(metrics) => {
                Some(Finished { status: Status::Ok, message: None, wall_s, peak_bytes: None, metrics })
            }
            Err(error) => {
                let (status, message) = (error.status(), Some(error.to_string()));
                Some(Finished { status, message, wall_s, peak_bytes: None, metrics: Metrics::new() })
            }
        }
    }
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
    use std::collections::BTreeMap;

    use super::*;
    use crate::runs::testing::Scratch;

    fn plan(folder: &Path) -> Plan<'_> {
        Plan { jobs: 3, ..Plan::new(folder) }
    }

    fn runs() -> Vec<Run> {
        (1..=8).map(|size| Run::work("nw").with("size", size)).collect()
    }

    /// Executes the runs and returns how they ended.
    fn collected(runs: &[Run], plan: &Plan<'_>, execute: Execute<'_>) -> (Executed, BTreeMap<Key, Ended>) {
        let ended = Mutex::new(BTreeMap::new());
        let executed = execute_all_with(runs, plan, execute, &|_, key, end| {
            let before = ended.lock().unwrap().insert(key.clone(), end);
            assert!(before.is_none(), "a run ends once");
        });
        (executed.unwrap(), ended.into_inner().unwrap())
    }

    /// Executes the runs. Returns the results and how many runs were really executed.
    fn counted(runs: &[Run], plan: &Plan<'_>) -> (Executed, BTreeMap<Key, Ended>, usize) {
        let count = AtomicUsize::new(0);
        let (executed, ended) = collected(runs, plan, &|run, _| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Metrics::new().with("run", run.to_string()))
        });
        (executed, ended, count.into_inner())
    }

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn equal_runs_are_executed_once() {
        let scratch = Scratch::new("once");
        let twice = [runs(), runs()].concat();
        let (executed, ended, count) = counted(&twice, &plan(scratch.path()));
        assert_eq!((count, ended.len(), executed.is_complete()), (8, 8, true));
        for run in runs() {
            let metrics = ended[&run.key()].result().unwrap();
            assert_eq!(metrics.text("run"), Some(run.to_string().as_str()));
        }
        assert_eq!(files(scratch.path()), 8, "no claims, no heartbeats");
    }

    #[test]
    fn finished_runs_are_not_repeated() {
        let scratch = Scratch::new("resume");
        let plan = plan(scratch.path());
        assert_eq!(counted(&runs()[..3], &plan).2, 3);
        let (executed, ended, count) = counted(&runs(), &plan);
        assert_eq!((count, executed.kept, ended.values().filter(|ended| ended.kept).count()), (5, 3, 3));
        assert_eq!(counted(&runs(), &plan).2, 0);
        assert_eq!(counted(&runs(), &Plan { reuse: false, ..plan }).2, 8);
    }

    #[test]
    fn two_in_one_folder_share_the_runs() {
        let scratch = Scratch::new("share");
        let many: Vec<Run> = (1..=60).map(|size| Run::work("nw").with("size", size)).collect();
        let times = Mutex::new(BTreeMap::<String, usize>::new());
        let execute: Execute<'_> = &|run, _| {
            *times.lock().unwrap().entry(run.to_string()).or_default() += 1;
            std::thread::sleep(Duration::from_millis(3));
            Ok(Metrics::new())
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let (executed, ended) = collected(&many, &plan(scratch.path()), execute);
                    assert!(executed.is_complete() && ended.len() == 60);
                });
            }
        });
        let times = times.into_inner().unwrap();
        assert_eq!((times.len(), times.values().max()), (60, Some(&1)));
        assert_eq!(files(scratch.path()), 60, "no claims, no heartbeats");
    }

    #[test]
    fn a_failure_stops_nobody_and_is_a_result() {
        let scratch = Scratch::new("failure");
        let plan = Plan { retry: false, ..plan(scratch.path()) };
        let (executed, ended) = collected(&runs(), &plan, &|run, _| match run.to_string().as_str() {
            "work nw size=2 on gtx480" => Err(RunError::Wrong("no".to_string())),
            "work nw size=3 on gtx480" => panic!("a mistake"),
            _ => Ok(Metrics::new()),
        });
        let message = |at: usize| ended[&runs()[at].key()].result().unwrap_err();
        assert_eq!(ended.values().filter(|ended| ended.result().is_ok()).count(), 6);
        assert_eq!((message(1), message(2)), ("wrong result: no", "panic: a mistake"));
        assert!(executed.is_complete());
        let (_, again, count) = counted(&runs(), &plan);
        assert_eq!((count, again[&runs()[1].key()].end.status), (0, Status::Wrong));
        // Only what another host or another day could change is tried again.
        assert_eq!(counted(&runs(), &Plan { retry: true, ..plan }).2, 1);
    }

    #[test]
    fn an_interrupt_keeps_what_has_ended() {
        let scratch = Scratch::new("interrupt");
        let plan = Plan { jobs: 1, ..plan(scratch.path()) };
        let before = AtomicUsize::new(0);
        let (executed, ended) = collected(&runs(), &plan, &|_, interrupt| {
            // The user interrupts the third run in the middle of a launch.
            if before.fetch_add(1, Ordering::Relaxed) < 2 {
                return Ok(Metrics::new());
            }
            interrupt.store(true, Ordering::Relaxed);
            Err(warploom::Error::Interrupted { state: None, report: Box::default() }.into())
        });
        assert_eq!((ended.len(), executed.done, executed.is_complete()), (2, 2, false));
        assert_eq!(files(scratch.path()), 2, "the third is free again");
        plan.interrupt.store(false, Ordering::Relaxed);
        assert_eq!(counted(&runs(), &plan).2, 6);
    }

    #[test]
    fn what_cannot_be_kept_stops_the_rest_or_is_in_memory_only() {
        let scratch = Scratch::new("full");
        let folder = scratch.path().join("runs");
        for stop in [true, false] {
            let plan = Plan { jobs: 1, stop_if_not_kept: stop, ..plan(&folder) };
            let count = AtomicUsize::new(0);
            let (executed, ended) = collected(&runs(), &plan, &|_, _| {
                if count.fetch_add(1, Ordering::Relaxed) == 2 {
                    std::fs::rename(&folder, scratch.path().join(format!("away-{stop}"))).unwrap();
                }
                Ok(Metrics::new())
            });
            assert!(executed.not_kept.is_some());
            let expected = if stop { (2, 3) } else { (8, 8) };
            assert_eq!((ended.len(), count.into_inner()), expected);
        }
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
