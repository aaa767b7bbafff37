//! One value of every kind that the wire carries, with edges where there are some.

use std::num::NonZeroU64;

use highwater_core::{
    Authority, BindingSummary, Condition, Configuration, DestinationId, Digest, Ending, EpochMark,
    Generation, Guard, Incarnation, IncarnationMark, IncarnationNumber, Input, InputName,
    IntentConflict, IntentId, IntentState, IntentSummary, Key, Malformed, Metadata, MetadataError,
    Metageneration, Mutation, NameError, Observed, ObservedIntent, Owner, PolicyError, Prefix,
    Reason, Rejection, Revision, Step, StepSummary, Unavailable, Value, Work,
};

pub(crate) fn key(bytes: &[u8]) -> Key {
    Key::new(bytes).unwrap()
}

pub(crate) fn guard(bytes: &[u8]) -> Guard {
    Guard::new(bytes).unwrap()
}

pub(crate) fn authority(text: &str) -> Authority {
    Authority::parse(text).unwrap()
}

/// Widest numbers, a mark of 0, a holder that is no text.
pub(crate) fn extreme_authority() -> Authority {
    authority("18446744073709551615.0000000000000000/18446744073709551614@%00%ff")
}

pub(crate) fn revision(raw: u64) -> Revision {
    Revision::new(raw).unwrap()
}

pub(crate) fn generation(raw: u64) -> Generation {
    Generation::new(raw).unwrap()
}

pub(crate) fn metadata() -> Metadata {
    let metadata = Metadata::default().with_content_type("").unwrap();
    let metadata = metadata.with_label("a", "1").unwrap();
    metadata.with_label("b", "").unwrap()
}

pub(crate) fn conditions() -> Vec<Condition> {
    let key = key(b"k\x00\xff");
    let metageneration = Metageneration::new(u64::MAX);
    vec![
        Condition::GenerationIs {
            key: key.clone(),
            generation: None,
        },
        Condition::GenerationIs {
            key: key.clone(),
            generation: Some(generation(u64::MAX)),
        },
        Condition::GenerationIsNot {
            key: key.clone(),
            generation: None,
        },
        Condition::GenerationIsNot {
            key: key.clone(),
            generation: Some(generation((1 << 53) + 1 + (1 << 48))),
        },
        Condition::MetagenerationIs {
            key: key.clone(),
            metageneration: None,
        },
        Condition::MetagenerationIs {
            key: key.clone(),
            metageneration,
        },
        Condition::MetagenerationIsNot {
            key: key.clone(),
            metageneration: None,
        },
        Condition::MetagenerationIsNot {
            key: key.clone(),
            metageneration,
        },
        Condition::WrittenUnder {
            key: key.clone(),
            term: extreme_authority().term(),
        },
        Condition::ValueDigestIs {
            key: key.clone(),
            digest: Digest::new([0xab; 32]),
        },
        Condition::KeyUnchangedSince {
            key,
            revision: revision(1 << 48),
        },
        Condition::PrefixUnchangedSince {
            prefix: Prefix::new(b"").unwrap(),
            revision: revision(u64::MAX),
        },
    ]
}

pub(crate) fn mutations() -> Vec<Mutation> {
    vec![
        Mutation::Put {
            key: key(b"a"),
            value: Value::new(b"").unwrap(),
            metadata: Metadata::default(),
        },
        Mutation::Put {
            key: key(b"b"),
            value: Value::new(vec![7; 4_096]).unwrap(),
            metadata: metadata(),
        },
        Mutation::Delete { key: key(b"c") },
        Mutation::SetMetadata {
            key: key(b"d"),
            metadata: metadata(),
        },
        Mutation::Advance { guard: guard(b"") },
    ]
    .into_iter()
    .chain(intent_mutations())
    .chain(crate::leases::lease_mutations())
    .collect()
}

pub(crate) const ENDINGS: [Ending; 4] = [
    Ending::Completed,
    Ending::Superseded,
    Ending::Cancelled,
    Ending::Rejected,
];

/// A name as long as one can be, that is no text.
pub(crate) fn long(length: usize) -> Vec<u8> {
    vec![0xff; length]
}

pub(crate) fn intent_id() -> IntentId {
    IntentId::new(long(256)).unwrap()
}

pub(crate) fn work() -> Work {
    let (digest, name) = (Digest::new([0xab; 32]), InputName::new(b"\0").unwrap());
    let input = |generation| Input::Key {
        key: key(b"i"),
        generation,
    };
    Work::under(guard(b""))
        .from_input(input(None))
        .from_input(input(Some(generation(u64::MAX))))
        .from_input(Input::Named { name, digest })
        .configured(Configuration::new(long(256)).unwrap())
}

