//! Requests in raw numbers and bytes, and their translation into the core's types. The oracle works
//! on these alone, so that no type of the core can lend it a comparison.

use highwater_core::{
    Authorities, Authority, Commit, Condition, Configuration, DestinationId, Digest, DomainName,
    Ending, Epoch, EpochMark, EpochNumber, ExpectedDestination, Fence, Generation, Guard, Holder,
    Identity, Incarnation, IncarnationMark, IncarnationNumber, Input, IntentId, Key, Metadata,
    Metageneration, Mutation, Owner, Prefix, Revision, Sequence, Step, Term, Value, Work,
};

pub(crate) type Bytes = Vec<u8>;

/// An authority or a fence: epoch number, mark, sequence, holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Auth {
    pub(crate) epoch: u64,
    pub(crate) mark: u64,
    pub(crate) sequence: u64,
    pub(crate) holder: Bytes,
}

#[derive(Clone, Debug)]
pub(crate) enum Auths {
    None,
    One(Auth),
    PerGuard(Vec<(Bytes, Auth)>),
}

/// A condition; the number 0 stands for "doesn't exist".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cond {
    GenerationIs(Bytes, u64),
    GenerationIsNot(Bytes, u64),
    MetagenerationIs(Bytes, u64),
    MetagenerationIsNot(Bytes, u64),
    WrittenUnder(Bytes, (u64, u64, u64)),
    /// The digest of this value.
    DigestOf(Bytes, Bytes),
    KeySince(Bytes, u64),
    PrefixSince(Bytes, u64),
}

/// What an intent is bound to: a guard, keys with their generations, a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) guard: Bytes,
    pub(crate) inputs: Vec<(Bytes, u64)>,
    pub(crate) configuration: Option<Bytes>,
}

/// A mutation; the text is a content type, empty for none, or an ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Put(Bytes, Bytes, String),
    Delete(Bytes),
    SetMetadata(Bytes, String),
    Advance(Bytes),
    Bind(Bytes, Task),
    Close(Bytes, Option<Bytes>, &'static str),
    /// With owner and time of review.
    Suspend(Bytes, Option<Bytes>, Bytes, u64),
}

impl Change {
    pub(crate) fn key(&self) -> Option<&Bytes> {
        match self {
            Self::Put(key, ..) | Self::Delete(key) | Self::SetMetadata(key, _) => Some(key),
            Self::Advance(_) | Self::Bind(..) | Self::Close(..) | Self::Suspend(..) => None,
        }
    }

    pub(crate) fn intent(&self) -> Option<&Bytes> {
        match self {
            Self::Bind(id, _) | Self::Close(id, ..) | Self::Suspend(id, ..) => Some(id),
            _ => None,
        }
    }

    /// The guard that it names itself.
    pub(crate) fn names(&self) -> Option<&Bytes> {
        match self {
            Self::Advance(guard) => Some(guard),
            Self::Bind(_, task) => Some(&task.guard),
            Self::Close(_, guard, _) | Self::Suspend(_, guard, ..) => guard.as_ref(),
            Self::Put(..) | Self::Delete(_) | Self::SetMetadata(..) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) domain: String,
    /// Destination id, incarnation number and mark.
    pub(crate) destination: Option<(u8, u16, u64)>,
    pub(crate) auth: Auths,
    pub(crate) caller: Option<Bytes>,
    pub(crate) conds: Vec<Cond>,
    pub(crate) changes: Vec<Change>,
    /// Intent, step, and whether it completes it.
    pub(crate) intent: Option<(Bytes, u32, bool)>,
}

pub(crate) fn auth(epoch: u64, mark: u64, sequence: u64, holder: &str) -> Auth {
    Auth {
        epoch,
        mark,
        sequence,
        holder: holder.as_bytes().to_vec(),
    }
}

pub(crate) fn put(key: &str, value: &str) -> Change {
    Change::Put(key.into(), value.into(), String::new())
}

pub(crate) fn delete(key: &str) -> Change {
    Change::Delete(key.into())
}

pub(crate) fn label(key: &str, text: &str) -> Change {
    Change::SetMetadata(key.into(), text.into())
}

pub(crate) fn advance(guard: &str) -> Change {
    Change::Advance(guard.into())
}

/// A request on the domain "d" with these changes, under nobody's authority.
pub(crate) fn request(changes: Vec<Change>) -> Request {
    Request {
        domain: "d".into(),
        destination: None,
        auth: Auths::None,
        caller: None,
        conds: Vec::new(),
        changes,
        intent: None,
    }
}

/// Work under a guard, without inputs.
pub(crate) fn task(guard: &str) -> Task {
    Task {
        guard: guard.into(),
        inputs: Vec::new(),
        configuration: None,
    }
}

impl Request {
    pub(crate) fn under(mut self, auth: Auth) -> Self {
        self.auth = Auths::One(auth);
        self
    }

