//! What went wrong with the index since it was opened, and the one way in which redb is called.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::StorageError;

/// What a watcher is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault<'a> {
    /// The file couldn't grow: redb will answer nothing any more until the index is opened anew.
    NoRoom,
    /// Writing, or also reading, is lost until the store is opened anew.
    Lost(&'a StorageError),
}

/// Called once for each kind of fault, from whatever thread finds it, before redb is told.
type Watcher = Box<dyn Fn(Fault<'_>) + Send + Sync>;

/// What went wrong with the index's file since it was opened.
///
/// redb isn't told of a failed write or sync: it would answer nothing any more after that, not even
/// what it had long made durable. From the first failure on nothing more reaches the file, which so
/// stays as a crash at that moment would have left it, and whoever asked for the change has to look
/// here before believing in it. Pages that a reader can still see are never overwritten, so reads
/// go on. They don't once a read failed or found damage: then nothing is answered any more.
#[derive(Default)]
pub(crate) struct Faults {
    unwritable: OnceLock<StorageError>,
    unreadable: OnceLock<StorageError>,
    panicked: AtomicBool,
    no_room: AtomicBool,
    watcher: OnceLock<Watcher>,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults")
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

impl Faults {
    /// Whether nothing more may reach the file.
    pub(crate) fn stopped(&self) -> bool {
        self.lost().is_some()
    }

    /// What was lost first: reading, or else writing.
    pub(crate) fn lost(&self) -> Option<&StorageError> {
        self.unreadable.get().or_else(|| self.unwritable.get())
    }

    /// A write or a sync failed. What is on disk is then unknown, and what reads back from memory
    /// proves nothing. That there was no space to grow isn't such a failure: nothing had been
    /// written by then, and redb is told.
    pub(crate) fn lose_writes(&self, error: StorageError) {
        self.keep(&self.unwritable, error);
    }

    /// A read failed, or what was read can't be true.
    pub(crate) fn lose(&self, error: StorageError) {
        self.keep(&self.unreadable, error);
    }

    fn keep(&self, place: &OnceLock<StorageError>, error: StorageError) {
        if place.set(error.clone()).is_ok()
            && let Some(watcher) = self.watcher.get()
        {
            watcher(Fault::Lost(&error));
        }
    }

    /// Calls `watcher` for what is lost from now on, and for what already was.
    pub(crate) fn watch(&self, watcher: Watcher) {
        if self.watcher.set(watcher).is_ok()
            && let (Some(lost), Some(watcher)) = (self.lost(), self.watcher.get())
        {
            watcher(Fault::Lost(lost));
        }
    }

    /// Whether the index is in use: there may be readers of it.
    pub(crate) fn is_watched(&self) -> bool {
        self.watcher.get().is_some()
    }

    /// Notes that the file couldn't grow for want of space.
    pub(crate) fn note_no_room(&self) {
        if !self.no_room.swap(true, Ordering::SeqCst)
            && let Some(watcher) = self.watcher.get()
        {
            watcher(Fault::NoRoom);
        }
    }

    /// Whether the file couldn't grow for want of space, and nothing worse happened.
    pub(crate) fn only_lacks_room(&self) -> bool {
        self.no_room.load(Ordering::SeqCst) && !self.stopped()
    }

    /// Whether redb panicked: what it holds may not even be dropped.
    pub(crate) fn panicked(&self) -> bool {
        self.panicked.load(Ordering::SeqCst)
    }
}

/// Why a call of redb has no result.
#[derive(Debug)]
pub(crate) enum Failed {
    /// redb says so.
    Redb(redb::Error),
    /// It was a row, or something else that was found without redb.
    Found(StorageError),
}

impl From<StorageError> for Failed {
    fn from(error: StorageError) -> Self {
        Self::Found(error)
    }
}

macro_rules! failed_from {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for Failed {
            fn from(error: redb::$error) -> Self {
                Self::Redb(error.into())
            }
        })*
    };
}

failed_from!(
    CommitError,
    DatabaseError,
    StorageError,
    TableError,
    TransactionError
);

impl Failed {
    /// As the caller is told, who tried this.
    fn told(self, what: &'static str) -> StorageError {
        match self {
            Self::Found(error) => error,
            Self::Redb(redb::Error::Corrupted(detail)) => StorageError::Damaged {
                offset: None,
                detail,
            },
            Self::Redb(error) => StorageError::Index {
                what,
                detail: error.to_string(),
            },
        }
    }
}

