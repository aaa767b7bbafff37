//! Domains, policies and epoch tables.

use std::num::NonZeroU64;

use highwater_core::{
    Admission, Domain, DomainId, DomainName, DomainState, EpochEntry, EpochTable, GuardRule,
    HolderBinding, Malformed, Policy, PolicyError, Revision, Terms,
};

use super::{FromWire, ToWire, answered, parts, required, to_wire_list};
use crate::v1;

const fn number(what: &'static str) -> Malformed {
    Malformed::Number { what }
}

const fn missing(what: &'static str) -> Malformed {
    Malformed::Missing { what }
}

impl FromWire<v1::policy::Guard> for GuardRule {
    fn from_wire(wire: v1::policy::Guard) -> Result<Self, Malformed> {
        match wire {
            v1::policy::Guard::Key(v1::KeyGuard {}) => Ok(Self::Key),
            v1::policy::Guard::Domain(v1::DomainGuard {}) => Ok(Self::Domain),
            v1::policy::Guard::Prefix(prefix) => {
                let delimiter = prefix.delimiter.ok_or(missing(parts::DELIMITER))?;
                let delimiter = u8::try_from(delimiter).map_err(|_| number(parts::DELIMITER))?;
                let depth = u8::try_from(prefix.depth).map_err(|_| number(parts::DEPTH))?;
                Ok(Self::Prefix { delimiter, depth })
            }
        }
    }
}

impl ToWire for GuardRule {
    type Wire = v1::policy::Guard;

    fn to_wire(&self) -> v1::policy::Guard {
        match *self {
            Self::Key => v1::policy::Guard::Key(v1::KeyGuard {}),
            Self::Domain => v1::policy::Guard::Domain(v1::DomainGuard {}),
            Self::Prefix { delimiter, depth } => v1::policy::Guard::Prefix(v1::PrefixGuard {
                delimiter: Some(u32::from(delimiter)),
                depth: u32::from(depth),
            }),
        }
    }
}

fn admission(wire: v1::Admission) -> Result<Admission, Malformed> {
    match wire {
        v1::Admission::Unspecified => Err(missing(parts::ADMISSION)),
        v1::Admission::Fenced => Ok(Admission::Fenced),
        v1::Admission::Versioned => Ok(Admission::Versioned),
        v1::Admission::Open => Ok(Admission::Open),
    }
}

fn binding(wire: v1::HolderBinding) -> Result<HolderBinding, Malformed> {
    match wire {
        v1::HolderBinding::Unspecified => Err(missing(parts::HOLDER_BINDING)),
        v1::HolderBinding::None => Ok(HolderBinding::None),
        v1::HolderBinding::Prefix => Ok(HolderBinding::Prefix),
        v1::HolderBinding::Exact => Ok(HolderBinding::Exact),
    }
}

fn terms(wire: v1::Terms) -> Result<Terms, Malformed> {
    match wire {
        v1::Terms::Unspecified => Err(missing(parts::TERMS)),
        v1::Terms::External => Ok(Terms::External),
        v1::Terms::Issued => Ok(Terms::Issued),
    }
}

impl FromWire<v1::Policy> for Policy {
    fn from_wire(wire: v1::Policy) -> Result<Self, Malformed> {
        let admitted = v1::Admission::try_from(wire.admission);
        let admitted = admission(admitted.map_err(|_| number(parts::ADMISSION))?)?;
        let bound = v1::HolderBinding::try_from(wire.holder_binding);
        let bound = binding(bound.map_err(|_| number(parts::HOLDER_BINDING))?)?;
        let issued = v1::Terms::try_from(wire.terms);
        let issued = terms(issued.map_err(|_| number(parts::TERMS))?)?;
        let strict = wire.strict.ok_or(missing(parts::STRICT))?;
        let guard = required(wire.guard, parts::GUARD_RULE)?;
        let policy = Self::default()
            .with_guard(guard)
            .and_then(|policy| policy.with_grace_ms(wire.grace_ms))
            .map_err(|error: PolicyError| Malformed::Policy(error))?;
        Ok(policy
            .with_terms(issued)
            .with_strict(strict)
            .with_admission(admitted)
            .with_holder_binding(bound)
            .with_max_sequence_step(NonZeroU64::new(wire.max_sequence_step)))
    }
}

