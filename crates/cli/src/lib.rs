//! The `warploom` command: arguments, printing, exit codes. No model code.
//!
//! `cli.rs` defines the command line, and one module per command carries it out. `failure.rs` decides how a failure is
//! shown and the process's exit code. Only [`main`] is public. Start reading there, then in `run.rs`.

mod anchors;
mod arg;
mod asm;
mod calibrate;
mod check;
mod chips;
mod cilk;
mod cli;
mod compare;
mod conform;
mod correlate;
#[cfg_attr(not(feature = "cuda"), path = "no_devices.rs")]
mod devices;
mod diff;
mod exec;
mod failure;
mod fasta;
mod graph;
mod input;
mod machine;
mod output;
mod place;
mod plan;
mod profile;
mod progress;
mod report;
mod repro;
mod run;
mod schema;
mod sources;
mod speed;
mod sweep;
mod term;
mod work;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use failure::Failure;

/// Runs the command that the process's arguments ask for.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is no reason to fail.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let result = match &cli.command {
        Command::Run(options) => run::run(options),
        Command::Work(options) => work::work(options),
        Command::Exec(options) => exec::exec(options),
        Command::Compare(options) => compare::compare(options),
        Command::Diff(options) => diff::diff(options),
        Command::Repro(options) => repro::repro(options),
        Command::Sweep(options) => sweep::sweep(options),
        Command::Check(options) => check::check(options),
        Command::Asm(options) => asm::asm(options),
        Command::Graph(options) => graph::graph(options),
        Command::Cilk(options) => cilk::cilk(options),
        Command::Chips(options) => chips::chips(options),
        Command::Devices(options) => devices::devices(options),
        Command::Conform(options) => conform::conform(options),
        Command::Anchors(options) => anchors::anchors(options),
        Command::Calibrate(options) => calibrate::calibrate(options),
        Command::Correlate(options) => correlate::correlate(options),
        Command::Speed(options) => speed::speed(options),
        Command::ServeGpu => devices::serve_gpu(),
        Command::ServeRuns => place::serve_runs(),
        Command::ExecuteRuns(options) => place::execute_runs(options),
        Command::Completions { shell } => completions(*shell),
        Command::Schema => schema::schema(),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => failure.print(cli.command.json()),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<failure::Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "warploom", &mut script);
    term::print_bytes(&script)?;
    Ok(failure::Exit::Good)
}
