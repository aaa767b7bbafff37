//! Requests in bare numbers and bytes, and their translation into the product's types. Models work
//! on these alone, so that no type of the product can lend them a comparison. The tests of the core
//! and those of the whole store share this file.

use highwater_core::{
    Authorities, Authority, Commit, Condition, Configuration, DestinationId, Digest, DomainName,
    Ending, Epoch, EpochMark, EpochNumber, ExpectedDestination, Generation, Guard, Holder,
    Identity, Incarnation, IncarnationMark, IncarnationNumber, Input, IntentId, Key, Metadata,
    Metageneration, Mutation, Owner, Prefix, Revision, Sequence, Step, Term, Value, Work,
};

/// Bytes of any kind.
pub type Bytes = Vec<u8>;

/// The digest of a value: the core has none of its own.
pub type DigestOf = fn(&[u8]) -> Digest;

/// A destination: its id, the number of its incarnation and that one's mark.
pub type Place = ([u8; 16], u16, u64);

/// An authority or a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// The number of the epoch.
    pub epoch: u64,
    /// The epoch's mark.
    pub mark: u64,
    /// The sequence in it.
    pub sequence: u64,
    /// Whose it is.
    pub holder: Bytes,
}

/// Under whose authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auths {
    /// Nobody's.
    #[default]
    None,
    /// One for all guards.
    One(Auth),
    /// One for each guard.
    PerGuard(Vec<(Bytes, Auth)>),
}

/// A condition; the number 0 stands for "doesn't exist".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond {
    /// The key has this generation.
    GenerationIs(Bytes, u64),
    /// The key hasn't.
    GenerationIsNot(Bytes, u64),
    /// The key's metadata has this version.
    MetagenerationIs(Bytes, u64),
    /// It hasn't.
    MetagenerationIsNot(Bytes, u64),
    /// The value was last written under this epoch, mark and sequence.
    WrittenUnder(Bytes, (u64, u64, u64)),
    /// The value has the digest of this value.
    DigestOf(Bytes, Bytes),
    /// The key hasn't changed since this revision.
    KeySince(Bytes, u64),
    /// No key with this prefix has.
    PrefixSince(Bytes, u64),
}

/// What an intent is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The guard.
    pub guard: Bytes,
    /// Keys with their generations.
    pub inputs: Vec<(Bytes, u64)>,
    /// The version of the configuration.
    pub configuration: Option<Bytes>,
}

/// The endings of an intent by name.
pub const ENDINGS: [(&str, Ending); 4] = [
    ("completed", Ending::Completed),
    ("superseded", Ending::Superseded),
    ("cancelled", Ending::Cancelled),
    ("rejected", Ending::Rejected),
];

/// A mutation; the text is a content type, empty for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes key, value and content type.
    Put(Bytes, Bytes, String),
    /// Deletes a key.
    Delete(Bytes),
    /// Replaces a key's content type.
    Label(Bytes, String),
    /// Raises a guard's fence.
    Advance(Bytes),
    /// Binds an intent.
    Bind(Bytes, Task),
    /// Ends an intent that is bound to this guard, or to none, in this way.
    Close(Bytes, Option<Bytes>, &'static str),
    /// Makes an intent indeterminate, with owner and time of review.
    Suspend(Bytes, Option<Bytes>, Bytes, u64),
}

/// A commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The domain's name.
    pub domain: String,
    /// The destination that is meant.
    pub destination: Option<Place>,
    /// Under whose authority.
    pub auth: Auths,
    /// Who calls.
    pub caller: Option<Bytes>,
    /// What must hold.
    pub conds: Vec<Cond>,
    /// What changes.
    pub changes: Vec<Change>,
    /// The intent that it is a step of, which step, and whether it completes it.
    pub intent: Option<(Bytes, u32, bool)>,
}

impl Cond {
    /// The key that it is about.
    #[must_use]
    pub const fn key(&self) -> Option<&Bytes> {
        match self {
            Self::GenerationIs(key, _)
            | Self::GenerationIsNot(key, _)
            | Self::MetagenerationIs(key, _)
            | Self::MetagenerationIsNot(key, _)
            | Self::WrittenUnder(key, _)
            | Self::DigestOf(key, _)
            | Self::KeySince(key, _) => Some(key),
            Self::PrefixSince(..) => None,
        }
    }

