//! The domains of a store, all in memory: there are at most 1,024.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_core::{Domain, DomainId, DomainName, Revision};

/// Every domain, by name and by number. Replaced as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    by_name: BTreeMap<DomainName, Arc<Domain>>,
    by_id: BTreeMap<DomainId, Arc<Domain>>,
}

impl Domains {
    /// These domains and one more, or one in place of its earlier form.
    pub(crate) fn with(&self, domain: Arc<Domain>) -> Self {
        let mut next = self.clone();
        next.by_id.insert(domain.id, Arc::clone(&domain));
        next.by_name.insert(domain.name.clone(), domain);
        next
    }

    /// The domain of this name that existed at a revision.
    pub(crate) fn at(&self, name: &DomainName, revision: Revision) -> Option<&Arc<Domain>> {
        self.by_name
            .get(name)
            .filter(|domain| domain.created_at <= revision)
    }

    /// The domain of this number.
    pub(crate) fn by_id(&self, id: DomainId) -> Option<&Arc<Domain>> {
        self.by_id.get(&id)
    }

    /// Every domain that existed at a revision, by name.
    pub(crate) fn all_at(&self, revision: Revision) -> impl Iterator<Item = &Arc<Domain>> {
        self.by_name
            .values()
            .filter(move |domain| domain.created_at <= revision)
    }

    /// How many there are, which is also the highest number given.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.by_id.len()).unwrap_or(u32::MAX)
    }
}
