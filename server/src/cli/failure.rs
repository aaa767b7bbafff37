//! Why a command has no result, and what that means for the caller.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use highwater::{AuditVerifyError, ConfigError, Malformed, OpenError, Rejection, Revision};
use highwater_client::{ClientError, Lost, NotSent};
use highwater_server::{OptionError, ServeError};
use tonic::Status;

use super::exit::Exit;
use super::input::InputError;

/// Whether a call changes anything, which decides what its silence means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// It reads only.
    Reads,
    /// It may have written.
    Writes,
}

/// Why a command has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was typed can't be used; nothing was sent.
    Input(InputError),
    /// A call has no result.
    Call {
        /// What it means.
        error: Box<ClientError>,
        /// Whether the call may have written.
        effect: Effect,
    },
    /// A write was accepted, but what the destination said of it couldn't be told.
    Untold {
        /// Where it was accepted.
        revision: Revision,
        /// What went wrong then.
        source: Box<Failure>,
    },
    /// The key doesn't exist.
    Absent,
    /// The intent isn't known.
    UnknownIntent,
    /// An intent that was to be resolved takes its next step.
    NotIndeterminate,
    /// The server isn't the destination that was meant; nothing was sent.
    OtherDestination,
    /// The lease that a command ran under was lost, and the command was ended.
    LeaseLost(Lost),
    /// A command that ran under a lease ended with this code, which isn't 0.
    Command {
        /// The code.
        code: u8,
    },
    /// No connection; nothing was sent.
    NoConnection {
        /// Where to.
        endpoint: String,
        /// Why; `None` if the time was over.
        source: Option<tonic::transport::Error>,
    },
    /// Standard output is closed: nobody is reading any more.
    BrokenPipe,
    /// Standard output can't be written.
    Output(io::Error),
    /// The configuration file can't be used.
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ConfigFileError,
    },
    /// The settings can't be written as TOML.
    PrintConfig(toml::ser::Error),
    /// A setting of the store is out of its bounds.
    Config(ConfigError),
    /// A setting of the server is out of its bounds.
    Options(OptionError),
    /// The store can't be opened.
    Open(Box<OpenError>),
    /// The address can't be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The server gave up.
    Serve(ServeError),
    /// The store failed.
    Store(highwater::Error),
    /// The system refused something that is needed to run.
    System {
        /// What.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The audit trail isn't in order, or can't be read.
    Audit(AuditVerifyError),
    /// The demonstration saw another verdict than it must be.
    Demo,
}

/// Why a configuration file can't be used.
#[derive(Debug)]
pub(crate) enum ConfigFileError {
    /// It can't be read.
    Read(InputError),
    /// It isn't UTF-8.
    Text,
    /// It isn't what is expected.
    Toml(toml::de::Error),
}

impl Failure {
    /// What a status means after a call of this effect.
    pub(crate) fn of_status(status: Status, effect: Effect) -> Self {
        let error = match effect {
            Effect::Reads => ClientError::of_read(status),
            Effect::Writes => ClientError::of_write(status),
        };
        Self::of_call(error, effect)
    }

    /// What an answer means that can't be understood.
    pub(crate) fn of_answer(malformed: Malformed, effect: Effect) -> Self {
        Self::of_call(ClientError::Answer(malformed), effect)
    }

    /// A read's answer that can't be understood.
    pub(crate) fn of_odd_read(malformed: Malformed) -> Self {
        Self::of_answer(malformed, Effect::Reads)
    }

    /// What it means that the time is over.
    pub(crate) fn of_timeout(effect: Effect) -> Self {
        Self::of_status(Status::deadline_exceeded("no answer in time"), effect)
    }

    /// What an error of the client means after a call of this effect.
    pub(crate) fn of_call(error: ClientError, effect: Effect) -> Self {
        let error = Box::new(error);
        Self::Call { error, effect }
    }

    /// Whatever goes wrong behind an acceptance doesn't take it back: a script that sends the write
    /// again would do it twice. A reader that has left wanted no answer.
    pub(crate) fn after_acceptance(self, revision: Revision) -> Self {
        match self {
            Self::BrokenPipe => Self::BrokenPipe,
            other => Self::Untold {
                revision,
                source: Box::new(other),
            },
        }
    }

