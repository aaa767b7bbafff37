//! The calls that fence, and then tell what they found: take-overs and reconciliation.

use highwater::{Acquire, Error, Found, Reconcile, TakeOver};
use highwater_core::{Authority, Guard, Holder, IntentId, Malformed, Receipt, Ttl};
use highwater_proto::convert::{FromWire, ToWire, list, optional, parts};
use highwater_proto::status::from_rejection;
use highwater_proto::v1::found_intent::Stored;
use highwater_proto::v1::take_over_request::By;
use highwater_proto::{ASKED_INTENTS_MAX, v1};
use tonic::{Request, Response, Status};

use super::{Answer, Service};
use crate::admission::Admission;
use crate::deadline;
use crate::identity::caller;
use crate::pages::{Keys, PageSize, Pages};
use crate::read::Scope;
use crate::scan::{Answers, first_of_take_over, later_of_take_over, send_pages};
use crate::status;
use crate::token::Listing;

/// A failure behind the first effect: the fence may be raised, whatever came after it.
fn failed(error: Error, acquired: Option<&Receipt>) -> Status {
    match (error, acquired) {
        (Error::Rejected(rejection), None) => from_rejection(&rejection),
        (error, None) => {
            Status::unknown(format!("whether the fence was raised isn't known: {error}"))
        }
        (error, Some(acquired)) => Status::unknown(format!(
            "the lease was granted at revision {}, and lapses by itself; what came after it \
             failed: {error}",
            acquired.revision
        )),
    }
}

/// To what a guard is to be raised.
enum Wish {
    Authority(Authority),
    Lease(Box<Acquire>),
}

fn wish(by: Option<By>, guard: &Guard, scope: &Scope) -> Result<Wish, Malformed> {
    match by {
        None => Err(Malformed::Missing {
            what: parts::AUTHORITY,
        }),
        Some(By::Authority(authority)) => Authority::from_wire(authority).map(Wish::Authority),
        Some(By::Acquire(lease)) => {
            let (holder, ttl) = (
                Holder::from_wire(lease.holder)?,
                Ttl::from_wire(lease.ttl_ms)?,
            );
            let mut acquire = Acquire::new(scope.domain.clone(), guard.clone(), holder, ttl);
            acquire.supersede = lease.supersede;
            acquire.destination = scope.destination;
            acquire.caller.clone_from(&scope.caller);
            Ok(Wish::Lease(Box::new(acquire)))
        }
    }
}

fn asked(intents: Vec<bytes::Bytes>) -> Result<Vec<IntentId>, Malformed> {
    list(intents, parts::INTENTS, ASKED_INTENTS_MAX)
}

/// What was found of an intent: all that is stored of it, or that in brief.
pub(crate) fn found(found: &Found, briefly: bool) -> v1::FoundIntent {
    let stored = found.record.as_ref().map(|record| match briefly {
        true => Stored::Summary(record.summary().to_wire()),
        false => Stored::Record(record.to_wire()),
    });
    v1::FoundIntent {
        id: found.id.to_wire(),
        effects: found.finding.effects.to_wire(),
        settled: found.finding.settled,
        stored,
    }
}

impl Service {
    /// The authority to raise a guard to, and the receipt of the lease that was acquired for it.
    async fn granted(&self, wish: Wish) -> Result<(Authority, Option<Receipt>), Status> {
        let acquire = match wish {
            Wish::Authority(authority) => return Ok((authority, None)),
            Wish::Lease(acquire) => acquire,
        };
        let receipt = self.store.commit_async(acquire.commit()).await;
        let receipt = receipt.map_err(status::of)?;
        match receipt.leases.first() {
            Some(granted) => Ok((granted.lease.authority(), Some(receipt))),
            None => Err(Status::unknown(
                "the store granted a lease without telling it",
            )),
        }
    }

    pub(super) async fn taken_over(
        &self,
        request: Request<v1::TakeOverRequest>,
    ) -> Answer<Answers<v1::TakeOverResponse>> {
        let limit = self.limit(&request)?;
        let place = self.place(&request, Admission::scan)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let read = || {
            let guard = Guard::from_wire(request.guard)?;
            let wish = wish(request.by, &guard, &scope)?;
            Ok((guard, wish, asked(request.intents)?))
        };
        let (guard, wish, intents) = read().map_err(|malformed| self.malformed(malformed))?;
        let size = PageSize::new(request.page_records, &self.options);
        let listing = Listing {
            destination: self.own,
            domain: scope.domain.clone(),
            keys: Keys::Guard(guard.clone()),
        };
        let taking = async {
            let (authority, acquired) = self.granted(wish).await?;
            let taken = self.store.take_over_async(TakeOver {
                domain: scope.domain,
                guard,
                authority,
                intents,
                destination: scope.destination,
                caller: scope.caller,
                limit: size.records(),
            });
            match taken.await {
                Ok(taken) => Ok((taken, acquired)),
                Err(error) => Err(failed(error, acquired.as_ref())),
            }
        };
        let (taken, acquired) = deadline::within(limit, taking).await?;
        let mut pages = Pages::new(taken.snapshot.clone(), listing, size, request.pages, None);
        let (sender, answers) = Answers::new(place);
        let ending = self.ending.clone();
        tokio::spawn(async move {
            for first in first_of_take_over(taken, acquired.as_ref(), &mut pages) {
                if sender.send(Ok(first)).await.is_err() {
                    return;
                }
            }
            send_pages(pages, sender, ending, later_of_take_over).await;
        });
        Ok(Response::new(answers))
    }

    pub(super) async fn reconciled(
        &self,
        request: Request<v1::ReconcileRequest>,
    ) -> Answer<v1::ReconcileResponse> {
        let limit = self.limit(&request)?;
        let caller = caller(request.extensions());
        let request = request.into_inner();
        let scope = self.scope(&request.domain, request.destination, caller)?;
        let read = || Ok((asked(request.intents)?, optional(request.fence)?));
        let (intents, fence) = read().map_err(|malformed| self.malformed(malformed))?;
        if fence.is_none() {
            crate::read::expect(&self.store, scope.destination.as_ref())?;
        }
        let question = Reconcile {
            domain: scope.domain,
            intents,
            fence,
            destination: scope.destination,
            caller: scope.caller,
        };
        let fenced = question.fence.is_some();
        let reconciling = self.store.reconcile_async(&question);
        let reconciling = async {
            reconciling.await.map_err(|error| match fenced {
                true => failed(error, None),
                false => status::of(error),
            })
        };
        let told = deadline::within(limit, reconciling).await?;
        Ok(Response::new(v1::ReconcileResponse {
            revision: told.snapshot.revision().get(),
            found: told.found.iter().map(|one| found(one, false)).collect(),
            receipt: told.receipt.as_ref().map(ToWire::to_wire),
        }))
    }
}
