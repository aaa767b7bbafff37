//! The state as readers see it: the index of the last checkpoint and the layers over it.

use std::sync::Arc;

use highwater_core::{
    Domain, DomainId, Fence, Footprint, Guard, IntentId, IntentRecord, Key, KeyNeed, KeyRange,
    KeyRow, LeaseRecord, PrefixNeed, PrefixRow, Record, Revision, View,
};

use crate::digest::digest;
use crate::error::StorageError;
use crate::index::IndexSnapshot;
use crate::layer::Layer;
use crate::merge::{Merge, Source};

/// How many rows the conditions on prefixes of one commit may look at, all together: whoever judges
/// holds everybody up. Above that the store says that it remembers changes only since the last
/// checkpoint, or if even those are too many, since the last commit.
pub(crate) const PREFIX_ROWS_MAX: usize = 16_384;

/// One index and the layers over it, newest first. Replaced as a whole, never changed, except that
/// the writer folds into the first layer.
#[derive(Debug)]
pub(crate) struct Base {
    /// The layers, newest first; the first one takes new effects.
    pub(crate) layers: Vec<Arc<Layer>>,
    /// What is below them; `None` before the first checkpoint.
    pub(crate) index: Option<Arc<IndexSnapshot>>,
    /// The revision up to which the index goes.
    pub(crate) indexed: Revision,
    /// From where on every deletion is remembered.
    pub(crate) remembers_since: Revision,
}

impl Base {
    /// The state as of a revision, which must not be below [`Base::indexed`].
    pub(crate) const fn at(&self, revision: Revision) -> At<'_> {
        At {
            base: self,
            revision,
        }
    }
}

/// A base as of one revision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    base: &'a Base,
    revision: Revision,
}

impl<'a> At<'a> {
    /// What is stored under a key, and when it was deleted if a layer knows that.
    fn version(
        &self,
        domain: DomainId,
        key: &Key,
    ) -> Result<(Option<Arc<Record>>, Option<Revision>), StorageError> {
        let hit = self
            .base
            .layers
            .iter()
            .find_map(|layer| layer.record(domain, key, self.revision));
        if let Some(version) = hit {
            let deleted_at = version.record.is_none().then_some(version.revision);
            return Ok((version.record, deleted_at));
        }
        match &self.base.index {
            Some(index) => Ok((index.record(domain, key)?, None)),
            None => Ok((None, None)),
        }
    }

    /// What is stored under a key.
    pub(crate) fn record(
        &self,
        domain: DomainId,
        key: &Key,
    ) -> Result<Option<Arc<Record>>, StorageError> {
        self.version(domain, key).map(|(record, _)| record)
    }

    /// When a key that doesn't exist was deleted, as far as that is remembered.
    pub(crate) fn deleted_at(
        &self,
        domain: DomainId,
        key: &Key,
    ) -> Result<Option<Revision>, StorageError> {
        match (self.version(domain, key)?, &self.base.index) {
            ((Some(_), _), _) => Ok(None),
            ((None, Some(revision)), _) => Ok(Some(revision)),
            ((None, None), Some(index)) => index.deleted_at(domain, key),
            ((None, None), None) => Ok(None),
        }
    }

    /// The fence of a guard in the domain's current epoch.
    pub(crate) fn fence(
        &self,
        domain: &Domain,
        guard: &Guard,
    ) -> Result<Option<Fence>, StorageError> {
        let hit = self
            .base
            .layers
            .iter()
            .find_map(|layer| layer.fence(domain.id, guard, self.revision));
        let fence = match (hit, &self.base.index) {
            (Some(fence), _) => Some(fence),
            (None, Some(index)) => index.fence(domain.id, guard)?,
            (None, None) => None,
        };
        Ok(fence.filter(|fence| fence.term.epoch == domain.epochs.current().epoch))
    }

    /// The row of a key as a decision needs it.
    pub(crate) fn key_row(
        &self,
        domain: DomainId,
        need: &KeyNeed,
        record: Option<Arc<Record>>,
    ) -> Result<KeyRow, StorageError> {
        let digest = match &record {
            Some(record) if need.digest => Some(digest(&record.value)),
            _ => None,
        };
        let deleted_at = match &record {
            None if need.deletion => self.deleted_at(domain, &need.key)?,
            _ => None,
        };
        Ok(KeyRow {
            record,
            digest,
            deleted_at,
        })
    }

    /// The row of a prefix as a decision needs it. The layers know every change since the last
    /// checkpoint; older ones are looked up in the index. As many rows are looked at as are `left`,
    /// the newest first: where they don't suffice, the row says from where on it is the whole
    /// truth.
    pub(crate) fn prefix_row(
        &self,
        domain: DomainId,
        need: &PrefixNeed,
        left: &mut usize,
    ) -> Result<PrefixRow, StorageError> {
        let range = KeyRange::of_prefix(need.prefix.as_bytes());
        let mut row = PrefixRow {
            changed_at: None,
            remembers_since: self.base.remembers_since,
        };
        // A layer that ends before the revision asked about can't say that anything came after it.
        let later = |layer: &&Arc<Layer>| layer.last_revision() > Some(need.since);
        for layer in self.base.layers.iter().filter(later) {
            for (_, version) in layer.range(domain, &range, self.revision) {
                if *left == 0 {
                    // Nothing that wasn't looked at is later than what this layer ends with.
                    let end = layer.last_revision().unwrap_or(self.revision);
                    row.remembers_since = end.min(self.revision);
                    return Ok(row);
                }
                *left -= 1;
                row.changed_at = row.changed_at.max(Some(version.revision));
            }
        }
        let answered = need.since >= self.base.indexed || row.changed_at > Some(need.since);
        let Some(index) = self.base.index.as_ref().filter(|_| !answered) else {
            return Ok(row);
        };
        let Some(deletion) = index.last_deletion(domain, &range, left)? else {
            row.remembers_since = self.base.indexed;
            return Ok(row);
        };
        for record in index.range(domain, &range)? {
            if *left == 0 {
                row.remembers_since = self.base.indexed;
                return Ok(row);
            }
            *left -= 1;
            row.changed_at = row.changed_at.max(Some(record?.1.changed_at));
        }
        row.changed_at = row.changed_at.max(deletion);
        Ok(row)
    }

