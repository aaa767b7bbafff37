//! The checkpointed index: the state up to one revision, in redb. It is derived from the log.

use std::fmt::Display;
use std::sync::Arc;

use highwater_core::codec::decode_domain;
use highwater_core::limits::DOMAINS_MAX;
use highwater_core::{Domain, LeaseClock, check_domain};
use highwater_wal::Disk;
use redb::{Database, ReadOnlyTable, ReadableDatabase};

use crate::backend::IndexFile;
use crate::error::StorageError;
use crate::faults::{Failed, Faults, guarded, guarded_drop};
use crate::tables::{
    Applied, CLOCK_ROW, DELETIONS, DOMAINS, FENCES, INTENTS, LEASES, RECORDS, STATE, STATE_ROW,
    decode_clock, row_error,
};

mod rows;

/// The name of the index's file.
pub(crate) const INDEX_FILE: &str = "index.redb";

/// The open index. It must not be let go of otherwise than by dropping this.
#[derive(Debug)]
pub(crate) struct Index {
    /// Taken only when this is dropped.
    database: Option<Database>,
    file: IndexFile,
    cache_bytes: usize,
}

/// The index as it was when a checkpoint was finished. Readers share it; it never changes.
pub(crate) struct IndexSnapshot {
    /// Taken only when this is dropped.
    tables: Option<Tables>,
    faults: Arc<Faults>,
    /// How far it has come.
    pub(crate) applied: Applied,
    /// The lease clock as it was noted last.
    pub(crate) clock: LeaseClock,
}

/// The tables of a finished checkpoint.
struct Tables {
    records: ReadOnlyTable<&'static [u8], &'static [u8]>,
    fences: ReadOnlyTable<&'static [u8], &'static [u8]>,
    deletions: ReadOnlyTable<&'static [u8], u64>,
    /// `None` in a file that was written before there were intents.
    intents: Option<ReadOnlyTable<&'static [u8], &'static [u8]>>,
    /// `None` in a file that was written before there were leases.
    leases: Option<ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

impl std::fmt::Debug for IndexSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexSnapshot")
            .field("applied", &self.applied)
            .finish_non_exhaustive()
    }
}

/// Drops what redb has made. What it left behind at a panic stays where it is, for the rest of the
/// process: nothing is known of it.
#[expect(
    clippy::disallowed_methods,
    reason = "a drop that panics while another one unwinds would end the process"
)]
fn let_go<T>(faults: &Faults, held: Option<T>) {
    if faults.panicked() {
        std::mem::forget(held);
    } else {
        guarded_drop(faults, held);
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let_go(&self.file.faults(), self.database.take());
    }
}

impl Drop for IndexSnapshot {
    fn drop(&mut self) {
        let_go(&self.faults, self.tables.take());
    }
}

/// The error of a call on what was let go of already.
pub(crate) fn not_open() -> StorageError {
    StorageError::Index {
        what: "use",
        detail: "it isn't open".into(),
    }
}

impl Index {
    /// Opens the index's file, making it if there is none.
    ///
    /// # Errors
    ///
    /// [`StorageError`] with what redb says.
    pub(crate) fn open(disk: &Arc<dyn Disk>, cache_bytes: usize) -> Result<Self, StorageError> {
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
        Self::over(IndexFile::new(file), cache_bytes)
    }

    fn over(file: IndexFile, cache_bytes: usize) -> Result<Self, StorageError> {
        let faults = file.faults();
        let database = guarded(&faults, "open", || {
            let mut builder = Database::builder();
            builder.set_cache_size(cache_bytes);
            Ok(builder.create_with_backend(file.clone())?)
        })?;
        let index = Self {
            database: Some(database),
            file,
            cache_bytes,
        };
        index.believed()?;
        Ok(index)
    }

    /// Opens the same file anew: redb answers nothing any more once the file couldn't grow. It
    /// needs no file descriptor, and what was known of the pages stays known.
    ///
    /// # Errors
    ///
    /// As [`Index::open`].
    pub(crate) fn reopen(self) -> Result<Self, StorageError> {
        let (file, cache_bytes) = (self.file.afresh(), self.cache_bytes);
        // The old one must be gone before.
        drop(self);
        Self::over(file, cache_bytes)
    }

