//! One straight-line function for each step of the decision. Each passes, or returns the rejection.
//! Their order is [`crate::decide`]'s business.

use alloc::boxed::Box;

use crate::authority::{Authority, Standing};
use crate::command::{Authorities, Commit, Condition, ExpectedDestination, Mutation};
use crate::conditions;
use crate::domain::{Domain, DomainState, EpochStanding};
use crate::limits::{COMMIT_BYTES_MAX, CONDITIONS_MAX, MUTATIONS_MAX};
use crate::names::{Guard, Identity, Key};
use crate::policy::{Admission, HolderBinding, Policy};
use crate::rejection::{Malformed, Observed, Reason, Rejection, Unavailable};
use crate::view::{Availability, View};

/// What a rule returns: nothing, or why not.
pub(crate) type Judged<T = ()> = Result<T, Box<Rejection>>;

/// A rejection with what a view shows of destination and domain.
pub(crate) fn reject<T>(view: &View, reason: Reason) -> Judged<T> {
    Err(Box::new(Rejection {
        reason,
        observed: Observed::of(view),
    }))
}

fn reject_at_guard<T>(view: &View, guard: &Guard, reason: Reason) -> Judged<T> {
    Err(Box::new(Rejection {
        reason,
        observed: Observed::of(view).guard(guard, view),
    }))
}

fn reject_at_key<T>(view: &View, key: &Key, reason: Reason) -> Judged<T> {
    Err(Box::new(Rejection {
        reason,
        observed: Observed::of(view).key(key, view),
    }))
}

/// R1, what can be said without the domain: sizes, numbers of parts, doubles.
pub(crate) fn well_formed(view: &View, commit: &Commit) -> Judged {
    let malformed = |what: Malformed| reject(view, Reason::Malformed(what));
    let too_many = |what, count, max| malformed(Malformed::TooMany { what, count, max });
    let (mutations, conditions) = (commit.mutations.len(), commit.conditions.len());
    if mutations == 0 {
        return malformed(Malformed::Empty);
    }
    if mutations > MUTATIONS_MAX {
        return too_many("mutations", mutations, MUTATIONS_MAX);
    }
    if conditions > CONDITIONS_MAX {
        return too_many("conditions", conditions, CONDITIONS_MAX);
    }
    let max = view.destination.limits.value_bytes;
    let mut total = 0_usize;
    for mutation in &commit.mutations {
        let (value_bytes, metadata_bytes) = match mutation {
            Mutation::Put {
                value, metadata, ..
            } => (value.as_bytes().len(), metadata.bytes()),
            Mutation::SetMetadata { metadata, .. } => (0, metadata.bytes()),
            Mutation::BindIntent { work, .. } => (0, work.bytes()),
            Mutation::Delete { .. }
            | Mutation::Advance { .. }
            | Mutation::CloseIntent { .. }
            | Mutation::SuspendIntent { .. } => (0, 0),
        };
        if value_bytes > max {
            return malformed(Malformed::ValueTooLarge {
                bytes: value_bytes,
                max,
            });
        }
        let key_bytes = mutation.key().map_or(0, |key| key.as_bytes().len());
        total = total
            .saturating_add(value_bytes)
            .saturating_add(metadata_bytes);
        total = total.saturating_add(key_bytes);
    }
    if total > COMMIT_BYTES_MAX {
        return malformed(Malformed::CommitTooLarge {
            bytes: total,
            max: COMMIT_BYTES_MAX,
        });
    }
    if let Some(key) = crate::duplicates::key_named_twice(&commit.mutations) {
        return malformed(Malformed::DuplicateKey(key));
    }
    match crate::duplicates::guard_named_twice(commit) {
        Some(guard) => malformed(Malformed::DuplicateGuard(guard)),
        None => Ok(()),
    }
}

