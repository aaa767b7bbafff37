//! What a failed call means for its caller.

use std::error::Error;
use std::fmt;

use highwater_core::{Malformed, Reason, Rejection, Revision, Unavailable};
use highwater_proto::convert::FromWire;
use highwater_proto::status;
use tonic::{ConnectError, Status};

use crate::holder::{Lost, Standing};

/// Why a call has no result. The variants with a [`Rejection`] are the destination's word that
/// nothing was done; they hold all that it observed.
#[derive(Clone, Debug)]
pub enum ClientError {
    /// Stop: the authority isn't the one to write here any more, and no retry can help.
    LostAuthority(Box<Rejection>),
    /// A condition didn't hold, or asked about too old a time: read again and decide anew.
    ConditionFailed(Box<Rejection>),
    /// The request can't be accepted as it is: malformed, or lacking what the domain demands.
    FixRequest(Box<Rejection>),
    /// The holder isn't bound to the caller's identity.
    WrongHolder(Box<Rejection>),
    /// There is no such domain, or there is one already.
    Domain(Box<Rejection>),
    /// The intent has another outcome, takes no more steps, or isn't known.
    Intent(Box<Rejection>),
    /// The destination takes no effects now, or a queue is full; the same request may be sent
    /// later.
    Unavailable(Box<Rejection>),
    /// A bound of the destination is reached, and waiting won't help.
    Exhausted(Box<Rejection>),
    /// The session lost its authority in an earlier call. Nothing was sent.
    SessionStopped {
        /// What the destination said then.
        evidence: Box<Rejection>,
    },
    /// The holder doesn't hold its lease, or can't know whether it does. Nothing was sent.
    NotHolder(Standing),
    /// A write may or may not have happened: find out before doing anything again, or send the very
    /// same step of an intent again. Nothing else is ever repeated.
    OutcomeUnknown {
        /// What ended the call; `None` where the destination itself said so in band.
        cause: Option<Box<Status>>,
    },
    /// Nothing was done: the request didn't reach the store.
    NotSent(NotSent),
    /// The history doesn't reach back to where the watch wanted to begin, or it fell behind. Read
    /// the state anew and watch from its revision.
    WatchTooOld {
        /// The revision after which changes were wanted.
        requested: Option<Revision>,
        /// The oldest revision that a watch can begin after.
        oldest: Option<Revision>,
    },
    /// A read failed.
    ReadFailed(Box<Status>),
    /// An answer can't be read, as of a newer server. A write that it answers may have happened.
    Answer(Malformed),
}

/// Why nothing was sent, or nothing was done with it.
#[derive(Clone, Debug)]
pub enum NotSent {
    /// The address isn't one.
    Address {
        /// What was given.
        address: String,
    },
    /// No connection could be made; the same request may be sent again.
    Connect(Box<Status>),
    /// The server refused it before the store saw it: it can't be read, or says more than the
    /// server knows, or a bound is reached, or the server shuts down.
    Refused(Box<Status>),
    /// The message is longer than a server takes.
    TooLarge {
        /// How long it is, in bytes.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// The pipeline has ended; its verdicts say why.
    PipelineEnded,
}

impl ClientError {
    /// What a rejection means.
    #[must_use]
    pub fn of_rejection(rejection: Box<Rejection>) -> Self {
        match &rejection.reason {
            Reason::WrongDestination
            | Reason::StaleEpoch { .. }
            | Reason::UnknownEpoch { .. }
            | Reason::StaleTerm { .. }
            | Reason::HolderConflict { .. }
            | Reason::SequenceJump { .. }
            | Reason::LeaseGone { .. }
            | Reason::UnknownTerm { .. }
            | Reason::NotLeased { .. } => Self::LostAuthority(rejection),
            Reason::ConditionFailed { .. }
            | Reason::TooOld { .. }
            | Reason::LeaseHeld { .. }
            | Reason::LeaseDelayed { .. } => Self::ConditionFailed(rejection),
            Reason::Malformed(_) | Reason::AuthorityRequired | Reason::PreconditionRequired => {
                Self::FixRequest(rejection)
            }
            Reason::IntentConflict(_) | Reason::IntentClosed { .. } | Reason::UnknownIntent => {
                Self::Intent(rejection)
            }
            Reason::WrongHolder { .. } => Self::WrongHolder(rejection),
            Reason::UnknownDomain | Reason::DomainExists => Self::Domain(rejection),
            Reason::Unavailable(
                Unavailable::Frozen
                | Unavailable::RecoveryRequired
                | Unavailable::Poisoned
                | Unavailable::Overloaded
                | Unavailable::DiskFull
                | Unavailable::Incomplete,
            ) => Self::Unavailable(rejection),
            Reason::TooManyDomains
            | Reason::RevisionExhausted
            | Reason::MetagenerationExhausted
            | Reason::IntentExhausted { .. }
            | Reason::SequenceExhausted => Self::Exhausted(rejection),
        }
    }

