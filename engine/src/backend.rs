//! Lets the index live on the same disk seam as the log, so that one simulated disk carries both.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use highwater_wal::DiskFile;

/// What went wrong with the index's file since it was opened. The index itself can't be asked:
/// after any failure it answers that there was one.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    failed: AtomicBool,
}

impl Faults {
    /// Whether a write or a sync failed. What is on disk is then unknown, and what reads back from
    /// memory proves nothing. That there was no space to grow isn't such a failure: nothing had
    /// been written by then.
    pub(crate) fn write_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.failed.store(true, Ordering::SeqCst);
        }
        result
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
            self.file.allocate(len)
        } else {
            self.faults.note(self.file.set_len(len))
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.faults.note(self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.faults.note(self.file.write_all_at(offset, data))
    }
}
