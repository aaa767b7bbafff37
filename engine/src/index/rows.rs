//! Reading rows of the index: decoded, checked, and never taken on trust.

use std::sync::Arc;

use highwater_core::codec::{decode_fence, decode_intent, decode_lease, decode_record};
use highwater_core::{
    DomainId, Fence, Guard, IntentId, IntentRecord, Key, KeyRange, LeaseRecord, Record, Revision,
    check_intent,
};
use redb::ReadOnlyTable;

use super::{IndexSnapshot, Tables, not_open};
use crate::error::StorageError;
use crate::faults::{Failed, guarded};
use crate::tables::{name_in, row_error, row_key, row_range};

impl IndexSnapshot {
    /// Reads from a table, see [`guarded`].
    fn read<T>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Tables) -> Result<T, Failed>,
    ) -> Result<T, StorageError> {
        let tables = self.tables.as_ref().ok_or_else(not_open)?;
        guarded(&self.faults, what, || read(tables))
    }

    /// What is stored under a key.
    pub(crate) fn record(
        &self,
        domain: DomainId,
        key: &Key,
    ) -> Result<Option<Arc<Record>>, StorageError> {
        let row = row_key(domain, key.as_bytes());
        self.read("read a record", |tables| {
            let Some(bytes) = tables.records.get(row.as_slice())? else {
                return Ok(None);
            };
            Ok(Some(self.decoded(&row, bytes.value())?))
        })
    }

    /// A record, decoded and checked.
    fn decoded(&self, row: &[u8], bytes: &[u8]) -> Result<Arc<Record>, StorageError> {
        let record = decode_record(bytes).map_err(|error| row_error("records", row, error))?;
        if record.changed_at > self.applied.revision
            || record.generation.revision() > record.changed_at
        {
            return Err(row_error("records", row, "it is newer than the index"));
        }
        Ok(Arc::new(record))
    }

    /// The fence of a guard, of whatever epoch.
    pub(crate) fn fence(
        &self,
        domain: DomainId,
        guard: &Guard,
    ) -> Result<Option<Fence>, StorageError> {
        let row = row_key(domain, guard.as_bytes());
        self.read("read a fence", |tables| {
            let Some(bytes) = tables.fences.get(row.as_slice())? else {
                return Ok(None);
            };
            let fence = decode_fence(bytes.value());
            Ok(Some(
                fence.map_err(|error| row_error("fences", &row, error))?,
            ))
        })
    }

    /// What is stored of an intent.
    pub(crate) fn intent(
        &self,
        domain: DomainId,
        id: &IntentId,
    ) -> Result<Option<Arc<IntentRecord>>, StorageError> {
        let row = row_key(domain, id.as_bytes());
        self.read("read an intent", |tables| {
            let Some(table) = &tables.intents else {
                return Ok(None);
            };
            let Some(bytes) = table.get(row.as_slice())? else {
                return Ok(None);
            };
            Ok(Some(self.decoded_intent(&row, id, bytes.value())?))
        })
    }

    /// An intent, decoded and checked.
    fn decoded_intent(
        &self,
        row: &[u8],
        id: &IntentId,
        bytes: &[u8],
    ) -> Result<Arc<IntentRecord>, StorageError> {
        let record = decode_intent(id, bytes).map_err(|error| row_error("intents", row, error))?;
        check_intent(&record, self.applied.revision)
            .map_err(|violation| row_error("intents", row, violation))?;
        Ok(Arc::new(record))
    }

    /// The intents behind one, or all, in order. It ends at the first error.
    pub(crate) fn intents_after(
        &self,
        domain: DomainId,
        after: Option<&IntentId>,
    ) -> Result<
        impl Iterator<Item = Result<(IntentId, Arc<IntentRecord>), StorageError>> + use<'_>,
        StorageError,
    > {
        self.walk(
            "intents",
            row_range(domain, &behind(after.map(IntentId::as_bytes))),
            |tables| tables.intents.as_ref(),
            |row, bytes| {
                let id = IntentId::new(name_in(row));
                let id = id.map_err(|error| row_error("intents", row, error))?;
                let record = self.decoded_intent(row, &id, bytes)?;
                Ok((id, record))
            },
        )
    }

    /// What is stored of a guard's leases.
    pub(crate) fn lease(
        &self,
        domain: DomainId,
        guard: &Guard,
    ) -> Result<Option<Arc<LeaseRecord>>, StorageError> {
        let row = row_key(domain, guard.as_bytes());
        self.read("read a lease", |tables| {
            let Some(table) = &tables.leases else {
                return Ok(None);
            };
            let Some(bytes) = table.get(row.as_slice())? else {
                return Ok(None);
            };
            Ok(Some(self.decoded_lease(&row, bytes.value())?))
        })
    }

    /// A guard's leases, decoded and checked.
    fn decoded_lease(&self, row: &[u8], bytes: &[u8]) -> Result<Arc<LeaseRecord>, StorageError> {
        let record = decode_lease(bytes).map_err(|error| row_error("leases", row, error))?;
        let known = record.changed_at <= self.applied.revision;
        if !known || record.clock_ms() > self.clock.now_ms {
            return Err(row_error("leases", row, "it is newer than the index"));
        }
        Ok(Arc::new(record))
    }

    /// The guards with leases behind one, or all, in order. It ends at the first error.
    pub(crate) fn leases_after(
        &self,
        domain: DomainId,
        after: Option<&Guard>,
    ) -> Result<
        impl Iterator<Item = Result<(Guard, Arc<LeaseRecord>), StorageError>> + use<'_>,
        StorageError,
    > {
        self.walk(
            "leases",
            row_range(domain, &behind(after.map(Guard::as_bytes))),
            |tables| tables.leases.as_ref(),
            |row, bytes| {
                let guard = Guard::new(name_in(row));
                let guard = guard.map_err(|error| row_error("leases", row, error))?;
                Ok((guard, self.decoded_lease(row, bytes)?))
            },
        )
    }

    /// When a key was deleted, as far as that is remembered.
    pub(crate) fn deleted_at(
        &self,
        domain: DomainId,
        key: &Key,
    ) -> Result<Option<Revision>, StorageError> {
        let row = row_key(domain, key.as_bytes());
        self.read("read a deletion", |tables| {
            let Some(revision) = tables.deletions.get(row.as_slice())? else {
                return Ok(None);
            };
            Ok(Some(self.deletion(&row, revision.value())?))
        })
    }

    /// The revision of a deletion, checked.
    fn deletion(&self, row: &[u8], revision: u64) -> Result<Revision, StorageError> {
        Revision::new(revision)
            .filter(|revision| *revision <= self.applied.revision)
            .ok_or_else(|| row_error("deletions", row, "its revision was never reached"))
    }

    /// The records of a range, in order. It ends at the first error.
    pub(crate) fn range(
        &self,
        domain: DomainId,
        range: &KeyRange,
    ) -> Result<
        impl Iterator<Item = Result<(Key, Arc<Record>), StorageError>> + use<'_>,
        StorageError,
    > {
        self.walk(
            "records",
            row_range(domain, range),
            |tables| Some(&tables.records),
            |row, bytes| {
                let key = Key::new(name_in(row));
                let key = key.map_err(|error| row_error("records", row, error))?;
                Ok((key, self.decoded(row, bytes)?))
            },
        )
    }

    /// The rows of a table between two row keys, in order, each read by `read` from its row key and
    /// its bytes; none where there is no such table. It ends at the first error.
    fn walk<T>(
        &self,
        name: &'static str,
        (start, end): (Vec<u8>, Vec<u8>),
        table: impl FnOnce(&Tables) -> Option<&ReadOnlyTable<&'static [u8], &'static [u8]>>,
        read: impl Fn(&[u8], &[u8]) -> Result<T, StorageError>,
    ) -> Result<impl Iterator<Item = Result<T, StorageError>>, StorageError> {
        const WHAT: &str = "read a range";
        let mut rows = self.read(WHAT, |tables| match table(tables) {
            Some(table) => Ok(Some(table.range(start.as_slice()..end.as_slice())?)),
            None => Ok(None),
        })?;
        Ok(std::iter::from_fn(move || {
            let walked = rows.as_mut()?;
            let next = guarded(&self.faults, WHAT, || {
                let Some(row) = walked.next() else {
                    return Ok(None);
                };
                let (row, bytes) = row?;
                let row = row.value();
                if row < start.as_slice() || row >= end.as_slice() {
                    return Err(row_error(name, row, "it is out of order").into());
                }
                Ok(Some(read(row, bytes.value())?))
            });
            if !matches!(next, Ok(Some(_))) {
                rows = None;
            }
            next.transpose()
        }))
    }

    /// The deletions of a range: the latest of them, if no more rows than are `left` have to be
    /// looked at; those that were are taken off.
    pub(crate) fn last_deletion(
        &self,
        domain: DomainId,
        range: &KeyRange,
        left: &mut usize,
    ) -> Result<Option<Option<Revision>>, StorageError> {
        let (start, end) = row_range(domain, range);
        self.read("read deletions", |tables| {
            let mut last = None;
            for row in tables.deletions.range(start.as_slice()..end.as_slice())? {
                if *left == 0 {
                    return Ok(None);
                }
                *left -= 1;
                let (row, revision) = row?;
                last = last.max(Some(self.deletion(row.value(), revision.value())?));
            }
            Ok(Some(last))
        })
    }
}

/// Every name behind one, or all: the next name is the same with a zero behind it.
fn behind(after: Option<&[u8]>) -> KeyRange {
    let next = after.map_or_else(Vec::new, |name| [name, &[0]].concat());
    KeyRange::between(next, None)
}