    pub(crate) fn when(mut self, cond: Cond) -> Self {
        self.conds.push(cond);
        self
    }

    pub(crate) fn called_by(mut self, caller: &str) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// As a step of an intent.
    pub(crate) fn step(mut self, id: &str, step: u32) -> Self {
        self.intent = Some((id.into(), step, false));
        self
    }

    pub(crate) fn completing(mut self) -> Self {
        self.intent.as_mut().unwrap().2 = true;
        self
    }

    pub(crate) fn commit(&self) -> Commit {
        let mut commit = Commit::new(DomainName::new(&self.domain).unwrap());
        commit.destination = self.destination.map(expected);
        commit.caller = self.caller.as_ref().map(|c| Identity::new(c).unwrap());
        commit.authority = match &self.auth {
            Auths::None => Authorities::None,
            Auths::One(auth) => Authorities::One(authority(auth)),
            Auths::PerGuard(list) => {
                let typed = |(name, auth): &(Bytes, Auth)| (guard(name), authority(auth));
                Authorities::PerGuard(list.iter().map(typed).collect())
            }
        };
        commit.conditions = self.conds.iter().map(condition).collect();
        commit.mutations = self.changes.iter().map(mutation).collect();
        if let Some((id, step, completes)) = &self.intent {
            commit = commit.for_intent(intent(id), Step::new(*step).unwrap());
            if *completes {
                commit = commit.completing();
            }
        }
        commit
    }
}

pub(crate) fn key(bytes: &[u8]) -> Key {
    Key::new(bytes).unwrap()
}

pub(crate) fn intent(bytes: &[u8]) -> IntentId {
    IntentId::new(bytes).unwrap()
}

pub(crate) fn guard(bytes: &[u8]) -> Guard {
    Guard::new(bytes).unwrap()
}

pub(crate) fn expected((id, number, mark): (u8, u16, u64)) -> ExpectedDestination {
    ExpectedDestination {
        id: DestinationId::new([id; 16]),
        incarnation: incarnation(number, mark),
    }
}

pub(crate) fn incarnation(number: u16, mark: u64) -> Incarnation {
    let number = IncarnationNumber::new(number).unwrap();
    Incarnation::new(number, IncarnationMark::new(mark))
}

pub(crate) fn epoch(number: u64, mark: u64) -> Epoch {
    Epoch::new(EpochNumber::new(number).unwrap(), EpochMark::new(mark))
}

pub(crate) fn term(epoch_number: u64, mark: u64, sequence: u64) -> Term {
    Term {
        epoch: epoch(epoch_number, mark),
        sequence: Sequence::new(sequence).unwrap(),
    }
}

pub(crate) fn authority(auth: &Auth) -> Authority {
    let holder = Holder::new(&auth.holder).unwrap();
    Authority::new(term(auth.epoch, auth.mark, auth.sequence), holder)
}

/// A fence of the core in raw numbers.
pub(crate) fn raw_fence(fence: &Fence) -> Auth {
    Auth {
        epoch: fence.term.epoch.number().get(),
        mark: fence.term.epoch.mark().get(),
        sequence: fence.term.sequence.get(),
        holder: fence.holder.as_bytes().to_vec(),
    }
}

pub(crate) fn revision(raw: u64) -> Revision {
    Revision::new(raw).unwrap()
}

/// A digest that keeps apart what nobody made to collide: four different sums over all bytes.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    let mut lanes = [1_u64, 2, 3, 4];
    for lane in &mut lanes {
        for byte in bytes {
            let mixed = (*lane ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            *lane = mixed.rotate_left(29);
        }
    }
    let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_be_bytes()).collect();
    Digest::new(bytes.try_into().unwrap())
}

pub(crate) fn metadata(text: &str) -> Metadata {
    if text.is_empty() {
        return Metadata::default();
    }
    Metadata::default().with_content_type(text).unwrap()
}

