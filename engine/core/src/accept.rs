//! Step 9: numbers the effect and states it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::authority::{Authority, Standing, Term};
use crate::command::{Commit, Condition, Mutation};
use crate::counters::{Generation, Metageneration, Revision};
use crate::decide::Accepted;
use crate::domain::Domain;
use crate::effect::{Change, Effect, FenceChange, RecordChange};
use crate::granting;
use crate::intent::IntentStep;
use crate::intents;
use crate::leases;
use crate::names::{Guard, Key};
use crate::receipt::{GuardReceipt, InputReceipt, Receipt, WriteReceipt};
use crate::record::Record;
use crate::rejection::{Reason, Unavailable};
use crate::rules::{Judged, reject};
use crate::view::View;

/// Accepts a commit that every rule passed. `under` are the guards touched under an authority.
///
/// # Errors
///
/// A counter is at its end, an intent's record is full, or a row wasn't fetched.
pub(crate) fn commit(
    view: &View,
    domain: &Domain,
    commit: &Commit,
    under: Vec<(Guard, Authority)>,
) -> Judged<Accepted> {
    let Some(revision) = view.destination.revision.next() else {
        return reject(view, Reason::RevisionExhausted);
    };
    let mut records = Vec::with_capacity(commit.mutations.len());
    let mut writes = Vec::with_capacity(commit.mutations.len());
    for mutation in &commit.mutations {
        let Some(key) = mutation.key() else { continue };
        let Some(row) = view.key(key) else {
            return reject(view, Reason::Unavailable(Unavailable::Incomplete));
        };
        let before = row.record.as_ref();
        let term = commit
            .authority
            .for_guard(&domain.policy.guard_of(key))
            .map(Authority::term);
        let Some(after) = record_after(mutation, before, term, revision) else {
            return reject(view, Reason::MetagenerationExhausted);
        };
        writes.push(WriteReceipt {
            key: key.clone(),
            generation: after.as_ref().map(|record| record.generation),
            metageneration: after.as_ref().map(|record| record.metageneration),
            previous: before.map(|record| record.generation),
        });
        if before.is_some() || after.is_some() {
            records.push(RecordChange {
                key: key.clone(),
                record: after,
            });
        }
    }
    let granted = granting::changes(view, domain, commit, revision)?;
    let mut raising = under;
    let leased = leases::mutations(commit);
    raising.retain(|(guard, _)| leases::on(&leased, guard).is_none());
    raising.extend(granted.sealed);
    raising.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (fences, guards) = raise(view, raising);
    let receipt = Receipt {
        destination: view.destination.id,
        incarnation: view.destination.incarnation,
        domain: domain.name.clone(),
        revision,
        intent: commit.intent.as_ref().map(|used| IntentStep {
            id: used.id.clone(),
            step: used.step,
        }),
        guards,
        inputs: inputs(view, commit),
        writes,
        leases: granted.receipts,
        replayed: false,
        advisory_time_ms: view.advisory_time_ms,
    };
    let intents = intents::changes(view, commit, &receipt)?;
    let change = Change::Commit {
        domain: domain.id,
        records,
        fences,
        intents,
        leases: granted.changes,
    };
    Ok(Accepted {
        effect: Effect::new(revision, change),
        receipt,
    })
}

/// What is stored after a mutation: the outer `None` when the metageneration can't rise, the inner
/// `None` for a deletion.
fn record_after(
    mutation: &Mutation,
    before: Option<&Arc<Record>>,
    term: Option<Term>,
    revision: Revision,
) -> Option<Option<Arc<Record>>> {
    let record = match (mutation, before) {
        (
            Mutation::Put {
                value, metadata, ..
            },
            _,
        ) => Record {
            generation: Generation::of(revision),
            metageneration: Metageneration::FIRST,
            changed_at: revision,
            written_under: term,
            value: value.clone(),
            metadata: metadata.clone(),
        },
        (Mutation::SetMetadata { metadata, .. }, Some(before)) => Record {
            generation: before.generation,
            metageneration: before.metageneration.next()?,
            changed_at: revision,
            written_under: before.written_under,
            value: before.value.clone(),
            metadata: metadata.clone(),
        },
        _ => return Some(None),
    };
    Some(Some(Arc::new(record)))
}

/// The fences that rise, and the statement about every guard touched under an authority. A fence
/// that the authority already is doesn't change.
fn raise(view: &View, under: Vec<(Guard, Authority)>) -> (Vec<FenceChange>, Vec<GuardReceipt>) {
    let mut fences = Vec::with_capacity(under.len());
    let mut guards = Vec::with_capacity(under.len());
    for (guard, authority) in under {
        let previous = view.fence(&guard).flatten();
        let fence = authority.to_fence();
        if previous.is_none_or(|previous| authority.standing(previous) != Standing::Holder) {
            fences.push(FenceChange {
                guard: guard.clone(),
                fence: fence.clone(),
            });
        }
        guards.push(GuardReceipt {
            guard,
            fence,
            previous: previous.cloned(),
        });
    }
    (fences, guards)
}

/// The versions of the keys that conditions looked at.
fn inputs(view: &View, commit: &Commit) -> Vec<InputReceipt> {
    let mut keys: Vec<&Key> = commit
        .conditions
        .iter()
        .filter_map(Condition::key)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let input = |key: &Key| InputReceipt {
        key: key.clone(),
        generation: view
            .key(key)
            .and_then(|row| row.record.as_ref())
            .map(|r| r.generation),
    };
    keys.into_iter().map(input).collect()
}
