//! Counts of what the store did since it was opened.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use highwater_core::Rejection;
use parking_lot::Mutex;

/// Counters that only rise.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) replayed: AtomicU64,
    pub(crate) indeterminate: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    /// One for each reason code: a closed set, whatever clients send.
    rejected: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Adds to one counter.
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a rejection under its reason.
    pub(crate) fn reject(&self, rejection: &Rejection) {
        self.refuse(rejection.reason.code());
    }

    /// Counts a refusal under the code of its reason.
    pub(crate) fn refuse(&self, code: &'static str) {
        let mut rejected = self.rejected.lock();
        let count = rejected.entry(code).or_insert(0);
        *count = count.saturating_add(1);
    }

    /// The rejections so far, by reason code.
    pub(crate) fn rejected(&self) -> BTreeMap<&'static str, u64> {
        self.rejected.lock().clone()
    }
}
