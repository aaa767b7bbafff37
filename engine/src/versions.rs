//! The versions of what a layer holds: of one key, and of everything else that has a name.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;

use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::Entry;
use highwater_core::{DomainId, Record, Revision};
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

/// A name in a domain, and a version of it: the newest first.
type Place<N> = (DomainId, N, Reverse<Revision>);

/// Every version of what domains hold under names of one kind, where nothing is ever deleted.
#[derive(Debug)]
pub(crate) struct Versioned<N: Ord, V>(SkipMap<Place<N>, V>);

impl<N: Ord, V> Default for Versioned<N, V> {
    fn default() -> Self {
        Self(SkipMap::new())
    }
}

impl<N, V> Versioned<N, V>
where
    N: Ord + Clone + Send + 'static,
    V: Clone + Send + 'static,
{
    /// Adds a version. Only the one writer may call it.
    pub(crate) fn put(&self, domain: DomainId, name: N, revision: Revision, value: V) {
        self.0.insert((domain, name, Reverse(revision)), value);
    }

    /// The newest version of a name that isn't later than `at`.
    pub(crate) fn at(&self, domain: DomainId, name: &N, at: Revision) -> Option<V> {
        let from = (domain, name.clone(), Reverse(at));
        let found = self.0.lower_bound(Bound::Included(&from))?;
        let (of, known, _) = found.key();
        (*of == domain && known == name).then(|| found.value().clone())
    }

    /// The names of a domain from `start` on, in order, each in its newest version that isn't later
    /// than `at`.
    pub(crate) fn from(
        &self,
        domain: DomainId,
        start: N,
        at: Revision,
    ) -> impl Iterator<Item = (N, V)> + use<'_, N, V> {
        let start = Bound::Included((domain, start, Reverse(Revision::MAX)));
        let entries = self.0.range((start, Bound::Unbounded));
        let entries = entries.take_while(move |entry| entry.key().0 == domain);
        newest_of(entries.filter(move |entry| entry.key().2.0 <= at))
            .map(|(_, name, value)| (name, value))
    }

    /// Every name in its newest version, ordered by domain and name.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (DomainId, N, V)> + '_ {
        newest_of(self.0.iter())
    }
}

/// Of ordered entries the first of each name, which is its newest.
fn newest_of<'a, N, V>(
    entries: impl Iterator<Item = Entry<'a, Place<N>, V>>,
) -> impl Iterator<Item = (DomainId, N, V)>
where
    N: Ord + Clone + 'a,
    V: Clone + 'a,
{
    let mut last: Option<(DomainId, N)> = None;
    entries.filter_map(move |entry| {
        let (domain, name, _) = entry.key();
        let seen = last
            .as_ref()
            .is_some_and(|(of, known)| of == domain && known == name);
        if seen {
            return None;
        }
        last = Some((*domain, name.clone()));
        Some((*domain, name.clone(), entry.value().clone()))
    })
}
