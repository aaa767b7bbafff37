//! The rules about leases: R1, R7 and R8 as far as they concern them, and what R9 records.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::authority::{Authority, Term};
use crate::command::{Commit, Mutation};
use crate::counters::{Epoch, LeaseId, Sequence};
use crate::domain::Domain;
use crate::lease::{EndCause, LeaseRecord, LeaseStanding};
use crate::lease_clock::LeaseClock;
use crate::limits::LEASE_MUTATIONS_MAX;
use crate::names::{Guard, Holder};
use crate::policy::Policy;
use crate::rejection::{Malformed, Observed, Reason, Rejection, Unavailable};
use crate::rules::{self, Judged, reject};
use crate::view::{View, leased_guards};

/// A rejection with a guard, its fence and its leases.
pub(crate) fn reject_at_lease<T>(view: &View, guard: &Guard, reason: Reason) -> Judged<T> {
    Err(Box::new(Rejection {
        reason,
        observed: Observed::of(view).leased(guard, view),
    }))
}

/// The leases of a guard, and the clock that they are judged by.
pub(crate) fn fetched<'a>(
    view: &'a View,
    guard: &Guard,
) -> Judged<(Option<&'a Arc<LeaseRecord>>, &'a LeaseClock)> {
    match (view.lease(guard), &view.lease_clock) {
        (Some(row), Some(clock)) => Ok((row, clock)),
        _ => reject(view, Reason::Unavailable(Unavailable::Incomplete)),
    }
}

/// R1 for leases: not too many, and each guard's changed by one mutation.
pub(crate) fn well_formed(view: &View, commit: &Commit) -> Judged {
    let leased = commit.mutations.iter().filter_map(Mutation::leased_guard);
    let count = leased.count();
    if count > LEASE_MUTATIONS_MAX {
        let (what, max) = ("mutations of leases", LEASE_MUTATIONS_MAX);
        return reject(
            view,
            Reason::Malformed(Malformed::TooMany { what, count, max }),
        );
    }
    match crate::duplicates::lease_changed_twice(&commit.mutations) {
        Some(guard) => reject(view, Reason::Malformed(Malformed::DuplicateGuard(guard))),
        None => Ok(()),
    }
}

/// R1, what needs the domain's policy: no other mutation touches a guard whose lease changes.
pub(crate) fn alone(view: &View, policy: &Policy, commit: &Commit) -> Judged {
    let leased = leased_guards(commit);
    if leased.is_empty() {
        return Ok(());
    }
    let others = commit.mutations.iter();
    let others = others.filter(|mutation| mutation.leased_guard().is_none());
    let mut touched = others.filter_map(|mutation| mutation.guard(policy));
    match touched.find(|guard| leased.binary_search(guard).is_ok()) {
        Some(guard) => reject(view, Reason::Malformed(Malformed::DuplicateGuard(guard))),
        None => Ok(()),
    }
}

/// The mutations of a commit that change leases.
pub(crate) fn mutations(commit: &Commit) -> Vec<&Mutation> {
    let leases = |mutation: &&Mutation| mutation.leased_guard().is_some();
    commit.mutations.iter().filter(leases).collect()
}

/// The one of them that changes the lease of this guard, if one does.
pub(crate) fn on<'a>(leased: &[&'a Mutation], guard: &Guard) -> Option<&'a Mutation> {
    let changes = |mutation: &&&Mutation| mutation.leased_guard() == Some(guard);
    leased.iter().find(changes).copied()
}

/// R7 where terms are issued: the presented one was issued here to the presented holder.
pub(crate) fn issued_here(view: &View, guard: &Guard, authority: &Authority) -> Judged {
    let (row, _) = fetched(view, guard)?;
    if row.is_some_and(|record| record.granted(authority)) {
        return Ok(());
    }
    let presented = authority.clone();
    reject_at_lease(view, guard, Reason::UnknownTerm { presented })
}

