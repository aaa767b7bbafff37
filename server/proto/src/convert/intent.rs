//! What is stored of intents, whole and in brief.

use std::sync::Arc;

use highwater_core::{
    Binding, BindingSummary, Ending, Guard, IntentId, IntentRecord, IntentState, IntentSummary,
    Malformed, ObservedIntent, Owner, Revision, Step, StepRecord, StepSummary,
};

use super::{
    FromWire, ToWire, answered, digest, digest_to_wire, optional, parts, required, to_wire_list,
};
use crate::v1;
use crate::v1::intent_state::Kind;

impl FromWire<v1::IntentState> for IntentState {
    fn from_wire(wire: v1::IntentState) -> Result<Self, Malformed> {
        let what = parts::INTENT_STATE;
        Ok(match wire.kind.ok_or(Malformed::Missing { what })? {
            Kind::Open(v1::IntentOpen {}) => Self::Open,
            Kind::Indeterminate(wire) => Self::Indeterminate {
                owner: Owner::from_wire(wire.owner)?,
                review_at_ms: wire.review_at_ms,
            },
            Kind::Ended(ending) => Self::Ended(Ending::from_wire(ending)?),
        })
    }
}

impl ToWire for IntentState {
    type Wire = v1::IntentState;

    fn to_wire(&self) -> v1::IntentState {
        let kind = match self {
            Self::Open => Kind::Open(v1::IntentOpen {}),
            Self::Indeterminate {
                owner,
                review_at_ms,
            } => Kind::Indeterminate(v1::IntentIndeterminate {
                owner: owner.to_wire(),
                review_at_ms: *review_at_ms,
            }),
            Self::Ended(ending) => Kind::Ended(ending.to_wire()),
        };
        v1::IntentState { kind: Some(kind) }
    }
}

impl FromWire<v1::IntentBinding> for Binding {
    fn from_wire(wire: v1::IntentBinding) -> Result<Self, Malformed> {
        Ok(Self {
            work: required(wire.work, parts::WORK)?,
            authority: required(wire.authority, parts::AUTHORITY)?,
        })
    }
}

impl ToWire for Binding {
    type Wire = v1::IntentBinding;

    fn to_wire(&self) -> v1::IntentBinding {
        v1::IntentBinding {
            work: Some(self.work.to_wire()),
            authority: Some(self.authority.to_wire()),
        }
    }
}

impl FromWire<v1::IntentStepRecord> for StepRecord {
    fn from_wire(wire: v1::IntentStepRecord) -> Result<Self, Malformed> {
        Ok(Self {
            step: Step::from_wire(wire.step)?,
            digest: digest(&wire.digest)?,
            receipt: required(wire.receipt, parts::RECEIPT)?,
        })
    }
}

impl ToWire for StepRecord {
    type Wire = v1::IntentStepRecord;

    fn to_wire(&self) -> v1::IntentStepRecord {
        v1::IntentStepRecord {
            step: self.step.get(),
            digest: digest_to_wire(&self.digest),
            receipt: Some(self.receipt.to_wire()),
        }
    }
}

impl FromWire<v1::Intent> for IntentRecord {
    fn from_wire(wire: v1::Intent) -> Result<Self, Malformed> {
        let binding: Option<Binding> = optional(wire.binding)?;
        let steps: Vec<StepRecord> = answered(wire.steps)?;
        Ok(Self {
            state: required(wire.state, parts::INTENT_STATE)?,
            binding: binding.map(Arc::new),
            steps: steps.into_iter().map(Arc::new).collect(),
            changed_at: Revision::from_wire(wire.changed_at)?,
        })
    }
}

impl ToWire for IntentRecord {
    type Wire = v1::Intent;

    fn to_wire(&self) -> v1::Intent {
        v1::Intent {
            state: Some(self.state.to_wire()),
            binding: self.binding.as_ref().map(|binding| binding.to_wire()),
            steps: self.steps.iter().map(|step| step.to_wire()).collect(),
            changed_at: self.changed_at.get(),
        }
    }
}

impl FromWire<v1::IntentBindingSummary> for BindingSummary {
    fn from_wire(wire: v1::IntentBindingSummary) -> Result<Self, Malformed> {
        Ok(Self {
            guard: Guard::from_wire(wire.guard)?,
            authority: required(wire.authority, parts::AUTHORITY)?,
            inputs: usize::try_from(wire.inputs).unwrap_or(usize::MAX),
            configuration: optional(wire.configuration)?,
        })
    }
}

impl ToWire for BindingSummary {
    type Wire = v1::IntentBindingSummary;

    fn to_wire(&self) -> v1::IntentBindingSummary {
        v1::IntentBindingSummary {
            guard: self.guard.to_wire(),
            authority: Some(self.authority.to_wire()),
            inputs: u32::try_from(self.inputs).unwrap_or(u32::MAX),
            configuration: self.configuration.as_ref().map(ToWire::to_wire),
        }
    }
}

impl FromWire<v1::IntentStepSummary> for StepSummary {
    fn from_wire(wire: v1::IntentStepSummary) -> Result<Self, Malformed> {
        Ok(Self {
            step: Step::from_wire(wire.step)?,
            revision: Revision::from_wire(wire.revision)?,
        })
    }
}

impl ToWire for StepSummary {
    type Wire = v1::IntentStepSummary;

    fn to_wire(&self) -> v1::IntentStepSummary {
        v1::IntentStepSummary {
            step: self.step.get(),
            revision: self.revision.get(),
        }
    }
}

impl FromWire<v1::IntentSummary> for IntentSummary {
    fn from_wire(wire: v1::IntentSummary) -> Result<Self, Malformed> {
        Ok(Self {
            state: required(wire.state, parts::INTENT_STATE)?,
            binding: optional(wire.binding)?,
            steps: answered(wire.steps)?,
            changed_at: Revision::from_wire(wire.changed_at)?,
        })
    }
}

impl ToWire for IntentSummary {
    type Wire = v1::IntentSummary;

    fn to_wire(&self) -> v1::IntentSummary {
        v1::IntentSummary {
            state: Some(self.state.to_wire()),
            binding: self.binding.as_ref().map(ToWire::to_wire),
            steps: to_wire_list(&self.steps),
            changed_at: self.changed_at.get(),
        }
    }
}

impl FromWire<v1::ObservedIntent> for ObservedIntent {
    fn from_wire(wire: v1::ObservedIntent) -> Result<Self, Malformed> {
        Ok(Self {
            id: IntentId::from_wire(wire.id)?,
            found: optional(wire.found)?,
        })
    }
}

impl ToWire for ObservedIntent {
    type Wire = v1::ObservedIntent;

    fn to_wire(&self) -> v1::ObservedIntent {
        v1::ObservedIntent {
            id: self.id.to_wire(),
            found: self.found.as_ref().map(ToWire::to_wire),
        }
    }
}

/// An intent of a list.
impl FromWire<v1::ListedIntent> for (IntentId, IntentSummary) {
    fn from_wire(wire: v1::ListedIntent) -> Result<Self, Malformed> {
        let id = IntentId::from_wire(wire.id)?;
        Ok((id, required(wire.summary, parts::RECORD)?))
    }
}

impl ToWire for (IntentId, IntentSummary) {
    type Wire = v1::ListedIntent;

    fn to_wire(&self) -> v1::ListedIntent {
        v1::ListedIntent {
            id: self.0.to_wire(),
            summary: Some(self.1.to_wire()),
        }
    }
}
