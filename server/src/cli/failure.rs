//! Why a command has no result, and what that means for the caller.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use highwater::{ConfigError, Malformed, OpenError, Rejection};
use highwater_proto::{status, v1};
use highwater_server::{OptionError, ServeError};
use tonic::{Code, Status};

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
    /// The destination refused it; nothing was done.
    Rejected(Box<Rejection>),
    /// The key doesn't exist.
    Absent,
    /// No connection; nothing was sent.
    NoConnection {
        /// Where to.
        endpoint: String,
        /// Why; `None` if the time was over.
        source: Option<tonic::transport::Error>,
    },
    /// The server refused to look at the request; nothing was done.
    NotExecuted(Status),
    /// Whether the write happened isn't known.
    OutcomeUnknown(Box<Unknown>),
    /// A read wasn't answered in time.
    Timeout,
    /// The history doesn't reach back to where a watch was to begin.
    WatchTooOld(v1::WatchTooOld),
    /// A read failed.
    Read(Status),
    /// An answer can't be understood.
    Answer(Malformed),
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
    /// The demonstration saw another verdict than it must be.
    Demo,
}

/// Why an outcome isn't known.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// The time was over.
    Timeout,
    /// The call broke, or the store said so.
    Status(Status),
    /// The answer can't be understood.
    Answer(Malformed),
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
    /// What a status means after a call of this effect. A code alone can come from a proxy or from
    /// the transport: only with its details is it the destination's word that nothing happened.
    pub(crate) fn of_status(status: Status, effect: Effect) -> Self {
        match status::rejection(&status) {
            Some(Ok(rejection)) => return Self::Rejected(Box::new(rejection)),
            Some(Err(malformed)) => return Self::of_answer(malformed, effect),
            None => {}
        }
        if status::is_not_executed(&status) {
            return Self::NotExecuted(status);
        }
        match effect {
            Effect::Writes => Self::OutcomeUnknown(Box::new(Unknown::Status(status))),
            Effect::Reads => match status::too_old(&status) {
                Some(detail) => Self::WatchTooOld(detail),
                None => Self::Read(status),
            },
        }
    }

    /// What an answer means that can't be understood.
    pub(crate) fn of_answer(malformed: Malformed, effect: Effect) -> Self {
        match effect {
            Effect::Writes => Self::OutcomeUnknown(Box::new(Unknown::Answer(malformed))),
            Effect::Reads => Self::Answer(malformed),
        }
    }

    /// What it means that the time is over.
    pub(crate) fn of_timeout(effect: Effect) -> Self {
        match effect {
            Effect::Writes => Self::OutcomeUnknown(Box::new(Unknown::Timeout)),
            Effect::Reads => Self::Timeout,
        }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::BrokenPipe => Exit::Accepted,
            Self::Rejected(rejection) => Exit::of(&rejection.reason),
            Self::Input(_) | Self::ConfigFile { .. } | Self::Config(_) | Self::Options(_) => {
                Exit::Usage
            }
            Self::OutcomeUnknown(_) => Exit::OutcomeUnknown,
            Self::NoConnection { .. } | Self::Timeout => Exit::Unavailable,
            Self::NotExecuted(status) | Self::Read(status) => of_code(status.code()),
            Self::Absent
            | Self::WatchTooOld(_)
            | Self::Answer(_)
            | Self::PrintConfig(_)
            | Self::Output(_)
            | Self::Open(_)
            | Self::Listen { .. }
            | Self::Serve(_)
            | Self::Store(_)
            | Self::System { .. }
            | Self::Demo => Exit::Other,
        }
    }

    /// A short name for scripts.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::WatchTooOld(_) => "watch_too_old",
            _ => match self.exit() {
                Exit::Usage => "usage",
                Exit::Unavailable => "unavailable",
                Exit::OutcomeUnknown => "outcome_unknown",
                Exit::Accepted | Exit::Other | Exit::LostAuthority | Exit::ConditionFailed => {
                    "failed"
                }
            },
        }
    }
}

/// The exit code of a call that changed nothing.
fn of_code(code: Code) -> Exit {
    match code {
        Code::InvalidArgument => Exit::Usage,
        Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded | Code::Cancelled => {
            Exit::Unavailable
        }
        _ => Exit::Other,
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
            highwater::Error::Rejected(rejection) => Self::Rejected(rejection),
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
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Absent => f.write_str("the key doesn't exist"),
            Self::NoConnection { endpoint, source } => {
                write!(f, "can't connect to {endpoint}: ")?;
                match source {
                    Some(error) => explain(f, error)?,
                    None => f.write_str("no answer in time")?,
                }
                f.write_str("; nothing was sent")
            }
            Self::NotExecuted(status) | Self::Read(status) => f.write_str(status.message()),
            Self::OutcomeUnknown(unknown) => {
                f.write_str("whether the write happened isn't known (")?;
                match &**unknown {
                    Unknown::Timeout => f.write_str("no answer in time")?,
                    Unknown::Status(status) => {
                        write!(f, "{:?}: {}", status.code(), status.message())?;
                    }
                    Unknown::Answer(malformed) => write!(f, "the answer is odd: {malformed}")?,
                }
                f.write_str("); read before you write again")
            }
            Self::Timeout => f.write_str("no answer in time"),
            Self::WatchTooOld(detail) => write!(
                f,
                "changes after revision {} are not kept any more, the oldest is {}; read the state \
                 and watch from there",
                detail.requested, detail.oldest
            ),
            Self::Answer(malformed) => write!(f, "the answer can't be understood: {malformed}"),
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