    fn typed(&self, digest: DigestOf) -> Option<Condition> {
        let key = Key::new(self.key().map_or(&[b'-'][..], Vec::as_slice)).ok()?;
        Some(match self {
            Self::GenerationIs(_, number) => Condition::GenerationIs {
                key,
                generation: Generation::new(*number),
            },
            Self::GenerationIsNot(_, number) => Condition::GenerationIsNot {
                key,
                generation: Generation::new(*number),
            },
            Self::MetagenerationIs(_, number) => Condition::MetagenerationIs {
                key,
                metageneration: Metageneration::new(*number),
            },
            Self::MetagenerationIsNot(_, number) => Condition::MetagenerationIsNot {
                key,
                metageneration: Metageneration::new(*number),
            },
            Self::WrittenUnder(_, (number, mark, sequence)) => Condition::WrittenUnder {
                key,
                term: term(*number, *mark, *sequence)?,
            },
            Self::DigestOf(_, value) => Condition::ValueDigestIs {
                key,
                digest: digest(value),
            },
            Self::KeySince(_, since) => Condition::KeyUnchangedSince {
                key,
                revision: Revision::new(*since)?,
            },
            Self::PrefixSince(prefix, since) => Condition::PrefixUnchangedSince {
                prefix: Prefix::new(prefix).ok()?,
                revision: Revision::new(*since)?,
            },
        })
    }
}

impl Change {
    /// The key that it writes.
    #[must_use]
    pub const fn key(&self) -> Option<&Bytes> {
        match self {
            Self::Put(key, ..) | Self::Delete(key) | Self::Label(key, _) => Some(key),
            Self::Advance(_) | Self::Bind(..) | Self::Close(..) | Self::Suspend(..) => None,
        }
    }

    /// The intent that it changes.
    #[must_use]
    pub const fn intent(&self) -> Option<&Bytes> {
        match self {
            Self::Bind(id, _) | Self::Close(id, ..) | Self::Suspend(id, ..) => Some(id),
            Self::Put(..) | Self::Delete(_) | Self::Label(..) | Self::Advance(_) => None,
        }
    }

    /// The guard that it names itself.
    #[must_use]
    pub const fn named_guard(&self) -> Option<&Bytes> {
        match self {
            Self::Advance(guard) => Some(guard),
            Self::Bind(_, task) => Some(&task.guard),
            Self::Close(_, guard, _) | Self::Suspend(_, guard, ..) => guard.as_ref(),
            Self::Put(..) | Self::Delete(_) | Self::Label(..) => None,
        }
    }

    fn typed(&self) -> Option<Mutation> {
        Some(match self {
            Self::Put(key, value, text) => Mutation::Put {
                key: Key::new(key).ok()?,
                value: Value::new(value).ok()?,
                metadata: metadata(text)?,
            },
            Self::Delete(key) => Mutation::Delete {
                key: Key::new(key).ok()?,
            },
            Self::Label(key, text) => Mutation::SetMetadata {
                key: Key::new(key).ok()?,
                metadata: metadata(text)?,
            },
            Self::Advance(guard) => Mutation::Advance {
                guard: Guard::new(guard).ok()?,
            },
            Self::Bind(id, task) => Mutation::BindIntent {
                intent: IntentId::new(id).ok()?,
                work: task.typed()?,
            },
            Self::Close(id, guard, how) => Mutation::CloseIntent {
                intent: IntentId::new(id).ok()?,
                guard: guard.as_ref().and_then(|guard| Guard::new(guard).ok()),
                ending: ENDINGS.iter().find(|(name, _)| name == how)?.1,
            },
            Self::Suspend(id, guard, owner, review_at_ms) => Mutation::SuspendIntent {
                intent: IntentId::new(id).ok()?,
                guard: guard.as_ref().and_then(|guard| Guard::new(guard).ok()),
                owner: Owner::new(owner).ok()?,
                review_at_ms: *review_at_ms,
            },
        })
    }
}

