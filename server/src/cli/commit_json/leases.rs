//! What a commit's JSON says of leases.

use highwater::{LeaseId, Mutation, Ttl};
use serde::Deserialize;

use super::super::input::{self, InputError};
use super::super::{intent_args, lease_args};
use super::guard;

/// A lease to acquire. Whether it seals is stated: an absence would be a guess.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AcquireForm {
    guard: String,
    holder: String,
    ttl_ms: String,
    seal: bool,
    #[serde(default)]
    supersede: bool,
}

/// A lease to renew.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RenewForm {
    guard: String,
    lease: String,
    ttl_ms: Option<String>,
}

/// A lease that is named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseForm {
    guard: String,
    lease: String,
}

/// A lease to take away.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeForm {
    guard: String,
    lease: Option<String>,
    by: String,
}

fn ttl(text: &str) -> Result<Ttl, InputError> {
    let what = "ttl_ms";
    Ttl::new(input::number(what, text)?).ok_or(InputError::Number { what })
}

fn lease(text: &str) -> Result<LeaseId, InputError> {
    lease_args::lease(text)
}

impl AcquireForm {
    pub(super) fn mutation(self) -> Result<Mutation, InputError> {
        Ok(Mutation::Acquire {
            guard: guard(&self.guard)?,
            holder: lease_args::holder(&self.holder)?,
            ttl: ttl(&self.ttl_ms)?,
            seal: self.seal,
            supersede: self.supersede,
        })
    }
}

impl RenewForm {
    pub(super) fn mutation(self) -> Result<Mutation, InputError> {
        Ok(Mutation::Renew {
            guard: guard(&self.guard)?,
            lease: lease(&self.lease)?,
            ttl: self.ttl_ms.as_deref().map(ttl).transpose()?,
        })
    }
}

impl LeaseForm {
    pub(super) fn release(self) -> Result<Mutation, InputError> {
        let (guard, lease) = (guard(&self.guard)?, lease(&self.lease)?);
        Ok(Mutation::Release { guard, lease })
    }

    pub(super) fn expire(self) -> Result<Mutation, InputError> {
        let (guard, lease) = (guard(&self.guard)?, lease(&self.lease)?);
        Ok(Mutation::Expire { guard, lease })
    }
}

impl RevokeForm {
    pub(super) fn mutation(self) -> Result<Mutation, InputError> {
        Ok(Mutation::Revoke {
            guard: guard(&self.guard)?,
            lease: self.lease.as_deref().map(lease).transpose()?,
            by: intent_args::owner(&self.by)?,
        })
    }
}
