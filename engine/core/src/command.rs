//! What may be asked of a destination.

use alloc::vec::Vec;

use crate::authority::{Authority, Term};
use crate::counters::{
    DestinationId, EpochMark, Generation, Incarnation, Metageneration, Revision,
};
use crate::intent::{Ending, IntentUse, Step, Work};
use crate::metadata::Metadata;
use crate::names::{Digest, DomainName, Guard, Identity, IntentId, Key, Owner, Prefix, Value};
use crate::policy::Policy;

/// The destination that a caller means. Captured when the caller first spoke to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpectedDestination {
    /// Its id.
    pub id: DestinationId,
    /// Its incarnation at that time.
    pub incarnation: Incarnation,
}

/// Under whose authority a commit is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Authorities {
    /// Nobody's.
    #[default]
    None,
    /// One authority for all guards touched.
    One(Authority),
    /// An authority for each guard named. Every name must be a guard that the commit touches.
    PerGuard(Vec<(Guard, Authority)>),
}

impl Authorities {
    /// The authority presented for a guard.
    #[must_use]
    pub fn for_guard(&self, guard: &Guard) -> Option<&Authority> {
        match self {
            Self::None => None,
            Self::One(authority) => Some(authority),
            Self::PerGuard(list) => list
                .iter()
                .find(|(name, _)| name == guard)
                .map(|(_, authority)| authority),
        }
    }
}

/// What must hold for a commit to be accepted. An absent condition demands nothing; "must not
/// exist" is a condition of its own (`generation: None`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// The key has this generation; `None`: it doesn't exist.
    GenerationIs {
        /// The key.
        key: Key,
        /// The generation, or `None` for "does not exist".
        generation: Option<Generation>,
    },
    /// The key hasn't this generation; `None`: it exists.
    GenerationIsNot {
        /// The key.
        key: Key,
        /// The generation, or `None` for "does not exist".
        generation: Option<Generation>,
    },
    /// The key's metadata has this version; `None`: the key doesn't exist.
    MetagenerationIs {
        /// The key.
        key: Key,
        /// The version, or `None` for "does not exist".
        metageneration: Option<Metageneration>,
    },
    /// The key's metadata hasn't this version; `None`: the key exists.
    MetagenerationIsNot {
        /// The key.
        key: Key,
        /// The version, or `None` for "does not exist".
        metageneration: Option<Metageneration>,
    },
    /// The key exists and its value was last written under this term.
    WrittenUnder {
        /// The key.
        key: Key,
        /// The term, epoch mark included.
        term: Term,
    },
    /// The key exists and its value has this digest.
    ValueDigestIs {
        /// The key.
        key: Key,
        /// The digest.
        digest: Digest,
    },
    /// The key was neither written, nor its metadata changed, nor deleted, nor created since.
    KeyUnchangedSince {
        /// The key.
        key: Key,
        /// The last revision whose state the caller has seen.
        revision: Revision,
    },
    /// No key with this prefix was written, changed, deleted or created since.
    PrefixUnchangedSince {
        /// The prefix; empty means every key of the domain.
        prefix: Prefix,
        /// The last revision whose state the caller has seen.
        revision: Revision,
    },
}

impl Condition {
    /// The key that it is about; `None` for a condition on a prefix.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::GenerationIs { key, .. }
            | Self::GenerationIsNot { key, .. }
            | Self::MetagenerationIs { key, .. }
            | Self::MetagenerationIsNot { key, .. }
            | Self::WrittenUnder { key, .. }
            | Self::ValueDigestIs { key, .. }
            | Self::KeyUnchangedSince { key, .. } => Some(key),
            Self::PrefixUnchangedSince { .. } => None,
        }
    }
}

/// One change that a commit makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Writes value and metadata of a key: a new generation.
    Put {
        /// The key.
        key: Key,
        /// The value; may be empty, which differs from absent.
        value: Value,
        /// The metadata; replaces what was there.
        metadata: Metadata,
    },
    /// Deletes a key. Deleting a key that doesn't exist is accepted and changes nothing; demand
    /// existence by a condition where it matters.
    Delete {
        /// The key.
        key: Key,
    },
    /// Replaces the metadata of a key that exists: a new metageneration of the same generation.
    SetMetadata {
        /// The key.
        key: Key,
        /// The metadata; replaces what was there.
        metadata: Metadata,
    },
    /// Raises the fence of a guard to the commit's authority, without data: the take-over.
    Advance {
        /// The guard.
        guard: Guard,
    },
    /// Records the work that an intent is for and the authority for that work's guard, whose fence
    /// rises to it. From then on a step of it needs an authority for that guard. The very same
    /// binding once more is accepted and changes nothing. Until there is a step, a newer term of
    /// the guard may bind it anew, and whoever bound it to nothing but the guard may say more.
    BindIntent {
        /// The intent.
        intent: IntentId,
        /// The work.
        work: Work,
    },
    /// Ends an intent, for ever.
    CloseIntent {
        /// The intent.
        intent: IntentId,
        /// The guard that it is bound to; `None` for an intent that isn't bound.
        guard: Option<Guard>,
        /// How it ends.
        ending: Ending,
    },
    /// Makes an intent indeterminate, or gives an indeterminate one another owner and time of
    /// review. It takes no step until it is ended.
    SuspendIntent {
        /// The intent.
        intent: IntentId,
        /// The guard that it is bound to; `None` for an intent that isn't bound.
        guard: Option<Guard>,
        /// Who has to resolve it.
        owner: Owner,
        /// When it is to be looked at again, in milliseconds since 1970.
        review_at_ms: u64,
    },
}

