//! Rejections as gRPC statuses with details, and back.
//!
//! A status says twice what happened: its code tells a careless client that nothing was done and
//! roughly why; its details hold the whole evidence. Statuses travel in HTTP/2 headers, which many
//! clients bound at 8 KiB, so the sentence is cut at [`MESSAGE_TEXT_BYTES_MAX`] and the metadata of
//! the `ErrorInfo` leaves out what is longer than [`INFO_VALUE_BYTES_MAX`]; the
//! [`v1::Rejection`] is always whole.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use highwater_core::{Malformed, Reason, Rejection, Unavailable, escape};
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};
use tonic_types::pb;

use crate::convert::{FromWire, ToWire};
use crate::v1;

/// The `domain` of every `ErrorInfo`.
pub const ERROR_DOMAIN: &str = "highwater.v1";
/// Longest sentence of a status, in bytes.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 512;
/// Longest value in the metadata of an `ErrorInfo`, in bytes.
pub const INFO_VALUE_BYTES_MAX: usize = 256;
/// The `reason` of the `ErrorInfo` of a call that a server refused before it looked at it.
pub const NOT_EXECUTED: &str = "NotExecuted";
/// How long a client is asked to wait before it repeats a request that found a queue full.
pub const RETRY_OVERLOADED: Duration = Duration::from_millis(50);
/// How long a client is asked to wait before it repeats a request that can't succeed at once.
pub const RETRY_UNAVAILABLE: Duration = Duration::from_secs(1);

const ERROR_INFO: &str = "google.rpc.ErrorInfo";
const RETRY_INFO: &str = "google.rpc.RetryInfo";
const REJECTION: &str = "highwater.v1.Rejection";
const WATCH_TOO_OLD: &str = "highwater.v1.WatchTooOld";

/// The gRPC code that a reason travels under. Lost authority (stop) and a failed condition (begin
/// the read-modify-write again) never share one.
#[must_use]
pub const fn code_of(reason: &Reason) -> Code {
    match reason {
        Reason::WrongDestination
        | Reason::StaleEpoch { .. }
        | Reason::UnknownEpoch { .. }
        | Reason::StaleTerm { .. }
        | Reason::HolderConflict { .. }
        | Reason::SequenceJump { .. }
        | Reason::LeaseGone { .. }
        | Reason::UnknownTerm { .. }
        | Reason::NotLeased { .. } => Code::FailedPrecondition,
        Reason::ConditionFailed { .. }
        | Reason::TooOld { .. }
        | Reason::LeaseHeld { .. }
        | Reason::LeaseDelayed { .. } => Code::Aborted,
        Reason::Malformed(_) | Reason::AuthorityRequired | Reason::PreconditionRequired => {
            Code::InvalidArgument
        }
        Reason::UnknownDomain | Reason::UnknownIntent => Code::NotFound,
        Reason::DomainExists | Reason::IntentConflict(_) | Reason::IntentClosed { .. } => {
            Code::AlreadyExists
        }
        Reason::WrongHolder { .. } => Code::PermissionDenied,
        Reason::Unavailable(
            Unavailable::Frozen
            | Unavailable::RecoveryRequired
            | Unavailable::Poisoned
            | Unavailable::Incomplete,
        ) => Code::Unavailable,
        Reason::Unavailable(Unavailable::Overloaded | Unavailable::DiskFull)
        | Reason::TooManyDomains
        | Reason::RevisionExhausted
        | Reason::MetagenerationExhausted
        | Reason::IntentExhausted { .. }
        | Reason::SequenceExhausted => Code::ResourceExhausted,
    }
}

/// How long to wait before the same request is sent again, where that can help.
#[must_use]
pub const fn retry_after(reason: &Reason) -> Option<Duration> {
    match reason {
        Reason::Unavailable(Unavailable::Overloaded) => Some(RETRY_OVERLOADED),
        Reason::Unavailable(
            Unavailable::Frozen
            | Unavailable::RecoveryRequired
            | Unavailable::Poisoned
            | Unavailable::DiskFull
            | Unavailable::Incomplete,
        ) => Some(RETRY_UNAVAILABLE),
        Reason::Malformed(_)
        | Reason::WrongDestination
        | Reason::UnknownDomain
        | Reason::DomainExists
        | Reason::TooManyDomains
        | Reason::AuthorityRequired
        | Reason::PreconditionRequired
        | Reason::StaleEpoch { .. }
        | Reason::UnknownEpoch { .. }
        | Reason::StaleTerm { .. }
        | Reason::HolderConflict { .. }
        | Reason::SequenceJump { .. }
        | Reason::WrongHolder { .. }
        | Reason::ConditionFailed { .. }
        | Reason::TooOld { .. }
        | Reason::RevisionExhausted
        | Reason::MetagenerationExhausted
        | Reason::IntentConflict(_)
        | Reason::IntentClosed { .. }
        | Reason::UnknownIntent
        | Reason::IntentExhausted { .. }
        | Reason::LeaseHeld { .. }
        | Reason::LeaseDelayed { .. }
        | Reason::LeaseGone { .. }
        | Reason::UnknownTerm { .. }
        | Reason::NotLeased { .. }
        | Reason::SequenceExhausted => None,
    }
}

