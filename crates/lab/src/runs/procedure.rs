//! How a run is executed: a workload, or a [`Procedure`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use warploom::{Chip, Device, HangReason, Launch, SimOptions, Timing, policies};

use super::metrics::Metrics;
use super::run::{Run, Setting, What};
use crate::kernel::{FileError, PrepareError};
use crate::plan::PlanError;
use crate::work::{Param, ParamError, Workload, total};

/// A function that a run executes where a workload's report is not enough: because the kernel measures itself, a hang
/// is the result, or several devices take part. All are in `procedures/`: kept results depend on the sources there.
#[derive(Debug)]
pub(crate) struct Procedure {
    /// Unique among procedures.
    pub name: &'static str,
    pub params: &'static [Param],
    pub choices: &'static [Choice],
    pub run: fn(&RunContext<'_>) -> Result<Metrics, RunError>,
}

/// A parameter whose value is one of a few words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub name: &'static str,
    /// The first is the default.
    pub words: &'static [&'static str],
}

/// How a run ended. Every status but [`Ok`](Status::Ok) has a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has figures, and its check found the result right.
    Ok,
    /// The result is wrong.
    Wrong,
    /// A launch cannot end, or seems so.
    Hang,
    /// A launch did not end within the run's cycles.
    CycleLimit,
    /// A thread did something wrong.
    Fault,
    /// The chip, the file, the arguments or the shape of a launch are wrong.
    Refused,
    /// It took more of the host's time than it may.
    TimeLimit,
    /// It took more of the host's memory than it may, or than there is.
    Memory,
    /// Warploom itself failed.
    Crash,
}

impl Status {
    pub const ALL: [Status; 9] = [
        Status::Ok,
        Status::Wrong,
        Status::Hang,
        Status::CycleLimit,
        Status::Fault,
        Status::Refused,
        Status::TimeLimit,
        Status::Memory,
        Status::Crash,
    ];

    /// As in kept results and tables.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Wrong => "wrong",
            Status::Hang => "hang",
            Status::CycleLimit => "cycle_limit",
            Status::Fault => "fault",
            Status::Refused => "refused",
            Status::TimeLimit => "time_limit",
            Status::Memory => "memory",
            Status::Crash => "crash",
        }
    }

    /// Whether the host decided it: the same run may end otherwise on another one, or another time.
    pub fn is_of_the_host(self) -> bool {
        matches!(self, Status::TimeLimit | Status::Memory | Status::Crash)
    }
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The device refused, or a launch faulted, hung or was interrupted.
    #[error(transparent)]
    Device(#[from] warploom::Error),
    /// The run ended, but its result is wrong.
    #[error("wrong result: {0}")]
    Wrong(String),
    /// A loop of a plan reached its limit.
    #[error("{0}")]
    Endless(String),
    /// The description of the run is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The code that executed the run panicked.
    #[error("panic: {0}")]
    Panic(String),
}

impl RunError {
    /// Whether the user interrupted the run.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, RunError::Device(warploom::Error::Interrupted { .. }))
    }

    /// What kept results call it.
    pub(crate) fn status(&self) -> Status {
        match self {
            RunError::Device(warploom::Error::Hang { hang, .. }) => {
                match hang.as_ref().map(|hang| &hang.reason) {
                    Some(HangReason::CycleLimit(_)) => Status::CycleLimit,
                    _ => Status::Hang,
                }
            }
            RunError::Device(warploom::Error::Fault { .. } | warploom::Error::Firmware { .. }) => {
                Status::Fault
            }
            RunError::Device(_) | RunError::Invalid(_) => Status::Refused,
            RunError::Endless(_) => Status::Hang,
            RunError::Wrong(_) => Status::Wrong,
            RunError::Panic(_) => Status::Crash,
        }
    }
}

