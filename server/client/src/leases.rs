//! Leases: getting and ending them, and looking at them.

use std::time::Duration;

use bytes::Bytes;
use highwater_core::{
    Authority, DomainName, Epoch, Guard, Holder, IntentUse, LeaseId, LeaseReceipt, LeaseRecord,
    LeaseStanding, Malformed, Owner, Receipt, Revision, Ttl,
};
use highwater_proto::convert::{FromWire, ToWire, optional, parts, required};
use highwater_proto::v1;
use tonic::Request;

use crate::client::{Client, timed};
use crate::error::ClientError;

/// A lease to acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// The guard.
    pub guard: Guard,
    /// Who is to hold it.
    pub holder: Holder,
    /// How long the lease lasts unless it is renewed.
    pub ttl: Ttl,
    /// Whether the guard's fence rises to the new term in the same step. Almost always wanted.
    pub seal: bool,
    /// Whether a live lease of the same holder gives way.
    pub supersede: bool,
    /// The step of an intent that this is: asked again, it gets the same lease again, and no time
    /// more.
    pub intent: Option<IntentUse>,
    /// How long to wait in line for a guard that isn't free, beside the client's deadline. The
    /// server has a bound of its own, after which it refuses as if the time were over.
    pub wait: Duration,
}

/// What a look at a guard's leases found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLease {
    /// The revision that was read.
    pub revision: Revision,
    /// The domain's current epoch.
    pub epoch: Epoch,
    /// What is stored; `None` if no lease was ever granted.
    pub record: Option<LeaseRecord>,
    /// How the current lease stood; `None` if there is none.
    pub standing: Option<LeaseStanding>,
}

/// Which guards are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseFilter {
    /// All that a lease was ever granted on.
    All,
    /// Those with a live lease.
    Live,
}

/// A guard in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLease {
    /// The guard.
    pub guard: Guard,
    /// What is stored.
    pub record: LeaseRecord,
    /// How the current lease stood; `None` if there is none.
    pub standing: Option<LeaseStanding>,
}

/// A part of a list of leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasePage {
    /// The revision that was read.
    pub revision: Revision,
    /// The guards, ordered by name. They can be none though there is a token.
    pub leases: Vec<ListedLease>,
    /// Where the same list goes on; `None` on the last page.
    pub token: Option<Bytes>,
}

impl Acquire {
    /// A sealed lease, without waiting.
    #[must_use]
    pub const fn new(guard: Guard, holder: Holder, ttl: Ttl) -> Self {
        Self {
            guard,
            holder,
            ttl,
            seal: true,
            supersede: false,
            intent: None,
            wait: Duration::ZERO,
        }
    }

