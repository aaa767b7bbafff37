//! One method per call: convert, hand to the store, convert back. No rule lives here.

mod leases;
mod take_over;

use std::time::Duration;

use highwater::{Store, WatchRequest};
use highwater_core::{
    Authority, Commit, DomainName, ExpectedDestination, Guard, Identity, IntentId, Key, Malformed,
    Policy, Receipt, Revision,
};
use highwater_proto::convert::{FromWire, ToWire, optional, parts, record_to_wire, required};
use highwater_proto::status::from_rejection;
use highwater_proto::v1;
use highwater_proto::v1::get_fence_request::Target;
use highwater_proto::v1::highwater_server::Highwater;
use tonic::{Request, Response, Status, Streaming};

use crate::admission::{Admission, Place};
use crate::deadline;
use crate::identity::caller;
use crate::intents::IntentList;
use crate::options::ServeOptions;
use crate::pages::{Keys, PageSize, Pages};
use crate::read::{Scope, expect, scanned, watched};
use crate::scan::{Answers, send_pages};
use crate::shutdown::Ending;
use crate::status;
use crate::stream::{Commands, shutting_down};
use crate::token::Listing;
use crate::unread;
use crate::verdicts::Verdicts;
use crate::watch::send_changes;

pub(crate) use self::take_over::found;

type Answer<T> = Result<Response<T>, Status>;

/// A store as a service.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    store: Store,
    own: ExpectedDestination,
    options: ServeOptions,
    admission: Admission,
    ending: Ending,
}

impl Service {
    /// Serves this store, within these bounds.
    pub(crate) fn new(store: Store, options: &ServeOptions, ending: Ending) -> Self {
        let status = store.status();
        Self {
            own: ExpectedDestination {
                id: status.destination,
                incarnation: status.incarnation,
            },
            admission: Admission::new(options),
            options: options.clone(),
            store,
            ending,
        }
    }

    fn malformed(&self, malformed: Malformed) -> Status {
        status::malformed(malformed, &self.store.status())
    }

    /// How long a call may take. Every call begins with it.
    fn limit<T>(&self, request: &Request<T>) -> Result<Duration, Status> {
        unread::begin(request.extensions());
        deadline::limit(request.metadata(), self.options.request_timeout)
    }

    fn commit_of(
        &self,
        wire: Option<v1::Commit>,
        caller: Option<Identity>,
    ) -> Result<Commit, Status> {
        let commit: Result<Commit, _> = required(wire, parts::COMMIT);
        let mut commit = commit.map_err(|malformed| self.malformed(malformed))?;
        commit.caller = caller;
        Ok(commit)
    }

    async fn commit_within(&self, limit: Duration, commit: Commit) -> Result<Receipt, Status> {
        let ticket = self.store.submit(commit).map_err(status::of)?;
        deadline::within(limit, async { ticket.await.map_err(status::of) }).await
    }

    fn scope(
        &self,
        domain: &str,
        destination: Option<v1::Destination>,
        caller: Option<Identity>,
    ) -> Result<Scope, Status> {
        Scope::read(domain, destination, caller).map_err(|malformed| self.malformed(malformed))
    }

    fn place<T>(
        &self,
        request: &Request<T>,
        of: impl Fn(&Admission) -> Result<Place, Status>,
    ) -> Result<Place, Status> {
        self.limit(request)?;
        if self.ending.is_begun() {
            return Err(shutting_down());
        }
        of(&self.admission)
    }
}

/// The parts of an advance.
fn raise(
    guard: bytes::Bytes,
    authority: Option<v1::Authority>,
) -> Result<(Guard, Authority), Malformed> {
    Ok((
        Guard::from_wire(guard)?,
        required(authority, parts::AUTHORITY)?,
    ))
}

fn domain_to_create(
    request: v1::CreateDomainRequest,
) -> Result<(DomainName, Policy, Option<ExpectedDestination>), Malformed> {
    let policy = required(request.policy, parts::POLICY)?;
    Ok((
        DomainName::new(&request.name)?,
        policy,
        optional(request.destination)?,
    ))
}

#[tonic::async_trait]
impl Highwater for Service {
    type CommitStreamStream = Verdicts;
    type ScanStream = Answers<v1::ScanResponse>;
    type WatchStream = Answers<v1::WatchResponse>;
    type TakeOverStream = Answers<v1::TakeOverResponse>;

    async fn create_domain(
        &self,
        request: Request<v1::CreateDomainRequest>,
    ) -> Answer<v1::CreateDomainResponse> {
        let limit = self.limit(&request)?;
        let (name, policy, destination) = domain_to_create(request.into_inner())
            .map_err(|malformed| self.malformed(malformed))?;
        let created = self.store.create_domain_async(name, policy, destination);
        let created = async { created.await.map_err(status::of) };
        let domain = deadline::within(limit, created).await?;
        Ok(Response::new(v1::CreateDomainResponse {
            domain: Some(domain.to_wire()),
        }))
    }