    /// Whether there is the space that its file couldn't have before.
    ///
    /// # Errors
    ///
    /// [`StorageError::Index`] with what the disk says.
    pub(crate) fn finds_room(&self) -> Result<bool, StorageError> {
        self.file.finds_room().map_err(|error| StorageError::Index {
            what: "reserve space",
            detail: error.to_string(),
        })
    }

    /// How many more bytes its file needs, once it couldn't grow.
    pub(crate) fn lacks(&self) -> u64 {
        self.file.lacks()
    }

    /// What went wrong with it.
    pub(crate) fn faults(&self) -> Arc<Faults> {
        self.file.faults()
    }

    /// Whether what redb says it has written can be believed.
    ///
    /// # Errors
    ///
    /// What was lost.
    pub(crate) fn believed(&self) -> Result<(), StorageError> {
        self.faults()
            .lost()
            .map_or(Ok(()), |lost| Err(lost.clone()))
    }

    /// Calls redb, see [`guarded`].
    pub(crate) fn call<T>(
        &self,
        what: &'static str,
        call: impl FnOnce(&Database) -> Result<T, Failed>,
    ) -> Result<T, StorageError> {
        let database = self.database.as_ref().ok_or_else(not_open)?;
        guarded(&self.faults(), what, || call(database))
    }

    /// Reads every page of the index and compares it with its checksum, which stands in another
    /// page: so a page that is old is found as well as one that is wrong. What a lookup would take
    /// from it can't be told from the truth. It costs one pass over the file, so it is done once,
    /// at opening; a change after that shows when the page is read, see [`crate::sums`].
    ///
    /// # Errors
    ///
    /// [`StorageError`] if a page isn't what was written.
    pub(crate) fn verify(&mut self) -> Result<(), StorageError> {
        let faults = self.faults();
        let database = self.database.as_mut().ok_or_else(not_open)?;
        guarded(&faults, "verify", || {
            if database.check_integrity()? {
                return Ok(());
            }
            Err(Failed::Found(StorageError::Damaged {
                offset: None,
                detail: "a page doesn't have its checksum".into(),
            }))
        })
    }

    /// The index as it is now; `None` if no checkpoint has ever been finished.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if a table can't be read.
    pub(crate) fn snapshot(&self) -> Result<Option<IndexSnapshot>, StorageError> {
        let faults = self.faults();
        self.call("snapshot", |database| {
            let read = database.begin_read()?;
            let state = match read.open_table(STATE) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let Some(row) = state.get(STATE_ROW)? else {
                return Ok(None);
            };
            let applied = Applied::decode(row.value())?;
            let intents = match read.open_table(INTENTS) {
                Ok(table) => Some(table),
                Err(redb::TableError::TableDoesNotExist(_)) => None,
                Err(error) => return Err(error.into()),
            };
            let leases = match read.open_table(LEASES) {
                Ok(table) => Some(table),
                Err(redb::TableError::TableDoesNotExist(_)) => None,
                Err(error) => return Err(error.into()),
            };
            let clock = state.get(CLOCK_ROW)?;
            let clock = clock.map(|row| decode_clock(row.value())).transpose()?;
            let tables = Tables {
                intents,
                leases,
                records: read.open_table(RECORDS)?,
                fences: read.open_table(FENCES)?,
                deletions: read.open_table(DELETIONS)?,
            };
            Ok(Some(IndexSnapshot {
                tables: Some(tables),
                faults,
                applied,
                clock: clock.unwrap_or_default(),
            }))
        })
    }

    /// Every domain in the index, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if the table can't be read or a row is damaged.
    pub(crate) fn domains(&self) -> Result<Vec<Arc<Domain>>, StorageError> {
        self.call("read domains", |database| {
            let table = match database.begin_read()?.open_table(DOMAINS) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                Err(error) => return Err(error.into()),
            };
            let mut domains = Vec::new();
            for row in table.range(0..=DOMAINS_MAX)? {
                let (id, bytes) = row?;
                let wrong =
                    |detail: &dyn Display| row_error("domains", &id.value().to_be_bytes(), detail);
                let domain = decode_domain(bytes.value()).map_err(|error| wrong(&error))?;
                if domain.id.get() != id.value() {
                    return Err(wrong(&"it has another number").into());
                }
                check_domain(&domain).map_err(|violation| wrong(&violation))?;
                domains.push(Arc::new(domain));
            }
            Ok(domains)
        })
    }
}

#[cfg(test)]
mod tests;
