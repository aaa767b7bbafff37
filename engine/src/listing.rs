//! Reading and listing what a domain holds beside its keys: intents and leases.

use std::sync::Arc;

use highwater_core::{
    DomainName, Guard, IntentId, IntentRecord, LeaseClock, LeaseRecord, Revision,
};

use crate::error::Error;
use crate::snapshot::{PAGE_BYTES_MAX, PAGE_ROWS_MAX, Snapshot};
use crate::weight;

/// A part of the listing of intents.
#[derive(Clone, Debug)]
pub struct IntentPage {
    /// The intents, ordered by id.
    pub intents: Vec<(IntentId, Arc<IntentRecord>)>,
    /// Whether there are more behind the last one.
    pub more: bool,
    /// The revision that the page shows.
    pub revision: Revision,
}

/// A part of the listing of leases.
#[derive(Clone, Debug)]
pub struct LeasePage {
    /// The guards with what is stored of their leases, ordered by name.
    pub leases: Vec<(Guard, Arc<LeaseRecord>)>,
    /// Whether there are more behind the last one.
    pub more: bool,
    /// The revision that the page shows.
    pub revision: Revision,
}

impl Snapshot {
    /// What is stored of an intent; `None` if this state knows none of that id.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::get`].
    pub fn intent(
        &self,
        domain: &DomainName,
        id: &IntentId,
    ) -> Result<Option<Arc<IntentRecord>>, Error> {
        let domain = self.domain(domain)?;
        self.read(|at| at.intent(domain.id, id))
    }

    /// The first intents behind one, or of all, up to `limit`, [`PAGE_ROWS_MAX`] and
    /// [`PAGE_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// As [`Snapshot::get`].
    pub fn intents(
        &self,
        domain: &DomainName,
        after: Option<&IntentId>,
        limit: usize,
    ) -> Result<IntentPage, Error> {
        let domain = self.domain(domain)?;
        self.read(|at| {
            let mut page = IntentPage {
                intents: Vec::new(),
                more: false,
                revision: Snapshot::revision(self),
            };
            let mut bytes = 0_usize;
            for row in at.intents_after(domain.id, after)? {
                let (id, record) = row?;
                if page.intents.len() >= limit.clamp(1, PAGE_ROWS_MAX) || bytes >= PAGE_BYTES_MAX {
                    page.more = true;
                    break;
                }
                bytes += weight::of_intent(&id, Some(&record));
                page.intents.push((id, record));
            }
            Ok(page)
        })
    }

    /// What is stored of a guard's leases; `None` if none was ever granted. Whether the current one
    /// is live is told by [`Snapshot::lease_clock`].
    ///
    /// # Errors
    ///
    /// As [`Snapshot::get`].
    pub fn lease(
        &self,
        domain: &DomainName,
        guard: &Guard,
    ) -> Result<Option<Arc<LeaseRecord>>, Error> {
        let domain = self.domain(domain)?;
        self.read(|at| at.lease(domain.id, guard))
    }

    /// The first guards with leases behind one, or of all, up to `limit` and [`PAGE_ROWS_MAX`].
    ///
    /// # Errors
    ///
    /// As [`Snapshot::get`].
    pub fn leases(
        &self,
        domain: &DomainName,
        after: Option<&Guard>,
        limit: usize,
    ) -> Result<LeasePage, Error> {
        let domain = self.domain(domain)?;
        self.read(|at| {
            let mut page = LeasePage {
                leases: Vec::new(),
                more: false,
                revision: Snapshot::revision(self),
            };
            for row in at.leases_after(domain.id, after)? {
                if page.leases.len() >= limit.clamp(1, PAGE_ROWS_MAX) {
                    page.more = true;
                    break;
                }
                page.leases.push(row?);
            }
            Ok(page)
        })
    }

    /// The lease clock as it shows now; nothing else says whether a lease is live.
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotExpired`].
    pub fn lease_clock(&self) -> Result<LeaseClock, Error> {
        self.running_clock()
    }
}
