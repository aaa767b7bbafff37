//! The invariants of leases: I15 to I19. They compare raw numbers, as the others do.

use alloc::vec::Vec;

use crate::counters::Revision;
use crate::domain::Domain;
use crate::effect::{FenceChange, LeaseChange};
use crate::invariant::{Violation, ensure};
use crate::lease::{Grant, LeaseRecord};
use crate::limits::GRANTS_KEPT;
use crate::view::View;

/// Checks what is stored of a guard's leases against its domain and the store's last revision:
/// I15, I17, I18.
///
/// # Errors
///
/// The first invariant that doesn't hold.
pub fn check_lease(domain: &Domain, record: &LeaseRecord, last: Revision) -> Result<(), Violation> {
    let number = |grant: &Grant| grant.sequence.get();
    let rising = record.grants.iter().zip(record.grants.iter().skip(1));
    let rising = rising
        .into_iter()
        .all(|(a, b)| a.sequence.get() < b.sequence.get());
    let count = record.grants.len();
    let bounded = count > 0 && count <= GRANTS_KEPT;
    let current = domain.epochs.current();
    let mut epochs = domain.epochs.retired().iter().chain([&current]);
    let (epoch, mark) = (record.epoch.number().get(), record.epoch.mark().get());
    let installed = epochs.any(|e| e.epoch.number().get() == epoch && e.epoch.mark().get() == mark);
    ensure(rising && bounded && installed, Violation::GrantsOutOfOrder)?;

    let changed_at = record.changed_at.get();
    let mut ordered = changed_at <= last.get();
    if let Some(lease) = &record.current {
        let newest = record.grants.last();
        let of_epoch = lease.term.epoch.number().get() == epoch
            && lease.term.epoch.mark().get() == mark
            && newest.map(number) == Some(lease.term.sequence.get())
            && newest.is_some_and(|grant| grant.holder.as_bytes() == lease.holder.as_bytes());
        ensure(of_epoch, Violation::GrantsOutOfOrder)?;
        let (granted, renewed) = (lease.id.get(), lease.renewed_at.get());
        ordered &= granted <= renewed && renewed <= changed_at;
    }
    if let Some(end) = &record.last_end {
        ordered &= end.lease.renewed_at.get() < end.at.get() && end.at.get() <= changed_at;
        ordered &= end.lease.id.get() <= end.lease.renewed_at.get();
        ensure(
            end.lease.renewed_clock_ms <= end.clock_ms,
            Violation::LeaseClockBehind,
        )?;
    }
    ensure(ordered, Violation::LeaseOutOfStep)?;
    let ended = record.last_end.as_ref().map(|end| end.lease.id.get());
    let returned = match (&record.current, ended) {
        (Some(lease), Some(ended)) => lease.id.get() <= ended,
        _ => false,
    };
    ensure(!returned, Violation::LeaseReturned)
}

/// I15 to I19 for the leases of an effect.
pub(crate) fn check_leases(
    view: &View,
    domain: &Domain,
    leases: &[LeaseChange],
    fences: &[FenceChange],
    revision: Revision,
) -> Result<(), Violation> {
    let rising = leases.iter().zip(leases.iter().skip(1));
    let rising = rising.into_iter().all(|(a, b)| a.guard < b.guard);
    ensure(rising, Violation::BadName)?;
    for change in leases {
        ensure(domain.policy.is_guard(&change.guard), Violation::BadName)?;
        check_lease(domain, &change.record, revision)?;
        check_follows(view, change, revision)?;
        check_sealed(change, fences, revision)?;
    }
    Ok(())
}

/// I16 to I19 for one guard.
fn check_follows(view: &View, change: &LeaseChange, revision: Revision) -> Result<(), Violation> {
    let before = view.lease(&change.guard).ok_or(Violation::UnknownRow)?;
    let fence = view.fence(&change.guard).ok_or(Violation::UnknownRow)?;
    let clock = view.lease_clock.as_ref().ok_or(Violation::UnknownRow)?;
    let after = &change.record;
    let of_now = after.changed_at.get() == revision.get();
    ensure(of_now, Violation::LeaseOutOfStep)?;
    let noted = after.clock_ms() <= clock.now_ms;
    ensure(noted, Violation::LeaseClockBehind)?;

    let was = before.and_then(|record| record.current.as_ref());
    let is = after.current.as_ref();
    let same = |id: u64| was.is_some_and(|lease| lease.id.get() == id);
    let epoch = |record: &LeaseRecord| (record.epoch.number().get(), record.epoch.mark().get());
    let same_epoch = before.filter(|record| epoch(record) == epoch(after));
    let raw = |record: &LeaseRecord| -> Vec<u64> {
        let numbers = record.grants.iter();
        numbers.map(|grant| grant.sequence.get()).collect()
    };
    let old = same_epoch.map_or_else(Vec::new, |record| raw(record));
    let new = raw(after);
    // The lease that was current is that still, or it is the one that ended last.
    let accounted = was.is_none_or(|lease| {
        is.is_some_and(|now| now.id.get() == lease.id.get())
            || after
                .last_end
                .as_ref()
                .is_some_and(|end| end.lease == *lease && end.at.get() == revision.get())
    });
    ensure(accounted, Violation::LeaseReturned)?;
    let (Some(lease), false) = (is, is.is_some_and(|lease| same(lease.id.get()))) else {
        let kept = same_epoch.is_some() && old == new;
        ensure(kept, Violation::TermNotAbove)?;
        let renewed = is.zip(was).is_none_or(|(now, was)| {
            now.renewed_at.get() == revision.get() && now.renewed_clock_ms >= was.renewed_clock_ms
        });
        return ensure(renewed, Violation::LeaseOutOfStep);
    };
    let of_now = lease.id.get() == revision.get() && lease.renewed_clock_ms == clock.now_ms;
    ensure(of_now, Violation::LeaseOutOfStep)?;
    let issued = lease.term.sequence.get();
    let later_epoch = before.is_none_or(|record| {
        epoch(record) == epoch(after) || record.epoch.number().get() < after.epoch.number().get()
    });
    let above = fence.is_none_or(|fence| fence.term.sequence.get() < issued)
        && old.iter().all(|sequence| *sequence < issued);
    let mut expected = old;
    expected.push(issued);
    let kept = expected.ends_with(&new);
    ensure(later_epoch && above && kept, Violation::TermNotAbove)
}

/// I16: a fence that rises with a lease rises to its term, when it is granted.
fn check_sealed(
    change: &LeaseChange,
    fences: &[FenceChange],
    revision: Revision,
) -> Result<(), Violation> {
    let raised = fences.iter().find(|fence| fence.guard == change.guard);
    let Some(raised) = raised else {
        return Ok(());
    };
    let granted = change.record.current.as_ref();
    let sealed = granted.is_some_and(|lease| {
        lease.id.get() == revision.get()
            && lease.term == raised.fence.term
            && lease.holder == raised.fence.holder
    });
    ensure(sealed, Violation::TermNotAbove)
}
