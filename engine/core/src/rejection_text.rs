//! The sentence that a person reads when a request was refused.

use core::fmt;

use crate::authority::Authority;
use crate::rejection::{IntentConflict, Malformed, Observed, Reason, Rejection, Unavailable};

/// Writes what was refused, what was observed, and what can be done.
pub(crate) fn explain(rejection: &Rejection, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let observed = &rejection.observed;
    match &rejection.reason {
        Reason::Malformed(malformed) => fmt::Display::fmt(malformed, f),
        Reason::WrongDestination => write!(
            f,
            "this is destination {} in incarnation {}, not the one that was named",
            observed.destination, observed.incarnation
        ),
        Reason::UnknownDomain => f.write_str("this destination has no domain of that name"),
        Reason::DomainExists => f.write_str("a domain of that name exists already"),
        Reason::TooManyDomains => f.write_str("this destination can't take another domain"),
        Reason::Unavailable(unavailable) => fmt::Display::fmt(unavailable, f),
        Reason::AuthorityRequired => match &observed.guard {
            Some(guard) => write!(f, "an authority is required for guard '{guard}'"),
            None => f.write_str("an authority is required: bind the intent to a guard first"),
        },
        Reason::PreconditionRequired => match &observed.key {
            Some(key) => write!(f, "a generation match is required on key '{key}'"),
            None => f.write_str("a generation match is required"),
        },
        Reason::StaleEpoch { presented } | Reason::UnknownEpoch { presented } => {
            write!(f, "presented {presented}, but the current epoch is ")?;
            match &observed.epoch {
                Some(epoch) => write!(f, "{epoch}; acquire a new authority"),
                None => f.write_str("unknown"),
            }
        }
        Reason::StaleTerm { presented } => {
            against(f, presented, observed, "a newer holder was accepted; stop")
        }
        Reason::HolderConflict { presented } => against(
            f,
            presented,
            observed,
            "another holder has this very term; stop",
        ),
        Reason::SequenceJump {
            presented,
            step,
            max,
        } => {
            against(f, presented, observed, "the sequence jumps too far")?;
            write!(f, " ({step} above the fence, at most {max} allowed)")
        }
        Reason::WrongHolder { presented } => {
            write!(
                f,
                "presented {presented}, which the caller's identity may not use"
            )
        }
        Reason::ConditionFailed { index, .. } => condition(f, *index, observed),
        Reason::TooOld {
            index,
            remembers_since,
        } => write!(
            f,
            "condition {index} asks about a time before revision {remembers_since}, which isn't \
             remembered; read again and ask about a newer revision"
        ),
        Reason::RevisionExhausted => {
            f.write_str("the revisions of this incarnation are used up; restore into a new one")
        }
        Reason::MetagenerationExhausted => {
            f.write_str("the metagenerations of this generation are used up; write the value again")
        }
        Reason::IntentConflict(_)
        | Reason::IntentClosed { .. }
        | Reason::UnknownIntent
        | Reason::IntentExhausted { .. } => intent(f, rejection),
    }
}

fn intent(f: &mut fmt::Formatter<'_>, rejection: &Rejection) -> fmt::Result {
    match &rejection.observed.intent {
        Some(seen) => write!(f, "intent '{}' ", seen.id)?,
        None => f.write_str("the intent ")?,
    }
    match &rejection.reason {
        Reason::IntentConflict(IntentConflict::Digest) => f.write_str(
            "has this step already, with other content; a new operation needs an id of its own",
        ),
        Reason::IntentConflict(IntentConflict::Step { expected }) => match expected {
            Some(step) => write!(f, "takes step {step} next"),
            None => f.write_str("has as many steps as it can have"),
        },
        Reason::IntentConflict(IntentConflict::Binding) => {
            f.write_str("was made already, with another binding or none")
        }
        Reason::IntentConflict(IntentConflict::Guard) => {
            f.write_str("isn't bound to a guard that this is about")
        }
        Reason::IntentClosed { state, .. } => write!(f, "is closed to this: it is {state}"),
        Reason::IntentExhausted { bytes, max } => write!(
            f,
            "would take {bytes} bytes with this receipt; at most {max} are allowed"
        ),
        _ => f.write_str("isn't known here"),
    }
}

fn against(
    f: &mut fmt::Formatter<'_>,
    presented: &Authority,
    observed: &Observed,
    so: &str,
) -> fmt::Result {
    write!(f, "presented {presented}, but ")?;
    if let Some(guard) = &observed.guard {
        write!(f, "guard '{guard}' ")?;
    }
    match &observed.fence {
        Some(fence) => write!(f, "is fenced at {fence}: {so}"),
        None => write!(f, "has no fence: {so}"),
    }
}

fn condition(f: &mut fmt::Formatter<'_>, index: Option<usize>, observed: &Observed) -> fmt::Result {
    match index {
        Some(index) => write!(f, "condition {index} doesn't hold")?,
        None => f.write_str("a metadata update needs an existing key")?,
    }
    if let Some(key) = &observed.key {
        let generation = observed
            .generation
            .map_or(0, crate::counters::Generation::get);
        write!(f, ": key '{key}' has generation {generation}")?;
    }
    if let Some(changed_at) = observed.changed_at {
        write!(f, ", last changed at revision {changed_at}")?;
    }
    f.write_str("; read again and decide anew")
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frozen => "the domain is frozen by an epoch transition",
            Self::RecoveryRequired => "an epoch transition is required before any effect",
            Self::Poisoned => "a failure or damage of its files stopped the store; reopen it",
            Self::Overloaded => "too much is queued; try again later",
            Self::DiskFull => "the disk is full; free room or delete keys, then try again",
            Self::Incomplete => "the engine didn't fetch a row that the decision needs",
        })
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => fmt::Display::fmt(error, f),
            Self::Metadata(error) => fmt::Display::fmt(error, f),
            Self::Policy(error) => fmt::Display::fmt(error, f),
            Self::Missing { what } => write!(f, "the {what} is missing"),
            Self::Number { what } => write!(f, "the {what} is outside its range"),
            Self::Empty => f.write_str("a commit needs at least one mutation"),
            Self::TooMany { what, count, max } => {
                write!(f, "{count} {what} are given; at most {max} are allowed")
            }
            Self::ValueTooLarge { bytes, max } => {
                write!(
                    f,
                    "a value has {bytes} bytes; this destination accepts up to {max}"
                )
            }
            Self::CommitTooLarge { bytes, max } => {
                write!(f, "the commit has {bytes} bytes; at most {max} are allowed")
            }
            Self::DuplicateKey(key) => write!(f, "two mutations name key '{key}'"),
            Self::DuplicateGuard(guard) => write!(f, "guard '{guard}' is named twice"),
            Self::UntouchedGuard(guard) => {
                write!(
                    f,
                    "an authority names guard '{guard}', which the commit doesn't touch"
                )
            }
            Self::NoSuchGuard(guard) => {
                write!(f, "'{guard}' can't be a guard under this domain's policy")
            }
            Self::DuplicateIntent(id) => write!(f, "intent '{id}' is changed twice"),
        }
    }
}

impl core::error::Error for Malformed {}