    /// The rejection, where the destination gave one.
    pub(crate) fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Call { error, .. } => error.rejection(),
            _ => None,
        }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::BrokenPipe => Exit::Accepted,
            Self::Call { error, effect } => Exit::of(error, *effect),
            Self::Input(_) | Self::ConfigFile { .. } | Self::Config(_) | Self::Options(_) => {
                Exit::Usage
            }
            Self::Untold { .. } => Exit::OutcomeUnknown,
            Self::NotIndeterminate => Exit::ConditionFailed,
            Self::OtherDestination => Exit::LostAuthority,
            Self::LeaseLost(_) => Exit::LeaseLost,
            Self::NoConnection { .. } => Exit::Unavailable,
            Self::Absent
            | Self::UnknownIntent
            | Self::PrintConfig(_)
            | Self::Output(_)
            | Self::Open(_)
            | Self::Listen { .. }
            | Self::Serve(_)
            | Self::Store(_)
            | Self::Audit(_)
            | Self::System { .. }
            | Self::Command { .. }
            | Self::Demo => Exit::Other,
        }
    }

    /// A short name for scripts.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Absent | Self::UnknownIntent => "absent",
            Self::Untold { .. } => "untold",
            Self::LeaseLost(_) => "lease_lost",
            Self::Call { error, .. } if matches!(**error, ClientError::WatchTooOld { .. }) => {
                "watch_too_old"
            }
            _ => match self.exit() {
                Exit::Usage => "usage",
                Exit::Unavailable => "unavailable",
                Exit::OutcomeUnknown => "outcome_unknown",
                Exit::Accepted
                | Exit::Other
                | Exit::LostAuthority
                | Exit::ConditionFailed
                | Exit::LeaseLost => "failed",
            },
        }
    }
}

impl From<Failure> for ExitCode {
    fn from(failure: Failure) -> Self {
        failure.exit().into()
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl From<highwater::Error> for Failure {
    fn from(error: highwater::Error) -> Self {
        match error {
            highwater::Error::Rejected(rejection) => {
                Self::of_call(ClientError::of_rejection(rejection), Effect::Writes)
            }
            other => Self::Store(other),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Output(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Call { error, effect } => call(f, error, *effect),
            Self::Untold { revision, source } => write!(
                f,
                "accepted at revision {revision}, but not all of the answer could be told \
                 ({source}); don't send it again"
            ),
            Self::Absent => f.write_str("the key doesn't exist"),
            Self::UnknownIntent => f.write_str("no intent of that id is known"),
            Self::NotIndeterminate => f.write_str(
                "the intent is open, so there is nothing to resolve; close ends any intent",
            ),
            Self::OtherDestination => {
                f.write_str("the server is another destination than the one that was named")
            }
            Self::LeaseLost(lost) => write!(f, "the lease is lost; the command was ended: {lost}"),
            Self::Command { code } => write!(f, "the command ended with code {code}"),
            Self::NoConnection { endpoint, source } => {
                write!(f, "can't connect to {endpoint}: ")?;
                match source {
                    Some(error) => explain(f, error)?,
                    None => f.write_str("no answer in time")?,
                }
                f.write_str("; nothing was sent")
            }
            Self::BrokenPipe => f.write_str("nobody reads the output"),
            Self::Output(error) => write!(f, "the output can't be written: {error}"),
            Self::ConfigFile { source, .. } if matches!(source, ConfigFileError::Read(_)) => {
                source.fmt(f)
            }
            Self::ConfigFile { path, source } => write!(f, "{}: {source}", path.display()),
            Self::PrintConfig(error) => write!(f, "the settings can't be written: {error}"),
            Self::Config(error) => error.fmt(f),
            Self::Options(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Listen { address, source } => write!(f, "can't listen on {address}: {source}"),
            Self::Serve(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::System { what, source } => write!(f, "can't {what}: {source}"),
            Self::Audit(error) => error.fmt(f),
            Self::Demo => f.write_str("a verdict was not what it must be"),
        }
    }
}

impl fmt::Display for ConfigFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Text => f.write_str("the file isn't UTF-8"),
            Self::Toml(error) => error.fmt(f),
        }
    }
}

/// Writes what a call's error means, without the transport's own framing of it.
fn call(f: &mut fmt::Formatter<'_>, error: &ClientError, effect: Effect) -> fmt::Result {
    match (error, effect) {
        (ClientError::NotSent(NotSent::Refused(status)) | ClientError::ReadFailed(status), _) => {
            f.write_str(status.message())
        }
        (ClientError::OutcomeUnknown { .. }, _) | (ClientError::Answer(_), Effect::Writes) => {
            f.write_str("whether the write happened isn't known (")?;
            match error {
                ClientError::OutcomeUnknown {
                    cause: Some(status),
                } => write!(f, "{:?}: {}", status.code(), status.message())?,
                ClientError::Answer(malformed) => write!(f, "the answer is odd: {malformed}")?,
                _ => f.write_str("the destination says so")?,
            }
            f.write_str("); read before you write again")
        }
        (ClientError::Answer(malformed), Effect::Reads) => {
            write!(f, "the answer can't be understood: {malformed}")
        }
        (ClientError::WatchTooOld { requested, oldest }, _) => {
            let known = |revision: &Option<Revision>| revision.map_or(0, Revision::get);
            write!(
                f,
                "changes after revision {} are not kept any more, the oldest is {}; read the state \
                 and watch from there",
                known(requested),
                known(oldest)
            )
        }
        (other, _) => write!(f, "{other}"),
    }
}

/// Writes an error with its causes: the transport's own text alone says "transport error".
fn explain(f: &mut fmt::Formatter<'_>, error: &dyn std::error::Error) -> fmt::Result {
    write!(f, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(f, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