    /// Fetches every row of a footprint.
    pub(crate) fn fetch(
        &self,
        domain: &Domain,
        needs: &Footprint,
        view: &mut View,
    ) -> Result<(), StorageError> {
        for guard in &needs.guards {
            view.fences
                .push((guard.clone(), self.fence(domain, guard)?));
        }
        for need in &needs.keys {
            let record = self.record(domain.id, &need.key)?;
            view.keys
                .push((need.key.clone(), self.key_row(domain.id, need, record)?));
        }
        let mut left = PREFIX_ROWS_MAX;
        for need in &needs.prefixes {
            let row = self.prefix_row(domain.id, need, &mut left)?;
            view.prefixes.push((need.prefix.clone(), row));
        }
        for guard in &needs.leases {
            view.leases
                .push((guard.clone(), self.lease(domain.id, guard)?));
        }
        self.fetch_intents(domain.id, needs, view)
    }

    /// The records of a range in order, those of the layers before those of the index.
    pub(crate) fn scan(
        &self,
        domain: DomainId,
        range: &'a KeyRange,
    ) -> Result<Merge<'a, Key, Arc<Record>>, StorageError> {
        let mut sources: Vec<Source<'a, Key, Arc<Record>>> = Vec::new();
        for layer in &self.base.layers {
            let rows = layer.range(domain, range, self.revision);
            sources.push(Box::new(
                rows.map(|(key, version)| Ok((key, version.record))),
            ));
        }
        if let Some(index) = &self.base.index {
            let rows = index.range(domain, range)?;
            sources.push(Box::new(
                rows.map(|row| row.map(|(key, record)| (key, Some(record)))),
            ));
        }
        Ok(Merge::new(sources))
    }

    /// What is stored of an intent.
    pub(crate) fn intent(
        &self,
        domain: DomainId,
        id: &IntentId,
    ) -> Result<Option<Arc<IntentRecord>>, StorageError> {
        let hit = self
            .base
            .layers
            .iter()
            .find_map(|layer| layer.intent(domain, id, self.revision));
        match (hit, &self.base.index) {
            (Some(record), _) => Ok(Some(record)),
            (None, Some(index)) => index.intent(domain, id),
            (None, None) => Ok(None),
        }
    }

    /// What is stored of a guard's leases.
    pub(crate) fn lease(
        &self,
        domain: DomainId,
        guard: &Guard,
    ) -> Result<Option<Arc<LeaseRecord>>, StorageError> {
        let hit = self
            .base
            .layers
            .iter()
            .find_map(|layer| layer.lease(domain, guard, self.revision));
        match (hit, &self.base.index) {
            (Some(record), _) => Ok(Some(record)),
            (None, Some(index)) => index.lease(domain, guard),
            (None, None) => Ok(None),
        }
    }

    /// The guards with leases behind one, or all, in order.
    pub(crate) fn leases_after(
        &self,
        domain: DomainId,
        after: Option<&Guard>,
    ) -> Result<Merge<'a, Guard, Arc<LeaseRecord>>, StorageError> {
        let mut sources: Vec<Source<'a, Guard, Arc<LeaseRecord>>> = Vec::new();
        for layer in &self.base.layers {
            let rows = layer.leases_after(domain, after, self.revision);
            sources.push(Box::new(
                rows.map(|(guard, record)| Ok((guard, Some(record)))),
            ));
        }
        if let Some(index) = &self.base.index {
            let rows = index.leases_after(domain, after)?;
            sources.push(Box::new(
                rows.map(|row| row.map(|(guard, record)| (guard, Some(record)))),
            ));
        }
        Ok(Merge::new(sources))
    }

    /// The intents behind one, or all, in order.
    pub(crate) fn intents_after(
        &self,
        domain: DomainId,
        after: Option<&IntentId>,
    ) -> Result<Merge<'a, IntentId, Arc<IntentRecord>>, StorageError> {
        let mut sources: Vec<Source<'a, IntentId, Arc<IntentRecord>>> = Vec::new();
        for layer in &self.base.layers {
            let rows = layer.intents_after(domain, after, self.revision);
            sources.push(Box::new(rows.map(|(id, record)| Ok((id, Some(record))))));
        }
        if let Some(index) = &self.base.index {
            let rows = index.intents_after(domain, after)?;
            sources.push(Box::new(
                rows.map(|row| row.map(|(id, record)| (id, Some(record)))),
            ));
        }
        Ok(Merge::new(sources))
    }

    /// Fetches the intents that a decision looks at.
    pub(crate) fn fetch_intents(
        &self,
        domain: DomainId,
        needs: &Footprint,
        view: &mut View,
    ) -> Result<(), StorageError> {
        for id in &needs.intents {
            view.intents.push((id.clone(), self.intent(domain, id)?));
        }
        Ok(())
    }
}