/// Calls redb, at the only place where that is done. It trusts the pages that it reads, and panics
/// on one that makes no sense. The pages are compared before it sees them, so no damage should get
/// that far; if something does, a reader must get an error for it and the store must stop writing,
/// but the process with all its other work must not end. What redb holds is in no known state after
/// a panic, so it isn't called again. (A program that is built to abort on panics aborts.)
///
/// # Errors
///
/// What `call` says; what was lost, if reading is lost by then; [`StorageError::Index`] with the
/// message of a panic.
pub(crate) fn guarded<T>(
    faults: &Faults,
    what: &'static str,
    call: impl FnOnce() -> Result<T, Failed>,
) -> Result<T, StorageError> {
    if let Some(lost) = faults.unreadable.get() {
        return Err(lost.clone());
    }
    let result = caught(what, call).unwrap_or_else(|panic| {
        faults.panicked.store(true, Ordering::SeqCst);
        Err(Failed::Found(panic))
    });
    match result.map_err(|failed| failed.told(what)) {
        Err(error @ (StorageError::Damaged { .. } | StorageError::Row { .. })) => {
            faults.lose(error.clone());
            Err(error)
        }
        // redb says only that the file failed; what it was is known here.
        Err(error) => Err(faults.unreadable.get().cloned().unwrap_or(error)),
        // What was found out while this call went on may have been a part of its answer.
        Ok(value) => match faults.unreadable.get() {
            Some(lost) => Err(lost.clone()),
            None => Ok(value),
        },
    }
}

/// Drops what redb has made; a panic at that is lost reading, like every other.
pub(crate) fn guarded_drop<T>(faults: &Faults, held: T) {
    if let Err(panic) = caught("close", || drop(held)) {
        faults.panicked.store(true, Ordering::SeqCst);
        faults.lose(panic);
    }
}

/// Runs something that may panic.
fn caught<T>(what: &'static str, call: impl FnOnce() -> T) -> Result<T, StorageError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let message = payload.downcast_ref::<&str>().map(ToString::to_string);
        let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
        let message = message.unwrap_or_default();
        StorageError::Damaged {
            offset: None,
            detail: format!("it made the index panic ({what}): {message}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn watched() -> (Faults, Arc<AtomicUsize>) {
        let (faults, calls) = (Faults::default(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&calls);
        faults.watch(Box::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        (faults, calls)
    }

    fn failed() -> StorageError {
        let (what, detail) = ("write", "it failed".into());
        StorageError::Index { what, detail }
    }

    #[test]
    fn after_a_panic_nothing_is_called_any_more() {
        let (faults, calls) = watched();
        assert_eq!(guarded(&faults, "read", || Ok(1)).unwrap(), 1);
        assert!(!faults.stopped() && !faults.panicked());
        let error = guarded(&faults, "read", || -> Result<(), Failed> {
            panic!("bad page")
        });
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("bad page") && error.contains("index.redb"),
            "{error}"
        );
        assert!(faults.stopped() && faults.panicked());
        let again = guarded(&faults, "read", || -> Result<(), Failed> {
            unreachable!("called again")
        });
        assert_eq!(again.unwrap_err().to_string(), error);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn reads_go_on_after_a_failed_write_and_end_with_a_damaged_row() {
        let (faults, calls) = watched();
        faults.lose_writes(failed());
        assert!(faults.stopped());
        assert_eq!(guarded(&faults, "read", || Ok(1)).unwrap(), 1);
        let index = guarded(&faults, "read", || Err::<(), Failed>(failed().into()));
        assert!(matches!(index, Err(StorageError::Index { .. })));
        assert_eq!(guarded(&faults, "read", || Ok(1)).unwrap(), 1);
        let row = StorageError::Row {
            table: "records",
            row: "1/k".into(),
            detail: "it ends early".into(),
        };
        assert!(guarded(&faults, "read", || Err::<(), Failed>(row.into())).is_err());
        let after = guarded(&faults, "read", || Ok(1)).unwrap_err();
        assert!(matches!(after, StorageError::Row { .. }), "{after}");
        assert_eq!(calls.load(Ordering::SeqCst), 2, "one for each kind");
    }

    #[test]
    fn an_answer_that_damage_was_found_behind_is_no_answer() {
        let (faults, _) = watched();
        let got = guarded(&faults, "read", || {
            faults.lose(failed());
            Ok(1)
        });
        assert!(got.is_err());
    }

    #[test]
    fn a_lack_of_room_is_only_that_while_nothing_worse_happened() {
        let (faults, calls) = watched();
        assert!(!faults.only_lacks_room());
        faults.note_no_room();
        assert!(faults.only_lacks_room() && !faults.stopped());
        faults.lose_writes(failed());
        assert!(!faults.only_lacks_room());
        assert_eq!(calls.load(Ordering::SeqCst), 2, "one for each");
    }
}
