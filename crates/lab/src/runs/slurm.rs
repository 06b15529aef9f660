//! Runs on a Slurm cluster: job arrays whose tasks execute chunks of the runs.
//!
//! A task does what a local command does: it claims its runs in the shared folder, executes them and keeps the results.
//! So nothing is executed twice whatever is submitted twice, and the results are the same bytes. What is submitted is
//! written down in a folder per job: `runs.jsonl`, one run per line, and `job.json`. The process that submitted waits
//! for the results, and submits again what Slurm lost. It can be stopped and started at any time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::execute::{Ended, Executed, Plan, Step};
use super::keep::{Finished, Kept, write_whole};
use super::metrics::Metrics;
use super::procedure::Status;
use super::run::{Key, Run};
use super::serve::{Limits, Request};

/// How runs are submitted.
#[derive(Clone, Copy, Debug)]
pub struct Slurm<'a> {
    /// This program; on a node it is started as `PROGRAM execute-runs …`, which must call [`listed`].
    pub program: &'a Path,
    /// What is known of each job is kept here, on a file system that all nodes see.
    pub jobs: &'a Path,
    /// More options of `sbatch`.
    pub options: &'a [String],
    /// Runs per task; if not given, as many as fill some minutes.
    pub chunk: Option<usize>,
    pub takes: Takes,
    pub limits: Limits,
    /// How often to ask Slurm.
    pub poll: Duration,
}

/// What a run takes, as far as is known: what is asked of Slurm rests on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Takes {
    pub mean_s: Option<f64>,
    pub longest_s: f64,
    pub peak_bytes: u64,
}

/// A job and the states of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    pub job: String,
    pub tasks: usize,
    /// Tasks by Slurm's word for their state, as far as Slurm still knows; `None` if it does not answer.
    pub states: Option<BTreeMap<String, usize>>,
}

/// Slurm takes no job from us. It is inside the [`io::Error`] of [`execute_all`](super::execute_all).
#[derive(Debug, thiserror::Error)]
#[error("Slurm refuses the job: {0}")]
pub struct Refused(String);

/// The seconds that a task should take: longer than what Slurm needs to start one.
const TASK_S: f64 = 120.0;

/// Slurm's usual limit for the tasks of an array (`MaxArraySize`).
const MOST_TASKS: usize = 1000;

/// A run that was lost so often is not submitted again.
const ATTEMPTS: u32 = 3;

/// `job.json`.
#[derive(Serialize, Deserialize)]
struct Job {
    /// Slurm's number.
    job: String,
    /// Runs per task.
    chunk: usize,
    /// All its runs by their keys, in the order of the tasks.
    keys: Vec<String>,
}

impl Job {
    fn tasks(&self) -> usize {
        self.keys.len().div_ceil(self.chunk)
    }

    fn keys_of(&self, task: usize) -> &[String] {
        let start = (task * self.chunk).min(self.keys.len());
        &self.keys[start..(start + self.chunk).min(self.keys.len())]
    }
}

