//! Step 8: whether one condition holds on what the view shows.

use crate::command::Condition;
use crate::counters::Revision;
use crate::view::{KeyRow, View};

/// What can be said of a condition.
pub(crate) enum Outcome {
    /// It holds.
    Holds,
    /// It doesn't.
    Fails,
    /// Nobody can tell any more.
    TooOld {
        /// From where on one could.
        remembers_since: Revision,
    },
    /// The shell didn't fetch what is needed.
    NotFetched,
}

impl From<bool> for Outcome {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}

/// Judges one condition.
pub(crate) fn judge(view: &View, condition: &Condition) -> Outcome {
    if let Condition::PrefixUnchangedSince { prefix, revision } = condition {
        let Some(row) = view.prefix(prefix) else {
            return Outcome::NotFetched;
        };
        return unchanged_since(view, *revision, row.changed_at, row.remembers_since);
    }
    let Some(row) = condition.key().and_then(|key| view.key(key)) else {
        return Outcome::NotFetched;
    };
    let record = row.record.as_deref();
    let generation = record.map(|record| record.generation);
    let metageneration = record.map(|record| record.metageneration);
    match condition {
        Condition::GenerationIs {
            generation: wanted, ..
        } => (generation == *wanted).into(),
        Condition::GenerationIsNot {
            generation: other, ..
        } => (generation != *other).into(),
        Condition::MetagenerationIs {
            metageneration: wanted,
            ..
        } => (metageneration == *wanted).into(),
        Condition::MetagenerationIsNot {
            metageneration: other,
            ..
        } => (metageneration != *other).into(),
        Condition::WrittenUnder { term, .. } => {
            (record.and_then(|record| record.written_under) == Some(*term)).into()
        }
        Condition::ValueDigestIs { digest, .. } => match (record, row.digest) {
            (None, _) => Outcome::Fails,
            (Some(_), None) => Outcome::NotFetched,
            (Some(_), Some(found)) => (found == *digest).into(),
        },
        Condition::KeyUnchangedSince { revision, .. } => key_unchanged(view, row, *revision),
        // Answered above; a prefix has no key.
        Condition::PrefixUnchangedSince { .. } => Outcome::NotFetched,
    }
}

/// A key that exists carries its own last change, and one made anew has a generation above the
/// revision asked about; so only for an absent key does it matter how far deletions are remembered.
fn key_unchanged(view: &View, row: &KeyRow, since: Revision) -> Outcome {
    let remembered = view.destination.remembers_since;
    match (&row.record, row.deleted_at) {
        (Some(record), _) => unchanged_since(view, since, Some(record.changed_at), since),
        (None, Some(deleted_at)) => unchanged_since(view, since, Some(deleted_at), since),
        (None, None) => unchanged_since(view, since, None, remembered),
    }
}

/// Nothing happened after `since`, as far as is remembered. A revision that this destination hasn't
/// reached was seen somewhere else, so the condition fails.
fn unchanged_since(
    view: &View,
    since: Revision,
    changed_at: Option<Revision>,
    remembers_since: Revision,
) -> Outcome {
    if since > view.destination.revision {
        return Outcome::Fails;
    }
    if changed_at.is_some_and(|changed_at| changed_at > since) {
        return Outcome::Fails;
    }
    if since < remembers_since {
        return Outcome::TooOld { remembers_since };
    }
    Outcome::Holds
}