    /// What the status of a write means. Without the destination's word the outcome is unknown,
    /// unless no connection was made at all.
    #[must_use]
    pub fn of_write(status: Status) -> Self {
        match known(&status) {
            Some(error) => error,
            None => Self::OutcomeUnknown {
                cause: Some(Box::new(status)),
            },
        }
    }

    /// What the status of a read means.
    #[must_use]
    pub fn of_read(status: Status) -> Self {
        if let Some(error) = known(&status) {
            return error;
        }
        match status::too_old(&status) {
            Some(too_old) => Self::WatchTooOld {
                requested: Revision::from_wire(too_old.requested).ok(),
                oldest: Revision::from_wire(too_old.oldest).ok(),
            },
            None => Self::ReadFailed(Box::new(status)),
        }
    }

    /// The rejection, where the destination gave one.
    #[must_use]
    pub const fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::LostAuthority(rejection)
            | Self::ConditionFailed(rejection)
            | Self::FixRequest(rejection)
            | Self::WrongHolder(rejection)
            | Self::Domain(rejection)
            | Self::Intent(rejection)
            | Self::Unavailable(rejection)
            | Self::Exhausted(rejection)
            | Self::SessionStopped {
                evidence: rejection,
            } => Some(rejection),
            Self::NotHolder(Standing::Lost(Lost::Refused(rejection))) => Some(rejection),
            Self::NotHolder(_)
            | Self::OutcomeUnknown { .. }
            | Self::NotSent(_)
            | Self::WatchTooOld { .. }
            | Self::ReadFailed(_)
            | Self::Answer(_) => None,
        }
    }

    /// Whether a write that ended so may have happened.
    #[must_use]
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { .. } | Self::Answer(_))
    }
}

/// What a status proves by itself.
fn known(status: &Status) -> Option<ClientError> {
    match status::rejection(status) {
        Some(Ok(rejection)) => return Some(ClientError::of_rejection(Box::new(rejection))),
        // A reason of a newer server: nothing was done, but what it means isn't known.
        Some(Err(malformed)) => return Some(ClientError::Answer(malformed)),
        None => {}
    }
    if status::is_not_executed(status) {
        return Some(ClientError::NotSent(NotSent::Refused(Box::new(
            status.clone(),
        ))));
    }
    is_unconnected(status).then(|| ClientError::NotSent(NotSent::Connect(Box::new(status.clone()))))
}

/// Whether the transport says that there was no connection to send on.
pub(crate) fn is_unconnected(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LostAuthority(rejection)
            | Self::ConditionFailed(rejection)
            | Self::FixRequest(rejection)
            | Self::WrongHolder(rejection)
            | Self::Domain(rejection)
            | Self::Intent(rejection)
            | Self::Unavailable(rejection)
            | Self::Exhausted(rejection) => rejection.fmt(f),
            Self::SessionStopped { evidence } => {
                write!(
                    f,
                    "the session has lost its authority and is stopped: {evidence}"
                )
            }
            Self::NotHolder(standing) => write!(f, "nothing was sent: {standing}"),
            Self::OutcomeUnknown { cause } => {
                f.write_str("whether the write happened isn't known; find out before going on")?;
                match cause {
                    Some(cause) => write!(f, " ({cause})"),
                    None => Ok(()),
                }
            }
            Self::NotSent(why) => why.fmt(f),
            Self::WatchTooOld { .. } => {
                f.write_str("the history doesn't reach back so far; read anew and watch from there")
            }
            Self::ReadFailed(status) => write!(f, "the read failed: {status}"),
            Self::Answer(malformed) => write!(f, "the answer can't be read: {malformed}"),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::OutcomeUnknown {
                cause: Some(status),
            }
            | Self::ReadFailed(status) => Some(&**status),
            Self::Answer(malformed) => Some(malformed),
            other => other.rejection().map(|rejection| rejection as _),
        }
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { address } => write!(f, "'{address}' isn't an address"),
            Self::Connect(status) => write!(f, "no connection, so nothing was sent: {status}"),
            Self::Refused(status) => write!(f, "the server refused the call: {status}"),
            Self::TooLarge { bytes, max } => {
                write!(f, "the message has {bytes} bytes; a server takes {max}")
            }
            Self::PipelineEnded => f.write_str("the pipeline has ended; nothing was sent"),
        }
    }
}

impl From<NotSent> for ClientError {
    fn from(why: NotSent) -> Self {
        Self::NotSent(why)
    }
}

impl From<Malformed> for ClientError {
    fn from(malformed: Malformed) -> Self {
        Self::Answer(malformed)
    }
}
