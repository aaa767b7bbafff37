//! Lets the index live on the same disk seam as the log, so that one simulated disk carries both.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use highwater_wal::DiskFile;

/// What went wrong with the index's file since it was opened.
///
/// redb isn't told of a failed write or sync: it would answer nothing any more after that, not even
/// what it had long made durable. From the first failure on nothing more reaches the file, which so
/// stays as a crash at that moment would have left it, and whoever asked for the change has to look
/// here before believing in it. Pages that a reader can still see are never overwritten, so reads
/// go on.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    failed: AtomicBool,
}

impl Faults {
    /// Whether a write or a sync failed. What is on disk is then unknown, and what reads back from
    /// memory proves nothing. That there was no space to grow isn't such a failure: nothing had
    /// been written by then, and redb is told.
    pub(crate) fn write_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Does a change of the file, unless an earlier one failed.
    fn attempt(&self, change: impl FnOnce() -> io::Result<()>) {
        if self.write_failed() {
            return;
        }
        if let Err(error) = change() {
            self.failed.store(true, Ordering::SeqCst);
            tracing::error!(%error, "a write or a sync of the index failed");
        }
    }
}

/// A file of a [`highwater_wal::Disk`] as the index's storage.
#[derive(Debug)]
pub(crate) struct IndexFile {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) faults: Arc<Faults>,
}

impl redb::StorageBackend for IndexFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
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

    /// Growing reserves the space at once: a full disk then shows before any page is written, and
    /// not in the middle of a transaction's write-out.
    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.file.len()? {
            return self.file.allocate(len);
        }
        self.faults.attempt(|| self.file.set_len(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.faults.attempt(|| self.file.sync_data());
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.faults.attempt(|| self.file.write_all_at(offset, data));
        Ok(())
    }
}