/// R1, what needs the domain's policy: guards must be guards, authorities must be for guards that
/// are touched.
pub(crate) fn well_guarded(
    view: &View,
    policy: &Policy,
    commit: &Commit,
    touched: &[Guard],
) -> Judged {
    for guard in commit.mutations.iter().filter_map(Mutation::named_guard) {
        is_guard(view, policy, guard)?;
    }
    if let Authorities::PerGuard(list) = &commit.authority {
        for (guard, _) in list {
            if touched.binary_search(guard).is_err() {
                return reject(
                    view,
                    Reason::Malformed(Malformed::UntouchedGuard(guard.clone())),
                );
            }
        }
    }
    Ok(())
}

/// R1 for one guard: some key can be under it.
pub(crate) fn is_guard(view: &View, policy: &Policy, guard: &Guard) -> Judged {
    if policy.is_guard(guard) {
        return Ok(());
    }
    reject(
        view,
        Reason::Malformed(Malformed::NoSuchGuard(guard.clone())),
    )
}

/// R2: the destination and incarnation that were named, if any, are these.
pub(crate) fn right_destination(view: &View, expected: Option<&ExpectedDestination>) -> Judged {
    let here = &view.destination;
    match expected {
        Some(named) if named.id != here.id || named.incarnation != here.incarnation => {
            reject(view, Reason::WrongDestination)
        }
        _ => Ok(()),
    }
}

/// R2: the domain exists.
pub(crate) fn known_domain(view: &View) -> Judged<&Domain> {
    match &view.domain {
        Some(domain) => Ok(domain),
        None => reject(view, Reason::UnknownDomain),
    }
}

/// R4: destination and domain take effects. `adds_data` is false for what only deletes or advances:
/// a full disk still takes that, or nothing could ever free it.
pub(crate) fn available(view: &View, state: DomainState, adds_data: bool) -> Judged {
    let why = match (view.destination.availability, state) {
        (Availability::Poisoned, _) => Unavailable::Poisoned,
        (Availability::RecoveryRequired, _) | (_, DomainState::RecoveryRequired) => {
            Unavailable::RecoveryRequired
        }
        (_, DomainState::Frozen) => Unavailable::Frozen,
        (Availability::Overloaded, _) => Unavailable::Overloaded,
        (Availability::DiskFull, _) if adds_data => Unavailable::DiskFull,
        (Availability::DiskFull | Availability::Ready, DomainState::Active) => return Ok(()),
    };
    reject(view, Reason::Unavailable(why))
}

/// R4 for guarded reads: they have no effect, so only what makes fences untrustworthy refuses them.
pub(crate) fn readable(view: &View, state: DomainState) -> Judged {
    let untrusted = view.destination.availability == Availability::RecoveryRequired
        || state == DomainState::RecoveryRequired;
    if untrusted {
        return reject(view, Reason::Unavailable(Unavailable::RecoveryRequired));
    }
    Ok(())
}

/// R5: what the domain's admission demands is there. An advance and a binding need an authority in
/// every domain: there is nothing else that they could raise the fence to.
pub(crate) fn admitted(view: &View, policy: &Policy, commit: &Commit) -> Judged {
    for mutation in &commit.mutations {
        let Some(guard) = mutation.guard(policy) else {
            // An intent that isn't bound has no guard that an authority could be for: it has to be
            // bound first.
            if policy.admission() == Admission::Fenced {
                return reject(view, Reason::AuthorityRequired);
            }
            continue;
        };
        let raises = matches!(
            mutation,
            Mutation::Advance { .. } | Mutation::BindIntent { .. }
        );
        let needs_authority = policy.admission() == Admission::Fenced || raises;
        if needs_authority && commit.authority.for_guard(&guard).is_none() {
            return reject_at_guard(view, &guard, Reason::AuthorityRequired);
        }
        if policy.admission() != Admission::Versioned {
            continue;
        }
        let matched = |key: &Key| {
            let on_key = |condition: &Condition| match condition {
                Condition::GenerationIs { key: named, .. } => named == key,
                _ => false,
            };
            commit.conditions.iter().any(on_key)
        };
        if let Some(key) = mutation.key()
            && !matched(key)
        {
            return reject_at_key(view, key, Reason::PreconditionRequired);
        }
    }
    Ok(())
}