/// Executes runs as [`execute_all`](super::execute_all) does, by the tasks of a cluster.
pub(super) fn execute_all(
    runs: &[Run],
    plan: &Plan<'_>,
    slurm: &Slurm<'_>,
    each: &(dyn Fn(&Run, &Key, Ended) + Sync),
) -> io::Result<Executed> {
    let kept = Kept::open(plan.runs)?;
    let mut known = BTreeSet::new();
    let mut missing: Vec<(Key, &Run)> = Vec::new();
    for run in runs {
        let key = run.key();
        if !known.insert(key.clone()) {
            continue;
        }
        let end =
            kept.get(run, &key).filter(|end| plan.reuse && !(plan.retry && end.status.is_of_the_host()));
        match end {
            Some(end) => each(run, &key, Ended { end, kept: true }),
            None => {
                kept.remove(&key)?;
                missing.push((key, run));
            }
        }
    }
    let total = known.len();
    let from_folder = total - missing.len();
    let mut jobs = read_jobs(slurm.jobs);
    let mut attempts: HashMap<String, u32> = HashMap::new();
    while !missing.is_empty() && !plan.interrupt.load(Ordering::Relaxed) {
        // First the tasks, then the results: those of a task that has ended are there.
        let mut live = BTreeSet::new();
        let mut last: HashMap<&str, String> = HashMap::new();
        for job in &jobs {
            // While Slurm does not answer, its tasks may well be at work.
            let Some(states) = states(&job.job) else {
                live.extend(job.keys.iter().map(String::as_str));
                continue;
            };
            for task in 0..job.tasks() {
                let state = states.get(&task).map_or("unknown", String::as_str);
                if is_live(state) {
                    live.extend(job.keys_of(task).iter().map(String::as_str));
                }
                job.keys_of(task).iter().for_each(|key| _ = last.insert(key, state.to_string()));
            }
        }
        let here = names(plan.runs);
        missing.retain(|(key, run)| {
            let end = here.contains(&key.to_string()).then(|| kept.get(run, key)).flatten();
            let Some(end) = end else { return true };
            each(run, key, Ended { end, kept: false });
            false
        });
        if let Some((_, run)) = missing.first() {
            (plan.progress)(Step { done: total - missing.len(), total, kept: from_folder, run });
        }
        let mut lost = Vec::new();
        let mut blamed = BTreeSet::new();
        for (key, run) in missing.iter().filter(|(key, _)| !live.contains(key.to_string().as_str())) {
            let name = key.to_string();
            let state = last.get(name.as_str()).map(String::as_str).unwrap_or_default();
            let tried = attempts.get(&name).copied().unwrap_or(0);
            // A task executes its runs in order: the first that is missing is the one that it ended in.
            let task = jobs.iter().rev().find_map(|job| {
                let at = job.keys.iter().position(|key| *key == name)?;
                Some(format!("{}_{}", job.job, at / job.chunk))
            });
            let is_first = task.as_ref().is_some_and(|task| blamed.insert(task.clone()));
            match failure(state, task.as_deref().unwrap_or_default()) {
                Some((status, message)) if is_first && (status != Status::Crash || tried >= ATTEMPTS) => {
                    let end = Finished {
                        status,
                        message: Some(message),
                        wall_s: 0.0,
                        peak_bytes: None,
                        metrics: Metrics::new(),
                    };
                    kept.put(run, key, &end)?;
                }
                _ => lost.push((key.clone(), *run)),
            }
        }
        if !lost.is_empty() {
            lost.iter().for_each(|(key, _)| *attempts.entry(key.to_string()).or_default() += 1);
            jobs.push(submit(&lost, plan.runs, slurm)?);
        }
        if !missing.is_empty() {
            wait(slurm.poll, &plan.interrupt);
        }
    }
    Ok(Executed { total, done: total - missing.len(), kept: from_folder, not_kept: None })
}

fn wait(time: Duration, interrupt: &std::sync::atomic::AtomicBool) {
    let step = Duration::from_millis(100);
    for _ in 0..time.as_millis().div_ceil(step.as_millis()) {
        if !interrupt.load(Ordering::Relaxed) {
            std::thread::sleep(step);
        }
    }
}

/// The keys of the results in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_string())).collect()
}

/// Whether a task with this state will still do something.
fn is_live(state: &str) -> bool {
    [
        "PENDING",
        "RUNNING",
        "CONFIGURING",
        "COMPLETING",
        "SUSPENDED",
        "REQUEUED",
        "REQUEUE_HOLD",
        "REQUEUE_FED",
    ]
    .contains(&state)
}

/// What the state of a task that has ended without its results says about the run that it ended in.
fn failure(state: &str, task: &str) -> Option<(Status, String)> {
    Some(match state {
        "OUT_OF_MEMORY" => (
            Status::Memory,
            format!("Slurm killed task {task} for want of memory; ask for more with --sbatch --mem=…"),
        ),
        "TIMEOUT" | "DEADLINE" => (
            Status::TimeLimit,
            format!("Slurm ended task {task} after its time; ask for more with --sbatch --time=…"),
        ),
        "" => return None,
        state => (Status::Crash, format!("Slurm lost task {task} ({state}), {ATTEMPTS} times")),
    })
}

