//! The `warploom` command. Everything is in the library of this crate.

fn main() -> std::process::ExitCode {
    warploom_cli::main()
}
