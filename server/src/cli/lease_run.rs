//! Running a command while a lease is held.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use highwater::DomainName;
use highwater_client::{Client, ClientOptions, HolderOptions, LeaseHolder, Lost};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::args::Global;
use super::failure::{Effect, Failure};
use super::input::InputError;
use super::lease_args::RunArgs;
use super::output::complain;
use super::remote::uri;

/// How a command under a lease ended.
enum End {
    /// By itself.
    Exited(ExitStatus),
    /// Because the lease was lost.
    Lost(Lost),
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |source| Failure::System { what, source }
}

/// Acquires the lease, runs the command, and releases the lease once it has ended. Ends with the
/// command's own exit code, 128 and the signal's number where a signal ended it, or as lost.
pub(crate) async fn run(global: &Global, args: &RunArgs) -> Result<(), Failure> {
    let unsent = |error| Failure::of_call(error, Effect::Reads);
    let wanted = args.wanted.acquire(global.keys())?;
    let domain = DomainName::new(&args.wanted.domain).map_err(InputError::from)?;
    let expected = global.expected()?;
    let options = ClientOptions {
        deadline: global.timeout.0,
        connect_timeout: global.timeout.0,
        ..ClientOptions::default()
    };
    let client = Client::connect(&uri(&global.endpoint)?, options)
        .await
        .map_err(unsent)?;
    if expected.is_some_and(|expected| expected != client.destination()) {
        return Err(Failure::OtherDestination);
    }
    let holder = LeaseHolder::acquire(&client, &domain, &wanted, HolderOptions::default()).await;
    let holder = holder.map_err(|error| Failure::of_call(error, Effect::Writes))?;
    let ended = match begin(args, &client, &holder) {
        Ok(child) => watch(child, &holder, args.kill_after.0).await,
        Err(failure) => Err(failure),
    };
    if let Ok(End::Lost(lost)) = ended {
        return Err(Failure::LeaseLost(lost));
    }
    // What the command did is done, whatever becomes of the release.
    if let Err(error) = holder.release().await {
        complain(&format!(
            "highwater: the lease isn't released, and lapses: {error}"
        ));
    }
    match ended? {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(status) => Err(Failure::Command {
            code: code_of(status),
        }),
        End::Lost(lost) => Err(Failure::LeaseLost(lost)),
    }
}

/// The exit code of a command, as shells give it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| signal + 128));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn begin(args: &RunArgs, client: &Client, holder: &LeaseHolder) -> Result<Child, Failure> {
    let what = "run the command";
    let Some((program, rest)) = args.command.split_first() else {
        return Err(InputError::Missing { what: "COMMAND" }.into());
    };
    let destination = client.destination();
    Command::new(program)
        .args(rest)
        .env("HIGHWATER_AUTHORITY", holder.authority().to_string())
        .env("HIGHWATER_LEASE", holder.lease().id.to_string())
        .env("HIGHWATER_DESTINATION", destination.id.to_string())
        .env("HIGHWATER_INCARNATION", destination.incarnation.to_string())
        .spawn()
        .map_err(system(what))
}

/// Waits for the end of the command, or of the lease. Signals to this process are handed on.
async fn watch(mut child: Child, holder: &LeaseHolder, grace: Duration) -> Result<End, Failure> {
    let what = "wait for the command";
    let mut terminate = signal(SignalKind::terminate()).map_err(system(what))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(system(what))?;
    loop {
        tokio::select! {
            biased;
            status = child.wait() => return status.map(End::Exited).map_err(system(what)),
            lost = holder.lost() => {
                stop(&mut child, grace).await.map_err(system(what))?;
                return Ok(End::Lost(lost));
            }
            _ = terminate.recv() => send(&child, Signal::TERM),
            _ = interrupt.recv() => send(&child, Signal::INT),
        }
    }
}

/// Ends the command: with SIGTERM, and with SIGKILL where it is still there after the grace.
async fn stop(child: &mut Child, grace: Duration) -> io::Result<()> {
    send(child, Signal::TERM);
    if timeout(grace, child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(())
}

fn send(child: &Child, signal: Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = id.and_then(Pid::from_raw) {
        // One that has just ended doesn't need it.
        let _ = kill_process(pid, signal);
    }
}
