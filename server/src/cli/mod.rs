//! The command line: arguments in, results and exit codes out.

mod args;
mod audit;
mod commit_json;
mod domains;
pub(crate) mod exit;
pub(crate) mod failure;
pub(crate) mod input;
mod intent_args;
mod intent_json;
mod intent_text;
mod intents;
mod json;
mod lease_args;
mod lease_form;
mod lease_run;
mod leases;
pub(crate) mod output;
mod reads;
mod remote;
mod serve;
mod text;
mod units;
mod watch;
mod write_args;
mod writes;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

pub(crate) use self::args::Format;
use self::args::{Cli, Command, Global};
use self::exit::Exit;
use self::failure::Failure;
use self::output::{Output, complain};
use crate::demo;

/// Runs the command line of this process.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; everything else is a wrong use. Where nobody reads the
            // text, there is nobody to tell.
            let _ = error.print();
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Accepted
            };
            return exit.into();
        }
    };
    let mut out = Output::new(cli.global.output);
    match dispatch(&cli, &mut out) {
        Ok(()) => Exit::Accepted.into(),
        Err(Failure::Command { code }) => code.into(),
        Err(failure) => report(&failure, &mut out).into(),
    }
}

/// Tells a failure: to people on standard error, to scripts on standard output, and to both where
/// it may be the output itself that failed.
fn report(failure: &Failure, out: &mut Output) -> Exit {
    match (failure, out.format()) {
        (Failure::BrokenPipe, _) => {}
        (Failure::Untold { .. }, Format::Json) => {
            complain(&format!("highwater: {failure}"));
            drop(out.tell(|| json::failure(failure), String::new));
        }
        // A second failure, of the output itself, doesn't change the first one.
        (_, Format::Json) => drop(out.tell(|| json::failure(failure), String::new)),
        (_, Format::Table) => complain(&format!("highwater: {failure}")),
    }
    failure.exit()
}

fn dispatch(cli: &Cli, out: &mut Output) -> Result<(), Failure> {
    match &cli.command {
        Command::Serve(args) => serve::run(args, out),
        Command::Demo(args) => demo::run(args, out),
        Command::Audit(command) => audit::run(command, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "highwater", &mut script);
            out.raw(&script)
        }
        remote => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|source| Failure::System {
                    what: "start",
                    source,
                })?;
            runtime.block_on(call(&cli.global, remote, out))
        }
    }
}

/// Runs a command that talks to a server.
async fn call(global: &Global, command: &Command, out: &mut Output) -> Result<(), Failure> {
    let keys = global.keys();
    match command {
        Command::Domain(command) => domains::domain(global, command, out).await,
        Command::Put(args) => writes::commit(global, args.commit(keys)?, args.dry_run, out).await,
        Command::Delete(args) => {
            writes::commit(global, args.commit(keys)?, args.dry_run, out).await
        }
        Command::Commit(args) => writes::commit_file(global, args, out).await,
        Command::Get(args) => reads::get(global, args, out).await,
        Command::Scan(args) => reads::scan(global, args, out).await,
        Command::Watch(args) => watch::watch(global, args, out).await,
        Command::Fence(command) => writes::fence(global, command, out).await,
        Command::Intent(command) => intents::intent(global, command, out).await,
        Command::Lease(command) => leases::lease(global, command, out).await,
        Command::Status => domains::status(global, out).await,
        Command::Serve(_) | Command::Demo(_) | Command::Audit(_) | Command::Completions { .. } => {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
