//! Intents in brief: what fits into the evidence of a refusal, and into a line of a list.

use alloc::vec::Vec;

use crate::authority::Authority;
use crate::counters::Revision;
use crate::intent::{Binding, IntentRecord, IntentState, Step, StepRecord};
use crate::names::{Configuration, Guard, IntentId};

/// What is stored of an intent, without its inputs, the receipts of its steps, and what they asked
/// for. The record has those.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentSummary {
    /// What it is in.
    pub state: IntentState,
    /// What it is bound to, if it is.
    pub binding: Option<BindingSummary>,
    /// The steps that were accepted, from the first one on: at most 64.
    pub steps: Vec<StepSummary>,
    /// The revision that last changed any of it.
    pub changed_at: Revision,
}

/// Who took on which work, without its inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingSummary {
    /// The guard that the work is done under.
    pub guard: Guard,
    /// The authority for it, under which the intent was bound.
    pub authority: Authority,
    /// How many inputs the work has.
    pub inputs: usize,
    /// The version of the configuration that it is done under.
    pub configuration: Option<Configuration>,
}

/// A step that was accepted, without its receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepSummary {
    /// Its number.
    pub step: Step,
    /// The revision of its commit.
    pub revision: Revision,
}

/// An intent as it was seen at a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedIntent {
    /// Its id.
    pub id: IntentId,
    /// What is stored of it, in brief; `None` if nothing is.
    pub found: Option<IntentSummary>,
}

impl Binding {
    fn summary(&self) -> BindingSummary {
        BindingSummary {
            guard: self.work.guard.clone(),
            authority: self.authority.clone(),
            inputs: self.work.inputs.len(),
            configuration: self.work.configuration.clone(),
        }
    }
}

impl IntentRecord {
    /// The same in brief.
    #[must_use]
    pub fn summary(&self) -> IntentSummary {
        let step = |record: &StepRecord| StepSummary {
            step: record.step,
            revision: record.receipt.revision,
        };
        IntentSummary {
            state: self.state.clone(),
            binding: self.binding.as_ref().map(|binding| binding.summary()),
            steps: self.steps.iter().map(|record| step(record)).collect(),
            changed_at: self.changed_at,
        }
    }
}