/// Submits runs as one job.
fn submit(runs: &[(Key, &Run)], results: &Path, slurm: &Slurm<'_>) -> io::Result<Job> {
    let folder = new_folder(slurm.jobs)?;
    let list = folder.join("runs.jsonl");
    let mut text = io::BufWriter::new(fs::File::create(&list)?);
    for (_, run) in runs {
        let request =
            Request { run: run.description(), base: std::path::absolute(&run.base).unwrap_or_default() };
        serde_json::to_writer(&mut text, &request)?;
        text.write_all(b"\n")?;
    }
    text.flush()?;
    let chunk = slurm.chunk(runs.len());
    let tasks = runs.len().div_ceil(chunk);
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    let mut command = format!("exec {} execute-runs", quoted(slurm.program));
    if let Some(time_s) = slurm.limits.time_s {
        command += &format!(" --time-s {time_s}");
    }
    if let Some(bytes) = slurm.limits.memory_bytes {
        command += &format!(" --memory-mb {}", bytes.div_ceil(1_000_000));
    }
    let (results, list) = (std::path::absolute(results)?, std::path::absolute(&list)?);
    command += &format!(" {} {} {chunk} \"$SLURM_ARRAY_TASK_ID\"", quoted(&results), quoted(&list));
    let log = std::path::absolute(&folder)?.join("%a.log");
    let mut sbatch = Command::new("sbatch");
    sbatch.args(["--parsable", "--job-name=warploom", "--cpus-per-task=1", "--open-mode=append"]);
    sbatch.arg(format!("--array=0-{}", tasks - 1)).arg(format!("--output={}", log.display()));
    sbatch.args(slurm.resources(chunk)).args(slurm.options).arg("--wrap").arg(command);
    let output = sbatch.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(Refused("`sbatch` is not found".to_string())),
        _ => error,
    })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().replace("sbatch: ", "");
        let _ = fs::remove_dir_all(&folder);
        return Err(io::Error::other(Refused(message)));
    }
    // The number may be followed by the name of a cluster.
    let answer = String::from_utf8_lossy(&output.stdout);
    let job = answer.trim().split(';').next().unwrap_or_default().to_string();
    let job = Job { job, chunk, keys: runs.iter().map(|(key, _)| key.to_string()).collect() };
    write_whole(&folder.join("job.json"), serde_json::to_string(&job)?.as_bytes())?;
    Ok(job)
}

/// A folder that nobody else has.
fn new_folder(jobs: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(jobs)?;
    for number in 1.. {
        let folder = jobs.join(number.to_string());
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::Error::other("no number is left"))
}

fn read_jobs(jobs: &Path) -> Vec<Job> {
    let folders = fs::read_dir(jobs).into_iter().flatten().flatten();
    let mut numbers: Vec<u64> =
        folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok()).collect();
    // The newest job of a run says what became of it.
    numbers.sort();
    let text = |number: u64| fs::read_to_string(jobs.join(number.to_string()).join("job.json")).ok();
    numbers.into_iter().filter_map(|number| serde_json::from_str(&text(number)?).ok()).collect()
}

impl Slurm<'_> {
    /// Runs per task: short ones share one, and an array is not longer than Slurm allows.
    fn chunk(&self, runs: usize) -> usize {
        let least = runs.div_ceil(MOST_TASKS).max(1);
        let filling = self.takes.mean_s.map_or(1.0, |mean_s| TASK_S / mean_s.max(1e-3));
        self.chunk.unwrap_or((filling as usize).min(runs)).max(least)
    }

    /// Options that ask for what a task will take, and some more.
    fn resources(&self, chunk: usize) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(mean_s) = self.takes.mean_s {
            let longest_s = self.limits.time_s.unwrap_or(3.0 * self.takes.longest_s);
            let seconds = 2.0 * mean_s * chunk as f64 + longest_s;
            options.push(format!("--time={}", 2 + (seconds / 60.0).ceil() as u64));
        }
        let peak = self.limits.memory_bytes.unwrap_or(self.takes.peak_bytes + self.takes.peak_bytes / 2);
        if peak > 0 {
            // The task itself, and the libraries that the processes share.
            options.push(format!("--mem={}M", 128 + peak.div_ceil(1 << 20)));
        }
        options
    }
}

/// The states of the tasks of a job, by `squeue`, and by `sacct` for those that Slurm's controller has forgotten.
/// `None` if Slurm does not answer.
fn states(job: &str) -> Option<BTreeMap<usize, String>> {
    let squeue =
        Command::new("squeue").args(["-h", "-r", "-t", "all", "-j", job, "-o", "%K|%T"]).output().ok()?;
    let mut states = queued(squeue.status.success(), &squeue.stdout, &squeue.stderr)?;
    // A cluster need not have accounting.
    let sacct = Command::new("sacct").args(["-n", "-X", "-P", "-j", job, "-o", "JobID,State"]).output();
    for (task, state) in sacct.map(|output| accounted(&output.stdout)).unwrap_or_default() {
        states.entry(task).or_insert(state);
    }
    Some(states)
}

/// What `squeue` says about a job's tasks. It fails for a job that it has forgotten, and if no controller answers.
fn queued(success: bool, output: &[u8], errors: &[u8]) -> Option<BTreeMap<usize, String>> {
    if !success && !String::from_utf8_lossy(errors).contains("Invalid job id") {
        return None;
    }
    let output = String::from_utf8_lossy(output);
    let lines = output.lines().filter_map(|line| line.trim().split_once('|'));
    Some(lines.filter_map(|(task, state)| Some((task.parse().ok()?, state.to_string()))).collect())
}

