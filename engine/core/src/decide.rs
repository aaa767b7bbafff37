//! The decision: the nine steps of the contract in their order, and nothing else.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::accept;
use crate::command::{Commit, CreateDomain, GuardedRead, Mutation};
use crate::counters::{DomainId, Epoch, EpochNumber};
use crate::domain::{Domain, DomainState, EpochEntry, EpochTable};
use crate::effect::{Change, Effect};
use crate::intents;
use crate::leases;
use crate::limits::{DOMAINS_MAX, MUTATIONS_MAX};
use crate::policy::Terms;
use crate::receipt::Receipt;
use crate::rejection::{Malformed, Reason, Rejection};
use crate::rules::{self, Judged};
use crate::view::{View, touched_guards};

/// The answer to a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "a rejection means that nothing was written"]
pub enum Verdict {
    /// It is to be made durable, and then acknowledged.
    Accepted(Box<Accepted>),
    /// This step of this intent was accepted before: the receipt of then, marked as replayed. It is
    /// no new effect.
    Replayed(Box<Receipt>),
    /// It changes nothing.
    Rejected(Box<Rejection>),
}

/// What an accepted commit changes, and what the destination states about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// The change, to be logged and applied.
    pub effect: Effect,
    /// The statement, to be released once the change is durable.
    pub receipt: Receipt,
}

/// Judges a commit on what the view shows. Pure and total: same view and commit, same verdict.
///
/// The view must hold every row that [`crate::Footprint::of_commit`] names; one that is looked at
/// and missing refuses the commit. The first step that doesn't pass is the reason.
pub fn decide(view: &View, commit: &Commit) -> Verdict {
    match judge(view, commit) {
        Ok(verdict) => verdict,
        Err(rejection) => Verdict::Rejected(rejection),
    }
}

fn judge(view: &View, commit: &Commit) -> Judged<Verdict> {
    // R1: what can be said without knowing the domain.
    rules::well_formed(view, commit)?;
    intents::well_formed(view, commit)?;
    leases::well_formed(view, commit)?;
    // R2
    rules::right_destination(view, commit.destination.as_ref())?;
    let domain = rules::known_domain(view)?;
    // R1 again: what only the domain's policy can tell.
    let touched = touched_guards(commit, &domain.policy);
    rules::well_guarded(view, &domain.policy, commit, &touched)?;
    leases::alone(view, &domain.policy, commit)?;
    // R3
    if let Some(receipt) = intents::replay(view, commit)? {
        return Ok(Verdict::Replayed(receipt));
    }
    // R4
    rules::available(view, domain.state, adds_data(commit))?;
    // R5
    rules::admitted(view, &domain.policy, commit)?;
    // R6: every authority first, so that no fence of a strange epoch is ever compared.
    let under: Vec<_> = touched
        .into_iter()
        .filter_map(|guard| {
            commit
                .authority
                .for_guard(&guard)
                .cloned()
                .map(|authority| (guard, authority))
        })
        .collect();
    for (_, authority) in &under {
        rules::current_epoch(view, domain, authority)?;
    }
    // R7
    let leased = leases::mutations(commit);
    for (guard, authority) in &under {
        let caller = commit.caller.as_ref();
        let policy = &domain.policy;
        match leases::on(&leased, guard) {
            None => rules::not_fenced_out(view, policy, guard, authority, caller)?,
            // Letting go does no harm, whoever was accepted since, unless it is a step's.
            Some(Mutation::Release { .. }) if commit.intent.is_none() => {
                rules::its_own(view, policy, guard, authority, caller)?;
            }
            // Whose lease it is, and whether it is live, is for R8 to say.
            Some(_) => {
                let policy = policy.with_terms(Terms::External).with_strict(false);
                rules::not_fenced_out(view, &policy, guard, authority, caller)?;
            }
        }
    }
    leases::grantable(view, domain, commit)?;
    // R8
    rules::conditions_hold(view, commit)?;
    intents::changes_hold(view, &domain.policy, commit)?;
    leases::changes_hold(view, domain, commit)?;
    // R9
    let accepted = accept::commit(view, domain, commit, under)?;
    Ok(Verdict::Accepted(Box::new(accepted)))
}

/// Whether a commit can need more room than it frees.
fn adds_data(commit: &Commit) -> bool {
    let adds = |mutation: &Mutation| {
        matches!(
            mutation,
            Mutation::Put { .. } | Mutation::SetMetadata { .. } | Mutation::BindIntent { .. }
        )
    };
    commit.intent.is_some() || commit.mutations.iter().any(adds)
}

/// Judges a guarded read: whether its authority could still write under every guard it names. The
/// steps are those of a commit that has no conditions and no effect.
///
/// The view must hold every row that [`crate::Footprint::of_read`] names.
///
/// # Errors
///
/// The rejection, as a commit under the same authority would get it.
pub fn admit_read(view: &View, read: &GuardedRead) -> Result<(), Box<Rejection>> {
    if read.guards.is_empty() {
        return rules::reject(
            view,
            Reason::Malformed(Malformed::Missing { what: "guard" }),
        );
    }
    if read.guards.len() > MUTATIONS_MAX {
        let (what, count, max) = ("guards", read.guards.len(), MUTATIONS_MAX);
        return rules::reject(
            view,
            Reason::Malformed(Malformed::TooMany { what, count, max }),
        );
    }
    rules::right_destination(view, read.destination.as_ref())?;
    let domain = rules::known_domain(view)?;
    for guard in &read.guards {
        rules::is_guard(view, &domain.policy, guard)?;
    }
    rules::readable(view, domain.state)?;
    rules::current_epoch(view, domain, &read.authority)?;
    for guard in &read.guards {
        let caller = read.caller.as_ref();
        rules::not_fenced_out(view, &domain.policy, guard, &read.authority, caller)?;
    }
    Ok(())
}

/// Judges the creation of a domain. `view.domain` is the domain of that name, if there is one;
/// `existing` is how many domains there are, which is also the highest number given to one.
///
/// # Errors
///
/// The rejection: wrong destination, exists already, too many domains, or no effects taken now.
pub fn create_domain(
    view: &View,
    existing: u32,
    create: &CreateDomain,
) -> Result<Effect, Box<Rejection>> {
    rules::right_destination(view, create.destination.as_ref())?;
    if view.domain.is_some() {
        return rules::reject(view, Reason::DomainExists);
    }
    let id = existing
        .checked_add(1)
        .filter(|number| *number <= DOMAINS_MAX);
    let Some(id) = id.and_then(DomainId::new) else {
        return rules::reject(view, Reason::TooManyDomains);
    };
    rules::available(view, DomainState::Active, true)?;
    let Some(revision) = view.destination.revision.next() else {
        return rules::reject(view, Reason::RevisionExhausted);
    };
    let epoch = Epoch::new(EpochNumber::FIRST, create.mark);
    let domain = Domain {
        id,
        name: create.name.clone(),
        policy: create.policy,
        epochs: EpochTable::new(EpochEntry {
            epoch,
            installed_at: revision,
        }),
        state: DomainState::Active,
        created_at: revision,
    };
    Ok(Effect::new(
        revision,
        Change::DomainCreated(Arc::new(domain)),
    ))
}
