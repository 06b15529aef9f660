//! Where runs are executed: in processes of this computer, or by the tasks of a cluster. `sweep` and `repro` share it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use warploom_lab::runs::slurm::{self, Slurm, Takes};
use warploom_lab::runs::{self, Limits, Plan, Run, Status, execute_all};

use crate::cli::{ExecuteRunsOptions, PlaceName, PlaceOptions};
use crate::failure::{Exit, Failure};
use crate::input::reason;
use crate::machine::interrupt_flag;

/// The arguments that make this program execute runs for another process.
const SERVE_RUNS: &[&str] = &["serve-runs"];

/// How often Slurm is asked.
const POLL: Duration = Duration::from_secs(3);

fn this_program() -> Result<PathBuf, Failure> {
    let cannot = |error| format!("cannot find this program to start it again: {}", reason(&error));
    std::env::current_exe().map_err(|error| Failure::input(cannot(error)))
}

/// Where the runs of a command are executed, with all that a plan borrows.
pub(crate) struct Place {
    program: PathBuf,
    name: PlaceName,
    /// Where jobs are written down.
    jobs: PathBuf,
    options: Vec<String>,
    chunk: Option<usize>,
}

impl Place {
    /// `folder` is that of the command's results.
    pub(crate) fn new(options: &PlaceOptions, folder: &Path) -> Result<Place, Failure> {
        if let Some(option) = options.stray() {
            return Err(Failure::input(format!("{option} needs --on slurm: nothing else understands it")));
        }
        let program = this_program()?;
        if options.on == PlaceName::Slurm {
            find_slurm()?;
        }
        Ok(Place {
            program,
            name: options.on,
            jobs: jobs(folder),
            options: options.sbatch_options(),
            chunk: options.chunk.map(|chunk| chunk as usize),
        })
    }

    /// On this computer, whatever the options say.
    pub(crate) fn local(&self, limits: Limits) -> runs::Place<'_> {
        runs::Place::Processes { program: &self.program, arguments: SERVE_RUNS, limits }
    }

    /// `takes` says what a run takes, for what is asked of a cluster.
    pub(crate) fn of(&self, limits: Limits, takes: Takes) -> runs::Place<'_> {
        match self.name {
            PlaceName::Local => self.local(limits),
            PlaceName::Slurm => runs::Place::Slurm(Slurm {
                program: &self.program,
                jobs: &self.jobs,
                options: &self.options,
                chunk: self.chunk,
                takes,
                limits,
                poll: POLL,
            }),
        }
    }

    pub(crate) fn is_slurm(&self) -> bool {
        self.name == PlaceName::Slurm
    }
}

/// Where the jobs of a folder are written down.
pub(crate) fn jobs(folder: &Path) -> PathBuf {
    folder.join("slurm")
}

/// Refuses before the first run what would fail after it.
fn find_slurm() -> Result<(), Failure> {
    let help = "go to a login node of the cluster, or leave out --on slurm to use this computer's cores";
    match std::process::Command::new("sinfo").arg("--noheader").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            let first = message.lines().next().unwrap_or_default().to_string();
            Err(Failure::input(format!("Slurm does not answer: {first}")).help(help))
        }
        Err(error) => {
            Err(Failure::input(format!("no Slurm here: cannot start `sinfo`: {}", reason(&error))).help(help))
        }
    }
}

/// What to tell if Slurm takes no job: the options are wrong, not the folder.
pub(crate) fn refused(error: &std::io::Error) -> Option<Failure> {
    let refused = error.get_ref()?.downcast_ref::<slurm::Refused>()?;
    Some(
        Failure::input(refused.to_string())
            .help("--partition, --account and --sbatch say what to ask for; `sinfo` shows what there is"),
    )
}

/// The memory that a process takes at most which executes this run and nothing else, where the system says it.
pub(crate) fn peak_bytes(run: &Run) -> Result<Option<u64>, Failure> {
    let program = this_program()?;
    let ended = runs::alone(run, &program, SERVE_RUNS);
    let ended = ended.ok_or_else(|| Failure::new(Exit::Interrupted, "interrupted"))?;
    match ended.status {
        Status::Ok => Ok(ended.peak_bytes),
        _ => Err(Failure::input(ended.message.unwrap_or_else(|| "the run failed".to_string()))),
    }
}

/// Executes runs for the process that started this one.
pub(crate) fn serve_runs() -> Result<Exit, Failure> {
    runs::serve(std::io::stdin(), std::io::stdout().lock())?;
    Ok(Exit::Good)
}

/// Executes a chunk of a list of runs: what a task of Slurm does.
pub(crate) fn execute_runs(options: &ExecuteRunsOptions) -> Result<Exit, Failure> {
    let cannot = |error: std::io::Error| Failure::input(format!("`{}`: {error}", options.list.display()));
    let list = slurm::listed(&options.list, options.chunk, options.task).map_err(cannot)?;
    let program = std::env::current_exe().map_err(cannot)?;
    let limits = Limits { time_s: options.time_s, memory_bytes: options.memory_mb.map(|mb| mb * 1_000_000) };
    let plan = Plan {
        retry: false,
        stop_if_not_kept: true,
        jobs: 1,
        place: runs::Place::Processes { program: &program, arguments: SERVE_RUNS, limits },
        interrupt: interrupt_flag(),
        ..Plan::new(&options.runs)
    };
    let executed = execute_all(&list, &plan, &|_, _, _| {}).map_err(cannot)?;
    match executed.not_kept {
        Some(error) => Err(cannot(error)),
        None if executed.is_complete() => Ok(Exit::Good),
        None => Ok(Exit::Interrupted),
    }
}