    async fn get_domain(
        &self,
        request: Request<v1::GetDomainRequest>,
    ) -> Answer<v1::GetDomainResponse> {
        self.limit(&request)?;
        let request = request.into_inner();
        let scope = self.scope(&request.name, request.destination, None)?;
        let snapshot = scope.snapshot(&self.store, None, |_| Ok(None))?;
        let domain = snapshot.domain(&scope.domain).map_err(status::of)?;
        Ok(Response::new(v1::GetDomainResponse {
            domain: Some(domain.to_wire()),
        }))
    }

    async fn list_domains(
        &self,
        request: Request<v1::ListDomainsRequest>,
    ) -> Answer<v1::ListDomainsResponse> {
        self.limit(&request)?;
        let destination: Option<ExpectedDestination> =
            optional(request.into_inner().destination)
                .map_err(|malformed| self.malformed(malformed))?;
        expect(&self.store, destination.as_ref())?;
        let briefly = |domain: &highwater_core::Domain| v1::Domain {
            retired: Vec::new(),
            ..domain.to_wire()
        };
        let domains = self.store.domains();
        let domains = domains.iter().map(|domain| briefly(domain)).collect();
        Ok(Response::new(v1::ListDomainsResponse { domains }))
    }

    async fn commit(&self, request: Request<v1::CommitRequest>) -> Answer<v1::CommitResponse> {
        let limit = self.limit(&request)?;
        let caller = caller(request.extensions());
        let commit = self.commit_of(request.into_inner().commit, caller)?;
        let receipt = self.commit_within(limit, commit).await?;
        Ok(Response::new(v1::CommitResponse {
            receipt: Some(receipt.to_wire()),
        }))
    }

    async fn commit_stream(
        &self,
        request: Request<Streaming<v1::CommitStreamRequest>>,
    ) -> Answer<Verdicts> {
        let place = self.place(&request, Admission::commit_stream)?;
        let commands = Commands {
            store: self.store.clone(),
            caller: caller(request.extensions()),
            ending: self.ending.clone(),
        };
        let window = self.options.stream_window;
        Ok(Response::new(commands.begin(
            request.into_inner(),
            window,
            place,
        )))
    }

    async fn judge(&self, request: Request<v1::JudgeRequest>) -> Answer<v1::JudgeResponse> {
        self.limit(&request)?;
        let caller = caller(request.extensions());
        let commit = self.commit_of(request.into_inner().commit, caller)?;
        let receipt = self.store.judge(&commit).map_err(status::of)?;
        Ok(Response::new(v1::JudgeResponse {
            receipt: Some(receipt.to_wire()),
        }))
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Answer<v1::GetResponse> {
        self.limit(&request)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let key = Key::from_wire(request.key).map_err(|malformed| self.malformed(malformed))?;
        let snapshot = scope.snapshot(&self.store, request.guard, |snapshot| {
            Ok(Some(snapshot.domain(&scope.domain)?.policy.guard_of(&key)))
        })?;
        let record = snapshot.get(&scope.domain, &key).map_err(status::of)?;
        Ok(Response::new(v1::GetResponse {
            revision: snapshot.revision().get(),
            record: record.map(|record| record_to_wire(&key, &record)),
        }))
    }

    async fn scan(&self, request: Request<v1::ScanRequest>) -> Answer<Self::ScanStream> {
        let place = self.place(&request, Admission::scan)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let keys = scanned(request.keys).map_err(|malformed| self.malformed(malformed))?;
        let own = match &keys {
            Keys::Guard(guard) => Some(guard.clone()),
            Keys::Range(_) => None,
        };
        let listing = Listing {
            destination: self.own,
            domain: scope.domain.clone(),
            keys,
        };
        let next = listing
            .resume(request.page_token)
            .map_err(|reason| from_rejection(&status::refused(reason, &self.store.status())))?;
        let snapshot = scope.snapshot(&self.store, request.read_guard, |_| Ok(own))?;
        // An unknown domain is told before the first page.
        snapshot.domain(&scope.domain).map_err(status::of)?;
        let size = PageSize::new(request.page_records, &self.options);
        let pages = Pages::new(snapshot, listing, size, request.pages, next);
        let (sender, answers) = Answers::new(place);
        tokio::spawn(send_pages(pages, sender, self.ending.clone(), |page| page));
        Ok(Response::new(answers))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Answer<Self::WatchStream> {
        let place = self.place(&request, Admission::watch)?;
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, None)?;
        expect(&self.store, scope.destination.as_ref())?;
        let malformed = |malformed| self.malformed(malformed);
        let range = watched(request.keys).map_err(malformed)?;
        let after = request
            .after
            .map(Revision::from_wire)
            .transpose()
            .map_err(malformed)?;
        let wanted = WatchRequest {
            domain: scope.domain,
            range,
            fences: request.fences,
            leases: request.leases,
            after,
        };
        let watch = self.store.watch(wanted).map_err(status::of)?;
        let (sender, answers) = Answers::new(place);
        let progress = self.options.progress_interval;
        tokio::spawn(send_changes(watch, sender, self.ending.clone(), progress));
        Ok(Response::new(answers))
    }

    async fn get_intent(
        &self,
        request: Request<v1::GetIntentRequest>,
    ) -> Answer<v1::GetIntentResponse> {
        self.limit(&request)?;
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, None)?;
        let id = IntentId::from_wire(request.id).map_err(|malformed| self.malformed(malformed))?;
        let snapshot = scope.snapshot(&self.store, None, |_| Ok(None))?;
        let intent = snapshot.intent(&scope.domain, &id).map_err(status::of)?;
        Ok(Response::new(v1::GetIntentResponse {
            revision: snapshot.revision().get(),
            intent: intent.map(|record| record.to_wire()),
        }))
    }