fn intent_mutations() -> Vec<Mutation> {
    let id = || IntentId::new("i").unwrap();
    let mut mutations = vec![
        Mutation::BindIntent {
            intent: intent_id(),
            work: work(),
        },
        Mutation::BindIntent {
            intent: id(),
            work: Work::under(guard(b"g")),
        },
    ];
    for (named, review_at_ms) in [(None, 0), (Some(guard(b"")), u64::MAX)] {
        mutations.extend(ENDINGS.map(|ending| Mutation::CloseIntent {
            intent: id(),
            guard: named.clone(),
            ending,
        }));
        mutations.push(Mutation::SuspendIntent {
            intent: id(),
            guard: named,
            owner: Owner::new(long(256)).unwrap(),
            review_at_ms,
        });
    }
    mutations
}

/// Every state that an intent can be in.
pub(crate) fn intent_states() -> Vec<IntentState> {
    let mut states: Vec<IntentState> = ENDINGS.map(IntentState::Ended).into();
    states.push(IntentState::Open);
    states.push(IntentState::Indeterminate {
        owner: Owner::new(long(256)).unwrap(),
        review_at_ms: u64::MAX,
    });
    states
}

/// The largest that can be said of an intent in brief.
pub(crate) fn summary() -> IntentSummary {
    let holder = highwater_core::Holder::new(long(256)).unwrap();
    let step = |number| StepSummary {
        step: Step::new(number).unwrap(),
        revision: revision(u64::MAX),
    };
    IntentSummary {
        state: intent_states().pop().unwrap(),
        binding: Some(BindingSummary {
            guard: guard(&long(1_024)),
            authority: Authority::new(extreme_authority().term(), holder),
            inputs: 64,
            configuration: Configuration::new(long(256)).ok(),
        }),
        steps: (1..=64).map(step).collect(),
        changed_at: revision(u64::MAX),
    }
}

pub(crate) fn malformed() -> Vec<Malformed> {
    vec![
        Malformed::Name(NameError::Empty { what: "key" }),
        Malformed::Name(NameError::TooLong {
            what: "holder",
            bytes: 257,
            max: 256,
        }),
        Malformed::Name(NameError::Character { at: 3 }),
        Malformed::Metadata(MetadataError::ContentType { bytes: 257 }),
        Malformed::Metadata(MetadataError::TooManyLabels),
        Malformed::Metadata(MetadataError::LabelName { bytes: 0 }),
        Malformed::Metadata(MetadataError::LabelValue { bytes: 1_025 }),
        Malformed::Metadata(MetadataError::DuplicateLabel),
        Malformed::Policy(PolicyError::Depth { depth: 33 }),
        Malformed::Policy(PolicyError::Grace { grace_ms: u64::MAX }),
        Malformed::Missing { what: "epoch mark" },
        Malformed::Number { what: "sequence" },
        Malformed::Empty,
        Malformed::TooMany {
            what: "mutations",
            count: 1_025,
            max: 1_024,
        },
        Malformed::ValueTooLarge { bytes: 9, max: 8 },
        Malformed::CommitTooLarge { bytes: 9, max: 8 },
        Malformed::DuplicateKey(key(b"k")),
        Malformed::DuplicateGuard(guard(b"")),
        Malformed::UntouchedGuard(guard(b"g")),
        Malformed::NoSuchGuard(guard(b"\xff")),
        Malformed::DuplicateIntent(IntentId::new(b"\xff").unwrap()),
    ]
}

/// The reason after this one in the order of the contract's enumeration; `None` behind the last.
/// A reason that is added to the core has to find its place here before this compiles.
fn next_reason(reason: &Reason) -> Option<Reason> {
    let presented = extreme_authority();
    Some(match reason {
        Reason::Malformed(_) => Reason::WrongDestination,
        Reason::WrongDestination => Reason::UnknownDomain,
        Reason::UnknownDomain => Reason::DomainExists,
        Reason::DomainExists => Reason::TooManyDomains,
        Reason::TooManyDomains => Reason::Unavailable(Unavailable::Frozen),
        Reason::Unavailable(Unavailable::Frozen) => {
            Reason::Unavailable(Unavailable::RecoveryRequired)
        }
        Reason::Unavailable(Unavailable::RecoveryRequired) => {
            Reason::Unavailable(Unavailable::Poisoned)
        }
        Reason::Unavailable(Unavailable::Poisoned) => Reason::Unavailable(Unavailable::Overloaded),
        Reason::Unavailable(Unavailable::Overloaded) => Reason::Unavailable(Unavailable::DiskFull),
        Reason::Unavailable(Unavailable::DiskFull) => Reason::Unavailable(Unavailable::Incomplete),
        Reason::Unavailable(Unavailable::Incomplete) => Reason::AuthorityRequired,
        Reason::AuthorityRequired => Reason::PreconditionRequired,
        Reason::PreconditionRequired => Reason::StaleEpoch { presented },
        Reason::StaleEpoch { .. } => Reason::UnknownEpoch { presented },
        Reason::UnknownEpoch { .. } => Reason::StaleTerm { presented },
        Reason::StaleTerm { .. } => Reason::HolderConflict { presented },
        Reason::HolderConflict { .. } => Reason::SequenceJump {
            presented,
            step: NonZeroU64::MAX,
            max: NonZeroU64::MIN,
        },
        Reason::SequenceJump { .. } => Reason::WrongHolder { presented },
        Reason::WrongHolder { .. } => Reason::ConditionFailed {
            index: Some(0),
            condition: conditions().remove(0),
        },
        Reason::ConditionFailed { .. } => Reason::TooOld {
            index: 0,
            remembers_since: revision(1 << 48),
        },
        Reason::TooOld { .. } => Reason::RevisionExhausted,
        Reason::RevisionExhausted => Reason::MetagenerationExhausted,
        Reason::MetagenerationExhausted => Reason::IntentConflict(IntentConflict::Digest),
        Reason::IntentConflict(_) => Reason::IntentClosed {
            state: IntentState::Open,
            mutation: None,
        },
        Reason::IntentClosed { .. } => Reason::UnknownIntent,
        Reason::UnknownIntent => Reason::IntentExhausted { bytes: 9, max: 8 },
        Reason::IntentExhausted { .. } => Reason::LeaseHeld { remaining_ms: 7 },
        Reason::LeaseHeld { .. } => Reason::LeaseDelayed {
            remaining_ms: u64::MAX,
        },
        Reason::LeaseDelayed { .. } => Reason::LeaseGone {
            lease: None,
            ended: None,
        },
        Reason::LeaseGone { .. } => Reason::UnknownTerm { presented },
        Reason::UnknownTerm { .. } => Reason::NotLeased {
            presented,
            ended: None,
        },
        Reason::NotLeased { .. } => Reason::SequenceExhausted,
        Reason::SequenceExhausted => return None,
    })
}

