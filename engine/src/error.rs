//! What the store could not do. A refusal by the rules is a [`Rejection`] and comes as data inside.

use std::fmt;
use std::io;
use std::path::PathBuf;

use highwater_core::{Observed, Reason, Rejection, Revision, Unavailable};
use highwater_wal::LogError;

use crate::config::ConfigError;
use crate::index::INDEX_FILE;

/// Why a call on an open store has no result.
#[derive(Debug, Clone)]
pub enum Error {
    /// The rules refused it: nothing was written. Holds the reason and what was observed.
    Rejected(Box<Rejection>),
    /// Whether the commit is durable is unknown; what is on disk decides at the next opening. Read
    /// the state after reopening before doing anything again.
    Indeterminate,
    /// The store is closed: nothing was written.
    Closed,
    /// The audit trail can't be written, and nothing is taken without it: nothing was written. It
    /// passes by itself once there is room for the trail, or its device works again.
    AuditUnavailable {
        /// What was observed.
        observed: Box<Observed>,
    },
    /// The history doesn't reach back that far, or the reader fell too far behind it.
    TooOld {
        /// The revision after which events were asked for.
        requested: Revision,
        /// The revision after which events are still known.
        oldest: Revision,
    },
    /// A revision was named that this store hasn't reached: it was seen somewhere else.
    NotReached {
        /// The revision that was named.
        requested: Revision,
        /// The last durable revision.
        current: Revision,
    },
    /// The snapshot was held longer than [`crate::Config::snapshot_age`].
    SnapshotExpired,
    /// Too many snapshots are open.
    TooManySnapshots,
    /// Reading from storage failed.
    Storage(StorageError),
}

/// What the caller of a failed call has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// Correct the request; it can never be accepted as it is.
    FixRequest,
    /// Stop: the authority isn't the one to write here any more.
    LostAuthority,
    /// Read again, and decide anew.
    ConditionFailed,
    /// Try again later, unchanged.
    Retry,
    /// Reopen the store, or call an operator.
    Reopen,
    /// Find out what happened before doing anything.
    Unknown,
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Rejected(rejection) => kind_of(&rejection.reason),
            Self::Indeterminate => ErrorKind::Unknown,
            Self::SnapshotExpired
            | Self::AuditUnavailable { .. }
            | Self::TooManySnapshots
            | Self::Storage(StorageError::NoRandom { .. }) => ErrorKind::Retry,
            Self::Closed | Self::Storage(_) => ErrorKind::Reopen,
            Self::TooOld { .. } => ErrorKind::ConditionFailed,
            Self::NotReached { .. } => ErrorKind::FixRequest,
        }
    }

    /// The rejection, if the rules refused it.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            _ => None,
        }
    }
}

fn kind_of(reason: &Reason) -> ErrorKind {
    if reason.is_lost_authority() {
        return ErrorKind::LostAuthority;
    }
    match reason {
        Reason::ConditionFailed { .. } | Reason::TooOld { .. } => ErrorKind::ConditionFailed,
        Reason::Unavailable(Unavailable::Poisoned | Unavailable::Incomplete) => ErrorKind::Reopen,
        Reason::Unavailable(_) => ErrorKind::Retry,
        _ => ErrorKind::FixRequest,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Indeterminate => f.write_str(
                "whether the commit is durable is unknown; reopen the store, and read first",
            ),
            Self::Closed => f.write_str("the store is closed"),
            Self::AuditUnavailable { .. } => f.write_str(
                "the audit trail can't be written, so nothing was done; free room where it is, or see \
                 the log for what fails, then try again",
            ),
            Self::TooOld { requested, oldest } => write!(
                f,
                "the history after revision {requested} isn't kept any more; it reaches back to \
                 revision {oldest}: read the state anew and watch from there"
            ),
            Self::NotReached { requested, current } => write!(
                f,
                "revision {requested} was named, but this store has only reached {current}; it was \
                 seen in another store or another incarnation"
            ),
            Self::SnapshotExpired => f.write_str("the snapshot was held too long and is ended"),
            Self::TooManySnapshots => f.write_str("too many snapshots are open; try again later"),
            Self::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rejected(rejection) => Some(&**rejection),
            Self::Storage(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Box<Rejection>> for Error {
    fn from(rejection: Box<Rejection>) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

/// A read from storage that failed.
#[derive(Debug, Clone)]
pub enum StorageError {
    /// The index could not be read or written.
    Index {
        /// What was tried.
        what: &'static str,
        /// What the index, or the operating system, said.
        detail: String,
    },
    /// The index's file isn't what was written to it. Nothing is answered from it any more.
    Damaged {
        /// Where in the file, in bytes, if that is known.
        offset: Option<u64>,
        /// What is wrong there.
        detail: String,
    },
    /// A row of the index isn't what the format says, or breaks an invariant. Nothing is answered
    /// from the index any more.
    Row {
        /// Which table.
        table: &'static str,
        /// Which row: the number of the domain and the key or guard, escaped.
        row: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The operating system gave no random number. Nothing is wrong with the store.
    NoRandom {
        /// What it said.
        detail: String,
    },
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index { what, detail } => {
                write!(f, "the index {INDEX_FILE} failed ({what}): {detail}")
            }
            Self::Damaged { offset, detail } => {
                write!(f, "{INDEX_FILE} is damaged")?;
                if let Some(offset) = offset {
                    write!(f, " at byte {offset}")?;
                }
                write!(f, ": {detail}")
            }
            Self::Row { table, row, detail } => {
                write!(
                    f,
                    "{INDEX_FILE} is damaged in row {row} of table {table}: {detail}"
                )
            }
            Self::NoRandom { detail } => {
                write!(
                    f,
                    "the operating system gave no random number: {detail}; try again"
                )
            }
        }
    }
}

impl std::error::Error for StorageError {}

/// Why a store couldn't be opened. No content of it was changed: at most the unconfirmed rest of
/// the last log frame was cleared, and the index finished its own recovery.
#[derive(Debug)]
pub enum OpenError {
    /// A setting is out of its bounds.
    Config(ConfigError),
    /// Another process, or another store of this one, has the directory open.
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A file is damaged or missing.
    Corrupt {
        /// The file.
        file: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong.
        detail: String,
    },
    /// The log could not be opened.
    Log(LogError),
    /// The index could not be opened, and the log doesn't reach back far enough to rebuild it.
    Index(StorageError),
    /// The storage failed.
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        file: String,
        /// What the storage said.
        source: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Locked { path } => write!(
                f,
                "another process has '{}' open; only one may at a time",
                path.display()
            ),
            Self::Corrupt {
                file,
                offset,
                detail,
            } => write!(
                f,
                "{file} is damaged at byte {offset}: {detail}; restore it"
            ),
            Self::Log(error) => error.fmt(f),
            Self::Index(error) => write!(f, "{error}; the log alone can't rebuild the index"),
            Self::Io { what, file, source } => write!(f, "can't {what} '{file}': {source}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Log(error) => Some(error),
            Self::Index(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            Self::Locked { .. } | Self::Corrupt { .. } => None,
        }
    }
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Corrupt {
                file,
                offset,
                damage,
            } => Self::Corrupt {
                file,
                offset,
                detail: damage.to_string(),
            },
            other => Self::Log(other),
        }
    }
}
