//! The calls about leases.

use bytes::Bytes;
use highwater::Acquire;
use highwater_core::{
    Authority, Commit, Guard, Holder, Key, LeaseId, Malformed, Mutation, Owner, Receipt, Ttl,
};
use highwater_proto::convert::{FromWire, ToWire, optional, parts, required};
use highwater_proto::status::from_rejection;
use highwater_proto::v1;
use highwater_proto::v1::get_lease_request::Target;
use tonic::{Request, Response, Status};

use super::{Answer, Service};
use crate::acquire::{acquire, wait_within};
use crate::deadline;
use crate::identity::caller;
use crate::lease_list::LeaseList;
use crate::read::Scope;
use crate::status;

/// The lease to acquire, and how long to wait for it.
fn wanted(wire: v1::AcquireRequest, scope: Scope) -> Result<(Acquire, u64), Malformed> {
    let (guard, holder) = (
        Guard::from_wire(wire.guard)?,
        Holder::from_wire(wire.holder)?,
    );
    let mut wanted = Acquire::new(scope.domain, guard, holder, Ttl::from_wire(wire.ttl_ms)?);
    wanted.seal = wire.seal.unwrap_or(true);
    wanted.supersede = wire.supersede;
    wanted.intent = optional(wire.intent)?;
    wanted.destination = scope.destination;
    wanted.caller = scope.caller;
    Ok((wanted, wire.wait_ms))
}

/// A commit that changes one lease.
fn change(scope: Scope, mutation: Mutation) -> Commit {
    let mut commit = Commit::new(scope.domain).with(mutation);
    commit.destination = scope.destination;
    commit.caller = scope.caller;
    commit
}

/// The guard, the lease and the authority that a holder names.
fn held(
    guard: Bytes,
    lease: u64,
    authority: Option<v1::Authority>,
) -> Result<(Guard, LeaseId, Authority), Malformed> {
    Ok((
        Guard::from_wire(guard)?,
        LeaseId::from_wire(lease)?,
        required(authority, parts::AUTHORITY)?,
    ))
}

impl Service {
    pub(super) async fn acquired(
        &self,
        request: Request<v1::AcquireRequest>,
    ) -> Result<Receipt, Status> {
        let limit = self.limit(&request)?;
        let caller = caller(request.extensions());
        let mut request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination.take(), caller)?;
        let (wanted, wait_ms) =
            wanted(request, scope).map_err(|malformed| self.malformed(malformed))?;
        let mut ending = self.ending.clone();
        let wait = wait_within(wait_ms, limit);
        let acquiring = acquire(&self.store, wanted, wait, &mut ending);
        deadline::within(limit, acquiring).await
    }

    pub(super) async fn renewed(
        &self,
        request: Request<v1::RenewRequest>,
    ) -> Result<Receipt, Status> {
        let limit = self.limit(&request)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let read = held(request.guard, request.lease, request.authority)
            .and_then(|held| Ok((held, optional(request.ttl_ms)?)));
        let ((guard, lease, authority), ttl) =
            read.map_err(|malformed| self.malformed(malformed))?;
        let commit = change(scope, Mutation::Renew { guard, lease, ttl });
        self.commit_within(limit, commit.under(authority)).await
    }

    pub(super) async fn released(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Receipt, Status> {
        let limit = self.limit(&request)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let (guard, lease, authority) = held(request.guard, request.lease, request.authority)
            .map_err(|malformed| self.malformed(malformed))?;
        let commit = change(scope, Mutation::Release { guard, lease });
        self.commit_within(limit, commit.under(authority)).await
    }

    pub(super) async fn revoked(
        &self,
        request: Request<v1::RevokeRequest>,
    ) -> Result<Receipt, Status> {
        let limit = self.limit(&request)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let read = || {
            Ok(Mutation::Revoke {
                guard: Guard::from_wire(request.guard)?,
                lease: optional(request.lease)?,
                by: Owner::from_wire(request.by)?,
            })
        };
        let revoke = read().map_err(|malformed| self.malformed(malformed))?;
        self.commit_within(limit, change(scope, revoke)).await
    }

    pub(super) fn lease_of(
        &self,
        request: Request<v1::GetLeaseRequest>,
    ) -> Answer<v1::GetLeaseResponse> {
        self.limit(&request)?;
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, None)?;
        let snapshot = scope.snapshot(&self.store, None, |_| Ok(None))?;
        let domain = snapshot.domain(&scope.domain).map_err(status::of)?;
        let guard = match request.target {
            None => Err(Malformed::Missing {
                what: parts::TARGET,
            }),
            Some(Target::Guard(guard)) => Guard::from_wire(guard),
            Some(Target::Key(key)) => Key::from_wire(key).map(|key| domain.policy.guard_of(&key)),
        };
        let guard = guard.map_err(|malformed| self.malformed(malformed))?;
        if !domain.policy.is_guard(&guard) {
            return Err(self.malformed(Malformed::NoSuchGuard(guard)));
        }
        let record = snapshot.lease(&scope.domain, &guard).map_err(status::of)?;
        let clock = snapshot.lease_clock().map_err(status::of)?;
        let epoch = domain.epochs.current().epoch;
        let standing = record
            .as_ref()
            .and_then(|record| record.standing(&epoch, &clock));
        Ok(Response::new(v1::GetLeaseResponse {
            revision: snapshot.revision().get(),
            guard: guard.to_wire(),
            record: record.map(|record| record.to_wire()),
            standing: standing.as_ref().map(ToWire::to_wire),
            epoch: Some(epoch.to_wire()),
        }))
    }

    pub(super) async fn leases_of(
        &self,
        request: Request<v1::ListLeasesRequest>,
    ) -> Answer<v1::ListLeasesResponse> {
        let limit = self.limit(&request)?;
        let mut request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination.take(), None)?;
        let list = LeaseList::read(&request, self.own, scope.domain.clone(), &self.options)
            .map_err(|malformed| self.malformed(malformed))?;
        let after = list
            .resume(request.page_token)
            .map_err(|reason| from_rejection(&status::refused(reason, &self.store.status())))?;
        let snapshot = scope.snapshot(&self.store, None, |_| Ok(None))?;
        let page = tokio::task::spawn_blocking(move || list.page(&snapshot, after));
        let page = async {
            match page.await {
                Ok(page) => page.map_err(status::of),
                Err(_) => Err(Status::internal("the read was given up")),
            }
        };
        Ok(Response::new(deadline::within(limit, page).await?))
    }
}
