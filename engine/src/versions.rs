//! The versions of one key in a layer.

use std::sync::Arc;

use highwater_core::{Record, Revision};
use parking_lot::RwLock;

/// One version of a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyVersion {
    /// When it was written.
    pub(crate) revision: Revision,
    /// What was written; `None` for a deletion.
    pub(crate) record: Option<Arc<Record>>,
}

/// Every version of one key that a layer holds, oldest first. The writer that found it once appends
/// to it again without searching the layer.
#[derive(Debug, Default)]
pub(crate) struct Versions(RwLock<Vec<KeyVersion>>);

impl Versions {
    /// Appends a version, which is later than all before it. Only the one writer may call it.
    pub(crate) fn push(&self, revision: Revision, record: Option<Arc<Record>>) {
        self.0.write().push(KeyVersion { revision, record });
    }

    /// The newest version that isn't later than `at`.
    pub(crate) fn at(&self, at: Revision) -> Option<KeyVersion> {
        let versions = self.0.read();
        let behind = versions.partition_point(|version| version.revision <= at);
        versions.get(behind.checked_sub(1)?).cloned()
    }
}
