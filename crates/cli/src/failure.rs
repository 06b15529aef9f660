//! Failures: how they are shown, and the exit code of the process.

use std::io;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use warploom::{ChipError, Error, Fault, Hang, Report};
use warploom_lab::kernel;

use crate::output::print_json;
use crate::run::shown_name;
use crate::term;

/// The exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Good = 0,
    /// The check or the comparison failed.
    CheckFailed = 1,
    /// The command line or an input is wrong.
    BadInput = 2,
    /// The kernel faulted.
    Fault = 3,
    /// The kernel hangs, or a limit was reached.
    Hang = 4,
    /// The user stopped it.
    Interrupted = 130,
}

impl Exit {
    /// The name in JSON.
    fn kind(self) -> &'static str {
        match self {
            Exit::Good => "good",
            Exit::CheckFailed => "check_failed",
            Exit::BadInput => "bad_input",
            Exit::Fault => "fault",
            Exit::Hang => "hang",
            Exit::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// Without colour, and without `error: ` in front.
    message: String,
    /// What to show instead of the message, if that is more.
    shown: Option<String>,
    help: Vec<String>,
    report: Option<Box<Report>>,
    /// More keys of the JSON object.
    extra: Vec<(&'static str, Value)>,
}

impl Failure {
    /// The command line or an input is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::new(Exit::BadInput, message)
    }

    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        let message = message.into();
        Failure {
            exit,
            // Errors of a text are rendered with it.
            message: message.strip_prefix("error: ").map_or(message.clone(), str::to_string),
            shown: None,
            help: Vec::new(),
            report: None,
            extra: Vec::new(),
        }
    }

    /// Adds advice.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Failure {
        self.help.push(help.into());
        self
    }

    /// Adds a key to the JSON object.
    pub(crate) fn with(mut self, key: &'static str, value: Value) -> Failure {
        self.extra.push((key, value));
        self
    }

    /// What a launch did before it failed.
    pub(crate) fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The text for people: `error: …`, then `help: …`.
    pub(crate) fn text(&self) -> String {
        let mut text = match &self.shown {
            Some(shown) => shown.clone(),
            None => format!("{} {}", term::paint("error:", 31), self.message),
        };
        for help in &self.help {
            text.push_str(&format!("\n{} {help}", term::paint("help:", 36)));
        }
        text
    }

    /// The value of the key `error` in JSON output.
    pub(crate) fn json(&self) -> Value {
        json!({
            "kind": self.exit.kind(),
            "exit_code": self.exit as u8,
            "message": self.message,
            "help": self.help,
        })
    }

    /// Prints the failure on stderr and, with `json`, an object on stdout. Returns the exit code.
    pub(crate) fn print(self, json: bool) -> ExitCode {
        term::eprint(&self.text());
        if json {
            let mut object = match self.report.as_deref().map(serde_json::to_value) {
                Some(Ok(Value::Object(report))) => report,
                _ => Map::new(),
            };
            object.insert("error".to_string(), self.json());
            object.extend(self.extra.iter().map(|(key, value)| (key.to_string(), value.clone())));
            // If stdout cannot be written, the failure itself is still the more important one to report.
            let _ = print_json(Value::Object(object));
        }
        self.exit.into()
    }
}

/// A message whose kernels have the names of their source: `hist` for `_Z4histPj`.
fn with_plain_names(message: &str) -> String {
    let plain = |(at, part): (usize, &str)| match part {
        symbol if at % 2 == 1 && symbol.starts_with("_Z") => kernel::entry::plain(symbol),
        part => part.to_string(),
    };
    message.split('`').enumerate().map(plain).collect::<Vec<_>>().join("`")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = match &error {
            Error::Fault { .. } => Exit::Fault,
            Error::Hang { .. } => Exit::Hang,
            Error::Interrupted { .. } => Exit::Interrupted,
            _ => Exit::BadInput,
        };
        let message = match &error {
            Error::Interrupted { state, report } => {
                let after = term::counted(report.warp_insts, "warp instruction");
                let state = state.as_ref().map(|state| format!("\n{state}")).unwrap_or_default();
                format!("interrupted after {after}{state}")
            }
            Error::Hang { message, hang: Some(hang), report } => {
                let kernel = shown_name(&hang.kernel);
                // What a graph adds to its hang: which channels hold what.
                let more = message.strip_prefix(&hang.to_string()).unwrap_or_default();
                Hang { kernel, chip: report.chip.clone(), ..(**hang).clone() }.to_string() + more
            }
            Error::Fault { fault: Some(fault), .. } => {
                Fault { kernel: shown_name(&fault.kernel), ..(**fault).clone() }.to_string()
            }
            Error::Load(load) => load.to_string(),
            other => with_plain_names(&other.to_string()),
        };
        let mut failure = Failure::new(exit, message);
        match error {
            Error::Load(load) => failure.shown = Some(load.render(term::color()).trim_end().to_string()),
            Error::Fault { report, .. } | Error::Hang { report, .. } | Error::Interrupted { report, .. } => {
                failure.report = Some(report);
            }
            Error::Chip(ChipError::Unknown(_)) => {
                failure = failure.help("`warploom chips` lists the built-in chips");
            }
            Error::Chip(ChipError::Set { .. }) => {
                failure = failure.help("`warploom chips NAME` shows every key of a chip");
            }
            _ => {}
        }
        failure
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::input(format!("cannot write the output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_error_says_so_once() {
        assert_eq!(Failure::input("error: `foo` is not modelled").message, "`foo` is not modelled");
    }

    #[test]
    fn kernels_have_the_names_of_their_source() {
        let message = with_plain_names("kernel `_Z4histPj` takes 2 arguments; `k` and `_Z` are others");
        assert_eq!(message, "kernel `hist` takes 2 arguments; `k` and `_Z` are others");
    }
}
