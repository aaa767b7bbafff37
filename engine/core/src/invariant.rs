//! The invariants of the safety state, numbered, with the checks that every gateway runs: before an
//! effect is logged, after one is decoded, when a row is read, when a store is opened. They compare
//! raw numbers, so that a fault in the rules' own comparison shows here. On in release builds.

use core::fmt;

use crate::authority::Fence;
use crate::counters::Revision;
use crate::domain::Domain;
use crate::effect::{Change, Effect, FenceChange, IntentChange, RecordChange};
use crate::intent::{IntentRecord, IntentState};
use crate::limits::STEPS_MAX;
use crate::record::Record;
use crate::view::View;

/// An invariant that doesn't hold: a defect, or damage that no checksum saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// I1: an effect's revision is the successor of the last one used.
    RevisionNotNext,
    /// I2: a record's generation isn't above its last change, and that isn't above the store's
    /// revision.
    RecordFromTheFuture,
    /// I3: a record's metageneration is 1 exactly if its last change was the write of its value.
    MetagenerationOutOfStep,
    /// I4: a fence's epoch is the current one of its domain.
    FenceOfAnotherEpoch,
    /// I5: a fence only rises.
    FenceNotRaised,
    /// I6: every name stands once in an effect, and a guard is one that the policy can give.
    BadName,
    /// I7: epoch numbers and the revisions that installed them strictly rise.
    EpochsOutOfOrder,
    /// I8: a record was written under an epoch that its domain has installed.
    RecordOfUnknownEpoch,
    /// I9: a written value's generation is the effect's revision; a metadata update keeps the
    /// generation and raises the metageneration by one.
    GenerationOutOfStep,
    /// I10: a value written under a term leaves its guard fenced at that very term.
    WrittenBelowTheFence,
    /// I11: an effect belongs to a domain that exists, and what it is judged by was fetched.
    UnknownRow,
    /// I12: the steps of an intent are numbered from 1 without a gap, at most 64, the revisions of
    /// their receipts rise, and none is above the intent's last change.
    StepsOutOfOrder,
    /// I13: what was recorded of an intent stays: its steps, its binding once there are any, the
    /// guard that it is bound to, its end.
    IntentRewritten,
    /// I14: what an effect records of an intent is of its own revision, and at most one step.
    IntentOutOfStep,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RevisionNotNext => "I1: the revision isn't the next one",
            Self::RecordFromTheFuture => "I2: a record is newer than the store",
            Self::MetagenerationOutOfStep => "I3: a metageneration doesn't fit its generation",
            Self::FenceOfAnotherEpoch => "I4: a fence belongs to another epoch",
            Self::FenceNotRaised => "I5: a fence would not rise",
            Self::BadName => "I6: a name stands twice or can't be a guard",
            Self::EpochsOutOfOrder => "I7: the epochs are out of order",
            Self::RecordOfUnknownEpoch => "I8: a record was written under an unknown epoch",
            Self::GenerationOutOfStep => "I9: a generation doesn't follow from its commit",
            Self::WrittenBelowTheFence => "I10: a value was written under a term below its fence",
            Self::UnknownRow => "I11: an effect concerns a row that isn't known",
            Self::StepsOutOfOrder => "I12: the steps of an intent are out of order",
            Self::IntentRewritten => "I13: what was recorded of an intent would change",
            Self::IntentOutOfStep => "I14: an intent doesn't follow from its commit",
        })
    }
}

impl core::error::Error for Violation {}

const fn ensure(holds: bool, violation: Violation) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(violation) }
}

/// Checks a domain by itself: I7.
///
/// # Errors
///
/// The first invariant that doesn't hold.
pub fn check_domain(domain: &Domain) -> Result<(), Violation> {
    let current = domain.epochs.current();
    let mut last: Option<(u64, u64)> = None;
    for entry in domain.epochs.retired().iter().chain([&current]) {
        let next = (entry.epoch.number().get(), entry.installed_at.get());
        let rises = last.is_none_or(|(number, at)| next.0 > number && next.1 > at);
        ensure(rises, Violation::EpochsOutOfOrder)?;
        last = Some(next);
    }
    Ok(())
}

/// Checks a stored record against its domain and the store's last revision: I2, I3, I8.
///
/// # Errors
///
/// The first invariant that doesn't hold.
pub fn check_record(domain: &Domain, record: &Record, last: Revision) -> Result<(), Violation> {
    let (generation, changed_at) = (record.generation.get(), record.changed_at.get());
    let ordered = generation <= changed_at && changed_at <= last.get();
    ensure(ordered, Violation::RecordFromTheFuture)?;
    let first = record.metageneration.get() == 1;
    ensure(
        first == (generation == changed_at),
        Violation::MetagenerationOutOfStep,
    )?;
    let installed = |number: u64, mark: u64| {
        let current = domain.epochs.current();
        let mut all = domain.epochs.retired().iter().chain([&current]);
        all.any(|e| e.epoch.number().get() == number && e.epoch.mark().get() == mark)
    };
    let known = record
        .written_under
        .is_none_or(|term| installed(term.epoch.number().get(), term.epoch.mark().get()));
    ensure(known, Violation::RecordOfUnknownEpoch)
}

/// Checks a stored fence against its domain: I4.
///
/// # Errors
///
/// The invariant, if it doesn't hold.
pub fn check_fence(domain: &Domain, fence: &Fence) -> Result<(), Violation> {
    let current = domain.epochs.current().epoch;
    let epoch = fence.term.epoch;
    let same = epoch.number().get() == current.number().get()
        && epoch.mark().get() == current.mark().get();
    ensure(same, Violation::FenceOfAnotherEpoch)
}

