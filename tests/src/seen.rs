//! What the product answered, in bare numbers and bytes.

use highwater::{
    Authority, Condition, Fence, Input, IntentConflict, IntentRecord, IntentState, Malformed,
    Reason, Receipt, Record, Rejection, Term,
};

use crate::model::Row;
use crate::plans::{Statement, Told, closed};
use crate::raw::{Auth, Bytes, ENDINGS, Task};

/// A refusal: the reason's code, and what was observed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Refusal {
    /// The reason's code.
    pub code: &'static str,
    /// Which kind of malformed.
    pub what: Option<&'static str>,
    /// The guard that it concerns.
    pub guard: Option<Bytes>,
    /// That guard's fence.
    pub fence: Option<Auth>,
    /// The key that it concerns.
    pub key: Option<Bytes>,
    /// That key's generation.
    pub generation: Option<u64>,
    /// That key's metageneration.
    pub metageneration: Option<u64>,
    /// The last known change of key or prefix.
    pub changed: Option<u64>,
    /// The authority that was presented.
    pub presented: Option<Auth>,
    /// Which condition.
    pub index: Option<usize>,
    /// From where on changes are remembered.
    pub remembers: Option<u64>,
    /// The intent that it concerns.
    pub intent: Option<Bytes>,
    /// In what that intent differs, or what it is in, and for which mutation.
    pub about: Option<String>,
}

const fn term_of(term: &Term) -> (u64, u64, u64) {
    let epoch = &term.epoch;
    (
        epoch.number().get(),
        epoch.mark().get(),
        term.sequence.get(),
    )
}

fn auth(term: &Term, holder: &[u8]) -> Auth {
    let (epoch, mark, sequence) = term_of(term);
    Auth {
        epoch,
        mark,
        sequence,
        holder: holder.to_vec(),
    }
}

/// A fence.
#[must_use]
pub fn fence(fence: &Fence) -> Auth {
    auth(&fence.term, fence.holder.as_bytes())
}

/// An authority.
#[must_use]
pub fn authority(authority: &Authority) -> Auth {
    auth(&authority.term(), authority.holder().as_bytes())
}

/// A record.
#[must_use]
pub fn row(record: &Record) -> Row {
    Row {
        generation: record.generation.get(),
        metageneration: record.metageneration.get(),
        changed: record.changed_at.get(),
        under: record.written_under.as_ref().map(term_of),
        value: record.value.as_bytes().to_vec(),
        text: record
            .metadata
            .content_type()
            .unwrap_or_default()
            .to_owned(),
    }
}

/// A receipt.
#[must_use]
pub fn statement(receipt: &Receipt) -> Statement {
    let guards = receipt.guards.iter().map(|guard| {
        let name = guard.guard.as_bytes().to_vec();
        (
            name,
            fence(&guard.fence),
            guard.previous.as_ref().map(fence),
        )
    });
    let inputs = receipt.inputs.iter().map(|input| {
        let generation = input.generation.map_or(0, |generation| generation.get());
        (input.key.as_bytes().to_vec(), generation)
    });
    let writes = receipt.writes.iter().map(|write| {
        (
            write.key.as_bytes().to_vec(),
            write.generation.map_or(0, |generation| generation.get()),
            write.metageneration.map_or(0, |version| version.get()),
            write.previous.map_or(0, |generation| generation.get()),
        )
    });
    let intent = receipt.intent.as_ref();
    Statement {
        revision: receipt.revision.get(),
        replayed: receipt.replayed,
        intent: intent.map(|of| (of.id.as_bytes().to_vec(), of.step.get())),
        guards: guards.collect(),
        inputs: inputs.collect(),
        writes: writes.collect(),
    }
}

