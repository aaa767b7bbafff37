//! Intents in brief, as refusals show them, against what the oracle says was told of each.

use highwater_core::{IntentState, IntentSummary};

use crate::plans::Told;
use crate::raw;

/// Whether a state is the one that the oracle names, with the owner that it names.
fn is_state(state: &IntentState, told: &Told) -> bool {
    match state {
        IntentState::Open => told.state == "open" && told.owner.is_none(),
        IntentState::Indeterminate {
            owner,
            review_at_ms,
        } => {
            let owner = Some((owner.as_bytes().to_vec(), *review_at_ms));
            told.state == "indeterminate" && told.owner == owner
        }
        IntentState::Ended(ending) => raw::ENDINGS.contains(&(told.state, *ending)),
    }
}

/// The two say the same.
#[track_caller]
pub(crate) fn compare(found: Option<&IntentSummary>, known: Option<&Told>) {
    let (Some(found), Some(told)) = (found, known) else {
        assert_eq!(found.is_some(), known.is_some(), "{found:?} {known:?}");
        return;
    };
    assert!(is_state(&found.state, told), "{found:?} {told:?}");
    let binding = found.binding.as_ref().map(|binding| {
        let configuration = binding.configuration.as_ref();
        (
            binding.guard.as_bytes().to_vec(),
            binding.inputs,
            configuration.map(|version| version.as_bytes().to_vec()),
            raw::raw_fence(&binding.authority.to_fence()),
        )
    });
    let bound = told.binding.as_ref().map(|(task, by)| {
        let (guard, inputs) = (task.guard.clone(), task.inputs.len());
        (guard, inputs, task.configuration.clone(), by.clone())
    });
    assert_eq!(binding, bound);
    let steps = found.steps.iter();
    let steps = steps.map(|step| (step.step.get(), step.revision.get()));
    let stated = told.steps.iter().map(|statement| statement.revision);
    assert!(steps.eq((1..).zip(stated)), "{found:?} {told:?}");
    assert_eq!(found.changed_at.get(), told.changed);
}