/// R7 where the policy is strict: the presented authority has a live lease.
pub(crate) fn leased_now(view: &View, guard: &Guard, authority: &Authority) -> Judged {
    let (row, clock) = fetched(view, guard)?;
    let current = row.and_then(|record| record.current.as_ref());
    let ended = match current.filter(|lease| lease.is_of(authority)) {
        Some(lease) if clock.deadline_ms(lease) > clock.now_ms => return Ok(()),
        Some(_) => Some(EndCause::Expired),
        None => row
            .and_then(|record| record.last_end.as_ref())
            .filter(|end| end.lease.is_of(authority))
            .map(|end| end.cause.clone()),
    };
    let presented = authority.clone();
    reject_at_lease(view, guard, Reason::NotLeased { presented, ended })
}

/// R7 for what acquires: the holder is the caller's own, and its term will be in reach of the
/// fence. The authority in the reason is the one that would have been granted.
pub(crate) fn grantable(view: &View, domain: &Domain, commit: &Commit) -> Judged {
    for mutation in &commit.mutations {
        let Mutation::Acquire {
            guard,
            holder,
            seal,
            ..
        } = mutation
        else {
            continue;
        };
        let epoch = domain.epochs.current().epoch;
        let highest = highest(view, guard, &epoch)?;
        let next = highest.checked_add(1).and_then(Sequence::new);
        let Some(sequence) = next.or(Sequence::new(highest)) else {
            return reject(view, Reason::Unavailable(Unavailable::Incomplete));
        };
        let presented = Authority::new(Term { epoch, sequence }, holder.clone());
        let refuse = |reason| reject_at_lease(view, guard, reason);
        let binding = domain.policy.holder_binding();
        if !rules::bound(binding, &presented, commit.caller.as_ref()) {
            return refuse(Reason::WrongHolder { presented });
        }
        let fence = view.fence(guard).flatten();
        let step = fence.and_then(|fence| {
            let step = sequence.get().checked_sub(fence.term.sequence.get());
            step.and_then(NonZeroU64::new)
        });
        if let (false, Some(step), Some(max)) = (*seal, step, domain.policy.max_sequence_step())
            && step > max
        {
            return refuse(Reason::SequenceJump {
                presented,
                step,
                max,
            });
        }
    }
    Ok(())
}

/// The highest sequence that was issued or accepted for a guard in this epoch; 0 if none was.
pub(crate) fn highest(view: &View, guard: &Guard, epoch: &Epoch) -> Judged<u64> {
    let (row, _) = fetched(view, guard)?;
    let Some(fence) = view.fence(guard) else {
        return reject(view, Reason::Unavailable(Unavailable::Incomplete));
    };
    let issued = row.filter(|record| record.epoch == *epoch);
    let issued = issued.and_then(|record| record.issued());
    let accepted = fence.map(|fence| fence.term.sequence);
    Ok(issued
        .map_or(0, Sequence::get)
        .max(accepted.map_or(0, Sequence::get)))
}

/// R8 for leases: a guard that is acquired is free, and a lease that is changed is the live one;
/// one that expires has lapsed.
pub(crate) fn changes_hold(view: &View, domain: &Domain, commit: &Commit) -> Judged {
    let epoch = domain.epochs.current().epoch;
    for mutation in &commit.mutations {
        let Some(guard) = mutation.leased_guard() else {
            continue;
        };
        let (row, clock) = fetched(view, guard)?;
        let standing = row.and_then(|record| record.standing(&epoch, clock));
        let reason = match mutation {
            Mutation::Acquire {
                holder, supersede, ..
            } => held(row, standing, holder, *supersede)
                .or_else(|| delayed(row, standing, holder, clock, &domain.policy)),
            Mutation::Renew { lease, .. } | Mutation::Release { lease, .. } => {
                let authority = commit.authority.for_guard(guard);
                gone(row, standing, Some(*lease), authority)
            }
            Mutation::Revoke { lease, .. } => gone(row, standing, *lease, None),
            Mutation::Expire { lease, .. } => not_lapsed(row, standing, *lease),
            Mutation::Put { .. }
            | Mutation::Delete { .. }
            | Mutation::SetMetadata { .. }
            | Mutation::Advance { .. }
            | Mutation::BindIntent { .. }
            | Mutation::CloseIntent { .. }
            | Mutation::SuspendIntent { .. } => None,
        };
        if let Some(reason) = reason {
            return reject_at_lease(view, guard, reason);
        }
    }
    Ok(())
}

