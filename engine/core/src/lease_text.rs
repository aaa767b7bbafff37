//! The sentence that a person reads when a request was refused because of a lease.

use core::fmt;

use crate::authority::Authority;
use crate::lease::EndCause;
use crate::rejection::{Reason, Rejection};

/// Writes what was refused about a lease, what was observed, and what can be done.
pub(crate) fn explain(rejection: &Rejection, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let observed = &rejection.observed;
    match &observed.guard {
        Some(guard) => write!(f, "guard '{guard}' ")?,
        None => f.write_str("the guard ")?,
    }
    match &rejection.reason {
        Reason::LeaseHeld { remaining_ms } => {
            f.write_str("is leased")?;
            let seen = observed.lease.as_ref();
            let record = seen.and_then(|seen| seen.record.as_ref());
            if let Some(lease) = record.and_then(|record| record.current.as_ref()) {
                write!(f, " to {} as lease {}", lease.authority(), lease.id)?;
            }
            write!(f, " for {remaining_ms} ms yet; wait, or ask its holder")
        }
        Reason::LeaseDelayed { remaining_ms } => write!(
            f,
            "can be acquired by its last holder alone for {remaining_ms} ms yet"
        ),
        Reason::LeaseGone { lease, ended } => {
            match lease {
                Some(lease) => write!(f, "has no live lease {lease} of this authority")?,
                None => f.write_str("has no live lease")?,
            }
            how_it_ended(f, ended.as_ref())
        }
        Reason::UnknownTerm { presented } => not_admitted(f, presented, "was issued to it here"),
        Reason::NotLeased { presented, ended } => {
            not_admitted(f, presented, "has a live lease")?;
            how_it_ended(f, ended.as_ref())
        }
        _ => f.write_str("has no sequence left in this epoch; a new epoch is needed"),
    }
}

fn not_admitted(f: &mut fmt::Formatter<'_>, presented: &Authority, unless: &str) -> fmt::Result {
    write!(f, "doesn't admit {presented}, unless its term {unless}")
}

fn how_it_ended(f: &mut fmt::Formatter<'_>, ended: Option<&EndCause>) -> fmt::Result {
    match ended {
        Some(cause) => write!(f, "; it was {cause}"),
        None => f.write_str("; how it ended isn't known"),
    }
}
