//! The rules about intents: R1, R3 and R8 as far as they concern them, and what R9 records.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::codec::encode_intent;
use crate::command::{Commit, Mutation};
use crate::counters::Revision;
use crate::effect::IntentChange;
use crate::intent::{Binding, Ending, IntentRecord, IntentState, Step, StepRecord};
use crate::limits::{INPUTS_MAX, INTENT_BYTES_MAX, INTENT_MUTATIONS_MAX};
use crate::names::IntentId;
use crate::policy::Policy;
use crate::receipt::Receipt;
use crate::rejection::{IntentConflict, Malformed, Observed, Reason, Rejection, Unavailable};
use crate::rules::{Judged, reject};
use crate::view::{View, named_intents};

fn reject_at_intent<T>(view: &View, id: &IntentId, reason: Reason) -> Judged<T> {
    Err(Box::new(Rejection {
        reason,
        observed: Observed::of(view).intent(id, view),
    }))
}

fn incomplete<T>(view: &View) -> Judged<T> {
    reject(view, Reason::Unavailable(Unavailable::Incomplete))
}

/// R1 for intents: not too many, with not too many inputs, each changed by one mutation. A commit
/// that completes its own intent changes it, unless it is the one that binds it.
pub(crate) fn well_formed(view: &View, commit: &Commit) -> Judged {
    let malformed = |what: Malformed| reject(view, Reason::Malformed(what));
    let too_many = |what, count, max| malformed(Malformed::TooMany { what, count, max });
    let mut changed: Vec<&IntentId> = Vec::new();
    for mutation in &commit.mutations {
        changed.extend(mutation.intent());
        let Mutation::BindIntent { work, .. } = mutation else {
            continue;
        };
        if work.inputs.len() > INPUTS_MAX {
            return too_many("inputs", work.inputs.len(), INPUTS_MAX);
        }
    }
    if changed.len() > INTENT_MUTATIONS_MAX {
        return too_many("mutations of intents", changed.len(), INTENT_MUTATIONS_MAX);
    }
    let completed = commit.intent.as_ref().filter(|used| used.completes);
    let binds = |mutation: &Mutation, id: &IntentId| match mutation {
        Mutation::BindIntent { intent, .. } => intent == id,
        _ => false,
    };
    changed.extend(
        completed
            .map(|used| &used.id)
            .filter(|id| !commit.mutations.iter().any(|mutation| binds(mutation, id))),
    );
    changed.sort_unstable();
    let mut pairs = changed.iter().zip(changed.iter().skip(1));
    match pairs.find(|(a, b)| a == b) {
        Some((id, _)) => malformed(Malformed::DuplicateIntent((*id).clone())),
        None => Ok(()),
    }
}

/// R3: the receipt of the step, if it was accepted before with this very content, whoever asks.
/// A step that wasn't must be the next one of an open intent.
pub(crate) fn replay(view: &View, commit: &Commit) -> Judged<Option<Box<Receipt>>> {
    let Some(used) = &commit.intent else {
        return Ok(None);
    };
    let (Some(row), Some(digest)) = (view.intent(&used.id), view.command_digest) else {
        return incomplete(view);
    };
    let conflict = |conflict| {
        let reason = Reason::IntentConflict(conflict);
        reject_at_intent(view, &used.id, reason)
    };
    if let Some(recorded) = row.and_then(|record| record.step(used.step)) {
        if recorded.digest != digest {
            return conflict(IntentConflict::Digest);
        }
        let mut receipt = Box::new(recorded.receipt.clone());
        receipt.replayed = true;
        return Ok(Some(receipt));
    }
    if let Some(record) = row.filter(|record| record.state != IntentState::Open) {
        let (state, mutation) = (record.state.clone(), None);
        let reason = Reason::IntentClosed { state, mutation };
        return reject_at_intent(view, &used.id, reason);
    }
    let expected = row.map_or(Some(Step::FIRST), |record| record.next_step());
    if expected != Some(used.step) {
        return conflict(IntentConflict::Step { expected });
    }
    Ok(None)
}

/// R8 for intents: one that is bound isn't bound otherwise, or may be bound anew; one that is
/// ended or made indeterminate is known, hasn't ended, and is bound to the guard that was named; a
/// step of one that is bound is done under an authority for that guard. Whoever is fenced out of
/// it can therefore do nothing of the intent any more.
pub(crate) fn changes_hold(view: &View, policy: &Policy, commit: &Commit) -> Judged {
    for (index, mutation) in commit.mutations.iter().enumerate() {
        let Some(id) = mutation.intent() else {
            continue;
        };
        let Some(row) = view.intent(id) else {
            return incomplete(view);
        };
        let reason = match (mutation, row) {
            (Mutation::BindIntent { .. }, None) => continue,
            (Mutation::BindIntent { .. }, Some(record)) => {
                let after = binding(commit, mutation);
                match &record.state {
                    _ if record.binding == after => continue,
                    IntentState::Ended(_) => Reason::IntentClosed {
                        state: record.state.clone(),
                        mutation: Some(index),
                    },
                    _ if may_bind(record, after.as_deref()) => continue,
                    _ => Reason::IntentConflict(IntentConflict::Binding),
                }
            }
            (_, None) => Reason::UnknownIntent,
            (_, Some(record)) => match &record.state {
                IntentState::Ended(_) => Reason::IntentClosed {
                    state: record.state.clone(),
                    mutation: Some(index),
                },
                _ if record.guard() == mutation.named_guard() => continue,
                _ => Reason::IntentConflict(IntentConflict::Guard),
            },
        };
        return reject_at_intent(view, id, reason);
    }
    step_is_under_its_guard(view, policy, commit)
}

