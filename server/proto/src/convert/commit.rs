//! Commits and mutations.

use highwater_core::{
    Authorities, Commit, Condition, DomainName, Ending, Guard, IntentId, Key, Malformed, Metadata,
    Mutation, Owner, Value, limits,
};

use super::{FromWire, ToWire, lease_mutation, list, optional, parts, required, to_wire_list};
use crate::v1;
use crate::v1::mutation::Kind;

impl FromWire<v1::Mutation> for Mutation {
    fn from_wire(wire: v1::Mutation) -> Result<Self, Malformed> {
        let kind = wire.kind.ok_or(Malformed::Missing {
            what: parts::MUTATION,
        })?;
        Ok(match kind {
            Kind::Put(put) => Self::Put {
                key: Key::from_wire(put.key)?,
                value: Value::from_wire(put.value)?,
                metadata: Metadata::from_wire(put.metadata)?,
            },
            Kind::Delete(delete) => Self::Delete {
                key: Key::from_wire(delete.key)?,
            },
            Kind::SetMetadata(set) => Self::SetMetadata {
                key: Key::from_wire(set.key)?,
                metadata: Metadata::from_wire(set.metadata)?,
            },
            Kind::Advance(advance) => Self::Advance {
                guard: Guard::from_wire(advance.guard)?,
            },
            Kind::BindIntent(bind) => Self::BindIntent {
                intent: IntentId::from_wire(bind.intent)?,
                work: required(bind.work, parts::WORK)?,
            },
            Kind::CloseIntent(close) => Self::CloseIntent {
                intent: IntentId::from_wire(close.intent)?,
                guard: optional(close.guard)?,
                ending: Ending::from_wire(close.ending)?,
            },
            Kind::SuspendIntent(suspend) => Self::SuspendIntent {
                intent: IntentId::from_wire(suspend.intent)?,
                guard: optional(suspend.guard)?,
                owner: Owner::from_wire(suspend.owner)?,
                review_at_ms: suspend.review_at_ms.ok_or(Malformed::Missing {
                    what: parts::REVIEW,
                })?,
            },
            Kind::AcquireLease(acquire) => Self::from_wire(acquire)?,
            Kind::RenewLease(renew) => Self::from_wire(renew)?,
            Kind::ReleaseLease(release) => Self::from_wire(release)?,
            Kind::RevokeLease(revoke) => Self::from_wire(revoke)?,
            Kind::ExpireLease(expire) => Self::from_wire(expire)?,
        })
    }
}

impl ToWire for Mutation {
    type Wire = v1::Mutation;

    fn to_wire(&self) -> v1::Mutation {
        let kind = match self {
            Self::Put {
                key,
                value,
                metadata,
            } => Kind::Put(v1::Put {
                key: key.to_wire(),
                value: value.to_wire(),
                metadata: metadata.to_wire(),
            }),
            Self::Delete { key } => Kind::Delete(v1::Delete { key: key.to_wire() }),
            Self::SetMetadata { key, metadata } => Kind::SetMetadata(v1::SetMetadata {
                key: key.to_wire(),
                metadata: metadata.to_wire(),
            }),
            Self::Advance { guard } => Kind::Advance(v1::Advance {
                guard: guard.to_wire(),
            }),
            Self::BindIntent { intent, work } => Kind::BindIntent(v1::BindIntent {
                intent: intent.to_wire(),
                work: Some(work.to_wire()),
            }),
            Self::CloseIntent {
                intent,
                guard,
                ending,
            } => Kind::CloseIntent(v1::CloseIntent {
                intent: intent.to_wire(),
                guard: guard.as_ref().map(ToWire::to_wire),
                ending: ending.to_wire(),
            }),
            Self::SuspendIntent {
                intent,
                guard,
                owner,
                review_at_ms,
            } => Kind::SuspendIntent(v1::SuspendIntent {
                intent: intent.to_wire(),
                guard: guard.as_ref().map(ToWire::to_wire),
                owner: owner.to_wire(),
                review_at_ms: Some(*review_at_ms),
            }),
            Self::Acquire { .. }
            | Self::Renew { .. }
            | Self::Release { .. }
            | Self::Revoke { .. }
            | Self::Expire { .. } => {
                let kind = lease_mutation::kind(self);
                return v1::Mutation { kind };
            }
        };
        v1::Mutation { kind: Some(kind) }
    }
}

/// The caller of the commit read is nobody: who calls is the transport's word, never the request's.
impl FromWire<v1::Commit> for Commit {
    fn from_wire(wire: v1::Commit) -> Result<Self, Malformed> {
        let (mutations, conditions) = (limits::MUTATIONS_MAX, limits::CONDITIONS_MAX);
        let conditions: Vec<Condition> = list(wire.conditions, parts::CONDITIONS, conditions)?;
        Ok(Self {
            domain: DomainName::new(&wire.domain)?,
            destination: optional(wire.destination)?,
            authority: Authorities::from_wire(wire.authority)?,
            caller: None,
            conditions,
            mutations: list(wire.mutations, parts::MUTATIONS, mutations)?,
            intent: optional(wire.intent)?,
        })
    }
}

/// The caller isn't written: a request can't say who sends it.
impl ToWire for Commit {
    type Wire = v1::Commit;

    fn to_wire(&self) -> v1::Commit {
        v1::Commit {
            destination: self.destination.as_ref().map(ToWire::to_wire),
            domain: self.domain.as_str().into(),
            authority: self.authority.to_wire(),
            conditions: to_wire_list(&self.conditions),
            mutations: to_wire_list(&self.mutations),
            intent: self.intent.as_ref().map(ToWire::to_wire),
        }
    }
}