/// The status of a rejection, with its details.
///
/// ```
/// use highwater_core::{Reason, Rejection};
/// use highwater_proto::status;
///
/// fn answer(rejection: &Rejection) -> tonic::Status {
///     let answer = status::from_rejection(rejection);
///     let read = status::rejection(&answer);
///     assert_eq!(read, Some(Ok(rejection.clone())));
///     answer
/// }
/// ```
#[must_use]
pub fn from_rejection(rejection: &Rejection) -> Status {
    let reason = &rejection.reason;
    let mut details = vec![
        any(
            ERROR_INFO,
            &pb::ErrorInfo {
                reason: reason.code().into(),
                domain: ERROR_DOMAIN.into(),
                metadata: info(rejection).into_iter().collect(),
            },
        ),
        any(REJECTION, &rejection.to_wire()),
    ];
    if let Some(after) = retry_after(reason) {
        details.push(any(
            RETRY_INFO,
            &pb::RetryInfo {
                retry_delay: prost_types::Duration::try_from(after).ok(),
            },
        ));
    }
    with_details(code_of(reason), &rejection.to_string(), details)
}

/// The status of a watch whose history no longer reaches back.
#[must_use]
pub fn watch_too_old(detail: &v1::WatchTooOld) -> Status {
    let message = format!(
        "changes after revision {} are not kept any more; the oldest is {}; read again",
        detail.requested, detail.oldest
    );
    with_details(Code::OutOfRange, &message, vec![any(WATCH_TOO_OLD, detail)])
}

/// The status of a call that the server refuses before the store sees it: nothing was done. At the
/// end of a commit stream it says so of every command that has no verdict.
#[must_use]
pub fn not_executed(code: Code, message: &str) -> Status {
    let info = pb::ErrorInfo {
        reason: NOT_EXECUTED.into(),
        domain: ERROR_DOMAIN.into(),
        metadata: BTreeMap::new().into_iter().collect(),
    };
    with_details(code, message, vec![any(ERROR_INFO, &info)])
}

/// Whether a status says that nothing was done, as [`not_executed`] does.
#[must_use]
pub fn is_not_executed(status: &Status) -> bool {
    detail::<pb::ErrorInfo>(status, ERROR_INFO)
        .is_some_and(|info| info.domain == ERROR_DOMAIN && info.reason == NOT_EXECUTED)
}

/// The rejection in a status; `None` where there is none, as in one of a proxy or the transport.
/// An error means that there is one that can't be read, as of a newer destination.
#[must_use]
pub fn rejection(status: &Status) -> Option<Result<Rejection, Malformed>> {
    let wire: v1::Rejection = detail(status, REJECTION)?;
    Some(Rejection::from_wire(wire))
}

/// The detail of a watch that was too old; `None` where there is none.
#[must_use]
pub fn too_old(status: &Status) -> Option<v1::WatchTooOld> {
    detail(status, WATCH_TOO_OLD)
}

fn with_details(code: Code, message: &str, details: Vec<Any>) -> Status {
    let message = cut(message);
    let encoded = pb::Status {
        code: i32::from(code),
        message: message.into(),
        details,
    };
    Status::with_details(code, message, Bytes::from(encoded.encode_to_vec()))
}

fn any(name: &str, message: &impl Message) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{name}"),
        value: message.encode_to_vec(),
    }
}

fn detail<M: Message + Default>(status: &Status, name: &str) -> Option<M> {
    let details = pb::Status::decode(status.details()).ok()?.details;
    let is_wanted = |any: &&Any| any.type_url.rsplit('/').next() == Some(name);
    let any = details.iter().find(is_wanted)?;
    M::decode(any.value.as_slice()).ok()
}

/// The longest beginning of a text that is within the bound and whole characters.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MESSAGE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

/// What was observed, as text by name, for clients that don't know our messages.
fn info(rejection: &Rejection) -> BTreeMap<String, String> {
    let observed = &rejection.observed;
    let mut facts = BTreeMap::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| value.len() <= INFO_VALUE_BYTES_MAX) {
            facts.insert(name.into(), value);
        }
    };
    fact("destination", Some(observed.destination.to_string()));
    fact("incarnation", Some(observed.incarnation.to_string()));
    fact("revision", Some(observed.revision.to_string()));
    fact("epoch", observed.epoch.map(|epoch| epoch.to_string()));
    let guard = observed.guard.as_ref();
    fact("guard", guard.map(|guard| escape(guard.as_bytes())));
    let fence = observed.fence.as_ref();
    fact(
        "sequence",
        fence.map(|fence| fence.term.sequence.to_string()),
    );
    fact("holder", fence.map(|fence| escape(fence.holder.as_bytes())));
    let intent = observed.intent.as_ref();
    fact("intent", intent.map(|intent| escape(intent.id.as_bytes())));
    let key = observed.key.as_ref();
    fact("key", key.map(|key| escape(key.as_bytes())));
    let generation = key.map(|_| observed.generation.map_or(0, |generation| generation.get()));
    fact(
        "generation",
        generation.map(|generation| generation.to_string()),
    );
    facts
}
