//! Keeps a second store out of a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::error::OpenError;

/// The name of the lock's file. It is never removed: the lock belongs to the open file, so one that
/// a killed process left behind locks nothing.
pub(crate) const LOCK_FILE: &str = "lock";

/// A locked directory, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct DirLock(#[expect(dead_code, reason = "held for its lock alone")] File);

impl DirLock {
    /// Locks a directory that exists.
    ///
    /// # Errors
    ///
    /// [`OpenError::Locked`] if another store has it, [`OpenError::Io`] if the file can't be used.
    pub(crate) fn take(dir: &Path) -> Result<Self, OpenError> {
        let io = |what| {
            move |source| OpenError::Io {
                what,
                file: LOCK_FILE.into(),
                source,
            }
        };
        let path = dir.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.map_err(io("open"))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
                path: dir.to_path_buf(),
            }),
            Err(TryLockError::Error(source)) => Err(io("lock")(source)),
        }
    }
}
