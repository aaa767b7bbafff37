//! What reasons say of intents.

use bytes::Bytes;
use highwater_core::{Ending, IntentConflict, IntentState, Malformed, Owner, Reason, Step};

use super::parts;
use super::rejection::{index_from_wire, index_to_wire};
use crate::v1::IntentReason;
use crate::v1::intent_reason::{Conflict, State};

const fn wrong() -> Malformed {
    Malformed::Number {
        what: parts::INTENT,
    }
}

/// What a reason about an intent holds; nothing for any other reason.
pub(super) fn to_wire(reason: &Reason) -> IntentReason {
    let mut wire = IntentReason::default();
    match reason {
        Reason::IntentConflict(conflict) => {
            let kind = match conflict {
                IntentConflict::Digest => Conflict::Digest,
                IntentConflict::Step { expected } => {
                    wire.expected_step = expected.map_or(0, Step::get);
                    Conflict::Step
                }
                IntentConflict::Binding => Conflict::Binding,
                IntentConflict::Guard => Conflict::Guard,
            };
            wire.conflict = i32::from(kind);
        }
        Reason::IntentClosed { state, mutation } => {
            wire.mutation_index = mutation.map(index_to_wire);
            let kind = match state {
                IntentState::Open => State::Open,
                IntentState::Indeterminate {
                    owner,
                    review_at_ms,
                } => {
                    wire.owner = Bytes::copy_from_slice(owner.as_bytes());
                    wire.review_at_ms = *review_at_ms;
                    State::Indeterminate
                }
                IntentState::Ended(Ending::Completed) => State::Completed,
                IntentState::Ended(Ending::Superseded) => State::Superseded,
                IntentState::Ended(Ending::Cancelled) => State::Cancelled,
                IntentState::Ended(Ending::Rejected) => State::Rejected,
            };
            wire.state = i32::from(kind);
        }
        Reason::IntentExhausted { bytes, max } => {
            wire.bytes = u64::try_from(*bytes).unwrap_or(u64::MAX);
            wire.max = u64::try_from(*max).unwrap_or(u64::MAX);
        }
        _ => {}
    }
    wire
}

/// Reads a conflict.
pub(super) fn conflict(wire: &IntentReason) -> Result<Reason, Malformed> {
    let kind = Conflict::try_from(wire.conflict).map_err(|_| wrong())?;
    Ok(Reason::IntentConflict(match kind {
        Conflict::Unspecified => return Err(wrong()),
        Conflict::Digest => IntentConflict::Digest,
        Conflict::Step => IntentConflict::Step {
            expected: match wire.expected_step {
                0 => None,
                number => Some(Step::new(number).ok_or_else(wrong)?),
            },
        },
        Conflict::Binding => IntentConflict::Binding,
        Conflict::Guard => IntentConflict::Guard,
    }))
}

/// Reads what an intent is in.
pub(super) fn closed(wire: &IntentReason) -> Result<Reason, Malformed> {
    let kind = State::try_from(wire.state).map_err(|_| wrong())?;
    let state = match kind {
        State::Unspecified => return Err(wrong()),
        State::Open => IntentState::Open,
        State::Indeterminate => IntentState::Indeterminate {
            owner: Owner::new(&wire.owner)?,
            review_at_ms: wire.review_at_ms,
        },
        State::Completed => IntentState::Ended(Ending::Completed),
        State::Superseded => IntentState::Ended(Ending::Superseded),
        State::Cancelled => IntentState::Ended(Ending::Cancelled),
        State::Rejected => IntentState::Ended(Ending::Rejected),
    };
    let mutation = wire.mutation_index.map(index_from_wire);
    Ok(Reason::IntentClosed { state, mutation })
}

/// Reads how large an intent would be.
pub(super) fn exhausted(wire: &IntentReason) -> Reason {
    Reason::IntentExhausted {
        bytes: usize::try_from(wire.bytes).unwrap_or(usize::MAX),
        max: usize::try_from(wire.max).unwrap_or(usize::MAX),
    }
}
