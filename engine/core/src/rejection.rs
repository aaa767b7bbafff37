//! Why a request was refused, and what was observed. Data, not an error string.

use core::fmt;
use core::num::NonZeroU64;

use crate::authority::{Authority, Fence};
use crate::command::Condition;
use crate::counters::{
    DestinationId, Epoch, Generation, Incarnation, LeaseId, Metageneration, Revision,
};
use crate::intent::{IntentState, Step};
use crate::lease::{EndCause, ObservedLease};
use crate::metadata::MetadataError;
use crate::names::{Digest, Guard, IntentId, Key, NameError};
use crate::policy::PolicyError;
use crate::summary::ObservedIntent;
use crate::view::View;

/// The step of the decision that refused, as numbered in the contract.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// The request is well formed.
    R1,
    /// It is meant for this destination, and names a domain of it.
    R2,
    /// Its intent has no other outcome yet.
    R3,
    /// The destination and the domain take effects.
    R4,
    /// It carries what the domain's admission demands.
    R5,
    /// Its epoch is the domain's current one.
    R6,
    /// Its authority isn't below any fence that it touches, and issued and leased as demanded.
    R7,
    /// Its conditions hold, and the intents and leases that it changes can be changed so.
    R8,
    /// Its effect can be numbered.
    R9,
}

/// A refused request: the reason, and what the destination saw when it refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// Why.
    pub reason: Reason,
    /// What was seen. Fields that the reason doesn't concern are `None`.
    pub observed: Observed,
}

/// What was seen at the moment of a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observed {
    /// The destination that judged.
    pub destination: DestinationId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The last revision of the state that was judged on.
    pub revision: Revision,
    /// The domain's current epoch, if the domain exists.
    pub epoch: Option<Epoch>,
    /// The guard that the reason concerns.
    pub guard: Option<Guard>,
    /// That guard's fence; `None` also where there is none.
    pub fence: Option<Fence>,
    /// The key that the reason concerns.
    pub key: Option<Key>,
    /// That key's generation; `None` also where it doesn't exist.
    pub generation: Option<Generation>,
    /// That key's metageneration; `None` also where it doesn't exist.
    pub metageneration: Option<Metageneration>,
    /// That key's last change; for a key that doesn't exist, and for a prefix, the last change that
    /// is remembered, where a condition asked for it.
    pub changed_at: Option<Revision>,
    /// The digest of that key's value, where a condition asked for it.
    pub digest: Option<Digest>,
    /// The intent that the reason concerns.
    pub intent: Option<ObservedIntent>,
    /// The leases of that guard, where the reason is about them.
    pub lease: Option<ObservedLease>,
}

