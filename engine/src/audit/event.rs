//! What a line says: names in their escaped form, numbers as text, digests in the place of values.

use std::sync::Arc;

use highwater_core::{
    Change, DomainId, DomainName, Effect, EndCause, Fence, Guard, IntentChange, IntentState,
    LeaseChange, Reason, RecordChange, Rejection, Revision, escape,
};
use serde::Serialize;

use super::line::Removed;
use super::refusals::UNAVAILABLE;

/// A durable change on its way to the trail.
#[derive(Clone, Debug)]
pub(crate) struct Audited {
    pub(crate) effect: Arc<Effect>,
    /// Every guard that was touched under an authority, with its fence; `None` where the change was
    /// found in the log, which keeps the fences that rose and no others.
    pub(crate) guards: Option<Vec<(Guard, Fence)>>,
}

/// What a line says, beside what every line says.
#[derive(Serialize, Clone, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The store began.
    Created { revision: String },
    /// A domain was made.
    Domain {
        revision: String,
        domain: String,
        epoch: String,
    },
    /// A commit was accepted.
    Commit {
        revision: String,
        domain: String,
        guards: Vec<Guarded>,
        writes: Vec<Written>,
        intents: Vec<Intended>,
        leases: Vec<Leased>,
        from_log: bool,
    },
    /// The lease clock was noted.
    Clock {
        revision: String,
        now_ms: String,
        opened: bool,
    },
    /// A commit, or the making of a domain, was refused.
    Refused {
        at: Option<String>,
        domain: String,
        reason: &'static str,
        presented: Option<String>,
        epoch: Option<String>,
        guard: Option<String>,
        fence: Option<String>,
        key: Option<String>,
        generation: Option<String>,
        intent: Option<String>,
    },
    /// So many refusals have no line.
    RefusalsSuppressed { counts: Vec<Suppressed> },
    /// So many revisions have no line.
    Gap {
        from: String,
        to: String,
        count: String,
        cause: &'static str,
    },
    /// The store was opened at this revision.
    Opened { at: String },
    /// It was closed in good order.
    Closed { at: String },
    /// Files are removed, by the bounds of the trail.
    Retention { files: Vec<Removed> },
}

/// A guard that was touched under an authority.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Guarded {
    guard: String,
    authority: String,
}

/// A key that changed.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Written {
    key: String,
    generation: Option<String>,
    metageneration: Option<String>,
    term: Option<String>,
    digest: Option<String>,
    bytes: Option<String>,
}

/// An intent that changed.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Intended {
    intent: String,
    step: Option<String>,
    state: &'static str,
    owner: Option<String>,
}

/// What happened to a lease.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Leased {
    guard: String,
    lease: String,
    authority: String,
    event: &'static str,
    cause: Option<&'static str>,
    by: Option<String>,
}

/// How many refusals of one cause have no line.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Suppressed {
    pub(crate) domain: Option<String>,
    pub(crate) reason: &'static str,
    pub(crate) guard: Option<String>,
    pub(crate) count: String,
}

impl Event {
    /// The line of a change. `domain` finds the name of a domain.
    pub(crate) fn of(audited: &Audited, domain: impl Fn(DomainId) -> Option<DomainName>) -> Self {
        let at = audited.effect.revision();
        let revision = at.to_string();
        match audited.effect.change() {
            Change::Genesis { .. } => Self::Created { revision },
            Change::DomainCreated(made) => Self::Domain {
                revision,
                domain: made.name.to_string(),
                epoch: made.epochs.current().epoch.to_string(),
            },
            Change::LeaseClock { now_ms, opened } => Self::Clock {
                revision,
                now_ms: now_ms.to_string(),
                opened: *opened,
            },
            Change::Commit {
                domain: id,
                records,
                fences,
                intents,
                leases,
            } => Self::Commit {
                revision,
                domain: domain(*id).map_or_else(String::new, |name| name.to_string()),
                guards: match &audited.guards {
                    Some(touched) => touched.iter().map(|(g, f)| guarded(g, f)).collect(),
                    None => fences.iter().map(|c| guarded(&c.guard, &c.fence)).collect(),
                },
                writes: records.iter().map(written).collect(),
                intents: intents.iter().map(|change| intended(change, at)).collect(),
                leases: leases
                    .iter()
                    .flat_map(|change| leased(change, at))
                    .collect(),
                from_log: audited.guards.is_none(),
            },
        }
    }

    /// The line of a refusal.
    pub(crate) fn refused(domain: &DomainName, rejection: Option<&Rejection>) -> Self {
        let seen = rejection.map(|rejection| &rejection.observed);
        let presented = rejection.and_then(|rejection| presented(&rejection.reason));
        let guard = seen.and_then(|seen| seen.guard.as_ref());
        let key = seen.and_then(|seen| seen.key.as_ref());
        let intent = seen.and_then(|seen| seen.intent.as_ref());
        Self::Refused {
            at: seen.map(|seen| seen.revision.to_string()),
            domain: domain.to_string(),
            reason: rejection.map_or(UNAVAILABLE, |rejection| rejection.reason.code()),
            presented,
            epoch: seen
                .and_then(|seen| seen.epoch)
                .map(|epoch| epoch.to_string()),
            guard: guard.map(|guard| escape(guard.as_bytes())),
            fence: seen.and_then(|seen| seen.fence.as_ref()).map(authority),
            key: key.map(|key| escape(key.as_bytes())),
            generation: seen
                .and_then(|seen| seen.generation)
                .map(|g| g.get().to_string()),
            intent: intent.map(|intent| escape(intent.id.as_bytes())),
        }
    }