impl Mutation {
    /// The key that it writes; `None` for one that writes no key.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::Put { key, .. } | Self::Delete { key } | Self::SetMetadata { key, .. } => {
                Some(key)
            }
            Self::Advance { .. }
            | Self::BindIntent { .. }
            | Self::CloseIntent { .. }
            | Self::SuspendIntent { .. } => None,
        }
    }

    /// The intent that it is about; `None` for one that is about keys or fences.
    #[must_use]
    pub const fn intent(&self) -> Option<&IntentId> {
        match self {
            Self::BindIntent { intent, .. }
            | Self::CloseIntent { intent, .. }
            | Self::SuspendIntent { intent, .. } => Some(intent),
            Self::Put { .. }
            | Self::Delete { .. }
            | Self::SetMetadata { .. }
            | Self::Advance { .. } => None,
        }
    }

    /// The guard that it touches, where it names one itself.
    #[must_use]
    pub const fn named_guard(&self) -> Option<&Guard> {
        match self {
            Self::Advance { guard } => Some(guard),
            Self::BindIntent { work, .. } => Some(&work.guard),
            Self::CloseIntent { guard, .. } | Self::SuspendIntent { guard, .. } => guard.as_ref(),
            Self::Put { .. } | Self::Delete { .. } | Self::SetMetadata { .. } => None,
        }
    }

    /// The guard that it touches: that of its key, or the one it names.
    pub(crate) fn guard(&self, policy: &Policy) -> Option<Guard> {
        match self.key() {
            Some(key) => Some(policy.guard_of(key)),
            None => self.named_guard().cloned(),
        }
    }
}

/// A request to change a domain: all or nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// The domain.
    pub domain: DomainName,
    /// The destination that the caller means; `None` to not check it.
    pub destination: Option<ExpectedDestination>,
    /// Under whose authority.
    pub authority: Authorities,
    /// Who calls, as the transport authenticated it; never taken from the request itself.
    pub caller: Option<Identity>,
    /// What must hold.
    pub conditions: Vec<Condition>,
    /// What changes.
    pub mutations: Vec<Mutation>,
    /// The step of an intent that this is. Asked again, it gets the first answer again.
    pub intent: Option<IntentUse>,
}

/// A request to read only while the reader's authority is still the highest of the guards it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuardedRead {
    /// The domain.
    pub domain: DomainName,
    /// The destination that the caller means; `None` to not check it.
    pub destination: Option<ExpectedDestination>,
    /// The authority that must still be the highest.
    pub authority: Authority,
    /// Who calls, as the transport authenticated it.
    pub caller: Option<Identity>,
    /// The guards that the read depends on: 1 to 1,024.
    pub guards: Vec<Guard>,
}

/// A request to make a domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateDomain {
    /// Its name.
    pub name: DomainName,
    /// Its policy.
    pub policy: Policy,
    /// 64 random bits, drawn by the shell, for its first epoch.
    pub mark: EpochMark,
    /// The destination that the caller means; `None` to not check it.
    pub destination: Option<ExpectedDestination>,
}

impl CreateDomain {
    /// A request for a domain of this name and policy; the mark is drawn at random by the shell.
    #[must_use]
    pub const fn new(name: DomainName, policy: Policy, mark: EpochMark) -> Self {
        Self {
            name,
            policy,
            mark,
            destination: None,
        }
    }
}

impl Commit {
    /// An empty commit on a domain, to which authority, conditions and mutations are added.
    #[must_use]
    pub const fn new(domain: DomainName) -> Self {
        Self {
            domain,
            destination: None,
            authority: Authorities::None,
            caller: None,
            conditions: Vec::new(),
            mutations: Vec::new(),
            intent: None,
        }
    }

    /// As this step of an intent: sent again with the same content, it takes effect once at most
    /// and gets the first receipt again.
    ///
    /// ```
    /// use highwater_core::{Commit, DomainName, IntentId, Key, Step, Value};
    ///
    /// let close = Commit::new(DomainName::new("accounts")?)
    ///     .for_intent(IntentId::new("close/7")?, Step::FIRST)
    ///     .completing()
    ///     .put(Key::new("7/open")?, Value::new("no")?);
    /// assert!(close.intent.is_some_and(|used| used.completes));
    /// # Ok::<(), highwater_core::NameError>(())
    /// ```
    #[must_use]
    pub fn for_intent(mut self, id: IntentId, step: Step) -> Self {
        self.intent = Some(IntentUse {
            id,
            step,
            completes: false,
        });
        self
    }

    /// Completing the intent that it is a step of; without one it changes nothing.
    #[must_use]
    pub fn completing(mut self) -> Self {
        if let Some(used) = &mut self.intent {
            used.completes = true;
        }
        self
    }

    /// Meant for this destination and incarnation only.
    #[must_use]
    pub const fn for_destination(mut self, destination: ExpectedDestination) -> Self {
        self.destination = Some(destination);
        self
    }

    /// Under one authority for all guards touched.
    #[must_use]
    pub fn under(mut self, authority: Authority) -> Self {
        self.authority = Authorities::One(authority);
        self
    }

    /// With one more condition.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// With one more mutation.
    #[must_use]
    pub fn with(mut self, mutation: Mutation) -> Self {
        self.mutations.push(mutation);
        self
    }

    /// With one more key written, without metadata.
    #[must_use]
    pub fn put(self, key: Key, value: Value) -> Self {
        self.with(Mutation::Put {
            key,
            value,
            metadata: Metadata::default(),
        })
    }

    /// With one more key deleted.
    #[must_use]
    pub fn delete(self, key: Key) -> Self {
        self.with(Mutation::Delete { key })
    }

    /// With one more guard's fence raised.
    #[must_use]
    pub fn advance(self, guard: Guard) -> Self {
        self.with(Mutation::Advance { guard })
    }
}