/// R6: the presented epoch is the domain's current one.
pub(crate) fn current_epoch(view: &View, domain: &Domain, authority: &Authority) -> Judged {
    let presented = authority.clone();
    match domain.epochs.standing(&authority.term().epoch) {
        EpochStanding::Current => Ok(()),
        EpochStanding::Retired => reject(view, Reason::StaleEpoch { presented }),
        EpochStanding::Unknown => reject(view, Reason::UnknownEpoch { presented }),
    }
}

/// R7 for one guard: the authority isn't below the fence, nobody else's, not too far above it, and
/// the caller's own.
pub(crate) fn not_fenced_out(
    view: &View,
    policy: &Policy,
    guard: &Guard,
    authority: &Authority,
    caller: Option<&Identity>,
) -> Judged {
    let Some(fence) = view.fence(guard) else {
        return reject(view, Reason::Unavailable(Unavailable::Incomplete));
    };
    let presented = authority.clone();
    let refuse = |reason| reject_at_guard(view, guard, reason);
    match fence.map(|fence| authority.standing(fence)) {
        Some(Standing::Older) => return refuse(Reason::StaleTerm { presented }),
        Some(Standing::Contested) => return refuse(Reason::HolderConflict { presented }),
        Some(Standing::Newer { step }) => {
            if let Some(max) = policy.max_sequence_step()
                && step > max
            {
                return refuse(Reason::SequenceJump {
                    presented,
                    step,
                    max,
                });
            }
        }
        Some(Standing::Holder) | None => {}
    }
    if bound(policy.holder_binding(), authority, caller) {
        return Ok(());
    }
    refuse(Reason::WrongHolder { presented })
}

/// Whether the holder may be used by the caller.
fn bound(binding: HolderBinding, authority: &Authority, caller: Option<&Identity>) -> bool {
    let holder = authority.holder().as_bytes();
    match (binding, caller) {
        (HolderBinding::None, _) => true,
        (_, None) => false,
        (HolderBinding::Exact, Some(identity)) => holder == identity.as_bytes(),
        (HolderBinding::Prefix, Some(identity)) => holder
            .strip_prefix(identity.as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")),
    }
}

/// R8: every condition holds, and every metadata update finds its key.
pub(crate) fn conditions_hold(view: &View, commit: &Commit) -> Judged {
    for (index, condition) in commit.conditions.iter().enumerate() {
        match conditions::judge(view, condition) {
            conditions::Outcome::Holds => {}
            conditions::Outcome::Fails => return condition_failed(view, Some(index), condition),
            conditions::Outcome::TooOld { remembers_since } => {
                return reject(
                    view,
                    Reason::TooOld {
                        index,
                        remembers_since,
                    },
                );
            }
            conditions::Outcome::NotFetched => {
                return reject(view, Reason::Unavailable(Unavailable::Incomplete));
            }
        }
    }
    for mutation in &commit.mutations {
        if let Mutation::SetMetadata { key, .. } = mutation
            && view.key(key).is_some_and(|row| row.record.is_none())
        {
            let exists = Condition::GenerationIsNot {
                key: key.clone(),
                generation: None,
            };
            return condition_failed(view, None, &exists);
        }
    }
    Ok(())
}

fn condition_failed(view: &View, index: Option<usize>, condition: &Condition) -> Judged {
    let reason = Reason::ConditionFailed {
        index,
        condition: condition.clone(),
    };
    let mut observed = Observed::of(view);
    if let Some(key) = condition.key() {
        observed = observed.key(key, view);
    }
    if let Condition::PrefixUnchangedSince { prefix, .. } = condition {
        observed.changed_at = view.prefix(prefix).and_then(|row| row.changed_at);
    }
    Err(Box::new(Rejection { reason, observed }))
}
