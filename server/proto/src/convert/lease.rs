//! Leases: the grants, their ends, and what reasons say of them.

use std::sync::Arc;

use highwater_core::{
    EndCause, Grant, Guard, Holder, Lease, LeaseEnd, LeaseId, LeaseReceipt, LeaseRecord,
    LeaseStanding, Malformed, ObservedLease, Owner, Reason, Revision, Sequence, Ttl, limits,
};

use super::{FromWire, ToWire, list, optional, parts, required};
use crate::v1;
use crate::v1::LeaseReason;
use crate::v1::lease_standing::Kind;

const fn number(what: &'static str) -> Malformed {
    Malformed::Number { what }
}

const fn missing(what: &'static str) -> Malformed {
    Malformed::Missing { what }
}

impl FromWire<u64> for LeaseId {
    fn from_wire(wire: u64) -> Result<Self, Malformed> {
        Self::new(wire).ok_or(number(parts::LEASE))
    }
}

impl FromWire<u64> for Ttl {
    fn from_wire(wire: u64) -> Result<Self, Malformed> {
        Self::new(wire).ok_or(number(parts::TTL))
    }
}

impl FromWire<v1::Lease> for Lease {
    fn from_wire(wire: v1::Lease) -> Result<Self, Malformed> {
        Ok(Self {
            id: LeaseId::from_wire(wire.id)?,
            term: required(wire.term, parts::TERM)?,
            holder: Holder::from_wire(wire.holder)?,
            ttl: Ttl::from_wire(wire.ttl_ms)?,
            renewed_at: Revision::from_wire(wire.renewed_at)?,
            renewed_clock_ms: wire.renewed_clock_ms,
        })
    }
}

impl ToWire for Lease {
    type Wire = v1::Lease;

    fn to_wire(&self) -> v1::Lease {
        v1::Lease {
            id: self.id.get(),
            term: Some(self.term.to_wire()),
            holder: self.holder.to_wire(),
            ttl_ms: self.ttl.get(),
            renewed_at: self.renewed_at.get(),
            renewed_clock_ms: self.renewed_clock_ms,
        }
    }
}

impl FromWire<v1::LeaseEnding> for EndCause {
    fn from_wire(wire: v1::LeaseEnding) -> Result<Self, Malformed> {
        let what = parts::CAUSE;
        Ok(
            match v1::EndCause::try_from(wire.cause).map_err(|_| number(what))? {
                v1::EndCause::Unspecified => return Err(missing(what)),
                v1::EndCause::Expired => Self::Expired,
                v1::EndCause::Released => Self::Released,
                v1::EndCause::Revoked => Self::Revoked {
                    by: Owner::from_wire(wire.by)?,
                },
                v1::EndCause::Superseded => Self::Superseded,
                v1::EndCause::EpochTransition => Self::EpochTransition,
                v1::EndCause::Restore => Self::Restore,
            },
        )
    }
}

impl ToWire for EndCause {
    type Wire = v1::LeaseEnding;

    fn to_wire(&self) -> v1::LeaseEnding {
        let mut wire = v1::LeaseEnding::default();
        let cause = match self {
            Self::Expired => v1::EndCause::Expired,
            Self::Released => v1::EndCause::Released,
            Self::Revoked { by } => {
                wire.by = by.to_wire();
                v1::EndCause::Revoked
            }
            Self::Superseded => v1::EndCause::Superseded,
            Self::EpochTransition => v1::EndCause::EpochTransition,
            Self::Restore => v1::EndCause::Restore,
        };
        wire.cause = i32::from(cause);
        wire
    }
}

impl FromWire<v1::LeaseReceipt> for LeaseReceipt {
    fn from_wire(wire: v1::LeaseReceipt) -> Result<Self, Malformed> {
        Ok(Self {
            guard: Guard::from_wire(wire.guard)?,
            lease: Arc::new(required(wire.lease, parts::LEASE)?),
            ended: optional(wire.ended)?,
            replaced: optional(wire.replaced)?,
        })
    }
}

impl ToWire for LeaseReceipt {
    type Wire = v1::LeaseReceipt;

    fn to_wire(&self) -> v1::LeaseReceipt {
        v1::LeaseReceipt {
            guard: self.guard.to_wire(),
            lease: Some(self.lease.to_wire()),
            ended: self.ended.as_ref().map(ToWire::to_wire),
            replaced: self.replaced.as_ref().map(ToWire::to_wire),
        }
    }
}

impl FromWire<v1::LeaseGrant> for Grant {
    fn from_wire(wire: v1::LeaseGrant) -> Result<Self, Malformed> {
        Ok(Self {
            sequence: Sequence::new(wire.sequence).ok_or(number(parts::SEQUENCE))?,
            holder: Holder::from_wire(wire.holder)?,
        })
    }
}

impl ToWire for Grant {
    type Wire = v1::LeaseGrant;

    fn to_wire(&self) -> v1::LeaseGrant {
        v1::LeaseGrant {
            sequence: self.sequence.get(),
            holder: self.holder.to_wire(),
        }
    }
}