/// What `sacct` says: `7_0|COMPLETED`, `7_1|CANCELLED by 1000`.
fn accounted(output: &[u8]) -> BTreeMap<usize, String> {
    let output = String::from_utf8_lossy(output);
    let lines = output.lines().filter_map(|line| line.trim().split_once('|'));
    let states = lines.filter_map(|(id, state)| {
        let (_, task) = id.rsplit_once('_')?;
        Some((task.parse().ok()?, state.split(' ').next()?.to_string()))
    });
    states.collect()
}

/// The jobs of a folder, and what Slurm says about them.
pub fn jobs(folder: &Path) -> Vec<JobStatus> {
    let status = |job: Job| {
        let counted = states(&job.job).map(|states| {
            states.into_values().fold(BTreeMap::new(), |mut counts, state| {
                *counts.entry(state).or_default() += 1;
                counts
            })
        });
        JobStatus { tasks: job.tasks(), job: job.job, states: counted }
    };
    read_jobs(folder).into_iter().map(status).collect()
}

/// The runs of one task: a chunk of a list that was written for a job.
pub fn listed(list: &Path, chunk: usize, task: usize) -> io::Result<Vec<Run>> {
    let lines = BufReader::new(fs::File::open(list)?).lines();
    let of_task = lines.skip(task * chunk).take(chunk).map(|line| {
        let request: Request = serde_json::from_str(&line?)?;
        Run::from_description(request.run, &request.base).map_err(io::Error::other)
    });
    of_task.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm(takes: Takes, limits: Limits) -> Slurm<'static> {
        Slurm {
            program: Path::new("warploom"),
            jobs: Path::new("jobs"),
            options: &[],
            chunk: None,
            takes,
            limits,
            poll: Duration::from_secs(1),
        }
    }

    #[test]
    fn short_runs_share_a_task() {
        let of = |mean_s| slurm(Takes { mean_s, ..Takes::default() }, Limits::default());
        assert_eq!([0.1, 10.0, 1000.0].map(|mean_s| of(Some(mean_s)).chunk(5000)), [1200, 12, 5]);
        assert_eq!((of(Some(1000.0)).chunk(50), of(None).chunk(50), of(None).chunk(5000)), (1, 1, 5));
        assert_eq!(of(Some(0.1)).chunk(50), 50);
    }

    #[test]
    fn resources_follow_the_estimate_and_the_limits() {
        let takes = Takes { mean_s: Some(2.0), longest_s: 10.0, peak_bytes: 100 << 20 };
        assert_eq!(slurm(takes, Limits::default()).resources(60), ["--time=7", "--mem=278M"]);
        let limits = Limits { time_s: Some(600.0), memory_bytes: Some(1 << 30) };
        assert_eq!(slurm(takes, limits).resources(60), ["--time=16", "--mem=1152M"]);
        assert!(slurm(Takes::default(), Limits::default()).resources(1).is_empty());
    }

    #[test]
    fn tasks_have_their_chunks() {
        let keys = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        let job = Job { job: "1".into(), chunk: 2, keys };
        assert_eq!(
            (job.tasks(), job.keys_of(0), job.keys_of(2), job.keys_of(3).len()),
            (3, &["a", "b"].map(String::from)[..], &["e".to_string()][..], 0)
        );
    }

    #[test]
    fn a_forgotten_job_is_not_a_silent_slurm() {
        let states = queued(true, b"0|RUNNING\n1|PENDING\nN/A|PENDING\n", b"").unwrap();
        assert_eq!(states, BTreeMap::from([(0, "RUNNING".to_string()), (1, "PENDING".to_string())]));
        let forgotten = b"slurm_load_jobs error: Invalid job id specified\n";
        assert_eq!(queued(false, b"", forgotten), Some(BTreeMap::new()));
        assert_eq!(queued(false, b"", b"slurm_load_jobs error: Unable to contact slurm controller\n"), None);
        let ended = accounted(b"7_0|COMPLETED\n7_1|CANCELLED by 1000\n7_[2-9]|PENDING\n");
        assert_eq!(ended, BTreeMap::from([(0, "COMPLETED".to_string()), (1, "CANCELLED".to_string())]));
    }

    #[test]
    fn states_become_results() {
        assert_eq!(failure("OUT_OF_MEMORY", "7_1").unwrap().0, Status::Memory);
        assert_eq!(failure("TIMEOUT", "7_1").unwrap().0, Status::TimeLimit);
        assert_eq!(failure("NODE_FAIL", "7_1").unwrap().1, "Slurm lost task 7_1 (NODE_FAIL), 3 times");
        assert_eq!(failure("", ""), None);
        assert!(is_live("PENDING") && !is_live("CANCELLED") && !is_live("unknown"));
    }
}
