//! The `highwater` program: the server, the command line, and the demonstration.

mod cli;
mod demo;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// What a commit allocates is mostly freed by another thread, which not every allocator is good at.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