impl ToWire for Policy {
    type Wire = v1::Policy;

    fn to_wire(&self) -> v1::Policy {
        let admission = match self.admission() {
            Admission::Fenced => v1::Admission::Fenced,
            Admission::Versioned => v1::Admission::Versioned,
            Admission::Open => v1::Admission::Open,
        };
        let binding = match self.holder_binding() {
            HolderBinding::None => v1::HolderBinding::None,
            HolderBinding::Prefix => v1::HolderBinding::Prefix,
            HolderBinding::Exact => v1::HolderBinding::Exact,
        };
        let terms = match self.terms() {
            Terms::External => v1::Terms::External,
            Terms::Issued => v1::Terms::Issued,
        };
        v1::Policy {
            guard: Some(self.guard().to_wire()),
            admission: i32::from(admission),
            holder_binding: i32::from(binding),
            max_sequence_step: self.max_sequence_step().map_or(0, NonZeroU64::get),
            terms: i32::from(terms),
            strict: Some(self.strict()),
            grace_ms: self.grace_ms(),
        }
    }
}

impl FromWire<v1::EpochEntry> for EpochEntry {
    fn from_wire(wire: v1::EpochEntry) -> Result<Self, Malformed> {
        Ok(Self {
            epoch: required(wire.epoch, parts::EPOCH)?,
            installed_at: Revision::from_wire(wire.installed_at)?,
        })
    }
}

impl ToWire for EpochEntry {
    type Wire = v1::EpochEntry;

    fn to_wire(&self) -> v1::EpochEntry {
        v1::EpochEntry {
            epoch: Some(self.epoch.to_wire()),
            installed_at: self.installed_at.get(),
        }
    }
}

fn state(raw: i32) -> Result<DomainState, Malformed> {
    match v1::DomainState::try_from(raw) {
        Ok(v1::DomainState::Active) => Ok(DomainState::Active),
        Ok(v1::DomainState::Frozen) => Ok(DomainState::Frozen),
        Ok(v1::DomainState::RecoveryRequired) => Ok(DomainState::RecoveryRequired),
        Ok(v1::DomainState::Unspecified) => Err(missing(parts::DOMAIN_STATE)),
        Err(_) => Err(number(parts::DOMAIN_STATE)),
    }
}

impl FromWire<v1::Domain> for Domain {
    fn from_wire(wire: v1::Domain) -> Result<Self, Malformed> {
        let current = required(wire.current, parts::EPOCH)?;
        Ok(Self {
            id: DomainId::new(wire.id).ok_or(number(parts::DOMAIN_ID))?,
            name: DomainName::new(&wire.name)?,
            policy: required(wire.policy, parts::POLICY)?,
            epochs: EpochTable::with_retired(answered(wire.retired)?, current),
            state: state(wire.state)?,
            created_at: Revision::from_wire(wire.created_at)?,
        })
    }
}

impl ToWire for Domain {
    type Wire = v1::Domain;

    fn to_wire(&self) -> v1::Domain {
        let state = match self.state {
            DomainState::Active => v1::DomainState::Active,
            DomainState::Frozen => v1::DomainState::Frozen,
            DomainState::RecoveryRequired => v1::DomainState::RecoveryRequired,
        };
        v1::Domain {
            id: self.id.get(),
            name: self.name.as_str().into(),
            policy: Some(self.policy.to_wire()),
            current: Some(self.epochs.current().to_wire()),
            retired: to_wire_list(self.epochs.retired()),
            state: i32::from(state),
            created_at: self.created_at.get(),
        }
    }
}