/// Whether an intent that hasn't ended may be bound so: if it wasn't bound yet, or if nothing was
/// done of it and it stays with its guard, whose newer holder takes it on, or the one that had only
/// laid a hand on it. The newer term is newer, because the fence was at the older one.
fn may_bind(record: &IntentRecord, after: Option<&Binding>) -> bool {
    let (Some(before), Some(after)) = (record.binding.as_deref(), after) else {
        return true;
    };
    let untouched = record.state == IntentState::Open && record.steps.is_empty();
    let newer = before.authority.term() != after.authority.term();
    let bare = before.work.inputs.is_empty() && before.work.configuration.is_none();
    untouched && before.work.guard == after.work.guard && (newer || bare)
}

fn step_is_under_its_guard(view: &View, policy: &Policy, commit: &Commit) -> Judged {
    let Some(used) = &commit.intent else {
        return Ok(());
    };
    let Some(row) = view.intent(&used.id) else {
        return incomplete(view);
    };
    let Some(guard) = row.and_then(|record| record.guard()) else {
        return Ok(());
    };
    let touches = |mutation: &Mutation| mutation.guard(policy).as_ref() == Some(guard);
    if commit.authority.for_guard(guard).is_some() && commit.mutations.iter().any(touches) {
        return Ok(());
    }
    let reason = Reason::IntentConflict(IntentConflict::Guard);
    reject_at_intent(view, &used.id, reason)
}

/// The binding that a mutation makes under the commit's authority.
fn binding(commit: &Commit, mutation: &Mutation) -> Option<Arc<Binding>> {
    let Mutation::BindIntent { work, .. } = mutation else {
        return None;
    };
    let authority = commit.authority.for_guard(&work.guard)?;
    Some(Arc::new(Binding {
        work: work.clone(),
        authority: authority.clone(),
    }))
}

/// R9 for intents: what is stored of each from now on, ordered by id; those that don't change are
/// left out.
pub(crate) fn changes(
    view: &View,
    commit: &Commit,
    receipt: &Receipt,
) -> Judged<Vec<IntentChange>> {
    let mut changes = Vec::new();
    for id in named_intents(commit) {
        let Some(before) = view.intent(&id) else {
            return incomplete(view);
        };
        let mut after = changed(commit, &id, before, receipt.revision);
        if let Some(used) = commit.intent.as_ref().filter(|used| used.id == id) {
            let Some(digest) = view.command_digest else {
                return incomplete(view);
            };
            after.steps.push(Arc::new(StepRecord {
                step: used.step,
                digest,
                receipt: receipt.clone(),
            }));
            if used.completes {
                after.state = IntentState::Ended(Ending::Completed);
            }
            let mut encoded = Vec::new();
            encode_intent(&after, &mut encoded);
            let (bytes, max) = (encoded.len(), INTENT_BYTES_MAX);
            if bytes > max {
                let reason = Reason::IntentExhausted { bytes, max };
                return reject_at_intent(view, &id, reason);
            }
        }
        if before.is_none_or(|before| **before != after) {
            after.changed_at = receipt.revision;
            let record = Arc::new(after);
            changes.push(IntentChange { id, record });
        }
    }
    Ok(changes)
}

/// An intent after the mutation that is about it, if there is one.
fn changed(
    commit: &Commit,
    id: &IntentId,
    before: Option<&Arc<IntentRecord>>,
    revision: Revision,
) -> IntentRecord {
    let new = || IntentRecord {
        state: IntentState::Open,
        binding: None,
        steps: Vec::new(),
        changed_at: revision,
    };
    let mut after = before.map_or_else(new, |record| IntentRecord::clone(record));
    let about = |mutation: &&Mutation| mutation.intent() == Some(id);
    match commit.mutations.iter().find(about) {
        Some(mutation @ Mutation::BindIntent { .. }) => {
            after.binding = binding(commit, mutation);
        }
        Some(Mutation::CloseIntent { ending, .. }) => after.state = IntentState::Ended(*ending),
        Some(Mutation::SuspendIntent {
            owner,
            review_at_ms,
            ..
        }) => {
            after.state = IntentState::Indeterminate {
                owner: owner.clone(),
                review_at_ms: *review_at_ms,
            };
        }
        _ => {}
    }
    after
}