    /// The same, waiting in line for so long.
    #[must_use]
    pub const fn waiting(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

impl LeaseFilter {
    /// How a request says it.
    #[must_use]
    pub const fn to_wire(self) -> v1::LeaseFilter {
        match self {
            Self::All => v1::LeaseFilter::All,
            Self::Live => v1::LeaseFilter::Live,
        }
    }
}

impl FromWire<v1::GetLeaseResponse> for FoundLease {
    fn from_wire(wire: v1::GetLeaseResponse) -> Result<Self, Malformed> {
        Ok(Self {
            revision: Revision::from_wire(wire.revision)?,
            epoch: required(wire.epoch, parts::EPOCH)?,
            record: optional(wire.record)?,
            standing: optional(wire.standing)?,
        })
    }
}

impl FromWire<v1::ListLeasesResponse> for LeasePage {
    fn from_wire(wire: v1::ListLeasesResponse) -> Result<Self, Malformed> {
        let read = |wire| -> Result<ListedLease, Malformed> {
            let (guard, record, standing) = FromWire::from_wire(wire)?;
            Ok(ListedLease {
                guard,
                record,
                standing,
            })
        };
        Ok(Self {
            revision: Revision::from_wire(wire.revision)?,
            leases: wire
                .leases
                .into_iter()
                .map(read)
                .collect::<Result<_, _>>()?,
            token: (!wire.page_token.is_empty()).then_some(wire.page_token),
        })
    }
}

/// The receipt of an answer.
fn receipt(wire: Option<v1::Receipt>) -> Result<Receipt, ClientError> {
    Ok(required(wire, parts::RECEIPT)?)
}

/// The lease that a receipt tells of.
pub(crate) fn leased(receipt: &Receipt) -> Result<&LeaseReceipt, ClientError> {
    let missing = Malformed::Missing { what: parts::LEASE };
    receipt.leases.first().ok_or(ClientError::Answer(missing))
}

impl Client {
    /// Acquires a lease, once: where the outcome isn't known, look the lease up, or acquire again
    /// saying that one's own lease gives way. The lease is the one in the receipt; how long it
    /// lasts is the destination's to say. [`crate::LeaseHolder`] keeps one alive.
    ///
    /// # Errors
    ///
    /// [`ClientError::ConditionFailed`] where the guard isn't free within the time; else as
    /// [`Client::commit`].
    pub async fn acquire(
        &self,
        domain: &DomainName,
        wanted: &Acquire,
    ) -> Result<Receipt, ClientError> {
        let wait_ms = u64::try_from(wanted.wait.as_millis()).unwrap_or(u64::MAX);
        let mut request = Request::new(v1::AcquireRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            guard: wanted.guard.to_wire(),
            holder: wanted.holder.to_wire(),
            ttl_ms: wanted.ttl.get(),
            seal: Some(wanted.seal),
            supersede: wanted.supersede,
            intent: wanted.intent.as_ref().map(ToWire::to_wire),
            wait_ms,
        });
        request.set_timeout(self.options().deadline.saturating_add(wanted.wait));
        let answer = self.rpc().acquire(request).await;
        receipt(answer.map_err(ClientError::of_write)?.into_inner().receipt)
    }

    /// Renews a lease, once, and waits so long for the answer. `ttl` is how long it lasts from now
    /// on; `None` is as long as before.
    ///
    /// # Errors
    ///
    /// [`ClientError::LostAuthority`] where the lease has lapsed or ended; else as
    /// [`Client::commit`].
    pub async fn renew(
        &self,
        domain: &DomainName,
        (guard, lease): (&Guard, LeaseId),
        authority: &Authority,
        ttl: Option<Ttl>,
        limit: Duration,
    ) -> Result<Receipt, ClientError> {
        let mut request = Request::new(v1::RenewRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            guard: guard.to_wire(),
            lease: lease.get(),
            authority: Some(authority.to_wire()),
            ttl_ms: ttl.map(Ttl::get),
        });
        request.set_timeout(limit);
        let answer = self.rpc().renew(request).await;
        receipt(answer.map_err(ClientError::of_write)?.into_inner().receipt)
    }

    /// Lets a lease go, once. Stop all work under it before.
    ///
    /// # Errors
    ///
    /// [`ClientError::LostAuthority`] where it has lapsed or ended already, which is harmless; else
    /// as [`Client::commit`].
    pub async fn release(
        &self,
        domain: &DomainName,
        (guard, lease): (&Guard, LeaseId),
        authority: &Authority,
    ) -> Result<Receipt, ClientError> {
        let message = v1::ReleaseRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            guard: guard.to_wire(),
            lease: lease.get(),
            authority: Some(authority.to_wire()),
        };
        let answer = self.rpc().release(timed(self.options(), message)).await;
        receipt(answer.map_err(ClientError::of_write)?.into_inner().receipt)
    }

    /// Ends a lease, whoever holds it; `None` for whichever is current. It fences nobody: acquire
    /// and seal for that.
    ///
    /// # Errors
    ///
    /// [`ClientError::LostAuthority`] where there is no such lease; else as [`Client::commit`].
    pub async fn revoke(
        &self,
        domain: &DomainName,
        guard: &Guard,
        lease: Option<LeaseId>,
        by: &Owner,
    ) -> Result<Receipt, ClientError> {
        let message = v1::RevokeRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            guard: guard.to_wire(),
            lease: lease.map(LeaseId::get),
            by: by.to_wire(),
        };
        let answer = self.rpc().revoke(timed(self.options(), message)).await;
        receipt(answer.map_err(ClientError::of_write)?.into_inner().receipt)
    }

    /// What is stored of a guard's leases, and how the current one stands.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    pub async fn lease(
        &self,
        domain: &DomainName,
        guard: &Guard,
    ) -> Result<FoundLease, ClientError> {
        let message = v1::GetLeaseRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            target: Some(v1::get_lease_request::Target::Guard(guard.to_wire())),
        };
        let answer = self.read(message, async |mut rpc, request| {
            rpc.get_lease(request).await
        });
        Ok(FoundLease::from_wire(answer.await?)?)
    }

    /// A page of the guards of a domain with their leases. `token` goes on where an earlier page of
    /// the same list ended, at a newer revision.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    pub async fn leases(
        &self,
        domain: &DomainName,
        filter: LeaseFilter,
        token: Option<Bytes>,
    ) -> Result<LeasePage, ClientError> {
        let message = v1::ListLeasesRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            filter: i32::from(filter.to_wire()),
            page_leases: 0,
            page_token: token.unwrap_or_default(),
        };
        let answer = self.read(message, async |mut rpc, request| {
            rpc.list_leases(request).await
        });
        Ok(LeasePage::from_wire(answer.await?)?)
    }
}
