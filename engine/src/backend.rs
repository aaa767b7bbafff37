//! Lets the index live on the same disk seam as the log, so that one simulated disk carries both.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use highwater_wal::{DiskFile, lacks_space};

use crate::error::StorageError;
use crate::faults::Faults;
use crate::sums::Sums;

/// A file of a [`highwater_wal::Disk`] as the index's storage.
#[derive(Clone, Debug)]
pub(crate) struct IndexFile {
    file: Arc<dyn DiskFile>,
    sums: Arc<Sums>,
    faults: Arc<Faults>,
    /// The length that it should have had and there was no space for, in bytes; 0 if none.
    wanted: Arc<AtomicU64>,
}

impl IndexFile {
    /// Takes a file of which nothing is known yet.
    pub(crate) fn new(file: Box<dyn DiskFile>) -> Self {
        Self {
            file: file.into(),
            sums: Arc::default(),
            faults: Arc::default(),
            wanted: Arc::default(),
        }
    }

    /// The same file with a clean record, for a new opening.
    pub(crate) fn afresh(&self) -> Self {
        Self {
            faults: Arc::default(),
            ..self.clone()
        }
    }

    /// What went wrong with it.
    pub(crate) fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.faults)
    }

    /// Takes the space that it couldn't have before, if there is such by now. Nothing else is
    /// touched, so that asking again and again costs nobody anything.
    ///
    /// # Errors
    ///
    /// What the disk says, if it isn't that there is no space.
    pub(crate) fn finds_room(&self) -> io::Result<bool> {
        let wanted = self.wanted.load(Ordering::SeqCst);
        if wanted <= self.file.len()? {
            return Ok(true);
        }
        match self.file.allocate(wanted) {
            Ok(()) => Ok(true),
            Err(error) if lacks_space(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How many more bytes the file needs to go on growing, once it couldn't.
    pub(crate) fn lacks(&self) -> u64 {
        let held = self.file.len().unwrap_or(0);
        self.wanted.load(Ordering::SeqCst).saturating_sub(held)
    }

    /// Does a change of the file, unless an earlier one failed.
    fn attempt(&self, what: &'static str, change: impl FnOnce() -> io::Result<()>) {
        if self.faults.stopped() {
            return;
        }
        if let Err(error) = change() {
            self.faults.lose_writes(StorageError::Index {
                what,
                detail: error.to_string(),
            });
        }
    }

    fn damaged(&self, offset: u64, detail: &str) -> io::Error {
        self.faults.lose(StorageError::Damaged {
            offset: Some(offset),
            detail: detail.into(),
        });
        io::Error::new(io::ErrorKind::InvalidData, "the index is damaged")
    }

    fn fill(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(offset + done as u64, rest) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl redb::StorageBackend for IndexFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self.fill(offset, out) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged(offset, "the file ends before it"));
            }
            Err(error) => {
                self.faults.lose(StorageError::Index {
                    what: "read",
                    detail: error.to_string(),
                });
                return Err(error);
            }
        }
        self.sums.check(offset, out).map_err(|changed| {
            self.damaged(changed.offset, "the page isn't the one that was written")
        })
    }

    /// Growing reserves the space at once: a full disk then shows before any page is written, and
    /// not in the middle of a transaction's write-out. Of that redb is told, and of every failure
    /// to grow before there is a reader to spare.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let grow = len > self.file.len()?;
        if !grow {
            self.attempt("cut", || self.file.set_len(len));
        } else if !self.faults.stopped()
            && let Err(error) = self.file.allocate(len)
        {
            if lacks_space(&error) {
                self.wanted.store(len, Ordering::SeqCst);
                self.faults.note_no_room();
                return Err(error);
            }
            if !self.faults.is_watched() {
                return Err(error);
            }
            self.attempt("reserve space", || Err(error));
        }
        self.sums.resized(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.attempt("sync", || self.file.sync_data());
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.attempt("write", || {
            self.sums.forget(offset, data.len());
            self.file.write_all_at(offset, data)?;
            self.sums.written(offset, data);
            Ok(())
        });
        Ok(())
    }
}