/// Why a request was refused. One variant for each reason of the contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The request itself is wrong, whatever the state.
    Malformed(Malformed),
    /// The named destination or incarnation isn't this one.
    WrongDestination,
    /// This destination has no domain of that name.
    UnknownDomain,
    /// A domain of that name exists already.
    DomainExists,
    /// The destination has as many domains as it can have.
    TooManyDomains,
    /// No effects are taken now.
    Unavailable(Unavailable),
    /// The domain's admission, or an advance, demands an authority for this guard.
    AuthorityRequired,
    /// The domain's admission demands a generation match on this key.
    PreconditionRequired,
    /// The presented epoch is retired.
    StaleEpoch {
        /// What was presented.
        presented: Authority,
    },
    /// The presented epoch was never installed here: newer, or a stranger's mark.
    UnknownEpoch {
        /// What was presented.
        presented: Authority,
    },
    /// The presented sequence is below the guard's fence.
    StaleTerm {
        /// What was presented.
        presented: Authority,
    },
    /// The presented sequence is the fence's, the holder is another.
    HolderConflict {
        /// What was presented.
        presented: Authority,
    },
    /// The presented sequence is further above the fence than the policy allows.
    SequenceJump {
        /// What was presented.
        presented: Authority,
        /// How far above the fence it is.
        step: NonZeroU64,
        /// How far it may be.
        max: NonZeroU64,
    },
    /// The presented holder isn't bound to the caller's identity.
    WrongHolder {
        /// What was presented.
        presented: Authority,
    },
    /// A condition doesn't hold.
    ConditionFailed {
        /// Which one, counted from 0. `None`: the one that a metadata update implies, that its key
        /// exists.
        index: Option<usize>,
        /// The condition.
        condition: Condition,
    },
    /// A condition asks about a time that isn't remembered. The store doesn't guess: read again,
    /// and ask about a newer revision.
    TooOld {
        /// Which condition, counted from 0.
        index: usize,
        /// The revision from which on the answer is known.
        remembers_since: Revision,
    },
    /// The revision counter of this incarnation is used up; a new incarnation is needed.
    RevisionExhausted,
    /// The metageneration of this key is used up; write its value again.
    MetagenerationExhausted,
    /// The intent has another outcome than this commit would be.
    IntentConflict(IntentConflict),
    /// The intent takes no new step, or has ended and can't be changed any more.
    IntentClosed {
        /// What it is in.
        state: IntentState,
        /// Which mutation wants to change it, counted from 0. `None`: the commit is a step of it.
        mutation: Option<usize>,
    },
    /// No intent of that id is known, so it can't be ended or made indeterminate.
    UnknownIntent,
    /// The intent's record can't take another receipt of this size.
    IntentExhausted {
        /// How large it would be, in bytes.
        bytes: usize,
        /// How large it may be.
        max: usize,
    },
    /// The guard has a live lease.
    LeaseHeld {
        /// For how long it lasts yet, in milliseconds.
        remaining_ms: u64,
    },
    /// The guard's last lease has lapsed, and its holder alone can acquire for a while.
    LeaseDelayed {
        /// For how long yet, in milliseconds.
        remaining_ms: u64,
    },
    /// The named lease isn't the guard's live one, or isn't that of the presented authority.
    LeaseGone {
        /// The lease; `None` if whichever is current was meant, and none is.
        lease: Option<LeaseId>,
        /// How it ended, if that is known; a lapsed one counts as expired before anybody records
        /// it. `None`: it is another's, was never granted here, or a later one has ended since.
        ended: Option<EndCause>,
    },
    /// The presented term isn't one that this destination issued to that holder, or so many were
    /// issued since that it isn't known any more.
    UnknownTerm {
        /// What was presented.
        presented: Authority,
    },
    /// The presented authority has no live lease, and the domain admits no other.
    NotLeased {
        /// What was presented.
        presented: Authority,
        /// How its lease ended, if that is known.
        ended: Option<EndCause>,
    },
    /// There is no sequence above the guard's last one; a new epoch is needed.
    SequenceExhausted,
}

/// In what an intent differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntentConflict {
    /// The step was accepted with other mutations or conditions.
    Digest,
    /// The step isn't the next one.
    Step {
        /// The next one; `None` if there were as many as there can be.
        expected: Option<Step>,
    },
    /// An intent of that id was made before, with another binding or none.
    Binding,
    /// It is bound to another guard than was named, or to none; or it is bound to a guard that a
    /// step of it doesn't touch.
    Guard,
}

/// Why no effects are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// An epoch transition has frozen the domain.
    Frozen,
    /// An epoch transition has to come first, after a restore.
    RecoveryRequired,
    /// An IO error in the durability path; the store must be reopened.
    Poisoned,
    /// A queue or a budget is full; try again later.
    Overloaded,
    /// The disk is full; deletions and take-overs are still taken.
    DiskFull,
    /// A row that the decision needs wasn't fetched: a defect of the engine, refused to be safe.
    Incomplete,
}

