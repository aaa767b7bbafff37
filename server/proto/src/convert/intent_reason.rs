//! What reasons say of intents.

use highwater_core::{IntentConflict, IntentState, Malformed, Reason, Step};

use super::rejection::{index_from_wire, index_to_wire};
use super::{ToWire, parts, required};
use crate::v1::IntentReason;
use crate::v1::intent_reason::Conflict;

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
            wire.state = Some(state.to_wire());
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
pub(super) fn closed(wire: IntentReason) -> Result<Reason, Malformed> {
    let state: IntentState = required(wire.state, parts::INTENT_STATE)?;
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
