//! Rejections: the reason with all it carries, both ways.

use std::num::NonZeroU64;

use highwater_core::{Authority, Malformed, Reason, Rejection, Revision, Unavailable};

use super::{FromWire, ToWire, intent_reason, lease, parts, required};
use crate::v1;
use crate::v1::Code;

/// The wire's name of a reason.
#[must_use]
pub const fn code_of(reason: &Reason) -> Code {
    match reason {
        Reason::Malformed(_) => Code::Malformed,
        Reason::WrongDestination => Code::WrongDestination,
        Reason::UnknownDomain => Code::UnknownDomain,
        Reason::DomainExists => Code::DomainExists,
        Reason::TooManyDomains => Code::TooManyDomains,
        Reason::Unavailable(Unavailable::Frozen) => Code::Frozen,
        Reason::Unavailable(Unavailable::RecoveryRequired) => Code::RecoveryRequired,
        Reason::Unavailable(Unavailable::Poisoned) => Code::Poisoned,
        Reason::Unavailable(Unavailable::Overloaded) => Code::Overloaded,
        Reason::Unavailable(Unavailable::DiskFull) => Code::DiskFull,
        Reason::Unavailable(Unavailable::Incomplete) => Code::Incomplete,
        Reason::AuthorityRequired => Code::AuthorityRequired,
        Reason::PreconditionRequired => Code::PreconditionRequired,
        Reason::StaleEpoch { .. } => Code::StaleEpoch,
        Reason::UnknownEpoch { .. } => Code::UnknownEpoch,
        Reason::StaleTerm { .. } => Code::StaleTerm,
        Reason::HolderConflict { .. } => Code::HolderConflict,
        Reason::SequenceJump { .. } => Code::SequenceJump,
        Reason::WrongHolder { .. } => Code::WrongHolder,
        Reason::ConditionFailed { .. } => Code::ConditionFailed,
        Reason::TooOld { .. } => Code::TooOld,
        Reason::RevisionExhausted => Code::RevisionExhausted,
        Reason::MetagenerationExhausted => Code::MetagenerationExhausted,
        Reason::IntentConflict(_) => Code::IntentConflict,
        Reason::IntentClosed { .. } => Code::IntentClosed,
        Reason::UnknownIntent => Code::UnknownIntent,
        Reason::IntentExhausted { .. } => Code::IntentExhausted,
        Reason::LeaseHeld { .. } => Code::LeaseHeld,
        Reason::LeaseDelayed { .. } => Code::LeaseDelayed,
        Reason::LeaseGone { .. } => Code::LeaseGone,
        Reason::UnknownTerm { .. } => Code::UnknownTerm,
        Reason::NotLeased { .. } => Code::NotLeased,
        Reason::SequenceExhausted => Code::SequenceExhausted,
    }
}