/// A rejection.
#[must_use]
pub fn refusal(rejection: &Rejection) -> Refusal {
    let observed = &rejection.observed;
    let mut refusal = Refusal {
        code: rejection.reason.code(),
        guard: observed
            .guard
            .as_ref()
            .map(|guard| guard.as_bytes().to_vec()),
        fence: observed.fence.as_ref().map(fence),
        key: observed.key.as_ref().map(|key| key.as_bytes().to_vec()),
        generation: observed.generation.map(|generation| generation.get()),
        metageneration: observed.metageneration.map(|version| version.get()),
        changed: observed.changed_at.map(|revision| revision.get()),
        intent: observed.intent.as_ref().map(|i| i.id.as_bytes().to_vec()),
        about: about(&rejection.reason),
        ..Refusal::default()
    };
    match &rejection.reason {
        Reason::Malformed(malformed) => refusal.what = Some(kind(malformed)),
        Reason::StaleEpoch { presented }
        | Reason::UnknownEpoch { presented }
        | Reason::StaleTerm { presented }
        | Reason::HolderConflict { presented }
        | Reason::SequenceJump { presented, .. }
        | Reason::WrongHolder { presented } => refusal.presented = Some(authority(presented)),
        Reason::ConditionFailed { index, condition } => {
            refusal.index = *index;
            // Of a revision that isn't reached it is known without a look that the condition fails,
            // so what the last change was is left open.
            if let Condition::PrefixUnchangedSince { revision, .. } = condition
                && *revision > observed.revision
            {
                refusal.changed = None;
            }
        }
        Reason::TooOld {
            index,
            remembers_since,
        } => {
            refusal.index = Some(*index);
            refusal.remembers = Some(remembers_since.get());
        }
        _ => {}
    }
    refusal
}

fn about(reason: &Reason) -> Option<String> {
    match reason {
        Reason::IntentConflict(IntentConflict::Step { expected }) => {
            let next = expected.map_or(65, |step| step.get());
            Some(format!("step {next}"))
        }
        Reason::IntentConflict(IntentConflict::Digest) => Some("content".into()),
        Reason::IntentConflict(IntentConflict::Binding) => Some("binding".into()),
        Reason::IntentConflict(IntentConflict::Guard) => Some("guard".into()),
        Reason::IntentClosed { state, mutation } => Some(closed(state_of(state).0, *mutation)),
        _ => None,
    }
}

/// What an intent is in, with owner and time of review.
fn state_of(state: &IntentState) -> (&'static str, Option<(Bytes, u64)>) {
    match state {
        IntentState::Open => ("open", None),
        IntentState::Indeterminate {
            owner,
            review_at_ms,
        } => {
            let owner = owner.as_bytes().to_vec();
            ("indeterminate", Some((owner, *review_at_ms)))
        }
        IntentState::Ended(ending) => {
            let known = ENDINGS.iter().find(|(_, of)| of == ending);
            (known.map_or("", |(name, _)| name), None)
        }
    }
}

/// What is stored of an intent.
#[must_use]
pub fn plan(record: &IntentRecord) -> Told {
    let (state, owner) = state_of(&record.state);
    let input = |input: &Input| match input {
        Input::Key { key, generation } => {
            let number = generation.map_or(0, |generation| generation.get());
            (key.as_bytes().to_vec(), number)
        }
        Input::Named { name, .. } => (name.as_bytes().to_vec(), u64::MAX),
    };
    let binding = record.binding.as_ref().map(|binding| {
        let configuration = binding.work.configuration.as_ref();
        let task = Task {
            guard: binding.work.guard.as_bytes().to_vec(),
            inputs: binding.work.inputs.iter().map(input).collect(),
            configuration: configuration.map(|version| version.as_bytes().to_vec()),
        };
        (task, authority(&binding.authority))
    });
    let steps = record.steps.iter();
    Told {
        state,
        owner,
        binding,
        steps: steps.map(|step| statement(&step.receipt)).collect(),
        changed: record.changed_at.get(),
    }
}

const fn kind(malformed: &Malformed) -> &'static str {
    match malformed {
        Malformed::Name(_) => "Name",
        Malformed::Metadata(_) => "Metadata",
        Malformed::Policy(_) => "Policy",
        Malformed::Missing { .. } => "Missing",
        Malformed::Number { .. } => "Number",
        Malformed::Empty => "Empty",
        Malformed::TooMany { .. } => "TooMany",
        Malformed::ValueTooLarge { .. } => "ValueTooLarge",
        Malformed::CommitTooLarge { .. } => "CommitTooLarge",
        Malformed::DuplicateKey(_) => "DuplicateKey",
        Malformed::DuplicateGuard(_) => "DuplicateGuard",
        Malformed::UntouchedGuard(_) => "UntouchedGuard",
        Malformed::NoSuchGuard(_) => "NoSuchGuard",
        Malformed::DuplicateIntent(_) => "DuplicateIntent",
    }
}
