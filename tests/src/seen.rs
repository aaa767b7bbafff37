//! What the product answered, in bare numbers and bytes.

use highwater::{Authority, Condition, Fence, Malformed, Reason, Receipt, Record, Rejection, Term};

use crate::model::Row;
use crate::raw::{Auth, Bytes};

/// What is stated of an accepted commit; the number 0 stands for "doesn't exist".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The revision of the commit.
    pub revision: u64,
    /// Each guard, its fence now, its fence before.
    pub guards: Vec<(Bytes, Auth, Option<Auth>)>,
    /// Each key that a condition looked at, and its generation before.
    pub inputs: Vec<(Bytes, u64)>,
    /// Each key written: generation and metageneration now, generation before.
    pub writes: Vec<(Bytes, u64, u64, u64)>,
}

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

fn authority(authority: &Authority) -> Auth {
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
    Statement {
        revision: receipt.revision.get(),
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
    }
}
