//! The take-over: fence first, then read.

use highwater_core::{
    Authority, Commit, DomainName, ExpectedDestination, Guard, GuardedRead, Identity, Receipt,
};

use crate::error::Error;
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
    /// The first records under the guard, as they were under this fence.
    pub page: Page,
    /// The state that the page is from, for the pages after it.
    pub snapshot: Snapshot,
}

impl Store {
    /// Raises a guard's fence to an authority, then reads the guard's records: all that earlier
    /// holders wrote is in them, and nothing that they write can come after. Blocks the thread.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] if the authority isn't above the fence, also when another one was
    /// accepted between the fence and the read.
    pub fn take_over(&self, request: TakeOver) -> Result<TakenOver, Error> {
        let receipt = self.commit(request.commit())?;
        self.read_taken(&request, receipt)
    }

    /// As [`Store::take_over`], without blocking a thread.
    ///
    /// # Errors
    ///
    /// As [`Store::take_over`].
    pub async fn take_over_async(&self, request: TakeOver) -> Result<TakenOver, Error> {
        let receipt = self.commit_async(request.commit()).await?;
        self.read_taken(&request, receipt)
    }

    /// Reads under the fence, from a state that has it: only this holder can have changed anything
    /// since, or the read is refused.
    fn read_taken(&self, request: &TakeOver, receipt: Receipt) -> Result<TakenOver, Error> {
        let snapshot = self.snapshot()?;
        snapshot.admit(&GuardedRead {
            domain: request.domain.clone(),
            destination: request.destination,
            authority: request.authority.clone(),
            caller: request.caller.clone(),
            guards: vec![request.guard.clone()],
        })?;
        let page = snapshot.scan_guard(&request.domain, &request.guard, None, request.limit)?;
        Ok(TakenOver {
            receipt,
            page,
            snapshot,
        })
    }
}

impl TakeOver {
    fn commit(&self) -> Commit {
        let mut commit = Commit::new(self.domain.clone())
            .under(self.authority.clone())
            .advance(self.guard.clone());
        commit.destination = self.destination;
        commit.caller = self.caller.clone();
        commit
    }
}
