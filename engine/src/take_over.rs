//! The take-over: fence first, then read.

use highwater_core::{
    Authority, DomainName, ExpectedDestination, Guard, Identity, IntentId, Receipt,
};

use crate::error::Error;
use crate::reconcile::{Found, Reconcile};
use crate::snapshot::{Page, Snapshot};
use crate::store::Store;

/// A request to become the highest holder of a guard and to see what is under it.
#[derive(Clone, Debug)]
pub struct TakeOver {
    /// The domain.
    pub domain: DomainName,
    /// The guard.
    pub guard: Guard,
    /// The authority to fence with.
    pub authority: Authority,
    /// The intents to find out about.
    pub intents: Vec<IntentId>,
    /// The destination that the caller means; `None` to not check it.
    pub destination: Option<ExpectedDestination>,
    /// Who calls, as the transport authenticated it.
    pub caller: Option<Identity>,
    /// Most records in the first page.
    pub limit: usize,
}

/// What a take-over gives.
#[derive(Clone, Debug)]
pub struct TakenOver {
    /// The statement about the fence.
    pub receipt: Receipt,
    /// What is known of the intents that were asked about, in that order.
    pub found: Vec<Found>,
    /// The first records under the guard, as they were under this fence.
    pub page: Page,
    /// The state that the page is from, for the pages after it.
    pub snapshot: Snapshot,
}

impl Store {
    /// Raises a guard's fence to an authority, then says what became of intents and reads the
    /// guard's records: all that earlier holders wrote is in them, and nothing that they write can
    /// come after. Blocks the thread.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] if the authority isn't above the fence, also when another one was
    /// accepted between the fence and the read.
    pub fn take_over(&self, request: TakeOver) -> Result<TakenOver, Error> {
        let question = request.question();
        let receipt = self.fence_intents(&question, &request.fence())?;
        request.read(receipt, question.answer(self)?)
    }

    /// As [`Store::take_over`], without blocking a thread.
    ///
    /// # Errors
    ///
    /// As [`Store::take_over`].
    pub async fn take_over_async(&self, request: TakeOver) -> Result<TakenOver, Error> {
        let question = request.question();
        let receipt = self
            .fence_intents_async(&question, &request.fence())
            .await?;
        request.read(receipt, question.answer(self)?)
    }
}

impl TakeOver {
    fn fence(&self) -> (Guard, Authority) {
        (self.guard.clone(), self.authority.clone())
    }

    fn question(&self) -> Reconcile {
        Reconcile {
            domain: self.domain.clone(),
            intents: self.intents.clone(),
            fence: Some(self.fence()),
            destination: self.destination,
            caller: self.caller.clone(),
        }
    }

    fn read(
        &self,
        receipt: Receipt,
        (found, snapshot): (Vec<Found>, Snapshot),
    ) -> Result<TakenOver, Error> {
        let page = snapshot.scan_guard(&self.domain, &self.guard, None, self.limit)?;
        Ok(TakenOver {
            receipt,
            found,
            page,
            snapshot,
        })
    }
}
