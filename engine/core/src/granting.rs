//! Step 9 for leases: what is stored of them from now on, and what is stated.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::authority::{Authority, Term};
use crate::command::{Commit, Mutation};
use crate::counters::{LeaseId, Revision, Sequence};
use crate::domain::Domain;
use crate::effect::LeaseChange;
use crate::lease::{EndCause, Grant, Lease, LeaseEnd, LeaseRecord, LeaseStanding, Ttl};
use crate::leases::{fetched, highest, reject_at_lease};
use crate::limits::GRANTS_KEPT;
use crate::names::{Guard, Holder};
use crate::receipt::LeaseReceipt;
use crate::rejection::{Reason, Unavailable};
use crate::rules::{Judged, reject};
use crate::view::View;

/// What a commit does to leases.
#[derive(Default)]
pub(crate) struct LeaseEffects {
    /// What is stored from now on, ordered by guard.
    pub(crate) changes: Vec<LeaseChange>,
    /// What is stated, in the order of the mutations.
    pub(crate) receipts: Vec<LeaseReceipt>,
    /// The guards whose fence rises to the term that was granted.
    pub(crate) sealed: Vec<(Guard, Authority)>,
}

/// Makes the changes that every rule passed.
///
/// # Errors
///
/// A guard has no sequence left, or a row wasn't fetched.
pub(crate) fn changes(
    view: &View,
    domain: &Domain,
    commit: &Commit,
    revision: Revision,
) -> Judged<LeaseEffects> {
    let mut effects = LeaseEffects::default();
    for mutation in &commit.mutations {
        let Some(guard) = mutation.leased_guard() else {
            continue;
        };
        let (record, receipt) = match mutation {
            Mutation::Acquire {
                holder, ttl, seal, ..
            } => {
                let (record, receipt) = granted(view, domain, guard, (holder, *ttl), revision)?;
                if *seal {
                    let authority = receipt.lease.authority();
                    effects.sealed.push((guard.clone(), authority));
                }
                (record, receipt)
            }
            _ => changed(view, domain, mutation, guard, revision)?,
        };
        let (guard, record) = (guard.clone(), Arc::new(record));
        effects.changes.push(LeaseChange { guard, record });
        effects.receipts.push(receipt);
    }
    effects.changes.sort_by(|a, b| a.guard.cmp(&b.guard));
    Ok(effects)
}

/// A guard's record with a new lease, under a term above all that were issued or accepted.
fn granted(
    view: &View,
    domain: &Domain,
    guard: &Guard,
    (holder, ttl): (&Holder, Ttl),
    revision: Revision,
) -> Judged<(LeaseRecord, LeaseReceipt)> {
    let epoch = domain.epochs.current().epoch;
    let (row, clock) = fetched(view, guard)?;
    let next = highest(view, guard, &epoch)?.checked_add(1);
    let Some(sequence) = next.and_then(Sequence::new) else {
        return reject_at_lease(view, guard, Reason::SequenceExhausted);
    };
    let standing = row.and_then(|record| record.standing(&epoch, clock));
    let replaced = standing.map(|standing| match standing {
        LeaseStanding::Live { .. } => EndCause::Superseded,
        LeaseStanding::Lapsed { .. } => EndCause::Expired,
        LeaseStanding::Retired => EndCause::EpochTransition,
    });
    let last_end = match (row, &replaced) {
        (Some(record), Some(cause)) => {
            let ended_ms = ended_ms(standing, clock.now_ms);
            end(record, cause.clone(), revision, ended_ms)
        }
        (Some(record), None) => record.last_end.clone(),
        (None, _) => None,
    };
    let same_epoch = row.filter(|record| record.epoch == epoch);
    let mut grants = same_epoch.map_or_else(Vec::new, |record| record.grants.clone());
    grants.push(Grant {
        sequence,
        holder: holder.clone(),
    });
    let surplus = grants.len().saturating_sub(GRANTS_KEPT);
    let grants: Vec<Grant> = grants.into_iter().skip(surplus).collect();
    let lease = Arc::new(Lease {
        id: LeaseId::of(revision),
        term: Term { epoch, sequence },
        holder: holder.clone(),
        ttl,
        renewed_at: revision,
        renewed_clock_ms: clock.now_ms,
    });
    let receipt = LeaseReceipt {
        guard: guard.clone(),
        lease: Arc::clone(&lease),
        ended: None,
        replaced,
    };
    let record = LeaseRecord {
        epoch,
        grants,
        current: Some(lease),
        last_end,
        changed_at: revision,
    };
    Ok((record, receipt))
}

/// A guard's record with its current lease renewed or ended.
fn changed(
    view: &View,
    domain: &Domain,
    mutation: &Mutation,
    guard: &Guard,
    revision: Revision,
) -> Judged<(LeaseRecord, LeaseReceipt)> {
    let (row, clock) = fetched(view, guard)?;
    let Some((record, lease)) = row.and_then(|record| Some((record, record.current.as_ref()?)))
    else {
        return reject(view, Reason::Unavailable(Unavailable::Incomplete));
    };
    let cause = match mutation {
        Mutation::Release { .. } => Some(EndCause::Released),
        Mutation::Revoke { by, .. } => Some(EndCause::Revoked { by: by.clone() }),
        Mutation::Expire { .. } => Some(EndCause::Expired),
        _ => None,
    };
    let mut after = LeaseRecord::clone(record);
    after.changed_at = revision;
    let mut stated = Arc::clone(lease);
    if let Some(cause) = &cause {
        let standing = record.standing(&domain.epochs.current().epoch, clock);
        let ended_ms = ended_ms(standing, clock.now_ms);
        after.last_end = end(record, cause.clone(), revision, ended_ms);
        after.current = None;
    } else {
        let longer = match mutation {
            Mutation::Renew { ttl, .. } => *ttl,
            _ => None,
        };
        stated = Arc::new(Lease {
            ttl: longer.unwrap_or(lease.ttl),
            renewed_at: revision,
            renewed_clock_ms: clock.now_ms,
            ..Lease::clone(lease)
        });
        after.current = Some(Arc::clone(&stated));
    }
    let receipt = LeaseReceipt {
        guard: guard.clone(),
        lease: stated,
        ended: cause,
        replaced: None,
    };
    Ok((after, receipt))
}

/// When a lease that ends now ended: one that has lapsed, when it did.
const fn ended_ms(standing: Option<LeaseStanding>, now_ms: u64) -> u64 {
    match standing {
        Some(LeaseStanding::Lapsed { since_ms }) => since_ms,
        Some(LeaseStanding::Live { .. } | LeaseStanding::Retired) | None => now_ms,
    }
}

/// The end of a record's current lease; without one, the last end that there was.
fn end(record: &LeaseRecord, cause: EndCause, at: Revision, clock_ms: u64) -> Option<LeaseEnd> {
    let end = record.current.as_ref().map(|lease| LeaseEnd {
        lease: Arc::clone(lease),
        cause,
        at,
        clock_ms,
    });
    end.or_else(|| record.last_end.clone())
}