impl From<ParamError> for RunError {
    fn from(error: ParamError) -> RunError {
        RunError::Invalid(error.to_string())
    }
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> RunError {
        match error {
            PlanError::Device(error) => RunError::Device(error),
            PlanError::File(error) => RunError::Invalid(with_help(&error.message, &error.help)),
            PlanError::Prepare(PrepareError::Size { message, help }) => {
                RunError::Invalid(with_help(&message, help.as_slice()))
            }
            PlanError::Prepare(error) => RunError::Invalid(error.to_string()),
            PlanError::Endless { .. } => RunError::Endless(error.to_string()),
        }
    }
}

/// A kept result has one message.
fn with_help(message: &str, help: &[String]) -> String {
    help.iter().fold(message.to_string(), |message, help| format!("{message}; {help}"))
}

impl From<warploom::ChipError> for RunError {
    fn from(error: warploom::ChipError) -> RunError {
        RunError::Device(error.into())
    }
}

/// What a [`Procedure`] gets: its parameters, its device, and the limits of its launches.
pub(crate) struct RunContext<'a> {
    run: &'a Run,
    interrupt: Arc<AtomicBool>,
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(run: &'a Run, interrupt: Arc<AtomicBool>) -> RunContext<'a> {
        RunContext { run, interrupt }
    }

    /// The run's chip with its changes.
    pub(crate) fn chip(&self) -> Result<Chip, RunError> {
        Ok(Chip::load(&self.run.chip_path(), &self.run.set)?)
    }

    /// A fresh device with the run's chip, model and policy, on one host thread.
    pub(crate) fn device(&self) -> Result<Device, RunError> {
        let known = policies();
        if let Some(sched) = &self.run.sched
            && !known.iter().any(|(name, _)| name == sched)
        {
            return Err(RunError::Invalid(format!("no warp scheduler `{sched}`")));
        }
        // Runs already fill the cores, so each simulates on one thread.
        let policy = self.run.sched.clone();
        let timing = Timing { policy, threads: 1, profile: self.run.profile, ..Timing::default() };
        let options = SimOptions { model: self.run.model, timing, ..SimOptions::default() };
        Ok(Device::sim_with(self.chip()?, options))
    }

    /// The folder that the run's files are relative to.
    pub(crate) fn base(&self) -> &Path {
        &self.run.base
    }

    /// Gives a launch the run's cycle limit and the interrupt flag. Every launch of a procedure must go through here.
    pub(crate) fn prepare(&self, launch: Launch) -> Launch {
        Launch {
            max_cycles: self.run.max_cycles.or(launch.max_cycles),
            interrupt: Some(self.interrupt.clone()),
            ..launch
        }
    }

    /// The value of a numeric parameter.
    pub(crate) fn number<T: TryFrom<i64>>(&self, param: &Param) -> Result<T, RunError> {
        let value = match self.run.params.get(param.name) {
            None => param.default,
            Some(Setting::Number(value)) => *value,
            Some(Setting::Word(word)) => {
                return Err(RunError::Invalid(format!("{}={word} is no number", param.name)));
            }
        };
        T::try_from(value).map_err(|_| RunError::Invalid(format!("{}={value} is too large", param.name)))
    }

    /// The value of a choice.
    pub(crate) fn choice(&self, choice: &Choice) -> &'static str {
        match self.run.params.get(choice.name) {
            // Numbers and other words were refused before the procedure started.
            Some(Setting::Word(word)) => choice.words.iter().find(|known| *known == word),
            _ => choice.words.first(),
        }
        .copied()
        .unwrap_or_default()
    }
}

pub(crate) fn execute(run: &Run, interrupt: Arc<AtomicBool>) -> Result<Metrics, RunError> {
    let context = RunContext::new(run, interrupt);
    match &run.what {
        What::Plan(plan) => {
            let invalid = |error: FileError| RunError::Invalid(with_help(&error.message, &error.help));
            let kernels = plan.read_kernels(context.base()).map_err(invalid)?;
            let mut gpu = context.device()?;
            let outcome = plan.execute(&mut gpu, &kernels, context.base(), &|launch| context.prepare(launch));
            outcome.end?;
            match outcome.check {
                Some(Err(wrong)) => Err(RunError::Wrong(wrong)),
                _ => Ok(Metrics::of_launches(&total(&outcome.launches), &outcome.launches)),
            }
        }
        What::Procedure(procedure) => {
            check(procedure, run)?;
            (procedure.run)(&context)
        }
        What::Work(name) => {
            let workload = Workload::find(name)?;
            let given: Vec<_> = run.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let values = workload.values(&given)?;
            let mut gpu = context.device()?;
            let outcome = workload.run(&mut gpu, &values, &|launch| context.prepare(launch))?;
            match &outcome.check {
                Ok(_) => Ok(Metrics::from(&outcome)),
                Err(wrong) => Err(RunError::Wrong(wrong.clone())),
            }
        }
    }
}