pub(super) fn index_to_wire(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

pub(super) fn index_from_wire(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

impl ToWire for Rejection {
    type Wire = v1::Rejection;

    fn to_wire(&self) -> v1::Rejection {
        let mut wire = v1::Rejection {
            code: i32::from(code_of(&self.reason)),
            observed: Some(self.observed.to_wire()),
            ..v1::Rejection::default()
        };
        match &self.reason {
            Reason::Malformed(malformed) => wire.malformed = Some(malformed.to_wire()),
            Reason::StaleEpoch { presented }
            | Reason::UnknownEpoch { presented }
            | Reason::StaleTerm { presented }
            | Reason::HolderConflict { presented }
            | Reason::WrongHolder { presented }
            | Reason::UnknownTerm { presented } => wire.presented = Some(presented.to_wire()),
            Reason::SequenceJump {
                presented,
                step,
                max,
            } => {
                wire.presented = Some(presented.to_wire());
                wire.step = step.get();
                wire.max = max.get();
            }
            Reason::ConditionFailed { index, condition } => {
                wire.condition_index = index.map(index_to_wire);
                wire.condition = Some(condition.to_wire());
            }
            Reason::TooOld {
                index,
                remembers_since,
            } => {
                wire.condition_index = Some(index_to_wire(*index));
                wire.remembers_since = remembers_since.get();
            }
            Reason::WrongDestination
            | Reason::UnknownDomain
            | Reason::DomainExists
            | Reason::TooManyDomains
            | Reason::Unavailable(_)
            | Reason::AuthorityRequired
            | Reason::PreconditionRequired
            | Reason::RevisionExhausted
            | Reason::MetagenerationExhausted
            | Reason::SequenceExhausted
            | Reason::UnknownIntent => {}
            Reason::NotLeased { presented, .. } => {
                wire.presented = Some(presented.to_wire());
                wire.lease = Some(lease::to_wire(&self.reason));
            }
            Reason::LeaseHeld { .. } | Reason::LeaseDelayed { .. } | Reason::LeaseGone { .. } => {
                wire.lease = Some(lease::to_wire(&self.reason));
            }
            Reason::IntentConflict(_)
            | Reason::IntentClosed { .. }
            | Reason::IntentExhausted { .. } => {
                wire.intent = Some(intent_reason::to_wire(&self.reason))
            }
        }
        wire
    }
}

fn presented(wire: Option<v1::Authority>) -> Result<Authority, Malformed> {
    required(wire, parts::AUTHORITY)
}

fn step(raw: u64) -> Result<NonZeroU64, Malformed> {
    NonZeroU64::new(raw).ok_or(Malformed::Number { what: parts::STEP })
}

fn intent_of(wire: Option<v1::IntentReason>) -> Result<v1::IntentReason, Malformed> {
    wire.ok_or(Malformed::Missing {
        what: parts::INTENT,
    })
}

fn lease_of(wire: Option<v1::LeaseReason>) -> Result<v1::LeaseReason, Malformed> {
    wire.ok_or(Malformed::Missing { what: parts::LEASE })
}

fn reason(wire: v1::Rejection) -> Result<Reason, Malformed> {
    let code = Code::try_from(wire.code).map_err(|_| Malformed::Number { what: parts::CODE })?;
    Ok(match code {
        Code::Unspecified => return Err(Malformed::Missing { what: parts::CODE }),
        Code::Malformed => Reason::Malformed(required(wire.malformed, parts::MALFORMED)?),
        Code::WrongDestination => Reason::WrongDestination,
        Code::UnknownDomain => Reason::UnknownDomain,
        Code::DomainExists => Reason::DomainExists,
        Code::TooManyDomains => Reason::TooManyDomains,
        Code::Frozen => Reason::Unavailable(Unavailable::Frozen),
        Code::RecoveryRequired => Reason::Unavailable(Unavailable::RecoveryRequired),
        Code::Poisoned => Reason::Unavailable(Unavailable::Poisoned),
        Code::Overloaded => Reason::Unavailable(Unavailable::Overloaded),
        Code::DiskFull => Reason::Unavailable(Unavailable::DiskFull),
        Code::Incomplete => Reason::Unavailable(Unavailable::Incomplete),
        Code::AuthorityRequired => Reason::AuthorityRequired,
        Code::PreconditionRequired => Reason::PreconditionRequired,
        Code::StaleEpoch => Reason::StaleEpoch {
            presented: presented(wire.presented)?,
        },
        Code::UnknownEpoch => Reason::UnknownEpoch {
            presented: presented(wire.presented)?,
        },
        Code::StaleTerm => Reason::StaleTerm {
            presented: presented(wire.presented)?,
        },
        Code::HolderConflict => Reason::HolderConflict {
            presented: presented(wire.presented)?,
        },
        Code::SequenceJump => Reason::SequenceJump {
            presented: presented(wire.presented)?,
            step: step(wire.step)?,
            max: step(wire.max)?,
        },
        Code::WrongHolder => Reason::WrongHolder {
            presented: presented(wire.presented)?,
        },
        Code::ConditionFailed => Reason::ConditionFailed {
            index: wire.condition_index.map(index_from_wire),
            condition: required(wire.condition, parts::CONDITION)?,
        },
        Code::TooOld => Reason::TooOld {
            index: index_from_wire(wire.condition_index.ok_or(Malformed::Missing {
                what: parts::CONDITION,
            })?),
            remembers_since: Revision::from_wire(wire.remembers_since)?,
        },
        Code::RevisionExhausted => Reason::RevisionExhausted,
        Code::MetagenerationExhausted => Reason::MetagenerationExhausted,
        Code::IntentConflict => intent_reason::conflict(&intent_of(wire.intent)?)?,
        Code::IntentClosed => intent_reason::closed(intent_of(wire.intent)?)?,
        Code::UnknownIntent => Reason::UnknownIntent,
        Code::IntentExhausted => intent_reason::exhausted(&intent_of(wire.intent)?),
        Code::LeaseHeld => Reason::LeaseHeld {
            remaining_ms: lease_of(wire.lease)?.remaining_ms,
        },
        Code::LeaseDelayed => Reason::LeaseDelayed {
            remaining_ms: lease_of(wire.lease)?.remaining_ms,
        },
        Code::LeaseGone => lease::gone(lease_of(wire.lease)?)?,
        Code::UnknownTerm => Reason::UnknownTerm {
            presented: presented(wire.presented)?,
        },
        Code::NotLeased => Reason::NotLeased {
            presented: presented(wire.presented)?,
            ended: lease::cause(lease_of(wire.lease)?)?,
        },
        Code::SequenceExhausted => Reason::SequenceExhausted,
    })
}

/// A rejection in an answer. A reason of a newer destination is refused, never read as another.
impl FromWire<v1::Rejection> for Rejection {
    fn from_wire(mut wire: v1::Rejection) -> Result<Self, Malformed> {
        let observed = required(wire.observed.take(), parts::OBSERVED)?;
        Ok(Self {
            reason: reason(wire)?,
            observed,
        })
    }
}