fn condition(cond: &Cond) -> Condition {
    match cond {
        Cond::GenerationIs(name, number) => Condition::GenerationIs {
            key: key(name),
            generation: Generation::new(*number),
        },
        Cond::GenerationIsNot(name, number) => Condition::GenerationIsNot {
            key: key(name),
            generation: Generation::new(*number),
        },
        Cond::MetagenerationIs(name, number) => Condition::MetagenerationIs {
            key: key(name),
            metageneration: Metageneration::new(*number),
        },
        Cond::MetagenerationIsNot(name, number) => Condition::MetagenerationIsNot {
            key: key(name),
            metageneration: Metageneration::new(*number),
        },
        Cond::WrittenUnder(name, (number, mark, sequence)) => Condition::WrittenUnder {
            key: key(name),
            term: term(*number, *mark, *sequence),
        },
        Cond::DigestOf(name, value) => Condition::ValueDigestIs {
            key: key(name),
            digest: digest(value),
        },
        Cond::KeySince(name, since) => Condition::KeyUnchangedSince {
            key: key(name),
            revision: revision(*since),
        },
        Cond::PrefixSince(prefix, since) => Condition::PrefixUnchangedSince {
            prefix: Prefix::new(prefix).unwrap(),
            revision: revision(*since),
        },
    }
}

fn mutation(change: &Change) -> Mutation {
    match change {
        Change::Put(name, value, text) => Mutation::Put {
            key: key(name),
            value: Value::new(value).unwrap(),
            metadata: metadata(text),
        },
        Change::Delete(name) => Mutation::Delete { key: key(name) },
        Change::SetMetadata(name, text) => Mutation::SetMetadata {
            key: key(name),
            metadata: metadata(text),
        },
        Change::Advance(name) => Mutation::Advance { guard: guard(name) },
        Change::Bind(id, task) => Mutation::BindIntent {
            intent: intent(id),
            work: work(task),
        },
        Change::Close(id, named, how) => Mutation::CloseIntent {
            intent: intent(id),
            guard: named.as_deref().map(guard),
            ending: ending(how),
        },
        Change::Suspend(id, named, owner, review_at_ms) => Mutation::SuspendIntent {
            intent: intent(id),
            guard: named.as_deref().map(guard),
            owner: Owner::new(owner).unwrap(),
            review_at_ms: *review_at_ms,
        },
    }
}

pub(crate) const ENDINGS: [(&str, Ending); 4] = [
    ("completed", Ending::Completed),
    ("superseded", Ending::Superseded),
    ("cancelled", Ending::Cancelled),
    ("rejected", Ending::Rejected),
];

fn ending(how: &str) -> Ending {
    ENDINGS.iter().find(|(name, _)| *name == how).unwrap().1
}

fn work(task: &Task) -> Work {
    let input = |(name, generation): &(Bytes, u64)| Input::Key {
        key: key(name),
        generation: Generation::new(*generation),
    };
    let configuration = task.configuration.as_ref();
    Work {
        guard: guard(&task.guard),
        inputs: task.inputs.iter().map(input).collect(),
        configuration: configuration.map(|c| Configuration::new(c).unwrap()),
    }
}

/// The authority presented for a guard.
pub(crate) fn presented<'a>(request: &'a Request, guard: &[u8]) -> Option<&'a Auth> {
    match &request.auth {
        Auths::None => None,
        Auths::One(auth) => Some(auth),
        Auths::PerGuard(list) => list
            .iter()
            .find(|(name, _)| name == guard)
            .map(|(_, auth)| auth),
    }
}

pub(crate) fn key_of(cond: &Cond) -> Option<&Bytes> {
    match cond {
        Cond::GenerationIs(key, _)
        | Cond::GenerationIsNot(key, _)
        | Cond::MetagenerationIs(key, _)
        | Cond::MetagenerationIsNot(key, _)
        | Cond::WrittenUnder(key, _)
        | Cond::DigestOf(key, _)
        | Cond::KeySince(key, _) => Some(key),
        Cond::PrefixSince(..) => None,
    }
}

pub(crate) fn prefix_of(cond: &Cond) -> Option<&Bytes> {
    match cond {
        Cond::PrefixSince(prefix, _) => Some(prefix),
        _ => None,
    }
}
