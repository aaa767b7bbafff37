//! The exit codes: a stable part of the interface.

use std::process::ExitCode;

use highwater_client::{ClientError, NotSent};
use tonic::Code;

use super::failure::Effect;

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
    /// A condition doesn't hold, or an intent has another outcome, has ended or isn't known: read
    /// again and decide anew.
    ConditionFailed = 4,
    /// Nothing was done; the same request may succeed later.
    Unavailable = 5,
    /// Whether the write happened isn't known, or it did and its answer couldn't be told.
    OutcomeUnknown = 6,
    /// The lease that a command ran under was lost, and the command was ended.
    LeaseLost = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The code of a call that has no result. What it means was decided by the client; this gives
    /// it a number.
    pub(crate) fn of(error: &ClientError, effect: Effect) -> Self {
        match error {
            ClientError::LostAuthority(_)
            | ClientError::SessionStopped { .. }
            | ClientError::NotHolder(_) => Self::LostAuthority,
            ClientError::ConditionFailed(_) | ClientError::Intent(_) => Self::ConditionFailed,
            ClientError::FixRequest(_)
            | ClientError::NotSent(NotSent::Address { .. } | NotSent::TooLarge { .. }) => {
                Self::Usage
            }
            ClientError::Unavailable(_) | ClientError::NotSent(NotSent::Connect(_)) => {
                Self::Unavailable
            }
            ClientError::OutcomeUnknown { .. } => Self::OutcomeUnknown,
            ClientError::Answer(_) => match effect {
                Effect::Writes => Self::OutcomeUnknown,
                Effect::Reads => Self::Other,
            },
            ClientError::NotSent(NotSent::Refused(status)) | ClientError::ReadFailed(status) => {
                Self::of_unchanged(status.code())
            }
            ClientError::Domain(_)
            | ClientError::WrongHolder(_)
            | ClientError::Exhausted(_)
            | ClientError::WatchTooOld { .. }
            | ClientError::NotSent(NotSent::PipelineEnded) => Self::Other,
        }
    }

    /// The code of a call that changed nothing.
    const fn of_unchanged(code: Code) -> Self {
        match code {
            Code::InvalidArgument => Self::Usage,
            Code::Unavailable
            | Code::ResourceExhausted
            | Code::DeadlineExceeded
            | Code::Cancelled => Self::Unavailable,
            _ => Self::Other,
        }
    }
}