type Row<'a> = Option<&'a Arc<LeaseRecord>>;

/// Why a guard can't be acquired now: somebody else holds it, or the same holder doesn't say that
/// its lease gives way.
fn held(
    row: Row<'_>,
    standing: Option<LeaseStanding>,
    holder: &Holder,
    supersede: bool,
) -> Option<Reason> {
    let Some(LeaseStanding::Live { remaining_ms }) = standing else {
        return None;
    };
    let current = row.and_then(|record| record.current.as_ref());
    let own = current.is_some_and(|lease| lease.holder == *holder);
    (!(own && supersede)).then_some(Reason::LeaseHeld { remaining_ms })
}

/// Why a guard can't be acquired yet: its last lease has lapsed too short a time ago.
fn delayed(
    row: Row<'_>,
    standing: Option<LeaseStanding>,
    holder: &Holder,
    clock: &LeaseClock,
    policy: &Policy,
) -> Option<Reason> {
    let record = row?;
    let (lease, since_ms) = match (standing, &record.last_end) {
        (Some(LeaseStanding::Lapsed { since_ms }), _) => (record.current.as_ref()?, since_ms),
        (None, Some(end)) if end.cause == EndCause::Expired => (&end.lease, end.clock_ms),
        _ => return None,
    };
    let until_ms = clock.end_ms(since_ms, policy.grace_ms());
    let remaining_ms = until_ms.saturating_sub(clock.now_ms);
    let delays = lease.holder != *holder && remaining_ms > 0;
    delays.then_some(Reason::LeaseDelayed { remaining_ms })
}

/// Why a lease can't be changed: it isn't the live one, or not of this authority.
fn gone(
    row: Row<'_>,
    standing: Option<LeaseStanding>,
    named: Option<LeaseId>,
    authority: Option<&Authority>,
) -> Option<Reason> {
    let current = row.and_then(|record| record.current.as_ref());
    let meant = current.filter(|lease| named.is_none_or(|named| named == lease.id));
    let lease = named.or(meant.map(|lease| lease.id));
    let ended = match (standing, meant) {
        (Some(LeaseStanding::Live { .. }), Some(lease)) => {
            if authority.is_none_or(|authority| lease.is_of(authority)) {
                return None;
            }
            None
        }
        (Some(LeaseStanding::Lapsed { .. }), Some(_)) => Some(EndCause::Expired),
        (Some(LeaseStanding::Retired), Some(_)) => Some(EndCause::EpochTransition),
        _ => row
            .and_then(|record| record.last_end.as_ref())
            .filter(|end| lease.is_none_or(|named| named == end.lease.id))
            .map(|end| end.cause.clone()),
    };
    Some(Reason::LeaseGone { lease, ended })
}

/// Why a lease can't expire: it is live, or isn't there any more.
fn not_lapsed(row: Row<'_>, standing: Option<LeaseStanding>, named: LeaseId) -> Option<Reason> {
    let current = row.and_then(|record| record.current.as_ref());
    match (standing, current.filter(|lease| lease.id == named)) {
        (Some(LeaseStanding::Lapsed { .. }), Some(_)) => None,
        (Some(LeaseStanding::Live { remaining_ms }), Some(_)) => {
            Some(Reason::LeaseHeld { remaining_ms })
        }
        _ => gone(row, standing, Some(named), None),
    }
}
