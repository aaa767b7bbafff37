//! What stops a store, or holds it up: set in one place, read everywhere.

use std::sync::atomic::{AtomicBool, Ordering};

/// The conditions that a store can be in beside its data.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    poisoned: AtomicBool,
    closed: AtomicBool,
    index_full: AtomicBool,
    index_away: AtomicBool,
}

impl Latch {
    /// An IO error in the durability path. Never cleared: only a reopen tells what is on disk.
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::SeqCst);
    }

    /// Whether the durability path has failed.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::SeqCst)
    }

    /// Takes no more requests. True for the first caller.
    pub(crate) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::SeqCst)
    }

    /// Whether the store was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Notes whether the last checkpoint found no space. True on a change.
    pub(crate) fn set_index_full(&self, full: bool) -> bool {
        self.index_full.swap(full, Ordering::SeqCst) != full
    }

    /// Whether the last checkpoint found no space.
    pub(crate) fn is_index_full(&self) -> bool {
        self.index_full.load(Ordering::SeqCst)
    }

    /// Notes whether the index is closed for the moment, to be opened anew.
    pub(crate) fn set_index_away(&self, away: bool) {
        self.index_away.store(away, Ordering::SeqCst);
    }

    /// Whether reads of the index fail for no other reason than that it is being opened anew.
    pub(crate) fn is_index_away(&self) -> bool {
        self.index_away.load(Ordering::SeqCst)
    }
}