impl Task {
    fn typed(&self) -> Option<Work> {
        let mut work = Work::under(Guard::new(&self.guard).ok()?);
        for (key, number) in &self.inputs {
            let (key, generation) = (Key::new(key).ok()?, Generation::new(*number));
            work = work.from_input(Input::Key { key, generation });
        }
        if let Some(version) = &self.configuration {
            work = work.configured(Configuration::new(version).ok()?);
        }
        Some(work)
    }
}

impl Auth {
    /// The product's authority.
    #[must_use]
    pub fn typed(&self) -> Option<Authority> {
        let holder = Holder::new(&self.holder).ok()?;
        Some(Authority::new(
            term(self.epoch, self.mark, self.sequence)?,
            holder,
        ))
    }
}

impl Request {
    /// A commit on a domain with these changes, under nobody's authority.
    #[must_use]
    pub fn of(domain: &str, changes: Vec<Change>) -> Self {
        Self {
            domain: domain.to_owned(),
            changes,
            ..Self::default()
        }
    }

    /// The same under one authority.
    #[must_use]
    pub fn under(mut self, auth: Auth) -> Self {
        self.auth = Auths::One(auth);
        self
    }

    /// The same with one more condition.
    #[must_use]
    pub fn when(mut self, cond: Cond) -> Self {
        self.conds.push(cond);
        self
    }

    /// The same as a step of an intent.
    #[must_use]
    pub fn step(mut self, id: &str, step: u32) -> Self {
        self.intent = Some((id.into(), step, false));
        self
    }

    /// The product's commit; `None` if a part can't be made.
    #[must_use]
    pub fn typed_with(&self, digest: DigestOf) -> Option<Commit> {
        let mut commit = Commit::new(DomainName::new(&self.domain).ok()?);
        commit.destination = match self.destination {
            Some(place) => Some(destination(place)?),
            None => None,
        };
        commit.caller = match &self.caller {
            Some(caller) => Some(Identity::new(caller).ok()?),
            None => None,
        };
        commit.authority = match &self.auth {
            Auths::None => Authorities::None,
            Auths::One(auth) => Authorities::One(auth.typed()?),
            Auths::PerGuard(list) => {
                let typed =
                    |(name, auth): &(Bytes, Auth)| Some((Guard::new(name).ok()?, auth.typed()?));
                Authorities::PerGuard(list.iter().map(typed).collect::<Option<_>>()?)
            }
        };
        let condition = |cond: &Cond| cond.typed(digest);
        commit.conditions = self.conds.iter().map(condition).collect::<Option<_>>()?;
        commit.mutations = self
            .changes
            .iter()
            .map(Change::typed)
            .collect::<Option<_>>()?;
        if let Some((id, step, completes)) = &self.intent {
            commit = commit.for_intent(IntentId::new(id).ok()?, Step::new(*step)?);
            if *completes {
                commit = commit.completing();
            }
        }
        Some(commit)
    }
}

/// The authority presented for a guard.
#[must_use]
pub fn presented<'a>(request: &'a Request, guard: &[u8]) -> Option<&'a Auth> {
    match &request.auth {
        Auths::None => None,
        Auths::One(auth) => Some(auth),
        Auths::PerGuard(list) => {
            let own = list.iter().find(|(name, _)| name == guard);
            own.map(|(_, auth)| auth)
        }
    }
}

/// The product's name of a destination.
#[must_use]
pub fn destination((id, number, mark): Place) -> Option<ExpectedDestination> {
    let number = IncarnationNumber::new(number)?;
    Some(ExpectedDestination {
        id: DestinationId::new(id),
        incarnation: Incarnation::new(number, IncarnationMark::new(mark)),
    })
}

fn term(number: u64, mark: u64, sequence: u64) -> Option<Term> {
    let epoch = Epoch::new(EpochNumber::new(number)?, EpochMark::new(mark));
    let sequence = Sequence::new(sequence)?;
    Some(Term { epoch, sequence })
}

fn metadata(text: &str) -> Option<Metadata> {
    if text.is_empty() {
        return Some(Metadata::default());
    }
    Metadata::default().with_content_type(text).ok()
}