    async fn list_intents(
        &self,
        request: Request<v1::ListIntentsRequest>,
    ) -> Answer<v1::ListIntentsResponse> {
        let limit = self.limit(&request)?;
        let mut request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination.take(), None)?;
        let list = IntentList::read(&request, self.own, scope.domain.clone(), &self.options)
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

    async fn get_fence(
        &self,
        request: Request<v1::GetFenceRequest>,
    ) -> Answer<v1::GetFenceResponse> {
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
        let fence = snapshot.fence(&scope.domain, &guard).map_err(status::of)?;
        Ok(Response::new(v1::GetFenceResponse {
            revision: snapshot.revision().get(),
            guard: guard.to_wire(),
            fence: fence.map(|fence| fence.to_wire()),
            epoch: Some(domain.epochs.current().epoch.to_wire()),
        }))
    }

    async fn advance_fence(
        &self,
        request: Request<v1::AdvanceFenceRequest>,
    ) -> Answer<v1::AdvanceFenceResponse> {
        let limit = self.limit(&request)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let (guard, authority) = raise(request.guard, request.authority)
            .map_err(|malformed| self.malformed(malformed))?;
        let mut commit = Commit::new(scope.domain).under(authority).advance(guard);
        commit.destination = scope.destination;
        commit.caller = scope.caller;
        let receipt = self.commit_within(limit, commit).await?;
        Ok(Response::new(v1::AdvanceFenceResponse {
            receipt: Some(receipt.to_wire()),
        }))
    }

    async fn take_over(
        &self,
        request: Request<v1::TakeOverRequest>,
    ) -> Answer<Self::TakeOverStream> {
        self.taken_over(request).await
    }

    async fn reconcile(
        &self,
        request: Request<v1::ReconcileRequest>,
    ) -> Answer<v1::ReconcileResponse> {
        self.reconciled(request).await
    }

    async fn acquire(&self, request: Request<v1::AcquireRequest>) -> Answer<v1::AcquireResponse> {
        let receipt = Some(self.acquired(request).await?.to_wire());
        Ok(Response::new(v1::AcquireResponse { receipt }))
    }

    async fn renew(&self, request: Request<v1::RenewRequest>) -> Answer<v1::RenewResponse> {
        let receipt = Some(self.renewed(request).await?.to_wire());
        Ok(Response::new(v1::RenewResponse { receipt }))
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Answer<v1::ReleaseResponse> {
        let receipt = Some(self.released(request).await?.to_wire());
        Ok(Response::new(v1::ReleaseResponse { receipt }))
    }

    async fn revoke(&self, request: Request<v1::RevokeRequest>) -> Answer<v1::RevokeResponse> {
        let receipt = Some(self.revoked(request).await?.to_wire());
        Ok(Response::new(v1::RevokeResponse { receipt }))
    }

    async fn get_lease(
        &self,
        request: Request<v1::GetLeaseRequest>,
    ) -> Answer<v1::GetLeaseResponse> {
        self.lease_of(request)
    }

    async fn list_leases(
        &self,
        request: Request<v1::ListLeasesRequest>,
    ) -> Answer<v1::ListLeasesResponse> {
        self.leases_of(request).await
    }

    async fn status(&self, request: Request<v1::StatusRequest>) -> Answer<v1::StatusResponse> {
        self.limit(&request)?;
        Ok(Response::new(status::report(&self.store.status())))
    }
}
