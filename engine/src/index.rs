//! The checkpointed index: the state up to one revision, in redb. It is derived from the log.

use std::sync::Arc;

use highwater_core::codec::{decode_domain, decode_fence, decode_record};
use highwater_core::limits::DOMAINS_MAX;
use highwater_core::{
    Domain, DomainId, Fence, Guard, Key, KeyRange, Record, Revision, check_domain,
};
use highwater_wal::Disk;
use redb::{Database, ReadOnlyTable, ReadableDatabase};

use crate::backend::{Faults, IndexFile};
use crate::error::StorageError;
use crate::tables::{
    Applied, DELETIONS, DOMAINS, FENCES, RECORDS, STATE, STATE_ROW, domain_end, index_error,
    name_in, row_error, row_key,
};

/// The name of the index's file.
pub(crate) const INDEX_FILE: &str = "index.redb";

/// The index as it was when a checkpoint was finished. Readers share it; it never changes.
pub(crate) struct IndexSnapshot {
    records: ReadOnlyTable<&'static [u8], &'static [u8]>,
    fences: ReadOnlyTable<&'static [u8], &'static [u8]>,
    deletions: ReadOnlyTable<&'static [u8], u64>,
    /// How far it has come.
    pub(crate) applied: Applied,
}

impl std::fmt::Debug for IndexSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexSnapshot")
            .field("applied", &self.applied)
            .finish_non_exhaustive()
    }
}

/// Opens the index's file, making it if there is none.
///
/// # Errors
///
/// [`StorageError::Index`] with what redb says.
pub(crate) fn open(
    disk: &Arc<dyn Disk>,
    cache_bytes: usize,
) -> Result<(Database, Arc<Faults>), StorageError> {
    let io = |what: &'static str| {
        move |error: std::io::Error| StorageError::Index {
            what,
            detail: error.to_string(),
        }
    };
    let names = disk.list().map_err(io("list"))?;
    let file = if names.iter().any(|name| name == INDEX_FILE) {
        disk.open(INDEX_FILE).map_err(io("open"))?
    } else {
        let file = disk.create(INDEX_FILE).map_err(io("create"))?;
        disk.sync_dir().map_err(io("create"))?;
        file
    };
    let faults = Arc::new(Faults::default());
    let database = Database::builder()
        .set_cache_size(cache_bytes)
        .create_with_backend(IndexFile {
            file,
            faults: Arc::clone(&faults),
        })
        .map_err(|error| index_error("open")(error.into()))?;
    believed(&faults, "open")?;
    Ok((database, faults))
}

/// Whether what redb says it has written can be believed.
///
/// # Errors
///
/// [`StorageError::Index`] if a write or a sync has failed.
pub(crate) fn believed(faults: &Faults, what: &'static str) -> Result<(), StorageError> {
    if faults.write_failed() {
        let detail = "a write or a sync failed".into();
        return Err(StorageError::Index { what, detail });
    }
    Ok(())
}

/// Reads every page of the index and compares it with its checksum. What a lookup would take from a
/// page that changed behind our back can't be told from the truth: a fence that is missing would
/// let an old holder write. It costs one pass over the file, so it is done once, at opening.
///
/// # Errors
///
/// [`StorageError::Index`] if a page isn't what was written.
pub(crate) fn verify(database: &mut Database) -> Result<(), StorageError> {
    match database.check_integrity() {
        Ok(true) => Ok(()),
        Ok(false) => Err(StorageError::Index {
            what: "verify",
            detail: "a page doesn't have its checksum".into(),
        }),
        Err(error) => Err(index_error("verify")(error.into())),
    }
}

/// The index as it is now; `None` if no checkpoint has ever been finished.
///
/// # Errors
///
/// [`StorageError`] if a table can't be read.
pub(crate) fn snapshot(database: &Database) -> Result<Option<IndexSnapshot>, StorageError> {
    let wrong = index_error("snapshot");
    let read = database.begin_read().map_err(|error| wrong(error.into()))?;
    let state = match read.open_table(STATE) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(wrong(error.into())),
    };
    let row = state.get(STATE_ROW).map_err(|error| wrong(error.into()))?;
    let Some(row) = row else { return Ok(None) };
    let applied = Applied::decode(row.value())?;
    Ok(Some(IndexSnapshot {
        records: read
            .open_table(RECORDS)
            .map_err(|error| wrong(error.into()))?,
        fences: read
            .open_table(FENCES)
            .map_err(|error| wrong(error.into()))?,
        deletions: read
            .open_table(DELETIONS)
            .map_err(|error| wrong(error.into()))?,
        applied,
    }))
}