    /// A gap over these revisions.
    pub(crate) fn gap(from: u64, to: u64, cause: &'static str) -> Self {
        Self::Gap {
            from: from.to_string(),
            to: to.to_string(),
            count: to.saturating_sub(from).saturating_add(1).to_string(),
            cause,
        }
    }

    /// The last revision that the line accounts for, if it accounts for any.
    pub(crate) fn audits(&self) -> Option<u64> {
        match self {
            Self::Created { revision }
            | Self::Domain { revision, .. }
            | Self::Commit { revision, .. }
            | Self::Clock { revision, .. } => revision.parse().ok(),
            Self::Gap { to, .. } => to.parse().ok(),
            Self::Refused { .. }
            | Self::RefusalsSuppressed { .. }
            | Self::Opened { .. }
            | Self::Closed { .. }
            | Self::Retention { .. } => None,
        }
    }
}

/// The text of an authority; its holder is escaped in it.
fn authority(fence: &Fence) -> String {
    fence.to_string()
}

fn guarded(guard: &Guard, fence: &Fence) -> Guarded {
    Guarded {
        guard: escape(guard.as_bytes()),
        authority: authority(fence),
    }
}

fn written(change: &RecordChange) -> Written {
    let record = change.record.as_ref();
    Written {
        key: escape(change.key.as_bytes()),
        generation: record.map(|record| record.generation.get().to_string()),
        metageneration: record.map(|record| record.metageneration.get().to_string()),
        term: record
            .and_then(|record| record.written_under)
            .map(|term| term.to_string()),
        digest: record.map(|record| crate::digest(&record.value).to_string()),
        bytes: record.map(|record| record.value.as_bytes().len().to_string()),
    }
}

fn intended(change: &IntentChange, at: Revision) -> Intended {
    let last = change.record.steps.last();
    let step = last.filter(|step| step.receipt.revision == at);
    let (state, owner) = match &change.record.state {
        IntentState::Open => ("open", None),
        IntentState::Indeterminate { owner, .. } => {
            ("indeterminate", Some(escape(owner.as_bytes())))
        }
        IntentState::Ended(highwater_core::Ending::Completed) => ("completed", None),
        IntentState::Ended(highwater_core::Ending::Superseded) => ("superseded", None),
        IntentState::Ended(highwater_core::Ending::Cancelled) => ("cancelled", None),
        IntentState::Ended(highwater_core::Ending::Rejected) => ("rejected", None),
    };
    Intended {
        intent: escape(change.id.as_bytes()),
        step: step.map(|step| step.step.to_string()),
        state,
        owner,
    }
}

/// The lease that ended at this revision, and the one that was granted or renewed at it.
fn leased(change: &LeaseChange, at: Revision) -> impl Iterator<Item = Leased> {
    let of = |lease: &highwater_core::Lease, event, cause, by| Leased {
        guard: escape(change.guard.as_bytes()),
        lease: lease.id.get().to_string(),
        authority: lease.authority().to_string(),
        event,
        cause,
        by,
    };
    let ended = change.record.last_end.as_ref().filter(|end| end.at == at);
    let ended = ended.map(|end| {
        let (cause, by) = match &end.cause {
            EndCause::Expired => ("expired", None),
            EndCause::Released => ("released", None),
            EndCause::Revoked { by } => ("revoked", Some(escape(by.as_bytes()))),
            EndCause::Superseded => ("superseded", None),
            EndCause::EpochTransition => ("epoch_transition", None),
            EndCause::Restore => ("restore", None),
        };
        of(&end.lease, "ended", Some(cause), by)
    });
    let current = change.record.current.as_ref();
    let current = current.filter(|lease| lease.renewed_at == at);
    let current = current.map(|lease| {
        let granted = lease.id.get() == at.get();
        of(
            lease,
            if granted { "granted" } else { "renewed" },
            None,
            None,
        )
    });
    ended.into_iter().chain(current)
}

/// The authority that a refusal is about.
fn presented(reason: &Reason) -> Option<String> {
    match reason {
        Reason::StaleEpoch { presented }
        | Reason::UnknownEpoch { presented }
        | Reason::StaleTerm { presented }
        | Reason::HolderConflict { presented }
        | Reason::SequenceJump { presented, .. }
        | Reason::WrongHolder { presented }
        | Reason::UnknownTerm { presented }
        | Reason::NotLeased { presented, .. } => Some(presented.to_string()),
        _ => None,
    }
}