/// Refuses parameters that the procedure does not have, and values out of range.
fn check(procedure: &Procedure, run: &Run) -> Result<(), RunError> {
    for (name, value) in &run.params {
        let fits = match value {
            Setting::Number(number) => procedure.params.iter().find(|p| p.name == *name).map(|param| {
                (param.min..=param.max).contains(number) && number % param.multiple_of.max(1) == 0
            }),
            Setting::Word(word) => {
                let choice = procedure.choices.iter().find(|c| c.name == *name);
                choice.map(|choice| choice.words.contains(&word.as_str()))
            }
        };
        let wrong = match fits {
            Some(true) => continue,
            Some(false) => format!("`{}` cannot have {name}={value}", procedure.name),
            None => format!("`{}` has no such parameter: {name}={value}", procedure.name),
        };
        return Err(RunError::Invalid(wrong));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Param = Param::new("size", "things", 4).range(1, 100).multiple_of(2);
    const SCHEME: Choice = Choice { name: "scheme", words: &["plain", "tiny"] };
    static TWICE: Procedure = Procedure {
        name: "twice",
        params: &[SIZE],
        choices: &[SCHEME],
        run: |context| {
            let size: u32 = context.number(&SIZE)?;
            Ok(Metrics::new().with("twice", 2 * size).with("scheme", context.choice(&SCHEME)))
        },
    };

    fn executed(run: Run) -> Result<Metrics, String> {
        execute(&run, Arc::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn procedures_have_parameters() {
        let plain = executed(Run::procedure(&TWICE)).unwrap();
        assert_eq!((plain.number("twice"), plain.text("scheme")), (Some(8.0), Some("plain")));
        let tiny = executed(Run::procedure(&TWICE).with("size", 10).with("scheme", "tiny")).unwrap();
        assert_eq!((tiny.number("twice"), tiny.text("scheme")), (Some(20.0), Some("tiny")));
    }

    #[test]
    fn wrong_descriptions_are_refused() {
        let wrong = |run| executed(run).unwrap_err();
        assert_eq!(wrong(Run::procedure(&TWICE).with("size", 3)), "`twice` cannot have size=3");
        assert_eq!(wrong(Run::procedure(&TWICE).with("scheme", "huge")), "`twice` cannot have scheme=huge");
        assert_eq!(
            wrong(Run::procedure(&TWICE).with("scheme", 3)),
            "`twice` has no such parameter: scheme=3"
        );
        assert!(wrong(Run::work("nosuch")).starts_with("no workload `nosuch`"));
        assert!(wrong(Run::work("nw").with("size", 0)).starts_with("size=0:"));
        assert_eq!(wrong(Run::work("nw").sched("nosuch")), "no warp scheduler `nosuch`");
        assert!(wrong(Run::work("nw").chip("nosuch")).contains("nosuch"));
        assert!(wrong(Run::work("nw").set("sm.nosuch", 1)).contains("sm.nosuch"));
    }

    #[test]
    fn workloads_run_with_limits() {
        let small = Run::work("vecadd").with("size", 64);
        let metrics = executed(small.clone()).unwrap();
        assert_eq!(metrics.number("launches"), Some(1.0));
        assert_eq!(metrics.number("per_launch.0.cycles"), metrics.number("cycles"));
        assert!(executed(small.max_cycles(5)).unwrap_err().contains("5 cycles"));
    }
}