/// What is wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// A name is empty, too long or has a wrong character.
    Name(NameError),
    /// Metadata is too large or doubled.
    Metadata(MetadataError),
    /// Settings don't make a policy.
    Policy(PolicyError),
    /// A part that must be there is missing.
    Missing {
        /// Which one.
        what: &'static str,
    },
    /// A number is outside its range: zero, the maximum, or an unknown choice.
    Number {
        /// Which one.
        what: &'static str,
    },
    /// There is no mutation.
    Empty,
    /// There are too many of something.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many were given.
        count: usize,
        /// How many are allowed.
        max: usize,
    },
    /// A value is longer than this destination accepts.
    ValueTooLarge {
        /// How long it is, in bytes.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// Keys, values and metadata together are too large.
    CommitTooLarge {
        /// How large they are, in bytes.
        bytes: usize,
        /// How large they may be.
        max: usize,
    },
    /// Two mutations name the same key.
    DuplicateKey(Key),
    /// Two advances, or two authorities, name the same guard, or a guard whose lease changes is
    /// touched by another mutation too.
    DuplicateGuard(Guard),
    /// An authority is given for a guard that the commit doesn't touch.
    UntouchedGuard(Guard),
    /// The name can't be a guard under this domain's policy.
    NoSuchGuard(Guard),
    /// Two mutations, or a mutation and the completion, are about the same intent.
    DuplicateIntent(IntentId),
}

impl From<NameError> for Malformed {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<MetadataError> for Malformed {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(error)
    }
}

impl From<PolicyError> for Malformed {
    fn from(error: PolicyError) -> Self {
        Self::Policy(error)
    }
}

impl Reason {
    /// The step of the decision that this reason belongs to.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        match self {
            Self::Malformed(_) => Rule::R1,
            Self::WrongDestination
            | Self::UnknownDomain
            | Self::DomainExists
            | Self::TooManyDomains => Rule::R2,
            Self::IntentConflict(IntentConflict::Digest | IntentConflict::Step { .. })
            | Self::IntentClosed { mutation: None, .. } => Rule::R3,
            Self::Unavailable(_) => Rule::R4,
            Self::AuthorityRequired | Self::PreconditionRequired => Rule::R5,
            Self::StaleEpoch { .. } | Self::UnknownEpoch { .. } => Rule::R6,
            Self::StaleTerm { .. }
            | Self::HolderConflict { .. }
            | Self::SequenceJump { .. }
            | Self::WrongHolder { .. }
            | Self::UnknownTerm { .. }
            | Self::NotLeased { .. } => Rule::R7,
            Self::ConditionFailed { .. }
            | Self::TooOld { .. }
            | Self::IntentConflict(IntentConflict::Binding | IntentConflict::Guard)
            | Self::IntentClosed { .. }
            | Self::UnknownIntent
            | Self::LeaseHeld { .. }
            | Self::LeaseDelayed { .. }
            | Self::LeaseGone { .. } => Rule::R8,
            Self::RevisionExhausted
            | Self::MetagenerationExhausted
            | Self::IntentExhausted { .. }
            | Self::SequenceExhausted => Rule::R9,
        }
    }

    /// Whether it says that the presented authority isn't the one to write here: the holder must
    /// stop, and no retry can help.
    #[must_use]
    pub const fn is_lost_authority(&self) -> bool {
        matches!(
            self,
            Self::WrongDestination
                | Self::StaleEpoch { .. }
                | Self::UnknownEpoch { .. }
                | Self::StaleTerm { .. }
                | Self::HolderConflict { .. }
                | Self::SequenceJump { .. }
                | Self::LeaseGone { .. }
                | Self::UnknownTerm { .. }
                | Self::NotLeased { .. }
        )
    }

    /// The reason's name, as it stands in every text, wire and JSON form.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "Malformed",
            Self::WrongDestination => "WrongDestination",
            Self::UnknownDomain => "UnknownDomain",
            Self::DomainExists => "DomainExists",
            Self::TooManyDomains => "TooManyDomains",
            Self::Unavailable(Unavailable::Frozen) => "Frozen",
            Self::Unavailable(Unavailable::RecoveryRequired) => "RecoveryRequired",
            Self::Unavailable(Unavailable::Poisoned) => "Poisoned",
            Self::Unavailable(Unavailable::Overloaded) => "Overloaded",
            Self::Unavailable(Unavailable::DiskFull) => "DiskFull",
            Self::Unavailable(Unavailable::Incomplete) => "Incomplete",
            Self::AuthorityRequired => "AuthorityRequired",
            Self::PreconditionRequired => "PreconditionRequired",
            Self::StaleEpoch { .. } => "StaleEpoch",
            Self::UnknownEpoch { .. } => "UnknownEpoch",
            Self::StaleTerm { .. } => "StaleTerm",
            Self::HolderConflict { .. } => "HolderConflict",
            Self::SequenceJump { .. } => "SequenceJump",
            Self::WrongHolder { .. } => "WrongHolder",
            Self::ConditionFailed { .. } => "ConditionFailed",
            Self::TooOld { .. } => "TooOld",
            Self::RevisionExhausted => "RevisionExhausted",
            Self::MetagenerationExhausted => "MetagenerationExhausted",
            Self::IntentConflict(_) => "IntentConflict",
            Self::IntentClosed { .. } => "IntentClosed",
            Self::UnknownIntent => "UnknownIntent",
            Self::IntentExhausted { .. } => "IntentExhausted",
            Self::LeaseHeld { .. } => "LeaseHeld",
            Self::LeaseDelayed { .. } => "LeaseDelayed",
            Self::LeaseGone { .. } => "LeaseGone",
            Self::UnknownTerm { .. } => "UnknownTerm",
            Self::NotLeased { .. } => "NotLeased",
            Self::SequenceExhausted => "SequenceExhausted",
        }
    }
}