impl FromWire<v1::LeaseEnd> for LeaseEnd {
    fn from_wire(wire: v1::LeaseEnd) -> Result<Self, Malformed> {
        Ok(Self {
            lease: Arc::new(required(wire.lease, parts::LEASE)?),
            cause: required(wire.cause, parts::CAUSE)?,
            at: Revision::from_wire(wire.at)?,
            clock_ms: wire.clock_ms,
        })
    }
}

impl ToWire for LeaseEnd {
    type Wire = v1::LeaseEnd;

    fn to_wire(&self) -> v1::LeaseEnd {
        v1::LeaseEnd {
            lease: Some(self.lease.to_wire()),
            cause: Some(self.cause.to_wire()),
            at: self.at.get(),
            clock_ms: self.clock_ms,
        }
    }
}

impl FromWire<v1::LeaseRecord> for LeaseRecord {
    fn from_wire(wire: v1::LeaseRecord) -> Result<Self, Malformed> {
        let grants: Vec<Grant> = list(wire.grants, parts::GRANTS, limits::GRANTS_KEPT)?;
        if grants.is_empty() {
            return Err(missing(parts::GRANTS));
        }
        if !grants.is_sorted_by(|one, next| one.sequence.get() < next.sequence.get()) {
            return Err(number(parts::GRANTS));
        }
        let current: Option<Lease> = optional(wire.current)?;
        Ok(Self {
            epoch: required(wire.epoch, parts::EPOCH)?,
            grants,
            current: current.map(Arc::new),
            last_end: optional(wire.last_end)?,
            changed_at: Revision::from_wire(wire.changed_at)?,
        })
    }
}

impl ToWire for LeaseRecord {
    type Wire = v1::LeaseRecord;

    fn to_wire(&self) -> v1::LeaseRecord {
        v1::LeaseRecord {
            epoch: Some(self.epoch.to_wire()),
            grants: self.grants.iter().map(ToWire::to_wire).collect(),
            current: self.current.as_ref().map(|lease| lease.to_wire()),
            last_end: self.last_end.as_ref().map(ToWire::to_wire),
            changed_at: self.changed_at.get(),
        }
    }
}

impl FromWire<v1::ObservedLease> for ObservedLease {
    fn from_wire(wire: v1::ObservedLease) -> Result<Self, Malformed> {
        let record: Option<LeaseRecord> = optional(wire.record)?;
        Ok(Self {
            record: record.map(Arc::new),
            remaining_ms: wire.remaining_ms,
        })
    }
}

/// Of the grants the last one alone is told: what is observed has to fit into the headers of a
/// status.
impl ToWire for ObservedLease {
    type Wire = v1::ObservedLease;

    fn to_wire(&self) -> v1::ObservedLease {
        let record = self.record.as_ref().map(|record| {
            let mut wire = record.to_wire();
            wire.grants.drain(..wire.grants.len().saturating_sub(1));
            wire
        });
        v1::ObservedLease {
            record,
            remaining_ms: self.remaining_ms,
        }
    }
}

impl FromWire<v1::LeaseStanding> for LeaseStanding {
    fn from_wire(wire: v1::LeaseStanding) -> Result<Self, Malformed> {
        Ok(match wire.kind.ok_or(missing(parts::STANDING))? {
            Kind::Live(v1::LeaseLive { remaining_ms }) => Self::Live { remaining_ms },
            Kind::Lapsed(v1::LeaseLapsed { since_ms }) => Self::Lapsed { since_ms },
            Kind::Retired(v1::LeaseRetired {}) => Self::Retired,
        })
    }
}

impl ToWire for LeaseStanding {
    type Wire = v1::LeaseStanding;

    fn to_wire(&self) -> v1::LeaseStanding {
        let kind = match *self {
            Self::Live { remaining_ms } => Kind::Live(v1::LeaseLive { remaining_ms }),
            Self::Lapsed { since_ms } => Kind::Lapsed(v1::LeaseLapsed { since_ms }),
            Self::Retired => Kind::Retired(v1::LeaseRetired {}),
        };
        v1::LeaseStanding { kind: Some(kind) }
    }
}

/// A guard of a list, with how its current lease stands.
impl FromWire<v1::ListedLease> for (Guard, LeaseRecord, Option<LeaseStanding>) {
    fn from_wire(wire: v1::ListedLease) -> Result<Self, Malformed> {
        Ok((
            Guard::from_wire(wire.guard)?,
            required(wire.record, parts::RECORD)?,
            optional(wire.standing)?,
        ))
    }
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
            wire.ended = ended.as_ref().map(ToWire::to_wire);
        }
        Reason::NotLeased { ended, .. } => wire.ended = ended.as_ref().map(ToWire::to_wire),
        _ => {}
    }
    wire
}

/// Reads why a lease ended.
pub(super) fn cause(wire: LeaseReason) -> Result<Option<EndCause>, Malformed> {
    optional(wire.ended)
}

/// Reads which lease is gone, and why.
pub(super) fn gone(wire: LeaseReason) -> Result<Reason, Malformed> {
    let lease = match wire.lease {
        0 => None,
        raw => Some(LeaseId::from_wire(raw)?),
    };
    let ended = cause(wire)?;
    Ok(Reason::LeaseGone { lease, ended })
}