/// Every domain in the index, in the order of their numbers.
///
/// # Errors
///
/// [`StorageError`] if the table can't be read or a row is damaged.
pub(crate) fn domains(database: &Database) -> Result<Vec<Arc<Domain>>, StorageError> {
    let wrong = index_error("read domains");
    let read = database.begin_read().map_err(|error| wrong(error.into()))?;
    let table = match read.open_table(DOMAINS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(wrong(error.into())),
    };
    let mut domains = Vec::new();
    for row in table
        .range(0..=DOMAINS_MAX)
        .map_err(|error| wrong(error.into()))?
    {
        let (id, bytes) = row.map_err(|error| wrong(error.into()))?;
        let domain = decode_domain(bytes.value()).map_err(row_error("domains"))?;
        let whole = domain.id.get() == id.value() && check_domain(&domain).is_ok();
        if !whole {
            let detail = format!("domain {} breaks an invariant", id.value());
            return Err(StorageError::Row {
                table: "domains",
                detail,
            });
        }
        domains.push(Arc::new(domain));
    }
    Ok(domains)
}

impl IndexSnapshot {
    /// What is stored under a key.
    pub(crate) fn record(
        &self,
        domain: DomainId,
        key: &Key,
    ) -> Result<Option<Arc<Record>>, StorageError> {
        let wrong = index_error("read a record");
        let row = row_key(domain, key.as_bytes());
        let found = self
            .records
            .get(row.as_slice())
            .map_err(|error| wrong(error.into()))?;
        found.map(|bytes| self.decoded(bytes.value())).transpose()
    }

    /// A record, decoded and checked.
    fn decoded(&self, bytes: &[u8]) -> Result<Arc<Record>, StorageError> {
        let record = decode_record(bytes).map_err(row_error("records"))?;
        if record.changed_at > self.applied.revision
            || record.generation.revision() > record.changed_at
        {
            let detail = "a record is newer than the index".into();
            return Err(StorageError::Row {
                table: "records",
                detail,
            });
        }
        Ok(Arc::new(record))
    }

    /// The fence of a guard, of whatever epoch.
    pub(crate) fn fence(
        &self,
        domain: DomainId,
        guard: &Guard,
    ) -> Result<Option<Fence>, StorageError> {
        let wrong = index_error("read a fence");
        let row = row_key(domain, guard.as_bytes());
        let found = self
            .fences
            .get(row.as_slice())
            .map_err(|error| wrong(error.into()))?;
        found
            .map(|bytes| decode_fence(bytes.value()).map_err(row_error("fences")))
            .transpose()
    }

    /// When a key was deleted, as far as that is remembered.
    pub(crate) fn deleted_at(
        &self,
        domain: DomainId,
        key: &Key,
    ) -> Result<Option<Revision>, StorageError> {
        let wrong = index_error("read a deletion");
        let row = row_key(domain, key.as_bytes());
        let found = self
            .deletions
            .get(row.as_slice())
            .map_err(|error| wrong(error.into()))?;
        Ok(found.and_then(|revision| Revision::new(revision.value())))
    }

    /// The records of a range, in order.
    pub(crate) fn range(
        &self,
        domain: DomainId,
        range: &KeyRange,
    ) -> Result<impl Iterator<Item = Result<(Key, Arc<Record>), StorageError>> + '_, StorageError>
    {
        let wrong = index_error("read a range");
        let start = row_key(domain, &range.start);
        let end = range
            .end
            .as_ref()
            .map_or_else(|| domain_end(domain), |end| row_key(domain, end));
        // An empty or inverted range would be a mistake to the index.
        let end = end.max(start.clone());
        let rows = self.records.range(start.as_slice()..end.as_slice());
        let rows = rows.map_err(|error| wrong(error.into()))?;
        Ok(rows.map(move |row| {
            let (key, bytes) = row.map_err(|error| wrong(error.into()))?;
            let key = Key::new(name_in(key.value())).map_err(|error| StorageError::Row {
                table: "records",
                detail: error.to_string(),
            })?;
            Ok((key, self.decoded(bytes.value())?))
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
        let wrong = index_error("read deletions");
        let start = row_key(domain, &range.start);
        let end = range
            .end
            .as_ref()
            .map_or_else(|| domain_end(domain), |end| row_key(domain, end));
        let end = end.max(start.clone());
        let rows = self.deletions.range(start.as_slice()..end.as_slice());
        let mut last = None;
        for row in rows.map_err(|error| wrong(error.into()))? {
            if *left == 0 {
                return Ok(None);
            }
            *left -= 1;
            let (_, revision) = row.map_err(|error| wrong(error.into()))?;
            last = last.max(Revision::new(revision.value()));
        }
        Ok(Some(last))
    }
}