/// What is said of intents, in each of its forms.
fn intents() -> Vec<Reason> {
    let steps = [None, Some(Step::FIRST), Step::new(64)];
    let mut conflicts = vec![IntentConflict::Binding, IntentConflict::Guard];
    conflicts.extend(steps.map(|expected| IntentConflict::Step { expected }));
    let mut reasons: Vec<Reason> = conflicts.into_iter().map(Reason::IntentConflict).collect();
    for state in intent_states() {
        let mutation = Some(1_023);
        reasons.push(Reason::IntentClosed { state, mutation });
    }
    reasons
}

/// Every reason, and those that carry more in each of their forms.
pub(crate) fn reasons() -> Vec<Reason> {
    let mut reasons: Vec<Reason> = malformed().into_iter().map(Reason::Malformed).collect();
    let first = Reason::Malformed(Malformed::Empty);
    reasons.extend(std::iter::successors(Some(first), next_reason));
    let implied = |condition| Reason::ConditionFailed {
        index: None,
        condition,
    };
    reasons.extend(conditions().into_iter().map(implied));
    reasons.extend(intents());
    reasons.extend(crate::leases::lease_reasons());
    reasons
}

/// As little as can be observed.
pub(crate) fn observed_little() -> Observed {
    let number = IncarnationNumber::FIRST;
    Observed {
        destination: DestinationId::new([0; 16]),
        incarnation: Incarnation::new(number, IncarnationMark::new(0)),
        revision: Revision::start(number),
        epoch: None,
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

/// All that can be observed beside an intent, each as long as it can be.
pub(crate) fn observed_much() -> Observed {
    let holder = highwater_core::Holder::new(long(256)).unwrap();
    let term = extreme_authority().term();
    Observed {
        epoch: Some(highwater_core::Epoch::new(
            highwater_core::EpochNumber::new(u64::MAX).unwrap(),
            EpochMark::new(u64::MAX),
        )),
        guard: Some(guard(&long(1_024))),
        fence: Some(highwater_core::Fence { term, holder }),
        key: Some(key(&long(1_024))),
        generation: Some(generation(u64::MAX)),
        metageneration: Metageneration::new(u64::MAX),
        changed_at: Some(revision(u64::MAX)),
        digest: Some(Digest::new([0xff; 32])),
        ..observed_little()
    }
}

/// An intent as it is observed where the reason concerns one: nothing else is then.
pub(crate) fn observed_intent(found: Option<IntentSummary>) -> Observed {
    let id = intent_id();
    Observed {
        epoch: observed_much().epoch,
        intent: Some(ObservedIntent { id, found }),
        ..observed_little()
    }
}

fn is_of_an_intent(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::IntentConflict(_)
            | Reason::IntentClosed { .. }
            | Reason::UnknownIntent
            | Reason::IntentExhausted { .. }
    )
}

pub(crate) fn rejections() -> Vec<Rejection> {
    let with = |reasons: Vec<Reason>, observed: Observed| {
        reasons.into_iter().map(move |reason| Rejection {
            reason,
            observed: observed.clone(),
        })
    };
    let of_intents: Vec<Reason> = reasons().into_iter().filter(is_of_an_intent).collect();
    with(reasons(), observed_little())
        .chain(with(reasons(), observed_much()))
        .chain(with(of_intents.clone(), observed_intent(None)))
        .chain(with(of_intents, observed_intent(Some(summary()))))
        .chain(with(
            crate::leases::lease_reasons(),
            crate::leases::observed_leases(None),
        ))
        .chain(with(
            crate::leases::lease_reasons(),
            crate::leases::observed_leases(Some(crate::leases::record(1))),
        ))
        .collect()
}