/// Checks a stored intent against the store's last revision: I12.
///
/// # Errors
///
/// The invariant, if it doesn't hold.
pub fn check_intent(record: &IntentRecord, last: Revision) -> Result<(), Violation> {
    let mut number = 0_u32;
    let mut revision = 0_u64;
    for step in &record.steps {
        let follows = number.checked_add(1) == Some(step.step.get());
        let rises = step.receipt.revision.get() > revision;
        ensure(follows && rises, Violation::StepsOutOfOrder)?;
        (number, revision) = (step.step.get(), step.receipt.revision.get());
    }
    let changed_at = record.changed_at.get();
    let known = revision <= changed_at && changed_at <= last.get();
    ensure(known && number <= STEPS_MAX, Violation::StepsOutOfOrder)
}

/// I13, I14 for one intent.
fn check_follows(view: &View, change: &IntentChange, revision: Revision) -> Result<(), Violation> {
    let before = view.intent(&change.id).ok_or(Violation::UnknownRow)?;
    let after = &change.record;
    let of_now = after.changed_at.get() == revision.get();
    ensure(of_now, Violation::IntentOutOfStep)?;
    let old = before.map_or(&[][..], |before| &before.steps);
    let kept = after.steps.get(..old.len()) == Some(old);
    let ended = |before: &IntentRecord| matches!(before.state, IntentState::Ended(_));
    let final_now = before.is_none_or(|before| !ended(before));
    let bound = before.is_none_or(|before| {
        let same_guard = before.binding.is_none() || before.guard() == after.guard();
        same_guard
            && (before.binding == after.binding || before.binding.is_none() || old.is_empty())
    });
    ensure(kept && final_now && bound, Violation::IntentRewritten)?;
    let new = after.steps.get(old.len()..).unwrap_or_default();
    let of_now = match new {
        [] => true,
        [step] => step.receipt.revision.get() == revision.get(),
        _ => false,
    };
    ensure(of_now, Violation::IntentOutOfStep)
}

/// Checks an effect against the view that it was judged on: all invariants that it could break.
///
/// # Errors
///
/// The first invariant that doesn't hold. Such an effect must not be logged.
pub fn check_effect(view: &View, effect: &Effect) -> Result<(), Violation> {
    let next = view.destination.revision.get().checked_add(1);
    ensure(
        next == Some(effect.revision().get()),
        Violation::RevisionNotNext,
    )?;
    match effect.change() {
        Change::Genesis { .. } => Err(Violation::UnknownRow),
        Change::DomainCreated(domain) => check_domain(domain),
        Change::Commit {
            domain: id,
            records,
            fences,
            intents,
        } => {
            let domain = view.domain.as_deref().filter(|domain| domain.id == *id);
            let domain = domain.ok_or(Violation::UnknownRow)?;
            check_names(records, fences)?;
            for change in fences {
                check_raise(view, domain, change)?;
            }
            for change in records {
                check_write(view, domain, change, fences, effect.revision())?;
            }
            let rising = intents.iter().zip(intents.iter().skip(1));
            let rising = rising.into_iter().all(|(a, b)| a.id < b.id);
            ensure(rising, Violation::BadName)?;
            for change in intents {
                check_intent(&change.record, effect.revision())?;
                check_follows(view, change, effect.revision())?;
            }
            Ok(())
        }
    }
}

/// I6: every name once.
fn check_names(records: &[RecordChange], fences: &[FenceChange]) -> Result<(), Violation> {
    let rising = fences
        .iter()
        .zip(fences.iter().skip(1))
        .all(|(a, b)| a.guard < b.guard);
    ensure(rising, Violation::BadName)?;
    let mut keys: alloc::vec::Vec<_> = records.iter().map(|change| &change.key).collect();
    keys.sort_unstable();
    let once = keys.iter().zip(keys.iter().skip(1)).all(|(a, b)| a != b);
    ensure(once, Violation::BadName)
}

/// I4, I5, I6 for one fence.
fn check_raise(view: &View, domain: &Domain, change: &FenceChange) -> Result<(), Violation> {
    ensure(domain.policy.is_guard(&change.guard), Violation::BadName)?;
    check_fence(domain, &change.fence)?;
    let previous = view.fence(&change.guard).ok_or(Violation::UnknownRow)?;
    let new = change.fence.term.sequence.get();
    let rises = previous.is_none_or(|fence| new > fence.term.sequence.get());
    ensure(rises, Violation::FenceNotRaised)
}

/// I2, I3, I8, I9, I10 for one key.
fn check_write(
    view: &View,
    domain: &Domain,
    change: &RecordChange,
    fences: &[FenceChange],
    revision: Revision,
) -> Result<(), Violation> {
    let Some(record) = &change.record else {
        return Ok(());
    };
    check_record(domain, record, revision)?;
    ensure(
        record.changed_at == revision,
        Violation::GenerationOutOfStep,
    )?;
    let row = view.key(&change.key).ok_or(Violation::UnknownRow)?;
    if record.generation.revision() != revision {
        let before = row.record.as_ref().ok_or(Violation::GenerationOutOfStep)?;
        let follows = record.generation == before.generation
            && before.metageneration.get().checked_add(1) == Some(record.metageneration.get());
        return ensure(follows, Violation::GenerationOutOfStep);
    }
    let Some(term) = record.written_under else {
        return Ok(());
    };
    let guard = domain.policy.guard_of(&change.key);
    let raised = fences
        .iter()
        .find(|change| change.guard == guard)
        .map(|change| &change.fence);
    let fence = raised.or_else(|| view.fence(&guard).flatten());
    ensure(
        fence.is_some_and(|fence| fence.term == term),
        Violation::WrittenBelowTheFence,
    )
}
