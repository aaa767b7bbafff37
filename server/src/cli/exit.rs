//! The exit codes: a stable part of the interface.

use std::process::ExitCode;

use highwater::{Reason, Unavailable};

/// How a run ended. The numbers never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// Accepted, or answered.
    Accepted = 0,
    /// Anything that has no code of its own.
    Other = 1,
    /// The request is wrong in itself.
    Usage = 2,
    /// The authority is lost, or the destination is another one: stop.
    LostAuthority = 3,
    /// A condition doesn't hold: read again and decide anew.
    ConditionFailed = 4,
    /// Nothing was done; the same request may succeed later.
    Unavailable = 5,
    /// Whether the write happened isn't known.
    OutcomeUnknown = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The code of a rejection.
    pub(crate) const fn of(reason: &Reason) -> Self {
        match reason {
            Reason::Malformed(_) | Reason::AuthorityRequired | Reason::PreconditionRequired => {
                Self::Usage
            }
            Reason::WrongDestination
            | Reason::StaleEpoch { .. }
            | Reason::UnknownEpoch { .. }
            | Reason::StaleTerm { .. }
            | Reason::HolderConflict { .. }
            | Reason::SequenceJump { .. } => Self::LostAuthority,
            Reason::ConditionFailed { .. } | Reason::TooOld { .. } => Self::ConditionFailed,
            Reason::Unavailable(
                Unavailable::Frozen
                | Unavailable::RecoveryRequired
                | Unavailable::Poisoned
                | Unavailable::Overloaded
                | Unavailable::DiskFull
                | Unavailable::Incomplete,
            ) => Self::Unavailable,
            Reason::UnknownDomain
            | Reason::DomainExists
            | Reason::TooManyDomains
            | Reason::WrongHolder { .. }
            | Reason::RevisionExhausted
            | Reason::MetagenerationExhausted => Self::Other,
        }
    }
}
