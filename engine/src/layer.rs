//! Recent effects in memory, ordered, in every version: what lies over the index.
//!
//! One thread writes; any number read without a lock. A reader that asks as of a revision never
//! sees a later one, so effects may be folded in before they are durable.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_skiplist::SkipMap;
use highwater_core::limits::KEY_BYTES_MAX;
use highwater_core::{Change, DomainId, Effect, Fence, Guard, Key, KeyRange, Record, Revision};

use crate::weight;

type Versioned<N> = (DomainId, N, Reverse<Revision>);

/// The version of a key that a layer holds.
#[derive(Clone, Debug)]
pub(crate) struct KeyVersion {
    /// When it was written.
    pub(crate) revision: Revision,
    /// What was written; `None` for a deletion.
    pub(crate) record: Option<Arc<Record>>,
}

/// A range of effects in memory.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    records: SkipMap<Versioned<Key>, Option<Arc<Record>>>,
    fences: SkipMap<Versioned<Guard>, Fence>,
    bytes: AtomicUsize,
    /// The raw last revision folded in; 0 for none.
    last_revision: AtomicU64,
    /// The raw number of the last log frame that holds effects of this layer; 0 for none.
    last_lsn: AtomicU64,
}

impl Layer {
    /// Folds an effect in. Only the one writer may call it.
    pub(crate) fn fold(&self, effect: &Effect) {
        let revision = effect.revision();
        if let Change::Commit {
            domain,
            records,
            fences,
        } = effect.change()
        {
            let mut added = 0_usize;
            for change in records {
                added += weight::of_record_change(change);
                let name = (*domain, change.key.clone(), Reverse(revision));
                self.records.insert(name, change.record.clone());
            }
            for change in fences {
                added += weight::of_fence_change(change);
                let name = (*domain, change.guard.clone(), Reverse(revision));
                self.fences.insert(name, change.fence.clone());
            }
            self.bytes.fetch_add(added, Ordering::Relaxed);
        }
        self.last_revision.store(revision.get(), Ordering::Release);
    }

    /// An estimate of its memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The last revision folded in.
    pub(crate) fn last_revision(&self) -> Option<Revision> {
        Revision::new(self.last_revision.load(Ordering::Acquire))
    }

    /// The last log frame that holds effects of this layer, raw; 0 for none.
    pub(crate) fn last_lsn(&self) -> u64 {
        self.last_lsn.load(Ordering::Acquire)
    }

    /// Notes the log frame that made the layer's latest effects durable.
    pub(crate) fn set_last_lsn(&self, lsn: u64) {
        self.last_lsn.store(lsn, Ordering::Release);
    }

    /// The newest version of a key that isn't later than `at`.
    pub(crate) fn record(&self, domain: DomainId, key: &Key, at: Revision) -> Option<KeyVersion> {
        let from = (domain, key.clone(), Reverse(at));
        let found = self.records.lower_bound(Bound::Included(&from))?;
        let (of, name, Reverse(revision)) = found.key();
        let hit = *of == domain && name == key;
        hit.then(|| KeyVersion {
            revision: *revision,
            record: found.value().clone(),
        })
    }

    /// The newest fence of a guard that isn't later than `at`.
    pub(crate) fn fence(&self, domain: DomainId, guard: &Guard, at: Revision) -> Option<Fence> {
        let from = (domain, guard.clone(), Reverse(at));
        let found = self.fences.lower_bound(Bound::Included(&from))?;
        let (of, name, _) = found.key();
        (*of == domain && name == guard).then(|| found.value().clone())
    }

    /// The keys of a range in order, each in its newest version that isn't later than `at`.
    pub(crate) fn range<'a>(
        &'a self,
        domain: DomainId,
        range: &'a KeyRange,
        at: Revision,
    ) -> impl Iterator<Item = (Key, KeyVersion)> + 'a {
        // No key is empty or longer than the bound, so these two lie before all that can follow.
        let head = range.start.get(..KEY_BYTES_MAX).unwrap_or(&range.start);
        let lowest = Key::new(head).or_else(|_| Key::new([0]));
        let start = lowest.map_or(Bound::Unbounded, |key| {
            Bound::Included((domain, key, Reverse(Revision::MAX)))
        });
        let mut last: Option<Key> = None;
        self.records
            .range((start, Bound::Unbounded))
            .take_while(move |entry| {
                let (of, key, _) = entry.key();
                let below = range
                    .end
                    .as_ref()
                    .is_none_or(|end| key.as_bytes() < end.as_slice());
                *of == domain && below
            })
            .filter_map(move |entry| {
                let (_, key, Reverse(revision)) = entry.key();
                let before = key.as_bytes() < range.start.as_slice();
                if before || *revision > at || last.as_ref() == Some(key) {
                    return None;
                }
                last = Some(key.clone());
                let version = KeyVersion {
                    revision: *revision,
                    record: entry.value().clone(),
                };
                Some((key.clone(), version))
            })
    }

    /// Every key in its newest version, ordered by domain and key.
    pub(crate) fn newest_records(&self) -> impl Iterator<Item = (DomainId, Key, KeyVersion)> + '_ {
        let mut last: Option<(DomainId, Key)> = None;
        self.records.iter().filter_map(move |entry| {
            let (domain, key, Reverse(revision)) = entry.key();
            let seen = last
                .as_ref()
                .is_some_and(|(of, name)| of == domain && name == key);
            if seen {
                return None;
            }
            last = Some((*domain, key.clone()));
            let version = KeyVersion {
                revision: *revision,
                record: entry.value().clone(),
            };
            Some((*domain, key.clone(), version))
        })
    }

    /// Every fence in its newest version, ordered by domain and guard.
    pub(crate) fn newest_fences(&self) -> impl Iterator<Item = (DomainId, Guard, Fence)> + '_ {
        let mut last: Option<(DomainId, Guard)> = None;
        self.fences.iter().filter_map(move |entry| {
            let (domain, guard, _) = entry.key();
            let seen = last
                .as_ref()
                .is_some_and(|(of, name)| of == domain && name == guard);
            if seen {
                return None;
            }
            last = Some((*domain, guard.clone()));
            Some((*domain, guard.clone(), entry.value().clone()))
        })
    }
}
