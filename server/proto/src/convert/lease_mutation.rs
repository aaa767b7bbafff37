//! Changes of leases, as mutations.

use highwater_core::{Guard, Holder, LeaseId, Malformed, Mutation, Owner, Ttl};

use super::{FromWire, ToWire, optional, parts};
use crate::v1;
use crate::v1::mutation::Kind;

impl FromWire<v1::AcquireLease> for Mutation {
    fn from_wire(wire: v1::AcquireLease) -> Result<Self, Malformed> {
        Ok(Self::Acquire {
            guard: Guard::from_wire(wire.guard)?,
            holder: Holder::from_wire(wire.holder)?,
            ttl: Ttl::from_wire(wire.ttl_ms)?,
            seal: wire.seal.ok_or(Malformed::Missing { what: parts::SEAL })?,
            supersede: wire.supersede,
        })
    }
}

impl FromWire<v1::RenewLease> for Mutation {
    fn from_wire(wire: v1::RenewLease) -> Result<Self, Malformed> {
        Ok(Self::Renew {
            guard: Guard::from_wire(wire.guard)?,
            lease: LeaseId::from_wire(wire.lease)?,
            ttl: optional(wire.ttl_ms)?,
        })
    }
}

impl FromWire<v1::ReleaseLease> for Mutation {
    fn from_wire(wire: v1::ReleaseLease) -> Result<Self, Malformed> {
        Ok(Self::Release {
            guard: Guard::from_wire(wire.guard)?,
            lease: LeaseId::from_wire(wire.lease)?,
        })
    }
}

impl FromWire<v1::RevokeLease> for Mutation {
    fn from_wire(wire: v1::RevokeLease) -> Result<Self, Malformed> {
        Ok(Self::Revoke {
            guard: Guard::from_wire(wire.guard)?,
            lease: optional(wire.lease)?,
            by: Owner::from_wire(wire.by)?,
        })
    }
}

impl FromWire<v1::ExpireLease> for Mutation {
    fn from_wire(wire: v1::ExpireLease) -> Result<Self, Malformed> {
        Ok(Self::Expire {
            guard: Guard::from_wire(wire.guard)?,
            lease: LeaseId::from_wire(wire.lease)?,
        })
    }
}

/// What a mutation about a lease is; `None` for every other one.
pub(super) fn kind(mutation: &Mutation) -> Option<Kind> {
    Some(match mutation {
        Mutation::Acquire {
            guard,
            holder,
            ttl,
            seal,
            supersede,
        } => Kind::AcquireLease(v1::AcquireLease {
            guard: guard.to_wire(),
            holder: holder.to_wire(),
            ttl_ms: ttl.get(),
            seal: Some(*seal),
            supersede: *supersede,
        }),
        Mutation::Renew { guard, lease, ttl } => Kind::RenewLease(v1::RenewLease {
            guard: guard.to_wire(),
            lease: lease.get(),
            ttl_ms: ttl.map(Ttl::get),
        }),
        Mutation::Release { guard, lease } => Kind::ReleaseLease(v1::ReleaseLease {
            guard: guard.to_wire(),
            lease: lease.get(),
        }),
        Mutation::Revoke { guard, lease, by } => Kind::RevokeLease(v1::RevokeLease {
            guard: guard.to_wire(),
            lease: lease.map(LeaseId::get),
            by: by.to_wire(),
        }),
        Mutation::Expire { guard, lease } => Kind::ExpireLease(v1::ExpireLease {
            guard: guard.to_wire(),
            lease: lease.get(),
        }),
        Mutation::Put { .. }
        | Mutation::Delete { .. }
        | Mutation::SetMetadata { .. }
        | Mutation::Advance { .. }
        | Mutation::BindIntent { .. }
        | Mutation::CloseIntent { .. }
        | Mutation::SuspendIntent { .. } => return None,
    })
}
