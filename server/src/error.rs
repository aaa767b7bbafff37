//! Why a server can't serve.

use std::fmt;
use std::io;

use crate::descriptors::DESCRIPTORS_RESERVED;
use crate::options::OptionError;

/// Why a server didn't begin, or ended by itself.
#[derive(Debug)]
pub enum ServeError {
    /// An option is out of its bounds.
    Options(OptionError),
    /// The process may have so few file descriptors that none is left for a connection.
    Descriptors {
        /// How many it may have.
        limit: u64,
    },
    /// The listening socket can't be used.
    Listener(io::Error),
    /// The service's own description can't be read: a defect of the build.
    Description(tonic_reflection::server::Error),
    /// The transport gave up.
    Transport(tonic::transport::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(error) => error.fmt(f),
            Self::Descriptors { limit } => write!(
                f,
                "the process may have {limit} file descriptors (ulimit -n), of which the store and \
                 the runtime need {DESCRIPTORS_RESERVED}: none is left for a connection"
            ),
            Self::Listener(error) => write!(f, "the listening socket can't be used: {error}"),
            Self::Description(error) => write!(f, "the service's description is bad: {error}"),
            Self::Transport(error) => write!(f, "the transport gave up: {error}"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Options(error) => Some(error),
            Self::Descriptors { .. } => None,
            Self::Listener(error) => Some(error),
            Self::Description(error) => Some(error),
            Self::Transport(error) => Some(error),
        }
    }
}

impl From<OptionError> for ServeError {
    fn from(error: OptionError) -> Self {
        Self::Options(error)
    }
}
