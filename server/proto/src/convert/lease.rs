//! What reasons say of leases.

use bytes::Bytes;
use highwater_core::{EndCause, LeaseId, Malformed, Owner, Reason};

use super::parts;
use crate::v1::LeaseReason;
use crate::v1::lease_reason::Cause;

const fn wrong() -> Malformed {
    Malformed::Number { what: parts::LEASE }
}

/// What a reason about a lease holds; nothing for any other reason.
pub(super) fn to_wire(reason: &Reason) -> LeaseReason {
    let mut wire = LeaseReason::default();
    match reason {
        Reason::LeaseHeld { remaining_ms } | Reason::LeaseDelayed { remaining_ms } => {
            wire.remaining_ms = *remaining_ms;
        }
        Reason::LeaseGone { lease, ended } => {
            wire.lease = lease.map_or(0, LeaseId::get);
            put_cause(ended.as_ref(), &mut wire);
        }
        Reason::NotLeased { ended, .. } => put_cause(ended.as_ref(), &mut wire),
        _ => {}
    }
    wire
}

fn put_cause(ended: Option<&EndCause>, wire: &mut LeaseReason) {
    let cause = match ended {
        None => Cause::Unspecified,
        Some(EndCause::Expired) => Cause::Expired,
        Some(EndCause::Released) => Cause::Released,
        Some(EndCause::Revoked { by }) => {
            wire.by = Bytes::copy_from_slice(by.as_bytes());
            Cause::Revoked
        }
        Some(EndCause::Superseded) => Cause::Superseded,
        Some(EndCause::EpochTransition) => Cause::EpochTransition,
        Some(EndCause::Restore) => Cause::Restore,
    };
    wire.ended = i32::from(cause);
}

/// Reads why a lease ended.
pub(super) fn cause(wire: &LeaseReason) -> Result<Option<EndCause>, Malformed> {
    let cause = Cause::try_from(wire.ended).map_err(|_| wrong())?;
    Ok(Some(match cause {
        Cause::Unspecified => return Ok(None),
        Cause::Expired => EndCause::Expired,
        Cause::Released => EndCause::Released,
        Cause::Revoked => EndCause::Revoked {
            by: Owner::new(&wire.by)?,
        },
        Cause::Superseded => EndCause::Superseded,
        Cause::EpochTransition => EndCause::EpochTransition,
        Cause::Restore => EndCause::Restore,
    }))
}

/// Reads which lease is gone, and why.
pub(super) fn gone(wire: &LeaseReason) -> Result<Reason, Malformed> {
    let lease = match wire.lease {
        0 => None,
        raw => Some(LeaseId::new(raw).ok_or_else(wrong)?),
    };
    let ended = cause(wire)?;
    Ok(Reason::LeaseGone { lease, ended })
}
