//! The `highwater` program: the server, the command line, and the demonstration.

mod cli;
mod demo;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