impl Observed {
    /// What a view shows of destination and domain.
    #[must_use]
    pub fn of(view: &View) -> Self {
        Self {
            destination: view.destination.id,
            incarnation: view.destination.incarnation,
            revision: view.destination.revision,
            epoch: view
                .domain
                .as_ref()
                .map(|domain| domain.epochs.current().epoch),
            guard: None,
            fence: None,
            key: None,
            generation: None,
            metageneration: None,
            changed_at: None,
            digest: None,
            intent: None,
            lease: None,
        }
    }

    /// The same, and a guard with its fence and its leases, as far as they were fetched.
    #[must_use]
    pub fn leased(self, guard: &Guard, view: &View) -> Self {
        let mut observed = self.guard(guard, view);
        observed.lease = view.lease(guard).map(|record| ObservedLease {
            record: record.cloned(),
            remaining_ms: record.and_then(|record| {
                let lease = record.current.as_ref()?;
                Some(view.lease_clock.as_ref()?.remaining_ms(lease))
            }),
        });
        observed
    }

    /// The same, and a guard with its fence.
    #[must_use]
    pub fn guard(mut self, guard: &Guard, view: &View) -> Self {
        self.guard = Some(guard.clone());
        self.fence = view.fence(guard).flatten().cloned();
        self
    }

    /// The same, and a key with its versions.
    #[must_use]
    pub fn key(mut self, key: &Key, view: &View) -> Self {
        self.key = Some(key.clone());
        if let Some(row) = view.key(key) {
            let record = row.record.as_ref();
            self.generation = record.map(|record| record.generation);
            self.metageneration = record.map(|record| record.metageneration);
            self.changed_at = record.map(|record| record.changed_at).or(row.deleted_at);
            self.digest = row.digest;
        }
        self
    }

    /// The same, and an intent with its record, in brief.
    #[must_use]
    pub fn intent(mut self, id: &IntentId, view: &View) -> Self {
        self.intent = Some(ObservedIntent {
            id: id.clone(),
            found: view.intent(id).flatten().map(|record| record.summary()),
        });
        self
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.reason.code())?;
        crate::rejection_text::explain(self, f)
    }
}

impl core::error::Error for Rejection {}
